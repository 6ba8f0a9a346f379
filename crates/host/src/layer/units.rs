//! Requests in units of a device.

use std::ops::Range;

use ssdlab_base::Request;

/// Units that a request touches, if only in part.
pub(crate) const fn units_of(request: &Request, per_unit: u64) -> Range<u32> {
    (request.sector / per_unit) as u32..request.end().div_ceil(per_unit) as u32
}

/// Units that a request covers whole.
pub(crate) fn whole_units_of(request: &Request, per_unit: u64) -> Range<u32> {
    let first = request.sector.div_ceil(per_unit) as u32;
    first..((request.end() / per_unit) as u32).max(first)
}

/// The request, as wide as the units that it touches.
pub(crate) fn widened(request: &Request, per_unit: u64) -> Request {
    if request.sectors == 0 {
        return *request;
    }
    let units = units_of(request, per_unit);
    Request { sector: u64::from(units.start) * per_unit, sectors: units.len() as u64 * per_unit, ..*request }
}

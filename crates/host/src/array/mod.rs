//! What layers above several devices share: the devices in step, commands on their way below, and the order of those that
//! overlap.

mod overlaps;
mod parts;

pub(crate) use overlaps::{Overlaps, changes};
pub(crate) use parts::{Array, Ended};

use ssdlab_base::{Request, SECTOR_BYTES};
use ssdlab_device::path::{Part, Path, Segment, Stage};
use ssdlab_device::{Completion, Status};

/// The completion of a command from above.
pub(crate) fn completion(request: &Request, status: Status, at: ssdlab_base::Nanos, order: u64) -> Completion {
    Completion {
        tag: request.tag,
        op: request.op,
        has_answer: false,
        status,
        submitted: request.at,
        at,
        order,
        bytes: request.sectors.saturating_mul(SECTOR_BYTES),
    }
}

/// The path of a command that ended with this part of it: it waited in the layer until that part was sent.
pub(crate) fn waited_before(request: &Request, below: &Path) -> Path {
    let waited = Segment { stage: Stage::Request, part: Part::HostLayers, from: request.at, to: below.request.at };
    let own = (waited.to > waited.from).then_some(waited);
    Path { request: *request, segments: own.into_iter().chain(below.segments.iter().copied()).collect() }
}

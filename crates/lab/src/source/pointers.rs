//! Whether the writes of a workload follow the write pointers of zones.

use std::collections::BTreeMap;

use ssdlab_base::command_sets::zoned::ZoneShape;
use ssdlab_base::{Nanos, Op, SECTOR_BYTES};
use ssdlab_workload::{Next, Workload, WorkloadError};

/// The first write that is not at the write pointer of its zone, in words; zones are empty at first. `workload` sends all
/// its requests without a clock, as a closed loop does.
pub(super) fn first_off(workload: &mut dyn Workload, zones: &ZoneShape) -> Result<Option<String>, WorkloadError> {
    let mut written: BTreeMap<u64, u64> = BTreeMap::new();
    let mut number = 0_u64;
    while let Next::Request(request) = workload.next(Nanos::ZERO)? {
        number += 1;
        workload.completed(Nanos::ZERO, request.tag);
        if request.op != Op::Write || request.sectors == 0 {
            continue;
        }
        let (zone, within) = (request.sector / zones.size, request.sector % zones.size);
        let pointer = written.entry(zone).or_insert(0);
        let (at, start) = (request.sector * SECTOR_BYTES, zone * zones.size);
        if within != *pointer {
            let expected = (start + *pointer) * SECTOR_BYTES;
            let what =
                format!("request {number} writes at byte {at}, and the write pointer of its zone is at {expected}");
            return Ok(Some(what));
        }
        if within + request.sectors > zones.capacity {
            let end = (start + zones.capacity) * SECTOR_BYTES;
            let what =
                format!("request {number} writes from byte {at} beyond the capacity of its zone, which ends at {end}");
            return Ok(Some(what));
        }
        *pointer += request.sectors;
    }
    Ok(None)
}

//! A workload from beginning to end without a drive: every request completes at once.

use ssdlab_base::{Nanos, Request};
use ssdlab_workload::{Next, Workload, WorkloadError};

use crate::standstill::Standstill;

/// A workload that sends so many requests does not end by itself.
const REQUESTS_MAX: u64 = 200_000_000;

/// Requests between looks at the clock.
const REQUESTS_PER_LOOK: u64 = 1 << 16;

/// Shows each request of `workload` to `see`, which ends the walk with `false`. The clock is the workload's own; a
/// closed loop sends at time zero.
///
/// # Errors
/// Those of the workload, and one that waits for a completion although all have completed.
pub fn walk(workload: &mut dyn Workload, mut see: impl FnMut(&Request) -> bool) -> Result<(), WorkloadError> {
    let mut now = Nanos::ZERO;
    let mut requests = 0_u64;
    let mut still = Standstill::default();
    loop {
        if requests.is_multiple_of(REQUESTS_PER_LOOK)
            && still.look(now, requests, 0, 0).is_some()
            && workload.ends_by_time()
        {
            return Err(WorkloadError(
                "the workload ends by time alone (time_based), so what it accesses cannot be known without a drive; give it an \
                 end of its own: io_size, number_ios or loops"
                    .to_string(),
            ));
        }
        match workload.next(now)? {
            Next::Request(request) => {
                if !see(&request) {
                    return Ok(());
                }
                workload.completed(now, request.tag);
                requests += 1;
                if requests == REQUESTS_MAX {
                    return Err(WorkloadError(format!(
                        "the workload sent {REQUESTS_MAX} requests and did not end: what it touches cannot be known"
                    )));
                }
            }
            Next::WaitUntil(time) => now = time.max(now),
            Next::WaitForCompletion => {
                return Err(WorkloadError("the workload waits for a completion, but all have completed".to_string()));
            }
            Next::Done => return Ok(()),
        }
    }
}

//! A workload from beginning to end without a drive: every request completes at once.

use ssdlab_base::{Nanos, Request};
use ssdlab_workload::{Next, Workload, WorkloadError};

/// A workload that sends so many requests does not end by itself (one that runs for a time, on a clock that stands still).
const REQUESTS_MAX: u64 = 200_000_000;

/// Shows each request of `workload` to `see`, which ends the walk with `false`. The clock is the workload's own; a
/// closed loop sends at time zero.
///
/// # Errors
/// Those of the workload, and one that waits for a completion although all have completed.
pub(crate) fn walk(workload: &mut dyn Workload, mut see: impl FnMut(&Request) -> bool) -> Result<(), WorkloadError> {
    let mut now = Nanos::ZERO;
    let mut requests = 0_u64;
    loop {
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

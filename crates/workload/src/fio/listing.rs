//! The requests that jobs make, without a drive.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ssdlab_base::{Nanos, Request};

use crate::{Next, Workload, WorkloadError};

use super::FioWorkload;

impl FioWorkload {
    /// Gives each request to `take`, with its job as [`Workload::job_of`] counts them, as if a drive answered each after
    /// `latency`. `take` says whether to go on.
    ///
    /// # Errors
    /// What [`Workload::next`] and `take` find.
    pub fn list(
        &mut self,
        latency: Nanos,
        mut take: impl FnMut(&Request, usize) -> Result<bool, WorkloadError>,
    ) -> Result<(), WorkloadError> {
        assert!(latency > Nanos::ZERO, "time must pass, or a job that ends by its time would never end");
        let mut now = Nanos::ZERO;
        let mut in_flight = BinaryHeap::new();
        loop {
            let wake = match self.next(now)? {
                Next::Request(request) => {
                    in_flight.push(Reverse((now + latency, request.tag)));
                    if !take(&request, self.job_of(request.tag))? {
                        return Ok(());
                    }
                    continue;
                }
                Next::WaitUntil(time) => time,
                Next::WaitForCompletion => Nanos::MAX,
                Next::Done => return Ok(()),
            };
            match in_flight.peek() {
                Some(Reverse((due, tag))) if *due <= wake => {
                    let (due, tag) = (*due, *tag);
                    in_flight.pop();
                    now = due;
                    self.completed(now, tag);
                }
                _ => now = wake,
            }
        }
    }
}

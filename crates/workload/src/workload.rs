//! The one thing a replay loop knows about where requests come from.

use ssdlab_base::{Nanos, Request};

/// What a workload wants at a point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Send this now (`request.at` is its arrival, at or before the time asked for).
    Request(Request),
    /// Nothing before this time; ask again then, or after a completion, whichever comes first.
    WaitUntil(Nanos),
    /// Nothing before a request completes.
    WaitForCompletion,
    /// No more requests, ever.
    Done,
}

/// Why a workload cannot go on, as a sentence naming file and line.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct WorkloadError(pub String);

/// What a workload takes while it is sent, at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Requests in flight.
    pub in_flight: u64,
    /// Bytes of the longest of them.
    pub request_bytes: u64,
    /// Kinds of requests (read, write, trim, flush), where that is known.
    pub kinds: Option<u64>,
    /// Bytes of its random maps.
    pub random_map_bytes: u64,
    /// Bytes of its other tables.
    pub table_bytes: u64,
    /// Bytes of the addresses that it writes at most, where that is known.
    pub written_bytes: Option<u64>,
}

/// A stream of requests with its own discipline of sending.
pub trait Workload {
    /// The next request at virtual time `now`.
    fn next(&mut self, now: Nanos) -> Result<Next, WorkloadError>;

    /// The words of the request that [`Workload::next`] gave last, where it is a command of a set.
    fn words(&self) -> &[u64] {
        &[]
    }

    /// The command set of its requests that are not block I/O.
    fn command_set(&self) -> Option<&'static str> {
        None
    }

    /// The zones of the drive as they are before the first request: bytes up to the write pointer of each, and whether it
    /// is open or closed.
    fn begin_zones(&mut self, zones: &mut dyn Iterator<Item = (u64, bool)>) {
        let _ = zones;
    }

    /// Requests that come next, in their order, of which this did not tell before; their times and tags are not set yet,
    /// and those behind a job's end never come. A hint for who wants to fetch ahead: it may be empty, and asking changes
    /// nothing.
    fn lookahead(&mut self) -> &[Request] {
        &[]
    }

    /// The request with `tag` has completed at `now`.
    fn completed(&mut self, now: Nanos, tag: u32);

    /// Names of the jobs that it is made of, where requests are to be reported for each; none where there are no several.
    fn jobs(&self) -> Vec<String> {
        Vec::new()
    }

    /// The job, by its place in [`Workload::jobs`], whose request in flight has this tag.
    fn job_of(&self, tag: u32) -> usize {
        let _ = tag;
        0
    }

    /// Requests in all and requests sent so far, where the total is known, for progress.
    fn progress(&self) -> (u64, Option<u64>);

    /// What a person should know of how its requests came to be what they are, a sentence each; whole once all were sent.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether it goes on until a time has come, however much it has sent: on a clock that stands still it never ends.
    fn ends_by_time(&self) -> bool {
        false
    }

    /// Start again from the beginning, as a fresh copy with the same seed.
    fn rewind(&mut self) -> Result<(), WorkloadError>;
}

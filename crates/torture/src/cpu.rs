//! Processor time: machines are shared, and the wall clock counts what others take.

use std::time::{Duration, Instant};

/// Measures this thread from its making on.
pub(crate) struct Cpu {
    start: Option<u64>,
    wall: Instant,
}

/// Processor time of this thread so far in nanoseconds; `None` where the system does not tell.
fn thread_ns() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

impl Cpu {
    /// Begins to measure.
    pub(crate) fn start() -> Cpu {
        Cpu { start: thread_ns(), wall: Instant::now() }
    }

    /// Processor time since the beginning; wall time where the system does not tell.
    pub(crate) fn elapsed(&self) -> Duration {
        match (self.start, thread_ns()) {
            (Some(start), Some(now)) => Duration::from_nanos(now.saturating_sub(start)),
            _ => self.wall.elapsed(),
        }
    }
}

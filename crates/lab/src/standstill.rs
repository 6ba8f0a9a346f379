//! A clock that stands still: a workload that ends by time would go on for ever.
//!
//! Reads of what was never written, trims, and everything on a drive with `flash.timing=none` may take no virtual time. A
//! workload with an end of its own ends all the same; one that waits for a time never does.

use ssdlab_base::Nanos;

/// Requests in a row that took no time, before a workload that ends by time is given up.
pub(crate) const REQUESTS_MAX: u64 = 250_000;

/// What was sent since the clock last moved.
#[derive(Debug, Default)]
pub(crate) struct Standstill {
    since: Nanos,
    requests: u64,
    bytes: u64,
}

impl Standstill {
    /// Looks at the clock, and at all requests and bytes up to now; how many requests came since the clock last moved, if
    /// they are too many and of `least_bytes` or more. What is seldom looked at may be found late, never early.
    pub(crate) fn look(&mut self, now: Nanos, requests: u64, bytes: u64, least_bytes: u64) -> Option<u64> {
        if now != self.since || requests < self.requests {
            *self = Standstill { since: now, requests, bytes };
        }
        let sent = requests - self.requests;
        (sent >= REQUESTS_MAX && bytes.saturating_sub(self.bytes) >= least_bytes).then_some(sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_many_requests_and_bytes_at_one_time_are_a_standstill() {
        let mut still = Standstill::default();
        assert_eq!(still.look(Nanos(5), 10, 10, 100), None);
        assert_eq!(still.look(Nanos(5), 9 + REQUESTS_MAX, 1000, 100), None);
        assert_eq!(
            still.look(Nanos(5), 10 + REQUESTS_MAX, 109, 100),
            None,
            "a drive of 100 bytes was not passed over once"
        );
        assert_eq!(still.look(Nanos(5), 10 + REQUESTS_MAX, 110, 100), Some(REQUESTS_MAX));
        assert_eq!(still.look(Nanos(6), 3 * REQUESTS_MAX, 1000, 100), None, "the clock has moved");
        assert_eq!(still.look(Nanos(6), 4 * REQUESTS_MAX, 1100, 100), Some(REQUESTS_MAX));
    }
}

//! Times of periodic work.

use ssdlab_base::Nanos;

/// The time of a period from now; never, where it is 0.
pub(crate) fn after(now: Nanos, period: Nanos) -> Nanos {
    if period.0 == 0 { Nanos::MAX } else { Nanos(now.0.saturating_add(period.0)) }
}

/// The first time from now on that is a whole number of periods behind `at`.
pub(crate) fn behind(at: Nanos, now: Nanos, period: Nanos) -> Nanos {
    Nanos(at.0 + now.0.saturating_sub(at.0).next_multiple_of(period.0.max(1)))
}

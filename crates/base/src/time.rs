//! Virtual time: unsigned 64-bit nanoseconds, no floats.
//!
//! Time never wraps. What input asks for lies before [`Nanos::HORIZON`] and is refused where it is read if it does not;
//! sums of such times fit 64 bits many times over, and the operators below panic in every build if one does not.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub};

/// A point in virtual time or a span of it, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The start of virtual time, or an empty span.
    pub const ZERO: Nanos = Nanos(0);
    /// Later than anything that happens.
    pub const MAX: Nanos = Nanos(u64::MAX);
    /// The end of the times that input may ask for, 2^61 ns or 73 years: an arrival, a pause, the end of a run.
    pub const HORIZON: Nanos = Nanos(1 << 61);

    /// A span of whole microseconds.
    pub const fn from_us(us: u64) -> Nanos {
        match us.checked_mul(1_000) {
            Some(ns) => Nanos(ns),
            None => overflow(),
        }
    }

    /// A span of whole milliseconds.
    pub const fn from_ms(ms: u64) -> Nanos {
        match ms.checked_mul(1_000_000) {
            Some(ns) => Nanos(ns),
            None => overflow(),
        }
    }

    /// The time itself if input may ask for it: if it is before [`Nanos::HORIZON`].
    ///
    /// ```
    /// use ssdlab_base::Nanos;
    /// assert_eq!(Nanos(5).before_horizon(), Some(Nanos(5)));
    /// assert_eq!(Nanos::HORIZON.before_horizon(), None);
    /// ```
    pub const fn before_horizon(self) -> Option<Nanos> {
        if self.0 < Nanos::HORIZON.0 { Some(self) } else { None }
    }

    /// The span in seconds, for printing and rates only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The span from `earlier` to `self`, zero if `earlier` is later.
    pub fn since(self, earlier: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }

    /// The later of the two.
    pub fn max(self, other: Nanos) -> Nanos {
        Nanos(self.0.max(other.0))
    }
}

/// A time that does not fit is a bug in the code that computed it: a wrapped one would pass for a result.
#[cold]
#[inline(never)]
const fn overflow() -> ! {
    panic!("virtual time left its range of 0 to 2^64 nanoseconds")
}

impl Add for Nanos {
    type Output = Nanos;
    #[inline]
    fn add(self, other: Nanos) -> Nanos {
        match self.0.checked_add(other.0) {
            Some(sum) => Nanos(sum),
            None => overflow(),
        }
    }
}

impl AddAssign for Nanos {
    #[inline]
    fn add_assign(&mut self, other: Nanos) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    #[inline]
    fn sub(self, other: Nanos) -> Nanos {
        match self.0.checked_sub(other.0) {
            Some(rest) => Nanos(rest),
            None => overflow(),
        }
    }
}

impl Mul<u64> for Nanos {
    type Output = Nanos;
    #[inline]
    fn mul(self, times: u64) -> Nanos {
        match self.0.checked_mul(times) {
            Some(product) => Nanos(product),
            None => overflow(),
        }
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Nanos>>(iter: I) -> Nanos {
        iter.fold(Nanos::ZERO, Add::add)
    }
}

impl fmt::Display for Nanos {
    /// Prints in the largest unit that keeps three significant digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0 as f64;
        let (value, unit) = match self.0 {
            0..=999 => return write!(f, "{} ns", self.0),
            1_000..=999_999 => (ns / 1e3, "us"),
            1_000_000..=999_999_999 => (ns / 1e6, "ms"),
            _ => (ns / 1e9, "s"),
        };
        let decimals = if value < 10.0 {
            2
        } else if value < 100.0 {
            1
        } else {
            0
        };
        write!(f, "{value:.decimals$} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    #[test]
    fn no_operation_wraps_or_saturates() {
        assert_eq!(Nanos(3) + Nanos(4), Nanos(7));
        assert_eq!(Nanos(4) - Nanos(4), Nanos::ZERO);
        assert_eq!(Nanos(u64::MAX / 3) * 3, Nanos::MAX);
        assert!(catch_unwind(|| Nanos::MAX + Nanos(1)).is_err());
        assert!(catch_unwind(|| Nanos(3) - Nanos(4)).is_err());
        assert!(catch_unwind(|| Nanos(1 << 63) * 2).is_err());
        assert!(catch_unwind(|| Nanos::from_us(u64::MAX / 1_000 + 1)).is_err());
        assert!(catch_unwind(|| Nanos::from_ms(u64::MAX / 1_000_000 + 1)).is_err());
        assert!(catch_unwind(|| [Nanos::MAX, Nanos(1)].into_iter().sum::<Nanos>()).is_err());
        let mut time = Nanos::MAX;
        assert!(catch_unwind(move || time += Nanos(1)).is_err());
    }

    #[test]
    fn two_times_from_input_and_all_that_a_drive_adds_fit() {
        let latest = Nanos(Nanos::HORIZON.0 - 1);
        assert!(latest + latest + latest < Nanos::MAX);
    }
}

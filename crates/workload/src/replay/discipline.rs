//! When a trace's requests are sent.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use ssdlab_base::Nanos;

use crate::WorkloadError;

/// Digits behind the point that a time factor may have.
const FRACTION_DIGITS: usize = 9;

/// When requests are sent.
///
/// ```
/// use ssdlab_base::Nanos;
/// use ssdlab_workload::replay::Discipline;
///
/// let slower: Discipline = "timed*2.5".parse()?;
/// assert_eq!(slower.arrival(Nanos(1_000)), Some(Nanos(2_500)));
/// let closed: Discipline = "closed:32".parse()?;
/// assert_eq!(closed.to_string(), "closed:32");
/// # Ok::<(), ssdlab_workload::WorkloadError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// At the trace's own times, multiplied by `scale / divisor`: `timed*2` has every request arrive at twice its time,
    /// so half as many come each second; `timed*0.5` is twice as fast. However slow the drive is.
    Timed {
        /// Numerator of the factor.
        scale: u64,
        /// Denominator of the factor.
        divisor: u64,
    },
    /// As soon as fewer than `depth` requests are outstanding, whatever the trace's times.
    Closed {
        /// Requests kept outstanding.
        depth: NonZeroU32,
    },
}

impl Default for Discipline {
    fn default() -> Discipline {
        Discipline::Timed { scale: 1, divisor: 1 }
    }
}

impl Discipline {
    /// When a request of time `at` arrives; nothing if that is not before [`Nanos::HORIZON`]. A closed loop leaves the
    /// time alone.
    pub fn arrival(self, at: Nanos) -> Option<Nanos> {
        match self {
            Discipline::Closed { .. } => Some(at),
            Discipline::Timed { scale: 1, divisor: 1 } => at.before_horizon(),
            Discipline::Timed { scale, divisor } => {
                let scaled = u128::from(at.0) * u128::from(scale) / u128::from(divisor.max(1));
                u64::try_from(scaled).ok().and_then(|ns| Nanos(ns).before_horizon())
            }
        }
    }
}

impl FromStr for Discipline {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Discipline, WorkloadError> {
        let refused = || {
            WorkloadError(format!(
                "found `{text}`, expected `timed`, `timed*K` (every arrival at K times its time, \
                 such as `timed*0.5` for twice as fast) or `closed:QD` (QD requests outstanding)"
            ))
        };
        if text == "timed" {
            return Ok(Discipline::default());
        }
        if let Some(depth) = text.strip_prefix("closed:") {
            let depth = depth.parse().map_err(|_| refused())?;
            return Ok(Discipline::Closed { depth });
        }
        let factor = text.strip_prefix("timed*").ok_or_else(refused)?;
        let (whole, fraction) = factor.split_once('.').unwrap_or((factor, "0"));
        let plain = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        if !plain(whole) || !plain(fraction) || fraction.len() > FRACTION_DIGITS || whole.len() > 9 {
            return Err(refused());
        }
        let divisor = 10_u64.pow(fraction.len() as u32);
        let whole: u64 = whole.parse().map_err(|_| refused())?;
        let fraction: u64 = fraction.parse().map_err(|_| refused())?;
        match whole * divisor + fraction {
            0 => Err(refused()),
            scale => Ok(Discipline::Timed { scale, divisor }),
        }
    }
}

impl fmt::Display for Discipline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Discipline::Timed { scale, divisor } if scale == divisor => f.write_str("timed"),
            Discipline::Timed { scale, divisor } => write!(f, "timed*{}", scale as f64 / divisor as f64),
            Discipline::Closed { depth } => write!(f, "closed:{depth}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_multiplies_arrival_times_exactly() {
        let parse = |text: &str| text.parse::<Discipline>().expect(text);
        assert_eq!(parse("timed"), Discipline::default());
        assert_eq!(parse("timed*1").arrival(Nanos(7)), Some(Nanos(7)));
        assert_eq!(parse("timed*0.1").arrival(Nanos(1_000_000_000_000_000_007)), Some(Nanos(100_000_000_000_000_000)));
        assert_eq!(parse("timed*3").arrival(Nanos(u64::MAX)), None);
        assert_eq!(parse("timed").arrival(Nanos::HORIZON), None);
        assert_eq!(parse("timed*2").arrival(Nanos(Nanos::HORIZON.0 / 2)), None);
        assert_eq!(parse("timed*2").arrival(Nanos(Nanos::HORIZON.0 / 2 - 1)), Some(Nanos(Nanos::HORIZON.0 - 2)));
        assert_eq!(parse("timed*0.25").to_string(), "timed*0.25");
        assert_eq!(parse("closed:8").arrival(Nanos(u64::MAX)), Some(Nanos::MAX));
    }

    #[test]
    fn what_is_no_discipline_is_refused_with_the_known_ones() {
        for bad in [
            "",
            "open",
            "closed",
            "closed:0",
            "closed:-1",
            "closed:x",
            "timed*",
            "timed*0",
            "timed*0.0",
            "timed*-1",
            "timed*1e3",
            "timed*1.",
            "timed*.5",
            "timed*0.1234567891",
            "timed*99999999999",
            "timed/2",
        ] {
            let error = bad.parse::<Discipline>().expect_err(bad).to_string();
            assert!(error.contains("closed:QD"), "{error}");
        }
    }
}

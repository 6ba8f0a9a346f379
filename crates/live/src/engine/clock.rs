//! Wall-clock time as the drive's virtual time.

use std::time::{Duration, Instant};

use ssdlab_base::Nanos;

/// When a command's answer leaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// At once: virtual time jumps, and what is seen is the data path's own ceiling.
    None,
    /// When the model says so, on a clock on which everything takes `slower` times as long.
    Model {
        /// 1 is real time; 10 makes a modelled microsecond last ten.
        slower: f64,
    },
}

/// Why a text is no pace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PaceError {
    /// It is none of the words.
    #[error("`{text}` is not a time scale; expected none, model, or model*K with K above 0")]
    Unknown {
        /// The text.
        text: String,
    },
    /// Its K is too small or too large.
    #[error("`{text}`: K is {factor}, expected 0.001 to 1000000")]
    Factor {
        /// The text.
        text: String,
        /// The K in it.
        factor: String,
    },
}

impl std::str::FromStr for Pace {
    type Err = PaceError;

    fn from_str(text: &str) -> Result<Pace, PaceError> {
        let refused = || PaceError::Unknown { text: text.to_string() };
        match text {
            "none" => Ok(Pace::None),
            "model" => Ok(Pace::Model { slower: 1.0 }),
            _ => {
                let factor = text.strip_prefix("model*").ok_or_else(refused)?;
                let slower: f64 = factor.parse().map_err(|_| refused())?;
                if !(1e-3..=1e6).contains(&slower) {
                    return Err(PaceError::Factor { text: text.to_string(), factor: factor.to_string() });
                }
                Ok(Pace::Model { slower })
            }
        }
    }
}

/// Turns instants into virtual time and back.
#[derive(Clone, Copy)]
pub(super) struct Clock {
    start: Instant,
    /// Virtual time at `start`.
    base: Nanos,
    slower: f64,
}

impl Clock {
    pub(super) fn new(slower: f64) -> Clock {
        Clock { start: Instant::now(), base: Nanos::ZERO, slower }
    }

    /// The clock that goes on from virtual time `base` at `now`, `slower` times as slow as real time.
    pub(super) fn turned(now: Instant, base: Nanos, slower: f64) -> Clock {
        Clock { start: now, base, slower }
    }

    /// Virtual time at an instant.
    pub(super) fn virtual_at(&self, instant: Instant) -> Nanos {
        let real = instant.saturating_duration_since(self.start).as_nanos();
        let since = match self.slower {
            1.0 => u64::try_from(real).unwrap_or(u64::MAX),
            slower => (real as f64 / slower) as u64,
        };
        Nanos(self.base.0.saturating_add(since))
    }

    /// The instant of a virtual time; `start` for what was before it.
    pub(super) fn instant_of(&self, at: Nanos) -> Instant {
        let since = at.0.saturating_sub(self.base.0);
        let real = if self.slower == 1.0 { since } else { (since as f64 * self.slower).ceil() as u64 };
        self.start + Duration::from_nanos(real)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_never_before_its_virtual_time() {
        for slower in [1.0, 0.5, 3.7, 1000.0] {
            let clock = Clock::new(slower);
            for at in [0, 1, 17, 12_345, 987_654_321] {
                let instant = clock.instant_of(Nanos(at));
                let back = clock.virtual_at(instant).0;
                assert!(
                    back >= at.saturating_sub(1) && back <= at + 1 + (1.0 / slower) as u64,
                    "{slower}: {at}, {back}"
                );
            }
        }
    }

    #[test]
    fn a_clock_that_is_turned_goes_on_from_where_it_was() {
        let first = Clock::new(10.0);
        let now = first.start + Duration::from_millis(50);
        let base = first.virtual_at(now);
        assert_eq!(base, Nanos(5_000_000));
        let second = Clock::turned(now, base, 0.5);
        assert_eq!(second.virtual_at(now), base);
        assert_eq!(second.virtual_at(now + Duration::from_millis(1)), Nanos(7_000_000));
        assert_eq!(second.instant_of(Nanos(7_000_000)), now + Duration::from_millis(1));
        assert_eq!(second.instant_of(Nanos(1)), now, "what was before is due");
    }

    #[test]
    fn a_pace_is_read_or_refused() {
        assert_eq!("none".parse(), Ok(Pace::None));
        assert_eq!("model".parse(), Ok(Pace::Model { slower: 1.0 }));
        assert_eq!("model*2.5".parse(), Ok(Pace::Model { slower: 2.5 }));
        for wrong in ["", "fast", "model*", "model*0", "model*-1", "model*nan", "model*inf"] {
            assert!(wrong.parse::<Pace>().is_err(), "{wrong}");
        }
    }
}

//! The durations that a recorder takes for a program, and how slow a recorder may be for them.

use std::fmt;

use ssdlab_base::Nanos;

/// The open interval of durations that are taken for a program: `a < T < b`, as the paper writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// `a`.
    pub above: Nanos,
    /// `b`.
    pub below: Nanos,
}

/// Why a text is no window.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{found}' is not a window: expected SHORTEST..LONGEST, such as 200us..2200us{reason}")]
pub struct WindowError {
    found: String,
    reason: String,
}

/// A window is wide enough for a recorder if it holds so many samples.
const SAMPLES_MIN: u64 = 10;

impl Window {
    /// The window that has both ends inside.
    pub const fn from_to(shortest: Nanos, longest: Nanos) -> Window {
        Window { above: Nanos(shortest.0.saturating_sub(1)), below: Nanos(longest.0.saturating_add(1)) }
    }

    /// From one end to the other.
    pub const fn width(&self) -> Nanos {
        Nanos(self.below.0.saturating_sub(self.above.0))
    }

    /// Whether a recorder that samples each `interval` is too slow for it. A low is measured wrong by up to an
    /// interval, so of durations spread evenly over the window each end loses about a sixth of an interval.
    pub const fn is_narrow_for(&self, interval: Nanos) -> bool {
        interval.0.saturating_mul(SAMPLES_MIN) > self.width().0
    }

    /// Whether a duration is inside.
    #[inline]
    pub fn contains(&self, duration: Nanos) -> bool {
        self.above < duration && duration < self.below
    }
}

impl std::str::FromStr for Window {
    type Err = WindowError;

    /// Reads `A..B`.
    ///
    /// ```
    /// use ssdlab_measure::Window;
    /// let window: Window = "200us..2.2ms".parse().expect("a window");
    /// assert!(window.contains(ssdlab_base::Nanos::from_us(201)));
    /// assert!(!window.contains(ssdlab_base::Nanos::from_us(200)));
    /// assert!("2ms..1ms".parse::<Window>().is_err());
    /// ```
    fn from_str(text: &str) -> Result<Window, WindowError> {
        let error = |reason: String| WindowError { found: text.to_string(), reason };
        let (above, below) = text.split_once("..").ok_or_else(|| error(String::new()))?;
        let time = |text: &str| ssdlab_base::parse_duration(text.trim()).map_err(|why| error(format!(" ({why})")));
        let (above, below) = (time(above)?, time(below)?);
        if above >= below {
            return Err(error(" (the shortest is not below the longest)".to_string()));
        }
        Ok(Window { above, below })
    }
}

impl fmt::Display for Window {
    /// Prints what is inside, exactly. Times are whole nanoseconds, so that `199999 ns < T` is `200 us <= T`: of the two
    /// the shorter is printed, and a reader sees whether an end is inside.
    ///
    /// ```
    /// use ssdlab_base::Nanos;
    /// use ssdlab_measure::Window;
    /// let window: Window = "200us..2200us".parse().expect("a window");
    /// assert_eq!(window.to_string(), "200 us < T < 2.2 ms");
    /// assert_eq!(Window::from_to(Nanos(200_000), Nanos(2_200_000)).to_string(), "200 us <= T <= 2.2 ms");
    /// ```
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shorter =
            |open: String, closed: String| if closed.len() < open.len() { (" <= ", closed) } else { (" < ", open) };
        let (from, least) = shorter(exact(self.above), exact(Nanos(self.above.0.saturating_add(1))));
        let (to, most) = shorter(exact(self.below), exact(Nanos(self.below.0.saturating_sub(1))));
        write!(f, "{least}{from}T{to}{most}")
    }
}

/// A time to the nanosecond, in the largest unit that it fills.
fn exact(time: Nanos) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let Some((unit, name)) = units.into_iter().find(|(unit, _)| time.0 >= *unit) else {
        return format!("{} ns", time.0);
    };
    let (whole, rest) = (time.0 / unit, time.0 % unit);
    if rest == 0 {
        return format!("{whole} {name}");
    }
    let fraction = format!("{rest:0digits$}", digits = unit.ilog10() as usize);
    format!("{whole}.{} {name}", fraction.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// What is printed, read as a person would, is the window to the nanosecond.
        #[test]
        fn what_is_printed_is_exactly_what_is_inside(above in 0_u64..3_000_000_000, width in 2_u64..3_000_000_000) {
            for above in [above, above / 1000 * 1000, (above / 1000 * 1000).saturating_sub(1)] {
                let window = Window { above: Nanos(above), below: Nanos(above + width) };
                let text = window.to_string();
                let (from, to) = text.split_once('T').expect("a T");
                let end = |text: &str| {
                    let time = ssdlab_base::parse_duration(text.trim_matches([' ', '<', '='])).expect("a time");
                    (time.0, text.contains('='))
                };
                let (from, from_inside) = end(from);
                let (to, to_inside) = end(to);
                prop_assert_eq!(window.contains(Nanos(from)), from_inside, "{}", text);
                prop_assert_eq!(window.contains(Nanos(to)), to_inside, "{}", text);
                prop_assert_eq!(from - u64::from(from_inside), window.above.0);
                prop_assert_eq!(to + u64::from(to_inside), window.below.0);
            }
        }
    }

    #[test]
    fn a_loop_has_to_be_ten_times_as_fast_as_its_window_is_wide() {
        let window = Window::from_to(Nanos(200_000), Nanos(300_000));
        assert!(!window.is_narrow_for(Nanos(10_000)));
        assert!(window.is_narrow_for(Nanos(10_001)));
        assert!(window.is_narrow_for(Nanos::MAX));
    }
}

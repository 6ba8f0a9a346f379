//! How long lows last, in bins whose width grows with the duration: at most 1/64 of it, exact integers at both ends.

use std::fmt::Write as _;

use ssdlab_base::Nanos;

use crate::Window;

/// Bins in each octave, as a power of two.
const BITS: u32 = 6;
const BINS: u64 = 1 << BITS;

/// A bin: durations from `from` to before `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bin {
    /// The shortest in it.
    pub from: Nanos,
    /// The shortest above it.
    pub to: Nanos,
    /// Lows in it.
    pub count: u64,
}

/// Durations of lows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Durations {
    counts: Vec<u64>,
    total: u64,
    busy: u128,
    shortest: Option<Nanos>,
    longest: Option<Nanos>,
}

#[inline]
fn place(ns: u64) -> usize {
    if ns < BINS {
        return ns as usize;
    }
    let octave = 63 - ns.leading_zeros();
    (u64::from(octave - BITS + 1) * BINS + (ns >> (octave - BITS)) - BINS) as usize
}

/// The first duration of a bin.
fn start(place: usize) -> u64 {
    let place = place as u64;
    if place < BINS {
        return place;
    }
    let octave = place / BINS - 1;
    (BINS + place % BINS).checked_shl(octave as u32).filter(|_| octave < 64 - u64::from(BITS)).unwrap_or(u64::MAX)
}

impl Durations {
    /// Takes one.
    #[inline]
    pub fn add(&mut self, duration: Nanos) {
        let place = place(duration.0);
        if place >= self.counts.len() {
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] += 1;
        self.total += 1;
        self.busy += u128::from(duration.0);
        self.shortest = Some(self.shortest.map_or(duration, |shortest| shortest.min(duration)));
        self.longest = Some(self.longest.map_or(duration, |longest| longest.max(duration)));
    }

    /// Takes all of another's.
    pub fn merge(&mut self, other: &Durations) {
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        self.total += other.total;
        self.busy += other.busy;
        self.shortest = self.shortest.into_iter().chain(other.shortest).min();
        self.longest = self.longest.into_iter().chain(other.longest).max();
    }

    /// How many there are.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// All of them together.
    pub fn busy(&self) -> Nanos {
        Nanos(u64::try_from(self.busy).unwrap_or(u64::MAX))
    }

    /// The shortest and the longest; nothing if there is none.
    pub fn range(&self) -> Option<(Nanos, Nanos)> {
        self.shortest.zip(self.longest)
    }

    /// The bins that hold something, from the shortest up.
    pub fn bins(&self) -> impl Iterator<Item = Bin> + '_ {
        let filled = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        filled.map(|(place, &count)| Bin { from: Nanos(start(place)), to: Nanos(start(place + 1)), count })
    }

    /// The bin a duration falls in, with what it holds.
    pub fn bin_of(&self, duration: Nanos) -> Bin {
        let place = place(duration.0);
        let count = self.counts.get(place).copied().unwrap_or(0);
        Bin { from: Nanos(start(place)), to: Nanos(start(place + 1)), count }
    }

    /// How many are in a window; those in a bin that the window cuts are divided as if spread evenly over it.
    pub fn inside(&self, window: Window) -> f64 {
        let (from, to) = (window.above.0.saturating_add(1), window.below.0);
        let share = |bin: Bin| {
            let overlap = bin.to.0.min(to).saturating_sub(bin.from.0.max(from));
            bin.count as f64 * overlap as f64 / (bin.to.0 - bin.from.0) as f64
        };
        self.bins().map(share).sum()
    }

    /// A picture for a terminal: a row for each quarter of an octave, bars by the logarithm of the count, `>` before the
    /// rows that lie in the window wholly or in part.
    pub fn render(&self, window: Option<Window>) -> String {
        const BAR: f64 = 50.0;
        const BINS_A_ROW: usize = BINS as usize / 4;
        let mut text = String::new();
        let (Some(first), Some(last)) =
            (self.counts.iter().position(|&count| count > 0), self.counts.iter().rposition(|&count| count > 0))
        else {
            return "no low in the capture\n".to_string();
        };
        let rows: Vec<(u64, u64, u64)> = (first / BINS_A_ROW..=last / BINS_A_ROW)
            .map(|row| {
                let from = row * BINS_A_ROW;
                let to = (from + BINS_A_ROW).min(self.counts.len());
                (start(from), start(from + BINS_A_ROW), self.counts[from..to].iter().sum())
            })
            .collect();
        let most = rows.iter().map(|row| row.2).max().unwrap_or(1);
        let height = |count: u64| ((count as f64 + 1.0).ln() / (most as f64 + 1.0).ln() * BAR).ceil() as usize;
        let mut skipped = 0;
        for (index, &(from, to, count)) in rows.iter().enumerate() {
            // Long stretches of nothing are one line.
            if count == 0 && rows.get(index + 1).is_some_and(|next| next.2 == 0) {
                skipped += 1;
                continue;
            }
            if skipped > 0 {
                text.push_str("        ...\n");
                skipped = 0;
            }
            let inside = window.is_some_and(|window| from < window.below.0 && window.above.0 < to - 1);
            let mark = if inside { '>' } else { ' ' };
            let bar = "#".repeat(height(count));
            let _ = writeln!(text, "{mark} {:>9} .. {:>9} {count:>12} {bar}", Nanos(from), Nanos(to));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_duration_is_in_its_bin_and_bins_are_narrow(ns in prop_oneof![0_u64..5000, any::<u64>().prop_map(|ns| ns >> 3)]) {
            let mut durations = Durations::default();
            durations.add(Nanos(ns));
            let bin = durations.bin_of(Nanos(ns));
            prop_assert!(bin.from.0 <= ns && ns < bin.to.0);
            prop_assert_eq!(bin.count, 1);
            prop_assert!((bin.to.0 - bin.from.0 - 1) * BINS <= ns);
            prop_assert_eq!(durations.bins().next(), Some(bin));
        }

        /// A window on the borders of bins counts exactly.
        #[test]
        fn a_window_counts_what_is_in_it(all in prop::collection::vec(1_u64..1 << 20, 1..200), a in 1_u64..1 << 20, b in 1_u64..1 << 20) {
            let mut durations = Durations::default();
            all.iter().for_each(|&ns| durations.add(Nanos(ns)));
            let (a, b) = (durations.bin_of(Nanos(a.min(b))).from, durations.bin_of(Nanos(a.max(b))).to);
            let window = Window { above: Nanos(a.0 - 1), below: b };
            let exact = all.iter().filter(|&&ns| window.contains(Nanos(ns))).count();
            prop_assert!((durations.inside(window) - exact as f64).abs() < 1e-6);
        }
    }

    #[test]
    fn the_picture_marks_the_window_and_leaves_out_the_void() {
        let mut durations = Durations::default();
        (0..100).for_each(|n| durations.add(Nanos::from_us(200 + n)));
        (0..10).for_each(|_| durations.add(Nanos::from_ms(20)));
        let window = Window { above: Nanos::from_us(150), below: Nanos::from_ms(1) };
        let text = durations.render(Some(window));
        assert!(text.lines().count() < 12, "{text}");
        assert!(text.contains("..."), "{text}");
        let marked: u64 = text
            .lines()
            .filter(|line| line.starts_with('>'))
            .filter_map(|line| line.split_whitespace().rev().find_map(|word| word.parse::<u64>().ok()))
            .sum();
        assert_eq!(marked, 100, "{text}");
    }
}

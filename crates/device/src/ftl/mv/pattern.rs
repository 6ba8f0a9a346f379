//! The unaligned write patterns (section 3.2, Figure 6).
//!
//! The nine patterns of a page of eight sectors are exactly the runs of sectors that are longer than half the page and
//! shorter than the page, numbered by falling length and then by their first sector. The same rule gives 35 patterns
//! for 16 sectors and 135 for 32: (h + 2)(h - 1) / 2 with h half the sectors of a page.

/// The patterns of pages of so many sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Patterns {
    sectors: u32,
}

impl Patterns {
    pub(super) const fn new(sectors: u32) -> Patterns {
        Patterns { sectors }
    }

    /// How many there are.
    pub(super) const fn count(self) -> u32 {
        let half = self.sectors / 2;
        if half < 2 { 0 } else { (half + 2) * (half - 1) / 2 }
    }

    /// The number of the pattern that a mask of sectors is, if it is one.
    pub(super) fn number(self, mask: u64) -> Option<u32> {
        let length = mask.count_ones();
        if length <= self.sectors / 2 || length >= self.sectors {
            return None;
        }
        let first = mask.trailing_zeros();
        let run = u64::MAX >> (64 - length);
        (mask >> first == run).then(|| self.before(self.sectors - length) + first)
    }

    /// The mask of a pattern.
    pub(super) fn mask(self, number: u32) -> u64 {
        let missing = (1..=self.sectors / 2).rev().find(|missing| self.before(*missing) <= number).unwrap_or(1);
        let length = self.sectors - missing;
        (u64::MAX >> (64 - length)) << (number - self.before(missing))
    }

    /// Patterns that miss fewer sectors.
    const fn before(self, missing: u32) -> u32 {
        (missing - 1) * (missing + 2) / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figure 6, sector 0 first.
    const FIGURE_6: [&str; 9] =
        ["11111110", "01111111", "11111100", "01111110", "00111111", "11111000", "01111100", "00111110", "00011111"];

    #[test]
    fn the_rule_gives_the_nine_patterns_of_figure_6() {
        let patterns = Patterns::new(8);
        assert_eq!(patterns.count(), 9);
        for (number, bits) in FIGURE_6.iter().enumerate() {
            let mask = bits.bytes().enumerate().fold(0, |mask, (sector, bit)| mask | u64::from(bit == b'1') << sector);
            assert_eq!(patterns.number(mask), Some(number as u32), "{bits}");
            assert_eq!(patterns.mask(number as u32), mask, "{bits}");
        }
        let found = (0..256).filter(|mask| patterns.number(*mask).is_some()).count();
        assert_eq!(found, 9);
    }

    #[test]
    fn larger_pages_have_their_counterparts() {
        for (sectors, count) in [(1, 0), (2, 0), (4, 2), (8, 9), (16, 35), (32, 135), (64, 527)] {
            let patterns = Patterns::new(sectors);
            assert_eq!(patterns.count(), count);
            for number in 0..count {
                let mask = patterns.mask(number);
                assert!(mask.count_ones() > sectors / 2 && mask.count_ones() < sectors);
                assert_eq!(patterns.number(mask), Some(number));
            }
        }
    }
}

//! The write-intent bitmap: which regions may differ between the sides of a mirror, or between a disk and its cache, known before they
//! do.
//!
//! A region's bit is on the flash of every side that keeps the bitmap before a write into the region goes to any of them. It is cleared when all
//! sides are in sync, a flush has covered everything that was done in the region, and another flush has passed without
//! anything more. A word of 64 bits stands in a sector of its own, whatever is kept of a sector.

use std::ops::Range;

use crate::seeded::{LayerBug, seeded};

/// Regions to a word.
const BITS: u64 = u64::BITS as u64;

/// The bitmap, as it should be and as it is on the sides.
#[derive(Debug)]
pub(crate) struct Intent {
    /// Sectors of a region.
    region: u64,
    want: Vec<u64>,
    /// What was sent last; `None` where the sides may hold anything.
    sent: Vec<Option<u64>>,
    /// Bits that are set on the flash of every side.
    durable: Vec<u64>,
    /// Sides that a word on its way still waits for.
    left: Vec<u32>,
    /// By region: commands that change it, and when that was begun or ended last.
    changing: Vec<u32>,
    touched: Vec<u64>,
    /// When the last flush was submitted that covered every side.
    flushed: u64,
    /// No flush comes any more: words that only clear must be on flash at once, too.
    closes: bool,
}

impl Intent {
    /// For so many regions: a clean bitmap, or the words that were found.
    pub(crate) fn new(region: u64, regions: u64, found: Option<Vec<u64>>) -> Intent {
        let words = regions.div_ceil(BITS) as usize;
        let want = found.unwrap_or_else(|| vec![0; words]);
        assert_eq!(want.len(), words);
        Intent {
            region,
            want,
            sent: vec![None; words],
            durable: vec![0; words],
            left: vec![0; words],
            changing: vec![0; regions as usize],
            touched: vec![0; regions as usize],
            flushed: 0,
            closes: false,
        }
    }

    pub(crate) fn word(&self, index: usize) -> u64 {
        self.sent[index].unwrap_or(0)
    }

    fn regions(&self, sectors: &Range<u64>) -> Range<u64> {
        if sectors.is_empty() { 0..0 } else { sectors.start / self.region..(sectors.end - 1) / self.region + 1 }
    }

    /// A command that changes these sectors begins.
    pub(crate) fn begin(&mut self, sectors: &Range<u64>, now: u64) {
        for region in self.regions(sectors) {
            self.want[(region / BITS) as usize] |= 1 << (region % BITS);
            self.changing[region as usize] += 1;
            self.touched[region as usize] = now;
        }
    }

    /// It has ended.
    pub(crate) fn end(&mut self, sectors: &Range<u64>, now: u64) {
        for region in self.regions(sectors) {
            assert!(self.changing[region as usize] > 0, "a command ends once");
            self.changing[region as usize] -= 1;
            if seeded(LayerBug::BitClearedUnflushed) && self.changing[region as usize] == 0 {
                self.want[(region / BITS) as usize] &= !(1 << (region % BITS));
            }
            self.touched[region as usize] = now;
        }
    }

    /// Whether the sides know that these sectors may differ.
    pub(crate) fn is_durable(&self, sectors: &Range<u64>) -> bool {
        self.regions(sectors).all(|region| self.durable[(region / BITS) as usize] >> (region % BITS) & 1 == 1)
    }

    /// The next word from `from` on that must be written, and whether it must be on flash at once; `sides` will hold it.
    pub(crate) fn send(&mut self, from: usize, sides: u32) -> Option<(usize, u64, bool)> {
        let due = |index: &usize| self.left[*index] == 0 && self.sent[*index] != Some(self.want[*index]);
        let index = (from..self.want.len()).find(due)?;
        let word = self.want[index];
        let at_once = self.closes || word & !self.durable[index] != 0;
        self.durable[index] &= word;
        (self.sent[index], self.left[index]) = (Some(word), sides);
        Some((index, word, at_once))
    }

    /// A side holds the word that was sent; true if all do.
    pub(crate) fn written(&mut self, index: usize) -> bool {
        assert!(self.left[index] > 0, "a word is written once to a side");
        self.left[index] -= 1;
        if self.left[index] > 0 {
            return false;
        }
        self.durable[index] = self.word(index);
        true
    }

    /// Whether no word is on its way.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.left.iter().all(|left| *left == 0)
    }

    /// A flush that was submitted at `submitted` has covered every side, and all are in sync: what was at rest before the
    /// flush before this one is the same everywhere.
    pub(crate) fn flushed(&mut self, submitted: u64) {
        for index in 0..self.want.len() {
            let mut left = self.want[index];
            while left != 0 {
                let bit = u64::from(left.trailing_zeros());
                left &= left - 1;
                let region = index * BITS as usize + bit as usize;
                if self.changing[region] == 0 && self.touched[region] < self.flushed {
                    self.want[index] &= !(1 << bit);
                }
            }
        }
        self.flushed = submitted;
    }

    /// Everything was flushed on every side, and nothing is at work: the sides are equal.
    pub(crate) fn close(&mut self) {
        self.settle();
        self.closes = true;
    }

    /// Everything was flushed, and nothing is at work: the sides are equal.
    pub(crate) fn settle(&mut self) {
        assert!(self.changing.iter().all(|changing| *changing == 0), "nothing changes a region");
        self.want.fill(0);
    }

    /// The sides may differ anywhere.
    pub(crate) fn all_differ(&mut self) {
        for region in 0..self.changing.len() as u64 {
            self.want[(region / BITS) as usize] |= 1 << (region % BITS);
        }
    }

    /// Whether any region may differ.
    pub(crate) fn any(&self) -> bool {
        self.want.iter().any(|word| *word != 0)
    }

    /// The next sectors from `from` on, at most `most`, that may differ.
    pub(crate) fn next(&self, from: u64, end: u64, most: u64) -> Option<Range<u64>> {
        let mut region = from / self.region;
        while region < self.changing.len() as u64 {
            let rest = self.want[(region / BITS) as usize] >> (region % BITS);
            if rest == 0 {
                region = (region / BITS + 1) * BITS;
                continue;
            }
            region += u64::from(rest.trailing_zeros());
            let start = (region * self.region).max(from);
            let stop = ((region + 1) * self.region).min(end).min(start + most);
            return (start < stop).then_some(start..stop);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_is_durable_when_every_side_has_it_and_goes_after_two_flushes_at_rest() {
        let mut intent = Intent::new(8, 100, None);
        assert!(!intent.any() && intent.next(0, 800, 64).is_none());
        intent.begin(&(9..25), 1);
        assert!(!intent.is_durable(&(9..10)));
        let (word, bits, adds) = intent.send(0, 2).expect("a word is due");
        assert_eq!((word, bits, adds), (0, 0b1110, true));
        assert!(!intent.written(0) && !intent.is_durable(&(9..10)));
        // What comes while it is on its way waits for the next.
        intent.begin(&(0..1), 2);
        assert_eq!(intent.send(0, 2).map(|sent| sent.0), Some(1), "the first word is on its way");
        assert!(intent.written(0));
        assert!(intent.is_durable(&(9..25)) && !intent.is_durable(&(0..1)));
        assert!(!intent.written(1) && intent.written(1));
        assert_eq!(intent.next(12, 800, 64), Some(12..16));
        intent.end(&(9..25), 3);
        intent.end(&(0..1), 3);
        intent.flushed(4);
        assert!(intent.any(), "the first flush covers, the second clears");
        intent.begin(&(16..17), 5);
        intent.end(&(16..17), 5);
        intent.flushed(6);
        assert_eq!(intent.next(0, 800, 64), Some(16..24));
        // A word that only clears need not be on flash at once, and takes its bits out of what is durable.
        assert_eq!(intent.send(0, 1), Some((0, 0b100, false)));
        assert!(intent.is_durable(&(16..24)) && !intent.is_durable(&(9..10)));
    }
}

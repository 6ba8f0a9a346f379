//! Which 4 KiB pages were read, written and are live, and when each was last written.
//!
//! ```text
//! chunk (128 MiB of addresses) -> bitmaps read / written / live, count of live pages
//!                              -> 64 blocks of 512 pages, each made when first written: position of the last write
//! ```
//!
//! Memory follows what is touched: 12 KiB for a chunk and 4 bytes for a page in a written 2 MiB block. A trim visits
//! the chunks that exist in its range, and passes over one without live pages at once.

use std::collections::BTreeMap;

/// Bytes in a page.
pub(super) const PAGE_BYTES: u64 = 4096;
/// Pages in a chunk.
const CHUNK: u64 = 1 << 15;
const WORDS: usize = (CHUNK / 64) as usize;
/// Pages in a block of positions.
const BLOCK: u64 = 512;
const BLOCKS: usize = (CHUNK / BLOCK) as usize;

struct Chunk {
    read: [u64; WORDS],
    written: [u64; WORDS],
    live: [u64; WORDS],
    live_pages: u64,
    /// Where in the stream of written bytes a page's last write ended, in 4 KiB.
    positions: [Option<Box<[u32; BLOCK as usize]>>; BLOCKS],
}

impl Chunk {
    fn new() -> Chunk {
        Chunk {
            read: [0; WORDS],
            written: [0; WORDS],
            live: [0; WORDS],
            live_pages: 0,
            positions: std::array::from_fn(|_| None),
        }
    }
}

/// The pages of an address space of any size.
#[derive(Default)]
pub(super) struct Pages {
    index: BTreeMap<u64, u32>,
    chunks: Vec<Box<Chunk>>,
    last: Option<(u64, u32)>,
    pub(super) live: u64,
    pub(super) live_peak: u64,
}

/// What a write found.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Found {
    /// Every page was live.
    pub(super) all_live: bool,
}

impl Pages {
    fn chunk(&mut self, number: u64) -> &mut Chunk {
        let at = match self.last {
            Some((last, at)) if last == number => at,
            _ => {
                let chunks = &mut self.chunks;
                let at = *self.index.entry(number).or_insert_with(|| {
                    chunks.push(Box::new(Chunk::new()));
                    (chunks.len() - 1) as u32
                });
                self.last = Some((number, at));
                at
            }
        };
        &mut self.chunks[at as usize]
    }

    /// Whether any of pages `from..to` was ever written.
    pub(super) fn any_written(&self, from: u64, to: u64) -> bool {
        chunks(from, to).any(|(number, first, last)| {
            self.index.get(&number).is_some_and(|&at| {
                let chunk = &self.chunks[at as usize];
                words(first, last).any(|(word, mask)| chunk.written[word] & mask != 0)
            })
        })
    }

    /// Pages `from..to` were read.
    pub(super) fn read(&mut self, from: u64, to: u64) {
        for (number, first, last) in chunks(from, to) {
            let chunk = self.chunk(number);
            for (word, mask) in words(first, last) {
                chunk.read[word] |= mask;
            }
        }
    }

    /// Pages `from..to` are written, behind `before` bytes of writes; `after` when done. `again` is told the distance in
    /// bytes of every page that was written before.
    pub(super) fn write(&mut self, from: u64, to: u64, before: u64, after: u64, mut again: impl FnMut(u64)) -> Found {
        let mut found = Found { all_live: true };
        let mut grown = 0;
        let ends = (after / PAGE_BYTES) as u32;
        let begins = (before / PAGE_BYTES) as u32;
        for (number, first, last) in chunks(from, to) {
            let chunk = self.chunk(number);
            for page in first..last {
                let (word, bit) = ((page / 64) as usize, 1_u64 << (page % 64));
                let positions =
                    chunk.positions[(page / BLOCK) as usize].get_or_insert_with(|| Box::new([0; BLOCK as usize]));
                let position = &mut positions[(page % BLOCK) as usize];
                if chunk.written[word] & bit != 0 {
                    // Positions count modulo 16 TiB.
                    again(u64::from(begins.wrapping_sub(*position)) * PAGE_BYTES);
                }
                *position = ends;
                chunk.written[word] |= bit;
            }
            for (word, mask) in words(first, last) {
                let fresh = mask & !chunk.live[word];
                if fresh != 0 {
                    found.all_live = false;
                    chunk.live[word] |= mask;
                    chunk.live_pages += u64::from(fresh.count_ones());
                    grown += u64::from(fresh.count_ones());
                }
            }
        }
        self.live += grown;
        self.live_peak = self.live_peak.max(self.live);
        found
    }

    /// Pages `from..to` are trimmed; how many of them were live.
    pub(super) fn trim(&mut self, from: u64, to: u64) -> u64 {
        if from >= to {
            return 0;
        }
        let mut trimmed = 0;
        for (&number, &at) in self.index.range(from / CHUNK..=(to - 1) / CHUNK) {
            let chunk = &mut self.chunks[at as usize];
            if chunk.live_pages == 0 {
                continue;
            }
            let first = from.saturating_sub(number * CHUNK);
            let last = (to - number * CHUNK).min(CHUNK);
            let before = chunk.live_pages;
            for (word, mask) in words(first, last) {
                let gone = chunk.live[word] & mask;
                chunk.live[word] ^= gone;
                chunk.live_pages -= u64::from(gone.count_ones());
            }
            trimmed += before - chunk.live_pages;
        }
        self.live -= trimmed;
        trimmed
    }

    /// Distinct pages read or written, written, and read.
    pub(super) fn footprint(&self) -> (u64, u64, u64) {
        let (mut all, mut written, mut read) = (0, 0, 0);
        for chunk in &self.chunks {
            for word in 0..WORDS {
                all += u64::from((chunk.read[word] | chunk.written[word]).count_ones());
                written += u64::from(chunk.written[word].count_ones());
                read += u64::from(chunk.read[word].count_ones());
            }
        }
        (all, written, read)
    }
}

/// A range of pages cut at chunks: chunk, first page in it, page behind the last.
fn chunks(from: u64, to: u64) -> impl Iterator<Item = (u64, u64, u64)> {
    let behind = if from < to { (to - 1) / CHUNK + 1 } else { from / CHUNK };
    (from / CHUNK..behind).map(move |number| {
        let base = number * CHUNK;
        (number, from.saturating_sub(base), (to - base).min(CHUNK))
    })
}

/// A range of pages of a chunk cut at words: word and mask.
fn words(first: u64, last: u64) -> impl Iterator<Item = (usize, u64)> {
    let behind = if first < last { (last - 1) / 64 + 1 } else { first / 64 };
    (first / 64..behind).map(move |word| {
        let low = first.saturating_sub(word * 64);
        let high = (last - word * 64).min(64);
        let mask = (u64::MAX >> (64 - (high - low))) << low;
        (word as usize, mask)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Read(u64, u64),
        Write(u64, u64),
        Trim(u64, u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        // Around chunk edges, and far away.
        let start = prop_oneof![0..200_u64, CHUNK - 100..CHUNK + 100, 5 * CHUNK - 40..5 * CHUNK + 40];
        let length = prop_oneof![1..10_u64, 60..70_u64, Just(CHUNK), Just(3 * CHUNK)];
        (start, length, 0..3).prop_map(|(start, length, kind)| match kind {
            0 => Step::Read(start, start + length.min(200)),
            1 => Step::Write(start, start + length.min(200)),
            _ => Step::Trim(start, start + length),
        })
    }

    proptest! {
        #[test]
        fn bitmaps_agree_with_plain_sets(steps in prop::collection::vec(step(), 1..60)) {
            let mut pages = Pages::default();
            let (mut live, mut written, mut read) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
            let mut last: BTreeMap<u64, u64> = BTreeMap::new();
            let mut total = 0;
            for step in steps {
                match step {
                    Step::Read(from, to) => {
                        pages.read(from, to);
                        read.extend(from..to);
                    }
                    Step::Write(from, to) => {
                        let after = total + (to - from) * PAGE_BYTES;
                        let mut distances = Vec::new();
                        let found = pages.write(from, to, total, after, |distance| distances.push(distance));
                        prop_assert_eq!(found.all_live, (from..to).all(|page| live.contains(&page)));
                        let expected: Vec<u64> =
                            (from..to).filter_map(|page| last.get(&page).map(|end| total - end)).collect();
                        prop_assert_eq!(distances, expected);
                        for page in from..to {
                            live.insert(page);
                            written.insert(page);
                            last.insert(page, after);
                        }
                        total = after;
                    }
                    Step::Trim(from, to) => {
                        let gone: Vec<u64> = live.range(from..to).copied().collect();
                        prop_assert_eq!(pages.trim(from, to), gone.len() as u64);
                        for page in gone {
                            live.remove(&page);
                        }
                    }
                }
                prop_assert_eq!(pages.live, live.len() as u64);
            }
            let all = read.union(&written).count() as u64;
            prop_assert_eq!(pages.footprint(), (all, written.len() as u64, read.len() as u64));
        }
    }
}

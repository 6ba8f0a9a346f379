//! What sectors hold: a sparse map, whose memory follows what is written and never what is addressed.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::ops::Range;

use ssdlab_base::{Saved, damaged, load};

/// Sectors of a chunk, one for each bit of its mask.
const CHUNK: u64 = 64;

/// What a chunk takes in the map, whose nodes are at least half full.
const NODE_BYTES: u64 = 2 * size_of::<(u64, Chunk)>() as u64;

#[derive(Default)]
struct Chunk {
    /// Which of its sectors are there.
    mask: u64,
    /// What all of its sectors hold; zeroes for those that are not there.
    data: Box<[u8]>,
}

ssdlab_base::saved!(Chunk: mask, data);

/// Sectors and what they hold.
pub(crate) struct Contents {
    /// Bytes kept of a sector.
    per_sector: usize,
    chunks: BTreeMap<u64, Chunk>,
    /// Sectors that are there.
    sectors: u64,
}

/// The bits of the sectors `range` that lie in the chunk `chunk`, and the range.
fn mask_of(chunk: u64, range: &Range<u64>) -> (u64, Range<u64>) {
    let from = range.start.max(chunk * CHUNK);
    let to = range.end.min((chunk + 1) * CHUNK);
    let ones = if to - from == CHUNK { u64::MAX } else { (1 << (to - from)) - 1 };
    (ones << (from % CHUNK), from..to)
}

fn chunks_of(range: &Range<u64>) -> Range<u64> {
    range.start / CHUNK..range.end.div_ceil(CHUNK)
}

impl Contents {
    pub(crate) fn new(per_sector: usize) -> Contents {
        Contents { per_sector, chunks: BTreeMap::new(), sectors: 0 }
    }

    /// Sectors that are there.
    pub(crate) const fn sectors(&self) -> u64 {
        self.sectors
    }

    /// The last sector that is there.
    pub(crate) fn last(&self) -> Option<u64> {
        let (chunk, found) = self.chunks.last_key_value()?;
        Some(chunk * CHUNK + u64::from(found.mask.ilog2()))
    }

    /// Bytes of memory at most that contents take, with `per_sector` bytes kept of a sector, where writes of 4 KB or more have covered
    /// `written` of `sectors` sectors.
    pub(crate) fn most_bytes(per_sector: u64, sectors: u64, written: u64) -> u64 {
        const LEAST: u64 = 8;
        let chunks = sectors.min(written).div_ceil(LEAST).min(sectors.div_ceil(CHUNK));
        chunks.saturating_mul(CHUNK * per_sector + NODE_BYTES)
    }

    /// Bytes of memory that the contents take.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.chunks.len() as u64 * (CHUNK * self.per_sector as u64 + size_of::<(u64, Chunk)>() as u64)
    }

    /// The bytes of the sectors `part` in the chunk, and in data that begins with the sector `first`.
    fn bytes_of(&self, part: &Range<u64>, first: u64) -> (Range<usize>, Range<usize>) {
        let bytes = |sector: u64| sector as usize * self.per_sector;
        let within = part.start % CHUNK;
        let length = part.end - part.start;
        (bytes(within)..bytes(within + length), bytes(part.start - first)..bytes(part.end - first))
    }

    /// Writes sectors; `data` has the bytes of all of them, one behind the other.
    pub(crate) fn write(&mut self, range: &Range<u64>, data: &[u8]) {
        assert_eq!(
            data.len(),
            (range.end - range.start) as usize * self.per_sector,
            "a write brings what {range:?} holds"
        );
        if range.is_empty() {
            return;
        }
        for chunk in chunks_of(range) {
            let (mask, part) = mask_of(chunk, range);
            let (to, from) = self.bytes_of(&part, range.start);
            let bytes = CHUNK as usize * self.per_sector;
            let chunk = self.chunks.entry(chunk).or_insert_with(|| Chunk { mask: 0, data: vec![0; bytes].into() });
            self.sectors += u64::from((mask & !chunk.mask).count_ones());
            chunk.mask |= mask;
            chunk.data[to].copy_from_slice(&data[from]);
        }
    }

    /// Copies the sectors of `range` that are there into `data`, which has the bytes of all of them.
    pub(crate) fn read(&self, range: &Range<u64>, data: &mut [u8]) {
        if self.per_sector == 0 {
            return;
        }
        for (chunk, found) in self.chunks.range(chunks_of(range)) {
            let (mask, part) = mask_of(*chunk, range);
            if found.mask & mask == mask {
                let (from, to) = self.bytes_of(&part, range.start);
                data[to].copy_from_slice(&found.data[from]);
                continue;
            }
            for sector in part.filter(|sector| found.mask >> (sector % CHUNK) & 1 == 1) {
                let (from, to) = self.bytes_of(&(sector..sector + 1), range.start);
                data[to].copy_from_slice(&found.data[from]);
            }
        }
    }

    /// Takes sectors out, with what they hold. All of them are there.
    pub(crate) fn take(&mut self, range: &Range<u64>) -> Vec<u8> {
        let mut data = vec![0; (range.end - range.start) as usize * self.per_sector];
        self.read(range, &mut data);
        self.remove(range);
        data
    }

    /// Takes sectors out. All of them are there.
    pub(crate) fn remove(&mut self, range: &Range<u64>) {
        for number in chunks_of(range) {
            let (mask, part) = mask_of(number, range);
            let Some(chunk) = self.chunks.get_mut(&number) else {
                panic!("the sectors {part:?} are taken and not there");
            };
            assert_eq!(chunk.mask & mask, mask, "the sectors {part:?} are taken and some are not there");
            self.sectors -= part.end - part.start;
            chunk.mask &= !mask;
            if chunk.mask == 0 {
                self.chunks.remove(&number);
            }
        }
    }

    /// Whether `sector` is there, and the first sector up to `end` from which on that is different.
    pub(crate) fn run(&self, sector: u64, end: u64) -> (bool, u64) {
        let is_there = |sector: u64| {
            self.chunks.get(&(sector / CHUNK)).is_some_and(|chunk| chunk.mask >> (sector % CHUNK) & 1 == 1)
        };
        if sector >= end {
            return (false, end);
        }
        let there = is_there(sector);
        let mut next = sector;
        while next < end {
            let number = next / CHUNK;
            let Some((found, chunk)) = self.chunks.range(number..).next() else {
                return (there, if there { next } else { end });
            };
            if *found != number {
                if there {
                    return (true, next);
                }
                next = found * CHUNK;
                continue;
            }
            let differs = if there { !chunk.mask } else { chunk.mask } >> (next % CHUNK);
            if differs != 0 {
                return (there, end.min(next + u64::from(differs.trailing_zeros())));
            }
            next = (number + 1) * CHUNK;
        }
        (there, end)
    }

    /// Whether every sector of a range is there.
    pub(crate) fn has_all(&self, range: &Range<u64>) -> bool {
        range.is_empty() || self.run(range.start, range.end) == (true, range.end)
    }

    /// Whether the counts agree with the chunks.
    pub(crate) fn is_consistent(&self) -> bool {
        let there: u64 = self.chunks.values().map(|chunk| u64::from(chunk.mask.count_ones())).sum();
        there == self.sectors && self.chunks.values().all(|chunk| chunk.mask != 0)
    }
}

impl Saved for Contents {
    fn save_to(&self, to: &mut dyn Write) -> io::Result<()> {
        self.chunks.save_to(to)
    }

    fn load_from(&mut self, from: &mut dyn Read) -> io::Result<()> {
        self.chunks = load(from)?;
        let bytes = CHUNK as usize * self.per_sector;
        let fits = |(number, chunk): (&u64, &Chunk)| {
            chunk.mask != 0 && chunk.data.len() == bytes && *number < u64::MAX / CHUNK / 2
        };
        if !self.chunks.iter().all(fits) {
            return Err(damaged("a chunk of sectors in a saved state is empty, or does not hold what this disk keeps"));
        }
        self.sectors = self.chunks.values().map(|chunk| u64::from(chunk.mask.count_ones())).sum();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Write(Range<u64>, u8),
        Remove(Range<u64>),
    }

    fn step() -> impl Strategy<Value = Step> {
        let range = (0_u64..400, 1_u64..200).prop_map(|(from, length)| from..from + length);
        (range, any::<u8>(), any::<bool>())
            .prop_map(|(range, byte, write)| if write { Step::Write(range, byte) } else { Step::Remove(range) })
    }

    proptest! {
        #[test]
        fn it_is_a_map_of_sectors(steps in proptest::collection::vec(step(), 1..30), per_sector in 0_usize..3) {
            let mut contents = Contents::new(per_sector);
            let mut model: BTreeMap<u64, u8> = BTreeMap::new();
            for step in steps {
                match step {
                    Step::Write(range, byte) => {
                        contents.write(&range, &vec![byte; (range.end - range.start) as usize * per_sector]);
                        model.extend(range.map(|sector| (sector, byte)));
                    }
                    // Only what is there is taken out.
                    Step::Remove(range) => for sector in range {
                        if model.remove(&sector).is_some() {
                            contents.remove(&(sector..sector + 1));
                        }
                    },
                }
                prop_assert!(contents.is_consistent());
                prop_assert_eq!(contents.sectors(), model.len() as u64);
                prop_assert_eq!(contents.last(), model.last_key_value().map(|(sector, _)| *sector));
                let mut data = vec![7; 700 * per_sector];
                contents.read(&(0..700), &mut data);
                for sector in 0..700 {
                    let expected = model.get(&sector).copied().unwrap_or(7);
                    let found = &data[sector as usize * per_sector..(sector as usize + 1) * per_sector];
                    prop_assert!(found.iter().all(|byte| *byte == expected));
                }
                let (mut sector, mut runs) = (0, Vec::new());
                while sector < 700 {
                    let (there, to) = contents.run(sector, 700);
                    prop_assert!(to > sector);
                    runs.extend((sector..to).map(|_| there));
                    sector = to;
                }
                prop_assert!((0..700).zip(&runs).all(|(sector, there)| model.contains_key(&sector) == *there));
            }
        }
    }

    #[test]
    fn memory_follows_what_is_written() {
        let mut contents = Contents::new(512);
        contents.write(&(0..1), &[1; 512]);
        let one = contents.memory_bytes();
        contents.write(&(3_000_000_000..3_000_000_001), &[1; 512]);
        assert_eq!(contents.memory_bytes(), 2 * one);
        assert_eq!(contents.run(1, u64::MAX / 2), (false, 3_000_000_000));
    }

    #[test]
    fn an_estimate_covers_writes_in_any_order() {
        for (step, most) in [(8, 1 << 20), (64, 1 << 20), (640, 1 << 30)] {
            let mut contents = Contents::new(8);
            for write in 0..500 {
                contents.write(&(write * step..write * step + 8), &[1; 64]);
            }
            let estimate = Contents::most_bytes(8, most, 4000);
            let taken = contents.memory_bytes();
            assert!(
                (taken..=20 * taken).contains(&estimate),
                "{estimate} bytes, and {taken} for writes {step} sectors apart"
            );
        }
        assert_eq!(Contents::most_bytes(8, 64, u64::MAX), Contents::most_bytes(8, 64, 64));
        assert_eq!(Contents::most_bytes(8, 1 << 40, 0), 0);
    }
}

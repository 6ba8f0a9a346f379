//! Trims on flash: a record lists every trimmed segment that has blocks to be erased, with the number that the next program had at
//! its trim. What was programmed before is dead.
//!
//! A record is written when a flush covers a trim, and when blocks are needed that only unrecorded trims hold. It is one page, and
//! says all: recovery takes the newest. So it lists a limited number of segments, and a trim of one more waits for erases.

use std::collections::BTreeMap;

use ssdlab_flash::{BlockId, Cause, OpKind, Ppn};

use super::{Aftl, Dead};
use crate::block_pool::BlockState;
use crate::ftl::NoSpace;
use crate::media::{Frontier, Media, Place, Programming};
use crate::seeded::{Bug, seeded};
use crate::waiter::Waiter;

/// Words of a record before its segments: its number.
const HEAD: usize = 1;
/// Words for a segment: its number, and what was programmed last before its trim.
const ENTRY: usize = 2;

/// Segments that a record lists.
pub(super) const fn most_listed(page_bytes: u32) -> usize {
    (page_bytes as usize / 8 - HEAD) / ENTRY
}

/// Blocks of a segment that are dead and not erased.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DeadBlocks {
    /// The number that the next program had at the last trim; 0 if none came since blocks of it were replaced.
    pub(super) trim: u64,
    pub(super) blocks: u32,
}

/// Trimmed segments, and the records of them.
#[derive(Clone, Debug)]
pub(super) struct Trims {
    /// By segment.
    pub(super) held: BTreeMap<u32, DeadBlocks>,
    /// Segments whose last trim is in no record.
    pub(super) unrecorded: Vec<u32>,
    /// Blocks that are erased, or being erased: looked at until they are.
    pub(super) erasing: Vec<Dead>,
    /// The block that records go to; [`BlockId::NONE`] before the first.
    pub(super) block: BlockId,
    /// Pages of it that were given out.
    pub(super) pages: u32,
    /// The newest record, and the number that the next program had when it was made.
    pub(super) newest: Option<(Place, u64)>,
    /// Trims up to here are on flash.
    pub(super) covers: u64,
    /// Segments that a record lists.
    pub(super) most: usize,
    /// Records written.
    pub(super) written: u64,
}

impl Trims {
    pub(super) const fn new(page_bytes: u32) -> Trims {
        Trims {
            held: BTreeMap::new(),
            unrecorded: Vec::new(),
            erasing: Vec::new(),
            block: BlockId::NONE,
            pages: 0,
            newest: None,
            covers: 0,
            most: most_listed(page_bytes),
            written: 0,
        }
    }

    /// Whether so many segments are trimmed that their blocks are erased before others are.
    pub(super) fn are_many(&self) -> bool {
        self.held.len() > self.most / 2
    }

    /// Looks whether the newest record is on flash, and which blocks were erased.
    pub(super) fn settle(&mut self, media: &Media) {
        if let Some((place, covers)) = self.newest
            && covers > self.covers
            && media.flash.is_written(place.block, place.page)
            && media.flash.blocks.readable(media.ppn_at(place))
        {
            self.covers = covers;
        }
        let is_erased = |dead: &mut Dead| {
            let state = media.flash.blocks.get(dead.block);
            state.programmed == 0 || state.bad
        };
        let mut erasing = std::mem::take(&mut self.erasing);
        erasing.extract_if(.., is_erased).for_each(|dead| self.release(&dead));
        self.erasing = erasing;
    }

    /// A dead block is erased.
    pub(super) fn release(&mut self, dead: &Dead) {
        let Some(held) = self.held.get_mut(&dead.segment) else { return };
        assert!(held.blocks > 0, "block {} of segment {} is released twice", dead.block, dead.segment);
        held.blocks -= 1;
        if held.blocks == 0 {
            self.held.remove(&dead.segment);
        }
    }

    /// Whether a record is on its way to flash.
    pub(super) fn is_writing(&self) -> bool {
        self.newest.is_some_and(|(_, covers)| covers > self.covers)
    }
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// Rises from record to record.
    pub(super) number: u64,
    /// Segments, and the number that the next program had at the trim.
    pub(super) trimmed: Vec<(u32, u64)>,
}

impl Record {
    fn encode(&self) -> Box<[u64]> {
        let entries = self.trimmed.iter().flat_map(|(segment, trim)| [u64::from(*segment), *trim]);
        std::iter::once(self.number).chain(entries).collect()
    }

    /// What a page holds; `None` where it is no record.
    pub(super) fn decode(words: &[u64], segments: u32) -> Option<Record> {
        let (number, entries) = words.split_first()?;
        let pairs = entries.chunks_exact(ENTRY);
        let known = pairs.clone().all(|pair| pair[0] < u64::from(segments));
        let trimmed = pairs.clone().map(|pair| (pair[0] as u32, pair[1])).collect();
        (known && pairs.remainder().is_empty()).then_some(Record { number: *number, trimmed })
    }
}

impl Aftl {
    /// Starts the program of a record, if a trim is in none.
    pub(super) fn record_trims(&mut self, media: &mut Media) -> Result<u32, NoSpace> {
        if self.trims.unrecorded.is_empty() {
            return Ok(0);
        }
        self.write_record(media)?;
        Ok(1)
    }

    /// Starts the program of a record. `Err` leaves everything as it was.
    pub(super) fn write_record(&mut self, media: &mut Media) -> Result<(), NoSpace> {
        self.trims.settle(media);
        let is_new = |segment: &u32| self.trims.unrecorded.contains(segment);
        let listed = self
            .trims
            .held
            .iter()
            .filter(|(segment, held)| held.trim > 0 && (is_new(segment) || !seeded(Bug::RecordForgetsOlderTrims)));
        let trimmed: Vec<(u32, u64)> = listed.map(|(segment, held)| (*segment, held.trim)).collect();
        assert!(trimmed.len() <= self.trims.most, "{} segments in a record of {}", trimmed.len(), self.trims.most);
        self.open_for_record(media)?;
        // The record before is needed until this one is on flash.
        let before = self.trims.newest.map(|(place, _)| place.block);
        let pins: Vec<BlockId> = before.into_iter().filter(|block| *block != self.trims.block).collect();
        let number = media.sequence();
        assert!(number > self.trims.covers, "a record has number {number}, and one before {}", self.trims.covers);
        assert!(self.trims.pages < self.layout.pages_per_block, "block {} has no page for a record", self.trims.block);
        let place = Place { block: self.trims.block, page: self.trims.pages };
        let unit = media.unit_at(place);
        media.put_record(unit, Record { number, trimmed }.encode());
        let lpns = [self.layout.record()];
        let (kind, cause, frontier, owner) = (OpKind::Program, Cause::Metadata, Frontier::Host(0), Waiter::None);
        self.trims.newest = Some((place, number));
        self.trims.pages += 1;
        self.trims.written += 1;
        self.trims.unrecorded.clear();
        let programming =
            Programming { kind, cause, frontier, owner, pins: &pins, after: &[], taken: &[], source: Ppn::NONE };
        media.program(place, &lpns, programming);
        if self.trims.pages == self.layout.pages_per_block {
            media.end_block(self.trims.block, self.trims.pages);
        }
        Ok(())
    }

    /// The block that records go to has a page for one.
    fn open_for_record(&mut self, media: &mut Media) -> Result<(), NoSpace> {
        let old = self.trims.block;
        let has_page = old != BlockId::NONE
            && self.trims.pages < self.layout.pages_per_block
            && media.pool.state(old.0) == BlockState::Open
            && !media.flash.blocks.get(old).suspect
            && (self.trims.pages == 0 || media.flash.oob.sequence_fits(old, media.sequence() + 1));
        if has_page {
            return Ok(());
        }
        let lane = self.most_free_lane(media);
        let block = self.open_in(media, lane, 0)?;
        if old != BlockId::NONE {
            if media.pool.state(old.0) == BlockState::Open {
                media.end_block(old, self.trims.pages);
            }
            self.add_dead(media, Dead { block: old, segment: ssdlab_flash::NONE, trim: 0 });
        }
        (self.trims.block, self.trims.pages) = (block, 0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_back() {
        let record = Record { number: 77, trimmed: vec![(4, 1 << 40), (2, 9)] };
        assert_eq!(Record::decode(&record.encode(), 5), Some(record.clone()));
        assert_eq!(Record::decode(&record.encode(), 4), None, "segment 4 of 4");
        assert_eq!(Record::decode(&record.encode()[..2], 5), None, "half an entry");
        assert_eq!(Record::decode(&[], 5), None);
        assert_eq!(most_listed(4096), 255);
    }
}

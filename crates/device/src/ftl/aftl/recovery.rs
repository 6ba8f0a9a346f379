//! Recovery: a page of each block says which segment, lane and generation it is of; blocks that are not full are searched for
//! where they end. The newest generation of a segment counts, unless a record of trims covers it.
//!
//! Pages of a segment are programmed side by side, so a power cut may leave holes. What is on flash stays readable, and the
//! segment takes no more before its trim.

use std::collections::{BTreeMap, BTreeSet};

use ssdlab_flash::{BlockId, NONE};

use super::trims::{Record, Trims};
use super::{Aftl, Closed, Dead};
use crate::media::{Media, Place};
use crate::recovery_reads::RecoveryReads;
use crate::seeded::{Bug, seeded};

/// Numbers that programs in flight may have been given beyond the newest that is found.
const IN_FLIGHT: u64 = 1 << 20;

/// A block with a page that can be read.
#[derive(Clone, Debug)]
struct FoundBlock {
    block: BlockId,
    /// Pages that can be read, by their offset.
    pages: BTreeSet<u32>,
    /// Pages that were programmed, whether they can be read or not.
    programmed: u32,
    /// The number of the newest page.
    newest: u64,
    generation: u32,
    /// A program failed there.
    suspect: bool,
}

impl FoundBlock {
    /// Whether pages can go on being programmed there.
    fn is_sound(&self) -> bool {
        !self.suspect && self.pages.len() as u32 == self.programmed
    }
}

/// Blocks of a segment, by lane.
type OfSegment = BTreeMap<u32, Vec<FoundBlock>>;

impl Aftl {
    pub(super) fn rebuild(&mut self, media: &mut Media, reads: &mut RecoveryReads) {
        self.map.fill(BlockId::NONE);
        self.written.fill(0);
        self.generations.fill(0);
        self.closed.clear();
        self.unused.iter_mut().for_each(Vec::clear);
        self.dead.iter_mut().for_each(Vec::clear);
        self.kept_open.clear();
        self.exchanged.clear();
        self.urgent = None;
        self.trims = Trims::new(media.unit_bytes);
        let mut newest = 0;
        let mut segments: BTreeMap<u32, OfSegment> = BTreeMap::new();
        let mut records = Vec::new();
        for block in (0..media.flash.geometry().blocks()).map(BlockId) {
            let state = *media.flash.blocks.get(block);
            if state.torn || state.programmed == 0 || state.bad {
                continue;
            }
            let pages = readable(media, reads, block);
            let Some(last) = pages.last().copied() else {
                self.add_dead(media, Dead { block, segment: NONE, trim: 0 });
                continue;
            };
            let place = Place { block, page: last };
            let number = media.flash.oob.sequence(block, last);
            newest = newest.max(number);
            let Some((segment, page, generation)) = self.layout.untagged(media.flash.oob.lpn(media.unit_at(place)))
            else {
                records.push((number, block, pages));
                continue;
            };
            assert!(segment < self.layout.segments, "block {block} is of segment {segment}, behind the last");
            let (lane, offset) = self.layout.place(page);
            assert_eq!(offset, last, "page {last} of block {block} says that it is page {offset}");
            let (programmed, suspect) = (state.programmed, state.suspect);
            let found = FoundBlock { block, pages, programmed, newest: number, generation, suspect };
            segments.entry(segment).or_default().entry(lane).or_default().push(found);
        }
        let trimmed = self.find_record(media, reads, records);
        for (segment, blocks) in segments {
            let trim = trimmed.get(&segment).copied().unwrap_or(0);
            self.settle_segment(media, segment, blocks, trim);
        }
        assert!(newest < 1 << 47, "a page has number {newest}");
        media.set_sequence(newest + IN_FLIGHT);
        // What the record on flash does not say of these, the next one does.
        self.trims.unrecorded.retain(|segment| self.trims.held.contains_key(segment));
    }

    /// The newest record that can be read: trims by segment. Its block goes on being used if it can be.
    fn find_record(
        &mut self,
        media: &mut Media,
        reads: &mut RecoveryReads,
        mut blocks: Vec<(u64, BlockId, BTreeSet<u32>)>,
    ) -> BTreeMap<u32, u64> {
        blocks.sort_unstable_by_key(|(number, ..)| *number);
        let Some((number, block, pages)) = blocks.pop() else { return BTreeMap::new() };
        for (_, block, _) in blocks {
            self.add_dead(media, Dead { block, segment: NONE, trim: 0 });
        }
        let programmed = media.flash.blocks.get(block).programmed;
        let last = pages.last().copied().expect("a block with a page that can be read");
        let place = Place { block, page: last };
        reads.page(place);
        let words = media.flash.oob.record(media.unit_at(place)).expect("a record has words");
        let record = Record::decode(words, self.layout.segments).expect("a record that can be read is whole");
        self.trims.block = block;
        self.trims.pages = programmed;
        self.trims.newest = Some((place, record.number));
        self.trims.covers = record.number;
        assert!(record.number <= number, "a record has number {}, and its page {number}", record.number);
        let sound = pages.len() as u32 == programmed && !media.flash.blocks.get(block).suspect;
        if sound && programmed < self.layout.pages_per_block {
            self.kept_open.insert(block);
        } else {
            self.trims.pages = self.layout.pages_per_block;
        }
        record.trimmed.into_iter().collect()
    }

    /// Which blocks of a segment count.
    fn settle_segment(&mut self, media: &mut Media, segment: u32, blocks: OfSegment, trim: u64) {
        let is_dead = |found: &FoundBlock| found.newest < trim && !seeded(Bug::RecordIgnored);
        let alive = || blocks.values().flatten().filter(|found| !is_dead(found));
        let current = alive().max_by_key(|found| found.newest).map(|found| found.generation);
        let newest_dead = blocks.values().flatten().max_by_key(|found| found.newest).map(|found| found.generation);
        self.generations[segment as usize] = current.or(newest_dead).unwrap_or(0) as u8;
        let counts = |found: &FoundBlock| {
            !is_dead(found) && (Some(found.generation) == current || seeded(Bug::GenerationsMixed))
        };
        let mut closed = Closed::default();
        // By lane: the pages that are there.
        let mut there: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        let mut sound = true;
        for (lane, found) in blocks {
            let (counted, dead): (Vec<FoundBlock>, Vec<FoundBlock>) = found.into_iter().partition(counts);
            for found in dead {
                // Blocks of a trim that is in no record are dead because a later generation is there.
                let trim = if is_dead(&found) { trim } else { found.newest + 1 };
                self.add_dead(media, Dead { block: found.block, segment, trim });
                if trim > self.trims.covers && !self.trims.unrecorded.contains(&segment) {
                    self.trims.unrecorded.push(segment);
                }
            }
            if counted.is_empty() {
                continue;
            }
            let kept = self.settle_lane(media, segment, lane, counted, &mut closed);
            sound &= kept.len() == 1 && kept.iter().all(FoundBlock::is_sound);
            there.insert(lane, kept.into_iter().flat_map(|found| found.pages).collect());
        }
        let pages: BTreeSet<u32> = there
            .iter()
            .flat_map(|(lane, offsets)| offsets.iter().map(|offset| self.layout.page_at(*lane, *offset)))
            .collect();
        let Some(last) = pages.last().copied() else { return };
        let written = last + 1;
        closed.holes = (0..written).filter(|page| !pages.contains(page)).collect();
        sound &= closed.holes.is_empty();
        assert!(written <= self.layout.segment_pages, "segment {segment} has {written} pages");
        self.written[segment as usize] = written;
        if !sound && !seeded(Bug::HolesStayOpen) {
            self.closed.insert(segment, closed);
        }
    }

    /// The block of a lane that has all pages of the lane that are on flash; where none has, all that have some.
    fn settle_lane(
        &mut self,
        media: &mut Media,
        segment: u32,
        lane: u32,
        mut found: Vec<FoundBlock>,
        closed: &mut Closed,
    ) -> Vec<FoundBlock> {
        let all: BTreeSet<u32> = found.iter().flat_map(|found| found.pages.iter().copied()).collect();
        // A replacement that was not finished says nothing that the block before it does not.
        found.sort_by_key(|found| (found.pages != all, found.suspect, std::cmp::Reverse(found.newest)));
        if seeded(Bug::UnfinishedReplacementTaken) {
            found.sort_by_key(|found| std::cmp::Reverse(found.newest));
        }
        let whole = found[0].pages == all || seeded(Bug::UnfinishedReplacementTaken);
        let dropped = if whole { found.split_off(1) } else { Vec::new() };
        for found in dropped {
            self.add_dead(media, Dead { block: found.block, segment, trim: 0 });
        }
        let home = &found[0];
        assert_eq!(self.home(segment, lane), BlockId::NONE, "lane {lane} of segment {segment} is found twice");
        self.set_home(segment, lane, home.block);
        let mut had: BTreeSet<u32> = BTreeSet::new();
        for (index, found) in found.iter().enumerate() {
            for offset in found.pages.iter().filter(|offset| !had.contains(offset)) {
                media.pool.add_valid(found.block);
                if index > 0 {
                    let place = Place { block: found.block, page: *offset };
                    closed.displaced.insert(self.layout.page_at(lane, *offset), media.ppn_at(place));
                }
            }
            had.extend(&found.pages);
            if index > 0 {
                closed.others.push(found.block);
            }
            // A suspect block is emptied at the trim: its pages cannot be programmed in order elsewhere.
            if found.suspect || found.programmed < self.layout.pages_per_block {
                self.kept_open.insert(found.block);
            }
        }
        found
    }
}

/// The pages of a block that can be read, found as a controller finds them: by the last page if it is there, else by a search for
/// the first that is blank. In a block where a program failed any page may be missing, and all are looked at.
fn readable(media: &Media, reads: &mut RecoveryReads, block: BlockId) -> BTreeSet<u32> {
    let state = media.flash.blocks.get(block);
    let can_be_read = |page: &u32| media.flash.blocks.readable(media.ppn_at(Place { block, page: *page }));
    let pages_per_block = media.pages_per_block();
    if state.suspect {
        for page in 0..state.programmed {
            reads.oob(Place { block, page });
        }
        return (0..state.programmed).filter(can_be_read).collect();
    }
    reads.oob(Place { block, page: pages_per_block - 1 });
    if state.programmed < pages_per_block {
        // The last page is blank; pages `..low` are not, pages `high..` are.
        let (mut low, mut high) = (0, pages_per_block - 1);
        while low < high {
            let middle = low + (high - low) / 2;
            reads.oob(Place { block, page: middle });
            if middle < state.programmed { low = middle + 1 } else { high = middle }
        }
        assert_eq!(low, state.programmed, "block {block} was searched for its end");
    }
    let last = state.programmed - 1;
    if can_be_read(&last) {
        return (0..=last).collect();
    }
    // It was torn. The page before it says what the block is.
    if last > 0 {
        reads.oob(Place { block, page: last - 1 });
    }
    let pages: BTreeSet<u32> = (0..last).filter(can_be_read).collect();
    assert_eq!(pages.len() as u32, last, "block {block} has a page that cannot be read, and no program failed there");
    pages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_with_a_torn_page_takes_no_more() {
        let found = FoundBlock {
            block: BlockId(3),
            pages: (0..4).collect(),
            programmed: 4,
            newest: 17,
            generation: 0,
            suspect: false,
        };
        assert!(found.is_sound());
        assert!(!FoundBlock { programmed: 5, ..found.clone() }.is_sound(), "page 4 is torn");
        assert!(!FoundBlock { suspect: true, ..found }.is_sound());
    }
}

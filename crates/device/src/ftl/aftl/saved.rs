//! The segments in a snapshot. What OOB areas say is in the snapshot of the chips.

use std::collections::BTreeMap;
use std::io;

use ssdlab_base::{damaged, saved};
use ssdlab_flash::{BlockId, Lpn, NONE};

use super::trims::{DeadBlocks, Trims};
use super::{Aftl, Closed, Dead};
use crate::media::{Media, Place};

saved!(Closed: holes, displaced, others);
saved!(Dead: block, segment, trim);
saved!(DeadBlocks: trim, blocks);
saved!(Trims: erasing, held, unrecorded, block, pages, newest, covers);
saved!(Aftl: map[..], written[..], generations[..], closed, unused[..], dead[..], trims);

impl Aftl {
    /// Counts what is valid, and refuses tables that name what is not there.
    pub(super) fn accept(&self, media: &mut Media) -> io::Result<()> {
        self.accept_lists(media)?;
        let blocks = media.flash.geometry().blocks();
        for segment in 0..self.layout.segments {
            if self.written[segment as usize] > self.layout.segment_pages {
                return Err(damaged("a segment has more pages than there are"));
            }
            for page in 0..self.written[segment as usize] {
                let lpn = Lpn(segment * self.layout.segment_pages + page);
                let Some(Place { block, page }) = self.place_of(lpn) else { continue };
                if block.0 >= blocks || !media.flash.is_written(block, page) {
                    return Err(damaged("a page of a segment is written, and not on flash"));
                }
                media.pool.add_valid(block);
            }
        }
        Ok(())
    }

    fn accept_lists(&self, media: &Media) -> io::Result<()> {
        let blocks = media.flash.geometry().blocks();
        let of_records = [self.trims.block, self.trims.newest.map_or(BlockId::NONE, |(place, _)| place.block)];
        let of_segments = self.closed.values().flat_map(|closed| &closed.others);
        let mut listed = self.unused.iter().flatten().chain(of_segments);
        let mut dead = self.dead.iter().flatten().chain(&self.trims.erasing);
        if listed.any(|block| block.0 >= blocks)
            || dead.any(|dead| dead.block.0 >= blocks)
            || of_records.iter().any(|block| *block != BlockId::NONE && block.0 >= blocks)
        {
            return Err(damaged("a list of blocks names one that is not there"));
        }
        let of_other_group =
            |(group, dead): (u32, &Vec<Dead>)| dead.iter().any(|dead| media.group_of(dead.block) != group);
        if (0..).zip(&self.dead).any(of_other_group) {
            return Err(damaged("a block to be erased is listed in a group that it is not of"));
        }
        let hole_behind = |(segment, closed): (&u32, &Closed)| {
            let written = self.written.get(*segment as usize);
            written.is_none_or(|written| closed.holes.last().is_some_and(|hole| hole >= written))
        };
        let mut named = self.trims.held.keys().chain(&self.trims.unrecorded);
        if self.closed.iter().any(hole_behind)
            || self.trims.pages > self.layout.pages_per_block
            || self.trims.held.len() > self.trims.most
            || named.any(|segment| *segment >= self.layout.segments)
            || self.generations.iter().any(|generation| u32::from(*generation) >= self.layout.generations)
        {
            return Err(damaged("a segment, a page of one, or a record of trims is out of its range"));
        }
        let mut of_segments = BTreeMap::<u32, u32>::new();
        let dead = self.dead.iter().flatten().chain(&self.trims.erasing).filter(|dead| dead.segment != NONE);
        dead.for_each(|dead| *of_segments.entry(dead.segment).or_default() += 1);
        if of_segments != self.trims.held.iter().map(|(segment, held)| (*segment, held.blocks)).collect() {
            return Err(damaged("blocks of trimmed segments and their number do not agree"));
        }
        Ok(())
    }
}

//! FTL design `aftl`: the application-managed FTL of Application-Managed Flash (section 4), for append-only segments.
//!
//! A segment is a block of each lane, that is of each channel and way. Its pages are dealt over the lanes, so a page's place
//! follows from its number and the block that the segment has in the lane. There is no map of pages, no collection, no write
//! buffer. A TRIM makes the blocks of a segment dead; they are erased when blocks are needed, or when the drive is idle.
//!
//! ```text
//!   segment 100       channel 0   channel 1   channel 2   channel 3
//!   pages 800..808    +-------+   +-------+   +-------+   +-------+
//!                     |  800  |   |  801  |   |  802  |   |  803  |
//!                     |  804  |   |  805  |   |  806  |   |  807  |
//!                     +-------+   +-------+   +-------+   +-------+
//! ```
//!
//! - `layout.rs`: which page is where.
//! - `blocks.rs`: the blocks of segments, and how a bad one is replaced.
//! - `trims.rs`: trims on flash.
//! - `recovery.rs`: segments from the OOB areas.
//! - `wear.rs`: static wear levelling.
//! - `saved.rs`: snapshots.

mod blocks;
mod keys;
mod layout;
mod recovery;
mod saved;
mod trims;
mod wear;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};

use ssdlab_base::Saved;
use ssdlab_base::command_sets::segments::SEGMENTS;
use ssdlab_base::command_sets::zoned::ZONED as ZONED_SET;
use ssdlab_flash::{BlockId, Cause, DieId, Lpn, Ppn};

use self::layout::Layout;
use self::trims::Trims;
use crate::block_pool::BlockState;
use crate::command_sets::{Segments, Zones};
use crate::ftl::{
    AppendOnly, Design, Drawing, Found, Ftl, Make, NoSpace, OwnCollection, Relocated, TrimTarget, UnitWrite, full_mask,
};
use crate::media::{Frontier, Media, Place};
use crate::recovery_reads::RecoveryReads;
use crate::seeded::{Bug, seeded};
use crate::waiter::Waiter;
use crate::{Check, DriveConfig, DriveError};

/// The design as a description names it.
pub(super) const DESIGN: Design = Design {
    name: "aftl",
    summary: "append-only segments across all channels and ways; no page map, no garbage collection (AMF)",
    keys: keys::KEYS,
    make: Make {
        check: keys::check,
        commands: Some(&SEGMENTS),
        segment_units: keys::segment_units,
        rules: |config| Some(Box::new(Segments::new(keys::segments(config), config.interface.read_unwritten))),
        partial_write: "is refused",
        drawing: Drawing { drive: keys::draw, handful: keys::handful, own_campaign: true, ..Drawing::ANY },
        ..Make::of(|config| Box::new(Aftl::new(config)), Aftl::simulator_bytes)
    },
};

/// The drive of `aftl` behind the interface of zones, as a description names it.
pub(super) const ZONED: Design = Design {
    name: "aftl-zoned",
    summary: "aftl with its segments as NVMe zones: states, write pointers, append, limits on open and active zones",
    keys: keys::ZONED_KEYS,
    make: Make {
        check: keys::check_zoned,
        commands: Some(&ZONED_SET),
        zones: |config| Some(keys::zones(config)),
        rules: |config| Some(Box::new(Zones::new(keys::zones(config), config.interface.read_unwritten))),
        ..DESIGN.make
    },
};

/// A block that holds nothing any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Dead {
    block: BlockId,
    /// Whose it was; [`NONE`](ssdlab_flash::NONE) of records.
    segment: u32,
    /// It may be erased when the record of this trim is on flash; 0 at any time.
    trim: u64,
}

/// A segment that a power cut left with holes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Closed {
    /// Pages before the last that hold nothing.
    holes: BTreeSet<u32>,
    /// Pages that are in another block than that of their lane.
    displaced: BTreeMap<u32, Ppn>,
    /// The blocks of displaced.
    others: Vec<BlockId>,
}

/// Segments.
pub(crate) struct Aftl {
    layout: Layout,
    /// The segment map: by segment and lane the block, [`BlockId::NONE`] where there is none.
    map: Vec<BlockId>,
    /// Of each segment the pages up to the last that was given out.
    written: Vec<u32>,
    /// Of each segment the generation that OOB areas have: it rises when a trimmed segment is written again.
    generations: Vec<u8>,
    /// Segments that take no more before their trim.
    closed: BTreeMap<u32, Closed>,
    /// By lane: open blocks without a page. Their segments were trimmed before a write reached the lane.
    unused: Vec<Vec<BlockId>>,
    /// By group: blocks to be erased.
    dead: Vec<Vec<Dead>>,
    trims: Trims,
    /// Blocks that recovery found in use, and leaves open.
    kept_open: BTreeSet<BlockId>,
    /// A segment whose dead blocks are erased before others.
    urgent: Option<u32>,
    /// Free blocks of a lane that first writes leave to replacements and records.
    reserve: u32,
    /// Free blocks of a lane below which dead ones are erased.
    free_blocks: u32,
    /// Erases by which a free block may be ahead of one with data before they are exchanged; 0 for any.
    wear_threshold: u32,
    /// By group: dead blocks erased since wear was last looked at.
    erased: Vec<u32>,
    /// Blocks that are emptied since they are little worn.
    exchanged: Vec<BlockId>,
    full_mask: u64,
    replaced_blocks: u64,
    replaced_pages: u64,
}

impl Aftl {
    pub(crate) fn new(config: &DriveConfig) -> Aftl {
        let geometry = &config.flash.geometry;
        let layout = Layout::new(geometry, keys::levels(config), config.user_units());
        let segments = layout.segments as usize;
        Aftl {
            map: vec![BlockId::NONE; segments * layout.lanes as usize],
            written: vec![0; segments],
            generations: vec![0; segments],
            closed: BTreeMap::new(),
            unused: vec![Vec::new(); layout.lanes as usize],
            dead: vec![Vec::new(); geometry.planes() as usize],
            trims: Trims::new(geometry.page_bytes),
            kept_open: BTreeSet::new(),
            urgent: None,
            reserve: config.gc_reserve(),
            free_blocks: config.gc.free_blocks,
            wear_threshold: config.gc.static_wear_threshold,
            erased: vec![0; geometry.planes() as usize],
            exchanged: Vec::new(),
            full_mask: full_mask(config.ftl.mapping_unit),
            replaced_blocks: 0,
            replaced_pages: 0,
            layout,
        }
    }

    /// Bytes that [`Aftl::new`] and its lists take.
    fn simulator_bytes(config: &DriveConfig) -> u64 {
        let geometry = &config.flash.geometry;
        let layout = Layout::new(geometry, keys::levels(config), config.user_units());
        let segments = u64::from(layout.segments);
        let lists = u64::from(geometry.blocks()) * size_of::<Dead>() as u64;
        segments * (u64::from(layout.lanes) * 4 + 5) + lists + u64::from(geometry.planes()) * 24
    }

    fn home(&self, segment: u32, lane: u32) -> BlockId {
        self.map[(segment * self.layout.lanes + lane) as usize]
    }

    fn set_home(&mut self, segment: u32, lane: u32, block: BlockId) {
        self.map[(segment * self.layout.lanes + lane) as usize] = block;
    }

    fn is_closed(&self, segment: u32) -> bool {
        self.closed.contains_key(&segment)
    }

    /// Where a page of a segment is, if it was given out and holds something.
    #[inline]
    fn place_of(&self, lpn: Lpn) -> Option<Place> {
        let (segment, page) = self.layout.split(lpn);
        if page >= self.written[segment as usize] {
            return None;
        }
        let (lane, offset) = self.layout.place(page);
        if !self.closed.is_empty()
            && let Some(closed) = self.closed.get(&segment)
        {
            if closed.holes.contains(&page) {
                return None;
            }
            if let Some(ppn) = closed.displaced.get(&page) {
                let (block, page) = (ppn.block(self.layout.pages_per_block), ppn.0 % self.layout.pages_per_block);
                return Some(Place { block, page });
            }
        }
        Some(Place { block: self.home(segment, lane), page: offset })
    }

    /// The segment and lane that have a block, if one does.
    fn home_of(&self, media: &Media, place: Place) -> Option<(u32, u32)> {
        let lpn = media.flash.oob.lpn(media.unit_at(place));
        let (segment, page, _) = self.layout.untagged(lpn)?;
        let (lane, _) = self.layout.place(page);
        (self.home(segment, lane) == place.block).then_some((segment, lane))
    }

    /// Good blocks that a lane has to have.
    fn blocks_needed(&self) -> u32 {
        self.layout.segments + self.free_blocks
    }
}

impl Ftl for Aftl {
    fn write(
        &mut self,
        media: &mut Media,
        units: &[UnitWrite<'_>],
        _: u16,
        cause: Cause,
        owner: Waiter,
    ) -> Result<(), NoSpace> {
        let [unit] = units else { unreachable!("{} units in a page of one", units.len()) };
        let (segment, page) = self.layout.split(unit.lpn);
        assert_eq!(page, self.written[segment as usize], "LPN {} is not the next of segment {segment}", unit.lpn);
        assert_eq!(unit.mask, self.full_mask, "a part of LPN {} is written", unit.lpn);
        let (lane, offset) = self.layout.place(page);
        if self.home(segment, lane) == BlockId::NONE {
            self.allocate(media, segment)?;
        }
        let mut block = self.home(segment, lane);
        let is_trusted = !media.flash.blocks.get(block).suspect
            && (offset == 0 || media.flash.oob.sequence_fits(block, media.sequence() + 1));
        if !is_trusted {
            self.replace(media, segment, lane, Cause::Retirement)?;
            block = self.home(segment, lane);
        }
        self.written[segment as usize] = page + 1;
        media.pool.add_valid(block);
        self.append(media, unit, Place { block, page: offset }, cause, owner);
        if offset + 1 == self.layout.pages_per_block {
            media.end_block(block, offset + 1);
        }
        Ok(())
    }

    fn first_die(&self, media: &Media, lpn: Lpn, _: u64) -> Option<DieId> {
        let (segment, page) = self.layout.split(lpn);
        let block = self.home(segment, self.layout.place(page).0);
        (block != BlockId::NONE).then(|| media.flash.die_of(block))
    }

    fn find(&self, lpn: Lpn) -> Found {
        match self.place_of(lpn) {
            Some(Place { block, page }) => {
                Found::At { unit: Ppn::of(block, page, self.layout.pages_per_block).sole_unit() }
            }
            None => Found::Unmapped,
        }
    }

    fn trim(&mut self, media: &mut Media, first: Lpn, end: Lpn) -> u64 {
        let (segment, page) = self.layout.split(first);
        assert_eq!((page, end - first), (0, self.layout.segment_pages), "a part of segment {segment} is trimmed");
        let holes = self.closed.get(&segment).map_or(0, |closed| closed.holes.len() as u32);
        let trimmed = self.written[segment as usize] - holes;
        self.give_up_blocks(media, segment);
        self.written[segment as usize] = 0;
        trimmed.into()
    }

    fn save_trims(&mut self, media: &mut Media, _: TrimTarget, _: Waiter) -> Result<u32, NoSpace> {
        self.record_trims(media)
    }

    fn trims_pending(&self) -> u32 {
        self.trims.unrecorded.len() as u32
    }

    fn trim_backlog(&self, _: u32) -> u32 {
        self.trims.most as u32 / 4
    }

    fn may_trim(&mut self, media: &mut Media) -> bool {
        self.trims.settle(media);
        if self.trims.are_many() {
            media.wakes.groups.extend(0..media.pool.groups());
        }
        self.trims.held.len() < self.trims.most
    }

    fn trim_segment_units(&self) -> u32 {
        self.layout.segment_pages
    }

    fn relocate(&mut self, media: &mut Media, victim: u32, cursor: u32, _: u32, cause: Cause, _: Waiter) -> Relocated {
        let block = BlockId(victim);
        let group = media.group_of(block) as usize;
        if let Some(index) = self.dead[group].iter().position(|dead| dead.block == block) {
            let dead = self.dead[group].remove(index);
            self.trims.erasing.push(dead);
            self.erased[group] = self.erased[group].saturating_add(1);
            return Relocated { cursor: media.units_per_superblock(), started: 0, stuck: false };
        }
        let moved = if block == self.trims.block {
            self.write_record(media)
        } else {
            match self.home_of(media, Place { block, page: 0 }) {
                Some((segment, lane)) => self.replace(media, segment, lane, cause),
                None => Ok(()),
            }
        };
        self.exchanged.retain(|other| *other != block || moved.is_err());
        // Each copy delays the erase of the victim until it is on flash. Then the victim is dead.
        if let Some(index) = self.dead[group].iter().position(|dead| dead.block == block) {
            let dead = self.dead[group].remove(index);
            self.trims.erasing.push(dead);
        }
        let stuck = moved.is_err();
        Relocated { cursor: if stuck { cursor } else { media.units_per_superblock() }, started: 0, stuck }
    }

    fn rewrite(
        &mut self,
        media: &mut Media,
        place: Place,
        _: Frontier,
        cause: Cause,
        _: Waiter,
    ) -> Result<bool, NoSpace> {
        if self.trims.newest.is_some_and(|(newest, _)| newest == place) {
            self.write_record(media)?;
            return Ok(true);
        }
        let Some((segment, lane)) = self.home_of(media, place) else { return Ok(false) };
        self.replace(media, segment, lane, cause)?;
        Ok(true)
    }

    fn current_locations(&self, media: &Media, place: Place, pages: &mut Vec<Ppn>) -> bool {
        let lpn = media.flash.oob.lpn(media.unit_at(place));
        let now = match self.layout.untagged(lpn) {
            Some((segment, page, generation)) => {
                let of_now = generation == u32::from(self.generations[segment as usize]);
                let now = self.place_of(Lpn(segment * self.layout.segment_pages + page)).filter(|_| of_now);
                if now.is_none() {
                    // Trimmed since: without the trim the segment would come back, and lack this page.
                    return self.trims.held.get(&segment).is_some_and(|held| held.trim > self.trims.covers);
                }
                now
            }
            None => self.trims.newest.map(|(newest, _)| newest),
        };
        pages.extend(now.filter(|now| *now != place).map(|now| media.ppn_at(now)));
        false
    }

    fn recover(&mut self, media: &mut Media, reads: &mut RecoveryReads) {
        self.rebuild(media, reads);
    }

    fn metadata_units(&self) -> u32 {
        1
    }

    fn check_space(&self, _: &DriveConfig, usable: &[u32]) -> Result<(), DriveError> {
        let good = |lane: u32| self.layout.groups(lane).map(|group| usable[group as usize]).sum::<u32>();
        let least = (0..self.layout.lanes).map(good).min().unwrap_or(0);
        if least >= self.blocks_needed() {
            return Ok(());
        }
        Err(DriveError {
            key: "capacity.user".to_string(),
            reason: format!(
                "too few blocks for {} segments: a segment takes a block of each of {} lanes (ftl.segment_levels), a lane \
                 keeps {} more for bad blocks and records of trims (gc.free_blocks), and the lane with the fewest good blocks \
                 has {least}: expected at most {} segments (capacity.user = {}), or a lower gc.free_blocks",
                self.layout.segments,
                self.layout.lanes,
                self.free_blocks,
                least.saturating_sub(self.free_blocks),
                u64::from(least.saturating_sub(self.free_blocks))
                    * u64::from(self.layout.segment_pages)
                    * u64::from(self.full_mask.count_ones())
                    * 512,
            ),
        })
    }

    fn data_bytes(&self, config: &DriveConfig, usable: &[u32]) -> f64 {
        let blocks = usable.iter().sum::<u32>().saturating_sub(self.free_blocks * self.layout.lanes);
        f64::from(blocks) * f64::from(self.layout.pages_per_block) * f64::from(config.flash.geometry.page_bytes)
    }

    fn check(&self, media: &Media) -> Vec<Check> {
        let written: u64 = self.written.iter().map(|pages| u64::from(*pages)).sum();
        let holes: u64 = self.closed.values().map(|closed| closed.holes.len() as u64).sum();
        let counted: u64 = (0..media.pool.superblocks_count()).map(|block| u64::from(media.pool.valid(block))).sum();
        let mut wrong = 0;
        for (segment, pages) in self.written.iter().enumerate() {
            for page in 0..*pages {
                let lpn = Lpn(segment as u32 * self.layout.segment_pages + page);
                let Some(place) = self.place_of(lpn) else { continue };
                let expected = self.layout.tagged(segment as u32, page, self.generations[segment].into());
                wrong += u64::from(media.flash.oob.lpn(media.unit_at(place)) != expected);
            }
        }
        vec![
            Check {
                name: "valid_pages_equal_written_pages",
                passed: counted == written - holes,
                detail: format!(
                    "{written} pages of segments written, {holes} of them holes, {counted} valid in blocks"
                ),
            },
            Check {
                name: "pages_say_which_they_are",
                passed: wrong == 0,
                detail: format!("{wrong} of {written} pages have the OOB area of another page or generation"),
            },
        ]
    }

    fn memory(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("segment_map_bytes", self.map.len() as u64 * 4),
            // State and generation are in one byte.
            ("segment_state_bytes", self.generations.len() as u64),
            ("write_pointer_bytes", self.written.len() as u64 * 4),
        ]
    }

    fn design(&self, _: &Media) -> Vec<(String, f64)> {
        let used = self.written.iter().filter(|pages| **pages > 0).count() as f64;
        let invalid = self.trims.held.values().filter(|held| held.trim > 0).count() as f64;
        let figures = [
            ("segments_used", used),
            ("segments_closed", self.closed.len() as f64),
            ("segments_not_erased", invalid),
            ("trim_records", self.trims.written as f64),
            ("replaced_blocks", self.replaced_blocks as f64),
            ("replaced_pages", self.replaced_pages as f64),
        ];
        figures.map(|(name, figure)| (name.to_string(), figure)).to_vec()
    }

    fn in_flight_work(&mut self, media: &Media) -> Vec<&'static str> {
        self.trims.settle(media);
        let mut in_flight_work = Vec::new();
        in_flight_work.extend((!self.trims.unrecorded.is_empty()).then_some("a trim in no record"));
        in_flight_work.extend(self.trims.is_writing().then_some("a record of trims"));
        in_flight_work.extend((!self.trims.erasing.is_empty()).then_some("an erase of a trimmed segment"));
        in_flight_work
    }

    fn reset_counters(&mut self) {
        (self.replaced_blocks, self.replaced_pages, self.trims.written) = (0, 0, 0);
    }

    fn save(&self, to: &mut dyn Write) -> io::Result<()> {
        self.save_to(to)
    }

    fn restore(&mut self, media: &mut Media, from: &mut dyn Read) -> io::Result<()> {
        self.load_from(from)?;
        self.accept(media)
    }

    fn own_collection(&mut self) -> Option<&mut dyn OwnCollection> {
        Some(self)
    }

    fn append_only(&self) -> Option<&dyn AppendOnly> {
        Some(self)
    }
}

impl AppendOnly for Aftl {
    fn segment_units(&self) -> u32 {
        self.layout.segment_pages
    }

    fn written(&self, segment: u32) -> (u32, bool) {
        (self.written[segment as usize], self.is_closed(segment))
    }
}

impl OwnCollection for Aftl {
    fn next_victim(&mut self, media: &Media, group: u32, idle: bool) -> Option<u32> {
        if self.dead[group as usize].is_empty() {
            return self.least_worn(media, group);
        }
        let short = self.free_or_erasing_in(media, self.layout.lane_of(group)) < self.free_blocks;
        // With each erase that ends every group is looked at: what no one waits for costs no more than this.
        if !idle && !short && self.urgent.is_none() && !self.trims.are_many() {
            return self.least_worn(media, group);
        }
        self.trims.settle(media);
        let all = idle || short || self.trims.are_many();
        let covers = self.trims.covers;
        let may_go = |dead: &&Dead| {
            media.pool.state(dead.block.0) == BlockState::Closed
                && (dead.trim <= covers || seeded(Bug::ErasedBeforeRecord))
                && (all || self.urgent == Some(dead.segment))
        };
        let dead = self.dead[group as usize].iter().find(may_go).map(|dead| dead.block.0);
        dead.or_else(|| self.least_worn(media, group))
    }

    fn cause_of(&self, victim: u32) -> Cause {
        if self.exchanged.contains(&BlockId(victim)) { Cause::WearLevelling } else { Cause::Gc }
    }

    fn may_retire(&mut self, media: &Media, block: BlockId) -> bool {
        self.trims.settle(media);
        let group = media.group_of(block) as usize;
        let covers = self.trims.covers;
        let waits = |dead: &Dead| dead.block == block && dead.trim > covers;
        !self.dead[group].iter().any(waits) || seeded(Bug::ErasedBeforeRecord)
    }

    fn stays_open(&self, block: BlockId) -> bool {
        self.kept_open.contains(&block)
    }
}

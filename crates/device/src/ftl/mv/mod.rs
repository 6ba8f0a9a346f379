//! FTL design `mvftl`: MV-FTL of WAFLASH (sections 3.2 and 3.3), multi-version page mapping with compacted partial pages.
//!
//! A page-mapped FTL whose logical page may have several valid physical pages. A partial page of more than half is
//! written as a new version, and nothing is read; small ones of a region share a compacted page; a full page supersedes
//! all versions. A read takes the newest version and goes on to older ones where its pattern does not cover what is
//! wanted. Versions are merged into a full page when the drive is idle, when garbage collection meets one of them, and
//! by the write that finds no room for another. What would be no version is completed by a read-modify-write:
//!
//! ```text
//! a partial write ─ its page holds nothing ──────────────────────────── a full page, nothing is read
//!                 ─ newest version compacted ───────────────────────── read it, merge, a new version in its stead
//!                 ─ pattern, bound, slot or reach, and space allow it ─ a new version, nothing is read
//!                 ─ else ──────────────────────────────────────────── read all versions, merge, a full page
//! ```
//!
//! Everything is found again from flash alone: pages say which LPNs they hold, which sectors, and in what order they were
//! written. Trims survive as in the page design.

mod check;
mod counters;
mod drawing;
mod entry;
mod gather;
mod group;
mod keys;
mod layout;
mod map;
mod merge;
mod pattern;
mod recovery;
mod relocation;
mod space;
mod state;
mod trim;
mod write;

use rustc_hash::FxHashMap;
use ssdlab_base::Saved;
use ssdlab_flash::HugeArray;

use super::allocator::Allocator;
use super::durable_trims::DurableTrims;
use super::trims::TrimState;
use super::{
    Compaction, Compacts, Design, Found, Ftl, IdleWork, Make, NoSpace, PREFETCHED, Relocated, SteppedReads, TrimTarget,
    UnitWrite, VersionPart, full_mask,
};
use crate::media::{Frontier, Media, Place};
use crate::recovery_reads::RecoveryReads;
use crate::waiter::Waiter;
use crate::{Check, DriveConfig, Superblock};
use counters::Counters;
use keys::{VersionMasks, Versions};
use layout::PageIndex;
use map::VersionMap;
use pattern::Patterns;
use space::VersionSpace;
use ssdlab_flash::{BlockId, Cause, DieId, Lpn, Ppn};

/// The design as a description names it.
pub(super) const DESIGN: Design = Design {
    name: "mvftl",
    summary: "several versions of a page, partial pages written without a read, compacted or not (WAFLASH)",
    keys: keys::KEYS,
    make: Make {
        check: |config| check::validate(config).map(|_| ()),
        partial_write: "becomes another version of it, or a read-modify-write where its mask is no pattern and small ones \
                        are not compacted (ftl.version_masks, ftl.compaction)",
        drawing: drawing::DRAWING,
        ..Make::of(|config| Box::new(MvFtl::new(config)), MvFtl::simulator_bytes)
    },
};

/// Modelled RAM of a compacted page: its number and how many of its versions are valid.
const COMPACTED_BYTES: u64 = 6;

/// Memory of an entry of the counts of compacted pages, in a table that is half full.
const COMPACTED_COUNT_BYTES: u64 = 2 * (size_of::<(Ppn, u32)>() as u64 + 1);

/// Multi-version page mapping.
pub(crate) struct MvFtl {
    map: VersionMap,
    /// One bit a physical page: holds current data.
    valid: HugeArray<u64>,
    /// Valid versions in each compacted page.
    compacted: FxHashMap<Ppn, u32>,
    user_units: u32,
    sectors: u32,
    full_mask: u64,
    patterns: Patterns,
    masks: VersionMasks,
    compaction: bool,
    /// Where compacted pages say what is in them.
    index: PageIndex,
    region_pages: u32,
    idle_merge: bool,
    light_load: u32,
    copyback: bool,
    /// Where merging in the background goes on.
    merge_at: Lpn,
    allocator: Allocator,
    trims: TrimState,
    space: VersionSpace,
    counters: Counters,
}

impl MvFtl {
    pub(crate) fn new(config: &DriveConfig) -> MvFtl {
        let split = check::validate(config).expect("the configuration was checked");
        let geometry = &config.flash.geometry;
        let versions = Versions::of(config);
        let page_bytes = geometry.page_bytes;
        let user_units = config.user_units();
        let trims = TrimState::new(user_units, page_bytes);
        let entries = user_units + trims.segments();
        let patterns = Patterns::new(page_bytes / 512);
        MvFtl {
            map: VersionMap::new(config, &versions, entries, split),
            valid: HugeArray::new((geometry.pages() as usize).div_ceil(64)),
            compacted: FxHashMap::default(),
            user_units,
            sectors: page_bytes / 512,
            full_mask: full_mask(page_bytes),
            patterns,
            masks: versions.masks,
            compaction: versions.compaction,
            index: PageIndex::of(versions.compaction_index, geometry.oob_bytes),
            region_pages: (versions.region_bytes / u64::from(page_bytes)).min(u64::from(u32::MAX)) as u32,
            idle_merge: versions.idle_merge,
            light_load: versions.merge_load,
            copyback: config.gc.copyback && config.flash.copyback && config.ftl.superblock == Superblock::None,
            merge_at: Lpn(0),
            allocator: Allocator::new(config),
            space: VersionSpace::new(config, versions.spare_percent, trims.segments()),
            trims,
            counters: Counters::new(patterns),
        }
    }

    /// Bytes that [`MvFtl::new`] takes, and what the most versions that there may be take beside: their slots in the tables
    /// of their groups, and the counts of compacted pages.
    pub(crate) fn simulator_bytes(config: &DriveConfig) -> u64 {
        let (geometry, versions) = (&config.flash.geometry, Versions::of(config));
        let user_units = config.user_units();
        let entries = u64::from(user_units) + u64::from(user_units.div_ceil(geometry.page_bytes * 8));
        let spare = geometry.pages().saturating_sub(entries);
        let most = spare * versions.spare_percent / 100;
        let compacted = if versions.compaction { most * COMPACTED_COUNT_BYTES } else { 0 };
        HugeArray::<u64>::bytes_of(geometry.pages().div_ceil(64))
            + VersionMap::simulator_bytes(&versions, entries, most)
            + TrimState::simulator_bytes(user_units, geometry.page_bytes)
            + compacted
    }

    #[inline]
    fn is_valid(&self, ppn: Ppn) -> bool {
        self.valid.get(ppn.index() / 64) >> (ppn % 64) & 1 != 0
    }

    /// The page holds current data: a full page, or one that is a version or several.
    fn set_valid(&mut self, media: &mut Media, ppn: Ppn, partial: bool) {
        debug_assert!(!self.is_valid(ppn), "page {ppn} is valid already");
        let block = media.block_of_page(ppn);
        self.valid.as_mut_slice()[ppn.index() / 64] |= 1 << (ppn % 64);
        media.pool.add_valid(block);
        if partial {
            self.space.add(media, block);
        }
    }

    /// The page is no longer current, superseded by the one at `by` if anything did.
    fn invalidate(&mut self, media: &mut Media, ppn: Ppn, by: Option<Place>) {
        self.invalidate_full(media, ppn);
        if layout::is_partial(media, ppn, self.user_units) {
            self.space.drop(media, media.block_of_page(ppn), by);
        }
    }

    /// The full page is no longer current.
    #[inline]
    fn invalidate_full(&mut self, media: &mut Media, ppn: Ppn) {
        let word = &mut self.valid.as_mut_slice()[ppn.index() / 64];
        debug_assert!(*word >> (ppn % 64) & 1 != 0, "page {ppn} was valid");
        *word &= !(1 << (ppn % 64));
        media.pool.drop_valid(media.block_of_page(ppn));
    }

    /// One logical page needs nothing from a physical page any more.
    fn release(&mut self, media: &mut Media, ppn: Ppn, by: Option<Place>) {
        if let Some(versions) = self.compacted.get_mut(&ppn) {
            assert!(*versions > 0, "compacted page {ppn} holds no version, and gives one up");
            *versions -= 1;
            if *versions > 0 {
                return;
            }
            self.compacted.remove(&ppn);
        }
        self.invalidate(media, ppn, by);
    }

    /// Releases all versions of a chain, superseded by the page at `by`; the blocks they are in, each once, are added
    /// to `pins`.
    fn supersede(&mut self, media: &mut Media, chain: &[Ppn], by: Place, pins: &mut Vec<BlockId>) {
        for ppn in chain {
            let block = media.block_of_page(*ppn);
            if !pins.contains(&block) {
                pins.push(block);
            }
            self.release(media, *ppn, Some(by));
        }
    }
}

impl Ftl for MvFtl {
    fn stepped_reads(&mut self) -> Option<&mut dyn SteppedReads> {
        Some(self)
    }

    fn compacts(&mut self) -> Option<&mut dyn Compacts> {
        if self.compaction { Some(self) } else { None }
    }

    fn idle_work(&mut self) -> Option<&mut dyn IdleWork> {
        Some(self)
    }

    fn write(
        &mut self,
        media: &mut Media,
        units: &[UnitWrite<'_>],
        stream: u16,
        cause: Cause,
        owner: Waiter,
    ) -> Result<(), NoSpace> {
        let [unit] = units else { unreachable!("a logical page has a page of its own") };
        self.write_one(media, unit, stream, cause, owner)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn first_die(&self, media: &Media, lpn: Lpn, mask: u64) -> Option<DieId> {
        let read = self.first_read(lpn, mask).map(|ppn| media.place_of_page(ppn));
        match read.filter(|place| media.flash.is_written(place.block, place.page)) {
            Some(place) => Some(media.flash.die_of(place.block)),
            None => self.allocator.next_die(media, lpn),
        }
    }

    #[inline]
    fn pages_left_in_stripe(&self, media: &Media) -> u32 {
        self.allocator.pages_left_in_stripe(media)
    }

    #[inline]
    fn find(&self, lpn: Lpn) -> Found {
        match self.map.full_page(lpn) {
            Some(ppn) => Found::At { unit: ppn.sole_unit() },
            None if self.map.is_mapped(lpn) => Found::Versions,
            None => Found::Unmapped,
        }
    }

    fn trim(&mut self, media: &mut Media, first: Lpn, end: Lpn) -> u64 {
        self.trim_units(media, first, end)
    }

    fn save_trims(&mut self, media: &mut Media, to: TrimTarget, owner: Waiter) -> Result<u32, NoSpace> {
        self.save_records(media, to, owner)
    }

    fn trims_pending(&self) -> u32 {
        self.trims.pending()
    }

    fn trim_segment_units(&self) -> u32 {
        self.trims.segment_units()
    }

    fn relocate(
        &mut self,
        media: &mut Media,
        victim: u32,
        cursor: u32,
        limit: u32,
        cause: Cause,
        owner: Waiter,
    ) -> Relocated {
        self.relocate_pages(media, victim, cursor, limit, cause, owner)
    }

    fn rewrite(
        &mut self,
        media: &mut Media,
        place: Place,
        frontier: Frontier,
        cause: Cause,
        owner: Waiter,
    ) -> Result<bool, NoSpace> {
        self.rewrite_page(media, place, frontier, cause, owner)
    }

    fn current_locations(&self, media: &Media, place: Place, pages: &mut Vec<Ppn>) -> bool {
        self.pages_of(media, place, pages)
    }

    #[inline]
    fn prefetch(&self, media: &Media, lpns: &[Lpn]) {
        let mut pages = [Ppn::NONE; PREFETCHED];
        for (page, lpn) in pages.iter_mut().zip(lpns) {
            *page = self.map.full_page(*lpn).unwrap_or(Ppn::NONE);
        }
        let mut seen = 0;
        for page in pages.into_iter().filter(|page| *page != Ppn::NONE) {
            seen ^= self.valid.get(page.index() / 64) ^ u64::from(media.prefetch(media.block_of_page(page)));
        }
        std::hint::black_box(seen);
    }

    fn recover(&mut self, media: &mut Media, reads: &mut RecoveryReads) {
        self.rebuild(media, reads);
    }

    fn metadata_units(&self) -> u32 {
        self.trims.segments()
    }

    fn check(&self, media: &Media) -> Vec<Check> {
        self.check_all(media)
    }

    fn memory(&self) -> Vec<(&'static str, u64)> {
        let mut memory = self.map.memory();
        memory.push(("compacted_pages_bytes", self.compacted.len() as u64 * COMPACTED_BYTES));
        memory.push(("valid_bitmap_bytes", self.valid.bytes()));
        memory.push(("trim_bitmap_bytes", self.trims.bytes()));
        memory
    }

    fn design(&self, media: &Media) -> Vec<(String, f64)> {
        let mut rows = self.counters.rows();
        rows.push(("versions_live".to_string(), self.space.total() as f64));
        rows.push(("versions_most".to_string(), self.space.limits(media) as f64));
        rows.push(("chains_live".to_string(), self.map.chains() as f64));
        rows
    }

    fn reset_counters(&mut self) {
        self.counters = Counters::new(self.patterns);
    }

    fn save(&self, to: &mut dyn std::io::Write) -> std::io::Result<()> {
        self.save_to(to)
    }

    fn restore(&mut self, media: &mut Media, from: &mut dyn std::io::Read) -> std::io::Result<()> {
        self.load_from(from)?;
        self.accept(media)
    }
}

impl SteppedReads for MvFtl {
    fn versions(&mut self, media: &Media, lpn: Lpn, wanted: u64, out: &mut Vec<VersionPart>) {
        self.parts_to_read(media, lpn, wanted, out);
        self.counters.read_versions(out.len());
    }

    fn read_versions(&self, media: &Media, lpn: Lpn, first: u64, out: &mut [u8]) -> bool {
        let count = out.len() / media.flash.store.sector_data_bytes();
        let wanted = (u64::MAX >> (64 - count)) << first;
        let chain = self.map.chain(lpn);
        let mut whole = true;
        for part in self.parts(media, lpn, &chain, wanted) {
            whole &= self.take_sector_data(media, &part, part.sectors, first as u32, out);
        }
        whole
    }
}

impl Compacts for MvFtl {
    fn limits(&self) -> Compaction {
        self.compaction_limits()
    }

    fn may_compact(&self, media: &Media, lpn: Lpn) -> bool {
        self.may_be_compacted(media, lpn)
    }

    fn write_compacted(
        &mut self,
        media: &mut Media,
        units: &[UnitWrite<'_>],
        stream: u16,
        cause: Cause,
        owner: Waiter,
    ) -> Result<(), NoSpace> {
        self.compact(media, units, stream, cause, owner)
    }
}

impl IdleWork for MvFtl {
    fn has_work(&self) -> bool {
        self.idle_merge && self.map.mergeable() > 0
    }

    fn light_load(&self) -> u64 {
        self.light_load.into()
    }

    fn work(&mut self, media: &mut Media, limit: u32, owner: Waiter) -> u32 {
        self.merge_some(media, limit, owner)
    }
}

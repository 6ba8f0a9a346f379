//! FTL design `page`: the whole map in RAM, one entry a mapping unit.
//!
//! A mapping unit is a page or a power-of-two part of one; a unit written in part is completed from its old version
//! (read-modify-write). Trims survive power loss as bitmap pages: the logical space is cut into segments, and the
//! newest bitmap of a segment says which of its units were unmapped when it was written. Bitmaps are units like any
//! other, mapped behind the user's, so garbage collection moves them too.

pub(in crate::ftl) mod metadata;
mod pages;
mod recovery;
mod relocation;
mod rows;
mod trim;
mod units;

use std::io::{self, Read, Write};

use arrayvec::ArrayVec;
use ssdlab_base::{Saved, damaged, saved};
use ssdlab_flash::{BlockId, Cause, DieId, HugeArray, Lpn, NONE, OpKind, Ppn, UnitId};

use crate::ftl::allocator::Allocator;
use crate::ftl::durable_trims::DurableTrims;
use crate::ftl::page_of_units::{PageOfUnits, Purpose};
use crate::ftl::trims::TrimState;
use crate::ftl::{
    Design, Found, Ftl, MAX_UNITS, Make, NoSpace, PREFETCHED, Relocated, TrimTarget, UnitWrite, full_mask,
};
use crate::media::{Frontier, Media, Place, Programming};
use crate::recovery_reads::RecoveryReads;
use crate::waiter::Waiter;
use crate::{Check, DriveConfig, Superblock};

/// A map entry of a unit that holds nothing.
const UNMAPPED: UnitId = UnitId::NONE;

/// Full page mapping.
pub(crate) struct PageFtl {
    /// LPN to physical unit; user units first, trim bitmaps behind them.
    map: HugeArray<UnitId>,
    /// One bit a physical unit: holds current data.
    valid: HugeArray<u64>,
    mapped_units: u64,
    user_units: u32,
    units_per_page: u32,
    full_mask: u64,
    copyback: bool,
    allocator: Allocator,
    trims: TrimState,
    /// The units behind the user's are records of trims, and not another design's.
    records_trims: bool,
    partial_page_writes: u64,
}

/// The design as a description names it.
pub(super) const DESIGN: Design = Design {
    name: "page",
    summary: "full page mapping in RAM, mapping unit of at most a page",
    keys: &[],
    make: Make { lists_owners: true, ..Make::of(|config| Box::new(PageFtl::new(config)), PageFtl::simulator_bytes) },
};

impl PageFtl {
    pub(crate) fn new(config: &DriveConfig) -> PageFtl {
        let unit_bytes = config.ftl.mapping_unit;
        let user_units = config.user_units();
        PageFtl::over(config, user_units, TrimState::new(user_units, unit_bytes))
    }

    /// One with as many units behind the user's as `trims` has segments.
    fn over(config: &DriveConfig, user_units: u32, trims: TrimState) -> PageFtl {
        let geometry = &config.flash.geometry;
        let unit_bytes = config.ftl.mapping_unit;
        let entries = user_units as usize + trims.segments() as usize;
        let units_per_page = geometry.page_bytes / unit_bytes;
        let mut map = HugeArray::new(entries);
        map.as_mut_slice().fill(UNMAPPED);
        PageFtl {
            map,
            valid: HugeArray::new((geometry.pages() as usize * units_per_page as usize).div_ceil(64)),
            mapped_units: 0,
            user_units,
            units_per_page,
            full_mask: full_mask(unit_bytes),
            copyback: config.gc.copyback && config.flash.copyback && config.ftl.superblock == Superblock::None,
            allocator: Allocator::new(config),
            trims,
            records_trims: true,
            partial_page_writes: 0,
        }
    }

    /// Bytes that [`PageFtl::new`] takes.
    pub(crate) fn simulator_bytes(config: &DriveConfig) -> u64 {
        let (geometry, unit_bytes) = (&config.flash.geometry, config.ftl.mapping_unit);
        let user_units = config.mapped_units();
        let entries = u64::from(user_units) + u64::from(user_units.div_ceil(unit_bytes * 8));
        let units = geometry.pages() * u64::from(geometry.page_bytes / unit_bytes);
        HugeArray::<UnitId>::bytes_of(entries)
            + HugeArray::<u64>::bytes_of(units.div_ceil(64))
            + TrimState::simulator_bytes(user_units, unit_bytes)
    }

    #[inline]
    fn is_valid(&self, unit: UnitId) -> bool {
        self.valid.get(unit.index() / 64) >> (unit % 64) & 1 != 0
    }

    // Every write comes by here: rare callers must not make a call of it.
    #[inline(always)]
    fn set_valid(&mut self, media: &mut Media, unit: UnitId, block: BlockId) {
        debug_assert!(!self.is_valid(unit), "unit {unit} is valid already");
        self.valid.as_mut_slice()[unit.index() / 64] |= 1 << (unit % 64);
        media.pool.add_valid(block);
    }

    /// The unit at `unit` is no longer current; returns its block.
    #[inline]
    fn invalidate(&mut self, media: &mut Media, unit: UnitId) -> BlockId {
        let word = &mut self.valid.as_mut_slice()[unit.index() / 64];
        debug_assert!(*word >> (unit % 64) & 1 != 0, "unit {unit} was valid");
        *word &= !(1 << (unit % 64));
        let block = media.block_of(unit);
        media.pool.drop_valid(block);
        block
    }

    /// Maps `lpn` to `unit`, superseding its old place; returns the old place.
    #[inline]
    fn remap(&mut self, media: &mut Media, lpn: Lpn, unit: UnitId, block: BlockId) -> UnitId {
        debug_assert_eq!(media.block_of(unit), block, "unit {unit} is mapped in a block that is not its own");
        let entry = &mut self.map.as_mut_slice()[lpn.index()];
        let old = std::mem::replace(entry, unit);
        if old == UNMAPPED {
            self.mapped_units += 1;
            self.trims.mapped(lpn);
            if self.trims.in_use() {
                self.note_revival(media, lpn);
            }
        } else {
            self.invalidate(media, old);
        }
        self.set_valid(media, unit, block);
        old
    }

    /// Programs one whole page with nothing stored: what `write_at` comes to in the common case.
    #[inline]
    fn write_page(
        &mut self,
        media: &mut Media,
        place: Place,
        lpn: Lpn,
        frontier: Frontier,
        cause: Cause,
        owner: Waiter,
    ) {
        let unit = media.unit_at(place);
        media.flash.oob.number_write(unit);
        let old = self.remap(media, lpn, unit, place.block);
        let pin = if old == UNMAPPED { BlockId::NONE } else { media.block_of(old) };
        let pins = if pin == BlockId::NONE { &[][..] } else { std::slice::from_ref(&pin) };
        let kind = OpKind::Program;
        let how = Programming { kind, cause, frontier, owner, pins, after: &[], taken: &[], source: Ppn::NONE };
        media.program(place, &[lpn], how);
    }

    /// Programs `units` into `place`: completes partial ones, remaps all, and keeps the order of what they supersede.
    #[inline]
    fn write_at(
        &mut self,
        media: &mut Media,
        place: Place,
        units: &[UnitWrite<'_>],
        frontier: Frontier,
        cause: Cause,
        owner: Waiter,
    ) {
        let most = self.units_per_page as usize;
        debug_assert!((1..=most).contains(&units.len()), "{} units go to a page of {most}", units.len());
        let first = media.unit_at(place);
        let mut lpns: ArrayVec<Lpn, MAX_UNITS> = ArrayVec::new();
        let mut page = PageOfUnits::default();
        let mut purpose = Purpose { cause, frontier, owner };
        for (index, write) in units.iter().enumerate() {
            let unit = first + index as u32;
            lpns.push(write.lpn);
            let current = self.map.get(write.lpn.index());
            debug_assert!(
                write.mask == self.full_mask || current == UNMAPPED || self.is_valid(current),
                "a unit is completed from {current}, which is not current"
            );
            self.partial_page_writes += u64::from(write.mask != self.full_mask);
            if page.complete(media, unit, current, write, self.full_mask, frontier) {
                purpose.cause = Cause::ReadModifyWrite;
            }
            let old = self.remap(media, write.lpn, unit, place.block);
            if old != UNMAPPED {
                page.pin(media.block_of(old));
            }
        }
        page.program(media, place, &lpns, purpose, Ppn::NONE);
    }
}

impl Ftl for PageFtl {
    fn write(
        &mut self,
        media: &mut Media,
        units: &[UnitWrite<'_>],
        stream: u16,
        cause: Cause,
        owner: Waiter,
    ) -> Result<(), NoSpace> {
        let frontier = Frontier::Host(stream);
        let group = self.allocator.choose(media, units[0].lpn, frontier).ok_or(NoSpace)?;
        debug_assert!(
            units.iter().all(|unit| unit.mask & !self.full_mask == 0),
            "a write gives sectors behind the end of a unit: {units:?}"
        );
        debug_assert!(
            units.iter().all(|unit| self.allocator.share_page(units[0].lpn, unit.lpn)),
            "units {units:?} do not share a page"
        );
        let place = media.take_seen_page(group, frontier);
        if let [unit] = units
            && unit.mask == self.full_mask
            && unit.sector_data.is_empty()
            && self.units_per_page == 1
        {
            self.write_page(media, place, unit.lpn, frontier, cause, owner);
            return Ok(());
        }
        self.write_at(media, place, units, frontier, cause, owner);
        let empty = self.units_per_page as usize - units.len();
        media.padding_bytes += empty as u64 * u64::from(media.unit_bytes);
        Ok(())
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn first_die(&self, media: &Media, lpn: Lpn, mask: u64) -> Option<DieId> {
        let old = self.map.get(lpn.index());
        if mask != self.full_mask && old != UNMAPPED {
            let place = media.place_of(old);
            if media.flash.is_written(place.block, place.page) {
                return Some(media.flash.die_of(place.block));
            }
        }
        self.allocator.next_die(media, lpn)
    }

    #[inline]
    fn share_page(&self, first: Lpn, second: Lpn) -> bool {
        self.allocator.share_page(first, second)
    }

    fn pages_left_in_stripe(&self, media: &Media) -> u32 {
        self.allocator.pages_left_in_stripe(media)
    }

    #[inline]
    fn find(&self, lpn: Lpn) -> Found {
        match self.map.get(lpn.index()) {
            UNMAPPED => Found::Unmapped,
            unit => Found::At { unit },
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
        self.relocate_units(media, victim, cursor, limit, cause, owner)
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
        let lpns = media.flash.oob.lpns(media.unit_at(place), self.units_per_page);
        let mut trimmed = false;
        for lpn in lpns.iter().filter(|lpn| **lpn != Lpn::NONE && !lpn.is_of_stripe()) {
            match self.map.get(lpn.index()) {
                UNMAPPED => trimmed = true,
                unit => pages.push(media.page_of(unit)),
            }
        }
        trimmed
    }

    #[inline]
    fn prefetch(&self, media: &Media, lpns: &[Lpn]) {
        // No load of a pass waits for another one of it, so the misses overlap.
        let mut units = [UNMAPPED; PREFETCHED];
        for (unit, lpn) in units.iter_mut().zip(lpns) {
            *unit = self.map.get(lpn.index());
        }
        let mut seen = 0;
        for unit in units.into_iter().filter(|unit| *unit != UNMAPPED) {
            seen ^= self.valid.get(unit.index() / 64) ^ u64::from(media.prefetch(media.block_of(unit)));
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
        let valid: u64 = self.valid.as_slice().iter().map(|word| u64::from(word.count_ones())).sum();
        let superblocks = 0..media.pool.superblocks_count();
        let counted: u64 = superblocks.map(|superblock| u64::from(media.pool.valid(superblock))).sum();
        // One pass: a large map does not fit in the processor's cache.
        let (mut mapped, mut wrong) = (0_u64, 0_u64);
        let entries = (0..).map(Lpn).zip(self.map.as_slice());
        for (lpn, unit) in entries.filter(|(_, unit)| **unit != UNMAPPED) {
            mapped += 1;
            wrong += u64::from(media.flash.oob.lpn(*unit) != lpn || !self.is_valid(*unit));
        }
        vec![
            Check {
                name: "valid_pages_equal_mapped_pages",
                passed: mapped == valid && valid == counted && mapped == self.mapped_units,
                detail: format!("{mapped} units mapped, {valid} valid, {counted} counted in blocks"),
            },
            Check {
                name: "oob_owner_equals_map_entry",
                passed: wrong == 0,
                detail: format!("{wrong} of {mapped} mapped units are owned by another LPN on flash"),
            },
        ]
    }

    fn in_flight_work(&mut self, media: &Media) -> Vec<&'static str> {
        media.list_work()
    }

    fn memory(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("mapping_bytes", self.map.bytes()),
            ("valid_bitmap_bytes", self.valid.bytes()),
            ("trim_bitmap_bytes", self.trims.bytes()),
        ]
    }

    fn design(&self, media: &Media) -> Vec<(String, f64)> {
        // Each partial page that holds something is completed by one read.
        let reads = media.flash.counts().get(OpKind::Read, Cause::ReadModifyWrite);
        let mut metrics = vec![
            ("partial_page_writes".to_string(), self.partial_page_writes as f64),
            ("additional_reads".to_string(), reads as f64),
        ];
        metrics.extend(media.list_metrics());
        metrics
    }

    fn reset_counters(&mut self) {
        self.partial_page_writes = 0;
    }

    fn save(&self, to: &mut dyn Write) -> io::Result<()> {
        self.save_to(to)
    }

    fn restore(&mut self, media: &mut Media, from: &mut dyn Read) -> io::Result<()> {
        self.load_from(from)?;
        self.accept(media)
    }
}

saved!(PageFtl: map, allocator, trims);

impl PageFtl {
    /// Counts what is valid anew, and refuses what would index outside a table or mislead recovery. Whether pages name their LPNs
    /// is for [`Ftl::check`] to say.
    fn accept(&mut self, media: &mut Media) -> io::Result<()> {
        self.allocator.accept()?;
        self.trims.accept()?;
        assert_eq!(self.mapped_units, 0, "a state is restored into an empty map");
        let units = media.flash.geometry().pages() * u64::from(self.units_per_page);
        for lpn in Lpn::each(Lpn(0)..Lpn(self.map.len() as u32)) {
            let unit = self.map.get(lpn.index());
            if self.trims.is_mapped(lpn) != (unit != UNMAPPED) {
                return Err(damaged("the map and its bitmap do not agree"));
            }
            if unit == UNMAPPED {
                continue;
            }
            if u64::from(unit.0) >= units {
                return Err(damaged("a map entry points behind the flash"));
            }
            let place = media.place_of(unit);
            if self.is_valid(unit)
                || !media.flash.is_written(place.block, place.page)
                || media.pool.superblocks.of(place.block) == NONE
            {
                return Err(damaged("a map entry points to a unit that was never written, or that another one has"));
            }
            self.mapped_units += 1;
            self.set_valid(media, unit, place.block);
            if lpn.0 >= self.user_units && self.records_trims {
                self.trims.accept_record(media.flash.oob.record(unit), lpn.0 - self.user_units, self.user_units)?;
            }
        }
        Ok(())
    }
}

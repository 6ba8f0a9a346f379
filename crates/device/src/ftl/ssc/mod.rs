//! FTL design `ssc`: FlashTier's solid-state cache, as it was built on the OpenSSD board (Getting Real, 2.2 and 3.3).
//!
//! The drive caches a disk at the disk's own addresses. It maps units by a hash table of fixed size, knows which of them are clean, and
//! drops clean ones of a victim where other drives would move them (*silent eviction*).
//!
//! What is on flash:
//!
//! - *Owners* of units, in OOB areas or in lists (`ftl.owners`). The owner of a unit that was written clean has [`CLEAN`] set.
//! - *Log units* with notes on blocks that were evicted, dropped or cleaned.
//!
//! - *Checkpoints* of the map, unless `ftl.map_checkpoint` is `"log"`.
//!
//! Recovery reads all owners and all log units, or, beside a checkpoint, those that are newer.
//!
//! - `table.rs`: the map.
//! - `log.rs`: notes, and the units that hold them.
//! - `logging.rs`: which notes are needed, and how they get to flash.
//! - `programs.rs`: units written by the host, moved out of victims, or rewritten after a failure.
//! - `commands.rs`: the set `cache`.
//! - `room.rs`: what counts as kept, of a drive with more addresses than room.
//! - `checkpoints/`: the map as it goes to flash, and comes back.
//! - `recovery.rs`: the map from checkpoint, owners and notes.
//! - `keys.rs`: the design's keys, and the drives that it takes.

mod checkpoints;
mod commands;
mod keys;
mod log;
mod logging;
mod programs;
mod recovery;
mod room;
mod table;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use ssdlab_base::command_sets::cache::CACHE;
use ssdlab_base::{Saved, saved};
use ssdlab_flash::{BlockId, Cause, DieId, HugeArray, Lpn, Ppn, UnitId};

use self::checkpoints::Area;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use self::checkpoints::checkpoint_from_bytes;
pub use self::keys::{drops_clean, overrides_for_addresses, set_addresses};
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use self::log::notes_from_bytes;
use self::log::{Log, Remembered};
use self::room::Room;
use self::table::{COPIES_BYTES, Present, SLOT_BYTES, Table};
use super::allocator::Allocator;
use super::bit_fields::next_set;
use super::page_of_units::Purpose;
use super::{
    Checkpoints, Commands, Design, Drawing, Found, Ftl, LimitedRoom, Make, NoSpace, RecoveryStep, Relocated,
    TrimTarget, UnitWrite, full_mask,
};
use crate::media::{Frontier, Media, MetadataToken, Place};
use crate::recovery_reads::RecoveryReads;
use crate::seeded::{Bug, seeded};
use crate::waiter::Waiter;
use crate::{Check, DriveConfig, DriveError};

/// Set in the owner of a unit that was clean when it was written.
const CLEAN: u32 = 1 << 31;

/// The owner of a unit of the log or of a block, without its mark.
const fn unmarked(owner: Lpn) -> Lpn {
    Lpn(owner.0 & !CLEAN)
}

/// Whether a unit has an owner.
fn is_owned(owner: Lpn) -> bool {
    owner != Lpn::NONE && !owner.is_of_stripe()
}

/// The design as a description names it.
pub(super) const DESIGN: Design = Design {
    name: "ssc",
    summary: "a solid-state cache in front of a disk: a hash table at the disk's addresses, silent eviction of clean data (FlashTier)",
    keys: keys::KEYS,
    make: Make {
        check: keys::check,
        commands: Some(&CACHE),
        lists_owners: true,
        checkpoint_blocks: |config| keys::area(config).map_or(0, |sizes| 2 * sizes.half_blocks),
        logical_bytes: keys::logical_bytes,
        drawing: Drawing { drive: keys::draw, handful: keys::handful, one_in: 11, ..Drawing::ANY },
        ..Make::of(|config| Box::new(Ssc::new(config)), Ssc::simulator_bytes)
    },
};

/// What became of clean units, since counters began.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    /// Clean blocks that collection dropped.
    dropped: u64,
    /// Blocks that the host evicted.
    evicted: u64,
    /// Dirty blocks that became clean.
    cleaned: u64,
    /// Blocks written clean.
    written_clean: u64,
    /// Units that collection moved.
    moved: u64,
    /// Log units programmed.
    log_units: u64,
    /// Notes in them that had been in others.
    notes_again: u64,
    partial_page_writes: u64,
    /// Checkpoints begun; pages of the map in them, and of what is beside it.
    checkpoints: u64,
    checkpoint_map_pages: u64,
    checkpoint_state_pages: u64,
    /// Pages of records of blocks that were to be erased.
    checkpoint_record_pages: u64,
    /// Erases of blocks that hold checkpoints.
    checkpoint_erases: u64,
}

/// The cache.
pub(crate) struct Ssc {
    table: Table,
    log: Log,
    /// One bit a physical unit: holds a current block or log unit.
    valid: HugeArray<u64>,
    /// Valid units that collection has to move.
    kept_units: u64,
    /// Valid units that collection drops.
    loose_units: u64,
    /// Blocks that it has room for.
    user_units: u32,
    /// Blocks of the disk; log units are numbered behind them.
    logical_units: u32,
    units_per_page: u32,
    full_mask: u64,
    copyback: bool,
    silent_eviction: bool,
    /// Victim policies count clean units.
    counts_clean: bool,
    allocator: Allocator,
    /// Owners of units of blocks that were emptied, and how often the block had been erased: until it is erased once more, flash has
    /// copies there.
    emptied: BTreeMap<u32, (u32, Vec<Lpn>)>,
    /// Blocks with notes that were found nowhere else: they are erased when the log has these again.
    stale_logs: Vec<BlockId>,
    /// Where there are more addresses than room: what is not kept any more, and whether a power cut can undo that.
    room: Option<Room>,
    /// Where checkpoints of the map go.
    area: Option<Area>,
    /// Metadata that is to begin when what is on its way to the area has ended.
    promise: Option<MetadataToken>,
    /// Slots looked at beyond the first of each look, that the processor was not charged for.
    owed: Cell<u32>,
    /// Looks, and slots looked at.
    looks: Cell<(u64, u64)>,
    counters: Counters,
}

impl Ssc {
    fn new(config: &DriveConfig) -> Ssc {
        let unit_bytes = config.ftl.mapping_unit;
        let units = keys::units_on_flash(config);
        let mut table = Table::new(units, config.logical_units());
        let area = Area::new(config);
        if area.is_some() {
            table.watch(checkpoints::slots_per_page(config.flash.geometry.page_bytes));
        }
        Ssc {
            table,
            log: Log::new(units, unit_bytes),
            valid: HugeArray::new(units.div_ceil(64) as usize),
            kept_units: 0,
            loose_units: 0,
            user_units: config.user_units(),
            logical_units: config.logical_units(),
            units_per_page: config.flash.geometry.page_bytes / unit_bytes,
            full_mask: full_mask(unit_bytes),
            copyback: config.gc.copyback && config.flash.copyback,
            silent_eviction: drops_clean(config),
            counts_clean: keys::counts_clean(config),
            allocator: Allocator::new(config),
            emptied: BTreeMap::new(),
            stale_logs: Vec::new(),
            room: (config.logical_units() > config.user_units()).then(Room::default),
            area,
            promise: None,
            owed: Cell::new(0),
            looks: Cell::new((0, 0)),
            counters: Counters::default(),
        }
    }

    /// Bytes that [`Ssc::new`] takes, and notes on as many blocks as flash has units.
    fn simulator_bytes(config: &DriveConfig) -> u64 {
        let units = keys::units_on_flash(config);
        let slots = Table::simulator_bytes(units);
        let notes = units * (size_of::<log::Fact>() as u64 + 16);
        let watched = if keys::area(config).is_some() { Table::watched_bytes(units) } else { 0 };
        slots + watched + notes + HugeArray::<u64>::bytes_of(units.div_ceil(64))
    }

    #[inline]
    fn is_valid(&self, unit: UnitId) -> bool {
        self.valid.get(unit.index() / 64) >> (unit % 64) & 1 != 0
    }

    fn next_valid(&self, from: UnitId, end: UnitId) -> Option<UnitId> {
        next_set(self.valid.as_slice(), from.0, end.0).map(UnitId)
    }

    /// Whether collection drops what is clean or not.
    const fn is_loose(&self, clean: bool) -> bool {
        clean && self.silent_eviction
    }

    /// Whether collection drops a block that it finds in a victim.
    fn is_dropped(&self, clean: bool) -> bool {
        self.is_loose(clean) || seeded(Bug::DirtyDropped)
    }

    fn set_valid(&mut self, media: &mut Media, unit: UnitId, loose: bool) {
        debug_assert!(!self.is_valid(unit), "unit {unit} is valid already");
        self.valid.as_mut_slice()[unit.index() / 64] |= 1 << (unit % 64);
        let block = media.block_of(unit);
        if loose {
            if self.counts_clean {
                media.pool.add_loose(block);
            }
            self.loose_units += 1;
        } else {
            media.pool.add_valid(block);
            self.kept_units += 1;
        }
    }

    /// The unit at `unit` is no longer current; returns its block.
    fn invalidate(&mut self, media: &mut Media, unit: UnitId, loose: bool) -> BlockId {
        let word = &mut self.valid.as_mut_slice()[unit.index() / 64];
        assert!(*word >> (unit % 64) & 1 != 0, "unit {unit} was valid");
        *word &= !(1 << (unit % 64));
        let block = media.block_of(unit);
        if loose {
            if self.counts_clean {
                media.pool.drop_loose(block);
            }
            self.loose_units -= 1;
        } else {
            media.pool.drop_valid(block);
            self.kept_units -= 1;
        }
        block
    }

    /// Whether an owner is a log unit; its number.
    fn log_number(&self, lpn: Lpn) -> Option<u32> {
        debug_assert_eq!(lpn, unmarked(lpn), "an owner is looked at with its mark");
        lpn.0.checked_sub(self.logical_units)
    }

    /// The processor looks a block up.
    fn look_up(&self, lpn: Lpn) -> Option<Present> {
        let probes = self.table.probes(lpn);
        self.owed.set(self.owed.get() + probes - 1);
        let (looks, slots) = self.looks.get();
        self.looks.set((looks + 1, slots + u64::from(probes)));
        self.table.get(lpn)
    }

    /// Copies in blocks that were erased are gone, and so is what was remembered because of them.
    fn settle_erased(&mut self, media: &Media) {
        if self.emptied.is_empty() {
            return;
        }
        let is_erased = |block: &u32, erases: u32| {
            let state = media.flash.blocks.get(BlockId(*block));
            state.bad || state.erases != erases
        };
        let erased: Vec<u32> = self
            .emptied
            .iter()
            .filter(|(block, (erases, _))| is_erased(block, *erases))
            .map(|(block, _)| *block)
            .collect();
        for block in erased {
            let (_, owners) = self.emptied.remove(&block).expect("it was seen just now");
            for lpn in owners {
                if self.table.drop_copy(lpn) {
                    self.log.forget(lpn.0);
                }
            }
        }
    }

    /// Blocks that the units of a superblock are copies of.
    fn owners_in(&self, media: &Media, block: BlockId) -> Vec<Lpn> {
        let written = media.flash.blocks.get(block).programmed;
        let first = media.unit_at(Place { block, page: 0 });
        let owners = media.flash.oob.lpns(first, written * self.units_per_page).iter().copied();
        owners.filter(|owner| is_owned(*owner)).map(unmarked).filter(|lpn| lpn.0 < self.logical_units).collect()
    }

    /// A block leaves the cache by order of the host, now and after a power cut. Returns whether it was there.
    fn evict(&mut self, media: &mut Media, lpn: Lpn) -> bool {
        let Some(old) = self.look_up(lpn) else {
            // One that was dropped without a note may come back while flash has its copy.
            let is_told = self.log.facts.get(&lpn.0).is_some_and(|fact| fact.floor.is_none());
            if self.table.slot(lpn).is_some() && !is_told {
                self.log.note(lpn.0, None, false);
            }
            return false;
        };
        self.table.forget(lpn);
        if !seeded(Bug::EvictionNotNoted) {
            self.log.note(lpn.0, None, false);
        }
        let loose = self.is_loose(old.clean);
        let block = self.invalidate(media, old.unit, loose);
        if !loose {
            self.may_return(media, lpn);
        }
        if !seeded(Bug::EvictedCopyErased) {
            media.pool.set_trimmed(block);
        }
        self.counters.evicted += 1;
        true
    }

    /// Collection drops a clean block.
    fn drop_clean(&mut self, media: &mut Media, lpn: Lpn) {
        let old = self.table.forget(lpn).expect("a block that is dropped is there");
        assert!(self.is_dropped(old.clean), "block {lpn} is dropped, and is dirty");
        let block = self.invalidate(media, old.unit, self.is_loose(old.clean));
        let copies = self.table.slot(lpn).map_or(0, |slot| slot.copies);
        // The erase takes the only copy: nothing can come back.
        if copies > 1 && !seeded(Bug::EraseBeforeTrimRecord) {
            self.log.note(lpn.0, None, false);
            media.pool.set_trimmed(block);
        }
        self.counters.dropped += 1;
    }
}

impl Ftl for Ssc {
    fn write(
        &mut self,
        media: &mut Media,
        units: &[UnitWrite<'_>],
        stream: u16,
        cause: Cause,
        owner: Waiter,
    ) -> Result<(), NoSpace> {
        self.settle_erased(media);
        let frontier = Frontier::Host(stream);
        let group = self.allocator.choose(media, units[0].lpn, frontier).ok_or(NoSpace)?;
        let place = media.take_seen_page(group, frontier);
        self.write_at(media, place, units, Purpose { cause, frontier, owner });
        let empty = self.units_per_page as usize - units.len();
        media.padding_bytes += empty as u64 * u64::from(media.unit_bytes);
        Ok(())
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn first_die(&self, media: &Media, lpn: Lpn, mask: u64) -> Option<DieId> {
        if mask != self.full_mask
            && let Some(Present { unit, .. }) = self.table.get(lpn)
        {
            let place = media.place_of(unit);
            if media.flash.is_written(place.block, place.page) {
                return Some(media.flash.die_of(place.block));
            }
        }
        self.allocator.next_die(media, lpn)
    }

    fn share_page(&self, first: Lpn, second: Lpn) -> bool {
        self.allocator.share_page(first, second)
    }

    fn pages_left_in_stripe(&self, media: &Media) -> u32 {
        self.allocator.pages_left_in_stripe(media)
    }

    fn find(&self, lpn: Lpn) -> Found {
        match self.look_up(unmarked(lpn)) {
            Some(Present { unit, .. }) => Found::At { unit },
            None => Found::Unmapped,
        }
    }

    fn is_mapped(&self, lpn: Lpn) -> bool {
        self.table.get(lpn).is_some()
    }

    fn next_mapped(&self, first: Lpn, end: Lpn) -> Lpn {
        self.table.known(first..end).find(|lpn| self.is_mapped(*lpn)).unwrap_or(end)
    }

    fn owner(&self, owner: Lpn) -> Lpn {
        if is_owned(owner) { unmarked(owner) } else { owner }
    }

    fn take_owed_probes(&mut self) -> u32 {
        self.owed.take()
    }

    fn trim(&mut self, media: &mut Media, first: Lpn, end: Lpn) -> u64 {
        self.settle_erased(media);
        // Of an address without a slot there is nothing to forget.
        let known: Vec<Lpn> = self.table.known(first..end).collect();
        let evicted = known.into_iter().map(|lpn| u64::from(self.evict(media, lpn))).sum();
        let owed = self.owed.take();
        media.look_up(owed);
        evicted
    }

    fn save_trims(&mut self, media: &mut Media, to: TrimTarget, owner: Waiter) -> Result<u32, NoSpace> {
        self.settle_erased(media);
        self.save_notes(media, to, owner)
    }

    fn trims_pending(&self) -> u32 {
        self.log.in_sram.len().div_ceil(self.log.per_unit()) as u32
    }

    fn trim_backlog(&self, otherwise: u32) -> u32 {
        otherwise.min(1)
    }

    fn trim_segment_units(&self) -> u32 {
        self.log.per_unit() as u32
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
        self.settle_erased(media);
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
        self.settle_erased(media);
        self.rewrite_page(media, place, frontier, cause, owner)
    }

    fn current_locations(&self, media: &Media, place: Place, pages: &mut Vec<Ppn>) -> bool {
        let owners = media.flash.oob.lpns(media.unit_at(place), self.units_per_page);
        let mut absent = false;
        for lpn in owners.iter().copied().filter(|owner| is_owned(*owner)).map(unmarked) {
            if self.log_number(lpn).is_some() {
                // Its notes may have gone on to any other.
                let in_use = self.log.units.iter().filter(|unit| unit.unit != UnitId::NONE);
                pages.extend(in_use.map(|unit| media.page_of(unit.unit)).filter(|page| *page != media.ppn_at(place)));
                continue;
            }
            match self.table.get(lpn) {
                Some(Present { unit, .. }) => pages.push(media.page_of(unit)),
                None => absent = true,
            }
        }
        absent
    }

    fn recover(&mut self, media: &mut Media, reads: &mut RecoveryReads) {
        self.rebuild(media, reads);
    }

    fn finish_recovery(&mut self, media: &mut Media, _: &mut RecoveryReads) -> RecoveryStep {
        for block in std::mem::take(&mut self.stale_logs) {
            media.pool.set_trimmed(block);
        }
        RecoveryStep::Done
    }

    fn metadata_units(&self) -> u32 {
        self.log.units.len() as u32
    }

    fn check_space(&self, config: &DriveConfig, usable: &[u32]) -> Result<(), DriveError> {
        let fits = config.check_frontier_space(usable, self.metadata_units());
        fits.map_err(|why| keys::with_area(config, why))
    }

    fn check(&self, media: &Media) -> Vec<Check> {
        let valid: u64 = self.valid.as_slice().iter().map(|word| u64::from(word.count_ones())).sum();
        let superblocks = || 0..media.pool.superblocks_count();
        let kept: u64 = superblocks().map(|block| u64::from(media.pool.valid(block))).sum();
        let counted: u64 = superblocks().map(|block| u64::from(media.pool.loose(block))).sum();
        let loose = if self.counts_clean { counted } else { self.loose_units };
        let (mut mapped, mut wrong, mut copies) = (0_u64, 0_u64, 0_u64);
        for slot in self.table.all() {
            copies += u64::from(slot.copies);
            if slot.unit != UnitId::NONE {
                mapped += 1;
                wrong += u64::from(unmarked(media.flash.oob.lpn(slot.unit)) != slot.lpn || !self.is_valid(slot.unit));
            }
        }
        for (number, log_unit) in (0..).zip(&self.log.units).filter(|(_, log_unit)| log_unit.unit != UnitId::NONE) {
            mapped += 1;
            let owner = media.flash.oob.lpn(log_unit.unit);
            wrong += u64::from(owner != Lpn(self.logical_units + number) || !self.is_valid(log_unit.unit));
        }
        let on_flash = self.copies_on_flash(media);
        vec![
            Check {
                name: "valid_pages_equal_mapped_pages",
                passed: mapped == valid
                    && valid == kept + loose
                    && (kept, loose) == (self.kept_units, self.loose_units),
                detail: format!("{mapped} units mapped, {valid} valid, {kept} to be moved and {loose} to be dropped"),
            },
            Check {
                name: "oob_owner_equals_map_entry",
                passed: wrong == 0,
                detail: format!("{wrong} of {mapped} mapped units are owned by another LPN on flash"),
            },
            Check {
                name: "copies_on_flash_are_counted",
                // Programs in flight are counted already.
                passed: copies >= on_flash && self.log.agrees(),
                detail: format!("{copies} copies counted, {on_flash} on flash; notes {}", self.log.facts.len()),
            },
        ]
    }

    fn limited_room(&self) -> Option<&dyn LimitedRoom> {
        self.room.as_ref().map(|_| self as &dyn LimitedRoom)
    }

    fn settle_room(&mut self, media: &Media) {
        self.settle_returning(media);
    }

    fn in_flight_work(&mut self, media: &Media) -> Vec<&'static str> {
        let mut work = media.list_work();
        work.extend(self.area.as_ref().and_then(Area::work));
        work
    }

    fn memory(&self) -> Vec<(&'static str, u64)> {
        let slots = self.table.len() as u64;
        let mut memory = vec![
            ("mapping_bytes", slots * SLOT_BYTES),
            ("copy_count_bytes", slots * COPIES_BYTES),
            ("valid_bitmap_bytes", self.valid.bytes()),
        ];
        // Copies in settled blocks are counted beside all copies.
        memory.extend(self.area.as_ref().map(|area| ("checkpoint_bytes", slots * COPIES_BYTES + area.bytes())));
        memory
    }

    fn design(&self, media: &Media) -> Vec<(String, f64)> {
        let (looks, slots) = self.looks.get();
        let counters = &self.counters;
        let mut metrics: Vec<(String, f64)> = [
            ("blocks_dropped", counters.dropped),
            ("blocks_evicted", counters.evicted),
            ("blocks_cleaned", counters.cleaned),
            ("blocks_written_clean", counters.written_clean),
            ("units_moved", counters.moved),
            ("log_units", counters.log_units),
            ("log_notes_again", counters.notes_again),
            ("partial_page_writes", counters.partial_page_writes),
            ("map_slots_used", u64::from(self.table.used())),
        ]
        .into_iter()
        .map(|(name, count)| (name.to_string(), count as f64))
        .collect();
        if let Some(wear) = self.checkpoint_wear(media) {
            let of_area = [
                ("checkpoints", counters.checkpoints),
                ("checkpoint_map_pages", counters.checkpoint_map_pages),
                ("checkpoint_state_pages", counters.checkpoint_state_pages),
                ("checkpoint_record_pages", counters.checkpoint_record_pages),
                ("checkpoint_erases", counters.checkpoint_erases),
                ("checkpoint_erases_max", u64::from(wear)),
            ];
            metrics.extend(of_area.map(|(name, count)| (name.to_string(), count as f64)));
        }
        metrics.push(("map_probes_mean".to_string(), if looks == 0 { 0.0 } else { slots as f64 / looks as f64 }));
        metrics.extend(media.list_metrics());
        metrics
    }

    fn reset_counters(&mut self) {
        self.counters = Counters::default();
        self.looks.set((0, 0));
    }

    fn save(&self, to: &mut dyn Write) -> io::Result<()> {
        self.save_to(to)?;
        let units: Vec<UnitId> = self.log.units.iter().map(|unit| unit.unit).collect();
        units.save_to(to)?;
        self.log.remembered().save_to(to)
    }

    fn restore(&mut self, media: &mut Media, from: &mut dyn Read) -> io::Result<()> {
        self.load_from(from)?;
        let (mut units, mut facts): (Vec<UnitId>, Vec<Remembered>) = (Vec::new(), Vec::new());
        units.load_from(from)?;
        facts.load_from(from)?;
        self.accept(media, &units, &facts)
    }

    fn checkpoints(&mut self) -> Option<&mut dyn Checkpoints> {
        if self.area.is_some() { Some(self) } else { None }
    }

    fn commands(&mut self) -> Option<&mut dyn Commands> {
        Some(self)
    }
}

saved!(Ssc: table, allocator);

impl Ssc {
    /// Copies of blocks that flash has.
    fn copies_on_flash(&self, media: &Media) -> u64 {
        let blocks = (0..media.flash.geometry().blocks()).map(BlockId);
        let good = blocks.filter(|block| !media.flash.blocks.get(*block).bad);
        let of_block = |block: BlockId| match self.emptied.get(&block.0) {
            // Not heard of yet: it may have been erased.
            Some((erases, owners)) if media.flash.blocks.get(block).erases != *erases => {
                owners.len() + self.owners_in(media, block).len()
            }
            _ => self.owners_in(media, block).len(),
        };
        let bad: usize = self
            .emptied
            .iter()
            .filter(|(block, _)| media.flash.blocks.get(BlockId(**block)).bad)
            .map(|(_, (_, owners))| owners.len())
            .sum();
        (good.map(of_block).sum::<usize>() + bad) as u64
    }
}

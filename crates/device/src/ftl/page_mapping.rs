//! The base of small designs: a mapping of whole pages with a default for all but the table.
//!
//! ```text
//! the design's table:  lookup, update                     where each unit is
//! what stands here:    write, relocate, rewrite, trims, recovery, checks
//! Media:               frontiers, pins, order, counting
//! ```
//!
//! A design implements [`PageMapping`] and is an [`Ftl`] by that. A mapping unit is a page. Whatever the table is, every page
//! names its unit in the OOB area, and recovery finds the newest copies there.

use std::io::{self, Read, Write};

use ssdlab_base::{Rng, Saved, damaged, saved};
use ssdlab_flash::{BlockId, Cause, DieId, Lpn, NONE, Ppn, UnitId};

use super::allocator::Allocator;
use super::durable_trims::DurableTrims;
use super::oob_recovery::OnePlace;
use super::trims::TrimState;
use super::whole_pages::{self, Page};
use super::{Found, Ftl, NoSpace, Relocated, TrimTarget, UnitWrite, full_mask};
use crate::media::{Frontier, Media, Place};
use crate::recovery_reads::RecoveryReads;
use crate::waiter::Waiter;
use crate::{Check, DriveConfig, DriveError};

/// What every mapping of whole pages has beside its table.
pub(super) struct Common {
    trims: TrimState,
    /// The planes that take turns.
    allocator: Allocator,
    user_units: u32,
    full_mask: u64,
}

saved!(Common: trims, allocator);

impl Common {
    pub(super) fn new(config: &DriveConfig) -> Common {
        let (user_units, unit_bytes) = (config.user_units(), config.ftl.mapping_unit);
        Common {
            trims: TrimState::new(user_units, unit_bytes),
            allocator: Allocator::new(config),
            user_units,
            full_mask: full_mask(unit_bytes),
        }
    }

    /// Entries of the table: the user's units, and the records of trims behind them.
    pub(super) fn entries(&self) -> u32 {
        self.user_units + self.trims.segments()
    }

    /// Bytes that [`Common::new`] and a table of so many bytes an entry take.
    pub(super) fn simulator_bytes(config: &DriveConfig, entry_bytes: u64) -> u64 {
        let (user_units, unit_bytes) = (config.user_units(), config.ftl.mapping_unit);
        let entries = u64::from(user_units) + u64::from(user_units.div_ceil(unit_bytes * 8));
        entries * entry_bytes + TrimState::simulator_bytes(user_units, unit_bytes)
    }
}

/// A mapping of whole pages.
pub(super) trait PageMapping: Saved + Send {
    /// What stands beside the table.
    fn common(&self) -> &Common;

    /// What stands beside the table, to change.
    fn common_mut(&mut self) -> &mut Common;

    /// Where a unit is; [`UnitId::NONE`] where it holds nothing. There are [`Common::entries`] units.
    fn lookup(&self, lpn: Lpn) -> UnitId;

    /// A unit is somewhere else from now on, or, with [`UnitId::NONE`], holds nothing.
    fn update(&mut self, lpn: Lpn, unit: UnitId);

    /// RAM that a real drive would need for the table.
    fn table_bytes(&self) -> u64;

    /// The group whose frontier of a stream takes the next page of a unit; `None` when no group it may use has a page.
    fn choose(&mut self, media: &Media, lpn: Lpn, stream: u16) -> Option<u32> {
        self.common_mut().allocator.choose(media, lpn, Frontier::Host(stream))
    }

    /// The design's own metrics by name, for results.
    fn metrics(&self) -> Vec<(String, f64)> {
        Vec::new()
    }

    /// Forgets what was counted.
    fn reset_metrics(&mut self) {}

    /// Refuses a restored table that the rest of the design cannot work with. Entries are checked already.
    fn accept(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Refuses a drive whose mapping unit is no page, for the design `name`.
pub(super) fn check(config: &DriveConfig, name: &str) -> Result<(), DriveError> {
    let (unit, page) = (config.ftl.mapping_unit, config.flash.geometry.page_bytes);
    if unit == page {
        return Ok(());
    }
    let reason = format!("{unit}: the design '{name}' maps pages, here of {page} bytes");
    Err(DriveError { key: "ftl.mapping_unit".to_string(), reason })
}

/// Makes a drawn drive one that [`check`] accepts.
pub(super) fn draw(config: &mut DriveConfig, _: &mut Rng) {
    let page = config.flash.geometry.page_bytes.next_power_of_two();
    let units = config.buffer.bytes / u64::from(config.ftl.mapping_unit);
    config.buffer.bytes = units * u64::from(page);
    (config.flash.geometry.page_bytes, config.ftl.mapping_unit) = (page, page);
}

/// Makes a drive of a handful of pages one that [`check`] accepts.
pub(super) fn handful(config: &mut DriveConfig, _: bool) {
    config.flash.geometry.page_bytes = config.ftl.mapping_unit;
}

/// The unit of a page, if the page is the unit's current one.
fn current<M: PageMapping>(mapping: &M, media: &Media, unit: UnitId) -> Option<Lpn> {
    let lpn = media.flash.oob.lpn(unit);
    (lpn != Lpn::NONE && !lpn.is_of_stripe() && mapping.lookup(lpn) == unit).then_some(lpn)
}

/// A unit goes to a page that was just given out; returns where it was.
fn remap<M: PageMapping>(mapping: &mut M, media: &mut Media, lpn: Lpn, place: Place) -> UnitId {
    let (old, unit) = (mapping.lookup(lpn), media.unit_at(place));
    debug_assert_ne!(old, unit, "unit {lpn} goes to {place:?}, and is there");
    mapping.update(lpn, unit);
    if old == UnitId::NONE {
        mapping.common_mut().trims.mapped(lpn);
        mapping.note_revival(media, lpn);
    } else {
        media.pool.drop_valid(media.block_of(old));
    }
    media.pool.add_valid(place.block);
    old
}

/// A frontier, and what is written there for whom.
#[derive(Clone, Copy)]
struct Target {
    frontier: Frontier,
    cause: Cause,
    owner: Waiter,
}

/// Writes a unit to a page that was just given out, completed from where it was.
fn write_to<M: PageMapping>(mapping: &mut M, media: &mut Media, place: Place, write: &UnitWrite<'_>, to: Target) {
    let old = remap(mapping, media, write.lpn, place);
    let block = if old == UnitId::NONE { BlockId::NONE } else { media.block_of(old) };
    let (source, pins) = if old == UnitId::NONE { (Ppn::NONE, &[][..]) } else { (media.page_of(old), &[block][..]) };
    media.flash.oob.number_write(media.unit_at(place));
    let page = Page { place, lpn: write.lpn, source, pins, frontier: to.frontier };
    whole_pages::write_page(media, write, &page, to.cause, to.owner);
}

/// Moves a unit from its current page to one that was just given out.
fn move_to<M: PageMapping>(mapping: &mut M, media: &mut Media, lpn: Lpn, place: Place, to: Target) {
    let old = remap(mapping, media, lpn, place);
    let source = media.page_of(old);
    let pins = [media.block_of_page(source)];
    whole_pages::copy_page(media, &Page { place, lpn, source, pins: &pins, frontier: to.frontier }, to.cause, to.owner);
}

impl<M: PageMapping> DurableTrims for M {
    fn trims(&self) -> &TrimState {
        &self.common().trims
    }

    fn trims_mut(&mut self) -> &mut TrimState {
        &mut self.common_mut().trims
    }

    fn user_units(&self) -> u32 {
        self.common().user_units
    }

    fn is_settled(&self, media: &Media, lpn: Lpn) -> bool {
        let unit = self.lookup(lpn);
        unit == UnitId::NONE || media.is_on_flash(media.page_of(unit))
    }

    fn unmap(&mut self, media: &mut Media, lpn: Lpn) {
        let block = media.block_of(self.lookup(lpn));
        self.update(lpn, UnitId::NONE);
        media.pool.drop_valid(block);
        media.pool.set_trimmed(block);
    }

    fn write_record(
        &mut self,
        media: &mut Media,
        lpn: Lpn,
        words: Box<[u64]>,
        to: TrimTarget,
        owner: Waiter,
    ) -> Result<(), NoSpace> {
        let (group, frontier) = match to {
            TrimTarget::Host => (self.choose(media, lpn, 0).ok_or(NoSpace)?, Frontier::Host(0)),
            TrimTarget::Gc(group) => (group, Frontier::Gc),
        };
        let place = media.take_page(group, frontier).ok_or(NoSpace)?;
        media.flash.oob.put_record(media.unit_at(place), words);
        let sector_data = vec![0; media.flash.store.unit_data_bytes()];
        let write = UnitWrite { lpn, mask: self.common().full_mask, sector_data: &sector_data, expendable: false };
        write_to(self, media, place, &write, Target { frontier, cause: Cause::Metadata, owner });
        Ok(())
    }
}

impl<M: PageMapping> OnePlace for M {
    fn place_of(&self, lpn: Lpn) -> UnitId {
        self.lookup(lpn)
    }

    fn found(&mut self, lpn: Lpn, unit: UnitId) {
        self.update(lpn, unit);
    }
}

impl<M: PageMapping> Ftl for M {
    fn write(
        &mut self,
        media: &mut Media,
        units: &[UnitWrite<'_>],
        stream: u16,
        cause: Cause,
        owner: Waiter,
    ) -> Result<(), NoSpace> {
        let [unit] = units else { unreachable!("{} units in a page of one", units.len()) };
        let group = self.choose(media, unit.lpn, stream).ok_or(NoSpace)?;
        let frontier = Frontier::Host(stream);
        let place = media.take_page(group, frontier).ok_or(NoSpace)?;
        write_to(self, media, place, unit, Target { frontier, cause, owner });
        Ok(())
    }

    fn first_die(&self, media: &Media, lpn: Lpn, mask: u64) -> Option<DieId> {
        let old = self.lookup(lpn);
        if mask != self.common().full_mask && old != UnitId::NONE && media.is_on_flash(media.page_of(old)) {
            return Some(media.flash.die_of(media.block_of(old)));
        }
        self.common().allocator.next_die(media, lpn)
    }

    fn pages_left_in_stripe(&self, media: &Media) -> u32 {
        self.common().allocator.pages_left_in_stripe(media)
    }

    fn find(&self, lpn: Lpn) -> Found {
        match self.lookup(lpn) {
            UnitId::NONE => Found::Unmapped,
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
        self.common().trims.pending()
    }

    fn trim_segment_units(&self) -> u32 {
        self.common().trims.segment_units()
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
        let (group, end, frontier) = (media.pool.group_of(victim), media.units_per_superblock(), Frontier::Gc);
        let mut started = 0;
        for at in cursor..end {
            if media.pool.valid(victim) == 0 {
                break;
            }
            let unit = media.unit_in(victim, at);
            let Some(lpn) = current(self, media, unit) else { continue };
            if started == limit {
                return Relocated { cursor: at, started, stuck: false };
            }
            let Some(place) = media.take_page(group, frontier) else {
                return Relocated { cursor: at, started, stuck: true };
            };
            move_to(self, media, lpn, place, Target { frontier, cause, owner });
            started += 1;
        }
        Relocated { cursor: end, started, stuck: false }
    }

    fn rewrite(
        &mut self,
        media: &mut Media,
        place: Place,
        frontier: Frontier,
        cause: Cause,
        owner: Waiter,
    ) -> Result<bool, NoSpace> {
        let unit = media.unit_at(place);
        let Some(lpn) = current(self, media, unit) else { return Ok(false) };
        let own = media.group_of(place.block);
        // What relocation moved goes where the host may write when its own group has no room.
        let (group, frontier) = match frontier {
            Frontier::Host(stream) => (self.choose(media, lpn, stream).ok_or(NoSpace)?, frontier),
            _ if media.has_page(own, Frontier::Gc) => (own, Frontier::Gc),
            _ => (self.choose(media, lpn, 0).ok_or(NoSpace)?, Frontier::Host(0)),
        };
        let target = media.take_page(group, frontier).ok_or(NoSpace)?;
        move_to(self, media, lpn, target, Target { frontier, cause, owner });
        Ok(true)
    }

    fn current_locations(&self, media: &Media, place: Place, pages: &mut Vec<Ppn>) -> bool {
        let lpn = media.flash.oob.lpn(media.unit_at(place));
        if lpn == Lpn::NONE || lpn.is_of_stripe() {
            return false;
        }
        let unit = self.lookup(lpn);
        pages.extend((unit != UnitId::NONE).then(|| media.page_of(unit)));
        unit == UnitId::NONE
    }

    fn recover(&mut self, media: &mut Media, reads: &mut RecoveryReads) {
        self.find_units(media, reads);
        for lpn in Lpn::each(Lpn(0)..Lpn(self.common().entries())) {
            let unit = self.lookup(lpn);
            if unit != UnitId::NONE {
                self.common_mut().trims.mapped(lpn);
                media.pool.add_valid(media.block_of(unit));
            }
        }
    }

    fn metadata_units(&self) -> u32 {
        self.common().trims.segments()
    }

    fn check(&self, media: &Media) -> Vec<Check> {
        let counted: u64 = (0..media.pool.superblocks_count()).map(|block| u64::from(media.pool.valid(block))).sum();
        let (mut mapped, mut wrong) = (0_u64, 0_u64);
        for lpn in Lpn::each(Lpn(0)..Lpn(self.common().entries())) {
            let unit = self.lookup(lpn);
            mapped += u64::from(unit != UnitId::NONE);
            wrong += u64::from(unit != UnitId::NONE && media.flash.oob.lpn(unit) != lpn);
        }
        vec![
            Check {
                name: "valid_pages_equal_mapped_pages",
                passed: mapped == counted,
                detail: format!("{mapped} units mapped, {counted} counted in blocks"),
            },
            Check {
                name: "oob_owner_equals_map_entry",
                passed: wrong == 0,
                detail: format!("{wrong} of {mapped} mapped units are owned by another LPN on flash"),
            },
        ]
    }

    fn memory(&self) -> Vec<(&'static str, u64)> {
        vec![("mapping_bytes", self.table_bytes()), ("trim_bitmap_bytes", self.common().trims.bytes())]
    }

    fn design(&self, _: &Media) -> Vec<(String, f64)> {
        self.metrics()
    }

    fn reset_counters(&mut self) {
        self.reset_metrics();
    }

    fn save(&self, to: &mut dyn Write) -> io::Result<()> {
        self.save_to(to)
    }

    fn restore(&mut self, media: &mut Media, from: &mut dyn Read) -> io::Result<()> {
        self.load_from(from)?;
        let (pages, entries) = (media.flash.geometry().pages(), self.common().entries());
        let is_known = |lpn: Lpn| lpn == Lpn::NONE || lpn.is_of_stripe() || lpn.0 < entries;
        if !UnitId::each(UnitId(0)..UnitId(pages as u32)).all(|unit| is_known(media.flash.oob.lpn(unit))) {
            return Err(damaged("an OOB area names a page that the drive does not have"));
        }
        let common = self.common_mut();
        common.allocator.accept()?;
        common.trims.accept()?;
        for lpn in Lpn::each(Lpn(0)..Lpn(entries)) {
            let unit = self.lookup(lpn);
            if self.common().trims.is_mapped(lpn) != (unit != UnitId::NONE) {
                return Err(damaged("the map and its bitmap do not agree"));
            }
            if unit == UnitId::NONE {
                continue;
            }
            if u64::from(unit.0) >= pages {
                return Err(damaged("a map entry points behind the flash"));
            }
            let place = media.place_of(unit);
            let is_own = media.flash.oob.lpn(unit) == lpn && media.pool.superblocks.of(place.block) != NONE;
            if !is_own || !media.flash.is_written(place.block, place.page) {
                return Err(damaged("a map entry points to a page of another unit, or to one that was never written"));
            }
            media.pool.add_valid(place.block);
            let user_units = self.common().user_units;
            if lpn.0 >= user_units {
                let record = media.flash.oob.record(unit);
                self.common_mut().trims.accept_record(record, lpn.0 - user_units, user_units)?;
            }
        }
        self.accept()
    }
}

//! Programs of units: those of the host, those that collection moves, and those of a page whose program failed.

use arrayvec::ArrayVec;
use ssdlab_flash::{BlockId, Cause, Lpn, Ppn, UnitId};

use super::table::Present;
use super::{CLEAN, Ssc, unmarked};
use crate::ftl::page_of_units::{Moving, PageOfUnits, Purpose, rewritten_to};
use crate::ftl::{MAX_UNITS, NoSpace, Relocated, UnitWrite};
use crate::media::{Frontier, Media, Place};
use crate::seeded::{Bug, seeded};
use crate::waiter::Waiter;

impl Ssc {
    /// A block goes to a unit that the next program writes; returns where it was.
    fn remap(&mut self, media: &mut Media, lpn: Lpn, unit: UnitId, clean: bool) -> Option<Present> {
        let old = self.table.set(lpn, unit, clean);
        self.table.add_copy(lpn);
        match old {
            Some(old) => {
                self.invalidate(media, old.unit, self.is_loose(old.clean));
                if self.is_loose(clean) && !self.is_loose(old.clean) {
                    self.may_return(media, lpn);
                }
            }
            None => self.log.revived(lpn.0, media.sequence() + u64::from(seeded(Bug::NoteOutlivesEviction))),
        }
        if !self.is_loose(clean) {
            self.is_kept_again(lpn);
        }
        self.set_valid(media, unit, self.is_loose(clean));
        old
    }

    /// Programs units of the host into `place`: completes partial ones, remaps all, and keeps the order of what they supersede.
    pub(super) fn write_at(&mut self, media: &mut Media, place: Place, units: &[UnitWrite<'_>], purpose: Purpose) {
        let most = self.units_per_page as usize;
        debug_assert!((1..=most).contains(&units.len()), "{} units go to a page of {most}", units.len());
        let first = media.unit_at(place);
        let mut owners: ArrayVec<Lpn, MAX_UNITS> = ArrayVec::new();
        let mut page = PageOfUnits::default();
        let mut purpose = purpose;
        for (index, write) in units.iter().enumerate() {
            let unit = first + index as u32;
            let current = self.look_up(write.lpn);
            let before = current.map_or(UnitId::NONE, |present| present.unit);
            // What is written anew as it is stays what it was.
            let clean = write.expendable || write.mask == 0 && current.is_some_and(|present| present.clean);
            let keeps_mark = seeded(Bug::MarkKept) && current.is_some_and(|present| present.clean);
            let is_marked = clean && !seeded(Bug::MarkMissing) || keeps_mark;
            owners.push(if is_marked { Lpn(write.lpn.0 | CLEAN) } else { write.lpn });
            self.counters.partial_page_writes += u64::from(write.mask != self.full_mask);
            if page.complete(media, unit, before, write, self.full_mask, purpose.frontier) {
                purpose.cause = Cause::ReadModifyWrite;
            }
            if let Some(old) = self.remap(media, write.lpn, unit, clean) {
                page.pin(media.block_of(old.unit));
            }
        }
        let owed = self.owed.take();
        media.look_up(owed);
        page.program(media, place, &owners, purpose, Ppn::NONE);
    }

    /// Moves dirty units of a victim from `cursor` on, and drops clean ones.
    pub(super) fn relocate_units(
        &mut self,
        media: &mut Media,
        victim: u32,
        cursor: u32,
        limit: u32,
        cause: Cause,
        owner: Waiter,
    ) -> Relocated {
        let (block, end) = (BlockId(victim), media.units_per_superblock());
        assert!(cursor <= end, "relocation of {victim} begins at unit {cursor} of {end}");
        let first = media.unit_at(Place { block, page: 0 });
        let (group, frontier) = (media.pool.group_of(victim), Frontier::Gc);
        let mut cursor = cursor;
        let mut started = 0;
        while started < limit {
            let (sources, next) = self.gather(media, first, cursor, end);
            if sources.is_empty() {
                self.is_emptied(media, block);
                return Relocated { cursor: end, started, stuck: false };
            }
            let Some(place) = media.take_page(group, frontier) else {
                return Relocated { cursor: sources[0] - first, started, stuck: true };
            };
            self.move_units(media, &sources, place, Purpose { cause, frontier, owner }, false);
            let empty = self.units_per_page as usize - sources.len();
            media.relocation_padding_bytes += empty as u64 * u64::from(media.unit_bytes);
            self.counters.moved += sources.len() as u64;
            cursor = next;
            started += 1;
        }
        if cursor == end {
            // The last unit moved with the last program that may start now.
            self.is_emptied(media, block);
        }
        Relocated { cursor, started, stuck: false }
    }

    /// Nothing of a victim is current any more. All copies stay counted until the erase.
    fn is_emptied(&mut self, media: &mut Media, victim: BlockId) {
        assert_eq!(media.pool.valid(victim.0), 0, "victim {victim} is emptied, and holds what is to be kept");
        let erases = media.flash.blocks.get(victim).erases;
        let owners = self.owners_in(media, victim);
        self.erase_is_near(media, victim.0, &owners);
        self.emptied.insert(victim.0, (erases, owners));
    }

    /// The next units of a victim that have to move, up to a page of them, and where to go on. Clean units before them are dropped.
    fn gather(
        &mut self,
        media: &mut Media,
        first: UnitId,
        cursor: u32,
        end: u32,
    ) -> (ArrayVec<UnitId, MAX_UNITS>, u32) {
        let mut sources: ArrayVec<UnitId, MAX_UNITS> = ArrayVec::new();
        let mut at = first + cursor;
        while sources.len() < self.units_per_page as usize {
            let Some(unit) = self.next_valid(at, first + end) else { return (sources, end) };
            at = unit + 1;
            let lpn = unmarked(media.flash.oob.lpn(unit));
            let is_log = self.log_number(lpn).is_some();
            if !is_log && self.table.get(lpn).is_some_and(|present| self.is_dropped(present.clean)) {
                self.drop_clean(media, lpn);
            } else {
                sources.push(unit);
            }
        }
        (sources, at - first)
    }

    /// Reads the pages of `sources` and programs their units into `place`.
    fn move_units(&mut self, media: &mut Media, sources: &[UnitId], place: Place, purpose: Purpose, from_ram: bool) {
        let first = media.unit_at(place);
        let per_page = self.units_per_page;
        assert!(!sources.is_empty(), "a page of nothing is moved to {place:?}");
        assert!(sources.len() <= per_page as usize, "{} units are moved to {place:?}, of {per_page}", sources.len());
        let mut owners: ArrayVec<Lpn, MAX_UNITS> = ArrayVec::new();
        let is_log = |owner: Lpn| unmarked(owner).0 >= self.logical_units;
        let mut moving = Moving::new(media, sources, purpose, from_ram, self.copyback, is_log);
        for (index, source) in sources.iter().enumerate() {
            let lpn = unmarked(media.flash.oob.lpn(*source));
            let log_number = self.log_number(lpn);
            let unit = first + index as u32;
            moving.bring(media, index, unit, log_number.is_some());
            if let Some(number) = log_number {
                let log_unit = &mut self.log.units[number as usize];
                assert_eq!(log_unit.unit, *source, "log unit {number} is moved from where it is not");
                log_unit.unit = unit;
                self.invalidate(media, *source, false);
                self.set_valid(media, unit, false);
                owners.push(lpn);
                continue;
            }
            let present = self.look_up(lpn).expect("a unit that is moved is mapped");
            let old = self.remap(media, lpn, unit, present.clean);
            assert_eq!(old.map(|old| old.unit), Some(*source), "block {lpn} is moved from where it is not");
            let is_marked = present.clean && !seeded(Bug::MovedWithoutMark);
            owners.push(if is_marked { Lpn(lpn.0 | CLEAN) } else { lpn });
        }
        let owed = self.owed.take();
        media.look_up(owed);
        moving.program(media, place, &owners);
    }

    /// The units of a page whose program failed go to another page, straight from RAM. False when none is current.
    pub(super) fn rewrite_page(
        &mut self,
        media: &mut Media,
        place: Place,
        frontier: Frontier,
        cause: Cause,
        owner: Waiter,
    ) -> Result<bool, NoSpace> {
        let first = media.unit_at(place);
        let units = UnitId::each(first..first + self.units_per_page);
        let sources: ArrayVec<UnitId, MAX_UNITS> = units.filter(|unit| self.is_valid(*unit)).collect();
        if sources.is_empty() {
            return Ok(false);
        }
        let lpn = unmarked(media.flash.oob.lpn(sources[0]));
        let choose = |media: &Media, to| self.allocator.choose(media, lpn, to);
        let (group, frontier) = rewritten_to(media, media.group_of(place.block), frontier, choose)?;
        let target = media.take_page(group, frontier).ok_or(NoSpace)?;
        self.move_units(media, &sources, target, Purpose { cause, frontier, owner }, true);
        Ok(true)
    }
}

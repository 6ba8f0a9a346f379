//! Pages of several units on their way to a program: what designs that map units do for each of them, whatever their maps are.

use arrayvec::ArrayVec;
use ssdlab_flash::{BlockId, Cause, Lpn, OpId, OpKind, Ppn, UnitId};

use super::{MAX_UNITS, NoSpace, UnitWrite};
use crate::media::{Frontier, Media, Place, Programming, Source};
use crate::seeded::{Bug, seeded};
use crate::waiter::Waiter;

/// What a program of units is for, and where it goes.
#[derive(Clone, Copy)]
pub(super) struct Purpose {
    pub(super) cause: Cause,
    pub(super) frontier: Frontier,
    pub(super) owner: Waiter,
}

/// What a program of units waits for, and the blocks that it keeps from being erased.
#[derive(Default)]
pub(super) struct PageOfUnits {
    pins: ArrayVec<BlockId, MAX_UNITS>,
    after: ArrayVec<OpId, MAX_UNITS>,
    taken: ArrayVec<UnitId, MAX_UNITS>,
}

impl PageOfUnits {
    /// Stores what the host writes of a unit, and takes what that lacks from the unit before, which may be [`UnitId::NONE`]. Returns
    /// whether anything was lacking.
    #[inline]
    pub(super) fn complete(
        &mut self,
        media: &mut Media,
        unit: UnitId,
        before: UnitId,
        write: &UnitWrite<'_>,
        full_mask: u64,
        frontier: Frontier,
    ) -> bool {
        let old = if seeded(Bug::OldSectorsDropped) { UnitId::NONE } else { before };
        media.store_over(unit, old, write.mask, write.sector_data);
        media.flash.oob.number_write(unit);
        if write.mask == 0 && frontier != Frontier::Log {
            // The host did not write it now.
            media.flash.oob.keep_number(before, unit);
        }
        let mut source = UnitId::NONE;
        let is_partial = write.mask != full_mask && before != UnitId::NONE;
        if is_partial {
            let missing = (full_mask & !write.mask).count_ones() * 512;
            let lost = media.flash.oob.is_poisoned(before);
            match media.fetch(media.page_of(before), missing, Cause::ReadModifyWrite) {
                Source::Here | Source::Read { failed: false } if !lost => {}
                Source::Here | Source::Read { .. } => media.flash.lose(unit),
                Source::After { op, from, .. } => {
                    source = from.first_unit(media.units_per_page) + before % media.units_per_page;
                    if !self.after.contains(&op) {
                        self.after.push(op);
                    }
                    if lost {
                        media.flash.lose(unit);
                    }
                }
            }
        }
        self.taken.push(source);
        is_partial
    }

    /// A block holds a copy that the page supersedes.
    #[inline]
    pub(super) fn pin(&mut self, block: BlockId) {
        self.pins.push(block);
    }

    /// Programs the page, as a copyback of the page `source` unless that is [`Ppn::NONE`].
    #[inline]
    pub(super) fn program(&self, media: &mut Media, place: Place, owners: &[Lpn], purpose: Purpose, source: Ppn) {
        let Purpose { cause, frontier, owner } = purpose;
        let kind = if source == Ppn::NONE { OpKind::Program } else { OpKind::Copyback };
        let (pins, after, taken) = (&self.pins[..], &self.after[..], &self.taken[..]);
        media.program(place, owners, Programming { kind, cause, frontier, owner, pins, after, taken, source });
    }
}

/// Units that are moved to one page.
pub(super) struct Moving<'a> {
    sources: &'a [UnitId],
    purpose: Purpose,
    /// The controller still holds the data: nothing is read.
    from_ram: bool,
    copyback: bool,
    page: PageOfUnits,
    last_page: Ppn,
    read_failed: bool,
}

impl<'a> Moving<'a> {
    /// Units in their order, inside the chips if `may_copy_back` and they are a whole page without metadata; metadata, which is in RAM as
    /// well, are those of owners from `first_of_metadata` on.
    #[inline]
    pub(super) fn new(
        media: &Media,
        sources: &'a [UnitId],
        purpose: Purpose,
        from_ram: bool,
        may_copy_back: bool,
        is_metadata: impl Fn(Lpn) -> bool,
    ) -> Moving<'a> {
        let per_page = media.units_per_page;
        debug_assert!(
            (1..=per_page as usize).contains(&sources.len()),
            "{} units are moved to a page of {per_page}",
            sources.len()
        );
        let copyback = may_copy_back
            && !from_ram
            && purpose.frontier == Frontier::Gc
            && sources.len() == per_page as usize
            && sources[0] % per_page == 0
            && sources[sources.len() - 1] - sources[0] + 1 == per_page
            && media.flash.blocks.readable(media.page_of(sources[0]))
            && !sources.iter().any(|source| is_metadata(media.flash.oob.lpn(*source)));
        let page = PageOfUnits::default();
        Moving { sources, purpose, from_ram, copyback, page, last_page: Ppn::NONE, read_failed: false }
    }

    /// Brings the unit of a number to `to`: reads its page unless that is in RAM, and copies what it holds. What is metadata is in RAM as
    /// well: it is never lost, and not moved where it could be.
    #[inline]
    pub(super) fn bring(&mut self, media: &mut Media, number: usize, to: UnitId, is_metadata: bool) {
        let source = self.sources[number];
        let from = media.place_of(source);
        self.page.pin(from.block);
        let page = media.page_of(source);
        // A page whose program failed is still in RAM.
        let read = !self.copyback && !self.from_ram && media.flash.blocks.readable(page);
        if page != self.last_page && read {
            self.last_page = page;
            if media.flash.timed() {
                // Only what is moved crosses the channel.
                let others = self.sources[number..].iter();
                let page_units = others.take_while(|other| media.page_of(**other) == page).count();
                let bytes = page_units as u32 * media.unit_bytes;
                self.page.after.push(media.read(from, bytes, self.purpose.cause, Waiter::None));
            } else {
                self.read_failed = media.read_now(from, self.purpose.cause);
            }
        }
        let at_risk = read && !is_metadata;
        self.page.taken.push(if at_risk { source } else { UnitId::NONE });
        copy_unit(media, source, to);
        if self.purpose.frontier != Frontier::Log {
            media.flash.oob.has_final_name(to);
        }
        if self.read_failed && at_risk {
            media.flash.lose(to);
        }
    }

    /// Programs the page, all of whose units were brought.
    #[inline]
    pub(super) fn program(self, media: &mut Media, place: Place, owners: &[Lpn]) {
        debug_assert_eq!(self.page.taken.len(), self.sources.len(), "units that were brought to {place:?}");
        let source = if self.copyback { media.page_of(self.sources[0]) } else { Ppn::NONE };
        self.page.program(media, place, owners, self.purpose, source);
        if media.lists_owners() && !self.sources.iter().all(|source| media.is_durable(media.page_of(*source))) {
            media.is_only_copy(place);
        }
    }
}

/// What a unit holds goes with it: sector data, metadata records, and the mark of lost data.
#[inline]
pub(super) fn copy_unit(media: &mut Media, from: UnitId, to: UnitId) {
    if media.flash.store.sector_data_bytes() > 0 && !media.flash.store.copy(from, to) {
        media.flash.oob.poison(to);
    }
    media.flash.oob.carry(from, to);
    if seeded(Bug::MoveRenumbers) && media.flash.oob.keeps_origins() {
        media.flash.oob.number_write(to);
    }
}

/// The group and frontier that take again what was in a page of group `own`, whose program failed. What relocation moved goes where the
/// host may write when its own group has no room: erases that would make some can wait for a map page that names it.
pub(super) fn rewritten_to(
    media: &Media,
    own: u32,
    frontier: Frontier,
    choose: impl FnOnce(&Media, Frontier) -> Option<u32>,
) -> Result<(u32, Frontier), NoSpace> {
    let frontier =
        if frontier == Frontier::Gc && !media.has_page(own, frontier) { Frontier::Host(0) } else { frontier };
    let group = match frontier {
        Frontier::Gc | Frontier::Map => own,
        Frontier::Log => (0..media.pool.groups()).find(|group| media.has_page(*group, frontier)).ok_or(NoSpace)?,
        Frontier::Host(_) => choose(media, frontier).ok_or(NoSpace)?,
    };
    Ok((group, frontier))
}

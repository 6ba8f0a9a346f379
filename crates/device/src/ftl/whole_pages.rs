//! Pages on their way to flash, in designs that map whole pages to places of their own: the host's data, copies, padding.

use ssdlab_flash::{BlockId, Cause, Lpn, NONE, OpId, OpKind, Ppn, UnitId};

use super::{UnitWrite, full_mask};
use crate::media::{Frontier, Media, Place, Programming, Source};
use crate::waiter::Waiter;

/// A page to be programmed.
pub(super) struct Page<'a> {
    pub(super) place: Place,
    /// What its OOB area names; with [`Lpn::NONE`] the OOB area is left alone.
    pub(super) lpn: Lpn,
    /// The page that it takes data from; [`Ppn::NONE`] if none.
    pub(super) source: Ppn,
    /// Blocks that must not be erased before it is on flash.
    pub(super) pins: &'a [BlockId],
    /// The frontier that gave out its place.
    pub(super) frontier: Frontier,
}

impl Page<'_> {
    /// A page of a block that a design opened by itself: what is said of it differs from this.
    pub(super) const OF_OWN_BLOCK: Page<'static> = Page {
        place: Place { block: BlockId::NONE, page: 0 },
        lpn: Lpn::NONE,
        source: Ppn::NONE,
        pins: &[],
        frontier: Frontier::Host(0),
    };
}

/// Programs a page of the host's data, completed from `source` where some of its sectors are not given.
pub(super) fn write_page(media: &mut Media, write: &UnitWrite<'_>, page: &Page<'_>, mut cause: Cause, owner: Waiter) {
    let (unit, source) = (media.unit_at(page.place), page.source);
    let all = full_mask(media.unit_bytes);
    let completed = write.mask != all && source != Ppn::NONE;
    let old = if completed { source.sole_unit() } else { UnitId::NONE };
    media.store_over(unit, old, write.mask, write.sector_data);
    let mut after = NONE;
    if completed {
        cause = Cause::ReadModifyWrite;
        after = fetch(media, source, unit, (all & !write.mask).count_ones() * 512, cause, true);
        if media.flash.oob.is_poisoned(source.sole_unit()) {
            media.flash.lose(unit);
        }
    }
    program(media, page, after, cause, owner);
}

/// Programs what another page holds.
pub(super) fn copy_page(media: &mut Media, page: &Page<'_>, cause: Cause, owner: Waiter) {
    let (unit, source) = (media.unit_at(page.place), page.source);
    if media.flash.store.sector_data_bytes() > 0 && !media.flash.store.copy(source.sole_unit(), unit) {
        media.flash.oob.poison(unit);
    }
    // A page whose data was lost is programmed so that it fails its ECC: the mark is no part of the OOB area.
    media.flash.oob.carry(source.sole_unit(), unit);
    // What metadata says is in RAM as well: it is never lost.
    let at_risk = media.flash.oob.record(source.sole_unit()).is_none();
    let after = fetch(media, source, unit, media.unit_bytes, cause, at_risk);
    let source = if at_risk { source } else { Ppn::NONE };
    program(media, &Page { source, ..*page }, after, cause, owner);
}

/// Programs a page that holds nothing, so that the ones behind it can be programmed.
pub(super) fn pad(media: &mut Media, page: &Page<'_>, cause: Cause) {
    if media.flash.store.sector_data_bytes() > 0 {
        let sector_data = vec![0; media.flash.store.unit_data_bytes()];
        media.flash.store.write(media.unit_at(page.place), &sector_data);
    }
    media.padding_bytes += u64::from(media.unit_bytes);
    program(media, page, NONE, cause, Waiter::None);
}

/// Starts what brings the data of `source` for `unit`: the operation to wait for, or `NONE`. Where it is `at_risk`, a read that
/// fails loses it.
fn fetch(media: &mut Media, source: Ppn, unit: UnitId, bytes: u32, cause: Cause, at_risk: bool) -> OpId {
    match media.fetch(source, bytes, cause) {
        Source::After { op, .. } => return op,
        Source::Read { failed: true } if at_risk => media.flash.lose(unit),
        Source::Here | Source::Read { .. } => {}
    }
    NONE
}

/// Starts the program of a page whose data is there when `after` has ended.
pub(super) fn program(media: &mut Media, page: &Page<'_>, after: OpId, cause: Cause, owner: Waiter) {
    let one = [after];
    let after = if after == NONE { &[][..] } else { &one };
    let source = [page.source.sole_unit()];
    let taken = if after.is_empty() { &[][..] } else { &source };
    let (kind, frontier, pins) = (OpKind::Program, page.frontier, page.pins);
    let lpns = [page.lpn];
    let lpns = if page.lpn == Lpn::NONE { &[][..] } else { &lpns };
    media.program(
        page.place,
        lpns,
        Programming { kind, cause, frontier, owner, pins, after, taken, source: Ppn::NONE },
    );
}

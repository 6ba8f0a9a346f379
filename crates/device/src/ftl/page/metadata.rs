//! Units behind the user's that another design keeps with this mapping: they are mapped, moved and counted as all others are,
//! and have words of their own in place of a user's data.

use std::ops::Range;

use arrayvec::ArrayVec;
use ssdlab_flash::{Cause, Lpn, UnitId};

use super::relocation::Move;
use super::{PageFtl, UNMAPPED};
use crate::DriveConfig;
use crate::ftl::page_of_units::Purpose;
use crate::ftl::trims::TrimState;
use crate::ftl::{MAX_UNITS, UnitWrite};
use crate::media::{Frontier, Media, Place};
use crate::waiter::Waiter;

/// Words that take `units` units from `lpn` on.
pub(in crate::ftl) struct Words {
    pub(in crate::ftl) lpn: Lpn,
    pub(in crate::ftl) units: u32,
    pub(in crate::ftl) words: Content,
}

/// What they are.
pub(in crate::ftl) enum Content {
    Whole(Box<[u64]>),
    /// Those of another unit with some changed: where, and what is there.
    Over {
        from: UnitId,
        changes: Vec<(u32, u64)>,
    },
}

impl PageFtl {
    /// A mapping with `units` units of another design's metadata. It keeps no records of trims.
    pub(in crate::ftl) fn with_metadata(config: &DriveConfig, units: u32) -> PageFtl {
        let trims = TrimState::of_segments(config.mapped_units(), u32::MAX, units);
        PageFtl { records_trims: false, ..PageFtl::over(config, config.mapped_units(), trims) }
    }

    /// Whether there is a page for a write of the host to a unit.
    pub(in crate::ftl) fn has_page_for(&self, media: &Media, lpn: Lpn, stream: u16) -> bool {
        let groups = self.allocator.groups_for(lpn);
        groups.iter().any(|group| media.has_page(*group, Frontier::Host(stream)))
    }

    /// Where a unit is; `None` where it holds nothing.
    pub(in crate::ftl) fn unit_of(&self, lpn: Lpn) -> Option<UnitId> {
        Some(self.map.get(lpn.index())).filter(|unit| *unit != UNMAPPED)
    }

    /// The map entries of a range of units, as they are in a real map: all ones where nothing is.
    pub(in crate::ftl) fn entries(&self, range: Range<Lpn>) -> &[UnitId] {
        &self.map.as_slice()[range.start.index()..range.end.index()]
    }

    /// Whether a physical unit is current.
    pub(in crate::ftl) fn is_current(&self, unit: UnitId) -> bool {
        self.is_valid(unit)
    }

    /// Programs metadata into one page.
    pub(in crate::ftl) fn program_metadata(
        &mut self,
        media: &mut Media,
        place: Place,
        all: Vec<Words>,
        cause: Cause,
        owner: Waiter,
    ) {
        let sector_data = vec![0; (media.unit_bytes / 512) as usize * media.flash.store.sector_data_bytes()];
        let mut units: ArrayVec<UnitWrite<'_>, MAX_UNITS> = ArrayVec::new();
        let first = media.unit_at(place);
        for Words { lpn, units: count, words } in all {
            let unit = first + units.len() as u32;
            match words {
                Content::Whole(words) => media.flash.oob.put_record(unit, words),
                Content::Over { from, changes } => media.flash.oob.put_record_over(unit, from, changes.into_iter()),
            }
            units.extend((0..count).map(|index| UnitWrite {
                lpn: lpn + index,
                mask: self.full_mask,
                sector_data: &sector_data,
                expendable: false,
            }));
        }
        self.write_at(media, place, &units, Frontier::Map, cause, owner);
    }

    /// Programs units of a log into one page: whole ones, under names that are not final.
    pub(in crate::ftl) fn write_log(
        &mut self,
        media: &mut Media,
        place: Place,
        units: &[UnitWrite<'_>],
        cause: Cause,
        owner: Waiter,
    ) {
        let whole = units.iter().all(|unit| unit.mask == self.full_mask || unit.mask == 0);
        assert!(whole, "a unit of the log is written in part at {place:?}");
        self.write_at(media, place, units, Frontier::Log, cause, owner);
        let empty = self.units_per_page as usize - units.len();
        media.padding_bytes += empty as u64 * u64::from(media.unit_bytes);
    }

    /// The entry of a unit goes to another one, which loses what it had; the first holds nothing then.
    pub(in crate::ftl) fn rename(&mut self, media: &mut Media, from: Lpn, to: Lpn) {
        let unit = std::mem::replace(&mut self.map.as_mut_slice()[from.index()], UNMAPPED);
        assert_ne!(unit, UNMAPPED, "the entry of unit {from} goes to {to}, and holds nothing");
        self.trims.unmapped(from);
        let old = std::mem::replace(&mut self.map.as_mut_slice()[to.index()], unit);
        if old == UNMAPPED {
            self.trims.mapped(to);
        } else {
            self.invalidate(media, old);
            self.mapped_units -= 1;
        }
        media.flash.oob.rename(unit, to);
    }

    /// Moves units of metadata, all of one page or several, into one page.
    pub(in crate::ftl) fn move_metadata(
        &mut self,
        media: &mut Media,
        sources: &[UnitId],
        place: Place,
        owner: Waiter,
        from_ram: bool,
    ) {
        let purpose = Purpose { cause: Cause::Mapping, frontier: Frontier::Map, owner };
        self.move_units(media, sources, place, Move { purpose, from_ram });
    }

    /// The current units of a superblock from `cursor` on, by the order in which its pages were given out, each with its
    /// place in that order.
    pub(in crate::ftl) fn current_units(
        &self,
        media: &Media,
        superblock: u32,
        cursor: u32,
    ) -> impl Iterator<Item = (u32, UnitId)> {
        let mut at = cursor;
        std::iter::from_fn(move || {
            let (place, unit) = self.next_valid_of(media, superblock, at)?;
            at = place + 1;
            Some((place, unit))
        })
    }

    /// A unit of metadata is needed no more: its number holds nothing from now on. Returns where it was.
    pub(in crate::ftl) fn unmap_metadata(&mut self, media: &mut Media, lpn: Lpn) -> UnitId {
        let unit = std::mem::replace(&mut self.map.as_mut_slice()[lpn.index()], UNMAPPED);
        assert_ne!(unit, UNMAPPED, "metadata unit {lpn} is not needed any more, and holds nothing");
        self.invalidate(media, unit);
        self.trims.unmapped(lpn);
        self.mapped_units -= 1;
        unit
    }

    /// Unmaps the mapped units of `first..end`; returns how many there were.
    pub(in crate::ftl) fn unmap_units(&mut self, media: &mut Media, first: Lpn, end: Lpn) -> u64 {
        use crate::ftl::durable_trims::DurableTrims;
        let (mut at, mut count) = (first, 0);
        while let Some(lpn) = self.trims.next_mapped(at, end) {
            self.unmap(media, lpn);
            self.trims.unmapped(lpn);
            count += 1;
            at = lpn + 1;
        }
        count
    }

    /// Recovery: nothing is mapped.
    pub(in crate::ftl) fn forget_map(&mut self) {
        self.map.as_mut_slice().fill(UNMAPPED);
        self.valid.as_mut_slice().fill(0);
        self.trims.clear();
        self.mapped_units = 0;
    }

    /// Recovery: a unit is there, whatever was found before.
    pub(in crate::ftl) fn found(&mut self, lpn: Lpn, unit: Option<UnitId>) {
        self.map.set(lpn.index(), unit.unwrap_or(UNMAPPED));
    }

    /// Recovery: the map is whole, and what it names is current.
    pub(in crate::ftl) fn count_found(&mut self, media: &mut Media) {
        for lpn in Lpn::each(Lpn(0)..Lpn(self.map.len() as u32)) {
            let Some(unit) = self.unit_of(lpn) else { continue };
            let owner = media.flash.oob.lpn(unit);
            assert_eq!(owner, lpn, "unit {unit} is mapped, and its page is of another LPN");
            let place = media.place_of(unit);
            assert!(media.flash.is_written(place.block, place.page), "LPN {lpn} is mapped to {place:?}, not written");
            self.mapped_units += 1;
            self.trims.mapped(lpn);
            self.set_valid(media, unit, media.block_of(unit));
        }
    }
}

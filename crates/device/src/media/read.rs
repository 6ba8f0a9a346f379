//! Reads, and what is lost with one that fails: data in flight that programs were to take from it.

use ssdlab_flash::{BlockId, Cause, Class, NONE, OpId, OpKind, Ppn, Submit, UnitId};

use super::{Media, Place};
use crate::block_pool::BlockKind;
use crate::waiter::Waiter;

/// What a program of one unit pins and takes beyond the first.
#[derive(Clone, Debug, Default)]
pub(super) struct MultiSource {
    pub(super) pins: Vec<BlockId>,
    pub(super) sources: Vec<UnitId>,
}

impl Media {
    /// Starts a read of `bytes` bytes of a page; the block stays pinned until it is done.
    #[inline]
    pub(crate) fn read(&mut self, place: Place, bytes: u32, cause: Cause, owner: Waiter) -> OpId {
        // A host write waits for what completes its page.
        let waited_for = matches!(cause, Cause::Host | Cause::ReadModifyWrite);
        let class = if waited_for { Class::HostRead } else { Class::GcRead };
        self.read_as(class, place, bytes, cause, owner)
    }

    /// Starts a read of `bytes` bytes of a map page; the block stays pinned until it is done. The host waits for it if
    /// `waited_for`, else relocation does.
    pub(crate) fn read_map(&mut self, place: Place, bytes: u32, waited_for: bool, owner: Waiter) -> OpId {
        debug_assert_eq!(self.pool.kind_of(place.block), BlockKind::Map, "{place:?} is read as a map page");
        let class = if waited_for { Class::HostRead } else { Class::GcRead };
        self.read_as(class, place, bytes, Cause::Mapping, owner)
    }

    /// Starts a read of `bytes` bytes of a page, in a class of the die's queue; the block stays pinned until it is
    /// done.
    #[inline]
    pub(super) fn read_as(&mut self, class: Class, place: Place, bytes: u32, cause: Cause, owner: Waiter) -> OpId {
        debug_assert!(self.flash.is_written(place.block, place.page), "{place:?} is read, and is not on flash");
        debug_assert!(bytes <= self.unit_bytes * self.units_per_page, "{bytes} bytes of {place:?} are read");
        self.pool.pin(place.block);
        self.issue(Submit {
            kind: OpKind::Read,
            cause,
            class,
            block: place.block,
            page: place.page,
            source: Ppn::NONE,
            bytes,
            token: owner.pack(),
            pin: place.block,
            waits_for: 0,
        })
    }

    pub(super) fn remember_sources(&mut self, op: OpId, taken: &[UnitId]) {
        let stride = self.units_per_page as usize;
        let first = op as usize * stride;
        if self.sources.len() < first + stride {
            self.sources.resize(first + stride, UnitId::NONE);
        }
        let slots = &mut self.sources[first..first + stride];
        slots.fill(UnitId::NONE);
        debug_assert!(
            stride == 1 || taken.len() <= stride,
            "a page of {stride} units takes {} from reads",
            taken.len()
        );
        if taken.len() <= stride {
            slots[..taken.len()].copy_from_slice(taken);
        }
    }

    /// A page could not be read: what `waiting`, the program that waited for it, was to take from there is lost, and so
    /// is what programs behind it were to take from that.
    pub(crate) fn read_failed(&mut self, from: Place, waiting: OpId) {
        self.taken_from(from, waiting, Media::lose);
    }

    /// Tells `each` of every unit in flight that is taken from a page by `waiting`, the program that waits for its read, or by
    /// programs behind it.
    pub(super) fn taken_from(&mut self, from: Place, waiting: OpId, mut each: impl FnMut(&mut Media, UnitId)) {
        let stride = self.units_per_page;
        let first = self.unit_at(from);
        let mut lost: Vec<UnitId> = UnitId::each(first..first + stride).collect();
        let mut row = self.flash.follower(waiting);
        let mut next = waiting;
        while next != NONE {
            let op = next;
            // Programs of a row wait for all reads of the row, and what waits for one of them takes from that one.
            next = self.flash.waiter(op);
            if next == NONE && row != NONE {
                next = row;
                row = self.flash.follower(row);
            }
            let (block, page) = self.flash.target(op);
            let first = self.unit_at(Place { block, page });
            if self
                .multi_source_programs
                .get(&op)
                .is_some_and(|several| several.sources.iter().any(|unit| lost.contains(unit)))
            {
                each(self, first);
                lost.push(first);
            }
            for index in 0..stride {
                let source = self.sources[(op * stride + index) as usize];
                if source != UnitId::NONE && lost.contains(&source) {
                    each(self, first + index);
                    lost.push(first + index);
                }
            }
        }
    }
}

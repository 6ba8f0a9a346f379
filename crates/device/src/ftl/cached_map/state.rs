//! What the controller keeps of each map page and of each line of the cache.

use super::lru;
use crate::MapUser;

/// A map page, as the controller sees it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PageState {
    /// Programs of data that its entries name, and that are not on flash.
    pub(super) unsettled: u32,
    /// Programs of it that are not on flash.
    pub(super) in_program: u16,
    /// It differs from what is on flash.
    pub(super) dirty: bool,
    /// A trim that it has is in no program yet.
    pub(super) trimmed: bool,
    /// For whom it is programmed so that entries may leave, where that is why.
    pub(super) flushed_for: Option<MapUser>,
    /// It is to be programmed while it stays in the cache.
    pub(super) flush: bool,
    /// It is to be programmed as soon as it is settled: what the host writes waits until then.
    pub(super) held: bool,
    /// Commands wait for the program that has its trims, and none is in flight yet.
    pub(super) promised: bool,
    /// It was dirty when the active blocks were full, and is in no program since.
    pub(super) in_change: bool,
    /// A load of it is in flight.
    pub(super) reading: bool,
    /// Of a cache by entry: how far its entries on flash are, which a program of the dirty ones goes with.
    pub(super) base: Base,
}

/// Entries of a map page on flash, and those among them that have to be programmed again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Base {
    #[default]
    OnFlash,
    Reading,
    Read,
}

/// Bytes that the simulator has for a line, in the cache or not: its state, and its place in the order of use.
pub(in crate::ftl) const LINE_STATE_BYTES: u64 = (size_of::<LineState>() + lru::LINK_BYTES) as u64;

/// A line of the cache, as the controller sees it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LineState {
    /// Jobs that keep it in the cache.
    pub(super) pins: u16,
    /// A load of it is due or in flight.
    pub(super) loading: bool,
    /// It was loaded before it was asked for, and counted then.
    pub(super) ahead: bool,
    /// Who asked first for the load that is due or in flight.
    pub(super) loaded_for: MapUser,
    /// Of a cache by entry: it differs from what is on flash.
    pub(super) dirty: bool,
}

/// Entries of a map page that changed since it was programmed: the simulator need not copy the others.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    pub(super) entries: Vec<u32>,
    /// There are more, or it is not known which they are.
    many: bool,
}

/// Entries that are told apart at most.
const CHANGES_KNOWN: usize = 64;

impl Changes {
    pub(super) fn push(&mut self, entry: u32) {
        if self.many {
            return;
        }
        if self.entries.len() == CHANGES_KNOWN {
            return self.are_many();
        }
        self.entries.push(entry);
    }

    pub(super) fn are_many(&mut self) {
        self.many = true;
        self.entries.clear();
    }

    /// The changed entries, if they are known; none are left.
    pub(super) fn take(&mut self) -> Option<&mut Vec<u32>> {
        let known = !std::mem::take(&mut self.many);
        known.then_some(&mut self.entries)
    }
}

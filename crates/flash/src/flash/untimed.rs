//! Operations that take no time: their effect, their count, their fault.

use ssdlab_base::Nanos;

use super::Flash;
use crate::blocks::Asked;
use crate::{BlockId, Cause, OpKind, Ppn};

impl Flash {
    /// Does an operation at once, without time: its effect, its count, its fault. Returns whether it failed.
    #[inline]
    pub fn execute(&mut self, kind: OpKind, cause: Cause, block: BlockId, page: u32) -> bool {
        debug_assert_eq!(self.in_flight, 0, "{kind:?} of block {block} page {page} at once, while others take time");
        let asked = Asked { cause, now: Nanos::ZERO };
        self.apply(kind, asked, block, page, Ppn::NONE)
    }

    /// Does a copyback from PPN `source` at once, without time: its effect, its count, its fault. Returns whether it
    /// failed.
    pub fn execute_copyback(&mut self, cause: Cause, block: BlockId, page: u32, source: Ppn) -> bool {
        let asked = Asked { cause, now: Nanos::ZERO };
        self.apply(OpKind::Copyback, asked, block, page, source)
    }

    /// Whether operations can fail.
    #[inline]
    pub const fn may_fail(&self) -> bool {
        self.faults.is_active()
    }

    /// Whether no page's OOB holds more than the map and no operation can fail, so that pages are moved alike.
    #[inline]
    pub fn moves_alike(&self) -> bool {
        self.oob.is_plain() && !self.faults.is_active()
    }

    /// Whether nothing else is stored either, so that runs of pages may be dealt with as one.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.store.sector_data_bytes() == 0 && self.moves_alike()
    }

    /// Does `count` operations on pages of one block at once, without time; only where [`Flash::is_plain`]. Programs go
    /// to the next pages in order; reads to pages that are written.
    #[inline]
    pub fn execute_run(&mut self, kind: OpKind, cause: Cause, block: BlockId, count: u32) {
        debug_assert!(self.is_plain(), "{count} pages of block {block} go as one, and they are not alike");
        debug_assert_eq!(self.in_flight, 0, "a run of pages of block {block} at once, while others take time");
        self.counts.0[kind as usize][cause as usize] += u64::from(count);
        let asked = Asked { cause, now: Nanos::ZERO };
        match kind {
            OpKind::Read => self.blocks.read_run(block, count),
            OpKind::Program | OpKind::Copyback => self.blocks.program_run(block, count, asked),
            OpKind::Erase => unreachable!("erases come one at a time"),
        }
    }

    /// Counts operations that were modelled as a whole.
    pub const fn count(&mut self, kind: OpKind, cause: Cause, operations: u64) {
        self.counts.0[kind as usize][cause as usize] += operations;
    }
}

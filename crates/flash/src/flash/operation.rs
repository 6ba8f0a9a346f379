//! An operation: what the controller asks of the chips, what it hears when it is done, and what is kept while it is in flight.

use ssdlab_base::Nanos;

use super::Flash;
use super::resources::Phase;
use crate::schedule::{CLASSES, Class};
use crate::{BlockId, Cause, DieId, OpKind, Ppn};

/// An operation in flight. Numbers are used again in the step after the one in which the operation is done.
pub type OpId = u32;

/// No operation, no block.
pub const NONE: u32 = u32::MAX;

/// What the controller asks of the chips.
#[derive(Clone, Copy, Debug)]
pub struct Submit {
    /// What to do.
    pub kind: OpKind,
    /// Why.
    pub cause: Cause,
    /// Which class of the die's queue.
    pub class: Class,
    /// The block; for a copyback the destination's.
    pub block: BlockId,
    /// The page in the block; 0 for an erase.
    pub page: u32,
    /// A copyback's source PPN; else unused.
    pub source: Ppn,
    /// Data bytes on the channel; 0 for an erase or a copyback.
    pub bytes: u32,
    /// The controller's own, given back when done.
    pub token: u32,
    /// A block that must not be erased before this is done, or `NONE`; given back when done.
    pub pin: BlockId,
    /// Operations to be linked that this one waits for.
    pub waits_for: u16,
}

/// An operation that is done.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// The operation, no longer in flight.
    pub op: OpId,
    /// What it was.
    pub kind: OpKind,
    /// Why it was.
    pub cause: Cause,
    /// Its block.
    pub block: BlockId,
    /// Its page.
    pub page: u32,
    /// The token it was submitted with.
    pub token: u32,
    /// The pinned block it was submitted with.
    pub pin: BlockId,
    /// It failed: an uncorrectable read, or a program or erase failure.
    pub failed: bool,
    /// The operation that waited for it and is still in flight, or `NONE`.
    pub then: OpId,
}

/// One cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Flight {
    pub(super) submit: Submit,
    pub(super) order: u64,
    pub(super) queued: Nanos,
    /// The next in the die's queue, in the running group, or in the free list.
    pub(super) next: u32,
    /// The operation that waits for this one.
    pub(super) then: u32,
    /// The program that becomes ready when this one does.
    pub(super) follower: u32,
    /// Operations that it waits for, and the bit of one that is not issued.
    pub(super) waits_for: u16,
}

const _: () = assert!(size_of::<Flight>() == 64, "an operation in flight is one cache line");

impl Flash {
    /// Operations that wait or run on a die.
    #[inline]
    pub fn load(&self, die: DieId) -> u32 {
        let die = &self.dies[die.index()];
        die.queued + u32::from(die.phase != Phase::Idle)
    }

    /// Operations submitted and not done.
    pub const fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// The program in flight of a page, if there is one. A walk over a die's operations: for rare cases.
    pub fn find_program(&self, block: BlockId, page: u32) -> Option<OpId> {
        let die = &self.dies[self.die_of(block).index()];
        let first = self.queue_index(self.die_of(block), 0, 0);
        let queues = self.queues[first..first + CLASSES * self.geometry.planes_per_die as usize].iter();
        let heads = queues.map(|queue| queue.head).chain([die.running, die.staged, die.suspended]);
        heads.into_iter().find_map(|head| {
            let mut op = head;
            while op != NONE {
                let flight = &self.flights[op as usize];
                let programs = matches!(flight.submit.kind, OpKind::Program | OpKind::Copyback);
                if programs && flight.submit.block == block && flight.submit.page == page {
                    return Some(op);
                }
                op = flight.next;
            }
            None
        })
    }

    /// The PPN that a copyback in flight moves; `None` for other operations.
    pub fn copyback_source(&self, op: OpId) -> Option<Ppn> {
        let submit = &self.flights[op as usize].submit;
        (submit.kind == OpKind::Copyback).then_some(submit.source)
    }

    /// The block and page of an operation in flight.
    pub fn target(&self, op: OpId) -> (BlockId, u32) {
        let submit = &self.flights[op as usize].submit;
        (submit.block, submit.page)
    }

    /// Whether an operation in flight is a read.
    pub fn is_read(&self, op: OpId) -> bool {
        self.flights[op as usize].submit.kind == OpKind::Read
    }

    /// What an operation is.
    pub(super) fn what(&self, op: OpId) -> (OpKind, Cause) {
        let Submit { kind, cause, .. } = self.flights[op as usize].submit;
        (kind, cause)
    }
}

//! The write buffer: sector-granular space in front of the FTL.
//!
//! A unit in the buffer merges overwrites. Space is held from the moment a sector comes in until the page it left in is
//! on flash. Which units leave, and in which order, is a policy: one file and one line in [`POLICIES`].

mod arc;
mod blocks;
mod bplru;
mod cflru;
mod chain;
mod contents;
mod counts;
mod fab;
mod fifo;
mod ghosts;
mod lirs;
mod list;
mod lru;
mod mca;
#[cfg(test)]
mod model;
mod pc;
mod pc_lru;
mod policy;
mod small;
#[cfg(test)]
mod template;
mod write_buffer;

use std::fmt;

use chain::{Chain, NO_NODE};
pub(crate) use contents::HeldUnits;
pub(crate) use policy::Chips;
pub use policy::{BufferPolicy, Padding, Unit, View};
pub(crate) use write_buffer::{Entry, Met, WriteBuffer};

use crate::registry::{Entry as Registered, MakePolicy, Registry};

/// A place in the buffer: a unit has it from when it comes in until it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(u32);

impl Slot {
    /// None of them.
    const NONE: Slot = Slot(u32::MAX);

    /// The place in a table with an entry for each slot: small, and used again.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A registered policy; one that cannot be made is no buffer at all.
type Policy = Registered<Option<MakePolicy<dyn BufferPolicy>>>;

/// Every buffer policy.
pub(crate) static POLICIES: Registry<Option<MakePolicy<dyn BufferPolicy>>> = Registry::new(
    "buffer.policy",
    &[
        Policy { name: "none", summary: "no buffer: a write completes when it is on flash", keys: &[], make: None },
        fifo::POLICY,
        lru::POLICY,
        mca::POLICY,
        pc_lru::POLICY,
        arc::POLICY,
        arc::PC_POLICY,
        lirs::POLICY,
        lirs::PC_POLICY,
        cflru::POLICY,
        fab::POLICY,
        bplru::POLICY,
        #[cfg(test)]
        template::POLICY,
    ],
);

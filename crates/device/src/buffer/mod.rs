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
mod write_buffer;

use chain::Chain;
pub(crate) use contents::{HeldUnit, HeldUnits};
use list::Stack;
use pc::PcStack;
pub(crate) use policy::{BufferPolicy, Chips, Unit, View};
pub(crate) use write_buffer::{Entry, Met, WriteBuffer};

use crate::DriveConfig;

/// A slot of a buffered unit.
pub(crate) type Slot = u32;

/// No slot.
const NIL: Slot = u32::MAX;

type Make = fn(&DriveConfig) -> Box<dyn BufferPolicy>;

/// Every buffer policy: name, summary, constructor; `none` has no buffer at all.
pub(crate) const POLICIES: &[(&str, &str, Option<Make>)] = &[
    ("none", "no buffer: a write completes when it is on flash", None),
    ("fifo", "whole requests leave in the order they came (VSSIM)", Some(|_| Box::new(fifo::Fifo::default()))),
    ("lru", "the least recently written page leaves", Some(|_| Box::new(lru::Lru::default()))),
    (
        "mca",
        "LRU that passes over partial pages whose chip is busy (MCA)",
        Some(|config| Box::new(mca::Mca::new(config.buffer.policies.mca_window))),
    ),
    (
        "pc-lru",
        "LRU; while a chip is congested full pages leave before partial ones (WAFLASH)",
        Some(|_| Box::new(pc_lru::PcLru::new())),
    ),
    (
        "arc",
        "adapts between pages written once and again and again (ARC)",
        Some(|_| Box::new(arc::Arc::<Stack>::new())),
    ),
    (
        "pc-arc",
        "ARC; while a chip is congested full pages leave before partial ones",
        Some(|_| Box::new(arc::Arc::<PcStack>::new())),
    ),
    (
        "lirs",
        "pages with the longest time between their last two writes leave (LIRS)",
        Some(|config| Box::new(lirs::Lirs::<Stack>::new(config))),
    ),
    (
        "pc-lirs",
        "LIRS; while a chip is congested full pages leave before partial ones",
        Some(|config| Box::new(lirs::Lirs::<PcStack>::new(config))),
    ),
    (
        "cflru",
        "caches reads too; clean pages in the window at the bottom leave before dirty ones (CFLRU)",
        Some(|config| Box::new(cflru::Cflru::new(config.buffer.policies.cflru_window_permille))),
    ),
    (
        "fab",
        "the block with the most pages in the buffer leaves as a whole (FAB)",
        Some(|config| Box::new(fab::Fab::new(block_units(config)))),
    ),
    (
        "bplru",
        "the least recently written block leaves as a whole (BPLRU)",
        Some(|config| {
            let padding = config.buffer.policies.bplru_padding;
            Box::new(bplru::Bplru::new(block_units(config), config.ftl.mapping_unit, padding))
        }),
    ),
];

/// Mapping units of a logical block, for the policies that know blocks.
fn block_units(config: &DriveConfig) -> u32 {
    config.flash.geometry.page_bytes / config.ftl.mapping_unit * config.buffer.policies.block_pages
}

//! The chips: geometry, timing, page states and rules, wear, faults, Ready/Busy lines, stored contents.
//!
//! This crate knows nothing of what logical addresses mean. It orders operations on channels, dies and planes, enforces
//! the rules of NAND in every build, and counts every operation by its cause.

mod array;
mod blocks;
mod config;
mod contents;
mod events;
mod faults;
mod flash;
mod id;
mod image;
mod op;
pub mod presets;
mod records;
mod schedule;
mod snapshot;

pub use array::{HugeArray, mapped_bytes};
pub use blocks::{Block, Blocks};
pub use config::{
    Contents, FaultKind, Faults, FlashConfig, Geometry, Latency, MultiPlane, OobUse, SchedulerKind, ScriptedFault,
    Timing,
};
pub use contents::{Oob, Origin, Store};
pub use faults::Unstruck;
pub use flash::{ArrayWork, Done, Flash, MAX_PLANES_PER_DIE, NONE, OpId, QueueWaits, RecordId, Stay, Stretch, Submit};
pub use id::{BlockId, DieId, Lpn, PlaneId, Ppn, UnitId};
pub use image::{Damage, DamageFound, Folder, Image, ImageError, Lifeline, lock, seeded};
pub use op::{Cause, Observer, OpCounts, OpKind, Resource, Span};
pub use schedule::Class;

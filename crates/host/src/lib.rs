//! What runs above a drive, in the same virtual time: I/O schedulers, drivers, cache managers.
//!
//! A host room stands on a [`BlockDevice`] and is one itself, so rooms can be stacked, and whoever replays or serves a
//! drive replays or serves a stack in the same way.

mod device;

pub use device::BlockDevice;

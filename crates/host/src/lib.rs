//! What runs above a drive, in the same virtual time: I/O schedulers, drivers, cache managers.
//!
//! A host room stands on a [`Device`] and is one itself, so rooms can be stacked, and whoever replays or serves a
//! drive replays or serves a stack in the same way. To add a room is to add its file or folder, and its name in
//! [`ROOMS`] and in the description.

mod description;
mod device;
mod scheduler;

pub use description::{Host, KEYS, ROOMS};
pub use device::{Administration, BlockDevice, Device, Identity, Part, PartMut, Power, RoomFigures, Traffic, seed_of};
pub use scheduler::{Scheduler, SchedulerConfig};

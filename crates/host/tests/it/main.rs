//! Layers above drives.

mod append;
mod disks;
mod restoring;
mod scheduler;
mod shrd;
mod stacks;

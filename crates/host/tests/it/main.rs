//! Layers above drives.

mod append;
mod disks;
mod flashcache;
mod restoring;
mod scheduler;
mod shrd;
mod stacks;

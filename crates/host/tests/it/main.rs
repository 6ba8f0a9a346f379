//! Layers above drives.

mod append;
mod disks;
mod flashcache;
mod one_by_one;
mod restoring;
mod scheduler;
mod shrd;
mod stacks;

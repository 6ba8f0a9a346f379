//! Layers above drives.

mod append;
mod restoring;
mod scheduler;
mod shrd;
mod stacks;

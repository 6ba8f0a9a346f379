//! Layers above drives.

mod append;
mod flashcache;
mod restoring;
mod scheduler;
mod shrd;
mod stacks;

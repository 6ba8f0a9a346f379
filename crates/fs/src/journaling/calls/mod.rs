//! Gather and apply of each call.

pub(crate) mod data;
pub(crate) mod directory;
pub(crate) mod freeing;
pub(crate) mod names;
pub(crate) mod rename;
pub(crate) mod status;

/// Blocks of metadata that a call with one directory changes at most: inodes and their bitmap, a block of the directory and what says where
/// it is, bitmaps of blocks, descriptors, the superblock.
pub(crate) const CREDITS: usize = 24;

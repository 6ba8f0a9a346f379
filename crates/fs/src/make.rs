//! Making: what all kinds of file systems do.

use ssdlab_base::{Op, Request};
use ssdlab_device::Status;
use ssdlab_host::Device;

use crate::call::{FileKind, ROOT};
use crate::config::{MakeOptions, Options};
use crate::core::Core;
use crate::core::cache::{Body, Key};
use crate::core::inode_map::insert_unwritten;
use crate::error::{MakeError, MountError};
use crate::file_system::FileSystem;
use crate::format::inode::Inode;
use crate::format::{BLOCK_SECTORS, Bytes};
use crate::jobs::checkpoint::Checkpoints;
use crate::reader::Reader;

/// Segments beyond those of the logs that are never promised to files: for cleaning, and for metadata of a check-point.
pub(crate) const RESERVE: u32 = 12;

/// Segments that a file system needs for files at least.
pub(crate) const FOR_FILES: u32 = 2;

/// Blocks that a file system has at most: their addresses have 32 bits.
pub(crate) const MOST_BLOCKS: u64 = u32::MAX as u64 - 1;

impl FileSystem {
    /// Makes an empty file system of a kind on a device, whose contents are lost, and mounts it.
    ///
    /// # Errors
    /// The device is none for such a file system, or too small, or a command failed.
    pub fn make(device: Box<dyn Device>, make: &MakeOptions, options: &Options) -> Result<FileSystem, MakeError> {
        (make.kind.make)(device, make, options)
    }
}

/// Why what was just made cannot be mounted, or looked at before it is made.
pub(crate) fn of_mount(error: MountError) -> MakeError {
    match error {
        MountError::NoSegments { found } => MakeError::NoSegments { found },
        MountError::DeviceFailed(status) => MakeError::Device(status),
        MountError::Silent => MakeError::Silent,
        other => MakeError::Mount(Box::new(other)),
    }
}

/// Runs a command before anything else is at work. How it ended.
pub(crate) fn run(reader: &mut Reader, request: Request, cells: &[u8]) -> Result<Status, MakeError> {
    reader.below.alone(request, cells, &[]).map(|done| done.status).map_err(|_| MakeError::Silent)
}

/// Writes a block of metadata, with zeroes behind it up to a whole write unit of so many blocks.
pub(crate) fn write_block(reader: &mut Reader, at: u32, block: &Bytes, unit_blocks: u32) -> Result<(), MakeError> {
    let cell = reader.cell;
    let mut cells = if cell == 512 { block.to_vec() } else { Vec::new() };
    let (sector, sectors) = (u64::from(at) * BLOCK_SECTORS, u64::from(unit_blocks) * BLOCK_SECTORS);
    cells.resize(sectors as usize * cell, 0);
    match run(reader, Request::new(Op::Write, sector, sectors), &cells)? {
        Status::Success => {}
        status => return Err(MakeError::Device(status)),
    }
    if cell != 512 {
        reader.below.keep_record(sector, &block[..]);
    }
    Ok(())
}

/// An empty root directory and the first check-point, mounted. The superblock is written.
pub(crate) fn with_root(mut core: Core, reader: Reader, options: &Options) -> Result<FileSystem, MakeError> {
    let identity = reader.below.device().identify();
    let superblock = core.superblock;
    (superblock.first_segment()..superblock.segments).for_each(|segment| core.space.set_free(segment));
    insert_unwritten(&mut core.cache, &core.map, 0);
    let root = Inode::new(ROOT.number, ROOT.generation, FileKind::Directory, ROOT.number, core.now);
    core.take_number(ROOT.number);
    core.cache.insert(Key::node(ROOT.number), Body::Inode(Box::new(root)));
    core.set_node_dirty(ROOT.number);
    let mut checkpoints = Checkpoints::new(2, 0, 0, identity.has_write_cache || identity.has_host_cache);
    checkpoints.must_switch = true;
    let system = FileSystem::of(core, reader.below.into_below(), checkpoints);
    match system.unmount() {
        Ok(device) => FileSystem::mount(device, options).map_err(of_mount),
        Err(_) => Err(MakeError::Device(Status::ReadOnly)),
    }
}

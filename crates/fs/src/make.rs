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
use crate::log_structured::LogStructured;
use crate::reader::Reader;

/// Segments beyond those of the logs that are never promised to files: for cleaning, and for metadata of a check-point.
const RESERVE: u32 = 12;

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

/// Runs a command before anything else is at work.
pub(crate) fn run(reader: &mut Reader, request: Request, cells: &[u8]) -> Result<(), MakeError> {
    match reader.below.alone(request, cells, &[]).map_err(|_| MakeError::Silent)?.status {
        Status::Success => Ok(()),
        status => Err(MakeError::Device(status)),
    }
}

/// The rules of sizes that all kinds have: logs that there can be, and blocks that addresses reach.
pub(crate) fn check_sizes(blocks: u64, options: &MakeOptions) -> Result<(), MakeError> {
    if !matches!(options.logs, 2 | 4 | 6) {
        return Err(MakeError::Logs(options.logs));
    }
    if blocks >= MOST_BLOCKS {
        return Err(MakeError::TooLarge { found: blocks, most: MOST_BLOCKS });
    }
    Ok(())
}

/// Nodes that there can be on so many blocks: one for each, as a power of two.
pub(crate) fn nodes_of(blocks: u64) -> u64 {
    blocks.next_power_of_two().clamp(512, 1 << 31)
}

/// Segments that are never promised to files, at least.
pub(crate) fn reserve(options: &MakeOptions) -> u64 {
    u64::from(options.logs + RESERVE)
}

/// Segments that files can have, of so many for data and nodes.
pub(crate) fn for_files(segments: u64, options: &MakeOptions) -> u64 {
    let kept = (segments * u64::from(options.over_provisioning)).div_ceil(100).max(reserve(options));
    segments - kept.min(segments - 1)
}

/// Writes a block of metadata, with zeroes behind it up to a whole write unit of so many blocks.
pub(crate) fn write_block(reader: &mut Reader, at: u32, block: &Bytes, unit_blocks: u32) -> Result<(), MakeError> {
    let cell = reader.cell;
    let mut cells = if cell == 512 { block.to_vec() } else { Vec::new() };
    let (sector, sectors) = (u64::from(at) * BLOCK_SECTORS, u64::from(unit_blocks) * BLOCK_SECTORS);
    cells.resize(sectors as usize * cell, 0);
    run(reader, Request::new(Op::Write, sector, sectors), &cells)?;
    if cell != 512 {
        reader.below.keep_record(sector, &block[..]);
    }
    Ok(())
}

/// An empty root directory and the first check-point, mounted. The superblock is written.
pub(crate) fn with_root(mut core: Core, reader: Reader, options: &Options) -> Result<FileSystem, MakeError> {
    let superblock = core.superblock;
    (superblock.first_segment()..superblock.segments).for_each(|segment| core.space.set_free(segment));
    insert_unwritten(&mut core.cache, &core.map, 0);
    let root = Inode::new(ROOT.number, ROOT.generation, FileKind::Directory, ROOT.number, core.now);
    core.take_number(ROOT.number);
    core.cache.insert(Key::node(ROOT.number), Body::Inode(Box::new(root)));
    core.set_node_dirty(ROOT.number);
    let mut checkpoints = Checkpoints::new(2, 0, 0);
    checkpoints.must_switch = true;
    let system = LogStructured::of(core, reader.below.into_below(), checkpoints);
    match FileSystem::of(Box::new(system)).unmount() {
        Ok(device) => FileSystem::mount(device, options).map_err(of_mount),
        Err(_) => Err(MakeError::Device(Status::ReadOnly)),
    }
}

//! Making: the superblock, a root directory, and the first check-point.

use ssdlab_base::command_sets::segments::SegmentState;
use ssdlab_base::{Op, Request};
use ssdlab_device::Status;
use ssdlab_host::Device;

use crate::call::{FileKind, ROOT};
use crate::config::{MakeOptions, Options};
use crate::core::Core;
use crate::core::cache::{Body, Key};
use crate::core::inode_map::insert_empty;
use crate::error::{MakeError, MountError};
use crate::file_system::FileSystem;
use crate::format::inode::Inode;
use crate::format::superblock::Superblock;
use crate::format::{BLOCK_SECTORS, map, usage};
use crate::jobs::checkpoint::Checkpoints;
use crate::reader::Reader;

/// Segments beyond those of the logs that are never promised to files: for cleaning, and for metadata of a check-point.
const RESERVE: u32 = 12;

/// Blocks of a segment at least. A check-point writes a block of the usage table again for each segment that the blocks before it filled or
/// began, so in smaller segments the usage table alone would fill those of the inode map.
const LEAST_SEGMENT_BLOCKS: u64 = 8;

/// Segments that a file system needs for files at least.
const FOR_FILES: u32 = 2;

/// The superblock of a file system on segments.
pub(crate) fn plan(sectors: u64, count: u64, unit: u64, options: &MakeOptions) -> Result<Superblock, MakeError> {
    if !matches!(options.logs, 2 | 4 | 6) {
        return Err(MakeError::Logs(options.logs));
    }
    let unit_blocks = unit.div_ceil(BLOCK_SECTORS).max(1);
    let fits = unit > 0 && (unit.is_multiple_of(BLOCK_SECTORS) || BLOCK_SECTORS.is_multiple_of(unit));
    let segment_blocks = sectors / BLOCK_SECTORS;
    let is_whole = sectors.is_multiple_of(BLOCK_SECTORS) && segment_blocks.is_multiple_of(unit_blocks);
    if !fits || !is_whole || segment_blocks < LEAST_SEGMENT_BLOCKS {
        return Err(MakeError::Shape { sectors, unit });
    }
    let most = u64::from(u32::MAX) - 1;
    let blocks = segment_blocks.saturating_mul(count);
    if blocks >= most {
        return Err(MakeError::TooLarge { found: blocks, most });
    }
    let nodes = blocks.next_power_of_two().clamp(512, 1 << 31);
    let map_blocks = nodes / map::ENTRIES as u64;
    let all = map_blocks + map_blocks.div_ceil(map::TABLE_ENTRIES as u64) + count.div_ceil(usage::ENTRIES as u64);
    let map_segments = (map_blocks * u64::from(options.map_factor))
        .div_ceil(segment_blocks)
        .max((3 * all).div_ceil(segment_blocks) + 1)
        .max(4);
    let reserve = u64::from(options.logs + RESERVE);
    let least = 3 + map_segments + reserve + u64::from(FOR_FILES);
    let mut superblock = Superblock {
        volume: 0,
        segment_blocks: segment_blocks as u32,
        segments: count as u32,
        unit_blocks: unit_blocks as u32,
        nodes: nodes as u32,
        map_segments: map_segments as u32,
        user_blocks: 0,
        logs: options.logs,
    };
    if count < least || superblock.segment_blocks <= superblock.summary_blocks() {
        return Err(MakeError::TooSmall { found: count, blocks: segment_blocks, least });
    }
    let data = count - 3 - map_segments;
    let kept = (data * u64::from(options.over_provisioning)).div_ceil(100).max(reserve);
    superblock.user_blocks = ((data - kept.min(data - 1)) * u64::from(superblock.data_blocks())) as u32;
    superblock.volume = superblock.volume_of(options.seed);
    Ok(superblock)
}

fn of_mount(error: MountError) -> MakeError {
    match error {
        MountError::NoSegments { found } => MakeError::NoSegments { found },
        MountError::DeviceFailed(status) => MakeError::Device(status),
        MountError::Silent => MakeError::Silent,
        other => MakeError::Mount(Box::new(other)),
    }
}

impl FileSystem {
    /// Makes an empty file system on a device, whose contents are lost, and mounts it.
    ///
    /// # Errors
    /// The device has no segments or too few of them, or a command failed.
    pub fn make(device: Box<dyn Device>, make: &MakeOptions, options: &Options) -> Result<FileSystem, MakeError> {
        let mut reader = Reader::new(device);
        let (shape, segments) = reader.report().map_err(of_mount)?;
        let superblock = plan(shape.sectors, shape.count, shape.write_unit, make)?;
        let mut run = |request: Request, cells: &[u8]| match reader.below.alone(request, cells, &[]) {
            Ok(done) if done.status == Status::Success => Ok(()),
            Ok(done) => Err(MakeError::Device(done.status)),
            Err(_) => Err(MakeError::Silent),
        };
        for (segment, _) in (0_u64..).zip(&segments).filter(|(_, segment)| segment.state != SegmentState::Free) {
            run(Request::new(Op::Trim, segment * shape.sectors, shape.sectors), &[])?;
        }
        let cell = reader.cell;
        let block = superblock.encode();
        let mut cells = if cell == 512 { block.to_vec() } else { Vec::new() };
        let sectors = u64::from(superblock.unit_blocks) * BLOCK_SECTORS;
        cells.resize(sectors as usize * cell, 0);
        let write = Request::new(Op::Write, 0, sectors);
        match reader.below.alone(write, &cells, &[]) {
            Ok(done) if done.status == Status::Success => {}
            Ok(done) => return Err(MakeError::Device(done.status)),
            Err(_) => return Err(MakeError::Silent),
        }
        if cell != 512 {
            reader.below.keep_record(0, &block[..]);
        }
        let has_write_cache = {
            let identity = reader.below.device().identify();
            identity.has_write_cache || identity.has_host_cache
        };
        let mut core = Core::new(superblock, *options, cell);
        (3..superblock.segments).for_each(|segment| core.space.set_free(segment));
        core.space.dirty.extend(0..superblock.usage_blocks());
        insert_empty(&mut core.cache, 0);
        let root = Inode::new(ROOT.number, ROOT.generation, FileKind::Directory, ROOT.number, core.now);
        core.take_number(ROOT.number);
        core.cache.insert(Key::node(ROOT.number), Body::Inode(Box::new(root)));
        core.set_node_dirty(ROOT.number);
        let mut checkpoints = Checkpoints::new(2, 0, 0, has_write_cache);
        checkpoints.must_switch = true;
        let system = FileSystem::of(core, reader.below.into_below(), checkpoints);
        match system.unmount() {
            Ok(device) => FileSystem::mount(device, options).map_err(of_mount),
            Err(_) => Err(MakeError::Device(Status::ReadOnly)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(gigabytes: u64, count: u64) -> Superblock {
        let sectors = (gigabytes << 21) / count;
        plan(sectors, count, 8, &MakeOptions::default()).expect("a drive that is large enough")
    }

    /// AMF, Table 1 and section 3.3, and what a drive of 16 GB has.
    #[test]
    fn the_sizes_of_the_papers_table_1_follow_from_the_drive() {
        let terabyte = planned(1024, 65_536);
        assert_eq!(terabyte.nodes, 1 << 28);
        assert_eq!((terabyte.map_blocks(), terabyte.table_blocks()), (524_288, 512));
        // TIMB takes 2 MB, the list of its blocks 2 KB, and the inode-map segments 8 GB.
        assert_eq!((terabyte.map_blocks() * 4, terabyte.table_blocks() * 4), (2 << 20, 2 << 10));
        assert_eq!(u64::from(terabyte.map_segments) * u64::from(terabyte.segment_blocks) * 4096, 8 << 30);
        let half = planned(512, 32_768);
        assert_eq!((half.map_blocks(), half.table_blocks()), (262_144, 256));
        let small = planned(16, 1024);
        assert_eq!((small.nodes, small.map_blocks(), small.table_blocks(), small.map_segments), (1 << 22, 8192, 8, 8));
    }

    #[test]
    fn what_is_too_small_or_shaped_otherwise_is_refused_with_what_was_expected() {
        let options = MakeOptions::default();
        let least = match plan(256, 10, 8, &options) {
            Err(MakeError::TooSmall { found: 10, least, .. }) => least,
            other => panic!("{other:?}"),
        };
        assert!(plan(256, least + 2, 8, &options).is_ok());
        assert_eq!(plan(250, 100, 8, &options), Err(MakeError::Shape { sectors: 250, unit: 8 }));
        assert_eq!(plan(56, 1000, 8, &options), Err(MakeError::Shape { sectors: 56, unit: 8 }));
        assert!(plan(64, 1000, 8, &options).is_ok());
        assert_eq!(plan(256, 100, 8, &MakeOptions { logs: 3, ..options }), Err(MakeError::Logs(3)));
        assert!(matches!(plan(1 << 16, 1 << 20, 8, &options), Err(MakeError::TooLarge { .. })));
    }
}

//! Making: the superblock, a root directory, and the first check-point.

use ssdlab_base::command_sets::segments::SegmentState;
use ssdlab_base::{Op, Request};
use ssdlab_host::Device;

use super::tables::Appended;
use crate::config::{MakeOptions, Options};
use crate::core::Core;
use crate::error::MakeError;
use crate::file_system::FileSystem;
use crate::format::superblock::Superblock;
use crate::format::{BLOCK_SECTORS, map, usage};
use crate::make::{FOR_FILES, check_sizes, for_files, nodes_of, of_mount, reserve, run, with_root, write_block};
use crate::reader::Reader;

/// Blocks of a segment at least. A check-point writes a block of the usage table again for each segment that the blocks before it filled or
/// began, so in smaller segments the usage table alone would fill those of the inode map.
const LEAST_SEGMENT_BLOCKS: u64 = 8;

/// The superblock of a file system on segments.
pub(crate) fn plan(sectors: u64, count: u64, unit: u64, options: &MakeOptions) -> Result<Superblock, MakeError> {
    let unit_blocks = unit.div_ceil(BLOCK_SECTORS).max(1);
    let fits = unit > 0 && (unit.is_multiple_of(BLOCK_SECTORS) || BLOCK_SECTORS.is_multiple_of(unit));
    let segment_blocks = sectors / BLOCK_SECTORS;
    let is_whole = sectors.is_multiple_of(BLOCK_SECTORS) && segment_blocks.is_multiple_of(unit_blocks);
    if !fits || !is_whole || segment_blocks < LEAST_SEGMENT_BLOCKS {
        return Err(MakeError::Shape { sectors, unit });
    }
    let blocks = segment_blocks.saturating_mul(count);
    check_sizes(blocks, options)?;
    let nodes = nodes_of(blocks);
    let map_blocks = nodes / map::ENTRIES as u64;
    let all = map_blocks + map_blocks.div_ceil(map::TABLE_ENTRIES as u64) + count.div_ceil(usage::ENTRIES as u64);
    let map_segments = (map_blocks * u64::from(options.map_factor))
        .div_ceil(segment_blocks)
        .max((3 * all).div_ceil(segment_blocks) + 1)
        .max(4);
    let least = 3 + map_segments + reserve(options) + u64::from(FOR_FILES);
    let mut superblock = Superblock {
        volume: 0,
        segment_blocks: segment_blocks as u32,
        segments: count as u32,
        unit_blocks: unit_blocks as u32,
        nodes: nodes as u32,
        map_segments: map_segments as u32,
        user_blocks: 0,
        logs: options.logs,
        areas: None,
    };
    if count < least || superblock.segment_blocks <= superblock.summary_blocks() {
        return Err(MakeError::TooSmall { found: count, blocks: segment_blocks, least });
    }
    let data = count - 3 - map_segments;
    superblock.user_blocks = (for_files(data, options) * u64::from(superblock.data_blocks())) as u32;
    superblock.volume = superblock.volume_of(options.seed);
    Ok(superblock)
}

/// Makes an empty file system on a device, whose contents are lost, and mounts it.
///
/// # Errors
/// The device has no segments or too few of them, or a command failed.
pub(crate) fn make(device: Box<dyn Device>, make: &MakeOptions, options: &Options) -> Result<FileSystem, MakeError> {
    let mut reader = Reader::new(device);
    let (shape, segments) = reader.report().map_err(of_mount)?;
    let superblock = plan(shape.sectors, shape.count, shape.write_unit, make)?;
    for (segment, _) in (0_u64..).zip(&segments).filter(|(_, segment)| segment.state != SegmentState::Free) {
        let trim = Request::new(Op::Trim, segment * shape.sectors, shape.sectors);
        run(&mut reader, trim, &[])?;
    }
    write_block(&mut reader, 0, &superblock.encode(), superblock.unit_blocks)?;
    let mut core = Core::new(&Appended, superblock, *options, reader.cell);
    core.space.dirty.extend(0..superblock.usage_blocks());
    with_root(core, reader, options)
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

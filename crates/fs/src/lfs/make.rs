//! Making: areas by the size of the device, the superblock twice, a root directory, and the first check-point.

use ssdlab_base::{Op, Request};
use ssdlab_host::Device;

use super::mount::fits;
use super::tables::Overwritten;
use crate::call::BLOCK_BYTES;
use crate::config::{MakeOptions, Options};
use crate::core::Core;
use crate::error::MakeError;
use crate::file_system::FileSystem;
use crate::format::superblock::{Areas, Superblock};
use crate::format::{BLOCK_SECTORS, map, summary, usage};
use crate::make::{FOR_FILES, check_sizes, for_files, nodes_of, reserve, run, with_root, write_block};
use crate::reader::Reader;

/// The superblock of a file system on so many sectors.
pub(crate) fn plan(sectors: u64, options: &MakeOptions) -> Result<Superblock, MakeError> {
    let segment_blocks = options.segment / BLOCK_BYTES;
    let count = sectors / BLOCK_SECTORS / segment_blocks;
    let blocks = count * segment_blocks;
    check_sizes(blocks, options)?;
    let nodes = nodes_of(blocks);
    // Each area begins a segment.
    let segments = |blocks: u64| blocks.div_ceil(segment_blocks);
    let usage_blocks = count.div_ceil(usage::entries_with_bits(segment_blocks as u32).into());
    let map = 3 + segments(2 * usage_blocks);
    let summaries = map + segments(2 * nodes / map::ENTRIES as u64);
    let main = summaries + segments(count * segment_blocks.div_ceil(summary::PLAIN_ENTRIES as u64));
    let least = main + reserve(options) + u64::from(FOR_FILES);
    if count < least {
        return Err(MakeError::TooSmall { found: count, blocks: segment_blocks, least });
    }
    let at = |segment: u64| (segment * segment_blocks) as u32;
    let mut superblock = Superblock {
        volume: 0,
        segment_blocks: segment_blocks as u32,
        segments: count as u32,
        unit_blocks: 1,
        nodes: nodes as u32,
        map_segments: 0,
        user_blocks: (for_files(count - main, options) * segment_blocks) as u32,
        logs: options.logs,
        areas: Some(Areas { usage: at(3), map: at(map), summaries: at(summaries), main: main as u32 }),
    };
    superblock.volume = superblock.volume_of(options.seed);
    Ok(superblock)
}

/// Makes an empty file system on a device, whose contents are lost, and mounts it.
///
/// # Errors
/// The device cannot be written anywhere, or is too small, or a command failed.
pub(crate) fn make(device: Box<dyn Device>, make: &MakeOptions, options: &Options) -> Result<FileSystem, MakeError> {
    let mut reader = Reader::new(device);
    let below = reader.below.device();
    if !fits(below) {
        let identity = below.identify();
        let found = format!("{} of the design {}, which is only appended to", identity.name, identity.design);
        return Err(MakeError::NoOverwrites { found });
    }
    let (sectors, trims) = (below.sectors(), below.trims());
    let superblock = plan(sectors, make)?;
    if trims {
        // As mkfs does: the drive forgets what was there.
        run(&mut reader, Request::new(Op::Trim, 0, sectors), &[])?;
    }
    let block = superblock.encode();
    write_block(&mut reader, 0, &block, 1)?;
    write_block(&mut reader, 1, &block, 1)?;
    let core = Core::new(&Overwritten, superblock, *options, reader.cell);
    with_root(core, reader, options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::usage::entries_with_bits;

    fn options(segment: u64) -> MakeOptions {
        MakeOptions { segment, ..MakeOptions::default() }
    }

    /// Two megabytes have 512 blocks, whose bits take 64 bytes of an entry, as in F2FS.
    #[test]
    fn areas_follow_each_other_and_take_little() {
        let superblock = plan(13_600_000_000 / 512, &options(2 << 20)).expect("a drive of 13.6 GB");
        assert_eq!((superblock.segment_blocks, superblock.segments, superblock.nodes), (512, 6484, 1 << 22));
        assert_eq!((entries_with_bits(512), superblock.usage_blocks(), superblock.map_blocks()), (50, 130, 8192));
        let areas = superblock.areas.expect("its areas");
        assert_eq!((areas.usage, areas.map, areas.summaries, areas.main), (3 * 512, 4 * 512, 36 * 512, 49));
        assert_eq!(superblock.data_blocks(), 512);
        assert_eq!((superblock.summary_parts(), superblock.summary_address(7, 0)), (1, 36 * 512 + 7));
        assert_eq!(superblock.map_place(5, 2), 4 * 512 + 8192 + 5);
        // 5 % of the main area are kept.
        let main = 6484 - 49;
        assert_eq!(superblock.user_blocks, (main - (main * 5_u32).div_ceil(100)) * 512);
        let large = plan(13_600_000_000 / 512, &options(16 << 20)).expect("a drive of 13.6 GB");
        assert_eq!((large.segment_blocks, large.summary_parts(), entries_with_bits(4096)), (4096, 8, 7));
    }

    #[test]
    fn every_superblock_comes_back_and_what_is_too_small_is_refused_with_what_was_expected() {
        for (sectors, segment) in [(1 << 16, 32 << 10), (1 << 20, 64 << 10), (1 << 24, 2 << 20), (1 << 33, 64 << 20)] {
            let superblock = plan(sectors, &options(segment)).expect("a drive");
            assert_eq!(Superblock::decode_with_areas(&superblock.encode()), Ok(superblock));
            assert!(Superblock::decode(&superblock.encode()).is_err());
        }
        let refused = plan(1 << 16, &options(2 << 20));
        let Err(MakeError::TooSmall { found: 16, blocks: 512, least }) = refused else { panic!("{refused:?}") };
        assert!(plan((least + 1) << 12, &options(2 << 20)).is_ok());
        assert!(matches!(plan(1 << 40, &options(2 << 20)), Err(MakeError::TooLarge { .. })));
    }
}

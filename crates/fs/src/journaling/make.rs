//! Making: groups by the size of the device, the superblock and its copies, bitmaps, an empty root directory, and an empty journal.

use std::collections::BTreeMap;

use ssdlab_base::{Op, Request};
use ssdlab_host::Device;

use super::format::group::{self, Descriptor};
use super::format::inode::{self, Inode};
use super::format::log::Tail;
use super::format::superblock::{DESCRIPTORS, INODES, Superblock};
use super::log::address;
use super::map;
use super::mount::fits;
use super::space::replace;
use crate::call::{BLOCK_BYTES, FileKind, ROOT};
use crate::config::{MakeOptions, Options};
use crate::error::MakeError;
use crate::file_system::FileSystem;
use crate::format::{BLOCK_SECTORS, Bytes, zeroes};
use crate::make::{MOST_BLOCKS, of_mount, run, write_block};
use crate::reader::Reader;

/// Bytes of the device for each inode (`inode_ratio` of mke2fs).
const BYTES_PER_INODE: u64 = 16384;

/// Groups whose bitmaps and tables lie together by the rules of ext4 (`flex_bg` of mke2fs).
const FLEX: u32 = 16;

/// Blocks of a journal at least.
const LEAST_JOURNAL: u64 = 128;

/// Blocks of a last group at least: with fewer it is not worth its metadata.
const LEAST_GROUP: u64 = 50;

/// Blocks that files need at least.
const FOR_FILES: u64 = 32;

/// Blocks of the journal on so many blocks (mke2fs); an eighth of a device for which mke2fs makes none.
fn journal_of(blocks: u64) -> u64 {
    match blocks {
        0..2048 => (blocks / 8).max(LEAST_JOURNAL),
        2048..32_768 => 1024,
        32_768..262_144 => 4096,
        262_144..524_288 => 8192,
        524_288..1_048_576 => 16_384,
        _ => 32_768,
    }
}

/// The superblock of a file system on so many blocks; `None` where they are too few.
fn of_blocks(blocks: u64, make: &MakeOptions) -> Option<Superblock> {
    let group_blocks = make.segment / BLOCK_BYTES;
    let group_inodes = (group_blocks * BLOCK_BYTES / BYTES_PER_INODE).max(1).next_multiple_of(INODES.into());
    let flex = if make.rules == super::Rules::Ext4 { FLEX } else { 1 };
    let journal = if make.journal > 0 { make.journal / BLOCK_BYTES } else { journal_of(blocks) };
    if journal < LEAST_JOURNAL || journal >= blocks {
        return None;
    }
    let mut superblock = Superblock {
        volume: 0,
        blocks: blocks as u32,
        group_blocks: group_blocks as u32,
        group_inodes: group_inodes as u32,
        flex,
        journal: journal as u32,
        rules: make.rules,
        first_orphan: 0,
    };
    // A last group that has room for little more than its metadata is left out.
    let last = superblock.groups().checked_sub(1)?;
    if u64::from(superblock.blocks_of(last)) < u64::from(superblock.prefix(last)) + LEAST_GROUP {
        superblock.blocks = superblock.first_of(last);
    }
    if superblock.blocks < 64 || (0..superblock.groups()).any(|one| superblock.prefix(one) >= superblock.blocks_of(one))
    {
        return None;
    }
    let free: u64 =
        (0..superblock.groups()).map(|one| u64::from(superblock.blocks_of(one) - superblock.prefix(one))).sum();
    superblock.volume = superblock.volume_of(make.seed);
    (free >= journal + FOR_FILES && superblock.journal_runs().is_some()).then_some(superblock)
}

/// The superblock of a file system on so many sectors.
pub(crate) fn plan(sectors: u64, make: &MakeOptions) -> Result<Superblock, MakeError> {
    let blocks = sectors / BLOCK_SECTORS;
    if blocks >= MOST_BLOCKS {
        return Err(MakeError::TooLarge { found: blocks, most: MOST_BLOCKS });
    }
    of_blocks(blocks, make).ok_or_else(|| {
        let each = make.segment / BLOCK_BYTES;
        let found = blocks / each;
        let is_enough = |groups: &u64| of_blocks(groups * each, make).is_some();
        let least = (found + 1..found + 10_000).find(is_enough).unwrap_or(found + 10_000);
        MakeError::TooFewGroups { found, blocks: each, least }
    })
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
        // As mke2fs does: the drive forgets what was there.
        run(&mut reader, Request::new(Op::Trim, 0, sectors), &[])?;
    }
    let mut blocks = blocks_of(&superblock);
    // The superblock comes last: before it there is no file system.
    let first = blocks.remove(&0).unwrap_or_else(zeroes);
    for (place, block) in &blocks {
        write_block(&mut reader, *place, block, 1)?;
    }
    write_block(&mut reader, 0, &first, 1)?;
    run(&mut reader, Request::new(Op::Flush, 0, 0), &[])?;
    FileSystem::mount(reader.below.into_device(), options).map_err(of_mount)
}

/// Every block that is written, by its place.
fn blocks_of(superblock: &Superblock) -> BTreeMap<u32, Box<Bytes>> {
    let mut blocks = BTreeMap::new();
    let runs = superblock.journal_runs().unwrap_or_default();
    let mut told = Vec::new();
    for group in 0..superblock.groups() {
        let (first, count) = (superblock.first_of(group), superblock.blocks_of(group));
        let (mut bitmap, mut inodes) = (zeroes(), zeroes());
        let is_journal = |at: u32| runs.iter().any(|(begin, length)| (*begin..begin + length).contains(&at));
        let is_used = |bit: u32| bit >= count || bit < superblock.prefix(group) || is_journal(first + bit);
        let mut free = 0;
        for bit in 0..8 * bitmap.len() as u32 {
            free += u32::from(!is_used(bit));
            replace(&mut bitmap, bit, is_used(bit));
            replace(&mut inodes, bit, bit >= superblock.group_inodes);
        }
        let root = u32::from(group == 0);
        if group == 0 {
            replace(&mut inodes, ROOT.number - 1, true);
        }
        told.push(Descriptor {
            free_blocks: free,
            free_inodes: superblock.group_inodes - root,
            directories: root,
            unused_inodes: superblock.group_inodes - root,
            block_sum: group::bitmap_sum(superblock.volume, group, false, &bitmap),
            inode_sum: group::bitmap_sum(superblock.volume, group, true, &inodes),
        });
        blocks.insert(superblock.block_bitmap(group), bitmap);
        blocks.insert(superblock.inode_bitmap(group), inodes);
    }
    let mut root = Inode::new(ROOT.number, ROOT.generation, FileKind::Directory, ROOT.number, ssdlab_base::Nanos::ZERO);
    map::begin(superblock.rules, &mut root);
    let (place, index) = superblock.place_of_inode(ROOT.number);
    let mut table = zeroes();
    root.encode(superblock.volume, &mut table[index * inode::SIZE..(index + 1) * inode::SIZE]);
    blocks.insert(place, table);
    blocks.insert(address(&runs, 0), Tail { start: 0, sequence: 1, epoch: 0 }.encode(superblock.volume));
    for group in (0..superblock.groups()).filter(|group| Superblock::has_copy(*group)) {
        let first = superblock.first_of(group);
        blocks.insert(first, superblock.encode());
        for (part, told) in (0..).zip(told.chunks(DESCRIPTORS as usize)) {
            blocks.insert(first + 1 + part, group::encode(superblock, part, told));
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journaling::Rules;

    fn options(group: u64, journal: u64) -> MakeOptions {
        MakeOptions { segment: group, journal, rules: Rules::Ext4, ..MakeOptions::default() }
    }

    /// The sizes of mke2fs: 13.6 GB have 102 groups with 8,192 inodes each and a journal of 128 MB.
    #[test]
    fn sizes_are_those_of_mke2fs() {
        let superblock = plan(13_600_000_000 / 512, &options(128 << 20, 0)).expect("a drive of 13.6 GB");
        assert_eq!((superblock.blocks, superblock.groups()), (3_320_312, 102));
        assert_eq!((superblock.group_inodes, superblock.table_blocks(), superblock.flex), (8192, 512, 16));
        assert_eq!(superblock.journal, 32_768);
        let each = [(2048, 1024), (32_768, 4096), (262_144, 8192), (524_288, 16_384), (1 << 20, 32_768)];
        for (blocks, journal) in each {
            assert_eq!(journal_of(blocks), journal, "{blocks} blocks");
        }
    }

    #[test]
    fn small_devices_are_refused_with_what_is_needed() {
        for (group, journal) in [(256 << 10, 1 << 20), (512 << 10, 1 << 20), (1 << 20, 0)] {
            let make = options(group, journal);
            let refused = plan(100 * BLOCK_SECTORS, &make);
            let Err(MakeError::TooFewGroups { blocks, least, .. }) = refused else { panic!("{refused:?}") };
            let made = plan(least * blocks * BLOCK_SECTORS, &make).expect("so many groups");
            assert_eq!(Superblock::decode(&made.encode()), Ok(made));
        }
        assert!(matches!(plan(1 << 40, &options(1 << 20, 0)), Err(MakeError::TooLarge { .. })));
        let large = options(1 << 20, 64 << 20);
        assert!(plan(4096 * BLOCK_SECTORS, &large).is_err(), "a journal larger than the file system");
    }

    #[test]
    fn every_block_that_is_written_has_a_place_of_its_own() {
        let superblock = plan(3000 * BLOCK_SECTORS, &options(512 << 10, 1 << 20)).expect("a drive");
        let blocks = blocks_of(&superblock);
        let copies = (0..superblock.groups()).filter(|group| Superblock::has_copy(*group)).count() as u32;
        let expected = copies * (1 + superblock.descriptor_blocks()) + 2 * superblock.groups() + 2;
        assert_eq!(blocks.len() as u32, expected);
    }
}

//! Damaged blocks and images of a file system, for fuzz targets and tests: they are refused with an error, or are ones that work.
//!
//! ```text
//!   bytes    what -> edits of 4 bytes each: which block, where in it, how
//! ```

use ssdlab_base::Nanos;
use ssdlab_flash::Contents;
use ssdlab_fs::check::check;
use ssdlab_fs::format::checkpoint::{self, Checkpoint, Journal, Part, Position};
use ssdlab_fs::format::inode::{Index, Inode};
use ssdlab_fs::format::summary::{Link, Owner};
use ssdlab_fs::format::superblock::{Areas, Superblock};
use ssdlab_fs::format::usage::{SegmentUse, Usage, WithBits};
use ssdlab_fs::format::{BLOCK, Bytes, block_of, directory, map, mend, summary, superblock, usage, zeroes};
use ssdlab_fs::journaling::{self, Rules};
use ssdlab_fs::kinds::FileSystemKind;
use ssdlab_fs::{Call, Content, FileId, FileKind, FileSystem, MakeOptions, Options, ROOT, Reply};
use ssdlab_host::Device;

use super::small::{small_block_drive, small_drive};
use super::tree::ask;

/// Segments of the sample's drive.
const SEGMENTS: u32 = 64;

/// Blocks of a segment of the sample's drive.
pub const SEGMENT_BLOCKS: u32 = 32;

/// All blocks of the sample's drive.
pub const BLOCKS: u32 = SEGMENTS * SEGMENT_BLOCKS;

/// Bytes of an edit.
const EDIT: usize = 4;

/// Names and files that are used of a damaged image at most.
const MOST_USED: u32 = 200;

fn cache(blocks: u64) -> Options {
    Options { cache: blocks * BLOCK as u64, ..Options::default() }
}

/// A file system whose host crashed, with some of everything: files of one block and of many, index blocks of all levels, directories,
/// and fsyncs behind the check-point, also of new files.
///
/// # Panics
/// Never: the drive is large enough.
pub fn sample() -> Box<dyn Device> {
    let drive = small_drive(SEGMENTS, Contents::Nothing, "4k", SEGMENT_BLOCKS / 4);
    sample_on(drive, &MakeOptions::default())
}

/// A file system of the kind `lfs` with the files of [`sample`]: its metadata is overwritten.
///
/// # Panics
/// Never: the drive is large enough.
pub fn sample_with_areas() -> Box<dyn Device> {
    let kind = FileSystemKind::of_name("lfs").expect("it is one");
    let make = MakeOptions { kind, segment: u64::from(SEGMENT_BLOCKS) * BLOCK as u64, ..MakeOptions::default() };
    sample_on(small_block_drive(BLOCKS, Contents::Nothing), &make)
}

/// A file system of the kind `journaling` with the files of [`sample`], whose journal has transactions.
///
/// # Panics
/// Never: the drive is large enough.
pub fn sample_with_journal(rules: Rules) -> Box<dyn Device> {
    let kind = FileSystemKind::of_name("journaling").expect("it is one");
    let make = MakeOptions { kind, segment: 1 << 20, journal: 1 << 20, rules, ..MakeOptions::default() };
    sample_on(small_block_drive(BLOCKS, Contents::Nothing), &make)
}

fn sample_on(drive: Box<dyn Device>, make: &MakeOptions) -> Box<dyn Device> {
    let kind = make.kind;
    let mut fs = FileSystem::make(drive, make, &cache(400)).expect("a drive that is large enough");
    let make = |fs: &mut FileSystem, call: Call| match ask(fs, call).result {
        Ok(Reply::Found(found)) => found.file,
        other => panic!("{other:?}"),
    };
    let write = |fs: &mut FileSystem, file: FileId, offset: u64, length: u32| {
        let call = Call::Write { file, offset, length, content: Content::Nothing, mode: Default::default() };
        assert_eq!(ask(fs, call).result, Ok(Reply::Done));
    };
    let inner = make(&mut fs, Call::Mkdir { directory: ROOT, name: b"inner".to_vec() });
    for number in 0..30 {
        let directory = if number % 2 == 0 { ROOT } else { inner };
        let file = make(&mut fs, Call::Create { directory, name: format!("f{number}").into_bytes() });
        write(&mut fs, file, 100, 9_000);
    }
    let large = make(&mut fs, Call::Create { directory: inner, name: b"large".to_vec() });
    (0..5).for_each(|at| write(&mut fs, large, at * 5_000_000_000, 20_000));
    assert_eq!(ask(&mut fs, Call::Sync).result, Ok(Reply::Done));
    let before = fs.metrics().rolled_fsyncs;
    for number in 0..8 {
        let directory = if number % 2 == 0 { ROOT } else { inner };
        let file = make(&mut fs, Call::Create { directory, name: format!("late{number}").into_bytes() });
        write(&mut fs, file, 0, 5_000);
        assert_eq!(ask(&mut fs, Call::Fsync { file }).result, Ok(Reply::Done));
    }
    for at in 0..3 {
        write(&mut fs, large, at * 7_000_000_000, 20_000);
        assert_eq!(ask(&mut fs, Call::Fsync { file: large }).result, Ok(Reply::Done));
    }
    let rolled = fs.metrics().rolled_fsyncs - before;
    assert_eq!(rolled, if kind.overwrites { 0 } else { 11 }, "no fsync of a log is a check-point");
    fs.into_device()
}

/// The number of the sample's file system, with which its checksums begin.
///
/// # Panics
/// There is no superblock.
pub fn volume(device: &dyn Device) -> u64 {
    let superblock = device.record(0).expect("a superblock");
    u64::from_le_bytes(superblock[40..48].try_into().expect("8 bytes"))
}

/// Edits a block: one byte, or four.
fn edit(block: &mut Bytes, edit: &[u8]) {
    let at = (usize::from(edit[1]) << 4 | usize::from(edit[2] >> 4)) % BLOCK;
    match edit[2] & 15 {
        0..4 => block[at] = edit[3],
        4..7 => block[at] = block[at].wrapping_add(edit[3]),
        7..10 => block[at] ^= 1 << (edit[3] % 8),
        wide => {
            let at = (at / 4 * 4).min(BLOCK - 4);
            let word = u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]);
            let word = match wide {
                10 => 0,
                11 => u32::MAX,
                12 => word.wrapping_add(1),
                13 => word.wrapping_sub(1),
                14 => word.wrapping_mul(2),
                _ => u32::from(edit[3]) * 8,
            };
            block[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
    }
}

/// Whether a block has a header with a checksum. Those of the inode map have none.
fn has_header(block: &Bytes) -> bool {
    block[8..12].iter().all(u8::is_ascii_uppercase)
}

/// Whether a block has the header of a superblock, whose checksum is that of no file system in particular.
fn is_superblock(block: &Bytes) -> bool {
    matches!(&block[8..12], b"ALFS" | b"LFSS" | b"JFSS")
}

/// What came of a damaged image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handled {
    /// The check named something.
    pub named: bool,
    /// It could not be mounted.
    pub refused: bool,
}

/// Damages the sample as the bytes say, with checksums mended or not; checks it, mounts it, and uses all of it.
///
/// # Panics
/// Something panics that should end with an error.
pub fn damaged_image(bytes: &[u8]) -> Handled {
    damaged(sample, bytes)
}

/// Damages the sample with metadata that is overwritten as [`damaged_image`] does the other.
///
/// # Panics
/// Something panics that should end with an error.
pub fn damaged_image_with_areas(bytes: &[u8]) -> Handled {
    damaged(sample_with_areas, bytes)
}

/// Damages the sample with a journal as [`damaged_image`] does the other, by the rules that the last byte says.
///
/// # Panics
/// Something panics that should end with an error.
pub fn damaged_image_with_journal(bytes: &[u8]) -> Handled {
    let is_odd = bytes.last().is_some_and(|byte| byte & 1 == 1);
    let sample: fn() -> Box<dyn Device> =
        if is_odd { || sample_with_journal(Rules::Ext3) } else { || sample_with_journal(Rules::Ext4) };
    damaged(sample, bytes)
}

fn damaged(sample: fn() -> Box<dyn Device>, bytes: &[u8]) -> Handled {
    let Some((first, edits)) = bytes.split_first() else { return Handled::default() };
    let mut device = sample();
    let volume = volume(&*device);
    let all: Vec<u32> = (0..BLOCKS).filter(|block| device.record(u64::from(*block) * 8).is_some()).collect();
    let is_mended = first & 3 != 0;
    let first_block = device.record(0).map(block_of);
    let journaled = first_block.and_then(|block| journaling::format::superblock::Superblock::decode(&block).ok());
    for one in edits.chunks_exact(EDIT).take(24) {
        // Of more than 256 blocks of metadata an edit reaches every one by its place in it, too.
        let which = usize::from(one[0]) + (usize::from(first >> 2) << 8);
        let block = all[which % all.len()];
        let sector = u64::from(block) * 8;
        let mut bytes = block_of(device.record(sector).unwrap_or(&[]));
        edit(&mut bytes, one);
        if is_mended && has_header(&bytes) {
            let volume = if is_superblock(&bytes) { 0 } else { volume };
            mend(&mut bytes, volume);
        }
        if let Some(superblock) = journaled.as_ref().filter(|_| is_mended) {
            journaling::format::mend(superblock, block, &mut bytes);
        }
        device.keep_record(sector, &bytes[..]);
    }
    let (device, found) = check(device);
    let named = found.is_ok_and(|found| !found.problems.is_empty());
    let blocks = if first & 4 == 0 { 20 } else { 400 };
    match FileSystem::mount(device, &cache(blocks)) {
        Ok(mut fs) => use_all(&mut fs),
        Err(_) => return Handled { named, refused: true },
    }
    Handled { named, refused: false }
}

/// Walks the whole tree, and changes what it can.
fn use_all(fs: &mut FileSystem) {
    let (mut directories, mut used) = (vec![ROOT], 0);
    while let Some(directory) = directories.pop() {
        let listed = ask(fs, Call::List { directory, position: 0, most: 100 }).result;
        let Ok(Reply::Listed { entries, .. }) = listed else { continue };
        for entry in entries {
            used += 1;
            if used > MOST_USED {
                return;
            }
            let Ok(Reply::Found(found)) = ask(fs, Call::Lookup { directory, name: entry.name.clone() }).result else {
                continue;
            };
            let file = found.file;
            let _ = ask(fs, Call::Read { file, offset: 0, length: 30_000, is_direct: false });
            let content = Content::Nothing;
            let _ = ask(fs, Call::Write { file, offset: 5_000, length: 5_000, content, mode: Default::default() });
            let _ = ask(fs, Call::Truncate { file, size: 3_000 });
            let to = [b"moved-", &entry.name[..entry.name.len().min(100)]].concat();
            let (from_directory, from, to_directory, no_replace) = (directory, entry.name, ROOT, false);
            let rename = Call::Rename { from_directory, from, to_directory, to: to.clone(), no_replace };
            let _ = ask(fs, rename);
            let _ = ask(fs, Call::Unlink { directory: ROOT, name: to });
            directories.push(file);
        }
        let _ = ask(fs, Call::Create { directory, name: b"new".to_vec() });
    }
    let _ = ask(fs, Call::Sync);
    fs.run_until(Nanos(fs.now().0 + 200_000_000_000));
}

const VOLUME: u64 = 77;

/// Decodes a block of each kind, damaged as the bytes say. What is accepted is encoded as it was read.
///
/// # Panics
/// A decoder panics, or accepts what it does not encode.
pub fn damaged_block(bytes: &[u8]) {
    let Some((first, edits)) = bytes.split_first() else { return };
    let (kind, is_mended) = (first >> 1, first & 1 == 1);
    let mut block = example(kind);
    edits.chunks_exact(EDIT).take(64).for_each(|one| edit(&mut block, one));
    if is_mended && has_header(&block) {
        let volume = if is_superblock(&block) { 0 } else { VOLUME };
        mend(&mut block, volume);
    }
    decode(kind, &block);
}

/// Kinds of blocks that there are.
const KINDS_OF_BLOCKS: u8 = 12;

/// A superblock with areas.
fn with_areas() -> Superblock {
    let at = |segment: u32| segment * SEGMENT_BLOCKS;
    Superblock {
        volume: VOLUME,
        segment_blocks: SEGMENT_BLOCKS,
        segments: SEGMENTS,
        unit_blocks: 1,
        nodes: 2048,
        map_segments: 0,
        user_blocks: 1000,
        logs: 6,
        areas: Some(Areas { usage: at(3), map: at(4), summaries: at(5), main: 7 }),
    }
}

fn bits_of(blocks: u32) -> WithBits {
    let usage = Usage { segment_use: SegmentUse::Sealed(2), valid: blocks, age: 5 };
    (usage, vec![(1 << blocks) - 1])
}

/// A sound block of a kind.
fn example(kind: u8) -> Box<Bytes> {
    match kind % KINDS_OF_BLOCKS {
        0 => Superblock {
            volume: VOLUME,
            segment_blocks: SEGMENT_BLOCKS,
            segments: SEGMENTS,
            unit_blocks: 1,
            nodes: 2048,
            map_segments: 4,
            user_blocks: 1000,
            logs: 6,
            areas: None,
        }
        .encode(),
        1 => {
            let mut inode = Inode::new(5, 9, FileKind::File, 1, Nanos(3));
            (0..20).for_each(|index| inode.set_direct(index * 7, 100 + index));
            inode.index = [7, 0, 8, 0, 0, 9];
            inode.encode(VOLUME, 4096 * 140)
        }
        2 => {
            let mut index = Index::new(7, 5, 9, 1, 920);
            (0..300).for_each(|entry| index.set(entry * 3, 100 + entry as u32));
            index.encode(VOLUME)
        }
        3 => {
            let mut block = zeroes();
            for (number, name) in [&b"a"[..], b"another-name-that-takes-slots", &[b'x'; 255]].into_iter().enumerate() {
                let slot = directory::room(&block, directory::slots_of(name)).unwrap_or(0);
                directory::put(&mut block, slot, name, number as u32 + 2, FileKind::File);
            }
            directory::seal_block(&mut block, VOLUME, 1, 1, 0);
            block
        }
        4 => map::encode(0, &std::array::from_fn(|entry| entry as u32 * 3)),
        5 => map::encode_table(&(0..900).collect::<Vec<u32>>()),
        6 => summary::encode(
            VOLUME,
            4,
            0,
            &[Owner::Node(5), Owner::Data { inode: 5, index: 2 }, Owner::Nothing],
            Link::default(),
        ),
        7 => {
            let open = Usage { segment_use: SegmentUse::Open(2), valid: 3, age: 5 };
            usage::encode(VOLUME, 0, &[Usage { segment_use: SegmentUse::Fixed, ..open }, open, Usage::default()])
        }
        8 => with_areas().encode(),
        9 => usage::encode_with_bits(VOLUME, 0, SEGMENT_BLOCKS, &[bits_of(3), bits_of(0), bits_of(30)]),
        kind => {
            let part = Part { segment: 5, first: 0, owners: vec![Owner::Node(5); 20] };
            let journal = Journal { nodes: vec![(5, 100), (6, 0)], usage: vec![(9, bits_of(7))] };
            let checkpoint = Checkpoint {
                version: 12,
                journal: (kind == 10).then_some(journal),
                logs: [Position { segment: 5, next: 3 }; checkpoint::LOGS],
                table: vec![5, 6],
                usage: vec![7],
                orphans: vec![8, 9],
                parts: vec![part.clone(), part],
                ..Checkpoint::default()
            };
            checkpoint.encode(VOLUME).swap_remove(0)
        }
    }
}

fn decode(kind: u8, block: &Bytes) {
    match kind % KINDS_OF_BLOCKS {
        0 => {
            if let Ok(one) = Superblock::decode(block) {
                assert_eq!(superblock::Superblock::decode(&one.encode()), Ok(one), "a superblock that was accepted");
                // What follows from it stays within its numbers.
                assert!(one.data_blocks() > 0 && one.data_blocks() < one.segment_blocks, "{one:?}");
                assert!(one.map_blocks() <= one.nodes && one.table_blocks() <= one.map_blocks(), "{one:?}");
            }
        }
        1 => {
            if let Ok(one) = Inode::decode(block, VOLUME, 5, BLOCKS) {
                let again = one.encode(VOLUME, one.size);
                assert_eq!(Inode::decode(&again, VOLUME, 5, BLOCKS).as_ref(), Ok(&one), "an inode that was accepted");
            }
        }
        2 => {
            if let Ok(one) = Index::decode(block, VOLUME, 7, BLOCKS) {
                let again = one.encode(VOLUME);
                assert_eq!(Index::decode(&again, VOLUME, 7, BLOCKS).as_ref(), Ok(&one), "an index block");
            }
        }
        3 => {
            let is_sound = directory::check(block, VOLUME, 1, 1, 0).is_ok();
            let names = directory::entries(block, 0).count();
            assert!(names <= directory::SLOTS, "{names} names");
            if is_sound {
                let mut changed = Box::new(*block);
                if let Some(slot) = directory::room(&changed, 1) {
                    directory::put(&mut changed, slot, b"n", 7, FileKind::File);
                    assert_eq!(directory::entries(&changed, 0).count(), names + 1, "a name more");
                    directory::lead(&mut changed, slot, 9);
                    directory::remove(&mut changed, slot);
                }
                assert_eq!(directory::entries(&changed, 0).count(), names, "and one less");
            }
        }
        4 => {
            if let Ok(places) = map::decode(block, 0, BLOCKS) {
                assert_eq!(*map::encode(0, &places), *block, "a block of the inode map that was accepted");
            }
        }
        5 => {
            if let Ok(places) = map::decode_table(block, BLOCKS) {
                assert_eq!(*map::encode_table(&places), *block, "a TIMB block that was accepted");
            }
        }
        6 => drop(summary::decode(block, VOLUME, 4, 0)),
        7 => {
            if let Ok(all) = usage::decode(block, VOLUME, 0, SEGMENT_BLOCKS) {
                let again = usage::encode(VOLUME, 0, &all);
                assert_eq!(usage::decode(&again, VOLUME, 0, SEGMENT_BLOCKS), Ok(all), "a usage block");
            }
        }
        8 => {
            if let Ok(one) = Superblock::decode_with_areas(block) {
                assert_eq!(Superblock::decode_with_areas(&one.encode()), Ok(one), "a superblock that was accepted");
                let last = one.summary_address(one.segments - 1, one.summary_parts() - 1);
                assert!(last < one.first_segment() * one.segment_blocks, "{one:?}");
            }
        }
        9 => {
            if let Ok(all) = usage::decode_with_bits(block, VOLUME, 0, SEGMENT_BLOCKS) {
                let again = usage::encode_with_bits(VOLUME, 0, SEGMENT_BLOCKS, &all);
                assert_eq!(usage::decode_with_bits(&again, VOLUME, 0, SEGMENT_BLOCKS), Ok(all), "a usage block");
            }
        }
        _ => {
            let _ = Checkpoint::begins(block, VOLUME);
            let _ = Checkpoint::version_of(block, VOLUME);
            if let Ok(one) = Checkpoint::decode(&[block], VOLUME) {
                let again = one.encode(VOLUME);
                let parts: Vec<&Bytes> = again.iter().map(|block| &**block).collect();
                assert_eq!(Checkpoint::decode(&parts, VOLUME).as_ref(), Ok(&one), "a check-point that was accepted");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_are_not_damaged_are_accepted() {
        for kind in 0..KINDS_OF_BLOCKS {
            let block = example(kind);
            let accepted = match kind {
                0 => Superblock::decode(&block).is_ok(),
                1 => Inode::decode(&block, VOLUME, 5, BLOCKS).is_ok(),
                2 => Index::decode(&block, VOLUME, 7, BLOCKS).is_ok(),
                3 => directory::check(&block, VOLUME, 1, 1, 0).is_ok(),
                4 => map::decode(&block, 0, BLOCKS).is_ok(),
                5 => map::decode_table(&block, BLOCKS).is_ok(),
                6 => summary::decode(&block, VOLUME, 4, 0).is_ok(),
                7 => usage::decode(&block, VOLUME, 0, SEGMENT_BLOCKS).is_ok(),
                8 => Superblock::decode_with_areas(&block).is_ok(),
                9 => usage::decode_with_bits(&block, VOLUME, 0, SEGMENT_BLOCKS).is_ok(),
                _ => Checkpoint::decode(&[&block], VOLUME).is_ok(),
            };
            assert!(accepted, "kind {kind}");
            decode(kind, &block);
        }
    }
}

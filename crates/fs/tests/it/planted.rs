//! Corruptions that are planted one by one, with checksums mended: the check names each with its block.

use std::collections::BTreeMap;

use ssdlab_fs::check::check;
use ssdlab_fs::format::checkpoint::Checkpoint;
use ssdlab_fs::format::usage::SegmentUse;
use ssdlab_fs::format::{Bytes, block_of, directory, map, mend, summary, usage};
use ssdlab_fs::{Call, ROOT, Reply};
use ssdlab_host::Device;
use ssdlab_torture::files::fuzzing::{BLOCKS, SEGMENT_BLOCKS as SEGMENT, sample as image, volume};

use crate::drive::{cache, call};

/// What a device has, by its newest check-point.
pub(crate) struct Image {
    pub(crate) device: Box<dyn Device>,
    pub(crate) volume: u64,
    pub(crate) checkpoint: Checkpoint,
    pub(crate) checkpoint_block: u32,
    /// TIMB block, block of the inode map, and places of nodes.
    table: u32,
    pub(crate) map: u32,
    pub(crate) places: BTreeMap<u32, u32>,
}

/// The newest check-point of one block among the blocks of segments 1 and 2, and that block.
pub(crate) fn newest(device: &dyn Device, volume: u64) -> (Checkpoint, u32) {
    let mut newest: Option<(Checkpoint, u32)> = None;
    for block in SEGMENT..3 * SEGMENT {
        let Some(bytes) = device.record(u64::from(block) * 8).map(block_of) else { continue };
        if let Ok(one) = Checkpoint::decode(&[&bytes], volume)
            && newest.as_ref().is_none_or(|(newest, _)| newest.version < one.version)
        {
            newest = Some((one, block));
        }
    }
    newest.expect("a check-point of one block")
}

impl Image {
    fn new() -> Image {
        let device = image();
        let get = |block: u32| device.record(u64::from(block) * 8).map(block_of);
        let volume = volume(&*device);
        let (checkpoint, checkpoint_block) = newest(&*device, volume);
        let table = checkpoint.table[0];
        let map = map::decode_table(&get(table).expect("a TIMB block"), BLOCKS).expect("one")[0];
        let places = map::decode(&get(map).expect("a block of the map"), 0, BLOCKS).expect("one");
        let places = (0..).zip(places.iter().copied()).filter(|(_, place)| *place != 0).collect();
        Image { device, volume, checkpoint, checkpoint_block, table, map, places }
    }

    /// An image whose metadata is overwritten, with its newest check-point, a block of the node map, and places of nodes.
    pub(crate) fn of(device: Box<dyn Device>, volume: u64, map: u32, places: BTreeMap<u32, u32>) -> Image {
        let (checkpoint, checkpoint_block) = newest(&*device, volume);
        Image { device, volume, checkpoint, checkpoint_block, table: 0, map, places }
    }

    pub(crate) fn get(&self, block: u32) -> Box<Bytes> {
        self.device.record(u64::from(block) * 8).map(block_of).expect("metadata")
    }

    /// Changes a block, and mends its checksum where it has one.
    pub(crate) fn change(&mut self, block: u32, change: impl FnOnce(&mut Bytes)) -> u32 {
        let mut bytes = self.get(block);
        change(&mut bytes);
        if bytes[8..12].iter().all(u8::is_ascii_uppercase) {
            mend(&mut bytes, self.volume);
        }
        self.device.keep_record(u64::from(block) * 8, &bytes[..]);
        block
    }

    pub(crate) fn change_checkpoint(&mut self, change: impl FnOnce(&mut Checkpoint)) -> u32 {
        change(&mut self.checkpoint);
        let blocks = self.checkpoint.encode(self.volume);
        self.device.keep_record(u64::from(self.checkpoint_block) * 8, &blocks[0][..]);
        self.checkpoint_block
    }

    /// Places of inodes of files, or of directories, by their numbers; the root is not among them.
    fn inodes(&self, is_directory: bool) -> Vec<(u32, u32)> {
        let is_it = |(number, place): &(&u32, &u32)| {
            let bytes = self.get(**place);
            &bytes[8..12] == b"INOD" && (bytes[32] == 2) == is_directory && **number != 1
        };
        self.places.iter().filter(is_it).map(|(number, place)| (*number, *place)).collect()
    }

    /// Places of index blocks of a level.
    fn indexes(&self, level: u8) -> Vec<u32> {
        let is_it = |place: &u32| {
            let bytes = self.get(*place);
            &bytes[8..12] == b"INDX" && bytes[32] == level
        };
        self.places.values().copied().filter(is_it).collect()
    }

    /// Blocks of a directory that its inode addresses.
    fn blocks_of(&self, inode: u32) -> Vec<u32> {
        let bytes = self.get(inode);
        (0..920).map(|index| word(&bytes[..], 160 + 4 * index)).filter(|address| *address != 0).collect()
    }

    /// A sealed segment of a log, and the first block of its summary.
    fn sealed(&self) -> u32 {
        let bytes = self.get(self.checkpoint.usage[0]);
        let all = usage::decode(&bytes, self.volume, 0, SEGMENT).expect("a usage block");
        let is_it = |usage: &usage::Usage| matches!(usage.segment_use, SegmentUse::Sealed(0..6)) && usage.valid > 0;
        all.iter().position(is_it).expect("a sealed segment") as u32
    }
}

pub(crate) fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

pub(crate) fn set(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

pub(crate) fn add(bytes: &mut [u8], at: usize, value: u32) {
    set(bytes, at, word(bytes, at).wrapping_add(value));
}

/// Plants something, and says which block the check names, and with which words.
pub(crate) type Plant = fn(&mut Image) -> (u32, &'static str);

/// Those of nodes and names come first.
pub(crate) const PLANTS: &[(&str, Plant)] = &[
    ("another number in an inode", |image| {
        let (_, place) = image.inodes(false)[0];
        (image.change(place, |bytes| add(bytes, 12, 1)), "it is not node")
    }),
    ("a kind of inode that there is not", |image| {
        let (_, place) = image.inodes(false)[1];
        (image.change(place, |bytes| bytes[32] = 7), "has no kind")
    }),
    ("a file of more than 4 TiB", |image| {
        let (_, place) = image.inodes(false)[2];
        (image.change(place, |bytes| set(bytes, 60, 1 << 20)), "bytes")
    }),
    ("a number of blocks that is none", |image| {
        let (_, place) = image.inodes(false)[3];
        (image.change(place, |bytes| add(bytes, 64, 1)), "blocks and has")
    }),
    ("a block that two files have", |image| {
        let inodes = image.inodes(false);
        let address = word(&image.get(inodes[0].1)[..], 160);
        (image.change(inodes[4].1, |bytes| set(bytes, 160, address)), "which belongs to something else")
    }),
    ("an address among the check-points", |image| {
        let (_, place) = image.inodes(false)[5];
        (image.change(place, |bytes| set(bytes, 160, SEGMENT + 1)), "which is no place for it")
    }),
    ("a block behind the end of its file", |image| {
        let (_, place) = image.inodes(false)[6];
        (image.change(place, |bytes| set(bytes, 56, 100)), "behind its end")
    }),
    ("a truncation that the check-point does not list", |image| {
        let (_, place) = image.inodes(false)[7];
        (image.change(place, |bytes| bytes[88..96].fill(0)), "is being truncated")
    }),
    ("an inode without links", |image| {
        let (_, place) = image.inodes(false)[8];
        (image.change(place, |bytes| set(bytes, 48, 0)), "has no links")
    }),
    ("a file with two links", |image| {
        let (_, place) = image.inodes(false)[9];
        (image.change(place, |bytes| set(bytes, 48, 2)), "says 2 links")
    }),
    ("another parent of a directory", |image| {
        let (_, place) = image.inodes(true)[0];
        (image.change(place, |bytes| set(bytes, 16, 5)), "and says 5")
    }),
    ("a number of names that is none", |image| {
        let (_, place) = image.inodes(true)[0];
        (image.change(place, |bytes| add(bytes, 96, 1)), "names and has")
    }),
    ("a number of links of a directory that is none", |image| {
        let place = image.places[&1];
        (image.change(place, |bytes| add(bytes, 48, 1)), "links and has")
    }),
    ("fewer levels than a directory has", |image| {
        let (_, place) = image.inodes(true)[0];
        let last = *image.blocks_of(place).last().expect("blocks of names");
        image.change(place, |bytes| bytes[33] = 0);
        (last, "is behind its levels")
    }),
    ("a name that leads to no inode", |image| {
        let block = image.blocks_of(image.places[&1])[0];
        (image.change(block, |bytes| lead_first(bytes, 500)), "which is no such inode")
    }),
    ("two names of one inode", |image| {
        let (directory, place) = image.inodes(true)[0];
        assert!(directory > 1, "the root is walked before");
        let first = directory::entries(&image.get(image.blocks_of(image.places[&1])[0]), 0)
            .find(|entry| entry.kind == ssdlab_fs::FileKind::File)
            .map(|entry| entry.number);
        let block = image.blocks_of(place)[0];
        let number = first.expect("a file in the root");
        (image.change(block, |bytes| lead_first(bytes, number)), "which has another name")
    }),
    ("a hash that is not that of its name", |image| {
        let block = image.blocks_of(image.places[&1])[0];
        let slot = directory::entries(&image.get(block), 0).next().expect("a name").slot;
        (image.change(block, |bytes| add(bytes, 64 + 32 * slot + 4, 1)), "not where its hash says")
    }),
    ("a block of names of another generation", |image| {
        let block = image.blocks_of(image.places[&1])[0];
        (image.change(block, |bytes| add(bytes, 20, 1)), "it is not block")
    }),
    ("an index block of another level", |image| {
        let block = image.indexes(1)[0];
        (image.change(block, |bytes| bytes[32] = 2), "it is not index block")
    }),
    ("an address that nothing was written to", |image| {
        let block = image.indexes(1)[0];
        let entry = (0..1008).find(|entry| word(&image.get(block)[..], 64 + 4 * entry) != 0).expect("an address");
        image.change(block, |bytes| set(bytes, 64 + 4 * entry, BLOCKS - 3));
        (block, "it names block")
    }),
    ("an entry of another node", |image| {
        let block = image.map;
        (image.change(block, |bytes| add(bytes, 8 * 3, 1)), "entry 3 is not that of node 3")
    }),
    ("two nodes in one place", |image| {
        let place = image.places[&1];
        let (number, block) = (*image.places.keys().nth(3).expect("a node"), image.map);
        (image.change(block, |bytes| set(bytes, 8 * number as usize + 4, place)), "which belongs to something else")
    }),
    ("a block of the inode map among data", |image| {
        let (place, block) = (image.places[&1], image.table);
        (image.change(block, |bytes| set(bytes, 0, place)), "which is for something else")
    }),
    ("a number of valid blocks that is none", |image| {
        let segment = image.sealed() as usize;
        let block = image.checkpoint.usage[0];
        (image.change(block, |bytes| add(bytes, 32 + 16 * segment, 1)), "valid blocks of segment")
    }),
    ("a state that no segment has", |image| {
        let segment = image.sealed() as usize;
        let block = image.checkpoint.usage[0];
        (image.change(block, |bytes| bytes[32 + 16 * segment + 4] = 9), "has the state 9")
    }),
    ("a log that writes another segment", |image| {
        let segment = image.sealed() as usize;
        let block = image.checkpoint.usage[0];
        (image.change(block, |bytes| bytes[32 + 16 * segment + 4] = 2), "which writes another")
    }),
    ("another owner in a summary", |image| {
        let block = image.sealed() * SEGMENT + SEGMENT - 1;
        assert!(summary::decode(&image.get(block), image.volume, block / SEGMENT, 0).is_ok(), "a summary");
        let owners: Vec<usize> = (0..31).filter(|entry| word(&image.get(block)[..], 32 + 8 * entry) != 0).collect();
        image.change(block, |bytes| owners.iter().for_each(|entry| add(bytes, 32 + 8 * entry, 1)));
        (block, "names other owners than the inodes")
    }),
    ("a number of nodes that is none", |image| {
        (image.change_checkpoint(|checkpoint| checkpoint.nodes_used += 1), "nodes, it says")
    }),
    ("free numbers before the first", |image| {
        image.change_checkpoint(|checkpoint| checkpoint.first_free = 1);
        (image.map, "it has free numbers")
    }),
    ("a place of a log that is no place", |image| {
        (image.change_checkpoint(|checkpoint| checkpoint.logs[1].next = 1000), "which is not open for it")
    }),
    ("a directory in itself", |image| {
        let (number, place) = image.inodes(true)[0];
        let root = image.blocks_of(image.places[&1]);
        // Its name in the root leads to it no more, but one of its own does.
        for block in root {
            let bytes = image.get(block);
            if let Some(entry) = directory::entries(&bytes, 0).find(|entry| entry.number == number) {
                let slot = entry.slot;
                image.change(block, |bytes| directory::remove(bytes, slot));
            }
        }
        image.change(image.places[&1], |bytes| {
            add(bytes, 96, u32::MAX);
            add(bytes, 48, u32::MAX);
        });
        image.change(place, |bytes| {
            set(bytes, 16, number);
            add(bytes, 96, 1);
            add(bytes, 48, 1);
        });
        let block = image.blocks_of(place)[0];
        image.change(block, |bytes| put_in_its_bucket(bytes, number));
        (place, "does not lead to the root")
    }),
];

fn lead_first(bytes: &mut Bytes, number: u32) {
    let slot = directory::entries(bytes, 0)
        .find(|entry| entry.kind == ssdlab_fs::FileKind::File)
        .map(|entry| entry.slot)
        .expect("a name of a file");
    directory::lead(bytes, slot, number);
}

/// Puts a name of a directory into a block of level 0, where every hash belongs.
fn put_in_its_bucket(bytes: &mut Bytes, number: u32) {
    let name = b"round";
    let slot = directory::room(bytes, directory::slots_of(name)).expect("room for a name");
    directory::put(bytes, slot, name, number, ssdlab_fs::FileKind::Directory);
}

#[test]
fn the_check_names_each_planted_corruption_with_its_block() {
    assert!(PLANTS.len() >= 20, "{} corruptions", PLANTS.len());
    each_is_named(Image::new, PLANTS);
}

/// The check names each with its block.
pub(crate) fn each_is_named(image: fn() -> Image, plants: &[(&str, Plant)]) {
    let (_, found) = check(image().device);
    assert_eq!(found.expect("a file system").problems, [], "before anything is planted");
    let mut wrong = Vec::new();
    for (name, plant) in plants {
        let mut image = image();
        let (block, words) = plant(&mut image);
        let (_, found) = check(image.device);
        let found = found.unwrap_or_else(|error| panic!("{name}: {error}"));
        let is_named = found.problems.iter().any(|problem| problem.block == block && problem.what.contains(words));
        if !is_named {
            wrong.push(format!("{name}: expected block {block} with '{words}', found {:?}", found.problems));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A check-point that is damaged in the middle of its segment is named, though an older one is whole.
#[test]
fn the_check_names_a_check_point_that_is_damaged_before_others() {
    let options = cache(400);
    let mut fs = ssdlab_fs::FileSystem::mount(image(), &options).expect("a mount");
    for name in ["x", "y", "z"] {
        let made = call(&mut fs, Call::Create { directory: ROOT, name: name.into() });
        assert!(matches!(made, Ok(Reply::Found(_))), "{made:?}");
        call(&mut fs, Call::Sync).expect("a sync");
    }
    let mut device = fs.into_device();
    let volume = volume(&*device);
    let is_one = |block: &u32| {
        device
            .record(u64::from(*block) * 8)
            .is_some_and(|bytes| Checkpoint::decode(&[&block_of(bytes)], volume).is_ok())
    };
    let all: Vec<u32> = (SEGMENT..3 * SEGMENT).filter(is_one).collect();
    let middle = all.iter().copied().find(|block| all.contains(&(block + 1)) && all.contains(&(block + 2)));
    let middle = middle.expect("three check-points behind each other") + 1;
    let mut bytes = block_of(device.record(u64::from(middle) * 8).expect("a check-point"));
    bytes[100] ^= 1;
    device.keep_record(u64::from(middle) * 8, &bytes[..]);
    let (_, found) = check(device);
    let problems = found.expect("a file system").problems;
    assert!(
        problems.iter().any(|problem| problem.block == middle && problem.what.contains("is not whole")),
        "{problems:?}"
    );
}

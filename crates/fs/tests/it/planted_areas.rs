//! Corruptions of metadata that has fixed places, planted one by one.

use std::collections::BTreeMap;

use ssdlab_fs::format::checkpoint::{pack_places, unpack_places};
use ssdlab_fs::format::superblock::Superblock;
use ssdlab_fs::format::usage::{SegmentUse, decode_with_bits};
use ssdlab_fs::format::{block_of, map};
use ssdlab_torture::files::fuzzing::{BLOCKS, SEGMENT_BLOCKS as SEGMENT, sample_with_areas, volume};

use crate::planted::{Image, PLANTS, Plant, add, each_is_named, newest, set, word};

/// Bytes of an entry of the usage table: 16, and bits of 32 blocks in a word of 8.
const ENTRY: usize = 24;

fn superblock(image: &Image) -> Superblock {
    Superblock::decode_with_areas(&image.get(0)).expect("a superblock")
}

fn image() -> Image {
    let device = sample_with_areas();
    let volume = volume(&*device);
    let (checkpoint, _) = newest(&*device, volume);
    let get = |block: u32| device.record(u64::from(block) * 8).map(block_of).expect("metadata");
    let superblock = Superblock::decode_with_areas(&get(0)).expect("a superblock");
    let which = unpack_places(&checkpoint.table, superblock.map_blocks()).expect("places")[0];
    let map = superblock.map_place(0, which.into());
    let mut places: BTreeMap<u32, u32> =
        (0..).zip(map::decode(&get(map), 0, BLOCKS).expect("a block of the map").iter().copied()).collect();
    places.extend(checkpoint.journal.iter().flat_map(|journal| journal.nodes.iter().copied()));
    places.retain(|_, place| *place != 0);
    Image::of(device, volume, map, places)
}

/// The block of the usage table that counts.
fn usage(image: &Image) -> u32 {
    let superblock = superblock(image);
    let which = unpack_places(&image.checkpoint.usage, superblock.usage_blocks()).expect("places")[0];
    superblock.usage_place(0, which.into())
}

/// A segment that is sealed and has its entry in the table, and where the entry begins.
fn sealed(image: &Image) -> (u32, usize) {
    let block = usage(image);
    let all = decode_with_bits(&image.get(block), image.volume, 0, SEGMENT).expect("a usage block");
    let journal = image.checkpoint.journal.as_ref().expect("a journal");
    let is_it = |(segment, (usage, _)): &(u32, &(ssdlab_fs::format::usage::Usage, Vec<u64>))| {
        matches!(usage.segment_use, SegmentUse::Sealed(_))
            && usage.valid > 0
            && journal.usage.iter().all(|(journaled, _)| journaled != segment)
    };
    let (segment, _) = (0..).zip(&all).find(is_it).expect("a sealed segment");
    (segment, 32 + ENTRY * segment as usize)
}

/// A node that the map has, and the journal has not.
fn mapped(image: &Image) -> u32 {
    let journal = image.checkpoint.journal.as_ref().expect("a journal");
    let is_it = |number: &u32| *number > 1 && journal.nodes.iter().all(|(journaled, _)| journaled != number);
    image.places.keys().copied().find(is_it).expect("a node of the map")
}

const OWN: &[(&str, Plant)] = &[
    ("a number of valid blocks that is none", |image| {
        let ((_, at), block) = (sealed(image), usage(image));
        image.change(block, |bytes| add(bytes, at, 1));
        (image.checkpoint_block, "valid blocks of segment")
    }),
    ("a bit of another block", |image| {
        let ((_, at), block) = (sealed(image), usage(image));
        image.change(block, |bytes| add(bytes, at + 16, 1));
        (image.checkpoint_block, "its bit of block")
    }),
    ("a state that no segment has", |image| {
        let ((_, at), block) = (sealed(image), usage(image));
        (image.change(block, |bytes| bytes[at + 4] = 9), "has the state 9")
    }),
    ("a log that writes another segment", |image| {
        let ((_, at), block) = (sealed(image), usage(image));
        (image.change(block, |bytes| bytes[at + 4] = 2), "which writes another")
    }),
    ("a segment of the main area that is fixed", |image| {
        let ((_, at), block) = (sealed(image), usage(image));
        (image.change(block, |bytes| bytes[at + 4] = 1), "is said to be Fixed")
    }),
    ("a segment whose summary is in no check-point", |image| {
        let ((_, at), block) = (sealed(image), usage(image));
        (image.change(block, |bytes| bytes[at + 4] = 4), "its summary in check-points")
    }),
    ("a segment with valid blocks that is free", |image| {
        let ((_, at), block) = (sealed(image), usage(image));
        image.change(block, |bytes| bytes[at + 4] = 0);
        (image.map, "which is for something else")
    }),
    ("a block of the usage table for another part", |image| {
        let block = usage(image);
        (image.change(block, |bytes| add(bytes, 12, 1)), "it is not block 0 of the usage table")
    }),
    ("an entry of another node", |image| {
        let (block, number) = (image.map, mapped(image) as usize);
        (image.change(block, |bytes| add(bytes, 8 * number, 1)), "is not that of node")
    }),
    ("two nodes in one place", |image| {
        let (block, number, root) = (image.map, mapped(image) as usize, image.places[&1]);
        (image.change(block, |bytes| set(bytes, 8 * number + 4, root)), "which belongs to something else")
    }),
    ("a node among the summaries", |image| {
        let (block, number) = (image.map, mapped(image) as usize);
        let summaries = superblock(image).summary_address(9, 0);
        (image.change(block, |bytes| set(bytes, 8 * number + 4, summaries)), "which is no place for it")
    }),
    ("a node that the map has no room for", |image| {
        let nodes = superblock(image).nodes;
        let journal = |checkpoint: &mut ssdlab_fs::format::checkpoint::Checkpoint| {
            checkpoint.journal.as_mut().expect("a journal").nodes.push((nodes + 5, 100));
        };
        (image.change_checkpoint(journal), "a node that cannot be")
    }),
    ("a journaled node that is gone", |image| {
        let number = mapped(image);
        image.change_checkpoint(|checkpoint| {
            checkpoint.journal.as_mut().expect("a journal").nodes.push((number, 0));
        });
        (image.checkpoint_block, "nodes, it says")
    }),
    ("a journaled entry of a segment of metadata", |image| {
        let journal = |checkpoint: &mut ssdlab_fs::format::checkpoint::Checkpoint| {
            let journal = checkpoint.journal.as_mut().expect("a journal");
            journal.usage.push((2, (Default::default(), vec![0])));
        };
        (image.change_checkpoint(journal), "which cannot be")
    }),
    ("a place of the map that there is not", |image| {
        let change = |checkpoint: &mut ssdlab_fs::format::checkpoint::Checkpoint| checkpoint.table[0] |= 3;
        (image.change_checkpoint(change), "it says no place of block 0")
    }),
    ("the older place of a block of the map", |image| {
        image.change_checkpoint(|checkpoint| checkpoint.table[0] ^= 3);
        (image.checkpoint_block, "nodes, it says")
    }),
    ("the older place of a block of the usage table", |image| {
        let other = 3 - (image.checkpoint.usage[0] & 3) as u8;
        image.change_checkpoint(|checkpoint| checkpoint.usage = pack_places(&[other]));
        // It was never written.
        (superblock(image).usage_place(0, other.into()), "it is not block 0 of the usage table")
    }),
    ("another owner in a summary", |image| {
        let (segment, _) = sealed(image);
        let block = superblock(image).summary_address(segment, 0);
        let owners: Vec<usize> = (0..32).filter(|entry| word(&image.get(block)[..], 8 * entry) != 0).collect();
        image.change(block, |bytes| owners.iter().for_each(|entry| add(bytes, 8 * entry, 1)));
        (segment * SEGMENT + SEGMENT, "names other owners than the inodes")
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
];

#[test]
fn the_check_names_each_planted_corruption_of_metadata_in_areas_with_its_block() {
    assert!(OWN.len() >= 20, "{} corruptions", OWN.len());
    each_is_named(image, OWN);
}

/// Corruptions of nodes and names, which both kinds have.
#[test]
fn the_check_names_each_planted_corruption_of_nodes_and_names_of_lfs() {
    let last = PLANTS.iter().position(|(name, _)| *name == "an index block of another level").expect("it is one");
    each_is_named(image, &PLANTS[..=last]);
}

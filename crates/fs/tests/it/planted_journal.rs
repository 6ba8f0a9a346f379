//! Corruptions of a journaling file system that are planted one by one, with checksums mended: the check names each with its block.

use ssdlab_base::Nanos;
use ssdlab_fs::check::check;
use ssdlab_fs::format::{Bytes, block_of, directory, mend};
use ssdlab_fs::journaling::Rules;
use ssdlab_fs::journaling::format::extents::{self, Extent};
use ssdlab_fs::journaling::format::group::{self, Descriptor};
use ssdlab_fs::journaling::format::inode::{Inode, SIZE};
use ssdlab_fs::journaling::format::superblock::Superblock;
use ssdlab_fs::{Call, FileKind, FileSystem, ROOT};
use ssdlab_host::Device;
use ssdlab_torture::files::fuzzing::sample_with_journal;

use crate::drive::{cache, call};

/// A file system that was unmounted: its journal has nothing.
struct Image {
    device: Box<dyn Device>,
    superblock: Superblock,
}

impl Image {
    fn new(rules: Rules) -> Image {
        let fs = FileSystem::mount(sample_with_journal(rules), &cache(400)).expect("a mount");
        let device = fs.unmount().map_err(|(reason, _)| reason).expect("an unmount");
        let superblock = Superblock::decode(&block_of(device.record(0).expect("a superblock"))).expect("one");
        Image { device, superblock }
    }

    fn get(&self, block: u32) -> Box<Bytes> {
        self.device.record(u64::from(block) * 8).map(block_of).expect("metadata")
    }

    fn put(&mut self, block: u32, bytes: &Bytes) {
        self.device.keep_record(u64::from(block) * 8, bytes);
    }

    fn inode(&self, number: u32) -> Option<Inode> {
        let (block, place) = self.superblock.place_of_inode(number);
        let bytes = self.device.record(u64::from(block) * 8).map(block_of)?;
        Inode::decode(self.superblock.volume, number, &bytes[place * SIZE..(place + 1) * SIZE]).expect("an inode")
    }

    /// Changes an inode; the block that has it.
    fn change(&mut self, number: u32, change: impl FnOnce(&mut Inode)) -> u32 {
        let mut inode = self.inode(number).expect("it is used");
        change(&mut inode);
        let (block, place) = self.superblock.place_of_inode(number);
        let mut bytes = self.get(block);
        inode.encode(self.superblock.volume, &mut bytes[place * SIZE..(place + 1) * SIZE]);
        self.put(block, &bytes);
        block
    }

    /// The first inode that a test takes, the root left out.
    fn find(&self, is_it: impl Fn(&Inode) -> bool) -> u32 {
        let mut all = (2..=self.superblock.inodes()).filter_map(|number| self.inode(number));
        all.find(|inode| is_it(inode)).expect("there is one").number
    }

    fn file(&self) -> u32 {
        self.find(|inode| inode.kind == FileKind::File && inode.blocks > 0 && inode.index_blocks == 0)
    }

    fn directory(&self) -> u32 {
        self.find(|inode| inode.kind == FileKind::Directory)
    }

    /// Where the first block of a file or directory is.
    fn first_block(&self, number: u32) -> u32 {
        let root = self.inode(number).expect("it is used").root;
        match self.superblock.rules {
            Rules::Ext4 => extents::extent(&root, 0).start,
            Rules::Ext3 => u32::from_le_bytes([root[0], root[1], root[2], root[3]]),
        }
    }

    /// Changes the descriptor of group 0.
    fn describe(&mut self, change: impl FnOnce(&mut Descriptor)) {
        let block = self.get(1);
        let groups = 0..self.superblock.groups();
        let mut told: Vec<Descriptor> =
            groups.map(|group| group::decode(&self.superblock, group, &block).expect("a descriptor")).collect();
        change(&mut told[0]);
        let block = group::encode(&self.superblock, 0, &told);
        self.put(1, &block);
    }

    /// Changes the bitmap of group 0's blocks, or inodes, and its checksum.
    fn change_bitmap(&mut self, of_inodes: bool, bit: u32) -> u32 {
        let at = if of_inodes { self.superblock.inode_bitmap(0) } else { self.superblock.block_bitmap(0) };
        let mut bitmap = self.get(at);
        bitmap[bit as usize / 8] ^= 1 << (bit % 8);
        self.put(at, &bitmap);
        let sum = group::bitmap_sum(self.superblock.volume, 0, of_inodes, &bitmap);
        self.describe(|told| if of_inodes { told.inode_sum = sum } else { told.block_sum = sum });
        at
    }

    /// Changes the first block of the root directory.
    fn change_names(&mut self, change: impl FnOnce(&mut Bytes)) -> u32 {
        let at = self.first_block(ROOT.number);
        let mut block = self.get(at);
        change(&mut block);
        mend(&mut block, self.superblock.volume);
        self.put(at, &block);
        at
    }
}

/// Plants a corruption: the block that the check must name, and a part of its sentence.
type Plant = fn(&mut Image) -> (u32, &'static str);

const PLANTS: &[(&str, Plant)] = &[
    ("a count of free blocks", |image| {
        image.describe(|told| told.free_blocks -= 1);
        (image.superblock.block_bitmap(0), "free blocks, its descriptor says")
    }),
    ("a count of free inodes", |image| {
        image.describe(|told| (told.free_inodes, told.unused_inodes) = (told.free_inodes - 1, told.unused_inodes - 1));
        (image.superblock.inode_bitmap(0), "free inodes, its descriptor says")
    }),
    ("a count of directories", |image| {
        image.describe(|told| told.directories += 1);
        (image.superblock.inode_bitmap(0), "directories, its descriptor says")
    }),
    ("a checksum of a bitmap of blocks", |image| {
        image.describe(|told| told.block_sum ^= 1);
        (image.superblock.block_bitmap(0), "its checksum does not match")
    }),
    ("a checksum of a bitmap of inodes", |image| {
        image.describe(|told| told.inode_sum ^= 1);
        (image.superblock.inode_bitmap(0), "its checksum does not match")
    }),
    ("a descriptor of another place", |image| {
        let mut block = image.get(1);
        block[0] ^= 1;
        image.put(1, &block);
        (1, "the descriptor of group 0")
    }),
    ("a used block that nothing has", |image| {
        let blocks = image.superblock.blocks_of(0);
        let bitmap = image.get(image.superblock.block_bitmap(0));
        let free = (0..blocks).find(|bit| bitmap[*bit as usize / 8] & 1 << (bit % 8) == 0).expect("a free block");
        image.change_bitmap(false, free);
        (free, "it is used in its bitmap, and nothing has it")
    }),
    ("a free block that a file has", |image| {
        let file = image.find(|inode| inode.kind == FileKind::File && inode.blocks > 0);
        let at = image.first_block(file);
        assert_eq!(image.superblock.group_of(at), 0, "files of the root are in its group");
        image.change_bitmap(false, at);
        (at, "something has it, and it is free in its bitmap")
    }),
    ("a used inode that is free", |image| {
        let count = image.superblock.group_inodes;
        let free = (1..=count).find(|number| image.inode(*number).is_none()).expect("a free inode");
        image.change_bitmap(true, free - 1);
        (image.superblock.inode_bitmap(0), "free inodes, its descriptor says")
    }),
    ("a free inode that is used", |image| {
        let file = image.file();
        image.change_bitmap(true, file - 1);
        (image.superblock.place_of_inode(file).0, "is used, and free in its bitmap")
    }),
    ("a checksum of an inode", |image| {
        let file = image.file();
        let (block, place) = image.superblock.place_of_inode(file);
        let mut bytes = image.get(block);
        bytes[place * SIZE + 40] ^= 1;
        image.put(block, &bytes);
        (block, "its checksum does not match")
    }),
    ("links of a file", |image| {
        let file = image.file();
        (image.change(file, |inode| inode.links = 2), "has 1 links, and says 2")
    }),
    ("links of a directory", |image| (image.change(ROOT.number, |inode| inode.links += 1), "links, and says")),
    ("no links, and a name", |image| {
        let file = image.file();
        (image.change(file, |inode| inode.links = 0), "has no links, 1 names")
    }),
    ("a parent", |image| {
        let directory = image.directory();
        (image.change(directory, |inode| inode.parent = 7), "and says 7")
    }),
    ("a count of names", |image| (image.change(ROOT.number, |inode| inode.entries += 1), "names, and says")),
    ("levels of a directory", |image| {
        image.change(ROOT.number, |inode| inode.depth = 0);
        (image.first_block(ROOT.number), "is behind its 0 levels")
    }),
    ("a count of blocks", |image| {
        let file = image.file();
        (image.change(file, |inode| inode.blocks += 1), "blocks of data and index, and says")
    }),
    ("a size before the blocks", |image| {
        let file = image.file();
        (image.change(file, |inode| inode.size = 0), "of 0 bytes has blocks up to")
    }),
    ("a block of another file", |image| {
        let file = image.file();
        let other = image.find(|inode| inode.kind == FileKind::File && inode.blocks > 0 && inode.number != file);
        let (at, rules) = (image.first_block(file), image.superblock.rules);
        image.change(other, |inode| lead(inode, rules, at));
        (at, "is a block that something else has")
    }),
    ("a block where metadata is", |image| {
        let (file, rules) = (image.file(), image.superblock.rules);
        image.change(file, |inode| lead(inode, rules, 1));
        (1, "is where metadata has its place")
    }),
    ("a name that leads to a free inode", |image| {
        let count = image.superblock.inodes();
        let free = (1..=count).rev().find(|number| image.inode(*number).is_none()).expect("a free inode");
        let at = image.change_names(|block| {
            let slot = directory::entries(block, 0).next().expect("a name").slot;
            directory::lead(block, slot, free);
        });
        (at, "which is free")
    }),
    ("a name of another kind", |image| {
        let is = image.directory();
        let at = image.change_names(|block| {
            let found = directory::entries(block, 0).find(|found| found.kind == FileKind::File).expect("a file");
            directory::lead(block, found.slot, is);
        });
        (at, "of another kind")
    }),
    ("a list of orphans that leads to a file", |image| {
        let file = image.file();
        let superblock = Superblock { first_orphan: file, ..image.superblock };
        image.put(0, &superblock.encode());
        image.change(file, |inode| inode.next_orphan = file);
        (0, "or goes round")
    }),
];

/// The first block of a file is at another address.
fn lead(inode: &mut Inode, rules: Rules, at: u32) {
    match rules {
        Rules::Ext4 => {
            let first = extents::extent(&inode.root, 0);
            extents::set_extent(&mut inode.root, 0, Extent { start: at, ..first });
        }
        Rules::Ext3 => inode.root[..4].copy_from_slice(&at.to_le_bytes()),
    }
}

#[test]
fn each_corruption_is_named_with_its_block_and_ends_no_call_with_a_panic() {
    for rules in [Rules::Ext3, Rules::Ext4] {
        for (name, plant) in PLANTS {
            let mut image = Image::new(rules);
            let (block, part) = plant(&mut image);
            let (device, found) = check(image.device);
            let problems = found.expect("a file system").problems;
            let is_named = problems.iter().any(|problem| problem.block == block && problem.what.contains(part));
            assert!(is_named, "{rules:?}, {name}: expected '{part}' of block {block}, found {problems:?}");
            if let Ok(mut fs) = FileSystem::mount(device, &cache(400)) {
                let _ = call(&mut fs, Call::List { directory: ROOT, position: 0, most: 100 });
                let _ = call(&mut fs, Call::Create { directory: ROOT, name: b"new".to_vec() });
                let _ = call(&mut fs, Call::Sync);
                fs.run_until(Nanos(fs.now().0 + 100_000_000_000));
            }
        }
    }
}

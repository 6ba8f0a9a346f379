//! Nodes: inodes, and the index blocks of files that are larger than an inode can address.
//!
//! ```text
//!   inode   920 blocks, and room for a name
//!           2 index blocks of level 1:  1,008 blocks each
//!           2 of level 2:               1,008 of level 1 each
//!           2 of level 3:               1,008 of level 2 each, so 4 TiB and more
//! ```

use ssdlab_base::Nanos;

use super::{Bad, Bytes, HEADER, Header, LOST, expect, get_u32, get_u64, open, put_u32, put_u64, seal, zeroes};
use crate::call::{BLOCK_BYTES, FileKind, MOST_FILE_BYTES};

pub(crate) const INODE: [u8; 4] = *b"INOD";
pub(crate) const INDEX: [u8; 4] = *b"INDX";

/// Blocks that an inode addresses: behind them is room for a name of 255 bytes ([`fsync`](super::fsync)).
pub const DIRECT: usize = 920;

/// Entries of an index block.
pub const FAN: usize = 1008;

/// Levels of the index blocks that an inode names.
pub const LEVELS: [u8; 6] = [1, 1, 2, 2, 3, 3];

/// Blocks that a file can have.
pub const MOST_BLOCKS: u64 = MOST_FILE_BYTES / BLOCK_BYTES;

/// An inode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inode {
    /// Its number.
    pub number: u32,
    /// Tells apart the inodes that have had the number.
    pub generation: u32,
    /// What it is.
    pub kind: FileKind,
    /// Number of the directory that a directory is in; its own for the root.
    pub parent: u32,
    /// Permissions.
    pub mode: u32,
    /// Owner.
    pub user: u32,
    /// Group of the owner.
    pub group: u32,
    /// Names; of a directory also its own and those of its directories.
    pub links: u32,
    /// Number of the device that it stands for, where it stands for one.
    pub device: u32,
    /// Bytes.
    pub size: u64,
    /// Blocks of data that have an address.
    pub blocks: u64,
    /// When its data changed last.
    pub modified: Nanos,
    /// When anything of it changed last.
    pub changed: Nanos,
    /// Blocks from this on are to be freed.
    pub free_from: Option<u32>,
    /// Levels of hash buckets that a directory has.
    pub depth: u8,
    /// Names in a directory.
    pub entries: u32,
    /// Addresses of its first blocks, without the zeroes at their end.
    pub direct: Vec<u32>,
    /// Numbers of its index blocks.
    pub index: [u32; 6],
}

impl Inode {
    /// An empty one.
    pub fn new(number: u32, generation: u32, kind: FileKind, parent: u32, now: Nanos) -> Inode {
        let is_directory = kind == FileKind::Directory;
        Inode {
            number,
            generation,
            kind,
            parent,
            mode: if is_directory { 0o755 } else { 0o644 },
            user: 0,
            group: 0,
            links: if is_directory { 2 } else { 1 },
            device: 0,
            size: 0,
            blocks: 0,
            modified: now,
            changed: now,
            free_from: None,
            depth: 0,
            entries: 0,
            direct: Vec::new(),
            index: [0; 6],
        }
    }

    /// Address of one of its first blocks.
    pub fn direct(&self, index: u32) -> u32 {
        self.direct.get(index as usize).copied().unwrap_or(0)
    }

    /// Sets the address of one of its first blocks.
    pub fn set_direct(&mut self, index: u32, address: u32) {
        let index = index as usize;
        if index >= self.direct.len() {
            if address == 0 {
                return;
            }
            self.direct.resize(index + 1, 0);
        }
        self.direct[index] = address;
        if address == 0 {
            let used = self.direct.iter().rposition(|address| *address != 0).map_or(0, |last| last + 1);
            self.direct.truncate(used);
        }
    }

    /// Whether it may have blocks behind a size.
    pub fn leads_behind(&self, size: u64) -> bool {
        let (from, mut first) = (size.div_ceil(BLOCK_BYTES), DIRECT as u64);
        let has_direct = self.direct.iter().skip(from.min(first) as usize).any(|address| *address != 0);
        let leads = |(index, level): (&u32, &u8)| {
            first += span(*level) * FAN as u64;
            *index != 0 && first > from
        };
        has_direct || self.index.iter().zip(&LEVELS).any(leads)
    }

    /// The block, with the size that the check-point gives it. Blocks behind that size are to be freed by who finds it.
    pub fn encode(&self, volume: u64, size: u64) -> Box<Bytes> {
        let mut block = zeroes();
        let bytes = &mut *block;
        bytes[32] = match self.kind {
            FileKind::File => 1,
            FileKind::Directory => 2,
        };
        bytes[33] = self.depth;
        for (at, field) in [(36, self.mode), (40, self.user), (44, self.group), (48, self.links), (52, self.device)] {
            put_u32(bytes, at, field);
        }
        let behind = (size < self.size && self.leads_behind(size)).then_some(size.div_ceil(BLOCK_BYTES));
        let free_from = self.free_from.map_or(u64::MAX, u64::from).min(behind.unwrap_or(u64::MAX));
        let fields = [size, self.blocks, self.modified.0, self.changed.0, free_from];
        fields.iter().enumerate().for_each(|(index, field)| put_u64(bytes, 56 + 8 * index, *field));
        put_u32(bytes, 96, self.entries);
        self.index.iter().enumerate().for_each(|(index, node)| put_u32(bytes, 128 + 4 * index, *node));
        self.direct.iter().enumerate().for_each(|(index, address)| put_u32(bytes, 160 + 4 * index, *address));
        let header = Header { a: self.number, b: self.parent, generation: self.generation, version: 0 };
        seal(bytes, volume, INODE, header);
        block
    }

    /// Reads the block of inode `number` on a drive of so many blocks.
    ///
    /// # Errors
    /// It is another, or says what cannot be.
    pub fn decode(block: &Bytes, volume: u64, number: u32, blocks: u32) -> Result<Inode, Bad> {
        let header = open(block, volume, INODE, "inode")?;
        expect("number", header.a, number)?;
        let kind = match block[32] {
            1 => FileKind::File,
            2 => FileKind::Directory,
            _ => return Err(Bad::Field("kind")),
        };
        let field = |index: usize| get_u64(block, 56 + 8 * index);
        let free_from = match field(4) {
            u64::MAX => None,
            from => Some(u32::try_from(from).map_err(|_| Bad::Field("truncation"))?),
        };
        let used = (0..DIRECT).rposition(|index| get_u32(block, 160 + 4 * index) != 0).map_or(0, |last| last + 1);
        let direct: Vec<u32> = (0..used).map(|index| get_u32(block, 160 + 4 * index)).collect();
        if direct.iter().any(|address| *address >= blocks && *address != LOST) {
            return Err(Bad::Field("address"));
        }
        let mut index = [0; 6];
        index.iter_mut().enumerate().for_each(|(slot, node)| *node = get_u32(block, 128 + 4 * slot));
        let (size, depth, parent) = (field(0), block[33], header.b);
        if size > MOST_FILE_BYTES {
            return Err(Bad::Field("size"));
        }
        if depth > super::directory::MOST_LEVELS {
            return Err(Bad::Field("number of levels"));
        }
        Ok(Inode {
            number,
            generation: header.generation,
            kind,
            parent,
            mode: get_u32(block, 36),
            user: get_u32(block, 40),
            group: get_u32(block, 44),
            links: get_u32(block, 48),
            device: get_u32(block, 52),
            size,
            blocks: field(1),
            modified: Nanos(field(2)),
            changed: Nanos(field(3)),
            free_from,
            depth,
            entries: get_u32(block, 96),
            direct,
            index,
        })
    }
}

/// An index block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// Its number.
    pub number: u32,
    /// Number of the inode.
    pub inode: u32,
    /// Generation of the inode.
    pub generation: u32,
    /// 1: its entries are addresses of blocks. Above: numbers of index blocks a level below.
    pub level: u8,
    /// The first block of the file that it leads to.
    pub first: u32,
    /// What it leads to.
    pub entries: Box<[u32; FAN]>,
    /// Entries that lead anywhere.
    pub used: u32,
}

impl Index {
    /// An empty one.
    pub fn new(number: u32, inode: u32, generation: u32, level: u8, first: u32) -> Index {
        Index { number, inode, generation, level, first, entries: Box::new([0; FAN]), used: 0 }
    }

    /// Sets an entry.
    pub fn set(&mut self, entry: usize, to: u32) {
        let before = std::mem::replace(&mut self.entries[entry], to);
        self.used = self.used + u32::from(to != 0) - u32::from(before != 0);
    }

    /// The block.
    pub fn encode(&self, volume: u64) -> Box<Bytes> {
        let mut block = zeroes();
        put_u32(&mut *block, HEADER, self.level.into());
        put_u32(&mut *block, HEADER + 4, self.first);
        self.entries.iter().enumerate().for_each(|(index, entry)| put_u32(&mut *block, 64 + 4 * index, *entry));
        let header = Header { a: self.number, b: self.inode, generation: self.generation, version: 0 };
        seal(&mut block, volume, INDEX, header);
        block
    }

    /// Reads the index block `number` on a drive of so many blocks.
    ///
    /// # Errors
    /// It is another, or says what cannot be.
    pub fn decode(block: &Bytes, volume: u64, number: u32, blocks: u32) -> Result<Index, Bad> {
        let header = open(block, volume, INDEX, "index block")?;
        expect("number", header.a, number)?;
        let level = get_u32(block, HEADER);
        if !(1..=3).contains(&level) {
            return Err(Bad::Field("level"));
        }
        let mut index = Index::new(number, header.b, header.generation, level as u8, get_u32(block, HEADER + 4));
        for entry in 0..FAN {
            let to = get_u32(block, 64 + 4 * entry);
            if level == 1 && to >= blocks && to != LOST {
                return Err(Bad::Field("address"));
            }
            index.set(entry, to);
        }
        Ok(index)
    }
}

/// Whether a block of this magic number is an inode; `None` if it is no node.
pub fn is_inode(block: &Bytes) -> Option<bool> {
    match &block[8..12] {
        magic if magic == INODE => Some(true),
        magic if magic == INDEX => Some(false),
        _ => None,
    }
}

/// Blocks that an entry of an index block of a level leads to.
pub const fn span(level: u8) -> u64 {
    (FAN as u64).pow(level as u32 - 1)
}

/// Where the address of a block of a file stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// In the inode.
    Direct,
    /// Below the index block that the inode names in this slot, whose first block is `first`.
    Indexed {
        /// The slot.
        slot: usize,
        /// The first block that it leads to.
        first: u32,
    },
}

/// The route to a block of a file, which is below [`MOST_BLOCKS`].
pub fn route(block: u32) -> Route {
    if (block as usize) < DIRECT {
        return Route::Direct;
    }
    let mut first = DIRECT as u64;
    for (slot, level) in LEVELS.iter().enumerate() {
        let next = first + span(*level) * FAN as u64;
        if u64::from(block) < next {
            return Route::Indexed { slot, first: first as u32 };
        }
        first = next;
    }
    unreachable!("a file has at most {MOST_BLOCKS} blocks")
}

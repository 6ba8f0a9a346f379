//! A journaling file system by the rules of ext3 or ext4 of Linux 3.13: metadata is updated in place behind an ordered journal.
//!
//! ```text
//!   core       everything in memory               view      what gather sees of it
//!   space      groups, bitmaps, free blocks       map       where blocks of files are: extents or indirect blocks
//!   file       dirty pages and sizes of files     calls     gather and apply of each call
//!   write_out  pages to the drive                 transaction  what a commit makes durable together
//!   system     tasks, loads, commands             commit    the journal: data, blocks, flush, commit block
//!   log        room in the journal                home      committed blocks to their places, the log's end
//!   replay     the journal at a mount             format    blocks as the drive has them
//! ```
//!
//! Metadata is in memory as blocks, and calls change their bytes. A *transaction* is the set of blocks that have changed since the last
//! commit. As each call changes memory at one instant, so does a commit: it copies the blocks of the transaction, and calls go on with the
//! next one.

use ssdlab_device::description::{Default as KeyDefault, Key, Kind, Words, words};

use crate::config;

pub(crate) mod calls;
pub(crate) mod check;
pub(crate) mod commit;
pub(crate) mod core;
pub(crate) mod file;
pub mod format;
pub(crate) mod home;
pub(crate) mod log;
pub(crate) mod make;
pub(crate) mod map;
pub(crate) mod mount;
pub(crate) mod pages;
pub(crate) mod replay;
pub(crate) mod space;
pub(crate) mod system;
pub(crate) mod transaction;
pub(crate) mod view;
pub(crate) mod write_out;

/// Whose rules map files and allocate blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rules {
    /// Indirect blocks; blocks are allocated when a call writes, and a commit writes out all dirty pages first.
    Ext3,
    /// Extents; blocks are allocated when pages are written out.
    Ext4,
}

impl Words for Rules {
    const WORDS: &'static [(&'static str, Rules)] = &[("ext3", Rules::Ext3), ("ext4", Rules::Ext4)];
}

pub(crate) const RULES: Key = Key::new(
    "rules",
    Kind::Word(words::<Rules>),
    KeyDefault::word("ext4"),
    "ext4: extents, and blocks are allocated when pages are written out. ext3: indirect blocks, blocks are allocated when a call writes, \
     and a commit writes out all dirty pages first. When made.",
);

pub(crate) const GROUP: Key = Key::new(
    "group",
    Kind::Size { least: 256 << 10, most: 128 << 20, step: 32 << 10 },
    KeyDefault::number(128 << 20),
    "Bytes of a block group; by default as many as the bits of a block stand for (mke2fs). When made.",
);

pub(crate) const JOURNAL: Key = Key::new(
    "journal",
    Kind::Size { least: 0, most: 400 << 20, step: 4096 },
    KeyDefault::number(0),
    "Bytes of the journal, at least 512 KiB; 0 for what mke2fs takes: 4 MB, 16 MB from 128 MB on, 32 MB from 1 GB on, 64 MB from 2 GB on, \
     128 MB from 4 GB on. When made.",
);

pub(crate) const COMMIT_PERIOD: Key = Key::new(
    "commit_period",
    Kind::Time(ssdlab_base::Nanos(3600 * 1_000_000_000)),
    KeyDefault::number(5 * 1_000_000_000),
    "Time between commits, where anything has changed; 0 for none (the mount option commit=).",
);

pub(crate) const DISCARD: Key = Key::new(
    "discard",
    Kind::Boolean,
    KeyDefault::ON,
    "Blocks that a commit freed are trimmed before they are used again (the mount option discard).",
);

/// The keys of the kind.
pub(crate) const KEYS: &[Key] = &[
    RULES,
    GROUP,
    JOURNAL,
    config::CACHE,
    config::DIRTY_BACKGROUND,
    config::DIRTY_LIMIT,
    config::DIRTY_EXPIRY,
    config::DIRTY_PERIOD,
    config::READ_AHEAD,
    COMMIT_PERIOD,
    DISCARD,
];

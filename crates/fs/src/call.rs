//! What a file system is asked, and what it answers.
//!
//! A call takes effect at one instant, its *apply*, between its submission and its answer. Applies have numbers without a gap, and
//! an answer carries the number of its own ([`Answer::order`]). So a caller that repeats the calls one by one in that order, on any other
//! file system, sees the same results, whatever number of calls was in flight. A call that fails has a number, too: its error holds
//! at that place of the order.
//!
//! Errors are found in the order in which [`Errno`] is described at each call. [`Errno::NoSpace`], [`Errno::ReadOnly`] and
//! [`Errno::Io`] depend on the drive, and come last.

use std::fmt;

use ssdlab_base::Nanos;

/// Bytes of a block: the unit in which files have space, and of direct I/O.
pub const BLOCK_BYTES: u64 = 4096;

/// Most bytes that one read, write or append covers; more is several calls.
pub const MOST_BYTES: u32 = 1 << 20;

/// Largest size of a file.
pub const MOST_FILE_BYTES: u64 = 4 << 40;

/// Most bytes of a name.
pub const MOST_NAME_BYTES: usize = 255;

/// The root directory.
pub const ROOT: FileId = FileId { number: 1, generation: 1 };

/// Names a file or a directory for as long as it exists. The number is used again after it is freed, then with another generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    /// Number of its inode, from 1.
    pub number: u32,
    /// Tells apart the files that have had the number, from 1.
    pub generation: u32,
}

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.number, self.generation)
    }
}

/// What a name leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
}

/// Data that a write brings. What the drive keeps decides what of it can be read again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// No data: zeroes where the drive keeps bytes or stamps. It is for runs that only count.
    Nothing,
    /// A stamp for each sector of 512 bytes that the write touches, in whole or in part, for a drive that keeps stamps. A drive that
    /// keeps bytes gets zeroes.
    Stamp(u64),
    /// As many bytes as the call says. A drive that keeps less gets zeroes.
    Bytes(Vec<u8>),
}

/// When a write is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Sync {
    /// When it has taken effect in memory.
    #[default]
    No,
    /// After what [`Call::Fdatasync`] waits for (`O_DSYNC`).
    Data,
    /// After what [`Call::Fsync`] waits for (`O_SYNC`).
    All,
}

/// How a write goes to the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct WriteMode {
    /// The data goes to the drive before the answer, and does not stay in the cache. Offset and length must be whole blocks.
    pub is_direct: bool,
    /// When the write is answered.
    pub sync: Sync,
}

/// What a file system is asked.
///
/// A [`FileId`] that names nothing any more ends with [`Errno::Stale`], before every error but those of bad parameters
/// ([`Errno::Invalid`], [`Errno::NameTooLong`]). A name is bad (`Invalid`) if it is empty, `.` or `..`, or has a `/` or a zero byte; it
/// is too long beyond [`MOST_NAME_BYTES`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// Finds a name: [`Reply::Found`]. Errors: `NotDirectory`, `NotFound`.
    Lookup {
        /// Where.
        directory: FileId,
        /// The name.
        name: Vec<u8>,
    },
    /// Makes an empty file of a name that is not there: [`Reply::Found`]. Errors: `NotDirectory`, `NotFound` (the directory is
    /// removed, and still open), `Exists`, `NoSpace`.
    Create {
        /// Where.
        directory: FileId,
        /// The name.
        name: Vec<u8>,
    },
    /// Makes an empty directory of a name that is not there: [`Reply::Found`]. Errors as of `Create`.
    Mkdir {
        /// Where.
        directory: FileId,
        /// The name.
        name: Vec<u8>,
    },
    /// Removes the name of a file: [`Reply::Done`]. A file that is open lives until its last close. Errors: `NotDirectory`,
    /// `NotFound`, `IsDirectory`.
    Unlink {
        /// Where.
        directory: FileId,
        /// The name.
        name: Vec<u8>,
    },
    /// Removes an empty directory: [`Reply::Done`]. Errors: `NotDirectory` (also of the name), `NotFound`, `NotEmpty`.
    Rmdir {
        /// Where.
        directory: FileId,
        /// The name.
        name: Vec<u8>,
    },
    /// Gives a file or a directory another name: [`Reply::Done`]. A file replaces a file of the new name, a directory an empty
    /// directory; what is replaced is unlinked. To the name that it has it changes nothing. Errors: `NotDirectory` (of either
    /// directory), `NotFound` (the old name, then a new directory that is removed), `Exists` (with `no_replace`, also of its own
    /// name), `Invalid` (a directory into itself or below), `IsDirectory` (a file over a directory), `NotDirectory` (a directory
    /// over a file), `NotEmpty`, `NoSpace`.
    Rename {
        /// Where it is.
        from_directory: FileId,
        /// Its name.
        from: Vec<u8>,
        /// Where it goes.
        to_directory: FileId,
        /// Its new name.
        to: Vec<u8>,
        /// Whether an existing new name is refused.
        no_replace: bool,
    },
    /// Lists names of a directory: [`Reply::Listed`]. A name that is there during a whole listing is given exactly once, whatever else
    /// changes between its calls. `.` and `..` are not listed. Errors: `NotDirectory`, `Invalid` (`most` is 0, or a position behind all that there can be).
    List {
        /// The directory.
        directory: FileId,
        /// 0, or [`Entry::next`] of the last entry that is known.
        position: u64,
        /// Most entries of the answer, at least 1.
        most: u32,
    },
    /// Keeps a file or a directory alive until it is closed: [`Reply::Done`].
    Open {
        /// What.
        file: FileId,
    },
    /// Ends one open: [`Reply::Done`]. Errors: `Invalid` (it is not open).
    Close {
        /// What.
        file: FileId,
    },
    /// Reads bytes: [`Reply::Read`], less than `length` only at the end of the file. Errors: `Invalid` (longer than
    /// [`MOST_BYTES`]; direct and not whole blocks), `IsDirectory`, `Io`.
    Read {
        /// The file.
        file: FileId,
        /// First byte.
        offset: u64,
        /// How many.
        length: u32,
        /// What it reads does not stay in the cache. Offset and length must be whole blocks.
        is_direct: bool,
    },
    /// Writes bytes, and makes the file longer where it ends before: [`Reply::Done`]. Errors: `Invalid` (longer than [`MOST_BYTES`], or
    /// than its bytes; direct and not whole blocks), `IsDirectory`, `TooLarge` (it ends behind [`MOST_FILE_BYTES`]), `NoSpace`, `Io`.
    Write {
        /// The file.
        file: FileId,
        /// First byte.
        offset: u64,
        /// How many.
        length: u32,
        /// Which.
        content: Content,
        /// How.
        mode: WriteMode,
    },
    /// Writes bytes at the end of the file as it is when this takes effect: [`Reply::Appended`]. Errors as of `Write`; `Invalid` if it is
    /// direct and the length or the file's size is not whole blocks.
    Append {
        /// The file.
        file: FileId,
        /// How many.
        length: u32,
        /// Which.
        content: Content,
        /// How.
        mode: WriteMode,
    },
    /// Makes a file shorter, or longer by zeroes that take no space: [`Reply::Done`]. Errors: `IsDirectory`, `TooLarge`, `NoSpace`.
    Truncate {
        /// The file.
        file: FileId,
        /// Its size from now on.
        size: u64,
    },
    /// Asks for attributes: [`Reply::Found`].
    Stat {
        /// Of what.
        file: FileId,
    },
    /// Asks for the space of the file system: [`Reply::Space`].
    StatFs,
    /// Waits until everything of a file or directory that took effect before is durable, with its names: [`Reply::Done`].
    Fsync {
        /// What.
        file: FileId,
    },
    /// Waits until the data of a file that took effect before is durable, with what is needed to find it: [`Reply::Done`].
    Fdatasync {
        /// What.
        file: FileId,
    },
    /// Waits until everything that took effect before is durable: [`Reply::Done`].
    Sync,
}

/// What a file or a directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Which.
    pub file: FileId,
    /// Its kind.
    pub kind: FileKind,
    /// Bytes of a file. Of a directory: what its entries take, with gaps.
    pub size: u64,
    /// Blocks of data that have space, in cache or on the drive; none for holes.
    pub blocks: u64,
    /// Names of a file: 1, or 0 when it is unlinked and open. Of a directory: 2 and its directories.
    pub links: u32,
    /// When its data changed last.
    pub modified: Nanos,
    /// When its data or attributes changed last.
    pub changed: Nanos,
}

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name.
    pub name: Vec<u8>,
    /// Number of the inode that it leads to.
    pub number: u32,
    /// What that is.
    pub kind: FileKind,
    /// Where a listing continues behind it.
    pub next: u64,
}

/// Space of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpaceStatus {
    /// Blocks for data and nodes.
    pub blocks: u64,
    /// Of these, the ones that nothing has or is promised.
    pub blocks_free: u64,
    /// Inodes and index blocks that there can be.
    pub nodes: u64,
    /// Of these, the ones that are free.
    pub nodes_free: u64,
}

/// The result of a call that succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It is done.
    Done,
    /// What was found or made.
    Found(Attributes),
    /// Names of a directory.
    Listed {
        /// In the order of their positions.
        entries: Vec<Entry>,
        /// No entry follows.
        is_end: bool,
    },
    /// What was read.
    Read {
        /// How many bytes.
        length: u32,
        /// The bytes, where the drive keeps bytes. Where it keeps stamps: 8 bytes for each sector of 512 bytes that the read touches. Else
        /// nothing.
        data: Vec<u8>,
    },
    /// What was appended.
    Appended {
        /// Where its first byte is.
        offset: u64,
    },
    /// The space of the file system.
    Space(SpaceStatus),
}

/// Why a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Errno {
    /// A parameter is not what the call allows.
    #[error("a parameter is not what the call allows")]
    Invalid,
    /// The name has more bytes than a name can have.
    #[error("the name is longer than 255 bytes")]
    NameTooLong,
    /// The file that the number and generation name is not there any more.
    #[error("the file does not exist any more")]
    Stale,
    /// It is a file where a directory is needed.
    #[error("it is not a directory")]
    NotDirectory,
    /// It is a directory where a file is needed.
    #[error("it is a directory")]
    IsDirectory,
    /// There is no such name.
    #[error("there is no such name")]
    NotFound,
    /// The name exists.
    #[error("the name exists")]
    Exists,
    /// The directory has names.
    #[error("the directory is not empty")]
    NotEmpty,
    /// The file would be larger than a file can be.
    #[error("the file would be larger than 4 TiB")]
    TooLarge,
    /// The file system is full, or the directory is.
    #[error("no space is left")]
    NoSpace,
    /// The file system takes no changes any more.
    #[error("the file system is read-only")]
    ReadOnly,
    /// A block cannot be read.
    #[error("a block cannot be read")]
    Io,
}

impl Errno {
    /// Its number in Linux.
    pub const fn number(self) -> i32 {
        match self {
            Errno::NotFound => 2,
            Errno::Io => 5,
            Errno::Exists => 17,
            Errno::NotDirectory => 20,
            Errno::IsDirectory => 21,
            Errno::Invalid => 22,
            Errno::TooLarge => 27,
            Errno::NoSpace => 28,
            Errno::ReadOnly => 30,
            Errno::NameTooLong => 36,
            Errno::NotEmpty => 39,
            Errno::Stale => 116,
        }
    }
}

/// The answer to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The sender's own.
    pub tag: u32,
    /// When the call came.
    pub submitted: Nanos,
    /// When the answer was there.
    pub at: Nanos,
    /// Number of its apply, from 0. Each call has one of its own.
    pub order: u64,
    /// Whether it took effect. A call that fails has not, unless it has stages and fails behind its effect: a write that was to be
    /// durable changed the file in memory.
    pub took_effect: bool,
    /// How it ended.
    pub result: Result<Reply, Errno>,
}

/// Whether a name can be one: neither bad nor too long, as [`Call`] says.
///
/// # Errors
/// Which of the two it is.
pub fn check_name(name: &[u8]) -> Result<(), Errno> {
    if name.len() > MOST_NAME_BYTES {
        return Err(Errno::NameTooLong);
    }
    let is_bad = name.is_empty() || name == b"." || name == b".." || name.contains(&b'/') || name.contains(&0);
    if is_bad { Err(Errno::Invalid) } else { Ok(()) }
}

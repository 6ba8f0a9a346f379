//! What a workload needs of a file system, whichever it is: a real directory, a model, a simulated file system.

use std::fmt;
use std::io;

/// What kind of failure it was, to decide by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FsErrorKind {
    /// There is no such file or directory.
    NotFound,
    /// There is one already.
    Exists,
    /// No space, no quota, or no inode is left.
    Full,
    /// The directory still has entries.
    NotEmpty,
    /// It may not be done, or the file system is read-only.
    Refused,
    /// Too many files are open.
    TooManyOpen,
    /// The file system does not do this (as `O_DIRECT` on some).
    Unsupported,
    /// Anything else.
    Other,
}

/// Why a call failed.
#[derive(Debug)]
pub struct FsError {
    /// What kind of failure.
    pub kind: FsErrorKind,
    /// The call, as a verb.
    pub call: &'static str,
    /// The path, as the file system knows it.
    pub path: String,
    /// What the system said, where a real one did.
    pub source: Option<io::Error>,
}

impl FsError {
    /// A failure that no system told of.
    pub fn new(kind: FsErrorKind, call: &'static str, path: impl Into<String>) -> FsError {
        FsError { kind, call, path: path.into(), source: None }
    }

    /// A failure as the system told it.
    pub fn of(source: io::Error, call: &'static str, path: impl Into<String>) -> FsError {
        let kind = match source.kind() {
            io::ErrorKind::NotFound => FsErrorKind::NotFound,
            io::ErrorKind::AlreadyExists => FsErrorKind::Exists,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => FsErrorKind::Full,
            io::ErrorKind::DirectoryNotEmpty => FsErrorKind::NotEmpty,
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => FsErrorKind::Refused,
            io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput => FsErrorKind::Unsupported,
            _ if source.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error()) => FsErrorKind::TooManyOpen,
            _ => FsErrorKind::Other,
        };
        FsError { kind, call, path: path.into(), source: Some(source) }
    }
}

impl fmt::Display for FsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            FsErrorKind::NotFound => "there is no such file",
            FsErrorKind::Exists => "it exists already",
            FsErrorKind::Full => "the file system is full",
            FsErrorKind::NotEmpty => "the directory is not empty",
            FsErrorKind::Refused => "it is not permitted",
            FsErrorKind::TooManyOpen => "too many files are open (ulimit -n, or fewer threads)",
            FsErrorKind::Unsupported => "the file system does not support it",
            FsErrorKind::Other => "it failed",
        };
        write!(f, "cannot {} {}: {what}", self.call, self.path)?;
        match &self.source {
            Some(source) => write!(f, " ({source})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for FsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}

/// How a file is going to be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Everything that is written goes to the end.
    pub append: bool,
    /// Past the page cache.
    pub direct: bool,
    /// A write is durable when it returns.
    pub dsync: bool,
}

/// What a file system says of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Length of a file, in bytes.
    pub bytes: u64,
    /// It is a directory.
    pub directory: bool,
}

/// A file system as a workload uses it. Paths are relative to its root, with `/` between names and none in front; the
/// root is the empty path. Calls may come from several threads at once.
pub trait FileSystem: Sync {
    /// An open file.
    type File: Send;

    /// Makes a file that must not exist, and opens it for reading and writing.
    fn create(&self, path: &str, access: Access) -> Result<Self::File, FsError>;
    /// Opens a file for reading and writing.
    fn open(&self, path: &str, access: Access) -> Result<Self::File, FsError>;
    /// Reads at a byte of the file; how many bytes there were, which is fewer only at the end of the file.
    fn read(&self, file: &mut Self::File, offset: u64, into: &mut [u8]) -> Result<usize, FsError>;
    /// Writes all of `data` at a byte of the file.
    fn write(&self, file: &mut Self::File, offset: u64, data: &[u8]) -> Result<(), FsError>;
    /// Writes all of `data` at the end of a file that was opened to append.
    fn append(&self, file: &mut Self::File, data: &[u8]) -> Result<(), FsError>;
    /// Makes data and length of a file durable.
    fn fsync(&self, file: &mut Self::File) -> Result<(), FsError>;
    /// Closes.
    fn close(&self, file: Self::File) -> Result<(), FsError>;
    /// Removes a file.
    fn unlink(&self, path: &str) -> Result<(), FsError>;
    /// Asks what a path is.
    fn stat(&self, path: &str) -> Result<Status, FsError>;
    /// Makes a directory; its parent must exist.
    fn make_directory(&self, path: &str) -> Result<(), FsError>;
    /// Removes an empty directory.
    fn remove_directory(&self, path: &str) -> Result<(), FsError>;
    /// The names in a directory, sorted.
    fn list(&self, path: &str) -> Result<Vec<String>, FsError>;
    /// Makes everything durable.
    fn sync(&self) -> Result<(), FsError>;
    /// Bytes that can still be written, where the file system says so.
    fn free_bytes(&self) -> Result<Option<u64>, FsError>;
}

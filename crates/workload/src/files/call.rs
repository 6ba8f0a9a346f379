//! One call of a file system, as a thread asks for it.

/// A thread's own number of an open file.
pub type Descriptor = u8;

/// What is asked of the file system. Paths are relative to its root, with `/` between names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// Makes a file that does not exist and opens it for reading and writing.
    Create {
        /// Its number from here on.
        descriptor: Descriptor,
        /// Its path.
        path: String,
        /// Everything that will be written to it is appended.
        append: bool,
    },
    /// Opens a file for reading and writing.
    Open {
        /// Its number from here on.
        descriptor: Descriptor,
        /// Its path.
        path: String,
        /// Everything that will be written to it is appended.
        append: bool,
    },
    /// Reads up to so many bytes; fewer, or none, at the end of the file.
    Read {
        /// The open file.
        descriptor: Descriptor,
        /// From this byte of the file.
        offset: u64,
        /// So many.
        bytes: u64,
    },
    /// Writes so many bytes.
    Write {
        /// The open file.
        descriptor: Descriptor,
        /// At this byte of the file.
        offset: u64,
        /// So many.
        bytes: u64,
    },
    /// Writes so many bytes at the end.
    Append {
        /// The open file.
        descriptor: Descriptor,
        /// So many.
        bytes: u64,
    },
    /// Makes the file durable.
    Fsync {
        /// The open file.
        descriptor: Descriptor,
    },
    /// Closes; the number is free again.
    Close {
        /// The open file.
        descriptor: Descriptor,
    },
    /// Removes a file.
    Unlink {
        /// Its path.
        path: String,
    },
    /// Asks for a file's size.
    Stat {
        /// Its path.
        path: String,
    },
}

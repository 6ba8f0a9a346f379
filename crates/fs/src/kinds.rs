//! The kinds of file systems that there are: a line of [`KINDS`] each (docs/adding-a-design.md, "A file system").

use std::fmt;

use ssdlab_base::CommandSet;
use ssdlab_base::command_sets::segments::SEGMENTS;
use ssdlab_device::description::{DescriptionError, Errors, Key, Section, Tree};
use ssdlab_host::Device;

use crate::config::{self, MakeOptions, Options};
use crate::error::{MakeError, MountError};
use crate::file_system::{Engine, FileSystem};
use crate::format::inode::{DIRECT, FAN};
use crate::format::superblock;
use crate::jobs::Job;
use crate::log_structured::LogStructured;
use crate::reader::Reader;
use crate::{alfs, journaling, lfs};

/// Every kind of file system.
pub const KINDS: &[FileSystemKind] = &[
    FileSystemKind {
        name: "alfs",
        summary: "AMF's log-structured file system on append-only segments (Lee et al., FAST 2016)",
        keys: alfs::KEYS,
        command_set: Some(&SEGMENTS),
        overwrites: false,
        jobs: &Job::LOG_STRUCTURED,
        make: alfs::make::make,
        fits: alfs::mount::fits,
        file_metadata: log_structured_metadata,
        magic: superblock::MAGIC,
        mount: |reader, options| LogStructured::mount(reader, options, alfs::mount::load),
    },
    FileSystemKind {
        name: "lfs",
        summary: "F2FS as Linux 3.13 had it: log-structured, with metadata that is overwritten (Lee et al., FAST 2015)",
        keys: lfs::KEYS,
        command_set: None,
        overwrites: false,
        jobs: &Job::LOG_STRUCTURED,
        make: lfs::make::make,
        fits: lfs::mount::fits,
        file_metadata: log_structured_metadata,
        magic: superblock::AREAS_MAGIC,
        mount: |reader, options| LogStructured::mount(reader, options, lfs::mount::load),
    },
    FileSystemKind {
        name: "journaling",
        summary: "ext4 or ext3 as Linux 3.13 had them: metadata in place behind an ordered journal",
        keys: journaling::KEYS,
        command_set: None,
        overwrites: true,
        jobs: &Job::JOURNALING,
        make: journaling::make::make,
        fits: journaling::mount::fits,
        file_metadata: journaling::map::file_metadata,
        magic: journaling::format::superblock::MAGIC,
        mount: journaling::mount::mount,
    },
];

/// An inode, and its index blocks.
fn log_structured_metadata(blocks: u64, _: &MakeOptions) -> u64 {
    1 + blocks.saturating_sub(DIRECT as u64).div_ceil(FAN as u64)
}

/// Makes a file system on a device.
type Make = fn(Box<dyn Device>, &MakeOptions, &Options) -> Result<FileSystem, MakeError>;

/// A file system from what a device has; the device comes back with what is in flight in it where it cannot be mounted.
pub(crate) type Mounted = Result<Box<dyn Engine>, (MountError, Box<dyn Device>)>;

/// What the registry knows of a kind of file system.
pub struct FileSystemKind {
    /// Its name.
    pub name: &'static str,
    /// One line about it.
    pub summary: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
    /// The command set that the drive must have; `None` for block I/O.
    pub command_set: Option<&'static CommandSet>,
    /// Blocks of files are written in place: a cut may leave some sectors of a block as they were.
    pub overwrites: bool,
    /// Jobs that it has.
    pub jobs: &'static [Job],
    pub(crate) make: Make,
    /// Whether such a file system can be on a device.
    pub(crate) fits: fn(&dyn Device) -> bool,
    /// Blocks that a file of so many blocks, written in order, takes beside them from the space of files.
    pub file_metadata: fn(u64, &MakeOptions) -> u64,
    /// What its superblock begins with.
    pub(crate) magic: [u8; 4],
    pub(crate) mount: fn(Reader, &Options) -> Mounted,
}

impl PartialEq for FileSystemKind {
    fn eq(&self, other: &FileSystemKind) -> bool {
        self.name == other.name
    }
}

impl Eq for FileSystemKind {}

impl fmt::Debug for FileSystemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl FileSystemKind {
    /// The kind of a name.
    ///
    /// # Errors
    /// There is none: what was found and what was expected.
    pub fn of_name(name: &str) -> Result<&'static FileSystemKind, UnknownKind> {
        KINDS.iter().find(|kind| kind.name == name).ok_or_else(|| UnknownKind {
            found: name.to_string(),
            expected: KINDS.iter().map(|kind| kind.name).collect::<Vec<_>>().join(" or "),
        })
    }

    /// Reads its keys from TOML, one `key = value` a line; `file` is what errors call the text.
    ///
    /// # Errors
    /// Everything that is wrong: key, what was found and what was expected.
    pub fn read(&'static self, text: &str, file: &str) -> Result<(MakeOptions, Options), DescriptionError> {
        self.read_tree(&Tree::parse(text, file)?)
    }

    /// Reads its keys from overrides `key=value` that the option `option` gave.
    ///
    /// # Errors
    /// Everything that is wrong: override, what was found and what was expected.
    pub fn read_overrides(
        &'static self,
        overrides: &[String],
        option: &'static str,
    ) -> Result<(MakeOptions, Options), DescriptionError> {
        self.read_tree(&Tree::of_overrides(overrides, option, self.keys)?)
    }

    fn read_tree(&'static self, tree: &Tree) -> Result<(MakeOptions, Options), DescriptionError> {
        let mut errors = Errors::default();
        let section = Section::root(tree, self.keys);
        section.check(&mut errors);
        let read = errors.keep(config::read(self, &section));
        errors.into_result(tree)?;
        Ok(read.unwrap_or_default())
    }
}

/// A name that is that of no kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found the file system '{found}', expected {expected}")]
pub struct UnknownKind {
    /// The name.
    pub found: String,
    /// The names that there are.
    pub expected: String,
}

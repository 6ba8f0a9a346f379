//! The files of an image: how they are made, opened, locked and given space.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FallocateFlags, FlockOperation};

use super::entry::{BLOCK_BYTES, check_of, long, page_bytes, page_stride, word};
use crate::Geometry;

/// Bytes before the block entries in the file `blocks`.
pub(super) const HEADER: u64 = 4096;

/// First bytes of an image; the number changes with the layout.
const MAGIC: &[u8; 16] = b"ssdlab image 3\n\0";

/// The layout before: page entries without padding, so one may be torn when the process is killed while it writes it.
const MAGIC_PACKED: &[u8; 16] = b"ssdlab image 2\n\0";

/// Who serves a drive, and nobody else, reads what is on it.
const DIR_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// What an image is called before its header is whole.
const UNFINISHED: &str = "blocks.unfinished";

/// What may stand in the directory before the image is whole.
const OURS: [&str; 5] = ["description.toml", UNFINISHED, "pages", "oob", "records"];

/// Why an image cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The host's file system said no.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What it said.
        error: io::Error,
    },
    /// There is something in the directory, but not an image.
    #[error("{path}: this is not an image of ssdlab")]
    NotAnImage {
        /// The directory or file.
        path: PathBuf,
    },
    /// An image of another layout.
    #[error("{path}: an image of another version ({found:?}), this is {:?}", magic_text(MAGIC))]
    Version {
        /// The file.
        path: PathBuf,
        /// Its first bytes.
        found: String,
    },
    /// An image of chips of another shape.
    #[error("{path}: the image is of other chips: {key} is {found} in the image and {expected} in the description")]
    Geometry {
        /// The file.
        path: PathBuf,
        /// What differs.
        key: &'static str,
        /// In the image.
        found: u64,
        /// In the description.
        expected: u64,
    },
    /// A file is not as long as it was made.
    #[error("{path}: the file is {found} bytes long, it was made {expected} long: the image is truncated or damaged")]
    Length {
        /// The file.
        path: PathBuf,
        /// Bytes found.
        found: u64,
        /// Bytes expected.
        expected: u64,
    },
    /// An entry does not agree with its check, or with others.
    #[error("{path}: the image is damaged: {what}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        what: String,
    },
    /// Others than its owner may read it.
    #[error("{path}: its mode is {found:o}, and it could not be made {wanted:o}, its owner's alone: {error}")]
    NotPrivate {
        /// The directory or file.
        path: PathBuf,
        /// Its mode.
        found: u32,
        /// What its mode should be.
        wanted: u32,
        /// What the host's file system said.
        error: io::Error,
    },
    /// Somebody else has it open.
    #[error("{path}: the image is in use by another process")]
    Locked {
        /// The directory.
        path: PathBuf,
    },
}

fn magic_text(magic: &[u8]) -> String {
    String::from_utf8_lossy(magic).trim_end_matches(['\n', '\0']).to_string()
}

/// The open files of an image.
pub(super) struct Files {
    pub(super) dir: PathBuf,
    /// Data, by physical page.
    pub(super) pages: File,
    /// Page entries, by physical page.
    pub(super) oob: File,
    /// Header, then block entries.
    pub(super) blocks: File,
    /// Log of metadata records.
    pub(super) records: File,
    /// Bytes from one page's entry to the next in `oob`.
    pub(super) entry_bytes: usize,
}

/// Takes a file's lock. A program that this process starts holds the locks of all open files until its exec, so a lock that was
/// just given up may be taken for a moment.
fn lock(file: &File) -> bool {
    const TRIES: u32 = 20;
    (0..TRIES).any(|tried| {
        if tried > 0 {
            std::thread::sleep(Duration::from_millis(10));
        }
        rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
    })
}

impl Files {
    /// Makes or opens the files in `dir`; the second is whether they are new. The image is locked until they are closed.
    pub(super) fn open(
        dir: &Path,
        geometry: &Geometry,
        units_per_page: u32,
        origins: bool,
    ) -> Result<(Files, bool), ImageError> {
        let io = |path: &Path| {
            let path = path.to_path_buf();
            move |error| ImageError::Io { path, error }
        };
        std::fs::DirBuilder::new().recursive(true).mode(DIR_MODE).create(dir).map_err(io(dir))?;
        let header = header(geometry, units_per_page);
        let fresh = !dir.join("blocks").exists();
        // An image that is refused gains no file.
        let file = |name: &str| {
            let path = dir.join(name);
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(fresh).truncate(false).mode(FILE_MODE);
            options.open(&path).map_err(io(&path))
        };
        if fresh {
            let mut entries = std::fs::read_dir(dir).map_err(io(dir))?.flatten();
            if entries.any(|entry| !OURS.iter().any(|name| entry.file_name() == *name)) {
                return Err(ImageError::NotAnImage { path: dir.to_path_buf() });
            }
            // An interrupted start leaves the unfinished file, which is the first that is made. Without it these belong to
            // an image that has lost its header, and their data must not be thrown away.
            if !dir.join(UNFINISHED).exists() && ["pages", "oob", "records"].iter().any(|name| dir.join(name).exists())
            {
                let what = "it is missing, and the image's other files are there".to_string();
                return Err(ImageError::Damaged { path: dir.join("blocks"), what });
            }
        }
        // The lock ends with the process, however that ends.
        let blocks = if fresh { file(UNFINISHED)? } else { file("blocks")? };
        if !lock(&blocks) {
            return Err(ImageError::Locked { path: dir.to_path_buf() });
        }
        let (pages, oob, records) = (file("pages")?, file("oob")?, file("records")?);
        let mut files = Files {
            dir: dir.to_path_buf(),
            pages,
            oob,
            blocks,
            records,
            entry_bytes: page_stride(units_per_page, origins),
        };
        if !fresh && files.check_header(&header)? == *MAGIC_PACKED {
            files.entry_bytes = page_bytes(units_per_page, origins);
        }
        files.make_private()?;
        let lengths = [
            ("pages", &files.pages, geometry.pages() * u64::from(geometry.page_bytes)),
            ("oob", &files.oob, geometry.pages() * files.entry_bytes as u64),
            ("blocks", &files.blocks, HEADER + u64::from(geometry.blocks()) * BLOCK_BYTES as u64),
        ];
        if fresh {
            for (name, file, length) in lengths {
                // What an interrupted start left is gone.
                file.set_len(0).and_then(|()| file.set_len(length)).map_err(io(&dir.join(name)))?;
            }
            files.records.set_len(0).map_err(io(&dir.join("records")))?;
            files.blocks.write_all_at(&header, 0).map_err(io(&dir.join(UNFINISHED)))?;
            return Ok((files, true));
        }
        for (name, file, expected) in lengths {
            let found = file.metadata().map_err(io(&dir.join(name)))?.len();
            if found != expected {
                return Err(ImageError::Length { path: dir.join(name), found, expected });
            }
        }
        Ok((files, false))
    }

    /// A new, empty file that only its owner reads.
    pub(super) fn make(&self, path: &Path) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(FILE_MODE).open(path)
    }

    /// A new image is whole: from now on it is opened, not made.
    pub(super) fn finish(&self) -> Result<(), ImageError> {
        let path = self.dir.join("blocks");
        std::fs::rename(self.dir.join(UNFINISHED), &path).map_err(|error| ImageError::Io { path, error })
    }

    /// Takes from others what an image made by an earlier version, or a folder that was there before, lets them read.
    fn make_private(&self) -> Result<(), ImageError> {
        let io = |path: PathBuf| move |error| ImageError::Io { path, error };
        let private = |path: PathBuf, mode: u32| {
            let found = std::fs::metadata(&path).map_err(io(path.clone()))?.mode() & 0o777;
            // Bits that the owner took from himself stay away.
            if found & !mode != 0 {
                let wanted = found & mode;
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(wanted))
                    .map_err(|error| ImageError::NotPrivate { path, found, wanted, error })?;
            }
            Ok(())
        };
        private(self.dir.clone(), DIR_MODE)?;
        let entries = std::fs::read_dir(&self.dir).map_err(io(self.dir.clone()))?;
        let names = [&OURS[..], &["blocks", "records.new"]].concat();
        for entry in entries.flatten().filter(|entry| names.iter().any(|name| entry.file_name() == *name)) {
            private(entry.path(), FILE_MODE)?;
        }
        Ok(())
    }

    /// Returns the first bytes, which tell the layout.
    fn check_header(&self, expected: &[u8]) -> Result<[u8; 16], ImageError> {
        let path = self.dir.join("blocks");
        let mut found = vec![0; expected.len()];
        if self.blocks.read_exact_at(&mut found, 0).is_err() {
            let length = self.blocks.metadata().map_or(0, |metadata| metadata.len());
            return Err(ImageError::Length { path, found: length, expected: HEADER });
        }
        let magic = *found.first_chunk::<16>().expect("a header is longer");
        if magic != *MAGIC && magic != *MAGIC_PACKED {
            if found.starts_with(b"ssdlab image ") {
                return Err(ImageError::Version { path, found: magic_text(&found[..16]) });
            }
            return Err(ImageError::NotAnImage { path });
        }
        if word(&found, 16) != check_of(&found[20..], 0) {
            return Err(ImageError::Damaged { path, what: "its header does not agree with its check".to_string() });
        }
        for (index, key) in KEYS.iter().enumerate() {
            let (found, expected) = (long(&found, 24 + index * 8), long(expected, 24 + index * 8));
            if found != expected {
                return Err(ImageError::Geometry { path, key, found, expected });
            }
        }
        Ok(magic)
    }
}

const KEYS: [&str; 9] = [
    "flash.channels",
    "flash.chips_per_channel",
    "flash.dies_per_chip",
    "flash.planes_per_die",
    "flash.blocks_per_plane",
    "flash.pages_per_block",
    "flash.page_size",
    "flash.oob_size",
    "units in a page",
];

fn header(geometry: &Geometry, units_per_page: u32) -> Vec<u8> {
    let values = [
        u64::from(geometry.channels),
        u64::from(geometry.chips_per_channel),
        u64::from(geometry.dies_per_chip),
        u64::from(geometry.planes_per_die),
        u64::from(geometry.blocks_per_plane),
        u64::from(geometry.pages_per_block),
        u64::from(geometry.page_bytes),
        u64::from(geometry.oob_bytes),
        u64::from(units_per_page),
    ];
    let mut bytes = vec![0; 24 + KEYS.len() * 8];
    bytes[..16].copy_from_slice(MAGIC);
    for (index, value) in values.iter().enumerate() {
        bytes[24 + index * 8..32 + index * 8].copy_from_slice(&value.to_le_bytes());
    }
    let check = check_of(&bytes[20..], 0);
    bytes[16..20].copy_from_slice(&check.to_le_bytes());
    bytes
}

/// Makes sure that the host's file system has space for a range of a file.
pub(super) fn provide(file: &File, offset: u64, bytes: u64) -> io::Result<()> {
    match rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, offset, bytes) {
        // A file system that cannot promise space says so when it is written.
        Err(rustix::io::Errno::OPNOTSUPP) | Ok(()) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Gives the space of a range of a file back to the host's file system; it reads as zeroes then.
pub(super) fn give_back(file: &File, offset: u64, bytes: u64) -> io::Result<()> {
    match rustix::fs::fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, bytes) {
        // Kept then; the data is dead all the same.
        Err(rustix::io::Errno::OPNOTSUPP) | Ok(()) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

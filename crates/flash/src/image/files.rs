//! The files of an image: how they are made, opened, locked and given space.

use std::fs::File;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FallocateFlags, FlockOperation, SeekFrom};

use super::entry::{BLOCK_BYTES, Seal, check_of, long, page_stride, word};
use super::folder::Folder;
use crate::Geometry;

/// Bytes before the block entries in the file `blocks`.
pub(super) const HEADER: u64 = 4096;

/// First bytes of an image; the number changes with the layout.
const MAGIC: &[u8; 16] = b"ssdlab image 4\n\0";

/// What an image is called before its header is whole.
pub(super) const UNFINISHED: &str = "blocks.unfinished";

/// The files of a whole image; before that `blocks` is [`UNFINISHED`], and others may be missing.
pub(super) const WHOLE: [&str; 5] = ["description.toml", "pages", "oob", "blocks", "records"];

/// Where the log of records is written anew.
pub(super) const NEW_RECORDS: &str = "records.new";

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
    #[error(
        "{path}: an image of another version ({found:?}), this is {:?}: the version of ssdlab that made it can serve it, to copy \
         its data to a new one",
        magic_text(MAGIC)
    )]
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
    /// It is a link, which leads to what another user chose.
    #[error("{path}: this is a symbolic link, and the folder and files of an image are opened without following one")]
    Link {
        /// The folder or file.
        path: PathBuf,
    },
    /// Its owner may read and change it.
    #[error("{path}: it belongs to user {owner}, and this is user {user}: another user's image is not served")]
    Foreign {
        /// The folder or file.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Who runs this.
        user: u32,
    },
    /// Other users may have it open.
    #[error(
        "{path}: its mode is {mode:o}, so other users may have read or changed it; make it 600 (chmod) if it is to be trusted"
    )]
    Open {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// What is written into it changes another file, too.
    #[error("{path}: the file has {links} names (hard links), and an image's file has one")]
    Names {
        /// The file.
        path: PathBuf,
        /// How many.
        links: u64,
    },
    /// A folder, a pipe, a device.
    #[error("{path}: this is not a plain file")]
    NoFile {
        /// What is no file.
        path: PathBuf,
    },
    /// Others may look into the folder.
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
    /// A file of the image is not there.
    #[error("{path}: the file is missing: it holds {holds}, and the image is of no use without it")]
    Missing {
        /// Where it should be.
        path: PathBuf,
        /// What is in it.
        holds: &'static str,
    },
    /// Another process has it open.
    #[error("{path}: the image is in use by another process")]
    Locked {
        /// The directory.
        path: PathBuf,
    },
}

fn magic_text(magic: &[u8]) -> String {
    String::from_utf8_lossy(magic).trim_end_matches(['\n', '\0']).to_string()
}

/// A file of the image is not there.
pub(super) fn missing(path: PathBuf, name: &str) -> ImageError {
    let holds = match name {
        "pages" => "the data of all pages",
        "oob" => "what each page holds and whether its program ended",
        "blocks" => "the header and the state of each block",
        "records" => "the metadata that the drive wrote",
        _ => "the description of the drive that the image was made for",
    };
    ImageError::Missing { path, holds }
}

/// The open files of an image.
pub(super) struct Files {
    pub(super) folder: Folder,
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
    /// The checks of this image's entries.
    pub(super) seal: Seal,
}

/// Takes a file's lock. A program that this process starts holds the locks of all open files until its exec, so a lock that was
/// just given up may be taken for a moment.
pub fn lock(file: &File) -> bool {
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
        let folder = Folder::open(dir)?;
        let io = |name: &str| {
            let path = folder.path().join(name);
            move |error| ImageError::Io { path, error }
        };
        let fresh = !folder.has("blocks");
        if fresh {
            // An interrupted start leaves the unfinished file, which is the first that is made. Without it these belong
            // to an image that has lost its header, and their data must not be thrown away.
            let others = ["pages", "oob", "records"].map(|name| folder.has(name));
            let is_lost = |others: bool| match others && !folder.has(UNFINISHED) {
                true => Err(missing(folder.path().join("blocks"), "blocks")),
                false => Ok(()),
            };
            is_lost(!others.contains(&false))?;
            let names = folder.names().map_err(io("."))?;
            if names.iter().any(|name| name != UNFINISHED && !WHOLE.iter().any(|ours| name == *ours)) {
                return Err(ImageError::NotAnImage { path: folder.path().to_path_buf() });
            }
            is_lost(others.contains(&true))?;
        }
        // The lock ends with the process, however that ends.
        let blocks = folder.file(if fresh { UNFINISHED } else { "blocks" }, fresh)?;
        if !lock(&blocks) {
            return Err(ImageError::Locked { path: folder.path().to_path_buf() });
        }
        // An image that is refused gains no file.
        let file = |name: &str| folder.file(name, fresh);
        let (pages, oob, records) = (file("pages")?, file("oob")?, file("records")?);
        let entry_bytes = page_stride(units_per_page, origins);
        let id = match fresh {
            // Of the system's randomness.
            true => RandomState::new().build_hasher().finish(),
            false => check_header(&blocks, &folder.path().join("blocks"), geometry, units_per_page)?,
        };
        let files = Files { pages, oob, blocks, records, entry_bytes, seal: Seal(id), folder };
        let lengths = [
            ("pages", &files.pages, geometry.pages() * u64::from(geometry.page_bytes)),
            ("oob", &files.oob, geometry.pages() * files.entry_bytes as u64),
            ("blocks", &files.blocks, HEADER + u64::from(geometry.blocks()) * BLOCK_BYTES as u64),
        ];
        let io = |name: &str| {
            let path = files.folder.path().join(name);
            move |error| ImageError::Io { path, error }
        };
        if fresh {
            for (name, file, length) in lengths {
                // What an interrupted start left is gone.
                file.set_len(0).and_then(|()| file.set_len(length)).map_err(io(name))?;
            }
            files.records.set_len(0).map_err(io("records"))?;
            files.blocks.write_all_at(&header(geometry, units_per_page, id), 0).map_err(io(UNFINISHED))?;
            return Ok((files, true));
        }
        for (name, file, expected) in lengths {
            let found = file.metadata().map_err(io(name))?.len();
            if found != expected {
                return Err(ImageError::Length { path: files.folder.path().join(name), found, expected });
            }
        }
        Ok((files, false))
    }

    /// The file in which the log of records is written anew.
    pub(super) fn new_records(&self) -> Result<File, ImageError> {
        self.folder.empty_file(NEW_RECORDS)
    }

    /// That file is the log from now on.
    pub(super) fn take_new_records(&mut self, file: File) -> io::Result<()> {
        self.folder.rename(NEW_RECORDS, "records")?;
        self.records = file;
        Ok(())
    }

    /// That file is not needed, and its space neither.
    pub(super) fn drop_new_records(&self) {
        // Nothing reads it, and the next attempt empties it.
        let _ = self.folder.remove(NEW_RECORDS);
    }

    /// A new image is whole: from now on it is opened, not made.
    pub(super) fn finish(&self) -> Result<(), ImageError> {
        let path = || self.folder.path().join("blocks");
        self.folder.rename(UNFINISHED, "blocks").map_err(|error| ImageError::Io { path: path(), error })
    }
}

/// Whether a header is of this layout and these chips; returns the image's number.
fn check_header(blocks: &File, path: &Path, geometry: &Geometry, units_per_page: u32) -> Result<u64, ImageError> {
    let path = path.to_path_buf();
    let mut found = vec![0; HEADER_BYTES];
    if blocks.read_exact_at(&mut found, 0).is_err() {
        let length = blocks.metadata().map_or(0, |metadata| metadata.len());
        return Err(ImageError::Length { path, found: length, expected: HEADER });
    }
    if found[..16] != *MAGIC {
        if found.starts_with(b"ssdlab image ") {
            return Err(ImageError::Version { path, found: magic_text(&found[..16]) });
        }
        return Err(ImageError::NotAnImage { path });
    }
    if word(&found, 16) != check_of(&found[20..], 0) {
        return Err(ImageError::Damaged { path, what: "its header does not agree with its check".to_string() });
    }
    let id = long(&found, HEADER_BYTES - 8);
    let expected = header(geometry, units_per_page, id);
    for (index, key) in KEYS.iter().enumerate() {
        let (found, expected) = (long(&found, 24 + index * 8), long(&expected, 24 + index * 8));
        if found != expected {
            return Err(ImageError::Geometry { path, key, found, expected });
        }
    }
    Ok(id)
}

/// Bytes of the header: magic, check, chips, the image's number.
const HEADER_BYTES: usize = 24 + KEYS.len() * 8 + 8;

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

fn header(geometry: &Geometry, units_per_page: u32, id: u64) -> Vec<u8> {
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
        id,
    ];
    let mut bytes = vec![0; HEADER_BYTES];
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

/// Where data begins in a file at or behind `offset`, as far as its file system tells: what lies before it reads as zeroes.
pub(super) fn data_from(file: &File, offset: u64) -> u64 {
    match rustix::fs::seek(file, SeekFrom::Data(offset)) {
        Ok(at) => at,
        Err(rustix::io::Errno::NXIO) => u64::MAX,
        Err(_) => offset,
    }
}

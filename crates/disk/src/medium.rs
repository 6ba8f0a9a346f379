//! What is on the medium: in memory, or in the file of an image.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use ssdlab_base::SECTOR_BYTES;
use ssdlab_flash::{Folder, ImageError, Lifeline};

use crate::contents::Contents;

/// The file of an image that holds the sectors.
pub const SECTORS: &str = "sectors";

/// What is on the medium.
pub(crate) enum Medium {
    /// In memory.
    Memory(Contents),
    /// In a file.
    Image(Box<ImageFile>),
}

/// A sparse file with the sectors of a disk, one behind the other.
pub(crate) struct ImageFile {
    file: File,
    /// Which sectors hold data.
    there: Contents,
    /// What the file could not take yet.
    unwritten: Contents,
    /// A read of the file failed since the last call of [`Medium::take_failed`].
    failed: Cell<bool>,
    lifeline: Lifeline,
    _folder: Folder,
}

impl ImageFile {
    /// Opens the file in a folder, or makes it; the second is whether it is new. It is locked until it is dropped.
    ///
    /// # Errors
    /// It is in use, or no file of a disk of so many sectors.
    pub(crate) fn open(folder: Folder, sectors: u64) -> Result<(ImageFile, bool), ImageError> {
        let path = folder.path().join(SECTORS);
        let fresh = !folder.has(SECTORS);
        let file = folder.file(SECTORS, fresh)?;
        if !ssdlab_flash::lock(&file) {
            return Err(ImageError::Locked { path: folder.path().to_path_buf() });
        }
        let io = |error| ImageError::Io { path: path.clone(), error };
        let bytes = sectors * SECTOR_BYTES;
        let mut there = Contents::new(0);
        if fresh {
            file.set_len(bytes).map_err(io)?;
        } else {
            let found = file.metadata().map_err(io)?.len();
            if found != bytes {
                return Err(ImageError::Length { path, found, expected: bytes });
            }
            for extent in extents(&file, bytes).map_err(io)? {
                there.write(&extent, &[]);
            }
        }
        let unwritten = Contents::new(SECTOR_BYTES as usize);
        let (failed, lifeline) = (Cell::new(false), Lifeline::default());
        Ok((ImageFile { file, there, unwritten, failed, lifeline, _folder: folder }, fresh))
    }

    fn write(&mut self, range: &Range<u64>, data: &[u8]) {
        self.there.write(range, &[]);
        // What is kept is older: it must not go into the file later.
        let is_kept = self.unwritten.run(range.start, range.end) != (false, range.end);
        if is_kept || self.lifeline.write_at(&self.file, data, range.start * SECTOR_BYTES).is_err() {
            self.unwritten.write(range, data);
        }
    }

    fn read(&self, range: &Range<u64>, data: &mut [u8]) {
        if self.file.read_exact_at(data, range.start * SECTOR_BYTES).is_err() {
            self.failed.set(true);
        }
        self.unwritten.read(range, data);
    }

    /// Puts what the file could not take into it; false if it still cannot.
    fn persist(&mut self) -> bool {
        while let Some(last) = self.unwritten.last() {
            let (_, first) = self.unwritten.run(0, last + 1);
            let first = if self.unwritten.run(0, 1).0 { 0 } else { first };
            let (_, end) = self.unwritten.run(first, last + 1);
            let mut data = vec![0; ((end - first) * SECTOR_BYTES) as usize];
            self.unwritten.read(&(first..end), &mut data);
            if self.lifeline.write_at(&self.file, &data, first * SECTOR_BYTES).is_err() {
                return false;
            }
            self.unwritten.remove(&(first..end));
        }
        true
    }
}

/// Sectors of a file of `bytes` that are no hole.
fn extents(file: &File, bytes: u64) -> io::Result<Vec<Range<u64>>> {
    use rustix::fs::{SeekFrom, seek};
    let mut all = Vec::new();
    let mut at = 0;
    while at < bytes {
        let data = match seek(file, SeekFrom::Data(at)) {
            Ok(data) => data,
            Err(rustix::io::Errno::NXIO) => break,
            Err(error) => return Err(error.into()),
        };
        let hole = seek(file, SeekFrom::Hole(data))?;
        all.push(data / SECTOR_BYTES..hole.min(bytes).div_ceil(SECTOR_BYTES));
        at = hole;
    }
    Ok(all)
}

impl Medium {
    pub(crate) fn write(&mut self, range: &Range<u64>, data: &[u8]) {
        match self {
            Medium::Memory(contents) => contents.write(range, data),
            Medium::Image(image) => image.write(range, data),
        }
    }

    pub(crate) fn read(&self, range: &Range<u64>, data: &mut [u8]) {
        match self {
            Medium::Memory(contents) => contents.read(range, data),
            Medium::Image(image) => image.read(range, data),
        }
    }

    /// Puts everything into the image's file, where there is one; false if it cannot take it.
    pub(crate) fn persist(&mut self) -> bool {
        match self {
            Medium::Memory(_) => true,
            Medium::Image(image) => image.persist(),
        }
    }

    /// The process ends at one of the writes to the image's file, where there is one.
    pub(crate) fn end_with(&mut self, lifeline: &Lifeline) {
        if let Medium::Image(image) = self {
            image.lifeline = lifeline.clone();
        }
    }

    /// Whether a read of the image's file failed since the last call.
    pub(crate) fn take_failed(&self) -> bool {
        match self {
            Medium::Memory(_) => false,
            Medium::Image(image) => image.failed.take(),
        }
    }

    /// Bytes that the image's file takes on the host's file system; `None` without an image.
    pub(crate) fn image_bytes(&self) -> Option<u64> {
        use std::os::unix::fs::MetadataExt as _;
        match self {
            Medium::Memory(_) => None,
            Medium::Image(image) => Some(image.file.metadata().map_or(0, |found| found.blocks() * SECTOR_BYTES)),
        }
    }

    /// Which sectors hold data.
    pub(crate) fn there(&self) -> &Contents {
        match self {
            Medium::Memory(contents) => contents,
            Medium::Image(image) => &image.there,
        }
    }
}

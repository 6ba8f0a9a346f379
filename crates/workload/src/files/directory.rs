//! A directory of the machine as a file system.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::file_system::{Access, FileSystem, FsError, Status};

/// What offsets, lengths and memory of direct I/O are multiples of here: enough for drives with sectors of 4096 bytes.
pub(super) const DIRECT_ALIGN: u64 = 4096;

/// Everything below a directory.
#[derive(Clone, Debug)]
pub struct Directory {
    root: PathBuf,
}

impl Directory {
    /// Below `root`, which must exist.
    pub fn new(root: &Path) -> Directory {
        Directory { root: root.to_path_buf() }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    fn or_error<T>(&self, result: io::Result<T>, call: &'static str, path: &str) -> Result<T, FsError> {
        result.map_err(|error| FsError::of(error, call, self.path(path).display().to_string()))
    }

    fn options(access: Access) -> OpenOptions {
        let mut flags = OFlags::empty();
        flags.set(OFlags::DIRECT, access.direct);
        flags.set(OFlags::DSYNC, access.dsync);
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(flags.bits() as i32);
        if access.append {
            options.append(true);
        } else {
            options.write(true);
        }
        options
    }
}

/// An open file with its path, which errors name.
#[derive(Debug)]
pub struct DirectoryFile {
    file: File,
    path: String,
}

impl FileSystem for Directory {
    type File = DirectoryFile;

    fn create(&self, path: &str, access: Access) -> Result<DirectoryFile, FsError> {
        let opened = Directory::options(access).create_new(true).open(self.path(path));
        Ok(DirectoryFile { file: self.or_error(opened, "create", path)?, path: path.to_string() })
    }

    fn open(&self, path: &str, access: Access) -> Result<DirectoryFile, FsError> {
        let opened = Directory::options(access).open(self.path(path));
        Ok(DirectoryFile { file: self.or_error(opened, "open", path)?, path: path.to_string() })
    }

    fn read(&self, file: &mut DirectoryFile, offset: u64, into: &mut [u8]) -> Result<usize, FsError> {
        loop {
            match file.file.read_at(into, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return self.or_error(result, "read", &file.path),
            }
        }
    }

    fn write(&self, file: &mut DirectoryFile, offset: u64, data: &[u8]) -> Result<(), FsError> {
        self.or_error(file.file.write_all_at(data, offset), "write", &file.path)
    }

    fn append(&self, file: &mut DirectoryFile, data: &[u8]) -> Result<(), FsError> {
        self.or_error(file.file.write_all(data), "append to", &file.path)
    }

    fn fsync(&self, file: &mut DirectoryFile) -> Result<(), FsError> {
        self.or_error(file.file.sync_all(), "sync", &file.path)
    }

    fn close(&self, file: DirectoryFile) -> Result<(), FsError> {
        drop(file);
        Ok(())
    }

    fn unlink(&self, path: &str) -> Result<(), FsError> {
        self.or_error(fs::remove_file(self.path(path)), "remove", path)
    }

    fn stat(&self, path: &str) -> Result<Status, FsError> {
        let status = self.or_error(fs::symlink_metadata(self.path(path)), "ask for", path)?;
        Ok(Status { bytes: status.len(), directory: status.is_dir() })
    }

    fn make_directory(&self, path: &str) -> Result<(), FsError> {
        self.or_error(fs::create_dir(self.path(path)), "make the directory", path)
    }

    fn remove_directory(&self, path: &str) -> Result<(), FsError> {
        self.or_error(fs::remove_dir(self.path(path)), "remove the directory", path)
    }

    fn list(&self, path: &str) -> Result<Vec<String>, FsError> {
        let entries = self.or_error(fs::read_dir(self.path(path)), "list", path)?;
        let names: io::Result<Vec<String>> =
            entries.map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned())).collect();
        let mut names = self.or_error(names, "list", path)?;
        names.sort();
        Ok(names)
    }

    fn sync(&self) -> Result<(), FsError> {
        let root = self.or_error(File::open(&self.root), "open", "")?;
        self.or_error(rustix::fs::syncfs(root).map_err(io::Error::from), "sync", "")
    }

    fn free_bytes(&self) -> Result<Option<u64>, FsError> {
        let space =
            self.or_error(rustix::fs::statvfs(&self.root).map_err(io::Error::from), "ask for the space of", "")?;
        Ok(Some(space.f_bavail.saturating_mul(space.f_frsize)))
    }
}

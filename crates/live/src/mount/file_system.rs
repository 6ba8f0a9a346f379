//! File systems on the served drive: which, how large at least, made by what.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use super::{MountError, slot};
use crate::tools::{BLKID, MOUNT, Tool};

const MIB: u64 = 1 << 20;

/// A file system that a drive can be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// ext4.
    Ext4,
    /// XFS.
    Xfs,
    /// Btrfs.
    Btrfs,
}

impl FileSystem {
    /// All of them.
    pub const ALL: [FileSystem; 3] = [FileSystem::Ext4, FileSystem::Xfs, FileSystem::Btrfs];

    /// The name that the kernel knows it by.
    pub fn name(self) -> &'static str {
        match self {
            FileSystem::Ext4 => "ext4",
            FileSystem::Xfs => "xfs",
            FileSystem::Btrfs => "btrfs",
        }
    }

    /// The least capacity that its mkfs takes, in bytes.
    pub fn bytes_min(self) -> u64 {
        match self {
            FileSystem::Ext4 => 2 * MIB,
            // mkfs.xfs 5.19 and later.
            FileSystem::Xfs => 300 * MIB,
            // mkfs.btrfs 6.2 with its default profiles says 114,294,784 bytes.
            FileSystem::Btrfs => 109 * MIB,
        }
    }

    fn maker(self) -> Tool {
        match self {
            FileSystem::Ext4 => Tool { name: "mkfs.ext4", package: "e2fsprogs" },
            FileSystem::Xfs => Tool { name: "mkfs.xfs", package: "xfsprogs" },
            FileSystem::Btrfs => Tool { name: "mkfs.btrfs", package: "btrfs-progs" },
        }
    }

    /// Refuses a drive that is too small and a machine without its tools, before anything is done.
    pub(super) fn check(self, bytes: u64) -> Result<(), MountError> {
        if bytes < self.bytes_min() {
            return Err(MountError::TooSmall { file_system: self, bytes, least: self.bytes_min() });
        }
        self.maker().find()?;
        Ok(())
    }

    pub(super) fn make(self, device: &Path, patience: Duration) -> Result<(), MountError> {
        let mut arguments = vec!["-q"];
        if self == FileSystem::Ext4 {
            // Nothing is left for the kernel to write in the background of a measurement.
            arguments.extend(["-E", "lazy_itable_init=0,lazy_journal_init=0"]);
        }
        let mut arguments: Vec<&OsStr> = arguments.into_iter().map(OsStr::new).collect();
        arguments.push(device.as_os_str());
        let made = self.maker().must(&arguments, patience);
        made.map(|_| ()).map_err(|error| match slot::left() {
            Ok(left) if self == FileSystem::Btrfs && !left.is_empty() => MountError::Left { error, left },
            _ => error.into(),
        })
    }
}

impl fmt::Display for FileSystem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A text names no file system that can be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown file system \"{0}\": expected ext4, xfs or btrfs")]
pub struct UnknownFileSystem(pub String);

impl FromStr for FileSystem {
    type Err = UnknownFileSystem;

    fn from_str(text: &str) -> Result<FileSystem, UnknownFileSystem> {
        let found = FileSystem::ALL.into_iter().find(|file_system| file_system.name() == text);
        found.ok_or_else(|| UnknownFileSystem(text.to_string()))
    }
}

/// What a device holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing that anybody knows.
    Nothing,
    /// A file system or another content with a name, such as `LVM2_member`.
    Named(String),
}

/// Looks at what a device holds.
pub(super) fn probe(device: &Path, patience: Duration) -> Result<Found, MountError> {
    // blkid says "nothing" of a device that cannot be read, and then a file system would be made over one.
    read_ends(device).map_err(|source| MountError::Unreadable { device: device.to_owned(), source })?;
    let arguments = ["-p", "-o", "export"].map(OsStr::new);
    let output = BLKID.run(arguments.into_iter().chain([device.as_os_str()]), patience)?;
    match output.code {
        Some(0) => Ok(found_in(&output.text)),
        Some(2) => Ok(Found::Nothing),
        Some(8) => Ok(Found::Named("several signatures".to_owned())),
        _ => Err(BLKID.failed(&output).into()),
    }
}

fn found_in(text: &str) -> Found {
    let value = |key| text.lines().find_map(|line| line.strip_prefix(key));
    match (value("TYPE="), value("PTTYPE=")) {
        (Some(kind), _) => Found::Named(kind.to_owned()),
        (None, Some(table)) => Found::Named(format!("{table} partition table")),
        (None, None) => Found::Nothing,
    }
}

/// Reads where signatures are.
fn read_ends(device: &Path) -> io::Result<()> {
    let mut file = File::open(device)?;
    let bytes = file.seek(SeekFrom::End(0))?;
    let mut buffer = Vec::new();
    for from in [0, bytes.saturating_sub(2 * MIB)] {
        file.seek(SeekFrom::Start(from))?;
        buffer.clear();
        (&file).take(2 * MIB).read_to_end(&mut buffer)?;
    }
    Ok(())
}

pub(super) fn mount(
    kind: &str,
    options: Option<&str>,
    device: &Path,
    mountpoint: &Path,
    patience: Duration,
) -> Result<(), MountError> {
    let mut arguments = vec![OsStr::new("-t"), OsStr::new(kind)];
    if let Some(options) = options {
        arguments.extend([OsStr::new("-o"), OsStr::new(options)]);
    }
    arguments.extend([device.as_os_str(), mountpoint.as_os_str()]);
    MOUNT.must(&arguments, patience)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_are_known_by_name() {
        for file_system in FileSystem::ALL {
            assert_eq!(file_system.name().parse(), Ok(file_system));
        }
        assert!("ntfs".parse::<FileSystem>().expect_err("unknown").to_string().contains("ext4, xfs or btrfs"));
    }

    #[test]
    fn what_blkid_says_is_understood() {
        assert_eq!(found_in("DEVNAME=/dev/loop0\nUUID=1\nTYPE=xfs\n"), Found::Named("xfs".to_owned()));
        assert_eq!(found_in("DEVNAME=x\nPTTYPE=gpt\n"), Found::Named("gpt partition table".to_owned()));
        assert_eq!(found_in("DEVNAME=x\n"), Found::Nothing);
    }
}

//! The private directory of one mount: where its file is served, who serves it, and the lock that says whether the
//! server lives.
//!
//! ```text
//! /run/ssdlab/              root; others $XDG_RUNTIME_DIR/ssdlab, else /tmp/ssdlab-UID; mode 0700
//!   mnt-drive/              one mountpoint, /mnt/drive
//!     lock                  locked while its server lives: the kernel lets go of it when the process is killed
//!     mount.json            what is served, for the process that takes it down
//!     fuse/drive            the drive as a file
//! ```

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::{Deserialize, Serialize};

use super::MountError;

const NAME_BYTES_MAX: usize = 200;

/// What is written about a mount for the process that takes it down.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Record {
    /// The layout of this file.
    pub(super) version: u32,
    /// Who serves it.
    pub(super) pid: u32,
    /// What is served.
    pub(super) description: String,
    pub(super) mountpoint: PathBuf,
    /// Where the FUSE file system is mounted: in the slot, or the mountpoint where that is all there is.
    pub(super) fuse_directory: PathBuf,
}

pub(super) const RECORD_VERSION: u32 = 1;

/// A locked slot.
pub(super) struct Slot {
    directory: PathBuf,
    lock: File,
}

fn broken(path: &Path) -> impl FnOnce(io::Error) -> MountError {
    let path = path.to_owned();
    move |source| MountError::State { path, source }
}

/// Where the slots of the calling user are.
fn base() -> PathBuf {
    let user = rustix::process::geteuid();
    if user.is_root() {
        return PathBuf::from("/run/ssdlab");
    }
    match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from) {
        Some(directory) if directory.is_absolute() => directory.join("ssdlab"),
        _ => std::env::temp_dir().join(format!("ssdlab-{}", user.as_raw())),
    }
}

/// A directory that is the user's alone, also where others could have made it first.
fn make_private(directory: &Path) -> Result<(), MountError> {
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(broken(directory)(error)),
        _ => {}
    }
    let found = fs::symlink_metadata(directory).map_err(broken(directory))?;
    if found.is_dir() && found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o077 == 0 {
        Ok(())
    } else {
        Err(MountError::NotPrivate { path: directory.to_owned() })
    }
}

/// `/mnt/my drive` is `mnt-my\x20drive`.
fn slot_name(mountpoint: &Path) -> Result<String, MountError> {
    let mut name = String::new();
    for &byte in mountpoint.as_os_str().as_bytes().iter().skip_while(|byte| **byte == b'/') {
        match byte {
            b'/' => name.push('-'),
            b'.' if name.is_empty() => name.push_str("\\x2e"),
            b'.' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => name.push(char::from(byte)),
            _ => name.push_str(&format!("\\x{byte:02x}")),
        }
    }
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(MountError::Mountpoint {
            path: mountpoint.to_owned(),
            problem: "its name is empty or too long".to_owned(),
        });
    }
    Ok(name)
}

fn lock_now(file: &File) -> io::Result<bool> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Whether a path still names the open file: who leaves removes the lock's file while others may wait for it.
fn is_still(path: &Path, file: &File) -> io::Result<bool> {
    match (fs::symlink_metadata(path), file.metadata()?) {
        (Ok(named), open) => Ok((named.dev(), named.ino()) == (open.dev(), open.ino())),
        (Err(error), _) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        (Err(error), _) => Err(error),
    }
}

impl Slot {
    /// Takes the slot of a mountpoint, or says that it is taken.
    pub(super) fn take(mountpoint: &Path) -> Result<Slot, MountError> {
        let base = base();
        make_private(&base)?;
        let directory = base.join(slot_name(mountpoint)?);
        loop {
            make_private(&directory)?;
            let path = directory.join("lock");
            let lock = match File::options().create(true).truncate(false).write(true).open(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                result => result.map_err(broken(&path))?,
            };
            if !lock_now(&lock).map_err(broken(&path))? {
                let pid = read_record(&directory)?.map_or(0, |record| record.pid);
                return Err(MountError::AlreadyServed { mountpoint: mountpoint.to_owned(), pid });
            }
            if is_still(&path, &lock).map_err(broken(&path))? {
                return Ok(Slot { directory, lock });
            }
        }
    }

    /// What an earlier server left here, or this one has written.
    pub(super) fn record(&self) -> Result<Option<Record>, MountError> {
        read_record(&self.directory)
    }

    /// Writes what is served; whole or not at all.
    pub(super) fn write(&self, record: &Record) -> Result<(), MountError> {
        let path = self.directory.join("mount.json");
        let new = self.directory.join("mount.json.new");
        let text = serde_json::to_vec_pretty(record).map_err(|error| broken(&path)(error.into()))?;
        fs::write(&new, text).map_err(broken(&new))?;
        fs::rename(&new, &path).map_err(broken(&path))
    }

    /// Where the file is served when it is not the end of it.
    pub(super) fn fuse_directory(&self) -> Result<PathBuf, MountError> {
        let directory = self.directory.join("fuse");
        make_private(&directory)?;
        Ok(directory)
    }

    /// Leaves nothing behind. Everything must be unmounted.
    pub(super) fn remove(self) -> Result<(), MountError> {
        let Slot { directory, lock } = self;
        remove_files(&directory)?;
        drop(lock);
        Ok(())
    }
}

fn remove_files(directory: &Path) -> Result<(), MountError> {
    let gone = |path: &Path, result: io::Result<()>| match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(broken(path)(error)),
        _ => Ok(()),
    };
    let fuse = directory.join("fuse");
    gone(&fuse, fs::remove_dir(&fuse))?;
    for name in ["mount.json", "mount.json.new", "lock"] {
        let path = directory.join(name);
        gone(&path, fs::remove_file(&path))?;
    }
    // Another process may have begun to use it.
    let _ = fs::remove_dir(directory);
    Ok(())
}

fn read_record(directory: &Path) -> Result<Option<Record>, MountError> {
    let path = directory.join("mount.json");
    let text = match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        result => result.map_err(broken(&path))?,
    };
    let record: Record = serde_json::from_slice(&text).map_err(|error| broken(&path)(error.into()))?;
    if record.version != RECORD_VERSION {
        let message = format!("layout {}, and this program knows {RECORD_VERSION}", record.version);
        return Err(broken(&path)(io::Error::other(message)));
    }
    Ok(Some(record))
}

/// The mountpoints of file systems that dead servers of the calling user have left, by name: [`take_down`](super::take_down) takes them
/// down.
///
/// # Errors
/// The state of mounts cannot be read ([`MountError::State`]).
pub fn left() -> Result<Vec<PathBuf>, MountError> {
    let base = base();
    let slots = match fs::read_dir(&base) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        result => result.map_err(broken(&base))?,
    };
    let mut mountpoints = Vec::new();
    for slot in slots {
        let directory = slot.map_err(broken(&base))?.path();
        let Some(seen) = Seen::in_slot(directory)? else { continue };
        // A file alone has no loop device over it.
        if seen.record.fuse_directory != seen.record.mountpoint && seen.is_left()? {
            mountpoints.push(seen.record.mountpoint);
        }
    }
    mountpoints.sort();
    Ok(mountpoints)
}

/// Waits until a process has ended, with all its threads. Whether that came in time.
fn ends_by(process: &OwnedFd, deadline: Instant) -> io::Result<bool> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).ok();
        match poll(&mut [PollFd::new(process, PollFlags::IN)], timeout.as_ref()) {
            Err(Errno::INTR) => {}
            result => return Ok(result? > 0),
        }
    }
}

/// The slot of a mountpoint as a process that does not hold it sees it.
pub(super) struct Seen {
    directory: PathBuf,
    lock: File,
    pub(super) record: Record,
    /// The process that serves it, unless it is the caller or the kernel cannot say.
    server: Option<OwnedFd>,
}

impl Seen {
    /// Looks at the slot of a mountpoint; none if nothing is served there and nothing was left.
    pub(super) fn look(mountpoint: &Path) -> Result<Option<Seen>, MountError> {
        Seen::in_slot(base().join(slot_name(mountpoint)?))
    }

    fn in_slot(directory: PathBuf) -> Result<Option<Seen>, MountError> {
        let path = directory.join("lock");
        let lock = match File::options().write(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            result => result.map_err(broken(&path))?,
        };
        let Some(record) = read_record(&directory)? else {
            return Ok(None);
        };
        let pid = i32::try_from(record.pid).ok().filter(|_| record.pid != std::process::id()).and_then(Pid::from_raw);
        let server = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let mut seen = Seen { directory, lock, record, server };
        // A process that has the id of a dead server is another one. A lock still held is the server's.
        if seen.is_left()? {
            seen.server = None;
        }
        Ok(Some(seen))
    }

    /// Whether its server is gone; then the slot is the caller's.
    pub(super) fn is_left(&self) -> Result<bool, MountError> {
        lock_now(&self.lock).map_err(broken(&self.directory))
    }

    /// Waits until the server has ended and nothing is left of it. Whether that came in time.
    pub(super) fn wait(self, patience: Duration) -> Result<bool, MountError> {
        let deadline = Instant::now() + patience;
        while !self.is_left()? {
            if Instant::now() >= deadline {
                return Ok(false);
            }
            thread::sleep(Duration::from_millis(10));
        }
        // The server lets go of its lock before its last threads end.
        if let Some(server) = &self.server
            && !ends_by(server, deadline).map_err(broken(&self.directory))?
        {
            return Ok(false);
        }
        if is_still(&self.directory.join("lock"), &self.lock).map_err(broken(&self.directory))? {
            remove_files(&self.directory)?;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_named_after_their_mountpoints() {
        let name = |path: &str| slot_name(Path::new(path)).expect("a name");
        assert_eq!(name("/mnt/drive"), "mnt-drive");
        assert_eq!(name("/mnt/my-drive 1"), "mnt-my\\x2ddrive\\x201");
        assert_ne!(name("/mnt/a-b"), name("/mnt/a/b"));
        assert_eq!(name("/../x"), "\\x2e.-x");
        assert!(slot_name(Path::new("/")).is_err());
        assert!(slot_name(Path::new(&"/x".repeat(200))).is_err());
    }

    #[test]
    fn a_slot_is_taken_once_until_it_is_left() {
        let mountpoint = PathBuf::from(format!("/test/of a slot/{}", std::process::id()));
        let slot = Slot::take(&mountpoint).expect("free");
        let record = |pid| Record {
            version: RECORD_VERSION,
            pid,
            description: String::new(),
            mountpoint: mountpoint.clone(),
            fuse_directory: PathBuf::from("/nowhere"),
        };
        assert!(slot.record().expect("readable").is_none());
        slot.write(&record(17)).expect("written");
        assert!(matches!(Slot::take(&mountpoint), Err(MountError::AlreadyServed { pid: 17, .. })));
        let seen = Seen::look(&mountpoint).expect("readable").expect("there");
        assert!(!seen.is_left().expect("lockable"));
        // As when its process is killed: the lock goes, the record stays.
        drop(slot);
        assert!(seen.is_left().expect("lockable"));
        assert!(!left().expect("readable").contains(&mountpoint), "the looker has it now");
        assert!(matches!(Slot::take(&mountpoint), Err(MountError::AlreadyServed { .. })), "the looker has it now");
        drop(seen);
        assert!(left().expect("readable").contains(&mountpoint));
        let slot = Slot::take(&mountpoint).expect("left");
        assert_eq!(slot.record().expect("readable").expect("left").pid, 17);
        slot.remove().expect("removed");
        assert!(Seen::look(&mountpoint).expect("readable").is_none());
    }
}

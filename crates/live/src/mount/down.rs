//! Taking down: the file system, then the loop device, then the file; each needs the one below it to end well.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::slot::{Record, Seen};
use super::{MountError, kernel};
use crate::fuse::{BUSY_PATIENCE, FILE_NAME, SOURCE_NAME, unmount};
use crate::tools::{LOSETUP, UMOUNT};

/// How a mount was taken down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Down {
    /// Its server, the process with this id, has ended.
    Served(u32),
    /// Its server was dead; what it left is gone.
    Left,
}

/// Takes down what is mounted on a mountpoint, from any process of the same user, and waits for the server's end.
///
/// With [`MountError::Busy`] it is still mounted and served. What a killed server left is taken down even if it is in
/// use: who uses it gets only errors.
pub fn take_down(mountpoint: &Path, patience: Duration) -> Result<Down, MountError> {
    let (mountpoint, seen) = found(mountpoint)?;
    let is_left = seen.is_left()?;
    dismantle(&seen.record, is_left, patience)?;
    let pid = seen.record.pid;
    if !seen.wait(patience)? {
        return Err(MountError::StillServing { mountpoint, pid });
    }
    Ok(if is_left { Down::Left } else { Down::Served(pid) })
}

/// The slot of a mountpoint, whose directory may have been removed since.
fn found(mountpoint: &Path) -> Result<(PathBuf, Seen), MountError> {
    match super::resolve(mountpoint) {
        Ok(mountpoint) => match Seen::look(&mountpoint)? {
            Some(seen) => Ok((mountpoint, seen)),
            None => Err(MountError::NotServed { mountpoint }),
        },
        Err(error) => {
            let Ok(named) = std::path::absolute(mountpoint) else { return Err(error) };
            let seen = Seen::look(&named)?.ok_or(error)?;
            Ok((named, seen))
        }
    }
}

/// Undoes every step of a mount that was done, by what the kernel says is there. By force: also what is in use.
pub(super) fn dismantle(record: &Record, by_force: bool, patience: Duration) -> Result<(), MountError> {
    for device in kernel::loop_devices_over(&record.fuse_directory.join(FILE_NAME))? {
        // A file system may be mounted on several places.
        for place in mounted(&device)?.into_iter().rev() {
            unmount_file_system(&place, &device, by_force, patience)?;
        }
        detach(&device, record, by_force, patience)?;
    }
    let is_ours = |mount: &kernel::MountLine| {
        mount.mountpoint == record.fuse_directory && mount.kind == b"fuse" && mount.source == Path::new(SOURCE_NAME)
    };
    // Once: what a lazy unmount leaves is not in the table any more.
    if kernel::mounts()?.iter().any(is_ours) {
        unmount(&record.fuse_directory, by_force)?;
    }
    Ok(())
}

fn mounted(device: &Path) -> Result<Vec<PathBuf>, MountError> {
    let mounts = kernel::mounts()?.into_iter().filter(|mount| mount.source == device);
    Ok(mounts.map(|mount| mount.mountpoint).collect())
}

fn unmount_file_system(place: &Path, device: &Path, by_force: bool, patience: Duration) -> Result<(), MountError> {
    // A process that looks at the mounts, or was about to start a program when a file was open, is soon done with it.
    let deadline = Instant::now() + BUSY_PATIENCE;
    loop {
        // Names as they are: looking at a dead file system fails.
        let output = UMOUNT.run(["-i", "-c"].map(OsStr::new).into_iter().chain([place.as_os_str()]), patience)?;
        if output.code == Some(0) || !mounted(device)?.iter().any(|other| other == place) {
            return Ok(());
        }
        if !output.errors.contains("busy") {
            return Err(UMOUNT.failed(&output).into());
        }
        if Instant::now() >= deadline {
            break;
        }
        thread::sleep(Duration::from_millis(20));
    }
    if !by_force {
        return Err(MountError::Busy { path: place.to_owned() });
    }
    UMOUNT.must(&[OsStr::new("-i"), OsStr::new("-c"), OsStr::new("-l"), place.as_os_str()], patience)?;
    Ok(())
}

/// Detaches a loop device. The kernel does it when the last user is gone: a moment later where programs such as udev's
/// look at it.
fn detach(device: &Path, record: &Record, by_force: bool, patience: Duration) -> Result<(), MountError> {
    let file = record.fuse_directory.join(FILE_NAME);
    let is_over = || kernel::backing_file(device).is_none_or(|backing| backing != file);
    let output = LOSETUP.run([OsStr::new("-d"), device.as_os_str()], patience)?;
    if output.code != Some(0) && !is_over() {
        return Err(LOSETUP.failed(&output).into());
    }
    let deadline = Instant::now() + patience.min(Duration::from_secs(if by_force { 2 } else { 30 }));
    while !is_over() {
        if Instant::now() >= deadline {
            return if by_force { Ok(()) } else { Err(MountError::Busy { path: device.to_owned() }) };
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

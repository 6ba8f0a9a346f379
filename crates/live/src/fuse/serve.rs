//! The file's life, from mounting to unmounting.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fuser::{Config, MountOption, Session, SessionACL};
use rustix::io::Errno;
use rustix::mount::UnmountFlags;

use super::filesystem::DriveDirectory;
use super::{FILE_NAME, SOURCE_NAME};
use crate::Target;
use crate::tools::{FUSERMOUNT, ToolError};

const DEVICE: &str = "/dev/fuse";

/// How long what is in use is tried again.
pub(crate) const BUSY_PATIENCE: Duration = Duration::from_secs(2);

/// Why a drive could not be served as a file, or the file not taken away.
#[derive(Debug, thiserror::Error)]
pub enum FuseError {
    /// The kernel offers no FUSE.
    #[error("{DEVICE} is missing: this kernel or container offers no FUSE (try `modprobe fuse`)")]
    NoDevice,
    /// The user may not use FUSE.
    #[error("{DEVICE} may not be opened by this user: {0}")]
    Device(#[source] io::Error),
    /// A program is missing or failed.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// The mount was refused.
    #[error("cannot mount a FUSE file system on {}: {source}", directory.display())]
    Mount {
        /// Where it was to be mounted.
        directory: PathBuf,
        /// Why it was refused.
        source: io::Error,
    },
    /// The file is in use.
    #[error("{} is in use: close what uses it (`fuser -vm {}` lists it)", directory.display(), directory.display())]
    Busy {
        /// Where the file is served.
        directory: PathBuf,
    },
    /// The file system could not be unmounted.
    #[error("cannot unmount {}: {source}", directory.display())]
    Unmount {
        /// Where the file is served.
        directory: PathBuf,
        /// Why it could not.
        source: io::Error,
    },
}

/// What a thread that waits for the end of the serving waits for.
#[derive(Default)]
pub(crate) struct End {
    state: Mutex<EndState>,
    changed: Condvar,
}

#[derive(Default)]
struct EndState {
    /// The session with the kernel is over.
    ended: bool,
    /// The end was asked for in this process.
    asked: bool,
}

impl End {
    fn state(&self) -> MutexGuard<'_, EndState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_ended(&self) {
        self.state().ended = true;
        self.changed.notify_all();
    }

    pub(crate) fn ask(&self) {
        self.state().asked = true;
        self.changed.notify_all();
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.state().ended
    }

    fn wait_ended(&self, patience: Duration) -> bool {
        let waited = self.changed.wait_timeout_while(self.state(), patience, |state| !state.ended);
        waited.unwrap_or_else(PoisonError::into_inner).0.ended
    }

    /// Waits until it has ended or is asked to; the request is taken, so that the next wait waits for another.
    pub(crate) fn wait(&self) {
        let waited = self.changed.wait_while(self.state(), |state| !state.ended && !state.asked);
        waited.unwrap_or_else(PoisonError::into_inner).asked = false;
    }
}

/// A drive that is served as a file.
///
/// Dropped, the file disappears from its directory at once; who has it open gets errors.
pub struct FuseFile {
    directory: PathBuf,
    thread: Option<JoinHandle<io::Result<()>>>,
    end: Arc<End>,
}

impl FuseFile {
    /// Serves a target as `directory/drive`. The directory must exist; what it holds is hidden meanwhile. Only the
    /// calling user (and what the kernel does on the user's behalf) has access.
    ///
    /// `threads` take requests from the kernel, at least one; one alone where the target takes appends.
    pub fn serve(target: Arc<dyn Target>, directory: &Path, threads: usize) -> Result<FuseFile, FuseError> {
        check_device()?;
        if !rustix::process::geteuid().is_root() {
            FUSERMOUNT.find()?;
        }
        let mount_error = |source| FuseError::Mount { directory: directory.to_owned(), source };
        let directory = directory.canonicalize().map_err(mount_error)?;
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName(SOURCE_NAME.to_owned()),
            MountOption::NoSuid,
            MountOption::NoDev,
            MountOption::NoExec,
            MountOption::NoAtime,
        ];
        config.acl = SessionACL::Owner;
        // Commands of a segment count in the order in which they come from the kernel.
        config.n_threads = Some(if target.appends().is_some() { 1 } else { threads.max(1) });
        config.clone_fd = true;
        let filesystem = DriveDirectory::new(target).map_err(mount_error)?;
        let session = Session::new(filesystem, &directory, &config).map_err(mount_error)?;
        let end = Arc::new(End::default());
        let at_end = Arc::clone(&end);
        let run = move || {
            let result = session.run();
            at_end.set_ended();
            result
        };
        let thread = thread::Builder::new().name("fuse".to_owned()).spawn(run).map_err(mount_error)?;
        Ok(FuseFile { directory, thread: Some(thread), end })
    }

    /// The file.
    pub fn path(&self) -> PathBuf {
        self.directory.join(FILE_NAME)
    }

    /// Waits until the file is unmounted, no matter by which process.
    pub fn wait(&self) {
        self.end.wait();
    }

    pub(crate) fn end(&self) -> Arc<End> {
        Arc::clone(&self.end)
    }

    /// Takes the file away: with an error, such as [`FuseError::Busy`], by force, as dropping it does.
    pub fn unmount(mut self) -> Result<(), FuseError> {
        self.try_unmount()
    }

    pub(crate) fn try_unmount(&mut self) -> Result<(), FuseError> {
        if !self.end.is_ended() {
            unmount(&self.directory, false)?;
        }
        self.join();
        Ok(())
    }

    /// What a helper program unmounted by force lives until its last user is gone: that is not waited for.
    fn join(&mut self) {
        let thread = self.thread.take();
        if let Some(thread) = thread.filter(|_| self.end.wait_ended(Duration::from_secs(2))) {
            // What a session ends with says only that it ended.
            let _ = thread.join();
        }
    }
}

impl Drop for FuseFile {
    fn drop(&mut self) {
        if self.thread.is_some() && !self.end.is_ended() {
            let _ = unmount(&self.directory, true);
        }
        self.join();
    }
}

fn check_device() -> Result<(), FuseError> {
    match std::fs::File::options().read(true).write(true).open(DEVICE) {
        Ok(_) => Ok(()),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound) => Err(FuseError::NoDevice),
        Err(error) if Errno::from_io_error(&error) == Some(Errno::NODEV) => Err(FuseError::NoDevice),
        Err(error) => Err(FuseError::Device(error)),
    }
}

/// Unmounts what is served in a directory, also when its server is dead; by force also when it is in use.
pub(crate) fn unmount(directory: &Path, by_force: bool) -> Result<(), FuseError> {
    // Force ends the connection: who waits for an answer gets an error, which also frees a process that serves itself.
    let flags = if by_force { UnmountFlags::DETACH | UnmountFlags::FORCE } else { UnmountFlags::empty() };
    // A process that looks at the mounts, such as udev's, holds the directory for a moment.
    let deadline = Instant::now() + BUSY_PATIENCE;
    loop {
        let error = match rustix::mount::unmount(directory, flags | UnmountFlags::NOFOLLOW) {
            // Not mounted any more: another unmount was faster.
            Ok(()) | Err(Errno::INVAL) => return Ok(()),
            Err(error) => error,
        };
        match error {
            Errno::BUSY if Instant::now() < deadline => thread::sleep(Duration::from_millis(20)),
            Errno::BUSY => return Err(FuseError::Busy { directory: directory.to_owned() }),
            Errno::PERM => return unmount_by_helper(directory, by_force),
            error => return Err(FuseError::Unmount { directory: directory.to_owned(), source: error.into() }),
        }
    }
}

/// Users other than root unmount through the program that may.
fn unmount_by_helper(directory: &Path, by_force: bool) -> Result<(), FuseError> {
    let flags: &[&str] = if by_force { &["-u", "-z", "--"] } else { &["-u", "--"] };
    let arguments = flags.iter().map(AsRef::as_ref).chain([directory.as_os_str()]);
    let output = FUSERMOUNT.run(arguments, Duration::from_secs(60))?;
    if output.code == Some(0) {
        Ok(())
    } else if output.errors.contains("busy") {
        Err(FuseError::Busy { directory: directory.to_owned() })
    } else {
        Err(FUSERMOUNT.failed(&output).into())
    }
}

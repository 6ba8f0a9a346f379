//! From a target to a mounted file system in one call, and back in another.
//!
//! ```text
//! /mnt/drive            mount     ext4, xfs or btrfs; made when the drive holds nothing
//! /dev/loop0            losetup   direct I/O, sectors of 512 or 4096 bytes
//! /run/ssdlab/.../drive FUSE      the drive as one file
//! Target                          this process
//! ```
//!
//! It goes up from below and comes down from above; what went up is always found from what the kernel says is there, so
//! a server that was killed at any step can be taken down by the next one, or by [`take_down`]. Users other than root
//! get the file alone, on the mountpoint itself.

mod down;
mod file_system;
mod kernel;
mod protect;
mod slot;

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::thread::CapabilitySet;

pub use down::{Down, take_down};
pub use file_system::{FileSystem, UnknownFileSystem};
pub use protect::{Protection, protect_process};
pub use slot::left;

use crate::Target;
use crate::fuse::{End, FuseError, FuseFile};
use crate::tools::{BLKID, LOSETUP, MOUNT, ToolError, UMOUNT};
use file_system::Found;
use slot::{RECORD_VERSION, Record, Slot};

/// What is to be mounted, and where.
#[derive(Clone, Debug)]
pub struct Options {
    /// An existing directory.
    pub mountpoint: PathBuf,
    /// The file system to make when the drive holds none. A drive that holds another is refused.
    pub file_system: Option<FileSystem>,
    /// Bytes in a sector of the loop device, 512 or 4096.
    pub sector_bytes: u32,
    /// Options for mount(8), as after `-o`.
    pub mount_options: Option<String>,
    /// Where the drive's contents are kept, which must not be on the drive.
    pub image: Option<PathBuf>,
    /// Stop at the FUSE file, also where more is possible.
    pub file_only: bool,
    /// Threads that take requests from the kernel.
    pub threads: usize,
    /// How long a step may take: a mkfs that waits for the modelled drive can take minutes.
    pub patience: Duration,
}

impl Options {
    /// A mount of what the drive holds, with sectors of 512 bytes.
    pub fn new(mountpoint: impl Into<PathBuf>) -> Options {
        Options {
            mountpoint: mountpoint.into(),
            file_system: None,
            sector_bytes: 512,
            mount_options: None,
            image: None,
            file_only: false,
            threads: std::thread::available_parallelism().map_or(2, |cores| cores.get().clamp(2, 4)),
            patience: Duration::from_secs(600),
        }
    }
}

/// Why a drive was not mounted or not taken down.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// A sector size that loop devices or the drive do not have.
    #[error("sectors of {found} bytes: expected 512 or 4096, and the drive's {bytes} bytes must be a multiple")]
    Sector {
        /// The size asked for.
        found: u32,
        /// The drive's capacity in bytes.
        bytes: u64,
    },
    /// The mountpoint cannot be used.
    #[error("mountpoint {}: {problem}", path.display())]
    Mountpoint {
        /// The mountpoint.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The image would lie on its own drive, or under it.
    #[error("image {} and mountpoint {} lie within each other: a drive cannot keep its own contents",
        image.display(), mountpoint.display())]
    ImageInside {
        /// Where the drive's contents are kept.
        image: PathBuf,
        /// The mountpoint.
        mountpoint: PathBuf,
    },
    /// Another server has this mountpoint.
    #[error("{} is served by process {pid}; `ssdlab mount --down {}` ends it",
        mountpoint.display(), mountpoint.display())]
    AlreadyServed {
        /// The mountpoint.
        mountpoint: PathBuf,
        /// The server's process id.
        pid: u32,
    },
    /// There is nothing to take down.
    #[error("nothing is served on {}, and no dead server left anything there", mountpoint.display())]
    NotServed {
        /// The mountpoint.
        mountpoint: PathBuf,
    },
    /// Everything is unmounted, but the server's process lives on.
    #[error("{} is unmounted, but its server, process {pid}, has not ended", mountpoint.display())]
    StillServing {
        /// The mountpoint.
        mountpoint: PathBuf,
        /// The server's process id.
        pid: u32,
    },
    /// The drive is smaller than the file system can be.
    #[error("a drive of {} MiB is too small for {file_system}, which needs {} MiB", bytes >> 20, least >> 20)]
    TooSmall {
        /// The file system asked for.
        file_system: FileSystem,
        /// The drive's capacity in bytes.
        bytes: u64,
        /// What the file system needs, in bytes.
        least: u64,
    },
    /// The drive takes appends to segments alone, and more than the file was asked for.
    #[error(
        "the drive accepts only appends to its segments: a file system needs the layer 'append' above it \
        (docs/host.md); with `--file` and without `--fs`, the drive is mounted as a file without a file system"
    )]
    AppendsOnly,
    /// The drive holds no file system, and none was asked for.
    #[error("the drive holds no file system: `--fs ext4`, `--fs xfs` or `--fs btrfs` makes one")]
    NoFileSystem,
    /// The drive holds something else than what was asked for, and is left as it is.
    #[error("the drive holds {found}, not {asked}: it is left as it is")]
    OtherFileSystem {
        /// What is on the drive.
        found: String,
        /// What was asked for.
        asked: FileSystem,
    },
    /// The drive cannot be read.
    #[error("cannot read {}: {source}", device.display())]
    Unreadable {
        /// The loop device.
        device: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It is in use.
    #[error("{} is in use: close what uses it (`fuser -vm {}` lists it)", path.display(), path.display())]
    Busy {
        /// What is in use: a mountpoint or a loop device.
        path: PathBuf,
    },
    /// The directory for the state of mounts is open to others.
    #[error("{} must be a directory of this user's with mode 0700", path.display())]
    NotPrivate {
        /// The directory.
        path: PathBuf,
    },
    /// The state of mounts cannot be kept or read.
    #[error("{}: {source}", path.display())]
    State {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong with it.
        source: io::Error,
    },
    /// The kernel's tables cannot be read.
    #[error("cannot read what is mounted: {0}")]
    Kernel(#[from] io::Error),
    /// The FUSE file failed.
    #[error(transparent)]
    Fuse(#[from] FuseError),
    /// mkfs.btrfs looks at every mounted loop device of the machine, and fails on one whose file is dead.
    #[error(
        "{error}\nmkfs.btrfs fails while a dead server's file system is mounted anywhere; take it down: {}",
        commands(left)
    )]
    Left {
        /// What mkfs.btrfs said.
        error: ToolError,
        /// The mountpoints of dead servers.
        left: Vec<PathBuf>,
    },
    /// A program is missing or failed.
    #[error(transparent)]
    Tool(#[from] ToolError),
}

/// The commands that take mounts down.
fn commands(mountpoints: &[PathBuf]) -> String {
    let commands = mountpoints.iter().map(|mountpoint| format!("`ssdlab mount --down '{}'`", mountpoint.display()));
    commands.collect::<Vec<_>>().join(", ")
}

/// What was mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The drive as a file.
    pub file: PathBuf,
    /// The drive as a block device.
    pub device: Option<PathBuf>,
    /// The file system's kind.
    pub file_system: Option<String>,
    /// Whether the file system was made just now.
    pub made: bool,
    /// What the user should know: why it stopped at the file, what a dead server had left.
    pub notes: Vec<String>,
}

/// A drive that is served and, where possible, mounted.
///
/// Dropped, it is taken down, by force if need be.
pub struct Mounted {
    slot: Option<Slot>,
    record: Record,
    file: Option<FuseFile>,
    report: Report,
    patience: Duration,
}

/// Ends [`Mounted::wait`], from a signal handler for instance.
#[derive(Clone)]
pub struct Stopper(Arc<End>);

impl Stopper {
    /// Lets the wait end.
    pub fn stop(&self) {
        self.0.ask();
    }
}

/// Serves a target and mounts it. Whatever an earlier server of this mountpoint left is taken down first; after an
/// error nothing is left of this one.
///
/// The loop device needs root; without, or without loop devices, it stops at the file and says so in
/// [`Report::notes`].
pub fn mount(options: &Options, target: Arc<dyn Target>) -> Result<Mounted, MountError> {
    let bytes = target.bytes();
    if !matches!(options.sector_bytes, 512 | 4096) || !bytes.is_multiple_of(u64::from(options.sector_bytes)) {
        return Err(MountError::Sector { found: options.sector_bytes, bytes });
    }
    if target.appends().is_some() && (!options.file_only || options.file_system.is_some()) {
        return Err(MountError::AppendsOnly);
    }
    let mountpoint = resolve(&options.mountpoint)?;
    let only_file = why_only_file(options);
    if only_file.is_none() {
        for tool in [&LOSETUP, &BLKID, &MOUNT, &UMOUNT] {
            tool.find()?;
        }
        options.file_system.map_or(Ok(()), |file_system| file_system.check(bytes))?;
    }
    let slot = Slot::take(&mountpoint)?;
    let mut notes = Vec::new();
    if let Some(left) = slot.record()? {
        down::dismantle(&left, true, options.patience)?;
        notes.push(format!("took down what process {} had left on {}", left.pid, mountpoint.display()));
    }
    if let Err(error) = check_places(&mountpoint, options.image.as_deref()) {
        slot.remove()?;
        return Err(error);
    }
    let is_whole = only_file.is_none();
    notes.extend(only_file);
    let fuse_directory = if is_whole { slot.fuse_directory()? } else { mountpoint.clone() };
    let description = target.description();
    let record = Record { version: RECORD_VERSION, pid: std::process::id(), description, mountpoint, fuse_directory };
    slot.write(&record)?;
    let file = FuseFile::serve(target, &record.fuse_directory, options.threads);
    let path = record.fuse_directory.join(crate::fuse::FILE_NAME);
    let report = Report { file: path, device: None, file_system: None, made: false, notes };
    let mut mounted = Mounted { slot: Some(slot), record, file: None, report, patience: options.patience };
    mounted.file = Some(file?);
    if is_whole {
        mounted.attach(options.sector_bytes)?;
        mounted.mount_file_system(options)?;
    }
    Ok(mounted)
}

/// Why it has to stop at the file, if it has to.
fn why_only_file(options: &Options) -> Option<String> {
    let why = if options.file_only { Some("as asked") } else { why_no_loop_device() };
    why.map(|why| format!("served as a file only: {why}"))
}

/// Why there is no block device over a drive here, if there is none.
pub fn why_no_loop_device() -> Option<&'static str> {
    let allowed = rustix::thread::capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective);
    if !allowed.contains(CapabilitySet::SYS_ADMIN) {
        Some("a loop device needs root")
    } else if !Path::new("/dev/loop-control").exists() {
        Some("no loop devices here (/dev/loop-control is missing; `modprobe loop`)")
    } else {
        None
    }
}

/// The mountpoint's one name. Itself it is not looked at: what a dead server left there fails.
fn resolve(mountpoint: &Path) -> Result<PathBuf, MountError> {
    let broken = |error: io::Error| no_mountpoint(mountpoint, &error);
    let is_link = std::fs::symlink_metadata(mountpoint).is_ok_and(|found| found.is_symlink());
    let resolved = match (mountpoint.parent(), mountpoint.file_name()) {
        (Some(parent), Some(name)) if !is_link => {
            let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
            parent.canonicalize().map_err(broken)?.join(name)
        }
        _ => mountpoint.canonicalize().map_err(broken)?,
    };
    match resolved.to_str() {
        Some(_) => Ok(resolved),
        None => Err(broken(io::Error::other("its name is not UTF-8"))),
    }
}

/// Refuses what cannot be a mountpoint, before there is a drive to mount. What a dead server left there can be taken down.
pub fn check_mountpoint(mountpoint: &Path) -> Result<(), MountError> {
    match is_directory(mountpoint) {
        Err(error) if error.raw_os_error() != Some(rustix::io::Errno::NOTCONN.raw_os_error()) => {
            Err(no_mountpoint(mountpoint, &error))
        }
        _ => Ok(()),
    }
}

fn is_directory(path: &Path) -> io::Result<()> {
    let is_directory = std::fs::metadata(path)?.is_dir();
    if is_directory { Ok(()) } else { Err(io::Error::other("not a directory")) }
}

fn no_mountpoint(path: &Path, error: &io::Error) -> MountError {
    MountError::Mountpoint { path: path.to_owned(), problem: error.to_string() }
}

fn check_places(mountpoint: &Path, image: Option<&Path>) -> Result<(), MountError> {
    is_directory(mountpoint).map_err(|error| no_mountpoint(mountpoint, &error))?;
    let Some(image) = image else { return Ok(()) };
    let image = image.canonicalize().map_err(|source| MountError::State { path: image.to_owned(), source })?;
    if image.starts_with(mountpoint) || mountpoint.starts_with(&image) {
        return Err(MountError::ImageInside { image, mountpoint: mountpoint.to_owned() });
    }
    Ok(())
}

impl Mounted {
    /// What was mounted.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// What ends [`Mounted::wait`] from elsewhere in this process; none when it is taken down.
    pub fn stopper(&self) -> Option<Stopper> {
        self.file.as_ref().map(|file| Stopper(file.end()))
    }

    /// Waits until a [`Stopper`] says so or the file is unmounted, which [`take_down`] in another process does.
    pub fn wait(&self) {
        if let Some(file) = &self.file {
            file.wait();
        }
    }

    /// Unmounts the file system, detaches the loop device, unmounts the file. What was written is at the target then;
    /// it has been flushed by the file system.
    ///
    /// With an error ([`MountError::Busy`] above all) it is served as before, and can be taken down again.
    pub fn take_down(&mut self) -> Result<(), MountError> {
        self.go_down(false)
    }

    fn go_down(&mut self, by_force: bool) -> Result<(), MountError> {
        down::dismantle(&self.record, by_force, self.patience)?;
        if let Some(file) = &mut self.file {
            file.try_unmount()?;
        }
        self.file = None;
        self.slot.take().map_or(Ok(()), Slot::remove)
    }

    fn attach(&mut self, sector_bytes: u32) -> Result<(), MountError> {
        let sector = sector_bytes.to_string();
        let words = ["--direct-io=on", "-b", sector.as_str(), "--find", "--show"].map(OsStr::new);
        let arguments: Vec<&OsStr> = words.into_iter().chain([self.report.file.as_os_str()]).collect();
        let device = PathBuf::from(LOSETUP.must(&arguments, self.patience)?.trim());
        if !kernel::is_direct(&device) {
            let note = format!("{} caches the drive: this kernel gives it no direct I/O", device.display());
            self.report.notes.push(note);
        }
        self.report.device = Some(device);
        Ok(())
    }

    fn mount_file_system(&mut self, options: &Options) -> Result<(), MountError> {
        let Some(device) = self.report.device.clone() else { return Ok(()) };
        let kind = match (file_system::probe(&device, self.patience)?, options.file_system) {
            (Found::Nothing, None) => return Err(MountError::NoFileSystem),
            (Found::Nothing, Some(asked)) => {
                asked.make(&device, self.patience)?;
                self.report.made = true;
                asked.name().to_owned()
            }
            (Found::Named(found), Some(asked)) if found != asked.name() => {
                return Err(MountError::OtherFileSystem { found, asked });
            }
            (Found::Named(found), _) => found,
        };
        let mount_options = options.mount_options.as_deref();
        file_system::mount(&kind, mount_options, &device, &self.record.mountpoint, self.patience)?;
        self.report.file_system = Some(kind);
        Ok(())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if self.slot.is_some() && self.go_down(false).is_err() {
            let _ = self.go_down(true);
        }
    }
}

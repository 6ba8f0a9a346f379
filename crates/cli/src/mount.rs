//! `ssdlab mount`: from a drive to a mounted file system in one command, and back.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{Args, ValueEnum};
use ssdlab_live::Target;
use ssdlab_live::mount::{self, Down, FileSystem, MountError, Mounted, Options};

use crate::background::Background;
use crate::failure::Failure;
use crate::serve::{Live, Served, Wants};
use crate::stderr;
use crate::stdout::say;

/// How long `--down` waits for the server, and between two tries to take down what is in use.
const DOWN_PATIENCE: Duration = Duration::from_secs(120);
const BUSY_PAUSE: Duration = Duration::from_secs(1);

/// Serve a drive as a block device of this machine, with a file system mounted.
///
/// The drive is a FUSE file with a loop device above it; without root only the file. Ctrl-C, or `--down` from another shell,
/// unmounts everything.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  ssdlab mount -d demo-tlc --image /var/tmp/drive /mnt/drive --fs ext4
  ssdlab mount --down /mnt/drive

docs/serving-mount.md describes the stack, and what a kill leaves.")]
pub(crate) struct Mount {
    /// An existing folder
    #[arg(value_name = "MOUNTPOINT")]
    mountpoint: PathBuf,

    #[command(flatten)]
    served: Option<Served>,

    /// The file system to make on an empty drive; a drive that holds another is refused
    #[arg(long, value_name = "FS", value_enum)]
    fs: Option<Fs>,

    /// Sector size of the block device: 512 or 4096
    #[arg(long, value_name = "BYTES", default_value_t = 512)]
    sector: u32,

    /// Options for mount(8), as after -o
    #[arg(long, short, value_name = "OPTIONS")]
    options: Option<String>,

    /// Stop at the file, MOUNTPOINT/drive
    #[arg(long)]
    file: bool,

    #[command(flatten)]
    background: Background,

    /// Take down what is mounted on MOUNTPOINT
    #[arg(long, conflicts_with_all = ["device", "image", "fs", "options", "file", "record", "prometheus", "host", "background", "log"])]
    down: bool,
}

/// File systems that can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Fs {
    Ext4,
    Xfs,
    Btrfs,
}

impl From<Fs> for FileSystem {
    fn from(fs: Fs) -> FileSystem {
        match fs {
            Fs::Ext4 => FileSystem::Ext4,
            Fs::Xfs => FileSystem::Xfs,
            Fs::Btrfs => FileSystem::Btrfs,
        }
    }
}

/// Mounts and serves until it is taken down; or takes down.
pub(crate) fn mount(args: &Mount) -> Result<ExitCode, Failure> {
    if args.down {
        let how = mount::take_down(&args.mountpoint, DOWN_PATIENCE).map_err(failed)?;
        say(&match how {
            Down::Served(pid) => {
                format!("{}: taken down; the server, process {pid}, has ended", args.mountpoint.display())
            }
            Down::Left => format!("{}: what a dead server had left is taken down", args.mountpoint.display()),
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(served) = &args.served else {
        return Err(
            Failure::input("--device and --image are missing").hint("or --down, to take down what is mounted there")
        );
    };
    let mountpoint = &args.mountpoint;
    let down = |_| format!("ssdlab mount --down {}", mountpoint.display());
    if let Some(status) = args.background.start("mount", served, down)? {
        return Ok(status);
    }
    let wants = if args.file && args.fs.is_none() { Wants::Commands } else { Wants::BlockIo };
    // A new image is not left behind for a mistake in the mountpoint.
    mount::check_mountpoint(&args.mountpoint).map_err(failed)?;
    let mut live = Live::start(served, &args.background, wants)?;
    if live.is_to_stop() {
        return live.finish();
    }
    let options = Options {
        file_system: args.fs.map(FileSystem::from),
        sector_bytes: args.sector,
        mount_options: args.options.clone(),
        image: Some(served.image.clone()),
        file_only: args.file,
        ..Options::new(&args.mountpoint)
    };
    let target = Arc::clone(&live.engine) as Arc<dyn Target>;
    let _ = mount::protect_process();
    let mounted = mount::mount(&options, target);
    // A file system on damaged pages may be why it was refused.
    live.name_damage();
    let mut mounted = mounted.map_err(failed)?;
    tell(args, &mounted)?;
    let is_wanted = args.background.ready();
    let stopper = mounted.stopper();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (mounted, over) = (&mounted, &over);
        scope.spawn(move || {
            mounted.wait();
            over.store(true, Ordering::Relaxed);
        });
        if is_wanted {
            live.wait(|| over.load(Ordering::Relaxed));
        }
        if let Some(stopper) = &stopper {
            stopper.stop();
        }
    });
    take_down(&mut mounted)?;
    drop(mounted);
    live.finish()
}

/// What is in use is waited for: a second Ctrl-C ends the process, which is a power cut.
fn take_down(mounted: &mut Mounted) -> Result<(), Failure> {
    let mut told = false;
    loop {
        match mounted.take_down() {
            Ok(()) => return Ok(()),
            Err(error @ MountError::Busy { .. }) => {
                if !std::mem::replace(&mut told, true) {
                    stderr::say(format_args!("{error}; waiting until it is free"));
                }
                std::thread::sleep(BUSY_PAUSE);
            }
            Err(error) => return Err(failed(error)),
        }
    }
}

fn tell(args: &Mount, mounted: &Mounted) -> Result<(), Failure> {
    let report = mounted.report();
    for note in &report.notes {
        stderr::note(note);
    }
    say(&format!("file: {}", report.file.display()))?;
    if let Some(device) = &report.device {
        say(&format!("block device: {}", device.display()))?;
    }
    if let Some(kind) = &report.file_system {
        let made = if report.made { ", made just now" } else { "" };
        say(&format!("mounted: {} ({kind}{made})", args.mountpoint.display()))?;
    }
    Ok(())
}

fn failed(error: MountError) -> Failure {
    match &error {
        MountError::Busy { .. } | MountError::StillServing { .. } => Failure::work(&error),
        _ => Failure::input(&error),
    }
}

//! What tests need of the machine: whether it can run them at all, and a bound on every step.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use rustix::mount::UnmountFlags;
use ssdlab_base::Op;
use ssdlab_live::{Command as DriveCommand, Extent, Target};

/// Where this process serves files.
static SERVED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Remembers where a file is served. A process that waits for itself cannot even be killed, so a step that hangs ends
/// with the connection's end.
pub(crate) fn serves(directory: &Path) {
    SERVED.lock().expect("no panic").push(directory.to_owned());
}

/// Runs a step that may hang when something is wrong; then the test fails and says which.
pub(crate) fn within<T: Send + 'static>(what: &str, step: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    let thread = thread::spawn(move || {
        let _ = sender.send(step());
    });
    match receiver.recv_timeout(Duration::from_secs(400)) {
        Ok(result) => result,
        Err(mpsc::RecvTimeoutError::Timeout) => {
            for directory in SERVED.lock().expect("no panic").iter() {
                let _ = rustix::mount::unmount(directory, UnmountFlags::FORCE | UnmountFlags::DETACH);
            }
            panic!("{what}: hangs")
        }
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            std::panic::resume_unwind(thread.join().expect_err("it sent nothing"))
        }
    }
}

/// Runs a program to its end: its status and what it said.
pub(crate) fn program(words: &[&dyn AsRef<OsStr>]) -> (bool, String) {
    let words: Vec<_> = words.iter().map(|word| word.as_ref().to_owned()).collect();
    let what = format!("{words:?}");
    within(&what, move || {
        let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).env("PATH", path).env("LC_ALL", "C").stdin(Stdio::null());
        match command.output() {
            Ok(output) => {
                let text = [output.stdout, output.stderr].concat();
                (output.status.success(), String::from_utf8_lossy(&text).into_owned())
            }
            Err(error) => (false, error.to_string()),
        }
    })
}

pub(crate) fn must(words: &[&dyn AsRef<OsStr>]) -> String {
    let (good, text) = program(words);
    assert!(good, "{}: {text}", words[0].as_ref().display());
    text
}

/// Why files cannot be served here, if they cannot.
pub(crate) fn why_no_fuse() -> Option<String> {
    if let Err(error) = File::options().read(true).write(true).open("/dev/fuse") {
        return Some(format!("/dev/fuse: {error}"));
    }
    if !rustix::process::geteuid().is_root() && !program(&[&"fusermount3", &"--version"]).0 {
        return Some("not root, and no fusermount3".to_owned());
    }
    None
}

/// Whether a test is skipped; the reason is printed.
pub(crate) fn skipped(reason: Option<String>) -> bool {
    if let Some(reason) = &reason {
        eprintln!("skipped: {reason}");
    }
    reason.is_some()
}

/// One command as it reached the target: operation, FUA, first sector, sectors.
pub(crate) type Seen = (Op, bool, u64, u64);

/// Writes down what reaches a target.
pub(crate) struct Recorder<T> {
    pub(crate) below: T,
    seen: Mutex<Vec<Seen>>,
}

impl<T: Target> Recorder<T> {
    pub(crate) fn new(below: T) -> Arc<Recorder<T>> {
        Arc::new(Recorder { below, seen: Mutex::new(Vec::new()) })
    }

    /// What has come since the last time.
    pub(crate) fn take(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.seen.lock().expect("no panic"))
    }
}

impl<T: Target> Target for Recorder<T> {
    fn bytes(&self) -> u64 {
        self.below.bytes()
    }

    fn preferred_bytes(&self) -> u32 {
        self.below.preferred_bytes()
    }

    fn description(&self) -> String {
        self.below.description()
    }

    fn submit(&self, commands: &mut Vec<DriveCommand>) {
        let seen = commands.iter().map(|command| {
            let request = &command.request;
            (request.op, request.fua, request.sector, request.sectors)
        });
        self.seen.lock().expect("no panic").extend(seen);
        self.below.submit(commands);
    }

    fn extents(&self, offset: u64, bytes: u64, limit: usize) -> Vec<Extent> {
        self.below.extents(offset, bytes, limit)
    }
}

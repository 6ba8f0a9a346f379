//! `--background`: a server that is started, waited for until it is ready, and left alone.
//!
//! ```text
//!   the command      starts itself again, a socket as standard input and a file in memory as output
//!   the server       leaves the session and what it inherited, and opens the image
//!                    takes the log in the place of the file, and tells where its words begin there
//!                    serves, sends a byte, and takes /dev/null in the socket's place
//! ```
//!
//! The byte means that clients can connect, or that the file system is mounted. If the socket ends without it, the server has failed:
//! the command says what the server said, and ends with its status. A server writes into the log when the image is its
//! own: of two on one image, the second is refused, and the log is the first one's.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd, RawFd};
use std::os::unix::fs::FileExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

use clap::Args;
use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use crate::failure::Failure;
use crate::serve::Served;
use crate::stdout::say;
use crate::{outputs, stderr};

/// What tells the command that it is the server; only the command that starts it gives it.
const SERVER: &str = "--is-in-background";

/// What is set aside for a log when a server begins it.
const LOG_BYTES: u64 = 4096;

/// The options of every command that can serve in the background.
#[derive(Args, Debug)]
pub(crate) struct Background {
    /// Return when the drive is ready, and serve it in the background
    ///
    /// Prints the number of the server's process on standard output. Ends with the server's error if it cannot start.
    #[arg(long)]
    background: bool,

    /// Where a server in the background writes what it says; by default the image's path with .log
    #[arg(long, value_name = "FILE", requires = "background")]
    log: Option<PathBuf>,

    #[arg(long = "is-in-background", hide = true, requires = "background")]
    is_server: bool,
}

impl Background {
    /// Starts the server of what is `served` and waits for it, if this is the command that has to; `None` if it is to serve
    /// itself. `subcommand` is its name, `stop` how a person stops the server of a process.
    pub(crate) fn start(
        &self,
        subcommand: &str,
        served: &Served,
        stop: impl Fn(u32) -> String,
    ) -> Result<Option<ExitCode>, Failure> {
        if !self.background {
            return Ok(None);
        }
        if self.is_server {
            return leave().map(|()| None);
        }
        // What is wrong with it is told before there is an image.
        if let Some(log) = &self.log {
            let inputs = served.device.iter().map(Path::new).chain(served.host.as_deref());
            outputs::is_not_read("--log ", log, inputs)?;
            outputs::is_not_in_image("--log ", log, &served.image)?;
        }
        let log = Log::open(self.log.clone(), &served.image)?;
        let failed = |error| Failure::work(format!("--background: {error}"));
        let (mut socket, theirs) = UnixStream::pair().map_err(failed)?;
        let early = early_words().map_err(failed)?;
        let mut server = {
            let mut command = Command::new("/proc/self/exe");
            let mut words: Vec<OsString> = std::env::args_os().collect();
            let name = words.remove(0);
            let at = words.iter().position(|word| word == subcommand).map_or(0, |index| index + 1);
            words.insert(at, SERVER.into());
            command.arg0(name).args(words);
            command.stdin(OwnedFd::from(theirs));
            command.stdout(early.try_clone().map_err(failed)?).stderr(early.try_clone().map_err(failed)?);
            // With the command goes the last of the socket's other ends that is not the server's.
            command.spawn().map_err(failed)?
        };
        let mut from = [0; 8];
        let has_log = socket.read_exact(&mut from).is_ok();
        let is_ready = has_log && socket.read_exact(&mut [0]).is_ok();
        let status = if is_ready { None } else { Some(server.wait().map_err(failed)?) };
        let said = if has_log { read_from(&log.file, u64::from_le_bytes(from)) } else { read_from(&early, 0) };
        stderr::say(String::from_utf8_lossy(&said).trim_end());
        if let Some(status) = status {
            return Ok(Some(log.of_failure(has_log, status)));
        }
        let process = server.id();
        stderr::say(format_args!("log: {}; to stop the server: {}", log.path.display(), stop(process)));
        // Alone, so that a script can take it: server=$(ssdlab serve ... --background)
        say(&process.to_string())?;
        Ok(Some(ExitCode::SUCCESS))
    }

    /// The image is this server's: what it has said and will say goes into the log.
    pub(crate) fn owns(&self, image: &Path) -> Result<(), Failure> {
        if !self.is_server {
            return Ok(());
        }
        let mut log = Log::open(self.log.clone(), image)?;
        let mut take_over = || {
            let early = File::from(std::io::stdout().as_fd().try_clone_to_owned()?);
            // A log that cannot be written must leave the way open on which that is told. Some file systems set nothing aside.
            let set_aside = rustix::fs::fallocate(&log.file, FallocateFlags::KEEP_SIZE, log.from, LOG_BYTES);
            if let Err(full @ (Errno::NOSPC | Errno::DQUOT)) = set_aside {
                return Err(full.into());
            }
            log.file.write_all(&read_from(&early, 0))?;
            rustix::stdio::dup2_stdout(&log.file)?;
            rustix::stdio::dup2_stderr(&log.file)?;
            File::from(std::io::stdin().as_fd().try_clone_to_owned()?).write_all(&log.from.to_le_bytes())
        };
        take_over().map_err(|error: std::io::Error| Failure::work(format!("--log {}: {error}", log.path.display())))
    }

    /// The server is ready; false if the command that started it is not there any more, which ends the server, too.
    pub(crate) fn ready(&self) -> bool {
        if !self.is_server {
            return true;
        }
        let Ok(socket) = std::io::stdin().as_fd().try_clone_to_owned() else { return false };
        let left = File::open("/dev/null").is_ok_and(|null| rustix::stdio::dup2_stdin(&null).is_ok());
        left && rustix::io::write(&socket, b"\n").is_ok()
    }
}

/// The server leaves the terminal and closes inherited descriptors: a process that waits for the end of such a pipe would wait as
/// long as the server runs.
fn leave() -> Result<(), Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::work(format!("--background: {error}"));
    let open = std::fs::read_dir("/proc/self/fd").map_err(|error| failed(&error))?;
    let numbers = open.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let inherited: Vec<RawFd> = numbers.filter(|number| *number > 2).collect();
    // The folder that was read is one of them, and closed already. Nothing else was opened yet.
    for number in inherited {
        let _ = nix::unistd::close(number);
    }
    rustix::process::setsid().map(drop).map_err(|error| failed(&error))
}

/// A file in memory for what a server says before the image is its own.
fn early_words() -> std::io::Result<File> {
    Ok(File::from(rustix::fs::memfd_create("ssdlab", rustix::fs::MemfdFlags::CLOEXEC)?))
}

/// What is in a file from a place on; its own place, which processes share, stays. What cannot be read stays unsaid.
fn read_from(file: &File, mut at: u64) -> Vec<u8> {
    let (mut text, mut piece) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = file.read_at(&mut piece, at) {
        text.extend_from_slice(&piece[..count]);
        at += count as u64;
    }
    text
}

/// What the server says.
struct Log {
    path: PathBuf,
    file: File,
    /// What earlier servers said ends there.
    from: u64,
    is_new: bool,
}

impl Log {
    fn open(path: Option<PathBuf>, image: &Path) -> Result<Log, Failure> {
        let path = match (path, image.file_name()) {
            (Some(path), _) => path,
            (None, Some(name)) => {
                let mut name = name.to_os_string();
                name.push(".log");
                image.with_file_name(name)
            }
            (None, None) => {
                let image = image.display();
                return Err(Failure::input(format!("--image {image}: has no name beside which a log could stand"))
                    .hint("name the log with --log"));
            }
        };
        let wrong = |error| Failure::input(format!("--log {}: {error}", path.display()));
        let mut options = OpenOptions::new();
        // Another user must not lead what a server of root writes to a file of their choice.
        options.read(true).append(true).mode(0o600).custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32);
        let (file, is_new) = match options.open(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                (options.create_new(true).open(&path).map_err(wrong)?, true)
            }
            file => (file.map_err(wrong)?, false),
        };
        let found = file.metadata().map_err(wrong)?;
        if !found.is_file() {
            return Err(Failure::input(format!("--log {}: found no plain file, expected one", path.display())));
        }
        let from = found.len();
        Ok(Log { path, file, from, is_new })
    }

    /// There is no server, which has written into the log or has not: the status of the command.
    fn of_failure(&self, is_written: bool, status: ExitStatus) -> ExitCode {
        // Another server may have begun to write into it.
        if self.is_new && (is_written || self.file.metadata().is_ok_and(|found| found.len() == 0)) {
            let _ = std::fs::remove_file(&self.path);
        }
        match status.code() {
            Some(0) => stderr::say("error: the server was stopped before it was ready"),
            Some(code) => return ExitCode::from(code as u8),
            None => stderr::say(format_args!("error: the server ended before it was ready: {status}")),
        }
        ExitCode::FAILURE
    }
}

//! Programs of the system that mounting needs: found, run with a bound on their time, and named with the package that
//! brings them.

use std::env;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// A program and where it comes from.
#[derive(Debug)]
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) package: &'static str,
}

pub(crate) const FUSERMOUNT: Tool = Tool { name: "fusermount3", package: "fuse3" };
pub(crate) const LOSETUP: Tool = Tool { name: "losetup", package: "mount" };
pub(crate) const MOUNT: Tool = Tool { name: "mount", package: "mount" };
pub(crate) const UMOUNT: Tool = Tool { name: "umount", package: "mount" };
pub(crate) const BLKID: Tool = Tool { name: "blkid", package: "util-linux" };

/// Why a program of the system did not do what it was to do.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The program is not installed.
    #[error("`{tool}` is not installed: `apt install {package}`")]
    Missing {
        /// The program.
        tool: &'static str,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// The program could not be started.
    #[error("`{tool}` cannot be started: {source}")]
    Start {
        /// The program.
        tool: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The program did not end in time.
    #[error("`{tool}` has not ended after {} s", patience.as_secs_f64())]
    Late {
        /// The program.
        tool: &'static str,
        /// How long was waited for it.
        patience: Duration,
    },
    /// The program ended with an error.
    #[error("`{tool}` failed: {message}")]
    Failed {
        /// The program.
        tool: &'static str,
        /// What it said.
        message: String,
    },
}

/// What a program said, and the status it ended with, if no signal ended it.
pub(crate) struct Output {
    pub(crate) code: Option<i32>,
    pub(crate) text: String,
    pub(crate) errors: String,
}

impl Tool {
    /// The program's path: from `PATH`, or where administrators' programs are.
    pub(crate) fn find(&self) -> Result<PathBuf, ToolError> {
        let path = env::var_os("PATH").unwrap_or_default();
        let administrators = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
        env::split_paths(&path)
            .chain(administrators)
            .map(|directory| directory.join(self.name))
            .find(|program| program.is_file())
            .ok_or(ToolError::Missing { tool: self.name, package: self.package })
    }

    /// Runs it to its end. One that does not end in time is killed and left behind: killing cannot end a program that
    /// waits for a dead disk.
    pub(crate) fn run<'a>(
        &self,
        arguments: impl IntoIterator<Item = &'a OsStr>,
        patience: Duration,
    ) -> Result<Output, ToolError> {
        let mut child = Command::new(self.find()?)
            .args(arguments)
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|source| ToolError::Start { tool: self.name, source })?;
        let deadline = Instant::now() + patience;
        let late = || ToolError::Late { tool: self.name, patience };
        let text = read_aside(child.stdout.take());
        let errors = read_aside(child.stderr.take());
        let code = wait(&mut child, deadline).ok_or_else(late)?;
        // A program of its own that it left running may hold the pipes: what is there by then is enough.
        let rest = Duration::from_secs(2);
        let read = |pipe: mpsc::Receiver<String>| pipe.recv_timeout(rest).unwrap_or_default();
        Ok(Output { code, text: read(text), errors: read(errors) })
    }

    /// The error of a run that ended badly.
    pub(crate) fn failed(&self, output: &Output) -> ToolError {
        let message = match (output.errors.trim(), output.code) {
            ("", Some(code)) => format!("status {code}"),
            ("", None) => "ended by a signal".to_owned(),
            (message, _) => message.replace('\n', " "),
        };
        ToolError::Failed { tool: self.name, message }
    }

    /// Runs it and takes every status but 0 for an error.
    pub(crate) fn must(&self, arguments: &[&OsStr], patience: Duration) -> Result<String, ToolError> {
        let output = self.run(arguments.iter().copied(), patience)?;
        if output.code == Some(0) { Ok(output.text) } else { Err(self.failed(&output)) }
    }
}

fn read_aside(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    if let Some(mut pipe) = pipe {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = pipe.read_to_end(&mut bytes);
            let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
        });
    }
    receiver
}

/// The status a child ended with; nothing when it had to be killed.
fn wait(child: &mut Child, deadline: Instant) -> Option<Option<i32>> {
    let mut pause = Duration::from_millis(1);
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status.code());
        }
        if Instant::now() >= deadline {
            let _ = child.kill();
            return None;
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        let tool = Tool { name: "mkfs.nothing", package: "nothing-progs" };
        let error = tool.must(&[], Duration::from_secs(1)).expect_err("missing");
        assert_eq!(error.to_string(), "`mkfs.nothing` is not installed: `apt install nothing-progs`");
    }

    #[test]
    fn a_program_says_why_it_failed_and_is_not_waited_for_without_end() {
        let shell = Tool { name: "sh", package: "dash" };
        let run = |script: &str, patience| shell.must(&[OsStr::new("-c"), OsStr::new(script)], patience);
        assert_eq!(run("echo 1; echo 2 >&2", Duration::from_secs(60)).expect("done"), "1\n");
        let error = run("echo no >&2; exit 3", Duration::from_secs(60)).expect_err("failed");
        assert_eq!(error.to_string(), "`sh` failed: no");
        let error = run("exit 3", Duration::from_secs(60)).expect_err("failed");
        assert_eq!(error.to_string(), "`sh` failed: status 3");
        let error = run("exec sleep 600", Duration::from_millis(50)).expect_err("late");
        assert!(matches!(error, ToolError::Late { .. }));
    }
}

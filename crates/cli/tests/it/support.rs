//! A folder to work in and the command to run in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

/// A drive of 12 MiB that ages in an instant.
pub(crate) const TINY: &str = r#"
name = "tiny"
[flash]
channels = 2
chips_per_channel = 1
dies_per_chip = 1
planes_per_die = 1
blocks_per_plane = 64
pages_per_block = 32
page_size = "4k"
cell = "slc"
[capacity]
user = "12m"
"#;

/// A folder that is gone when the test ends.
pub(crate) struct Bench {
    folder: PathBuf,
}

/// How a command ended.
pub(crate) struct Done {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Bench {
    /// A folder of its own, with `tiny.toml` in it.
    pub(crate) fn new() -> Bench {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cli-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder for the test");
        let bench = Bench { folder };
        bench.write("tiny.toml", TINY);
        bench
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).expect("a file for the test");
        path
    }

    pub(crate) fn read(&self, name: &str) -> String {
        let path = self.path(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// What lies in a folder, sorted; nothing if there is none.
    pub(crate) fn listing(&self, name: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path(name)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// `ssdlab` in this folder, with a cache of its own.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ssdlab"));
        command.args(arguments).current_dir(&self.folder).env("SSDLAB_CACHE", self.path("cache"));
        command
    }

    /// Runs it to its end.
    pub(crate) fn ssdlab(&self, arguments: &[&str]) -> Done {
        done(self.command(arguments).output().expect("ssdlab starts"))
    }

    /// Runs it and wants it to succeed.
    #[track_caller]
    pub(crate) fn succeeds(&self, arguments: &[&str]) -> Done {
        let done = self.ssdlab(arguments);
        assert_eq!(done.status, 0, "ssdlab {arguments:?} ended with {}: {}", done.status, done.stderr);
        done
    }

    /// Runs it and wants the input refused: status 2, nothing on standard output, and one `error:` that says all of
    /// `parts`.
    #[track_caller]
    pub(crate) fn refuses(&self, arguments: &[&str], parts: &[&str]) -> Done {
        let done = self.ssdlab(arguments);
        assert_eq!(done.status, 2, "ssdlab {arguments:?} ended with {}: {}{}", done.status, done.stdout, done.stderr);
        assert!(done.stdout.is_empty(), "something was printed before the refusal: {}", done.stdout);
        assert!(done.stderr.starts_with("error: "), "expected an error, found: {}", done.stderr);
        assert!(!done.stderr.contains("bug in ssdlab"), "{}", done.stderr);
        for part in parts {
            assert!(done.stderr.contains(part), "expected '{part}' in: {}", done.stderr);
        }
        done
    }
}

/// What a finished process said.
pub(crate) fn done(output: Output) -> Done {
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    Done { status: output.status.code().unwrap_or(-1), stdout: text(output.stdout), stderr: text(output.stderr) }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

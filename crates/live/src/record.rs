//! What clients do, as a trace that `run` replays: times, flushes, FUA and trims.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ssdlab_base::{CommandSet, Nanos, Request};
use ssdlab_workload::trace::{Target, TraceWriter};

use crate::engine::{Engine, Tap};

/// Requests that may wait for the writer before the drive waits for it too.
const WAITING: usize = 1 << 16;

/// After so long without a request what is gathered is written.
const QUIET: Duration = Duration::from_millis(200);

/// How long what is gathered may wait while requests come.
const GATHERED_MAX: Duration = Duration::from_secs(1);

/// A recording in progress: requests go to a thread of their own, so a slow disk does not slow the drive.
pub struct Recorder {
    tap: u64,
    writer: JoinHandle<io::Result<u64>>,
}

/// A request and its words.
type Heard = (Request, Vec<u64>);

/// What is told of a recording that cannot go on, at the moment when that is known.
pub type Broken = Box<dyn FnOnce(&io::Error) + Send>;

struct Sender(SyncSender<Heard>, Nanos);

impl Tap for Sender {
    fn request(&mut self, request: &Request, words: &[u64]) {
        let request = Request { at: Nanos(request.at.0 - self.1.0), ..*request };
        if let Err(TrySendError::Full(heard)) = self.0.try_send((request, words.to_vec())) {
            // Nothing is dropped: better a late answer than a recording with holes.
            let _ = self.0.send(heard);
        }
    }
}

impl Recorder {
    /// Records every request from now on into `out`, as ssdlab's own CSV; the first instant is time 0 of the trace. If the
    /// trace cannot be written any more, `broken` is told at once; the drive goes on.
    ///
    /// # Errors
    /// There is no thread for it.
    pub fn start(engine: &Engine, out: Box<dyn Write + Send>, broken: Broken) -> io::Result<Recorder> {
        let (to, from) = sync_channel(WAITING);
        let set = engine.command_set();
        let record = move || write(&from, set, out).inspect_err(|error| broken(error));
        let writer = std::thread::Builder::new().name("recorder".to_string()).spawn(record)?;
        let tap = engine.add_tap(|now| Box::new(Sender(to, now)));
        Ok(Recorder { tap, writer })
    }

    /// Ends the recording; returns how many requests it holds.
    ///
    /// # Errors
    /// The trace could not be written.
    pub fn finish(self, engine: &Engine) -> io::Result<u64> {
        engine.remove_tap(self.tap);
        self.writer.join().unwrap_or_else(|_| Err(io::Error::other("the recorder has died")))
    }
}

/// The last line of a recording that could not be written to its end; it begins as a comment of the format.
const INCOMPLETE: &[u8] = b"# incomplete: the recording could not be written any further\n";

/// A plain recording in a file, which ends with a whole line also when the disk is full: what was cut off is taken back, and
/// the last line says that more is missing.
pub struct RecordingFile(File);

impl RecordingFile {
    /// Makes the file, which must not be there yet or be empty. What is no plain file, such as a pipe, is written as it is.
    ///
    /// # Errors
    /// `AlreadyExists` if something is recorded there, and what the operating system says.
    pub fn create(path: &Path) -> io::Result<RecordingFile> {
        let known = std::fs::metadata(path);
        if known.as_ref().is_ok_and(|known| !known.is_file()) {
            return OpenOptions::new().write(true).open(path).map(RecordingFile);
        }
        // An empty file holds nothing that could be lost.
        let is_empty = known.is_ok_and(|known| known.len() == 0);
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        if is_empty { options.open(path) } else { options.create_new(true).open(path) }.map(RecordingFile)
    }

    /// Makes the file beside what was recorded before, and returns its path, too: the first of `trace.csv`,
    /// `trace-2.csv`, `trace-3.csv` and so on that [`RecordingFile::create`] takes.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn create_beside(path: &Path) -> io::Result<(PathBuf, RecordingFile)> {
        let mut number = 2_u64;
        let mut name = path.to_path_buf();
        loop {
            match RecordingFile::create(&name) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => name = numbered(path, number),
                made => return made.map(|file| (name, file)),
            }
            number += 1;
        }
    }

    /// The file itself, for what does not end in lines.
    #[must_use]
    pub fn into_inner(self) -> File {
        self.0
    }

    /// Takes back what is behind the last whole line that leaves space for the last one, and writes that.
    fn end(&mut self) -> io::Result<()> {
        const TAIL: u64 = 64 << 10;
        let length = self.0.metadata()?.len();
        let from = length.saturating_sub(TAIL);
        self.0.seek(SeekFrom::Start(from))?;
        let mut tail = Vec::new();
        (&self.0).take(TAIL).read_to_end(&mut tail)?;
        let room = tail.len().saturating_sub(INCOMPLETE.len());
        let Some(at) = tail[..room].iter().rposition(|byte| *byte == b'\n') else { return Ok(()) };
        let end = from + at as u64 + 1;
        self.0.set_len(end)?;
        self.0.seek(SeekFrom::Start(end))?;
        self.0.write_all(INCOMPLETE)
    }
}

impl Write for RecordingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.0.write(bytes);
        if written.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::Interrupted) {
            // The error that counts is the first one.
            let _ = self.end();
        }
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// A file's name with a number before its extensions: `trace-2.csv.zst`.
fn numbered(path: &Path, number: u64) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let at = name.char_indices().skip(1).find(|(_, letter)| *letter == '.').map_or(name.len(), |(at, _)| at);
    path.with_file_name(format!("{}-{number}{}", &name[..at], &name[at..]))
}

fn write(from: &Receiver<Heard>, set: Option<&CommandSet>, out: Box<dyn Write + Send>) -> io::Result<u64> {
    let mut writer = TraceWriter::new(Target::Csv, out).map_err(io::Error::other)?;
    // The first line says who writes, and a disk without any space is told at once.
    writer.flush().map_err(io::Error::other)?;
    let mut flushed = Instant::now();
    let mut count = 0;
    loop {
        match from.recv_timeout(QUIET) {
            Ok((request, words)) => {
                let spec = set.and_then(|set| set.command(request.opcode));
                if spec.is_some_and(|spec| spec.carrier != request.op || !spec.words_in.allow(words.len())) {
                    // The drive turns it away, and no trace can hold it.
                    continue;
                }
                match set {
                    Some(set) => writer.write_command(&request, set, &words),
                    None => writer.write(&request),
                }
                .map_err(io::Error::other)?;
                count += 1;
                if flushed.elapsed() > GATHERED_MAX {
                    writer.flush().map_err(io::Error::other)?;
                    flushed = Instant::now();
                }
            }
            // The file is complete up to here for a reader that watches it grow, and if the server is killed.
            Err(RecvTimeoutError::Timeout) => writer.flush().map_err(io::Error::other)?,
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    writer.finish().map_err(io::Error::other)?;
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("ssdlab-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).expect("a folder");
            Folder(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_was_recorded_before_is_never_written_over() {
        let folder = Folder::new("numbered");
        let names = |name: &str| {
            let (path, mut file) = RecordingFile::create_beside(&folder.0.join(name)).expect("a file");
            file.write_all(b"a line\n").expect("space");
            path.file_name().expect("a name").to_string_lossy().into_owned()
        };
        assert_eq!(
            [names("t.csv.zst"), names("t.csv.zst"), names("t.csv.zst")],
            ["t.csv.zst", "t-2.csv.zst", "t-3.csv.zst"]
        );
        assert_eq!(
            [names("plain"), names("plain"), names(".hidden"), names(".hidden")],
            ["plain", "plain-2", ".hidden", ".hidden-2"]
        );
        let refused = RecordingFile::create(&folder.0.join("plain")).err().map(|error| error.kind());
        assert_eq!(refused, Some(io::ErrorKind::AlreadyExists));
        std::fs::write(folder.0.join("empty"), "").expect("a file");
        assert!(RecordingFile::create(&folder.0.join("empty")).is_ok(), "nothing was recorded there");
        assert!(RecordingFile::create(Path::new("/dev/null")).is_ok());
    }

    #[test]
    fn a_recording_on_a_full_disk_ends_with_a_whole_line_that_says_so() {
        let folder = Folder::new("full");
        for cut in 0..40 {
            let path = folder.0.join(format!("{cut}.csv"));
            let lines: String = (0..100).map(|line| format!("{line}.000,W,{},4096\n", line * 4096)).collect();
            let mut file = RecordingFile::create(&path).expect("a file");
            file.write_all(&lines.as_bytes()[..lines.len() - cut]).expect("space");
            file.end().expect("less space than before");
            let text = std::fs::read_to_string(&path).expect("a recording");
            assert!(text.len() <= lines.len() - cut, "more than the disk had space for");
            let (kept, last) = text.split_at(text.len() - INCOMPLETE.len());
            assert_eq!(last.as_bytes(), INCOMPLETE);
            assert!(lines.starts_with(kept) && kept.ends_with('\n') && kept.lines().count() > 90, "{kept}");
        }
    }
}

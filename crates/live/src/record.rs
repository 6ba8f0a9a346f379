//! What clients do, as a trace that `run` replays: times, flushes, FUA and trims.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use ssdlab_base::{CommandSet, Nanos, Request};
use ssdlab_workload::trace::{Target, TraceWriter};

use crate::engine::{Engine, Tap};

/// Requests that may wait for the writer before the drive waits for it too.
const WAITING: usize = 1 << 16;

/// After so long without a request what is gathered is written.
const QUIET: Duration = Duration::from_millis(200);

/// A recording in progress: requests go to a thread of their own, so a slow disk does not slow the drive.
pub struct Recorder {
    tap: u64,
    writer: JoinHandle<io::Result<u64>>,
}

/// A request and its words.
type Heard = (Request, Vec<u64>);

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
    /// Records every request from now on into `out`, as ssdlab's own CSV; the first instant is time 0 of the trace.
    ///
    /// # Errors
    /// There is no thread for it.
    pub fn start(engine: &Engine, out: Box<dyn Write + Send>) -> io::Result<Recorder> {
        let (to, from) = sync_channel(WAITING);
        let set = engine.command_set();
        let writer = std::thread::Builder::new().name("recorder".to_string()).spawn(move || write(&from, set, out))?;
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

fn write(from: &Receiver<Heard>, set: Option<&CommandSet>, out: Box<dyn Write + Send>) -> io::Result<u64> {
    let mut writer = TraceWriter::new(Target::Csv, out).map_err(io::Error::other)?;
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
            }
            // Whoever watches the file grow, or kills the server, has it up to here.
            Err(RecvTimeoutError::Timeout) => writer.flush().map_err(io::Error::other)?,
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    writer.finish().map_err(io::Error::other)?;
    Ok(count)
}

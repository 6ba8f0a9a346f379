//! Writes that cover a part of a sector: the rest is read and written back.
//!
//! The kernel makes them even of aligned writes: it splits one whose buffer is not page-aligned at page boundaries.
//! They are rare and done one after another by a thread of their own. What changes the same sectors meanwhile is held
//! back until the merge is done, or it would be undone by what the merge had read before.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};

use ssdlab_base::{Op, Request, SECTOR_BYTES};

use super::pending::Reply;
use crate::{Answer, Command, Failure, Sink, Target};

/// A write of a part of a sector, or of several sectors with a part at an end.
pub(super) struct Part {
    pub(super) offset: u64,
    pub(super) data: Vec<u8>,
    pub(super) fua: bool,
    pub(super) reply: Reply,
}

/// Hands changes to the target, and holds back those of sectors that are being merged.
pub(super) struct Gate {
    target: Arc<dyn Target>,
    is_merging: AtomicBool,
    /// Threads that are handing a change to the target.
    submitting: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    merging: Option<Range<u64>>,
    held_back: Vec<Command>,
}

impl Gate {
    pub(super) fn new(target: Arc<dyn Target>) -> Gate {
        let state = Mutex::default();
        Gate { target, is_merging: AtomicBool::new(false), submitting: AtomicUsize::new(0), state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands a change to the target, now or when the merge that it overlaps is done.
    pub(super) fn submit(&self, command: Command) {
        // Either this thread sees the merge, or the merge sees this thread and waits for it.
        self.submitting.fetch_add(1, Ordering::SeqCst);
        let command = if self.is_merging.load(Ordering::SeqCst) { self.hold_back(command) } else { Some(command) };
        if let Some(command) = command {
            self.target.submit(&mut vec![command]);
        }
        self.submitting.fetch_sub(1, Ordering::SeqCst);
    }

    fn hold_back(&self, command: Command) -> Option<Command> {
        let mut state = self.state();
        let request = &command.request;
        match &state.merging {
            Some(sectors) if request.sector < sectors.end && sectors.start < request.end() => {
                state.held_back.push(command);
                None
            }
            _ => Some(command),
        }
    }

    fn begin(&self, sectors: Range<u64>) {
        self.state().merging = Some(sectors);
        self.is_merging.store(true, Ordering::SeqCst);
        // Changes that did not see it are at the target before the merge reads.
        while self.submitting.load(Ordering::SeqCst) > 0 {
            thread::yield_now();
        }
    }

    fn end(&self) {
        let mut held_back = {
            let mut state = self.state();
            state.merging = None;
            self.is_merging.store(false, Ordering::SeqCst);
            std::mem::take(&mut state.held_back)
        };
        if !held_back.is_empty() {
            self.target.submit(&mut held_back);
        }
    }

    fn merge(&self, part: &Part) -> Result<(), Failure> {
        let end = part.offset + part.data.len() as u64;
        let sectors = part.offset / SECTOR_BYTES..end.div_ceil(SECTOR_BYTES);
        self.begin(sectors.clone());
        let result = self.read_and_write(part, sectors);
        self.end();
        result
    }

    fn read_and_write(&self, part: &Part, sectors: Range<u64>) -> Result<(), Failure> {
        let sector_bytes = SECTOR_BYTES as usize;
        let start = (part.offset % SECTOR_BYTES) as usize;
        let end = start + part.data.len();
        let mut data = vec![0; (sectors.end - sectors.start) as usize * sector_bytes];
        let last = data.len() - sector_bytes;
        if start > 0 {
            data[..sector_bytes].copy_from_slice(&self.read(sectors.start)?);
        }
        if end < data.len() && (last > 0 || start == 0) {
            data[last..].copy_from_slice(&self.read(sectors.end - 1)?);
        }
        data[start..end].copy_from_slice(&part.data);
        let request = Request::new(Op::Write, sectors.start, sectors.end - sectors.start);
        self.wait_for(Request { fua: part.fua, ..request }, data).map(|_| ())
    }

    fn read(&self, sector: u64) -> Result<Vec<u8>, Failure> {
        let data = self.wait_for(Request::new(Op::Read, sector, 1), Vec::new())?;
        if data.len() as u64 == SECTOR_BYTES { Ok(data) } else { Err(Failure::Io) }
    }

    fn wait_for(&self, request: Request, data: Vec<u8>) -> Result<Vec<u8>, Failure> {
        let (sender, receiver) = mpsc::channel();
        let sink: Arc<dyn Sink> = Arc::new(Waiting(sender));
        self.target.submit(&mut vec![Command { request, data, cookie: 0, sink }]);
        receiver.recv().unwrap_or(Err(Failure::Shutdown))
    }
}

/// The one answer that a merge waits for.
struct Waiting(mpsc::Sender<Result<Vec<u8>, Failure>>);

impl Sink for Waiting {
    fn answers(&self, answers: &mut Vec<Answer>) {
        for answer in answers.drain(..) {
            // It waits for as long as it lives.
            let _ = self.0.send(answer.result);
        }
    }
}

/// The thread that merges; it ends with the file.
pub(super) struct Merger {
    parts: Option<mpsc::Sender<Part>>,
    thread: Option<JoinHandle<()>>,
}

impl Merger {
    pub(super) fn start(gate: Arc<Gate>) -> io::Result<Merger> {
        let (sender, receiver) = mpsc::channel::<Part>();
        let run = move || {
            for part in receiver {
                let result = gate.merge(&part);
                part.reply.send(result.map(|()| Vec::new()));
            }
        };
        let thread = thread::Builder::new().name("fuse-merge".to_owned()).spawn(run)?;
        Ok(Merger { parts: Some(sender), thread: Some(thread) })
    }

    pub(super) fn take(&self, part: Part) {
        let refused = match &self.parts {
            Some(parts) => parts.send(part).err().map(|error| error.0),
            None => Some(part),
        };
        if let Some(part) = refused {
            part.reply.send(Err(Failure::Shutdown));
        }
    }
}

impl Drop for Merger {
    fn drop(&mut self) {
        self.parts = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

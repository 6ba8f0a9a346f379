//! Running the threads of a personality on a file system, in wall-clock time.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rand::Rng as _;
use ssdlab_base::{Nanos, rng};

use super::call::Call;
use super::directory::DIRECT_ALIGN;
use super::engine::{Engine, Limits};
use super::file_system::{Access, FileSystem, FsError};
use super::flowop::DESCRIPTORS;
use super::measure::Measures;
use super::parameters::Parameters;
use super::result::Phase;
use super::thread::{Next, Thread};

/// How often progress is told.
const TICK: Duration = Duration::from_millis(20);

/// A display of progress.
pub trait Watch: Sync {
    /// A phase begins.
    fn begin(&self, phase: Phase) {
        let _ = phase;
    }

    /// So much of it is done, of so much where that is known: bytes while preparing, otherwise operations or files.
    fn advance(&self, done: u64, total: Option<u64>) {
        let _ = (done, total);
    }
}

/// A display that shows nothing.
impl Watch for () {}

/// What a run came to.
#[derive(Debug)]
pub struct Outcome {
    /// Operations by kind.
    pub measures: Measures,
    /// From the start of the threads to the end of the last.
    pub seconds: f64,
    /// Why the run broke off, if it did.
    pub error: Option<FsError>,
}

/// What is written, and room for what is read: page-aligned, as direct I/O needs it.
pub(super) struct Buffers {
    bytes: Vec<u8>,
    start: usize,
}

impl Buffers {
    fn new(bytes: Vec<u8>) -> Buffers {
        let start = bytes.as_ptr().align_offset(DIRECT_ALIGN as usize);
        Buffers { bytes, start }
    }

    /// So many bytes that cannot be compressed.
    pub(super) fn source(bytes: u64) -> Buffers {
        let mut content = vec![0; (bytes + 2 * DIRECT_ALIGN) as usize];
        rng(0, "files content").fill_bytes(&mut content);
        Buffers::new(content)
    }

    /// Room for so many bytes.
    fn room(bytes: u64) -> Buffers {
        Buffers::new(vec![0; (bytes + DIRECT_ALIGN) as usize])
    }

    pub(super) fn data(&self, bytes: u64) -> &[u8] {
        &self.bytes[self.start..self.start + bytes as usize]
    }

    fn fits(&self, bytes: u64) -> bool {
        self.bytes.len() as u64 >= bytes + DIRECT_ALIGN
    }

    fn data_mut(&mut self, bytes: u64) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + bytes as usize]
    }
}

/// What all threads of a run use.
struct Common<'a, F> {
    fs: &'a F,
    parameters: &'a Parameters,
    source: Buffers,
    began: Instant,
    measures: Mutex<Measures>,
    failed: Mutex<Option<FsError>>,
    operations: AtomicU64,
    ended: AtomicUsize,
}

/// Makes a thread's calls.
struct Hands<'a, F: FileSystem> {
    common: &'a Common<'a, F>,
    open: [Option<F::File>; DESCRIPTORS as usize],
    room: Buffers,
}

impl<F: FileSystem> Hands<'_, F> {
    fn file(&mut self, descriptor: u8) -> &mut F::File {
        self.open[usize::from(descriptor)].as_mut().expect("a thread uses descriptors between open and close only")
    }

    fn access(&self, append: bool) -> Access {
        Access { append, direct: self.common.parameters.direct, dsync: self.common.parameters.dsync }
    }

    /// Makes a call; how many bytes it moved.
    fn make(&mut self, call: &Call) -> Result<u64, FsError> {
        let common = self.common;
        let fs = common.fs;
        match *call {
            Call::Create { descriptor, ref path, append } => {
                let file = fs.create(path, self.access(append))?;
                self.open[usize::from(descriptor)] = Some(file);
            }
            Call::Open { descriptor, ref path, append } => {
                let file = fs.open(path, self.access(append))?;
                self.open[usize::from(descriptor)] = Some(file);
            }
            Call::Read { descriptor, offset, bytes } => {
                if !self.room.fits(bytes) {
                    self.room = Buffers::room(bytes);
                }
                let file = self.open[usize::from(descriptor)].as_mut().expect("as for every other call");
                return Ok(fs.read(file, offset, self.room.data_mut(bytes))? as u64);
            }
            Call::Write { descriptor, offset, bytes } => {
                fs.write(self.file(descriptor), offset, common.source.data(bytes))?;
                return Ok(bytes);
            }
            Call::Append { descriptor, bytes } => {
                fs.append(self.file(descriptor), common.source.data(bytes))?;
                return Ok(bytes);
            }
            Call::Fsync { descriptor } => fs.fsync(self.file(descriptor))?,
            Call::Close { descriptor } => {
                if let Some(file) = self.open[usize::from(descriptor)].take() {
                    fs.close(file)?;
                }
            }
            Call::Unlink { ref path } => fs.unlink(path)?,
            Call::Stat { ref path } => drop(fs.stat(path)?),
        }
        Ok(0)
    }
}

impl<F: FileSystem> Common<'_, F> {
    fn now(&self) -> Nanos {
        Nanos(self.began.elapsed().as_nanos() as u64)
    }

    /// Runs one thread to its end.
    fn drive(&self, thread: &mut Thread) -> Result<(), FsError> {
        let mut hands = Hands { common: self, open: [const { None }; DESCRIPTORS as usize], room: Buffers::room(0) };
        while let Next::Call(call) = thread.next(self.now()) {
            let bytes = hands.make(call)?;
            if let Some(done) = thread.completed(self.now(), bytes) {
                self.measures.lock().unwrap_or_else(PoisonError::into_inner).record(&done);
                self.operations.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }
}

/// The most bytes that one call writes.
fn longest_write(parameters: &Parameters) -> u64 {
    let longest = [parameters.iosize, parameters.append_size, parameters.write_block, parameters.stream_buffer];
    parameters.aligned(longest.into_iter().max().unwrap_or(0))
}

/// Runs all threads until the limits or `stop` say so; the time of the limits counts from here. The first call that fails
/// ends the run, and what was measured up to there is in the outcome.
pub fn run<F: FileSystem>(
    fs: &F,
    engine: &mut Engine,
    parameters: &Parameters,
    limits: &Limits,
    stop: &AtomicBool,
    watch: &dyn Watch,
) -> Outcome {
    watch.begin(Phase::Running);
    let mut threads = engine.take_threads();
    let common = Common {
        fs,
        parameters,
        source: Buffers::source(longest_write(parameters)),
        began: Instant::now(),
        measures: Mutex::new(Measures::new()),
        failed: Mutex::new(None),
        operations: AtomicU64::new(0),
        ended: AtomicUsize::new(0),
    };
    let count = threads.len();
    std::thread::scope(|scope| {
        let common = &common;
        let watcher = std::thread::current();
        for thread in &mut threads {
            let watcher = watcher.clone();
            scope.spawn(move || {
                if let Err(error) = common.drive(thread) {
                    common.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                    limits.stop.store(true, Ordering::Relaxed);
                }
                if common.ended.fetch_add(1, Ordering::Relaxed) + 1 == count {
                    watcher.unpark();
                }
            });
        }
        while common.ended.load(Ordering::Relaxed) < count {
            std::thread::park_timeout(TICK);
            if stop.load(Ordering::Relaxed) {
                limits.stop.store(true, Ordering::Relaxed);
            }
            let total = limits.operations;
            watch.advance(common.operations.load(Ordering::Relaxed), total);
        }
    });
    let seconds = common.began.elapsed().as_secs_f64();
    let measures = common.measures.into_inner().unwrap_or_else(PoisonError::into_inner);
    let error = common.failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    Outcome { measures, seconds, error }
}

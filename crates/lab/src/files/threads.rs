//! The threads of a personality as a source of calls.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ssdlab_base::Nanos;
use ssdlab_fs::{Call, FileId};
use ssdlab_workload::files::{Call as Wanted, Descriptor, Engine, Measures, Next};

use super::calls::{Access, Named, Way, Work};
use super::error::FilesError;
use super::runner::{Begin, Source};

/// An open file with its path, which errors name.
#[derive(Clone, Debug)]
struct OpenFile {
    file: FileId,
    path: Box<str>,
}

/// A thread's side of its calls.
#[derive(Debug, Default)]
struct Hand {
    /// By descriptor.
    open: Vec<Option<OpenFile>>,
    /// The path, or descriptor, of the call in flight, and the descriptor that it opens.
    path: Box<str>,
    on: Option<Descriptor>,
    opens: Option<Descriptor>,
    closes: Option<Descriptor>,
}

impl Hand {
    fn file(&self, descriptor: Descriptor) -> FileId {
        let open = self.open.get(usize::from(descriptor)).and_then(Option::as_ref);
        open.expect("a thread uses descriptors between open and close only").file
    }
}

/// Threads of a personality.
pub(super) struct Threads {
    pub(super) engine: Engine,
    pub(super) measures: Measures,
    hands: Vec<Hand>,
    ready: VecDeque<u32>,
    access: Access,
    stop: Arc<AtomicBool>,
    operations: Option<u64>,
    done: [u64; 3],
}

impl Threads {
    /// Threads that use files so, and end soon when `stop` is set. `operations` is their limit, for progress.
    pub(super) fn new(mut engine: Engine, access: Access, stop: Arc<AtomicBool>, operations: Option<u64>) -> Threads {
        let count = engine.threads().len() as u32;
        Threads {
            engine,
            measures: Measures::new(),
            hands: (0..count).map(|_| Hand::default()).collect(),
            ready: (0..count).collect(),
            access,
            stop,
            operations,
            done: [0; 3],
        }
    }
}

/// What a call is for the file system.
fn work(hand: &mut Hand, wanted: &Wanted, access: Access) -> Work {
    (hand.on, hand.opens, hand.closes) = (None, None, None);
    let mut named = |path: &str, act| {
        hand.path = path.into();
        Work::named(path, act)
    };
    match wanted {
        Wanted::Create { descriptor, path, .. } => {
            let work = named(path, Named::Create);
            hand.opens = Some(*descriptor);
            work
        }
        Wanted::Open { descriptor, path, .. } => {
            let work = named(path, Named::Open);
            hand.opens = Some(*descriptor);
            work
        }
        Wanted::Unlink { path } => named(path, Named::Unlink),
        Wanted::Stat { path } => named(path, Named::Stat),
        Wanted::Read { descriptor, offset, bytes } => {
            hand.on = Some(*descriptor);
            Work::moving(hand.file(*descriptor), Way::Read, *offset, *bytes, access)
        }
        Wanted::Write { descriptor, offset, bytes } => {
            hand.on = Some(*descriptor);
            Work::moving(hand.file(*descriptor), Way::Write, *offset, *bytes, access)
        }
        Wanted::Append { descriptor, bytes } => {
            hand.on = Some(*descriptor);
            Work::moving(hand.file(*descriptor), Way::Append, 0, *bytes, access)
        }
        Wanted::Fsync { descriptor } => {
            hand.on = Some(*descriptor);
            Work::One(Call::Fsync { file: hand.file(*descriptor) })
        }
        Wanted::Close { descriptor } => {
            (hand.on, hand.closes) = (Some(*descriptor), Some(*descriptor));
            Work::One(Call::Close { file: hand.file(*descriptor) })
        }
    }
}

impl Source for Threads {
    fn size(&self) -> (usize, usize) {
        (self.hands.len(), self.hands.len())
    }

    fn begin(&mut self, now: Nanos) -> Result<Begin, FilesError> {
        while let Some(number) = self.ready.pop_front() {
            let thread = &mut self.engine.threads()[number as usize];
            if let Next::Call(wanted) = thread.next(now) {
                let work = work(&mut self.hands[number as usize], wanted, self.access);
                return Ok(Begin::Work { slot: number, lane: number, work });
            }
        }
        // Threads that have ended, or failed, are not asked again: the others are in flight.
        Ok(Begin::Idle)
    }

    fn ended(&mut self, now: Nanos, slot: u32, moved: u64, opened: Option<FileId>) {
        let hand = &mut self.hands[slot as usize];
        if let (Some(descriptor), Some(file)) = (hand.opens, opened) {
            let place = usize::from(descriptor);
            if hand.open.len() <= place {
                hand.open.resize(place + 1, None);
            }
            hand.open[place] = Some(OpenFile { file, path: hand.path.clone() });
        }
        if let Some(descriptor) = hand.closes {
            hand.open[usize::from(descriptor)] = None;
        }
        if let Some(done) = self.engine.threads()[slot as usize].completed(now, moved) {
            self.measures.record(&done);
            let [operations, read, written] = &mut self.done;
            *operations += 1;
            *read += done.bytes_read;
            *written += done.bytes_written;
        }
        self.ready.push_back(slot);
    }

    fn failed(&mut self, _slot: u32) {}

    fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    fn path(&self, slot: u32) -> String {
        let hand = &self.hands[slot as usize];
        let open = hand.on.and_then(|descriptor| hand.open.get(usize::from(descriptor))?.as_ref());
        open.map_or(&*hand.path, |open| &*open.path).to_string()
    }

    fn progress(&self) -> (u64, Option<u64>) {
        (self.done[0], self.operations)
    }

    fn moved(&self) -> [u64; 3] {
        self.done
    }
}

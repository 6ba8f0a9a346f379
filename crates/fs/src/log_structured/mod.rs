//! A log-structured file system at work: what it owns, and its main path.
//!
//! ```text
//!   submit -> run: gather -> (missing: load, and again) -> apply -> answer
//!                                                              \-> stages: place pages, write, check-point -> answer
//! ```
//!
//! [`LogStructured::proceed`](Engine::proceed) is all that it does at one instant. `tasks.rs` runs calls and jobs, `commands.rs` sends what
//! they have ready to the device, `engine.rs` is what the front sees of it.

mod commands;
mod engine;
mod tasks;

use std::collections::{BTreeSet, VecDeque};

use ssdlab_base::Nanos;
use ssdlab_host::standing::{Below, Done, Slots};

use crate::call::Answer;
use crate::config::Options;
use crate::core::Core;
use crate::core::log::{Outgoing, Placed};
use crate::error::MountError;
use crate::file_system::{Engine, Station};
use crate::format::checkpoint::LOGS;
use crate::jobs::checkpoint::Checkpoints;
use crate::jobs::cleaning::Progress;
use crate::jobs::in_place::InPlaceWrites;
use crate::jobs::loads::Loads;
use crate::kinds::Mounted;
use crate::reader::Reader;
use crate::restore::find::Rolled;
use crate::tasks::{Task, Work};

/// What a command below was sent for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Load(u32),
    Write(u32),
    /// Flushes for a check-point, for nodes of fsyncs, and for pages that were written in place. Each with the writes in place that had ended
    /// when it was sent.
    Flush(u64),
    FlushData(u64),
    FlushInPlace(u64),
    Checkpoint,
    Trim(u32, u32),
    TrimCheckpoints,
}

/// A write command of a log on its way.
#[derive(Debug)]
struct Writing {
    number: u64,
    segment: u32,
    placed: Vec<Placed>,
    in_place: bool,
}

/// Commands with nodes of fsyncs that are not sent before the device has flushed the data that they name.
#[derive(Debug, Default)]
struct Held {
    /// Each with the number of its write.
    commands: VecDeque<(u64, Outgoing)>,
    /// How many of them the flush on its way is for; 0 if there is none.
    flushed: usize,
}

/// A log-structured file system on a device.
pub(crate) struct LogStructured {
    pub(crate) core: Core,
    pub(crate) below: Below<Purpose>,
    pub(crate) tasks: Slots<Task>,
    pub(crate) runnable: VecDeque<u32>,
    /// Tasks that wait for free segments, for write-out, for the freeing of an inode, and for writes up to a number.
    pub(crate) for_room: VecDeque<u32>,
    pub(crate) throttled: VecDeque<u32>,
    pub(crate) busy: Vec<(u32, u32)>,
    pub(crate) for_writes: Vec<(u64, u32)>,
    pub(crate) loads: Loads,
    writing: Slots<Writing>,
    /// Numbers of writes that have not ended, and of the last one.
    open_writes: BTreeSet<u64>,
    pub(crate) last_write: u64,
    held: Held,
    pub(crate) in_place: InPlaceWrites,
    pub(crate) checkpoints: Checkpoints,
    /// The task that cleans a segment.
    pub(crate) cleaning_task: Option<u32>,
    /// By log, the segment that is got ready for it to write again.
    pub(crate) threading: [Option<u32>; LOGS],
    /// What cleaning for room has won.
    pub(crate) progress: Progress,
    /// Calls and jobs that failed since cleaning won no more room.
    pub(crate) without_room: u64,
    pub(crate) clean_in_background: bool,
    /// There was no segment to clean, and since then no call came and no check-point became durable.
    pub(crate) has_no_victim: bool,
    /// Pages that cleaning has moved and that are to be sent.
    pub(crate) moved: VecDeque<(u32, u32)>,
    /// Some of those are in their log and not sent.
    pub(crate) has_unsent: bool,
    /// Something was not sent, since there are too few free segments.
    pub(crate) wants_room: bool,
    /// A write has ended since tasks that wait for room looked last.
    pub(crate) has_written: bool,
    /// Pages that are dirty since then, or longer, are to be sent.
    pub(crate) expired: Option<Nanos>,
    /// The last look for such pages sent none of them, and nothing has happened since.
    pub(crate) looked_in_vain: bool,
    pub(crate) checkpoint_at: Nanos,
    pub(crate) expire_at: Nanos,
    pub(crate) clean_at: Nanos,
    order: u64,
    answers: Vec<Answer>,
    done: Vec<Done<Purpose>>,
}

/// Everything in memory, from what a device has.
type Load = fn(&mut Reader, &Options) -> Result<(Core, Checkpoints, Rolled), MountError>;

impl LogStructured {
    /// Mounts what is on a device, which `load` reads.
    pub(crate) fn mount(mut reader: Reader, options: &Options, load: Load) -> Mounted {
        let loaded = load(&mut reader, options).and_then(|mut loaded| {
            // What a mount before wrote in place shows at once, whatever this one does: it must not be lost with the power.
            if !loaded.0.layout.appends_checkpoints() && reader.has_write_cache() {
                match reader.flush() {
                    // A drive that takes no writes any more can be read.
                    Err(MountError::DeviceFailed(status)) => {
                        loaded.0.set_read_only(format!("the flush of a mount ended with {status:?}"));
                    }
                    flushed => flushed?,
                }
            }
            Ok(loaded)
        });
        match loaded {
            Ok((core, checkpoints, rolled)) => {
                let mut system = LogStructured::of(core, reader.below.into_below(), checkpoints);
                if let Err(error) = system.restore(rolled) {
                    return Err((error, system.below.into_device()));
                }
                system.proceed();
                Ok(Box::new(system))
            }
            Err(error) => Err((error, reader.below.into_device())),
        }
    }

    /// A file system that is mounted.
    pub(crate) fn of(core: Core, below: Below<Purpose>, mut checkpoints: Checkpoints) -> LogStructured {
        checkpoints.has_write_cache = below.device().identify().may_lose_completed();
        let mut system = LogStructured {
            core,
            below,
            tasks: Slots::new(),
            runnable: VecDeque::new(),
            for_room: VecDeque::new(),
            throttled: VecDeque::new(),
            busy: Vec::new(),
            for_writes: Vec::new(),
            loads: Loads::new(),
            writing: Slots::new(),
            open_writes: BTreeSet::new(),
            last_write: 0,
            held: Held::default(),
            in_place: InPlaceWrites::default(),
            checkpoints,
            cleaning_task: None,
            threading: [None; LOGS],
            progress: Progress::default(),
            without_room: 0,
            clean_in_background: false,
            has_no_victim: false,
            moved: VecDeque::new(),
            has_unsent: false,
            wants_room: false,
            has_written: false,
            expired: None,
            looked_in_vain: false,
            checkpoint_at: Nanos::MAX,
            expire_at: Nanos::MAX,
            clean_at: Nanos::MAX,
            order: 0,
            answers: Vec::new(),
            done: Vec::new(),
        };
        system.core.now = system.below.now();
        system.set_timers();
        system
    }

    fn run_device(&mut self, until: Nanos) -> bool {
        let any = Station::run(&mut self.below, until);
        self.core.now = self.below.now();
        any
    }

    /// Runs a task to its end before anything else is at work. False if the device does not complete a command.
    pub(crate) fn run_alone(&mut self, work: Work) -> bool {
        self.start(work);
        loop {
            while self.take_ended() | self.run_tasks() {}
            if self.tasks.is_empty() {
                return true;
            }
            if !self.run_device(Nanos::MAX) {
                return false;
            }
        }
    }
}

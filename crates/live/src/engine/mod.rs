//! The drive behind a transport: commands in, virtual time bound to the wall clock, answers out when the model says so.
//!
//! The thread that brings a command takes the lock, runs the drive up to now, and submits it. With pacing a thread of
//! its own waits for the drive's next event and hands out what has completed; without, the thread that brings commands
//! runs the drive until all of them have completed, and answers them itself: no thread is woken.

mod clock;
mod conditions;
mod figures;
mod in_process;
mod sets;
mod state;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ssdlab_base::command_set::REFUSALS_MAX;
use ssdlab_base::command_sets::segments::Segment;
use ssdlab_base::{CommandSet, Event, Nanos, Op, Refusal, Request};
use ssdlab_device::{Completion, Data, Drive, Status};
use ssdlab_flash::{Damage, Image};
pub use ssdlab_host::promise::{Kind, PROMISES, Promise};
use ssdlab_host::{Device, Part};
use ssdlab_measure::smart::SmartLog;

use crate::seeded::{Bug, seeded};
use crate::target::{Answer, Appends, Command, Extent, Failure, Sink, Target};
use clock::Clock;
pub use clock::{Pace, PaceError};
pub use conditions::Condition;
use conditions::conditions_of;
use figures::Times;
pub use figures::{DiskFigures, Figures, Spread};
pub use in_process::Executed;
pub use sets::{SegmentFigures, SetFigures};
use sets::{appends_of, of_sets, segments_of};

/// Close to its time the pacing thread looks at the clock instead of sleeping: waking up takes about this long.
const SPIN: Duration = Duration::from_micros(30);

/// How long a drive that is not paced copies for a layer before commands have their turn, and how often it looks whether a
/// layer has to.
const RESYNCS_FOR: Duration = Duration::from_millis(2);
const LOOKS_EVERY: Duration = Duration::from_millis(200);

/// Commands that are in the drive together when there is no clock: the rest of a batch waits until their answers are out.
const AT_ONCE: usize = 8;

/// Hears of every request as the drive takes it, in order.
pub trait Tap: Send {
    /// A request at its virtual time, and its words where it is a command of a set.
    fn request(&mut self, request: &Request, words: &[u64]);
}

/// A command in the drive.
struct Pending {
    to: To,
    promise: Promise,
}

/// Who waits for a command.
enum To {
    /// A transport's client.
    Client { cookie: u64, sink: Arc<dyn Sink> },
    /// A caller in this process.
    Caller(mpsc::Sender<Result<Executed, Failure>>),
}

/// Answers on their way out, by connection.
type Outgoing = Vec<(Arc<dyn Sink>, Vec<Answer>)>;

struct State {
    device: Box<dyn Device>,
    /// Nothing where answers leave at once.
    clock: Option<Clock>,
    /// Completed, and not answered yet.
    completions: Vec<Completion>,
    /// Tags and bytes of reads among them.
    read_data: Vec<(u32, Vec<u8>)>,
    /// Answers of commands of the set among them.
    answers: Vec<ssdlab_base::Answer>,
    /// The commands and events that the device knows beyond block I/O.
    set: Option<&'static CommandSet>,
    /// A host of the set is there.
    has_host: bool,
    /// What it has not taken.
    events: Vec<Event>,
    pending: Vec<Option<Pending>>,
    /// A drive has a write buffer, or a layer keeps in memory what a flush has to write.
    buffered: bool,
    /// The images took what had happened the last time that they were asked to.
    is_kept: bool,
    free: Vec<u32>,
    taps: Vec<(u64, Box<dyn Tap>)>,
    next_tap: u64,
    stopping: bool,
    /// Until when the pacing thread sleeps.
    sleeps_until: Option<Instant>,
    latency: [Times; 4],
    lateness: Times,
    /// How late answers were since the start of serving; reading the figures does not clear it.
    lateness_in_all: Times,
    /// Requests that broke a rule of a drive with segments and did not reach it, by reason.
    refused_by_transport: [u64; REFUSALS_MAX],
}

struct Shared {
    state: Mutex<State>,
    wake: Condvar,
    /// The state has a clock.
    paced: bool,
    started: Instant,
    bytes: u64,
    preferred: u32,
    trims: bool,
    appends: Option<Appends>,
    description: String,
    name: String,
}

/// A served drive.
pub struct Engine {
    shared: Arc<Shared>,
    /// Runs the drive when no command comes.
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Engine {
    /// Serves a device at a pace.
    pub fn new(device: Box<dyn Device>, pace: Pace) -> std::io::Result<Engine> {
        let identity = device.identify();
        let (name, preferred) = (identity.name, identity.unit_bytes);
        let buffered = identity.has_write_cache || identity.has_host_cache;
        let bytes = device.sectors() * ssdlab_base::SECTOR_BYTES;
        let clock = match pace {
            Pace::Model { slower } if identity.is_timed => Some(Clock::new(slower)),
            _ => None,
        };
        let shared = Arc::new(Shared {
            description: format!("ssdlab {name}, {} design, {bytes} bytes", identity.design),
            name,
            bytes,
            preferred,
            trims: device.trims(),
            appends: appends_of(&*device),
            paced: clock.is_some(),
            started: Instant::now(),
            wake: Condvar::new(),
            state: Mutex::new(State {
                set: device.command_set(),
                has_host: false,
                events: Vec::new(),
                answers: Vec::new(),
                device,
                clock,
                completions: Vec::new(),
                read_data: Vec::new(),
                pending: Vec::new(),
                buffered,
                is_kept: true,
                free: Vec::new(),
                taps: Vec::new(),
                next_tap: 0,
                stopping: false,
                sleeps_until: None,
                latency: std::array::from_fn(|_| Times::new()),
                lateness: Times::new(),
                lateness_in_all: Times::new(),
                refused_by_transport: [0; REFUSALS_MAX],
            }),
        });
        let has_layers = !shared.lock().device.layers().is_empty();
        let thread = match (shared.paced, has_layers) {
            (true, _) => Some(named_thread("pacer", &shared, Shared::pace)?),
            (false, true) => Some(named_thread("resync", &shared, Shared::resync)?),
            // Without layers and a clock, the drive has nothing to do between commands.
            (false, false) => None,
        };
        Ok(Engine { shared, thread: Mutex::new(thread) })
    }

    /// The drive at this moment; `fresh` begins a new interval of latencies.
    pub fn figures(&self, fresh: bool) -> Figures {
        let mut state = self.shared.lock();
        let parts = state.device.drives();
        let wears: Vec<_> = parts.iter().map(|part| part.device.wear()).collect();
        let blocks = |part: &Part<&Drive>| u64::from(part.device.config().flash.geometry.blocks());
        let all_blocks: u64 = parts.iter().map(blocks).sum();
        let weighed = parts.iter().zip(&wears).map(|(part, wear)| wear.mean * blocks(part) as f64);
        let mean = match wears.as_slice() {
            [only] => only.mean,
            _ => weighed.sum::<f64>() / all_blocks as f64,
        };
        let least = wears.iter().map(|wear| wear.min).min().unwrap_or(0);
        let most = wears.iter().map(|wear| wear.max).max().unwrap_or(0);
        let figures = Figures {
            name: self.shared.name.clone(),
            seconds: self.shared.started.elapsed().as_secs_f64(),
            virtual_time: state.device.now(),
            counters: state.device.counters(),
            sets: of_sets(&*state.device, &state.refused_by_transport),
            layers: state.device.layers(),
            disks: state.device.disks().into_iter().map(DiskFigures::of).collect(),
            outstanding: state.device.outstanding(),
            free_blocks: parts.iter().map(|part| part.device.free_blocks()).sum(),
            blocks: all_blocks,
            erases: (least, mean, most),
            read_only: parts.iter().any(|part| part.device.is_read_only()),
            conditions: conditions_of(&*state.device),
            broken: state.device.broken_image(),
            image_bytes: parts.iter().filter_map(|part| part.device.image()).map(Image::bytes_on_disk).sum::<u64>()
                + state.device.disks().iter().filter_map(|part| part.device.image_bytes()).sum::<u64>(),
            latency: std::array::from_fn(|class| state.latency[class].spread()),
            lateness: state.lateness.spread(),
            lateness_in_all: state.lateness_in_all.spread(),
            page_bytes: parts.first().map_or(1, |part| part.device.config().flash.geometry.page_bytes),
        };
        drop(parts);
        if fresh {
            state.latency.iter_mut().for_each(Times::clear);
            state.lateness.clear();
        }
        figures
    }

    /// The drive's log, as real drives keep one, or an object with the logs of several by name; counters count from the
    /// start of serving, erases from the drive's.
    pub fn smart(&self) -> serde_json::Value {
        let state = self.shared.lock();
        match state.device.drives().as_slice() {
            [only] => SmartLog::of(only.device).to_json(),
            parts => parts.iter().map(|part| (part.name.clone(), SmartLog::of(part.device).to_json())).collect(),
        }
    }

    /// What is not as it should be with the drives, their images and the layers, at this moment.
    pub fn conditions(&self) -> Vec<Condition> {
        conditions_of(&*self.shared.lock().device)
    }

    /// Damaged pages of the images that were found since the last call, as [`Image::take_damage`] has them, and how many pages were
    /// found in all since the images were opened.
    pub fn take_damage(&self) -> (Vec<Damage>, u64) {
        let state = self.shared.lock();
        let parts = state.device.drives();
        let images = parts.iter().filter_map(|part| part.device.image());
        images.fold((Vec::new(), 0), |(mut all, pages), image| {
            all.append(&mut image.take_damage());
            (all, pages + image.damaged_pages())
        })
    }

    /// From now on everything takes `slower` times as long as in the model; virtual time goes on from where it is. Nothing
    /// changes for a drive that is not paced.
    ///
    /// # Panics
    /// When `slower` is not a number above 0.
    pub fn set_slower(&self, slower: f64) {
        assert!(slower.is_finite() && slower > 0.0, "{slower} is no pace");
        let mut state = self.shared.lock();
        if state.clock.is_some() {
            let now = Instant::now();
            let base = state.virtual_at(now);
            state.clock = Some(Clock::turned(now, base, slower));
        }
        drop(state);
        self.shared.wake.notify_all();
    }

    /// Lets a tap hear of every request from now on; it is made with the drive's virtual time. Returns what
    /// [`Engine::remove_tap`] takes.
    pub fn add_tap(&self, make: impl FnOnce(Nanos) -> Box<dyn Tap>) -> u64 {
        let mut state = self.shared.lock();
        let tap = make(state.device.now());
        let id = state.next_tap;
        state.next_tap += 1;
        state.taps.push((id, tap));
        id
    }

    /// Gives a tap back.
    pub fn remove_tap(&self, id: u64) -> Option<Box<dyn Tap>> {
        let mut state = self.shared.lock();
        let index = state.taps.iter().position(|(tap, _)| *tap == id)?;
        Some(state.taps.swap_remove(index).1)
    }

    /// Cuts the drive's power as `kill -9` of the server does: nothing more is answered, and nothing gets into the image's
    /// files any more.
    pub fn cut(&self) {
        {
            let mut state = self.shared.lock();
            state.stopping = true;
            state.device.forget();
            state.pending.clear();
            state.free.clear();
        }
        self.end_thread();
    }

    /// Takes no more commands, answers those that are in the drive, and flushes it; virtual time does not wait for the
    /// clock any more. Called again it does nothing.
    ///
    /// # Errors
    /// The drive, or the host under its image, did not take all that was written: the image is as a power cut leaves it.
    pub fn stop(&self) -> Result<(), Failure> {
        let mut outgoing = Outgoing::new();
        let flushed;
        {
            let mut state = self.shared.lock();
            if std::mem::replace(&mut state.stopping, true) {
                return Ok(());
            }
            self.shared.run_all(&mut state, &mut outgoing);
            let at = state.device.now();
            state.device.submit(&Request { at, tag: u32::MAX, ..Request::new(Op::Flush, 0, 0) }, Data::Nothing);
            state.run_all();
            let lost = (!state.persist()).then(|| state.why_not_kept());
            // Nothing else was in the drive.
            let flush = state.completions.last();
            flushed = flush.map_or(lost.map_or(Ok(()), Err), |flush| result_of(flush, lost, state.set));
            if flushed.is_ok() {
                state.device.close();
                // What does not get into the files is recovered at the next start.
                state.persist();
            }
            self.shared.collect(&mut state, &mut outgoing);
            // A caller whose command never ends waits no longer.
            state.pending.clear();
            state.free.clear();
        }
        deliver(outgoing);
        self.end_thread();
        flushed
    }

    fn end_thread(&self) {
        self.shared.wake.notify_all();
        let thread = self.thread.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

/// A thread that runs the drive until the engine ends it.
fn named_thread(name: &str, shared: &Arc<Shared>, run: fn(&Shared)) -> std::io::Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    std::thread::Builder::new().name(name.to_string()).spawn(move || run(&shared))
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

impl Target for Engine {
    fn bytes(&self) -> u64 {
        self.shared.bytes
    }

    fn preferred_bytes(&self) -> u32 {
        self.shared.preferred
    }

    fn description(&self) -> String {
        self.shared.description.clone()
    }

    fn submit(&self, commands: &mut Vec<Command>) {
        self.shared.submit(commands);
    }

    fn extents(&self, offset: u64, bytes: u64, limit: usize) -> Vec<Extent> {
        let sector = ssdlab_base::SECTOR_BYTES;
        let state = self.shared.lock();
        let (mut at, end) = (offset / sector, (offset + bytes) / sector);
        let mut extents = Vec::new();
        while at < end && extents.len() < limit {
            let (mapped, until) = state.device.mapped_run(at, end);
            extents.push(Extent { bytes: (until - at) * sector, mapped });
            at = until;
        }
        extents
    }

    fn trims(&self) -> bool {
        self.shared.trims
    }

    fn appends(&self) -> Option<Appends> {
        self.shared.appends
    }

    fn segments(&self, first: u64, count: u64) -> Vec<Segment> {
        let state = self.shared.lock();
        let parts = state.device.drives();
        parts.first().map_or_else(Vec::new, |part| segments_of(part.device, first, count).collect())
    }

    fn count_refused(&self, reason: Refusal) {
        self.shared.lock().refused_by_transport[usize::from(reason.0)] += 1;
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A thread that panicked inside has left the drive as no controller would be: nothing is served any more.
        self.state.lock().expect("the drive is whole")
    }

    fn submit(&self, commands: &mut Vec<Command>) {
        if !self.paced {
            return self.submit_at_once(commands);
        }
        self.enter_paced(|state, outgoing| {
            // What came together arrives at one instant: a driver may send it on as one.
            let now = state.virtual_at(Instant::now());
            for command in commands.drain(..) {
                state.take(command, now, outgoing);
            }
        });
    }

    /// Without a clock each command is done before the next few are looked at, so that the client has answers to work
    /// on meanwhile.
    fn submit_at_once(&self, commands: &mut Vec<Command>) {
        let mut commands = commands.drain(..).peekable();
        while commands.peek().is_some() {
            let mut outgoing = Outgoing::new();
            let mut state = self.lock();
            let now = state.next_instant();
            for command in commands.by_ref().take(AT_ONCE) {
                state.take(command, now, &mut outgoing);
            }
            self.run_all(&mut state, &mut outgoing);
            drop(state);
            deliver(outgoing);
        }
    }

    /// What comes due at once is answered here: to wake the pacing thread takes longer than that.
    fn enter_paced(&self, enter: impl FnOnce(&mut State, &mut Outgoing)) {
        let mut outgoing = Outgoing::new();
        let mut state = self.lock();
        enter(&mut state, &mut outgoing);
        let until = Instant::now() + SPIN;
        let next = loop {
            self.collect(&mut state, &mut outgoing);
            let next = state.next_event();
            if next.is_none_or(|next| next > until) {
                break next;
            }
            // The time until then is good for what must be in the files before the answer.
            state.persist();
            drop(state);
            deliver(std::mem::take(&mut outgoing));
            while next.is_some_and(|next| Instant::now() < next) {
                std::hint::spin_loop();
            }
            state = self.lock();
            let due = state.virtual_at(Instant::now());
            state.device.run_until(due);
        };
        let wake = next.is_some_and(|next| state.sleeps_until.is_none_or(|until| next < until));
        drop(state);
        if wake {
            self.wake.notify_one();
        }
        deliver(outgoing);
        self.lock().persist();
    }

    /// Runs until no command is in the drive, whatever the clock says.
    fn run_all(&self, state: &mut State, outgoing: &mut Outgoing) {
        state.run_all();
        // Their completions are collected together: the image's files are written once for all of them.
        self.collect(state, outgoing);
    }

    /// Takes what has completed out of the drive.
    fn collect(&self, state: &mut State, outgoing: &mut Outgoing) {
        state.gather();
        if state.completions.is_empty() {
            return;
        }
        // What an answer promises is in the image's files before it leaves. The rest may be lost with the power, and is put
        // into the files when there is time.
        let promised = state.completions.iter().any(|completion| state.promise_of(completion).is_any());
        let kept = !promised || seeded(Bug::AnswerBeforeFiles) || state.persist();
        let mut completions = std::mem::take(&mut state.completions);
        let mut data = std::mem::take(&mut state.read_data);
        let mut answers = std::mem::take(&mut state.answers);
        let now = self.paced.then(Instant::now);
        for completion in &completions {
            state.latency[completion.op.class()].record((completion.at - completion.submitted).0);
            // At the end no answer waits for the clock any more.
            if let (Some(clock), Some(now)) = (state.clock, now)
                && !state.stopping
            {
                let late = now.saturating_duration_since(clock.instant_of(completion.at)).as_nanos() as u64;
                state.lateness.record(late);
                state.lateness_in_all.record(late);
            }
            let Some(pending) = state.pending.get_mut(completion.tag as usize).and_then(Option::take) else {
                continue;
            };
            state.free.push(completion.tag);
            let lost = (!kept && pending.promise.is_any()).then(|| state.why_not_kept());
            let bytes = data.iter().position(|(tag, _)| *tag == completion.tag);
            let bytes = bytes.map_or_else(Vec::new, |index| data.swap_remove(index).1);
            match pending.to {
                To::Client { cookie, sink } => {
                    let result = result_of(completion, lost, state.set).map(|()| bytes);
                    push(outgoing, sink, Answer { cookie, result });
                }
                To::Caller(sender) => {
                    let answer = answers.iter().position(|answer| answer.tag == completion.tag);
                    let answer = answer.map(|index| answers.swap_remove(index)).unwrap_or_default();
                    let (status, data) = (completion.status, bytes);
                    let ended = Executed { status, words: answer.words, bytes: answer.bytes, data };
                    let lost = lost.filter(|_| completion.status == Status::Success);
                    // A caller that is gone asks no more.
                    let _ = sender.send(lost.map_or(Ok(ended), Err));
                }
            }
        }
        // The vectors keep their room.
        completions.clear();
        state.completions = completions;
        data.clear();
        state.read_data = data;
        answers.clear();
        state.answers = answers;
    }

    /// The thread of a drive that is not paced: runs it while a layer makes its devices equal, since no time passes there
    /// between commands. Half of the time is left to commands.
    fn resync(&self) {
        let mut state = self.lock();
        while !state.stopping {
            let resyncs = state.device.layers().iter().any(|layer| layer.is_resyncing);
            let until = Instant::now() + RESYNCS_FOR;
            while resyncs
                && Instant::now() < until
                && let Some(next) = state.device.next_event()
            {
                state.device.run_until(next);
            }
            let pause = if resyncs {
                state.persist();
                RESYNCS_FOR
            } else {
                LOOKS_EVERY
            };
            state = self.wake.wait_timeout(state, pause).expect("the drive is whole").0;
        }
    }

    /// The pacing thread: runs the drive's events when their time has come.
    fn pace(&self) {
        // Sleep to the microsecond rather than to the usual fifty.
        let _ = rustix::thread::set_current_timer_slack(core::num::NonZero::new(1));
        let mut outgoing = Outgoing::new();
        let mut state = self.lock();
        loop {
            if state.stopping {
                return;
            }
            let now = Instant::now();
            let due = state.virtual_at(now);
            state.device.run_until(due);
            self.collect(&mut state, &mut outgoing);
            if !outgoing.is_empty() {
                drop(state);
                deliver(std::mem::take(&mut outgoing));
                state = self.lock();
                continue;
            }
            state.persist();
            let until = state.next_event();
            match until {
                Some(until) if until.saturating_duration_since(now) <= SPIN => {
                    drop(state);
                    while Instant::now() < until {
                        std::hint::spin_loop();
                    }
                    state = self.lock();
                }
                Some(until) => {
                    state.sleeps_until = Some(until);
                    let sleep = until - now - SPIN;
                    state = self.wake.wait_timeout(state, sleep).expect("the drive is whole").0;
                    state.sleeps_until = Some(Instant::now());
                }
                None => {
                    state.sleeps_until = None;
                    state = self.wake.wait(state).expect("the drive is whole");
                    state.sleeps_until = Some(Instant::now());
                }
            }
        }
    }
}

/// How a command ended for who sent it; `lost` is why the images have not taken what its answer would promise.
fn result_of(completion: &Completion, lost: Option<Failure>, set: Option<&CommandSet>) -> Result<(), Failure> {
    match completion.status {
        Status::Success => lost.map_or(Ok(()), Err),
        Status::UncorrectableRead | Status::Aborted => Err(Failure::Io),
        Status::ReadOnly => Err(Failure::ReadOnly),
        Status::StorageFull => Err(Failure::NoSpace),
        // Block I/O that breaks a rule of a drive with segments.
        Status::Refused(reason) => {
            Err(set.and_then(|set| set.refusal(reason)).map_or(Failure::Invalid, Failure::Refused))
        }
        Status::Unsupported => Err(Failure::Unsupported),
        // The last two answer commands of a drive's own set. No transport sends these.
        Status::OutOfRange | Status::Absent | Status::Invalid => Err(Failure::Invalid),
    }
}

fn push(outgoing: &mut Outgoing, sink: Arc<dyn Sink>, answer: Answer) {
    match outgoing.iter_mut().find(|(known, _)| Arc::ptr_eq(known, &sink)) {
        Some((_, answers)) => answers.push(answer),
        None => outgoing.push((sink, vec![answer])),
    }
}

fn deliver(outgoing: Outgoing) {
    for (sink, mut answers) in outgoing {
        sink.answers(&mut answers);
    }
}

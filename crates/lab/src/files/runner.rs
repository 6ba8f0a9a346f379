//! The loop of a file run: who makes calls, a file system, and virtual time.
//!
//! ```text
//!   source --begin--> work --host time--> calls of the file system --answers--> host time --ended--> source
//! ```
//!
//! A source has *lanes*, threads of the host: a thread of a personality, or a job. Each does one thing at a time, so the host's time
//! of two calls of one lane adds up, and of two lanes it runs side by side. A lane that does not wait for its calls has several in
//! flight, each in a slot of its own. The loop draws nothing, and what is due at one instant goes in the order in which it was
//! asked for: the same source gives the same run.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ssdlab_base::Nanos;
use ssdlab_fs::{Answer, Call, Errno, FileId, FileSystem, Reply};

use super::calls::{Next, Work, verb};
use super::counts::CallCounts;
use super::error::FilesError;
use super::host_time::HostTime;
use super::model::Model;
use super::timeline::FilesSampler;
use crate::progress::Control;

/// Turns of the loop between looks at the stop flag.
const TURNS_PER_LOOK: u64 = 1024;

/// What a source wants.
pub(super) enum Begin {
    /// This, in a slot that is free.
    Work { slot: u32, lane: u32, work: Work },
    /// Nothing before this time.
    Wait(Nanos),
    /// Nothing before something of it ends, or ever.
    Idle,
}

/// Who makes calls.
pub(super) trait Source {
    /// Slots and lanes that it has.
    fn size(&self) -> (usize, usize);

    /// What it wants now; it is asked until it has nothing.
    fn begin(&mut self, now: Nanos) -> Result<Begin, FilesError>;

    /// What was begun in a slot has ended: bytes that it moved, and the file that it opened.
    fn ended(&mut self, now: Nanos, slot: u32, moved: u64, opened: Option<FileId>);

    /// What was begun in a slot has failed. Its lane goes no further, and others end soon.
    fn failed(&mut self, slot: u32);

    /// No more is begun but what ends its lanes.
    fn stop(&mut self);

    /// What the work in a slot is done with, for errors.
    fn path(&self, slot: u32) -> String;

    /// Operations that have ended, of so many where that is known.
    fn progress(&self) -> (u64, Option<u64>);

    /// Operations, bytes read and bytes written that have ended.
    fn moved(&self) -> [u64; 3];
}

/// Where what a slot has in it is.
#[derive(Clone, Debug)]
enum State {
    /// The host is at work; then the next call is made.
    Before(Work),
    /// The file system is at work.
    Called(Work),
    /// The host is at work; then it has ended.
    Behind { moved: u64, opened: Option<FileId> },
}

/// What a run came to.
#[derive(Debug, Default)]
pub(super) struct Ran {
    /// When the last call had ended.
    pub(super) end: Nanos,
    /// Why it broke off.
    pub(super) error: Option<String>,
    /// It was stopped.
    pub(super) is_stopped: bool,
}

/// A run on its way.
pub(super) struct Runner<'a> {
    pub(super) fs: &'a mut FileSystem,
    pub(super) host: HostTime,
    pub(super) counts: CallCounts,
    /// What reads are compared with, where that was asked for.
    pub(super) model: Option<&'a mut Model>,
    pub(super) sampler: FilesSampler,
    slots: Vec<Option<(u32, State)>>,
    /// Until when each lane is at work.
    busy: Vec<Nanos>,
    due: BinaryHeap<Reverse<(Nanos, u64, u32)>>,
    asked: u64,
    in_flight: usize,
    ran: Ran,
}

impl<'a> Runner<'a> {
    pub(super) fn new(fs: &'a mut FileSystem, host: HostTime, model: Option<&'a mut Model>) -> Runner<'a> {
        let sampler = FilesSampler::new(fs);
        Runner {
            fs,
            host,
            counts: CallCounts::default(),
            model,
            sampler,
            slots: Vec::new(),
            busy: Vec::new(),
            due: BinaryHeap::new(),
            asked: 0,
            in_flight: 0,
            ran: Ran::default(),
        }
    }

    /// Runs a source to its end.
    pub(super) fn run<S: Source>(&mut self, source: &mut S, control: &Control<'_>) -> Result<Ran, FilesError> {
        let (slots, lanes) = source.size();
        self.slots = vec![None; slots];
        self.busy = vec![Nanos::ZERO; lanes];
        let mut turns = 0_u64;
        loop {
            if turns.is_multiple_of(TURNS_PER_LOOK) {
                let (done, total) = source.progress();
                control.progress.advance(done, total);
                if control.stopped() && !self.ran.is_stopped {
                    self.ran.is_stopped = true;
                    source.stop();
                }
            }
            turns += 1;
            let wake = loop {
                match source.begin(self.fs.now())? {
                    Begin::Work { slot, lane, work } => self.begin(slot, lane, work),
                    Begin::Wait(until) => break until,
                    Begin::Idle => break Nanos::MAX,
                }
            };
            if self.turn(source) {
                continue;
            }
            if self.in_flight == 0 && wake == Nanos::MAX {
                self.ran.end = self.fs.now();
                return Ok(std::mem::take(&mut self.ran));
            }
            let due = self.due.peek().map_or(Nanos::MAX, |Reverse((at, ..))| *at);
            let until = due.min(wake).min(self.sampler.next_tick());
            if !self.fs.run_to_completion(until) {
                if due.min(wake) == Nanos::MAX && self.fs.next_event().is_none() {
                    return Err(FilesError::Silent { calls: self.in_flight });
                }
                self.fs.run_until(until);
            }
            self.sampler.tick_if_due(self.fs, source.moved());
        }
    }

    /// Lets everything go on that is due now; true if anything did.
    fn turn<S: Source>(&mut self, source: &mut S) -> bool {
        let now = self.fs.now();
        let mut any = false;
        while let Some(Reverse((at, _, slot))) = self.due.peek().copied()
            && at <= now
        {
            self.due.pop();
            any = true;
            self.resume(source, slot);
        }
        let mut answers = std::mem::take(self.fs.answers());
        for answer in answers.drain(..) {
            any = true;
            if let Some(model) = &mut self.model {
                model.answered(&answer);
            }
            self.answered(source, answer.tag, answer.result);
        }
        if self.fs.answers().is_empty() {
            *self.fs.answers() = answers;
        }
        any
    }

    /// The lane works so long for a slot, from when it is free.
    fn work(&mut self, lane: u32, slot: u32, time: Nanos) {
        let busy = &mut self.busy[lane as usize];
        *busy = Nanos((*busy).max(self.fs.now()).0.saturating_add(time.0));
        self.counts.host.0 += time.0;
        self.asked += 1;
        self.due.push(Reverse((*busy, self.asked, slot)));
    }

    fn begin(&mut self, slot: u32, lane: u32, work: Work) {
        let time = Nanos(self.host.call.0.saturating_add(self.host.of_copy(work.copied_before()).0));
        self.slots[slot as usize] = Some((lane, State::Before(work)));
        self.in_flight += 1;
        self.work(lane, slot, time);
    }

    fn resume<S: Source>(&mut self, source: &mut S, slot: u32) {
        let Some((lane, state)) = self.slots[slot as usize].take() else { return };
        match state {
            State::Before(work) => {
                self.slots[slot as usize] = Some((lane, State::Called(work.clone())));
                self.call(slot, &work);
            }
            State::Behind { moved, opened } => {
                self.in_flight -= 1;
                source.ended(self.fs.now(), slot, moved, opened);
            }
            state @ State::Called(_) => self.slots[slot as usize] = Some((lane, state)),
        }
    }

    fn call(&mut self, slot: u32, work: &Work) {
        let stamp = self.model.as_mut().map(|model| model.next_stamp());
        let call = work.call(stamp);
        self.counts.add(&call);
        if let Some(model) = &mut self.model {
            model.sent(slot, &call);
        }
        self.fs.submit(call, slot);
    }

    fn answered<S: Source>(&mut self, source: &mut S, slot: u32, result: Result<Reply, Errno>) {
        let Some((lane, State::Called(work))) = self.slots[slot as usize].take() else { return };
        let reply = match result {
            Ok(reply) => reply,
            Err(errno) => {
                self.in_flight -= 1;
                let what = self.fs.read_only_reason().map_or(String::new(), |reason| format!(" ({reason})"));
                let call = verb(&work.call(None));
                self.ran.error.get_or_insert(format!("cannot {call} {}: {errno}{what}", source.path(slot)));
                source.failed(slot);
                source.stop();
                return;
            }
        };
        self.counts.moved(&work, &reply);
        let copied = if let Reply::Read { length, .. } = reply { work.copied_behind(length.into()) } else { 0 };
        let behind = self.host.of_copy(copied);
        match work.replied(&reply) {
            Next::Goes(work) => {
                let time = Nanos(behind.0.saturating_add(self.host.of_copy(work.copied_before()).0));
                if time == Nanos::ZERO {
                    self.slots[slot as usize] = Some((lane, State::Called(work.clone())));
                    self.call(slot, &work);
                } else {
                    self.slots[slot as usize] = Some((lane, State::Before(work)));
                    self.work(lane, slot, time);
                }
            }
            Next::Ends { moved, opened } => {
                self.slots[slot as usize] = Some((lane, State::Behind { moved, opened }));
                self.work(lane, slot, behind);
            }
        }
    }
}

impl Runner<'_> {
    /// Waits until everything that took effect is durable and nothing is in flight; how long that took.
    pub(super) fn sync(
        &mut self,
        moved: [u64; 3],
        control: &Control<'_>,
    ) -> Result<(Nanos, Option<String>), FilesError> {
        let begun = self.fs.now();
        let ran = self.run(&mut Last { is_asked: false, moved }, control)?;
        while !self.fs.is_idle() {
            let Some(event) = self.fs.next_event() else { break };
            self.fs.run_until(event.min(self.sampler.next_tick()));
            self.sampler.tick_if_due(self.fs, moved);
        }
        Ok((self.fs.now().since(begun), ran.error))
    }
}

/// One call behind all others, by which everything becomes durable.
struct Last {
    is_asked: bool,
    moved: [u64; 3],
}

impl Source for Last {
    fn size(&self) -> (usize, usize) {
        (1, 1)
    }

    fn begin(&mut self, _: Nanos) -> Result<Begin, FilesError> {
        let was_asked = std::mem::replace(&mut self.is_asked, true);
        if was_asked { Ok(Begin::Idle) } else { Ok(Begin::Work { slot: 0, lane: 0, work: Work::One(Call::Sync) }) }
    }

    fn ended(&mut self, _: Nanos, _: u32, _: u64, _: Option<FileId>) {}

    fn failed(&mut self, _: u32) {}

    fn stop(&mut self) {}

    fn path(&self, _: u32) -> String {
        "everything".to_string()
    }

    fn progress(&self) -> (u64, Option<u64>) {
        (self.moved[0], None)
    }

    fn moved(&self) -> [u64; 3] {
        self.moved
    }
}

/// Waits for one call, without the host's time.
pub(super) fn wait(fs: &mut FileSystem, call: Call) -> Result<Answer, FilesError> {
    fs.submit(call, 0);
    // A device without time ends everything now, and only a device that is stuck lets timers pass.
    let now = fs.now();
    if !fs.run_to_completion(now) && !fs.run_to_completion(Nanos::MAX) {
        return Err(FilesError::Silent { calls: 1 });
    }
    fs.answers().pop().ok_or(FilesError::Silent { calls: 1 })
}

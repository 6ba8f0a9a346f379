//! What every operation waited for, while a caller asks for it.
//!
//! Each operation leaves a record of the instants at which it went on, each die and each channel a log of what occupied
//! it. Nothing else is written while the chips work; the time of an operation is explained afterwards, from its end back
//! to any earlier instant:
//!
//! ```text
//!   submitted    ready        started     granted     moved       array       sensed    granted_out     done
//!       |----------|------------|-----------|-----------|-----------|-----------|-----------|-----------|
//!         what it   die log:     channel     its own     die log:    its own     channel     its own
//!         waits for whose work   log: whose  commands    the program array,      log         data out
//!         ends      it was       transfers   and data    before it   suspended             (reads only)
//! ```
//!
//! What an operation waited for before it was ready is the time of the operation that released it, and before it was
//! submitted that of the operation whose end led to it. So the time is explained without a gap as far back as one end
//! led to the next. The logs are cut off where no caller can ask any more.

use std::collections::VecDeque;

use ssdlab_base::Nanos;

use crate::{Cause, DieId, OpKind};

/// What a stretch of an operation's time was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stay {
    /// The die worked for another operation: from its first command on the channel to its last data.
    Die(OpKind, Cause),
    /// The die had nothing that could start: an earlier page of the block waits for its data, and pages go in order. Or the
    /// drive has one queue, and those before it are still to be sent.
    Order,
    /// The die stopped or resumed a program or an erase.
    Suspend,
    /// The controller's processor had not issued the operation: it worked on its map entries and on what came before.
    Issue,
    /// The channel carried others' commands and data.
    Channel(Cause),
    /// Its own commands and data were on the channel, and those of the planes that work with it.
    Transfer,
    /// The array worked for it.
    Array(OpKind),
}

/// A stretch of time and what it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// What it was.
    pub stay: Stay,
    /// Why the operation was done whose time this is.
    pub cause: Cause,
    /// From.
    pub from: Nanos,
    /// To.
    pub to: Nanos,
}

/// The number of an operation's record, in order of submission.
pub type RecordId = u64;

const NOTHING: RecordId = u64::MAX;

/// Records kept before the first look at what can go.
const FEW: usize = 4096;

#[derive(Clone, Copy, Debug)]
struct Record {
    die: DieId,
    channel: u32,
    kind: OpKind,
    cause: Cause,
    /// What its end had to wait for, and what led to its submission.
    released_by: RecordId,
    led_to_by: RecordId,
    submitted: Nanos,
    ready: Nanos,
    issued: Nanos,
    started: Nanos,
    granted: Nanos,
    moved: Nanos,
    array: Nanos,
    sensed: Nanos,
    granted_out: Nanos,
    /// `MAX` while it is in flight.
    done: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Occupant {
    Nobody,
    Operation(OpKind, Cause),
    Suspending,
}

#[derive(Clone, Copy, Debug)]
struct Transfer {
    from: Nanos,
    to: Nanos,
    cause: Cause,
}

/// Records and logs.
#[derive(Debug)]
pub(super) struct Waits {
    records: VecDeque<Record>,
    /// The number of the first record kept.
    base: RecordId,
    by_op: Vec<RecordId>,
    /// What occupies each die from each instant on.
    dies: Vec<VecDeque<(Nanos, Occupant)>>,
    channels: Vec<VecDeque<Transfer>>,
    /// The operation whose end is being dealt with.
    led_to_by: RecordId,
    /// Entries at which what no caller can ask for any more is let go.
    limit: usize,
}

impl Waits {
    pub(super) fn new(dies: usize, channels: usize) -> Waits {
        Waits {
            records: VecDeque::new(),
            base: 0,
            by_op: Vec::new(),
            dies: vec![VecDeque::from([(Nanos::ZERO, Occupant::Nobody)]); dies],
            channels: vec![VecDeque::new(); channels],
            led_to_by: NOTHING,
            limit: FEW,
        }
    }

    fn get(&self, number: RecordId) -> Option<&Record> {
        self.records.get(usize::try_from(number.checked_sub(self.base)?).ok()?)
    }

    fn change(&mut self, op: u32, change: impl FnOnce(&mut Record)) {
        let number = self.by_op.get(op as usize).and_then(|number| number.checked_sub(self.base));
        if let Some(record) = number.and_then(|index| self.records.get_mut(index as usize)) {
            change(record);
        }
    }

    #[cold]
    pub(super) fn submitted(&mut self, op: u32, place: (DieId, u32), what: (OpKind, Cause), now: Nanos) {
        let ((die, channel), (kind, cause)) = (place, what);
        if self.by_op.len() <= op as usize {
            self.by_op.resize(op as usize + 1, NOTHING);
        }
        let earlier = self.get(self.by_op[op as usize]);
        assert!(
            earlier.is_none_or(|record| record.done <= now),
            "operation {op} is submitted at {now}, while in flight"
        );
        self.by_op[op as usize] = self.base + self.records.len() as u64;
        self.records.push_back(Record {
            die,
            channel,
            kind,
            cause,
            released_by: NOTHING,
            led_to_by: self.led_to_by,
            submitted: now,
            ready: now,
            issued: now,
            started: now,
            granted: now,
            moved: now,
            array: now,
            sensed: now,
            granted_out: now,
            done: Nanos::MAX,
        });
    }

    /// The last operation that `op` had to wait for has ended.
    #[cold]
    pub(super) fn released(&mut self, op: u32, by: u32, now: Nanos) {
        let by = self.by_op.get(by as usize).copied().unwrap_or(NOTHING);
        self.change(op, |record| {
            assert!(now >= record.submitted, "ready at {now}, submitted at {}", record.submitted);
            (record.released_by, record.ready) = (by, now);
        });
    }

    /// The processor has issued `op`.
    #[cold]
    pub(super) fn issued(&mut self, op: u32, now: Nanos) {
        self.change(op, |record| {
            assert!(now >= record.submitted, "issued at {now}, submitted at {}", record.submitted);
            record.issued = now;
        });
    }

    /// The die takes an operation on, or stages it behind the one that runs.
    #[cold]
    pub(super) fn started(&mut self, op: u32, now: Nanos) {
        self.change(op, |record| {
            assert!(now >= record.ready, "started at {now}, ready at {}", record.ready);
            (record.started, record.granted, record.moved) = (now, now, now);
        });
    }

    #[cold]
    pub(super) fn moved_in(&mut self, op: u32, from: Nanos, to: Nanos) {
        self.change(op, |record| {
            assert!(from >= record.started, "on the channel at {from}, started at {}", record.started);
            (record.granted, record.moved) = (from, to);
        });
    }

    #[cold]
    pub(super) fn array_from(&mut self, op: u32, from: Nanos) {
        self.change(op, |record| {
            assert!(from >= record.moved, "on the array at {from}, its data in at {}", record.moved);
            record.array = from;
        });
    }

    #[cold]
    pub(super) fn sensed(&mut self, op: u32, now: Nanos) {
        self.change(op, |record| {
            assert!(now >= record.array, "sensed at {now}, on the array from {}", record.array);
            record.sensed = now;
        });
    }

    #[cold]
    pub(super) fn moves_out(&mut self, op: u32, from: Nanos) {
        self.change(op, |record| {
            assert!(from >= record.sensed, "data out at {from}, sensed at {}", record.sensed);
            record.granted_out = from;
        });
    }

    #[cold]
    pub(super) fn done(&mut self, op: u32, now: Nanos) {
        self.change(op, |record| {
            assert_eq!(record.done, Nanos::MAX, "an operation ends once, and again at {now}");
            assert!(now >= record.array, "done at {now}, on the array from {}", record.array);
            record.done = now;
        });
    }

    /// From `at` on the die works for an operation; with `None`, for none.
    #[cold]
    pub(super) fn occupied(&mut self, die: DieId, at: Nanos, by: Option<(OpKind, Cause)>) {
        let occupant = by.map_or(Occupant::Nobody, |(kind, cause)| Occupant::Operation(kind, cause));
        self.note(die, at, occupant);
    }

    /// The die stops an operation from `at` on.
    #[cold]
    pub(super) fn suspends(&mut self, die: DieId, at: Nanos) {
        self.note(die, at, Occupant::Suspending);
    }

    /// The die resumes an operation: it is at work again from `working` on.
    #[cold]
    pub(super) fn resumes(&mut self, die: DieId, (at, working): (Nanos, Nanos), what: (OpKind, Cause)) {
        self.note(die, at, Occupant::Suspending);
        self.note(die, working, Occupant::Operation(what.0, what.1));
    }

    fn note(&mut self, die: DieId, at: Nanos, occupant: Occupant) {
        let log = &mut self.dies[die.index()];
        // What was to come, such as the work after a resumption that is itself suspended, does not come.
        while log.back().is_some_and(|(from, _)| *from >= at) {
            log.pop_back();
        }
        log.push_back((at, occupant));
    }

    #[cold]
    pub(super) fn carried(&mut self, channel: u32, from: Nanos, to: Nanos, cause: Cause) {
        let before = self.channels[channel as usize].back();
        assert!(before.is_none_or(|last| last.to <= from), "channel {channel} carries two transfers at {from}");
        self.channels[channel as usize].push_back(Transfer { from, to, cause });
    }

    /// The time of a record up to `to`, back to `from`, the latest first; returns how far back it is explained.
    fn explain(&self, mut number: RecordId, from: Nanos, mut to: Nanos, out: &mut Vec<Stretch>) -> Nanos {
        while to > from {
            let Some(record) = self.get(number).filter(|record| record.done >= to && record.submitted < to) else {
                break;
            };
            self.explain_own(record, from, to, out);
            to = to.min(record.ready.max(from));
            if to > record.submitted {
                number = record.released_by;
            } else {
                number = record.led_to_by;
            }
        }
        to
    }

    /// From the moment a record was ready.
    fn explain_own(&self, record: &Record, from: Nanos, to: Nanos, out: &mut Vec<Stretch>) {
        let mut walk = Walk { cause: record.cause, from: from.max(record.ready), to, out };
        let is_checked_copy = record.kind == OpKind::Copyback && record.sensed > record.moved;
        if is_checked_copy {
            walk.die(&self.dies[record.die.index()], record.array, record.done, Some(record.kind));
            walk.put(Stay::Transfer, record.granted_out, record.array);
            walk.channel(&self.channels[record.channel as usize], record.sensed, record.granted_out);
            walk.put(Stay::Array(record.kind), record.moved, record.sensed);
        } else if record.kind == OpKind::Read {
            walk.put(Stay::Transfer, record.granted_out, record.done);
            walk.channel(&self.channels[record.channel as usize], record.sensed, record.granted_out);
            walk.put(Stay::Array(record.kind), record.array, record.sensed);
        } else {
            walk.die(&self.dies[record.die.index()], record.array, record.done, Some(record.kind));
        }
        if !is_checked_copy {
            walk.die(&self.dies[record.die.index()], record.moved, record.array, None);
        }
        walk.put(Stay::Transfer, record.granted, record.moved);
        walk.channel(&self.channels[record.channel as usize], record.started, record.granted);
        walk.die(&self.dies[record.die.index()], record.ready.max(record.issued), record.started, None);
        walk.put(Stay::Issue, record.ready, record.issued);
    }

    fn entries(&self) -> usize {
        let dies = self.dies.iter().map(VecDeque::len).sum::<usize>();
        self.records.len() + dies + self.channels.iter().map(VecDeque::len).sum::<usize>()
    }

    /// No caller will ask for what was before `at`.
    fn forget(&mut self, at: Nanos) {
        while self.records.front().is_some_and(|record| record.done <= at) {
            self.records.pop_front();
            self.base += 1;
        }
        for log in &mut self.dies {
            while log.get(1).is_some_and(|(from, _)| *from <= at) {
                log.pop_front();
            }
        }
        for log in &mut self.channels {
            while log.front().is_some_and(|transfer| transfer.to <= at) {
                log.pop_front();
            }
        }
        self.limit = FEW.max(2 * self.entries());
    }
}

/// A walk from `to` back to `from`.
struct Walk<'a> {
    cause: Cause,
    from: Nanos,
    to: Nanos,
    out: &'a mut Vec<Stretch>,
}

impl Walk<'_> {
    /// The part of a stretch that the walk covers.
    fn put(&mut self, stay: Stay, from: Nanos, to: Nanos) {
        let (from, to) = (from.max(self.from), to.min(self.to));
        if from >= to {
            return;
        }
        match self.out.last_mut() {
            Some(later) if later.stay == stay && later.cause == self.cause && later.from == to => later.from = from,
            _ => self.out.push(Stretch { stay, cause: self.cause, from, to }),
        }
    }

    /// What the die did from `from` to `to`; `own` is what the operation itself does there.
    fn die(&mut self, log: &VecDeque<(Nanos, Occupant)>, from: Nanos, to: Nanos, own: Option<OpKind>) {
        let (from, to) = (from.max(self.from), to.min(self.to));
        if from >= to {
            return;
        }
        let mut end = to;
        let mut index = log.partition_point(|(begun, _)| *begun < to);
        while index > 0 && end > from {
            index -= 1;
            let (begun, occupant) = log[index];
            let stay = match occupant {
                Occupant::Operation(kind, _) if own == Some(kind) => Stay::Array(kind),
                Occupant::Operation(kind, cause) => Stay::Die(kind, cause),
                Occupant::Suspending => Stay::Suspend,
                Occupant::Nobody => Stay::Order,
            };
            self.put(stay, begun.max(from), end);
            end = begun;
        }
    }

    fn channel(&mut self, log: &VecDeque<Transfer>, from: Nanos, to: Nanos) {
        let (from, to) = (from.max(self.from), to.min(self.to));
        if from >= to {
            return;
        }
        let mut index = log.partition_point(|transfer| transfer.from < to);
        while index > 0 && log[index - 1].to > from {
            index -= 1;
            let transfer = log[index];
            self.put(Stay::Channel(transfer.cause), transfer.from.max(from), transfer.to.min(to));
        }
    }
}

impl super::Flash {
    /// Records from now on what operations wait for, or stops; nothing may be in flight.
    pub fn record_waits(&mut self, on: bool) {
        assert_eq!(self.in_flight, 0, "waits are recorded from an instant at which the chips are idle");
        self.waits = on.then(|| Box::new(Waits::new(self.dies.len(), self.channels.len())));
        self.watch_if_needed();
    }

    /// The record of an operation that has ended in the last step; `None` while nothing is recorded.
    pub fn record_of(&self, op: super::operation::OpId) -> Option<RecordId> {
        let number = self.waits.as_ref()?.by_op.get(op as usize)?;
        (*number != NOTHING).then_some(*number)
    }

    /// What is submitted from now on is submitted because this one ended; with `None`, for another reason.
    pub fn leads_on(&mut self, record: Option<RecordId>) {
        if let Some(waits) = &mut self.waits {
            waits.led_to_by = record.unwrap_or(NOTHING);
        }
    }

    /// What the time from `from` to `to`, at which an operation ended, was spent on, from its end backwards: its own time,
    /// and before that the time of what led to it. Appends the latest first; returns how far back it is explained.
    pub fn explain(&self, record: RecordId, from: Nanos, to: Nanos, out: &mut Vec<Stretch>) -> Nanos {
        self.waits.as_ref().map_or(to, |waits| waits.explain(record, from, to, out))
    }

    /// Whether there is so much recorded that [`Flash::forget_waits`](super::Flash::forget_waits) is due.
    pub fn records_are_many(&self) -> bool {
        self.waits.as_ref().is_some_and(|waits| waits.records.len() >= waits.limit)
    }

    /// Lets go of what was before `at`.
    pub fn forget_waits(&mut self, at: Nanos) {
        if let Some(waits) = &mut self.waits {
            waits.forget(at);
        }
    }
}

//! The paths of requests, while a caller asks for them: the drive says when a command goes on, and what ended its wait.
//!
//! A command's time is explained from one such instant to the next, so its segments follow one another. A wait that a
//! flash operation ended is explained by the chips: that operation's time, and before it the time of what led to it. Where
//! that does not reach back to the beginning of a wait, an operation explains the rest whose end was in vain: the command
//! was tried again and still found no space. A drive that is not asked keeps nothing and branches once at each instant.

use ssdlab_base::{Nanos, Request};
use ssdlab_flash::{Flash, RecordId, Stretch};

use super::Drive;
use crate::critical_path::{Part, Path, Segment, Stage};

/// What ends waits now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    /// A flash operation that has ended.
    Operation(RecordId),
    /// The write buffer's latency has passed.
    BufferLatency,
    /// A copy in DRAM has ended.
    Copy,
    /// Something else.
    Other,
}

/// A command on its way.
#[derive(Clone, Debug)]
struct Open {
    path: Path,
    /// Up to where its time is explained.
    until: Nanos,
    /// What it waits for, where it found no way to take effect.
    stalled: Option<Stage>,
    /// Operations that ended, and when, without letting it take effect; the last one did.
    in_vain: Vec<(RecordId, Nanos)>,
    /// It is in the drive, and what the chips record from `until` on is still needed.
    inside: bool,
}

/// All paths.
#[derive(Debug)]
pub(super) struct LatencyTrace {
    /// By command.
    open: Vec<Option<Open>>,
    /// Of completed commands, in the order of their completions.
    pub(super) closed: Vec<Path>,
    ends: Ends,
    stretches: Vec<Stretch>,
    backwards: Vec<Segment>,
}

impl LatencyTrace {
    pub(super) const fn new() -> LatencyTrace {
        LatencyTrace {
            open: Vec::new(),
            closed: Vec::new(),
            ends: Ends::Other,
            stretches: Vec::new(),
            backwards: Vec::new(),
        }
    }

    #[cold]
    pub(super) fn begin(&mut self, command: u32, request: &Request) {
        let slot = command as usize;
        if self.open.len() <= slot {
            self.open.resize(slot + 1, None);
        }
        let path = Path { request: *request, segments: Vec::new() };
        self.open[slot] = Some(Open { path, until: request.at, stalled: None, in_vain: Vec::new(), inside: false });
    }

    fn open(&mut self, command: u32) -> &mut Open {
        self.open[command as usize].as_mut().expect("a command is recorded from its arrival to its completion")
    }

    /// The command's time up to `to` was one thing.
    #[cold]
    pub(super) fn put(&mut self, command: u32, part: Part, to: Nanos) {
        self.open(command).put(Stage::Request, part, to);
    }

    #[cold]
    pub(super) fn enters(&mut self, command: u32, now: Nanos) {
        let open = self.open(command);
        open.inside = true;
        open.put(Stage::Request, Part::Arbitration, now);
    }

    /// The command cannot take effect, or still not.
    #[cold]
    pub(super) fn stalls(&mut self, command: u32, stage: Stage, flash: &Flash, now: Nanos) {
        if self.open(command).stalled != Some(stage) {
            self.explain(command, flash, now);
            self.open(command).stalled = Some(stage);
        } else if let Ends::Operation(record) = self.ends {
            self.open(command).in_vain.push((record, now));
        }
    }

    /// What the command waited for up to now has ended.
    #[cold]
    pub(super) fn explain(&mut self, command: u32, flash: &Flash, now: Nanos) {
        let ends = self.ends;
        let open = self.open[command as usize].as_mut().expect("a command is recorded while it is in the drive");
        let stalled = open.stalled.take();
        if open.until == now {
            open.in_vain.clear();
            return;
        }
        match ends {
            Ends::BufferLatency if stalled.is_none() => return open.put(Stage::Request, Part::BufferLatency, now),
            Ends::Operation(record) => open.in_vain.push((record, now)),
            Ends::Copy if stalled.is_none() => return open.put(Stage::Request, Part::Copy, now),
            Ends::BufferLatency | Ends::Copy | Ends::Other => {}
        }
        self.backwards.clear();
        let mut to = now;
        while to > open.until {
            let explained = open.explain_before(to, flash, &mut self.stretches);
            for stretch in self.stretches.drain(..) {
                let stage = stalled.unwrap_or_else(|| Stage::of(stretch.cause));
                let (from, to) = (stretch.from, stretch.to);
                self.backwards.push(Segment { stage, part: Part::Flash(stretch.stay), from, to });
            }
            if explained == to {
                let before = open.in_vain.iter().rev().map(|(_, at)| *at).find(|at| *at < to);
                let from = before.unwrap_or(open.until).max(open.until);
                let stage = stalled.unwrap_or(Stage::Request);
                self.backwards.push(Segment { stage, part: Part::Other, from, to });
                to = from;
            } else {
                to = explained;
            }
        }
        open.in_vain.clear();
        for segment in self.backwards.drain(..).rev() {
            if segment.from == open.until {
                open.put(segment.stage, segment.part, segment.to);
            }
        }
    }

    #[cold]
    pub(super) fn close(&mut self, command: u32) {
        if let Some(open) = self.open[command as usize].take() {
            self.closed.push(open.path);
        }
    }

    /// Back to when the chips must remember.
    fn needed_since(&self, now: Nanos) -> Nanos {
        let inside = self.open.iter().flatten().filter(|open| open.inside);
        inside.map(|open| open.until).min().unwrap_or(now).min(now)
    }
}

/// Operations that are tried for one that explains what was before an instant.
const TRIES: usize = 32;

impl Open {
    /// Explains time up to `to` by the operation that ended then or, where that had not begun, by one that went on then.
    fn explain_before(&self, to: Nanos, flash: &Flash, out: &mut Vec<Stretch>) -> Nanos {
        let first = self.in_vain.partition_point(|(_, at)| *at < to);
        let tried = self.in_vain[first..].iter().take(TRIES);
        tried
            .map(|(record, _)| flash.explain(*record, self.until, to, out))
            .find(|explained| *explained < to)
            .unwrap_or(to)
    }

    fn put(&mut self, stage: Stage, part: Part, to: Nanos) {
        if to <= self.until {
            return;
        }
        match self.path.segments.last_mut() {
            Some(last) if (last.stage, last.part) == (stage, part) => last.to = to,
            _ => self.path.segments.push(Segment { stage, part, from: self.until, to }),
        }
        self.until = to;
    }
}

impl Drive {
    /// Records the paths of requests from now on, or stops. Only while idle.
    pub fn record_paths(&mut self, on: bool) {
        assert_eq!(
            self.commands.outstanding, 0,
            "paths are recorded from an instant at which no command is outstanding"
        );
        self.media.flash.record_waits(on);
        self.paths = on.then(|| Box::new(LatencyTrace::new()));
    }

    /// Whether the paths of requests are recorded.
    pub const fn records_paths(&self) -> bool {
        self.paths.is_some()
    }

    /// Moves the paths of the completions since the last call to the end of `to`, in the same order; nothing where they
    /// are not recorded.
    pub fn take_paths(&mut self, to: &mut Vec<Path>) {
        if let Some(paths) = &mut self.paths {
            to.append(&mut paths.closed);
        }
    }

    /// The command enters the drive now; with its `data` bytes it is inside at `ready`.
    #[cold]
    #[inline(never)]
    pub(super) fn path_enters(&mut self, command: u32, (processed, work): (Nanos, Nanos), data: u64, ready: Nanos) {
        let (now, on_link) = (self.media.now, self.host.interface.time_on_link(data));
        let overhead = self.host.interface.overhead(self.commands[command].request.op);
        let begun = Nanos(processed.0.saturating_sub(work.0));
        if let Some(paths) = &mut self.paths {
            paths.enters(command, now);
            paths.put(command, Part::Controller, now + overhead);
            paths.put(command, Part::ControllerWait, begun);
            paths.put(command, Part::Controller, processed);
            paths.put(command, Part::LinkWait, ready - on_link.min(ready));
            paths.put(command, Part::Link, ready);
        }
    }

    /// The command's data goes to the host and is there at `ready`.
    #[inline]
    pub(super) fn path_to_host(&mut self, command: u32, bytes: u64, ready: Nanos) {
        if let Some(paths) = &mut self.paths {
            paths.put(command, Part::LinkWait, ready - self.host.interface.time_on_link(bytes));
            paths.put(command, Part::Link, ready);
        }
    }

    /// What ends waits from here on.
    #[cold]
    pub(super) fn waits_end_by(&mut self, ends: Ends) {
        if let Some(paths) = &mut self.paths {
            paths.ends = ends;
            let leads = if let Ends::Operation(record) = ends { Some(record) } else { None };
            self.media.flash.leads_on(leads);
        }
    }

    /// An operation has ended, and what follows does because of it.
    #[cold]
    pub(super) fn waits_end_by_operation(&mut self, op: ssdlab_flash::OpId) {
        let ends = self.media.flash.record_of(op).map_or(Ends::Other, Ends::Operation);
        self.waits_end_by(ends);
    }

    /// What the command waited for has ended, as the path of the command is to say.
    #[inline]
    pub(super) fn wait_ended(&mut self, command: u32) {
        if let Some(paths) = &mut self.paths {
            paths.explain(command, &self.media.flash, self.media.now);
        }
    }

    /// The command cannot take effect before something else has happened.
    #[inline]
    pub(super) fn wait_begins(&mut self, command: u32, stage: Stage) {
        if let Some(paths) = &mut self.paths {
            paths.stalls(command, stage, &self.media.flash, self.media.now);
        }
    }

    /// Lets go of what no path will need.
    #[cold]
    pub(super) fn forget_waits(&mut self) {
        if let Some(paths) = &self.paths
            && self.media.flash.records_are_many()
        {
            let since = paths.needed_since(self.media.now);
            self.media.flash.forget_waits(since);
        }
    }
}

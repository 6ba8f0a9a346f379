//! A trace as a workload: when its requests are sent, and where on the drive they go.
//!
//! ```text
//! Trace -> batch -> AddressMap (exact, wrap, fit; may cut a request in pieces) -> Discipline (timed, closed) -> Next
//! ```
//!
//! The file is read once before the run: that gives the number of requests, refuses a drive that is too small before
//! anything is sent, and lays out a dense remap. Sending allocates nothing.

mod address;
mod discipline;
mod stamps;

use ssdlab_base::{Nanos, Op, Request, SECTOR_BYTES, format_size};

pub use address::{FIT_EXTENT_BYTES, Fit};
pub use discipline::Discipline;

use crate::trace::Trace;
use crate::{Next, Workload, WorkloadError};
use address::AddressMap;
use stamps::Stamps;

/// How a trace is replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplaySettings {
    /// When requests are sent.
    pub discipline: Discipline,
    /// Where they go on a drive of another size.
    pub fit: Fit,
    /// At most this many of the trace's requests, from its start.
    pub limit: Option<u64>,
}

/// A trace being replayed.
pub struct TraceReplay {
    trace: Trace,
    settings: ReplaySettings,
    map: AddressMap,
    total: u64,
    notes: Vec<String>,

    batch: Vec<Request>,
    position: usize,
    /// Requests taken from the trace, and those of them that were sent to their last piece.
    taken: u64,
    sent: u64,
    /// What is left of the request at hand, in the trace's addresses.
    rest: Option<Request>,
    /// The next piece, on the drive's addresses, waiting for its time.
    ready: Option<Request>,
    /// Its words, where it is a command of a set.
    words: Vec<u64>,
    set: Option<&'static str>,
    /// When the replay began.
    start: Option<Nanos>,
    outstanding: u64,
    tag: u32,
}

/// What the pass before the run learns.
#[derive(Default)]
struct Survey {
    requests: u64,
    end_sector: u64,
    last: Nanos,
    stamps: Stamps,
}

impl TraceReplay {
    /// Reads the trace once and prepares to replay it on a drive of `capacity_sectors` sectors.
    ///
    /// A trace that does not fit the drive under the settings is refused here.
    pub fn new(trace: Trace, settings: ReplaySettings, capacity_sectors: u64) -> Result<TraceReplay, WorkloadError> {
        let mut trace = trace;
        let name = trace.name();
        if capacity_sectors == 0 {
            return Err(WorkloadError(format!("{name} cannot be replayed on a drive without a single sector")));
        }
        let limit = settings.limit.unwrap_or(u64::MAX);
        if limit == 0 {
            return Err(WorkloadError(format!(
                "{name}: a limit of 0 requests leaves nothing to replay; expected at least 1"
            )));
        }
        let mut map = AddressMap::new(settings.fit, capacity_sectors);
        let mut survey = Survey::default();
        let mut batch = Vec::new();
        trace.rewind()?;
        'file: while trace.read(&mut batch)? > 0 {
            for request in &batch {
                if survey.requests == limit {
                    break 'file;
                }
                survey.requests += 1;
                survey.last = request.at;
                survey.stamps.learn(request.at);
                if !request.opcode.is_block() {
                    continue;
                }
                survey.end_sector = survey.end_sector.max(request.end());
                map.learn(request).map_err(|why| WorkloadError(format!("{name} {why}")))?;
            }
        }
        let mut notes = trace.notes();
        if let Discipline::Timed { .. } = settings.discipline {
            notes.extend(survey.stamps.note(&name));
            notes.extend(trace.gap());
        }
        if settings.fit == Fit::Exact && survey.end_sector > capacity_sectors {
            let end = survey.end_sector.saturating_mul(SECTOR_BYTES);
            let capacity = capacity_sectors.saturating_mul(SECTOR_BYTES);
            return Err(WorkloadError(format!(
                "{name} reaches to {} (byte {end}), but the drive ends at {} (byte {capacity}): take a larger drive, \
                 `--fit` (packs the trace's footprint densely), or `--wrap` (takes addresses modulo the drive's size)",
                format_size(end),
                format_size(capacity)
            )));
        }
        if settings.discipline.arrival(survey.last).is_none() {
            return Err(WorkloadError(format!(
                "{name} lasts {}; replayed {} it would end beyond the horizon of virtual time, 73 years (2^61 nanoseconds)",
                survey.last, settings.discipline
            )));
        }
        let set = trace.command_set();
        if let Some(set) = set.filter(|_| settings.fit != Fit::Exact) {
            return Err(WorkloadError(format!(
                "{name} has commands of the set '{set}', whose addresses cannot be moved: leave out `--{}`",
                settings.fit
            )));
        }
        map.freeze();
        let mut replay = TraceReplay {
            trace,
            settings,
            map,
            total: survey.requests,
            notes,
            batch,
            position: 0,
            taken: 0,
            sent: 0,
            rest: None,
            ready: None,
            words: Vec::new(),
            set,
            start: None,
            outstanding: 0,
            tag: 0,
        };
        replay.rewind()?;
        Ok(replay)
    }

    /// The trace's requests that will be sent.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// What a user should know of how the trace was read and placed, so far.
    fn describe(&self) -> Vec<String> {
        let mut notes = self.notes.clone();
        let name = self.trace.name();
        let map = &self.map.counts;
        let mut count = |number: u64, one: &str, many: &str| match number {
            0 => {}
            1 => notes.push(format!("{name}: 1 {one}")),
            _ => notes.push(format!("{name}: {number} {many}")),
        };
        if self.settings.fit == Fit::Wrap {
            count(
                map.moved,
                "request lay beyond the drive's end and was wrapped",
                "requests lay beyond the drive's end and were wrapped",
            );
        }
        count(
            map.dropped,
            "trim of what the trace never reads or writes was left out",
            "trims of what the trace never reads or writes were left out",
        );
        if map.split > 0 {
            notes.push(format!(
                "{name}: the drive was sent {} requests for {} of the trace: {} {} in pieces to fit the drive's addresses",
                self.sent - map.dropped + map.further_pieces,
                self.sent,
                map.split,
                if map.split == 1 { "was cut" } else { "were cut" }
            ));
        }
        notes
    }

    /// The next request of the trace, in its own addresses.
    fn fetch(&mut self) -> Result<Option<Request>, WorkloadError> {
        if self.taken == self.total {
            return Ok(None);
        }
        if self.position == self.batch.len() {
            self.position = 0;
            if self.trace.read(&mut self.batch)? == 0 {
                return Err(WorkloadError(format!(
                    "{}: the file had {} requests when it was opened, now it ends after {}: it has changed",
                    self.trace.name(),
                    self.total,
                    self.taken
                )));
            }
        }
        let request = self.batch[self.position];
        self.position += 1;
        self.taken += 1;
        Ok(Some(request))
    }

    /// The next piece on the drive's addresses; nothing at the trace's end.
    fn piece(&mut self) -> Result<Option<Request>, WorkloadError> {
        loop {
            let (mut rest, begun) = match self.rest.take() {
                Some(rest) => (rest, true),
                None => match self.fetch()? {
                    Some(request) => (request, false),
                    None => return Ok(None),
                },
            };
            if !rest.opcode.is_block() {
                self.words.clear();
                self.words.extend_from_slice(self.trace.words(&rest));
                return Ok(Some(rest));
            }
            if rest.op == Op::Flush {
                return Ok(Some(rest));
            }
            let piece = self.map.cut(&mut rest, begun).map_err(|why| {
                WorkloadError(format!("{} {why}: the file has changed since it was opened", self.trace.name()))
            })?;
            if rest.sectors > 0 {
                self.rest = Some(rest);
            }
            match piece {
                Some(piece) => return Ok(Some(piece)),
                // Nothing of what is left is on the drive: the request counts as sent.
                None => self.sent += 1,
            }
        }
    }
}

impl Workload for TraceReplay {
    fn next(&mut self, now: Nanos) -> Result<Next, WorkloadError> {
        let start = *self.start.get_or_insert(now);
        if self.ready.is_none() {
            self.ready = self.piece()?;
        }
        let Some(mut request) = self.ready else {
            return Ok(Next::Done);
        };
        match self.settings.discipline {
            Discipline::Closed { depth } if self.outstanding >= u64::from(depth.get()) => {
                return Ok(Next::WaitForCompletion);
            }
            Discipline::Closed { .. } => request.at = now,
            Discipline::Timed { .. } => {
                let after = self.settings.discipline.arrival(request.at).ok_or_else(|| {
                    WorkloadError(format!("{}: the file has changed since it was opened", self.trace.name()))
                })?;
                request.at = start + after;
                if request.at > now {
                    return Ok(Next::WaitUntil(request.at));
                }
            }
        }
        self.ready = None;
        self.sent += u64::from(self.rest.is_none());
        self.outstanding += 1;
        request.tag = self.tag;
        self.tag = self.tag.wrapping_add(1);
        Ok(Next::Request(request))
    }

    fn words(&self) -> &[u64] {
        &self.words
    }

    fn command_set(&self) -> Option<&'static str> {
        self.set
    }

    fn completed(&mut self, _now: Nanos, _tag: u32) {
        debug_assert!(self.outstanding > 0, "a completion without a request");
        self.outstanding = self.outstanding.saturating_sub(1);
    }

    fn progress(&self) -> (u64, Option<u64>) {
        (self.sent, Some(self.total))
    }

    fn notes(&self) -> Vec<String> {
        self.describe()
    }

    fn rewind(&mut self) -> Result<(), WorkloadError> {
        self.trace.rewind()?;
        self.map.counts = address::MapCounts::default();
        self.batch.clear();
        self.position = 0;
        self.taken = 0;
        self.sent = 0;
        self.rest = None;
        self.ready = None;
        self.words.clear();
        self.start = None;
        self.outstanding = 0;
        self.tag = 0;
        Ok(())
    }
}

//! One job while it runs: what it sends next, and when it may.
//!
//! The order of questions is fio's own loop (`do_io`): is the time up, is everything sent, is a slot free, is it time
//! to think, to flush, is the rate kept, and only then where the request goes and how long it is.

mod addresses;
mod in_zones;
mod pacing;

use ssdlab_base::{Nanos, Op, Request, Rng, SECTOR_BYTES, rng};

use crate::draw::{Permutation, below};

use super::mode::{Kind, READ, TRIM, WRITE};
use super::plan::{JobPlan, MapKind};
use super::random_map::RandomMap;
use super::zones::ZoneTable;
use crate::WorkloadError;

/// What a job wants at a point in time.
pub(crate) enum Step {
    /// Send this; its tag is a slot of the job.
    Send(Request),
    /// Nothing before this time, which lies ahead.
    Sleep(Nanos),
    /// Nothing before one of its requests completes.
    Blocked,
    /// Nothing ever again, and nothing in flight.
    Finished,
}

/// What a job with zones does next.
enum InZone {
    Transfer(Request),
    /// A zone is reset first.
    Reset(Request),
    /// Nothing before one of its requests completes.
    Wait,
    /// Nothing more.
    Over,
}

/// Thinking: fio's `thinktime`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pause {
    None,
    /// Wait until nothing is in flight.
    Drain,
    Until(Nanos),
}

/// Random transfers drawn at a time, so that who sends them can fetch what they need side by side.
const DRAWN_AHEAD: usize = 32;

const NO_FLUSH: u32 = u32::MAX;
const NOWHERE: u64 = u64::MAX;

/// A running job.
pub(crate) struct JobRun {
    pub(crate) plan: JobPlan,
    rng: Rng,
    queue: u16,
    /// Free slots; a slot is the tag of one request in flight.
    free: Vec<u32>,
    flush_tag: u32,
    started: Nanos,
    deadline: Nanos,
    ended: bool,
    /// Whether any of rates, pauses or flushes has to be looked at.
    paced: bool,
    issued: [u64; 3],
    issued_bytes: [u64; 3],
    completed: u64,
    /// Writes sent when the last flush was. fio 3.33 repeats a flush after every read until the next write;
    /// its manual, and this, have one for every so many writes.
    flushed_writes: u64,
    /// A direction drawn that waits for its rate.
    pending: Option<usize>,
    poisson_next: [Nanos; 3],
    pause: Pause,
    /// A transfer was sent since the last look at `thinktime`.
    sent_since_think: bool,
    think_mark: u64,
    last_think: Nanos,
    /// Where the last transfer of each direction began and ended, in bytes of the drive.
    last_start: [u64; 3],
    last_end: [u64; 3],
    /// Where the region begins; with holes between zones, the zone.
    base: u64,
    /// Draws until a random job takes a new offset.
    until_random: u64,
    /// Bytes drawn in all, in the pass, and of the pass's those that fio counts.
    drawn_bytes: u64,
    pass_drawn: u64,
    pass_counted: u64,
    /// Passes that `loops` asks for and that have not begun.
    loops_left: u64,
    /// A transfer was sent since the last flush.
    sent_since_flush: bool,
    /// A pass ended that a flush follows, and the transfer that was drawn behind it.
    pass_ended: bool,
    behind_flush: Option<Request>,
    /// A pass without a transfer comes last, and ends with a flush.
    empty_pass: bool,
    /// The next request writes what the last one trimmed.
    write_next: bool,
    permutation: Option<Permutation>,
    pass_position: u64,
    map: Option<RandomMap>,
    /// Transfers drawn and not sent, from `next_drawn` on.
    drawn: Vec<Request>,
    next_drawn: usize,
    /// A transfer in the pending direction that waits for the reset of a zone: its first byte and length.
    held: Option<(u64, u64)>,
    reset_tag: u32,
    /// Writes until one resets its zone.
    until_reset: u64,
    /// With holes between zones, or zones that are skipped: bytes drawn in the zone.
    zone_bytes: u64,
}

impl JobRun {
    /// The job before it starts, sending on `queue` with the slots `first_tag..first_tag + depth`.
    pub(crate) fn new(plan: JobPlan, queue: u16, first_tag: u32) -> JobRun {
        let flushes = plan.settings.fsync > 0 || plan.settings.flush_at_end && plan.settings.mode.uses(WRITE);
        let waits = flushes || plan.settings.think > Nanos::ZERO;
        let paced = plan.rate != [0; 3] || waits || plan.zones.is_some();
        let mut run = JobRun {
            rng: rng(plan.seed, "fio requests"),
            queue,
            // Lowest tag on top.
            free: (first_tag..first_tag + plan.depth).rev().collect(),
            flush_tag: NO_FLUSH,
            started: Nanos::ZERO,
            deadline: Nanos::MAX,
            ended: false,
            paced,
            issued: [0; 3],
            issued_bytes: [0; 3],
            completed: 0,
            flushed_writes: 0,
            pending: None,
            poisson_next: [Nanos::ZERO; 3],
            pause: Pause::None,
            sent_since_think: false,
            think_mark: 0,
            last_think: Nanos::ZERO,
            last_start: [NOWHERE; 3],
            last_end: [plan.offset; 3],
            base: plan.offset,
            until_random: plan.settings.sequence_length,
            drawn_bytes: 0,
            pass_drawn: 0,
            pass_counted: 0,
            loops_left: plan.settings.loops - 1,
            // As fio, a job that has sent nothing ends with its flush, too.
            sent_since_flush: true,
            pass_ended: false,
            behind_flush: None,
            empty_pass: false,
            write_next: false,
            permutation: None,
            pass_position: 0,
            map: None,
            drawn: Vec::new(),
            next_drawn: 0,
            held: None,
            reset_tag: NO_FLUSH,
            until_reset: plan.zones.map_or(0, |zones| zones.reset_every),
            zone_bytes: 0,
            plan,
        };
        match run.plan.map {
            MapKind::None => {}
            MapKind::Permutation(_) => run.new_order(),
            MapKind::Bitmap { blocks, .. } => run.map = Some(RandomMap::new(blocks)),
        }
        run
    }

    /// The job's own clock starts.
    pub(crate) fn begin(&mut self, at: Nanos) {
        self.started = at;
        self.last_think = at;
        self.poisson_next = [at; 3];
        let runtime = self.plan.settings.runtime;
        if runtime > Nanos::ZERO {
            self.deadline = Nanos(at.0.saturating_add(runtime.0));
        }
    }

    fn in_flight(&self) -> u32 {
        self.plan.depth - self.free.len() as u32
    }

    /// A request of this job has completed.
    pub(crate) fn complete(&mut self, tag: u32) {
        assert!(self.free.len() < self.plan.depth as usize, "completion of tag {tag}, but nothing is in flight");
        debug_assert!(!self.free.contains(&tag), "tag {tag} completed twice");
        self.free.push(tag);
        if tag == self.flush_tag {
            self.flush_tag = NO_FLUSH;
        } else if tag == self.reset_tag {
            self.reset_tag = NO_FLUSH;
        } else {
            self.completed += 1;
        }
    }

    /// What to do at `now`.
    #[inline]
    pub(crate) fn poll(&mut self, now: Nanos, zones: Option<&mut ZoneTable>) -> Result<Step, WorkloadError> {
        if self.ended || now >= self.deadline || self.is_exhausted() {
            return Ok(self.finish(now));
        }
        if self.free.is_empty() {
            return Ok(Step::Blocked);
        }
        if self.paced {
            return self.poll_paced(now, zones);
        }
        if self.next_drawn == self.drawn.len() {
            self.draw_ahead();
            if self.drawn.is_empty() {
                return Ok(self.finish(now));
            }
        }
        let request = self.drawn[self.next_drawn];
        self.next_drawn += 1;
        Ok(Step::Send(self.sent(request, now)))
    }

    /// Whether the last request was the first of those drawn together.
    #[inline]
    pub(crate) fn has_drawn(&self) -> bool {
        self.next_drawn == 1 && self.drawn.len() > 1
    }

    /// What was drawn and is not sent.
    pub(crate) fn drawn(&self) -> &[Request] {
        &self.drawn[self.next_drawn..]
    }

    /// Draws the next transfers. Without pacing they depend on nothing but the ones before; those behind the job's end
    /// are never sent.
    fn draw_ahead(&mut self) {
        self.next_drawn = 0;
        self.drawn.clear();
        for _ in 0..if self.plan.settings.mode.random { DRAWN_AHEAD } else { 1 } {
            let direction = self.draw_direction();
            let Some(transfer) = self.draw(direction) else { break };
            self.drawn.push(transfer);
        }
    }

    fn poll_paced(&mut self, now: Nanos, zones: Option<&mut ZoneTable>) -> Result<Step, WorkloadError> {
        let flushes = self.flush_tag != NO_FLUSH && (!self.plan.settings.queued_flush || self.behind_flush.is_some());
        if flushes || self.reset_tag != NO_FLUSH {
            return Ok(Step::Blocked);
        }
        if self.pass_ended && self.behind_flush.is_some() {
            // As fio, a pass is flushed when nothing of it is in flight.
            if self.in_flight() > 0 {
                return Ok(Step::Blocked);
            }
            self.pass_ended = false;
            return Ok(Step::Send(self.flush(now)));
        }
        if let Some(step) = self.think(now) {
            return Ok(step);
        }
        if self.is_flush_due() {
            self.flushed_writes = self.issued[WRITE];
            return Ok(Step::Send(self.flush(now)));
        }
        if let Some(request) = self.behind_flush.take() {
            return Ok(Step::Send(self.sent_paced(request, now)));
        }
        let drawn = match self.pending {
            Some(direction) => direction,
            None => self.draw_direction_in(zones.as_deref()),
        };
        let (direction, due) = self.rated(drawn, now);
        if due > now {
            self.pending = Some(direction);
            // fio's inline submission lets everything in flight complete before it sleeps.
            if self.plan.settings.inline && self.in_flight() > 0 {
                return Ok(Step::Blocked);
            }
            return Ok(Step::Sleep(Nanos(due.0.min(self.deadline.0))));
        }
        let request = match zones.filter(|_| self.plan.zones.is_some()) {
            None => match self.draw(direction) {
                Some(request) => request,
                None => return Ok(self.finish(now)),
            },
            Some(zones) => match self.draw_in_zone(direction, zones)? {
                InZone::Transfer(request) => request,
                InZone::Over => return Ok(self.finish(now)),
                InZone::Wait => {
                    self.pending = Some(direction);
                    return Ok(Step::Blocked);
                }
                InZone::Reset(request) => {
                    self.pending = Some(direction);
                    let tag = self.take_slot();
                    self.reset_tag = tag;
                    return Ok(Step::Send(Request { at: now, queue: self.queue, tag, ..request }));
                }
            },
        };
        self.pending = None;
        let is_flushed =
            self.plan.settings.flush_at_end && self.plan.settings.mode.uses(WRITE) && self.sent_since_flush;
        if self.pass_ended && (is_flushed || self.is_flush_due()) {
            self.pass_ended = is_flushed;
            self.behind_flush = Some(request);
            return self.poll_paced(now, None);
        }
        self.pass_ended = false;
        Ok(Step::Send(self.sent_paced(request, now)))
    }

    /// Whether the pass has as many bytes as it may have.
    fn is_counted_out(&self) -> bool {
        self.pass_counted >= self.plan.pass_bytes
    }

    fn sent_paced(&mut self, request: Request, now: Nanos) -> Request {
        let direction = direction_of(&request);
        if self.plan.settings.poisson && self.plan.rate[direction] > 0 {
            self.draw_poisson(direction);
        }
        self.sent(request, now)
    }

    fn is_exhausted(&self) -> bool {
        let job = &self.plan.settings;
        if job.time_based {
            return false;
        }
        let bytes = match job.mode.kind {
            Kind::One(direction) => self.issued_bytes[direction],
            Kind::Mixed => self.issued_bytes[READ] + self.issued_bytes[WRITE],
            Kind::TrimThenWrite => self.issued_bytes[WRITE],
        };
        bytes >= self.plan.total_bytes || self.issued.iter().sum::<u64>() >= self.plan.total_ios
    }

    fn finish(&mut self, now: Nanos) -> Step {
        if !self.ended {
            self.ended = true;
            // As fio, one more pass that `loops` asks for begins and ends, though nothing is left to be sent.
            self.empty_pass = self.loops_left > 0 && now < self.deadline && self.is_exhausted();
        }
        if self.in_flight() > 0 {
            return Step::Blocked;
        }
        let job = &self.plan.settings;
        if job.flush_at_end && job.mode.uses(WRITE) {
            if self.sent_since_flush {
                return Step::Send(self.flush(now));
            }
            if std::mem::take(&mut self.empty_pass) {
                return Step::Send(self.flush(now));
            }
        }
        Step::Finished
    }

    #[inline]
    fn draw_direction(&mut self) -> usize {
        match self.plan.settings.mode.kind {
            Kind::One(direction) => direction,
            Kind::Mixed => {
                let read = below(&mut self.rng, 100) < u64::from(self.plan.settings.read_percent);
                if read { READ } else { WRITE }
            }
            Kind::TrimThenWrite if self.write_next => WRITE,
            Kind::TrimThenWrite => TRIM,
        }
    }

    /// Whether no transfer is in another direction than the one before.
    fn draws_one_direction(&self) -> bool {
        match self.plan.settings.mode.kind {
            Kind::One(_) => true,
            Kind::Mixed => self.plan.settings.read_percent.is_multiple_of(100),
            Kind::TrimThenWrite => false,
        }
    }

    /// The direction to take, which of a mix is a write while there is nothing to read.
    fn draw_direction_in(&mut self, zones: Option<&ZoneTable>) -> usize {
        let drawn = self.draw_direction();
        if drawn != READ || self.plan.settings.mode.kind != Kind::Mixed {
            return drawn;
        }
        let of_zones = self.plan.zones.zip(zones).filter(|(plan, _)| !plan.rules.read_beyond);
        let nothing_to_read = of_zones.is_some_and(|(plan, zones)| !zones.has_data(&plan.rules));
        if nothing_to_read { WRITE } else { READ }
    }

    fn take_slot(&mut self) -> u32 {
        self.free.pop().expect("a slot was seen to be free")
    }

    fn flush(&mut self, now: Nanos) -> Request {
        let tag = self.take_slot();
        self.flush_tag = tag;
        self.sent_since_flush = false;
        Request { at: now, queue: self.queue, tag, ..Request::new(Op::Flush, 0, 0) }
    }

    /// The next transfer in `direction`, or `None` at the end of the job; its time and its tag are given when it is sent.
    #[inline]
    fn draw(&mut self, direction: usize) -> Option<Request> {
        // A write of what was trimmed stays in the zone of the trim.
        let is_second = self.plan.settings.mode.kind == Kind::TrimThenWrite && direction == WRITE;
        loop {
            if self.is_counted_out() && !self.next_pass(false) {
                return None;
            }
            if self.plan.stride.is_some() && !is_second {
                self.enter_zone(direction);
            }
            if let Some((start, length)) =
                self.place(direction).filter(|(start, length)| start + length <= self.plan.capacity)
            {
                return Some(self.transfer(direction, start, length));
            }
            if !self.next_pass(true) {
                return None;
            }
        }
    }

    /// Begins another pass from the start of the region, if there is one. A pass ends with its bytes or, with `at_end`, where
    /// nothing follows its last transfer. As in fio, `loops` passes are followed by more while less than `io_size` is drawn.
    #[cold]
    fn next_pass(&mut self, at_end: bool) -> bool {
        let job = &self.plan.settings;
        let has_more = if self.pass_drawn == 0 {
            false
        } else if job.time_based {
            true
        } else if self.loops_left > 0 {
            self.loops_left -= 1;
            true
        } else {
            let left = self.plan.limit.saturating_sub(self.drawn_bytes);
            left >= self.plan.largest && (self.plan.repeats || !at_end)
        };
        if !has_more {
            return false;
        }
        self.pass_ended = true;
        // As fio, which forgets that a flush came last; in mixes a flush follows each `fsync` writes once.
        if self.draws_one_direction() {
            self.flushed_writes = 0;
        }
        (self.pass_drawn, self.pass_counted, self.zone_bytes) = (0, 0, 0);
        self.base = self.plan.offset;
        self.write_next = false;
        self.start_over();
        true
    }

    /// From the start of the region, or of the zone, with nothing covered.
    fn start_over(&mut self) {
        self.last_start = [NOWHERE; 3];
        self.last_end = [self.base; 3];
        self.new_order();
        if let Some(map) = &mut self.map {
            map.clear();
        }
    }

    /// With holes between zones: goes on to the next when enough was transferred in this one, and begins this one again at its
    /// end. As in fio, the zones go on behind the region, up to the end of the drive.
    fn enter_zone(&mut self, direction: usize) {
        let stride = self.plan.stride.expect("a job with holes between zones");
        if self.zone_bytes >= stride.transfer {
            self.zone_bytes = 0;
            self.base = self.base.saturating_add(stride.step);
            // A random job uses whole zones only.
            let least = if self.plan.settings.mode.random { stride.range } else { 1 };
            if self.base.saturating_add(least) > self.plan.capacity {
                self.base = self.plan.offset;
            }
            self.last_end[direction] = self.base;
        }
        if self.last_end[direction] >= self.base + stride.range {
            self.last_end[direction] = self.base;
        }
        if self.zone_bytes.is_multiple_of(stride.range) {
            self.start_over();
        }
    }

    /// A transfer of `length` bytes from byte `start` of the drive.
    #[inline]
    fn transfer(&mut self, direction: usize, start: u64, length: u64) -> Request {
        debug_assert!(length > 0);
        debug_assert!(start + length <= self.plan.capacity);
        self.last_start[direction] = start;
        self.last_end[direction] = start + length;
        self.write_next = direction == TRIM;
        self.zone_bytes += length;
        self.drawn_bytes += length;
        self.pass_drawn += length;
        if direction != TRIM {
            self.pass_counted += length;
        }
        let write = direction == WRITE;
        let settings = &self.plan.settings;
        let (fua, stream) = (write && settings.force_unit_access, if write { settings.stream } else { 0 });
        let op = match direction {
            READ => Op::Read,
            WRITE => Op::Write,
            _ => Op::Trim,
        };
        Request { fua, queue: self.queue, stream, ..Request::new(op, start / SECTOR_BYTES, length / SECTOR_BYTES) }
    }

    /// A transfer drawn before, counted as sent.
    #[inline]
    fn sent(&mut self, mut request: Request, now: Nanos) -> Request {
        let direction = direction_of(&request);
        self.issued[direction] += 1;
        self.issued_bytes[direction] += request.bytes();
        self.sent_since_think = true;
        self.sent_since_flush = true;
        request.at = now;
        request.tag = self.take_slot();
        request
    }
}

#[inline]
fn direction_of(request: &Request) -> usize {
    match request.op {
        Op::Read => READ,
        Op::Write => WRITE,
        _ => TRIM,
    }
}

/// Draws of a size that does not fit before the smallest is taken.
const TRIES: u32 = 32;

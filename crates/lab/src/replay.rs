//! The replay loop: a workload drives a drive through virtual time.
//!
//! ```text
//!   workload --next(now)--> Request ----submit----> drive
//!      ^                    Wait... --run_to_completion(until)--> drive
//!      |                                              |
//!      +--completed(now, tag)-- Recorder <-completions+
//! ```
//!
//! The loop allocates nothing and draws nothing. It stops the drive at every completion, because the workload may
//! send at that very moment, and at the ends of the timeline's intervals. It trusts no count: what was sent and what
//! came back, the time spent in the drive and the sum of latencies are counted apart, and `checks` compares them.

use std::collections::VecDeque;

use ssdlab_base::command_set::AddressSpace;
use ssdlab_base::{CommandSet, Nanos, Op, Request};
use ssdlab_device::{Completion, Counters, Data, Payload, Status};
use ssdlab_host::{Administration, BlockDevice};
use ssdlab_workload::{Next, Workload, WorkloadError};

use crate::breakdown::Gathered;
use crate::jobs::Jobs;
use crate::latency::Latencies;
use crate::progress::Control;
use crate::rate::RateCounter;
use crate::result::Timeline;
use crate::standstill::Standstill;
use crate::timeline::{Axis, Sampler};

/// Turns of the loop between looks at the stop flag.
const TURNS_PER_LOOK: u64 = 1024;

/// Requests asked for before the first of them is sent.
pub(crate) const BATCH: usize = 32;

/// Why a replay ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The workload had no more requests, and all completed.
    Done,
    /// The stop flag was set; what was in the drive completed.
    Stopped,
    /// Requests are in the drive, but nothing will ever happen again.
    Stuck {
        /// How many.
        outstanding: u64,
    },
}

/// Why a replay cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The workload cannot be read.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The workload asks for what the drive does not have.
    #[error(
        "request {number} ({op:?} of {sectors} sectors at sector {sector}) ends beyond the drive's {user_sectors} \
         sectors: take a larger drive, or let the trace be wrapped (--wrap) or fitted (--fit)"
    )]
    Beyond {
        /// Which request, from 1.
        number: u64,
        /// Its operation.
        op: Op,
        /// Its first sector.
        sector: u64,
        /// Its length.
        sectors: u64,
        /// The drive's size.
        user_sectors: u64,
    },
    /// The workload asks for a time that no run reaches.
    #[error(
        "after request {sent} the workload waits until {} years of virtual time; expected a time before the horizon of \
         73 years (2^61 nanoseconds): a rate, a pause or a factor of time is far off", until.0 / YEAR.0
    )]
    BehindHorizon {
        /// Requests sent before.
        sent: u64,
        /// Until when it waits.
        until: Nanos,
    },
    /// The workload has commands that the device does not know.
    #[error(
        "the workload has commands of the set '{set}', but the drive has {}: use a design that has this set (`ssdlab list`)",
        found.map_or("block I/O only".to_string(), |found| format!("the set '{found}'"))
    )]
    CommandSet {
        /// Their set.
        set: &'static str,
        /// The device's, if it has one.
        found: Option<&'static str>,
    },
    /// Commands of the workload change what no range says.
    #[error(
        "the workload has commands of the set '{set}', and --verify does not know which sectors some of them change: run it \
         without --verify"
    )]
    NotVerified {
        /// Their set.
        set: &'static str,
    },
    /// The drive has zones or append-only segments, and block I/O is not for them.
    #[error(
        "the drive accepts writes only at the write pointers of its {regions}, and preconditioning by a workload sends others: \
         expected --precondition none or fill"
    )]
    WritePointers {
        /// What has them.
        regions: &'static str,
    },
    /// The drive is preconditioned by commands beyond block I/O.
    #[error(
        "the workload has commands of the set '{set}', and preconditioning sends block I/O only: precondition with none, \
         fill, or a workload without them"
    )]
    Preconditioning {
        /// Their set.
        set: &'static str,
    },
    /// The drive falls so far behind the workload that there is no memory for what waits.
    #[error(
        "{outstanding} requests are in flight, more than there is memory for (--memory): the workload sends faster than the drive \
         answers; bound them (--replay closed:QD), give them more time (--replay timed*K), or raise --memory"
    )]
    TooManyInFlight {
        /// How many.
        outstanding: u64,
    },
    /// The workload ends by time, and its requests take none.
    #[error(
        "{requests} requests in a row took no virtual time, so a job with time_based would never end: give it an end of its \
         own (io_size, number_ios or loops instead of time_based), or let requests take time (flash.timing, \
         interface.command_overhead; reads of what was never written reach no chip: --precondition fill)"
    )]
    NoTime {
        /// How many.
        requests: u64,
    },
    /// The workload ends by time, and preconditioning takes none.
    #[error(
        "preconditioning takes no virtual time, so a workload with time_based would never end: {requests} requests were sent; \
         give it an end of its own (io_size, number_ios or loops instead of time_based), or precondition with \
         steady:WORKLOAD, which ends when write amplification is stable"
    )]
    NoTimeInPreconditioning {
        /// How many.
        requests: u64,
    },
    /// The workload waits for a completion although nothing is in the drive.
    #[error("the workload waits for a completion after request {sent}, but no request is in the drive")]
    Deadlock {
        /// Requests sent.
        sent: u64,
    },
}

/// 365.25 days.
const YEAR: Nanos = Nanos(31_557_600 * 1_000_000_000);

/// When a workload that waits is asked again: a time that has passed still moves the clock, so that no workload can hold
/// it.
pub(crate) fn woken(until: Nanos, now: Nanos, sent: u64) -> Result<Nanos, ReplayError> {
    match until.before_horizon() {
        Some(until) => Ok(until.max(now + Nanos(1))),
        None => Err(ReplayError::BehindHorizon { sent, until }),
    }
}

/// What the loop has seen.
#[derive(Debug)]
pub struct Recorder {
    pub(crate) latencies: [Latencies; 4],
    pub(crate) sent: [u64; 4],
    pub(crate) sent_bytes: [u64; 4],
    pub(crate) completed: [u64; 4],
    pub(crate) completed_bytes: [u64; 4],
    pub(crate) failed: u64,
    /// Trims and writes of zeroes that ended as unsupported; some of `failed`.
    pub(crate) untrimmed: u64,
    pub(crate) failed_bytes: [u64; 4],
    /// Bytes of commands that found nothing; some of `failed_bytes`.
    pub(crate) absent_bytes: [u64; 4],
    pub(crate) misaligned: u64,
    /// A sum over all requests of what tells one from another, whatever their order and their times.
    pub(crate) digest: u64,
    pub(crate) outstanding: u64,
    pub(crate) outstanding_max: u64,
    /// More requests in flight than this end the run: there is no memory for them.
    pub(crate) in_flight_max: u64,
    /// Integral of the requests in the drive over time: request-nanoseconds.
    pub(crate) occupancy: u128,
    /// How evenly requests completed.
    pub(crate) rate: RateCounter,
    /// The workload's jobs, where there are several.
    pub(crate) jobs: Jobs,
    sampler: Sampler,
    /// What requests waited for, where that was asked for.
    pub(crate) breakdown: Option<Box<Gathered>>,
    occupancy_until: u64,
    unit_mask: u64,
}

impl Recorder {
    /// For a drive at time zero with these counters; `unit_sectors` (a power of two) is what requests should align to.
    pub(crate) fn new(axis: Axis, counters: Counters, unit_sectors: u64) -> Recorder {
        Recorder {
            latencies: std::array::from_fn(|_| Latencies::new()),
            sent: [0; 4],
            sent_bytes: [0; 4],
            completed: [0; 4],
            completed_bytes: [0; 4],
            failed: 0,
            untrimmed: 0,
            failed_bytes: [0; 4],
            absent_bytes: [0; 4],
            misaligned: 0,
            digest: 0,
            outstanding: 0,
            outstanding_max: 0,
            in_flight_max: u64::MAX,
            occupancy: 0,
            rate: RateCounter::new(None),
            jobs: Jobs::default(),
            sampler: Sampler::new(axis, Counters { bytes: [0; 4], ..counters }),
            breakdown: None,
            occupancy_until: 0,
            unit_mask: unit_sectors.saturating_sub(1),
        }
    }

    /// Over time, with intervals of this length, which at first has no request.
    pub(crate) fn with_interval(self, interval: Nanos, counters: Counters) -> Recorder {
        let sampler = Sampler::every(interval.0, Counters { bytes: [0; 4], ..counters });
        Recorder { sampler, rate: RateCounter::new(Some(interval.0)), ..self }
    }

    /// For a workload with jobs of these names, above a drive with pages of so many sectors.
    pub(crate) fn of_jobs(self, names: Vec<String>, page_sectors: u64) -> Recorder {
        Recorder { jobs: Jobs::new(names, page_sectors), ..self }
    }

    #[inline]
    fn occupy_until(&mut self, now: u64) {
        self.occupancy += u128::from(self.outstanding) * u128::from(now.saturating_sub(self.occupancy_until));
        self.occupancy_until = now;
    }

    /// When the device is to be stopped for [`Recorder::tick_if_due`].
    pub(crate) fn next_tick_ns(&self) -> u64 {
        self.sampler.next_tick_ns()
    }

    /// Closes an interval of the timeline if it is over.
    #[inline]
    pub(crate) fn tick_if_due(&mut self, now: Nanos, counters: impl FnOnce() -> Counters) {
        if self.sampler.due(now.0) {
            let counters = self.of_workload(&counters());
            self.sampler.tick(now.0, &counters);
        }
    }

    /// A request is sent.
    #[inline]
    pub(crate) fn submitted(&mut self, request: &Request) {
        self.occupy_until(request.at.0);
        self.outstanding += 1;
        self.outstanding_max = self.outstanding_max.max(self.outstanding);
        let class = request.op.class();
        self.sent[class] += 1;
        self.sent_bytes[class] += request.bytes();
        self.misaligned += u64::from((request.sector | request.sectors) & self.unit_mask != 0);
        let place = request.sector.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (request.sectors << 2 | class as u64);
        let mixed = (place ^ place >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        self.digest = self.digest.wrapping_add(mixed ^ mixed >> 32);
    }

    /// A request has completed.
    #[inline]
    pub(crate) fn completed(&mut self, completion: &Completion) {
        self.occupy_until(completion.at.0);
        self.outstanding = self.outstanding.saturating_sub(1);
        let class = completion.op.class();
        let latency = completion.at.since(completion.submitted).0;
        self.completed[class] += 1;
        self.completed_bytes[class] += completion.bytes;
        if completion.status != Status::Success {
            self.failed += u64::from(completion.status.is_error());
            let is_trim = matches!(completion.op, Op::Trim | Op::WriteZeroes);
            self.untrimmed += u64::from(is_trim && completion.status == Status::Unsupported);
            self.failed_bytes[class] += completion.bytes;
            if completion.status == Status::Absent {
                self.absent_bytes[class] += completion.bytes;
            }
        }
        self.latencies[class].record(latency);
        self.sampler.completed(class, latency);
        self.rate.completed(completion.at.0);
    }

    /// Closes the timeline at `now_ns`; what comes later belongs to no interval.
    pub(crate) fn take_timeline(&mut self, now_ns: u64, counters: &Counters, page_bytes: u64) -> Timeline {
        let empty = Sampler::new(Axis::Time, *counters);
        let counters = self.of_workload(counters);
        std::mem::replace(&mut self.sampler, empty).finish(now_ns, &counters, page_bytes)
    }

    /// Counters of the drives, with the workload's bytes: layers above the drives may send others.
    fn of_workload(&self, counters: &Counters) -> Counters {
        Counters { bytes: self.succeeded_bytes(), ..*counters }
    }

    /// Requests sent in all.
    pub(crate) fn sent_total(&self) -> u64 {
        self.sent.iter().sum()
    }

    /// Bytes of the requests that succeeded, by kind.
    pub(crate) fn succeeded_bytes(&self) -> [u64; 4] {
        std::array::from_fn(|class| self.completed_bytes[class].saturating_sub(self.failed_bytes[class]))
    }

    /// Requests completed in all.
    pub(crate) fn completed_total(&self) -> u64 {
        self.completed.iter().sum()
    }
}

/// Drives `target`, a drive, a stack, or in tests something that misbehaves, with `workload` until it has no more to send and everything has come back.
pub fn replay<T: BlockDevice + Administration + ?Sized>(
    target: &mut T,
    workload: &mut dyn Workload,
    recorder: &mut Recorder,
    control: &Control<'_>,
) -> Result<Ended, ReplayError> {
    let user_sectors = target.sectors();
    let knows = target.command_set().map(|set| set.name);
    if let Some(set) = workload.command_set().filter(|set| knows != Some(*set)) {
        return Err(ReplayError::CommandSet { set, found: knows });
    }
    if let Some(shape) = target.zones() {
        let zones = (0..shape.count).filter_map(|number| target.zone(number));
        workload.begin_zones(&mut zones.map(|zone| (zone.written * ssdlab_base::SECTOR_BYTES, zone.state.is_active())));
    }
    let (mut answers, mut events) = (Vec::new(), Vec::new());
    let mut batch = [Request::new(Op::Flush, 0, 0); BATCH];
    let mut turns = 0_u64;
    let mut still = Standstill::default();
    let mut stopped = false;
    let mut finished = false;
    loop {
        if turns.is_multiple_of(TURNS_PER_LOOK) {
            let (done, total) = workload.progress();
            control.progress.advance(done, total);
            stopped = stopped || control.stopped();
            let bytes = recorder.completed_bytes.iter().sum();
            let least = user_sectors.saturating_mul(ssdlab_base::SECTOR_BYTES);
            if let Some(requests) = still.look(target.now(), recorder.completed_total(), bytes, least)
                && workload.ends_by_time()
            {
                return Err(ReplayError::NoTime { requests });
            }
        }
        turns += 1;

        let mut wake = Nanos::MAX;
        if !(finished || stopped) {
            match send(target, workload, recorder, user_sectors, &mut batch, control)? {
                Sent::Wait(until) => wake = until,
                Sent::Finished => finished = true,
                Sent::Stopped => stopped = true,
            }
        }
        if recorder.outstanding == 0 && (finished || stopped) {
            let (done, total) = workload.progress();
            control.progress.advance(done, total);
            return Ok(if finished { Ended::Done } else { Ended::Stopped });
        }

        let until = Nanos(wake.0.min(recorder.next_tick_ns()));
        if !target.run_to_completion(until) {
            if wake == Nanos::MAX && target.next_event().is_none() {
                // Nothing will ever happen: the ends of the timeline's intervals alone must not keep the loop alive.
                let outstanding = recorder.outstanding;
                return if outstanding == 0 {
                    Err(ReplayError::Deadlock { sent: recorder.sent_total() })
                } else {
                    Ok(Ended::Stuck { outstanding })
                };
            }
            target.run_until(until);
        }
        let now = target.now();
        if knows.is_some() {
            // What they say is the design's affair; that they were sent is counted by the drive.
            target.take_answers(&mut answers);
            target.take_events(&mut events);
            answers.clear();
            events.clear();
        }
        if let Some(breakdown) = &mut recorder.breakdown {
            gather(target, breakdown);
        }
        for completion in target.completions().drain(..) {
            recorder.completed(&completion);
            if !recorder.jobs.is_empty() {
                recorder.jobs.completed(workload.job_of(completion.tag), &completion);
            }
            workload.completed(now, completion.tag);
        }
        recorder.tick_if_due(now, || target.counters());
    }
}

/// Brings the completions that are there and their paths together.
#[cold]
fn gather<T: BlockDevice + ?Sized>(target: &mut T, breakdown: &mut Gathered) {
    let mut paths = std::mem::take(&mut breakdown.paths);
    // A target may hand its completions over when it is asked for them, so that comes first.
    let completions = std::mem::take(target.completions());
    target.take_paths(&mut paths);
    let mut taken = paths.drain(..);
    for completion in &completions {
        match taken.next() {
            Some(path) => breakdown.completed(completion, path),
            None => breakdown.without_path(),
        }
    }
    drop(taken);
    *target.completions() = completions;
    breakdown.paths = paths;
}

/// What came of asking the workload.
enum Sent {
    /// It wants to be asked again then.
    Wait(Nanos),
    /// It has no more.
    Finished,
    /// The stop flag was set meanwhile.
    Stopped,
}

/// Sends everything that the workload wants to send now.
#[inline]
fn send<T: BlockDevice + ?Sized>(
    target: &mut T,
    workload: &mut dyn Workload,
    recorder: &mut Recorder,
    user_sectors: u64,
    batch: &mut [Request; BATCH],
    control: &Control<'_>,
) -> Result<Sent, ReplayError> {
    let now = target.now();
    loop {
        let lookahead = workload.lookahead();
        if !lookahead.is_empty() {
            target.prefetch(lookahead);
        }
        // Asking ahead of sending lets the processor fetch what the drive will need; the workload sees no difference.
        let mut gathered = 0;
        let mut ended = None;
        let mut words = VecDeque::new();
        while gathered < BATCH && ended.is_none() {
            match workload.next(now)? {
                Next::Request(mut request) => {
                    // What could not be sent in time is sent now: the drive's clock never goes back.
                    request.at = request.at.max(now);
                    let is_block = request.opcode.is_block();
                    if !is_block {
                        words.push_back(workload.words().to_vec());
                    }
                    if (is_block || is_logical(target.command_set(), &request)) && !fits(&request, user_sectors) {
                        let number = recorder.sent_total() + gathered as u64 + 1;
                        return Err(beyond(&request, number, user_sectors));
                    }
                    batch[gathered] = request;
                    gathered += 1;
                }
                Next::WaitUntil(until) => {
                    ended = Some(Sent::Wait(woken(until, now, recorder.sent_total() + gathered as u64)?));
                }
                Next::WaitForCompletion => ended = Some(Sent::Wait(Nanos::MAX)),
                Next::Done => ended = Some(Sent::Finished),
            }
        }
        if gathered > 1 {
            target.prefetch(&batch[..gathered]);
        }
        for request in &batch[..gathered] {
            recorder.submitted(request);
            if !recorder.jobs.is_empty() {
                recorder.jobs.submitted(workload.job_of(request.tag), request);
            }
            if request.opcode.is_block() {
                target.submit(request, Data::Nothing);
            } else {
                let words = words.pop_front().unwrap_or_default();
                target.submit_command(request, Payload { data: Data::Nothing, words: &words });
            }
        }
        if recorder.outstanding > recorder.in_flight_max {
            return Err(ReplayError::TooManyInFlight { outstanding: recorder.outstanding });
        }
        if let Some(ended) = ended {
            return Ok(ended);
        }
        if control.stopped() {
            return Ok(Sent::Stopped);
        }
    }
}

/// Whether a command of the set addresses the sectors of the capacity.
#[cold]
fn is_logical(set: Option<&CommandSet>, request: &Request) -> bool {
    set.and_then(|set| set.command(request.opcode)).is_some_and(|spec| spec.address == AddressSpace::Logical)
}

/// Whether the drive has all of the request's sectors.
#[inline]
pub(crate) fn fits(request: &Request, user_sectors: u64) -> bool {
    let end = request.sector.checked_add(request.sectors);
    end.is_some_and(|end| end <= user_sectors)
}

#[cold]
pub(crate) fn beyond(request: &Request, number: u64, user_sectors: u64) -> ReplayError {
    ReplayError::Beyond { number, op: request.op, sector: request.sector, sectors: request.sectors, user_sectors }
}

#[cfg(test)]
pub(crate) mod fake;
#[cfg(test)]
mod tests;

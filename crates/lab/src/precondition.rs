//! Bringing a drive to a stated state before the run: a functional fast-forward in which operations take no time.
//!
//! - `none`: fresh from the factory.
//! - `fill`: the whole user capacity is written once, in order, in large requests.
//! - `footprint`: of the user capacity only what the workload will access, in extents of 64 KiB, in order.
//! - `steady`: filled, then the workload that follows is sent over and over until write amplification has settled
//!   ([`Steadiness`] says when that is). Every pass is a fresh one: a generator draws other numbers than in the run.
//! - `steady:WORKLOAD`: the same under a workload of its own, whatever follows.
//! - a workload of its own: that workload once, on an empty drive.
//! - `fill+WORKLOAD`: the same on a filled one.
//!
//! Virtual time stands still, so nothing happens in idle time: no background garbage collection. All kinds but `none` end
//! with a flush. Afterwards the drive's statistics and clock are reset; only its data, map and wear remain. A drive aged
//! to its steady state then gets its write buffer filled again, whether it comes from a snapshot or not.
//!
//! What takes long leaves checkpoints on its way, from which the next run goes on.

use serde::{Deserialize, Serialize};
use ssdlab_base::command_sets::segments::SEGMENTS;
use ssdlab_base::{Nanos, Op, Request, SECTOR_BYTES, format_size};
use ssdlab_device::{Completion, Data, DriveConfig, Status};
use ssdlab_flash::OpKind;
use ssdlab_host::{Administration, BlockDevice};
use ssdlab_workload::{Next, Workload};

use crate::progress::{Control, Phase};
use crate::replay::{BATCH, ReplayError, beyond, fits, woken};
use crate::result::{Precondition, Settled};
use crate::source::WorkloadSource;
use crate::standstill::Standstill;
use crate::verify::Verifier;

mod checkpoint;
mod touched;

use checkpoint::Search;
pub(crate) use checkpoint::{Keeper, Position};

/// A fill writes this much at a time.
const FILL_SECTORS: u64 = (1 << 20) / SECTOR_BYTES;

/// Requests of a fill between looks at the stop flag and the progress.
const FILLS_PER_LOOK: u64 = 64;

/// Turns of the loop, of up to [`BATCH`] requests each, between looks at the stop flag.
const TURNS_PER_LOOK: u64 = 64;

/// A window holds at least this many mapping units: fewer leave more than 1 % to chance.
const WINDOW_UNITS_MIN: u64 = 1 << 18;

/// The pass of the workload that fills the write buffer: none of those that precondition.
const WARMING_PASS: u64 = u64::MAX;

/// Windows that must agree.
const WINDOWS_AGREEING: usize = 4;

/// Passes that must agree, where whole passes are compared.
const PASSES_AGREEING: usize = 3;

/// Spans that must agree, where windows alternate, and windows of a span: a multiple of nearly every shorter period.
const SPANS_AGREEING: usize = 3;
const SPAN_WINDOWS: std::ops::RangeInclusive<usize> = 8..=12;

/// How close they must be: 1 % of their mean from the least to the most.
const AGREEMENT: f64 = 0.01;

/// Overwriting ends here, steady or not, in user capacities; and not before so many windows.
const CAPACITIES_MAX: u64 = 40;
const WINDOWS_MAX: u64 = 12;

/// Before one whole pass, windows count only after so many user capacities.
const CAPACITIES_MIN: u64 = 3;

/// A workload that sends so many requests without a write is taken for one that does not write.
const READS_IN_A_ROW_MAX: u64 = 4_000_000;

/// The state that a drive is brought to before the run.
#[derive(Clone, Copy)]
pub enum Preconditioning<'a> {
    /// Fresh.
    None,
    /// Written once, in order.
    Fill,
    /// Written once, in order, wherever the workload that follows reads or writes.
    Touched,
    /// In the steady state of the workload that follows.
    Steady,
    /// In the steady state of this workload, whatever follows.
    SteadyUnder(&'a dyn WorkloadSource),
    /// Whatever this workload leaves, run once (its pass 0) on an empty drive.
    Workload(&'a dyn WorkloadSource),
    /// Whatever this workload leaves on a filled drive.
    FilledThen(&'a dyn WorkloadSource),
}

impl<'a> Preconditioning<'a> {
    /// Everything that decides the state of a drive, for the name of a snapshot; `None` where there is nothing to keep.
    pub(crate) fn identity(&self, measured: &dyn WorkloadSource) -> Option<String> {
        match self {
            Preconditioning::None => None,
            Preconditioning::Fill => Some("fill".to_string()),
            Preconditioning::Touched => Some(format!("footprint {}", measured.identity())),
            Preconditioning::Steady => Some(format!("steady {}", measured.identity())),
            // `Steady` and `SteadyUnder` of one workload lead to one state, so both give the same text.
            Preconditioning::SteadyUnder(source) => Some(format!("steady {}", source.identity())),
            Preconditioning::Workload(source) => Some(format!("workload {}", source.identity())),
            Preconditioning::FilledThen(source) => Some(format!("fill, workload {}", source.identity())),
        }
    }

    /// The workload of its own that it is brought about by; nothing for other kinds.
    pub(crate) fn source(&self) -> Option<&'a dyn WorkloadSource> {
        match self {
            Preconditioning::SteadyUnder(source)
            | Preconditioning::Workload(source)
            | Preconditioning::FilledThen(source) => Some(*source),
            Preconditioning::None | Preconditioning::Fill | Preconditioning::Touched | Preconditioning::Steady => None,
        }
    }

    /// Whether it may leave a part of the drive that was never written.
    pub(crate) fn may_leave_holes(&self) -> bool {
        matches!(self, Preconditioning::Touched | Preconditioning::Workload(_))
    }

    /// The workload whose steady state this is; nothing for other kinds.
    pub(crate) fn steady_under(&self, measured: &'a dyn WorkloadSource) -> Option<&'a dyn WorkloadSource> {
        match self {
            Preconditioning::Steady => Some(measured),
            Preconditioning::SteadyUnder(source) => Some(*source),
            _ => None,
        }
    }
}

/// When write amplification has settled.
///
/// Host writes are counted in windows of half the user capacity (of at least 262,144 mapping units, so that chance
/// stays below the 1 % that is asked for). It has settled when the last four windows lie within 1 % of their mean,
/// from the least to the most: a slow drift shows between the first and the fourth. Windows count only when the
/// workload has been sent once in full, or three user capacities were written: a phase of a trace is not its steady
/// state. A workload that varies over its length and writes at least a window's worth settles also when three
/// whole passes lie within 1 %.
///
/// Windows may alternate for ever, or scatter by more than 1 %, while what they alternate about stays: under a skewed
/// workload whose hot blocks lie elsewhere in each pass, or where a window collects few large victims. So it has settled
/// also when the means of three spans, one after the other and each of the same 8 to 12 windows, lie within 1 %. A drift
/// must be slower to pass this than to pass for four windows that agree.
///
/// After 40 user capacities (or 12 windows, if that is more) the search ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Steadiness {
    window_bytes: u64,
    user_bytes: u64,
    windows: Vec<f64>,
    passes: Vec<f64>,
    whole_passes: u64,
    written_bytes: u64,
}

impl Steadiness {
    /// For a drive of `user_bytes` that maps `unit_bytes` at a time.
    pub fn new(user_bytes: u64, unit_bytes: u64) -> Steadiness {
        let window_bytes = (user_bytes / 2).max(WINDOW_UNITS_MIN * unit_bytes);
        Steadiness {
            window_bytes,
            user_bytes,
            windows: Vec::new(),
            passes: Vec::new(),
            whole_passes: 0,
            written_bytes: 0,
        }
    }

    /// A window of `bytes` ended with this write amplification.
    pub fn window(&mut self, bytes: u64, write_amplification: f64) {
        self.written_bytes += bytes;
        self.windows.push(write_amplification);
    }

    /// A pass of `bytes` ended with this write amplification.
    pub fn pass(&mut self, bytes: u64, write_amplification: f64) {
        self.whole_passes += 1;
        if bytes >= self.window_bytes {
            self.passes.push(write_amplification);
        }
    }

    /// Whether it has settled.
    pub fn is_steady(&self) -> bool {
        self.settled().is_some()
    }

    /// What agrees where it has settled: windows, passes or spans, in this order.
    pub fn settled(&self) -> Option<Settled> {
        let seen_enough = self.whole_passes > 0 || self.written_bytes >= CAPACITIES_MIN * self.user_bytes;
        if seen_enough && agree(&self.windows, WINDOWS_AGREEING) {
            Some(Settled::Windows)
        } else if agree(&self.passes, PASSES_AGREEING) {
            Some(Settled::Passes)
        } else {
            SPAN_WINDOWS.into_iter().find_map(|windows| {
                let last = &self.windows[self.windows.len().checked_sub(SPANS_AGREEING * windows)?..];
                let means: Vec<f64> = last.chunks_exact(windows).map(mean).collect();
                let settled = Settled::Spans { windows: windows as u64, apart: spread(last) / mean(last) };
                agree(&means, SPANS_AGREEING).then_some(settled)
            })
        }
    }

    /// Whether the search has gone on for long enough.
    pub fn is_exhausted(&self) -> bool {
        self.written_bytes >= (CAPACITIES_MAX * self.user_bytes).max(WINDOWS_MAX * self.window_bytes)
    }
}

fn agree(values: &[f64], count: usize) -> bool {
    let Some(start) = values.len().checked_sub(count) else {
        return false;
    };
    let last = &values[start..];
    spread(last) <= AGREEMENT * mean(last)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// From the least to the most.
fn spread(values: &[f64]) -> f64 {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    most - least
}

/// Whether preconditioning reached its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Yes.
    Done,
    /// The stop flag was set.
    Stopped,
}

/// Where preconditioning begins, and where it writes down how far it came; by default at the beginning, and nowhere.
#[derive(Default)]
pub(crate) struct Interruptible<'a, 'b> {
    /// The position that the drive was resumed at.
    pub(crate) from: Option<Position>,
    /// Who writes checkpoints.
    pub(crate) keeper: Option<&'a mut Keeper<'b>>,
}

/// Brings a drive, fresh or resumed, or a fresh stack to the state that `preconditioning` asks for; `config` describes it to workloads, `name` is for the
/// progress, `measured` is the workload that follows. With a `verifier`, everything that is written goes through it.
#[expect(
    clippy::too_many_arguments,
    reason = "each is a thing of its own, and there is one caller for drives and stacks each"
)]
pub(crate) fn precondition<D: BlockDevice + Administration + ?Sized>(
    drive: &mut D,
    config: &DriveConfig,
    preconditioning: &Preconditioning<'_>,
    name: &str,
    measured: &dyn WorkloadSource,
    verifier: Option<&mut Verifier>,
    interruptible: Interruptible<'_, '_>,
    control: &Control<'_>,
) -> Result<(Ended, Precondition), ReplayError> {
    let timed = config.timed;
    if !matches!(preconditioning, Preconditioning::None | Preconditioning::Fill) {
        let has_segments = drive.command_set().is_some_and(|set| set.name == SEGMENTS.name);
        if drive.zones().is_some() {
            return Err(ReplayError::WritePointers { regions: "zones" });
        }
        if has_segments {
            return Err(ReplayError::WritePointers { regions: "segments" });
        }
    }
    let mut preconditioner = Preconditioner::new(drive, config, verifier, control);
    preconditioner.keeper = interruptible.keeper;
    preconditioner.go_on_from(interruptible.from);
    preconditioner.drive.set_timed(false);
    let aged = match preconditioning {
        Preconditioning::None => Ended::Done,
        Preconditioning::Fill => preconditioner.fill(name),
        Preconditioning::Touched => {
            let mut touched = touched::Touched::of(measured, config)?;
            preconditioner.once(name, &mut touched)?
        }
        Preconditioning::Steady | Preconditioning::SteadyUnder(_) => match preconditioner.fill(name) {
            Ended::Done => preconditioner.steady(name, preconditioning.steady_under(measured).unwrap_or(measured))?,
            Ended::Stopped => Ended::Stopped,
        },
        Preconditioning::Workload(source) => {
            let mut workload = source.open(config, 0)?;
            preconditioner.once(name, &mut *workload)?
        }
        Preconditioning::FilledThen(source) => match preconditioner.fill(name) {
            Ended::Done => {
                let mut workload = source.open(config, 0)?;
                preconditioner.once(name, &mut *workload)?
            }
            Ended::Stopped => Ended::Stopped,
        },
    };
    if aged == Ended::Done && !matches!(preconditioning, Preconditioning::None) {
        // What is in the write buffer goes to flash, where a snapshot finds it.
        preconditioner.send(Request::new(Op::Flush, 0, 0));
        preconditioner.settle();
    }
    preconditioner.tell_refusals();
    let mut record = preconditioner.record;
    record.capacity_bytes = SECTOR_BYTES * drive.zones().map_or(drive.sectors(), |shape| shape.writable_sectors());
    drive.set_timed(timed);
    drive.reset_statistics();
    Ok((aged, record))
}

/// Fills the write buffer of a drive that was aged to the steady state of `measured`, which a snapshot keeps without it:
/// a pass of the workload goes in until it has written the buffer's size twice, or ends. Nothing of it is counted.
pub(crate) fn warm_buffer<D: BlockDevice + Administration + ?Sized>(
    drive: &mut D,
    config: &DriveConfig,
    measured: &dyn WorkloadSource,
    verifier: Option<&mut Verifier>,
    control: &Control<'_>,
) -> Result<Ended, ReplayError> {
    let buffer = |config: &DriveConfig| if config.buffer.policy == "none" { 0 } else { config.buffer.bytes };
    let mut end = 2 * drive.parts().iter().map(|part| buffer(part.drive.config())).sum::<u64>();
    if end == 0 {
        return Ok(Ended::Done);
    }
    let timed = config.timed;
    let mut workload = measured.open(config, WARMING_PASS)?;
    let mut preconditioner = Preconditioner::new(drive, config, verifier, control);
    preconditioner.drive.set_timed(false);
    let ended = preconditioner.pass(&mut *workload, &mut end, &mut |_| None)?;
    drive.set_timed(timed);
    drive.reset_statistics();
    Ok(if ended == Pass::Stopped { Ended::Stopped } else { Ended::Done })
}

struct Preconditioner<'a, 'k, D: ?Sized> {
    drive: &'a mut D,
    config: &'a DriveConfig,
    verifier: Option<&'a mut Verifier>,
    control: &'a Control<'a>,
    record: Precondition,
    /// Requests since the last write.
    unsent_reads: u64,
    /// Requests that ended with an error.
    refused: u64,
    /// Bytes that had been sent to be written when the first of them did.
    refused_after: u64,
    /// Pages that were programmed before the drive was resumed.
    programmed_before: u64,
    /// Sectors filled, while the drive is filled.
    filled: Option<u64>,
    /// Turns of the current pass.
    turns: u64,
    /// Turns of the next pass that were done before the drive was resumed.
    turns_before: u64,
    search: Option<Search>,
    keeper: Option<&'a mut Keeper<'k>>,
    /// The drive may send events.
    has_events: bool,
}

/// How far a workload is that drew its requests once more.
struct Drawn {
    clock: Nanos,
    requests: u64,
    stopped: bool,
}

/// Why a pass ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    Whole,
    Enough,
    NoWrites,
    Stopped,
}

/// Counters of programmed pages and written bytes at the start of a window or a pass.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Mark {
    written: u64,
    programmed: u64,
}

impl<'a, 'k, D: BlockDevice + Administration + ?Sized> Preconditioner<'a, 'k, D> {
    fn new(
        drive: &'a mut D,
        config: &'a DriveConfig,
        verifier: Option<&'a mut Verifier>,
        control: &'a Control<'a>,
    ) -> Preconditioner<'a, 'k, D> {
        Preconditioner {
            has_events: drive.command_set().is_some(),
            drive,
            config,
            verifier,
            control,
            record: Precondition::default(),
            unsent_reads: 0,
            refused: 0,
            refused_after: 0,
            programmed_before: 0,
            filled: Some(0),
            turns: 0,
            turns_before: 0,
            search: None,
            keeper: None,
        }
    }

    fn go_on_from(&mut self, position: Option<Position>) {
        let Some(position) = position else { return };
        self.record.written_bytes = position.written_bytes;
        self.unsent_reads = position.unsent_reads;
        self.programmed_before = position.programmed;
        self.filled = position.filled;
        self.turns_before = position.turns;
        self.search = position.search;
    }

    /// Writes a checkpoint where one is due, between two requests.
    fn keep_checkpoint(&mut self, stopped: bool) {
        let due = self.keeper.as_ref().is_some_and(|keeper| keeper.is_due(stopped));
        if !due || self.drive.outstanding() > 0 {
            return;
        }
        let position = Position {
            filled: self.filled,
            turns: self.turns,
            written_bytes: self.record.written_bytes,
            programmed: self.mark().programmed,
            unsent_reads: self.unsent_reads,
            search: self.search.clone(),
        };
        // Checkpoints are of one drive: stacks have no keeper.
        if let (Some(keeper), [only]) = (&mut self.keeper, self.drive.parts().as_slice()) {
            keeper.keep(only.drive, &position);
        }
    }

    fn fill(&mut self, name: &str) -> Ended {
        self.control.progress.begin(name, Phase::Fill);
        let sectors = self.drive.sectors();
        // A drive that was resumed behind its fill is full.
        let mut sector = self.filled.unwrap_or(sectors);
        let mut requests = 0_u64;
        let zones = self.drive.zones();
        while sector < sectors {
            // What is behind the capacity of a zone is passed over.
            let (end, next) = zones.map_or((sectors, sectors), |shape| {
                let zone = sector / shape.size;
                (zone * shape.size + shape.capacity, (zone + 1) * shape.size)
            });
            let length = FILL_SECTORS.min(end - sector);
            self.send(Request::new(Op::Write, sector, length));
            self.settle();
            sector = if sector + length == end { next } else { sector + length };
            requests += 1;
            if requests.is_multiple_of(FILLS_PER_LOOK) {
                self.control.progress.advance(sector * SECTOR_BYTES, Some(sectors * SECTOR_BYTES));
                self.filled = Some(sector);
                let stopped = self.control.stopped();
                self.keep_checkpoint(stopped);
                if stopped {
                    return Ended::Stopped;
                }
            }
        }
        self.filled = None;
        Ended::Done
    }

    /// The request now, done at once.
    #[inline]
    fn send(&mut self, mut request: Request) {
        request.at = self.drive.now();
        match &mut self.verifier {
            None => self.drive.submit(&request, Data::Nothing),
            Some(verifier) => verifier.submit(self.drive, &request, &[]),
        }
        if request.op == Op::Write {
            self.record.written_bytes += request.bytes();
            self.unsent_reads = 0;
        } else {
            self.unsent_reads += 1;
        }
    }

    /// What has completed; the caller clears it.
    #[inline]
    fn completions(&mut self) -> &mut Vec<Completion> {
        match &mut self.verifier {
            None => self.drive.completions(),
            Some(verifier) => verifier.collect(self.drive),
        }
    }

    /// Waits for what is in flight, and takes what has completed, of which nothing but errors is of interest.
    fn settle(&mut self) {
        let now = self.drive.now();
        while self.drive.outstanding() > 0 && self.drive.wait_for_completion(now) {
            self.take_completed();
        }
        self.take_completed();
        self.drop_events();
    }

    fn take_completed(&mut self) {
        let failed = self.completions().drain(..).filter(|completion| completion.status != Status::Success).count();
        self.count_refused(failed as u64);
    }

    /// What the drive tells its host meanwhile is none of the run's.
    #[inline]
    fn drop_events(&mut self) {
        if self.has_events {
            self.drive.drop_events();
        }
    }

    fn count_refused(&mut self, failed: u64) {
        if failed > 0 && self.refused == 0 {
            self.refused_after = self.record.written_bytes;
        }
        self.refused += failed;
    }

    /// Notes what went wrong, of which nothing is left in the statistics.
    fn tell_refusals(&mut self) {
        if self.refused > 0 {
            let (requests, verb) = if self.refused == 1 { ("request", "was") } else { ("requests", "were") };
            let why = match self.drive.read_only_reason() {
                Some(reason) => format!("the drive became read-only, since {reason}"),
                None => "operations of the chips failed".to_string(),
            };
            self.record.notes.push(format!(
                "{} {requests} of preconditioning {verb} refused, the first after {} had been sent: {why}, so the drive is not \
                 in the state that was asked for",
                self.refused,
                format_size(self.refused_after)
            ));
        }
    }

    fn mark(&self) -> Mark {
        let flash = self.drive.counters().flash;
        Mark {
            written: self.record.written_bytes,
            programmed: self.programmed_before + flash.total(OpKind::Program) + flash.total(OpKind::Copyback),
        }
    }

    /// Bytes written since `mark`, and their write amplification.
    fn since(&self, mark: Mark) -> (u64, f64) {
        let now = self.mark();
        let written = now.written - mark.written;
        let page_bytes = u64::from(self.config.flash.geometry.page_bytes);
        let programmed = (now.programmed - mark.programmed) * page_bytes;
        (written, if written == 0 { 0.0 } else { programmed as f64 / written as f64 })
    }

    /// Sends a workload to its end, or until `look`, called now and then with `self`, has had enough.
    fn pass(
        &mut self,
        workload: &mut dyn Workload,
        next_look: &mut u64,
        look: &mut dyn FnMut(&mut Self) -> Option<u64>,
    ) -> Result<Pass, ReplayError> {
        let user_sectors = self.drive.sectors();
        if let Some(set) = workload.command_set() {
            return Err(ReplayError::Preconditioning { set });
        }
        // The workload's own clock goes on, though the drive's stands still.
        let Drawn { mut clock, mut requests, stopped } = self.draw_again(workload)?;
        if stopped {
            return Ok(Pass::Stopped);
        }
        let (mut outstanding, mut in_order) = (0_u64, true);
        let mut batch = [Request::new(Op::Flush, 0, 0); BATCH];
        let mut still = Standstill::default();
        loop {
            // Asking ahead of sending lets the processor fetch what the drive will need.
            let mut gathered = 0;
            let mut then = None;
            while gathered < BATCH && then.is_none() {
                match workload.next(clock)? {
                    Next::Request(request) => {
                        if !fits(&request, user_sectors) {
                            return Err(beyond(&request, requests + gathered as u64 + 1, user_sectors));
                        }
                        batch[gathered] = request;
                        gathered += 1;
                    }
                    other => then = Some(other),
                }
            }
            self.drive.prefetch(&batch[..gathered]);
            for request in &batch[..gathered] {
                self.send(*request);
            }
            requests += gathered as u64;
            outstanding += gathered as u64;
            match then {
                Some(Next::WaitUntil(until)) => clock = woken(until, clock, requests)?,
                Some(Next::WaitForCompletion) if self.completions().is_empty() => {
                    let now = self.drive.now();
                    if outstanding == 0 || !self.drive.wait_for_completion(now) {
                        return Err(ReplayError::Deadlock { sent: requests });
                    }
                }
                _ => {}
            }
            self.drop_events();
            let mut tags = batch[..gathered].iter().map(|request| request.tag);
            let mut failed = 0;
            for completion in self.completions().drain(..) {
                outstanding -= 1;
                in_order &= tags.next() == Some(completion.tag);
                failed += u64::from(completion.status != Status::Success);
                workload.completed(clock, completion.tag);
            }
            self.count_refused(failed);
            in_order &= outstanding == 0;
            if then == Some(Next::Done) {
                return Ok(Pass::Whole);
            }
            if self.record.written_bytes >= *next_look {
                match look(self) {
                    Some(later) => *next_look = later,
                    None => return Ok(Pass::Enough),
                }
            }
            self.turns += 1;
            if self.turns.is_multiple_of(TURNS_PER_LOOK) {
                if self.unsent_reads >= READS_IN_A_ROW_MAX {
                    return Ok(Pass::NoWrites);
                }
                // A search for the steady state ends by itself.
                if self.search.is_none()
                    && let Some(requests) = still.look(clock, requests, 0, 0)
                    && workload.ends_by_time()
                {
                    return Err(ReplayError::NoTimeInPreconditioning { requests });
                }
                let stopped = self.control.stopped();
                match &mut self.keeper {
                    Some(keeper) if !in_order => {
                        keeper.give_up("requests did not complete in the order they were sent")
                    }
                    _ => self.keep_checkpoint(stopped),
                }
                if stopped {
                    return Ok(Pass::Stopped);
                }
            }
        }
    }

    /// Lets a workload draw what was sent of it before the drive was resumed: every request completes at once and in its
    /// turn, as it did then.
    fn draw_again(&mut self, workload: &mut dyn Workload) -> Result<Drawn, ReplayError> {
        let mut drawn = Drawn { clock: Nanos::ZERO, requests: 0, stopped: false };
        self.turns = std::mem::take(&mut self.turns_before);
        let mut tags = Vec::with_capacity(BATCH);
        for turn in 0..self.turns {
            let mut then = None;
            tags.clear();
            while tags.len() < BATCH && then.is_none() {
                match workload.next(drawn.clock)? {
                    Next::Request(request) => tags.push(request.tag),
                    other => then = Some(other),
                }
            }
            if let Some(Next::WaitUntil(until)) = then {
                drawn.clock = until.max(Nanos(drawn.clock.0.saturating_add(1)));
            }
            drawn.requests += tags.len() as u64;
            tags.iter().for_each(|tag| workload.completed(drawn.clock, *tag));
            if turn.is_multiple_of(TURNS_PER_LOOK << 10) && self.control.stopped() {
                drawn.stopped = true;
                break;
            }
        }
        Ok(drawn)
    }

    fn once(&mut self, name: &str, workload: &mut dyn Workload) -> Result<Ended, ReplayError> {
        const STEP: u64 = 64 << 20;
        self.control.progress.begin(name, Phase::Preconditioning);
        self.filled = None;
        let mut next_look = self.record.written_bytes + STEP;
        let ended = self.pass(workload, &mut next_look, &mut |preconditioner| {
            preconditioner.control.progress.advance(preconditioner.record.written_bytes, None);
            Some(preconditioner.record.written_bytes + STEP)
        })?;
        if ended == Pass::NoWrites {
            self.record.notes.push(format!(
                "preconditioning stopped after {READS_IN_A_ROW_MAX} requests without a write: nothing more would change"
            ));
        }
        Ok(if ended == Pass::Stopped { Ended::Stopped } else { Ended::Done })
    }

    fn steady(&mut self, name: &str, measured: &dyn WorkloadSource) -> Result<Ended, ReplayError> {
        self.control.progress.begin(name, Phase::Preconditioning);
        let config = self.config;
        let user_bytes = config.user_bytes;
        let fresh = Steadiness::new(user_bytes, u64::from(config.ftl.mapping_unit));
        let window_bytes = fresh.window_bytes;
        let most = (CAPACITIES_MAX * user_bytes).max(WINDOWS_MAX * window_bytes);
        // The pass that a resumed drive is in is not begun again.
        let mut begun = self.search.is_some();
        let here = self.mark();
        let search = self.search.get_or_insert(Search {
            steadiness: fresh,
            pass: 0,
            start: here,
            window: here,
            pass_start: here,
        });
        let start = search.start;
        let mut next_look = (search.window.written + window_bytes).min(here.written + (64 << 20));
        loop {
            // A pass may be too short to look at the flag itself.
            if self.control.stopped() {
                return Ok(Ended::Stopped);
            }
            let here = self.mark();
            let search = self.search.as_mut().unwrap_or_else(|| unreachable!("the search was begun"));
            if !std::mem::take(&mut begun) {
                search.pass += 1;
                search.pass_start = here;
            }
            let (pass, pass_start) = (search.pass, search.pass_start);
            let mut workload = measured.open(config, pass)?;
            let ended = self.pass(&mut *workload, &mut next_look, &mut |preconditioner| {
                preconditioner
                    .control
                    .progress
                    .advance(preconditioner.record.written_bytes - start.written, Some(most));
                let here = preconditioner.mark();
                let mut window = preconditioner.search.as_ref().map_or(start, |search| search.window);
                let (written, write_amplification) = preconditioner.since(window);
                if preconditioner.drive.is_read_only() {
                    // Nothing is written any more, which would look like a write amplification that does not change.
                    return None;
                }
                if written >= window_bytes {
                    window = here;
                    let search = preconditioner.search.as_mut().unwrap_or_else(|| unreachable!("the search was begun"));
                    search.window = here;
                    search.steadiness.window(written, write_amplification);
                    if search.steadiness.is_steady() || search.steadiness.is_exhausted() {
                        return None;
                    }
                }
                Some((window.written + window_bytes).min(here.written + (64 << 20)))
            })?;
            let (written, write_amplification) = self.since(pass_start);
            let search = self.search.as_mut().unwrap_or_else(|| unreachable!("the search was begun"));
            match ended {
                Pass::Stopped => return Ok(Ended::Stopped),
                Pass::NoWrites => break,
                Pass::Whole if written == 0 => break,
                Pass::Whole => search.steadiness.pass(written, write_amplification),
                Pass::Enough => {}
            }
            if search.steadiness.is_steady() || search.steadiness.is_exhausted() || self.drive.is_read_only() {
                break;
            }
        }
        let Some(Search { steadiness, .. }) = self.search.take() else { unreachable!("the search was begun") };
        self.record.window_bytes = window_bytes;
        let steady = steadiness.is_steady() && !self.drive.is_read_only();
        let (written, _) = self.since(start);
        if written == 0 {
            self.record.notes.push(
                "the workload does not write, so its steady state is the filled drive: nothing but the fill was done"
                    .to_string(),
            );
            self.record.steady = Some(true);
            return Ok(Ended::Done);
        }
        if !steady && !self.drive.is_read_only() {
            let last: Vec<String> =
                steadiness.windows.iter().rev().take(WINDOWS_AGREEING).rev().map(|wa| format!("{wa:.3}")).collect();
            self.record.notes.push(format!(
                "write amplification was not steady after overwriting {:.1} user capacities: the last windows had {}",
                written as f64 / steadiness.user_bytes as f64,
                last.join(", ")
            ));
        }
        self.record.settled = steadiness.settled().filter(|_| steady);
        if let Some(Settled::Spans { windows, apart }) = self.record.settled {
            self.record.notes.push(format!(
                "write amplification is steady over {windows} windows at a time ({} written), within which it alternates by \
                 {:.1} %: what a shorter run measures depends on where it begins",
                format_size(windows * window_bytes),
                apart * 100.0
            ));
        }
        self.record.steady = Some(steady);
        self.record.windows = steadiness.windows;
        Ok(Ended::Done)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use rand::RngExt as _;
    use ssdlab_base::rng;

    use super::*;
    use crate::progress::Quiet;
    use crate::replay::fake::{Fake, Fault, Writes};

    const USER: u64 = 1 << 40;

    fn fed(values: &[f64]) -> Steadiness {
        let mut steadiness = Steadiness::new(USER, 4096);
        for &value in values {
            steadiness.window(USER / 2, value);
        }
        steadiness
    }

    #[test]
    fn four_windows_within_a_percent_are_steady_but_not_before_three_capacities() {
        assert!(!fed(&[3.0; 4]).is_steady());
        assert!(fed(&[3.0; 6]).is_steady());
        assert!(!fed(&[1.0, 2.0, 3.0, 3.01, 3.02, 3.05]).is_steady());
        assert!(fed(&[1.0, 2.0, 3.0, 3.01, 3.02, 3.02]).is_steady());
    }

    #[test]
    fn a_slow_drift_is_not_steady_though_neighbours_agree() {
        let drift: Vec<f64> = (0..20).map(|step| 2.0 * 1.005_f64.powi(step)).collect();
        assert!(!fed(&drift).is_steady());
    }

    #[test]
    fn windows_count_after_one_whole_pass() {
        let mut steadiness = fed(&[3.0; 4]);
        steadiness.pass(USER / 4, 3.0);
        assert!(steadiness.is_steady());
    }

    #[test]
    fn a_workload_in_phases_is_steady_when_its_passes_agree() {
        let mut steadiness = Steadiness::new(USER, 4096);
        for _ in 0..3 {
            for value in [1.0, 5.0, 2.0, 4.0] {
                steadiness.window(USER / 2, value);
            }
            assert!(!steadiness.is_steady());
            steadiness.pass(2 * USER, 3.0);
        }
        assert!(steadiness.is_steady());
    }

    /// Feeds a series to its end; the windows after which it was steady, and by what.
    fn search(value: impl Fn(usize) -> f64) -> Option<(usize, Settled)> {
        let mut steadiness = Steadiness::new(USER, 4096);
        for window in 0.. {
            match steadiness.settled() {
                Some(settled) => return Some((window, settled)),
                None if steadiness.is_exhausted() => break,
                None => steadiness.window(USER / 2, value(window)),
            }
        }
        None
    }

    /// What a window of a drawn series has beside 1, from -1 to 1.
    fn drawn(seed: u64) -> Vec<f64> {
        let mut rng = rng(seed, "noise");
        (0..80).map(|_| rng.random_range(-1.0..1.0)).collect()
    }

    #[test]
    fn the_search_ends() {
        let mut steadiness = Steadiness::new(USER, 4096);
        let mut windows = 0;
        while !steadiness.is_exhausted() {
            steadiness.window(USER / 2, 1.01_f64.powi(windows));
            windows += 1;
        }
        assert_eq!(windows, 80);
        assert!(!steadiness.is_steady());
    }

    /// Found where a pass wrote the capacity and had hot blocks of its own: two windows for each, for ever.
    #[test]
    fn windows_that_alternate_are_steady_when_spans_of_them_agree() {
        for seed in 0..50 {
            let noise = drawn(seed);
            for period in 2..=4 {
                let high = |window: usize| if window.is_multiple_of(period) { 1.3 } else { 1.0 };
                let found = search(|window| high(window) * (1.0 + 0.004 * noise[window]));
                let Some((windows, Settled::Spans { windows: span, apart })) = found else {
                    panic!("period {period}, seed {seed}: {found:?}")
                };
                assert!(windows >= 24 && (8..=12).contains(&span), "period {period}, seed {seed}: {found:?}");
                assert!((0.2..0.35).contains(&apart), "period {period}, seed {seed}: {found:?}");
            }
        }
    }

    #[test]
    fn what_ends_by_its_windows_ends_as_soon_as_before() {
        for seed in 0..50 {
            let noise = drawn(seed);
            let found = search(|window| 3.0 + 0.01 * noise[window]);
            assert_eq!(found, Some((6, Settled::Windows)), "seed {seed}");
        }
    }

    #[test]
    fn noise_about_a_constant_is_steady_and_a_drift_in_it_is_not() {
        let mut refused = 0;
        for seed in 0..50 {
            let noise = drawn(seed);
            for alternation in [0.0, 0.05] {
                let high = |window: usize| if window.is_multiple_of(2) { 1.0 + alternation } else { 1.0 };
                let around = |window: usize| high(window) * (1.0 + 0.04 * noise[window]);
                assert!(search(around).is_some(), "seed {seed}");
                for drift in [0.004, -0.004] {
                    let found = search(|window| (1.0 + drift * window as f64) * around(window));
                    refused += u32::from(!matches!(found, Some((_, Settled::Spans { .. }))));
                }
            }
        }
        // Of 200 series: noise that hides a drift over the whole span is rare.
        assert!(refused >= 195, "{refused}");
    }

    #[test]
    fn a_drift_under_an_alternation_is_not_steady() {
        for drift in [0.002, -0.002, 0.01, -0.01] {
            for period in 2..5 {
                let high = |window: usize| if window.is_multiple_of(period) { 1.3 } else { 1.0 };
                let found = search(|window| high(window) * (1.0 + drift * window as f64));
                assert_eq!(found, None, "drift {drift}, period {period}");
            }
        }
    }

    /// A hundred writes and reads, one at a time.
    struct OneByOne;

    impl WorkloadSource for OneByOne {
        fn open(&self, _drive: &DriveConfig, _pass: u64) -> Result<Box<dyn Workload>, ssdlab_workload::WorkloadError> {
            Ok(Box::new(Writes::closed(100, 1)))
        }

        fn identity(&self) -> String {
            "one by one".to_string()
        }
    }

    /// A drive stops for an event as for a completion; an event that no host takes stops it for ever.
    #[test]
    fn a_drive_that_sends_events_is_preconditioned() {
        let text = include_str!("../tests/it/common/small.toml");
        let description = ssdlab_device::Description::parse(text, "small.toml").expect("a description");
        let config = description.resolve().expect("a drive");
        let stop = AtomicBool::new(false);
        let (mut drive, control) = (Fake::new(Fault::Tells), Control::new(&stop, &Quiet));
        let preconditioning = Preconditioning::Workload(&OneByOne);
        let interruptible = Interruptible::default();
        let (aged, record) =
            precondition(&mut drive, &config, &preconditioning, "fake", &OneByOne, None, interruptible, &control)
                .expect("it fits");
        assert_eq!((aged, record.notes), (Ended::Done, Vec::new()));
        assert_eq!(drive.counters().commands[..2], [33, 67]);
        assert_eq!(drive.drop_events(), 0, "what the drive told meanwhile is not the run's");
    }
}

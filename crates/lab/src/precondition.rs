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
mod footprint;
mod kind;
mod steadiness;
mod text;

use checkpoint::Search;
pub(crate) use checkpoint::{Keeper, Position};
pub use kind::Preconditioning;
pub use steadiness::Steadiness;
pub use text::{TextPreconditioning, workload_of};

/// A fill writes this much at a time.
const FILL_SECTORS: u64 = (1 << 20) / SECTOR_BYTES;

/// Requests of a fill between looks at the stop flag and the progress.
const FILLS_PER_LOOK: u64 = 64;

/// Turns of the loop, of up to [`BATCH`] requests each, between looks at the stop flag.
const TURNS_PER_LOOK: u64 = 64;

/// The pass of the workload that fills the write buffer: none of those that precondition.
const WARMING_PASS: u64 = u64::MAX;

/// A workload that sends so many requests without a write is taken for one that does not write.
const READS_IN_A_ROW_MAX: u64 = 4_000_000;

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
        Preconditioning::Footprint => {
            let mut footprint = footprint::Footprint::of(measured, config)?;
            preconditioner.once(name, &mut footprint)?
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
    let mut end = 2 * drive.drives().iter().map(|part| buffer(part.device.config())).sum::<u64>();
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
        if let (Some(keeper), [only]) = (&mut self.keeper, self.drive.drives().as_slice()) {
            keeper.keep(only.device, &position);
        }
    }

    fn fill(&mut self, name: &str) -> Ended {
        self.control.progress.begin(name, Phase::Fill);
        // Of a drive with more addresses than room, as many of the first as it has room for.
        let room = if self.config.is_sparse() { self.config.user_bytes / SECTOR_BYTES } else { u64::MAX };
        let sectors = self.drive.sectors().min(room);
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
        let most = fresh.most_bytes();
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
            let last: Vec<String> = steadiness.last_windows().iter().map(|wa| format!("{wa:.3}")).collect();
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

    use super::*;
    use crate::progress::NoProgress;
    use crate::replay::fake::{Fake, Fault, Writes};

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
        let (mut drive, control) = (Fake::new(Fault::Tells), Control::new(&stop, &NoProgress));
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

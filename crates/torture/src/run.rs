//! Running a case: the drive, the oracle beside it, and what came of it.

use std::time::Instant;

use ssdlab_base::{Nanos, Op, Request};
use ssdlab_device::{Drive, DriveConfig, DriveError, Options};
use ssdlab_flash::{Contents, FaultKind, ScriptedFault};
use ssdlab_host::BlockDevice as _;

use crate::case::{Again, Case, Cut, Moment, Step};
use crate::crash_harness::{CrashHarness, recovery_of};
use crate::driver::hangs_after;
use crate::durability_oracle::SECTOR_BYTES_KNOWN;
use crate::panic_capture::{Caught, catch};
use crate::totals::{CutKind, Totals};

/// What was found wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What the oracle or the drive said.
    pub message: String,
    /// Where it was said: file and line.
    pub place: String,
    /// The step that was in flight, from 0; behind the last, the end that every case comes to.
    pub step: usize,
}

impl Finding {
    /// Whether the oracle found it, and not the drive's own assertions.
    pub fn by_oracle(&self) -> bool {
        self.place.contains("torture")
    }
}

/// Runs a case; `Err` says what was found wrong. A drive that its own checks refuse is no finding.
pub fn run(case: &Case, totals: &mut Totals) -> Result<(), Finding> {
    run_with_faults(case, totals, &mut Vec::new())
}

/// Runs a case as [`run`] does. `unstruck` gets a sentence for each fault of the case that never struck, if the case
/// came to its end.
pub fn run_telling(case: &Case, totals: &mut Totals, unstruck: &mut Vec<String>) -> Result<(), Finding> {
    run_watched(case, totals, &mut Vec::new(), unstruck)
}

/// Runs a case as [`run`] does. `struck` gets the faults that struck, as far as the case went.
pub(crate) fn run_with_faults(case: &Case, totals: &mut Totals, struck: &mut Vec<Struck>) -> Result<(), Finding> {
    run_watched(case, totals, struck, &mut Vec::new())
}

fn run_watched(
    case: &Case,
    totals: &mut Totals,
    struck: &mut Vec<Struck>,
    unstruck: &mut Vec<String>,
) -> Result<(), Finding> {
    let start = Instant::now();
    let mut step = 0;
    let result = catch(|| run_steps(case, totals, struck, unstruck, &mut step));
    struck.iter().for_each(|struck| totals.struck(struck.fault.kind));
    totals.cases += 1;
    totals.working += start.elapsed();
    result.map_err(|Caught { message, place }| Finding { message, place, step })
}

/// Bytes of memory that a case on this drive takes at most.
///
/// # Errors
/// A design that is not known.
pub fn simulator_bytes(config: &DriveConfig) -> Result<u64, DriveError> {
    let sectors = config.user_bytes / ssdlab_base::SECTOR_BYTES;
    Ok(Drive::simulator_bytes(config, Contents::Stamps)? + sectors * SECTOR_BYTES_KNOWN)
}

/// Whether a drive can be made of this, faults of the factory included; `Err` says why not.
pub fn accepted(case: &Case) -> Result<(), DriveError> {
    Drive::new(&case.config, options(case)).map(|_| ())
}

pub(crate) fn options(case: &Case) -> Options {
    Options { seed: case.seed, contents: Contents::Stamps }
}

fn run_steps(case: &Case, totals: &mut Totals, struck: &mut Vec<Struck>, unstruck: &mut Vec<String>, at: &mut usize) {
    if accepted(case).is_err() {
        return;
    }
    let mut harness = CrashHarness::new(&case.config, options(case));
    harness.oracle.faulty = case.may_fail(FaultKind::Read);
    // With one block in reserve a few torn pages are too much: such a drive may end as one that is only read.
    harness.oracle.may_end_read_only =
        case.config.gc.free_blocks < 3 || case.may_fail(FaultKind::Program) || case.may_fail(FaultKind::Erase);
    if case.steps.iter().any(|step| matches!(step, Step::Fail { .. })) {
        harness.drive().expect_faults();
    }
    let mut runner = Runner { harness, totals, struck, at: 0, tag: 0, trap: None, durable: 0, events: 0 };
    for (index, step) in case.steps.iter().enumerate() {
        *at = index;
        runner.at = index;
        runner.step(step);
        runner.note_faults();
    }
    *at = case.steps.len();
    runner.end();
    unstruck.extend(never_struck(case, runner.harness.drive()));
}

/// The faults of the script and of the steps that have not struck, a sentence each.
fn never_struck(case: &Case, drive: &Drive) -> Vec<String> {
    let mut sentences: Vec<String> = drive.faults_unstruck().iter().map(ToString::to_string).collect();
    let mut asked = drive.faults_asked().to_vec();
    // Of steps that ask for the same, those that came first struck first.
    let mut late = Vec::new();
    for (index, step) in case.steps.iter().enumerate().rev() {
        let Step::Fail { kind, block } = step else { continue };
        if let Some(place) = asked.iter().position(|one| *one == (*kind, *block)) {
            asked.swap_remove(place);
            let on = block.map_or_else(|| "on any block".to_string(), |block| format!("on block {block}"));
            let word = match kind {
                FaultKind::Read => "read",
                FaultKind::Program => "program",
                FaultKind::Erase => "erase",
                FaultKind::Factory | FaultKind::Die => "operation",
            };
            late.push(format!("step {} (\"{step}\") never struck: no {word} {on} came after it", index + 1));
        }
    }
    sentences.extend(late.into_iter().rev());
    sentences
}

/// A fault that struck.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Struck {
    /// As the script that repeats it.
    pub(crate) fault: ScriptedFault,
    /// The step that was in flight.
    pub(crate) step: usize,
}

struct Runner<'a> {
    harness: CrashHarness,
    totals: &'a mut Totals,
    struck: &'a mut Vec<Struck>,
    /// The step in flight.
    at: usize,
    tag: u32,
    /// A power cut that waits for its moment.
    trap: Option<Cut>,
    /// What had been made durable when it was set.
    durable: u64,
    /// Events since.
    events: u32,
}

impl Drop for Runner<'_> {
    /// Also when the case ends with a finding.
    fn drop(&mut self) {
        self.note_faults();
    }
}

impl Runner<'_> {
    fn step(&mut self, step: &Step) {
        match step {
            Step::Command { request, depth } => {
                while self.harness.drive().outstanding() >= u64::from(*depth) {
                    self.await_completion();
                }
                self.submit(request);
            }
            Step::Run(events) => {
                for _ in 0..*events {
                    if !self.event() {
                        break;
                    }
                }
            }
            Step::Pass(time) => self.pass(*time),
            Step::Drain => self.drain(),
            Step::Fail { kind, block } => self.harness.drive().fail_next(*kind, *block),
            Step::Cut(cut) => {
                // One at a time: what the last one waited for did not come.
                self.trap = Some(*cut);
                self.durable = self.harness.oracle.durable;
                self.events = 0;
                self.spring();
            }
        }
    }

    fn submit(&mut self, request: &Request) {
        self.tag += 1;
        self.totals.commands += 1;
        let request = Request { tag: self.tag, ..*request };
        self.harness.submit(&request, u64::from(self.tag));
        self.spring();
    }

    /// Runs one event; false if there is none.
    fn event(&mut self) -> bool {
        let more = self.harness.step();
        self.events += u32::from(more);
        self.spring();
        more
    }

    /// Cuts the power if the moment has come that a cut waits for.
    fn spring(&mut self) {
        let Some(trap) = self.trap else { return };
        let durable = self.harness.oracle.durable > self.durable;
        // What is in flight right after this event.
        let soon = self.harness.drive().now() + Nanos(1);
        let work = self.harness.drive().array_work(soon);
        let there = match trap.at {
            Moment::Now => true,
            Moment::Program => work.programs > 0,
            Moment::Erase => work.erases > 0,
            Moment::Durable => durable,
            Moment::After(events) => self.events >= events,
        };
        if there {
            self.trap = None;
            self.cut(&trap);
        }
    }

    fn pass(&mut self, time: Nanos) {
        let until = self.harness.drive().now() + time;
        while self.trap.is_some() && self.harness.drive().next_event().is_some_and(|at| at <= until) {
            self.event();
        }
        // A cut on the way starts time again.
        if self.harness.drive().now() <= until {
            self.harness.drive().run_until(until);
            self.harness.collect();
        }
    }

    fn await_completion(&mut self) {
        let before = self.harness.drive().outstanding();
        let until = Nanos(self.harness.drive().now().0.saturating_add(hangs_after(&self.harness.config).0));
        while self.trap.is_some() {
            let more = self.event();
            // Fewer because some have completed, or because a cut took them all.
            if self.harness.drive().outstanding() < before {
                return;
            }
            if !more {
                break;
            }
            assert!(self.harness.drive().now() < until, "{before} commands never complete");
        }
        let progress = self.harness.drive().wait_for_completion(until);
        self.harness.collect();
        self.spring();
        assert!(progress, "{before} commands never complete");
    }

    fn drain(&mut self) {
        while self.harness.drive().outstanding() > 0 {
            self.await_completion();
        }
    }

    fn cut(&mut self, cut: &Cut) {
        let in_the_middle = matches!(cut.at, Moment::Program | Moment::Erase);
        if (cut.percent > 0 || in_the_middle)
            && let Some(next) = self.harness.drive().next_event()
        {
            let now = self.harness.drive().now().0;
            // Never the event itself.
            let left = next.0.saturating_sub(now);
            let part = (left * u64::from(cut.percent) / 100).max(u64::from(in_the_middle)).min(left.saturating_sub(1));
            self.harness.drive().run_until(Nanos(now + part));
            self.harness.collect();
        }
        let now = self.harness.drive().now();
        let work = self.harness.drive().array_work(now);
        self.totals.cut(match (work.erases, work.programs) {
            (1.., _) => CutKind::Erase,
            (0, 1..) => CutKind::Program,
            (0, 0) => CutKind::Idle,
        });
        for work in self.harness.drive().in_flight_work() {
            *self.totals.cuts_by_work.entry(work).or_default() += 1;
        }
        self.note_faults();
        let start = Instant::now();
        let mut again = cut.recovery.into_iter().flatten();
        let mut cuts = 0_u64;
        self.harness.cut_in_recovery(|flash| {
            cuts += 1;
            let (scanned, torn) = recovery_of(flash);
            again.next().map(|again| match again {
                Again::Scan(percent) => scanned * u64::from(percent) / 100,
                Again::Erase(blocks) => scanned + u64::from(blocks).min(torn),
            })
        });
        for _ in 1..cuts {
            self.totals.cut(CutKind::Recovery);
        }
        self.totals.recovering += start.elapsed();
        if !cut.unread {
            self.compare();
        }
    }

    fn compare(&mut self) {
        let start = Instant::now();
        self.totals.sectors_compared += self.harness.drive().user_sectors();
        self.harness.compare();
        self.totals.comparing += start.elapsed();
    }

    /// The end of every case: what is in flight completes, the drive takes one more write and one more flush or says
    /// that it is read-only, and all of it is there after one more look.
    fn end(&mut self) {
        self.drain();
        while self.trap.is_some() && self.event() {}
        self.trap = None;
        let refused = self.harness.oracle.refused;
        self.submit(&Request::new(Op::Write, 0, 1));
        self.submit(&Request::new(Op::Flush, 0, 0));
        self.drain();
        let read_only = self.harness.drive().is_read_only();
        assert!(read_only || self.harness.oracle.refused == refused, "a drive that takes writes refused one");
        self.compare();
        self.totals.read_only += u64::from(read_only);
        self.totals.refused += self.harness.oracle.refused;
        self.totals.unreadable += self.harness.oracle.unreadable;
    }

    fn note_faults(&mut self) {
        if let Some(drive) = self.harness.drive_if_on() {
            let new = drive.faults_struck().iter().skip(self.struck.len());
            self.struck.extend(new.map(|fault| Struck { fault: *fault, step: self.at }));
        }
    }
}

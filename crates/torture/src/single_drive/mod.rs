//! Single drives under power cuts and faults: block I/O, and what each sector must hold.
//!
//! ```text
//! draw        a drive and what happens to it, from a seed
//! exhaustive  every cut of every short sequence of commands
//! ```

use std::ops::ControlFlow;
use std::time::Instant;

use ssdlab_base::{Nanos, Op, Request};
use ssdlab_device::{Drive, DriveConfig, DriveError, Options};
use ssdlab_flash::Contents;
use ssdlab_host::BlockDevice as _;

use crate::case::{Case, Refused, Subject, System};
use crate::crash_harness::CrashHarness;
use crate::cut::Whose;
use crate::driver::hangs_after;
use crate::durability_oracle::SECTOR_BYTES_KNOWN;
use crate::script::{Keys, ScriptError};
use crate::step::{BlockCommand, Place, Step};
use crate::totals::Totals;

mod draw;
mod exhaustive;

pub use draw::{NotAccepted, Scope, without_bad_blocks};
pub use exhaustive::{Exhaustive, alphabet, every_event};

/// Bytes of memory that a case on this drive takes at most.
///
/// # Errors
/// A design that is not known.
pub fn simulator_bytes(config: &DriveConfig) -> Result<u64, DriveError> {
    let sectors = config.user_bytes / ssdlab_base::SECTOR_BYTES;
    Ok(Drive::simulator_bytes(config, Contents::Stamps)? + sectors * SECTOR_BYTES_KNOWN)
}

/// A drive, by block I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SingleDrive;

impl Subject for SingleDrive {
    type Command = BlockCommand;
    type System = DriveUnderTest;

    const STEPS: &'static str = "read, write, trim, zero, flush, run, pass, drain, fail or cut";
    const END: &'static str = "one more write and flush, and a look at all sectors";

    fn build(case: &Case) -> Result<DriveUnderTest, Refused> {
        let options = Options { seed: case.seed, contents: Contents::Stamps };
        let mut harness = CrashHarness::build(&case.drive, options)?;
        let allowed = case.allows(&case.drive);
        (harness.oracle.faulty, harness.oracle.may_end_read_only) = (allowed.failed_reads, allowed.read_only);
        allowed.prepare(harness.drive());
        Ok(DriveUnderTest { harness, tag: 0 })
    }

    fn takes(step: &Step<BlockCommand>) -> bool {
        match step {
            Step::Fail(_, place) => !matches!(place, Place::Drive(_)),
            Step::Cut(cut) => cut.whose == Whose::Only && !cut.is_of_files(),
            _ => true,
        }
    }

    fn read(_: &mut Keys<'_>) -> Result<SingleDrive, ScriptError> {
        Ok(SingleDrive)
    }
}

/// A drive beside the oracle of its sectors.
pub struct DriveUnderTest {
    harness: CrashHarness,
    tag: u32,
}

impl System for DriveUnderTest {
    type Command = BlockCommand;

    fn apply(&mut self, step: &Step<BlockCommand>, totals: &mut Totals) -> ControlFlow<()> {
        match step {
            Step::Command(BlockCommand { request, depth }) => {
                while self.drive().outstanding() >= u64::from(*depth) {
                    self.await_completion(totals);
                }
                self.submit(request, totals);
            }
            Step::Run(events) => {
                for _ in 0..*events {
                    if !self.event(totals) {
                        break;
                    }
                }
            }
            Step::Pass(time) => self.pass(*time, totals),
            Step::Drain => self.drain(totals),
            Step::Fail(kind, place) => self.drive().fail_next(*kind, place.block()),
            Step::Cut(cut) => {
                // One at a time: what the last one waited for did not come.
                self.harness.power.set_trap(*cut, self.harness.oracle.durable);
                self.spring(totals);
            }
        }
        ControlFlow::Continue(())
    }

    /// What is in flight completes, the drive takes one more write and one more flush or says that it is read-only, and
    /// all of it is there after one more look.
    fn end(&mut self, totals: &mut Totals) {
        self.drain(totals);
        while self.harness.power.has_trap() && self.event(totals) {}
        self.harness.power.take_trap();
        let refused = self.harness.oracle.refused;
        self.submit(&Request::new(Op::Write, 0, 1), totals);
        self.submit(&Request::new(Op::Flush, 0, 0), totals);
        self.drain(totals);
        let read_only = self.drive().is_read_only();
        assert!(read_only || self.harness.oracle.refused == refused, "a drive that takes writes refused one");
        self.compare(totals);
        totals.read_only += u64::from(read_only);
    }

    fn drives(&self) -> Vec<&Drive> {
        self.harness.power.if_on().into_iter().collect()
    }

    fn count(&self, totals: &mut Totals) {
        totals.refused += self.harness.oracle.refused;
        totals.unreadable += self.harness.oracle.unreadable;
    }
}

impl DriveUnderTest {
    fn drive(&mut self) -> &mut Drive {
        self.harness.drive()
    }

    fn submit(&mut self, request: &Request, totals: &mut Totals) {
        assert!(self.tag < u32::MAX, "tags are used up");
        self.tag += 1;
        totals.commands += 1;
        let request = Request { tag: self.tag, ..*request };
        self.harness.submit(&request, u64::from(self.tag));
        self.spring(totals);
    }

    /// Runs one event; false if there is none.
    fn event(&mut self, totals: &mut Totals) -> bool {
        let more = self.harness.step();
        self.spring(totals);
        more
    }

    /// Cuts the power if the moment has come that a cut waits for.
    fn spring(&mut self, totals: &mut Totals) {
        if self.harness.power.is_due(self.harness.oracle.durable) {
            let cut = self.harness.power.take_trap();
            self.harness.cut_as(&cut, totals);
            if !cut.unread {
                self.compare(totals);
            }
        }
    }

    fn pass(&mut self, time: Nanos, totals: &mut Totals) {
        let until = self.drive().now() + time;
        while self.harness.power.has_trap() && self.drive().next_event().is_some_and(|at| at <= until) {
            self.event(totals);
        }
        // A cut on the way starts time again.
        if self.drive().now() <= until {
            self.drive().run_until(until);
            self.harness.collect();
        }
    }

    fn await_completion(&mut self, totals: &mut Totals) {
        let before = self.drive().outstanding();
        let until = Nanos(self.drive().now().0.saturating_add(hangs_after(&self.harness.power.config).0));
        while self.harness.power.has_trap() {
            let more = self.event(totals);
            // Fewer because some have completed, or because a cut took them all.
            if self.drive().outstanding() < before {
                return;
            }
            if !more {
                break;
            }
            assert!(self.drive().now() < until, "{before} commands never complete");
        }
        let progress = self.drive().wait_for_completion(until);
        self.harness.collect();
        self.spring(totals);
        assert!(progress, "{before} commands never complete");
    }

    fn drain(&mut self, totals: &mut Totals) {
        while self.drive().outstanding() > 0 {
            self.await_completion(totals);
        }
    }

    fn compare(&mut self, totals: &mut Totals) {
        let start = Instant::now();
        totals.sectors_compared += self.drive().user_sectors();
        self.harness.compare();
        totals.comparing += start.elapsed();
    }
}

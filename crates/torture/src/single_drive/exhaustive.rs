//! Every power cut of every short sequence of commands, on drives of a handful of pages.

use std::sync::atomic::AtomicBool;

use ssdlab_base::{Op, Request};
use ssdlab_device::{DriveConfig, Owners};

use super::SingleDrive;
use crate::campaign::{Ended, Failed, Outcome, in_order, run_failing};
use crate::case::Case;
use crate::configs::handful;
use crate::cut::{Cut, Moment};
use crate::script::describable;
use crate::step::{BlockCommand, Step};
use crate::totals::Totals;
use crate::walk::{Sequences, each_event};

/// How far into the next event the power goes, in percent.
const PERCENTS: [u8; 2] = [0, 50];

/// How many commands are in flight at most.
const DEPTHS: [u32; 2] = [1, 4];

/// Sequences to be run.
#[derive(Clone, Debug)]
pub struct Exhaustive {
    /// FTL designs, by name.
    pub designs: Vec<String>,
    /// Buffer policies, by name.
    pub buffers: Vec<String>,
    /// Commands of a sequence, at most.
    pub length: u32,
    /// Threads.
    pub jobs: usize,
}

/// The commands that sequences are made of, on a drive of four units of two sectors or eight of one.
pub fn alphabet() -> [Request; 7] {
    [
        Request::new(Op::Write, 0, 2),
        Request { fua: true, ..Request::new(Op::Write, 2, 3) },
        Request::new(Op::Write, 1, 1),
        Request::new(Op::Trim, 0, 8),
        Request::new(Op::Trim, 1, 2),
        Request { fua: true, ..Request::new(Op::WriteZeroes, 1, 4) },
        Request::new(Op::Flush, 0, 0),
    ]
}

impl Exhaustive {
    /// One drive for each design, buffer and mapping unit, and another one with lists of owners.
    fn drives(&self) -> Vec<DriveConfig> {
        let mut drives = Vec::new();
        for design in &self.designs {
            for buffer in &self.buffers {
                for unit in [512, 1024] {
                    let mut config = handful();
                    config.user_bytes = 4096;
                    config.ftl.design = design.clone();
                    config.buffer.policy = buffer.clone();
                    config.buffer.bytes = 1024;
                    config.ftl.mapping_unit = unit;
                    config.flash.geometry.planes_per_die = if unit == 512 { 2 } else { 1 };
                    ssdlab_device::handful_for_design(&mut config, unit == 1024);
                    drives.extend(describable(&config));
                    // Without OOB areas, where the design takes that.
                    ssdlab_device::set_owners(&mut config, Owners::Summary);
                    if config.ftl.owners == Owners::Summary {
                        config.flash.geometry.pages_per_block = if unit == 1024 { 3 } else { 4 };
                        drives.extend(describable(&config));
                    }
                }
            }
        }
        drives
    }

    /// Runs all sequences of 1 up to `length` commands, each at each depth, cut at each event and between; until one
    /// fails, or `stop` is set. `watch` hears of the counts now and then.
    pub fn run(&self, stop: &AtomicBool, watch: &(dyn Fn(&Totals) + Sync)) -> Outcome {
        let (drives, alphabet) = (self.drives(), alphabet());
        let sequences = Sequences { systems: &drives, alphabet: &alphabet, length: self.length, jobs: self.jobs };
        sequences.run(stop, watch, &every_cut)
    }
}

/// Cuts the power when so many events have run.
fn cut_after(events: u32, percent: u8) -> Step<BlockCommand> {
    Step::Cut(Cut { at: Moment::After(events), percent, ..Cut::NOW })
}

fn every_cut(drive: &DriveConfig, sequence: &[Request], totals: &mut Totals) -> Result<(), Failed<SingleDrive>> {
    for depth in DEPTHS {
        for percent in PERCENTS {
            let commands = || sequence.iter().map(|request| Step::Command(BlockCommand { request: *request, depth }));
            each_event(totals, 0, |events| {
                let cut = [cut_after(events, percent)];
                // Before the first event is after the last command: else nothing has happened at all.
                let steps = if events == 0 {
                    commands().chain(cut).collect()
                } else {
                    cut.into_iter().chain(commands()).collect()
                };
                Case { seed: 1, drive: drive.clone(), subject: SingleDrive, steps }
            })?;
        }
    }
    Ok(())
}

/// Cuts the power at each event of a case from step `before` on, when `percent` of the time to the next event has
/// passed; until a cut is not survived.
pub fn every_event(case: &Case, before: usize, percent: u8, jobs: usize) -> Outcome {
    in_order(u64::MAX, jobs, &|| false, &|_| {}, &|events, totals| {
        let mut case = case.clone();
        case.steps.insert(before, cut_after(events as u32, percent));
        run_failing(case, totals).map_err(Ended::Found)?;
        // Without a cut there are no more events.
        if totals.cuts == 0 { Err(Ended::NoMore) } else { Ok(()) }
    })
}

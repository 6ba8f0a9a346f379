//! Cases of a host of segments: a drive and a list of steps, drawn from a seed, run beside the model.

use std::ops::ControlFlow;

use rand::RngExt;
use ssdlab_base::command_sets::segments::SEGMENTS;
use ssdlab_base::command_sets::zoned::{self, ZONED};
use ssdlab_base::{Rng, rng};
use ssdlab_device::{Drive, DriveConfig, DriveError, Options, design_with, draw_design};
use ssdlab_flash::{Contents, SchedulerKind};
use toml::Value;

use super::{Kind, SegmentCommand, SegmentHost};
use crate::campaign::{Draw, NotDrawn, try_drives};
use crate::case::{Case, Refused, Subject, System};
use crate::configs::{self, one_of};
use crate::cut::{Stop, draw_cut};
use crate::script::{Keys, ScriptError, describable};
use crate::step::Step;
use crate::totals::Totals;

/// A drive with append-only segments, or zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments;

/// What cases are drawn from: small drives, a third of them with zones.
#[derive(Clone, Copy, Debug)]
pub struct SegmentScope;

/// Drives that are drawn for a seed at most.
const TRIES: u32 = 1000;

impl Draw for SegmentScope {
    type Subject = Segments;

    fn draw_until(&self, seed: u64, over: &dyn Fn() -> bool) -> Result<Case<Segments>, NotDrawn> {
        let mut rng = rng(seed, "segment case");
        try_drives(seed, TRIES, over, || {
            let drive = draw_drive(seed, &mut rng).ok_or(None)?;
            let mut case = Case { seed, drive, subject: Segments, steps: Vec::new() };
            let host = Segments::build(&case).map_err(|why| Some(why.to_string()))?;
            case.steps = steps(seed, &host);
            Ok(case)
        })
    }
}

fn draw_drive(seed: u64, rng: &mut Rng) -> Option<DriveConfig> {
    let mut config = configs::draw(rng);
    // Some drives have zones.
    let set = if seed % 3 == 2 { &ZONED } else { &SEGMENTS };
    draw_design(&mut config, design_with(set)?, rng);
    // Some have one queue. Not drawn, so that seeds of other campaigns keep their drives.
    if seed % 5 == 4 {
        config.flash.scheduler = SchedulerKind::SingleFifo;
    }
    config.timed = rng.random_bool(0.9);
    let rate = |rng: &mut Rng, rate: f64| if rng.random_bool(0.3) { rate } else { 0.0 };
    config.flash.faults.program_failure = rate(rng, 0.004);
    config.flash.faults.erase_failure = rate(rng, 0.004);
    config.flash.faults.uncorrectable_read = rate(rng, 0.002);
    config.flash.faults.factory_bad = rate(rng, 0.02);
    let segment = config.user_bytes;
    // With the seed of the case: which blocks are bad from the factory depends on it.
    let accepts = |config: &DriveConfig| Drive::new(config, Options { seed, contents: Contents::Nothing }).is_ok();
    let of = |segments: u64| DriveConfig { user_bytes: segments * segment, ..config.clone() };
    let most = (1..=8).take_while(|segments| accepts(&of(*segments))).last()?;
    let config = of(if rng.random_bool(0.5) { most } else { rng.random_range(1..=most) });
    describable(&config).filter(accepts)
}

/// Lives of a drive, each with some commands in flight together again and again, and a cut in the last of them or
/// later.
fn steps(seed: u64, host: &SegmentHost) -> Vec<Step<SegmentCommand>> {
    let mut rng = rng(seed, "segment host");
    let mut steps = Vec::new();
    for _ in 0..rng.random_range(2..8) {
        let before = rng.random_range(0..30);
        for number in 0..before + 10 {
            if number == before {
                steps.push(Step::Cut(draw_cut(&mut rng)));
            }
            let (segments, _) = host.shape();
            // Few segments are open at a time, so that they become full.
            let favourite = rng.random_range(0..segments);
            for _ in 0..rng.random_range(1..8) {
                let segment = if rng.random_bool(0.6) { favourite } else { rng.random_range(0..segments) };
                steps.push(Step::Command(draw_command(&mut rng, host, segment)));
            }
            steps.push(Step::Drain);
        }
    }
    steps
}

fn draw_command(rng: &mut Rng, host: &SegmentHost, segment: usize) -> SegmentCommand {
    let (segments, units) = host.shape();
    let queue = rng.random_range(0..host.queues());
    let plain = |kind, segment| SegmentCommand { queue, ..SegmentCommand::plain(kind, segment) };
    match rng.random_range(0..100) {
        0..55 => {
            let kind = if rng.random_bool(0.33) { Kind::Append } else { Kind::Write };
            let (count, fua) = (rng.random_range(1..=units.min(12)), rng.random_bool(0.14));
            SegmentCommand { count, fua, renew: true, ..plain(kind, segment) }
        }
        55..65 => SegmentCommand { fua: rng.random_bool(0.1), ..plain(Kind::Trim, segment) },
        65..67 => {
            let first = rng.random_range(0..segments);
            SegmentCommand { count: rng.random_range(1..=segments - first), ..plain(Kind::Trim, first) }
        }
        67..75 => plain(Kind::Flush, 0),
        75..80 if host.has_zones() => {
            plain(Kind::Act(one_of(rng, &[zoned::OPEN, zoned::CLOSE, zoned::CLOSE, zoned::FINISH])), segment)
        }
        75..85 => {
            let kind = one_of(rng, &Kind::rules());
            let segment = rng.random_range(0..segments);
            SegmentCommand { from: rng.random_range(0..units), ..SegmentCommand::plain(kind, segment) }
        }
        _ => {
            let from = rng.random_range(0..units);
            SegmentCommand { from, count: rng.random_range(1..=(units - from).min(6)), ..plain(Kind::Read, segment) }
        }
    }
}

impl Subject for Segments {
    type Command = SegmentCommand;
    type System = SegmentHost;

    const SETS: &'static [&'static str] = &[SEGMENTS.name, ZONED.name];
    const STEPS: &'static str = "write, append, trim, flush, open, close, finish, read, break-RULE, drain, fail or cut";
    const END: &'static str = "all commands complete, and the power goes once more";

    fn build(case: &Case<Segments>) -> Result<SegmentHost, Refused> {
        SegmentHost::new(case)?.ok_or_else(|| {
            let reason = format!("'{}' has neither segments nor zones", case.drive.ftl.design);
            Refused::Drive(DriveError { key: "ftl.design".to_string(), reason })
        })
    }

    fn keys(&self, drive: &DriveConfig) -> Vec<(&'static str, Value)> {
        let set = if drive.zones().is_some() { ZONED.name } else { SEGMENTS.name };
        vec![("command_set", Value::from(set))]
    }

    fn read(keys: &mut Keys<'_>) -> Result<Segments, ScriptError> {
        keys.command_set(Segments::SETS).map(|_| Segments)
    }
}

impl System for SegmentHost {
    type Command = SegmentCommand;

    fn apply(&mut self, step: &Step<SegmentCommand>, totals: &mut Totals) -> ControlFlow<()> {
        match step {
            Step::Command(command) => {
                totals.commands += 1;
                self.command(*command);
            }
            Step::Drain => return self.drain(totals),
            Step::Fail(kind, place) => self.drive().fail_next(*kind, place.block()),
            Step::Cut(cut) => {
                self.power.set_trap(*cut, self.durable);
                if self.power.is_due(self.durable) {
                    self.cut(totals);
                }
            }
            Step::Run(_) | Step::Pass(_) => unreachable!("{step} is no step of a host of segments"),
        }
        ControlFlow::Continue(())
    }

    fn end(&mut self, totals: &mut Totals) {
        if self.drain(totals).is_continue() {
            self.cut(totals);
        }
    }

    fn drives(&self) -> Vec<&Drive> {
        self.power.if_on().into_iter().collect()
    }

    fn count(&self, totals: &mut Totals) {
        totals.read_only += u64::from(self.is_over);
    }
}

impl SegmentHost {
    /// Waits for all commands, over a power cut whose moment comes.
    fn drain(&mut self, totals: &mut Totals) -> ControlFlow<()> {
        match self.wait() {
            Ok(()) => {}
            Err(Stop::Cut) => self.cut(totals),
            Err(Stop::ReadOnly) => {
                self.is_over = true;
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    fn command(&mut self, command: SegmentCommand) {
        let (segments, of_segment) = self.shape();
        let SegmentCommand { kind, segment, count, from, fua, renew, queue } = command;
        let (segment, first) = (segment % segments, from % of_segment);
        match kind {
            Kind::Write | Kind::Append => {
                let left = self.left(segment);
                if left > 0 {
                    self.append(segment, count.clamp(1, left), kind == Kind::Append, fua, queue);
                } else if renew {
                    self.trim(segment, 1, fua, queue);
                }
            }
            Kind::Trim => self.trim(segment, count.clamp(1, segments - segment), fua, queue),
            Kind::Flush => self.flush(),
            Kind::Act(opcode) if self.has_zones() => self.act(opcode, segment, queue),
            Kind::Act(_) => {}
            Kind::Read => self.read(segment, first, count.clamp(1, of_segment - first), queue),
            Kind::Break(rule) => self.violate(rule, segment, from),
        }
    }
}

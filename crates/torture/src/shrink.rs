//! What of a failing case matters: steps and faults are left out, and the rest is made plainer, as long as it still
//! fails.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ssdlab_base::Nanos;
use ssdlab_device::{ControllerConfig, DriveConfig, Pacing, Parity, PlacementConfig, Superblock};
use ssdlab_flash::{FaultKind, Faults, Latency, MultiPlane, SchedulerKind};

use crate::case::{Case, Finding, Struck, Subject, Watched, run, run_watched};
use crate::script::describable;
use crate::single_drive::SingleDrive;
use crate::step::{Place, Step};
use crate::totals::Totals;

/// Most cases tried; a small one takes about a millisecond.
const TRIES: u32 = 4000;

/// Shrinking ends after this: of a command that never completes each try takes seconds.
const LONGEST: Duration = Duration::from_secs(120);

/// A case that is as small as was found, and what is wrong with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Shrunk<S: Subject = SingleDrive> {
    /// The case.
    pub case: Case<S>,
    /// What is found wrong with it.
    pub finding: Finding,
    /// Cases tried.
    pub tries: u32,
}

struct Shrinker<'a, S: Subject> {
    best: Case<S>,
    finding: Finding,
    tries: u32,
    began: Instant,
    stop: &'a AtomicBool,
}

/// Shrinks a case that fails with `finding`.
pub fn shrink<S: Subject>(case: &Case<S>, finding: &Finding) -> Shrunk<S> {
    shrink_until(case, finding, &AtomicBool::new(false))
}

/// Shrinks a case that fails with `finding` until `stop` is set; gives back what was found up to then.
pub fn shrink_until<S: Subject>(case: &Case<S>, finding: &Finding, stop: &AtomicBool) -> Shrunk<S> {
    let mut shrinker = Shrinker { best: case.clone(), finding: finding.clone(), tries: 0, began: Instant::now(), stop };
    shrinker.cut_tail();
    shrinker.pin_faults();
    loop {
        let before = shrinker.best.clone();
        shrinker.leave_out_steps();
        shrinker.leave_out_faults();
        shrinker.simplify_steps();
        shrinker.simplify_setup();
        if shrinker.best == before || shrinker.is_over() {
            break;
        }
    }
    assert_eq!(shrinker.finding.by_oracle(), finding.by_oracle(), "another party finds what is left");
    Shrunk { case: shrinker.best, finding: shrinker.finding, tries: shrinker.tries }
}

impl<S: Subject> Shrinker<'_, S> {
    fn is_over(&self) -> bool {
        self.tries >= TRIES || self.began.elapsed() >= LONGEST || self.stop.load(Ordering::Relaxed)
    }

    /// Keeps `candidate` if it fails too, found by the same party.
    fn keep(&mut self, candidate: Case<S>) -> bool {
        if self.is_over() || candidate == self.best || candidate.accepted().is_err() {
            return false;
        }
        assert!(candidate.steps.len() <= self.best.steps.len() + 1, "a fault becomes a step, and no more are added");
        self.tries += 1;
        match run(&candidate, &mut Totals::default()) {
            Err(finding) if finding.by_oracle() == self.finding.by_oracle() => {
                self.best = candidate;
                self.finding = finding;
                true
            }
            _ => false,
        }
    }

    fn keep_steps(&mut self, steps: Vec<Step<S::Command>>) -> bool {
        self.keep(Case { steps, ..self.best.clone() })
    }

    /// What comes after the step that failed does not matter.
    fn cut_tail(&mut self) {
        let steps = self.best.steps.iter().take(self.finding.step + 1).cloned().collect();
        self.keep_steps(steps);
    }

    /// Faults by rate, by wear and of the factory become a list, and those become steps, which keep their place when
    /// others are left out. Where no step lets a single operation of the drive fail, they stay as they are.
    fn pin_faults(&mut self) {
        if !S::takes(&Step::Fail(FaultKind::Program, Place::Any)) {
            return;
        }
        let mut watched = Watched::default();
        if run_watched(&self.best, &mut Totals::default(), &mut watched).is_ok() {
            return;
        }
        let mut candidate = self.best.clone();
        // Steps strike again by themselves.
        let by_steps: Vec<FaultKind> = self.best.steps.iter().filter_map(Step::failure).map(|(kind, _)| kind).collect();
        let mut steps = by_steps.len();
        let others = watched.struck.iter().filter(|struck| {
            let by_step = steps > 0 && by_steps.contains(&struck.fault.kind);
            steps -= usize::from(by_step);
            !by_step
        });
        let script = others.map(|struck| struck.fault).collect();
        candidate.drive.flash.faults = Faults { script, ..Faults::default() };
        self.keep(candidate);
        for Struck { fault, step } in watched.struck.into_iter().rev() {
            let script = &self.best.drive.flash.faults.script;
            let Some(index) = script.iter().position(|other| *other == fault) else { continue };
            if fault.kind == FaultKind::Factory {
                // It is there before the first step.
                continue;
            }
            let places = [(step, None), (step, Some(fault.block)), (step.saturating_sub(1), Some(fault.block))];
            for (place, block) in places.into_iter().skip(usize::from(fault.kind == FaultKind::Die)) {
                let fails = Step::Fail(fault.kind, Place::of(block));
                if !S::takes(&fails) {
                    continue;
                }
                let mut candidate = self.best.clone();
                candidate.drive.flash.faults.script.remove(index);
                candidate.steps.insert(place.min(candidate.steps.len()), fails);
                if self.keep(candidate) {
                    break;
                }
            }
        }
    }

    /// Delta debugging: runs of steps go, in halves first and one by one at last.
    fn leave_out_steps(&mut self) {
        let mut size = self.best.steps.len().div_ceil(2).max(1);
        loop {
            let mut at = 0;
            while at < self.best.steps.len() && !self.is_over() {
                let mut steps = self.best.steps.clone();
                steps.drain(at..(at + size).min(steps.len()));
                if !self.keep_steps(steps) {
                    at += size;
                }
            }
            if size == 1 || self.is_over() {
                return;
            }
            size = size.div_ceil(2);
        }
    }

    fn leave_out_faults(&mut self) {
        let mut at = 0;
        while at < self.best.drive.flash.faults.script.len() {
            let mut candidate = self.best.clone();
            candidate.drive.flash.faults.script.remove(at);
            if !self.keep(candidate) {
                at += 1;
            }
        }
    }

    fn simplify_steps(&mut self) {
        for at in 0..self.best.steps.len() {
            for plainer in self.best.steps[at].plainer() {
                if S::takes(&plainer) && plainer != self.best.steps[at] {
                    let mut steps = self.best.steps.clone();
                    steps[at] = plainer;
                    self.keep_steps(steps);
                }
            }
        }
    }

    /// Features of the subject and of its drive go off one by one.
    fn simplify_setup(&mut self) {
        for subject in self.best.subject.plainer() {
            self.keep(Case { subject, ..self.best.clone() });
        }
        for change in CHANGES {
            let mut drive = self.best.drive.clone();
            change(&mut drive);
            if let Some(drive) = describable(&drive) {
                self.keep(Case { drive, ..self.best.clone() });
            }
        }
    }
}

type Change = fn(&mut DriveConfig);

/// What a plainer drive does without.
const CHANGES: &[Change] = &[
    |drive| drive.flash.faults = Faults { script: std::mem::take(&mut drive.flash.faults.script), ..Faults::default() },
    |drive| drive.timed = false,
    |drive| drive.buffer.policy = "none".to_string(),
    |drive| drive.buffer.latency = Nanos::ZERO,
    |drive| drive.flash.scheduler = SchedulerKind::Fifo,
    |drive| drive.flash.multi_plane = MultiPlane::Off,
    |drive| drive.ftl.parity = Parity::None,
    |drive| (drive.ftl.superblock, drive.ftl.parity) = (Superblock::None, Parity::None),
    |drive| drive.flash.cache_program = false,
    |drive| drive.flash.copyback = false,
    |drive| drive.flash.checks_copyback = false,
    |drive| drive.controller = ControllerConfig::default(),
    |drive| (drive.flash.program_suspend, drive.flash.erase_suspend) = (false, false),
    |drive| (drive.interface.queues, drive.interface.bandwidth) = (1, 0),
    |drive| drive.interface.command_overhead = Nanos::ZERO,
    |drive| (drive.interface.read_overhead, drive.interface.write_overhead) = (Nanos::ZERO, Nanos::ZERO),
    |drive| drive.gc.background_free_blocks = 0,
    |drive| drive.gc.pacing = Pacing::Off,
    |drive| drive.gc.static_wear_threshold = 0,
    |drive| drive.gc.dynamic_wear_levelling = false,
    |drive| drive.gc.victim = "greedy".to_string(),
    |drive| drive.placement = PlacementConfig::default(),
    |drive| (drive.ftl.streams, drive.placement) = (1, PlacementConfig::default()),
    |drive| drive.ftl.separate_gc_frontier = false,
    |drive| drive.flash.geometry.channels = 1,
    |drive| drive.flash.geometry.chips_per_channel = 1,
    |drive| drive.flash.geometry.dies_per_chip = 1,
    |drive| drive.flash.geometry.planes_per_die = 1,
    |drive| {
        let timing = &mut drive.flash.timing;
        for latency in timing.read.iter_mut().chain(&mut timing.program).chain([&mut timing.erase]) {
            *latency = Latency { min: latency.min, max: latency.min };
        }
    },
];

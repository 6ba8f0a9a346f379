//! What of a failing case matters: steps and faults are left out, and the rest is made plainer, as long as it still fails.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ssdlab_base::{Nanos, Op};
use ssdlab_device::{Pacing, Parity, Superblock};
use ssdlab_flash::{FaultKind, Faults, Latency, MultiPlane, SchedulerKind};

use crate::case::{Case, Cut, Moment, Step};
use crate::run::{Finding, Struck, accepted, run, run_with_faults};
use crate::script::describable;
use crate::totals::Totals;

/// Most cases tried; a small one takes about a millisecond.
const TRIES: u32 = 4000;

/// Shrinking ends after this: of a command that never completes each try takes seconds.
const LONGEST: Duration = Duration::from_secs(120);

/// A case that is as small as was found, and what is wrong with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Shrunk {
    /// The case.
    pub case: Case,
    /// What is found wrong with it.
    pub finding: Finding,
    /// Cases tried.
    pub tries: u32,
}

struct Shrinker<'a> {
    best: Case,
    finding: Finding,
    tries: u32,
    began: Instant,
    stop: &'a AtomicBool,
}

/// Shrinks a case that fails with `finding`.
pub fn shrink(case: &Case, finding: &Finding) -> Shrunk {
    shrink_until(case, finding, &AtomicBool::new(false))
}

/// Shrinks a case that fails with `finding` until `stop` is set; gives back what was found up to then.
pub fn shrink_until(case: &Case, finding: &Finding, stop: &AtomicBool) -> Shrunk {
    let mut shrinker = Shrinker { best: case.clone(), finding: finding.clone(), tries: 0, began: Instant::now(), stop };
    shrinker.cut_tail();
    shrinker.pin_faults();
    loop {
        let before = shrinker.best.clone();
        shrinker.leave_out_steps();
        shrinker.leave_out_faults();
        shrinker.simplify_steps();
        shrinker.simplify_drive();
        if shrinker.best == before || shrinker.is_over() {
            break;
        }
    }
    Shrunk { case: shrinker.best, finding: shrinker.finding, tries: shrinker.tries }
}

impl Shrinker<'_> {
    fn is_over(&self) -> bool {
        self.tries >= TRIES || self.began.elapsed() >= LONGEST || self.stop.load(Ordering::Relaxed)
    }

    /// Keeps `candidate` if it fails too, found by the same party.
    fn keep(&mut self, candidate: Case) -> bool {
        if self.is_over() || candidate == self.best || accepted(&candidate).is_err() {
            return false;
        }
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

    fn keep_steps(&mut self, steps: Vec<Step>) -> bool {
        let candidate = Case { steps, ..self.best.clone() };
        self.keep(candidate)
    }

    /// What comes after the step that failed does not matter.
    fn cut_tail(&mut self) {
        let steps = self.best.steps.iter().take(self.finding.step + 1).copied().collect();
        self.keep_steps(steps);
    }

    /// Faults by rate, by wear and of the factory become a list, and those become steps, which keep their place when
    /// others are left out.
    fn pin_faults(&mut self) {
        let mut struck = Vec::new();
        if run_with_faults(&self.best, &mut Totals::default(), &mut struck).is_ok() {
            return;
        }
        let mut candidate = self.best.clone();
        // Steps strike again by themselves.
        let mut steps = self.best.steps.iter().filter(|step| matches!(step, Step::Fail { .. })).count();
        let others = struck.iter().filter(|struck| {
            let by_step = steps > 0
                && self
                    .best
                    .steps
                    .iter()
                    .any(|step| matches!(step, Step::Fail { kind, .. } if *kind == struck.fault.kind));
            steps -= usize::from(by_step);
            !by_step
        });
        let script = others.map(|struck| struck.fault).collect();
        candidate.config.flash.faults = Faults { script, ..Faults::default() };
        self.keep(candidate);
        for Struck { fault, step } in struck.into_iter().rev() {
            let Some(index) = self.best.config.flash.faults.script.iter().position(|other| *other == fault) else {
                continue;
            };
            if fault.kind == FaultKind::Factory {
                // It is there before the first step.
                continue;
            }
            let places = [(step, None), (step, Some(fault.block)), (step.saturating_sub(1), Some(fault.block))];
            for (place, block) in places.into_iter().skip(usize::from(fault.kind == FaultKind::Die)) {
                let mut candidate = self.best.clone();
                candidate.config.flash.faults.script.remove(index);
                candidate.steps.insert(place.min(candidate.steps.len()), Step::Fail { kind: fault.kind, block });
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
        while at < self.best.config.flash.faults.script.len() {
            let mut candidate = self.best.clone();
            candidate.config.flash.faults.script.remove(at);
            if !self.keep(candidate) {
                at += 1;
            }
        }
    }

    fn simplify_steps(&mut self) {
        for at in 0..self.best.steps.len() {
            for plainer in plainer(&self.best.steps[at]) {
                if plainer != self.best.steps[at] {
                    let mut steps = self.best.steps.clone();
                    steps[at] = plainer;
                    self.keep_steps(steps);
                }
            }
        }
    }

    /// Features of the drive go off one by one.
    fn simplify_drive(&mut self) {
        for change in CHANGES {
            let mut candidate = self.best.clone();
            change(&mut candidate.config);
            if let Some(config) = describable(&candidate.config) {
                candidate.config = config;
                self.keep(candidate);
            }
        }
    }
}

/// Plainer forms of a step, the plainest first.
fn plainer(step: &Step) -> Vec<Step> {
    match *step {
        Step::Command { request, depth } => {
            let mut forms = vec![Step::Command { request, depth: 1 }];
            let mut with = |change: &dyn Fn(&mut ssdlab_base::Request)| {
                let mut request = request;
                change(&mut request);
                forms.push(Step::Command { request, depth });
            };
            with(&|request| request.queue = 0);
            with(&|request| request.stream = 0);
            with(&|request| request.fua = false);
            if request.op != Op::Flush {
                with(&|request| request.sectors = request.sectors.min(1));
                with(&|request| request.sectors /= 2);
                with(&|request| request.sector = 0);
                with(&|request| request.sector /= 2);
            }
            forms
        }
        Step::Run(events) => {
            vec![Step::Run(1), Step::Run(events / 2), Step::Run(events.saturating_sub(1)), Step::Drain]
        }
        Step::Pass(time) => vec![Step::Drain, Step::Pass(Nanos(time.0 / 2))],
        Step::Drain => Vec::new(),
        // A die is named by a block.
        Step::Fail { kind: FaultKind::Die, .. } => Vec::new(),
        Step::Fail { kind, .. } => vec![Step::Fail { kind, block: None }],
        Step::Cut(cut) => {
            let none = [None; 3];
            let [first, second, _] = cut.recovery;
            vec![
                Step::Cut(Cut { at: Moment::Now, percent: 0, recovery: none, unread: false }),
                Step::Cut(Cut { recovery: none, ..cut }),
                Step::Cut(Cut { recovery: [first, None, None], ..cut }),
                Step::Cut(Cut { recovery: [first, second, None], ..cut }),
                Step::Cut(Cut { at: Moment::Now, ..cut }),
                Step::Cut(Cut { percent: 0, ..cut }),
                Step::Cut(Cut { percent: 50, ..cut }),
                Step::Cut(Cut { unread: false, ..cut }),
            ]
        }
    }
}

type Change = fn(&mut ssdlab_device::DriveConfig);

/// What a plainer drive does without.
const CHANGES: &[Change] = &[
    |drive| drive.timed = false,
    |drive| drive.buffer.policy = "none".to_string(),
    |drive| drive.buffer.latency = Nanos::ZERO,
    |drive| drive.flash.scheduler = SchedulerKind::Fifo,
    |drive| drive.flash.multi_plane = MultiPlane::Off,
    |drive| drive.ftl.parity = Parity::None,
    |drive| (drive.ftl.superblock, drive.ftl.parity) = (Superblock::None, Parity::None),
    |drive| drive.flash.cache_program = false,
    |drive| drive.flash.copyback = false,
    |drive| (drive.flash.program_suspend, drive.flash.erase_suspend) = (false, false),
    |drive| (drive.interface.queues, drive.interface.bandwidth) = (1, 0),
    |drive| drive.interface.command_overhead = Nanos::ZERO,
    |drive| (drive.interface.read_overhead, drive.interface.write_overhead) = (Nanos::ZERO, Nanos::ZERO),
    |drive| drive.gc.background_free_blocks = 0,
    |drive| drive.gc.pacing = Pacing::Off,
    |drive| drive.gc.static_wear_threshold = 0,
    |drive| drive.gc.dynamic_wear_levelling = false,
    |drive| drive.gc.victim = "greedy".to_string(),
    |drive| drive.ftl.streams = 1,
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

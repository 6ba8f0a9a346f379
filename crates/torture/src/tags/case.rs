//! Cases for the command set `tags`: a drive and a list of steps, drawn from a seed, run beside the model, and shrunk.

use std::time::Instant;

use rand::RngExt;
use ssdlab_base::command_sets::tags::{ACKNOWLEDGE, CLEAR_TAGS, FIND_TAG, READ_TAGGED, SAVE_TRIMS, TAGS, WRITE_TAGGED};
use ssdlab_base::{Op, Opcode, Rng, rng};
use ssdlab_device::{Drive, DriveConfig, DriveError, Options};
use ssdlab_flash::{Contents, FaultKind};

use super::{Command, Harness};
use crate::configs;
use crate::panic_capture::{Caught, catch};
use crate::run::Finding;
use crate::script::describable;
use crate::totals::{CutKind, Totals};

/// Runs of a case that shrinking tries at most.
const TRIES: u32 = 2000;

/// What happens to the drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The host sends a command, as soon as fewer than [`TagCase::depth`] are in flight.
    Command(Command),
    /// The host acknowledges all events that it has seen.
    Acknowledge,
    /// The host waits for all commands.
    Drain,
    /// The host starts anew above the running drive.
    RestartHost,
    /// The power goes and comes back.
    Cut,
    /// The next operation of a kind fails: a program or an erase.
    Fail(FaultKind),
}

/// A drive whose design takes the set, and what happens to it.
#[derive(Clone, Debug, PartialEq)]
pub struct TagCase {
    /// The drive's seed.
    pub seed: u64,
    /// The drive.
    pub config: DriveConfig,
    /// What the drive keeps of its data.
    pub contents: Contents,
    /// Most commands in flight.
    pub depth: u64,
    /// What happens, in order. Every case ends with a drain.
    pub steps: Vec<Step>,
}

impl TagCase {
    /// The case of a seed, with so many commands; `None` where the drawn drive is refused.
    pub fn draw(seed: u64, commands: usize) -> Option<TagCase> {
        let mut rng = rng(seed, "command sets");
        let mut config = configs::random(&mut rng);
        ssdlab_device::draw_design(&mut config, ssdlab_device::design_with(&TAGS)?, &mut rng);
        config.timed = rng.random_bool(0.8);
        let config = describable(&config)?;
        Drive::new(&config, Options { seed, contents: Contents::Stamps }).ok()?;
        let depth = [1, 2, 8, 32][rng.random_range(0..4)];
        let mut steps = Vec::with_capacity(commands);
        for _ in 0..commands {
            match rng.random_range(0..200) {
                0 => steps.push(Step::Cut),
                1 => steps.push(Step::RestartHost),
                2 => steps.push(Step::Drain),
                _ => {}
            }
            steps.push(draw_command(&mut rng, &config));
        }
        let contents = [Contents::Stamps, Contents::Stamps, Contents::Bytes, Contents::Nothing][rng.random_range(0..4)];
        // Chips fail where the reserve has room for it.
        if config.gc.free_blocks >= 3 && rng.random_bool(0.3) {
            for _ in 0..rng.random_range(1..4) {
                let kind = if rng.random_bool(0.7) { FaultKind::Program } else { FaultKind::Erase };
                steps.insert(rng.random_range(0..=steps.len()), Step::Fail(kind));
            }
        }
        Some(TagCase { seed, config, contents, depth, steps })
    }

    /// Runs the case; returns the commands that took effect.
    ///
    /// # Errors
    /// What is found wrong.
    pub fn run(&self, totals: &mut Totals) -> Result<u64, Finding> {
        let (start, mut step) = (Instant::now(), 0);
        let result = catch(|| self.run_steps(&mut step, totals));
        totals.cases += 1;
        totals.working += start.elapsed();
        result.map_err(|Caught { message, place }| Finding { message, place, step })
    }

    /// The seed's part of the drive, and what it keeps.
    fn options(&self) -> Options {
        Options { seed: self.seed, contents: self.contents }
    }

    /// Whether the drive can be made, and takes the set.
    ///
    /// # Errors
    /// The key that it is refused for, and why.
    pub fn accepted(&self) -> Result<(), DriveError> {
        Drive::new(&self.config, self.options())?;
        match ssdlab_device::design_with(&TAGS) {
            Some(design) if design == self.config.ftl.design => Ok(()),
            _ => Err(DriveError {
                key: "ftl.design".to_string(),
                reason: format!("'{}' does not take the command set '{}'", self.config.ftl.design, TAGS.name),
            }),
        }
    }

    pub(super) fn run_steps(&self, at: &mut usize, totals: &mut Totals) -> u64 {
        let Some(mut harness) = Harness::new(&self.config, self.options()) else { return 0 };
        let faulty = self.steps.iter().any(|step| matches!(step, Step::Fail(_)));
        // With one block in reserve a few torn pages are too much, as for a drive without a set.
        harness.may_end_read_only = faulty || self.config.gc.free_blocks < 3;
        if faulty {
            harness.drive().expect_faults();
        }
        for (index, step) in self.steps.iter().enumerate() {
            *at = index;
            if harness.is_over {
                break;
            }
            match step {
                Step::Command(command) => self.send(&mut harness, command),
                Step::Acknowledge => {
                    let seen = [harness.last_event()];
                    self.send(&mut harness, &Command::of_set(ACKNOWLEDGE, 0, 0, &seen));
                }
                Step::Drain => harness.drain(),
                Step::RestartHost => harness.restart_host(),
                Step::Cut => {
                    totals.cut(interrupted(&mut harness));
                    totals.sectors_compared += harness.drive().user_sectors();
                    harness.cut();
                }
                Step::Fail(kind) => harness.drive().fail_next(*kind, None),
            }
        }
        if !harness.is_over {
            *at = self.steps.len();
            harness.drain();
        }
        harness.drive().faults_struck().iter().for_each(|fault| totals.struck(fault.kind));
        totals.read_only += u64::from(harness.is_over);
        totals.commands += harness.executed;
        harness.executed
    }

    fn send(&self, harness: &mut Harness, command: &Command) {
        while harness.outstanding() >= self.depth {
            harness.step();
        }
        harness.send(command);
    }

    /// Leaves out steps, and then what the drive can do without, as long as the same party finds something wrong.
    #[must_use]
    pub fn shrink(&self, finding: &Finding) -> (TagCase, Finding) {
        let mut best = (self.clone(), finding.clone());
        let mut tries = 0;
        let mut keep = |best: &mut (TagCase, Finding), candidate: TagCase| {
            tries += 1;
            match candidate.run(&mut Totals::default()) {
                Err(finding) if tries <= TRIES && finding.by_oracle() == best.1.by_oracle() => {
                    *best = (candidate, finding);
                    true
                }
                _ => false,
            }
        };
        let mut size = self.steps.len().max(1);
        while size > 0 {
            let mut at = 0;
            while at < best.0.steps.len() {
                let mut candidate = best.0.clone();
                candidate.steps.drain(at..(at + size).min(candidate.steps.len()));
                if !keep(&mut best, candidate) {
                    at += size;
                }
            }
            size /= 2;
        }
        let depth_one = TagCase { depth: 1, ..best.0.clone() };
        keep(&mut best, depth_one);
        let mut untimed = best.0.clone();
        untimed.config.timed = false;
        keep(&mut best, untimed);
        best
    }
}

/// What a power cut interrupts now.
fn interrupted(harness: &mut Harness) -> CutKind {
    let now = harness.drive().now();
    let work = harness.drive().array_work(now);
    match (work.erases, work.programs) {
        (1.., _) => CutKind::Erase,
        (0, 1..) => CutKind::Program,
        (0, 0) => CutKind::Idle,
    }
}

/// A command of the set or block I/O, now and then with a wrong number of words, a zero tag, sectors beyond the end, an unknown
/// opcode or another carrier than the set's.
fn draw_command(rng: &mut Rng, config: &DriveConfig) -> Step {
    let (sectors, unit) = (config.user_bytes / 512, u64::from(config.ftl.mapping_unit) / 512);
    let mut first = rng.random_range(0..sectors / unit) * unit;
    let mut units = rng.random_range(1..=4.min(sectors / unit - first / unit));
    if rng.random_bool(0.02) {
        units += 1000;
    }
    let mut words: Vec<u64> = (0..units).map(|_| rng.random_range(1..6)).collect();
    match rng.random_range(0..40) {
        0 => {
            let zero = rng.random_range(0..words.len());
            words[zero] = 0;
        }
        1 => words.push(1),
        2 => first += 1,
        _ => {}
    }
    let length = units * unit;
    Step::Command(match rng.random_range(0..20) {
        0..6 => Command::of_set(WRITE_TAGGED, first, length, &words),
        6..9 => Command::of_set(READ_TAGGED, first, length, &[]),
        9 => Command::of_set(FIND_TAG, first, 0, &[rng.random_range(0..6)]),
        10 if rng.random_bool(0.3) => Command::of_set(CLEAR_TAGS, 0, 0, &[]),
        11 if rng.random_bool(0.2) => Command::of_set(ACKNOWLEDGE, 0, 0, &[u64::MAX]),
        11 => return Step::Acknowledge,
        12 => Command::of_set(SAVE_TRIMS, 0, 0, &[]),
        13 if rng.random_bool(0.2) => {
            let mut command = Command::of_set(Opcode(rng.random_range(1..12)), first, length, &words);
            command.request.op = [Op::Read, Op::Write, Op::Flush][rng.random_range(0..3)];
            if command.request.opcode == ACKNOWLEDGE {
                // No number up to the last event's: the host might acknowledge an event that it is told of meanwhile.
                command.words.fill(0);
            }
            command
        }
        14 => Command::block(Op::Trim, first, length),
        15 => Command::block(Op::Flush, 0, 0),
        16..18 => Command::block(Op::Read, first, length),
        _ => Command::block(Op::Write, first, length),
    })
}

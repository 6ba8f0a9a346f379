//! Cases for the command set `tags`: a drive and a list of steps, drawn from a seed, run beside the model.

use std::ops::ControlFlow;

use rand::RngExt;
use ssdlab_base::command_sets::tags::{ACKNOWLEDGE, CLEAR_TAGS, FIND_TAG, READ_TAGGED, SAVE_TRIMS, TAGS, WRITE_TAGGED};
use ssdlab_base::{Op, Opcode, Rng, rng};
use ssdlab_device::{Drive, DriveConfig, Options};
use ssdlab_flash::{Contents, FaultKind};
use toml::Value;

use super::{Command, Harness};
use crate::campaign::{Draw, NotDrawn, try_drives};
use crate::case::{Case, Refused, Subject, System};
use crate::configs;
use crate::cut::{Cut, PoweredDrive};
use crate::script::{Keys, ScriptError, describable};
use crate::step::{Place, Step};
use crate::totals::Totals;

/// Drives that are drawn for a seed at most; most are accepted.
const TRIES: u32 = 1000;

/// What a drive may keep of its data.
const PAYLOADS: [(&str, Contents); 3] =
    [("none", Contents::Nothing), ("stamps", Contents::Stamps), ("bytes", Contents::Bytes)];

/// What the host does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostCommand {
    /// Sends a command, as soon as fewer than [`Tags::depth`] are in flight.
    Send(Command),
    /// Acknowledges all events that it has seen.
    Acknowledge,
    /// Starts anew above the running drive.
    Restart,
}

/// A drive whose design takes the set.
#[derive(Clone, Debug, PartialEq)]
pub struct Tags {
    /// What the drive keeps of its data.
    pub contents: Contents,
    /// Most commands in flight.
    pub depth: u64,
}

/// What cases of the set are drawn from: small drives.
#[derive(Clone, Copy, Debug)]
pub struct TagScope {
    /// Commands of a case.
    pub commands: u64,
}

impl Draw for TagScope {
    type Subject = Tags;

    fn draw_until(&self, seed: u64, over: &dyn Fn() -> bool) -> Result<Case<Tags>, NotDrawn> {
        let mut rng = rng(seed, "command sets");
        try_drives(seed, TRIES, over, || {
            let mut config = configs::random(&mut rng);
            let design = ssdlab_device::design_with(&TAGS).ok_or(None)?;
            ssdlab_device::draw_design(&mut config, design, &mut rng);
            config.timed = rng.random_bool(0.8);
            let config = describable(&config).ok_or(None)?;
            let options = Options { seed, contents: Contents::Stamps };
            Drive::new(&config, options).map_err(|why| Some(why.to_string()))?;
            let depth = [1, 2, 8, 32][rng.random_range(0..4)];
            let mut steps = Vec::with_capacity(self.commands as usize);
            for _ in 0..self.commands {
                match rng.random_range(0..200) {
                    0 => steps.push(Step::Cut(Cut::NOW)),
                    1 => steps.push(Step::Command(HostCommand::Restart)),
                    2 => steps.push(Step::Drain),
                    _ => {}
                }
                steps.push(Step::Command(draw_command(&mut rng, &config)));
            }
            let contents =
                [Contents::Stamps, Contents::Stamps, Contents::Bytes, Contents::Nothing][rng.random_range(0..4)];
            // Chips fail where the reserve has room for it.
            if config.gc.free_blocks >= 3 && rng.random_bool(0.3) {
                for _ in 0..rng.random_range(1..4) {
                    let kind = if rng.random_bool(0.7) { FaultKind::Program } else { FaultKind::Erase };
                    steps.insert(rng.random_range(0..=steps.len()), Step::Fail(kind, Place::Any));
                }
            }
            Ok(Case { seed, drive: config, subject: Tags { contents, depth }, steps })
        })
    }
}

impl Subject for Tags {
    type Command = HostCommand;
    type System = Harness;

    const SETS: &'static [&'static str] = &[TAGS.name];
    const STEPS: &'static str = "tags:COMMAND, read, write, trim, zero, flush, acknowledge, drain, restart, cut, fail \
                                 program or fail erase; without depth=";
    const END: &'static str = "all commands complete, and all events are compared";

    fn build(case: &Case<Tags>) -> Result<Harness, Refused> {
        case.takes_set(&TAGS)?;
        let options = Options { seed: case.seed, contents: case.subject.contents };
        Ok(Harness::new(case, PoweredDrive::new(&case.drive, options)?))
    }

    fn takes(step: &Step<HostCommand>) -> bool {
        match step {
            Step::Command(_) | Step::Drain => true,
            Step::Run(_) | Step::Pass(_) => false,
            Step::Fail(kind, place) => *place == Place::Any && matches!(kind, FaultKind::Program | FaultKind::Erase),
            Step::Cut(cut) => *cut == Cut::NOW,
        }
    }

    fn keys(&self, _: &DriveConfig) -> Vec<(&'static str, Value)> {
        let payload = PAYLOADS.iter().find(|(_, contents)| *contents == self.contents).map_or("?", |(name, _)| name);
        vec![
            ("command_set", Value::from(TAGS.name)),
            ("payload", Value::from(payload)),
            ("depth", Value::from(self.depth.min(1 << 16) as i64)),
        ]
    }

    fn read(keys: &mut Keys<'_>) -> Result<Tags, ScriptError> {
        keys.command_set(Tags::SETS)?;
        let expected = "none, stamps or bytes";
        let payload = keys.text("payload", expected)?;
        let contents = PAYLOADS.iter().find(|(name, _)| *name == payload).map(|(_, contents)| *contents);
        let contents = contents.ok_or_else(|| keys.wrong("payload", format!("\"{payload}\""), expected))?;
        let depth = u64::try_from(keys.integer("depth")?).ok().filter(|depth| (1..=1 << 16).contains(depth));
        let depth = depth.ok_or_else(|| keys.wrong("depth", "a number out of its range", "1 to 65536"))?;
        Ok(Tags { contents, depth })
    }

    fn plainer(&self) -> Vec<Tags> {
        vec![
            Tags { depth: 1, ..self.clone() },
            Tags { depth: self.depth.div_ceil(2), ..self.clone() },
            Tags { contents: Contents::Stamps, ..self.clone() },
        ]
    }
}

impl System for Harness {
    type Command = HostCommand;

    fn apply(&mut self, step: &Step<HostCommand>, totals: &mut Totals) -> ControlFlow<()> {
        match step {
            Step::Command(HostCommand::Send(command)) => self.send(command),
            Step::Command(HostCommand::Acknowledge) => {
                let seen = [self.last_event()];
                self.send(&Command::of_set(ACKNOWLEDGE, 0, 0, &seen));
            }
            Step::Command(HostCommand::Restart) => self.restart_host(),
            Step::Drain => self.drain(),
            Step::Cut(cut) => self.cut(cut, totals),
            Step::Fail(kind, place) => self.drive().fail_next(*kind, place.block()),
            Step::Run(_) | Step::Pass(_) => unreachable!("{step} is no step of the set"),
        }
        if self.is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn end(&mut self, _: &mut Totals) {
        self.drain();
    }

    fn drives(&self) -> Vec<&Drive> {
        self.power.if_on().into_iter().collect()
    }

    fn count(&self, totals: &mut Totals) {
        totals.read_only += u64::from(self.is_over);
        totals.commands += self.executed;
    }
}

/// A command of the set or block I/O, now and then with a wrong number of words, a zero tag, sectors beyond the end, an
/// unknown opcode or another carrier than the set's.
fn draw_command(rng: &mut Rng, config: &DriveConfig) -> HostCommand {
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
    HostCommand::Send(match rng.random_range(0..20) {
        0..6 => Command::of_set(WRITE_TAGGED, first, length, &words),
        6..9 => Command::of_set(READ_TAGGED, first, length, &[]),
        9 => Command::of_set(FIND_TAG, first, 0, &[rng.random_range(0..6)]),
        10 if rng.random_bool(0.3) => Command::of_set(CLEAR_TAGS, 0, 0, &[]),
        11 if rng.random_bool(0.2) => Command::of_set(ACKNOWLEDGE, 0, 0, &[u64::MAX]),
        11 => return HostCommand::Acknowledge,
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

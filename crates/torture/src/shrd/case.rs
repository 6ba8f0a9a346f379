//! Cases of a host of a log: a drive and a list of steps, drawn from a seed, run beside what each unit must hold.

use rand::RngExt;
use ssdlab_base::command_sets::shrd::SHRD;
use ssdlab_base::{Op, Request, Rng, rng};
use ssdlab_device::{DriveConfig, design_with, draw_design};
use toml::Value;

use super::{LogCommand, LogHost};
use crate::campaign::{Draw, NotDrawn, try_drives};
use crate::case::{Case, Refused, Subject};
use crate::configs::{self, names};
use crate::cut::{Stop, draw_cut};
use crate::script::{Keys, ScriptError, describable};
use crate::serial_host::{self, SerialDrive, SerialHost};
use crate::step::Step;
use crate::totals::Totals;

/// A drive of the set `shrd`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Log {
    /// Headers, remaps and trims go as vendor commands.
    pub vendor: bool,
}

/// What cases are drawn from: small drives.
#[derive(Clone, Copy, Debug)]
pub struct LogScope;

/// Drives that are drawn for a seed at most.
const TRIES: u32 = 1000;

impl Draw for LogScope {
    type Subject = Log;

    fn draw_until(&self, seed: u64, over: &dyn Fn() -> bool) -> Result<Case<Log>, NotDrawn> {
        let mut rng = rng(seed, "log case");
        try_drives(seed, TRIES, over, || {
            let drive = draw_drive(&mut rng).ok_or(None)?;
            let host = LogHost::build(&drive, seed).map_err(|why| Some(why.to_string()))?;
            let (vendor, steps) = steps(seed, &host);
            Ok(Case { seed, drive, subject: Log { vendor }, steps })
        })
    }
}

fn draw_drive(rng: &mut Rng) -> Option<DriveConfig> {
    let mut config = configs::draw(rng);
    config.buffer.policy = configs::one_of(rng, &names("buffer.policy")).to_string();
    draw_design(&mut config, design_with(&SHRD)?, rng);
    config.timed = rng.random_bool(0.9);
    config.flash.faults.program_failure = configs::one_of(rng, &[0.0, 0.0, 0.003]);
    let units = configs::most_user_units(&config)?;
    config.user_bytes = units.min(300) * u64::from(config.ftl.mapping_unit);
    describable(&config)
}

/// Lives of a drive, each with some commands, and a cut in the last of them or later.
fn steps(seed: u64, host: &LogHost) -> (bool, Vec<Step<LogCommand>>) {
    let mut rng = rng(seed, "log host");
    let vendor = rng.random_bool(0.2);
    let mut steps = Vec::new();
    for _ in 0..rng.random_range(2..8) {
        let before = rng.random_range(0..40);
        for number in 0..before + 10 {
            if number == before {
                steps.push(Step::Cut(draw_cut(&mut rng)));
            }
            steps.push(Step::Command(draw_command(&mut rng, host)));
        }
    }
    (vendor, steps)
}

fn draw_command(rng: &mut Rng, host: &LogHost) -> LogCommand {
    let all = host.user_units;
    let block = |rng: &mut Rng, op, most: u32| {
        let first = rng.random_range(0..all);
        let units = rng.random_range(1..=(all - first).min(most));
        LogCommand::Block(Request { fua: rng.random_bool(0.1), ..Request::new(op, first.into(), units.into()) })
    };
    match rng.random_range(0..100) {
        0..50 => {
            let most = host.log_units.min(all).min(12);
            let mut units: Vec<u32> = (0..rng.random_range(1..=most)).map(|_| rng.random_range(0..all)).collect();
            units.sort_unstable();
            units.dedup();
            LogCommand::Twrite(units)
        }
        // Most of them.
        50..58 => LogCommand::Remap(rng.random::<u64>() | rng.random::<u64>()),
        58..62 => LogCommand::TrimDead,
        62..78 => block(rng, Op::Write, 9),
        78..84 => block(rng, Op::Trim, 40),
        84..92 => LogCommand::Block(Request::new(Op::Flush, 0, 0)),
        92..93 => LogCommand::Restore,
        _ => LogCommand::Block(Request::new(Op::Read, rng.random_range(0..all).into(), 1)),
    }
}

impl Subject for Log {
    type Command = LogCommand;
    type System = LogHost;

    const SETS: &'static [&'static str] = &[SHRD.name];
    const STEPS: &'static str = "twrite, remap, trim-dead, restore, write, trim, flush, read, drain, fail or cut";
    const END: &'static str = "the power goes once more, and a look at all units";

    fn build(case: &Case<Log>) -> Result<LogHost, Refused> {
        case.takes_set(&SHRD)?;
        let mut host = LogHost::build(&case.drive, case.seed)?;
        host.serial.allow(&case.allows(&case.drive));
        host.vendor = case.subject.vendor;
        Ok(host)
    }

    fn takes(step: &Step<LogCommand>) -> bool {
        serial_host::takes(step)
    }

    fn keys(&self, _: &DriveConfig) -> Vec<(&'static str, Value)> {
        vec![("command_set", Value::from(SHRD.name)), ("vendor", Value::from(self.vendor))]
    }

    fn read(keys: &mut Keys<'_>) -> Result<Log, ScriptError> {
        keys.command_set(Log::SETS)?;
        Ok(Log { vendor: keys.flag("vendor")? })
    }

    fn plainer(&self) -> Vec<Log> {
        vec![Log { vendor: false }]
    }
}

impl SerialHost for LogHost {
    type Command = LogCommand;

    fn serial(&self) -> &SerialDrive {
        &self.serial
    }

    fn serial_mut(&mut self) -> &mut SerialDrive {
        &mut self.serial
    }

    fn cut(&mut self, totals: &mut Totals) {
        self.cut_and_compare(totals);
    }

    fn compare_all(&mut self) -> Result<(), Stop> {
        self.compare()
    }

    fn command(&mut self, command: &LogCommand) -> Result<(), Stop> {
        let all = self.user_units;
        match command {
            LogCommand::Twrite(units) => {
                let mut units: Vec<u32> = units.iter().map(|unit| unit % all).take(self.log_units as usize).collect();
                units.sort_unstable();
                units.dedup();
                if units.is_empty() { Ok(()) } else { self.twrite(&units) }
            }
            LogCommand::Remap(bits) => {
                let live = (0..self.log_units).filter(|tlpn| self.is_live(*tlpn));
                let some = (0..).zip(live).filter(|(place, _)| bits >> (place % 64) & 1 != 0);
                let some: Vec<u32> = some.map(|(_, tlpn)| tlpn).collect();
                self.remap(&some)
            }
            LogCommand::TrimDead => self.trim_dead(),
            LogCommand::Restore => self.restore(),
            LogCommand::Block(request) => {
                let first = (request.sector % u64::from(all)) as u32;
                let units = request.sectors.clamp(1, u64::from(all - first)) as u32;
                match request.op {
                    Op::Flush => self.flush(),
                    Op::Read => (first..first + units).try_for_each(|unit| self.compare_unit(unit)),
                    op => self.block(op, first, units, request.fua),
                }
            }
        }
    }
}

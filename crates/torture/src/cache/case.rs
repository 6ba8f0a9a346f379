//! Cases of a host of a cache: a drive and a list of steps, drawn from a seed, run beside what each block may hold.

use rand::RngExt;
use ssdlab_base::command_sets::cache::{CACHE, IDLE, STANDBY};
use ssdlab_base::{Op, Request, Rng, rng};
use ssdlab_device::{
    Allocation, DriveConfig, Owners, PlacementConfig, design_with, draw_design, set_addresses, set_owners,
};
use toml::Value;

use super::script::CHANGES;
use super::{CacheCommand, CacheHost};
use crate::campaign::{Draw, NotDrawn, try_drives};
use crate::case::{Case, Refused, Subject};
use crate::configs::{self, names};
use crate::cut::{Stop, draw_cut};
use crate::script::{Keys, ScriptError, describable};
use crate::serial_host::{self, SerialDrive, SerialHost};
use crate::step::Step;
use crate::totals::Totals;

/// A drive of the set `cache`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cache;

/// What cases are drawn from: small drives.
#[derive(Clone, Copy, Debug)]
pub struct CacheScope;

/// Drives that are drawn for a seed at most.
const TRIES: u32 = 1000;

impl Draw for CacheScope {
    type Subject = Cache;

    fn draw_until(&self, seed: u64, over: &dyn Fn() -> bool) -> Result<Case<Cache>, NotDrawn> {
        let mut rng = rng(seed, "cache case");
        try_drives(seed, TRIES, over, || {
            let drive = draw_drive(&mut rng).ok_or(None)?;
            let host = CacheHost::build(&drive, seed).map_err(|why| Some(why.to_string()))?;
            Ok(Case { seed, drive, subject: Cache, steps: steps(seed, &host) })
        })
    }
}

fn draw_drive(rng: &mut Rng) -> Option<DriveConfig> {
    let mut config = configs::draw(rng);
    config.buffer.policy = match rng.random_bool(0.6) {
        true => "none".to_string(),
        false => configs::one_of(rng, &names("buffer.policy")).to_string(),
    };
    draw_design(&mut config, design_with(&CACHE)?, rng);
    set_owners(&mut config, if rng.random_bool(0.7) { Owners::Summary } else { Owners::Oob });
    config.timed = rng.random_bool(0.9);
    config.flash.faults.program_failure = configs::one_of(rng, &[0.0, 0.0, 0.003]);
    let most = configs::most_user_units(&config)?;
    let units = if rng.random_bool(0.7) { most } else { rng.random_range(1..=most) };
    let unit = u64::from(config.ftl.mapping_unit);
    // Of some drives the notes on all blocks take many units of the log.
    let limit = configs::one_of(rng, &[300, 300, 300, 2000]);
    config.user_bytes = units.min(limit) * unit;
    // Half of the drives cache a disk that is larger than they are, and have to refuse dirty data.
    let is_fixed = matches!(config.ftl.allocation, Allocation::Static(_));
    if !is_fixed && rng.random_bool(0.6) {
        let room = rng.random_range(1..=units.min(limit));
        let more = if rng.random_bool(0.5) { rng.random_range(1..9) } else { rng.random_range(1..400) };
        config.user_bytes = room * unit;
        config.placement = PlacementConfig::default();
        set_addresses(&mut config, (room + more) * unit);
    }
    describable(&config)
}

/// Lives of a drive, each with some commands, and a cut in the last of them or later.
fn steps(seed: u64, host: &CacheHost) -> Vec<Step<CacheCommand>> {
    let mut rng = rng(seed, "cache host");
    // Of dirty data, clean data, evictions and cleaning some hosts have much and some have none.
    let weights = [0; 4].map(|_: u32| configs::one_of(&mut rng, &[0, 1, 2, 8]));
    // Some change all blocks at once, and some never flush.
    let mix = Mix {
        weights,
        longest: configs::one_of(&mut rng, &[12, 12, 60, u32::MAX]),
        flushes: configs::one_of(&mut rng, &[0, 7, 7]),
    };
    let mut steps = Vec::new();
    for _ in 0..rng.random_range(2..8) {
        let before = rng.random_range(0..60);
        for number in 0..before + 10 {
            if number == before {
                steps.push(Step::Cut(draw_cut(&mut rng)));
            }
            steps.push(Step::Command(draw_command(&mut rng, host, &mix)));
        }
    }
    steps
}

/// What the commands of a case are.
struct Mix {
    /// How often it sends each of [`CHANGES`].
    weights: [u32; 4],
    /// Blocks of a change at most.
    longest: u32,
    /// Flushes in a hundred commands.
    flushes: u32,
}

fn draw_command(rng: &mut Rng, host: &CacheHost, mix: &Mix) -> CacheCommand {
    let (all, weights) = (host.blocks, mix.weights);
    let range = |rng: &mut Rng, most: u32| {
        let first = rng.random_range(0..all);
        (first, rng.random_range(1..=(all - first).min(most)))
    };
    let block = |rng: &mut Rng, op, most: u32| {
        let (first, blocks) = range(rng, most);
        CacheCommand::Block(Request { fua: rng.random_bool(0.1), ..Request::new(op, first.into(), blocks.into()) })
    };
    match rng.random_range(0..100) {
        0..74 => {
            let sum: u32 = weights.iter().sum();
            let mut at = if sum == 0 { 0 } else { rng.random_range(0..sum) };
            let mut chosen = 0;
            while sum > 0 && at >= weights[chosen] {
                at -= weights[chosen];
                chosen += 1;
            }
            let (first, blocks) = range(rng, mix.longest);
            CacheCommand::Change(CHANGES[chosen], first, blocks)
        }
        74..76 => CacheCommand::Refuse(configs::one_of(rng, &CHANGES), rng.random_range(0..all)),
        76..78 => CacheCommand::Rest(configs::one_of(rng, &[STANDBY, IDLE])),
        78..82 => block(rng, Op::Write, 9),
        82..84 => block(rng, Op::Trim, 40),
        number if (84..84 + mix.flushes).contains(&number) => CacheCommand::Block(Request::new(Op::Flush, 0, 0)),
        _ => block(rng, Op::Read, 70),
    }
}

impl Subject for Cache {
    type Command = CacheCommand;
    type System = CacheHost;

    const SETS: &'static [&'static str] = &[CACHE.name];
    const STEPS: &'static str =
        "write-dirty, write-clean, evict, clean, refuse, standby, idle, write, trim, flush, read, drain, fail or cut";
    const END: &'static str = "the power goes once more, and a look at all blocks";

    fn build(case: &Case<Cache>) -> Result<CacheHost, Refused> {
        case.takes_set(&CACHE)?;
        let mut host = CacheHost::build(&case.drive, case.seed)?;
        host.serial.allow(&case.allows(&case.drive));
        Ok(host)
    }

    fn takes(step: &Step<CacheCommand>) -> bool {
        serial_host::takes(step)
    }

    fn keys(&self, _: &DriveConfig) -> Vec<(&'static str, Value)> {
        vec![("command_set", Value::from(CACHE.name))]
    }

    fn read(keys: &mut Keys<'_>) -> Result<Cache, ScriptError> {
        keys.command_set(Cache::SETS)?;
        Ok(Cache)
    }

    fn plainer(&self) -> Vec<Cache> {
        Vec::new()
    }
}

impl SerialHost for CacheHost {
    type Command = CacheCommand;

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
        self.compare_blocks()
    }

    fn command(&mut self, command: &CacheCommand) -> Result<(), Stop> {
        let all = self.blocks;
        let range = |first: u32, blocks: u32| (first % all, blocks.clamp(1, all - first % all));
        match command {
            CacheCommand::Change(opcode, first, blocks) => {
                let (first, blocks) = range(*first, *blocks);
                self.change(*opcode, first, blocks)
            }
            CacheCommand::Refuse(opcode, first) => self.refuse(*opcode, first % all),
            CacheCommand::Rest(opcode) => self.rest(*opcode),
            CacheCommand::Block(request) => {
                let (first, blocks) =
                    range((request.sector % u64::from(all)) as u32, request.sectors.min(u64::from(all)) as u32);
                match request.op {
                    Op::Flush => self.flush(),
                    Op::Read => self.compare(first, blocks),
                    op => self.block(op, first, blocks, request.fua),
                }
            }
        }
    }
}

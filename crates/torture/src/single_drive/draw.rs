//! Drawing a case from a seed, swarm style: each seed switches operations, faults and features off and on, and gives
//! what is left wild weights.

use rand::RngExt;
use ssdlab_base::{Nanos, Rng, rng};
use ssdlab_device::{Drive, DriveConfig, DriveError, Options, Owners, Parity};
use ssdlab_flash::{BlockId, Contents, FaultKind, Faults, ScriptedFault};

use super::SingleDrive;
use crate::campaign::{Draw, NotDrawn, try_drives};
use crate::case::Case;
use crate::commands::Mix;
use crate::configs::{self, one_of};
use crate::cut::{Cut, Moment, draw_again};
use crate::script::describable;
use crate::step::{BlockCommand, Place, Step};

/// Pages of a drawn drive at most, and sectors: what a comparison of all of it costs.
const MOST_PAGES: u64 = 700;
const MOST_SECTORS: u64 = 1500;

/// What cases are drawn from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scope {
    /// A drive of one's own; else small ones are drawn.
    pub drive: Option<DriveConfig>,
    /// FTL designs, by name: one of them in turn.
    pub designs: Vec<String>,
    /// Buffer policies, likewise.
    pub buffers: Vec<String>,
    /// What says who owns the units of drawn drives; else it is drawn.
    pub owners: Option<Owners>,
    /// Commands of a case.
    pub commands: u64,
}

impl Scope {
    /// Small drives of every registered design and buffer.
    pub fn everything(commands: u64) -> Scope {
        let all = |kind| configs::names(kind).into_iter().map(str::to_string).collect();
        Scope { drive: None, designs: all("ftl.design"), buffers: all("buffer.policy"), owners: None, commands }
    }
}

/// Why no case can be drawn from a drive of one's own, whatever the seed.
#[derive(Debug, thiserror::Error)]
pub enum NotAccepted {
    /// The drive itself is refused.
    #[error(transparent)]
    Drive(DriveError),
    /// It does not take a design or a buffer.
    #[error("{option} {name}: the drive is not accepted with it: {source}")]
    With {
        /// The option that named it.
        option: &'static str,
        /// Its name.
        name: String,
        /// Why.
        source: DriveError,
    },
}

/// Tries to draw a seed's case: small drives, most of which are refused until one is found; and a drive of one's own,
/// of which nothing but the faults is drawn.
const TRIES: u32 = 20_000;
const TRIES_OF_OWN: u32 = 1000;

impl Scope {
    /// Small drives that list owners in place of OOB areas, with every buffer.
    pub fn with_lists(commands: u64) -> Scope {
        let designs = ssdlab_device::designs_with_lists().into_iter().map(str::to_string).collect();
        Scope { designs, owners: Some(Owners::Summary), ..Scope::everything(commands) }
    }

    /// Looks whether a drive of one's own is accepted, with each design and buffer where some are named.
    ///
    /// # Errors
    /// The first that it is not accepted with.
    pub fn check(&self) -> Result<(), NotAccepted> {
        let Some(drive) = &self.drive else { return Ok(()) };
        if self.designs.is_empty() && self.buffers.is_empty() {
            return without_bad_blocks(drive).map_err(NotAccepted::Drive);
        }
        let accepts = |option: &'static str, name: &String, config: DriveConfig| {
            let refused = |source| NotAccepted::With { option, name: name.clone(), source };
            without_bad_blocks(&config).map_err(refused)
        };
        for design in &self.designs {
            let mut config = drive.clone();
            config.ftl.design.clone_from(design);
            accepts("--design", design, config)?;
        }
        for buffer in &self.buffers {
            let mut config = drive.clone();
            config.buffer.policy.clone_from(buffer);
            accepts("--buffer", buffer, config)?;
        }
        Ok(())
    }
}

/// Whether a drive is accepted where it has no bad blocks but those that its description names. With those that a seed
/// gives it, it may be refused for that seed.
///
/// # Errors
/// It is refused for every seed.
pub fn without_bad_blocks(drive: &DriveConfig) -> Result<(), DriveError> {
    let mut sound = drive.clone();
    sound.flash.faults.factory_bad = 0.0;
    Drive::new(&sound, Options { seed: 1, contents: Contents::Nothing }).map(|_| ())
}

impl Draw for Scope {
    type Subject = SingleDrive;

    fn draw_until(&self, seed: u64, over: &dyn Fn() -> bool) -> Result<Case, NotDrawn> {
        let mut rng = rng(seed, "torture");
        let turn = |names: &[String], rng: &mut Rng| (!names.is_empty()).then(|| one_of(rng, names));
        let tries = if self.drive.is_some() { TRIES_OF_OWN } else { TRIES };
        try_drives(seed, tries, over, || {
            let design = turn(&self.designs, &mut rng);
            let buffer = turn(&self.buffers, &mut rng);
            let config = match &self.drive {
                Some(drive) => drive.clone(),
                None => small_drive(&mut rng),
            };
            let owners = self.owners.filter(|_| self.drive.is_none());
            let config = finish_drive(config, design, buffer, owners, &mut rng, self.drive.is_none()).ok_or(None)?;
            // The next draw has other faults.
            Drive::new(&config, Options { seed, contents: Contents::Nothing }).map_err(|why| Some(why.to_string()))?;
            let steps = steps(&mut rng, &config, self.commands);
            Ok(Case { seed, drive: config, subject: SingleDrive, steps })
        })
    }
}

/// A drive of a few hundred pages.
fn small_drive(rng: &mut Rng) -> DriveConfig {
    loop {
        let mut config = configs::draw(rng);
        // Where no relocation needs them, more blocks only make the drive larger.
        let geometry = &config.flash.geometry;
        if geometry.pages() <= MOST_PAGES && geometry.bytes() / 512 <= MOST_SECTORS * 2 {
            config.timed = rng.random_bool(0.95);
            return config;
        }
    }
}

/// Gives a drive its design, buffer, faults and capacity; `None` if it is refused then.
fn finish_drive(
    mut config: DriveConfig,
    design: Option<String>,
    buffer: Option<String>,
    owners: Option<Owners>,
    rng: &mut Rng,
    drawn: bool,
) -> Option<DriveConfig> {
    if let Some(design) = design.filter(|design| *design != config.ftl.design) {
        if drawn {
            ssdlab_device::draw_design(&mut config, &design, rng);
            ssdlab_device::draw_owners(&mut config);
        } else {
            config.ftl.design = design;
        }
    }
    if let Some(owners) = owners {
        ssdlab_device::set_owners(&mut config, owners);
    }
    config.buffer.policy = buffer.unwrap_or(config.buffer.policy);
    let faulty = rng.random_bool(0.4);
    if drawn {
        config.user_bytes = u64::from(config.ftl.mapping_unit);
        if faulty {
            config.gc.free_blocks = config.gc.free_blocks.max(3);
            config.flash.geometry.blocks_per_plane += rng.random_range(1..6);
        }
    }
    if faulty && config.gc.free_blocks >= 3 {
        add_faults(&mut config.flash.faults, rng, config.flash.geometry.blocks());
    }
    if drawn {
        let most = configs::most_user_units(&config)?.min(MOST_SECTORS * 512 / u64::from(config.ftl.mapping_unit));
        // Mostly as full as may be: few spare blocks.
        let units = if rng.random_bool(0.7) { most } else { rng.random_range(1..=most.max(1)) };
        let units = ssdlab_device::draw_user_units(units, &config, rng);
        config.user_bytes = units.max(1) * u64::from(config.ftl.mapping_unit);
    }
    describable(&config)
}

/// Each kind of fault on or off: by rate, by wear, and at exact places.
fn add_faults(faults: &mut Faults, rng: &mut Rng, blocks: u32) {
    let rate = |rng: &mut Rng, most: f64| {
        // A rate that a description can say exactly.
        if rng.random_bool(0.5) { 0.0 } else { f64::from(rng.random_range(1..1000)) * most / 1000.0 }
    };
    faults.program_failure = rate(rng, 0.03);
    faults.erase_failure = rate(rng, 0.05);
    faults.uncorrectable_read = if rng.random_bool(0.7) { 0.0 } else { rate(rng, 0.02) };
    faults.factory_bad = rate(rng, 0.05);
    faults.endurance = rng.random_bool(0.3).then(|| rng.random_range(1..20));
    let kinds = [FaultKind::Read, FaultKind::Program, FaultKind::Erase];
    let kinds = if rng.random_bool(0.7) { &kinds[1..] } else { &kinds };
    for _ in 0..rng.random_range(0..6) {
        let (kind, block) = (one_of(rng, kinds), BlockId(rng.random_range(0..blocks)));
        faults.script.push(ScriptedFault { kind, block, nth: rng.random_range(1..20) });
    }
}

/// How often things happen between commands.
struct Habits {
    cut: f64,
    /// A fault of one of these kinds.
    fail: (f64, &'static [FaultKind]),
    run: f64,
    pass: f64,
    drain: f64,
    /// Weights of moments: now, program, erase, durable, after some events.
    moments: [u32; 5],
    between: f64,
    again: f64,
    /// Cuts in recoveries, and in those that follow.
    recovery: f64,
}

fn steps(rng: &mut Rng, config: &DriveConfig, commands: u64) -> Vec<Step<BlockCommand>> {
    const READS: &[FaultKind] = &[FaultKind::Read];
    const KINDS: [&[FaultKind]; 4] = [
        &[FaultKind::Program],
        &[FaultKind::Erase],
        &[FaultKind::Program, FaultKind::Erase],
        &[FaultKind::Read, FaultKind::Program, FaultKind::Erase],
    ];
    let fails = if config.gc.free_blocks >= 3 { one_of(rng, &[0.0, 0.0, 0.0, 0.01, 0.05]) } else { 0.0 };
    let mut fail = (fails, one_of(rng, &KINDS));
    // Parity is there for reads that fail, wherever they do.
    let parity = config.ftl.parity != Parity::None;
    if parity && fail.0 == 0.0 && config.gc.free_blocks >= 3 {
        fail = (0.1, READS);
    }
    let habits = Habits {
        fail,
        cut: one_of(rng, &[0.3, 0.1, 0.1, 0.03, 0.01]),
        run: one_of(rng, &[0.0, 0.1, 0.5]),
        pass: one_of(rng, &[0.0, 0.0, 0.05]),
        drain: one_of(rng, &[0.0, 0.05, 0.3]),
        moments: std::array::from_fn(|kind| one_of(rng, if kind == 0 { &[0, 1, 1, 4] } else { &[0, 1, 4, 8] })),
        between: one_of(rng, &[0.0, 0.5, 1.0]),
        again: one_of(rng, &[0.0, 0.2, 0.6]),
        recovery: one_of(rng, &[0.0, 0.1, 0.5]),
    };
    let mut mix = Mix::draw(rng, config);
    let mut depth = 1;
    let mut steps = Vec::with_capacity(commands as usize * 3 / 2);
    // A drive that holds something has something to lose, and garbage collection has something to do.
    let fill = rng.random_bool(0.5);
    if fill {
        steps.extend(mix.fill().map(|request| Step::Command(BlockCommand { request, depth: 8 })));
    }
    for number in 0..commands {
        if number % 16 == 0 {
            depth = one_of(rng, &[1, 1, 2, 4, 8, 32]);
        }
        let (request, _) = mix.next(rng);
        let request = ssdlab_base::Request { tag: 0, ..request };
        steps.push(Step::Command(BlockCommand { request, depth }));
        if rng.random_bool(habits.fail.0) {
            let kind = one_of(rng, habits.fail.1);
            let block = parity.then(|| BlockId(rng.random_range(0..config.flash.geometry.blocks())));
            steps.push(Step::Fail(kind, Place::of(block)));
        }
        if rng.random_bool(habits.run) {
            steps.push(Step::Run(rng.random_range(1..12)));
        }
        if rng.random_bool(habits.pass) {
            steps.push(Step::Pass(Nanos(rng.random_range(1..5_000_000))));
        }
        if rng.random_bool(habits.drain) {
            steps.push(Step::Drain);
        }
        if rng.random_bool(habits.cut) || number + 1 == commands {
            cuts(rng, &habits, &mut steps);
        }
    }
    steps
}

/// A power cut, and sometimes more of them before anything is read.
fn cuts(rng: &mut Rng, habits: &Habits, steps: &mut Vec<Step<BlockCommand>>) {
    let again = if rng.random_bool(habits.again) { rng.random_range(1..3) } else { 0 };
    for left in (0..=again).rev() {
        let percent = if rng.random_bool(habits.between) { rng.random_range(1..100) } else { 0 };
        let mut recovery = [None; 3];
        for place in &mut recovery {
            if !rng.random_bool(habits.recovery) {
                break;
            }
            *place = Some(draw_again(rng));
        }
        steps.push(Step::Cut(Cut { at: moment(rng, habits), percent, recovery, unread: left > 0, ..Cut::NOW }));
        if left > 0 && rng.random_bool(0.5) {
            steps.push(Step::Run(rng.random_range(1..20)));
        }
    }
}

fn moment(rng: &mut Rng, habits: &Habits) -> Moment {
    let sum: u32 = habits.moments.iter().sum();
    if sum == 0 {
        return Moment::Now;
    }
    let mut pick = rng.random_range(0..sum);
    let after = Moment::After(rng.random_range(1..40));
    let moments = [Moment::Now, Moment::Program, Moment::Erase, Moment::Durable, after];
    for (moment, weight) in moments.into_iter().zip(habits.moments) {
        if pick < weight {
            return moment;
        }
        pick -= weight;
    }
    Moment::Now
}

//! The stack of a run: a bare drive, or a host above drives; preconditioned.
//!
//! Drives are preconditioned without the host where that makes no difference to what is where: below layers that pass every
//! sector of one drive through. The same preconditioned drive then serves runs with and without them. Other stacks are
//! preconditioned through their layers, unless the experiment says below.

use std::time::Instant;

use ssdlab_base::SECTOR_BYTES;
use ssdlab_device::{Counters, Drive, DriveConfig, Options};
use ssdlab_flash::{Contents, ScriptedFault};
use ssdlab_host::{Administration, BlockDevice, Device, Host, Member, MemberConfig, Part, StackError, seed_of};

use super::{DeviceUnderTest, Experiment, RunError};
use crate::precondition::{Ended, Interruptible, Keeper, precondition, warm_buffer};
use crate::progress::{Control, Phase};
use crate::result::Precondition;
use crate::snapshot::{Found, Identity};
use crate::source::InZones;
use crate::verify::Verifier;

/// A drive that is ready for the run, the record of its preconditioning, and the faults that struck on the way, as far as
/// that is known: a snapshot does not say.
type PreconditionedDrive = (Drive, Precondition, Vec<ScriptedFault>);

/// Why an experiment cannot be run on a stack.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StackRefused {
    /// A layer cannot stand on what is below it.
    #[error(transparent)]
    Layer(Box<StackError>),
    /// The drives have pages of different sizes.
    #[error(
        "the drive {drive} of the host: flash.page_size: found {found} bytes, expected {expected} as all others: results count \
         pages"
    )]
    PageSize {
        /// The drive.
        drive: String,
        /// Bytes of its pages.
        found: u32,
        /// Bytes of the pages of the others.
        expected: u32,
    },
    /// Some drives model time and others do not.
    #[error("the drive {drive} of the host: flash.timing: expected \"none\" for all drives or for no drive")]
    Timing {
        /// The drive.
        drive: String,
    },
    /// What is watched is one drive.
    #[error(
        "--vcd, --rb-probe and --trace-window watch one drive, that of --device; found a host with {found}, expected layers \
         above that drive alone"
    )]
    NotOneDrive {
        /// What the host has in its place.
        found: String,
    },
    /// Zones are where the sub-test before left them, and a workload begins with what it was told.
    #[error("--subtests are of workloads on drives without zones, expected a run as a whole")]
    Zones,
    /// A trace without commands of zones writes where no write pointer is.
    #[error(
        "the drive accepts writes only at the write pointers of its zones, and {what}; use a trace whose writes are there, one \
         with commands of the set 'zoned', or fio's options with zonemode=zbd (docs/workloads.md)"
    )]
    OffWritePointer {
        /// The first such write.
        what: String,
    },
    /// What was written below the layers cannot be verified through them.
    #[error("--verify knows what was written through the layers, not what --precondition-below writes under them")]
    VerifiedBelow,
}

/// What a run drives.
pub(crate) enum Stack {
    /// A drive: a replay calls it directly.
    Bare(Box<Drive>),
    /// Layers above drives.
    Layered(Box<dyn Device>),
}

impl Stack {
    pub(super) fn administration(&mut self) -> &mut dyn Administration {
        match self {
            Stack::Bare(drive) => &mut **drive,
            Stack::Layered(device) => device.as_administration(),
        }
    }

    pub(super) fn data(&mut self) -> &mut dyn BlockDevice {
        match self {
            Stack::Bare(drive) => &mut **drive,
            Stack::Layered(device) => device.as_block_device(),
        }
    }

    pub(super) fn look(&self) -> &dyn Administration {
        match self {
            Stack::Bare(drive) => &**drive,
            Stack::Layered(device) => device.look(),
        }
    }

    pub(super) fn drives(&self) -> Vec<Part<&Drive>> {
        self.look().drives()
    }

    pub(super) fn counters(&self) -> Counters {
        self.look().counters()
    }

    /// Reads everything through the layers and compares it, until `stopped`.
    pub(super) fn read_back(&mut self, verifier: &mut Verifier, stopped: &dyn Fn() -> bool) {
        match self {
            Stack::Bare(drive) => verifier.read_back(&mut **drive, stopped),
            Stack::Layered(device) => verifier.read_back(&mut **device, stopped),
        }
    }
}

/// A device under test as workloads see it: with the capacity of the stack. A drive that is `watched` must be the only one.
pub(crate) fn seen_by_workloads(
    dut: &DeviceUnderTest,
    experiment: &Experiment<'_>,
    watched: bool,
) -> Result<DeviceUnderTest, RunError> {
    let mut seen = dut.clone();
    let of_drive = |source| RunError::Drive { label: dut.label.clone(), source };
    let Some(host) = experiment.host else {
        dut.config.validate().map_err(of_drive)?;
        let refused = |source| RunError::Stack { label: dut.label.clone(), source };
        let in_zones = match dut.config.zones() {
            Some(_) => experiment.workload.writes_in_zones(&dut.config),
            None => InZones::No,
        };
        match in_zones {
            InZones::No => dut.config.takes_block_io().map_err(of_drive)?,
            InZones::Off(what) => return Err(refused(StackRefused::OffWritePointer { what })),
            InZones::Yes if experiment.subtests.is_some() => return Err(refused(StackRefused::Zones)),
            InZones::Yes => {}
        }
        return Ok(seen);
    };
    let refused = |source| RunError::Stack { label: dut.label.clone(), source };
    let sectors = host.sectors(&dut.config).map_err(|error| refused(StackRefused::Layer(Box::new(error))))?;
    (seen.config.user_bytes, seen.config.below_layers) = (sectors * SECTOR_BYTES, true);
    let drives = host.drives(&dut.config);
    let page_bytes = dut.config.flash.geometry.page_bytes;
    if let Some((name, config)) = drives.iter().find(|(_, config)| config.flash.geometry.page_bytes != page_bytes) {
        let found = config.flash.geometry.page_bytes;
        return Err(refused(StackRefused::PageSize { drive: name.clone(), found, expected: page_bytes }));
    }
    if let Some((name, _)) = drives.iter().find(|(_, config)| config.timed != dut.config.timed) {
        return Err(refused(StackRefused::Timing { drive: name.clone() }));
    }
    if watched && !matches!(&drives[..], [(_, only)] if *only == dut.config) {
        let found = match &drives[..] {
            [(name, _)] => format!("the drive {name}"),
            several => format!("{} drives", several.len()),
        };
        return Err(refused(StackRefused::NotOneDrive { found }));
    }
    if experiment.precondition_below && experiment.verify && !host.is_transparent() {
        return Err(refused(StackRefused::VerifiedBelow));
    }
    Ok(seen)
}

/// The preconditioned stack; `None` if it was stopped on the way. `seen` is the device under test as workloads see it.
pub(super) fn preconditioned(
    experiment: &Experiment<'_>,
    seen: &DeviceUnderTest,
    mut verifier: Option<&mut Verifier>,
    control: &Control<'_>,
) -> Result<Option<(Stack, Precondition, Vec<ScriptedFault>)>, RunError> {
    let options = Options { seed: experiment.seed, contents: contents_for(experiment) };
    let Some(dut) = experiment.drives.iter().find(|dut| dut.label == seen.label) else {
        unreachable!("it is one of the experiment's drives")
    };
    let stood = |host: &Host, drives| {
        let refused =
            |error| RunError::Stack { label: dut.label.clone(), source: StackRefused::Layer(Box::new(error)) };
        host.build(drives).map_err(refused)
    };
    match experiment.host {
        None => {
            let Some((drive, record, struck)) = whole_drive(experiment, dut, options, verifier, control)? else {
                return Ok(None);
            };
            Ok(Some((Stack::Bare(Box::new(drive)), record, struck)))
        }
        Some(host) if host.is_transparent() || experiment.precondition_below => {
            let (mut members, mut record, mut struck) = (Vec::new(), Precondition::default(), Vec::new());
            for (index, (name, config)) in host.members(&dut.config).into_iter().enumerate() {
                let options = Options { seed: seed_of(options.seed, index), ..options };
                let config = match config {
                    MemberConfig::Drive(config) => *config,
                    MemberConfig::Disk(config) => {
                        members.push(Member::new_disk(&name, &config, options.contents));
                        continue;
                    }
                };
                let label = if index == 0 && host.is_transparent() { dut.label.clone() } else { name.clone() };
                let own = DeviceUnderTest { label, config };
                let Some((drive, of, hit)) = whole_drive(experiment, &own, options, verifier.as_deref_mut(), control)?
                else {
                    return Ok(None);
                };
                struck.extend(hit);
                if members.is_empty() {
                    record = of;
                } else {
                    record.written_bytes += of.written_bytes;
                    record.capacity_bytes += of.capacity_bytes;
                    record.steady = record.steady.zip(of.steady).map(|(one, other)| one && other);
                    record.settled = record.settled.filter(|_| record.steady == Some(true));
                    record.notes.extend(of.notes);
                }
                members.push(Member::of(&name, drive, options));
            }
            let mut device = stood(host, members)?;
            if !host.is_transparent() {
                // What layers write when they are set up belongs to no run.
                device.reset_statistics();
            }
            Ok(Some((Stack::Layered(device), record, struck)))
        }
        Some(host) => {
            let mut device = fresh(dut, Some(host), options)?;
            let record = age_through(experiment, seen, &mut *device, options, verifier, control)?;
            let struck = device.drives().iter().flat_map(|part| part.device.faults_struck().to_vec()).collect();
            Ok(record.map(|record| (Stack::Layered(device), record, struck)))
        }
    }
}

/// New drives and disks, and the layers of a host above them.
pub(crate) fn fresh(dut: &DeviceUnderTest, host: Option<&Host>, options: Options) -> Result<Box<dyn Device>, RunError> {
    let refused = |label: &str, source| RunError::Drive { label: label.to_string(), source };
    let Some(host) = host else {
        let member = Member::new(&dut.label, &dut.config, options);
        return Ok(Box::new(member.map_err(|source| refused(&dut.label, source))?));
    };
    let mut members = Vec::new();
    for (index, (name, config)) in host.members(&dut.config).into_iter().enumerate() {
        let options = Options { seed: seed_of(options.seed, index), ..options };
        members.push(Member::fresh(&name, &config, options).map_err(|source| refused(&name, source))?);
    }
    let refused = |error| RunError::Stack { label: dut.label.clone(), source: StackRefused::Layer(Box::new(error)) };
    host.build(members).map_err(refused)
}

/// Preconditions a stack through its layers; there are no snapshots of it.
fn age_through(
    experiment: &Experiment<'_>,
    seen: &DeviceUnderTest,
    device: &mut dyn Device,
    options: Options,
    mut verifier: Option<&mut Verifier>,
    control: &Control<'_>,
) -> Result<Option<Precondition>, RunError> {
    let failed = |source| RunError::Replay { label: seen.label.clone(), source };
    let from = Interruptible::default();
    let (preconditioning, measured) = (&experiment.preconditioning, experiment.workload);
    let aged = precondition(
        device,
        &seen.config,
        preconditioning,
        &seen.label,
        measured,
        verifier.as_deref_mut(),
        from,
        control,
    );
    let (aged, record) = aged.map_err(failed)?;
    if aged == Ended::Stopped {
        return Ok(None);
    }
    device.reseed(options);
    if let Some(verifier) = &mut verifier {
        verifier.restart();
    }
    let warm = warm(experiment, &seen.config, device, options, verifier, control).map_err(failed)?;
    Ok((warm == Ended::Done).then_some(record))
}

/// Fills the write buffer again where the preconditioning is a steady state.
fn warm<D: BlockDevice + Administration + ?Sized>(
    experiment: &Experiment<'_>,
    config: &DriveConfig,
    device: &mut D,
    options: Options,
    mut verifier: Option<&mut Verifier>,
    control: &Control<'_>,
) -> Result<Ended, crate::replay::ReplayError> {
    let Some(ageing) = experiment.preconditioning.steady_under(experiment.workload) else { return Ok(Ended::Done) };
    let warm = warm_buffer(device, config, ageing, verifier.as_deref_mut(), control)?;
    if warm == Ended::Done {
        if let Some(verifier) = verifier {
            verifier.restart();
        }
        device.reseed(options);
    }
    Ok(warm)
}

/// One preconditioned drive, its write buffer filled where the preconditioning asks for that; `None` if it was stopped on the way.
fn whole_drive(
    experiment: &Experiment<'_>,
    dut: &DeviceUnderTest,
    options: Options,
    mut verifier: Option<&mut Verifier>,
    control: &Control<'_>,
) -> Result<Option<PreconditionedDrive>, RunError> {
    let aged = aged_drive(experiment, dut, options, verifier.as_deref_mut(), control)?;
    let Some((mut drive, record, struck)) = aged else { return Ok(None) };
    let failed = |source| RunError::Replay { label: dut.label.clone(), source };
    let warm = warm(experiment, &dut.config, &mut drive, options, verifier, control).map_err(failed)?;
    Ok((warm == Ended::Done).then_some((drive, record, struck)))
}

/// Verified drives hold stamps, others nothing.
const fn contents_for(experiment: &Experiment<'_>) -> Contents {
    if experiment.verify { Contents::Stamps } else { Contents::Nothing }
}

/// The preconditioned drive, from a snapshot where there is one; `None` if it was stopped on the way.
fn aged_drive(
    experiment: &Experiment<'_>,
    dut: &DeviceUnderTest,
    options: Options,
    mut verifier: Option<&mut Verifier>,
    control: &Control<'_>,
) -> Result<Option<PreconditionedDrive>, RunError> {
    let config = &dut.config;
    let age = experiment.preconditioning.identity(experiment.workload);
    // A snapshot holds no contents, nor what they should be.
    let snapshots = experiment.snapshots.filter(|_| verifier.is_none());
    let kept = snapshots.zip(age.as_deref()).map(|(cache, age)| (cache, Identity { config, options, age }));

    let mut damaged = None;
    if let Some((cache, identity)) = &kept {
        control.progress.begin(&dut.label, Phase::Restore);
        match cache.find(identity) {
            Found::Drive(drive, record) => return Ok(Some((drive, record, Vec::new()))),
            Found::Nothing => {}
            Found::Damaged(why) => damaged = Some(why),
        }
    }

    let refused = |source| RunError::Drive { label: dut.label.clone(), source };
    let mut from = None;
    let mut resumed = None;
    if let Some((cache, identity)) = &kept {
        match cache.find_checkpoint(identity) {
            Ok(found) => (resumed, from) = found.unzip(),
            Err(why) => damaged = damaged.or_else(|| Some(why.to_string())),
        }
    }
    let mut drive = match resumed {
        Some(drive) => drive,
        None => Drive::new(config, options).map_err(refused)?,
    };
    let was_resumed = from.is_some();
    if let Some(position) = &from {
        control.progress.note(&format!("{}: {}", dut.label, position.resumed()));
    }
    let mut keeper = kept.as_ref().map(|(cache, identity)| Keeper::new(cache, *identity, from.as_ref()));
    let failed = |source| RunError::Replay { label: dut.label.clone(), source };
    let started = Instant::now();
    let (aged, mut record) = precondition(
        &mut drive,
        config,
        &experiment.preconditioning,
        &dut.label,
        experiment.workload,
        verifier.as_deref_mut(),
        Interruptible { from, keeper: keeper.as_mut() },
        control,
    )
    .map_err(failed)?;
    if aged == Ended::Stopped {
        let left = keeper.map_or_else(
            || "preconditioning was stopped and nothing of it is kept: this run keeps no snapshots".to_string(),
            |keeper| keeper.left(),
        );
        control.progress.note(&format!("{}: {left}", dut.label));
        return Ok(None);
    }
    if let Some(verifier) = verifier {
        verifier.restart();
    }
    let struck = drive.faults_struck().to_vec();
    // A drive from a snapshot draws from the beginning of the seed's streams, so this one must too.
    drive.reseed(options);
    if let Some((cache, identity)) = &kept {
        if was_resumed || cache.is_worth(started.elapsed()) {
            control.progress.begin(&dut.label, Phase::Save);
            if let Err(error) = cache.keep(identity, &mut drive, &record) {
                record.notes.push(format!("the preconditioned drive could not be kept for the next run: {error}"));
            }
        } else {
            cache.forget_checkpoint(identity);
        }
    }
    record.notes.extend(damaged);
    Ok(Some((drive, record, struck)))
}

//! What the drives of a stack say together: sums where they add up, lists in the drives' order where they do not.

use std::collections::BTreeMap;

use ssdlab_device::{Drive, Utilization, Wear};
use ssdlab_host::{Administration, Part, seed_of};
use ssdlab_measure::smart::SmartLog;

use crate::result::{Capacity, Commands, Erases, OverProvisioning};

/// A drive's log; of several an object by their names. The seed is that of the run.
pub(super) fn logs(parts: Vec<Part<&Drive>>, seed: u64) -> serde_json::Value {
    let log = |(index, part): (usize, &Part<&Drive>)| SmartLog::of_run(part.device, seed_of(seed, index)).to_json();
    match parts.as_slice() {
        [only] => log((0, only)),
        parts => parts.iter().enumerate().map(|(index, part)| (part.name.clone(), log((index, part)))).collect(),
    }
}

/// The over-provisioning of all drives by their user capacity: what lies beyond it, together, by it.
pub(super) fn spare(device: &dyn Administration) -> OverProvisioning {
    let parts = device.drives();
    if let [only] = parts.as_slice() {
        let spare = only.device.over_provisioning();
        return OverProvisioning { nominal: spare.nominal, effective: spare.effective };
    }
    let weighed = |of: fn(&ssdlab_device::OverProvisioning) -> f64| {
        mean_by_capacity(&parts, |part| of(&part.device.over_provisioning()))
    };
    OverProvisioning { nominal: weighed(|spare| spare.nominal), effective: weighed(|spare| spare.effective) }
}

/// What collection found it to be; nothing where there are several drives, or none has collected.
pub(super) fn spare_at_collection(device: &dyn Administration) -> Option<f64> {
    match device.drives().as_slice() {
        [only] => only.device.over_provisioning_at_collection(),
        _ => None,
    }
}

fn mean_by_capacity(parts: &[Part<&Drive>], of: impl Fn(&Part<&Drive>) -> f64) -> f64 {
    let bytes = |part: &Part<&Drive>| part.device.config().user_bytes as f64;
    parts.iter().map(|part| of(part) * bytes(part)).sum::<f64>() / parts.iter().map(bytes).sum::<f64>().max(1.0)
}

/// Modelled memory by name, all drives together, in bytes.
pub(super) fn memory(device: &dyn Administration) -> BTreeMap<String, u64> {
    let mut memory = BTreeMap::new();
    for (name, bytes) in device.drives().iter().flat_map(|part| part.device.memory()) {
        *memory.entry(name.to_string()).or_insert(0) += bytes;
    }
    memory
}

/// A design's own counts; of several drives each is preceded by its drive's name.
pub(super) fn design(device: &dyn Administration) -> BTreeMap<String, f64> {
    match device.drives().as_slice() {
        [only] => only.device.design().into_iter().collect(),
        parts => {
            let of = |part: &Part<&Drive>| {
                let name = part.name.clone();
                part.device.design().into_iter().map(move |(key, value)| (format!("{name}.{key}"), value))
            };
            parts.iter().flat_map(of).collect()
        }
    }
}

/// Commands of the set that the drives know, all drives together; nothing where they know block I/O alone.
pub(super) fn commands(device: &dyn Administration) -> Option<Commands> {
    let mut commands: Option<Commands> = None;
    for drive in device.drives().iter().map(|part| part.device) {
        let Some(set) = drive.command_set() else { continue };
        let all = commands.get_or_insert_with(|| Commands { set: set.name.to_string(), ..Commands::default() });
        for (spec, count) in set.commands.iter().zip(drive.command_counts()) {
            let of_name = all.by_name.entry(spec.name.to_string()).or_default();
            of_name.completed += count.completed;
            of_name.refused += count.refused;
            of_name.failed += count.failed;
        }
        let (sent, kept) = drive.event_counts();
        all.events += sent;
        all.events_unacknowledged += kept;
    }
    commands
}

/// Erases of every block of all drives.
pub(super) fn erase_counts(device: &dyn Administration) -> Vec<u32> {
    device.drives().iter().flat_map(|part| part.device.erase_counts()).collect()
}

/// Erases between two counts of every block.
pub(super) fn erases_between(before: &[u32], after: &[u32]) -> Erases {
    assert_eq!(before.len(), after.len(), "a drive has as many blocks as before");
    let blocks: Vec<u32> = after.iter().zip(before).map(|(after, before)| after - before).collect();
    Wear::of(&blocks).into()
}

impl From<Wear> for Erases {
    fn from(Wear { total, mean, min, max, stddev }: Wear) -> Erases {
        Erases { total, mean, min, max, stddev }
    }
}

/// Capacities of the drives below `user_bytes` of addresses.
pub(super) fn capacity(device: &dyn Administration, user_bytes: u64) -> Capacity {
    let parts = device.drives();
    let sum = |of: fn(&ssdlab_device::DriveConfig) -> u64| parts.iter().map(|part| of(part.device.config())).sum();
    Capacity {
        user_bytes,
        drive_bytes: sum(|config| config.user_bytes),
        flash_bytes: sum(|config| config.flash.geometry.bytes()),
    }
}

/// Bytes that all blocks take over their rated erases; nothing where a drive states none.
pub(super) fn rated_bytes(device: &dyn Administration) -> Option<f64> {
    let of = |part: &Part<&Drive>| {
        let flash = &part.device.config().flash;
        Some(f64::from(flash.faults.endurance?) * flash.geometry.bytes() as f64)
    };
    device.drives().iter().map(of).sum()
}

/// Share of the drives' user capacity that holds data.
pub(super) fn mapped(device: &dyn Administration) -> f64 {
    let parts = device.drives();
    let user: u64 = parts.iter().map(|part| part.device.config().user_bytes).sum();
    let mapped: u64 = parts.iter().map(|part| part.device.mapped_bytes()).sum();
    mapped as f64 / user.max(1) as f64
}

/// Erases over all blocks that are not bad.
pub(super) fn erases(device: &dyn Administration) -> Erases {
    let wears: Vec<(Wear, f64)> = device
        .drives()
        .iter()
        .map(|part| {
            let wear = part.device.wear();
            // Blocks that are not bad; where none was erased it makes no difference.
            let all = f64::from(part.device.config().flash.geometry.blocks());
            let blocks = if wear.mean > 0.0 { wear.total as f64 / wear.mean } else { all };
            (wear, blocks)
        })
        .collect();
    if let [(only, _)] = wears.as_slice() {
        return only.clone().into();
    }
    let total = wears.iter().map(|(wear, _)| wear.total).sum();
    let blocks = wears.iter().map(|(_, blocks)| blocks).sum::<f64>().max(1.0);
    let mean = total as f64 / blocks;
    let squares = |(wear, blocks): &(Wear, f64)| (wear.stddev.powi(2) + (wear.mean - mean).powi(2)) * blocks;
    let variance = wears.iter().map(squares).sum::<f64>() / blocks;
    Erases {
        total,
        mean,
        min: wears.iter().map(|(wear, _)| wear.min).min().unwrap_or(0),
        max: wears.iter().map(|(wear, _)| wear.max).max().unwrap_or(0),
        stddev: variance.sqrt(),
    }
}

/// Busy times of the channels and dies of all drives.
pub(super) fn utilization(device: &dyn Administration) -> Utilization {
    let mut all = Utilization::default();
    for part in device.drives() {
        let Utilization { channels, dies } = part.device.utilization();
        all.channels.extend(channels);
        all.dies.extend(dies);
    }
    all
}

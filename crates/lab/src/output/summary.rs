//! `summary.csv`: a row for each drive and repetition.

use std::collections::BTreeSet;
use std::io::{self, Write};

use ssdlab_flash::Cause;

use super::csv_field;
use crate::headline::metrics;
use crate::result::{DeviceResult, RunResult};

pub(super) fn write(run: &RunResult, mut to: impl Write) -> io::Result<()> {
    let metrics = metrics(run);
    let keys: BTreeSet<&String> = run.devices.iter().flat_map(|device| device.overrides.keys()).collect();
    let some =
        |cause: &&str| run.devices.iter().any(|device| amplification(device, cause).is_some_and(|part| part > 0.0));
    let causes: Vec<&str> = Cause::ALL.iter().map(|cause| cause.key()).filter(some).collect();
    let heads = ["device", "variant", "repetition", "seed"].map(str::to_string).into_iter();
    let heads = heads.chain(keys.iter().map(|key| csv_field(key)));
    let heads = heads.chain(metrics.iter().map(|metric| metric.key.to_string()));
    let heads = heads.chain(causes.iter().map(|cause| format!("write_amplification_{cause}")));
    let heads = heads
        .chain(["requests", "failed_requests", "virtual_time_ns", "invariants_hold", "warnings"].map(str::to_string));
    writeln!(to, "{}", heads.collect::<Vec<_>>().join(","))?;
    for device in &run.devices {
        let (variant, number, seed) = match &device.repetition {
            Some(repetition) => (&repetition.of, repetition.number, repetition.seed),
            None => (&device.name, 1, run.seed),
        };
        let mut cells = vec![csv_field(&device.name), csv_field(variant)];
        cells.extend([number.to_string(), seed.to_string()]);
        cells.extend(
            keys.iter().map(|key| device.overrides.get(*key).map_or_else(String::new, |value| csv_field(value))),
        );
        let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        cells.extend(metrics.iter().map(|metric| number((metric.value)(device))));
        cells.extend(causes.iter().map(|cause| number(amplification(device, cause))));
        cells.push(device.requests.total().to_string());
        cells.push(device.host.failed_requests.to_string());
        cells.push(device.virtual_time_ns.to_string());
        cells.push(device.checks.iter().all(|check| check.held).to_string());
        cells.push(device.warnings.len().to_string());
        writeln!(to, "{}", cells.join(","))?;
    }
    Ok(())
}

/// The part of a cause in write amplification; nothing of a drive that wrote nothing.
fn amplification(device: &DeviceResult, cause: &str) -> Option<f64> {
    device.write_amplification.as_ref().map(|of| of.by_cause.get(cause).copied().unwrap_or(0.0))
}

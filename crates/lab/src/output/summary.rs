//! `summary.csv` and `summary.parquet`: a row for each drive and repetition.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{self, Write};

use ssdlab_flash::Cause;

use super::columns::{Column, Columns};
use super::{csv_field, parquet};
use crate::headline::metrics;
use crate::result::{DeviceResult, RunResult};

/// The table's columns, in order.
fn columns(run: &RunResult) -> Columns<'_> {
    let (devices, metrics) = (&run.devices, metrics(run));
    let keys: BTreeSet<&String> = devices.iter().flat_map(|device| device.overrides.keys()).collect();
    let some = |cause: &&str| devices.iter().any(|device| amplification(device, cause).is_some_and(|part| part > 0.0));
    let causes = Cause::ALL.iter().map(|cause| cause.key()).filter(some);
    let texts = |of: fn(&DeviceResult) -> &str| Column::Texts(devices.iter().map(of).collect());
    let counts = |of: fn(&DeviceResult) -> u64| Column::Counts(devices.iter().map(of).collect());
    let rates =
        |of: &dyn Fn(&DeviceResult) -> Option<f64>| Column::OptionalRates(Cow::Owned(devices.iter().map(of).collect()));
    let seed = |device: &DeviceResult| device.repetition.as_ref().map_or(run.seed, |repetition| repetition.seed);
    let mut table: Columns<'_> = Vec::new();
    let mut column = |name: &str, values| table.push((name.to_string(), values));
    column("device", texts(|device| &device.name));
    column("variant", texts(|d| d.repetition.as_ref().map_or(&d.name, |repetition| &repetition.of)));
    column("repetition", counts(|d| d.repetition.as_ref().map_or(1, |repetition| repetition.number.into())));
    column("seed", Column::Words(devices.iter().map(seed).collect()));
    for key in keys {
        let values = devices.iter().map(|device| device.overrides.get(key).map(String::as_str));
        column(key, Column::OptionalTexts(values.collect()));
    }
    for metric in metrics {
        column(metric.key, rates(&metric.value));
    }
    for cause in causes {
        column(&format!("write_amplification_{cause}"), rates(&|device| amplification(device, cause)));
    }
    column("requests", counts(|device| device.requests.total()));
    column("failed_requests", counts(|device| device.host.failed_requests));
    column("virtual_time_ns", counts(|device| device.virtual_time_ns));
    let hold = |device: &DeviceResult| device.checks.iter().all(|check| check.passed);
    column("invariants_hold", Column::Truths(devices.iter().map(hold).collect()));
    column("warnings", counts(|device| device.warnings.len() as u64));
    table
}

pub(super) fn write_csv(run: &RunResult, mut to: impl Write) -> io::Result<()> {
    let columns = columns(run);
    let heads: Vec<String> = columns.iter().map(|(name, _)| csv_field(name)).collect();
    writeln!(to, "{}", heads.join(","))?;
    for row in 0..run.devices.len() {
        let cells: Vec<String> = columns.iter().map(|(_, column)| column.cell(row)).collect();
        writeln!(to, "{}", cells.join(","))?;
    }
    to.flush()
}

pub(super) fn write_parquet(run: &RunResult, to: impl Write + Send) -> io::Result<()> {
    let columns: Columns<'_> = columns(run).into_iter().map(|(name, column)| (name, column.typed())).collect();
    parquet::write("summary", &columns.clone(), std::iter::once((run.devices.len(), columns)), to)
}

/// The part of a cause in write amplification; nothing of a drive that wrote nothing.
fn amplification(device: &DeviceResult, cause: &str) -> Option<f64> {
    device.write_amplification.as_ref().map(|of| of.by_cause.get(cause).copied().unwrap_or(0.0))
}

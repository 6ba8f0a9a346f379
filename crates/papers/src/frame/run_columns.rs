//! What tables of several papers read from runs.

use super::result_reader::Measured;
use super::table::{Column, Reading};

/// Bytes of a MB of those papers that count them in powers of two.
pub(crate) const MB: f64 = 1_048_576.0;

/// Bytes that a run moved in a second.
pub(crate) const THROUGHPUT: Column<Reading> = ("throughput", "MB/s", |run| {
    Some((run.number("throughput.read_bytes_per_s")? + run.number("throughput.write_bytes_per_s")?) / MB)
});

/// Pages of flash that were programmed, by the pages that the workload wrote.
pub(crate) const WRITE_AMPLIFICATION: Column<Reading> =
    ("write amplification", "", |run| run.number("write_amplification.total"));

/// The share of time in which a die works, in percent, on average over the dies.
pub(crate) fn busy_dies(run: &Measured) -> Option<f64> {
    run.mean("utilization.dies").map(|share| 100.0 * share)
}

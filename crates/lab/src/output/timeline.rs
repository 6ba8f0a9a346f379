//! `timeline.parquet`: the timelines of all drives as one table, a row group for each drive.

use std::borrow::Cow;
use std::io::{self, Write};

use super::columns::{Column, Columns};
use super::parquet;
use crate::breakdown::OPS;
use crate::result::{OpTimeline, RunResult, Timeline};

/// Of a kind of request that did not occur: columns without a value.
static NOTHING: OpTimeline = OpTimeline {
    requests: Vec::new(),
    latency_mean_ns: Vec::new(),
    latency_p99_ns: Vec::new(),
    latency_max_ns: Vec::new(),
};

/// The table's columns, in order, for one drive.
fn columns<'a>(device: &'a str, timeline: &'a Timeline) -> Columns<'a> {
    let mut columns = vec![
        ("device".to_string(), Column::Name(device)),
        ("time_ns".to_string(), Column::Counts(Cow::Borrowed(&timeline.time_ns))),
        ("requests_total".to_string(), Column::Counts(Cow::Borrowed(&timeline.requests_total))),
        ("requests".to_string(), Column::Counts(Cow::Borrowed(&timeline.requests))),
        ("read_bytes".to_string(), Column::Counts(Cow::Borrowed(&timeline.read_bytes))),
        ("write_bytes".to_string(), Column::Counts(Cow::Borrowed(&timeline.write_bytes))),
        ("iops".to_string(), Column::Rates(&timeline.iops)),
        ("latency_mean_ns".to_string(), Column::OptionalRates(Cow::Borrowed(&timeline.latency_mean_ns))),
        ("latency_p99_ns".to_string(), Column::OptionalCounts(Cow::Borrowed(&timeline.latency_p99_ns))),
        ("latency_max_ns".to_string(), Column::OptionalCounts(Cow::Borrowed(&timeline.latency_max_ns))),
        ("write_amplification".to_string(), Column::OptionalRates(Cow::Borrowed(&timeline.write_amplification))),
        ("erases".to_string(), Column::Counts(Cow::Borrowed(&timeline.erases))),
        ("gc_stall_ns".to_string(), Column::Counts(Cow::Borrowed(&timeline.gc_stall_ns))),
        ("buffer_pages".to_string(), Column::Counts(Cow::Borrowed(&timeline.buffer_pages))),
        ("buffer_partial_pages".to_string(), Column::Counts(Cow::Borrowed(&timeline.buffer_partial_pages))),
        ("map_hit_ratio".to_string(), Column::OptionalRates(Cow::Borrowed(&timeline.map_hit_ratio))),
    ];
    for op in OPS {
        let of = timeline.latency_by_op.get(op).unwrap_or(&NOTHING);
        columns.push((format!("latency_mean_ns_{op}"), Column::OptionalRates(Cow::Borrowed(&of.latency_mean_ns))));
        columns.push((format!("latency_p99_ns_{op}"), Column::OptionalCounts(Cow::Borrowed(&of.latency_p99_ns))));
        columns.push((format!("latency_max_ns_{op}"), Column::OptionalCounts(Cow::Borrowed(&of.latency_max_ns))));
    }
    for (prefix, table) in [("reads", &timeline.reads), ("programs", &timeline.programs)] {
        columns.extend(
            table.iter().map(|(cause, counts)| (format!("{prefix}_{cause}"), Column::Counts(Cow::Borrowed(counts)))),
        );
    }
    columns
}

pub(super) fn write(run: &RunResult, to: impl Write + Send) -> io::Result<()> {
    // A run that was stopped before its first drive has a table too, without rows: its columns are an empty drive's.
    let mut nothing = Timeline::default();
    for cause in ssdlab_flash::Cause::ALL {
        nothing.reads.insert(cause.key().to_string(), Vec::new());
        nothing.programs.insert(cause.key().to_string(), Vec::new());
    }
    let groups = run.devices.iter();
    let groups = groups.map(|device| (device.timeline.time_ns.len(), columns(&device.name, &device.timeline)));
    parquet::write("timeline", &columns("", &nothing), groups, to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{DeviceResult, FORMAT, VERSION};
    use ::parquet::file::reader::{FileReader, SerializedFileReader};

    fn run(devices: Vec<DeviceResult>) -> RunResult {
        RunResult {
            format: FORMAT,
            version: VERSION.to_string(),
            complete: true,
            seed: 1,
            title: None,
            command: Vec::new(),
            wall_started: None,
            workload: String::new(),
            replay: String::new(),
            precondition: String::new(),
            host: None,
            notes: Vec::new(),
            devices,
        }
    }

    #[test]
    fn a_run_without_drives_is_a_table_without_rows() {
        let mut file = Vec::new();
        write(&run(Vec::new()), &mut file).expect("a vector takes everything");
        let reader = SerializedFileReader::new(bytes::Bytes::from(file)).expect("Parquet");
        assert_eq!(reader.metadata().file_metadata().num_rows(), 0);
        assert_eq!(
            reader.metadata().file_metadata().schema_descr().num_columns(),
            16 + 3 * 4 + 2 * ssdlab_flash::Cause::COUNT
        );
    }
}

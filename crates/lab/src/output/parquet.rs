//! `timeline.parquet`: the timelines of all drives as one table, a row group for each drive.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};

use crate::breakdown::OPS;
use crate::result::{OpTimeline, RunResult, Timeline};

/// Of a kind of request that did not occur: columns without a value.
static NOTHING: OpTimeline = OpTimeline {
    requests: Vec::new(),
    latency_mean_ns: Vec::new(),
    latency_p99_ns: Vec::new(),
    latency_max_ns: Vec::new(),
};

/// A column's values for one drive; an optional one that is empty has no value in any row.
enum Column<'a> {
    Name(&'a str),
    Counts(&'a [u64]),
    Rates(&'a [f64]),
    OptionalCounts(&'a [Option<u64>]),
    OptionalRates(&'a [Option<f64>]),
}

impl Column<'_> {
    fn schema(&self, name: &str) -> Result<TypePtr, ParquetError> {
        let (physical, repetition) = match self {
            Column::Name(_) => (PhysicalType::BYTE_ARRAY, Repetition::REQUIRED),
            Column::Counts(_) => (PhysicalType::INT64, Repetition::REQUIRED),
            Column::Rates(_) => (PhysicalType::DOUBLE, Repetition::REQUIRED),
            Column::OptionalCounts(_) => (PhysicalType::INT64, Repetition::OPTIONAL),
            Column::OptionalRates(_) => (PhysicalType::DOUBLE, Repetition::OPTIONAL),
        };
        let logical = matches!(self, Column::Name(_)).then_some(LogicalType::String);
        let built = Type::primitive_type_builder(name, physical).with_repetition(repetition).with_logical_type(logical);
        built.build().map(Arc::new)
    }
}

/// The table's columns, in order, for one drive.
fn columns<'a>(device: &'a str, timeline: &'a Timeline) -> Vec<(String, Column<'a>)> {
    let mut columns = vec![
        ("device".to_string(), Column::Name(device)),
        ("time_ns".to_string(), Column::Counts(&timeline.time_ns)),
        ("requests_total".to_string(), Column::Counts(&timeline.requests_total)),
        ("requests".to_string(), Column::Counts(&timeline.requests)),
        ("read_bytes".to_string(), Column::Counts(&timeline.read_bytes)),
        ("write_bytes".to_string(), Column::Counts(&timeline.write_bytes)),
        ("iops".to_string(), Column::Rates(&timeline.iops)),
        ("latency_mean_ns".to_string(), Column::OptionalRates(&timeline.latency_mean_ns)),
        ("latency_p99_ns".to_string(), Column::OptionalCounts(&timeline.latency_p99_ns)),
        ("latency_max_ns".to_string(), Column::OptionalCounts(&timeline.latency_max_ns)),
        ("write_amplification".to_string(), Column::OptionalRates(&timeline.write_amplification)),
        ("erases".to_string(), Column::Counts(&timeline.erases)),
        ("gc_stall_ns".to_string(), Column::Counts(&timeline.gc_stall_ns)),
        ("buffer_pages".to_string(), Column::Counts(&timeline.buffer_pages)),
        ("buffer_partial_pages".to_string(), Column::Counts(&timeline.buffer_partial_pages)),
        ("map_hit_ratio".to_string(), Column::OptionalRates(&timeline.map_hit_ratio)),
    ];
    for op in OPS {
        let of = timeline.latency_by_op.get(op).unwrap_or(&NOTHING);
        columns.push((format!("latency_mean_ns_{op}"), Column::OptionalRates(&of.latency_mean_ns)));
        columns.push((format!("latency_p99_ns_{op}"), Column::OptionalCounts(&of.latency_p99_ns)));
        columns.push((format!("latency_max_ns_{op}"), Column::OptionalCounts(&of.latency_max_ns)));
    }
    for (prefix, table) in [("reads", &timeline.reads), ("programs", &timeline.programs)] {
        columns.extend(table.iter().map(|(cause, counts)| (format!("{prefix}_{cause}"), Column::Counts(counts))));
    }
    columns
}

/// Which rows have a value.
fn presence<T>(values: &[Option<T>], rows: usize) -> Vec<i16> {
    if values.is_empty() {
        return vec![0; rows];
    }
    values.iter().map(|value| i16::from(value.is_some())).collect()
}

/// Parquet has no unsigned counts; none comes near the sign bit.
fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

pub(super) fn write(run: &RunResult, to: impl Write + Send) -> io::Result<()> {
    write_table(run, to).map_err(|error| match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    })
}

fn write_table(run: &RunResult, to: impl Write + Send) -> Result<(), ParquetError> {
    // A run that was stopped before its first drive has a table too, without rows: its columns are an empty drive's.
    let mut nothing = Timeline::default();
    for cause in ssdlab_flash::Cause::ALL {
        nothing.reads.insert(cause.key().to_string(), Vec::new());
        nothing.programs.insert(cause.key().to_string(), Vec::new());
    }
    let fields = columns("", &nothing).iter().map(|(name, column)| column.schema(name)).collect::<Result<_, _>>()?;
    let schema = Arc::new(Type::group_type_builder("timeline").with_fields(fields).build()?);
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default()));
    let mut writer = SerializedFileWriter::new(to, schema, Arc::new(properties.build()))?;
    for device in &run.devices {
        let rows = device.timeline.time_ns.len();
        if rows == 0 {
            continue;
        }
        let mut group = writer.next_row_group()?;
        for (name, values) in columns(&device.name, &device.timeline) {
            let mut column = group.next_column()?.ok_or_else(|| ParquetError::General(format!("no column {name}")))?;
            match values {
                Column::Name(name) => {
                    let names = vec![ByteArray::from(name); rows];
                    column.typed::<ByteArrayType>().write_batch(&names, None, None)?;
                }
                Column::Counts(counts) => {
                    let counts: Vec<i64> = counts.iter().copied().map(signed).collect();
                    column.typed::<Int64Type>().write_batch(&counts, None, None)?;
                }
                Column::Rates(rates) => {
                    column.typed::<DoubleType>().write_batch(rates, None, None)?;
                }
                Column::OptionalCounts(counts) => {
                    let present = presence(counts, rows);
                    let counts: Vec<i64> = counts.iter().flatten().copied().map(signed).collect();
                    column.typed::<Int64Type>().write_batch(&counts, Some(&present), None)?;
                }
                Column::OptionalRates(rates) => {
                    let present = presence(rates, rows);
                    let rates: Vec<f64> = rates.iter().flatten().copied().collect();
                    column.typed::<DoubleType>().write_batch(&rates, Some(&present), None)?;
                }
            }
            column.close()?;
        }
        group.close()?;
    }
    writer.close()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{DeviceResult, FORMAT, VERSION};
    use parquet::file::reader::{FileReader, SerializedFileReader};

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

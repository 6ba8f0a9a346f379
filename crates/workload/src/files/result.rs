//! What a run is told as: JSON with stable keys, and a table.

use std::fmt;

use serde::Serialize;
use ssdlab_base::{Nanos, format_size};

use super::measure::{Latency, Measures, OpMeasure};
use super::parameters::Parameters;
use super::prepare::Prepared;

/// Version of the keys; they only grow.
pub const FILES_FORMAT: u32 = 1;

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Files are made.
    Preparing,
    /// The threads run.
    Running,
    /// Files are removed.
    Removing,
}

/// What was made before the run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PreparedResult {
    /// Directories.
    pub directories: u64,
    /// Files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How long that took; nothing where they were there already, or were made without time.
    pub seconds: Option<f64>,
}

impl From<Prepared> for PreparedResult {
    fn from(prepared: Prepared) -> PreparedResult {
        let Prepared { directories, files, bytes, seconds } = prepared;
        PreparedResult { directories, files, bytes, seconds: Some(seconds) }
    }
}

/// The operations of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OpResult {
    /// Its name.
    pub name: &'static str,
    /// How many.
    pub operations: u64,
    /// A second.
    pub operations_per_second: f64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Latencies in nanoseconds, of an operation with all its calls.
    pub latency_ns: Latency,
}

/// A run of a personality.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FilesResult {
    /// Version of these keys.
    pub format: u32,
    /// The version of ssdlab.
    pub version: String,
    /// The command line.
    pub command: Vec<String>,
    /// The personality, or the file of jobs.
    pub personality: String,
    /// Where its numbers come from.
    pub source: String,
    /// The numbers it ran with; nothing of jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Parameters>,
    /// The seed.
    pub seed: u64,
    /// The directory it ran in; nothing where it ran on a simulated drive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// The files it began with.
    pub prepared: PreparedResult,
    /// How long it ran.
    pub seconds: f64,
    /// Operations of all kinds.
    pub operations: u64,
    /// A second.
    pub operations_per_second: f64,
    /// Turns of the loop that were begun and ended, or transactions.
    pub turns: u64,
    /// Operations that found nothing to work on.
    pub skipped: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// By kind, those that happened.
    pub by_operation: Vec<OpResult>,
    /// It ran to its end.
    pub complete: bool,
    /// Why it broke off.
    pub error: Option<String>,
    /// What one should know.
    pub notes: Vec<String>,
}

impl FilesResult {
    /// Fills in what was measured.
    pub fn measured(&mut self, measures: &Measures, seconds: f64) {
        self.measured_as(measures.kinds().map(|(kind, measure)| (kind.name(), measure)), seconds);
    }

    /// Fills in what was measured of operations of these names.
    pub fn measured_as<'a>(&mut self, measures: impl Iterator<Item = (&'static str, &'a OpMeasure)>, seconds: f64) {
        let rate = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        self.seconds = seconds;
        self.by_operation = measures
            .map(|(name, measure)| OpResult {
                name,
                operations: measure.count(),
                operations_per_second: rate(measure.count()),
                bytes_read: measure.bytes_read,
                bytes_written: measure.bytes_written,
                latency_ns: measure.latency().unwrap_or_default(),
            })
            .collect();
        self.operations = self.by_operation.iter().map(|op| op.operations).sum();
        self.operations_per_second = rate(self.operations);
        self.bytes_read = self.by_operation.iter().map(|op| op.bytes_read).sum();
        self.bytes_written = self.by_operation.iter().map(|op| op.bytes_written).sum();
    }

    fn rate(&self, bytes: u64) -> String {
        let per_second = if self.seconds > 0.0 { bytes as f64 / self.seconds } else { 0.0 };
        format!("{} ({:.1} MB/s)", format_size(bytes), per_second / 1e6)
    }
}

/// A number with commas.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A latency with three digits.
fn short(ns: u64) -> String {
    let (value, unit) = match ns {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (ns as f64 / 1e3, "us"),
        1_000_000..1_000_000_000 => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e9, "s"),
    };
    let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.digits$} {unit}")
}

impl fmt::Display for FilesResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.directory.as_ref().map_or(String::new(), |directory| format!(" in {directory}"));
        let threads = match self.parameters.as_ref().map(|parameters| parameters.threads) {
            None => String::new(),
            Some(1) => ", 1 thread".to_string(),
            Some(threads) => format!(", {threads} threads"),
        };
        writeln!(f, "{}{place}{threads}, seed {}\n", self.personality, self.seed)?;
        let row = |f: &mut fmt::Formatter<'_>, name: &str, value: String| writeln!(f, "{name:<12} {value}");
        let prepared = &self.prepared;
        let how = match (prepared.seconds, &self.directory) {
            (Some(seconds), _) => format!("made in {seconds:.2} s"),
            (None, Some(_)) => "found prepared".to_string(),
            (None, None) => "made without time".to_string(),
        };
        let files = format!(
            "{} in {} directories, {}, {how}",
            grouped(prepared.files),
            grouped(prepared.directories),
            format_size(prepared.bytes)
        );
        row(f, "files", files)?;
        let turns = if self.parameters.is_some() { format!(", {} turns", grouped(self.turns)) } else { String::new() };
        row(f, "ran", format!("{}{turns}", Nanos((self.seconds * 1e9) as u64)))?;
        row(f, "operations", format!("{} ({:.1}/s)", grouped(self.operations), self.operations_per_second))?;
        row(f, "read", self.rate(self.bytes_read))?;
        row(f, "written", self.rate(self.bytes_written))?;
        if self.skipped > 0 {
            row(f, "skipped", format!("{} operations that found nothing to do", grouped(self.skipped)))?;
        }
        let heads = ["operations", "/s", "MB/s", "mean", "p50", "p99", "p99.9", "max"];
        write!(f, "\n{:<14}", "")?;
        heads.iter().try_for_each(|head| write!(f, "{head:>11}"))?;
        writeln!(f)?;
        for op in &self.by_operation {
            let bytes = (op.bytes_read + op.bytes_written) as f64;
            let moved = if bytes > 0.0 { format!("{:.1}", bytes / self.seconds / 1e6) } else { String::new() };
            let latency = &op.latency_ns;
            let cells = [
                grouped(op.operations),
                format!("{:.1}", op.operations_per_second),
                moved,
                short(latency.mean as u64),
                short(latency.p50),
                short(latency.p99),
                short(latency.p999),
                short(latency.max),
            ];
            write!(f, "{:<14}", op.name)?;
            cells.iter().try_for_each(|cell| write!(f, "{cell:>11}"))?;
            writeln!(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_grouped() {
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(12), "12");
        assert_eq!(
            [999, 1_500, 12_340, 123_400_000, 5_000_000_000].map(short),
            ["999 ns", "1.50 us", "12.3 us", "123 ms", "5.00 s"]
        );
    }
}

//! Drives' own logs: snapshots of SMART data, and what a drive did between two of them.
//!
//! A snapshot is a file with the JSON that `nvme` and `smartctl` print: `nvme smart-log`, `nvme ocp smart-add-log`,
//! `nvme id-ctrl`, `smartctl -x`, one or several of them behind one another. What a drive does not tell is not guessed.

mod ata;
mod compare;
mod document;
mod scsi;

use std::fmt;

pub use ata::attributes;
pub use compare::{Amplification, Elapsed, LifeLeft, Report, Span, compare, whole_life};

/// Bytes as a drive counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Bytes.
    pub bytes: u128,
    /// What the drive counts in: the count is exact to so many bytes.
    pub unit: u64,
}

/// What a drive said of itself at one moment. What it did not say is nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Where it is from.
    pub source: String,
    /// The logs that were found in it.
    pub logs: Vec<&'static str>,
    /// The drive's model.
    pub model: Option<String>,
    /// Its serial number.
    pub serial: Option<String>,
    /// User capacity in bytes.
    pub capacity: Option<u64>,
    /// When it was taken, in seconds since 1970.
    pub taken: Option<u64>,
    /// The drive's own clock in nanoseconds, where it is a simulated one.
    pub clock_ns: Option<u64>,
    /// Hours for which the drive has been on.
    pub power_on_hours: Option<u64>,
    /// Bytes written by the host.
    pub host_written: Option<Counter>,
    /// Bytes written to the chips.
    pub media_written: Option<Counter>,
    /// Pages programmed for the host, and for anything else.
    pub program_pages: Option<(u64, u64)>,
    /// Percent of the rated life that is used; may pass 100.
    pub percent_used: Option<f64>,
    /// Percent of the spare blocks that is left.
    pub spare_percent: Option<u64>,
    /// Erases of the least worn block, on average, and of the most worn, as far as the drive tells.
    pub erases: (Option<u64>, Option<u64>, Option<u64>),
    /// Erases of a block on average to the fraction, which only a simulated drive tells.
    pub erases_mean: Option<f64>,
    /// Bytes that may be written to the chips over the drive's life (OCP's endurance estimate).
    pub endurance: Option<u128>,
    /// What a person should know about how this was understood.
    pub notes: Vec<String>,
}

/// Why a log cannot be read, or two cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogError {
    /// The file, or both.
    pub name: String,
    /// What was found, and what was expected.
    pub what: String,
}

impl std::error::Error for LogError {}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.what)
    }
}

impl Snapshot {
    /// Reads a snapshot; `name` is for errors.
    ///
    /// # Errors
    /// It is not JSON (with line and column), holds no log that is known here, or logs of two drives.
    ///
    /// ```
    /// use ssdlab_measure::drive_log::Snapshot;
    /// let text = r#"{"critical_warning":0,"avail_spare":100,"percent_used":3,"data_units_written":2000}"#;
    /// let snapshot = Snapshot::parse("before.json", text).expect("an nvme smart-log");
    /// assert_eq!(snapshot.host_written.map(|host| host.bytes), Some(2000 * 512_000));
    /// assert_eq!(snapshot.media_written, None);
    /// ```
    pub fn parse(name: &str, text: &str) -> Result<Snapshot, LogError> {
        document::parse(name, text)
    }

    /// Write amplification over the drive's whole life, if it tells what went to the chips.
    pub fn lifetime_amplification(&self) -> Option<f64> {
        if let (Some(host), Some(media)) = (self.host_written, self.media_written) {
            return (host.bytes > 0).then(|| media.bytes as f64 / host.bytes as f64);
        }
        let (host, other) = self.program_pages?;
        (host > 0).then(|| (host as f64 + other as f64) / host as f64)
    }
}

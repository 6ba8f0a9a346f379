//! The numbers of a personality: every one has a key, the same in its file and in an override.

use serde::Serialize;
use ssdlab_base::{Amount, Nanos, closest, parse_amount, parse_duration, parse_size};

use crate::WorkloadError;

/// The most threads a run may have.
const THREADS_MAX: u32 = 4096;
/// The most files of a set.
const FILES_MAX: u64 = 10_000_000;
/// The largest file, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 44;
/// The most one call may read or write, in bytes.
const CALL_BYTES_MAX: u64 = 1 << 28;

/// What a personality runs with. Sizes are bytes; a key that a personality does not have keeps its default and is not
/// read.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Parameters {
    /// Threads, each with the whole loop.
    pub threads: u32,
    /// How long to run, in nanoseconds; nothing where transactions say it.
    pub runtime_ns: Option<u64>,
    /// Files of the set, existing and not.
    pub files: u64,
    /// Mean size of a file.
    pub mean_size: u64,
    /// Shape of the gamma distribution of sizes; 0: every file has the mean size.
    pub size_gamma: f64,
    /// Mean number of entries in a directory.
    pub directory_width: u64,
    /// Share of the files that exist at the start, in percent.
    pub prealloc_percent: f64,
    /// The most bytes one call reads or writes of a whole file; the bytes of a random write.
    pub iosize: u64,
    /// The upper end of random appends.
    pub append_size: u64,
    /// The front of a file that random calls go to; 0 is all of it.
    pub working_set: u64,
    /// Files of the set `log`.
    pub log_files: u64,
    /// Postmark: transactions of all threads.
    pub transactions: u64,
    /// Postmark: the smallest file.
    pub size_low: u64,
    /// Postmark: the end of sizes, which is not reached by a new file.
    pub size_high: u64,
    /// Postmark: directories; with 0 or 1 there is none.
    pub subdirectories: u64,
    /// Postmark: tenths of reads among reads and appends; -1 is neither.
    pub read_bias: i64,
    /// Postmark: tenths of creates among creates and deletes; -1 is neither.
    pub create_bias: i64,
    /// Postmark: bytes of a read.
    pub read_block: u64,
    /// Postmark: bytes of a write.
    pub write_block: u64,
    /// Postmark: through a stream's buffer.
    pub buffered: bool,
    /// Postmark: size of that buffer.
    pub stream_buffer: u64,
    /// Past the page cache (`O_DIRECT`); sizes are then rounded up to `align`.
    pub direct: bool,
    /// Every write is durable when it returns (`O_DSYNC`).
    pub dsync: bool,
    /// What sizes of files and appends are rounded up to; 0 or 1 is nothing.
    pub align: u64,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters {
            threads: 1,
            runtime_ns: None,
            files: 1,
            mean_size: 0,
            size_gamma: 0.0,
            directory_width: 20,
            prealloc_percent: 100.0,
            iosize: 1 << 20,
            append_size: 0,
            working_set: 0,
            log_files: 0,
            transactions: 0,
            size_low: 0,
            size_high: 0,
            subdirectories: 0,
            read_bias: -1,
            create_bias: -1,
            read_block: 512,
            write_block: 512,
            buffered: true,
            stream_buffer: 4096,
            direct: false,
            dsync: false,
            align: 1,
        }
    }
}

/// Keys that every personality has.
pub(super) const COMMON_KEYS: [&str; 5] = ["threads", "runtime", "direct", "dsync", "align"];

/// All keys.
pub(super) const KEYS: [&str; 24] = [
    "threads",
    "runtime",
    "files",
    "mean_size",
    "size_gamma",
    "directory_width",
    "prealloc",
    "iosize",
    "append_size",
    "working_set",
    "log_files",
    "transactions",
    "size_low",
    "size_high",
    "subdirectories",
    "read_bias",
    "create_bias",
    "read_block",
    "write_block",
    "buffered",
    "stream_buffer",
    "direct",
    "dsync",
    "align",
];

/// What is wrong with a value, behind its key: found and expected.
fn flaw(key: &str, value: &str, expected: &str) -> WorkloadError {
    WorkloadError(format!("{key}: found '{value}', expected {expected}"))
}

fn number(key: &str, value: &str, low: u64, high: u64) -> Result<u64, WorkloadError> {
    let found: Option<u64> = value.replace('_', "").parse().ok();
    found
        .filter(|number| (low..=high).contains(number))
        .ok_or_else(|| flaw(key, value, &format!("a whole number from {low} to {high}")))
}

fn size(key: &str, value: &str, low: u64, high: u64) -> Result<u64, WorkloadError> {
    let found = parse_size(value).map_err(|error| WorkloadError(format!("{key}: {error}")))?;
    if !(low..=high).contains(&found) {
        return Err(flaw(key, value, &format!("a size from {low} to {high} bytes")));
    }
    Ok(found)
}

fn flag(key: &str, value: &str) -> Result<bool, WorkloadError> {
    match value {
        "true" | "yes" | "1" => Ok(true),
        "false" | "no" | "0" => Ok(false),
        _ => Err(flaw(key, value, "true or false")),
    }
}

fn bias(key: &str, value: &str) -> Result<i64, WorkloadError> {
    let found: Option<i64> = value.parse().ok();
    found
        .filter(|bias| (-1..=10).contains(bias))
        .ok_or_else(|| flaw(key, value, "a whole number from 0 to 10, or -1 to leave both out"))
}

impl Parameters {
    /// Sets one key from text.
    ///
    /// # Errors
    /// A key that does not exist, and a value that it does not take; the sentence names key, found and expected.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), WorkloadError> {
        match key {
            "threads" => self.threads = number(key, value, 1, THREADS_MAX.into())? as u32,
            "runtime" => {
                let Nanos(ns) = parse_duration(value).map_err(|error| WorkloadError(format!("{key}: {error}")))?;
                if ns == 0 {
                    return Err(flaw(key, value, "a time above 0"));
                }
                self.runtime_ns = Some(ns);
            }
            "files" => self.files = number(key, value, 1, FILES_MAX)?,
            "mean_size" => self.mean_size = size(key, value, 0, FILE_BYTES_MAX)?,
            "size_gamma" => {
                let found: Option<f64> = value.parse().ok();
                self.size_gamma = found
                    .filter(|shape| *shape == 0.0 || (0.05..=1000.0).contains(shape))
                    .ok_or_else(|| flaw(key, value, "a shape from 0.05 to 1000, or 0 for files of one size"))?;
            }
            "directory_width" => self.directory_width = number(key, value, 2, FILES_MAX)?,
            "prealloc" => match parse_amount(value) {
                Ok(Amount::Percent(share)) if share <= 100.0 => self.prealloc_percent = share,
                _ => return Err(flaw(key, value, "a share such as 80%")),
            },
            "iosize" => self.iosize = size(key, value, 1, CALL_BYTES_MAX)?,
            "append_size" => self.append_size = size(key, value, 0, CALL_BYTES_MAX)?,
            "working_set" => self.working_set = size(key, value, 0, FILE_BYTES_MAX)?,
            "log_files" => self.log_files = number(key, value, 1, FILES_MAX)?,
            "transactions" => self.transactions = number(key, value, 1, u64::MAX)?,
            "size_low" => self.size_low = size(key, value, 1, FILE_BYTES_MAX)?,
            "size_high" => self.size_high = size(key, value, 1, FILE_BYTES_MAX)?,
            "subdirectories" => self.subdirectories = number(key, value, 0, FILES_MAX)?,
            "read_bias" => self.read_bias = bias(key, value)?,
            "create_bias" => self.create_bias = bias(key, value)?,
            "read_block" => self.read_block = size(key, value, 1, CALL_BYTES_MAX)?,
            "write_block" => self.write_block = size(key, value, 1, CALL_BYTES_MAX)?,
            "buffered" => self.buffered = flag(key, value)?,
            "stream_buffer" => self.stream_buffer = size(key, value, 1, CALL_BYTES_MAX)?,
            "direct" => {
                self.direct = flag(key, value)?;
                if self.direct && self.align <= 1 {
                    self.align = super::directory::DIRECT_ALIGN;
                }
            }
            "dsync" => self.dsync = flag(key, value)?,
            "align" => self.align = size(key, value, 0, 1 << 20)?,
            _ => return Err(unknown(key, KEYS)),
        }
        Ok(())
    }

    /// What no single key can say: whether they fit together.
    pub(super) fn check(&self) -> Result<(), WorkloadError> {
        let refused = |text: String| Err(WorkloadError(text));
        if self.size_high < self.size_low {
            return refused(format!("size_high is {}, below size_low of {}", self.size_high, self.size_low));
        }
        if self.direct {
            let align = super::directory::DIRECT_ALIGN;
            let stream = |block: u64| if self.buffered { block.max(self.stream_buffer) } else { block };
            let blocks = [
                ("iosize", self.iosize),
                ("working_set", self.working_set),
                ("align", self.align),
                ("read_block", stream(self.read_block)),
                ("write_block", stream(self.write_block)),
            ];
            for (key, value) in blocks {
                if !value.is_multiple_of(align) {
                    return refused(format!("{key}: found {value}, expected a multiple of {align} with direct=true"));
                }
            }
        }
        Ok(())
    }

    /// A size of a file or an append as it is used.
    pub(super) fn aligned(&self, bytes: u64) -> u64 {
        if self.align > 1 { bytes.next_multiple_of(self.align) } else { bytes }
    }
}

/// The error of a key that is not one of `known`.
pub(super) fn unknown<'k>(key: &str, known: impl IntoIterator<Item = &'k str> + Clone) -> WorkloadError {
    let meant = closest(key, known.clone()).map_or(String::new(), |name| format!("; did you mean '{name}'?"));
    let list: Vec<&str> = known.into_iter().collect();
    WorkloadError(format!("found the parameter '{key}', expected one of {}{meant}", list.join(", ")))
}

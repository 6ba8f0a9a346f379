//! What a served drive tells of itself: counters of the drive, and how punctual its answers are.

use hdrhistogram::Histogram;
use ssdlab_base::{Nanos, SECTOR_BYTES};
use ssdlab_device::Counters;
use ssdlab_disk::{Disk, DiskCounters};
use ssdlab_host::{LayerMetrics, Part};

use super::{Condition, SetFigures};

/// Longest time told apart, in nanoseconds; longer ones count as this.
const HIGHEST_NS: u64 = 1 << 44;

/// How times are spread, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// How many.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Half of them are at most this.
    pub p50: u64,
    /// 99 % of them are.
    pub p99: u64,
    /// The longest.
    pub max: u64,
}

/// Times of one kind.
#[derive(Clone, Debug)]
pub(super) struct Times(Histogram<u64>);

impl Times {
    pub(super) fn new() -> Times {
        Times(Histogram::new_with_bounds(1, HIGHEST_NS, 3).expect("constants that the histogram accepts"))
    }

    pub(super) fn record(&mut self, ns: u64) {
        self.0.saturating_record(ns);
    }

    pub(super) fn spread(&self) -> Spread {
        Spread {
            count: self.0.len(),
            mean: self.0.mean(),
            p50: self.0.value_at_quantile(0.5),
            p99: self.0.value_at_quantile(0.99),
            max: self.0.max(),
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.reset();
    }
}

/// A disk of a served stack.
#[derive(Clone, Debug)]
pub struct DiskFigures {
    /// Its name.
    pub name: String,
    /// Its size in bytes.
    pub capacity_bytes: u64,
    /// What it has done since the start of serving.
    pub counters: DiskCounters,
}

impl DiskFigures {
    pub(super) fn of(disk: Part<&Disk>) -> DiskFigures {
        DiskFigures {
            capacity_bytes: disk.device.sectors() * SECTOR_BYTES,
            counters: disk.device.counters(),
            name: disk.name,
        }
    }
}

/// A served drive at one moment. Counters count from the start of serving; latencies are those since the last look that
/// asked for a new interval.
#[derive(Clone, Debug)]
pub struct Figures {
    /// The drive's name.
    pub name: String,
    /// Seconds of serving.
    pub seconds: f64,
    /// The drive's virtual time.
    pub virtual_time: Nanos,
    /// The drive's own counters.
    pub counters: Counters,
    /// Refusals and segments of the drives that have a command set.
    pub sets: Vec<SetFigures>,
    /// What the layers above the drives did, the topmost first.
    pub layers: Vec<LayerMetrics>,
    /// The disks of the stack.
    pub disks: Vec<DiskFigures>,
    /// Commands submitted and not answered.
    pub outstanding: u64,
    /// Free blocks of the whole drive.
    pub free_blocks: u64,
    /// All blocks of the drive.
    pub blocks: u64,
    /// Least, mean and most erases of a block.
    pub erases: (u32, f64, u32),
    /// Spares are gone, and writes are refused.
    pub read_only: bool,
    /// What is not as it should be with the drives, their images and the layers.
    pub conditions: Vec<Condition>,
    /// Why the image takes no more, if so.
    pub broken: Option<String>,
    /// Bytes that the image takes on its host's file system.
    pub image_bytes: u64,
    /// Modelled latencies of reads, writes, trims (with write zeroes), flushes.
    pub latency: [Spread; 4],
    /// How much later than the model says answers were handed to their connection; empty without pacing.
    pub lateness: Spread,
    /// How much later than the model says answers were handed to their connection since the start of serving, no matter
    /// how often the figures were read in between; empty without pacing.
    pub lateness_in_all: Spread,
    /// Bytes of a flash page.
    pub page_bytes: u32,
}

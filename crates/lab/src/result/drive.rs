//! What a drive did: flash, buffer, map, garbage collection and wear.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::by_cause::ByCause;

/// Flash operations by kind, in pages (erases in blocks).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Flash {
    /// Array reads.
    pub reads: FlashOps,
    /// Programs.
    pub programs: FlashOps,
    /// Block erases.
    pub erases: FlashOps,
    /// Copybacks.
    pub copybacks: FlashOps,
    /// Pages that could not be read and were rebuilt from the rest of their stripes.
    #[serde(default)]
    pub rebuilt_pages: u64,
    /// Pages that checked copybacks moved and noticed as uncorrectable.
    #[serde(default)]
    pub uncorrectable_copybacks: u64,
    /// What one queue for all dies held up; absent where each die has queues of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
}

/// What one queue for all dies held up, of the operations that were taken from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// Time in which the first operation of the queue waited, for a busy die as a rule.
    pub head_wait_ns: u64,
    /// How often an idle die waited for an operation that was ready, and not the first of the queue.
    pub held_up: u64,
    /// How long, summed over dies.
    pub held_up_ns: u64,
}

/// What a controller whose firmware takes time did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Controller {
    /// Time that the processor worked.
    pub work_ns: u64,
    /// Time that DRAM copied.
    pub copying_ns: u64,
    /// Writes that reached the drive and began or ended inside a mapping unit.
    pub misaligned_writes: u64,
}

/// Operations of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlashOps {
    /// In all.
    pub total: u64,
    /// By cause.
    pub by_cause: ByCause<u64>,
    /// Of these, by cause, the ones that ran together with others on planes of their die.
    #[serde(default)]
    pub multi_plane: ByCause<u64>,
}

/// Write amplification and its parts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WriteAmplification {
    /// The sum over causes.
    pub total: f64,
    /// By cause.
    pub by_cause: ByCause<f64>,
}

/// Closed forms for uniform random overwrites at the drive's effective over-provisioning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Theory {
    /// Which model was used, with its source.
    pub model: String,
    /// The write amplification it gives: of the writes that the buffer lets through, with the parity of the stripes and
    /// without programs of map pages.
    pub write_amplification: f64,
    /// The effective over-provisioning as collection found it.
    #[serde(default)]
    pub effective_over_provisioning: f64,
}

/// Erase counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Erases {
    /// All erases.
    pub total: u64,
    /// Mean of a block.
    pub mean: f64,
    /// Least of a block.
    pub min: u32,
    /// Most of a block.
    pub max: u32,
    /// Standard deviation over blocks.
    pub stddev: f64,
}

/// What the write buffer did, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buffer {
    /// Page reads and writes that met their page in the buffer.
    pub hits: u64,
    /// Page writes that did.
    pub write_hits: u64,
    /// Page writes that did not.
    pub write_misses: u64,
    /// Page reads served wholly from the buffer.
    pub read_hits: u64,
    /// Page reads that needed flash.
    pub read_misses: u64,
    /// Pages that left for flash.
    pub evictions: u64,
    /// Of them by destaging: not for a flush or FUA write, nor one by one for a write that found no room.
    #[serde(default)]
    pub destaged_pages: u64,
    /// Of them full.
    pub full_pages: u64,
    /// Of them partial.
    pub partial_pages: u64,
    /// Of these, small ones that shared a page with others of their region.
    #[serde(default)]
    pub compacted_pages: u64,
    /// Pages on flash that were written anew to pad a block that left.
    #[serde(default)]
    pub padded_pages: u64,
    /// Times that a partial page stayed which would have left, because its chip was busy.
    #[serde(default)]
    pub delayed_pages: u64,
    /// Partial pages that overwrites made full in the buffer.
    #[serde(default)]
    pub converted_pages: u64,
    /// Time with a write waiting for room in the buffer.
    #[serde(default)]
    pub full_ns: u64,
}

/// What the cache of a map did, of a drive that keeps its map on flash and a part of it in RAM.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MapCache {
    /// Map pages asked for that were cached.
    pub hits: u64,
    /// Map pages asked for that were not.
    pub misses: u64,
    /// Hits by hits and misses; `null` where no map page was asked for.
    pub hit_ratio: Option<f64>,
    /// Map pages read from flash.
    pub loads: u64,
    /// Map pages programmed since something changed in them.
    pub flushes: u64,
    /// Hits, misses, loads and flushes by requester: `host`, `buffer`, `gc`, `log`.
    pub by_asker: BTreeMap<String, MapRequests>,
    /// Dirty map pages that stayed and were programmed with one that left.
    pub flushed_with_others: u64,
    /// Dirty map pages with trims that were programmed and stayed.
    pub flushed_for_trims: u64,
    /// Dirty map pages that were programmed and stayed when active blocks were full.
    pub flushed_for_blocks: u64,
    /// Times that active blocks became data blocks.
    pub block_changes: u64,
    /// Map pages read so that their dirty entries could be programmed, by a cache of entries.
    pub update_reads: u64,
    /// Map pages that left the cache.
    pub evictions: u64,
    /// Map pages that collection moved out of map blocks.
    pub moved_pages: u64,
    /// Entries put into the log of what relocation changed.
    pub log_entries: u64,
    /// Entries that left it for their map pages.
    pub log_entries_applied: u64,
    /// Flushes of it.
    pub log_flushes: u64,
    /// Host commands that waited for map pages.
    pub waited_commands: u64,
    /// How long, summed over them.
    pub wait_ns: u64,
    /// Their mean wait; `null` where none waited.
    pub wait_mean_ns: Option<f64>,
}

/// What a requester asked the cache of a map for, and what that took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MapRequests {
    /// Map pages that were cached.
    pub hits: u64,
    /// Map pages that were not.
    pub misses: u64,
    /// Hits by hits and misses; `null` where no map page was asked for.
    pub hit_ratio: Option<f64>,
    /// Map pages read from flash.
    pub loads: u64,
    /// Dirty map pages programmed to make room.
    pub flushes: u64,
}

/// Garbage collection and wear levelling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gc {
    /// Blocks collected because space was needed at once.
    pub foreground_victims: u64,
    /// Blocks collected while the drive was idle.
    pub background_victims: u64,
    /// Blocks moved for wear levelling.
    pub wear_levelling_victims: u64,
    /// Time that host writes waited for a free block, summed over commands.
    pub stall_ns: u64,
    /// Of it, the time from when the erase that then made space was sent to its die. The rest is relocation's, and pacing's.
    #[serde(default)]
    pub stall_erase_ns: u64,
    /// Commands that waited so.
    #[serde(default)]
    pub stalled_commands: u64,
    /// Blocks that went bad.
    pub grown_bad_blocks: u64,
    /// Bytes that relocation programmed only to fill pages up: the last page of a victim whose units share pages.
    #[serde(default)]
    pub padding_bytes: u64,
}

impl Gc {
    /// Blocks that were collected for their space.
    pub fn victims(&self) -> u64 {
        self.foreground_victims + self.background_victims
    }
}

/// Busy time as a share of virtual time, 0 to 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Utilization {
    /// Of each channel.
    pub channels: Vec<f64>,
    /// Of each die.
    pub dies: Vec<f64>,
}

/// Capacities, in bytes; zero in older results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capacity {
    /// What the workload can address: the drive's user capacity, or that of the layers above it.
    pub user_bytes: u64,
    /// User capacity of all drives.
    pub drive_bytes: u64,
    /// Their flash.
    pub flash_bytes: u64,
}

/// Over-provisioning as a share of the user capacity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OverProvisioning {
    /// (physical - user) / user.
    pub nominal: f64,
    /// (physical - user) / user, with physical less what GC's reserve, the open blocks and bad blocks take.
    pub effective: f64,
}

/// A histogram of erase counts: `blocks[i]` blocks were erased from `erases[i]` to below `erases[i] + bin` times.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WearHistogram {
    /// Width of a bin, in erases.
    pub bin: u32,
    /// Where each bin begins.
    pub erases: Vec<u32>,
    /// Blocks in each bin.
    pub blocks: Vec<u64>,
}

impl WearHistogram {
    /// Counts blocks in at most 64 bins of equal width.
    pub fn of(counts: &[u32]) -> WearHistogram {
        let Some((&min, &max)) = counts.iter().min().zip(counts.iter().max()) else {
            return WearHistogram::default();
        };
        let bin = (max - min) / 64 + 1;
        let mut blocks = vec![0; ((max - min) / bin + 1) as usize];
        for &count in counts {
            blocks[((count - min) / bin) as usize] += 1;
        }
        let erases = (0..blocks.len() as u32).map(|index| min + index * bin).collect();
        WearHistogram { bin, erases, blocks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wear_histogram_counts_every_block_once_in_at_most_64_bins() {
        let counts: Vec<u32> = (0..1000).map(|block| 100 + block * 7 % 513).collect();
        let histogram = WearHistogram::of(&counts);
        assert!(histogram.blocks.len() <= 64);
        assert_eq!(histogram.blocks.iter().sum::<u64>(), 1000);
        assert_eq!(histogram.erases[0], *counts.iter().min().expect("blocks"));
        for (start, blocks) in histogram.erases.iter().zip(&histogram.blocks) {
            let inside = counts.iter().filter(|&&count| count >= *start && count - start < histogram.bin);
            assert_eq!(inside.count() as u64, *blocks);
        }
        assert_eq!(WearHistogram::of(&[]), WearHistogram::default());
        assert_eq!(WearHistogram::of(&[3, 3]).blocks, [2]);
        assert_eq!(WearHistogram::of(&[0, u32::MAX]).blocks.iter().sum::<u64>(), 2);
    }
}

//! What a drive tells about itself. Results are read from here and nowhere else.

use ssdlab_base::command_set::REFUSALS_MAX;
use ssdlab_base::{Nanos, Op, Refusal};
use ssdlab_flash::{OpCounts, QueueWaits};

use crate::map_stats::MapCacheStats;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Done.
    Success,
    /// A page could not be read.
    UncorrectableRead,
    /// The drive is out of spare blocks and refuses writes.
    ReadOnly,
    /// A served drive's image found no space on the host's file system.
    StorageFull,
    /// The range ends behind the drive's last sector.
    OutOfRange,
    /// The device lost power before the command ended: it may have taken effect, in part or not at all.
    Aborted,
    /// Nothing is there; of a command of the drive's own set.
    Absent,
    /// The drive's design refused a command of its own set, and nothing changed.
    Refused(Refusal),
    /// The drive does not know the command.
    Unsupported,
    /// The command's parameters are not what its set says.
    Invalid,
}

impl Status {
    /// Whether something went wrong: that nothing is there, or that the design refused, is an answer.
    pub const fn is_error(self) -> bool {
        !matches!(self, Status::Success | Status::Absent | Status::Refused(_))
    }
}

/// A command that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The request's tag.
    pub tag: u32,
    /// The request's operation.
    pub op: Op,
    /// There is an answer beside it ([`ssdlab_base::Answer`]).
    pub has_answer: bool,
    /// How it ended.
    pub status: Status,
    /// When the request arrived.
    pub submitted: Nanos,
    /// When it ended.
    pub at: Nanos,
    /// Dispatch order: commands took effect in this order, counted from 0.
    pub order: u64,
    /// Bytes of the request (0 for a flush).
    pub bytes: u64,
}

const _: () = assert!(size_of::<Completion>() == 40);

/// Counters since the drive was made; cheap to copy, so a timeline samples them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counters {
    /// Flash operations by kind and cause.
    pub flash: OpCounts,
    /// Of these, the ones that ran together with others on planes of their die.
    pub multi_plane: OpCounts,
    /// Commands completed: read, write, trim, flush (write zeroes count as trims).
    pub commands: [u64; 4],
    /// Bytes of those commands: read, write, trim, flush (always 0).
    pub bytes: [u64; 4],
    /// Bytes programmed for the host only to fill pages up.
    pub padding_bytes: u64,
    /// Bytes programmed by relocation only to fill pages up: the last page of a victim whose units share pages.
    pub relocation_padding_bytes: u64,
    /// The write buffer's doings.
    pub buffer: BufferCounters,
    /// Sectors read that had never been written (or were trimmed).
    pub unmapped_sectors_read: u64,
    /// Sectors trimmed that held data.
    pub trimmed_mapped_sectors: u64,
    /// Sectors trimmed while still in the buffer: they never went to flash.
    pub trimmed_buffered_sectors: u64,
    /// Victims collected in the foreground, in the background, and for wear levelling.
    pub victims: [u64; 3],
    /// Blocks gone bad since the factory.
    pub grown_bad_blocks: u64,
    /// Pages that could not be read and were rebuilt from the rest of their stripes.
    pub rebuilt_pages: u64,
    /// Pages that checked copybacks moved and noticed as uncorrectable.
    pub uncorrectable_copybacks: u64,
    /// Time that host writes waited for GC to free a block, summed over commands.
    pub gc_stall: Nanos,
    /// Of it, the time from when the erase that made space next was sent to its die: the rest is
    /// relocation, what a victim waited for, and pacing.
    pub gc_stall_erase: Nanos,
    /// How many commands waited so.
    pub gc_stalled_commands: u64,
    /// Commands that ended with an error.
    pub failed_commands: u64,
    /// Commands that were refused, by the number of the reason in the drive's command set.
    pub refused: [u64; REFUSALS_MAX],
    /// The cache of the map, of a drive that has one.
    pub map_cache: Option<MapCacheStats>,
    /// What one queue for all dies held up, of a drive that has it.
    pub queue: Option<QueueWaits>,
    /// The processor and the DRAM, of a drive where these take time.
    pub controller: Option<ControllerCounters>,
}

/// What a controller whose firmware takes time did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControllerCounters {
    /// Time that the processor worked.
    pub work: Nanos,
    /// Time that DRAM copied.
    pub copying: Nanos,
    /// Writes that began or ended inside a mapping unit.
    pub misaligned_writes: u64,
}

impl Counters {
    /// Adds those of another drive.
    pub fn add(&mut self, other: &Counters) {
        // Taken apart whole, so that no counter is forgotten.
        let Counters {
            flash,
            multi_plane,
            commands,
            bytes,
            padding_bytes,
            relocation_padding_bytes,
            buffer,
            unmapped_sectors_read,
            trimmed_mapped_sectors,
            trimmed_buffered_sectors,
            victims,
            grown_bad_blocks,
            rebuilt_pages,
            uncorrectable_copybacks,
            gc_stall,
            gc_stall_erase,
            gc_stalled_commands,
            failed_commands,
            refused,
            map_cache,
            queue,
            controller,
        } = other;
        let each = |to: &mut [u64], from: &[u64]| to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        self.flash.0.iter_mut().zip(&flash.0).for_each(|(to, from)| each(to, from));
        self.multi_plane.0.iter_mut().zip(&multi_plane.0).for_each(|(to, from)| each(to, from));
        each(&mut self.commands, commands);
        each(&mut self.bytes, bytes);
        each(&mut self.victims, victims);
        each(&mut self.refused, refused);
        self.padding_bytes += padding_bytes;
        self.relocation_padding_bytes += relocation_padding_bytes;
        self.buffer.add(buffer);
        self.unmapped_sectors_read += unmapped_sectors_read;
        self.trimmed_mapped_sectors += trimmed_mapped_sectors;
        self.trimmed_buffered_sectors += trimmed_buffered_sectors;
        self.grown_bad_blocks += grown_bad_blocks;
        self.rebuilt_pages += rebuilt_pages;
        self.uncorrectable_copybacks += uncorrectable_copybacks;
        self.gc_stall += *gc_stall;
        self.gc_stall_erase += *gc_stall_erase;
        self.gc_stalled_commands += gc_stalled_commands;
        self.failed_commands += failed_commands;
        if let Some(map_cache) = map_cache {
            self.map_cache.get_or_insert_default().add(map_cache);
        }
        if let Some(QueueWaits { head_wait, held_up, held_up_time }) = queue {
            let to = self.queue.get_or_insert_default();
            to.head_wait += *head_wait;
            to.held_up += held_up;
            to.held_up_time += *held_up_time;
        }
        if let Some(ControllerCounters { work, copying, misaligned_writes }) = controller {
            let to = self.controller.get_or_insert_default();
            to.work += *work;
            to.copying += *copying;
            to.misaligned_writes += misaligned_writes;
        }
    }
}

/// What the write buffer did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferCounters {
    /// Page writes that met their page in the buffer.
    pub write_hits: u64,
    /// Page writes that did not.
    pub write_misses: u64,
    /// Page reads served wholly from the buffer.
    pub read_hits: u64,
    /// Page reads that needed flash.
    pub read_misses: u64,
    /// Pages that left for flash.
    pub evictions: u64,
    /// Pages that left by destaging: not for a flush or FUA write, nor one by one for a write that found no room.
    pub destaged_pages: u64,
    /// Pages that left full.
    pub full_pages: u64,
    /// Pages that left partial.
    pub partial_pages: u64,
    /// Small partial pages that left and shared a page with others of their region.
    pub compacted_pages: u64,
    /// Pages on flash that were written anew to pad a block that left.
    pub padded_pages: u64,
    /// Times that a partial page stayed which would have left, because its chip was busy.
    pub delayed_pages: u64,
    /// Partial pages that overwrites made full in the buffer.
    pub converted_pages: u64,
    /// Time that writes waited for room in the buffer: time with at least one that did.
    pub full: Nanos,
    /// Pages in the buffer now that are not on their way to flash.
    pub pages_now: u64,
    /// Partial pages in the buffer now that are not on their way to flash.
    pub partial_pages_now: u64,
}

impl BufferCounters {
    /// Adds those of another drive.
    pub fn add(&mut self, other: &BufferCounters) {
        let BufferCounters {
            write_hits,
            write_misses,
            read_hits,
            read_misses,
            evictions,
            destaged_pages,
            full_pages,
            partial_pages,
            compacted_pages,
            padded_pages,
            delayed_pages,
            converted_pages,
            full,
            pages_now,
            partial_pages_now,
        } = other;
        self.write_hits += write_hits;
        self.write_misses += write_misses;
        self.read_hits += read_hits;
        self.read_misses += read_misses;
        self.evictions += evictions;
        self.destaged_pages += destaged_pages;
        self.full_pages += full_pages;
        self.partial_pages += partial_pages;
        self.compacted_pages += compacted_pages;
        self.padded_pages += padded_pages;
        self.delayed_pages += delayed_pages;
        self.converted_pages += converted_pages;
        self.full += *full;
        self.pages_now += pages_now;
        self.partial_pages_now += partial_pages_now;
    }
}

/// How much of the flash is spare.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OverProvisioning {
    /// (physical - user) / user.
    pub nominal: f64,
    /// (physical - user) / user, without what GC's reserve, the open blocks and bad blocks take of the physical space.
    pub effective: f64,
}

/// A law that a run must keep.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// A stable key, such as `valid_pages_equal_mapped_pages`.
    pub name: &'static str,
    /// Whether it holds.
    pub passed: bool,
    /// The numbers, as a sentence.
    pub detail: String,
}

/// Erase counts over all blocks that are not bad.
#[derive(Clone, Debug, PartialEq)]
pub struct Wear {
    /// All erases.
    pub total: u64,
    /// The mean of a block.
    pub mean: f64,
    /// The least of a block.
    pub min: u32,
    /// The most of a block.
    pub max: u32,
    /// The standard deviation over blocks.
    pub stddev: f64,
}

impl Wear {
    /// Of the erase counts of some blocks; of none all is 0.
    pub fn of(counts: &[u32]) -> Wear {
        let total = counts.iter().map(|erases| u64::from(*erases)).sum();
        let blocks = counts.len().max(1) as f64;
        let mean = total as f64 / blocks;
        let variance = counts.iter().map(|erases| (f64::from(*erases) - mean).powi(2)).sum::<f64>() / blocks;
        Wear {
            total,
            mean,
            min: counts.iter().copied().min().unwrap_or(0),
            max: counts.iter().copied().max().unwrap_or(0),
            stddev: variance.sqrt(),
        }
    }
}

/// Busy time of every channel and die since the drive was made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Utilization {
    /// For each channel.
    pub channels: Vec<Nanos>,
    /// For each die.
    pub dies: Vec<Nanos>,
}

//! What the controller is, as plain numbers: the resolved form of a description.

use ssdlab_base::Nanos;
use ssdlab_flash::{FlashConfig, Geometry};

use crate::description::Settings;
use crate::placement;

/// How the host speaks to the drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceConfig {
    /// NVMe-like or SATA.
    pub kind: InterfaceKind,
    /// Submission queues (1 for SATA).
    pub queues: u32,
    /// Commands in the drive at one time, for each queue; more wait on the host's side.
    pub queue_depth: u32,
    /// Link speed in bytes a second for each direction; 0 is infinitely fast.
    pub bandwidth: u64,
    /// Fixed cost of a command before it is dispatched.
    pub command_overhead: Nanos,
    /// What a read costs beyond that.
    pub read_overhead: Nanos,
    /// What a write costs beyond that.
    pub write_overhead: Nanos,
    /// What the processor needs for a command, one command after the other.
    pub processing: Nanos,
    /// What a drive with append-only segments answers to reads of what is not written.
    pub read_unwritten: ReadUnwritten,
    /// Codes of each of the two hardware queues, block I/O included; 0 is no limit.
    pub command_codes: u32,
    /// How answers of the drive's own command set come back.
    pub answers: Answers,
}

/// What a read of sectors that are not written comes to, on a drive with append-only segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadUnwritten {
    /// It is refused.
    Error,
    /// It reads zeroes.
    Zeroes,
}

/// How an answer of a drive's own command set comes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answers {
    /// As words with the completion, and the drive may send events.
    #[default]
    Words,
    /// As the data of a read (Getting Real, section 3.2.2): no words go with a completion, and there are no events.
    Data,
}

/// The controller's processor and its RAM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerConfig {
    /// Cycles of the processor a second; 0 is a processor that takes no time.
    pub clock: u64,
    /// Cycles for a command that arrives.
    pub command_cycles: u32,
    /// Cycles for a map entry that is looked at.
    pub map_entry_cycles: u32,
    /// Cycles for a flash operation that is issued.
    pub operation_cycles: u32,
    /// Cycles for a command that ends.
    pub completion_cycles: u32,
    /// Bytes a second that are copied within DRAM; 0 takes no time.
    pub copy_bandwidth: u64,
    /// Bytes of DRAM; 0 is no limit.
    pub dram: u64,
    /// Bytes of SRAM; 0 is no limit.
    pub sram: u64,
    /// What a read takes from a page.
    pub reads: Reads,
    /// Percent of a page's units that are valid from which on `Reads::Gather` reads it once.
    pub gather_percent: u32,
}

impl Default for ControllerConfig {
    fn default() -> ControllerConfig {
        ControllerConfig {
            clock: 0,
            command_cycles: 0,
            map_entry_cycles: 0,
            operation_cycles: 0,
            completion_cycles: 0,
            copy_bandwidth: 0,
            dram: 0,
            sram: 0,
            reads: Reads::default(),
            gather_percent: 50,
        }
    }
}

/// What a host read takes from a page of flash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reads {
    /// The sectors that it wants, straight to the host's buffer.
    #[default]
    Sectors,
    /// The whole page, for which it waits.
    Page,
    /// The units that it wants, through a read buffer in DRAM: with one read of a page from a share of valid units on, else with
    /// one read for each unit (Getting Real, section 3.1.2).
    Gather,
}

/// Commands that the queue of a SATA drive holds at most (native command queueing).
pub const SATA_QUEUE_DEPTH: u32 = 32;

/// The two interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterfaceKind {
    /// Several queues, round-robin arbitration, full-duplex link.
    Nvme,
    /// One queue of at most [`SATA_QUEUE_DEPTH`]; non-queued commands (flush, trim) drain it; half-duplex link.
    Sata,
}

/// The write buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferConfig {
    /// Registered policy name (`none`, `fifo`, `lru`...).
    pub policy: String,
    /// Data space in bytes, allocated by the sector.
    pub bytes: u64,
    /// RAM access for a command that the buffer serves.
    pub latency: Nanos,
    /// When data leaves.
    pub destage: DestageConfig,
    /// What single policies read.
    pub own: Settings,
}

/// When data leaves the write buffer for flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DestageConfig {
    /// What sets it off.
    pub when: Destage,
    /// Watermark: percent of the space that dirty data takes when destaging begins; 1 to 100.
    pub high_percent: u32,
    /// Watermark: percent of the space at which it ends; at most `high_percent`.
    pub low_percent: u32,
}

impl Default for DestageConfig {
    fn default() -> DestageConfig {
        DestageConfig { when: Destage::Watermark, high_percent: 80, low_percent: 70 }
    }
}

impl DestageConfig {
    /// Nothing leaves before a write finds no room for it.
    pub const ON_DEMAND: DestageConfig = DestageConfig { when: Destage::OnDemand, high_percent: 80, low_percent: 70 };
}

/// What sets destaging off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destage {
    /// A write that finds no room.
    OnDemand,
    /// The high watermark, from which on the chips are kept at work until the low one is reached.
    Watermark,
}

/// The flash translation layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FtlConfig {
    /// Registered design name (`page`...).
    pub design: String,
    /// Mapping unit in bytes: a power of two times 512, at most a page.
    pub mapping_unit: u32,
    /// Where pages go.
    pub allocation: Allocation,
    /// Which blocks are opened, written, collected and retired as one.
    pub superblock: Superblock,
    /// Which pages of a stripe are parity.
    pub parity: Parity,
    /// Relocations have a write frontier of their own.
    pub separate_gc_frontier: bool,
    /// Host write streams with a frontier each (at least 1).
    pub streams: u32,
    /// What says which logical units are in a page.
    pub owners: Owners,
    /// What single designs read.
    pub own: Settings,
}

/// What on flash says which logical units are in a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Owners {
    /// The page's OOB area.
    #[default]
    Oob,
    /// A list in the last page of its block (Getting Real, 3.3.2).
    Summary,
}

impl Owners {
    /// The word that a description has for it.
    pub const fn word(self) -> &'static str {
        match self {
            Owners::Oob => "oob",
            Owners::Summary => "summary",
        }
    }
}

/// Which blocks are opened, written, collected and retired as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Superblock {
    /// Every block by itself: each plane collects for itself.
    None,
    /// A block of each plane of a die.
    Die,
    /// A block of each plane of the drive.
    Drive,
}

impl Superblock {
    /// Planes that have their free list, frontiers and collection in common.
    pub const fn planes(self, geometry: &Geometry) -> u32 {
        match self {
            Superblock::None => 1,
            Superblock::Die => geometry.planes_per_die,
            Superblock::Drive => geometry.planes(),
        }
    }

    /// The word that a description has for it.
    pub const fn word(self) -> &'static str {
        match self {
            Superblock::None => "none",
            Superblock::Die => "die",
            Superblock::Drive => "drive",
        }
    }

    /// What the members of one collection are called: blocks, or superblocks.
    pub(crate) const fn noun(self) -> &'static str {
        match self {
            Superblock::None => "blocks",
            Superblock::Die | Superblock::Drive => "superblocks",
        }
    }

    /// Where so many of them are, in words.
    pub(crate) const fn group(self) -> &'static str {
        match self {
            Superblock::None => "a plane",
            Superblock::Die => "a die",
            Superblock::Drive => "in all",
        }
    }
}

/// Which pages of a stripe, the pages of a superblock's members at one offset, are parity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Parity {
    /// None.
    #[default]
    None,
    /// One, of all others: any one page of the stripe may be lost.
    Page,
    /// One for each plane of a die, of the pages on that plane of the other dies: a whole die may be lost.
    Die,
}

impl Parity {
    /// The word that a description has for it.
    pub const fn word(self) -> &'static str {
        match self {
            Parity::None => "none",
            Parity::Page => "page",
            Parity::Die => "die",
        }
    }
}

impl FtlConfig {
    /// Pages of a stripe that are parity.
    pub const fn parity_pages(&self, geometry: &Geometry) -> u32 {
        match self.parity {
            Parity::None => 0,
            Parity::Page => 1,
            Parity::Die => geometry.planes_per_die,
        }
    }
}

/// How host pages spread over the planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// The LPN decides, striped over the levels in this order, fastest first (e.g. C W D P).
    Static([Level; 4]),
    /// The next plane in this order takes the next page, whatever its LPN.
    RoundRobin([Level; 4]),
    /// The least loaded die takes the next page, round robin between equals.
    Dynamic,
}

/// A level of parallelism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// C
    Channel,
    /// W: chip (way) of a channel
    Way,
    /// D: die of a chip
    Die,
    /// P: plane of a die
    Plane,
}

/// Garbage collection and wear levelling.
#[derive(Clone, Debug, PartialEq)]
pub struct GcConfig {
    /// Registered victim policy (`greedy`...).
    pub victim: String,
    /// What single policies read.
    pub own: Settings,
    /// Foreground GC runs in a plane while fewer blocks than this are free (the open blocks do not count). At least 2.
    pub free_blocks: u32,
    /// Background GC, when the drive has been idle for `idle_after`, runs until this many are free; 0 switches it off.
    pub background_free_blocks: u32,
    /// Whether collection keeps pace with what the host writes.
    pub pacing: Pacing,
    /// How long without host commands counts as idle.
    pub idle_after: Nanos,
    /// Move pages inside their plane by copyback where whole pages are valid.
    pub copyback: bool,
    /// Dynamic wear levelling: open the least worn free block (else the one that was freed first).
    pub dynamic_wear_levelling: bool,
    /// Static wear levelling: move cold data when a plane's erase counts differ by more than this; 0 switches it off.
    pub static_wear_threshold: u32,
}

/// When collection works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pacing {
    /// From the moment a plane is short of free blocks until it is not.
    #[default]
    Off,
    /// All the time, in proportion to what the host writes.
    Proportional,
}

impl Pacing {
    /// Whether there is any.
    pub fn is_on(self) -> bool {
        self != Pacing::Off
    }
}

/// Where host writes go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacementConfig {
    /// Registered policy name (`stream-hint`...).
    pub policy: String,
    /// What single policies read.
    pub own: Settings,
}

impl Default for PlacementConfig {
    fn default() -> PlacementConfig {
        PlacementConfig { policy: placement::DEFAULT.to_string(), own: Settings::default() }
    }
}

/// A whole drive.
#[derive(Clone, Debug, PartialEq)]
pub struct DriveConfig {
    /// The drive's name.
    pub name: String,
    /// The chips.
    pub flash: FlashConfig,
    /// User capacity in bytes: a multiple of the mapping unit.
    pub user_bytes: u64,
    /// The interface.
    pub interface: InterfaceConfig,
    /// The controller's processor and RAM.
    pub controller: ControllerConfig,
    /// The buffer.
    pub buffer: BufferConfig,
    /// The FTL.
    pub ftl: FtlConfig,
    /// Where host writes go.
    pub placement: PlacementConfig,
    /// GC and wear levelling.
    pub gc: GcConfig,
    /// Operations take time (`timing = "none"` counts only).
    pub timed: bool,
    /// Host layers above it make a block device of it: a workload that is drawn for it addresses no zones.
    pub below_layers: bool,
}

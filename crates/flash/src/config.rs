//! What the chips are: geometry, timing, operations and faults, as plain numbers.
//!
//! Everything here is resolved: sizes in bytes, spans in nanoseconds. Reading a
//! description a person wrote is the device crate's business.

use crate::BlockId;
use ssdlab_base::Nanos;

/// The hierarchy channel / chip (way) / die / plane / block / page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Channels of the drive.
    pub channels: u32,
    /// Chips (ways) on each channel.
    pub chips_per_channel: u32,
    /// Dies in each chip; a die executes one array operation at a time.
    pub dies_per_chip: u32,
    /// Planes in each die.
    pub planes_per_die: u32,
    /// Blocks in each plane.
    pub blocks_per_plane: u32,
    /// Pages in each block, programmed in order.
    pub pages_per_block: u32,
    /// Data bytes of a page, a multiple of 512.
    pub page_bytes: u32,
    /// Out-of-band (spare area) bytes of a page.
    pub oob_bytes: u32,
}

/// A latency: fixed when both ends are equal, else uniform over the closed range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// The shortest it takes.
    pub min: Nanos,
    /// The longest it takes.
    pub max: Nanos,
}

/// How long everything takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Array read (tR) by page position in the wordline: page `p` uses entry `p % len`. Never empty.
    pub read: Vec<Latency>,
    /// Array program (tPROG) by page position in the wordline. Never empty.
    pub program: Vec<Latency>,
    /// Block erase (tBERS).
    pub erase: Latency,
    /// Command and address cycles of one operation on the channel.
    pub command: Nanos,
    /// One page's data (without OOB) on the channel; part of a page takes its share, rounded up.
    pub transfer: Nanos,
    /// From asking for a suspend to the die being ready for a read.
    pub suspend: Nanos,
    /// From resuming a suspended operation to it making progress again.
    pub resume: Nanos,
}

/// Which operations on several planes of a die may run as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MultiPlane {
    /// One plane at a time.
    Off,
    /// Planes run together when the page offset in the block is the same (ONFI's rule).
    SameOffset,
    /// Planes run together at any offsets.
    Relaxed,
}

/// How a die picks the next operation of its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedulerKind {
    /// In order of arrival.
    Fifo,
    /// Reads before programs and erases.
    ReadsFirst,
    /// The host's operations before garbage collection's. When the oldest of the latter has waited `starvation`, it has a
    /// turn, and the host the next.
    HostFirst {
        /// The bound.
        starvation: Nanos,
    },
    /// In order of arrival over the whole drive: an operation starts when its commands and data can be sent, and those of
    /// all that came before it have been (Application-Managed Flash, Figure 8).
    SingleFifo,
    /// In order of arrival over the whole drive: an operation is issued when all that came before it were accepted by their
    /// idle dies, and this one's die is idle. Transfers on several channels overlap (the waiting room of the OpenSSD Jasmine
    /// board's flash controller; Getting Real, section 2.1).
    InOrder,
}

/// Faults: by rate, drawn from the seed, and by script.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    /// Probability that a program fails.
    pub program_failure: f64,
    /// Probability that an erase fails.
    pub erase_failure: f64,
    /// Probability that a read is uncorrectable.
    pub uncorrectable_read: f64,
    /// Probability that a block is bad from the factory.
    pub factory_bad: f64,
    /// Erases after which a block's next erase fails; `None` is never.
    pub endurance: Option<u32>,
    /// Faults at exact places.
    pub script: Vec<ScriptedFault>,
}

/// One fault of a script: the `nth` operation of `kind` on `block` (counted from 1) fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptedFault {
    /// Which operation fails: a read, a program or an erase.
    pub kind: FaultKind,
    /// The block, numbered over the whole drive.
    pub block: BlockId,
    /// The how-manieth operation of this kind on this block.
    pub nth: u32,
}

/// Operations that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// An uncorrectable read.
    Read,
    /// A program failure.
    Program,
    /// An erase failure.
    Erase,
    /// The block is bad from the factory (`nth` is ignored).
    Factory,
    /// The die of the block is lost: its `nth` operation of any kind and all later ones fail.
    Die,
}

/// What the chips keep of what is written to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Nothing: counting and timing only.
    Nothing,
    /// A 64-bit stamp a sector (verify mode).
    Stamps,
    /// All bytes.
    Bytes,
}

impl Contents {
    /// Bytes kept for a sector: 0, 8 or 512.
    pub const fn sector_data_bytes(self) -> usize {
        match self {
            Contents::Nothing => 0,
            Contents::Stamps => 8,
            Contents::Bytes => 512,
        }
    }
}

/// Everything the flash layer needs to know.
#[derive(Clone, Debug, PartialEq)]
pub struct FlashConfig {
    /// The hierarchy.
    pub geometry: Geometry,
    /// The latencies.
    pub timing: Timing,
    /// Multi-plane operations.
    pub multi_plane: MultiPlane,
    /// Copyback inside a plane is available.
    pub copyback: bool,
    /// The page of a copyback crosses the channel once, to the controller's ECC.
    pub checks_copyback: bool,
    /// The next page's data may come in while a program runs.
    pub cache_program: bool,
    /// A program gives way to a waiting host read.
    pub program_suspend: bool,
    /// An erase gives way to a waiting host read.
    pub erase_suspend: bool,
    /// Host reads that a program or an erase gives way to, over all its suspensions; then it runs to its end, so that reads
    /// cannot starve it.
    pub suspend_limit: u32,
    /// The die's queue.
    pub scheduler: SchedulerKind,
    /// Who has the pages' OOB areas.
    pub oob: OobUse,
    /// The faults.
    pub faults: Faults,
}

/// Who has the out-of-band areas of pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OobUse {
    /// The firmware may keep metadata there, beside the error-correcting code.
    #[default]
    Free,
    /// The error-correcting code takes all of it, and the flash controller hands nothing of it out (Getting Real, 3.3.2).
    Ecc,
}

impl Geometry {
    /// Dies of the drive.
    pub const fn dies(&self) -> u32 {
        self.channels * self.chips_per_channel * self.dies_per_chip
    }

    /// Planes of the drive.
    pub const fn planes(&self) -> u32 {
        self.dies() * self.planes_per_die
    }

    /// Blocks of the drive.
    pub const fn blocks(&self) -> u32 {
        self.planes() * self.blocks_per_plane
    }

    /// Pages of the drive.
    pub const fn pages(&self) -> u64 {
        self.blocks() as u64 * self.pages_per_block as u64
    }

    /// Data bytes of the drive.
    pub const fn bytes(&self) -> u64 {
        self.pages() * self.page_bytes as u64
    }
}

//! Why a file system cannot be made, or mounted.

use ssdlab_device::Status;

use crate::format::Bad;

/// Why a file system cannot be made on a device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MakeError {
    /// The device does not take appends to segments, or a layer hides them.
    #[error("found {found}, expected a drive of the command set segments (design aftl) without layers that hide it")]
    NoSegments {
        /// What there is.
        found: String,
    },
    /// The segments are not whole blocks, or a write unit does not fit.
    #[error(
        "found segments of {sectors} sectors with write units of {unit}, expected whole blocks of 4 KB in both, and at least 8 in a segment"
    )]
    Shape {
        /// Sectors of a segment.
        sectors: u64,
        /// Sectors of a write unit.
        unit: u64,
    },
    /// There are too few segments.
    #[error("found {found} segments of {blocks} blocks, expected at least {least}")]
    TooSmall {
        /// How many there are.
        found: u64,
        /// Blocks of each.
        blocks: u64,
        /// How many are needed.
        least: u64,
    },
    /// There are too few block groups: for the journal, or for files.
    #[error("found {found} block groups of {blocks} blocks, expected at least {least} for the journal and files")]
    TooFewGroups {
        /// How many there are.
        found: u64,
        /// Blocks of each.
        blocks: u64,
        /// How many are needed.
        least: u64,
    },
    /// Addresses of blocks have 32 bits.
    #[error("found {found} blocks of 4 KB, expected at most {most}")]
    TooLarge {
        /// How many there are.
        found: u64,
        /// How many there can be.
        most: u64,
    },
    /// The device is only appended to.
    #[error(
        "found {found}, expected a device that takes writes anywhere: a layer such as append makes one of segments or zones"
    )]
    NoOverwrites {
        /// What there is.
        found: String,
    },
    /// The number of logs is none that there is.
    #[error("found {0} logs, expected 2, 4 or 6")]
    Logs(u32),
    /// A command failed.
    #[error("the device ended a command with {0:?}")]
    Device(Status),
    /// A device does not complete a command.
    #[error("the device never answers")]
    Silent,
    /// What was made cannot be mounted.
    #[error(transparent)]
    Mount(Box<MountError>),
}

/// Why a file system cannot be mounted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MountError {
    /// The device does not take appends to segments, or a layer hides them.
    #[error("found {found}, expected a drive of the command set segments (design aftl) without layers that hide it")]
    NoSegments {
        /// What there is.
        found: String,
    },
    /// The superblock is none, or of another format.
    #[error("the superblock in block 0: {0}; expected a file system (make one first)")]
    Superblock(Bad),
    /// The device is another than that on which the file system was made.
    #[error("the superblock says {expected} as its {what}, the drive has {found}")]
    Device {
        /// What differs.
        what: &'static str,
        /// What the drive has.
        found: u64,
        /// What the superblock says.
        expected: u64,
    },
    /// There is no whole check-point.
    #[error("no whole check-point is in segments 1 and 2{}", beside_unreadable(*.unreadable))]
    NoCheckpoint {
        /// Blocks of both segments that cannot be read: media lost them, or a cut tore them.
        unreadable: u64,
    },
    /// A check-point in the middle of a segment is not whole, although later ones are.
    #[error("block {block} of a check-point: {bad}, and a later check-point follows")]
    Checkpoint {
        /// The block.
        block: u32,
        /// What is wrong.
        bad: Bad,
    },
    /// Metadata is not what the check-point says.
    #[error("block {block}, {what}: {bad}")]
    Metadata {
        /// The block.
        block: u32,
        /// What it should be.
        what: &'static str,
        /// What is wrong.
        bad: Bad,
    },
    /// A block cannot be read.
    #[error("block {block} cannot be read: {status:?}")]
    Unreadable {
        /// The block.
        block: u32,
        /// How the read ended.
        status: Status,
    },
    /// A command failed.
    #[error("the device ended a command with {0:?}")]
    DeviceFailed(Status),
    /// A device does not complete a command.
    #[error("the device never answers")]
    Silent,
}

impl MountError {
    /// Metadata in a block, from what is wrong with it.
    pub(crate) fn of_block(block: u32, what: &'static str) -> impl FnOnce(Bad) -> MountError {
        move |bad| MountError::Metadata { block, what, bad }
    }
}

/// What a sentence adds on blocks of check-points that cannot be read.
fn beside_unreadable(blocks: u64) -> String {
    match blocks {
        0 => String::new(),
        1 => ", and one of their blocks cannot be read".to_string(),
        blocks => format!(", and {blocks} of their blocks cannot be read"),
    }
}

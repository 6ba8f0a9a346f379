//! Rules of command sets for commands on append-only segments: which they take when they arrive, and what is to be done for each
//! when its turn comes.
//!
//! A design that appends says whose rules its host follows. The drive asks them when a command arrives, keeps the order that
//! [`Order`] finds, and carries the [`Effect`] out; neither knows the other's names.

mod order;
mod segments;
mod zones;

use std::ops::Range;

use ssdlab_base::command_set::{EventKind, ZoneAction};
use ssdlab_base::{Refusal, Request};

use crate::Status;

pub(crate) use order::Order;
pub(crate) use segments::Segments;
pub(crate) use zones::Zones;

/// What the drive does for an action on segments when its turn comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Writes its data.
    Write,
    /// Unmaps its sectors.
    Trim,
    /// Fills these sectors, whole units, with zeroes.
    Zeroes(Vec<Range<u64>>),
    /// Nothing: the state was changed when it arrived.
    Nothing,
}

/// A command that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Admitted {
    /// The sectors of its range, as the drive's data has them: one segment follows another without a gap.
    pub(crate) sectors: Range<u64>,
    /// Where the host's address space has the first.
    pub(crate) address: u64,
    /// What is to be done for an action; a block command does what its operation says.
    pub(crate) effect: Option<Effect>,
    /// Words of the answer.
    pub(crate) answer: Vec<u64>,
}

/// Where an address of the host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Located {
    /// The sector of data there; `None` in a gap of the address space.
    pub(crate) data: Option<u64>,
    /// The first address behind it, up to the end that was asked for, from which on data or the gap does not go on.
    pub(crate) end: u64,
}

/// What a set makes of a drive's segments. It looks at numbers alone: no chip is asked.
pub(crate) trait Rules: Send {
    /// Takes a block command or an action, within the host's address space, or says why not; nothing changes then. `is_held`
    /// tells of sectors of data whether the drive has all of them.
    ///
    /// # Errors
    /// The status that the command ends with.
    fn admit(
        &mut self,
        request: &Request,
        action: Option<ZoneAction>,
        is_held: &dyn Fn(u64, u64) -> bool,
    ) -> Result<Admitted, Status>;

    /// A segment is as the drive has it, in sectors: after a power cut, after a failed write, of a restored drive.
    fn set(&mut self, segment: u64, written: u64, takes_no_more: bool);

    /// The drive takes no more writes; the event that tells the host of it, if the set has one.
    fn make_read_only(&mut self) -> Option<(EventKind, Vec<u64>)>;

    /// Why a write that follows one that failed is refused, and a read of sectors that are not there.
    fn refusals_after_failure(&self) -> (Refusal, Refusal);

    /// Segments.
    fn count(&self) -> u64;

    /// Sectors of data in a segment.
    fn segment_sectors(&self) -> u64;

    /// Sectors that the host addresses.
    fn host_sectors(&self) -> u64;

    /// Where an address is, and how far it goes on so, at most to `end`.
    fn locate(&self, address: u64, end: u64) -> Located;

    /// What a report says first, in words.
    fn report_words(&self) -> Vec<u64>;

    /// What a report says of one segment, in bytes.
    fn report_of(&self, segment: u64) -> Vec<u8>;

    /// Itself, where the host sees segments.
    fn as_segments(&self) -> Option<&Segments> {
        None
    }

    /// Itself, where the host sees zones.
    fn as_zones(&self) -> Option<&Zones> {
        None
    }
}

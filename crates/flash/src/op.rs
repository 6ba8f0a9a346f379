//! The words for what chips do and why.

use ssdlab_base::Nanos;

use crate::{DieId, Ppn};

/// What a flash operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum OpKind {
    /// Array read and data out.
    Read,
    /// Data in and array program.
    Program,
    /// Block erase.
    Erase,
    /// Read and program inside a plane, without the channel.
    Copyback,
}

/// Why a flash operation happens. Write amplification is the sum over causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Cause {
    /// The host asked for it.
    Host,
    /// A partial page is completed from its old version.
    ReadModifyWrite,
    /// Versions or buffered parts of a page are brought together.
    Merge,
    /// Garbage collection.
    Gc,
    /// Mapping pages.
    Mapping,
    /// Wear levelling.
    WearLevelling,
    /// The controller's own records (trim state...), and what fills a zone that the host finishes.
    Metadata,
    /// Recovery after power loss.
    Recovery,
    /// Data moved off a block that goes bad, or programmed again after a failure.
    Retirement,
    /// The parity pages of stripes, and pages that fill a stripe whose parity a power cut left behind.
    Parity,
    /// The other pages of a stripe are read in place of one that cannot be.
    Rebuild,
}

impl OpKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [OpKind; 4] = [OpKind::Read, OpKind::Program, OpKind::Erase, OpKind::Copyback];

    /// The plural used as a key in results.
    pub const fn key(self) -> &'static str {
        match self {
            OpKind::Read => "reads",
            OpKind::Program => "programs",
            OpKind::Erase => "erases",
            OpKind::Copyback => "copybacks",
        }
    }
}

impl Cause {
    /// How many causes there are.
    pub const COUNT: usize = 11;
    /// All causes, in the order of their numbers.
    pub const ALL: [Cause; Cause::COUNT] = [
        Cause::Host,
        Cause::ReadModifyWrite,
        Cause::Merge,
        Cause::Gc,
        Cause::Mapping,
        Cause::WearLevelling,
        Cause::Metadata,
        Cause::Recovery,
        Cause::Retirement,
        Cause::Parity,
        Cause::Rebuild,
    ];

    /// The name used as a key in results.
    pub const fn key(self) -> &'static str {
        match self {
            Cause::Host => "host",
            Cause::ReadModifyWrite => "rmw",
            Cause::Merge => "merge",
            Cause::Gc => "gc",
            Cause::Mapping => "mapping",
            Cause::WearLevelling => "wear_levelling",
            Cause::Metadata => "metadata",
            Cause::Recovery => "recovery",
            Cause::Retirement => "retirement",
            Cause::Parity => "parity",
            Cause::Rebuild => "rebuild",
        }
    }
}

/// Flash operations by kind and cause, counted at completion in pages (erases in blocks).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpCounts(pub [[u64; Cause::COUNT]; 4]);

impl OpCounts {
    /// The count of one kind and cause.
    pub const fn get(&self, kind: OpKind, cause: Cause) -> u64 {
        self.0[kind as usize][cause as usize]
    }

    /// The count of one kind over all causes.
    pub fn total(&self, kind: OpKind) -> u64 {
        self.0[kind as usize].iter().sum()
    }

    /// What was counted since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &OpCounts) -> OpCounts {
        let mut counts = *self;
        for (row, old) in counts.0.iter_mut().zip(&earlier.0) {
            for (count, old) in row.iter_mut().zip(old) {
                assert!(*count >= *old, "{count} operations counted, {old} earlier: counts only grow");
                *count -= old;
            }
        }
        counts
    }
}

/// A resource that an operation occupies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resource {
    /// A channel, by number.
    Channel(u32),
    /// A die, numbered over the whole drive: `(channel * ways + way) * dies_per_chip + die`.
    Die(DieId),
}

/// One operation's stay on one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Where.
    pub resource: Resource,
    /// What.
    pub kind: OpKind,
    /// Why.
    pub cause: Cause,
    /// The (first) physical page, or the block's first page for an erase.
    pub ppn: Ppn,
    /// Planes taking part.
    pub planes: u32,
    /// From.
    pub start: Nanos,
    /// Until.
    pub end: Nanos,
}

/// A watcher of the chips. Nothing is computed for an observer that is not there.
pub trait Observer: Send {
    /// The Ready/Busy line of `die` changes at `at`; edges of one die come in order of time.
    fn ready_busy(&mut self, die: DieId, at: Nanos, busy: bool) {
        let _ = (die, at, busy);
    }

    /// An operation occupied a channel or a die.
    fn span(&mut self, span: Span) {
        let _ = span;
    }
}

//! What a drive and its host agree on beyond block I/O, as plain data.
//!
//! A command set depends on neither side: the design that carries its commands out, the host layer that sends them, and
//! what lies between them (links, schedulers, traces, crash tests) read the same tables and do not know one another.

use crate::{Nanos, Op};

/// A command's number within its set. 0 is block I/O: the command is then [`Request::op`](crate::Request::op) itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Opcode(pub u8);

impl Opcode {
    /// Block I/O.
    pub const BLOCK: Opcode = Opcode(0);

    /// Whether the command is block I/O.
    #[inline]
    pub const fn is_block(self) -> bool {
        self.0 == 0
    }
}

/// What the address of a command means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressSpace {
    /// Sectors of the drive's capacity, as for block I/O.
    Logical,
    /// Places on flash, in sectors; the design says how many there are.
    Physical,
    /// Sectors that a design keeps for its commands behind the drive's capacity.
    Reserved,
    /// Nothing: the sender's address is ignored.
    Nothing,
    /// Nothing, and what the command changes may be anywhere: it takes its turn among all others, and all others behind it.
    Everything,
}

/// Which waiting commands a scheduler may join to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merging {
    /// None.
    Never,
    /// Commands of one opcode whose addresses follow one another; their words follow one another, too.
    Neighbours,
}

/// Words of 64 bits that go with a command or come back with its completion, in every contents mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Words {
    /// So many.
    Exactly(u16),
    /// 0 to so many.
    UpTo(u16),
}

impl AddressSpace {
    /// Whether the sender's address means anything.
    pub const fn is_addressed(self) -> bool {
        !matches!(self, AddressSpace::Nothing | AddressSpace::Everything)
    }
}

impl Words {
    /// No words.
    pub const NONE: Words = Words::Exactly(0);

    /// Whether `count` words may go with the command.
    pub const fn allow(self, count: usize) -> bool {
        match self {
            Words::Exactly(exactly) => count == exactly as usize,
            Words::UpTo(most) => count <= most as usize,
        }
    }

    /// Most words.
    pub const fn most(self) -> u16 {
        match self {
            Words::Exactly(most) | Words::UpTo(most) => most,
        }
    }
}

/// The data that crosses the link with a command, besides its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataPhase {
    /// None.
    Nothing,
    /// The sectors of its range, in the direction of its carrier.
    Range,
    /// Bytes that the design answers with, to the host.
    Answer,
}

/// What the drive does with a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The design carries it out.
    Design,
    /// It acknowledges events up to the number in its one word.
    Acknowledge,
    /// It tells of the segments or zones from the number in its first word on, as many as the second says.
    Report,
    /// It is for zones; the drive decides when it arrives.
    Zone(ZoneAction),
}

/// What a command does to zones (Zoned Namespace Command Set 1.1, sections 3.4.1 and 3.4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneAction {
    /// Writes at the write pointer of the zone that begins at its address.
    Append,
    /// Opens the zones of its range.
    Open,
    /// Closes them.
    Close,
    /// Makes them full.
    Finish,
    /// Makes them empty.
    Reset,
}

/// A command of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandSpec {
    /// Its number, from 1 on.
    pub opcode: Opcode,
    /// Its name in results, traces, crash tests and errors, such as `write-dirty`.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub summary: &'static str,
    /// What carries it on the link: a read, a write, a trim, which has a range and no data, or a flush, which stands for the
    /// slow path that empties a SATA drive's queue first.
    pub carrier: Op,
    /// What its address means.
    pub address: AddressSpace,
    /// What it may be joined with.
    pub merging: Merging,
    /// Its parameters.
    pub words_in: Words,
    /// The words of its answer.
    pub words_out: Words,
    /// The data that crosses the link.
    pub data: DataPhase,
    /// What the drive does with it.
    pub role: Role,
}

/// A kind of event that a drive may send to its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventSpec {
    /// Its name.
    pub name: &'static str,
    /// What it says, in a sentence.
    pub summary: &'static str,
    /// How many of its words mean anything.
    pub words: u8,
    /// Whether the drive keeps it until the host acknowledges it.
    pub acknowledged: bool,
}

/// Why a command was refused: its place in [`CommandSet::refusals`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal(pub u8);

/// A kind of event: its place in [`CommandSet::events`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventKind(pub u8);

/// Most words of an event.
pub const EVENT_WORDS: usize = 3;

/// Most reasons for refusals of a set.
pub const REFUSALS_MAX: usize = 16;

/// A named set of commands and events.
#[derive(Clone, Copy, Debug)]
pub struct CommandSet {
    /// Its name.
    pub name: &'static str,
    /// What it is for, in a sentence.
    pub summary: &'static str,
    /// Its commands, by opcode from 1 on.
    pub commands: &'static [CommandSpec],
    /// Its events.
    pub events: &'static [EventSpec],
    /// Names of the reasons for which its commands are refused.
    pub refusals: &'static [&'static str],
}

impl CommandSet {
    /// The command of an opcode.
    pub fn command(&self, opcode: Opcode) -> Option<&'static CommandSpec> {
        self.commands.get(usize::from(opcode.0).checked_sub(1)?)
    }

    /// The command of a name.
    pub fn find(&self, name: &str) -> Option<&'static CommandSpec> {
        self.commands.iter().find(|command| command.name == name)
    }

    /// The event of a kind.
    pub fn event(&self, kind: EventKind) -> Option<&'static EventSpec> {
        self.events.get(usize::from(kind.0))
    }

    /// The name of a reason for a refusal.
    pub fn refusal(&self, refusal: Refusal) -> Option<&'static str> {
        self.refusals.get(usize::from(refusal.0)).copied()
    }
}

/// What a drive tells its host unasked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Counted from 1 on, without a gap.
    pub number: u64,
    /// When the drive sent it first.
    pub at: Nanos,
    /// What it is.
    pub kind: EventKind,
    /// Its words; those behind [`EventSpec::words`] are 0.
    pub words: [u64; EVENT_WORDS],
}

/// What comes back with a completion beside a read's data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The request's tag.
    pub tag: u32,
    /// Its words.
    pub words: Vec<u64>,
    /// Its bytes, where its data phase is [`DataPhase::Answer`].
    pub bytes: Vec<u8>,
}

//! The set `zoned`: zones as the Zoned Namespace Command Set of NVMe 1.1 has them, over append-only segments.
//!
//! READ and WRITE stay block I/O. A zone is written at its write pointer, and can be written again after a reset. Its size is a
//! power of two, its capacity what can be written of it; addresses between the two hold nothing.

use super::segments::REPORTED_BYTES;
use crate::Op;
use crate::command_set::{
    AddressSpace, CommandSet, CommandSpec, DataPhase, EventKind, EventSpec, Merging, Opcode, Refusal, Role, Words,
    ZoneAction,
};

/// Reports zones: the number of the first, and how many.
pub const REPORT: Opcode = Opcode(1);
/// Writes at the write pointer of a zone, and answers where that was.
pub const APPEND: Opcode = Opcode(2);
/// Opens zones explicitly.
pub const OPEN: Opcode = Opcode(3);
/// Closes open zones.
pub const CLOSE: Opcode = Opcode(4);
/// Makes zones full.
pub const FINISH: Opcode = Opcode(5);
/// Makes zones empty.
pub const RESET: Opcode = Opcode(6);

/// A command goes beyond the capacity of its zone.
pub const ZONE_BOUNDARY: Refusal = Refusal(0);
/// A write to a full zone.
pub const ZONE_IS_FULL: Refusal = Refusal(1);
/// A write that does not begin at the write pointer.
pub const INVALID_WRITE: Refusal = Refusal(2);
/// The drive has as many zones with resources as it can (empty and full zones have none).
pub const TOO_MANY_ACTIVE: Refusal = Refusal(3);
/// The drive has as many open zones as it can, and closes none of them by itself.
pub const TOO_MANY_OPEN: Refusal = Refusal(4);
/// The state of a zone does not allow the command.
pub const INVALID_TRANSITION: Refusal = Refusal(5);
/// A write of parts of write units.
pub const PART_OF_WRITE_UNIT: Refusal = Refusal(6);
/// A command that is for zones does not begin at the start of one, or does not end at the end of one.
pub const NOT_A_ZONE: Refusal = Refusal(7);
/// A read of sectors that are not written.
pub const UNWRITTEN: Refusal = Refusal(8);

/// Zones became read-only: the first of them, and how many.
pub const ZONES_READ_ONLY: EventKind = EventKind(0);

/// The state of a zone. The numbers are those of the Zone Descriptor (Zoned Namespace Command Set 1.1, figure 37).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ZoneState {
    /// Nothing is written.
    #[default]
    Empty = 0x1,
    /// A write opened it; the drive may close it to open another.
    ImplicitlyOpen = 0x2,
    /// The host opened it.
    ExplicitlyOpen = 0x3,
    /// It can be written, and is not open.
    Closed = 0x4,
    /// It can be read only: the drive takes no more writes.
    ReadOnly = 0xd,
    /// It takes no more before its reset.
    Full = 0xe,
}

impl ZoneState {
    /// All states.
    pub const ALL: [ZoneState; 6] = [
        ZoneState::Empty,
        ZoneState::ImplicitlyOpen,
        ZoneState::ExplicitlyOpen,
        ZoneState::Closed,
        ZoneState::ReadOnly,
        ZoneState::Full,
    ];

    /// Its name in reports for people.
    pub const fn name(self) -> &'static str {
        match self {
            ZoneState::Empty => "empty",
            ZoneState::ImplicitlyOpen => "implicitly open",
            ZoneState::ExplicitlyOpen => "explicitly open",
            ZoneState::Closed => "closed",
            ZoneState::ReadOnly => "read-only",
            ZoneState::Full => "full",
        }
    }

    /// Whether it counts against the limit of open zones.
    pub const fn is_open(self) -> bool {
        matches!(self, ZoneState::ImplicitlyOpen | ZoneState::ExplicitlyOpen)
    }

    /// Whether it counts against the limit of active zones.
    pub const fn is_active(self) -> bool {
        self.is_open() || matches!(self, ZoneState::Closed)
    }
}

/// A zone, as a drive tells of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Zone {
    /// What it can take.
    pub state: ZoneState,
    /// Sectors from its start to its write pointer. Of a full zone: up to the last that is written.
    pub written: u64,
}

/// What all zones of a drive have in common; lengths in sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneShape {
    /// From the start of one zone to that of the next.
    pub size: u64,
    /// What can be written of a zone.
    pub capacity: u64,
    /// Zones of the drive.
    pub count: u64,
    /// A write is whole units of this.
    pub write_unit: u64,
    /// Most open zones; 0 is no limit.
    pub max_open: u32,
    /// Most active zones (open or closed); 0 is no limit.
    pub max_active: u32,
}

impl ZoneShape {
    /// Sectors from the start of the first zone to the end of the last.
    pub const fn sectors(&self) -> u64 {
        self.size * self.count
    }

    /// Sectors that can be written: the capacities of all zones, without the holes behind them.
    pub const fn writable_sectors(&self) -> u64 {
        self.capacity * self.count
    }
}

impl Zone {
    /// Eight bytes, little-endian: the written sectors, and the state in the highest byte.
    pub fn encode(self) -> [u8; REPORTED_BYTES] {
        (self.written | (self.state as u64) << 56).to_le_bytes()
    }

    /// The reverse; `None` for a state that there is not.
    pub fn decode(bytes: [u8; REPORTED_BYTES]) -> Option<Zone> {
        let word = u64::from_le_bytes(bytes);
        let state = ZoneState::ALL.into_iter().find(|state| *state as u64 == word >> 56)?;
        Some(Zone { state, written: word & ((1 << 56) - 1) })
    }
}

const fn of_zones(opcode: Opcode, name: &'static str, action: ZoneAction, summary: &'static str) -> CommandSpec {
    CommandSpec {
        opcode,
        name,
        summary,
        carrier: Op::Trim,
        address: AddressSpace::Logical,
        merging: Merging::Never,
        words_in: Words::NONE,
        words_out: Words::NONE,
        data: DataPhase::Nothing,
        role: Role::Zone(action),
    }
}

/// The set.
pub static ZONED: CommandSet = CommandSet {
    name: "zoned",
    summary: "NVMe zones: a host writes a zone at its write pointer, and resets it before it writes it again",
    commands: &[
        CommandSpec {
            opcode: REPORT,
            name: "report",
            summary: "answers with the size of a zone in sectors, the number of zones, the sectors of a write unit, the capacity \
                      of a zone, the most open and active zones, and 8 bytes for each requested zone: its written sectors, \
                      and its state in the highest byte",
            carrier: Op::Read,
            address: AddressSpace::Nothing,
            merging: Merging::Never,
            words_in: Words::Exactly(2),
            words_out: Words::Exactly(6),
            data: DataPhase::Answer,
            role: Role::Report,
        },
        CommandSpec {
            opcode: APPEND,
            name: "append",
            summary: "writes at the write pointer of the zone that starts at the address, and answers with the first sector written",
            carrier: Op::Write,
            address: AddressSpace::Logical,
            merging: Merging::Never,
            words_in: Words::NONE,
            words_out: Words::Exactly(1),
            data: DataPhase::Range,
            role: Role::Zone(ZoneAction::Append),
        },
        of_zones(
            OPEN,
            "open",
            ZoneAction::Open,
            "opens the zones of its range; the drive does not close them by itself",
        ),
        of_zones(CLOSE, "close", ZoneAction::Close, "closes the open zones of its range"),
        of_zones(FINISH, "finish", ZoneAction::Finish, "fills the rest of the zones of its range with zeroes"),
        of_zones(RESET, "reset", ZoneAction::Reset, "makes the zones of its range empty"),
    ],
    events: &[EventSpec {
        name: "zones-read-only",
        summary: "zones became read-only: the first of them, and how many",
        words: 2,
        acknowledged: false,
    }],
    refusals: &[
        "zone-boundary",
        "zone-is-full",
        "invalid-write",
        "too-many-active",
        "too-many-open",
        "invalid-transition",
        "part-of-write-unit",
        "not-a-zone",
        "unwritten",
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reported_zone_is_read_back() {
        for state in ZoneState::ALL {
            for written in [0, 8, 32_768, (1 << 40) + 7] {
                let zone = Zone { state, written };
                assert_eq!(Zone::decode(zone.encode()), Some(zone));
            }
        }
        assert_eq!(Zone::decode([0; 8]), None, "there is no state 0");
    }
}

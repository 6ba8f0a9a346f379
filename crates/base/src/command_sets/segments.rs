//! The set `segments`: block I/O on append-only segments (Application-Managed Flash, section 2).
//!
//! READ, WRITE and TRIM stay block I/O. The set restricts what they may do, and names the reasons for refusals. A host writes the
//! sectors of a segment in order, and each once until it trims the segment. The one command reports segments to the host.

use crate::Op;
use crate::command_set::{AddressSpace, CommandSet, CommandSpec, DataPhase, Merging, Opcode, Refusal, Role, Words};

/// Reports segments: the number of the first, and how many.
pub const REPORT: Opcode = Opcode(1);

/// A write of sectors that are written.
pub const OVERWRITE: Refusal = Refusal(0);
/// A write that begins beyond the next sector of its segment.
pub const GAP: Refusal = Refusal(1);
/// A write that goes on into the next segment.
pub const CROSSES_SEGMENTS: Refusal = Refusal(2);
/// A write that does not begin and end with a write unit.
pub const PART_OF_WRITE_UNIT: Refusal = Refusal(3);
/// A TRIM that does not begin and end with a segment.
pub const PART_OF_SEGMENT: Refusal = Refusal(4);
/// A read of sectors that are not written.
pub const UNWRITTEN: Refusal = Refusal(5);
/// A write to a segment that takes none before its TRIM: sectors before its last are missing after a power cut.
pub const CLOSED: Refusal = Refusal(6);

/// Most segments, or zones, that a report has.
pub const MOST_REPORTED: u64 = 4096;

/// Bytes that a report has for each segment or zone.
pub const REPORTED_BYTES: usize = 8;

/// What a segment can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SegmentState {
    /// No sector is written.
    Free = 0,
    /// Some are, and the next can be.
    Open = 1,
    /// All are.
    Full = 2,
    /// A power cut left sectors out before the last that is written: it takes no more before its TRIM.
    Closed = 3,
}

impl SegmentState {
    /// All of them, by number.
    pub const ALL: [SegmentState; 4] =
        [SegmentState::Free, SegmentState::Open, SegmentState::Full, SegmentState::Closed];

    /// Its name in reports for people.
    pub const fn name(self) -> &'static str {
        match self {
            SegmentState::Free => "free",
            SegmentState::Open => "open",
            SegmentState::Full => "full",
            SegmentState::Closed => "closed",
        }
    }
}

/// A segment, as a drive tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// What it can take.
    pub state: SegmentState,
    /// Sectors up to the last that is written.
    pub written: u64,
}

/// What all segments of a drive have in common, in sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentShape {
    /// Sectors of a segment.
    pub sectors: u64,
    /// Segments of the drive.
    pub count: u64,
    /// Sectors of a write unit: a flash page.
    pub write_unit: u64,
}

impl Segment {
    /// Eight bytes, little-endian: the written sectors, and the state in the highest byte.
    pub fn encode(self) -> [u8; REPORTED_BYTES] {
        (self.written | (self.state as u64) << 56).to_le_bytes()
    }

    /// The reverse; `None` for a state that there is not.
    pub fn decode(bytes: [u8; REPORTED_BYTES]) -> Option<Segment> {
        let word = u64::from_le_bytes(bytes);
        let state = *SegmentState::ALL.get(usize::try_from(word >> 56).ok()?)?;
        Some(Segment { state, written: word & ((1 << 56) - 1) })
    }
}

/// The set.
pub static SEGMENTS: CommandSet = CommandSet {
    name: "segments",
    summary: "append-only segments: a host writes the sectors of a segment in order, and each once until it trims the segment",
    commands: &[CommandSpec {
        opcode: REPORT,
        name: "report",
        summary: "answers with the sectors of a segment, the number of segments, the sectors of a write unit, and 8 bytes for \
                  each requested segment: its written sectors, and its state in the highest byte",
        carrier: Op::Read,
        address: AddressSpace::Nothing,
        merging: Merging::Never,
        words_in: Words::Exactly(2),
        words_out: Words::Exactly(3),
        data: DataPhase::Answer,
        role: Role::Report,
    }],
    events: &[],
    refusals: &["overwrite", "gap", "crosses-segments", "part-of-write-unit", "part-of-segment", "unwritten", "closed"],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reported_segment_is_read_back() {
        for state in SegmentState::ALL {
            for written in [0, 1, 32_768, (1 << 40) + 7] {
                let segment = Segment { state, written };
                assert_eq!(Segment::decode(segment.encode()), Some(segment));
            }
        }
        assert_eq!(Segment::decode([0, 0, 0, 0, 0, 0, 0, 4]), None, "there are four states");
    }
}

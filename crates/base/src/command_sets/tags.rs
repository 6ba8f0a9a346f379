//! The set `tags`: a word for each mapping unit, kept in the drive's RAM beside the data. It exists to be tested and copied
//! from: it has parameters, words and bytes in answers, refusals, both kinds of addresses that are not physical, all
//! carriers, and events of both kinds.

use crate::Op;
use crate::command_set::{
    AddressSpace, CommandSet, CommandSpec, DataPhase, EventKind, EventSpec, Merging, Opcode, Refusal, Role, Words,
};

/// Most words of a command of this set.
const WORDS: u16 = 256;

/// Writes a range and tags its units, one word a unit.
pub const WRITE_TAGGED: Opcode = Opcode(1);
/// Reads a range and the tags of its units.
pub const READ_TAGGED: Opcode = Opcode(2);
/// Lists the units of a tag.
pub const FIND_TAG: Opcode = Opcode(3);
/// Takes every tag away.
pub const CLEAR_TAGS: Opcode = Opcode(4);
/// Acknowledges events.
pub const ACKNOWLEDGE: Opcode = Opcode(5);
/// Puts the records of all trims on flash.
pub const SAVE_TRIMS: Opcode = Opcode(6);

/// A tag is zero, which stands for none.
pub const ZERO_TAG: Refusal = Refusal(0);
/// There are not as many tags as units, or the range has a unit in part.
pub const NOT_A_TAG_PER_UNIT: Refusal = Refusal(1);

/// A tag took another one's place: unit, old tag, new tag.
pub const TAG_REPLACED: EventKind = EventKind(0);
/// All tags were cleared: how many there were.
pub const TAGS_CLEARED: EventKind = EventKind(1);

/// The set.
pub static TAGS: CommandSet = CommandSet {
    name: "tags",
    summary: "a 64-bit tag for each mapping unit, in RAM; the example set",
    commands: &[
        CommandSpec {
            opcode: WRITE_TAGGED,
            name: "write-tagged",
            summary: "writes whole units and gives each a tag",
            carrier: Op::Write,
            address: AddressSpace::Logical,
            merging: Merging::Neighbours,
            words_in: Words::UpTo(WORDS),
            words_out: Words::NONE,
            data: DataPhase::Range,
            role: Role::Design,
        },
        CommandSpec {
            opcode: READ_TAGGED,
            name: "read-tagged",
            summary: "reads sectors, and answers with the tags of their units; absent where none has one",
            carrier: Op::Read,
            address: AddressSpace::Logical,
            merging: Merging::Never,
            words_in: Words::NONE,
            words_out: Words::UpTo(WORDS),
            data: DataPhase::Range,
            role: Role::Design,
        },
        CommandSpec {
            opcode: FIND_TAG,
            name: "find-tag",
            summary: "answers with the numbers of the units that have a tag, 8 bytes each",
            carrier: Op::Read,
            address: AddressSpace::Nothing,
            merging: Merging::Never,
            words_in: Words::Exactly(1),
            words_out: Words::Exactly(1),
            data: DataPhase::Answer,
            role: Role::Design,
        },
        CommandSpec {
            opcode: CLEAR_TAGS,
            name: "clear-tags",
            summary: "takes every tag away, and answers with their number",
            carrier: Op::Flush,
            address: AddressSpace::Nothing,
            merging: Merging::Never,
            words_in: Words::NONE,
            words_out: Words::Exactly(1),
            data: DataPhase::Nothing,
            role: Role::Design,
        },
        CommandSpec {
            opcode: ACKNOWLEDGE,
            name: "acknowledge",
            summary: "the host has seen every event up to a number",
            carrier: Op::Read,
            address: AddressSpace::Nothing,
            merging: Merging::Never,
            words_in: Words::Exactly(1),
            words_out: Words::NONE,
            data: DataPhase::Nothing,
            role: Role::Acknowledge,
        },
        CommandSpec {
            opcode: SAVE_TRIMS,
            name: "save-trims",
            summary: "makes every trim so far survive a power cut, and answers with the pages that this programmed",
            carrier: Op::Flush,
            address: AddressSpace::Nothing,
            merging: Merging::Never,
            words_in: Words::NONE,
            words_out: Words::Exactly(1),
            data: DataPhase::Nothing,
            role: Role::Design,
        },
    ],
    events: &[
        EventSpec {
            name: "tag-replaced",
            summary: "a tag took another one's place: unit, old tag, new tag",
            words: 3,
            acknowledged: true,
        },
        EventSpec {
            name: "tags-cleared",
            summary: "all tags were cleared: their number",
            words: 1,
            acknowledged: false,
        },
    ],
    refusals: &["zero-tag", "not-a-tag-per-unit"],
};

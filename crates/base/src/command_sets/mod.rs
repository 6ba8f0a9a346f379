//! Every command set: a file each, and a line in [`COMMAND_SETS`].

pub mod cache;
pub mod segments;
pub mod shrd;
pub mod tags;
pub mod zoned;

use crate::command_set::CommandSet;

/// Every set beyond block I/O.
pub static COMMAND_SETS: &[&CommandSet] =
    &[&tags::TAGS, &shrd::SHRD, &segments::SEGMENTS, &zoned::ZONED, &cache::CACHE];

/// The set of this name.
pub fn named(name: &str) -> Option<&'static CommandSet> {
    COMMAND_SETS.iter().copied().find(|set| set.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{COMMAND_SETS, named};
    use crate::Op;
    use crate::command_set::{DataPhase, EVENT_WORDS, Merging, Opcode, REFUSALS_MAX, Role, Words};

    #[test]
    fn every_set_is_well_formed() {
        let names: BTreeSet<_> = COMMAND_SETS.iter().map(|set| set.name).collect();
        assert_eq!(names.len(), COMMAND_SETS.len(), "names of sets differ");
        assert!(named("nothing").is_none(), "a name of no set");
        for set in COMMAND_SETS {
            assert_eq!(named(set.name).map(|set| set.name), Some(set.name), "a set is found by its name");
            let names: BTreeSet<_> = set.commands.iter().map(|command| command.name).collect();
            assert_eq!(names.len(), set.commands.len(), "{}: names of commands differ", set.name);
            for (index, command) in set.commands.iter().enumerate() {
                let name = format!("{} {}", set.name, command.name);
                assert_eq!(command.opcode, Opcode(index as u8 + 1), "{name}");
                assert_eq!(set.command(command.opcode), Some(command), "{name}");
                assert_eq!(set.find(command.name), Some(command), "{name}");
                assert_ne!(command.carrier, Op::WriteZeroes, "{name}: carrier");
                let is_token = |byte: u8| byte.is_ascii_lowercase() || byte == b'-';
                assert!(command.name.bytes().all(is_token), "{name}: lower-case letters and dashes");
                if matches!(command.carrier, Op::Flush | Op::Trim) {
                    assert_ne!(command.data, DataPhase::Range, "{name}: its carrier has no data");
                }
                if command.data == DataPhase::Answer {
                    assert_eq!(command.carrier, Op::Read, "{name}: what answers with bytes is carried by a read");
                }
                if command.merging == Merging::Neighbours {
                    assert!(command.address.is_addressed(), "{name}: neighbours have addresses");
                    assert_eq!(command.words_out, Words::NONE, "{name}: one answer cannot be given to two");
                    assert_ne!(command.data, DataPhase::Answer, "{name}: one answer cannot be given to two");
                }
                if command.role == Role::Acknowledge {
                    assert_eq!(command.words_in, Words::Exactly(1), "{name}: the number of the event");
                }
            }
            let acknowledges = set.commands.iter().any(|command| command.role == Role::Acknowledge);
            assert_eq!(acknowledges, set.events.iter().any(|event| event.acknowledged), "{}", set.name);
            assert!(set.events.iter().all(|event| usize::from(event.words) <= EVENT_WORDS), "{}", set.name);
            assert!(set.refusals.len() <= REFUSALS_MAX, "{}: the counters have room for its refusals", set.name);
        }
    }
}

//! What a host of segments sends, as data and as text.
//!
//! ```text
//! write 2+5 fua queue=1     5 units behind what is written of segment 2; `append` likewise, as the command of zones
//! write 2+5 renew           or a trim of segment 2, if it takes no more
//! trim 0+2 fua              segments 0 and 1
//! flush
//! open 2+1                  the action on zone 2; `close` and `finish` likewise
//! read 2+3 from=7           units 7 to 9 of segment 2
//! break-gap 2+1 from=4      a command that breaks the rule that writes leave no gap, at one of the places for that
//! ```

use std::fmt;

use ssdlab_base::Opcode;
use ssdlab_base::command_sets::zoned;

use crate::script::ScriptError;
use crate::step::{Command, Words, name_of};

/// A command. Segments and units are taken modulo their numbers, and what is too long ends with its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentCommand {
    /// What is asked.
    pub kind: Kind,
    /// The segment, or the first of several.
    pub segment: usize,
    /// Units that are written or read, segments that are trimmed.
    pub count: usize,
    /// The first unit that is read; where a rule is broken.
    pub from: usize,
    /// With FUA.
    pub fua: bool,
    /// A segment that takes no more is trimmed instead of written.
    pub renew: bool,
    /// The queue.
    pub queue: u16,
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Writes behind what is written of a segment; nothing where it takes no more.
    Write,
    /// Writes as the command `append` of zones, which does not say where in its zone; above segments an ordinary write.
    Append,
    /// Trims segments.
    Trim,
    /// Flushes.
    Flush,
    /// Opens, closes or finishes a zone, whether its state allows it or not; nothing above segments.
    Act(Opcode),
    /// Reads units, written or not.
    Read,
    /// Breaks a rule, where the state of the segment lets it be broken; else that a trim covers whole segments.
    Break(Rule),
}

/// A rule that is broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// What is written is not overwritten.
    Overwrite,
    /// Writes leave no gap.
    Gap,
    /// A segment with a hole takes no writes.
    Closed,
    /// A write stays in its segment.
    Crosses,
    /// A write has whole units.
    PartOfUnit,
    /// A trim has whole segments: it lacks the last unit.
    PartOfSegment,
    /// What is not written is not read.
    Unwritten,
    /// A trim begins where a segment begins.
    Shifted,
}

const NAMES: [(&str, Kind); 16] = [
    ("write", Kind::Write),
    ("append", Kind::Append),
    ("trim", Kind::Trim),
    ("flush", Kind::Flush),
    ("open", Kind::Act(zoned::OPEN)),
    ("close", Kind::Act(zoned::CLOSE)),
    ("finish", Kind::Act(zoned::FINISH)),
    ("read", Kind::Read),
    ("break-overwrite", Kind::Break(Rule::Overwrite)),
    ("break-gap", Kind::Break(Rule::Gap)),
    ("break-closed", Kind::Break(Rule::Closed)),
    ("break-crosses", Kind::Break(Rule::Crosses)),
    ("break-part-of-unit", Kind::Break(Rule::PartOfUnit)),
    ("break-part-of-segment", Kind::Break(Rule::PartOfSegment)),
    ("break-unwritten", Kind::Break(Rule::Unwritten)),
    ("break-shifted", Kind::Break(Rule::Shifted)),
];

impl Kind {
    /// The rules that are broken on purpose, but for the one that can always be.
    pub(super) fn rules() -> Vec<Kind> {
        let all = NAMES.iter().map(|(_, kind)| *kind);
        all.filter(|kind| matches!(kind, Kind::Break(rule) if *rule != Rule::Shifted)).collect()
    }
}

impl SegmentCommand {
    /// One unit or segment, without FUA, in the first queue.
    pub const fn plain(kind: Kind, segment: usize) -> SegmentCommand {
        SegmentCommand { kind, segment, count: 1, from: 0, fua: false, renew: false, queue: 0 }
    }
}

impl fmt::Display for SegmentCommand {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SegmentCommand { kind, segment, count, from, fua, renew, queue } = *self;
        write!(to, "{}", name_of(&NAMES, &kind))?;
        if kind != Kind::Flush {
            write!(to, " {segment}+{count}")?;
        }
        for (word, _) in [(" renew", renew), (" fua", fua)].iter().filter(|(_, given)| *given) {
            write!(to, "{word}")?;
        }
        let numbers = [("from", from), ("queue", queue.into())];
        numbers.iter().filter(|(_, number)| *number > 0).try_for_each(|(name, number)| write!(to, " {name}={number}"))
    }
}

impl Command for SegmentCommand {
    fn parse(first: &str, words: &mut Words<'_>) -> Result<Option<SegmentCommand>, ScriptError> {
        let Some((_, kind)) = NAMES.iter().find(|(name, _)| *name == first) else { return Ok(None) };
        let mut command = SegmentCommand::plain(*kind, 0);
        if *kind != Kind::Flush {
            let (segment, count) = words.range("a segment and a count such as 2+5")?;
            (command.segment, command.count) = (segment as usize, count as usize);
        }
        while let Some(word) = words.next() {
            let small = |number: &str| number.parse::<u16>().map_err(|_| words.expected("a number below 65536"));
            match word.split_once('=') {
                Some(("from", number)) => command.from = small(number)?.into(),
                Some(("queue", number)) => command.queue = small(number)?,
                None if word == "fua" => command.fua = true,
                None if word == "renew" => command.renew = true,
                _ => return Err(words.expected("fua, renew, from=N or queue=N behind the segment")),
            }
        }
        Ok(Some(command))
    }

    fn plainer(&self) -> Vec<SegmentCommand> {
        let SegmentCommand { kind, segment, .. } = *self;
        vec![
            SegmentCommand::plain(kind, segment),
            SegmentCommand { queue: 0, ..*self },
            SegmentCommand { fua: false, ..*self },
            SegmentCommand { renew: false, ..*self },
            SegmentCommand { count: 1, ..*self },
            SegmentCommand { count: self.count / 2, ..*self },
            SegmentCommand { from: 0, ..*self },
            SegmentCommand { segment: 0, ..*self },
        ]
    }
}

#[cfg(test)]
mod tests {
    use crate::segments::{SegmentScope, Segments};
    use crate::step::tests::{check_files, check_text};

    #[test]
    fn steps_are_text() {
        let right = [
            "write 2+5 renew fua queue=1",
            "append 0+1",
            "read 2+3 from=7",
            "break-gap 1+1 from=4",
            "finish 1+1",
            "flush",
            "fail erase block=4",
            "cut after=5 40% recovery=30%",
        ];
        let wrong = [
            "",
            "write",
            "write 2",
            "write 2+1 block=3",
            "break-rules 2+1",
            "break-gap",
            "open",
            "fail die block=1",
            "run 5",
            "cut unread",
            "cut all",
            "write 2+1 queue=70000",
        ];
        check_text::<Segments>(&right, &wrong);
        check_files(0..30, |_| SegmentScope, false);
    }
}

//! What a host of a cache sends, as data and as text.
//!
//! ```text
//! write-dirty 3+4           blocks 3 to 6; `write-clean`, `evict` and `clean` likewise
//! refuse evict 3            a part of block 3, which the drive refuses; of `write-dirty`, `write-clean` and `clean`, too
//! standby                   `idle` likewise
//! write 3+4 fua             as block I/O; `trim` likewise
//! flush
//! read 5+1                  block 5
//! ```

use std::fmt;

use ssdlab_base::command_sets::cache::{CACHE, CLEAN, EVICT, IDLE, STANDBY, WRITE_CLEAN, WRITE_DIRTY};
use ssdlab_base::{Op, Opcode, Request};

use crate::script::ScriptError;
use crate::step::{BlockCommand, Command, Words};

/// Commands that change blocks.
pub(super) const CHANGES: [Opcode; 4] = [WRITE_DIRTY, WRITE_CLEAN, EVICT, CLEAN];

/// A command, after which the host waits for its completion. Blocks are taken modulo their number, and what is too long ends with the
/// last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CacheCommand {
    /// Writes, evicts or cleans blocks: the first, and how many.
    Change(Opcode, u32, u32),
    /// Names a part of a block.
    Refuse(Opcode, u32),
    /// Makes changes of the map durable.
    Rest(Opcode),
    /// Writes, trims or reads blocks, whose numbers stand for those of sectors, or flushes.
    Block(Request),
}

fn name(opcode: Opcode) -> &'static str {
    CACHE.command(opcode).map_or("?", |spec| spec.name)
}

impl fmt::Display for CacheCommand {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CacheCommand::Change(opcode, first, blocks) => write!(to, "{} {first}+{blocks}", name(*opcode)),
            CacheCommand::Refuse(opcode, first) => write!(to, "refuse {} {first}", name(*opcode)),
            CacheCommand::Rest(opcode) => write!(to, "{}", name(*opcode)),
            CacheCommand::Block(request) => BlockCommand::alone(*request).fmt(to),
        }
    }
}

impl Command for CacheCommand {
    fn parse(first: &str, words: &mut Words<'_>) -> Result<Option<CacheCommand>, ScriptError> {
        let opcode = |name: &str, of: &[Opcode]| {
            let spec = CACHE.find(name)?;
            of.contains(&spec.opcode).then_some(spec.opcode)
        };
        if let Some(opcode) = opcode(first, &[STANDBY, IDLE]) {
            return Ok(Some(CacheCommand::Rest(opcode)));
        }
        if let Some(opcode) = opcode(first, &CHANGES) {
            let range = words.next().and_then(|word| {
                let (first, blocks) = word.split_once('+')?;
                Some((first.parse().ok()?, blocks.parse().ok()?))
            });
            let (first, blocks) = range.ok_or_else(|| words.expected("a range of blocks such as 3+4"))?;
            return Ok(Some(CacheCommand::Change(opcode, first, blocks)));
        }
        if first == "refuse" {
            let refused = words.next().and_then(|word| opcode(word, &CHANGES));
            let block = words.next().and_then(|word| word.parse().ok());
            let (Some(opcode), Some(block)) = (refused, block) else {
                return Err(
                    words.expected("refuse, a command that changes blocks, and a block, such as refuse evict 3")
                );
            };
            return Ok(Some(CacheCommand::Refuse(opcode, block)));
        }
        Ok(BlockCommand::parse_alone(first, words)?.map(CacheCommand::Block))
    }

    fn plainer(&self) -> Vec<CacheCommand> {
        match self {
            CacheCommand::Change(opcode, first, blocks) => {
                let ranges = [(0, *blocks), (*first, 1), (*first, blocks.div_ceil(2))];
                ranges.into_iter().map(|(first, blocks)| CacheCommand::Change(*opcode, first, blocks)).collect()
            }
            CacheCommand::Refuse(opcode, _) => vec![CacheCommand::Refuse(*opcode, 0)],
            CacheCommand::Rest(_) => vec![CacheCommand::Block(Request::new(Op::Flush, 0, 0))],
            CacheCommand::Block(request) => BlockCommand::plainer_alone(*request).map(CacheCommand::Block).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::cache::{Cache, CacheScope};
    use crate::step::tests::{check_files, check_text};

    #[test]
    fn steps_are_text() {
        let right = [
            "write-dirty 3+4",
            "write-clean 0+1",
            "evict 5+2",
            "clean 5+2",
            "refuse clean 7",
            "standby",
            "idle",
            "write 3+4 fua",
            "trim 3+4",
            "flush",
            "read 5+1",
            "fail erase block=4",
            "cut after=5",
        ];
        let wrong = [
            "",
            "write-dirty",
            "evict 3",
            "clean x+1",
            "refuse",
            "refuse read 1",
            "refuse evict",
            "trim",
            "zero 1+1",
            "write 2+1 queue=1",
            "fail read",
            "cut unread",
            "flush 1",
        ];
        check_text::<Cache>(&right, &wrong);
        check_files(0..30, |_| CacheScope, false);
    }
}

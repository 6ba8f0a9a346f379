//! What a host of a log sends, as data and as text.
//!
//! ```text
//! twrite 2,5,7              these units go to the log
//! remap 0x3f                the first 6 live tLPNs of each 64 get their own names back
//! trim-dead                 all tLPNs that are not live are trimmed
//! restore                   everything in the log gets its own name back
//! write 3+4 fua             units 3 to 6 at their own address; `trim` likewise
//! flush
//! read 5+1                  unit 5, wherever it is
//! ```

use std::fmt;

use ssdlab_base::Request;

use crate::script::ScriptError;
use crate::step::{BlockCommand, Command, Words};

/// A command, after which the host waits for its completion. Units are taken modulo their number, and what is too long
/// ends with the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogCommand {
    /// Units go to the log.
    Twrite(Vec<u32>),
    /// Live tLPNs get their own names back: of each 64 in order those whose bit is set.
    Remap(u64),
    /// All tLPNs that are not live are trimmed.
    TrimDead,
    /// Everything in the log gets its own name back, as after a crash of the host.
    Restore,
    /// Writes, trims or reads units, whose numbers stand for those of sectors, or flushes.
    Block(Request),
}

impl fmt::Display for LogCommand {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogCommand::Twrite(units) => {
                let units: Vec<String> = units.iter().map(u32::to_string).collect();
                write!(to, "twrite {}", units.join(","))
            }
            LogCommand::Remap(bits) => write!(to, "remap {bits:#x}"),
            LogCommand::TrimDead => write!(to, "trim-dead"),
            LogCommand::Restore => write!(to, "restore"),
            LogCommand::Block(request) => BlockCommand::alone(*request).fmt(to),
        }
    }
}

impl Command for LogCommand {
    fn parse(first: &str, words: &mut Words<'_>) -> Result<Option<LogCommand>, ScriptError> {
        Ok(match first {
            "twrite" => {
                let units = words.next().map(|list| list.split(',').map(str::parse).collect::<Result<Vec<u32>, _>>());
                let units = units.and_then(Result::ok);
                Some(LogCommand::Twrite(units.ok_or_else(|| words.expected("twrite and units such as 2,5,7"))?))
            }
            "remap" => {
                let bits = words.next().and_then(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok());
                Some(LogCommand::Remap(bits.ok_or_else(|| words.expected("remap and 64 bits such as 0x3f"))?))
            }
            "trim-dead" => Some(LogCommand::TrimDead),
            "restore" => Some(LogCommand::Restore),
            _ => BlockCommand::parse_alone(first, words)?.map(LogCommand::Block),
        })
    }

    fn plainer(&self) -> Vec<LogCommand> {
        match self {
            LogCommand::Twrite(units) => {
                let first = |count: usize| LogCommand::Twrite(units[..count.min(units.len())].to_vec());
                vec![first(1), first(units.len().div_ceil(2))]
            }
            LogCommand::Remap(_) => vec![LogCommand::Remap(u64::MAX)],
            LogCommand::TrimDead | LogCommand::Restore => Vec::new(),
            LogCommand::Block(request) => BlockCommand::plainer_alone(*request).map(LogCommand::Block).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::shrd::{Log, LogScope};
    use crate::step::tests::{check_files, check_text};

    #[test]
    fn steps_are_text() {
        let right = [
            "twrite 5,2",
            "remap 0xff00",
            "trim-dead",
            "restore",
            "write 3+4 fua",
            "trim 3+4",
            "flush",
            "read 5+1",
            "fail erase block=4",
            "cut after=5",
        ];
        let wrong = [
            "",
            "twrite",
            "twrite 1,x",
            "remap 12",
            "trim",
            "zero 1+1",
            "write 2+1 queue=1",
            "write 2+1 depth=2",
            "fail read",
            "read",
            "pass 5us",
            "cut unread",
            "flush 1",
        ];
        check_text::<Log>(&right, &wrong);
        check_files(0..30, |_| LogScope, false);
    }
}

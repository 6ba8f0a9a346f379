//! The log blocks: in the order in which they were opened, and found by block, by logical block and by their last use.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::ops::Index;

use rustc_hash::FxHashMap;
use ssdlab_base::{Saved, damaged, load, saved};
use ssdlab_flash::{BlockId, Lpn, NONE};

/// A log block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Log {
    pub(super) block: BlockId,
    /// The logical block whose pages it takes; `NONE` if it takes any.
    pub(super) logical: u32,
    /// What its pages behind the header were given out for; [`Lpn::NONE`] for padding.
    pub(super) lpns: Vec<Lpn>,
    /// When it was written last, in writes to log blocks.
    pub(super) used: u64,
}

saved!(Log: block, logical, used, lpns);

/// The number of a log block: it counts openings.
pub(super) type LogNumber = u64;

/// All log blocks. A logical block has at most one of its own.
#[derive(Debug, Default)]
pub(super) struct Logs {
    by_number: BTreeMap<LogNumber, Log>,
    /// The number of the next one.
    next: LogNumber,
    of_block: FxHashMap<BlockId, LogNumber>,
    of_logical: FxHashMap<u32, LogNumber>,
    /// Those of one logical block, by their last use.
    by_use: BTreeSet<(u64, LogNumber)>,
}

impl Logs {
    pub(super) fn len(&self) -> usize {
        self.by_number.len()
    }

    /// All of them, the one that was opened first first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Log> {
        self.by_number.values()
    }

    /// Adds the newest. `Err` gives it back: its block is a log block already, or its logical block has one.
    pub(super) fn add(&mut self, log: Log) -> Result<(), Log> {
        let is_known = log.logical != NONE && self.of_logical.contains_key(&log.logical);
        if is_known || self.of_block.contains_key(&log.block) {
            return Err(log);
        }
        self.of_block.insert(log.block, self.next);
        if log.logical != NONE {
            self.of_logical.insert(log.logical, self.next);
            self.by_use.insert((log.used, self.next));
        }
        self.by_number.insert(self.next, log);
        self.next += 1;
        Ok(())
    }

    pub(super) fn remove(&mut self, number: LogNumber) -> Log {
        let log = self.by_number.remove(&number).expect("a log block that is there");
        self.of_block.remove(&log.block);
        if log.logical != NONE {
            self.of_logical.remove(&log.logical);
            self.by_use.remove(&(log.used, number));
        }
        log
    }

    /// The next page of a log block was given out for an LPN, or for padding.
    pub(super) fn give_page(&mut self, number: LogNumber, lpn: Lpn) {
        self.by_number.get_mut(&number).expect("a log block that is there").lpns.push(lpn);
    }

    /// A log block was written.
    pub(super) fn use_at(&mut self, number: LogNumber, clock: u64) {
        let log = self.by_number.get_mut(&number).expect("a log block that is there");
        let before = std::mem::replace(&mut log.used, clock);
        if log.logical != NONE {
            self.by_use.remove(&(before, number));
            self.by_use.insert((clock, number));
        }
    }

    /// The log block that a block is.
    pub(super) fn of_block(&self, block: BlockId) -> Option<LogNumber> {
        self.of_block.get(&block).copied()
    }

    /// The log block that a logical block has for itself.
    pub(super) fn of_logical(&self, logical: u32) -> Option<LogNumber> {
        self.of_logical.get(&logical).copied()
    }

    /// The log block of one logical block that was written least recently.
    pub(super) fn least_recently_used(&self) -> Option<LogNumber> {
        self.by_use.first().map(|(_, number)| *number)
    }

    /// The log blocks of any logical block, the one that was opened first first.
    pub(super) fn of_any(&self) -> impl DoubleEndedIterator<Item = LogNumber> {
        self.by_number.iter().filter(|(_, log)| log.logical == NONE).map(|(number, _)| *number)
    }
}

impl Index<LogNumber> for Logs {
    type Output = Log;

    fn index(&self, number: LogNumber) -> &Log {
        &self.by_number[&number]
    }
}

/// A list of the log blocks, in the order in which they were opened.
impl Saved for Logs {
    fn save_to(&self, to: &mut dyn Write) -> io::Result<()> {
        (self.len() as u64).save_to(to)?;
        self.iter().try_for_each(|log| log.save_to(to))
    }

    fn load_from(&mut self, from: &mut dyn Read) -> io::Result<()> {
        *self = Logs::default();
        let twice =
            |log: Log| damaged(format!("block {} is a log block twice, or its logical block has two", log.block));
        load::<Vec<Log>>(from)?.into_iter().try_for_each(|log| self.add(log).map_err(twice))
    }
}

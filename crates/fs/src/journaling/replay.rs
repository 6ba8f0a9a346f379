//! The journal at a mount: transactions that were committed and may not be at their places are written there again.
//!
//! ```text
//!   scan     transactions from the beginning of the log up to the first that is not whole
//!   revoke   blocks that were freed, and by which transaction
//!   replay   the newest version of each block that no later transaction freed
//! ```

use std::collections::BTreeMap;

use super::format::log::{Of, Record, Sum, Tail};
use super::format::superblock::Superblock;
use super::log::address;
use crate::error::MountError;
use crate::format::Bytes;
use crate::reader::Reader;
use crate::seeded::{FsBug, seeded};

/// What the journal has.
#[derive(Debug)]
pub(crate) struct Found {
    /// Blocks that are newer than those at their places.
    pub(crate) blocks: BTreeMap<u32, Box<Bytes>>,
    /// Where a log begins that has none of these.
    pub(crate) next: Tail,
    /// The log has transactions, whether they say anything or not.
    pub(crate) is_open: bool,
}

/// A transaction that is whole.
struct Whole {
    blocks: Vec<(u32, Box<Bytes>)>,
    revoked: Vec<u32>,
    /// Blocks of the journal that it has.
    count: u32,
}

/// Reads the journal.
pub(crate) fn read(reader: &mut Reader, superblock: &Superblock) -> Result<Found, MountError> {
    let runs = superblock.journal_runs().unwrap_or_default();
    let place = address(&runs, 0);
    let tail = Tail::decode(&*reader.block(place)?, superblock.volume, superblock.journal)
        .map_err(MountError::of_block(place, "superblock of the journal"))?;
    let mut found = Found { blocks: BTreeMap::new(), next: Tail { start: 0, ..tail }, is_open: tail.start != 0 };
    let (mut versions, mut revoked) = (BTreeMap::new(), BTreeMap::new());
    let (mut at, mut left) = (tail.start, superblock.journal - 1);
    while at != 0 && left > 0 {
        let of = Of { volume: superblock.volume, epoch: tail.epoch, sequence: found.next.sequence };
        let mut log = Log { reader, runs: &runs, blocks: superblock.journal, at, left };
        let Some(whole) = log.transaction(of, superblock.blocks)? else { break };
        for (place, block) in whole.blocks {
            versions.insert(place, (of.sequence, block));
        }
        revoked.extend(whole.revoked.into_iter().map(|place| (place, of.sequence)));
        found.next.sequence += 1;
        left -= whole.count;
        at = (at - 1 + whole.count) % (superblock.journal - 1) + 1;
    }
    let is_freed = |place: &u32, sequence: u64| {
        revoked.get(place).is_some_and(|freed| *freed >= sequence) && !seeded(FsBug::RevokedBlockReplayed)
    };
    let kept = versions.into_iter().filter(|(place, (sequence, _))| !is_freed(place, *sequence));
    found.blocks = kept.map(|(place, (_, block))| (place, block)).collect();
    Ok(found)
}

/// The journal from a block on.
struct Log<'a> {
    reader: &'a mut Reader,
    runs: &'a [(u32, u32)],
    blocks: u32,
    at: u32,
    left: u32,
}

impl Log<'_> {
    /// The next block; `None` if there is none. One that cannot be read may be one of a transaction that is in part at its places: a mount
    /// fails, as in Linux.
    fn next(&mut self) -> Result<Option<Box<Bytes>>, MountError> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        let block = self.reader.block(address(self.runs, self.at))?;
        self.left = left;
        self.at = self.at % (self.blocks - 1) + 1;
        Ok(Some(block))
    }

    /// The next transaction; `None` if it is not whole.
    fn transaction(&mut self, of: Of, most: u32) -> Result<Option<Whole>, MountError> {
        let mut sum = Sum::new(of.volume);
        let before = self.left;
        let mut whole = Whole { blocks: Vec::new(), revoked: Vec::new(), count: 0 };
        loop {
            let Some(block) = self.next()? else { return Ok(None) };
            match Record::decode(&block, of) {
                Ok(Record::Descriptor(places)) => {
                    sum.add(&block);
                    for place in places {
                        let Some(block) = self.next()? else { return Ok(None) };
                        sum.add(&block);
                        if place >= most {
                            return Ok(None);
                        }
                        whole.blocks.push((place, block));
                    }
                }
                Ok(Record::Revoke(places)) => {
                    sum.add(&block);
                    whole.revoked.extend(places);
                }
                Ok(Record::Commit(expected)) => {
                    whole.count = before - self.left;
                    return Ok((sum.end() == expected).then_some(whole));
                }
                Err(_) => return Ok(None),
            }
        }
    }
}

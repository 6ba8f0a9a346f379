//! The chips' state in a snapshot of a preconditioned drive: blocks and OOB areas, not contents.

use std::io::{self, Read, Write};

use ssdlab_base::{Saved, damaged, load, saved};

use crate::contents::Origins;
use crate::records::Records;
use crate::{Block, BlockId, Blocks, DieId, Flash, HugeArray, Lpn, Oob, Origin, PlaneId, Ppn, UnitId};

saved!(words BlockId, DieId, Lpn, PlaneId, Ppn, UnitId, Origin);
saved!(Block: programmed, erases, reads, bad, torn, suspect);
saved!(Blocks: blocks[..], unreadable, substitutes);
saved!(Oob: lpns, sequence_low, block_sequence[..], origins?, records, poisoned);
saved!(Origins: of);

/// Largest count of erases or reads that is believed.
const COUNT_MAX: u32 = u32::MAX / 2;

/// Sequence numbers end here.
const SEQUENCE_END: u64 = 1 << 62;

/// A table.
impl<T: bytemuck::Pod + Saved> Saved for HugeArray<T> {
    fn save_to(&self, to: &mut dyn Write) -> io::Result<()> {
        self.as_slice().save_to(to)
    }

    fn load_from(&mut self, from: &mut dyn Read) -> io::Result<()> {
        self.as_mut_slice().load_from(from)
    }
}

/// A list of units, each with its words.
impl Saved for Records {
    fn save_to(&self, to: &mut dyn Write) -> io::Result<()> {
        (self.len() as u64).save_to(to)?;
        self.iter().try_for_each(|(unit, words)| {
            unit.save_to(to)?;
            (words.len() as u64).save_to(to)?;
            words.save_to(to)
        })
    }

    fn load_from(&mut self, from: &mut dyn Read) -> io::Result<()> {
        assert!(self.is_empty(), "the records of fresh chips are read");
        for _ in 0..load::<u64>(from)? {
            let unit = load(from)?;
            let words: Box<[u64]> = load(from)?;
            if words.is_empty() || self.can_hand_on(unit) {
                return Err(damaged(format!("metadata unit {unit} has no words, or has them twice")));
            }
            self.insert(unit, words);
        }
        Ok(())
    }
}

impl Flash {
    /// Writes block states and OOB areas; nothing may be in flight.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn save(&self, to: &mut dyn Write) -> io::Result<()> {
        assert_eq!(self.in_flight(), 0, "the chips are saved only while idle");
        self.blocks.save_to(to)?;
        self.oob.save_to(to)
    }

    /// Reads what [`Flash::save`] wrote into fresh chips of the same geometry.
    ///
    /// # Errors
    /// Those of the reader, and [`io::ErrorKind::InvalidData`] for a state that chips at rest cannot have.
    pub fn load_state(&mut self, from: &mut dyn Read) -> io::Result<()> {
        assert_eq!(self.in_flight(), 0, "a saved state is read into chips that do nothing");
        self.blocks.load_from(from)?;
        self.oob.load_from(from)?;
        match self.contradiction() {
            None => Ok(()),
            Some(what) => Err(damaged(format!("the saved chips are damaged: {what}"))),
        }
    }

    /// What chips at rest cannot have, if these do.
    fn contradiction(&self) -> Option<&'static str> {
        let geometry = self.geometry();
        let (pages, units_per_page) = (geometry.pages_per_block, self.oob.units_per_page());
        let units = geometry.pages() * u64::from(units_per_page);
        let is_written = |ppn: Ppn| {
            u64::from(ppn.0) < geometry.pages() && ppn % pages < self.blocks.get(ppn.block(pages)).programmed
        };
        let at_rest =
            |block: &Block| block.programmed <= pages && block.erases.max(block.reads) <= COUNT_MAX && !block.torn;
        if !self.blocks.all().iter().all(at_rest) {
            return Some("a block's state is not one that a block at rest can have");
        }
        if self.oob.block_sequence.iter().any(|sequence| *sequence >= SEQUENCE_END) {
            return Some("a sequence number is out of its range");
        }
        if !self.oob.records.units().all(|unit| is_written(unit.page(units_per_page))) {
            return Some("a metadata record is on a page that was never written");
        }
        if !self.blocks.unreadable().all(is_written) {
            return Some("a page that cannot be read was never written");
        }
        if self.oob.poisoned.iter().any(|unit| u64::from(unit.0) >= units) {
            return Some("a unit whose data was lost is behind the flash");
        }
        let known = |(block, index): (BlockId, u32)| block.0 < geometry.blocks() && index < geometry.blocks_per_plane;
        (!self.blocks.substitutes().all(known)).then_some("a block stands in the place of one behind the flash")
    }
}

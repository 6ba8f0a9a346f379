//! FTL design `tagged`: the mapping of `page`, and the commands of the set `tags`.
//!
//! The smallest design with commands of its own: the one to test command sets with, and to copy. Tags are in RAM and gone
//! after a power cut; a tag belongs to its unit, whatever block I/O writes or trims there.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use ssdlab_base::command_sets::tags::{
    CLEAR_TAGS, FIND_TAG, NOT_A_TAG_PER_UNIT, READ_TAGGED, SAVE_TRIMS, TAG_REPLACED, TAGS, TAGS_CLEARED, WRITE_TAGGED,
    ZERO_TAG,
};
use ssdlab_base::{Request, SECTOR_BYTES, Saved, saved};

use super::{CannotYet, Commands, Design, Make, Outcome, SetCommand, page};
use crate::media::Media;
use crate::seeded::{Bug, seeded};
use crate::{DriveConfig, Status};

/// The tags.
pub(crate) struct Tags {
    sectors_per_unit: u64,
    /// By unit; none is zero.
    tags: BTreeMap<u32, u64>,
}

/// The design as a description names it.
pub(super) const DESIGN: Design = Design {
    name: "tagged",
    summary: "page mapping with a word for each unit in RAM: the example of a command set",
    keys: &[],
    make: Make { commands: Some(&TAGS), beside, ..page::DESIGN.make },
};

fn beside(config: &DriveConfig) -> Option<Box<dyn Commands>> {
    let sectors_per_unit = u64::from(config.ftl.mapping_unit) / SECTOR_BYTES;
    Some(Box::new(Tags { sectors_per_unit, tags: BTreeMap::new() }))
}

impl Tags {
    fn units(&self, request: &Request) -> std::ops::Range<u32> {
        let end = request.end().div_ceil(self.sectors_per_unit);
        (request.sector / self.sectors_per_unit) as u32..end as u32
    }

    fn write(&mut self, media: &mut Media, command: &SetCommand<'_>) -> Outcome {
        let units = self.units(command.request);
        let whole = |sector: u64| sector.is_multiple_of(self.sectors_per_unit);
        if units.len() != command.words.len() || !whole(command.request.sector) || !whole(command.request.end()) {
            return Outcome::new(Status::Refused(NOT_A_TAG_PER_UNIT));
        }
        if command.words.contains(&0) {
            if seeded(Bug::RefusedCommandActs) {
                self.tags.extend(units.zip(command.words.iter().copied()).filter(|(_, tag)| *tag != 0));
            }
            return Outcome::new(Status::Refused(ZERO_TAG));
        }
        for (unit, tag) in units.zip(command.words) {
            if let Some(old) = self.tags.insert(unit, *tag).filter(|old| old != tag) {
                media.events.send(media.now, TAG_REPLACED, &[u64::from(unit), old, *tag]);
            }
        }
        Outcome { block_io: true, ..Outcome::new(Status::Success) }
    }

    fn read(&self, command: &SetCommand<'_>) -> Outcome {
        let units = self.units(command.request);
        let spec_allows = TAGS.command(READ_TAGGED);
        if spec_allows.is_some_and(|spec| !spec.words_out.allow(units.len())) {
            return Outcome::new(Status::Refused(NOT_A_TAG_PER_UNIT));
        }
        let words: Vec<u64> = units.map(|unit| self.tags.get(&unit).copied().unwrap_or(0)).collect();
        if words.iter().all(|tag| *tag == 0) {
            return Outcome::new(Status::Absent);
        }
        Outcome { words, block_io: true, ..Outcome::new(Status::Success) }
    }

    fn find(&self, tag: u64) -> Outcome {
        let units = self.tags.iter().filter(|(_, other)| **other == tag);
        let bytes: Vec<u8> = units.flat_map(|(unit, _)| u64::from(*unit).to_le_bytes()).collect();
        if bytes.is_empty() {
            return Outcome { words: vec![0], ..Outcome::new(Status::Absent) };
        }
        Outcome { words: vec![bytes.len() as u64 / 8], bytes, ..Outcome::new(Status::Success) }
    }

    fn clear(&mut self, media: &mut Media) -> Outcome {
        let count = std::mem::take(&mut self.tags).len() as u64;
        media.events.send(media.now, TAGS_CLEARED, &[count]);
        Outcome { words: vec![count], ..Outcome::new(Status::Success) }
    }
}

saved!(Tags: tags);

impl Commands for Tags {
    fn execute(&mut self, media: &mut Media, command: SetCommand<'_>) -> Result<Outcome, CannotYet> {
        Ok(match command.opcode {
            WRITE_TAGGED => self.write(media, &command),
            READ_TAGGED => self.read(&command),
            FIND_TAG => self.find(command.words[0]),
            CLEAR_TAGS => self.clear(media),
            SAVE_TRIMS => Outcome { saves_trims: true, awaits_records: true, ..Outcome::new(Status::Success) },
            other => unreachable!("{other:?} is no command of the design's set"),
        })
    }

    fn save_state(&self, to: &mut dyn Write) -> io::Result<()> {
        self.save_to(to)
    }

    fn restore_state(&mut self, from: &mut dyn Read) -> io::Result<()> {
        self.load_from(from)
    }

    fn memory(&self) -> Vec<(&'static str, u64)> {
        vec![("tag_bytes", self.tags.len() as u64 * 12)]
    }
}

//! What an LFS check-point writes beside nodes: entries of SIT and NAT, into journals of the check-point where they are few, else into the
//! other place of their blocks (F2FS, sections 2.1 and 2.2; sizes of the journals and when they are emptied as in Linux 3.13).

use std::collections::BTreeSet;

use crate::core::Core;
use crate::core::cache::Key;
use crate::core::inode_map::part_of;
use crate::core::layout::Layout;
use crate::core::log::Kind;
use crate::format::checkpoint::{Checkpoint, Journal, pack_places};
use crate::format::superblock::Superblock;
use crate::format::usage::{self, WithBits};
use crate::format::{Bytes, NOWHERE, map};
use crate::jobs::encode::NoSegment;
use crate::seeded::{FsBug, seeded};

/// Entries that each journal holds.
const NODE_JOURNAL: usize = 38;
const USAGE_JOURNAL: usize = 6;

/// Metadata in fixed places.
#[derive(Debug)]
pub(crate) struct Overwritten;

impl Layout for Overwritten {
    fn appends_checkpoints(&self) -> bool {
        false
    }

    fn victims(&self, _: &Core) -> Vec<u32> {
        Vec::new()
    }

    /// Where the journal may be emptied, the blocks of its entries.
    fn needs(&self, core: &Core, _: &[u32]) -> Vec<u32> {
        let Some(journal) = &core.map.journal else { return Vec::new() };
        // Blocks of directories make their inodes dirty, or index blocks.
        let coming = core.dirty_nodes.len() + 2 * core.dirty_directories.len() + journal.changed.len();
        if journal.entries.len() + coming <= NODE_JOURNAL {
            return Vec::new();
        }
        let parts: BTreeSet<u32> = journal.entries.keys().map(|number| part_of(*number)).collect();
        parts.into_iter().collect()
    }

    fn encode(&self, core: &mut Core, _: &[u32]) -> Result<Vec<u32>, NoSegment> {
        core.logs.write_loose_summaries(&mut core.space);
        let leaving = core.space.leave();
        core.journal_usage();
        core.journal_nodes();
        Ok(leaving)
    }

    fn tell(&self, core: &Core, checkpoint: &mut Checkpoint) {
        let superblock = &core.superblock;
        // Of each block the place that it is in: 0 for none, 1 or 2.
        let places = |list: &[u32], first_place: &dyn Fn(u32) -> u32| -> Vec<u8> {
            let which = |(part, address): (u32, &u32)| match *address {
                NOWHERE => 0,
                address if address == first_place(part) => 1,
                _ => 2,
            };
            (0..).zip(list).map(which).collect()
        };
        checkpoint.table = pack_places(&places(core.map.table(), &|part| superblock.map_place(part, 1)));
        checkpoint.usage = pack_places(&places(&core.map.usage_list, &|part| superblock.usage_place(part, 1)));
        let nodes = core.map.journal.iter().flat_map(|journal| &journal.entries);
        let usage = core.space.journal.iter().map(|segment| (*segment, core.usage_entry(*segment)));
        checkpoint.journal =
            Some(Journal { nodes: nodes.map(|(node, at)| (*node, *at)).collect(), usage: usage.collect() });
    }
}

/// The place of a block that the newest check-point does not need.
fn other_place(now: u32, places: [u32; 2]) -> u32 {
    if now == places[0] && !seeded(FsBug::NewestPlaceOverwritten) { places[1] } else { places[0] }
}

impl Core {
    /// What a check-point says of a segment.
    fn usage_entry(&self, segment: u32) -> WithBits {
        let bits = self.space.bits.as_ref().map_or(Vec::new(), |bits| bits.of(segment).to_vec());
        (self.space.usage(segment), bits)
    }

    /// Entries of segments that have changed go to the journal; with all that it has to the table, if they do not fit.
    fn journal_usage(&mut self) {
        let changed = std::mem::take(&mut self.space.dirty);
        if let Some(bits) = &mut self.space.bits {
            changed.iter().for_each(|segment| bits.tell(*segment));
        }
        if self.space.journal.len() + changed.len() <= USAGE_JOURNAL {
            self.space.journal.extend(changed);
            return;
        }
        let each = self.superblock.usage_entries();
        let segments = std::mem::take(&mut self.space.journal).into_iter().chain(changed);
        let parts: BTreeSet<u32> = segments.map(|segment| segment / each).collect();
        for part in parts {
            let end = self.superblock.segments.min((part + 1) * each);
            let entries: Vec<WithBits> = (part * each..end).map(|segment| self.usage_entry(segment)).collect();
            let Superblock { volume, segment_blocks, .. } = self.superblock;
            let bytes = usage::encode_with_bits(volume, part, segment_blocks, &entries);
            let places = [1, 2].map(|place| self.superblock.usage_place(part, place));
            let place = other_place(self.map.usage_list[part as usize], places);
            self.map.usage_list[part as usize] = place;
            self.overwrite(Kind::Usage, place, bytes);
        }
    }

    /// Entries of nodes that have changed go to the journal; with all that it has to the map, if they do not fit.
    fn journal_nodes(&mut self) {
        let mut parts = std::mem::take(&mut self.map.dirty_parts);
        for part in &parts {
            self.settle_map(*part).expect("what has changed is at hand");
        }
        let Some(mut journal) = self.map.journal.take() else { return };
        let changed = std::mem::take(&mut journal.changed);
        if journal.entries.len() + changed.len() <= NODE_JOURNAL {
            for number in changed {
                let places = self.cache.map(part_of(number)).expect("what has changed is at hand");
                journal.entries.insert(number, places[number as usize % map::ENTRIES]);
            }
            self.map.journal = Some(journal);
            return;
        }
        parts.extend(std::mem::take(&mut journal.entries).keys().map(|number| part_of(*number)));
        self.map.journal = Some(journal);
        for part in parts {
            let places = self.cache.map(part).expect("what has changed or is journaled is at hand");
            let bytes = map::encode(part, places);
            let places = [1, 2].map(|place| self.superblock.map_place(part, place));
            let place = other_place(self.map.address(part), places);
            self.cache.set_sent(Key::map(part));
            self.map.set_address(part, place);
            self.overwrite(Kind::Map, place, bytes);
        }
    }

    /// Sends a block of metadata to a fixed place.
    fn overwrite(&mut self, kind: Kind, place: u32, bytes: Box<Bytes>) {
        self.metrics.count(kind, 1);
        self.logs.write_fixed(&mut self.space, place, bytes);
    }
}

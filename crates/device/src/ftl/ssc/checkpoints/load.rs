//! How a map comes back from a checkpoint: which pages are read, and what they say.

use std::collections::{BTreeMap, BTreeSet};

use ssdlab_flash::{BlockId, Lpn, UnitId};

use super::area::Wanted;
use super::chain::{Checkpoint, from_pages};
use super::page::{Page, SLOT_HALVES, slots_per_page};
use super::{CLEANED, COPIES, LOST, TOLD};
use crate::ftl::ssc::table::Slot;
use crate::ftl::ssc::{CLEAN, Ssc, unmarked};
use crate::media::{Media, Place};
use crate::recovery_reads::RecoveryReads;
use crate::seeded::{Bug, seeded};

/// What a checkpoint says of a block beside where it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::ftl::ssc) struct Known {
    /// It was absent: no copy from before counts.
    pub(in crate::ftl::ssc) absent: bool,
    /// The log had a note on flash that said so.
    pub(in crate::ftl::ssc) told: bool,
    /// It had been cleaned after it was written, and the log had a note on flash that said so.
    pub(in crate::ftl::ssc) cleaned: bool,
}

/// What a checkpoint says beside the map that was taken from it.
#[derive(Debug, Default)]
pub(in crate::ftl::ssc) struct Loaded {
    /// Number of the first program that it does not know.
    pub(in crate::ftl::ssc) since: u64,
    /// By block: it says all that is to be known of it.
    pub(in crate::ftl::ssc) settled: Vec<bool>,
    pub(in crate::ftl::ssc) known: BTreeMap<u32, Known>,
    /// Copies of blocks that programs of lower numbers wrote count for nothing.
    pub(in crate::ftl::ssc) hidden: Vec<(u32, u64)>,
    pub(in crate::ftl::ssc) log_units: Vec<(u32, UnitId)>,
    /// Current units whose data was lost before they were written.
    lost: BTreeSet<UnitId>,
}

impl Loaded {
    /// Whether a block is settled: no page of it is read.
    pub(in crate::ftl::ssc) fn settles(&self, block: BlockId) -> bool {
        self.settled.get(block.index()).is_some_and(|settled| *settled)
    }
}

/// What was read of the area.
#[derive(Default)]
struct Read {
    pages: Vec<Page>,
    /// Pages that can be read, and are none.
    damaged: usize,
    /// The highest number of a program that OOB areas say, torn pages among them: numbers in a block rise, whatever became of its pages.
    newest: u64,
    /// By number of a set, the half that it is in.
    half_of: BTreeMap<u64, usize>,
}

impl Read {
    /// Takes a page of a half that was read.
    fn take(&mut self, media: &Media, half: usize, place: Place, drive: u64) {
        if !media.lists_owners() {
            self.newest = self.newest.max(media.flash.oob.sequence(place.block, place.page));
        }
        let Some(words) = media.checkpoint_words(place) else { return };
        match Page::parse(words) {
            // Another drive's pages are nothing here.
            Some(page) if page.head.drive != drive => {}
            Some(page) => {
                self.half_of.insert(page.head.number, half);
                self.pages.push(page);
            }
            None => self.damaged += 1,
        }
    }

    /// What was read of two halves.
    fn both(mut self, other: Read) -> Read {
        self.pages.extend(other.pages);
        self.damaged += other.damaged;
        self.newest = self.newest.max(other.newest);
        self.half_of.extend(other.half_of);
        self
    }
}

impl Ssc {
    /// Reads the area, and takes the map of the newest checkpoint. Returns what that says beside the map, and a number that no program had
    /// before.
    pub(in crate::ftl::ssc) fn load_checkpoint(&mut self, media: &Media, reads: &mut RecoveryReads) -> (Loaded, u64) {
        if self.area.is_none() {
            return (Loaded::default(), 0);
        }
        let (checkpoint, since) = self.find_checkpoint(media, Some(reads));
        let Some(checkpoint) = checkpoint else { return (Loaded::default(), since) };
        let loaded = self.take_map(media, &checkpoint);
        match &loaded {
            Some(loaded) => {
                self.area().counted.clone_from(&loaded.settled);
                self.goes_on_from(&checkpoint, loaded.settled.clone());
            }
            None => {
                self.area().misleads = true;
                self.table.clear();
            }
        }
        (loaded.unwrap_or_default(), since)
    }

    /// Knows again what checkpoints are on flash, whose map is that of a snapshot.
    pub(in crate::ftl::ssc) fn accept_checkpoint(&mut self, media: &Media) {
        if self.area.is_none() {
            return;
        }
        let (checkpoint, _) = self.find_checkpoint(media, None);
        let Some(checkpoint) = checkpoint else { return };
        let mut settled = checkpoint.state.settled.clone();
        settled.resize(media.flash.geometry().blocks() as usize, false);
        for (block, _) in &checkpoint.erased {
            settled.iter_mut().skip(*block as usize).take(1).for_each(|settled| *settled = false);
        }
        self.count_settled(media, &settled);
        self.goes_on_from(&checkpoint, settled);
        self.area().needs_all = true;
    }

    fn goes_on_from(&mut self, checkpoint: &Checkpoint, settled: Vec<bool>) {
        let area = self.area();
        area.newest = Some(settled);
        (area.newest_number, area.oldest) = (checkpoint.head.number, checkpoint.head.number);
        area.needs_all = checkpoint.is_older;
    }

    /// Reads the area. Nothing is on its way there. Returns the newest checkpoint, and a number that no program had before.
    fn find_checkpoint(&mut self, media: &Media, reads: Option<&mut RecoveryReads>) -> (Option<Checkpoint>, u64) {
        let area = self.area();
        for block in (0..2).flat_map(|half| area.blocks(half)).collect::<Vec<_>>() {
            let state = media.flash.blocks.get(block);
            area.set_given(block, if state.torn { 0 } else { state.programmed });
        }
        let Read { pages, damaged, newest, half_of } = self.read_area(media, reads);
        let chain = from_pages(&pages, damaged);
        let began = pages.iter().map(|page| page.head.since + u64::from(page.head.count));
        let area = self.area();
        area.current = half_of.get(&chain.last).copied().unwrap_or(0);
        (area.last, area.next_number, area.misleads) = (chain.last, chain.highest + 1, chain.misleads);
        (area.newest, area.previous, area.set, area.erasing) = (None, None, None, 0);
        (area.wanted, area.needs_all, area.is_given_up) = (Wanted::Nothing, true, false);
        area.waiting.clear();
        area.hashes.clear();
        area.counted.fill(false);
        (chain.checkpoint, began.max().unwrap_or(0).max(newest))
    }

    /// Reads the half whose sets are newer, and the other one if that has no checkpoint that is whole.
    fn read_area(&self, media: &Media, mut reads: Option<&mut RecoveryReads>) -> Read {
        let area = self.area.as_ref().expect("the drive writes checkpoints");
        let mut charge = |place: Place| {
            if let Some(reads) = reads.as_deref_mut() {
                reads.page(place);
            }
        };
        let good = |half: usize| {
            let state = |block: &BlockId| *media.flash.blocks.get(*block);
            area.blocks(half).filter(move |block| !state(block).bad && !state(block).torn)
        };
        let written = |block: BlockId| media.flash.blocks.get(block).programmed;
        let mut halves = [Read::default(), Read::default()];
        let mut all_clear = true;
        for (half, read) in (0..).zip(&mut halves) {
            let mut any_written = false;
            for block in good(half) {
                let first = Place { block, page: 0 };
                charge(first);
                if written(block) > 0 {
                    read.take(media, half, first, area.drive);
                    any_written = true;
                }
            }
            all_clear &= read.damaged == 0 && (!any_written || !read.pages.is_empty());
        }
        let mut read_rest = |half: usize, read: &mut Read| {
            for block in good(half).filter(|block| written(*block) > 0) {
                for page in 1..written(block) {
                    let place = Place { block, page };
                    charge(place);
                    read.take(media, half, place, area.drive);
                }
                if written(block) < media.pages_per_block() {
                    charge(Place { block, page: written(block) });
                }
            }
        };
        let highest = |read: &Read| read.pages.iter().map(|page| page.head.number).max().unwrap_or(0);
        let newer = usize::from(highest(&halves[1]) > highest(&halves[0]));
        read_rest(newer, &mut halves[newer]);
        let is_enough = all_clear && from_pages(&halves[newer].pages, halves[newer].damaged).checkpoint.is_some();
        if is_enough {
            let newest = halves[0].newest.max(halves[1].newest);
            let [first, second] = halves;
            return Read { newest, ..if newer == 0 { first } else { second } };
        }
        read_rest(1 - newer, &mut halves[1 - newer]);
        let [first, second] = halves;
        first.both(second)
    }

    /// Takes the map of a checkpoint; `None` if it is none of this drive.
    fn take_map(&mut self, media: &Media, checkpoint: &Checkpoint) -> Option<Loaded> {
        let geometry = media.flash.geometry();
        let (pages, per_page) = (self.table.pages(), slots_per_page(geometry.page_bytes));
        let all = geometry.pages() * u64::from(self.units_per_page);
        let state = &checkpoint.state;
        let mut settled = state.settled.clone();
        let is_settled = |settled: &[bool], unit: UnitId| settled[media.block_of(unit).index()];
        let is_log = |(number, unit): &(u32, u32)| {
            (*number as usize) < self.log.units.len() && u64::from(*unit) < all && is_settled(&settled, UnitId(*unit))
        };
        if settled.len() != geometry.blocks() as usize || !state.log_units.iter().all(is_log) {
            return None;
        }
        let mut loaded = Loaded { since: checkpoint.head.since, ..Loaded::default() };
        let mut slots: Vec<(Slot, u32)> = Vec::with_capacity(pages * per_page);
        for page in 0..pages as u32 {
            let halves = match checkpoint.map.get(&page) {
                Some(halves) => halves.as_slice(),
                None if seeded(Bug::TornCheckpointTaken) => &[],
                None => return None,
            };
            let (of_page, _) = halves.as_chunks::<SLOT_HALVES>();
            let slots_of_page = (0..per_page).map(|at| of_page.get(at).copied().unwrap_or([Lpn::NONE.0; SLOT_HALVES]));
            for [owner, unit, last] in slots_of_page {
                if owner == Lpn::NONE.0 {
                    slots.push((Slot::default(), 0));
                    continue;
                }
                let (lpn, unit, copies) = (unmarked(Lpn(owner)), UnitId(unit), last & COPIES);
                let is_absent = unit == UnitId::NONE;
                if lpn.0 >= self.logical_units || !is_absent && u64::from(unit.0) >= all {
                    return None;
                }
                let known = Known { absent: is_absent, told: last & TOLD != 0, cleaned: last & CLEANED != 0 };
                if known != Known::default() {
                    loaded.known.insert(lpn.0, known);
                }
                if last & LOST != 0 {
                    loaded.lost.insert(unit);
                }
                slots.push((Slot { lpn, unit, copies, clean: owner & CLEAN != 0 && !is_absent }, copies));
            }
        }
        if !self.table.load(slots.into_iter()) {
            return None;
        }
        for (block, owners) in &checkpoint.erased {
            let is_named = settled.get_mut(*block as usize)?;
            if std::mem::replace(is_named, false) && !owners.iter().all(|lpn| self.table.take_settled(Lpn(*lpn))) {
                return None;
            }
        }
        self.table.keep_where(|unit| is_settled(&settled, unit));
        loaded.log_units = state.log_units.iter().map(|(number, unit)| (*number, UnitId(*unit))).collect();
        loaded.log_units.retain(|(_, unit)| is_settled(&settled, *unit));
        loaded.hidden.clone_from(&state.hidden);
        loaded.settled = settled;
        Some(loaded)
    }

    /// What a checkpoint says of units in settled blocks is what their lists, or their OOB areas, say.
    pub(in crate::ftl::ssc) fn check_loaded(&self, media: &Media, loaded: &Loaded) {
        for slot in self.table.all().filter(|slot| slot.unit != UnitId::NONE) {
            let owner = media.flash.oob.lpn(slot.unit);
            assert_eq!(
                unmarked(owner),
                slot.lpn,
                "a checkpoint has a block at unit {}, whose owner is {owner}",
                slot.unit
            );
            let is_lost = media.flash.oob.is_poisoned(slot.unit);
            assert_eq!(loaded.lost.contains(&slot.unit), is_lost, "unit {} is lost, or is not", slot.unit);
        }
    }
}

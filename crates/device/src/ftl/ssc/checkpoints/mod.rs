//! Checkpoints of the map (Getting Real, section 3.3.2): what recovery need not read all lists of owners for.
//!
//! At a flush, standby and idle the map goes to an area of blocks that nothing else uses, the first ones of each plane: all of it
//! (`ftl.map_checkpoint = "full"`), or the pages of it that changed (`"changed"`). The log is written as without checkpoints, so a drive
//! whose checkpoints are lost recovers from lists and log; a checkpoint is only a shorter way to the same map.
//!
//! - **Settled blocks.** A checkpoint names the blocks that are written from end to end, and whose contents nothing supersedes that is not
//!   on flash yet. Recovery reads all other blocks, and of these nothing: the map of the checkpoint says which of their copies are
//!   current, and how many copies of each address they hold.
//! - **Erase.** Before a settled block is erased, a *record* of what it holds copies of goes to the area: recovery takes these off,
//!   and reads the block as any other. Emptied blocks wait for their records, and one record takes all that wait.
//! - **Generations.** The one before the newest counts until another one is whole: records are of blocks that either calls settled.
//! - **Room.** A set that finds no room in its half begins the other one, which is erased for it, with a whole map. If blocks of the area
//!   have gone bad and no map fits, a set that says so ends all checkpoints, and recovery is that of `"log"`.
//!
//! `page.rs` has the format, `area.rs` the blocks, `chain.rs` what their pages make together, `load.rs` how a map comes back.

mod area;
mod chain;
mod load;
mod page;

use std::collections::BTreeMap;

use ssdlab_flash::{BlockId, Lpn, UnitId};

pub(super) use self::area::Area;
use self::area::{Said, SetInFlight, Wanted};
use self::chain::{State, record_halves};
pub(super) use self::load::Loaded;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use self::page::checkpoint_from_bytes;
pub(super) use self::page::slots_per_page;
use self::page::{Body, Head, Kind, Page, SLOT_HALVES, halves_per_page};
use super::log::IN_SRAM;
use super::table::Slot;
use super::{CLEAN, Ssc};
use crate::ftl::Checkpoints;
use crate::media::{Media, Place, checksum};
use crate::seeded::{Bug, seeded};

/// In the last half of a slot, above the copies in settled blocks: the note that says what the slot does is on flash.
const TOLD: u32 = 1 << 31;

/// The block was cleaned after it had been written.
const CLEANED: u32 = 1 << 30;

/// The data of the copy was lost before it was written.
const LOST: u32 = 1 << 29;

const COPIES: u32 = LOST - 1;

impl Checkpoints for Ssc {
    fn save_map(&mut self, media: &mut Media) {
        self.settle_erased(media);
        if let Some(area) = &mut self.area
            && !area.is_given_up
            && area.wanted == Wanted::Nothing
        {
            area.wanted = Wanted::Checkpoint;
            self.write_checkpoints(media);
        }
    }

    fn programmed(&mut self, media: &mut Media, place: Place, failed: bool) {
        self.page_ended(media, place, failed);
        self.write_checkpoints(media);
    }

    fn erased(&mut self, media: &mut Media, block: BlockId) {
        self.block_ended(block);
        self.write_checkpoints(media);
    }
}

impl Ssc {
    fn area(&mut self) -> &mut Area {
        self.area.as_mut().expect("the drive writes checkpoints")
    }

    /// A victim is empty. Where a checkpoint says what it holds, its erase waits for a record.
    pub(super) fn erase_is_near(&mut self, media: &mut Media, victim: u32, owners: &[Lpn]) {
        let Some(area) = &mut self.area else { return };
        if std::mem::replace(&mut area.counted[victim as usize], false) {
            owners.iter().for_each(|lpn| self.table.drop_settled(*lpn));
        }
        if !area.awaits_record(victim) || seeded(Bug::ErasedWithoutRecord) {
            return;
        }
        area.waiting.push((victim, owners.iter().map(|lpn| lpn.0).collect()));
        media.pool.pin(BlockId(victim));
        media.held_for_checkpoint += 1;
        self.write_checkpoints(media);
    }

    fn release_victim(&mut self, media: &mut Media, victim: u32) {
        assert!(media.held_for_checkpoint > 0, "block {victim} waited for a record, and none does");
        media.held_for_checkpoint -= 1;
        media.unpin(BlockId(victim));
    }

    /// Begins what is to be written next, as long as nothing is on its way: records, then a checkpoint.
    fn write_checkpoints(&mut self, media: &mut Media) {
        while !self.area().is_busy() {
            self.release_unnamed(media);
            let area = self.area();
            let has_records = !area.waiting.is_empty();
            if has_records && area.misleads {
                area.wanted = Wanted::OtherHalf;
            }
            let goes_on = match area.wanted {
                Wanted::OtherHalf => self.begin_half(media),
                _ if has_records => self.write_record(media),
                Wanted::Checkpoint => self.write_checkpoint(media),
                Wanted::Nothing => false,
            };
            if !goes_on {
                if let Some(token) = self.promise.take() {
                    media.metadata.end(token);
                }
                return;
            }
        }
        // Who waits for metadata waits for what is still to begin.
        if self.area().wanted != Wanted::Nothing && self.promise.is_none() {
            self.promise = Some(media.metadata.begin());
        }
    }

    /// Emptied blocks that no checkpoint names wait no longer.
    fn release_unnamed(&mut self, media: &mut Media) {
        let area = self.area();
        let (named, unnamed): (Vec<_>, Vec<_>) =
            std::mem::take(&mut area.waiting).into_iter().partition(|(block, _)| area.names(*block));
        area.waiting = named;
        unnamed.into_iter().for_each(|(block, _)| self.release_victim(media, block));
    }

    /// Writes a record of all emptied blocks that wait, or makes room for it. Always goes on.
    fn write_record(&mut self, media: &mut Media) -> bool {
        let page_bytes = media.flash.geometry().page_bytes;
        let area = self.area();
        let bodies = parts(&record_halves(&area.waiting), page_bytes);
        let current = area.current;
        if area.room(media, current) < bodies.len() {
            area.wanted = Wanted::OtherHalf;
            return true;
        }
        let waiting = std::mem::take(&mut area.waiting);
        self.write_set(media, Kind::Record, current, bodies, Said::Erased(waiting));
        true
    }

    /// Writes a checkpoint where sets follow each other, or makes room for one. Always goes on.
    fn write_checkpoint(&mut self, media: &mut Media) -> bool {
        let settled = self.settled(media);
        let any_changed = self.table.changed().contains(&true);
        let area = self.area();
        if !any_changed && !area.needs_all && area.newest.as_ref() == Some(&settled) {
            area.wanted = Wanted::Nothing;
            return true;
        }
        let kind = if area.writes_all || area.needs_all || area.newest.is_none() { Kind::Full } else { Kind::Changed };
        let bodies = self.bodies(media, kind, &settled);
        let area = self.area();
        let current = area.current;
        if area.room(media, current) < bodies.len() {
            area.wanted = Wanted::OtherHalf;
            return true;
        }
        area.wanted = Wanted::Nothing;
        self.write_set(media, kind, current, bodies, Said::Settled(settled));
        true
    }

    /// Erases the other half, and writes a whole map there; if none fits, a set that says that no checkpoint counts any more. Returns
    /// whether it goes on.
    fn begin_half(&mut self, media: &mut Media) -> bool {
        let half = 1 - self.area().current;
        let used: Vec<BlockId> = self.area().blocks(half).filter(|block| is_used(media, *block)).collect();
        if !used.is_empty() {
            self.erase_half(media, &used);
            return true;
        }
        let settled = self.settled(media);
        let bodies = self.bodies(media, Kind::Full, &settled);
        let area = self.area();
        area.wanted = Wanted::Nothing;
        let room = area.room(media, half);
        if bodies.len() <= room && !area.is_given_up {
            self.write_set(media, Kind::Full, half, bodies, Said::Settled(settled));
            return true;
        }
        area.is_given_up = true;
        if room == 0 || area.newest.is_none() && !area.misleads {
            return false;
        }
        self.write_set(media, Kind::Void, half, vec![Body::Part(Vec::new())], Said::Nothing);
        true
    }

    fn erase_half(&mut self, media: &mut Media, used: &[BlockId]) {
        self.area().erasing = used.len() as u32;
        for block in used {
            if media.flash.blocks.get(*block).suspect {
                media.flash.retire(*block);
                self.block_ended(*block);
                continue;
            }
            self.counters.checkpoint_erases += 1;
            if let Some(failed) = media.erase_checkpoint(*block) {
                if failed {
                    media.flash.retire(*block);
                }
                self.block_ended(*block);
            }
        }
    }

    fn block_ended(&mut self, block: BlockId) {
        let area = self.area();
        assert!(area.erasing > 0, "block {block} of the area was erased, and was not asked for");
        area.erasing -= 1;
        area.set_given(block, 0);
    }

    /// Programs the pages of a set.
    fn write_set(&mut self, media: &mut Media, kind: Kind, half: usize, bodies: Vec<Body>, said: Said) {
        let since = media.sequence();
        let area = self.area();
        assert!(!area.is_busy(), "one set is written at a time");
        let number = area.next_number;
        area.next_number += 1;
        assert!(area.last < number, "set {number} follows set {}", area.last);
        let oldest = match kind {
            Kind::Full | Kind::Changed if area.newest.is_some() => area.newest_number,
            Kind::Full | Kind::Changed | Kind::Void => number,
            Kind::Record => area.oldest,
        };
        let count = bodies.len() as u32;
        assert!(count > 0, "set {number} has no page");
        assert!(oldest <= number, "records lead from checkpoint {oldest} to set {number}");
        let head = Head { kind, number, before: area.last, oldest, drive: area.drive, since, count };
        area.set = Some(SetInFlight { head, half, pages: BTreeMap::new(), is_given_up: false, said });
        if kind.has_map() {
            self.table.set_written();
            self.counters.checkpoints += 1;
        }
        let mut failed: Vec<Place> = Vec::new();
        for (place, body) in (0..).zip(bodies) {
            match body {
                Body::Map { .. } => self.counters.checkpoint_map_pages += 1,
                Body::Part(_) if kind == Kind::Record => self.counters.checkpoint_record_pages += 1,
                Body::Part(_) => self.counters.checkpoint_state_pages += 1,
            }
            failed.extend(self.program_page(media, Page { head, place, body }));
        }
        // Without time all has ended; a page that failed goes elsewhere, as often as it takes.
        while let Some(place) = failed.pop() {
            failed.extend(self.program_again(media, place));
        }
        self.set_may_end(media);
    }

    /// Programs a page of the set on its way; returns where, if that failed at once.
    fn program_page(&mut self, media: &mut Media, page: Page) -> Option<Place> {
        let area = self.area();
        let half = area.set_in_flight().half;
        let Some(place) = area.take(media, half) else {
            area.set_in_flight().is_given_up = true;
            return None;
        };
        let words = page.words();
        let pages = &mut area.set_in_flight().pages;
        match media.program_checkpoint(place, words) {
            Some(false) => None,
            ended => {
                pages.insert((place.block, place.page), page);
                ended.map(|_| place)
            }
        }
    }

    /// The program of a page failed: it goes to another block.
    fn program_again(&mut self, media: &mut Media, place: Place) -> Option<Place> {
        let area = self.area();
        area.spend(place.block);
        let page = area.set_in_flight().pages.remove(&(place.block, place.page));
        self.program_page(media, page.expect("a page that failed is one of its set"))
    }

    fn page_ended(&mut self, media: &mut Media, place: Place, failed: bool) {
        if failed {
            let at_once = self.program_again(media, place);
            assert_eq!(at_once, None, "a program that takes time does not fail at once");
        } else {
            let page = self.area().set_in_flight().pages.remove(&(place.block, place.page));
            assert!(page.is_some(), "a page at {place:?} was programmed for no set");
        }
        self.set_may_end(media);
    }

    /// If no page of the set is on its way any more, what waited for it goes on.
    fn set_may_end(&mut self, media: &mut Media) {
        let area = self.area();
        if !area.set_in_flight().pages.is_empty() {
            return;
        }
        let set = area.set.take().expect("it was seen just now");
        if set.is_given_up {
            return self.set_is_lost(set);
        }
        assert!(area.last < set.head.number, "set {} is whole before set {}", area.last, set.head.number);
        area.last = set.head.number;
        area.oldest = set.head.oldest;
        match set.said {
            Said::Settled(settled) => {
                area.current = set.half;
                area.newest_number = set.head.number;
                area.previous = area.newest.replace(settled);
                (area.needs_all, area.misleads) = (false, false);
            }
            Said::Erased(blocks) => {
                for (block, _) in blocks {
                    self.area().settles_no_more(block);
                    self.release_victim(media, block);
                }
            }
            Said::Nothing => {
                area.current = set.half;
                (area.newest, area.previous, area.misleads) = (None, None, false);
            }
        }
    }

    /// A set did not find enough pages whose programs succeed: the other half takes a whole map in its stead. If that is the one that did
    /// not find them, there are no more checkpoints.
    fn set_is_lost(&mut self, set: SetInFlight) {
        let area = self.area();
        area.needs_all = true;
        if set.half == area.current {
            area.wanted = Wanted::OtherHalf;
        } else {
            area.is_given_up = true;
        }
        if let Said::Erased(blocks) = set.said {
            area.waiting.extend(blocks);
        }
    }

    /// Which blocks are settled now.
    fn settled(&self, media: &Media) -> Vec<bool> {
        let is_settled = |block: u32| media.is_settled(block) && !self.emptied.contains_key(&block);
        (0..media.flash.geometry().blocks()).map(is_settled).collect()
    }

    /// Counts copies in the blocks that a checkpoint is to call settled.
    fn count_settled(&mut self, media: &Media, settled: &[bool]) {
        let counted = std::mem::replace(&mut self.area().counted, settled.to_vec());
        assert_eq!(counted.len(), settled.len(), "each block is settled or not");
        for (block, (was, is)) in (0..).zip(counted.iter().zip(settled)).filter(|(_, (was, is))| was != is) {
            for lpn in self.owners_in(media, BlockId(block)) {
                match (was, is) {
                    (false, true) => self.table.add_settled(lpn),
                    _ => self.table.drop_settled(lpn),
                }
            }
        }
    }

    /// What the pages of a checkpoint hold: the map, or the pages of it that changed, and what is beside it.
    fn bodies(&mut self, media: &mut Media, kind: Kind, settled: &[bool]) -> Vec<Body> {
        self.count_settled(media, settled);
        let is_written = |(_, changed): &(u32, &bool)| kind == Kind::Full || **changed;
        let pages: Vec<u32> = (0..).zip(self.table.changed()).filter(is_written).map(|(page, _)| page).collect();
        let of_page = |page: &u32| {
            let slots = self.table.page(*page as usize);
            let halves = slots.flat_map(|(slot, settled)| self.slot_halves(media, &slot, settled)).collect();
            Body::Map { page: *page, halves }
        };
        let mut bodies: Vec<Body> = pages.iter().map(of_page).collect();
        assert!(bodies.len() <= self.table.pages(), "{} pages of a map of {}", bodies.len(), self.table.pages());
        if cfg!(debug_assertions) {
            self.check_unwritten(&pages);
        }
        let geometry = media.flash.geometry();
        let (page_bytes, slots) = (geometry.page_bytes, pages.len() * slots_per_page(geometry.page_bytes));
        bodies.extend(parts(&self.state(media, settled).halves(), page_bytes));
        media.look_up(slots as u32);
        bodies
    }

    /// Pages of the map that are not written are as they were when they were. Too slow for long runs.
    fn check_unwritten(&mut self, written: &[u32]) {
        let hash = |page: usize| {
            let of_slot = |(slot, settled): (Slot, u32)| [slot.lpn.0, slot.unit.0, settled].map(u64::from);
            checksum(&self.table.page(page).flat_map(of_slot).collect::<Vec<u64>>())
        };
        let hashes: Vec<u32> = (0..self.table.pages()).map(hash).collect();
        let before = std::mem::replace(&mut self.area().hashes, hashes.clone());
        for (page, hash) in hashes.iter().enumerate() {
            let is_known = written.contains(&(page as u32)) || before.is_empty() || seeded(Bug::ChangedPageForgotten);
            assert!(is_known || before[page] == *hash, "page {page} of the map changed, and is not written");
        }
    }

    /// A slot as a checkpoint has it.
    fn slot_halves(&self, media: &Media, slot: &Slot, settled: u32) -> [u32; SLOT_HALVES] {
        if slot.lpn == Lpn::NONE {
            return [Lpn::NONE.0, UnitId::NONE.0, 0];
        }
        assert!(settled <= COPIES, "{settled} copies of block {} are in settled blocks", slot.lpn);
        let fact = self.log.facts.get(&slot.lpn.0);
        let is_told = fact.is_some_and(|fact| {
            fact.home != IN_SRAM && media.is_durable(media.page_of(self.log.units[fact.home as usize].unit))
        });
        if slot.unit == UnitId::NONE {
            return [slot.lpn.0, UnitId::NONE.0, settled | if is_told { TOLD } else { 0 }];
        }
        // Of a block that was cleaned, a note says so, and not its copy: it is clean when the note is on flash.
        let is_cleaned = fact.is_some_and(|fact| fact.clean && fact.floor == Some(media.sequence_of(slot.unit)));
        let clean = if slot.clean && (!is_cleaned || is_told) { CLEAN } else { 0 };
        let cleaned = if is_cleaned && is_told { CLEANED } else { 0 };
        let lost = if media.flash.oob.is_poisoned(slot.unit) { LOST } else { 0 };
        [slot.lpn.0 | clean, slot.unit.0, settled | cleaned | lost]
    }

    fn state(&self, media: &Media, settled: &[bool]) -> State {
        let in_use = (0..).zip(&self.log.units).filter(|(_, of_log)| of_log.unit != UnitId::NONE);
        let log_units = in_use.map(|(number, of_log)| (number, of_log.unit));
        let is_settled = |(_, unit): &(u32, UnitId)| settled[media.block_of(*unit).index()];
        let hides = |(lpn, _): &(u32, u64)| {
            let slot = self.table.slot(Lpn(*lpn));
            slot.is_some_and(|slot| slot.unit != UnitId::NONE && !media.is_durable(media.page_of(slot.unit)))
        };
        let floors = self.log.facts.iter().filter_map(|(lpn, fact)| fact.floor.map(|floor| (*lpn, floor)));
        let mut hidden: Vec<(u32, u64)> = floors.filter(hides).collect();
        hidden.sort_unstable();
        State {
            settled: settled.to_vec(),
            log_units: log_units.filter(is_settled).map(|(number, unit)| (number, unit.0)).collect(),
            hidden,
        }
    }

    /// Erases of the block of the area that was erased most.
    pub(super) fn checkpoint_wear(&self, media: &Media) -> Option<u32> {
        let area = self.area.as_ref()?;
        let blocks = (0..2).flat_map(|half| area.blocks(half));
        blocks.map(|block| media.flash.blocks.get(block).erases).max()
    }
}

/// Halves as parts of pages.
fn parts(halves: &[u32], page_bytes: u32) -> Vec<Body> {
    halves.chunks(halves_per_page(page_bytes)).map(|part| Body::Part(part.to_vec())).collect()
}

/// Whether a block of the area has to be erased before it takes a page.
fn is_used(media: &Media, block: BlockId) -> bool {
    let state = media.flash.blocks.get(block);
    !state.bad && (state.programmed > 0 || state.torn)
}

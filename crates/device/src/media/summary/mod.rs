//! Lists of owners in place of OOB areas: the last page of each block says which logical units are in the pages before it.
//!
//! Without OOB areas (Getting Real, 3.3.2) a page that is on flash is not yet found again after a power cut: only a list that
//! covers it makes it so. A block's last page is kept for its list. Where a flush, a FUA write or an erase cannot wait until the
//! block is full, an *early list* goes to the next page of the open block; it covers the pages before it.
//!
//! - **Order.** A list is programmed behind the pages that it covers, in their block and in their queue, so all of them have ended
//!   when it begins. What the firmware learns up to then still goes into it: a page whose program failed has no owners there.
//! - **Pins.** A block that holds what a page superseded is not erased before a list names that page: a list on flash names
//!   the old copy, and a power cut would lose both. So blocks that are emptied wait for the lists of open blocks.
//!   Where nothing else can free a block, those lists are written early ([`Media::list_for_space`]).
//! - **Failures.** If the program of a list fails, the next page of its block takes another one. A block without such a page keeps
//!   its pins until all that is valid in it was moved, and lists name the copies.
//! - **Generations.** Of two lists the numbers of their pages' programs say which copy of a unit is newer. A list is in the block
//!   that it describes, so an erase takes both; it also carries the number of the block's opening, and a checksum.
//! - **Lost data.** A unit whose data was lost has a mark in its list, and nowhere else.
//!
//! `list.rs` has the format, `barriers.rs` what waits for lists, `space.rs` how they hold up and free blocks, `recovery.rs` what recovery
//! reads, `model.rs` the reference model.

mod barriers;
mod list;
#[cfg(test)]
mod model;
mod recovery;
mod space;

use std::collections::{BTreeMap, VecDeque};

use rustc_hash::FxHashSet;
use ssdlab_flash::{BlockId, Cause, Class, Lpn, NONE, OpKind, Ppn, Submit, UnitId};

use self::list::ListedPage;
pub(crate) use self::list::{List, checksum};
use super::frontier::CLOSED;
use super::{Frontier, Media, Place, Programming};
use crate::seeded::{Bug, seeded};
use crate::waiter::Waiter;
use crate::{DriveConfig, Owners};

/// What results call the memory of the lists of open blocks.
pub(crate) const OWNER_LISTS: &str = "owner_list_bytes";

/// What is known of the lists of a drive.
pub(crate) struct Summary {
    /// By block.
    listed: Vec<Listed>,
    /// Blocks with pages that no list on flash names: those that are open, and few others.
    unlisted: BTreeMap<BlockId, Unlisted>,
    /// By superblock: pins that lists hold.
    pins: Vec<u32>,
    barriers: BTreeMap<u32, Barrier>,
    next_barrier: u32,
    /// Pages whose programs failed and whose units are not on flash elsewhere, and the barriers that wait for that, too.
    failed: BTreeMap<Ppn, Vec<u32>>,
    /// A block whose last page of data was given out: its list follows the program of that page.
    due: BlockId,
    /// Commands whose lists are on flash.
    ended: Vec<u32>,
    /// Lists programmed since counters began.
    counters: ListCounters,
}

/// Lists since counters began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ListCounters {
    /// Lists of blocks that are full.
    pub(crate) full: u64,
    /// Early ones.
    pub(crate) early: u64,
    /// Lists that collection read.
    pub(crate) read: u64,
}

/// What lists on flash say of a block.
#[derive(Clone, Copy, Debug)]
struct Listed {
    /// Pages from the first on that the newest list covers.
    pages: u32,
    /// The page of the newest list; [`NONE`] without one.
    list: u32,
}

const NO_LIST: Listed = Listed { pages: 0, list: NONE };

/// A block with pages that no list on flash names.
#[derive(Default)]
struct Unlisted {
    /// Pages that were given out.
    pages: u32,
    /// Pages up to the last that the host, or a record of trims, is waiting for: what is behind was moved here, and is where it
    /// was as well.
    of_host: u32,
    /// Relocation's queue of the die takes its programs.
    relocates: bool,
    /// Blocks with older copies of what was written since the last list, each pinned once.
    pins: FxHashSet<BlockId>,
    in_flight: VecDeque<ListInFlight>,
    /// Pages that have to be named, and the barrier that waits for it.
    waiting: Vec<(u32, u32)>,
    /// All that was valid in it was moved. No list will name its pages.
    emptied: bool,
}

/// A list on its way.
struct ListInFlight {
    page: u32,
    /// Blocks that the pages which it covers superseded, and no list before it.
    pins: FxHashSet<BlockId>,
}

/// What waits for lists.
struct Barrier {
    /// Blocks whose lists are still to come.
    left: u32,
    then: AfterLists,
}

/// What follows when lists are on flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterLists {
    /// A superblock loses a pin.
    Unpin(u32),
    /// A command ends.
    End(u32),
    /// A command may find room.
    Room,
    /// An emptied block whose list failed is forgotten.
    Forget(BlockId),
}

/// Which pages a command has to find listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promised {
    /// All that the host wrote, and records of trims.
    Everything,
    /// Copies of the units of a range.
    Units(Lpn, Lpn),
}

impl Summary {
    /// Nothing is written.
    pub(super) fn new(blocks: u32) -> Summary {
        Summary {
            listed: vec![NO_LIST; blocks as usize],
            unlisted: BTreeMap::new(),
            pins: vec![0; blocks as usize],
            barriers: BTreeMap::new(),
            next_barrier: 0,
            failed: BTreeMap::new(),
            due: BlockId::NONE,
            ended: Vec::new(),
            counters: ListCounters::default(),
        }
    }
}

impl Summary {
    /// Whether the newest list of a block is on flash and in a page, and names all pages before that.
    pub(super) fn is_listed(&self, block: BlockId, page: u32) -> bool {
        let Listed { pages, list } = self.listed[block.index()];
        (pages, list) == (page, page) && !self.unlisted.contains_key(&block)
    }
}

impl Media {
    /// Whether lists name the owners of units, and not OOB areas.
    #[inline]
    pub(crate) const fn lists_owners(&self) -> bool {
        self.summary.is_some()
    }

    fn summary(&mut self) -> &mut Summary {
        self.summary.as_mut().expect("the drive lists owners")
    }

    /// Whether a power cut leaves a page, and recovery finds it: it is on flash, and where lists name the owners one does.
    #[inline]
    pub(crate) fn is_durable(&self, ppn: Ppn) -> bool {
        let is_listed = |summary: &Summary| {
            let place = self.place_of_page(ppn);
            place.page < summary.listed[place.block.index()].pages
        };
        self.is_on_flash(ppn) && self.summary.as_deref().is_none_or(is_listed)
    }

    /// Lists since counters began, where there are lists.
    pub(crate) fn list_counters(&self) -> Option<ListCounters> {
        self.summary.as_ref().map(|summary| summary.counters)
    }

    /// Counters of lists by name, for results; nothing without lists.
    pub(crate) fn list_metrics(&self) -> impl Iterator<Item = (String, f64)> + use<> {
        let counted = self.list_counters().into_iter();
        counted
            .flat_map(|lists| [("lists", lists.full), ("early_lists", lists.early), ("lists_read", lists.read)])
            .map(|(name, count)| (name.to_string(), count as f64))
    }

    /// Forgets what was counted.
    pub(crate) fn reset_list_counters(&mut self) {
        if let Some(summary) = &mut self.summary {
            summary.counters = ListCounters::default();
        }
    }

    // ---- programs and their lists ----

    /// A frontier gave out its last page of data: the list follows.
    pub(super) fn list_is_due(&mut self, block: BlockId) {
        let summary = self.summary();
        assert_eq!(summary.due, BlockId::NONE, "the list of block {} was not written", summary.due);
        summary.due = block;
    }

    /// A page of data was programmed, and superseded what `write.pins` hold. If it was the last of its block, the list follows.
    pub(super) fn list_goes_on(&mut self, place: Place, write: &Programming<'_>) {
        let separate = self.separate_gc;
        let Some(summary) = &mut self.summary else { return };
        let unlisted = summary.unlisted.entry(place.block).or_default();
        assert!(place.page >= unlisted.pages, "{place:?} is programmed behind page {}", unlisted.pages);
        unlisted.pages = place.page + 1;
        unlisted.relocates = write.frontier == Frontier::Gc && separate;
        if write.frontier != Frontier::Gc || write.cause == Cause::Metadata {
            unlisted.of_host = place.page + 1;
        }
        if !seeded(Bug::EraseDoesNotWait) && !seeded(Bug::EraseBeforeList) {
            for pin in write.pins.iter().filter(|pin| **pin != place.block) {
                if unlisted.pins.insert(*pin) {
                    self.pool.pin(*pin);
                    summary.pins[pin.index()] += 1;
                }
            }
        }
        if std::mem::replace(&mut summary.due, BlockId::NONE) == place.block {
            summary.counters.full += 1;
            self.program_list(Place { block: place.block, page: place.page + 1 });
        }
    }

    /// What was moved to a page is not named where it was: a flush waits for the list of this one.
    pub(crate) fn is_only_copy(&mut self, place: Place) {
        if let Some(unlisted) = self.summary().unlisted.get_mut(&place.block) {
            unlisted.of_host = unlisted.of_host.max(place.page + 1);
        }
    }

    /// Programs the list of all pages before a page that was given out.
    fn program_list(&mut self, place: Place) {
        assert!(place.page > 0, "the list of block {} covers no page", place.block);
        assert!(!self.flash.is_written(place.block, place.page), "{place:?} takes a list, and is written");
        self.bind_list(place);
        let sequence = self.take_sequence(1);
        self.flash.oob.write(place.block, place.page, &[], sequence);
        let unlisted = self.summary().unlisted.entry(place.block).or_default();
        let pins = std::mem::take(&mut unlisted.pins);
        unlisted.in_flight.push_back(ListInFlight { page: place.page, pins });
        let class = if unlisted.relocates { Class::GcWrite } else { Class::HostWrite };
        let owner = Waiter::List(place.block.0);
        if !self.flash.timed() {
            let failed = self.flash.execute(OpKind::Program, Cause::Mapping, place.block, place.page);
            self.close_if_written(place.block);
            if failed {
                self.program_failed_now(place, Cause::Mapping, owner, &[]);
            } else {
                self.list_is_on_flash(place.block);
            }
            return;
        }
        let op = self.issue(Submit {
            kind: OpKind::Program,
            cause: Cause::Mapping,
            class,
            block: place.block,
            page: place.page,
            source: Ppn::NONE,
            bytes: self.unit_bytes * self.units_per_page,
            token: owner.pack(),
            pin: BlockId::NONE,
            waits_for: 0,
        });
        if self.units_per_page > 1 {
            self.remember_pins(op, &[]);
        }
    }

    /// Puts into the page of a list what is known of the pages before it.
    fn bind_list(&mut self, place: Place) {
        let Place { block, page: covered } = place;
        let opening = self.flash.oob.sequence(block, 0);
        assert!(covered <= self.data_pages_per_superblock, "the list of block {block} covers {covered} pages");
        let units = self.units_per_page;
        let mut list = List {
            block,
            opening,
            pages: Vec::with_capacity(covered as usize),
            owners: Vec::with_capacity((covered * units) as usize),
        };
        for page in 0..covered {
            let first = self.unit_at(Place { block, page });
            let failed = !self.flash.blocks.readable(first.page(units)) && !seeded(Bug::FailedPageListed);
            if failed {
                list.owners.resize(list.owners.len() + units as usize, Lpn::NONE);
            } else {
                list.owners.extend_from_slice(self.flash.oob.lpns(first, units));
            }
            let is_lost = |index: &u32| self.flash.oob.is_poisoned(first + *index) && !seeded(Bug::LostMarkNotListed);
            let lost = (0..units).filter(is_lost).fold(0, |bits, index| bits | 1 << index);
            list.pages.push(ListedPage { sequence: self.flash.oob.sequence(block, page), lost });
        }
        let first = self.unit_at(place);
        self.flash.oob.put_record(first, list.words());
    }

    /// The program of a page of data failed: lists on their way do not name it, and what waits until all that was moved out of a
    /// block is listed waits for what replaces it, too.
    pub(crate) fn page_failed(&mut self, place: Place) {
        let page = self.ppn_at(place);
        let Some(summary) = &mut self.summary else { return };
        if let std::collections::btree_map::Entry::Vacant(entry) = summary.failed.entry(page) {
            let forgets = |barrier: &&mut Barrier| matches!(barrier.then, AfterLists::Forget(_));
            let mut waiting = Vec::new();
            for (id, barrier) in &mut summary.barriers {
                if forgets(&barrier) {
                    barrier.left += 1;
                    waiting.push(*id);
                }
            }
            entry.insert(waiting);
        }
        self.relist(place);
    }

    /// The units of a page whose program failed are on flash elsewhere.
    pub(crate) fn failed_page_is_replaced(&mut self, page: Ppn) {
        let Some(waiting) = self.summary.as_mut().and_then(|summary| summary.failed.remove(&page)) else { return };
        let wanted = self.all_unlisted();
        for id in waiting {
            self.await_also(id, &wanted);
            self.one_less(id);
        }
    }

    /// Something has become known of a page: lists that cover it and are not on flash say so.
    pub(crate) fn relist(&mut self, place: Place) {
        let Some(summary) = &self.summary else { return };
        let Some(unlisted) = summary.unlisted.get(&place.block) else { return };
        let in_flight = unlisted.in_flight.iter().map(|list| list.page);
        let lists: Vec<u32> = in_flight.filter(|page| *page > place.page).collect();
        if !seeded(Bug::FailureNotRelisted) {
            lists.into_iter().for_each(|page| self.bind_list(Place { block: place.block, page }));
        }
    }

    /// The oldest list of a block that was on its way is on flash.
    pub(crate) fn list_is_on_flash(&mut self, block: BlockId) {
        let summary = self.summary();
        // Of an emptied block no list is waited for.
        let Some(unlisted) = summary.unlisted.get_mut(&block) else { return };
        let Some(list) = unlisted.in_flight.pop_front() else { return };
        let before = summary.listed[block.index()].pages;
        assert!(before < list.page, "the list of block {block} names {} pages, the one before it {before}", list.page);
        summary.listed[block.index()] = Listed { pages: list.page, list: list.page };
        let (named, waiting): (Vec<_>, Vec<_>) =
            unlisted.waiting.iter().copied().partition(|(pages, _)| *pages <= list.page);
        unlisted.waiting = waiting;
        if unlisted.pages <= list.page {
            assert!(unlisted.pins.is_empty(), "all pages of block {block} are listed, and it pins others");
            assert!(unlisted.waiting.is_empty(), "all pages of block {block} are listed, and something waits for it");
            assert!(unlisted.in_flight.is_empty(), "all pages of block {block} are listed, and a list is on its way");
            summary.unlisted.remove(&block);
        }
        list.pins.into_iter().for_each(|pin| self.release_listed(pin));
        named.into_iter().for_each(|(_, barrier)| self.one_less(barrier));
    }

    /// A superblock loses a pin that a list held.
    fn release_listed(&mut self, block: BlockId) {
        let pins = &mut self.summary().pins[block.index()];
        assert!(*pins > 0, "a list held a pin of block {block}");
        *pins -= 1;
        self.unpin(block);
    }

    /// The program of the oldest list of a block that was on its way failed. What waits for it waits for another one.
    pub(crate) fn list_failed(&mut self, block: BlockId) {
        if seeded(Bug::FailedListTrusted) {
            return self.list_is_on_flash(block);
        }
        let summary = self.summary();
        let Some(unlisted) = summary.unlisted.get_mut(&block) else { return };
        let Some(list) = unlisted.in_flight.pop_front() else { return };
        let held = unlisted.in_flight.front_mut().map_or(&mut unlisted.pins, |next| &mut next.pins);
        let twice: Vec<BlockId> = list.pins.into_iter().filter(|pin| !held.insert(*pin)).collect();
        twice.into_iter().for_each(|pin| self.release_listed(pin));
    }

    /// Writes the list of an open block into its next page; false if it has no page, or a list that is on its way covers all.
    fn list_early(&mut self, block: BlockId) -> bool {
        let Some(unlisted) = self.summary().unlisted.get(&block) else { return false };
        let covered = unlisted.in_flight.back().map_or(0, |list| list.page);
        if unlisted.pages <= covered {
            return false;
        }
        let Some(slot) = self.frontiers.iter().position(|open| open.block == block.0) else { return false };
        let page = self.frontiers[slot].next_page;
        assert!(page < self.data_pages_per_superblock, "block {block} is open, and page {page} is to be its last list");
        self.frontiers[slot].next_page += 1;
        // A page that could take nothing but a list is not wanted any more.
        if self.frontiers[slot].next_page == self.data_pages_per_superblock {
            self.pool.fill_up(block.0, page + 1);
            self.frontiers[slot] = CLOSED;
        }
        self.summary().counters.early += 1;
        self.program_list(Place { block, page });
        true
    }

    /// An open block is given up: its list goes to the next page. Returns how many pages of it were given out then.
    pub(super) fn list_abandoned(&mut self, slot: usize) {
        let block = BlockId(self.frontiers[slot].block);
        let page = self.frontiers[slot].next_page;
        let needs_list = self.summary.as_ref().is_some_and(|summary| {
            let covered = |unlisted: &Unlisted| unlisted.in_flight.back().map_or(0, |list| list.page);
            summary.unlisted.get(&block).is_some_and(|unlisted| unlisted.pages > covered(unlisted))
        });
        self.pool.fill_up(block.0, page + u32::from(needs_list));
        self.frontiers[slot] = CLOSED;
        if needs_list {
            self.summary().counters.early += 1;
            self.program_list(Place { block, page });
        }
    }

    // ---- collection ----

    /// The page with the newest list of a block; `None` where no list on flash is one of its.
    pub(crate) fn list_of(&self, block: BlockId) -> Option<Place> {
        let page = self.summary.as_ref()?.listed[block.index()].list;
        (page != NONE).then_some(Place { block, page })
    }

    /// Starts the read of the list of a victim; returns whether something has to be waited for. A list that cannot be read costs
    /// no more: the map in RAM has the owners, too.
    pub(crate) fn read_list(&mut self, victim: u32, cause: Cause, owner: Waiter) -> bool {
        let Some(place) = self.list_of(BlockId(victim)) else { return false };
        self.summary().counters.read += 1;
        if !self.flash.timed() {
            self.read_now(place, cause);
            return false;
        }
        let bytes = List::bytes(place.page, self.units_per_page).next_multiple_of(512) as u32;
        self.read_as(Class::GcRead, place, bytes.min(self.unit_bytes * self.units_per_page), cause, owner);
        true
    }

    /// A block was erased: no list is in it.
    pub(crate) fn forget_lists(&mut self, superblock: u32) {
        if let Some(summary) = &mut self.summary {
            assert_eq!(summary.pins[superblock as usize], 0, "block {superblock} was erased, and lists pin it");
            summary.listed[superblock as usize] = NO_LIST;
        }
    }

    /// What a power cut would interrupt now, by name.
    pub(crate) fn list_work(&self) -> Vec<&'static str> {
        let Some(summary) = &self.summary else { return Vec::new() };
        let mut work = Vec::new();
        let has = |test: &dyn Fn(BlockId, &Unlisted) -> bool| {
            summary.unlisted.iter().any(|(block, unlisted)| test(*block, unlisted))
        };
        let written = |block: BlockId| self.flash.blocks.get(block).programmed;
        if has(&|block, _| written(block) > summary.listed_of(block)) {
            work.push("page without a list");
        }
        if has(&|block, unlisted| {
            unlisted
                .in_flight
                .iter()
                .any(|list| list.page < self.data_pages_per_superblock && written(block) == list.page)
        }) {
            work.push("early list");
        }
        if has(&|block, unlisted| {
            unlisted
                .in_flight
                .iter()
                .any(|list| list.page == self.data_pages_per_superblock && written(block) == list.page)
        }) {
            work.push("last list of a block");
        }
        if has(&|block, _| self.flash.blocks.get(block).erases > 0) {
            work.push("list of a block used again");
        }
        work
    }

    /// The lists of open blocks, one for each write frontier, at most: what the controller keeps of them in RAM, in bytes.
    pub(crate) fn list_memory(&self) -> Option<(&'static str, u64)> {
        self.summary.as_ref()?;
        let lists = u64::from(self.pool.groups() * (self.streams + u32::from(self.separate_gc)));
        Some((OWNER_LISTS, lists * List::bytes(self.data_pages_per_superblock, self.units_per_page)))
    }

    /// The pages that lists on flash name, in the order of their places.
    pub(crate) fn listed_pages(&self) -> impl Iterator<Item = Place> + use<'_> {
        let listed = self.summary.iter().flat_map(|summary| (0..).map(BlockId).zip(&summary.listed));
        listed.flat_map(|(block, listed)| (0..listed.pages).map(move |page| Place { block, page }))
    }
}

/// Bytes of the simulator for the lists of a drive, the words of one in each block among them.
pub(crate) fn summary_bytes(config: &DriveConfig) -> u64 {
    let geometry = &config.flash.geometry;
    let words =
        List::bytes(geometry.pages_per_block - config.list_pages(), geometry.page_bytes / config.ftl.mapping_unit);
    let entry = size_of::<Listed>() as u64 + size_of::<u32>() as u64 + words;
    if config.ftl.owners == Owners::Summary { u64::from(geometry.blocks()) * 2 * entry } else { 0 }
}

impl Summary {
    /// Pages of a block that lists on flash name.
    fn listed_of(&self, block: BlockId) -> u32 {
        self.listed[block.index()].pages
    }
}

/// The units of a page.
fn units_of(media: &Media, place: Place) -> impl Iterator<Item = UnitId> + use<> {
    let first = media.unit_at(place);
    UnitId::each(first..first + media.units_per_page)
}

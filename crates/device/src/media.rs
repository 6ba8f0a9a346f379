//! What every FTL design builds on: the chips, the pool of blocks, the write frontiers, and the one way to program.
//!
//! Mapping is the design's; order, space, pins and counting are kept here, so that no design can get them wrong.

mod parity;

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use ssdlab_base::{Divider, Nanos, Rng, rng, saved};
use ssdlab_flash::{BlockId, Cause, Class, Done, Flash, Lpn, NONE, OpId, OpKind, Ppn, Submit, UnitId};

use crate::block_pool::{BlockKind, BlockPool, BlockState};
use crate::event_queue::EventQueue;
use crate::seeded::{Bug, seeded};
use crate::superblocks::Role;
use crate::token::Owner;
use crate::wakes::Wakes;
use crate::{DriveConfig, Options, Parity};

pub(crate) use parity::replace_cells;

/// Which frontier a page goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frontier {
    /// Host data of a stream.
    Host(u16),
    /// Relocations.
    Gc,
    /// Map pages, in blocks of their own.
    Map,
    /// Units whose names are not final, in blocks of their own.
    Log,
}

impl Frontier {
    /// Where what is valid in a block of a kind is moved.
    pub(crate) const fn of_relocation(kind: BlockKind) -> Frontier {
        match kind {
            BlockKind::Data => Frontier::Gc,
            BlockKind::Map => Frontier::Map,
            BlockKind::Log => Frontier::Log,
        }
    }

    /// The kind of blocks that it is on.
    const fn kind(self) -> BlockKind {
        match self {
            Frontier::Host(_) | Frontier::Gc => BlockKind::Data,
            Frontier::Map => BlockKind::Map,
            Frontier::Log => BlockKind::Log,
        }
    }
}

/// A write frontier: the superblock, and how many of its pages were given out.
#[derive(Clone, Copy, Debug)]
struct OpenBlock {
    block: u32,
    next_page: u32,
}

const CLOSED: OpenBlock = OpenBlock { block: NONE, next_page: 0 };

/// The first program of the row that a frontier fills on a die, and the last that became ready with it.
#[derive(Clone, Copy, Debug)]
struct Row {
    leader: OpId,
    last: OpId,
    place: Place,
}

const NO_ROW: Row = Row { leader: NONE, last: NONE, place: Place { block: BlockId::NONE, page: 0 } };

/// A page that was given out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// The block.
    pub(crate) block: BlockId,
    /// The page in it.
    pub(crate) page: u32,
}

saved!(Place: block, page);

/// A program that failed without time.
#[derive(Clone, Debug)]
pub(crate) struct FailedProgram {
    pub(crate) place: Place,
    pub(crate) cause: Cause,
    /// Who waits for it.
    pub(crate) owner: Owner,
    /// Blocks whose units it superseded; they are pinned, and its own is.
    pub(crate) pins: Vec<BlockId>,
}

/// What a program of one unit pins and takes beyond the first.
#[derive(Clone, Debug, Default)]
struct Several {
    pins: Vec<BlockId>,
    sources: Vec<UnitId>,
}

/// Chips, pool, frontiers.
pub(crate) struct Media {
    /// The chips.
    pub(crate) flash: Flash,
    /// The blocks.
    pub(crate) pool: BlockPool,
    /// Virtual time.
    pub(crate) now: Nanos,
    /// Randomness of the policies.
    pub(crate) rng: Rng,
    /// Mapping units in a page.
    pub(crate) units_per_page: u32,
    /// Bytes of a mapping unit.
    pub(crate) unit_bytes: u32,
    pages_per_block: u32,
    pages_per_superblock: u32,
    data_pages_per_superblock: u32,
    by_pages_per_block: Divider,
    by_units_per_page: Divider,
    /// Superblocks of each group that only relocation may open.
    pub(crate) gc_reserve: u32,
    /// The design opens blocks by itself: there are no frontiers.
    pub(crate) own_blocks: bool,
    separate_gc: bool,
    streams: u32,
    /// Frontiers of a group: of each stream, of relocation, of map pages where there are map blocks, and of a log.
    row: u32,
    frontiers: Vec<OpenBlock>,
    /// Pages of a frontier that power cuts left behind the others: they are given out first.
    gaps: Vec<VecDeque<(Place, Role)>>,
    /// By frontier, with parity: programs of the stripe that it fills which waited for reads when they were started.
    deferred_programs: Vec<Vec<(OpId, Place)>>,
    /// Pages that could not be read and were had from the rest of their stripe.
    pub(crate) rebuilt_pages: u64,
    /// Pages of open stripes that recovery has to read again for their parity.
    pub(crate) reread: Vec<Place>,
    /// The last page of host data left room in its row: pages that its die can program with it.
    pub(crate) host_row_open: bool,
    /// Where planes are to program together: the row that each frontier fills.
    rows: Vec<Row>,
    sequence: u64,
    /// Pins of programs that supersede units in several blocks, `units_per_page` a program.
    pin_table: Vec<BlockId>,
    /// Where the units of programs that wait for reads come from, `units_per_page` a program: [`UnitId::NONE`] where all is
    /// there.
    sources: Vec<UnitId>,
    /// Programs of pages of one unit that supersede, or are built from, more than one page.
    several: FxHashMap<OpId, Several>,
    /// Bytes of host pages programmed without data.
    pub(crate) padding_bytes: u64,
    /// Bytes of the pages of relocation that its units did not fill: a victim's last page is programmed as it is.
    pub(crate) relocation_padding_bytes: u64,
    /// Programs of metadata that are not done, and pages of it whose programs failed and that are not on flash since.
    pub(crate) metadata_in_flight: u32,
    /// What paced collection has to know of the host, and tells it.
    pub(crate) host_pace: HostPace,
    /// What the design tells the host unasked.
    pub(crate) events: EventQueue,
    /// What has happened since the drive last looked.
    pub(crate) wakes: Wakes,
    /// Settled blocks of a log wait for free blocks that are set aside in their stead.
    pub(crate) log_waits: bool,
}

/// The host's side of paced collection, by group.
pub(crate) struct HostPace {
    /// Collection keeps pace with what the host takes.
    on: bool,
    /// Pages that the host may take before collection looks at the group again; with 0 it waits for a relocation to end.
    allowed: Vec<u32>,
    /// The superblock that is being emptied, and whether it comes back.
    victims: Vec<Option<(u32, bool)>>,
}

impl HostPace {
    fn new(config: &DriveConfig, groups: u32) -> HostPace {
        HostPace {
            on: config.gc.pacing.is_on(),
            allowed: vec![u32::MAX; groups as usize],
            victims: vec![None; groups as usize],
        }
    }

    /// The host may take so many pages of a group before collection looks at it again. True if the group allowed none before:
    /// who waits for a page may try again.
    fn allow(&mut self, group: u32, pages: u32) -> bool {
        let before = std::mem::replace(&mut self.allowed[group as usize], pages);
        before == 0 && pages > 0
    }

    /// A superblock is being emptied.
    fn job_begins(&mut self, group: u32, victim: u32, comes_back: bool) {
        let before = self.victims[group as usize];
        assert!(before.is_none(), "group {group} empties block {victim}, and {before:?} is not done");
        self.victims[group as usize] = Some((victim, comes_back));
    }

    /// It is empty.
    pub(crate) fn job_ends(&mut self, group: u32) {
        self.victims[group as usize] = None;
    }

    /// The host takes what there is.
    pub(crate) fn release(&mut self) {
        self.allowed.fill(u32::MAX);
        self.victims.fill(None);
    }
}

impl Media {
    /// Fresh chips and everything free.
    pub(crate) fn new(config: &DriveConfig, options: Options) -> Media {
        let geometry = config.flash.geometry;
        let units_per_page = geometry.page_bytes / config.ftl.mapping_unit;
        let flash = Flash::new(&config.flash, units_per_page, options.contents, options.seed, config.timed);
        Media::over(config, options, flash)
    }

    /// The controller's side over chips that exist already.
    pub(crate) fn over(config: &DriveConfig, options: Options, mut flash: Flash) -> Media {
        let geometry = *flash.geometry();
        if config.ftl.parity != Parity::None {
            flash.hold_failed_reads();
        }
        if config.keeps_origins() {
            flash.oob.keep_origins();
        }
        let (page, unit) = (geometry.page_bytes, config.ftl.mapping_unit);
        assert!(page.is_multiple_of(unit), "a page of {page} bytes in units of {unit}");
        let units = geometry.pages() * u64::from(page / unit);
        assert!(units < u64::from(NONE), "{units} units on flash, more than numbers for them");
        let pool = BlockPool::new(config, &mut flash);
        let row = config.ftl.streams + 1 + u32::from(pool.has(BlockKind::Map)) + u32::from(pool.has(BlockKind::Log));
        let frontiers = pool.groups() * row;
        let rows = if pool.superblocks.together() > 1 { frontiers as usize } else { 0 };
        let pages_per_superblock = geometry.pages_per_block * pool.superblocks.width();
        let host_pace = HostPace::new(config, pool.groups());
        Media {
            flash,
            now: Nanos::ZERO,
            rng: rng(options.seed, "controller policies"),
            units_per_page: geometry.page_bytes / config.ftl.mapping_unit,
            unit_bytes: config.ftl.mapping_unit,
            pages_per_block: geometry.pages_per_block,
            by_pages_per_block: Divider::new(geometry.pages_per_block),
            by_units_per_page: Divider::new(geometry.page_bytes / config.ftl.mapping_unit),
            gc_reserve: config.gc_reserve(),
            pages_per_superblock,
            data_pages_per_superblock: geometry.pages_per_block
                * (pool.superblocks.width() - pool.superblocks.parity()),
            deferred_programs: vec![Vec::new(); if pool.superblocks.parity() > 0 { frontiers as usize } else { 0 }],
            rebuilt_pages: 0,
            reread: Vec::new(),
            pool,
            own_blocks: false,
            separate_gc: config.ftl.separate_gc_frontier,
            streams: config.ftl.streams,
            row,
            frontiers: vec![CLOSED; frontiers as usize],
            gaps: vec![VecDeque::new(); frontiers as usize],
            host_row_open: false,
            rows: vec![NO_ROW; rows],
            sequence: 1,
            pin_table: Vec::new(),
            sources: Vec::new(),
            several: FxHashMap::default(),
            padding_bytes: 0,
            relocation_padding_bytes: 0,
            metadata_in_flight: 0,
            host_pace,
            events: EventQueue::default(),
            wakes: Wakes::default(),
            log_waits: false,
        }
    }

    /// Pages in a block.
    #[inline]
    pub(crate) const fn pages_per_block(&self) -> u32 {
        self.pages_per_block
    }

    /// Pages in a superblock.
    #[inline]
    pub(crate) const fn pages_per_superblock(&self) -> u32 {
        self.pages_per_superblock
    }

    /// Pages in a superblock that hold data: all but parity.
    #[inline]
    pub(crate) const fn data_pages_per_superblock(&self) -> u32 {
        self.data_pages_per_superblock
    }

    /// Units of data in a superblock.
    #[inline]
    pub(crate) const fn data_units_per_superblock(&self) -> u32 {
        self.data_pages_per_superblock * self.units_per_page
    }

    /// Units in a superblock, those of parity pages included.
    #[inline]
    pub(crate) const fn units_per_superblock(&self) -> u32 {
        self.pages_per_superblock * self.units_per_page
    }

    /// The group of a block.
    #[inline]
    pub(crate) fn group_of(&self, block: BlockId) -> u32 {
        self.pool.superblocks.group_of(block)
    }

    /// The unit that comes `cursor`th in a superblock, by the order in which its pages were given out.
    #[inline]
    pub(crate) fn unit_in(&self, superblock: u32, cursor: u32) -> UnitId {
        let (page, unit) = (self.by_units_per_page.div(cursor), self.by_units_per_page.rem(cursor));
        self.unit_at(self.pool.superblocks.place(superblock, page)) + unit
    }

    /// The block and page of a physical unit.
    #[inline]
    pub(crate) const fn place_of(&self, unit: UnitId) -> Place {
        self.place_of_page(self.page_of(unit))
    }

    /// The block and page of a physical page.
    #[inline]
    pub(crate) const fn place_of_page(&self, ppn: Ppn) -> Place {
        Place { block: self.block_of_page(ppn), page: self.by_pages_per_block.rem(ppn.0) }
    }

    /// The page of a physical unit.
    #[inline]
    pub(crate) const fn page_of(&self, unit: UnitId) -> Ppn {
        Ppn(self.by_units_per_page.div(unit.0))
    }

    /// Whether a physical page's program has ended well: a power cut leaves it.
    #[inline]
    pub(crate) fn is_on_flash(&self, ppn: Ppn) -> bool {
        let place = self.place_of_page(ppn);
        self.flash.is_written(place.block, place.page) && self.flash.blocks.readable(ppn)
    }

    /// The block of a physical unit.
    #[inline]
    pub(crate) const fn block_of(&self, unit: UnitId) -> BlockId {
        self.block_of_page(self.page_of(unit))
    }

    /// The block of a physical page.
    #[inline]
    pub(crate) const fn block_of_page(&self, ppn: Ppn) -> BlockId {
        BlockId(self.by_pages_per_block.div(ppn.0))
    }

    /// Looks at what every access to a block looks at, so that it is in the processor's cache.
    #[inline]
    pub(crate) fn prefetch(&self, block: BlockId) -> u32 {
        let superblock = self.pool.superblocks.of(block);
        self.flash.blocks.get(block).programmed ^ self.pool.valid(superblock) ^ self.pool.pins(superblock)
    }

    /// The first physical unit of a page.
    #[inline]
    pub(crate) const fn unit_at(&self, place: Place) -> UnitId {
        self.ppn_at(place).first_unit(self.units_per_page)
    }

    /// The number of a page over the whole drive.
    #[inline]
    pub(crate) const fn ppn_at(&self, place: Place) -> Ppn {
        Ppn::of(place.block, place.page, self.pages_per_block)
    }

    /// The number of the frontier in its group's row.
    #[inline]
    fn slot(&self, group: u32, frontier: Frontier) -> usize {
        let index = match frontier {
            Frontier::Host(stream) => u32::from(stream).min(self.streams - 1),
            Frontier::Gc if self.separate_gc => self.streams,
            Frontier::Gc => 0,
            Frontier::Map => self.streams + 1,
            Frontier::Log => self.streams + 2,
        };
        debug_assert!(index < self.row, "a drive without blocks of a kind has no frontier for them");
        (group * self.row + index) as usize
    }

    /// Whether a page can be given out in this group now.
    #[inline]
    pub(crate) fn has_page(&self, group: u32, frontier: Frontier) -> bool {
        let slot = self.slot(group, frontier);
        let open = self.frontiers[slot].block != NONE;
        if frontier == Frontier::Gc {
            return open || self.pool.free_blocks(group) > 0 && self.can_open(group);
        }
        if frontier.kind() != BlockKind::Data {
            return open || self.pool.free_of(frontier.kind(), group) > 0 && self.can_open(group);
        }
        // Nothing can stand against an open frontier that is the host's alone.
        open && self.separate_gc && !self.host_pace.on || self.host_has_page(group, frontier, slot, open)
    }

    /// Whether a page can be given out to the host in this group now, where pacing, a shared frontier or a new
    /// superblock is to be thought of.
    #[inline(never)]
    fn host_has_page(&self, group: u32, frontier: Frontier, slot: usize, open: bool) -> bool {
        // What pages of a row go together is not held back half-way.
        let allowed = self.host_pace.allowed[group as usize] > 0 || self.is_within_row(group, frontier);
        allowed && self.host_could_take(group, slot, open)
    }

    /// Whether the host would have a page of a frontier if collection did not keep pace with it.
    fn host_could_take(&self, group: u32, slot: usize, open: bool) -> bool {
        self.host_has_room(group, slot, self.pool.free_blocks(group)) && (open || self.can_open(group))
    }

    /// Whether the host would have a page somewhere if collection did not keep pace with it.
    pub(crate) fn only_pace_holds_back(&self) -> bool {
        let is_held_back = |group: u32| {
            let row = (group * self.row) as usize;
            let could_take = |slot: usize| self.host_could_take(group, slot, self.frontiers[slot].block != NONE);
            self.host_pace.allowed[group as usize] == 0 && (row..row + self.streams as usize).any(could_take)
        };
        self.host_pace.on && (0..self.pool.groups()).any(is_held_back)
    }

    /// Whether relocation keeps what it needs though the host takes a page from a frontier, or opens a superblock for it.
    #[inline]
    fn host_has_room(&self, group: u32, slot: usize, free: u32) -> bool {
        let open = self.frontiers[slot].block != NONE;
        // A frontier that relocation shares and that it opened out of the reserve is relocation's alone until a block is
        // free again: a job that was begun must find the pages it was begun for.
        let lent = slot == self.slot(group, Frontier::Gc) && free < self.gc_reserve;
        open && !lent || !open && free > self.gc_reserve || self.job_leaves_room(group, slot, free)
    }

    /// Under paced collection, whether the job in work leaves the reserve whole though the host takes a page now: room of
    /// the reserve is lent to the host while the victim's own block is on its way back.
    fn job_leaves_room(&self, group: u32, slot: usize, free: u32) -> bool {
        let Some((victim, comes_back)) = self.host_pace.victims[group as usize] else { return false };
        let pages = self.data_pages_per_superblock;
        let left = self.data_pages_left(self.slot(group, Frontier::Gc));
        let shared = slot == self.slot(group, Frontier::Gc);
        let opens = self.frontiers[slot].block == NONE;
        if opens && free == 0 {
            return false;
        }
        // Relocation goes on where the host does if they share a frontier.
        let taken = if shared { 1 } else { pages };
        let comes_back = if comes_back { pages } else { 0 };
        let still_to_move = self.pool.valid(victim).div_ceil(self.units_per_page);
        // The victim's erase may have to wait for a record of trims; a second block of reserve has pages for that.
        let record = u32::from(self.gc_reserve == 1);
        left + free * pages + comes_back >= self.gc_reserve * pages + still_to_move + record + taken
    }

    /// Whether a stream of the host has no superblock in a group and may not open one, not even when the erases in flight
    /// have ended.
    pub(crate) fn host_is_blocked(&self, group: u32) -> bool {
        let free = self.pool.free_or_erasing(group);
        let row = (group * self.row) as usize;
        (row..row + self.streams as usize).any(|slot| !self.host_has_room(group, slot, free))
    }

    /// Superblocks of a group that are open, with one at least for the host and one for relocation where that has its own.
    pub(crate) fn open_frontiers(&self, group: u32) -> u32 {
        let row = (group * self.row) as usize;
        let host = row..row + self.streams as usize;
        let open = host.filter(|slot| self.frontiers[*slot].block != NONE).count() as u32;
        open.max(1) + u32::from(self.separate_gc)
    }

    /// Collection looks at the group: the host took a page.
    fn note_host_page(&mut self, group: u32) {
        let allowed = &mut self.host_pace.allowed[group as usize];
        *allowed = allowed.saturating_sub(1);
        self.wakes.groups.push(group);
    }

    /// Whether the group's next free superblock may be opened: not where an image's host has no space for it.
    fn can_open(&self, group: u32) -> bool {
        let provided = |superblock: u32| {
            let mut members = self.pool.superblocks.members(superblock);
            members.all(|block| self.flash.provide(block))
        };
        self.flash.store.image().is_none() || self.pool.next_free(group).is_some_and(provided)
    }

    /// Pages that relocation has in a group, once the erases in flight are done.
    pub(crate) fn relocation_room(&self, group: u32) -> u32 {
        let left = self.data_pages_left(self.slot(group, Frontier::Gc));
        left + self.pool.free_or_erasing(group) * self.data_pages_per_superblock
    }

    /// Pages for data of a group that hold none: in superblocks that are free or will be, and left in frontiers.
    pub(crate) fn empty_pages(&self, group: u32) -> u32 {
        let first = (group * self.row) as usize;
        debug_assert!(group < self.pool.groups(), "group {group} of {}", self.pool.groups());
        let left: u32 = (first..=first + self.streams as usize).map(|slot| self.data_pages_left(slot)).sum();
        left + self.pool.free_or_erasing(group) * self.data_pages_per_superblock
    }

    /// Whether a frontier has given out some pages of a row that a die programs at once, and not all.
    #[inline]
    pub(crate) fn is_within_row(&self, group: u32, frontier: Frontier) -> bool {
        let together = self.pool.superblocks.together();
        together > 1 && !self.frontiers[self.slot(group, frontier)].next_page.is_multiple_of(together)
    }

    /// Pages of data in a stripe.
    pub(crate) const fn stripe_width(&self) -> u32 {
        self.pool.superblocks.width() - self.pool.superblocks.parity()
    }

    /// Pages of data that a frontier has still to give out of a stripe that it has begun.
    pub(crate) fn pages_left_in_stripe(&self, group: u32, frontier: Frontier) -> u32 {
        let begun = self.frontiers[self.slot(group, frontier)].next_page % self.pool.superblocks.width();
        if begun == 0 { 0 } else { self.stripe_width().saturating_sub(begun) }
    }

    /// Frontiers of data in all groups: the host's and relocation's.
    pub(crate) fn data_frontiers(&self) -> u32 {
        self.pool.groups() * (self.streams + 1)
    }

    /// Closes a frontier of a group whose valid pages fit where relocation can still write then, so that it can be a
    /// victim: power cuts in a row leave torn pages in frontiers, until no closed superblock is empty enough.
    /// Relocation's own, which the host may share, goes like any other, and what it has left with it. False if there is
    /// none.
    pub(crate) fn give_up_frontier(&mut self, group: u32) -> bool {
        let (relocation, room) = (self.slot(group, Frontier::Gc), self.relocation_room(group));
        let row = (group * self.row) as usize;
        let fits = |slot: &usize| {
            let open = self.frontiers[*slot];
            let lost = if *slot == relocation { self.data_pages_left(*slot) } else { 0 };
            open.next_page > 0
                && open.block != NONE
                && self.pool.valid(open.block).div_ceil(self.units_per_page) <= room - lost
        };
        // Those of the host first: what relocation's has left is wanted for them.
        let slots = (row..=row + self.streams as usize).filter(|slot| *slot != relocation).chain([relocation]);
        let Some(slot) = slots.into_iter().find(fits) else { return false };
        let superblock = self.frontiers[slot].block;
        let block = self.pool.superblocks.members(superblock).next().expect("an open superblock has members");
        self.abandon(block);
        assert_eq!(self.frontiers[slot].block, NONE, "frontier {slot} was given up");
        self.wakes.groups.push(group);
        true
    }

    /// At most `limit` pages, so many that relocation's frontier ends with a whole row.
    pub(crate) fn whole_rows(&self, group: u32, limit: u32) -> u32 {
        let together = self.pool.superblocks.together();
        if together == 1 {
            return limit;
        }
        let next = self.frontiers[self.slot(group, Frontier::Gc)].next_page;
        limit - (self.number_after(next, limit) % together).min(limit)
    }

    /// The page that a frontier gives out next.
    #[inline]
    fn place_next(&self, slot: usize, open: OpenBlock) -> Place {
        match self.gaps[slot].front() {
            Some((place, _)) => *place,
            None => self.pool.superblocks.place(open.block, open.next_page),
        }
    }

    /// Gives out the next page of a frontier, opening a superblock if need be.
    #[inline]
    pub(crate) fn take_page(&mut self, group: u32, frontier: Frontier) -> Option<Place> {
        self.has_page(group, frontier).then(|| self.take_seen_page(group, frontier))
    }

    /// Gives out the next page of a frontier that was seen to have one just now, opening a superblock if need be.
    #[inline]
    pub(crate) fn take_seen_page(&mut self, group: u32, frontier: Frontier) -> Place {
        let slot = self.slot(group, frontier);
        let mut open = self.frontiers[slot];
        if open.block == NONE {
            open = self.open_superblock(group, frontier);
        }
        debug_assert_eq!(
            self.pool.state(open.block),
            BlockState::Open,
            "frontier {slot} is on superblock {}",
            open.block
        );
        debug_assert!(
            open.next_page < self.pages_per_superblock,
            "frontier {slot} is behind its superblock's last page"
        );
        let (place, full) = if self.pool.superblocks.width() == 1 {
            let place = Place { block: BlockId(open.block), page: open.next_page };
            open.next_page += 1;
            // Whether the next page can be told from the first of its block by the numbers in their OOB.
            let fits = place.page == 0 || self.flash.oob.sequence_fits(place.block, self.sequence + 1);
            (place, open.next_page == self.pages_per_block || !fits)
        } else {
            self.take_from_row(slot, &mut open, frontier)
        };
        if self.host_pace.on && matches!(frontier, Frontier::Host(_)) && self.flash.timed() {
            self.note_host_page(group);
        }
        if full {
            self.pool.fill_up(open.block, open.next_page);
            self.gaps[slot].clear();
            open = CLOSED;
        }
        debug_assert!(
            self.flash.timed() || place.page == self.flash.blocks.get(place.block).programmed,
            "{place:?} is given out, and {} pages of its block are written",
            self.flash.blocks.get(place.block).programmed
        );
        debug_assert!(!self.flash.is_written(place.block, place.page), "{place:?} is given out, and is written");
        self.frontiers[slot] = open;
        place
    }

    /// A frontier's next superblock.
    // Not inlined, as what follows: taking a page of an open block, which every write does, stays short.
    #[inline(never)]
    fn open_superblock(&mut self, group: u32, frontier: Frontier) -> OpenBlock {
        let opened = match frontier {
            Frontier::Map | Frontier::Log => self.pool.open_of(frontier.kind(), group),
            Frontier::Host(_) | Frontier::Gc => self.pool.open(group),
        };
        let superblock = opened.expect("a group that has a page has a superblock to open");
        self.was_opened(group, superblock);
        OpenBlock { block: superblock, next_page: 0 }
    }

    /// A free superblock of a group is open: it is sound and erased.
    fn was_opened(&mut self, group: u32, superblock: u32) {
        assert_eq!(self.pool.group_of(superblock), group, "superblock {superblock} is opened for another group");
        for block in self.pool.superblocks.members(superblock) {
            let state = self.flash.blocks.get(block);
            assert!(!state.suspect, "block {block} failed a program: it is not opened");
            assert!(!state.bad, "block {block} is bad: it is not opened");
            assert!(!state.torn, "block {block} is torn: it is not opened");
            assert_eq!(state.programmed, 0, "block {block} is opened, and has written pages");
        }
        self.wakes.groups.push(group);
    }

    /// Free superblocks of the whole drive.
    pub(crate) fn free_blocks(&self) -> u32 {
        (0..self.pool.groups()).map(|group| self.pool.free_blocks(group)).sum()
    }

    /// Opens a superblock for a design with blocks of its own, which gives out its pages: `None` where the group has no free
    /// one, or an image's host no space for it.
    pub(crate) fn open_block(&mut self, group: u32) -> Option<BlockId> {
        assert!(self.own_blocks, "a block of group {group} is opened by a design with frontiers");
        (self.pool.free_blocks(group) > 0 && self.can_open(group))
            .then(|| BlockId(self.open_superblock(group, Frontier::Gc).block))
    }

    /// Opens the most worn free superblock of a group for a design with blocks of its own, which gives out its pages:
    /// `None` where the group has no free one, or an image's host no space for it.
    pub(crate) fn open_most_worn(&mut self, group: u32) -> Option<BlockId> {
        assert!(self.own_blocks, "a block of group {group} is opened by a design with frontiers");
        let superblock = self.pool.most_worn_free(group, &self.flash)?;
        if self.flash.store.image().is_some() {
            let mut members = self.pool.superblocks.members(superblock);
            if !members.all(|block| self.flash.provide(block)) {
                return None;
            }
        }
        self.pool.open_this(superblock);
        self.was_opened(group, superblock);
        Some(BlockId(superblock))
    }

    /// No more than the `issued` pages that were given out of such a superblock will be.
    pub(crate) fn end_block(&mut self, BlockId(superblock): BlockId, issued: u32) {
        assert!(self.own_blocks, "block {superblock} is ended by a design with frontiers");
        assert!((1..=self.pages_per_superblock).contains(&issued), "block {superblock} ends after {issued} pages");
        self.pool.fill_up(superblock, issued);
        self.pool.close_if_written(superblock, self.programmed(superblock));
    }

    /// Takes the next page of a superblock of several blocks, and whether it is the last that can be taken.
    #[inline(never)]
    fn take_from_row(&mut self, slot: usize, open: &mut OpenBlock, frontier: Frontier) -> (Place, bool) {
        debug_assert!(self.stripe_page_due(slot).is_none(), "frontier {slot} comes to a page that is not for data");
        let place = self.place_next(slot, *open);
        open.next_page += 1;
        self.gaps[slot].pop_front();
        let ends_row = open.next_page.is_multiple_of(self.pool.superblocks.together())
            || self.pool.superblocks.role(open.next_page) == Role::Parity;
        if frontier.kind() == BlockKind::Data {
            self.host_row_open = frontier != Frontier::Gc && !ends_row;
        }
        (place, open.next_page == self.pages_per_superblock || !self.row_fits(slot, *open))
    }

    /// Whether the next page of a superblock of several blocks can be told from the first of its block by the numbers in
    /// their OOB.
    fn row_fits(&self, slot: usize, open: OpenBlock) -> bool {
        let next = self.place_next(slot, open);
        // The first page may just have been given out, and its number is still to come.
        next.page < 2 || self.flash.oob.sequence_fits(next.block, self.sequence + u64::from(self.pages_per_superblock))
    }

    /// The page that [`Media::take_page`] would give out.
    pub(crate) fn next_page(&self, group: u32, frontier: Frontier) -> Option<Place> {
        if !self.has_page(group, frontier) {
            return None;
        }
        let slot = self.slot(group, frontier);
        let open = self.frontiers[slot];
        if open.block != NONE {
            // What comes before the next page of data is programmed with it.
            let data = self.gaps[slot].iter().find(|(_, role)| *role == Role::Data);
            let behind = || self.pool.superblocks.place(open.block, open.next_page + self.gaps[slot].len() as u32);
            return Some(data.map_or_else(behind, |(place, _)| *place));
        }
        self.pool.next_free(group).map(|superblock| self.pool.superblocks.place(superblock, 0))
    }

    /// Gives out up to `wanted` consecutive pages of a frontier: the first and how many. Only where a superblock is a
    /// block.
    #[inline]
    pub(crate) fn take_run(&mut self, group: u32, frontier: Frontier, wanted: u32) -> Option<(Place, u32)> {
        debug_assert_eq!(self.pool.superblocks.width(), 1, "pages of a superblock are not in a run");
        let first = self.take_page(group, frontier)?;
        let slot = self.slot(group, frontier);
        let open = &mut self.frontiers[slot];
        if open.block != first.block.0 {
            return Some((first, 1));
        }
        debug_assert!(wanted > 0, "a run of no pages was asked for in group {group}");
        let more = (wanted - 1).min(self.pages_per_block - open.next_page);
        open.next_page += more;
        if open.next_page == self.pages_per_block {
            self.pool.fill_up(first.block.0, self.pages_per_block);
            *open = CLOSED;
        }
        Some((first, more + 1))
    }

    /// The numbers of the next `count` programs: returns the first.
    #[inline]
    pub(crate) fn take_sequence(&mut self, count: u64) -> u64 {
        debug_assert!(count > 0, "numbers are taken for no program");
        let first = self.sequence;
        self.sequence += count;
        first
    }

    /// No more data goes into the superblock of `block` if it is a frontier; its last stripe is closed. Programs in flight still
    /// end.
    pub(crate) fn abandon(&mut self, block: BlockId) {
        let superblock = self.pool.superblocks.of(block);
        if let Some(slot) = self.frontiers.iter().position(|open| open.block == superblock) {
            self.close_stripe(slot);
            self.pool.fill_up(superblock, self.frontiers[slot].next_page);
            self.gaps[slot].clear();
            if let Some(unready) = self.deferred_programs.get_mut(slot) {
                unready.clear();
            }
            self.frontiers[slot] = CLOSED;
            self.close_if_written(block);
        }
    }

    /// Pages of a superblock that are written.
    pub(crate) fn programmed(&self, superblock: u32) -> u32 {
        if self.pool.superblocks.width() == 1 {
            return self.flash.blocks.get(BlockId(superblock)).programmed;
        }
        self.pool.superblocks.members(superblock).map(|block| self.flash.blocks.get(block).programmed).sum()
    }

    /// Makes a partly written superblock a frontier again after recovery; false if all frontiers are taken, or no page of it
    /// is left for data.
    pub(crate) fn reopen(&mut self, superblock: u32) -> bool {
        let group = self.pool.group_of(superblock);
        let row = (group * self.row) as usize;
        // Relocation first: host data can wait for it, but not the other way round.
        let relocation = self.separate_gc.then_some(self.streams);
        let data = relocation.into_iter().chain(0..self.streams);
        let all: Vec<u32> = match self.pool.kind(superblock) {
            BlockKind::Data => data.collect(),
            BlockKind::Map => vec![self.streams + 1],
            BlockKind::Log => vec![self.streams + 2],
        };
        let mut slots = all.into_iter().map(|index| row + index as usize);
        let Some(slot) = slots.find(|slot| self.frontiers[*slot].block == NONE) else { return false };
        // Members whose erase was cut are erased by now: an image's host must have space for them again.
        let mut members = self.pool.superblocks.members(superblock);
        if self.pool.superblocks.width() > 1 && !members.all(|block| self.flash.provide(block)) {
            return false;
        }
        let programmed = self.programmed(superblock);
        assert!(programmed > 0, "superblock {superblock} is a frontier again, and nothing is written in it");
        assert!(programmed < self.pages_per_superblock, "superblock {superblock} is a frontier again, and is full");
        self.set_frontier(slot, superblock);
        if self.data_pages_left(slot) == 0 {
            self.gaps[slot].clear();
            self.frontiers[slot] = CLOSED;
            return false;
        }
        self.pool.adopt(superblock, BlockState::Open);
        true
    }

    /// A partly written superblock is a frontier: members that are behind the one that is written furthest come up with
    /// it first, so that from then on they are written in step.
    fn set_frontier(&mut self, slot: usize, superblock: u32) {
        self.frontiers[slot] = OpenBlock { block: superblock, next_page: self.programmed(superblock) };
        self.gaps[slot].clear();
        if self.pool.superblocks.width() > 1 && !seeded(Bug::MembersInStep) {
            let members: Vec<BlockId> = self.pool.superblocks.members(superblock).collect();
            let programmed = |block: BlockId| self.flash.blocks.get(block).programmed;
            let level = members.iter().map(|block| programmed(*block)).max().unwrap_or(0);
            let least = members.iter().map(|block| programmed(*block)).min().unwrap_or(0);
            if self.pool.superblocks.parity() > 0 {
                self.gaps[slot] = self.stripe_gaps(superblock, least..level);
                return;
            }
            for page in least..level {
                let behind = members.iter().filter(|block| programmed(**block) <= page);
                self.gaps[slot].extend(behind.map(|block| (Place { block: *block, page }, Role::Data)));
            }
        }
    }

    /// Open superblocks and how many of their pages were given out, for snapshots.
    pub(crate) fn open_blocks(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.frontiers.iter().map(|open| (open.block, open.next_page))
    }

    /// Puts a saved frontier back, `None` where it has no superblock; false if that is not one it could have.
    pub(crate) fn set_open_block(&mut self, slot: usize, superblock: u32, next_page: u32) -> bool {
        if superblock == NONE {
            self.frontiers[slot] = CLOSED;
            return true;
        }
        let (group, index) = (slot as u32 / self.row, slot as u32 % self.row);
        let used = self.separate_gc || index != self.streams;
        let taken = self.frontiers.iter().any(|open| open.block == superblock);
        let known = superblock < self.pool.superblocks_count() && self.pool.superblocks.is_whole(superblock);
        let kinds = [BlockKind::Data, BlockKind::Map, BlockKind::Log];
        let kind = known && self.pool.kind(superblock) == kinds[index.saturating_sub(self.streams) as usize];
        if !used || taken || !kind || self.pool.group_of(superblock) != group {
            return false;
        }
        let written = self.programmed(superblock);
        if written != next_page || !(1..self.pages_per_superblock).contains(&written) {
            return false;
        }
        self.set_frontier(slot, superblock);
        // Parity follows the data at once: a frontier at rest comes to data next.
        let data_next = self.stripe_page_due(slot).is_none();
        self.reread.clear();
        data_next
    }

    /// Whether a superblock is a frontier.
    pub(crate) fn is_frontier(&self, superblock: u32) -> bool {
        self.frontiers.iter().any(|open| open.block == superblock)
    }

    /// The number the next program will carry.
    pub(crate) const fn sequence(&self) -> u64 {
        self.sequence
    }

    pub(crate) fn set_sequence(&mut self, sequence: u64) {
        self.sequence = sequence;
    }

    /// Writes a page's OOB and starts its program. `pins` are the blocks whose units it supersedes; they stay pinned
    /// until it is done. `class` keeps pages of one block in order.
    #[inline]
    pub(crate) fn program(&mut self, place: Place, lpns: &[Lpn], write: Programming<'_>) -> OpId {
        debug_assert!(!self.flash.is_written(place.block, place.page), "{place:?} is programmed, and is written");
        debug_assert!(lpns.len() <= self.units_per_page as usize, "{} units in {place:?}", lpns.len());
        debug_assert!(self.flash.timed() || write.after.is_empty(), "{place:?} waits for reads without time");
        let sequence = self.sequence;
        self.sequence += 1;
        self.flash.oob.write(place.block, place.page, lpns, sequence);
        if !self.flash.timed() {
            let failed = if write.kind == OpKind::Copyback {
                self.flash.execute_copyback(write.cause, place.block, place.page, write.source)
            } else {
                self.flash.execute(write.kind, write.cause, place.block, place.page)
            };
            self.close_if_written(place.block);
            if failed {
                self.program_failed_now(place, write.cause, write.owner, write.pins);
            }
            self.stripe_goes_on(place, write.frontier, NONE);
            return NONE;
        }
        if write.cause == Cause::Metadata {
            self.metadata_in_flight += 1;
        }
        let shared = !self.separate_gc;
        let class = if write.frontier == Frontier::Gc && !shared { Class::GcWrite } else { Class::HostWrite };
        let page_bytes = self.unit_bytes * self.units_per_page;
        let pins = if seeded(Bug::EraseDoesNotWait) { &[] } else { write.pins };
        let pin = pins.first().copied().unwrap_or(BlockId::NONE);
        // Where every block stands alone there are neither rows nor stripes.
        let alone = self.pool.superblocks.width() == 1;
        let leader = if alone { NONE } else { self.row_leader(place, &write) };
        let waits_for = if leader == NONE { write.after.len() as u16 } else { 1 };
        let op = self.flash.submit(
            self.now,
            Submit {
                kind: write.kind,
                cause: write.cause,
                class,
                block: place.block,
                page: place.page,
                source: write.source,
                bytes: if write.kind == OpKind::Copyback { 0 } else { page_bytes },
                token: write.owner.pack(),
                pin,
                waits_for,
            },
        );
        for pin in pins {
            self.pool.pin(*pin);
        }
        if self.units_per_page > 1 {
            self.remember_pins(op, pins);
        } else if pins.len() > 1 || write.taken.len() > 1 {
            let several = Several { pins: pins.iter().skip(1).copied().collect(), sources: write.taken.to_vec() };
            self.several.insert(op, several);
        }
        if leader == NONE {
            for earlier in write.after {
                self.flash.link(*earlier, op);
            }
        }
        if (!write.after.is_empty() || leader != NONE) && self.flash.may_fail() {
            self.remember_sources(op, write.taken);
        }
        if !alone {
            self.join_row(place, &write, leader, op);
            self.stripe_goes_on(place, write.frontier, op);
        }
        op
    }

    /// A program without time failed. It counts as in flight until the drive deals with it: what it superseded is the only
    /// good copy, and what comes next may empty the block of that.
    #[cold]
    fn program_failed_now(&mut self, place: Place, cause: Cause, owner: Owner, pins: &[BlockId]) {
        assert!(!self.flash.timed(), "the program of {place:?} took time, and failed at once");
        let pins = if seeded(Bug::EraseDoesNotWait) { &[] } else { pins };
        for block in pins.iter().chain(&[place.block]) {
            self.pool.pin(*block);
        }
        self.metadata_in_flight += u32::from(cause == Cause::Metadata);
        self.wakes.failed.push(FailedProgram { place, cause, owner, pins: pins.to_vec() });
    }

    /// The program of the same row on the same die that this one is to become ready with, since it waits for reads still;
    /// `NONE` where there is none. A program that waits for more than reads goes alone: a row must not wait
    /// for itself.
    fn row_leader(&self, place: Place, write: &Programming<'_>) -> OpId {
        if self.rows.is_empty() {
            return NONE;
        }
        let row = &self.rows[self.slot(self.group_of(place.block), write.frontier)];
        // An old leader's number may be another frontier's program of the same page by now: its block is in another superblock.
        let fits = row.leader != NONE
            && row.place.page == place.page
            && self.pool.superblocks.of(row.place.block) == self.pool.superblocks.of(place.block)
            && self.flash.die_of(row.place.block) == self.flash.die_of(place.block)
            && write.kind == OpKind::Program
            && self.flash.awaits_reads(row.leader, row.place.block, row.place.page)
            && write.after.iter().all(|op| self.flash.is_read(*op));
        if fits { row.leader } else { NONE }
    }

    /// `op` fills its frontier's row: with `leader`, which then waits for its reads as well, or as the first of a new one.
    fn join_row(&mut self, place: Place, write: &Programming<'_>, leader: OpId, op: OpId) {
        if self.rows.is_empty() {
            return;
        }
        let slot = self.slot(self.group_of(place.block), write.frontier);
        if leader == NONE {
            self.rows[slot] = Row { leader: op, last: op, place };
            return;
        }
        self.flash.follow(self.rows[slot].last, op);
        self.rows[slot].last = op;
        for read in write.after {
            self.flash.link_also(*read, leader);
        }
    }

    /// Starts a read of `bytes` bytes of a page; the block stays pinned until it is done.
    #[inline]
    pub(crate) fn read(&mut self, place: Place, bytes: u32, cause: Cause, owner: Owner) -> OpId {
        // A host write waits for what completes its page.
        let waited_for = matches!(cause, Cause::Host | Cause::ReadModifyWrite);
        let class = if waited_for { Class::HostRead } else { Class::GcRead };
        self.read_as(class, place, bytes, cause, owner)
    }

    /// Starts a read of `bytes` bytes of a map page; the block stays pinned until it is done. The host waits for it if
    /// `waited_for`, else relocation does.
    pub(crate) fn read_map(&mut self, place: Place, bytes: u32, waited_for: bool, owner: Owner) -> OpId {
        let class = if waited_for { Class::HostRead } else { Class::GcRead };
        self.read_as(class, place, bytes, Cause::Mapping, owner)
    }

    /// Pages that the map's frontier of a group can still give out, in what is open or free now.
    pub(crate) fn map_pages_left(&self, group: u32) -> u32 {
        let left = self.data_pages_left(self.slot(group, Frontier::Map));
        left + self.pool.free_of(BlockKind::Map, group) * self.data_pages_per_superblock
    }

    /// Pages that the map's frontier of a group can still give out, with what is in map blocks that are about to be
    /// erased.
    pub(crate) fn map_pages_coming(&self, group: u32) -> u32 {
        let left = self.data_pages_left(self.slot(group, Frontier::Map));
        left + self.pool.coming_map_blocks(group) * self.data_pages_per_superblock
    }

    /// Pages that a log's frontiers can still give out, in what is open or free now.
    pub(crate) fn log_pages_left(&self) -> u32 {
        (0..self.pool.groups()).map(|group| self.log_pages_left_in(group)).sum()
    }

    /// Pages that a log's frontiers can still give out, with what is set aside and not free yet.
    pub(crate) fn log_pages_coming(&self) -> u32 {
        let owed = |group: u32| self.pool.owed_to(BlockKind::Log, group) * self.data_pages_per_superblock;
        let left = |group: u32| self.data_pages_left(self.slot(group, Frontier::Log));
        (0..self.pool.groups()).map(|group| left(group) + owed(group)).sum()
    }

    /// Pages of one group that a log's frontier can still give out.
    pub(crate) fn log_pages_left_in(&self, group: u32) -> u32 {
        let left = self.data_pages_left(self.slot(group, Frontier::Log));
        left + self.pool.free_of(BlockKind::Log, group) * self.data_pages_per_superblock
    }

    /// Starts a read of `bytes` bytes of a page, in a class of the die's queue; the block stays pinned until it is
    /// done.
    #[inline]
    fn read_as(&mut self, class: Class, place: Place, bytes: u32, cause: Cause, owner: Owner) -> OpId {
        debug_assert!(self.flash.is_written(place.block, place.page), "{place:?} is read, and is not on flash");
        debug_assert!(bytes <= self.unit_bytes * self.units_per_page, "{bytes} bytes of {place:?} are read");
        self.pool.pin(place.block);
        self.flash.submit(
            self.now,
            Submit {
                kind: OpKind::Read,
                cause,
                class,
                block: place.block,
                page: place.page,
                source: Ppn::NONE,
                bytes,
                token: owner.pack(),
                pin: place.block,
                waits_for: 0,
            },
        )
    }

    fn remember_sources(&mut self, op: OpId, taken: &[UnitId]) {
        let stride = self.units_per_page as usize;
        let first = op as usize * stride;
        if self.sources.len() < first + stride {
            self.sources.resize(first + stride, UnitId::NONE);
        }
        let slots = &mut self.sources[first..first + stride];
        slots.fill(UnitId::NONE);
        if taken.len() <= stride {
            slots[..taken.len()].copy_from_slice(taken);
        }
    }

    /// A page could not be read: what `waiting`, the program that waited for it, was to take from there is lost, and so
    /// is what programs behind it were to take from that.
    pub(crate) fn read_failed(&mut self, from: Place, waiting: OpId) {
        self.taken_from(from, waiting, Media::lose);
    }

    /// Tells `each` of every unit in flight that is taken from a page by `waiting`, the program that waits for its read, or by
    /// programs behind it.
    fn taken_from(&mut self, from: Place, waiting: OpId, mut each: impl FnMut(&mut Media, UnitId)) {
        let stride = self.units_per_page;
        let first = self.unit_at(from);
        let mut lost: Vec<UnitId> = UnitId::each(first..first + stride).collect();
        let mut row = self.flash.follower(waiting);
        let mut next = waiting;
        while next != NONE {
            let op = next;
            // Programs of a row wait for all reads of the row, and what waits for one of them takes from that one.
            next = self.flash.waiter(op);
            if next == NONE && row != NONE {
                next = row;
                row = self.flash.follower(row);
            }
            let (block, page) = self.flash.target(op);
            let first = self.unit_at(Place { block, page });
            if self.several.get(&op).is_some_and(|several| several.sources.iter().any(|unit| lost.contains(unit))) {
                each(self, first);
                lost.push(first);
            }
            for index in 0..stride {
                let source = self.sources[(op * stride + index) as usize];
                if source != UnitId::NONE && lost.contains(&source) {
                    each(self, first + index);
                    lost.push(first + index);
                }
            }
        }
    }

    fn remember_pins(&mut self, op: OpId, pins: &[BlockId]) {
        let stride = self.units_per_page as usize;
        let first = op as usize * stride;
        if self.pin_table.len() < first + stride {
            self.pin_table.resize(first + stride, BlockId::NONE);
        }
        let slots = &mut self.pin_table[first..first + stride];
        slots.fill(BlockId::NONE);
        slots[..pins.len()].copy_from_slice(pins);
    }

    /// The host may take so many pages of a group before collection looks at it again.
    pub(crate) fn allow_host(&mut self, group: u32, pages: u32) {
        self.wakes.pace_released |= self.host_pace.allow(group, pages);
    }

    /// Collection empties a superblock; `comes_back`: it will be free again.
    pub(crate) fn pace_job_begins(&mut self, group: u32, victim: u32, comes_back: bool) {
        self.host_pace.job_begins(group, victim, comes_back);
        self.wakes.pace_released = true;
    }

    /// Takes a pin from the superblock of a block; with the last one of a superblock that is to be erased, its erase is due.
    #[inline]
    pub(crate) fn unpin(&mut self, block: BlockId) {
        if self.pool.unpin(block) {
            self.wakes.erasable.push(self.pool.superblocks.of(block));
        }
    }

    /// Lets go of what a finished operation pinned.
    #[inline]
    pub(crate) fn release_pins(&mut self, done: &Done) {
        if self.units_per_page == 1 || done.kind == OpKind::Read {
            if done.pin != BlockId::NONE {
                self.unpin(done.pin);
            }
            if !self.several.is_empty()
                && let Some(Several { pins, .. }) = self.several.remove(&done.op)
            {
                pins.into_iter().for_each(|pin| self.unpin(pin));
            }
            return;
        }
        for index in 0..self.units_per_page as usize {
            let pin = self.pin_table[done.op as usize * self.units_per_page as usize + index];
            if pin != BlockId::NONE {
                self.unpin(pin);
            }
        }
    }

    /// The blocks a finished program pinned, to be kept pinned for longer.
    pub(crate) fn pins_of(&mut self, done: &Done) -> Vec<BlockId> {
        if self.units_per_page == 1 {
            let mut pins = if done.pin == BlockId::NONE { Vec::new() } else { vec![done.pin] };
            pins.extend(self.several.remove(&done.op).into_iter().flat_map(|several| several.pins));
            return pins;
        }
        let first = done.op as usize * self.units_per_page as usize;
        let slots = &self.pin_table[first..first + self.units_per_page as usize];
        slots.iter().copied().filter(|pin| *pin != BlockId::NONE).collect()
    }

    /// A full superblock whose programs have all ended is closed.
    #[inline]
    pub(crate) fn close_if_written(&mut self, block: BlockId) {
        let superblock = self.pool.superblocks.of(block);
        if self.pool.state(superblock) == BlockState::Full {
            self.pool.close_if_written(superblock, self.programmed(superblock));
        }
    }
}

/// How a page is programmed.
pub(crate) struct Programming<'a> {
    pub(crate) kind: OpKind,
    pub(crate) cause: Cause,
    pub(crate) frontier: Frontier,
    pub(crate) owner: Owner,
    /// Blocks whose units are superseded.
    pub(crate) pins: &'a [BlockId],
    /// Operations whose data goes into the page.
    pub(crate) after: &'a [OpId],
    /// For each unit of the page the one that those operations take it from, [`UnitId::NONE`] if it is all there; may be
    /// empty if `after` is.
    pub(crate) taken: &'a [UnitId],
    /// A copyback's source; else unused.
    pub(crate) source: Ppn,
}

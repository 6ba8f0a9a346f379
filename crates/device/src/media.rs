//! What every FTL design builds on: the chips, the pool of blocks, the write frontiers, and the one way to program.
//!
//! Mapping is the design's; order, space, pins and counting are kept here, so that no design can get them wrong.

use rustc_hash::FxHashMap;
use ssdlab_base::{Divider, Nanos, Rng, rng};
use ssdlab_flash::{Cause, Class, Done, Flash, NONE, OpId, OpKind, Submit};

use crate::block_pool::{BlockPool, BlockState};
use crate::planted::{Bug, planted};
use crate::token::Owner;
use crate::{DriveConfig, Options};

/// Which frontier a page goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frontier {
    /// Host data of a stream.
    Host(u16),
    /// Relocations.
    Gc,
}

#[derive(Clone, Copy, Debug)]
struct OpenBlock {
    block: u32,
    next_page: u32,
}

const CLOSED: OpenBlock = OpenBlock { block: NONE, next_page: 0 };

/// A page that was given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The block.
    pub(crate) block: u32,
    /// The page in it.
    pub(crate) page: u32,
}

/// What a program of one unit pins and takes beyond the first.
#[derive(Clone, Debug, Default)]
struct Several {
    pins: Vec<u32>,
    sources: Vec<u32>,
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
    by_pages_per_block: Divider,
    by_units_per_page: Divider,
    /// Blocks of each plane that only relocation may open.
    pub(crate) gc_reserve: u32,
    separate_gc: bool,
    streams: u32,
    frontiers: Vec<OpenBlock>,
    sequence: u64,
    /// Pins of programs that supersede units in several blocks, `units_per_page` a program.
    many_pins: Vec<u32>,
    /// Where the units of programs that wait for reads come from, `units_per_page` a program: `NONE` where all is there.
    sources: Vec<u32>,
    /// Programs of pages of one unit that supersede, or are built from, more than one page.
    several: FxHashMap<OpId, Several>,
    /// Planes in which a block was opened since GC last looked.
    pub(crate) opened: Vec<u32>,
    /// Blocks whose last pin went: their erase is due.
    pub(crate) unpinned: Vec<u32>,
    /// Bytes of host pages programmed without data.
    pub(crate) padding_bytes: u64,
    /// Programs of metadata that are not done, and pages of it whose programs failed and that are not on flash since.
    pub(crate) metadata_in_flight: u32,
    /// Pages whose untimed program failed, to be dealt with by the drive.
    pub(crate) failed_untimed: Vec<Place>,
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
    pub(crate) fn over(config: &DriveConfig, options: Options, flash: Flash) -> Media {
        let geometry = *flash.geometry();
        let pool = BlockPool::new(&geometry, &flash, config.gc.dynamic_wear_levelling);
        let frontiers = geometry.planes() * (config.ftl.streams + 1);
        Media {
            flash,
            pool,
            now: Nanos::ZERO,
            rng: rng(options.seed, "controller policies"),
            units_per_page: geometry.page_bytes / config.ftl.mapping_unit,
            unit_bytes: config.ftl.mapping_unit,
            pages_per_block: geometry.pages_per_block,
            by_pages_per_block: Divider::new(geometry.pages_per_block),
            by_units_per_page: Divider::new(geometry.page_bytes / config.ftl.mapping_unit),
            gc_reserve: config.gc_reserve(),
            separate_gc: config.ftl.separate_gc_frontier,
            streams: config.ftl.streams,
            frontiers: vec![CLOSED; frontiers as usize],
            sequence: 1,
            many_pins: Vec::new(),
            sources: Vec::new(),
            several: FxHashMap::default(),
            opened: Vec::new(),
            unpinned: Vec::new(),
            padding_bytes: 0,
            metadata_in_flight: 0,
            failed_untimed: Vec::new(),
        }
    }

    /// Pages in a block.
    #[inline]
    pub(crate) const fn pages_per_block(&self) -> u32 {
        self.pages_per_block
    }

    /// Units in a block.
    #[inline]
    pub(crate) const fn units_per_block(&self) -> u32 {
        self.pages_per_block * self.units_per_page
    }

    /// The block and page of a physical unit.
    #[inline]
    pub(crate) const fn place_of(&self, unit: u32) -> Place {
        self.place_of_page(self.by_units_per_page.div(unit))
    }

    /// The block and page of a physical page.
    #[inline]
    pub(crate) const fn place_of_page(&self, ppn: u32) -> Place {
        Place { block: self.by_pages_per_block.div(ppn), page: self.by_pages_per_block.rem(ppn) }
    }

    /// The block of a physical unit.
    #[inline]
    pub(crate) const fn block_of(&self, unit: u32) -> u32 {
        self.by_pages_per_block.div(self.by_units_per_page.div(unit))
    }

    /// Looks at what every access to a block looks at, so that it is in the processor's cache.
    #[inline]
    pub(crate) fn glance(&self, block: u32) -> u32 {
        self.flash.blocks.get(block).programmed ^ self.pool.valid(block) ^ self.pool.pins(block)
    }

    /// The first physical unit of a page.
    #[inline]
    pub(crate) const fn unit_at(&self, place: Place) -> u32 {
        (place.block * self.pages_per_block + place.page) * self.units_per_page
    }

    /// The number of the frontier in its plane's row.
    #[inline]
    fn slot(&self, plane: u32, frontier: Frontier) -> usize {
        let index = match frontier {
            Frontier::Host(stream) => u32::from(stream).min(self.streams - 1),
            Frontier::Gc if self.separate_gc => self.streams,
            Frontier::Gc => 0,
        };
        (plane * (self.streams + 1) + index) as usize
    }

    /// Whether a page can be given out in this plane now.
    #[inline]
    pub(crate) fn has_page(&self, plane: u32, frontier: Frontier) -> bool {
        let slot = self.slot(plane, frontier);
        let open = self.frontiers[slot].block != NONE;
        let free = self.pool.free_blocks(plane);
        if frontier == Frontier::Gc {
            open || free > 0 && self.can_open(plane)
        } else {
            // A frontier that relocation shares and that it opened out of the reserve is relocation's alone until a
            // block is free again: a job that was begun must find the pages it was begun for.
            let lent = slot == self.slot(plane, Frontier::Gc) && free < self.gc_reserve;
            open && !lent || !open && free > self.gc_reserve && self.can_open(plane)
        }
    }

    /// Whether the plane's next free block may be opened: not where an image's host has no space for it.
    fn can_open(&self, plane: u32) -> bool {
        self.flash.store.image().is_none() || self.pool.next_free(plane).is_some_and(|block| self.flash.provide(block))
    }

    /// Pages that relocation has in a plane, once the erases under way are done.
    pub(crate) fn relocation_room(&self, plane: u32) -> u32 {
        let open = self.frontiers[self.slot(plane, Frontier::Gc)];
        let left = if open.block == NONE { 0 } else { self.pages_per_block - open.next_page };
        left + self.pool.free_or_erasing(plane) * self.pages_per_block
    }

    /// Gives out the next page of a frontier, opening a block if need be.
    #[inline]
    pub(crate) fn take_page(&mut self, plane: u32, frontier: Frontier) -> Option<Place> {
        if !self.has_page(plane, frontier) {
            return None;
        }
        let slot = self.slot(plane, frontier);
        let mut open = self.frontiers[slot];
        if open.block == NONE {
            open = OpenBlock { block: self.pool.open(plane)?, next_page: 0 };
            assert!(
                !self.flash.blocks.get(open.block).suspect,
                "block {} failed a program: it is not opened",
                open.block
            );
            self.opened.push(plane);
        }
        let place = Place { block: open.block, page: open.next_page };
        open.next_page += 1;
        let full = open.next_page == self.pages_per_block
            || !(place.page == 0 || self.flash.oob.sequence_fits(place.block, self.sequence + 1));
        if full {
            self.pool.fill_up(place.block, open.next_page);
            open = CLOSED;
        }
        self.frontiers[slot] = open;
        Some(place)
    }

    /// The page that [`Media::take_page`] would give out.
    pub(crate) fn next_page(&self, plane: u32, frontier: Frontier) -> Option<Place> {
        if !self.has_page(plane, frontier) {
            return None;
        }
        let open = self.frontiers[self.slot(plane, frontier)];
        if open.block != NONE {
            return Some(Place { block: open.block, page: open.next_page });
        }
        self.pool.next_free(plane).map(|block| Place { block, page: 0 })
    }

    /// Gives out up to `wanted` consecutive pages of a frontier: the first and how many.
    #[inline]
    pub(crate) fn take_run(&mut self, plane: u32, frontier: Frontier, wanted: u32) -> Option<(Place, u32)> {
        let first = self.take_page(plane, frontier)?;
        let slot = self.slot(plane, frontier);
        let open = &mut self.frontiers[slot];
        if open.block != first.block {
            return Some((first, 1));
        }
        let more = (wanted - 1).min(self.pages_per_block - open.next_page);
        open.next_page += more;
        if open.next_page == self.pages_per_block {
            self.pool.fill_up(first.block, self.pages_per_block);
            *open = CLOSED;
        }
        Some((first, more + 1))
    }

    /// The numbers of the next `count` programs: returns the first.
    #[inline]
    pub(crate) fn take_sequence(&mut self, count: u64) -> u64 {
        let first = self.sequence;
        self.sequence += count;
        first
    }

    /// Nothing more goes into this block if it is a frontier; programs in flight still end.
    pub(crate) fn abandon(&mut self, block: u32) {
        if let Some(open) = self.frontiers.iter_mut().find(|open| open.block == block) {
            self.pool.fill_up(block, open.next_page);
            *open = CLOSED;
            self.close_if_written(block);
        }
    }

    /// Makes a partly written block a frontier again after recovery; false if all frontiers are taken.
    pub(crate) fn reopen(&mut self, block: u32, next_page: u32) -> bool {
        let plane = self.pool.plane_of(block);
        let row = (plane * (self.streams + 1)) as usize;
        // Relocation first: host data can wait for it, but not the other way round.
        let relocation = self.separate_gc.then_some(self.streams);
        let mut slots = relocation.into_iter().chain(0..self.streams).map(|index| row + index as usize);
        let Some(slot) = slots.find(|slot| self.frontiers[*slot].block == NONE) else { return false };
        self.frontiers[slot] = OpenBlock { block, next_page };
        self.pool.adopt(block, BlockState::Open);
        true
    }

    /// Open blocks and their next pages, for snapshots.
    pub(crate) fn open_blocks(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.frontiers.iter().map(|open| (open.block, open.next_page))
    }

    /// Puts a saved frontier back, `None` where it has no block; false if that is not a block it could have.
    pub(crate) fn set_open_block(&mut self, slot: usize, block: u32, next_page: u32) -> bool {
        if block == NONE {
            self.frontiers[slot] = CLOSED;
            return true;
        }
        let plane = slot as u32 / (self.streams + 1);
        let used = self.separate_gc || slot as u32 % (self.streams + 1) < self.streams;
        let taken = self.frontiers.iter().any(|open| open.block == block);
        if !used || taken || block >= self.flash.geometry().blocks() || self.pool.plane_of(block) != plane {
            return false;
        }
        self.frontiers[slot] = OpenBlock { block, next_page };
        let written = self.flash.blocks.get(block).programmed;
        written == next_page && (1..self.pages_per_block).contains(&written)
    }

    /// Whether a block is a frontier.
    pub(crate) fn is_frontier(&self, block: u32) -> bool {
        self.frontiers.iter().any(|open| open.block == block)
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
    pub(crate) fn program(&mut self, place: Place, lpns: &[u32], write: Programming<'_>) -> OpId {
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
                self.failed_untimed.push(place);
            }
            return NONE;
        }
        if write.cause == Cause::Metadata {
            self.metadata_in_flight += 1;
        }
        let shared = !self.separate_gc;
        let class = if write.frontier == Frontier::Gc && !shared { Class::GcWrite } else { Class::HostWrite };
        let page_bytes = self.unit_bytes * self.units_per_page;
        let pins = if planted(Bug::EraseDoesNotWait) { &[] } else { write.pins };
        let pin = pins.first().copied().unwrap_or(NONE);
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
                waits_for: write.after.len() as u16,
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
        for earlier in write.after {
            self.flash.link(*earlier, op);
        }
        if !write.after.is_empty() && self.flash.may_fail() {
            self.remember_sources(op, write.taken);
        }
        op
    }

    /// Starts a read of `bytes` bytes of a page; the block stays pinned until it is done.
    #[inline]
    pub(crate) fn read(&mut self, place: Place, bytes: u32, cause: Cause, owner: Owner) -> OpId {
        // A host write waits for what completes its page.
        let waited_for = matches!(cause, Cause::Host | Cause::ReadModifyWrite);
        let class = if waited_for { Class::HostRead } else { Class::GcRead };
        self.pool.pin(place.block);
        self.flash.submit(
            self.now,
            Submit {
                kind: OpKind::Read,
                cause,
                class,
                block: place.block,
                page: place.page,
                source: NONE,
                bytes,
                token: owner.pack(),
                pin: place.block,
                waits_for: 0,
            },
        )
    }

    fn remember_sources(&mut self, op: OpId, taken: &[u32]) {
        let stride = self.units_per_page as usize;
        let first = op as usize * stride;
        if self.sources.len() < first + stride {
            self.sources.resize(first + stride, NONE);
        }
        let slots = &mut self.sources[first..first + stride];
        slots.fill(NONE);
        if taken.len() <= stride {
            slots[..taken.len()].copy_from_slice(taken);
        }
    }

    /// A page could not be read: what `waiting`, the program that waited for it, was to take from there is lost, and so
    /// is what programs behind it were to take from that.
    pub(crate) fn read_failed(&mut self, from: Place, waiting: OpId) {
        let stride = self.units_per_page;
        let first = self.unit_at(from);
        let mut lost: Vec<u32> = (first..first + stride).collect();
        let mut op = waiting;
        while op != NONE {
            let (block, page) = self.flash.target(op);
            let first = self.unit_at(Place { block, page });
            if self.several.get(&op).is_some_and(|several| several.sources.iter().any(|unit| lost.contains(unit))) {
                self.flash.lose(first);
                lost.push(first);
            }
            for index in 0..stride {
                let source = self.sources[(op * stride + index) as usize];
                if source != NONE && lost.contains(&source) {
                    self.flash.lose(first + index);
                    lost.push(first + index);
                }
            }
            op = self.flash.waiter(op);
        }
    }

    fn remember_pins(&mut self, op: OpId, pins: &[u32]) {
        let stride = self.units_per_page as usize;
        let first = op as usize * stride;
        if self.many_pins.len() < first + stride {
            self.many_pins.resize(first + stride, NONE);
        }
        let slots = &mut self.many_pins[first..first + stride];
        slots.fill(NONE);
        slots[..pins.len()].copy_from_slice(pins);
    }

    /// Lets go of what a finished operation pinned.
    #[inline]
    pub(crate) fn release_pins(&mut self, done: &Done) {
        if self.units_per_page == 1 || done.kind == OpKind::Read {
            if done.pin != NONE && self.pool.unpin(done.pin) {
                self.unpinned.push(done.pin);
            }
            if !self.several.is_empty()
                && let Some(Several { pins, .. }) = self.several.remove(&done.op)
            {
                for pin in pins {
                    if self.pool.unpin(pin) {
                        self.unpinned.push(pin);
                    }
                }
            }
            return;
        }
        for index in 0..self.units_per_page as usize {
            let pin = self.many_pins[done.op as usize * self.units_per_page as usize + index];
            if pin != NONE && self.pool.unpin(pin) {
                self.unpinned.push(pin);
            }
        }
    }

    /// The blocks a finished program pinned, to be kept pinned for longer.
    pub(crate) fn pins_of(&mut self, done: &Done) -> Vec<u32> {
        if self.units_per_page == 1 {
            let mut pins = if done.pin == NONE { Vec::new() } else { vec![done.pin] };
            pins.extend(self.several.remove(&done.op).into_iter().flat_map(|several| several.pins));
            return pins;
        }
        let first = done.op as usize * self.units_per_page as usize;
        let slots = &self.many_pins[first..first + self.units_per_page as usize];
        slots.iter().copied().filter(|pin| *pin != NONE).collect()
    }

    /// A full block whose programs have all ended is closed.
    #[inline]
    pub(crate) fn close_if_written(&mut self, block: u32) {
        if self.pool.state(block) == BlockState::Full {
            self.pool.close_if_written(block, self.flash.blocks.get(block).programmed);
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
    pub(crate) pins: &'a [u32],
    /// Operations whose data goes into the page.
    pub(crate) after: &'a [OpId],
    /// For each unit of the page the one that those operations take it from, `NONE` if it is all there; may be empty if
    /// `after` is.
    pub(crate) taken: &'a [u32],
    /// A copyback's source.
    pub(crate) source: u32,
}

//! Frontiers, stripes and pins of the media in time, beside lists: which page comes next, what the parity of a stripe is of,
//! and which operations in flight hold a block.

use std::collections::BTreeMap;

use ssdlab_flash::{BlockId, Cause, Contents, Done, Lpn, NONE, OpId, OpKind, Ppn, UnitId};

use super::{Input, adopt, drive, greedy, options};
use crate::DriveConfig;
use crate::block_pool::BlockState;
use crate::gc::Gc;
use crate::media::{Frontier, Media, Place, Programming};
use crate::superblocks::Role;
use crate::waiter::Waiter;

/// Operations in flight at most: what waits is worth as much as what runs.
const IN_FLIGHT_MOST: u32 = 48;

/// The media, and what is known of it.
struct Pair {
    config: DriveConfig,
    media: Media,
    gc: Gc,
    /// Superblocks that each operation in flight pins, as often as it does.
    pins: BTreeMap<OpId, Vec<u32>>,
    /// Pages of data given out of each superblock since it was opened, in order.
    given: BTreeMap<u32, Vec<Place>>,
    /// A superblock whose pages power cuts left uneven: its pages come in an order of their own.
    uneven: Vec<u32>,
    stamp: u64,
    done: Vec<Done>,
}

/// Programs, reads, empties, erases and cuts as `bytes` say. After each step the pins are those of what is in flight; where
/// nothing is, the pages of every whole stripe add up to nothing.
pub fn media(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let (channels, dies, planes) = (1 + input.below(2), 1 + input.below(2), 1 + input.below(2));
    let (blocks, pages) = (6 + input.below(5), 2 + input.below(4));
    let (superblock, parity) = input
        .pick(&[("none", "none"), ("drive", "page"), ("die", "none"), ("drive", "die"), ("die", "page")])
        .unwrap_or(("none", "none"));
    let (page, unit) = input.pick(&[("4k", "4k"), ("8k", "4k")]).unwrap_or(("4k", "4k"));
    let separate = input.byte() & 1 == 0;
    let streams = 1 + input.below(2);
    let ftl = format!(
        "superblock = \"{superblock}\"\nparity = \"{parity}\"\nmapping_unit = \"{unit}\"\nstreams = {streams}\n\
         separate_gc_frontier = {separate}\n"
    );
    let Some(config) = drive([channels, dies, planes, blocks, pages], page, true, &ftl, "") else { return };
    let mut pair = Pair {
        media: Media::new(&config, options(Contents::Stamps)),
        gc: greedy(&config),
        pins: BTreeMap::new(),
        given: BTreeMap::new(),
        uneven: Vec::new(),
        stamp: 0,
        done: Vec::new(),
        config,
    };
    while input.goes_on() {
        pair.step(&mut input);
        pair.compare_pins();
    }
    while pair.next() {}
    pair.compare_pins();
    pair.compare_stripes();
}

impl Pair {
    fn step(&mut self, input: &mut Input<'_>) {
        if self.media.flash.in_flight() >= IN_FLIGHT_MOST {
            self.next();
            return;
        }
        match input.below(16) {
            0..7 => self.program(input),
            7 | 8 => self.read(input),
            9..12 => _ = self.next(),
            12 | 13 => self.empty(input),
            14 => {
                while self.next() {}
                self.compare_stripes();
            }
            _ if input.byte() < 40 => self.cut(),
            _ => self.abandon(input),
        }
    }

    fn in_state(&self, state: BlockState) -> Vec<u32> {
        let superblocks = 0..self.media.pool.superblocks_count();
        superblocks.filter(|superblock| self.media.pool.state(*superblock) == state).collect()
    }

    /// A page that is on flash and can be read.
    fn some_page(&self, input: &mut Input<'_>) -> Option<Place> {
        let states = [BlockState::Open, BlockState::Full, BlockState::Closed];
        let written: Vec<u32> = states.into_iter().flat_map(|state| self.in_state(state)).collect();
        let superblock = input.pick(&written)?;
        let members: Vec<BlockId> = self.media.pool.superblocks.members(superblock).collect();
        let block = input.pick(&members)?;
        let programmed = self.media.flash.blocks.get(block).programmed;
        let page = input.below(programmed);
        let ppn = self.media.ppn_at(Place { block, page });
        (page < programmed && self.media.flash.blocks.readable(ppn)).then_some(Place { block, page })
    }

    fn program(&mut self, input: &mut Input<'_>) {
        let group = input.below(self.media.pool.groups());
        let frontier = match input.below(3) {
            0 => Frontier::Gc,
            stream => Frontier::Host(stream as u16 - 1),
        };
        let announced = self.media.next_page(group, frontier);
        // What completes the page is read first.
        let source = if input.byte() < 90 { self.some_page(input) } else { None };
        let Some(place) = self.media.take_page(group, frontier) else {
            assert_eq!(announced, None, "group {group} has a page and gives none");
            return;
        };
        assert_eq!(announced, Some(place), "the page that group {group} gives out");
        self.note_given(place);
        let mut after = Vec::new();
        if let Some(source) = source {
            let read = self.media.read(source, 512, Cause::ReadModifyWrite, Waiter::None);
            self.pin(read, &[source.block]);
            after.push(read);
        }
        // It supersedes units in other blocks, which stay until it is on flash.
        let mut superseded = Vec::new();
        for _ in 0..input.below(self.media.units_per_page + 1) {
            superseded.extend(self.some_page(input).map(|page| page.block));
        }
        let units = self.media.units_per_page;
        let first = self.media.unit_at(place);
        for unit in UnitId::each(first..first + units) {
            self.stamp += 1;
            let sector_data = self.stamp.to_le_bytes().repeat(self.media.flash.store.unit_data_bytes() / 8);
            self.media.flash.store.write(unit, &sector_data);
        }
        for _ in 0..units {
            self.media.pool.add_valid(place.block);
        }
        let lpns: Vec<Lpn> = (0..units).map(Lpn).collect();
        let op = self.media.program(
            place,
            &lpns,
            Programming {
                kind: OpKind::Program,
                cause: Cause::Host,
                frontier,
                owner: Waiter::None,
                pins: &superseded,
                after: &after,
                taken: &[],
                source: Ppn::NONE,
            },
        );
        assert_ne!(op, NONE, "in time a program has a number");
        self.pin(op, &superseded);
    }

    fn note_given(&mut self, place: Place) {
        let superblock = self.media.pool.superblocks.of(place.block);
        let given = self.given.entry(superblock).or_default();
        assert!(!given.contains(&place), "{place:?} is given out twice");
        given.push(place);
        if self.uneven.contains(&superblock) {
            return;
        }
        // By number, without the pages that are parity.
        let data = (0..self.media.pages_per_superblock())
            .filter(|number| self.media.pool.superblocks.role(*number) == Role::Data)
            .map(|number| self.media.pool.superblocks.place(superblock, number));
        let expected: Vec<Place> = data.take(given.len()).collect();
        assert_eq!(*given, expected, "pages of superblock {superblock} in order");
    }

    fn pin(&mut self, op: OpId, blocks: &[BlockId]) {
        let superblocks = blocks.iter().map(|block| self.media.pool.superblocks.of(*block)).collect();
        let before = self.pins.insert(op, superblocks);
        assert!(before.is_none(), "operation {op} is in flight twice");
    }

    fn read(&mut self, input: &mut Input<'_>) {
        if let Some(place) = self.some_page(input) {
            let op = self.media.read(place, 512, Cause::Host, Waiter::None);
            self.pin(op, &[place.block]);
        }
    }

    /// The next event on the chips; false if there is none.
    fn next(&mut self) -> bool {
        let Some(at) = self.media.flash.next_event() else {
            assert_eq!(self.media.flash.in_flight(), 0, "operations are in flight, and nothing happens next");
            return false;
        };
        assert!(at >= self.media.now, "time goes from {} back to {at}", self.media.now);
        self.media.now = at;
        let mut done = std::mem::take(&mut self.done);
        done.clear();
        self.media.flash.step(&mut done);
        for done in &done {
            if done.kind == OpKind::Erase {
                let superblock = self.media.pool.superblocks.of(done.block);
                if self.gc.erased(&mut self.media, done.block, done.failed).is_some() {
                    self.given.remove(&superblock);
                    self.uneven.retain(|other| *other != superblock);
                }
                continue;
            }
            self.media.release_pins(done);
            self.pins.remove(&done.op);
            if matches!(done.kind, OpKind::Program | OpKind::Copyback) {
                self.media.close_if_written(done.block);
            }
        }
        self.done = done;
        while let Some(superblock) = self.media.wakes.erasable.pop() {
            let due = self.media.pool.state(superblock) == BlockState::Erasing;
            if due && self.media.pool.pins(superblock) == 0 {
                self.gc.erase(&mut self.media, superblock);
            }
        }
        true
    }

    /// A written superblock is emptied, and erased as soon as nothing pins it.
    fn empty(&mut self, input: &mut Input<'_>) {
        let Some(superblock) = input.pick(&self.in_state(BlockState::Closed)) else { return };
        self.media.pool.collect(superblock);
        let member = self.media.pool.superblocks.members(superblock).next().expect("a written superblock has members");
        for _ in 0..self.media.pool.valid(superblock) {
            self.media.pool.drop_valid(member);
        }
        self.media.pool.await_erase(superblock);
        if self.media.pool.pins(superblock) == 0 {
            self.gc.erase(&mut self.media, superblock);
        }
    }

    fn abandon(&mut self, input: &mut Input<'_>) {
        let Some(superblock) = input.pick(&self.in_state(BlockState::Open)) else { return };
        let Some(member) = self.media.pool.superblocks.members(superblock).next() else { return };
        self.media.abandon(member);
        assert!(!self.media.is_frontier(superblock), "superblock {superblock} was given up");
        assert_ne!(self.media.pool.state(superblock), BlockState::Open, "superblock {superblock} was given up");
    }

    /// The power goes and comes back: programs that had begun are torn, others never were.
    fn cut(&mut self) {
        let fresh = Media::new(&self.config, options(Contents::Stamps));
        let now = self.media.now;
        let mut flash = std::mem::replace(&mut self.media, fresh).flash;
        flash.power_cut(now);
        let blocks = (0..flash.geometry().blocks()).map(BlockId);
        let torn: Vec<BlockId> = blocks.filter(|block| flash.blocks.get(*block).torn).collect();
        for block in torn {
            flash.execute(OpKind::Erase, Cause::Recovery, block, 0);
        }
        let sequences = (0..flash.geometry().blocks())
            .map(BlockId)
            .flat_map(|block| (0..flash.blocks.get(block).programmed).map(move |page| (block, page)));
        let newest = sequences.map(|(block, page)| flash.oob.sequence(block, page)).max().unwrap_or(0);
        self.media = Media::over(&self.config, options(Contents::Stamps), flash);
        self.media.now = now;
        self.gc = greedy(&self.config);
        self.pins.clear();
        self.given.clear();
        self.media.set_sequence(newest + (1 << 20));
        self.media.pool.forget();
        adopt(&mut self.media);
        self.uneven = self.in_state(BlockState::Open);
        self.uneven.extend(self.in_state(BlockState::Full));
        // What recovery itself programs pins nothing.
        self.media.reread.clear();
    }

    /// Pins on each superblock, by what is in flight.
    fn pinned(&self) -> Vec<u32> {
        let mut pinned = vec![0; self.media.pool.superblocks_count() as usize];
        self.pins.values().flatten().for_each(|superblock| pinned[*superblock as usize] += 1);
        pinned
    }

    fn compare_pins(&self) {
        for (superblock, pins) in (0..).zip(self.pinned()) {
            assert_eq!(self.media.pool.pins(superblock), pins, "pins on superblock {superblock}");
        }
    }

    /// With nothing in flight: the pages of each whole stripe add up to nothing, but where a power cut spoilt one.
    fn compare_stripes(&self) {
        if self.media.pool.superblocks.parity() == 0 {
            return;
        }
        for superblock in 0..self.media.pool.superblocks_count() {
            if !self.media.pool.superblocks.is_whole(superblock) {
                continue;
            }
            let width = self.media.pool.superblocks.width();
            for row in 0..self.media.pages_per_block() {
                let stripe: Vec<Place> = (row * width..(row + 1) * width)
                    .map(|number| self.media.pool.superblocks.place(superblock, number))
                    .collect();
                let parity = (row * width..(row + 1) * width)
                    .find(|number| self.media.pool.superblocks.role(*number) == Role::Parity)
                    .map(|number| self.media.pool.superblocks.place(superblock, number));
                let Some(parity) = parity else { continue };
                let bound: Vec<Place> = self.media.pool.superblocks.bound_to(parity).chain([parity]).collect();
                assert!(bound.iter().all(|place| stripe.contains(place)), "{parity:?} protects its own stripe");
                let whole = |place: &Place| {
                    let ppn = self.media.ppn_at(*place);
                    self.media.flash.is_written(place.block, place.page)
                        && self.media.flash.blocks.readable(ppn)
                        && self.media.flash.oob.lpn(self.media.unit_at(*place)) != Lpn::FILLER
                };
                if bound.iter().all(whole) {
                    self.adds_up(&bound);
                }
            }
        }
    }

    fn adds_up(&self, bound: &[Place]) {
        let store = &self.media.flash.store;
        for index in 0..self.media.units_per_page {
            let (mut sum, mut sector_data) = (vec![0; store.unit_data_bytes()], vec![0; store.unit_data_bytes()]);
            for place in bound {
                assert!(store.read(self.media.unit_at(*place) + index, 0, &mut sector_data), "{place:?} is whole");
                sum.iter_mut().zip(&sector_data).for_each(|(sum, byte)| *sum ^= byte);
            }
            assert!(sum.iter().all(|byte| *byte == 0), "the parity of {bound:?} is not of these pages");
        }
    }
}

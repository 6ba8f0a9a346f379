//! A drive of the set `cache` without a manager: what a host sends to a cache, and what each block may hold after it and after power
//! cuts. It knows the number of blocks and for how many there is room, and nothing else of the drive.
//!
//! The drive may have more addresses than room. It has to keep dirty blocks, so a write that would make more blocks dirty than it has room
//! for is refused, and no other one is.
//!
//! A dirty block holds what was written last. A clean one does, or it is absent. After a power cut a block holds what was flushed last
//! or something newer; it is absent only if it was evicted or clean since then. It never holds another block's data.

mod case;
mod script;

pub use case::{Cache, CacheScope};
pub use script::CacheCommand;

use std::collections::BTreeMap;

use ssdlab_base::command_sets::cache::{
    BlockBits, CACHE, CLEAN, EVICT, EXISTS, IDLE, NO_ROOM, PART_OF_A_BLOCK, READ, STANDBY, WRITE_CLEAN, WRITE_DIRTY,
};
use ssdlab_base::{Op, Opcode, Request};
use ssdlab_device::{DriveConfig, DriveError, Status, drops_clean, sector_stamp};

use crate::cut::Stop;
use crate::serial_host::{Back, SerialDrive};
use crate::totals::Totals;

/// What a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Absent,
    /// The cache alone has the data of this stamp.
    Dirty(u32),
    /// So has the disk.
    Clean(u32),
}

/// A block as the host knows it.
#[derive(Clone, Debug)]
struct Block {
    /// What it was, the oldest first. What it was before `durable` cannot come back.
    states: Vec<State>,
    durable: usize,
    /// It was clean, and was found to be dropped: it stays absent until it is written.
    is_dropped: bool,
    /// Of one that was found to be dropped after a power cut: stamps of the clean data that it may have had before, by the place among the
    /// states. It may be back after the next cut.
    dropped: Vec<(usize, u32)>,
}

/// What a look at a block found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    stamp: Option<u32>,
    dirty: bool,
}

impl Block {
    fn new() -> Block {
        Block { states: vec![State::Absent], durable: 0, is_dropped: false, dropped: Vec::new() }
    }

    fn now(&self) -> State {
        self.states[self.states.len() - 1]
    }
}

/// Whether a block of a state may look like this.
fn allows(state: State, seen: Seen) -> bool {
    match (state, seen.stamp) {
        (State::Absent | State::Clean(_), None) => !seen.dirty,
        (State::Dirty(stamp), Some(found)) => stamp == found && seen.dirty,
        (State::Clean(stamp), Some(found)) => stamp == found && !seen.dirty,
        _ => false,
    }
}

/// A host that sends one command after the other, and knows what each block may hold.
pub struct CacheHost {
    serial: SerialDrive,
    /// Sectors of a block.
    per_unit: u64,
    /// Blocks that it addresses.
    blocks: u32,
    /// Blocks that the drive has room for.
    room: usize,
    /// The drive drops clean blocks.
    drops_clean: bool,
    known: BTreeMap<u32, Block>,
    next_stamp: u32,
}

impl CacheHost {
    /// A host of a new drive.
    ///
    /// # Errors
    /// The drive is refused.
    fn build(config: &DriveConfig, seed: u64) -> Result<CacheHost, DriveError> {
        let mut serial = SerialDrive::new(config, seed)?;
        let per_unit = u64::from(config.ftl.mapping_unit) / 512;
        Ok(CacheHost {
            per_unit,
            blocks: (serial.power.get().user_sectors() / per_unit) as u32,
            serial,
            room: config.user_units() as usize,
            drops_clean: drops_clean(config),
            known: BTreeMap::new(),
            next_stamp: 0,
        })
    }

    fn run(&mut self, request: Request, stamp: u32) -> Result<Back, Stop> {
        self.serial.run(request, &[], stamp)
    }

    fn of_set(&mut self, opcode: Opcode, first: u32, blocks: u32, stamp: u32) -> Result<Back, Stop> {
        let spec = CACHE.command(opcode).expect("of the set");
        let (first, blocks) = if spec.carrier == Op::Flush { (0, 0) } else { (first, blocks) };
        let request = Request::of_set(spec, u64::from(first) * self.per_unit, u64::from(blocks) * self.per_unit);
        self.run(request, stamp)
    }

    /// Blocks become what `state` says, from what they are; `None` is no change.
    fn note(&mut self, first: u32, blocks: u32, state: impl Fn(State) -> Option<State>) {
        for block in first..first + blocks {
            let known = self.known.entry(block).or_insert_with(Block::new);
            let before = if known.is_dropped { State::Absent } else { known.now() };
            // One that was dropped and is evicted stays away after a power cut, too.
            if let Some(after) = state(before).filter(|after| *after != known.now()) {
                known.states.push(after);
                known.is_dropped = false;
            }
        }
    }

    fn all_durable(&mut self) {
        self.serial.completed_durable += 1;
        for known in self.known.values_mut() {
            known.durable = known.states.len() - 1;
        }
    }

    /// Whether there is room for blocks that the drive has to keep.
    fn has_room(&self, first: u32, blocks: u32) -> bool {
        let is_kept = |known: &Block| match known.now() {
            State::Dirty(_) => true,
            State::Clean(_) => !self.drops_clean && !known.is_dropped,
            State::Absent => false,
        };
        let others =
            self.known.iter().filter(|(block, known)| !(first..first + blocks).contains(block) && is_kept(known));
        others.count() + blocks as usize <= self.room
    }

    /// Writes, evicts or cleans blocks.
    fn change(&mut self, opcode: Opcode, first: u32, blocks: u32) -> Result<(), Stop> {
        self.next_stamp += 1;
        let stamp = self.next_stamp;
        let is_kept = opcode == WRITE_DIRTY || opcode == WRITE_CLEAN && !self.drops_clean;
        if is_kept && !self.has_room(first, blocks) {
            let back = self.of_set(opcode, first, blocks, stamp)?;
            assert_eq!(back.status, Status::Refused(NO_ROOM), "{opcode:?} of {blocks} blocks from {first} on");
            return Ok(());
        }
        self.note(first, blocks, |before| match (opcode, before) {
            (WRITE_DIRTY, _) => Some(State::Dirty(stamp)),
            (WRITE_CLEAN, _) => Some(State::Clean(stamp)),
            (EVICT, _) => Some(State::Absent),
            (CLEAN, State::Dirty(stamp)) => Some(State::Clean(stamp)),
            _ => None,
        });
        let back = self.of_set(opcode, first, blocks, stamp)?;
        assert_eq!(back.status, Status::Success, "{opcode:?} of {blocks} blocks from {first} on");
        Ok(())
    }

    /// A command of a part of a block is refused, and changes nothing.
    fn refuse(&mut self, opcode: Opcode, first: u32) -> Result<(), Stop> {
        if self.per_unit < 2 {
            return Ok(());
        }
        let spec = CACHE.command(opcode).expect("of the set");
        let back = self.run(Request::of_set(spec, u64::from(first) * self.per_unit + 1, 1), u32::MAX)?;
        assert_eq!(back.status, Status::Refused(PART_OF_A_BLOCK), "{opcode:?} of a part of block {first}");
        Ok(())
    }

    fn block_request(&self, op: Op, first: u32, blocks: u32, fua: bool) -> Request {
        Request { fua, ..Request::new(op, u64::from(first) * self.per_unit, u64::from(blocks) * self.per_unit) }
    }

    /// Writes or trims blocks as block I/O.
    fn block(&mut self, op: Op, first: u32, blocks: u32, fua: bool) -> Result<(), Stop> {
        self.next_stamp += 1;
        let stamp = self.next_stamp;
        if op == Op::Write && !self.has_room(first, blocks) {
            let request = self.block_request(op, first, blocks, fua);
            let back = self.run(request, stamp)?;
            assert_eq!(back.status, Status::Refused(NO_ROOM), "a write of {blocks} blocks from {first} on");
            return Ok(());
        }
        self.note(first, blocks, |_| Some(if op == Op::Write { State::Dirty(stamp) } else { State::Absent }));
        let request = self.block_request(op, first, blocks, fua);
        let back = self.run(request, stamp)?;
        assert_eq!(back.status, Status::Success, "{op:?} of {blocks} blocks from {first} on");
        if fua {
            self.serial.completed_durable += 1;
            for block in first..first + blocks {
                let known = self.known.get_mut(&block).expect("it was changed just now");
                known.durable = known.states.len() - 1;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Stop> {
        let back = self.run(Request::new(Op::Flush, 0, 0), 0)?;
        assert_eq!(back.status, Status::Success, "a flush");
        self.all_durable();
        Ok(())
    }

    /// Makes changes of the map durable; what is in a write buffer stays there.
    fn rest(&mut self, opcode: Opcode) -> Result<(), Stop> {
        assert!(matches!(opcode, STANDBY | IDLE), "{opcode:?} lets no drive rest");
        let back = self.of_set(opcode, 0, 0, 0)?;
        assert_eq!((back.status, back.words.len()), (Status::Success, 1), "{opcode:?} answers with a number");
        Ok(())
    }

    /// What blocks look like: to `read` and `exists`, and to a block read.
    fn look(&mut self, first: u32, blocks: u32) -> Result<Vec<Seen>, Stop> {
        let exists = self.of_set(EXISTS, first, blocks, 0)?;
        assert_eq!(exists.status, Status::Success, "exists of {blocks} blocks from {first} on");
        let dirty = BlockBits::from_bytes(&exists.bytes, blocks as usize).expect("a bit for each block").0;
        let read = self.of_set(READ, first, blocks, 0)?;
        let missing = match read.status {
            Status::Success => {
                assert!(read.words.is_empty(), "nothing is missing, and {:?} says what is", read.words);
                vec![false; blocks as usize]
            }
            Status::Absent => BlockBits::from_words(&read.words, blocks as usize).expect("a bit for each block").0,
            other => panic!("a read of {blocks} blocks from {first} on ended with {other:?}"),
        };
        assert_eq!(read.status == Status::Absent, missing.contains(&true), "a read that misses something says what");
        let (sector, sectors) = (u64::from(first) * self.per_unit, u64::from(blocks) * self.per_unit);
        let plain = self.run(Request::new(Op::Read, sector, sectors), 0)?;
        assert_eq!(plain.status, Status::Success, "a block read of {blocks} blocks from {first} on");
        let mut seen = Vec::new();
        for (index, (dirty, missing)) in dirty.into_iter().zip(missing.iter().copied()).enumerate() {
            let block = first + index as u32;
            let sectors = index * self.per_unit as usize..(index + 1) * self.per_unit as usize;
            let cells = &plain.stamps[sectors.clone()];
            let is_absent = cells.iter().all(|cell| *cell == 0);
            assert!(!missing || is_absent, "block {block} is absent, and reads as {cells:x?}");
            // Data comes with `read` as far as there is any; collection may have dropped the block since then.
            if !missing && !is_absent {
                assert_eq!(&read.stamps[sectors], cells, "block {block}, by read and by a block read");
            }
            let stamp = if is_absent { None } else { Some(self.stamp_of(block, cells)) };
            seen.push(Seen { stamp, dirty });
        }
        Ok(seen)
    }

    /// The stamp of what a block that is there holds: one that it was written with.
    fn stamp_of(&self, block: u32, cells: &[u64]) -> u32 {
        let states = self.known.get(&block).map_or(&[][..], |known| &known.states);
        let fits = |stamp: u32| {
            let sectors = (0..).zip(cells);
            let place = u64::from(block) * self.per_unit;
            sectors.into_iter().all(|(sector, cell)| *cell == sector_stamp(stamp.into(), place + sector))
        };
        let stamps = states.iter().rev().filter_map(|state| match state {
            State::Dirty(stamp) | State::Clean(stamp) => Some(*stamp),
            State::Absent => None,
        });
        let found = stamps.into_iter().find(|stamp| fits(*stamp));
        found.unwrap_or_else(|| panic!("block {block} holds {cells:x?}, and was {states:?}"))
    }

    /// Blocks are what they were made last, or were dropped.
    fn compare(&mut self, first: u32, blocks: u32) -> Result<(), Stop> {
        for (block, seen) in (first..).zip(self.look(first, blocks)?) {
            let known = self.known.entry(block).or_insert_with(Block::new);
            let now = if known.is_dropped { State::Absent } else { known.now() };
            assert!(allows(now, seen), "block {block} is {seen:?}, expected {now:?}, of {:?}", known.states);
            if matches!(now, State::Clean(_)) && seen.stamp.is_none() {
                known.is_dropped = true;
            }
        }
        Ok(())
    }

    fn compare_blocks(&mut self) -> Result<(), Stop> {
        let most = 64;
        for first in (0..self.blocks).step_by(most) {
            self.compare(first, (self.blocks - first).min(most as u32))?;
        }
        self.serial.power.check();
        Ok(())
    }

    /// The power goes, by the cut that waits or at once, and comes back.
    fn cut_and_compare(&mut self, totals: &mut Totals) {
        self.serial.cut(totals);
        for block in 0..self.blocks {
            let Ok(looked) = self.look(block, 1) else { unreachable!("no cut is due") };
            let seen = looked[0];
            let Some(known) = self.known.get_mut(&block) else {
                assert_eq!(seen, Seen { stamp: None, dirty: false }, "block {block} was never written");
                continue;
            };
            let possible = known.durable..known.states.len();
            // An absent block may be one that was dropped after an eviction was lost, and is back after the next cut.
            let is_clean = |place: &usize| matches!(known.states[*place], State::Clean(_));
            let dropped = possible.clone().rev().find(|place| is_clean(place) && seen.stamp.is_none());
            let allowed = |place: &usize| {
                let before = known.dropped.iter().filter(|(at, _)| at == place);
                allows(known.states[*place], seen)
                    || before.into_iter().any(|(_, stamp)| allows(State::Clean(*stamp), seen))
            };
            let place = dropped.or_else(|| possible.clone().rev().find(allowed));
            let place = place.unwrap_or_else(|| {
                panic!(
                    "block {block} is {seen:?} after a power cut, of {:?} from {} on, or dropped before: {:?}",
                    known.states, known.durable, known.dropped
                )
            });
            // What is there is what counts from now on; whether it survives the next cut is open until a flush.
            known.is_dropped = seen.stamp.is_none();
            if known.is_dropped {
                // Which of them it was when it was dropped, its absence does not tell.
                let clean = possible.filter_map(|at| match known.states[at] {
                    State::Clean(stamp) if at < place => Some((place, stamp)),
                    _ => None,
                });
                let of_before =
                    known.dropped.iter().filter(|(at, _)| *at >= known.durable).map(|(_, stamp)| (place, *stamp));
                known.dropped = clean.chain(of_before).collect();
            } else {
                known.states[place] =
                    if seen.dirty { known.states[place] } else { State::Clean(seen.stamp.unwrap_or(0)) };
                known.dropped.retain(|(at, _)| *at < place);
            }
            known.states.truncate(place + 1);
        }
        self.serial.power.check();
    }
}

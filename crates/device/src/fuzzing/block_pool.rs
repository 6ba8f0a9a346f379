//! The block pool beside a list of blocks that is searched from end to end.

use ssdlab_flash::{BlockId, Cause, Contents, Flash, OpKind};

use super::{Input, drive};
use crate::block_pool::{BlockPool, BlockState};

/// What the model knows of a superblock.
#[derive(Clone, Debug)]
struct Block {
    state: BlockState,
    valid: u32,
    pins: u32,
    given: u32,
    /// Its place among all closings.
    closed: u64,
    /// When it came to the free list.
    freed: u64,
    retiring: bool,
    trimmed: bool,
}

struct Model {
    blocks: Vec<Block>,
    per_group: u32,
    least_worn: bool,
    clock: u64,
    closings: u64,
}

impl Model {
    fn in_state(&self, state: BlockState) -> Vec<u32> {
        let blocks = (0..).zip(&self.blocks);
        blocks.filter(|(_, block)| block.state == state).map(|(number, _)| number).collect()
    }

    fn of_group(&self, group: u32) -> impl Iterator<Item = (u32, &Block)> {
        let first = group * self.per_group;
        (first..first + self.per_group).zip(&self.blocks[first as usize..])
    }

    /// The free superblock that is opened next.
    fn next_free(&self, group: u32, pool: &BlockPool, flash: &Flash) -> Option<u32> {
        let free = self.of_group(group).filter(|(_, block)| block.state == BlockState::Free);
        let order = |number: u32, block: &Block| match self.least_worn {
            true => (u64::from(pool.wear(number, flash)), u64::from(number)),
            false => (block.freed, 0),
        };
        free.min_by_key(|(number, block)| order(*number, block)).map(|(number, _)| number)
    }

    fn close(&mut self, number: u32) {
        self.closings += 1;
        let block = &mut self.blocks[number as usize];
        (block.state, block.closed) = (BlockState::Closed, self.closings);
    }

    fn free(&mut self, number: u32) {
        self.clock += 1;
        let block = &mut self.blocks[number as usize];
        (block.state, block.freed, block.retiring, block.trimmed) = (BlockState::Free, self.clock, false, false);
    }
}

/// Opens, fills, pins, empties, erases and retires blocks as `bytes` say, and compares the pool with its model after each.
pub fn block_pool(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let (dies, planes) = (1 + input.below(2), 1 + input.below(3));
    let (blocks, pages) = (4 + input.below(9), 1 + input.below(4));
    let superblock = input.pick(&["none", "die", "drive"]).unwrap_or("none");
    let least_worn = input.byte() & 1 == 0;
    let ftl = format!("superblock = \"{superblock}\"\n");
    let gc = format!("dynamic_wear_levelling = {least_worn}\n");
    let geometry = [1, dies, planes, blocks, pages];
    let Some(config) = drive(geometry, "4k", false, &ftl, &gc) else { return };
    let mut flash = Flash::new(&config.flash, 1, Contents::Nothing, 1, false);
    // Bad from the factory.
    for _ in 0..input.below(3) {
        let block = input.below(flash.geometry().blocks());
        flash.retire(BlockId(block));
    }
    let mut pool = BlockPool::new(&config, &mut flash);
    let fresh = |number: u32| Block {
        state: pool.state(number),
        valid: 0,
        pins: 0,
        given: 0,
        closed: 0,
        freed: u64::from(number),
        retiring: false,
        trimmed: false,
    };
    let count = pool.superblocks_count();
    let blocks: Vec<Block> = (0..count).map(fresh).collect();
    let clock = u64::from(count);
    let mut model = Model { blocks, per_group: pool.per_group, least_worn, clock, closings: 0 };
    let full = config.flash.geometry.pages_per_block * pool.superblocks.width();
    while input.goes_on() {
        step(&mut input, &mut pool, &mut flash, &mut model, full);
        compare(&pool, &flash, &model);
    }
}

fn step(input: &mut Input<'_>, pool: &mut BlockPool, flash: &mut Flash, model: &mut Model, full: u32) {
    match input.below(12) {
        0 => {
            let group = input.below(pool.groups());
            let expected = model.next_free(group, pool, flash);
            assert_eq!(pool.open(group), expected, "the block that group {group} opens");
            if let Some(block) = expected {
                model.blocks[block as usize].state = BlockState::Open;
                model.blocks[block as usize].given = 0;
            }
        }
        1..5 => {
            // A page is given out and programmed; its unit may be superseded before that is told.
            let Some(block) = input.pick(&model.in_state(BlockState::Open)) else { return };
            let given = model.blocks[block as usize].given;
            let place = pool.superblocks.place(block, given);
            flash.execute(OpKind::Program, Cause::Host, place.block, place.page);
            model.blocks[block as usize].given += 1;
            if input.byte() & 3 != 0 {
                pool.add_valid(place.block);
                model.blocks[block as usize].valid += 1;
            }
            if given + 1 == full || input.byte() < 8 {
                pool.fill_up(block, given + 1);
                model.blocks[block as usize].state = BlockState::Full;
            }
        }
        5 => {
            let Some(block) = input.pick(&model.in_state(BlockState::Full)) else { return };
            let given = model.blocks[block as usize].given;
            pool.close_if_written(block, given - 1);
            assert_eq!(pool.state(block), BlockState::Full, "block {block} has a page to come");
            pool.close_if_written(block, given);
            model.close(block);
        }
        6 | 7 => {
            let holding: Vec<u32> = (0..).zip(&model.blocks).filter(|(_, b)| b.valid > 0).map(|(n, _)| n).collect();
            let Some(block) = input.pick(&holding) else { return };
            let member = pool.superblocks.members(block).next().expect("what holds data has members");
            pool.drop_valid(member);
            model.blocks[block as usize].valid -= 1;
            if input.byte() < 64 {
                pool.set_trimmed(member);
                model.blocks[block as usize].trimmed = true;
            }
        }
        8 => {
            let written = |block: &Block| !matches!(block.state, BlockState::Free | BlockState::Bad);
            let some: Vec<u32> = (0..).zip(&model.blocks).filter(|(_, b)| written(b)).map(|(n, _)| n).collect();
            let Some(block) = input.pick(&some) else { return };
            let member = pool.superblocks.members(block).next().expect("what is written has members");
            let known = &mut model.blocks[block as usize];
            if known.pins > 0 && input.byte() & 1 == 0 {
                known.pins -= 1;
                let due = known.pins == 0 && known.state == BlockState::Erasing;
                assert_eq!(pool.unpin(member), due, "the erase of block {block} is due");
            } else {
                pool.pin(member);
                known.pins += 1;
            }
        }
        9 => {
            let Some(block) = input.pick(&model.in_state(BlockState::Closed)) else { return };
            if input.byte() < 32 {
                pool.set_retiring(block);
                model.blocks[block as usize].retiring = true;
            }
            pool.collect(block);
            model.blocks[block as usize].state = BlockState::Collecting;
        }
        10 => {
            // What is valid goes to a frontier; then the block waits for its erase.
            let Some(block) = input.pick(&model.in_state(BlockState::Collecting)) else { return };
            let valid = model.blocks[block as usize].valid;
            if valid > 0 {
                let Some(to) = input.pick(&model.in_state(BlockState::Open)) else { return };
                let count = 1 + input.below(valid);
                pool.move_valid(block, to, count);
                model.blocks[block as usize].valid -= count;
                model.blocks[to as usize].valid += count;
                return;
            }
            pool.await_erase(block);
            model.blocks[block as usize].state = BlockState::Erasing;
        }
        _ => erase(input, pool, flash, model),
    }
}

fn erase(input: &mut Input<'_>, pool: &mut BlockPool, flash: &mut Flash, model: &mut Model) {
    let waits = |block: &u32| model.blocks[*block as usize].pins == 0;
    let due: Vec<u32> = model.in_state(BlockState::Erasing).into_iter().filter(waits).collect();
    let Some(block) = input.pick(&due) else { return };
    let goes_bad = input.byte() < 16;
    let group = pool.group_of(block);
    for (index, member) in pool.superblocks.members(block).enumerate() {
        if flash.blocks.get(member).programmed > 0 {
            flash.execute(OpKind::Erase, Cause::Gc, member, 0);
        }
        if goes_bad && index == 0 {
            flash.retire(member);
            pool.superblocks.remove(member);
        }
    }
    let good = pool.is_good(block, flash);
    pool.erased(block, pool.wear(block, flash), good);
    if good {
        model.free(block);
        return;
    }
    let known = &mut model.blocks[block as usize];
    (known.state, known.trimmed) = (BlockState::Bad, false);
    pool.mend(group, flash);
    // Who is whole again follows from what is left over: every such superblock is made of good, erased blocks of its own.
    let before = model.in_state(BlockState::Bad);
    for other in before.into_iter().filter(|other| pool.state(*other) == BlockState::Free) {
        assert!(pool.is_good(other, flash), "superblock {other} was mended, and is not good");
        assert_eq!(pool.group_of(other), group, "superblock {other} was mended for group {group}");
        model.free(other);
        let block = &mut model.blocks[other as usize];
        (block.given, block.valid) = (0, 0);
    }
}

fn compare(pool: &BlockPool, flash: &Flash, model: &Model) {
    let mut member_of = vec![None; flash.geometry().blocks() as usize];
    for (number, block) in (0..).zip(&model.blocks) {
        assert_eq!(pool.state(number), block.state, "the state of block {number}");
        assert_eq!(pool.valid(number), block.valid, "the valid units of block {number}");
        assert_eq!(pool.pins(number), block.pins, "the pins of block {number}");
        assert_eq!(pool.is_trimmed(number), block.trimmed, "trims took from block {number}");
        assert_eq!(pool.is_retiring(number), block.retiring, "block {number} is retired");
        if block.state == BlockState::Bad {
            continue;
        }
        for member in pool.superblocks.members(number) {
            assert_eq!(member_of[member.index()].replace(number), None, "block {member} is in one superblock");
            assert!(!flash.blocks.get(member).bad, "block {member} of superblock {number} is bad");
        }
    }
    for group in 0..pool.groups() {
        pool.audit(group);
        let in_state = |state| model.of_group(group).filter(|(_, block)| block.state == state).count() as u32;
        let free = in_state(BlockState::Free);
        assert_eq!(pool.free_blocks(group), free, "free blocks of group {group}");
        assert_eq!(pool.free_or_erasing(group), free + in_state(BlockState::Erasing));
        assert_eq!(pool.usable(group), model.per_group - in_state(BlockState::Bad), "good blocks of group {group}");
        assert_eq!(pool.next_free(group), model.next_free(group, pool, flash), "what group {group} opens next");
        let first = group * model.per_group;
        let closed = || model.of_group(group).filter(|(_, block)| block.state == BlockState::Closed);
        let view = pool.view(group, 1);
        let fewest = closed().min_by_key(|(number, block)| (block.valid, *number)).map(|(number, _)| number - first);
        assert_eq!(view.fewest_valid(), fewest, "the block of group {group} with the fewest valid units");
        let oldest = closed().min_by_key(|(_, block)| block.closed).map(|(number, _)| number - first);
        assert_eq!(view.first_closed(), oldest, "the block of group {group} that was closed first");
        for (number, block) in closed() {
            assert_eq!(view.age(number - first), model.closings - block.closed, "the age of block {number}");
        }
    }
}

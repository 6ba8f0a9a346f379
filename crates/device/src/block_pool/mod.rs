//! The blocks as the controller keeps them: free, open, closed; how much in them is valid; what pins them.
//!
//! All of this is kept by superblock: by block where every block stands alone, else for the blocks of one as a whole. What
//! happens to single pages (a unit becomes valid, an operation pins) is told by block.
//!
//! A block is pinned by every operation in flight that must end before the block may be erased: reads from it, and the
//! programs that supersede what it holds. An erase waits for the last pin, so a power cut never finds the only good
//! copy of anything gone.
//!
//! - `life_cycle.rs`: states of a superblock from one erase to the next.
//! - `free_list.rs`: free superblocks, in the order in which they are opened.
//! - `set_aside.rs`: superblocks of a kind that is not data.
//! - `valid.rs`: how many units of each are valid.
//! - `pins.rs`: what waits before an erase.
//! - `view.rs`: what a victim policy sees.
//! - `audit.rs`: a walk that compares all of this.

mod audit;
mod free_list;
mod life_cycle;
mod pins;
mod set_aside;
mod valid;
mod view;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;

use ssdlab_base::Divider;
use ssdlab_flash::{BlockId, Flash, Geometry};

use self::free_list::FreeList;
use self::set_aside::{KINDS, SetAside};
use self::valid::NOT_CLOSED;
use crate::DriveConfig;
use crate::superblocks::Superblocks;

pub(crate) use life_cycle::BlockState;
pub(crate) use set_aside::BlockKind;
pub use view::PoolView;

/// All blocks of the drive.
pub(crate) struct BlockPool {
    /// Which blocks make up which superblock.
    pub(crate) superblocks: Superblocks,
    /// Superblocks of a group, those that are dissolved included.
    pub(crate) per_group: u32,
    by_per_group: Divider,
    states: Vec<BlockState>,
    /// Valid units of each block, with `NOT_CLOSED` on top where the block cannot be a victim.
    valid: Vec<u32>,
    /// Units of each block that are current and that collection need not move.
    loose: Vec<u32>,
    loose_units: u64,
    pins: Vec<u32>,
    /// Pages given out when a block became full.
    issued: Vec<u32>,
    /// When a block was closed, in closings of the whole drive.
    closed_order: Vec<u64>,
    closings: u64,
    /// Blocks in line to be emptied and marked bad; the chips remember which they are.
    retiring: Vec<bool>,
    /// Trims took units from this block since it was last erased.
    trimmed: Vec<bool>,
    free: Vec<FreeList>,
    erasing: Vec<u32>,
    usable: Vec<u32>,
    /// What superblocks hold.
    kinds: Vec<BlockKind>,
    /// By kind; nothing for data.
    set_aside: [SetAside; KINDS],
    /// By group: what all kinds are owed.
    owed: Vec<u32>,
    /// What superblocks are has changed so often: their states and kinds, and whether they hold something.
    state_changes: u64,
    /// Superblocks opened for data since the drive was made.
    data_opened: u64,
    /// Superblocks of another kind that became data blocks.
    became_data: u64,
    /// So many blocks of each plane, from the first on, are no superblocks: the design keeps checkpoints there.
    kept_apart: u32,
}

impl BlockPool {
    /// All good blocks free.
    pub(crate) fn new(config: &DriveConfig, flash: &mut Flash) -> BlockPool {
        let geometry = *flash.geometry();
        let superblocks = Superblocks::new(config, flash);
        let width = superblocks.width();
        assert!(geometry.planes().is_multiple_of(width), "{} planes in groups of {width}", geometry.planes());
        let groups = (geometry.planes() / superblocks.width()) as usize;
        let per_group = geometry.blocks_per_plane;
        let count = groups * per_group as usize;
        let list = || match config.gc.dynamic_wear_levelling {
            true => FreeList::LeastWorn(BinaryHeap::new()),
            false => FreeList::InOrder(VecDeque::new()),
        };
        let mut pool = BlockPool {
            superblocks,
            per_group,
            by_per_group: Divider::new(per_group),
            states: vec![BlockState::Free; count],
            valid: vec![NOT_CLOSED; count],
            loose: vec![0; count],
            loose_units: 0,
            pins: vec![0; count],
            issued: vec![0; count],
            closed_order: vec![0; count],
            closings: 0,
            retiring: vec![false; count],
            trimmed: vec![false; count],
            free: (0..groups).map(|_| list()).collect(),
            erasing: vec![0; groups],
            usable: vec![0; groups],
            kinds: vec![BlockKind::Data; count],
            set_aside: [0, config.map_blocks(), config.log_blocks()].map(|quota| SetAside {
                quota,
                owed: vec![quota; groups],
                erasing: vec![0; groups],
                retiring: vec![0; groups],
                held: vec![0; groups],
            }),
            owed: vec![config.map_blocks() + config.log_blocks(); groups],
            state_changes: 0,
            data_opened: 0,
            became_data: 0,
            kept_apart: config.checkpoint_blocks(),
        };
        assert!(pool.kept_apart == 0 || width == 1, "checkpoints lie beside blocks that stand alone");
        for superblock in 0..count as u32 {
            if !pool.is_good(superblock, flash) {
                pool.states[superblock as usize] = BlockState::Bad;
            }
        }
        if flash.blocks.all().iter().all(|block| block.programmed == 0 && !block.torn) {
            pool.mend_all(flash);
        }
        pool.rebuild_free(flash);
        pool
    }

    /// Bytes that [`BlockPool::new`] takes, with a list for each superblock and as many of them as there are blocks: the
    /// lists, a place in a free list, which may have twice as many, and the table of members.
    pub(crate) fn simulator_bytes(geometry: &Geometry) -> u64 {
        let lists = size_of::<BlockState>() + 4 * size_of::<u32>() + size_of::<u64>() + 2 * size_of::<bool>();
        let free = 2 * size_of::<Reverse<(u32, u32)>>();
        let members = 2 * size_of::<u32>();
        u64::from(geometry.blocks()) * (lists + free + members) as u64
    }

    /// Whether all members of a superblock are there and good.
    pub(crate) fn is_good(&self, superblock: u32, flash: &Flash) -> bool {
        let good = |block: BlockId| !flash.blocks.get(block).bad;
        !self.is_kept_apart(superblock)
            && self.superblocks.is_whole(superblock)
            && self.superblocks.members(superblock).all(good)
    }

    /// Whether a block holds checkpoints of the design, or will, and nothing else.
    #[inline]
    pub(crate) const fn is_kept_apart(&self, block: u32) -> bool {
        self.kept_apart > 0 && block % self.per_group < self.kept_apart
    }

    /// Groups: planes, dies, or the drive.
    pub(crate) fn groups(&self) -> u32 {
        self.free.len() as u32
    }

    /// Superblocks of the drive.
    pub(crate) fn superblocks_count(&self) -> u32 {
        self.states.len() as u32
    }

    /// Superblocks that lack a member are made whole as far as blocks are left over; whatever is in state `Bad` is erased.
    pub(crate) fn mend(&mut self, group: u32, flash: &mut Flash) {
        if self.superblocks.width() == 1 {
            return;
        }
        let of_group = self.superblocks_of(group);
        let mut lacking: Vec<u32> =
            of_group.filter(|superblock| self.states[*superblock as usize] == BlockState::Bad).collect();
        // Those that lack the fewest members first: what was dissolved long ago stays so.
        lacking.sort_by_key(|superblock| Reverse(self.superblocks.members(*superblock).count()));
        for superblock in self.superblocks.reform(flash, &lacking) {
            let wear = self.wear(superblock, flash);
            assert!(self.superblocks.is_whole(superblock), "superblock {superblock} was mended, and lacks a member");
            assert_eq!(self.pins[superblock as usize], 0, "superblock {superblock} was mended, and is pinned");
            assert_eq!(
                self.valid[superblock as usize], NOT_CLOSED,
                "superblock {superblock} was mended, and holds data"
            );
            self.state_changes += 1;
            self.states[superblock as usize] = BlockState::Free;
            self.retiring[superblock as usize] = false;
            self.usable[group as usize] += 1;
            self.free[group as usize].push(superblock, wear);
        }
    }

    /// Makes superblocks that lack a member whole in every group, as [`BlockPool::mend`] does in one.
    pub(crate) fn mend_all(&mut self, flash: &mut Flash) {
        for group in 0..self.groups() {
            self.mend(group, flash);
        }
    }

    /// Erases of the member that has the most.
    pub(crate) fn wear(&self, superblock: u32, flash: &Flash) -> u32 {
        if self.superblocks.width() == 1 {
            return flash.blocks.get(BlockId(superblock)).erases;
        }
        self.superblocks.members(superblock).map(|block| flash.blocks.get(block).erases).max().unwrap_or(0)
    }

    /// The group of a superblock.
    #[inline]
    pub(crate) fn group_of(&self, superblock: u32) -> u32 {
        self.by_per_group.div(superblock)
    }

    /// The superblocks of a group.
    pub(crate) const fn superblocks_of(&self, group: u32) -> Range<u32> {
        group * self.per_group..(group + 1) * self.per_group
    }

    /// Superblocks opened for data since the drive was made.
    pub(crate) const fn data_opened(&self) -> u64 {
        self.data_opened
    }

    /// Good superblocks of a group.
    pub(crate) fn usable(&self, group: u32) -> u32 {
        self.usable[group as usize]
    }

    /// Forgets all valid counts and pins, before recovery counts anew.
    pub(crate) fn forget(&mut self) {
        self.valid.fill(NOT_CLOSED);
        self.loose.fill(0);
        self.loose_units = 0;
        self.pins.fill(0);
        self.erasing.fill(0);
        self.retiring.fill(false);
        self.trimmed.fill(false);
        self.kinds.fill(BlockKind::Data);
        for set_aside in &mut self.set_aside {
            set_aside.erasing.fill(0);
            set_aside.retiring.fill(0);
            set_aside.held.fill(0);
            set_aside.owed.fill(set_aside.quota);
        }
        self.owed.fill(self.set_aside.iter().map(|set_aside| set_aside.quota).sum());
    }
}

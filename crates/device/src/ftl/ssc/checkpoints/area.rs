//! The blocks that hold checkpoints: two halves, each of some blocks of every plane. Sets follow each other in one half until a checkpoint
//! has no room there. Then the other half is erased, and begins with a whole map.

use std::collections::BTreeMap;

use ssdlab_flash::BlockId;

use super::page::{Head, Kind, Page};
use crate::DriveConfig;
use crate::ftl::ssc::keys;
use crate::media::{Media, Place};

/// A block of the area.
#[derive(Clone, Copy, Debug)]
struct AreaBlock {
    block: BlockId,
    /// Pages given out since the last erase.
    given: u32,
    /// A program failed in it: it takes no more before it goes bad.
    is_spent: bool,
}

/// A set on its way.
#[derive(Debug)]
pub(super) struct SetInFlight {
    pub(super) head: Head,
    pub(super) half: usize,
    /// Pages whose programs have not ended, by where they go.
    pub(super) pages: BTreeMap<(BlockId, u32), Page>,
    /// A page of it found no place: it will not be whole.
    pub(super) is_given_up: bool,
    pub(super) said: Said,
}

/// What holds once a set is whole.
#[derive(Debug)]
pub(super) enum Said {
    /// These blocks are settled.
    Settled(Vec<bool>),
    /// These emptied blocks may be erased; what they hold copies of.
    Erased(Vec<(u32, Vec<u32>)>),
    /// No checkpoint counts.
    Nothing,
}

/// What a checkpoint waits for before it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Nothing,
    /// A checkpoint, where there is room.
    Checkpoint,
    /// One at the beginning of the other half.
    OtherHalf,
}

/// The area, and what is written there.
pub(in crate::ftl::ssc) struct Area {
    halves: [Vec<AreaBlock>; 2],
    pages_per_block: u32,
    /// The half in which sets follow each other.
    pub(super) current: usize,
    pub(super) drive: u64,
    /// Pages of the map, without those that say what is beside it.
    pub(super) map_pages: usize,
    pub(super) writes_all: bool,
    /// Hashes of pages of the map as they were written last, where that is checked.
    pub(super) hashes: Vec<u32>,
    pub(super) next_number: u64,
    /// The newest set that is whole.
    pub(super) last: u64,
    /// The oldest checkpoint from which records lead to now.
    pub(super) oldest: u64,
    /// By block, whether the newest checkpoint calls it settled.
    pub(super) newest: Option<Vec<bool>>,
    pub(super) newest_number: u64,
    /// What the one before says of that, for when the newest is damaged.
    pub(super) previous: Option<Vec<bool>>,
    /// By block, whether slots count its copies as copies in settled blocks.
    pub(super) counted: Vec<bool>,
    /// What changed cannot be said of the newest one: all is written next.
    pub(super) needs_all: bool,
    /// A set that counts for nothing now may be taken for a checkpoint later: before anything is erased, a newer one is written.
    pub(super) misleads: bool,
    pub(super) set: Option<SetInFlight>,
    /// Erases on their way.
    pub(super) erasing: u32,
    pub(super) wanted: Wanted,
    /// Emptied blocks whose erase waits for a record, and what they hold copies of.
    pub(super) waiting: Vec<(u32, Vec<u32>)>,
    /// No checkpoint finds room any more.
    pub(super) is_given_up: bool,
}

impl Area {
    /// The area of a drive that writes checkpoints.
    pub(in crate::ftl::ssc) fn new(config: &DriveConfig) -> Option<Area> {
        let sizes = keys::area(config)?;
        let geometry = &config.flash.geometry;
        let half = |which: u32| {
            let in_plane = which * sizes.half_blocks..(which + 1) * sizes.half_blocks;
            let block = |place: u32, plane: u32| BlockId(plane * geometry.blocks_per_plane + place);
            let blocks = in_plane.flat_map(|place| (0..geometry.planes()).map(move |plane| block(place, plane)));
            blocks.map(|block| AreaBlock { block, given: 0, is_spent: false }).collect()
        };
        Some(Area {
            halves: [half(0), half(1)],
            pages_per_block: geometry.pages_per_block,
            current: 0,
            drive: identity(config),
            map_pages: sizes.map_pages as usize,
            writes_all: sizes.writes_all,
            hashes: Vec::new(),
            next_number: 1,
            last: 0,
            oldest: 0,
            newest: None,
            newest_number: 0,
            previous: None,
            counted: vec![false; geometry.blocks() as usize],
            needs_all: true,
            misleads: false,
            set: None,
            erasing: 0,
            wanted: Wanted::Nothing,
            waiting: Vec::new(),
            is_given_up: false,
        })
    }

    /// Whether a set or an erase is on its way.
    pub(super) const fn is_busy(&self) -> bool {
        self.set.is_some() || self.erasing > 0
    }

    /// What is on its way, for who cuts the power.
    pub(in crate::ftl::ssc) fn work(&self) -> Option<&'static str> {
        match &self.set {
            Some(set) if set.head.kind.has_map() => Some("checkpoint"),
            Some(set) if set.head.kind == Kind::Record => Some("record beside a checkpoint"),
            Some(_) => Some("end of all checkpoints"),
            None if self.erasing > 0 => Some("erase before a checkpoint"),
            None => None,
        }
    }

    /// All blocks of a half.
    pub(super) fn blocks(&self, half: usize) -> impl Iterator<Item = BlockId> + use<> {
        self.halves[half].iter().map(|of_half| of_half.block).collect::<Vec<_>>().into_iter()
    }

    fn find(&mut self, block: BlockId) -> &mut AreaBlock {
        let mut blocks = self.halves.iter_mut().flatten();
        blocks.find(|of_area| of_area.block == block).expect("a block of checkpoints is one of the area")
    }

    /// So many pages of a block were given out.
    pub(super) fn set_given(&mut self, block: BlockId, given: u32) {
        assert!(given <= self.pages_per_block, "{given} pages of block {block} were given out");
        let of_area = self.find(block);
        (of_area.given, of_area.is_spent) = (given, false);
    }

    /// A program failed in a block.
    pub(super) fn spend(&mut self, block: BlockId) {
        self.find(block).is_spent = true;
    }

    /// Pages that a half can take.
    pub(super) fn room(&self, media: &Media, half: usize) -> usize {
        let left = |of_half: &AreaBlock| if takes(media, of_half) { self.pages_per_block - of_half.given } else { 0 };
        self.halves[half].iter().map(|of_half| left(of_half) as usize).sum()
    }

    /// Gives out the next page of a half: that of the block with the fewest, so that planes take turns.
    pub(super) fn take(&mut self, media: &Media, half: usize) -> Option<Place> {
        let full = self.pages_per_block;
        let open = self.halves[half].iter_mut().filter(|of_half| takes(media, of_half) && of_half.given < full);
        // On an image, its host may have no space for another block.
        let open = open.filter(|of_half| of_half.given > 0 || media.flash.provide(of_half.block));
        let of_half = open.min_by_key(|of_half| of_half.given)?;
        let page = of_half.given;
        of_half.given += 1;
        debug_assert!(!media.flash.is_written(of_half.block, page), "block {} gives out a written page", of_half.block);
        Some(Place { block: of_half.block, page })
    }

    /// The set on its way.
    pub(super) fn set_in_flight(&mut self) -> &mut SetInFlight {
        self.set.as_mut().expect("a set is on its way")
    }

    /// Whether recovery may rely on a checkpoint that says what a block holds.
    pub(super) fn names(&self, block: u32) -> bool {
        let mut generations = self.newest.iter().chain(&self.previous);
        self.misleads || generations.any(|settled| settled[block as usize])
    }

    /// Whether an emptied block is to wait for a record, and does not yet: one on its way may name it.
    pub(super) fn awaits_record(&self, block: u32) -> bool {
        let is_block = |(other, _): &(u32, Vec<u32>)| *other == block;
        let is_on_its_way = self.set.as_ref().is_some_and(|set| match &set.said {
            Said::Erased(blocks) => blocks.iter().any(is_block),
            Said::Settled(_) | Said::Nothing => false,
        });
        (self.names(block) || self.is_busy()) && !is_on_its_way && !self.waiting.iter().any(is_block)
    }

    /// A record of a block is on flash.
    pub(super) fn settles_no_more(&mut self, block: u32) {
        for settled in self.newest.iter_mut().chain(&mut self.previous) {
            settled[block as usize] = false;
        }
    }

    /// A bit for each block in both generations.
    pub(in crate::ftl::ssc) const fn bytes(&self) -> u64 {
        2 * (self.counted.len() as u64).div_ceil(8) + (self.map_pages as u64).div_ceil(8)
    }
}

fn takes(media: &Media, of_half: &AreaBlock) -> bool {
    let state = media.flash.blocks.get(of_half.block);
    !of_half.is_spent && !state.bad && !state.suspect && !state.torn
}

/// A number for all that has to be the same where a checkpoint is read: another drive's is none.
fn identity(config: &DriveConfig) -> u64 {
    let geometry = &config.flash.geometry;
    let sizes = [
        u64::from(geometry.planes()),
        u64::from(geometry.blocks_per_plane),
        u64::from(geometry.pages_per_block),
        u64::from(geometry.page_bytes),
        u64::from(config.ftl.mapping_unit),
        u64::from(config.logical_units()),
    ];
    let step = |hash: u64, size: &u64| (hash.rotate_left(23) ^ size).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    sizes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

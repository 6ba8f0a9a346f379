//! Superblocks: one block of each plane of a group, opened, written, collected and retired as one.
//!
//! A group is what has a free list, frontiers and a collection of its own: a plane (`ftl.superblock = "none"`, where a
//! superblock is a block), the planes of a die, or all planes of the drive. Pages are given out a row at a time: page `p`
//! of every member before page `p + 1` of any, the planes of a die next to each other so that the die programs them
//! together, the dies in the order of the allocation.
//!
//! ```text
//!              die 0          die 1
//!            plane 0  1     plane 2  3
//!   page 0        0  1            2  3      superblock 7 of a group of four planes; its members are blocks
//!   page 1        4  5            6  7      number 7 of their planes, or what stands in for them
//! ```
//!
//! Superblock `s` of a group is made of the blocks number `s` of its planes. Where one of them is bad, a good block of the
//! same plane that belongs to no superblock stands in for it. Where there is none the superblock is dissolved: it is not
//! used again, and its good blocks are what stands in for others. Who stands in for whom is kept with the bad-block table,
//! so it is the same after a power cut; everything else follows from it.

use ssdlab_base::Divider;
use ssdlab_flash::{BlockId, DieId, Flash, Geometry, NONE, PlaneId};

use crate::media::Place;
use crate::{Allocation, DriveConfig, Level};

/// What a page of a stripe is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Units of the FTL.
    Data,
    /// The parity of the stripe, or of its share of one plane of each die.
    Parity,
    /// Zeroes: its superblock is given up, and the stripe is closed so that what it has is protected.
    Pad,
    /// Nothing: the parity of the stripe is on flash, and was made for what a power cut kept from this page.
    Filler,
}

/// Which blocks make up which superblock.
pub(crate) struct Superblocks {
    geometry: Geometry,
    /// Planes of a group, which is members of a superblock.
    width: u32,
    by_width: Divider,
    by_blocks_per_plane: Divider,
    /// Planes of a die in a group: pages that follow each other and that the die programs together.
    together: u32,
    /// Pages of a stripe that are parity; the last ones.
    parity: u32,
    /// By how many places a stripe begins behind where the one before it does.
    turn: u32,
    /// Planes of a group in the order in which they take pages.
    order: Vec<u32>,
    /// The members of each superblock in that order, `NONE` where one is missing; empty where a superblock is a block.
    members: Vec<BlockId>,
    /// The superblock of each block, `NONE` for those that are in none; empty where a superblock is a block.
    of_block: Vec<u32>,
}

impl Superblocks {
    /// The superblocks of chips as their table of substitutes says; some may lack members.
    pub(crate) fn new(config: &DriveConfig, flash: &Flash) -> Superblocks {
        let geometry = *flash.geometry();
        let width = config.ftl.superblock.planes(&geometry);
        let mut superblocks = Superblocks {
            geometry,
            width,
            by_width: Divider::new(width),
            by_blocks_per_plane: Divider::new(geometry.blocks_per_plane),
            together: width.min(geometry.planes_per_die),
            parity: config.ftl.parity_pages(&geometry),
            turn: if config.ftl.parity_pages(&geometry) == 0 {
                0
            } else if width > geometry.planes_per_die {
                geometry.planes_per_die
            } else {
                1
            },
            order: order(config, width),
            members: Vec::new(),
            of_block: Vec::new(),
        };
        assert_eq!(superblocks.order.len(), width as usize, "every plane of a group has its turn");
        assert!(superblocks.parity < width, "{} pages of a stripe of {width} are parity", superblocks.parity);
        if width > 1 {
            superblocks.members = vec![BlockId::NONE; geometry.blocks() as usize];
            superblocks.of_block = vec![NONE; geometry.blocks() as usize];
            superblocks.find_members(flash);
        }
        superblocks
    }

    /// Takes the members from the table of substitutes: a substitute comes before the block whose place it takes.
    fn find_members(&mut self, flash: &Flash) {
        let per_plane = self.geometry.blocks_per_plane;
        for substitutes in [true, false] {
            for block in (0..self.geometry.blocks()).map(BlockId) {
                let own = block.0 % per_plane;
                let index = flash.blocks.stands_in(block, own);
                if flash.blocks.get(block).bad || (index != own) != substitutes {
                    continue;
                }
                assert!(index < per_plane, "block {block} stands in place {index} of {per_plane}");
                let plane = block.plane(per_plane);
                let superblock = plane / self.width * per_plane + index;
                let position = self.position_of(plane);
                let member = &mut self.members[(superblock * self.width + position) as usize];
                if *member == BlockId::NONE {
                    *member = block;
                    self.of_block[block.index()] = superblock;
                }
            }
        }
    }

    fn position_of(&self, plane: PlaneId) -> u32 {
        let within = plane % self.width;
        self.order.iter().position(|other| *other == within).expect("every plane of a group has a place") as u32
    }

    /// Members of a superblock.
    #[inline]
    pub(crate) const fn width(&self) -> u32 {
        self.width
    }

    /// Pages that follow each other on the planes of one die.
    #[inline]
    pub(crate) const fn together(&self) -> u32 {
        self.together
    }

    /// Pages of a stripe that are parity.
    #[inline]
    pub(crate) const fn parity(&self) -> u32 {
        self.parity
    }

    /// What the page that a superblock gives out as its `number`th is for.
    #[inline]
    pub(crate) fn role(&self, number: u32) -> Role {
        if self.by_width.rem(number) < self.width - self.parity { Role::Data } else { Role::Parity }
    }

    /// The other pages of the stripe of a page that parity binds it to: all of them, or with a parity page for each plane
    /// those on its plane of the other dies.
    pub(crate) fn bound_to(&self, place: Place) -> impl Iterator<Item = Place> + use<> {
        let superblock = self.of(place.block);
        let per_plane = self.geometry.blocks_per_plane;
        let planes = self.geometry.planes_per_die;
        let each = self.parity > 1;
        let plane = move |block: BlockId| block.plane(per_plane) % planes;
        let others = self.members(superblock).filter(move |block| *block != place.block);
        others
            .filter(move |block| !each || plane(*block) == plane(place.block))
            .map(move |block| Place { block, page: place.page })
    }

    /// The superblock of a block; `NONE` for a bad block or one that is left over.
    #[inline]
    pub(crate) fn of(&self, block: BlockId) -> u32 {
        if self.width == 1 { block.0 } else { self.of_block[block.index()] }
    }

    /// The group of a block, in a superblock or not.
    #[inline]
    pub(crate) fn group_of(&self, block: BlockId) -> u32 {
        self.by_width.div(self.by_blocks_per_plane.div(block.0))
    }

    /// The members of a superblock in the order in which they take pages, without those that are missing.
    pub(crate) fn members(&self, superblock: u32) -> impl Iterator<Item = BlockId> + use<> {
        let alone = (self.width == 1).then_some(BlockId(superblock));
        let several = if self.width == 1 {
            Vec::new()
        } else {
            let first = (superblock * self.width) as usize;
            self.members[first..first + self.width as usize].to_vec()
        };
        alone.into_iter().chain(several).filter(|block| *block != BlockId::NONE)
    }

    /// Whether no member of a superblock is missing.
    pub(crate) fn is_whole(&self, superblock: u32) -> bool {
        self.members(superblock).count() as u32 == self.width
    }

    /// The page that a superblock gives out as its `number`th.
    #[inline]
    pub(crate) fn place(&self, superblock: u32, number: u32) -> Place {
        if self.width == 1 {
            return Place { block: BlockId(superblock), page: number };
        }
        let (page, position) = (self.by_width.div(number), self.by_width.rem(number));
        let position = if self.turn == 0 { position } else { self.by_width.rem(position + page * self.turn) };
        let block = self.members[(superblock * self.width + position) as usize];
        debug_assert_ne!(block, BlockId::NONE, "superblock {superblock} gives out a page of a member that it lacks");
        debug_assert!(page < self.geometry.pages_per_block, "superblock {superblock} has no page {number}");
        Place { block, page }
    }

    /// A member is bad: it belongs to the superblock no longer.
    pub(crate) fn remove(&mut self, block: BlockId) {
        let superblock = self.of(block);
        if self.width > 1 && superblock != NONE {
            let first = (superblock * self.width) as usize;
            let members = &mut self.members[first..first + self.width as usize];
            members.iter_mut().filter(|member| **member == block).for_each(|member| *member = BlockId::NONE);
            self.of_block[block.index()] = NONE;
        }
    }

    /// Makes as many as possible of the erased superblocks in `lacking`, all of one group, whole again, the first ones first, out of their own blocks and of those that are left over in the group. Those that stay incomplete are
    /// dissolved. Returns the ones that are whole.
    pub(crate) fn reform(&mut self, flash: &mut Flash, lacking: &[u32]) -> Vec<u32> {
        let Some(first) = lacking.first() else { return Vec::new() };
        let per_plane = self.geometry.blocks_per_plane;
        let group = first / per_plane;
        let of_group = |superblock: &u32| superblock / per_plane == group;
        assert!(lacking.iter().all(of_group), "superblocks {lacking:?} are of one group");
        for superblock in lacking {
            for block in self.members(*superblock) {
                self.of_block[block.index()] = NONE;
            }
        }
        // Good blocks of each plane that are in no superblock, the lowest number last.
        let planes: Vec<PlaneId> = self.order.iter().map(|within| PlaneId(group * self.width + within)).collect();
        let mut left: Vec<Vec<BlockId>> = planes
            .iter()
            .map(|plane| {
                let blocks = (plane.0 * per_plane..(plane.0 + 1) * per_plane).rev().map(BlockId);
                let usable = |block: &BlockId| {
                    let state = flash.blocks.get(*block);
                    !state.bad && !state.suspect && !state.torn && state.programmed == 0
                };
                blocks.filter(|block| self.of_block[block.index()] == NONE).filter(usable).collect()
            })
            .collect();
        let whole = left.iter().map(Vec::len).min().unwrap_or(0).min(lacking.len());
        let (kept, dissolved) = lacking.split_at(whole);
        for superblock in dissolved {
            let first = (superblock * self.width) as usize;
            self.members[first..first + self.width as usize].fill(BlockId::NONE);
        }
        // Members stay where they are: then other blocks stand in for those alone that are missing.
        for superblock in kept {
            for (position, left) in left.iter_mut().enumerate() {
                let member = &mut self.members[self.width as usize * *superblock as usize + position];
                match left.iter().position(|block| block == member) {
                    Some(at) => _ = left.remove(at),
                    None => *member = BlockId::NONE,
                }
            }
        }
        for superblock in kept {
            for (position, left) in left.iter_mut().enumerate() {
                let at = self.width as usize * *superblock as usize + position;
                if self.members[at] == BlockId::NONE {
                    self.members[at] = left.pop().expect("as many blocks are left as superblocks lack");
                }
                let block = self.members[at];
                assert_eq!(self.of_block[block.index()], NONE, "block {block} is in two superblocks");
                assert_eq!(block.plane(per_plane), planes[position], "block {block} is a member in another plane");
                self.of_block[block.index()] = *superblock;
                let (own, index) = (block.0 % per_plane, superblock % per_plane);
                if flash.blocks.stands_in(block, own) != index {
                    flash.substitute(block, (own != index).then_some(index));
                }
            }
        }
        kept.to_vec()
    }
}

/// The planes of a group, numbered within it, in the order in which they take pages.
fn order(config: &DriveConfig, width: u32) -> Vec<u32> {
    let geometry = &config.flash.geometry;
    let planes = geometry.planes_per_die;
    if width <= planes {
        return (0..width).collect();
    }
    let dies = dies_in_order(config);
    dies.into_iter().flat_map(|die| (0..planes).map(move |plane| die.0 * planes + plane)).collect()
}

/// The dies of the drive in the order of its allocation: the first level varies fastest.
pub(crate) fn dies_in_order(config: &DriveConfig) -> Vec<DieId> {
    let geometry = &config.flash.geometry;
    let order = match config.ftl.allocation {
        Allocation::Static(order) | Allocation::RoundRobin(order) => order,
        Allocation::Dynamic => [Level::Channel, Level::Way, Level::Die, Level::Plane],
    };
    let die = |position: u32| {
        let mut rest = position;
        let (mut channel, mut way, mut die) = (0, 0, 0);
        for level in order {
            let (to, size) = match level {
                Level::Channel => (&mut channel, geometry.channels),
                Level::Way => (&mut way, geometry.chips_per_channel),
                Level::Die => (&mut die, geometry.dies_per_chip),
                Level::Plane => continue,
            };
            *to = rest % size;
            rest /= size;
        }
        DieId((channel * geometry.chips_per_channel + way) * geometry.dies_per_chip + die)
    };
    (0..geometry.dies()).map(die).collect()
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use ssdlab_base::rng;
    use ssdlab_flash::Contents;

    use super::*;
    use crate::Description;

    fn drive(superblock: &str) -> DriveConfig {
        let text = format!(
            "[flash]\nchannels = 2\nchips_per_channel = 1\ndies_per_chip = 2\nplanes_per_die = 3\nblocks_per_plane = 20\n\
             pages_per_block = 4\npage_size = \"4k\"\ncell = \"slc\"\n[capacity]\nover_provisioning = \"80%\"\n\
             [ftl]\nsuperblock = \"{superblock}\"\n"
        );
        Description::parse(&text, "drive.toml").and_then(|description| description.resolve()).expect("a drive")
    }

    /// Every whole superblock has a good block of each plane of its group, and no block is in two; how many are whole.
    fn whole(superblocks: &Superblocks, flash: &Flash, groups: u32) -> Vec<u32> {
        let per_plane = flash.geometry().blocks_per_plane;
        let mut seen = vec![false; flash.geometry().blocks() as usize];
        let whole: Vec<u32> = (0..groups * per_plane).filter(|superblock| superblocks.is_whole(*superblock)).collect();
        for superblock in &whole {
            for (position, block) in superblocks.members(*superblock).enumerate() {
                let plane = superblock / per_plane * superblocks.width + superblocks.order[position];
                assert_eq!(block.0 / per_plane, plane, "a member is in its plane");
                assert!(!flash.blocks.get(block).bad, "a member is good");
                assert!(!std::mem::replace(&mut seen[block.index()], true), "block {block} is in one superblock");
                assert_eq!(superblocks.of(block), *superblock);
            }
        }
        whole
    }

    #[test]
    fn pages_go_round_the_planes_of_a_die_then_the_dies() {
        let config = drive("drive");
        let flash = Flash::new(&config.flash, 1, Contents::Nothing, 1, true);
        let superblocks = Superblocks::new(&config, &flash);
        let places: Vec<Place> = (0..13).map(|number| superblocks.place(7, number)).collect();
        let planes: Vec<u32> = places.iter().map(|place| place.block.0 / 20).collect();
        // Channel first: die 0 is on channel 0, die 2 on channel 1.
        assert_eq!(planes, [0, 1, 2, 6, 7, 8, 3, 4, 5, 9, 10, 11, 0]);
        assert!(places.iter().all(|place| place.block.0 % 20 == 7));
        assert_eq!(places.iter().map(|place| place.page).collect::<Vec<u32>>(), [[0; 12].as_slice(), &[1]].concat());
    }

    /// Blocks go bad one after another, at random. There are always as many superblocks as the plane with the fewest good
    /// blocks allows, a superblock that lost nothing keeps its members, and the chips' table tells the same after a power
    /// cut.
    #[test]
    fn a_spare_of_the_same_plane_stands_in_for_a_bad_block_and_the_table_tells_so() {
        for (kind, groups, width) in [("die", 4, 3), ("drive", 1, 12)] {
            for seed in 0..40 {
                let mut rng = rng(seed, "superblocks");
                let config = drive(kind);
                let mut flash = Flash::new(&config.flash, 1, Contents::Nothing, 1, true);
                for _ in 0..rng.random_range(0..6) {
                    flash.retire(BlockId(rng.random_range(0..240)));
                }
                let mut superblocks = Superblocks::new(&config, &flash);
                for group in 0..groups {
                    let lacking: Vec<u32> = (group * 20..(group + 1) * 20)
                        .filter(|superblock| !superblocks.is_whole(*superblock))
                        .collect();
                    superblocks.reform(&mut flash, &lacking);
                }
                for _ in 0..30 {
                    let good = whole(&superblocks, &flash, groups);
                    for group in 0..groups {
                        let planes = group * width..(group + 1) * width;
                        let left = |plane: u32| {
                            (plane * 20..(plane + 1) * 20)
                                .filter(|block| !flash.blocks.get(BlockId(*block)).bad)
                                .count()
                        };
                        let of_group = good.iter().filter(|superblock| *superblock / 20 == group).count();
                        assert_eq!(of_group, planes.map(left).min().expect("planes"), "seed {seed}");
                    }
                    let again = Superblocks::new(&config, &flash);
                    for superblock in &good {
                        assert!(superblocks.members(*superblock).eq(again.members(*superblock)), "seed {seed}");
                    }
                    let Some(hit) = good.get(rng.random_range(0..good.len().max(1))).copied() else { break };
                    let block = superblocks.members(hit).nth(rng.random_range(0..width as usize)).expect("a member");
                    flash.retire(block);
                    superblocks.remove(block);
                    let others = |superblocks: &Superblocks| {
                        let others = good.iter().filter(|superblock| **superblock != hit);
                        others
                            .map(|superblock| superblocks.members(*superblock).collect())
                            .collect::<Vec<Vec<BlockId>>>()
                    };
                    let before = others(&superblocks);
                    let dissolved = (hit / 20 * 20..hit / 20 * 20 + 20).filter(|other| !good.contains(other));
                    let lacking: Vec<u32> = std::iter::once(hit).chain(dissolved).collect();
                    superblocks.reform(&mut flash, &lacking);
                    assert_eq!(others(&superblocks), before, "seed {seed}: the others keep their members");
                }
            }
        }
    }
}

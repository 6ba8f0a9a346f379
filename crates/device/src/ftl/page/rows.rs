//! Relocation without time where blocks are tied into superblocks and a page's OOB holds nothing but the map.
//!
//! The valid units of a victim come in the order in which its pages were given out, from all members in turn, and go to
//! the relocation frontier page by page. As in `units.rs` the map entries of the next [`AHEAD`] units are loaded side by
//! side, and an entry is stored without a look at what it held. `relocation.rs` says the same at
//! length; a test holds the two against each other.

use arrayvec::ArrayVec;
use ssdlab_flash::{Cause, Lpn, OpKind, Ppn, UnitId};

use super::PageFtl;
use super::units::{AHEAD, load};
use crate::ftl::bit_fields::{next_set, set_bits};
use crate::ftl::{MAX_UNITS, Relocated};
use crate::media::{Frontier, Media, Place};

impl PageFtl {
    pub(super) fn relocate_rows(
        &mut self,
        media: &mut Media,
        victim: u32,
        cursor: u32,
        limit: u32,
        cause: Cause,
    ) -> Relocated {
        let group = media.pool.group_of(victim);
        let mut lookahead =
            Lookahead { sources: Sources::new(media, victim, cursor), ring: [UnitId::NONE; AHEAD], head: 0 };
        let units = (media.flash.geometry().pages() * u64::from(self.units_per_page)) as u32;
        lookahead.fill(self.valid.as_slice(), media.flash.oob.lpns(UnitId(0), units), self.map.as_slice());
        let mut started = 0;
        while started < limit {
            if lookahead.next() == UnitId::NONE {
                return Relocated { cursor: media.units_per_superblock(), started, stuck: false };
            }
            // What was moved is valid no more: the next turn may look for units from the same place on.
            let Some(target) = media.take_page(group, Frontier::Gc) else {
                return Relocated { cursor, started, stuck: true };
            };
            self.move_page_now(media, victim, target, &mut lookahead, cause);
            started += 1;
        }
        Relocated { cursor, started, stuck: false }
    }

    /// Fills a page with the units to come.
    #[inline]
    fn move_page_now(
        &mut self,
        media: &mut Media,
        victim: u32,
        target: Place,
        lookahead: &mut Lookahead,
        cause: Cause,
    ) {
        let per_page = self.units_per_page;
        let to = media.unit_at(target);
        let sequence = media.take_sequence(1);
        let (lpns, low) = media.flash.oob.begin_run(target.block, target.page, sequence);
        let map = self.map.as_mut_slice();
        let valid = self.valid.as_mut_slice();
        low[to.page(per_page).index()] = sequence as u32;
        let mut pages: ArrayVec<Ppn, MAX_UNITS> = ArrayVec::new();
        let mut moved = 0;
        while moved < per_page {
            let source = lookahead.next();
            if source == UnitId::NONE {
                break;
            }
            // A page is read once for each page that it gives units to.
            let page = source.page(per_page);
            if pages.last() != Some(&page) {
                pages.push(page);
            }
            let lpn = lpns[source.index()];
            lpns[(to + moved).index()] = lpn;
            map[lpn.index()] = to + moved;
            valid[source.index() / 64] &= !(1 << (source % 64));
            moved += 1;
            lookahead.head += 1;
            if lookahead.head == AHEAD {
                lookahead.fill(valid, lpns, map);
            }
        }
        assert!(moved > 0, "a page of nothing is moved out of superblock {victim}");
        lpns[(to + moved).index()..(to + per_page).index()].fill(Lpn::NONE);
        set_bits(valid, to.0, (to + moved).0);
        media.pool.move_valid(victim, media.pool.superblocks.of(target.block), moved);
        for page in pages {
            media.flash.execute_run(OpKind::Read, cause, media.block_of_page(page), 1);
        }
        media.flash.execute_run(OpKind::Program, cause, target.block, 1);
        media.close_if_written(target.block);
        self.count_relocation_padding(media, 1, moved);
    }
}

/// The units that are moved next, whose map entries are on their way.
struct Lookahead {
    sources: Sources,
    ring: [UnitId; AHEAD],
    head: usize,
}

impl Lookahead {
    /// The unit that is next, `NONE` at the end.
    #[inline]
    fn next(&self) -> UnitId {
        self.ring[self.head]
    }

    /// Takes the next units; all before were moved.
    #[inline]
    fn fill(&mut self, valid: &[u64], lpns: &[Lpn], map: &[UnitId]) {
        load(&mut self.ring, || self.sources.next(valid), lpns, map);
        self.head = 0;
    }
}

/// The valid units of a superblock, one after another.
struct Sources {
    /// The first unit of each member, in the order in which they take pages.
    members: Vec<UnitId>,
    position: usize,
    units_per_page: u32,
    units_per_block: u32,
    /// Of the page that is looked at: its place in its block in units, and where to go on in it.
    page: u32,
    within: u32,
}

impl Sources {
    fn new(media: &Media, superblock: u32, cursor: u32) -> Sources {
        let members = media.pool.superblocks.members(superblock);
        let members: Vec<UnitId> = members.map(|block| media.unit_at(Place { block, page: 0 })).collect();
        assert_eq!(members.len() as u32, media.pool.superblocks.width(), "superblock {superblock} lacks a member");
        let units_per_page = media.units_per_page;
        let number = cursor / units_per_page;
        Sources {
            position: number as usize % members.len(),
            page: number / members.len() as u32 * units_per_page,
            within: cursor % units_per_page,
            units_per_page,
            units_per_block: media.pages_per_block() * units_per_page,
            members,
        }
    }

    #[inline]
    fn next(&mut self, valid: &[u64]) -> Option<UnitId> {
        while self.page < self.units_per_block {
            let first = self.members[self.position] + self.page;
            let (from, end) = (first + self.within, first + self.units_per_page);
            if let Some(unit) = next_set(valid, from.0, end.0).map(UnitId) {
                self.within = unit - first + 1;
                return Some(unit);
            }
            self.within = 0;
            self.position += 1;
            if self.position == self.members.len() {
                self.position = 0;
                self.page += self.units_per_page;
            }
        }
        None
    }
}

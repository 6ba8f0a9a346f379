//! Moving what is valid out of a block: chains are merged where collection meets them, all else is moved.
//!
//! A victim's page never takes more than one page elsewhere in its group, so a job that was begun finds the pages it
//! needs: a full page is moved, a page of a chain becomes the merged page of its whole chain, and a compacted page with
//! several valid versions is compacted anew with those. When only one is left its chain is merged.

use ssdlab_flash::{BlockId, Cause, Lpn, OpKind, Ppn};

use super::MvFtl;
use super::gather::{Part, Sources};
use super::layout::{self, Version};
use super::write::{Writing, program};
use crate::ftl::bit_fields::next_set;
use crate::ftl::{NoSpace, Relocated};
use crate::media::{Frontier, Media, Place, Programming};
use crate::waiter::Waiter;

impl MvFtl {
    pub(super) fn relocate_pages(
        &mut self,
        media: &mut Media,
        victim: u32,
        cursor: u32,
        limit: u32,
        cause: Cause,
        owner: Waiter,
    ) -> Relocated {
        let group = media.pool.group_of(victim);
        let mut cursor = cursor;
        let mut started = 0;
        while started < limit {
            let Some((next, ppn)) = self.next_valid_of(media, victim, cursor) else {
                return Relocated { cursor: media.units_per_superblock(), started, stuck: false };
            };
            let frontier = Frontier::Gc;
            let Some(place) = media.take_page(group, frontier) else {
                return Relocated { cursor: next, started, stuck: true };
            };
            debug_assert!(next >= cursor, "unit {next} of {victim} comes before {cursor}");
            self.relocate_page(media, ppn, victim, Writing { place, frontier, cause, owner });
            started += 1;
            cursor = next + 1;
        }
        Relocated { cursor, started, stuck: false }
    }

    /// The next valid page of a superblock from `cursor` on, by the order in which its pages were given out: its place in
    /// that order, and the page.
    fn next_valid_of(&self, media: &Media, superblock: u32, cursor: u32) -> Option<(u32, Ppn)> {
        let end = media.units_per_superblock();
        if media.pool.superblocks.width() == 1 {
            let first = media.ppn_at(Place { block: BlockId(superblock), page: 0 });
            let found = next_set(self.valid.as_slice(), (first + cursor).0, (first + end).0).map(Ppn);
            return found.map(|ppn| (ppn - first, ppn));
        }
        if media.pool.valid(superblock) == 0 {
            return None;
        }
        (cursor..end).map(|at| (at, media.unit_in(superblock, at).whole_page())).find(|(_, ppn)| self.is_valid(*ppn))
    }

    fn relocate_page(&mut self, media: &mut Media, ppn: Ppn, victim: u32, write: Writing) {
        let lpn = media.flash.oob.lpn(ppn.sole_unit());
        let own = Some((victim, write.cause));
        if lpn == Lpn::NONE {
            let versions = self.valid_versions(media, ppn);
            if let [version] = versions[..]
                && self.allocator.may_hold(media.pool.group_of(victim), version.lpn)
            {
                self.counters.merges_gc += 1;
                self.merge(media, version.lpn, write, own);
            } else {
                self.counters.compacted_moved += 1;
                self.move_compacted(media, ppn, &versions, write, true);
            }
        } else if self.map.full_page(lpn).is_some() {
            self.move_full(media, ppn, lpn, write);
        } else {
            self.counters.merges_gc += 1;
            self.merge(media, lpn, write, own);
        }
    }

    /// The versions in a compacted page that are current.
    pub(super) fn valid_versions(&self, media: &Media, ppn: Ppn) -> Vec<Version> {
        let versions = layout::versions(media, ppn, self.patterns, self.full_mask);
        versions.into_iter().filter(|version| self.map.chain(version.lpn).contains(&ppn)).collect()
    }

    /// Moves a page that is all there is of its logical page.
    fn move_full(&mut self, media: &mut Media, ppn: Ppn, lpn: Lpn, write: Writing) {
        let to = media.ppn_at(write.place);
        let is_record = lpn.0 >= self.user_units;
        let readable = media.flash.blocks.readable(ppn);
        let copyback = self.copyback && readable && !is_record;
        let mut sources = Sources::default();
        let from = media.place_of_page(ppn);
        let whole =
            media.flash.store.sector_data_bytes() == 0 || media.flash.store.copy(ppn.sole_unit(), to.sole_unit());
        if media.flash.oob.is_poisoned(ppn.sole_unit()) || !whole {
            media.flash.oob.poison(to.sole_unit());
        }
        if is_record && let Some(words) = media.flash.oob.record(ppn.sole_unit()).map(Box::from) {
            media.flash.oob.put_record(to.sole_unit(), words);
        }
        if !copyback && readable {
            if media.flash.timed() {
                sources.after.push(media.read(from, media.unit_bytes, write.cause, Waiter::None));
                // What a record says is in RAM as well.
                sources.taken.extend((!is_record).then_some(ppn.sole_unit()));
            } else if media.read_now(from, write.cause) && !is_record {
                media.flash.lose(to.sole_unit());
            }
        }
        debug_assert_eq!(self.map.full_page(lpn), Some(ppn), "page {ppn} is moved as the full page of LPN {lpn}");
        self.map.swap_full(lpn, to);
        self.invalidate(media, ppn, Some(write.place));
        self.set_valid(media, to, false);
        if !copyback {
            program(media, &[lpn], &[from.block], &sources, write);
            return;
        }
        let Writing { place, frontier, cause, owner } = write;
        let pins = &[from.block];
        let kind = OpKind::Copyback;
        let how = Programming { kind, cause, frontier, owner, pins, after: &[], taken: &[], source: ppn };
        media.program(place, &[lpn], how);
    }

    /// Compacts the valid versions of a compacted page anew; `read` it first, unless it is in RAM.
    fn move_compacted(&mut self, media: &mut Media, ppn: Ppn, versions: &[Version], write: Writing, read: bool) {
        let to = media.ppn_at(write.place);
        let from = media.block_of_page(ppn);
        let parts: Vec<Part> =
            versions.iter().map(|version| Part { ppn, version: *version, sectors: version.mask }).collect();
        let mut sector_data = Vec::with_capacity(parts.len());
        let mut whole = true;
        for part in &parts {
            let (unpacked, good) = self.merged_sector_data(media, std::slice::from_ref(part), None);
            whole &= good;
            sector_data.push(unpacked);
        }
        let mut sources = Sources::default();
        if read {
            let sectors: u32 = versions.iter().map(|version| version.mask.count_ones()).sum();
            sources = self.collect_page(media, ppn, (sectors + self.index.head) * 512, write.cause);
        }
        let lost = sources.lost || !whole || media.flash.oob.is_poisoned(ppn.sole_unit());
        assert!(!versions.is_empty(), "compacted page {ppn} is moved, and none of its versions is current");
        let mut offset = self.index.head;
        let mut moved: Vec<Version> = Vec::with_capacity(versions.len());
        for version in versions {
            moved.push(Version { offset: Some(offset), ..*version });
            offset += version.mask.count_ones();
        }
        media.flash.oob.put_record(to.sole_unit(), layout::compacted_words(&moved));
        let packed: Vec<(Version, &[u8])> = moved.iter().copied().zip(sector_data.iter().map(Vec::as_slice)).collect();
        self.put_sector_data(media, to, &packed);
        if lost {
            media.flash.lose(to.sole_unit());
        }
        for version in versions {
            self.map.moved(version.lpn, ppn, to);
        }
        self.compacted.remove(&ppn);
        self.invalidate(media, ppn, Some(write.place));
        self.compacted.insert(to, versions.len() as u32);
        self.set_valid(media, to, true);
        program(media, &[], &[from], &sources, write);
    }

    /// What is current in a page whose program failed goes to another page, straight from RAM. False when nothing is.
    pub(super) fn rewrite_page(
        &mut self,
        media: &mut Media,
        place: Place,
        frontier: Frontier,
        cause: Cause,
        owner: Waiter,
    ) -> Result<bool, NoSpace> {
        let ppn = media.ppn_at(place);
        if !self.is_valid(ppn) {
            self.space.rewritten(media, place, None);
            return Ok(false);
        }
        let lpn = media.flash.oob.lpn(ppn.sole_unit());
        let versions = if lpn == Lpn::NONE { self.valid_versions(media, ppn) } else { Vec::new() };
        let lead = versions.first().map_or(lpn, |version| version.lpn);
        let target = match frontier {
            Frontier::Gc | Frontier::Map | Frontier::Log => {
                media.take_page(media.group_of(place.block), frontier).ok_or(NoSpace)?
            }
            Frontier::Host(_) => self.take_page(media, lead, frontier)?,
        };
        self.space.rewritten(media, place, Some(target));
        let write = Writing { place: target, frontier, cause, owner };
        if lpn == Lpn::NONE {
            self.move_compacted(media, ppn, &versions, write, false);
        } else {
            self.program_again(media, ppn, lpn, write);
        }
        Ok(true)
    }

    /// Programs a page of one logical page again, in its place in the chain.
    fn program_again(&mut self, media: &mut Media, ppn: Ppn, lpn: Lpn, write: Writing) {
        let to = media.ppn_at(write.place);
        let partial = layout::is_partial(media, ppn, self.user_units);
        if media.flash.store.sector_data_bytes() > 0 && !media.flash.store.copy(ppn.sole_unit(), to.sole_unit()) {
            media.flash.oob.poison(to.sole_unit());
        }
        media.flash.oob.carry(ppn.sole_unit(), to.sole_unit());
        if lpn.0 < self.user_units && !partial {
            let version = layout::version_of(media, ppn, lpn, self.patterns, self.full_mask);
            let version = version.expect("a page that was programmed says what it holds");
            media.flash.oob.put_record(to.sole_unit(), layout::full_words(version.number));
        }
        if self.map.full_page(lpn).is_some() {
            self.map.swap_full(lpn, to);
        } else {
            self.map.moved(lpn, ppn, to);
        }
        self.invalidate(media, ppn, Some(write.place));
        self.set_valid(media, to, partial);
        program(media, &[lpn], &[media.block_of_page(ppn)], &Sources::default(), write);
    }

    /// Pages in which the data of a page's logical pages is now and that are not on flash yet; whether one of them was
    /// trimmed.
    pub(super) fn pages_of(&self, media: &Media, place: Place, pages: &mut Vec<Ppn>) -> bool {
        let ppn = media.ppn_at(place);
        let lpn = media.flash.oob.lpn(ppn.sole_unit());
        if lpn.is_of_stripe() {
            return false;
        }
        let lpns = if lpn == Lpn::NONE {
            layout::versions(media, ppn, self.patterns, self.full_mask).iter().map(|version| version.lpn).collect()
        } else {
            vec![lpn]
        };
        let mut trimmed = false;
        for lpn in lpns {
            let chain = self.map.chain(lpn);
            trimmed |= chain.is_empty();
            pages.extend(chain);
        }
        trimmed
    }
}

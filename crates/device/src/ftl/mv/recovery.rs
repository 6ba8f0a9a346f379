//! Recovery after power loss, from what the pages say of themselves.
//!
//! Of each logical page the newest version that nothing older shows through is found first, then the versions above it.
//! A version that newer ones hide is left out. What entry and slots cannot say, since programs that superseded versions
//! never ended, is kept in the map's list until it is merged.

use std::collections::BTreeMap;

use ssdlab_flash::{Lpn, Ppn};

use super::MvFtl;
use super::layout::{self, Version};
use crate::ftl::durable_trims::DurableTrims;
use crate::ftl::oob_recovery::scan_pages;
use crate::ftl::trims::TrimRecord;
use crate::media::Media;
use crate::recovery_reads::RecoveryReads;
use crate::seeded::{Bug, seeded};

/// A copy of a version: its number, the number of its program, its page.
type Copied = (u64, u64, Ppn);

impl MvFtl {
    pub(super) fn rebuild(&mut self, media: &mut Media, reads: &mut RecoveryReads) {
        self.map.clear();
        self.valid.as_mut_slice().fill(0);
        self.compacted.clear();
        self.trims.clear();
        self.space.clear();
        self.merge_at = Lpn(0);
        let mut floors = vec![Ppn::NONE; self.map.len() as usize];
        self.find_floors(media, &mut floors, reads);
        self.drop_trimmed_floors(media, &mut floors);
        let above = self.find_versions(media, &floors);
        for lpn in self.map.lpns() {
            match (floors[lpn.index()], above.get(&lpn)) {
                (Ppn::NONE, None) => {}
                (floor, None) if media.flash.oob.lpn(floor.sole_unit()) != Lpn::NONE => {
                    self.map.set_one(lpn, floor, false)
                }
                (floor, versions) => {
                    self.adopt_chain(media, lpn, floor, versions.map_or(&[], Vec::as_slice));
                }
            }
            if !self.map.is_mapped(lpn) {
                continue;
            }
            self.trims.mapped(lpn);
            for ppn in self.map.chain(lpn) {
                self.adopt_page(media, ppn);
            }
        }
    }

    /// A version in `ppn` is valid.
    pub(super) fn adopt_page(&mut self, media: &mut Media, ppn: Ppn) {
        let compacted = layout::is_compacted(media, ppn);
        if compacted {
            *self.compacted.entry(ppn).or_insert(0) += 1;
        }
        let place = media.place_of_page(ppn);
        assert!(media.flash.is_written(place.block, place.page), "page {ppn} is a version, and is not written");
        if !self.is_valid(ppn) {
            self.set_valid(media, ppn, layout::is_partial(media, ppn, self.user_units));
        }
    }

    /// Finds, for each logical page, the newest version that nothing older shows through.
    fn find_floors(&mut self, media: &mut Media, floors: &mut [Ppn], reads: &mut RecoveryReads) {
        scan_pages(media, reads, |media, place, is_readable| {
            let ppn = media.ppn_at(place);
            let owner = media.flash.oob.lpn(ppn.sole_unit());
            if !is_readable || owner.is_of_stripe() {
                return;
            }
            if owner != Lpn::NONE {
                self.find_floor(media, ppn, owner, floors);
                return;
            }
            for version in layout::versions(media, ppn, self.patterns, self.full_mask) {
                self.find_floor(media, ppn, version.lpn, floors);
            }
        });
    }

    /// The page may hold the newest version of a logical page that nothing older shows through.
    fn find_floor(&self, media: &Media, ppn: Ppn, lpn: Lpn, floors: &mut [Ppn]) {
        assert!(lpn.0 < self.map.len(), "page {ppn} names LPN {lpn}, behind the map");
        let version = self.version_in(media, ppn, lpn);
        let floor = &mut floors[lpn.index()];
        let newer = |floor| self.copied(media, ppn, &version) > self.copy_of(media, floor, lpn);
        if version.floor && (*floor == Ppn::NONE || newer(*floor)) {
            *floor = ppn;
        }
    }

    /// What a page holds of a logical page; one of metadata is full, and the newest is the one that was programmed last.
    fn version_in(&self, media: &Media, ppn: Ppn, lpn: Lpn) -> Version {
        if lpn.0 >= self.user_units {
            return Version { lpn, number: 0, mask: self.full_mask, offset: None, floor: true };
        }
        let version = layout::version_of(media, ppn, lpn, self.patterns, self.full_mask);
        version.unwrap_or_else(|| panic!("page {ppn} says that it holds LPN {lpn}, but not what"))
    }

    fn copied(&self, media: &Media, ppn: Ppn, version: &Version) -> Copied {
        let place = media.place_of_page(ppn);
        (version.number, media.flash.oob.sequence(place.block, place.page), ppn)
    }

    fn copy_of(&self, media: &Media, ppn: Ppn, lpn: Lpn) -> Copied {
        self.copied(media, ppn, &self.version_in(media, ppn, lpn))
    }

    /// The newest record of trims of a segment.
    fn trim_record<'a>(&self, media: &'a Media, floors: &[Ppn], segment: u32) -> Option<TrimRecord<'a>> {
        let page = floors[(self.user_units + segment) as usize];
        let first = Lpn(segment * self.trims.segment_units());
        (page != Ppn::NONE).then(|| {
            let words = media.flash.oob.record(page.sole_unit()).expect("a bitmap page has its bits");
            TrimRecord::new(words, first)
        })
    }

    fn drop_trimmed_floors(&mut self, media: &Media, floors: &mut [Ppn]) {
        for segment in 0..self.trims.segments() {
            let Some(record) = self.trim_record(media, floors, segment) else { continue };
            self.trims.set_in_use();
            let first = Lpn(segment * self.trims.segment_units());
            let end = (first + self.trims.segment_units()).min(Lpn(self.user_units));
            for lpn in Lpn::each(first..end) {
                let floor = &mut floors[lpn.index()];
                if *floor != Ppn::NONE && record.trimmed(lpn, self.copy_of(media, *floor, lpn).0) {
                    *floor = Ppn::NONE;
                }
            }
        }
    }

    /// The versions above the floors that were not trimmed, by logical page.
    fn find_versions(&self, media: &Media, floors: &[Ppn]) -> BTreeMap<Lpn, Vec<Copied>> {
        let mut above: BTreeMap<Lpn, Vec<Copied>> = BTreeMap::new();
        if seeded(Bug::ChainDropped) {
            return above;
        }
        let records: Vec<Option<TrimRecord<'_>>> =
            (0..self.trims.segments()).map(|segment| self.trim_record(media, floors, segment)).collect();
        for (unit, _) in media.flash.oob.records() {
            let ppn = unit.whole_page();
            let torn = media.flash.blocks.get(media.block_of_page(ppn)).torn;
            if torn || !media.flash.blocks.readable(ppn) || !layout::is_partial(media, ppn, self.user_units) {
                continue;
            }
            for version in layout::versions(media, ppn, self.patterns, self.full_mask) {
                let lpn = version.lpn;
                let copied = self.copied(media, ppn, &version);
                let record = &records[(lpn / self.trims.segment_units()) as usize];
                let trimmed = record.as_ref().is_some_and(|record| record.trimmed(lpn, copied.0));
                let floor = floors[lpn.index()];
                let hidden = floor != Ppn::NONE && self.copy_of(media, floor, lpn).0 >= copied.0;
                if !trimmed && !hidden && !version.floor {
                    above.entry(lpn).or_default().push(copied);
                }
            }
        }
        above
    }

    /// Maps a logical page to what was found of it: a floor or `Ppn::NONE`, and versions above it.
    fn adopt_chain(&mut self, media: &Media, lpn: Lpn, floor: Ppn, versions: &[Copied]) {
        let mut newest_first = versions.to_vec();
        newest_first.sort_unstable_by(|first, second| second.cmp(first));
        // Of copies of one version the one that was programmed last.
        newest_first.dedup_by_key(|(number, ..)| *number);
        let mut shown = 0;
        let mut chain = Vec::new();
        let mut kinds = Vec::new();
        let mut oldest = 0;
        let pages = newest_first.iter().map(|(_, _, ppn)| *ppn);
        for ppn in pages.chain((floor != Ppn::NONE).then_some(floor)) {
            let version = self.version_in(media, ppn, lpn);
            if version.mask & !shown == 0 && ppn != floor {
                continue;
            }
            shown |= version.mask;
            chain.push(ppn);
            kinds.push(version.offset.is_some());
            oldest = version.number;
        }
        // An entry can say: a full page and versions above it of which only the newest is compacted, or a compacted one
        // alone that nothing shows through.
        assert!(!chain.is_empty(), "LPN {lpn} was found, and no page of it");
        let regular = floor != Ppn::NONE && kinds[1..].iter().all(|compacted| !compacted);
        self.map.set_chain(lpn, &chain, kinds[0], regular);
        if floor == Ppn::NONE {
            // What was there before is hidden only by what is in RAM, until a full page is on flash.
            self.add_revival(media, lpn, oldest);
        }
    }
}

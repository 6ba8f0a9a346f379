//! Bringing versions together: which page each sector comes from, and what has to be read for it.
//!
//! A host read takes the newest version first and goes on to older ones only when its pattern does not cover what is
//! wanted (section 3.2, "Page reads"). A write or a merge that needs all of a page reads all versions at once, since the
//! map says where they are; what the patterns say is known only when they are there.

use ssdlab_flash::{Cause, Lpn, OpId, Ppn, UnitId};

use super::MvFtl;
use super::layout::{self, Version};
use crate::ftl::{UnitWrite, VersionPart};
use crate::media::{Media, Source};
use crate::seeded::{Bug, seeded};

/// One version of a chain, and the sectors that are taken from it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) ppn: Ppn,
    pub(super) version: Version,
    /// Sectors of the logical page that no newer version has.
    pub(super) sectors: u64,
}

/// What a program waits for, and what it is built from.
#[derive(Clone, Debug, Default)]
pub(super) struct Sources {
    pub(super) after: Vec<OpId>,
    pub(super) taken: Vec<UnitId>,
    /// Something of it is lost already.
    pub(super) lost: bool,
    /// Reads started.
    pub(super) reads: u64,
}

impl MvFtl {
    /// The versions of a chain, newest first, with the sectors of `wanted` that each has to give.
    pub(super) fn parts(&self, media: &Media, lpn: Lpn, chain: &[Ppn], wanted: u64) -> Vec<Part> {
        let mut left = wanted;
        let mut parts: Vec<Part> = Vec::with_capacity(chain.len());
        let oldest_first = seeded(Bug::OlderVersionWins);
        let order = (0..chain.len()).map(|index| if oldest_first { chain.len() - 1 - index } else { index });
        for ppn in order.map(|index| chain[index]) {
            let version = layout::version_of(media, ppn, lpn, self.patterns, self.full_mask);
            let version = version.unwrap_or_else(|| panic!("page {ppn} is a version of LPN {lpn}"));
            debug_assert!(
                version.mask & !self.full_mask == 0,
                "page {ppn} has sectors {:#x} of LPN {lpn}",
                version.mask
            );
            parts.push(Part { ppn, version, sectors: version.mask & left });
            left &= !version.mask;
        }
        parts
    }

    /// Appends the versions that a host read of `wanted` reads, in order: those of [`MvFtl::parts`], but only as far as
    /// it takes to have all of `wanted`.
    pub(super) fn parts_to_read(&self, media: &Media, lpn: Lpn, wanted: u64, out: &mut Vec<VersionPart>) {
        let chain = self.map.chain(lpn);
        let mut left = wanted;
        for part in self.parts(media, lpn, &chain, wanted) {
            if left == 0 {
                break;
            }
            left &= !part.sectors;
            let head = if part.version.offset.is_some() { self.index.head } else { 0 };
            out.push(VersionPart { ppn: part.ppn, sectors: part.sectors, bytes: self.bytes_of(&part) + head * 512 });
        }
    }

    fn bytes_of(&self, part: &Part) -> u32 {
        part.sectors.count_ones() * 512
    }

    /// Starts the reads that a program of all of these parts waits for.
    pub(super) fn collect(
        &self,
        media: &mut Media,
        parts: &[Part],
        cause: Cause,
        own: Option<(u32, Cause)>,
    ) -> Sources {
        let mut sources = Sources::default();
        let mut pages: Vec<Ppn> = Vec::with_capacity(parts.len());
        for part in parts {
            let cause = own
                .filter(|(victim, _)| media.pool.superblocks.of(media.block_of_page(part.ppn)) == *victim)
                .map_or(cause, |(_, cause)| cause);
            let head = if part.version.offset.is_some() { self.index.head } else { 0 };
            let bytes = self.bytes_of(part) + head * 512;
            let poisoned = media.flash.oob.is_poisoned(part.ppn.sole_unit());
            let needed = part.sectors != 0;
            if pages.contains(&part.ppn) {
                continue;
            }
            pages.push(part.ppn);
            debug_assert!(self.is_valid(part.ppn), "page {} is brought together, and is not current", part.ppn);
            match media.fetch(part.ppn, bytes, cause) {
                Source::Here => sources.lost |= needed && poisoned,
                Source::Read { failed } => {
                    sources.reads += 1;
                    sources.lost |= needed && (failed || poisoned);
                }
                Source::After { op, from, is_read } => {
                    sources.reads += u64::from(is_read);
                    if !sources.after.contains(&op) {
                        sources.after.push(op);
                    }
                    if needed {
                        sources.taken.push(from.sole_unit());
                        sources.lost |= poisoned;
                    }
                }
            }
        }
        sources
    }

    /// Starts the read that a program of one page and all that is current in it waits for.
    pub(super) fn collect_page(&self, media: &mut Media, ppn: Ppn, bytes: u32, cause: Cause) -> Sources {
        let mut sources = Sources::default();
        debug_assert!(self.is_valid(ppn), "page {ppn} is moved, and is not current");
        match media.fetch(ppn, bytes, cause) {
            Source::Here => {}
            Source::Read { failed } => sources.lost = failed,
            Source::After { op, from, .. } => {
                sources.after.push(op);
                sources.taken.push(from.sole_unit());
            }
        }
        sources
    }

    /// The data of a whole logical page: what `write` brings over what `parts` hold, zeroes where nothing does. False if
    /// something that is kept is damaged.
    pub(super) fn merged_sector_data(
        &self,
        media: &Media,
        parts: &[Part],
        write: Option<&UnitWrite<'_>>,
    ) -> (Vec<u8>, bool) {
        let per_sector = media.flash.store.sector_data_bytes();
        let mut sector_data = vec![0; media.flash.store.unit_data_bytes()];
        let mut whole = true;
        if per_sector == 0 {
            return (sector_data, whole);
        }
        for part in parts {
            whole &= self.take_sector_data(media, part, part.sectors, 0, &mut sector_data);
        }
        if let Some(write) = write {
            for sector in (0..self.sectors).filter(|sector| write.mask >> sector & 1 != 0) {
                let range = sector as usize * per_sector..(sector as usize + 1) * per_sector;
                sector_data[range.clone()].copy_from_slice(&write.sector_data[range]);
            }
        }
        (sector_data, whole)
    }

    /// Copies the data of `sectors` from a version to `out`, which begins with sector `first`.
    pub(super) fn take_sector_data(
        &self,
        media: &Media,
        part: &Part,
        sectors: u64,
        first: u32,
        out: &mut [u8],
    ) -> bool {
        let per_sector = media.flash.store.sector_data_bytes();
        let mut whole = true;
        for sector in (0..self.sectors).filter(|sector| sectors >> sector & 1 != 0) {
            let at = (sector - first) as usize * per_sector;
            let from = u64::from(part.version.place_of(sector));
            whole &= media.flash.store.read(part.ppn.sole_unit(), from, &mut out[at..at + per_sector]);
        }
        whole
    }
}

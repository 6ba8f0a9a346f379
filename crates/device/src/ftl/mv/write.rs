//! Writes: full pages, partial pages as versions, overwriting what is compacted, and compacted pages (sections 3.2, 3.3).

use std::borrow::Cow;

use ssdlab_flash::{BlockId, Cause, Lpn, OpKind, Ppn};

use super::MvFtl;
use super::counters::Completed;
use super::gather::{Part, Sources};
use super::keys::VersionMasks;
use super::layout::{self, IDENTIFIER_BYTES, TRIPLE_BYTES, Version};
use super::map::Room;
use crate::ftl::durable_trims::DurableTrims;
use crate::ftl::{Compaction, NoSpace, UnitWrite};
use crate::media::{Frontier, Media, Place, Programming};
use crate::waiter::Waiter;

/// Who writes a page, and where to.
#[derive(Clone, Copy)]
pub(super) struct Writing {
    pub(super) place: Place,
    pub(super) frontier: Frontier,
    pub(super) cause: Cause,
    pub(super) owner: Waiter,
}

/// What a partial write comes to.
enum Plan {
    /// A new version on top of the chain.
    Push,
    /// A new version in place of the compacted one that it is merged with.
    Replace(Part),
    /// A full page, completed from these versions.
    Complete(Vec<Part>, Completed),
}

impl MvFtl {
    pub(super) fn write_one(
        &mut self,
        media: &mut Media,
        unit: &UnitWrite<'_>,
        stream: u16,
        cause: Cause,
        owner: Waiter,
    ) -> Result<(), NoSpace> {
        let frontier = Frontier::Host(stream);
        if unit.mask != self.full_mask && self.map.is_mapped(unit.lpn) {
            return self.write_partial(media, unit, frontier, cause, owner);
        }
        let place = self.take_page(media, unit.lpn, frontier)?;
        let mut sector_data = Cow::Borrowed(unit.sector_data);
        if unit.mask != self.full_mask {
            self.counters.partial_page_writes += 1;
            self.counters.partial_first_writes += 1;
            // Nothing was there: the rest of the page is zeroes, and nothing is read.
            sector_data = Cow::Owned(self.merged_sector_data(media, &[], Some(unit)).0);
        }
        let write = Writing { place, frontier, cause, owner };
        self.put_full(media, unit.lpn, &sector_data, Sources::default(), write);
        Ok(())
    }

    pub(super) fn take_page(&mut self, media: &mut Media, lpn: Lpn, frontier: Frontier) -> Result<Place, NoSpace> {
        let group = self.allocator.choose(media, lpn, frontier).ok_or(NoSpace)?;
        media.take_page(group, frontier).ok_or(NoSpace)
    }

    /// The page for a new version of `lpn`: any, or with direct pointers one within reach of the oldest version.
    fn page_for_version(&mut self, media: &mut Media, lpn: Lpn, frontier: Frontier) -> Result<Option<Place>, NoSpace> {
        if !self.map.is_direct() {
            let group = self.allocator.choose(media, lpn, frontier).ok_or(NoSpace)?;
            let admitted = self.space.admits(media, group);
            return if admitted { Ok(media.take_page(group, frontier)) } else { Ok(None) };
        }
        let reached = |group: &u32| {
            let next = media.next_page(*group, frontier);
            next.is_some_and(|place| self.map.reaches(lpn, media.ppn_at(place)))
        };
        let least_loaded = |group: &u32| {
            let next = media.next_page(*group, frontier);
            next.map(|place| media.flash.load(media.flash.die_of(place.block)))
        };
        let found = self.allocator.groups_for(lpn).iter().copied().filter(reached).min_by_key(least_loaded);
        let group = found.filter(|group| self.space.admits(media, *group));
        Ok(group.and_then(|group| media.take_page(group, frontier)))
    }

    fn write_partial(
        &mut self,
        media: &mut Media,
        unit: &UnitWrite<'_>,
        frontier: Frontier,
        cause: Cause,
        owner: Waiter,
    ) -> Result<(), NoSpace> {
        let chain = self.map.chain(unit.lpn);
        let (parts, why) = match self.plan(media, unit, &chain) {
            Plan::Complete(parts, why) => (parts, why),
            plan => {
                if let Some(place) = self.page_for_version(media, unit.lpn, frontier)? {
                    self.counters.partial_page_writes += 1;
                    let write = Writing { place, frontier, cause, owner };
                    match plan {
                        Plan::Replace(newest) => self.overwrite_compacted(media, unit, newest, write),
                        _ => self.push_version(media, unit, chain.len() + 1, write),
                    }
                    return Ok(());
                }
                (self.parts(media, unit.lpn, &chain, self.full_mask & !unit.mask), Completed::NoPage)
            }
        };
        let place = self.take_page(media, unit.lpn, frontier)?;
        if unit.mask != 0 {
            self.counters.partial_page_writes += 1;
            self.counters.merges_write += u64::from(chain.len() > 1);
            self.counters.completed(why);
        }
        let (sector_data, whole) = self.merged_sector_data(media, &parts, Some(unit));
        let mut sources = self.collect(media, &parts, Cause::ReadModifyWrite, None);
        self.counters.additional_reads_at_write += sources.reads;
        sources.lost |= !whole;
        let write = Writing { place, frontier, cause: Cause::ReadModifyWrite, owner };
        self.put_full(media, unit.lpn, &sector_data, sources, write);
        Ok(())
    }

    /// What a partial write to a page that holds something comes to, as far as the page it goes to does not matter.
    fn plan(&self, media: &Media, unit: &UnitWrite<'_>, chain: &[Ppn]) -> Plan {
        let missing = self.full_mask & !unit.mask;
        if unit.mask == 0 {
            // A page that is written anew as it is.
            return Plan::Complete(self.parts(media, unit.lpn, chain, missing), Completed::NoPattern);
        }
        if self.map.newest_is_compacted(unit.lpn) {
            let newest = self.parts(media, unit.lpn, &chain[..1], missing).remove(0);
            let union = unit.mask | newest.version.mask;
            // Nothing else is needed where together they are all of the page, or all that it ever held.
            if union == self.full_mask || chain.len() == 1 {
                return Plan::Complete(vec![newest], Completed::Compacted);
            }
            let fits =
                union.count_ones() + self.index.head <= self.sectors && layout::runs(union) <= self.index.triples;
            if self.is_version(union) || fits {
                return Plan::Replace(newest);
            }
        }
        let why = if self.map.newest_is_compacted(unit.lpn) {
            Completed::Compacted
        } else if !self.is_version(unit.mask) {
            Completed::NoPattern
        } else {
            match self.map.has_room(unit.lpn) {
                Room::Yes => return Plan::Push,
                Room::Bound => Completed::AtBound,
                Room::Slots => Completed::NoPage,
            }
        };
        Plan::Complete(self.parts(media, unit.lpn, chain, missing), why)
    }

    /// The first page that writing these sectors would read: the newest version, unless they become one themselves.
    pub(super) fn first_read(&self, lpn: Lpn, mask: u64) -> Option<Ppn> {
        if mask == self.full_mask || !self.map.is_mapped(lpn) {
            return None;
        }
        let pushed = !self.map.newest_is_compacted(lpn) && self.is_version(mask) && self.map.has_room(lpn) == Room::Yes;
        if pushed { None } else { self.map.chain(lpn).first().copied() }
    }

    /// Whether a page may hold just these sectors.
    fn is_version(&self, mask: u64) -> bool {
        self.masks == VersionMasks::Any || self.patterns.number(mask).is_some()
    }

    /// Partial page writes: straight to a new page, with no read.
    fn push_version(&mut self, media: &mut Media, unit: &UnitWrite<'_>, length: usize, write: Writing) {
        debug_assert!(unit.mask != 0 && unit.mask != self.full_mask, "sectors {:#x} are a version", unit.mask);
        assert!(length > 1, "a version of LPN {} is pushed on nothing", unit.lpn);
        let ppn = media.ppn_at(write.place);
        let words = layout::plain_words(media.sequence(), unit.mask, self.patterns);
        media.flash.oob.put_record(ppn.sole_unit(), words);
        if !unit.sector_data.is_empty() {
            media.flash.store.write(ppn.sole_unit(), unit.sector_data);
        }
        self.map.push(unit.lpn, ppn, false);
        self.set_valid(media, ppn, true);
        self.counters.pushed(unit.mask, length);
        media.padding_bytes += u64::from(self.sectors - unit.mask.count_ones()) * 512;
        program(media, &[unit.lpn], &[], &Sources::default(), write);
    }

    /// Writing to compacted data: it is read, merged with what is written, and goes on to another page.
    fn overwrite_compacted(&mut self, media: &mut Media, unit: &UnitWrite<'_>, newest: Part, write: Writing) {
        let ppn = media.ppn_at(write.place);
        let lpn = unit.lpn;
        let (sector_data, whole) = self.merged_sector_data(media, &[newest], Some(unit));
        let sources = self.collect(media, &[newest], Cause::ReadModifyWrite, None);
        let mask = unit.mask | newest.version.mask;
        let plain = self.is_version(mask);
        let offset = if plain { None } else { Some(self.index.head) };
        assert!(mask != self.full_mask, "LPN {lpn} is whole, and is written as a version");
        let version = Version { lpn, number: media.sequence(), mask, offset, floor: false };
        let words = match plain {
            true => layout::plain_words(version.number, mask, self.patterns),
            false => layout::compacted_words(&[version]),
        };
        media.flash.oob.put_record(ppn.sole_unit(), words);
        self.put_sector_data(media, ppn, &[(version, &sector_data)]);
        if sources.lost || !whole {
            media.flash.lose(ppn.sole_unit());
        }
        let block = media.block_of_page(newest.ppn);
        self.release(media, newest.ppn, Some(write.place));
        self.map.replace_newest(lpn, ppn, !plain);
        self.set_valid(media, ppn, true);
        if !plain {
            self.compacted.insert(ppn, 1);
        }
        self.counters.compacted_overwrites += 1;
        self.counters.additional_reads_at_write += sources.reads;
        let lpns: &[Lpn] = if plain { &[lpn] } else { &[] };
        program(media, lpns, &[block], &sources, Writing { cause: Cause::ReadModifyWrite, ..write });
    }

    /// How small partial pages are to come.
    pub(super) fn compaction_limits(&self) -> Compaction {
        let room = self.sectors.saturating_sub(self.index.head);
        Compaction {
            region_units: self.region_pages,
            small_sectors: self.sectors / 2,
            room_sectors: room,
            most_runs: self.index.triples,
            most_units: room.min(self.map.slots_most()).min(self.index.triples),
        }
    }

    /// Whether a small partial page may share a page with others now.
    pub(super) fn may_be_compacted(&self, media: &Media, lpn: Lpn) -> bool {
        if !self.compaction {
            return false;
        }
        let limits = self.compaction_limits();
        !self.map.newest_is_compacted(lpn)
            && (!self.map.is_mapped(lpn) || self.map.has_room(lpn) == Room::Yes)
            && self.map.slots_left(lpn) >= limits.most_units
            && self.allocator.groups_for(lpn).iter().all(|group| self.space.has_room(media, *group))
    }

    /// Writing compacted partial pages: the layout, then one page for all of them.
    pub(super) fn compact(
        &mut self,
        media: &mut Media,
        units: &[UnitWrite<'_>],
        stream: u16,
        cause: Cause,
        owner: Waiter,
    ) -> Result<(), NoSpace> {
        assert!(units.len() > 1, "{} partial units are compacted", units.len());
        assert!(units.iter().all(|unit| unit.mask != 0), "a unit of no sectors is compacted: {units:?}");
        let frontier = Frontier::Host(stream);
        let place = self.take_page(media, units[0].lpn, frontier)?;
        let ppn = media.ppn_at(place);
        let number = media.sequence();
        let mut offset = self.index.head;
        let mut versions: Vec<(Version, &[u8])> = Vec::with_capacity(units.len());
        for unit in units {
            let floor = !self.map.is_mapped(unit.lpn);
            let version = Version { lpn: unit.lpn, number, mask: unit.mask, offset: Some(offset), floor };
            offset += unit.mask.count_ones();
            versions.push((version, unit.sector_data));
        }
        assert!(offset <= self.sectors, "{offset} sectors do not go into a page of {}", self.sectors);
        let layout: Vec<Version> = versions.iter().map(|(version, _)| *version).collect();
        media.flash.oob.put_record(ppn.sole_unit(), layout::compacted_words(&layout));
        self.put_sector_data(media, ppn, &versions);
        for version in &layout {
            self.counters.layout_bytes += u64::from(layout::runs(version.mask) * TRIPLE_BYTES);
            if version.floor {
                self.note_revival(media, version.lpn);
                self.map.set_one(version.lpn, ppn, true);
                self.trims.mapped(version.lpn);
                self.counters.chain_of(1);
            } else {
                self.map.push(version.lpn, ppn, true);
                let length = self.map.chain(version.lpn).len();
                self.counters.chain_of(length);
            }
        }
        // The layout's sector counts as padding, too: the host did not ask for it.
        media.padding_bytes += u64::from(self.sectors - (offset - self.index.head)) * 512;
        self.counters.layout_bytes += u64::from(IDENTIFIER_BYTES);
        self.counters.compacted_pages += 1;
        self.counters.compacted_versions += layout.len() as u64;
        self.counters.partial_page_writes += layout.len() as u64;
        self.compacted.insert(ppn, layout.len() as u32);
        self.set_valid(media, ppn, true);
        program(media, &[], &[], &Sources::default(), Writing { place, frontier, cause, owner });
        Ok(())
    }

    /// Stores the data of versions, given by the sectors of their logical pages, where they are in a physical page.
    pub(super) fn put_sector_data(&self, media: &mut Media, ppn: Ppn, versions: &[(Version, &[u8])]) {
        let per_sector = media.flash.store.sector_data_bytes();
        if per_sector == 0 {
            return;
        }
        debug_assert!(!versions.is_empty(), "page {ppn} holds no version");
        let mut page = vec![0; media.flash.store.unit_data_bytes()];
        for (version, sector_data) in versions {
            for sector in (0..self.sectors).filter(|sector| version.mask >> sector & 1 != 0) {
                let (from, to) = (sector as usize * per_sector, version.place_of(sector) as usize * per_sector);
                page[to..to + per_sector].copy_from_slice(&sector_data[from..from + per_sector]);
            }
        }
        media.flash.store.write(ppn.sole_unit(), &page);
    }

    /// A full page: all versions before it are superseded.
    pub(super) fn put_full(
        &mut self,
        media: &mut Media,
        lpn: Lpn,
        sector_data: &[u8],
        sources: Sources,
        write: Writing,
    ) {
        let ppn = media.ppn_at(write.place);
        if !sector_data.is_empty() {
            media.flash.store.write(ppn.sole_unit(), sector_data);
        }
        if sources.lost {
            media.flash.lose(ppn.sole_unit());
        }
        let mut pins = Vec::new();
        if let Some(old) = self.map.full_page(lpn) {
            self.map.swap_full(lpn, ppn);
            pins.push(media.block_of_page(old));
            self.invalidate_full(media, old);
        } else {
            let chain = self.map.chain(lpn);
            if chain.is_empty() {
                self.note_revival(media, lpn);
                self.trims.mapped(lpn);
            }
            self.supersede(media, &chain, write.place, &mut pins);
            self.map.set_one(lpn, ppn, false);
        }
        debug_assert_eq!(self.map.full_page(lpn), Some(ppn), "LPN {lpn} was written as a whole");
        self.set_valid(media, ppn, false);
        program(media, &[lpn], &pins, &sources, write);
    }
}

/// Starts the program of a page whose data and words are bound to it.
pub(super) fn program(media: &mut Media, lpns: &[Lpn], pins: &[BlockId], sources: &Sources, write: Writing) {
    let Writing { place, frontier, cause, owner } = write;
    let (after, taken) = (&sources.after[..], &sources.taken[..]);
    media.program(
        place,
        lpns,
        Programming { kind: OpKind::Program, cause, frontier, owner, pins, after, taken, source: Ppn::NONE },
    );
}

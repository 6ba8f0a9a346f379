//! Page mapping with the map on flash and a part of it in RAM: what every design that loads its map on demand is made of.
//!
//! Data is written, moved and completed as `page` does it. A unit's map page is asked for first, and the waiter waits
//! until it is cached; see [`cached_map`](super::cached_map).

use std::io::{self, Read, Write};
use std::ops::Range;

use arrayvec::ArrayVec;
use ssdlab_flash::{Cause, DieId, Lpn, Ppn, UnitId};

use super::cached_map::keys::Sizes;
use super::cached_map::{LINE_STATE_BYTES, MapCache, quota};
use super::page::PageFtl;
use super::{CachedMap, Found, Ftl, NoSpace, RecoveryStep, Relocated, TrimTarget, UnitWrite};
use crate::MapUser;
use crate::block_pool::BlockKind;
use crate::media::{Frontier, Media, Place};
use crate::recovery_reads::RecoveryReads;
use crate::waiter::Waiter;
use crate::{Check, DriveConfig, DriveError, MapCacheStats};

/// Pages of flash that relocation asks for at a time at most.
const RELOCATED_TOGETHER: usize = 8;

/// Map pages that a read asks for at a time at most.
const READ_TOGETHER: u32 = 4;

/// Entries that a read asks for at a time at most, of a cache by entry.
const ENTRIES_TOGETHER: u32 = 256;

/// Page mapping, and the cache of its map.
pub(super) struct DemandFtl {
    pub(super) data: PageFtl,
    pub(super) map: MapCache,
}

/// Bytes that one takes in the simulator at most.
pub(super) fn simulator_bytes(config: &DriveConfig) -> u64 {
    let shape = Sizes::of(config).shape(config);
    let words = u64::from(shape.pages) * u64::from(shape.page_bytes);
    let state =
        u64::from(shape.metadata_units() + shape.log_entries) * 32 + u64::from(shape.lines()) * LINE_STATE_BYTES;
    // A shared unit stays with all of its words until the last of its map pages is superseded.
    PageFtl::simulator_bytes(config) + u64::from(1 + shape.slots) * words + state
}

/// Superblocks of each group for map pages.
pub(super) fn map_blocks(config: &DriveConfig) -> u32 {
    if Sizes::of(config).is_possible(config) { quota(config, &Sizes::of(config).shape(config)) } else { 1 }
}

impl DemandFtl {
    pub(super) fn new(config: &DriveConfig) -> DemandFtl {
        let shape = Sizes::of(config).shape(config);
        DemandFtl { data: PageFtl::with_metadata(config, shape.metadata_units()), map: MapCache::new(config, shape) }
    }

    /// Superblocks of each group that are left for data.
    fn for_data(config: &DriveConfig, usable: &[u32]) -> Vec<u32> {
        let set_aside = config.map_blocks() + config.log_blocks();
        usable.iter().map(|blocks| blocks.saturating_sub(set_aside)).collect()
    }

    /// The lines of the cache for units, each once, in order.
    fn lines(&self, lpns: &[Lpn]) -> Vec<u32> {
        let mut lines: Vec<u32> = lpns.iter().map(|lpn| self.map.shape.line_of(*lpn)).collect();
        lines.sort_unstable();
        lines.dedup();
        lines
    }

    /// Entries of `lpns` were changed by programs since `failed` programs had failed without time.
    pub(super) fn changed(&mut self, media: &Media, lpns: impl Iterator<Item = Lpn>, failed: usize) {
        let timed = media.flash.timed();
        for lpn in lpns {
            self.map.is_mapped_again(lpn);
            self.map.changed(lpn, timed);
        }
        self.failed(media, failed);
    }

    /// Entries of `lpns` were changed by relocation since `failed` programs had failed without time: where map pages
    /// are not cached, entries go to the log.
    fn moved(&mut self, media: &Media, lpns: impl Iterator<Item = Lpn>, failed: usize) {
        let timed = media.flash.timed();
        for lpn in lpns {
            self.map.moved(&self.data, lpn, timed);
        }
        self.failed(media, failed);
    }

    /// Programs that failed without time left what their map pages name in RAM.
    fn failed(&mut self, media: &Media, failed: usize) {
        for program in &media.wakes.failed[failed..] {
            let first = media.unit_at(program.place);
            for lpn in media.flash.oob.lpns(first, media.units_per_page) {
                if *lpn != Lpn::NONE && lpn.0 < self.map.shape.mapped_units {
                    self.map.moved(&self.data, *lpn, true);
                }
            }
        }
    }

    /// Whether relocation may move units of a group now; else it is told when.
    fn reserve_map_for_move(&mut self, media: &mut Media, group: u32, lpns: &[Lpn]) -> bool {
        let lines = self.lines(lpns);
        if self.map.has_log() {
            return self.map.prepare_moves(&mut self.data, media, group, lpns, &lines);
        }
        self.map.request(&mut self.data, media, Waiter::Gc(group), &lines)
    }

    /// Moves what is valid out of a victim, as far as map pages are cached.
    fn move_out(
        &mut self,
        media: &mut Media,
        victim: u32,
        cursor: u32,
        limit: u32,
        cause: Cause,
        owner: Waiter,
    ) -> Relocated {
        if media.pool.is_map_block(victim) {
            let (cursor, stuck) = self.map.retire(&mut self.data, media, victim, cursor, u32::MAX);
            return Relocated { cursor, started: 0, stuck };
        }
        let group = media.pool.group_of(victim);
        let frontier = Frontier::of_relocation(media.pool.kind(victim));
        let waiter = Waiter::Gc(group);
        let mut moved = Relocated { cursor, started: 0, stuck: false };
        while moved.started < limit && !moved.stuck {
            let (lpns, pages) = self.next_moves(media, victim, moved.cursor, limit - moved.started);
            if lpns.is_empty() {
                self.map.release_job(media, waiter);
                return Relocated { cursor: media.units_per_superblock(), ..moved };
            }
            if !media.has_page(group, frontier) {
                return Relocated { stuck: true, ..moved };
            }
            if !self.reserve_map_for_move(media, group, &lpns) {
                return Relocated { stuck: true, ..moved };
            }
            let failed = media.wakes.failed.len();
            let before = moved.started;
            let step = self.data.relocate(media, victim, moved.cursor, pages, cause, owner);
            let started = (step.started as usize * media.units_per_page as usize).min(lpns.len());
            self.moved(media, lpns[..started].iter().copied(), failed);
            moved = Relocated { started: before + step.started, ..step };
        }
        moved
    }

    /// Units that the next pages of relocation take from a victim, from `cursor` on, as far as their map pages fit in the
    /// cache side by side or their entries in the log, and how many pages these are.
    fn next_moves(&self, media: &Media, victim: u32, cursor: u32, limit: u32) -> (Vec<Lpn>, u32) {
        let per_page = media.units_per_page as usize;
        let most = (limit as usize).clamp(1, RELOCATED_TOGETHER) * per_page;
        let units = self.data.current_units(media, victim, cursor).take(most);
        let lpns: Vec<Lpn> = units.map(|(_, unit)| media.flash.oob.lpn(unit)).collect();
        let fits = |count: usize| match self.map.has_log() {
            true => self.map.log_has_room(&lpns[..count]),
            false => self.lines(&lpns[..count]).len() as u32 <= self.map.shape.capacity.max(4) / 2,
        };
        let all_of_user = lpns.iter().all(|lpn| lpn.0 < self.map.shape.mapped_units);
        assert!(all_of_user, "data block {victim} holds map pages");
        let mut count = lpns.len();
        while count > per_page && !fits(count) {
            count = (count - 1) / per_page * per_page;
        }
        (lpns[..count].to_vec(), count.div_ceil(per_page) as u32)
    }
}

impl CachedMap for DemandFtl {
    fn request(&mut self, media: &mut Media, waiter: Waiter, lpns: &[Lpn]) -> bool {
        let mut lines: ArrayVec<u32, 2> = ArrayVec::new();
        for lpn in lpns {
            let line = self.map.shape.line_of(*lpn);
            if lines.contains(&line) {
                continue;
            }
            if lines.try_push(line).is_err() {
                let lines = self.lines(lpns);
                return self.map.request(&mut self.data, media, waiter, &lines);
            }
        }
        self.map.request(&mut self.data, media, waiter, &lines)
    }

    fn request_range(&mut self, media: &mut Media, waiter: Waiter, units: Range<Lpn>) -> bool {
        let shape = &self.map.shape;
        assert!(units.start < units.end, "{waiter:?} asks for the map of no unit");
        let lines = shape.line_of(units.start)..=shape.line_of(Lpn(units.end.0 - 1));
        let lines: Vec<u32> = lines.collect();
        self.map.request(&mut self.data, media, waiter, &lines)
    }

    fn has_page_for(&self, media: &Media, lpn: Lpn, stream: u16) -> bool {
        self.data.has_page_for(media, lpn, stream)
    }

    fn reach(&self, first: Lpn) -> Lpn {
        let shape = &self.map.shape;
        let most = (shape.capacity / 2).max(1);
        match shape.by_entry {
            true => Lpn(first.0.saturating_add(ENTRIES_TOGETHER.min(most))),
            false => Lpn((shape.page_of(first) + READ_TOGETHER.min(most)).saturating_mul(shape.entries)),
        }
    }

    fn forget(&mut self, media: &mut Media, waiter: Waiter) {
        self.map.release_job(media, waiter);
    }

    fn forget_served(&mut self, media: &mut Media, waiter: Waiter) {
        self.map.release_served_job(media, waiter);
    }

    fn settled(&mut self, media: &mut Media, place: Place) {
        self.map.settled(media, place);
    }

    fn resume_settled(&mut self, media: &mut Media) {
        self.map.resume_settled(&mut self.data, media);
    }

    fn served(&mut self, media: &mut Media, op: u32) {
        self.map.served(&mut self.data, media, op);
    }

    fn program_failed(&mut self, media: &mut Media, op: u32) {
        self.map.program_failed(media, op);
    }

    fn given_up(&mut self, media: &mut Media, op: u32) {
        self.map.given_up(&mut self.data, media, op);
    }

    fn set_read_only(&mut self) {
        self.map.set_read_only();
    }

    fn load_ahead(&mut self, media: &mut Media, lpns: &[Lpn]) {
        self.map.load_ahead(&mut self.data, media, lpns, MapUser::Buffer);
    }

    fn on_slot_free(&mut self, media: &mut Media) {
        self.map.on_slot_free(&mut self.data, media);
    }

    fn resume(&mut self, media: &mut Media) {
        self.map.resume(&mut self.data, media);
    }
}

impl Ftl for DemandFtl {
    fn cached_map(&mut self) -> Option<&mut dyn CachedMap> {
        Some(self)
    }

    fn write(
        &mut self,
        media: &mut Media,
        units: &[UnitWrite<'_>],
        stream: u16,
        cause: Cause,
        owner: Waiter,
    ) -> Result<(), NoSpace> {
        let failed = media.wakes.failed.len();
        self.data.write(media, units, stream, cause, owner)?;
        self.changed(media, units.iter().map(|unit| unit.lpn), failed);
        self.map.end_active_blocks(&mut self.data, media);
        Ok(())
    }

    fn supports_rewrite(&self) -> bool {
        self.data.supports_rewrite()
    }

    fn first_die(&self, media: &Media, lpn: Lpn, mask: u64) -> Option<DieId> {
        self.data.first_die(media, lpn, mask)
    }

    fn share_page(&self, first: Lpn, second: Lpn) -> bool {
        self.data.share_page(first, second)
    }

    fn pages_left_in_stripe(&self, media: &Media) -> u32 {
        self.data.pages_left_in_stripe(media)
    }

    fn find(&self, lpn: Lpn) -> Found {
        self.data.find(lpn)
    }

    fn trim(&mut self, media: &mut Media, first: Lpn, end: Lpn) -> u64 {
        let pages = self.map.shape.page_of(first)..=self.map.shape.page_of(Lpn(end.0.max(1) - 1));
        assert!(pages.clone().count() <= 1, "units {first} to {end} are trimmed, of map pages {pages:?}");
        let count = self.data.unmap_units(media, first, end);
        if count > 0 {
            self.map.trimmed(first..end);
        }
        count
    }

    fn save_trims(&mut self, media: &mut Media, _: TrimTarget, _: Waiter) -> Result<u32, NoSpace> {
        Ok(self.map.save_trims(&mut self.data, media))
    }

    fn trims_pending(&self) -> u32 {
        self.map.trims_pending()
    }

    fn trim_segment_units(&self) -> u32 {
        let shape = &self.map.shape;
        match shape.by_entry {
            // A power of two, as many entries as a map page has: a segment is of one map page.
            true => 1 << (shape.capacity / 2).clamp(1, shape.entries).ilog2(),
            false => shape.entries,
        }
    }

    fn relocate(
        &mut self,
        media: &mut Media,
        victim: u32,
        cursor: u32,
        limit: u32,
        cause: Cause,
        owner: Waiter,
    ) -> Relocated {
        let moved = self.move_out(media, victim, cursor, limit, cause, owner);
        self.map.end_active_blocks(&mut self.data, media);
        moved
    }

    fn rewrite(
        &mut self,
        media: &mut Media,
        place: Place,
        frontier: Frontier,
        cause: Cause,
        owner: Waiter,
    ) -> Result<bool, NoSpace> {
        if self.map.is_map(media, place) {
            return match self.map.rewrite(&mut self.data, media, place, owner) {
                None => Ok(false),
                Some(true) => Ok(true),
                Some(false) => Err(NoSpace),
            };
        }
        let frontier = match media.pool.kind_of(place.block) {
            BlockKind::Log => Frontier::Log,
            BlockKind::Data | BlockKind::Map => frontier,
        };
        let first = media.unit_at(place);
        let current: Vec<Lpn> = UnitId::each(first..first + media.units_per_page)
            .filter(|unit| self.data.is_current(*unit))
            .map(|unit| media.flash.oob.lpn(unit))
            .collect();
        let failed = media.wakes.failed.len();
        // What waits for a page of data keeps its map page in the cache: it goes before what else relocation moves.
        let written = self.data.rewrite(media, place, frontier, cause, owner);
        let written = match written {
            Err(NoSpace) if matches!(frontier, Frontier::Host(_)) => {
                self.data.rewrite(media, place, Frontier::Gc, cause, owner)?
            }
            other => other?,
        };
        if written {
            self.moved(media, current.into_iter(), failed);
        }
        self.map.settled(media, place);
        self.map.resume_settled(&mut self.data, media);
        self.map.end_active_blocks(&mut self.data, media);
        Ok(written)
    }

    fn current_locations(&self, media: &Media, place: Place, pages: &mut Vec<Ppn>) -> bool {
        self.data.current_locations(media, place, pages)
    }

    fn prefetch(&self, media: &Media, lpns: &[Lpn]) {
        self.data.prefetch(media, lpns);
    }

    fn recover(&mut self, media: &mut Media, reads: &mut RecoveryReads) {
        self.map.rebuild(&mut self.data, media, reads);
    }

    fn finish_recovery(&mut self, media: &mut Media, reads: &mut RecoveryReads) -> RecoveryStep {
        self.map.finish_recovery(&mut self.data, media, reads)
    }

    fn metadata_units(&self) -> u32 {
        self.map.shape.metadata_units()
    }

    fn check_space(&self, config: &DriveConfig, usable: &[u32]) -> Result<(), DriveError> {
        let log = match config.log_blocks() {
            0 => String::new(),
            log => format!(", {log} for the random-write log buffer"),
        };
        let quota = config.map_blocks();
        config.check_frontier_space(&DemandFtl::for_data(config, usable), 0).map_err(|error| DriveError {
            reason: format!("{} ({quota} of each group are for map pages{log})", error.reason),
            ..error
        })
    }

    fn data_bytes(&self, config: &DriveConfig, usable: &[u32]) -> f64 {
        config.frontier_bytes(&DemandFtl::for_data(config, usable))
    }

    fn check(&self, media: &Media) -> Vec<Check> {
        let mut checks = self.data.check(media);
        checks.extend(self.map.check(&self.data, media));
        checks
    }

    fn memory(&self) -> Vec<(&'static str, u64)> {
        let valid = self.data.memory().into_iter().filter(|(name, _)| *name == "valid_bitmap_bytes");
        self.map.memory().into_iter().chain(valid).collect()
    }

    fn design(&self, media: &Media) -> Vec<(String, f64)> {
        self.data.design(media)
    }

    fn map_stats(&self) -> Option<MapCacheStats> {
        Some(self.map.counters)
    }

    fn in_flight_work(&mut self, media: &Media) -> Vec<&'static str> {
        self.map.in_flight_work(media)
    }

    fn reset_counters(&mut self) {
        self.data.reset_counters();
        self.map.counters = Default::default();
    }

    fn save(&self, to: &mut dyn Write) -> io::Result<()> {
        self.data.save(to)?;
        self.map.save(to)
    }

    fn restore(&mut self, media: &mut Media, from: &mut dyn Read) -> io::Result<()> {
        self.data.restore(media, from)?;
        self.map.restore(&mut self.data, media, from)
    }
}

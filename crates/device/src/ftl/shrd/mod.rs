//! FTL design `shrd`: SHRD-FTL (Kim et al., FAST 2017; sections 4.1, 4.4 and 4.5), a demand-loading FTL with the commands of the
//! set `shrd`.
//!
//! Behind the user's units are those of the *random-write log buffer* (RWLB), the tLPNs. What the host writes there goes to log
//! blocks, which are no victims of collection: the names of their units are not final. The OOB area of each has the unit's
//! final name, its oLPN, and the number of the host's write. A remap moves the entry of a tLPN to its oLPN and touches no data.
//! When all names in a log block are final, dirty map pages are flushed, a record says that it is no log block any more, and it
//! becomes a data block.
//!
//! Of all copies of a unit the one that the host wrote last counts, whatever program put it where it is: units keep the number of
//! the host's write wherever they are moved, and recovery compares these. Units that go to the log have even numbers, one after
//! the other; what is written elsewhere, and a trim of a unit with copies in the log, has the odd number before the next of these.
//! 31 bits are enough for 2^30 units in the log.
//!
//! - `keys.rs`: what descriptions say.
//! - `rwlb.rs`: log blocks, and what is known of each tLPN.
//! - `commands.rs`: the commands of the set.
//! - `remap_jobs.rs`: remaps, trims of tLPNs and `restore`, entry by entry, as map pages come.
//! - `recovery.rs`: the remap that recovery does by itself (autoremap).

mod commands;
mod keys;
mod recovery;
mod remap_jobs;
mod rwlb;

use std::io::{self, Read, Write};
use std::ops::Range;

use ssdlab_base::Saved;
use ssdlab_base::command_sets::shrd::SHRD;
use ssdlab_flash::{Cause, DieId, Lpn, Origin, Ppn};

use self::remap_jobs::Work;
use self::rwlb::Rwlb;
use super::demand_paged::DemandFtl;
use super::{
    CachedMap, Commands, Design, Drawing, Found, Ftl, Make, NoSpace, RecoveryStep, Relocated, TrimTarget, UnitWrite,
};
use crate::block_pool::BlockKind;
use crate::media::{Frontier, Media, Place};
use crate::recovery_reads::RecoveryReads;
use crate::seeded::{Bug, seeded};
use crate::waiter::Waiter;
use crate::{Check, DriveConfig, DriveError, MapCacheStats};

/// The design as a description names it.
pub(super) const DESIGN: Design = Design {
    name: "shrd",
    summary: "the map on flash, small writes in a log that the host asks for, remapped without moving data",
    keys: keys::KEYS,
    make: Make {
        check: keys::check,
        commands: Some(&SHRD),
        map_blocks: super::demand_paged::map_blocks,
        log_blocks: keys::log_blocks,
        reserved_units: keys::rwlb_units,
        drawing: Drawing { drive: keys::draw, handful: keys::handful, one_in: 4, ..Drawing::ANY },
        ..Make::of(|config| Box::new(Shrd::new(config)), keys::simulator_bytes)
    },
};

/// SHRD-FTL.
pub(crate) struct Shrd {
    base: DemandFtl,
    rwlb: Rwlb,
    /// Commands that have begun and wait for map pages, in the order in which they came.
    works: Vec<Work>,
    /// Commands that wait for programs in flight.
    for_programs: Vec<Waiter>,
    /// Data for the log waits for a block.
    wants_room: bool,
    counters: Counters,
}

/// Its own figures.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    twrites: u64,
    units: u64,
    remaps: u64,
    remapped: u64,
    /// Map pages of oLPNs that remaps changed, each once a remap.
    remap_pages: u64,
    restored: u64,
    autoremapped: u64,
    blocks_turned: u64,
}

impl Shrd {
    fn new(config: &DriveConfig) -> Shrd {
        let base = DemandFtl::new(config);
        let rwlb = Rwlb::new(config.user_units(), keys::rwlb_units(config));
        assert_eq!(base.map.shape.mapped_units, config.user_units() + rwlb.units(), "the map has the log's units");
        Shrd {
            base,
            rwlb,
            works: Vec::new(),
            for_programs: Vec::new(),
            wants_room: false,
            counters: Counters::default(),
        }
    }

    /// Writes whole units to log blocks, under their tLPNs.
    fn write_log(
        &mut self,
        media: &mut Media,
        units: &[UnitWrite<'_>],
        cause: Cause,
        owner: Waiter,
    ) -> Result<(), NoSpace> {
        assert!(units.iter().all(|unit| self.rwlb.is_tlpn(unit.lpn)), "a page of the log has a unit of the user");
        let group = self.rwlb.choose_group(media).ok_or(NoSpace)?;
        let place = media.take_seen_page(group, Frontier::Log);
        self.rwlb.gets_page(units.len() as u32);
        let origins: Vec<Origin> = units.iter().map(|unit| self.rwlb.origin(unit.lpn)).collect();
        let failed = media.wakes.failed.len();
        for (unit, origin) in units.iter().zip(&origins) {
            if let Some(old) = self.base.data.unit_of(unit.lpn) {
                self.rwlb.settled(media, old);
            }
            self.rwlb.logged(media, place.block, self.base.map.shape.page_of(origin.lpn));
        }
        media.flash.oob.give_origins(origins.into_iter());
        self.base.data.write_log(media, place, units, cause, owner);
        self.base.changed(media, units.iter().map(|unit| unit.lpn), failed);
        self.end_active_blocks(media);
        Ok(())
    }

    /// Active blocks become data blocks if enough were opened; so do log blocks of which all names are final by then.
    fn end_active_blocks(&mut self, media: &mut Media) {
        self.base.map.end_active_blocks(&mut self.base.data, media);
        self.convert_settled_logs(media);
    }

    /// Log blocks of which all names are final, on flash, become data blocks where their group has a free block to spare: it is
    /// set aside for the log in their stead.
    fn convert_settled_logs(&mut self, media: &mut Media) {
        if self.wants_room && self.rwlb.has_settled(media) {
            self.base.map.end_active_blocks_now(&mut self.base.data, media);
        }
        let settled = self.base.map.take_settled_logs();
        if settled.is_empty() && !self.rwlb.has_due() {
            return;
        }
        let turned = self.rwlb.turn(media, settled);
        self.counters.blocks_turned += u64::from(turned);
        if turned > 0 {
            self.rwlb.count_copies(media, |lpn| self.base.map.shape.page_of(lpn));
            media.wakes.log_has_space = true;
        }
    }

    /// After something was relocated out of log blocks or rewritten: names went from block to block.
    fn count_open_names(&mut self, media: &Media) {
        let (data, map) = (&self.base.data, &self.base.map);
        self.rwlb.count_open(media, |superblock| {
            let current = data.current_units(media, superblock, 0);
            current.filter(|(_, unit)| media.flash.oob.lpn(*unit).0 >= map.shape.reserved_from).count() as u32
        });
        self.rwlb.count_copies(media, |lpn| map.shape.page_of(lpn));
    }

    /// Programs of the log or of host data ended: commands that wait for one are tried again.
    fn wake(&mut self, media: &mut Media) {
        media.wakes.map_waiters.append(&mut self.for_programs);
    }

    /// Whether a unit holds nothing, or is on flash.
    fn is_on_flash(&self, media: &Media, lpn: Lpn) -> bool {
        self.base.data.unit_of(lpn).is_none_or(|unit| media.is_on_flash(media.page_of(unit)))
    }
}

impl CachedMap for Shrd {
    fn request(&mut self, media: &mut Media, waiter: Waiter, lpns: &[Lpn]) -> bool {
        self.base.request(media, waiter, lpns)
    }

    fn request_range(&mut self, media: &mut Media, waiter: Waiter, units: Range<Lpn>) -> bool {
        self.base.request_range(media, waiter, units)
    }

    fn has_page_for(&self, media: &Media, lpn: Lpn, stream: u16) -> bool {
        match self.rwlb.is_tlpn(lpn) {
            true => self.rwlb.has_page(media),
            false => self.base.has_page_for(media, lpn, stream),
        }
    }

    fn reach(&self, first: Lpn) -> Lpn {
        self.base.reach(first)
    }

    fn forget(&mut self, media: &mut Media, waiter: Waiter) {
        self.works.retain(|work| work.waiter != waiter);
        self.for_programs.retain(|other| *other != waiter);
        self.base.forget(media, waiter);
    }

    fn forget_served(&mut self, media: &mut Media, waiter: Waiter) {
        self.base.forget_served(media, waiter);
    }

    fn settled(&mut self, media: &mut Media, place: Place) {
        self.base.settled(media, place);
    }

    fn resume_settled(&mut self, media: &mut Media) {
        self.base.resume_settled(media);
        self.wake(media);
    }

    fn served(&mut self, media: &mut Media, op: u32) {
        self.base.served(media, op);
        self.convert_settled_logs(media);
    }

    fn program_failed(&mut self, media: &mut Media, op: u32) {
        self.base.program_failed(media, op);
    }

    fn given_up(&mut self, media: &mut Media, op: u32) {
        self.base.given_up(media, op);
    }

    fn set_read_only(&mut self) {
        self.base.set_read_only();
    }

    fn load_ahead(&mut self, media: &mut Media, lpns: &[Lpn]) {
        self.base.load_ahead(media, lpns);
    }

    fn on_slot_free(&mut self, media: &mut Media) {
        self.base.on_slot_free(media);
        self.convert_settled_logs(media);
    }

    fn resume(&mut self, media: &mut Media) {
        self.base.resume(media);
        self.convert_settled_logs(media);
    }
}

impl Ftl for Shrd {
    fn commands(&mut self) -> Option<&mut dyn Commands> {
        Some(self)
    }

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
        if self.rwlb.is_tlpn(units[0].lpn) {
            return self.write_log(media, units, cause, owner);
        }
        self.base.write(media, units, stream, cause, owner)?;
        self.convert_settled_logs(media);
        Ok(())
    }

    fn supports_rewrite(&self) -> bool {
        self.base.supports_rewrite()
    }

    fn first_die(&self, media: &Media, lpn: Lpn, mask: u64) -> Option<DieId> {
        self.base.first_die(media, lpn, mask)
    }

    fn share_page(&self, first: Lpn, second: Lpn) -> bool {
        match (self.rwlb.is_tlpn(first), self.rwlb.is_tlpn(second)) {
            (true, true) => true,
            (false, false) => self.base.share_page(first, second),
            _ => false,
        }
    }

    fn pages_left_in_stripe(&self, media: &Media) -> u32 {
        self.base.pages_left_in_stripe(media)
    }

    fn find(&self, lpn: Lpn) -> Found {
        self.base.find(lpn)
    }

    fn trim(&mut self, media: &mut Media, first: Lpn, end: Lpn) -> u64 {
        let page = self.base.map.shape.page_of(first);
        let copies = match self.rwlb.has_copies_of(page) && !seeded(Bug::TrimForgetsLog) {
            true => self.rwlb.trim_copies(media, first..end),
            false => Vec::new(),
        };
        let count = self.base.trim(media, first, end);
        for lpn in &copies {
            self.base.map.trimmed_since(*lpn, self.rwlb.number_elsewhere());
        }
        if count == 0 && !copies.is_empty() {
            self.base.map.trimmed(first..end);
        }
        count
    }

    fn save_trims(&mut self, media: &mut Media, to: TrimTarget, owner: Waiter) -> Result<u32, NoSpace> {
        self.base.save_trims(media, to, owner)
    }

    fn trims_pending(&self) -> u32 {
        self.base.trims_pending()
    }

    fn trim_segment_units(&self) -> u32 {
        self.base.trim_segment_units()
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
        let is_log = media.pool.kind(victim) == BlockKind::Log;
        let moved = self.base.relocate(media, victim, cursor, limit, cause, owner);
        if is_log {
            self.rwlb.found_blocks(media);
            self.count_open_names(media);
        }
        self.convert_settled_logs(media);
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
        let is_log = media.pool.kind_of(place.block) == BlockKind::Log;
        let written = self.base.rewrite(media, place, frontier, cause, owner);
        if is_log {
            self.rwlb.found_blocks(media);
            self.count_open_names(media);
        }
        self.wake(media);
        self.convert_settled_logs(media);
        written
    }

    fn current_locations(&self, media: &Media, place: Place, pages: &mut Vec<Ppn>) -> bool {
        self.base.current_locations(media, place, pages)
    }

    fn prefetch(&self, media: &Media, lpns: &[Lpn]) {
        self.base.prefetch(media, lpns);
    }

    fn recover(&mut self, media: &mut Media, reads: &mut RecoveryReads) {
        self.autoremap(media, reads);
    }

    fn finish_recovery(&mut self, media: &mut Media, reads: &mut RecoveryReads) -> RecoveryStep {
        for life in self.rwlb.take_back(media) {
            self.base.map.is_data_on_flash(life);
        }
        self.base.finish_recovery(media, reads)
    }

    fn metadata_units(&self) -> u32 {
        self.base.metadata_units()
    }

    fn check_space(&self, config: &DriveConfig, usable: &[u32]) -> Result<(), DriveError> {
        self.base.check_space(config, usable)
    }

    fn data_bytes(&self, config: &DriveConfig, usable: &[u32]) -> f64 {
        self.base.data_bytes(config, usable)
    }

    fn check(&self, media: &Media) -> Vec<Check> {
        let mut checks = self.base.check(media);
        checks.extend(self.rwlb.check(media, &self.base.data));
        checks
    }

    fn memory(&self) -> Vec<(&'static str, u64)> {
        [self.base.memory(), self.rwlb.memory(self.base.map.shape.pages)].concat()
    }

    fn design(&self, media: &Media) -> Vec<(String, f64)> {
        let Counters { twrites, units, remaps, remapped, remap_pages, restored, autoremapped, blocks_turned } =
            self.counters;
        let own = [
            ("twrites", twrites),
            ("twrite_units", units),
            ("remaps", remaps),
            ("remapped_units", remapped),
            ("remap_map_pages", remap_pages),
            ("restored_units", restored),
            ("autoremapped_units", autoremapped),
            ("log_blocks_turned", blocks_turned),
        ];
        let own = own.map(|(name, count)| (name.to_string(), count as f64));
        self.base.design(media).into_iter().chain(own).collect()
    }

    fn map_stats(&self) -> Option<MapCacheStats> {
        self.base.map_stats()
    }

    fn in_flight_work(&mut self, media: &Media) -> Vec<&'static str> {
        let mut kinds = self.base.in_flight_work(media);
        kinds.extend(self.works.iter().map(Work::kind));
        kinds
    }

    fn reset_counters(&mut self) {
        self.base.reset_counters();
        self.counters = Counters::default();
    }

    fn save(&self, to: &mut dyn Write) -> io::Result<()> {
        self.base.save(to)?;
        self.rwlb.save_to(to)
    }

    fn restore(&mut self, media: &mut Media, from: &mut dyn Read) -> io::Result<()> {
        self.base.restore(media, from)?;
        self.rwlb.load_from(from)?;
        self.rwlb.accept(media)?;
        for life in self.rwlb.due() {
            self.base.map.is_data_on_flash(*life);
        }
        self.rwlb.found_blocks(media);
        self.count_open_names(media);
        Ok(())
    }
}

//! What the drive tells of itself: counters, wear, utilization, over-provisioning, memory, and its invariants.

use ssdlab_base::Nanos;
use ssdlab_flash::{ArrayWork, Cause, OpKind};

use super::Drive;
use super::DriveError;
use crate::buffer::WriteBuffer;
use crate::{BufferCounters, Check, Counters, DriveConfig, MapCacheStats, OverProvisioning, Utilization, Wear};

impl Drive {
    /// Counters.
    pub fn counters(&self) -> Counters {
        let buffer = self.stage.buffer.as_ref();
        Counters {
            buffer: BufferCounters {
                full: self.counters.buffer.full + self.full_for(),
                pages_now: buffer.map_or(0, |buffer| u64::from(buffer.units())),
                partial_pages_now: buffer.map_or(0, |buffer| u64::from(buffer.partial_units())),
                ..self.counters.buffer
            },
            flash: *self.media.flash.counts(),
            multi_plane: *self.media.flash.multi_plane(),
            padding_bytes: self.media.padding_bytes,
            relocation_padding_bytes: self.media.relocation_padding_bytes,
            victims: self.gc.victims,
            grown_bad_blocks: self.gc.grown_bad,
            rebuilt_pages: self.media.rebuilt_pages,
            uncorrectable_copybacks: self.media.flash.uncorrectable_copybacks(),
            map_cache: self.ftl.map_stats().map(|stats| MapCacheStats { waits: self.map_waits, ..stats }),
            queue: self.media.flash.queue_waits(),
            controller: self.media.processor.as_ref().map(|processor| processor.counters),
            ..self.counters
        }
    }

    /// Erase counts over all blocks that are not bad.
    pub fn wear(&self) -> Wear {
        let good: Vec<u32> =
            self.media.flash.blocks.all().iter().filter(|block| !block.bad).map(|block| block.erases).collect();
        Wear::of(&good)
    }

    /// Erases of every block, bad ones included, by block number.
    pub fn erase_counts(&self) -> Vec<u32> {
        self.media.flash.blocks.all().iter().map(|block| block.erases).collect()
    }

    /// What the chips' arrays are doing at `at`, between now and the next event: what a power cut then would tear.
    pub fn array_work(&self, at: Nanos) -> ArrayWork {
        self.media.flash.array_work(at)
    }

    /// Bytes in the write buffer that are not on flash nor on their way there.
    pub fn buffered_bytes(&self) -> u64 {
        self.stage.buffer.as_ref().map_or(0, |buffer| buffer.dirty_sectors() * ssdlab_base::SECTOR_BYTES)
    }

    /// Bytes that could be programmed before a block must be erased, with what has been moved out of victims in work in
    /// proportion: what the host writes takes from it, and collection gives back.
    pub fn headroom_bytes(&self) -> u64 {
        self.gc.headroom_pages(&self.media) * u64::from(self.config.flash.geometry.page_bytes)
    }

    /// Free superblocks of the whole drive: blocks, where every block stands alone.
    pub fn free_blocks(&self) -> u64 {
        (0..self.media.pool.groups()).map(|group| u64::from(self.media.pool.free_blocks(group))).sum()
    }

    /// Busy times so far.
    pub fn utilization(&self) -> Utilization {
        let (channels, dies) = self.media.flash.busy_at(self.media.now);
        Utilization { channels, dies }
    }

    /// The nominal and the effective spare now.
    pub fn over_provisioning(&self) -> OverProvisioning {
        self.config.over_provisioning(self.ftl.data_bytes(&self.config, &self.usable()))
    }

    /// The over-provisioning of a drive with another user capacity on this flash.
    ///
    /// # Errors
    /// The flash has too little space for it.
    pub fn over_provisioning_of(&self, config: &DriveConfig) -> Result<OverProvisioning, DriveError> {
        assert_eq!(config.flash.geometry, self.config.flash.geometry, "the flash is the same");
        let usable = self.usable();
        self.ftl.check_space(config, &usable)?;
        Ok(config.over_provisioning(self.ftl.data_bytes(config, &usable)))
    }

    /// The effective spare as collection found it: what of the physical pages held data, current or stale, when its victims
    /// were chosen, on average; `None` before the first. [`Drive::over_provisioning`] says the same of a drive that collects without
    /// time: all at once when a frontier is opened. In time hosts write while a victim is emptied, so less is empty.
    pub fn over_provisioning_at_collection(&self) -> Option<f64> {
        let victims: u64 = self.gc.victims[..2].iter().sum();
        if victims == 0 {
            return None;
        }
        let pages = f64::from(self.media.data_pages_per_superblock());
        // Free superblocks that are kept for map pages are not among the empty ones.
        let map_blocks = self.config.map_blocks();
        let usable: f64 = self.usable().iter().map(|usable| f64::from(usable.saturating_sub(map_blocks))).sum();
        let empty = self.gc.empty_pages as f64 / victims as f64 * f64::from(self.media.pool.groups());
        let bytes = (usable * pages - empty) * f64::from(self.config.flash.geometry.page_bytes);
        let user = self.config.user_bytes as f64;
        Some((bytes - user) / user)
    }

    /// Modelled RAM of a real drive by name, and `simulator_bytes`, what the model itself keeps; in bytes.
    pub fn memory(&self) -> Vec<(&'static str, u64)> {
        let mut memory = self.ftl.memory();
        memory.extend(self.media.list_memory());
        memory.extend(self.beside.iter().flat_map(|beside| beside.memory()));
        memory.extend(self.placement.iter().map(|placement| ("placement_bytes", placement.bytes())));
        let tables: u64 = memory.iter().map(|(_, bytes)| bytes).sum();
        let buffer = if self.stage.buffer.is_some() { self.config.buffer.bytes } else { 0 };
        memory.push(("buffer_bytes", buffer));
        memory.extend(self.stage.buffer.iter().flat_map(WriteBuffer::memory));
        memory.push(("simulator_bytes", tables + self.media.flash.oob.bytes()));
        memory
    }

    /// The design's own figures.
    pub fn design(&self) -> Vec<(String, f64)> {
        let victims: u64 = self.gc.victims[..2].iter().sum();
        let units = victims as f64 * f64::from(self.media.data_units_per_superblock());
        let share = if victims == 0 { 0.0 } else { self.gc.valid_in_victims as f64 / units };
        let mut figures = vec![
            ("victims_foreground", self.gc.victims[0] as f64),
            ("victims_background", self.gc.victims[1] as f64),
            ("victims_wear_levelling", self.gc.victims[2] as f64),
            ("victim_valid_share", share),
            ("victims_full", self.gc.full_victims as f64),
            ("victims_by_guard", self.gc.guarded_victims as f64),
            ("free_blocks_at_end", self.free_blocks() as f64),
        ];
        figures.extend(self.stage.buffer.iter().flat_map(WriteBuffer::figures));
        let mut figures: Vec<(String, f64)> =
            figures.into_iter().map(|(name, figure)| (name.to_string(), figure)).collect();
        figures.extend(self.ftl.design(&self.media));
        figures
    }

    /// Names of the design's own work in flight: what a power cut would interrupt now.
    pub fn in_flight_work(&mut self) -> Vec<&'static str> {
        self.ftl.in_flight_work(&self.media)
    }

    /// Checks the invariants of the whole drive.
    pub fn check(&self) -> Vec<Check> {
        let mut checks = self.ftl.check(&self.media);
        let counts = self.media.flash.counts();
        let programs = counts.total(OpKind::Program) + counts.total(OpKind::Copyback);
        let by_cause: u64 = Cause::ALL
            .iter()
            .map(|cause| counts.get(OpKind::Program, *cause) + counts.get(OpKind::Copyback, *cause))
            .sum();
        checks.push(Check {
            name: "programs_equal_sum_over_causes",
            passed: programs == by_cause,
            detail: format!("{programs} pages programmed since the statistics began, {by_cause} over all causes"),
        });
        if self.media.flash.in_flight() == 0 {
            let superblocks = 0..self.media.pool.superblocks_count();
            let pinned: u64 = superblocks.map(|superblock| u64::from(self.media.pool.pins(superblock))).sum();
            // Pages whose programs failed and for which there was no room hold what they need.
            let failed = self.failures.pending_rewrites.len()
                + self.failures.retirements.iter().map(|hold| hold.blocks.len()).sum::<usize>();
            let held = failed + self.gc.waiting_for_records() + self.media.pins_of_lists();
            let held = held + self.media.held_for_checkpoint as usize;
            checks.push(Check {
                name: "no_pins_when_idle",
                passed: pinned == held as u64,
                detail: format!("{pinned} pins on blocks with nothing in flight, {held} for failed pages and lists"),
            });
        }
        if let Some(buffer) = &self.stage.buffer {
            let limit = self.config.buffer.bytes / 512;
            checks.push(Check {
                name: "buffer_within_its_size",
                passed: buffer.used_sectors() <= limit,
                detail: format!("{} of {limit} sectors used", buffer.used_sectors()),
            });
        }
        checks
    }
}

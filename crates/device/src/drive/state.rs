//! What a drive tells about itself, and its state as bytes.

use std::io::{self, Read, Write};

use ssdlab_base::{Nanos, Saved, damaged, load, load_magic, rng, saved};
use ssdlab_flash::{ArrayWork, BlockId, Cause, FaultKind, OpKind, ScriptedFault, Unstruck};

use super::buffering::make_buffer;
use super::{Destager, Drive, DriveError, Options, Retirement};
use crate::block_pool::{BlockKind, BlockPool, BlockState};
use crate::buffer::WriteBuffer;
use crate::token::Owner;
use crate::{BufferCounters, Check, Counters, DriveConfig, MapCacheStats, MapWaits, Spare, Utilization, Wear};

/// First and last bytes of a saved state; the number changes with the layout.
const MAGIC: &[u8; 16] = b"ssdlab drive 6\n\0";

/// What the controller keeps of superblocks.
#[derive(Debug, Default)]
struct Controller {
    /// The number of the next program.
    sequence: u64,
    /// By superblock.
    states: Vec<BlockState>,
    kinds: Vec<BlockKind>,
    /// Whether a trim took units from it.
    trimmed: Vec<bool>,
    /// When it was closed.
    order: Vec<u64>,
    closings: u64,
    /// Free superblocks, group by group in the order in which they leave.
    free: Vec<u32>,
    /// By group: victims since static wear levelling last moved a block, and victims in a row that were valid from end to end.
    victims_since_wear_move: Vec<u32>,
    full_in_a_row: Vec<u32>,
    /// The last page that a host wrote left room in its row.
    host_row_open: bool,
    /// The superblock of each write frontier, and how many of its pages were given out.
    frontiers: Vec<(u32, u32)>,
}
saved!(Controller: sequence, states, kinds, trimmed, order, closings, free, victims_since_wear_move, full_in_a_row, host_row_open,
    frontiers);

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
            map_cache: self.ftl.map_stats().map(|stats| MapCacheStats { waits: self.map_waits, ..stats }),
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

    /// Faults may be asked for from now on; only while nothing is in flight.
    pub fn expect_faults(&mut self) {
        self.media.flash.expect_faults();
    }

    /// Lets the next operation of `kind` fail, on `block` or, with `None`, on whatever block it is. Only on a drive whose
    /// description has faults, or after [`Drive::expect_faults`]. Program failures want a reserve: `gc.free_blocks` of at
    /// least 3.
    pub fn fail_next(&mut self, kind: FaultKind, block: Option<BlockId>) {
        self.media.flash.fail_next(kind, block);
    }

    /// The faults that have struck the chips since they were made, in order, each as the script that would repeat it.
    pub fn faults_struck(&self) -> &[ScriptedFault] {
        self.media.flash.faults_struck()
    }

    /// The faults of the description's script that have not struck since the drive was made or reseeded.
    pub fn faults_unstruck(&self) -> Vec<Unstruck> {
        self.media.flash.faults_unstruck()
    }

    /// What [`Drive::fail_next`] was asked for and waits for its operation, in no order.
    pub fn faults_asked(&self) -> &[(FaultKind, Option<BlockId>)] {
        self.media.flash.faults_asked()
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
    pub fn spare(&self) -> Spare {
        self.config.spare(self.ftl.data_bytes(&self.config, &self.usable()))
    }

    /// The over-provisioning of a drive with another user capacity on this flash.
    ///
    /// # Errors
    /// The flash has too little space for it.
    pub fn spare_of(&self, config: &DriveConfig) -> Result<Spare, DriveError> {
        assert_eq!(config.flash.geometry, self.config.flash.geometry, "the flash is the same");
        let usable = self.usable();
        self.ftl.check_space(config, &usable)?;
        Ok(config.spare(self.ftl.data_bytes(config, &usable)))
    }

    /// The effective spare as collection found it: what of the physical pages held data, current or stale, when its victims
    /// were chosen, on average; `None` before the first. [`Drive::spare`] says the same of a drive that collects without
    /// time: all at once when a frontier is opened. In time hosts write while a victim is emptied, so less is empty.
    pub fn spare_at_collection(&self) -> Option<f64> {
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

    /// Kinds of the design's own work that are under way, by name: what a power cut now falls into.
    pub fn in_flight_work(&mut self) -> Vec<&'static str> {
        self.ftl.in_flight_work(&self.media)
    }

    /// Walks everything and checks the conservation laws.
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
            held: programs == by_cause,
            detail: format!("{programs} pages programmed since the statistics began, {by_cause} over all causes"),
        });
        if self.media.flash.in_flight() == 0 {
            let superblocks = 0..self.media.pool.superblocks_count();
            let pinned: u64 = superblocks.map(|superblock| u64::from(self.media.pool.pins(superblock))).sum();
            // Pages whose programs failed and for which there was no room hold what they need.
            let failed = self.failures.pending_rewrites.len()
                + self.failures.retirements.iter().map(|hold| hold.blocks.len()).sum::<usize>();
            let held = failed + self.gc.waiting_for_records();
            checks.push(Check {
                name: "no_pins_when_idle",
                held: pinned == held as u64,
                detail: format!("{pinned} pins on blocks with nothing in flight, {held} for failed pages"),
            });
        }
        if let Some(buffer) = &self.stage.buffer {
            let limit = self.config.buffer.bytes / 512;
            checks.push(Check {
                name: "buffer_within_its_size",
                held: buffer.used_sectors() <= limit,
                detail: format!("{} of {limit} sectors used", buffer.used_sectors()),
            });
        }
        checks
    }

    /// Functional fast-forward: with `false`, operations complete at once and time stands still. Only while idle.
    pub fn set_timed(&mut self, timed: bool) {
        self.quiesce();
        if timed && !self.media.flash.timed() && self.config.gc.pacing.is_on() {
            self.fill_headroom();
        }
        self.media.flash.set_timed(timed);
        self.media.host_pace.release();
        self.forget_idle_times();
    }

    /// Lets what the drive does by itself come to its end; no command may be outstanding.
    fn quiesce(&mut self) {
        assert_eq!(self.commands.outstanding, 0, "only an idle drive can be switched, reset or saved");
        self.forget_idle_times();
        while let Some(at) = self.next_event() {
            self.run_until(at);
        }
        if self.gc.is_paced(&self.media) {
            self.end_jobs();
        }
        assert_eq!(self.media.flash.in_flight(), 0, "an idle drive has nothing in flight");
        // Pages whose programs failed and for which there is no space stay in RAM, and in the buffer.
        let held = |hold: &Retirement| match hold.owner {
            Owner::Eviction(slot) => Some(self.stage.evictions[slot].sectors),
            _ => None,
        };
        let held: Vec<u64> = self.failures.retirements.iter().filter_map(held).collect();
        let evictions = self.stage.evictions.len();
        assert_eq!(evictions, held.len(), "an idle drive has evictions in flight beyond those of failed pages");
        let (leaving, held) = (self.stage.leaving_sectors, held.into_iter().sum::<u64>());
        assert_eq!(leaving, held, "an idle drive has sectors on their way to flash beyond those of failed pages");
        for group in 0..self.media.pool.groups() {
            self.media.pool.audit(group);
        }
    }

    /// Brings victims that paced collection has in work to their end: a saved drive has none.
    fn end_jobs(&mut self) {
        self.gc.set_draining(true);
        self.pump_all();
        while let Some(at) = self.next_event() {
            self.run_until(at);
        }
        self.gc.set_draining(false);
    }

    /// Where collection keeps pace, a drive that was written without time begins with the headroom of its steady state.
    fn fill_headroom(&mut self) {
        self.gc.set_filling(true);
        self.pump_all();
        self.work_untimed();
        self.gc.set_filling(false);
    }

    /// Forgets counters, utilization and virtual time; keeps data, mapping and wear. Only while idle.
    pub fn reset_statistics(&mut self) {
        self.quiesce();
        self.media.flash.reset_statistics();
        self.host.interface.restart();
        self.media.now = Nanos::ZERO;
        self.waiting.space_made = Nanos::ZERO;
        self.media.padding_bytes = 0;
        self.media.relocation_padding_bytes = 0;
        self.media.rebuilt_pages = 0;
        self.counters = Counters::default();
        self.map_waits = MapWaits::default();
        self.host.command_counts.fill(super::CommandCount::default());
        if let Some(buffer) = &mut self.stage.buffer {
            buffer.reset_figures();
        }
        self.gc.reset_counters();
        self.ftl.reset_counters();
        self.host.completions.clear();
        self.commands.order = 0;
    }

    /// Writes the whole state, once what the drive does by itself has come to its end; only while no command is
    /// outstanding, and only where contents are not kept.
    ///
    /// # Errors
    /// Those of the writer, and [`io::ErrorKind::Unsupported`] for a drive that keeps contents or has units in its write buffer.
    pub fn save(&mut self, to: &mut dyn Write) -> io::Result<()> {
        self.quiesce();
        if self.media.flash.store.cell_bytes() > 0 {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "a drive that keeps contents is not saved"));
        }
        if self.stage.buffer.as_ref().is_some_and(|buffer| buffer.units() > 0) {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "the write buffer must be flushed first"));
        }
        self.save_flash(to)
    }

    /// The state of everything but the write buffer, which is on flash or in the controller's tables.
    pub(super) fn save_flash(&self, to: &mut dyn Write) -> io::Result<()> {
        let pool = &self.media.pool;
        let superblocks = 0..pool.superblocks_count();
        let controller = Controller {
            sequence: self.media.sequence(),
            states: superblocks.clone().map(|superblock| pool.state(superblock)).collect(),
            kinds: superblocks.clone().map(|superblock| pool.kind(superblock)).collect(),
            trimmed: superblocks.clone().map(|superblock| pool.is_trimmed(superblock)).collect(),
            order: superblocks.map(|superblock| pool.closed_order(superblock)).collect(),
            closings: pool.closings(),
            free: (0..pool.groups()).flat_map(|group| pool.free_list(group)).collect(),
            victims_since_wear_move: self.gc.victims_since_wear_move().to_vec(),
            full_in_a_row: self.gc.full_in_a_row().to_vec(),
            host_row_open: self.media.host_row_open,
            frontiers: self.media.open_blocks().collect(),
        };
        to.write_all(MAGIC)?;
        self.media.flash.save(to)?;
        controller.save_to(to)?;
        self.ftl.save(to)?;
        if let Some(beside) = &self.beside {
            beside.save_to(to)?;
        }
        if let Some(placement) = &self.placement {
            placement.save_to(to)?;
        }
        to.write_all(MAGIC)
    }

    /// Reads a state that a drive of the same configuration saved. Policies draw from the seed anew.
    ///
    /// # Errors
    /// Those of the reader, and [`io::ErrorKind::InvalidData`] for bytes that are no state of this drive: of another version, cut,
    /// or such that an invariant of [`Drive::check`] does not hold.
    pub fn restore(config: &DriveConfig, options: Options, from: &mut dyn Read) -> io::Result<Drive> {
        let mut drive = Drive::new(config, options).map_err(|error| damaged(error.to_string()))?;
        load_magic(MAGIC, from, "this is not a saved drive of this version")?;
        drive.media.flash.load_state(from)?;
        let usable: u32 = drive.usable().iter().sum();
        // Which blocks make up which superblock is known only now.
        drive.media.pool = BlockPool::new(config, &mut drive.media.flash);
        let controller: Controller = load(from)?;
        drive.place_blocks(&controller)?;
        drive.ftl.restore(&mut drive.media, from)?;
        if let Some(beside) = &mut drive.beside {
            beside.load_from(from)?;
        }
        if let Some(placement) = &mut drive.placement {
            placement.load_from(from)?;
            placement.accept()?;
        }
        load_magic(MAGIC, from, "the saved drive is damaged")?;
        drive.adopt_blocks(&controller)?;
        if let Some(Check { name, detail, .. }) = drive.check().into_iter().find(|check| !check.held) {
            return Err(damaged(format!("the saved drive is damaged: {name} does not hold: {detail}")));
        }
        drive.find_segments();
        drive.retire_suspects();
        drive.gc.grown_bad = u64::from(usable.saturating_sub(drive.usable().iter().sum()));
        drive.failures.read_only = drive.over_provisioning_is_gone();
        drive.announce_read_only();
        Ok(drive)
    }

    /// Puts back what a design looks at: the kinds of superblocks and the write frontiers.
    fn place_blocks(&mut self, controller: &Controller) -> io::Result<()> {
        let superblocks = self.media.pool.superblocks_count() as usize;
        let Controller { states, kinds, trimmed, order, frontiers, .. } = controller;
        if [states.len(), kinds.len(), trimmed.len(), order.len()] != [superblocks; 4]
            || frontiers.len() != self.media.open_blocks().count()
            || controller.victims_since_wear_move.len() != self.gc.victims_since_wear_move().len()
            || controller.full_in_a_row.len() != self.gc.full_in_a_row().len()
        {
            return Err(damaged("it has other superblocks, groups or write frontiers than the drive"));
        }
        if controller.sequence >= 1 << 62 {
            return Err(damaged("a running number is out of its range"));
        }
        self.gc.victims_since_wear_move_mut().copy_from_slice(&controller.victims_since_wear_move);
        self.gc.full_in_a_row_mut().copy_from_slice(&controller.full_in_a_row);
        self.media.host_row_open = controller.host_row_open;
        self.media.pool.forget();
        for (superblock, kind) in (0..).zip(kinds).filter(|(_, kind)| **kind != BlockKind::Data) {
            if !self.media.pool.has(*kind) {
                return Err(damaged("a block holds map pages, or a log, of a drive that has none"));
            }
            self.media.pool.found(superblock, *kind);
        }
        for (slot, (superblock, next_page)) in frontiers.iter().enumerate() {
            if !self.media.set_open_block(slot, *superblock, *next_page) {
                return Err(damaged("a write frontier is on a block that it cannot be on"));
            }
        }
        self.media.set_sequence(controller.sequence);
        Ok(())
    }

    /// Puts back the states of superblocks. The design has counted the valid units in them before.
    fn adopt_blocks(&mut self, controller: &Controller) -> io::Result<()> {
        for (superblock, state) in (0..).zip(&controller.states) {
            if !self.state_fits(superblock, *state, controller.sequence) {
                return Err(damaged("a block's state does not agree with what is written in it"));
            }
            let (order, trimmed) = (controller.order[superblock as usize], controller.trimmed[superblock as usize]);
            self.media.pool.restore_state(superblock, *state, order, trimmed);
        }
        if !self.media.pool.set_closings(controller.closings) {
            return Err(damaged("a running number is out of its range"));
        }
        if !self.media.pool.restore_free(&controller.free, &self.media.flash) {
            return Err(damaged("the free lists do not name the free blocks"));
        }
        Ok(())
    }

    /// Whether the controller's state of a superblock agrees with the chips'.
    fn state_fits(&self, superblock: u32, state: BlockState, sequence: u64) -> bool {
        let blocks: Vec<BlockId> = self.media.pool.superblocks.members(superblock).collect();
        let chips: Vec<_> = blocks.iter().map(|block| *self.media.flash.blocks.get(*block)).collect();
        let good = self.media.pool.is_good(superblock, &self.media.flash);
        let suspect = chips.iter().any(|chips| chips.suspect);
        let programmed = self.media.programmed(superblock);
        let kind = match state {
            BlockState::Free => {
                good && !suspect && programmed == 0 && self.media.pool.kind(superblock) == BlockKind::Data
            }
            BlockState::Bad => !good,
            BlockState::Open => good && (self.media.own_blocks || !suspect && self.media.is_frontier(superblock)),
            _ => good && programmed > 0 && !self.media.is_frontier(superblock),
        };
        let valid = self.media.pool.valid(superblock);
        let holds_valid = matches!(state, BlockState::Open | BlockState::Closed) || valid == 0;
        let numbers = blocks.iter().zip(&chips).all(|(block, chips)| {
            (0..chips.programmed).all(|page| self.media.flash.oob.sequence(*block, page) < sequence)
        });
        kind && holds_valid && numbers
    }

    /// Draws policies and faults from the beginning of the seed's streams, and an empty write buffer knows nothing of what
    /// left it, as in a restored drive.
    pub fn reseed(&mut self, options: Options) {
        if let Some(buffer) =
            self.stage.buffer.as_mut().filter(|buffer| buffer.units() == 0 && self.stage.evicting.is_empty())
        {
            let compaction = self.ftl.compacts().map(|compaction| compaction.limits());
            *buffer = make_buffer(&self.config, &self.media, compaction)
                .ok()
                .flatten()
                .expect("the drive was made with this buffer");
            self.stage.destager = Destager::new(&self.config);
        }
        self.media.rng = rng(options.seed, "controller policies");
        self.media.flash.reseed(options.seed);
    }
}

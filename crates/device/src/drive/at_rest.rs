//! Between the phases of an experiment: the drive comes to rest, its time is switched, its counters and random streams start
//! again.

use ssdlab_base::{Nanos, rng};

use super::Drive;
use super::Options;
use super::buffering::make_buffer;
use super::destaging::Destager;
use super::failures::Retirement;
use crate::waiter::Waiter;
use crate::{Counters, MapWaits};

impl Drive {
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

    /// Runs until nothing happens next.
    pub(super) fn run_out(&mut self) {
        while let Some(at) = self.next_event() {
            self.run_until(at);
        }
    }

    /// Lets what the drive does by itself come to its end; no command may be outstanding.
    pub(super) fn quiesce(&mut self) {
        assert_eq!(self.commands.outstanding, 0, "only an idle drive can be switched, reset or saved");
        self.forget_idle_times();
        self.run_out();
        if self.gc.is_paced(&self.media) {
            self.end_jobs();
        }
        self.list_all();
        assert_eq!(self.media.flash.in_flight(), 0, "an idle drive has nothing in flight");
        // Pages whose programs failed and for which there is no space stay in RAM, and in the buffer.
        let held = |hold: &Retirement| match hold.owner {
            Waiter::Eviction(slot) => Some(self.stage.evictions[slot].sectors),
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
        self.media.processor.iter_mut().for_each(|processor| processor.restart());
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
        self.media.reset_list_counters();
        self.host.completions.clear();
        self.commands.order = 0;
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

//! Counters, busy times, and who observes.

use ssdlab_base::Nanos;

use super::Flash;
use super::resources::{Channel, Die, Phase};
use crate::{Observer, OpCounts};

impl Flash {
    /// Operations counted so far, by kind and cause.
    pub const fn counts(&self) -> &OpCounts {
        &self.counts
    }

    /// Of [`Flash::counts`], the operations that ran together with others on planes of their die.
    pub const fn multi_plane(&self) -> &OpCounts {
        &self.multi_plane
    }

    /// Pages that checked copybacks moved and noticed as uncorrectable: what a copy holds of them is lost.
    pub const fn uncorrectable_copybacks(&self) -> u64 {
        self.uncorrectable_copybacks
    }

    /// Forgets counters and busy times, and starts virtual time again; nothing may be in flight.
    pub fn reset_statistics(&mut self) {
        assert_eq!(self.in_flight, 0, "statistics are reset only while the chips are idle");
        self.counts = OpCounts::default();
        self.multi_plane = OpCounts::default();
        self.uncorrectable_copybacks = 0;
        for die in &mut self.dies {
            die.busy = Nanos::ZERO;
        }
        for channel in &mut self.channels {
            channel.busy = Nanos::ZERO;
            channel.free_at = Nanos::ZERO;
        }
        if self.has_single_queue() {
            self.empty_single_queue();
            self.forget_queue_waits();
        }
        if self.waits.is_some() {
            self.record_waits(true);
        }
    }

    /// Attaches or detaches an observer.
    pub fn observe(&mut self, observer: Option<Box<dyn Observer>>) {
        self.observer = observer;
        self.watch_if_needed();
    }

    /// An observer, or the record of waits, has come or gone.
    pub(super) fn watch_if_needed(&mut self) {
        self.is_watched = self.observer.is_some() || self.waits.is_some() || self.has_single_queue();
    }

    /// Busy time of the channels and the arrays of the dies: transfers count when they begin, array work when it ends.
    pub fn busy(&self) -> (Vec<Nanos>, Vec<Nanos>) {
        let channels = self.channels.iter().map(|channel| channel.busy).collect();
        (channels, self.dies.iter().map(|die| die.busy).collect())
    }

    /// Busy time of the channels and the arrays of the dies, with what runs at `now` counted exactly up to then: never
    /// more than the time that has passed.
    pub fn busy_at(&self, now: Nanos) -> (Vec<Nanos>, Vec<Nanos>) {
        let running = |die: &Die| {
            let works = matches!(die.phase, Phase::Array | Phase::Suspending);
            if works { now.since(die.array_start) } else { Nanos::ZERO }
        };
        let so_far = |channel: &Channel| {
            let ahead = channel.free_at.since(now);
            assert!(channel.busy >= ahead, "a channel was busy for {}, and {ahead} lie ahead", channel.busy);
            channel.busy - ahead
        };
        let channels = self.channels.iter().map(so_far).collect();
        (channels, self.dies.iter().map(|die| die.busy + running(die)).collect())
    }
}

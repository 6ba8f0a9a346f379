//! Timers: check-points, the age of dirty pages, and cleaning while nothing else is done.

use ssdlab_base::Nanos;

use crate::config::Options;
use crate::core::space::State;
use crate::log_structured::LogStructured;
use crate::periods;

impl LogStructured {
    /// The time of a period from now.
    pub(crate) fn after(&self, period: Nanos) -> Nanos {
        periods::after(self.core.now, period)
    }

    /// The time of the next timer that has anything to do.
    pub(crate) fn next_timer(&self) -> Option<Nanos> {
        if self.core.read_only.is_some() {
            return None;
        }
        // A check-point at work sets the time of the next one when it ends.
        let is_due = self.checkpoints.is_idle() && !self.checkpoints.is_wanted && self.core.is_changed();
        let checkpoint = is_due.then_some(self.checkpoint_at);
        // A look that found no room for the oldest page finds none before something happens.
        let expire = (self.core.dirty_pages > 0 && !self.looked_in_vain).then_some(self.expire_at);
        let clean = self.can_clean_in_background().then_some(self.clean_at);
        checkpoint.into_iter().chain(expire).chain(clean).filter(|at| *at < Nanos::MAX).min()
    }

    /// Whether a segment would be cleaned while no call comes: a quarter of the segments or less is free. If not, no timer is set for it:
    /// who waits for nothing else would wait for ever.
    fn can_clean_in_background(&self) -> bool {
        self.tasks.is_empty()
            && self.core.cleaning.is_none()
            && self.moved.is_empty()
            && !self.has_no_victim
            && self.core.free_segments() < self.core.superblock.segments / 4
            && !self.cleans_in_vain()
            && self.core.space.all().any(|(segment, one)| {
                matches!(one.state, State::Sealed(log) if log < 6)
                    && one.valid > 0
                    && one.valid < self.core.superblock.data_blocks() * 3 / 4
                    && !self.core.cleaned.contains(&segment)
            })
    }

    /// The next look for old dirty pages that can find one: whole periods from now. Pages that become dirty later expire later.
    fn next_look(&self) -> Nanos {
        let Options { dirty_period, dirty_expiry, .. } = self.core.options;
        let oldest = self.core.dirty_files.first().map(|(since, _)| since.0.saturating_add(dirty_expiry.0));
        let wait = oldest.unwrap_or(0).saturating_sub(self.core.now.0);
        let periods = wait.div_ceil(dirty_period.0.max(1)).max(1);
        self.after(Nanos(dirty_period.0.saturating_mul(periods)))
    }

    /// Where nothing is dirty, the next look is in the next period again: the page that it was put off for is written.
    pub(crate) fn look_in_next_period(&mut self) {
        let (now, period) = (self.core.now.0, self.core.options.dirty_period.0);
        if self.core.dirty_pages == 0 && period > 0 && self.expire_at < Nanos::MAX && self.expire_at.0 > now + period {
            self.expire_at = Nanos(now + (self.expire_at.0 - now) % period);
        }
    }

    /// Something has happened: the next look may send pages. It is a whole number of periods behind the last one.
    pub(crate) fn look_again(&mut self) {
        if std::mem::take(&mut self.looked_in_vain) {
            self.expire_at = periods::behind(self.expire_at, self.core.now, self.core.options.dirty_period);
        }
    }

    /// The time of a timer is there.
    pub(crate) fn run_timers(&mut self) {
        let now = self.core.now;
        if now >= self.checkpoint_at {
            self.checkpoints.is_wanted |= self.core.is_changed();
            self.checkpoint_at = self.after(self.core.options.checkpoint_period);
        }
        if now >= self.expire_at {
            let expiry = self.core.options.dirty_expiry.0;
            self.expired = now.0.checked_sub(expiry).map(Nanos);
            self.expire_at = self.next_look();
        }
        if now >= self.clean_at {
            self.clean_in_background = self.can_clean_in_background();
            self.clean_at = self.after(self.core.options.cleaning_period);
        }
    }
}

//! Timers: commits, and the age of dirty pages and of committed blocks that are not at their places.

use ssdlab_base::Nanos;

use super::Journaling;
use crate::config::Options;
use crate::periods;

impl Journaling {
    /// The time of a period from now.
    fn after(&self, period: Nanos) -> Nanos {
        periods::after(self.core.now, period)
    }

    pub(super) fn begin_timers(&mut self) {
        (self.expired, self.home_expired) = (None, None);
        self.commit_at = Nanos::MAX;
        self.expire_at = self.after(self.core.options.dirty_period);
        self.set_commit_timer();
    }

    /// A transaction is committed at most so long after it began.
    pub(super) fn set_commit_timer(&mut self) {
        if self.commit_at == Nanos::MAX && self.core.is_changed() {
            self.commit_at = self.after(self.core.options.checkpoint_period);
        }
    }

    /// When the oldest became so of the dirty pages, and of the committed blocks, for which the next look may do something: a look is not
    /// repeated that still has to be made, or found nothing that could be sent.
    fn oldest(&self) -> Option<Nanos> {
        let may_send = self.expired.is_none() && !self.looked_in_vain;
        let page = self.core.dirty_files.first().filter(|_| may_send).map(|(since, _)| *since);
        let home = self.core.homes.oldest().filter(|_| self.home_expired.is_none());
        page.into_iter().chain(home).min()
    }

    /// Something has happened: the next look may send pages. It is a whole number of periods behind the last one.
    pub(super) fn look_again(&mut self) {
        if std::mem::take(&mut self.looked_in_vain) {
            self.expire_at = periods::behind(self.expire_at, self.core.now, self.core.options.dirty_period);
        }
    }

    /// The time of the next timer that has anything to do.
    pub(super) fn next_timer(&self) -> Option<Nanos> {
        if self.core.read_only.is_some() {
            return None;
        }
        let is_due = self.commit.is_idle() && !self.commit.is_wanted && self.core.is_changed();
        let commit = is_due.then_some(self.commit_at);
        let expire = self.oldest().is_some().then_some(self.expire_at);
        commit.into_iter().chain(expire).filter(|at| *at < Nanos::MAX).min()
    }

    pub(super) fn run_timers(&mut self) {
        let now = self.core.now;
        if now >= self.commit_at {
            self.commit.is_wanted |= self.core.is_changed();
            self.commit_at = Nanos::MAX;
        }
        if now >= self.expire_at {
            let Options { dirty_period, dirty_expiry, .. } = self.core.options;
            let oldest = self.oldest().map(|since| since.0.saturating_add(dirty_expiry.0));
            self.expired = now.0.checked_sub(dirty_expiry.0).map(Nanos);
            self.home_expired = self.expired;
            // The next look that can find anything: whole periods from now.
            let wait = oldest.unwrap_or(0).saturating_sub(now.0);
            let periods = wait.div_ceil(dirty_period.0.max(1)).max(1);
            self.expire_at = self.after(Nanos(dirty_period.0.saturating_mul(periods)));
        }
    }
}

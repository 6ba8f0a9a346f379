//! When a job sends: rates, pauses and flushes.

use ssdlab_base::Nanos;

use super::super::mode::{Kind, READ, WRITE};
use super::{JobRun, Pause, Step};
use crate::draw::unit;

impl JobRun {
    /// Whether `fsync` asks for a flush. As fio, a pass that ends with its bytes leaves it to the next one.
    pub(super) fn is_flush_due(&self) -> bool {
        let (every, writes) = (self.plan.settings.fsync, self.issued[WRITE]);
        let is_over = self.behind_flush.is_none() && self.plan.zones.is_none() && self.is_counted_out();
        every > 0 && writes > self.flushed_writes && writes.is_multiple_of(every) && !is_over
    }

    /// Starts, keeps or ends a pause; `None` when there is nothing to wait for.
    pub(super) fn think(&mut self, now: Nanos) -> Option<Step> {
        if self.plan.settings.think == Nanos::ZERO {
            return None;
        }
        let job = self.plan.settings.clone();
        if self.sent_since_think && self.pause == Pause::None {
            self.sent_since_think = false;
            let count = if job.think_counts_issued { self.issued.iter().sum() } else { self.completed };
            let timed = job.think_io_time > Nanos::ZERO;
            let long_enough = timed && now.since(self.last_think) >= job.think_io_time + job.think;
            // With a time given and no count, only the time counts.
            let by_count = !timed || job.think_blocks.is_some();
            if long_enough || by_count && count >= self.think_mark.saturating_add(job.think_blocks.unwrap_or(1)) {
                self.think_mark = count;
                self.last_think = now;
                self.pause = Pause::Drain;
            }
        }
        if self.pause == Pause::Drain {
            if self.in_flight() > 0 {
                return Some(Step::Blocked);
            }
            self.pause = Pause::Until(Nanos(now.0.saturating_add(job.think.0)));
        }
        if let Pause::Until(end) = self.pause {
            if end > now {
                return Some(Step::Sleep(Nanos(end.0.min(self.deadline.0))));
            }
            self.pause = Pause::None;
        }
        None
    }

    /// When the rate lets the next transfer in `direction` go.
    fn due(&self, direction: usize) -> Nanos {
        let rate = self.plan.rate[direction];
        if rate == 0 {
            return Nanos::ZERO;
        }
        if self.plan.settings.poisson {
            return self.poisson_next[direction];
        }
        let span = u128::from(self.issued_bytes[direction]) * 1_000_000_000 / u128::from(rate);
        Nanos(self.started.0.saturating_add(u64::try_from(span).unwrap_or(u64::MAX)))
    }

    pub(super) fn draw_poisson(&mut self, direction: usize) {
        let mean = 1e9 * self.plan.settings.sizes[direction].min() as f64 / self.plan.rate[direction] as f64;
        // 1 - u is never 0, so the logarithm is finite; a float too large for u64 saturates.
        let gap = (-libm::log(1.0 - unit(&mut self.rng)) * mean) as u64;
        self.poisson_next[direction] = Nanos(self.poisson_next[direction].0.saturating_add(gap));
    }

    /// The direction to take, which in a mix may be the other one if that one is behind, and when.
    pub(super) fn rated(&self, direction: usize, now: Nanos) -> (usize, Nanos) {
        let due = self.due(direction);
        let job = &self.plan.settings;
        if due <= now || job.mode.kind != Kind::Mixed {
            return (direction, due);
        }
        let other = if direction == READ { WRITE } else { READ };
        let percent = if other == READ { job.read_percent } else { 100 - job.read_percent };
        let other_due = self.due(other);
        if percent > 0 && other_due < due { (other, other_due) } else { (direction, due) }
    }
}

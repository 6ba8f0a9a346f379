//! Suspending: a program or an erase gives way to a host read, and goes on afterwards.

use ssdlab_base::Nanos;

use super::Flash;
use super::operation::NONE;
use super::resources::Phase;
use crate::{DieId, OpKind};

impl Flash {
    #[inline]
    pub(super) fn consider_suspend(&mut self, die: DieId, now: Nanos) {
        if !(self.config.program_suspend || self.config.erase_suspend) {
            return;
        }
        if self.has_single_queue() && !self.may_send_read(die, now) {
            return;
        }
        let state = &self.dies[die.index()];
        if state.phase != Phase::Array || state.suspended != NONE || state.staged != NONE {
            return;
        }
        let host_reads = state.waiting & ((1 << self.geometry.planes_per_die) - 1);
        if !self.issues.is_empty() && self.oldest_ready(die, host_reads).is_none() {
            // The read is not issued yet.
            return;
        }
        let allowed = match self.flights[state.running as usize].submit.kind {
            OpKind::Program => self.config.program_suspend,
            OpKind::Erase => self.config.erase_suspend,
            OpKind::Read | OpKind::Copyback => false,
        };
        let from = now.max(state.array_start);
        let stop = from + self.config.timing.suspend;
        if !allowed || stop >= state.until || state.reads_let_pass >= self.config.suspend_limit {
            return;
        }
        assert!(
            stop > now || self.config.timing.suspend == Nanos::ZERO,
            "die {die} stops at {stop}, in the past of {now}"
        );
        let state = &mut self.dies[die.index()];
        // While it resumes nothing is done, so what is left to do never grows.
        state.remaining = state.remaining.min(state.until - from);
        assert!(state.remaining > Nanos::ZERO, "die {die} suspends what has nothing left to do");
        state.phase = Phase::Suspending;
        state.until = stop;
        self.events.set(die.0, stop);
        if let Some(waits) = &mut self.waits {
            waits.suspends(die, from);
        }
    }

    pub(super) fn resume(&mut self, die: DieId, now: Nanos) {
        let resume = self.config.timing.resume;
        let state = &mut self.dies[die.index()];
        assert_eq!(state.running, NONE, "die {die} resumes when its reads have ended");
        assert!(state.reads_let_pass <= self.config.suspend_limit, "die {die} let {} reads pass", state.reads_let_pass);
        state.running = state.suspended;
        state.suspended = NONE;
        state.phase = Phase::Array;
        state.array_start = now;
        state.until = now + resume + state.remaining;
        let until = state.until;
        let running = state.running;
        let kind = self.flights[running as usize].submit.kind;
        assert!(matches!(kind, OpKind::Program | OpKind::Erase), "die {die} had suspended a {kind:?}");
        self.events.set(die.0, until);
        if self.waits.is_some() {
            let what = self.what(running);
            self.waits.as_mut().into_iter().for_each(|waits| waits.resumes(die, (now, now + resume), what));
        }
        self.edge(die, now, true);
    }
}

//! Operations that the controller's processor issues some time after the controller has decided on them.
//!
//! The controller submits an operation when it decides on it: its place in the queues and its data are settled then. The chips take
//! it up when the processor has issued it, which it does in the order of submission. Until then the operation waits at its place as
//! if it waited for a read. On a drive whose processor takes no time every operation is issued when it is submitted, and
//! nothing of this is kept.

use ssdlab_base::Nanos;

use super::Flash;
use super::operation::{OpId, Submit};
use super::resources::Phase;
use crate::events::EventTree;
use crate::schedule::Class;

/// The bit of [`Flight::waits_for`](super::operation::Flight) of an operation that is not issued.
pub(super) const NOT_ISSUED: u16 = 1 << 15;

impl Flash {
    /// From now on operations may be issued later than they are submitted. Nothing is in flight.
    pub fn expect_delayed_issues(&mut self) {
        assert_eq!(self.in_flight, 0, "operations in flight were issued at once");
        self.events = EventTree::new(self.issue_event_number() as usize + 1);
    }

    /// The number of the event at which the next operation is issued.
    fn issue_event_number(&self) -> u32 {
        (self.dies.len() + self.channels.len()) as u32 + 1
    }

    /// Takes an operation into its die's queue, as [`Flash::submit`]; the processor issues it at `at`, after those
    /// that were submitted before.
    ///
    /// # Panics
    /// Without [`Flash::expect_delayed_issues`], or if `at` is before `now` or before the issue of an earlier operation.
    pub fn submit_issued_at(&mut self, now: Nanos, submit: Submit, at: Nanos) -> OpId {
        assert!(at >= now, "an operation is submitted at {now}, and issued at {at}");
        if at == now && self.issues.is_empty() {
            return self.submit(now, submit);
        }
        let last = self.issues.back().map_or(at, |(last, _)| *last);
        assert!(at >= last, "an operation is issued at {at}, and the one before it at {last}");
        assert_eq!(submit.waits_for & NOT_ISSUED, 0, "an operation waits for {} others", submit.waits_for);
        let op = self.submit(now, Submit { waits_for: submit.waits_for | NOT_ISSUED, ..submit });
        if self.issues.is_empty() {
            self.events.set(self.issue_event_number(), at);
        }
        self.issues.push_back((at, op));
        op
    }

    /// The processor has issued what was due.
    #[cold]
    #[inline(never)]
    pub(super) fn issue_event(&mut self, now: Nanos) {
        while let Some((at, op)) = self.issues.front().copied()
            && at <= now
        {
            self.issues.pop_front();
            let flight = &mut self.flights[op as usize];
            assert!(flight.waits_for & NOT_ISSUED != 0, "operation {op} is issued once");
            flight.waits_for &= !NOT_ISSUED;
            let (is_ready, class) = (flight.waits_for == 0, flight.submit.class);
            if let Some(waits) = &mut self.waits {
                waits.issued(op, now);
            }
            if is_ready {
                self.issued(op, class, now);
            }
        }
        match self.issues.front() {
            Some((at, _)) => self.events.set(self.issue_event_number(), *at),
            None => self.events.clear(self.issue_event_number()),
        }
    }

    /// An operation that waits for nothing any more may be taken up.
    fn issued(&mut self, op: OpId, class: Class, now: Nanos) {
        let die = self.set_ready(op, now);
        let state = &self.dies[die.index()];
        if state.phase == Phase::Idle && state.suspended == super::NONE {
            self.start_next(die, now);
        } else if class == Class::HostRead {
            self.consider_suspend(die, now);
        } else {
            self.stage(die, now);
        }
    }

    /// Power goes: what is not issued never will be.
    pub(super) fn forget_issues(&mut self) {
        if !self.issues.is_empty() {
            self.issues.clear();
            self.events.clear(self.issue_event_number());
        }
    }
}

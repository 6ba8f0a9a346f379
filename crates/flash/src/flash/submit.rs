//! Operations enter their die's queue, and their waits begin.

use ssdlab_base::Nanos;

use super::Flash;
use super::operation::{Flight, NONE, OpId, Submit};
use super::resources::{NOT_READY, Phase};
use super::waits;
use crate::schedule::Class;
use crate::{BlockId, OpKind};

impl Flash {
    /// Takes an operation into its die's queue, and starts it if the die is idle.
    // Inlined, the caller's fields go straight to their cache line: copied from the stack in wider pieces than they were
    // put there in, they would wait for every store on the way.
    #[inline(always)]
    pub fn submit(&mut self, now: Nanos, submit: Submit) -> OpId {
        debug_assert!(self.timed, "untimed operations are executed, not submitted");
        debug_assert!(submit.block.0 < self.geometry.blocks(), "block {} of {}", submit.block, self.geometry.blocks());
        debug_assert!(submit.kind != OpKind::Erase || submit.page == 0, "an erase of page {}", submit.page);
        debug_assert!(
            self.events.next().is_none_or(|at| at >= now),
            "submitted at {now}, after what is to happen at {:?}",
            self.events.next()
        );
        let flight = Flight {
            submit,
            order: self.order,
            queued: now,
            next: NONE,
            then: NONE,
            follower: NONE,
            waits_for: submit.waits_for,
        };
        self.order += 1;
        self.in_flight += 1;
        let op = self.free;
        let op = if op == NONE {
            self.flights.push(flight);
            self.flights.len() as u32 - 1
        } else {
            self.free = self.flights[op as usize].next;
            self.flights[op as usize] = flight;
            op
        };
        self.enqueue(now, op, submit.block, submit.class, submit.waits_for > 0);
        op
    }

    /// Puts the latest operation at the end of its queue.
    fn enqueue(&mut self, now: Nanos, op: OpId, block: BlockId, class: Class, waits: bool) {
        let die = self.die_of(block);
        let plane = self.plane_in_die(block);
        let index = self.queue_index(die, class as usize, plane);
        let queue = &mut self.queues[index];
        debug_assert_eq!(queue.head == NONE, queue.tail == NONE, "queue {index} has a head and a tail, or neither");
        if queue.head == NONE {
            queue.head = op;
            queue.order = if waits { NOT_READY } else { self.order - 1 };
        } else {
            self.flights[queue.tail as usize].next = op;
        }
        let is_first_and_ready = queue.head == op && !waits;
        queue.tail = op;
        if self.is_watched {
            self.note_submitted(op, now);
            if is_first_and_ready {
                self.ready_for_drive(op, die, class as u32 * self.geometry.planes_per_die + plane, now);
            }
        }
        let state = &mut self.dies[die.index()];
        state.waiting |= 1 << (class as u32 * self.geometry.planes_per_die + plane);
        state.queued += 1;
        if state.phase == Phase::Idle {
            if self.joins_planes() {
                // What else is submitted now may join it.
                self.events.set(die.0, now);
            } else {
                self.start_next(die, now);
            }
        } else if class == Class::HostRead {
            if !waits {
                self.consider_suspend(die, now);
            }
        } else {
            self.stage(die, now);
        }
    }

    /// The waits of an operation begin, where they are recorded.
    #[cold]
    #[inline(never)]
    fn note_submitted(&mut self, op: OpId, now: Nanos) {
        let die = self.die_of(self.flights[op as usize].submit.block);
        let (what, channel) = (self.what(op), self.dies[die.index()].channel);
        if let Some(waits) = &mut self.waits {
            waits.submitted(op, (die, channel), what, now);
        }
    }

    /// Tells the waits of every operation of a group something.
    #[cold]
    pub(super) fn note_waits(&mut self, group: OpId, note: impl Fn(&mut waits::Waits, OpId)) {
        let Some(waits) = &mut self.waits else { return };
        let mut op = group;
        while op != NONE {
            note(waits, op);
            op = self.flights[op as usize].next;
        }
    }
}

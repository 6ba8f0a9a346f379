//! One FIFO queue for the whole drive ([`SchedulerKind::SingleFifo`]), as in Application-Managed Flash, Figure 8.
//!
//! Operations are in the queue from the moment they are ready, in the order of their submission. The drive sends one at a
//! time: its die is free for it, and its commands and data-in cross the channel. Until they are across, and as long as the
//! die is busy, everything behind it waits, whatever its channel. Array work and the data of reads overlap as ever.
//!
//! ```text
//!   queue    0  8  1  9      0 and 8 are pages of die 0, 1 and 9 of die 1
//!   die 0    |0 in|0 program ....|8 in|8 program ....|
//!   die 1                             |1 in|1 program ....|9 in|9 program ....|
//! ```
//!
//! Nothing is kept but an event at the end of what is being sent: the rest is in the state of the dies, and looked up. A drive
//! with other schedulers pays a comparison where a die chooses.

use ssdlab_base::Nanos;

use super::Flash;
use super::operation::NONE;
use super::resources::{Die, Phase, Staged};
use crate::{DieId, SchedulerKind};

impl Flash {
    /// Whether the drive has one queue.
    #[inline]
    pub(super) fn has_single_queue(&self) -> bool {
        self.config.scheduler == SchedulerKind::SingleFifo
    }

    /// The number of the queue's event.
    fn queue_event_number(&self) -> u32 {
        (self.dies.len() + self.channels.len()) as u32
    }

    /// The die and queue of the head.
    fn head_of_drive(&self) -> Option<(DieId, u32)> {
        let oldest = |(index, die): (u32, &Die)| {
            let queue = self.oldest_ready(DieId(index), die.waiting)?;
            Some((self.queues[self.queue_index(DieId(index), 0, queue)].order, DieId(index), queue))
        };
        let (_, die, queue) = (0..).zip(&self.dies).filter_map(oldest).min_by_key(|(order, ..)| *order)?;
        Some((die, queue))
    }

    /// Whether something is being sent: it waits for its channel, or is on it.
    fn is_sending(&self, now: Nanos) -> bool {
        self.dies.iter().any(|die| {
            let staged = match die.staged_state {
                Staged::Waiting => true,
                Staged::Transferring { until } => until > now,
            };
            let running = match die.phase {
                Phase::AwaitChannel => true,
                Phase::Array => die.array_start > now,
                Phase::AwaitStaged => die.until > now,
                _ => false,
            };
            running || die.staged != NONE && staged
        })
    }

    /// The queue of this die that the head is in, if the head is this die's and may be sent.
    #[cold]
    #[inline(never)]
    pub(super) fn may_send(&self, die: DieId, now: Nanos) -> Option<u32> {
        let (_, queue) = self.head_of_drive().filter(|(first, _)| *first == die)?;
        (!self.is_sending(now)).then_some(queue)
    }

    /// Whether this die may send a host read now.
    pub(super) fn may_send_read(&self, die: DieId, now: Nanos) -> bool {
        self.may_send(die, now).is_some_and(|queue| queue < self.geometry.planes_per_die)
    }

    /// What is being sent is across at `at`.
    pub(super) fn sent_at(&mut self, at: Nanos) {
        self.events.set(self.queue_event_number(), at);
    }

    /// Something was sent: the head is next, if its die takes it.
    pub(super) fn queue_event(&mut self, now: Nanos) {
        assert!(self.has_single_queue(), "the queue of a drive without one has an event at {now}");
        self.forget_queue_event();
        if self.is_sending(now) {
            return;
        }
        let Some((die, queue)) = self.head_of_drive() else { return };
        match self.dies[die.index()].phase {
            Phase::Idle => {
                assert_eq!(self.dies[die.index()].suspended, NONE, "die {die} is idle, and has suspended something");
                self.start_queue(die, queue, now);
            }
            Phase::Array if queue < self.geometry.planes_per_die => self.consider_suspend(die, now),
            Phase::Array => self.stage(die, now),
            // It asks when it is free.
            _ => {}
        }
    }

    /// Nothing is sent any more.
    pub(super) fn forget_queue_event(&mut self) {
        self.events.clear(self.queue_event_number());
    }

    /// Takes those right behind the group in the queue that may run with it on other planes.
    pub(super) fn join_next_in_queue(&mut self, die: DieId, queue: u32, group: u32) {
        let first = self.flights[group as usize].submit;
        let planes = self.geometry.planes_per_die;
        let (class, mut taken) = (queue / planes, 1_u32 << (queue % planes));
        let mut last = group;
        while let Some((next_die, next)) = self.head_of_drive() {
            let plane = 1 << (next % planes);
            if next_die != die || next / planes != class || taken & plane != 0 {
                return;
            }
            if !self.runs_with(&first, &self.flights[self.head(die, next) as usize].submit) {
                return;
            }
            let op = self.pop(die, next);
            self.flights[last as usize].next = op;
            last = op;
            taken |= plane;
        }
    }
}

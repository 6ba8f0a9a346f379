//! One FIFO queue for the whole drive, under two rules.
//!
//! Operations are in the queue from the moment they are ready, in the order of their submission.
//!
//! [`SchedulerKind::SingleFifo`], as in Application-Managed Flash, Figure 8: the drive sends one at a
//! time. Its die is free for it, and its commands and data-in cross the channel. Until they are across, and as long as the
//! die is busy, everything behind it waits, whatever its channel. Array work and the data of reads overlap as ever.
//!
//! ```text
//!   queue    0  8  1  9      0 and 8 are pages of die 0, 1 and 9 of die 1
//!   die 0    |0 in|0 program ....|8 in|8 program ....|
//!   die 1                             |1 in|1 program ....|9 in|9 program ....|
//! ```
//!
//! [`SchedulerKind::InOrder`], as the flash controller of the OpenSSD Jasmine board: an operation waits in the controller's one
//! waiting room until its bank is idle. The idle bank accepts it, and the next one enters the waiting room, while the first
//! waits for its channel or crosses it. So only a busy bank holds up what is behind, and transfers on several channels overlap.
//!
//! ```text
//!   queue    0  8  1  9      0 and 8 are pages of die 0, 1 and 9 of die 1, on a channel each
//!   die 0    |0 in|0 program ....|8 in|8 program ....|
//!   die 1                        |1 in|1 program ....|9 in|9 program ....|
//! ```
//!
//! The head is kept, and the time at which it is looked at next; the rest is in the state of the dies, and looked up. A drive
//! with other schedulers pays a comparison where a die chooses.
//!
//! [`QueueWaits`] counts what the queue costs: the head's wait, and idle dies whose operations are behind it.

use ssdlab_base::Nanos;

use super::Flash;
use super::operation::{NONE, OpId};
use super::resources::{NOT_READY, Phase, Staged};
use crate::{DieId, SchedulerKind};

/// The operation that came first of all that are ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Head {
    /// Its place in the order of submission.
    order: u64,
    die: DieId,
    /// Its queue in the die.
    queue: u32,
}

/// What the drive's one queue held up, of the operations that were taken from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueWaits {
    /// Time in which the first operation of the queue waited: for its die, or with [`SchedulerKind::SingleFifo`] until what was sent
    /// before it was across.
    pub head_wait: Nanos,
    /// How often an idle die waited for an operation that was ready, because that was not the first of the queue.
    pub held_up: u64,
    /// How long idle dies waited so, summed over dies.
    pub held_up_time: Nanos,
}

/// What is kept to count [`QueueWaits`].
#[derive(Clone, Debug)]
pub(super) struct QueueWatch {
    pub(super) waits: QueueWaits,
    /// Since when the operation that is the head now has been.
    head_since: Nanos,
    /// For each die, since when it has had operations that are ready; `MAX` for one that has none.
    ready_since: Vec<Nanos>,
    /// For each die, the place of its first operation that is ready in the order of submission; `MAX` for one that has none.
    first_ready: Vec<u64>,
}

impl QueueWatch {
    pub(super) fn new(dies: u32) -> QueueWatch {
        QueueWatch {
            waits: QueueWaits::default(),
            head_since: Nanos::ZERO,
            ready_since: vec![Nanos::MAX; dies as usize],
            first_ready: vec![NOT_READY; dies as usize],
        }
    }

    /// Another operation is the head from now on, or none; `waited` if there was one.
    fn head_changes(&mut self, waited: bool, now: Nanos) {
        if waited {
            self.waits.head_wait += now.since(self.head_since);
        }
        self.head_since = now;
    }

    /// Die `die`, whose last work ended at `idle`, takes an operation; `goes_on` if it has more that are ready.
    fn takes(&mut self, die: DieId, idle: Nanos, goes_on: bool, now: Nanos) {
        let ready_since = &mut self.ready_since[die.index()];
        let held_up = now.since(idle.max(*ready_since));
        if !goes_on {
            *ready_since = Nanos::MAX;
        }
        self.waits.held_up += u64::from(held_up > Nanos::ZERO);
        self.waits.held_up_time += held_up;
    }

    /// Nothing is in the queue any more.
    fn empty(&mut self) {
        self.ready_since.fill(Nanos::MAX);
        self.first_ready.fill(NOT_READY);
    }
}

impl Flash {
    /// What the drive's one queue held up, of a drive that has one.
    pub fn queue_waits(&self) -> Option<QueueWaits> {
        self.queue_watch.as_ref().map(|watch| watch.waits)
    }

    /// Whether the drive has one queue.
    #[inline]
    pub(super) fn has_single_queue(&self) -> bool {
        matches!(self.config.scheduler, SchedulerKind::SingleFifo | SchedulerKind::InOrder)
    }

    /// Whether what is sent must be across before the next operation is sent.
    #[inline]
    pub(super) fn sends_one_at_a_time(&self) -> bool {
        self.config.scheduler == SchedulerKind::SingleFifo
    }

    /// The number of the queue's event.
    fn queue_event_number(&self) -> u32 {
        (self.dies.len() + self.channels.len()) as u32
    }

    /// Looks the head up: of the first operations of all dies the oldest.
    fn find_head(&self) -> Option<Head> {
        let first_ready = &self.queue_watch.as_ref()?.first_ready;
        let (order, index) = first_ready.iter().zip(0..).min_by_key(|(order, _)| **order)?;
        let die = DieId(index);
        let queue = self.oldest_ready(die, self.dies[die.index()].waiting)?;
        debug_assert_eq!(
            self.queues[self.queue_index(die, 0, queue)].order,
            *order,
            "the first operation of die {die}"
        );
        Some(Head { order: *order, die, queue })
    }

    /// Operations of a die were taken: another one is its first.
    fn look_for_first(&mut self, die: DieId) {
        let queue = self.oldest_ready(die, self.dies[die.index()].waiting);
        let order = queue.map_or(NOT_READY, |queue| self.queues[self.queue_index(die, 0, queue)].order);
        if let Some(watch) = &mut self.queue_watch {
            watch.first_ready[die.index()] = order;
        }
    }

    /// Operation `op`, the first in `queue` of its die, is ready.
    #[cold]
    #[inline(never)]
    pub(super) fn ready_for_drive(&mut self, op: OpId, die: DieId, queue: u32, now: Nanos) {
        let Some(watch) = &mut self.queue_watch else { return };
        let ready = Head { order: self.flights[op as usize].order, die, queue };
        let ready_since = &mut watch.ready_since[die.index()];
        *ready_since = now.min(*ready_since);
        let first_ready = &mut watch.first_ready[die.index()];
        *first_ready = ready.order.min(*first_ready);
        if self.first.is_none_or(|first| ready < first) {
            watch.head_changes(self.first.is_some(), now);
            self.first = Some(ready);
        }
    }

    /// The head was taken: what is behind it is the head now. Its die is asked at once where the head need not be sent first.
    pub(super) fn head_is_taken(&mut self, by: DieId, now: Nanos) {
        self.look_for_first(by);
        self.first = self.find_head();
        let idle = self.dies[by.index()].until;
        if let Some(watch) = &mut self.queue_watch {
            let goes_on = watch.first_ready[by.index()] != NOT_READY;
            watch.takes(by, idle, goes_on, now);
            watch.head_changes(true, now);
        }
        if self.sends_one_at_a_time() {
            return;
        }
        let Some(Head { die, .. }) = self.first.filter(|first| first.die != by) else { return };
        let may_take = match self.dies[die.index()].phase {
            Phase::Idle => true,
            Phase::Array => self.config.cache_program || self.config.program_suspend || self.config.erase_suspend,
            _ => false,
        };
        if may_take {
            self.look_at_head(now);
        }
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
        let head = self.first.filter(|first| first.die == die)?;
        (!self.sends_one_at_a_time() || !self.is_sending(now)).then_some(head.queue)
    }

    /// Whether this die may send a host read now.
    pub(super) fn may_send_read(&self, die: DieId, now: Nanos) -> bool {
        self.may_send(die, now).is_some_and(|queue| queue < self.geometry.planes_per_die)
    }

    /// The die of the head is asked at `at`: what is being sent is across then, or an idle bank has accepted it.
    pub(super) fn look_at_head(&mut self, at: Nanos) {
        self.events.set(self.queue_event_number(), at);
    }

    /// Something was sent or accepted: the head is next, if its die takes it.
    pub(super) fn queue_event(&mut self, now: Nanos) {
        assert!(self.has_single_queue(), "the queue of a drive without one has an event at {now}");
        self.forget_queue_event();
        if self.sends_one_at_a_time() && self.is_sending(now) {
            return;
        }
        let Some(Head { die, queue, .. }) = self.first else { return };
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

    /// The head is not asked for before something else happens.
    fn forget_queue_event(&mut self) {
        self.events.clear(self.queue_event_number());
    }

    /// What the queue held up is counted from now on.
    pub(super) fn forget_queue_waits(&mut self) {
        self.queue_watch.as_mut().into_iter().for_each(|watch| watch.waits = QueueWaits::default());
    }

    /// Power goes: nothing waits, and nothing is sent.
    pub(super) fn empty_single_queue(&mut self) {
        self.first = None;
        self.queue_watch.as_mut().into_iter().for_each(|watch| watch.empty());
        // Virtual time may start again.
        self.dies.iter_mut().for_each(|die| die.until = Nanos::ZERO);
        self.forget_queue_event();
    }

    /// Takes those right behind the group in the queue that may run with it on other planes.
    pub(super) fn join_next_in_queue(&mut self, die: DieId, queue: u32, group: u32) {
        let first = self.flights[group as usize].submit;
        let planes = self.geometry.planes_per_die;
        let (class, mut taken) = (queue / planes, 1_u32 << (queue % planes));
        let mut last = group;
        self.look_for_first(die);
        while let Some(Head { die: next_die, queue: next, .. }) = self.find_head() {
            let plane = 1 << (next % planes);
            if next_die != die || next / planes != class || taken & plane != 0 {
                return;
            }
            if !self.runs_with(&first, &self.flights[self.head(die, next) as usize].submit) {
                return;
            }
            let op = self.pop(die, next);
            self.look_for_first(die);
            self.flights[last as usize].next = op;
            last = op;
            taken |= plane;
        }
    }
}

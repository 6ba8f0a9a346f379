//! The host's side of the drive: submission queues, arbitration, and the link.
//!
//! NVMe-like: several queues served round robin, each with so many commands in the drive, and a full-duplex link. SATA:
//! one queue of at most 32 on a half-duplex link; a non-queued command (flush, trim, write zeroes) waits until the drive
//! is empty and is then alone in it.

use std::collections::VecDeque;

use ssdlab_base::{Nanos, Op};

use crate::{InterfaceConfig, InterfaceKind};

/// Direction of data on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    ToDrive,
    ToHost,
}

/// A command waiting on the host's side, by slot.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    command: u32,
    queued: bool,
}

/// The interface's state.
pub(crate) struct Interface {
    config: InterfaceConfig,
    /// Fixed cost by class of operation.
    overheads: [Nanos; 4],
    waiting: Vec<VecDeque<Waiting>>,
    in_drive: Vec<u32>,
    total_waiting: u32,
    total_in_drive: u32,
    /// A non-queued command is in the drive.
    exclusive: bool,
    next_queue: usize,
    link_free: [Nanos; 2],
    processor_free: Nanos,
}

impl Interface {
    pub(crate) fn new(config: &InterfaceConfig) -> Interface {
        let queues = config.queues as usize;
        let mut overheads = [config.command_overhead; 4];
        overheads[Op::Read.class()] += config.read_overhead;
        overheads[Op::Write.class()] += config.write_overhead;
        Interface {
            config: config.clone(),
            overheads,
            waiting: vec![VecDeque::new(); queues],
            in_drive: vec![0; queues],
            total_waiting: 0,
            total_in_drive: 0,
            exclusive: false,
            next_queue: 0,
            link_free: [Nanos::ZERO; 2],
            processor_free: Nanos::ZERO,
        }
    }

    /// The submission queue a request's queue number stands for.
    #[inline]
    pub(crate) fn queue_of(&self, queue: u16) -> u16 {
        if self.in_drive.len() == 1 { 0 } else { queue % self.in_drive.len() as u16 }
    }

    fn is_queued(&self, op: Op) -> bool {
        self.config.kind == InterfaceKind::Nvme || matches!(op, Op::Read | Op::Write)
    }

    fn fits(&self, queue: usize, queued: bool) -> bool {
        let alone = queued || self.total_in_drive == 0;
        !self.exclusive && alone && self.in_drive[queue] < self.config.queue_depth
    }

    /// A command arrives: true if it enters the drive at once, else it waits in its queue.
    #[inline]
    pub(crate) fn arrive(&mut self, command: u32, queue: u16, op: Op) -> bool {
        let queued = self.is_queued(op);
        if self.waiting[usize::from(queue)].is_empty() && self.fits(usize::from(queue), queued) {
            self.enter(usize::from(queue), queued);
            return true;
        }
        self.waiting[usize::from(queue)].push_back(Waiting { command, queued });
        self.total_waiting += 1;
        false
    }

    #[inline]
    fn enter(&mut self, queue: usize, queued: bool) {
        debug_assert!(!self.exclusive, "a command of queue {queue} enters beside one that must be alone");
        debug_assert!(
            self.in_drive[queue] < self.config.queue_depth,
            "{} commands of queue {queue} are in the drive, of {}",
            self.in_drive[queue],
            self.config.queue_depth
        );
        debug_assert!(
            queued || self.total_in_drive == 0,
            "a command enters alone beside {} others",
            self.total_in_drive
        );
        self.in_drive[queue] += 1;
        self.total_in_drive += 1;
        self.exclusive = !queued;
    }

    /// A command of `queue` has left the drive.
    #[inline]
    pub(crate) fn leave(&mut self, queue: u16) {
        debug_assert!(
            self.in_drive[usize::from(queue)] > 0,
            "a command of queue {queue} leaves, and none is in the drive"
        );
        debug_assert_eq!(self.in_drive.iter().sum::<u32>(), self.total_in_drive, "the queues and their sum agree");
        debug_assert!(!self.exclusive || self.total_in_drive == 1, "{} commands are alone", self.total_in_drive);
        self.in_drive[usize::from(queue)] -= 1;
        self.total_in_drive -= 1;
        self.exclusive = false;
    }

    /// The next command that may enter, round robin over the queues.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<u32> {
        if self.total_waiting == 0 { None } else { self.next_waiting() }
    }

    fn next_waiting(&mut self) -> Option<u32> {
        debug_assert_eq!(
            self.waiting.iter().map(VecDeque::len).sum::<usize>(),
            self.total_waiting as usize,
            "the commands that wait and their number agree"
        );
        let queues = self.waiting.len();
        for step in 0..queues {
            let queue = (self.next_queue + step) % queues;
            let Some(head) = self.waiting[queue].front().copied() else {
                continue;
            };
            if self.fits(queue, head.queued) {
                self.waiting[queue].pop_front();
                self.total_waiting -= 1;
                self.enter(queue, head.queued);
                self.next_queue = (queue + 1) % queues;
                return Some(head.command);
            }
        }
        None
    }

    /// When `bytes` bytes that are ready at `ready` are across the link.
    #[inline]
    pub(crate) fn transfer(&mut self, ready: Nanos, bytes: u64, direction: Direction) -> Nanos {
        if self.config.bandwidth == 0 || bytes == 0 {
            return ready;
        }
        let lane = usize::from(self.config.kind == InterfaceKind::Nvme && direction == Direction::ToHost);
        let end = self.link_free[lane].max(ready) + self.time_on_link(bytes);
        debug_assert!(
            end >= ready && end >= self.link_free[lane],
            "{bytes} bytes are across at {end}, ready at {ready}"
        );
        self.link_free[lane] = end;
        end
    }

    /// How long `bytes` bytes take the link.
    #[inline]
    pub(crate) fn time_on_link(&self, bytes: u64) -> Nanos {
        if self.config.bandwidth == 0 {
            return Nanos::ZERO;
        }
        Nanos((u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(self.config.bandwidth)) as u64)
    }

    /// Fixed cost of a command before it is dispatched.
    #[inline]
    pub(crate) fn overhead(&self, op: Op) -> Nanos {
        self.overheads[op.class()]
    }

    /// When the processor is done with a command that it has from `ready` on.
    #[inline]
    pub(crate) fn process(&mut self, ready: Nanos) -> Nanos {
        if self.config.processing == Nanos::ZERO {
            return ready;
        }
        self.processor_free = self.processor_free.max(ready) + self.config.processing;
        self.processor_free
    }

    /// How long it works on a command.
    pub(crate) const fn processing(&self) -> Nanos {
        self.config.processing
    }

    /// Virtual time starts again at zero.
    pub(crate) fn restart(&mut self) {
        let (inside, outside) = (self.total_in_drive, self.total_waiting);
        assert_eq!(
            (inside, outside),
            (0, 0),
            "time starts again with {inside} commands in the drive, {outside} waiting"
        );
        self.processor_free = Nanos::ZERO;
        self.link_free = [Nanos::ZERO; 2];
        self.next_queue = 0;
    }
}

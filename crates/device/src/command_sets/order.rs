//! The order in which commands on segments take effect: that of their arrival, where it matters.
//!
//! A later write of a segment waits for the earlier one, a trim for all that came before it, and a read for the writes that it
//! reads: whichever queue brought them, and past stalls.

use std::collections::VecDeque;
use std::ops::Range;

use ssdlab_base::Op;

/// A command that was taken and has not taken effect.
#[derive(Clone, Copy, Debug)]
struct Taken {
    command: u32,
    op: Op,
    /// Sectors.
    first: u64,
    end: u64,
    /// It has come to its dispatch, and waits.
    waits: bool,
}

/// Commands that were taken and have not taken effect.
#[derive(Debug)]
pub(crate) struct Order {
    /// Sectors of a segment.
    segment_sectors: u64,
    /// In order of arrival.
    taken: VecDeque<Taken>,
    /// Those of them that wait.
    waiting: usize,
}

impl Order {
    /// Of segments of so many sectors.
    pub(crate) fn new(segment_sectors: u64) -> Order {
        assert!(segment_sectors > 0, "a segment has sectors");
        Order { segment_sectors, taken: VecDeque::new(), waiting: 0 }
    }

    /// A command was taken.
    pub(crate) fn enter(&mut self, command: u32, op: Op, sectors: Range<u64>) {
        debug_assert!(!sectors.is_empty(), "command {command} has no sectors");
        debug_assert!(self.taken.iter().all(|taken| taken.command != command), "command {command} is taken twice");
        self.taken.push_back(Taken { command, op, first: sectors.start, end: sectors.end, waits: false });
    }

    /// Whether a command that has come to its dispatch has to wait for an earlier one; [`Order::next_unblocked`] says when it
    /// need not any longer.
    pub(crate) fn must_wait(&mut self, command: u32) -> bool {
        let Some(index) = self.index_of(command) else { return false };
        let waits = self.is_behind(index);
        self.set_waits(index, waits);
        waits
    }

    /// A command has taken effect, or never will: its operation and sectors, if it was one of those in order.
    pub(crate) fn leave(&mut self, command: u32) -> Option<(Op, Range<u64>)> {
        let index = self.index_of(command)?;
        self.set_waits(index, false);
        self.taken.remove(index).map(|taken| (taken.op, taken.first..taken.end))
    }

    /// The first command that waits and need not any longer.
    pub(crate) fn next_unblocked(&mut self) -> Option<u32> {
        if self.waiting == 0 {
            return None;
        }
        let mut waiting = (0..self.taken.len()).filter(|index| self.taken[*index].waits);
        let index = waiting.find(|index| !self.is_behind(*index))?;
        debug_assert!(
            self.taken.iter().take(index).all(|taken| taken.op != Op::Trim
                || taken.end <= self.taken[index].first
                || taken.first >= self.taken[index].end),
            "a command passes a trim"
        );
        self.set_waits(index, false);
        Some(self.taken[index].command)
    }

    /// The segments of sectors.
    pub(crate) fn segments_of(&self, sectors: &Range<u64>) -> Range<u64> {
        sectors.start / self.segment_sectors..sectors.end.div_ceil(self.segment_sectors)
    }

    fn index_of(&self, command: u32) -> Option<usize> {
        self.taken.iter().position(|taken| taken.command == command)
    }

    /// The entry at `index` waits, or does not.
    fn set_waits(&mut self, index: usize, waits: bool) {
        let before = std::mem::replace(&mut self.taken[index].waits, waits);
        self.waiting = self.waiting + usize::from(waits) - usize::from(before);
        debug_assert!(self.waiting <= self.taken.len(), "{} of {} commands wait", self.waiting, self.taken.len());
    }

    /// Whether the entry at `index` has to come after an earlier one.
    fn is_behind(&self, index: usize) -> bool {
        let later = self.taken[index];
        let segments = |taken: &Taken| self.segments_of(&(taken.first..taken.end));
        self.taken.iter().take(index).any(|earlier| match (earlier.op, later.op) {
            (Op::Read, Op::Read | Op::Write) => false,
            (_, Op::Read) => earlier.first < later.end && later.first < earlier.end,
            _ => {
                let (a, b) = (segments(earlier), segments(&later));
                a.start < b.end && b.start < a.end
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_a_segment_take_effect_in_the_order_of_their_arrival() {
        let mut order = Order::new(8);
        let all = [
            (0, Op::Write, 0..4),
            (1, Op::Write, 4..8),
            (2, Op::Write, 8..12),
            (3, Op::Read, 0..2),
            (4, Op::Trim, 0..8),
            (5, Op::Read, 16..20),
        ];
        for (command, op, sectors) in all {
            order.enter(command, op, sectors);
        }
        let waits: Vec<bool> = (0..6).map(|command| order.must_wait(command)).collect();
        assert_eq!(waits, [false, true, false, true, true, false], "write 1, read 3 and trim 4 wait for write 0");
        assert_eq!(order.next_unblocked(), None, "write 0 has not taken effect");
        assert_eq!(order.leave(0), Some((Op::Write, 0..4)));
        assert_eq!(order.next_unblocked(), Some(1), "of those that may go the first");
        assert_eq!(order.next_unblocked(), Some(3), "a read waits for what it reads alone");
        assert_eq!(order.next_unblocked(), None, "the trim waits for write 1 and read 3");
        assert_eq!((order.leave(3), order.leave(1)), (Some((Op::Read, 0..2)), Some((Op::Write, 4..8))));
        assert_eq!(order.next_unblocked(), Some(4));
        assert_eq!(order.leave(9), None, "it was never one of them");
        assert_eq!(order.segments_of(&(4..12)), 0..2);
    }
}

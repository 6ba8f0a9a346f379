//! Room in the journal: its blocks are used in turn, and come free from the oldest transaction on.

use std::collections::VecDeque;

use super::format::log::Tail;

/// A transaction in the log.
#[derive(Clone, Copy, Debug)]
struct Kept {
    sequence: u64,
    start: u32,
    blocks: u32,
}

/// The log.
#[derive(Debug)]
pub(crate) struct Log {
    /// Blocks of the journal on the drive, in runs.
    runs: Vec<(u32, u32)>,
    blocks: u32,
    /// Where the next transaction begins, and its number.
    head: u32,
    pub(crate) sequence: u64,
    pub(crate) epoch: u32,
    /// Transactions from the beginning of the log on, as the drive knows it.
    kept: VecDeque<Kept>,
    used: u32,
    /// The superblock of the journal says that the log is empty.
    pub(crate) is_empty: bool,
}

impl Log {
    /// An empty log behind what `tail` says.
    pub(crate) fn new(runs: Vec<(u32, u32)>, tail: Tail) -> Log {
        let blocks = runs.iter().map(|(_, count)| count).sum();
        Log {
            runs,
            blocks,
            head: 1,
            sequence: tail.sequence,
            epoch: tail.epoch.wrapping_add(1),
            kept: VecDeque::new(),
            used: 0,
            is_empty: true,
        }
    }

    /// Blocks for transactions.
    pub(crate) const fn capacity(&self) -> u32 {
        self.blocks - 1
    }

    /// Blocks that can be written.
    pub(crate) const fn free(&self) -> u32 {
        self.capacity() - self.used
    }

    /// Whether no transaction is kept.
    pub(crate) fn has_none(&self) -> bool {
        self.kept.is_empty()
    }

    /// The block on the drive of one of the journal.
    pub(crate) fn address(&self, index: u32) -> u32 {
        address(&self.runs, index)
    }

    /// Takes room for the next transaction: its number, and its blocks of the journal in their order.
    pub(crate) fn take(&mut self, blocks: u32) -> (u64, Vec<u32>) {
        let (sequence, start) = (self.sequence, self.head);
        self.sequence += 1;
        self.kept.push_back(Kept { sequence, start, blocks });
        self.used += blocks;
        let all: Vec<u32> = (0..blocks).map(|step| (start - 1 + step) % self.capacity() + 1).collect();
        self.head = (start - 1 + blocks) % self.capacity() + 1;
        (sequence, all)
    }

    /// Where the log begins where transactions before `needed` are not needed, and how many of them there are.
    pub(crate) fn tail(&self, needed: u64) -> (Tail, usize) {
        let gone = self.kept.iter().take_while(|kept| kept.sequence < needed).count();
        let first = self.kept.get(gone);
        let tail = Tail {
            start: first.map_or(0, |kept| kept.start),
            sequence: first.map_or(self.sequence, |kept| kept.sequence),
            epoch: self.epoch,
        };
        (tail, gone)
    }

    /// The drive knows that so many transactions are not needed any more.
    pub(crate) fn forget(&mut self, gone: usize) {
        self.used -= self.kept.drain(..gone).map(|kept| kept.blocks).sum::<u32>();
        self.is_empty = self.kept.is_empty();
    }

    /// The number of the transaction with which so many blocks are free, and half of the log.
    pub(crate) fn half(&self, needed: u32) -> u64 {
        let mut blocks = self.free();
        let mut last = 0;
        for kept in &self.kept {
            if blocks >= needed.max(self.capacity() / 2) {
                break;
            }
            (blocks, last) = (blocks + kept.blocks, kept.sequence);
        }
        last
    }
}

/// The block on the drive of block `index` of a journal in these runs.
pub(crate) fn address(runs: &[(u32, u32)], index: u32) -> u32 {
    let mut left = index;
    for (first, count) in runs {
        if left < *count {
            return first + left;
        }
        left -= count;
    }
    unreachable!("the journal has block {index}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_take_blocks_in_turn_and_come_free_in_their_order() {
        let mut log = Log::new(vec![(100, 4), (200, 7)], Tail { start: 0, sequence: 5, epoch: 1 });
        assert_eq!((log.capacity(), log.free(), log.epoch), (10, 10, 2));
        assert_eq!(log.take(4), (5, vec![1, 2, 3, 4]));
        assert_eq!((log.address(3), log.address(4)), (103, 200));
        assert_eq!(log.take(5), (6, vec![5, 6, 7, 8, 9]));
        assert_eq!(log.tail(6), (Tail { start: 5, sequence: 6, epoch: 2 }, 1));
        log.forget(1);
        assert_eq!((log.free(), log.take(3)), (5, (7, vec![10, 1, 2])));
        assert_eq!(log.tail(u64::MAX), (Tail { start: 0, sequence: 8, epoch: 2 }, 2));
        log.forget(2);
        assert_eq!((log.free(), log.take(1)), (10, (8, vec![3])));
    }
}

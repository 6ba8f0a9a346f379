//! The table of dirty blocks: what the cache alone has, in the order in which it was written, and by address.
//!
//! This is all that the host remembers of the cache: which blocks are clean the cache alone knows (FlashTier, section 4.4).

use std::collections::BTreeMap;
use std::ops::Range;

/// No entry.
const NONE: u32 = u32::MAX;

/// A dirty block.
#[derive(Clone, Copy, Debug)]
struct Entry {
    block: u32,
    /// Neighbours in the order of writes: the older one, and the newer one.
    older: u32,
    newer: u32,
    /// Where it is on its way to the disk.
    stage: Stage,
}

/// Where a dirty block is on its way to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The cache alone has it.
    Dirty,
    /// It is to be copied.
    Chosen,
    /// The disk has taken it, and has not flushed it.
    Copied,
    /// It could not be read: no copy is tried again until it is written.
    Unreadable,
}

/// The table.
#[derive(Debug)]
pub(super) struct DirtyTable {
    by_block: BTreeMap<u32, u32>,
    entries: Vec<Entry>,
    free: Vec<u32>,
    oldest: u32,
    newest: u32,
}

impl DirtyTable {
    pub(super) const fn new() -> DirtyTable {
        DirtyTable { by_block: BTreeMap::new(), entries: Vec::new(), free: Vec::new(), oldest: NONE, newest: NONE }
    }

    pub(super) fn len(&self) -> usize {
        self.by_block.len()
    }

    pub(super) fn has(&self, block: u32) -> bool {
        self.by_block.contains_key(&block)
    }

    pub(super) fn has_any(&self, blocks: Range<u32>) -> bool {
        self.next(blocks).is_some()
    }

    /// The first dirty block of some.
    pub(super) fn next(&self, blocks: Range<u32>) -> Option<u32> {
        if blocks.is_empty() { None } else { self.by_block.range(blocks).next().map(|(block, _)| *block) }
    }

    /// The first block from `block` on, which is dirty, that is not.
    pub(super) fn end_of_run(&self, block: u32) -> u32 {
        let run = self.by_block.range(block..).zip(block..).take_while(|((found, _), block)| **found == *block);
        block + run.count() as u32
    }

    fn unlink(&mut self, index: u32) {
        let Entry { older, newer, .. } = self.entries[index as usize];
        match older {
            NONE => self.oldest = newer,
            _ => self.entries[older as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            _ => self.entries[newer as usize].older = older,
        }
    }

    fn link_as_newest(&mut self, index: u32) {
        let before = std::mem::replace(&mut self.newest, index);
        match before {
            NONE => self.oldest = index,
            _ => self.entries[before as usize].newer = index,
        }
        let entry = &mut self.entries[index as usize];
        (entry.older, entry.newer) = (before, NONE);
    }

    /// Blocks are written: the cache alone has them.
    pub(super) fn written(&mut self, blocks: Range<u32>) {
        for block in blocks {
            let index = match self.by_block.get(&block) {
                Some(index) => {
                    let index = *index;
                    self.unlink(index);
                    index
                }
                None => {
                    let entry = Entry { block, older: NONE, newer: NONE, stage: Stage::Dirty };
                    let index = match self.free.pop() {
                        Some(index) => {
                            self.entries[index as usize] = entry;
                            index
                        }
                        None => {
                            self.entries.push(entry);
                            self.entries.len() as u32 - 1
                        }
                    };
                    self.by_block.insert(block, index);
                    index
                }
            };
            self.entries[index as usize].stage = Stage::Dirty;
            self.link_as_newest(index);
        }
    }

    /// The cache has them no more, or the disk has them as well.
    pub(super) fn remove(&mut self, blocks: Range<u32>) {
        while let Some(block) = self.next(blocks.clone()) {
            let index = self.by_block.remove(&block).expect("it was found");
            self.unlink(index);
            self.free.push(index);
        }
    }

    fn set(&mut self, blocks: Range<u32>, stage: impl Fn(Stage) -> Stage) {
        if blocks.is_empty() {
            return;
        }
        for (_, index) in self.by_block.range(blocks) {
            let entry = &mut self.entries[*index as usize];
            entry.stage = stage(entry.stage);
        }
    }

    /// The disk has taken blocks.
    pub(super) fn copied(&mut self, blocks: Range<u32>) {
        self.set(blocks, |_| Stage::Copied);
    }

    /// Blocks cannot be read.
    pub(super) fn unreadable(&mut self, blocks: Range<u32>) {
        self.set(blocks, |_| Stage::Unreadable);
    }

    /// Blocks are not copied after all.
    pub(super) fn not_copied(&mut self, blocks: Range<u32>) {
        self.set(blocks, |stage| if stage == Stage::Unreadable { stage } else { Stage::Dirty });
    }

    /// The first run of blocks of some that the disk has taken as they are.
    pub(super) fn next_copied(&self, blocks: Range<u32>) -> Option<Range<u32>> {
        self.next_at(blocks, Stage::Copied)
    }

    /// The first run of blocks of some that were chosen, and have not changed since.
    pub(super) fn next_chosen(&self, blocks: Range<u32>) -> Option<Range<u32>> {
        self.next_at(blocks, Stage::Chosen)
    }

    fn next_at(&self, blocks: Range<u32>, stage: Stage) -> Option<Range<u32>> {
        if blocks.is_empty() {
            return None;
        }
        let is_there = |index: &u32| self.entries[*index as usize].stage == stage;
        let mut found = self.by_block.range(blocks).filter(|(_, index)| is_there(index)).map(|(block, _)| *block);
        let first = found.next()?;
        let more = found.zip(first + 1..).take_while(|(found, block)| found == block).count();
        Some(first..first + 1 + more as u32)
    }

    /// Chooses runs of at most `longest` blocks that are not on their way, until there are `blocks`: each around the block that was not
    /// written for the longest time. They come in the order of addresses.
    pub(super) fn choose(&mut self, blocks: usize, longest: u32) -> Vec<Range<u32>> {
        let (mut runs, mut count, mut at) = (Vec::new(), 0, self.oldest);
        while at != NONE && count < blocks {
            let Entry { block, newer, stage, .. } = self.entries[at as usize];
            at = newer;
            if stage != Stage::Dirty {
                continue;
            }
            let is_free = |block: u32| {
                self.by_block.get(&block).is_some_and(|index| self.entries[*index as usize].stage == Stage::Dirty)
            };
            let (mut first, mut end) = (block, block + 1);
            while end - first < longest && is_free(end) {
                end += 1;
            }
            while end - first < longest && first > 0 && is_free(first - 1) {
                first -= 1;
            }
            self.set(first..end, |_| Stage::Chosen);
            count += (end - first) as usize;
            runs.push(first..end);
        }
        runs.sort_unstable_by_key(|run| run.start);
        runs
    }

    /// Every dirty run, in the order of addresses.
    #[cfg(test)]
    pub(super) fn runs(&self) -> Vec<Range<u32>> {
        let (mut runs, mut from) = (Vec::new(), 0);
        while let Some(first) = self.next(from..u32::MAX) {
            from = self.end_of_run(first);
            runs.push(first..from);
        }
        runs
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use ssdlab_base::rng;

    use super::*;

    /// Beside a list of dirty blocks in the order of writes, and which of them are copied as they are.
    #[test]
    fn the_table_is_a_list_of_writes() {
        let mut rng = rng(38, "dirty table");
        let (mut table, mut list, mut copied) = (DirtyTable::new(), Vec::<u32>::new(), Vec::<u32>::new());
        let mut chosen = 0;
        for step in 0..20_000 {
            let first = rng.random_range(0..60);
            let blocks = first..first + rng.random_range(1..5);
            match rng.random_range(0..4) {
                0 | 1 => {
                    table.not_copied(blocks.clone());
                    table.written(blocks.clone());
                    list.retain(|block| !blocks.contains(block));
                    copied.retain(|block| !blocks.contains(block));
                    list.extend(blocks);
                }
                2 => {
                    table.remove(blocks.clone());
                    list.retain(|block| !blocks.contains(block));
                    copied.retain(|block| !blocks.contains(block));
                }
                _ => {
                    let runs = table.choose(4, 3);
                    let oldest = list.iter().find(|block| !copied.contains(block));
                    let holds = |run: &Range<u32>| oldest.is_some_and(|block| run.contains(block));
                    assert_eq!(runs.iter().any(holds), oldest.is_some(), "step {step}");
                    assert!(runs.is_sorted_by_key(|run| run.start) && runs.iter().all(|run| run.len() <= 3));
                    for run in runs {
                        chosen += run.len();
                        assert!(
                            run.clone().all(|block| list.contains(&block) && !copied.contains(&block)),
                            "step {step}"
                        );
                        table.copied(run.clone());
                        copied.extend(run);
                    }
                }
            }
            let dirty: Vec<u32> = table.runs().into_iter().flatten().collect();
            let mut expected = list.clone();
            expected.sort_unstable();
            assert_eq!((dirty, table.len()), (expected, list.len()), "step {step}");
            let (mut at, mut found) = (0, Vec::new());
            while let Some(run) = table.next_copied(at..u32::MAX) {
                at = run.end;
                found.extend(run);
            }
            copied.sort_unstable();
            assert_eq!(found, copied, "step {step}");
        }
        assert!(chosen > 1000, "{chosen} blocks were chosen");
    }
}

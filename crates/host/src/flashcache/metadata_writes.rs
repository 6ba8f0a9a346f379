//! Writes of metadata blocks: one of a block at a time, and changes that come meanwhile share the next.

use ssdlab_base::{Op, Request};
use ssdlab_device::Status;

use super::metadata::{ENTRY_WORDS, Entry, SECTOR_WORDS, entry_words};
use super::{CACHE, FlashCache, Purpose, recovery};
use crate::seeded::{LayerBug, seeded};

/// Who waits for a metadata block.
#[derive(Clone, Copy, Debug)]
pub(super) enum Waiter {
    /// A command from above.
    Command(u32),
    /// A cleaning job.
    Job(u32),
}

/// A metadata block that is on its way, or is to be.
#[derive(Debug, Default)]
pub(super) struct MetadataBlock {
    is_in_flight: bool,
    /// Those that the write in flight serves, and those that came after it.
    served: Vec<Waiter>,
    next: Vec<Waiter>,
}

impl FlashCache {
    /// The metadata of slots has changed: `waiter` hears of each block of it that is written; how many there are.
    pub(super) fn write_metadata(&mut self, slots: &[u32], waiter: Waiter) -> u32 {
        let mut blocks: Vec<u32> = slots.iter().map(|slot| slot / self.layout.per_metadata_block).collect();
        blocks.sort_unstable();
        blocks.dedup();
        self.counts.metadata_updates += slots.len() as u64;
        for block in &blocks {
            self.metadata.entry(*block).or_default().next.push(waiter);
            self.stale.insert(*block);
        }
        blocks.len() as u32
    }

    /// Sends the metadata blocks that have changed and are not on their way.
    pub(super) fn send_metadata(&mut self) {
        if self.stale.is_empty() {
            return;
        }
        for block in std::mem::take(&mut self.stale) {
            let state = self.metadata.entry(block).or_default();
            if state.is_in_flight {
                self.stale.insert(block);
                continue;
            }
            state.served = std::mem::take(&mut state.next);
            if self.refuses.is_some() {
                self.metadata_is_over(block);
                continue;
            }
            state.is_in_flight = true;
            let words = self.words_of(block);
            let array = &mut self.io.array;
            let first = self.layout.metadata_sector(block);
            let cells = recovery::cells_of(self.io.cell, &words, |sector, stamp, words| {
                array.device_mut(CACHE).keep_meaning(first + sector, stamp, words);
            });
            self.counts.metadata_writes += 1;
            let fua = self.passes_flushes() && !seeded(LayerBug::MetadataUnforced);
            let request = Request { fua, ..Request::new(Op::Write, first, self.layout.metadata_sectors) };
            self.io.array.send(CACHE, request, &cells, Purpose::Metadata(block));
        }
    }

    /// What a metadata block says of its slots.
    fn words_of(&self, block: u32) -> Vec<u64> {
        let per_block = self.layout.per_metadata_block;
        let slots = block * per_block..((block + 1) * per_block).min(self.layout.slots());
        let entry = |slot: u32| {
            let block = self.sets.block_in(slot)?;
            Some(Entry { block, is_dirty: self.sets.is_dirty(slot) })
        };
        let mut words: Vec<u64> = slots.flat_map(|slot| entry_words(entry(slot))).collect();
        words.resize(self.layout.metadata_sectors as usize * SECTOR_WORDS, 0);
        assert!(words.len() >= per_block as usize * ENTRY_WORDS, "a metadata block holds its entries");
        words
    }

    /// The write of a metadata block has ended.
    pub(super) fn metadata_ended(&mut self, status: Status, block: u32) {
        let state = self.metadata.get_mut(&block).expect("it is on its way");
        state.is_in_flight = false;
        if status == Status::Aborted {
            // The cache lost its power: it is written again, with what has changed since.
            state.next.append(&mut state.served);
            self.stale.insert(block);
            return;
        }
        if status.is_error() {
            self.refuses.get_or_insert(status);
        }
        self.metadata_is_over(block);
    }

    /// A command does not wait for the metadata of its blocks.
    pub(super) fn waits_no_longer(&mut self, slot: u32) {
        let is_other = |waiter: &Waiter| !matches!(waiter, Waiter::Command(other) if *other == slot);
        for state in self.metadata.values_mut() {
            state.next.retain(is_other);
        }
    }

    /// Those that a metadata block served go on, whether it was written or the cache refused it.
    fn metadata_is_over(&mut self, block: u32) {
        let state = self.metadata.get_mut(&block).expect("it was to be written");
        let served = std::mem::take(&mut state.served);
        if state.next.is_empty() {
            self.metadata.remove(&block);
        }
        for waiter in served {
            match waiter {
                Waiter::Command(slot) => {
                    if self.io.command(slot).ends() {
                        let status = self.refuses.unwrap_or(self.io.command(slot).status);
                        self.finish(slot, status);
                    }
                }
                Waiter::Job(job) => self.marked(job),
            }
        }
    }
}

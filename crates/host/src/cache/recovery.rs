//! What a manager does before anything else: at a start, and when a device below it has lost its power under it.
//!
//! ```text
//!   what was begun has ended -> exists, of all blocks -> the table
//!                            -> evict, of clean blocks where the disk may hold another state
//!                            -> flush of both -> the bitmap is clear
//! ```

use std::collections::VecDeque;
use std::ops::Range;

use ssdlab_base::command_sets::cache::{BlockBits, CACHE, EVICT, EXISTS, MOST_BLOCKS};
use ssdlab_base::{Op, Request, SECTOR_BYTES};
use ssdlab_device::Status;

use super::dirty::DirtyTable;
use super::records::{Layout, Record};
use super::{CacheConfig, CacheManager, DISK, DropClean, Kind, LAYER, Purpose, SSC, of_block, of_set};

use crate::caching::{hash, hash_of_names};
use crate::layer::{Array, Ended, Engine, cells_of, read_words};
use crate::layers::Below;
use crate::seeded::{LayerBug, seeded};
use crate::{Device, LayerError};

/// How far it is.
#[derive(Debug)]
enum Step {
    /// What was begun before ends.
    Drain,
    /// The cache is asked which blocks are dirty.
    Scan,
    /// Blocks are dropped, before these.
    Drop(VecDeque<Range<u32>>),
    /// Both devices are flushed: how many flushes have not ended, and whether all went well.
    Flush(u32, bool),
}

/// A recovery.
#[derive(Debug)]
pub(super) struct Recovery {
    step: Step,
    /// It is the end of a host that stops in good order.
    closes: bool,
}

impl CacheManager {
    /// A device below has lost its power, or the layer starts.
    pub(super) fn begin_recovery(&mut self) {
        self.io.abort_unacknowledged();
        self.epoch += 1;
        self.batches += 1;
        // What the devices took from a host before may not be durable.
        self.unflushed.iter_mut().for_each(|unflushed| unflushed.changes += 1);
        self.batch = None;
        for (_, command) in self.io.commands.all_mut() {
            command.state.is_void |= command.state.has_begun || command.state.kind != Kind::FromAbove;
        }
        self.recovery = Some(Recovery { step: Step::Drain, closes: false });
        self.fail_what_waits_for_bits(Status::Aborted);
        self.counts.recoveries += 1;
    }

    /// Goes on; true if it has sent anything, or is over.
    pub(super) fn recover(&mut self) -> bool {
        match &self.recovery {
            Some(Recovery { step: Step::Drain, .. }) if self.io.array.is_idle() => {
                if seeded(LayerBug::DirtyTableKept) && self.table.len() > 0 {
                    self.scan(self.layout.blocks());
                    return true;
                }
                self.table = DirtyTable::new();
                self.scan(0);
                true
            }
            _ => false,
        }
    }

    fn go_on_with(&mut self, step: Step) {
        if let Some(recovery) = &mut self.recovery {
            recovery.step = step;
        }
    }

    fn scan(&mut self, from: u32) {
        let blocks = self.layout.blocks();
        self.go_on_with(Step::Scan);
        if from >= blocks {
            let drops = self.to_be_dropped();
            return self.drop_next(drops);
        }
        let asked = from..blocks.min(from.saturating_add(MOST_BLOCKS));
        let request = of_set(EXISTS, &self.sectors_of(&asked));
        self.io.array.send(SSC, request, &[], Purpose::Recovery(self.epoch));
    }

    /// Clean or absent blocks of regions in which the disk may hold another state.
    fn to_be_dropped(&self) -> VecDeque<Range<u32>> {
        let (mut drops, mut position) = (VecDeque::<Range<u32>>::new(), 0);
        while self.marks()
            && !seeded(LayerBug::CleanKeptAfterCrash)
            && let Some(region) = self.intent.next(position, self.layout.sectors, u64::MAX / 2)
        {
            position = region.end;
            let blocks = self.blocks_of(&region);
            let mut block = blocks.start;
            while block < blocks.end {
                let end = self.table.next(block..blocks.end).unwrap_or(blocks.end);
                match drops.back_mut() {
                    Some(last) if last.end >= block => last.end = last.end.max(end),
                    _ if block < end => drops.push_back(block..end),
                    _ => {}
                }
                block = if end < blocks.end { self.table.end_of_run(end) } else { end };
            }
        }
        drops
    }

    fn drop_next(&mut self, mut drops: VecDeque<Range<u32>>) {
        let Some(blocks) = drops.pop_front() else { return self.flush_both() };
        self.counts.dropped_ranges += 1;
        let request = of_set(EVICT, &self.sectors_of(&blocks));
        self.go_on_with(Step::Drop(drops));
        self.io.array.send(SSC, request, &[], Purpose::Recovery(self.epoch));
    }

    fn flush_both(&mut self) {
        self.go_on_with(Step::Flush(2, true));
        for device in [SSC, DISK] {
            self.io.array.send(device, Request::new(Op::Flush, 0, 0), &[], Purpose::Recovery(self.epoch));
        }
    }

    pub(super) fn recovery_ended(&mut self, part: Ended<Purpose>, epoch: u64) {
        if epoch != self.epoch {
            return;
        }
        let Some(recovery) = &mut self.recovery else { return };
        match std::mem::replace(&mut recovery.step, Step::Drain) {
            Step::Drain => unreachable!("nothing is sent before what was begun has ended"),
            Step::Scan => self.scanned(&part),
            Step::Drop(drops) if part.status == Status::Success => self.drop_next(drops),
            Step::Drop(_) => {
                self.ssc_failed(part.status);
                self.flush_both();
            }
            Step::Flush(left, good) => {
                let good = good && part.status == Status::Success && self.read_only.is_none();
                if part.device == SSC && part.status != Status::Success {
                    self.ssc_failed(part.status);
                }
                self.go_on_with(Step::Flush(left - 1, good));
                if left == 1 {
                    self.recovered(good);
                }
            }
        }
    }

    fn scanned(&mut self, part: &Ended<Purpose>) {
        if self.note_dirty(part) {
            let end = part.request.end();
            self.scan(self.blocks_of(&(part.request.sector..end)).end);
        } else {
            self.flush_both();
        }
    }

    /// Puts the blocks into the table that `exists` calls dirty. A cache that does not say what it has is one that nothing can be written to.
    pub(super) fn note_dirty(&mut self, part: &Ended<Purpose>) -> bool {
        let blocks = self.blocks_of(&(part.request.sector..part.request.end()));
        let bytes = part.answer.as_ref().map_or(&[][..], |answer| &answer.bytes);
        let bits = BlockBits::from_bytes(bytes, blocks.len());
        let (Status::Success, Ok(bits)) = (part.status, bits) else {
            self.read_only.get_or_insert(part.status);
            return false;
        };
        for (block, _) in (blocks.start..).zip(bits.0).filter(|(_, is_dirty)| *is_dirty) {
            self.table.written(block..block + 1);
        }
        true
    }

    /// Both devices hold the same again.
    fn recovered(&mut self, good: bool) {
        let closes = self.recovery.take().is_some_and(|recovery| recovery.closes);
        if !good {
            return;
        }
        self.unflushed.iter_mut().for_each(|unflushed| unflushed.covered = unflushed.changes);
        self.flushed = [self.io.newest(); 2];
        self.since_flush = 0;
        if self.config.drop_clean != DropClean::None {
            self.intent.settle();
        }
        if closes {
            self.intent.close();
        } else if self.config.drop_clean == DropClean::All {
            self.intent.all_differ();
        }
    }

    /// Flushes both devices and clears the bitmap.
    pub(super) fn end_in_order(&mut self) {
        self.recovery = Some(Recovery { step: Step::Drain, closes: true });
        self.flush_both();
        self.come_to_rest();
    }
}

/// What is below a manager.
pub(super) struct Found {
    pub(super) array: Array<()>,
    pub(super) layout: Layout,
    /// Blocks of the cache.
    pub(super) cache_blocks: u64,
    /// The bitmap of the manager before; `None` where there was none, or contents are not kept.
    pub(super) words: Option<Vec<u64>>,
}

/// Looks at a cache and its disk, and writes the record of this start to both.
pub(super) fn find(devices: Vec<Box<dyn Device>>, config: &CacheConfig) -> Result<Found, LayerError> {
    let [ssc, _] = &devices[..] else { return Err(LayerError::NoDevice { layer: LAYER.name }) };
    if ssc.command_set().is_none_or(|set| set.name != CACHE.name) {
        let (layer, sets) = (LAYER.name, CACHE.name.to_string());
        return Err(LayerError::UnknownSet { layer, sets, design: ssc.identify().design });
    }
    let below: Vec<Below> = devices.iter().map(|device| Below::of(&**device)).collect();
    let layout = config.layout(&below)?;
    // It holds less than it addresses.
    let room: u64 = ssc.drives().iter().map(|part| part.device.config().user_bytes).sum();
    let cache_blocks = room / SECTOR_BYTES / layout.per_block;
    let cell = ssc.sector_data_bytes();
    let identity = identity_of(&devices, config.identity);
    let mut array = Array::new(devices);
    if cell == 0 {
        return Ok(Found { array, layout, cache_blocks, words: None });
    }
    let mut record = |device: usize| {
        let words = read_words(&mut array, (LAYER.name, device), layout.record, 1, layout.per_block)?;
        Ok::<_, LayerError>(Record::from_word(words[0]))
    };
    let (words, next) = match (record(SSC)?, record(DISK)?) {
        (None, None) => (None, Record { identity, generation: 0, has_begun: false }),
        (Some(ssc), Some(disk)) if ssc.belongs_to(disk) => (
            Some(read_words(&mut array, (LAYER.name, SSC), layout.bitmap, layout.words, layout.per_block)?),
            disk.next(),
        ),
        (ssc, disk) => {
            let shown = |record: Option<Record>| match record {
                None => "none".to_string(),
                Some(Record { identity, generation, .. }) => format!("{identity:08x}.{generation}"),
            };
            return Err(LayerError::OtherPair { cache: shown(ssc), disk: shown(disk) });
        }
    };
    for device in [SSC, DISK] {
        // What a device that takes no writes has in its RAM is gone with its power: no start counts from there.
        let flushed = array.alone(device, Request::new(Op::Flush, 0, 0), &[], &[])?.status;
        if matches!(flushed, Status::ReadOnly | Status::StorageFull) {
            return Ok(Found { array, layout, cache_blocks, words });
        }
    }
    for (device, has_begun) in [(SSC, true), (DISK, false), (SSC, false)] {
        let request = of_block(Op::Write, &(layout.record..layout.record + layout.per_block));
        let cells = cells_of(Record { has_begun, ..next }.to_word(), cell, layout.per_block);
        match array.alone(device, Request { fua: true, ..request }, &cells, &[])?.status {
            Status::Success => {}
            // What follows does not count a start that this device could not.
            Status::ReadOnly | Status::StorageFull => break,
            status => return Err(LayerError::Unreadable { layer: LAYER.name, device, status }),
        }
    }
    Ok(Found { array, layout, cache_blocks, words })
}

/// A number that pairs of other devices do not have, most likely: of the key `identity`, and of their names and sizes.
fn identity_of(devices: &[Box<dyn Device>], number: u32) -> u32 {
    let of_device = |device: &dyn Device| [hash_of_names(device), device.sectors()];
    let devices = devices.iter().flat_map(|device| of_device(&**device));
    let words: Vec<u64> = [u64::from(number)].into_iter().chain(devices).collect();
    hash(&words) as u32
}

//! RAID-1: every side holds everything, and reads are dealt over the sides.
//!
//! ```text
//!   write  -> overlaps -> region's bit on every side -> every side -> (record of who is in sync) -> answer
//!   read   -> overlaps -> the side in sync with the fewest commands; another one where that fails
//!   flush  -> every side
//! ```
//!
//! A side that loses its power is left behind: reads go to the others, the record on these says so before anything more is
//! answered, and what may differ is copied to it ([`resync`]) region by region of the write-intent bitmap ([`Intent`]). The
//! same happens when the host begins anew over sides that it did not leave at rest: the first side in sync is taken for what
//! is there, and the others are made equal to it. While more than one side is in sync, the power of any one may go and
//! nothing that completed is lost; after that the last one counts as a drive of its own.

mod command;
mod record;
mod resync;

use std::collections::VecDeque;
use std::sync::Arc;

use ssdlab_base::{Nanos, Op, Request, SECTOR_BYTES, format_size};
use ssdlab_device::Status;
use ssdlab_device::description::{Default, DescriptionError, Key, Kind, Section};

use crate::layer::{Array, Ended, Engine, Io, Layer, Turn, cells_of, read_words};
use crate::layers::{Below, LayerConfig, LayerKind};
use crate::seeded::{LayerBug, seeded};
use crate::write_intent::Intent;
use crate::{Device, Identity, LayerError, LayerMetrics, Loss};

use command::State;
use record::{Layout, Record, SIDES_MAX};
use resync::Resync;

/// What the registry knows of it.
pub(crate) const LAYER: LayerKind = LayerKind {
    name: "mirror",
    summary: "RAID-1: every device holds everything; one that is left behind is resynchronised by a write-intent bitmap",
    keys: KEYS,
    devices: (2, SIDES_MAX),
    hands_on: false,
    read,
};

/// Its keys in descriptions.
const KEYS: &[Key] = &[Key::new(
    "region",
    Kind::Size { least: SECTOR_BYTES, most: u64::MAX, step: SECTOR_BYTES },
    Default::number(REGION_BYTES),
    "Bytes that a bit of the write-intent bitmap covers, in whole sectors.",
)];

const REGION_BYTES: u64 = 64 << 20;

/// What a mirror is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MirrorConfig {
    /// Bytes to a bit of the write-intent bitmap; whole sectors.
    pub region_bytes: u64,
}

fn read(keys: &Section<'_>) -> Result<Arc<dyn LayerConfig>, DescriptionError> {
    let region_bytes = match keys.get("region") {
        None => REGION_BYTES,
        Some(size) => match size.size()? {
            bytes if bytes > 0 && bytes.is_multiple_of(SECTOR_BYTES) => bytes,
            _ => return Err(size.expected("whole sectors of 512 bytes, at least one")),
        },
    };
    Ok(Arc::new(MirrorConfig { region_bytes }))
}

impl MirrorConfig {
    fn layout(&self, below: &[Below]) -> Result<Layout, LayerError> {
        let least = below.iter().map(|below| below.sectors).min().unwrap_or(0);
        let unit = below.iter().map(|below| u64::from(below.unit_bytes)).max().unwrap_or(SECTOR_BYTES) / SECTOR_BYTES;
        Layout::new(least, self.region_bytes / SECTOR_BYTES, unit.max(1)).ok_or_else(|| LayerError::TooSmall {
            size: format!("{least} sectors"),
            lacking: "of which its record and bitmap leave nothing".to_string(),
        })
    }
}

impl LayerConfig for MirrorConfig {
    fn places(&self) -> String {
        format!("region {}", format_size(self.region_bytes))
    }

    fn sectors(&self, below: &[Below]) -> Result<u64, LayerError> {
        self.layout(below).map(|layout| layout.sectors)
    }

    fn make(&self, below: Vec<Box<dyn Device>>) -> Result<Box<dyn Device>, LayerError> {
        Ok(Box::new(Mirror::new(below, *self)?))
    }
}

/// What a command below is for.
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    /// A command from above, or a copy.
    Command(u32),
    /// A word of the bitmap.
    Word(usize),
    Record,
    /// The flush at the end of a resynchronisation that began in this epoch.
    LastFlush(u64),
}

/// What it did beside what it was asked for.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    bitmap_writes: u64,
    record_writes: u64,
    read_elsewhere: u64,
    resynced_sectors: u64,
    fell_out_of_sync: u64,
}

/// Every device holds everything.
pub struct Mirror {
    io: Io<Purpose, State>,
    config: MirrorConfig,
    layout: Layout,
    /// Sides that may be read, a bit each; never none.
    in_sync: u64,
    /// Sides that refuse writes, with what each answered first: they are left alone.
    failures: Vec<(usize, Status)>,
    /// The last side in sync refused a record or a word of the bitmap: nothing can be changed any more, since a mirror that
    /// begins anew would not know of it.
    refused: Option<Status>,
    record: Record,
    /// Writes of the record that have not ended, and whether it has changed since they were sent.
    record_left: u32,
    record_stale: bool,
    intent: Intent,
    /// Commands that wait for bits of the bitmap, and, done, for the record.
    for_bits: VecDeque<u32>,
    held: Vec<u32>,
    resync: Option<Resync>,
    /// Of events after which what was copied counts for nothing.
    epoch: u64,
    /// The side that was read last.
    turn: usize,
    counts: Counts,
}

impl Mirror {
    /// A mirror over devices: a new one where none of them has a record, or contents are not kept; else the one that the
    /// records tell of, with a device that has none as one that was left behind.
    ///
    /// # Errors
    /// The devices are too small, or what a mirror keeps cannot be read.
    pub fn new(devices: Vec<Box<dyn Device>>, config: MirrorConfig) -> Result<Mirror, LayerError> {
        let below: Vec<Below> = devices.iter().map(|device| Below::of(&**device)).collect();
        let layout = config.layout(&below)?;
        let cell = devices.first().map_or(0, |device| device.sector_data_bytes());
        let mut array = Array::new(devices);
        let sides = array.len();
        let everyone = (1 << sides) - 1;
        let mut record = Record { generation: 0, in_sync: everyone, sides };
        let (mut known, mut found) = (everyone, None);
        if cell > 0 {
            let mut words = Vec::new();
            for side in 0..sides {
                words.push(read_words(&mut array, (LAYER.name, side), layout.record, 1, 1)?[0]);
            }
            let records: Vec<_> = words.iter().map(|word| Record::from_word(*word, sides)).collect();
            if let Some(newest) = records.iter().flatten().max_by_key(|record| record.generation) {
                record = *newest;
                let has = |side: &usize| records[*side].is_some();
                known = (0..sides).filter(has).fold(0, |mask, side| mask | 1 << side);
                let first = (record.in_sync & known).trailing_zeros() as usize;
                if first >= sides {
                    return Err(LayerError::NoneInSync);
                }
                let words = layout.regions.div_ceil(64);
                found = Some(read_words(&mut array, (LAYER.name, first), layout.bitmap, words, 1)?);
            }
        }
        let was_there = found.is_some();
        let mut mirror = Mirror {
            intent: Intent::new(layout.region, layout.regions, found),
            io: Io::new(array, &LAYER),
            config,
            layout,
            in_sync: record.in_sync & known,
            failures: Vec::new(),
            refused: None,
            record: Record { generation: record.generation.wrapping_add(1), ..record },
            record_left: 0,
            record_stale: true,
            for_bits: VecDeque::new(),
            held: Vec::new(),
            resync: None,
            epoch: 0,
            turn: 0,
            counts: Counts::default(),
        };
        if known != everyone {
            mirror.intent.all_differ();
        }
        if was_there && (mirror.intent.any() || mirror.in_sync != everyone) {
            // The first is taken for what is there; the record names it already, with those that may be as good.
            mirror.in_sync &= mirror.in_sync.wrapping_neg();
            mirror.record.in_sync &= known;
            mirror.resync = Some(Resync::new());
        }
        mirror.settle();
        mirror.counts = Counts::default();
        Ok(mirror)
    }

    fn sides(&self) -> usize {
        self.io.array.len()
    }

    /// Sides that refuse writes, a bit each.
    fn failed(&self) -> u64 {
        self.failures.iter().fold(0, |failed, (side, _)| failed | 1 << side)
    }

    /// Sides that take writes.
    fn writable(&self) -> impl Iterator<Item = usize> + use<> {
        let failed = self.failed();
        (0..self.io.array.len()).filter(move |side| failed >> side & 1 == 0)
    }

    /// Waits until the record and the bitmap are on every side.
    fn settle(&mut self) {
        self.work();
        while (self.is_record_unwritten() || !self.intent.is_at_rest()) && self.step(Nanos::MAX) {}
        self.io.array.advance(self.io.array.now());
    }

    /// Whether the record has changed, and is not on all sides yet.
    const fn is_record_unwritten(&self) -> bool {
        self.record_stale || self.record_left > 0
    }

    /// Writes the record where it has changed.
    fn send_record(&mut self) -> bool {
        if !self.record_stale || self.record_left > 0 {
            return false;
        }
        self.record_stale = false;
        let cells = cells_of(self.record.to_word(), self.io.cell, 1);
        for side in self.writable() {
            self.record_left += 1;
            self.counts.record_writes += 1;
            let request = Request { fua: true, ..Request::new(Op::Write, self.layout.record, 1) };
            self.io.array.send(side, request, &cells, Purpose::Record);
        }
        self.record_left > 0
    }

    fn record_ended(&mut self, part: &Ended<Purpose>) {
        if part.status == Status::Aborted {
            let cells = cells_of(self.record.to_word(), self.io.cell, 1);
            // What has changed since is sent as soon as this has ended.
            self.io.array.send(part.device, part.request, &cells, Purpose::Record);
            return;
        }
        self.record_left -= 1;
        self.was_told(part);
        if !self.is_record_unwritten() {
            for slot in std::mem::take(&mut self.held) {
                self.answer(slot);
            }
        }
    }

    /// Sends words of the bitmap that have changed.
    fn send_words(&mut self) -> bool {
        let sides = self.writable().count() as u32;
        let (mut next, mut any) = (0, false);
        while sides > 0
            && let Some((index, word, at_once)) = self.intent.send(next, sides)
        {
            let cells = cells_of(word, self.io.cell, 1);
            let request = Request::new(Op::Write, self.layout.bitmap + index as u64, 1);
            for side in self.writable() {
                self.counts.bitmap_writes += 1;
                self.io.array.send(side, Request { fua: at_once, ..request }, &cells, Purpose::Word(index));
            }
            (next, any) = (index + 1, true);
        }
        any
    }

    fn word_ended(&mut self, part: &Ended<Purpose>, index: usize) {
        if part.status == Status::Aborted {
            let cells = cells_of(self.intent.word(index), self.io.cell, 1);
            // What it clears may be lost, what it adds may not.
            self.io.array.send(part.device, Request { fua: true, ..part.request }, &cells, part.purpose);
            return;
        }
        self.was_told(part);
        if self.intent.written(index) {
            let mut still = VecDeque::new();
            for slot in std::mem::take(&mut self.for_bits) {
                if self.is_durable(slot) { self.send_change(slot) } else { still.push_back(slot) }
            }
            still.append(&mut self.for_bits);
            self.for_bits = still;
        }
    }

    /// A side took a record or a word of the bitmap, or refused it.
    fn was_told(&mut self, part: &Ended<Purpose>) {
        let (side, status) = (part.device, part.status);
        if status != Status::Success && !self.give_up(side, status) && self.in_sync >> side & 1 == 1 {
            self.refused = Some(status);
        }
    }

    /// A side that refuses writes with `status` is left alone, as long as there is another one.
    fn give_up(&mut self, side: usize, status: Status) -> bool {
        let others = self.in_sync & !(1 << side);
        if others == 0 {
            return false;
        }
        if self.failed() >> side & 1 == 0 {
            self.failures.push((side, status));
            self.put_out_of_sync(side);
        }
        true
    }

    /// What is not as it should be, a sentence each.
    fn degraded(&self) -> Vec<String> {
        let name = |side: usize| {
            let names = self.io.array.device(side).member_names();
            names.join(" and ")
        };
        let why = |status: Status| match status {
            Status::StorageFull => "there was no space for its image".to_string(),
            Status::ReadOnly => "it became read-only".to_string(),
            other => format!("it answered a write with {other:?}"),
        };
        let dropped = |(side, status): &(usize, Status)| format!("side {} was dropped: {}", name(*side), why(*status));
        let is_stuck = self.resync.as_ref().is_some_and(Resync::is_stuck);
        let behind = |side: usize| {
            let what =
                if is_stuck { "a region of the others cannot be read" } else { "regions are being copied to it" };
            format!("side {} is behind: {what}", name(side))
        };
        let refused = self
            .refused
            .map(|status| format!("it takes no writes: the last side in sync refused one, since {}", why(status)));
        let is_behind = |side: &usize| self.in_sync >> side & 1 == 0;
        self.failures.iter().map(dropped).chain(self.writable().filter(is_behind).map(behind)).chain(refused).collect()
    }

    /// A side is no longer in sync; there is another one that is.
    fn put_out_of_sync(&mut self, side: usize) {
        self.in_sync &= !(1 << side);
        self.counts.fell_out_of_sync += 1;
        self.record = Record {
            generation: self.record.generation.wrapping_add(1),
            in_sync: self.in_sync,
            sides: self.record.sides,
        };
        self.record_stale = !seeded(LayerBug::RecordForgotten);
        self.resync_anew();
    }
}

impl Layer for Mirror {
    const KIND: LayerKind = LAYER;
    type Purpose = Purpose;
    type State = State;

    fn io(&self) -> &Io<Purpose, State> {
        &self.io
    }

    fn io_mut(&mut self) -> &mut Io<Purpose, State> {
        &mut self.io
    }

    fn capacity(&self) -> u64 {
        self.layout.sectors
    }

    fn start(&mut self, slot: u32, _: Turn) {
        self.begin(slot);
    }

    fn ended(&mut self, part: Ended<Purpose>) {
        match part.purpose {
            Purpose::Command(slot) => self.part_ended(part, slot),
            Purpose::Word(index) => self.word_ended(&part, index),
            Purpose::Record => self.record_ended(&part),
            Purpose::LastFlush(epoch) => self.last_flush_ended(&part, epoch),
        }
    }

    fn proceed(&mut self) -> bool {
        self.start_ready();
        self.send_record() | self.send_words() | self.go_on_resyncing()
    }

    fn power_lost(&mut self, side: usize, loss: Loss) -> Loss {
        if loss == Loss::Nothing {
            return loss;
        }
        let is_last = self.in_sync & !(1 << side) == 0;
        if is_last {
            self.last_was_cut(side);
        } else if self.in_sync >> side & 1 == 1 {
            self.put_out_of_sync(side);
        } else {
            self.resync_anew();
        }
        if is_last { Loss::Unflushed } else { Loss::Nothing }
    }

    /// The bitmap is cleared, so that the next start has nothing to copy. Sides that are behind stay so: they are made equal
    /// after it.
    fn closes(&mut self) {
        if self.in_sync.count_ones() as usize == self.sides() {
            self.intent.close();
            self.come_to_rest();
        }
    }

    fn mapped(&self, sector: u64, end: u64) -> (bool, u64) {
        let side = self.in_sync.trailing_zeros() as usize;
        self.io.array.device(side).mapped_run(sector, end.min(self.layout.sectors))
    }

    fn expect(&mut self, requests: &[Request]) {
        let writes = requests.iter().filter(|request| request.op == Op::Write && request.end() <= self.layout.sectors);
        let writes: Vec<Request> = writes.copied().collect();
        self.io.array.devices_mut().for_each(|side| side.prefetch(&writes));
    }

    /// Until the record is on the sides, the host alone knows which of them has lost completed writes.
    fn identity(&self, below: Identity) -> Identity {
        Identity { has_host_cache: below.has_host_cache || self.is_record_unwritten(), ..below }
    }

    fn metrics(&self) -> LayerMetrics {
        let Counts { bitmap_writes, record_writes, read_elsewhere, resynced_sectors, fell_out_of_sync } = self.counts;
        let figures = [
            ("bitmap_writes", bitmap_writes),
            ("fell_out_of_sync", fell_out_of_sync),
            ("read_elsewhere", read_elsewhere),
            ("record_writes", record_writes),
            ("resynced_sectors", resynced_sectors),
            ("sides_in_sync", u64::from(self.in_sync.count_ones())),
            ("waited_for_overlaps", self.io.waited_for_overlaps),
        ];
        LayerMetrics {
            configuration: [
                ("devices".to_string(), self.sides().to_string()),
                ("region".to_string(), format_size(self.config.region_bytes)),
            ]
            .into(),
            figures: figures.map(|(name, count)| (name.to_string(), count as f64)).into(),
            degraded: self.degraded(),
            is_resyncing: self.resync.as_ref().is_some_and(|resync| !resync.is_stuck()),
            ..LayerMetrics::default()
        }
    }

    fn reset_counts(&mut self) {
        self.counts = Counts::default();
    }
}

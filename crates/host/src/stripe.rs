//! RAID-0: sectors dealt over devices in chunks.
//!
//! ```text
//!   chunk of the stripe   0 1 2 3 4 5 6 7      device 0: 0 3 6
//!                                              device 1: 1 4 7
//!                                              device 2: 2 5
//! ```
//!
//! Whatever its length, a request is at most one contiguous range of each device, since the chunks of a device follow one
//! another. Commands that overlap take effect in the order in which they came; a flush goes to every device. The stripe
//! keeps nothing: what a device loses with its power is lost, and commands that had a part in it end as aborted.

use ssdlab_base::{Op, Request, SECTOR_BYTES, format_size};
use ssdlab_device::Status;
use ssdlab_device::description::{Default, DescriptionError, Key, Kind, Section};
use std::sync::Arc;

use crate::layer::{Array, Command, Ended, Io, Layer, Turn};
use crate::layers::{Below, LayerConfig, LayerKind};
use crate::seeded::{LayerBug, seeded};
use crate::{Device, LayerError, LayerMetrics, Loss};

/// What the registry knows of it.
pub(crate) const LAYER: LayerKind = LayerKind {
    name: "stripe",
    summary: "RAID-0: sectors dealt over devices in chunks",
    keys: KEYS,
    devices: (1, 64),
    hands_on: false,
    read,
};

/// Its keys in descriptions.
const KEYS: &[Key] = &[Key::new(
    "chunk",
    Kind::Size { least: SECTOR_BYTES, most: u64::MAX, step: SECTOR_BYTES },
    Default::number(CHUNK_BYTES),
    "Bytes that go to one device before the next one, in whole sectors.",
)];

const CHUNK_BYTES: u64 = 64 << 10;

/// What a stripe is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StripeConfig {
    /// Bytes that go to one device before the next one's turn; whole sectors.
    pub chunk_bytes: u64,
}

fn read(keys: &Section<'_>) -> Result<Arc<dyn LayerConfig>, DescriptionError> {
    let chunk_bytes = match keys.get("chunk") {
        None => CHUNK_BYTES,
        Some(size) => match size.size()? {
            bytes if bytes > 0 && bytes.is_multiple_of(SECTOR_BYTES) => bytes,
            _ => return Err(size.expected("whole sectors of 512 bytes, at least one")),
        },
    };
    Ok(Arc::new(StripeConfig { chunk_bytes }))
}

impl LayerConfig for StripeConfig {
    fn places(&self) -> String {
        format!("chunk {}", format_size(self.chunk_bytes))
    }

    fn sectors(&self, below: &[Below]) -> Result<u64, LayerError> {
        let chunk = self.chunk_bytes / SECTOR_BYTES;
        let least = below.iter().map(|below| below.sectors).min().unwrap_or(0);
        match least / chunk * chunk * below.len() as u64 {
            0 => Err(LayerError::TooSmall {
                size: format!("{} bytes", least * SECTOR_BYTES),
                lacking: format!("less than a chunk of {}", format_size(self.chunk_bytes)),
            }),
            sectors => Ok(sectors),
        }
    }

    fn make(&self, below: Vec<Box<dyn Device>>) -> Result<Box<dyn Device>, LayerError> {
        Ok(Box::new(Stripe::new(below, *self)?))
    }
}

/// Sectors dealt over devices.
pub struct Stripe {
    io: Io<u32, ()>,
    config: StripeConfig,
    /// Sectors of a chunk, and of each device that are used.
    chunk: u64,
    sectors: u64,
}

impl Stripe {
    /// A stripe over devices, of which it uses as much as the smallest has.
    ///
    /// # Errors
    /// A device is smaller than a chunk.
    pub fn new(devices: Vec<Box<dyn Device>>, config: StripeConfig) -> Result<Stripe, LayerError> {
        let below: Vec<Below> = devices.iter().map(|device| Below::of(&**device)).collect();
        let sectors = config.sectors(&below)?;
        let chunk = config.chunk_bytes / SECTOR_BYTES;
        Ok(Stripe { io: Io::new(Array::new(devices), &LAYER), config, chunk, sectors })
    }

    /// The range of a device that belongs to `request`: its first sector there and their number. An empty request is one of
    /// the device that has its first sector.
    fn part(&self, request: &Request, device: u64) -> Option<(u64, u64)> {
        let (chunk, devices) = (self.chunk, self.io.array.len() as u64);
        let (first, last) = (request.sector / chunk, request.end().max(request.sector + 1) - 1);
        let last = last / chunk;
        let mine = first + (device + devices - first % devices) % devices;
        if mine > last {
            return None;
        }
        let last_mine = last - (last % devices + devices - device) % devices;
        let start = mine / devices * chunk + if mine == first { request.sector % chunk } else { 0 };
        let end = last_mine / devices * chunk
            + if last_mine == last { (request.end().max(request.sector + 1) - 1) % chunk + 1 } else { chunk };
        Some(if request.sectors == 0 { (start.min(self.sectors / devices), 0) } else { (start, end - start) })
    }

    /// Calls `each` with the places of a device's part in the request and in the part, in sectors, and their number.
    fn pieces(&self, request: &Request, device: u64, mut each: impl FnMut(usize, usize, usize)) {
        let (chunk, devices) = (self.chunk, self.io.array.len() as u64);
        let first = request.sector / chunk;
        let mut mine = first + (device + devices - first % devices) % devices;
        let mut in_part = 0;
        while mine * chunk < request.end() {
            let from = (mine * chunk).max(request.sector);
            let sectors = ((mine + 1) * chunk).min(request.end()) - from;
            each((from - request.sector) as usize, in_part, sectors as usize);
            in_part += sectors as usize;
            mine += devices;
        }
    }

    /// Whether a command that was sent has a part in a device that may be lost with its power.
    fn has_part(&self, command: &Command<()>, device: usize) -> bool {
        let Command { request, left, .. } = command;
        let of_device = || request.sectors > 0 && self.part(request, device as u64).is_some();
        *left > 0 && (request.op == Op::Flush || of_device())
    }
}

impl Layer for Stripe {
    const KIND: LayerKind = LAYER;
    type Purpose = u32;
    type State = ();

    fn io(&self) -> &Io<u32, ()> {
        &self.io
    }

    fn io_mut(&mut self) -> &mut Io<u32, ()> {
        &mut self.io
    }

    fn capacity(&self) -> u64 {
        self.sectors
    }

    /// Sends a command's parts to their devices.
    fn start(&mut self, slot: u32, _: Turn) {
        self.io.take_effect(slot);
        let (cell, request) = (self.io.cell, self.io.command(slot).request);
        let cells = std::mem::take(&mut self.io.command(slot).cells);
        let mut left = 0;
        let mut of_device = Vec::new();
        for device in 0..self.io.array.len() as u64 {
            let part = match request.op {
                Op::Flush if device > 0 && seeded(LayerBug::FlushOfOneDevice) => None,
                Op::Flush => Some((0, 0)),
                _ => self.part(&request, device),
            };
            let Some((sector, sectors)) = part else { continue };
            of_device.clear();
            if !cells.is_empty() {
                of_device.resize(sectors as usize * cell, 0);
                self.pieces(&request, device, |from, to, count| {
                    let (from, to, count) = (from * cell, to * cell, count * cell);
                    of_device[to..to + count].copy_from_slice(&cells[from..from + count]);
                });
            }
            left += 1;
            self.io.array.send(device as usize, Request { sector, sectors, ..request }, &of_device, slot);
        }
        let command = self.io.command(slot);
        command.left = left;
        if request.op == Op::Read && cell > 0 {
            command.cells = vec![0; request.sectors as usize * cell];
        }
    }

    fn ended(&mut self, part: Ended<u32>) {
        let (slot, cell) = (part.purpose, self.io.cell);
        let command = self.io.command(slot);
        let (request, mut to) = (command.request, std::mem::take(&mut command.cells));
        if let Some(cells) = part.cells.filter(|_| !to.is_empty()) {
            self.pieces(&request, part.device as u64, |at, from, count| {
                to[at * cell..(at + count) * cell].copy_from_slice(&cells[from * cell..(from + count) * cell]);
            });
        }
        let command = self.io.command(slot);
        command.cells = to;
        if command.status == Status::Success {
            command.status = part.status;
        }
        command.note_path(part.path);
        if command.ends() {
            let status = command.status;
            self.io.answer(slot, status);
        }
    }

    /// A part that had ended there may be lost: its command must not end well.
    fn power_lost(&mut self, device: usize, loss: Loss) -> Loss {
        if loss == Loss::Unflushed && !seeded(LayerBug::LostPartUnnoticed) {
            let commands = self.io.commands.all();
            let lost: Vec<u32> =
                commands.filter(|(_, command)| self.has_part(command, device)).map(|(slot, _)| slot).collect();
            lost.into_iter().for_each(|slot| self.io.command(slot).status = Status::Aborted);
        }
        loss
    }

    fn mapped(&self, sector: u64, end: u64) -> (bool, u64) {
        let (chunk, devices) = (self.chunk, self.io.array.len() as u64);
        let end = end.min(self.sectors);
        let run = |at: u64| {
            let index = at / chunk;
            let (start, last) = (index / devices * chunk, (end - index * chunk).min(chunk));
            let (mapped, until) =
                self.io.array.device((index % devices) as usize).mapped_run(start + at % chunk, start + last);
            (mapped, index * chunk + (until - start))
        };
        let (kind, mut at) = run(sector);
        while at < end && at.is_multiple_of(chunk) {
            let (mapped, until) = run(at);
            if mapped != kind {
                break;
            }
            at = until;
        }
        (kind, at)
    }

    fn expect(&mut self, requests: &[Request]) {
        for device in 0..self.io.array.len() as u64 {
            let in_range = requests.iter().filter(|request| request.sectors > 0 && request.end() <= self.sectors);
            let parts: Vec<Request> = in_range
                .filter_map(|request| {
                    let (sector, sectors) = self.part(request, device)?;
                    Some(Request { sector, sectors, ..*request })
                })
                .collect();
            self.io.array.device_mut(device as usize).prefetch(&parts);
        }
    }

    fn metrics(&self) -> LayerMetrics {
        LayerMetrics {
            configuration: [
                ("chunk".to_string(), format_size(self.config.chunk_bytes)),
                ("devices".to_string(), self.io.array.len().to_string()),
            ]
            .into(),
            figures: [("waited_for_overlaps".to_string(), self.io.waited_for_overlaps as f64)].into(),
            ..LayerMetrics::default()
        }
    }
}

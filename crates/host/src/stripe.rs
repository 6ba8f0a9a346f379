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

use ssdlab_base::{Nanos, Op, Request, SECTOR_BYTES, format_size};
use ssdlab_device::description::{Default, DescriptionError, Key, Kind, Section};
use ssdlab_device::path::{self, Path};
use ssdlab_device::{Completion, Data, Payload, Status};

use crate::device::Again;
use crate::layer::{Array, Ended, OverArray, Overlaps, Turn, Waits, completion, path_of, turned_away};
use crate::layers::{Below, LayerConfig, LayerKind};
use crate::seeded::{LayerBug, seeded};
use crate::{
    Administration, BlockDevice, Device, Identity, LayerError, LayerMetrics, Loss, Member, Part, PartMut, Power,
    Traffic,
};

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

fn read(keys: &Section<'_>) -> Result<Box<dyn LayerConfig>, DescriptionError> {
    let chunk_bytes = match keys.get("chunk") {
        None => CHUNK_BYTES,
        Some(size) => match size.size()? {
            bytes if bytes > 0 && bytes.is_multiple_of(SECTOR_BYTES) => bytes,
            _ => return Err(size.expected("whole sectors of 512 bytes, at least one")),
        },
    };
    Ok(Box::new(StripeConfig { chunk_bytes }))
}

impl LayerConfig for StripeConfig {
    fn kind(&self) -> &'static str {
        LAYER.name
    }

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

    fn clone_box(&self) -> Box<dyn LayerConfig> {
        Box::new(*self)
    }
}

/// A command from above.
struct Command {
    request: Request,
    number: u64,
    order: u64,
    /// What a write brings, and what a read has brought.
    cells: Vec<u8>,
    /// Devices that it still waits for.
    left: u32,
    status: Status,
    /// Of the part that ended last.
    path: Option<Path>,
    waits: Waits,
}

/// Sectors dealt over devices.
pub struct Stripe {
    array: Array<u64>,
    config: StripeConfig,
    /// Sectors of a chunk, and of each device that are used.
    chunk: u64,
    sectors: u64,
    cell: usize,
    overlaps: Overlaps,
    commands: Vec<Option<Command>>,
    free: Vec<u32>,
    numbers: u64,
    order: u64,
    outstanding: u64,
    waited: u64,
    taken: Traffic,
    completions: Vec<Completion>,
    read_data: Vec<(u32, Vec<u8>)>,
    paths: Vec<Path>,
    ended: Vec<Ended<u64>>,
}

impl Stripe {
    /// A stripe over devices, of which it uses as much as the smallest has.
    ///
    /// # Errors
    /// A device is smaller than a chunk.
    pub fn new(devices: Vec<Box<dyn Device>>, config: StripeConfig) -> Result<Stripe, LayerError> {
        let below: Vec<Below> = devices.iter().map(|device| Below::of(&**device)).collect();
        let sectors = config.sectors(&below)?;
        let cell = devices.first().map_or(0, |device| device.cell_bytes());
        Ok(Stripe {
            array: Array::new(devices).for_layer(false),
            config,
            chunk: config.chunk_bytes / SECTOR_BYTES,
            sectors,
            cell,
            overlaps: Overlaps::default(),
            commands: Vec::new(),
            free: Vec::new(),
            numbers: 0,
            order: 0,
            outstanding: 0,
            waited: 0,
            taken: Traffic::default(),
            completions: Vec::new(),
            read_data: Vec::new(),
            paths: Vec::new(),
            ended: Vec::new(),
        })
    }

    /// The range of a device that belongs to `request`: its first sector there and their number. An empty request is one of
    /// the device that has its first sector.
    fn part(&self, request: &Request, device: u64) -> Option<(u64, u64)> {
        let (chunk, devices) = (self.chunk, self.array.len() as u64);
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
        let (chunk, devices) = (self.chunk, self.array.len() as u64);
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

    /// Sends a command's parts to their devices.
    fn send(&mut self, slot: u32) {
        let command = self.commands[slot as usize].as_mut().expect("the command is there");
        command.order = self.order;
        self.order += 1;
        let request = command.request;
        let cells = std::mem::take(&mut command.cells);
        let mut left = 0;
        let mut of_device = Vec::new();
        for device in 0..self.array.len() as u64 {
            let part = match request.op {
                Op::Flush if device > 0 && seeded(LayerBug::FlushOfOneDevice) => None,
                Op::Flush => Some((0, 0)),
                _ => self.part(&request, device),
            };
            let Some((sector, sectors)) = part else { continue };
            of_device.clear();
            if !cells.is_empty() {
                of_device.resize(sectors as usize * self.cell, 0);
                self.pieces(&request, device, |from, to, count| {
                    let (from, to, count) = (from * self.cell, to * self.cell, count * self.cell);
                    of_device[to..to + count].copy_from_slice(&cells[from..from + count]);
                });
            }
            left += 1;
            self.array.send(device as usize, Request { sector, sectors, ..request }, &of_device, u64::from(slot));
        }
        let command = self.commands[slot as usize].as_mut().expect("the command is there");
        command.left = left;
        if request.op == Op::Read && self.cell > 0 {
            command.cells = vec![0; request.sectors as usize * self.cell];
        }
    }

    fn part_ended(&mut self, part: Ended<u64>) {
        let slot = part.purpose as u32;
        let Some(mut command) = self.commands[slot as usize].take() else { unreachable!("it waits for its parts") };
        if command.status == Status::Success {
            command.status = part.completion.status;
        }
        if let Some(cells) = part.cells.filter(|_| !command.cells.is_empty()) {
            let (cell, to) = (self.cell, &mut command.cells);
            self.pieces(&command.request, part.device as u64, |at, from, count| {
                to[at * cell..(at + count) * cell].copy_from_slice(&cells[from * cell..(from + count) * cell]);
            });
        }
        command.path = part.path.or(command.path);
        command.left -= 1;
        if command.left > 0 {
            self.commands[slot as usize] = Some(command);
            return;
        }
        self.free.push(slot);
        self.overlaps.remove(command.number, &command.request);
        self.answer(command);
    }

    fn answer(&mut self, command: Command) {
        let Command { request, order, cells, status, path, waits, .. } = command;
        self.outstanding -= 1;
        self.taken.add(&request);
        if request.op == Op::Read && status == Status::Success && !cells.is_empty() {
            self.read_data.push((request.tag, cells));
        }
        if self.array.records_paths() {
            self.paths.push(path_of(&request, &waits, path.as_ref(), self.array.now()));
        }
        self.completions.push(completion(&request, status, self.array.now(), order));
    }
}

impl OverArray for Stripe {
    fn array(&mut self) -> &mut Array<u64> {
        &mut self.array
    }

    fn has_answered(&self) -> bool {
        !self.completions.is_empty()
    }

    fn work(&mut self) {
        loop {
            let mut ended = std::mem::take(&mut self.ended);
            self.array.take(&mut ended);
            if ended.is_empty() {
                self.ended = ended;
                return;
            }
            for part in ended.drain(..) {
                self.part_ended(part);
            }
            self.ended = ended;
            while let Some(slot) = self.overlaps.next_ready() {
                self.send(slot);
            }
        }
    }
}

impl BlockDevice for Stripe {
    fn sectors(&self) -> u64 {
        self.sectors
    }

    fn cell_bytes(&self) -> usize {
        self.cell
    }

    fn now(&self) -> Nanos {
        self.array.now()
    }

    fn submit(&mut self, request: &Request, data: Data<'_>) {
        self.run_until(request.at);
        self.outstanding += 1;
        self.numbers += 1;
        if let Some(status) = turned_away(request, self.sectors) {
            self.order += 1;
            self.paths.extend(self.array.records_paths().then(|| Path { request: *request, segments: Vec::new() }));
            self.outstanding -= 1;
            self.taken.add(request);
            self.completions.push(completion(request, status, request.at, self.order - 1));
            return;
        }
        let cells = if self.cell > 0 && request.op == Op::Write { data.cells(request, self.cell) } else { Vec::new() };
        let number = self.numbers;
        let command = Command {
            request: *request,
            number,
            order: 0,
            cells,
            left: 0,
            status: Status::Success,
            path: None,
            waits: Waits::default(),
        };
        let slot = self.free.pop().unwrap_or_else(|| {
            self.commands.push(None);
            self.commands.len() as u32 - 1
        });
        self.commands[slot as usize] = Some(command);
        if self.overlaps.add(number, slot, request) == Turn::Free {
            self.send(slot);
        } else {
            self.waited += 1;
            let wait = self.array.wait(path::Part::LayerOverlap);
            self.commands[slot as usize].as_mut().expect("it has just come").waits.begin_opt(wait);
        }
        self.work();
    }

    fn submit_command(&mut self, request: &Request, payload: Payload<'_>) {
        self.submit(request, payload.data);
    }

    fn prefetch(&mut self, requests: &[Request]) {
        for device in 0..self.array.len() as u64 {
            let in_range = requests.iter().filter(|request| request.sectors > 0 && request.end() <= self.sectors);
            let parts: Vec<Request> = in_range
                .filter_map(|request| {
                    let (sector, sectors) = self.part(request, device)?;
                    Some(Request { sector, sectors, ..*request })
                })
                .collect();
            self.array.device_mut(device as usize).prefetch(&parts);
        }
    }

    fn next_event(&self) -> Option<Nanos> {
        self.array.next_event()
    }

    fn run_until(&mut self, until: Nanos) {
        self.step_until(until);
    }

    fn run_to_completion(&mut self, until: Nanos) -> bool {
        self.step_to_answer(until)
    }

    fn outstanding(&self) -> u64 {
        self.outstanding
    }

    fn completions(&mut self) -> &mut Vec<Completion> {
        &mut self.completions
    }

    fn take_paths(&mut self, to: &mut Vec<Path>) {
        to.append(&mut self.paths);
    }

    fn read_data(&mut self) -> &mut Vec<(u32, Vec<u8>)> {
        &mut self.read_data
    }

    fn mapped_run(&self, sector: u64, end: u64) -> (bool, u64) {
        let (chunk, devices) = (self.chunk, self.array.len() as u64);
        let end = end.min(self.sectors);
        let run = |at: u64| {
            let index = at / chunk;
            let (start, last) = (index / devices * chunk, (end - index * chunk).min(chunk));
            let (mapped, until) =
                self.array.device((index % devices) as usize).mapped_run(start + at % chunk, start + last);
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

    fn order_stride(&self) -> u64 {
        1
    }
}

impl Administration for Stripe {
    fn identify(&self) -> Identity {
        self.array.identify(LAYER.name)
    }

    fn layers(&self) -> Vec<LayerMetrics> {
        let own = LayerMetrics {
            kind: LAYER.name.to_string(),
            configuration: [
                ("chunk".to_string(), format_size(self.config.chunk_bytes)),
                ("devices".to_string(), self.array.len().to_string()),
            ]
            .into(),
            taken: self.taken,
            figures: [("waited_for_overlaps".to_string(), self.waited as f64)].into(),
            ..LayerMetrics::default()
        };
        self.array.layers(own)
    }

    fn set_timed(&mut self, timed: bool) {
        self.array.set_timed(timed);
    }

    fn record_paths(&mut self, on: bool) {
        self.array.record_paths(on);
    }

    fn taken(&self) -> Traffic {
        self.taken
    }

    fn parts(&self) -> Vec<Part<'_>> {
        self.array.parts()
    }

    fn parts_mut(&mut self) -> Vec<PartMut<'_>> {
        self.array.parts_mut()
    }

    fn reset_statistics(&mut self) {
        assert_eq!(self.outstanding, 0, "only an idle stripe can be reset");
        self.array.reset_statistics();
        (self.order, self.waited, self.taken) = (0, 0, Traffic::default());
    }
}

impl Power for Stripe {
    fn cut(&mut self, part: usize, again: &mut Again<'_>) -> Loss {
        let (device, loss) = self.array.cut(part, again);
        if loss == Loss::Unflushed && !seeded(LayerBug::LostPartUnnoticed) {
            // A part that had ended there may be lost: the command must not end well.
            let had_a_part = |request: &Request| request.op == Op::Flush || request.sectors > 0;
            for index in 0..self.commands.len() {
                let Some(command) = self.commands[index].as_ref() else { continue };
                let sent = command.left > 0 && had_a_part(&command.request);
                if sent && (command.request.op == Op::Flush || self.part(&command.request, device as u64).is_some()) {
                    self.commands[index].as_mut().expect("it is there").status = Status::Aborted;
                }
            }
        }
        self.work();
        loss
    }

    fn close(&mut self) {
        self.array.devices_mut().for_each(|device| device.close());
    }

    fn into_members(mut self: Box<Self>) -> Vec<Member> {
        self.array.take_members()
    }
}

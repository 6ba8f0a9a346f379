//! Whether a drive, or a host above it, gives back what was written: every sector written carries a stamp of its own,
//! and every sector that is read is compared with a model that knows nothing of either.
//!
//! ```text
//!   request --stamp--> drive --completions, cells--> held back until all that took effect before --> model of sectors
//! ```
//!
//! The model is an array with a word for each sector of the user capacity, changed by commands in the order in which
//! the drive says they took effect; so a command that completes early waits here for those before it. A stamp is bound
//! to its sector's address, so data of another sector or of an older write shows. Commands that end with an error are
//! not compared: what they left in part may be the old or the new, and either is accepted until it is written again.
//!
//! A drive of the set `cache` may drop what is clean: the model is told by the commands of the set what is clean and what was evicted,
//! and a clean block that was seen to be absent stays so until it is written.

mod expected;

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use ssdlab_base::command_set::{AddressSpace, DataPhase, Role, ZoneAction};
use ssdlab_base::command_sets::cache::{BlockBits, CACHE, CLEAN, EVICT, WRITE_CLEAN};
use ssdlab_base::command_sets::zoned::{Zone, ZoneShape};
use ssdlab_base::{Answer, CommandSet, Event, Nanos, Op, Request, SECTOR_BYTES};
use ssdlab_device::{Completion, Counters, Data, Drive, DriveConfig, Payload, Status, sector_stamp};
use ssdlab_flash::HugeArray;
use ssdlab_host::{Administration, AnswersBelow, BlockDevice, Identity, LayerMetrics, Part, Traffic};

use self::expected::Expected;
use crate::result::Check;

/// The check's stable key.
const NAME: &str = "reads_return_what_was_written";

/// Sectors read at a time when the whole drive is read back.
const READ_BACK_SECTORS: u64 = 2048;

/// A command in the drive.
#[derive(Clone, Copy, Debug)]
struct Sent {
    request: Request,
    stamp: u64,
    effect: Effect,
}

/// What a command does to what its sectors hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// Nothing.
    None,
    /// What its carrier does as block I/O.
    Block,
    /// It writes where its answer says.
    Append,
    /// It writes what the drive may drop.
    WriteClean,
    /// The drive may drop what its sectors hold.
    Clean,
    /// Its sectors hold nothing.
    Evict,
}

impl Effect {
    fn of(request: &Request, set: Option<&CommandSet>) -> Effect {
        let Some(spec) = set.and_then(|set| set.command(request.opcode)) else {
            return if request.opcode.is_block() { Effect::Block } else { Effect::None };
        };
        if set.is_some_and(|set| set.name == CACHE.name) {
            match spec.opcode {
                WRITE_CLEAN => return Effect::WriteClean,
                CLEAN => return Effect::Clean,
                EVICT => return Effect::Evict,
                _ => {}
            }
        }
        match (spec.role, spec.data) {
            (Role::Zone(ZoneAction::Append), _) => Effect::Append,
            // A reset is carried by a trim, and does what one does.
            (Role::Zone(ZoneAction::Reset), _) | (_, DataPhase::Range) => Effect::Block,
            _ => Effect::None,
        }
    }
}

/// A command that has completed, and what it read.
#[derive(Debug)]
struct Ended {
    sent: Sent,
    status: Status,
    cells: Option<Vec<u8>>,
    /// Of a read of the set `cache` that found blocks absent: a bit for each that is.
    absent: Vec<u64>,
}

/// Whether the model knows what each command of a set changes: the range of capacity that the command or its answer names, or
/// nothing.
pub(crate) fn follows(set: &CommandSet) -> bool {
    let is_known =
        |space, data| space == AddressSpace::Logical || (space == AddressSpace::Nothing && data != DataPhase::Range);
    set.commands.iter().all(|command| is_known(command.address, command.data))
}

/// Sends stamps and compares what comes back.
#[derive(Debug)]
pub(crate) struct Verifier {
    /// What every sector must hold.
    sectors: Expected,
    /// Sectors that the drive may drop.
    clean: FxHashSet<u64>,
    /// Sectors of a mapping unit.
    unit_sectors: u64,
    /// What sectors may hold besides, after a command on them failed.
    doubtful: HashMap<u64, Vec<u64>>,
    /// By the tag that the device sees, which is this list's index.
    sent: Vec<Sent>,
    free: Vec<u32>,
    /// Completed, by their place in the order of effect; the steps before have not all completed.
    ended: BTreeMap<u64, Ended>,
    next_step: u64,
    stamp: u64,
    completed: Vec<Completion>,
    /// Answers of commands that completed, for who sent them.
    answers: Vec<Answer>,
    reads: u64,
    compared: u64,
    unreadable: u64,
    wrong: u64,
    /// Where the read-back at the end was interrupted, and the sectors of the device.
    read_back_to: Option<(u64, u64)>,
    /// The first sector that was wrong, as a sentence.
    first_wrong: Option<String>,
}

impl Verifier {
    /// For a fresh drive of so many sectors: all of them read as zeroes.
    pub(crate) fn new(user_sectors: u64) -> Verifier {
        // No drive that fits in memory has more sectors than memory has bytes.
        Verifier::expecting(Expected::All(HugeArray::new(usize::try_from(user_sectors).unwrap_or(usize::MAX))))
    }

    /// For a fresh drive of this configuration.
    pub(crate) fn of(config: &DriveConfig) -> Verifier {
        let verifier = match config.is_sparse() {
            true => Verifier::expecting(Expected::Written(FxHashMap::default())),
            false => Verifier::new(config.address_bytes() / SECTOR_BYTES),
        };
        Verifier { unit_sectors: u64::from(config.ftl.mapping_unit) / SECTOR_BYTES, ..verifier }
    }

    fn expecting(sectors: Expected) -> Verifier {
        Verifier {
            sectors,
            clean: FxHashSet::default(),
            unit_sectors: 1,
            doubtful: HashMap::new(),
            sent: Vec::new(),
            free: Vec::new(),
            ended: BTreeMap::new(),
            next_step: 0,
            stamp: 0,
            completed: Vec::new(),
            answers: Vec::new(),
            reads: 0,
            compared: 0,
            unreadable: 0,
            wrong: 0,
            read_back_to: None,
            first_wrong: None,
        }
    }

    /// Bytes that [`Verifier::of`] takes once all sectors were written; where few of many can be, once flash is full of them.
    pub(crate) fn simulator_bytes(config: &DriveConfig) -> u64 {
        let held = if config.is_sparse() { 2 * config.flash.geometry.bytes() } else { config.address_bytes() };
        HugeArray::<u64>::bytes_of(held / SECTOR_BYTES)
    }

    /// Bytes that a word for each of so many sectors takes once all of them were written.
    pub(crate) fn stack_bytes(sectors: u64) -> u64 {
        HugeArray::<u64>::bytes_of(sectors)
    }

    /// The drive's statistics were reset, and with them its count of commands.
    pub(crate) fn restart(&mut self) {
        self.next_step = 0;
    }

    /// Hands a request to the device, stamped, with its words if it is a command of a set.
    pub(crate) fn submit<D: BlockDevice + ?Sized>(&mut self, device: &mut D, request: &Request, words: &[u64]) {
        self.stamp += 1;
        let effect = Effect::of(request, device.command_set());
        let sent = Sent { request: *request, stamp: self.stamp, effect };
        let tag = match self.free.pop() {
            Some(tag) => {
                self.sent[tag as usize] = sent;
                tag
            }
            None => {
                self.sent.push(sent);
                self.sent.len() as u32 - 1
            }
        };
        let payload = Payload { data: Data::Stamp(self.stamp), words };
        device.submit_command(&Request { tag, ..*request }, payload);
    }

    /// Takes what has completed out of the device, compares what can be compared, and gives the completions with the
    /// tags they were sent with.
    pub(crate) fn collect<D: BlockDevice + ?Sized>(&mut self, device: &mut D) -> &mut Vec<Completion> {
        if !device.completions().is_empty() {
            let mut cells: HashMap<u32, Vec<u8>> = device.read_data().drain(..).collect();
            let mut completions = std::mem::take(device.completions());
            let mut answers = AnswersBelow::take(device);
            for mut completion in completions.drain(..) {
                let mut sent = self.sent[completion.tag as usize];
                let mut absent = Vec::new();
                if let Some(answer) = answers.of(&completion) {
                    if sent.request.op == Op::Read && sent.effect == Effect::Block {
                        absent.clone_from(&answer.words);
                    }
                    if let (Effect::Append, Some(sector)) = (sent.effect, answer.words.first()) {
                        sent.request.sector = *sector;
                    }
                    self.answers.push(Answer { tag: sent.request.tag, ..answer });
                }
                self.free.push(completion.tag);
                let ended = Ended { sent, status: completion.status, cells: cells.remove(&completion.tag), absent };
                self.ended.insert(completion.order, ended);
                completion.tag = sent.request.tag;
                self.completed.push(completion);
            }
            answers.end();
            // The allocation goes back: the device fills it again.
            *device.completions() = completions;
            let stride = device.order_stride();
            while self.step(stride) {
                self.next_step += 1;
            }
        }
        &mut self.completed
    }

    /// The commands of the next step take effect, if they have completed.
    fn step(&mut self, stride: u64) -> bool {
        let mut any = false;
        while let Some(first) = self.ended.first_entry()
            && *first.key() / stride == self.next_step
        {
            let ended = first.remove();
            self.take_effect(ended);
            any = true;
        }
        any
    }

    fn take_effect(&mut self, ended: Ended) {
        let Ended { sent: Sent { request, stamp, effect }, status, cells, absent } = ended;
        if effect == Effect::None {
            return;
        }
        let reads = request.op == Op::Read && effect == Effect::Block;
        match (request.op, status) {
            // Nothing was read, and nothing changed.
            (Op::Flush, _) | (_, Status::OutOfRange | Status::Refused(_) | Status::Unsupported | Status::Invalid) => {}
            (_, Status::Absent | Status::Success) if reads && !absent.is_empty() => {
                self.compare_absent(&request, cells.as_deref().unwrap_or_default(), &absent)
            }
            (_, Status::Success) if reads => self.compare(&request, cells.as_deref().unwrap_or_default()),
            _ if reads => self.unreadable += 1,
            _ if effect == Effect::Clean => {
                let written = (request.sector..request.end()).filter(|sector| self.sectors.get(*sector) != 0);
                self.clean.extend(written);
            }
            (op, status) => {
                for sector in request.sector..request.end() {
                    let cell = if op == Op::Write { sector_stamp(stamp, sector) } else { 0 };
                    if status == Status::Success {
                        self.sectors.set(sector, cell);
                        if !self.doubtful.is_empty() {
                            self.doubtful.remove(&sector);
                        }
                        if effect == Effect::WriteClean {
                            self.clean.insert(sector);
                        } else if !self.clean.is_empty() {
                            self.clean.remove(&sector);
                        }
                    } else {
                        self.doubtful.entry(sector).or_default().push(cell);
                    }
                }
            }
        }
    }

    fn compare(&mut self, request: &Request, cells: &[u8]) {
        self.reads += 1;
        self.compare_sectors(request, request.sector..request.end(), cells);
    }

    /// A read of the set `cache`: blocks that it says are absent hold nothing, and all others what they must.
    fn compare_absent(&mut self, request: &Request, cells: &[u8], absent: &[u64]) {
        self.reads += 1;
        let first = request.sector / self.unit_sectors;
        let blocks = request.end().div_ceil(self.unit_sectors) - first;
        let Ok(BlockBits(absent)) = BlockBits::from_words(absent, blocks as usize) else { return };
        for (block, absent) in (first..).zip(absent) {
            let from = request.sector.max(block * self.unit_sectors);
            let end = request.end().min((block + 1) * self.unit_sectors);
            let zeroes = [0; 64 * 8];
            let of_block = (from - request.sector) as usize * 8..(end - request.sector) as usize * 8;
            let cells = if absent { &zeroes[..of_block.len()] } else { cells.get(of_block).unwrap_or_default() };
            self.compare_sectors(request, from..end, cells);
        }
    }

    fn compare_sectors(&mut self, request: &Request, sectors: Range<u64>, cells: &[u8]) {
        let mut found = cells.chunks_exact(8);
        for sector in sectors {
            let cell = found.next().and_then(|cell| cell.try_into().ok()).map(u64::from_le_bytes);
            let expected = self.sectors.get(sector);
            self.compared += 1;
            if cell == Some(expected) || cell.is_some_and(|cell| self.may_hold(sector, cell)) {
                continue;
            }
            if cell == Some(0) && self.clean.remove(&sector) {
                self.sectors.set(sector, 0);
                continue;
            }
            self.wrong += 1;
            if self.first_wrong.is_none() {
                let named = |cell: u64| match (cell, sector_stamp(cell, sector)) {
                    (0, _) => "zeroes".to_string(),
                    (_, stamp) if stamp <= self.stamp => format!("what command {stamp} wrote"),
                    _ => "what no command wrote to it".to_string(),
                };
                let found = cell.map_or("nothing".to_string(), named);
                self.first_wrong = Some(format!(
                    "the first is sector {sector}, in a read of {} sectors from {} that arrived at {}: it held {found} \
                     in place of {} (commands count from 1, those of preconditioning included)",
                    request.sectors,
                    request.sector,
                    request.at,
                    named(expected)
                ));
            }
        }
    }

    /// These sectors cannot be read, so nothing that was written may be there.
    fn holds_nothing(&mut self, sectors: Range<u64>) {
        for sector in sectors {
            self.compared += 1;
            let expected = self.sectors.get(sector);
            if expected != 0 && !self.may_hold(sector, 0) {
                self.wrong += 1;
                let told = || format!("the first is sector {sector}: it was written, and its zone says that it is not");
                self.first_wrong.get_or_insert_with(told);
            }
        }
    }

    #[cold]
    fn may_hold(&self, sector: u64, cell: u64) -> bool {
        self.doubtful.get(&sector).is_some_and(|cells| cells.contains(&cell))
    }

    /// Reads the whole device, which must be at rest, and compares it; until `stopped`.
    pub(crate) fn read_back<D: BlockDevice + Administration + ?Sized>(
        &mut self,
        device: &mut D,
        stopped: &dyn Fn() -> bool,
    ) {
        device.set_timed(false);
        let sectors = device.sectors();
        let zones = device.zones();
        let written = self.sectors.written();
        let mut sector = 0;
        while sector < sectors {
            if stopped() {
                self.read_back_to = Some((sector, sectors));
                return;
            }
            let mut length = READ_BACK_SECTORS.min(sectors - sector);
            if let Some(written) = &written {
                // What neither holds is not read.
                let (holds, to) = device.mapped_run(sector, sectors);
                let (first, end) = written.from(sector).unwrap_or((sectors, sectors));
                if !holds && first > sector {
                    sector = first.min(to);
                    continue;
                }
                length = length.min(if holds { to } else { end } - sector);
            }
            if let Some(shape) = zones {
                // A read of what is not written is refused: it holds nothing, and must hold nothing.
                let zone_end = (sector / shape.size + 1) * shape.size;
                let (holds, to) = device.mapped_run(sector, zone_end);
                length = length.min(to - sector);
                if !holds {
                    self.holds_nothing(sector..sector + length);
                    sector += length;
                    continue;
                }
            }
            let request = Request { at: device.now(), ..Request::new(Op::Read, sector, length) };
            self.submit(device, &request, &[]);
            while device.outstanding() > 0 && device.wait_for_completion(Nanos::MAX) {
                self.collect(device).clear();
            }
            self.collect(device).clear();
            sector += length;
        }
    }

    /// What was not read back because it was interrupted, as a sentence.
    pub(crate) fn unread(&self) -> Option<String> {
        let (sector, sectors) = self.read_back_to?;
        Some(format!(
            "the read-back at the end was interrupted at sector {sector} of {sectors}: nothing from there on was compared with what was \
             written"
        ))
    }

    /// What came of it.
    pub(crate) fn check(&self) -> Check {
        let waiting = self.ended.len();
        let at_the_end = match self.read_back_to {
            None => "the whole drive at the end among them",
            Some(_) => "but at the end not the whole drive",
        };
        let mut detail = format!(
            "{} sectors in {} reads were compared with what was written, {at_the_end}; {} differed",
            self.compared, self.reads, self.wrong
        );
        if let Some(first) = &self.first_wrong {
            detail.push_str(&format!("; {first}"));
        }
        if self.unreadable > 0 {
            detail.push_str(&format!("; {} reads ended with an error and were not compared", self.unreadable));
        }
        if waiting > 0 {
            detail.push_str(&format!("; {waiting} commands completed whose place in the order of effect is unknown"));
        }
        Check { name: NAME.to_string(), passed: self.wrong == 0 && waiting == 0, detail }
    }
}

/// A device whose answers are compared: a layer that stamps what is written.
pub(crate) struct Verified<'a, D: ?Sized> {
    /// The device, whose drives keep stamps.
    pub(crate) device: &'a mut D,
    /// What compares.
    pub(crate) verifier: &'a mut Verifier,
}

impl<D: BlockDevice + ?Sized> BlockDevice for Verified<'_, D> {
    fn sectors(&self) -> u64 {
        self.device.sectors()
    }

    fn sector_data_bytes(&self) -> usize {
        self.device.sector_data_bytes()
    }

    fn now(&self) -> Nanos {
        self.device.now()
    }

    fn submit(&mut self, request: &Request, _data: Data<'_>) {
        self.verifier.submit(self.device, request, &[]);
    }

    fn command_set(&self) -> Option<&'static CommandSet> {
        self.device.command_set()
    }

    fn submit_command(&mut self, request: &Request, payload: Payload<'_>) {
        self.verifier.submit(self.device, request, payload.words);
    }

    fn zones(&self) -> Option<ZoneShape> {
        self.device.zones()
    }

    fn zone(&self, number: u64) -> Option<Zone> {
        self.device.zone(number)
    }

    fn take_answers(&mut self, to: &mut Vec<Answer>) {
        self.verifier.collect(self.device);
        to.append(&mut self.verifier.answers);
    }

    fn take_events(&mut self, to: &mut Vec<Event>) {
        self.device.take_events(to);
    }

    fn unplug(&mut self) {
        self.device.unplug();
    }

    fn next_event(&self) -> Option<Nanos> {
        self.device.next_event()
    }

    fn run_until(&mut self, until: Nanos) {
        self.device.run_until(until);
    }

    fn run_to_completion(&mut self, until: Nanos) -> bool {
        self.device.run_to_completion(until)
    }

    fn outstanding(&self) -> u64 {
        self.device.outstanding()
    }

    fn completions(&mut self) -> &mut Vec<Completion> {
        self.verifier.collect(self.device)
    }

    fn take_paths(&mut self, to: &mut Vec<ssdlab_device::critical_path::Path>) {
        self.device.take_paths(to);
    }

    fn read_data(&mut self) -> &mut Vec<(u32, Vec<u8>)> {
        self.device.read_data()
    }

    fn mapped_run(&self, sector: u64, end: u64) -> (bool, u64) {
        self.device.mapped_run(sector, end)
    }

    fn order_stride(&self) -> u64 {
        self.device.order_stride()
    }
}

impl<D: Administration + ?Sized> Administration for Verified<'_, D> {
    fn identify(&self) -> Identity {
        self.device.identify()
    }

    fn layers(&self) -> Vec<LayerMetrics> {
        self.device.layers()
    }

    fn taken(&self) -> Traffic {
        self.device.taken()
    }

    fn drives(&self) -> Vec<Part<&Drive>> {
        self.device.drives()
    }

    fn drives_mut(&mut self) -> Vec<Part<&mut Drive>> {
        self.device.drives_mut()
    }

    fn reset_statistics(&mut self) {
        self.device.reset_statistics();
    }

    fn set_timed(&mut self, timed: bool) {
        self.device.set_timed(timed);
    }

    fn record_paths(&mut self, on: bool) {
        self.device.record_paths(on);
    }

    fn counters(&self) -> Counters {
        self.device.counters()
    }
}

#[cfg(test)]
mod tests;

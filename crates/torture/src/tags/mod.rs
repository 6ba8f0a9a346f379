//! The command set `tags` against a model of it: every answer, refusal and event of a drive, at any depth, with block
//! I/O beside it, over power cuts and hosts that begin anew.
//!
//! Commands take effect in the order that their completions say; the model takes them in that order, and knows nothing
//! of the drive but its number of sectors and the sectors of a unit.

use std::collections::{BTreeMap, HashMap};

use ssdlab_base::command_sets::tags::{
    ACKNOWLEDGE, CLEAR_TAGS, FIND_TAG, NOT_A_TAG_PER_UNIT, READ_TAGGED, SAVE_TRIMS, TAG_REPLACED, TAGS, TAGS_CLEARED,
    WRITE_TAGGED, ZERO_TAG,
};
use ssdlab_base::{Answer, Event, EventKind, Nanos, Op, Opcode, Request, SECTOR_BYTES};
use ssdlab_device::{Completion, Data, Drive, Payload, Status, sector_stamp};
use ssdlab_flash::Contents;

use crate::case::{Allowed, Case};
use crate::cut::{Cut, PoweredDrive};
use crate::journal::stamps;
use crate::totals::Totals;

mod case;
mod fuzzing;
mod script;

pub use case::{HostCommand, TagScope, Tags};
pub use fuzzing::command_set;

/// A command and its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The request; its tag and time are set when it is sent.
    pub request: Request,
    /// Its words.
    pub words: Vec<u64>,
}

impl Command {
    /// A command of the set, with the carrier that the set says.
    pub fn of_set(opcode: Opcode, sector: u64, sectors: u64, words: &[u64]) -> Command {
        let carrier = TAGS.command(opcode).map_or(Op::Read, |spec| spec.carrier);
        Command { request: Request { opcode, ..Request::new(carrier, sector, sectors) }, words: words.to_vec() }
    }

    /// Block I/O.
    pub fn block(op: Op, sector: u64, sectors: u64) -> Command {
        Command { request: Request::new(op, sector, sectors), words: Vec::new() }
    }
}

/// What a host expects.
#[derive(Debug, Default)]
struct Model {
    sectors: u64,
    sectors_per_unit: u64,
    tags: BTreeMap<u64, u64>,
    cells: Vec<u64>,
    /// Events since the host began, as far as commands explain them: numbers, kinds and words.
    expected: Vec<(u64, EventKind, [u64; 3])>,
    sent: u64,
    /// Not acknowledged, of those that have to be.
    kept: Vec<(u64, EventKind, [u64; 3])>,
}

/// A completion with what came beside it.
struct Ended {
    completion: Completion,
    answer: Option<Answer>,
    cells: Option<Vec<u64>>,
}

/// A drive and the model.
pub struct Harness {
    power: PoweredDrive,
    model: Model,
    /// Commands in flight at most.
    depth: u64,
    sent: HashMap<u32, (Command, u64)>,
    tag: u32,
    /// Completed, and not all before them have.
    ended: BTreeMap<u64, Ended>,
    next_order: u64,
    /// Events since the host began.
    told: Vec<Event>,
    /// Up to this number an earlier host was told of all events, and has acknowledged those that have to be.
    settled: u64,
    /// Commands that took effect.
    executed: u64,
    allowed: Allowed,
    /// The drive became read-only: what the refused command left is another oracle's affair, so nothing is judged any
    /// more.
    is_over: bool,
}

impl Harness {
    /// A fresh drive whose design has the set.
    fn new(case: &Case<Tags>, power: PoweredDrive) -> Harness {
        let mut harness = Harness {
            model: Model { sectors_per_unit: u64::from(power.config.ftl.mapping_unit) / 512, ..Model::default() },
            depth: case.subject.depth,
            sent: HashMap::new(),
            tag: 0,
            ended: BTreeMap::new(),
            next_order: 0,
            told: Vec::new(),
            settled: 0,
            executed: 0,
            allowed: case.allows(&power.config),
            is_over: false,
            power,
        };
        harness.allowed.prepare(harness.power.get());
        harness.model.sectors = harness.drive().user_sectors();
        harness.model.cells = vec![0; harness.model.sectors as usize];
        harness
    }

    /// The drive, which has power.
    fn drive(&mut self) -> &mut Drive {
        self.power.get()
    }

    /// Commands in flight.
    fn outstanding(&mut self) -> u64 {
        self.drive().outstanding()
    }

    /// The number of the last event that the host has seen, or that an earlier one left settled; 0 for none.
    fn last_event(&self) -> u64 {
        self.told.iter().map(|event| event.number).max().unwrap_or(0).max(self.settled)
    }

    /// Sends a command as soon as fewer than allowed are in flight.
    fn send(&mut self, command: &Command) {
        while self.outstanding() >= self.depth {
            self.step();
        }
        assert!(self.outstanding() < self.depth, "{} commands in flight of {}", self.outstanding(), self.depth);
        self.tag += 1;
        let at = self.drive().now();
        let request = Request { at, tag: self.tag, ..command.request };
        let stamp = u64::from(self.tag);
        let seen = self.last_event();
        self.sent.insert(self.tag, (Command { request, words: command.words.clone() }, seen));
        let bytes = match (self.power.contents(), request.op) {
            (Contents::Bytes, Op::Write) if self.model.in_range(&request) => sectors_of(stamp, &request),
            _ => Vec::new(),
        };
        let data = if bytes.is_empty() { Data::Stamp(stamp) } else { Data::Bytes(&bytes) };
        self.drive().submit_command(&request, Payload { data, words: &command.words });
        self.collect();
    }

    /// Runs until a command completes, an event comes, or nothing happens.
    fn step(&mut self) {
        self.drive().run_to_completion(Nanos::MAX);
        self.collect();
    }

    /// Waits for everything; then the events are exactly those that the commands explain.
    fn drain(&mut self) {
        while self.outstanding() > 0 {
            let before = (self.outstanding(), self.told.len());
            self.step();
            assert_ne!((self.outstanding(), self.told.len()), before, "commands never complete");
        }
        self.collect();
        if self.is_over {
            return;
        }
        assert!(self.ended.is_empty(), "orders have a gap at {}", self.next_order);
        let told: Vec<_> = self.told.iter().map(|event| (event.number, event.kind, event.words)).collect();
        assert_eq!(told, self.model.expected, "events that the host was told, and those that commands explain");
        assert!(self.told.windows(2).all(|pair| pair[0].at <= pair[1].at), "events come in the order of time");
    }

    /// The host begins anew: it is told again of what it did not acknowledge, and of nothing else.
    fn restart_host(&mut self) {
        self.drain();
        self.drive().host_restarted();
        self.told.clear();
        self.model.expected = self.model.kept.clone();
        self.settled = self.model.kept.first().map_or(self.model.sent, |(first, ..)| first - 1);
        self.collect();
        self.drain();
    }

    /// The power goes, and comes back: tags and events were in RAM.
    fn cut(&mut self, cut: &Cut, totals: &mut Totals) {
        self.power.cut(cut, totals);
        totals.sectors_compared += self.model.sectors;
        self.sent.clear();
        self.ended.clear();
        self.told.clear();
        (self.next_order, self.settled) = (0, 0);
        let model = &mut self.model;
        (model.tags, model.expected, model.kept, model.sent) = (BTreeMap::new(), Vec::new(), Vec::new(), 0);
        // What survived is another oracle's affair.
        for sector in 0..self.model.sectors {
            self.tag += 1;
            let at = self.drive().now();
            let tag = self.tag;
            self.drive().submit(&Request { at, tag, ..Request::new(Op::Read, sector, 1) });
            while self.drive().outstanding() > 0 {
                self.drive().run_to_completion(Nanos::MAX);
            }
            let completion = self.drive().completions().pop().expect("the read completed");
            assert_eq!(completion.status, Status::Success, "sector {sector} after a power cut");
            self.next_order = completion.order + 1;
            let data = self.drive().read_data().pop();
            assert_eq!(
                data.is_some(),
                self.power.contents() != Contents::Nothing,
                "a read's data comes where it is kept"
            );
            if let Some((_, data)) = data {
                self.model.cells[sector as usize] = cells(self.power.contents(), &data)[0];
            }
        }
    }

    fn collect(&mut self) {
        let contents = self.power.contents();
        let drive = self.power.get();
        drive.take_events(&mut self.told);
        let completions = std::mem::take(drive.completions());
        let mut answers: HashMap<u32, Answer> = drive.answers().drain(..).map(|answer| (answer.tag, answer)).collect();
        let mut read: HashMap<u32, Vec<u8>> = drive.read_data().drain(..).collect();
        for completion in completions {
            let answer = answers.remove(&completion.tag);
            assert_eq!(answer.is_some(), completion.has_answer, "{completion:?}");
            let cells = read.remove(&completion.tag).map(|data| cells(contents, &data));
            let order = completion.order;
            let ended = Ended { completion, answer, cells };
            assert!(self.ended.insert(order, ended).is_none(), "order {order} was given twice");
        }
        assert!(answers.is_empty() && read.is_empty(), "answers come with completions");
        while let Some(Ended { completion, answer, cells }) = self.ended.remove(&self.next_order) {
            self.is_over |= self.allowed.read_only && completion.status == Status::ReadOnly;
            if self.is_over {
                assert!(drive.is_read_only(), "a drive that takes writes refused one: {completion:?}");
                return;
            }
            self.next_order += 1;
            self.executed += 1;
            let (command, seen) = self.sent.remove(&completion.tag).expect("a command completes once, and was sent");
            let mut expected = self.model.execute(&command, u64::from(completion.tag), seen);
            if contents == Contents::Nothing {
                expected.cells.clear();
            }
            let found = Expected {
                status: completion.status,
                words: answer.as_ref().map(|answer| answer.words.clone()).unwrap_or_default(),
                bytes: answer.map(|answer| answer.bytes).unwrap_or_default(),
                cells: cells.unwrap_or_default(),
            };
            assert!(expected.allows(&found, &command), "{command:?}:\n{found:?}, expected\n{expected:?}");
        }
    }
}

/// A write's bytes: each sector holds its stamp over and over.
fn sectors_of(stamp: u64, request: &Request) -> Vec<u8> {
    let sectors = request.sector..request.end();
    sectors.flat_map(|sector| sector_stamp(stamp, sector).to_le_bytes().repeat(SECTOR_BYTES as usize / 8)).collect()
}

/// The stamps of sectors that were read.
fn cells(contents: Contents, data: &[u8]) -> Vec<u64> {
    let words = stamps(data);
    if contents != Contents::Bytes {
        return words;
    }
    let sectors = words.chunks_exact(SECTOR_BYTES as usize / 8);
    sectors
        .map(|sector| {
            assert!(sector.iter().all(|word| *word == sector[0]), "a sector is torn: {sector:x?}");
            sector[0]
        })
        .collect()
}

/// What a command comes to.
#[derive(Debug)]
struct Expected {
    status: Status,
    words: Vec<u64>,
    bytes: Vec<u8>,
    cells: Vec<u64>,
}

impl Expected {
    fn only(status: Status) -> Expected {
        Expected { status, words: Vec::new(), bytes: Vec::new(), cells: Vec::new() }
    }

    fn allows(&self, found: &Expected, command: &Command) -> bool {
        // How many pages records take is the drive's affair.
        let counted = command.request.opcode == SAVE_TRIMS && found.words.len() == 1;
        self.status == found.status
            && (self.words == found.words || counted)
            && self.bytes == found.bytes
            && self.cells == found.cells
    }
}

impl Model {
    fn event(&mut self, kind: EventKind, words: [u64; 3]) {
        self.sent += 1;
        self.expected.push((self.sent, kind, words));
        if kind == TAG_REPLACED {
            self.kept.push((self.sent, kind, words));
        }
    }

    fn in_range(&self, request: &Request) -> bool {
        request.sector.checked_add(request.sectors).is_some_and(|end| end <= self.sectors)
    }

    /// The command takes effect; `seen` is the last event that the host had seen when it sent it.
    fn execute(&mut self, command: &Command, stamp: u64, seen: u64) -> Expected {
        let Command { request, words } = command;
        if request.opcode.is_block() {
            return self.block(request, stamp);
        }
        let Some(spec) = TAGS.command(request.opcode) else { return Expected::only(Status::Unsupported) };
        if spec.carrier != request.op || !spec.words_in.allow(words.len()) {
            return Expected::only(Status::Invalid);
        }
        let ranged = matches!(request.opcode, WRITE_TAGGED | READ_TAGGED);
        if ranged && !self.in_range(request) {
            return Expected::only(Status::OutOfRange);
        }
        // Commands that ignore their address may have any.
        let end = request.sector.saturating_add(request.sectors);
        let units = request.sector / self.sectors_per_unit..end.div_ceil(self.sectors_per_unit);
        match request.opcode {
            WRITE_TAGGED => {
                let whole = (request.sector | request.end()).is_multiple_of(self.sectors_per_unit);
                if !whole || units.clone().count() != words.len() {
                    return Expected::only(Status::Refused(NOT_A_TAG_PER_UNIT));
                }
                if words.contains(&0) {
                    return Expected::only(Status::Refused(ZERO_TAG));
                }
                for (unit, tag) in units.zip(words) {
                    match self.tags.insert(unit, *tag) {
                        Some(old) if old != *tag => self.event(TAG_REPLACED, [unit, old, *tag]),
                        _ => {}
                    }
                }
                self.block(request, stamp)
            }
            READ_TAGGED => {
                let words: Vec<u64> = units.map(|unit| self.tags.get(&unit).copied().unwrap_or(0)).collect();
                if words.len() > usize::from(spec.words_out.most()) {
                    return Expected::only(Status::Refused(NOT_A_TAG_PER_UNIT));
                }
                if words.iter().all(|tag| *tag == 0) {
                    return Expected::only(Status::Absent);
                }
                Expected { words, ..self.block(request, stamp) }
            }
            FIND_TAG => {
                let units = self.tags.iter().filter(|(_, tag)| **tag == words[0]);
                let bytes: Vec<u8> = units.flat_map(|(unit, _)| unit.to_le_bytes()).collect();
                let status = if bytes.is_empty() { Status::Absent } else { Status::Success };
                Expected { words: vec![bytes.len() as u64 / 8], bytes, ..Expected::only(status) }
            }
            CLEAR_TAGS => {
                let count = std::mem::take(&mut self.tags).len() as u64;
                self.event(TAGS_CLEARED, [count, 0, 0]);
                Expected { words: vec![count], ..Expected::only(Status::Success) }
            }
            ACKNOWLEDGE => {
                if words[0] > seen {
                    return Expected::only(Status::Invalid);
                }
                self.kept.retain(|(number, ..)| *number > words[0]);
                Expected::only(Status::Success)
            }
            SAVE_TRIMS => Expected::only(Status::Success),
            other => unreachable!("{other:?} is of the set, and this model does not know it"),
        }
    }

    fn block(&mut self, request: &Request, stamp: u64) -> Expected {
        if !self.in_range(request) {
            return Expected::only(Status::OutOfRange);
        }
        let range = request.sector as usize..request.end() as usize;
        match request.op {
            Op::Read => {
                return Expected { cells: self.cells[range].to_vec(), ..Expected::only(Status::Success) };
            }
            Op::Write => {
                for sector in range {
                    self.cells[sector] = sector_stamp(stamp, sector as u64);
                }
            }
            Op::Trim | Op::WriteZeroes => self.cells[range].fill(0),
            Op::Flush => {}
        }
        Expected::only(Status::Success)
    }
}

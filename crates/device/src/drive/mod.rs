//! A drive: the one thing that is replayed, hosted, served and tortured.
//!
//! The main path of a command is short. It arrives at the interface, enters the drive, and is dispatched: reads look in
//! the buffer and then on flash, writes go to the buffer or straight to the FTL, trims and flushes change what survives
//! a power cut. Whatever it started on flash reports back, and with the last report it completes. A command that finds
//! no room is stalled and tried again when a block is erased or the buffer has drained; what touches other sectors may
//! pass it.

mod buffering;
mod checkpoint;
mod commands;
mod data;
mod destaging;
mod dispatch;
mod events;
mod failures;
mod keeping;
mod memory;
mod paths;
mod power;
mod rebuild;
mod registry;
mod state;
mod versions;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use arrayvec::ArrayVec;
use rustc_hash::FxHashMap;
use ssdlab_base::{Answer, CommandSet, Nanos, Op, Request, SECTOR_BYTES};
use ssdlab_flash::{Contents, Observer, OpId};

use crate::buffer::{Slot, WriteBuffer};
use crate::event_queue::EventQueue;
use crate::ftl::{DESIGNS, Found, Ftl, PREFETCHED};
use crate::gc::Gc;
use crate::gc::victim::POLICIES as VICTIMS;
use crate::interface::{Direction, Interface};
use crate::media::{Frontier, Media, Place};
use crate::token::Owner;
use crate::{Completion, Counters, DriveConfig, Status};

use commands::OfSet;
use destaging::Destager;
use registry::{make_buffer, pick};
use versions::{IdlePace, VersionRead};

pub use commands::CommandCount;
pub use data::{Data, Payload, stamp_cell};
pub use power::{OnImageError, Recovered, Recovery};
pub use registry::{Registered, registered};

/// What a run chooses about a drive beside its description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Seed of latencies, faults and random policies.
    pub seed: u64,
    /// What is kept of written data.
    pub contents: Contents,
}

/// Why a drive cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {reason}")]
pub struct DriveError {
    /// The description's dotted key.
    pub key: String,
    /// What is wrong, with the numbers.
    pub reason: String,
}

/// A command in the drive or waiting for it.
#[derive(Clone, Debug)]
struct Command {
    request: Request,
    queue: u16,
    status: Status,
    /// What the command still waits for; it completes at zero.
    remaining: u32,
    /// How far its dispatch got: units of a write, stages of a trim.
    cursor: u32,
    /// Write commands dispatched before a flush, which it covers.
    covers: Option<u64>,
    order: u64,
    stalled_since: Option<Nanos>,
    /// Sectors a stalled write waits to bring into the buffer.
    wanted_sectors: u64,
    /// Cells of a write, or of what a read found.
    cells: Vec<u8>,
    /// What a command of the drive's own set has beyond that.
    of_set: Option<Box<OfSet>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Dispatch(u32),
    Finish(u32),
    Complete(u32),
}

/// Pages on their way from the buffer to flash.
#[derive(Clone, Copy, Debug)]
struct Eviction {
    sectors: u64,
    serial: u64,
    /// A FUA write that waits for exactly this.
    command: Option<u32>,
}

/// Sectors of a unit that a read fetches from flash, and the number of the page that they are from.
#[derive(Clone, Copy, Debug)]
struct ReadToKeep {
    lpn: u32,
    mask: u64,
    sequence: u64,
}

/// A page whose program failed and that found no room yet.
#[derive(Clone, Copy, Debug)]
struct Orphan {
    place: Place,
    frontier: Frontier,
    cause: ssdlab_flash::Cause,
}

/// What a failed page leaves behind until its data is on flash.
#[derive(Clone, Debug)]
struct Hold {
    /// Pages, by number, that must be on flash first.
    pages: Vec<u32>,
    /// Blocks that hold the versions before, each pinned once.
    blocks: Vec<u32>,
    /// A unit of the page was trimmed meanwhile: the record of that must be on flash too, or what was before the page
    /// would come back.
    trim: HeldTrim,
    /// It is a record of trims: it counts as in flight until it is on flash, whoever moves it and for what cause.
    record: bool,
    /// Who waits for the failed page.
    owner: Owner,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeldTrim {
    /// Nothing was trimmed, or the record is on flash.
    Done,
    /// The record could not be written yet.
    Unsaved,
    /// The record is in flight.
    InFlight,
}

/// A read that waits for a page that is still being completed from its old version.
#[derive(Clone, Copy, Debug)]
struct ProgramWaiter {
    program: OpId,
    command: u32,
    /// The units of the page that it reads.
    units: u64,
}

/// A simulated drive.
pub struct Drive {
    config: DriveConfig,
    media: Media,
    ftl: Box<dyn Ftl>,
    gc: Gc,
    buffer: Option<WriteBuffer>,
    interface: Interface,
    commands: Vec<Command>,
    free_commands: Vec<u32>,
    outstanding: u64,
    order: u64,
    writes_dispatched: u64,
    /// Commands that found no room, in order; what overlaps them waits too.
    stalled: VecDeque<u32>,
    timers: BinaryHeap<Reverse<(Nanos, u64, Timer)>>,
    timer_serial: u64,
    /// The earlier of the two times at which the drive will count as idle.
    idle_at: Option<Nanos>,
    pace: IdlePace,
    evictions: Vec<Eviction>,
    free_evictions: Vec<u32>,
    /// Evictions issued and not on flash, by serial number from `evictions_base` on.
    evicting: VecDeque<bool>,
    evictions_base: u64,
    leaving_sectors: u64,
    /// Programs that took units out of the buffer since the drive was made.
    programs_sent: u64,
    /// Where units leave the buffer before their room is wanted.
    destager: Option<Destager>,
    /// Destaging found no space and waits until some is freed.
    destage_waits: bool,
    /// Since when writes have been waiting for room.
    full_since: Option<Nanos>,
    /// Sectors that all stalled writes wait to bring.
    wanted_sectors: u64,
    /// (serial, command): complete when every eviction before `serial` is on flash.
    eviction_waiters: Vec<(u64, u32)>,
    metadata_waiters: Vec<u32>,
    program_waiters: Vec<ProgramWaiter>,
    orphans: Vec<Orphan>,
    holds: Vec<Hold>,
    read_only: bool,
    room_freed: bool,
    /// Commands that waited on the host's side are being let in.
    admitting: bool,
    counters: Counters,
    completions: Vec<Completion>,
    read_data: Vec<(u32, Vec<u8>)>,
    /// The commands that the drive knows beyond block I/O, and how often each ended.
    set: Option<&'static CommandSet>,
    command_counts: Vec<CommandCount>,
    answers: Vec<Answer>,
    done: Vec<ssdlab_flash::Done>,
    slots: Vec<Slot>,
    /// The FTL takes small partial units of a region into one page.
    compacts: bool,
    /// Units of the blocks that leave the buffer padded, if they do, and where padding is to go on.
    pads: Option<u32>,
    padded_to: Option<u32>,
    /// The buffer keeps what is read from flash.
    caches_reads: bool,
    /// By command: what it fetches from flash, where the buffer keeps reads.
    reads_to_keep: FxHashMap<u32, Vec<ReadToKeep>>,
    companions: Vec<Slot>,
    /// Reads that go on from version to version, by slot, and the slots that are free.
    version_reads: Vec<VersionRead>,
    free_version_reads: Vec<u32>,
    /// Pages that are being had from the rest of their stripes, by slot, and the slots that are free.
    rebuilds: Vec<rebuild::Rebuild>,
    free_rebuilds: Vec<u32>,
    scratch: Vec<u8>,
    sectors_per_unit: u64,
    /// What requests wait for, while somebody asks.
    paths: Option<Box<paths::Paths>>,
}

impl Drive {
    /// A fresh drive; refuses a configuration that could run out of blocks.
    pub fn new(config: &DriveConfig, options: Options) -> Result<Drive, DriveError> {
        config.validate()?;
        let drive = Drive::assemble(config, Media::new(config, options))?;
        config.check_space(&drive.usable(), drive.ftl.metadata_units())?;
        Ok(drive)
    }

    fn assemble(config: &DriveConfig, media: Media) -> Result<Drive, DriveError> {
        let design = pick("ftl.design", &config.ftl.design, DESIGNS)?;
        let victim = pick("gc.victim", &config.gc.victim, VICTIMS)?;
        let ftl = (design.make)(config);
        let mut media = media;
        media.events = EventQueue::new(design.commands);
        let compacts = ftl.compacts().is_some();
        let mut drive = Drive {
            gc: Gc::new(config, victim(&config.gc)),
            buffer: make_buffer(config, &media, &*ftl)?,
            interface: Interface::new(&config.interface),
            sectors_per_unit: u64::from(config.ftl.mapping_unit) / SECTOR_BYTES,
            config: config.clone(),
            media,
            ftl,
            commands: Vec::new(),
            free_commands: Vec::new(),
            outstanding: 0,
            order: 0,
            writes_dispatched: 0,
            stalled: VecDeque::new(),
            timers: BinaryHeap::new(),
            timer_serial: 0,
            idle_at: None,
            pace: IdlePace::new(config),
            evictions: Vec::new(),
            free_evictions: Vec::new(),
            evicting: VecDeque::new(),
            evictions_base: 0,
            leaving_sectors: 0,
            programs_sent: 0,
            destager: Destager::new(config),
            destage_waits: false,
            full_since: None,
            wanted_sectors: 0,
            eviction_waiters: Vec::new(),
            metadata_waiters: Vec::new(),
            program_waiters: Vec::new(),
            orphans: Vec::new(),
            holds: Vec::new(),
            read_only: false,
            room_freed: false,
            admitting: false,
            counters: Counters::default(),
            completions: Vec::new(),
            read_data: Vec::new(),
            set: design.commands,
            command_counts: vec![CommandCount::default(); design.commands.map_or(0, |set| set.commands.len())],
            answers: Vec::new(),
            done: Vec::new(),
            slots: Vec::new(),
            compacts,
            pads: None,
            padded_to: None,
            caches_reads: false,
            reads_to_keep: FxHashMap::default(),
            companions: Vec::new(),
            version_reads: Vec::new(),
            free_version_reads: Vec::new(),
            rebuilds: Vec::new(),
            free_rebuilds: Vec::new(),
            scratch: Vec::new(),
            paths: None,
        };
        drive.caches_reads = drive.buffer.as_ref().is_some_and(WriteBuffer::caches_reads);
        drive.pads = drive.buffer.as_ref().and_then(WriteBuffer::pads);
        if drive.pads.is_some() && !drive.ftl.writes_anew() {
            let reason = format!("true, but the design '{}' writes no unit anew as it is", config.ftl.design);
            return Err(DriveError { key: "buffer.bplru_padding".to_string(), reason });
        }
        Ok(drive)
    }

    /// Good superblocks of every group.
    fn usable(&self) -> Vec<u32> {
        (0..self.media.pool.groups()).map(|group| self.media.pool.usable(group)).collect()
    }

    /// The configuration.
    pub fn config(&self) -> &DriveConfig {
        &self.config
    }

    /// Virtual time.
    pub fn now(&self) -> Nanos {
        self.media.now
    }

    /// User capacity in sectors.
    pub fn user_sectors(&self) -> u64 {
        self.config.user_bytes / SECTOR_BYTES
    }

    /// Bytes that the drive keeps of a sector's contents: 512, 8 for stamps, 0 where it keeps none.
    pub fn cell_bytes(&self) -> usize {
        self.media.flash.store.cell_bytes()
    }

    /// Commands submitted and not completed.
    pub fn outstanding(&self) -> u64 {
        self.outstanding
    }

    /// Whether spares are gone: reads go on, writes are refused.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Completions since the last drain; the caller clears it.
    pub fn completions(&mut self) -> &mut Vec<Completion> {
        &mut self.completions
    }

    /// Tags and cells of completed reads, where contents are kept; the caller clears it.
    pub fn read_data(&mut self) -> &mut Vec<(u32, Vec<u8>)> {
        &mut self.read_data
    }

    /// Attach or detach an observer.
    pub fn observe(&mut self, observer: Option<Box<dyn Observer>>) {
        self.media.flash.observe(observer);
    }

    /// Brings what requests will need into the processor's cache; a hint, without effect on the drive. It helps when
    /// several are told of side by side, well before they are submitted.
    pub fn prefetch(&mut self, requests: &[Request]) {
        let buffered = self.buffer.is_some();
        for some in requests.chunks(PREFETCHED) {
            let known = some.iter().filter(|request| self.in_range(request));
            // A write into the buffer asks the FTL nothing, but what it pushes out does.
            let asked = known.filter(|request| !buffered || request.op == Op::Read);
            let mut lpns: ArrayVec<u32, PREFETCHED> =
                asked.map(|request| (request.sector / self.sectors_per_unit) as u32).collect();
            self.ftl.prefetch(&self.media, &lpns);
            // Destaging looks ahead itself.
            if let Some(buffer) = &self.buffer
                && buffer.is_nearly_full()
                && self.destager.is_none()
            {
                buffer.coming(some.len() - lpns.len(), &mut self.slots);
                lpns.clear();
                lpns.extend(self.slots.iter().take(PREFETCHED).map(|slot| buffer.entry(*slot).lpn));
                self.ftl.prefetch(&self.media, &lpns);
                let coming = some.iter().map(|request| (request.sector / self.sectors_per_unit) as u32);
                buffer.glance(coming.chain(lpns));
            }
        }
    }

    /// Whether `sector` holds data, in the buffer or on flash, and the first sector up to `end` from which on that is
    /// different; sectors of a mapping unit go together.
    pub fn mapped_run(&self, sector: u64, end: u64) -> (bool, u64) {
        let mapped = |lpn: u32| {
            let buffered = self.buffer.as_ref().is_some_and(|buffer| buffer.find(lpn).is_some());
            buffered || self.ftl.find(lpn) != Found::Unmapped
        };
        let end = end.min(self.user_sectors());
        let first = (sector / self.sectors_per_unit) as u32;
        let behind = end.div_ceil(self.sectors_per_unit) as u32;
        let kind = mapped(first);
        let other = (first..behind).find(|lpn| mapped(*lpn) != kind).unwrap_or(behind);
        (kind, (u64::from(other) * self.sectors_per_unit).min(end))
    }

    /// Takes a request at `request.at`; events before that time must have run.
    #[inline]
    pub fn submit(&mut self, request: &Request) {
        self.submit_with(request, Data::Nothing);
    }

    /// As [`Drive::submit`], with data. Data is ignored where contents are not kept.
    pub fn submit_with(&mut self, request: &Request, data: Data<'_>) {
        let refused = if self.in_range(request) { None } else { Some(Status::OutOfRange) };
        self.arrives(request, data, None, refused);
    }

    #[inline]
    fn arrives(&mut self, request: &Request, data: Data<'_>, of_set: Option<Box<OfSet>>, refused: Option<Status>) {
        assert!(request.at >= self.media.now, "a request arrives at {}, in the past of {}", request.at, self.media.now);
        debug_assert!(self.next_event().is_none_or(|at| at >= request.at), "earlier events have run");
        self.media.now = request.at;
        self.outstanding += 1;
        if self.idle_at.take().is_some() || self.outstanding == 1 || self.pace.is_on() {
            self.gc.set_background(false);
            self.load_has_grown();
        }
        let command = self.new_command(request, data, of_set, refused.is_none());
        if let Some(status) = refused {
            self.commands[command as usize].status = status;
            self.order += 1;
            self.commands[command as usize].order = self.order - 1;
            self.report(command);
            return;
        }
        let queue = self.commands[command as usize].queue;
        if self.interface.arrive(command, queue, request.op) {
            self.enter(command);
        }
    }

    /// Whether all of a request is on the drive, whatever its numbers.
    #[inline]
    fn in_range(&self, request: &Request) -> bool {
        request.sector.checked_add(request.sectors).is_some_and(|end| end <= self.user_sectors())
    }

    fn new_command(&mut self, request: &Request, data: Data<'_>, of_set: Option<Box<OfSet>>, accepted: bool) -> u32 {
        let cell = self.media.flash.store.cell_bytes();
        let brings_data = of_set.as_ref().map_or(request.op == Op::Write, |of_set| of_set.brings_data(request));
        let cells = if cell > 0 && accepted && brings_data { data.cells(request, cell) } else { Vec::new() };
        let command = Command {
            request: *request,
            queue: self.interface.queue_of(request.queue),
            status: Status::Success,
            remaining: 1,
            cursor: 0,
            covers: None,
            order: 0,
            stalled_since: None,
            wanted_sectors: 0,
            cells,
            of_set,
        };
        let slot = if let Some(slot) = self.free_commands.pop() {
            self.commands[slot as usize] = command;
            slot
        } else {
            self.commands.push(command);
            self.commands.len() as u32 - 1
        };
        if let Some(paths) = &mut self.paths {
            paths.begin(slot, request);
        }
        slot
    }

    /// A command enters the drive: its overhead, and its data if it brings some, come before its dispatch.
    #[inline]
    fn enter(&mut self, command: u32) {
        let request = &self.commands[command as usize].request;
        let mut ready = self.media.now;
        let mut data = 0;
        if self.media.flash.timed() {
            ready += self.interface.overhead();
            data = match &self.commands[command as usize].of_set {
                None if request.op == Op::Write => request.bytes(),
                None => 0,
                Some(of_set) => of_set.bytes_in() + if of_set.brings_data(request) { request.bytes() } else { 0 },
            };
            ready = self.interface.transfer(ready, data, Direction::ToDrive);
        }
        if self.paths.is_some() {
            self.path_enters(command, data, ready);
        }
        if ready > self.media.now {
            self.set_timer(ready, Timer::Dispatch(command));
        } else {
            self.dispatch(command);
        }
    }

    fn set_timer(&mut self, at: Nanos, timer: Timer) {
        self.timer_serial += 1;
        self.timers.push(Reverse((at, self.timer_serial, timer)));
    }

    /// One of the things a command waits for has come.
    #[inline]
    fn release_command(&mut self, command: u32) {
        let state = &mut self.commands[command as usize];
        state.remaining -= 1;
        if state.remaining == 0 {
            self.finish(command);
        }
    }

    /// All is done inside the drive; a read's data still crosses the link.
    #[inline]
    fn finish(&mut self, command: u32) {
        if self.caches_reads {
            self.keep_read(command);
        }
        self.wait_ended(command);
        let Command { request, of_set, .. } = &self.commands[command as usize];
        if (request.op == Op::Read || of_set.is_some()) && self.media.flash.timed() {
            let bytes = of_set.as_ref().map_or(request.bytes(), |of_set| of_set.bytes_out(request));
            let ready = self.interface.transfer(self.media.now, bytes, Direction::ToHost);
            if ready > self.media.now {
                self.path_to_host(command, bytes, ready);
                self.set_timer(ready, Timer::Complete(command));
                return;
            }
        }
        self.complete(command);
    }

    #[inline]
    fn complete(&mut self, command: u32) {
        let queue = self.commands[command as usize].queue;
        self.report(command);
        self.interface.leave(queue);
        // A command that takes no time completes inside `enter`: the outermost call lets them all in, one by one.
        if !std::mem::replace(&mut self.admitting, true) {
            while let Some(next) = self.interface.next() {
                self.enter(next);
            }
            self.admitting = false;
        }
    }

    /// The completion goes to the host.
    #[inline]
    fn report(&mut self, command: u32) {
        let state = &mut self.commands[command as usize];
        let request = state.request;
        let (status, order) = (state.status, state.order);
        let bytes = request.sectors.saturating_mul(SECTOR_BYTES);
        let kind = request.op.class();
        if request.op == Op::Read && !state.cells.is_empty() {
            let cells = std::mem::take(&mut state.cells);
            self.read_data.push((request.tag, cells));
        }
        let of_set = self.commands[command as usize].of_set.take();
        let mut has_answer = false;
        if let Some(of_set) = of_set {
            self.count_command(request.opcode, status);
            let answer = of_set.answer(request.tag);
            has_answer = answer.is_some();
            self.answers.extend(answer);
        }
        self.counters.commands[kind] += 1;
        if status == Status::Success {
            self.counters.bytes[kind] += bytes;
        } else {
            self.counters.failed_commands += u64::from(status.is_error());
        }
        if let Some(paths) = &mut self.paths {
            paths.close(command);
        }
        self.free_commands.push(command);
        self.outstanding -= 1;
        if self.outstanding <= self.pace.light_load() && self.media.flash.timed() {
            self.load_has_fallen();
        }
        self.completions.push(Completion {
            tag: request.tag,
            op: request.op,
            has_answer,
            status,
            submitted: request.at,
            at: self.media.now,
            order,
            bytes,
        });
    }
}

//! A drive: the one thing that is replayed, hosted, served and tortured.
//!
//! The main path of a command is short. It arrives at the interface, enters the drive, and is dispatched: reads look in
//! the buffer and then on flash, writes go to the buffer or straight to the FTL, trims and flushes change what survives
//! a power cut. Whatever it started on flash reports back, and with the last report it completes. A command that finds
//! no room is stalled and tried again when a block is erased or the buffer has drained; what touches other sectors may
//! pass it.

mod admission;
mod at_rest;
mod buffer_stage;
mod buffering;
mod checkpoint;
mod checkpoints;
mod command_table;
mod commands;
mod data;
mod destaging;
mod dispatch;
mod engine;
mod events;
mod failures;
mod gathering;
mod host_side;
mod idle;
mod latency_trace;
mod lists;
mod map_misses;
mod memory;
mod multi_version_read;
mod power;
mod processing;
mod read_cache;
mod reading;
mod room;
mod scripted_faults;
mod snapshot;
mod stalled;
mod stripe_read;
mod telemetry;
mod timers;

use std::ops::Range;

use arrayvec::ArrayVec;
use ssdlab_base::{Nanos, Op, Refusal, Request, SECTOR_BYTES};
use ssdlab_flash::{Contents, Lpn, Observer};

use crate::buffer::WriteBuffer;
use crate::command_sets::{Located, Rules};
use crate::event_queue::EventQueue;
use crate::ftl::{Commands, DESIGNS, Ftl, PREFETCHED};
use crate::gc::Gc;
use crate::gc::victim::{POLICIES as VICTIMS, VictimPolicy};
use crate::interface::{Direction, Interface};
use crate::media::Media;
use crate::placement::Placement;
use crate::registry::pick;
use crate::{Completion, Counters, DriveConfig, MapWaits, Status};

use admission::Admission;
use buffer_stage::BufferStage;
use buffering::make_buffer;
use command_table::CommandTable;
use commands::SetCommandState;
use destaging::Destager;
use failures::Failures;
use host_side::HostSide;
use idle::Idle;
use idle::IdlePace;
use reading::SteppedReads;
use room::Admitted;
use stalled::Waiting;
use timers::Timers;

pub use commands::CommandCount;
pub use data::{Data, Payload, sector_stamp};
pub use power::{Left, OnImageError, Recovered, Recovery};

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

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Dispatch(u32),
    Finish(u32),
    Copied(u32),
    Complete(u32),
}

/// A simulated drive: chips and the controller above them, driven by calls in virtual time.
///
/// [`Drive::new`] makes a drive as it leaves the factory. [`Drive::submit`] takes a command at a point in time, [`Drive::run_to_completion`]
/// and [`Drive::run_until`] run its events, and [`Drive::completions`] has what completed. [`Drive::power_cut`] takes the drive
/// and leaves its chips; [`Drive::recover`] makes a drive of them again. The crate `ssdlab` has the life of a drive, with examples.
pub struct Drive {
    config: DriveConfig,
    /// The chips and where data can go on them.
    media: Media,
    /// Where data is.
    ftl: Box<dyn Ftl>,
    /// Commands of a set that stand beside the mapping.
    beside: Option<Box<dyn Commands>>,
    gc: Gc,
    /// Which stream takes a unit, where a policy chooses it and not the host.
    placement: Option<Box<Placement>>,
    host: HostSide,
    commands: CommandTable,
    waiting: Waiting,
    /// Of a drive with append-only segments: which commands they take, and in which order.
    admission: Option<Box<Admission>>,
    timers: Timers,
    idle: Idle,
    stage: BufferStage,
    reads: SteppedReads,
    failures: Failures,
    counters: Counters,
    /// What requests wait for, while a caller asks for it.
    paths: Option<Box<latency_trace::LatencyTrace>>,
    /// Working space: operations that ended together.
    done: Vec<ssdlab_flash::Done>,
    sectors_per_unit: u64,
    /// Sectors of the addresses that it maps.
    logical_sectors: u64,
    /// Of a drive with more addresses than room: whose writes were let in.
    admitted: Option<Box<Admitted>>,
    /// The map is on flash, and what is looked up in it may have to wait.
    caches_map: bool,
    /// Commands that waited for it.
    map_waits: MapWaits,
}

impl Drive {
    /// A fresh drive; refuses a configuration that could run out of blocks.
    pub fn new(config: &DriveConfig, options: Options) -> Result<Drive, DriveError> {
        config.validate()?;
        let mut drive = Drive::assemble(config, Media::new(config, options))?;
        drive.ftl.check_space(config, &drive.usable())?;
        drive.check_controller()?;
        Ok(drive)
    }

    /// A fresh drive with a victim policy that no description names: `gc.victim` of `config` is not read. Snapshots and
    /// images know registered policies only.
    ///
    /// # Errors
    /// Those of [`Drive::new`].
    pub fn with_victim(
        config: &DriveConfig,
        options: Options,
        policy: Box<dyn VictimPolicy>,
    ) -> Result<Drive, DriveError> {
        let mut drive = Drive::new(config, options)?;
        drive.gc = Gc::new(config, policy);
        Ok(drive)
    }

    fn assemble(config: &DriveConfig, media: Media) -> Result<Drive, DriveError> {
        let design = pick("ftl.design", &config.ftl.design, DESIGNS)?;
        let victim = VICTIMS.pick(&config.gc.victim)?;
        let mut ftl = (design.make)(config);
        let beside = (design.beside)(config);
        let light_load = ftl.idle_work().map_or(0, |work| work.light_load());
        let compaction = ftl.compacts().map(|compaction| compaction.limits());
        let mut media = media;
        media.own_blocks = ftl.own_collection().is_some();
        let caches_map = ftl.cached_map().is_some();
        media.events = EventQueue::new(design.commands);
        let buffer = make_buffer(config, &media, compaction)?;
        let padding = buffer.as_ref().and_then(WriteBuffer::pads);
        let stage = BufferStage {
            compacts: compaction.is_some(),
            pads: padding.as_ref().map(|padding| padding.block_units),
            caches_reads: buffer.as_ref().is_some_and(WriteBuffer::caches_reads),
            destager: Destager::new(config),
            buffer,
            ..BufferStage::default()
        };
        let host = HostSide {
            interface: Interface::new(&config.interface),
            admitting: false,
            completions: Vec::new(),
            read_data: Vec::new(),
            set: design.commands,
            command_counts: vec![CommandCount::default(); design.commands.map_or(0, |set| set.commands.len())],
            answers: Vec::new(),
        };
        let admission = (design.rules)(config).map(|rules| Box::new(Admission::new(rules)));
        assert_eq!(admission.is_some(), ftl.append_only().is_some(), "segments have rules, and rules segments");
        let admitted = ftl.limited_room().map(|_| Box::default());
        let drive = Drive {
            gc: Gc::new(config, victim(config)),
            sectors_per_unit: u64::from(config.ftl.mapping_unit) / SECTOR_BYTES,
            logical_sectors: config.logical_bytes() / SECTOR_BYTES,
            admitted,
            idle: Idle { at: None, work: IdlePace::new(light_load) },
            config: config.clone(),
            media,
            ftl,
            beside,
            host,
            commands: CommandTable::default(),
            waiting: Waiting::default(),
            admission,
            timers: Timers::default(),
            stage,
            reads: SteppedReads::default(),
            failures: Failures::default(),
            counters: Counters::default(),
            placement: Placement::new(config)?.map(Box::new),
            paths: None,
            done: Vec::new(),
            caches_map,
            map_waits: MapWaits::default(),
        };
        if let Some(padding) = padding.filter(|_| !drive.ftl.supports_rewrite()) {
            let reason = format!("true, but the design '{}' writes no unit anew as it is", config.ftl.design);
            return Err(DriveError { key: format!("buffer.{}", padding.key), reason });
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

    /// Sectors that the host addresses: the user capacity, of zones also what is between their capacity and their size, and of a cache
    /// those of its disk.
    pub fn user_sectors(&self) -> u64 {
        self.rules().map_or(self.logical_sectors, Rules::host_sectors)
    }

    /// Mapping units of the addresses that it maps.
    const fn logical_units(&self) -> u32 {
        (self.logical_sectors / self.sectors_per_unit) as u32
    }

    /// Sectors behind the capacity that commands of the drive's own set address.
    pub fn reserved_sectors(&self) -> u64 {
        u64::from(self.config.reserved_units()) * self.sectors_per_unit
    }

    /// Bytes that the drive keeps of a sector's contents: 512, 8 for stamps, 0 where it keeps none.
    pub fn sector_data_bytes(&self) -> usize {
        self.media.flash.store.sector_data_bytes()
    }

    /// Commands submitted and not completed.
    pub fn outstanding(&self) -> u64 {
        self.commands.outstanding
    }

    /// Whether a victim policy (`gc.victim`) chooses what is collected, and not the design itself.
    pub fn collects_by_policy(&self) -> bool {
        !self.media.own_blocks
    }

    /// Whether spares are gone: reads go on, writes are refused.
    pub fn is_read_only(&self) -> bool {
        self.failures.read_only
    }

    /// Why it is read-only, as a clause; `None` while it takes writes.
    pub fn read_only_reason(&self) -> Option<String> {
        let of_policy = || self.failures.idle_policy.map(|idle| idle.to_string());
        self.is_read_only().then(|| of_policy().unwrap_or_else(|| "it ran out of spare blocks".to_string()))
    }

    /// Completions since the last drain; the caller clears it.
    pub fn completions(&mut self) -> &mut Vec<Completion> {
        &mut self.host.completions
    }

    /// Tags and sector data of completed reads, where contents are kept; the caller clears it.
    pub fn read_data(&mut self) -> &mut Vec<(u32, Vec<u8>)> {
        &mut self.host.read_data
    }

    /// Attach or detach an observer.
    pub fn observe(&mut self, observer: Option<Box<dyn Observer>>) {
        self.media.flash.observe(observer);
    }

    /// Brings what requests will need into the processor's cache; a hint, without effect on the drive. It helps when
    /// several are told of side by side, well before they are submitted.
    pub fn prefetch(&mut self, requests: &[Request]) {
        let buffered = self.stage.buffer.is_some();
        for some in requests.chunks(PREFETCHED) {
            let known = some.iter().filter(|request| self.in_range(request));
            // A write into the buffer asks the FTL nothing, but what it pushes out does.
            let asked = known.filter(|request| !buffered || request.op == Op::Read);
            let mut lpns: ArrayVec<Lpn, PREFETCHED> =
                asked.map(|request| Lpn((request.sector / self.sectors_per_unit) as u32)).collect();
            self.ftl.prefetch(&self.media, &lpns);
            // Destaging looks ahead itself.
            if let Some(buffer) = &self.stage.buffer
                && buffer.is_nearly_full()
                && self.stage.destager.is_none()
            {
                buffer.coming(some.len() - lpns.len(), &mut self.stage.slots);
                lpns.clear();
                lpns.extend(self.stage.slots.iter().take(PREFETCHED).map(|slot| buffer.entry(*slot).lpn));
                self.ftl.prefetch(&self.media, &lpns);
                let coming = some.iter().map(|request| Lpn((request.sector / self.sectors_per_unit) as u32));
                buffer.prefetch(coming.chain(lpns));
            }
        }
    }

    /// Whether `sector` holds data, in the buffer or on flash, and the first sector up to `end` from which on that is
    /// different; sectors of a mapping unit go together.
    pub fn mapped_run(&self, sector: u64, end: u64) -> (bool, u64) {
        let end = end.min(self.user_sectors());
        let at = self.rules().map_or(Located { data: Some(sector), end }, |rules| rules.locate(sector, end));
        let Some(first) = at.data else { return (false, at.end) };
        let (kind, to) = self.mapped_run_of_data(first, first + (at.end - sector));
        (kind, sector + (to - first))
    }

    /// Bytes of the address space that hold data, in the buffer or on flash. It looks at every mapping unit; a design that maps few of
    /// many addresses passes over those that it has not.
    pub fn mapped_bytes(&self) -> u64 {
        let (mut mapped, mut sector, end) = (0, 0, self.user_sectors());
        while sector < end {
            let (is_mapped, to) = self.mapped_run(sector, end);
            mapped += if is_mapped { to - sector } else { 0 };
            sector = to;
        }
        mapped * SECTOR_BYTES
    }

    fn mapped_run_of_data(&self, sector: u64, end: u64) -> (bool, u64) {
        let buffer = self.stage.buffer.as_ref();
        let mapped = |lpn: Lpn| buffer.is_some_and(|buffer| buffer.find(lpn).is_some()) || self.ftl.is_mapped(lpn);
        let first = Lpn((sector / self.sectors_per_unit) as u32);
        let behind = Lpn(end.div_ceil(self.sectors_per_unit) as u32);
        let kind = mapped(first);
        let other = if kind {
            Lpn::each(first..behind).find(|lpn| !mapped(*lpn)).unwrap_or(behind)
        } else {
            let on_flash = self.ftl.next_mapped(first, behind);
            buffer.and_then(|buffer| buffer.first_in(first..on_flash)).unwrap_or(on_flash)
        };
        (kind, (u64::from(other.0) * self.sectors_per_unit).min(end))
    }

    /// Takes a request at `request.at`; events before that time must have run.
    #[inline]
    pub fn submit(&mut self, request: &Request) {
        self.submit_with(request, Data::Nothing);
    }

    /// Takes a request with data at `request.at`; events before that time must have run. Data is ignored where contents
    /// are not kept.
    pub fn submit_with(&mut self, request: &Request, data: Data<'_>) {
        let taken = match self.in_range(request) {
            false => Err(Status::OutOfRange),
            true if self.admission.is_some() => self.admit(request, None).map(|admitted| Some(admitted.sectors)),
            true => Ok(None),
        };
        self.arrives(request, data, None, taken);
    }

    /// A command arrives. It was taken, with the sectors of its data where a set's rules took it, or refused.
    #[inline]
    fn arrives(
        &mut self,
        request: &Request,
        data: Data<'_>,
        set_state: Option<Box<SetCommandState>>,
        taken: Result<Option<Range<u64>>, Status>,
    ) {
        assert!(request.at >= self.media.now, "a request arrives at {}, in the past of {}", request.at, self.media.now);
        debug_assert!(self.next_event().is_none_or(|at| at >= request.at), "earlier events have run");
        self.media.now = request.at;
        self.commands.outstanding += 1;
        if self.idle.at.take().is_some() || self.commands.outstanding == 1 || self.idle.work.is_on() {
            self.gc.set_background(false);
            self.load_has_grown();
        }
        let command = self.new_command(request, data, set_state, taken.is_ok());
        match taken {
            Ok(None) => {}
            Ok(Some(sectors)) => self.enter_order(command, sectors),
            Err(status) => return self.turn_away(command, status),
        }
        let queue = self.commands[command].queue;
        if self.host.interface.arrive(command, queue, request.op) {
            self.enter(command);
        }
    }

    /// A command ends before it enters the drive.
    #[cold]
    fn turn_away(&mut self, command: u32, status: Status) {
        self.commands[command].status = status;
        self.commands.number(command);
        self.report(command);
    }

    /// Whether all of a request is on the drive, whatever its numbers.
    #[inline]
    fn in_range(&self, request: &Request) -> bool {
        request.sector.checked_add(request.sectors).is_some_and(|end| end <= self.user_sectors())
    }

    fn new_command(
        &mut self,
        request: &Request,
        data: Data<'_>,
        set_state: Option<Box<SetCommandState>>,
        accepted: bool,
    ) -> u32 {
        let per_sector = self.media.flash.store.sector_data_bytes();
        let brings_data =
            set_state.as_ref().map_or(request.op == Op::Write, |set_state| set_state.brings_data(request));
        let sector_data =
            if per_sector > 0 && accepted && brings_data { data.sector_data(request, per_sector) } else { Vec::new() };
        let queue = self.host.interface.queue_of(request.queue);
        // In place: a command is large, and this is on the path of every request.
        let slot = self.commands.slots.take();
        let command = &mut self.commands[slot];
        command.begin(request, queue);
        if sector_data.is_empty() {
            command.sector_data.clear();
        } else {
            command.sector_data = sector_data;
        }
        command.set_state = set_state;
        debug_assert_eq!(self.commands.slots.len() as u64, self.commands.outstanding, "each command has a slot");
        self.leaves_room(slot);
        if let Some(paths) = &mut self.paths {
            paths.begin(slot, request);
        }
        slot
    }

    /// A command enters the drive: its overhead, and its data if it brings some, come before its dispatch.
    #[inline]
    fn enter(&mut self, command: u32) {
        let mut ready = self.media.now;
        let (mut processed, mut data) = (ready, 0);
        if self.media.flash.timed() {
            data = self.commands[command].bytes_in();
            let overhead = self.host.interface.overhead(self.commands[command].request.op);
            if self.media.processor.is_some() {
                return self.enter_by_processor(command, data, ready + overhead);
            }
            processed = self.host.interface.process(ready + overhead);
            ready = self.host.interface.transfer(processed, data, Direction::ToDrive);
        }
        if self.paths.is_some() {
            self.path_enters(command, (processed, self.host.interface.processing()), data, ready);
        }
        debug_assert!(ready >= self.media.now, "command {command} is dispatched at {ready}, in the past");
        if ready > self.media.now {
            self.timers.set(ready, Timer::Dispatch(command));
        } else {
            self.dispatch(command);
        }
    }

    /// One of the things a command waits for has come.
    #[inline]
    fn release_command(&mut self, command: u32) {
        let state = &mut self.commands[command];
        debug_assert!(state.remaining > 0, "command {command} waits for nothing, and something came for it");
        state.remaining -= 1;
        if state.remaining == 0 {
            self.finish(command);
        }
    }

    /// All is done inside the drive; a read's data still crosses the link.
    #[inline(always)]
    fn finish(&mut self, command: u32) {
        debug_assert_eq!(self.commands[command].remaining, 0, "command {command} ends, and waits for something");
        debug_assert_eq!(self.commands[command].wanted_sectors, 0, "command {command} ends, and wants room");
        if self.media.lists_owners() && self.awaits_lists(command) {
            return;
        }
        if self.stage.caches_reads {
            self.keep_read(command);
        }
        self.wait_ended(command);
        let bytes = self.commands[command].bytes_out();
        if self.media.processor.is_some() {
            return self.finish_by_processor(command, bytes);
        }
        if bytes > 0 && self.media.flash.timed() {
            let ready = self.host.interface.transfer(self.media.now, bytes, Direction::ToHost);
            if ready > self.media.now {
                self.path_to_host(command, bytes, ready);
                self.timers.set(ready, Timer::Complete(command));
                return;
            }
        }
        self.complete(command);
    }

    #[inline]
    fn complete(&mut self, command: u32) {
        let queue = self.commands[command].queue;
        self.report(command);
        self.host.interface.leave(queue);
        // A command that takes no time completes inside `enter`: the outermost call lets them all in, one by one.
        if !std::mem::replace(&mut self.host.admitting, true) {
            while let Some(next) = self.host.interface.next() {
                self.enter(next);
            }
            self.host.admitting = false;
        }
    }

    /// The completion goes to the host.
    #[inline(always)]
    fn report(&mut self, command: u32) {
        debug_assert!(self.commands.outstanding > 0, "command {command} ends, and none is outstanding");
        let state = &mut self.commands[command];
        let request = state.request;
        let (status, order) = (state.status, state.order);
        debug_assert!(request.at <= self.media.now, "command {command} came at {}, and ends before", request.at);
        let sectors = state.set_state.as_ref().map_or(request.sectors, |set_state| set_state.addressed_sectors());
        let bytes = sectors.saturating_mul(SECTOR_BYTES);
        let kind = request.op.class();
        if request.op == Op::Read && !state.sector_data.is_empty() {
            let mut sector_data = std::mem::take(&mut state.sector_data);
            if let Some(set_state) = &state.set_state {
                set_state.tell_absent(&request, self.sectors_per_unit, &mut sector_data);
            }
            self.host.read_data.push((request.tag, sector_data));
        }
        let has_answer = state.set_state.is_some() && self.answer(command);
        self.counters.commands[kind] += 1;
        if status == Status::Success {
            self.counters.bytes[kind] += bytes;
        } else {
            self.counters.failed_commands += u64::from(status.is_error());
            if let Status::Refused(Refusal(reason)) = status {
                self.counters.refused[usize::from(reason)] += 1;
            }
        }
        if let Some(paths) = &mut self.paths {
            paths.close(command);
        }
        self.commands.slots.release(command);
        self.commands.outstanding -= 1;
        if self.commands.outstanding <= self.idle.work.light_load() && self.media.flash.timed() {
            self.load_has_fallen();
        }
        self.host.completions.push(Completion {
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

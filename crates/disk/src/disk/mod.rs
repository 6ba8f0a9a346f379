//! The disk: its commands, what the heads do next, and power.
//!
//! ```text
//!   submit -> wait for a place in the queue -> controller, data over the link -> take effect -> heads, if need be -> complete
//! ```
//!
//! Every write goes to the write cache when it takes effect, and from there to the medium. A write ends then if the cache is
//! on and the write is no FUA write, otherwise when its sectors are on the medium. What a read returns is decided when it takes
//! effect: the newest data of its sectors.

mod commands;
mod heads;
mod power;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use ssdlab_base::{Nanos, Op, Request, SECTOR_BYTES};
use ssdlab_device::{Check, Completion, Data, Status};
use ssdlab_flash::{Contents as Payload, Folder, ImageError, Lifeline};

use crate::cache::WriteCache;
use crate::config::DiskConfig;
use crate::contents::Contents;
use crate::counters::DiskCounters;
use crate::link::Link;
use crate::mechanism::{Mechanism, Track};
use crate::medium::{ImageFile, Medium};
use crate::segments::Segments;

use commands::Command;
use heads::Operation;

/// What happens at a point in time.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A command takes effect.
    Dispatch(u32),
    /// The heads have done what they were doing.
    Heads,
    /// The heads have rested long enough to write cached data.
    Rested,
    /// A command completes.
    Complete(u32),
}

/// A hard disk.
pub struct Disk {
    config: DiskConfig,
    payload: Payload,
    mechanism: Mechanism,
    link: Link,
    now: Nanos,
    /// By time, then in the order in which they were made.
    events: BTreeMap<(Nanos, u64), Event>,
    events_made: u64,

    commands: Vec<Command>,
    free: Vec<u32>,
    /// Commands that wait for a place in the queue.
    waiting: VecDeque<u32>,
    in_disk: u32,
    /// A command that is not queued is in the disk.
    is_exclusive: bool,
    /// Writes that wait for space in the write cache.
    no_space: VecDeque<u32>,
    /// Commands that wait for the heads, in the order in which they took effect.
    for_heads: VecDeque<u32>,
    /// The flush in the disk.
    flush: Option<u32>,
    outstanding: u64,
    orders: u64,
    /// Whether commands take time; otherwise each ends when it is submitted, and its data is on the medium.
    is_timed: bool,

    /// What is on the medium.
    medium: Medium,
    cache: WriteCache,
    /// Writes that took effect.
    writes: u64,
    segments: Segments,
    /// What the heads are doing.
    operation: Option<Operation>,
    /// The track of the heads when they are at rest.
    track: Track,
    /// The sector behind the last one that they passed: from there on, cached writes are looked at.
    behind: u64,
    /// Operations that wrote since the oldest cached data was written because of its age.
    since_oldest: u64,
    /// When the last read was to be done, in nanoseconds.
    last_read: u64,
    rested_at: Option<Nanos>,

    counters: DiskCounters,
    /// Reads that waited for the heads when the counters were set to zero.
    reads_before: u64,
    completions: Vec<Completion>,
    read_data: Vec<(u32, Vec<u8>)>,
}

impl Disk {
    /// A disk that nothing was written to.
    pub fn new(config: &DiskConfig, payload: Payload) -> Disk {
        let per_sector = payload.sector_data_bytes();
        Disk {
            config: config.clone(),
            payload,
            mechanism: Mechanism::new(config),
            link: Link::new(config),
            now: Nanos::ZERO,
            events: BTreeMap::new(),
            events_made: 0,
            commands: Vec::new(),
            free: Vec::new(),
            waiting: VecDeque::new(),
            in_disk: 0,
            is_exclusive: false,
            no_space: VecDeque::new(),
            for_heads: VecDeque::new(),
            flush: None,
            outstanding: 0,
            orders: 0,
            is_timed: true,
            medium: Medium::Memory(Contents::new(per_sector)),
            cache: WriteCache::new(per_sector),
            writes: 0,
            segments: Segments::new(&config.read_cache, config.sectors),
            operation: None,
            track: Track::default(),
            behind: 0,
            since_oldest: 0,
            last_read: 0,
            rested_at: None,
            counters: DiskCounters::default(),
            reads_before: 0,
            completions: Vec::new(),
            read_data: Vec::new(),
        }
    }

    /// A disk whose sectors are in a file of a folder, with all their bytes; the second is whether the file is new. Its caches are empty,
    /// as after a power cut.
    ///
    /// # Errors
    /// The file is in use, or not that of a disk of this size.
    pub fn on_image(config: &DiskConfig, folder: Folder) -> Result<(Disk, bool), ImageError> {
        let (image, fresh) = ImageFile::open(folder, config.sectors)?;
        Ok((Disk { medium: Medium::Image(Box::new(image)), ..Disk::new(config, Payload::Bytes) }, fresh))
    }

    /// Puts what is on the medium into the image's file, where there is one; false if it cannot take it: no answer may tell of it.
    pub fn persist(&mut self) -> bool {
        self.medium.persist()
    }

    /// The disk's process ends with `lifeline`, in a write to the image's file, where there is one.
    pub fn end_with(&mut self, lifeline: &Lifeline) {
        self.medium.end_with(lifeline);
    }

    /// Bytes that the image's file takes on the host's file system; `None` without an image.
    pub fn image_bytes(&self) -> Option<u64> {
        self.medium.image_bytes()
    }

    /// What it was made with.
    pub const fn config(&self) -> &DiskConfig {
        &self.config
    }

    /// Capacity in sectors of 512 bytes.
    pub const fn sectors(&self) -> u64 {
        self.config.sectors
    }

    /// Bytes that it keeps of a sector's contents: 512, 8 for stamps, 0 where it keeps none.
    pub const fn sector_data_bytes(&self) -> usize {
        self.payload.sector_data_bytes()
    }

    /// Virtual time.
    pub const fn now(&self) -> Nanos {
        self.now
    }

    /// Requests submitted and not completed.
    pub const fn outstanding(&self) -> u64 {
        self.outstanding
    }

    /// What it has done.
    pub const fn counters(&self) -> DiskCounters {
        self.counters
    }

    /// Sets all counters to zero.
    pub fn reset_statistics(&mut self) {
        self.counters = DiskCounters::default();
        self.reads_before = self.reads_for_heads();
    }

    /// The host begins anew: everything comes to rest, counters and virtual time are zero, and commands are numbered from 0. Data, the
    /// place of the heads and what was read ahead stay as far as time does not enter.
    ///
    /// # Panics
    /// A command is outstanding.
    pub fn restart(&mut self) {
        self.come_to_rest();
        self.reset_statistics();
        self.reset_order();
        self.now = Nanos::ZERO;
        self.last_read = 0;
        self.link.clear();
        self.segments.clear();
    }

    /// Commands are numbered from 0 from now on.
    pub const fn reset_order(&mut self) {
        self.orders = 0;
    }

    /// Whether commands take time.
    pub const fn is_timed(&self) -> bool {
        self.is_timed
    }

    /// Sets whether commands take time from now on. Without time a command ends when it is submitted, and its data is on the medium.
    ///
    /// # Panics
    /// A command is outstanding.
    pub fn set_timed(&mut self, timed: bool) {
        self.come_to_rest();
        self.is_timed = timed;
    }

    /// Lets the heads write what is cached.
    fn come_to_rest(&mut self) {
        assert_eq!(self.outstanding, 0, "a disk comes to rest without commands");
        while self.next_event().is_some() {
            self.step();
        }
    }

    fn reads_for_heads(&self) -> u64 {
        self.for_heads.iter().filter(|slot| self.commands[**slot as usize].op == Op::Read).count() as u64
    }

    /// Completions since the last drain; the caller clears it. They are numbered in the order in which commands took effect.
    pub fn completions(&mut self) -> &mut Vec<Completion> {
        &mut self.completions
    }

    /// Tags and bytes of completed reads, where contents are kept, in the order of the completions; the caller clears it.
    pub fn read_data(&mut self) -> &mut Vec<(u32, Vec<u8>)> {
        &mut self.read_data
    }

    /// Bytes of memory at most that a disk takes for contents once `written` of its sectors were written: what a run counts on.
    pub fn simulator_bytes(config: &DiskConfig, payload: Payload, written: u64) -> u64 {
        Contents::most_bytes(payload.sector_data_bytes() as u64, config.sectors, written)
    }

    /// Bytes of memory that contents take. It follows what was written.
    pub fn memory_bytes(&self) -> u64 {
        self.medium.there().memory_bytes()
    }

    /// The sector's contents on the medium alone, which a power cut leaves; zeroes where nothing was written.
    pub fn on_medium(&self, sectors: &Range<u64>) -> Vec<u8> {
        let mut data = vec![0; (sectors.end - sectors.start) as usize * self.sector_data_bytes()];
        self.medium.read(sectors, &mut data);
        data
    }

    /// Whether `sector` holds data, and the first sector up to `end` from which on that is different.
    pub fn mapped_run(&self, sector: u64, end: u64) -> (bool, u64) {
        let end = end.min(self.sectors());
        if sector >= end {
            return (false, end);
        }
        let (mut kind, mut next) = (None, sector);
        while next < end {
            let in_flight = self.operation.as_ref().map_or((false, end), |operation| operation.run(next, end));
            let runs = [self.medium.there().run(next, end), self.cache.run(next, end), in_flight];
            let mapped = runs.iter().any(|(there, _)| *there);
            if *kind.get_or_insert(mapped) != mapped {
                break;
            }
            // Where one of them holds data there is data; where none does, the first that does ends the run.
            let ends = runs.iter().filter(|(there, _)| *there == mapped).map(|(_, to)| *to);
            next = if mapped { ends.max() } else { ends.min() }.unwrap_or(end);
        }
        (kind == Some(true), next)
    }

    /// Takes a request with its data at `request.at`; events before that time must have run. Trim and write zeroes end as
    /// [`Status::Unsupported`].
    ///
    /// # Panics
    /// The request arrives in the past.
    pub fn submit(&mut self, request: &Request, data: Data<'_>) {
        assert!(request.at >= self.now, "a request arrives at {}, in the past of {}", request.at, self.now);
        debug_assert!(self.next_event().is_none_or(|at| at >= request.at), "earlier events have run");
        self.now = request.at;
        self.outstanding += 1;
        let in_range = request.sector.checked_add(request.sectors).is_some_and(|end| end <= self.sectors());
        let refused = match request.op {
            Op::Trim | Op::WriteZeroes => Some(Status::Unsupported),
            Op::Read | Op::Write if !in_range => Some(Status::OutOfRange),
            _ if !request.opcode.is_block() => Some(Status::Unsupported),
            _ => None,
        };
        self.arrives(request, data, refused);
    }

    /// When something happens next; `None` when nothing will.
    pub fn next_event(&self) -> Option<Nanos> {
        self.events.first_key_value().map(|((at, _), _)| *at)
    }

    fn schedule(&mut self, at: Nanos, event: Event) {
        assert!(at >= self.now, "{event:?} at {at} is in the past of {}", self.now);
        self.events_made += 1;
        self.events.insert((at, self.events_made), event);
    }

    fn step(&mut self) {
        let Some(((at, _), event)) = self.events.pop_first() else { return };
        assert!(at >= self.now, "time does not go back from {} to {at}", self.now);
        self.now = at;
        match event {
            Event::Dispatch(slot) => self.dispatch(slot),
            Event::Heads => self.heads_are_done(),
            Event::Rested => {
                self.rested_at = None;
                self.use_heads();
            }
            Event::Complete(slot) => self.complete(slot),
        }
    }

    /// Runs every event up to and including `until`; virtual time is `until` then.
    pub fn run_until(&mut self, until: Nanos) {
        while self.next_event().is_some_and(|at| at <= until) {
            self.step();
        }
        self.now = self.now.max(until);
    }

    /// Runs events up to `until` but stops as soon as a completion is there; true if one is. Virtual time is that of the last
    /// event then.
    pub fn run_to_completion(&mut self, until: Nanos) -> bool {
        while self.completions.is_empty() && self.next_event().is_some_and(|at| at <= until) {
            self.step();
        }
        if self.completions.is_empty() {
            self.now = self.now.max(until);
        }
        !self.completions.is_empty()
    }

    /// The newest data of sectors: that of the cache, of what is on its way to the medium, and of the medium.
    fn newest(&self, range: &Range<u64>) -> Vec<u8> {
        use crate::seeded::{DiskBug, seeded};
        let mut data = self.on_medium(range);
        if let Some(operation) = self.operation.as_ref().filter(|_| !seeded(DiskBug::ReadPastOperation)) {
            operation.read(range, self.sector_data_bytes(), &mut data);
        }
        if !seeded(DiskBug::ReadPastCache) {
            self.cache.read(range, &mut data);
        }
        data
    }

    /// Sectors of written data that are not on the medium.
    fn unwritten(&self) -> u64 {
        self.cache.sectors() + self.operation.as_ref().map_or(0, Operation::sectors_to_write)
    }

    /// Its invariants.
    pub fn check(&self) -> Vec<Check> {
        let check = |name, passed, detail| Check { name, passed, detail };
        let (capacity, most) = (self.sectors(), self.config.write_cache.bytes / SECTOR_BYTES);
        let last = self.medium.there().last().max(self.cache.last());
        let is_within = last.is_none_or(|last| last < capacity);
        let in_use = (self.commands.len() - self.free.len()) as u64;
        let unwritten = self.unwritten();
        let counters = &self.counters;
        // Counters of a saved state may be anything.
        let sum = |all: &[u64]| all.iter().map(|one| u128::from(*one)).sum::<u128>();
        let waiting = self.reads_for_heads();
        let served =
            sum(&[counters.media_reads, counters.read_hits, counters.write_cache_hits, counters.aborted_reads]);
        let reads = sum(&[counters.commands[Op::Read.class()], self.reads_before]);
        vec![
            check(
                "disk_contents_are_consistent",
                self.medium.there().is_consistent() && is_within,
                format!(
                    "{} sectors are on the medium, of {capacity}; the last is {last:?}",
                    self.medium.there().sectors()
                ),
            ),
            check(
                "disk_write_cache_is_consistent",
                self.cache.is_consistent(),
                format!(
                    "{} sectors are in the write cache, {unwritten} are to be written, of {most}",
                    self.cache.sectors()
                ),
            ),
            check(
                "disk_read_cache_is_consistent",
                self.segments.is_consistent(),
                "segments are on the disk".to_string(),
            ),
            check(
                "disk_commands_are_outstanding_ones",
                in_use == self.outstanding && u64::from(self.in_disk) + self.waiting.len() as u64 == in_use,
                format!("{in_use} commands are known, {} in the disk, {} outstanding", self.in_disk, self.outstanding),
            ),
            check(
                "disk_reads_are_served_once",
                reads == served + u128::from(waiting),
                format!("{reads} reads, {served} served, {waiting} waiting for the heads"),
            ),
        ]
    }
}

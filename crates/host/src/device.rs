//! What a device is asked, in three traits: the data path, administration, and power.
//!
//! ```text
//!   BlockDevice       requests in, completions and bytes out, in virtual time
//!   Administration    who it is, what its layers and drives have done, clocks and observers
//!   Power             cuts, and what a served device keeps when the process ends
//! ```
//!
//! A drive in a stack ([`Member`]) is all three, and so is every layer; [`Device`] is their sum. A bare [`Drive`] has
//! the first two, so that a replay of one drive calls it directly. Code that runs, serves or checks a stack uses these
//! alone: a drive or a disk inside one is reached as a [`Part`], by name, for its counters and its chips, never for data.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::vec::IntoIter;

use serde::{Deserialize, Serialize};
use ssdlab_base::command_sets::zoned::{Zone, ZoneShape};
use ssdlab_base::{Answer, CommandSet, Event, Nanos, Request, SECTOR_BYTES};
use ssdlab_device::critical_path::Path;
use ssdlab_device::{Check, Completion, Counters, Data, Drive, Options, Payload, Status};
use ssdlab_disk::Disk;
use ssdlab_flash::Flash;

use crate::Member;

/// Requests and their bytes by kind: reads, writes, trims (write zeroes among them), flushes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// How many.
    pub requests: [u64; 4],
    /// Their bytes.
    pub bytes: [u64; 4],
}

impl Traffic {
    /// Counts one.
    pub fn add(&mut self, request: &Request) {
        let kind = request.op.class();
        self.requests[kind] += 1;
        self.bytes[kind] += request.bytes();
    }

    /// Counts one that has ended so. One that found nothing has no bytes, as a drive counts it.
    pub(crate) fn add_ended(&mut self, request: &Request, status: Status) {
        let sectors = if status == Status::Absent { 0 } else { request.sectors };
        self.add(&Request { sectors, ..*request });
    }

    /// Adds what another device took.
    pub fn merge(&mut self, other: &Traffic) {
        let each = |to: &mut [u64; 4], from: &[u64; 4]| to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        each(&mut self.requests, &other.requests);
        each(&mut self.bytes, &other.bytes);
    }
}

/// Answers of a device that go to their completions one by one. A layer that gives tags of its own keeps answers with
/// the tags from above beside these, which have the device's tags. The two overlap, so a tag alone does not find an
/// answer.
pub struct AnswersBelow(Peekable<IntoIter<Answer>>);

impl AnswersBelow {
    /// Those that the device has now, behind its completions.
    pub fn take<D: BlockDevice + ?Sized>(device: &mut D) -> AnswersBelow {
        let mut answers = Vec::new();
        device.take_answers(&mut answers);
        AnswersBelow(answers.into_iter().peekable())
    }

    /// The answer of the next completion, if it has one.
    ///
    /// # Panics
    /// The device does not give answers in the order of the completions that have one.
    pub fn of(&mut self, completion: &Completion) -> Option<Answer> {
        let answer = self.0.next_if(|answer| answer.tag == completion.tag);
        assert_eq!(answer.is_some(), completion.has_answer, "answers come in the order of {completion:?}");
        answer
    }

    /// Whether the device had none.
    pub fn is_empty(&self) -> bool {
        self.0.len() == 0
    }

    /// Every completion had its turn.
    ///
    /// # Panics
    /// An answer is left.
    pub fn end(mut self) {
        assert!(self.0.next().is_none(), "an answer belongs to a completion");
    }
}

/// The counter of a layer that moves data: bytes that it copied of its own accord.
pub const COPIED_BYTES: &str = "copied_bytes";

/// What a layer did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LayerMetrics {
    /// Its kind, as descriptions name it.
    pub kind: String,
    /// Its settings, as descriptions say them, everything filled in.
    pub configuration: BTreeMap<String, String>,
    /// Requests that it took from above.
    pub taken: Traffic,
    /// Requests that it sent to the devices below.
    pub sent: Traffic,
    /// What these say that they took; a drive counts the bytes of what succeeded only.
    #[serde(default)]
    pub below: Traffic,
    /// Its own counters; results call them `metrics`.
    #[serde(rename = "metrics")]
    pub figures: BTreeMap<String, f64>,
    /// What is not as it should be, a sentence each: a side of a mirror that was dropped, or is behind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub degraded: Vec<String>,
    /// What of its counters a reader of a run's rates has to know, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// It makes its devices equal again, and goes on with it while no request comes.
    #[serde(skip)]
    pub is_resyncing: bool,
    /// The commands that it sent, where its description asks for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commands: Option<CommandList>,
}

impl LayerMetrics {
    /// Bytes that it copied of its own accord, where it counts them.
    pub fn copied_bytes(&self) -> Option<f64> {
        self.figures.get(COPIED_BYTES).copied()
    }
}

/// Commands that a layer sent, in columns, the first ones of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CommandList {
    /// When each was sent.
    pub time_ns: Vec<u64>,
    /// What it is, in the layer's words.
    pub kind: Vec<String>,
    /// The first unit that it accesses; units behind the user's are the log's.
    pub first: Vec<u64>,
    /// The unit behind the last one.
    pub end: Vec<u64>,
    /// How many units from the first to the last it accesses.
    pub entries: Vec<u64>,
}

impl CommandList {
    /// Adds one.
    pub fn push(&mut self, at: Nanos, kind: &str, first: u64, end: u64, entries: u64) {
        self.time_ns.push(at.0);
        self.kind.push(kind.to_string());
        self.first.push(first);
        self.end.push(end);
        self.entries.push(entries);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.time_ns.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.time_ns.is_empty()
    }
}

/// The data path: what takes requests at points in virtual time and completes them.
pub trait BlockDevice: Send {
    /// Capacity in sectors of 512 bytes.
    fn sectors(&self) -> u64;

    /// Sectors behind the capacity that commands of [`command_set`](BlockDevice::command_set) address.
    fn reserved_sectors(&self) -> u64 {
        0
    }

    /// Bytes that it keeps of a sector's contents: 512, 8 for stamps, 0 where it keeps none.
    fn sector_data_bytes(&self) -> usize;

    /// Whether it takes trims and writes of zeroes. A device without ends them as [`ssdlab_device::Status::Unsupported`].
    fn trims(&self) -> bool {
        true
    }

    /// Virtual time.
    fn now(&self) -> Nanos;

    /// Takes a request at `request.at`; events before that time must have run. Data goes with writes.
    fn submit(&mut self, request: &Request, data: Data<'_>);

    /// The commands and events that it knows beyond block I/O.
    fn command_set(&self) -> Option<&'static CommandSet> {
        None
    }

    /// Sectors from the start of an append-only segment, or of a zone, to that of the next one. No command crosses from one to
    /// another. `None` of a device without.
    fn segment_sectors(&self) -> Option<u64> {
        None
    }

    /// What its zones have in common, of a device that has zones.
    fn zones(&self) -> Option<ZoneShape> {
        None
    }

    /// One of its zones, as the commands that arrived leave it.
    fn zone(&self, number: u64) -> Option<Zone> {
        let _ = number;
        None
    }

    /// Takes block I/O or a command of [`command_set`](BlockDevice::command_set) at `request.at`; events before that
    /// time must have run, as for [`submit`](BlockDevice::submit). The payload has the data of a write and the words of
    /// a command.
    ///
    /// # Panics
    /// A command of a set, where the device has none.
    fn submit_command(&mut self, request: &Request, payload: Payload<'_>) {
        assert!(request.opcode.is_block(), "a device without a command set takes block I/O and nothing else");
        self.submit(request, payload.data);
    }

    /// Moves the answers of commands of the set that have completed to the end of `to`, in the order of the completions that
    /// have one.
    fn take_answers(&mut self, to: &mut Vec<Answer>) {
        let _ = to;
    }

    /// Moves the events that the host has not seen to the end of `to`, in their order.
    fn take_events(&mut self, to: &mut Vec<Event>) {
        let _ = to;
    }

    /// Keeps what a stamp means that is written at `sector`, where the device keeps a stamp of a sector and not its contents: so a
    /// layer finds its own records. A stamp has one meaning. The last few of a sector are kept: a power cut may bring back what was
    /// there before.
    fn keep_meaning(&mut self, sector: u64, stamp: u64, words: &[u64]) {
        let _ = (sector, stamp, words);
    }

    /// What this stamp means at `sector`; `None` if no such meaning is kept.
    fn meaning(&self, sector: u64, stamp: u64) -> Option<Vec<u64>> {
        let _ = (sector, stamp);
        None
    }

    /// Keeps the bytes of a record that was written from `sector` on, where the device does not keep the bytes of sectors: so a host
    /// finds its own metadata in every payload mode. The host calls it after it has submitted the write. A later write or TRIM of
    /// that sector drops the record; the record before it is not kept, so tests of power cuts use drives that keep bytes. A layer keeps
    /// records itself and sends none below: what it holds, splits or joins does not matter to them.
    fn keep_record(&mut self, sector: u64, bytes: &[u8]) {
        let _ = (sector, bytes);
    }

    /// The host needs the record at `sector` no more.
    fn drop_record(&mut self, sector: u64) {
        let _ = sector;
    }

    /// The record that was kept at `sector`, without the zeroes at its end.
    fn record(&self, sector: u64) -> Option<&[u8]> {
        let _ = sector;
        None
    }

    /// Memory that records take, for estimates.
    fn record_bytes(&self) -> u64 {
        0
    }

    /// These requests will come soon: a hint that changes nothing.
    fn prefetch(&mut self, requests: &[Request]) {
        let _ = requests;
    }

    /// The caller waits for requests that it has submitted: no layer holds them back for others to join, as a block layer with a plug
    /// does.
    fn unplug(&mut self) {}

    /// When something happens next; `None` when nothing will.
    fn next_event(&self) -> Option<Nanos>;

    /// Runs every event up to and including `until`; virtual time is `until` then.
    fn run_until(&mut self, until: Nanos);

    /// Runs events up to `until` but stops as soon as a completion, or an event for the host, is there; true if one is.
    /// Virtual time is that of the last event then. A loop that calls this takes the events as well as the completions:
    /// an event that is not taken stops every call at once.
    fn run_to_completion(&mut self, until: Nanos) -> bool;

    /// Runs events up to `until` for a host of block I/O alone, and stops as soon as a completion is there; true only
    /// if one is. It calls [`run_to_completion`](BlockDevice::run_to_completion), and takes and drops the events for
    /// the host.
    ///
    /// # Panics
    /// The device stopped without a completion or an event.
    fn wait_for_completion(&mut self, until: Nanos) -> bool {
        while self.run_to_completion(until) {
            if !self.completions().is_empty() {
                return true;
            }
            assert!(self.drop_events() > 0, "the device stopped at {} without a completion or an event", self.now());
        }
        false
    }

    /// Takes the events that the host has not seen and drops them; how many there were. The device keeps those that have
    /// to be acknowledged.
    fn drop_events(&mut self) -> usize {
        let mut events = Vec::new();
        self.take_events(&mut events);
        events.len()
    }

    /// Requests submitted and not completed.
    fn outstanding(&self) -> u64;

    /// Completions since the last drain; the caller clears it.
    ///
    /// They are numbered in the order in which they took effect, in steps of [`order_stride`](BlockDevice::order_stride).
    fn completions(&mut self) -> &mut Vec<Completion>;

    /// Moves the paths of the completions since the last call to the end of `to`, in the same order; nothing where they
    /// are not recorded. A layer puts its own time before what the device below says.
    fn take_paths(&mut self, to: &mut Vec<Path>);

    /// Tags and bytes of completed reads, where contents are kept, in the order of the completions; the caller clears it.
    fn read_data(&mut self) -> &mut Vec<(u32, Vec<u8>)>;

    /// Whether `sector` holds data, and the first sector up to `end` from which on that is different.
    fn mapped_run(&self, sector: u64, end: u64) -> (bool, u64);

    /// Requests whose [`Completion::order`] lies in the same multiple of this took effect in one step of the drive's, and
    /// complete together; steps have no gaps. 1 for a drive.
    fn order_stride(&self) -> u64;
}

/// Who a device is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// A drive's name; for a layer, that of what is below it.
    pub name: String,
    /// Its design, where it is a drive.
    pub design: String,
    /// The unit in which it likes to be written, in bytes: a power of two, at least 512.
    pub unit_bytes: u32,
    /// It models time.
    pub is_timed: bool,
    /// A completed write may be lost with the power until it is flushed.
    pub has_write_cache: bool,
    /// A completed write may be lost with the host alone until it is flushed.
    pub has_host_cache: bool,
}

impl Identity {
    /// Whether a completed write may be lost until it is flushed, with the power or with the host alone.
    pub const fn may_lose_completed(&self) -> bool {
        self.has_write_cache || self.has_host_cache
    }
}

/// A drive or a disk at the bottom of a stack, borrowed to look at it, or mutably to attach observers and set clocks: its
/// data belongs to the layers above.
pub struct Part<D> {
    /// What the stack calls it.
    pub name: String,
    /// The drive or the disk.
    pub device: D,
}

/// The seed of a stack's drive by its place: drives of one kind do not do the same at the same time. The first has the
/// stack's own.
pub fn seed_of(seed: u64, index: usize) -> u64 {
    seed.wrapping_add((index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Administration: what a device says of itself, and how its model is set.
pub trait Administration {
    /// Who it is.
    fn identify(&self) -> Identity;

    /// What the layers have done up to now, the topmost first; nothing for a drive.
    fn layers(&self) -> Vec<LayerMetrics>;

    /// What it took from above and has ended; a drive counts the bytes of what succeeded only.
    fn taken(&self) -> Traffic;

    /// The drives at the bottom, from left to right.
    fn drives(&self) -> Vec<Part<&Drive>>;

    /// The drives at the bottom, from left to right, to change.
    fn drives_mut(&mut self) -> Vec<Part<&mut Drive>>;

    /// The disks at the bottom, from left to right.
    fn disks(&self) -> Vec<Part<&Disk>> {
        Vec::new()
    }

    /// The disks at the bottom, from left to right, to change.
    fn disks_mut(&mut self) -> Vec<Part<&mut Disk>> {
        Vec::new()
    }

    /// What the stack calls its drives, and then its disks.
    fn member_names(&self) -> Vec<String> {
        let disks = self.disks().into_iter().map(|part| part.name);
        self.drives().into_iter().map(|part| part.name).chain(disks).collect()
    }

    /// Drives and disks at the bottom.
    fn members(&self) -> usize {
        self.drives().len() + self.disks().len()
    }

    /// Forgets counters and virtual time, and keeps data, maps and wear. Only while nothing is outstanding.
    fn reset_statistics(&mut self);

    /// Counters of all drives together.
    fn counters(&self) -> Counters {
        let mut counters = Counters::default();
        for part in self.drives() {
            counters.add(&part.device.counters());
        }
        counters
    }

    /// Whether a drive has run out of spare blocks and refuses writes.
    fn is_read_only(&self) -> bool {
        self.drives().iter().any(|part| part.device.is_read_only())
    }

    /// Why the first drive that refuses writes does so, as a clause.
    fn read_only_reason(&self) -> Option<String> {
        self.drives().iter().find_map(|part| part.device.read_only_reason())
    }

    /// What drives and disks hold against themselves; a name is preceded by the drive's or disk's where there are several.
    fn check(&self) -> Vec<(String, Check)> {
        let several = self.members() > 1;
        let of_drives = self.drives().into_iter().map(|part| (part.name, part.device.check()));
        let of_disks = self.disks().into_iter().map(|part| (part.name, part.device.check()));
        let named = |(part, checks): (String, Vec<Check>)| {
            let name = |check: &Check| if several { format!("{part}: {}", check.name) } else { check.name.to_string() };
            checks.into_iter().map(|check| (name(&check), check)).collect::<Vec<_>>()
        };
        of_drives.chain(of_disks).flat_map(named).collect()
    }

    /// The host begins anew above devices that kept their power: events that it did not acknowledge come again.
    fn host_restarted(&mut self) {
        self.drives_mut().into_iter().for_each(|part| part.device.host_restarted());
    }

    /// Functional fast-forward: with `false`, operations complete at once and time stands still. Only while idle: a
    /// layer first lets the commands of its own come to their end.
    fn set_timed(&mut self, timed: bool);

    /// Everything random in the drives is drawn from the beginning of the seed's streams from now on.
    fn reseed(&mut self, options: Options) {
        for (index, part) in self.drives_mut().into_iter().enumerate() {
            part.device.reseed(Options { seed: seed_of(options.seed, index), ..options });
        }
    }

    /// Whether paths are recorded from now on: every completion has one then, whatever it ended with. A layer tells the
    /// devices below it, which may be layers, too.
    fn record_paths(&mut self, on: bool);
}

/// What a power cut of one drive may have taken from a host that goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Nothing that had completed.
    Nothing,
    /// What had completed and was neither flushed nor written with FUA.
    Unflushed,
}

/// Says of the chips of a drive that recovers after how many of recovery's operations the power goes again, if it does. A disk has no
/// recovery.
pub type Again<'a> = dyn FnMut(&Flash) -> Option<u64> + 'a;

/// Power: what goes with it, and what a served device keeps when the process ends.
pub trait Power: Administration {
    /// The power of one drive or disk, by its place among both, goes now and comes back, while the host goes on. It goes
    /// again in recoveries as `again` says.
    fn cut(&mut self, member: usize, again: &mut Again<'_>) -> Loss;

    /// The end of the layers, by a host that crashed or lost its power: what they had in memory is gone, and the drives
    /// are left as they are, with what is in flight.
    fn into_members(self: Box<Self>) -> Vec<Member>;

    /// Puts everything that has happened into the images' files, where there are any. A completion that promises any of
    /// it is reported only afterwards. False if one of the files cannot take it: no answer may leave that promises
    /// anything of it.
    fn persist(&mut self) -> bool {
        let mut all = true;
        for part in self.drives_mut() {
            all &= part.device.persist();
        }
        all
    }

    /// The host stops in good order: everything is flushed, nothing is outstanding, and no request comes any more. A layer
    /// writes what spares the next start a recovery.
    fn close(&mut self);

    /// The end of the process: what is not in the images' files by now never will be.
    fn forget(&mut self) {
        self.drives_mut().into_iter().for_each(|part| part.device.forget());
    }

    /// Why an image takes no more, if one does not.
    fn broken_image(&self) -> Option<String> {
        self.drives().iter().find_map(|part| part.device.image()?.broken().map(str::to_string))
    }
}

/// A drive in a stack, or a layer above devices: everything that can be asked.
pub trait Device: BlockDevice + Administration + Power {
    /// Its data path alone.
    fn as_block_device(&mut self) -> &mut dyn BlockDevice;

    /// Its administration alone.
    fn as_administration(&mut self) -> &mut dyn Administration;

    /// Its administration, to look at.
    fn look(&self) -> &dyn Administration;
}

impl<T: BlockDevice + Administration + Power> Device for T {
    fn as_block_device(&mut self) -> &mut dyn BlockDevice {
        self
    }

    fn as_administration(&mut self) -> &mut dyn Administration {
        self
    }

    fn look(&self) -> &dyn Administration {
        self
    }
}

impl BlockDevice for Drive {
    fn command_set(&self) -> Option<&'static CommandSet> {
        Drive::command_set(self)
    }

    fn segment_sectors(&self) -> Option<u64> {
        let config = self.config();
        let of_units = |units: u32| u64::from(units) * u64::from(config.ftl.mapping_unit) / SECTOR_BYTES;
        Drive::zones(self).map(|zones| zones.size).or_else(|| config.segment_units().map(of_units))
    }

    fn zones(&self) -> Option<ZoneShape> {
        Drive::zones(self)
    }

    fn zone(&self, number: u64) -> Option<Zone> {
        Drive::zone(self, number)
    }

    fn submit_command(&mut self, request: &Request, payload: Payload<'_>) {
        Drive::submit_command(self, request, payload);
    }

    fn take_answers(&mut self, to: &mut Vec<Answer>) {
        to.append(self.answers());
    }

    fn take_events(&mut self, to: &mut Vec<Event>) {
        Drive::take_events(self, to);
    }

    #[inline]
    fn sectors(&self) -> u64 {
        self.user_sectors()
    }

    fn reserved_sectors(&self) -> u64 {
        Drive::reserved_sectors(self)
    }

    fn sector_data_bytes(&self) -> usize {
        Drive::sector_data_bytes(self)
    }

    #[inline]
    fn now(&self) -> Nanos {
        Drive::now(self)
    }

    #[inline]
    fn submit(&mut self, request: &Request, data: Data<'_>) {
        self.submit_with(request, data);
    }

    #[inline]
    fn prefetch(&mut self, requests: &[Request]) {
        Drive::prefetch(self, requests);
    }

    #[inline]
    fn next_event(&self) -> Option<Nanos> {
        Drive::next_event(self)
    }

    fn run_until(&mut self, until: Nanos) {
        Drive::run_until(self, until);
    }

    #[inline]
    fn run_to_completion(&mut self, until: Nanos) -> bool {
        Drive::run_to_completion(self, until)
    }

    #[inline]
    fn outstanding(&self) -> u64 {
        Drive::outstanding(self)
    }

    #[inline]
    fn completions(&mut self) -> &mut Vec<Completion> {
        Drive::completions(self)
    }

    fn take_paths(&mut self, to: &mut Vec<Path>) {
        Drive::take_paths(self, to);
    }

    fn read_data(&mut self) -> &mut Vec<(u32, Vec<u8>)> {
        Drive::read_data(self)
    }

    fn mapped_run(&self, sector: u64, end: u64) -> (bool, u64) {
        Drive::mapped_run(self, sector, end)
    }

    fn order_stride(&self) -> u64 {
        1
    }
}

impl Administration for Drive {
    fn identify(&self) -> Identity {
        let config = self.config();
        Identity {
            name: config.name.clone(),
            design: config.ftl.design.clone(),
            unit_bytes: config.ftl.mapping_unit,
            is_timed: config.timed,
            has_write_cache: config.has_volatile_cache(),
            has_host_cache: false,
        }
    }

    fn layers(&self) -> Vec<LayerMetrics> {
        Vec::new()
    }

    fn taken(&self) -> Traffic {
        let counters = Drive::counters(self);
        Traffic { requests: counters.commands, bytes: counters.bytes }
    }

    fn drives(&self) -> Vec<Part<&Drive>> {
        vec![Part { name: self.config().name.clone(), device: self }]
    }

    fn drives_mut(&mut self) -> Vec<Part<&mut Drive>> {
        vec![Part { name: self.config().name.clone(), device: self }]
    }

    fn reset_statistics(&mut self) {
        Drive::reset_statistics(self);
    }

    fn set_timed(&mut self, timed: bool) {
        Drive::set_timed(self, timed);
    }

    fn record_paths(&mut self, on: bool) {
        Drive::record_paths(self, on);
    }

    fn counters(&self) -> Counters {
        Drive::counters(self)
    }
}

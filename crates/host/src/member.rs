//! A drive in a stack: it has a name, and its power can be cut while the host goes on.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use ssdlab_base::command_sets::zoned::{Zone, ZoneShape};
use ssdlab_base::{Answer, CommandSet, Event, Nanos, Request};
use ssdlab_device::critical_path::Path;
use ssdlab_device::{Check, Completion, Counters, Data, Drive, DriveConfig, DriveError, Options, Payload, Recovered};

use crate::device::Again;
use crate::records::Records;
use crate::{Administration, BlockDevice, Device, Identity, LayerMetrics, Loss, Part, PartMut, Power, Traffic};

/// Meanings of a sector that are kept. Each power cut between two writes of a sector may undo one.
const MEANINGS: usize = 16;

/// The stamps that were written to a sector last, the newest behind, and what each means.
type Meanings = VecDeque<(u64, Box<[u64]>)>;

/// A drive of a stack.
pub struct Member {
    name: String,
    options: Options,
    /// Always there, but for the instant of a power cut.
    drive: Option<Drive>,
    /// By sector.
    meanings: FxHashMap<u64, Meanings>,
    /// What a host keeps by address, where the drive keeps no bytes.
    records: Records,
}

impl Member {
    /// A fresh drive.
    ///
    /// # Errors
    /// The configuration is refused.
    pub fn new(name: &str, config: &DriveConfig, options: Options) -> Result<Member, DriveError> {
        Ok(Member::of(name, Drive::new(config, options)?, options))
    }

    /// A drive that is there already; `options` are what it was made with.
    pub fn of(name: &str, drive: Drive, options: Options) -> Member {
        Member {
            name: name.to_string(),
            options,
            drive: Some(drive),
            meanings: FxHashMap::default(),
            records: Records::default(),
        }
    }

    /// A stack of one drive, called after its description.
    pub fn alone(drive: Drive, options: Options) -> Box<dyn Device> {
        let name = drive.config().name.clone();
        Box::new(Member::of(&name, drive, options))
    }

    /// The drive under layers that begin anew: nothing is in it, they count commands from 0, and answers of commands that were sent before
    /// are dropped.
    pub(crate) fn for_a_new_host(mut self) -> Member {
        self.drive_mut().answers().clear();
        self.drive_mut().reset_order();
        self
    }

    fn drive(&self) -> &Drive {
        self.drive.as_ref().expect("the power is on")
    }

    fn drive_mut(&mut self) -> &mut Drive {
        self.drive.as_mut().expect("the power is on")
    }

    /// The power goes and comes back, at once and with no time for the recovery: what was in flight ends with
    /// [`ssdlab_device::Status::Aborted`]. It goes again during recoveries, each time after as many of its operations as
    /// `again` says of the chips, until that says `None` or the recovery is over before.
    pub fn cycle(&mut self, again: &mut Again<'_>) {
        let drive = self.drive.take().expect("the power is on");
        let config = drive.config().clone();
        let (mut flash, left) = drive.lose_power();
        self.drive = Some(loop {
            let until = again(&flash).unwrap_or(u64::MAX);
            let recovered = Drive::recover_in_place(&config, self.options, flash, until, &left);
            match recovered.expect("a drive that was accepted comes back") {
                Recovered::Whole(drive, _) => break *drive,
                Recovered::Cut(chips) => flash = *chips,
            }
        });
        *self.drive_mut().completions() = left.completions;
    }
}

impl BlockDevice for Member {
    fn sectors(&self) -> u64 {
        self.drive().user_sectors()
    }

    fn reserved_sectors(&self) -> u64 {
        self.drive().reserved_sectors()
    }

    fn sector_data_bytes(&self) -> usize {
        self.drive().sector_data_bytes()
    }

    fn now(&self) -> Nanos {
        self.drive().now()
    }

    fn submit(&mut self, request: &Request, data: Data<'_>) {
        self.records.submitted(request);
        self.drive_mut().submit_with(request, data);
    }

    fn command_set(&self) -> Option<&'static CommandSet> {
        self.drive().command_set()
    }

    fn segment_sectors(&self) -> Option<u64> {
        self.drive().segment_sectors()
    }

    fn zones(&self) -> Option<ZoneShape> {
        self.drive().zones()
    }

    fn zone(&self, number: u64) -> Option<Zone> {
        self.drive().zone(number)
    }

    fn submit_command(&mut self, request: &Request, payload: Payload<'_>) {
        self.records.submitted(request);
        self.drive_mut().submit_command(request, payload);
    }

    fn take_answers(&mut self, to: &mut Vec<Answer>) {
        BlockDevice::take_answers(self.drive_mut(), to);
    }

    fn take_events(&mut self, to: &mut Vec<Event>) {
        self.drive_mut().take_events(to);
    }

    fn keep_meaning(&mut self, sector: u64, stamp: u64, words: &[u64]) {
        let of_sector = self.meanings.entry(sector).or_default();
        let same = of_sector.iter().find(|(other, _)| *other == stamp);
        assert!(same.is_none_or(|(_, meaning)| **meaning == *words), "stamp {stamp:#x} has two meanings");
        of_sector.retain(|(other, _)| *other != stamp);
        if of_sector.len() == MEANINGS {
            of_sector.pop_front();
        }
        of_sector.push_back((stamp, words.into()));
    }

    fn meaning(&self, sector: u64, stamp: u64) -> Option<Vec<u64>> {
        self.meanings.get(&sector)?.iter().find(|(written, _)| *written == stamp).map(|(_, words)| words.to_vec())
    }

    fn keep_record(&mut self, sector: u64, bytes: &[u8]) {
        self.records.keep(sector, bytes);
    }

    fn record(&self, sector: u64) -> Option<&[u8]> {
        self.records.get(sector)
    }

    fn drop_record(&mut self, sector: u64) {
        self.records.take(sector..sector + 1);
    }

    fn record_bytes(&self) -> u64 {
        self.records.memory_bytes()
    }

    fn prefetch(&mut self, requests: &[Request]) {
        self.drive_mut().prefetch(requests);
    }

    fn next_event(&self) -> Option<Nanos> {
        self.drive().next_event()
    }

    fn run_until(&mut self, until: Nanos) {
        self.drive_mut().run_until(until);
    }

    fn run_to_completion(&mut self, until: Nanos) -> bool {
        self.drive_mut().run_to_completion(until)
    }

    fn outstanding(&self) -> u64 {
        self.drive().outstanding()
    }

    fn completions(&mut self) -> &mut Vec<Completion> {
        self.drive_mut().completions()
    }

    fn take_paths(&mut self, to: &mut Vec<Path>) {
        self.drive_mut().take_paths(to);
    }

    fn read_data(&mut self) -> &mut Vec<(u32, Vec<u8>)> {
        self.drive_mut().read_data()
    }

    fn mapped_run(&self, sector: u64, end: u64) -> (bool, u64) {
        self.drive().mapped_run(sector, end)
    }

    fn order_stride(&self) -> u64 {
        1
    }
}

impl Administration for Member {
    fn identify(&self) -> Identity {
        self.drive().identify()
    }

    fn layers(&self) -> Vec<LayerMetrics> {
        Vec::new()
    }

    fn taken(&self) -> Traffic {
        self.drive().taken()
    }

    fn parts(&self) -> Vec<Part<'_>> {
        vec![Part { name: self.name.clone(), drive: self.drive() }]
    }

    fn parts_mut(&mut self) -> Vec<PartMut<'_>> {
        vec![PartMut { name: self.name.clone(), drive: self.drive.as_mut().expect("the power is on") }]
    }

    fn reset_statistics(&mut self) {
        self.drive_mut().reset_statistics();
    }

    fn set_timed(&mut self, timed: bool) {
        self.drive_mut().set_timed(timed);
    }

    fn record_paths(&mut self, on: bool) {
        self.drive_mut().record_paths(on);
    }

    fn counters(&self) -> Counters {
        self.drive().counters()
    }

    fn check(&self) -> Vec<(String, Check)> {
        self.drive().check().into_iter().map(|check| (check.name.to_string(), check)).collect()
    }
}

/// The served engine asks after every batch, so a drive answers without a list of its parts.
impl Power for Member {
    fn persist(&mut self) -> bool {
        self.drive_mut().persist()
    }

    fn close(&mut self) {}

    fn forget(&mut self) {
        self.drive_mut().forget();
    }

    fn broken_image(&self) -> Option<String> {
        self.drive().image().and_then(|image| image.broken().map(str::to_string))
    }

    fn cut(&mut self, part: usize, again: &mut Again<'_>) -> Loss {
        assert_eq!(part, 0, "a drive is one part");
        self.cycle(again);
        Loss::Unflushed
    }

    fn into_members(self: Box<Self>) -> Vec<Member> {
        vec![*self]
    }
}

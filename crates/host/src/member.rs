//! A drive or a disk in a stack: it has a name, and its power can be cut while the host goes on.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use ssdlab_base::command_sets::zoned::{Zone, ZoneShape};
use ssdlab_base::{Answer, CommandSet, Event, Nanos, Request, SECTOR_BYTES};
use ssdlab_device::critical_path::Path;
use ssdlab_device::{Check, Completion, Counters, Data, Drive, DriveConfig, DriveError, Options, Payload, Recovered};
use ssdlab_disk::{Disk, DiskConfig};
use ssdlab_flash::Contents;

use crate::device::Again;
use crate::records::Records;
use crate::{Administration, BlockDevice, Device, Identity, LayerMetrics, Loss, MemberConfig, Part, Power, Traffic};

/// Meanings of a sector that are kept. Each power cut between two writes of a sector may undo one.
const MEANINGS: usize = 16;

/// The stamps that were written to a sector last, the newest behind, and what each means.
type Meanings = VecDeque<(u64, Box<[u64]>)>;

/// A drive or a disk of a stack.
pub struct Member {
    name: String,
    bottom: Bottom,
    /// By sector.
    meanings: FxHashMap<u64, Meanings>,
    /// What a host keeps by address, where the drive or disk keeps no bytes.
    records: Records,
}

/// What stores the data.
#[allow(clippy::large_enum_variant, reason = "nearly all members are drives, and a box would cost each command a step")]
enum Bottom {
    Drive(Powered),
    Disk(Box<Disk>),
}

/// A drive with what it was made with.
struct Powered {
    /// Always there, but for the instant of a power cut.
    drive: Option<Drive>,
    options: Options,
}

/// Calls the drive or the disk.
macro_rules! below {
    ($member:expr, $device:ident => $call:expr) => {
        match &$member.bottom {
            Bottom::Drive(powered) => {
                let $device = powered.drive();
                $call
            }
            Bottom::Disk(disk) => {
                let $device = &**disk;
                $call
            }
        }
    };
    (mut $member:expr, $device:ident => $call:expr) => {
        match &mut $member.bottom {
            Bottom::Drive(powered) => {
                let $device = powered.drive_mut();
                $call
            }
            Bottom::Disk(disk) => {
                let $device = &mut **disk;
                $call
            }
        }
    };
}

impl Powered {
    fn drive(&self) -> &Drive {
        self.drive.as_ref().expect("the power is on")
    }

    fn drive_mut(&mut self) -> &mut Drive {
        self.drive.as_mut().expect("the power is on")
    }
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
        Member::with(name, Bottom::Drive(Powered { drive: Some(drive), options }))
    }

    /// A fresh drive or disk.
    ///
    /// # Errors
    /// The configuration of a drive is refused.
    pub fn fresh(name: &str, config: &MemberConfig, options: Options) -> Result<Member, DriveError> {
        match config {
            MemberConfig::Drive(config) => Member::new(name, config, options),
            MemberConfig::Disk(config) => Ok(Member::new_disk(name, config, options.contents)),
        }
    }

    /// A disk that nothing was written to.
    pub fn new_disk(name: &str, config: &DiskConfig, contents: Contents) -> Member {
        Member::of_disk(name, Disk::new(config, contents))
    }

    /// A disk that is there already.
    pub fn of_disk(name: &str, disk: Disk) -> Member {
        Member::with(name, Bottom::Disk(Box::new(disk)))
    }

    fn with(name: &str, bottom: Bottom) -> Member {
        let (meanings, records) = (FxHashMap::default(), Records::default());
        Member { name: name.to_string(), bottom, meanings, records }
    }

    /// A stack of one drive, called after its description.
    pub fn alone(drive: Drive, options: Options) -> Box<dyn Device> {
        let name = drive.config().name.clone();
        Box::new(Member::of(&name, drive, options))
    }

    /// The drive or disk under layers that begin anew: nothing is in it, they count commands from 0, and answers of commands that were
    /// sent before are dropped.
    pub(crate) fn for_a_new_host(mut self) -> Member {
        self.take_answers(&mut Vec::new());
        below!(mut self, device => device.reset_order());
        self
    }

    /// The power goes and comes back, at once and with no time for the recovery: what was in flight ends with
    /// [`ssdlab_device::Status::Aborted`]. It goes again during recoveries of a drive, each time after as many of its operations as
    /// `again` says of the chips, until that says `None` or the recovery is over before.
    pub fn cycle(&mut self, again: &mut Again<'_>) {
        let Powered { drive, options } = match &mut self.bottom {
            Bottom::Drive(powered) => powered,
            Bottom::Disk(disk) => return disk.cut_power(),
        };
        let on = drive.take().expect("the power is on");
        let config = on.config().clone();
        let (mut flash, left) = on.lose_power();
        let drive = drive.insert(loop {
            let until = again(&flash).unwrap_or(u64::MAX);
            let recovered = Drive::recover_in_place(&config, *options, flash, until, &left);
            match recovered.expect("a drive that was accepted comes back") {
                Recovered::Whole(drive, _) => break *drive,
                Recovered::Cut(chips) => flash = *chips,
            }
        });
        *drive.completions() = left.completions;
    }
}

impl BlockDevice for Member {
    fn sectors(&self) -> u64 {
        below!(self, device => BlockDevice::sectors(device))
    }

    fn reserved_sectors(&self) -> u64 {
        below!(self, device => BlockDevice::reserved_sectors(device))
    }

    fn sector_data_bytes(&self) -> usize {
        below!(self, device => BlockDevice::sector_data_bytes(device))
    }

    fn trims(&self) -> bool {
        below!(self, device => BlockDevice::trims(device))
    }

    fn now(&self) -> Nanos {
        below!(self, device => BlockDevice::now(device))
    }

    fn submit(&mut self, request: &Request, data: Data<'_>) {
        self.records.submitted(request);
        below!(mut self, device => BlockDevice::submit(device, request, data));
    }

    fn command_set(&self) -> Option<&'static CommandSet> {
        below!(self, device => BlockDevice::command_set(device))
    }

    fn segment_sectors(&self) -> Option<u64> {
        below!(self, device => BlockDevice::segment_sectors(device))
    }

    fn zones(&self) -> Option<ZoneShape> {
        below!(self, device => BlockDevice::zones(device))
    }

    fn zone(&self, number: u64) -> Option<Zone> {
        below!(self, device => BlockDevice::zone(device, number))
    }

    fn submit_command(&mut self, request: &Request, payload: Payload<'_>) {
        self.records.submitted(request);
        below!(mut self, device => BlockDevice::submit_command(device, request, payload));
    }

    fn take_answers(&mut self, to: &mut Vec<Answer>) {
        below!(mut self, device => BlockDevice::take_answers(device, to));
    }

    fn take_events(&mut self, to: &mut Vec<Event>) {
        below!(mut self, device => BlockDevice::take_events(device, to));
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
        below!(mut self, device => BlockDevice::prefetch(device, requests));
    }

    fn next_event(&self) -> Option<Nanos> {
        below!(self, device => BlockDevice::next_event(device))
    }

    fn run_until(&mut self, until: Nanos) {
        below!(mut self, device => BlockDevice::run_until(device, until));
    }

    fn run_to_completion(&mut self, until: Nanos) -> bool {
        below!(mut self, device => BlockDevice::run_to_completion(device, until))
    }

    fn outstanding(&self) -> u64 {
        below!(self, device => BlockDevice::outstanding(device))
    }

    fn completions(&mut self) -> &mut Vec<Completion> {
        below!(mut self, device => BlockDevice::completions(device))
    }

    fn take_paths(&mut self, to: &mut Vec<Path>) {
        below!(mut self, device => BlockDevice::take_paths(device, to));
    }

    fn read_data(&mut self) -> &mut Vec<(u32, Vec<u8>)> {
        below!(mut self, device => BlockDevice::read_data(device))
    }

    fn mapped_run(&self, sector: u64, end: u64) -> (bool, u64) {
        below!(self, device => BlockDevice::mapped_run(device, sector, end))
    }

    fn order_stride(&self) -> u64 {
        1
    }
}

impl Administration for Member {
    fn identify(&self) -> Identity {
        match &self.bottom {
            Bottom::Drive(powered) => powered.drive().identify(),
            Bottom::Disk(disk) => Identity {
                name: self.name.clone(),
                design: "disk".to_string(),
                unit_bytes: SECTOR_BYTES as u32,
                is_timed: disk.is_timed(),
                has_write_cache: disk.config().write_cache.enabled,
                has_host_cache: false,
            },
        }
    }

    fn layers(&self) -> Vec<LayerMetrics> {
        Vec::new()
    }

    fn taken(&self) -> Traffic {
        match &self.bottom {
            Bottom::Drive(powered) => powered.drive().taken(),
            Bottom::Disk(disk) => Traffic { requests: disk.counters().ended, bytes: disk.counters().ended_bytes },
        }
    }

    fn drives(&self) -> Vec<Part<&Drive>> {
        match &self.bottom {
            Bottom::Drive(powered) => vec![Part { name: self.name.clone(), device: powered.drive() }],
            Bottom::Disk(_) => Vec::new(),
        }
    }

    fn drives_mut(&mut self) -> Vec<Part<&mut Drive>> {
        match &mut self.bottom {
            Bottom::Drive(powered) => vec![Part { name: self.name.clone(), device: powered.drive_mut() }],
            Bottom::Disk(_) => Vec::new(),
        }
    }

    fn disks(&self) -> Vec<Part<&Disk>> {
        match &self.bottom {
            Bottom::Drive(_) => Vec::new(),
            Bottom::Disk(disk) => vec![Part { name: self.name.clone(), device: &**disk }],
        }
    }

    fn disks_mut(&mut self) -> Vec<Part<&mut Disk>> {
        match &mut self.bottom {
            Bottom::Drive(_) => Vec::new(),
            Bottom::Disk(disk) => vec![Part { name: self.name.clone(), device: &mut **disk }],
        }
    }

    fn members(&self) -> usize {
        1
    }

    fn reset_statistics(&mut self) {
        match &mut self.bottom {
            Bottom::Drive(powered) => powered.drive_mut().reset_statistics(),
            Bottom::Disk(disk) => disk.restart(),
        }
    }

    fn set_timed(&mut self, timed: bool) {
        below!(mut self, device => device.set_timed(timed));
    }

    fn record_paths(&mut self, on: bool) {
        self.drives_mut().into_iter().for_each(|part| part.device.record_paths(on));
    }

    fn counters(&self) -> Counters {
        match &self.bottom {
            Bottom::Drive(powered) => powered.drive().counters(),
            Bottom::Disk(_) => Counters::default(),
        }
    }

    fn check(&self) -> Vec<(String, Check)> {
        below!(self, device => device.check()).into_iter().map(|check| (check.name.to_string(), check)).collect()
    }
}

/// The served engine asks after every batch, so a drive answers without a list of its parts.
impl Power for Member {
    fn persist(&mut self) -> bool {
        match &mut self.bottom {
            Bottom::Drive(powered) => powered.drive_mut().persist(),
            Bottom::Disk(disk) => disk.persist(),
        }
    }

    fn close(&mut self) {}

    fn forget(&mut self) {
        self.drives_mut().into_iter().for_each(|part| part.device.forget());
    }

    fn broken_image(&self) -> Option<String> {
        let drive = self.drives().into_iter().next()?.device;
        drive.image().and_then(|image| image.broken().map(str::to_string))
    }

    fn cut(&mut self, member: usize, again: &mut Again<'_>) -> Loss {
        assert_eq!(member, 0, "a drive or a disk is one");
        self.cycle(again);
        Loss::Unflushed
    }

    fn into_members(self: Box<Self>) -> Vec<Member> {
        vec![*self]
    }
}

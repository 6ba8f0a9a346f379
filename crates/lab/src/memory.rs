//! How much memory a run takes, known before it is taken.

use ssdlab_base::SECTOR_BYTES;
use ssdlab_device::{Drive, DriveConfig, DriveError};
use ssdlab_disk::{Disk, DiskConfig};
use ssdlab_flash::Contents;
use ssdlab_host::{Host, MemberConfig};
use ssdlab_workload::Demand;

use crate::breakdown::SLOW_BYTES;
use crate::experiment::{Experiment, RunError, seen_by_workloads};
use crate::precondition::Preconditioning;
use crate::timeline;
use crate::verify::Verifier;

/// What the program, a usual workload and its results take beside a drive, in bytes: 32 MiB.
pub const BESIDES: u64 = 32 << 20;

/// Requests in flight that [`BESIDES`] has space for.
const IN_FLIGHT_BESIDES: u64 = 1 << 14;

/// What a request in flight takes in a drive or a layer, and in the queues before it.
const IN_FLIGHT_BYTES: u64 = 320;

/// What a run takes beside its drive, by what asked for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// So many requests in flight.
    InFlight(u64),
    /// The random maps of the workload's jobs.
    RandomMaps,
    /// Other tables of the workload.
    Workload,
    /// So many of the slowest requests.
    Slowest(u32),
    /// A timeline with intervals that were asked for.
    Timeline,
    /// Entries of a file system's cache, beside what they hold.
    Cache,
    /// Metadata of a file system, in its cache and on a drive that keeps no bytes.
    Metadata,
    /// The check of a file system.
    Check,
    /// The RAM of layers above the drive, and what they note of it.
    Layers,
}

/// Memory of one drive's run at most, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// What the drive is called in the results.
    pub label: String,
    /// The drive's tables, and the stamps that it keeps in a verified run.
    pub drive: u64,
    /// What a verified run expects of each sector.
    pub expected: u64,
    /// What else the run takes, beyond [`BESIDES`].
    pub parts: Vec<(Part, u64)>,
}

impl Memory {
    /// Of a drive called `label`, in a run that is verified or not.
    ///
    /// # Errors
    /// A design that is not known.
    pub fn of(label: &str, config: &DriveConfig, verify: bool) -> Result<Memory, DriveError> {
        let contents = if verify { Contents::Stamps } else { Contents::Nothing };
        let expected = if verify { Verifier::simulator_bytes(config) } else { 0 };
        let drive = Drive::simulator_bytes(config, contents)?;
        Ok(Memory { label: label.to_string(), drive, expected, parts: Vec::new() })
    }

    /// Of the stack of a host above drives, and disks that hold nothing, where the command names `config`.
    ///
    /// # Errors
    /// A design that is not known.
    pub fn of_stack(label: &str, config: &DriveConfig, host: &Host, verify: bool) -> Result<Memory, DriveError> {
        Memory::of_written_stack(label, config, host, verify, None)
    }

    /// Of the stack of a host above drives and disks, where the command names `config`; `written` is bytes of the addresses that the
    /// run writes. What disks take follows what is written: where only the run shows that, it is not counted.
    ///
    /// # Errors
    /// A design that is not known.
    fn of_written_stack(
        label: &str,
        config: &DriveConfig,
        host: &Host,
        verify: bool,
        written: Option<u64>,
    ) -> Result<Memory, DriveError> {
        let mut memory = Memory { label: label.to_string(), drive: 0, expected: 0, parts: Vec::new() };
        for (_, member) in host.members(config) {
            // What is expected is of the layers' sectors, which are no more than those of the drives' and disks' data.
            let of = match member {
                MemberConfig::Drive(config) => {
                    Memory::of(label, &DriveConfig { below_layers: true, ..*config }, verify)?
                }
                MemberConfig::Disk(config) => Memory::of_disk(label, &config, verify, written.unwrap_or(0)),
            };
            memory.drive = memory.drive.saturating_add(of.drive);
            memory.expected = memory.expected.saturating_add(of.expected);
        }
        Ok(memory)
    }

    /// Of a disk whose stack is written at so many bytes of its addresses.
    fn of_disk(label: &str, config: &DiskConfig, verify: bool, written: u64) -> Memory {
        let contents = if verify { Contents::Stamps } else { Contents::Nothing };
        let drive = Disk::simulator_bytes(config, contents, written / SECTOR_BYTES);
        // A word a sector, in pages of memory that writes of 4 KB touch.
        let expected = if verify { Verifier::stack_bytes(config.sectors).min(written) } else { 0 };
        Memory { label: label.to_string(), drive, expected, parts: Vec::new() }
    }

    /// All of it.
    pub fn total(&self) -> u64 {
        self.parts.iter().fold(self.drive.saturating_add(self.expected), |sum, (_, bytes)| sum.saturating_add(*bytes))
    }
}

impl Experiment<'_> {
    /// Memory that each drive takes while it is run, in their order, beside [`BESIDES`]. A snapshot takes no more: it is
    /// read into the drive that runs, and written from it.
    ///
    /// # Errors
    /// A design that is not known.
    pub fn memory(&self) -> Result<Vec<Memory>, RunError> {
        let of = |dut: &crate::DeviceUnderTest| {
            let refused = |source| RunError::Drive { label: dut.label.clone(), source };
            self.memory_of(dut).map_err(refused)
        };
        self.drives.iter().map(of).collect()
    }

    pub(crate) fn memory_of(&self, dut: &crate::DeviceUnderTest) -> Result<Memory, DriveError> {
        // A drive or a stack that cannot be built is the run's to refuse: nothing can be planned on it.
        let seen = seen_by_workloads(dut, self, false).ok();
        let mut memory = match self.host {
            Some(host) => {
                let written = seen.as_ref().and_then(|seen| self.written(&seen.config));
                Memory::of_written_stack(&dut.label, &dut.config, host, self.verify, written)
            }
            None => Memory::of(&dut.label, &dut.config, self.verify),
        }?;
        memory.parts = seen.map_or_else(Vec::new, |seen| self.parts(&seen.config));
        let layers = self.host.map_or(0, Host::memory_bytes);
        memory.parts.extend((layers > 0).then_some((Part::Layers, layers)));
        Ok(memory)
    }

    /// Bytes of the addresses that preconditioning and workload write at most, where that is known.
    fn written(&self, config: &DriveConfig) -> Option<u64> {
        let own = self.workload.demand(config).written_bytes?;
        let before = match self.preconditioning {
            Preconditioning::None => 0,
            Preconditioning::Workload(source) => source.demand(config).written_bytes?,
            // Wherever the workload reads, too.
            Preconditioning::Footprint => return None,
            Preconditioning::Fill
            | Preconditioning::Steady
            | Preconditioning::SteadyUnder(_)
            | Preconditioning::FilledThen(_) => config.address_bytes(),
        };
        Some(own.saturating_add(before).min(config.address_bytes()))
    }

    /// Requests that may be in flight in a run of this drive; how many a trace has in flight, only the run shows.
    pub(crate) fn in_flight_max(&self, dut: &crate::DeviceUnderTest) -> u64 {
        let Ok(memory) = self.memory_of(dut) else { return u64::MAX };
        let rest = memory.parts.iter().filter(|(part, _)| !matches!(part, Part::InFlight(_))).map(|(_, bytes)| bytes);
        let taken = rest.fold(memory.drive.saturating_add(memory.expected), |sum, bytes| sum.saturating_add(*bytes));
        let left = self.memory_bytes.saturating_sub(taken.saturating_add(BESIDES));
        IN_FLIGHT_BESIDES + left / self.in_flight_bytes()
    }

    /// What a request takes while it is in flight, beside what is said of it for a verified run.
    fn in_flight_bytes(&self) -> u64 {
        // What waits for the drive waits in a layer above it.
        let layers = u64::from(self.host.is_some());
        let path = if self.breakdown.is_some() { PATH_BYTES } else { 0 };
        IN_FLIGHT_BYTES * (1 + layers) + path
    }

    /// What so many requests in flight take, beyond [`BESIDES`]. A verified run keeps the stamps of what is written.
    fn in_flight(&self, requests: u64, request_bytes: u64) -> u64 {
        let stamps = if self.verify { request_bytes / SECTOR_BYTES * 8 } else { 0 };
        let beyond = requests.saturating_sub(IN_FLIGHT_BESIDES);
        beyond
            .saturating_mul(self.in_flight_bytes())
            .saturating_add(requests.saturating_mul(stamps).saturating_sub(STAMPS_BESIDES))
    }

    fn parts(&self, config: &DriveConfig) -> Vec<(Part, u64)> {
        let demand = self.workload.demand(config);
        // They are opened for one pass at a time, of which the measured one is opened first.
        let aged_by = match self.preconditioning {
            Preconditioning::Steady => Some(self.workload),
            age => age.source(),
        };
        let initial = self.subtests.as_ref().and_then(|subtests| subtests.initial);
        let others: Vec<Demand> =
            [aged_by, initial].into_iter().flatten().map(|source| source.demand(config)).collect();
        let random_maps = demand.random_map_bytes + others.iter().map(|other| other.random_map_bytes).sum::<u64>();
        let tables = demand.table_bytes + others.iter().map(|other| other.table_bytes).sum::<u64>();
        let slowest = self.breakdown.map_or(0, |breakdown| breakdown.slowest);
        let kinds = demand.kinds.unwrap_or(4);
        let is_asked = self.timeline_interval.is_some() && config.timed;
        let timeline = if is_asked { timeline::asked_bytes(kinds) } else { 0 };
        let parts = [
            (Part::InFlight(demand.in_flight), self.in_flight(demand.in_flight, demand.request_bytes)),
            (Part::RandomMaps, random_maps),
            (Part::Workload, tables.saturating_sub(TABLES_BESIDES)),
            (Part::Slowest(slowest), u64::from(slowest).saturating_sub(SLOWEST_BESIDES) * SLOW_BYTES),
            (Part::Timeline, timeline),
        ];
        parts.into_iter().filter(|(_, bytes)| *bytes > 0).collect()
    }
}

/// What the path of a request in flight takes.
const PATH_BYTES: u64 = 512;

/// Stamps of requests in flight, tables of workloads, and slowest requests, that [`BESIDES`] has space for.
const STAMPS_BESIDES: u64 = 4 << 20;
const TABLES_BESIDES: u64 = 2 << 20;
const SLOWEST_BESIDES: u64 = 256;

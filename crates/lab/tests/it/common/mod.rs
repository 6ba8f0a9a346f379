//! Small drives and simple workloads for the lab's tests.

use std::sync::atomic::AtomicBool;

use rand::{Rng as _, RngExt as _};
use ssdlab_base::{Nanos, Op, Request, Rng, rng};
use ssdlab_device::{
    Allocation, Answers, BufferConfig, ControllerConfig, DestageConfig, DriveConfig, FtlConfig, GcConfig,
    InterfaceConfig, InterfaceKind, Level, Owners, Pacing, Parity, PlacementConfig, ReadUnwritten, Settings,
    Superblock,
};
use ssdlab_flash::{Faults, FlashConfig, Geometry, Latency, MultiPlane, OobUse, SchedulerKind, Timing};
use ssdlab_lab::{
    Control, DeviceUnderTest, Experiment, NoProgress, Preconditioning, Provenance, RunResult, WorkloadSource,
};
use ssdlab_workload::{Next, Workload, WorkloadError};

pub(crate) const UNIT: u64 = 4096;
pub(crate) const UNIT_SECTORS: u64 = UNIT / 512;

/// Two channels of two dies, 128 blocks of 64 pages in each plane, a fifth of the user capacity spare.
pub(crate) fn drive(name: &str) -> DriveConfig {
    let geometry = Geometry {
        channels: 2,
        chips_per_channel: 2,
        dies_per_chip: 1,
        planes_per_die: 1,
        blocks_per_plane: 128,
        pages_per_block: 64,
        page_bytes: UNIT as u32,
        oob_bytes: 128,
    };
    let fixed = |us| Latency { min: Nanos::from_us(us), max: Nanos::from_us(us) };
    DriveConfig {
        name: name.to_string(),
        user_bytes: geometry.bytes() / UNIT * 10 / 12 * UNIT,
        flash: FlashConfig {
            geometry,
            timing: Timing {
                read: vec![fixed(50)],
                program: vec![fixed(500)],
                erase: fixed(3_500),
                command: Nanos(200),
                transfer: Nanos::from_us(10),
                suspend: Nanos::from_us(5),
                resume: Nanos::from_us(5),
            },
            multi_plane: MultiPlane::Off,
            copyback: false,
            checks_copyback: false,
            cache_program: false,
            program_suspend: false,
            erase_suspend: false,
            suspend_limit: 16,
            scheduler: SchedulerKind::Fifo,
            oob: OobUse::Free,
            faults: Faults::default(),
        },
        interface: InterfaceConfig {
            kind: InterfaceKind::Nvme,
            queues: 1,
            queue_depth: 32,
            bandwidth: 2_000_000_000,
            command_overhead: Nanos::from_us(1),
            read_overhead: Nanos::ZERO,
            write_overhead: Nanos::ZERO,
            processing: Nanos::ZERO,
            read_unwritten: ReadUnwritten::Error,
            command_codes: 0,
            answers: Answers::Words,
        },
        controller: ControllerConfig::default(),
        buffer: BufferConfig {
            policy: "none".to_string(),
            bytes: 0,
            latency: Nanos::from_us(1),
            destage: DestageConfig::default(),
            own: Settings::default(),
        },
        ftl: FtlConfig {
            design: "page".to_string(),
            mapping_unit: UNIT as u32,
            allocation: Allocation::RoundRobin([Level::Channel, Level::Way, Level::Die, Level::Plane]),
            separate_gc_frontier: true,
            streams: 1,
            owners: Owners::Oob,
            superblock: Superblock::None,
            parity: Parity::None,
            own: Settings::default(),
        },
        placement: PlacementConfig::default(),
        gc: GcConfig {
            victim: "greedy".to_string(),
            own: Settings::default(),
            free_blocks: 3,
            background_free_blocks: 0,
            pacing: Pacing::Off,
            idle_after: Nanos::from_ms(10),
            copyback: false,
            dynamic_wear_levelling: true,
            static_wear_threshold: 0,
        },
        timed: true,
        below_layers: false,
    }
}

/// Requests of one unit in a closed loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Random {
    pub(crate) requests: u64,
    pub(crate) depth: u64,
    pub(crate) read_percent: u32,
    pub(crate) flush_every: u64,
    pub(crate) trim_every: u64,
}

impl Random {
    pub(crate) fn writes(requests: u64) -> Random {
        Random { requests, depth: 32, read_percent: 0, flush_every: u64::MAX, trim_every: u64::MAX }
    }

    pub(crate) fn mixed(requests: u64) -> Random {
        Random { read_percent: 40, flush_every: 500, trim_every: 90, ..Random::writes(requests) }
    }
}

struct Running {
    random: Random,
    rng: Rng,
    units: u64,
    sent: u64,
    outstanding: u64,
}

impl Workload for Running {
    fn next(&mut self, _now: Nanos) -> Result<Next, WorkloadError> {
        if self.sent == self.random.requests {
            return Ok(Next::Done);
        }
        if self.outstanding == self.random.depth {
            return Ok(Next::WaitForCompletion);
        }
        self.sent += 1;
        self.outstanding += 1;
        let sector = self.rng.random_range(0..self.units) * UNIT_SECTORS;
        let request = if self.sent.is_multiple_of(self.random.flush_every) {
            Request::new(Op::Flush, 0, 0)
        } else if self.sent.is_multiple_of(self.random.trim_every) {
            Request::new(Op::Trim, sector, UNIT_SECTORS)
        } else if self.rng.next_u32() % 100 < self.random.read_percent {
            Request::new(Op::Read, sector, UNIT_SECTORS)
        } else {
            Request::new(Op::Write, sector, UNIT_SECTORS)
        };
        Ok(Next::Request(Request { tag: self.sent as u32, ..request }))
    }

    fn completed(&mut self, _now: Nanos, _tag: u32) {
        self.outstanding -= 1;
    }

    fn progress(&self) -> (u64, Option<u64>) {
        (self.sent, Some(self.random.requests))
    }

    fn rewind(&mut self) -> Result<(), WorkloadError> {
        Err(WorkloadError("opened anew instead".to_string()))
    }
}

impl WorkloadSource for Random {
    fn open(&self, drive: &DriveConfig, pass: u64) -> Result<Box<dyn Workload>, WorkloadError> {
        let units = drive.user_bytes / UNIT;
        Ok(Box::new(Running { random: *self, rng: rng(pass, "test"), units, sent: 0, outstanding: 0 }))
    }

    fn identity(&self) -> String {
        format!("{self:?}")
    }

    fn is_uniform_overwrites(&self, _drive: &DriveConfig) -> bool {
        self.read_percent == 0 && self.flush_every == u64::MAX && self.trim_every == u64::MAX
    }
}

pub(crate) fn duts(configs: &[DriveConfig]) -> Vec<DeviceUnderTest> {
    configs.iter().map(|config| DeviceUnderTest { label: config.name.clone(), config: config.clone() }).collect()
}

pub(crate) fn experiment<'a>(
    drives: &'a [DeviceUnderTest],
    workload: &'a dyn WorkloadSource,
    preconditioning: Preconditioning<'a>,
) -> Experiment<'a> {
    let provenance = Provenance {
        title: None,
        command: vec!["test".to_string()],
        started: None,
        workload: "random".to_string(),
        replay: "closed:32".to_string(),
        precondition: "as asked".to_string(),
        host: None,
        overrides: Default::default(),
    };
    Experiment { preconditioning, provenance, memory_bytes: 1 << 30, ..Experiment::new(drives, workload) }
}

pub(crate) fn run(experiment: &Experiment<'_>) -> RunResult {
    let stop = AtomicBool::new(false);
    ssdlab_lab::run(experiment, None, &Control::new(&stop, &NoProgress)).expect("the experiment is sound")
}

/// Every check of every drive held; else says which did not.
pub(crate) fn assert_checks_hold(result: &RunResult) {
    for device in &result.devices {
        assert!(!device.checks.is_empty());
        for check in &device.checks {
            assert!(check.passed, "{}: {}: {}", device.name, check.name, check.detail);
        }
    }
}

/// Both results are the same file but for wall-clock times; else shows the first lines that differ.
pub(crate) fn assert_same(left: &RunResult, right: &RunResult) {
    let (left, right) = (without_wall_times(left), without_wall_times(right));
    for (number, (ours, theirs)) in left.lines().zip(right.lines()).enumerate() {
        let cut = |line: &str| line.chars().take(300).collect::<String>();
        assert!(ours == theirs, "line {} differs:\n{}\n{}", number + 1, cut(ours), cut(theirs));
    }
    assert_eq!(left.len(), right.len());
}

/// The JSON of a result without wall-clock times.
pub(crate) fn without_wall_times(result: &RunResult) -> String {
    let mut result = result.clone();
    for device in &mut result.devices {
        device.wall_time_s = 0.0;
        device.wall_precondition_s = 0.0;
    }
    let mut text = Vec::new();
    ssdlab_lab::output::write_json(&result, &mut text).expect("a vector takes everything");
    String::from_utf8(text).expect("JSON is text")
}

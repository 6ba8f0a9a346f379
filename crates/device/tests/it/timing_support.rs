//! Small drives under test: a host that keeps time, and what completed when.
//!
//! Latencies are odd numbers of nanoseconds, so that a sum can only come about in one way.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use ssdlab_base::{Nanos, Op, Request};
use ssdlab_device::{
    Allocation, Answers, BufferConfig, Completion, ControllerConfig, DestageConfig, Drive, DriveConfig, FtlConfig,
    GcConfig, InterfaceConfig, InterfaceKind, Level, Options, Owners, Pacing, Parity, PlacementConfig, ReadUnwritten,
    Settings, Superblock,
};
use ssdlab_flash::{
    Contents, Faults, FlashConfig, Geometry, Latency, MultiPlane, Observer, OobUse, SchedulerKind, Span, Timing,
};

/// Array read.
pub(crate) const READ: u64 = 20_003;
/// Array program.
pub(crate) const PROGRAM: u64 = 200_017;
/// Block erase.
pub(crate) const ERASE: u64 = 1_500_019;
/// Command and address cycles.
pub(crate) const COMMAND: u64 = 177;
/// One page on the channel.
pub(crate) const TRANSFER: u64 = 10_247;
/// From asking for a suspend to a ready die.
pub(crate) const SUSPEND: u64 = 1_009;
/// From resuming to progress.
pub(crate) const RESUME: u64 = 503;
/// Fixed cost of a command, where a test gives one.
pub(crate) const OVERHEAD: u64 = 2_011;
/// RAM access, where a test gives one.
pub(crate) const RAM: u64 = 907;
/// Link speed, where a test gives one: 1 GB/s less a little, so that times are rounded.
pub(crate) const BANDWIDTH: u64 = 999_999_937;

/// A page read on an idle drive.
pub(crate) const READ_PAGE: u64 = COMMAND + READ + TRANSFER;
/// Channel time of a page program.
pub(crate) const DATA_IN: u64 = COMMAND + TRANSFER;
/// A page program on an idle drive.
pub(crate) const PROGRAM_PAGE: u64 = DATA_IN + PROGRAM;

/// `sectors` sectors over the link.
pub(crate) fn link(sectors: u64) -> u64 {
    (sectors * 512 * 1_000_000_000).div_ceil(BANDWIDTH)
}

/// A part of a page over the channel.
pub(crate) fn part(sectors: u64) -> u64 {
    (TRANSFER * sectors).div_ceil(8)
}

/// A latency without a range.
pub(crate) fn fixed(ns: u64) -> Latency {
    Latency { min: Nanos(ns), max: Nanos(ns) }
}

/// A drive of one die a chip, 16 blocks of 16 pages of 4 KiB a plane, half of it the user's; no buffer, free interface.
pub(crate) fn drive(channels: u32, ways: u32, planes: u32) -> DriveConfig {
    let geometry = Geometry {
        channels,
        chips_per_channel: ways,
        dies_per_chip: 1,
        planes_per_die: planes,
        blocks_per_plane: 16,
        pages_per_block: 16,
        page_bytes: 4096,
        oob_bytes: 128,
    };
    DriveConfig {
        name: "under test".to_string(),
        flash: FlashConfig {
            geometry,
            timing: Timing {
                read: vec![fixed(READ)],
                program: vec![fixed(PROGRAM)],
                erase: fixed(ERASE),
                command: Nanos(COMMAND),
                transfer: Nanos(TRANSFER),
                suspend: Nanos(SUSPEND),
                resume: Nanos(RESUME),
            },
            multi_plane: MultiPlane::SameOffset,
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
        user_bytes: geometry.bytes() / 2,
        interface: InterfaceConfig {
            kind: InterfaceKind::Nvme,
            queues: 1,
            queue_depth: 1024,
            bandwidth: 0,
            command_overhead: Nanos::ZERO,
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
            latency: Nanos::ZERO,
            destage: DestageConfig::ON_DEMAND,
            own: Settings::default(),
        },
        ftl: FtlConfig {
            design: "page".to_string(),
            mapping_unit: 4096,
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
            idle_after: Nanos::from_ms(100),
            copyback: false,
            dynamic_wear_levelling: true,
            static_wear_threshold: 0,
        },
        timed: true,
        below_layers: false,
    }
}

/// A drive of one plane, otherwise as [`drive`] makes it, with an interface that costs something.
pub(crate) fn behind_a_link(kind: InterfaceKind) -> DriveConfig {
    let mut config = drive(1, 1, 1);
    config.interface = InterfaceConfig {
        kind,
        queues: 1,
        queue_depth: 32,
        bandwidth: BANDWIDTH,
        command_overhead: Nanos(OVERHEAD),
        read_overhead: Nanos::ZERO,
        write_overhead: Nanos::ZERO,
        processing: Nanos::ZERO,
        read_unwritten: ReadUnwritten::Error,
        command_codes: 0,
        answers: Answers::Words,
    };
    config
}

/// The host.
pub(crate) struct Host {
    pub(crate) drive: Drive,
    next_tag: u32,
    pub(crate) completed: BTreeMap<u32, Completion>,
}

impl Host {
    pub(crate) fn new(config: &DriveConfig) -> Host {
        let drive = Drive::new(config, Options { seed: 1, contents: Contents::Nothing }).expect("an accepted drive");
        Host { drive, next_tag: 0, completed: BTreeMap::new() }
    }

    pub(crate) fn now(&self) -> u64 {
        self.drive.now().0
    }

    /// Sends a request now, on queue 0; returns its tag.
    pub(crate) fn send(&mut self, op: Op, sector: u64, sectors: u64) -> u32 {
        self.send_request(Request::new(op, sector, sectors))
    }

    pub(crate) fn send_request(&mut self, mut request: Request) -> u32 {
        request.at = self.drive.now();
        request.tag = self.next_tag;
        self.next_tag += 1;
        self.drive.submit(&request);
        self.collect();
        request.tag
    }

    /// A page, by number.
    pub(crate) fn write_page(&mut self, page: u64) -> u32 {
        self.send(Op::Write, page * 8, 8)
    }

    pub(crate) fn read_page(&mut self, page: u64) -> u32 {
        self.send(Op::Read, page * 8, 8)
    }

    fn collect(&mut self) {
        for completion in self.drive.completions().drain(..) {
            self.completed.insert(completion.tag, completion);
        }
    }

    pub(crate) fn run_until(&mut self, until: u64) {
        self.drive.run_until(Nanos(until));
        self.collect();
    }

    /// Runs until nothing is left to happen; returns the time.
    pub(crate) fn run(&mut self) -> u64 {
        while let Some(at) = self.drive.next_event() {
            self.run_until(at.0);
        }
        self.now()
    }

    pub(crate) fn end(&self, tag: u32) -> Option<u64> {
        self.completed.get(&tag).map(|completion| completion.at.0)
    }

    /// Not there at `t - 1`, there at `t`.
    #[track_caller]
    pub(crate) fn assert_completes_at(&mut self, tag: u32, t: u64) {
        if t > self.now() {
            assert_eq!(self.end(tag), None, "it has completed before it was looked for");
            self.run_until(t - 1);
            assert_eq!(self.end(tag), None, "refused at {t} - 1");
            self.run_until(t);
        }
        assert_eq!(self.end(tag), Some(t), "accepted at {t}");
    }

    /// Sends a request and asserts that it takes `parts` in all.
    #[track_caller]
    pub(crate) fn assert_takes(&mut self, request: Request, parts: &[u64]) {
        let start = self.now();
        let tag = self.send_request(request);
        self.assert_completes_at(tag, start + parts.iter().sum::<u64>());
    }

    pub(crate) fn assert_checks_hold(&self) {
        for check in self.drive.check() {
            assert!(check.passed, "{}: {}", check.name, check.detail);
        }
    }
}

/// An observer that writes down what stayed where.
#[derive(Clone, Default)]
pub(crate) struct Spans(pub(crate) Arc<Mutex<Vec<Span>>>);

impl Spans {
    pub(crate) fn watch(drive: &mut Drive) -> Spans {
        let spans = Spans::default();
        drive.observe(Some(Box::new(spans.clone())));
        spans
    }

    pub(crate) fn taken(&self) -> Vec<Span> {
        self.0.lock().expect("one thread").clone()
    }
}

impl Observer for Spans {
    fn span(&mut self, span: Span) {
        self.0.lock().expect("one thread").push(span);
    }
}

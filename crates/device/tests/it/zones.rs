//! Zones on `aftl-zoned`: addresses between capacity and size, appends in flight together, what a finish writes, states after
//! power cuts and in snapshots, limits, read-only drives, and descriptions that are refused.

use std::collections::BTreeMap;

use ssdlab_base::command_sets::zoned::{
    APPEND, CLOSE, FINISH, INVALID_TRANSITION, OPEN, REPORT, RESET, TOO_MANY_ACTIVE, UNWRITTEN, ZONE_BOUNDARY,
    ZONE_IS_FULL, ZONES_READ_ONLY, Zone, ZoneShape, ZoneState,
};
use ssdlab_base::{Op, Opcode, Request};
use ssdlab_device::{Data, Drive, DriveConfig, Options, Payload, Settings, Status, sector_stamp};
use ssdlab_flash::{Cause, Contents, OpKind};

use crate::timing_support::*;

/// Sectors of a page.
const PAGE: u64 = 8;
/// Sectors of the capacity of a zone: three channels, a way, and blocks of 16 pages.
const CAPACITY: u64 = 3 * 16 * PAGE;
/// Sectors from zone to zone.
const SIZE: u64 = 512;

/// A drive of `count` zones over three channels.
fn zones(count: u64) -> DriveConfig {
    let mut config = drive(3, 1, 1);
    config.ftl.design = "aftl-zoned".to_string();
    config.ftl.allocation = ssdlab_device::Allocation::Dynamic;
    config.user_bytes = count * CAPACITY * 512;
    config
}

/// A drive that keeps stamps, and what came of its commands.
struct Zoned {
    drive: Drive,
    answers: BTreeMap<u32, Vec<u64>>,
    statuses: BTreeMap<u32, Status>,
    tags: u32,
}

impl Zoned {
    fn new(config: &DriveConfig) -> Zoned {
        Zoned::with(config, Contents::Stamps)
    }

    fn with(config: &DriveConfig, contents: Contents) -> Zoned {
        Zoned::of(Drive::new(config, Options { seed: 1, contents }).expect("an accepted drive"))
    }

    fn of(drive: Drive) -> Zoned {
        Zoned { drive, answers: BTreeMap::new(), statuses: BTreeMap::new(), tags: 0 }
    }

    fn submit(&mut self, opcode: Opcode, op: Op, sector: u64, sectors: u64, words: &[u64]) -> u32 {
        self.tags += 1;
        let at = self.drive.now();
        let request = Request { at, tag: self.tags, opcode, ..Request::new(op, sector, sectors) };
        let data = Data::Stamp(self.tags.into());
        self.drive.submit_command(&request, Payload { data, words });
        self.tags
    }

    fn run(&mut self) {
        while let Some(at) = self.drive.next_event() {
            self.drive.run_until(at);
        }
        let answers = self.drive.answers().drain(..).map(|answer| (answer.tag, answer.words));
        self.answers.extend(answers.collect::<Vec<_>>());
        let statuses = self.drive.completions().drain(..).map(|done| (done.tag, done.status));
        self.statuses.extend(statuses.collect::<Vec<_>>());
    }

    fn send(&mut self, opcode: Opcode, op: Op, sector: u64, sectors: u64) -> Status {
        let tag = self.submit(opcode, op, sector, sectors, &[]);
        self.run();
        self.statuses[&tag]
    }

    fn write(&mut self, sector: u64, sectors: u64) -> Status {
        self.send(Opcode::BLOCK, Op::Write, sector, sectors)
    }

    /// An action on one zone.
    fn act(&mut self, opcode: Opcode, zone: u64) -> Status {
        self.send(opcode, Op::Trim, zone * SIZE, SIZE)
    }

    fn read(&mut self, sector: u64, sectors: u64) -> Result<Vec<u64>, Status> {
        let status = self.send(Opcode::BLOCK, Op::Read, sector, sectors);
        let data = self.drive.read_data().pop().map(|(_, sector_data)| sector_data).unwrap_or_default();
        if status != Status::Success {
            return Err(status);
        }
        Ok(data.chunks_exact(8).map(|data| u64::from_le_bytes(data.try_into().expect("8 bytes"))).collect())
    }

    fn zone(&self, zone: u64) -> Zone {
        self.drive.zone(zone).expect("there is such a zone")
    }

    fn cut(self, config: &DriveConfig) -> Zoned {
        let options = Options { seed: 1, contents: Contents::Stamps };
        Zoned::of(Drive::recover(config, options, self.drive.power_cut()).expect("an accepted drive").0)
    }
}

#[test]
fn zones_begin_at_powers_of_two_and_what_is_behind_their_capacity_holds_nothing() {
    let config = zones(6);
    let mut host = Zoned::new(&config);
    let shape = ZoneShape { size: SIZE, capacity: CAPACITY, count: 6, write_unit: PAGE, max_open: 0, max_active: 0 };
    assert_eq!(host.drive.zones(), Some(shape));
    assert_eq!((host.drive.segments(), host.drive.user_sectors()), (None, 6 * SIZE));
    for zone in 0..6 {
        assert_eq!(host.write(zone * SIZE, CAPACITY), Status::Success, "zone {zone}");
    }
    // Command n of zone n - 1: each sector has the stamp of its address.
    for zone in 0..6 {
        let sector_data = host.read(zone * SIZE, CAPACITY).expect("what is written");
        for (sector, data) in (zone * SIZE..).zip(sector_data) {
            assert_eq!(data, sector_stamp(zone + 1, sector), "sector {sector}");
        }
        assert_eq!(host.read(zone * SIZE + CAPACITY, PAGE), Err(Status::Refused(ZONE_BOUNDARY)));
        assert_eq!(host.drive.mapped_run(zone * SIZE + 8, 6 * SIZE), (true, zone * SIZE + CAPACITY));
        assert_eq!(host.drive.mapped_run(zone * SIZE + CAPACITY, 6 * SIZE), (false, (zone + 1) * SIZE));
    }
    assert_eq!(host.write(6 * SIZE, PAGE), Status::OutOfRange);
    let programs = host.drive.counters().flash.total(OpKind::Program);
    assert_eq!(programs, 6 * CAPACITY / PAGE, "addresses that hold nothing take no page");
}

/// Appends to one zone, all in flight together: the answers are places one behind the other in order of arrival, and each
/// place holds what its command sent.
#[test]
fn appends_are_told_where_they_went() {
    let mut host = Zoned::new(&zones(4));
    let lengths = [1, 5, 2, 7, 1, 1, 3];
    let tags: Vec<u32> = lengths.iter().map(|pages| host.submit(APPEND, Op::Write, SIZE, pages * PAGE, &[])).collect();
    host.run();
    let mut sector = SIZE;
    for (tag, pages) in tags.iter().zip(lengths) {
        assert_eq!(host.answers[tag], [sector], "append {tag}");
        assert_eq!(host.statuses[tag], Status::Success);
        sector += pages * PAGE;
    }
    assert_eq!(host.zone(1), Zone { state: ZoneState::ImplicitlyOpen, written: sector - SIZE });
    for (tag, pages) in tags.iter().zip(lengths) {
        let first = host.answers[tag][0];
        let sector_data = host.read(first, pages * PAGE).expect("what is written");
        let expected: Vec<u64> = (first..first + pages * PAGE).map(|at| sector_stamp((*tag).into(), at)).collect();
        assert_eq!(sector_data, expected, "append {tag}");
    }
}

/// A finish programs exactly the pages that are left, reads of them give zeroes, and a power cut changes nothing of it.
#[test]
fn a_finished_zone_is_filled_and_stays_full() {
    let config = zones(4);
    let mut host = Zoned::new(&config);
    for (zone, pages) in [(0, 0), (1, 1), (2, 47)] {
        if pages > 0 {
            assert_eq!(host.write(zone * SIZE, pages * PAGE), Status::Success);
        }
        let before = host.drive.counters().flash;
        assert_eq!(host.act(FINISH, zone), Status::Success);
        let after = host.drive.counters().flash;
        let filled = |flash: &ssdlab_flash::OpCounts| flash.get(OpKind::Program, Cause::Metadata);
        assert_eq!(filled(&after) - filled(&before), 48 - pages, "zone {zone}");
        assert_eq!(after.get(OpKind::Program, Cause::Host), before.get(OpKind::Program, Cause::Host));
        assert_eq!(host.act(FINISH, zone), Status::Success, "again");
        assert_eq!(filled(&host.drive.counters().flash), filled(&after), "a full zone is full");
    }
    let mut host = host.cut(&config);
    for (zone, pages) in [(0, 0), (1, 1), (2, 47)] {
        assert_eq!(host.zone(zone), Zone { state: ZoneState::Full, written: CAPACITY });
        assert_eq!(host.write(zone * SIZE + pages * PAGE, PAGE), Status::Refused(ZONE_IS_FULL));
        let zeroes = host.read(zone * SIZE + pages * PAGE, CAPACITY - pages * PAGE).expect("a full zone");
        assert!(zeroes.iter().all(|data| *data == 0), "zone {zone}");
        assert_eq!(host.act(RESET, zone), Status::Success);
        assert_eq!(host.read(zone * SIZE, PAGE), Err(Status::Refused(UNWRITTEN)));
        assert_eq!(host.write(zone * SIZE, CAPACITY), Status::Success);
    }
}

/// Open zones are closed by a power cut, and by a snapshot; one that was opened and not written is empty again.
#[test]
fn no_zone_is_open_behind_a_power_cut_or_in_a_snapshot() {
    let config = zones(5);
    let mut host = Zoned::with(&config, Contents::Nothing);
    assert_eq!(host.write(0, 3 * PAGE), Status::Success);
    assert_eq!(host.act(OPEN, 1), Status::Success);
    assert_eq!(host.write(SIZE, PAGE), Status::Success);
    assert_eq!(host.act(OPEN, 2), Status::Success);
    assert_eq!(host.write(3 * SIZE, CAPACITY), Status::Success);
    let states = |host: &Zoned| (0..5).map(|zone| host.zone(zone).state).collect::<Vec<_>>();
    use ZoneState::{Closed, Empty, ExplicitlyOpen, Full, ImplicitlyOpen};
    assert_eq!(states(&host), [ImplicitlyOpen, ExplicitlyOpen, ExplicitlyOpen, Full, Empty]);
    let mut saved = Vec::new();
    host.drive.save(&mut saved).expect("an idle drive is saved");
    let options = Options { seed: 1, contents: Contents::Nothing };
    let restored = Zoned::of(Drive::restore(&config, options, &mut &saved[..]).expect("what was saved"));
    let chips = host.drive.power_cut();
    let mut cut = Zoned::of(Drive::recover(&config, options, chips).expect("an accepted drive").0);
    assert_eq!(states(&restored), [Closed, Closed, Empty, Full, Empty]);
    assert_eq!(states(&cut), [Closed, Closed, Empty, Full, Empty]);
    assert_eq!(cut.write(3 * PAGE, PAGE), Status::Success, "it goes on at its write pointer");
    assert_eq!(cut.act(CLOSE, 2), Status::Refused(INVALID_TRANSITION));
}

/// The report says the shape, and of each zone what the drive says in process.
#[test]
fn the_report_is_what_the_drive_says() {
    let mut config = zones(4);
    config.ftl.own = Settings::default()
        .with("max_open_zones", 1_u64)
        .with("max_active_zones", 2_u64)
        .with("zone_size", 1_u64 << 19);
    let mut host = Zoned::new(&config);
    let size = 1024;
    for zone in 0..2 {
        assert_eq!(host.write(zone * size, (zone + 1) * PAGE), Status::Success);
    }
    assert_eq!(host.write(2 * size, PAGE), Status::Refused(TOO_MANY_ACTIVE));
    let tag = host.submit(REPORT, Op::Read, 0, 0, &[1, 3]);
    while let Some(at) = host.drive.next_event() {
        host.drive.run_until(at);
    }
    let answer = host.drive.answers().drain(..).find(|answer| answer.tag == tag).expect("an answer");
    assert_eq!(answer.words, [size, 4, PAGE, CAPACITY, 1, 2]);
    let told: Vec<Option<Zone>> =
        answer.bytes.chunks_exact(8).map(|bytes| Zone::decode(bytes.try_into().expect("8 bytes"))).collect();
    assert_eq!(told, (1..4).map(|zone| host.drive.zone(zone)).collect::<Vec<_>>());
    assert_eq!(host.zone(0).state, ZoneState::Closed, "it was opened first");
    for words in [[4, 1], [0, 5], [u64::MAX, 2]] {
        let tag = host.submit(REPORT, Op::Read, 0, 0, &words);
        host.run();
        assert_eq!(host.statuses[&tag], Status::OutOfRange, "{words:?}");
    }
}

/// Where blocks are gone, writes end with an error, all zones become read-only, one event says so, and what was acknowledged
/// can be read.
#[test]
fn a_drive_without_spares_has_read_only_zones() {
    let mut config = zones(12);
    config.flash.faults.program_failure = 0.1;
    let mut host = Zoned::new(&config);
    let mut acknowledged = Vec::new();
    'rounds: for round in 0.. {
        assert!(round < 200, "the spares do not go");
        for zone in 0..12 {
            if host.zone(zone).state == ZoneState::Full {
                if host.act(RESET, zone) != Status::Success {
                    break 'rounds;
                }
                acknowledged.retain(|(other, _)| *other != zone);
            }
            let written = host.zone(zone).written;
            let status = host.write(zone * SIZE + written, 16 * PAGE);
            match status {
                Status::Success => acknowledged.push((zone, zone * SIZE + written)),
                Status::ReadOnly => break 'rounds,
                other => panic!("a write ended with {other:?}"),
            }
        }
    }
    let mut events = Vec::new();
    host.drive.take_events(&mut events);
    let [event] = &events[..] else { panic!("one event, not {events:?}") };
    assert_eq!((event.kind, &event.words[..2]), (ZONES_READ_ONLY, &[0, 12][..]));
    assert!((0..12).all(|zone| host.zone(zone).state == ZoneState::ReadOnly));
    assert_eq!(host.write(0, PAGE), Status::ReadOnly);
    assert_eq!(host.act(RESET, 0), Status::Refused(INVALID_TRANSITION));
    assert!(!acknowledged.is_empty());
    for (_, sector) in acknowledged {
        assert!(host.read(sector, 16 * PAGE).is_ok(), "sector {sector}");
    }
}

#[test]
fn what_cannot_be_a_zoned_drive_is_refused_with_its_key() {
    let own = |key: &'static str, value: u64| {
        let mut config = zones(4);
        config.ftl.own = Settings::default().with(key, value);
        config
    };
    let open = |active: u64| {
        let mut config = own("max_active_zones", active);
        config.ftl.own.set("max_open_zones", 3_u64);
        config
    };
    let table = [
        (own("zone_size", 3 << 18), "ftl.zone_size", "a power of two of at least 262144"),
        (own("zone_size", 1 << 17), "ftl.zone_size", "holds a segment of 196608 bytes"),
        (own("zone_size", 1 << 62), "ftl.zone_size", "more than 2^63 bytes"),
        (own("max_active_zones", 2), "ftl.max_active_zones", "no limit on open zones"),
        (open(2), "ftl.max_active_zones", "max_open_zones = 3"),
        (DriveConfig { user_bytes: 4 * CAPACITY * 512 + 4096, ..zones(4) }, "capacity.user", "expected whole segments"),
    ];
    for (config, key, reason) in table {
        let error = Drive::new(&config, Options { seed: 1, contents: Contents::Nothing }).err().expect("a refusal");
        assert_eq!(error.key, key, "{error}");
        assert!(error.reason.contains(reason), "{error}");
    }
}

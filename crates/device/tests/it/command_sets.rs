//! Commands of a drive's own set: parameters, words and bytes in answers, refusals, events; on the design `tagged`.

use ssdlab_base::command_set::Words;
use ssdlab_base::command_sets::tags::{
    ACKNOWLEDGE, CLEAR_TAGS, FIND_TAG, NOT_A_TAG_PER_UNIT, READ_TAGGED, SAVE_TRIMS, TAG_REPLACED, TAGS, TAGS_CLEARED,
    WRITE_TAGGED, ZERO_TAG,
};
use ssdlab_base::{Answer, CommandSpec, Event, Nanos, Op, Opcode, Request};
use ssdlab_device::{Completion, Data, Drive, DriveConfig, InterfaceKind, Options, Payload, Status, sector_stamp};
use ssdlab_flash::Contents;
use ssdlab_torture::configs::handful;

const CONTENTS: [Contents; 3] = [Contents::Nothing, Contents::Stamps, Contents::Bytes];

fn config() -> DriveConfig {
    let mut config = handful();
    config.flash.geometry.blocks_per_plane = 24;
    config.gc.free_blocks = 3;
    config.user_bytes = 32 * 1024;
    config.ftl.design = "tagged".to_string();
    config
}

/// Sectors of a mapping unit.
fn unit() -> u64 {
    u64::from(config().ftl.mapping_unit) / 512
}

fn drive(config: &DriveConfig, contents: Contents) -> Drive {
    Drive::new(config, Options { seed: 1, contents }).expect("an accepted drive")
}

fn spec(opcode: Opcode) -> &'static CommandSpec {
    TAGS.command(opcode).expect("of the set")
}

/// Runs one command alone: its completion and its answer.
fn alone(drive: &mut Drive, request: Request, words: &[u64]) -> (Completion, Answer) {
    let request = Request { at: drive.now(), tag: 7, ..request };
    let stamps = drive.sector_data_bytes() > 0;
    let data = if stamps { Data::Stamp(99) } else { Data::Nothing };
    drive.submit_command(&request, Payload { data, words });
    while drive.completions().is_empty() {
        let at = drive.next_event().expect("it completes");
        drive.run_until(at);
    }
    let completion = drive.completions().pop().expect("one command");
    assert!(drive.completions().is_empty());
    assert_eq!(completion.tag, 7);
    let answer = drive.answers().pop();
    assert_eq!(answer.is_some(), completion.has_answer, "a completion says whether there is an answer");
    (completion, answer.unwrap_or_default())
}

fn of_set(drive: &mut Drive, opcode: Opcode, sector: u64, sectors: u64, words: &[u64]) -> (Completion, Answer) {
    alone(drive, Request::of_set(spec(opcode), sector, sectors), words)
}

fn events(drive: &mut Drive) -> Vec<Event> {
    let mut events = Vec::new();
    drive.take_events(&mut events);
    events
}

#[test]
fn words_and_bytes_go_both_ways_whatever_is_kept_of_data() {
    for timed in [true, false] {
        for contents in CONTENTS {
            let mut drive = drive(&DriveConfig { timed, ..config() }, contents);
            let (done, answer) = of_set(&mut drive, READ_TAGGED, 0, unit(), &[]);
            assert_eq!((done.status, answer), (Status::Absent, Answer::default()));
            let (done, _) = of_set(&mut drive, WRITE_TAGGED, unit(), 2 * unit(), &[11, 12]);
            assert_eq!((done.status, done.op, done.bytes), (Status::Success, Op::Write, 2 * unit() * 512));
            drive.read_data().clear();
            let (done, answer) = of_set(&mut drive, READ_TAGGED, 0, 3 * unit() + 1, &[]);
            assert_eq!((done.status, &answer.words[..]), (Status::Success, &[0, 11, 12, 0][..]));
            if contents == Contents::Stamps {
                let (_, sector_data) = drive.read_data().pop().expect("the data comes with it");
                let stamp =
                    |sector: usize| u64::from_le_bytes(sector_data[sector * 8..][..8].try_into().expect("8 bytes"));
                assert_eq!(stamp(unit() as usize), sector_stamp(99, unit()));
                assert_eq!(stamp(0), 0);
            }
            let (done, answer) = of_set(&mut drive, FIND_TAG, 0, 0, &[12]);
            assert_eq!(
                (done.status, answer.words, answer.bytes),
                (Status::Success, vec![1], 2_u64.to_le_bytes().to_vec())
            );
            let (done, answer) = of_set(&mut drive, CLEAR_TAGS, 0, 0, &[]);
            assert_eq!((done.status, answer.words), (Status::Success, vec![2]));
            let (done, answer) = of_set(&mut drive, FIND_TAG, 0, 0, &[12]);
            assert_eq!((done.status, answer.words), (Status::Absent, vec![0]));
            let counts: Vec<u64> = drive.command_counts().iter().map(|count| count.completed).collect();
            assert_eq!(counts, [1, 2, 2, 1, 0, 0]);
            assert!(drive.check().iter().all(|check| check.passed));
        }
    }
}

#[test]
fn a_refused_command_changes_nothing_and_one_that_is_unknown_is_unsupported() {
    let mut drive = drive(&config(), Contents::Stamps);
    of_set(&mut drive, WRITE_TAGGED, 0, 2 * unit(), &[5, 6]);
    let programs = drive.counters().flash;
    let tag = unit();
    let wrong: [(Opcode, u64, u64, &[u64], Status); 7] = [
        (WRITE_TAGGED, 0, 2 * tag, &[7, 0], Status::Refused(ZERO_TAG)),
        (WRITE_TAGGED, 0, 2 * tag, &[7], Status::Refused(NOT_A_TAG_PER_UNIT)),
        (WRITE_TAGGED, 0, 2 * tag + 1, &[7, 8, 9], Status::Refused(NOT_A_TAG_PER_UNIT)),
        (WRITE_TAGGED, 60, 3000, &[7], Status::OutOfRange),
        (FIND_TAG, 0, 0, &[], Status::Invalid),
        (FIND_TAG, 0, 0, &[1, 2], Status::Invalid),
        (ACKNOWLEDGE, 0, 0, &[1], Status::Invalid),
    ];
    for (opcode, sector, sectors, words, status) in wrong {
        let (done, answer) = of_set(&mut drive, opcode, sector, sectors, words);
        assert_eq!((done.status, answer), (status, Answer::default()), "{} {words:?}", spec(opcode).name);
    }
    for opcode in [Opcode(7), Opcode(255)] {
        let (done, _) = alone(&mut drive, Request { opcode, ..Request::new(Op::Write, 0, 8) }, &[]);
        assert_eq!(done.status, Status::Unsupported);
    }
    // Carried as another kind of request than the set says.
    let (done, _) = alone(&mut drive, Request { opcode: FIND_TAG, ..Request::new(Op::Write, 0, 0) }, &[1]);
    assert_eq!(done.status, Status::Invalid);
    assert_eq!(drive.counters().flash, programs, "no chip was asked anything");
    assert_eq!(of_set(&mut drive, READ_TAGGED, 0, 2 * tag, &[]).1.words, [5, 6]);
    assert_eq!(events(&mut drive), []);
    assert_eq!(drive.command_counts()[0].refused, 3);
    assert_eq!(drive.command_counts()[0].failed, 4);
}

#[test]
fn a_drive_without_a_set_supports_no_command_of_one() {
    let mut drive = drive(
        &DriveConfig { ftl: ssdlab_device::FtlConfig { design: "page".into(), ..config().ftl }, ..config() },
        Contents::Stamps,
    );
    assert!(drive.command_set().is_none());
    assert_eq!(of_set(&mut drive, WRITE_TAGGED, 0, unit(), &[1]).0.status, Status::Unsupported);
    assert!(drive.command_counts().is_empty());
}

#[test]
fn events_come_in_order_and_stay_until_they_are_acknowledged() {
    let mut drive = drive(&config(), Contents::Nothing);
    let kinds = |events: &[Event]| events.iter().map(|event| (event.number, event.kind)).collect::<Vec<_>>();
    of_set(&mut drive, WRITE_TAGGED, 0, unit(), &[1]);
    assert_eq!(events(&mut drive), [], "a new tag is no event");
    of_set(&mut drive, WRITE_TAGGED, 0, unit(), &[2]);
    of_set(&mut drive, CLEAR_TAGS, 0, 0, &[]);
    of_set(&mut drive, WRITE_TAGGED, unit(), unit(), &[3]);
    of_set(&mut drive, WRITE_TAGGED, unit(), unit(), &[4]);
    let replaced = |number: u64| (number, TAG_REPLACED);
    // Not seen yet: it cannot be acknowledged.
    assert_eq!(of_set(&mut drive, ACKNOWLEDGE, 0, 0, &[1]).0.status, Status::Invalid);
    let told = events(&mut drive);
    assert_eq!(kinds(&told), [replaced(1), (2, TAGS_CLEARED), replaced(3)]);
    assert_eq!((told[0].words, told[1].words), ([0, 1, 2], [1, 0, 0]));
    assert!(told.windows(2).all(|pair| pair[0].at <= pair[1].at));
    assert_eq!(events(&mut drive), [], "each is told once");
    drive.host_restarted();
    assert_eq!(
        kinds(&events(&mut drive)),
        [replaced(1), replaced(3)],
        "what needs no acknowledgement is not told again"
    );
    assert_eq!(of_set(&mut drive, ACKNOWLEDGE, 0, 0, &[1]).0.status, Status::Success);
    of_set(&mut drive, WRITE_TAGGED, unit(), unit(), &[5]);
    drive.host_restarted();
    assert_eq!(kinds(&events(&mut drive)), [replaced(3), replaced(4)]);
    assert_eq!(of_set(&mut drive, ACKNOWLEDGE, 0, 0, &[5]).0.status, Status::Invalid);
    assert_eq!(of_set(&mut drive, ACKNOWLEDGE, 0, 0, &[4]).0.status, Status::Success);
    assert_eq!(of_set(&mut drive, ACKNOWLEDGE, 0, 0, &[4]).0.status, Status::Success, "twice is no mistake");
    drive.host_restarted();
    assert_eq!(events(&mut drive), []);
    assert_eq!(drive.event_counts(), (4, 0));
}

#[test]
fn an_event_wakes_the_host() {
    let mut drive = drive(&config(), Contents::Nothing);
    of_set(&mut drive, WRITE_TAGGED, 0, unit(), &[1]);
    let at = drive.now();
    drive.submit_command(
        &Request { at, tag: 1, ..Request::of_set(spec(WRITE_TAGGED), 0, unit()) },
        Payload { data: Data::Nothing, words: &[2] },
    );
    assert!(drive.run_to_completion(Nanos::MAX));
    assert!(drive.completions().is_empty(), "the event comes before the data is on flash");
    assert_eq!(events(&mut drive)[0].kind, TAG_REPLACED);
    assert!(drive.run_to_completion(Nanos::MAX));
    assert_eq!(drive.completions().len(), 1);
}

#[test]
fn words_and_bytes_cost_their_time_on_the_link() {
    let mut config = config();
    config.interface.kind = InterfaceKind::Nvme;
    config.interface.command_overhead = Nanos(1_000);
    // A nanosecond a byte.
    config.interface.bandwidth = 1_000_000_000;
    let mut drive = drive(&config, Contents::Nothing);
    let mut took = |opcode, sector, sectors, words: &[u64]| {
        let (done, answer) = of_set(&mut drive, opcode, sector, sectors, words);
        ((done.at - done.submitted).0, answer)
    };
    // Nothing found: a word there, a word back.
    assert_eq!(took(FIND_TAG, 0, 0, &[1]).0, 1_000 + 8 + 8);
    assert_eq!(took(CLEAR_TAGS, 0, 0, &[]).0, 1_000 + 8);
    took(WRITE_TAGGED, 0, 3 * unit(), &[1, 1, 1]);
    let (time, answer) = took(FIND_TAG, 0, 0, &[1]);
    assert_eq!((time, answer.bytes.len()), (1_000 + 8 + 8 + 24, 24));
    // As a plain write and a plain read of the same, and the words.
    let plain = drive_time(&config, Op::Write, 2 * unit());
    let mut drive = self::drive(&config, Contents::Nothing);
    let (done, _) = of_set(&mut drive, WRITE_TAGGED, 0, 2 * unit(), &[1, 2]);
    assert_eq!((done.at - done.submitted).0, plain + 16);
}

fn drive_time(config: &DriveConfig, op: Op, sectors: u64) -> u64 {
    let mut drive = drive(config, Contents::Nothing);
    let (done, _) = alone(&mut drive, Request::new(op, 0, sectors), &[]);
    (done.at - done.submitted).0
}

#[test]
fn the_slow_path_empties_a_sata_drive_first() {
    let mut config = config();
    config.interface.kind = InterfaceKind::Sata;
    config.interface.queue_depth = 32;
    let mut drive = drive(&config, Contents::Nothing);
    drive.submit(&Request { tag: 1, ..Request::new(Op::Write, 0, 8) });
    for (tag, opcode, words) in [(2, CLEAR_TAGS, &[][..]), (3, FIND_TAG, &[9][..])] {
        drive.submit_command(
            &Request { tag, ..Request::of_set(spec(opcode), 0, 0) },
            Payload { data: Data::Nothing, words },
        );
    }
    while drive.outstanding() > 0 {
        let at = drive.next_event().expect("they complete");
        drive.run_until(at);
    }
    let ended: Vec<(u32, Nanos)> = drive.completions().iter().map(|done| (done.tag, done.at)).collect();
    assert_eq!(ended.iter().map(|(tag, _)| *tag).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(ended[0].1 > Nanos::ZERO && ended[1].1 >= ended[0].1, "{ended:?}");
}

#[test]
fn records_of_trims_that_a_command_saved_survive_a_power_cut() {
    for timed in [true, false] {
        let config = DriveConfig { timed, ..config() };
        let options = Options { seed: 1, contents: Contents::Stamps };
        let mut drive = drive(&config, Contents::Stamps);
        of_set(&mut drive, WRITE_TAGGED, 0, 4 * unit(), &[1, 2, 3, 4]);
        alone(&mut drive, Request::new(Op::Trim, 0, 2 * unit()), &[]);
        let (done, answer) = of_set(&mut drive, SAVE_TRIMS, 0, 0, &[]);
        assert_eq!((done.status, answer.words), (Status::Success, vec![1]));
        let (mut drive, _) = Drive::recover(&config, options, drive.power_cut()).expect("it comes back");
        assert_eq!(drive.mapped_run(0, 4 * unit()), (false, 2 * unit()), "the trim holds");
        assert_eq!(of_set(&mut drive, READ_TAGGED, 0, 4 * unit(), &[]).0.status, Status::Absent, "tags are in RAM");
    }
}

#[test]
fn words_that_a_command_may_have() {
    assert!(Words::Exactly(2).allow(2) && !Words::Exactly(2).allow(1));
    assert!(Words::UpTo(2).allow(0) && Words::UpTo(2).allow(2) && !Words::UpTo(2).allow(3));
    assert_eq!((Words::NONE.most(), Words::UpTo(9).most()), (0, 9));
}

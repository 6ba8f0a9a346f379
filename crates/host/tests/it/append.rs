//! The layer `append` on a drive with segments, and on one with zones: what it sends, keeps and refuses.

use rand::RngExt;
use ssdlab_base::{Nanos, Op, Request, rng};
use ssdlab_device::{Data, Description, DriveConfig, Options, Status};
use ssdlab_flash::{Contents, FaultKind};
use ssdlab_host::{BlockDevice as _, Device, Host, Loss, Member};

use crate::one_by_one::{flush, one, read, write};

/// What it stands on: segments, or zones that are twice as far apart as they are long, as few of them active as it needs.
const SEGMENTS: &[&str] = &[];
const ZONES: &[&str] =
    &["ftl.design=aftl-zoned", "ftl.zone_size=128k", "ftl.max_open_zones=3", "ftl.max_active_zones=4"];
const TARGETS: [&[&str]; 2] = [SEGMENTS, ZONES];

/// A drive of 96 segments of 16 pages of 8 sectors.
fn drive(set: &[&str]) -> DriveConfig {
    let text = "name = \"small\"\n[flash]\nchannels = 2\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
                blocks_per_plane = 104\npages_per_block = 8\npage_size = \"4k\"\ncell = \"slc\"\n[capacity]\nuser = \"6m\"\n\
                [buffer]\npolicy = \"none\"\n[ftl]\ndesign = \"aftl\"\nallocation = \"dynamic\"\n";
    let mut description = Description::parse(text, "small.toml").expect("a description");
    set.iter().for_each(|set| description.set(set).expect("a setting"));
    description.resolve().expect("a drive")
}

fn host(keys: &str) -> Host {
    Host::parse(&format!("[[layer]]\nkind = \"append\"\n{keys}"), "host.toml").expect("a host")
}

fn member(target: &[&str], contents: Contents) -> Member {
    let mut member = Member::new("small", &drive(target), Options { seed: 1, contents }).expect("a drive");
    ssdlab_host::Administration::drives_mut(&mut member)[0].device.expect_faults();
    member
}

fn layer(target: &[&str]) -> Box<dyn Device> {
    layer_with("", target)
}

fn layer_with(keys: &str, target: &[&str]) -> Box<dyn Device> {
    let host = host(keys);
    assert!(host.sectors(&drive(target)).is_ok());
    host.build(vec![member(target, Contents::Bytes)]).expect("a stack")
}

/// A layer between that hands commands on, and holds some of them when the power goes.
const SCHEDULER: &str = "[[layer]]\nkind = \"scheduler\"\ndepth = 3\n";

fn figure(device: &dyn Device, name: &str) -> f64 {
    device.layers()[0].figures[name]
}

/// The power of everything goes, and a new layer begins above what is left.
fn cut_all(device: Box<dyn Device>) -> Box<dyn Device> {
    let mut members = device.into_members();
    for member in &mut members {
        member.cycle(&mut |_| None);
        // Commands that were in flight are not answered.
        member.completions().clear();
    }
    host("").build(members).expect("it comes back")
}

/// Sends commands at one instant, and waits for all; when each ended, in the order of arrival.
fn together(device: &mut dyn Device, requests: &[(Request, u8)]) -> Vec<Nanos> {
    let at = device.now();
    for (tag, (request, fill)) in (0..).zip(requests) {
        let bytes = vec![*fill; if request.op == Op::Write { request.bytes() as usize } else { 0 }];
        let data = if bytes.is_empty() { Data::Nothing } else { Data::Bytes(&bytes) };
        device.submit(&Request { at, tag, ..*request }, data);
    }
    let mut ends = vec![Nanos(0); requests.len()];
    while device.outstanding() > 0 || !device.completions().is_empty() {
        device.wait_for_completion(Nanos::MAX);
        for one in device.completions().drain(..) {
            assert_eq!(one.status, Status::Success);
            ends[one.tag as usize] = one.at - at;
        }
    }
    device.read_data().clear();
    ends
}

/// Writes to one unit are programmed together, and the last of them stands. A command that needs what is there waits for them.
#[test]
fn writes_to_the_same_unit_are_in_flight_together_and_take_effect_in_order() {
    for target in TARGETS {
        let mut device = layer(target);
        let whole = |fill| (Request::new(Op::Write, 0, 8), fill);
        let alone = together(&mut *device, &[whole(1)])[0];
        // Two dies program four pages each.
        let ends = together(&mut *device, &(2..10).map(whole).collect::<Vec<_>>());
        assert!(ends.is_sorted(), "{ends:?}");
        assert!(ends[7] < Nanos(alone.0 * 5), "eight writes took {}, one {alone}", ends[7]);
        assert_eq!(read(&mut *device, 0, 8), [9; 8]);
        assert_eq!((figure(&*device, "sent_early"), figure(&*device, "waited_for_overlaps")), (7.0, 0.0));

        let part = (Request::new(Op::Write, 2, 3), 20);
        let ends = together(&mut *device, &[whole(10), part, whole(11), (Request::new(Op::Read, 0, 8), 0), whole(12)]);
        assert!(ends.is_sorted(), "{ends:?}");
        assert_eq!(read(&mut *device, 0, 8), [12; 8]);
        together(&mut *device, &[whole(13), whole(14), part]);
        assert_eq!(read(&mut *device, 0, 8), [14, 14, 20, 20, 20, 14, 14, 14]);
        // One that covers two units takes effect after both.
        together(&mut *device, &[whole(15), (Request::new(Op::Write, 8, 8), 16), (Request::new(Op::Write, 0, 16), 17)]);
        assert_eq!(read(&mut *device, 0, 16), [17; 16]);
        flush(&mut *device);
        let mut device = cut_all(device);
        assert_eq!(read(&mut *device, 0, 16), [17; 16]);
    }
}

#[test]
fn a_part_of_a_unit_keeps_the_rest() {
    for target in TARGETS {
        let mut device = layer(target);
        write(&mut *device, 0, 24, 1);
        write(&mut *device, 3, 10, 2);
        assert_eq!(read(&mut *device, 0, 24), [&[1; 3][..], &[2; 10], &[1; 11]].concat());
        assert_eq!(figure(&*device, "units_read_for_parts"), 2.0, "the first and the second unit");
        // Nothing is there to be read: no unit is written for a trim, nor read for a part of an empty one.
        write(&mut *device, 801, 2, 3);
        assert_eq!(read(&mut *device, 800, 8), [0, 3, 3, 0, 0, 0, 0, 0]);
        assert_eq!(figure(&*device, "units_read_for_parts"), 2.0);
        assert_eq!(one(&mut *device, Request::new(Op::Trim, 4, 16), 0).0, Status::Success);
        assert_eq!(read(&mut *device, 0, 24), [&[1; 3][..], &[2], &[0; 16], &[1; 4]].concat());
        assert_eq!(device.mapped_run(8, 24), (false, 16), "the second unit holds nothing");
    }
}

#[test]
fn what_a_flush_covered_is_there_after_the_power_was_lost_and_the_rest_may_not_be() {
    for target in TARGETS {
        let mut device = layer(target);
        write(&mut *device, 0, 64, 1);
        write(&mut *device, 64, 8, 2);
        assert_eq!(one(&mut *device, Request::new(Op::Trim, 16, 16), 0).0, Status::Success);
        flush(&mut *device);
        write(&mut *device, 0, 8, 9);
        let fua = Request { fua: true, ..Request::new(Op::Write, 200, 8) };
        assert_eq!(one(&mut *device, fua, 5).0, Status::Success);
        write(&mut *device, 200, 8, 9);
        let mut device = cut_all(device);
        // The FUA write's commit had what came before it.
        let expected = [&[9; 8][..], &[1; 8], &[0; 16], &[1; 32], &[2; 8]].concat();
        assert_eq!(read(&mut *device, 0, 72), expected);
        assert_eq!(read(&mut *device, 200, 8), [5; 8], "no commit covered the last write");
    }
}

/// Random writes, trims, flushes and crashes for many turns of the log: what is read is what a list says.
#[test]
fn a_list_says_the_same_over_many_checkpoints() {
    for target in TARGETS {
        let mut device = layer(target);
        let units = device.sectors() / 8;
        let mut list = vec![0_u8; units as usize];
        let mut rng = rng(1, "append");
        let mut checkpoints = 0.0;
        for round in 0..12 {
            for _ in 0..2500 {
                let (unit, fill) = (rng.random_range(0..units), rng.random_range(1..=255));
                if rng.random_bool(0.05) {
                    let count = rng.random_range(1..=20).min(units - unit);
                    assert_eq!(one(&mut *device, Request::new(Op::Trim, unit * 8, count * 8), 0).0, Status::Success);
                    list[unit as usize..(unit + count) as usize].fill(0);
                } else {
                    write(&mut *device, unit * 8, 8, fill);
                    list[unit as usize] = fill;
                }
            }
            flush(&mut *device);
            checkpoints += figure(&*device, "checkpoints");
            assert!(figure(&*device, "cleaned_segments") > 10.0, "round {round} cleans");
            device = cut_all(device);
            let found: Vec<u8> = read(&mut *device, 0, units * 8).into_iter().step_by(8).collect();
            assert_eq!(found, list, "round {round}");
        }
        assert!(checkpoints >= 12.0, "{checkpoints} checkpoints beside those of the starts");
    }
}

/// What was in flight is sent again, so the host hears of nothing.
#[test]
fn a_power_cut_of_the_drive_alone_loses_nothing() {
    for (keys, target) in ["", SCHEDULER].into_iter().flat_map(|keys| TARGETS.map(|target| (keys, target))) {
        let mut device = layer_with(keys, target);
        let units = device.sectors() / 8;
        for unit in 0..units {
            write(&mut *device, unit * 8, 8, 1);
        }
        let mut rng = rng(2, "append");
        let mut list = vec![1_u8; units as usize];
        for cut in 0..60 {
            let at = device.now();
            let first = rng.random_range(0..units - 16);
            for tag in 0..16 {
                let bytes = [cut + 2; 4096];
                let write = Request { at, tag, ..Request::new(Op::Write, (first + u64::from(tag)) * 8, 8) };
                device.submit(&write, Data::Bytes(&bytes));
                list[first as usize + tag as usize] = cut + 2;
            }
            for _ in 0..rng.random_range(0..20) {
                let Some(at) = device.next_event() else { break };
                device.run_until(at);
            }
            assert_eq!(device.cut(0, &mut |_| None), Loss::Nothing);
            while device.outstanding() > 0 {
                assert!(device.wait_for_completion(Nanos::MAX), "a command never completes");
                for completion in std::mem::take(device.completions()) {
                    assert_eq!(completion.status, Status::Success, "after cut {cut}");
                }
            }
            device.completions().clear();
        }
        let found: Vec<u8> = read(&mut *device, 0, units * 8).into_iter().step_by(8).collect();
        assert_eq!(found, list);
    }
}

/// A part of a unit is written although the rest cannot be read; the rest is lost, and stays so over a restart.
#[test]
fn what_cannot_be_read_is_lost_until_it_is_written() {
    for target in TARGETS {
        let mut device = layer(target);
        write(&mut *device, 0, 16, 1);
        // Each attempt to read the unit fails.
        (0..9).for_each(|_| device.drives_mut()[0].device.fail_next(FaultKind::Read, None));
        write(&mut *device, 2, 3, 2);
        assert_eq!(read(&mut *device, 2, 3), [2; 3]);
        let lost = |device: &mut dyn Device, sector| one(device, Request::new(Op::Read, sector, 1), 0).0;
        for restarted in [false, true] {
            if restarted {
                flush(&mut *device);
                device = cut_all(device);
            }
            for sector in 0..16 {
                let expected = if matches!(sector, 2..5 | 8..) { Status::Success } else { Status::UncorrectableRead };
                assert_eq!(lost(&mut *device, sector), expected, "sector {sector}, restarted: {restarted}");
            }
        }
        write(&mut *device, 0, 8, 3);
        assert_eq!(read(&mut *device, 0, 8), [3; 8]);
    }
}

#[test]
fn without_contents_a_layer_begins_anew_and_foreign_data_is_refused() {
    for target in TARGETS {
        let mut device = host("").build(vec![member(target, Contents::Nothing)]).expect("a stack");
        let at = device.now();
        device.submit(&Request { at, ..Request::new(Op::Write, 0, 64) }, Data::Nothing);
        assert!(device.wait_for_completion(Nanos::MAX));
        device.completions().clear();
        let device = cut_all(device);
        assert_eq!(device.mapped_run(0, 64), (false, 64));
        // A writer other than the layer appends to a segment for data.
        let mut member = member(target, Contents::Bytes);
        let segment = if target == ZONES { 256 } else { 16 * 8 };
        member.submit(&Request::new(Op::Write, 90 * segment, 8), Data::Bytes(&[1; 4096]));
        assert!(member.wait_for_completion(Nanos::MAX));
        member.completions().clear();
        let refused = host("").build(vec![member]).err().expect("it is refused").to_string();
        assert!(refused.contains("1 segments of the drive hold data that no layer append wrote"), "{refused}");
    }
}

#[test]
fn what_cannot_work_is_refused_with_the_place() {
    let small = drive(&["capacity.user=320k"]);
    let refused = host("").sectors(&small).expect_err("too few segments").to_string();
    assert!(refused.contains("host.toml:2:8") && refused.contains("5 segments"), "{refused}");
    let page = drive(&["ftl.design=page"]);
    let refused = host("").sectors(&page).expect_err("no segments").to_string();
    assert!(
        refused.contains("found a drive of the design page, expected one with the command set segments or zoned"),
        "{refused}"
    );
    let few = drive(&[ZONES, &["ftl.max_open_zones=2", "ftl.max_active_zones=3"]].concat());
    let refused = host("").sectors(&few).expect_err("too few active zones").to_string();
    assert!(refused.contains("expected ftl.max_active_zones = 4 or more"), "{refused}");
    let stripe = Host::parse("[[layer]]\nkind = \"stripe\"\ndrives = 2\n", "host.toml").expect("a host");
    let refused = stripe.sectors(&drive(&[])).expect_err("block I/O").to_string();
    assert!(refused.contains("put a layer 'append' between them"), "{refused}");
}

/// Units, and what is left of the drive for them.
#[test]
fn capacity_is_what_over_provisioning_leaves() {
    let sectors = |keys: &str| host(keys).sectors(&drive(&[])).expect("a stack");
    // Two areas of the log of a segment each; three segments are kept free.
    assert_eq!(sectors("over_provisioning = \"1%\"\n"), (94 - 3) * 16 * 8);
    assert_eq!(sectors("over_provisioning = \"25%\"\n"), 94 * 16 * 100 / 125 * 8);
    assert!(Host::parse("[[layer]]\nkind = \"append\"\nfree_segments = 1\n", "h.toml").is_err());
}

/// Zones that are open or closed.
fn active(device: &dyn Device) -> u32 {
    let parts = device.drives();
    let count = parts[0].device.zones().expect("a drive with zones").count;
    (0..count).filter(|zone| parts[0].device.zone(*zone).expect("one of them").state.is_active()).count() as u32
}

/// A drive that limits active zones refuses a write that would open one more, and the layer would send it again for ever. Zones that power
/// cuts and crashes of the host leave written in part are made full; one of each area of the log is left to its next checkpoint.
#[test]
fn zones_that_crashes_leave_do_not_add_up() {
    let mut device = layer(ZONES);
    let units = device.sectors() / 8;
    let mut rng = rng(3, "append");
    let mut finished = 0.0;
    for crash in 0..60 {
        for _ in 0..rng.random_range(1..60) {
            write(&mut *device, rng.random_range(0..units) * 8, 8, 1);
            assert!(active(&*device) <= 4, "{} zones are active before crash {crash}", active(&*device));
        }
        finished += figure(&*device, "finished_segments");
        match crash % 3 {
            0 => assert_eq!(device.cut(0, &mut |_| None), Loss::Nothing),
            1 => device = cut_all(device),
            _ => device = host("").build(device.into_members()).expect("the drive kept its power"),
        }
        assert!(active(&*device) <= 4, "{} zones are active after crash {crash}", active(&*device));
    }
    assert!(finished > 10.0, "{finished} zones were made full beside those of the starts");
}

/// Both targets do the same for the same commands, but for what only zones have.
#[test]
fn zones_and_segments_take_the_same_writes() {
    let work = |target| {
        let mut device = layer(target);
        let units = device.sectors() / 8;
        let mut rng = rng(4, "append");
        for _ in 0..5000 {
            write(&mut *device, rng.random_range(0..units) * 8, 8, 1);
        }
        flush(&mut *device);
        let figures = device.layers().remove(0).figures;
        (device.sectors(), figures, device.counters().bytes[1])
    };
    assert_eq!(work(SEGMENTS), work(ZONES));
}

/// A scheduler hands on the drive's segments, and does not take block I/O for them from a host that knows nothing of them.
#[test]
fn a_scheduler_between_hands_everything_on_and_one_alone_is_refused() {
    for target in TARGETS {
        let mut device = layer_with(SCHEDULER, target);
        let sectors = device.sectors();
        assert_eq!(sectors, layer(target).sectors());
        (0..4).for_each(|round| write(&mut *device, round * 512, 512, round as u8 + 1));
        flush(&mut *device);
        let mut members = device.into_members();
        members.iter_mut().for_each(|member| member.cycle(&mut |_| None));
        let mut device = host(SCHEDULER).build(members).expect("it comes back");
        assert_eq!(read(&mut *device, 510, 4), [1, 1, 2, 2]);
        let alone = Host::parse(SCHEDULER, "host.toml").expect("a host").sectors(&drive(target));
        let refused = alone.expect_err("block I/O on segments").to_string();
        assert!(refused.contains("the layer scheduler sends block I/O"), "{refused}");
    }
}

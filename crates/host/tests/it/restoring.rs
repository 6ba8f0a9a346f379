//! Restoring in the host: what it packs, splits, copies back and keeps of its table, on a drive of a description.

use ssdlab_base::{Nanos, Op, Request};
use ssdlab_device::{Data, Description, DriveConfig, Options, Status};
use ssdlab_flash::{Contents, FaultKind};
use ssdlab_host::{Device, Host, Loss, Member};

/// A drive of 4 MB whose units have 8 sectors.
fn drive(set: &[&str]) -> DriveConfig {
    let text = "name = \"small\"\n[flash]\nchannels = 2\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
                blocks_per_plane = 64\npages_per_block = 16\npage_size = \"8k\"\ncell = \"slc\"\n[capacity]\nuser = \"4m\"\n\
                [buffer]\npolicy = \"none\"\n[ftl]\nmapping_unit = \"4k\"\n";
    let mut description = Description::parse(text, "small.toml").expect("a description");
    set.iter().for_each(|set| description.set(set).expect("a setting"));
    description.resolve().expect("a drive")
}

fn host(keys: &str) -> Host {
    Host::parse(&format!("[[layer]]\nkind = \"restoring\"\n{keys}"), "host.toml").expect("a host")
}

fn member(set: &[&str], contents: Contents) -> Member {
    let mut member = Member::new("small", &drive(set), Options { seed: 1, contents }).expect("a drive");
    ssdlab_host::Administration::drives_mut(&mut member)[0].device.expect_faults();
    member
}

/// A layer with a log of 64 places.
fn layer(keys: &str) -> Box<dyn Device> {
    host(&format!("log = \"256k\"\n{keys}")).build(vec![member(&[], Contents::Bytes)]).expect("a stack")
}

fn figure(device: &dyn Device, name: &str) -> f64 {
    device.layers()[0].figures[name]
}

/// Sends requests at one instant, and waits for all; their statuses and what reads brought, by tag.
fn at_once(device: &mut dyn Device, requests: &[Request], fill: u8) -> Vec<(Status, Vec<u8>)> {
    let at = device.now();
    for (tag, request) in (0..).zip(requests) {
        let bytes = vec![fill; if request.op == Op::Write { request.bytes() as usize } else { 0 }];
        let data = if bytes.is_empty() { Data::Nothing } else { Data::Bytes(&bytes) };
        device.submit(&Request { at, tag, ..*request }, data);
    }
    let mut ended: Vec<_> = requests.iter().map(|_| None).collect();
    while ended.iter().any(Option::is_none) {
        assert!(device.run_to_completion(Nanos::MAX), "a request never completes");
        let mut read: Vec<_> = std::mem::take(device.read_data());
        for completion in std::mem::take(device.completions()) {
            let data = read.iter_mut().find(|(tag, _)| *tag == completion.tag).map(|(_, data)| std::mem::take(data));
            let before = ended[completion.tag as usize].replace((completion.status, data.unwrap_or_default()));
            assert!(before.is_none(), "request {} is answered twice", completion.tag);
        }
    }
    ended.into_iter().flatten().collect()
}

fn write(device: &mut dyn Device, sector: u64, sectors: u64, fill: u8) {
    assert_eq!(at_once(device, &[Request::new(Op::Write, sector, sectors)], fill)[0].0, Status::Success);
}

fn flush(device: &mut dyn Device) {
    assert_eq!(at_once(device, &[Request::new(Op::Flush, 0, 0)], 0)[0].0, Status::Success);
}

/// The first byte of each sector.
fn read(device: &mut dyn Device, sector: u64, sectors: u64) -> Vec<u8> {
    let (status, bytes) = at_once(device, &[Request::new(Op::Read, sector, sectors)], 0).remove(0);
    assert_eq!(status, Status::Success);
    bytes.chunks(512).map(|sector| sector[0]).collect()
}

/// The power of everything goes, and a new layer begins above what is left.
fn cut_all(device: Box<dyn Device>, keys: &str) -> Box<dyn Device> {
    let mut members = device.into_members();
    members.iter_mut().for_each(|member| member.cycle(&mut |_| None));
    host(&format!("log = \"256k\"\n{keys}")).build(members).expect("it comes back")
}

#[test]
fn a_log_that_cannot_work_is_refused_with_its_place() {
    for (keys, place, numbers) in [
        ("log = \"8k\"\n", "host.toml:2:8: the layer restoring", "8 KiB has 2 places of 4 KiB"),
        ("log = \"4m\"\n", "host.toml:2:8: the layer restoring", "4 MiB"),
        ("", "host.toml:2:8: the layer restoring", "the smallest device has 4 MiB"),
    ] {
        let refused = host(keys).sectors(&drive(&[])).expect_err(keys).to_string();
        assert!(refused.starts_with(place) && refused.contains(numbers), "{refused}");
    }
    for (keys, place, expected) in [
        ("range = \"128m\"\n", "host.toml:3:9: layer[0].range", "at most the log, 64 MiB"),
        ("restore = \"lsdm\"\nrange = \"48m\"\n", "host.toml:4:9: layer[0].range", "at most half of the log, 32 MiB"),
        ("restore = \"both\"\n", "host.toml:3:11: layer[0].restore", "ressd"),
        ("copies = 0\n", "host.toml:3:10: layer[0].copies", "1"),
        ("log = 1000\n", "host.toml:3:7: layer[0].log", "512"),
    ] {
        let text = format!("[[layer]]\nkind = \"restoring\"\n{keys}");
        let refused = Host::parse(&text, "host.toml").expect_err(keys).to_string();
        assert!(refused.starts_with(place) && refused.contains(expected), "{refused}");
    }
}

#[test]
fn the_log_and_its_table_are_taken_from_the_capacity() {
    let device = layer("");
    // 64 units, a sector for each, and a unit for the header.
    assert_eq!(device.sectors(), (4 << 20) / 512 - 64 * 8 - 64 - 8);
    assert_eq!(host("log = \"256k\"\n").sectors(&drive(&[])).expect("it stands"), device.sectors());
    let identity = device.identify();
    assert!(identity.has_write_cache && identity.has_host_cache, "until a flush the table is in RAM");
}

#[test]
fn a_log_of_another_size_is_not_taken_for_ones_own() {
    let mut device = layer("");
    write(&mut *device, 16, 8, 1);
    flush(&mut *device);
    let refused = host("log = \"128k\"\n").build(device.into_members()).err().expect("another log").to_string();
    assert!(
        refused.starts_with("host.toml:2:8:")
            && refused.contains("64 places, which may hold data; the description says 32"),
        "{refused}"
    );
}

#[test]
fn small_writes_of_one_instant_share_a_pack_and_are_read_from_the_log() {
    let mut device = layer("threshold = \"4k\"\n");
    write(&mut *device, 0, 64, 1);
    assert_eq!(figure(&*device, "log_writes"), 0.0);
    at_once(&mut *device, &[Request::new(Op::Write, 16, 8), Request::new(Op::Write, 40, 8)], 2);
    assert_eq!((figure(&*device, "log_writes"), figure(&*device, "packed_requests")), (1.0, 2.0));
    let expected: Vec<u8> = (4..60).map(|sector| if [2, 5].contains(&(sector / 8)) { 2 } else { 1 }).collect();
    assert_eq!(read(&mut *device, 4, 56), expected);
    assert_eq!((figure(&*device, "reads_of_log"), figure(&*device, "reads_split")), (1.0, 1.0));
}

#[test]
fn a_part_of_a_unit_in_the_log_is_changed_there() {
    for restart in [false, true] {
        let mut device = layer("");
        write(&mut *device, 16, 8, 1);
        write(&mut *device, 18, 2, 2);
        at_once(&mut *device, &[Request::new(Op::WriteZeroes, 22, 4)], 0);
        flush(&mut *device);
        if restart {
            device = cut_all(device, "");
        }
        assert_eq!(read(&mut *device, 16, 10), [1, 1, 2, 2, 1, 1, 0, 0, 0, 0]);
        assert_eq!(figure(&*device, "table_entries"), 1.0);
    }
}

#[test]
fn a_trim_of_a_unit_in_the_log_takes_it_out_of_the_table_and_of_block_status() {
    let mut device = layer("");
    write(&mut *device, 16, 24, 1);
    assert_eq!(device.mapped_run(0, 64), (false, 16));
    assert_eq!(device.mapped_run(16, 64), (true, 40));
    flush(&mut *device);
    at_once(&mut *device, &[Request::new(Op::Trim, 24, 8)], 0);
    assert_eq!((device.mapped_run(16, 64), device.mapped_run(24, 64)), ((true, 24), (false, 32)));
    // The reserved space is no part of it.
    let sectors = device.sectors();
    assert_eq!(device.mapped_run(40, sectors), (false, sectors));
    flush(&mut *device);
    let mut device = cut_all(device, "");
    assert_eq!((device.mapped_run(16, 64), device.mapped_run(24, 64)), ((true, 24), (false, 32)));
    assert_eq!(read(&mut *device, 16, 24), [[1; 8], [0; 8], [1; 8]].concat());
}

/// What was flushed is there, with a table that another layer reads; what was not flushed may be lost with the host alone.
#[test]
fn the_table_is_on_the_drive_after_a_flush_or_a_fua_write() {
    for (keys, is_kept) in [("", true), ("table = \"ram\"\n", false)] {
        let mut device = layer(keys);
        write(&mut *device, 16, 8, 1);
        flush(&mut *device);
        let fua = Request { fua: true, ..Request::new(Op::Write, 80, 8) };
        at_once(&mut *device, &[fua], 2);
        assert_eq!(figure(&*device, "table_writes") > 0.0, is_kept, "{keys}");
        let mut device = cut_all(device, keys);
        let found = (read(&mut *device, 16, 1)[0], read(&mut *device, 80, 1)[0]);
        assert_eq!(found, if is_kept { (1, 2) } else { (0, 0) }, "{keys}");
    }
}

/// The newest of copies in the log and at home is found, whichever it is, as far as a flush has covered it.
#[test]
fn what_a_flush_covered_is_found_and_nothing_older() {
    let fua = |op| Request { fua: true, ..Request::new(op, 16, 8) };
    let large = Request { fua: true, ..Request::new(Op::Write, 0, 256) };
    for (change, expected) in [(fua(Op::Write), 3), (fua(Op::WriteZeroes), 0), (fua(Op::Trim), 0), (large, 3)] {
        let mut device = layer("threshold = \"8k\"\n");
        write(&mut *device, 16, 8, 1);
        flush(&mut *device);
        // The newest copy that no flush has covered must not hide what comes after it, nor the older one that a slot names.
        write(&mut *device, 16, 8, 2);
        at_once(&mut *device, &[change], 3);
        let mut device = cut_all(device, "threshold = \"8k\"\n");
        assert_eq!(read(&mut *device, 16, 8), [expected; 8], "{change:?}");
    }
}

#[test]
fn a_full_log_is_copied_home_in_runs_by_address_and_its_places_are_used_again() {
    for (keys, waits) in [("", true), ("when_full = \"direct\"\n", false)] {
        let mut device = layer(keys);
        // 64 places; 160 writes, of which eight each have consecutive addresses at last.
        for round in 0..20 {
            let first = round % 10;
            let writes: Vec<_> = (0..8).map(|index| Request::new(Op::Write, 8 * (first + 10 * index), 8)).collect();
            at_once(&mut *device, &writes, round as u8 + 1);
        }
        assert_eq!(figure(&*device, "waited_for_places") > 0.0, waits, "{keys}");
        assert_eq!(figure(&*device, "direct_when_full") > 0.0, !waits, "{keys}");
        // 64 units of 8 addresses in a row.
        let (runs, units) = (figure(&*device, "copied_runs"), figure(&*device, "copied_units"));
        assert!(units >= 64.0 && runs * 7.0 <= units, "{units} units in {runs} runs");
        for restart in [false, true] {
            if restart {
                flush(&mut *device);
                device = cut_all(device, keys);
            }
            for round in 10..20 {
                for index in 0..8 {
                    let found = read(&mut *device, 8 * (round - 10 + 10 * index), 8);
                    assert_eq!(found, [round as u8 + 1; 8], "{keys}, restarted: {restart}");
                }
            }
        }
    }
}

#[test]
fn a_log_that_is_cleaned_keeps_what_is_written_often_and_sends_the_rest_home() {
    let mut device = layer("restore = \"lsdm\"\nrange = \"64k\"\n");
    let mut written = vec![0; 512];
    for number in 0..600_u64 {
        // Two units of three are written again soon.
        let unit = if number % 3 == 0 { 100 + number / 3 } else { number % 7 };
        write(&mut *device, unit * 8, 8, number as u8 | 1);
        written[unit as usize] = number as u8 | 1;
    }
    assert!(figure(&*device, "moved_units") > 0.0, "nothing went to the head of the log");
    let mut device = cut_all(
        {
            flush(&mut *device);
            device
        },
        "restore = \"lsdm\"\nrange = \"64k\"\n",
    );
    for (unit, byte) in written.iter().enumerate() {
        assert_eq!(read(&mut *device, unit as u64 * 8, 8), [*byte; 8], "unit {unit}");
    }
    // Of a segment of which all is live nothing gains by going to the head.
    for unit in 200..400 {
        write(&mut *device, unit * 8, 8, 9);
    }
    assert!(figure(&*device, "copied_units") > 0.0, "nothing went home");
}

/// A drive with a write buffer loses what was not flushed, and the host goes on: the table must not name what is not there.
#[test]
fn a_drive_that_loses_its_power_alone_keeps_what_was_flushed() {
    let set = ["buffer.policy=lru", "buffer.size=512k"];
    let host = host("log = \"256k\"\n");
    let mut device = host.build(vec![member(&set, Contents::Bytes)]).expect("a stack");
    write(&mut *device, 16, 8, 1);
    flush(&mut *device);
    write(&mut *device, 16, 8, 2);
    write(&mut *device, 80, 8, 2);
    assert_eq!(device.cut(0, &mut |_| None), Loss::Unflushed);
    assert_eq!((read(&mut *device, 16, 8), read(&mut *device, 80, 8)), (vec![1; 8], vec![0; 8]));
    write(&mut *device, 80, 8, 3);
    assert_eq!((read(&mut *device, 16, 8), read(&mut *device, 80, 8)), (vec![1; 8], vec![3; 8]));
}

/// A place that cannot be read is not given up: its unit stays there, and others go to their own addresses.
#[test]
fn a_place_that_cannot_be_read_is_kept_until_its_unit_is_written() {
    let mut device = layer("");
    for unit in 0..64 {
        write(&mut *device, unit * 8, 8, 1);
    }
    let fail = |device: &mut dyn Device, count: u32| {
        (0..count).for_each(|_| device.drives_mut()[0].device.fail_next(FaultKind::Read, None));
    };
    fail(&mut *device, 400);
    write(&mut *device, 1000 * 4, 8, 2);
    assert!(figure(&*device, "unreadable_places") > 0.0, "nothing could not be read");
    assert!(figure(&*device, "direct_when_full") > 0.0);
    let mut tries = 0;
    while at_once(&mut *device, &[Request::new(Op::Read, 8, 8)], 0)[0].0 != Status::Success {
        tries += 1;
        assert!(tries < 1000, "reads fail for ever");
    }
    for unit in 0..64 {
        assert_eq!(read(&mut *device, unit * 8, 8), [1; 8], "unit {unit}");
    }
    // Its unit written again, the place is needed no more.
    write(&mut *device, 0, 512, 3);
    let passes = figure(&*device, "passes");
    write(&mut *device, 4008, 8, 4);
    assert!(figure(&*device, "passes") > passes, "no place became free");
    assert_eq!(
        (read(&mut *device, 0, 1), read(&mut *device, 4000, 1), read(&mut *device, 4008, 1)),
        (vec![3], vec![2], vec![4])
    );
}

/// Commands take the same time and the same flash operations whether contents are kept as bytes, as stamps or not at
/// all.
#[test]
fn what_is_kept_of_contents_changes_nothing() {
    let ran = |contents| {
        let mut device = host("log = \"64k\"\n").build(vec![member(&[], contents)]).expect("a stack");
        for number in 0..300_u64 {
            let at = device.now();
            let request = Request { at, fua: number % 5 == 0, ..Request::new(Op::Write, number * 7 % 90 * 8, 8) };
            device.submit(&request, Data::Stamp(number));
            if number % 11 == 0 {
                device.submit(&Request { at, tag: 1, ..Request::new(Op::Flush, 0, 0) }, Data::Nothing);
            }
            while device.outstanding() > 0 {
                assert!(device.run_to_completion(Nanos::MAX));
                device.completions().clear();
            }
        }
        (device.now(), device.counters(), device.layers()[0].figures.clone())
    };
    let nothing = ran(Contents::Nothing);
    assert_eq!(nothing, ran(Contents::Stamps));
    assert_eq!(nothing, ran(Contents::Bytes));
    assert!(nothing.2["passes"] > 3.0 && nothing.2["table_writes"] > 50.0, "{:?}", nothing.2);
}

//! SHRD's driver: what it packs, splits and keeps in its table, on a drive of a description.

use ssdlab_base::{Nanos, Op, Request};
use ssdlab_device::{Data, Description, DriveConfig, Options, Status};
use ssdlab_flash::Contents;
use ssdlab_host::{Device, Host, Member};

/// A drive of 4 MB with a log of 256 KB, whose units have 8 sectors.
fn drive(design: &str) -> DriveConfig {
    let text = "name = \"small\"\n[flash]\nchannels = 2\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
                blocks_per_plane = 64\npages_per_block = 16\npage_size = \"8k\"\ncell = \"slc\"\n[capacity]\nuser = \"4m\"\n\
                [buffer]\npolicy = \"none\"\n[ftl]\nmapping_unit = \"4k\"\n";
    let mut description = Description::parse(text, "small.toml").expect("a description");
    description.set(&format!("ftl.design={design}")).expect("a design");
    if design == "shrd" {
        description.set("ftl.rwlb=256k").expect("a log");
    }
    description.resolve().expect("a drive")
}

fn driver(keys: &str) -> Box<dyn Device> {
    let host = Host::parse(&format!("[[layer]]\nkind = \"shrd\"\n{keys}"), "host.toml").expect("a host");
    let options = Options { seed: 1, contents: Contents::Bytes };
    host.build(vec![Member::new("small", &drive("shrd"), options).expect("a drive")]).expect("a stack")
}

fn figure(device: &dyn Device, name: &str) -> f64 {
    device.layers()[0].figures[name]
}

/// Sends requests at one instant, and waits for all; their statuses and what reads brought, by tag.
fn at_once(device: &mut dyn Device, requests: &[Request], fill: u8) -> Vec<(Status, Vec<u8>)> {
    let at = device.now();
    for (tag, request) in (0..).zip(requests) {
        let bytes = vec![fill; if request.op == Op::Write { request.bytes() as usize } else { 0 }];
        device.submit(
            &Request { at, tag, ..*request },
            if bytes.is_empty() { Data::Nothing } else { Data::Bytes(&bytes) },
        );
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

#[test]
fn a_drive_without_the_commands_is_refused_with_the_line_of_the_layer() {
    let text = "[[layer]]\nkind = \"scheduler\"\n[[layer]]\nkind = \"shrd\"\n";
    let host = Host::parse(text, "host.toml").expect("a host");
    let refused = host.sectors(&drive("page")).expect_err("a drive of another design").to_string();
    assert!(refused.starts_with("host.toml:4:8: the layer shrd:") && refused.contains("the design page"), "{refused}");
    assert!(host.sectors(&drive("shrd")).is_ok());
    // A scheduler hands the commands on, a stripe does not.
    let above = |below: &str| {
        let text = format!("[[layer]]\nkind = \"shrd\"\n[[layer]]\nkind = \"{below}\"\n");
        Host::parse(&text, "host.toml").expect("a host").sectors(&drive("shrd"))
    };
    assert_eq!(above("scheduler").ok(), host.sectors(&drive("shrd")).ok());
    let refused = above("stripe").expect_err("a layer between").to_string();
    assert!(refused.starts_with("host.toml:2:8:") && refused.contains("no layer between"), "{refused}");
}

#[test]
fn writes_of_one_instant_share_a_pack_and_those_of_the_next_do_not() {
    let mut device = driver("");
    let writes: Vec<_> = (0..5).map(|index| Request::new(Op::Write, 80 * index, 8)).collect();
    at_once(&mut *device, &writes, 1);
    assert_eq!((figure(&*device, "twrites"), figure(&*device, "packed_requests")), (1.0, 5.0));
    at_once(&mut *device, &writes[..2], 2);
    assert_eq!((figure(&*device, "twrites"), figure(&*device, "packed_units")), (2.0, 7.0));
    assert_eq!((figure(&*device, "packs_closed_idle"), figure(&*device, "packs_below_32k")), (2.0, 2.0));
    // Three units of the log hold what they held; two were written again.
    assert_eq!(figure(&*device, "table_entries"), 5.0);
}

#[test]
fn a_flush_closes_a_pack_and_a_full_one_closes_itself() {
    let mut device = driver("pack = \"16k\"\n");
    let mut requests: Vec<_> = (0..6).map(|index| Request::new(Op::Write, 80 * index, 8)).collect();
    requests.push(Request::new(Op::Flush, 0, 0));
    at_once(&mut *device, &requests, 1);
    assert_eq!((figure(&*device, "packs_closed_full"), figure(&*device, "packs_closed_flush")), (1.0, 1.0));
    assert_eq!(figure(&*device, "packs_closed_idle"), 0.0);
}

#[test]
fn a_read_of_log_and_home_is_split_and_answered_once() {
    let mut device = driver("threshold = \"4k\"\n");
    // Larger than the threshold: to its own address. Then two units of the middle go to the log.
    at_once(&mut *device, &[Request::new(Op::Write, 0, 64)], 1);
    at_once(&mut *device, &[Request::new(Op::Write, 16, 8), Request::new(Op::Write, 40, 8)], 2);
    let read = at_once(&mut *device, &[Request::new(Op::Read, 4, 56)], 0).remove(0);
    let expected: Vec<u8> = (4..60).map(|sector| if [2, 5].contains(&(sector / 8)) { 2 } else { 1 }).collect();
    assert_eq!(read.1.chunks(512).map(|sector| sector[0]).collect::<Vec<_>>(), expected);
    assert_eq!((figure(&*device, "reads_of_log"), figure(&*device, "reads_split")), (1.0, 1.0));
}

#[test]
fn a_write_of_a_part_of_a_unit_in_the_log_brings_it_home_first() {
    let mut device = driver("");
    at_once(&mut *device, &[Request::new(Op::Write, 16, 8)], 1);
    at_once(&mut *device, &[Request::new(Op::Write, 18, 2)], 2);
    let read = at_once(&mut *device, &[Request::new(Op::Read, 16, 8)], 0).remove(0);
    assert_eq!(read.1.chunks(512).map(|sector| sector[0]).collect::<Vec<_>>(), [1, 1, 2, 2, 1, 1, 1, 1]);
    assert_eq!((figure(&*device, "remaps"), figure(&*device, "table_entries")), (1.0, 0.0));
}

#[test]
fn a_trim_of_a_unit_in_the_log_takes_it_out_of_the_table_and_of_block_status() {
    let mut device = driver("");
    at_once(&mut *device, &[Request::new(Op::Write, 16, 24)], 1);
    assert_eq!(device.mapped_run(0, 64), (false, 16));
    assert_eq!(device.mapped_run(16, 64), (true, 40));
    at_once(&mut *device, &[Request::new(Op::Trim, 24, 8)], 0);
    assert_eq!((device.mapped_run(16, 64), device.mapped_run(24, 64)), ((true, 24), (false, 32)));
    assert_eq!(figure(&*device, "table_entries"), 2.0);
}

#[test]
fn commands_are_listed_with_their_addresses_where_the_description_asks_for_them() {
    let list = |device: &dyn Device| device.layers()[0].commands.clone();
    assert_eq!(list(&*driver("")), None);
    let mut device = driver("threshold = \"4k\"\nlist_commands = 6\n");
    at_once(&mut *device, &[Request::new(Op::Write, 800, 8), Request::new(Op::Write, 80, 8)], 1);
    at_once(&mut *device, &[Request::new(Op::Write, 160, 16)], 2);
    at_once(&mut *device, &[Request::new(Op::Read, 72, 16)], 0);
    // A part of a unit that is in the log: it goes home before.
    at_once(&mut *device, &[Request::new(Op::Write, 82, 2)], 3);
    at_once(&mut *device, &[Request::new(Op::Trim, 160, 16)], 0);
    let list = list(&*device).expect("a list");
    // The drive has 1024 units for the user. The trim is the seventh command.
    let expected = [
        ("log_write", 1024, 1026, 2),
        ("write", 20, 22, 2),
        ("read", 9, 10, 1),
        ("log_read", 1025, 1026, 1),
        ("remap", 10, 11, 1),
        ("write", 10, 11, 1),
    ];
    let rows = (0..list.len()).map(|row| (list.kind[row].as_str(), list.first[row], list.end[row], list.entries[row]));
    assert_eq!(rows.collect::<Vec<_>>(), expected);
    assert!(list.time_ns.is_sorted() && list.time_ns[5] > list.time_ns[0], "{:?}", list.time_ns);
    device.reset_statistics();
    assert!(device.layers()[0].commands.as_ref().is_some_and(ssdlab_host::CommandList::is_empty));
}

/// What replaced a copy in the log may be in the drive's write buffer only: the copy's place is not used again before that is on
/// flash.
#[test]
fn a_place_is_used_again_when_what_replaced_its_copy_is_on_flash() {
    let large = Request::new(Op::Write, 0, 64);
    for (change, flushes) in [
        (None, 0.0),
        (Some(Request { fua: true, ..large }), 0.0),
        (Some(large), 1.0),
        (Some(Request::new(Op::Trim, 0, 64)), 1.0),
    ] {
        let mut device = driver("threshold = \"4k\"\n");
        at_once(&mut *device, &[Request::new(Op::Write, 16, 8)], 1);
        if let Some(change) = change {
            at_once(&mut *device, &[change], 2);
        }
        // 64 places, of which one has been taken.
        for index in 0..64 {
            at_once(&mut *device, &[Request::new(Op::Write, 80 + 8 * index, 8)], 3);
        }
        assert_eq!((figure(&*device, "passes"), figure(&*device, "flushes")), (1.0, flushes), "{change:?}");
    }
}

#[test]
fn a_full_log_is_remapped_by_address_and_writes_wait_for_it_or_not() {
    for (keys, waits) in [("remap_entries = 16\n", true), ("remap_entries = 16\nwhen_full = \"direct\"\n", false)] {
        let mut device = driver(keys);
        // 64 places; 80 writes.
        for round in 0..10 {
            let writes: Vec<_> = (0..8).map(|index| Request::new(Op::Write, 8 * (round + 10 * index), 8)).collect();
            at_once(&mut *device, &writes, round as u8 + 1);
        }
        assert_eq!(figure(&*device, "waited_for_places") > 0.0, waits, "{keys}");
        assert_eq!(figure(&*device, "direct_when_full") > 0.0, !waits, "{keys}");
        assert_eq!((figure(&*device, "remaps"), figure(&*device, "remapped_entries")), (4.0, 64.0));
        for round in 0..10 {
            let reads: Vec<_> = (0..8).map(|index| Request::new(Op::Read, 8 * (round + 10 * index), 8)).collect();
            for (status, bytes) in at_once(&mut *device, &reads, 0) {
                assert_eq!((status, bytes), (Status::Success, vec![round as u8 + 1; 4096]));
            }
        }
    }
}

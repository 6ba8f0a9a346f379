//! Layers above several devices give back what was written, whatever their shape: overlapping commands take effect in the
//! order in which they were submitted, so a plain array of sectors says what every read must bring.

use std::collections::HashMap;

use rand::RngExt;
use ssdlab_base::{Nanos, Op, Opcode, Request, rng};
use ssdlab_device::{Data, Description, DriveConfig, Options, Payload, Status, design_with, draw_design};
use ssdlab_flash::{Contents, FaultKind};
use ssdlab_host::{Device, Host, Loss, Member, Traffic, seed_of};
use ssdlab_torture::configs;

fn stack(host: &Host, config: &DriveConfig, seed: u64) -> Box<dyn Device> {
    let member = |(index, (name, config)): (usize, (String, DriveConfig))| {
        let options = Options { seed: seed_of(seed, index), contents: Contents::Bytes };
        Member::new(&name, &config, options).expect("a drive")
    };
    host.build(host.drives(config).into_iter().enumerate().map(member).collect()).expect("a stack")
}

/// A small drive without faults, of at least 128 sectors.
pub(crate) fn drive(seed: u64) -> DriveConfig {
    let mut rng = rng(seed, "stack drive");
    loop {
        let mut config = configs::random(&mut rng);
        config.flash.faults = Default::default();
        if config.user_bytes >= 128 * 512 {
            return config;
        }
    }
}

/// Random commands at random depth, compared with an array; gives back how many reads brought something.
fn work(device: &mut dyn Device, seed: u64, count: u32) -> u64 {
    let mut rng = rng(seed, "stack work");
    let sectors = device.sectors();
    let mut model = vec![0_u8; sectors as usize * 512];
    let mut expected: HashMap<u32, Vec<u8>> = HashMap::new();
    let (mut orders, mut compared) = (Vec::new(), 0);
    let mut collect = |device: &mut dyn Device, expected: &mut HashMap<u32, Vec<u8>>| {
        for completion in device.completions().drain(..) {
            assert_eq!(completion.status, Status::Success);
            orders.push(completion.order);
        }
        for (tag, bytes) in device.read_data().drain(..) {
            let wanted = expected.remove(&tag).expect("it was asked for");
            assert!(bytes == wanted, "seed {seed}: read {tag} brought something else");
            compared += 1;
        }
    };
    for tag in 0..count {
        let depth = [0, 1, 7, 31][rng.random_range(0..4)];
        while device.outstanding() > depth {
            assert!(device.run_to_completion(Nanos::MAX), "requests never complete");
            collect(device, &mut expected);
        }
        let length = [0, 1, 8, 24, 100][rng.random_range(0..5)].min(sectors);
        let first = rng.random_range(0..=sectors - length);
        let op = [Op::Write, Op::Write, Op::Read, Op::Trim, Op::WriteZeroes, Op::Flush][rng.random_range(0..6)];
        let (first, length) = if op == Op::Flush { (0, 0) } else { (first, length) };
        let fua = op == Op::Write && rng.random_bool(0.2);
        let request = Request { at: device.now(), tag, fua, ..Request::new(op, first, length) };
        let range = first as usize * 512..(first + length) as usize * 512;
        let bytes: Vec<u8> = (0..length * 512).map(|_| rng.random()).collect();
        match op {
            Op::Write => model[range].copy_from_slice(&bytes),
            Op::Trim | Op::WriteZeroes => model[range].fill(0),
            Op::Read if length > 0 => drop(expected.insert(tag, model[range].to_vec())),
            _ => {}
        }
        device.submit(&request, if op == Op::Write { Data::Bytes(&bytes) } else { Data::Nothing });
        collect(device, &mut expected);
    }
    while device.outstanding() > 0 {
        assert!(device.run_to_completion(Nanos::MAX), "requests never complete");
        collect(device, &mut expected);
    }
    let behind = Request { at: device.now(), tag: count, ..Request::new(Op::Read, sectors, 1) };
    device.submit(&behind, Data::Nothing);
    let refused = device.completions().pop().expect("it is refused at once");
    assert_eq!(refused.status, Status::OutOfRange);
    orders.push(refused.order);
    orders.sort_unstable();
    if device.order_stride() == 1 {
        assert!(
            orders.iter().copied().eq(0..u64::from(count) + 1),
            "every command has its place in the order of effect"
        );
    }
    expected.retain(|_, bytes| !bytes.is_empty());
    assert!(expected.is_empty());
    compared
}

/// Every layer's traffic is what the devices below it took.
fn assert_handed_down(device: &dyn Device) {
    for layer in device.layers() {
        let Traffic { requests, bytes } = layer.sent;
        assert_eq!(requests, layer.below.requests, "{}", layer.kind);
        assert_eq!(bytes, layer.below.bytes, "{}", layer.kind);
    }
}

const STRIPES: [&str; 4] = [
    "[[layer]]\nkind = \"stripe\"\ndrives = 1\nchunk = 512\n",
    "[[layer]]\nkind = \"stripe\"\ndrives = 3\nchunk = \"1k\"\n",
    "[[layer]]\nkind = \"scheduler\"\ndepth = 3\n[[layer]]\nkind = \"stripe\"\ndrives = 4\nchunk = \"3.5k\"\n",
    "[[layer]]\nkind = \"stripe\"\nchunk = \"4k\"\n[[layer.below]]\n[[layer.below]]\nkind = \"stripe\"\ndrives = 2\n\
     chunk = 512\n[[layer.below]]\nkind = \"scheduler\"\n",
];

#[test]
fn a_stripe_gives_back_what_was_written() {
    let mut compared = 0;
    for seed in 0..24 {
        let host = Host::parse(STRIPES[seed as usize % 4], "host.toml").expect("a host");
        let config = drive(seed);
        let mut device = stack(&host, &config, seed);
        assert_eq!(device.sectors(), host.sectors(&config).expect("it stands"));
        compared += work(&mut *device, seed, 300);
        assert_handed_down(&*device);
    }
    assert!(compared > 900, "only {compared} reads were compared");
}

/// The path of a host's I/O: its page cache, its block layer, its error handler. A drive alone does not keep the order of
/// commands on the same sectors.
const PATHS: [&str; 10] = [
    "[[layer]]\nkind = \"ata\"\ntags = 3\n",
    "[[layer]]\nkind = \"page-cache\"\nram = \"64k\"\n[[layer]]\nkind = \"scheduler\"\npolicy = \"noop\"\n[[layer]]\nkind = \"ata\"\n",
    "[[layer]]\nkind = \"scheduler\"\npolicy = \"noop\"\ndepth = 2\n[[layer]]\nkind = \"stripe\"\ndrives = 1\n",
    "[[layer]]\nkind = \"scheduler\"\npolicy = \"deadline\"\ndepth = 1\nread_expire = \"1ms\"\nrequests = 4\n",
    "[[layer]]\nkind = \"page-cache\"\nram = \"64k\"\n",
    "[[layer]]\nkind = \"page-cache\"\nram = \"1m\"\nwrites = 2\n[[layer]]\nkind = \"scheduler\"\npolicy = \"deadline\"\n",
    "[[layer]]\nkind = \"page-cache\"\nram = \"128k\"\nbackground = \"1%\"\ndirty = \"100%\"\nexpire = \"1ms\"\n\
     period = \"1ms\"\nread_ahead = 0\n[[layer]]\nkind = \"stripe\"\nchunk = \"1k\"\ndrives = 2\n",
    "[[layer]]\nkind = \"mirror\"\nregion = \"8k\"\n[[layer.below]]\nkind = \"page-cache\"\nram = \"64k\"\n\
     write_size = \"4k\"\n[[layer.below]]\nkind = \"page-cache\"\n",
    "[[layer]]\nkind = \"scheduler\"\npolicy = \"noop\"\nunplug_requests = 9\n[[layer]]\nkind = \"page-cache\"\nram = \"64k\"\n\
     copy_time = \"1ns\"\n",
    "[[layer]]\nkind = \"scheduler\"\npolicy = \"deadline\"\nfifo_batch = 1\nsegments = 2\n[[layer]]\nkind = \"scheduler\"\n\
     policy = \"noop\"\ndepth = 1\n",
];

#[test]
fn the_path_of_a_host_gives_back_what_was_written() {
    let mut compared = 0;
    for seed in 0..60 {
        let host = Host::parse(PATHS[seed as usize % PATHS.len()], "host.toml").expect("a host");
        let config = drive(seed);
        let mut device = stack(&host, &config, seed);
        assert_eq!(device.sectors(), host.sectors(&config).expect("it stands"));
        compared += work(&mut *device, seed, 300);
        while let Some(at) = device.next_event() {
            device.run_until(at);
        }
        // A drive does not count the bytes of the read behind its end that others hand down.
        if device.layers()[0].kind == "page-cache" {
            assert_handed_down(&*device);
        }
    }
    assert!(compared > 2200, "only {compared} reads were compared");
}

const MIRRORS: [&str; 4] = [
    "[[layer]]\nkind = \"mirror\"\nregion = \"4k\"\n",
    "[[layer]]\nkind = \"mirror\"\ndrives = 3\nregion = 512\n",
    "[[layer]]\nkind = \"scheduler\"\n[[layer]]\nkind = \"stripe\"\nchunk = \"1k\"\n[[layer.below]]\nkind = \"mirror\"\n\
     region = \"2k\"\n[[layer.below]]\n",
    "[[layer]]\nkind = \"mirror\"\n[[layer.below]]\n[[layer.below]]\nkind = \"stripe\"\nchunk = \"1k\"\ndrives = 2\n",
];

#[test]
fn a_mirror_gives_back_what_was_written() {
    let mut compared = 0;
    for seed in 0..24 {
        let host = Host::parse(MIRRORS[seed as usize % 4], "host.toml").expect("a host");
        let config = drive(seed);
        let mut device = stack(&host, &config, seed);
        assert_eq!(device.sectors(), host.sectors(&config).expect("it stands"));
        compared += work(&mut *device, seed, 300);
        while let Some(at) = device.next_event() {
            device.run_until(at);
        }
        assert_handed_down(&*device);
    }
    assert!(compared > 900, "only {compared} reads were compared");
}

/// A side that lost its power alone loses nothing for the host, is left behind, and catches up; so is one that a host that
/// begins anew finds behind, whatever it holds.
#[test]
fn a_side_that_was_cut_catches_up_region_by_region() {
    let host = Host::parse("[[layer]]\nkind = \"mirror\"\nregion = \"8k\"\n", "host.toml").expect("a host");
    let config = drive(3);
    let mut device = stack(&host, &config, 3);
    let sectors = device.sectors();
    let write = |device: &mut dyn Device, tag, sector, byte: u8| {
        let request = Request { at: device.now(), tag, ..Request::new(Op::Write, sector, 1) };
        device.submit(&request, Data::Bytes(&[byte; 512]));
        while device.outstanding() > 0 {
            assert!(device.run_to_completion(Nanos::MAX));
        }
        device.completions().clear();
    };
    let settle = |device: &mut dyn Device| {
        while let Some(at) = device.next_event() {
            device.run_until(at);
        }
    };
    let figure = |device: &dyn Device, name: &str| device.layers()[0].figures[name];
    write(&mut *device, 1, 0, 1);
    write(&mut *device, 2, sectors - 1, 2);
    assert_eq!(device.cut(0, &mut |_| None), Loss::Nothing);
    assert_eq!(figure(&*device, "sides_in_sync"), 1.0);
    write(&mut *device, 3, 1, 3);
    settle(&mut *device);
    assert_eq!(figure(&*device, "sides_in_sync"), 2.0);
    // Two regions were written, and nothing else is copied.
    let copied = figure(&*device, "resynced_sectors");
    assert!(copied > 0.0 && copied <= 32.0, "{copied} sectors were copied");
    // While a side is behind, the last one in sync counts as a drive of its own.
    assert_eq!(device.cut(1, &mut |_| None), Loss::Nothing);
    assert_eq!(device.cut(0, &mut |_| None), Loss::Unflushed);
    settle(&mut *device);
    write(&mut *device, 4, 2, 4);
    let mut members = device.into_members();
    members[1].cycle(&mut |_| None);
    let mut device = host.build(members).expect("it comes back");
    settle(&mut *device);
    assert_eq!(figure(&*device, "sides_in_sync"), 2.0);
    for side in [0, 1] {
        // Only this one is read from.
        assert_eq!(device.cut(1 - side, &mut |_| None), Loss::Nothing);
        let request = Request { at: device.now(), tag: 9, ..Request::new(Op::Read, 2, 1) };
        device.submit(&request, Data::Nothing);
        while device.outstanding() > 0 {
            assert!(device.run_to_completion(Nanos::MAX));
        }
        device.completions().clear();
        assert_eq!(device.read_data().pop().expect("it was read").1, [4; 512]);
        settle(&mut *device);
    }
}

#[test]
fn what_is_mapped_below_a_stripe_is_mapped_above() {
    let host = Host::parse(STRIPES[1], "host.toml").expect("a host");
    let mut device = stack(&host, &drive(5), 1);
    let sectors = device.sectors();
    assert_eq!(device.mapped_run(0, sectors), (false, sectors));
    let unit = u64::from(device.identify().unit_bytes / 512).max(2);
    // A whole row of units on all three.
    let row = 3 * unit.next_multiple_of(2);
    let data = vec![1; row as usize * 512];
    device.submit(&Request::new(Op::Write, 0, row), Data::Bytes(&data));
    while device.outstanding() > 0 {
        assert!(device.run_to_completion(Nanos::MAX));
    }
    assert_eq!(device.mapped_run(0, sectors), (true, row.min(sectors)));
    assert_eq!(device.mapped_run(row, sectors), (false, sectors));
}

/// A side that is a mirror of its own answers reads even after its last drive in sync was cut, from what that drive has left.
/// The mirror above has left it behind by then, and must not believe them.
#[test]
fn what_a_side_reads_after_it_fell_out_of_sync_is_not_believed() {
    let text = "[[layer]]\nkind = \"mirror\"\nregion = \"8k\"\n[[layer.below]]\n[[layer.below]]\nkind = \"mirror\"\n\
                region = \"8k\"\n";
    let host = Host::parse(text, "host.toml").expect("a host");
    let mut read_elsewhere = 0.0;
    for config in (0..40).map(drive).filter(|config| config.buffer.policy != "none").take(8) {
        let mut device = stack(&host, &config, 1);
        let write = Request { at: device.now(), tag: 1, ..Request::new(Op::Write, 0, 1) };
        device.submit(&write, Data::Bytes(&[7; 512]));
        while device.outstanding() > 0 {
            assert!(device.run_to_completion(Nanos::MAX));
        }
        device.completions().clear();
        // From now on the mirror below counts as a drive of its own.
        assert_eq!(device.cut(2, &mut |_| None), Loss::Nothing);
        for tag in 2..6 {
            device.submit(&Request { at: device.now(), tag, ..Request::new(Op::Read, 0, 1) }, Data::Nothing);
        }
        assert_eq!(device.cut(1, &mut |_| None), Loss::Nothing);
        while device.outstanding() > 0 {
            device.completions().clear();
            assert!(device.run_to_completion(Nanos::MAX));
        }
        let read = std::mem::take(device.read_data());
        assert_eq!(read.len(), 4);
        read.iter().for_each(|(tag, bytes)| assert_eq!(bytes[..], [7; 512], "read {tag} of {config:?}"));
        read_elsewhere += device.layers()[0].figures["read_elsewhere"];
    }
    assert!(read_elsewhere > 0.0, "no read was in flight on the side that was cut");
}

/// A mirror of two drives without a buffer, which may be asked to fail. Their mapping units are sectors, so that no write reads.
fn mirror_that_may_fail() -> Box<dyn Device> {
    let host = Host::parse("[[layer]]\nkind = \"mirror\"\nregion = \"4k\"\n", "host.toml").expect("a host");
    let text = "name = \"small\"\n[flash]\nchannels = 2\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
                blocks_per_plane = 32\npages_per_block = 8\npage_size = \"4k\"\ncell = \"slc\"\n[capacity]\nuser = \"512k\"\n\
                [buffer]\npolicy = \"none\"\n[gc]\nfree_blocks = 3\n[ftl]\nmapping_unit = \"512\"\n";
    let config = Description::parse(text, "small.toml").and_then(|text| text.resolve()).expect("a drive");
    let mut device = stack(&host, &config, 1);
    device.drives_mut().into_iter().for_each(|part| part.device.expect_faults());
    device
}

fn alone(device: &mut dyn Device, request: Request, byte: u8) -> (Status, Vec<u8>) {
    let bytes = vec![byte; request.sectors as usize * 512];
    let request = Request { at: device.now(), ..request };
    device.submit(&request, if request.op == Op::Write { Data::Bytes(&bytes) } else { Data::Nothing });
    while device.completions().is_empty() {
        assert!(device.run_to_completion(Nanos::MAX), "{request:?} never completes");
    }
    let status = device.completions().pop().expect("it has completed").status;
    (status, device.read_data().pop().map(|(_, bytes)| bytes).unwrap_or_default())
}

fn sides_in_sync(device: &dyn Device) -> f64 {
    device.layers()[0].figures["sides_in_sync"]
}

fn settle(device: &mut dyn Device) {
    for _ in 0..100_000 {
        let Some(at) = device.next_event() else { return };
        device.run_until(at);
    }
    panic!("an idle mirror comes to rest");
}

/// What one side cannot read another one can; what cannot be copied leaves the side behind until something changes.
#[test]
fn a_side_that_cannot_be_read_costs_nothing_while_there_is_another() {
    let mut device = mirror_that_may_fail();
    assert_eq!(alone(&mut *device, Request::new(Op::Write, 0, 8), 7).0, Status::Success);
    for _ in 0..8 {
        device.drives_mut()[0].device.fail_next(FaultKind::Read, None);
        assert_eq!(alone(&mut *device, Request::new(Op::Read, 0, 8), 0), (Status::Success, vec![7; 8 * 512]));
    }
    assert!(device.layers()[0].figures["read_elsewhere"] > 0.0, "no side failed to read");
    // What was asked for and did not strike, strikes now.
    for _ in 0..8 {
        alone(&mut *device, Request::new(Op::Read, 0, 8), 0);
    }
    device.drives_mut()[0].device.fail_next(FaultKind::Read, None);
    assert_eq!(device.cut(1, &mut |_| None), Loss::Nothing);
    settle(&mut *device);
    assert_eq!(sides_in_sync(&*device), 1.0, "the source could not be read");
    assert_eq!(alone(&mut *device, Request::new(Op::Read, 0, 8), 0), (Status::Success, vec![7; 8 * 512]));
    assert_eq!(device.cut(1, &mut |_| None), Loss::Nothing);
    settle(&mut *device);
    assert_eq!(sides_in_sync(&*device), 2.0);
}

/// A side that refuses writes is left alone, and the host hears nothing of it.
#[test]
fn a_side_that_refuses_writes_is_given_up() {
    let mut device = mirror_that_may_fail();
    let sectors = device.sectors();
    let mut written = vec![0; sectors as usize];
    for round in 0..2000_u64 {
        if sides_in_sync(&*device) == 2.0 {
            device.drives_mut()[0].device.fail_next(FaultKind::Program, None);
        }
        let (sector, byte) = (round * 7 % sectors, round as u8 | 1);
        assert_eq!(alone(&mut *device, Request::new(Op::Write, sector, 1), byte).0, Status::Success, "round {round}");
        written[sector as usize] = byte;
    }
    settle(&mut *device);
    assert_eq!(sides_in_sync(&*device), 1.0, "the drive did not run out of spare blocks");
    let dropped = format!("side {} was dropped: it became read-only", device.drives()[0].name);
    assert_eq!(device.layers()[0].degraded, [dropped]);
    assert_eq!(alone(&mut *device, Request::new(Op::Flush, 0, 0), 0).0, Status::Success);
    // A cut of the side that was given up changes nothing.
    assert_eq!(device.cut(0, &mut |_| None), Loss::Nothing);
    settle(&mut *device);
    for sector in 0..sectors {
        let expected = vec![written[sector as usize]; 512];
        assert_eq!(alone(&mut *device, Request::new(Op::Read, sector, 1), 0), (Status::Success, expected));
    }
}

/// An array takes block I/O only, whatever its drives take.
#[test]
fn an_array_answers_commands_of_a_set_as_unsupported() {
    for kind in ["stripe", "mirror"] {
        let host = Host::parse(&format!("[[layer]]\nkind = \"{kind}\"\ndrives = 2\n"), "array").expect("a host");
        let mut config = drive(3);
        config.ftl.design = "tagged".to_string();
        config.user_bytes = 128 * 512;
        let mut device = stack(&host, &config, 3);
        assert!(device.command_set().is_none(), "{kind}");
        let request = Request { opcode: Opcode(1), tag: 7, ..Request::new(Op::Write, 0, 1) };
        device.submit_command(&request, Payload { data: Data::Stamp(0), words: &[1] });
        let answers: Vec<_> =
            device.completions().drain(..).map(|completion| (completion.tag, completion.status)).collect();
        assert_eq!((answers, device.outstanding()), (vec![(7, Status::Unsupported)], 0), "{kind}");
    }
}

const DRIVERS: [&str; 4] = [
    "[[layer]]\nkind = \"shrd\"\n",
    "[[layer]]\nkind = \"shrd\"\npack = \"16k\"\ntwrites = 1\nremap_entries = 3\nremaps = 2\nordering = \"drive\"\n",
    "[[layer]]\nkind = \"scheduler\"\ndepth = 5\n[[layer]]\nkind = \"shrd\"\nwhen_full = \"direct\"\ncommands = \"vendor\"\n",
    // The driver's commands pass through a layer.
    "[[layer]]\nkind = \"shrd\"\ntwrites = 3\n[[layer]]\nkind = \"scheduler\"\ndepth = 2\n",
];

#[test]
fn a_driver_gives_back_what_was_written() {
    let (mut compared, mut twrites) = (0, 0.0);
    for seed in 0..60 {
        let host = Host::parse(DRIVERS[seed as usize % 4], "host.toml").expect("a host");
        let [set] = host.commands() else { panic!("the driver needs commands of one set") };
        let mut config = drive(seed);
        draw_design(&mut config, design_with(set).expect("a design has them"), &mut rng(seed, "driver drive"));
        let Some(units) = configs::most_user_units(&config) else { continue };
        config.user_bytes = units.min(400) * u64::from(config.ftl.mapping_unit);
        let mut device = stack(&host, &config, seed);
        compared += work(&mut *device, seed, 300);
        // What the driver does by itself comes to its end.
        while let Some(at) = device.next_event() {
            device.run_until(at);
        }
        assert_handed_down(&*device);
        let layers = device.layers();
        twrites += layers.iter().find(|layer| layer.kind == "shrd").expect("the driver").figures["twrites"];
    }
    assert!(compared > 900 && twrites > 500.0, "only {compared} reads were compared, and {twrites} packs written");
}

const RESTORING: [&str; 4] = [
    "[[layer]]\nkind = \"restoring\"\nlog = \"64k\"\n",
    "[[layer]]\nkind = \"restoring\"\nlog = \"64k\"\nrestore = \"lsdm\"\nrange = \"16k\"\npack = \"16k\"\nwrites = 1\n",
    "[[layer]]\nkind = \"scheduler\"\ndepth = 5\n[[layer]]\nkind = \"restoring\"\nlog = \"128k\"\nrange = \"32k\"\n\
     when_full = \"direct\"\ncopies = 1\n[[layer]]\nkind = \"stripe\"\nchunk = \"2k\"\ndrives = 2\n",
    "[[layer]]\nkind = \"mirror\"\nregion = \"4k\"\n[[layer.below]]\n[[layer.below]]\nkind = \"restoring\"\nlog = \"64k\"\n\
     table = \"ram\"\n",
];

#[test]
fn restoring_in_the_host_gives_back_what_was_written() {
    let (mut compared, mut packs, mut copied) = (0, 0.0, 0.0);
    for seed in 0..80 {
        let host = Host::parse(RESTORING[seed as usize % 4], "host.toml").expect("a host");
        let mut config = drive(seed);
        config.timed = seed % 9 > 0;
        let Ok(sectors) = host.sectors(&config) else { continue };
        let mut device = stack(&host, &config, seed);
        assert_eq!(device.sectors(), sectors);
        compared += work(&mut *device, seed, 300);
        // What the layers do by themselves comes to its end.
        while let Some(at) = device.next_event() {
            device.run_until(at);
        }
        assert_handed_down(&*device);
        let layers = device.layers();
        let figures = &layers.iter().find(|layer| layer.kind == "restoring").expect("the layer").figures;
        packs += figures["log_writes"];
        copied += figures["copied_units"] + figures["moved_units"];
    }
    assert!(
        compared > 900 && packs > 500.0 && copied > 300.0,
        "{compared} reads, {packs} packs, {copied} units copied"
    );
}

/// Records were handed on with their writes: a layer that holds writes, splits them or sends other ones lost them, and a file system above
/// it did not find its metadata.
#[test]
fn records_are_found_through_every_layer() {
    let layers = [
        "scheduler",
        "page-cache\"\nram = \"64k",
        "ata",
        "restoring\"\nlog = \"16k",
        "stripe\"\nchunk = \"1k",
        "mirror\"\nregion = \"4k",
    ];
    for (seed, layer) in (0..).zip(layers) {
        let arrays = if layer.starts_with("stripe") || layer.starts_with("mirror") { "drives = 2\n" } else { "" };
        let host = Host::parse(&format!("[[layer]]\nkind = \"{layer}\"\n{arrays}"), "host.toml").expect("a host");
        let options = Options { seed, contents: Contents::Nothing };
        let config = (seed..).map(drive).find(|config| host.sectors(config).is_ok_and(|sectors| sectors >= 128));
        let members = host.drives(&config.expect("a drive")).into_iter();
        let members = members.map(|(name, config)| Member::new(&name, &config, options).expect("a drive"));
        let mut device = host.build(members.collect()).expect("a stack");
        let mut kept: HashMap<u64, u64> = HashMap::new();
        let mut rng = rng(seed, "records");
        for number in 1..300_u64 {
            let block = rng.random_range(0..16);
            let op = if rng.random_bool(0.9) { Op::Write } else { Op::Trim };
            let request = Request { at: device.now(), tag: number as u32, ..Request::new(op, block * 8, 8) };
            device.submit(&request, Data::Nothing);
            kept.remove(&block);
            if op == Op::Write && rng.random_bool(0.7) {
                device.keep_record(block * 8, &number.to_le_bytes());
                kept.insert(block, number);
            }
            if rng.random_bool(0.1) {
                device.run_until(Nanos(device.now().0 + rng.random_range(0..2_000_000)));
            }
            for block in 0..16 {
                let wanted = kept.get(&block).map(|number| {
                    let bytes = number.to_le_bytes();
                    bytes[..bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)].to_vec()
                });
                let found = device.record(block * 8).map(<[u8]>::to_vec);
                assert_eq!(found, wanted, "{layer}, request {number}, block {block}");
            }
        }
        assert!(!kept.is_empty() && device.record_bytes() > 0);
    }
}

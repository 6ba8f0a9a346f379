//! Destaging keeps the chips at work: a buffered drive writes what its link brings or what its chips program, whichever is
//! less, and never more than two stripes are on their way.

use std::path::Path;

use rand::RngExt;
use ssdlab_base::{Nanos, Op, Request, Rng, rng};
use ssdlab_device::{Description, Destage, Drive, DriveConfig, InterfaceKind, Options};
use ssdlab_flash::{Contents, OpKind, Resource};

/// The shipped drives that destage and whose buffer holds more than the two stripes that may be on their way.
const DESTAGING: [&str; 7] =
    ["demo-slc", "demo-tlc", "demo-qlc", "shrd-sm843-120g", "tlc-nvme-1t", "tlc-nvme-4t", "qlc-nvme-3840g"];

/// How far a measured rate may be from the closed form.
const TOLERANCE: f64 = 0.005;

/// A shipped drive with so few blocks that its map is small, and all of the map in RAM: misses would take chips from data. All else
/// is the file's.
fn shipped(name: &str, settings: &[&str]) -> DriveConfig {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../devices").join(format!("{name}.toml"));
    let mut description = Description::load(&path).unwrap_or_else(|error| panic!("{error}"));
    let planes = description.resolve().expect("it ships").flash.geometry.planes();
    let blocks = if planes < 32 { "flash.blocks_per_plane=512" } else { "flash.blocks_per_plane=64" };
    for setting in [blocks, "capacity.over_provisioning=25%", "ftl.design=page"].iter().chain(settings) {
        description.set(setting).unwrap_or_else(|error| panic!("{error}"));
    }
    description.resolve().unwrap_or_else(|error| panic!("{error}"))
}

fn new(config: &DriveConfig) -> Drive {
    Drive::new(config, Options { seed: 1, contents: Contents::Nothing }).expect("an accepted drive")
}

/// What the host brings in bytes a second: `depth` requests at a time, one after another through the processor and over the
/// link, each a while in the drive.
fn host_rate(config: &DriveConfig, bytes: u64, depth: u64) -> f64 {
    let link = bytes as f64 / config.interface.bandwidth as f64;
    let interface = &config.interface;
    let overhead = interface.command_overhead + interface.write_overhead + interface.processing;
    let each = link + (overhead + config.buffer.latency).0 as f64 / 1e9;
    let turns = if interface.processing > Nanos::ZERO { 1e9 / interface.processing.0 as f64 } else { f64::INFINITY };
    bytes as f64 * (1.0 / link).min(turns).min(depth as f64 / each)
}

/// What the chips program in bytes a second: all dies take the data of all their planes and program it, and a channel
/// carries the data of one die at a time.
fn chip_rate(config: &DriveConfig) -> f64 {
    let (geometry, timing) = (&config.flash.geometry, &config.flash.timing);
    let data = ((timing.command + timing.transfer) * u64::from(geometry.planes_per_die)).0 as f64 / 1e9;
    let positions = timing.program.iter().map(|program| (program.min + program.max).0 as f64 / 2e9);
    let program = positions.sum::<f64>() / timing.program.len() as f64;
    let dies_a_channel = f64::from(geometry.chips_per_channel * geometry.dies_per_chip);
    let stripe = f64::from(geometry.planes()) * f64::from(geometry.page_bytes);
    stripe / (data + program).max(dies_a_channel * data)
}

/// Writes twice the buffer's size in requests of `size` at `depth`, after three times as much has filled it; bytes a second.
fn measured(config: &DriveConfig, size: u64, depth: u64, place: impl Fn(u64) -> u64) -> f64 {
    let mut drive = new(config);
    let volume = config.buffer.bytes.max(32 << 20);
    let (warm, count) = (3 * volume / size, 5 * volume / size);
    let (mut sent, mut seen, mut begun) = (0, 0, Nanos::ZERO);
    while seen < count {
        while sent < count && sent - seen < depth {
            let mut request = Request::new(Op::Write, place(sent) * size / 512, size / 512);
            request.at = drive.now();
            drive.submit(&request);
            sent += 1;
        }
        assert!(drive.run_to_completion(Nanos::MAX), "the loop goes on");
        // Everything of this instant, before the host answers.
        drive.run_until(drive.now());
        for completion in drive.completions().drain(..) {
            seen += 1;
            if seen == warm {
                begun = completion.at;
            }
        }
    }
    assert_eq!(drive.counters().victims, [0; 3], "there is no garbage yet");
    (count - warm) as f64 * size as f64 / (drive.now() - begun).0 as f64 * 1e9
}

#[test]
fn a_buffered_drive_writes_what_the_link_brings_or_the_chips_program() {
    for name in DESTAGING {
        let config = shipped(name, &[]);
        assert_eq!(config.buffer.destage.when, Destage::Watermark, "{name}");
        for (depth, size) in [(1, 4 << 10), (1, 128 << 10), (32, 4 << 10), (32, 32 << 10), (32, 128 << 10)] {
            for random in [false, true] {
                // Scattered, each place once: nothing is overwritten in the buffer.
                let places = config.user_bytes / size;
                let place = |number: u64| if random { number * 1_000_003 % places } else { number };
                let rate = measured(&config, size, depth, place);
                let closed_form = host_rate(&config, size, depth).min(chip_rate(&config));
                let off = rate / closed_form - 1.0;
                eprintln!(
                    "| {name} | {} | {} KiB | {depth} | {:.0} | {:.0} | {:+.2} % |",
                    if random { "random" } else { "sequential" },
                    size >> 10,
                    closed_form / 1e6,
                    rate / 1e6,
                    off * 100.0
                );
                assert!(off.abs() < TOLERANCE, "{name}, {size} bytes, depth {depth}: {rate} instead of {closed_form}");
            }
        }
    }
}

/// Papers whose simulators replace pages on demand, and tested drives whose published figures rest on it, say so.
#[test]
fn drives_of_papers_that_evict_on_demand_say_so() {
    let names = ["waflash-256g-4k", "waflash-256g-8k", "waflash-256g-16k"];
    for name in names.into_iter().chain(["wa-ssd-i-40g", "wa-ssd-m-64g", "wa-ssd-s-32g", "wa-ssd-v-16g"]) {
        assert_eq!(shipped(name, &[]).buffer.destage.when, Destage::OnDemand, "{name}");
    }
}

/// Sends writes of a unit each, without a host that waits for room; returns the drive when all are in the buffer.
fn with_writes(config: &DriveConfig, units: impl Iterator<Item = u64>) -> Drive {
    let mut drive = new(config);
    for unit in units {
        write(&mut drive, unit);
    }
    drive
}

fn write(drive: &mut Drive, unit: u64) {
    let mut request = Request::new(Op::Write, unit * 8, 8);
    request.at = drive.now();
    drive.submit(&request);
    drive.run_until(drive.now() + Nanos::from_us(10));
    assert_eq!(drive.completions().drain(..).count(), 1, "the buffer had room");
}

fn rest(drive: &mut Drive) {
    while let Some(at) = drive.next_event() {
        drive.run_until(at);
    }
}

fn programs(drive: &Drive) -> u64 {
    drive.counters().flash.total(OpKind::Program)
}

#[test]
fn nothing_leaves_below_the_high_watermark_and_what_does_goes_down_to_the_low_one_in_whole_stripes() {
    // 16 planes of 16 KiB: a stripe of 64 units.
    let config = shipped("demo-tlc", &["buffer.size=16m", "buffer.high_watermark=50%", "buffer.low_watermark=25%"]);
    let mut drive = with_writes(&config, 0..2047);
    rest(&mut drive);
    assert_eq!((programs(&drive), drive.counters().buffer.pages_now), (0, 2047));
    write(&mut drive, 2047);
    rest(&mut drive);
    assert_eq!((programs(&drive), drive.counters().buffer.pages_now), (256, 1024), "16 stripes");
    assert_eq!(drive.counters().buffer.destaged_pages, 1024);
    // Overwrites of what is there bring nothing that is dirty beside it.
    (1024..2048).for_each(|unit| write(&mut drive, unit));
    rest(&mut drive);
    assert_eq!(programs(&drive), 256);
    // It begins anew at the high mark only.
    (4096..5119).for_each(|unit| write(&mut drive, unit));
    assert_eq!(programs(&drive), 256);
    write(&mut drive, 5119);
    rest(&mut drive);
    assert_eq!(programs(&drive), 512);
    assert_eq!(drive.counters().multi_plane.total(OpKind::Program), 512, "planes program together");
}

/// A flush of a single page leaves the planes of the dies at different pages, one of which would be ahead for good.
#[test]
fn planes_are_in_step_again_after_a_flush() {
    // Alone each plane has a page whose neighbour comes later; a superblock's pages go to both planes of a die in turn.
    for (superblock, expected) in [("none", 6), ("drive", 2)] {
        let superblock = format!("ftl.superblock={superblock}");
        let marks = ["buffer.size=16m", "buffer.high_watermark=50%", "buffer.low_watermark=25%", &superblock];
        assert_eq!(programmed_alone_after_a_flush(&shipped("demo-tlc", &marks)), expected, "{superblock}");
    }
}

/// Programs of one plane alone after a flush of three pages and 2,048 units more.
fn programmed_alone_after_a_flush(config: &DriveConfig) -> u64 {
    let mut drive = with_writes(config, 0..12);
    let mut flush = Request::new(Op::Flush, 0, 0);
    flush.at = drive.now();
    drive.submit(&flush);
    rest(&mut drive);
    drive.completions().clear();
    assert_eq!(programs(&drive), 3, "three pages of four units");
    (100..2148).for_each(|unit| write(&mut drive, unit));
    rest(&mut drive);
    // What is left of the first stripe, and whole ones: 2,048 units down to 1,024, and what completes the last stripe.
    let alone = programs(&drive) - drive.counters().multi_plane.total(OpKind::Program);
    assert_eq!(programs(&drive), 3 + 13 + 256 - 16 + 16);
    alone
}

/// Units on their way: what is in the buffer's space and no longer in the buffer.
#[test]
fn no_more_than_two_stripes_are_on_their_way_and_reads_wait_for_two_programs_at_most() {
    let config = shipped("tlc-nvme-1t", &[]);
    let (geometry, timing) = (config.flash.geometry, config.flash.timing.clone());
    let mut drive = new(&config);
    let mut rng = rng(1, "reads");
    for unit in 0..2048 {
        write(&mut drive, unit);
    }
    let mut flush = Request::new(Op::Flush, 0, 0);
    flush.at = drive.now();
    drive.submit(&flush);
    rest(&mut drive);
    drive.completions().clear();
    let cycle = timing.program[0].max + (timing.command + timing.transfer) * u64::from(geometry.planes_per_die);
    let channel = cycle - timing.program[0].max;
    let dies = u64::from(geometry.chips_per_channel * geometry.dies_per_chip);
    let (mut next, mut slowest, mut reads) = (4096, Nanos::ZERO, 0);
    let (mut writes, mut reading) = (0, false);
    while reads < 2000 {
        // As many writes as the link brings, and one read at a time.
        while writes < 32 {
            send(&mut drive, Op::Write, next, 1);
            (next, writes) = (next + 1, writes + 1);
        }
        if !reading && rng.random_bool(0.01) {
            send(&mut drive, Op::Read, rng.random_range(0..2048), 1);
            reading = true;
        }
        assert!(drive.run_to_completion(Nanos::MAX));
        for completion in drive.completions().drain(..) {
            if completion.op == Op::Read {
                slowest = slowest.max(completion.at - completion.submitted);
                (reads, reading) = (reads + 1, false);
            } else {
                writes -= 1;
            }
        }
        let counters = drive.counters();
        let on_their_way = (counters.buffer.evictions / 4).saturating_sub(programs(&drive));
        assert!(on_their_way < 2 * u64::from(geometry.planes()), "{on_their_way} programs in flight");
    }
    // Its die's program and the next one, the data of its channel's other dies, and its own read and way out; a die that
    // the read before held up is that much behind the others when its next program comes.
    let own = timing.read[0].max + (timing.command + timing.transfer) * 2 + config.buffer.latency;
    let bound = cycle * 2 + channel * (3 * dies) + own * 2 + Nanos::from_us(50);
    assert!(bound < cycle * 3, "the bound excludes a third program");
    assert!(slowest < bound, "{slowest}, not within {bound}");
    assert!(slowest > timing.program[0].max, "{slowest}: some read waited for a program");
}

fn send(drive: &mut Drive, op: Op, unit: u64, tag: u32) {
    let mut request = Request::new(op, unit * 8, 8);
    (request.at, request.tag) = (drive.now(), tag);
    drive.submit(&request);
}

/// Random single-unit writes with some flushes; returns what the drive did.
fn churn(config: &DriveConfig, timed: bool, writes: u64, rng: &mut Rng) -> Drive {
    let mut drive = new(config);
    drive.set_timed(timed);
    let units = config.user_bytes / 4096;
    for _ in 0..writes {
        send(&mut drive, Op::Write, rng.random_range(0..units), 0);
        // Slowly: the chips are done before the next one comes.
        rest(&mut drive);
        drive.completions().clear();
    }
    drive
}

/// Without time the chips are infinitely fast: what leaves, and when, is what leaves when writes come slowly.
#[test]
fn without_time_the_same_leaves_as_when_the_chips_always_keep_up() {
    // A superblock of the drive is sixteen blocks.
    for (superblock, victims) in [("none", 100), ("drive", 100 / 16)] {
        let superblock = format!("ftl.superblock={superblock}");
        let settings = ["flash.blocks_per_plane=24", "flash.pages_per_block=16", "capacity.over_provisioning=60%"];
        let more = ["buffer.size=2m", "gc.pacing=off", &superblock];
        let config = shipped("demo-tlc", &[&settings[..], &more].concat());
        let run = |timed| {
            let drive = churn(&config, timed, 30_000, &mut rng(3, "churn"));
            assert!(drive.check().iter().all(|check| check.passed));
            let counters = drive.counters();
            assert!(counters.victims[0] > victims, "garbage is collected: {:?}", counters.victims);
            (counters.flash.total(OpKind::Program), counters.buffer.destaged_pages, counters.buffer.write_hits)
        };
        let (timed, untimed) = (run(true), run(false));
        assert_eq!((timed.1, timed.2), (untimed.1, untimed.2));
        let difference = timed.0.abs_diff(untimed.0) as f64 / timed.0 as f64;
        assert!(difference < 0.005, "{superblock}: {timed:?} programs with time and {untimed:?} without");
    }
}

/// Every policy destages: a drive that collects garbage under it comes to its end at every size of buffer, the smallest too.
#[test]
fn every_policy_and_size_destages_under_garbage_collection() {
    for policy in ssdlab_device::registered().iter().filter(|entry| entry.kind == "buffer.policy") {
        for size in ["16k", "64k", "300k", "2m"] {
            if policy.name == "none" {
                continue;
            }
            let (policy, size) = (format!("buffer.policy={}", policy.name), format!("buffer.size={size}"));
            let small = ["flash.blocks_per_plane=16", "flash.pages_per_block=4", "capacity.over_provisioning=100%"];
            let config = shipped("demo-slc", &[&small[..], &["flash.page_size=16k", &policy, &size]].concat());
            assert_eq!(config.interface.kind, InterfaceKind::Nvme);
            let mut drive = new(&config);
            let mut rng = rng(5, &policy);
            let units = config.user_bytes / 4096;
            let mut completed = 0;
            for number in 0..6000_u64 {
                let op = if rng.random_bool(0.2) { Op::Read } else { Op::Write };
                send(&mut drive, op, rng.random_range(0..units), number as u32);
                while drive.outstanding() >= 16 {
                    assert!(drive.run_to_completion(Nanos::MAX), "{policy} {size}: the drive goes on");
                    completed += drive.completions().drain(..).count() as u64;
                }
            }
            rest(&mut drive);
            completed += drive.completions().drain(..).count() as u64;
            assert_eq!((completed, drive.outstanding()), (6000, 0), "{policy} {size}");
            for check in drive.check() {
                assert!(check.passed, "{policy} {size}: {}: {}", check.name, check.detail);
            }
            let counters = drive.counters();
            assert!(counters.victims[0] > 0 && counters.buffer.destaged_pages > 0, "{policy} {size}");
        }
    }
}

/// The board of Getting Real with the merge buffer of section 3.1.2: units of 4 KB in pages of 32 KB, which leave in order.
fn merge_buffer() -> DriveConfig {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../devices/jasmine-8g.toml");
    let mut description = Description::load(&path).unwrap_or_else(|error| panic!("{error}"));
    for setting in [
        "ftl.mapping_unit=4k",
        "ftl.allocation=round-robin",
        "buffer.policy=fifo",
        "buffer.size=2m",
        "buffer.high_watermark=100%",
        "buffer.low_watermark=50%",
    ] {
        description.set(setting).unwrap_or_else(|error| panic!("{error}"));
    }
    description.resolve().unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_merge_buffer_lets_full_pages_leave_to_all_banks_and_a_flush_whatever_there_is() {
    use crate::timing_support::{Host, Spans};
    let config = merge_buffer();
    let banks = config.flash.geometry.dies() as usize;
    let mut host = Host::new(&config);
    let spans = Spans::watch(&mut host.drive);
    let mut random = rng(5, "merge buffer");
    let units = host.drive.user_sectors() / 8;
    // Random units of 4 KB, eight at a time, and pieces of them now and then. None is written twice.
    let mut written = 0;
    let step = units / 8_000;
    while written < 8_000 {
        for _ in 0..8.min(8_000 - written) {
            let unit = written * step + random.random_range(0..step);
            host.send(Op::Write, unit * 8, 8);
            written += 1;
        }
        let at = host.drive.next_event().map_or(host.now(), |at| at.0);
        host.run_until(at);
    }
    host.run();
    let counters = host.drive.counters();
    let programs = counters.flash.total(OpKind::Program);
    let left = (config.buffer.bytes / 4096).min(written);
    assert_eq!(counters.padding_bytes, 0, "only full pages leave");
    assert!(programs * 8 <= written && programs * 8 + left >= written, "{programs} pages of {written} units");
    assert_eq!(counters.flash.total(OpKind::Read), 0, "nothing is read to complete a page");
    // Pages leave to the banks in turn, whatever their addresses are.
    let mut pages = vec![0_u32; banks];
    for span in spans.taken() {
        if let (Resource::Die(die), OpKind::Program) = (span.resource, span.kind) {
            pages[die.index()] += 1;
        }
    }
    assert_eq!(pages.iter().map(|pages| u64::from(*pages)).sum::<u64>(), programs);
    let (fewest, most) = (pages.iter().min(), pages.iter().max());
    assert!(most.zip(fewest).is_some_and(|(most, fewest)| most - fewest <= 1), "a batch goes to all banks: {pages:?}");
    // What is left are whole pages. One unit more shares its page with nothing, and a flush lets it leave.
    host.send(Op::Write, (units - 1) * 8, 8);
    host.run();
    host.send(Op::Flush, 0, 0);
    host.run();
    assert_eq!(host.drive.counters().padding_bytes, 7 * 4096, "a flush pads the last page");
    host.assert_checks_hold();
}

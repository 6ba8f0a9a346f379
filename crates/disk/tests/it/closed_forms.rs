//! Times that can be worked out by hand: single commands to the nanosecond, means and rates within 1 %.

use rand::RngExt as _;
use ssdlab_base::{Nanos, Op, Request, SECTOR_BYTES};
use ssdlab_device::Status;
use ssdlab_disk::{Disk, DiskConfig};

use crate::support::{closed_loop, disk, one, read, round, shipped, within, write};

const US: u64 = 1_000;

fn takes(disk: &mut Disk, request: Request) -> u64 {
    let completion = one(disk, request);
    assert_eq!(completion.status, Status::Success);
    (completion.at - completion.submitted).0
}

#[test]
fn single_commands_take_what_a_hand_works_out() {
    let mut disk = disk(&round(&["disk.interface.command_overhead=50us"]));
    // 50 us of the controller: the head is within sector 0, and sector 10 begins after 1 ms.
    assert_eq!(takes(&mut disk, read(10, 1)), 1_100 * US);
    // At 1.1 ms, behind sector 10. The controller takes 50 us, so sector 11 is gone.
    assert_eq!(takes(&mut disk, read(11, 1)), 10_100 * US);
    // At 11.2 ms; the other head is there at 11.55 ms, and its sector 0 begins at 20.4 ms.
    assert_eq!(takes(&mut disk, read(100, 1)), 9_300 * US);
    // At 20.5 ms. One cylinder: 1 ms + 7 ms * sqrt(1 / 49) = 2 ms, so the head is there at 22.55 ms. Cylinder 1 begins 2.4 ms behind
    // cylinder 0, at 22.4 ms; its sector 2 begins at 22.6 ms.
    assert_eq!(takes(&mut disk, read(202, 2)), 2_300 * US);
    // At 22.8 ms. 48 cylinders: 1 ms + 7 ms * sqrt(48 / 49), rounded down to a nanosecond. Cylinder 49 begins 117.6 ms behind
    // cylinder 0: at 7.6 ms of a rotation, thus at 37.6 ms.
    assert_eq!(takes(&mut disk, read(9_800, 1)), 14_900 * US);
    let counters = disk.counters();
    assert_eq!((counters.seeks, counters.media_reads, counters.rotational_waits), (2, 5, 5));
    let root = 6_928_203;
    assert_eq!(counters.seek_ns, (300 + 2_000 + 1_000) * US + root);
}

#[test]
fn a_link_takes_the_last_sector_behind_the_medium_and_a_hit_takes_it_all() {
    let mut disk = disk(&round(&["disk.interface.bandwidth=512000000", "disk.read_cache.ahead=4k"]));
    // 1 us a sector. Ten sectors pass in 1 ms.
    assert_eq!(takes(&mut disk, read(0, 10)), 1_001 * US);
    assert_eq!(takes(&mut disk, read(2, 8)), 8 * US);
    assert_eq!(disk.counters().read_hits, 1);
    // Eight sectors are read ahead. 1.009 ms are over: those from 10 on are on their way, and the last one passes at 1.5 ms.
    assert_eq!(takes(&mut disk, read(10, 5)), (1_500 - 1_009 + 1) * US);
    // Those up to 22 have passed at 2.3 ms.
    disk.run_until(Nanos(2_300 * US));
    assert_eq!(takes(&mut disk, read(15, 8)), 8 * US);
    // The heads went on to 30 behind that.
    disk.run_until(Nanos(9_000 * US));
    assert_eq!(takes(&mut disk, read(23, 8)), 8 * US);
    assert_eq!(disk.counters().read_hits, 3);
}

#[test]
fn a_write_ends_in_the_cache_and_with_fua_on_the_medium() {
    let mut cached = disk(&round(&["disk.interface.bandwidth=512000000", "disk.interface.command_overhead=50us"]));
    assert_eq!(takes(&mut cached, write(50, 4)), 54 * US);
    // The heads write sectors 50 to 53, up to 5.4 ms. The flush ends then, after 50 us of the controller.
    assert_eq!(takes(&mut cached, Request::new(Op::Flush, 0, 0)), (5_400 - 54) * US);
    let mut through = disk(&round(&["disk.write_cache.enabled=false"]));
    assert_eq!(takes(&mut through, write(50, 4)), 5_400 * US);
    let mut fua = disk(&round(&[]));
    assert_eq!(takes(&mut fua, Request { fua: true, ..write(50, 4) }), 5_400 * US);
    assert_eq!(fua.counters().sectors_written, 4);
}

#[test]
fn what_a_disk_cannot_do_ends_at_once() {
    let mut disk = disk(&round(&[]));
    for op in [Op::Trim, Op::WriteZeroes] {
        assert_eq!(one(&mut disk, Request::new(op, 0, 8)).status, Status::Unsupported);
    }
    let sectors = disk.sectors();
    assert_eq!(one(&mut disk, read(sectors, 1)).status, Status::OutOfRange);
    assert_eq!(one(&mut disk, read(u64::MAX, 2)).status, Status::OutOfRange);
    assert_eq!(disk.now(), Nanos::ZERO);
    assert_eq!(disk.counters().unsupported, 2);
}

/// The mean of a seek between two cylinders that are drawn at random, in nanoseconds, over all distances.
fn mean_seek(config: &DiskConfig) -> f64 {
    let cylinders = f64::from(config.cylinders());
    let (settle, knee, full) =
        (config.seek.settle.0 as f64, config.seek.knee.0 as f64, config.seek.full_stroke.0 as f64);
    let bend = f64::from(config.seek.knee_cylinders);
    let of = |distance: f64| match distance <= bend {
        true => settle + (knee - settle) * (distance / bend).sqrt(),
        false => knee + (full - knee) * (distance - bend) / (cylinders - 1.0 - bend),
    };
    let part = |distance: u32| of(distance.into()) * 2.0 * (cylinders - f64::from(distance)) / (cylinders * cylinders);
    (1..config.cylinders()).map(part).sum()
}

#[test]
fn random_reads_at_depth_1_take_a_mean_seek_half_a_rotation_and_a_transfer() {
    // Every cylinder has as many sectors, so sectors at random are cylinders at random.
    let text = "[disk]\nheads = 1\nzones = [{ cylinders = 20000, sectors = 1000 }]\n[disk.seek]\nsettle = \"1ms\"\nknee = \"9ms\"\n\
                full_stroke = \"17ms\"\n[disk.read_cache]\nahead = 0\nsegments = 1\n[disk.interface]\ncommand_overhead = \"100us\"";
    let root_alone = ["disk.seek.knee_cylinders=19999".to_string(), "disk.seek.full_stroke=9ms".to_string()];
    for (sets, sectors) in [(&[][..], 1), (&root_alone[..], 1), (&[], 64)] {
        let config = DiskConfig::parse(text, "one-zone.toml", sets).unwrap_or_else(|error| panic!("{error}"));
        let mut disk = disk(&config);
        let (mut rng, count) = (ssdlab_base::rng(7, "closed forms"), 40_000);
        // Reads that stay on their track.
        let mut next = || read(rng.random_range(0..20_000) * 1000 + rng.random_range(0..=1000 - sectors), sectors);
        let each = closed_loop(&mut disk, 1, count, &mut next).0 as f64 / count as f64;
        let rotation = 60e9 / 7_200.0;
        let seek = mean_seek(&config);
        let link = 512.0 / 0.6;
        within(each, 100e3 + seek + rotation / 2.0 + rotation * sectors as f64 / 1000.0 + link, 0.01, "a read");
        within(disk.counters().seek_ns as f64 / count as f64, seek, 0.01, "a seek");
        within(disk.counters().rotational_wait_ns as f64 / count as f64, rotation / 2.0, 0.01, "a wait");
    }
    // The root alone, in closed form: the mean root of the distance of two points is 8/15 of that of the longest.
    let config = DiskConfig::parse(text, "one-zone.toml", &root_alone).unwrap_or_else(|error| panic!("{error}"));
    within(mean_seek(&config), 1e6 + 8e6 * 8.0 / 15.0, 0.001, "the sum over all distances");
    for config in [config, shipped(&[])] {
        within(config.mean_seek().0 as f64, mean_seek(&config), 1e-6, "the mean seek of the data sheet");
        within(config.zone_rate(&config.zones[0]) as f64, zone_rate(&config, 0), 1e-6, "the rate of the data sheet");
    }
}

/// Bytes a second of a zone, when whole cylinders pass one after the other.
fn zone_rate(config: &DiskConfig, zone: usize) -> f64 {
    let heads = f64::from(config.heads);
    let rotation = 60.0 / f64::from(config.rpm);
    let skews = (heads - 1.0) * config.head_skew.as_secs_f64() + config.cylinder_skew.as_secs_f64();
    f64::from(config.zones[zone].sectors) * heads * SECTOR_BYTES as f64 / (heads * rotation + skews)
}

fn first_of(config: &DiskConfig, zone: usize) -> u64 {
    let sectors = |zone: &ssdlab_disk::Zone| u64::from(zone.cylinders) * u64::from(zone.sectors);
    config.zones[..zone].iter().map(sectors).sum::<u64>() * u64::from(config.heads)
}

#[test]
fn sequential_transfers_have_the_rate_of_their_zone() {
    let config = shipped(&["disk.write_cache.idle=0"]);
    within(zone_rate(&config, 0), 138e6, 0.001, "the outer rate of the data sheet");
    for zone in [0, 8, 15] {
        // From a cylinder's first sector on: 240 MB.
        let first = first_of(&config, zone);
        for (op, depth, sectors) in [(Op::Read, 1, 256), (Op::Read, 1, 8), (Op::Read, 8, 256), (Op::Write, 4, 512)] {
            let mut disk = disk(&config);
            one(&mut disk, read(first, 1));
            let (mut sector, count) = (first, 480_000 / sectors as usize);
            let mut next = || {
                sector += sectors;
                Request::new(op, sector - sectors, sectors)
            };
            let mut time = closed_loop(&mut disk, depth, count, &mut next);
            if op == Op::Write {
                time += Nanos(takes(&mut disk, Request::new(Op::Flush, 0, 0)));
            }
            let rate = (480_000 / sectors * sectors * SECTOR_BYTES) as f64 / time.as_secs_f64();
            within(rate, zone_rate(&config, zone), 0.01, &format!("zone {zone}, {op:?} of {sectors} at depth {depth}"));
        }
    }
}

#[test]
fn a_skew_below_the_switch_loses_a_rotation_at_every_track() {
    let time = |sets: &[&str]| takes(&mut disk(&round(sets)), read(0, 200));
    assert_eq!(time(&[]), 20_400 * US);
    assert_eq!(time(&["disk.head_skew=299us"]), 30_299 * US);
}

#[test]
fn memory_follows_what_is_written_and_not_what_is_addressed() {
    let memory = |capacity: &str| {
        let config = shipped(&[&format!("disk.capacity={capacity}")]);
        let mut disk = Disk::new(&config, ssdlab_flash::Contents::Bytes);
        let sectors = disk.sectors();
        for index in 0..1_000 {
            one(&mut disk, write(sectors / 1_000 * index / 8 * 8, 8));
        }
        one(&mut disk, Request::new(Op::Flush, 0, 0));
        disk.memory_bytes()
    };
    let (large, small) = (memory("1500301910016"), memory("75g"));
    assert_eq!(large, small);
    assert!(large < 1_000 * 128 * 512, "{large} bytes for 4 MB of data in chunks of 32 KiB");
}

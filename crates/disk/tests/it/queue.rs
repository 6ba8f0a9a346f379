//! The order in which commands are served.

use rand::RngExt as _;
use ssdlab_base::{Nanos, Op, Request};
use ssdlab_device::Data;
use ssdlab_disk::DiskConfig;

use crate::support::{closed_loop, disk, one, read, round, within, write};

/// 200 ns a sector, 50,000 sectors on the only track.
fn one_track(depth: u32) -> DiskConfig {
    let text = format!(
        "[disk]\nrpm = 6000\nheads = 1\nzones = [{{ cylinders = 1, sectors = 50000 }}]\n[disk.seek]\nsettle = 0\nknee = 0\n\
         full_stroke = 0\n[disk.interface]\nbandwidth = 0\n[disk.queue]\ndepth = {depth}\n[disk.read_cache]\nahead = 0\n\
         segments = 1\nsegment = \"4k\""
    );
    DiskConfig::parse(&text, "track.toml", &[]).unwrap_or_else(|error| panic!("{error}"))
}

/// Sectors at random, none of them twice or beside another one within 200 reads: none is a hit in the read cache.
fn apart(count: usize) -> Vec<u64> {
    let mut rng = ssdlab_base::rng(3, "queue");
    let mut sectors: Vec<u64> = Vec::new();
    while sectors.len() < count {
        let next = rng.random_range(0..5_000) * 10;
        if !sectors.iter().rev().take(200).any(|sector| *sector == next) {
            sectors.push(next);
        }
    }
    sectors
}

/// Heads that are at sector 0 when all commands are there pass them in the order of the track: the last one ends the batch.
#[test]
fn a_batch_on_a_track_takes_as_long_as_the_last_sector_is_away() {
    let mut sum = 0.0;
    for (batch, sectors) in apart(31 * 200).chunks_exact(31).enumerate() {
        let mut disk = disk(&one_track(32));
        // The first read holds the heads while the others arrive.
        let mut next = std::iter::once(0).chain(sectors.iter().map(|sector| sector.max(&10)).copied());
        let time = closed_loop(&mut disk, 32, 32, || read(next.next().expect("32 reads"), 1));
        let last = sectors.iter().max().expect("31 sectors");
        assert_eq!(time, Nanos((last + 1) * 200), "batch {batch}");
        sum += time.0 as f64;
    }
    // The greatest of 31 places on a rotation.
    within(sum / 200.0, 10e6 * 31.0 / 32.0, 0.01, "a batch");
}

/// A host keeps `waiting` commands at the disk, which has `depth` of them and serves the one that comes first below the heads.
/// The heads are on their way to the next one when the host hears of an end. Times in sectors.
fn count_model(sectors: &[u64], waiting: usize, depth: usize) -> u64 {
    const TRACK: u64 = 50_000;
    let (mut time, mut sent) = (0, waiting.min(sectors.len()));
    let mut outside: std::collections::VecDeque<u64> = sectors[..sent].iter().copied().collect();
    let mut inside: Vec<u64> = Vec::new();
    // The first command is alone in the disk when it is chosen.
    let mut serves = outside.pop_front();
    inside.extend(outside.drain(..outside.len().min(depth - 1)));
    while let Some(sector) = serves {
        time += (sector + TRACK - time % TRACK) % TRACK + 1;
        let first = (0..inside.len()).min_by_key(|index| (inside[*index] + TRACK - time % TRACK) % TRACK);
        serves = first.map(|first| inside.remove(first));
        if let Some(next) = sectors.get(sent) {
            outside.push_back(*next);
            sent += 1;
        }
        match outside.pop_front() {
            Some(next) if serves.is_none() => serves = Some(next),
            Some(next) => inside.push(next),
            None => {}
        }
    }
    time
}

#[test]
fn a_queue_is_served_as_a_count_of_sectors_says() {
    let sectors = apart(5_000);
    let rotation = 10e6;
    let mut before = f64::MAX;
    for depth in [1, 2, 4, 8, 16, 32] {
        for waiting in [depth as usize, 64] {
            let mut disk = disk(&one_track(depth));
            let mut next = sectors.iter();
            let time = closed_loop(&mut disk, waiting, 5_000, || read(*next.next().expect("5,000 reads"), 1));
            let expected = count_model(&sectors, waiting, depth as usize);
            assert_eq!(time, Nanos(expected * 200), "{waiting} at a queue of {depth}");
            assert_eq!(disk.counters().read_hits, 0);
            assert_eq!(disk.counters().reorders > 0, depth > 2, "at a queue of {depth}");
        }
        let each = count_model(&sectors, depth as usize, depth as usize) as f64 * 200.0 / 5_000.0;
        assert!(each < before, "{each} ns at depth {depth}");
        if depth <= 2 {
            // A queue of one has no choice. With two, the heads are on their way to the only other one when the next comes.
            within(each, rotation / 2.0, 0.02, "a read without a choice");
        } else {
            before = each;
        }
    }
}

fn wait_of_a_far_read(age_limit: &str) -> Nanos {
    // Seeks of at least a rotation: commands on the track always come first.
    let mut disk = disk(&round(&[
        &format!("disk.queue.age_limit={age_limit}"),
        "disk.seek.settle=12ms",
        "disk.seek.knee=15ms",
        "disk.seek.full_stroke=20ms",
    ]));
    let mut rng = ssdlab_base::rng(5, "queue");
    disk.submit(&Request { tag: 1, ..read(9_000, 1) }, Data::Nothing);
    let mut near = |disk: &mut ssdlab_disk::Disk| {
        disk.submit(&Request { at: disk.now(), ..read(rng.random_range(0..100), 1) }, Data::Nothing);
    };
    // The far read is served first as it is alone; then the near ones come.
    disk.run_until(Nanos::from_ms(1_000));
    disk.completions().clear();
    one(&mut disk, read(0, 1));
    (0..4).for_each(|_| near(&mut disk));
    let begin = disk.now();
    disk.submit(&Request { at: begin, tag: 1, ..read(9_500, 1) }, Data::Nothing);
    while disk.now() < Nanos::from_ms(6_000) {
        assert!(disk.run_to_completion(Nanos::HORIZON));
        for completion in std::mem::take(disk.completions()) {
            if completion.tag == 1 {
                return completion.at - begin;
            }
            near(&mut disk);
        }
    }
    disk.now() - begin
}

#[test]
fn a_command_waits_no_longer_than_the_age_limit_and_what_is_below_the_heads() {
    let starved = wait_of_a_far_read("1h");
    assert!(starved > Nanos::from_ms(4_000), "it waited {starved}");
    let limited = wait_of_a_far_read("200ms");
    // A read below the heads when it becomes too old, older near reads that are too old by then, and its own access.
    assert!((Nanos::from_ms(200)..Nanos::from_ms(200 + 10 + 4 * 10 + 30)).contains(&limited), "it waited {limited}");
}

#[test]
fn cached_writes_go_to_the_medium_in_the_order_of_the_heads() {
    let mut disk = disk(&round(&["disk.write_cache.idle=100ms", "disk.write_cache.bytes=64k"]));
    // 16 writes of one sector on one track, in an order that would take a rotation each.
    for index in 0..16_u64 {
        one(&mut disk, write(95 - index * 6, 1));
    }
    assert_eq!(disk.counters().media_writes, 0);
    let flush = one(&mut disk, Request::new(Op::Flush, 0, 0));
    assert!(flush.at - flush.submitted <= Nanos::from_ms(10), "a rotation writes all of them");
    assert_eq!((disk.counters().media_writes, disk.counters().write_cache_flushes), (16, 1));
}

#[test]
fn cached_data_is_written_when_no_read_came_for_a_while() {
    let mut disk = disk(&round(&["disk.write_cache.idle=100ms"]));
    one(&mut disk, read(500, 1));
    let read_at = disk.now();
    one(&mut disk, write(0, 1));
    disk.run_until(read_at + Nanos::from_ms(99));
    assert_eq!(disk.counters().media_writes, 0);
    disk.run_until(read_at + Nanos::from_ms(130));
    assert_eq!((disk.counters().media_writes, disk.counters().sectors_written), (1, 1));
}

#[test]
fn a_full_cache_takes_writes_as_fast_as_the_heads_write() {
    let mut disk = disk(&round(&["disk.write_cache.bytes=4k", "disk.write_cache.idle=1h"]));
    // Eight sectors fit. Every write beyond them waits for one of those before.
    let mut sector = 0;
    let time = closed_loop(&mut disk, 4, 108, || {
        sector += 100;
        write(sector % 9_000, 1)
    });
    assert!(disk.counters().write_cache_full >= 90, "{:?}", disk.counters());
    assert!(disk.counters().media_writes >= 90, "{:?}", disk.counters());
    assert!(time > Nanos::from_ms(100), "it took {time}");
    assert!(disk.check().iter().all(|check| check.passed), "{:?}", disk.check());
}

/// Writes that follow one another keep the heads on their tracks; what is cached elsewhere is written because of its age.
#[test]
fn cached_data_far_away_is_written_when_it_is_old() {
    let written_at = |age_limit: &str| {
        let limit = format!("disk.write_cache.age_limit={age_limit}");
        let config =
            round(&[&limit, "disk.write_cache.bytes=16k", "disk.write_cache.idle=1h", "disk.write_cache.candidates=4"]);
        let mut disk = ssdlab_disk::Disk::new(&config, ssdlab_flash::Contents::Stamps);
        disk.submit(&write(9_000, 1), Data::Stamp(7));
        let mut sector = 0;
        while disk.on_medium(&(9_000..9_001)) == [0; 8] && disk.now() < Nanos::from_ms(3_000) {
            sector = (sector + 8) % 400;
            disk.submit(&Request { at: disk.now(), ..write(sector, 8) }, Data::Stamp(1));
            assert!(disk.run_to_completion(Nanos::HORIZON));
            disk.completions().clear();
        }
        disk.now()
    };
    assert!(written_at("1h") >= Nanos::from_ms(3_000));
    let limited = written_at("500ms");
    assert!((Nanos::from_ms(500)..Nanos::from_ms(700)).contains(&limited), "it was written at {limited}");
}

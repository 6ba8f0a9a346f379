use std::collections::VecDeque;

use rand::RngExt;
use ssdlab_base::command_sets::cache::{READ, WRITE_DIRTY};
use ssdlab_base::command_sets::tags::WRITE_TAGGED;
use ssdlab_base::{Op, Opcode, Request, rng};
use ssdlab_device::{Description, Drive, DriveConfig, Options};
use ssdlab_flash::{Contents, UnitId};
use ssdlab_host::{Member, Scheduler, SchedulerConfig};

use super::*;

const OPTIONS: Options = Options { seed: 1, contents: Contents::Stamps };

fn config() -> DriveConfig {
    let text = r#"
        name = "small"
        [flash]
        channels = 2
        chips_per_channel = 1
        dies_per_chip = 1
        planes_per_die = 1
        blocks_per_plane = 16
        pages_per_block = 8
        page_size = "4k"
        cell = "slc"
        [capacity]
        user = "640k"
    "#;
    Description::parse(text, "small.toml").and_then(|description| description.resolve()).expect("a sound drive")
}

/// A drive and what compares it, after writes of two sectors at a time over its first 64 sectors, twice.
fn written(config: &DriveConfig) -> (Drive, Verifier) {
    let mut drive = Drive::new(config, OPTIONS).expect("a sound drive");
    let mut verifier = Verifier::new(drive.user_sectors());
    let requests = (0..64).map(|number| Request::new(Op::Write, number % 32 * 2, 2));
    send(&mut drive, &mut verifier, requests.chain([Request::new(Op::Trim, 0, 8), Request::new(Op::Flush, 0, 0)]));
    (drive, verifier)
}

/// Eight at a time, to the end of all; the tags come back as they were sent.
fn send(drive: &mut Drive, verifier: &mut Verifier, requests: impl Iterator<Item = Request>) {
    let mut in_flight_work: VecDeque<u32> = VecDeque::new();
    let mut tag = 1000;
    let wait = |drive: &mut Drive, verifier: &mut Verifier, in_flight_work: &mut VecDeque<u32>| {
        assert!(drive.run_to_completion(Nanos::MAX));
        for completion in verifier.collect(drive).drain(..) {
            let place = in_flight_work.iter().position(|tag| *tag == completion.tag).expect("a tag that was sent");
            in_flight_work.remove(place);
        }
    };
    for request in requests {
        while in_flight_work.len() >= 8 {
            wait(drive, verifier, &mut in_flight_work);
        }
        let at = drive.now();
        verifier.submit(drive, &Request { at, tag, ..request }, &[]);
        in_flight_work.push_back(tag);
        tag += 7;
    }
    while !in_flight_work.is_empty() {
        wait(drive, verifier, &mut in_flight_work);
    }
}

#[test]
fn a_sound_drive_gives_back_what_was_written() {
    let config = config();
    let (mut drive, mut verifier) = written(&config);
    let reads = (0..200).map(|number| Request::new(Op::Read, number * 3 % 70, 5));
    send(&mut drive, &mut verifier, reads);
    verifier.read_back(&mut drive, &|| false);
    let check = verifier.check();
    assert!(check.passed, "{}", check.detail);
    assert!(check.detail.starts_with(&format!("{} sectors", 200 * 5 + 1280)), "{}", check.detail);
    assert_eq!(check.name, NAME);
}

/// Commands of several queues overlap in flight, and the drive takes them in an order of its own.
#[test]
fn what_comes_back_through_a_host_is_compared_in_the_order_of_effect() {
    let mut config = config();
    config.interface.queues = 4;
    let drive = Drive::new(&config, OPTIONS).expect("a sound drive");
    let below = Box::new(Scheduler::new(Member::alone(drive, OPTIONS), SchedulerConfig::fifo(3, 4096)));
    let mut device = Scheduler::new(below, SchedulerConfig::fifo(16, 4096));
    let mut verifier = Verifier::new(device.sectors());
    let mut rng = rng(1, "host verify");
    let mut last = Request::new(Op::Write, 0, 1);
    for tag in 0..20_000 {
        let mut next = Request::new([Op::Write, Op::Write, Op::Read, Op::Trim][rng.random_range(0..4)], 0, 0);
        next = Request { sector: rng.random_range(0..40), queue: rng.random_range(0..4), ..next };
        if rng.random_bool(0.5) && last.end() < 40 {
            // It goes on where the last one ended, so that there is something to merge.
            next = Request { sector: last.end(), ..last };
        }
        next.sectors = rng.random_range(1..=8);
        last = next;
        let at = Nanos(device.now().0 + rng.random_range(0..60_000));
        device.run_until(at);
        verifier.submit(&mut device, &Request { at, tag, ..next }, &[]);
        verifier.collect(&mut device).clear();
    }
    while device.outstanding() > 0 {
        assert!(device.run_to_completion(Nanos::MAX));
        verifier.collect(&mut device).clear();
    }
    assert!(device.merged() > 1000, "only {} requests were merged", device.merged());
    verifier.read_back(&mut device, &|| false);
    let check = verifier.check();
    assert!(check.passed, "{}", check.detail);
}

/// A drive stops for an event as for a completion; an event that no host takes stops it for ever.
#[test]
fn a_drive_is_read_back_while_an_event_waits_for_its_host() {
    let mut config = config();
    config.ftl.design = "tagged".to_string();
    let mut drive = Drive::new(&config, OPTIONS).expect("a sound drive");
    let mut verifier = Verifier::new(drive.user_sectors());
    for tag in 1..=2 {
        let at = drive.now();
        let write = Request { at, opcode: WRITE_TAGGED, ..Request::new(Op::Write, 0, 8) };
        verifier.submit(&mut drive, &write, &[tag]);
        // No host takes the event that the second of them sends.
        drive.run_until(at + Nanos(1_000_000_000));
        let ended = verifier.collect(&mut drive).pop().expect("the command has ended");
        assert_eq!(ended.status, Status::Success);
    }
    verifier.read_back(&mut drive, &|| false);
    let check = verifier.check();
    assert!(check.passed, "{}", check.detail);
    assert!(check.detail.starts_with("1280 sectors"), "{}", check.detail);
}

#[test]
fn a_corrupted_cell_is_found_and_named() {
    let config = config();
    let (drive, mut verifier) = written(&config);
    let units = UnitId(config.flash.geometry.pages() as u32);
    // The drive is at rest and flushed, so it comes back from flash as it was, but for one bit of sector 33.
    let mut flash = drive.power_cut();
    let mut flipped = 0;
    for unit in UnitId::each(UnitId(0)..units) {
        let mut cells = vec![0; flash.store.unit_data_bytes()];
        assert!(flash.store.read(unit, 0, &mut cells));
        let current = verifier.sectors.get(33).to_le_bytes();
        if let Some(at) = cells.chunks_exact(8).position(|cell| cell == current) {
            cells[at * 8] ^= 1;
            flash.store.write(unit, &cells);
            flipped += 1;
        }
    }
    assert!(flipped > 0);
    let (mut drive, _) = Drive::recover(&config, OPTIONS, flash).expect("the drive comes back");
    verifier.restart();
    verifier.read_back(&mut drive, &|| false);
    let check = verifier.check();
    assert!(!check.passed);
    assert!(check.detail.contains("; 1 differed; the first is sector 33,"), "{}", check.detail);
}

#[test]
fn an_old_version_is_found_and_named() {
    let config = config();
    let (mut drive, mut verifier) = written(&config);
    // As if the drive had lost the last write of sectors 40 and 41, which was command 53 after command 21.
    verifier.sectors.set(40, sector_stamp(21, 40));
    verifier.read_back(&mut drive, &|| false);
    let check = verifier.check();
    assert!(!check.passed);
    assert!(check.detail.contains("held what command 53 wrote in place of what command 21 wrote"), "{}", check.detail);
}

#[test]
fn after_a_command_that_failed_old_and_new_are_accepted_until_the_next_write() {
    let config = config();
    let (mut drive, mut verifier) = written(&config);
    let current = verifier.sectors.get(10);
    // A write that the drive refused may have left the new or the old.
    verifier.sectors.set(10, sector_stamp(7, 10));
    verifier.doubtful.insert(10, vec![current]);
    let read = || [Request::new(Op::Read, 10, 1)].into_iter();
    send(&mut drive, &mut verifier, read());
    assert!(verifier.check().passed);
    send(&mut drive, &mut verifier, [Request::new(Op::Write, 10, 1)].into_iter());
    assert!(verifier.doubtful.is_empty());
    send(&mut drive, &mut verifier, read());
    assert!(verifier.check().passed);
    verifier.sectors.set(10, current);
    send(&mut drive, &mut verifier, read());
    assert!(!verifier.check().passed);
}

/// A cache of 20 blocks of 8 pages in front of a disk of 1 TB, half of it free, and its first 4,000 commands. Clean blocks are dropped.
fn cached() -> (Drive, Verifier) {
    let mut config = config();
    config.ftl.design = "ssc".to_string();
    (config.gc.free_blocks, config.user_bytes) = (3, 200 << 10);
    config.ftl.own.set("addresses", 1_u64 << 40);
    let mut drive = Drive::new(&config, OPTIONS).expect("a sound drive");
    let mut verifier = Verifier::of(&config);
    let mut rng = rng(2, "verified cache");
    let commands = (0..4_000).map(|_| {
        // Dirty blocks are few, so that there is room for them.
        let clean = rng.random_range(0..200) * 1_000_000 + 40;
        let (opcode, block) = match rng.random_range(0..10) {
            0..2 => (WRITE_DIRTY, rng.random_range(0..40)),
            2..6 => (WRITE_CLEAN, clean),
            6 => (CLEAN, rng.random_range(0..40)),
            7 => (EVICT, if rng.random_bool(0.5) { clean } else { rng.random_range(0..40) }),
            _ => (READ, if rng.random_bool(0.8) { clean } else { rng.random_range(0..40) }),
        };
        of_set(opcode, block)
    });
    send(&mut drive, &mut verifier, commands);
    (drive, verifier)
}

fn of_set(opcode: Opcode, block: u64) -> Request {
    Request::of_set(CACHE.command(opcode).expect("of the set"), block * 8, 8)
}

#[test]
fn a_cache_drops_clean_blocks_and_nothing_else() {
    let (mut drive, mut verifier) = cached();
    let metrics: BTreeMap<String, f64> = drive.design().into_iter().collect();
    assert!(metrics["blocks_dropped"] > 500.0, "{} blocks were dropped", metrics["blocks_dropped"]);
    assert!(Verifier::simulator_bytes(drive.config()) < 1 << 22, "memory follows the flash");
    verifier.read_back(&mut drive, &|| false);
    let check = verifier.check();
    assert!(check.passed, "{}", check.detail);
    assert!(verifier.compared < 4_000 * 16, "{} sectors were compared, of a disk of 1 TB", verifier.compared);
}

#[test]
fn a_read_back_that_is_stopped_says_how_far_it_came() {
    let (mut drive, mut verifier) = cached();
    let reads = std::cell::Cell::new(0);
    let stopped = || {
        reads.set(reads.get() + 1);
        reads.get() > 3
    };
    let before = verifier.reads;
    verifier.read_back(&mut drive, &stopped);
    assert!(verifier.reads - before <= 3, "{} reads after {before}", verifier.reads);
    let unread = verifier.unread().expect("it was stopped");
    assert!(unread.starts_with("the read-back at the end was interrupted at sector "), "{unread}");
    let check = verifier.check();
    assert!(check.passed && check.detail.contains("but at the end not the whole drive"), "{}", check.detail);
}

#[test]
fn a_dirty_block_that_a_cache_lost_is_found_and_named() {
    let (mut drive, mut verifier) = cached();
    send(&mut drive, &mut verifier, [of_set(WRITE_DIRTY, 7)].into_iter());
    // The verifier does not hear of it.
    drive.submit_command(&Request { at: drive.now(), ..of_set(EVICT, 7) }, Payload { data: Data::Nothing, words: &[] });
    assert!(drive.run_to_completion(Nanos::MAX));
    drive.completions().clear();
    verifier.restart();
    verifier.next_step = 4_002;
    verifier.read_back(&mut drive, &|| false);
    let check = verifier.check();
    assert!(!check.passed);
    assert!(check.detail.contains("8 differed; the first is sector 56,"), "{}", check.detail);
}

//! The scheduler changes what the device sees, never what the host reads.

use rand::RngExt;
use ssdlab_base::command_sets::tags::{READ_TAGGED, WRITE_TAGGED};
use ssdlab_base::{Nanos, Op, Request, rng};
use ssdlab_device::{Data, Description, Drive, Options, Payload, Status};
use ssdlab_flash::Contents;
use ssdlab_host::{BlockDevice, Member, Scheduler, SchedulerConfig};
use ssdlab_torture::configs;

const OPTIONS: Options = Options { seed: 3, contents: Contents::Bytes };

/// Random requests, `depth` at a time; returns what the reads brought, by tag, and how many completed.
fn work(device: &mut dyn BlockDevice, seed: u64, depth: u64) -> (Vec<(u32, Vec<u8>)>, u64) {
    let mut rng = rng(seed, "host");
    let (mut reads, mut completed) = (Vec::new(), 0);
    let sectors = device.sectors();
    let mut next = 0;
    let mut wait = |device: &mut dyn BlockDevice, depth: u64, reads: &mut Vec<(u32, Vec<u8>)>| {
        while device.outstanding() > depth {
            assert!(device.run_to_completion(Nanos::MAX), "requests never complete");
            completed += device.completions().len() as u64;
            assert!(device.completions().iter().all(|completion| completion.status == Status::Success));
            device.completions().clear();
            reads.append(device.read_data());
        }
    };
    for tag in 0..400 {
        // Mostly one behind the other, so that there is something to merge; never over what is in flight.
        if rng.random_bool(0.2) || next + 8 > sectors {
            wait(device, 0, &mut reads);
            next = rng.random_range(0..sectors - 8);
        }
        let length = rng.random_range(1..=8);
        let op =
            [Op::Write, Op::Read, Op::Trim, Op::Flush][if rng.random_bool(0.8) { 0 } else { rng.random_range(0..4) }];
        let at = device.now();
        let (first, length) = if op == Op::Flush { (0, 0) } else { (next, length) };
        let request = Request { at, tag, ..Request::new(op, first, length) };
        let bytes: Vec<u8> = (0..length * 512).map(|_| rng.random()).collect();
        device.submit(&request, if op == Op::Write { Data::Bytes(&bytes) } else { Data::Nothing });
        next += length;
        wait(device, depth, &mut reads);
    }
    wait(device, 0, &mut reads);
    device.submit(&Request { at: device.now(), tag: 1000, ..Request::new(Op::Read, 0, sectors) }, Data::Nothing);
    wait(device, 0, &mut reads);
    reads.sort();
    (reads, completed)
}

#[test]
fn what_is_read_through_the_scheduler_is_what_is_read_without() {
    let mut merged = 0;
    for seed in 0..40 {
        let mut rng = rng(seed, "host drive");
        let mut config = configs::random(&mut rng);
        config.flash.faults = Default::default();
        if config.user_bytes < 64 * 512 {
            continue;
        }
        let depth = rng.random_range(1..=32);
        let plain = work(&mut Drive::new(&config, OPTIONS).expect("a drive"), seed, depth);
        let scheduling = SchedulerConfig::fifo(rng.random_range(1..=4), rng.random_range(0..20) * 512);
        let below = Member::alone(Drive::new(&config, OPTIONS).expect("a drive"), OPTIONS);
        let mut scheduler = Scheduler::new(below, scheduling);
        let scheduled = work(&mut scheduler, seed, depth);
        assert!(plain == scheduled, "seed {seed}: what is read differs");
        assert_eq!(scheduled.1, 401);
        merged += scheduler.merged();
    }
    assert!(merged > 100, "only {merged} requests were merged: this test tests nothing");
}

/// A request that waits in the scheduler reaches the drive after its record was kept: there it dropped the record, and a file system
/// above did not find its metadata.
#[test]
fn records_of_writes_that_wait_are_found() {
    let mut found = 0;
    for seed in 0..30 {
        let mut rng = rng(seed, "records");
        let mut config = configs::random(&mut rng);
        config.flash.faults = Default::default();
        if config.user_bytes < 128 * 512 {
            continue;
        }
        let options = Options { contents: Contents::Nothing, ..OPTIONS };
        let member = || Member::alone(Drive::new(&config, options).expect("a drive"), options);
        let mut plain = member();
        let scheduling = SchedulerConfig::fifo(rng.random_range(1..=3), rng.random_range(0..20) * 512);
        let mut scheduled = Scheduler::new(member(), scheduling);
        for number in 0..300_u64 {
            let (block, at) = (rng.random_range(0..16), scheduled.now());
            let op = if rng.random_bool(0.9) { Op::Write } else { Op::Trim };
            let request = Request { at, tag: number as u32, ..Request::new(op, block * 8, 8) };
            let is_kept = op == Op::Write && rng.random_bool(0.7);
            for device in [&mut *plain as &mut dyn BlockDevice, &mut scheduled] {
                device.submit(&request, Data::Nothing);
                if is_kept {
                    device.keep_record(block * 8, &number.to_le_bytes());
                }
            }
            if rng.random_bool(0.1) {
                scheduled.run_until(at + Nanos(rng.random_range(0..2_000_000)));
                plain.run_until(scheduled.now());
            }
            for block in 0..16 {
                let record = plain.record(block * 8);
                assert_eq!(scheduled.record(block * 8), record, "seed {seed}, request {number}, block {block}");
                found += u64::from(record.is_some());
            }
        }
    }
    assert!(found > 10_000, "only {found} records were compared");
}

/// The drive's tags are the scheduler's. Where several answers came at one instant, those that had been given were left in the list
/// as answers without words to the tag 0, and the command with the tag 0 got one of them.
#[test]
fn commands_that_complete_together_have_their_own_answers() {
    let text = r#"
        name = "tagged"
        [flash]
        channels = 4
        chips_per_channel = 1
        dies_per_chip = 1
        planes_per_die = 1
        blocks_per_plane = 16
        pages_per_block = 8
        page_size = "4k"
        cell = "slc"
        [interface]
        bandwidth = 0
        [ftl]
        design = "tagged"
        [capacity]
        user = "640k"
    "#;
    let config = Description::parse(text, "tagged.toml").and_then(|text| text.resolve()).expect("a sound drive");
    let drive = Drive::new(&config, OPTIONS).expect("a drive");
    let scheduling = SchedulerConfig::fifo(8, 0);
    let mut scheduler = Scheduler::new(Member::alone(drive, OPTIONS), scheduling);
    let mut together = 0;
    for round in 0..20_u64 {
        for op in [Op::Write, Op::Read] {
            let at = scheduler.now() + Nanos(1_000_000);
            for unit in 0..4 {
                let opcode = if op == Op::Write { WRITE_TAGGED } else { READ_TAGGED };
                let request = Request { at, opcode, tag: 100 + unit as u32, ..Request::new(op, unit * 8, 8) };
                let (data, words) = (Data::Bytes(&[0; 4096]), [round * 4 + unit + 1]);
                let is_write = op == Op::Write;
                let data = if is_write { data } else { Data::Nothing };
                scheduler.submit_command(&request, Payload { data, words: if is_write { &words } else { &[] } });
            }
            scheduler.run_until(Nanos(at.0 + 1_000_000_000));
            let completed = std::mem::take(scheduler.completions());
            assert_eq!(completed.len(), 4);
            assert!(completed.iter().all(|completion| completion.status == Status::Success), "{completed:?}");
            together += usize::from(completed[0].at == completed[3].at);
            let mut answers = Vec::new();
            scheduler.take_answers(&mut answers);
            answers.sort_by_key(|answer| answer.tag);
            let found: Vec<_> = answers.iter().map(|answer| (answer.tag, answer.words.clone())).collect();
            let expected = (0..4).map(|unit| (100 + unit as u32, vec![round * 4 + unit + 1]));
            assert_eq!(found, expected.filter(|_| op == Op::Read).collect::<Vec<_>>(), "round {round}");
        }
    }
    assert!(together > 20, "{together} times all commands completed together: this test tests nothing");
}

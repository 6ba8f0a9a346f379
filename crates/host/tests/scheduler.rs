//! The scheduler changes what the device sees, never what the host reads.

use rand::RngExt;
use ssdlab_base::{Nanos, Op, Request, rng};
use ssdlab_device::{Data, Drive, Options, Status};
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
        let scheduling = SchedulerConfig { depth: rng.random_range(1..=4), merge_bytes: rng.random_range(0..20) * 512 };
        let below = Member::alone(Drive::new(&config, OPTIONS).expect("a drive"), OPTIONS);
        let mut scheduler = Scheduler::new(below, scheduling);
        let scheduled = work(&mut scheduler, seed, depth);
        assert!(plain == scheduled, "seed {seed}: what is read differs");
        assert_eq!(scheduled.1, 401);
        merged += scheduler.merged();
    }
    assert!(merged > 100, "only {merged} requests were merged: this test tests nothing");
}

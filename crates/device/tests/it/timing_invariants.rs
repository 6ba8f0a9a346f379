//! Invariants that hold whatever the drive does: Little's, utilisation, causality; watching changes nothing; trims are cheap.

use std::time::{Duration, Instant};

use rand::RngExt;
use ssdlab_base::{Nanos, Op, Request, rng};
use ssdlab_device::{Completion, DriveConfig, InterfaceKind};
use ssdlab_flash::{OpKind, Resource, SchedulerKind};

use crate::timing_support::*;

/// Drives with everything switched on in one way or another.
fn drives() -> Vec<DriveConfig> {
    let mut plain = drive(2, 2, 2);
    plain.interface.command_overhead = Nanos(OVERHEAD);
    let mut busy = drive(2, 1, 2);
    busy.flash.cache_program = true;
    busy.flash.copyback = true;
    busy.gc.copyback = true;
    busy.flash.scheduler = SchedulerKind::ReadsFirst;
    busy.interface.bandwidth = BANDWIDTH;
    let mut suspending = drive(1, 2, 2);
    suspending.flash.program_suspend = true;
    suspending.flash.erase_suspend = true;
    suspending.flash.scheduler = SchedulerKind::HostFirst { starvation: Nanos::from_ms(1) };
    suspending.ftl.mapping_unit = 1024;
    suspending.gc.background_free_blocks = 6;
    suspending.gc.idle_after = Nanos::from_us(50);
    let mut buffered = drive(2, 2, 1);
    buffered.buffer.policy = "lru".to_string();
    buffered.buffer.bytes = 64 * 4096;
    buffered.buffer.latency = Nanos(RAM);
    buffered.interface.kind = InterfaceKind::Sata;
    buffered.interface.queue_depth = 32;
    buffered.interface.bandwidth = BANDWIDTH;
    let mut single = drive(2, 2, 2);
    single.flash.cache_program = true;
    single.flash.program_suspend = true;
    single.flash.scheduler = SchedulerKind::SingleFifo;
    let mut in_order = single.clone();
    in_order.flash.scheduler = SchedulerKind::InOrder;
    vec![plain, busy, suspending, buffered, single, in_order]
}

/// A closed loop of mixed requests at a depth; the completions in order.
fn closed_loop(host: &mut Host, depth: u64, count: u32) -> Vec<Completion> {
    let mut rng = rng(3, "timing laws");
    let sectors = host.drive.user_sectors();
    let mut completed = Vec::new();
    let mut sent = 0;
    while completed.len() < count as usize {
        while host.drive.outstanding() < depth && sent < count {
            let length = rng.random_range(1..33);
            let sector = rng.random_range(0..sectors - length);
            let op = match rng.random_range(0..20) {
                0 => Op::Trim,
                1 => Op::Flush,
                2..8 => Op::Read,
                _ => Op::Write,
            };
            let mut request = if op == Op::Flush { Request::new(op, 0, 0) } else { Request::new(op, sector, length) };
            request.at = host.drive.now();
            request.tag = sent;
            sent += 1;
            host.drive.submit(&request);
        }
        host.drive.run_to_completion(Nanos::MAX);
        completed.append(host.drive.completions());
    }
    completed
}

#[test]
fn littles_law_holds_over_a_closed_loop() {
    for config in drives() {
        for depth in [1, 7, 32] {
            let mut host = Host::new(&config);
            let completed = closed_loop(&mut host, depth, 6000);
            let end = host.now();
            // Requests in the drive times time is the sum of their latencies, and a closed loop keeps `depth` of them
            // there until it has no more to send.
            let latencies: u64 = completed.iter().map(|c| c.at.0 - c.submitted.0).sum();
            let last_sent = completed.iter().map(|c| c.submitted.0).max().expect("there are some");
            let tail: u64 = completed.iter().map(|c| c.at.0.saturating_sub(last_sent.max(c.submitted.0))).sum();
            assert_eq!(latencies, depth * last_sent + tail);
            assert!(completed.windows(2).all(|pair| pair[0].at <= pair[1].at), "completions in order of time");
            assert!(completed.last().is_some_and(|last| last.at.0 == end));
        }
    }
}

#[test]
fn nothing_is_busy_for_longer_than_there_was_time() {
    for config in drives() {
        let mut host = Host::new(&config);
        let spans = Spans::watch(&mut host.drive);
        closed_loop(&mut host, 32, 6000);
        let end = host.run();
        let busy = host.drive.utilization();
        assert!(busy.channels.iter().chain(&busy.dies).all(|busy| busy.0 <= end));
        // And what was reported piece by piece is what was added up.
        let mut channels = vec![0; busy.channels.len()];
        let mut dies = vec![0; busy.dies.len()];
        for span in spans.taken() {
            match span.resource {
                Resource::Channel(channel) => channels[channel as usize] += span.end.0 - span.start.0,
                Resource::Die(die) => dies[die.index()] += span.end.0 - span.start.0,
            }
        }
        assert_eq!(channels, busy.channels.iter().map(|busy| busy.0).collect::<Vec<u64>>());
        assert_eq!(dies, busy.dies.iter().map(|busy| busy.0).collect::<Vec<u64>>());
        host.assert_checks_hold();
    }
}

#[test]
fn watching_changes_nothing_and_the_same_run_twice_is_the_same() {
    for config in drives() {
        let run = |watch: bool| {
            let mut host = Host::new(&config);
            let spans = watch.then(|| Spans::watch(&mut host.drive));
            let completed = closed_loop(&mut host, 16, 5000);
            host.run();
            assert_eq!(spans.is_some_and(|spans| !spans.taken().is_empty()), watch);
            (completed, host.drive.counters(), host.drive.utilization(), host.drive.erase_counts(), host.now())
        };
        let first = run(false);
        assert_eq!(first, run(true));
        assert_eq!(first, run(false));
    }
}

#[test]
fn no_command_completes_before_it_could() {
    for config in drives() {
        let mut host = Host::new(&config);
        for completion in closed_loop(&mut host, 32, 6000) {
            let least = config.interface.command_overhead.0;
            let across = if config.interface.bandwidth > 0 && matches!(completion.op, Op::Read | Op::Write) {
                link(completion.bytes / 512)
            } else {
                0
            };
            assert!(completion.at.0 - completion.submitted.0 >= least + across, "{completion:?}");
        }
    }
}

#[test]
fn trims_of_gigabytes_that_are_unmapped_cost_little() {
    let mut config = drive(8, 2, 2);
    config.flash.geometry.blocks_per_plane = 256;
    config.flash.geometry.pages_per_block = 128;
    config.user_bytes = 3 << 30;
    config.interface.command_overhead = Nanos(OVERHEAD);
    let mut host = Host::new(&config);
    // One megabyte is mapped; it is unmapped once.
    host.send(Op::Write, 1 << 20, 2048);
    let start = host.run();
    let programs = host.drive.counters().flash;
    let clock = Instant::now();
    let trims = 100_000;
    for index in 0..trims {
        let tag = host.send(Op::Trim, index % 2048 * 8, (2 << 30) / 512);
        let end = start + (index + 1) * OVERHEAD;
        host.run_until(end);
        assert_eq!(host.end(tag), Some(end), "a trim costs its overhead");
        host.completed.clear();
    }
    let counters = host.drive.counters();
    assert_eq!(counters.flash, programs, "nothing was read, programmed or erased for it");
    assert_eq!(counters.trimmed_mapped_sectors, 2048);
    // 200 TB trimmed. A guard against a hang, not a measurement.
    assert!(clock.elapsed() < Duration::from_secs(120), "{:?} for {trims} trims of 2 GiB", clock.elapsed());
    // What was unmapped is made durable with one record.
    host.send(Op::Flush, 0, 0);
    host.run();
    assert_eq!(host.drive.counters().flash.since(&programs).total(OpKind::Program), 1);
    host.assert_checks_hold();
}

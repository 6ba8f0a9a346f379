//! Saturated throughput of a drive equals what geometry and timing allow: the exact time of N pages.

use ssdlab_base::{Nanos, Op};
use ssdlab_device::{DriveConfig, InterfaceKind};
use ssdlab_flash::OpKind;

use crate::timing_support::*;

const ROUNDS: u64 = 16;

/// One request over `ROUNDS` pages of every plane; how long it takes.
fn whole(config: &DriveConfig, op: Op) -> u64 {
    let pages = ROUNDS * u64::from(config.flash.geometry.planes());
    let mut host = Host::new(config);
    if op == Op::Read {
        host.send(Op::Write, 0, pages * 8);
        host.run();
    }
    let start = host.now();
    let tag = host.send(op, 0, pages * 8);
    host.run();
    host.assert_checks_hold();
    host.end(tag).expect("it completes") - start
}

/// Page writes from a host that keeps `depth` of them in the drive; how long `count` take.
fn closed_loop(config: &DriveConfig, op: Op, depth: u64, count: u64) -> u64 {
    let mut host = Host::new(config);
    let start = host.now();
    let mut sent = 0;
    while sent < depth {
        host.send(op, sent * 8, 8);
        sent += 1;
    }
    let mut seen = 0;
    while seen < count {
        assert!(host.drive.run_to_completion(Nanos::MAX), "the loop goes on");
        host.run_until(host.now());
        while seen < host.completed.len() as u64 {
            seen += 1;
            if sent < count {
                host.send(op, sent * 8, 8);
                sent += 1;
            }
        }
    }
    assert_eq!(host.drive.outstanding(), 0);
    host.now() - start
}

#[test]
fn writes_over_few_dies_are_bound_by_the_dies() {
    for (channels, ways) in [(1, 1), (1, 4), (2, 4), (4, 8)] {
        let late = (u64::from(ways) - 1) * DATA_IN;
        assert_eq!(whole(&drive(channels, ways, 1), Op::Write), late + ROUNDS * PROGRAM_PAGE, "{channels} x {ways}");
    }
}

#[test]
fn writes_over_many_dies_are_bound_by_the_channel() {
    for (channels, ways) in [(1, 24), (2, 32)] {
        let pages = ROUNDS * u64::from(ways);
        assert_eq!(whole(&drive(channels, ways, 1), Op::Write), pages * DATA_IN + PROGRAM, "{channels} x {ways}");
    }
}

#[test]
fn reads_over_many_dies_are_bound_by_the_channel() {
    for (channels, ways) in [(1, 4), (2, 8), (4, 16)] {
        let (pages, dies) = (ROUNDS * u64::from(ways), u64::from(ways));
        let exact = COMMAND + READ + pages * TRANSFER + (pages - dies) * COMMAND;
        assert_eq!(whole(&drive(channels, ways, 1), Op::Read), exact, "{channels} x {ways}");
    }
}

#[test]
fn reads_over_one_die_are_bound_by_the_die() {
    assert_eq!(whole(&drive(1, 1, 1), Op::Read), ROUNDS * READ_PAGE);
    assert_eq!(whole(&drive(4, 1, 1), Op::Read), ROUNDS * READ_PAGE);
}

#[test]
fn planes_multiply_throughput() {
    for planes in [1, 2, 4] {
        let p = u64::from(planes);
        assert_eq!(whole(&drive(1, 1, planes), Op::Write), ROUNDS * (p * DATA_IN + PROGRAM));
        assert_eq!(whole(&drive(2, 1, planes), Op::Write), ROUNDS * (p * DATA_IN + PROGRAM));
        assert_eq!(whole(&drive(1, 1, planes), Op::Read), ROUNDS * (p * (COMMAND + TRANSFER) + READ));
    }
}

#[test]
fn cache_program_overlaps_transfer_and_program() {
    for (ways, planes) in [(1, 1), (4, 1), (1, 2)] {
        let mut config = drive(1, ways, planes);
        config.flash.cache_program = true;
        let first = u64::from(ways * planes) * DATA_IN;
        assert_eq!(whole(&config, Op::Write), first + ROUNDS * PROGRAM, "{ways} dies of {planes} planes");
    }
}

#[test]
fn a_host_that_keeps_as_many_commands_as_dies_saturates_them() {
    for ways in [1, 2, 8, 16] {
        let (config, dies) = (drive(1, ways, 1), u64::from(ways));
        let exact = (dies - 1) * DATA_IN + ROUNDS * PROGRAM_PAGE;
        assert_eq!(closed_loop(&config, Op::Write, dies, dies * ROUNDS), exact, "{ways} dies");
    }
}

#[test]
fn two_commands_a_die_are_what_cache_program_needs() {
    let mut config = drive(1, 1, 1);
    config.flash.cache_program = true;
    assert_eq!(closed_loop(&config, Op::Write, 1, ROUNDS), ROUNDS * PROGRAM_PAGE);
    assert_eq!(closed_loop(&config, Op::Write, 2, ROUNDS), DATA_IN + ROUNDS * PROGRAM);
}

#[test]
fn the_link_bounds_what_flash_could_do() {
    // Unmapped reads: nothing but the link.
    let config = behind_a_link(InterfaceKind::Nvme);
    let count = 100;
    assert_eq!(closed_loop(&config, Op::Read, 32, count), OVERHEAD + count * link(8));
    // Writes over so many channels that the link is the slowest.
    let mut config = behind_a_link(InterfaceKind::Nvme);
    config.flash = drive(64, 1, 1).flash;
    config.user_bytes = config.flash.geometry.bytes() / 2;
    config.interface.queue_depth = 64;
    assert!(64 * link(8) > PROGRAM_PAGE);
    assert_eq!(closed_loop(&config, Op::Write, 64, 640), OVERHEAD + 640 * link(8) + PROGRAM_PAGE);
}

#[test]
fn utilisation_is_a_share_and_one_where_something_is_saturated() {
    let pages = ROUNDS * 24;
    let mut host = Host::new(&drive(1, 24, 1));
    host.send(Op::Write, 0, pages * 8);
    let end = host.run();
    let busy = host.drive.utilization();
    assert_eq!(busy.channels, [Nanos(pages * DATA_IN)]);
    assert_eq!(end, pages * DATA_IN + PROGRAM);
    assert!(busy.dies.iter().all(|die| *die == Nanos(ROUNDS * PROGRAM)));
    assert_eq!(host.drive.counters().flash.total(OpKind::Program), pages);
}

#[test]
fn utilisation_in_the_middle_of_a_run_is_a_share_too() {
    let mut host = Host::new(&drive(1, 24, 1));
    host.send(Op::Write, 0, ROUNDS * 24 * 8);
    for now in (0..ROUNDS * 24 * DATA_IN).step_by(3_331) {
        host.run_until(now);
        let busy = host.drive.utilization();
        assert_eq!(busy.channels, [Nanos(now)], "a saturated channel is busy all the time and no longer");
        assert!(busy.dies.iter().all(|die| die.0 <= now));
    }
}

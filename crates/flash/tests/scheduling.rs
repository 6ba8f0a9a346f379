//! The order of a die's queue: exact times under each policy.

mod support;

use ssdlab_base::Nanos;
use ssdlab_flash::{BlockId, Class, FlashConfig, OpKind, Ppn, SchedulerKind};
use support::*;

fn with(scheduler: SchedulerKind) -> FlashConfig {
    let mut config = chips(1, 1, 1);
    config.scheduler = scheduler;
    config
}

fn gc_program(bench: &mut Bench, block: u32, page: u32) -> u32 {
    bench.submit(OpKind::Program, Class::GcWrite, block, page, PAGE)
}

#[test]
fn fifo_serves_in_order_of_arrival() {
    let mut bench = Bench::new(&with(SchedulerKind::Fifo));
    bench.fill(1, 1);
    bench.fill(2, 1);
    let ops = [
        bench.program(0, 0),
        gc_program(&mut bench, 3, 0),
        bench.erase(2),
        bench.read(1, 0),
        bench.submit(OpKind::Read, Class::GcRead, 1, 0, PAGE),
        bench.program(0, 1),
    ];
    let parts = [PROGRAM_PAGE, PROGRAM_PAGE, COMMAND + ERASE, READ_PAGE, READ_PAGE, PROGRAM_PAGE];
    let mut end = 0;
    for (op, part) in ops.into_iter().zip(parts) {
        end += part;
        bench.assert_ends_at(op, end);
    }
}

#[test]
fn reads_first_serves_the_hosts_reads_then_gcs_then_the_rest_in_order() {
    let mut bench = Bench::new(&with(SchedulerKind::ReadsFirst));
    bench.fill(1, 1);
    bench.fill(2, 1);
    let running = bench.program(0, 0);
    let erase = bench.erase(2);
    let program = bench.program(0, 1);
    let gc_read = bench.submit(OpKind::Read, Class::GcRead, 1, 0, PAGE);
    let read = bench.read(1, 0);
    let mut end = PROGRAM_PAGE;
    bench.assert_ends_at(running, end);
    for (op, part) in [(read, READ_PAGE), (gc_read, READ_PAGE), (erase, COMMAND + ERASE), (program, PROGRAM_PAGE)] {
        end += part;
        bench.assert_ends_at(op, end);
    }
}

#[test]
fn the_host_goes_first_until_gc_has_waited_for_the_bound() {
    // A garbage collection's program arrives at 0 behind the first of the host's; decisions fall at its end and so on.
    for (starvation, passed) in [
        (0, 1),
        (1, 1),
        (PROGRAM_PAGE, 1),
        (PROGRAM_PAGE + 1, 2),
        (2 * PROGRAM_PAGE, 2),
        (2 * PROGRAM_PAGE + 1, 3),
        (u64::MAX, 6),
    ] {
        let mut bench = Bench::new(&with(SchedulerKind::HostFirst { starvation: Nanos(starvation) }));
        for page in 0..6 {
            bench.program(0, page);
            if page == 0 {
                gc_program(&mut bench, 1, 0);
            }
        }
        bench.run_until(passed * PROGRAM_PAGE);
        assert_eq!(bench.flash.blocks.get(BlockId(1)).programmed, 0);
        let gc = 1;
        bench.assert_ends_at(gc, (passed + 1) * PROGRAM_PAGE);
        assert_eq!(u64::from(bench.flash.blocks.get(BlockId(0)).programmed), passed);
    }
}

#[test]
fn a_late_collection_and_the_host_take_turns() {
    // Sixteen programs each, all there at once. From the bound on every one of collection's is late: they used to go one
    // after the other, and the host, which was to be first, waited for all of them.
    const EACH: u32 = 16;
    let passed = 3;
    let starvation = Nanos(passed * PROGRAM_PAGE);
    let mut bench = Bench::new(&with(SchedulerKind::HostFirst { starvation }));
    let host: Vec<u32> = (0..EACH).map(|page| bench.program(0, page)).collect();
    let collection: Vec<u32> = (0..EACH).map(|page| gc_program(&mut bench, 1, page)).collect();
    // The host's first ones go before the bound, each of the others behind one of collection's.
    let host = (0..).zip(host).map(|(index, op)| (index + 1 + (index + 1_u64).saturating_sub(passed), op));
    let collection = (0..).zip(collection).map(|(index, op)| (index + 1 + (passed + index).min(u64::from(EACH)), op));
    let mut ends: Vec<(u64, u32)> = host.chain(collection).collect();
    ends.sort_unstable();
    for (index, (end, op)) in (1..).zip(ends) {
        assert_eq!(end, index, "the die is never idle");
        bench.assert_ends_at(op, end * PROGRAM_PAGE);
    }
}

#[test]
fn collection_that_is_not_late_has_no_turn_however_long_the_host_goes_on() {
    let mut bench = Bench::new(&with(SchedulerKind::HostFirst { starvation: Nanos(u64::MAX) }));
    let host: Vec<u32> = (0..16).map(|page| bench.program(0, page)).collect();
    let first = gc_program(&mut bench, 1, 0);
    let second = gc_program(&mut bench, 1, 1);
    bench.assert_ends_at(host[15], 16 * PROGRAM_PAGE);
    bench.assert_ends_at(first, 17 * PROGRAM_PAGE);
    bench.assert_ends_at(second, 18 * PROGRAM_PAGE);
}

#[test]
fn within_the_host_and_within_gc_the_older_goes_first() {
    let mut bench = Bench::new(&with(SchedulerKind::HostFirst { starvation: Nanos(u64::MAX) }));
    bench.fill(1, 1);
    bench.fill(2, 1);
    let running = bench.program(0, 0);
    let gc = gc_program(&mut bench, 3, 0);
    let erase = bench.erase(2);
    let write = bench.program(0, 1);
    let read = bench.read(1, 0);
    let mut end = PROGRAM_PAGE;
    bench.assert_ends_at(running, end);
    for (op, part) in [(write, PROGRAM_PAGE), (read, READ_PAGE), (gc, PROGRAM_PAGE), (erase, COMMAND + ERASE)] {
        end += part;
        bench.assert_ends_at(op, end);
    }
}

#[test]
fn an_operation_that_waits_for_another_lets_the_rest_pass() {
    for scheduler in [SchedulerKind::Fifo, SchedulerKind::ReadsFirst, SchedulerKind::HostFirst { starvation: Nanos(0) }]
    {
        let mut config = with(scheduler);
        config.geometry.chips_per_channel = 2;
        let mut bench = Bench::new(&config);
        let far = bench.block(1, 0, 0);
        bench.fill(far, 1);
        bench.fill(1, 1);
        // The old version is on another die, behind an erase.
        let other = bench.block(1, 0, 1);
        bench.erase(other);
        let (_, old) = bench.submit_full(OpKind::Read, Class::HostRead, far, 0, PAGE, Ppn::NONE, 0);
        let (merge, op) = bench.submit_full(OpKind::Program, Class::HostWrite, 0, 0, PAGE, Ppn::NONE, 1);
        bench.flash.link(old, op);
        let read = bench.read(1, 0);
        bench.run_until(COMMAND + READ_PAGE);
        assert!(bench.end(read).is_some(), "the die is free for others meanwhile");
        let end = COMMAND + ERASE + READ_PAGE + PROGRAM_PAGE;
        bench.assert_ends_at(merge, end);
    }
}

#[test]
fn pages_of_a_block_keep_their_order_under_every_policy() {
    for scheduler in [SchedulerKind::Fifo, SchedulerKind::ReadsFirst, SchedulerKind::HostFirst { starvation: Nanos(1) }]
    {
        for cache_program in [false, true] {
            let mut config = with(scheduler);
            config.cache_program = cache_program;
            config.geometry.planes_per_die = 2;
            let mut bench = Bench::new(&config);
            // Out of order, the chips would panic.
            for page in 0..16 {
                bench.program(0, page);
                bench.program(4, page);
                gc_program(&mut bench, 1, page);
                gc_program(&mut bench, 5, page);
            }
            bench.run();
            assert!([0, 1, 4, 5].iter().all(|block| bench.flash.blocks.get(BlockId(*block)).programmed == 16));
        }
    }
}

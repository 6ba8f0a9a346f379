//! A program or an erase gives way to a host read: when, for how long, and how often.

use ssdlab_base::Nanos;
use ssdlab_flash::{Class, FlashConfig, OpKind, Ppn};

use crate::support::*;

/// `suspend_limit` of these chips.
const LIMIT: u64 = 16;

fn suspending() -> FlashConfig {
    let mut config = chips(1, 1, 1);
    config.program_suspend = true;
    config.erase_suspend = true;
    config
}

#[test]
fn a_read_suspends_a_program_which_then_does_what_was_left() {
    let mut bench = Bench::new(&suspending());
    let asked = DATA_IN + 50_000;
    bench.fill(1, 1);
    let program = bench.program(0, 0);
    bench.run_until(asked);
    let read = bench.read(1, 0);
    bench.assert_ends_at(read, asked + SUSPEND + READ_PAGE);
    bench.assert_ends_at(program, asked + SUSPEND + READ_PAGE + RESUME + PROGRAM - 50_000);
}

#[test]
fn a_read_suspends_an_erase_which_then_does_what_was_left() {
    let mut bench = Bench::new(&suspending());
    let asked = COMMAND + 400_000;
    bench.fill(1, 1);
    let erase = bench.erase(0);
    bench.run_until(asked);
    let read = bench.read(1, 0);
    bench.assert_ends_at(read, asked + SUSPEND + READ_PAGE);
    bench.assert_ends_at(erase, asked + SUSPEND + READ_PAGE + RESUME + ERASE - 400_000);
}

#[test]
fn without_leave_to_suspend_a_read_waits() {
    for (program_suspend, erase_suspend) in [(false, true), (true, false)] {
        let mut config = suspending();
        (config.program_suspend, config.erase_suspend) = (program_suspend, erase_suspend);
        let mut bench = Bench::new(&config);
        bench.fill(1, 1);
        let kept = if program_suspend { COMMAND + ERASE } else { PROGRAM_PAGE };
        if program_suspend {
            bench.erase(0);
        } else {
            bench.program(0, 0);
        }
        bench.run_until(DATA_IN + 1);
        let read = bench.read(1, 0);
        bench.assert_ends_at(read, kept + READ_PAGE);
    }
}

#[test]
fn an_operation_that_ends_before_it_could_stop_is_not_suspended() {
    let end = PROGRAM_PAGE;
    for (asked, read_ends) in [(end - SUSPEND, end + READ_PAGE), (end - SUSPEND - 1, end - 1 + READ_PAGE)] {
        let mut bench = Bench::new(&suspending());
        bench.fill(1, 1);
        bench.program(0, 0);
        bench.run_until(asked);
        let read = bench.read(1, 0);
        bench.assert_ends_at(read, read_ends);
    }
}

#[test]
fn a_read_that_comes_during_the_transfer_or_before_it_suspends_the_array_as_it_starts() {
    let mut bench = Bench::new(&suspending());
    bench.fill(1, 1);
    let program = bench.program(0, 0);
    bench.run_until(DATA_IN / 2);
    let read = bench.read(1, 0);
    bench.assert_ends_at(read, DATA_IN + SUSPEND + READ_PAGE);
    bench.assert_ends_at(program, DATA_IN + SUSPEND + READ_PAGE + RESUME + PROGRAM);

    // Two dies on the channel: the second program's data has to wait for the first's.
    let mut config = suspending();
    config.geometry.chips_per_channel = 2;
    let mut bench = Bench::new(&config);
    let (other, block) = (bench.block(1, 0, 1), bench.block(1, 0, 0));
    bench.fill(other, 1);
    bench.program(0, 0);
    let program = bench.program(block, 0);
    bench.run_until(5);
    let read = bench.read(other, 0);
    bench.assert_ends_at(read, 2 * DATA_IN + SUSPEND + READ_PAGE);
    bench.assert_ends_at(program, 2 * DATA_IN + SUSPEND + READ_PAGE + RESUME + PROGRAM);
}

#[test]
fn only_host_reads_suspend() {
    let mut bench = Bench::new(&suspending());
    bench.fill(1, 1);
    bench.program(0, 0);
    bench.run_until(DATA_IN + 1000);
    let gc = bench.submit(OpKind::Read, Class::GcRead, 1, 0, PAGE);
    bench.assert_ends_at(gc, PROGRAM_PAGE + READ_PAGE);
    // Nor does a copyback or a read ever stop.
    let start = bench.now;
    bench.submit_full(OpKind::Copyback, Class::GcWrite, 2, 0, 0, Ppn(0), 0);
    bench.run_until(start + 3 * COMMAND);
    let read = bench.read(1, 0);
    bench.assert_ends_at(read, start + 2 * COMMAND + READ + PROGRAM + READ_PAGE);
}

#[test]
fn reads_that_wait_pass_one_after_the_other_up_to_the_limit() {
    for limit in [1, 7, 16, 19] {
        let mut bench = Bench::new(&FlashConfig { suspend_limit: limit, ..suspending() });
        bench.fill(1, 1);
        let asked = DATA_IN + 1000;
        let program = bench.program(0, 0);
        bench.run_until(asked);
        let reads: Vec<u32> = (0..20).map(|_| bench.read(1, 0)).collect();
        let stopped = asked + SUSPEND;
        for (index, read) in reads[..limit as usize].iter().enumerate() {
            bench.assert_ends_at(*read, stopped + (index as u64 + 1) * READ_PAGE);
        }
        let resumed = stopped + u64::from(limit) * READ_PAGE;
        let end = resumed + RESUME + PROGRAM - 1000;
        bench.assert_ends_at(program, end);
        for (index, read) in reads[limit as usize..].iter().enumerate() {
            bench.assert_ends_at(*read, end + (index as u64 + 1) * READ_PAGE);
        }
    }
}

#[test]
fn reads_that_keep_coming_cannot_starve_a_program() {
    // A host at depth 1: the next read comes the moment the one before has ended, just as the program resumes.
    let mut bench = Bench::new(&suspending());
    bench.fill(1, 1);
    let asked = DATA_IN + 1000;
    let program = bench.program(0, 0);
    bench.run_until(asked);
    for index in 0..LIMIT {
        let read = bench.read(1, 0);
        bench.assert_ends_at(read, asked + (index + 1) * (SUSPEND + READ_PAGE));
    }
    // It was resumed and suspended again each time, and what is left has not grown.
    let late = bench.read(1, 0);
    let resumed = asked + LIMIT * (SUSPEND + READ_PAGE);
    let end = resumed + RESUME + PROGRAM - 1000;
    bench.assert_ends_at(program, end);
    bench.assert_ends_at(late, end + READ_PAGE);
}

#[test]
fn progress_between_two_suspensions_counts_from_the_end_of_the_resume() {
    for (after, progress) in [(0, 0), (RESUME / 2, 0), (RESUME, 0), (RESUME + 777, 777)] {
        let mut bench = Bench::new(&suspending());
        bench.fill(1, 1);
        let program = bench.program(0, 0);
        bench.run_until(DATA_IN);
        let read = bench.read(1, 0);
        let resumed = DATA_IN + SUSPEND + READ_PAGE;
        bench.assert_ends_at(read, resumed);
        bench.run_until(resumed + after);
        let read = bench.read(1, 0);
        bench.assert_ends_at(read, resumed + after + SUSPEND + READ_PAGE);
        bench.assert_ends_at(program, resumed + after + SUSPEND + READ_PAGE + RESUME + PROGRAM - progress);
    }
}

#[test]
fn the_array_is_busy_while_it_stops_and_while_it_resumes() {
    let mut bench = Bench::new(&suspending());
    let recorder = Recorder::watch(&mut bench.flash);
    bench.fill(1, 1);
    bench.program(0, 0);
    bench.run_until(DATA_IN + 1000);
    bench.read(1, 0);
    bench.run();
    assert_eq!(bench.flash.busy().1, [Nanos(PROGRAM + SUSPEND + RESUME + READ)]);
    let edges: Vec<u64> = recorder.seen().edges.iter().map(|(_, at, _)| at.0).collect();
    let stopped = DATA_IN + 1000 + SUSPEND;
    let (low, high) = (stopped + COMMAND, stopped + COMMAND + READ);
    let resumed = stopped + READ_PAGE;
    assert_eq!(edges, [DATA_IN, stopped, low, high, resumed, resumed + RESUME + PROGRAM - 1000]);
    recorder.seen().check(&bench.flash);
}

#[test]
fn the_next_program_is_not_held_up_by_what_the_one_before_let_pass() {
    // The bound is an operation's own: the second program gives way again.
    let mut bench = Bench::new(&suspending());
    bench.fill(1, 1);
    bench.program(0, 0);
    bench.run_until(DATA_IN);
    for _ in 0..LIMIT {
        bench.read(1, 0);
    }
    let end = bench.run();
    let second = bench.program(0, 1);
    bench.run_until(end + DATA_IN);
    let read = bench.read(1, 0);
    bench.assert_ends_at(read, end + DATA_IN + SUSPEND + READ_PAGE);
    bench.assert_ends_at(second, end + DATA_IN + SUSPEND + READ_PAGE + RESUME + PROGRAM);
}

#[test]
fn a_program_whose_successor_is_staged_already_is_not_suspended() {
    let mut config = suspending();
    config.cache_program = true;
    let mut bench = Bench::new(&config);
    bench.fill(1, 1);
    bench.program(0, 0);
    bench.program(0, 1);
    bench.run_until(2 * DATA_IN);
    let read = bench.read(1, 0);
    // The second program follows at once, and is the one that gives way.
    let second_starts = DATA_IN + PROGRAM;
    bench.assert_ends_at(read, second_starts + SUSPEND + READ_PAGE);
}

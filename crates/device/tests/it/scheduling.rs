//! What a host notices of the order of a die's queue, of suspension, and of garbage collection's turn.

use ssdlab_base::{Nanos, Op};
use ssdlab_flash::{Cause, DieId, OpKind, Resource, SchedulerKind, Span};

use crate::timing_support::*;

#[test]
fn a_read_passes_queued_writes_only_where_reads_go_first() {
    for (scheduler, ahead) in [
        (SchedulerKind::Fifo, 5),
        (SchedulerKind::ReadsFirst, 1),
        (SchedulerKind::HostFirst { starvation: Nanos::from_ms(5) }, 5),
    ] {
        let mut config = drive(1, 1, 1);
        config.flash.scheduler = scheduler;
        let mut host = Host::new(&config);
        host.write_page(0);
        let start = host.run();
        for page in 1..6 {
            host.write_page(page);
        }
        let read = host.read_page(0);
        host.assert_completes_at(read, start + ahead * PROGRAM_PAGE + READ_PAGE);
    }
}

#[test]
fn a_read_suspends_a_write_in_progress() {
    let mut config = drive(1, 1, 1);
    config.flash.program_suspend = true;
    let mut host = Host::new(&config);
    host.write_page(0);
    let start = host.run();
    let write = host.write_page(1);
    let asked = start + DATA_IN + 100_000;
    host.run_until(asked);
    let read = host.read_page(0);
    host.assert_completes_at(read, asked + SUSPEND + READ_PAGE);
    host.assert_completes_at(write, asked + SUSPEND + READ_PAGE + RESUME + PROGRAM - 100_000);
}

#[test]
fn a_host_that_reads_without_pause_does_not_stop_a_write() {
    let mut config = drive(1, 1, 1);
    config.flash.program_suspend = true;
    let mut host = Host::new(&config);
    host.write_page(0);
    let start = host.run();
    let write = host.write_page(1);
    host.run_until(start + DATA_IN + 1);
    for _ in 0..16 {
        let read = host.read_page(0);
        let end = host.now() + SUSPEND + READ_PAGE;
        host.assert_completes_at(read, end);
    }
    let resumed = host.now();
    host.read_page(0);
    host.assert_completes_at(write, resumed + RESUME + PROGRAM - 1);
}

/// Fills a drive of one plane, then overwrites pages one at a time; returns each write's span of waiting and what the
/// chips did.
fn overwrite(host: &mut Host, writes: u64) -> Vec<(u64, u64)> {
    let pages = host.drive.user_sectors() / 8;
    for page in 0..pages {
        host.write_page(page);
    }
    host.run();
    (0..writes)
        .map(|index| {
            let start = host.now();
            let tag = host.write_page(index * 7919 % pages);
            while host.end(tag).is_none() {
                let next = host.drive.next_event().expect("it completes");
                host.run_until(next.0);
            }
            (start, host.end(tag).expect("it has completed"))
        })
        .collect()
}

/// Whether stays on channel and die cover a stretch of time without a gap.
fn covered(spans: &[Span], from: u64, to: u64) -> bool {
    let mut at = from;
    let mut sorted: Vec<(u64, u64)> =
        spans.iter().map(|span| (span.start.0, span.end.0)).filter(|(start, end)| *end > from && *start < to).collect();
    sorted.sort_unstable();
    for (start, end) in sorted {
        if start > at {
            return false;
        }
        at = at.max(end);
    }
    at >= to
}

#[test]
fn a_write_that_waits_waits_for_collection_and_for_nothing_else() {
    let mut config = drive(1, 1, 1);
    config.user_bytes = config.flash.geometry.bytes() * 5 / 8;
    let mut host = Host::new(&config);
    let spans = Spans::watch(&mut host.drive);
    let writes = overwrite(&mut host, 600);
    host.run();
    let spans = spans.taken();
    let gc: Vec<Span> = spans.iter().filter(|span| span.cause == Cause::Gc).copied().collect();
    let mut waited = 0;
    for (start, end) in writes {
        // The write's own time is at the end of its latency, and is what it is on an idle drive.
        let own = spans.iter().find(|span| span.cause == Cause::Host && span.end.0 == end && span.start.0 >= start);
        let own = own.expect("a write completes as its program ends");
        assert_eq!(
            (own.resource, own.kind, own.end.0 - own.start.0),
            (Resource::Die(DieId(0)), OpKind::Program, PROGRAM)
        );
        let begun = own.start.0 - DATA_IN;
        assert!(covered(&gc, start, begun), "from {start} to {begun} the die collected without a gap");
        waited += begun - start;
    }
    let counters = host.drive.counters();
    assert!(counters.victims[0] > 0);
    assert!(waited > counters.victims[0] * ERASE / 2, "collection's time is charged to somebody: {waited} ns");
    assert_eq!(counters.victims[1], 0);
    // The chips did what was counted, and each took its time.
    let counted = |kind| counters.flash.get(kind, Cause::Gc);
    let array: u64 =
        gc.iter().filter(|span| matches!(span.resource, Resource::Die(_))).map(|span| span.end.0 - span.start.0).sum();
    let erased = counters.flash.total(OpKind::Erase);
    assert_eq!(array, counted(OpKind::Read) * READ + counted(OpKind::Program) * PROGRAM + erased * ERASE);
    host.assert_checks_hold();
}

#[test]
fn what_is_counted_as_stall_is_part_of_what_writes_waited() {
    // Little spare and bursts of writes: some find no page to go to before a block is erased.
    let mut config = drive(1, 1, 1);
    config.gc.free_blocks = 2;
    config.user_bytes = 190 * 4096;
    let mut host = Host::new(&config);
    for page in 0..190 {
        host.write_page(page);
    }
    host.run();
    assert_eq!(host.drive.counters().gc_stall, Nanos::ZERO);
    for burst in 0..20 {
        for index in 0..32 {
            host.write_page((burst * 32 + index) * 79 % 190);
        }
        host.run();
    }
    let waited: u64 = host.completed.values().map(|end| end.at.0 - end.submitted.0 - PROGRAM_PAGE).sum();
    let counters = host.drive.counters();
    assert!(counters.gc_stall.0 >= ERASE, "a write that found no room waited for an erase at the least");
    assert!(counters.gc_stall.0 <= waited, "{} of {waited} ns were spent without a page", counters.gc_stall.0);
    host.assert_checks_hold();
}

#[test]
fn the_background_collects_once_the_drive_has_been_idle_for_long_enough() {
    let mut config = drive(1, 1, 1);
    config.gc.background_free_blocks = 6;
    config.gc.idle_after = Nanos::from_ms(3);
    config.gc.free_blocks = 3;
    let mut host = Host::new(&config);
    let pages = host.drive.user_sectors() / 8;
    // Page 0 again and again: blocks without anything valid.
    for page in 0..pages {
        host.write_page(page);
    }
    let mut last = 0;
    while host.drive.free_blocks() >= 5 {
        let tag = host.write_page(0);
        while host.end(tag).is_none() {
            let next = host.drive.next_event().expect("it completes").0;
            host.run_until(next);
        }
        last = host.now();
    }
    assert_eq!(host.drive.counters().victims, [0, 0, 0]);
    host.run_until(last + 3_000_000 - 1);
    assert_eq!(host.drive.counters().victims, [0, 0, 0], "not idle for long enough");
    host.run_until(last + 3_000_000);
    assert_eq!(host.drive.counters().victims[1], 2, "two more blocks make six");
    host.run();
    assert_eq!(host.drive.free_blocks(), 6);
    assert_eq!(host.drive.counters().victims, [0, 2, 0]);
    host.assert_checks_hold();
}

#[test]
fn a_command_ends_the_idle_time() {
    let mut config = drive(1, 1, 1);
    config.gc.background_free_blocks = 15;
    config.gc.idle_after = Nanos::from_ms(3);
    let mut host = Host::new(&config);
    for page in 0..64 {
        host.write_page(page % 8);
    }
    let mut last = 0;
    while host.drive.outstanding() > 0 {
        last = host.drive.next_event().expect("it completes").0;
        host.run_until(last);
    }
    // A read just before the time is up starts it anew.
    host.run_until(last + 2_999_999);
    let read = host.read_page(0);
    let again = last + 2_999_999 + READ_PAGE;
    host.assert_completes_at(read, again);
    host.run_until(again + 2_999_999);
    assert_eq!(host.drive.counters().victims[1], 0);
    host.run_until(again + 3_000_000);
    assert!(host.drive.counters().victims[1] > 0);
    // The host is back: what was begun is finished, and no more.
    let begun = host.drive.counters().victims[1];
    let write = host.send(Op::Write, 0, 8);
    while host.end(write).is_none() {
        let next = host.drive.next_event().expect("it completes").0;
        host.run_until(next);
    }
    assert_eq!(host.drive.counters().victims[1], begun);
}

#[test]
fn collection_waits_for_the_host_only_as_long_as_the_bound_says() {
    // The host never pauses. With host-first, relocation goes on all the same, and every write completes.
    for starvation in [0, 500_000, 5_000_000] {
        let mut config = drive(1, 1, 1);
        config.flash.scheduler = SchedulerKind::HostFirst { starvation: Nanos(starvation) };
        config.interface.queue_depth = 8;
        let mut host = Host::new(&config);
        let pages = host.drive.user_sectors() / 8;
        let (mut sent, mut latest) = (0, 0);
        while host.completed.len() < 2000 {
            while host.drive.outstanding() < 8 && sent < 2000 {
                host.write_page(sent * 31 % pages);
                sent += 1;
            }
            let next = host.drive.next_event().expect("work is left").0;
            host.run_until(next);
        }
        for completion in host.completed.values() {
            latest = latest.max(completion.at.0 - completion.submitted.0);
        }
        // Eight writes, a block's relocation and erase, and the bound for each of its steps: generous, but a bound.
        let bound = 8 * PROGRAM_PAGE + 16 * (READ_PAGE + PROGRAM_PAGE + 2 * starvation) + 2 * ERASE + starvation;
        assert!(latest < bound, "{latest} ns with a bound of {starvation}");
        host.run();
        host.assert_checks_hold();
    }
}

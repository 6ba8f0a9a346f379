//! The order of a die's queue: exact times under each policy.

use rand::RngExt;
use ssdlab_base::{Nanos, rng};
use ssdlab_flash::{BlockId, Class, FlashConfig, OpKind, Ppn, QueueWaits, SchedulerKind};

use crate::support::*;

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
    for scheduler in [
        SchedulerKind::Fifo,
        SchedulerKind::ReadsFirst,
        SchedulerKind::HostFirst { starvation: Nanos(1) },
        SchedulerKind::SingleFifo,
        SchedulerKind::InOrder,
    ] {
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

/// Application-Managed Flash, Figure 8: segments A (sectors 0 to 7) and B (8 to 15), four channels with one die each, blocks of
/// two pages; sector i is on channel i mod 4, A's in block 0 of the die and B's in block 1. They arrive as 0, 8, 1, 9, 2, 10...
fn figure_8(scheduler: SchedulerKind, cache_program: bool) -> (Bench, Vec<(u32, u32)>, Recorder) {
    let mut config = chips(4, 1, 1);
    config.scheduler = scheduler;
    config.cache_program = cache_program;
    let mut bench = Bench::new(&config);
    let recorder = Recorder::watch(&mut bench.flash);
    let arrivals: Vec<u32> = (0..8).flat_map(|sector| [sector, sector + 8]).collect();
    let place = |sector: u32| (sector % 4 * 4 + sector / 8, sector / 4 % 2);
    let submitted = arrivals.into_iter().map(|sector| {
        let (block, page) = place(sector);
        (sector, bench.program(block, page))
    });
    let submitted = submitted.collect();
    (bench, submitted, recorder)
}

#[test]
fn figure_8_with_a_queue_a_die_keeps_all_channels_at_work() {
    let (mut bench, submitted, recorder) = figure_8(SchedulerKind::Fifo, false);
    // Each die has its four pages in order of arrival: A's first, B's first, A's second, B's second.
    bench.run();
    for (sector, token) in &submitted {
        let turn = u64::from(sector / 4 % 2 * 2 + sector / 8 + 1);
        assert_eq!(bench.end(*token), Some(turn * PROGRAM_PAGE), "sector {sector}");
    }
    recorder.seen().check(&bench.flash);
}

#[test]
fn figure_8_with_one_queue_delays_sector_1_until_0_and_8_are_sent() {
    let (mut bench, submitted, recorder) = figure_8(SchedulerKind::SingleFifo, false);
    // 0 is sent in DATA_IN and programmed. 8 waits for the die, is sent, and only then 1 is, to an idle die. 9 waits for that...
    // So each pair takes a page's program and DATA_IN, and the die's second of a pair is programmed while the next pair begins.
    for (index, (_, token)) in (0..).zip(&submitted) {
        let (pair, second) = (index / 2, index % 2);
        let sent = DATA_IN + pair * (PROGRAM_PAGE + DATA_IN) + second * PROGRAM_PAGE;
        bench.assert_ends_at(*token, sent + PROGRAM);
    }
    assert_eq!(bench.run(), 7 * (PROGRAM_PAGE + DATA_IN) + 2 * PROGRAM_PAGE);
    recorder.seen().check(&bench.flash);
}

#[test]
fn figure_8_in_order_sends_9_while_1_is_programmed_and_8_is_accepted() {
    let (mut bench, submitted, recorder) = figure_8(SchedulerKind::InOrder, false);
    // Die 0 accepts 0 at once, and 8 at the end of its program. At that instant idle die 1 accepts 1, on a channel of its own.
    bench.run();
    for (index, (sector, token)) in (0..).zip(&submitted) {
        let (pair, second) = (index / 2, index % 2);
        assert_eq!(bench.end(*token), Some((pair + second + 1) * PROGRAM_PAGE), "sector {sector}");
    }
    recorder.seen().check(&bench.flash);
}

#[test]
fn in_order_a_page_that_waits_for_the_channel_holds_up_nothing() {
    let mut config = chips(2, 2, 1);
    config.scheduler = SchedulerKind::InOrder;
    let mut bench = Bench::new(&config);
    let on = |bench: &Bench, die| bench.block(die, 0, 0);
    let blocks = [0, 1, 2, 3].map(|die| on(&bench, die));
    let tokens = blocks.map(|block| bench.program(block, 0));
    // Dies 0 and 1 share a channel, dies 2 and 3 the other.
    let sent = [1, 2, 1, 2].map(|turn| turn * DATA_IN + PROGRAM);
    bench.run();
    assert_eq!(tokens.map(|token| bench.end(token)), sent.map(Some));
}

/// A program, a read of its die, and a program of another die: with one queue in front of both the last one waits for the read, which
/// waits for the program or stops it as soon as its data is in. It is sent so long after the read was accepted.
fn a_busy_die_holds_up_the_whole_drive(scheduler: SchedulerKind, behind: u64) {
    for suspend in [false, true] {
        let mut config = chips(2, 1, 1);
        config.scheduler = scheduler;
        config.program_suspend = suspend;
        let mut bench = Bench::new(&config);
        bench.fill(1, 1);
        bench.program(0, 0);
        let read = bench.read(1, 0);
        let other = bench.block(1, 0, 0);
        let elsewhere = bench.program(other, 0);
        let accepted = if suspend { DATA_IN + SUSPEND } else { PROGRAM_PAGE };
        bench.assert_ends_at(read, accepted + READ_PAGE);
        bench.assert_ends_at(elsewhere, accepted + behind + PROGRAM_PAGE);
    }
}

#[test]
fn in_order_a_busy_die_holds_up_the_whole_drive_and_a_read_may_suspend_it() {
    a_busy_die_holds_up_the_whole_drive(SchedulerKind::InOrder, 0);
}

#[test]
fn in_order_idle_dies_behind_a_busy_one_are_counted_from_when_their_operations_are_ready() {
    let mut config = chips(3, 1, 1);
    config.scheduler = SchedulerKind::InOrder;
    let mut bench = Bench::new(&config);
    let (other, third) = (bench.block(1, 0, 0), bench.block(2, 0, 0));
    bench.fill(third, 1);
    bench.flash.reset_statistics();
    bench.program(0, 0);
    bench.program(0, 1);
    bench.program(other, 0);
    // The third die's program is behind its own read, and then behind the second page as well.
    let (old, read) = bench.submit_full(OpKind::Read, Class::HostRead, third, 0, PAGE, Ppn::NONE, 0);
    let (merge, op) = bench.submit_full(OpKind::Program, Class::HostWrite, third, 1, PAGE, Ppn::NONE, 1);
    bench.flash.link(read, op);
    bench.assert_ends_at(old, PROGRAM_PAGE + READ_PAGE);
    bench.assert_ends_at(merge, PROGRAM_PAGE + READ_PAGE + PROGRAM_PAGE);
    // The head waited for the first die; two dies were idle all that time, and the merge was taken as soon as it was ready.
    let waits = QueueWaits { head_wait: Nanos(PROGRAM_PAGE), held_up: 2, held_up_time: Nanos(2 * PROGRAM_PAGE) };
    assert_eq!(bench.flash.queue_waits(), Some(waits));
    config.scheduler = SchedulerKind::Fifo;
    assert_eq!(Bench::new(&config).flash.queue_waits(), None);
}

#[test]
fn in_order_an_operation_that_waits_is_not_in_the_queue_yet() {
    let mut config = chips(2, 1, 1);
    config.scheduler = SchedulerKind::InOrder;
    let mut bench = Bench::new(&config);
    let (target, other) = (bench.block(1, 0, 0), bench.block(1, 0, 1));
    bench.fill(0, 1);
    bench.fill(other, 1);
    let (old, read) = bench.submit_full(OpKind::Read, Class::HostRead, 0, 0, PAGE, Ppn::NONE, 0);
    let (merge, op) = bench.submit_full(OpKind::Program, Class::HostWrite, target, 0, PAGE, Ppn::NONE, 1);
    bench.flash.link(read, op);
    let (first, second) = (bench.read(other, 0), bench.read(other, 0));
    bench.run_until(READ_PAGE);
    assert_eq!([old, first].map(|token| bench.end(token)), [Some(READ_PAGE); 2], "the first read waits for nothing");
    // The merge is older than the second read, and became ready before that was accepted.
    bench.assert_ends_at(merge, READ_PAGE + PROGRAM_PAGE);
    bench.assert_ends_at(second, READ_PAGE + PROGRAM_PAGE + READ_PAGE);
}

/// When each of whole-page writes to `banks` ends: it is accepted when its bank is idle and the one before it was accepted, takes its
/// channel in the order of acceptance, and keeps its bank until it is programmed. And what the waiting room holds up: the last to
/// enter it waits until it is accepted, and a bank that is idle before it accepts its next page waits for others.
fn waiting_room(banks: &[u32], (channels, ways): (u32, u32), transfer: u64, program: u64) -> (Vec<u64>, QueueWaits) {
    let mut idle = vec![0; (channels * ways) as usize];
    let mut free = vec![0; channels as usize];
    let mut accepted = 0;
    let mut ends = Vec::new();
    let mut waits = QueueWaits::default();
    for bank in banks {
        let (bank, channel) = (*bank as usize, (bank / ways) as usize);
        let held_up = Nanos(accepted).since(Nanos(idle[bank]));
        waits.held_up += u64::from(held_up > Nanos::ZERO);
        waits.held_up_time += held_up;
        accepted = idle[bank].max(accepted);
        waits.head_wait = Nanos(accepted);
        let sent = free[channel].max(accepted) + transfer;
        (free[channel], idle[bank]) = (sent, sent + program);
        ends.push(sent + program);
    }
    (ends, waits)
}

#[test]
fn in_order_random_pages_of_the_openssd_board_end_as_counted() {
    const PAGES: usize = 100_000;
    // Each plane's blocks hold their share of random pages.
    for ((channels, ways), rate) in [((2, 4), 1_560), ((4, 4), 2_320), ((4, 8), 3_070)] {
        let mut config = chips(channels, ways, 1);
        (config.geometry.blocks_per_plane, config.geometry.pages_per_block) = (160, 128);
        config.timing.command = Nanos::ZERO;
        (config.timing.transfer, config.timing.program) = (Nanos(491_520), vec![fixed(1_300_000)]);
        config.scheduler = SchedulerKind::InOrder;
        let mut bench = Bench::new(&config);
        let mut random = rng(7, "banks");
        let banks: Vec<u32> = (0..PAGES).map(|_| random.random_range(0..channels * ways)).collect();
        let mut next = vec![0; (channels * ways) as usize];
        let tokens = banks.iter().map(|bank| {
            let page = next[*bank as usize];
            next[*bank as usize] += 1;
            let block = bench.block(*bank, 0, page / 128);
            bench.program(block, page % 128)
        });
        let tokens: Vec<u32> = tokens.collect();
        let last = bench.run();
        let (counted, waits) = waiting_room(&banks, (channels, ways), 491_520, 1_300_000);
        assert_eq!(bench.flash.queue_waits(), Some(waits), "{channels} channels of {ways}");
        bench.flash.reset_statistics();
        assert_eq!(bench.flash.queue_waits(), Some(QueueWaits::default()));
        for (token, end) in tokens.into_iter().zip(&counted) {
            assert_eq!(bench.end(token), Some(*end), "page {token} on {channels} channels of {ways}");
        }
        let found = PAGES as u64 * 1_000_000_000 / last;
        assert!(found.abs_diff(rate) * 100 <= rate, "{found} pages a second, counted {rate}");
    }
}

#[test]
fn figure_8_with_one_queue_and_cache_program_sends_8_while_0_is_programmed() {
    let (mut bench, submitted, _) = figure_8(SchedulerKind::SingleFifo, true);
    bench.run();
    // 8 is sent while 0 is programmed, then 1 to an idle die: each 2 DATA_IN behind the pair before. 4 finds die 0 with 0 at
    // work and 8 staged, is staged when 8's program begins, and programmed behind it.
    for pair in 0..4_u64 {
        let sent = (2 * pair + 1) * DATA_IN;
        let tokens = [submitted[2 * pair as usize].1, submitted[2 * pair as usize + 1].1];
        assert_eq!(tokens.map(|token| bench.end(token)), [Some(sent + PROGRAM), Some(sent + 2 * PROGRAM)]);
    }
    let (sector, four) = submitted[8];
    assert_eq!((sector, bench.end(four)), (4, Some(DATA_IN + 3 * PROGRAM)));
}

#[test]
fn with_one_queue_an_operation_that_waits_is_not_in_it_yet() {
    let mut config = chips(2, 1, 1);
    config.scheduler = SchedulerKind::SingleFifo;
    let mut bench = Bench::new(&config);
    let far = bench.block(1, 0, 0);
    bench.fill(far, 1);
    bench.fill(1, 1);
    let (old, read) = bench.submit_full(OpKind::Read, Class::HostRead, far, 0, PAGE, Ppn::NONE, 0);
    let (merge, op) = bench.submit_full(OpKind::Program, Class::HostWrite, 0, 0, PAGE, Ppn::NONE, 1);
    bench.flash.link(read, op);
    let behind = bench.read(1, 0);
    // The read behind the program that waits is sent when the command of the first read is across.
    bench.assert_ends_at(old, READ_PAGE);
    bench.assert_ends_at(behind, COMMAND + READ_PAGE);
    bench.assert_ends_at(merge, COMMAND + READ_PAGE + PROGRAM_PAGE);
}

#[test]
fn with_one_queue_a_busy_die_holds_up_the_whole_drive_and_a_read_may_suspend_it() {
    a_busy_die_holds_up_the_whole_drive(SchedulerKind::SingleFifo, COMMAND);
}

#[test]
fn with_one_queue_staged_data_is_being_sent_when_the_program_before_it_has_ended() {
    let mut config = chips(2, 1, 1);
    config.scheduler = SchedulerKind::SingleFifo;
    config.cache_program = true;
    let mut bench = Bench::new(&config);
    let first = bench.program(0, 0);
    bench.run_until(PROGRAM_PAGE - DATA_IN / 2);
    let staged = bench.program(0, 1);
    bench.run_until(PROGRAM_PAGE + 1);
    assert_eq!(bench.end(first), Some(PROGRAM_PAGE));
    let other = bench.block(1, 0, 0);
    let elsewhere = bench.program(other, 0);
    let sent = PROGRAM_PAGE - DATA_IN / 2 + DATA_IN;
    bench.assert_ends_at(staged, sent + PROGRAM);
    bench.assert_ends_at(elsewhere, sent + PROGRAM_PAGE);
}

#[test]
fn with_one_queue_planes_run_together_if_they_are_next_to_each_other_in_it() {
    let mut config = chips(2, 1, 2);
    config.scheduler = SchedulerKind::SingleFifo;
    let mut bench = Bench::new(&config);
    let on = |bench: &Bench, die, plane| bench.block(die, plane, 0);
    let (a, b, c) = (on(&bench, 0, 0), on(&bench, 0, 1), on(&bench, 1, 0));
    let together = [bench.program(a, 0), bench.program(b, 0)];
    let other = bench.program(c, 0);
    let apart = bench.program(a, 1);
    let d = on(&bench, 1, 1);
    let between = bench.program(d, 0);
    let later = bench.program(b, 1);
    let end = bench.run();
    assert_eq!(together.map(|token| bench.end(token)), [Some(2 * DATA_IN + PROGRAM); 2]);
    assert_eq!(bench.end(other), Some(2 * DATA_IN + PROGRAM_PAGE));
    assert_eq!(bench.end(apart), Some(2 * DATA_IN + PROGRAM + PROGRAM_PAGE));
    // Die 1 is free when `apart` is sent; die 0 takes `later` when it is done with `apart`.
    assert_eq!(bench.end(between), Some(3 * DATA_IN + PROGRAM + PROGRAM_PAGE));
    assert_eq!(
        (bench.end(later), end),
        (Some(2 * (DATA_IN + PROGRAM_PAGE) + PROGRAM), 2 * (DATA_IN + PROGRAM_PAGE) + PROGRAM)
    );
}

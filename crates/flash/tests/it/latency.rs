//! Closed forms: what one operation takes on idle chips is the sum of its parts, to the nanosecond.

use ssdlab_base::Nanos;
use ssdlab_flash::{BlockId, Cause, Class, Latency, MultiPlane, OpKind, Ppn, Submit, presets};

use crate::support::*;

#[test]
fn a_read_is_its_command_the_array_and_its_data() {
    let mut bench = Bench::new(&chips(1, 1, 1));
    let read = bench.read(0, 0);
    bench.assert_ends_at(read, COMMAND + READ + TRANSFER);
    // And the same again, from any time on.
    bench.run_until(1_000_000);
    let read = bench.read(3, 7);
    bench.assert_ends_at(read, 1_000_000 + COMMAND + READ + TRANSFER);
}

#[test]
fn part_of_a_page_takes_its_share_of_the_transfer_rounded_up() {
    for sectors in 1..=8 {
        let mut bench = Bench::new(&chips(1, 1, 1));
        let read = bench.read_bytes(0, 0, sectors * 512);
        bench.assert_ends_at(read, COMMAND + READ + (TRANSFER * u64::from(sectors)).div_ceil(8));
    }
}

#[test]
fn a_program_is_its_command_its_data_and_the_array() {
    let mut bench = Bench::new(&chips(1, 1, 1));
    let program = bench.program(0, 0);
    bench.assert_ends_at(program, COMMAND + TRANSFER + PROGRAM);
}

#[test]
fn an_erase_is_its_command_and_the_array() {
    let mut bench = Bench::new(&chips(1, 1, 1));
    bench.fill(2, 5);
    let erase = bench.erase(2);
    bench.assert_ends_at(erase, COMMAND + ERASE);
    assert_eq!(bench.flash.blocks.get(BlockId(2)).programmed, 0);
    assert_eq!(bench.flash.blocks.get(BlockId(2)).erases, 1);
}

#[test]
fn a_copyback_is_two_commands_a_read_and_a_program_without_data_on_the_channel() {
    let mut bench = Bench::new(&chips(1, 1, 1));
    bench.fill(0, 4);
    let (copyback, _) = bench.submit_full(OpKind::Copyback, Class::GcWrite, 1, 0, 0, Ppn(3), 0);
    bench.assert_ends_at(copyback, 2 * COMMAND + READ + PROGRAM);
    assert_eq!(bench.flash.busy(), (vec![Nanos(2 * COMMAND)], vec![Nanos(READ + PROGRAM)]));
}

#[test]
fn a_program_waits_for_the_reads_it_is_linked_to() {
    // A merge: the old version is read, then the page is programmed.
    let mut bench = Bench::new(&chips(1, 1, 1));
    bench.fill(0, 2);
    let (_, read) = bench.submit_full(OpKind::Read, Class::HostRead, 0, 1, 1024, Ppn::NONE, 0);
    let (program, op) = bench.submit_full(OpKind::Program, Class::HostWrite, 1, 0, PAGE, Ppn::NONE, 1);
    bench.flash.link(read, op);
    bench.assert_ends_at(program, COMMAND + READ + TRANSFER.div_ceil(4) + PROGRAM_PAGE);
}

#[test]
fn the_position_in_the_wordline_decides_the_latency() {
    let lists: [&[u64]; 4] =
        [&[25_001], &[48_003, 64_007], &[50_001, 70_003, 90_007], &[47_901, 76_203, 134_607, 228_109]];
    for list in lists {
        let mut config = chips(1, 1, 1);
        config.timing.read = list.iter().map(|ns| fixed(*ns)).collect();
        config.timing.program = list.iter().map(|ns| fixed(ns * 10)).collect();
        for page in 0..16 {
            let tr = list[page as usize % list.len()];
            let mut bench = Bench::new(&config);
            bench.fill(0, page);
            let program = bench.program(0, page);
            bench.assert_ends_at(program, DATA_IN + tr * 10);
            let mut bench = Bench::new(&config);
            let read = bench.read(0, page);
            bench.assert_ends_at(read, COMMAND + tr + TRANSFER);
            // A copyback reads at the source's position and programs at its own.
            let mut bench = Bench::new(&config);
            bench.fill(0, page + 1);
            bench.fill(1, 5);
            let (copyback, _) = bench.submit_full(OpKind::Copyback, Class::GcWrite, 1, 5, 0, Ppn(page), 0);
            bench.assert_ends_at(copyback, 2 * COMMAND + tr + list[5 % list.len()] * 10);
        }
    }
}

#[test]
fn every_preset_gives_the_latencies_of_its_source() {
    for preset in &presets::PRESETS {
        let mut config = chips(1, 1, 1);
        config.timing = preset.timing(PAGE);
        let transfer = config.timing.transfer.0;
        for page in 0..8 {
            let mut bench = Bench::new(&config);
            let read = bench.read(0, page);
            let tr = preset.read[page as usize % preset.read.len()].min.0;
            bench.assert_ends_at(read, preset.command.0 + tr + transfer);
            let mut bench = Bench::new(&config);
            bench.fill(0, page);
            let program = bench.program(0, page);
            let tprog = preset.program[page as usize % preset.program.len()].min.0;
            bench.assert_ends_at(program, preset.command.0 + transfer + tprog);
        }
        let mut bench = Bench::new(&config);
        let erase = bench.erase(0);
        bench.assert_ends_at(erase, preset.command.0 + preset.erase.min.0);
    }
}

#[test]
fn planes_read_together_and_send_one_after_the_other() {
    let mut bench = Bench::new(&chips(1, 1, 4));
    let blocks: Vec<u32> = (0..4).map(|plane| bench.block(0, plane, 1)).collect();
    for block in &blocks {
        bench.fill(*block, 6);
    }
    let reads: Vec<u32> = blocks.iter().map(|block| bench.read(*block, 5)).collect();
    bench.assert_ends_at(reads[0], 4 * COMMAND + READ + 4 * TRANSFER);
    assert!(reads.iter().all(|read| bench.end(*read) == bench.end(reads[0])), "the planes end together");
    assert_eq!(bench.flash.busy().1, [Nanos(READ)], "the array worked once");
}

#[test]
fn planes_are_programmed_and_erased_together() {
    let mut bench = Bench::new(&chips(1, 1, 2));
    let (a, b) = (bench.block(0, 0, 1), bench.block(0, 1, 3));
    let first = bench.program(a, 0);
    let second = bench.program(b, 0);
    bench.assert_ends_at(first, 2 * DATA_IN + PROGRAM);
    assert_eq!(bench.end(second), bench.end(first));
    let start = bench.now;
    let first = bench.erase(a);
    let second = bench.erase(b);
    bench.assert_ends_at(first, start + 2 * COMMAND + ERASE);
    assert_eq!(bench.end(second), bench.end(first));
}

#[test]
fn planes_at_other_offsets_run_together_only_where_that_is_allowed() {
    let together = 2 * DATA_IN + PROGRAM;
    for (rule, end) in [
        (MultiPlane::Off, 2 * PROGRAM_PAGE),
        (MultiPlane::SameOffset, 2 * PROGRAM_PAGE),
        (MultiPlane::Relaxed, together),
    ] {
        let mut config = chips(1, 1, 2);
        config.multi_plane = rule;
        let mut bench = Bench::new(&config);
        let (a, b) = (bench.block(0, 0, 0), bench.block(0, 1, 0));
        bench.fill(b, 3);
        bench.program(a, 0);
        let second = bench.program(b, 3);
        bench.assert_ends_at(second, end);
    }
    let mut config = chips(1, 1, 2);
    config.multi_plane = MultiPlane::Off;
    let mut bench = Bench::new(&config);
    bench.program(0, 0);
    let second = bench.program(4, 0);
    bench.assert_ends_at(second, 2 * PROGRAM_PAGE);
}

#[test]
fn two_pages_of_one_plane_never_run_together() {
    let mut config = chips(1, 1, 2);
    config.multi_plane = MultiPlane::Relaxed;
    let mut bench = Bench::new(&config);
    bench.program(0, 0);
    let second = bench.program(1, 0);
    bench.assert_ends_at(second, 2 * PROGRAM_PAGE);
}

#[test]
fn a_group_takes_as_long_as_its_slowest_plane() {
    let mut config = chips(1, 1, 2);
    config.multi_plane = MultiPlane::Relaxed;
    config.timing.program = vec![fixed(100_003), fixed(900_007)];
    let mut bench = Bench::new(&config);
    bench.fill(4, 1);
    let fast = bench.program(0, 0);
    let slow = bench.program(4, 1);
    bench.assert_ends_at(slow, 2 * DATA_IN + 900_007);
    assert_eq!(bench.end(fast), bench.end(slow));
}

#[test]
fn a_cached_programs_data_comes_in_while_the_one_before_runs() {
    let mut config = chips(1, 1, 1);
    config.cache_program = true;
    let mut bench = Bench::new(&config);
    let programs: Vec<u32> = (0..8).map(|page| bench.program(0, page)).collect();
    for (index, program) in programs.into_iter().enumerate() {
        bench.assert_ends_at(program, DATA_IN + (index as u64 + 1) * PROGRAM);
    }
}

#[test]
fn a_cached_program_that_arrives_late_still_overlaps() {
    let mut config = chips(1, 1, 1);
    config.cache_program = true;
    let mut bench = Bench::new(&config);
    bench.program(0, 0);
    let late = DATA_IN + PROGRAM / 2;
    bench.run_until(late);
    let second = bench.program(0, 1);
    bench.assert_ends_at(second, DATA_IN + 2 * PROGRAM);
    // Too late to be in before the array is ready: the rest of the transfer shows.
    let mut bench = Bench::new(&config);
    bench.program(0, 0);
    let late = DATA_IN + PROGRAM - DATA_IN / 2;
    bench.run_until(late);
    let second = bench.program(0, 1);
    bench.assert_ends_at(second, late + DATA_IN + PROGRAM);
}

#[test]
fn a_program_that_waits_for_another_on_its_die_follows_it_with_or_without_cache() {
    for cache_program in [false, true] {
        let mut config = chips(1, 1, 2);
        config.cache_program = cache_program;
        let mut bench = Bench::new(&config);
        let (_, first) = bench.submit_full(OpKind::Program, Class::HostWrite, 0, 0, PAGE, Ppn::NONE, 0);
        let (second, op) = bench.submit_full(OpKind::Program, Class::HostWrite, 4, 0, PAGE, Ppn::NONE, 1);
        bench.flash.link(first, op);
        bench.assert_ends_at(second, 2 * PROGRAM_PAGE);
    }
}

#[test]
fn where_data_takes_longer_than_the_array_a_cached_program_waits_for_its_data() {
    let mut config = chips(1, 1, 1);
    config.cache_program = true;
    config.timing.transfer = Nanos(3 * PROGRAM);
    let mut bench = Bench::new(&config);
    let data_in = COMMAND + 3 * PROGRAM;
    let programs: Vec<u32> = (0..5).map(|page| bench.program(0, page)).collect();
    for (index, program) in programs.into_iter().enumerate() {
        bench.assert_ends_at(program, (index as u64 + 1) * data_in + PROGRAM);
    }
}

#[test]
fn a_range_is_drawn_uniformly_over_both_ends_and_the_same_from_the_same_seed() {
    // 11 values: each is expected 1/11 of the time.
    let (min, max) = (20_000, 20_010);
    let mut config = chips(1, 1, 1);
    config.timing.read = vec![Latency { min: Nanos(min), max: Nanos(max) }];
    let draws = |seed: u64| {
        let mut bench = Bench::seeded(&config, seed);
        (0..22_000)
            .map(|_| {
                let start = bench.now;
                bench.read(0, 0);
                bench.run() - start - COMMAND - TRANSFER
            })
            .collect::<Vec<u64>>()
    };
    let drawn = draws(5);
    let mut counts = [0_i64; 11];
    for value in &drawn {
        assert!((min..=max).contains(value), "{value} is outside the range");
        counts[(value - min) as usize] += 1;
    }
    // Chi-squared with 10 degrees of freedom: 29.6 is passed by chance once in a thousand seeds, and the seed is fixed.
    let chi: f64 = counts.iter().map(|count| ((count - 2000) as f64).powi(2) / 2000.0).sum();
    assert!(chi < 29.6, "{counts:?} is not uniform: chi-squared {chi}");
    assert_eq!(drawn, draws(5), "the same seed draws the same");
    assert_ne!(drawn, draws(6), "another seed draws others");
}

#[test]
fn erases_and_programs_draw_their_ranges_too() {
    let mut config = chips(1, 1, 1);
    config.timing.program = vec![Latency { min: Nanos(500), max: Nanos(501) }];
    config.timing.erase = Latency { min: Nanos(700), max: Nanos(702) };
    let mut bench = Bench::new(&config);
    let (mut programs, mut erases) = (Vec::new(), Vec::new());
    for _ in 0..100 {
        let start = bench.now;
        bench.program(0, 0);
        let middle = bench.run();
        programs.push(middle - start - DATA_IN);
        bench.erase(0);
        erases.push(bench.run() - middle - COMMAND);
    }
    for (values, range) in [(&mut programs, vec![500, 501]), (&mut erases, vec![700, 701, 702])] {
        values.sort_unstable();
        values.dedup();
        assert_eq!(*values, range);
    }
}

#[test]
fn a_checked_copyback_counts_pages_that_it_cannot_correct() {
    for (checks_copyback, counted) in [(false, 0), (true, 3)] {
        let mut config = chips(1, 1, 1);
        config.checks_copyback = checks_copyback;
        config.faults.uncorrectable_read = 1.0;
        let mut bench = Bench::new(&config);
        bench.fill(0, 3);
        for page in 0..3 {
            bench.submit_full(OpKind::Copyback, Class::GcWrite, 1, page, 0, Ppn(page), 0);
        }
        bench.run();
        assert_eq!(bench.flash.uncorrectable_copybacks(), counted);
        bench.flash.reset_statistics();
        assert_eq!(bench.flash.uncorrectable_copybacks(), 0);
    }
}

#[test]
fn a_checked_copyback_crosses_the_channel_once_between_its_read_and_its_program() {
    let mut config = chips(1, 3, 1);
    config.checks_copyback = true;
    let copy = |bench: &mut Bench| {
        bench.fill(2, 1);
        bench.submit_full(OpKind::Copyback, Class::GcWrite, 1, 0, 0, Ppn(2 * 16), 0).0
    };
    let mut bench = Bench::new(&config);
    let recorder = Recorder::watch(&mut bench.flash);
    let alone = copy(&mut bench);
    bench.assert_ends_at(alone, 2 * COMMAND + READ + TRANSFER + PROGRAM);
    recorder.seen().check(&bench.flash);
    // Two programs of other dies have the channel until the page has been read, and a little longer.
    let mut bench = Bench::new(&config);
    let behind = copy(&mut bench);
    for die in [1, 2] {
        let block = bench.block(die, 0, 0);
        bench.program(block, 0);
    }
    let free = 2 * COMMAND + 2 * DATA_IN;
    assert!(free > 2 * COMMAND + READ);
    bench.assert_ends_at(behind, free + TRANSFER + PROGRAM);
    // Power that goes before the page has gone through the ECC leaves nothing in its new place; afterwards it tears that.
    for (cut, programmed) in
        [(2 * COMMAND + READ / 2, 0), (2 * COMMAND + READ + 1, 0), (2 * COMMAND + READ + TRANSFER + 1, 1)]
    {
        let mut bench = Bench::new(&config);
        copy(&mut bench);
        bench.run_until(cut);
        bench.flash.power_cut(Nanos(cut));
        assert_eq!(bench.flash.blocks.get(BlockId(1)).programmed, programmed, "power goes at {cut}");
        assert!(programmed == 0 || !bench.flash.blocks.readable(Ppn(16)));
    }
}

#[test]
fn an_operation_that_is_issued_later_keeps_its_place_and_starts_then() {
    let mut bench = Bench::new(&chips(1, 1, 1));
    bench.flash.expect_delayed_issues();
    let submit = |bench: &mut Bench, page: u32, at: u64| {
        let (block, pin) = (BlockId(0), BlockId::NONE);
        let (kind, cause, class) = (OpKind::Program, Cause::Host, Class::HostWrite);
        let submit =
            Submit { kind, cause, class, block, page, source: Ppn::NONE, bytes: PAGE, token: page, pin, waits_for: 0 };
        bench.flash.submit_issued_at(Nanos(bench.now), submit, Nanos(at));
    };
    submit(&mut bench, 0, 5_000);
    submit(&mut bench, 1, 5_000 + PROGRAM_PAGE + 7);
    submit(&mut bench, 2, 5_000 + PROGRAM_PAGE + 8);
    // The second waits for its issue, the third for the second.
    let first = 5_000 + PROGRAM_PAGE;
    for (page, end) in [(0, first), (1, first + 7 + PROGRAM_PAGE), (2, first + 7 + 2 * PROGRAM_PAGE)] {
        bench.assert_ends_at(page, end);
    }
    // Power takes what is not issued with it.
    let now = bench.now;
    submit(&mut bench, 3, now + 1);
    bench.flash.power_cut(Nanos(now));
    assert_eq!((bench.flash.next_event(), bench.flash.in_flight()), (None, 0));
}

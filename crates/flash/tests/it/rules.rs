//! The rules of NAND hold in every build: breaking one panics and says where, in what state, why and when.

use std::panic::{AssertUnwindSafe, catch_unwind};

use ssdlab_flash::{BlockId, Cause, Class, FaultKind, Lpn, OpKind, Ppn, ScriptedFault, UnitId};

use crate::support::*;

/// The message of the panic that `act` must end in, run until nothing is left.
fn broken(prepare: impl FnOnce(&mut Bench), act: impl FnOnce(&mut Bench)) -> String {
    let mut bench = Bench::new(&chips(1, 1, 1));
    prepare(&mut bench);
    let caught = catch_unwind(AssertUnwindSafe(|| {
        act(&mut bench);
        bench.run();
    }));
    let payload = caught.expect_err("the chips refuse");
    payload.downcast_ref::<String>().expect("a message with numbers in it").clone()
}

fn assert_says(message: &str, words: &[&str]) {
    for word in words {
        assert!(message.contains(word), "'{word}' is not in: {message}");
    }
}

#[test]
fn a_page_is_programmed_once() {
    let message = broken(
        |bench| bench.fill(2, 4),
        |bench| {
            bench.program(2, 3);
        },
    );
    assert_says(&message, &["program twice", "block 2 page 3", "programmed: 4", "cause Host", "at 210 us"]);
}

#[test]
fn pages_are_programmed_in_order() {
    let message = broken(
        |bench| bench.fill(1, 4),
        |bench| {
            bench.program(1, 5);
        },
    );
    assert_says(&message, &["out of order", "block 1 page 5", "programmed: 4"]);
}

#[test]
fn nothing_is_programmed_behind_the_end_of_a_block() {
    let message = broken(
        |bench| bench.fill(1, 16),
        |bench| {
            bench.program(1, 16);
        },
    );
    assert_says(&message, &["block 1 page 16"]);
}

#[test]
fn a_bad_block_is_neither_programmed_nor_erased() {
    let message = broken(
        |bench| bench.flash.retire(BlockId(3)),
        |bench| {
            bench.program(3, 0);
        },
    );
    assert_says(&message, &["bad", "block 3 page 0"]);
    let message = broken(
        |bench| bench.flash.retire(BlockId(3)),
        |bench| {
            bench.erase(3);
        },
    );
    assert_says(&message, &["erase of a bad block", "block 3"]);
}

#[test]
fn an_erased_page_is_not_read() {
    let message = broken(
        |bench| bench.fill(0, 2),
        |bench| {
            bench.submit(OpKind::Read, Class::GcRead, 0, 2, PAGE);
        },
    );
    assert_says(&message, &["read of an erased page", "block 0 page 2", "programmed: 2", "cause Gc"]);
}

#[test]
fn the_source_of_a_copyback_must_be_written() {
    let message = broken(
        |bench| bench.fill(0, 2),
        |bench| {
            bench.submit_full(OpKind::Copyback, Class::GcWrite, 1, 0, 0, Ppn(2), 0);
        },
    );
    assert_says(&message, &["read of an erased page", "block 0 page 2"]);
}

#[test]
fn a_block_whose_erase_was_cut_is_erased_again_before_use() {
    let mut bench = Bench::new(&chips(1, 1, 1));
    bench.fill(0, 3);
    bench.erase(0);
    bench.run_until(COMMAND + 1);
    bench.flash.power_cut(ssdlab_base::Nanos(bench.now));
    assert!(bench.flash.blocks.get(BlockId(0)).torn);
    assert!(!bench.flash.blocks.readable(Ppn(1)), "what was there can no longer be trusted");
    let caught = catch_unwind(AssertUnwindSafe(|| {
        bench.flash.execute(OpKind::Program, Cause::Host, BlockId(0), 3);
    }));
    assert!(caught.is_err(), "a torn block is not programmed");
    bench.flash.execute(OpKind::Erase, Cause::Recovery, BlockId(0), 0);
    bench.flash.execute(OpKind::Program, Cause::Host, BlockId(0), 0);
    assert!(bench.flash.blocks.readable(Ppn(0)));
}

#[test]
fn a_program_that_was_cut_leaves_a_torn_page_and_one_that_had_not_begun_leaves_nothing() {
    for (at, programmed) in [(DATA_IN - 1, 0), (DATA_IN, 0), (DATA_IN + 1, 1), (PROGRAM_PAGE - 1, 1)] {
        let mut bench = Bench::new(&chips(1, 1, 1));
        bench.program(0, 0);
        bench.program(0, 1);
        bench.run_until(at);
        bench.flash.power_cut(ssdlab_base::Nanos(at));
        assert_eq!(bench.flash.blocks.get(BlockId(0)).programmed, programmed, "cut at {at}");
        assert_eq!(bench.flash.blocks.unreadable().count() as u32, programmed);
        assert_eq!(bench.flash.in_flight(), 0);
        assert_eq!(bench.flash.next_event(), None);
    }
    let mut bench = Bench::new(&chips(1, 1, 1));
    bench.program(0, 0);
    bench.run_until(PROGRAM_PAGE);
    bench.flash.power_cut(ssdlab_base::Nanos(PROGRAM_PAGE));
    assert_eq!(bench.flash.blocks.get(BlockId(0)).programmed, 1);
    assert!(bench.flash.blocks.readable(Ppn(0)), "what had ended at that instant is kept");
}

#[test]
fn the_numbers_of_operations_that_end_together_are_not_given_out_before_all_were_heard_of() {
    // Two planes end in one step. A caller that hears of the first may submit more at once: it must not get the
    // second's number.
    let mut bench = Bench::new(&chips(1, 1, 2));
    let (_, first) = bench.submit_full(OpKind::Program, Class::HostWrite, 0, 0, PAGE, Ppn::NONE, 0);
    let (_, second) = bench.submit_full(OpKind::Program, Class::HostWrite, 4, 0, PAGE, Ppn::NONE, 0);
    bench.run();
    let (_, third) = bench.submit_full(OpKind::Program, Class::HostWrite, 0, 1, PAGE, Ppn::NONE, 0);
    let (_, fourth) = bench.submit_full(OpKind::Program, Class::HostWrite, 4, 1, PAGE, Ppn::NONE, 0);
    assert!([first, second].iter().all(|old| ![third, fourth].contains(old)));
    bench.run();
    // And they are given out again after that: the table does not grow.
    let (_, fifth) = bench.submit_full(OpKind::Program, Class::HostWrite, 0, 2, PAGE, Ppn::NONE, 0);
    assert!([first, second, third, fourth].contains(&fifth));
}

#[test]
fn a_block_that_failed_a_program_is_marked_over_power_cuts_and_never_erased() {
    let mut config = chips(1, 1, 1);
    config.faults.script = vec![ScriptedFault { kind: FaultKind::Program, block: BlockId(1), nth: 2 }];
    let mut bench = Bench::new(&config);
    for block in 0..3 {
        bench.fill(block, 3);
    }
    bench.flash.power_cut(ssdlab_base::Nanos(bench.now));
    let suspect: Vec<bool> = bench.flash.blocks.all().iter().map(|block| block.suspect).collect();
    assert_eq!(suspect, [false, true, false, false]);
    assert!(
        !bench.flash.blocks.readable(Ppn(17)) && bench.flash.blocks.readable(Ppn(18)),
        "only the failed page is lost"
    );
    let caught = catch_unwind(AssertUnwindSafe(|| bench.flash.execute(OpKind::Erase, Cause::Gc, BlockId(1), 0)));
    assert!(caught.is_err(), "a suspect block is not erased");
}

#[test]
fn saved_chips_come_back_with_every_mark_on_them() {
    let mut config = chips(1, 1, 2);
    config.faults.script = vec![ScriptedFault { kind: FaultKind::Program, block: BlockId(2), nth: 1 }];
    let mut bench = Bench::new(&config);
    bench.fill(0, 7);
    bench.fill(5, 16);
    bench.flash.execute(OpKind::Erase, Cause::Gc, BlockId(5), 0);
    bench.flash.retire(BlockId(3));
    bench.fill(2, 1);
    assert!(bench.flash.blocks.get(BlockId(2)).suspect);
    bench.flash.oob.write(BlockId(0), 6, &[Lpn(77)], 1234);
    bench.flash.oob.put_record(UnitId(6), vec![1, 2, 3].into());
    bench.flash.oob.poison(UnitId(4));
    bench.program(0, 7);
    bench.run_until(PROGRAM_PAGE - 1);
    bench.flash.power_cut(ssdlab_base::Nanos(bench.now));
    let mut saved = Vec::new();
    bench.flash.save(&mut saved).expect("memory takes it");
    let mut again = Bench::new(&config);
    again.flash.load_state(&mut saved.as_slice()).expect("what was saved is read");
    assert_eq!(again.flash.blocks.all(), bench.flash.blocks.all());
    assert!(!again.flash.blocks.readable(Ppn(7)), "the torn page is still torn");
    assert!(again.flash.oob.is_poisoned(UnitId(4)), "lost data is still lost");
    assert!(!again.flash.oob.is_poisoned(UnitId(5)));
    assert_eq!(again.flash.oob.record(UnitId(6)), Some([1, 2, 3].as_slice()));
    assert_eq!(
        (again.flash.oob.lpn(UnitId(6)), again.flash.oob.sequence(BlockId(0), 6)),
        (Lpn(77), bench.flash.oob.sequence(BlockId(0), 6))
    );
    let mut twice = Vec::new();
    again.flash.save(&mut twice).expect("memory takes it");
    assert_eq!(saved, twice);
    for cut in [0, 1, 100, saved.len() - 1] {
        assert!(Bench::new(&config).flash.load_state(&mut &saved[..cut]).is_err(), "{cut} bytes are not the whole");
    }
}

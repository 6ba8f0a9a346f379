//! Saturated throughput equals what geometry and timing allow: the exact time of N operations, all there from the start.
//!
//! `c` is the command, `x` the transfer of a page, `C = c + x` a program's time on the channel.

use ssdlab_base::Nanos;
use ssdlab_flash::{MultiPlane, OpKind};

use crate::support::*;

const ROUNDS: u64 = 16;

fn reads(channels: u32, ways: u32, planes: u32) -> u64 {
    let mut bench = Bench::new(&chips(channels, ways, planes));
    let dies = channels * ways;
    for block in (0..dies * planes).map(|plane| plane * 4) {
        bench.fill(block, 16);
    }
    for page in 0..ROUNDS as u32 {
        for plane in 0..dies * planes {
            bench.read(plane * 4, page);
        }
    }
    bench.run()
}

fn programs(channels: u32, ways: u32, planes: u32, cached: bool) -> u64 {
    let mut config = chips(channels, ways, planes);
    config.cache_program = cached;
    let mut bench = Bench::new(&config);
    for page in 0..ROUNDS as u32 {
        for plane in 0..channels * ways * planes {
            bench.program(plane * 4, page);
        }
    }
    bench.run()
}

#[test]
fn one_die_reads_a_page_in_the_sum_of_its_parts() {
    assert_eq!(reads(1, 1, 1), ROUNDS * READ_PAGE);
}

#[test]
fn channels_do_not_know_of_each_other() {
    for channels in [2, 3, 8] {
        assert_eq!(reads(channels, 1, 1), reads(1, 1, 1));
        assert_eq!(reads(channels, 4, 1), reads(1, 4, 1));
        assert_eq!(programs(channels, 3, 1, false), programs(1, 3, 1, false));
    }
}

#[test]
fn reads_of_many_dies_fill_the_channel() {
    // Channel bound: (dies - 1) x >= tR. Command and array of the first page, then data without a gap, and between them
    // the commands of all pages that follow the first of each die.
    for dies in [4, 8, 16] {
        assert!((dies - 1) * TRANSFER >= READ);
        let pages = dies * ROUNDS;
        assert_eq!(
            reads(1, dies as u32, 1),
            COMMAND + READ + pages * TRANSFER + (pages - dies) * COMMAND,
            "{dies} dies"
        );
    }
}

#[test]
fn reads_of_few_dies_keep_every_die_in_work() {
    // Die bound: two dies, 2 (c + x) < c + tR + x. The second is behind the first by c + x, once, and then keeps clear.
    assert_eq!(reads(1, 2, 1), ROUNDS * READ_PAGE + COMMAND + TRANSFER);
}

#[test]
fn programs_of_many_dies_fill_the_channel() {
    // Channel bound: dies * C >= C + tPROG. Data comes in without a gap; the last page's array work shows at the end.
    for dies in [21, 24, 32] {
        assert!(dies * DATA_IN >= PROGRAM_PAGE);
        assert_eq!(programs(1, dies as u32, 1, false), dies * ROUNDS * DATA_IN + PROGRAM, "{dies} dies");
    }
}

#[test]
fn programs_of_few_dies_keep_every_die_in_work() {
    // Die bound: dies * C <= C + tPROG. Each die goes round in C + tPROG; the last one starts (dies - 1) C late.
    for dies in [1, 2, 4, 16, 20] {
        assert!(dies * DATA_IN <= PROGRAM_PAGE);
        assert_eq!(programs(1, dies as u32, 1, false), (dies - 1) * DATA_IN + ROUNDS * PROGRAM_PAGE, "{dies} dies");
    }
}

#[test]
fn planes_multiply_program_throughput() {
    // A group of p planes: p C on the channel, one tPROG.
    for planes in [1, 2, 4] {
        let p = u64::from(planes);
        assert_eq!(programs(1, 1, planes, false), ROUNDS * (p * DATA_IN + PROGRAM), "{planes} planes, one die");
        assert_eq!(
            programs(1, 4, planes, false),
            3 * p * DATA_IN + ROUNDS * (p * DATA_IN + PROGRAM),
            "{planes} planes, four dies"
        );
    }
    let mut off = chips(1, 1, 2);
    off.multi_plane = MultiPlane::Off;
    let mut bench = Bench::new(&off);
    for page in 0..16 {
        bench.program(0, page);
        bench.program(4, page);
    }
    assert_eq!(bench.run(), 2 * ROUNDS * PROGRAM_PAGE, "without multi-plane a plane more is no help");
    assert_eq!(bench.flash.multi_plane().total(OpKind::Program), 0);
}

#[test]
fn what_ran_on_several_planes_at_once_is_counted() {
    let mut bench = Bench::new(&chips(1, 1, 2));
    for page in 0..16 {
        bench.program(0, page);
    }
    for page in 0..10 {
        bench.program(4, page);
    }
    bench.run();
    assert_eq!(bench.flash.counts().total(OpKind::Program), 26);
    assert_eq!(bench.flash.multi_plane().total(OpKind::Program), 20);
}

#[test]
fn planes_multiply_read_throughput() {
    for planes in [1, 2, 4] {
        let p = u64::from(planes);
        assert_eq!(reads(1, 1, planes), ROUNDS * (p * (COMMAND + TRANSFER) + READ));
    }
}

#[test]
fn cache_program_hides_the_channel_behind_the_array() {
    assert_eq!(programs(1, 1, 1, true), DATA_IN + ROUNDS * PROGRAM);
    assert_eq!(programs(1, 1, 2, true), 2 * DATA_IN + ROUNDS * PROGRAM);
    // Several dies: each has its next data in long before it needs it.
    for dies in [2, 8, 19] {
        assert!(dies * DATA_IN <= PROGRAM);
        assert_eq!(programs(1, dies as u32, 1, true), dies * DATA_IN + ROUNDS * PROGRAM);
    }
    // And where the channel is the limit it makes no difference.
    assert_eq!(programs(1, 32, 1, true), 32 * ROUNDS * DATA_IN + PROGRAM);
}

#[test]
fn erases_take_the_array_and_hardly_any_channel() {
    for (ways, planes) in [(1, 1), (4, 1), (1, 2), (8, 4)] {
        let mut bench = Bench::new(&chips(1, ways, planes));
        for block in 0..4 {
            for plane in 0..ways * planes {
                bench.erase(plane * 4 + block);
            }
        }
        let (p, dies) = (u64::from(planes), u64::from(ways));
        // All planes of a die erase together; the last die starts after the commands of the others.
        assert_eq!(bench.run(), (dies - 1) * p * COMMAND + 4 * (p * COMMAND + ERASE));
    }
}

#[test]
fn a_saturated_channel_is_never_idle_and_a_saturated_die_never_ready() {
    let mut bench = Bench::new(&chips(1, 32, 1));
    for page in 0..16 {
        for plane in 0..32 {
            bench.program(plane * 4, page);
        }
    }
    bench.run_until(512 * DATA_IN);
    assert_eq!(bench.flash.busy_at(Nanos(bench.now)).0, [Nanos(bench.now)]);
    let mut config = chips(1, 1, 1);
    config.cache_program = true;
    let mut bench = Bench::new(&config);
    for page in 0..16 {
        bench.program(0, page);
    }
    let end = bench.run();
    assert_eq!(bench.flash.busy().1, [Nanos(end - DATA_IN)]);
}

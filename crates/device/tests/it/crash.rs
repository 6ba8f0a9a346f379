//! Power cuts at any moment: what was made durable is there, nothing older comes back, and the drive works on.

use rand::RngExt;
use ssdlab_base::{Nanos, Op, Request, rng};
use ssdlab_device::{Allocation, DriveConfig, Level, Options};
use ssdlab_flash::Contents;
use ssdlab_torture::commands::Mix;
use ssdlab_torture::configs;
use ssdlab_torture::crash_harness::{CrashHarness, recovery_of};
use ssdlab_torture::seeds::{campaign, tell};

fn lives(config: &DriveConfig, seed: u64) -> CrashHarness {
    CrashHarness::new(config, Options { seed, contents: Contents::Stamps })
}

#[test]
fn whatever_was_durable_survives_power_cuts_at_random_moments() {
    campaign("crash", "whatever_was_durable_survives_power_cuts_at_random_moments", 1500, |seed| {
        let mut rng = rng(seed, "crash");
        let mut config = configs::random(&mut rng);
        config.timed = rng.random_bool(0.9);
        tell(&config);
        let mut lives = lives(&config, seed);
        // With one block in reserve a few torn pages are too much: such a drive may end as one that is only read.
        lives.oracle.may_end_read_only = config.gc.free_blocks < 3;
        let units = config.user_bytes / u64::from(config.ftl.mapping_unit);
        let mut mix = Mix::draw(&mut rng, &config);
        for _ in 0..rng.random_range(1..12) {
            let depth = configs::one_of(&mut rng, &[1, 2, 8, 32]);
            let count = rng.random_range(1..(units * 2).clamp(10, 300));
            lives.work(&mut mix, &mut rng, depth, count);
            for _ in 0..rng.random_range(0..30) {
                lives.step();
            }
            let again = rng.random_range(0..3);
            lives.cut(&mut rng, again);
        }
        lives.work(&mut mix, &mut rng, 8, 100);
        lives.drain();
        lives.compare();
    });
}

fn two_planes() -> DriveConfig {
    let mut config = configs::handful();
    config.flash.geometry.channels = 2;
    config.user_bytes = 4096;
    config
}

fn write(sector: u64, sectors: u64, tag: u32) -> Request {
    Request { tag, ..Request::new(Op::Write, sector, sectors) }
}

/// Zeroes written for the part of a unit that a trim covered went to the buffer under a number that the next flush did
/// not reach: the flush completed, the power went, and the old data was back.
#[test]
fn a_flush_covers_the_zeroes_of_a_partial_trim() {
    let mut config = two_planes();
    config.buffer.policy = "lru".to_string();
    let mut lives = lives(&config, 1);
    let requests = [
        write(0, 2, 0),
        Request { tag: 1, ..Request::new(Op::Flush, 0, 0) },
        Request { tag: 2, ..Request::new(Op::Trim, 1, 1) },
        Request { tag: 3, ..Request::new(Op::Flush, 0, 0) },
    ];
    for (stamp, request) in requests.iter().enumerate() {
        lives.submit(request, stamp as u64 + 1);
        lives.drain();
    }
    lives.cut_now();
    lives.compare();
}

/// A FUA write larger than the buffer makes room for its end with its own beginning. It waited only for what was
/// still in the buffer when all of it had come in, and completed while its beginning was on its way.
#[test]
fn a_forced_write_larger_than_the_buffer_waits_for_all_of_itself() {
    for policy in ["fifo", "lru"] {
        let mut config = two_planes();
        config.flash.timing.program[0].max = Nanos::from_us(5000);
        config.buffer.policy = policy.to_string();
        config.buffer.bytes = 3072;
        for seed in 1..40 {
            let mut lives = lives(&config, seed);
            lives.submit(&Request { fua: true, ..write(0, 8, 0) }, 1);
            lives.drain();
            lives.cut_now();
            lives.compare();
        }
    }
}

/// Garbage collection moved the record of a trim, and recovery took the record's new place in time for the time it
/// speaks of: units written between were dropped as trimmed.
#[test]
fn a_record_of_trims_that_was_moved_does_not_drop_what_was_written_since() {
    let mut config = configs::handful();
    config.user_bytes = 4096;
    config.flash.geometry.pages_per_block = 3;
    config.gc.victim = "fifo".to_string();
    config.flash.geometry.blocks_per_plane = 8;
    for rounds in 0..80 {
        let mut lives = lives(&config, 1);
        let mut tag = 0;
        let mut run = |lives: &mut CrashHarness, request: Request| {
            lives.submit(&Request { tag, ..request }, u64::from(tag) + 1);
            lives.drain();
            tag += 1;
        };
        run(&mut lives, write(0, 8, 0));
        run(&mut lives, Request::new(Op::Trim, 0, 2));
        run(&mut lives, Request::new(Op::Flush, 0, 0));
        for _ in 0..rounds % 5 {
            run(&mut lives, write(2, 2, 0));
        }
        run(&mut lives, write(0, 2, 0));
        // Overwriting another unit makes garbage collection go round, over the record as well.
        for _ in 0..rounds {
            run(&mut lives, write(2, 2, 0));
        }
        lives.cut_now();
        lives.compare();
    }
}

/// A unit is trimmed and flushed, and written again; another is trimmed and flushed while that write is still in flight.
/// The second record called the first unit mapped, so when the write was cut off, what had been there before both trims
/// came back. Each instant of the last flush is tried.
#[test]
fn a_write_that_is_cut_off_does_not_bring_back_what_was_trimmed_before_it() {
    for late in [100, 1_000, 10_000, 100_000, 200_000, 400_000, 500_000, 520_000, 540_000, 600_000, 900_000] {
        let mut config = two_planes();
        // Programs on the second channel take much longer, so the record overtakes the write.
        config.flash.timing.program[0].max = Nanos::from_us(5000);
        for seed in 1..60 {
            let mut lives = lives(&config, seed);
            let flush = Request::new(Op::Flush, 0, 0);
            let first = [write(0, 8, 0), Request::new(Op::Trim, 0, 2), flush];
            for (tag, request) in first.into_iter().enumerate() {
                lives.submit(&Request { tag: tag as u32, ..request }, tag as u64 + 1);
                lives.drain();
            }
            lives.submit(&write(0, 2, 3), 4);
            lives.submit(&Request { tag: 4, ..Request::new(Op::Trim, 2, 2) }, 5);
            lives.submit(&Request { tag: 5, ..flush }, 6);
            let until = lives.drive().now() + Nanos(late);
            lives.drive().run_until(until);
            lives.collect();
            lives.cut_now();
            lives.compare();
        }
    }
}

/// Writing zeroes with the force bit completed as soon as the unmapping was decided, in RAM alone.
#[test]
fn forced_zeroes_are_durable_when_they_complete() {
    for buffer in ["none", "lru"] {
        let mut config = two_planes();
        config.buffer.policy = buffer.to_string();
        let mut lives = lives(&config, 1);
        lives.submit(&Request { fua: true, ..write(0, 8, 0) }, 1);
        lives.drain();
        lives.submit(&Request { fua: true, tag: 1, ..Request::new(Op::WriteZeroes, 1, 6) }, 2);
        lives.drain();
        lives.cut_now();
        lives.compare();
    }
}

/// The first page of a block was torn, twice in a row: its number was never read, so the numbers given out after the
/// second power cut began below it, and numbers within a block no longer rose.
#[test]
fn numbers_rise_within_a_block_whose_first_page_was_torn_again_and_again() {
    let mut config = two_planes();
    config.ftl.allocation = Allocation::Static([Level::Channel, Level::Way, Level::Die, Level::Plane]);
    // With one block in reserve, torn pages alone fill the drive.
    config.flash.geometry.blocks_per_plane = 32;
    let mut lives = lives(&config, 1);
    for life in 0..4 {
        // Both channels, cut off; in the end only the second, which then gets the number that the first had before.
        if life < 3 {
            lives.submit(&write(0, 2, 0), 2 * life + 1);
            lives.submit(&write(2, 2, 1), 2 * life + 2);
            lives.drive().run_until(Nanos(200_000));
            lives.collect();
        } else {
            for tag in 0..2 {
                lives.submit(&write(2, 2, tag), 100 + u64::from(tag));
                lives.drain();
            }
        }
        lives.cut_now();
        lives.compare();
    }
    for tag in 0..40 {
        lives.submit(&write(u64::from(tag) % 4 * 2, 2, tag), 1000 + u64::from(tag));
        lives.drain();
    }
    lives.cut_now();
    lives.compare();
}

#[test]
fn the_power_may_go_during_recovery_again_and_again() {
    let (mut erases, mut cuts) = (0, 0);
    campaign("crash", "the_power_may_go_during_recovery_again_and_again", 300, |seed| {
        let mut rng = rng(seed, "recovery");
        let mut config = configs::random(&mut rng);
        config.gc.free_blocks = 3;
        config.flash.geometry.blocks_per_plane += 2;
        // Erases are what a power cut meets.
        config.flash.timing.erase.max = Nanos::from_us(100_000);
        config.flash.timing.erase.min = Nanos::from_us(10_000);
        tell(&config);
        let mut lives = lives(&config, seed);
        let units = config.user_bytes / u64::from(config.ftl.mapping_unit);
        let mut mix = Mix::draw(&mut rng, &config);
        for _ in 0..rng.random_range(1..8) {
            let count = rng.random_range(1..(units * 2).clamp(10, 300));
            lives.work(&mut mix, &mut rng, 32, count);
            let mut again = rng.random_range(0..6);
            lives.cut_in_recovery(|flash| {
                let (reads, torn) = recovery_of(flash);
                erases += torn;
                cuts += 1;
                again -= 1;
                (again >= 0).then(|| {
                    if rng.random_bool(0.2) { rng.random_range(0..=reads) } else { reads + rng.random_range(0..=torn) }
                })
            });
            lives.compare();
        }
        lives.work(&mut mix, &mut rng, 8, 100);
        lives.drain();
        lives.compare();
    });
    println!("{cuts} power cuts and {erases} torn blocks");
}

/// One life over and over: its power goes when erases are in flight, and then at each operation of recovery.
#[test]
fn every_power_cut_of_a_recovery_is_survived() {
    let mut config = configs::handful();
    config.flash.geometry.channels = 4;
    config.flash.geometry.blocks_per_plane = 8;
    config.flash.timing.erase.max = Nanos::from_us(20_000);
    config.flash.timing.erase.min = Nanos::from_us(20_000);
    config.gc.free_blocks = 3;
    config.user_bytes = 20 * 1024;
    config.ftl.allocation = Allocation::Static([Level::Channel, Level::Way, Level::Die, Level::Plane]);
    let mut most_erases = 0;
    for commands in 80..110 {
        for operations in 0.. {
            let mut lives = lives(&config, 1);
            for tag in 0..commands {
                lives.submit(&write(u64::from(tag * 7 % 20) * 2, 2, tag), u64::from(tag) + 1);
                while lives.drive().outstanding() >= 8 {
                    assert!(lives.step(), "commands complete");
                }
            }
            let into_erases = lives.drive().now() + Nanos::from_us(5000);
            lives.drive().run_until(into_erases);
            lives.collect();
            // Three times at this operation, once at each before it, and so on to the end.
            let mut rest = [operations; 3].into_iter().chain(0..operations);
            let mut first = None;
            lives.cut_in_recovery(|flash| {
                first.get_or_insert_with(|| recovery_of(flash));
                rest.next()
            });
            lives.compare();
            let (reads, torn) = first.expect("the power went");
            most_erases = most_erases.max(torn);
            if operations > reads + torn {
                break;
            }
        }
    }
    assert!(most_erases >= 3, "at most {most_erases} blocks were under erase");
}

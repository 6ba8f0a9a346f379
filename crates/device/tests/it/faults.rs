//! Faults by rate and by script, alone and with power cuts: the drive never returns wrong data, goes on, and ends as one
//! that is only read; it never panics and never hangs.

use rand::RngExt;
use ssdlab_base::{Op, Request, Rng, rng};
use ssdlab_device::{Drive, DriveConfig, Options, Status};
use ssdlab_flash::{BlockId, Contents, FaultKind, Faults, OpKind, ScriptedFault};
use ssdlab_torture::commands::Mix;
use ssdlab_torture::configs;
use ssdlab_torture::crash_harness::CrashHarness;
use ssdlab_torture::driver::{alone, assert_checks, settle, submit};
use ssdlab_torture::seeds::{campaign, tell};

fn rate(rng: &mut Rng, most: f64) -> f64 {
    if rng.random_bool(0.5) { 0.0 } else { rng.random_range(0.0..most) }
}

/// Faults of every kind, each switched off in half of the seeds.
fn faults(rng: &mut Rng, config: &DriveConfig) -> Faults {
    let blocks = config.flash.geometry.blocks();
    let kinds = [FaultKind::Read, FaultKind::Program, FaultKind::Erase, FaultKind::Factory];
    let script = (0..rng.random_range(0..6)).map(|_| ScriptedFault {
        kind: configs::one_of(rng, &kinds),
        block: BlockId(rng.random_range(0..blocks)),
        nth: rng.random_range(1..20),
    });
    let script = script.collect();
    Faults {
        program_failure: rate(rng, 0.03),
        erase_failure: rate(rng, 0.05),
        uncorrectable_read: rate(rng, 0.05),
        factory_bad: rate(rng, 0.05),
        endurance: rng.random_bool(0.3).then(|| rng.random_range(1..30)),
        script,
    }
}

/// A drive with faults that is accepted, with spare for a while.
fn faulty(rng: &mut Rng) -> Option<DriveConfig> {
    let mut config = configs::random(rng);
    config.gc.free_blocks = config.gc.free_blocks.max(3);
    config.flash.geometry.blocks_per_plane += rng.random_range(1..12);
    config.flash.faults = faults(rng, &config);
    let most = configs::most_user_units(&config)?;
    config.user_bytes = rng.random_range(1..=most) * u64::from(config.ftl.mapping_unit);
    Some(config)
}

fn lives(config: &DriveConfig, seed: u64) -> Option<CrashHarness> {
    let options = Options { seed, contents: Contents::Stamps };
    // With another seed other blocks are bad from the factory, and too few may be left.
    ssdlab_device::Drive::new(config, options).ok()?;
    let mut lives = CrashHarness::new(config, options);
    lives.oracle.faulty = true;
    lives.oracle.may_end_read_only = true;
    Some(lives)
}

#[test]
fn a_drive_with_faults_never_returns_wrong_data() {
    campaign("faults", "a_drive_with_faults_never_returns_wrong_data", 1000, |seed| {
        let mut rng = rng(seed, "faults");
        let Some(mut config) = faulty(&mut rng) else { return };
        config.timed = rng.random_bool(0.8);
        tell(&config);
        let Some(mut lives) = lives(&config, seed) else { return };
        let mut mix = Mix::draw(&mut rng, &config);
        let depth = configs::one_of(&mut rng, &[1, 4, 32]);
        let count = rng.random_range(100..2000);
        lives.work(&mut mix, &mut rng, depth, count);
        lives.drain();
        assert_checks(lives.drive());
        lives.work(&mut mix, &mut rng, depth, 200);
        lives.drain();
        lives.compare();
    });
}

#[test]
fn a_drive_with_faults_survives_power_cuts() {
    campaign("faults", "a_drive_with_faults_survives_power_cuts", 1000, |seed| {
        let mut rng = rng(seed, "faults and power cuts");
        let Some(mut config) = faulty(&mut rng) else { return };
        config.timed = rng.random_bool(0.9);
        tell(&config);
        let Some(mut lives) = lives(&config, seed) else { return };
        let units = config.user_bytes / u64::from(config.ftl.mapping_unit);
        let mut mix = Mix::draw(&mut rng, &config);
        for _ in 0..rng.random_range(1..10) {
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

/// Written until its blocks are worn out, a drive refuses writes with an error, and everything can still be read; also
/// after its power was cut, where it once could not be started at all.
#[test]
fn a_worn_out_drive_is_read_only_and_keeps_its_data() {
    for timed in [true, false] {
        for buffer in ["none", "lru"] {
            let mut config = configs::handful();
            config.flash.geometry.blocks_per_plane = 16;
            config.flash.geometry.channels = 2;
            config.gc.free_blocks = 3;
            config.user_bytes = 8 * 1024;
            config.flash.faults.endurance = Some(20);
            config.buffer.policy = buffer.to_string();
            config.timed = timed;
            let mut lives = lives(&config, 1).expect("an accepted drive");
            let mut tag = 0;
            while !lives.drive().is_read_only() {
                lives.submit(&Request { tag, ..Request::new(Op::Write, u64::from(tag * 7 % 16), 1) }, u64::from(tag));
                lives.drain();
                tag += 1;
                assert!(tag < 100_000, "the drive never wears out");
            }
            assert!(tag > 20 * 8, "worn out after {tag} writes");
            let refused = alone(lives.drive(), &Request::new(Op::Write, 0, 1), 1);
            assert_eq!(refused.status, Status::ReadOnly);
            for _ in 0..3 {
                lives.cut_now();
                assert!(lives.drive().is_read_only(), "spares do not grow back");
                lives.compare();
            }
        }
    }
}

/// Blocks of failed pages waited for each other: each held what the other's failed page had superseded, and was let go
/// only when nothing held the other. Commands hung, and neither block was ever erased.
#[test]
fn failed_pages_that_supersede_each_others_blocks_do_not_wait_in_a_circle() {
    campaign("faults", "failed_pages_that_supersede_each_others_blocks_do_not_wait_in_a_circle", 100, |seed| {
        let mut rng = rng(seed, "circle");
        let Some(mut config) = faulty(&mut rng) else { return };
        config.flash.faults = Faults { program_failure: 0.08, ..Faults::default() };
        config.buffer.policy = "none".to_string();
        tell(&config);
        let Some(mut lives) = lives(&config, seed) else { return };
        let mut mix = Mix::draw(&mut rng, &config).in_range();
        lives.work(&mut mix, &mut rng, 32, 400);
        lives.drain();
        assert_checks(lives.drive());
        lives.compare();
    });
}

/// A page failed after its unit had been trimmed; its write completed at once, since nothing was left to write again.
/// But the trim was in RAM alone, so after a power cut the version before that completed write was back.
#[test]
fn a_failed_page_that_was_trimmed_meanwhile_does_not_uncover_older_data() {
    let mut config = configs::handful();
    config.flash.geometry.blocks_per_plane = 20;
    config.gc.free_blocks = 3;
    config.user_bytes = 8 * 1024;
    // The second program of the first block.
    config.flash.faults.script = vec![ScriptedFault { kind: FaultKind::Program, block: BlockId(0), nth: 2 }];
    let mut lives = lives(&config, 1).expect("an accepted drive");
    lives.submit(&Request::new(Op::Write, 0, 2), 1);
    lives.drain();
    lives.submit(&Request { tag: 1, ..Request::new(Op::Write, 0, 2) }, 2);
    lives.submit(&Request { tag: 2, ..Request::new(Op::Trim, 0, 2) }, 3);
    lives.drain();
    lives.cut_now();
    lives.compare();
}

/// A block that had failed a program was to be emptied and retired, but only the RAM knew: after a power cut the block was
/// a frontier again, or was erased and used until it failed the next time.
#[test]
fn a_block_that_failed_a_program_is_retired_after_a_power_cut_too() {
    for timed in [true, false] {
        for snapshot in [false, true] {
            let mut config = configs::handful();
            config.flash.geometry.blocks_per_plane = 20;
            config.flash.geometry.pages_per_block = 4;
            config.gc.free_blocks = 3;
            config.user_bytes = 8 * 1024;
            config.timed = timed;
            config.flash.faults.script = vec![ScriptedFault { kind: FaultKind::Program, block: BlockId(0), nth: 3 }];
            let options = Options { seed: 1, contents: if snapshot { Contents::Nothing } else { Contents::Stamps } };
            let mut drive = Drive::new(&config, options).expect("an accepted drive");
            let write = |number: u32| Request { tag: number, ..Request::new(Op::Write, u64::from(number % 8) * 2, 2) };
            // The third page of the first block fails; the power goes before the block is empty, or (without time) is
            // retired before it could.
            (0..4).for_each(|number| submit(&mut drive, &write(number), 1));
            if timed {
                while drive.counters().flash.total(OpKind::Program) < 3 {
                    let next = drive.next_event().expect("programs are in flight");
                    drive.run_until(next);
                }
            }
            let mut flash = drive.power_cut();
            assert_eq!((flash.blocks.get(BlockId(0)).suspect, flash.blocks.get(BlockId(0)).bad), (true, !timed));
            let written = flash.blocks.get(BlockId(0)).programmed;
            for _ in 0..3 {
                drive = Drive::recover(&config, options, flash).expect("a drive comes back").0;
                flash = drive.power_cut();
                assert_eq!(
                    (flash.blocks.get(BlockId(0)).erases, flash.blocks.get(BlockId(0)).programmed),
                    (0, written)
                );
            }
            drive = Drive::recover(&config, options, flash).expect("a drive comes back").0;
            settle(&mut drive);
            if snapshot {
                let mut saved = Vec::new();
                drive.save(&mut saved).expect("an idle drive is saved");
                drive = Drive::restore(&config, options, &mut saved.as_slice()).expect("what was saved is restored");
            }
            for number in 0..200 {
                assert_eq!(alone(&mut drive, &write(number), 1).status, Status::Success);
            }
            assert_checks(&drive);
            let block = *drive.power_cut().blocks.get(BlockId(0));
            assert_eq!((block.bad, block.suspect, block.erases, block.programmed), (true, true, 0, written));
        }
    }
}

/// The program of a trim's record failed, and there was no room for the record but garbage collection's. That moved it
/// as anything else, so it was not counted as a record on its way any more: the flush completed while it was, the power
/// went, and what had been trimmed was back. How much room there is depends on how much was written before.
#[test]
fn a_failed_record_that_collection_moves_is_waited_for() {
    for design in ["page", "mvftl"] {
        for length in 0..24 {
            let mut config = configs::handful();
            config.flash.geometry.blocks_per_plane = 12;
            config.flash.geometry.pages_per_block = 1;
            config.gc.free_blocks = 3;
            config.user_bytes = 3 * 1024;
            config.ftl.design = design.to_string();
            let mut lives = lives(&config, 1).expect("an accepted drive");
            lives.drive().expect_faults();
            let mut stamp = 0;
            let mut run = |lives: &mut CrashHarness, op: Op, sector: u64, sectors: u64| {
                stamp += 1;
                let tag = stamp as u32;
                lives.submit(&Request { tag, ..Request::new(op, sector, sectors) }, stamp);
            };
            for _ in 0..length {
                run(&mut lives, Op::Write, 0, 2);
                lives.drain();
            }
            run(&mut lives, Op::Write, 2, 4);
            lives.drain();
            lives.drive().fail_next(FaultKind::Program, None);
            lives.drive().fail_next(FaultKind::Program, None);
            run(&mut lives, Op::Write, 0, 2);
            run(&mut lives, Op::Trim, 2, 2);
            run(&mut lives, Op::Flush, 0, 0);
            lives.drain();
            lives.cut_now();
            lives.compare();
        }
    }
}

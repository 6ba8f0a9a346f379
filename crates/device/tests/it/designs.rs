//! Every registered design beside the others: the same commands leave the same data, whatever is above and below.

use rand::RngExt;
use ssdlab_base::{Nanos, rng};
use ssdlab_device::{Allocation, Drive, DriveConfig, Level, Options, draw_design};
use ssdlab_flash::{Contents, Faults, SchedulerKind};
use ssdlab_torture::commands::Mix;
use ssdlab_torture::configs::{self, names};
use ssdlab_torture::crash_harness::CrashHarness;
use ssdlab_torture::driver::{assert_checks, read_all, run, settle};

/// What sectors hold after commands of `mix`, one at a time.
fn left_behind(config: &DriveConfig, contents: Contents, mix: &Mix, seed: u64) -> Vec<u64> {
    let mut drive = Drive::new(config, Options { seed, contents }).expect("an accepted drive");
    run(&mut drive, &mut mix.clone(), &mut rng(seed, "commands"), 1, 400);
    settle(&mut drive);
    assert_checks(&drive);
    let words: Vec<u64> = read_all(&mut drive).into_iter().map(|data| data.expect("no faults")).collect();
    // The stamp of a sector is in front.
    words.into_iter().step_by(drive.sector_data_bytes() / 8).collect()
}

#[test]
fn the_same_commands_leave_the_same_data_whatever_the_design_buffer_contents_and_time() {
    for seed in 1..=4 {
        let mut drawn = rng(seed, "designs");
        let base = configs::random(&mut drawn);
        let mut designs: Vec<DriveConfig> = Vec::new();
        for design in names("ftl.design") {
            for policy in names("buffer.policy") {
                let mut config = base.clone();
                config.flash.geometry.blocks_per_plane += 8;
                config.buffer.policy = policy.to_string();
                draw_design(&mut config, design, &mut drawn);
                designs.push(config);
            }
        }
        let whole = |config: &DriveConfig| Some(configs::most_user_units(config)? * u64::from(config.ftl.mapping_unit));
        let least = designs.iter().filter_map(whole).min().expect("a design that takes the drive");
        // Few sectors are written more often.
        let sectors = (least / 512).min(600);
        let mix = Mix::draw(&mut drawn, &DriveConfig { user_bytes: sectors * 512, ..base }).in_range();
        let mut expected: Option<Vec<u64>> = None;
        for mut config in designs {
            let Some(user_bytes) = whole(&config) else { continue };
            config.user_bytes = user_bytes;
            for timed in [true, false] {
                config.timed = timed;
                let contents = if timed { Contents::Stamps } else { Contents::Bytes };
                let mut found = left_behind(&config, contents, &mix, seed);
                assert!(found[sectors as usize..].iter().all(|stamp| *stamp == 0), "behind what was written");
                found.truncate(sectors as usize);
                let expected = expected.get_or_insert_with(|| found.clone());
                let told = format!("{}, {}, timed {timed}", config.ftl.design, config.buffer.policy);
                assert!(*expected == found, "seed {seed}: {told}: other data than that of the first");
            }
        }
    }
}

/// Program and erase failures, bad blocks from the factory, parts of units, trims, power cuts, and whatever else is drawn.
#[test]
fn every_design_works_with_every_scheduler_unit_page_size_victim_buffer_and_allocation_and_with_faults() {
    let schedulers = [
        SchedulerKind::Fifo,
        SchedulerKind::ReadsFirst,
        SchedulerKind::HostFirst { starvation: Nanos(100_000) },
        SchedulerKind::SingleFifo,
        SchedulerKind::InOrder,
    ];
    let levels = [Level::Plane, Level::Die, Level::Way, Level::Channel];
    let allocations = [Allocation::Static(levels), Allocation::RoundRobin(levels), Allocation::Dynamic];
    let (victims, buffers) = (names("gc.victim"), names("buffer.policy"));
    let most = victims.len().max(buffers.len()).max(8);
    for design in names("ftl.design") {
        let mut accepted = 0;
        for scheduler in schedulers {
            for number in 0..most {
                let seed = number as u64 + 1;
                let mut rng = rng(seed, "every scheduler");
                let mut config = configs::draw(&mut rng);
                config.flash.scheduler = scheduler;
                config.flash.geometry.page_bytes = [512, 1024, 4096, 8192][number % 4];
                config.ftl.mapping_unit = [512, config.flash.geometry.page_bytes][number / 4 % 2];
                config.ftl.allocation = allocations[(number + accepted) % allocations.len()];
                config.gc.victim = victims[number % victims.len()].to_string();
                config.buffer.policy = buffers[number % buffers.len()].to_string();
                config.buffer.bytes = config.buffer.bytes.max(u64::from(config.ftl.mapping_unit));
                config.gc.free_blocks = config.gc.free_blocks.max(3);
                config.flash.geometry.blocks_per_plane += 10;
                configs::set_superblock(&mut config);
                draw_design(&mut config, design, &mut rng);
                config.timed = number % 3 > 0;
                config.flash.faults =
                    Faults { program_failure: 0.005, erase_failure: 0.005, factory_bad: 0.02, ..Faults::default() };
                let Some(units) = configs::most_user_units(&config) else { continue };
                config.user_bytes = rng.random_range(units.div_ceil(2)..=units) * u64::from(config.ftl.mapping_unit);
                let options = Options { seed, contents: Contents::Stamps };
                // With another seed other blocks are bad from the factory, and the design may want a multiple of its own.
                if Drive::new(&config, options).is_err() {
                    continue;
                }
                accepted += 1;
                let mut lives = CrashHarness::new(&config, options);
                lives.oracle.faulty = true;
                lives.oracle.may_end_read_only = true;
                let mut mix = Mix::draw(&mut rng, &config);
                for _ in 0..2 {
                    lives.work(&mut mix, &mut rng, 16, 300);
                    lives.cut(&mut rng, 1);
                }
                lives.drain();
                assert_checks(lives.drive());
                lives.compare();
            }
        }
        println!("{design}: {accepted} of {} drives accepted", schedulers.len() * most);
        assert!(accepted >= most, "{design}: only {accepted} drives were accepted");
    }
}

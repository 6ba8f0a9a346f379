//! The drive against a model that knows only sectors, for every design and policy, on small and odd geometries.

use rand::RngExt;
use ssdlab_base::{Nanos, Op, Request, Rng, rng};
use ssdlab_device::{Allocation, Drive, DriveConfig, InterfaceKind, Level, Options, PlacementConfig, Status};
use ssdlab_flash::Contents;
use ssdlab_torture::commands::Mix;
use ssdlab_torture::configs::{self, names};
use ssdlab_torture::driver::{assert_checks, read_all, run, settle, submit};
use ssdlab_torture::journal::Journal;
use ssdlab_torture::seeds::{campaign, tell};

fn fresh(config: &DriveConfig, seed: u64) -> Drive {
    Drive::new(config, Options { seed, contents: Contents::Stamps }).expect("an accepted drive")
}

/// How many commands it takes to write a drive over a few times, within reason.
fn commands_for(rng: &mut Rng, config: &DriveConfig) -> u64 {
    let units = config.user_bytes / u64::from(config.ftl.mapping_unit);
    rng.random_range(50..(units * 6).clamp(200, 3000))
}

fn verified_run(config: &DriveConfig, seed: u64, depth: u64) -> (Journal, Vec<u64>) {
    let mut rng = rng(seed, "commands");
    let mut drive = fresh(config, seed);
    let mut mix = Mix::draw(&mut rng, config);
    let count = commands_for(&mut rng, config);
    let journal = run(&mut drive, &mut mix, &mut rng, depth, count);
    let sector_data = journal.replay(drive.user_sectors());
    assert_checks(&drive);
    settle(&mut drive);
    assert_checks(&drive);
    let found: Vec<u64> = read_all(&mut drive).into_iter().map(|data| data.expect("no faults")).collect();
    assert_eq!(found, sector_data, "what the drive holds at the end");
    (journal, sector_data)
}

#[test]
fn every_read_sees_exactly_what_the_commands_before_it_left() {
    campaign("oracle", "every_read_sees_exactly_what_the_commands_before_it_left", 2000, |seed| {
        let mut rng = rng(seed, "drive");
        let mut config = configs::random(&mut rng);
        config.timed = rng.random_bool(0.85);
        tell(&config);
        let depth = configs::one_of(&mut rng, &[1, 2, 8, 32, 32]);
        verified_run(&config, seed, depth);
    });
}

/// Nothing is left to chance here: each combination of what is registered is met at least once, timed and untimed.
#[test]
fn every_combination_of_registered_policies_keeps_data() {
    let cwdp = [Level::Channel, Level::Way, Level::Die, Level::Plane];
    let pdwc = [Level::Plane, Level::Die, Level::Way, Level::Channel];
    let allocations = [
        Allocation::Static(cwdp),
        Allocation::Static(pdwc),
        Allocation::RoundRobin(cwdp),
        Allocation::RoundRobin(pdwc),
        Allocation::Dynamic,
    ];
    let mut seed = 0;
    for design in names("ftl.design") {
        for victim in names("gc.victim") {
            for policy in names("buffer.policy") {
                for allocation in allocations {
                    for timed in [true, false] {
                        seed += 1;
                        let mut rng = rng(seed, "combinations");
                        let mut config = configs::random(&mut rng);
                        config.gc.victim = victim.to_string();
                        config.buffer.policy = policy.to_string();
                        config.ftl.allocation = allocation;
                        configs::set_superblock(&mut config);
                        ssdlab_device::draw_design(&mut config, design, &mut rng);
                        config.timed = timed;
                        let Some(units) = configs::most_user_units(&config) else { continue };
                        config.user_bytes = units * u64::from(config.ftl.mapping_unit);
                        verified_run(&config, seed, 32);
                    }
                }
            }
        }
    }
    assert!(seed >= 150, "{seed} combinations");
}

#[test]
fn one_command_at_a_time_leaves_the_same_data_with_and_without_time() {
    campaign("oracle", "one_command_at_a_time_leaves_the_same_data_with_and_without_time", 150, |seed| {
        let mut rng = rng(seed, "differential");
        let mut config = configs::random(&mut rng);
        tell(&config);
        let (_, timed) = verified_run(&config, seed, 1);
        config.timed = false;
        let (_, untimed) = verified_run(&config, seed, 1);
        assert_eq!(timed, untimed);
    });
}

#[test]
fn the_same_seed_gives_the_same_completions_to_the_nanosecond() {
    campaign("oracle", "the_same_seed_gives_the_same_completions_to_the_nanosecond", 150, |seed| {
        let config = configs::random(&mut rng(seed, "determinism"));
        tell(&config);
        let (first, _) = verified_run(&config, seed, 16);
        let (second, _) = verified_run(&config, seed, 16);
        assert_eq!(first.completed, second.completed);
    });
}

/// Numbers near the end of 64 bits once wrapped around: `sector + sectors` looked small, and a release build then
/// reserved memory for them.
#[test]
fn absurd_ranges_are_refused_and_change_nothing() {
    let mut config = configs::handful();
    config.user_bytes = 4096;
    let mut drive = fresh(&config, 1);
    let sectors = drive.user_sectors();
    let ranges =
        [(u64::MAX, 1), (u64::MAX, u64::MAX), (1, u64::MAX), (sectors, 1), (0, sectors + 1), (1 << 63, 1 << 63)];
    for op in [Op::Read, Op::Write, Op::Trim, Op::WriteZeroes] {
        for (sector, count) in ranges {
            let request = Request::new(op, sector, count);
            drive.prefetch(&[request]);
            submit(&mut drive, &request, 7);
            let completion = drive.completions().pop().expect("refused at once");
            assert_eq!(completion.status, Status::OutOfRange, "{request:?}");
        }
    }
    assert_eq!(drive.outstanding(), 0);
    assert!(read_all(&mut drive).iter().all(|data| *data == Ok(0)));
}

/// A command for an idle queue once waited behind another queue's backlog: whatever waited anywhere on the host's side
/// held up all queues.
#[test]
fn a_queue_with_room_does_not_wait_for_one_without() {
    let mut config = configs::handful();
    config.user_bytes = 4096;
    config.interface.kind = InterfaceKind::Nvme;
    (config.interface.queues, config.interface.queue_depth) = (2, 1);
    let mut drive = fresh(&config, 1);
    for (tag, queue) in [(0, 0), (1, 0), (2, 1)] {
        let request = Request { tag, queue, ..Request::new(if queue == 0 { Op::Write } else { Op::Read }, 0, 2) };
        submit(&mut drive, &request, u64::from(tag) + 1);
    }
    assert!(drive.run_to_completion(Nanos::MAX));
    assert_eq!(drive.completions()[0].tag, 2, "the read finds its data in the controller at once");
}

/// Relocation and the host share one frontier here, and one block is kept back for relocation. Once the job had opened
/// that block the host's writes went into it too, until neither could go on: the drive stopped for good.
#[test]
fn the_host_leaves_relocation_the_pages_it_was_promised() {
    campaign("oracle", "the_host_leaves_relocation_the_pages_it_was_promised", 200, |seed| {
        let mut rng = rng(seed, "shared frontier");
        let mut config = configs::random(&mut rng);
        config.ftl.separate_gc_frontier = false;
        config.gc.free_blocks = 2;
        config.gc.victim = "random".to_string();
        config.ftl.streams = 1;
        config.placement = PlacementConfig::default();
        config.buffer.policy = "none".to_string();
        let geometry = &mut config.flash.geometry;
        (geometry.channels, geometry.chips_per_channel, geometry.dies_per_chip) = (1, 1, 1);
        (geometry.planes_per_die, geometry.pages_per_block, geometry.blocks_per_plane) = (1, 16, 10);
        let Some(units) = configs::most_user_units(&config) else { return };
        config.user_bytes = units * u64::from(config.ftl.mapping_unit);
        tell(&config);
        verified_run(&config, seed, 32);
    });
}

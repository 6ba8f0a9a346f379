//! Garbage collection never runs out of blocks: a drive is either refused, or takes many capacities of the worst there
//! is without one failed command.

use rand::RngExt;
use ssdlab_base::{Nanos, Op, Request, Rng, rng};
use ssdlab_device::{Drive, DriveConfig, Options, Status};
use ssdlab_flash::Contents;
use ssdlab_torture::configs;
use ssdlab_torture::driver::{assert_checks, submit};
use ssdlab_torture::seeds::{campaign, tell};

/// Workloads, each of them the worst case of some drive.
#[derive(Clone, Copy, Debug)]
enum Workload {
    Uniform,
    OneHotUnit,
    Sequential,
    Partial,
    Trims,
    Mixed,
}

fn request(rng: &mut Rng, workload: Workload, config: &DriveConfig, number: u64) -> Request {
    let per_unit = u64::from(config.ftl.mapping_unit) / 512;
    let sectors = config.user_bytes / 512;
    let units = sectors / per_unit;
    let any = rng.random_range(0..units) * per_unit;
    let write = |sector, count| Request::new(Op::Write, sector, count);
    let request = match workload {
        Workload::Uniform => write(any, per_unit),
        Workload::OneHotUnit => write(if number < units { number * per_unit } else { 0 }, per_unit),
        Workload::Sequential => write(number % units * per_unit, per_unit),
        Workload::Partial => write(rng.random_range(0..sectors), 1),
        Workload::Trims if number % 3 == 2 => {
            let length = rng.random_range(1..=sectors - any);
            Request::new(Op::Trim, any, length.min(per_unit * 4))
        }
        Workload::Trims => write(any, per_unit),
        Workload::Mixed => match rng.random_range(0..10) {
            0 => Request::new(Op::Trim, rng.random_range(0..sectors), 1),
            1 => Request::new(Op::Flush, 0, 0),
            _ => write(any, (per_unit * rng.random_range(1..=3)).min(sectors - any)),
        },
    };
    let stream = rng.random_range(0..config.ftl.streams as u16);
    Request { stream, ..request }
}

fn overwrite(config: &DriveConfig, seed: u64, workload: Workload, capacities: u64) {
    let mut rng = rng(seed, "workload");
    let mut drive =
        Drive::new(config, Options { seed, contents: Contents::Nothing }).expect("the drive was accepted before");
    let units = config.user_bytes / u64::from(config.ftl.mapping_unit);
    let depth = rng.random_range(1..=32);
    for number in 0..units * capacities {
        submit(&mut drive, &request(&mut rng, workload, config, number), 0);
        while drive.outstanding() >= depth {
            assert!(drive.run_to_completion(Nanos::MAX), "{workload:?}: commands never complete");
            for completion in drive.completions().drain(..) {
                assert_eq!(completion.status, Status::Success, "{workload:?}, request {number}: {completion:?}");
            }
        }
    }
    drive.run_until(Nanos(drive.now().0 + 3_600_000_000_000));
    assert_eq!(drive.outstanding(), 0, "{workload:?}: all commands complete");
    assert!(drive.completions().iter().all(|completion| completion.status == Status::Success));
    assert!(!drive.is_read_only());
    assert_checks(&drive);
}

#[test]
fn an_accepted_drive_never_runs_out_of_blocks() {
    campaign("oracle_space", "an_accepted_drive_never_runs_out_of_blocks", 250, |seed| {
        let mut rng = rng(seed, "space");
        let mut config = configs::random(&mut rng);
        // As full as is accepted: one unit more would be refused.
        let Some(most) = configs::most_user_units(&config) else { return };
        config.user_bytes = most * u64::from(config.ftl.mapping_unit);
        config.timed = rng.random_bool(0.5);
        tell(&config);
        use Workload::{Mixed, OneHotUnit, Partial, Sequential, Trims, Uniform};
        let workload = configs::one_of(&mut rng, &[Uniform, OneHotUnit, Sequential, Partial, Trims, Mixed]);
        overwrite(&config, seed, workload, 12);
    });
}

/// Records of trims take pages too: with units of 512 bytes a record speaks for 2 MiB only, so there are several.
#[test]
fn records_of_trims_do_not_eat_what_relocation_needs() {
    campaign("oracle_space", "records_of_trims_do_not_eat_what_relocation_needs", 12, |seed| {
        let mut rng = rng(seed, "records");
        let mut config = configs::random(&mut rng);
        config.ftl.mapping_unit = 512;
        let geometry = &mut config.flash.geometry;
        (geometry.channels, geometry.chips_per_channel, geometry.dies_per_chip) = (2, 1, 1);
        geometry.planes_per_die = 2;
        geometry.page_bytes = configs::one_of(&mut rng, &[512, 1024, 4096]);
        geometry.pages_per_block = 16;
        geometry.blocks_per_plane = 12 << 20 >> 11 >> (geometry.page_bytes / 512).ilog2() >> 4 << 1;
        config.buffer.policy = "none".to_string();
        config.timed = rng.random_bool(0.5);
        let Some(most) = configs::most_user_units(&config) else { return };
        config.user_bytes = most * 512;
        tell(&config);
        overwrite(&config, seed, Workload::Trims, 3);
    });
}

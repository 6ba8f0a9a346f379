//! A saved drive goes on as the original does, and damaged bytes are an error.

use rand::RngExt;
use ssdlab_base::{Nanos, Op, Request, Rng, rng};
use ssdlab_device::{Drive, DriveConfig, Options};
use ssdlab_flash::Contents;
use ssdlab_torture::configs;
use ssdlab_torture::driver::{assert_checks, run_out, settle, submit};
use ssdlab_torture::seeds::{campaign, tell};

const CONTENTS: Contents = Contents::Nothing;

fn age(drive: &mut Drive, rng: &mut Rng, requests: u64) {
    let sectors = drive.user_sectors();
    for number in 0..requests {
        let sector = rng.random_range(0..sectors);
        let length = rng.random_range(1..=(sectors - sector).min(20));
        let op = match rng.random_range(0..12) {
            0 => Op::Trim,
            1 => Op::Read,
            _ => Op::Write,
        };
        submit(drive, &Request { tag: number as u32, ..Request::new(op, sector, length) }, 0);
        while drive.outstanding() > 4 {
            assert!(drive.run_to_completion(Nanos::MAX));
            drive.completions().clear();
        }
    }
    run_out(drive);
    // Only what has completed is covered.
    submit(drive, &Request::new(Op::Flush, 0, 0), 0);
    run_out(drive);
    settle(drive);
}

fn aged(config: &DriveConfig, seed: u64, rng: &mut Rng) -> Drive {
    let mut drive = Drive::new(config, Options { seed, contents: CONTENTS }).expect("an accepted drive");
    let units = config.user_bytes / u64::from(config.ftl.mapping_unit);
    age(&mut drive, rng, (units * 4).min(2000));
    drive.reset_statistics();
    drive
}

#[test]
fn a_restored_drive_does_what_the_original_does() {
    campaign("oracle_snapshot", "a_restored_drive_does_what_the_original_does", 150, |seed| {
        let mut rng = rng(seed, "snapshot");
        let mut config = configs::random(&mut rng);
        config.timed = rng.random_bool(0.7);
        tell(&config);
        let mut original = aged(&config, seed, &mut rng);
        let mut bytes = Vec::new();
        original.save(&mut bytes).expect("an idle drive is saved");
        let options = Options { seed: seed + 1, contents: CONTENTS };
        let mut restored = Drive::restore(&config, options, &mut bytes.as_slice()).expect("what was saved is restored");
        assert_checks(&restored);
        original.reseed(options);
        let mut again = Vec::new();
        restored.save(&mut again).expect("an idle drive is saved");
        assert!(bytes == again, "a restored drive saves the same bytes");
        let requests = rng.random_range(50..600);
        for drive in [&mut original, &mut restored] {
            age(drive, &mut ssdlab_base::rng(seed, "after"), requests);
            assert_checks(drive);
        }
        assert_eq!(original.counters(), restored.counters());
        assert_eq!(original.now(), restored.now());
        assert_eq!(original.erase_counts(), restored.erase_counts());
    });
}

/// Whatever is read back is either refused with an error or is a drive that works.
#[test]
fn damaged_bytes_give_an_error_or_a_drive_that_works() {
    let mut refused = 0;
    let mut tried = 0;
    campaign("oracle_snapshot", "damaged_bytes_give_an_error_or_a_drive_that_works", 60, |seed| {
        let mut rng = rng(seed, "damage");
        let config = configs::random(&mut rng);
        tell(&config);
        let mut drive = aged(&config, seed, &mut rng);
        let mut bytes = Vec::new();
        drive.save(&mut bytes).expect("an idle drive is saved");
        for _ in 0..60 {
            let mut damaged = bytes.clone();
            match rng.random_range(0..4) {
                0 => damaged.truncate(rng.random_range(0..bytes.len())),
                1 => {
                    let at = rng.random_range(0..bytes.len());
                    damaged[at] ^= 1 << rng.random_range(0..8);
                }
                2 => {
                    let at = rng.random_range(0..bytes.len());
                    let to = (at + rng.random_range(1..16)).min(bytes.len());
                    damaged[at..to].fill(configs::one_of(&mut rng, &[0, 0xff, 0x7f]));
                }
                _ => {
                    let from = rng.random_range(0..bytes.len());
                    let length = rng.random_range(1..64).min(bytes.len() - from);
                    let to = rng.random_range(0..=bytes.len() - length);
                    damaged.copy_within(from..from + length, to);
                }
            }
            tried += 1;
            let options = Options { seed, contents: CONTENTS };
            match Drive::restore(&config, options, &mut damaged.as_slice()) {
                Err(_) => refused += 1,
                Ok(mut drive) => {
                    age(&mut drive, &mut rng, 60);
                    assert_checks(&drive);
                }
            }
        }
    });
    println!("{refused} of {tried} damaged states were refused");
}

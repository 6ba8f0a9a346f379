//! Parity of stripes: what it costs, and that any one page of a stripe can be lost.

use rand::RngExt;
use ssdlab_base::{Nanos, Op, Request, rng};
use ssdlab_device::{Data, Description, Drive, DriveConfig, Options, Parity, Status, Superblock};
use ssdlab_flash::{BlockId, Cause, Contents, FaultKind, OpKind};
use ssdlab_torture::commands::Mix;
use ssdlab_torture::configs;
use ssdlab_torture::crash_harness::CrashHarness;
use ssdlab_torture::driver::{assert_checks, settle};
use ssdlab_torture::seeds::{campaign, tell};

use crate::timing_support::{self, Host, READ_PAGE, TRANSFER};

const NOTHING: Options = Options { seed: 1, contents: Contents::Nothing };

fn drive(text: &str) -> DriveConfig {
    Description::parse(text, "drive.toml").and_then(|description| description.resolve()).expect("a drive")
}

/// 1024 superblocks with 64 pages of data each, whatever their planes, the pages of their blocks and their parity.
fn thousand(geometry: [u32; 4], victim: &str, ftl: &str) -> DriveConfig {
    let [channels, dies, planes, pages] = geometry;
    drive(&format!(
        "[flash]\nchannels = {channels}\nchips_per_channel = 1\ndies_per_chip = {dies}\nplanes_per_die = {planes}\n\
         blocks_per_plane = 1024\npages_per_block = {pages}\npage_size = \"4k\"\ntiming = \"none\"\n\
         [capacity]\nuser = {}\n[ftl]\n{ftl}\n[gc]\nvictim = \"{victim}\"\nfree_blocks = 3\n",
        56_987_u64 * 4096
    ))
}

fn overwritten(config: &DriveConfig) -> Drive {
    let mut drive = Drive::new(config, NOTHING).expect("an accepted drive");
    let pages = config.user_bytes / 4096;
    let mut rng = rng(7, "parity");
    for write in 0..6 * pages {
        let lpn = if write < pages { write } else { rng.random_range(0..pages) };
        drive.submit(&Request::new(Op::Write, lpn * 8, 8));
        drive.completions().clear();
    }
    assert_checks(&drive);
    drive
}

/// A drive with parity decides as one of the same data pages without: the programs of data are the same to the last one and
/// the effective spare is the same, so closed forms hold for parity as they do for blocks. Parity comes on top, a page for
/// every stripe that was filled, and is counted by itself.
#[test]
fn parity_is_taken_from_the_spare_and_is_a_cause_of_its_own() {
    const PAGE: &str = "parity = \"page\"";
    for victim in ["greedy", "cost-benefit", "fifo"] {
        let plain = overwritten(&thousand([1, 1, 1, 64], victim, ""));
        let spare = plain.over_provisioning();
        let programs = plain.counters().flash.total(OpKind::Program);
        for (geometry, superblock, parity, stripe) in [
            ([1, 1, 5, 16], "die", PAGE, 4),
            ([3, 1, 3, 8], "drive", PAGE, 8),
            ([1, 3, 2, 16], "drive", "parity = \"die\"", 2),
            ([5, 1, 2, 8], "drive", "parity = \"die\"", 4),
        ] {
            let ftl = format!("superblock = \"{superblock}\"\n{parity}");
            let drive = overwritten(&thousand(geometry, victim, &ftl));
            let counts = drive.counters().flash;
            let parity = counts.get(OpKind::Program, Cause::Parity);
            let data = counts.total(OpKind::Program) - parity;
            assert_eq!(data, programs, "{victim}, {geometry:?}, {ftl}");
            // Two frontiers may be in the middle of a stripe.
            let stripes = data / stripe;
            assert!((stripes - 2..=stripes).contains(&parity), "{parity} pages of parity for {data} of data, {ftl}");
            assert_eq!(drive.over_provisioning().effective, spare.effective, "{ftl}");
            let physical = drive.config().flash.geometry.bytes() as f64;
            let user = drive.config().user_bytes as f64;
            assert!(
                (drive.over_provisioning().nominal - (physical / user - 1.0)).abs() < 1e-12,
                "the nominal spare is of all pages"
            );
        }
    }
}

/// A drive with parity in which reads can fail at any time.
fn protected(rng: &mut ssdlab_base::Rng) -> Option<DriveConfig> {
    let mut config = configs::random(rng);
    config.gc.free_blocks = config.gc.free_blocks.max(3);
    config.flash.geometry.blocks_per_plane += 4;
    let geometry = config.flash.geometry;
    if config.ftl.superblock == Superblock::None
        || config.ftl.superblock == Superblock::Die && geometry.planes_per_die == 1
    {
        return None;
    }
    let wide = config.ftl.superblock == Superblock::Drive && geometry.dies() > 1;
    config.ftl.parity = if wide && rng.random_bool(0.5) { Parity::Die } else { Parity::Page };
    if geometry.planes() == 1 {
        return None;
    }
    let most = configs::most_user_units(&config)?;
    config.user_bytes = rng.random_range(1..=most) * u64::from(config.ftl.mapping_unit);
    Some(config)
}

/// Reads fail one after another, of the host, of read-modify-writes and of collection, in every stage of a stripe, and no
/// command ends with an error: every page was had from the rest of its stripe, and it was the right one.
#[test]
fn reads_that_fail_one_at_a_time_lose_nothing() {
    let (mut drives, mut rebuilt, mut reads) = (0, 0, 0);
    campaign("parity", "reads_that_fail_one_at_a_time_lose_nothing", 400, |seed| {
        let mut rng = rng(seed, "parity");
        let Some(mut config) = protected(&mut rng) else { return };
        config.timed = rng.random_bool(0.8);
        tell(&config);
        let options = Options { seed, contents: Contents::Stamps };
        let mut lives = CrashHarness::new(&config, options);
        lives.drive().expect_faults();
        let mut mix = Mix::draw(&mut rng, &config);
        let depth = configs::one_of(&mut rng, &[1, 4, 32]);
        let mut asked = 0;
        drives += 1;
        for _ in 0..rng.random_range(20..200) {
            // One at a time: the one before was rebuilt.
            if lives.drive().counters().rebuilt_pages == asked {
                lives.drive().fail_next(FaultKind::Read, None);
                asked += 1;
            }
            lives.work(&mut mix, &mut rng, depth, 10);
        }
        lives.drain();
        lives.compare();
        settle(lives.drive());
        let counters = lives.drive().counters();
        assert!(asked - counters.rebuilt_pages <= 1, "{} of {asked} pages rebuilt", counters.rebuilt_pages);
        assert_eq!(counters.grown_bad_blocks, 0, "a read that failed costs no block");
        rebuilt += counters.rebuilt_pages;
        reads += counters.flash.get(OpKind::Read, Cause::Rebuild);
    });
    println!("{drives} drives, {rebuilt} pages rebuilt with {reads} reads");
    if std::env::var("SSDLAB_SEED").is_err() {
        assert!(
            drives > 50 && rebuilt > 20 * drives && reads > rebuilt,
            "{drives} drives, {rebuilt} pages, {reads} reads"
        );
    }
}

/// Every page of a full drive with real bytes fails once; what is read is what was written.
#[test]
fn every_page_of_a_full_drive_can_be_lost() {
    for (superblock, parity) in [("die", "page"), ("drive", "page"), ("drive", "die")] {
        for timing in ["timing = \"none\"", "cell = \"tlc\""] {
            let config = drive(&format!(
                "[flash]\nchannels = 2\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 2\n{timing}\n\
                 blocks_per_plane = 20\npages_per_block = 4\npage_size = \"4k\"\n[capacity]\nuser = \"256k\"\n\
                 [ftl]\nsuperblock = \"{superblock}\"\nparity = \"{parity}\"\nmapping_unit = \"2k\"\n"
            ));
            let options = Options { seed: 1, contents: Contents::Bytes };
            let mut drive = Drive::new(&config, options).expect("an accepted drive");
            let mut rng = rng(3, "bytes");
            let bytes: Vec<u8> = (0..256 << 10).map(|_| rng.random()).collect();
            drive.expect_faults();
            drive.submit_with(&Request::new(Op::Write, 0, 512), Data::Bytes(&bytes));
            drive.run_until(Nanos::from_ms(1000));
            settle(&mut drive);
            drive.completions().clear();
            for page in 0..64 {
                drive.fail_next(FaultKind::Read, None);
                drive.submit(&Request { at: drive.now(), ..Request::new(Op::Read, page * 8, 8) });
                while drive.outstanding() > 0 {
                    assert!(drive.run_to_completion(Nanos::MAX), "a read completes");
                }
                let completion = drive.completions().pop().expect("it has completed");
                assert_eq!(completion.status, Status::Success, "{superblock}, {parity}, page {page}");
                let read = drive.read_data().pop().expect("a read brings data").1;
                assert!(read == bytes[page as usize * 4096..][..4096], "{superblock}, {parity}, page {page}");
            }
            assert_eq!(drive.counters().rebuilt_pages, 64, "{superblock}, {parity}");
            assert_checks(&drive);
        }
    }
}

/// Two pages of one stripe are one too many, and the host hears of it.
#[test]
fn two_lost_pages_of_a_stripe_are_an_error() {
    let config = drive(
        "[flash]\nchannels = 2\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 2\ntiming = \"none\"\n\
         blocks_per_plane = 12\npages_per_block = 4\npage_size = \"4k\"\n[capacity]\nuser = \"256k\"\n\
         [ftl]\nsuperblock = \"drive\"\nparity = \"page\"\n",
    );
    let mut drive = Drive::new(&config, Options { seed: 1, contents: Contents::Stamps }).expect("an accepted drive");
    drive.expect_faults();
    drive.submit_with(&Request::new(Op::Write, 0, 512), Data::Stamp(9));
    drive.completions().clear();
    for (fails, status) in [(1, Status::Success), (2, Status::UncorrectableRead)] {
        for _ in 0..fails {
            drive.fail_next(FaultKind::Read, None);
        }
        drive.submit(&Request::new(Op::Read, 0, 8));
        assert_eq!(drive.completions().pop().expect("it has completed").status, status, "{fails} reads fail");
        drive.read_data().clear();
    }
}

/// The failed read, then the others of the stripe at the same time: each on its own die, one after another on a channel.
#[test]
fn a_rebuilt_read_takes_the_time_of_the_others() {
    for channels in [2_u32, 4] {
        for ways in [1_u32, 2] {
            let mut config = timing_support::drive(channels, ways, 1);
            config.ftl.superblock = Superblock::Drive;
            config.ftl.parity = Parity::Page;
            config.gc.copyback = false;
            config.user_bytes = 64 * 4096;
            let mut host = Host::new(&config);
            host.drive.expect_faults();
            let width = channels * ways;
            for page in 0..u64::from(width - 1) {
                host.write_page(page);
            }
            host.run();
            host.drive.fail_next(FaultKind::Read, None);
            let before = host.now();
            let tag = host.read_page(0);
            host.run();
            let took = host.end(tag).expect("it has completed") - before;
            // On a channel with as many of the others as it has dies tR is at the same time, and the data comes in turn.
            assert_eq!(took, READ_PAGE + READ_PAGE + u64::from(ways - 1) * TRANSFER, "{channels} x {ways}");
            assert_eq!(host.drive.counters().flash.get(OpKind::Read, Cause::Rebuild), u64::from(width) - 1);
        }
    }
}

#[test]
fn what_cannot_work_is_refused() {
    let refusal = |dies: u32, planes: u32, ftl: &str| {
        let text = format!(
            "[flash]\nchannels = {dies}\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = {planes}\n\
             blocks_per_plane = 40\npages_per_block = 4\npage_size = \"4k\"\ncell = \"tlc\"\n[capacity]\nuser = \"100k\"\n\
             [ftl]\n{ftl}\n"
        );
        let description = Description::parse(&text, "drive.toml").expect("a description");
        match description.resolve() {
            Err(error) => error.to_string(),
            Ok(config) => Drive::new(&config, NOTHING).err().map_or_else(String::new, |error| error.to_string()),
        }
    };
    assert_eq!(refusal(2, 2, "superblock = \"drive\"\nparity = \"die\""), "");
    let alone = refusal(2, 2, "parity = \"page\"");
    assert!(alone.contains("ftl.parity") && alone.contains("superblocks of at least two planes"), "{alone}");
    let alone = refusal(2, 1, "superblock = \"die\"\nparity = \"page\"");
    assert!(alone.contains("superblocks of at least two planes"), "{alone}");
    let one = refusal(1, 2, "superblock = \"drive\"\nparity = \"die\"");
    assert!(one.contains("at least 2 dies (found 1)"), "{one}");
    let one = refusal(2, 2, "superblock = \"die\"\nparity = \"die\"");
    assert!(one.contains("it needs ftl.superblock = \"drive\" (found \"die\")"), "{one}");
    let unknown = refusal(2, 2, "superblock = \"die\"\nparity = \"raid\"");
    assert!(unknown.contains("found \"raid\", expected none, page or die"), "{unknown}");
}

/// A die is lost for good: nothing on it can be read, programmed or erased any more. With parity for each plane of a die the drive
/// still has everything that it acknowledged, before and after a power cut; it goes on taking writes for as long as it finds
/// superblocks, and then it is only read.
#[test]
fn a_drive_that_loses_a_die_loses_nothing() {
    let (mut drives, mut rebuilt) = (0, 0);
    campaign("parity", "a_drive_that_loses_a_die_loses_nothing", 400, |seed| {
        let mut rng = rng(seed, "dies");
        let Some(mut config) = protected(&mut rng) else { return };
        if config.ftl.parity != Parity::Die {
            return;
        }
        config.timed = rng.random_bool(0.8);
        tell(&config);
        let mut lives = CrashHarness::new(&config, Options { seed, contents: Contents::Stamps });
        lives.oracle.may_end_read_only = true;
        lives.drive().expect_faults();
        let mut mix = Mix::draw(&mut rng, &config);
        let depth = configs::one_of(&mut rng, &[1, 4, 32]);
        drives += 1;
        let count = rng.random_range(1..400);
        lives.work(&mut mix, &mut rng, depth, count);
        if rng.random_bool(0.5) {
            lives.drain();
        }
        let block = rng.random_range(0..config.flash.geometry.blocks());
        lives.drive().fail_next(FaultKind::Die, Some(BlockId(block)));
        let count = rng.random_range(0..200);
        lives.work(&mut mix, &mut rng, depth, count);
        lives.drain();
        // What is only read may have data in RAM that no flush brings to flash any more; without time that may be data of collection,
        // whose victims are erased at once.
        if config.timed && rng.random_bool(0.5) {
            lives.cut(&mut rng, 0);
            lives.work(&mut mix, &mut rng, depth, 50);
            lives.drain();
        }
        lives.compare();
        rebuilt += lives.drive().counters().rebuilt_pages;
    });
    println!("{drives} drives lost a die, {rebuilt} pages rebuilt");
    if std::env::var("SSDLAB_SEED").is_err() {
        assert!(drives > 20 && rebuilt > 5 * drives, "{drives} drives, {rebuilt} pages");
    }
}

/// Without parity, or with a page of it for planes of several dies, a lost die takes data with it. The host hears of that, is told
/// nothing wrong, and the drive comes to its end as one that is only read.
#[test]
fn a_drive_without_parity_says_what_it_lost_with_a_die() {
    let (mut drives, mut unreadable) = (0, 0);
    campaign("parity", "a_drive_without_parity_says_what_it_lost_with_a_die", 200, |seed| {
        let mut rng = rng(seed, "dies without parity");
        let mut config = configs::random(&mut rng);
        config.gc.free_blocks = config.gc.free_blocks.max(3);
        config.flash.geometry.blocks_per_plane += 4;
        let Some(most) = configs::most_user_units(&config) else { return };
        config.user_bytes = rng.random_range(1..=most) * u64::from(config.ftl.mapping_unit);
        tell(&config);
        let mut lives = CrashHarness::new(&config, Options { seed, contents: Contents::Stamps });
        lives.oracle.may_end_read_only = true;
        lives.oracle.faulty = true;
        lives.drive().expect_faults();
        let mut mix = Mix::draw(&mut rng, &config);
        drives += 1;
        lives.work(&mut mix, &mut rng, 8, 200);
        let block = rng.random_range(0..config.flash.geometry.blocks());
        lives.drive().fail_next(FaultKind::Die, Some(BlockId(block)));
        lives.work(&mut mix, &mut rng, 8, 100);
        lives.drain();
        if config.timed && rng.random_bool(0.5) {
            lives.cut(&mut rng, 0);
        }
        lives.compare();
        unreadable += lives.oracle.unreadable;
    });
    if std::env::var("SSDLAB_SEED").is_err() {
        assert!(drives > 100 && unreadable > drives, "{drives} drives, {unreadable} sectors");
    }
}

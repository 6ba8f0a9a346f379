//! Which stream takes a unit: what placement policies see, what they win, and what a wrong one is told.

use rand::RngExt;
use ssdlab_base::{Nanos, Op, Request, Rng, rng};
use ssdlab_device::description::{idle_settings, to_toml};
use ssdlab_device::{Description, Drive, DriveConfig, Options};
use ssdlab_flash::{Contents, OpKind};

const OPTIONS: Options = Options { seed: 1, contents: Contents::Nothing };

fn config(sets: &[&str]) -> DriveConfig {
    let text = "[flash]\nchannels = 2\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
                blocks_per_plane = 256\npages_per_block = 64\npage_size = \"4k\"\ncell = \"slc\"\ntiming = \"none\"\n\
                [capacity]\nover_provisioning = \"20%\"\n[ftl]\nstreams = 2\n";
    let mut description = Description::parse(text, "placement.toml").expect("a description");
    sets.iter().for_each(|set| description.set(set).unwrap_or_else(|error| panic!("{error}")));
    description.resolve().unwrap_or_else(|error| panic!("{error}"))
}

fn drive(config: &DriveConfig) -> Drive {
    Drive::new(config, OPTIONS).expect("an accepted drive")
}

fn write(drive: &mut Drive, unit: u64) {
    drive.submit(&Request { at: drive.now(), ..Request::new(Op::Write, unit * 8, 8) });
    while drive.outstanding() > 0 {
        assert!(drive.run_to_completion(Nanos::MAX), "a write completes");
    }
    drive.completions().clear();
}

/// A drawn unit; the hottest tenth of all units takes so many percent of the writes.
fn skewed(units: u64, percent: u32, rng: &mut Rng) -> u64 {
    let hot = units / 10;
    if rng.random_range(0..100) < percent { rng.random_range(0..hot) } else { rng.random_range(hot..units) }
}

/// Programs for each page written, once the drive has been overwritten often enough.
fn write_amplification(config: &DriveConfig, percent: u32) -> f64 {
    let mut drive = drive(config);
    let (units, mut rng) = (drive.user_sectors() / 8, rng(1, "placement"));
    (0..units).for_each(|unit| write(&mut drive, unit));
    (0..4 * units).for_each(|_| write(&mut drive, skewed(units, percent, &mut rng)));
    drive.reset_statistics();
    (0..4 * units).for_each(|_| write(&mut drive, skewed(units, percent, &mut rng)));
    drive.check().into_iter().for_each(|check| assert!(check.passed, "{}: {}", check.name, check.detail));
    drive.counters().flash.total(OpKind::Program) as f64 / (4 * units) as f64
}

#[test]
fn parting_what_dies_young_lowers_write_amplification_under_skew_and_costs_nothing_without() {
    let of = |policy: &str, percent, sets: &[&str]| {
        let policy = format!("placement.policy={policy}");
        write_amplification(&config(&[&[policy.as_str()][..], sets].concat()), percent)
    };
    let shared = ["gc.victim=cost-benefit", "ftl.separate_gc_frontier=false"];
    for more in [&[][..], &["ftl.superblock=drive"], &["ftl.design=dftl", "ftl.map_cache=100%"]] {
        let sets = [&shared[..], more].concat();
        let (plain, parted) = (of("stream-hint", 90, &sets), of("recency", 90, &sets));
        assert!(parted < 0.65 * plain, "{sets:?}: {parted} with hot data apart, {plain} without");
    }
    // Where relocation has a frontier of its own, most of what is cold is apart already.
    let (plain, parted) = (of("stream-hint", 90, &shared[..1]), of("recency", 90, &shared[..1]));
    assert!(parted < 0.95 * plain, "{parted} with hot data apart, {plain} with relocations apart");
    let (plain, parted) = (of("stream-hint", 10, &[]), of("recency", 10, &[]));
    assert!((parted / plain - 1.0).abs() < 0.03, "{parted} with hot data apart, {plain} without, all alike");
}

/// A drive that is saved and one that goes on without have the same ages, and so the same blocks.
#[test]
fn a_restored_drive_goes_on_with_the_ages_of_its_units() {
    let config = config(&["placement.policy=recency"]);
    let mut original = drive(&config);
    let (units, mut random) = (original.user_sectors() / 8, rng(2, "placement"));
    (0..3 * units).for_each(|_| write(&mut original, skewed(units, 90, &mut random)));
    let mut bytes = Vec::new();
    original.save(&mut bytes).expect("a drive without a buffer is saved");
    let mut restored = Drive::restore(&config, OPTIONS, &mut bytes.as_slice()).expect("its own state");
    original.reset_statistics();
    original.reseed(OPTIONS);
    for drive in [&mut original, &mut restored] {
        let mut random = rng(3, "placement");
        (0..2 * units).for_each(|_| write(drive, skewed(units, 90, &mut random)));
    }
    assert_eq!(original.counters().flash, restored.counters().flash);
    assert_eq!(original.erase_counts(), restored.erase_counts());
    let memory = original.memory();
    assert!(memory.contains(&("placement_bytes", units * 4)), "{memory:?}");
    assert!(memory == restored.memory());
}

#[test]
fn a_recovered_drive_begins_with_no_ages_and_loses_nothing() {
    let config = config(&["placement.policy=recency", "ftl.streams=3", "flash.timing=slc"]);
    let mut drive = drive(&config);
    let (units, mut random) = (drive.user_sectors() / 8, rng(4, "placement"));
    for _ in 0..3 {
        (0..units / 2).for_each(|_| write(&mut drive, skewed(units, 90, &mut random)));
        let flash = drive.power_cut();
        drive = Drive::recover(&config, OPTIONS, flash).expect("its own chips").0;
        drive.check().into_iter().for_each(|check| assert!(check.passed, "{}: {}", check.name, check.detail));
    }
}

#[test]
fn a_policy_without_streams_to_choose_from_is_refused_or_told() {
    let text = to_toml(&config(&["ftl.streams=1"]));
    assert!(!text.contains("[placement]"), "what was not set is not written:\n{text}");
    let one = config(&["ftl.streams=1", "placement.policy=recency"]);
    let error = Drive::new(&one, OPTIONS).err().expect("one stream leaves no choice").to_string();
    let expected = "placement.policy: \"recency\" chooses between streams, and ftl.streams = 1: it needs at least 2";
    assert_eq!(error, expected);
    let hot_age = idle_settings(&config(&["placement.hot_age=5%"]), true);
    assert_eq!(
        hot_age,
        ["placement.hot_age = \"5%\" changes nothing: it is for placement.policy = \"recency\", and this drive's is \
          \"stream-hint\""]
    );
    let no_streams = config(&["ftl.design=bast", "placement.policy=recency"]);
    let expected = "placement.policy = \"recency\" changes nothing: ftl.design = \"bast\" has no streams";
    assert_eq!(idle_settings(&no_streams, false), [expected]);
}

//! Errors of a drive, seen from above the error handler: what fails, what is sent again, and what no command notices.

use std::collections::HashMap;

use rand::RngExt;
use ssdlab_base::{Nanos, Op, Request, rng};
use ssdlab_device::{Data, Description, DriveConfig, Options, Status};
use ssdlab_flash::{Contents, FaultKind};

use super::{Ata, AtaConfig};
use crate::{Administration as _, BlockDevice, Member};

const UNIT: u64 = 8;
const UNITS: u64 = 256;

fn config() -> DriveConfig {
    let text = "name = \"small\"\n[flash]\nchannels = 2\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
                blocks_per_plane = 64\npages_per_block = 8\npage_size = \"4k\"\ncell = \"slc\"\n[capacity]\n\
                user = \"1m\"\n";
    Description::parse(text, "small.toml").and_then(|description| description.resolve()).expect("a drive")
}

fn ata(config: AtaConfig) -> Ata {
    let options = Options { seed: 1, contents: Contents::Bytes };
    let mut member = Member::new("small", &self::config(), options).expect("a drive");
    member.drives_mut()[0].device.expect_faults();
    Ata::new(Box::new(member), config)
}

const CONFIG: AtaConfig = AtaConfig {
    tags: 31,
    retries: 5,
    timeout: Nanos(30_000_000_000),
    error_time: Nanos(0),
    reset_time: Nanos(150_000_000),
};

fn write(device: &mut Ata, unit: u64, byte: u8) {
    let request = Request { at: device.now(), ..Request::new(Op::Write, unit * UNIT, UNIT) };
    device.submit(&request, Data::Bytes(&[byte; 4096]));
    while device.outstanding() > 0 {
        assert!(device.run_to_completion(Nanos::MAX), "a write completes");
    }
    device.completions().clear();
}

/// The drive fails the next `times` reads of units: those of other commands, too, in the order in which its chips take them.
fn fail_reads(device: &mut Ata, times: u32) {
    for _ in 0..times {
        device.drives_mut()[0].device.fail_next(FaultKind::Read, None);
    }
}

fn figure(device: &Ata, name: &str) -> f64 {
    device.layers()[0].figures[name]
}

/// Reads units at once; by unit how each ended, and when.
fn read(device: &mut Ata, units: std::ops::Range<u64>) -> HashMap<u64, (Status, Nanos, Vec<u8>)> {
    let at = device.now();
    for unit in units {
        device.submit(&Request { at, tag: unit as u32, ..Request::new(Op::Read, unit * UNIT, UNIT) }, Data::Nothing);
    }
    let mut all = Vec::new();
    while device.outstanding() > 0 {
        assert!(device.run_to_completion(Nanos::MAX), "a read completes");
        all.append(device.completions());
    }
    let mut brought: HashMap<u32, Vec<u8>> = device.read_data().drain(..).collect();
    all.into_iter()
        .map(|done| (u64::from(done.tag), (done.status, done.at, brought.remove(&done.tag).unwrap_or_default())))
        .collect()
}

#[test]
fn a_read_that_comes_right_when_it_is_sent_again_fails_nobody() {
    let mut device = ata(CONFIG);
    (0..4).for_each(|unit| write(&mut device, unit, unit as u8 + 1));
    fail_reads(&mut device, 1);
    let found = read(&mut device, 0..4);
    for unit in 0..4 {
        let (status, _, bytes) = &found[&unit];
        assert_eq!((*status, bytes[0]), (Status::Success, unit as u8 + 1), "unit {unit}");
    }
    let counts = ["errors", "retried", "others_repeated", "resets", "failed"].map(|name| figure(&device, name));
    assert_eq!(counts, [1.0, 1.0, 3.0, 0.0, 0.0]);
}

#[test]
fn a_read_that_stays_bad_is_sent_six_times_and_then_the_link_is_reset() {
    let mut device = ata(CONFIG);
    write(&mut device, 0, 7);
    fail_reads(&mut device, 6);
    let before = device.now();
    let found = read(&mut device, 0..1);
    let (status, at, _) = &found[&0];
    assert_eq!(*status, Status::UncorrectableRead);
    assert!(at.0 - before.0 >= CONFIG.reset_time.0, "it ends after the reset");
    let counts = ["errors", "retried", "resets", "failed"].map(|name| figure(&device, name));
    assert_eq!(counts, [6.0, 5.0, 1.0, 1.0]);
    // The next one is none of its business.
    assert_eq!(read(&mut device, 0..1)[&0].0, Status::Success);
}

#[test]
fn tags_hold_and_what_waits_is_no_neighbour_of_an_error() {
    let mut device = ata(AtaConfig { tags: 2, ..CONFIG });
    (0..6).for_each(|unit| write(&mut device, unit, 1));
    fail_reads(&mut device, 1);
    let found = read(&mut device, 0..6);
    assert!(found.values().all(|(status, ..)| *status == Status::Success));
    assert!(figure(&device, "others_repeated") <= 1.0, "one other was in flight at most");
    assert_eq!(figure(&device, "waited_for_tags"), 4.0);
}

#[test]
fn a_command_that_takes_too_long_is_sent_again_and_ends() {
    let mut device = ata(AtaConfig { timeout: Nanos(1_000), retries: 2, ..CONFIG });
    let before = device.now();
    write(&mut device, 0, 3);
    assert_eq!(figure(&device, "timeouts"), 3.0);
    assert_eq!(figure(&device, "resets"), 3.0);
    assert!(device.now().0 - before.0 >= 3 * CONFIG.reset_time.0);
    assert_eq!(figure(&device, "failed"), 0.0, "what it ended with counts");
}

/// Random commands over reads that fail now and then: each completes once, and what reads bring is what an array says.
#[test]
fn an_error_loses_and_repeats_nothing() {
    let mut compared = 0;
    for seed in 0..12 {
        let mut rng = rng(seed, "ata errors");
        let tags = [1, 4, 31][seed as usize % 3];
        let mut device = ata(AtaConfig { tags, retries: [0, 5][seed as usize % 2], ..CONFIG });
        let mut model = vec![0_u8; (UNITS * UNIT * 512) as usize];
        let mut expected: HashMap<u32, Option<Vec<u8>>> = HashMap::new();
        for tag in 0..400 {
            if rng.random_bool(0.1) {
                fail_reads(&mut device, 1);
            }
            let (unit, units) = (rng.random_range(0..60), rng.random_range(1..4));
            let op = [Op::Read, Op::Read, Op::Write, Op::Trim][rng.random_range(0..4)];
            let request = Request { at: device.now(), tag, ..Request::new(op, unit * UNIT, units * UNIT) };
            let range = unit as usize * 4096..(unit + units) as usize * 4096;
            let bytes: Vec<u8> = (0..units * 4096).map(|_| rng.random()).collect();
            let wanted = match op {
                Op::Write => {
                    model[range].copy_from_slice(&bytes);
                    None
                }
                Op::Trim => {
                    model[range].fill(0);
                    None
                }
                _ => Some(model[range].to_vec()),
            };
            assert!(expected.insert(tag, wanted).is_none());
            device.submit(&request, if op == Op::Write { Data::Bytes(&bytes) } else { Data::Nothing });
            let depth = rng.random_range(0..40);
            while device.outstanding() > depth {
                assert!(device.run_to_completion(Nanos::MAX), "a command completes");
                compared += collect(&mut device, &mut expected);
            }
            compared += collect(&mut device, &mut expected);
        }
        while device.outstanding() > 0 {
            assert!(device.run_to_completion(Nanos::MAX), "a command completes");
            compared += collect(&mut device, &mut expected);
        }
        assert!(expected.is_empty(), "every command completes");
        assert!(figure(&device, "errors") > 10.0, "seed {seed}: hardly anything failed");
    }
    assert!(compared > 1000, "only {compared} reads were compared");
}

fn collect(device: &mut Ata, expected: &mut HashMap<u32, Option<Vec<u8>>>) -> u64 {
    let mut brought: HashMap<u32, Vec<u8>> = device.read_data().drain(..).collect();
    let mut compared = 0;
    for done in std::mem::take(device.completions()) {
        let wanted = expected.remove(&done.tag).expect("a command completes once");
        match (done.status, wanted) {
            (Status::Success, Some(wanted)) => {
                assert!(brought.remove(&done.tag) == Some(wanted), "read {} brought something else", done.tag);
                compared += 1;
            }
            (Status::Success, None) => {}
            (Status::UncorrectableRead, wanted) => assert!(wanted.is_some(), "only reads fail"),
            (status, _) => panic!("command {} ended with {status:?}", done.tag),
        }
    }
    compared
}

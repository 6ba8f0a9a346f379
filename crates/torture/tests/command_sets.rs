//! Drives with commands of their own: random ones at any depth, with power cuts and hosts that begin anew.

use rand::RngExt;
use ssdlab_base::command_sets::tags::{ACKNOWLEDGE, CLEAR_TAGS, FIND_TAG, READ_TAGGED, SAVE_TRIMS, WRITE_TAGGED};
use ssdlab_base::{Op, Opcode, Rng, rng};
use ssdlab_device::{DriveConfig, Options};
use ssdlab_flash::Contents;
use ssdlab_torture::configs;
use ssdlab_torture::tags::{Command, Harness};

const SEEDS: u64 = 300;
const COMMANDS: u64 = 300;

/// A random drive of the design, without faults.
fn config(rng: &mut Rng) -> DriveConfig {
    let mut config = configs::random(rng);
    ssdlab_device::draw_design(&mut config, "tagged", rng);
    config.timed = rng.random_bool(0.8);
    config
}

fn command(rng: &mut Rng, harness: &Harness, sectors: u64, unit: u64) -> Command {
    let mut first = rng.random_range(0..sectors / unit) * unit;
    let mut units = rng.random_range(1..=4.min(sectors / unit - first / unit));
    if rng.random_bool(0.02) {
        units += 1000;
    }
    let mut words: Vec<u64> = (0..units).map(|_| rng.random_range(1..6)).collect();
    match rng.random_range(0..40) {
        0 => words[0] = 0,
        1 => words.push(1),
        2 => first += 1,
        _ => {}
    }
    let length = units * unit;
    match rng.random_range(0..20) {
        0..6 => Command::of_set(WRITE_TAGGED, first, length, &words),
        6..9 => Command::of_set(READ_TAGGED, first, length, &[]),
        9 => Command::of_set(FIND_TAG, first, 0, &[rng.random_range(0..6)]),
        10 if rng.random_bool(0.3) => Command::of_set(CLEAR_TAGS, 0, 0, &[]),
        11 => {
            let number = if rng.random_bool(0.2) { u64::MAX } else { harness.last_event() };
            Command::of_set(ACKNOWLEDGE, 0, 0, &[number])
        }
        12 => Command::of_set(SAVE_TRIMS, 0, 0, &[]),
        13 if rng.random_bool(0.2) => {
            let mut command = Command::of_set(Opcode(rng.random_range(1..12)), first, length, &words);
            command.request.op = [Op::Read, Op::Write, Op::Flush][rng.random_range(0..3)];
            command
        }
        14 => Command::block(Op::Trim, first, length),
        15 => Command::block(Op::Flush, 0, 0),
        16..18 => Command::block(Op::Read, first, length),
        _ => Command::block(Op::Write, first, length),
    }
}

#[test]
fn every_answer_and_event_is_what_the_model_says() {
    let (mut drives, mut executed) = (0, 0);
    for seed in 1..=SEEDS {
        let mut rng = rng(seed, "command sets");
        let config = config(&mut rng);
        let Some(mut harness) = Harness::new(&config, Options { seed, contents: Contents::Stamps }) else { continue };
        let (sectors, unit) = (config.user_bytes / 512, u64::from(config.ftl.mapping_unit) / 512);
        let depth = [1, 2, 8, 32][rng.random_range(0..4)];
        for _ in 0..COMMANDS {
            while harness.outstanding() >= depth {
                harness.step();
            }
            match rng.random_range(0..200) {
                0 => harness.cut(),
                1 => harness.restart_host(),
                2 => harness.drain(),
                _ => {}
            }
            harness.send(&command(&mut rng, &harness, sectors, unit));
        }
        harness.drain();
        drives += 1;
        executed += harness.executed;
    }
    println!("{drives} drives executed {executed} commands");
    assert!(drives > SEEDS / 2 && executed > 30_000, "{drives} drives, {executed} commands");
}

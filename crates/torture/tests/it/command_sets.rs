//! Drives with commands of their own: random ones at any depth, with power cuts and hosts that begin anew.

use rand::RngExt;
use ssdlab_base::rng;
use ssdlab_torture::Totals;
use ssdlab_torture::tags::{TagCase, command_set};

const SEEDS: u64 = 300;
const COMMANDS: usize = 300;

#[test]
fn every_answer_and_event_is_what_the_model_says() {
    let (mut drives, mut executed) = (0, 0);
    for seed in 1..=SEEDS {
        let Some(case) = TagCase::draw(seed, COMMANDS) else { continue };
        match case.run(&mut Totals::default()) {
            Ok(commands) => executed += commands,
            Err(finding) => {
                let (shrunk, finding) = case.shrink(&finding);
                panic!("seed {seed}: {finding:#?}\nafter {:#?}\non {:#?}", shrunk.steps, shrunk.config);
            }
        }
        drives += 1;
    }
    println!("{drives} drives executed {executed} commands");
    assert!(drives > SEEDS / 2 && executed > 30_000, "{drives} drives, {executed} commands");
}

#[test]
fn any_bytes_of_a_fuzzer_are_a_case() {
    for seed in 0..250 {
        let mut rng = rng(seed, "command set bytes");
        let length = rng.random_range(1..4000);
        let bytes: Vec<u8> = (0..length).map(|_| rng.random_range(0..=255)).collect();
        command_set(&bytes);
    }
}

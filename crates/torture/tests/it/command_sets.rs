//! Drives with commands of their own: random ones at any depth, with power cuts and hosts that begin anew.

use rand::RngExt;
use ssdlab_base::rng;
use ssdlab_torture::Totals;
use ssdlab_torture::tags::{TagScope, command_set};

use crate::failing;

const SEEDS: u64 = 300;
const COMMANDS: u64 = 300;

#[test]
fn every_answer_and_event_is_what_the_model_says() {
    let totals: Totals = failing::campaign("command_sets", SEEDS, TagScope { commands: COMMANDS });
    assert!(totals.commands > 30_000, "{} commands", totals.commands);
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

//! Power cuts and failing programs on drives of the set `shrd`, without a driver.

use rand::RngExt;
use ssdlab_base::rng;
use ssdlab_torture::seeds::campaign;
use ssdlab_torture::shrd::{LogScope, commands_from_bytes};

use crate::failing;

#[test]
fn no_power_cut_loses_what_was_written_last_or_brings_back_what_was_before() {
    let totals = failing::campaign("shrd", 600, LogScope);
    assert!(totals.cuts >= totals.cases * 2, "{} power cuts in {} cases", totals.cuts, totals.cases);
}

#[test]
fn whatever_blocks_say_a_command_ends_as_the_set_allows() {
    campaign("shrd", "whatever_blocks_say_a_command_ends_as_the_set_allows", 300, |seed| {
        let mut rng = rng(seed, "bytes");
        let bytes: Vec<u8> = (0..rng.random_range(0..3000)).map(|_| rng.random()).collect();
        commands_from_bytes(&bytes);
    });
}

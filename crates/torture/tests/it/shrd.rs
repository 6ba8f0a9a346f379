//! Power cuts and failing programs on drives of the set `shrd`, without a driver.

use rand::RngExt;
use ssdlab_base::rng;
use ssdlab_torture::Totals;
use ssdlab_torture::seeds::{campaign, tell};
use ssdlab_torture::shrd::{LogCase, commands_from_bytes};

#[test]
fn no_power_cut_loses_what_was_written_last_or_brings_back_what_was_before() {
    campaign("shrd", "no_power_cut_loses_what_was_written_last_or_brings_back_what_was_before", 600, |seed| {
        let Some(case) = LogCase::draw(seed) else { return };
        tell(case.config());
        let found = case.run(&mut Totals::default());
        assert!(found.is_ok(), "{found:?}");
    });
}

#[test]
fn whatever_blocks_say_a_command_ends_as_the_set_allows() {
    campaign("shrd", "whatever_blocks_say_a_command_ends_as_the_set_allows", 300, |seed| {
        let mut rng = rng(seed, "bytes");
        let bytes: Vec<u8> = (0..rng.random_range(0..3000)).map(|_| rng.random()).collect();
        commands_from_bytes(&bytes);
    });
}

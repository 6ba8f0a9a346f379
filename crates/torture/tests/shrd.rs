//! Power cuts and failing programs on drives of the set `shrd`, without a driver.

use ssdlab_torture::Totals;
use ssdlab_torture::seeds::{campaign, tell};
use ssdlab_torture::shrd::LogCase;

#[test]
fn no_power_cut_loses_what_was_written_last_or_brings_back_what_was_before() {
    campaign("shrd", "no_power_cut_loses_what_was_written_last_or_brings_back_what_was_before", 600, |seed| {
        let Some(case) = LogCase::draw(seed) else { return };
        tell(case.config());
        let found = case.run(&mut Totals::default());
        assert!(found.is_ok(), "{found:?}");
    });
}

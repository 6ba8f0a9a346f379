//! Power cuts and failing programs on drives of the set `cache`, without a manager.

use ssdlab_torture::cache::CacheScope;

use crate::failing;

#[test]
fn no_power_cut_brings_back_what_was_before_or_loses_dirty_blocks() {
    let totals = failing::campaign("cache", 600, CacheScope);
    assert!(totals.cuts >= totals.cases * 2, "{} power cuts in {} cases", totals.cuts, totals.cases);
}

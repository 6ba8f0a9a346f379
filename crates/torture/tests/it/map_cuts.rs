//! The power goes at every event of what a cached map does by itself: loads, evictions, flushes, block changes, erases.

use ssdlab_torture::Totals;
use ssdlab_torture::single_drive::every_event;

use crate::cached_map::{VARIANTS, Variant, case};
use crate::failing;

/// Commands whose events are cut.
const COMMANDS: usize = 200;

/// Power cuts that have to fall into each kind of work.
const LEAST: u64 = 100;

/// What comes up on every drive.
const KINDS: [&str; 7] = [
    "load",
    "flush of map pages",
    "flush for trims",
    "block change",
    "record",
    "move of map pages",
    "erase of a map block",
];

/// Cuts the power at each event, and half of the way from it to the next one.
fn cut_everywhere(variant: Variant) -> Totals {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let mut totals = Totals::default();
    for percent in [0, 50] {
        let (case, before) = case(variant, 1, COMMANDS);
        let found = every_event(&case, before, percent, jobs);
        failing::none(variant.name, found.failed);
        totals.add(&found.totals);
    }
    println!("{}: {} power cuts, {:?}", variant.name, totals.cuts, totals.cuts_by_work);
    totals
}

#[test]
fn a_power_cut_in_any_work_on_the_map_is_survived() {
    for variant in VARIANTS {
        let totals = cut_everywhere(variant);
        let evicts = (variant.by == "page").then_some("dirty eviction");
        let logs = (variant.log > 0).then_some("flush of the log");
        for kind in KINDS.into_iter().chain(evicts).chain(logs) {
            let cuts = totals.cuts_by_work.get(kind).copied().unwrap_or(0);
            assert!(cuts >= LEAST, "{}: {cuts} power cuts in '{kind}', fewer than {LEAST}", variant.name);
        }
    }
}

//! Designs that differ most from the others, each alone under power cuts and faults: with every buffer.

use std::sync::atomic::AtomicBool;

use ssdlab_torture::{Campaign, Outcome, Scope};

use crate::failing;

/// `SSDLAB_TORTURE_SEEDS`, else a few.
fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

fn survives(design: &str) {
    let scope = Scope { designs: vec![design.to_string()], ..Scope::everything(200) };
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let (first, seeds) = (number("SSDLAB_FIRST_SEED", 1), number("SSDLAB_TORTURE_SEEDS", 400));
    let campaign = Campaign { scope, first, seeds, until: None, jobs };
    let Outcome { failed, totals, .. } = campaign.run(&AtomicBool::new(false), &|_| {});
    failing::none(design, failed);
    assert!(totals.cuts >= totals.cases * 8, "{} power cuts in {} cases", totals.cuts, totals.cases);
}

/// With every index, with and without compaction.
#[test]
fn versions_survive_power_cuts_and_faults() {
    survives("mvftl");
}

/// Collection of its own, and nothing in the OOB area.
#[test]
fn mapped_blocks_survive_power_cuts_and_faults() {
    survives("block-mapped");
}

/// A map of blocks, with a log block for each logical block that is overwritten.
#[test]
fn log_blocks_of_one_survive_power_cuts_and_faults() {
    survives("bast");
}

/// A map of blocks, with log blocks that all share.
#[test]
fn log_blocks_of_all_survive_power_cuts_and_faults() {
    survives("fast");
}

/// A hash table, and a log of what lists of owners do not tell.
#[test]
fn caches_survive_power_cuts_and_faults() {
    survives("ssc");
}

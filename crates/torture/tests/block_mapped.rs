//! A design that collects by itself and has nothing in the OOB area, alone under power cuts and faults: with every buffer.

use std::sync::atomic::AtomicBool;

use ssdlab_torture::{Campaign, Outcome, Scope, draw, shrink};

fn scope() -> Scope {
    Scope { designs: vec!["block-mapped".to_string()], ..Scope::everything(200) }
}

/// `SSDLAB_TORTURE_SEEDS`, else a few.
fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn mapped_blocks_survive_power_cuts_and_faults() {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let (first, seeds) = (number("SSDLAB_FIRST_SEED", 1), number("SSDLAB_TORTURE_SEEDS", 400));
    let campaign = Campaign { scope: scope(), first, seeds, until: None, jobs };
    let Outcome { failed, totals, .. } = campaign.run(&AtomicBool::new(false), &|_| {});
    if let Some((seed, finding)) = failed {
        let shrunk = shrink(&draw(seed, &scope()), &finding);
        panic!(
            "{} ({})\nseed {seed}, shrunk:\n{}",
            finding.message,
            finding.place,
            shrunk.case.to_text(&shrunk.finding.message)
        );
    }
    assert!(totals.cuts >= totals.cases * 8, "{} power cuts in {} cases", totals.cuts, totals.cases);
}

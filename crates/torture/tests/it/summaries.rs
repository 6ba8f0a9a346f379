//! Drives that list owners in place of OOB areas, under power cuts and faults: the moments that are theirs alone.

use std::sync::atomic::AtomicBool;

use ssdlab_torture::{Campaign, Exhaustive, Outcome, Scope, Totals};

use crate::failing;

fn jobs() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn cuts_during(totals: &Totals, work: &str) -> u64 {
    totals.cuts_by_work.get(work).copied().unwrap_or(0)
}

#[test]
fn drives_without_oob_areas_survive_power_cuts_between_programs_and_their_lists() {
    let campaign = Campaign { scope: Scope::with_lists(200), first: 1, seeds: 800, until: None, jobs: jobs() };
    let Outcome { failed, totals, .. } = campaign.run(&AtomicBool::new(false), &|_| {});
    failing::none("lists of owners", failed);
    for (work, least) in [
        ("page without a list", 2000),
        ("early list", 300),
        ("last list of a block", 200),
        ("list of a block used again", 1000),
    ] {
        let cuts = cuts_during(&totals, work);
        assert!(cuts >= least, "{cuts} power cuts at \"{work}\", expected at least {least}: {totals:?}");
    }
}

#[test]
fn every_cut_of_every_short_sequence_is_survived_without_oob_areas() {
    let drives = Exhaustive {
        designs: vec!["page".into()],
        buffers: vec!["none".into(), "fifo".into()],
        length: 3,
        jobs: jobs(),
    };
    let Outcome { failed, totals, .. } = drives.run(&AtomicBool::new(false), &|_| {});
    failing::none("short sequences", failed);
    for (work, least) in [("page without a list", 5000), ("early list", 2000)] {
        let cuts = cuts_during(&totals, work);
        assert!(cuts >= least, "{cuts} power cuts at \"{work}\", expected at least {least}: {totals:?}");
    }
}

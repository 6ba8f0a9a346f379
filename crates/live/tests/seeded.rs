//! Seeded bugs of the served path: each is found within a stated number of cuts. Prints the table of `docs/serving.md`.
//!
//! A program of its own: a bug is on for the whole process.
//!
//! `cargo test -p ssdlab-live --features seeded-bugs --test seeded -- --nocapture`

#[allow(dead_code, reason = "tests of the other program need the rest")]
#[path = "it/power.rs"]
mod power;

use power::Subject;
use ssdlab_base::rng;
use ssdlab_live::engine::PROMISES;
use ssdlab_live::seeded::{Bug, seed};

/// Each bug and the cuts in which it must be found.
const ALLOWED: [(Bug, u64); 5] = [
    (Bug::AnswerBeforeFiles, 100),
    (Bug::FuaOfWritesOnly, 100),
    (Bug::FlushSettlesTooLittle, 100),
    (Bug::RecordAfterPage, 200),
    (Bug::EntryBeforeData, 200),
];

/// Whether it shows in one process depends on its threads, and 3,000 cuts may miss it: `stacks/seeded_bug_is_found` of tests/live
/// kills a server.
const FOUND_BY_KILLS: Bug = Bug::LayerBeforeFiles;

/// How many cuts it took, and what was found.
fn hunt(bug: Bug, cuts: u64) -> Option<(u64, String)> {
    let mut rng = rng(2, bug.name());
    seed(Some(bug));
    let mut subject = Subject::draw(&mut rng, true);
    let found = (1..=cuts).find_map(|cut| {
        if cut % 25 == 0 {
            subject = Subject::draw(&mut rng, cut % 50 == 0);
        }
        let kind = &PROMISES[cut as usize / 2 % PROMISES.len()];
        let cut_it =
            if cut % 2 == 0 { subject.cut_when_answered(kind, &mut rng) } else { subject.cut_in_any_write(&mut rng) };
        // What a cut did shows when the drive is looked at.
        cut_it.and_then(|()| subject.look(&mut rng)).err().map(|what| (cut, what))
    });
    seed(None);
    found
}

#[test]
fn every_seeded_bug_is_found_within_its_cuts() {
    let docs =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/serving.md")).unwrap_or_default();
    let mut wrong = Vec::new();
    println!("| seeded bug | cuts needed | cuts allowed |\n| --- | --- | --- |");
    for (bug, allowed) in ALLOWED {
        match hunt(bug, allowed) {
            Some((cuts, what)) => {
                println!("| {} | {cuts} | {allowed} |   {what}", bug.story());
                let documented = |line: &str| line.contains(bug.story()) && line.contains(&format!("| {allowed} |"));
                if !docs.lines().any(documented) {
                    wrong
                        .push(format!("docs/serving.md has no row for {bug:?} ('{}', {allowed} allowed)", bug.story()));
                }
            }
            None => wrong.push(format!("{bug:?} is not found in {allowed} cuts")),
        }
    }
    let all: Vec<Bug> = ALLOWED.iter().map(|(bug, _)| *bug).chain([FOUND_BY_KILLS]).collect();
    assert_eq!(all, Bug::ALL, "each bug has its row");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Without a bug the same cuts find nothing.
    for (bug, allowed) in ALLOWED {
        let mut rng = rng(2, bug.name());
        let mut subject = Subject::draw(&mut rng, true);
        for _ in 0..allowed.min(1000) {
            subject.cut_in_any_write(&mut rng).expect("nothing is wrong");
        }
        subject.look(&mut rng).expect("nothing is wrong");
    }
}

//! Bounded campaigns: every design and buffer under power cuts and faults, the same way every time.

use std::sync::atomic::AtomicBool;

use ssdlab_host::UnknownDrive;
use ssdlab_torture::{Campaign, Case, Exhaustive, Outcome, Scope, Subject, Totals, WithCase, draw, run, with_case};

use crate::failing;

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// `SSDLAB_TORTURE_SEEDS`, else a few.
fn seeds() -> u64 {
    std::env::var("SSDLAB_TORTURE_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(600)
}

fn campaign(first: u64, seeds: u64, jobs: usize) -> Outcome {
    let campaign = Campaign { scope: Scope::everything(200), first, seeds, until: None, jobs };
    campaign.run(&AtomicBool::new(false), &|_| {})
}

fn counts(totals: &Totals) -> String {
    format!(
        "{} seeds, {} commands, {} power cuts ({} in a program, {} in an erase, {} in recovery, {} idle), {:?} faults, {} \
         read-only ends, {:.0} power cuts a second of a core",
        totals.cases,
        totals.commands,
        totals.cuts,
        totals.cuts_by_kind[0],
        totals.cuts_by_kind[1],
        totals.cuts_by_kind[2],
        totals.cuts_by_kind[3],
        totals.faults,
        totals.read_only,
        totals.cuts_per_core_second()
    )
}

#[test]
fn drives_survive_power_cuts_and_faults() {
    let outcome = campaign(1, seeds(), threads());
    println!("torture: {}", counts(&outcome.totals));
    failing::none("drives", outcome.failed);
    let totals = outcome.totals;
    assert_eq!(totals.cases, seeds());
    assert!(totals.cuts >= totals.cases * 8, "few power cuts: {}", counts(&totals));
    assert!(totals.cuts_by_kind[0] > totals.cases, "few of them in programs: {}", counts(&totals));
    assert!(totals.cuts_by_kind[1] > totals.cases / 2, "few of them in erases: {}", counts(&totals));
    assert!(totals.faults[..4].iter().all(|faults| *faults > totals.cases / 20), "few faults: {}", counts(&totals));
}

#[test]
fn every_power_cut_of_every_sequence_of_up_to_three_commands_is_survived() {
    let Scope { designs, buffers, .. } = Scope::everything(1);
    let found = Exhaustive { designs, buffers, length: 3, jobs: threads() }.run(&AtomicBool::new(false), &|_| {});
    println!("exhaustive: {}", counts(&found.totals));
    failing::none("exhaustive", found.failed);
    assert!(found.totals.cuts > 10_000);
}

#[test]
fn a_seed_does_the_same_whatever_runs_beside_it() {
    let without_time = |mut totals: Totals| {
        (totals.recovering, totals.comparing, totals.working) = Default::default();
        totals
    };
    let alone = campaign(7, 40, 1);
    let together = campaign(7, 40, 4);
    assert_eq!(without_time(alone.totals), without_time(together.totals));
}

#[test]
fn a_case_reads_back_from_its_text_and_does_the_same() {
    for seed in 1..200 {
        let case = draw(seed, &Scope::everything(30)).expect("a case is drawn");
        let read = <Case>::parse(&case.to_text("a comment"), "case.toml").expect("what was written is read");
        assert_eq!(read, case);
        let (mut first, mut second) = (Totals::default(), Totals::default());
        assert_eq!(run(&case, &mut first), run(&read, &mut second));
        assert_eq!((first.cuts_by_kind, first.faults), (second.cuts_by_kind, second.faults));
    }
}

/// Runs a case, and says what was found.
struct Run;

impl WithCase for Run {
    type Result = Option<String>;

    fn with<S: Subject>(self, case: Case<S>) -> Option<String> {
        case.accepted().expect("a case is accepted");
        run(&case, &mut Totals::default()).err().map(|finding| case.describe(&finding))
    }
}

/// Each case once found a fault of a drive or a layer.
#[test]
fn cases_that_found_a_fault_find_nothing_now() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/cases");
    let mut replayed = 0;
    for entry in std::fs::read_dir(folder).expect("the folder of cases") {
        let path = entry.expect("a case").path();
        let text = std::fs::read_to_string(&path).expect("a case");
        let no_drives = |name: &str| Err(UnknownDrive(format!("'{name}' is no drive that is known here")));
        let name = path.display().to_string();
        let found = with_case(&text, &name, &no_drives, Run).expect("a case is well formed");
        assert_eq!(found, None, "{name}");
        replayed += 1;
    }
    assert!(replayed >= 3, "{replayed} cases in {folder}");
}

//! Stacks under crashes of the host, power cuts of one drive, and cuts of everything.

use ssdlab_torture::Totals;
use ssdlab_torture::stacks::{StackScope, draw, run, shrink};

#[test]
fn drawn_stacks_keep_what_they_promise() {
    keep_what_they_promise(false);
}

#[test]
fn drawn_drivers_keep_what_they_promise() {
    keep_what_they_promise(true);
}

fn keep_what_they_promise(drivers: bool) {
    let number = |name: &str, or: u64| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(or);
    let (first, seeds) = (number("SSDLAB_FIRST_SEED", 1), number("SSDLAB_SEEDS", 150));
    let scope = StackScope { host: None, drive: None, commands: 120, drivers, faults: true };
    let mut totals = Totals::default();
    for seed in first..first + seeds {
        let (case, host) = draw(seed, &scope);
        if let Err(finding) = run(&case, &host, &mut totals) {
            let (small, found) = shrink(&case, &host, 300);
            let found = found.unwrap_or(finding);
            let steps: Vec<String> = small.steps.iter().map(ToString::to_string).collect();
            panic!("seed {seed}: {} at {}\n{}\n{}", found.message, found.place, small.host, steps.join("\n"));
        }
    }
    if seeds >= 150 {
        assert!(totals.stack_cuts.iter().all(|count| *count > 100), "{:?}", totals.stack_cuts);
    }
}

//! Stacks under crashes of the host, power cuts of one drive, and cuts of everything.

use ssdlab_host::Host;
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

/// Restoring in the host as it is published keeps its table in RAM: what was flushed is lost with it. The same seeds find
/// nothing where the table is on the drive.
#[test]
fn a_table_in_ram_loses_what_was_flushed() {
    let found = |table: &str| {
        let text = format!("[[layer]]\nkind = \"restoring\"\nlog = \"16k\"\nrange = \"8k\"\ntable = \"{table}\"\n");
        let host = Host::parse(&text, "host.toml").expect("a host");
        let host = Some((text, host));
        let scope = StackScope { host, drive: None, commands: 120, drivers: false, faults: false };
        (1..=40).find_map(|seed| {
            let (case, host) = draw(seed, &scope);
            run(&case, &host, &mut Totals::default()).err().map(|finding| (seed, finding.message))
        })
    };
    assert!(found("ram").is_some_and(|(_, message)| message.contains("should hold")), "{:?}", found("ram"));
    assert_eq!(found("drive"), None);
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

//! What a test says of a case that fails: shrunk, and saved for `ssdlab torture --replay`.

use std::sync::atomic::AtomicBool;

use ssdlab_torture::{Campaign, Case, Draw, Finding, Subject, Totals, shrink};

/// There is no case that failed.
///
/// # Panics
/// There is one. It is shrunk, printed, and saved.
pub(crate) fn none<S: Subject>(context: &str, failed: Option<(Case<S>, Finding)>) {
    let Some((case, finding)) = failed else { return };
    let shrunk = shrink(&case, &finding);
    let name = format!("torture-{}-{}.toml", context.replace(' ', "-"), case.seed);
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let Case { seed, steps, .. } = &shrunk.case;
    let told = shrunk.case.describe(&shrunk.finding);
    let saved = std::fs::write(&path, shrunk.case.to_text(&shrunk.finding.message));
    panic!(
        "{context}, seed {seed}: {finding:?}\nshrunk to {} steps:\n{told}\nrepeat that with\n  ssdlab torture --replay {} \
         ({saved:?})",
        steps.len(),
        path.display()
    );
}

/// Runs `seeds` seeds of a scope, from 1 on; none of them fails. `SSDLAB_SEED` is the only seed that is run, if it is
/// set, `SSDLAB_FIRST_SEED` the first, and `SSDLAB_TORTURE` multiplies their number.
pub(crate) fn campaign<D: Draw>(context: &str, seeds: u64, scope: D) -> Totals {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (first, seeds) = match number("SSDLAB_SEED") {
        Some(seed) => (seed, 1),
        None => (number("SSDLAB_FIRST_SEED").unwrap_or(1), seeds * number("SSDLAB_TORTURE").unwrap_or(1).max(1)),
    };
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let campaign = Campaign { scope, first, seeds, until: None, jobs };
    let outcome = campaign.run(&AtomicBool::new(false), &|_| {});
    none(context, outcome.failed);
    let totals = outcome.totals;
    assert_eq!(outcome.not_drawn, None, "{context}");
    println!("{context}: {} cases, {} commands, {} power cuts", totals.cases, totals.commands, totals.cuts);
    totals
}

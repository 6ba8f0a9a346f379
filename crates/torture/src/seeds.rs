//! Seeds: how many are tried, and how a failing one is repeated.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Runs `body` for seeds `1..=seeds`. With `SSDLAB_SEED` set only that seed is run, and `SSDLAB_TORTURE` multiplies the
/// number of seeds. A seed that fails prints the command that repeats it: `test` is in `module` of a crate's test
/// program `it`. With `SSDLAB_KEEP_GOING` the rest run too.
pub fn campaign(module: &str, test: &str, seeds: u64, mut body: impl FnMut(u64)) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    if let Some(seed) = number("SSDLAB_SEED") {
        body(seed);
        return;
    }
    let seeds = seeds * number("SSDLAB_TORTURE").unwrap_or(1).max(1);
    let first = number("SSDLAB_FIRST_SEED").unwrap_or(1);
    let keep_going = std::env::var("SSDLAB_KEEP_GOING").is_ok();
    let mut failed = Vec::new();
    for seed in first..first + seeds {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| body(seed))) {
            // Cargo says whose tests run.
            let package = std::env::var("CARGO_PKG_NAME").unwrap_or("ssdlab-device".to_string());
            eprintln!(
                "seed {seed} failed; repeat it with\n  SSDLAB_SEED={seed} cargo test -p {package} --test it {module}::{test} -- --exact --nocapture"
            );
            if !keep_going {
                resume_unwind(panic);
            }
            failed.push(seed);
        }
    }
    assert!(failed.is_empty(), "{} of {seeds} seeds failed: {failed:?}", failed.len());
}

/// Prints what a repeated seed runs on.
pub fn tell(what: &impl std::fmt::Debug) {
    if std::env::var("SSDLAB_SEED").is_ok() {
        eprintln!("{what:#?}");
    }
}

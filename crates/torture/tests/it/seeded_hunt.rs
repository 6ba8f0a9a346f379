//! The search for seeded bugs, one at a time: each must be found within the seeds allowed, and docs/torture.md shows how many it took.

use std::fmt::Debug;

use crate::page;

/// Looks for each bug with seeds from 1 on; `fails` says whether a seed finds it. The table below `header` has a row for each.
///
/// # Panics
/// A bug is not found, or docs/torture.md has another table.
pub(crate) fn hunt<B: Copy + Debug>(
    header: &str,
    allowed: &[(B, u64)],
    story: impl Fn(B) -> &'static str,
    fails: impl Fn(B, u64) -> bool,
) {
    let (mut wrong, mut rows) = (Vec::new(), Vec::new());
    for (bug, allowed) in allowed.iter().copied() {
        let found = (1..=allowed).find(|number| fails(bug, *number));
        let needed = found.map_or("not found".to_string(), |seed| seed.to_string());
        rows.push(format!("| {} | {needed} | {allowed} |", story(bug)));
        println!("{}", rows[rows.len() - 1]);
        if found.is_none() {
            wrong.push(bug);
        }
    }
    assert!(wrong.is_empty(), "not found: {wrong:?}");
    page::hold(header, &rows);
}

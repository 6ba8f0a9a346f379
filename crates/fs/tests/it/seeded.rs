//! Bugs seeded on purpose: each is found by random calls and crashes within some seeds.

use std::panic::{AssertUnwindSafe, catch_unwind};

use ssdlab_fs::seeded::{FsBug, seed};

use crate::{crash, random};

/// Seeds within which a bug is found.
const SEEDS: u64 = 150;

#[test]
fn every_seeded_bug_is_found() {
    let only = std::env::var("FS_BUG").ok();
    let mut missed = Vec::new();
    std::panic::set_hook(Box::new(|_| {}));
    for bug in FsBug::ALL {
        if only.as_ref().is_some_and(|only| *only != format!("{bug:?}")) {
            continue;
        }
        seed(Some(bug));
        let found = (0..SEEDS).find(|seed| {
            let play = || {
                crash::play(*seed, 250);
                if seed % 5 == 0 {
                    random::play(*seed, 200);
                }
            };
            catch_unwind(AssertUnwindSafe(play)).is_err()
        });
        seed(None);
        println!("{bug:?}: {found:?}");
        if found.is_none() {
            missed.push(bug);
        }
    }
    drop(std::panic::take_hook());
    assert_eq!(missed, [], "bugs that no seed found");
}

//! Write amplification against exact references and closed forms.
//!
//! The references come from an independent program: one plane, 1024 blocks of 64 pages, sequential fill first, garbage
//! collection before a write while fewer than R blocks are free (the open block does not count), a page a request,
//! measured over the second half of 40 user capacities.

use rand::RngExt;
use ssdlab_base::{Op, Request, rng};
use ssdlab_device::{Description, Drive, DriveConfig, Options};
use ssdlab_flash::{Contents, OpKind};

fn one_plane(user_pages: u64, victim: &str, free_blocks: u32, separate: bool) -> DriveConfig {
    let text = format!(
        r#"
[flash]
channels = 1
chips_per_channel = 1
dies_per_chip = 1
planes_per_die = 1
blocks_per_plane = 1024
pages_per_block = 64
page_size = "4k"
timing = "none"
[capacity]
user = {}
[ftl]
design = "page"
separate_gc_frontier = {separate}
[gc]
victim = "{victim}"
free_blocks = {free_blocks}
"#,
        user_pages * 4096
    );
    Description::parse(&text, "one-plane").and_then(|description| description.resolve()).expect("a valid description")
}

fn write_amplification(config: &DriveConfig, user_pages: u64) -> f64 {
    let mut drive = Drive::new(config, Options { seed: 1, contents: Contents::Nothing }).expect("an accepted drive");
    for lpn in 0..user_pages {
        drive.submit(&Request::new(Op::Write, lpn * 8, 8));
        drive.completions().clear();
    }
    let mut rng = rng(7, "theory");
    let mut half = 0;
    for write in 0..40 * user_pages {
        if write == 20 * user_pages {
            half = drive.counters().flash.total(OpKind::Program);
        }
        drive.submit(&Request::new(Op::Write, rng.random_range(0..user_pages) * 8, 8));
        drive.completions().clear();
    }
    let programs = drive.counters().flash.total(OpKind::Program) - half;
    for check in drive.check() {
        assert!(check.passed, "{}: {}", check.name, check.detail);
    }
    programs as f64 / (20 * user_pages) as f64
}

fn assert_within_one_percent(victim: &str, free_blocks: u32, separate: bool, references: [(u64, f64); 3]) {
    for (user_pages, reference) in references {
        let config = one_plane(user_pages, victim, free_blocks, separate);
        let ours = write_amplification(&config, user_pages);
        println!("{victim} R={free_blocks} user={user_pages}: {ours:.3}, reference {reference}");
        assert!((ours / reference - 1.0).abs() < 0.01, "{victim} at {user_pages} pages: {ours:.3} against {reference}");
    }
}

#[test]
fn greedy_with_one_frontier_matches_the_exact_reference() {
    assert_within_one_percent("greedy", 2, false, [(61_248, 7.192), (56_987, 3.849), (51_200, 2.417)]);
}

#[test]
fn fifo_with_one_frontier_matches_the_exact_reference() {
    assert_within_one_percent("fifo", 2, false, [(61_248, 8.044), (56_987, 4.067), (51_200, 2.494)]);
}

#[test]
fn greedy_with_two_frontiers_matches_the_exact_reference() {
    assert_within_one_percent("greedy", 10, true, [(61_248, 8.064), (56_987, 4.056), (51_200, 2.486)]);
}

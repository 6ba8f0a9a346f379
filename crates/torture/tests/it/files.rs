//! File systems under calls, crashes and power cuts.

use std::sync::atomic::AtomicBool;

use rand::RngExt;
use ssdlab_base::{Rng, rng};
use ssdlab_torture::files::fuzzing::{
    Handled, damaged_block, damaged_image, damaged_image_with_areas, damaged_image_with_journal,
};
use ssdlab_torture::files::{FileScope, ShortSequences};
use ssdlab_torture::seeds;

use crate::failing;

fn scope(kind: &str, calls: u64) -> FileScope {
    FileScope::new(kind, "", calls).expect("a kind of file system")
}

fn repeated_in_a_model(kind: &str, cases: u64) {
    let mut scope = scope(kind, 2500);
    (scope.cuts, scope.faults) = (false, false);
    let totals = failing::campaign("files without cuts", cases, scope);
    assert!(totals.cases < cases || totals.commands >= 1_000_000, "{} calls", totals.commands);
}

/// Every result and error in the order of effects, and the whole tree after each mount: 1,000,000 calls.
#[test]
fn calls_have_the_results_of_the_model() {
    repeated_in_a_model("alfs", 820);
}

#[test]
fn calls_of_lfs_have_the_results_of_the_model() {
    repeated_in_a_model("lfs", 850);
}

/// By the rules of ext3 and of ext4.
#[test]
fn calls_of_a_journaling_file_system_have_the_results_of_the_model() {
    repeated_in_a_model("journaling", 850);
}

/// What an fsync covers survives. Each kind of work is cut at least so many times.
#[test]
fn crashes_and_cuts_lose_nothing_that_is_durable() {
    let works = ["cleaning", "checkpoint", "switch", "map-cleaning", "trim", "mount"];
    survives("alfs", &works.map(|work| (work, 100)));
}

/// On drives with and without write buffers.
#[test]
fn crashes_and_cuts_of_lfs_lose_nothing_that_is_durable() {
    survives("lfs", &[("checkpoint", 100), ("mount", 100), ("trim", 50), ("cleaning", 30)]);
}

/// On drives with and without write buffers, by the rules of ext3 and of ext4.
#[test]
fn crashes_and_cuts_of_a_journaling_file_system_lose_nothing_that_is_durable() {
    survives("journaling", &[("commit", 100), ("mount", 100), ("trim", 50), ("home", 50)]);
}

fn survives(kind: &str, works: &[(&str, u64)]) {
    let totals = failing::campaign("files", 2200, scope(kind, 200));
    println!("cuts {:?}, by work {:?}", totals.stack_cuts, totals.cuts_by_work);
    if totals.cases >= 2200 {
        for (work, least) in works.iter().copied() {
            let cuts = totals.cuts_by_work.get(work).copied().unwrap_or(0);
            assert!(cuts >= least, "{cuts} cuts in {work}");
        }
        assert!(totals.stack_cuts.iter().all(|cuts| *cuts >= 100), "{:?}", totals.stack_cuts);
    }
}

/// All sequences of up to 2 calls on two files and a directory, cut at every event; `SSDLAB_SEQUENCES` for longer ones.
#[test]
fn every_cut_of_every_short_sequence_of_calls_is_survived() {
    short_sequences("alfs");
}

#[test]
fn every_cut_of_every_short_sequence_of_calls_of_lfs_is_survived() {
    short_sequences("lfs");
}

#[test]
fn every_cut_of_every_short_sequence_of_calls_of_a_journaling_file_system_is_survived() {
    short_sequences("journaling");
}

fn short_sequences(kind: &'static str) {
    let length = std::env::var("SSDLAB_SEQUENCES").ok().and_then(|text| text.parse().ok()).unwrap_or(2);
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let outcome = ShortSequences { kind, length, jobs }.run(&AtomicBool::new(false), &|_| {});
    failing::none("short sequences of calls", outcome.failed);
    let totals = outcome.totals;
    println!("{} cases, cuts {:?}, by work {:?}", totals.cases, totals.stack_cuts, totals.cuts_by_work);
    assert!(totals.cuts > 5_000, "{} cuts", totals.cuts);
}

/// An image of this seed, damaged.
fn damaged(seed: u64) -> (Handled, Rng) {
    damaged_by(damaged_image, seed)
}

fn damaged_by(damage: fn(&[u8]) -> Handled, seed: u64) -> (Handled, Rng) {
    let mut rng = rng(seed, "damage");
    let edits = 4 * rng.random_range(1..6);
    let image = damage(&(0..=edits).map(|_| rng.random()).collect::<Vec<u8>>());
    (image, rng)
}

/// Blocks of metadata are changed, with checksums mended or not. Mounting, walking and checking end with an error or an answer.
#[test]
fn damaged_images_are_answered_with_errors_and_never_with_a_panic() {
    let (mut images, mut named, mut refused) = (0, 0, 0);
    seeds::campaign("files", "damaged_images_are_answered_with_errors_and_never_with_a_panic", 500, |seed| {
        let (image, mut rng) = damaged(seed);
        (images, named, refused) = (images + 1, named + u32::from(image.named), refused + u32::from(image.refused));
        for _ in 0..50 {
            let edits = 4 * rng.random_range(1..20);
            damaged_block(&(0..=edits).map(|_| rng.random()).collect::<Vec<u8>>());
        }
    });
    println!("{images} images: the check names something in {named}, {refused} mounts are refused");
    assert!(images < 500 || (named > 100 && refused > 5), "{named} named, {refused} refused");
}

#[test]
fn damaged_images_of_lfs_are_answered_with_errors_and_never_with_a_panic() {
    let (mut images, mut named, mut refused) = (0, 0, 0);
    seeds::campaign("files", "damaged_images_of_lfs_are_answered_with_errors_and_never_with_a_panic", 500, |seed| {
        let (image, _) = damaged_by(damaged_image_with_areas, seed);
        (images, named, refused) = (images + 1, named + u32::from(image.named), refused + u32::from(image.refused));
    });
    println!("{images} images: the check names something in {named}, {refused} mounts are refused");
    assert!(images < 500 || (named > 100 && refused > 5), "{named} named, {refused} refused");
}

#[test]
fn damaged_images_with_a_journal_are_answered_with_errors_and_never_with_a_panic() {
    let (mut images, mut named, mut refused) = (0, 0, 0);
    seeds::campaign(
        "files",
        "damaged_images_with_a_journal_are_answered_with_errors_and_never_with_a_panic",
        1000,
        |seed| {
            let (image, _) = damaged_by(damaged_image_with_journal, seed);
            (images, named, refused) = (images + 1, named + u32::from(image.named), refused + u32::from(image.refused));
        },
    );
    println!("{images} images: the check names something in {named}, {refused} mounts are refused");
    assert!(images < 500 || (named > 100 && refused > 5), "{named} named, {refused} refused");
}

/// A count of names that overflowed (316), and an index block that named itself (3033).
#[test]
fn damaged_images_that_once_ended_in_a_panic_are_answered() {
    for seed in [316, 3033] {
        damaged(seed);
    }
}

//! Seeded bugs: each is found within a stated number of seeds. Prints the table of `docs/torture.md`.
//!
//! `cargo test --release -p ssdlab-torture --features seeded-bugs --test it seeded:: -- --nocapture`

use std::sync::Mutex;

use ssdlab_device::seeded::{self, Bug};
use ssdlab_torture::cache::CacheScope;
use ssdlab_torture::segments::SegmentScope;
use ssdlab_torture::shrd::LogScope;
use ssdlab_torture::tags::TagScope;
use ssdlab_torture::{Case, Draw, Finding, Scope, Totals, draw, run, shrink};

use crate::page;

/// Each bug and the seeds in which it must be found; each seed is 200 commands.
const ALLOWED: [(Bug, u64); 91] = [
    (Bug::EraseDoesNotWait, 200),
    (Bug::FlushReturnsEarly, 100),
    (Bug::FlushMissesTheLast, 100),
    (Bug::FuaIsPlain, 100),
    (Bug::TrimForgotten, 100),
    (Bug::EraseBeforeTrimRecord, 200),
    (Bug::MapBeforeData, 4000),
    (Bug::FailedPageLetGo, 400),
    (Bug::TornPageTrusted, 100),
    (Bug::TornBlockFree, 100),
    (Bug::SequenceReused, 100),
    (Bug::SupersededMoved, 100),
    (Bug::OldSectorsDropped, 100),
    (Bug::OverwriteLost, 100),
    (Bug::LostDataReadsGood, 400),
    (Bug::BadBlockUsed, 100),
    (Bug::OlderVersionWins, 100),
    (Bug::MergeForgetsVersion, 4000),
    (Bug::ChainDropped, 200),
    (Bug::MembersInStep, 100),
    (Bug::FreeAtFirstErase, 100),
    (Bug::ParityMissesPage, 100),
    (Bug::StaleParityTrusted, 3000),
    (Bug::RebuiltFromNextStripe, 100),
    (Bug::ParityDoesNotWait, 400),
    (Bug::HeaderForgetsTrims, 1000),
    (Bug::MergeKeepsNewestOnly, 2000),
    (Bug::CopyTakenForWhole, 2000),
    (Bug::SwitchOutOfOrder, 100),
    (Bug::SwitchForgetsTrims, 1000),
    (Bug::MergePinsDataBlock, 400),
    (Bug::HeaderTellsNoTrims, 100),
    (Bug::ReplacedBlockNotPinned, 2000),
    (Bug::UnfinishedReplacementTaken, 4000),
    (Bug::RecordIgnored, 100),
    (Bug::RecordForgetsOlderTrims, 100),
    (Bug::ErasedBeforeRecord, 400),
    (Bug::GenerationsMixed, 100),
    (Bug::HolesStayOpen, 100),
    (Bug::MoveMakesMapPageNew, 6000),
    (Bug::RecordForgetsOpenBlocks, 100),
    (Bug::RecordBeforeMapPages, 1000),
    (Bug::RecordIsLate, 400),
    (Bug::MapPageForgotten, 100),
    (Bug::OlderMapPageWins, 100),
    (Bug::SharedUnitFreedEarly, 2000),
    (Bug::MapPageNamesUnwritten, 400),
    (Bug::RecoveryLeavesPageClean, 100),
    (Bug::EventForgotten, 100),
    (Bug::EventOvertakes, 100),
    (Bug::AcknowledgedAgain, 100),
    (Bug::RefusedCommandActs, 100),
    (Bug::ExecutedTwice, 100),
    (Bug::UnsettledLogForgotten, 1000),
    (Bug::MoveRenumbers, 1000),
    (Bug::AutoremapAnyWins, 1000),
    (Bug::RemapForgetsMapPage, 1000),
    (Bug::TrimForgetsLog, 1000),
    (Bug::NumbersBeginAnew, 1000),
    (Bug::BufferedCopyForgotten, 1000),
    (Bug::RemapBeforeData, 4000),
    (Bug::LogNotWrittenThrough, 1000),
    (Bug::EraseBeforeList, 100),
    (Bug::FlushBeforeLists, 100),
    (Bug::FuaBeforeList, 100),
    (Bug::FailedPageListed, 4000),
    (Bug::FailureNotRelisted, 1000),
    (Bug::LostMarkNotListed, 1000),
    (Bug::FailedListTrusted, 100),
    (Bug::ReplacedBeforeList, 400),
    (Bug::TrimRecordNotListed, 1000),
    (Bug::RevivalBeforeList, 1000),
    (Bug::UnlistedPagesTaken, 100),
    (Bug::OlderListTaken, 100),
    (Bug::HoleInMap, 400),
    (Bug::CollisionTaken, 200),
    (Bug::DirtyDropped, 100),
    (Bug::MarkMissing, 100),
    (Bug::MarkKept, 100),
    (Bug::MovedWithoutMark, 400),
    (Bug::EvictionNotNoted, 100),
    (Bug::EvictedCopyErased, 400),
    (Bug::CleanedCopyUnnamed, 100),
    (Bug::NoteOutlivesEviction, 200),
    (Bug::OlderNoteWins, 100),
    (Bug::OlderCopyFound, 100),
    (Bug::ReturningForgotten, 1000),
    (Bug::TornCheckpointTaken, 200),
    (Bug::ErasedWithoutRecord, 100),
    (Bug::ChangedPageForgotten, 200),
    (Bug::PinnedBlockSettled, 1000),
];

/// Found where reads fail far more often than they are drawn to: several pages of one stripe have to be lost.
const NEEDS_LOST_READS: [Bug; 1] = [Bug::ParityDoesNotWait];

/// Bugs in the commands and events of a set: found by cases of the command set `tags`.
const OF_A_SET: [Bug; 5] =
    [Bug::EventForgotten, Bug::EventOvertakes, Bug::AcknowledgedAgain, Bug::RefusedCommandActs, Bug::ExecutedTwice];

/// Bugs of drives of the set `shrd`: found by a host that sends its commands.
const OF_A_LOG: [Bug; 9] = [
    Bug::UnsettledLogForgotten,
    Bug::MoveRenumbers,
    Bug::AutoremapAnyWins,
    Bug::RemapForgetsMapPage,
    Bug::TrimForgetsLog,
    Bug::NumbersBeginAnew,
    Bug::BufferedCopyForgotten,
    Bug::RemapBeforeData,
    Bug::LogNotWrittenThrough,
];

/// Bugs of drives that list owners in place of OOB areas: found on such drives.
const OF_LISTS: [Bug; 12] = [
    Bug::EraseBeforeList,
    Bug::FlushBeforeLists,
    Bug::FuaBeforeList,
    Bug::FailedPageListed,
    Bug::FailureNotRelisted,
    Bug::LostMarkNotListed,
    Bug::FailedListTrusted,
    Bug::ReplacedBeforeList,
    Bug::TrimRecordNotListed,
    Bug::RevivalBeforeList,
    Bug::UnlistedPagesTaken,
    Bug::OlderListTaken,
];

/// Bugs of drives with append-only segments: found by a host that appends.
const OF_SEGMENTS: [Bug; 7] = [
    Bug::ReplacedBlockNotPinned,
    Bug::UnfinishedReplacementTaken,
    Bug::RecordIgnored,
    Bug::RecordForgetsOlderTrims,
    Bug::ErasedBeforeRecord,
    Bug::GenerationsMixed,
    Bug::HolesStayOpen,
];

/// Bugs of drives of the set `cache`: found by a host that sends its commands.
const OF_A_CACHE: [Bug; 17] = [
    Bug::HoleInMap,
    Bug::CollisionTaken,
    Bug::DirtyDropped,
    Bug::MarkMissing,
    Bug::MarkKept,
    Bug::MovedWithoutMark,
    Bug::EvictionNotNoted,
    Bug::EvictedCopyErased,
    Bug::CleanedCopyUnnamed,
    Bug::NoteOutlivesEviction,
    Bug::OlderNoteWins,
    Bug::OlderCopyFound,
    Bug::ReturningForgotten,
    Bug::TornCheckpointTaken,
    Bug::ErasedWithoutRecord,
    Bug::ChangedPageForgotten,
    Bug::PinnedBlockSettled,
];

/// Commands of a case.
const COMMANDS: u64 = 200;

/// The first seed that fails with the seeded bug, and what it shrinks to.
fn hunt(bug: Bug, seeds: u64) -> Option<(u64, Finding, usize)> {
    match bug {
        bug if OF_A_SET.contains(&bug) => hunt_in(bug, seeds, &TagScope { commands: COMMANDS }),
        bug if OF_A_LOG.contains(&bug) => hunt_in(bug, seeds, &LogScope),
        bug if OF_A_CACHE.contains(&bug) => hunt_in(bug, seeds, &CacheScope),
        bug if OF_LISTS.contains(&bug) => hunt_in(bug, seeds, &Scope::with_lists(COMMANDS)),
        bug if OF_SEGMENTS.contains(&bug) => hunt_in(bug, seeds, &SegmentScope),
        bug => hunt_in(bug, seeds, &Scope::everything(COMMANDS)),
    }
}

fn hunt_in<D: Draw>(bug: Bug, seeds: u64, scope: &D) -> Option<(u64, Finding, usize)> {
    let run = |case: &Case<D::Subject>| run(case, &mut Totals::default());
    for seed in 1..=seeds {
        seeded::seed(None);
        let mut case = draw(seed, scope).expect("a case is drawn");
        if NEEDS_LOST_READS.contains(&bug) {
            case.drive.flash.faults.uncorrectable_read = 0.1;
        }
        seeded::seed(Some(bug));
        let Err(finding) = run(&case) else { continue };
        let shrunk = shrink(&case, &finding);
        let saved = Case::parse(&shrunk.case.to_text("shrunk"), "case.toml").expect("a case reads back");
        assert!(run(&saved).is_err(), "seed {seed}: the saved case does not fail with {bug:?}");
        seeded::seed(None);
        assert_eq!(run(&case), Ok(()), "seed {seed} fails without {bug:?}, too");
        assert_eq!(run(&saved), Ok(()), "what seed {seed} shrinks to fails without {bug:?}, too");
        return Some((seed, shrunk.finding, shrunk.case.steps.len()));
    }
    None
}

#[test]
fn every_seeded_bug_is_found_within_its_seeds() {
    let next = Mutex::new(ALLOWED.iter());
    let rows = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let Some((bug, allowed)) = next.lock().expect("no thread panics here").next() else { return };
                    let found = hunt(*bug, *allowed);
                    rows.lock().expect("no thread panics here").push((*bug, *allowed, found));
                }
            });
        }
    });
    let mut rows = rows.into_inner().expect("no thread panics here");
    rows.sort_by_key(|(bug, ..)| *bug as usize);
    let (mut wrong, mut table) = (Vec::new(), Vec::new());
    for (bug, allowed, found) in &rows {
        let story = bug.story();
        let (by, needed, steps) = match found {
            Some((seed, finding, steps)) => {
                let by = if finding.by_oracle() { "the oracle" } else { "the drive's or the chips' assertions" };
                (by, seed.to_string(), format!("{steps} steps"))
            }
            None => {
                wrong.push(format!("{bug:?} is not found in {allowed} seeds"));
                ("nothing", "-".to_string(), "-".to_string())
            }
        };
        table.push(format!("| {story} | {by} | {needed} | {allowed} | {steps} |"));
        println!("{}", table[table.len() - 1]);
    }
    assert_eq!(rows.len(), Bug::ALL.len(), "each bug has its row");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    page::hold("| seeded bug | found by | seeds needed | allowed | shrunk to |", &table);
}

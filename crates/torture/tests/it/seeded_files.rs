//! Bugs seeded into file systems: each is found within a stated number of seeds. Prints the table of `docs/torture.md`.
//!
//! `cargo test --release -p ssdlab-torture --features seeded-bugs --test it seeded_files:: -- --nocapture`

use ssdlab_fs::seeded::{FsBug, seed};
use ssdlab_torture::files::FileScope;
use ssdlab_torture::{Totals, draw, run};

use crate::seeded_hunt::hunt;

/// Each bug and the seeds in which it must be found; each seed is 200 calls.
const ALLOWED: [(FsBug, u64); 33] = [
    (FsBug::TrimBeforeCheckpoint, 400),
    (FsBug::CheckpointBeforeData, 400),
    (FsBug::OpenSegmentContinued, 400),
    (FsBug::TrimNotRepeated, 400),
    (FsBug::TableBlockLeftOut, 400),
    (FsBug::OldWriteOverNewer, 400),
    (FsBug::SizeAheadOfData, 400),
    (FsBug::OrphanNotListed, 400),
    (FsBug::HalfRename, 400),
    (FsBug::TailNotCleared, 400),
    (FsBug::FsyncWithoutCheckpoint, 400),
    (FsBug::CheckpointSegmentKept, 400),
    (FsBug::TruncationForgotten, 400),
    (FsBug::GenerationKept, 400),
    (FsBug::NumberUsedAgain, 400),
    (FsBug::RenameRolledForward, 400),
    (FsBug::FsyncBesideCheckpoint, 400),
    (FsBug::NodesNotWaitedFor, 400),
    (FsBug::PartOfFsync, 400),
    (FsBug::OldNodesRolledForward, 400),
    (FsBug::RolledSegmentTrimmed, 400),
    (FsBug::NameNotRolledForward, 400),
    (FsBug::NewestPlaceOverwritten, 400),
    (FsBug::NeededBlockWritten, 400),
    (FsBug::NodesBeforeFlush, 400),
    (FsBug::InPlaceNotAwaited, 400),
    (FsBug::InPlaceNotFlushed, 400),
    (FsBug::CommitBeforeFlush, 400),
    (FsBug::FreedBlockUsedAgain, 400),
    (FsBug::RevokedBlockReplayed, 400),
    (FsBug::DiscardBeforeCommit, 400),
    (FsBug::OrderedDataNotAwaited, 1000),
    (FsBug::OlderHomeCounts, 400),
];

#[test]
fn every_bug_seeded_into_a_file_system_is_found_within_its_seeds() {
    assert_eq!(ALLOWED.map(|(bug, _)| bug), FsBug::ALL);
    let [alfs, lfs, journaling] = ["alfs", "lfs", "journaling"].map(|kind| {
        let mut scope = FileScope::new(kind, "", 200).expect("a kind of file system");
        scope.faults = false;
        scope
    });
    hunt("| bug seeded into a file system | seeds needed | allowed |", &ALLOWED, FsBug::story, |bug, number| {
        seed(None);
        // These are in what only the other kind has, or need a write cache.
        let scope = match bug {
            bug if bug >= FsBug::CommitBeforeFlush => &journaling,
            bug if bug >= FsBug::NewestPlaceOverwritten => &lfs,
            _ => &alfs,
        };
        let case = draw(number, scope).expect("a case is drawn");
        seed(Some(bug));
        let fails = run(&case, &mut Totals::default()).is_err();
        seed(None);
        fails
    });
}

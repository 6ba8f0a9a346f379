//! Bugs seeded into layers: each is found within a stated number of seeds. Prints the table of `docs/torture.md`.
//!
//! `cargo test --release -p ssdlab-torture --features seeded-bugs --test it seeded_layers:: -- --nocapture`

use ssdlab_host::seeded::{LayerBug, seed};
use ssdlab_torture::stacks::StackScope;
use ssdlab_torture::{Totals, draw, run};

use crate::seeded_hunt::hunt;

/// Each bug and the seeds in which it must be found; each seed is 200 commands.
const ALLOWED: [(LayerBug, u64); 63] = [
    (LayerBug::BitAfterWrite, 400),
    (LayerBug::BitClearedUnflushed, 400),
    (LayerBug::RecordForgotten, 400),
    (LayerBug::ReadFromBehind, 400),
    (LayerBug::CopyIgnoresWrites, 400),
    (LayerBug::ResyncUnflushed, 400),
    (LayerBug::LastSideForgotten, 400),
    (LayerBug::FlushOfOneDevice, 400),
    (LayerBug::LostPartUnnoticed, 2000),
    (LayerBug::TableBeforeData, 400),
    (LayerBug::NewCopyTrimmed, 400),
    (LayerBug::ReadOvertaken, 16000),
    (LayerBug::FirstUnitDecides, 400),
    (LayerBug::PartOverOldCopy, 400),
    (LayerBug::OldEntryKept, 400),
    (LayerBug::RemapNotWaitedFor, 400),
    (LayerBug::RemapOverChange, 400),
    (LayerBug::PlacesFreedEarly, 400),
    (LayerBug::TableKeptAfterCut, 400),
    (LayerBug::LogNotRestored, 400),
    (LayerBug::TableUnflushed, 400),
    (LayerBug::FreedUnflushed, 400),
    (LayerBug::RemovalNotWritten, 400),
    (LayerBug::CopyOverChange, 400),
    (LayerBug::PartOverHome, 400),
    (LayerBug::TableKeptAfterLoss, 400),
    (LayerBug::TrimBeforeCommit, 1200),
    (LayerBug::CopyOverWrite, 1200),
    (LayerBug::EdgesNotRead, 1200),
    (LayerBug::CheckpointForgets, 6000),
    (LayerBug::TrimNotLogged, 1200),
    (LayerBug::FlushOfNothing, 1200),
    (LayerBug::LaterWriteFirst, 1200),
    (LayerBug::FlushBeforeWriteBack, 1000),
    (LayerBug::WriteBackCleansNewer, 1000),
    (LayerBug::TrimOvertaken, 1000),
    (LayerBug::FuaStaysInCache, 1000),
    (LayerBug::ReadAheadOverWrite, 1000),
    (LayerBug::CleanKeptAfterLoss, 1000),
    (LayerBug::PartOfUnreadBlock, 1000),
    (LayerBug::OthersNotRepeated, 1000),
    (LayerBug::AnswerBeforeMetadata, 400),
    (LayerBug::MetadataUnforced, 400),
    (LayerBug::DataUnforced, 400),
    (LayerBug::CleanUnforced, 400),
    (LayerBug::CleanNotWritten, 400),
    (LayerBug::PastDirtyBlock, 400),
    (LayerBug::OldBlockKept, 400),
    (LayerBug::FillAfterLoss, 400),
    (LayerBug::FlushOfCacheAlone, 400),
    (LayerBug::FillOverWrite, 4000),
    (LayerBug::CleanBeforeFlush, 4000),
    (LayerBug::OlderCopyKept, 4000),
    (LayerBug::EvictBeforeDisk, 4000),
    (LayerBug::CleanKeptAfterCrash, 4000),
    (LayerBug::CopyCleansNewer, 4000),
    (LayerBug::CopyBeforeFlush, 4000),
    (LayerBug::DirtyTableKept, 4000),
    (LayerBug::DiskNotFlushed, 4000),
    (LayerBug::DiskBeforeBit, 4000),
    (LayerBug::PartOverDirty, 4000),
    (LayerBug::PatternTrusted, 4000),
    (LayerBug::ErrorOverDirty, 4000),
];

/// Those that seeds with drivers look for.
const OF_DRIVERS: [std::ops::RangeInclusive<LayerBug>; 3] = [
    LayerBug::TableBeforeData..=LayerBug::LogNotRestored,
    LayerBug::TrimBeforeCommit..=LayerBug::LaterWriteFirst,
    LayerBug::FillOverWrite..=LayerBug::ErrorOverDirty,
];

#[test]
fn every_bug_seeded_into_a_layer_is_found_within_its_seeds() {
    assert_eq!(ALLOWED.map(|(bug, _)| bug), LayerBug::ALL);
    hunt("| seeded bug | seeds needed | allowed |", &ALLOWED, LayerBug::story, |bug, number| {
        let drivers = OF_DRIVERS.iter().any(|bugs| bugs.contains(&bug));
        // Nothing but an error shows how errors are handled.
        let faults = bug == LayerBug::OthersNotRepeated;
        let scope = StackScope { host: None, drive: None, commands: 200, drivers, faults };
        seed(None);
        let case = draw(number, &scope).expect("a case is drawn");
        seed(Some(bug));
        let fails = run(&case, &mut Totals::default()).is_err();
        seed(None);
        fails
    });
}

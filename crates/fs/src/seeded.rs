//! Bugs seeded on purpose into file systems, so that what looks for bugs can be seen to find them.
//!
//! Each is one deviation from what a file system promises, switched on for one thread. Without the feature `seeded-bugs` none of
//! this is compiled in: `seeded` is `false` for the compiler as well.

/// A bug that can be seeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub enum FsBug {
    /// A segment is trimmed before a check-point without it is durable.
    TrimBeforeCheckpoint,
    /// A check-point is written before what it points to has completed.
    CheckpointBeforeData,
    /// A segment that was open before a crash is written on.
    OpenSegmentContinued,
    /// A segment that a check-point calls free is not trimmed again after a crash.
    TrimNotRepeated,
    /// The last dirty TIMB block is left out of a check-point.
    TableBlockLeftOut,
    /// A page is clean when a write of it has ended, although it was changed meanwhile.
    OldWriteOverNewer,
    /// A check-point has a size whose data is not on the drive.
    SizeAheadOfData,
    /// A file that is unlinked and open is not in the list of a check-point.
    OrphanNotListed,
    /// A rename to another directory is in a check-point with one half.
    HalfRename,
    /// A file that becomes longer shows what its last block had behind its end.
    TailNotCleared,
    /// An fsync is answered when its data is written, without a check-point.
    FsyncWithoutCheckpoint,
    /// The first check-point after a mount goes on in the segment of the last.
    CheckpointSegmentKept,
    /// A truncation that a crash interrupts is not taken up again.
    TruncationForgotten,
    /// A freed inode is used again with the generation that it had.
    GenerationKept,
    /// A number that the check-point knows is used again before the next one.
    NumberUsedAgain,
    /// An fsync of a file whose name has changed is none of a check-point.
    RenameRolledForward,
    /// Nodes of an fsync are written beside a check-point that is not durable.
    FsyncBesideCheckpoint,
    /// An fsync is answered when its nodes are sent.
    NodesNotWaitedFor,
    /// A mount takes the nodes of an fsync that are not all there.
    PartOfFsync,
    /// A mount takes nodes that are older than the check-point.
    OldNodesRolledForward,
    /// A mount trims segments that fsyncs have written since the check-point.
    RolledSegmentTrimmed,
    /// A mount takes a new file without its name.
    NameNotRolledForward,
    /// A check-point overwrites the place of a block of the node map or of the usage table that the one before needs.
    NewestPlaceOverwritten,
    /// A log writes blocks of a segment again that the newest check-point needs.
    NeededBlockWritten,
    /// Nodes of an fsync are sent before the drive has flushed the data that they name.
    NodesBeforeFlush,
    /// An fsync does not wait for pages that are written in place.
    InPlaceNotAwaited,
    /// An fsync that writes no node does not flush pages that were written in place.
    InPlaceNotFlushed,
    /// A commit block is sent before the drive has flushed what it stands for.
    CommitBeforeFlush,
    /// A block is used again before the commit is durable that freed it.
    FreedBlockUsedAgain,
    /// A mount replays a block of the journal that was freed later.
    RevokedBlockReplayed,
    /// Freed blocks are trimmed before their commit is durable.
    DiscardBeforeCommit,
    /// A commit does not wait for the data that its blocks name.
    OrderedDataNotAwaited,
    /// A block that was committed again while it was being written to its place counts as written.
    OlderHomeCounts,
}

impl FsBug {
    /// All of them.
    pub const ALL: [FsBug; 33] = [
        FsBug::TrimBeforeCheckpoint,
        FsBug::CheckpointBeforeData,
        FsBug::OpenSegmentContinued,
        FsBug::TrimNotRepeated,
        FsBug::TableBlockLeftOut,
        FsBug::OldWriteOverNewer,
        FsBug::SizeAheadOfData,
        FsBug::OrphanNotListed,
        FsBug::HalfRename,
        FsBug::TailNotCleared,
        FsBug::FsyncWithoutCheckpoint,
        FsBug::CheckpointSegmentKept,
        FsBug::TruncationForgotten,
        FsBug::GenerationKept,
        FsBug::NumberUsedAgain,
        FsBug::RenameRolledForward,
        FsBug::FsyncBesideCheckpoint,
        FsBug::NodesNotWaitedFor,
        FsBug::PartOfFsync,
        FsBug::OldNodesRolledForward,
        FsBug::RolledSegmentTrimmed,
        FsBug::NameNotRolledForward,
        FsBug::NewestPlaceOverwritten,
        FsBug::NeededBlockWritten,
        FsBug::NodesBeforeFlush,
        FsBug::InPlaceNotAwaited,
        FsBug::InPlaceNotFlushed,
        FsBug::CommitBeforeFlush,
        FsBug::FreedBlockUsedAgain,
        FsBug::RevokedBlockReplayed,
        FsBug::DiscardBeforeCommit,
        FsBug::OrderedDataNotAwaited,
        FsBug::OlderHomeCounts,
    ];

    /// What goes wrong, in one line of a table.
    #[must_use]
    pub const fn story(self) -> &'static str {
        match self {
            FsBug::TrimBeforeCheckpoint => "a segment is trimmed before a check-point without it is durable",
            FsBug::CheckpointBeforeData => "a check-point is written before what it points to has completed",
            FsBug::OpenSegmentContinued => "a segment that was open before a crash is written on",
            FsBug::TrimNotRepeated => "a segment that a check-point calls free is not trimmed again after a crash",
            FsBug::TableBlockLeftOut => "the last dirty TIMB block is left out of a check-point",
            FsBug::OldWriteOverNewer => {
                "a page is clean when a write of it has ended, although it was changed meanwhile"
            }
            FsBug::SizeAheadOfData => "a check-point has a size whose data is not on the drive",
            FsBug::OrphanNotListed => "a file that is unlinked and open is not in the list of a check-point",
            FsBug::HalfRename => "a rename to another directory is in a check-point with one half",
            FsBug::TailNotCleared => "a file that becomes longer shows what its last block had behind its end",
            FsBug::FsyncWithoutCheckpoint => "an fsync is answered without a check-point",
            FsBug::CheckpointSegmentKept => "the first check-point after a mount goes on in the segment of the last",
            FsBug::TruncationForgotten => "a truncation that a crash interrupts is not taken up again",
            FsBug::GenerationKept => "a freed inode is used again with the generation that it had",
            FsBug::NumberUsedAgain => "a number that the check-point knows is used again before the next check-point",
            FsBug::RenameRolledForward => "an fsync of a renamed file writes its nodes and no check-point",
            FsBug::FsyncBesideCheckpoint => "nodes of an fsync are written beside a check-point that is not durable",
            FsBug::NodesNotWaitedFor => "an fsync is answered when its nodes are sent",
            FsBug::PartOfFsync => "a mount takes the nodes of an fsync that are not all there",
            FsBug::OldNodesRolledForward => "a mount takes nodes that are older than the check-point",
            FsBug::RolledSegmentTrimmed => "a mount trims segments that fsyncs have written since the check-point",
            FsBug::NameNotRolledForward => "a mount takes a new file without its name",
            FsBug::NewestPlaceOverwritten => {
                "a check-point overwrites the place of a table's block that the one before needs"
            }
            FsBug::NeededBlockWritten => "a log writes blocks of a segment again that the newest check-point needs",
            FsBug::NodesBeforeFlush => "nodes of an fsync are sent before the data that they name is flushed",
            FsBug::InPlaceNotAwaited => "an fsync does not wait for pages that are written in place",
            FsBug::InPlaceNotFlushed => "an fsync that writes no node does not flush pages that were written in place",
            FsBug::CommitBeforeFlush => "a commit block is sent without a flush before it",
            FsBug::FreedBlockUsedAgain => "a freed block is used again before its commit is durable",
            FsBug::RevokedBlockReplayed => "a mount replays a revoked block",
            FsBug::DiscardBeforeCommit => "freed blocks are trimmed before their commit is durable",
            FsBug::OrderedDataNotAwaited => "a commit does not wait for the data that its blocks name",
            FsBug::OlderHomeCounts => {
                "a block that was committed again while it was being written to its place counts as written"
            }
        }
    }
}

#[cfg(feature = "seeded-bugs")]
std::thread_local! {
    static SEEDED: std::cell::Cell<Option<FsBug>> = const { std::cell::Cell::new(None) };
}

/// File systems of this thread have this bug from now on; `None` takes it away.
#[cfg(feature = "seeded-bugs")]
pub fn seed(bug: Option<FsBug>) {
    SEEDED.set(bug);
}

/// Whether file systems of this thread have this bug.
#[cfg(feature = "seeded-bugs")]
#[inline]
pub(crate) fn seeded(bug: FsBug) -> bool {
    SEEDED.get() == Some(bug)
}

/// Whether file systems of this thread have this bug.
#[cfg(not(feature = "seeded-bugs"))]
#[inline]
pub(crate) const fn seeded(_: FsBug) -> bool {
    false
}

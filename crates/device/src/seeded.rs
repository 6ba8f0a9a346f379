//! Bugs seeded on purpose, so that what looks for bugs can be seen to find them.
//!
//! Each is one deviation from what the drive promises, switched on for one thread. Without the feature `seeded-bugs`
//! none of this is compiled in: `seeded` is `false` for the compiler as well.

/// A bug that can be seeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// An erase does not wait for the program of the newer copy.
    EraseDoesNotWait,
    /// A flush completes while pages are on their way.
    FlushReturnsEarly,
    /// A flush leaves the last completed write in RAM.
    FlushMissesTheLast,
    /// A FUA write is treated as a plain one.
    FuaIsPlain,
    /// A flush does not write the records of trims.
    TrimForgotten,
    /// A block that trims took from is erased before the record of that is on flash.
    EraseBeforeTrimRecord,
    /// A record of trims calls a unit mapped whose program has not ended.
    MapBeforeData,
    /// What a failed page superseded is let go before the page is on flash elsewhere.
    FailedPageLetGo,
    /// Recovery takes a torn page for a written one.
    TornPageTrusted,
    /// Recovery does not erase a torn block again.
    TornBlockFree,
    /// Recovery gives out the newest page's number again.
    SequenceReused,
    /// Relocation takes a superseded unit along, and it becomes the current one.
    SupersededMoved,
    /// A unit written in part loses its other sectors.
    OldSectorsDropped,
    /// A unit that has just left the buffer and is overwritten keeps what it had.
    OverwriteLost,
    /// A unit whose data was lost on the way is not marked, and reads as something else.
    LostDataReadsGood,
    /// A block in which a program failed is erased and used again.
    BadBlockUsed,
    /// Of two versions of a page the older one is believed.
    OlderVersionWins,
    /// A merge leaves out one of the versions.
    MergeForgetsVersion,
    /// Recovery finds full pages only.
    ChainDropped,
    /// Recovery takes the members of a superblock that was being written for written equally far.
    MembersInStep,
    /// A superblock is free when the first of its members is erased.
    FreeAtFirstErase,
    /// A page of the stripe is missing in its parity.
    ParityMissesPage,
    /// After a power cut a stripe goes on whose parity is on flash already.
    StaleParityTrusted,
    /// A page is rebuilt with a page of the next stripe in place of one of its own.
    RebuiltFromNextStripe,
    /// Parity does not wait for data that is still being read.
    ParityDoesNotWait,
    /// The header of a merged block lets older blocks answer for pages that were trimmed.
    HeaderForgetsTrims,
    /// A merge of several blocks keeps the newest of them alone from being erased before its copies are on flash.
    MergeKeepsNewestOnly,
    /// Recovery takes a copy that was interrupted for one that has everything.
    CopyTakenForWhole,
    /// A log block whose pages are in no order becomes a data block.
    SwitchOutOfOrder,
    /// A log block becomes the data block of a logical block that has trimmed pages.
    SwitchForgetsTrims,
    /// A full merge keeps the data block alone from being erased before its copies are on flash, and no log block.
    MergePinsDataBlock,
    /// The header of a full merge does not tell which pages held nothing.
    HeaderTellsNoTrims,
    /// A bad block of a segment is erased before its pages are on flash elsewhere.
    ReplacedBlockNotPinned,
    /// Recovery takes a block that was to replace another for whole.
    UnfinishedReplacementTaken,
    /// Recovery does not heed the record of trimmed segments.
    RecordIgnored,
    /// A record lists the segments that were trimmed since the one before alone.
    RecordForgetsOlderTrims,
    /// Blocks of a trimmed segment are erased before a record of the trim is on flash.
    ErasedBeforeRecord,
    /// Recovery takes pages of a segment that were written before its trim for current ones.
    GenerationsMixed,
    /// A segment with holes takes writes after recovery.
    HolesStayOpen,
    /// Recovery takes a moved map page for one that knows of everything before its move.
    MoveMakesMapPageNew,
    /// The record of what is active leaves out blocks that were written in part.
    RecordForgetsOpenBlocks,
    /// The record of what is active does not wait for the dirty map pages.
    RecordBeforeMapPages,
    /// The record of what is active has the number of its own program.
    RecordIsLate,
    /// Recovery believes copies in active blocks that are older than the map page.
    MapPageForgotten,
    /// Of several copies of a map page recovery takes the one that it reads last.
    OlderMapPageWins,
    /// A mapping unit that map pages share is free as soon as newer copies of all are on their way to flash.
    SharedUnitFreedEarly,
    /// A map page is programmed while what it names is not on flash.
    MapPageNamesUnwritten,
    /// What recovery finds beyond the map does not make map pages dirty.
    RecoveryLeavesPageClean,
    /// A host that starts anew is not told of the first event that it did not acknowledge.
    EventForgotten,
    /// An event comes before an earlier one that was not delivered yet.
    EventOvertakes,
    /// An acknowledgement leaves the last of the events that it covers.
    AcknowledgedAgain,
    /// A write that is refused for a tag of zero leaves its other tags behind.
    RefusedCommandActs,
    /// A command of a set that waited for a free block begins anew.
    ExecutedTwice,
    /// The record of what is active leaves out log blocks with names that are not final.
    UnsettledLogForgotten,
    /// A unit that is moved gets the number of what the host writes then.
    MoveRenumbers,
    /// Recovery does not compare copies in the log with what the map has.
    AutoremapAnyWins,
    /// A remap leaves the map page of the oLPN clean.
    RemapForgetsMapPage,
    /// A trim forgets copies of its units that are in the log.
    TrimForgetsLog,
    /// After recovery the numbers of the host's writes begin anew.
    NumbersBeginAnew,
    /// An older copy of a unit stays in the write buffer while a newer one goes to the log.
    BufferedCopyForgotten,
    /// A remap does not wait for the programs of what it names.
    RemapBeforeData,
    /// Data for the log completes before it is on flash.
    LogNotWrittenThrough,
    /// An erase waits for the program of the newer copy, and not for the list that names it.
    EraseBeforeList,
    /// A flush completes before lists name what it covers.
    FlushBeforeLists,
    /// A FUA write completes before a list names it.
    FuaBeforeList,
    /// A list names the units of a page whose program failed.
    FailedPageListed,
    /// A list on its way still names a page whose program fails meanwhile.
    FailureNotRelisted,
    /// A list leaves out which units were lost.
    LostMarkNotListed,
    /// A list whose program failed counts as one on flash.
    FailedListTrusted,
    /// What a failed page superseded is let go before a list names the page that replaces it.
    ReplacedBeforeList,
    /// A trimmed block is erased before a list names the record of the trim.
    TrimRecordNotListed,
    /// A record of trims calls a unit mapped that no list names.
    RevivalBeforeList,
    /// Recovery takes pages that no list names, torn ones among them.
    UnlistedPagesTaken,
    /// Recovery takes the oldest list of an open block.
    OlderListTaken,
    /// Probing in the map of a cache ends at a slot that was emptied.
    HoleInMap,
    /// A block is looked up in the map of a cache, and another one that is in its place is taken for it.
    CollisionTaken,
    /// Collection drops a dirty block of a cache.
    DirtyDropped,
    /// The owner of a unit that is written clean has no mark.
    MarkMissing,
    /// The owner of a dirty unit has the mark of the clean one that it supersedes.
    MarkKept,
    /// The owner of a clean unit loses its mark when it is moved.
    MovedWithoutMark,
    /// The log has no note on a block that was evicted.
    EvictionNotNoted,
    /// The copy of an evicted block is erased before the note on it is on flash.
    EvictedCopyErased,
    /// The note on a block that was cleaned does not say which copy is clean.
    CleanedCopyUnnamed,
    /// The note on an evicted block holds for the write that follows, too.
    NoteOutlivesEviction,
    /// Recovery believes the oldest of several notes on a block.
    OlderNoteWins,
    /// Recovery takes the copy of a cached block that it finds last.
    OlderCopyFound,
    /// A write takes the room of a block whose eviction a power cut may undo.
    ReturningForgotten,
    /// Recovery takes a checkpoint that lacks pages.
    TornCheckpointTaken,
    /// A block that a checkpoint calls settled is erased, and no record says so.
    ErasedWithoutRecord,
    /// A page of the map changes, and the next checkpoint does not write it.
    ChangedPageForgotten,
    /// A checkpoint calls a block settled whose copies are superseded by what is not on flash yet.
    PinnedBlockSettled,
}

impl Bug {
    /// All of them.
    pub const ALL: [Bug; 91] = [
        Bug::EraseDoesNotWait,
        Bug::FlushReturnsEarly,
        Bug::FlushMissesTheLast,
        Bug::FuaIsPlain,
        Bug::TrimForgotten,
        Bug::EraseBeforeTrimRecord,
        Bug::MapBeforeData,
        Bug::FailedPageLetGo,
        Bug::TornPageTrusted,
        Bug::TornBlockFree,
        Bug::SequenceReused,
        Bug::SupersededMoved,
        Bug::OldSectorsDropped,
        Bug::OverwriteLost,
        Bug::LostDataReadsGood,
        Bug::BadBlockUsed,
        Bug::OlderVersionWins,
        Bug::MergeForgetsVersion,
        Bug::ChainDropped,
        Bug::MembersInStep,
        Bug::FreeAtFirstErase,
        Bug::ParityMissesPage,
        Bug::StaleParityTrusted,
        Bug::RebuiltFromNextStripe,
        Bug::ParityDoesNotWait,
        Bug::HeaderForgetsTrims,
        Bug::MergeKeepsNewestOnly,
        Bug::CopyTakenForWhole,
        Bug::SwitchOutOfOrder,
        Bug::SwitchForgetsTrims,
        Bug::MergePinsDataBlock,
        Bug::HeaderTellsNoTrims,
        Bug::ReplacedBlockNotPinned,
        Bug::UnfinishedReplacementTaken,
        Bug::RecordIgnored,
        Bug::RecordForgetsOlderTrims,
        Bug::ErasedBeforeRecord,
        Bug::GenerationsMixed,
        Bug::HolesStayOpen,
        Bug::MoveMakesMapPageNew,
        Bug::RecordForgetsOpenBlocks,
        Bug::RecordBeforeMapPages,
        Bug::RecordIsLate,
        Bug::MapPageForgotten,
        Bug::OlderMapPageWins,
        Bug::SharedUnitFreedEarly,
        Bug::MapPageNamesUnwritten,
        Bug::RecoveryLeavesPageClean,
        Bug::EventForgotten,
        Bug::EventOvertakes,
        Bug::AcknowledgedAgain,
        Bug::RefusedCommandActs,
        Bug::ExecutedTwice,
        Bug::UnsettledLogForgotten,
        Bug::MoveRenumbers,
        Bug::AutoremapAnyWins,
        Bug::RemapForgetsMapPage,
        Bug::TrimForgetsLog,
        Bug::NumbersBeginAnew,
        Bug::BufferedCopyForgotten,
        Bug::RemapBeforeData,
        Bug::LogNotWrittenThrough,
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

    /// What is wrong, in a few words.
    pub const fn story(self) -> &'static str {
        match self {
            Bug::EraseDoesNotWait => "an erase does not wait for the newer copy's program",
            Bug::FlushReturnsEarly => "a flush completes while programs are in flight",
            Bug::FlushMissesTheLast => "a flush leaves the last completed write in RAM",
            Bug::FuaIsPlain => "a FUA write is treated as a plain one",
            Bug::TrimForgotten => "a flush does not write the records of trims",
            Bug::EraseBeforeTrimRecord => "a trimmed block is erased before the record of the trim is on flash",
            Bug::MapBeforeData => "a record calls a unit mapped whose program has not ended",
            Bug::FailedPageLetGo => "the copies that a failed page superseded are released before its data is safe",
            Bug::TornPageTrusted => "recovery trusts a torn page",
            Bug::TornBlockFree => "recovery takes a torn block for an erased one",
            Bug::SequenceReused => "a sequence number is given out again after recovery",
            Bug::SupersededMoved => "relocation copies a superseded unit over the newer one",
            Bug::OldSectorsDropped => "a read-modify-write drops the old sectors",
            Bug::OverwriteLost => "the buffer loses an overwrite of a unit in flight",
            Bug::LostDataReadsGood => "data that was lost on the way reads as good",
            Bug::BadBlockUsed => "a block in which a program failed is used again",
            Bug::OlderVersionWins => "the older of two versions of a page is believed",
            Bug::MergeForgetsVersion => "a merge leaves out one of three versions",
            Bug::ChainDropped => "recovery finds full pages and none of their versions",
            Bug::MembersInStep => "recovery takes a superblock's members for written equally far",
            Bug::FreeAtFirstErase => "a superblock is free when its first member is erased",
            Bug::ParityMissesPage => "parity leaves out one page of its stripe",
            Bug::StaleParityTrusted => "a stripe goes on after a power cut with the parity that it had before",
            Bug::RebuiltFromNextStripe => "a page is rebuilt with one page of the next stripe",
            Bug::ParityDoesNotWait => "parity does not wait for data that is still being read",
            Bug::HeaderForgetsTrims => "the header of a merged block forgets which pages were trimmed",
            Bug::MergeKeepsNewestOnly => "the older blocks of an interrupted merge are erased too early",
            Bug::CopyTakenForWhole => "recovery takes an interrupted copy for a whole one",
            Bug::SwitchOutOfOrder => "a log block whose pages are in no order becomes a data block",
            Bug::SwitchForgetsTrims => "a log block becomes the data block where pages were trimmed",
            Bug::MergePinsDataBlock => "a log block is erased before what was merged out of it is on flash",
            Bug::HeaderTellsNoTrims => "the header of a full merge does not tell of trims",
            Bug::ReplacedBlockNotPinned => {
                "a replaced block of a segment is erased before its pages are on flash elsewhere"
            }
            Bug::UnfinishedReplacementTaken => "recovery takes the unfinished replacement of a block for a whole one",
            Bug::RecordIgnored => "recovery does not heed the record of trimmed segments",
            Bug::RecordForgetsOlderTrims => "a record leaves out segments that an older record lists",
            Bug::ErasedBeforeRecord => "blocks of a trimmed segment are erased before the record of its trim",
            Bug::GenerationsMixed => "recovery mixes pages of a segment from before and after its trim",
            Bug::HolesStayOpen => "a segment that a power cut left with holes takes writes",
            Bug::MoveMakesMapPageNew => "recovery takes a moved map page for one written anew",
            Bug::RecordForgetsOpenBlocks => "the record of active blocks leaves out blocks written in part",
            Bug::RecordBeforeMapPages => "the record of active blocks does not wait for the dirty map pages",
            Bug::RecordIsLate => "the record of active blocks counts from its own program",
            Bug::MapPageForgotten => "recovery believes copies that are older than their map page",
            Bug::OlderMapPageWins => "recovery takes the copy of a map page that it reads last",
            Bug::SharedUnitFreedEarly => "a unit of map pages is free before newer copies of them are on flash",
            Bug::MapPageNamesUnwritten => "a map page is programmed before the data that it names",
            Bug::RecoveryLeavesPageClean => "recovery leaves map pages clean that lack what it found",
            Bug::EventForgotten => "a host that starts anew misses the first event that it did not acknowledge",
            Bug::EventOvertakes => "an event overtakes an earlier one that was not delivered",
            Bug::AcknowledgedAgain => "an acknowledged event is delivered again",
            Bug::RefusedCommandActs => "a refused command changes something",
            Bug::ExecutedTwice => "a command of a set that waited for a free block is executed twice",
            Bug::UnsettledLogForgotten => "the record of active blocks leaves out log blocks whose names are not final",
            Bug::MoveRenumbers => "a moved unit counts as written by the host when it was moved",
            Bug::AutoremapAnyWins => "recovery gives a unit's name to any copy in the log",
            Bug::RemapForgetsMapPage => "a remap leaves the map page of the final name clean",
            Bug::TrimForgetsLog => "a trim forgets the copies in the log",
            Bug::NumbersBeginAnew => "after recovery the host's writes are numbered anew",
            Bug::BufferedCopyForgotten => "an older copy leaves the write buffer after a newer one was logged",
            Bug::RemapBeforeData => "a remap does not wait for the program of its data",
            Bug::LogNotWrittenThrough => "data for the log completes before it is on flash",
            Bug::EraseBeforeList => "an erase does not wait for the list that names the newer copy",
            Bug::FlushBeforeLists => "a flush leaves out the lists of open blocks",
            Bug::FuaBeforeList => "a FUA write is acknowledged before its list",
            Bug::FailedPageListed => "a list names a page whose program failed",
            Bug::FailureNotRelisted => "a list on its way still names a page that fails meanwhile",
            Bug::LostMarkNotListed => "a list leaves out the marks of lost data",
            Bug::FailedListTrusted => "a list whose program failed counts as one on flash",
            Bug::ReplacedBeforeList => "copies behind a failed page are released before a list names its replacement",
            Bug::TrimRecordNotListed => "a trimmed block is erased before a list names the record",
            Bug::RevivalBeforeList => "a record of trims trusts a unit that no list names",
            Bug::UnlistedPagesTaken => "recovery takes pages that no list names",
            Bug::OlderListTaken => "recovery takes the oldest list of an open block",
            Bug::HoleInMap => "probing in the map of a cache ends at a slot that was emptied",
            Bug::CollisionTaken => "the map of a cache answers with the block of another address",
            Bug::DirtyDropped => "collection drops a dirty block of a cache",
            Bug::MarkMissing => "the owner of a unit that is written clean has no mark",
            Bug::MarkKept => "the owner of a dirty unit keeps the mark of the clean one before it",
            Bug::MovedWithoutMark => "a clean unit loses its mark when it is moved",
            Bug::EvictionNotNoted => "the log has no note on an evicted block",
            Bug::EvictedCopyErased => "the copy of an evicted block is erased before its note is on flash",
            Bug::CleanedCopyUnnamed => "the note on a cleaned block does not name its copy",
            Bug::NoteOutlivesEviction => "the note on an evicted block holds for the next write as well",
            Bug::OlderNoteWins => "recovery believes the oldest note on a block",
            Bug::OlderCopyFound => "recovery takes the copy of a cached block that it finds last",
            Bug::ReturningForgotten => "a write takes room whose release a power cut may undo",
            Bug::TornCheckpointTaken => "recovery takes a checkpoint that lacks pages",
            Bug::ErasedWithoutRecord => "a block that a checkpoint describes is erased without a record",
            Bug::ChangedPageForgotten => "a page of the map that changed is not in the next checkpoint",
            Bug::PinnedBlockSettled => "a checkpoint relies on a block whose newer copies are in flight",
        }
    }
}

#[cfg(feature = "seeded-bugs")]
std::thread_local! {
    static SEEDED: std::cell::Cell<Option<Bug>> = const { std::cell::Cell::new(None) };
}

/// Drives of this thread have this bug from now on; `None` takes it away.
#[cfg(feature = "seeded-bugs")]
pub fn seed(bug: Option<Bug>) {
    SEEDED.set(bug);
}

/// Whether drives of this thread have this bug.
#[cfg(feature = "seeded-bugs")]
#[inline]
pub(crate) fn seeded(bug: Bug) -> bool {
    SEEDED.get() == Some(bug)
}

/// Without the feature there is no bug.
#[cfg(not(feature = "seeded-bugs"))]
#[inline(always)]
pub(crate) const fn seeded(_: Bug) -> bool {
    false
}

//! Bugs seeded on purpose into layers, so that what looks for bugs can be seen to find them.
//!
//! Each is one deviation from what a layer promises, switched on for one thread. Without the feature `seeded-bugs` none of
//! this is compiled in: `seeded` is `false` for the compiler as well.

/// A bug that can be seeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub enum LayerBug {
    /// A mirror's write does not wait for the bits of its regions.
    BitAfterWrite,
    /// A region's bit is cleared when its last write has ended, flushed or not.
    BitClearedUnflushed,
    /// Nothing records that a side was left behind.
    RecordForgotten,
    /// Reads go to sides that are left behind.
    ReadFromBehind,
    /// A copy to a side that is left behind does not wait for writes to the same sectors, nor do they wait for it.
    CopyIgnoresWrites,
    /// A side counts as in sync before what was copied to it is flushed.
    ResyncUnflushed,
    /// What the last side in sync lost in flight is not written to it again.
    LastSideForgotten,
    /// A stripe's flush goes to the first device alone.
    FlushOfOneDevice,
    /// A stripe reports success after a device that had done its part has lost it.
    LostPartUnnoticed,
    /// SHRD's driver reads from the log before the data is there.
    TableBeforeData,
    /// SHRD's driver trims the new copy of a unit in the log, and keeps the old one.
    NewCopyTrimmed,
    /// SHRD's driver remaps or trims a unit in the log that is being read.
    ReadOvertaken,
    /// SHRD's driver reads all of a request where its first unit is.
    FirstUnitDecides,
    /// SHRD's driver sends a write of part of a unit home while the unit is in the log.
    PartOverOldCopy,
    /// SHRD's driver reads a unit from the log after it was written or trimmed elsewhere.
    OldEntryKept,
    /// SHRD's driver lets commands touch units that a remap moves.
    RemapNotWaitedFor,
    /// SHRD's driver remaps a unit while a change of its own address is in the drive.
    RemapOverChange,
    /// SHRD's driver gives places out again before what is in them was remapped.
    PlacesFreedEarly,
    /// SHRD's driver keeps its table when the drive has lost its power.
    TableKeptAfterCut,
    /// SHRD's driver begins above a drive whose log another host filled, and does not restore it.
    LogNotRestored,
    /// Restoring in the host writes table entries for FUA writes, and with them those of data that no flush has covered.
    TableUnflushed,
    /// Restoring in the host frees places before the copies of what is in them are flushed.
    FreedUnflushed,
    /// Restoring in the host does not write to the device that a unit has left the log.
    RemovalNotWritten,
    /// Restoring in the host copies a unit home while a change of it is below, and changes one that it copies.
    CopyOverChange,
    /// Restoring in the host writes a part of a unit at home while the unit is in the log.
    PartOverHome,
    /// Restoring in the host keeps its table when a device below has lost what was not flushed.
    TableKeptAfterLoss,
    /// The layer `append` trims a cleaned segment before a commit says where its units are.
    TrimBeforeCommit,
    /// The layer `append` overwrites a newer host write when it cleans.
    CopyOverWrite,
    /// The layer `append` writes a part of a unit without reading the rest.
    EdgesNotRead,
    /// The layer `append` ends a checkpoint without what was committed since it began.
    CheckpointForgets,
    /// The layer `append` does not write to the log what the host trims.
    TrimNotLogged,
    /// The layer `append` answers a flush before the commit on its way has ended.
    FlushOfNothing,
    /// The layer `append` lets a write take effect before earlier ones to the same units.
    LaterWriteFirst,
    /// A page cache answers a flush before the write-back in flight has ended.
    FlushBeforeWriteBack,
    /// A page cache counts a block as clean that was changed while its older copy went down.
    WriteBackCleansNewer,
    /// A page cache writes blocks back while a trim of them is below.
    TrimOvertaken,
    /// A page cache keeps a FUA write as it keeps others.
    FuaStaysInCache,
    /// A page cache takes what was read ahead over what was written meanwhile.
    ReadAheadOverWrite,
    /// A page cache keeps clean blocks when the drive has lost what it had of them.
    CleanKeptAfterLoss,
    /// A page cache writes a part of a block that it does not have, and takes the rest as zeroes.
    PartOfUnreadBlock,
    /// The error handler answers commands that were in flight with a failed one, and does not send them again.
    OthersNotRepeated,
    /// FlashCache answers a write before the metadata says that its blocks are dirty.
    AnswerBeforeMetadata,
    /// FlashCache leaves metadata in the buffer of the cache.
    MetadataUnforced,
    /// FlashCache writes metadata of data that is in the buffer of the cache.
    DataUnforced,
    /// FlashCache counts blocks as clean that are in the buffer of the disk.
    CleanUnforced,
    /// FlashCache gives slots to other blocks while the metadata says that they are dirty.
    CleanNotWritten,
    /// FlashCache sends a part of a block past a dirty block.
    PastDirtyBlock,
    /// FlashCache keeps a clean block that is written past it.
    OldBlockKept,
    /// FlashCache keeps what a command brought that began before a device lost what it had buffered.
    FillAfterLoss,
    /// FlashCache flushes the cache and not the disk.
    FlushOfCacheAlone,
    /// A cache manager fills a block from the disk after a write to it.
    FillOverWrite,
    /// A cache manager calls blocks clean before the disk has flushed them.
    CleanBeforeFlush,
    /// A cache manager writes the disk and leaves the older copy in the cache.
    OlderCopyKept,
    /// A cache manager evicts a dirty block when the disk has taken a write over it, and has not flushed it.
    EvictBeforeDisk,
    /// A cache manager drops no clean block after a crash.
    CleanKeptAfterCrash,
    /// A cache manager calls a block clean that was changed since it was copied.
    CopyCleansNewer,
    /// A cache manager copies dirty blocks to the disk that the cache does not have on flash.
    CopyBeforeFlush,
    /// A cache manager keeps its table of dirty blocks when the cache has lost its power.
    DirtyTableKept,
    /// A cache manager does not flush the disk after writes of it.
    DiskNotFlushed,
    /// A cache manager's write of the disk does not wait for the bits of its regions.
    DiskBeforeBit,
    /// A cache manager writes a part of a dirty block on the disk, and evicts the block.
    PartOverDirty,
    /// A cache manager takes a dirty block that holds the pattern of a miss for absent.
    PatternTrusted,
    /// A cache manager that is told of misses by errors reads dirty blocks from the disk.
    ErrorOverDirty,
}

impl LayerBug {
    /// All of them.
    pub const ALL: [LayerBug; 63] = [
        LayerBug::BitAfterWrite,
        LayerBug::BitClearedUnflushed,
        LayerBug::RecordForgotten,
        LayerBug::ReadFromBehind,
        LayerBug::CopyIgnoresWrites,
        LayerBug::ResyncUnflushed,
        LayerBug::LastSideForgotten,
        LayerBug::FlushOfOneDevice,
        LayerBug::LostPartUnnoticed,
        LayerBug::TableBeforeData,
        LayerBug::NewCopyTrimmed,
        LayerBug::ReadOvertaken,
        LayerBug::FirstUnitDecides,
        LayerBug::PartOverOldCopy,
        LayerBug::OldEntryKept,
        LayerBug::RemapNotWaitedFor,
        LayerBug::RemapOverChange,
        LayerBug::PlacesFreedEarly,
        LayerBug::TableKeptAfterCut,
        LayerBug::LogNotRestored,
        LayerBug::TableUnflushed,
        LayerBug::FreedUnflushed,
        LayerBug::RemovalNotWritten,
        LayerBug::CopyOverChange,
        LayerBug::PartOverHome,
        LayerBug::TableKeptAfterLoss,
        LayerBug::TrimBeforeCommit,
        LayerBug::CopyOverWrite,
        LayerBug::EdgesNotRead,
        LayerBug::CheckpointForgets,
        LayerBug::TrimNotLogged,
        LayerBug::FlushOfNothing,
        LayerBug::LaterWriteFirst,
        LayerBug::FlushBeforeWriteBack,
        LayerBug::WriteBackCleansNewer,
        LayerBug::TrimOvertaken,
        LayerBug::FuaStaysInCache,
        LayerBug::ReadAheadOverWrite,
        LayerBug::CleanKeptAfterLoss,
        LayerBug::PartOfUnreadBlock,
        LayerBug::OthersNotRepeated,
        LayerBug::AnswerBeforeMetadata,
        LayerBug::MetadataUnforced,
        LayerBug::DataUnforced,
        LayerBug::CleanUnforced,
        LayerBug::CleanNotWritten,
        LayerBug::PastDirtyBlock,
        LayerBug::OldBlockKept,
        LayerBug::FillAfterLoss,
        LayerBug::FlushOfCacheAlone,
        LayerBug::FillOverWrite,
        LayerBug::CleanBeforeFlush,
        LayerBug::OlderCopyKept,
        LayerBug::EvictBeforeDisk,
        LayerBug::CleanKeptAfterCrash,
        LayerBug::CopyCleansNewer,
        LayerBug::CopyBeforeFlush,
        LayerBug::DirtyTableKept,
        LayerBug::DiskNotFlushed,
        LayerBug::DiskBeforeBit,
        LayerBug::PartOverDirty,
        LayerBug::PatternTrusted,
        LayerBug::ErrorOverDirty,
    ];

    /// What goes wrong, in one line of the table of docs/torture.md.
    #[must_use]
    pub const fn story(self) -> &'static str {
        match self {
            LayerBug::BitAfterWrite => "a mirror's write does not wait for the bits of its regions",
            LayerBug::BitClearedUnflushed => "a region's bit is cleared before what was written is flushed",
            LayerBug::RecordForgotten => "nothing records that a side was left behind",
            LayerBug::ReadFromBehind => "reads go to sides that are left behind",
            LayerBug::CopyIgnoresWrites => "a copy does not wait for writes to the same sectors",
            LayerBug::ResyncUnflushed => "a side counts as in sync before what was copied is flushed",
            LayerBug::LastSideForgotten => "what the last side in sync lost in flight is not written again",
            LayerBug::FlushOfOneDevice => "a stripe's flush goes to the first device alone",
            LayerBug::LostPartUnnoticed => "a stripe reports success after a device lost a part",
            LayerBug::TableBeforeData => "`shrd` reads from the log before the data is there",
            LayerBug::NewCopyTrimmed => "`shrd` trims the new copy of a unit in the log",
            LayerBug::ReadOvertaken => "`shrd` remaps or trims a unit in the log that is being read",
            LayerBug::FirstUnitDecides => "`shrd` reads all of a request where its first unit is",
            LayerBug::PartOverOldCopy => "`shrd` sends a write of part of a unit home while the unit is in the log",
            LayerBug::OldEntryKept => "`shrd` reads a unit from the log after it was written or trimmed elsewhere",
            LayerBug::RemapNotWaitedFor => "`shrd` lets commands touch units that a remap moves",
            LayerBug::RemapOverChange => "`shrd` remaps a unit while a change of its own address is in the drive",
            LayerBug::PlacesFreedEarly => "`shrd` gives places out again before what is in them was remapped",
            LayerBug::TableKeptAfterCut => "`shrd` keeps its table when the drive has lost its power",
            LayerBug::LogNotRestored => "`shrd` does not restore what another host left in the log",
            LayerBug::TableUnflushed => "`restoring` writes table entries of data that no flush has covered",
            LayerBug::FreedUnflushed => "`restoring` frees places before the copies of what is in them are flushed",
            LayerBug::RemovalNotWritten => "`restoring` does not write that a unit has left the log",
            LayerBug::CopyOverChange => "`restoring` copies a unit home while a change of it is below",
            LayerBug::PartOverHome => "`restoring` writes a part of a unit at home while the unit is in the log",
            LayerBug::TableKeptAfterLoss => {
                "`restoring` keeps its table when a device below has lost what was not flushed"
            }
            LayerBug::TrimBeforeCommit => "`append` trims a cleaned segment before a commit says where its units are",
            LayerBug::CopyOverWrite => "`append` overwrites a newer host write when it cleans",
            LayerBug::EdgesNotRead => "`append` writes a part of a unit without reading the rest",
            LayerBug::CheckpointForgets => "`append` ends a checkpoint without what was committed since it began",
            LayerBug::TrimNotLogged => "`append` does not write to the log what the host trims",
            LayerBug::FlushOfNothing => "`append` answers a flush before the commit on its way has ended",
            LayerBug::LaterWriteFirst => "`append` lets a write take effect before earlier ones to the same units",
            LayerBug::FlushBeforeWriteBack => "`page-cache` answers a flush before the write-back in flight has ended",
            LayerBug::WriteBackCleansNewer => {
                "`page-cache` counts a block as clean that was changed while its older copy went down"
            }
            LayerBug::TrimOvertaken => "`page-cache` writes blocks back while a trim of them is below",
            LayerBug::FuaStaysInCache => "`page-cache` keeps a FUA write in RAM",
            LayerBug::ReadAheadOverWrite => "`page-cache` takes what was read ahead over what was written meanwhile",
            LayerBug::CleanKeptAfterLoss => {
                "`page-cache` keeps clean blocks when the drive has lost what it had of them"
            }
            LayerBug::PartOfUnreadBlock => "`page-cache` writes a part of a block without reading the rest",
            LayerBug::OthersNotRepeated => {
                "`ata` answers commands in flight with a failed one, and does not send them again"
            }
            LayerBug::AnswerBeforeMetadata => {
                "`flashcache` answers a write before the metadata says that its blocks are dirty"
            }
            LayerBug::MetadataUnforced => "`flashcache` leaves metadata in the buffer of the cache",
            LayerBug::DataUnforced => "`flashcache` writes metadata of data that is in the buffer of the cache",
            LayerBug::CleanUnforced => "`flashcache` counts blocks as clean that are in the buffer of the disk",
            LayerBug::CleanNotWritten => "`flashcache` does not write that blocks are clean",
            LayerBug::PastDirtyBlock => "`flashcache` sends a part of a block past a dirty block",
            LayerBug::OldBlockKept => "`flashcache` keeps a clean block that is written past it",
            LayerBug::FillAfterLoss => {
                "`flashcache` keeps what a command brought that began before a device lost its buffer"
            }
            LayerBug::FlushOfCacheAlone => "`flashcache` flushes the cache and not the disk",
            LayerBug::FillOverWrite => "`cache` fills a block from the disk after a write to it",
            LayerBug::CleanBeforeFlush => "`cache` calls blocks clean before the disk has flushed them",
            LayerBug::OlderCopyKept => "`cache` writes the disk and leaves the older copy in the cache",
            LayerBug::EvictBeforeDisk => {
                "`cache` evicts a dirty block before the write over it is on the disk's medium"
            }
            LayerBug::CleanKeptAfterCrash => "`cache` drops no clean block after a crash",
            LayerBug::CopyCleansNewer => "`cache` calls a block clean that was changed since it was copied",
            LayerBug::CopyBeforeFlush => {
                "`cache` copies dirty blocks to the disk that the cache does not have on flash"
            }
            LayerBug::DirtyTableKept => "`cache` keeps its table of dirty blocks when the cache has lost its power",
            LayerBug::DiskNotFlushed => "`cache` does not flush the disk after writes of it",
            LayerBug::DiskBeforeBit => "`cache` writes the disk before the bits of its regions are on flash",
            LayerBug::PartOverDirty => "`cache` writes a part of a dirty block on the disk, and evicts the block",
            LayerBug::PatternTrusted => "`cache` takes a dirty block that holds the pattern of a miss for absent",
            LayerBug::ErrorOverDirty => "`cache`, told of misses by errors, reads dirty blocks from the disk",
        }
    }
}

#[cfg(feature = "seeded-bugs")]
std::thread_local! {
    static SEEDED: std::cell::Cell<Option<LayerBug>> = const { std::cell::Cell::new(None) };
}

/// Layers of this thread have this bug from now on; `None` takes it away.
#[cfg(feature = "seeded-bugs")]
pub fn seed(bug: Option<LayerBug>) {
    SEEDED.set(bug);
}

/// Whether layers of this thread have this bug.
#[cfg(feature = "seeded-bugs")]
#[inline]
pub(crate) fn seeded(bug: LayerBug) -> bool {
    SEEDED.get() == Some(bug)
}

/// Whether layers of this thread have this bug.
#[cfg(not(feature = "seeded-bugs"))]
#[inline]
pub(crate) const fn seeded(_: LayerBug) -> bool {
    false
}

#[cfg(feature = "seeded-bugs")]
static UNKEPT: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// Whether layers of this process act on what a drive answers before its image has what the answer promises. Only kills of
/// served drives can find it, so it is none of [`LayerBug::ALL`].
#[cfg(feature = "seeded-bugs")]
pub fn seed_unkept(on: bool) {
    UNKEPT.store(on, std::sync::atomic::Ordering::SeqCst);
}

/// Whether layers of this process have the bug of [`seed_unkept`].
#[cfg(feature = "seeded-bugs")]
pub(crate) fn acts_on_unkept() -> bool {
    UNKEPT.load(std::sync::atomic::Ordering::SeqCst)
}

/// Without the feature there is no bug.
#[cfg(not(feature = "seeded-bugs"))]
#[inline(always)]
pub(crate) const fn acts_on_unkept() -> bool {
    false
}

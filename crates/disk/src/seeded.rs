//! Bugs seeded on purpose into disks, so that what looks for bugs can be seen to find them.
//!
//! Each is one deviation from what a disk promises, switched on for one thread. Without the feature `seeded-bugs` none of this is
//! compiled in: `seeded` is `false` for the compiler as well.

/// A bug that can be seeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub enum DiskBug {
    /// A flush ends before the cached data is on the medium.
    FlushEndsEarly,
    /// A FUA write ends when its data is in the cache.
    FuaStaysInCache,
    /// A FUA write ends with an operation that began before it.
    FuaByEarlierOperation,
    /// A power cut leaves part of a sector new and part of it old.
    SectorTorn,
    /// A read does not see data that is in the cache.
    ReadPastCache,
    /// A read does not see data that is on its way to the medium.
    ReadPastOperation,
    /// Data that was written again while its older version went to the medium counts as written.
    NewerForgotten,
    /// The last sector of a track is not written.
    LastSectorSkipped,
    /// A write of sectors that are in the cache leaves the older data of its last sector.
    OverlapKeepsOld,
}

impl DiskBug {
    /// All of them.
    pub const ALL: [DiskBug; 9] = [
        DiskBug::FlushEndsEarly,
        DiskBug::FuaStaysInCache,
        DiskBug::FuaByEarlierOperation,
        DiskBug::SectorTorn,
        DiskBug::ReadPastCache,
        DiskBug::ReadPastOperation,
        DiskBug::NewerForgotten,
        DiskBug::LastSectorSkipped,
        DiskBug::OverlapKeepsOld,
    ];

    /// What goes wrong, in one line of a table.
    #[must_use]
    pub const fn story(self) -> &'static str {
        match self {
            DiskBug::FlushEndsEarly => "a flush ends before the cached data is on the medium",
            DiskBug::FuaStaysInCache => "a FUA write ends when its data is in the cache",
            DiskBug::FuaByEarlierOperation => "a FUA write ends with an operation that began before it",
            DiskBug::SectorTorn => "a power cut leaves part of a sector new and part of it old",
            DiskBug::ReadPastCache => "a read does not see data that is in the cache",
            DiskBug::ReadPastOperation => "a read does not see data that is on its way to the medium",
            DiskBug::NewerForgotten => {
                "data written again while its older version went to the medium counts as written"
            }
            DiskBug::LastSectorSkipped => "the last sector of a track is not written",
            DiskBug::OverlapKeepsOld => "a write of cached sectors leaves the older data of its last sector",
        }
    }
}

#[cfg(feature = "seeded-bugs")]
std::thread_local! {
    static SEEDED: std::cell::Cell<Option<DiskBug>> = const { std::cell::Cell::new(None) };
}

/// Disks of this thread have this bug from now on; `None` takes it away.
#[cfg(feature = "seeded-bugs")]
pub fn seed(bug: Option<DiskBug>) {
    SEEDED.set(bug);
}

/// Whether disks of this thread have this bug.
#[cfg(feature = "seeded-bugs")]
#[inline]
pub(crate) fn seeded(bug: DiskBug) -> bool {
    SEEDED.get() == Some(bug)
}

/// Whether disks of this thread have this bug.
#[cfg(not(feature = "seeded-bugs"))]
#[inline]
pub(crate) const fn seeded(_: DiskBug) -> bool {
    false
}

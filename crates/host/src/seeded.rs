//! Bugs seeded on purpose into layers, so that what looks for bugs can be seen to find them.
//!
//! Each is one deviation from what a layer promises, switched on for one thread. Without the feature `seeded-bugs` none of
//! this is compiled in: `seeded` is `false` for the compiler as well.

/// A bug that can be seeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// A stripe's command ends well although a device that had done its part has lost it.
    LostPartUnnoticed,
}

impl LayerBug {
    /// All of them.
    pub const ALL: [LayerBug; 9] = [
        LayerBug::BitAfterWrite,
        LayerBug::BitClearedUnflushed,
        LayerBug::RecordForgotten,
        LayerBug::ReadFromBehind,
        LayerBug::CopyIgnoresWrites,
        LayerBug::ResyncUnflushed,
        LayerBug::LastSideForgotten,
        LayerBug::FlushOfOneDevice,
        LayerBug::LostPartUnnoticed,
    ];
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

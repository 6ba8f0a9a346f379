//! Seeded bugs: deviations of an image from what it promises, so that what looks for bugs can be seen to find them.
//!
//! One at a time is on, for the whole process. Without the feature `seeded-bugs` none of this is compiled in: `seeded` is
//! `false` for the compiler as well.

/// A bug that can be seeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// Settling leaves the last page's entry in memory.
    SettleLeavesTheLast,
    /// The records of a page are written when its entry has been for a while.
    RecordAfterPage,
    /// Entries are written before the data that they tell of.
    EntryBeforeData,
}

#[cfg(feature = "seeded-bugs")]
static SEEDED: std::sync::Mutex<Option<Bug>> = std::sync::Mutex::new(None);

/// Images of this process have this bug from now on; `None` takes it away.
#[cfg(feature = "seeded-bugs")]
pub fn seed(bug: Option<Bug>) {
    *SEEDED.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = bug;
}

/// Whether images of this process have this bug.
#[cfg(feature = "seeded-bugs")]
pub(super) fn seeded(bug: Bug) -> bool {
    *SEEDED.lock().unwrap_or_else(std::sync::PoisonError::into_inner) == Some(bug)
}

/// Without the feature there is no bug.
#[cfg(not(feature = "seeded-bugs"))]
#[inline(always)]
pub(super) const fn seeded(_: Bug) -> bool {
    false
}

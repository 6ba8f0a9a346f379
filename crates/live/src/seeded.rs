//! Seeded bugs: deviations of a served drive from what its answers promise, so that what looks for bugs can be seen to find
//! them.
//!
//! One at a time is on, for the whole process. Without the feature `seeded-bugs` none of this is compiled in: `seeded` is
//! `false` for the compiler as well.

#[cfg(feature = "seeded-bugs")]
use ssdlab_flash::seeded as image;

/// A bug that can be seeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// An answer does not wait for the image's files.
    AnswerBeforeFiles,
    /// FUA is taken for a promise of writes alone.
    FuaOfWritesOnly,
    /// A flush settles all but the last page.
    FlushSettlesTooLittle,
    /// The record of a trim is written after the page that it belongs to.
    RecordAfterPage,
    /// A page's entry is written before the page's data.
    EntryBeforeData,
    /// A layer above several drives acts on an answer before that drive's image has what it promises.
    LayerBeforeFiles,
}

impl Bug {
    /// All of them.
    pub const ALL: [Bug; 6] = [
        Bug::AnswerBeforeFiles,
        Bug::FuaOfWritesOnly,
        Bug::FlushSettlesTooLittle,
        Bug::RecordAfterPage,
        Bug::EntryBeforeData,
        Bug::LayerBeforeFiles,
    ];

    /// The name that the seeded server takes.
    pub const fn name(self) -> &'static str {
        match self {
            Bug::AnswerBeforeFiles => "answer-before-files",
            Bug::FuaOfWritesOnly => "fua-of-writes-only",
            Bug::FlushSettlesTooLittle => "flush-settles-too-little",
            Bug::RecordAfterPage => "record-after-page",
            Bug::EntryBeforeData => "entry-before-data",
            Bug::LayerBeforeFiles => "layer-before-files",
        }
    }

    /// What is wrong, in a few words.
    pub const fn story(self) -> &'static str {
        match self {
            Bug::AnswerBeforeFiles => "an answer leaves before the image's files have what it promises",
            Bug::FuaOfWritesOnly => "FUA of a trim or a write zeroes promises nothing",
            Bug::FlushSettlesTooLittle => "a flush leaves the last page's entry in memory",
            Bug::RecordAfterPage => "a trim's record is written after its page",
            Bug::EntryBeforeData => "a page's entry is written before its data",
            Bug::LayerBeforeFiles => "a layer acts on a drive's answer before that drive's image has what it promises",
        }
    }
}

#[cfg(feature = "seeded-bugs")]
static SEEDED: std::sync::Mutex<Option<Bug>> = std::sync::Mutex::new(None);

/// Drives that this process serves have this bug from now on; `None` takes it away.
#[cfg(feature = "seeded-bugs")]
pub fn seed(bug: Option<Bug>) {
    image::seed(match bug {
        Some(Bug::FlushSettlesTooLittle) => Some(image::Bug::SettleLeavesTheLast),
        Some(Bug::RecordAfterPage) => Some(image::Bug::RecordAfterPage),
        Some(Bug::EntryBeforeData) => Some(image::Bug::EntryBeforeData),
        None | Some(Bug::AnswerBeforeFiles | Bug::FuaOfWritesOnly | Bug::LayerBeforeFiles) => None,
    });
    ssdlab_host::seeded::seed_unkept(bug == Some(Bug::LayerBeforeFiles));
    *SEEDED.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = bug;
}

/// Whether drives that this process serves have this bug.
#[cfg(feature = "seeded-bugs")]
pub(crate) fn seeded(bug: Bug) -> bool {
    *SEEDED.lock().unwrap_or_else(std::sync::PoisonError::into_inner) == Some(bug)
}

/// Without the feature there is no bug.
#[cfg(not(feature = "seeded-bugs"))]
#[inline(always)]
pub(crate) const fn seeded(_: Bug) -> bool {
    false
}

//! How long work tells where it is, and how it is told to stop.

use std::sync::atomic::{AtomicBool, Ordering};

/// What a drive's run is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Reading a snapshot of the aged drive.
    Restore,
    /// Writing the drive full; in bytes.
    Fill,
    /// Overwriting until write amplification is steady; in bytes, and the total is the most it may take.
    Preconditioning,
    /// Keeping the aged drive for the next run.
    Save,
    /// Making the files of a file run; in bytes.
    Prepare,
    /// The measured run; in requests.
    Run,
}

impl Phase {
    /// The phase in a word or two.
    pub const fn label(self) -> &'static str {
        match self {
            Phase::Restore => "restoring",
            Phase::Fill => "filling",
            Phase::Preconditioning => "preconditioning",
            Phase::Save => "saving",
            Phase::Prepare => "making files",
            Phase::Run => "running",
        }
    }

    /// What the phase counts.
    pub const fn counts_bytes(self) -> bool {
        matches!(self, Phase::Fill | Phase::Preconditioning | Phase::Prepare)
    }

    /// Whether the phase may be over before its total is reached.
    pub const fn may_end_early(self) -> bool {
        matches!(self, Phase::Preconditioning)
    }
}

/// A display of progress. Called often; it must be quick and thin out by itself what it draws.
pub trait Progress: Sync {
    /// A display of one of several drives that are at work at the same time.
    fn beside(&self) -> Box<dyn Progress + '_> {
        Box::new(NoProgress)
    }

    /// `device` enters a phase.
    fn begin(&self, device: &str, phase: Phase) {
        let _ = (device, phase);
    }

    /// So much of the phase is done, of so much where that is known.
    fn advance(&self, done: u64, total: Option<u64>) {
        let _ = (done, total);
    }

    /// Something that a person should know at once, as a sentence.
    fn note(&self, sentence: &str) {
        let _ = sentence;
    }

    /// The run is over, or has failed.
    fn finish(&self) {}
}

/// A display that shows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoProgress;

impl Progress for NoProgress {}

/// What steers long work: who watches it, and the flags that end it early.
#[derive(Clone, Copy)]
pub struct Control<'a> {
    /// Set by a signal handler or another thread; the work then ends soon, with what it has.
    pub stop: &'a AtomicBool,
    /// Who watches.
    pub progress: &'a dyn Progress,
    /// Set when the results are not wanted any more.
    cancelled: Option<&'a AtomicBool>,
}

impl<'a> Control<'a> {
    /// Work that `stop` ends early.
    pub const fn new(stop: &'a AtomicBool, progress: &'a dyn Progress) -> Control<'a> {
        Control { stop, progress, cancelled: None }
    }

    /// A part of the work, which `cancelled` ends as well, and which has its own display, `progress`.
    #[must_use]
    pub const fn part<'b>(&self, progress: &'b dyn Progress, cancelled: &'b AtomicBool) -> Control<'b>
    where
        'a: 'b,
    {
        Control { stop: self.stop, progress, cancelled: Some(cancelled) }
    }

    /// Whether the work shall end.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.cancelled.is_some_and(|cancelled| cancelled.load(Ordering::Relaxed))
    }
}

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
    Age,
    /// Keeping the aged drive for the next run.
    Save,
    /// The measured run; in requests.
    Run,
}

impl Phase {
    /// The phase in a word or two.
    pub const fn label(self) -> &'static str {
        match self {
            Phase::Restore => "restoring",
            Phase::Fill => "filling",
            Phase::Age => "ageing",
            Phase::Save => "saving",
            Phase::Run => "running",
        }
    }

    /// What the phase counts.
    pub const fn counts_bytes(self) -> bool {
        matches!(self, Phase::Fill | Phase::Age)
    }
}

/// Somebody who shows progress. Called often; it must be quick and thin out by itself what it draws.
pub trait Progress {
    /// `device` enters a phase.
    fn begin(&self, device: &str, phase: Phase) {
        let _ = (device, phase);
    }

    /// So much of the phase is done, of so much where that is known.
    fn advance(&self, done: u64, total: Option<u64>) {
        let _ = (done, total);
    }

    /// The run is over, or has failed.
    fn finish(&self) {}
}

/// Nobody watches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Progress for Quiet {}

/// The strings that hold long work: who watches it, and the flag that ends it early.
#[derive(Clone, Copy)]
pub struct Control<'a> {
    /// Set by a signal handler or another thread; the work then ends soon, with what it has.
    pub stop: &'a AtomicBool,
    /// Who watches.
    pub progress: &'a dyn Progress,
}

impl Control<'_> {
    /// Whether the work shall end.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

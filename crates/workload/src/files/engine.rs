//! The threads of a personality and what they share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ssdlab_base::Nanos;

use super::file_set::FileSets;
use super::personality::Personality;
use super::thread::Thread;

/// When a run ends.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// No operation begins at or behind this time.
    pub until: Option<Nanos>,
    /// Operations of all threads.
    pub operations: Option<u64>,
    /// Ends the run early when it is set.
    pub stop: Arc<AtomicBool>,
}

/// What threads share.
#[derive(Debug)]
pub(super) struct Shared {
    files: Mutex<FileSets>,
    operations: Option<AtomicU64>,
    transactions: Option<AtomicU64>,
    until: Option<Nanos>,
    stop: Arc<AtomicBool>,
    pub(super) skipped: AtomicU64,
    pub(super) turns: AtomicU64,
    pub(super) starved: AtomicBool,
}

/// Takes one of what is left.
fn take(left: Option<&AtomicU64>) -> bool {
    left.is_none_or(|left| left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok())
}

impl Shared {
    pub(super) fn files(&self) -> MutexGuard<'_, FileSets> {
        // A thread that panics ends the run; the table is only needed to remove what it names.
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an operation may begin now.
    pub(super) fn goes_on(&self, now: Nanos) -> bool {
        !self.stop.load(Ordering::Relaxed) && self.until.is_none_or(|until| now < until)
    }

    pub(super) fn take_operation(&self) -> bool {
        take(self.operations.as_ref())
    }

    /// An operation that was taken has nothing to work on.
    pub(super) fn give_back_operation(&self) {
        if let Some(operations) = &self.operations {
            operations.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn take_transaction(&self) -> bool {
        take(self.transactions.as_ref())
    }
}

/// All threads of a personality, ready to begin.
#[derive(Debug)]
pub struct Engine {
    shared: Arc<Shared>,
    threads: Vec<Thread>,
}

impl Engine {
    /// Prepares the threads; `files` must have been drawn for the same personality and seed.
    pub fn new(personality: &Personality, files: FileSets, seed: u64, limits: &Limits) -> Engine {
        let parameters = Arc::new(personality.parameters.clone());
        let shared = Arc::new(Shared {
            files: Mutex::new(files),
            operations: limits.operations.map(AtomicU64::new),
            transactions: personality.transactions().map(AtomicU64::new),
            until: limits.until,
            stop: Arc::clone(&limits.stop),
            skipped: AtomicU64::new(0),
            turns: AtomicU64::new(0),
            starved: AtomicBool::new(false),
        });
        let thread = |number| Thread::new(personality, &parameters, &shared, number, seed);
        let threads = (0..parameters.threads).map(thread).collect();
        Engine { shared, threads }
    }

    /// The threads, by their numbers.
    pub fn threads(&mut self) -> &mut [Thread] {
        &mut self.threads
    }

    /// The threads, to be run side by side, each on its own.
    pub(super) fn take_threads(&mut self) -> Vec<Thread> {
        std::mem::take(&mut self.threads)
    }

    /// Operations that found nothing to work on.
    pub fn skipped(&self) -> u64 {
        self.shared.skipped.load(Ordering::Relaxed)
    }

    /// Whole turns of the loop, or transactions, of all threads.
    pub fn turns(&self) -> u64 {
        self.shared.turns.load(Ordering::Relaxed)
    }

    /// Whether a thread ended because there was no file to go on with.
    pub fn starved(&self) -> bool {
        self.shared.starved.load(Ordering::Relaxed)
    }

    /// The files as they are now.
    pub fn files(&self) -> FileSets {
        self.shared.files().clone()
    }
}

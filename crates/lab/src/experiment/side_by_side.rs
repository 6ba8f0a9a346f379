//! The drives of an experiment, several at a time: each on a thread of its own, with a workload that it opens itself.
//!
//! No drive sees another, so results do not depend on how many run at a time. They come back in the order of the drives,
//! and where drives fail, the error is that of the first of them in that order: it ends those behind it, while those
//! before it go on, since one of them could still fail.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use ssdlab_base::format_size;

use super::{DeviceUnderTest, Experiment, RunError, run_drive};
use crate::memory::BESIDES;
use crate::progress::{Control, Progress};
use crate::result::DeviceResult;

/// What came of a drive; `None` if it was stopped before its measured run.
pub(super) type Ran = Result<Option<DeviceResult>, RunError>;

/// Threads have the stack that a program's first one usually has.
const STACK_BYTES: usize = 8 << 20;

/// Memory that a drive's run takes at most, in bytes; none where its run will refuse the drive.
fn memory_bytes(experiment: &Experiment<'_>, dut: &DeviceUnderTest) -> u64 {
    experiment.memory_of(dut).map_or(0, |memory| memory.total().saturating_add(BESIDES))
}

/// How many drives will be at work together where memory, not `experiment.jobs`, decides that, as a sentence.
fn told_of_memory(experiment: &Experiment<'_>) -> Option<String> {
    let wanted = experiment.jobs.min(experiment.drives.len());
    let mut bytes: Vec<u64> = experiment.drives.iter().map(|dut| memory_bytes(experiment, dut)).collect();
    bytes.sort_unstable_by(|left, right| right.cmp(left));
    let together = |jobs: usize| bytes[..jobs].iter().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
    if together(wanted) <= experiment.memory_bytes {
        return None;
    }
    let fit = (1..wanted).rev().find(|jobs| together(*jobs) <= experiment.memory_bytes).unwrap_or(1);
    let most = format_size(experiment.memory_bytes);
    Some(format!(
        "not always {wanted} drives run at a time: the largest {wanted} would take {} of memory together, and all may take \
         {most} (--memory); the largest {fit} fit",
        format_size(together(wanted))
    ))
}

/// Runs the experiment's drives, at most `experiment.jobs` at a time and as many as fit into `experiment.memory_bytes`; one
/// always runs. Drives behind one that failed, and those that a stop came before, are missing from the end of the list.
pub(super) fn run(experiment: &Experiment<'_>, control: &Control<'_>) -> Vec<Ran> {
    if let Some(sentence) = told_of_memory(experiment) {
        control.progress.note(&sentence);
    }
    let drives = experiment.drives.len();
    let list = List {
        state: Mutex::new(State { next: 0, running: 0, memory_bytes: 0, ran: (0..drives).map(|_| None).collect() }),
        freed: Condvar::new(),
        cancelled: (0..drives).map(|_| AtomicBool::new(false)).collect(),
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..experiment.jobs.clamp(1, drives.max(1)))
            .map(|_| {
                let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
                thread.spawn_scoped(scope, || list.serve(experiment, control))
            })
            .collect();
        if threads.iter().all(Result::is_err) {
            // A system that gives no thread still has this one.
            list.serve(experiment, control);
        }
        for thread in threads.into_iter().flatten() {
            if let Err(panic) = thread.join() {
                resume_unwind(panic);
            }
        }
    });
    let state = list.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    state.ran.into_iter().map_while(|ran| ran).collect()
}

/// The threads' common list.
struct List {
    state: Mutex<State>,
    freed: Condvar,
    /// For each drive, whether one before it failed.
    cancelled: Vec<AtomicBool>,
}

struct State {
    next: usize,
    running: usize,
    memory_bytes: u64,
    ran: Vec<Option<Ran>>,
}

/// Gives a drive's memory back, also when its run panics: other threads may be waiting for it.
struct Place<'a> {
    list: &'a List,
    memory_bytes: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut state = self.list.lock();
        state.running -= 1;
        state.memory_bytes -= self.memory_bytes;
        drop(state);
        self.list.freed.notify_all();
    }
}

impl List {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs one drive after another until none is left.
    fn serve(&self, experiment: &Experiment<'_>, control: &Control<'_>) {
        while let Some((index, place)) = self.take(experiment, control) {
            let progress: Box<dyn Progress + '_> = control.progress.beside();
            let part = control.part(&*progress, &self.cancelled[index]);
            let ran = run_drive(experiment, &experiment.drives[index], None, None, &part);
            progress.finish();
            if ran.is_err() {
                self.cancelled[index + 1..].iter().for_each(|cancelled| cancelled.store(true, Ordering::Relaxed));
            }
            self.lock().ran[index] = Some(ran);
            drop(place);
        }
    }

    /// The next drive, once there is memory for it.
    fn take(&self, experiment: &Experiment<'_>, control: &Control<'_>) -> Option<(usize, Place<'_>)> {
        let mut state = self.lock();
        loop {
            let index = state.next;
            let dut = experiment.drives.get(index)?;
            // The first drive begins in any case: it may have results to give, though it was stopped at once.
            if index > 0 && control.stopped() || self.cancelled[index].load(Ordering::Relaxed) {
                return None;
            }
            let bytes = memory_bytes(experiment, dut);
            if state.running == 0 || state.memory_bytes.saturating_add(bytes) <= experiment.memory_bytes {
                state.next += 1;
                state.running += 1;
                state.memory_bytes += bytes;
                return Some((index, Place { list: self, memory_bytes: bytes }));
            }
            state = self.freed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

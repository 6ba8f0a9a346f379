//! The loop and the invariants against drives that keep them, and drives that do not.

use std::sync::atomic::AtomicBool;

use super::fake::{Fake, Fault, Writes};
use super::*;
use crate::checks::{self, MayFail};
use crate::progress::{NoProgress, Progress};
use crate::result::Check;

fn invariants(fault: Fault, mut workload: Writes) -> (Ended, Vec<Check>, Recorder) {
    let mut fake = Fake::new(fault);
    let mut recorder = Recorder::new(Axis::Time, Counters::default(), 8);
    let stop = AtomicBool::new(false);
    let control = Control::new(&stop, &NoProgress);
    let ended = replay(&mut fake, &mut workload, &mut recorder, &control).expect("the workload fits");
    let timeline = recorder.take_timeline(fake.now.0, &fake.counters, 4096);
    let checks = checks::invariants(MayFail::default(), ended, &recorder, &fake.counters, &[], &timeline, fake.now.0);
    (ended, checks, recorder)
}

fn broken(checks: &[Check]) -> Vec<&str> {
    checks.iter().filter(|check| !check.passed).map(|check| check.name.as_str()).collect()
}

#[test]
fn an_honest_drive_keeps_every_invariant_in_closed_and_open_loops() {
    let (ended, checks, recorder) = invariants(Fault::None, Writes::closed(10_000, 32));
    assert_eq!(ended, Ended::Done);
    assert_eq!(broken(&checks), [""; 0]);
    assert_eq!(recorder.completed, [3_333, 6_667, 0, 0]);
    assert_eq!(recorder.outstanding_max, 32);
    assert!(checks.iter().any(|check| check.name == "littles_law"));

    // Three hundred nanoseconds between arrivals are too few: the queue grows to thousands.
    let open = Writes { gap: Some(Nanos(300)), ..Writes::closed(10_000, 0) };
    let (ended, checks, recorder) = invariants(Fault::None, open);
    assert_eq!((ended, broken(&checks).len()), (Ended::Done, 0));
    assert!(recorder.outstanding_max > 5_000);

    // An hour between arrivals: time passes without completions.
    let rare = Writes { gap: Some(Nanos(3_600_000_000_000)), ..Writes::closed(50, 0) };
    let (ended, checks, recorder) = invariants(Fault::None, rare);
    assert_eq!((ended, broken(&checks).len(), recorder.outstanding_max), (Ended::Done, 0, 1));
}

#[test]
fn a_drive_that_loses_queue_slots_is_caught_and_does_not_hang_the_run() {
    let (ended, checks, _) = invariants(Fault::Loses, Writes::closed(10_000, 32));
    assert_eq!(ended, Ended::Stuck { outstanding: 32 });
    let broken = broken(&checks);
    assert!(broken.contains(&"requests_generated_equal_completed"), "{broken:?}");
    assert!(broken.contains(&"bytes_conserved"), "{broken:?}");
    assert!(broken.contains(&"littles_law"), "{broken:?}");
}

#[test]
fn a_drive_that_flatters_its_latencies_breaks_littles_law() {
    let (_, checks, _) = invariants(Fault::Flatters, Writes::closed(10_000, 32));
    assert_eq!(broken(&checks), ["littles_law"]);
}

#[test]
fn a_drive_that_completes_twice_or_miscounts_is_caught() {
    let open = || Writes { gap: Some(Nanos(2_000)), depth: u64::MAX, ..Writes::closed(100, 0) };
    let (_, checks, _) = invariants(Fault::Miscounts, open());
    assert_eq!(broken(&checks), ["bytes_conserved"]);
    let repeated = Writes { outstanding: 1_000, ..open() };
    let (_, checks, _) = invariants(Fault::Repeats, repeated);
    assert!(broken(&checks).contains(&"requests_generated_equal_completed"));
}

#[test]
fn a_request_behind_the_drive_is_an_error_that_names_it() {
    let mut fake = Fake::new(Fault::None);
    let mut recorder = Recorder::new(Axis::Time, Counters::default(), 8);
    let stop = AtomicBool::new(false);
    let control = Control::new(&stop, &NoProgress);
    let mut workload = Writes { beyond: true, ..Writes::closed(100, 4) };
    let error = replay(&mut fake, &mut workload, &mut recorder, &control).expect_err("too far").to_string();
    assert!(error.contains("request 77"), "{error}");
    assert!(error.contains("--wrap"), "{error}");
}

#[test]
fn a_stopped_run_lets_what_is_in_the_drive_complete() {
    /// Stops the run at the third look.
    struct Impatient<'a>(&'a AtomicBool, std::sync::atomic::AtomicU32);
    impl Progress for Impatient<'_> {
        fn advance(&self, _done: u64, _total: Option<u64>) {
            if self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 2 {
                self.0.store(true, std::sync::atomic::Ordering::Relaxed);
            }
        }
    }
    let stop = AtomicBool::new(false);
    let impatient = Impatient(&stop, std::sync::atomic::AtomicU32::new(0));
    let control = Control::new(&stop, &impatient);
    let mut fake = Fake::new(Fault::None);
    let mut recorder = Recorder::new(Axis::Time, Counters::default(), 8);
    let ended =
        replay(&mut fake, &mut Writes::closed(1 << 40, 16), &mut recorder, &control).expect("the workload fits");
    assert_eq!(ended, Ended::Stopped);
    assert!(recorder.sent_total() < 10_000);
    let timeline = recorder.take_timeline(fake.now.0, &fake.counters, 4096);
    let checks = checks::invariants(MayFail::default(), ended, &recorder, &fake.counters, &[], &timeline, fake.now.0);
    assert_eq!(broken(&checks), [""; 0]);
}

#[test]
fn a_workload_that_waits_for_nothing_is_an_error() {
    let stop = AtomicBool::new(false);
    let control = Control::new(&stop, &NoProgress);
    let mut recorder = Recorder::new(Axis::Time, Counters::default(), 8);
    let error = replay(&mut Fake::new(Fault::None), &mut Writes::closed(5, 0), &mut recorder, &control);
    assert!(matches!(error, Err(ReplayError::Deadlock { sent: 0 })));
}

#[test]
fn events_are_taken_and_the_run_goes_on() {
    let (ended, checks, recorder) = invariants(Fault::Tells, Writes::closed(1_000, 4));
    assert_eq!((ended, broken(&checks).len(), recorder.completed_total()), (Ended::Done, 0, 1_000));
}

use proptest::prelude::*;

use super::*;

fn settings(interval: u64) -> Settings {
    let window = Window { above: Nanos(200), below: Nanos(2200) };
    Settings {
        interval: Nanos(interval),
        phase: Nanos::ZERO,
        window,
        send_every: Nanos(5_000),
        send_takes: Nanos(300),
        quiet: Nanos(50_000),
    }
}

fn low(start: u64, end: u64) -> Low {
    Low { die: 0, start: Nanos(start), end: Nanos(end) }
}

/// The procedure of the paper as it stands there, a step at a time: the reference model of the closed form.
fn walk(settings: Settings, lows: &[Low]) -> (Vec<u64>, u64) {
    let is_low = |at: u64| lows.iter().any(|low| low.start.0 <= at && at < low.end.0);
    let end = lows.last().map_or(0, |low| low.end.0);
    let (mut now, mut reset) = (settings.phase.0, settings.phase.0);
    let (mut durations, mut sends) = (Vec::new(), 0);
    while now < end {
        if now >= reset + settings.send_every.0 {
            sends += 1;
            now += settings.send_takes.0.max(settings.interval.0);
            reset = now;
            continue;
        }
        if !is_low(now) {
            now += settings.interval.0;
            continue;
        }
        let begun = now;
        while is_low(now) {
            now += settings.interval.0;
        }
        durations.push(now - begun);
        reset = now;
        now += settings.interval.0;
    }
    (durations, sends)
}

proptest! {
    #[test]
    fn the_closed_form_is_the_procedure_step_by_step(
        interval in 1_u64..400,
        steps in prop::collection::vec((1_u64..9_000, 1_u64..3_000), 1..40),
    ) {
        let settings = settings(interval);
        let mut at = 0;
        // The last is long enough that no sample is due at its start and taken after its end: the walk stops there.
        let lengths = steps.iter().enumerate().map(|(index, (_, length))| {
            if index + 1 == steps.len() { (*length).max(1_000) } else { *length }
        });
        let lows: Vec<Low> = steps.iter().zip(lengths).map(|((gap, _), length)| {
            let start = at + gap;
            at = start + length;
            low(start, at)
        }).collect();
        let mut recorder = Recorder::new(settings);
        lows.iter().for_each(|&low| recorder.low(low));
        let report = recorder.finish();
        let (walked, sends) = walk(settings, &lows);
        let mut expected = Durations::default();
        walked.iter().for_each(|&ns| expected.add(Nanos(ns)));
        prop_assert_eq!(&report.durations, &expected);
        prop_assert_eq!(report.sends, sends);
        let programs = walked.iter().filter(|&&ns| settings.window.contains(Nanos(ns))).count() as u64;
        prop_assert_eq!(report.programs(), programs);
        let known = report.durations.total() + report.unnoticed.missed + report.unnoticed.merged;
        prop_assert_eq!(known, lows.len() as u64);
    }
}

#[test]
fn a_low_between_samples_is_missed_and_two_without_a_sample_between_are_one() {
    let mut recorder = Recorder::new(settings(100));
    recorder.low(low(101, 199));
    recorder.low(low(1_001, 1_501));
    recorder.low(low(1_550, 1_950));
    let report = recorder.finish();
    assert_eq!(report.unnoticed, Unnoticed { missed: 1, merged: 1 });
    // Seen from 1,100 on, high again at 2,000; at 1,600 the line was low.
    assert_eq!(report.durations.range(), Some((Nanos(900), Nanos(900))));
    assert_eq!(report.programs(), 1);
}

#[test]
fn silence_ends_a_test_and_the_next_low_begins_another() {
    let mut recorder = Recorder::new(settings(10));
    for start in [1_000, 2_000, 60_000, 61_000, 62_000] {
        recorder.low(low(start, start + 500));
    }
    let report = recorder.finish();
    let programs: Vec<u64> = report.tests.iter().map(|test| test.programs).collect();
    assert_eq!(programs, [2, 3]);
    assert_eq!(report.tests[1].begun, Nanos(60_000));
}

#[test]
fn an_erase_as_long_as_a_program_is_taken_for_one() {
    let mut recorder = Recorder::new(settings(10));
    recorder.low(low(1_000, 3_000));
    recorder.low(low(5_000, 7_500));
    assert_eq!(recorder.finish().programs(), 1);
}

/// A capture may hold any 64 bits.
#[test]
fn the_end_of_time_is_no_overflow() {
    let mut recorder = Recorder::new(settings(100));
    for (start, end) in [(5, u64::MAX - 40), (u64::MAX - 30, u64::MAX - 20), (u64::MAX - 10, u64::MAX)] {
        recorder.low(low(start, end));
    }
    let report = recorder.finish();
    assert_eq!(report.durations.total() + report.unnoticed.missed + report.unnoticed.merged, 3);
}

//! Runs that are watched by a recorder, and runs in sub-tests.

use ssdlab_flash::{DieId, Latency, MultiPlane};
use ssdlab_lab::subtests::{PAUSE, volumes};
use ssdlab_lab::{Experiment, Preconditioning, Recording, RunResult, Subtests};

use ssdlab_base::Nanos;
use ssdlab_device::DriveConfig;

use crate::common::{Random, assert_checks_hold, assert_same, drive, duts, experiment, run};

/// Programs of 200 to 2200 us and erases of 2 ms: what the paper's recorder can mistake for each other.
fn ambiguous(planes: u32) -> DriveConfig {
    let mut config = drive("watched");
    let us = Nanos::from_us;
    config.flash.timing.program = vec![Latency { min: us(200), max: us(2200) }];
    config.flash.timing.erase = Latency { min: us(2000), max: us(2000) };
    config.flash.geometry.planes_per_die = planes;
    config.flash.geometry.blocks_per_plane /= planes;
    if planes > 1 {
        config.flash.multi_plane = MultiPlane::SameOffset;
    }
    config
}

fn watched(config: DriveConfig, workload: &Random, die: u32) -> RunResult {
    let drives = duts(&[config]);
    run(&Experiment {
        recording: Some(Recording { die: DieId(die) }),
        ..experiment(&drives, workload, Preconditioning::Fill)
    })
}

#[test]
fn what_was_really_programmed_is_what_the_drive_counted_and_the_levels_explain_the_recorder() {
    for (planes, die) in [(1, 0), (1, 3), (2, 1)] {
        let result = watched(ambiguous(planes), &Random::writes(60_000), die);
        assert_checks_hold(&result);
        let device = &result.devices[0];
        let lines = device.ready_busy.as_ref().expect("the run was watched");
        assert_eq!(lines.real.pages, device.flash.programs.total);
        assert_eq!(lines.real.by_cause, device.flash.programs.by_cause);
        assert_eq!(lines.real.pages_by_die.iter().sum::<u64>(), lines.real.pages);
        let whole = device.write_amplification.as_ref().expect("the host wrote").total;
        assert!((lines.real.write_amplification.expect("the host wrote") - whole).abs() < 1e-9);
        let levels = &lines.levels;
        let known = |level: Option<f64>| level.expect("something was programmed");
        let (classification, plane) = (known(levels.classification), known(levels.plane));
        let product = known(levels.sampling)
            * classification
            * plane
            * known(levels.die)
            * known(levels.chip)
            * known(levels.channel);
        let recorder = &lines.recorders[0];
        assert!((product - recorder.pages / lines.real.pages as f64).abs() < 1e-9, "{lines:?}");
        let off = recorder.percentage_error.expect("pages were programmed");
        assert!((off - (product - 1.0)).abs() < 1e-9);
        // Erases fall into the window, one a block.
        if planes == 1 {
            assert!((classification - 1.0 - 1.0 / 64.0).abs() < 0.002, "{levels:?}");
            assert!((plane - 1.0).abs() < 1e-9);
        } else {
            // Planes pair only sometimes, and the model takes every low for a pair.
            assert!(plane > 1.05 && plane <= 2.0, "{levels:?}");
        }
        let warned = device.warnings.iter().any(|warning| warning.contains("(M_p)"));
        assert_eq!(warned, plane > 1.0 / 0.9, "{:?}", device.warnings);
        // What knows how long operations last is nearer than a window.
        let error = |method: &str| {
            let estimate = lines.estimates.iter().find(|estimate| estimate.method == method).expect(method);
            estimate.percentage_error.expect("pages were programmed").abs()
        };
        if planes == 1 {
            assert!(error("mixture") < error("all-dies") / 2.0, "{:?}", lines.estimates);
        }
    }
}

#[test]
fn watching_changes_nothing_and_a_line_that_does_not_exist_is_refused() {
    let drives = duts(&[ambiguous(1)]);
    let workload = Random::mixed(20_000);
    let plain = experiment(&drives, &workload, Preconditioning::Fill);
    let mut seen = watched(ambiguous(1), &workload, 0);
    assert_same(&watched(ambiguous(1), &workload, 0), &seen);
    assert!(seen.devices[0].ready_busy.take().is_some());
    assert_same(&run(&plain), &seen);

    let stop = std::sync::atomic::AtomicBool::new(false);
    let control = ssdlab_lab::Control::new(&stop, &ssdlab_lab::NoProgress);
    let far = Experiment {
        recording: Some(Recording { die: DieId(4) }),
        ..experiment(&drives, &workload, Preconditioning::None)
    };
    let error = ssdlab_lab::run(&far, None, &control).expect_err("there are four dies").to_string();
    assert!(error.contains("found die 4, expected 0 to 3"), "{error}");
    let mut untimed = drives.clone();
    untimed[0].config.timed = false;
    let silent = Experiment {
        recording: Some(Recording { die: DieId(0) }),
        ..experiment(&untimed, &workload, Preconditioning::None)
    };
    let error = ssdlab_lab::run(&silent, None, &control).expect_err("no line changes").to_string();
    assert!(error.contains("no Ready/Busy line ever changes"), "{error}");
}

#[test]
fn sub_tests_write_their_volumes_and_quiet_divides_them_for_the_recorder_too() {
    let drives = duts(&[ambiguous(1)]);
    // Shorter than the volumes: it begins anew several times.
    let (workload, initial) = (Random::mixed(3_000), Random::writes(2_000));
    let subtests = Subtests { volumes: volumes("3x8m,4m").expect("volumes"), initial: Some(&initial) };
    let divided = Experiment {
        recording: Some(Recording { die: DieId(2) }),
        subtests: Some(subtests),
        ..experiment(&drives, &workload, Preconditioning::Fill)
    };
    let result = run(&divided);
    assert_checks_hold(&result);
    assert_same(&result, &run(&divided));
    let device = &result.devices[0];
    let names: Vec<&str> = device.subtests.iter().map(|test| test.name.as_str()).collect();
    assert_eq!(names, ["initial", "1", "2", "3", "4"]);
    assert_eq!(device.subtests[0].requests, 2_000);
    for (test, volume) in device.subtests[1..].iter().zip([8 << 20, 8 << 20, 8 << 20, 4 << 20]) {
        assert!((volume..volume + 4096).contains(&test.written_bytes), "{test:?}");
    }
    assert_eq!(device.subtests.iter().map(|test| test.written_bytes).sum::<u64>(), device.bytes.write);
    assert_eq!(device.subtests.iter().map(|test| test.read_bytes).sum::<u64>(), device.bytes.read);
    for pair in device.subtests.windows(2) {
        assert!(pair[1].begun_ns - pair[0].ended_ns >= PAUSE.0, "{pair:?}");
    }
    let lines = device.ready_busy.as_ref().expect("the run was watched");
    assert_eq!(lines.tests.len(), 5);
    assert_eq!(lines.tests.iter().map(|test| test.real_pages).sum::<u64>(), lines.real.pages);
    assert_eq!(lines.tests.iter().map(|test| test.programs).sum::<u64>(), lines.recorders[0].programs);
    for (test, host) in lines.tests.iter().zip(&device.subtests) {
        assert!(host.begun_ns <= test.begun_ns && test.ended_ns < host.ended_ns + PAUSE.0);
        assert!(test.real_pages * 4096 >= host.written_bytes);
    }
}

#[test]
fn an_age_under_another_workload_is_that_workloads_steady_state() {
    let drives = duts(&[drive("aged")]);
    let (other, measured) = (Random::writes(40_000), Random::mixed(5_000));
    let cache = tempfile::tempdir().expect("a folder");
    let cache = ssdlab_lab::SnapshotCache::at(cache.path()).worth_keeping(std::time::Duration::ZERO);
    let own = run(&Experiment { snapshots: Some(&cache), ..experiment(&drives, &other, Preconditioning::Steady) });
    let under =
        Experiment { snapshots: Some(&cache), ..experiment(&drives, &measured, Preconditioning::SteadyUnder(&other)) };
    let under = run(&under);
    assert_checks_hold(&under);
    assert_eq!(own.devices[0].precondition.windows, under.devices[0].precondition.windows);
    assert_eq!(own.devices[0].precondition.steady, Some(true));
}

/// Programs that always take the same time, by what erases take beside them.
fn fixed(erase_ns: u64) -> DriveConfig {
    let mut config = drive("fixed");
    let one = |ns| Latency { min: Nanos(ns), max: Nanos(ns) };
    // Not a multiple of any sampling interval: those are measured exactly.
    config.flash.timing.program = vec![one(500_300), one(1_700_300)];
    config.flash.timing.erase = one(erase_ns);
    config
}

#[test]
fn programs_of_fixed_times_are_counted_by_a_recorder_that_samples() {
    let result = watched(fixed(4_000_000), &Random::writes(20_000), 0);
    let device = &result.devices[0];
    let lines = device.ready_busy.as_ref().expect("the run was watched");
    // A gap that no sample meets makes two lows one; a window of one time would lose half of them.
    assert!(lines.levels.sampling.is_some_and(|sampling| (sampling - 1.0).abs() < 0.02), "{:?}", lines.levels);
    assert_eq!(lines.levels.classification, Some(1.0));
    assert!(!device.warnings.iter().any(|warning| warning.contains("ready/busy")), "{:?}", device.warnings);
}

#[test]
fn a_window_too_narrow_for_a_recorder_and_an_end_without_room_are_warnings() {
    let warned = |erase_ns| {
        let result = watched(fixed(erase_ns), &Random::writes(500), 0);
        result.devices[0].warnings.join("\n")
    };
    // 10 us from the longest program to the window's end.
    let narrow = warned(1_720_300);
    assert!(narrow.contains("a sample each 50.0 us, 100 us is too slow for the window"), "{narrow}");
    let touching = warned(1_700_300);
    assert!(touching.contains("the window ends with the longest program (1.70 ms)"), "{touching}");
}

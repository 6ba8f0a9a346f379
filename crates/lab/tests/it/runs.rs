//! Whole experiments on the real drive.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use ssdlab_base::Nanos;
use ssdlab_host::Host;
use ssdlab_lab::memory::BESIDES;
use ssdlab_lab::{Control, Experiment, NoProgress, Phase, Preconditioning, Progress, RunError, table};

use crate::common::{self, Random, assert_checks_hold, assert_same, drive, duts, experiment, run};

#[test]
fn the_same_experiment_twice_gives_the_same_file_but_for_wall_times() {
    let drives = duts(&[drive("one"), drive("two")]);
    let workload = Random::mixed(60_000);
    let experiment = experiment(&drives, &workload, Preconditioning::Fill);
    let first = run(&experiment);
    assert_checks_hold(&first);
    assert_same(&first, &run(&experiment));

    // Equal drives in one experiment do not see each other.
    let mut second = first.devices[1].clone();
    second.name = "one".to_string();
    second.configuration = first.devices[0].configuration.clone();
    for (log, other) in [
        (&mut second.smart.before, &first.devices[0].smart.before),
        (&mut second.smart.after, &first.devices[0].smart.after),
    ] {
        ["mn", "sn"].iter().for_each(|&key| log[key] = other[key].clone());
    }
    second.wall_time_s = first.devices[0].wall_time_s;
    second.wall_precondition_s = first.devices[0].wall_precondition_s;
    assert_eq!(first.devices[0], second);
}

#[test]
fn nothing_is_lost_between_workload_drive_and_result() {
    let drives = duts(&[drive("one")]);
    let workload = Random::mixed(60_000);
    let result = run(&experiment(&drives, &workload, Preconditioning::Fill));
    assert_checks_hold(&result);
    let device = &result.devices[0];
    assert!(result.complete);
    let requests = &device.requests;
    assert_eq!(requests.read + requests.write + requests.trim + requests.flush, 60_000);
    assert_eq!(requests.flush, 120);
    assert_eq!(device.bytes.write, requests.write * common::UNIT);
    assert_eq!(device.latency_ns.all.map(|all| all.count), Some(60_000));
    assert_eq!(device.timeline.requests.iter().sum::<u64>(), 60_000);
    assert_eq!(device.timeline.write_bytes.iter().sum::<u64>(), device.bytes.write);
    assert!(device.outstanding.max == 32 && device.outstanding.mean > 25.0, "{:?}", device.outstanding);
    let amplification = device.write_amplification.as_ref().expect("it wrote");
    let sum: f64 = amplification.by_cause.values().sum();
    assert!((sum - amplification.total).abs() < 1e-9);
    for share in device.utilization.channels.iter().chain(&device.utilization.dies) {
        assert!((0.0..=1.0).contains(share), "{share}");
    }
    let blocks: u64 = device.wear_histogram.blocks.iter().sum();
    assert_eq!(blocks, 4 * 128);
}

/// Two sums of programs in one table differed, and nothing said over which time each was.
#[test]
fn the_invariants_that_sum_programs_say_over_which_time() {
    let result = run(&experiment(&duts(&[drive("one")]), &Random::writes(60_000), Preconditioning::Fill));
    let detail = |name: &str| {
        let check = result.devices[0].checks.iter().find(|check| check.name == name);
        check.expect("a check of every drive").detail.clone()
    };
    let timeline = detail("programs_equal_sum_over_timeline");
    assert!(timeline.contains(" in the measured run, before the drive came to rest; "), "{timeline}");
    let causes = detail("programs_equal_sum_over_causes");
    assert!(causes.contains(" pages programmed since the statistics began, "), "{causes}");
}

#[test]
fn a_fresh_drive_is_told_that_gc_never_ran_and_that_reads_met_nothing() {
    let drives = duts(&[drive("one")]);
    let workload = Random { read_percent: 50, ..Random::writes(2_000) };
    let result = run(&experiment(&drives, &workload, Preconditioning::None));
    assert_checks_hold(&result);
    let warnings = result.devices[0].warnings.join("\n");
    assert!(warnings.contains("garbage collection never ran"), "{warnings}");
    assert!(warnings.contains("never written"), "{warnings}");
}

#[test]
fn a_drive_whose_reserve_eats_its_spare_is_told_so() {
    let mut config = drive("reserve");
    config.gc.free_blocks = 12;
    let drives = duts(&[config]);
    let result = run(&experiment(&drives, &Random::writes(2_000), Preconditioning::Fill));
    let warnings = result.devices[0].warnings.join("\n");
    assert!(warnings.contains("take most of the over-provisioning"), "{warnings}");
}

#[test]
fn a_counting_drive_has_amplification_but_no_times() {
    let mut config = drive("counting");
    config.timed = false;
    let drives = duts(&[config]);
    let result = run(&experiment(&drives, &Random::mixed(60_000), Preconditioning::Fill));
    assert_checks_hold(&result);
    let device = &result.devices[0];
    assert_eq!((device.virtual_time_ns, device.throughput.iops), (0, 0.0));
    assert_eq!(device.timeline.axis, "requests");
    assert!(device.write_amplification.as_ref().expect("it wrote").total > 1.0);
}

#[test]
fn counting_and_timing_agree_on_write_amplification() {
    let mut counting = drive("counting");
    counting.timed = false;
    let drives = duts(&[drive("timed"), counting]);
    let result = run(&experiment(&drives, &Random::writes(100_000), Preconditioning::Fill));
    assert_checks_hold(&result);
    let total = |index: usize| result.devices[index].write_amplification.as_ref().expect("it wrote").total;
    // With time, collection lags behind the host, so a little more of a small plane holds data than the reserve allows.
    let (timed, counting) = (total(0), total(1));
    assert!((timed / counting - 1.0).abs() < 0.06, "{timed} and {counting}");
}

#[test]
fn an_interrupted_run_is_marked_and_its_part_is_consistent() {
    /// Stops at the tenth look at the measured run of the second drive.
    struct Interrupt<'a>(&'a AtomicBool, std::sync::Mutex<(u32, u32)>);
    impl Progress for Interrupt<'_> {
        fn begin(&self, _device: &str, phase: Phase) {
            let mut seen = self.1.lock().expect("no panic");
            *seen = (seen.0 + u32::from(phase == Phase::Run), 0);
        }
        fn advance(&self, _done: u64, _total: Option<u64>) {
            let mut seen = self.1.lock().expect("no panic");
            seen.1 += 1;
            if *seen == (2, 11) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
    }
    let drives = duts(&[drive("one"), drive("two"), drive("three")]);
    let workload = Random::writes(100_000);
    let stop = AtomicBool::new(false);
    let interrupt = Interrupt(&stop, std::sync::Mutex::new((0, 0)));
    let control = Control::new(&stop, &interrupt);
    let result =
        ssdlab_lab::run(&experiment(&drives, &workload, Preconditioning::None), None, &control).expect("sound");
    assert!(!result.complete);
    assert_eq!(result.devices.len(), 2);
    assert!(result.devices[0].complete && !result.devices[1].complete);
    assert!(result.devices[1].requests.write < 100_000);
    assert!(result.devices[1].warnings[0].contains("ended early"), "{:?}", result.devices[1].warnings);
    assert_checks_hold(&result);
}

#[test]
fn two_drives_of_one_name_are_refused() {
    let drives = duts(&[drive("same"), drive("same")]);
    let stop = AtomicBool::new(false);
    let control = Control::new(&stop, &NoProgress);
    let error = ssdlab_lab::run(&experiment(&drives, &Random::writes(1), Preconditioning::None), None, &control);
    assert!(matches!(error, Err(RunError::SameLabel { .. })));
}

#[test]
fn an_impossible_drive_is_refused_with_its_name_and_key() {
    let mut config = drive("too full");
    config.user_bytes = config.flash.geometry.bytes();
    let drives = duts(&[config]);
    let stop = AtomicBool::new(false);
    let control = Control::new(&stop, &NoProgress);
    let error = ssdlab_lab::run(&experiment(&drives, &Random::writes(1), Preconditioning::None), None, &control);
    let error = error.expect_err("no spare").to_string();
    assert!(error.starts_with("too full: "), "{error}");
}

#[test]
fn requests_sized_by_the_drive_are_not_compared_in_silence() {
    struct Sized;
    impl ssdlab_lab::WorkloadSource for Sized {
        fn open(
            &self,
            drive: &ssdlab_device::DriveConfig,
            pass: u64,
        ) -> Result<Box<dyn ssdlab_workload::Workload>, ssdlab_workload::WorkloadError> {
            Random::writes(drive.user_bytes / common::UNIT / 10).open(drive, pass)
        }
        fn identity(&self) -> String {
            "a tenth of the drive".to_string()
        }
    }
    let mut small = drive("small");
    small.user_bytes -= 1 << 20;
    let drives = duts(&[drive("large"), small]);
    let result = run(&experiment(&drives, &Sized, Preconditioning::None));
    let said = |index: usize| result.devices[index].warnings.iter().any(|warning| warning.contains("same requests"));
    assert!(!said(0) && said(1));
}

#[test]
fn a_table_of_four_drives_fits_a_hundred_columns() {
    let configs: Vec<_> = ["fifo-buffer", "greedy", "a-drive-with-a-very-long-name", "d"].map(drive).to_vec();
    let drives = duts(&configs);
    let result = run(&experiment(&drives, &Random::mixed(30_000), Preconditioning::Fill));
    let table = table::render(&result);
    println!("{table}");
    let (heading, rest) = table.split_once("\n\n").expect("a heading");
    assert_eq!(heading, "workload random, replay closed:32, precondition as asked, seed 1");
    let figures = rest.split("\n\n").next().expect("a table");
    for line in figures.lines() {
        assert!(line.chars().count() <= 100, "{} columns: {line}", line.chars().count());
    }
    for label in [
        "trim / flush",
        "queue depth",
        "IOPS",
        "write latency, mean",
        "p99.9",
        "write amplification",
        "  gc",
        "  a block since new",
        "dies busy",
        "over-provisioning",
    ] {
        assert!(figures.contains(label), "{label} is missing from\n{table}");
    }
}

#[test]
fn idle_time_in_a_workload_passes_at_once() {
    /// A write every hour for a month.
    struct Rare(u64);
    impl ssdlab_workload::Workload for Rare {
        fn next(&mut self, now: Nanos) -> Result<ssdlab_workload::Next, ssdlab_workload::WorkloadError> {
            let at = Nanos(3_600_000_000_000) * self.0;
            Ok(if self.0 == 720 {
                ssdlab_workload::Next::Done
            } else if at > now {
                ssdlab_workload::Next::WaitUntil(at)
            } else {
                self.0 += 1;
                let request = ssdlab_base::Request::new(ssdlab_base::Op::Write, self.0 * 8, 8);
                ssdlab_workload::Next::Request(ssdlab_base::Request { at, ..request })
            })
        }
        fn completed(&mut self, _now: Nanos, _tag: u32) {}
        fn progress(&self) -> (u64, Option<u64>) {
            (self.0, Some(720))
        }
        fn rewind(&mut self) -> Result<(), ssdlab_workload::WorkloadError> {
            self.0 = 0;
            Ok(())
        }
    }
    struct Source;
    impl ssdlab_lab::WorkloadSource for Source {
        fn open(
            &self,
            _drive: &ssdlab_device::DriveConfig,
            _pass: u64,
        ) -> Result<Box<dyn ssdlab_workload::Workload>, ssdlab_workload::WorkloadError> {
            Ok(Box::new(Rare(0)))
        }
        fn identity(&self) -> String {
            "rare".to_string()
        }
    }
    let drives = duts(&[drive("one")]);
    let result = run(&experiment(&drives, &Source, Preconditioning::None));
    assert_checks_hold(&result);
    let device = &result.devices[0];
    assert_eq!(device.requests.write, 720);
    assert!(device.virtual_time_ns > 719 * 3_600_000_000_000);
    assert!(device.timeline.time_ns.len() <= 1024);
    let mean = device.latency_ns.write.expect("writes").mean;
    assert!(mean < 1_000_000.0, "a write to an idle drive took {mean} ns");
}

#[test]
fn a_host_above_the_drive_is_measured_and_verified_from_above() {
    let host =
        Host::parse("[[layer]]\nkind = \"scheduler\"\ndepth = 4\nmerge_size = \"64k\"\n", "host.toml").expect("a host");
    let drives = duts(&[drive("plain")]);
    let workload = Random { depth: 64, ..Random::mixed(60_000) };
    let plain = || experiment(&drives, &workload, Preconditioning::Fill);
    let through = || Experiment { host: Some(&host), ..plain() };
    let result = run(&Experiment { verify: true, ..through() });
    assert_checks_hold(&result);
    let names: Vec<&str> = result.devices[0].checks.iter().map(|check| check.name.as_str()).collect();
    assert!(names.contains(&"requests_handed_down") && names.contains(&"reads_return_what_was_written"), "{names:?}");
    let layer = &result.devices[0].host_layers[0];
    assert_eq!((layer.kind.as_str(), layer.configuration["depth"].as_str()), ("scheduler", "4"));
    assert_eq!(layer.taken.requests.iter().sum::<u64>(), 60_000);
    assert_eq!(60_000.0 - layer.figures["merged_requests"], layer.sent.requests.iter().sum::<u64>() as f64);
    assert!(layer.figures["waiting_max"] > 50.0, "64 come at a time, and 4 go on");
    // Contents change nothing, and neither does a scheduler that lets everything through.
    let unverified = run(&through());
    assert_eq!(unverified.devices[0].latency_ns, result.devices[0].latency_ns);
    let open = Host::parse("[[layer]]\nkind = \"scheduler\"\ndepth = 65536\n", "open.toml").expect("a host");
    let open = run(&Experiment { host: Some(&open), ..plain() });
    assert_eq!(open.devices[0].latency_ns, run(&plain()).devices[0].latency_ns);
    assert_ne!(open.devices[0].latency_ns, unverified.devices[0].latency_ns);
}

/// Planes that work together are moved to in another order where contents are kept, unless care is taken.
#[test]
fn contents_change_no_figure() {
    let mut paired = drive("paired");
    paired.flash.geometry.planes_per_die = 2;
    paired.flash.geometry.blocks_per_plane /= 2;
    paired.flash.multi_plane = ssdlab_flash::MultiPlane::SameOffset;
    let mut versions = paired.clone();
    (versions.name, versions.ftl.design) = ("versions".to_string(), "mvftl".to_string());
    let mut packed = paired.clone();
    (packed.name, packed.ftl.mapping_unit) = ("packed".to_string(), 2048);
    let mut faulty = paired.clone();
    faulty.name = "faulty".to_string();
    faulty.flash.faults.program_failure = 0.0002;
    let drives = duts(&[paired, versions, packed, faulty]);
    for workload in [Random::writes(60_000), Random::mixed(60_000)] {
        let plain = run(&experiment(&drives, &workload, Preconditioning::Fill));
        let verified = run(&Experiment { verify: true, ..experiment(&drives, &workload, Preconditioning::Fill) });
        for (plain, verified) in plain.devices.iter().zip(&verified.devices) {
            assert!(plain.gc.foreground_victims > 100, "{}: nothing was collected", plain.name);
            assert_eq!(plain.flash, verified.flash, "{}", plain.name);
            assert_eq!(plain.latency_ns, verified.latency_ns, "{}", plain.name);
            assert_eq!(plain.timeline, verified.timeline, "{}", plain.name);
        }
    }
}

#[test]
fn verified_drives_of_all_kinds_give_back_what_was_written() {
    let mut buffered = drive("buffered");
    buffered.buffer.policy = "lru".to_string();
    buffered.buffer.bytes = 1 << 20;
    let mut counting = drive("counting");
    counting.timed = false;
    let mut packed = drive("packed");
    packed.ftl.mapping_unit = 2048;
    let drives = duts(&[drive("plain"), buffered, counting, packed]);
    let workload = Random::mixed(60_000);
    let ageing = Random::mixed(30_000);
    for preconditioning in [Preconditioning::None, Preconditioning::Fill, Preconditioning::Workload(&ageing)] {
        let result = run(&Experiment { verify: true, ..experiment(&drives, &workload, preconditioning) });
        assert_checks_hold(&result);
        for device in &result.devices {
            let check = device.checks.iter().find(|check| check.name == "reads_return_what_was_written");
            let detail = &check.expect("the check").detail;
            let compared: u64 = detail.split(' ').next().and_then(|count| count.parse().ok()).expect("a count");
            // The reads of the run, and everything once more at the end.
            assert!(compared > device.bytes.read / 512 + 100_000, "{detail}");
        }
    }
}

/// Keeps the notes that it is told.
struct Notes(Mutex<Vec<String>>);

impl Progress for Notes {
    fn note(&self, sentence: &str) {
        self.0.lock().expect("no thread panicked").push(sentence.to_string());
    }
}

#[test]
fn drives_side_by_side_give_the_results_of_drives_one_after_the_other() {
    let mut small = drive("small");
    small.flash.geometry.blocks_per_plane /= 2;
    small.user_bytes /= 2;
    let mut counting = drive("counting");
    counting.timed = false;
    let drives = duts(&[drive("first"), small, counting, drive("last")]);
    let workload = Random::mixed(40_000);
    let alone = run(&experiment(&drives, &workload, Preconditioning::Fill));
    assert_checks_hold(&alone);
    assert_eq!(alone.devices.len(), 4);
    let each = experiment(&drives, &workload, Preconditioning::Fill).memory().expect("known designs");
    let first_two = each[0].total() + each[3].total() + 2 * BESIDES;
    for (jobs, memory_bytes, said) in [
        (2, 1 << 30, None),
        (4, 1 << 30, None),
        (1024, 1 << 30, None),
        (2, first_two, None),
        (3, first_two, Some("the largest 3 would take")),
        (4, 1, Some("the largest 1 fit")),
    ] {
        let notes = Notes(Mutex::new(Vec::new()));
        let together = Experiment { jobs, memory_bytes, ..experiment(&drives, &workload, Preconditioning::Fill) };
        let stop = AtomicBool::new(false);
        assert_same(&alone, &ssdlab_lab::run(&together, None, &Control::new(&stop, &notes)).expect("sound"));
        let notes = notes.0.into_inner().expect("no thread panicked");
        match said {
            None => assert!(notes.is_empty(), "{notes:?}"),
            Some(said) => assert!(notes.len() == 1 && notes[0].contains(said), "{notes:?}"),
        }
    }
}

#[test]
fn of_drives_side_by_side_that_fail_the_first_in_the_list_is_named() {
    let mut second = drive("second");
    second.user_bytes = second.flash.geometry.bytes();
    let mut third = drive("third");
    third.user_bytes = third.flash.geometry.bytes();
    let drives = duts(&[drive("first"), second, third, drive("fourth")]);
    let workload = Random::writes(30_000);
    for jobs in [1, 2, 4] {
        let together = Experiment { jobs, ..experiment(&drives, &workload, Preconditioning::None) };
        let stop = AtomicBool::new(false);
        let error =
            ssdlab_lab::run(&together, None, &Control::new(&stop, &NoProgress)).expect_err("no spare").to_string();
        assert!(error.starts_with("second: "), "{jobs} at a time: {error}");
    }
}

#[test]
fn drives_side_by_side_that_are_stopped_leave_their_parts_in_order() {
    /// Stops all drives at the fifth look at any measured run.
    struct Stopping<'a>(&'a AtomicBool, std::sync::atomic::AtomicU32);
    struct One<'a>(&'a Stopping<'a>, AtomicBool);
    impl Progress for Stopping<'_> {
        fn beside(&self) -> Box<dyn Progress + '_> {
            Box::new(One(self, AtomicBool::new(false)))
        }
    }
    impl Progress for One<'_> {
        fn begin(&self, _device: &str, phase: Phase) {
            self.1.store(phase == Phase::Run, Ordering::Relaxed);
        }
        fn advance(&self, _done: u64, _total: Option<u64>) {
            if self.1.load(Ordering::Relaxed) && self.0.1.fetch_add(1, Ordering::Relaxed) == 5 {
                self.0.0.store(true, Ordering::Relaxed);
            }
        }
    }
    let drives = duts(&[drive("one"), drive("two"), drive("three")]);
    let workload = Random::writes(2_000_000);
    let stop = AtomicBool::new(false);
    let stopping = Stopping(&stop, std::sync::atomic::AtomicU32::new(0));
    let together = Experiment { jobs: 2, ..experiment(&drives, &workload, Preconditioning::None) };
    let result = ssdlab_lab::run(&together, None, &Control::new(&stop, &stopping)).expect("sound");
    assert!(!result.complete);
    let names: Vec<&str> = result.devices.iter().map(|device| device.name.as_str()).collect();
    assert!(names == ["one", "two"] || names == ["one"], "{names:?}");
    assert!(result.devices.iter().all(|device| !device.complete && device.requests.write < 2_000_000));
    assert_checks_hold(&result);
}

#[test]
fn the_variation_of_the_rate_is_that_of_the_timeline_in_the_same_intervals() {
    let drives = duts(&[drive("one")]);
    let workload = Random::writes(100_000);
    let interval = Nanos::from_ms(2);
    let asked =
        Experiment { timeline_interval: Some(interval), ..experiment(&drives, &workload, Preconditioning::Steady) };
    let result = run(&asked);
    assert_checks_hold(&result);
    let device = &result.devices[0];
    let timeline = &device.timeline;
    assert_eq!(timeline.interval, interval.0);
    let whole = (device.virtual_time_ns / interval.0) as usize;
    assert!(whole > 500, "{whole} intervals");
    // Without the first tenth.
    let first = whole / 10;
    assert_eq!(device.rate_variation.intervals, (whole - first) as u64);
    let rates: Vec<f64> = timeline.requests[first..whole].iter().map(|&requests| requests as f64).collect();
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / rates.len() as f64;
    let cv = device.rate_variation.cv.expect("intervals");
    assert!((cv / (variance.sqrt() / mean) - 1.0).abs() < 1e-9, "{cv} against {}", variance.sqrt() / mean);
    assert!(cv > 0.01, "collection is felt: {cv}");

    // A run with the timeline's own intervals is the same but for those, and its variation is over 100 ms.
    let plain = run(&experiment(&drives, &workload, Preconditioning::Steady));
    assert_eq!(plain.devices[0].rate_variation.interval_ns, 100_000_000);
    assert_eq!(plain.devices[0].latency_ns, device.latency_ns);
    assert!(plain.devices[0].timeline.time_ns.len() <= 1024);
}

//! No time of a trace wraps: one that no run reaches is refused with its line and column, in every format.

use ssdlab_base::{Nanos, Request};
use ssdlab_workload::Workload as _;
use ssdlab_workload::WorkloadError;
use ssdlab_workload::replay::{Discipline, ReplaySettings, TraceReplay};
use ssdlab_workload::trace::Trace;

fn requests(options: &str, text: &str) -> Result<Vec<Request>, String> {
    let mut trace = Trace::from_bytes("t", options, text.as_bytes()).map_err(|error| error.to_string())?;
    let (mut all, mut batch) = (Vec::new(), Vec::new());
    while trace.read(&mut batch).map_err(|error| error.to_string())? > 0 {
        all.extend_from_slice(&batch);
    }
    Ok(all)
}

/// Each text format: a line with `@` for its time, the column of that, and a time in its unit that is 584 years late.
const FORMATS: [(&str, &str, u32, &str); 16] = [
    ("csv", "@,W,4096,8192", 1, "18446744073709551"),
    ("msr", "@,hm,0,Read,4096,512,100", 1, "184467440737095516"),
    ("ms-etw", "DiskRead, @, p (1), 2, 0xff, 0x1000, 0x200, 3, 0, 0x1", 2, "18446744073709551"),
    ("spc", "0,20,1024,W,@", 5, "18446744073.7"),
    ("ssdsim", "@ 0 8 2 1", 1, "18446744073709551615"),
    ("tracetracker", "@\t0\t8\t2\t1", 1, "184467440737095516"),
    ("disksim", "@ 0 8 16 1", 1, "18446744073709.5"),
    ("disksim-pages", "@\t0\t8\t2\t1", 1, "18446744073709.5"),
    ("linnos", "@ 0 8192 4096 1", 1, "18446744073709.5"),
    ("flashnet", "0.0,120,1,4096,8192,@,4096", 6, "18446744073709.5"),
    ("fiu", "@ 1 nfsd 8 2 W 6 0 88b93b628d84082186026d9da044f173", 1, "18446744073709551615"),
    ("systor17", "@,,W,0,4096,1024", 1, "18446744073.7"),
    ("tencent", "@,8,2,1,1058", 1, "18446744073"),
    ("alibaba", "0,R,4096,1024,@", 5, "18446744073709551"),
    ("vscsi-csv", "1,@,2a,1024,8", 2, "18446744073"),
    ("wiscsee", "39949 D write 4096 1024 @ 0 False", 6, "18446744073.7"),
];

#[test]
fn a_time_that_no_run_reaches_is_refused_with_line_and_column() {
    for (format, line, column, late) in FORMATS {
        let options = format!("format={format}");
        let text = |time: &str| format!("{}\n{}\n", line.replace('@', "1"), line.replace('@', time));
        assert_eq!(requests(&options, &text("2")).map(|all| all.len()), Ok(2), "{format}");

        // It fits 64 bits of nanoseconds, and everything that a drive adds to it would wrap.
        let error = requests(&options, &text(late)).expect_err(format);
        let place = format!("t:2: found the time `{late}` in column {column}: a request 584 years after the first one");
        assert!(error.starts_with(&place), "{format}: {error}");
        assert!(error.contains("expected all requests within 73 years (2^61 nanoseconds)"), "{format}: {error}");

        // Its nanoseconds do not fit.
        let error = requests(&options, &text("184467440737095516151")).expect_err(format);
        let place =
            format!("t:2: found the time `184467440737095516151` in column {column}: nanoseconds that do not fit");
        assert!(error.starts_with(&place), "{format}: {error}");
        assert!(error.contains("expected all requests within 73 years (2^61 nanoseconds)"), "{format}: {error}");

        // What is no number at all is told as before.
        let error = requests(&options, &text("x1")).expect_err(format);
        assert!(error.starts_with("t:2: found ") && !error.contains("in column"), "{format}: {error}");
        let skipping = format!("{options},skip_bad=yes");
        assert_eq!(requests(&skipping, &text(late)).map(|all| all.len()), Ok(1), "{format}");
    }
}

#[test]
fn a_clock_known_to_be_wild_leaves_single_requests_out_and_is_refused_where_it_stays() {
    let line = |time: &str| format!("  8,16   5        2     {time} 18615  Q   R 8 + 2 [java]\n");
    let wild = line("18446744073.700000000");
    let all = requests("", &[line("0.000001850"), wild.clone(), line("0.000002850")].concat());
    assert_eq!(all.map(|all| all.len()), Ok(2));
    let error = requests("", &format!("{}{}", line("0.000001850"), wild.repeat(16))).expect_err("sixteen in a row");
    assert!(
        error.starts_with("t:17: found the time `18446744073.700000000` in column 4: a request 584 years"),
        "{error}"
    );
}

#[test]
fn waits_of_an_iolog_do_not_add_up_behind_the_horizon() {
    let text = |wait: &str| format!("fio version 2 iolog\n/x write 0 512\n/x wait {wait}\n/x write 0 512\n");
    assert_eq!(requests("", &text("1000000")).map(|all| all[1].at), Ok(Nanos(1_000_000_000)));
    let latest = Nanos(2_305_843_009_213_693_000);
    assert_eq!(requests("", &text("2305843009213693")).map(|all| all[1].at), Ok(latest), "just before the horizon");
    let error = requests("", &text("2305843009213694")).expect_err("73 years");
    assert!(error.starts_with("t:3: found a wait of 2305843009213694 us in column 3"), "{error}");
    let error = requests("", &text("18446744073709551615")).expect_err("584,000 years");
    assert!(error.starts_with("t:3: found a wait of 18446744073709551615 us in column 3"), "{error}");
}

#[test]
fn binary_records_say_which_one_is_late() {
    let record = |sequence: u32, at_ns: u64| {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&0x6561_7407_u32.to_le_bytes());
        bytes.extend_from_slice(&sequence.to_le_bytes());
        bytes.extend_from_slice(&at_ns.to_le_bytes());
        bytes.extend_from_slice(&8_u64.to_le_bytes());
        bytes.extend_from_slice(&4096_u32.to_le_bytes());
        bytes.extend_from_slice(&(1_u32 | 1 << 17).to_le_bytes());
        bytes.extend_from_slice(&[0; 16]);
        bytes
    };
    let late = (1..=16).flat_map(|sequence| record(sequence, u64::MAX - 5));
    let bytes: Vec<u8> = record(0, 7).into_iter().chain(late).collect();
    let mut trace = Trace::from_bytes("t", "", bytes).expect("opens");
    let error = trace.read(&mut Vec::new()).expect_err("584 years").to_string();
    assert!(error.starts_with("t: record 17 (byte 768): found a request 584 years after the first one"), "{error}");
}

#[test]
fn the_limit_is_the_horizon_whichever_request_comes_first() {
    let horizon_us = Nanos::HORIZON.0 / 1000;
    let both = |first: u64, second: u64| requests("", &format!("{first},W,0,4096\n{second},W,4096,4096\n"));
    assert_eq!(both(0, horizon_us).map(|all| all[1].at), Ok(Nanos(horizon_us * 1000)));
    let error = both(0, horizon_us + 1).expect_err("73 years");
    assert!(error.contains("a request 73 years after the first one"), "{error}");
    // An earlier stamp is given the time of the one before it, and is refused all the same if it is too far.
    assert_eq!(both(horizon_us, 0).map(|all| all[1].at), Ok(Nanos::ZERO));
    let error = both(horizon_us + 1, 0).expect_err("73 years");
    assert!(error.contains("a request 73 years before the last one"), "{error}");
    // Sorted, two stamps on either side of the first may not be further apart either.
    let line = |time: u64| format!("{time},W,0,4096\n");
    let (middle, far) = (horizon_us, horizon_us * 3 / 4);
    let text = [line(middle), line(middle - far), line(middle + far)].concat();
    let error = requests("order=time", &text).expect_err("110 years from end to end");
    assert!(error.starts_with("t:3: ") && error.contains("109 years after the first one"), "{error}");
}

#[test]
fn the_longest_pause_of_more_than_a_month_is_told_with_its_line() {
    const DAY_US: u64 = 86_400_000_000;
    let gap = |options: &str, days: &[u64]| {
        let text: String = days.iter().map(|day| format!("{},W,0,4096\n", day * DAY_US)).collect();
        let mut trace = Trace::from_bytes("t", options, text.as_bytes()).expect("opens");
        while trace.read(&mut Vec::new()).expect("reads") > 0 {}
        trace.gap()
    };
    assert_eq!(gap("", &[1000, 1030, 1060]), None);
    let told = gap("", &[0, 40, 100, 140]).expect("60 days");
    assert!(told.starts_with("t:3: the time of this request is 60 days after the one before it"), "{told}");
    let told = gap("", &[0, 3653, 3653 + 365]).expect("ten years");
    assert!(told.starts_with("t:2: ") && told.contains("10.0 years"), "{told}");
    // In order again there is no pause where the lines jump.
    assert_eq!(gap("order=time", &[0, 50, 25]), None);
    let told = gap("order=time", &[50, 0]).expect("50 days");
    assert!(told.starts_with("t: the time of this request is 50 days"), "{told}");
    // A closed loop sends nothing by the clock.
    let replay = |discipline: &str| {
        let trace = Trace::from_bytes("t", "", "0,W,0,4096\n94672800000000,W,4096,4096\n".as_bytes()).expect("opens");
        let discipline = discipline.parse().expect("a discipline");
        let settings = ReplaySettings { discipline, ..ReplaySettings::default() };
        TraceReplay::new(trace, settings, 1 << 20).expect("replays").notes()
    };
    assert!(replay("timed").iter().any(|note| note.contains("3.0 years")), "{:?}", replay("timed"));
    assert_eq!(replay("closed:4"), Vec::<String>::new());
}

#[test]
fn a_factor_of_time_does_not_carry_a_trace_behind_the_horizon() {
    // Thirty years.
    let text = "0,W,0,4096\n946728000000000,W,4096,4096\n";
    let replay = |discipline: &str| -> Result<TraceReplay, WorkloadError> {
        let discipline: Discipline = discipline.parse()?;
        let trace = Trace::from_bytes("t", "", text.as_bytes())?;
        TraceReplay::new(trace, ReplaySettings { discipline, ..ReplaySettings::default() }, 1 << 20)
    };
    assert!(replay("timed").is_ok() && replay("timed*2").is_ok() && replay("closed:1").is_ok());
    for factor in ["timed*3", "timed*999999999", "timed*2.5"] {
        let error = replay(factor).map(|_| ()).expect_err(factor).to_string();
        assert!(error.contains(&format!("replayed {factor} it would end beyond the horizon")), "{error}");
    }
    let late = Nanos(946_728_000_000_000_000);
    assert!(late.before_horizon().is_some() && Nanos(late.0 * 5 / 2).before_horizon().is_none());
}

//! Replay: when requests are sent, and where they go.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use ssdlab_base::{Nanos, Op, Request};
use ssdlab_workload::replay::{Discipline, Fit, ReplaySettings, TraceReplay};
use ssdlab_workload::trace::Trace;
use ssdlab_workload::{Next, Workload};

fn settings(discipline: &str, fit: Fit, limit: Option<u64>) -> ReplaySettings {
    ReplaySettings { discipline: discipline.parse().expect("a discipline"), fit, limit }
}

fn replay(text: &str, settings: ReplaySettings, capacity: u64) -> Result<TraceReplay, String> {
    let trace = Trace::from_bytes("t", "format=csv", text.as_bytes().to_vec()).map_err(|error| error.to_string())?;
    TraceReplay::new(trace, settings, capacity).map_err(|error| error.to_string())
}

/// Sends everything to a drive that completes a request `service` ns after it is sent.
fn run(workload: &mut TraceReplay, start: Nanos, service: u64) -> Vec<(u64, Request)> {
    let mut now = start;
    let mut sent = Vec::new();
    let mut running: BTreeMap<(u64, u32), ()> = BTreeMap::new();
    loop {
        let wake = match workload.next(now).expect("sound") {
            Next::Request(request) => {
                assert!(request.at <= now);
                running.insert((now.0 + service, request.tag), ());
                sent.push((now.0, request));
                continue;
            }
            Next::Done if running.is_empty() => return sent,
            Next::Done => None,
            Next::WaitForCompletion => {
                assert!(!running.is_empty(), "waits for a completion that cannot come");
                None
            }
            Next::WaitUntil(at) => {
                assert!(at > now, "waits for the past");
                Some(at.0)
            }
        };
        let first = running.keys().next().copied();
        match (wake, first) {
            (Some(at), Some((done, _))) if at < done => now = Nanos(at),
            (Some(at), None) => now = Nanos(at),
            (_, Some((done, tag))) => {
                now = Nanos(done);
                running.remove(&(done, tag));
                workload.completed(now, tag);
            }
            (None, None) => panic!("nothing to wait for"),
        }
    }
}

const FOUR: &str = "0,W,0,4096\n10,W,4096,4096\n20,F,0,0\n35,R,0,512\n";

#[test]
fn timed_sends_at_the_traces_times_however_slow_the_drive_is() {
    for service in [1, 1_000_000] {
        let mut workload = replay(FOUR, settings("timed", Fit::Exact, None), 1 << 20).expect("fits");
        let sent: Vec<u64> = run(&mut workload, Nanos(0), service).iter().map(|(at, _)| *at).collect();
        assert_eq!(sent, [0, 10_000, 20_000, 35_000]);
        assert_eq!(workload.progress(), (4, Some(4)));
    }
    let mut workload = replay(FOUR, settings("timed*2.5", Fit::Exact, None), 1 << 20).expect("fits");
    let sent: Vec<u64> = run(&mut workload, Nanos(7), 100).iter().map(|(at, _)| *at).collect();
    assert_eq!(sent, [7, 25_007, 50_007, 87_507], "from the first call on");
}

#[test]
fn closed_keeps_the_depth_and_forgets_the_times() {
    let mut workload = replay(FOUR, settings("closed:2", Fit::Exact, None), 1 << 20).expect("fits");
    let sent: Vec<u64> = run(&mut workload, Nanos(0), 100).iter().map(|(at, _)| *at).collect();
    assert_eq!(sent, [0, 0, 100, 100]);
    let mut workload = replay(FOUR, settings("closed:1", Fit::Exact, None), 1 << 20).expect("fits");
    let sent: Vec<u64> = run(&mut workload, Nanos(0), 100).iter().map(|(at, _)| *at).collect();
    assert_eq!(sent, [0, 100, 200, 300]);
}

#[test]
fn a_limit_ends_the_replay_and_a_rewind_starts_it_again() {
    let mut workload = replay(FOUR, settings("timed", Fit::Exact, Some(2)), 1 << 20).expect("fits");
    assert_eq!(workload.total(), 2);
    let first = run(&mut workload, Nanos(0), 100);
    assert_eq!(first.len(), 2);
    workload.rewind().expect("rewinds");
    assert_eq!(workload.progress(), (0, Some(2)));
    assert_eq!(run(&mut workload, Nanos(0), 100), first);
    assert!(replay(FOUR, settings("timed", Fit::Exact, Some(0)), 1 << 20).is_err());
    // What lies beyond the limit does not have to fit.
    assert!(replay("0,W,0,512\n1,W,999999488,512\n", settings("timed", Fit::Exact, Some(1)), 8).is_ok());
}

#[test]
fn a_drive_smaller_than_the_trace_is_refused_before_the_run_with_the_ways_out() {
    let error = replay("0,W,1048576,4096\n", settings("timed", Fit::Exact, None), 2055).map(|_| ()).expect_err("small");
    for word in ["t reaches", "byte 1052672", "byte 1052160", "--wrap", "--fit", "larger drive"] {
        assert!(error.contains(word), "{error}");
    }
    assert!(replay("0,W,1048576,4096\n", settings("timed", Fit::Exact, None), 2056).is_ok());
    let error = replay(FOUR, settings("timed", Fit::Exact, None), 0).map(|_| ()).expect_err("no sector");
    assert!(error.contains("without a single sector"), "{error}");
    let text = "0,W,0,4096\n1,W,1048576,4096\n2,W,5242880,4096\n";
    let error = replay(text, settings("timed", Fit::Dense, None), 2 * 2048).map(|_| ()).expect_err("three extents");
    assert!(error.contains("2 whole extents of 1 MiB") && error.contains("--wrap"), "{error}");
    assert!(replay(text, settings("timed", Fit::Dense, None), 3 * 2048).is_ok());
    // Thirty years.
    let late = "0,W,0,512\n946728000000000,W,0,512\n";
    let error = replay(late, settings("timed*3", Fit::Exact, None), 8).map(|_| ()).expect_err("beyond time");
    assert!(error.contains("2^61"), "{error}");
}

#[test]
fn wrap_folds_addresses_and_cuts_at_the_drives_end() {
    let text = "0,W,0,4096\n1,W,5120,4096\n2,T,4096,409600\n3,F,0,0\n";
    let mut workload = replay(text, settings("timed", Fit::Wrap, None), 12).expect("wraps");
    let sent: Vec<_> = run(&mut workload, Nanos(0), 1)
        .iter()
        .map(|(_, request)| (request.op, request.sector, request.sectors))
        .collect();
    assert_eq!(
        sent,
        [
            (Op::Write, 0, 8),
            (Op::Write, 10, 2),
            (Op::Write, 0, 6),
            (Op::Trim, 8, 4),
            (Op::Trim, 0, 8),
            (Op::Flush, 0, 0)
        ]
    );
    assert_eq!(workload.progress(), (4, Some(4)));
    let notes = workload.notes().join("\n");
    assert!(
        notes.contains("2 requests lay beyond")
            && notes.contains("the drive was sent 6 requests for 4 of the trace: 2 were cut"),
        "{notes}"
    );
}

#[test]
fn fit_packs_extents_by_first_touch_and_keeps_the_place_within() {
    // Extents 100, 3 and 4 are touched in this order; the trim covers 2 to 5 and 99 to 101.
    let text = "0,W,104861696,4096\n1,R,4190208,8192\n2,T,2097152,104857600\n3,T,1048576,1048576\n";
    let mut workload = replay(text, settings("timed", Fit::Dense, None), 3 * 2048 + 5).expect("fits");
    let sent: Vec<_> = run(&mut workload, Nanos(0), 1)
        .iter()
        .map(|(_, request)| (request.op, request.sector, request.sectors))
        .collect();
    assert_eq!(sent, [(Op::Write, 8, 8), (Op::Read, 2048 + 2040, 16), (Op::Trim, 2048, 4096), (Op::Trim, 0, 2048),]);
    assert_eq!(workload.progress(), (4, Some(4)), "the trim of nothing counts as sent");
    assert!(workload.notes().join("\n").contains("1 trim of what"), "{:?}", workload.notes());
}

#[test]
fn an_unreadable_tail_is_found_before_the_run() {
    let error =
        replay("0,W,0,512\nrubbish\n", settings("timed", Fit::Exact, None), 8).map(|_| ()).expect_err("rubbish");
    assert!(error.starts_with("t:2: found `rubbish`"), "{error}");
}

/// Requests over a few extents, near and far.
fn any_trace() -> impl Strategy<Value = Vec<(Op, u64, u64)>> {
    let op = prop_oneof![Just(Op::Read), Just(Op::Write), Just(Op::Trim), Just(Op::WriteZeroes)];
    let sector = prop_oneof![0..10_000_u64, 1_000_000..1_010_000_u64, 77_000_000..77_003_000_u64];
    prop::collection::vec((op, sector, prop_oneof![1..64_u64, 1..9_000_u64]), 1..40)
}

fn as_csv(requests: &[(Op, u64, u64)]) -> String {
    let line = |(at, (op, sector, sectors)): (usize, &(Op, u64, u64))| {
        let letter = match op {
            Op::Read => "R",
            Op::Write => "W",
            Op::Trim => "T",
            Op::Flush => "F",
            Op::WriteZeroes => "Z",
        };
        format!("{at},{letter},{},{}\n", sector * 512, sectors * 512)
    };
    requests.iter().enumerate().map(line).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_dense_remap_is_one_to_one_and_keeps_alignment(requests in any_trace()) {
        let text = as_csv(&requests);
        let touched: BTreeSet<u64> = requests
            .iter()
            .filter(|(op, ..)| *op != Op::Trim)
            .flat_map(|(_, sector, sectors)| sector / 2048..(sector + sectors).div_ceil(2048))
            .collect();
        prop_assume!(!touched.is_empty());
        let capacity = touched.len() as u64 * 2048;
        // Exactly enough is enough, and one extent less is not.
        prop_assert!(replay(&text, settings("closed:1", Fit::Dense, None), capacity - 1).is_err());
        let mut workload = replay(&text, settings("closed:1", Fit::Dense, None), capacity).expect("fits");
        let sent = run(&mut workload, Nanos(0), 1);
        // The naive remap, sector by sector.
        let mut slots: BTreeMap<u64, u64> = BTreeMap::new();
        for (op, sector, sectors) in &requests {
            if *op != Op::Trim {
                for extent in sector / 2048..(sector + sectors).div_ceil(2048) {
                    let next = slots.len() as u64;
                    slots.entry(extent).or_insert(next);
                }
            }
        }
        let expected: Vec<(Op, u64)> = requests
            .iter()
            .flat_map(|&(op, sector, sectors)| (sector..sector + sectors).map(move |sector| (op, sector)))
            .filter_map(|(op, sector)| slots.get(&(sector / 2048)).map(|slot| (op, slot * 2048 + sector % 2048)))
            .collect();
        let ours: Vec<(Op, u64)> = sent
            .iter()
            .flat_map(|(_, piece)| (piece.sector..piece.end()).map(|sector| (piece.op, sector)))
            .collect();
        prop_assert_eq!(ours, expected);
        prop_assert_eq!(workload.progress(), (requests.len() as u64, Some(requests.len() as u64)));
    }

    #[test]
    fn wrapping_is_the_remainder_of_every_sector(requests in any_trace(), capacity in 1..20_000_u64) {
        let mut workload = replay(&as_csv(&requests), settings("closed:3", Fit::Wrap, None), capacity).expect("wraps");
        let sent = run(&mut workload, Nanos(0), 1);
        let expected: Vec<(Op, u64)> = requests
            .iter()
            .flat_map(|&(op, sector, sectors)| {
                (sector..sector + sectors.min(capacity)).map(move |sector| (op, sector % capacity))
            })
            .collect();
        let ours: Vec<(Op, u64)> = sent
            .iter()
            .flat_map(|(_, piece)| (piece.sector..piece.end()).map(|sector| (piece.op, sector)))
            .collect();
        prop_assert_eq!(ours, expected);
        prop_assert_eq!(workload.progress().0, requests.len() as u64);
    }
}

#[test]
fn discipline_is_shown_as_it_is_written() {
    for text in ["timed", "timed*0.5", "timed*3", "closed:32"] {
        assert_eq!(text.parse::<Discipline>().expect(text).to_string(), text);
    }
}

#[test]
fn a_clock_of_whole_seconds_or_none_is_noted_where_it_makes_bursts() {
    let trace = |at: &dyn Fn(u64) -> String| -> String {
        (0..40).map(|number| format!("{},W,{},4096\n", at(number), number * 4096)).collect()
    };
    let notes = |text: &str, discipline: &str| {
        let workload = replay(text, settings(discipline, Fit::Exact, None), 1 << 20).expect("sound");
        workload.notes().join("\n")
    };
    let none = trace(&|_| "7".to_string());
    assert!(notes(&none, "timed").contains("all 40 requests carry the same time"), "{}", notes(&none, "timed"));
    let seconds = trace(&|number| format!("{}000000", number / 10));
    let noted = notes(&seconds, "timed*0.5");
    assert!(noted.contains("whole seconds") && noted.contains("up to 10") && noted.contains("closed:QD"), "{noted}");
    // A closed loop does not look at the clock; one fine stamp shows a fine clock; a request a second is no burst.
    assert_eq!(notes(&none, "closed:4"), "");
    assert_eq!(notes(&trace(&|number| format!("{}", number / 10 * 1_000_000 + u64::from(number == 39))), "timed"), "");
    assert_eq!(notes(&trace(&|number| format!("{number}000000")), "timed"), "");
}

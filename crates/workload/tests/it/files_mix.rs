//! What the personalities do: their mixes, sizes and orders, without a file system.

use std::collections::HashMap;

use proptest::prelude::*;
use ssdlab_workload::files::{Call, FileSets, OpKind, Personality, Script, shipped};

use crate::files_support::{self, NAMES, engine, personality, published, simulate, small};

/// Operations by kind of a run in virtual time where every call takes a microsecond.
fn count(personality: &Personality, seed: u64, operations: u64) -> HashMap<OpKind, u64> {
    let (mut engine, _) = engine(personality, seed, operations);
    let mut counts = HashMap::new();
    simulate(
        &mut engine,
        |_, _| 1_000,
        |_, _, done| {
            if let Some(done) = done {
                *counts.entry(done.kind).or_default() += 1;
            }
        },
    );
    assert_eq!(engine.skipped(), 0);
    counts
}

#[test]
fn what_ships_is_read_and_says_where_its_numbers_are_from() {
    let names: Vec<String> = shipped().map(|personality| personality.name).collect();
    assert_eq!(names, NAMES);
    for personality in shipped() {
        let has_source = ["1.5", "AMF, section 5.3.2"].iter().any(|source| personality.source.contains(source));
        assert!(!personality.summary.is_empty() && has_source, "{}", personality.name);
    }
}

#[test]
fn the_mix_of_every_loop_is_the_published_one() {
    for name in NAMES.into_iter().filter(|name| *name != "postmark") {
        let mut personality = small(name);
        personality.set("threads=1").expect("a key");
        let mix = published(name);
        let turn: u64 = mix.iter().map(|(_, count)| count).sum();
        let Script::Loop(flowops) = &personality.script else { panic!("{name} is a loop") };
        assert_eq!(flowops.len() as u64, turn, "{name}");
        let found = count(&personality, 3, 50 * turn);
        let expected: HashMap<OpKind, u64> = mix.into_iter().map(|(kind, count)| (kind, 50 * count)).collect();
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn the_published_parameters_are_the_defaults_and_papers_change_theirs() {
    let parameters = |name: &str, settings: &[&str]| personality(name, settings).parameters;
    let fileserver = parameters("fileserver", &[]);
    assert_eq!((fileserver.files, fileserver.threads, fileserver.mean_size), (10_000, 50, 128 << 10));
    assert_eq!((fileserver.iosize, fileserver.append_size, fileserver.directory_width), (1 << 20, 16 << 10, 20));
    assert_eq!((fileserver.size_gamma, fileserver.prealloc_percent), (1.5, 80.0));
    assert_eq!(parameters("fileserver", &["paper=shrd"]).files, 200_000);
    assert_eq!(parameters("randomwrite", &["paper=waflash"]).threads, 3);
    let webproxy = parameters("webproxy", &["paper=waflash", "threads=7"]);
    assert_eq!((webproxy.mean_size, webproxy.threads, webproxy.files), (128 << 10, 7, 10_000));
    let postmark = parameters("postmark", &[]);
    assert_eq!((postmark.files, postmark.transactions, postmark.read_bias, postmark.create_bias), (500, 500, 5, 5));
    assert_eq!((postmark.size_low, postmark.size_high, postmark.read_block), (500, 10_000, 512));
}

#[test]
fn file_sets_have_the_published_sizes_and_shares() {
    let personality = personality("fileserver", &[]);
    let (mut files, mut bytes) = (0, 0);
    for seed in 0..10 {
        let planned = FileSets::new(&personality, seed).planned();
        files += planned.files;
        bytes += planned.bytes;
    }
    // 100,000 draws with a chance of 0.8: five deviations are 632.
    assert!(files.abs_diff(80_000) < 632, "{files}");
    let mean = bytes as f64 / files as f64;
    // The deviation of one size is its mean over the root of the shape; five of the mean's.
    let slack = 5.0 * 131_072.0 / (1.5_f64 * files as f64).sqrt();
    assert!((mean - 131_072.0).abs() < slack, "{mean}");
}

#[test]
fn the_log_of_the_webserver_grows_by_every_thread_and_is_opened_once_by_each() {
    let personality = small("webserver");
    let (mut engine, _) = engine(&personality, 1, 31 * 4 * 20);
    let (mut opened, mut appended) = (0, 0);
    simulate(
        &mut engine,
        |thread, _| 1_000 + thread as u64,
        |_, call, _| match call {
            Call::Open { path, append, .. } if path.starts_with("log/") => {
                assert!(*append);
                opened += 1;
            }
            Call::Append { bytes, .. } => {
                assert!((1..=16 << 10).contains(bytes));
                appended += bytes;
            }
            _ => {}
        },
    );
    assert_eq!(opened, 4);
    let log: u64 = engine.files().existing().filter(|(path, _)| path.starts_with("log/")).map(|(_, bytes)| bytes).sum();
    let before: u64 =
        FileSets::new(&personality, 1).existing().filter(|(path, _)| path.starts_with("log/")).map(|(_, b)| b).sum();
    assert_eq!(log, before + appended);
}

#[test]
fn postmark_draws_against_its_biases() {
    for (read_bias, create_bias) in [(5, 5), (7, 4), (10, 5), (0, 6)] {
        let settings = [
            format!("read_bias={read_bias}"),
            format!("create_bias={create_bias}"),
            "transactions=40000".into(),
            "files=30000".into(),
            // Large enough that an append hardly ever finds its file full.
            "size_high=100m".into(),
            "stream_buffer=128m".into(),
        ];
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let counts = count(&personality("postmark", &settings), 9, u64::MAX);
        let of = |kind| counts.get(&kind).copied().unwrap_or(0);
        let (read, append) = (of(OpKind::ReadWhole), of(OpKind::Append));
        let (create, delete) = (of(OpKind::Create), of(OpKind::Delete));
        assert_eq!((read + append, create + delete), (40_000, 40_000));
        // Five deviations of a binomial count are at most 500.
        assert!(read.abs_diff(4_000 * read_bias) < 501, "{read}");
        assert!(create.abs_diff(4_000 * create_bias) < 501, "{create}");
    }
}

#[test]
fn postmark_leaves_out_what_its_bias_disables() {
    let counts = count(&personality("postmark", &["read_bias=-1", "transactions=1000"]), 9, u64::MAX);
    assert!(!counts.contains_key(&OpKind::ReadWhole) && !counts.contains_key(&OpKind::Append));
    assert_eq!(counts[&OpKind::Create] + counts[&OpKind::Delete], 1000);
}

#[test]
fn postmark_runs_out_of_files_and_says_so() {
    let personality = personality("postmark", &["create_bias=0", "read_bias=10", "transactions=2000"]);
    let (mut engine, _) = engine(&personality, 1, u64::MAX);
    simulate(&mut engine, |_, _| 1, |_, _, _| {});
    assert!(engine.starved());
    assert_eq!(engine.files().planned().files, 0);
}

#[test]
fn a_loop_without_files_ends_instead_of_turning_forever() {
    let personality = personality("webproxy", &["files=1", "prealloc=0%", "threads=1"]);
    let (mut engine, _) = engine(&personality, 1, 100);
    // One file: created, read; the next turn deletes it and goes on.
    simulate(&mut engine, |_, _| 1, |_, _, _| {});
    assert!(engine.skipped() > 0 && !engine.starved());
    let text = "name = 'x'\nsummary = 'x'\nsource = 'x'\nkind = 'loop'\n[parameters]\nfiles = 3\nprealloc = '0%'\n\
                [[loop]]\nop = 'stat'\n";
    let nothing = Personality::parse(text, "x.toml").expect("good");
    let (mut engine, _) = files_support::engine(&nothing, 1, 100);
    simulate(&mut engine, |_, _| 1, |_, _, _| {});
    assert!(engine.starved());
}

#[test]
fn streams_move_nothing_smaller_than_their_buffer() {
    let sizes = |settings: &[&str]| {
        let (mut engine, _) = engine(&personality("postmark", settings), 2, 200);
        let mut most = 0;
        simulate(
            &mut engine,
            |_, _| 1,
            |_, call, _| {
                if let Call::Write { bytes, .. } | Call::Append { bytes, .. } | Call::Read { bytes, .. } = call {
                    most = most.max(*bytes);
                }
            },
        );
        most
    };
    assert_eq!(sizes(&[]), 4096);
    assert_eq!(sizes(&["buffered=false"]), 512);
    assert_eq!(sizes(&["write_block=8k", "read_block=8k"]), 8192);
}

/// Every call of a run, with its thread.
fn calls(personality: &Personality, seed: u64, latency: impl FnMut(usize, &Call) -> u64) -> Vec<(usize, Call)> {
    let (mut engine, _) = engine(personality, seed, 600);
    let mut calls = Vec::new();
    simulate(&mut engine, latency, |thread, call, _| calls.push((thread, call.clone())));
    calls
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn the_same_seed_and_latencies_give_the_same_calls(seed in any::<u64>(), slow in 1_u64..5000) {
        for name in NAMES {
            let personality = small(name);
            let latency = |thread: usize, call: &Call| match call {
                Call::Read { bytes, .. } | Call::Write { bytes, .. } => slow + bytes / 7,
                _ => slow * (1 + thread as u64),
            };
            let first = calls(&personality, seed, latency);
            prop_assert_eq!(&first, &calls(&personality, seed, latency));
            if name != "webserver" {
                prop_assert_ne!(&first, &calls(&personality, seed ^ 1, latency));
            }
        }
    }

    #[test]
    fn what_a_thread_draws_does_not_depend_on_the_others(seed in any::<u64>(), slow in 1_u64..5000) {
        let appends = |calls: &[(usize, Call)], of: usize| -> Vec<u64> {
            let mine = calls.iter().filter(|(thread, _)| *thread == of);
            mine.filter_map(|(_, call)| match call { Call::Append { bytes, .. } => Some(*bytes), _ => None }).collect()
        };
        for name in ["varmail", "webserver", "fileserver"] {
            let personality = small(name);
            let even = calls(&personality, seed, |_, _| 100);
            let uneven = calls(&personality, seed, |thread, _| 100 + slow * thread as u64);
            for thread in 0..4 {
                let (a, b) = (appends(&even, thread), appends(&uneven, thread));
                let both = a.len().min(b.len());
                prop_assert_eq!(&a[..both], &b[..both], "thread {} of {}", thread, name);
            }
        }
    }

    #[test]
    fn no_order_of_threads_breaks_the_table_of_files(seed in any::<u64>(), threads in 1_usize..20, files in 1_u64..40) {
        // `simulate` checks every call against the files that exist and are open.
        let mut latencies = ssdlab_base::rng(seed, "latencies");
        for name in NAMES {
            let personality = match name {
                "postmark" => personality(name, &["transactions=300"]),
                "randomwrite" => personality(name, &["mean_size=64k"]),
                _ => personality(name, &["mean_size=9k"]),
            };
            let mut personality = personality;
            personality.set(&format!("threads={threads}")).expect("a key");
            personality.set(&format!("files={files}")).expect("a key");
            let (mut engine, _) = engine(&personality, seed, 400);
            simulate(&mut engine, |_, _| rand::Rng::next_u64(&mut latencies) % 10_000, |_, _, _| {});
        }
    }
}

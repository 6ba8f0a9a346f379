//! What the tests of file-level workloads share.

use ssdlab_base::Nanos;
use ssdlab_workload::files::{Call, Done, Engine, FileSets, Limits, Next, OpKind, Personality};

/// The names of what ships.
pub(crate) const NAMES: [&str; 9] =
    ["dfsio", "fileserver", "postmark", "randomwrite", "terasort", "varmail", "webproxy", "webserver", "wordcount"];

/// A personality with overrides.
pub(crate) fn personality(name: &str, settings: &[&str]) -> Personality {
    let mut personality = Personality::open(name).expect(name);
    for setting in settings {
        personality.set(setting).expect(setting);
    }
    personality.check().expect(name);
    personality
}

/// One that ships, small enough for a test.
pub(crate) fn small(name: &str) -> Personality {
    match name {
        "postmark" => personality(name, &["files=40", "transactions=200", "subdirectories=3"]),
        "randomwrite" => personality(name, &["mean_size=4m"]),
        _ => personality(name, &["files=60", "mean_size=9k", "threads=4"]),
    }
}

/// An engine and limits of so many operations.
pub(crate) fn engine(personality: &Personality, seed: u64, operations: u64) -> (Engine, Limits) {
    let limits = Limits { operations: Some(operations), ..Limits::default() };
    let files = FileSets::new(personality, seed);
    (Engine::new(personality, files, seed, &limits), limits)
}

/// Runs an engine in virtual time: every call takes as long as `latency` says, and calls that end together end by the
/// numbers of their threads. Files hold what was written to them; `see` is told of every call and operation.
pub(crate) fn simulate(
    engine: &mut Engine,
    mut latency: impl FnMut(usize, &Call) -> u64,
    mut see: impl FnMut(usize, &Call, Option<Done>),
) -> Nanos {
    use std::cmp::Reverse;
    use std::collections::{BinaryHeap, HashMap};

    let mut lengths: HashMap<String, u64> = engine.files().existing().collect();
    let threads = engine.threads().len();
    let mut open: Vec<HashMap<u8, String>> = vec![HashMap::new(); threads];
    let mut in_flight_work: Vec<Option<(Call, u64)>> = vec![None; threads];
    let mut events: BinaryHeap<Reverse<(u64, usize)>> = (0..threads).map(|thread| Reverse((0, thread))).collect();
    let mut end = 0;
    while let Some(Reverse((now, thread))) = events.pop() {
        end = now;
        if let Some((call, bytes)) = in_flight_work[thread].take() {
            let done = engine.threads()[thread].completed(Nanos(now), bytes);
            see(thread, &call, done);
        }
        let Next::Call(call) = engine.threads()[thread].next(Nanos(now)) else { continue };
        let call = call.clone();
        let files = &mut open[thread];
        let mut bytes_moved = 0;
        match &call {
            Call::Create { descriptor, path, .. } => {
                assert!(lengths.insert(path.clone(), 0).is_none(), "{path} was made twice");
                assert!(files.insert(*descriptor, path.clone()).is_none(), "{descriptor} was open");
            }
            Call::Open { descriptor, path, .. } => {
                assert!(lengths.contains_key(path), "{path} does not exist");
                assert!(files.insert(*descriptor, path.clone()).is_none(), "{descriptor} was open");
            }
            Call::Read { descriptor, offset, bytes } => {
                bytes_moved = lengths[&files[descriptor]].saturating_sub(*offset).min(*bytes);
            }
            Call::Write { descriptor, offset, bytes } => {
                let length = lengths.get_mut(&files[descriptor]).expect("an open file is not removed");
                *length = (*length).max(offset + bytes);
                bytes_moved = *bytes;
            }
            Call::Append { descriptor, bytes } => {
                *lengths.get_mut(&files[descriptor]).expect("an open file is not removed") += bytes;
                bytes_moved = *bytes;
            }
            Call::Fsync { descriptor } => assert!(files.contains_key(descriptor)),
            Call::Close { descriptor } => assert!(files.remove(descriptor).is_some()),
            Call::Unlink { path } => {
                assert!(open.iter().all(|files| files.values().all(|name| name != path)), "{path} is open");
                assert!(lengths.remove(path).is_some(), "{path} does not exist");
            }
            Call::Stat { path } => assert!(lengths.contains_key(path), "{path} does not exist"),
        }
        let after = now + latency(thread, &call);
        in_flight_work[thread] = Some((call, bytes_moved));
        events.push(Reverse((after, thread)));
    }
    assert!(open.iter().all(|files| files.is_empty()), "every thread closes what it opened");
    let known: HashMap<String, u64> = engine.files().existing().collect();
    assert_eq!(known, lengths, "the table knows what exists and how long it is");
    Nanos(end)
}

/// How often each kind stands in one turn of the published loops, counted by hand from Filebench's files.
pub(crate) fn published(name: &str) -> Vec<(OpKind, u64)> {
    use OpKind::*;
    match name {
        "randomwrite" => vec![(WriteRandom, 1)],
        "fileserver" => vec![
            (Create, 1),
            (WriteWhole, 1),
            (Close, 3),
            (Open, 2),
            (AppendRandom, 1),
            (ReadWhole, 1),
            (Delete, 1),
            (Stat, 1),
        ],
        "webserver" => vec![(Open, 10), (ReadWhole, 10), (Close, 10), (AppendRandom, 1)],
        "webproxy" => vec![(Delete, 1), (Create, 1), (AppendRandom, 1), (Close, 6), (Open, 5), (ReadWhole, 5)],
        "varmail" => {
            vec![(Delete, 1), (Create, 1), (AppendRandom, 2), (Fsync, 2), (Close, 3), (Open, 2), (ReadWhole, 2)]
        }
        // Those that are ssdlab's own, counted by hand in their files.
        "dfsio" => vec![(Create, 2), (WriteWhole, 1), (Append, 1), (Close, 4), (Open, 2), (ReadWhole, 2), (Delete, 2)],
        "terasort" => {
            vec![(Open, 2), (ReadWhole, 2), (Close, 5), (Create, 3), (WriteWhole, 2), (Append, 1), (Delete, 3)]
        }
        "wordcount" => vec![(Open, 4), (ReadWhole, 4), (Close, 5), (Create, 1), (Append, 1), (Delete, 1)],
        _ => Vec::new(),
    }
}

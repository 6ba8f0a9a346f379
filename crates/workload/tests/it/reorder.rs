//! `reorder=SIZE` against a plain sort of plain groups.

use rand::RngExt;
use ssdlab_base::{Nanos, Op, Request, rng};
use ssdlab_workload::trace::Trace;

fn read(options: &str, text: &str) -> Vec<Request> {
    let mut trace = Trace::from_bytes("example", options, text.as_bytes().to_vec()).expect("a trace");
    let (mut all, mut batch) = (Vec::new(), Vec::new());
    while trace.read(&mut batch).expect("requests") > 0 {
        all.extend_from_slice(&batch);
    }
    assert_eq!(trace.counts().requests, all.len() as u64);
    // Once more the same.
    trace.rewind().expect("the beginning");
    assert!(trace.read(&mut batch).expect("requests") > 0);
    assert_eq!(batch[..], all[..batch.len()]);
    all
}

/// The groups of the definition.
fn groups(requests: &[Request], most: u64) -> Vec<Vec<Request>> {
    let mut groups: Vec<Vec<Request>> = Vec::new();
    let data = |request: &Request| matches!(request.op, Op::Read | Op::Write);
    for request in requests {
        let fits = |group: &Vec<Request>| {
            let bytes: u64 = group.iter().map(Request::bytes).sum();
            data(request) && group.iter().all(data) && bytes + request.bytes() <= most
        };
        match groups.last_mut().filter(|group| fits(group)) {
            Some(group) => group.push(*request),
            None => groups.push(vec![*request]),
        }
    }
    groups
}

#[test]
fn groups_of_a_size_are_sorted_and_keep_their_times() {
    for seed in 0..40 {
        let mut rng = rng(seed, "trace");
        let mut text = "time_us,op,offset_bytes,length_bytes\n".to_string();
        let mut at = 0;
        // More than a batch.
        for _ in 0..rng.random_range(1..9000) {
            at += rng.random_range(0..3);
            let (sector, sectors) = (rng.random_range(0..400_u64), rng.random_range(1..64_u64));
            let op = ["R", "W", "W", "W", "W", "W", "T", "F"]
                [if rng.random_bool(0.01) { 7 } else { rng.random_range(0..7) }];
            let (offset, length) = if op == "F" { (0, 0) } else { (sector * 512, sectors * 512) };
            text += &format!("{at},{op},{offset},{length}\n");
        }
        let most = 512 << rng.random_range(0..14);
        let plain = read("", &text);
        let mut expected: Vec<Request> = Vec::new();
        for mut group in groups(&plain, most) {
            let times: Vec<Nanos> = group.iter().map(|request| request.at).collect();
            group.sort_by_key(|request| request.sector);
            expected.extend(group.iter().zip(times).map(|(request, at)| Request { at, ..*request }));
        }
        let found = read(&format!("reorder={most}"), &text);
        assert_eq!(found, expected, "seed {seed}, {most} bytes");
        assert!(found.is_sorted_by_key(|request| request.at));
    }
}

#[test]
fn commands_of_a_set_cannot_be_reordered() {
    let text = "time_us,op,offset_bytes,length_bytes\n0,tags:find-tag,0,0,9\n";
    let mut trace = Trace::from_bytes("example", "reorder=1m", text.as_bytes().to_vec()).expect("a trace");
    let error = trace.read(&mut Vec::new()).expect_err("a command").to_string();
    assert!(error.contains("example:2") && error.contains("block I/O alone where `reorder=`"), "{error}");
}

//! Jobs as this crate sends them, beside the same jobs through fio itself, with its `null` engine and its log of
//! requests; skipped where fio is missing.

use std::collections::BTreeMap;
use std::process::Command;

use ssdlab_base::{Nanos, Op};

use crate::fio_support::{run, spec};

/// Operation, byte offset, bytes.
type Line = (Op, u64, u64);

/// What fio sends for a specification on a file of `size` bytes; `None`, with the reason printed, without fio 3.33.
fn fio(text: &str) -> Option<Vec<Line>> {
    let version = match Command::new("fio").arg("--version").output() {
        Ok(output) => String::from_utf8_lossy(&output.stdout).trim().to_string(),
        Err(error) => {
            println!("skipped: fio cannot be run: {error}");
            return None;
        }
    };
    if !version.starts_with("fio-3.") {
        println!("skipped: found {version}, expected fio 3");
        return None;
    }
    let name: String = text.chars().filter(char::is_ascii_alphanumeric).collect();
    let folder = std::env::temp_dir().join(format!("ssdlab-fio-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the temporary folder is writable");
    let mut command = Command::new("fio");
    command.current_dir(&folder).args([
        "--name=x",
        "--ioengine=null",
        "--filename=f",
        "--write_iolog=log",
        "--output=out",
    ]);
    // Keys of the line that have commas in their values come last and are not used here.
    command.args(text.split(' ').map(|option| format!("--{option}")));
    let output = command.output().expect("fio just ran");
    let log = std::fs::read_to_string(folder.join("log"));
    std::fs::remove_dir_all(&folder).expect("it was just made");
    let log = log.unwrap_or_else(|error| panic!("fio {text}: {error}: {}", String::from_utf8_lossy(&output.stderr)));
    let mut lines = Vec::new();
    for line in log.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [.., action, offset, length] = words.as_slice() else {
            continue;
        };
        let op = match *action {
            "read" => Op::Read,
            "write" => Op::Write,
            "trim" => Op::Trim,
            "sync" | "datasync" => Op::Flush,
            _ => continue,
        };
        // A line without numbers opens or closes the file.
        let (Ok(offset), Ok(length)) = (offset.parse(), length.parse()) else {
            continue;
        };
        lines.push(if op == Op::Flush { (op, 0, 0) } else { (op, offset, length) });
    }
    Some(lines)
}

fn ours(text: &str, capacity: u64) -> Vec<Line> {
    let mut workload = spec(&text.replace(' ', ","), capacity, 1);
    let sent = run(&mut workload, capacity, Nanos(1000), usize::MAX);
    sent.iter().map(|r| (r.op, r.sector * 512, r.bytes())).collect()
}

#[test]
fn jobs_without_chance_send_exactly_what_fio_sends() {
    for text in [
        "rw=write bs=4k size=64k",
        "rw=write bs=4k size=10k",
        "rw=read bs=16k size=1m loops=3",
        "rw=write:4k bs=4k size=64k",
        "rw=write:12k bs=4k size=64k",
        "rw=read:-8k bs=4k size=64k",
        "rw=write:-4k bs=4k size=64k",
        "rw=trim bs=8k size=128k",
        "rw=trimwrite bs=4k size=64k",
        "rw=trimwrite bs=4k size=64k number_ios=3",
        "rw=write bs=4k size=64k number_ios=10 loops=2",
        "rw=write bs=4k size=64k io_size=128k",
        "rw=write bs=4k size=64k io_size=16k loops=2",
        "rw=write bs=4k size=64k io_size=128k loops=2",
        "rw=write bs=4k size=64k io_size=50%",
        "rw=write bs=4k size=64k fsync=3",
        "rw=write bs=4k size=64k fdatasync=4",
        "rw=write bs=4ki size=64k",
        "rw=write bs=0x2000 size=1m",
        "rw=read bsrange=8k-8k size=64k",
        "rw=read:4k bssplit=8k/30:8k/70 size=64k",
        "rw=write:8k bs=16k size=224k io_size=100%",
        "rw=write bs=4k size=16k ioengine=psync loops=2 fsync=4",
        "rw=write bs=4k size=16k ioengine=libaio loops=2 fsync=4",
        "rw=write bs=4k size=16k ioengine=libaio loops=2 fsync=4 end_fsync=1",
        "rw=write bs=4k size=16k ioengine=psync loops=2 fsync=4 end_fsync=1",
        "rw=write bs=4k size=16k ioengine=psync loops=2 number_ios=2 end_fsync=1",
        "rw=write bs=4k size=16k ioengine=psync loops=3 io_size=4k end_fsync=1",
    ] {
        let Some(theirs) = fio(text) else { return };
        let size = text.split("size=").nth(1).and_then(|rest| rest.split(' ').next()).expect("each has a size");
        let capacity = ssdlab_base::parse_size(size).expect("a size") / 512 * 512;
        assert_eq!(ours(text, capacity), theirs, "{text}");
    }
}

#[test]
fn a_random_map_covers_what_fio_covers() {
    for text in ["rw=randwrite bs=4k size=4m", "rw=randread bs=4k size=1m loops=2", "rw=randrw bs=8k size=4m"] {
        let Some(theirs) = fio(text) else { return };
        let blocks = |lines: &[Line]| {
            let mut offsets: Vec<(u64, u64)> = lines.iter().map(|(_, offset, length)| (*offset, *length)).collect();
            offsets.sort_unstable();
            offsets
        };
        let capacity = if text.contains("1m") { 1 << 20 } else { 4 << 20 };
        assert_eq!(blocks(&ours(text, capacity)), blocks(&theirs), "{text}");
    }
}

/// Shares of requests by some property, largest key first compared.
fn shares<K: Ord>(lines: &[Line], key: impl Fn(&Line) -> K) -> BTreeMap<K, f64> {
    let mut shares = BTreeMap::new();
    for line in lines {
        *shares.entry(key(line)).or_insert(0.0) += 1.0 / lines.len() as f64;
    }
    shares
}

#[test]
fn shares_of_sizes_directions_and_zones_are_those_of_fio() {
    let mib = 1 << 20;
    for text in [
        "rw=randrw rwmixread=70 bs=4k size=64m io_size=100m norandommap",
        "rw=randrw rwmixwrite=10 bs=4k size=64m io_size=100m norandommap",
        "rw=rw rwmixread=20 bs=4k size=64m",
        "rw=randwrite bssplit=4k/60:16k/30:64k/10 size=64m io_size=200m norandommap",
        "rw=randwrite bssplit=4k/20:16k:64k size=64m io_size=300m norandommap",
        "rw=randread bsrange=4k-16k size=64m io_size=150m norandommap",
        "rw=randread bsrange=4k-10k size=64m io_size=150m norandommap",
        "rw=randwrite bs=4k random_distribution=zoned:60/10:30/20:8/30:2/40 size=64m io_size=100m",
        "rw=randwrite bs=4k random_distribution=zoned_abs:90/8m:10/56m size=64m io_size=100m",
    ] {
        let Some(theirs) = fio(text) else { return };
        let ours = ours(text, 64 * mib);
        let key = |line: &Line| (line.0 == Op::Read, line.2, line.1 * 10 / (64 * mib));
        let (ours, theirs) = (shares(&ours, key), shares(&theirs, key));
        for (key, share) in &theirs {
            let found = ours.get(key).copied().unwrap_or(0.0);
            assert!((found - share).abs() < 0.015, "{text}: {key:?}: {found} here, {share} with fio");
        }
    }
}

#[test]
fn popular_blocks_are_as_popular_as_with_fio() {
    for (text, tolerance) in [
        ("rw=randwrite bs=4k random_distribution=zipf:1.2 size=4m io_size=300m", 0.04),
        ("rw=randwrite bs=4k random_distribution=zipf:0.8 size=4m io_size=300m", 0.04),
        ("rw=randwrite bs=4k random_distribution=pareto:0.2 size=4m io_size=300m", 0.05),
    ] {
        let Some(theirs) = fio(text) else { return };
        let ours = ours(text, 4 << 20);
        let hottest = |lines: &[Line], count: usize| -> f64 {
            let mut shares: Vec<f64> = shares(lines, |line| line.1).into_values().collect();
            shares.sort_unstable_by(|a, b| b.total_cmp(a));
            shares.into_iter().take(count).sum()
        };
        // fio approximates the law (Gray et al.) and its hash joins some ranks into one block, which makes its head a little
        // heavier; ours is compared with the law itself in `fio_addresses`.
        for count in [1, 10] {
            let (here, there) = (hottest(&ours, count), hottest(&theirs, count));
            assert!((here - there).abs() < tolerance, "{text}: {count} hottest: {here} here, {there} with fio");
        }
    }
}

#[test]
fn sequences_of_random_jobs_are_as_long_as_with_fio() {
    for text in [
        "rw=randread:8 bs=4k norandommap size=64m io_size=80m",
        "rw=randread bs=4k norandommap percentage_random=30 size=64m io_size=80m",
        "rw=randwrite:4 rw_sequencer=identical bs=4k norandommap size=64m io_size=80m",
    ] {
        let Some(theirs) = fio(text) else { return };
        let ours = ours(text, 64 << 20);
        let followers = |lines: &[Line], step: u64| {
            lines.windows(2).filter(|pair| pair[1].1 == pair[0].1 + step).count() as f64 / lines.len() as f64
        };
        for step in [0, 4096] {
            let (here, there) = (followers(&ours, step), followers(&theirs, step));
            assert!((here - there).abs() < 0.015, "{text}: step {step}: {here} here, {there} with fio");
        }
    }
}

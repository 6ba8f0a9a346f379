//! `ssdlab files`, as a user runs it.

use std::fs;

use crate::support::Bench;

const SMALL: [&str; 6] = ["--set", "files=50", "--set", "mean_size=8k", "--threads", "2"];

fn with<'a>(head: &[&'a str], tail: &[&'a str]) -> Vec<&'a str> {
    head.iter().chain(tail).copied().collect()
}

#[test]
fn a_run_prints_its_table_and_leaves_the_directory_as_it_was() {
    let bench = Bench::new();
    fs::create_dir(bench.path("d")).expect("a folder");
    let out = ["--operations", "220", "--out", "results"];
    let done = bench.ssdlab(&with(&with(&["files", "fileserver", "--dir", "d"], &SMALL), &out));
    assert_eq!(done.status, 0, "{}", done.stderr);
    assert!(done.stdout.starts_with("fileserver in d, 2 threads, seed 1\n"), "{}", done.stdout);
    assert!(done.stdout.contains("operations   220 ("), "{}", done.stdout);
    assert_eq!(done.stderr, "");
    assert_eq!(fs::read_dir(bench.path("d")).expect("there").count(), 0);
    let result: serde_json::Value = serde_json::from_str(&bench.read("results/files.json")).expect("JSON");
    assert_eq!((&result["format"], &result["operations"], &result["complete"]), (&1.into(), &220.into(), &true.into()));
    assert_eq!(result["parameters"]["mean_size"], 8192);
    let by_kind: u64 = result["by_operation"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|op| op["operations"].as_u64().expect("a count"))
        .sum();
    assert_eq!(by_kind, 220);
}

#[test]
fn prepared_files_are_found_by_a_run_of_the_same_numbers_and_by_no_other() {
    let bench = Bench::new();
    fs::create_dir(bench.path("d")).expect("a folder");
    let command = with(&["files", "varmail", "--dir", "d"], &SMALL);
    let made = bench.ssdlab(&with(&command, &["--prepare-only"]));
    assert_eq!(made.status, 0, "{}", made.stderr);
    assert!(made.stdout.contains("made "), "{}", made.stdout);
    let other = bench.ssdlab(&with(&command, &["--seed", "2", "--operations", "13"]));
    assert_eq!(other.status, 2);
    assert!(other.stderr.contains("was prepared for \"seed\": 1, and this run has \"seed\": 2"), "{}", other.stderr);
    let run = bench.ssdlab(&with(&command, &["--operations", "130", "--keep"]));
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert!(run.stdout.contains("found prepared"), "{}", run.stdout);
    let again = bench.ssdlab(&with(&command, &["--operations", "13"]));
    assert_eq!(again.status, 2);
    assert!(again.stderr.contains("a run with --keep, or one that was killed, left it"), "{}", again.stderr);
}

#[test]
fn a_directory_in_use_is_left_alone() {
    let bench = Bench::new();
    fs::create_dir(bench.path("d")).expect("a folder");
    bench.write("d/mine", "mine");
    let command = with(&with(&["files", "webproxy", "--dir", "d"], &SMALL), &["--operations", "100"]);
    let refused = bench.ssdlab(&command);
    assert_eq!(refused.status, 2);
    assert!(refused.stderr.contains("--dir d is not empty: it has 'mine'"), "{}", refused.stderr);
    let told = bench.ssdlab(&with(&command, &["--nonempty"]));
    assert_eq!(told.status, 0, "{}", told.stderr);
    assert_eq!(bench.read("d/mine"), "mine");
    assert_eq!(fs::read_dir(bench.path("d")).expect("there").count(), 1);
}

#[test]
fn what_is_wrong_is_said_and_nothing_is_made() {
    let bench = Bench::new();
    fs::create_dir(bench.path("d")).expect("a folder");
    for (arguments, words) in [
        (vec!["files", "filserver", "--dir", "d"], "did you mean 'fileserver'?"),
        (vec!["files", "varmail", "--dir", "none"], "--dir none: No such file"),
        (vec!["files", "varmail", "--dir", "tiny.toml"], "--dir tiny.toml: Not a directory"),
        (vec!["files", "varmail", "--dir", "d", "--set", "fils=3"], "did you mean 'files'?"),
        (vec!["files", "varmail", "--dir", "d", "--runtime", "60"], "runtime: '60' is not a time"),
        (vec!["files", "varmail", "--dir", "d", "--set", "mean_size=9t"], "has"),
        (vec!["files", "tiny.toml", "--dir", "d"], "tiny.toml: TOML parse error"),
        (vec!["files"], "--dir <DIR>"),
    ] {
        let done = bench.ssdlab(&arguments);
        assert_eq!(done.status, 2, "{arguments:?}: {}", done.stderr);
        assert!(done.stderr.contains(words), "{arguments:?}: {}", done.stderr);
    }
    assert_eq!(fs::read_dir(bench.path("d")).expect("there").count(), 0);
}

/// A file in Filebench's language is named as such, with the personalities that there are.
#[test]
fn filebench_s_own_language_is_named() {
    let bench = Bench::new();
    fs::create_dir(bench.path("d")).expect("a folder");
    bench
        .write("mine.f", "# a comment\n\nset $dir=/tmp\nset $nfiles=100\ndefine fileset name=set1,path=$dir\nrun 10\n");
    bench.write("varmail.f", "define process name=filereader,instances=1\n{\n}\n");
    for (file, words) in
        [("./mine.f", ["line 3 begins with 'set'", "varmail"]), ("varmail.f", ["line 1", "did you mean 'varmail'?"])]
    {
        let done = bench.ssdlab(&["files", file, "--dir", "d"]);
        assert_eq!(done.status, 2, "{}", done.stderr);
        for part in words.iter().chain(&[
            "Filebench's own language, which is not read",
            "dfsio, fileserver, postmark",
            "TOML (docs/files.md)",
        ]) {
            assert!(done.stderr.contains(part), "{part}: {}", done.stderr);
        }
    }
    // Keys of TOML with the names of statements are no Filebench.
    bench.write("set.toml", "set = 1\n");
    let done = bench.ssdlab(&["files", "set.toml", "--dir", "d"]);
    assert!(done.status == 2 && done.stderr.contains("TOML parse error"), "{}", done.stderr);
    assert_eq!(fs::read_dir(bench.path("d")).expect("there").count(), 0);
}

#[test]
fn what_ships_is_listed_with_its_papers() {
    let bench = Bench::new();
    let done = bench.ssdlab(&["files", "--list"]);
    assert_eq!(done.status, 0);
    for name in ["dfsio", "fileserver", "postmark", "terasort", "varmail", "webserver", "wordcount"] {
        assert!(done.stdout.lines().any(|line| line.starts_with(name)), "{name}: {}", done.stdout);
    }
    assert!(done.stdout.contains("--set paper=waflash"));
}

/// A drive of 160 segments of 512 KB that takes appends alone.
const SEGMENTS: &str = r#"
name = "segments"
[flash]
channels = 2
chips_per_channel = 2
dies_per_chip = 1
planes_per_die = 1
blocks_per_plane = 168
pages_per_block = 32
page_size = "4k"
timing = { read = "75us", program = "478us", erase = "3.8ms", transfer = "33.3us" }
[capacity]
user = "80m"
[interface]
kind = "nvme"
queues = 1
queue_depth = 64
[ftl]
design = "aftl"
allocation = "dynamic"
segment_levels = "ways"
"#;

const ON_DRIVE: [&str; 8] = ["files", "varmail", "--device", "seg.toml", "--fs", "alfs", "--operations", "500"];

fn with_drive() -> Bench {
    let bench = Bench::new();
    bench.write("seg.toml", SEGMENTS);
    bench
}

#[test]
fn a_run_on_a_simulated_drive_prints_and_writes_what_the_file_system_did() {
    let bench = with_drive();
    let done = bench.succeeds(&with(&with(&ON_DRIVE, &SMALL), &["--verify", "--out", "results"]));
    assert!(done.stdout.starts_with("on alfs on segments: varmail, 2 threads, seed 1\n"), "{}", done.stdout);
    for part in ["written to the drive", "write amplification", "check-points", "host time", "invariants hold"] {
        assert!(done.stdout.contains(part), "'{part}' is missing in:\n{}", done.stdout);
    }
    let result: serde_json::Value = serde_json::from_str(&bench.read("results/files.json")).expect("JSON");
    let fs = &result["file_system"];
    assert_eq!(
        (&fs["kind"], &fs["keys"]["cache"], &result["operations"]),
        (&"alfs".into(), &"1536m".into(), &500.into())
    );
    assert_eq!(result["drives"][0]["name"], "segments");
    assert!(result.get("directory").is_none());
    let again = bench.succeeds(&with(&with(&ON_DRIVE, &SMALL), &["--verify", "--json"]));
    let again: serde_json::Value = serde_json::from_str(&again.stdout).expect("JSON");
    for key in ["file_system", "by_operation", "checks", "seconds"] {
        assert_eq!(again[key], result[key], "{key}");
    }
}

#[test]
fn jobs_run_on_files_of_a_simulated_drive() {
    let bench = with_drive();
    bench.write("jobs.fio", "[w]\nrw=randwrite\nbs=4k\nsize=4m\nnumjobs=2\nfsync=64\n[r]\nrw=read\nbs=64k\nsize=8m\n");
    let command = ["files", "--jobs", "jobs.fio", "--device", "seg.toml", "--fs", "alfs", "--json"];
    let done = bench.succeeds(&command);
    let result: serde_json::Value = serde_json::from_str(&done.stdout).expect("JSON");
    let jobs: Vec<_> = result["jobs"].as_array().expect("jobs").iter().map(|job| job["name"].clone()).collect();
    assert_eq!(jobs, ["w", "r"]);
    assert_eq!((&result["bytes_written"], &result["bytes_read"]), (&(8 << 20).into(), &(8 << 20).into()));
    bench.write("trims.fio", "[t]\nrw=randtrim\nsize=4m\n");
    let command = ["files", "--jobs", "trims.fio", "--device", "seg.toml", "--fs", "alfs"];
    bench.refuses(&command, &["trims.fio:2", "a file takes no trims"]);
}

#[test]
fn what_is_wrong_with_a_run_on_a_drive_is_said_with_what_was_expected() {
    let bench = with_drive();
    bench.write("append.toml", "[[layer]]\nkind = \"append\"\n");
    let base = with(&ON_DRIVE, &SMALL);
    let refuses = |more: &[&str], parts: &[&str]| drop(bench.refuses(&with(&base, more), parts));
    refuses(&["--keep"], &["--keep is for --dir"]);
    refuses(&["--nonempty"], &["--nonempty is for --dir"]);
    refuses(&["--fs-set", "cach=3m"], &["--fs-set 'cach=3m'", "did you mean 'cache'?"]);
    refuses(&["--fs-set", "cache=16k"], &["--fs-set 'cache=16k'", "cache", "at least 65536"]);
    refuses(&["--host-time", "cal=3us"], &["--host-time 'cal=3us'", "did you mean 'call'?"]);
    refuses(&["--host", "append.toml"], &["expected a drive of the command set segments", "leave out --host"]);
    refuses(
        &["--device-set", "capacity.user=10m"],
        &["found 20 segments", "expected at least ", "hint: take a drive with "],
    );
    refuses(&["--set", "files=100000"], &["the files need", "hint: a smaller --set files="]);
    refuses(&["--memory", "1m"], &["more than the limit", "--memory 1m"]);
    let tiny = ["files", "varmail", "--device", "tiny.toml", "--fs", "alfs"];
    bench.refuses(&tiny, &["tiny", "expected a drive of the command set segments"]);
    bench.refuses(
        &["files", "varmail", "--device", "seg.toml", "--fs", "ext9"],
        &["found the file system 'ext9', expected alfs"],
    );
    bench.refuses(&["files", "varmail", "--device", "seg.toml"], &["--fs"]);
    bench.refuses(&["files", "varmail", "--device", "seg.toml", "--fs", "alfs", "--dir", "d"], &["--dir"]);
}

#[test]
fn kinds_of_file_systems_are_listed_with_their_keys() {
    let bench = Bench::new();
    let lines = bench.succeeds(&["list"]).stdout;
    assert!(lines.lines().any(|line| line.split_whitespace().take(2).eq(["fs", "alfs"])), "{lines}");
    let keys = bench.succeeds(&["list", "--keys", "fs"]).stdout;
    assert!(keys.lines().any(|line| line == "  fs.alfs.cache"), "{keys}");
    let keys = bench.succeeds(&["list", "--keys", "host-time"]).stdout;
    assert!(keys.lines().any(|line| line == "  host-time.call"), "{keys}");
}

/// A die fails while the check reads: the reason is said, and not only that there is no check-point (tests/systems, seed
/// 540072400241007037).
#[test]
fn a_check_that_cannot_read_the_drive_says_so() {
    let bench = Bench::new();
    bench.write(
        "drive.toml",
        "[capacity]\nuser = 4915200\n[flash]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
         blocks_per_plane = 256\npages_per_block = 16\npage_size = 4096\n[flash.faults]\n\
         script = [{ kind = \"read\", block = 14, nth = 1 }, { kind = \"die\", block = 99, nth = 35 }, \
         { kind = \"factory\", block = 80, nth = 46 }]\n[flash.timing]\npreset = \"slc\"\n\
         [ftl]\ndesign = \"aftl\"\nallocation = \"dynamic\"\n",
    );
    let command = ["files", "postmark", "-q", "-d", "drive.toml", "--fs", "alfs", "--fs-set", "checkpoint_period=5ns"];
    let one = ["--set", "files=1", "--set", "size_high=1000", "--operations", "1"];
    let done = bench.ssdlab(&with(&command, &one));
    assert_eq!(done.status, 1, "{}", done.stdout);
    let all = done.stdout + &done.stderr;
    assert!(all.contains("no whole check-point is in segments 1 and 2, and 5 of their blocks cannot be read"), "{all}");
}

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
            "fileserver, postmark",
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
    for name in ["fileserver", "postmark", "randomwrite", "varmail", "webproxy", "webserver"] {
        assert!(done.stdout.lines().any(|line| line.starts_with(name)), "{name}: {}", done.stdout);
    }
    assert!(done.stdout.contains("--set paper=waflash"));
}

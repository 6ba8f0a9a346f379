//! Files that commands write: never over what they read, over a device or link, or over another program's results.

use std::os::unix::fs::symlink;

use crate::support::Bench;

const JOB: &str = "rw=write,bs=4k,number_ios=10,size=1m";

/// The command is refused with these words, and the file is what it was.
fn refused(bench: &Bench, file: &str, words: &str, arguments: &[&str]) {
    let before = bench.read(file);
    bench.refuses(arguments, &[words]);
    assert_eq!(bench.read(file), before, "{arguments:?}");
}

#[test]
fn what_is_read_is_not_written_over() {
    let bench = Bench::new();
    assert_eq!(bench.ssdlab(&["trace", "convert", JOB, "a.csv", "--capacity", "12m"]).status, 0);
    symlink("a.csv", bench.path("link.csv")).expect("a link");
    std::fs::hard_link(bench.path("a.csv"), bench.path("hard.csv")).expect("a link");
    bench.write("ram.toml", "[[layer]]\nkind = \"restoring\"\nlog = \"16k\"\ntable = \"ram\"\n");
    for output in ["a.csv", "./a.csv", "link.csv", "hard.csv"] {
        refused(&bench, "a.csv", "'a.csv', which is read", &["trace", "convert", "a.csv", output]);
        refused(&bench, "a.csv", "'a.csv', which is read", &["run", "-d", "tiny.toml", "-w", "a.csv", "--vcd", output]);
    }
    let over_the_drive = ["run", "-d", "tiny.toml", "-w", JOB, "--vcd", "tiny.toml"];
    refused(&bench, "tiny.toml", "'tiny.toml', which is read", &over_the_drive);
    let over_the_host = ["torture", "--host", "ram.toml", "--save", "ram.toml"];
    refused(&bench, "ram.toml", "'ram.toml', which is read", &over_the_host);
}

/// A workload's file may stand behind a word or options, and a drive's in the description of the host.
#[test]
fn files_inside_other_words_are_not_written_over() {
    let bench = Bench::new();
    assert_eq!(bench.ssdlab(&["trace", "convert", JOB, "a.csv", "--capacity", "12m"]).status, 0);
    bench.write("below.toml", &bench.read("tiny.toml"));
    let below = "below = [{}, { drive = \"below.toml\" }]";
    bench.write("mirror.toml", &format!("[[layer]]\nkind = \"mirror\"\nregion = \"64k\"\n{below}\n"));
    let run = ["run", "-d", "tiny.toml", "-w", JOB, "--vcd"];
    for more in [
        &["a.csv", "-p", "a.csv"][..],
        &["a.csv", "-p", "steady:a.csv"],
        &["a.csv", "-p", "fill+a.csv"],
        &["a.csv", "-p", "fill+skip_bad=yes:a.csv"],
        &["a.csv", "-w", "skip_bad=yes:a.csv"],
        &["a.csv", "--subtests", "1m", "--initial", "a.csv"],
    ] {
        let run = if more.contains(&"-w") { &["run", "-d", "tiny.toml", "--vcd"] } else { &run[..] };
        refused(&bench, "a.csv", "'a.csv', which is read", &[run, more].concat());
    }
    let below = [&run[..], &["below.toml", "--host", "mirror.toml"]].concat();
    refused(&bench, "below.toml", "'below.toml', which is read", &below);
    let torture = ["torture", "--host", "mirror.toml", "--save", "below.toml"];
    refused(&bench, "below.toml", "'below.toml', which is read", &torture);
}

#[test]
fn devices_links_and_other_results_stay() {
    let bench = Bench::new();
    bench.write("other.csv", "mine");
    symlink("other.csv", bench.path("link.csv")).expect("a link");
    let pipe = std::process::Command::new("mkfifo").arg(bench.path("pipe")).status().expect("mkfifo");
    assert!(pipe.success());
    let convert = ["trace", "convert", JOB, "--capacity", "12m", "--to", "csv"];
    for output in ["link.csv", "pipe", "-"] {
        refused(&bench, "other.csv", "expected a file", &[&convert[..], &[output]].concat());
    }
    bench.write("result.json", "{\"mine\": 1}");
    let folder = bench.path(".").display().to_string();
    refused(&bench, "result.json", "no result of ssdlab", &["run", "-d", "tiny.toml", "-w", JOB, "--out", &folder]);
}

//! `ssdlab reproduce` from the outside.

use crate::support::Bench;

#[test]
fn figures_without_runs_go_from_the_command_to_files() {
    let bench = Bench::new();
    let first = bench.succeeds(&["reproduce", "waflash/table01", "waflash/figure01", "--quick", "--out", "out"]);
    assert!(first.stdout.contains("Table 1: the simulated drive"), "{}", first.stdout);
    assert!(first.stdout.contains("Figure 1: "), "{}", first.stdout);
    for file in ["figure01.csv", "report.html", "report.json", "table01.csv"] {
        assert!(bench.listing("out").contains(&file.to_string()), "{file}");
    }
}

#[test]
fn a_quick_figure_is_run_and_a_second_time_its_runs_are_kept() {
    let bench = Bench::new();
    let asked = ["reproduce", "waflash/figure14", "--quick", "--out", "out"];
    let first = bench.succeeds(&asked);
    assert!(first.stdout.contains("MSNFS model"), "{}", first.stdout);
    // One model, sent in two ways to three buffers.
    let runs = bench.listing("out/runs");
    assert_eq!(runs.len(), 6, "{runs:?}");
    assert!(bench.read("out/figure14.csv").lines().count() > 6);
    let second = bench.succeeds(&asked);
    assert!(second.stderr.contains("6 runs were done before and kept, 0 runs are to be done"), "{}", second.stderr);
    assert_eq!(first.stdout, second.stdout);
    assert_eq!(bench.listing("out/runs"), runs);
}

#[test]
fn quick_figures_that_a_recorder_watches_are_run_too() {
    let bench = Bench::new();
    let paper = ["write-amplification/table02", "write-amplification/5", "write-amplification/9"];
    let mut asked = vec!["reproduce"];
    asked.extend(paper);
    asked.extend(["--quick", "--out", "out"]);
    let shown = bench.succeeds(&asked).stdout;
    for part in ["Table 2: the workloads", "|PEN|, 100 ns", "5G-15", "stable", "512B-SQ-50%-W-Y"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    // One micro-benchmark of each share of writes, and five partitions.
    assert_eq!(bench.listing("out/runs").len(), 7);
    let report: serde_json::Value = serde_json::from_str(&bench.read("out/report.json")).expect("JSON");
    let points = report["figures"][2]["points"].as_array().expect("points");
    let programmed = points.iter().filter(|point| point["series"] == "true WA");
    let values: Vec<f64> = programmed.map(|point| point["value"].as_f64().expect("a value")).collect();
    assert_eq!(values.len(), 5 * 16);
    assert!(values.iter().all(|&value| value > 0.0), "{values:?}");
}

#[test]
fn papers_and_figures_are_listed() {
    let list = Bench::new().succeeds(&["reproduce", "--list"]);
    assert!(list.stdout.contains("waflash/figure08"));
    assert!(list.stdout.contains("write-amplification/figure05"));
}

#[test]
fn wrong_names_and_folders_are_refused() {
    let bench = Bench::new();
    bench.refuses(&["reproduce", "waflush"], &["waflush", "did you mean 'waflash'"]);
    bench.refuses(&["reproduce", "waflash/figure3"], &["figure3", "did you mean"]);
    bench.refuses(&["reproduce", "waflash/table01", "--traces", "nowhere"], &["nowhere", "no folder"]);
    bench.refuses(&["reproduce", "waflash/table01", "--out", "tiny.toml"], &["tiny.toml"]);
}

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
    assert!(first.stdout.contains("\n6 runs done\n"), "{}", first.stdout);
    assert!(second.stdout.contains("\n0 runs done, 6 kept from before\n"), "{}", second.stdout);
    assert_eq!(first.stdout, second.stdout.replace("0 runs done, 6 kept from before", "6 runs done"));
    assert_eq!(bench.listing("out/runs"), runs);
}

#[test]
fn in_a_pipe_each_run_says_how_far_it_is() {
    let bench = Bench::new();
    let said = |more: &[&str]| {
        let asked = [&["reproduce", "waflash/figure14", "--quick", "--jobs", "1", "--out"], more].concat();
        let done = bench.command(&asked).env("SSDLAB_PROGRESS_EVERY", "1us").output().expect("it runs");
        String::from_utf8(done.stderr).expect("text")
    };
    let lines = said(&["one"]);
    for number in 0..6 {
        let start = format!("{number} of 6 runs done; ");
        assert!(lines.lines().any(|line| line.starts_with(&start) && line.ends_with(" s so far")), "{start}: {lines}");
    }
    let quiet = said(&["two", "--quiet"]);
    assert!(!quiet.contains("runs done; "), "{quiet}");
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
fn quick_runs_of_other_victims_have_a_row_for_each_sub_test() {
    let bench = Bench::new();
    let shown = bench.succeeds(&["reproduce", "write-amplification/victims", "--quick", "--out", "out"]).stdout;
    for part in ["true WA, greedy", "true WA, cost-benefit", "write, fifo, MB/s", "F2 model, an eighth", "sub-test 15"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    // Two models, three policies.
    assert_eq!(bench.listing("out/runs").len(), 6);
}

#[test]
fn quick_figures_of_a_paper_about_map_caches_run_from_what_comes_with_the_source() {
    let bench = Bench::new();
    let asked = [
        "reproduce",
        "shrd/2",
        "shrd/7",
        "shrd/9",
        "shrd/10",
        "shrd/11",
        "shrd/12",
        "shrd/table01",
        "--quick",
        "--out",
        "out",
        "--json",
    ];
    let done = bench.command(&asked).env_remove("SSDLAB_TRACES").output().expect("it runs");
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).expect("JSON");
    let figure = |id: &str| {
        let figures = report["figures"].as_array().expect("figures");
        figures.iter().find(|figure| figure["id"] == id).expect("a figure").clone()
    };
    let values = |id: &str, series: &str| {
        let points = figure(id)["points"].as_array().expect("points").clone();
        let of = points.into_iter().filter(|point| point["series"] == series);
        of.map(|point| point["value"].as_f64().expect("a value")).collect::<Vec<f64>>()
    };
    // No buffer and seven sizes of one, for each input.
    let misses = values("figure02", "map misses");
    assert!(misses.len() >= 8 && misses.len().is_multiple_of(8), "{misses:?}");
    let remarks = figure("figure02")["remarks"].to_string();
    assert!(remarks.contains("MSR Cambridge"), "{remarks}");
    assert!(figure("figure02")["commands"].to_string().contains("--workload reorder=64m:TRACES/filebench"));
    // Five systems, and three with each of three limits, by six caches; the whole map of a drive this small is cached.
    assert_eq!(values("figure07", "map misses per write"), [0.0; (5 + 3 * 3) * 6]);
    assert!(figure("figure07")["commands"].to_string().contains("--set ftl.map_loads=1 --set ftl.map_cache=1m"));
    let panels = figure("figure07")["panels"].as_array().map(Vec::len);
    assert_eq!(panels, Some(4), "the paper's two panels, and two by map loads");
    let rates = values("figure10", "write IOPS");
    assert!(rates.len() == 6 && rates.iter().all(|rate| *rate > 0.0), "{rates:?}");
    assert!(figure("figure10")["commands"].to_string().contains("--precondition papers/shrd/ageing.fio"));
    // The list of the driver's commands, and what reads waited for.
    let follows = values("figure09", "follows");
    assert!(follows[0] > 90.0, "writes to the log do not follow one another: {follows:?}");
    assert!(figure("figure09")["curves"][0]["is_scattered"].as_bool().expect("a kind of chart"));
    assert!(figure("figure11")["commands"].to_string().contains("--latency-breakdown"));
    assert_eq!(values("figure11", "of the mean: in the driver").len(), 2);
    // The first requests of a recording, on four systems: its phases lie behind them.
    assert_eq!(values("figure12", "IOPS").len(), 4);
    assert!(values("figure12", "random write").is_empty());
    assert!(figure("figure12")["commands"].to_string().contains("--set ftl.rwlb=4194304"));
    // fio's four jobs write 4 KB and nothing else.
    assert_eq!((values("table01", "writes")[0], values("table01", "mean write")[0]), (100.0, 4.0));
}

#[test]
fn a_middle_size_says_what_holds_at_it_and_a_paper_without_one_refuses_it() {
    let bench = Bench::new();
    let shown = bench.succeeds(&["reproduce", "shrd/section5", "--middle", "--out", "out"]).stdout;
    assert!(shown.contains("Middle size: a quarter of the drive"), "{shown}");
    assert!(shown.contains("Section 5 alone is compared with the paper at this size."), "{shown}");
    assert!(shown.contains("5 of 5 published values within"), "{shown}");
    let report: serde_json::Value = serde_json::from_str(&bench.read("out/report.json")).expect("JSON");
    assert_eq!(report["size"], "middle");
    // Models with a quarter of their requests; the table of drives needs none.
    let asked = ["reproduce", "waflash/table01", "waflash/figure01", "--middle", "--out", "waflash"];
    let shown = bench.succeeds(&asked).stdout;
    assert!(shown.contains("Middle size: a quarter of the requests"), "{shown}");
    assert!(shown.contains("model:ra,requests=150k,footprint=2g"), "{shown}");
    for (asked, why) in [
        (&["amf/table01", "--middle"][..], "amf has no middle size: the whole takes "),
        (&["shrd/section5", "--middle", "--quick"], "cannot be used with"),
        (&["shrd/section5", "--middle", "--docs", "."], "cannot be used with"),
    ] {
        let done = bench.command(&[&["reproduce"][..], asked].concat()).output().expect("it runs");
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!((done.status.code(), said.contains(why)), (Some(2), true), "{asked:?}: {said}");
    }
}

#[test]
fn a_figure_names_the_missing_inputs_that_it_uses_and_no_others() {
    let bench = Bench::new();
    let of = |figure: &str| {
        let mut command = bench.command(&["reproduce", figure, "--quick", "--out", "out", "--json"]);
        let done = command.env_remove("SSDLAB_TRACES").output().expect("it runs");
        let report: serde_json::Value = serde_json::from_slice(&done.stdout).expect("JSON");
        let inputs = report["inputs"].as_array().expect("inputs").clone();
        let missing = inputs.iter().filter(|input| !input["missing"].is_null());
        missing.map(|input| input["name"].as_str().expect("a name").to_string()).collect::<Vec<_>>()
    };
    assert_eq!(of("write-amplification/figure10"), ["F1 excerpt"]);
    assert_eq!(of("write-amplification/table02"), ["F1 excerpt"]);
    assert!(of("write-amplification/figure11").is_empty());
}

#[test]
fn papers_and_figures_are_listed() {
    let list = Bench::new().succeeds(&["reproduce", "--list"]);
    assert!(list.stdout.contains("waflash/figure08"));
    assert!(list.stdout.contains("write-amplification/figure05"));
    assert!(list.stdout.contains("shrd/figure07"));
}

#[test]
fn wrong_names_and_folders_are_refused() {
    let bench = Bench::new();
    bench.refuses(&["reproduce", "waflush"], &["waflush", "did you mean 'waflash'"]);
    bench.refuses(&["reproduce", "waflash/figure3"], &["figure3", "did you mean"]);
    bench.refuses(&["reproduce", "waflash/table01", "--traces", "nowhere"], &["nowhere", "expected a folder"]);
    let mut by_environment = bench.command(&["reproduce", "waflash/table01", "--quick", "--out", "out"]);
    let refused = by_environment.env("SSDLAB_TRACES", ":no-such-place").output().expect("it runs");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("SSDLAB_TRACES") && said.contains("no-such-place") && said.contains("a folder"), "{said}");
    bench.refuses(&["reproduce", "waflash/table01", "--out", "tiny.toml"], &["tiny.toml"]);
}

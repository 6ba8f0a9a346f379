//! `devices`, `list`, `trace` and the help.

use std::path::Path;

use crate::support::Bench;
use serde_json::Value;

fn shipped() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../devices");
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .expect("devices/")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn every_drive_that_ships_is_listed_in_one_line_and_can_be_printed() {
    let bench = Bench::new();
    let lines = bench.succeeds(&["devices"]).stdout;
    let listed: Vec<&str> = lines.lines().map(|line| line.split_whitespace().next().expect("a name")).collect();
    assert_eq!(listed, shipped());
    let json: Value = serde_json::from_str(&bench.succeeds(&["devices", "--json"]).stdout).expect("JSON");
    assert_eq!(json.as_array().map(Vec::len), Some(listed.len()));
    for drive in json.as_array().expect("an array") {
        assert_ne!(drive["summary"], "", "{} has no summary", drive["name"]);
        assert!(drive["user_bytes"].as_u64() > Some(0));
    }
    for name in &listed {
        let text = bench.succeeds(&["devices", name, "--toml"]).stdout;
        if text.contains("\n[disk]\n") {
            continue;
        }
        assert!(text.contains("[flash]"), "{name} is not a description");
        let shown = bench.succeeds(&["devices", name]).stdout;
        for part in ["user capacity", "peak rates", "read 4 KiB", "ftl.mapping_unit"] {
            assert!(shown.contains(part), "'{part}' is missing of {name}:\n{shown}");
        }
    }
}

#[test]
fn a_disk_is_shown_and_is_no_drive_of_a_run() {
    let bench = Bench::new();
    let shown = bench.succeeds(&["devices", "wd1502faex"]).stdout;
    assert!(shown.starts_with("wd1502faex: WD Caviar Black WD1502FAEX: 1.5 TB"), "{shown}");
    let line =
        |name: &str| shown.lines().find_map(|line| line.strip_prefix(name)).expect("it is shown").trim().to_string();
    assert_eq!(line("rate of the outer zone"), "138 MB/s");
    assert_eq!(line("half a rotation"), "4.17 ms");
    let json = bench.succeeds(&["devices", "wd1502faex", "--json", "--set", "disk.rpm=5400"]).stdout;
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&json["capacity_bytes"], &json["rpm"]), (&1_500_301_910_016_u64.into(), &5_400.into()));
    let run = ["run", "-d", "wd1502faex", "-w", "rw=read,bs=4k,size=1m"];
    bench.refuses(&run, &["'wd1502faex' is a hard disk, expected a drive"]);
    let set = ["devices", "wd1502faex", "--set", "disk.rpm=1"];
    bench.refuses(&set, &["--set 'disk.rpm=1': disk.rpm: found 1, expected a whole number from 60 to 30000"]);
}

#[test]
fn a_description_is_shown_as_a_datasheet_with_every_key_and_expanded() {
    let bench = Bench::new();
    let sets = ["--set", "flash.timing=tlc", "--set", "gc.victim=fifo"];
    let with = |more: &[&'static str]| [&["devices", "tiny.toml"][..], &sets, more].concat();
    let shown = bench.succeeds(&with(&[])).stdout;
    let line = |start: &str| {
        let line = shown.lines().find(|line| line.trim_start().starts_with(start));
        line.unwrap_or_else(|| panic!("'{start}' is missing in:\n{shown}")).split_whitespace().collect::<Vec<_>>()
    };
    assert_eq!(line("gc.victim"), ["gc.victim", "\"fifo\"", "--set"]);
    assert_eq!(line("gc.free_blocks"), ["gc.free_blocks", "3", "default"]);
    assert_eq!(line("flash.timing.erase"), ["flash.timing.erase", "\"4.5ms\"", "flash.timing"]);
    assert_eq!(line("page program")[..4], ["page", "program", "1.21", "ms"]);
    let json: Value = serde_json::from_str(&bench.succeeds(&with(&["--json"])).stdout).expect("JSON");
    assert_eq!(json["capacity"]["raw"], 16 << 20);
    assert_eq!(json["capacity"]["user"], 12 << 20);
    assert_eq!(json["latency_ns"]["block_erase"]["min"], 4_500_175);
    let keys = json["keys"].as_array().expect("a list");
    let victim = keys.iter().find(|key| key["key"] == "gc.victim").expect("gc.victim");
    assert_eq!(*victim, serde_json::json!({ "key": "gc.victim", "value": "fifo", "from": "--set" }));
    // The expanded description is the same drive, and all of it is written.
    bench.write("full.toml", &bench.succeeds(&with(&["--expanded"])).stdout);
    let full: Value = serde_json::from_str(&bench.succeeds(&["devices", "full.toml", "--json"]).stdout).expect("JSON");
    for part in ["capacity", "over_provisioning", "bytes_per_s", "iops_4k", "latency_ns", "memory"] {
        assert_eq!(full[part], json[part], "{part}");
    }
    assert_eq!(bench.succeeds(&["devices", "tiny.toml", "--toml"]).stdout, bench.read("tiny.toml"));
    for wrong in
        [&["devices", "--toml"][..], &["devices", "tiny.toml", "--toml", "--json"], &["devices", "--set", "a=b"]]
    {
        assert_eq!(bench.ssdlab(wrong).status, 2, "{wrong:?}");
    }
    bench.refuses(&["devices", "nowhere.toml"], &["nowhere.toml", "cannot be read"]);
    bench.refuses(&["devices", "tiny.toml", "--set", "gc.victim=fido"], &["gc.victim", "fido"]);
    bench
        .refuses(&["devices", "tiny.toml", "--set", "capacity.user=15.9m"], &["--set", "too little over-provisioning"]);
}

/// What is shown and what a run finds are one model.
#[test]
fn a_shown_latency_is_a_run_s_and_a_shown_peak_bounds_it() {
    let bench = Bench::new();
    for drive in ["demo-tlc", "demo-slc"] {
        let sheet: Value = serde_json::from_str(&bench.succeeds(&["devices", drive, "--json"]).stdout).expect("JSON");
        let run = |spec: &str, more: &[&str]| {
            let words = [&["run", "-d", drive, "--no-snapshot", "--json", "-w", spec][..], more].concat();
            let result: Value = serde_json::from_str(&bench.succeeds(&words).stdout).expect("JSON");
            result["devices"][0].clone()
        };
        let one = "bs=4k,iodepth=1,io_size=4m";
        let read = run(&format!("rw=randread,{one}"), &["-p", "fill"]);
        assert_eq!(read["latency_ns"]["read"]["p50"], sheet["latency_ns"]["read_4k"]["min"], "{drive}");
        assert_eq!(read["latency_ns"]["read"]["max"], sheet["latency_ns"]["read_4k"]["max"], "{drive}");
        let write = run(&format!("rw=write,{one}"), &[]);
        assert_eq!(write["latency_ns"]["write"]["min"], sheet["latency_ns"]["write"]["min"], "{drive}");
        for (spec, kind) in
            [("rw=read,bs=1m,iodepth=32,io_size=2g", "read"), ("rw=write,bs=1m,iodepth=32,io_size=4g", "write")]
        {
            let age = if kind == "read" { &["-p", "fill"][..] } else { &[] };
            let found = run(spec, age)["throughput"][format!("{kind}_bytes_per_s")].as_f64().expect("a rate");
            let peak = sheet["bytes_per_s"][kind]["peak"].as_f64().expect("a bound");
            // What the buffer takes at the start never reaches flash while the run lasts.
            let buffered = if kind == "write" { 1.1 } else { 1.001 };
            assert!(found <= peak * buffered && found > peak * 0.8, "{drive}: {kind} {found} of at most {peak}");
        }
    }
}

#[test]
fn a_drive_that_was_printed_runs_as_the_one_that_ships() {
    let bench = Bench::new();
    let text = bench.succeeds(&["devices", "demo-tlc", "--toml"]).stdout;
    bench.write("mine.toml", &text);
    let spec = "rw=randwrite,bs=4k,iodepth=4,io_size=1m";
    let run = |drive| {
        let done = bench.succeeds(&["run", "-d", drive, "-w", spec, "--json"]);
        let result: Value = serde_json::from_str(&done.stdout).expect("JSON");
        result["devices"][0]["latency_ns"].clone()
    };
    assert_eq!(run("demo-tlc"), run("mine.toml"));
}

#[test]
fn designs_are_listed_by_kind() {
    let bench = Bench::new();
    let lines = bench.succeeds(&["list"]).stdout;
    let named = [
        ("ftl.design", "page"),
        ("gc.victim", "greedy"),
        ("buffer.policy", "lru"),
        ("workload", "micro:4KiB-RD-100%-W-Y"),
    ];
    for (kind, name) in named {
        let found = lines.lines().any(|line| line.split_whitespace().take(2).eq([kind, name]));
        assert!(found, "{kind} {name} is missing in:\n{lines}");
    }
    let json: Value = serde_json::from_str(&bench.succeeds(&["list", "--json"]).stdout).expect("JSON");
    assert_eq!(json.as_array().map(Vec::len), Some(lines.lines().count()));
}

#[test]
fn keys_are_listed_by_section_and_by_who_reads_them() {
    let bench = Bench::new();
    let all = bench.succeeds(&["list", "--keys"]).stdout;
    for line in ["top level", "  flash.timing.read", "gc, read with gc.victim = \"d-choices\"", "  host.layer.depth"] {
        assert!(all.lines().any(|found| found == line), "'{line}' is missing in:\n{all}");
    }
    let some = bench.succeeds(&["list", "--keys", "flash.faults"]).stdout;
    let keys: Vec<&str> = some.lines().filter(|line| line.starts_with("  flash.")).collect();
    assert_eq!((keys.len(), keys[0]), (9, "  flash.faults.program_failure"), "{some}");
    let json: Value = serde_json::from_str(&bench.succeeds(&["list", "--keys", "gc", "--json"]).stdout).expect("JSON");
    let choices = json.as_array().expect("an array").iter().find(|key| key["key"] == "gc.choices").expect("gc.choices");
    assert_eq!(
        (&choices["default"], &choices["type"], &choices["unit"]),
        (&10.into(), &"count".into(), &"blocks".into())
    );
    assert_eq!(choices["owner"], serde_json::json!({ "key": "gc.victim", "names": ["d-choices"] }));
    let schema: Value = serde_json::from_str(&bench.succeeds(&["list", "--keys", "--schema"]).stdout).expect("JSON");
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(schema["properties"]["gc"]["properties"]["choices"]["minimum"], 1);
    let host: Value =
        serde_json::from_str(&bench.succeeds(&["list", "--keys", "host", "--schema"]).stdout).expect("JSON");
    assert_eq!(host["properties"]["layer"]["items"]["properties"]["depth"]["maximum"], 65_536);
    let table = bench.succeeds(&["list", "--keys", "gc", "--markdown"]).stdout;
    assert!(table.contains("| `gc.choices` | blocks, 1 or more | `10` | `d-choices` only. "), "{table}");
    let wrong = bench.ssdlab(&["list", "--keys", "flahs"]);
    assert_eq!(wrong.status, 2);
    assert!(wrong.stderr.contains("found the section 'flahs', expected one of flash, "), "{}", wrong.stderr);
    assert!(wrong.stderr.contains("did you mean 'flash'?"), "{}", wrong.stderr);
    assert_eq!(bench.ssdlab(&["list", "--keys", "gc", "--schema"]).status, 2);
}

#[test]
fn a_trace_is_counted_shown_and_converted_there_and_back() {
    let bench = Bench::new();
    let text =
        "time_us,op,offset_bytes,length_bytes\n0.000,W,0,4096\n5.000,R,512,1024\n9.000,T,8192,65536\n9.000,F,0,0\n";
    bench.write("a.csv", text);
    let stats = bench.succeeds(&["trace", "stats", "a.csv"]).stdout;
    assert!(stats.contains('4'), "{stats}");
    let json: Value =
        serde_json::from_str(&bench.succeeds(&["trace", "stats", "a.csv", "--json"]).stdout).expect("JSON");
    assert!(json.is_object());
    let head = bench.succeeds(&["trace", "head", "a.csv", "-n", "2"]).stdout;
    assert_eq!(head, text.lines().take(3).map(|line| format!("{line}\n")).collect::<String>());
    assert_eq!(bench.succeeds(&["trace", "head", "a.csv"]).stdout, text);
    bench.succeeds(&["trace", "convert", "a.csv", "a.iolog"]);
    assert!(bench.read("a.iolog").starts_with("fio version 3 iolog"));
    bench.succeeds(&["trace", "convert", "a.iolog", "b.csv"]);
    assert_eq!(bench.read("b.csv"), text);
    bench.write("finer.csv", &text.replace("5.000", "5.500"));
    let lossy = bench.succeeds(&["trace", "convert", "finer.csv", "c.iolog"]);
    assert!(lossy.stderr.contains("whole microseconds"), "{}", lossy.stderr);
    for packed in ["a.csv.gz", "a.csv.zst"] {
        bench.succeeds(&["trace", "convert", "a.csv", packed]);
        assert_eq!(bench.succeeds(&["trace", "head", packed]).stdout, text);
    }
    bench.succeeds(&["trace", "convert", "a.csv", "named", "--to", "csv"]);
    assert_eq!(bench.read("named"), text);
}

#[test]
fn help_is_there_for_every_command_and_nothing_asked_is_status_2() {
    let bench = Bench::new();
    for command in [
        &["--help"][..],
        &["run", "--help"],
        &["trace", "--help"],
        &["trace", "convert", "--help"],
        &["devices", "--help"],
        &["list", "--help"],
        &["report", "--help"],
    ] {
        let done = bench.succeeds(command);
        assert!(done.stdout.contains("Usage: ssdlab"), "{command:?}: {}", done.stdout);
    }
    assert!(bench.succeeds(&["run", "--help"]).stdout.contains("Examples:"));
    assert_eq!(bench.succeeds(&["help", "run"]).stdout, bench.succeeds(&["run", "--help"]).stdout);
    assert!(bench.succeeds(&["help"]).stdout.contains("Usage: ssdlab"));
    assert!(bench.succeeds(&["--version"]).stdout.starts_with("ssdlab "));
    assert_eq!(bench.ssdlab(&[]).status, 2);
    assert_eq!(bench.ssdlab(&["serve"]).status, 2);
}

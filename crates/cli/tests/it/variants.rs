//! Variants of drives, repetitions, what preconditioning left, and what a run says of its trace.

use std::collections::BTreeMap;

use crate::support::Bench;
use serde_json::Value;

const SPEC: &str = "rw=randwrite,bs=4k,iodepth=4,size=100%,io_size=2m,norandommap";

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// The rows of a `summary.csv` without quoted fields, by head.
fn rows(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut lines = text.lines();
    let heads: Vec<&str> = lines.next().expect("heads").split(',').collect();
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!(cells.len(), heads.len(), "{line}");
        heads.iter().zip(cells).map(|(head, cell)| ((*head).to_string(), cell.to_string())).collect()
    };
    lines.map(row).collect()
}

#[test]
fn every_combination_of_values_is_a_drive_with_its_overrides() {
    let bench = Bench::new();
    let vary = ["--vary", "gc.victim=greedy,fifo", "--vary", "interface.queue_depth=1,2,4"];
    let run = ["run", "-d", "tiny.toml", "-w", SPEC, "-p", "fill", "--set", "interface.queues=2", "--out", "out"];
    let done = bench.succeeds(&[&run[..], &vary[..]].concat());
    assert!(done.stdout.contains("tiny victim=fifo"), "{}", done.stdout);
    let result = json(&bench.read("out/result.json"));
    let devices = result["devices"].as_array().expect("a list");
    let found: Vec<(&str, &str)> = devices
        .iter()
        .map(|device| {
            let value = |key: &str| device["overrides"][key].as_str().expect(key);
            assert_eq!(value("interface.queues"), "2");
            // What was asked for is what the drive is.
            assert_eq!(device["configuration"]["gc"]["victim"], value("gc.victim"));
            (value("gc.victim"), value("interface.queue_depth"))
        })
        .collect();
    let all = [("greedy", "1"), ("greedy", "2"), ("greedy", "4"), ("fifo", "1"), ("fifo", "2"), ("fifo", "4")];
    assert_eq!(found, all);
    let rows = rows(&bench.read("out/summary.csv"));
    assert_eq!(rows.len(), 6);
    for (row, device) in rows.iter().zip(devices) {
        assert_eq!(row["gc.victim"], device["overrides"]["gc.victim"].as_str().expect("a word"));
        let amplification: f64 = row["write_amplification"].parse().expect("a number");
        assert_eq!(amplification, device["write_amplification"]["total"].as_f64().expect("a number"));
        assert_eq!(row["erases_per_block"].parse::<f64>().ok(), device["erases_in_run"]["mean"].as_f64());
        assert_eq!(row["invariants_hold"], "true");
    }
    // A variant is what `--set` makes of the drive.
    let sets = ["--set", "gc.victim=fifo", "--set", "interface.queue_depth=4", "--json"];
    let alone = json(&bench.succeeds(&[&run[..9], &sets[..]].concat()).stdout);
    for key in ["latency_ns", "flash", "virtual_time_ns"] {
        assert_eq!(alone["devices"][0][key], devices[5][key], "{key}");
    }
}

#[test]
fn repetitions_have_seeds_of_their_own_and_an_interval() {
    let bench = Bench::new();
    let run = ["run", "-d", "tiny.toml", "-w", SPEC, "-p", "fill", "--seed", "7"];
    let done = bench.succeeds(&[&run[..], &["--repeat", "3", "--out", "out"]].concat());
    assert!(done.stdout.contains("3 repetitions") && done.stdout.contains('±'), "{}", done.stdout);
    let result = json(&bench.read("out/result.json"));
    let devices = result["devices"].as_array().expect("a list");
    let of: Vec<_> = devices.iter().map(|device| device["repetition"].clone()).collect();
    let expected = |number: u64| serde_json::json!({ "of": "tiny", "number": number, "seed": 6 + number });
    assert_eq!(of, [expected(1), expected(2), expected(3)]);
    assert_ne!(devices[0]["requests_digest"], devices[1]["requests_digest"], "other seeds draw other requests");
    // Each repetition is the run of its seed.
    let alone =
        json(&bench.succeeds(&["run", "-d", "tiny.toml", "-w", SPEC, "-p", "fill", "--seed", "8", "--json"]).stdout);
    assert_eq!(alone["devices"][0]["latency_ns"], devices[1]["latency_ns"]);
    let rows = rows(&bench.read("out/summary.csv"));
    let told: Vec<_> = rows.iter().map(|row| (row["variant"].as_str(), row["seed"].as_str())).collect();
    assert_eq!(told, [("tiny", "7"), ("tiny", "8"), ("tiny", "9")]);
}

#[test]
fn axes_that_say_nothing_are_refused() {
    let bench = Bench::new();
    let run = ["run", "-d", "tiny.toml", "-w", SPEC];
    for (vary, told) in [
        (&["--vary", "gc.victim"][..], "--vary: found 'gc.victim', expected KEY=VALUE,VALUE,..."),
        (&["--vary", "gc.victim=fifo,fifo"], "--vary: gc.victim: the value 'fifo' is there twice"),
        (&["--vary", "gc.victim=fifo", "--vary", "gc.victim=greedy"], "--vary: gc.victim is varied twice"),
        (&["--vary", "gc.victm=fifo,greedy"], "gc.victm"),
        (&["--vary", "gc.victim=fifo,gready"], "gready"),
    ] {
        bench.refuses(&[&run[..], vary].concat(), &[told]);
    }
}

#[test]
fn what_preconditioning_never_wrote_is_told() {
    let bench = Bench::new();
    let half = "rw=write,bs=64k,size=50%";
    let run = |how: &str| {
        let done = bench.succeeds(&["run", "-d", "tiny.toml", "-w", SPEC, "-p", how, "--json"]);
        let result = json(&done.stdout);
        let device = result["devices"][0].clone();
        let warnings = device["warnings"].to_string();
        (device["precondition"]["mapped"].as_f64(), warnings.contains("serves as over-provisioning"), device)
    };
    let (mapped, warned, empty) = run(half);
    assert!((mapped.expect("counted") - 0.5).abs() < 0.01 && warned, "{mapped:?}");
    let (mapped, warned, filled) = run(&format!("fill+{half}"));
    assert_eq!((mapped, warned), (None, false), "all of it was written");
    let written = |device: &Value| device["precondition"]["written_bytes"].as_u64().expect("bytes");
    let user = filled["capacity"]["user_bytes"].as_u64().expect("bytes");
    assert_eq!(written(&filled), user + written(&empty));
    // Erases of the run are those that the chips counted in it, and since new there are more.
    let erases = filled["flash"]["erases"]["total"].as_u64().expect("a count");
    assert_eq!(filled["erases_in_run"]["total"].as_u64(), Some(erases));
    assert!(filled["erases"]["total"].as_u64() >= Some(erases));
    let table = bench.succeeds(&["run", "-d", "tiny.toml", "-w", SPEC, "-p", half]).stdout;
    assert!(table.contains("capacity mapped") && table.contains("since new"), "{table}");
}

#[test]
fn requests_that_fit_cut_are_told_with_both_numbers_and_traces_can_be_shifted() {
    let bench = Bench::new();
    // Two extents of 1 MiB, touched in the other order: a request across them is cut.
    bench.write("cut.csv", "time_us,op,offset_bytes,length_bytes\n0,W,1048576,4096\n1,W,1044480,8192\n");
    let done = bench.succeeds(&["run", "-d", "tiny.toml", "-w", "cut.csv", "--fit", "--json"]);
    let result = json(&done.stdout);
    let told =
        "cut.csv: the drive was sent 3 requests for 2 of the trace: 1 was cut in pieces to fit the drive's addresses";
    assert!(result["notes"].to_string().contains(told), "{}", result["notes"]);
    // A partition that began at sector 63 is aligned by a sector more.
    bench.write("odd.csv", "time_us,op,offset_bytes,length_bytes\n0,W,32256,4096\n1,W,65024,4096\n");
    let misaligned = |spec: &str| {
        let done = bench.succeeds(&["run", "-d", "tiny.toml", "-w", spec, "--json"]);
        json(&done.stdout)["devices"][0]["host"]["misaligned_requests"].as_u64().expect("a count")
    };
    assert_eq!((misaligned("odd.csv"), misaligned("shift=512:odd.csv"), misaligned("shift=-31.5k:odd.csv")), (2, 0, 0));
    bench.refuses(&["run", "-d", "tiny.toml", "-w", "shift=-32k:odd.csv"], &["odd.csv:2", "an address of byte 32256"]);
    bench.refuses(&["run", "-d", "tiny.toml", "-w", "shift=100:odd.csv"], &["`shift=100`", "a multiple of 512"]);
}

#[test]
fn errors_of_vary_name_it_and_say_what_to_use_in_its_place() {
    let bench = Bench::new();
    for (axis, parts) in [
        ("gc.victm=greedy,fifo", ["error: --vary 'gc.victm=greedy'", "did you mean 'victim'?"]),
        ("flash.channels=0,2", ["error: --vary 'flash.channels=0'", "expected a whole number"]),
        ("seed=1,2", ["error: --vary: 'seed' is no key of a drive", "--repeat N"]),
        ("1:gc.victim=greedy,fifo", ["found '1:' before gc.victim", "--set 1:gc.victim=VALUE"]),
    ] {
        bench.refuses(&["run", "-d", "tiny.toml", "-w", SPEC, "--vary", axis], &parts);
    }
}

//! `wa` and `run --vcd`: what is measured from outside is what the drive counted.

use serde_json::Value;

use crate::support::Bench;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// `tiny.toml` with program times that no other operation has.
const APART: [&str; 4] = ["--set", "flash.timing.program=300us..900us", "--set", "flash.timing.erase=3ms"];

#[test]
fn a_run_s_waveform_holds_every_program_that_the_drive_counted() {
    let bench = Bench::new();
    let workload = "rw=randrw,rwmixwrite=70,bs=4k,iodepth=8,io_size=16m,norandommap";
    for name in ["rb.vcd", "rb.vcd.gz"] {
        let mut words =
            vec!["run", "-d", "tiny.toml", "-w", workload, "--precondition", "fill", "--no-snapshot", "--quiet"];
        words.extend(APART);
        words.extend(["--vcd", name, "--out", "out", "--json"]);
        let result = json(&bench.succeeds(&words).stdout);
        let device = &result["devices"][0];
        let counted = device["flash"]["programs"]["total"].as_u64().expect("a count");
        let erases = device["flash"]["erases"]["total"].as_u64().expect("a count");
        let host = device["bytes"]["write"].as_u64().expect("bytes").to_string();
        assert!(erases > 0 && counted > 0);
        let found = bench.succeeds(&[
            "wa",
            "capture",
            name,
            "--geometry",
            "2x1x1x1",
            "--window",
            "299us..901us",
            "--host-bytes",
            &host,
            "--json",
        ]);
        let found = json(&found.stdout);
        assert_eq!(found["lines"], serde_json::json!(["ch0.chip0.die0", "ch1.chip0.die0"]));
        let all = found["estimates"].as_array().expect("estimates");
        let all = all.iter().find(|estimate| estimate["method"] == "all-dies").expect("all-dies");
        assert_eq!(all["pages"].as_f64(), Some(counted as f64), "{name}");
        let ratio = device["write_amplification"]["total"].as_f64().expect("a ratio");
        assert!((all["write_amplification"].as_f64().expect("a ratio") - ratio).abs() < 1e-9);
    }
    // The drive's own log gives the same write amplification.
    let report =
        json(&bench.succeeds(&["wa", "drive", "out/smart/before.json", "out/smart/after.json", "--json"]).stdout);
    let result = json(&bench.read("out/result.json"));
    let ratio = result["devices"][0]["write_amplification"]["total"].as_f64().expect("a ratio");
    assert!((report["write_amplification"]["value"].as_f64().expect("a ratio") - ratio).abs() < 1e-9);
    let log = json(&bench.read("out/smart/after.json"));
    let gc = result["devices"][0]["flash"]["programs"]["by_cause"]["gc"].as_u64().expect("a count");
    assert_eq!(log["ssdlab"]["pages_programmed_by_cause"]["gc"].as_u64(), Some(gc));
}

/// The logs of a run said how much of its life a drive had used, but not how long it lasts.
#[test]
fn the_logs_of_a_run_tell_the_lifetime_that_its_results_tell() {
    let bench = Bench::new();
    let workload = "rw=randwrite,bs=4k,iodepth=8,size=100%,io_size=300m,norandommap";
    let run = ["run", "-d", "tiny.toml", "-w", workload, "-p", "fill", "-q", "--no-snapshot", "--out", "out"];
    let done = bench.succeeds(&[&run[..], &["--set", "flash.faults.endurance=3000"]].concat());
    let result = json(&bench.read("out/result.json"));
    let lifetime = &result["devices"][0]["lifetime"];
    let told = ["wa", "drive", "out/smart/before.json", "out/smart/after.json"];
    let report = json(&bench.succeeds(&[&told[..], &["--json"]].concat()).stdout);
    let of_run = lifetime.as_object().expect("an endurance is stated");
    assert_eq!(of_run.len(), 6);
    for (key, value) in of_run {
        let (ours, theirs) = (value.as_f64().expect(key), report["lifetime"][key].as_f64().expect(key));
        assert!((ours / theirs - 1.0).abs() < 1e-9, "{key}: {ours} and {theirs}");
    }
    // Both tables and the report's figures have these rows.
    let table = bench.succeeds(&told).stdout;
    let page = bench.read("out/report.html");
    let start = done.stdout.lines().position(|line| line.starts_with("lifetime, host writes")).expect("rows of it");
    for line in done.stdout.lines().skip(start).take(6) {
        let words: Vec<&str> = line.split_whitespace().collect();
        assert!(table.lines().any(|other| other.split_whitespace().eq(words.iter().copied())), "{line}: {table}");
        let value = line.rsplit("  ").next().expect("a value").trim();
        assert!(page.contains(&format!("<td>{value}</td>")), "{line}");
    }
    for label in ["host writes", "years at this rate", "by most worn block", "by most worn block, DWPD over 5 years"] {
        assert!(page.contains(&format!("<tr><td>Lifetime, {label}</td>")), "{label}");
    }
    for span in ["in the run", "since new"] {
        assert!(page.contains(&format!("<tr><td>Erases of a block {span}, most</td>")), "{span}");
    }
    let of_another = json(&bench.succeeds(&["wa", "drive", "out/smart/after.json", "--json"]).stdout);
    assert!(of_another["lifetime"]["written_bytes"].is_f64(), "{of_another}");
    // Bytes of the run beside erases of the whole life were said to be "since it was new".
    let alone = bench.succeeds(&["wa", "drive", "out/smart/after.json"]).stdout;
    assert!(alone.contains("since its run or server began") && !alone.contains("\nsince it was new"), "{alone}");
    assert!(alone.contains("note: a simulated drive counts commands and bytes from the start"), "{alone}");
    bench.refuses(&["wa", "drive", "out/result.json"], &["the logs of the drives of a run are in out/smart"]);
}

/// Variants of a description had one serial number, and the log of one before and that of another after were taken for those of
/// one drive.
#[test]
fn logs_of_variants_and_of_repetitions_are_those_of_different_drives() {
    let bench = Bench::new();
    let run =
        ["run", "-d", "tiny.toml", "-w", "rw=randwrite,bs=4k,io_size=1m", "-q", "--vary", "gc.victim=greedy,fifo"];
    bench.succeeds(&[&run[..], &["--repeat", "2", "--out", "out"]].concat());
    let log =
        |moment: &str, victim: &str, number: u8| format!("out/smart/{moment}-tiny victim={victim} #{number}.json");
    let before = log("before", "greedy", 1);
    bench.succeeds(&["wa", "drive", &before, &log("after", "greedy", 1)]);
    for (victim, number) in [("fifo", 1), ("greedy", 2)] {
        bench.refuses(&["wa", "drive", &before, &log("after", victim, number)], &["these are two drives"]);
    }
}

#[test]
fn the_model_shows_every_factor() {
    let bench = Bench::new();
    let words = [
        "wa",
        "model",
        "--device",
        "wa-ssd-m-64g",
        "--programs",
        "1000",
        "--host-bytes",
        "64m",
        "--pages-real",
        "32000",
    ];
    let done = bench.succeeds(&words);
    for row in ["N_channel x N_chip x N_die  16", "M_p                         2", "N_page                      32,000"]
    {
        assert!(done.stdout.contains(row), "{row}: {}", done.stdout);
    }
    assert!(done.stdout.contains("+0.000 %"), "{}", done.stdout);
    let share = json(&bench.succeeds(&["wa", "model", "--op-space", "1g", "--user-space", "3g", "--json"]).stdout);
    assert_eq!(share["over_provisioning"].as_f64(), Some(0.25));
}

#[test]
fn wrong_input_is_a_sentence_and_status_2() {
    let bench = Bench::new();
    bench.write("bad.vcd", "$timescale 1 ns $end $var wire 1 ! a $end $enddefinitions $end\n#1\n0?\n");
    bench.write("bad.csv", "Time [s],Channel 0\n0.0,1\n0.1,7\n");
    bench.write("bad.json", "{\"data_units_written\":1");
    bench.write("some.json", "{\"data_units_written\":1}");
    bench.write("words.json", "\n{\"data_units_written\":\"many\"}");
    bench.write("cut.vcd", "$timescale 1 ns $end $var wire 1 ! a $end $enddefinitions $end\n#10\n0!\n#1");
    for (words, says) in [
        (&["wa", "capture", "bad.vcd"][..], "bad.vcd:3: byte 66: no variable has the code '?'"),
        (&["wa", "capture", "bad.csv"], "bad.csv:3: byte 25: '7' is not a level"),
        (&["wa", "capture", "tiny.toml"], "a VCD, a .sr"),
        (&["wa", "capture", "nowhere.vcd"], "cannot be opened"),
        (&["wa", "capture", "bad.csv", "--geometry", "4x1"], "--geometry: '4x1' is not a geometry"),
        (&["wa", "capture", "bad.csv", "--window", "2ms..1ms"], "--window: "),
        (&["wa", "capture", "cut.vcd"], "cut.vcd:4: byte 70: the file ends in the middle of this line: it was cut off"),
        (&["wa", "capture", "."], "not a regular file"),
        (&["wa", "capture", "bad.csv", "--program-model", "multi"], "--program-model without --geometry or --device"),
        (&["wa", "model", "--geometry", "1x1x1x1"], "--programs is missing"),
        (
            &["wa", "model", "--op-space", "1g", "--user-space", "9g", "--programs", "5"],
            "--programs without --geometry",
        ),
        (&["wa", "drive", "."], "this is a directory"),
        (&["wa", "drive", "words.json"], "words.json: line 2 (the document that begins there): data_units_written is"),
        (&["wa", "drive", "--attributes", "some.json"], "cannot be used with"),
        (&["wa", "drive", "bad.json", "some.json"], "bad.json: this is not JSON"),
        (&["wa", "drive", "some.json", "tiny.toml"], "tiny.toml: this is not JSON"),
        (&["wa", "drive", "/dev/nvme77"], "there is no such device"),
        (&["run", "-d", "tiny.toml", "demo-slc", "-w", "rw=write", "--vcd", "x.vcd"], "there are 2 drives"),
        (&["run", "-d", "tiny.toml", "-w", "micro:4KiB-RD-100%-W-Q"], "is not a micro-benchmark"),
    ] {
        bench.refuses(words, &[says]);
    }
}

#[test]
fn micro_benchmarks_go_by_the_paper_s_names() {
    let bench = Bench::new();
    let words = ["run", "-d", "tiny.toml", "-w", "micro:4KiB-RD-50%-W-N,iodepth=4,io_size=1m", "--json", "--quiet"];
    let result = json(&bench.succeeds(&words).stdout);
    let device = &result["devices"][0];
    assert_eq!(
        device["requests"]["read"].as_u64().zip(device["requests"]["write"].as_u64()).map(|(r, w)| r + w),
        Some(256)
    );
    assert!(device["host"]["misaligned_requests"].as_u64().expect("a count") > 200);
}

#[test]
fn a_recorded_run_in_sub_tests_says_what_each_of_them_cost() {
    let bench = Bench::new();
    let mut words = vec!["run", "-d", "tiny.toml", "-w", "micro:4KiB-RD-100%-W-Y", "--no-snapshot", "--quiet"];
    words.extend(APART);
    words.extend(["--precondition", "steady:micro:4KiB-RD-100%-W-Y,iodepth=32", "--rb-probe", "1"]);
    words.extend(["--subtests", "3x1m", "--initial", "rw=write,bs=128k"]);
    let table = bench.succeeds(&words).stdout;
    for part in
        ["Ready/Busy of", "ch1.chip0.die0", "recorder (1.00 us)", "mixture", "initial", "sub-test", "of it idle gaps"]
    {
        assert!(table.contains(part), "{part}: {table}");
    }
    words.push("--json");
    let device = json(&bench.succeeds(&words).stdout)["devices"][0].clone();
    assert_eq!(device["subtests"].as_array().map(Vec::len), Some(4));
    assert_eq!(device["ready_busy"]["tests"].as_array().map(Vec::len), Some(4));
    assert_eq!(device["subtests"][3]["written_bytes"].as_u64(), Some(1 << 20));
    // The table's rates are over the busy time; the result's are over the run, in which 990 s are quiet.
    let busy: u64 = (0..4)
        .map(|test| &device["subtests"][test])
        .map(|test| test["ended_ns"].as_u64().expect("a time") - test["begun_ns"].as_u64().expect("a time"))
        .sum();
    let written = device["bytes"]["write"].as_u64().expect("bytes") as f64;
    // The table has at least three digits.
    let rate = written / (busy as f64 / 1e9) / 1e6;
    let rate = if rate < 10.0 { format!("{rate:.2}") } else { format!("{rate:.1}") };
    let row = table.lines().find(|line| line.starts_with("write MB/s")).expect("the rate");
    assert_eq!(row.split_whitespace().last(), Some(rate.as_str()), "{table}");
    assert!(device["throughput"]["write_bytes_per_s"].as_f64().expect("a rate") < written / 990.0);
    let real = device["ready_busy"]["real"]["pages"].as_u64();
    assert_eq!(real, device["flash"]["programs"]["total"].as_u64());
    bench.refuses(&["run", "-d", "tiny.toml", "-w", "micro:4KiB-RD-100%-W-Y", "--rb-probe", "7"], &["found die 7"]);
    bench.refuses(
        &["run", "-d", "tiny.toml", "-w", "micro:4KiB-RD-100%-W-Y", "--subtests", "3y1m"],
        &["--subtests", "'3y1m'", "15x5g"],
    );
    bench.refuses(
        &["run", "-d", "tiny.toml", "-w", "micro:4KiB-RD-100%-W-Y", "--subtests", "3x16"],
        &["--subtests", "'3x16'", "16 bytes, less than a sector of 512", "unit"],
    );
    // A trace may be wrapped on a drive that fio's options have aged.
    let mut words =
        vec!["run", "-d", "tiny.toml", "-w", "model:financial1,requests=500,footprint=64m", "--wrap", "--quiet"];
    words.extend([
        "--replay",
        "closed:8",
        "--precondition",
        "steady:micro:4KiB-RD-100%-W-Y,iodepth=32",
        "--no-snapshot",
    ]);
    words.extend(["--subtests", "2x256k", "--initial", "rw=write,bs=128k"]);
    bench.succeeds(&words);
    // A volume of a request: each sub-test has its line, and a warning says what that is worth.
    let mut words = vec!["run", "-d", "tiny.toml", "-w", "micro:4KiB-RD-100%-W-Y", "--no-snapshot", "--quiet"];
    words.extend(["--rb-probe", "--subtests", "3x512", "--set", "buffer.policy=lru", "--set", "buffer.size=256k"]);
    let table = bench.succeeds(&words).stdout;
    assert!(table.contains("over with its only request of 4096 bytes"), "{table}");
    assert!(table.contains("nothing was programmed in 3 of 3 sub-tests"), "{table}");
    let lines = table.lines().skip_while(|line| !line.contains("sub-test ")).skip(1);
    let names: Vec<&str> = lines.filter_map(|line| line.split_whitespace().next()).take(3).collect();
    assert_eq!(names, ["1", "2", "3"], "{table}");
    bench.refuses(&["run", "-d", "tiny.toml", "-w", "rw=randread", "--subtests", "1m"], &["ended without a write"]);
}

/// The chips of `tiny.toml` always take the same time for a program: a window of that time alone held nothing that was
/// sampled.
#[test]
fn programs_of_one_time_have_a_window_with_room_for_sampling() {
    let bench = Bench::new();
    let workload = "rw=randwrite,bs=4k,iodepth=1,io_size=2m";
    bench.succeeds(&["run", "-d", "tiny.toml", "-w", workload, "--vcd", "rb.vcd", "--quiet"]);
    let capture = |more: &[&str]| bench.succeeds(&[&["wa", "capture", "rb.vcd"], more].concat()).stdout;
    let found = json(&capture(&["--device", "tiny.toml", "--sampling", "7us", "--json"]));
    assert_eq!(found["window_ns"], serde_json::json!([110_000, 850_000]));
    assert_eq!(found["recorder"]["programs"], 256);
    assert_eq!(found["estimates"][0]["programs_a_line"], 256.0);
    let notes = found["notes"].to_string();
    assert!(notes.contains("half way") && !notes.contains("too slow"), "{notes}");
    // A loop that is slower than its window is wide says that it is.
    assert!(capture(&["--device", "tiny.toml", "--sampling", "95us"]).contains("is too slow for the window 110 us"));
    assert!(capture(&["--window", "199us..201us"]).contains("sample each 1.00 us is too slow for the window"));
    // What is printed says whether the ends are inside: those of a range are, those of --window are not.
    assert!(capture(&["--device", "wa-ssd-v-16g"]).contains("200 us <= T <= 2.2 ms (from the description)"));
    assert!(capture(&["--window", "200us..2.2ms"]).contains("200 us < T < 2.2 ms (given)"));
    assert_eq!(json(&capture(&["--window", "200us..2.2ms", "--json"]))["estimates"][0]["pages"], 0.0);
    let table = bench.succeeds(&["run", "-d", "tiny.toml", "-w", workload, "--rb-probe", "--quiet"]);
    assert!(table.stdout.contains("a program T: 110 us < T < 850 us"), "{}", table.stdout);
    assert!((table.stdout + &table.stderr).contains("a sample each 100 us is too slow for the window"));
}

#[test]
fn a_recorder_s_die_goes_by_its_number_or_by_its_line_s_name() {
    let bench = Bench::new();
    let run = ["run", "-d", "tiny.toml", "-w", "micro:4KiB-SQ-100%-W-Y", "--quiet", "--rb-probe"];
    let of = |die: &str| bench.succeeds(&[&run[..], &[die]].concat()).stdout;
    // All but the seconds that it took.
    let measured = |text: String| -> String { text.lines().filter(|line| !line.starts_with("wall time")).collect() };
    assert_eq!(measured(of("ch1.chip0.die0")), measured(of("1")));
    assert!(of("1").contains("Ready/Busy of tiny, ch1.chip0.die0"));
    for wrong in ["ch2.chip0.die0", "ch1.chip0", "one", "-1", "ch01.chip0.die0"] {
        let told =
            format!("found '{wrong}', which is no die of tiny; expected ch0.chip0.die0 to ch1.chip0.die0, or 0 to 1");
        bench.refuses(&[&run[..6], &[&format!("--rb-probe={wrong}")]].concat(), &[&told]);
    }
    bench.refuses(&[&run[..], &["2"]].concat(), &["found die 2, expected 0 to 1 (ch0.chip0.die0 to ch1.chip0.die0)"]);
    // What nothing divides by is no number: this run leaves all in the buffer.
    let none = ["--set", "buffer.policy=lru", "--set", "buffer.size=256k", "--json"];
    let small = ["run", "-d", "tiny.toml", "-w", "rw=write,bs=4k,io_size=64k", "--quiet", "--rb-probe"];
    let result = json(&bench.succeeds(&[&small[..], &none].concat()).stdout);
    let levels = &result["devices"][0]["ready_busy"]["levels"];
    assert!(levels["sampling"].is_null() && levels["channel"].is_null(), "{levels}");
    let table = bench.succeeds(&[&small[..], &none[..4]].concat()).stdout;
    assert!(table.contains("sampling - x classification - x plane - x die - x chip - x channel -"), "{table}");
}

#[test]
fn lows_that_may_hide_among_programs_are_told() {
    let bench = Bench::new();
    // 5,000 programs of 201 to 2,199 us, and five erases of 2 ms, which are too few for the fit.
    let mut csv = String::from("Time [s],\"RB, die 0\"\n0,1\n");
    let mut state = 88_172_645_463_325_252_u64;
    let program = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        201_000 + state % 1_998_001
    };
    let lows = (0..5000).map(program).chain([2_000_000; 5]);
    let mut at = 0;
    for low in lows {
        let fall = at + 100_000;
        at = fall + low;
        for (time, level) in [(fall, 0), (at, 1)] {
            csv += &format!("{}.{:09},{level}\n", time / 1_000_000_000, time % 1_000_000_000);
        }
    }
    bench.write("rb.csv", &csv);
    let words = ["wa", "capture", "rb.csv", "--window", "200us..2.2ms", "--erase", "1.9ms..2.1ms", "--json"];
    let found = json(&bench.succeeds(&words).stdout);
    assert_eq!(found["lines"][0], "RB, die 0");
    let estimates = found["estimates"].as_array().expect("a list");
    let mixture = estimates.iter().find(|estimate| estimate["method"] == "mixture").expect("the mixture");
    let bound = |place: usize| mixture["pages_interval"][place].as_f64().expect("a number");
    assert!(bound(0) < 5000.0 && bound(1) == 5005.0, "{mixture}");
    assert!(found["notes"].to_string().contains("counted as programs may be such"), "{}", found["notes"]);
}

//! Runs that succeed, runs that are interrupted, and disks that are full.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime};

use crate::support::{Bench, Done, TINY, done};
use serde_json::Value;

const SPEC: &str = "rw=randrw,bs=4k,iodepth=4,io_size=4m";
const FILES: [&str; 8] = [
    "drive-tiny.toml",
    "latency.csv",
    "report.html",
    "result.json",
    "smart",
    "summary.csv",
    "summary.parquet",
    "timeline.parquet",
];

/// A result without the keys that may differ from run to run: wall-clock times, and the command line itself.
fn comparable(mut value: Value) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(map) => {
                // What was laid over a description is in the description that repeats the run.
                map.retain(|key, _| !key.starts_with("wall_") && key != "command" && key != "overrides");
                map.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    strip(&mut value);
    value
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn a_run_prints_a_table_and_writes_every_file_and_no_other() {
    let bench = Bench::new();
    let done = bench.succeeds(&["run", "-d", "tiny.toml", "-w", SPEC, "-p", "fill", "--out", "deep/out"]);
    assert!(done.stdout.contains("write amplification"), "{}", done.stdout);
    assert!(done.stdout.contains("report.html"));
    assert_eq!(done.stderr, "", "in a pipe nothing but errors goes to standard error");
    assert_eq!(bench.listing("deep/out"), FILES);
    assert_eq!(bench.listing("deep/out/smart"), ["after.json", "before.json"]);
    let result = json(&bench.read("deep/out/result.json"));
    assert_eq!(result["complete"], true);
    assert_eq!(result["devices"][0]["name"], "tiny");
    assert!(bench.read("deep/out/latency.csv").starts_with("device,"));
    assert!(bench.read("deep/out/report.html").starts_with("<!doctype html>"));
}

/// A run of some seconds said nothing at all in a pipe: the reader of a log did not know whether it went on.
#[test]
fn in_a_pipe_progress_is_lines_unless_it_is_to_be_quiet() {
    let bench = Bench::new();
    let run = ["run", "-d", "tiny.toml", "-w", SPEC, "-p", "steady", "--no-snapshot"];
    let said = |more: &[&str], every: &str| {
        let mut command = bench.command(&[&run[..], more].concat());
        done(command.env("SSDLAB_PROGRESS_EVERY", every).output().expect("ssdlab starts"))
    };
    let often = said(&[], "1us");
    assert_eq!(often.status, 0, "{}", often.stderr);
    // The drive is filled at one go.
    for phase in ["preconditioning", "running"] {
        let line = often.stderr.lines().find(|line| line.starts_with(&format!("tiny: {phase}: ")));
        let line = line.unwrap_or_else(|| panic!("no line of {phase}: {}", often.stderr));
        assert!(line.ends_with(" s so far") && line.contains(" %, "), "{line}");
    }
    assert_eq!(said(&["--quiet"], "1us").stderr, "");
    assert_eq!(said(&[], "1h").stderr, "");
    let refused = said(&[], "seldom");
    assert_eq!(refused.status, 2, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("SSDLAB_PROGRESS_EVERY") && refused.stderr.contains("'seldom'"),
        "{}",
        refused.stderr
    );
}

#[test]
fn the_help_of_out_names_every_file_that_is_written() {
    let bench = Bench::new();
    let run = ["run", "-d", "tiny.toml", "-w", SPEC, "--out", "out", "--trace-window", "0ms..1ms"];
    bench.succeeds(&run);
    let help = bench.succeeds(&["run", "--help"]).stdout;
    let (_, out) = help.split_once("--out <DIR>").expect("the option");
    let (out, _) = out.split_once("\n  -").expect("the next option");
    let logs = bench.listing("out/smart").into_iter().map(|log| format!("smart/{log}"));
    let files = bench.listing("out").into_iter().filter(|name| name != "smart");
    for file in files.chain(logs) {
        let named = file.replace("drive-tiny", "drive-NAME");
        assert!(out.contains(&named), "{named}: {out}");
    }
}

#[test]
fn a_run_is_repeated_from_the_description_in_its_folder() {
    let bench = Bench::new();
    // Sets, presets and policies with keys of their own; and a second drive of the same name.
    let sets =
        ["1:gc.victim=d-choices", "1:gc.choices=3", "2:flash.timing=qlc", "2:ftl.design=dftl", "2:ftl.map_cache=100%"];
    let sets = sets.iter().flat_map(|set| ["--set", set]);
    let first = ["run", "-d", "tiny.toml", "tiny.toml", "-w", SPEC, "-p", "fill", "--out", "first"];
    bench.succeeds(&first.into_iter().chain(sets).collect::<Vec<_>>());
    let drives = ["first/drive-tiny.toml", "first/drive-tiny (2).toml"];
    bench.succeeds(&["run", "-d", drives[0], drives[1], "-w", SPEC, "-p", "fill", "--out", "second"]);
    let result = |folder| {
        let mut result = comparable(json(&bench.read(&format!("{folder}/result.json"))));
        // The second drive was told apart by its place, and has the name that it got so.
        result["devices"][1]["configuration"]["name"] = result["devices"][1]["name"].clone();
        result
    };
    assert_eq!(result("first"), result("second"));
    for file in [drives[0], drives[1]] {
        assert_eq!(bench.read(file), bench.read(&file.replace("first", "second")));
    }
}

#[test]
fn json_on_standard_output_is_the_result_file() {
    let bench = Bench::new();
    let done = bench.succeeds(&["run", "-d", "tiny.toml", "-w", SPEC, "--json", "--out", "out"]);
    assert_eq!(done.stdout, bench.read("out/result.json"));
    assert_eq!(json(&done.stdout)["format"], 2);
}

#[test]
fn the_same_command_gives_the_same_result_and_another_seed_another() {
    let bench = Bench::new();
    let run = |seed| {
        let done = bench.succeeds(&["run", "-d", "tiny.toml", "-w", SPEC, "--json", "--no-snapshot", "--seed", seed]);
        comparable(json(&done.stdout))
    };
    assert_eq!(run("5"), run("5"));
    assert_ne!(run("5")["devices"][0]["latency_ns"], run("6")["devices"][0]["latency_ns"]);
}

#[test]
fn several_drives_stand_side_by_side_and_overrides_reach_the_one_that_is_meant() {
    let bench = Bench::new();
    let done = bench.succeeds(&[
        "run",
        "--device",
        "tiny.toml",
        "tiny.toml",
        "--device",
        "tiny.toml",
        "--set",
        "2:name=two",
        "--set",
        "3:name=three",
        "--set",
        "two:gc.victim=fifo",
        "-w",
        SPEC,
        "--json",
    ]);
    let result = json(&done.stdout);
    let devices = result["devices"].as_array().expect("devices");
    let names: Vec<_> = devices.iter().map(|device| device["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["tiny", "two", "three"]);
    let victims: Vec<_> = devices.iter().map(|device| &device["configuration"]["gc"]["victim"]).collect();
    assert_eq!(victims, ["greedy", "fifo", "greedy"]);
}

#[test]
fn a_report_can_be_written_again_from_its_results() {
    let bench = Bench::new();
    bench.succeeds(&["run", "-d", "tiny.toml", "-w", SPEC, "--out", "out"]);
    let first = bench.read("out/report.html");
    std::fs::remove_file(bench.path("out/report.html")).expect("the report");
    let done = bench.succeeds(&["report", "out"]);
    assert!(done.stdout.contains("report.html"));
    assert_eq!(bench.read("out/report.html"), first);
    assert_eq!(bench.listing("out"), FILES);
}

#[test]
fn a_window_of_the_run_is_written_for_perfetto() {
    let bench = Bench::new();
    bench.succeeds(&["run", "-d", "tiny.toml", "-w", SPEC, "--out", "out", "--trace-window", "0..2ms"]);
    let trace = json(&bench.read("out/trace.json"));
    let events = trace["traceEvents"].as_array().or_else(|| trace.as_array()).expect("events");
    assert!(events.iter().any(|event| event["ph"] == "X"), "the window holds operations");
}

#[test]
fn a_limit_ends_the_run_after_so_many_requests() {
    let bench = Bench::new();
    bench.write("t.csv", "time_us,op,offset_bytes,length_bytes\n0,W,0,4096\n5,R,0,4096\n9,W,8192,512\n9,F,0,0\n");
    for limit in [1, 3, 4] {
        let done = bench.succeeds(&["run", "-d", "tiny.toml", "-w", "t.csv", "--json", "--limit", &limit.to_string()]);
        let requests = json(&done.stdout)["devices"][0]["requests"].clone();
        let sum: u64 =
            ["read", "write", "trim", "flush"].iter().map(|op| requests[op].as_u64().expect("a count")).sum();
        assert_eq!(sum, limit);
    }
}

/// Starts a command that writes into `out` and would take days, and interrupts it when it has begun.
fn interrupted(bench: &Bench, arguments: &[&str]) -> Done {
    let child = bench.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("ssdlab starts");
    // It listens before it tries the folder out.
    let began = Instant::now();
    while !bench.path("out").exists() {
        assert!(began.elapsed() < Duration::from_secs(60), "the run never began");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(500));
    let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
    assert!(kill.success());
    done(child.wait_with_output().expect("ssdlab ends"))
}

#[test]
fn a_run_that_is_interrupted_while_its_drive_ages_leaves_no_file_and_says_so() {
    let bench = Bench::new();
    for json in [&[][..], &["--json"]] {
        let arguments = ["run", "-d", "tiny.toml", "-w", SPEC, "--out", "out", "-p", "rw=randwrite,bs=4k,io_size=64t"];
        let done = interrupted(&bench, &[&arguments[..], json].concat());
        assert_eq!((done.status, done.stdout.as_str()), (1, ""), "{}", done.stderr);
        assert!(done.stderr.contains("before the first drive was ready"), "{}", done.stderr);
        assert!(done.stderr.contains("no file was written"), "{}", done.stderr);
        let kept = "note: tiny: preconditioning was stopped before its first checkpoint: nothing of it is kept";
        assert!(done.stderr.contains(kept), "{}", done.stderr);
        assert!(!bench.path("out").exists());
    }
}

/// Starts a command, kills it (`kill -9`) once the cache has a checkpoint that it had not before, and says which that is;
/// `None` if it came to its end before.
fn killed_behind_a_checkpoint(bench: &Bench, arguments: &[&str], before: Option<SystemTime>) -> Option<SystemTime> {
    let mut child = bench.command(arguments);
    child.env("SSDLAB_CHECKPOINT_EVERY", "1ms").stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = child.spawn().expect("ssdlab starts");
    loop {
        let ended = child.try_wait().expect("its status");
        let checkpoint = bench.listing("cache").into_iter().find(|name| name.ends_with(".checkpoint"));
        let written = checkpoint.and_then(|name| fs::metadata(bench.path("cache").join(name)).ok());
        let written = written.and_then(|metadata| metadata.modified().ok());
        if ended.is_some() {
            return None;
        }
        if written.is_some() && written != before {
            child.kill().expect("a process that has not been waited for");
            let ended = child.wait().expect("its status");
            return written.filter(|_| ended.code().is_none());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_run_that_is_killed_while_it_preconditions_goes_on_and_ends_as_one_that_was_not() {
    let bench = Bench::new();
    bench.write(
        "tied.toml",
        &format!("{TINY}[buffer]\npolicy = \"lru\"\nsize = \"128k\"\n[ftl]\nsuperblock = \"drive\"\n"),
    );
    let preconditioning = "rw=randwrite,bs=4k,size=100%,io_size=6g,norandommap";
    let arguments = ["run", "-d", "tied.toml", "-w", SPEC, "-p", preconditioning, "--json"];
    // A machine that is busy elsewhere may let the run end before its checkpoint is seen: then once more.
    let killed_twice = (0..10).any(|_| {
        let _ = fs::remove_dir_all(bench.path("cache"));
        let first = killed_behind_a_checkpoint(&bench, &arguments, None);
        first.is_some() && killed_behind_a_checkpoint(&bench, &arguments, first).is_some()
    });
    assert!(killed_twice, "it always ended before it could be killed");
    let left = bench.listing("cache");
    assert!(left.iter().any(|name| name.ends_with(".checkpoint")), "{left:?}");
    assert!(!left.iter().any(|name| name.ends_with(".snapshot")), "it was killed before the drive was ready: {left:?}");
    let resumed = bench.succeeds(&arguments);
    let whole = bench.succeeds(&[&arguments[..], &["--no-snapshot"]].concat());
    assert!(resumed.stderr.contains("tiny: preconditioning goes on from a checkpoint"), "{}", resumed.stderr);
    assert_eq!(comparable(json(&resumed.stdout)), comparable(json(&whole.stdout)));
    assert!(bench.listing("cache").iter().all(|name| !name.ends_with(".checkpoint")), "it came to its end");
}

#[test]
fn a_checkpoint_interval_that_is_no_time_is_refused() {
    let bench = Bench::new();
    let mut command = bench.command(&["run", "-d", "tiny.toml", "-w", SPEC]);
    let done = done(command.env("SSDLAB_CHECKPOINT_EVERY", "often").output().expect("ssdlab starts"));
    assert_eq!(done.status, 2, "{}", done.stderr);
    assert!(done.stderr.contains("SSDLAB_CHECKPOINT_EVERY") && done.stderr.contains("often"), "{}", done.stderr);
}

#[test]
fn a_host_stands_between_workload_and_drive() {
    let bench = Bench::new();
    bench.write("merging.toml", "[[layer]]\nkind = \"scheduler\"\ndepth = 1\nmerge_size = \"64k\"\n");
    let arguments = ["run", "-d", "tiny.toml", "-w", "rw=write,bs=4k,iodepth=16,size=100%", "--host", "merging.toml"];
    let table = bench.succeeds(&arguments).stdout;
    assert!(table.contains("host merging.toml") && table.contains("sent by the layers"), "{table}");
    let result = json(&bench.succeeds(&[&arguments[..], &["--json", "--verify"]].concat()).stdout);
    assert_eq!(result["host"], "merging.toml");
    let device = &result["devices"][0];
    let layer = &device["host_layers"][0];
    let requests = device["requests"]["write"].as_u64().expect("a count");
    let sent = layer["sent"]["requests"][1].as_u64().expect("a count");
    assert_eq!(layer["taken"]["requests"][1], requests);
    // One goes alone; the fifteen that come while it is in flight go together.
    assert!(sent * 7 < requests, "{sent} of {requests}");
    assert_eq!(layer["sent"]["bytes"], layer["taken"]["bytes"]);

    // Misaligned is what the workload sent, of which the host made other requests: the warning says of which it speaks.
    let small = ["run", "-d", "tiny.toml", "-w", "rw=write,bs=512,iodepth=16,size=1m"];
    let alone = bench.succeeds(&small).stdout;
    assert!(alone.contains("2048 (100 %) of the requests do not begin"), "{alone}");
    let below = [&small[..], &["--host", "merging.toml"]].concat();
    let table = bench.succeeds(&below).stdout;
    let result = json(&bench.succeeds(&[&below[..], &["--json"]].concat()).stdout);
    let sent = &result["devices"][0]["host_layers"][0]["sent"]["requests"][1];
    assert!(sent.as_u64().expect("a count") < 2048, "{sent}");
    assert!(table.contains("2048 (100 %) of the workload's requests do not begin"), "{table}");
    assert!(table.contains(&format!("the host layer issued {sent} requests for the workload's 2048")), "{table}");

    bench.write("wrong.toml", "[[layer]]\nkind = \"scheduler\"\ndepht = 1\n");
    for (file, found) in
        [("wrong.toml", "wrong.toml:3:1: layer[0].depht: found an unknown key"), ("none.toml", "none.toml")]
    {
        bench.refuses(&["run", "-d", "tiny.toml", "-w", SPEC, "--host", file], &[found]);
    }
}

#[test]
fn a_verified_run_has_the_check_and_the_same_figures() {
    let bench = Bench::new();
    let run = |extra: &[&str]| {
        let arguments = ["run", "-d", "tiny.toml", "-w", SPEC, "-p", "fill", "--json", "--set", "buffer.policy=lru"];
        json(&bench.succeeds(&[&arguments[..], &["--set", "buffer.size=64k"], extra].concat()).stdout)
    };
    let (plain, verified) = (run(&[]), run(&["--verify"]));
    let checks = |result: &Value| -> Vec<(String, bool)> {
        let checks = result["devices"][0]["checks"].as_array().expect("checks").iter();
        checks.map(|check| (check["name"].to_string(), check["passed"] == true)).collect()
    };
    let row = ("\"reads_return_what_was_written\"".to_string(), true);
    assert!(checks(&verified).contains(&row) && !checks(&plain).contains(&row), "{:?}", checks(&verified));
    for key in ["latency_ns", "write_amplification", "flash", "erases", "timeline"] {
        assert_eq!(plain["devices"][0][key], verified["devices"][0][key], "{key}");
    }
}

#[test]
fn a_window_in_which_nothing_happens_is_a_warning() {
    let bench = Bench::new();
    let run = ["run", "-d", "tiny.toml", "-w", SPEC, "--out", "out", "--trace-window", "500s..501s"];
    let done = bench.succeeds(&run);
    assert!(done.stdout.contains("no die was at work in the trace window"), "{}", done.stdout);
    assert!(bench.read("out/result.json").contains("trace window"));
}

#[test]
fn the_table_says_what_was_run_and_counts_trims_and_flushes_where_there_are_any() {
    let bench = Bench::new();
    bench.write(
        "t.csv",
        "time_us,op,offset_bytes,length_bytes\n0,W,0,4096\n5,T,0,4096\n9,W,8192,512\n9,F,0,0\n9,F,0,0\n",
    );
    let table = bench.succeeds(&["run", "-d", "tiny.toml", "-w", "t.csv", "--replay", "closed:2"]).stdout;
    assert!(table.starts_with("workload t.csv, replay closed:2, precondition none, seed 1\n"), "{table}");
    let row = |label: &str| {
        let row = table.lines().find_map(|line| line.strip_prefix(label));
        row.unwrap_or_else(|| panic!("no row '{label}' in:\n{table}")).trim().to_string()
    };
    assert_eq!(row("  trim / flush"), "1 / 2");
    assert_eq!(row("queue depth"), "32");
    let writes = bench.succeeds(&["run", "-d", "tiny.toml", "-w", SPEC]).stdout;
    assert!(!writes.contains("trim / flush") && writes.contains("replay fio, iodepth 4,"), "{writes}");
}

#[test]
fn a_clock_of_whole_seconds_is_noted_in_the_results() {
    let bench = Bench::new();
    let lines: String =
        (0..40).map(|number| format!("{},W,{},4096\n", number / 10 * 1_000_000, number * 4096)).collect();
    bench.write("t.csv", &format!("time_us,op,offset_bytes,length_bytes\n{lines}"));
    let timed = bench.succeeds(&["run", "-d", "tiny.toml", "-w", "t.csv", "--json"]);
    assert!(timed.stderr.contains("whole seconds"), "{}", timed.stderr);
    assert!(json(&timed.stdout)["notes"][0].as_str().is_some_and(|note| note.contains("closed:QD")));
    let closed = bench.succeeds(&["run", "-d", "tiny.toml", "-w", "t.csv", "--json", "--replay", "closed:4"]);
    assert_eq!((closed.stderr.as_str(), &json(&closed.stdout)["notes"]), ("", &Value::Array(Vec::new())));
}

#[test]
fn an_interrupted_run_leaves_its_results_marked_as_incomplete() {
    let bench = Bench::new();
    let done = interrupted(
        &bench,
        &["run", "-d", "tiny.toml", "-w", "rw=randwrite,bs=4k,iodepth=4,io_size=64t", "--out", "out"],
    );
    assert_eq!(done.status, 1, "{}", done.stderr);
    assert!(done.stderr.contains("interrupted"), "{}", done.stderr);
    assert_eq!(bench.listing("out"), FILES);
    let result = json(&bench.read("out/result.json"));
    assert_eq!(result["complete"], false);
    assert_eq!(result["devices"][0]["complete"], false);
    assert!(result["devices"][0]["requests"]["write"].as_u64() > Some(0));
    assert!(bench.read("out/report.html").contains("<b>Incomplete.</b>"));
}

#[test]
fn a_full_disk_is_reported_and_leaves_no_file_that_looks_whole() {
    let bench = Bench::new();
    let small = bench.path("small");
    std::fs::create_dir(&small).expect("a folder");
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
        .arg(&small)
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !mounted {
        println!("SKIPPED: a small tmpfs cannot be mounted here (needs root)");
        return;
    }
    let done = bench.ssdlab(&["run", "-d", "tiny.toml", "-w", SPEC, "--out", "small/out"]);
    let left = bench.listing("small/out");
    let unmounted = std::process::Command::new("umount").arg(&small).status().expect("umount");
    assert!(unmounted.success());
    assert_eq!(done.status, 1, "{}", done.stderr);
    assert!(done.stderr.contains("error: ") && done.stderr.contains("could not be written"), "{}", done.stderr);
    assert!(done.stdout.contains("write amplification"), "the results are at least shown");
    assert_eq!(left, [""; 0]);
}

#[test]
fn a_full_standard_output_is_an_error_and_a_closed_one_is_not() {
    let bench = Bench::new();
    if let Ok(full) = std::fs::File::options().write(true).open("/dev/full") {
        let done = done(bench.command(&["devices"]).stdout(full).output().expect("ssdlab starts"));
        assert_eq!(done.status, 1);
        assert!(done.stderr.contains("standard output could not be written"), "{}", done.stderr);
    } else {
        println!("SKIPPED: no /dev/full here");
    }
    let mut child =
        bench.command(&["devices"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("ssdlab starts");
    drop(child.stdout.take());
    let done = done(child.wait_with_output().expect("ssdlab ends"));
    assert_eq!((done.status, done.stderr.as_str()), (0, ""));
}

#[test]
fn drives_of_one_name_are_called_after_their_files_or_numbered_or_as_they_are_told() {
    let bench = Bench::new();
    bench.write("copy.toml", &bench.read("tiny.toml"));
    let spec = "rw=randwrite,bs=4k,iodepth=4,io_size=1m";
    let same = bench.succeeds(&["run", "-d", "tiny.toml", "tiny.toml", "-w", spec]);
    assert!(same.stdout.contains("tiny (2)"), "{}", same.stdout);
    let named = bench.succeeds(&["run", "-d", "tiny.toml", "tiny.toml", "-w", spec, "--set", "2:name=other"]);
    assert!(named.stdout.contains("other"), "{}", named.stdout);
    let filed = bench.succeeds(&["run", "-d", "tiny.toml", "copy.toml", "-w", spec]);
    assert!(filed.stdout.contains("copy"), "{}", filed.stdout);
}

#[test]
fn a_model_runs_as_a_trace_does_and_is_the_seeds() {
    let bench = Bench::new();
    let run = |seed: &str| {
        let workload = "model:msnfs,requests=2k,footprint=8m";
        let done = bench.succeeds(&["run", "-d", "tiny.toml", "-w", workload, "--seed", seed, "--json"]);
        let mut result: serde_json::Value = serde_json::from_str(&done.stdout).expect("JSON");
        result["devices"][0]["requests"].take()
    };
    let first = run("1");
    assert_eq!(first, run("1"));
    assert_ne!(first, run("2"));
    let stats = bench.succeeds(&["trace", "stats", "model:web,requests=1k"]);
    assert!(stats.stdout.contains("requests                 1,000\n"), "{}", stats.stdout);
    bench.refuses(&["run", "-d", "tiny.toml", "-w", "model:msnsf"], &["did you mean 'msnfs'?"]);
    bench.refuses(&["run", "-d", "tiny.toml", "-w", "model:msnfs"], &["the drive ends at", "--fit"]);
}

/// A drive whose dies are lost is read-only, and pages of its write buffer whose programs failed stay in RAM: it was
/// not taken for idle when it was read back.
#[test]
fn a_drive_that_is_read_only_with_pages_in_its_buffer_is_read_back() {
    let bench = Bench::new();
    let dead = "[flash]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 2\nplanes_per_die = 1\n\
                blocks_per_plane = 16\npages_per_block = 64\npage_size = 4096\ncell = \"slc\"\n[flash.faults]\n\
                script = [{ kind = \"die\", block = 22, nth = 1 }, { kind = \"die\", block = 0, nth = 2 }]\n\
                [capacity]\nuser = \"2400k\"\n[buffer]\npolicy = \"lru\"\nsize = \"4m\"\nhigh_watermark = \"1%\"\n";
    bench.write("dead.toml", dead);
    bench.succeeds(&["run", "-d", "dead.toml", "--verify", "-w", "rw=write,bs=4k,io_size=1m"]);
    let filled = ["run", "-d", "dead.toml", "--verify", "-p", "fill", "-w", "rw=write,bs=4k,io_size=1m"];
    bench.succeeds(&filled);
}

/// A mirror still had words of its bitmap on their way when it was switched to run without time.
#[test]
fn layers_below_layers_come_to_rest_before_they_are_switched() {
    let bench = Bench::new();
    let slow = "[flash]\nchannels = 3\nchips_per_channel = 2\ndies_per_chip = 2\nplanes_per_die = 1\n\
                blocks_per_plane = 16\npages_per_block = 32\npage_size = 4096\n[flash.timing]\nread = [\"1ns\"]\n\
                program = \"20ns\"\nerase = \"2081ns\"\nchannel_bandwidth = \"64k\"\n\
                [capacity]\nuser = 15099494\n[ftl]\nmapping_unit = 1024\n";
    bench.write("slow.toml", slow);
    let mirror = "{ kind = \"restoring\", log = 131072, below = [{ kind = \"mirror\", region = \"64k\" }] }";
    let stripe = format!("{{ kind = \"stripe\", below = [{mirror}, {{}}] }}");
    bench.write("host.toml", &format!("layer = [{{ kind = \"restoring\", log = 16384, below = [{stripe}] }}]\n"));
    bench.succeeds(&["run", "-d", "slow.toml", "-w", "rw=read,bs=512,number_ios=1", "--host", "host.toml"]);
}

/// What a mirror has still in the layers below when the run ends was counted by them, and not by the mirror.
#[test]
fn what_a_layer_has_in_flight_at_the_end_counts_on_neither_side() {
    let bench = Bench::new();
    let restoring = "{ kind = \"restoring\", log = 65536 }";
    let host = format!("layer = [{{ kind = \"mirror\", region = \"4k\", below = [{restoring}, {restoring}] }}]\n");
    bench.write("host.toml", &host);
    let rows = "0.0,ZF,909312,32768\n223.81,ZF,1036288,3584\n223.81,F,0,0\n223.81,W,239104,512\n\
                223.81,Z,578560,512\n";
    bench.write("w.csv", &format!("time_us,op,offset_bytes,length_bytes\n{rows}"));
    let command = ["run", "-d", "tiny.toml", "-w", "w.csv", "--wrap", "--host", "host.toml", "--no-snapshot"];
    bench.succeeds(&[&command[..], &["-p", "fill", "--replay", "timed*50"]].concat());
    // The write of a scheduler that a mirror's record waits for.
    bench.write("host.toml", "layer = [{ kind = \"mirror\", below = [{}, { kind = \"scheduler\" }] }]\n");
    let job = "rw=randrw,number_ios=2,fdatasync=1,fsync_on_close=1";
    bench.succeeds(&["run", "-d", "tiny.toml", "-w", job, "--host", "host.toml", "--no-snapshot"]);
}

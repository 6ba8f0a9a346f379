//! `torture`: campaigns, what they print, cases from files, and wrong input.

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use crate::support::{Bench, done};

/// A case that nothing is wrong with.
const CASE: &str = r#"
name = "small"
[torture]
format = 1
seed = 5
steps = [
  "write 0+8 depth=4",
  "flush",
  "trim 0+4 fua",
  "cut after=1 40%",
  "write 2+2",
  "drain",
  "cut",
]
[flash]
channels = 1
chips_per_channel = 1
dies_per_chip = 1
planes_per_die = 1
blocks_per_plane = 8
pages_per_block = 4
page_size = "1k"
cell = "slc"
[capacity]
user = "8k"
"#;

#[test]
fn a_campaign_ends_with_a_table_and_says_the_same_as_json_every_time() {
    let bench = Bench::new();
    let done = bench.succeeds(&["torture", "--seeds", "20", "--ops", "60"]);
    for row in ["seeds", "power cuts", "  in a program", "  in an erase", "  in recovery", "a power cut costs"] {
        assert!(done.stdout.lines().any(|line| line.starts_with(row)), "no row '{row}': {}", done.stdout);
    }
    assert!(done.stderr.is_empty(), "quiet in a pipe: {}", done.stderr);
    let json = |jobs| {
        let done = bench.succeeds(&["torture", "--seeds", "20", "--ops", "60", "--json", "--jobs", jobs]);
        let mut json: Value = serde_json::from_str(&done.stdout).expect("JSON");
        for measured in ["cuts_per_core_second", "recovery_us", "comparison_us", "wall_time_s"] {
            assert!(json["totals"][measured].as_f64() > Some(0.0), "{measured}: {json}");
            json["totals"][measured] = Value::Null;
        }
        json
    };
    let first = json("1");
    assert_eq!(first["totals"]["seeds"], 20);
    assert!(first["totals"]["cuts"]["total"].as_u64() > Some(20));
    assert_eq!(first["failed"], Value::Null);
    assert_eq!(first, json("3"));
}

#[test]
fn designs_buffers_a_drive_of_ones_own_and_short_sequences_can_be_asked_for() {
    let bench = Bench::new();
    bench.succeeds(&[
        "torture", "--design", "page", "--buffer", "none", "--buffer", "lru", "--seeds", "5", "--ops", "40",
    ]);
    let done = bench.succeeds(&["torture", "--device", "tiny.toml", "--set", "gc.victim=fifo", "--seeds", "3"]);
    assert!(done.stderr.contains("a small drive of its kind"), "{}", done.stderr);
    bench.succeeds(&["torture", "--exhaustive", "1"]);
    let timed = bench.succeeds(&["torture", "--until", "200ms", "--ops", "20", "--json"]);
    let timed: Value = serde_json::from_str(&timed.stdout).expect("JSON");
    assert!(timed["totals"]["seeds"].as_u64() > Some(0));
}

#[test]
fn commands_of_a_set_are_drawn_and_replayed_from_a_file() {
    let bench = Bench::new();
    let drawn = bench.succeeds(&["torture", "--command-set", "tags", "--seeds", "40", "--ops", "60", "--json"]);
    let drawn: Value = serde_json::from_str(&drawn.stdout).expect("JSON");
    assert!(drawn["totals"]["seeds"].as_u64() > Some(20), "{drawn}");
    assert!(drawn["totals"]["commands"].as_u64() > Some(1000), "{drawn}");
    assert_eq!(drawn["failed"], Value::Null);
    for set in ["cache", "segments", "shrd"] {
        let drawn = bench.succeeds(&["torture", "--command-set", set, "--seeds", "20", "--json"]);
        let drawn: Value = serde_json::from_str(&drawn.stdout).expect("JSON");
        assert!(drawn["totals"]["seeds"].as_u64() == Some(20) && drawn["failed"].is_null(), "{set}: {drawn}");
    }
    let of_set = "seed = 5\ncommand_set = \"tags\"\npayload = \"stamps\"\ndepth = 2";
    let steps = "\"tags:write-tagged 0+2 words=7\", \"acknowledge\", \"fail program\", \"cut\", \"drain\"";
    let (head, tail) = CASE.split_once("steps = [").expect("steps");
    let (_, drive) = tail.split_once("]\n").expect("the end of the steps");
    let case = format!("{head}steps = [{steps}]\n{drive}[ftl]\ndesign = \"tagged\"\n").replace("seed = 5", of_set);
    bench.write("set.toml", &case);
    let done = bench.succeeds(&["torture", "--replay", "set.toml"]);
    assert_eq!(done.stdout, "5 steps, 1 power cuts: nothing found\n");
    bench.write("wrong.toml", &case.replace("words=7", "word=7"));
    let part = "torture.steps: found step";
    bench.refuses(&["torture", "--replay", "wrong.toml"], &[part]);
    bench.write("page.toml", &case.replace("\"tagged\"", "\"page\""));
    bench.refuses(&["torture", "--replay", "page.toml"], &["page.toml", "does not take the command set 'tags'"]);
}

#[test]
fn file_systems_are_drawn_and_replayed_from_a_file() {
    let bench = Bench::new();
    let drawn = bench.succeeds(&["torture", "--fs", "alfs", "--seeds", "30", "--ops", "100", "--json"]);
    let drawn: Value = serde_json::from_str(&drawn.stdout).expect("JSON");
    assert!(drawn["totals"]["stack_cuts"]["all"].as_u64() > Some(50), "{drawn}");
    assert!(drawn["totals"]["cuts_by_work"]["checkpoint"].as_u64() > Some(5), "{drawn}");
    bench.succeeds(&["torture", "--fs", "alfs", "--exhaustive", "1"]);
    bench.succeeds(&["torture", "--fs", "alfs", "--fs-set", "cache=64k", "--fs-set", "logs=2", "--seeds", "5"]);
    bench.refuses(&["torture", "--fs", "ext9"], &["found the file system 'ext9'", "expected alfs"]);
    bench.refuses(&["torture", "--fs", "alfs", "--fs-set", "cach=64k"], &["cach", "cache"]);
    bench.refuses(&["torture", "--fs", "alfs", "--fs-set", "cache"], &["--fs-set 'cache'", "expected key=value"]);
    let case = include_str!("../../../torture/cases/files_timer_whose_time_has_passed.toml");
    bench.write("case.toml", case);
    let done = bench.succeeds(&["torture", "--replay", "case.toml"]);
    assert!(done.stdout.contains("nothing found"), "{}", done.stdout);
    bench.write("wrong.toml", &case.replace("create /n7", "create n7"));
    bench.refuses(&["torture", "--replay", "wrong.toml"], &["torture.steps: found step 'create n7'", "a path such as"]);
}

/// Only tests draw such cases; what one of them fails with is replayed by the command.
#[test]
fn cases_of_segments_and_of_a_log_are_replayed_from_a_file() {
    let bench = Bench::new();
    let case = |set: &str, steps: &str, design: &str| {
        let (head, tail) = CASE.split_once("steps = [").expect("steps");
        let (_, drive) = tail.split_once("]\n").expect("the end of the steps");
        let drive = drive.replace("blocks_per_plane = 8", "blocks_per_plane = 40");
        let head = head.replace("seed = 5", &format!("seed = 5\n{set}"));
        format!("{head}steps = [{steps}]\n{drive}[gc]\nfree_blocks = 3\n[ftl]\nallocation = \"dynamic\"\n{design}")
    };
    let steps = "\"write 0+2 renew\", \"append 0+5 fua\", \"break-gap 1+1\", \"read 0+1\", \"trim 0+1\", \"write 1+1\", \
                 \"cut after=2 recovery=50%\", \"drain\", \"fail program\", \"write 0+1\"";
    let segments = case("command_set = \"segments\"", steps, "design = \"aftl\"\n");
    bench.write("segments.toml", &segments);
    let done = bench.succeeds(&["torture", "--replay", "segments.toml"]);
    assert_eq!(done.stdout, "10 steps, 3 power cuts: nothing found\n");
    let steps = "\"twrite 1,2,5\", \"remap 0x3\", \"trim-dead\", \"write 3+4 fua\", \"read 1+1\", \"restore\", \"fail erase\", \
                 \"cut\", \"trim 0+2\", \"flush\"";
    let design = "design = \"shrd\"\nrwlb = \"4k\"\nmap_page = \"1k\"\n";
    bench.write("log.toml", &case("command_set = \"shrd\"\nvendor = true", steps, design));
    let done = bench.succeeds(&["torture", "--replay", "log.toml"]);
    assert_eq!(done.stdout, "10 steps, 2 power cuts: nothing found\n");
    assert!(done.stderr.contains("step 7 (\"fail erase\") never struck"), "{}", done.stderr);
    let wrong = [
        ("break-gap 1+1", "break-gap 1", "found step 'break-gap 1', expected a segment and a count such as 2+5"),
        ("\"segments\"", "\"segment\"", "torture.command_set: found \"segment\", expected one of tags, segments"),
        ("\"segments\"", "\"shrd\"", "torture.vendor: missing, expected true or false"),
        ("\"aftl\"", "\"page\"", "ftl.design: 'page' has neither segments nor zones"),
    ];
    for (from, to, expected) in wrong {
        bench.write("wrong.toml", &segments.replacen(from, to, 1));
        bench.refuses(&["torture", "--replay", "wrong.toml"], &["wrong.toml", expected]);
    }
}

#[test]
fn a_case_is_replayed_from_its_file() {
    let bench = Bench::new();
    bench.write("case.toml", CASE);
    let done = bench.succeeds(&["torture", "--replay", "case.toml"]);
    assert_eq!(done.stdout, "7 steps, 2 power cuts: nothing found\n");
}

#[test]
fn a_fault_of_a_case_that_never_strikes_is_told() {
    let bench = Bench::new();
    let steps = CASE.replace("  \"drain\",\n", "  \"fail program\",\n  \"fail erase block=7\",\n  \"drain\",\n");
    let script = "[[flash.faults.script]]\nkind = \"program\"\nblock = 6\nnth = 900\n[capacity]";
    bench.write("case.toml", &steps.replace("[capacity]", script));
    let done = bench.succeeds(&["torture", "--replay", "case.toml"]);
    let told: Vec<&str> = done.stderr.lines().collect();
    let [fault, step] = told[..] else { panic!("two warnings: {}", done.stderr) };
    assert!(
        fault.starts_with(
            "warning: the fault { kind = \"program\", block = 6, nth = 900 } never struck: that block saw "
        )
    );
    assert_eq!(step, "warning: step 7 (\"fail erase block=7\") never struck: no erase on block 7 came after it");
}

/// Torture drew such drives for ever, whatever --until said.
#[test]
fn drives_of_which_no_seed_has_a_case_are_refused() {
    let bench = Bench::new();
    let drive = |flash: &str, capacity: &str| {
        format!(
            "[flash]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
             blocks_per_plane = 12\npages_per_block = 8\npage_size = \"4k\"\ncell = \"slc\"\n{flash}[capacity]\n\
             user = \"{capacity}\"\n"
        )
    };
    let said = &["full.toml:10:1: capacity: too little over-provisioning: the drive must hold 96 units"];
    bench.write("full.toml", &drive("", "380k"));
    bench.write("mirror.toml", "[[layer]]\nkind = \"mirror\"\n");
    for more in [&[][..], &["--until", "2s"], &["--host", "mirror.toml"]] {
        bench.refuses(&[&["torture", "-d", "full.toml", "--seeds", "1"], more].concat(), said);
    }
    bench.refuses(&["run", "-d", "full.toml", "-w", "rw=read,number_ios=1"], said);
    // A drive with so few blocks in reserve is drawn no faults of its own.
    bench.write("bad.toml", &drive("[gc]\nfree_blocks = 2\n[flash.faults]\nfactory_bad = 0.5\n", "200k"));
    let told = ["bad.toml: none of 1000 drives", "seed 1", "over-provisioning", "flash.faults.factory_bad"];
    bench.refuses(&["torture", "-d", "bad.toml", "--seeds", "3", "--jobs", "2"], &told);
    // Layers that no drive has space for.
    bench.write("log.toml", "[[layer]]\nkind = \"restoring\"\nlog = \"64m\"\n");
    bench.write("disk.toml", "[[layer]]\nkind = \"scheduler\"\nbelow = [{ disk = \"wd1502faex\", size = \"75g\" }]\n");
    bench.refuses(
        &["torture", "--host", "disk.toml"],
        &["disk.toml: the disk wd1502faex", "75 GiB, expected at most 64 MiB"],
    );
    bench.refuses(&["torture", "--host", "log.toml", "--seeds", "1"], &["none of 2000 drives", "--device"]);
}

/// A finding was that a drive of which a die is lost takes no more writes, and its case could not be read.
#[test]
fn scripted_faults_of_every_kind_are_expected_and_can_be_steps() {
    let bench = Bench::new();
    for kind in ["read", "program", "erase", "factory", "die"] {
        let script = format!("[flash.faults]\nscript = [{{ kind = \"{kind}\", block = 4, nth = 1 }}]\n[capacity]");
        let case = CASE.replace("[capacity]", &script).replace("user = \"8k\"", "user = \"4k\"");
        bench.write("case.toml", &case);
        bench.succeeds(&["torture", "--replay", "case.toml"]);
        bench.write("drive.toml", &case[case.find("[flash]").expect("chips")..]);
        bench.succeeds(&["torture", "-d", "drive.toml", "--seeds", "10", "--ops", "60"]);
    }
    bench.write("case.toml", &CASE.replace("\"drain\"", "\"fail die block=2\""));
    let done = bench.succeeds(&["torture", "--replay", "case.toml"]);
    assert_eq!(done.stdout, "7 steps, 2 power cuts: nothing found\n");
    bench.write("case.toml", &CASE.replace("\"drain\"", "\"fail die\""));
    bench.refuses(&["torture", "--replay", "case.toml"], &["found step 'fail die'", "fail die and block=N"]);
}

#[test]
fn what_cannot_be_tortured_is_refused_with_what_was_expected() {
    let bench = Bench::new();
    bench.refuses(&["torture", "--design", "pgae"], &["--design: 'pgae' is not known", "page"]);
    bench.refuses(&["torture", "--buffer", "lur"], &["--buffer: 'lur' is not known", "lru"]);
    bench.refuses(&["torture", "--device", "nothing"], &["'nothing' is neither a file nor a drive"]);
    bench.refuses(&["torture", "--set", "gc.victim=fifo"], &["without --device"]);
    bench.refuses(&["torture", "--memory", "4g"], &["--memory: it limits the drives of --device and --replay"]);
    bench.write("mirror.toml", "[[layer]]\nkind = \"mirror\"\ndrives = 2\n");
    let stack =
        ["torture", "-d", "tiny.toml", "--host", "mirror.toml", "--seeds", "1", "--jobs", "1", "--memory", "1k"];
    let done = bench.ssdlab(&stack);
    assert_eq!(done.status, 2, "{}", done.stderr);
    assert!(done.stderr.contains("a stack of 2 drives: torture needs up to"), "{}", done.stderr);
    bench.refuses(&["torture", "--until", "5"], &["--until", "a time with its unit"]);
    bench.refuses(&["torture", "--replay", "missing.toml"], &["missing.toml: cannot be read"]);
    bench.refuses(&["torture", "--replay", "tiny.toml"], &["tiny.toml: found no table [torture]"]);
    let wrong = [
        (r#""drain","#, r#""drian","#, "wrong.toml:12: torture.steps: found step 'drian', expected read, write"),
        (r#""write 2+2","#, "\n  7,", "wrong.toml:12: torture.steps: found 7, expected a step as text"),
        ("format = 1", "format = 9", "torture.format: found 9, expected 1"),
        ("seed = 5", "", "torture.seed: missing"),
        ("[flash]", "[falsh]", "falsh"),
        ("channels = 1", "channels = 0", "wrong.toml:16:12: flash.channels: found 0"),
        ("channels = 1", "channels = ", "wrong.toml:16:12: not TOML"),
        (r#"user = "8k""#, r#"user = "31k""#, "too little over-provisioning"),
        ("steps = [", "stpes = [", "torture.steps: missing"),
    ];
    for (from, to, expected) in wrong {
        bench.write("wrong.toml", &CASE.replacen(from, to, 1));
        bench.refuses(&["torture", "--replay", "wrong.toml"], &["wrong.toml", expected]);
    }
}

/// A campaign that a signal ends has not passed, whatever it found so far.
#[test]
fn an_interrupted_campaign_is_no_success() {
    let bench = Bench::new();
    for kind in [&[][..], &["--stacks"], &["--command-set", "tags"], &["--exhaustive", "4"]] {
        for signal in ["-INT", "-TERM"] {
            let arguments = [&["torture", "--json"], kind].concat();
            let endless = ["--seeds", "1000000000"];
            let arguments =
                if kind.contains(&"--exhaustive") { arguments } else { [&arguments[..], &endless].concat() };
            let child = bench.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
            let child = child.expect("ssdlab starts");
            std::thread::sleep(Duration::from_millis(1500));
            let kill = std::process::Command::new("kill").args([signal, &child.id().to_string()]).status();
            assert!(kill.expect("kill").success());
            let ended = done(child.wait_with_output().expect("ssdlab ends"));
            assert_eq!(ended.status, 1, "{arguments:?}: {}{}", ended.stdout, ended.stderr);
            assert!(ended.stdout.contains("\"interrupted\": true"), "{arguments:?}: {}", ended.stdout);
        }
    }
}

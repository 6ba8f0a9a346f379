//! Whatever is wrong with the input: a sentence that names it, status 2, and nothing half-written.

use std::io::Write as _;
use std::process::Stdio;

use crate::support::{Bench, TINY, done};

const SPEC: &str = "rw=randwrite,bs=4k,iodepth=4,io_size=1m";

#[test]
fn a_missing_trace_is_named() {
    let bench = Bench::new();
    bench.refuses(&["run", "-d", "tiny.toml", "-w", "nowhere.csv", "--out", "out"], &["nowhere.csv"]);
    bench.refuses(&["trace", "stats", "nowhere.csv"], &["nowhere.csv"]);
    bench.refuses(&["trace", "head", "nowhere.csv"], &["nowhere.csv"]);
    bench.refuses(&["trace", "convert", "nowhere.csv", "there.csv"], &["nowhere.csv"]);
    assert!(!bench.path("out").exists());
    assert!(!bench.path("there.csv").exists());
}

/// Traces and captures are downloaded as archives: the error says so, and how to get at what is in one.
#[test]
fn an_archive_is_named_with_the_command_that_unpacks_it() {
    let bench = Bench::new();
    let mut tar = vec![0; 1024];
    tar[..8].copy_from_slice(b"day1.csv");
    tar[257..262].copy_from_slice(b"ustar");
    let mut tgz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    tgz.write_all(&tar).expect("a vector takes everything");
    std::fs::write(bench.path("day 1.tar"), &tar).expect("written");
    std::fs::write(bench.path("day1.tgz"), tgz.finish().expect("a vector takes everything")).expect("written");
    std::fs::write(bench.path("day1.zip"), b"PK\x03\x04 and so on").expect("written");
    for (file, within, command) in [
        ("day 1.tar", "a tar archive", "tar xOf 'day 1.tar'"),
        ("day1.tgz", "a tar archive in gzip", "tar xzOf day1.tgz"),
        ("day1.zip", "a zip archive", "unzip -p day1.zip"),
    ] {
        let piped = format!("`{command} | ssdlab trace stats -`");
        for arguments in [
            &["trace", "stats", file][..],
            &["trace", "head", file],
            &["trace", "convert", file, "there.csv"],
            &["run", "-d", "tiny.toml", "-w", file],
            &["run", "-d", "tiny.toml", "-w", SPEC, "-p", file],
        ] {
            bench.refuses(arguments, &[file, within, &piped]);
        }
    }
    bench.refuses(&["wa", "capture", "day1.tgz"], &["a tar archive in gzip", "`tar xzOf day1.tgz > CAPTURE`"]);
}

#[test]
fn a_missing_description_is_named_and_an_unknown_drive_lists_those_that_ship() {
    let bench = Bench::new();
    bench.refuses(&["run", "-d", "nowhere.toml", "-w", SPEC], &["nowhere.toml"]);
    bench.refuses(&["run", "-d", "no-such-drive", "-w", SPEC], &["no-such-drive", "demo-tlc"]);
    bench.refuses(&["devices", "no-such-drive"], &["no-such-drive", "demo-tlc"]);
}

#[test]
fn an_unknown_key_of_a_description_is_shown_with_its_place() {
    let bench = Bench::new();
    bench.write("slip.toml", &TINY.replace("channels = 2", "chanels = 2"));
    bench.refuses(&["run", "-d", "slip.toml", "-w", SPEC], &["slip.toml:4", "chanels"]);
    bench.refuses(&["run", "-d", "tiny.toml", "-w", SPEC, "--set", "gc.victm=fifo"], &["gc.victm"]);
    bench.refuses(&["run", "-d", "tiny.toml", "-w", SPEC, "--set", "nonsense"], &["nonsense"]);
    bench.refuses(&["run", "-d", "tiny.toml", "-w", SPEC, "--set", "gc.victim=fido"], &["fido"]);
    bench.refuses(&["run", "-d", "tiny.toml", "-w", SPEC, "--set", "3:gc.victim=fifo"], &["'3'", "tiny.toml"]);
}

#[test]
fn all_errors_of_a_description_are_told_in_one_run() {
    let bench = Bench::new();
    bench
        .write("slip.toml", &TINY.replace("channels = 2", "chanels = 2").replace("user = \"12m\"", "user = \"12 mb\""));
    let run = ["run", "-d", "slip.toml", "-w", SPEC, "--set", "gc.victim=fido"];
    let refused = bench.refuses(&run, &["slip.toml:4", "chanels", "capacity.user", "gc.victim"]);
    assert_eq!(refused.stderr.lines().last(), Some("3 errors"), "{}", refused.stderr);
    bench.write("host.toml", "[[layer]]\nkind = \"scheduler\"\ndepth = 0\n[[layer]]\nkind = \"strip\"\n");
    let host = ["run", "-d", "tiny.toml", "-w", SPEC, "--host", "host.toml"];
    bench.refuses(&host, &["host.toml:3:9: layer[0].depth", "host.toml:5:8: layer[1].kind", "2 errors"]);
}

#[test]
fn impossible_drives_are_refused_with_the_key() {
    let bench = Bench::new();
    for (from, to, key) in [
        ("pages_per_block = 32", "pages_per_block = 0", "pages_per_block"),
        ("channels = 2", "channels = 0", "channels"),
        ("page_size = \"4k\"", "page_size = \"0\"", "page_size"),
        ("user = \"12m\"", "user = \"0\"", "capacity"),
        ("user = \"12m\"", "user = \"1t\"", "capacity"),
        ("user = \"12m\"", "over_provisioning = \"0%\"", ""),
        ("blocks_per_plane = 64", "blocks_per_plane = 99999999999999999999", "blocks_per_plane"),
    ] {
        let text = TINY.replace(from, to);
        assert_ne!(text, TINY);
        bench.write("bad.toml", &text);
        bench.refuses(&["run", "-d", "bad.toml", "-w", SPEC, "--out", "out"], &[key]);
        assert_eq!(bench.listing("out"), [""; 0]);
    }
}

#[test]
fn a_configuration_that_cannot_work_is_refused_with_the_place_of_the_key() {
    let bench = Bench::new();
    let text = format!("{TINY}\n[ftl]\ndesign = \"dftl\"\nmap_cache = \"4k\"\n");
    let line = format!("small.toml:{}:13", text.lines().count());
    bench.write("small.toml", &text);
    let run = ["run", "-d", "small.toml", "-w", SPEC];
    bench.refuses(&run, &[&line, "ftl.map_cache", "holds 1 map page of 4 KiB", "8 KiB"]);
    bench.refuses(&["torture", "-d", "small.toml", "--seeds", "1"], &[&line, "holds 1 map page of 4 KiB"]);
    let serve = ["serve", "-d", "small.toml", "--image", "image", "--nbd", "unix:nbd.sock"];
    bench.refuses(&serve, &[&line, "holds 1 map page of 4 KiB"]);
    assert!(!bench.path("image").exists(), "a drive that is refused leaves no image");
    let run = ["run", "-d", "tiny.toml", "-w", SPEC, "--set", "ftl.design=dftl", "--set", "ftl.map_cache=4k"];
    bench.refuses(&run, &["--set 'ftl.map_cache=4k'", "holds 1 map page of 4 KiB"]);
    let wide = TINY.replace("user = \"12m\"", "user = \"15.9m\"");
    let line = wide.lines().position(|line| line.starts_with("[capacity]")).expect("a table") + 1;
    bench.write("wide.toml", &wide);
    bench.refuses(
        &["run", "-d", "wide.toml", "-w", SPEC],
        &[&format!("wide.toml:{line}:1"), "too little over-provisioning"],
    );
}

#[test]
fn a_malformed_line_of_a_trace_is_named_and_leaves_nothing_behind() {
    let bench = Bench::new();
    bench.write("bad.csv", "time_us,op,offset_bytes,length_bytes\n0,W,0,4096\n1,W,4096,four\n");
    let run = ["run", "-d", "tiny.toml", "-w", "bad.csv", "--out", "out"];
    bench.refuses(&run, &["bad.csv", "3", "four"]);
    bench.refuses(&["trace", "stats", "bad.csv"], &["bad.csv", "3"]);
    bench.refuses(&["trace", "convert", "bad.csv", "there.csv"], &["bad.csv", "3"]);
    assert_eq!(bench.listing("out"), [""; 0]);
    assert!(!bench.path("there.csv").exists());
}

#[test]
fn a_time_that_no_run_reaches_is_refused_with_line_and_column() {
    let bench = Bench::new();
    // 584 years: it fits 64 bits of nanoseconds, but nothing that a drive adds to it does.
    for late in ["18446744073709551", "18446744073709551615"] {
        bench.write("late.csv", &format!("time_us,op,offset_bytes,length_bytes\n0,W,0,4096\n{late},W,4096,4096\n"));
        let place = format!("late.csv:3: found the time `{late}` in column 1");
        bench.refuses(&["run", "-d", "tiny.toml", "-w", "late.csv", "--out", "out"], &[&place]);
        bench.refuses(&["run", "-d", "tiny.toml", "-w", "late.csv", "--replay", "closed:1"], &[&place]);
        bench.refuses(&["trace", "stats", "late.csv"], &[&place]);
        bench.refuses(&["trace", "convert", "late.csv", "there.iolog"], &[&place]);
    }
    bench.write("far.csv", "time_us,op,offset_bytes,length_bytes\n0,W,0,4096\n946728000000000,W,4096,4096\n");
    let run = ["run", "-d", "tiny.toml", "-w", "far.csv", "--replay", "timed*3"];
    bench.refuses(&run, &["far.csv lasts 946728000 s; replayed timed*3 it would end beyond the horizon", "73 years"]);
    let run = |workload| ["run", "-d", "tiny.toml", "-w", workload];
    bench.refuses(&run("rw=write,bs=4k,io_size=64k,thinktime=25000d"), &["after request 2", "136 years"]);
    bench.refuses(&run("rw=write,bs=1m,size=8m,rate=1k,thinktime=30000d"), &["thinktime=30000d"]);
    bench.write("slow.fio", "[a]\nrw=write\nbs=4k\nio_size=64k\nruntime=30000d\n");
    bench.refuses(&run("slow.fio"), &["slow.fio:5", "30000d"]);
    for (key, value) in [("gc.idle_after", "30000000min"), ("interface.command_overhead", "18446744073709551us")] {
        let set = format!("{key}={value}");
        bench.refuses(&["run", "-d", "tiny.toml", "-w", SPEC, "--set", &set], &[key, value]);
    }
    bench.refuses(&["torture", "--until", "18446744073709551us"], &["--until", "less than 73 years"]);
    let window = ["run", "-d", "tiny.toml", "-w", SPEC, "--out", "out", "--trace-window", "0..18446744073709551us"];
    bench.refuses(&window, &["less than 73 years"]);
    assert_eq!(bench.listing("out"), [""; 0]);
}

#[test]
fn a_size_with_two_readings_is_refused_with_both() {
    let bench = Bench::new();
    for (size, readings) in [
        ("1tb", "1TB (1000000000000 bytes) or 1TiB (1099511627776 bytes)"),
        ("12MiB", ""),
        ("12mb", "12MB (12000000 bytes) or 12MiB (12582912 bytes)"),
    ] {
        let set = format!("capacity.user={size}");
        let run = ["run", "-d", "tiny.toml", "-w", SPEC, "--quiet", "--set", &set];
        match readings {
            "" => assert!(bench.succeeds(&run).stdout.contains("tiny")),
            _ => assert!(bench.refuses(&run, &["capacity.user", size, readings]).stdout.is_empty()),
        }
    }
    // Decimal and binary units are what they say: 12,288,000 bytes are 3000 mapping units, 12,000,000 are none.
    let user =
        |size: &str| bench.ssdlab(&["run", "-d", "tiny.toml", "-w", SPEC, "--set", &format!("capacity.user={size}")]);
    assert_eq!(user("12288kB").status, 0);
    assert_eq!(user("12000KiB").status, 0);
    bench.refuses(
        &["run", "-d", "tiny.toml", "-w", SPEC, "--set", "interface.bandwidth=500mb/s"],
        &["500MB (", "500MiB ("],
    );
    bench.refuses(&["run", "-d", "tiny.toml", "-w", SPEC, "--subtests", "2x1Mb"], &["1MB (1000000 bytes) or 1MiB"]);
}

#[test]
fn a_request_without_length_is_an_error_with_its_line() {
    let bench = Bench::new();
    bench.write("zero.csv", "time_us,op,offset_bytes,length_bytes\n0,W,0,4096\n1,W,4096,0\n");
    bench.refuses(&["run", "-d", "tiny.toml", "-w", "zero.csv"], &["zero.csv", "3"]);
}

#[test]
fn a_file_in_which_nothing_is_recognised_is_an_error() {
    let bench = Bench::new();
    bench.write("prose.txt", "It was a dark and stormy night;\nthe rain fell in torrents.\n");
    bench.write("empty.csv", "");
    bench.write("header.csv", "time_us,op,offset_bytes,length_bytes\n");
    for file in ["prose.txt", "empty.csv", "header.csv"] {
        bench.refuses(&["run", "-d", "tiny.toml", "-w", file], &[file]);
        bench.refuses(&["trace", "stats", file], &[file]);
    }
}

#[test]
fn a_trace_larger_than_the_drive_offers_wrap_and_fit_and_both_work() {
    let bench = Bench::new();
    bench.write("far.csv", "time_us,op,offset_bytes,length_bytes\n0,W,0,4096\n9,W,1099511627776,4096\n");
    let run = ["run", "-d", "tiny.toml", "-w", "far.csv", "--out", "out"];
    bench.refuses(&run, &["--wrap", "--fit"]);
    assert_eq!(bench.listing("out"), [""; 0]);
    for way in ["--wrap", "--fit"] {
        let done = bench.succeeds(&["run", "-d", "tiny.toml", "-w", "far.csv", "--json", way]);
        let result: serde_json::Value = serde_json::from_str(&done.stdout).expect("JSON");
        assert_eq!(result["devices"][0]["requests"]["write"], 2);
    }
}

#[test]
fn an_unknown_and_an_unsupported_key_of_fio_are_told_apart() {
    let bench = Bench::new();
    bench.refuses(&["run", "-d", "tiny.toml", "-w", "rw=randwrite,blocksise=4k"], &["blocksise"]);
    bench.refuses(&["run", "-d", "tiny.toml", "-w", "rw=randwrite,bs=4k,verify=md5"], &["verify"]);
    bench.write("job.fio", "[a]\nrw=randwrite\nbs=banana\n");
    bench.refuses(&["run", "-d", "tiny.toml", "-w", "job.fio"], &["job.fio", "3", "banana"]);
}

#[test]
fn words_that_are_not_understood_are_refused() {
    let bench = Bench::new();
    let with = |extra: [&'static str; 2]| ["run", "-d", "tiny.toml", "-w", SPEC, extra[0], extra[1]];
    bench.refuses(&with(["--precondition", "stedy"]), &["stedy", "steady"]);
    bench.refuses(&with(["--replay", "fast"]), &["fast", "closed"]);
    bench.refuses(&with(["--replay", "closed:0"]), &["closed"]);
    bench.refuses(&with(["--limit", "0"]), &["limit"]);
    bench.refuses(&with(["--seed", "-1"]), &["-1"]);
    bench.refuses(&["run", "-d", "tiny.toml", "-w", SPEC, "--out", "o", "--trace-window", "5ms..1ms"], &["5ms..1ms"]);
    bench.refuses(&["run", "-d", "tiny.toml", "-w", "format=nonsense:tiny.toml"], &["nonsense"]);
    assert!(!bench.path("o").exists());
}

#[test]
fn results_that_are_not_there_or_not_results_are_refused() {
    let bench = Bench::new();
    bench.refuses(&["report", "nowhere"], &["nowhere", "--out"]);
    std::fs::create_dir(bench.path("odd")).expect("a folder");
    for text in ["", "{}", "[1, 2", "{\"format\": 99}", "\u{0}"] {
        bench.write("odd/result.json", text);
        bench.refuses(&["report", "odd"], &["result.json"]);
    }
    assert_eq!(bench.listing("odd"), ["result.json"]);
}

#[test]
fn an_output_folder_that_is_a_file_is_refused_before_the_run() {
    let bench = Bench::new();
    for folder in ["tiny.toml", "tiny.toml/below"] {
        let run = ["run", "-d", "tiny.toml", "-w", SPEC, "--out", folder];
        let refused = bench.refuses(&run, &["tiny.toml is a file, expected a folder"]);
        assert!(!refused.stderr.contains("os error"), "{}", refused.stderr);
    }
    assert_eq!(bench.read("tiny.toml"), TINY);
}

#[test]
fn a_trace_is_not_converted_onto_itself() {
    let bench = Bench::new();
    let text = "time_us,op,offset_bytes,length_bytes\n0,W,0,4096\n";
    bench.write("a.csv", text);
    bench.refuses(&["trace", "convert", "a.csv", "a.csv"], &["a.csv"]);
    assert_eq!(bench.read("a.csv"), text);
    bench.refuses(&["trace", "convert", "a.csv", "a.parquet"], &["--to"]);
}

#[test]
fn a_description_that_ships_is_no_file_and_all_that_it_lacks_is_told_at_once() {
    let bench = Bench::new();
    let suspends = ["run", "-d", "demo-tlc", "-w", SPEC, "--set", "flash.program_suspend=true"];
    let done =
        bench.refuses(&suspends, &["shipped description demo-tlc:", "'suspend' is missing", "'resume' is missing"]);
    assert!(!done.stderr.contains("demo-tlc.toml"), "{}", done.stderr);
    let scope =
        |set| bench.refuses(&["run", "-d", "tiny.toml", "-w", SPEC, "--set", set], &["no drive of this run"]).stderr;
    assert!(scope("2:gc.victim=fifo").contains("hint: the only drive is tiny.toml, or 1\n"));
}

#[test]
fn a_folder_and_a_named_pipe_are_no_traces() {
    let bench = Bench::new();
    bench.refuses(&["run", "-d", "tiny.toml", "-w", "."], &[". is a folder"]);
    let made = std::process::Command::new("mkfifo").arg(bench.path("pipe")).status().expect("mkfifo");
    assert!(made.success());
    // No process ever writes to it: opening it would wait for ever.
    bench.refuses(&["run", "-d", "tiny.toml", "-w", "pipe"], &["pipe is not a regular file", "-w - < pipe"]);
}

#[test]
fn what_nearly_fits_is_suggested() {
    let bench = Bench::new();
    bench.refuses(&["run", "-d", "demo-tlk", "-w", SPEC], &["did you mean 'demo-tlc'?", "demo-qlc"]);
    bench.refuses(&["devices", "demo-tcl"], &["did you mean 'demo-tlc'?"]);
    bench.refuses(&["run", "-d", "tiny.toml", "-w", SPEC, "--set", "gc.victim=gready"], &["did you mean 'greedy'?"]);
    bench.refuses(&["run", "-d", "tiny.toml", "-w", SPEC, "--set", "gc.victm=greedy"], &["did you mean 'victim'?"]);
    bench.refuses(&["run", "-d", "tiny.toml", "-w", SPEC, "--set", "gc.pace=off"], &["did you mean 'pacing'?"]);
    bench.refuses(
        &["run", "-d", "tiny.toml", "-w", SPEC, "-p", "stead"],
        &["--precondition: found ", "expected none, fill, footprint, steady", "hint: did you mean 'steady'?"],
    );
    let a_file = bench.refuses(&["run", "-d", "tiny.toml", "-w", SPEC, "-p", "./fil"], &["--precondition takes"]);
    assert!(!a_file.stderr.contains("did you mean"), "{}", a_file.stderr);
    let nothing_near = bench.refuses(&["run", "-d", "unheard-of", "-w", SPEC], &["demo-tlc"]);
    assert!(!nothing_near.stderr.contains("did you mean"), "{}", nothing_near.stderr);
}

#[test]
fn a_job_that_is_taken_for_a_trace_is_told_what_it_lacks() {
    let bench = Bench::new();
    bench.write("job.txt", "[global]\nbs=4k\n[a]\nrw=randwrite\n");
    bench.refuses(&["run", "-d", "tiny.toml", "-w", "job.txt"], &["fio job file", "job.fio"]);
    bench.refuses(&["run", "-d", "tiny.toml", "-w", "bs=4k,iodepth=32"], &["rw=randwrite,bs=4k,iodepth=32"]);
    bench.refuses(&["run", "-d", "tiny.toml", "-w", "randwrite"], &["write rw=randwrite"]);
    bench.write("header.csv", "time_us,op,offset_bytes,length_bytes\n");
    bench.refuses(&["run", "-d", "tiny.toml", "-w", "header.csv"], &["no request in it", "12.5,W,4096,8192"]);
}

#[test]
fn every_missing_key_of_a_description_is_told_at_once() {
    let bench = Bench::new();
    bench.write("part.toml", "[flash]\nchannels = 2\n");
    let keys =
        ["flash.dies_per_chip: missing", "flash.page_size: missing", "flash.timing: missing", "capacity: missing"];
    bench.refuses(&["run", "-d", "part.toml", "-w", SPEC], &keys);
}

#[test]
fn a_single_file_goes_only_into_a_folder_that_is_there() {
    let bench = Bench::new();
    let gone = "this folder does not exist";
    bench.refuses(&["run", "-d", "tiny.toml", "-w", SPEC, "--vcd", "nodir/x.vcd"], &["nodir", gone]);
    bench.write("good.csv", "time_us,op,offset_bytes,length_bytes\n0,W,0,4096\n");
    bench.refuses(&["trace", "convert", "good.csv", "nodir/deep/o.csv"], &["nodir/deep", gone]);
    assert!(!bench.path("nodir").exists());
    // A run's own folder is made.
    bench.succeeds(&["run", "-d", "tiny.toml", "-w", SPEC, "--out", "deep/out", "--vcd", "x.vcd", "--quiet"]);
    assert!(bench.path("deep/out/result.json").exists() && bench.path("x.vcd").exists());
}

#[test]
fn options_of_a_trace_that_are_misspelt_or_misplaced_are_told() {
    let bench = Bench::new();
    bench.write("t.csv", "time_us,op,offset_bytes,length_bytes\n0,W,0,4096\n");
    for (trace, expected) in [
        ("formt=csv:t.csv", "'formt=csv:t.csv' is no file: found 'formt=', expected"),
        ("formt=csv:t.csv", "did you mean 'format=', as in 'format=...:PATH'?"),
        ("t.csv,formt=csv:x", "did you mean 'format='"),
        ("t.csv,format=csv", "options stand before a trace's path, as in 'format=...:PATH'"),
        ("format=csv,ordre=file:t.csv", "`ordre` before a trace's path is not an option"),
        ("format=csv,ordre=file:t.csv", "did you mean 'order='?"),
    ] {
        bench.refuses(&["trace", "stats", trace], &[expected]);
        bench.refuses(&["run", "-d", "tiny.toml", "-w", trace], &[expected]);
    }
    let missing = bench.refuses(&["trace", "stats", "missing.csv"], &["missing.csv"]);
    assert!(!missing.stderr.contains("did you mean"), "{}", missing.stderr);
}

#[test]
fn what_is_to_be_reproduced_is_asked_for_with_the_papers_there_are() {
    let bench = Bench::new();
    bench.refuses(
        &["reproduce"],
        &["found no PAPER[/FIGURE], expected one or more of waflash, write-amplification", "reproduce --list"],
    );
    bench.refuses(&["reproduce", "waflash", "--jobs", "x"], &["'x'", "expected a whole number from 1 to 1024"]);
    bench.refuses(&["trace", "head", "t.csv", "-n", "x"], &["'x'", "expected a whole number"]);
}

/// A waveform, a probe and a trace window are of one drive's chips: with several, part of the run would be missing.
#[test]
fn what_watches_one_drive_refuses_a_host_with_others() {
    let bench = Bench::new();
    bench.write("two.toml", "[[layer]]\nkind = \"stripe\"\nchunk = \"64k\"\ndrives = 2\n");
    bench.write("other.toml", "[[layer]]\nkind = \"scheduler\"\n[[layer.below]]\ndrive = \"second.toml\"\n");
    bench.write("second.toml", &crate::support::TINY.replace("\"tiny\"", "\"second\""));
    bench.write("one.toml", "[[layer]]\nkind = \"scheduler\"\n");
    let watching = [&["--vcd", "x.vcd"][..], &["--rb-probe", "0"], &["--trace-window", "0s..1ms", "--out", "out"]];
    for options in watching {
        let run = |host| [&["run", "-d", "tiny.toml", "-w", SPEC, "--quiet", "--host", host], options].concat();
        bench.refuses(
            &run("two.toml"),
            &["--vcd, --rb-probe and --trace-window watch one drive", "found a host with 2"],
        );
        bench.succeeds(&run("one.toml"));
    }
    let other = ["run", "-d", "tiny.toml", "-w", SPEC, "--vcd", "y.vcd", "--host", "other.toml"];
    bench.refuses(&other, &["found a host with the drive second"]);
    assert!(bench.path("x.vcd").exists() && !bench.path("y.vcd").exists());
}

#[test]
fn sentences_of_refusals_are_whole() {
    let bench = Bench::new();
    let run = |workload| ["run", "-d", "tiny.toml", "-w", workload];
    bench.refuses(&run("model:nope"), &["'nope' is neither a file nor a model that ships. These ship: "]);
    let subtests = |list| [&run(SPEC)[..], &["--subtests", list]].concat();
    bench.refuses(&subtests("0x1m"), &["found '0x1m', 0 sub-tests, expected"]);
    bench.refuses(&subtests("2x0"), &["found '2x0', 0 bytes, expected"]);
    bench.write("two.csv", "Time [s],a,b\n0,1,1\n1,0,1\n");
    bench.refuses(
        &["wa", "capture", "two.csv", "--geometry", "1x1x1x1"],
        &["two.csv: 2 lines, and a drive of 1x1x1x1 has 1 die\n"],
    );
    bench.write("nan.csv", "time_us,op,offset_bytes,length_bytes\nnan,W,0,4096\n");
    bench.refuses(&run("nan.csv"), &["nan.csv:2: found time_us `nan`", "expected a decimal number"]);
}

#[test]
fn a_mountpoint_that_cannot_be_one_is_refused_before_there_is_an_image() {
    let bench = Bench::new();
    bench.write("file", "");
    for (mountpoint, problem) in [("missing", "No such file or directory"), ("file", "not a directory")] {
        let mount = ["mount", "-d", "tiny.toml", "--image", "image", mountpoint];
        bench.refuses(&mount, &["mountpoint", mountpoint, problem]);
        assert!(!bench.path("image").exists());
    }
}

#[test]
fn block_io_to_append_only_segments_is_refused_with_the_place_of_the_design() {
    let bench = Bench::new();
    let ftl = "[ftl]\ndesign = \"aftl\"\nallocation = \"dynamic\"\nsuperblock = \"none\"\n[gc]\npacing = \"off\"\n";
    let text = format!("{TINY}\n{ftl}");
    let line = text.lines().position(|line| line.contains("aftl")).map_or(0, |index| index + 1);
    let place = format!("segments.toml:{line}:");
    bench.write("segments.toml", &text);
    let run = ["run", "-d", "segments.toml", "-w", SPEC];
    bench.refuses(&run, &[&place, "ftl.design", "only appends to its segments", "put the layer 'append' above it"]);
    std::fs::create_dir(bench.path("mountpoint")).expect("a directory");
    let mount = ["mount", "-d", "segments.toml", "--image", "image", "mountpoint"];
    let hint = "--file without --fs";
    bench.refuses(&mount, &[&place, "only appends to its segments", "the layer 'append'", hint]);
    bench.refuses(&[&mount[..], &["--file", "--fs", "ext4"]].concat(), &["only appends to its segments", hint]);
    assert!(!bench.path("image").exists(), "a drive that is refused leaves no image");
    let torture = ["torture", "-d", "segments.toml", "--seeds", "1"];
    bench.refuses(&torture, &["aftl", "only appends to segments", "the layer 'append'", "--test it segments::"]);
    bench.refuses(&["torture", "--design", "aftl", "--seeds", "1"], &["--design", "only appends to segments"]);
    bench.write("zones.toml", &text.replace("\"aftl\"", "\"aftl-zoned\""));
    let place = format!("zones.toml:{line}:");
    bench.refuses(&["run", "-d", "zones.toml", "-w", SPEC], &["the drive has zones", "use zonemode=zbd"]);
    let run = |workload| ["run", "-d", "zones.toml", "-w", workload];
    bench.refuses(&run("model:msnfs"), &[&place, "ftl.design", "zonemode=zbd"]);
    bench.write("appnd.csv", "time_us,op,offset_bytes,length_bytes\n0,zoned:appnd,0,4096\n");
    bench.refuses(&run("appnd.csv"), &["appnd.csv:2", "'appnd'", "append"]);
    bench.write("behind.csv", "time_us,op,offset_bytes,length_bytes\n0,zoned:append,1099511627776,4096\n");
    bench.refuses(&run("behind.csv"), &["beyond the drive"]);
    let serve = ["serve", "-d", "zones.toml", "--image", "image", "--nbd", "unix:nbd.sock"];
    bench.refuses(&serve, &[&place, "a drive with zones cannot be served"]);
    for size in ["ftl.zone_size=3m", "ftl.zone_size=4k"] {
        let run = ["run", "-d", "zones.toml", "-w", "rw=write,bs=64k,zonemode=zbd", "--set", size];
        bench.refuses(&run, &["ftl.zone_size", "a power of two"]);
    }
    // A segment is a block of each die.
    let serve = ["serve", "-d", "segments.toml", "--image", "image", "--nbd", "unix:nbd.sock"];
    bench.refuses(
        &[&serve[..], &["--set", "capacity.user=9100k"]].concat(),
        &["capacity.user", "expected whole segments"],
    );
}

/// Devices without an end, and what only looks like a file: each is refused with what was expected.
#[test]
fn descriptions_without_an_end_are_refused() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("results")).expect("a folder for the test");
    for name in ["zero.fio", "zero.toml", "results/result.json"] {
        std::os::unix::fs::symlink("/dev/zero", bench.path(name)).expect("a link for the test");
    }
    let description = "/dev/zero: found more than 1048576 bytes, expected a description";
    let job = "zero.fio: found more than 16777216 bytes, expected a fio job file";
    let run = ["run", "-d", "tiny.toml", "-w"];
    for (arguments, expected) in [
        (&[&run[..], &[SPEC, "--host", "/dev/zero"]].concat()[..], &format!("--host {description}")[..]),
        (&["run", "-d", "/dev/zero", "-w", SPEC], description),
        (&["devices", "--toml", "/dev/zero"], description),
        (&["torture", "--replay", "/dev/zero"], description),
        (&["torture", "--host", "/dev/zero"], description),
        (
            &["serve", "-d", "tiny.toml", "--host", "/dev/zero", "--image", "image", "--nbd", "unix:nbd.sock"],
            description,
        ),
        (&[&run[..], &["zero.fio"]].concat(), job),
        (&[&run[..], &[SPEC, "-p", "zero.fio"]].concat(), job),
        (&[&run[..], &["model:zero.toml"]].concat(), "zero.toml: found more than 1048576 bytes, expected a model"),
        (&[&run[..], &["/dev/zero"]].concat(), "/dev/zero is not a regular file"),
        (&["files", "./zero.toml", "--dir", "."], "zero.toml: found more than 1048576 bytes, expected a personality"),
        (&["report", "results"], "results/result.json could not be read: it is not a regular file"),
    ] {
        bench.refuses(arguments, &[expected]);
    }
    assert!(!bench.path("image").exists(), "a server that is refused leaves no image");
}

#[test]
fn text_in_utf_16_is_named_and_utf_8_is_expected() {
    let bench = Bench::new();
    let wide = |name: &str, text: &str| {
        let words = text.encode_utf16().flat_map(u16::to_le_bytes);
        std::fs::write(bench.path(name), [0xff, 0xfe].into_iter().chain(words).collect::<Vec<u8>>()).expect("written");
    };
    wide("wide.toml", TINY);
    wide("host.toml", "[[layer]]\nkind = \"scheduler\"\n");
    wide("job.fio", "[job]\nrw=write\n");
    wide("trace.csv", "time_us,op,offset_bytes,length_bytes\n0,W,0,4096\n");
    for (arguments, file, expected) in [
        (&["run", "-d", "wide.toml", "-w", SPEC][..], "wide.toml", "a description"),
        (&["devices", "--toml", "wide.toml"], "wide.toml", "a description"),
        (&["run", "-d", "tiny.toml", "-w", SPEC, "--host", "host.toml"], "host.toml", "a description"),
        (&["run", "-d", "tiny.toml", "-w", "job.fio"], "job.fio", "a fio job file"),
        (&["run", "-d", "tiny.toml", "-w", "trace.csv"], "trace.csv", "a trace"),
    ] {
        let expected = format!("{file}: found text in UTF-16 (little-endian), expected {expected} in UTF-8");
        bench.refuses(arguments, &[&expected]);
    }
    // Editors of other systems put a mark before UTF-8.
    bench.write("job.fio", "\u{feff}[job]\nrw=write\nbs=4k\nsize=64k\n");
    bench.succeeds(&["run", "-d", "tiny.toml", "-w", "job.fio"]);
}

#[test]
fn a_job_on_standard_input_is_told_where_it_belongs() {
    let bench = Bench::new();
    for (input, expected) in [
        ("; of a colleague\n[global]\nrw=write\n[job]\n", "its first line, '[global]', is that of a fio job file"),
        ("rw=write,bs=4k\n", "its first line, 'rw=write,bs=4k', is a line of fio's options"),
        ("hello\n", "standard input: the trace format is not recognised"),
    ] {
        let mut command = bench.command(&["run", "-d", "tiny.toml", "-w", "-"]);
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("ssdlab starts");
        child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
        let ended = done(child.wait_with_output().expect("ssdlab ends"));
        assert_eq!(ended.status, 2, "{}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    }
}

#[test]
fn zeroes_without_an_end_on_standard_input_are_refused() {
    let bench = Bench::new();
    let zeroes = std::fs::File::open("/dev/zero").expect("/dev/zero");
    let mut command = bench.command(&["run", "-d", "tiny.toml", "-w", "-"]);
    let ended = done(command.stdin(zeroes).output().expect("ssdlab ends"));
    assert_eq!(ended.status, 2, "{}", ended.stderr);
    assert!(ended.stderr.contains("standard input: found 65536 bytes of zero at its start"), "{}", ended.stderr);
}

#[test]
fn numbers_below_0_are_told_what_is_expected() {
    let bench = Bench::new();
    let set = |assignment| ["--set", assignment];
    for (words, expected) in [
        (&["--seed", "-1"][..], "error: --seed: found '-1', expected at least 0"),
        (&["--memory", "-4g"], "error: --memory: found '-4g', expected at least 0"),
        (&["--seed=-1"], "'-1' for '--seed <N>': expected a whole number of at least 0"),
        (&["--memory=-4g"], "--memory: '-4g' is not at least 0, expected a size such as"),
        (&set("capacity.user=-1m"), "found \"-1m\", expected at least 0: a size such as"),
        (&set("flash.timing.read=-1us"), "found \"-1us\", expected at least 0: a time with its unit"),
        (&set("gc.free_blocks=-1"), "found -1, expected a whole number of at least 2"),
    ] {
        bench.refuses(&[&["run", "-d", "tiny.toml", "-w", SPEC][..], words].concat(), &[expected]);
    }
}

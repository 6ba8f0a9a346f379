//! What a run says of itself is true of this run: each of these sentences once said something else.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::Value;

use crate::support::{Bench, Done, TINY, done};

fn json(done: &Done) -> Value {
    serde_json::from_str(&done.stdout).expect("results are JSON")
}

/// The warnings of all drives, in one text.
fn warnings(done: &Done) -> String {
    let result = json(done);
    let devices = result["devices"].as_array().expect("devices");
    let all = devices.iter().flat_map(|device| device["warnings"].as_array().expect("warnings"));
    all.map(|warning| warning.as_str().expect("a sentence")).collect::<Vec<_>>().join("\n")
}

fn run(bench: &Bench, device: &str, workload: &str, more: &[&str]) -> Done {
    bench.succeeds(&[&["run", "-d", device, "-w", workload, "--json", "--quiet"], more].concat())
}

/// A trace of small writes all over 8 MiB, ten microseconds apart.
fn trace(requests: u64) -> String {
    let line = |n: u64| format!("{},W,{},4096\n", n * 10, n * 7919 % 2048 * 4096);
    std::iter::once("time_us,op,offset_bytes,length_bytes\n".to_string()).chain((0..requests).map(line)).collect()
}

#[test]
fn a_trace_from_standard_input_is_that_of_a_file() {
    let bench = Bench::new();
    let text = trace(3000);
    bench.write("t.csv", &text);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(text.as_bytes()).expect("in memory");
    let gzip = gzip.finish().expect("in memory");
    let zstd = zstd::encode_all(text.as_bytes(), 3).expect("in memory");
    let piped = |arguments: &[&str], input: &[u8]| {
        let mut child = bench.command(arguments);
        let mut child =
            child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
        // A command that refuses its arguments may not read it.
        let _ = child.stdin.take().expect("a pipe").write_all(input);
        done(child.wait_with_output().expect("ends"))
    };
    let two = |workload| ["run", "-d", "tiny.toml", "tiny.toml", "-p", "fill", "--json", "--quiet", "-w", workload];
    let of_file = json(&bench.succeeds(&two("t.csv")));
    for (workload, input) in [("-", text.as_bytes()), ("-", &gzip), ("format=csv:-", &zstd)] {
        let run = piped(&two(workload), input);
        assert_eq!(run.status, 0, "{}", run.stderr);
        let of_pipe = json(&run);
        for device in 0..2 {
            for key in ["requests_digest", "virtual_time_ns", "latency_ns", "write_amplification", "erases"] {
                assert_eq!(of_pipe["devices"][device][key], of_file["devices"][device][key], "{workload} {key}");
            }
        }
    }
    let stats = piped(&["trace", "stats", "-"], &gzip);
    assert_eq!(stats.status, 0, "{}", stats.stderr);
    assert!(stats.stdout.contains("3,000"), "{}", stats.stdout);
    let head = piped(&["trace", "head", "-", "-n", "1"], text.as_bytes());
    assert!(head.stdout.contains("W,0,4096"), "{}", head.stdout);
    for (input, said) in
        [(&b""[..], "standard input is empty"), (b"0,W,0,x\n0,W,0,4096\n0,W,0,9\n", "standard input:1: found")]
    {
        let refused = piped(&["trace", "stats", "-"], input);
        assert_eq!(refused.status, 2, "{}", refused.stdout);
        assert!(refused.stderr.contains(said), "{}", refused.stderr);
    }
}

#[test]
fn a_closed_loop_is_not_told_to_close() {
    let bench = Bench::new();
    bench.write("t.csv", &trace(30_000));
    let closed = warnings(&run(&bench, "tiny.toml", "t.csv", &["--replay", "closed:1000000"]));
    assert!(
        closed.contains("the workload kept ") && closed.contains("a closed loop of 32 keeps it as busy"),
        "{closed}"
    );
    assert!(!closed.contains("--replay closed:QD"), "{closed}");
    let timed = warnings(&run(&bench, "tiny.toml", "t.csv", &["--replay", "timed*0.01"]));
    assert!(timed.contains("could not keep up with the workload's clock") && timed.contains("closed:QD"), "{timed}");
}

#[test]
fn padding_is_blamed_on_what_pads() {
    let bench = Bench::new();
    let wide = TINY
        .replace("page_size = \"4k\"", "page_size = \"16k\"")
        .replace("blocks_per_plane = 64", "blocks_per_plane = 32");
    let buffer = "[buffer]\npolicy = \"lru\"\nsize = \"256k\"\n[ftl]\nmapping_unit = \"4k\"\n";
    bench.write("buffered.toml", &format!("{wide}{buffer}"));
    bench.write("plain.toml", &format!("{wide}[ftl]\nmapping_unit = \"4k\"\n"));
    let synced = "rw=randwrite,bs=4k,io_size=4m,fsync=2";
    let buffered = warnings(&run(&bench, "buffered.toml", synced, &[]));
    assert!(
        buffered.contains("a flush writes what is in the buffer") && buffered.contains("every 2.0 writes"),
        "{buffered}"
    );
    assert!(!buffered.contains("a write buffer would fill pages"), "{buffered}");
    let plain = warnings(&run(&bench, "plain.toml", "rw=randwrite,bs=4k,io_size=4m", &[]));
    assert!(plain.contains("a write buffer would fill pages"), "{plain}");
}

#[test]
fn drives_that_were_not_sent_the_same_requests_are_told_apart() {
    let bench = Bench::new();
    bench.write("small.toml", &TINY.replace("\"tiny\"", "\"small\"").replace("user = \"12m\"", "user = \"8m\""));
    let sized = "rw=randwrite,bs=4k,io_size=4m,norandommap";
    let pair = |second: &'static str, workload: &'static str| {
        ["run", "-d", "tiny.toml", second, "-w", workload, "--out", "out", "--quiet"]
    };
    let differ = bench.succeeds(&pair("small.toml", sized));
    let text = format!("{}{}", differ.stdout, differ.stderr);
    assert!(text.contains("not sent the same requests as tiny: as many, but at other addresses"), "{text}");
    assert!(bench.read("out/report.html").contains("The same workload on each, but not the same requests"));
    let same = bench.succeeds(&pair("small.toml", "rw=randwrite,bs=4k,size=4m,io_size=4m,norandommap"));
    assert!(!same.stdout.contains("same requests"), "{}", same.stdout);
    let report = bench.read("out/report.html");
    assert!(report.contains(">The same requests on each. ") && !report.contains("not the same requests"));
}

#[test]
fn planes_that_never_pair_have_a_row_that_says_so() {
    let bench = Bench::new();
    let planes = TINY
        .replace("planes_per_die = 1", "planes_per_die = 2")
        .replace("blocks_per_plane = 64", "blocks_per_plane = 32");
    bench.write("planes.toml", &planes);
    let row = |device: &str| {
        let run = bench.succeeds(&["run", "-d", device, "-w", "rw=write,bs=4k,iodepth=1,io_size=1m", "--quiet"]);
        run.stdout.lines().find(|line| line.contains("multi-plane")).map(str::to_string)
    };
    let row_of_two = row("planes.toml").expect("a row");
    assert!(row_of_two.ends_with(" 0.00 %"), "{row_of_two}");
    assert_eq!(row("tiny.toml"), None, "one plane has nothing to pair with");
}

/// Every option, key and value that was renamed is refused with its new name, and results of an older format with the way out.
#[test]
fn names_of_earlier_versions_are_refused_with_the_new_ones() {
    let bench = Bench::new();
    bench.write("old.toml", "[[room]]\nkind = \"scheduler\"\n");
    let run = ["run", "-d", "tiny.toml", "-w", "rw=write,bs=4k,number_ios=1"];
    for (words, named) in [
        (&["--recorder", "0"][..], "'--recorder' is now called '--rb-probe'"),
        (&["--recorder=0"], "is now called '--rb-probe'"),
        (&["--precondition", "touched"], "did you mean 'footprint'?"),
        (&["--set", "ftl.design=mv"], "did you mean 'mvftl'?"),
        (&["--host", "old.toml"], "did you mean 'layer'?"),
    ] {
        bench.refuses(&[&run[..], words].concat(), &[named]);
    }
    bench.refuses(&["serve", "-d", "tiny.toml", "--pace", "none"], &["'--pace' is now called '--time-scale'"]);
    bench.refuses(&["torture", "--design", "mv"], &["did you mean 'mvftl'?"]);
    std::fs::create_dir(bench.path("old")).expect("a folder");
    bench.write("old/result.json", "{\"format\": 1, \"devices\": []}");
    bench.refuses(&["report", "old"], &["its format is 1, and this ssdlab reads format 2", "repeat the run"]);
}

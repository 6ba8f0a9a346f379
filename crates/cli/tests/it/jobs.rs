//! fio jobs as users write them.

use serde_json::Value;

use crate::support::Bench;

/// 64 MiB, as a small file for fio.
const SMALL: &str = r#"
name = "small64"
[flash]
channels = 2
chips_per_channel = 2
dies_per_chip = 1
planes_per_die = 1
blocks_per_plane = 96
pages_per_block = 64
page_size = "4k"
cell = "slc"
[capacity]
user = "64m"
[interface]
queue_depth = 64
"#;

/// Zones of 256 KiB, of which 252 KiB can be written.
const ZONES: &str = r#"
name = "zns-odd"
[flash]
channels = 3
chips_per_channel = 1
dies_per_chip = 1
planes_per_die = 1
blocks_per_plane = 24
pages_per_block = 21
page_size = "4k"
cell = "slc"
[capacity]
user = "5040k"
[ftl]
design = "aftl-zoned"
allocation = "dynamic"
segment_levels = "ways"
zone_size = "256k"
max_open_zones = 2
max_active_zones = 3
"#;

/// The first drive of a run's results.
fn run(bench: &Bench, device: &str, workload: &str) -> (Value, String) {
    let arguments = ["run", "-q", "--json", "--no-snapshot", "--slowest", "100000", "-d", device, "-w", workload];
    let done = bench.succeeds(&arguments);
    let result: Value = serde_json::from_str(&done.stdout).expect("JSON");
    (result["devices"][0].clone(), done.stderr)
}

#[test]
fn jobs_that_name_two_drives_are_told_that_there_is_one() {
    let bench = Bench::new();
    bench.write(
        "job.fio",
        "[global]\nrw=write\nbs=64k\niodepth=32\nio_size=1m\n[left]\nfilename=/dev/nvme0n1\n[right]\nfilename=/dev/nvme1n1\n",
    );
    let (_, said) = run(&bench, "tiny.toml", "job.fio");
    assert!(said.contains("(/dev/nvme0n1, /dev/nvme1n1); here all of them work on the one drive"), "{said}");
}

#[test]
fn an_empty_list_of_block_sizes_keeps_the_default() {
    let bench = Bench::new();
    bench.write("drive.toml", SMALL);
    bench.write("job.fio", "[mixed]\nrw=randrw\nrwmixread=50\nnorandommap\nsize=100%\nbssplit=,8k/25:16k/75\n");
    let (device, _) = run(&bench, "drive.toml", "job.fio");
    let slowest = device["latency_breakdown"]["slowest"].as_array().expect("a list");
    let count = |op: &str, sectors: u64| {
        slowest.iter().filter(|request| request["op"] == op && request["sectors"] == sectors).count() as f64
    };
    let (reads, small, large) = (count("read", 8), count("write", 16), count("write", 32));
    assert_eq!(reads + small + large, slowest.len() as f64);
    assert!((small / (small + large) - 0.25).abs() < 0.03, "{small} of {large}");
}

#[test]
fn a_size_of_zero_is_the_whole_drive() {
    let bench = Bench::new();
    bench.write("drive.toml", SMALL);
    bench.write(
        "job.fio",
        "[fill]\nrw=write\nbs=1m\nsize=0\n[look]\nstonewall\nrw=randread\nbs=4k\nsize=0\nnumber_ios=1000\n",
    );
    let (device, _) = run(&bench, "drive.toml", "job.fio");
    assert_eq!(device["bytes"]["write"], 64 << 20, "{}", device["bytes"]);
    assert_eq!(device["bytes"]["read"], 1000 * 4096);
}

#[test]
fn the_last_block_of_a_sequential_job_ends_beyond_its_region() {
    let bench = Bench::new();
    bench.write("drive.toml", SMALL);
    for (line, writes) in
        [("rw=write,bs=48k,size=1m", 22), ("rw=write,size=4000000,bs=1m", 4), ("rw=randwrite,bs=48k,size=1m", 21)]
    {
        let (device, _) = run(&bench, "drive.toml", line);
        assert_eq!(device["requests"]["write"], writes, "{line}");
    }
}

#[test]
fn shares_of_zones_have_fractions() {
    let bench = Bench::new();
    bench.write("drive.toml", SMALL);
    let line = "rw=randread,bs=8k,norandommap,io_size=64m,random_distribution=zoned:99/0.5:1/99.5";
    let (device, _) = run(&bench, "drive.toml", line);
    let slowest = device["latency_breakdown"]["slowest"].as_array().expect("a list");
    let hot = slowest.iter().filter(|request| request["sector"].as_u64() < Some((64 << 20) / 200 / 512)).count();
    assert!((hot as f64 / slowest.len() as f64 - 0.99).abs() < 0.01, "{hot} of {}", slowest.len());
}

#[test]
fn zones_are_counted_before_blocks() {
    let bench = Bench::new();
    bench.write("zns.toml", ZONES);
    let (device, _) = run(&bench, "zns.toml", "rw=write,bs=12k,size=2z,io_size=1m,zonemode=zbd,iodepth=1");
    let slowest = device["latency_breakdown"]["slowest"].as_array().expect("a list");
    let writes = |zone: u64| {
        let in_zone =
            |request: &&Value| request["op"] == "write" && request["sector"].as_u64().map(|at| at / 512) == Some(zone);
        slowest.iter().filter(in_zone).count()
    };
    assert_eq!((writes(0), writes(1)), (44, 42), "{} in all", slowest.len());
}

#[test]
fn engines_and_their_keys_are_known() {
    let bench = Bench::new();
    let refused = |workload: &str| bench.refuses(&["run", "-d", "tiny.toml", "-w", workload], &[]).stderr;
    assert!(refused("rw=write,bs=4k,size=4m,iodepth=8,ioengine=libiao").contains("did you mean 'libaio'?"));
    bench.write(
        "job.fio",
        "[global]\nioengine=nbd\nuri=nbd+unix:///?socket=/run/drive.sock\n[load]\nrw=randrw\nbs=4k\nsize=1m\n",
    );
    let (_, said) = run(&bench, "tiny.toml", "job.fio");
    assert!(said.contains("without effect on a stream of block requests: uri"), "{said}");
}

#[test]
fn variables_of_job_files_are_given_and_recorded() {
    let bench = Bench::new();
    bench.write("job.fio", "[a]\nrw=write\nbs=4k\nsize=${SSDLAB_TEST_SIZE}\n");
    let run = ["run", "-q", "--json", "-d", "tiny.toml", "-w", "job.fio"];
    let said = bench.refuses(&run, &[]).stderr;
    assert!(
        said.contains("job.fio:4: found '${SSDLAB_TEST_SIZE}'") && said.contains("--env SSDLAB_TEST_SIZE=VALUE"),
        "{said}"
    );
    let done = bench.succeeds(&[&run[..], &["--env", "SSDLAB_TEST_SIZE=64k"]].concat());
    let result: Value = serde_json::from_str(&done.stdout).expect("JSON");
    assert_eq!(result["notes"][0], "${SSDLAB_TEST_SIZE} is '64k'");
    assert_eq!(result["devices"][0]["requests"]["write"], 16);
    let said = bench.refuses(&[&run[..], &["--env", "SIZE"]].concat(), &[]).stderr;
    assert!(said.contains("--env: found 'SIZE', expected NAME=VALUE"), "{said}");
}

#[test]
fn the_requests_of_jobs_can_be_written_down() {
    let bench = Bench::new();
    let convert = ["trace", "convert", "rw=write,bs=4k,size=12k,fsync=2,end_fsync=1", "out.csv"];
    let said = bench.refuses(&convert, &[]).stderr;
    assert!(said.contains("--capacity"), "{said}");
    bench.succeeds(&[&convert[..], &["--capacity", "1m"]].concat());
    let expected = "time_us,op,offset_bytes,length_bytes\n0.000,W,0,4096\n100.000,W,4096,4096\n200.000,F,0,0\n\
                    300.000,W,8192,4096\n400.000,F,0,0\n";
    assert_eq!(bench.read("out.csv"), expected);
    bench.write("two.fio", "[one job]\nrw=read\nsize=8k\n[other]\nrw=write\nsize=4k\n");
    bench.succeeds(&["trace", "convert", "two.fio", "two.iolog", "--capacity", "1m"]);
    let log = bench.read("two.iolog");
    for line in [
        "0 one_job read 0 4096",
        "0 other write 0 4096",
        "100 one_job read 4096 4096",
        "0 other open",
        "100 other close",
    ] {
        assert!(log.lines().any(|found| found == line), "{line}: {log}");
    }
    bench.succeeds(&["trace", "stats", "two.iolog"]);
    let said = bench.refuses(&["trace", "convert", "out.csv", "again.csv", "--capacity", "1m"], &[]).stderr;
    assert!(said.contains("--capacity is for fio workloads"), "{said}");
}

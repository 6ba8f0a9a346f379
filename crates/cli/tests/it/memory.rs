//! Memory is settled before it is taken: what a command would take beyond it is refused with the estimate and what fits.

use crate::support::Bench;

const TEN: &str = "rw=randwrite,bs=16k,number_ios=10";

#[test]
fn a_run_that_takes_more_than_is_allowed_is_refused_with_what_fits() {
    let bench = Bench::new();
    let verified = ["run", "-d", "qlc-nvme-3840g", "-w", TEN, "--verify", "--memory", "12g"];
    bench.refuses(
        &verified,
        &[
            "qlc-nvme-3840g: the run (",
            " for its tables and stamps, ",
            " for what is expected) needs up to ",
            "more than the limit of 12 GiB (--memory 12g)",
            "hint: without --verify it takes ",
            "a drive of its kind with ",
            " blocks a plane (flash.blocks_per_plane, of ",
            "m allows it",
        ],
    );
    let huge =
        ["--set", "flash.channels=8", "--set", "flash.chips_per_channel=4", "--set", "flash.blocks_per_plane=200000"];
    let run = [&["run", "-d", "demo-slc", "-w", TEN, "--memory", "4g"][..], &huge].concat();
    bench.refuses(&run, &["demo-slc: the run needs up to ", "more than the limit of 4 GiB"]);
    // What fits is run: without taking what it may take at most.
    let done = bench.succeeds(&["run", "-d", "demo-slc", "-w", TEN, "--verify", "--memory", "1g", "--quiet"]);
    assert!(done.stdout.contains("demo-slc"), "{}", done.stdout);
    bench.refuses(&["run", "-d", "demo-slc", "-w", TEN, "--verify", "--memory", "100m"], &["--verify it takes 65."]);
}

#[test]
fn a_large_drive_runs_where_it_is_allowed() {
    let bench = Bench::new();
    let run =
        |memory: &'static str| ["run", "-d", "waflash-256g-16k", "-w", TEN, "--memory", memory, "--quiet", "--json"];
    bench.refuses(&run("200m"), &["waflash-256g-16k: the run needs up to", "m allows it"]);
    let done = bench.succeeds(&run("300m"));
    assert!(done.stdout.contains("\"complete\": true"), "{}", done.stdout);
}

#[test]
fn a_page_cache_counts_with_what_a_run_takes_and_the_hint_says_how_to_have_less() {
    let bench = Bench::new();
    bench.write("host.toml", "[[layer]]\nkind = \"page-cache\"\nram = \"2g\"\n");
    let run = |memory: &'static str| {
        ["run", "-d", "demo-slc", "--host", "host.toml", "-w", TEN, "--verify", "--memory", memory]
    };
    bench.refuses(
        &run("1g"),
        &["host.toml:2:8: ram: the layer needs up to ", "a smaller ram takes less", "m allows it"],
    );
    let hints =
        ["without --verify it still takes ", " GiB; ", "and a smaller ram of page-cache takes less", "m allows it"];
    bench.refuses(&run("2100m"), &hints);
}

#[test]
fn one_drive_of_several_is_enough_to_refuse_them_all() {
    let bench = Bench::new();
    let run = ["run", "-d", "tiny.toml", "qlc-nvme-3840g", "-w", TEN, "--memory", "1g", "--out", "out"];
    bench.refuses(&run, &["qlc-nvme-3840g: the run needs up to", "more than the limit of 1 GiB"]);
    assert!(!bench.path("out").exists());
}

#[test]
fn served_and_tortured_drives_and_reproductions_are_asked_too() {
    let bench = Bench::new();
    let serve = ["serve", "-d", "qlc-nvme-3840g", "--image", "image", "--nbd", "unix:socket", "--memory", "100m"];
    bench.refuses(&serve, &["qlc-nvme-3840g: the served drive needs up to", "more than the limit of 100 MiB"]);
    std::fs::create_dir(bench.path("mountpoint")).expect("a directory");
    let mount = ["mount", "-d", "qlc-nvme-3840g", "--image", "image", "--memory", "100m", "mountpoint"];
    bench.refuses(&mount, &["qlc-nvme-3840g: the served drive needs up to"]);
    assert!(!bench.path("image").exists());
    let set = ["--set", "capacity.user=1m", "--set", "flash.blocks_per_plane=200000"];
    let torture = [&["torture", "-d", "demo-slc", "--seeds", "1", "--jobs", "2", "--memory", "1g"][..], &set].concat();
    bench.refuses(&torture, &["demo-slc: torture on 2 threads needs up to", "more than the limit of 1 GiB"]);
    bench.refuses(
        &["reproduce", "waflash/figure08", "--memory", "40m"],
        &["waflash: ", "more than the limit of 40 MiB"],
    );
    assert!(!bench.path("out/waflash/report.json").exists());
}

#[test]
fn a_size_of_memory_is_read_as_every_size() {
    let bench = Bench::new();
    let with = |size| ["run", "-d", "tiny.toml", "-w", "rw=write,bs=4k,io_size=64k", "--quiet", "--memory", size];
    bench.refuses(&with("1gb"), &["--memory: '1gb' has two readings, write 1GB (1000000000 bytes) or 1GiB"]);
    bench.refuses(&with("much"), &["--memory: 'much' is not a size"]);
    bench.refuses(&with("1MB"), &["more than the limit of 976.6 KiB (--memory 1MB)"]);
    bench.succeeds(&with("1GB"));
}

/// What a workload makes a run keep, and what results keep, is counted as the drive's tables are.
#[test]
fn what_a_run_takes_beside_its_drive_is_refused_with_what_takes_less() {
    let bench = Bench::new();
    let flood = "rw=randwrite,bs=512,iodepth=65536,numjobs=256,norandommap,time_based,runtime=1";
    let run = ["run", "-q", "-d", "tiny.toml", "--memory", "40m", "-w"];
    let refused = |more: &[&str], parts: &[&str]| {
        bench.refuses(&[&run[..], more].concat(), &[parts, &["more than the limit of 40 MiB"]].concat());
    };
    refused(&[flood], &[" for 16777216 requests in flight", "a lower iodepth or numjobs takes less"]);
    let maps = "rw=randwrite,bsrange=512-64k,numjobs=2000,io_size=16m";
    let demo = ["run", "-q", "-d", "demo-tlc", "--memory", "200m", "-w", maps];
    bench.refuses(&demo, &[" for random maps", "with norandommap, or one block size, it takes "]);
    let aged = ["run", "-q", "-d", "demo-tlc", "--memory", "200m", "-w", "rw=read,bs=4k,io_size=4k", "-p", maps];
    bench.refuses(&aged, &[" for random maps"]);
    let one = "rw=randwrite,bs=512,iodepth=32,io_size=1m";
    refused(&[one, "--slowest", "100000"], &[" for the 100000 slowest requests", "(--slowest) take less"]);
    refused(&[one, "--timeline-interval", "1us"], &[" for the timeline", "without --timeline-interval it takes "]);
    bench.succeeds(&[&run[..], &[one, "--slowest", "100"]].concat());
    bench.succeeds(&[&run[..], &["rw=randwrite,bs=512,iodepth=1024,numjobs=16,number_ios=4,norandommap"]].concat());
}

/// How many requests of a trace are in flight, only the run shows.
#[test]
fn a_trace_that_leaves_the_drive_behind_ends_where_memory_does() {
    let bench = Bench::new();
    let lines: String = (0..60_000).map(|line| format!("0,W,{},512\n", line % 20_000 * 512)).collect();
    bench.write("burst.csv", &format!("time_us,op,offset_bytes,length_bytes\n{lines}"));
    let run = |more: &[&'static str]| [&["run", "-q", "-d", "tiny.toml", "-w", "burst.csv"][..], more].concat();
    bench.refuses(&run(&["--memory", "40m"]), &["requests are in flight", "--replay closed:QD", "raise --memory"]);
    bench.succeeds(&run(&["--memory", "40m", "--replay", "closed:32"]));
    bench.succeeds(&run(&["--memory", "400m"]));
}

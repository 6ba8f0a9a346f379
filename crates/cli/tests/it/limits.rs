//! Input that has no end, or no measure: what would never end ends with a sentence, and what is too wide is cut.

use crate::support::Bench;

/// No request of these takes virtual time, so their `runtime` never comes.
#[test]
fn a_job_that_waits_for_a_time_that_never_comes_ends_with_what_to_change() {
    let bench = Bench::new();
    let endless = |more: &[&str], parts: &[&str]| {
        let run = [&["run", "-q", "-d", "tiny.toml", "-w"][..], more].concat();
        bench.refuses(&run, &[parts, &["time_based", "would never end", "io_size"]].concat());
    };
    let timed = ["took no virtual time", "interface.command_overhead"];
    endless(&["rw=trim,time_based,runtime=1s"], &timed);
    endless(&["rw=randread,bs=64k,time_based,runtime=1s,iodepth=8"], &timed);
    endless(&["rw=randwrite,bs=4k,time_based,runtime=1s", "--set", "flash.timing=none"], &timed);
    // The second job takes time, but is never asked again: the first completes at once for ever.
    bench.write(
        "two.fio",
        "[a]\nrw=randread\nbs=4k\nsize=4m\ntime_based\nruntime=1s\n[b]\nrw=randwrite\nbs=4k\noffset=8m\nio_size=64k\n",
    );
    endless(&["two.fio"], &timed);
    // Of the second job's writes only the first is sent, so that no sub-test ends.
    endless(&["two.fio", "--subtests", "2x1m"], &timed);
    let preconditioned = ["rw=read,bs=4k,io_size=64k", "--precondition", "rw=randwrite,bs=4k,time_based,runtime=1s"];
    endless(&preconditioned, &["preconditioning takes no virtual time", "steady:WORKLOAD"]);
    let footprint = ["rw=randread,bs=4k,time_based,runtime=1s", "--precondition", "footprint"];
    bench.refuses(&[&["run", "-q", "-d", "tiny.toml", "-w"][..], &footprint].concat(), &["time_based", "io_size"]);
    let subtests = ["rw=randread,bs=64k,time_based,runtime=1s", "--subtests", "2x1m"];
    endless(&subtests, &timed);
}

#[test]
fn a_job_of_requests_that_take_no_time_has_its_own_end_or_its_own_clock() {
    let bench = Bench::new();
    let run = |workload: &'static str| ["run", "-q", "-d", "tiny.toml", "--set", "flash.timing=none", "-w", workload];
    bench.succeeds(&run("rw=trim,bs=4k,number_ios=600000,io_size=100g"));
    bench.succeeds(&run("rw=randwrite,bs=4k,time_based,runtime=1s,rate_iops=1000"));
    bench.succeeds(&run("rw=randread,bs=4k,time_based,runtime=1s,thinktime=1ms"));
    bench.succeeds(&["run", "-q", "-d", "tiny.toml", "-w", "rw=randread,bs=4k,time_based,runtime=10ms", "-p", "fill"]);
}

#[test]
fn names_of_any_length_make_a_table() {
    let bench = Bench::new();
    let wide = "n".repeat(70_000);
    bench.write("wide.fio", &format!("[{wide}]\nrw=write\nbs=4k\nio_size=64k\n[b]\nrw=read\nbs=4k\nio_size=64k\n"));
    let done = bench.succeeds(&["run", "-q", "-d", "tiny.toml", "-w", "wide.fio"]);
    assert!(done.stdout.contains("nnn… write"), "{}", done.stdout);
    assert!(done.stdout.lines().all(|line| line.chars().count() < 400), "{}", done.stdout);
    let log = "{\"critical_warning\":0,\"data_units_written\":5,\"power_on_hours\":10}";
    bench.write("many.json", &log.repeat(5_000));
    let done = bench.succeeds(&["wa", "drive", "many.json", "many.json"]);
    assert!(done.stdout.contains("nvme smart-log\n"), "{}", done.stdout);
}

/// 20,000 writes of 1 GiB, each elsewhere: 600 KB of text that name 20 TB.
#[test]
fn statistics_of_a_trace_take_memory_by_its_requests_not_by_its_addresses() {
    let bench = Bench::new();
    let mut text = "time_us,op,offset_bytes,length_bytes\n".to_string();
    for line in 0..20_000_u64 {
        text.push_str(&format!("{line},W,{},{}\n", line << 30, 1_u64 << 30));
    }
    bench.write("large.csv", &text);
    let out = bench.command(&["trace", "stats", "--json", "large.csv"]).output().expect("ssdlab starts");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let stats: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
    assert_eq!(stats["footprint"]["pages_written"], 20_000_u64 << 18);
    assert_eq!(stats["live"]["pages_end"], 20_000_u64 << 18);
}

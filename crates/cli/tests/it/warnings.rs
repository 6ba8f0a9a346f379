//! What a run warns of at its end: faults that never struck, a drive that takes no writes, a run that is too short.

use serde_json::Value;

use crate::support::{Bench, TINY};

/// What the only drive of a run warns of.
fn warnings(bench: &Bench, arguments: &[&str]) -> Vec<String> {
    device(bench, arguments)["warnings"].as_array().expect("a list").iter().map(|one| text(one).to_string()).collect()
}

fn device(bench: &Bench, arguments: &[&str]) -> Value {
    let done = bench.ssdlab(&[&["run", "--json"], arguments].concat());
    let result: Value = serde_json::from_str(&done.stdout).unwrap_or_else(|_| panic!("no result: {}", done.stderr));
    result["devices"][0].clone()
}

fn text(value: &Value) -> &str {
    value.as_str().expect("text")
}

#[test]
fn a_scripted_fault_that_never_strikes_is_told_with_what_its_block_saw() {
    let bench = Bench::new();
    bench.write(
        "faulty.toml",
        &format!(
            "{TINY}\n[[flash.faults.script]]\nkind = \"program\"\nblock = 0\nnth = 5000\n\
             [[flash.faults.script]]\nkind = \"erase\"\nblock = 127\n\
             [[flash.faults.script]]\nkind = \"die\"\nblock = 1\nnth = 100000\n\
             [[flash.faults.script]]\nkind = \"program\"\nblock = 64\nnth = 2\n\
             [[flash.faults.script]]\nkind = \"factory\"\nblock = 9\n"
        ),
    );
    let told = warnings(&bench, &["-d", "faulty.toml", "-w", "rw=write,bs=4k,io_size=1m"]);
    let of = |part: &str| told.iter().filter(|warning| warning.contains(part)).collect::<Vec<_>>();
    // 256 pages fill four blocks of 32 pages on each of the two planes.
    let program =
        "the fault { kind = \"program\", block = 0, nth = 5000 } never struck: that block saw 32 programs in the run";
    assert_eq!(of("nth = 5000"), [program]);
    assert!(of("block = 127")[0].ends_with("never struck: that block saw 0 erases in the run"), "{told:?}");
    // Half of the pages, and the one whose program failed on the other die.
    assert!(of("\"die\"")[0].contains("its die saw 129 operations"), "{told:?}");
    assert_eq!(
        of("never struck").len(),
        3,
        "the second program of block 64 failed, and factory faults always strike: {told:?}"
    );
    // A fault that struck in preconditioning is none that never did.
    let filled = warnings(&bench, &["-d", "faulty.toml", "-w", "rw=read,bs=4k,io_size=1m", "-p", "fill"]);
    assert!(!filled.iter().any(|warning| warning.contains("block = 64, nth = 2")), "{filled:?}");
}

#[test]
fn a_drive_that_became_read_only_in_preconditioning_says_so_and_advises_nothing_on_its_spare() {
    let bench = Bench::new();
    bench.write("worn.toml", &format!("{TINY}\n[flash.faults]\nprogram_failure = 0.05\n"));
    let write = "rw=randwrite,bs=4k,size=100%,io_size=4m,norandommap";
    for age in ["fill", "steady"] {
        let arguments = ["-d", "worn.toml", "-w", write, "-p", age];
        let device = device(&bench, &arguments);
        let told = warnings(&bench, &arguments);
        assert_eq!(device["read_only"], true, "{age}: {told:?}");
        assert_eq!(device["theory"], Value::Null);
        assert_ne!(device["precondition"]["steady"], true, "nothing is steady about refused writes");
        assert!(
            told[0].starts_with("the drive became read-only before the run, since it ran out of spare blocks"),
            "{told:?}"
        );
        let notes = device["precondition"]["notes"].as_array().expect("a list");
        let refused = notes.iter().any(|note| text(note).contains("of preconditioning were refused, the first after "));
        assert!(refused, "{notes:?}");
        for advice in ["over-provisioning", "theory", "use --precondition", "write more"] {
            assert!(!told.iter().any(|warning| warning.contains(advice)), "{advice}: {told:?}");
        }
        let table = bench.ssdlab(&["run", "-d", "worn.toml", "-w", write, "-p", age]).stdout;
        assert!(table.lines().any(|line| line.starts_with("  effective") && line.ends_with(" -")), "{table}");
    }
    let healthy = device(&bench, &["-d", "tiny.toml", "-w", write, "-p", "fill"]);
    assert_eq!(healthy["read_only"], false);
    assert_eq!(healthy["precondition"]["notes"], Value::Array(Vec::new()));
}

/// A trace was told to write more, which it cannot.
#[test]
fn a_trace_that_is_too_short_for_collection_is_told_how_to_fill_the_drive() {
    let bench = Bench::new();
    bench.write("short.csv", "time_us,op,offset_bytes,length_bytes\n0,W,1048576,4096\n1,W,65536,8192\n");
    let advice = |workload: &str, age: &str| {
        let told = warnings(&bench, &["-d", "tiny.toml", "-w", workload, "-p", age, "--no-snapshot"]);
        let never = told.into_iter().find(|warning| warning.contains("garbage collection never ran"));
        let never = never.expect("it says so");
        never.rsplit_once('(').map(|(_, advice)| advice.trim_end_matches(')').to_string()).expect("an advice")
    };
    let job = "rw=randwrite,bs=4k,io_size=16k";
    assert_eq!(advice("short.csv", "none"), "use --precondition fill or steady");
    assert_eq!(advice("short.csv", "footprint"), "use --precondition steady, or fill+WORKLOAD");
    assert_eq!(advice(job, "footprint"), "write more, or use --precondition steady:WORKLOAD");
    // A drive in steady state collects at once, unless its buffer takes all.
    bench.write("tiny.toml", &format!("{TINY}\n[buffer]\npolicy = \"lru\"\nsize = \"1m\"\n"));
    let steady = "steady:rw=randwrite,bs=4k,size=100%,io_size=100%,norandommap";
    assert_eq!(advice(job, steady), "write more");
    assert_eq!(advice("short.csv", steady), "what the trace writes fits into the space that was free");
    bench.write("tiny.toml", TINY);
    // A longer trace is collected as advised.
    let writes = "0,W,1048576,4096\n".repeat(600);
    bench.write("again.csv", &format!("time_us,op,offset_bytes,length_bytes\n{writes}"));
    let collected = |age: &str| {
        let told = warnings(&bench, &["-d", "tiny.toml", "-w", "again.csv", "-p", age, "--no-snapshot"]);
        !told.iter().any(|warning| warning.contains("garbage collection never ran"))
    };
    assert!(!collected("footprint") && collected("steady"));
}

#[test]
fn a_short_mixed_run_on_a_drive_with_pacing_is_told_how_many_writes_would_do() {
    let bench = Bench::new();
    let run = |size: &str, pacing: &str| {
        let spec = format!("rw=randrw,rwmixread=70,bs=4k,iodepth=8,size=100%,io_size={size},norandommap");
        let steady = "steady:rw=randwrite,bs=4k,iodepth=8,size=100%,io_size=100%,norandommap";
        let pacing = format!("gc.pacing={pacing}");
        let set = ["--set", &pacing, "--set", "flash.blocks_per_plane=128", "--set", "capacity.user=24m"];
        let told = warnings(&bench, &[&["-d", "tiny.toml", "-w", &spec, "-p", steady], &set[..]].concat());
        told.into_iter().filter(|warning| warning.contains("too short")).collect::<Vec<_>>()
    };
    let [short] = &run("2m", "proportional")[..] else { panic!("one sentence: {:?}", run("2m", "proportional")) };
    assert!(short.contains("writes are enough for 3.00 %"), "{short}");
    // What it says is enough is enough: 30 % of the requests write.
    let enough = short.split("; ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a number");
    let writes: u64 = enough.replace(',', "").parse().expect("a number");
    assert!(writes > 100, "{short}");
    let bytes = writes * 4096 * 10 / 3;
    assert_eq!(run(&bytes.to_string(), "proportional"), [""; 0], "after {short}");
}

#[test]
fn each_job_has_its_depth_in_the_header() {
    let bench = Bench::new();
    bench.write(
        "three.fio",
        "[global]\nrw=randwrite\nbs=4k\nio_size=64k\n[a]\niodepth=4\n[b]\niodepth=8\n[c]\niodepth=2\n",
    );
    let table = bench.succeeds(&["run", "-d", "tiny.toml", "-w", "three.fio"]).stdout;
    assert!(
        table.starts_with("workload three.fio, replay fio, 3 jobs of iodepth 4, 8, 2, precondition none"),
        "{table}"
    );
}

#[test]
fn a_pause_of_years_in_a_trace_is_told_once_with_its_line() {
    let bench = Bench::new();
    let years = 10_u64 * 31_557_600_000_000;
    bench.write("pause.csv", &format!("time_us,op,offset_bytes,length_bytes\n0,W,0,4096\n{years},W,4096,4096\n"));
    for arguments in [&["run", "-d", "tiny.toml", "-w", "pause.csv"][..], &["trace", "stats", "pause.csv"]] {
        let done = bench.succeeds(arguments);
        let told: Vec<&str> = done.stderr.lines().filter(|line| line.contains("10.0 years")).collect();
        assert!(told.len() == 1 && told[0].starts_with("note: pause.csv:3: "), "{arguments:?}: {}", done.stderr);
    }
}

/// Planes that program one after the other halve the rate of these chips. It is said with what would change it, and only where it matters
/// and can be changed.
#[test]
fn planes_that_seldom_program_together_are_told_where_that_can_be_changed() {
    let bench = Bench::new();
    let apart = |arguments: &[&str]| {
        let told = warnings(&bench, arguments);
        told.into_iter().filter(|warning| warning.contains("planes of a die")).collect::<Vec<_>>()
    };
    bench.write("append.toml", "[[layer]]\nkind = \"append\"\n");
    let zones = ["-d", "zns-tlc-1t", "--set", "flash.pages_per_block=64", "--set", "capacity.user=52.5g"];
    let of_zones = |workload| apart(&[&zones[..], &["--host", "append.toml", "-w", workload]].concat());
    let told = of_zones("rw=randwrite,bs=16k,iodepth=32,io_size=256m");
    assert!(told.len() == 1 && told[0].contains("run: larger writes (bs) would let them"), "{told:?}");
    assert_eq!(of_zones("rw=randwrite,bs=1m,iodepth=32,io_size=256m"), [""; 0], "larger writes do");
    assert_eq!(of_zones("rw=randwrite,bs=16k,iodepth=32,io_size=16m"), [""; 0], "few programs");
    assert_eq!(of_zones("rw=randwrite,bs=16k,iodepth=1,io_size=256m"), [""; 0], "idle dies");

    // Of copies of the layer, larger writes change nothing.
    bench.write("cleans.toml", "[[layer]]\nkind = \"append\"\nover_provisioning = \"12%\"\n");
    let small = ["-d", "zns-tlc-1t", "--set", "flash.pages_per_block=64", "--set", "flash.blocks_per_plane=74"];
    let full = ["--set", "capacity.user=4026531840", "--host", "cleans.toml", "-p", "fill"];
    let told = apart(&[&small[..], &full, &["-w", "rw=randwrite,bs=16k,iodepth=32,io_size=2400m"]].concat());
    assert!(
        told.len() == 1 && told[0].contains("larger copies of the layer append (copy_size, copies) would"),
        "{told:?}"
    );

    let page = ["-d", "zns-tlc-1t-page", "--set", "flash.pages_per_block=64", "--set", "capacity.user=24g"];
    let of_page = |sets: &[&str], bs: &str| {
        let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", *set]).collect();
        let workload = format!("rw=randwrite,bs={bs},iodepth=64,io_size=512m");
        apart(&[&page[..], &sets, &["-w", &workload]].concat())
    };
    assert_eq!(of_page(&[], "16k"), [""; 0], "superblocks keep planes in step");
    let alone = ["ftl.superblock=none", "ftl.allocation=dynamic", "gc.pacing=off"];
    let with = |more: &[&'static str]| [&alone[..], more].concat();
    let told = of_page(&alone, "16k");
    let advice =
        "superblocks (ftl.superblock = \"die\"), larger writes (bs) or a write buffer (buffer.policy) would let them";
    assert!(told.len() == 1 && told[0].contains(advice), "{told:?}");
    assert_eq!(of_page(&alone, "1m"), [""; 0], "larger writes do");
    assert_eq!(of_page(&with(&["buffer.policy=lru", "buffer.size=64m"]), "16k"), [""; 0], "a buffer does");
    assert_eq!(of_page(&with(&["flash.multi_plane=off"]), "16k"), [""; 0], "the chips cannot");
    assert_eq!(of_page(&with(&["ftl.design=block-mapped"]), "16k"), [""; 0], "the design cannot");
}

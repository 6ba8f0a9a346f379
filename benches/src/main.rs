//! Speed and size of ssdlab, measured.
//!
//! Each figure is requests per second of CPU time on one core, start-up and ageing left out: the kernel's own account
//! of this process (`/proc/self/schedstat`), not the wall clock, since machines are shared.

mod at_once;
mod board;
mod caches;
mod driver;
mod files;
mod layers;
mod log_blocks;
mod segments;

use std::fs;
use std::io::BufWriter;
use std::sync::atomic::AtomicBool;

use rand::RngExt;
use ssdlab_base::{Nanos, Op, Request, Rng, rng};
use ssdlab_device::{Data, Description, Drive, DriveConfig, Options};
use ssdlab_flash::{Contents, OpKind};
use ssdlab_host::{Administration, BlockDevice};
use ssdlab_measure::capture::{Capture, Select};
use ssdlab_measure::vcd::VcdWriter;
use ssdlab_measure::{Edge, Levels};
use ssdlab_torture::{Campaign, Scope};
use ssdlab_workload::trace::Trace;

/// CPU time of this process so far, in seconds.
fn cpu_seconds() -> f64 {
    let text = fs::read_to_string("/proc/self/schedstat").expect("a Linux kernel with schedstat");
    let ns: u64 = text.split_whitespace().next().and_then(|first| first.parse().ok()).expect("schedstat's first field");
    ns as f64 / 1e9
}

/// Resident memory in bytes.
fn resident_bytes() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").expect("a Linux kernel");
    let pages: u64 = text.split_whitespace().nth(1).and_then(|field| field.parse().ok()).expect("statm's second field");
    pages * 4096
}

fn config(device: &str, sets: &[&str]) -> DriveConfig {
    let path = format!("{}/../devices/{device}.toml", env!("CARGO_MANIFEST_DIR"));
    let mut description = Description::load(path.as_ref()).expect("a shipped description");
    for set in sets {
        description.set(set).expect("a valid setting");
    }
    description.resolve().expect("a valid drive")
}

fn drive(config: &DriveConfig) -> Drive {
    Drive::new(config, Options { seed: 1, contents: Contents::Nothing }).expect("an accepted drive")
}

/// Requests made before the first of them is sent.
const BATCH: u64 = 32;

/// Keeps `depth` requests outstanding until `count` have completed.
fn closed_loop<D: BlockDevice + ?Sized>(drive: &mut D, depth: u64, count: u64, mut next: impl FnMut(u64) -> Request) {
    let (mut sent, mut completed) = (0, 0);
    // As in a replay, requests are made some at a time, so that what they need is fetched side by side.
    let mut ahead: std::collections::VecDeque<Request> = std::collections::VecDeque::new();
    while completed < count {
        while sent < count && sent - completed < depth {
            if ahead.is_empty() {
                ahead.extend((sent..sent + BATCH).map(&mut next));
                drive.prefetch(ahead.make_contiguous());
            }
            let mut request = ahead.pop_front().expect("just filled");
            request.at = drive.now();
            drive.submit(&request, Data::Nothing);
            sent += 1;
        }
        if !drive.run_to_completion(Nanos::MAX) {
            panic!("the drive stopped with requests outstanding");
        }
        completed += drive.completions().len() as u64;
        drive.completions().clear();
    }
}

fn fill<D: BlockDevice + Administration + ?Sized>(drive: &mut D) {
    drive.set_timed(false);
    drive.reset_statistics();
    let (sectors, step) = (drive.sectors(), 2048);
    let mut sector = 0;
    while sector < sectors {
        drive.submit(&Request::new(Op::Write, sector, step.min(sectors - sector)), Data::Nothing);
        drive.completions().clear();
        sector += step;
    }
}

fn random(rng: &mut Rng, op: Op, pages: u64) -> Request {
    Request::new(op, rng.random_range(0..pages) * 8, 8)
}

fn age<D: BlockDevice + Administration + ?Sized>(drive: &mut D) {
    fill(drive);
    let pages = drive.sectors() / 8;
    let mut rng = rng(3, "ageing");
    for _ in 0..2 * pages {
        let request = random(&mut rng, Op::Write, pages);
        drive.submit(&request, Data::Nothing);
        drive.completions().clear();
    }
}

/// One line of the result.
struct Figure {
    name: &'static str,
    value: f64,
    unit: &'static str,
    detail: String,
}

fn measure<D: BlockDevice + Administration + ?Sized>(
    name: &'static str,
    drive: &mut D,
    count: u64,
    timed: bool,
    next: impl FnMut(u64) -> Request,
) -> Figure {
    drive.set_timed(timed);
    drive.reset_statistics();
    let start = cpu_seconds();
    closed_loop(drive, 32, count, next);
    let seconds = cpu_seconds() - start;
    let flash = drive.counters().flash;
    let operations: u64 = OpKind::ALL.iter().map(|kind| flash.total(*kind)).sum();
    let detail = format!(
        "{:.2} programs and {:.2} flash operations a request, {:.1} million operations/s, {:.1} s virtual",
        flash.total(OpKind::Program) as f64 / count as f64,
        operations as f64 / count as f64,
        operations as f64 / seconds / 1e6,
        drive.now().as_secs_f64(),
    );
    Figure { name, value: count as f64 / seconds, unit: "requests/s", detail }
}

/// How many operations of flash a drive simulates a second while it is measured.
fn measure_operations(name: &'static str, drive: &mut Drive, count: u64, next: impl FnMut(u64) -> Request) -> Figure {
    let start = cpu_seconds();
    let Figure { detail, .. } = measure(name, drive, count, true, next);
    let seconds = cpu_seconds() - start;
    let flash = drive.counters().flash;
    let operations: u64 = OpKind::ALL.iter().map(|kind| flash.total(*kind)).sum();
    Figure { name, value: operations as f64 / seconds, unit: "operations/s", detail }
}

/// Of several rounds the fastest counts.
fn keep_better(best: &mut Option<Figure>, figure: Figure) {
    if best.as_ref().is_none_or(|best| best.value < figure.value) {
        *best = Some(figure);
    }
}

fn fresh_drive_figures(config: &DriveConfig) -> Vec<Figure> {
    let mut fresh = drive(config);
    let pages = fresh.user_sectors() / 8;
    let mut random_writes = rng(5, "fresh");
    let writes = measure("fresh 4k random writes", &mut fresh, 4_000_000, true, |_| {
        random(&mut random_writes, Op::Write, pages)
    });
    let mut fresh = drive(config);
    let spans = fresh.user_sectors() / 256;
    let sequential =
        measure("128k sequential writes", &mut fresh, 200_000, true, |n| Request::new(Op::Write, n % spans * 256, 256));
    vec![writes, sequential]
}

fn aged_drive_figures(config: &DriveConfig) -> Vec<Figure> {
    let before = resident_bytes();
    let mut aged = drive(config);
    let pages = aged.user_sectors() / 8;
    let start = cpu_seconds();
    fill(&mut aged);
    let value = pages as f64 / (cpu_seconds() - start);
    let mut figures = vec![Figure { name: "fill, untimed", value, unit: "pages/s", detail: String::new() }];
    let mut reads = rng(6, "reads");
    figures.push(measure("4k random reads", &mut aged, 4_000_000, true, |_| random(&mut reads, Op::Read, pages)));
    age(&mut aged);
    let mut counted = rng(8, "counting");
    figures.push(measure("4k overwrites, counting only", &mut aged, 8_000_000, false, |_| {
        random(&mut counted, Op::Write, pages)
    }));
    let mut overwrites = rng(9, "overwrites");
    figures.push(measure("4k overwrites, steady state", &mut aged, 2_000_000, true, |_| {
        random(&mut overwrites, Op::Write, pages)
    }));
    let value = (resident_bytes() - before) as f64 / config.flash.geometry.pages() as f64;
    let detail = "resident, ageing included".to_string();
    figures.push(Figure { name: "memory", value, unit: "bytes/page", detail });
    figures
}

/// Writes of which most are not aligned, half of them to a hot part twice the buffer's size: pages are overwritten while
/// they are there, and chips are congested all the time.
fn unaligned(rng: &mut Rng, pages: u64) -> Request {
    let page = if rng.random_bool(0.5) { rng.random_range(0..8192.min(pages)) } else { rng.random_range(0..pages) };
    if rng.random_bool(0.3) {
        return Request::new(Op::Write, page * 8, 8);
    }
    let first = rng.random_range(0..8);
    Request::new(Op::Write, page * 8 + first, rng.random_range(1..=8 - first))
}

/// Write buffers side by side on the same unaligned writes. Each drive is made twice and the measurements take turns, so
/// that what else the machine does meets all alike; the better of the two counts.
fn buffer_figures() -> Vec<Figure> {
    let policies = [("lru", "unaligned writes, buffer lru"), ("pc-lru", "unaligned writes, buffer pc-lru")];
    let mut figures: Vec<Figure> = Vec::new();
    for round in 0..2 {
        for (index, (policy, name)) in policies.into_iter().enumerate() {
            let policy = format!("buffer.policy={policy}");
            let config = config("bench-32g", &[&policy, "buffer.size=16m"]);
            let mut drive = drive(&config);
            fill(&mut drive);
            let pages = drive.user_sectors() / 8;
            let mut writes = rng(10, "unaligned");
            measure(name, &mut drive, 100_000, true, |_| unaligned(&mut writes, pages));
            let mut figure = measure(name, &mut drive, 1_000_000, true, |_| unaligned(&mut writes, pages));
            let buffer = drive.counters().buffer;
            figure.detail = format!(
                "{:.0} % of {} pages left partial, {} delayed; {}",
                buffer.partial_pages as f64 / buffer.evictions as f64 * 100.0,
                buffer.evictions,
                buffer.delayed_pages,
                figure.detail
            );
            if round == 0 {
                figures.push(figure);
            } else if figure.value > figures[index].value {
                figures[index] = figure;
            }
        }
    }
    figures
}

/// A drive whose map is cached beside one with the map in RAM: so many bytes of map pages, or all of them.
const MAP_CACHES: [(&str, &[&str], [&str; 3]); 3] = [
    ("page", &[], ["4k random reads, page beside dftl", "4k overwrites, page beside dftl", "memory, page beside dftl"]),
    (
        "1 MB",
        &["ftl.design=dftl", "ftl.map_cache=1m"],
        ["4k random reads, dftl with 1 MB", "4k overwrites, dftl with 1 MB", "memory, dftl with 1 MB"],
    ),
    (
        "all",
        &["ftl.design=dftl", "ftl.map_cache=1g"],
        ["4k random reads, dftl, map cached", "4k overwrites, dftl, map cached", "memory, dftl, map cached"],
    ),
];

/// Reads and overwrites of drives with a cached map, beside one without. The drives take turns, and the better of two rounds
/// counts.
fn cached_map_figures() -> Vec<Figure> {
    let (mut memory, mut drives) = (Vec::new(), Vec::new());
    for (_, sets, [_, _, name]) in MAP_CACHES {
        let before = resident_bytes();
        let mut drive = drive(&config("bench-32g", sets));
        let pages = drive.user_sectors() / 8;
        fill(&mut drive);
        let mut overwrites = rng(3, "ageing");
        // Less than for other figures: without time, each miss is work, too. All three are as old.
        for _ in 0..pages / 2 {
            drive.submit(&random(&mut overwrites, Op::Write, pages));
            drive.completions().clear();
        }
        let value = (resident_bytes() - before) as f64 / pages as f64;
        memory.push(Figure { name, value, unit: "bytes/unit", detail: "resident, ageing included".to_string() });
        drives.push((drive, pages));
    }
    let mut best: Vec<[Option<Figure>; 2]> = MAP_CACHES.iter().map(|_| [None, None]).collect();
    for round in 0..2 {
        for (index, (drive, pages)) in drives.iter_mut().enumerate() {
            let (_, _, [reads, overwrites, _]) = MAP_CACHES[index];
            for (kind, (name, op, count)) in
                [(reads, Op::Read, 1_000_000), (overwrites, Op::Write, 300_000)].into_iter().enumerate()
            {
                let mut requests = rng(20 + round, name);
                let figure = measure(name, drive, count, true, |_| random(&mut requests, op, *pages));
                if best[index][kind].as_ref().is_none_or(|best| best.value < figure.value) {
                    best[index][kind] = Some(figure);
                }
            }
        }
    }
    let mut figures: Vec<Figure> = best.into_iter().flatten().flatten().collect();
    let (of_page, beside) = figures.split_at_mut(2);
    for (index, figure) in beside.iter_mut().enumerate() {
        let ratio = figure.value / of_page[index % 2].value * 100.0;
        figure.detail = format!("{ratio:.0} % of page's; {}", figure.detail);
    }
    figures.extend(memory);
    figures
}

/// Pages that recovery of a filled drive of 110 GB reads, after a twentieth of it was overwritten at random, as a share of
/// those that `page` reads.
fn recovery_figure() -> Figure {
    let sets = ["flash.blocks_per_plane=1880", "capacity.user=110g"];
    let read = |more: &[&str]| {
        let config = config("bench-32g", &[&sets[..], more].concat());
        let options = Options { seed: 1, contents: Contents::Nothing };
        let mut drive = drive(&config);
        fill(&mut drive);
        let pages = drive.user_sectors() / 8;
        let mut overwrites = rng(3, "ageing");
        for _ in 0..pages / 20 {
            drive.submit(&random(&mut overwrites, Op::Write, pages));
            drive.completions().clear();
        }
        let (_, recovery) = Drive::recover(&config, options, drive.power_cut()).expect("it is recovered");
        recovery
    };
    let (page, cached) = (read(&[]), read(&["ftl.design=dftl", "ftl.map_cache=1m"]));
    let value = cached.pages_read as f64 / page.pages_read as f64 * 100.0;
    let detail = format!(
        "{} pages read, and {} programmed, of a drive that has {} pages to read with page",
        cached.pages_read, cached.pages_programmed, page.pages_read
    );
    Figure { name: "recovery reads of 110 GB, dftl", value, unit: "% of page's", detail }
}

/// Lines of our own CSV parsed in a second.
fn parsing_figure() -> Figure {
    const LINES: u64 = 5_000_000;
    let path = std::env::temp_dir().join(format!("ssdlab-bench-{}.csv", std::process::id()));
    let mut text = String::from("time_us,op,offset_bytes,length_bytes\n");
    let mut rng = rng(4, "lines");
    for line in 0..LINES {
        let op = if rng.random_range(0..10) < 7 { 'W' } else { 'R' };
        let offset = rng.random_range(0..1 << 21) * 4096_u64;
        text.push_str(&format!("{}.{:03},{op},{offset},{}\n", line * 7, line % 1000, 4096 << (line % 4)));
    }
    fs::write(&path, &text).expect("room for the trace in the temporary directory");
    drop(text);
    let spec = path.to_string_lossy().into_owned();
    let mut trace = Trace::open(&spec).expect("the trace just written");
    let mut requests = Vec::new();
    let mut lines = 0;
    let start = cpu_seconds();
    loop {
        requests.clear();
        match trace.read(&mut requests).expect("a well-formed trace") {
            0 => break,
            count => lines += count as u64,
        }
    }
    let value = lines as f64 / (cpu_seconds() - start);
    assert_eq!(lines, LINES, "every line is a request");
    // The file is ours alone; that it stays behind would be the only harm.
    let _ = fs::remove_file(&path);
    Figure { name: "plain CSV parsed", value, unit: "lines/s", detail: String::new() }
}

/// Power cuts a second, the oracle's work and the drawing of cases included.
fn torture_figure() -> Figure {
    let scope = Scope { designs: vec!["page".to_string()], ..Scope::everything(200) };
    let campaign = Campaign { scope, first: 1, seeds: 4000, until: None, jobs: 1 };
    let start = cpu_seconds();
    let outcome = campaign.run(&AtomicBool::new(false), &|_| {});
    let seconds = cpu_seconds() - start;
    let totals = outcome.totals;
    assert_eq!(outcome.failed, None, "the drive survives what is measured");
    let per_cut = |time: std::time::Duration| time.as_secs_f64() * 1e6 / totals.cuts as f64;
    let detail = format!(
        "a cut: {:.0} us recovery, {:.0} us comparison of {} sectors; {:.0} commands between two",
        per_cut(totals.recovering),
        per_cut(totals.comparing),
        totals.sectors_compared / totals.cuts,
        totals.commands as f64 / totals.cuts as f64,
    );
    Figure { name: "torture: power cuts", value: totals.cuts as f64 / seconds, unit: "cuts/s", detail }
}

/// Edges of a VCD decoded in a second. The example `decode_speed` of the crate does it with 10^8.
fn capture_figure() -> Figure {
    const EDGES: u64 = 10_000_000;
    let path = std::env::temp_dir().join(format!("ssdlab-bench-{}.vcd", std::process::id()));
    let levels = Levels { channels: 16, chips_per_channel: 1, dies_per_chip: 1, planes_per_die: 2, page_bytes: 4096 };
    let to = BufWriter::with_capacity(1 << 20, fs::File::create(&path).expect("room in the temporary directory"));
    let mut writer = VcdWriter::begin(to, &levels, "bench").expect("room in the temporary directory");
    for n in 0..EDGES {
        let edge = Edge { at: Nanos(n * 40_123), die: (n % 16) as u32, busy: (n / 16).is_multiple_of(2) };
        writer.edge(edge).expect("room in the temporary directory");
    }
    writer.finish(Nanos::ZERO).expect("room in the temporary directory");
    let capture = Capture::open(&path, &Select::default()).expect("the capture just written");
    let start = cpu_seconds();
    let decoded = capture.decode(|_| {}).expect("a good capture");
    let value = EDGES as f64 / (cpu_seconds() - start);
    assert_eq!(decoded.edges, EDGES, "every edge is decoded");
    // The file is ours alone; that it stays behind would be the only harm.
    let _ = fs::remove_file(&path);
    Figure { name: "VCD capture decoded", value, unit: "edges/s", detail: String::new() }
}

/// Without an argument all figures, else those of the groups that are named: fresh, aged, buffers, cached-map,
/// log-blocks, segments, driver, shrd, board, layers, caches, disk, files, host-time, recovery, parsing, captures, torture.
fn main() {
    let groups: Vec<String> = std::env::args().skip(1).collect();
    if let [of] = &groups[..]
        && let Some(disk) = of.strip_prefix(caches::MEMORY_OF)
    {
        return caches::print_memory(disk);
    }
    let wanted = |group: &str| groups.is_empty() || groups.iter().any(|name| name == group);
    let config = config("bench-32g", &[]);
    let mut figures = Vec::new();
    if wanted("fresh") {
        figures.extend(fresh_drive_figures(&config));
    }
    if wanted("aged") {
        figures.extend(aged_drive_figures(&config));
    }
    if wanted("buffers") {
        figures.extend(buffer_figures());
    }
    if wanted("cached-map") {
        figures.extend(cached_map_figures());
    }
    if wanted("log-blocks") {
        figures.extend(log_blocks::log_block_figures());
    }
    if wanted("segments") {
        figures.extend(segments::segment_figures());
    }
    if wanted("driver") {
        figures.extend(driver::driver_figures());
    }
    if wanted("shrd") {
        figures.extend(driver::beside_dftl_figures());
    }
    if wanted("board") {
        figures.extend(board::board_figures());
    }
    if wanted("layers") {
        figures.extend(layers::layer_figures());
    }
    if wanted("caches") {
        figures.extend(caches::cache_figures());
    }
    if wanted("disk") {
        figures.push(caches::disk_figure());
    }
    if wanted("files") {
        figures.extend(files::file_figures());
    }
    if wanted("host-time") {
        figures.extend(files::host_figures());
    }
    if wanted("recovery") {
        figures.push(recovery_figure());
    }
    if wanted("parsing") {
        figures.push(parsing_figure());
    }
    if wanted("captures") {
        figures.push(capture_figure());
    }
    if wanted("torture") {
        figures.push(torture_figure());
        figures.extend(caches::cut_figures());
    }
    for Figure { name, value, unit, detail } in figures {
        println!("{name}\t{value:.2}\t{unit}\t{detail}");
    }
}

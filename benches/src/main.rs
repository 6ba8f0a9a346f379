//! Speed and size of ssdlab, measured.
//!
//! Each figure is requests per second of CPU time on one core, start-up and ageing left out: the kernel's own account
//! of this process (`/proc/self/schedstat`), not the wall clock, since machines are shared.

use std::fs;

use rand::RngExt;
use ssdlab_base::{Nanos, Op, Request, Rng, rng};
use ssdlab_device::{Description, Drive, DriveConfig, Options};
use ssdlab_flash::{Contents, OpKind};

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

/// Keeps `depth` requests outstanding until `count` have completed.
fn closed_loop(drive: &mut Drive, depth: u64, count: u64, mut next: impl FnMut(u64) -> Request) {
    let (mut sent, mut completed) = (0, 0);
    // A request is made some time before it is sent, so that the drive's tables can be fetched meanwhile.
    let mut ahead: std::collections::VecDeque<Request> = std::collections::VecDeque::new();
    while completed < count {
        while sent < count && sent - completed < depth {
            while ahead.len() < 8 {
                let request = next(sent + ahead.len() as u64);
                drive.prefetch(&request);
                ahead.push_back(request);
            }
            let mut request = ahead.pop_front().expect("just filled");
            request.at = drive.now();
            drive.submit(&request);
            sent += 1;
        }
        if !drive.run_to_completion(Nanos::MAX) {
            panic!("the drive stopped with requests outstanding");
        }
        completed += drive.completions().len() as u64;
        drive.completions().clear();
    }
}

fn fill(drive: &mut Drive) {
    drive.set_timed(false);
    drive.reset_statistics();
    let (sectors, step) = (drive.user_sectors(), 2048);
    let mut sector = 0;
    while sector < sectors {
        drive.submit(&Request::new(Op::Write, sector, step.min(sectors - sector)));
        drive.completions().clear();
        sector += step;
    }
}

fn random(rng: &mut Rng, op: Op, pages: u64) -> Request {
    Request::new(op, rng.random_range(0..pages) * 8, 8)
}

fn age(drive: &mut Drive) {
    fill(drive);
    let pages = drive.user_sectors() / 8;
    let mut rng = rng(3, "ageing");
    for _ in 0..2 * pages {
        let request = random(&mut rng, Op::Write, pages);
        drive.submit(&request);
        drive.completions().clear();
    }
}

struct Figure {
    name: &'static str,
    per_second: f64,
    ops_per_second: f64,
    detail: String,
}

fn measure(name: &'static str, drive: &mut Drive, count: u64, timed: bool, next: impl FnMut(u64) -> Request) -> Figure {
    drive.set_timed(timed);
    drive.reset_statistics();
    let start = cpu_seconds();
    closed_loop(drive, 32, count, next);
    let seconds = cpu_seconds() - start;
    let flash = drive.counters().flash;
    let ops: u64 =
        [OpKind::Read, OpKind::Program, OpKind::Erase, OpKind::Copyback].iter().map(|k| flash.total(*k)).sum();
    let programs = flash.total(OpKind::Program);
    let requests = count as f64;
    Figure {
        name,
        per_second: requests / seconds,
        ops_per_second: ops as f64 / seconds,
        detail: format!(
            "{:.2} programs and {:.2} operations a request, {:.1} s virtual",
            programs as f64 / requests,
            ops as f64 / requests,
            drive.now().as_secs_f64()
        ),
    }
}

fn main() {
    let only: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let wanted = |name: &str| only.is_empty() || only.iter().any(|only| name.contains(only.as_str()));
    let config = config("bench-32g", &[]);
    let physical = config.flash.geometry.pages();
    let mut figures = Vec::new();
    let before = resident_bytes();
    if wanted("fresh") {
        let mut fresh = drive(&config);
        let pages = fresh.user_sectors() / 8;
        let mut rng = rng(5, "fresh");
        figures.push(measure("fresh 4k random writes", &mut fresh, 4_000_000, true, |_| {
            random(&mut rng, Op::Write, pages)
        }));
    }
    if wanted("sequential") {
        let mut fresh = drive(&config);
        let spans = fresh.user_sectors() / 256;
        figures.push(measure("128k sequential writes", &mut fresh, 200_000, true, |n| {
            Request::new(Op::Write, n % spans * 256, 256)
        }));
    }
    let mut aged = drive(&config);
    let start = cpu_seconds();
    fill(&mut aged);
    let filled = cpu_seconds() - start;
    let pages = aged.user_sectors() / 8;
    figures.push(Figure {
        name: "fill, untimed (pages)",
        per_second: pages as f64 / filled,
        ops_per_second: pages as f64 / filled,
        detail: String::new(),
    });
    if wanted("reads") {
        let mut rng = rng(6, "reads");
        figures.push(measure("4k random reads", &mut aged, 4_000_000, true, |_| random(&mut rng, Op::Read, pages)));
    }
    age(&mut aged);
    if wanted("counting") {
        let mut rng = rng(8, "counting");
        figures
            .push(measure("counting, overwrites", &mut aged, 6_000_000, false, |_| random(&mut rng, Op::Write, pages)));
    }
    if wanted("overwrites") {
        let mut rng = rng(9, "overwrites");
        figures
            .push(measure("4k random overwrites", &mut aged, 2_000_000, true, |_| random(&mut rng, Op::Write, pages)));
    }
    let bytes = (resident_bytes() - before) as f64 / physical as f64;
    for Figure { name, per_second, ops_per_second, detail } in figures {
        println!("{name:26} {per_second:>12.0} /s  {ops_per_second:>12.0} flash ops/s  {detail}");
    }
    println!("{:26} {bytes:>12.2} bytes a physical page", "memory");
}

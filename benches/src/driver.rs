//! The driver `shrd`: alone above a device that answers at once, and above its drive beside DFTL.

use ssdlab_base::{Op, Request, rng};
use ssdlab_device::{Drive, Options};
use ssdlab_flash::Contents;
use ssdlab_host::{BlockDevice, Device, Host, Member};

use crate::at_once::AtOnce;
use crate::{Figure, closed_loop, config, cpu_seconds, drive, fill, keep_better, measure, random};

/// Units of a log of 64 MB, which are the entries of a full table.
const LOG_UNITS: u64 = 16_384;
const UNIT_SECTORS: u64 = 8;

/// What the driver takes.
pub(crate) fn driver_figures() -> Vec<Figure> {
    let mut figures = alone();
    figures.extend(read_overhead());
    figures
}

/// SHRD beside DFTL, on the drive of all benchmarks and on one of 110 GB.
pub(crate) fn beside_dftl_figures() -> Vec<Figure> {
    let mut figures = beside_dftl(
        &[],
        (300_000, 1_000_000),
        [
            "4k overwrites, dftl beside shrd",
            "4k overwrites, shrd",
            "4k random reads, dftl beside shrd",
            "4k random reads, shrd",
        ],
    );
    figures.extend(beside_dftl(
        &["flash.blocks_per_plane=1880", "capacity.user=110g"],
        (200_000, 500_000),
        [
            "4k overwrites of 110 GB, dftl",
            "4k overwrites of 110 GB, shrd",
            "4k random reads of 110 GB, dftl",
            "4k random reads of 110 GB, shrd",
        ],
    ));
    figures
}

fn host() -> Host {
    Host::parse("[[layer]]\nkind = \"shrd\"\n", "bench").expect("a host")
}

/// CPU time of a request, the better of some rounds.
fn nanoseconds<D: BlockDevice + ?Sized>(device: &mut D, depth: u64, mut next: impl FnMut(u64) -> Request) -> f64 {
    const REQUESTS: u64 = 1_000_000;
    let rounds = (0..3).map(|_| {
        let start = cpu_seconds();
        closed_loop(device, depth, REQUESTS, &mut next);
        (cpu_seconds() - start) * 1e9 / REQUESTS as f64
    });
    rounds.fold(f64::INFINITY, f64::min)
}

/// One write to each of so many units, from the first on, in an order that is none.
fn scattered(n: u64) -> Request {
    Request::new(Op::Write, (n * 7919 % LOG_UNITS) * UNIT_SECTORS, UNIT_SECTORS)
}

/// The driver above a device that answers at once. What the loop of this program and the device take is in the figures, and said.
fn alone() -> Vec<Figure> {
    let units = 1 << 23;
    let device = || AtOnce::new(units * UNIT_SECTORS, LOG_UNITS * UNIT_SECTORS);
    let driver = || host().above(vec![Box::new(device())]).expect("a driver");
    let of_log = |driver: &dyn Device, name: &str| driver.layers()[0].figures[name];
    let mut bare: Box<dyn Device> = Box::new(device());
    let mut requests = rng(31, "driver");
    let nothing = nanoseconds(&mut *bare, 32, |_| random(&mut requests, Op::Write, units));
    let mut figures = Vec::new();
    for (name, depth) in [("driver: a sequentialized write", 32), ("driver: a write, one at a time", 1)] {
        let mut driver = driver();
        let value = nanoseconds(&mut *driver, depth, |_| random(&mut requests, Op::Write, units));
        let packed = of_log(&*driver, "packed_requests") / of_log(&*driver, "twrites");
        let remaps = of_log(&*driver, "remapped_entries") / of_log(&*driver, "small_writes");
        let detail = format!(
            "{packed:.1} requests a twrite, {remaps:.2} entries remapped a write; {nothing:.0} ns without driver"
        );
        figures.push(Figure { name, value, unit: "ns", detail });
    }
    let mut driver = driver();
    closed_loop(&mut *driver, 32, LOG_UNITS, scattered);
    let read = |requests: &mut _| {
        let Request { sector, sectors, .. } = random(requests, Op::Read, units - LOG_UNITS);
        Request::new(Op::Read, sector + LOG_UNITS * UNIT_SECTORS, sectors)
    };
    let nothing = nanoseconds(&mut *bare, 32, |_| read(&mut requests));
    let value = nanoseconds(&mut *driver, 32, |_| read(&mut requests));
    let (entries, hits) = (of_log(&*driver, "table_entries"), of_log(&*driver, "reads_of_log"));
    assert_eq!((entries, hits), (LOG_UNITS as f64, 0.0), "the table is full, and no read hits it");
    let detail = format!("past {entries} entries that it never hits; {nothing:.0} ns without driver");
    figures.push(Figure { name: "driver: a read past a full table", value, unit: "ns", detail });
    figures
}

/// Reads of one drive that never hit a full table, through the driver and past it, in turns.
fn read_overhead() -> [Figure; 2] {
    let mut drive = drive(&config("bench-32g", &["ftl.design=shrd", "ftl.map_cache=1g"]));
    fill(&mut drive);
    let mut stack = above(drive);
    let pages = stack.sectors() / UNIT_SECTORS;
    stack.set_timed(true);
    closed_loop(&mut *stack, 32, LOG_UNITS, scattered);
    let read = |requests: &mut _| {
        let Request { sector, sectors, .. } = random(requests, Op::Read, pages - LOG_UNITS);
        Request::new(Op::Read, sector + LOG_UNITS * UNIT_SECTORS, sectors)
    };
    let names = ["4k random reads past the driver", "4k random reads through the driver"];
    let mut best: [Option<Figure>; 2] = [None, None];
    for round in 0..3 {
        for (through, name) in names.into_iter().enumerate() {
            let mut requests = rng(40 + round, "reads");
            let figure = if through == 1 {
                measure(name, &mut *stack, 1_000_000, true, |_| read(&mut requests))
            } else {
                let mut parts = stack.drives_mut();
                measure(name, &mut *parts[0].device, 1_000_000, true, |_| read(&mut requests))
            };
            keep_better(&mut best[through], figure);
        }
    }
    let [Some(past), Some(mut through)] = best else { unreachable!("each was measured") };
    let layers = stack.layers();
    let (entries, hits) = (layers[0].figures["table_entries"], layers[0].figures["reads_of_log"]);
    assert_eq!((entries, hits), (LOG_UNITS as f64, 0.0), "the table is full, and no read hits it");
    let more = 1e9 / through.value - 1e9 / past.value;
    through.detail = format!("{more:.0} ns a read more than past it; {}", through.detail);
    [past, through]
}

/// A drive, which has nothing to do, under the driver.
fn above(drive: Drive) -> Box<dyn Device> {
    let options = Options { seed: 1, contents: Contents::Nothing };
    host().build(vec![Member::of("bench", drive, options)]).expect("a stack")
}

/// DFTL, and SHRD through its driver, with 1 MB of map cache each: overwrites, then reads, in turns; the better of two rounds
/// counts.
fn beside_dftl(sets: &[&str], (writes, reads): (u64, u64), names: [&'static str; 4]) -> Vec<Figure> {
    let made = |design: &str| {
        let design = format!("ftl.design={design}");
        let mut drive = drive(&config("bench-32g", &[sets, &[&design, "ftl.map_cache=1m"]].concat()));
        fill(&mut drive);
        let pages = drive.user_sectors() / UNIT_SECTORS;
        let mut overwrites = rng(3, "ageing");
        for _ in 0..pages / 20 {
            drive.submit(&random(&mut overwrites, Op::Write, pages));
            drive.completions().clear();
        }
        drive
    };
    let mut dftl = made("dftl");
    let mut shrd = above(made("shrd"));
    let pages = dftl.user_sectors() / UNIT_SECTORS;
    let mut best: [Option<Figure>; 4] = [const { None }; 4];
    for (kind, op, count) in [(0, Op::Write, writes), (2, Op::Read, reads)] {
        for round in 0..3 {
            let mut requests = rng(50 + round, names[kind]);
            let figure = measure(names[kind], &mut dftl, count, true, |_| random(&mut requests, op, pages));
            let mut requests = rng(50 + round, names[kind]);
            let beside = measure(names[kind + 1], &mut *shrd, count, true, |_| random(&mut requests, op, pages));
            // The first brings both to their steady state.
            if round > 0 {
                keep_better(&mut best[kind], figure);
                keep_better(&mut best[kind + 1], beside);
            }
        }
    }
    let mut figures: Vec<Figure> = best.into_iter().flatten().collect();
    for kind in [0, 2] {
        let ratio = figures[kind + 1].value / figures[kind].value * 100.0;
        figures[kind + 1].detail = format!("{ratio:.0} % of dftl's; {}", figures[kind + 1].detail);
    }
    figures
}

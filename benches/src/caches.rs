//! A disk behind a solid-state cache: what a hit costs on its way through the host, the disk, memory, and power cuts.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use rand::seq::SliceRandom;
use ssdlab_base::{Op, Request, rng};
use ssdlab_device::{Data, Description, DriveConfig, Options};
use ssdlab_disk::DiskConfig;
use ssdlab_flash::Contents;
use ssdlab_host::{Device, Host, Member, Names, UnknownDrive};
use ssdlab_torture::cache::CacheScope;
use ssdlab_torture::stacks::{Stack, StackScope};
use ssdlab_torture::{Campaign, Draw};

use crate::board::board;
use crate::layers::nanoseconds;
use crate::{Figure, config, cpu_seconds, drive, fill, random, resident_bytes};

/// Requests in flight.
const DEPTH: u64 = 32;

/// Blocks that are cached, of 2 million or more: none of them is dropped.
const CACHED: u64 = 200_000;

/// Disks of the lines on memory, the smaller one first.
const DISKS: [&str; 2] = ["75g", "1500301910016"];

/// What begins the argument of a process that measures its memory.
pub(crate) const MEMORY_OF: &str = "memory-of-a-cache:";

/// The descriptions that ship.
struct Shipped;

impl Names for Shipped {
    fn drive(&self, name: &str) -> Result<Description, UnknownDrive> {
        Err(UnknownDrive(format!("{name}: the benchmark names its drives itself")))
    }

    fn disk(&self, name: &str) -> Result<(String, String), UnknownDrive> {
        let path = format!("{}/../devices/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        Ok((std::fs::read_to_string(&path).expect("a shipped description"), path))
    }
}

fn disk_config() -> DiskConfig {
    DiskConfig::load(format!("{}/../devices/wd1502faex.toml", env!("CARGO_MANIFEST_DIR")).as_ref()).expect("a disk")
}

/// The block layer above a manager above a solid-state cache and a disk of a size.
fn stack(config: &DriveConfig, disk: &str) -> Box<dyn Device> {
    let size = if disk.ends_with('g') { format!("\"{disk}\"") } else { disk.to_string() };
    let text = format!(
        "[[layer]]\nkind = \"scheduler\"\ndepth = {DEPTH}\n[[layer]]\nkind = \"cache\"\n\
         below = [{{}}, {{ disk = \"wd1502faex\", size = {size} }}]\n"
    );
    let host = Host::parse_with(&text, "bench", &Shipped).expect("a host");
    let options = Options { seed: 1, contents: Contents::Nothing };
    let members = host.members(config).into_iter();
    let members = members.map(|(name, config)| Member::fresh(&name, &config, options).expect("an accepted drive"));
    host.build(members.collect()).expect("a stack")
}

/// Solid-state caches of a disk: the board, and a drive whose controller takes no time.
fn caches(disk: &str) -> [DriveConfig; 2] {
    let addresses = format!("ftl.addresses={disk}");
    let sets = [addresses.as_str(), "ftl.allocation=dynamic"];
    let plain = [&["ftl.design=ssc", "flash.blocks_per_plane=128", "ftl.mapping_unit=4k"], &sets[..]].concat();
    [board(Some("ssc"), &sets), config("bench-32g", &plain)]
}

fn submit(device: &mut dyn Device, request: Request) {
    device.submit(&Request { at: device.now(), ..request }, Data::Nothing);
    while device.outstanding() > 0 {
        assert!(device.run_to_completion(ssdlab_base::Nanos::MAX), "a command completes");
    }
    device.completions().clear();
}

/// Blocks far from each other, so that no run of them goes past the cache.
fn scattered(device: &dyn Device, count: u64) -> Vec<u64> {
    let step = device.sectors() / 8 / count;
    let mut blocks: Vec<u64> = (0..count).map(|number| number * step).collect();
    blocks.shuffle(&mut rng(61, "caches"));
    blocks
}

fn metrics(device: &dyn Device) -> BTreeMap<String, f64> {
    device.layers().into_iter().find(|layer| layer.kind == "cache").expect("the manager").figures
}

/// Random reads of cached blocks through block layer and manager, and of the cache alone, in turns.
fn hits(name: &'static str, config: &DriveConfig) -> Figure {
    const READS: u64 = 200_000;
    let options = Options { seed: 1, contents: Contents::Nothing };
    let (mut through, mut alone) = (stack(config, DISKS[0]), Member::alone(drive(config), options));
    let blocks = scattered(&*through, CACHED);
    [&mut through, &mut alone].into_iter().for_each(|device| device.set_timed(false));
    for block in &blocks {
        submit(&mut *through, Request::new(Op::Write, block * 8, 8));
        submit(&mut *alone, Request::new(Op::Write, block * 8, 8));
    }
    [&mut through, &mut alone].into_iter().for_each(|device| device.set_timed(true));
    let mut requests = rng(62, "caches");
    let mut best = [f64::INFINITY; 2];
    for _ in 0..2 {
        for (device, best) in [&mut through, &mut alone].into_iter().zip(&mut best) {
            let value = nanoseconds(&mut **device, DEPTH, READS, |_| {
                let Request { sector, .. } = random(&mut requests, Op::Read, CACHED);
                Request::new(Op::Read, blocks[sector as usize / 8] * 8, 8)
            });
            *best = best.min(value);
        }
    }
    let counts = metrics(&*through);
    assert_eq!(counts["misses_absent"], 0.0, "every read hits");
    let [through, alone] = best;
    let detail =
        format!("{:.0} % of the rate of reads of the cache alone, which take {alone:.0} ns", alone / through * 100.0);
    Figure { name, value: through, unit: "ns", detail }
}

/// Random reads of a disk with 32 waiting beside those of a full `bench-32g`, in turns.
pub(crate) fn disk_figure() -> Figure {
    let mut disk: Box<dyn Device> = Box::new(Member::new_disk("disk", &disk_config(), Contents::Nothing));
    let mut flash = drive(&config("bench-32g", &[]));
    fill(&mut flash);
    flash.set_timed(true);
    let mut flash = Member::alone(flash, Options { seed: 1, contents: Contents::Nothing });
    let mut requests = rng(63, "caches");
    let mut best = [f64::INFINITY; 2];
    for _ in 0..2 {
        for (device, best) in [&mut disk, &mut flash].into_iter().zip(&mut best) {
            let blocks = device.sectors() / 8;
            let value = nanoseconds(&mut **device, DEPTH, 300_000, |_| random(&mut requests, Op::Read, blocks));
            *best = best.min(value);
        }
    }
    let [value, of_flash] = best;
    let detail =
        format!("{:.0} % of the rate of bench-32g, where one takes {of_flash:.0} ns", of_flash / value * 100.0);
    Figure { name: "disk: a random read, 32 waiting", value, unit: "ns", detail }
}

/// Prints what a stack takes, in a process of its own: bytes of the stack, and of that those of the disk and the layers.
pub(crate) fn print_memory(disk: &str) {
    let config = board(Some("ssc"), &[&format!("ftl.addresses={disk}"), "ftl.allocation=dynamic"]);
    let units = config.user_bytes / 4096;
    let before = resident_bytes();
    let mut stack = stack(&config, disk);
    stack.set_timed(false);
    // A fifth more than there is room for: clean blocks are dropped, and the cache is full.
    for block in scattered(&*stack, units / 5 * 6) {
        submit(&mut *stack, Request::new(Op::Write, block * 8, 8));
    }
    println!("{}\t{units}", resident_bytes() - before);
}

/// Memory of a full cache in front of a small and a large disk.
fn memory_figures() -> Vec<Figure> {
    let taken = DISKS.map(|disk| {
        let this = std::env::current_exe().expect("this program");
        let output = Command::new(this).arg(format!("{MEMORY_OF}{disk}")).output().expect("this program runs");
        let text = String::from_utf8(output.stdout).expect("two numbers");
        let (bytes, units) = text.trim().split_once('\t').expect("two numbers");
        (bytes.parse::<f64>().expect("bytes"), units.parse::<f64>().expect("units"))
    });
    let [(small, units), (large, _)] = taken;
    vec![
        Figure {
            name: "cache: memory of a cached unit",
            value: small / units,
            unit: "bytes",
            detail: format!("resident: the board, manager and a disk of 75 GB; {units:.0} units, all in use"),
        },
        Figure {
            name: "cache: memory with a disk of 1.5 TB",
            value: large / small * 100.0,
            unit: "% of that with 75 GB",
            detail: format!("{:.1} and {:.1} MB resident", large / 1e6, small / 1e6),
        },
    ]
}

fn cuts<D: Draw + Sync>(name: &'static str, scope: D, seeds: u64) -> Figure {
    let campaign = Campaign { scope, first: 1, seeds, until: None, jobs: 1 };
    let start = cpu_seconds();
    let outcome = campaign.run(&AtomicBool::new(false), &|_| {});
    let seconds = cpu_seconds() - start;
    let totals = outcome.totals;
    assert!(outcome.failed.is_none(), "it survives what is measured");
    let detail = format!("{} cuts in {} cases", totals.cuts, totals.cases);
    Figure { name, value: totals.cuts as f64 / seconds, unit: "cuts/s", detail }
}

/// A manager over a small cache and a small disk.
fn small_stack() -> StackScope {
    let text = "[[layer]]\nkind = \"cache\"\nclean_batch = \"16k\"\nregion = \"16k\"\nsequential = \"8k\"\n[[layer.below]]\n\
                [[layer.below]]\ndisk = \"small-disk\"\nsize = 204800\nset = [\"disk.write_cache.bytes=16k\"]\n";
    StackScope { host: Some(Stack::new(text.to_string())), drive: None, commands: 200, drivers: true, faults: true }
}

/// What a hit costs, and memory.
pub(crate) fn cache_figures() -> Vec<Figure> {
    let names = ["cache: a hit through the host, the board", "cache: a hit through the host, bench-32g"];
    let hits: Vec<Figure> = names.into_iter().zip(caches(DISKS[0])).map(|(name, config)| hits(name, &config)).collect();
    hits.into_iter().chain(memory_figures()).collect()
}

/// Power cuts of a solid-state cache without a manager, and of the two devices of a manager.
pub(crate) fn cut_figures() -> Vec<Figure> {
    vec![
        cuts("torture: power cuts of a solid-state cache", CacheScope, 1000),
        cuts("torture: power cuts of a cache and its disk", small_stack(), 200),
    ]
}

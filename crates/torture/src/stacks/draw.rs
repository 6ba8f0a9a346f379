//! A stack and what happens to it, from a seed.

use rand::RngExt;
use ssdlab_base::{CommandSet, Op, Request, Rng, SECTOR_BYTES, rng};
use ssdlab_device::{Drive, DriveConfig, Options, design_with, draw_design};
use ssdlab_flash::{Contents, FaultKind};

use super::{Stack, disk};
use crate::campaign::{Draw, NotDrawn, try_drives};
use crate::case::Case;
use crate::commands::Mix;
use crate::configs::{self, one_of};
use crate::cut::{Again, Cut, Whose};
use crate::script::describable;
use crate::step::{BlockCommand, Place, Step};

/// Sectors of a stack at most: what a comparison of all of it costs.
const MOST_SECTORS: u64 = 4000;

/// What cases are drawn from.
#[derive(Clone, Debug)]
pub struct StackScope {
    /// Layers of one's own; else they are drawn, too.
    pub host: Option<Stack>,
    /// A drive of one's own for layers that name none; else small ones are drawn.
    pub drive: Option<DriveConfig>,
    /// Commands of a case.
    pub commands: u64,
    /// The layers drawn are a driver that needs commands of its drive's, and perhaps a scheduler above it.
    pub drivers: bool,
    /// In some cases reads fail; the others are the same without.
    pub faults: bool,
}

/// Tries to draw a seed's stack, whose layers may want more than a small drive has.
const TRIES: u32 = 2000;

impl Draw for StackScope {
    type Subject = Stack;

    fn draw_until(&self, seed: u64, over: &dyn Fn() -> bool) -> Result<Case<Stack>, NotDrawn> {
        let (mut rng, mut faults) = (rng(seed, "stack torture"), rng(seed, "stack faults"));
        let faulty = self.faults && faults.random_bool(0.3);
        try_drives(seed, TRIES, over, || {
            let drawn = match &self.host {
                Some(stack) => Some(stack.clone()),
                // Every tenth: not the same ones in both campaigns.
                None if seed % 10 == if self.drivers { 7 } else { 0 } => Some(Stack::new(nested(&mut rng))),
                None if self.drivers && seed % 10 == 4 => Some(Stack::new(cache(&mut rng, disk::draw))),
                // Every third.
                None if self.drivers && seed.is_multiple_of(3) => Some(Stack::new(append(&mut rng, seed))),
                None if self.drivers => Some(Stack::new(shrd(&mut rng, seed))),
                // Every tenth.
                None if seed % 10 == 5 => Some(Stack::new(flashcache(&mut rng, disk::draw))),
                None => None,
            };
            let sets = drawn.as_ref().map_or(&[][..], |stack| stack.host.commands());
            // Of several sets one by the seed: every second host that appends is above zones.
            let set = sets.get(seed as usize / 9 % sets.len().max(1));
            let drive = match &self.drive {
                Some(drive) => drive.clone(),
                None => small_drive(&mut rng, set.and_then(|set| design_with(set))),
            };
            let drive = if faulty && self.drive.is_none() { with_faults(drive, &mut faults) } else { drive };
            let kinds = if matches!(seed % 10, 3 | 7) { Kinds::All } else { Kinds::Arrays };
            let driver: Option<Driver> = (seed % 10 == 2).then_some(disk_or_drive);
            let any = |rng: &mut Rng| Stack::new(format!("[[layer]]\n{}", layer(rng, "layer", 0, kinds, driver)));
            let subject = drawn.unwrap_or_else(|| any(&mut rng));
            let sectors = subject.host.sectors(&drive).map_err(|why| Some(why.to_string()))?;
            if sectors == 0 || sectors > MOST_SECTORS && self.host.is_none() && self.drive.is_none() {
                return Err(None);
            }
            let seen = DriveConfig { user_bytes: sectors * SECTOR_BYTES, below_layers: true, ..drive.clone() };
            let steps = steps(&mut rng, &seen, self.commands);
            let steps = if faulty { with_failures(steps, drive.gc.free_blocks >= 3, &mut faults) } else { steps };
            Ok(Case { seed, drive, subject, steps })
        })
    }
}

/// Above some drivers is a scheduler.
const ABOVE: [&str; 3] = ["", "", "[[layer]]\nkind = \"scheduler\"\ndepth = 4\n"];

/// In other seeds a driver stands between the layers of a host's path.
const PATH_ABOVE: [&str; 3] = [
    "",
    "[[layer]]\nkind = \"scheduler\"\npolicy = \"deadline\"\ndepth = 2\n",
    "[[layer]]\nkind = \"page-cache\"\nram = \"64k\"\n",
];
const PATH_BELOW: [&str; 3] = [
    "[[layer]]\nkind = \"scheduler\"\ndepth = 3\n",
    "[[layer]]\nkind = \"ata\"\ntags = 4\n",
    "[[layer]]\nkind = \"scheduler\"\npolicy = \"noop\"\ndepth = 4\n[[layer]]\nkind = \"ata\"\n",
];

/// A driver, as the text of its keys, or a disk.
type Driver = fn(&mut Rng) -> String;

/// A disk in most places, else the drive of the case.
fn disk_or_drive(rng: &mut Rng) -> String {
    if rng.random_bool(0.7) { disk::draw(rng) } else { String::new() }
}

/// A disk on which there can be a file system in some places, else the drive of the case.
fn large_disk_or_drive(rng: &mut Rng) -> String {
    if rng.random_bool(0.3) { disk::draw_large(rng) } else { String::new() }
}

/// Layers below a file system, and the command set that the drive is to have; `set` is the one that the file system needs.
pub(crate) fn below_files(rng: &mut Rng, set: Option<&'static CommandSet>) -> (Stack, Option<&'static CommandSet>) {
    if set.is_some() {
        // The layer that hands on what a drive of segments takes.
        return (Stack::new(format!("[[layer]]\n{}", scheduler(rng))), set);
    }
    let seed = rng.random();
    let text = match rng.random_range(0..8) {
        0 => flashcache(rng, disk::draw_large),
        1 => cache(rng, disk::draw_large),
        2 => append(rng, seed),
        3 => shrd(rng, seed),
        4 => format!("[[layer]]\n{}", layer(rng, "layer", 0, Kinds::Arrays, Some(large_disk_or_drive))),
        _ => format!("[[layer]]\n{}", layer(rng, "layer", 0, Kinds::All, None)),
    };
    let stack = Stack::new(text);
    let sets = stack.host.commands();
    let set = (!sets.is_empty()).then(|| one_of(rng, sets));
    (stack, set)
}

/// Layers above drivers, each with a drive of its own; some of the drives that a driver may be above have none.
fn nested(rng: &mut Rng) -> String {
    let shrd: Driver = |rng| if rng.random_bool(0.85) { shrd_keys(rng) } else { String::new() };
    let append: Driver = |rng| {
        let paced = rng.random_bool(0.3);
        append_keys(rng, paced)
    };
    let driver = one_of(rng, &[shrd, shrd, append]);
    format!("[[layer]]\n{}", layer(rng, "layer", 0, Kinds::Arrays, Some(driver)))
}

/// A cache manager: the drive of its set is the cache, and another one, alone or below layers, the disk.
fn cache(rng: &mut Rng, disk: Driver) -> String {
    let above = one_of(rng, &[ABOVE[0], ABOVE[0], ABOVE[2], PATH_ABOVE[2]]);
    let (mode, drop_clean) =
        (one_of(rng, &["write-back", "write-back", "write-through"]), one_of(rng, &["regions", "regions", "all"]));
    let mut text = format!(
        "{above}[[layer]]\nkind = \"cache\"\nmode = \"{mode}\"\ndirty_limit = \"{}%\"\nclean_size = {}\nclean_batch = {}\n\
         copies = {}\nmiss = \"{}\"\ndrop_clean = \"{drop_clean}\"\nregion = {}\nsequential = {}\n\
         cache_flush = {}\n[[layer.below]]\n",
        one_of(rng, &[0, 20, 20, 60, 100]),
        one_of(rng, &[4096, 16 << 10, 512 << 10]),
        one_of(rng, &[4096, 16 << 10, 256 << 10]),
        one_of(rng, &[1, 2, 4]),
        one_of(rng, &["pattern", "pattern", "words", "error"]),
        512 * one_of(rng, &[8_u64, 32, 1000]),
        512 * one_of(rng, &[0_u64, 8, 16, 100]),
        512 * one_of(rng, &[0_u64, 8, 64, 32_768]),
    );
    text.push_str(one_of(
        rng,
        &["", "", "", "kind = \"ata\"\ntags = 4\n", "kind = \"scheduler\"\npolicy = \"noop\"\ndepth = 3\n"],
    ));
    text.push_str("[[layer.below]]\n");
    text.push_str(&disk_of_a_cache(rng, disk));
    text
}

/// What a cache caches: the drive of the case, a disk, or layers.
fn disk_of_a_cache(rng: &mut Rng, disk: Driver) -> String {
    match rng.random_range(0..10) {
        0..=1 => layer(rng, "layer.below", 1, Kinds::All, None),
        2..=5 => disk(rng),
        _ => String::new(),
    }
}

/// A host that appends to segments.
fn append(rng: &mut Rng, seed: u64) -> String {
    let above = one_of(rng, &ABOVE);
    with_path(rng, seed, above, |rng| append_keys(rng, seed / 3 % 3 == 1))
}

/// A driver with what is above it; in every tenth seed between other layers.
fn with_path(rng: &mut Rng, seed: u64, above: &str, keys: impl FnOnce(&mut Rng) -> String) -> String {
    let keys = keys(rng);
    if seed % 10 != 8 {
        return format!("{above}[[layer]]\n{keys}");
    }
    let (above, below) = (one_of(rng, &PATH_ABOVE), one_of(rng, &PATH_BELOW));
    format!("{above}[[layer]]\n{keys}{below}")
}

fn append_keys(rng: &mut Rng, paced: bool) -> String {
    let cleaning = one_of(rng, &["greedy", "greedy", "cost-benefit"]);
    format!(
        "kind = \"append\"\ncleaning = \"{cleaning}\"\nover_provisioning = \"{}%\"\nfree_segments = {}\n\
         copies = {}\ncopy_size = {}\npacing = \"{}\"\n",
        one_of(rng, &[1, 7, 30]),
        one_of(rng, &[2, 2, 3]),
        one_of(rng, &[1, 2, 8]),
        one_of(rng, &[512, 4096, 16 << 10, 128 << 10]),
        if paced { "proportional" } else { "off" },
    )
}

/// A driver that writes to the log of its drive.
fn shrd(rng: &mut Rng, seed: u64) -> String {
    let above = one_of(rng, &ABOVE);
    with_path(rng, seed, above, shrd_keys)
}

fn shrd_keys(rng: &mut Rng) -> String {
    let (when_full, ordering) = (one_of(rng, &["wait", "wait", "direct"]), one_of(rng, &["host", "host", "drive"]));
    format!(
        "kind = \"shrd\"\nthreshold = {}\npack = {}\ntwrites = {}\nremap_entries = {}\nremaps = {}\n\
         range = {}\nwhen_full = \"{when_full}\"\ntrim_tlpn = {}\nordering = \"{ordering}\"\ncommands = \"{}\"\n",
        one_of(rng, &[4096, 8192, 32 << 10, 128 << 10]),
        one_of(rng, &[4096, 16 << 10, 512 << 10]),
        one_of(rng, &[0, 0, 1, 2]),
        one_of(rng, &[1, 3, 16, 128, 511]),
        one_of(rng, &[1, 1, 2, 4]),
        one_of(rng, &[8192, 64 << 10, 64 << 20]),
        rng.random_bool(0.8),
        one_of(rng, &["writes", "writes", "vendor"]),
    )
}

/// Which layers are drawn: arrays and what is above them in most seeds, all of them in every fifth.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kinds {
    Arrays,
    All,
}

/// Those of the path of a host's I/O most often.
const ALL_KINDS: [&str; 10] =
    ["page-cache", "page-cache", "page-cache", "scheduler", "scheduler", "ata", "ata", "stripe", "mirror", "restoring"];

/// A layer's keys, and the layers below it, as text below the header of the layer at `path`; drives are below a driver
/// where there is one.
fn layer(rng: &mut Rng, path: &str, depth: u32, kinds: Kinds, driver: Option<Driver>) -> String {
    let kind = match kinds {
        Kinds::Arrays => one_of(rng, &["stripe", "mirror", "mirror", "scheduler", "restoring"]),
        Kinds::All => one_of(rng, &ALL_KINDS),
    };
    let mut text = match kind {
        "stripe" => format!("kind = \"stripe\"\nchunk = {}\n", 512 * one_of(rng, &[1_u64, 2, 8, 24])),
        "mirror" => format!("kind = \"mirror\"\nregion = {}\n", 512 * one_of(rng, &[1_u64, 8, 32, 1000])),
        "restoring" => restoring(rng),
        "page-cache" => page_cache(rng),
        "ata" => ata(rng),
        _ if kinds == Kinds::All => scheduler(rng),
        _ => format!(
            "kind = \"scheduler\"\ndepth = {}\nmerge_size = {}\n",
            one_of(rng, &[1, 2, 8]),
            512 * one_of(rng, &[0_u64, 8, 100])
        ),
    };
    let devices = match kind {
        "scheduler" | "restoring" | "page-cache" | "ata" => 1,
        "stripe" => rng.random_range(1..=3),
        _ => one_of(rng, &[2, 2, 2, 3]),
    };
    for _ in 0..devices {
        text.push_str(&format!("[[{path}.below]]\n"));
        if depth < 2 && rng.random_bool(0.25) {
            text.push_str(&layer(rng, &format!("{path}.below"), depth + 1, kinds, driver));
        } else if let Some(driver) = driver {
            text.push_str(&driver(rng));
        }
    }
    text
}

/// A block layer with any policy, whose limits are reached soon.
fn scheduler(rng: &mut Rng) -> String {
    let policy = one_of(rng, &["fifo", "noop", "deadline", "deadline"]);
    let depth = one_of(rng, &[1, 2, 8]);
    let merge_size = 512 * one_of(rng, &[0_u64, 8, 100]);
    let mut text = format!("kind = \"scheduler\"\ndepth = {depth}\nmerge_size = {merge_size}\npolicy = \"{policy}\"\n");
    if policy != "fifo" {
        text.push_str(&format!(
            "segments = {}\nrequests = {}\nunplug_requests = {}\nunplug_time = \"{}us\"\n",
            one_of(rng, &[1, 3, 128]),
            one_of(rng, &[1, 4, 128]),
            one_of(rng, &[1, 4, 4]),
            one_of(rng, &[0, 100, 3000]),
        ));
    }
    if policy == "deadline" {
        text.push_str(&format!(
            "read_expire = \"{}us\"\nwrite_expire = \"{}us\"\nfifo_batch = {}\nwrites_starved = {}\n",
            one_of(rng, &[0, 500, 500_000]),
            one_of(rng, &[0, 5000, 5_000_000]),
            one_of(rng, &[1, 4, 16]),
            one_of(rng, &[1, 2]),
        ));
    }
    text
}

/// A page cache that is small beside the device, or not.
fn page_cache(rng: &mut Rng) -> String {
    let dirty = one_of(rng, &[1, 20, 20, 60, 100]);
    let background = one_of(rng, &[0, 10, 100]).min(dirty);
    format!(
        "kind = \"page-cache\"\nram = {}\nread_ahead = {}\ndirty = \"{dirty}%\"\nbackground = \"{background}%\"\n\
         expire = \"{}us\"\nperiod = \"{}us\"\nwrite_size = {}\nwrites = {}\ncopy_time = \"{}ns\"\n",
        one_of(rng, &[64 << 10, 128 << 10, 1 << 20, 1 << 20]),
        one_of(rng, &[0, 16 << 10, 128 << 10]),
        one_of(rng, &[0, 2000, 30_000_000]),
        one_of(rng, &[500, 5_000_000]),
        one_of(rng, &[4096, 16 << 10, 512 << 10]),
        one_of(rng, &[1, 2, 128]),
        one_of(rng, &[1, 1000, 50_000]),
    )
}

/// Tags and error handling, with timeouts that strike in some.
fn ata(rng: &mut Rng) -> String {
    format!(
        "kind = \"ata\"\ntags = {}\nretries = {}\ntimeout = \"{}us\"\nerror_time = \"{}us\"\nreset_time = \"{}us\"\n",
        one_of(rng, &[1, 4, 31, 32]),
        one_of(rng, &[0, 1, 5]),
        one_of(rng, &[2000, 30_000_000, 30_000_000]),
        one_of(rng, &[0, 200]),
        one_of(rng, &[0, 150_000]),
    )
}

/// A cache of a disk, which is a drive or layers above drives, with few sets of few blocks; in some cases above a scheduler or below
/// one.
fn flashcache(rng: &mut Rng, disk: Driver) -> String {
    let above = one_of(rng, &ABOVE);
    let (set, sets) = (one_of(rng, &[1_u64, 2, 4, 8]), rng.random_range(1..=4));
    let mode = one_of(rng, &["write-back", "write-back", "write-back", "write-through", "write-around"]);
    let mut text = format!(
        "{above}[[layer]]\nkind = \"flashcache\"\nmode = \"{mode}\"\nset = {set}\nsize = {}\nreplacement = \"{}\"\n\
         metadata_block = {}\ndirty_threshold = \"{}%\"\nclean_writes_set = {}\nclean_writes_total = {}\n\
         fallow_delay = \"{}us\"\nskip_sequential = {}\ntrim = {}\n",
        set * sets * 4096,
        one_of(rng, &["fifo", "lru"]),
        one_of(rng, &[512, 512, 4096]),
        one_of(rng, &[0, 20, 60, 100]),
        one_of(rng, &[1, 2, 8]),
        one_of(rng, &[1, 4, 8]),
        one_of(rng, &[0, 2000, 900_000_000]),
        one_of(rng, &[0, 0, 8192, 32 << 10]),
        rng.random_bool(0.3),
    );
    text.push_str(if rng.random_bool(0.2) {
        "[[layer.below]]\nkind = \"scheduler\"\ndepth = 2\n"
    } else {
        "[[layer.below]]\n"
    });
    text.push_str("[[layer.below]]\n");
    text.push_str(&disk_of_a_cache(rng, disk));
    text
}

/// Restoring in the host, with a log that is full soon.
fn restoring(rng: &mut Rng) -> String {
    let (restore, when_full) = (one_of(rng, &["ressd", "ressd", "lsdm"]), one_of(rng, &["wait", "wait", "direct"]));
    let log = 512 * one_of(rng, &[8_u64, 32, 64, 256]);
    format!(
        "kind = \"restoring\"\nlog = {log}\nthreshold = {}\npack = {}\nwrites = {}\nrestore = \"{restore}\"\n\
         range = {}\nlive = \"{}%\"\ncopies = {}\nwhen_full = \"{when_full}\"\n",
        one_of(rng, &[512, 4096, 8192, 128 << 10]),
        one_of(rng, &[4096, 16 << 10, 512 << 10]),
        one_of(rng, &[0, 0, 1, 2]),
        log / one_of(rng, &[2, 2, 4, 8]),
        one_of(rng, &[0, 50, 75, 100]),
        one_of(rng, &[1, 2, 16]),
    )
}

/// A drive made one of a design, with zones of any limits.
pub(crate) fn of_design(mut config: DriveConfig, design: &str, rng: &mut Rng) -> DriveConfig {
    draw_design(&mut config, design, rng);
    if config.zones().is_some() {
        config.ftl.own = ssdlab_device::draw_zone_limits(config.ftl.own, rng);
    }
    config
}

/// A drive of some hundred pages, without faults, mostly as full as is accepted; of a design of its own where one is
/// named.
fn small_drive(rng: &mut Rng, design: Option<&str>) -> DriveConfig {
    loop {
        let mut config = configs::draw(rng);
        if let Some(design) = design {
            config = of_design(config, design, rng);
        }
        config.flash.faults = Default::default();
        config.timed = rng.random_bool(0.95);
        // A host that appends takes segments for its log, and some to clean.
        let (most_pages, most_bytes) = match config.segment_units() {
            Some(_) => (2000, 6000 * SECTOR_BYTES),
            None => (700, 1500 * SECTOR_BYTES),
        };
        if config.flash.geometry.pages() > most_pages {
            continue;
        }
        let unit = u64::from(config.ftl.mapping_unit);
        config.user_bytes = unit;
        let Some(most) = configs::most_user_units(&config).map(|most| most.min(most_bytes / unit)) else {
            continue;
        };
        let units = if rng.random_bool(0.7) { most } else { rng.random_range(1..=most.max(1)) };
        let whole = u64::from(config.segment_units().unwrap_or(1));
        let units = (ssdlab_device::draw_user_units(units, &config, rng) / whole * whole).max(whole);
        config.user_bytes = units * unit;
        let Some(config) = describable(&config) else { continue };
        if Drive::new(&config, Options { seed: 1, contents: Contents::Nothing }).is_ok() {
            return config;
        }
    }
}

/// The drive with operations that fail, by rate or never: programs and erases where blocks are kept for that.
fn with_faults(mut drive: DriveConfig, rng: &mut Rng) -> DriveConfig {
    drive.flash.faults.uncorrectable_read = one_of(rng, &[0.0, 0.001, 0.01]);
    if drive.gc.free_blocks >= 3 {
        drive.flash.faults.program_failure = one_of(rng, &[0.0, 0.0, 0.002]);
        drive.flash.faults.erase_failure = one_of(rng, &[0.0, 0.0, 0.005]);
    }
    drive
}

/// Steps with operations that fail between them; programs and erases if the drives have `spares`.
fn with_failures(steps: Vec<Step<BlockCommand>>, spares: bool, rng: &mut Rng) -> Vec<Step<BlockCommand>> {
    const KINDS: [FaultKind; 3] = [FaultKind::Read, FaultKind::Program, FaultKind::Erase];
    let rate = one_of(rng, &[0.01, 0.05]);
    // On one drive alone a mirror has another side; on any drive it may have none.
    let only = rng.random_bool(0.5).then(|| any_drive(rng));
    let mut with = Vec::with_capacity(steps.len());
    for step in steps {
        if rng.random_bool(rate) {
            let kinds = if spares { &KINDS[..] } else { &KINDS[..1] };
            let kind = one_of(rng, kinds);
            with.push(Step::Fail(kind, Place::Drive(only.unwrap_or_else(|| any_drive(rng)))));
        }
        with.push(step);
    }
    with
}

/// Sectors ahead of a reader to which writes go.
const AHEAD: u64 = 128;

/// Reads of one queue that go on where the last one ended, so that a page cache reads ahead, and writes ahead of them; some seeds have
/// none.
struct ReadsInOrder {
    rng: Rng,
    share: f64,
    sectors: u64,
    end: u64,
}

impl ReadsInOrder {
    fn draw(seen: &DriveConfig, mut rng: Rng) -> ReadsInOrder {
        let share = one_of(&mut rng, &[0.0, 0.0, 0.5, 0.9]);
        ReadsInOrder { share, sectors: seen.user_bytes / SECTOR_BYTES, end: 0, rng }
    }

    fn next(&mut self, request: Request) -> Request {
        if request.sectors == 0 || request.sectors > self.sectors {
            return request;
        }
        let within = |sector: u64| sector + request.sectors <= self.sectors;
        match request.op {
            Op::Read if self.rng.random_bool(self.share) => {
                let sector = if within(self.end) { self.end } else { 0 };
                self.end = sector + request.sectors;
                Request { sector, queue: 0, ..request }
            }
            Op::Write => {
                let ahead = self.end + self.rng.random_range(0..AHEAD);
                let is_ahead = self.rng.random_bool(self.share / 2.0) && within(ahead);
                Request { sector: if is_ahead { ahead } else { request.sector }, ..request }
            }
            _ => request,
        }
    }
}

fn steps(rng: &mut Rng, seen: &DriveConfig, commands: u64) -> Vec<Step<BlockCommand>> {
    let mut mix = Mix::draw(rng, seen);
    let mut in_order = ReadsInOrder::draw(seen, ssdlab_base::rng(rng.clone().random(), "reads in order"));
    let mut steps = Vec::new();
    if rng.random_bool(0.3) {
        steps.extend(mix.fill().map(|request| Step::Command(BlockCommand { request, depth: 8 })));
    }
    let cut = one_of(rng, &[0.2, 0.1, 0.05, 0.02]);
    let run = one_of(rng, &[0.0, 0.1, 0.5]);
    let drain = one_of(rng, &[0.0, 0.05, 0.3]);
    // Hosts, single drives, everything: some seeds have none of a kind.
    let weights: [u32; 3] = std::array::from_fn(|_| one_of(rng, &[0, 1, 4]));
    let between = one_of(rng, &[0.0, 0.5, 1.0]);
    let compared = one_of(rng, &[0.2, 0.5, 1.0]);
    let again = one_of(rng, &[0.0, 0.3]);
    let mut depth = 1;
    for number in 0..commands {
        if number % 16 == 0 {
            depth = one_of(rng, &[1, 2, 4, 8, 32]);
        }
        let (request, _) = mix.next(rng);
        let request = in_order.next(Request { tag: 0, ..request });
        steps.push(Step::Command(BlockCommand { request, depth }));
        if rng.random_bool(run) {
            steps.push(Step::Run(rng.random_range(1..12)));
        }
        if rng.random_bool(drain) {
            steps.push(Step::Drain);
        }
        if rng.random_bool(cut) {
            let mut pick = rng.random_range(0..weights.iter().sum::<u32>().max(1));
            let mut whose = Whose::All;
            for (kind, weight) in [Whose::Host, Whose::Drive(any_drive(rng)), Whose::All].into_iter().zip(weights) {
                if pick < weight {
                    whose = kind;
                    break;
                }
                pick -= weight;
            }
            let percent = if rng.random_bool(between) { rng.random_range(1..100) } else { 0 };
            let again = rng.random_bool(again).then(|| Again::Scan(rng.random_range(0..=100)));
            let unread = !rng.random_bool(compared);
            steps.push(Step::Cut(Cut { whose, percent, recovery: [again, None, None], unread, ..Cut::NOW }));
        }
    }
    steps
}

/// A part of a stack, drawn for a cut.
fn any_drive(rng: &mut Rng) -> usize {
    // More than any stack has: it is taken modulo the number of drives.
    rng.random_range(0..64)
}

//! A drive's own datasheet: what follows from its description, beside what a product's datasheet has.
//!
//! ```text
//! DriveConfig --+-- arithmetic       capacities, blocks, endurance
//!               +-- a fresh Drive    over-provisioning, RAM, latency of single requests
//!               +-- die: one die     what pages take of a die and of its channel --> peak rates
//!               v
//!           Datasheet --text--> for people
//! ```
//!
//! It promises that times are those of the model: nothing here adds latencies up. Peak rates are bounds for data that flash
//! serves: no run is faster but by data that the buffer absorbs or that was never written; collection and waiting make
//! it slower.

mod die;
mod text;

use std::collections::BTreeMap;

use serde::Serialize;
use ssdlab_base::{Nanos, Op, Request, SECTOR_BYTES};
use ssdlab_device::{Drive, DriveConfig, DriveError, Options};
use ssdlab_flash::{Contents, Faults, OpKind};

use die::{Cycle, End};
pub use text::render;

/// Bytes of the random requests that datasheets count.
const RANDOM: u32 = 4096;
/// Mapping units of a drive that is asked as it is for its sizes, and for its latencies, which do not depend on them: of larger
/// ones a drive with less user capacity is.
const UNITS_MAX: u32 = 64 << 20;
const UNITS_TIMED_MAX: u32 = 8 << 20;

/// What follows from a drive's description.
#[derive(Clone, Debug, Serialize)]
pub struct Datasheet {
    /// The drive's name.
    pub name: String,
    /// Its sizes.
    pub capacity: Capacity,
    /// Its over-provisioning as shares of the user capacity.
    pub over_provisioning: OverProvisioning,
    /// Most bytes a second that it reads and writes.
    pub bytes_per_s: Peaks,
    /// Most requests of 4 KiB a second, anywhere on the drive.
    pub iops_4k: Peaks,
    /// What single operations take on an idle drive.
    pub latency_ns: Latencies,
    /// RAM of a real drive, in bytes by use, as `memory` of results has it.
    pub memory: BTreeMap<&'static str, u64>,
    /// Where the description gives an endurance.
    pub endurance: Option<Endurance>,
}

/// Sizes, in bytes where nothing else is said.
#[derive(Clone, Debug, Serialize)]
pub struct Capacity {
    /// All of the flash, without out-of-band areas.
    pub raw: u64,
    /// What the host has.
    pub user: u64,
    /// Dies.
    pub dies: u32,
    /// Bits of a die.
    pub die_bits: u64,
    /// Planes.
    pub planes: u32,
    /// Blocks of all planes.
    pub blocks: u32,
    /// A block.
    pub block: u64,
    /// Blocks beyond those that the user capacity fills.
    pub spare_blocks: u64,
    /// What is collected as one: blocks, or superblocks of several.
    pub superblocks: u32,
    /// One of them.
    pub superblock: u64,
}

/// Shares of the user capacity.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct OverProvisioning {
    /// All flash beyond the user capacity.
    pub nominal: f64,
    /// Of it what data can lie in: without blocks that are kept free, the design's own and bad ones.
    pub effective: f64,
}

/// Bounds of both directions.
#[derive(Clone, Debug, Serialize)]
pub struct Peaks {
    /// Of reads.
    pub read: Bounds,
    /// Of writes.
    pub write: Bounds,
}

/// What bounds a rate; `null` where a part takes no time.
#[derive(Clone, Debug, Serialize)]
pub struct Bounds {
    /// All dies with operations on one plane at a time.
    pub dies_single_plane: Option<u64>,
    /// All dies with operations on all planes at once.
    pub dies_multi_plane: Option<u64>,
    /// All channels.
    pub channels: Option<u64>,
    /// The link to the host, in one direction.
    pub link: Option<u64>,
    /// The controller's processor.
    pub processor: Option<u64>,
    /// The least of them, dies with all planes at once.
    pub peak: Option<u64>,
    /// Which one that is.
    pub bound_by: Option<&'static str>,
}

/// The shortest and the longest time, over pages of all positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Range {
    /// The shortest.
    pub min: u64,
    /// The longest.
    pub max: u64,
}

/// What single operations take, in nanoseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Latencies {
    /// A host's read of 4 KiB from flash.
    pub read_4k: Range,
    /// A host's write of `write_bytes`.
    pub write: Range,
    /// Its bytes: 4 KiB, or a page where a drive takes whole pages only.
    pub write_bytes: u64,
    /// Whether the write ends in the buffer; else on flash.
    pub write_is_buffered: bool,
    /// A page from the array over the channel.
    pub page_read: Range,
    /// A page over the channel into the array.
    pub page_program: Range,
    /// A block.
    pub block_erase: Range,
}

/// How much can be written.
#[derive(Clone, Debug, Serialize)]
pub struct Endurance {
    /// Erases of a block.
    pub erases: u32,
    /// Bytes that all blocks take in their life: what the host can write is this by the write amplification.
    pub flash_bytes: u128,
}

impl Datasheet {
    /// Of a drive.
    ///
    /// # Errors
    /// The drive cannot exist.
    pub fn of(config: &DriveConfig) -> Result<Datasheet, DriveError> {
        config.validate()?;
        let geometry = &config.flash.geometry;
        let Answers { spare, memory } = answers(config)?;
        let block = u64::from(geometry.pages_per_block) * u64::from(geometry.page_bytes);
        let together = config.ftl.superblock.planes(geometry);
        let erases = config.flash.faults.endurance;
        Ok(Datasheet {
            name: config.name.clone(),
            capacity: Capacity {
                raw: geometry.bytes(),
                user: config.user_bytes,
                dies: geometry.dies(),
                die_bits: geometry.bytes() / u64::from(geometry.dies()) * 8,
                planes: geometry.planes(),
                blocks: geometry.blocks(),
                block,
                spare_blocks: u64::from(geometry.blocks()) - config.user_bytes.div_ceil(block),
                superblocks: geometry.blocks() / together,
                superblock: block * u64::from(together),
            },
            over_provisioning: OverProvisioning { nominal: spare.nominal, effective: spare.effective },
            bytes_per_s: sequential(config),
            iops_4k: random(config),
            latency_ns: latencies(config)?,
            memory,
            endurance: erases
                .map(|erases| Endurance { erases, flash_bytes: u128::from(erases) * u128::from(geometry.bytes()) }),
        })
    }
}

const OPTIONS: Options = Options { seed: 1, contents: Contents::Nothing };

/// What a fresh drive says of itself.
struct Answers {
    spare: ssdlab_device::OverProvisioning,
    memory: BTreeMap<&'static str, u64>,
}

/// The drive, or one with a part of its user capacity on the same flash if its tables would be large.
fn thin(config: &DriveConfig, parts: u64) -> DriveConfig {
    if parts == 1 {
        return config.clone();
    }
    let step = u64::from(config.segment_units().unwrap_or(1)) * u64::from(config.ftl.mapping_unit);
    DriveConfig { user_bytes: (config.user_bytes / parts / step).max(1) * step, ..config.clone() }
}

/// Parts of at most so many units each.
fn parts(config: &DriveConfig, units_max: u32) -> u64 {
    u64::from(config.user_units().div_ceil(units_max))
}

fn answers(config: &DriveConfig) -> Result<Answers, DriveError> {
    match parts(config, UNITS_MAX) {
        1 => {
            let drive = Drive::new(config, OPTIONS)?;
            Ok(Answers { spare: drive.over_provisioning(), memory: memory(&drive) })
        }
        parts => extrapolate(config, parts),
    }
}

fn memory(drive: &Drive) -> BTreeMap<&'static str, u64> {
    drive.memory().into_iter().filter(|(name, bytes)| *name != "simulator_bytes" && *bytes > 0).collect()
}

/// What the drive would say, from two with a part of its user capacity: tables grow with that in proportion, or not at all. A cache
/// of the map that holds all of a smaller drive's map is told too large.
fn extrapolate(config: &DriveConfig, parts: u64) -> Result<Answers, DriveError> {
    let (large, small) = (thin(config, parts), thin(config, 2 * parts));
    let drive = Drive::new(&large, OPTIONS)?;
    let (of_large, of_small) = (memory(&drive), memory(&Drive::new(&small, OPTIONS)?));
    let steps = (config.user_bytes - large.user_bytes) as f64 / (large.user_bytes - small.user_bytes) as f64;
    let grown = |(name, bytes): (&'static str, u64)| {
        let growth = bytes as f64 - of_small.get(name).copied().unwrap_or(0) as f64;
        (name, bytes + (growth * steps) as u64)
    };
    Ok(Answers { spare: drive.over_provisioning_of(config)?, memory: of_large.into_iter().map(grown).collect() })
}

fn bounds(
    config: &DriveConfig,
    dies: Option<[f64; 2]>,
    channels: Option<f64>,
    link: f64,
    processor: Option<f64>,
) -> Bounds {
    let whole = |rate: f64| rate as u64;
    let link = (config.interface.bandwidth > 0).then_some(link);
    let candidates =
        [("dies", dies.map(|dies| dies[1])), ("channels", channels), ("link", link), ("processor", processor)];
    let known = candidates.into_iter().filter_map(|(name, rate)| rate.map(|rate| (name, rate)));
    let least = known.min_by(|(_, one), (_, other)| one.total_cmp(other));
    Bounds {
        dies_single_plane: dies.map(|dies| whole(dies[0])),
        dies_multi_plane: dies.map(|dies| whole(dies[1])),
        channels: channels.map(whole),
        link: link.map(whole),
        processor: processor.map(whole),
        peak: least.map(|(_, rate)| whole(rate)),
        bound_by: least.map(|(name, _)| name),
    }
}

/// Pages a second of all dies with one plane and with all at a time, and of all channels.
fn pages(config: &DriveConfig, kind: OpKind, bytes: u32) -> Option<([f64; 2], f64)> {
    if !config.timed {
        return None;
    }
    let geometry = &config.flash.geometry;
    let cycles = [1, geometry.planes_per_die].map(|planes| die::cycle(&config.flash, kind, planes, bytes));
    let rate = |count: u32, ns: f64| f64::from(count) * 1e9 / ns;
    let dies = cycles.map(|cycle: Cycle| rate(geometry.dies(), cycle.die));
    Some((dies, rate(geometry.channels, cycles[0].channel))).filter(|(dies, channels)| {
        // Chips whose times are all 0 bound nothing.
        channels.is_finite() && dies.iter().all(|rate| rate.is_finite())
    })
}

fn sequential(config: &DriveConfig) -> Peaks {
    let page = config.flash.geometry.page_bytes;
    let of = |kind| {
        let pages = pages(config, kind, page);
        let bytes = |rate: f64| rate * f64::from(page);
        let dies = pages.map(|(dies, _)| dies.map(bytes));
        bounds(config, dies, pages.map(|(_, channels)| bytes(channels)), config.interface.bandwidth as f64, None)
    };
    Peaks { read: of(OpKind::Read), write: of(OpKind::Program) }
}

fn random(config: &DriveConfig) -> Peaks {
    let page = config.flash.geometry.page_bytes;
    // Units that a request looks up or writes: each has an entry of the map.
    let entries = f64::from(RANDOM.div_ceil(config.ftl.mapping_unit));
    let link = config.interface.bandwidth as f64 / f64::from(RANDOM);
    // Pages that a request reads, and those that it programs: of units that wait in the buffer several share one.
    let read = f64::from(RANDOM.div_ceil(page));
    let shares = if config.buffer.policy == "none" { page } else { config.ftl.mapping_unit };
    let programmed = f64::from(RANDOM.max(shares)) / f64::from(page);
    let of = |kind, bytes: u32, each: f64| {
        let pages = pages(config, kind, bytes);
        let dies = pages.map(|(dies, _)| dies.map(|rate| rate / each));
        let processor = requests_processed(config, entries, each);
        bounds(config, dies, pages.map(|(_, channels)| channels / each), link, processor)
    };
    Peaks { read: of(OpKind::Read, RANDOM.min(page), read), write: of(OpKind::Program, page, programmed) }
}

/// Requests a second that the processor takes up, works on and ends, each with so many map entries and flash operations.
fn requests_processed(config: &DriveConfig, entries: f64, operations: f64) -> Option<f64> {
    let (processing, controller) = (config.interface.processing.0, &config.controller);
    if processing > 0 {
        return Some(1e9 / processing as f64);
    }
    let once = f64::from(controller.command_cycles) + f64::from(controller.completion_cycles);
    let each = f64::from(controller.map_entry_cycles) * entries + f64::from(controller.operation_cycles) * operations;
    (controller.clock > 0 && once + each > 0.0).then(|| controller.clock as f64 / (once + each))
}

fn range(of: impl Fn(End) -> Result<Nanos, DriveError>) -> Result<Range, DriveError> {
    Ok(Range { min: of(End::Shortest)?.0, max: of(End::Longest)?.0 })
}

fn latencies(config: &DriveConfig) -> Result<Latencies, DriveError> {
    let flash = |kind| range(|end| Ok(if config.timed { die::alone(&config.flash, kind, end) } else { Nanos::ZERO }));
    let page = config.flash.geometry.page_bytes;
    let write_bytes = u64::from(if config.segment_units().is_some() { RANDOM.max(page) } else { RANDOM });
    let write = Request::new(Op::Write, 0, write_bytes / SECTOR_BYTES);
    let read = Request::new(Op::Read, 0, u64::from(RANDOM) / SECTOR_BYTES);
    let drive = |end, buffered: bool| {
        let mut config = thin(config, parts(config, UNITS_TIMED_MAX));
        config.flash.timing = die::at(&config.flash.timing, end);
        config.flash.faults = Faults::default();
        if !buffered {
            config.buffer.policy = "none".to_string();
        }
        Drive::new(&config, OPTIONS)
    };
    Ok(Latencies {
        read_4k: range(|end| {
            // Behind a buffer the read would find there what was written. Some designs need one.
            let mut drive = drive(end, false).or_else(|_| drive(end, true))?;
            takes(&mut drive, write);
            takes(&mut drive, Request::new(Op::Flush, 0, 0));
            Ok(takes(&mut drive, read))
        })?,
        write: range(|end| Ok(takes(&mut drive(end, true)?, write)))?,
        write_bytes,
        write_is_buffered: config.buffer.policy != "none",
        page_read: flash(OpKind::Read)?,
        page_program: flash(OpKind::Program)?,
        block_erase: flash(OpKind::Erase)?,
    })
}

/// How long a request takes of a drive that has nothing else to do.
fn takes(drive: &mut Drive, request: Request) -> Nanos {
    let at = drive.now();
    drive.submit(&Request { at, ..request });
    drive.run_to_completion(Nanos::MAX);
    let completion = drive.completions().pop().expect("a request to an idle drive completes");
    completion.at - at
}

#[cfg(test)]
mod tests {
    use ssdlab_device::Description;

    use super::*;

    fn drive(sets: &[&str]) -> DriveConfig {
        let text = "[flash]\nchannels = 2\nchips_per_channel = 2\ndies_per_chip = 1\nplanes_per_die = 2\nblocks_per_plane = 256\n\
                    pages_per_block = 64\npage_size = \"16k\"\ntiming = { read = [\"50us\", \"70us\"], program = \"500us..700us\", \
                    erase = \"3ms\", transfer = \"20us\", command = \"200ns\" }\n[capacity]\nover_provisioning = \"28%\"\n\
                    [ftl]\nmapping_unit = \"4k\"\n";
        let mut description = Description::parse(text, "drive.toml").expect("a description");
        sets.iter().for_each(|set| description.set(set).expect("a key"));
        description.resolve().expect("a drive")
    }

    #[test]
    fn rates_are_those_of_the_busiest_part_and_latencies_are_of_all_positions() {
        let sheet =
            Datasheet::of(&drive(&["interface.bandwidth=100MB/s", "interface.processing=5us"])).expect("a drive");
        let rate = |bytes: f64, ns: f64| (bytes * 1e9 / ns) as u64;
        let page = 16384.0;
        let (read, write) = (&sheet.bytes_per_s.read, &sheet.bytes_per_s.write);
        // Four dies: command, array and data of one page or of two; the array reads in 60 us on average and programs in 600 us.
        assert_eq!(read.dies_single_plane, Some(rate(4.0 * page, 80_200.0)));
        assert_eq!(read.dies_multi_plane, Some(rate(8.0 * page, 100_400.0)));
        assert_eq!(write.dies_single_plane, Some(rate(4.0 * page, 620_200.0)));
        assert_eq!(write.dies_multi_plane, Some(rate(8.0 * page, 640_400.0)));
        assert_eq!((read.channels, write.channels), (Some(rate(2.0 * page, 20_200.0)), read.channels));
        assert_eq!((read.link, read.peak, read.bound_by), (Some(100_000_000), Some(100_000_000), Some("link")));
        // One request of 4 KiB has one unit's entry and one flash operation.
        let cycles = ["controller.clock=100MHz", "controller.command_cycles=300", "controller.operation_cycles=700"];
        let processed = Datasheet::of(&drive(&cycles)).expect("a drive").iops_4k;
        assert_eq!((processed.read.processor, processed.write.processor), (Some(100_000), Some(100_000)));
        // A quarter of a page crosses the channel; without a buffer each write programs a page.
        let iops = &sheet.iops_4k;
        assert_eq!(iops.read.dies_single_plane, Some(rate(4.0, 65_200.0)));
        assert_eq!(iops.read.channels, Some(rate(2.0, 5_200.0)));
        assert_eq!(iops.write.dies_multi_plane, Some(rate(8.0, 640_400.0)));
        assert_eq!((iops.read.processor, iops.write.bound_by), (Some(200_000), Some("dies")));
        let latency = &sheet.latency_ns;
        assert_eq!(latency.page_read, Range { min: 70_200, max: 90_200 });
        assert_eq!(latency.page_program, Range { min: 520_200, max: 720_200 });
        assert_eq!(latency.block_erase, Range { min: 3_000_200, max: 3_000_200 });
        // 4 KiB over the link are 40.96 us.
        assert_eq!(latency.read_4k, Range { min: 5_000 + 55_200 + 40_960, max: 5_000 + 75_200 + 40_960 });
        assert_eq!(latency.write, Range { min: 5_000 + 40_960 + 520_200, max: 5_000 + 40_960 + 720_200 });
        let buffered = ["buffer.policy=lru", "buffer.size=1m", "buffer.latency=2us"];
        let sheet = Datasheet::of(&drive(&buffered)).expect("a drive");
        assert_eq!(sheet.latency_ns.write, Range { min: 2_000, max: 2_000 });
        assert_eq!(sheet.iops_4k.write.dies_multi_plane, Some(rate(32.0, 640_400.0)), "four units share a page");
    }

    #[test]
    fn cache_program_hides_the_channel_and_chips_without_time_bound_nothing() {
        let sheet = Datasheet::of(&drive(&["flash.cache_program=true"])).expect("a drive");
        assert_eq!(sheet.bytes_per_s.write.dies_single_plane, Some((4.0 * 16384.0 * 1e9 / 600_000.0) as u64));
        let sheet = Datasheet::of(&drive(&["flash.timing=none"])).expect("a drive");
        assert_eq!((sheet.bytes_per_s.write.peak, sheet.latency_ns.read_4k.max), (None, 0));
        assert!(render(&sheet).contains("no limit"));
    }

    #[test]
    fn a_large_drive_s_tables_follow_from_smaller_ones() {
        for design in [
            &["ftl.design=page"][..],
            // A cache that is smaller than the map of the smallest drive.
            &["ftl.design=dftl", "ftl.map_cache=16k"],
            &["ftl.design=mvftl", "ftl.mapping_unit=16k"],
            &["ftl.design=page", "buffer.policy=lru", "buffer.size=1m", "ftl.superblock=drive", "ftl.parity=page"],
            &["ftl.design=bast", "ftl.mapping_unit=16k", "ftl.allocation=dynamic"],
        ] {
            let config = drive(design);
            let (whole, found) = (answers(&config).expect("a drive"), extrapolate(&config, 3).expect("a drive"));
            assert_eq!(found.spare.effective.to_bits(), whole.spare.effective.to_bits(), "{design:?}");
            assert_eq!(found.memory.keys().collect::<Vec<_>>(), whole.memory.keys().collect::<Vec<_>>(), "{design:?}");
            for (name, bytes) in whole.memory {
                let off = found.memory[name] as f64 / bytes as f64;
                assert!((off - 1.0).abs() < 0.01, "{design:?}: {name} is {bytes}, found {}", found.memory[name]);
            }
        }
    }

    #[test]
    fn a_drive_that_cannot_exist_is_refused() {
        let error = Datasheet::of(&drive(&["capacity.over_provisioning=0.1%"])).expect_err("too little");
        assert_eq!(error.key, "capacity");
    }
}

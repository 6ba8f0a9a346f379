//! The description of a disk: TOML with the table `[disk]`, made into a [`DiskConfig`].
//!
//! It is read by the reader of drive descriptions, so every refusal names file, line, column and key, what was found and
//! what was expected, and all errors are told at once.

use std::path::Path;

use ssdlab_base::{Nanos, SECTOR_BYTES, read_text};
use ssdlab_device::DescriptionError;
use toml::Value;

use ssdlab_device::description::{BYTES_MAX, Default, Errors, Key, Kind, Place, Section, Tree};

/// Consecutive cylinders with the same number of sectors on every track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Cylinders of the zone.
    pub cylinders: u32,
    /// Sectors of a track.
    pub sectors: u32,
}

/// The time of a seek over `d` cylinders, after Ruemmler and Wilkes, "An introduction to disk drive modeling" (IEEE Computer,
/// 1994): `settle + b * sqrt(d)` up to the knee, and a line from there to the longest seek.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeekConfig {
    /// The part that does not depend on the distance.
    pub settle: Nanos,
    /// The distance in cylinders up to which the time grows with the square root.
    pub knee_cylinders: u32,
    /// The time of a seek over that distance.
    pub knee: Nanos,
    /// The time of a seek from the first to the last cylinder.
    pub full_stroke: Nanos,
    /// What a write adds to a seek or a head switch: the head must be on its track more exactly.
    pub write_settle: Nanos,
}

/// How commands wait in the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueConfig {
    /// Commands in the disk: 1 is a disk without NCQ.
    pub depth: u32,
    /// A command that has waited this long for the heads is served next, wherever it is.
    pub age_limit: Nanos,
}

/// The cache that holds written data until it is on the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteCacheConfig {
    /// A write ends when its data is in the cache. Otherwise it ends when its data is on the medium.
    pub enabled: bool,
    /// Bytes of written data.
    pub bytes: u64,
    /// How long the heads rest before cached data is written for no other reason.
    pub idle: Nanos,
    /// Runs of cached sectors, in the order of their addresses from the heads on, among which the next one is chosen.
    pub candidates: u32,
    /// Cached data this old is written next, once in `candidates` writes of cached data.
    pub age_limit: Nanos,
}

/// The cache that holds what was read and what was read ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadCacheConfig {
    /// Sequential streams that it can hold.
    pub segments: u32,
    /// Bytes of one of them.
    pub segment_bytes: u64,
    /// Bytes that are read on behind a read, while nothing else is to be done.
    pub ahead_bytes: u64,
}

/// Everything about a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskConfig {
    /// The disk's name.
    pub name: String,
    /// Capacity in sectors; not above that of the zones.
    pub sectors: u64,
    /// Rotations a minute.
    pub rpm: u32,
    /// Surfaces with a head.
    pub heads: u32,
    /// Zones from the outer edge to the inner one.
    pub zones: Vec<Zone>,
    /// From one head of a cylinder to another.
    pub head_switch: Nanos,
    /// Rotation from the start of a track to that of the cylinder's next one.
    pub head_skew: Nanos,
    /// Rotation from the start of a cylinder's last track to that of the next cylinder's first one.
    pub cylinder_skew: Nanos,
    /// Seeks.
    pub seek: SeekConfig,
    /// Bytes a second on the link; 0 is a link that takes no time.
    pub bandwidth: u64,
    /// Time of the controller for a command; it has one command at a time.
    pub command_overhead: Nanos,
    /// Commands in the disk.
    pub queue: QueueConfig,
    /// Written data.
    pub write_cache: WriteCacheConfig,
    /// Read data.
    pub read_cache: ReadCacheConfig,
}

/// The longest time of one movement or command.
const LONGEST: Nanos = Nanos(10_000_000_000);
/// The longest wait.
const LONGEST_WAIT: Nanos = Nanos(3_600_000_000_000);
/// Most cylinders of a disk; the arithmetic of angles depends on it.
const CYLINDERS_MAX: u32 = 1 << 24;
/// Most sectors of a track.
const TRACK_MAX: u32 = 100_000;
const ZONES_MAX: usize = 1000;
const ZONES_EXPECTED: &str =
    "a list of zones such as { cylinders = 1000, sectors = 2000 }, from the outer edge, at least one";
const DISK_EXPECTED: &str = "a table [disk], which a description of a disk has";

/// Every key of a disk's description.
pub const KEYS: &[Key] = &[
    Key::new("name", Kind::Name(100), Default::Means("the file's name"), "The disk's name."),
    Key::new("summary", Kind::Text, Default::Means("none"), "One line on what the disk is."),
    Key::new("source", Kind::Text, Default::Means("none"), "Where the numbers come from."),
    Key::new("notes", Kind::Text, Default::Means("none"), "What the description assumes and leaves out."),
    Key::new("disk", Kind::Table(DISK), Default::Required(DISK_EXPECTED), ""),
];

const DISK: &[Key] = &[
    Key::new(
        "capacity",
        Kind::Size { least: SECTOR_BYTES, most: u64::MAX, step: SECTOR_BYTES },
        Default::Means("all sectors of the zones"),
        "Capacity, from the outer edge.",
    ),
    Key::new(
        "rpm",
        Kind::Count { unit: "rotations a minute", least: 60, most: 30_000 },
        Default::number(7_200),
        "Rotations a minute.",
    ),
    Key::new(
        "heads",
        Kind::Count { unit: "heads", least: 1, most: 255 },
        Default::Required("the number of heads"),
        "Surfaces with a head.",
    ),
    Key::new(
        "zones",
        Kind::Tables(ZONE, None),
        Default::Required(ZONES_EXPECTED),
        "Zones from the outer edge to the inner one. Sectors are numbered track by track, head by head, cylinder by cylinder.",
    ),
    Key::new("head_switch", Kind::Time(LONGEST), Default::number(0), "Time from one head of a cylinder to another."),
    Key::new(
        "head_skew",
        Kind::Time(LONGEST),
        Default::Means("`head_switch`, `seek.write_settle` and 10 us"),
        "Rotation from the start of a track to that of the cylinder's next one. With less than the head switch, a sequential \
         transfer loses a rotation at each track.",
    ),
    Key::new(
        "cylinder_skew",
        Kind::Time(LONGEST),
        Default::Means("a seek over one cylinder, `seek.write_settle` and 10 us"),
        "Rotation from the start of a cylinder's last track to that of the next cylinder's first one.",
    ),
    Key::section("seek", Kind::Table(SEEK)),
    Key::section("interface", Kind::Table(INTERFACE)),
    Key::section("queue", Kind::Table(QUEUE)),
    Key::section("write_cache", Kind::Table(WRITE_CACHE)),
    Key::section("read_cache", Kind::Table(READ_CACHE)),
];

const ZONE: &[Key] = &[
    Key::new(
        "cylinders",
        Kind::Count { unit: "cylinders", least: 1, most: CYLINDERS_MAX },
        Default::Required("the zone's cylinders"),
        "Cylinders of the zone.",
    ),
    Key::new(
        "sectors",
        Kind::Count { unit: "sectors", least: 1, most: TRACK_MAX },
        Default::Required("the sectors of a track"),
        "Sectors of each of its tracks.",
    ),
];

const SEEK: &[Key] = &[
    Key::new(
        "settle",
        Kind::Time(LONGEST),
        Default::Required("a time such as \"0.8ms\""),
        "Part of a seek that does not depend on the distance.",
    ),
    Key::new(
        "knee_cylinders",
        Kind::Count { unit: "cylinders", least: 1, most: CYLINDERS_MAX },
        Default::Means("a third of the cylinders, at least one"),
        "Distance up to which the time of a seek grows with the square root of the distance.",
    ),
    Key::new(
        "knee",
        Kind::Time(LONGEST),
        Default::Required("a time such as \"8ms\""),
        "Time of a seek over that distance.",
    ),
    Key::new(
        "full_stroke",
        Kind::Time(LONGEST),
        Default::Required("a time such as \"18ms\""),
        "Time of a seek over all cylinders. From the knee on, times lie on a line.",
    ),
    Key::new("write_settle", Kind::Time(LONGEST), Default::number(0), "What a write adds to a seek or a head switch."),
];

const INTERFACE: &[Key] = &[
    Key::new(
        "bandwidth",
        Kind::Bandwidth { least: 64 << 10, zero: true },
        Default::number(600_000_000),
        "Rate of the half-duplex link; `0` is a link that takes no time.",
    ),
    Key::new(
        "command_overhead",
        Kind::Time(LONGEST),
        Default::number(0),
        "Time of the controller for a command. It has one command at a time.",
    ),
];

const QUEUE: &[Key] = &[
    Key::new(
        "depth",
        Kind::Count { unit: "commands", least: 1, most: 32 },
        Default::number(32),
        "Commands in the disk (NCQ). The one that the heads reach first is served first.",
    ),
    Key::new(
        "age_limit",
        Kind::Time(LONGEST_WAIT),
        Default::number(1_000_000_000),
        "A command that has waited this long for the heads is served next.",
    ),
];

const WRITE_CACHE: &[Key] = &[
    Key::new(
        "enabled",
        Kind::Boolean,
        Default::ON,
        "A write ends when its data is in the cache. Otherwise it ends when its data is on the medium.",
    ),
    Key::new(
        "bytes",
        Kind::Size { least: 4096, most: 64 << 30, step: SECTOR_BYTES },
        Default::number(32 << 20),
        "Written data that it holds. A longer write takes the cache alone.",
    ),
    Key::new(
        "idle",
        Kind::Time(LONGEST_WAIT),
        Default::number(0),
        "How long no read is to be done before cached data is written for no other reason. A flush, and a write that finds no \
         space, are reasons.",
    ),
    Key::new(
        "candidates",
        Kind::Count { unit: "runs", least: 1, most: 4096 },
        Default::number(64),
        "Runs of cached sectors, in the order of their addresses from the heads on, among which the next one is chosen: the one \
         that the heads reach first.",
    ),
    Key::new(
        "age_limit",
        Kind::Time(LONGEST_WAIT),
        Default::number(10_000_000_000),
        "Cached data this old is written next, once in every `candidates` writes of cached data: nothing waits for ever, and old data does \
         not make the heads follow the order of its age.",
    ),
];

const READ_CACHE: &[Key] = &[
    Key::new(
        "segments",
        Kind::Count { unit: "segments", least: 1, most: 4096 },
        Default::number(16),
        "Sequential streams that it can hold.",
    ),
    Key::new(
        "segment",
        Kind::Size { least: 4096, most: 1 << 30, step: SECTOR_BYTES },
        Default::number(1 << 20),
        "Bytes of a segment.",
    ),
    Key::new(
        "ahead",
        Kind::Size { least: 0, most: 1 << 30, step: SECTOR_BYTES },
        Default::number(512 << 10),
        "Bytes that are read on behind a read, until the heads have something else to do. At most a segment.",
    ),
];

/// Added to a switch by the default of a skew: a head that arrives at the very start of a sector has passed it.
const SKEW_MARGIN: Nanos = Nanos(10_000);

impl DiskConfig {
    /// Reads a file of at most one mebibyte.
    ///
    /// # Errors
    /// The file cannot be read, or as for [`DiskConfig::parse`].
    pub fn load(path: &Path) -> Result<DiskConfig, DescriptionError> {
        let file = path.display().to_string();
        let text = read_text(path, BYTES_MAX, "a description").map_err(|cause| DescriptionError {
            place: Place::Whole { file: file.clone() },
            key: String::new(),
            reason: cause.to_string(),
            others: Vec::new(),
        })?;
        DiskConfig::parse(&text, &file, &[])
    }

    /// Reads a text; `file` is what messages call it, and its stem is the disk's name if the text gives none. Each of `sets` is
    /// a `key=value` laid over it.
    ///
    /// # Errors
    /// Everything that is wrong: file, line, column and key, what was found and what was expected.
    pub fn parse(text: &str, file: &str, sets: &[String]) -> Result<DiskConfig, DescriptionError> {
        let mut tree = Tree::parse(text, file)?;
        sets.iter().try_for_each(|one| tree.set("--set", one, KEYS))?;
        let root = Section::root(&tree, KEYS);
        let mut errors = Errors::default();
        root.check(&mut errors);
        let config = read(&root, &mut errors);
        errors.into_result(&tree)?;
        Ok(config.expect("what could not be read has its error"))
    }

    /// Whether a text describes a disk and not a drive: it has the table `[disk]`.
    pub fn describes(text: &str) -> bool {
        Tree::parse(text, "").is_ok_and(|tree| Section::root(&tree, KEYS).get("disk").is_some())
    }

    /// The line of a description that says what the disk is.
    pub fn summary_of(text: &str) -> Option<String> {
        let tree = Tree::parse(text, "").ok()?;
        let summary = Section::root(&tree, KEYS).get("summary")?.text("text").ok()?.trim().to_string();
        Some(summary)
    }

    /// The whole description: what [`DiskConfig::parse`] makes the same disk of. An image keeps it.
    pub fn to_toml(&self) -> String {
        let time = |time: Nanos| format!("\"{}ns\"", time.0);
        let zone = |zone: &Zone| format!("    {{ cylinders = {}, sectors = {} }},\n", zone.cylinders, zone.sectors);
        let zones: String = self.zones.iter().map(zone).collect();
        let (seek, queue, write, read) = (&self.seek, &self.queue, &self.write_cache, &self.read_cache);
        let name = Value::String(self.name.clone());
        let sections = [
            (
                "disk",
                vec![
                    ("capacity", self.bytes().to_string()),
                    ("rpm", self.rpm.to_string()),
                    ("heads", self.heads.to_string()),
                    ("zones", format!("[\n{zones}]")),
                    ("head_switch", time(self.head_switch)),
                    ("head_skew", time(self.head_skew)),
                    ("cylinder_skew", time(self.cylinder_skew)),
                ],
            ),
            (
                "disk.seek",
                vec![
                    ("settle", time(seek.settle)),
                    ("knee_cylinders", seek.knee_cylinders.to_string()),
                    ("knee", time(seek.knee)),
                    ("full_stroke", time(seek.full_stroke)),
                    ("write_settle", time(seek.write_settle)),
                ],
            ),
            (
                "disk.interface",
                vec![("bandwidth", self.bandwidth.to_string()), ("command_overhead", time(self.command_overhead))],
            ),
            ("disk.queue", vec![("depth", queue.depth.to_string()), ("age_limit", time(queue.age_limit))]),
            (
                "disk.write_cache",
                vec![
                    ("enabled", write.enabled.to_string()),
                    ("bytes", write.bytes.to_string()),
                    ("idle", time(write.idle)),
                    ("candidates", write.candidates.to_string()),
                    ("age_limit", time(write.age_limit)),
                ],
            ),
            (
                "disk.read_cache",
                vec![
                    ("segments", read.segments.to_string()),
                    ("segment", read.segment_bytes.to_string()),
                    ("ahead", read.ahead_bytes.to_string()),
                ],
            ),
        ];
        let section = |(name, keys): (&str, Vec<(&str, String)>)| {
            let keys: String = keys.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
            format!("\n[{name}]\n{keys}")
        };
        format!("name = {name}\n") + &sections.into_iter().map(section).collect::<String>()
    }

    /// Cylinders of all zones.
    pub fn cylinders(&self) -> u32 {
        self.zones.iter().map(|zone| zone.cylinders).sum()
    }

    /// Capacity in bytes.
    pub const fn bytes(&self) -> u64 {
        self.sectors * SECTOR_BYTES
    }
}

fn read(root: &Section<'_>, errors: &mut Errors) -> Option<DiskConfig> {
    let name = errors.keep(root.described_name());
    let disk = errors.keep(root.section("disk"))?;
    let zones = zones(&disk, errors);
    let heads = errors.keep(disk.count("heads"));
    let (zones, heads) = (zones?, heads?);
    let sectors = errors.keep(capacity(&disk, &zones, heads));
    let cylinders: u32 = zones.iter().map(|zone| zone.cylinders).sum();
    let seek = errors.keep(seek(&disk, cylinders));
    let rest = errors.keep(rest(&disk));
    let read_cache = errors.keep(read_cache(&disk));
    let seek = seek?;
    let (interface, queue, write_cache) = rest?;
    let times = errors.keep(switches(&disk, &seek))?;
    Some(DiskConfig {
        name: name?,
        sectors: sectors?,
        rpm: errors.keep(disk.count("rpm"))?,
        heads,
        zones,
        head_switch: times[0],
        head_skew: times[1],
        cylinder_skew: times[2],
        seek,
        bandwidth: interface.0,
        command_overhead: interface.1,
        queue,
        write_cache,
        read_cache: read_cache?,
    })
}

fn zones(disk: &Section<'_>, errors: &mut Errors) -> Option<Vec<Zone>> {
    let field = errors.keep(disk.require("zones"))?;
    let list = errors.keep(field.list(ZONES_EXPECTED))?;
    if list.is_empty() || list.len() > ZONES_MAX {
        errors.add(field.expected(&format!("from 1 to {ZONES_MAX} zones")));
        return None;
    }
    let mut zones = Vec::new();
    for entry in &list {
        let section = errors.keep(entry.section())?;
        section.check(errors);
        let (cylinders, sectors) = (errors.keep(section.count("cylinders")), errors.keep(section.count("sectors")));
        zones.push(cylinders.zip(sectors).map(|(cylinders, sectors)| Zone { cylinders, sectors }));
    }
    let zones: Vec<Zone> = zones.into_iter().collect::<Option<_>>()?;
    let cylinders: u64 = zones.iter().map(|zone| u64::from(zone.cylinders)).sum();
    if cylinders > u64::from(CYLINDERS_MAX) {
        errors.add(field.error(format!("found {cylinders} cylinders, expected at most {CYLINDERS_MAX} in all zones")));
        return None;
    }
    Some(zones)
}

fn capacity(disk: &Section<'_>, zones: &[Zone], heads: u32) -> Result<u64, DescriptionError> {
    let tracks = |zone: &Zone| u64::from(zone.cylinders) * u64::from(heads);
    let all: u64 = zones.iter().map(|zone| tracks(zone) * u64::from(zone.sectors)).sum();
    let Some(field) = disk.get("capacity") else { return Ok(all) };
    let sectors = disk.number("capacity")? / SECTOR_BYTES;
    if sectors > all {
        return Err(field.expected(&format!("at most the {} bytes of all zones", all * SECTOR_BYTES)));
    }
    Ok(sectors)
}

fn seek(disk: &Section<'_>, cylinders: u32) -> Result<SeekConfig, DescriptionError> {
    let seek = disk.section("seek")?;
    let knee_cylinders = match seek.get("knee_cylinders") {
        Some(field) => {
            let count = seek.count("knee_cylinders")?;
            if count > cylinders {
                return Err(field.expected(&format!("at most the {cylinders} cylinders of the disk")));
            }
            count
        }
        None => (cylinders / 3).max(1),
    };
    let (settle, knee, full_stroke) = (seek.time("settle")?, seek.time("knee")?, seek.time("full_stroke")?);
    if knee < settle {
        return Err(seek.error("knee", format!("found {knee}, expected at least the {settle} of seek.settle")));
    }
    if full_stroke < knee {
        return Err(
            seek.error("full_stroke", format!("found {full_stroke}, expected at least the {knee} of seek.knee"))
        );
    }
    Ok(SeekConfig { settle, knee_cylinders, knee, full_stroke, write_settle: seek.time("write_settle")? })
}

/// The head switch and the two skews.
fn switches(disk: &Section<'_>, seek: &SeekConfig) -> Result<[Nanos; 3], DescriptionError> {
    let head_switch = disk.time("head_switch")?;
    let or = |key, default| if disk.get(key).is_some() { disk.time(key) } else { Ok(default) };
    let single = crate::mechanism::short_seek(seek, 1).max(head_switch) + seek.write_settle;
    let head_skew = or("head_skew", head_switch + seek.write_settle + SKEW_MARGIN)?;
    Ok([head_switch, head_skew, or("cylinder_skew", single + SKEW_MARGIN)?])
}

type Rest = ((u64, Nanos), QueueConfig, WriteCacheConfig);

fn rest(disk: &Section<'_>) -> Result<Rest, DescriptionError> {
    let interface = disk.section("interface")?;
    let queue = disk.section("queue")?;
    let cache = disk.section("write_cache")?;
    let write_cache = WriteCacheConfig {
        enabled: cache.flag("enabled")?,
        bytes: cache.number("bytes")?,
        idle: cache.time("idle")?,
        candidates: cache.count("candidates")?,
        age_limit: cache.time("age_limit")?,
    };
    let queue = QueueConfig { depth: queue.count("depth")?, age_limit: queue.time("age_limit")? };
    Ok(((interface.number("bandwidth")?, interface.time("command_overhead")?), queue, write_cache))
}

fn read_cache(disk: &Section<'_>) -> Result<ReadCacheConfig, DescriptionError> {
    let cache = disk.section("read_cache")?;
    let (segment_bytes, ahead_bytes) = (cache.number("segment")?, cache.number("ahead")?);
    if ahead_bytes > segment_bytes {
        let key = if cache.get("ahead").is_some() { "ahead" } else { "segment" };
        let reason =
            format!("found {ahead_bytes} bytes to read ahead, expected at most a segment of {segment_bytes} bytes");
        return Err(cache.error(key, reason));
    }
    Ok(ReadCacheConfig { segments: cache.count("segments")?, segment_bytes, ahead_bytes })
}

//! The keys of file systems: those of making one and those of mounting it. Each kind lists its own (`kinds.rs`).

use crate::journaling::Rules;
use crate::kinds::{FileSystemKind, KINDS};
use ssdlab_base::Nanos;
use ssdlab_device::description::{Default as KeyDefault, DescriptionError, Key, Kind, Section, Words, word, words};

/// What is decided when a file system is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MakeOptions {
    /// The kind of file system.
    pub kind: &'static FileSystemKind,
    /// Bytes of a segment, where the device has none of its own; of a journaling file system bytes of a block group.
    pub segment: u64,
    /// Logs for data and nodes: 2, 4 or 6.
    pub logs: u32,
    /// Space that files cannot have, in percent of the segments for data and nodes.
    pub over_provisioning: u32,
    /// Segments of the inode map, in multiples of its size, where that is appended.
    pub map_factor: u32,
    /// Bytes of the journal; 0 for what mke2fs takes.
    pub journal: u64,
    /// How a journaling file system maps files.
    pub rules: Rules,
    /// Tells apart file systems on one drive.
    pub seed: u64,
}

/// What an fsync of a file waits for beside its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fsync {
    /// The nodes of the file, and its name where the check-point has none: a mount goes on with them behind the check-point.
    RollForward,
    /// A check-point.
    Checkpoint,
}

impl Words for Fsync {
    const WORDS: &'static [(&'static str, Fsync)] =
        &[("roll-forward", Fsync::RollForward), ("check-point", Fsync::Checkpoint)];
}

/// When a changed page of a file is written to the place that it has: the words of F2FS's `ipu_policy`, as Linux 3.13 had it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InPlace {
    /// Never: each page goes to a log.
    Off,
    /// Always.
    Always,
    /// Where free segments are so short that logs write segments again.
    Short,
    /// Where more than 70 % of the space of files is in use (`min_ipu_util`).
    Full,
    /// Where both are so.
    ShortAndFull,
}

impl Words for InPlace {
    const WORDS: &'static [(&'static str, InPlace)] = &[
        ("off", InPlace::Off),
        ("always", InPlace::Always),
        ("short", InPlace::Short),
        ("full", InPlace::Full),
        ("short-and-full", InPlace::ShortAndFull),
    ];
}

/// What is decided when a file system is mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Bytes of memory for pages, nodes and blocks of the inode map.
    pub cache: u64,
    /// Share of the cache, in percent, that may be dirty before write-out begins.
    pub dirty_background: u32,
    /// Share of the cache, in percent, above which writes wait.
    pub dirty_limit: u32,
    /// Age at which a dirty page is written out.
    pub dirty_expiry: Nanos,
    /// Time between two looks for such pages.
    pub dirty_period: Nanos,
    /// Most bytes that are read ahead.
    pub read_ahead: u64,
    /// Time between check-points, or commits of a journal, where anything has changed; 0 for none.
    pub checkpoint_period: Nanos,
    /// Time without a call after which cleaning begins by itself, and between two segments of it; 0 for never.
    pub cleaning_period: Nanos,
    /// What an fsync of a file waits for.
    pub fsync: Fsync,
    /// Logs write segments again where free ones are short, where the kind can.
    pub threaded_logging: bool,
    /// When changed pages of files are written to the places that they have.
    pub in_place: InPlace,
    /// Blocks that a commit of a journal freed are trimmed.
    pub discard: bool,
}

const SECOND: u64 = 1_000_000_000;

// Every key that any kind has. Those of write-out and read-ahead have the defaults of Linux 3.13.

pub(crate) const LOGS: Key = Key::new(
    "logs",
    Kind::Count { unit: "logs", least: 2, most: 6 },
    KeyDefault::number(6),
    "Logs for data and nodes: 2, 4 or 6. When made.",
);

pub(crate) const OVER_PROVISIONING: Key = Key::new(
    "over_provisioning",
    Kind::Percent(1),
    KeyDefault::number(5),
    "Space that files cannot have, in percent of the segments for data and nodes (AMF, section 5.2); at least 12 segments more than \
     there are logs. When made.",
);

pub(crate) const MAP_FACTOR: Key = Key::new(
    "map_factor",
    Kind::Count { unit: "times", least: 2, most: 64 },
    KeyDefault::number(4),
    "Segments of the inode map, in multiples of its size (AMF, section 3.3); at least 4 segments. When made.",
);

pub(crate) const CACHE: Key = Key::new(
    "cache",
    Kind::Size { least: 64 << 10, most: u64::MAX, step: 4096 },
    KeyDefault::number(1536 << 20),
    "Memory for pages, nodes and blocks of the inode map (AMF, section 5.3).",
);

pub(crate) const DIRTY_BACKGROUND: Key = Key::new(
    "dirty_background",
    Kind::Percent(1),
    KeyDefault::number(10),
    "Share of the cache that may be dirty before write-out begins.",
);

pub(crate) const DIRTY_LIMIT: Key = Key::new(
    "dirty_limit",
    Kind::Percent(1),
    KeyDefault::number(20),
    "Share of the cache above which calls that write wait for write-out.",
);

pub(crate) const DIRTY_EXPIRY: Key = Key::new(
    "dirty_expiry",
    Kind::Time(Nanos(3600 * SECOND)),
    KeyDefault::number(30 * SECOND),
    "Age at which a dirty page is written out.",
);

pub(crate) const DIRTY_PERIOD: Key = Key::new(
    "dirty_period",
    Kind::Time(Nanos(3600 * SECOND)),
    KeyDefault::number(5 * SECOND),
    "Time between two looks for dirty pages of that age.",
);

pub(crate) const READ_AHEAD: Key = Key::new(
    "read_ahead",
    Kind::Size { least: 0, most: 1 << 20, step: 4096 },
    KeyDefault::number(128 << 10),
    "Most bytes that are read ahead of sequential reads of an open file.",
);

pub(crate) const CHECKPOINT_PERIOD: Key = Key::new(
    "checkpoint_period",
    Kind::Time(Nanos(3600 * SECOND)),
    KeyDefault::number(60 * SECOND),
    "Time between check-points, where anything has changed; 0 for none.",
);

pub(crate) const CLEANING_PERIOD: Key = Key::new(
    "cleaning_period",
    Kind::Time(Nanos(3600 * SECOND)),
    KeyDefault::number(30 * SECOND),
    "Time without a call after which segments are cleaned by cost and benefit, one in each period; 0 for never.",
);

pub(crate) const FSYNC: Key = Key::new(
    "fsync",
    Kind::Word(words::<Fsync>),
    KeyDefault::word("roll-forward"),
    "What an fsync of a file waits for: its data and nodes, with which a mount goes on behind the newest check-point (as F2FS does), or \
     a check-point (AMF, section 3.2).",
);

/// Key of threaded logging.
pub(crate) const THREADED_LOGGING: Key = Key::new(
    "threaded_logging",
    Kind::Boolean,
    KeyDefault::ON,
    "Logs of data and directories, and of nodes that fsyncs do not write, write the invalid blocks of their segments again, where fewer \
     segments are free than over-provisioning keeps (F2FS, section 2.5; SSR).",
);

/// Key of in-place updates.
pub(crate) const IN_PLACE: Key = Key::new(
    "in_place",
    Kind::Word(words::<InPlace>),
    KeyDefault::word("off"),
    "Changed pages of files are written to the places that they have: never, always, where free segments are so short that logs write \
     segments again, where more than 70 % of the space of files is in use, or where both are so (F2FS's ipu_policy). An fsync that finds \
     nothing else changed writes no node.",
);

/// Key of segments where the device has none of its own.
pub(crate) const SEGMENT: Key = Key::new(
    "segment",
    Kind::Size { least: 32 << 10, most: 64 << 20, step: 4096 },
    KeyDefault::number(2 << 20),
    "Bytes of a segment: what a log writes and cleaning cleans as a whole (F2FS, section 2.1). When made.",
);

impl Default for MakeOptions {
    fn default() -> MakeOptions {
        MakeOptions {
            kind: &KINDS[0],
            segment: 2 << 20,
            logs: 6,
            over_provisioning: 5,
            map_factor: 4,
            journal: 0,
            rules: Rules::Ext4,
            seed: 0,
        }
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            cache: 1536 << 20,
            dirty_background: 10,
            dirty_limit: 20,
            dirty_expiry: Nanos(30 * SECOND),
            dirty_period: Nanos(5 * SECOND),
            read_ahead: 128 << 10,
            checkpoint_period: Nanos(60 * SECOND),
            cleaning_period: Nanos(30 * SECOND),
            fsync: Fsync::RollForward,
            threaded_logging: true,
            in_place: InPlace::Off,
            discard: true,
        }
    }
}

impl Options {
    /// Pages that may be dirty before write-out begins.
    pub(crate) const fn background_pages(&self) -> usize {
        (self.cache / 4096 * self.dirty_background as u64 / 100) as usize
    }

    /// Pages that may be dirty before writes wait, at least one.
    pub(crate) const fn limit_pages(&self) -> usize {
        let pages = (self.cache / 4096 * self.dirty_limit as u64 / 100) as usize;
        if pages == 0 { 1 } else { pages }
    }
}

/// Every key with its value, as a description writes it.
pub fn values(make: &MakeOptions, options: &Options) -> Vec<(&'static str, String)> {
    let number = |name: &str| match name {
        "segment" | "group" => make.segment,
        "journal" => make.journal,
        "logs" => make.logs.into(),
        "over_provisioning" => make.over_provisioning.into(),
        "map_factor" => make.map_factor.into(),
        "cache" => options.cache,
        "dirty_background" => options.dirty_background.into(),
        "dirty_limit" => options.dirty_limit.into(),
        "dirty_expiry" => options.dirty_expiry.0,
        "dirty_period" => options.dirty_period.0,
        "read_ahead" => options.read_ahead,
        "checkpoint_period" | "commit_period" => options.checkpoint_period.0,
        "cleaning_period" => options.cleaning_period.0,
        other => panic!("the key {other} has a value"),
    };
    let text = |key: &Key| {
        match key.name {
            "fsync" => return word(options.fsync).to_string(),
            "in_place" => return word(options.in_place).to_string(),
            "threaded_logging" => return options.threaded_logging.to_string(),
            "rules" => return word(make.rules).to_string(),
            "discard" => return options.discard.to_string(),
            _ => {}
        }
        let value = key.kind.toml(number(key.name).into());
        value.as_str().map_or_else(|| value.to_string(), str::to_string)
    };
    make.kind.keys.iter().map(|key| (key.name, text(key))).collect()
}

/// Reads the keys from a section of a description that has them all, or some.
///
/// # Errors
/// A value is not what its key allows.
pub fn read(kind: &'static FileSystemKind, keys: &Section<'_>) -> Result<(MakeOptions, Options), DescriptionError> {
    let has = |name: &str| kind.keys.iter().any(|key| key.name == name);
    let (plain, mounted) = (MakeOptions { kind, ..MakeOptions::default() }, Options::default());
    let count = |name: &'static str, plain: u32| if has(name) { keys.count(name) } else { Ok(plain) };
    let number = |name: &'static str, plain: u64| if has(name) { keys.number(name) } else { Ok(plain) };
    let time = |name: &'static str, plain: Nanos| number(name, plain.0).map(Nanos);
    let flag = |name: &'static str| if has(name) { keys.flag(name) } else { Ok(true) };
    let logs = count("logs", plain.logs)?;
    if has("logs")
        && let Some(given) = keys.get("logs")
        && !matches!(logs, 2 | 4 | 6)
    {
        return Err(given.expected("2, 4 or 6 logs"));
    }
    let make = MakeOptions {
        segment: number(if has("group") { "group" } else { "segment" }, plain.segment)?,
        logs,
        over_provisioning: count("over_provisioning", plain.over_provisioning)?,
        map_factor: count("map_factor", plain.map_factor)?,
        journal: number("journal", plain.journal)?,
        rules: if has("rules") { keys.choice::<Rules>("rules")? } else { plain.rules },
        ..plain
    };
    let period = if has("commit_period") { "commit_period" } else { "checkpoint_period" };
    let options = Options {
        cache: keys.number("cache")?,
        dirty_background: keys.count("dirty_background")?,
        dirty_limit: keys.count("dirty_limit")?,
        dirty_expiry: time("dirty_expiry", mounted.dirty_expiry)?,
        dirty_period: time("dirty_period", mounted.dirty_period)?,
        read_ahead: keys.number("read_ahead")?,
        checkpoint_period: time(period, mounted.checkpoint_period)?,
        cleaning_period: time("cleaning_period", mounted.cleaning_period)?,
        // A commit is what makes anything durable, where there is nothing to choose.
        fsync: if has("fsync") { keys.choice::<Fsync>("fsync")? } else { Fsync::Checkpoint },
        threaded_logging: flag("threaded_logging")?,
        in_place: if has("in_place") { keys.choice::<InPlace>("in_place")? } else { InPlace::Off },
        discard: flag("discard")?,
    };
    Ok((make, options))
}

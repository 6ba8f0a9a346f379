//! A drive, the keys of a file system on it, and what happens to both, from a seed.

use std::collections::BTreeMap;

use rand::RngExt;
use ssdlab_base::{CommandSet, Nanos, Rng, rng};
use ssdlab_device::{Drive, DriveConfig, Options, design_with, draw_design};
use ssdlab_flash::{Contents, FaultKind};
use ssdlab_fs::call::Sync;
use ssdlab_fs::kinds::FileSystemKind;
use ssdlab_fs::{Call, Job, MakeError, Reply};

use super::call::{FileCall, Kind, Path, Simple};
use super::{FileHost, Files, tree};
use crate::campaign::{Draw, NotDrawn, try_drives};
use crate::case::{Case, Refused};
use crate::configs::{self, one_of};
use crate::cut::{Cut, Moment, Whose, draw_again};
use crate::script::{ScriptError, describable};
use crate::stacks::{below_files, of_design};
use crate::step::{Place, Step};

/// What cases are drawn from.
#[derive(Clone, Debug)]
pub struct FileScope {
    /// The kind of file system.
    kind: &'static FileSystemKind,
    /// Keys of it that are not drawn, as text.
    keys: String,
    /// Calls of a case.
    pub calls: u64,
    /// The host crashes, and the power goes.
    pub cuts: bool,
    /// In some cases operations of the drive fail.
    pub faults: bool,
}

impl FileScope {
    /// Crashes, cuts and faults of a kind of file system. `keys` has those that are not drawn, as text.
    ///
    /// # Errors
    /// There is no such kind, or a key is wrong.
    pub fn new(kind: &str, keys: &str, calls: u64) -> Result<FileScope, ScriptError> {
        let kind = Files::new(kind, keys, "keys of the file system")?.kind;
        Ok(FileScope { kind, keys: keys.to_string(), calls, cuts: true, faults: true })
    }

    /// The kind of file system.
    pub const fn kind(&self) -> &'static str {
        self.kind.name
    }
}

/// Drives that are drawn for a seed at most.
const TRIES: u32 = 2000;

/// Segments that are tried first.
const LEAST_SEGMENTS: u64 = 24;

/// When pages are written in place, where the kind can; in two of three cases never, since less is cleaned otherwise.
const IN_PLACE: [&str; 12] = {
    let off = "\"off\"";
    let [always, short, full, both] = ["\"always\"", "\"short\"", "\"full\"", "\"short-and-full\""];
    [off, off, off, off, off, off, off, off, always, short, full, both]
};

/// Blocks of 4 KB of a drive at most: what a comparison of all of it costs.
const MOST_BLOCKS: u32 = 3000;

impl Draw for FileScope {
    type Subject = Files;

    fn draw_until(&self, seed: u64, over: &dyn Fn() -> bool) -> Result<Case<Files>, NotDrawn> {
        let apart = keys_apart(seed);
        let mut stacks = rng(seed, "file system stacks");
        let (mut rng, mut faults) = (rng(seed, "file system"), rng(seed, "file system faults"));
        let is_faulty = self.faults && faults.random_bool(0.3);
        try_drives(seed, TRIES, over, || {
            let drawn = keys(&mut rng, &apart, self.kind, &self.keys);
            let text = format!("{}{drawn}", self.keys);
            let subject = Files::new(self.kind.name, &text, "drawn").map_err(|cause| Some(cause.to_string()))?;
            // Every fourth.
            let (stack, set) = match seed % 4 {
                3 => {
                    let (stack, set) = below_files(&mut stacks, self.kind.command_set);
                    (Some(stack), set)
                }
                _ => (None, self.kind.command_set),
            };
            let subject = subject.above(stack);
            let (drive, host) = draw_drive(seed, &mut rng, &subject, set)?;
            let mut case = Case { seed, drive, subject, steps: Vec::new() };
            if is_faulty {
                with_faults(&mut case.drive, &mut faults);
            }
            case.steps = self.steps(host, &mut rng);
            if is_faulty {
                case.steps = with_failures(std::mem::take(&mut case.steps), &case.drive, &mut faults);
            }
            case.accepted().map_err(|why| Some(why.to_string()))?;
            Ok(case)
        })
    }
}

/// Keys that are drawn from streams of their own: all else of a seed stays as it was before there were these keys.
fn keys_apart(seed: u64) -> Vec<(&'static str, String)> {
    let mut keys = vec![
        ("fsync", one_of(&mut rng(seed, "fsync"), &["\"roll-forward\"", "\"check-point\""]).to_string()),
        ("segment", one_of(&mut rng(seed, "segment"), &[32 << 10, 32 << 10, 64 << 10, 256 << 10]).to_string()),
        ("in_place", one_of(&mut rng(seed, "in place"), &IN_PLACE).to_string()),
        ("threaded_logging", one_of(&mut rng(seed, "threaded"), &["true", "true", "true", "false"]).to_string()),
    ];
    let rng = &mut rng(seed, "journal");
    keys.extend([
        ("rules", one_of(rng, &["\"ext3\"", "\"ext4\""]).to_string()),
        ("group", one_of(rng, &[512 << 10, 512 << 10, 1 << 20, 2 << 20]).to_string()),
        ("journal", one_of(rng, &[512 << 10, 512 << 10, 1 << 20, 3 << 19]).to_string()),
        ("discard", one_of(rng, &["true", "true", "false"]).to_string()),
    ]);
    keys
}

/// Keys of a kind that no text has yet.
fn keys(rng: &mut Rng, apart: &[(&'static str, String)], kind: &FileSystemKind, given: &str) -> String {
    let period = |rng: &mut Rng, most: u64| format!("\"{}us\"", rng.random_range(100..most));
    let limit = rng.random_range(2..=60);
    let checkpoint = if rng.random_bool(0.5) { "0".to_string() } else { period(rng, 200_000) };
    let cleaning = if rng.random_bool(0.3) { "0".to_string() } else { period(rng, 20_000) };
    let all = [
        ("logs", one_of(rng, &[2, 4, 6]).to_string()),
        ("over_provisioning", one_of(rng, &["\"1%\"", "\"5%\"", "\"30%\""]).to_string()),
        ("map_factor", one_of(rng, &[2, 4, 4, 9]).to_string()),
        ("cache", (4096 * one_of(rng, &[16_u64, 20, 30, 60, 200, 4000])).to_string()),
        ("dirty_background", format!("\"{}%\"", rng.random_range(1..=limit))),
        ("dirty_limit", format!("\"{limit}%\"")),
        ("dirty_expiry", period(rng, 50_000)),
        ("dirty_period", period(rng, 20_000)),
        ("read_ahead", one_of(rng, &["0", "16384", "131072"]).to_string()),
        ("checkpoint_period", checkpoint.clone()),
        ("commit_period", checkpoint),
        ("cleaning_period", cleaning),
    ];
    let is_given = |key: &str| given.lines().any(|line| line.split('=').next().is_some_and(|name| name.trim() == key));
    all.iter()
        .chain(apart)
        .filter(|(key, _)| kind.keys.iter().any(|known| known.name == *key) && !is_given(key))
        .map(|(key, value)| format!("{key} = {value}\n"))
        .collect()
}

/// A small drive on which there is such a file system, and the file system; the drive is of the design that takes `set`.
fn draw_drive(
    seed: u64,
    rng: &mut Rng,
    subject: &Files,
    set: Option<&'static CommandSet>,
) -> Result<(DriveConfig, FileHost), Option<String>> {
    match subject.kind.command_set {
        Some(set) => draw_segments(seed, rng, subject, set),
        None => draw_blocks(seed, rng, subject, set),
    }
}

/// A drive of any design that takes block I/O, or of the one that layers above it need.
fn draw_blocks(
    seed: u64,
    rng: &mut Rng,
    subject: &Files,
    set: Option<&'static CommandSet>,
) -> Result<(DriveConfig, FileHost), Option<String>> {
    let mut config = configs::draw(rng);
    if let Some(set) = set {
        config = of_design(config, design_with(set).ok_or(None)?, rng);
    }
    config.timed = rng.random_bool(0.95);
    config.flash.geometry.pages_per_block = one_of(rng, &[2, 4, 8, 16, 32]);
    let (spare, extra) = (one_of(rng, &[5, 10, 30, 80]), one_of(rng, &[0, 1, 3, 10, 25]));
    let whole = u64::from(config.segment_units().unwrap_or(1)) * u64::from(config.ftl.mapping_unit);
    // Block groups are larger than segments.
    let (least, extra) = if subject.kind.overwrites { (2, extra / 4) } else { (LEAST_SEGMENTS, extra) };
    large_enough(seed, config, subject, (least, extra), |config, segments| {
        config.user_bytes = (segments * subject.make.segment).next_multiple_of(whole);
        let geometry = &config.flash.geometry;
        let block_bytes = u64::from(geometry.pages_per_block) * u64::from(geometry.page_bytes);
        let kept = config.gc.free_blocks + 4 + config.ftl.streams;
        ((config.user_bytes * (100 + spare) / 100).div_ceil(block_bytes), kept)
    })
}

/// A drive of segments.
fn draw_segments(
    seed: u64,
    rng: &mut Rng,
    subject: &Files,
    set: &'static CommandSet,
) -> Result<(DriveConfig, FileHost), Option<String>> {
    let mut config = configs::draw(rng);
    draw_design(&mut config, design_with(set).ok_or(None)?, rng);
    config.timed = rng.random_bool(0.95);
    let geometry = &mut config.flash.geometry;
    geometry.pages_per_block = one_of(rng, &[1, 2, 3, 4, 8, 8, 16, 32]);
    // Metadata is in blocks of 4 KB.
    geometry.page_bytes = geometry.page_bytes.max(one_of(rng, &[512, 4096, 4096]));
    config.ftl.mapping_unit = geometry.page_bytes;
    let per_segment = u64::from(config.segment_units().ok_or(None)?);
    let bytes = per_segment * u64::from(config.ftl.mapping_unit);
    if !bytes.is_multiple_of(4096) || !(8..=96).contains(&(bytes / 4096)) {
        return Err(None);
    }
    let extra = one_of(rng, &[0, 1, 3, 10, 25]);
    large_enough(seed, config, subject, (LEAST_SEGMENTS, extra), |config, segments| {
        config.user_bytes = segments * bytes;
        let blocks = per_segment / u64::from(config.flash.geometry.pages_per_block) * segments;
        (blocks, config.gc.free_blocks + 4)
    })
}

/// A drive with room for as many segments as the file system needs, and some more; at least `least` are tried. `resize` sets the capacity for a number of segments; it says
/// how many blocks that takes, and how many more each plane has.
fn large_enough(
    seed: u64,
    mut config: DriveConfig,
    subject: &Files,
    (least, extra): (u64, u64),
    resize: impl Fn(&mut DriveConfig, u64) -> (u64, u32),
) -> Result<(DriveConfig, FileHost), Option<String>> {
    let (mut segments, mut found_before) = (least, None);
    loop {
        let (blocks, kept) = resize(&mut config, segments);
        let geometry = &mut config.flash.geometry;
        geometry.blocks_per_plane = blocks.div_ceil(geometry.planes().into()) as u32 + kept;
        if config.user_bytes / 4096 > u64::from(MOST_BLOCKS) {
            return Err(None);
        }
        let config = describable(&config).ok_or(None)?;
        Drive::new(&config, Options { seed, contents: Contents::Nothing }).map_err(|why| Some(why.to_string()))?;
        let case = Case { seed, drive: config.clone(), subject: subject.clone(), steps: Vec::new() };
        match FileHost::new(&case) {
            Ok(host) => return Ok((config, host)),
            // Layers take some of the drive, or do not give more for a larger one.
            Err(Refused::FileSystem(
                MakeError::TooSmall { least, found, .. } | MakeError::TooFewGroups { least, found, .. },
            )) if least > found && found_before != Some(found) => {
                segments = if subject.is_alone() { least } else { segments + least - found } + extra;
                found_before = Some(found);
            }
            Err(why) => return Err(Some(why.to_string())),
        }
    }
}

/// Operations that fail by rate, or blocks that are bad from the factory.
fn with_faults(drive: &mut DriveConfig, rng: &mut Rng) {
    drive.flash.faults.uncorrectable_read = one_of(rng, &[0.0, 0.0, 0.001, 0.01]);
    if drive.gc.free_blocks >= 3 {
        drive.flash.faults.program_failure = one_of(rng, &[0.0, 0.0, 0.002, 0.01]);
        drive.flash.faults.erase_failure = one_of(rng, &[0.0, 0.0, 0.01]);
    }
    drive.flash.faults.factory_bad = one_of(rng, &[0.0, 0.0, 0.01]);
}

/// Steps with operations that fail between them.
fn with_failures(steps: Vec<Step<FileCall>>, drive: &DriveConfig, rng: &mut Rng) -> Vec<Step<FileCall>> {
    const KINDS: [FaultKind; 3] = [FaultKind::Read, FaultKind::Program, FaultKind::Erase];
    let rate = one_of(rng, &[0.0, 0.0, 0.02, 0.1]);
    let kinds = if drive.gc.free_blocks >= 3 { &KINDS[..] } else { &KINDS[..1] };
    let mut with = Vec::with_capacity(steps.len());
    for step in steps {
        if rng.random_bool(rate) {
            with.push(Step::Fail(one_of(rng, kinds), Place::Any));
        }
        with.push(step);
    }
    with
}

impl FileScope {
    fn steps(&self, mut host: FileHost, rng: &mut Rng) -> Vec<Step<FileCall>> {
        let free = match tree::ask(host.fs(), Call::StatFs).result {
            Ok(Reply::Space(space)) => space.blocks_free * 4096,
            _ => 0,
        };
        let mut mix = Mix::new(rng, free);
        let mut steps = Vec::new();
        let style = rng.random_range(0..20);
        if style < 7 {
            steps.extend(mix.fill(rng));
        } else if style < 9 {
            steps.extend(mix.crowd(rng));
        }
        // Between two cuts: few calls or many.
        let between = one_of(rng, &[3, 10, 10, 40, 150]);
        let weights: [u32; 3] = std::array::from_fn(|_| one_of(rng, &[0, 1, 4]));
        let pause = one_of(rng, &[0.0, 0.05, 0.3]);
        let drain = one_of(rng, &[0.0, 0.1]);
        let remount = one_of(rng, &[0.0, 0.01]);
        let mut next_cut = rng.random_range(0..between);
        for number in 0..self.calls {
            if self.cuts && number == next_cut {
                steps.push(Step::Cut(draw_cut(rng, weights, self.kind.jobs)));
                next_cut += rng.random_range(1..=between);
            }
            steps.push(Step::Command(mix.call(rng)));
            if rng.random_bool(pause) {
                let (events, time) = (rng.random_range(1..30), Nanos(rng.random_range(0..4_000_000)));
                steps.push(one_of(rng, &[Step::Run(events), Step::Pass(time)]));
            }
            if rng.random_bool(drain) {
                steps.push(Step::Drain);
            }
            if rng.random_bool(remount) {
                steps.push(Step::Command(FileCall::alone(Kind::Remount)));
            }
        }
        steps
    }
}

fn draw_cut(rng: &mut Rng, weights: [u32; 3], jobs: &[Job]) -> Cut {
    let mut pick = rng.random_range(0..weights.iter().sum::<u32>().max(1));
    let mut whose = Whose::All;
    // The drive alone seldom: then the file system takes no changes up to the next crash.
    for (kind, weight) in [Whose::Host, Whose::Drive(0), Whose::All].into_iter().zip(weights) {
        if pick < weight {
            whose = kind;
            break;
        }
        pick -= weight;
    }
    if whose == Whose::Drive(0) && rng.random_bool(0.7) {
        whose = Whose::All;
    }
    let at = match rng.random_range(0..12) {
        0 => Moment::Now,
        1 => Moment::Program,
        2 => Moment::Erase,
        3 => Moment::Durable,
        4 | 5 => Moment::Job(one_of(rng, jobs), rng.random_range(0..15)),
        6 | 7 if jobs.contains(&Job::MapCleaning) => {
            Moment::Job(one_of(rng, &[Job::Cleaning, Job::MapCleaning, Job::MapCleaning]), rng.random_range(0..40))
        }
        _ => {
            let most = one_of(rng, &[5, 60, 300]);
            Moment::After(rng.random_range(0..most))
        }
    };
    let mut cut = Cut { whose, at, unread: rng.random_bool(0.1), ..Cut::NOW };
    cut.percent = if rng.random_bool(0.5) { rng.random_range(1..100) } else { 0 };
    if whose != Whose::Host {
        let again = one_of(rng, &[0, 0, 0, 1, 2]);
        cut.recovery[..again].iter_mut().for_each(|place| *place = Some(draw_again(rng)));
    }
    if !matches!(whose, Whose::Drive(_)) {
        let again = one_of(rng, &[0, 0, 1, 2]);
        let most = one_of(rng, &[10, 60, 200]);
        cut.mount[..again].iter_mut().for_each(|place| *place = Some(rng.random_range(0..most)));
    }
    cut
}

/// Calls of one seed: whole kinds of them are absent, and others have wild weights.
struct Mix {
    weights: Vec<u32>,
    /// What there is if all that was drawn before succeeds: each path, and whether it leads to a directory.
    there: BTreeMap<Path, bool>,
    largest: u64,
    /// Space for files, in bytes.
    free: u64,
    depths: Vec<u32>,
    /// How often writes are direct, or durable when they are answered.
    direct: f64,
    durable: f64,
    far: f64,
    wrong: f64,
}

const KINDS: usize = 20;

impl Mix {
    fn new(rng: &mut Rng, free: u64) -> Mix {
        let mut weights: Vec<u32> =
            (0..KINDS).map(|_| if rng.random_bool(0.15) { 0 } else { rng.random_range(1..20) }).collect();
        // Without files there is nothing to do.
        weights[0] = weights[0].max(4);
        // Many check-points fill segments of the inode map.
        if rng.random_bool(0.2) {
            (weights[12], weights[17]) = (60, 80);
        }
        let largest = one_of(rng, &[5_000, 20_000, 100_000, 300_000]).min(free / 2 + 5_000);
        Mix {
            weights,
            there: [(Path::default(), true)].into(),
            largest,
            free,
            depths: one_of(rng, &[vec![1], vec![1, 2], vec![8], vec![4, 64], vec![64]]),
            direct: one_of(rng, &[0.0, 0.05, 0.5]),
            durable: one_of(rng, &[0.0, 0.03, 0.3]),
            far: one_of(rng, &[0.0, 0.0, 0.05, 0.3]),
            wrong: one_of(rng, &[0.01, 0.1]),
        }
    }

    fn depth(&self, rng: &mut Rng) -> u32 {
        one_of(rng, &self.depths)
    }

    fn name(&self, rng: &mut Rng) -> Vec<u8> {
        match rng.random_range(0..200) {
            0 => b"a/b".to_vec(),
            1 => b"..".to_vec(),
            2 => vec![b'~'; 256],
            3 => Vec::new(),
            4..16 => {
                let mut name = format!("long{}", rng.random_range(0..4)).into_bytes();
                name.resize(rng.random_range(20..=255), b'~');
                name
            }
            _ => format!("n{}", rng.random_range(0..12)).into_bytes(),
        }
    }

    /// One of the paths that lead to files, or to directories.
    fn any(&self, rng: &mut Rng, is_directory: bool) -> Option<Path> {
        let count = self.there.values().filter(|other| **other == is_directory).count();
        let place = rng.random_range(0..count.max(1));
        self.there.iter().filter(|(_, other)| **other == is_directory).nth(place).map(|(path, _)| path.clone())
    }

    fn new_path(&self, rng: &mut Rng) -> Path {
        let name = self.name(rng);
        self.any(rng, true).unwrap_or_default().with(&name)
    }

    fn directory(&self, rng: &mut Rng) -> Path {
        let known = if rng.random_bool(self.wrong) { None } else { self.any(rng, true) };
        known.unwrap_or_else(|| self.new_path(rng))
    }

    fn file(&self, rng: &mut Rng) -> Path {
        let known = if rng.random_bool(self.wrong) { None } else { self.any(rng, false) };
        known.unwrap_or_else(|| self.new_path(rng))
    }

    fn offset(&self, rng: &mut Rng) -> u64 {
        if rng.random_bool(self.far) {
            let most = one_of(rng, &[8_000_000, 5_000_000_000, 4_398_046_511_104]);
            return rng.random_range(0..most);
        }
        let offset = rng.random_range(0..self.largest);
        if rng.random_bool(0.3) { offset / 4096 * 4096 } else { offset }
    }

    fn length(&self, rng: &mut Rng) -> u32 {
        match rng.random_range(0..10) {
            0 => rng.random_range(0..=self.largest.min(100_000)) as u32,
            1..4 => rng.random_range(0..4) * 4096,
            _ => rng.random_range(0..6_000),
        }
    }

    fn write(&self, rng: &mut Rng, offset: bool) -> Kind {
        let is_direct = rng.random_bool(self.direct);
        let sync = if rng.random_bool(self.durable) { one_of(rng, &[Sync::Data, Sync::All]) } else { Sync::No };
        let (mut length, mut offset) = (self.length(rng), offset.then(|| self.offset(rng)));
        // Most direct writes are of whole blocks, as they must be.
        if is_direct && rng.random_bool(0.9) {
            length = length.next_multiple_of(4096);
            offset = offset.map(|offset| offset / 4096 * 4096);
        }
        Kind::Write { file: self.file(rng), offset, length, is_direct, sync }
    }

    fn is_empty(&self, directory: &Path) -> bool {
        let below = |path: &Path| path.0.len() > directory.0.len() && path.0.starts_with(&directory.0);
        !self.there.keys().any(below)
    }

    fn make(&mut self, path: &Path, is_directory: bool) {
        let is_below = path.split().is_some_and(|(above, _)| self.there.get(&above) == Some(&true));
        if is_below && path.0.len() < 8 {
            self.there.entry(path.clone()).or_insert(is_directory);
        }
    }

    fn remove(&mut self, path: &Path, is_directory: bool) {
        let fits = self.there.get(path) == Some(&is_directory) && !path.0.is_empty();
        if fits && (!is_directory || self.is_empty(path)) {
            self.there.remove(path);
        }
    }

    fn rename(&mut self, from: &Path, to: &Path, no_replace: bool) {
        let Some(kind) = self.there.get(from).copied().filter(|_| !from.0.is_empty() && !to.0.is_empty()) else {
            return;
        };
        let is_below = to.split().is_some_and(|(above, _)| self.there.get(&above) == Some(&true));
        let is_free = match self.there.get(to) {
            Some(other) => !no_replace && *other == kind && self.is_empty(to),
            None => true,
        };
        if !is_below || !is_free || to.0.starts_with(&from.0) {
            return;
        }
        let moved: Vec<Path> = self.there.keys().filter(|path| path.0.starts_with(&from.0)).cloned().collect();
        for path in moved {
            if let Some(kind) = self.there.remove(&path) {
                let names = to.0.iter().chain(&path.0[from.0.len()..]).cloned().collect();
                self.there.insert(Path(names), kind);
            }
        }
    }

    /// Files up to the last block, or nearly.
    fn fill(&mut self, rng: &mut Rng) -> Vec<Step<FileCall>> {
        let part = one_of(rng, &[0.5, 0.8, 0.95, 1.2]);
        let length = one_of(rng, &[4096_u32, 20_000, 65_536]);
        let mut left = (self.free as f64 * part) as u64;
        let mut steps = Vec::new();
        let depth = self.depth(rng);
        for number in 0.. {
            let path = Path::default().with(format!("n{number}").as_bytes());
            steps.push(Step::Command(FileCall { kind: Kind::Simple(Simple::Create, path.clone()), depth }));
            let write = Kind::Write { file: path.clone(), offset: Some(0), length, is_direct: false, sync: Sync::No };
            steps.push(Step::Command(FileCall { kind: write, depth }));
            self.make(&path, false);
            left = left.saturating_sub(u64::from(length).next_multiple_of(4096) + 4096);
            if left == 0 || number == 200 {
                break;
            }
        }
        steps.push(Step::Command(FileCall { kind: Kind::Sync, depth }));
        steps
    }

    /// Files of one page each in nearly all space, and then calls that write again pages of them at random. Cleaning has the least to win
    /// here: each page that it moves makes another node dirty.
    fn crowd(&mut self, rng: &mut Rng) -> Vec<Step<FileCall>> {
        let depth = self.depth(rng);
        let count = (self.free / 8192) * rng.random_range(70..=100) / 100;
        let mut steps = Vec::new();
        for number in 0..count {
            let path = Path::default().with(format!("n{number}").as_bytes());
            let write =
                Kind::Write { file: path.clone(), offset: Some(0), length: 4096, is_direct: false, sync: Sync::No };
            steps.push(Step::Command(FileCall { kind: Kind::Simple(Simple::Create, path.clone()), depth }));
            steps.push(Step::Command(FileCall { kind: write, depth }));
            self.make(&path, false);
        }
        self.largest = 4096;
        self.far = 0.0;
        // Mostly writes within files; whole kinds of calls stay absent.
        self.weights.iter_mut().for_each(|weight| *weight = weight.div_ceil(5));
        self.weights[11] = 80;
        steps
    }

    fn call(&mut self, rng: &mut Rng) -> FileCall {
        let all: u32 = self.weights.iter().sum();
        let mut pick = rng.random_range(0..all.max(1));
        let kind = self.weights.iter().position(|weight| {
            let hit = pick < *weight;
            pick = pick.wrapping_sub(if hit { 0 } else { *weight });
            hit
        });
        let kind = match kind.unwrap_or(0) {
            0 | 1 => {
                let path = self.new_path(rng);
                self.make(&path, false);
                Kind::Simple(Simple::Create, path)
            }
            2 => {
                let path = self.new_path(rng);
                self.make(&path, true);
                Kind::Simple(Simple::Mkdir, path)
            }
            3 => {
                let path = self.file(rng);
                self.remove(&path, false);
                Kind::Simple(Simple::Unlink, path)
            }
            4 => {
                let path = self.directory(rng);
                self.remove(&path, true);
                Kind::Simple(Simple::Rmdir, path)
            }
            5 | 6 => {
                let from = if rng.random_bool(0.8) { self.file(rng) } else { self.directory(rng) };
                let to = if rng.random_bool(0.4) { self.file(rng) } else { self.new_path(rng) };
                let no_replace = rng.random_bool(0.3);
                self.rename(&from, &to, no_replace);
                Kind::Rename { from, to, no_replace }
            }
            7 => {
                let (most, goes_on) = (rng.random_range(1..20), rng.random_bool(0.6));
                Kind::List { directory: self.directory(rng), most, goes_on }
            }
            8 => Kind::Simple(Simple::Open, self.file(rng)),
            9 => Kind::Simple(Simple::Close, self.file(rng)),
            10 => {
                let is_direct = rng.random_bool(self.direct);
                Kind::Read { file: self.file(rng), offset: self.offset(rng), length: self.length(rng), is_direct }
            }
            11..14 => self.write(rng, true),
            14 => self.write(rng, false),
            15 => {
                let size = if rng.random_bool(0.3) { 0 } else { self.offset(rng) };
                Kind::Truncate { file: self.file(rng), size }
            }
            16 => Kind::Simple(one_of(rng, &[Simple::Stat, Simple::Lookup]), self.file(rng)),
            17 => Kind::Simple(one_of(rng, &[Simple::Fsync, Simple::Fsync, Simple::Fdatasync]), self.file(rng)),
            18 => one_of(rng, &[Kind::Sync, Kind::StatFs, Kind::DropCaches]),
            _ => Kind::Simple(Simple::Fsync, self.directory(rng)),
        };
        FileCall { kind, depth: self.depth(rng) }
    }
}

#[cfg(test)]
mod tests {
    use ssdlab_host::LAYERS;

    use super::*;

    /// A layer that is never drawn is never tortured.
    #[test]
    fn every_layer_is_drawn_below_a_file_system_of_block_io() {
        let scope = FileScope::new("lfs", "", 1).expect("a kind");
        let text: String = (0..200)
            .filter_map(|number| scope.draw_until(4 * number + 3, &|| false).ok()?.subject.stack)
            .map(|stack| stack.text)
            .collect();
        let names = LAYERS.iter().map(|kind| format!("kind = \"{}\"", kind.name));
        let drawn = |name: &String| text.contains(name.as_str());
        let missing: Vec<String> = names.chain(["disk = ".to_string()]).filter(|name| !drawn(name)).collect();
        assert_eq!(missing, [""; 0]);
    }
}

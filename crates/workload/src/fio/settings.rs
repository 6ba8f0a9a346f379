//! One job's settings with their types, fio's defaults filled in, and every value checked that can be without a drive.

use ssdlab_base::{Nanos, SECTOR_BYTES};

use crate::WorkloadError;

use super::engines::{self, Engine};
use super::ini::{Place, Section, Setting};
use super::mode::{Kind, Mode, READ, Sizes, TRIM, WRITE};
use super::reader::{Reader, read_mode, read_skew, read_splits};
use super::skew::Skew;
use super::value::{self, Extent};

/// `zonemode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ZoneMode {
    None,
    /// I/O in zones, with holes between them.
    Strided,
    /// Zones with write pointers.
    Zbd,
}

/// The keys of zones, as they were written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ZoneKeys {
    /// `None` where it is not said.
    mode: Option<ZoneMode>,
    /// 0 where it is not said, as the next three.
    pub(crate) size: u64,
    pub(crate) capacity: u64,
    pub(crate) range: u64,
    pub(crate) skip: Extent,
    pub(crate) read_beyond: bool,
    /// 0 is no limit.
    pub(crate) max_open: u32,
    pub(crate) job_max_open: u32,
    pub(crate) ignore_limits: bool,
    /// Millionths.
    pub(crate) reset_threshold: u32,
    pub(crate) reset_frequency: u32,
}

impl ZoneKeys {
    const NONE: ZoneKeys = ZoneKeys {
        mode: None,
        size: 0,
        capacity: 0,
        range: 0,
        skip: Extent::Bytes(0),
        read_beyond: false,
        max_open: 0,
        job_max_open: 0,
        ignore_limits: false,
        reset_threshold: 0,
        reset_frequency: 0,
    };

    /// As in fio, a size alone means zones with holes.
    pub(crate) const fn mode(&self) -> ZoneMode {
        match self.mode {
            Some(mode) => mode,
            None if self.size > 0 => ZoneMode::Strided,
            None => ZoneMode::None,
        }
    }
}

/// A job as it was written, typed.
#[derive(Clone, Debug)]
pub(crate) struct JobSettings {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) mode: Mode,
    /// A new random offset every so many requests; 1 is every time.
    pub(crate) sequence_length: u64,
    /// Bytes skipped after each sequential request, negative for going backwards.
    pub(crate) sequence_hole: i64,
    pub(crate) identical: bool,
    pub(crate) read_percent: u32,
    pub(crate) sizes: [Sizes; 3],
    pub(crate) align: [Option<u64>; 3],
    pub(crate) unaligned: bool,
    pub(crate) sizes_by_randomness: bool,
    pub(crate) depth: u32,
    pub(crate) synchronous_engine: Option<String>,
    pub(crate) queued_flush: bool,
    pub(crate) inline: bool,
    pub(crate) size: Option<Extent>,
    pub(crate) io_size: Option<Extent>,
    pub(crate) offset: Extent,
    pub(crate) offset_increment: Extent,
    pub(crate) offset_align: Option<u64>,
    pub(crate) number_ios: u64,
    pub(crate) loops: u64,
    pub(crate) clones: u32,
    pub(crate) runtime: Nanos,
    pub(crate) time_based: bool,
    pub(crate) start_delay: (Nanos, Nanos),
    pub(crate) stonewall: bool,
    pub(crate) think: Nanos,
    pub(crate) think_blocks: Option<u64>,
    pub(crate) think_counts_issued: bool,
    pub(crate) think_io_time: Nanos,
    /// Bytes a second, 0 for no limit.
    pub(crate) rate: [u64; 3],
    /// Requests a second, 0 for no limit.
    pub(crate) rate_iops: [u64; 3],
    pub(crate) poisson: bool,
    pub(crate) fsync: u64,
    pub(crate) flush_at_end: bool,
    pub(crate) force_unit_access: bool,
    pub(crate) seed: Option<u64>,
    pub(crate) random_map: bool,
    /// The generator of random offsets repeats none in a pass, also without a map.
    pub(crate) each_once: bool,
    pub(crate) skew: [Skew; 3],
    pub(crate) percent_random: [u32; 3],
    pub(crate) stream: u16,
    pub(crate) zones: ZoneKeys,
    /// Where each key was last set, for errors that appear only when the drive is known.
    settings: Vec<Setting>,
}

impl JobSettings {
    /// Reads a section.
    pub(crate) fn read(section: &Section) -> Result<JobSettings, WorkloadError> {
        let mut job = JobSettings::defaults(section);
        let mut kb_base = 1024;
        for setting in section.settings.iter().filter(|setting| setting.key.name == "kb_base") {
            kb_base = match setting.value.as_deref() {
                Some("1000") => 1000,
                Some("1024") => 1024,
                _ => return Err(setting.error("1000 or 1024")),
            };
        }
        let mut draft = Draft::default();
        for setting in &section.settings {
            job.apply(setting, kb_base, &mut draft)?;
        }
        job.settle(draft)?;
        Ok(job)
    }

    /// The sizes that transfers in a direction may have: with `bs_is_seq_rand`, those for reads and those for writes.
    pub(crate) fn sizes_of(&self, direction: usize) -> impl Iterator<Item = &Sizes> {
        let is_used = move |index: &usize| *index == direction || self.sizes_by_randomness && *index != TRIM;
        (0..self.sizes.len()).filter(is_used).map(|index| &self.sizes[index])
    }

    /// The smallest size of transfers in a direction, in bytes.
    pub(crate) fn smallest_of(&self, direction: usize) -> u64 {
        if self.sizes_by_randomness {
            return self.sizes[READ].min().min(self.sizes[WRITE].min());
        }
        self.sizes[direction].min()
    }

    fn defaults(section: &Section) -> JobSettings {
        JobSettings {
            name: section.name.clone(),
            place: section.place.clone(),
            mode: Mode { kind: Kind::One(READ), random: false },
            sequence_length: 1,
            sequence_hole: 0,
            identical: false,
            read_percent: 50,
            sizes: [const { Sizes::Fixed(4096) }; 3],
            align: [None; 3],
            unaligned: false,
            sizes_by_randomness: false,
            depth: 1,
            synchronous_engine: None,
            queued_flush: false,
            inline: true,
            size: None,
            io_size: None,
            offset: Extent::Bytes(0),
            offset_increment: Extent::Bytes(0),
            offset_align: None,
            number_ios: 0,
            loops: 1,
            clones: 1,
            runtime: Nanos::ZERO,
            time_based: false,
            start_delay: (Nanos::ZERO, Nanos::ZERO),
            stonewall: false,
            think: Nanos::ZERO,
            think_blocks: None,
            think_counts_issued: false,
            think_io_time: Nanos::ZERO,
            rate: [0; 3],
            rate_iops: [0; 3],
            poisson: false,
            fsync: 0,
            flush_at_end: false,
            force_unit_access: false,
            seed: None,
            random_map: true,
            each_once: false,
            skew: [const { Skew::Uniform }; 3],
            percent_random: [100; 3],
            stream: 0,
            zones: ZoneKeys::NONE,
            settings: section.settings.clone(),
        }
    }

    /// An error about the last setting of `key`, or about the job where it was never set.
    pub(crate) fn error(&self, key: &str, message: &str) -> WorkloadError {
        match self.settings.iter().rev().find(|setting| setting.key.name == key) {
            Some(setting) => {
                let shown = match &setting.value {
                    Some(value) => format!("{}={value}", setting.written),
                    None => setting.written.clone(),
                };
                WorkloadError(format!("{}: job '{}': '{shown}': {message}", setting.place, self.name))
            }
            None => WorkloadError(format!("{}: job '{}': {message}", self.place, self.name)),
        }
    }

    /// What `key` was last set to, by the job or a section above it.
    pub(crate) fn last(&self, key: &str) -> Option<&str> {
        let setting = self.settings.iter().rev().find(|setting| setting.key.name == key)?;
        setting.value.as_deref().filter(|value| !value.is_empty())
    }

    /// Whether the job or a section above it set `key`.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.settings.iter().any(|setting| setting.key.name == key)
    }

    /// The keys that were accepted and change nothing, in the order they were written.
    pub(crate) fn without_effect(&self) -> impl Iterator<Item = &str> {
        self.settings
            .iter()
            .filter(|setting| setting.key.support == super::keys::Support::NoEffect)
            .map(|setting| setting.written.as_str())
    }

    #[allow(clippy::too_many_lines)] // One arm for each key; splitting it would only hide the list.
    fn apply(&mut self, setting: &Setting, kb: u64, draft: &mut Draft) -> Result<(), WorkloadError> {
        let s = Reader { setting, kb };
        match setting.key.name {
            "rw" => (self.mode, draft.postfix) = read_mode(&s)?,
            "rw_sequencer" => self.identical = s.word(&[("sequential", false), ("identical", true)])?,
            "rwmixread" => self.read_percent = s.percent()?,
            "rwmixwrite" => self.read_percent = 100 - s.percent()?,
            "bs" => merge(
                &mut draft.block,
                s.triple("a block size such as 4k or 4k,8k,16k (a positive multiple of 512)", |t| {
                    value::size(t, kb).filter(|size| *size > 0)
                })?,
            ),
            "bsrange" => draft.range = Some(s.triple_of_ranges()?),
            "bssplit" => draft.split = Some(read_splits(&s)?),
            "bs_unaligned" => self.unaligned = s.flag()?,
            "bs_is_seq_rand" => self.sizes_by_randomness = s.flag()?,
            "ba" => merge(
                &mut self.align,
                s.triple("an alignment such as 4k (a multiple of 512; 0 is the block size)", |t| value::size(t, kb))?,
            ),
            "iodepth" => self.depth = s.number(1, MAX_DEPTH)? as u32,
            "ioengine" => {
                let engine = s.text("the name of an I/O engine")?;
                let kind = engines::find(engine).map_err(|expected| setting.error(&expected.to_string()))?;
                self.synchronous_engine = (kind == Engine::Synchronous).then(|| engine.to_string());
                self.queued_flush = kind == Engine::QueuedFlush;
            }
            "io_submit_mode" => self.inline = s.word(&[("inline", true), ("offload", false)])?,
            "size" => self.size = s.region("a size such as 4g, or a share up to 100%; 0 is the rest of the drive")?,
            "io_size" => {
                self.io_size = s.extent("a size such as 4g, or a share of the region such as 50%; 0 is the region")?;
            }
            "offset" => self.offset = s.extent_or_zero()?,
            "offset_increment" => self.offset_increment = s.extent_or_zero()?,
            "offset_align" => self.offset_align = Some(s.number(0, u64::MAX)?).filter(|align| *align > 0),
            "number_ios" => self.number_ios = s.number(0, u64::MAX)?,
            "loops" => self.loops = s.number(0, 1 << 32)?.max(1),
            "numjobs" => self.clones = s.number(1, MAX_CLONES)? as u32,
            "runtime" => self.runtime = s.time(value::SECONDS)?,
            "time_based" => self.time_based = s.flag()?,
            "startdelay" => self.start_delay = s.time_range()?,
            "stonewall" => self.stonewall = s.flag()?,
            "thinktime" => self.think = s.time(value::MICROSECONDS)?,
            "thinktime_blocks" => self.think_blocks = Some(s.number(1, u64::MAX)?),
            "thinktime_blocks_type" => self.think_counts_issued = s.word(&[("complete", false), ("issue", true)])?,
            "thinktime_iotime" => self.think_io_time = s.time(value::SECONDS)?,
            "rate" => {
                merge_values(&mut self.rate, s.triple("bytes a second such as 10m or 10m,5m", |t| value::size(t, kb))?)
            }
            "rate_iops" => {
                merge_values(&mut self.rate_iops, s.triple("requests a second such as 5000", |t| value::count(t, kb))?)
            }
            "rate_process" => self.poisson = s.word(&[("linear", false), ("poisson", true)])?,
            "fsync" => draft.fsync = s.number(0, u64::MAX)?,
            "fdatasync" => draft.fdatasync = s.number(0, u64::MAX)?,
            "end_fsync" => draft.end_fsync = s.flag()?,
            "fsync_on_close" => draft.fsync_on_close = s.flag()?,
            "sync" => {
                self.force_unit_access =
                    s.word(&[("none", false), ("0", false), ("sync", true), ("1", true), ("dsync", true)])?;
            }
            "randseed" => self.seed = Some(s.number(0, u64::MAX)?),
            "norandommap" => self.random_map = !s.flag()?,
            "random_generator" => {
                self.each_once = s.word(&[("tausworthe", false), ("tausworthe64", false), ("lfsr", true)])?;
            }
            "random_distribution" => self.skew = read_skew(&s)?,
            "percentage_random" => merge_values(
                &mut self.percent_random,
                s.triple("percentages from 0 to 100", |t| {
                    value::count(t, kb).filter(|percent| *percent <= 100).map(|percent| percent as u32)
                })?,
            ),
            "writefua" => draft.write_fua = s.flag()?,
            "write_hint" => {
                self.stream = s.word(&[("none", 0), ("short", 1), ("medium", 2), ("long", 3), ("extreme", 4)])?;
            }
            "filename" => {
                let text = s.text("one file name")?;
                if text.replace("\\:", "").contains(':') {
                    return Err(setting.error("one file name: the drive is the file, and the job's region is on it"));
                }
            }
            "zonemode" => {
                let words = [("none", ZoneMode::None), ("strided", ZoneMode::Strided), ("zbd", ZoneMode::Zbd)];
                self.zones.mode = Some(s.word(&words)?);
            }
            "zonesize" => self.zones.size = s.bytes()?,
            "zonecapacity" => self.zones.capacity = s.bytes()?,
            "zonerange" => self.zones.range = s.bytes()?,
            "zoneskip" => self.zones.skip = s.extent_or_zero()?,
            "read_beyond_wp" => self.zones.read_beyond = s.flag()?,
            "max_open_zones" => self.zones.max_open = s.number(0, u64::from(u32::MAX))? as u32,
            "job_max_open_zones" => self.zones.job_max_open = s.number(0, u64::from(u32::MAX))? as u32,
            "ignore_zone_limits" => self.zones.ignore_limits = s.flag()?,
            "zone_reset_threshold" => self.zones.reset_threshold = s.share()?,
            "zone_reset_frequency" => self.zones.reset_frequency = s.share()?,
            // Read before the others.
            "kb_base" => {}
            "name" => {
                s.text("a name")?;
            }
            _ => debug_assert!(
                !matches!(setting.key.support, super::keys::Support::Works(_)),
                "key {} is said to work and is not read",
                setting.key.name
            ),
        }
        Ok(())
    }

    /// What can be decided only when every key has been read.
    fn settle(&mut self, draft: Draft) -> Result<(), WorkloadError> {
        self.settle_sequence(draft.postfix.as_deref(), draft_kb(&self.settings))?;
        self.settle_sizes(&draft)?;
        self.settle_zones()?;
        self.force_unit_access |= draft.write_fua;
        for align in &mut self.align {
            *align = align.filter(|align| *align > 0);
        }
        let varies = |direction| self.mode.uses(direction) && !matches!(self.sizes[direction], Sizes::Fixed(_));
        if self.each_once && self.mode.random && [READ, WRITE, TRIM].into_iter().any(varies) {
            return Err(self.error("random_generator", "lfsr needs one block size: expected bs=, or tausworthe"));
        }
        self.random_map |= self.each_once;
        self.flush_at_end = draft.end_fsync || draft.fsync_on_close;
        if draft.fsync > 0 && draft.fdatasync > 0 && draft.fsync != draft.fdatasync {
            return Err(self.error("fdatasync", "contradicts fsync: a drive knows one flush, give one of the two"));
        }
        self.fsync = draft.fsync.max(draft.fdatasync);
        if self.rate.iter().any(|rate| *rate > 0) && self.rate_iops.iter().any(|rate| *rate > 0) {
            return Err(self.error("rate", "contradicts rate_iops, give one of the two"));
        }
        if self.poisson && self.rate == [0; 3] && self.rate_iops == [0; 3] {
            return Err(self.error("rate_process", "needs rate or rate_iops"));
        }
        if self.time_based && self.runtime == Nanos::ZERO {
            return Err(self.error("time_based", "needs a runtime above 0"));
        }
        if self.start_delay.0 > self.start_delay.1 {
            return Err(self.error("startdelay", "expected the smaller end first"));
        }
        let any_pause = self.think_blocks.is_some() || self.think_counts_issued || self.think_io_time > Nanos::ZERO;
        if any_pause && self.think == Nanos::ZERO {
            let key = ["thinktime_iotime", "thinktime_blocks_type", "thinktime_blocks"];
            let key = key.into_iter().find(|key| self.has(key)).unwrap_or("thinktime");
            return Err(self.error(key, "needs a thinktime above 0"));
        }
        Ok(())
    }

    /// Zones make sense together.
    fn settle_zones(&self) -> Result<(), WorkloadError> {
        let mode = self.zones.mode();
        let in_zones = [("size", self.size), ("io_size", self.io_size)].into_iter().chain([
            ("offset", Some(self.offset)),
            ("offset_increment", Some(self.offset_increment)),
            ("zoneskip", Some(self.zones.skip)),
        ]);
        for (key, extent) in in_zones {
            if matches!(extent, Some(Extent::Zones(_))) && mode != ZoneMode::Zbd {
                return Err(self.error(key, "a number of zones needs zonemode=zbd"));
            }
        }
        if matches!(self.zones.skip, Extent::Percent(_)) {
            return Err(self.error("zoneskip", "expected bytes, or zones with zonemode=zbd"));
        }
        let only_zbd = ["zonecapacity", "read_beyond_wp", "max_open_zones", "job_max_open_zones", "ignore_zone_limits"];
        let only_zbd = only_zbd.into_iter().chain(["zone_reset_threshold", "zone_reset_frequency"]);
        let only_strided = ["zonerange"];
        let misplaced = match mode {
            ZoneMode::Zbd => only_strided.into_iter().find(|key| self.has(key)).map(|key| (key, "strided")),
            ZoneMode::Strided => only_zbd.into_iter().find(|key| self.has(key)).map(|key| (key, "zbd")),
            ZoneMode::None => {
                let all = only_zbd.chain(only_strided).chain(["zonesize", "zoneskip"]);
                all.into_iter().find(|key| self.has(key)).map(|key| (key, "zbd or zonemode=strided"))
            }
        };
        if let Some((key, wanted)) = misplaced {
            return Err(self.error(key, &format!("needs zonemode={wanted}")));
        }
        if mode == ZoneMode::Strided && self.zones.size == 0 {
            return Err(self.error("zonemode", "strided needs a zonesize above 0"));
        }
        let sizes =
            [("zonesize", self.zones.size), ("zonecapacity", self.zones.capacity), ("zonerange", self.zones.range)];
        for (key, bytes) in sizes {
            if bytes % SECTOR_BYTES != 0 {
                return Err(self.error(key, "expected a multiple of 512 bytes"));
            }
        }
        if mode == ZoneMode::None {
            return Ok(());
        }
        if self.sequence_hole != 0 || self.sequence_length > 1 {
            return Err(self.error("rw", "expected no number after the colon with zonemode"));
        }
        if mode == ZoneMode::Zbd && self.mode.kind == Kind::TrimThenWrite {
            return Err(self.error("rw", "zonemode=zbd cannot trim before each write: a full zone is reset instead"));
        }
        Ok(())
    }

    /// A copy of the job with its numbers of zones as bytes, at `zone_size` bytes a zone.
    pub(crate) fn with_zones_of(&self, zone_size: u64) -> JobSettings {
        let mut job = self.clone();
        let in_bytes = |extent: Extent| extent.with_zones_of(zone_size);
        (job.size, job.io_size) = (job.size.map(in_bytes), job.io_size.map(in_bytes));
        (job.offset, job.offset_increment) = (in_bytes(job.offset), in_bytes(job.offset_increment));
        job.zones.skip = in_bytes(job.zones.skip);
        job
    }

    fn settle_sequence(&mut self, postfix: Option<&str>, kb: u64) -> Result<(), WorkloadError> {
        let Some(postfix) = postfix else { return Ok(()) };
        if self.mode.kind == Kind::TrimThenWrite {
            return Err(self.error("rw", "expected no number after the colon of trimwrite"));
        }
        if self.mode.random {
            let length = value::count(postfix, kb).filter(|length| *length > 0);
            self.sequence_length =
                length.ok_or_else(|| self.error("rw", "expected a number of requests above 0 after the colon"))?;
        } else {
            let hole = value::signed_size(postfix, kb).filter(|hole| hole.unsigned_abs() % SECTOR_BYTES == 0);
            self.sequence_hole = hole.ok_or_else(|| {
                self.error("rw", "expected a multiple of 512 bytes such as 4k or -8k after the colon")
            })?;
        }
        Ok(())
    }

    fn settle_sizes(&mut self, draft: &Draft) -> Result<(), WorkloadError> {
        if draft.range.is_some() && draft.split.is_some() {
            return Err(self.error("bssplit", "contradicts bsrange, give one of the two"));
        }
        for direction in [READ, WRITE, TRIM] {
            if let Some(size) = draft.block[direction] {
                self.sizes[direction] = Sizes::Fixed(size);
            }
            if let Some((low, high)) = draft.range.and_then(|range| range[direction]) {
                self.sizes[direction] = if low == high { Sizes::Fixed(low) } else { Sizes::Range(low, high) };
            }
            // A list that is empty keeps the size there was.
            if let Some(entries) = draft.split.as_ref().map(|split| &split[direction]).filter(|list| !list.is_empty()) {
                // As fio, all are cut to multiples of the smallest.
                let smallest = entries.iter().map(|(size, _)| *size).min().unwrap_or(SECTOR_BYTES);
                let step = if self.unaligned { 1 } else { smallest };
                let cut = |(size, percent): &(u64, u32)| (size - size % step, *percent);
                let used: Vec<_> = entries.iter().map(cut).filter(|(_, percent)| *percent > 0).collect();
                // As in fio, sizes that are alike before they are cut are one size, which may reach beyond the region.
                let is_one = entries.iter().all(|(size, _)| *size == smallest);
                self.sizes[direction] = match used.as_slice() {
                    [(only, _), rest @ ..] if is_one || rest.is_empty() => Sizes::Fixed(*only),
                    _ => Sizes::Split(used),
                };
            }
        }
        if self.mode.kind == Kind::TrimThenWrite {
            // A write repeats the trim before it.
            self.sizes[WRITE] = self.sizes[TRIM].clone();
            self.align[WRITE] = self.align[TRIM];
        }
        for direction in [READ, WRITE, TRIM] {
            let key = if draft.split.is_some() {
                "bssplit"
            } else if draft.range.is_some() {
                "bsrange"
            } else {
                "bs"
            };
            let sizes = match &self.sizes[direction] {
                Sizes::Fixed(size) => vec![*size],
                Sizes::Range(low, high) => vec![*low, *high],
                Sizes::Split(entries) => entries.iter().map(|(size, _)| *size).collect(),
            };
            for size in sizes {
                if size == 0 || size % SECTOR_BYTES != 0 {
                    let hint = if size % 1000 == 0 && size > 0 {
                        " ('kib' is 1000 bytes under fio's kb_base=1024: write 4k)"
                    } else {
                        ""
                    };
                    return Err(
                        self.error(key, &format!("found {size} bytes, expected a positive multiple of 512{hint}"))
                    );
                }
                if size > MAX_BLOCK {
                    return Err(self.error(key, &format!("found {size} bytes, expected at most {MAX_BLOCK}")));
                }
            }
            if self.align[direction].is_some_and(|align| align % SECTOR_BYTES != 0) {
                return Err(self.error("ba", "expected a multiple of 512 bytes"));
            }
        }
        Ok(())
    }
}

/// Largest accepted depth: far beyond any drive, and small enough to allocate.
const MAX_DEPTH: u64 = 65_536;
/// Largest accepted number of clones.
const MAX_CLONES: u64 = 4_096;
/// Largest accepted request.
const MAX_BLOCK: u64 = 1 << 40;

/// Keys that matter only together with others.
#[derive(Default)]
struct Draft {
    postfix: Option<String>,
    block: [Option<u64>; 3],
    range: Option<[Option<(u64, u64)>; 3]>,
    split: Option<[Vec<(u64, u32)>; 3]>,
    fsync: u64,
    fdatasync: u64,
    end_fsync: bool,
    fsync_on_close: bool,
    write_fua: bool,
}

fn draft_kb(settings: &[Setting]) -> u64 {
    let last = settings.iter().rev().find(|setting| setting.key.name == "kb_base");
    if last.and_then(|setting| setting.value.as_deref()) == Some("1000") { 1000 } else { 1024 }
}

fn merge<T: Copy>(target: &mut [Option<T>; 3], from: [Option<T>; 3]) {
    for (target, from) in target.iter_mut().zip(from) {
        *target = from.or(*target);
    }
}

fn merge_values<T: Copy>(target: &mut [T; 3], from: [Option<T>; 3]) {
    for (target, from) in target.iter_mut().zip(from) {
        *target = from.unwrap_or(*target);
    }
}

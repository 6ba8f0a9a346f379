//! A workload from text, as `--workload` and `--precondition` have it: a trace, a model of one, a fio job file, or fio's
//! options in one line, opened for one drive after another.

use std::borrow::Cow;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use ssdlab_base::command_sets::zoned::ZONED;
use ssdlab_base::{Nanos, SECTOR_BYTES};
use ssdlab_device::DriveConfig;
use ssdlab_measure::micro::MicroBenchmark;
use ssdlab_workload::fio::{FioJob, Variables, parse_size};
use ssdlab_workload::model::{Model, is_model};
use ssdlab_workload::replay::{Discipline, Fit, ReplaySettings, TraceReplay};
use ssdlab_workload::trace::{Trace, standard_input};
use ssdlab_workload::{Demand, Next, Workload, WorkloadError, WorkloadKind, open_trace};

use super::{InZones, WorkloadSource, pointers};
use crate::snapshot::file_identity;

/// What fio multiplies `k` with where a line of options does not say; one that says is not known to be uniform.
const FIO_KB_BASE: u64 = 1024;

/// When and how many requests are sent, and where.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReplayOptions {
    /// When a trace's requests are sent; `None` is as its times say.
    pub discipline: Option<Discipline>,
    /// Where a trace's requests go on a drive of another size.
    pub fit: Fit,
    /// At most so many requests.
    pub limit: Option<u64>,
}

/// Why a text is no workload, and what could be written instead.
#[derive(Debug, thiserror::Error)]
#[error("{sentence}")]
pub struct SourceError {
    /// The reason.
    pub sentence: String,
    /// What to do about it.
    pub hint: Option<Cow<'static, str>>,
}

impl SourceError {
    fn plain(sentence: impl std::fmt::Display) -> SourceError {
        SourceError { sentence: sentence.to_string(), hint: None }
    }

    /// The reason and the hint in one sentence.
    pub fn with_hint(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}; {hint}", self.sentence),
            None => self.sentence.clone(),
        }
    }
}

impl ReplayOptions {
    /// For the workload that preconditions a drive: all of it, placed as the measured one is.
    #[must_use]
    pub fn whole(self) -> ReplayOptions {
        ReplayOptions { discipline: None, limit: None, ..self }
    }
}

/// Where the requests come from.
enum Kind {
    Trace {
        /// Path and options, as they were written.
        spec: String,
        identity: String,
    },
    Model(Model),
    Fio {
        job: FioJob,
        /// The jobs without the seeds that they state, for all passes but pass 0: see [`TextSource::job`].
        unseeded: FioJob,
        /// The options, where the jobs are one line.
        line: Option<String>,
    },
}

/// A workload as it was asked for.
pub struct TextSource {
    /// The text, as it was written.
    text: String,
    kind: Kind,
    replay: ReplayOptions,
    seed: u64,
    /// What reading it showed: for all drives, or for those of a user capacity.
    notes: Mutex<Vec<(Option<u64>, String)>>,
}

/// `micro:NAME[,fio's options]`: a micro-benchmark by the name that a paper gives it, as a line of fio's options.
fn micro_benchmark(text: &str) -> Result<Option<String>, SourceError> {
    let Some(text) = text.strip_prefix("micro:") else { return Ok(None) };
    let (name, options) = text.split_at(text.find(',').unwrap_or(text.len()));
    let benchmark: MicroBenchmark = name.parse().map_err(SourceError::plain)?;
    Ok(Some(benchmark.fio() + options))
}

/// A job file without the seeds that it states.
fn unseeded(text: &str, file: &str, variables: &Variables) -> Result<FioJob, SourceError> {
    let lines: Vec<&str> = text.lines().map(|line| if sets_seed(line) { "" } else { line }).collect();
    FioJob::parse_text_with(&lines.join("\n"), file, variables).map_err(SourceError::plain)
}

impl TextSource {
    /// Finds out what `text` is, and reads as much of it as can be wrong without a drive. Variables of job files are those of
    /// the environment.
    ///
    /// # Errors
    /// Text that cannot be read or understood, and replay options that it does not take.
    pub fn open(text: &str, replay: ReplayOptions, seed: u64) -> Result<TextSource, SourceError> {
        TextSource::open_with(text, replay, seed, &Variables::of_environment())
    }

    /// Finds out what `text` is, as [`TextSource::open`] does, with the values that `variables` has for job files.
    ///
    /// # Errors
    /// Text that cannot be read or understood, replay options that it does not take, and a variable without a value.
    pub fn open_with(
        text: &str,
        replay: ReplayOptions,
        seed: u64,
        variables: &Variables,
    ) -> Result<TextSource, SourceError> {
        let written = text.to_string();
        let expanded = micro_benchmark(text)?;
        let text = expanded.as_deref().unwrap_or(text);
        let kind = match WorkloadKind::of(text) {
            WorkloadKind::Specification => {
                let unseeded: Vec<&str> = text.split(',').filter(|option| !sets_seed(option)).collect();
                Kind::Fio {
                    job: FioJob::parse_line_with(text, variables).map_err(SourceError::plain)?,
                    unseeded: FioJob::parse_line_with(&unseeded.join(","), variables).map_err(SourceError::plain)?,
                    line: Some(text.to_string()),
                }
            }
            WorkloadKind::JobFile => {
                let whole = FioJob::read_file(Path::new(text)).map_err(SourceError::plain)?;
                let job = FioJob::parse_text_with(&whole, text, variables).map_err(SourceError::plain)?;
                Kind::Fio { job, unseeded: unseeded(&whole, text, variables)?, line: None }
            }
            WorkloadKind::Trace if is_model(text) => Kind::Model(Model::parse(text, seed).map_err(SourceError::plain)?),
            WorkloadKind::Trace => {
                let trace = open_trace(text).map_err(SourceError::plain)?;
                let name = trace.name();
                let identity =
                    if trace.is_standard_input() { input_identity() } else { file_identity(Path::new(&name)) };
                let identity = identity.map_err(|error| SourceError::plain(format!("{name}: {error}")))?;
                Kind::Trace { spec: text.to_string(), identity }
            }
        };
        if let (Kind::Fio { .. }, ReplayOptions { discipline, fit, .. }) = (&kind, &replay) {
            if let Some(discipline) = discipline {
                return Err(SourceError {
                    sentence: format!("--replay {discipline} is for traces, and '{text}' is a fio workload"),
                    hint: Some("a fio workload says itself when it sends: iodepth=, rate_iops=, thinktime=".into()),
                });
            }
            if *fit != Fit::Exact {
                return Err(SourceError {
                    sentence: format!("--{fit} is for traces, and '{text}' is a fio workload"),
                    hint: Some("a fio workload is sized by the drive: size=50%, io_size=4g".into()),
                });
            }
        }
        let notes = match &kind {
            Kind::Fio { job, .. } => job.notes().into_iter().map(|note| (None, note)).collect(),
            Kind::Trace { .. } | Kind::Model(_) => Vec::new(),
        };
        Ok(TextSource { text: written, kind, replay, seed, notes: Mutex::new(notes) })
    }

    /// A workload that is sent besides the measured one, whole: the measured one's fit holds for it where it is a trace, too.
    ///
    /// # Errors
    /// Text that cannot be read or understood, and a variable without a value.
    pub fn open_beside(
        text: &str,
        replay: ReplayOptions,
        seed: u64,
        variables: &Variables,
    ) -> Result<TextSource, SourceError> {
        let is_fio = text.starts_with("micro:")
            || matches!(WorkloadKind::of(text), WorkloadKind::Specification | WorkloadKind::JobFile);
        let fit = if is_fio { Fit::Exact } else { replay.fit };
        TextSource::open_with(text, ReplayOptions { fit, ..replay.whole() }, seed, variables)
    }

    /// The text of a fio job file, sent as it says itself; `file` is what messages call it.
    ///
    /// # Errors
    /// Text that is no job file.
    pub fn of_jobs(text: &str, file: &str, seed: u64) -> Result<TextSource, SourceError> {
        let job = FioJob::parse_text(text, file).map_err(SourceError::plain)?;
        let notes = job.notes().into_iter().map(|note| (None, note)).collect();
        let kind = Kind::Fio { job, unseeded: unseeded(text, file, &Variables::default())?, line: None };
        Ok(TextSource {
            text: file.to_string(),
            kind,
            replay: ReplayOptions::default(),
            seed,
            notes: Mutex::new(notes),
        })
    }

    /// The replay discipline, for the results.
    pub fn replay(&self) -> String {
        match self.kind {
            Kind::Trace { .. } | Kind::Model(_) => self.replay.discipline.unwrap_or_default().to_string(),
            Kind::Fio { ref job, .. } => format!("fio, {}", depths(&job.depths())),
        }
    }

    /// A trace as it is sent to a drive.
    fn replay_of(&self, trace: Trace, drive: &DriveConfig) -> Result<Box<dyn Workload>, WorkloadError> {
        let settings = ReplaySettings {
            discipline: self.replay.discipline.unwrap_or_default(),
            fit: self.replay.fit,
            limit: self.replay.limit,
        };
        let replay = TraceReplay::new(trace, settings, drive.address_bytes() / SECTOR_BYTES)?;
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        for note in replay.notes() {
            let note = (Some(drive.user_bytes), note);
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        Ok(Box::new(replay))
    }

    /// A trace with commands of zones is sent as it is; the plain writes of any other have to be at the write pointers.
    fn trace_in_zones(&self, spec: &str, drive: &DriveConfig) -> Result<InZones, WorkloadError> {
        let Some(zones) = drive.zones() else { return Ok(InZones::No) };
        let settings = ReplaySettings {
            discipline: Discipline::Closed { depth: NonZeroU32::MIN },
            fit: self.replay.fit,
            limit: self.replay.limit,
        };
        let mut trace = TraceReplay::new(Trace::open(spec)?, settings, drive.address_bytes() / SECTOR_BYTES)?;
        match trace.command_set() {
            Some(set) if set == ZONED.name => Ok(InZones::Yes),
            Some(_) => Ok(InZones::No),
            None => Ok(pointers::first_off(&mut trace, &zones)?.map_or(InZones::Yes, InZones::Off)),
        }
    }

    /// The jobs of a pass. A `randseed` belongs to the measured run; if preconditioning drew the same numbers, the run would
    /// overwrite in exactly the order in which the drive was aged, and garbage collection would have it too easy.
    fn job<'a>(job: &'a FioJob, unseeded: &'a FioJob, pass: u64) -> &'a FioJob {
        if pass == 0 { job } else { unseeded }
    }
}

/// How many requests each job keeps in flight, in words: `iodepth 32`, `4 jobs of iodepth 8`, `3 jobs of iodepth 4, 8, 2`.
fn depths(depths: &[u32]) -> String {
    const TOLD: usize = 8;
    match depths {
        [one] => format!("iodepth {one}"),
        [first, rest @ ..] if rest.iter().all(|depth| depth == first) => {
            format!("{} jobs of iodepth {first}", depths.len())
        }
        all => {
            let told: Vec<String> = all.iter().take(TOLD).map(ToString::to_string).collect();
            let more = if all.len() > TOLD { ", ..." } else { "" };
            format!("{} jobs of iodepth {}{more}", all.len(), told.join(", "))
        }
    }
}

/// What identifies a trace from standard input: what is in it.
fn input_identity() -> std::io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    std::io::copy(&mut standard_input().map_err(std::io::Error::other)?, &mut hasher)?;
    Ok(format!("{} bytes {}", hasher.count(), hasher.finalize().to_hex()))
}

/// The seed of a pass: the run's own for the measured one.
fn of_pass(seed: u64, pass: u64) -> u64 {
    // Odd, so that no two passes share a seed.
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    seed.wrapping_add(pass.wrapping_mul(STEP))
}

/// Whether a line or an option is `randseed=`.
fn sets_seed(text: &str) -> bool {
    text.split_once('=').is_some_and(|(key, _)| key.trim() == "randseed")
}

impl WorkloadSource for TextSource {
    fn open(&self, drive: &DriveConfig, pass: u64) -> Result<Box<dyn Workload>, WorkloadError> {
        match &self.kind {
            Kind::Trace { spec, .. } => self.replay_of(Trace::open(spec)?, drive),
            // As a job, a model draws other numbers while it preconditions a drive.
            Kind::Model(model) => self.replay_of(model.reseeded(of_pass(model.seed(), pass)).trace()?, drive),
            Kind::Fio { job, unseeded, .. } => {
                let seed = of_pass(self.seed, pass);
                let job = TextSource::job(job, unseeded, pass);
                let generator = job.generator_on(drive.address_bytes(), drive.zones(), seed)?;
                Ok(match self.replay.limit {
                    Some(limit) => Box::new(Limited { inner: generator, limit, sent: 0 }),
                    None => Box::new(generator),
                })
            }
        }
    }

    fn identity(&self) -> String {
        let ReplayOptions { fit, limit, .. } = &self.replay;
        match &self.kind {
            Kind::Trace { spec, identity } => format!("trace {spec} {identity} {fit} {limit:?}"),
            Kind::Model(model) => format!("model {} {fit} {limit:?}", model.identity()),
            Kind::Fio { job, .. } => format!("fio {job:?} seed {} {limit:?}", self.seed),
        }
    }

    fn name(&self) -> String {
        self.text.clone()
    }

    fn demand(&self, drive: &DriveConfig) -> Demand {
        match &self.kind {
            // A job that does not fit the drive is refused when it is opened.
            Kind::Fio { job, .. } => {
                let demand = job.demand(drive.address_bytes(), drive.zones()).unwrap_or_default();
                Demand { in_flight: demand.in_flight.min(self.replay.limit.unwrap_or(u64::MAX)), ..demand }
            }
            // How many requests of a trace are in flight, only the run shows.
            Kind::Trace { .. } | Kind::Model(_) => Demand::default(),
        }
    }

    fn notes(&self, drive: &DriveConfig) -> Vec<String> {
        let notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let of_drive = |of: &Option<u64>| of.is_none_or(|user_bytes| user_bytes == drive.user_bytes);
        notes.iter().filter(|(of, _)| of_drive(of)).map(|(_, note)| note.clone()).collect()
    }

    fn is_clocked(&self) -> bool {
        let discipline = self.replay.discipline.unwrap_or_default();
        !matches!(self.kind, Kind::Fio { .. }) && matches!(discipline, Discipline::Timed { .. })
    }

    fn is_trace(&self) -> bool {
        matches!(self.kind, Kind::Trace { .. })
    }

    fn writes_in_zones(&self, drive: &DriveConfig) -> InZones {
        match &self.kind {
            // A job without zones says so itself, with its place.
            Kind::Fio { .. } => InZones::Yes,
            // A trace that cannot be read says so when it is opened for the run.
            Kind::Trace { spec, .. } => self.trace_in_zones(spec, drive).unwrap_or(InZones::Yes),
            Kind::Model(_) => InZones::No,
        }
    }

    fn is_uniform_overwrites(&self, drive: &DriveConfig) -> bool {
        match &self.kind {
            Kind::Fio { line: Some(line), .. } => is_uniform(line, drive.ftl.mapping_unit),
            _ => false,
        }
    }
}

/// Whether a line of options asks for uniform random writes of one mapping unit over the whole drive. Any option that is
/// not known to leave that alone says no.
fn is_uniform(line: &str, mapping_unit: u32) -> bool {
    let (mut random, mut unit, mut map) = (false, false, true);
    for option in line.split(',') {
        let (key, value) =
            option.split_once('=').map_or((option.trim(), "1"), |(key, value)| (key.trim(), value.trim()));
        match key {
            "rw" | "readwrite" => random = value == "randwrite",
            "bs" | "blocksize" => unit = parse_size(value, FIO_KB_BASE) == Some(u64::from(mapping_unit)),
            "norandommap" => map = value == "0",
            "size" if value == "100%" => {}
            "random_distribution" if value == "random" => {}
            "iodepth" | "io_size" | "io_limit" | "randseed" | "name" | "loops" | "runtime" | "time_based"
            | "direct" | "ioengine" => {}
            _ => return false,
        }
    }
    random && unit && !map
}

/// A workload that ends after so many requests.
struct Limited<W> {
    inner: W,
    limit: u64,
    sent: u64,
}

impl<W: Workload> Workload for Limited<W> {
    fn next(&mut self, now: Nanos) -> Result<Next, WorkloadError> {
        if self.sent == self.limit {
            return Ok(Next::Done);
        }
        let next = self.inner.next(now)?;
        self.sent += u64::from(matches!(next, Next::Request(_)));
        Ok(next)
    }

    fn completed(&mut self, now: Nanos, tag: u32) {
        self.inner.completed(now, tag);
    }

    fn words(&self) -> &[u64] {
        self.inner.words()
    }

    fn command_set(&self) -> Option<&'static str> {
        self.inner.command_set()
    }

    fn begin_zones(&mut self, zones: &mut dyn Iterator<Item = (u64, bool)>) {
        self.inner.begin_zones(zones);
    }

    fn jobs(&self) -> Vec<String> {
        self.inner.jobs()
    }

    fn job_of(&self, tag: u32) -> usize {
        self.inner.job_of(tag)
    }

    fn progress(&self) -> (u64, Option<u64>) {
        let total = self.inner.progress().1.map_or(self.limit, |total| total.min(self.limit));
        (self.sent, Some(total))
    }

    fn rewind(&mut self) -> Result<(), WorkloadError> {
        self.sent = 0;
        self.inner.rewind()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_uniform_random_writes_of_a_unit_over_the_whole_drive_have_a_theory() {
        let uniform = |line| is_uniform(line, 4096);
        assert!(uniform("rw=randwrite,bs=4k,iodepth=32,size=100%,io_size=2g,norandommap,randseed=1"));
        assert!(uniform("rw=randwrite,bs=4096,norandommap=1"));
        assert!(uniform("rw=randwrite,bs=4kB,norandommap"), "4096 bytes to fio");
        for line in [
            "rw=randwrite,bs=4k",
            "rw=randwrite,bs=4k,norandommap=0",
            "rw=randwrite,bs=8k,norandommap",
            "rw=randwrite,bs=4kB,norandommap,kb_base=1000",
            "rw=randrw,bs=4k,norandommap",
            "rw=randwrite,norandommap,bs=4k,size=50%",
            "rw=randwrite,norandommap,bs=4k,random_distribution=zipf:1.1",
            "rw=randwrite,norandommap,bs=4k,bssplit=4k/50:8k/50",
            "rw=randwrite,norandommap,bs=4k,offset=1g",
        ] {
            assert!(!uniform(line), "{line}");
        }
    }

    #[test]
    fn an_experiment_calls_a_workload_as_it_was_written() {
        for text in ["rw=randwrite,bs=4k,iodepth=32", "micro:4KiB-RD-100%-W-Y,iodepth=4", "model:msnfs,requests=10"] {
            let source = TextSource::open(text, ReplayOptions::default(), 1).expect("a workload");
            assert_eq!(crate::Experiment::new(&[], &source).provenance.workload, text);
        }
    }

    #[test]
    fn the_depths_of_several_jobs_are_told_apart() {
        let of = |options: &str| depths(&FioJob::parse_text(options, "t.fio").expect("jobs").depths());
        let global = "[global]\nrw=randread\nbs=4k\nsize=1m\n";
        assert_eq!(of(&format!("{global}[a]\niodepth=32\n")), "iodepth 32");
        assert_eq!(of(&format!("{global}[a]\niodepth=4\n[b]\niodepth=8\n[c]\n")), "3 jobs of iodepth 4, 8, 1");
        assert_eq!(of(&format!("{global}[a]\nnumjobs=4\niodepth=8\n")), "4 jobs of iodepth 8");
        assert_eq!(
            of(&format!("{global}[a]\nnumjobs=2\n[b]\niodepth=8\nioengine=psync\n[c]\niodepth=2\n")),
            "4 jobs of iodepth 1, 1, 1, 2"
        );
    }

    #[test]
    fn a_seed_is_found_whatever_stands_around_it() {
        assert!(sets_seed("randseed=7"));
        assert!(sets_seed("  randseed = 7"));
        assert!(!sets_seed("randrepeat=7"));
        assert!(!sets_seed("# nothing"));
    }
}

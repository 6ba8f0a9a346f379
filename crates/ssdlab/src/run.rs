//! A run: drives, a workload and a preconditioning, in the words of `ssdlab run`.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use ssdlab_base::Nanos;
use ssdlab_lab::output::{Staging, write_into};
use ssdlab_lab::variants::{Axis, merged};
use ssdlab_lab::{
    Breakdown, Control, DeviceUnderTest, Experiment, NoProgress, Progress, Provenance, ReplayOptions, RunError,
    RunIntoError, RunResult, SnapshotCache, TextPreconditioning, TextSource,
};
use ssdlab_workload::fio::Variables;
use ssdlab_workload::replay::Fit;

use crate::host::load_host;
use crate::variants::{duts, overrides, vary};
use crate::{Device, DeviceError, Error};

/// A workload on one drive or several, with the options of `ssdlab run` as methods.
///
/// Each drive is brought to the same state and then gets the same workload. Nothing is read or run before [`Run::run`],
/// and errors of all options are its errors, which name an option as the command does. The results depend on nothing
/// but what is said here: two runs of equal options give equal results, wall-clock times aside, on any machine.
///
/// ```
/// use ssdlab::{Device, Run};
///
/// let drive = Device::named("demo-slc")?;
/// let usual = drive.clone().set("capacity.over_provisioning=14%")?.label("14 %");
/// let twice = drive.set("capacity.over_provisioning=28%")?.label("28 %");
/// let result = Run::new(usual, "rw=randwrite,bs=4k,iodepth=32,io_size=100%,norandommap")
///     .device(twice)
///     .set("flash.blocks_per_plane=64") // on both: a small drive is soon in its steady state
///     .precondition("steady")
///     .run()?;
///
/// println!("{result}"); // the table of `ssdlab run`
/// let amplification = |drive: usize| Some(result.devices[drive].write_amplification.as_ref()?.total);
/// assert!(amplification(1) < amplification(0), "{result}");
/// assert!(result.checks_held());
/// # Ok::<(), ssdlab::Error>(())
/// ```
#[must_use = "nothing runs before `run`"]
pub struct Run<'a> {
    devices: Vec<Device>,
    set: Vec<String>,
    vary: Vec<String>,
    repeat: u32,
    workload: String,
    env: Vec<String>,
    precondition: String,
    replay: Option<String>,
    fit: Fit,
    limit: Option<u64>,
    host: Option<PathBuf>,
    precondition_below: bool,
    seed: u64,
    verify: bool,
    latency_breakdown: bool,
    slowest: Option<u32>,
    timeline_interval: Option<Nanos>,
    jobs: usize,
    memory_bytes: u64,
    snapshots: Option<SnapshotCache>,
    title: Option<String>,
    out: Option<PathBuf>,
    progress: &'a dyn Progress,
    stop: Option<&'a AtomicBool>,
}

impl<'a> Run<'a> {
    /// `workload` on `device`, fresh from the factory, with seed 1 and one drive at a time.
    ///
    /// The workload is the text that `--workload` takes: the path of a trace or of a fio job file, fio's options in one
    /// line, or a trace model such as `model:msnfs,requests=500k` (docs/workloads.md, docs/traces.md).
    pub fn new(device: Device, workload: &str) -> Run<'a> {
        Run {
            devices: vec![device],
            set: Vec::new(),
            vary: Vec::new(),
            repeat: 1,
            workload: workload.to_string(),
            env: Vec::new(),
            precondition: "none".to_string(),
            replay: None,
            fit: Fit::Exact,
            limit: None,
            host: None,
            precondition_below: false,
            seed: 1,
            verify: false,
            latency_breakdown: false,
            slowest: None,
            timeline_interval: None,
            jobs: 1,
            memory_bytes: u64::MAX,
            snapshots: None,
            title: None,
            out: None,
            progress: &NoProgress,
            stop: None,
        }
    }

    /// Adds a drive. One whose name is taken is numbered, unless it was given a label.
    pub fn device(mut self, device: Device) -> Run<'a> {
        self.devices.push(device);
        self
    }

    /// Sets a key on all drives, such as `gc.victim=fifo`; [`Device::set`] sets it on one.
    pub fn set(mut self, assignment: &str) -> Run<'a> {
        self.set.push(assignment.to_string());
        self
    }

    /// Runs a variant of each drive for every value of a key, such as `gc.victim=greedy,fifo`; several make all
    /// combinations. A variant is called after its values, which stand as `overrides` in the results.
    pub fn vary(mut self, axis: &str) -> Run<'a> {
        self.vary.push(axis.to_string());
        self
    }

    /// Runs everything so many times, with the run's seed and those after it. The results have every repetition of a
    /// drive as a drive of its own; the table has means and 95 % intervals.
    pub fn repeat(mut self, times: u32) -> Run<'a> {
        self.repeat = times;
        self
    }

    /// Gives a variable of job files its value: `NAME=VALUE` is what `${NAME}` stands for. Other variables are those of
    /// the environment.
    pub fn env(mut self, variable: &str) -> Run<'a> {
        self.env.push(variable.to_string());
        self
    }

    /// Brings the drives to a state first. None of it counts in the results, and it takes no virtual time.
    ///
    /// - `none`: fresh from the factory, as without this method.
    /// - `fill`: the whole drive is written once, in order.
    /// - `footprint`: only what the workload will read, write or trim is written.
    /// - `steady`: filled, and then the workload is repeated until write amplification is stable within 1 %.
    /// - `steady:WORKLOAD`: another workload is repeated instead.
    /// - `fill+WORKLOAD`: filled, and then another workload runs once.
    /// - a workload: it runs once on an empty drive.
    pub fn precondition(mut self, how: &str) -> Run<'a> {
        self.precondition = how.to_string();
        self
    }

    /// Says when a trace's requests are sent: `timed`, `timed*K`, or `closed:QD`. By default at the trace's times.
    pub fn replay(mut self, how: &str) -> Run<'a> {
        self.replay = Some(how.to_string());
        self
    }

    /// Packs the extents of a trace's footprint densely onto the drive.
    pub fn fit(mut self) -> Run<'a> {
        self.fit = Fit::Dense;
        self
    }

    /// Wraps offsets of a trace beyond the drive's end.
    pub fn wrap(mut self) -> Run<'a> {
        self.fit = Fit::Wrap;
        self
    }

    /// Stops after so many requests.
    pub fn limit(mut self, requests: u64) -> Run<'a> {
        self.limit = Some(requests);
        self
    }

    /// Puts host layers between the workload and the drives: the path of a host's description (docs/host.md).
    pub fn host(mut self, path: impl AsRef<Path>) -> Run<'a> {
        self.host = Some(path.as_ref().to_path_buf());
        self
    }

    /// Preconditions the drives one by one, below the host layers, instead of through them.
    pub fn precondition_below(mut self) -> Run<'a> {
        self.precondition_below = true;
        self
    }

    /// Sets the seed of everything random; 1 otherwise.
    pub fn seed(mut self, seed: u64) -> Run<'a> {
        self.seed = seed;
        self
    }

    /// Compares every read with what was written, and reads back the whole drive at the end.
    pub fn verify(mut self) -> Run<'a> {
        self.verify = true;
        self
    }

    /// Says what requests waited for, by cause.
    pub fn latency_breakdown(mut self) -> Run<'a> {
        self.latency_breakdown = true;
        self
    }

    /// Lists so many of the slowest requests, with what they waited for.
    pub fn slowest(mut self, requests: u32) -> Run<'a> {
        self.slowest = Some(requests);
        self
    }

    /// Sets the interval of the timeline; by default a run of any length has some hundred.
    pub fn timeline_interval(mut self, interval: Nanos) -> Run<'a> {
        self.timeline_interval = Some(interval);
        self
    }

    /// Runs so many drives at a time, which changes no result; 1 otherwise.
    pub fn jobs(mut self, drives: usize) -> Run<'a> {
        self.jobs = drives;
        self
    }

    /// Runs fewer drives at a time where they would take more memory together, in bytes; one always runs.
    pub fn memory(mut self, bytes: u64) -> Run<'a> {
        self.memory_bytes = bytes;
        self
    }

    /// Keeps preconditioned drives for later runs, and takes those that are there. [`SnapshotCache::of_user`] is the
    /// command's cache. By default none are kept.
    pub fn snapshots(mut self, cache: SnapshotCache) -> Run<'a> {
        self.snapshots = Some(cache);
        self
    }

    /// Gives the run a heading.
    pub fn title(mut self, title: &str) -> Run<'a> {
        self.title = Some(title.to_string());
        self
    }

    /// Writes the files of `ssdlab run --out` into a folder: `result.json`, `summary.csv`, `latency.csv`,
    /// `timeline.parquet`, `report.html` and others.
    pub fn out(mut self, folder: impl AsRef<Path>) -> Run<'a> {
        self.out = Some(folder.as_ref().to_path_buf());
        self
    }

    /// Shows how far the run is.
    pub fn progress(mut self, progress: &'a dyn Progress) -> Run<'a> {
        self.progress = progress;
        self
    }

    /// Ends the run soon after `stop` is set, by a signal handler or another thread. The result has what ran, and is
    /// not `complete`.
    pub fn stop(mut self, stop: &'a AtomicBool) -> Run<'a> {
        self.stop = Some(stop);
        self
    }

    /// Runs everything; what each drive made of the workload stands in the order of the drives.
    ///
    /// # Errors
    /// An option that is refused: a device, the workload, the preconditioning, the host, or what does not go together.
    /// With [`Run::out`], files that cannot be written; the folder is tried before the run.
    pub fn run(&self) -> Result<RunResult, Error> {
        let with_set = |device: &Device| self.set.iter().try_fold(device.clone(), |device, text| device.set(text));
        let devices = self.devices.iter().map(with_set).collect::<Result<Vec<_>, _>>()?;
        let axes = self.vary.iter().map(|text| text.parse()).collect::<Result<Vec<Axis>, _>>()?;
        let variants = vary(devices, &axes)?;
        let drives = duts(&variants, |drives| self.tell_apart(drives))?;
        let discipline = self.replay.as_ref().map(|text| text.parse()).transpose().map_err(Error::Replay)?;
        let replay = ReplayOptions { discipline, fit: self.fit, limit: self.limit };
        let add = |variables: Variables, text: &String| variables.with(text);
        let variables = self.env.iter().try_fold(Variables::of_environment(), add).map_err(Error::Env)?;
        let host = self.host.as_deref().map(load_host).transpose()?;
        let provenance = Provenance {
            title: self.title.clone(),
            workload: self.workload.clone(),
            precondition: self.precondition.clone(),
            host: self.host.as_ref().map(|file| file.display().to_string()),
            overrides: overrides(&drives, &variants),
            ..Provenance::default()
        };
        // What is wrong with a drive is told with its place in the description.
        let placed = |error: RunError| match &error {
            RunError::Drive { label, source } => match drives.iter().position(|drive| drive.label == *label) {
                Some(index) => DeviceError::from(variants[index].device.description().place(source)).into(),
                None => Error::Run(error),
            },
            _ => Error::Run(error),
        };
        let once = |seed: u64, folder: Option<&Path>| -> Result<RunResult, Error> {
            let workload = TextSource::open_with(&self.workload, replay, seed, &variables)?;
            let precondition = TextPreconditioning::open(&self.precondition, replay, seed, &variables)?;
            let experiment = Experiment {
                host: host.as_ref(),
                precondition_below: self.precondition_below,
                preconditioning: precondition.preconditioning(),
                seed,
                verify: self.verify,
                snapshots: self.snapshots.as_ref(),
                breakdown: (self.latency_breakdown || self.slowest.is_some())
                    .then(|| Breakdown { slowest: self.slowest.unwrap_or(0) }),
                jobs: self.jobs,
                memory_bytes: self.memory_bytes,
                timeline_interval: self.timeline_interval,
                provenance: Provenance { replay: workload.replay(), ..provenance.clone() },
                ..Experiment::new(&drives, &workload)
            };
            let never = AtomicBool::new(false);
            let control = Control::new(self.stop.unwrap_or(&never), self.progress);
            let Some(folder) = folder else {
                return ssdlab_lab::run(&experiment, None, &control).map_err(placed);
            };
            let outcome = ssdlab_lab::run_into(&experiment, folder, None, &control).map_err(|error| match error {
                RunIntoError::Run(error) => placed(error),
                RunIntoError::Output(error) => Error::Output(error),
            })?;
            outcome.written?;
            Ok(outcome.result)
        };
        if self.repeat <= 1 {
            return once(self.seed, self.out.as_deref());
        }
        if let Some(folder) = &self.out {
            Staging::of_run(folder)?;
        }
        let mut repetitions = Vec::new();
        for repetition in 0..self.repeat {
            let result = once(self.seed.wrapping_add(repetition.into()), None)?;
            let is_complete = result.complete;
            repetitions.push(result);
            if !is_complete {
                break;
            }
        }
        let result = merged(repetitions);
        if let (Some(folder), false) = (&self.out, result.devices.is_empty()) {
            write_into(folder, &result)?;
        }
        Ok(result)
    }

    /// Gives drives their labels, and numbers those without one whose name is taken.
    fn tell_apart(&self, drives: &mut [DeviceUnderTest]) {
        for (drive, device) in drives.iter_mut().zip(&self.devices) {
            if let Some(label) = device.given_label() {
                drive.label = label.to_string();
            }
        }
        for index in (0..drives.len()).filter(|index| self.devices[*index].given_label().is_none()) {
            let is_taken = |(other, drive): (usize, &DeviceUnderTest)| {
                let is_fixed = other < index || self.devices[other].given_label().is_some();
                is_fixed && other != index && drive.label == drives[index].label
            };
            if drives.iter().enumerate().any(is_taken) {
                drives[index].label = format!("{} ({})", drives[index].label, index + 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: &str = "rw=write,bs=4k,number_ios=64";

    fn small() -> Device {
        let device = Device::named("demo-slc").and_then(|device| device.set("flash.blocks_per_plane=144"));
        device.and_then(|device| device.set("capacity.user=1g")).expect("a drive")
    }

    fn refused(run: &Run<'_>) -> String {
        run.run().expect_err("it is refused").to_string()
    }

    #[test]
    fn drives_of_one_name_are_numbered_and_labels_stay() {
        let run = Run::new(small(), JOB).device(small()).device(small().label("mine")).device(small());
        let labels = |run: Run<'_>| -> Vec<String> {
            run.run().expect("it runs").devices.into_iter().map(|device| device.name).collect()
        };
        assert_eq!(labels(run), ["demo-slc", "demo-slc (2)", "mine", "demo-slc (4)"]);
        let taken = Run::new(small(), JOB).device(small().label("demo-slc"));
        assert_eq!(labels(taken), ["demo-slc (1)", "demo-slc"]);
        let same = Run::new(small().label("a"), JOB).device(small().label("a"));
        assert_eq!(refused(&same), "two drives are called 'a': their results could not be told apart");
    }

    #[test]
    fn every_variant_runs_with_every_seed() {
        let run =
            Run::new(small(), JOB).vary("gc.victim=greedy,fifo").vary("interface.queue_depth=8,16").repeat(2).seed(3);
        let result = run.run().expect("it runs");
        assert_eq!(result.devices.len(), 8);
        let last = &result.devices[7];
        assert_eq!(last.name, "demo-slc victim=fifo queue_depth=16 #2");
        assert_eq!(last.overrides.get("gc.victim").map(String::as_str), Some("fifo"));
        assert_eq!(last.repetition.as_ref().map(|repetition| repetition.seed), Some(4));
        let refused = |run: Run<'_>| run.run().expect_err("it is refused").to_string();
        assert!(refused(Run::new(small(), JOB).vary("gc.victim")).starts_with("--vary: found 'gc.victim', expected "));
        let unknown = refused(Run::new(small(), JOB).vary("gc.victim=lru"));
        assert!(unknown.starts_with("--vary 'gc.victim=lru': gc.victim: "), "{unknown}");
    }

    #[test]
    fn what_was_set_and_asked_for_stands_in_the_results() {
        let run = Run::new(small(), JOB).device(small().set("gc.victim=fifo").expect("a key"));
        let run = run.set("interface.queue_depth=8").seed(7).title("Two drives").precondition("fill").limit(10).jobs(2);
        let result = run.run().expect("it runs");
        assert_eq!(
            (result.seed, result.title.as_deref(), result.precondition.as_str()),
            (7, Some("Two drives"), "fill")
        );
        assert_eq!((result.workload.as_str(), result.replay.as_str()), (JOB, "fio, iodepth 1"));
        assert_eq!(result.devices[0].overrides.get("gc.victim"), None);
        assert_eq!(result.devices[1].overrides.get("gc.victim").map(String::as_str), Some("fifo"));
        let depth = |device: usize| result.devices[device].overrides.get("interface.queue_depth").cloned();
        assert_eq!((depth(0), depth(1)), (Some("8".to_string()), Some("8".to_string())));
        assert_eq!(result.devices[1].requests.write, 10);
        assert_eq!(result.devices[1].precondition.written_bytes, 1 << 30);
        assert!(result.checks_held());
        assert_eq!(result.to_string(), ssdlab_lab::table::render(&result));
    }

    #[test]
    fn options_that_are_wrong_say_so() {
        let run = || Run::new(small(), JOB);
        let hint = refused(&run().precondition("footprnt"));
        assert!(hint.starts_with("--precondition: found 'footprnt', expected none, fill, "), "{hint}");
        assert!(hint.ends_with("; did you mean 'footprint'?"), "{hint}");
        assert!(refused(&run().replay("opened")).starts_with("--replay: "), "{}", refused(&run().replay("opened")));
        assert!(refused(&run().env("A")).starts_with("--env: found 'A', "), "{}", refused(&run().env("A")));
        assert!(refused(&run().set("gc.victim=lru")).starts_with("--set 'gc.victim=lru': gc.victim: "));
        assert!(refused(&run().host("no/such.toml")).starts_with("--host no/such.toml: "));
        let small = refused(&run().set("flash.blocks_per_plane=4"));
        assert!(small.contains("flash.blocks_per_plane=4") || small.contains("capacity"), "{small}");
    }

    #[test]
    fn a_stopped_run_is_not_complete() {
        let stop = AtomicBool::new(true);
        let result = Run::new(small(), JOB).precondition("fill").stop(&stop).run().expect("it ends");
        assert!(!result.complete);
        assert!(result.devices.is_empty());
    }

    #[test]
    fn files_are_written_where_they_are_asked_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().join("out");
        Run::new(small(), JOB).out(&out).run().expect("it runs");
        for file in ["result.json", "summary.csv", "report.html"] {
            assert!(out.join(file).is_file(), "{file}");
        }
    }
}

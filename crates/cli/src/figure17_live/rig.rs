//! A served drive with ext4 on it, and a personality that runs there turn by turn.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use ssdlab_base::Nanos;
use ssdlab_device::DriveConfig;
use ssdlab_host::Host;
use ssdlab_live::image;
use ssdlab_live::mount::{self, FileSystem, Mounted, Options};
use ssdlab_live::{Engine, Pace, Target};
use ssdlab_workload::files::{
    Directory, Engine as Threads, FileSets, FileSystem as _, Limits, Measures, Personality, prepare, run,
};

use crate::damage::DamageReport;
use crate::failure::Failure;
use crate::memory::allowed;

/// As fast as a clock goes: files are made before anything is measured.
const PREPARING: f64 = 1e-3;
/// Threads that make files.
const PREPARE_THREADS: usize = 8;
/// Seconds between two commits of ext4's journal, in the drive's time: its own default.
const COMMIT_SECONDS: f64 = 5.0;

/// How long a turn lasts.
#[derive(Clone, Copy)]
pub(super) enum Turn {
    /// So long, where every operation reaches the drive at once.
    Seconds(f64),
    /// So many operations and then a sync: what the page cache holds back is on the drive when the turn ends.
    Operations(u64),
}

/// A folder that is removed with everything in it.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A drive that is up. What is dropped first is declared first: the mount, the drive, its files.
pub(super) struct Rig {
    mounted: Mounted,
    engine: Arc<Engine>,
    folder: Scratch,
    directory: Directory,
    files: Option<FileSets>,
    turns: u64,
}

impl Rig {
    /// Makes a drive and mounts a new ext4 that will be slowed down by `slower`.
    pub(super) fn up(config: &DriveConfig, folder: &Path, slower: f64) -> Result<Rig, Failure> {
        let unmade = |path: &Path, error: io::Error| Failure::input(format!("{}: {error}", path.display()));
        let mountpoint = folder.join("mnt");
        let scratch = Scratch(folder.to_path_buf());
        fs::create_dir_all(&mountpoint).map_err(|error| unmade(&mountpoint, error))?;
        // What makes room in memory by writing to the drive must not wait for the drive; the personality's threads are
        // not among those, so the server has a thread of its own to begin on.
        let up = std::thread::scope(|scope| scope.spawn(|| serve(config, folder, slower)).join());
        let (engine, mounted) = up.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let report = mounted.report();
        if report.file_system.is_none() {
            return Err(cannot(&report.notes.join("; ")));
        }
        let root = mountpoint.join("files");
        fs::create_dir(&root).map_err(|error| unmade(&root, error))?;
        let directory = Directory::new(&root);
        Ok(Rig { mounted, engine, folder: scratch, directory, files: None, turns: 0 })
    }

    /// Makes the personality's files.
    pub(super) fn prepare(&mut self, personality: &Personality, seed: u64, stop: &AtomicBool) -> Result<(), Failure> {
        let files = FileSets::new(personality, seed);
        prepare(&self.directory, &files, &personality.parameters, PREPARE_THREADS, stop, &())
            .map_err(|error| Failure::work(format!("{}: {error}", self.folder.0.display())))?;
        self.files = Some(files);
        Ok(())
    }

    /// From here on everything on the drive takes `slower` times as long as in the model.
    pub(super) fn slow_down(&self, slower: f64) {
        self.engine.set_slower(slower);
    }

    /// Runs the personality for one turn.
    pub(super) fn turn(
        &mut self,
        personality: &Personality,
        turn: Turn,
        stop: &AtomicBool,
    ) -> Result<(Measures, f64), Failure> {
        let limits = match turn {
            Turn::Seconds(seconds) => Limits { until: Some(Nanos((seconds * 1e9) as u64)), ..Limits::default() },
            Turn::Operations(count) => Limits { operations: Some(count), ..Limits::default() },
        };
        let files = self.files.take().unwrap_or_else(|| FileSets::new(personality, 0));
        self.turns += 1;
        let mut threads = Threads::new(personality, files, self.turns, &limits);
        let began = Instant::now();
        let outcome = run(&self.directory, &mut threads, &personality.parameters, &limits, stop, &());
        self.files = Some(threads.files());
        match outcome.error {
            _ if stop.load(Ordering::Relaxed) => Err(Failure::work("interrupted: nothing was written")),
            Some(error) => Err(Failure::work(error)),
            None => {
                if matches!(turn, Turn::Operations(_)) {
                    self.directory.sync().map_err(Failure::work)?;
                }
                Ok((outcome.measures, began.elapsed().as_secs_f64()))
            }
        }
    }

    /// How much later than the model says answers left, on average; nanoseconds of this machine's time.
    pub(super) fn lateness_ns(&self) -> f64 {
        self.engine.figures(false).lateness_in_all.mean
    }

    /// Takes the mount down and removes the drive.
    pub(super) fn down(mut self) -> Result<(), Failure> {
        self.engine.set_slower(PREPARING);
        self.mounted.take_down().map_err(Failure::work)?;
        let _ = self.engine.stop();
        DamageReport::default().look(&self.engine, true);
        match self.engine.figures(false).broken {
            Some(broken) => Err(Failure::work(format!("{}: {broken}", self.folder.0.display()))),
            None => Ok(()),
        }
    }
}

/// This machine cannot.
pub(super) fn cannot(why: &str) -> Failure {
    Failure::input(format!("a served drive cannot be mounted here: {why}"))
        .hint("docs/serving-mount.md says what it takes; `ssdlab reproduce waflash/figure17` needs none of it")
}

/// Opens the image and mounts it.
fn serve(config: &DriveConfig, folder: &Path, slower: f64) -> Result<(Arc<Engine>, Mounted), Failure> {
    let _ = mount::protect_process();
    allowed(None)?.check_served(std::slice::from_ref(config), &Host::bare())?;
    let image = folder.join("image");
    let opened = image::open(&image, config, 1).map_err(Failure::input)?;
    let engine = Arc::new(Engine::new(opened.into_device(), Pace::Model { slower: PREPARING }).map_err(Failure::work)?);
    let commit = (COMMIT_SECONDS * slower).ceil();
    let options = Options {
        file_system: Some(FileSystem::Ext4),
        mount_options: Some(format!("commit={commit}")),
        image: Some(image),
        ..Options::new(folder.join("mnt"))
    };
    let mounted = mount::mount(&options, Arc::clone(&engine) as Arc<dyn Target>).map_err(Failure::input)?;
    Ok((engine, mounted))
}

/// What turns came to.
#[derive(Default)]
pub(super) struct Tally {
    operations: u64,
    seconds: f64,
    latency_sum_ns: f64,
    /// Operations a second of each turn.
    rates: Vec<f64>,
}

impl Tally {
    pub(super) fn add(&mut self, (measures, seconds): (Measures, f64)) {
        let operations = measures.operations();
        self.operations += operations;
        self.seconds += seconds;
        let sums = measures.kinds().filter_map(|(_, kind)| Some(kind.latency()?.mean * kind.count() as f64));
        self.latency_sum_ns += sums.sum::<f64>();
        if seconds > 0.0 {
            self.rates.push(operations as f64 / seconds);
        }
    }

    /// Operations a second of this machine's time.
    pub(super) fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.operations as f64 / self.seconds } else { 0.0 }
    }

    /// Mean latency of an operation, microseconds of this machine's time.
    pub(super) fn mean_us(&self) -> f64 {
        self.latency_sum_ns / self.operations.max(1) as f64 / 1e3
    }

    /// By how much the fastest turn was faster than the slowest, per cent.
    pub(super) fn spread_percent(&self) -> f64 {
        let least = self.rates.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.rates.iter().copied().fold(0.0, f64::max);
        if least > 0.0 && least.is_finite() { 100.0 * (most / least - 1.0) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ssdlab_workload::files::{Done, OpKind};

    #[test]
    fn a_tally_weighs_operations_and_not_kinds_or_turns() {
        let mut tally = Tally::default();
        for (count, latency, seconds) in [(3, 1_000, 1.0), (1, 9_000, 3.0)] {
            let mut measures = Measures::new();
            for _ in 0..count {
                let kind = if count == 1 { OpKind::Fsync } else { OpKind::Stat };
                measures.record(&Done { kind, latency: Nanos(latency), bytes_read: 0, bytes_written: 0 });
            }
            tally.add((measures, seconds));
        }
        assert_eq!(tally.rate(), 1.0);
        assert_eq!(tally.mean_us(), 3.0);
        assert!((tally.spread_percent() - 800.0).abs() < 1e-9);
        assert_eq!((Tally::default().rate(), Tally::default().spread_percent()), (0.0, 0.0));
    }
}

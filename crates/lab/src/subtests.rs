//! A run in sub-tests: the host writes a set volume, everything comes to rest, and after a long quiet the next begins.
//!
//! ```text
//!   initial data | quiet | volume 1 | quiet | volume 2 | quiet | ...
//! ```
//!
//! The workload's own clock stands still in the quiet. A workload that ends before the last volume is written begins
//! anew, with other random numbers where it has any.
//!
//! A level may stand for what comes after it: with `:level` behind the volumes, the run ends after three sub-tests in a row
//! whose write amplification (pages programmed for each byte written) lies within 1 %, if those that are left are as large.
//! The last one's `stands_for` then says for how many more it stands; means over all sub-tests weigh it so.

use ssdlab_base::{Nanos, Op, QuantityError, SECTOR_BYTES, parse_size};
use ssdlab_device::DriveConfig;
use ssdlab_workload::{Next, Workload, WorkloadError};

use crate::result::{DeviceResult, Subtest, Throughput};
use crate::source::WorkloadSource;
use crate::standstill;

/// From the last completion of a sub-test to the first request of the next: longer than the five minutes of silence
/// after which a recorder takes a test for ended, by time enough for collection that was in flight.
pub const PAUSE: Nanos = Nanos::from_ms(330_000);

/// The passes of a workload that begins anew: none of those that age a drive.
const REPEATS: u64 = u64::MAX / 2;

/// Sub-tests at most: each has a line in the results.
const COUNT_MAX: usize = 10_000;

/// Sub-tests in a row that make a level.
const LEVEL_OF: usize = 3;

/// How far the least and the most of them may be apart, as a share of the most.
const LEVEL_WITHIN: f64 = 0.01;

/// Bytes that the host writes in each sub-test, and whether a level stands for those after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volumes {
    /// One for each sub-test.
    pub bytes: Vec<u64>,
    /// The run ends when a level is reached.
    pub until_level: bool,
}

/// What the sub-tests are.
#[derive(Clone)]
pub struct Subtests<'a> {
    /// How much is written in each.
    pub volumes: Volumes,
    /// Sent once, whole, before them, as a sub-test of its own.
    pub initial: Option<&'a dyn WorkloadSource>,
}

/// Why a text is no list of volumes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found '{part}'{why}, expected a list such as 2g, or 15x5g for fifteen of 5 GiB")]
pub struct VolumesError {
    /// The entry of the list.
    pub part: String,
    /// What was found in it.
    pub why: NoVolume,
}

/// What is wrong with an entry of a list of volumes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoVolume {
    /// Its count is no whole number.
    #[error("")]
    Count,
    /// Its size cannot be read.
    #[error(": {0}")]
    Size(QuantityError),
    /// It asks for no sub-test.
    #[error(", 0 sub-tests")]
    NoSubtests,
    /// It asks for sub-tests that write nothing.
    #[error(", 0 bytes")]
    NoBytes,
    /// It asks for less than a sector in each sub-test.
    #[error(", {bytes} bytes, less than a sector of {SECTOR_BYTES} (was a unit forgotten: k, m, g?)")]
    LessThanASector {
        /// Bytes of each sub-test.
        bytes: u64,
    },
    /// With it there are too many sub-tests.
    #[error(", more than {COUNT_MAX} sub-tests")]
    TooMany,
}

/// Reads a list of volumes: `5g`, `15x5g`, `37g,15x5g`, `15x5g:level`.
///
/// # Errors
/// What is no volume, and why.
///
/// ```
/// use ssdlab_lab::subtests::volumes;
///
/// assert_eq!(volumes("1k,2x4k").map(|volumes| volumes.bytes), Ok(vec![1024, 4096, 4096]));
/// assert!(volumes("15x5g:level").is_ok_and(|volumes| volumes.until_level));
/// assert!(volumes("0x5g").is_err_and(|error| error.to_string().contains("0 sub-tests, expected")));
/// assert!(volumes("3x0").is_err_and(|error| error.to_string().contains("0 bytes, expected")));
/// assert!(volumes("3x16").is_err(), "16 bytes: not even a sector");
/// assert!(volumes("3x5g:flat").is_err_and(|error| error.to_string().contains("found '3x5g:flat'")));
/// ```
pub fn volumes(text: &str) -> Result<Volumes, VolumesError> {
    let refused = |part: &str, why| VolumesError { part: part.to_string(), why };
    let (text, until_level) = text.strip_suffix(":level").map_or((text, false), |list| (list, true));
    let mut volumes = Vec::new();
    for part in text.split(',').map(str::trim) {
        let (count, size) = part.split_once('x').unwrap_or(("1", part));
        let count: usize = count.trim().parse().map_err(|_| refused(part, NoVolume::Count))?;
        let size = parse_size(size).map_err(|error| refused(part, NoVolume::Size(error)))?;
        if count == 0 {
            return Err(refused(part, NoVolume::NoSubtests));
        }
        if size == 0 {
            return Err(refused(part, NoVolume::NoBytes));
        }
        if size < SECTOR_BYTES {
            return Err(refused(part, NoVolume::LessThanASector { bytes: size }));
        }
        if count > COUNT_MAX - volumes.len() {
            return Err(refused(part, NoVolume::TooMany));
        }
        volumes.extend(std::iter::repeat_n(size, count));
    }
    Ok(Volumes { bytes: volumes, until_level })
}

/// The quiet between a run's sub-tests, in nanoseconds of its virtual time; none in a run without them or without time.
///
/// What follows the last whole sub-test of an interrupted run begins with quiet, too.
pub fn quiet_ns(device: &DeviceResult) -> u64 {
    if !device.timed {
        return 0;
    }
    let ends = device.subtests.iter().skip(1).map(|test| test.begun_ns);
    let after = device.subtests.last().map(|last| device.virtual_time_ns.min(last.ended_ns.saturating_add(PAUSE.0)));
    device.subtests.iter().zip(ends.chain(after)).map(|(test, until)| until.saturating_sub(test.ended_ns)).sum()
}

/// Rates over the time in which the host was busy, without the quiet between sub-tests.
pub fn throughput(device: &DeviceResult) -> Throughput {
    let more = without_quiet(device);
    let rates = &device.throughput;
    Throughput {
        iops: rates.iops * more,
        read_iops: rates.read_iops * more,
        write_iops: rates.write_iops * more,
        read_bytes_per_s: rates.read_bytes_per_s * more,
        write_bytes_per_s: rates.write_bytes_per_s * more,
    }
}

/// Requests in the drive, on average over the same time.
pub fn outstanding_mean(device: &DeviceResult) -> f64 {
    device.outstanding.mean * without_quiet(device)
}

/// By what a mean over the virtual time is too small for one over the busy time; sub-tests that took no time have no rate.
fn without_quiet(device: &DeviceResult) -> f64 {
    match (quiet_ns(device), device.virtual_time_ns) {
        (0, _) => 1.0,
        (quiet, all) if quiet >= all => 0.0,
        (quiet, all) => all as f64 / (all - quiet) as f64,
    }
}

/// Whether the last sub-tests are at one level.
fn is_level(amplifications: &[f64]) -> bool {
    let Some(last) = amplifications.len().checked_sub(LEVEL_OF).map(|from| &amplifications[from..]) else {
        return false;
    };
    let most = last.iter().copied().fold(0.0, f64::max);
    let least = last.iter().copied().fold(f64::INFINITY, f64::min);
    most - least <= LEVEL_WITHIN * most
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Active,
    Resting,
    QuietUntil(Nanos),
    /// The sub-test is over, and what it made the chips program says whether another follows.
    Judging,
    Done,
}

/// A workload, divided.
pub(crate) struct Divided<'a> {
    source: &'a dyn WorkloadSource,
    drive: &'a DriveConfig,
    inner: Box<dyn Workload>,
    /// Whether the inner workload is the initial data.
    initial: bool,
    volumes: Vec<u64>,
    until_level: bool,
    /// Pages programmed up to the end of the last sub-test, and for each byte written in those that have ended.
    programmed: u64,
    amplifications: Vec<f64>,
    /// The volume that is being written.
    index: usize,
    state: State,
    repeats: u64,
    /// Bytes written since the inner workload was opened.
    of_pass: u64,
    /// Drive's time minus the inner workload's.
    ahead: u64,
    outstanding: u64,
    last: Nanos,
    requests: u64,
    /// Requests since the last write.
    since_write: u64,
    now: Subtest,
    done: Vec<Subtest>,
}

impl<'a> Divided<'a> {
    /// `source`, whose first pass is already open.
    pub(crate) fn new(
        plan: &Subtests<'a>,
        source: &'a dyn WorkloadSource,
        opened: Box<dyn Workload>,
        drive: &'a DriveConfig,
    ) -> Result<Divided<'a>, WorkloadError> {
        let inner = match plan.initial {
            Some(initial) => initial.open(drive, 0)?,
            None => opened,
        };
        let mut divided = Divided {
            source,
            drive,
            inner,
            initial: plan.initial.is_some(),
            volumes: plan.volumes.bytes.clone(),
            until_level: plan.volumes.until_level,
            programmed: 0,
            amplifications: Vec::new(),
            index: 0,
            state: State::Active,
            repeats: 0,
            of_pass: 0,
            ahead: 0,
            outstanding: 0,
            last: Nanos::ZERO,
            requests: 0,
            since_write: 0,
            now: Subtest::default(),
            done: Vec::new(),
        };
        divided.begin(Nanos::ZERO);
        Ok(divided)
    }

    /// The sub-tests that have ended.
    pub(crate) fn into_subtests(self) -> Vec<Subtest> {
        self.done
    }

    fn begin(&mut self, now: Nanos) {
        let name = if self.initial { "initial".to_string() } else { (self.index + 1).to_string() };
        self.now = Subtest { name, begun_ns: now.0, ended_ns: now.0, ..Subtest::default() };
        self.last = now;
        self.state = State::Active;
    }

    /// All has completed: the sub-test is over.
    fn end(&mut self) -> Result<(), WorkloadError> {
        let mut ended = std::mem::take(&mut self.now);
        ended.ended_ns = self.last.0;
        let seconds = self.last.since(Nanos(ended.begun_ns)).0 as f64 / 1e9;
        ended.write_bytes_per_s = if seconds > 0.0 { ended.written_bytes as f64 / seconds } else { 0.0 };
        self.done.push(ended);
        if self.initial {
            self.initial = false;
            self.inner = self.source.open(self.drive, 0)?;
            self.ahead = (self.last + PAUSE).0;
            self.of_pass = 0;
        } else {
            self.index += 1;
            self.ahead = (Nanos(self.ahead) + PAUSE).0;
        }
        self.state = match self.index == self.volumes.len() {
            true => State::Done,
            false if self.until_level => State::Judging,
            false => State::QuietUntil(self.last + PAUSE),
        };
        Ok(())
    }

    /// After the workload's end: whether more sub-tests follow, of which it is to be asked again. `programmed` are the pages
    /// that the chips have programmed since the run began.
    pub(crate) fn goes_on(&mut self, programmed: u64) -> bool {
        if self.state != State::Judging {
            return false;
        }
        let pages = programmed - std::mem::replace(&mut self.programmed, programmed);
        let of_initial = self.done.last().is_some_and(|test| test.name == "initial");
        if let Some(test) = self.done.last().filter(|_| !of_initial) {
            self.amplifications.push(pages as f64 / test.written_bytes as f64);
        }
        let left = &self.volumes[self.index..];
        let alike = self.index > 0 && left.iter().all(|volume| *volume == self.volumes[self.index - 1]);
        if alike && is_level(&self.amplifications) {
            let stands_for = left.len() as u64;
            self.done.iter_mut().last().into_iter().for_each(|test| test.stands_for = stands_for);
            self.state = State::Done;
            return false;
        }
        self.state = State::QuietUntil(Nanos(self.last.0.saturating_add(PAUSE.0)));
        true
    }

    /// The workload ended before its time: it begins anew.
    fn repeat(&mut self, now: Nanos) -> Result<(), WorkloadError> {
        if self.of_pass == 0 {
            let sentence = "--subtests: the workload ended without a write, so no volume of a sub-test is ever written";
            return Err(WorkloadError(sentence.to_string()));
        }
        self.inner = self.source.open(self.drive, REPEATS + self.repeats)?;
        self.repeats += 1;
        self.of_pass = 0;
        self.ahead = now.0;
        Ok(())
    }
}

impl Workload for Divided<'_> {
    fn next(&mut self, now: Nanos) -> Result<Next, WorkloadError> {
        loop {
            match self.state {
                State::Done | State::Judging => return Ok(Next::Done),
                State::QuietUntil(until) if now < until => return Ok(Next::WaitUntil(until)),
                State::QuietUntil(_) => self.begin(now),
                State::Resting if self.outstanding > 0 => return Ok(Next::WaitForCompletion),
                State::Resting => self.end()?,
                State::Active if !self.initial && self.now.written_bytes >= self.volumes[self.index] => {
                    self.state = State::Resting;
                }
                State::Active => match self.inner.next(Nanos(now.0.saturating_sub(self.ahead)))? {
                    Next::Request(mut request) => {
                        request.at += Nanos(self.ahead);
                        self.outstanding += 1;
                        self.requests += 1;
                        self.since_write += 1;
                        self.now.requests += 1;
                        match request.op {
                            Op::Write => {
                                self.since_write = 0;
                                self.now.written_bytes += request.bytes();
                                self.of_pass += request.bytes();
                            }
                            Op::Read => self.now.read_bytes += request.bytes(),
                            Op::Trim | Op::WriteZeroes | Op::Flush => {}
                        }
                        return Ok(Next::Request(request));
                    }
                    // A time that does not fit is refused where the run waits for it.
                    Next::WaitUntil(until) => {
                        return Ok(Next::WaitUntil(Nanos(until.0.saturating_add(self.ahead))));
                    }
                    Next::WaitForCompletion => return Ok(Next::WaitForCompletion),
                    Next::Done if self.initial => self.state = State::Resting,
                    // Tags of two passes in the drive at once could not be told apart.
                    Next::Done if self.outstanding > 0 => return Ok(Next::WaitForCompletion),
                    Next::Done => self.repeat(now)?,
                },
            }
        }
    }

    fn lookahead(&mut self) -> &[ssdlab_base::Request] {
        match self.state {
            State::Active => self.inner.lookahead(),
            _ => &[],
        }
    }

    fn words(&self) -> &[u64] {
        self.inner.words()
    }

    fn notes(&self) -> Vec<String> {
        self.inner.notes()
    }

    fn command_set(&self) -> Option<&'static str> {
        self.inner.command_set()
    }

    fn completed(&mut self, now: Nanos, tag: u32) {
        self.outstanding = self.outstanding.saturating_sub(1);
        self.last = now;
        self.inner.completed(Nanos(now.0.saturating_sub(self.ahead)), tag);
    }

    fn progress(&self) -> (u64, Option<u64>) {
        (self.requests, None)
    }

    fn ends_by_time(&self) -> bool {
        // Volumes end a sub-test, too, as long as anything is written; initial data is sent to its own end.
        (self.initial || self.since_write >= standstill::REQUESTS_MAX) && self.inner.ends_by_time()
    }

    fn rewind(&mut self) -> Result<(), WorkloadError> {
        Err(WorkloadError("a workload in sub-tests is opened anew instead".to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::is_level;

    #[test]
    fn three_in_a_row_within_a_percent_are_a_level() {
        assert!(!is_level(&[7.0, 7.0]));
        assert!(is_level(&[7.0, 7.0, 7.0]));
        assert!(is_level(&[9.0, 7.0, 7.05, 7.07]));
        assert!(!is_level(&[7.0, 7.0, 7.0, 7.1]), "1.4 % apart");
        assert!(!is_level(&[7.0, 6.2, 5.3]));
        assert!(is_level(&[0.0, 0.0, 0.0]), "everything stays in the buffer");
    }
}

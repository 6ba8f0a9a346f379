//! Block requests of a file system with its phases: counted, and sent to a drive.
//!
//! A stream comes from a recording of the original or from one of ssdlab's file systems. Everything here treats both alike.

use std::ops::Range;

use ssdlab_base::{Nanos, Op, Request, SECTOR_BYTES};
use ssdlab_device::{Data, Drive, DriveConfig, Options as DriveOptions};
use ssdlab_flash::{Contents, OpKind};
use ssdlab_lab::source::{WorkloadSource as _, walk};

use crate::frame::Input;

/// Requests in flight of a replay.
const IN_FLIGHT: u64 = 32;

/// What a program did from one request to another.
#[derive(Clone, Debug)]
pub(super) struct Phase {
    pub(super) name: String,
    /// Bytes that the program read or wrote.
    pub(super) bytes: u64,
    /// Its requests.
    pub(super) requests: Range<usize>,
}

/// Requests in their order, with the phases of the program behind them.
#[derive(Clone, Debug, Default)]
pub(super) struct Stream {
    pub(super) requests: Vec<Request>,
    pub(super) phases: Vec<Phase>,
}

/// Requests of a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Reads and their bytes.
    pub(super) reads: u64,
    pub(super) read_bytes: u64,
    /// Writes of up to 4 KB, to 16 KB, to 128 KB, and longer ones.
    pub(super) writes: [u64; 4],
    pub(super) write_bytes: u64,
    pub(super) trims: u64,
    pub(super) trim_bytes: u64,
    pub(super) flushes: u64,
}

/// The largest writes of the first three classes, in bytes.
const CLASSES: [u64; 3] = [4 << 10, 16 << 10, 128 << 10];

impl Counts {
    fn add(&mut self, request: &Request) {
        let bytes = request.bytes();
        match request.op {
            Op::Read => {
                self.reads += 1;
                self.read_bytes += bytes;
            }
            Op::Write => {
                self.writes[CLASSES.iter().take_while(|most| **most < bytes).count()] += 1;
                self.write_bytes += bytes;
            }
            Op::Trim | Op::WriteZeroes => {
                self.trims += 1;
                self.trim_bytes += bytes;
            }
            Op::Flush => self.flushes += 1,
        }
    }
}

impl Stream {
    /// A recording with the phases that the experiment states, without what lies beyond a drive.
    ///
    /// # Errors
    /// A recording that cannot be read, as a sentence.
    pub(super) fn of_recording(input: &Input, drive: &DriveConfig) -> Result<Stream, String> {
        let source = input.source(None, 1).map_err(|error| error.to_string())?;
        let mut workload = source.open(drive, 0).map_err(|error| error.to_string())?;
        let mut requests = Vec::new();
        let kept = |request: &Request| {
            requests.push(*request);
            true
        };
        walk(&mut *workload, kept).map_err(|error| error.to_string())?;
        let of = |phase: &crate::frame::Phase| {
            let [first, .., end] = phase.parts[..] else { return None };
            let requests = first as usize..end as usize;
            Some(Phase { name: phase.name.clone(), bytes: phase.bytes.unwrap_or(0), requests })
        };
        Ok(Stream { requests, phases: input.phases.iter().filter_map(of).collect() })
    }

    /// The place of a phase.
    pub(super) fn place(&self, name: &str) -> Option<usize> {
        self.phases.iter().position(|phase| phase.name == name)
    }

    /// The requests of a phase.
    pub(super) fn of(&self, phase: &Phase) -> &[Request] {
        &self.requests[phase.requests.clone()]
    }

    /// The requests of a phase, counted.
    pub(super) fn counts(&self, phase: &Phase) -> Counts {
        let mut counts = Counts::default();
        self.of(phase).iter().for_each(|request| counts.add(request));
        counts
    }

    /// Bytes that a phase writes below an address.
    pub(super) fn written_below(&self, phase: &Phase, end: u64) -> u64 {
        let is_below = |request: &&Request| request.op == Op::Write && request.sector * SECTOR_BYTES < end;
        self.of(phase).iter().filter(is_below).map(Request::bytes).sum()
    }

    /// Sends everything to a new drive. Pages programmed by pages written, by phase; nothing where a phase writes nothing.
    ///
    /// # Errors
    /// A drive that cannot be, as a sentence.
    pub(super) fn amplification(&self, config: &DriveConfig) -> Result<Vec<Option<f64>>, String> {
        let options = DriveOptions { seed: 1, contents: Contents::Nothing };
        let mut drive = Drive::new(config, options).map_err(|error| error.to_string())?;
        // What is collected does not depend on time.
        drive.set_timed(false);
        let page = u64::from(config.flash.geometry.page_bytes);
        let programmed = |drive: &Drive| {
            let flash = drive.counters().flash;
            (flash.total(OpKind::Program) + flash.total(OpKind::Copyback)) * page
        };
        let mut sent = 0;
        let mut by_phase = Vec::new();
        for phase in &self.phases {
            send(&mut drive, &self.requests[sent..phase.requests.start]);
            let before = (programmed(&drive), drive.counters().bytes[Op::Write.class()]);
            send(&mut drive, self.of(phase));
            let after = (programmed(&drive), drive.counters().bytes[Op::Write.class()]);
            let written = after.1 - before.1;
            by_phase.push((written > 0).then(|| (after.0 - before.0) as f64 / written as f64));
            sent = phase.requests.end;
        }
        Ok(by_phase)
    }
}

/// Sends requests to a drive, some at a time, and waits for all.
fn send(drive: &mut Drive, requests: &[Request]) {
    let end = drive.user_sectors();
    for request in requests.iter().filter(|request| request.end() <= end) {
        while drive.outstanding() >= IN_FLIGHT && drive.run_to_completion(Nanos::MAX) {
            drive.completions().clear();
        }
        drive.submit_with(&Request { at: drive.now(), queue: 0, ..*request }, Data::Nothing);
    }
    while drive.outstanding() > 0 && drive.run_to_completion(Nanos::MAX) {
        drive.completions().clear();
    }
    drive.completions().clear();
}

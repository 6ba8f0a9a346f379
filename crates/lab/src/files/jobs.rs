//! fio's jobs on files as a source of calls.

use ssdlab_base::{Nanos, Op, SECTOR_BYTES};
use ssdlab_device::{Completion, Status};
use ssdlab_fs::call::{Sync, WriteMode};
use ssdlab_fs::{Call, FileId};
use ssdlab_workload::files::OpMeasure;
use ssdlab_workload::fio::{Durability, FioWorkload, JobsOnFiles, OnFile};
use ssdlab_workload::{Next, Workload};

use super::calls::{Access, Named, Way, Work};
use super::error::FilesError;
use super::prepare::Preparation;
use super::runner::{Begin, Source};
use crate::jobs::Jobs as Measured;
use crate::progress::Control;
use crate::replay::woken;
use crate::result::JobResult;

/// Names of operations, in the order of their measures.
const NAMES: [&str; 3] = ["read", "write", "fsync"];

/// A request of a job on its way.
#[derive(Clone, Copy, Debug)]
struct Sent {
    request: ssdlab_base::Request,
    at: Nanos,
}

/// Jobs on files that are there.
pub(super) struct Jobs {
    workload: FioWorkload,
    clones: Vec<OnFile>,
    paths: Vec<String>,
    files: Vec<FileId>,
    sent: Vec<Option<Sent>>,
    measures: [OpMeasure; 3],
    by_job: Measured,
    is_stopped: bool,
    done: [u64; 3],
    requests: u64,
}

/// Directories on the way to a path, the outer ones first.
fn parents(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}

impl Jobs {
    /// Makes the files of jobs, without time, and opens them.
    pub(super) fn prepare(
        jobs: JobsOnFiles,
        preparation: &mut Preparation<'_>,
        control: &Control<'_>,
    ) -> Result<(Jobs, u64), FilesError> {
        let JobsOnFiles { files, clones, workload, .. } = jobs;
        let mut directories: Vec<&str> = Vec::new();
        for parent in files.iter().flat_map(|file| parents(&file.path)) {
            if !directories.contains(&parent) {
                directories.push(parent);
            }
        }
        // Space for all of a file is needed in the end, also where it has no data yet.
        preparation.check_space(files.iter().map(|file| file.bytes), directories.len() as u64)?;
        for path in &directories {
            preparation.work(path, Work::named(path, Named::Mkdir))?;
        }
        let total = files.iter().filter(|file| file.is_written).map(|file| file.bytes).sum();
        let made = directories.len() as u64;
        let mut done = 0;
        let mut open = Vec::new();
        for file in &files {
            control.progress.advance(done, Some(total));
            if file.is_written {
                preparation.file(&file.path, file.bytes, Access::default(), control)?;
                done += file.bytes;
            } else {
                preparation.sparse_file(&file.path, file.bytes)?;
            }
            open.extend(preparation.work(&file.path, Work::named(&file.path, Named::Open))?);
        }
        preparation.end()?;
        let by_job = Measured::new(Workload::jobs(&workload), 8);
        let jobs = Jobs {
            sent: vec![None; workload.slots()],
            workload,
            clones,
            paths: files.into_iter().map(|file| file.path).collect(),
            files: open,
            measures: std::array::from_fn(|_| OpMeasure::new()),
            by_job,
            is_stopped: false,
            done: [0; 3],
            requests: 0,
        };
        Ok((jobs, made))
    }

    /// What was measured, by operation.
    pub(super) fn measures(&self) -> impl Iterator<Item = (&'static str, &OpMeasure)> {
        NAMES.into_iter().zip(&self.measures).filter(|(_, measure)| measure.count() > 0)
    }

    /// What was measured, by job, where there are several.
    pub(super) fn by_job(&self) -> Vec<JobResult> {
        self.by_job.results(true)
    }

    fn work(&self, request: &ssdlab_base::Request) -> Work {
        let clone = self.clones[usize::from(request.queue)];
        let file = self.files[clone.file];
        let sync = match clone.durability {
            Durability::None => Sync::No,
            Durability::Data => Sync::Data,
            Durability::All => Sync::All,
        };
        let is_direct = clone.is_direct;
        let access = Access { is_direct, mode: WriteMode { is_direct, sync } };
        let (offset, bytes) = (request.sector * SECTOR_BYTES, request.bytes());
        match request.op {
            Op::Read => Work::moving(file, Way::Read, offset, bytes, access),
            Op::Write => Work::moving(file, Way::Write, offset, bytes, access),
            _ => Work::One(Call::Fsync { file }),
        }
    }
}

impl Source for Jobs {
    fn size(&self) -> (usize, usize) {
        (self.sent.len(), self.clones.len())
    }

    fn begin(&mut self, now: Nanos) -> Result<Begin, FilesError> {
        if self.is_stopped {
            return Ok(Begin::Idle);
        }
        match self.workload.next(now)? {
            Next::Request(request) => {
                let slot = request.tag;
                if !self.by_job.is_empty() {
                    self.by_job.submitted(self.workload.job_of(slot), &request);
                }
                self.sent[slot as usize] = Some(Sent { request, at: now });
                self.requests += 1;
                Ok(Begin::Work { slot, lane: request.queue.into(), work: self.work(&request) })
            }
            Next::WaitUntil(until) => Ok(Begin::Wait(woken(until, now, self.requests)?)),
            Next::WaitForCompletion | Next::Done => Ok(Begin::Idle),
        }
    }

    fn ended(&mut self, now: Nanos, slot: u32, moved: u64, _: Option<FileId>) {
        let Some(Sent { request, at }) = self.sent[slot as usize].take() else { return };
        let (kind, read, written) = match request.op {
            Op::Read => (0, moved, 0),
            Op::Write => (1, 0, moved),
            _ => (2, 0, 0),
        };
        self.measures[kind].record(now.since(at), read, written);
        if !self.by_job.is_empty() {
            let (status, has_answer, order) = (Status::Success, false, 0);
            let (op, tag, bytes, submitted) = (request.op, slot, moved, at);
            let completion = Completion { tag, op, has_answer, status, submitted, at: now, order, bytes };
            self.by_job.completed(self.workload.job_of(slot), &completion);
        }
        self.done = [self.done[0] + 1, self.done[1] + read, self.done[2] + written];
        self.workload.completed(now, slot);
    }

    fn failed(&mut self, _: u32) {}

    fn stop(&mut self) {
        self.is_stopped = true;
    }

    fn path(&self, slot: u32) -> String {
        let sent = self.sent[slot as usize];
        sent.map_or(String::new(), |sent| self.paths[self.clones[usize::from(sent.request.queue)].file].clone())
    }

    fn progress(&self) -> (u64, Option<u64>) {
        (self.done[0], self.workload.progress().1)
    }

    fn moved(&self) -> [u64; 3] {
        self.done
    }
}

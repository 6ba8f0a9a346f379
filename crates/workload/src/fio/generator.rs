//! All jobs of a job file as one workload: phases, turns and clocks.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use ssdlab_base::command_sets::zoned::ZONED;
use ssdlab_base::{Nanos, Request, SECTOR_BYTES};

use crate::{Next, Workload, WorkloadError};

use super::job::{JobRun, Step};
use super::mode::WRITE;
use super::plan::JobPlan;
use super::zones::{ZoneReset, ZoneTable};

/// Requests generated from fio's jobs.
///
/// Every job keeps its own depth in flight; jobs that can send take turns. The tag of a request is a slot that is
/// unique among those in flight, its queue is the job's number, and its stream the job's `write_hint`. The same jobs,
/// capacity and seed give the same requests for the same completions, bit for bit.
pub struct FioWorkload {
    jobs: Vec<JobRun>,
    place: Vec<Place>,
    /// The job of each slot.
    owner: Vec<u32>,
    /// Jobs as the file has them, clones together, and the place among them of each clone.
    sections: Vec<String>,
    section_of: Vec<u32>,
    ready: VecDeque<u32>,
    timers: BinaryHeap<Reverse<(Nanos, u32)>>,
    genesis: Option<Nanos>,
    phase: u32,
    unfinished: u32,
    in_flight: u32,
    sent: u64,
    total: Option<u64>,
    /// The job that last drew requests ahead and has not told of them.
    foresees: Option<u32>,
    /// The zones of jobs with `zonemode=zbd`, as their requests have left them.
    zones: Option<ZoneTable>,
    notes: Vec<String>,
}

/// Where a job is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Not started, or finished.
    Off,
    /// In the ready queue.
    Ready,
    /// Under a timer.
    Asleep,
    /// Waiting for a completion.
    Blocked,
}

impl FioWorkload {
    pub(crate) fn new(plans: Vec<JobPlan>, zones: Option<ZoneTable>, notes: Vec<String>) -> FioWorkload {
        let total = plans.iter().map(JobPlan::total_requests).try_fold(0_u64, |sum, part| sum.checked_add(part?));
        let mut workload = FioWorkload {
            jobs: Vec::new(),
            place: Vec::new(),
            owner: Vec::new(),
            sections: Vec::new(),
            section_of: Vec::new(),
            ready: VecDeque::with_capacity(plans.len()),
            timers: BinaryHeap::with_capacity(plans.len()),
            genesis: None,
            phase: 0,
            unfinished: 0,
            in_flight: 0,
            sent: 0,
            total,
            foresees: None,
            zones,
            notes,
        };
        workload.build(plans);
        workload
    }

    fn build(&mut self, plans: Vec<JobPlan>) {
        self.owner.clear();
        self.name_sections(&plans);
        self.place = vec![Place::Off; plans.len()];
        self.jobs = plans
            .into_iter()
            .enumerate()
            .map(|(index, plan)| {
                let first_tag = self.owner.len() as u32;
                self.owner.extend(std::iter::repeat_n(index as u32, plan.depth as usize));
                // More jobs than queue numbers share them.
                JobRun::new(plan, index as u16, first_tag)
            })
            .collect();
    }

    /// Clones of a job share its settings and follow each other.
    fn name_sections(&mut self, plans: &[JobPlan]) {
        self.sections.clear();
        self.section_of.clear();
        for (index, plan) in plans.iter().enumerate() {
            let clone = index > 0 && Arc::ptr_eq(&plan.settings, &plans[index - 1].settings);
            if !clone {
                self.sections.push(plan.settings.name.clone());
            }
            self.section_of.push(self.sections.len() as u32 - 1);
        }
    }

    /// How many jobs there are, clones counted.
    pub fn jobs(&self) -> usize {
        self.jobs.len()
    }

    /// Tags that requests may have: from 0 up to this.
    pub fn slots(&self) -> usize {
        self.owner.len()
    }

    /// What a job keeps in flight at most, over all jobs of the busiest phase.
    pub fn depth_max(&self) -> u32 {
        let phases = self.jobs.iter().map(|job| job.plan.phase).max().unwrap_or(0);
        let depth = |phase| self.jobs.iter().filter(|job| job.plan.phase == phase).map(|job| job.plan.depth).sum();
        (0..=phases).map(depth).max().unwrap_or(0)
    }

    /// What the jobs do, in a line for each (clones of one job share theirs).
    pub fn describe(&self) -> String {
        let mut lines: Vec<(String, u32)> = Vec::new();
        for job in &self.jobs {
            let settings = &job.plan.settings;
            let after = if settings.stonewall && job.plan.phase > 0 { " (after those above)" } else { "" };
            let line = format!("{}: {}{after}", settings.name, job.plan.describe());
            match lines.last_mut() {
                Some((last, count)) if *last == line => *count += 1,
                _ => lines.push((line, 1)),
            }
        }
        let lines: Vec<String> = lines
            .into_iter()
            .map(|(line, count)| if count > 1 { format!("{line}, {count} clones") } else { line })
            .collect();
        lines.join("\n")
    }

    /// Bytes of the drive that the jobs may write: the union of their regions.
    pub fn write_footprint_bytes(&self) -> u64 {
        let mut regions: Vec<(u64, u64)> = self
            .jobs
            .iter()
            .filter(|job| job.plan.settings.mode.uses(WRITE))
            .map(|job| (job.plan.offset, job.plan.reach()))
            .collect();
        regions.sort_unstable();
        let mut covered = 0;
        let mut end = 0;
        for (start, stop) in regions {
            covered += stop.saturating_sub(start.max(end));
            end = end.max(stop);
        }
        debug_assert!(covered % SECTOR_BYTES == 0);
        covered
    }

    /// What a person should know: keys accepted without effect, depths that were capped.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    fn start_phase(&mut self, now: Nanos) {
        let genesis = self.genesis.unwrap_or(now);
        for (index, job) in self.jobs.iter_mut().enumerate() {
            if job.plan.phase != self.phase {
                continue;
            }
            let start = Nanos(genesis.0.saturating_add(job.plan.start_delay.0)).max(now);
            job.begin(start);
            self.unfinished += 1;
            if start > now {
                self.place[index] = Place::Asleep;
                self.timers.push(Reverse((start, index as u32)));
            } else {
                self.place[index] = Place::Ready;
                self.ready.push_back(index as u32);
            }
        }
    }

    /// A job left the ready queue because it is done.
    fn finish(&mut self, now: Nanos) {
        assert!(self.unfinished > 0, "more jobs finished than were started");
        self.unfinished -= 1;
        if self.unfinished == 0 {
            assert!(self.in_flight == 0, "every job drained, {} requests in flight", self.in_flight);
            self.phase += 1;
            self.start_phase(now);
        }
    }
}

impl Workload for FioWorkload {
    #[inline]
    fn next(&mut self, now: Nanos) -> Result<Next, WorkloadError> {
        if self.genesis.is_none() {
            self.genesis = Some(now);
            self.start_phase(now);
        }
        loop {
            while let Some(Reverse((due, index))) = self.timers.peek().copied()
                && due <= now
            {
                self.timers.pop();
                self.place[index as usize] = Place::Ready;
                self.ready.push_back(index);
            }
            let Some(index) = self.ready.front().copied() else {
                return Ok(match self.timers.peek() {
                    Some(Reverse((due, _))) => Next::WaitUntil(*due),
                    None if self.in_flight > 0 => Next::WaitForCompletion,
                    None => Next::Done,
                });
            };
            let job = &mut self.jobs[index as usize];
            match job.poll(now, self.zones.as_mut())? {
                Step::Send(request) => {
                    if job.has_drawn() {
                        self.foresees = Some(index);
                    }
                    if self.ready.len() > 1 {
                        self.ready.rotate_left(1);
                    }
                    self.sent += 1;
                    self.in_flight += 1;
                    return Ok(Next::Request(request));
                }
                Step::Sleep(until) => {
                    assert!(until > now, "a job sleeps until {until}, which is not ahead of {now}");
                    self.ready.pop_front();
                    self.place[index as usize] = Place::Asleep;
                    self.timers.push(Reverse((until, index)));
                }
                Step::Blocked => {
                    self.ready.pop_front();
                    self.place[index as usize] = Place::Blocked;
                }
                Step::Finished => {
                    self.ready.pop_front();
                    self.place[index as usize] = Place::Off;
                    self.finish(now);
                }
            }
        }
    }

    #[inline]
    fn lookahead(&mut self) -> &[Request] {
        match self.foresees.take() {
            Some(index) => self.jobs[index as usize].drawn(),
            None => &[],
        }
    }

    #[inline]
    fn completed(&mut self, _now: Nanos, tag: u32) {
        let index = self.owner[tag as usize];
        self.jobs[index as usize].complete(tag);
        assert!(self.in_flight > 0, "completion of tag {tag}, but nothing is in flight");
        self.in_flight -= 1;
        if self.place[index as usize] == Place::Blocked {
            self.place[index as usize] = Place::Ready;
            self.ready.push_back(index);
        }
    }

    fn jobs(&self) -> Vec<String> {
        if self.sections.len() > 1 { self.sections.clone() } else { Vec::new() }
    }

    fn job_of(&self, tag: u32) -> usize {
        self.section_of[self.owner[tag as usize] as usize] as usize
    }

    fn progress(&self) -> (u64, Option<u64>) {
        (self.sent, self.total)
    }

    fn ends_by_time(&self) -> bool {
        self.jobs.iter().zip(&self.place).any(|(job, place)| *place != Place::Off && job.plan.settings.time_based)
    }

    fn command_set(&self) -> Option<&'static str> {
        let by_command = self.zones.as_ref().is_some_and(|zones| zones.reset() == ZoneReset::Command);
        by_command.then_some(ZONED.name)
    }

    fn begin_zones(&mut self, zones: &mut dyn Iterator<Item = (u64, bool)>) {
        if let Some(table) = &mut self.zones {
            table.begin(zones);
        }
    }

    fn rewind(&mut self) -> Result<(), WorkloadError> {
        let plans = std::mem::take(&mut self.jobs).into_iter().map(|job| job.plan).collect();
        self.build(plans);
        self.ready.clear();
        self.timers.clear();
        self.genesis = None;
        self.phase = 0;
        self.unfinished = 0;
        self.in_flight = 0;
        self.sent = 0;
        self.foresees = None;
        if let Some(zones) = &mut self.zones {
            zones.begin(&mut std::iter::empty());
        }
        Ok(())
    }
}

//! A job on a drive of a known size: regions, limits and rates in numbers, everything checked.

use std::fmt::Write as _;

use ssdlab_base::command_sets::zoned::ZoneShape;
use ssdlab_base::{Nanos, SECTOR_BYTES, format_size, rng};

use rand::Rng as _;

use crate::draw::below;
use crate::{Demand, WorkloadError};

use super::mode::{Kind, READ, Sizes, TRIM, WRITE};
use super::random_map::RandomMap;
use super::settings::{JobSettings, ZoneMode};
use super::skew::{Picker, Skew};
use super::value::Extent;
use super::zone_plan::{self, JobZones};
use super::zones::ZoneTable;

/// One clone of a job, ready to run.
#[derive(Clone, Debug)]
pub(crate) struct JobPlan {
    pub(crate) settings: std::sync::Arc<JobSettings>,
    pub(crate) phase: u32,
    /// Seed of everything the job draws.
    pub(crate) seed: u64,
    pub(crate) depth: u32,
    /// First byte of the region and its length: transfers begin in it, and the last one may end beyond it.
    pub(crate) offset: u64,
    pub(crate) region: u64,
    /// Bytes of the drive.
    pub(crate) capacity: u64,
    /// `io_size`, or what one pass transfers: more passes follow while less is sent, by at least the largest block.
    pub(crate) limit: u64,
    pub(crate) largest: u64,
    /// Whether passes also follow where one ended at the end of the region: as in fio not for a share of it.
    pub(crate) repeats: bool,
    /// A pass ends with so many bytes, or where no transfer follows.
    pub(crate) pass_bytes: u64,
    /// Stop when so many bytes have been sent (writes only, for trims followed by writes).
    pub(crate) total_bytes: u64,
    /// What all passes transfer, but for blocks that a pass leaves out at its end.
    expected_bytes: u64,
    /// Stop when so many transfers have been sent.
    pub(crate) total_ios: u64,
    pub(crate) start_delay: Nanos,
    /// Bytes a second for each direction, 0 for no limit.
    pub(crate) rate: [u64; 3],
    /// Block numbers for random offsets, where the direction is used; `None` where a random map chooses.
    pub(crate) pickers: [Option<Picker>; 3],
    /// Offsets are multiples of this.
    pub(crate) align: [u64; 3],
    pub(crate) map: MapKind,
    /// What `zonemode=zbd` asks.
    pub(crate) zones: Option<JobZones>,
    /// What `zonemode=strided` asks.
    pub(crate) stride: Option<Stride>,
}

/// I/O in zones with holes between them; bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stride {
    /// To transfer in a zone.
    pub(crate) transfer: u64,
    /// Of a zone.
    pub(crate) range: u64,
    /// From a zone to the next.
    pub(crate) step: u64,
}

/// How a job covers each block once before any comes twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MapKind {
    /// It does not.
    None,
    /// One block size: a permutation of so many blocks.
    Permutation(u64),
    /// Several block sizes: a bitmap of so many blocks of so many bytes.
    Bitmap { blocks: u64, block_bytes: u64 },
}

/// Plans every clone of every job, in the order of the file, and the zones that they share.
pub(crate) fn plan(
    jobs: &[JobSettings],
    capacity: u64,
    drive_zones: Option<ZoneShape>,
    seed: u64,
) -> Result<(Vec<JobPlan>, Option<ZoneTable>), WorkloadError> {
    let zones = zone_plan::zones_of(jobs, capacity, drive_zones)?;
    let mut plans = Vec::new();
    let mut phase = 0;
    for (index, job) in jobs.iter().enumerate() {
        if job.stonewall && index > 0 {
            phase += 1;
        }
        let shared = std::sync::Arc::new(job.with_zones_of(zones.map_or(0, |zones| zones.size)));
        for clone in 0..job.clones {
            // As in fio, the same randseed gives each job and clone numbers of its own.
            let job_seed = rng(job.seed.unwrap_or(seed), &format!("fio job {}", plans.len())).next_u64();
            plans.push(plan_clone(&shared, clone, phase, job_seed, capacity, zones)?);
        }
    }
    let slots: u64 = plans.iter().map(|plan| u64::from(plan.depth)).sum();
    if slots > MAX_SLOTS {
        return Err(WorkloadError(format!(
            "{}: all jobs together keep {slots} requests in flight, expected at most {MAX_SLOTS}: lower iodepth or numjobs",
            jobs[0].place.source
        )));
    }
    let mapped: u64 = plans
        .iter()
        .map(|plan| match plan.map {
            MapKind::Bitmap { blocks, .. } => blocks,
            _ => 0,
        })
        .fold(0, u64::saturating_add);
    if mapped > MAX_MAPPED {
        return Err(WorkloadError(format!(
            "{}: the random maps of all jobs cover {mapped} blocks, expected at most {MAX_MAPPED} (a bit of memory each): \
             use norandommap, one block size, or a smaller size",
            jobs[0].place.source
        )));
    }
    Ok((plans, zones.map(|zones| zones.table())))
}

/// What planned jobs take: slots and maps of all of them, and in flight those of the phase with the most.
pub(crate) fn demand(plans: &[JobPlan], zones: Option<&ZoneTable>) -> Demand {
    let mut demand = Demand { table_bytes: zones.map_or(0, ZoneTable::bytes), ..Demand::default() };
    let mut phases: Vec<u64> = Vec::new();
    for plan in plans {
        let in_flight = u64::from(plan.depth).min(plan.total_requests().unwrap_or(u64::MAX));
        phases.resize(phases.len().max(plan.phase as usize + 1), 0);
        phases[plan.phase as usize] += in_flight;
        let longest = plan.settings.sizes.iter().map(Sizes::max).max().unwrap_or(0);
        demand.request_bytes = demand.request_bytes.max(longest);
        demand.table_bytes += JOB_BYTES + u64::from(plan.depth) * SLOT_BYTES;
        if let MapKind::Bitmap { blocks, .. } = plan.map {
            demand.random_map_bytes = demand.random_map_bytes.saturating_add(RandomMap::bytes(blocks));
        }
    }
    // The last transfer may end behind the region.
    let written = |plan: &JobPlan| (plan.region + plan.largest).min(plan.total_bytes);
    let writing = plans.iter().filter(|plan| plan.settings.mode.uses(WRITE));
    demand.written_bytes = Some(writing.map(written).fold(0, u64::saturating_add));
    demand.in_flight = phases.into_iter().max().unwrap_or(0);
    let uses = |direction| plans.iter().any(|plan| plan.settings.mode.uses(direction));
    let flushes = plans.iter().any(|plan| plan.settings.fsync > 0 || plan.settings.flush_at_end);
    let kinds = [uses(READ), uses(WRITE), uses(TRIM) || zones.is_some(), flushes];
    demand.kinds = Some(kinds.into_iter().map(u64::from).sum());
    demand
}

/// A clone of a job, with what it draws ahead.
const JOB_BYTES: u64 = 8 << 10;

/// A slot is in its job's list of free ones, and has an owner.
const SLOT_BYTES: u64 = 8;

/// Blocks in bitmaps over all jobs: 4 GiB of bits.
const MAX_MAPPED: u64 = 1 << 35;

/// Requests in flight over all jobs.
const MAX_SLOTS: u64 = 1 << 24;

fn plan_clone(
    job: &std::sync::Arc<JobSettings>,
    clone: u32,
    phase: u32,
    seed: u64,
    capacity: u64,
    zones: Option<zone_plan::Zones>,
) -> Result<JobPlan, WorkloadError> {
    let capacity = capacity / SECTOR_BYTES * SECTOR_BYTES;
    let used: Vec<usize> = [READ, WRITE, TRIM].into_iter().filter(|d| job.mode.uses(*d)).collect();
    let sized = if job.sizes_by_randomness { vec![READ, WRITE] } else { used.clone() };
    let min_bs = sized.iter().map(|d| job.sizes[*d].min()).min().unwrap_or(SECTOR_BYTES);
    let max_bs = sized.iter().map(|d| job.sizes[*d].max()).max().unwrap_or(SECTOR_BYTES);
    // As in fio, where a region begins and whether there is another pass is decided by the sizes of all directions.
    let all = job.sizes.iter();
    let smallest = all.clone().map(Sizes::min).min().unwrap_or(SECTOR_BYTES);
    let largest = all.map(Sizes::max).max().unwrap_or(SECTOR_BYTES);
    let (offset, placed) = place_region(job, clone, capacity, smallest, min_bs)?;
    let zones = match zones.filter(|_| job.zones.mode() == ZoneMode::Zbd) {
        Some(zones) => Some(zones.of_job(job, offset, placed, min_bs)?),
        None => None,
    };
    let (offset, region, io_bytes) = match &zones {
        // A trim counts as its zone's size, whatever of it can be written.
        Some(zones) if job.mode.uses(TRIM) => (zones.offset(), zones.region(), zones.region()),
        Some(zones) => (zones.offset(), zones.region(), zones.capacity()),
        None => (offset, placed, placed),
    };
    let stride = zone_plan::stride(job, capacity, min_bs)?;
    if region < max_bs {
        let key = ["bssplit", "bsrange", "bs"].into_iter().find(|key| job.has(key)).unwrap_or("bs");
        return Err(job.error(
            key,
            &format!("a block of {max_bs} bytes does not fit into the job's region of {region} bytes; give a smaller block or a larger size"),
        ));
    }
    if job.sequence_hole.unsigned_abs() >= region {
        return Err(job.error("rw", &format!("the step is not smaller than the job's region of {region} bytes")));
    }
    if job.sequence_hole < 0 && region % SECTOR_BYTES != 0 {
        let message =
            format!("steps back from the end of the job's region of {region} bytes, expected a multiple of 512");
        return Err(job.error("size", &message));
    }
    let limit = job.io_size.map_or(io_bytes, |io_size| io_size.of(io_bytes));
    let by_share = matches!(job.io_size, Some(Extent::Percent(_)));
    if limit == 0 || by_share && limit < smallest {
        let message = format!("comes to {limit} bytes, expected at least the smallest block of {smallest} bytes");
        return Err(job.error("io_size", &message));
    }
    // As fio counts: loops repeat what one pass does, io_size alone runs as many passes as it needs.
    let pass = if by_share { io_bytes.min(limit) } else { io_bytes };
    let total_bytes = limit.saturating_mul(job.loops);
    // fio counts what an engine queues: nothing of one that is synchronous, and no trims.
    let counts = job.synchronous_engine.is_none() && job.inline && !job.mode.uses(TRIM) && !job.time_based;
    let without_map =
        job.mode.random && !(job.random_map && job.skew == [const { Skew::Uniform }; 3] && job.align == [None; 3]);
    let (pass_bytes, expected_bytes) = match counts {
        false if without_map => (u64::MAX, total_bytes),
        true if without_map && job.mode.uses(WRITE) => (pass.max(limit), total_bytes),
        false => (u64::MAX, limit.max(limit.min(pass).saturating_mul(job.loops))),
        true => (pass, limit.max(limit.min(pass).saturating_mul(job.loops))),
    };
    let both = u64::from(job.mode.kind == Kind::TrimThenWrite) + 1;
    let total_ios = match job.number_ios {
        0 => u64::MAX,
        count => count.saturating_mul(job.loops).saturating_mul(both),
    };
    let mut rate = job.rate;
    for direction in [READ, WRITE, TRIM] {
        if job.rate_iops[direction] > 0 {
            rate[direction] = job.rate_iops[direction].saturating_mul(job.sizes[direction].min());
        }
    }
    let start_delay = match job.start_delay {
        (low, high) if low == high => low,
        (low, high) => Nanos(low.0 + below(&mut rng(seed, "fio start delay"), high.0 - low.0 + 1)),
    };
    let mut plan = JobPlan {
        settings: job.clone(),
        phase,
        seed,
        depth: if job.synchronous_engine.is_some() { 1 } else { job.depth },
        offset,
        region,
        capacity,
        limit,
        largest,
        repeats: job.io_size.is_some() && !(by_share && limit <= io_bytes),
        pass_bytes,
        total_bytes,
        expected_bytes,
        total_ios,
        start_delay,
        rate,
        pickers: [None, None, None],
        align: std::array::from_fn(|d| job.align[d].filter(|_| job.mode.random).unwrap_or(job.sizes[d].min())),
        map: MapKind::None,
        zones: zones.map(|zones| zones.with_threshold(job)),
        stride,
    };
    if job.mode.random {
        plan.choose_random(&used, min_bs)?;
    }
    Ok(plan)
}

/// First byte and length of a job's region; `smallest` is the smallest block of all directions, `used` of those that the job has.
fn place_region(
    job: &JobSettings,
    clone: u32,
    capacity: u64,
    smallest: u64,
    used: u64,
) -> Result<(u64, u64), WorkloadError> {
    let increment = job.offset_increment.of(capacity);
    let step = increment.checked_mul(u64::from(clone));
    let start = step.and_then(|step| job.offset.of(capacity).checked_add(step)).unwrap_or(u64::MAX);
    let by_share = |extent| matches!(extent, Extent::Percent(share) if share > 0);
    let start = if by_share(job.offset) || by_share(job.offset_increment) {
        start.checked_next_multiple_of(job.offset_align.unwrap_or(smallest)).unwrap_or(u64::MAX)
    } else {
        start
    };
    let key = if clone > 0 && increment > 0 { "offset_increment" } else { "offset" };
    if start % SECTOR_BYTES != 0 {
        return Err(job.error(key, &format!("starts at byte {start}, expected a multiple of 512")));
    }
    if start >= capacity {
        return Err(job.error(
            key,
            &format!("clone {clone} starts at byte {start}, but the drive's user capacity is {capacity} bytes"),
        ));
    }
    let room = capacity - start;
    let region = match job.size {
        None => room,
        Some(Extent::Bytes(bytes)) if bytes > room => {
            return Err(job.error(
                "size",
                &format!(
                    "{bytes} bytes from byte {start} end beyond the drive's user capacity of {capacity} bytes; \
                     expected at most {room}, or a share such as size=100%"
                ),
            ));
        }
        // A share is of the whole drive and ends with it, in whole blocks, as fio has it.
        Some(size) if by_share(size) && size.of(capacity) < capacity => {
            let region = size.of(capacity).min(room);
            region - region % smallest
        }
        Some(size) => size.of(capacity).min(room),
    };
    if region < used {
        return Err(job.error(
            "size",
            &format!("the region of {region} bytes is smaller than the smallest block of {used} bytes"),
        ));
    }
    Ok((start, region))
}

impl JobPlan {
    fn choose_random(&mut self, used: &[usize], min_bs: u64) -> Result<(), WorkloadError> {
        let job = self.settings.clone();
        let random_bytes = self.stride.map_or(self.region, |stride| stride.range);
        let blocks_of = |direction: usize| {
            // The last multiple of the alignment must leave room for a block.
            let sizes = if job.sizes_by_randomness { WRITE } else { direction };
            let (min, align) = (job.sizes[sizes].min(), self.align[direction]);
            random_bytes.saturating_sub(min.saturating_sub(align)) / align
        };
        for &direction in used {
            if blocks_of(direction) == 0 {
                return Err(job.error("ba", &format!("the region of {} bytes holds no aligned block", self.region)));
            }
        }
        let aligned = used.iter().any(|d| self.align[*d] != job.sizes[*d].min());
        let skewed = used.iter().any(|d| job.skew[*d] != Skew::Uniform);
        if job.random_map && !aligned && !skewed {
            let one_size = used.iter().all(|d| job.sizes[*d] == Sizes::Fixed(min_bs)) && !job.sizes_by_randomness;
            self.map = if one_size {
                MapKind::Permutation(random_bytes / min_bs)
            } else {
                // A block that starts at a multiple of its own alignment is found in a map of the smallest blocks.
                MapKind::Bitmap { blocks: random_bytes / min_bs, block_bytes: min_bs }
            };
            return Ok(());
        }
        for &direction in used {
            let picker = Picker::new(&job.skew[direction], blocks_of(direction), self.align[direction], self.seed);
            self.pickers[direction] = Some(picker.map_err(|why| job.error("random_distribution", &why.to_string()))?);
        }
        Ok(())
    }

    /// The end of what the job may transfer: its last block may end beyond its region, and zones with holes between them go on
    /// to the end of the drive.
    pub(crate) fn reach(&self) -> u64 {
        match self.stride {
            Some(_) => self.capacity,
            None => (self.offset + self.region.next_multiple_of(SECTOR_BYTES)).min(self.capacity),
        }
    }

    /// How many requests the job will send, where that is known beforehand.
    pub(crate) fn total_requests(&self) -> Option<u64> {
        let job = &self.settings;
        if job.runtime > Nanos::ZERO || job.zones.mode() != ZoneMode::None || job.sequence_hole != 0 {
            return None;
        }
        let direction = match job.mode.kind {
            Kind::One(direction) => direction,
            Kind::Mixed => READ,
            Kind::TrimThenWrite => WRITE,
        };
        let Sizes::Fixed(size) = job.sizes[direction] else {
            return None;
        };
        // Each pass may have a shorter end, and a flush behind it.
        let is_one_pass = self.expected_bytes <= self.region && job.loops == 1;
        let flushes = (job.flush_at_end || job.fsync > 0) && job.mode.uses(WRITE);
        if !self.region.is_multiple_of(size) || flushes && !is_one_pass {
            return None;
        }
        let mixed = job.mode.kind == Kind::Mixed;
        if mixed && (job.sizes[READ] != job.sizes[WRITE] || job.fsync > 0) || job.sizes_by_randomness {
            return None;
        }
        let blocks = self.expected_bytes.div_ceil(size);
        let (each, writes_share) = match job.mode.kind {
            Kind::TrimThenWrite => (2, 2),
            _ => (1, 1),
        };
        let transfers = blocks.saturating_mul(each).min(self.total_ios);
        let flushes = if job.fsync > 0 && job.mode.uses(WRITE) {
            (transfers / writes_share).saturating_sub(1) / job.fsync
        } else {
            0
        };
        transfers.checked_add(flushes)?.checked_add(u64::from(job.flush_at_end && job.mode.uses(WRITE)))
    }

    /// One line for a person: what the job does.
    pub(crate) fn describe(&self) -> String {
        let job = &self.settings;
        let mut text = String::new();
        let main = match job.mode.kind {
            Kind::One(direction) => direction,
            Kind::Mixed => READ,
            Kind::TrimThenWrite => TRIM,
        };
        let sizes = |direction: usize| match &job.sizes[direction] {
            Sizes::Fixed(size) => format_size(*size),
            Sizes::Range(low, high) => format!("{} to {}", format_size(*low), format_size(*high)),
            Sizes::Split(entries) => {
                let parts: Vec<String> =
                    entries.iter().map(|(size, percent)| format!("{} {percent}%", format_size(*size))).collect();
                parts.join(" / ")
            }
        };
        text.push_str(&sizes(main));
        if job.mode.kind == Kind::Mixed && job.sizes[READ] != job.sizes[WRITE] {
            let _ = write!(text, " reads, {} writes", sizes(WRITE));
        }
        text.push(' ');
        text.push_str(match (job.mode.kind, job.mode.random) {
            (Kind::One(READ), false) => "read",
            (Kind::One(WRITE), false) => "write",
            (Kind::One(_), false) => "trim",
            (Kind::One(READ), true) => "randread",
            (Kind::One(WRITE), true) => "randwrite",
            (Kind::One(_), true) => "randtrim",
            (Kind::Mixed, false) => "rw",
            (Kind::Mixed, true) => "randrw",
            (Kind::TrimThenWrite, false) => "trimwrite",
            (Kind::TrimThenWrite, true) => "randtrimwrite",
        });
        if job.mode.kind == Kind::Mixed {
            let _ = write!(text, " ({}% reads)", job.read_percent);
        }
        if job.mode.random {
            match &job.skew[main] {
                Skew::Uniform => {}
                Skew::Zipf { theta, .. } => _ = write!(text, ", zipf {theta}"),
                Skew::Pareto { power, .. } => _ = write!(text, ", pareto {power}"),
                Skew::Normal { deviation, .. } => _ = write!(text, ", normal {deviation}"),
                Skew::Zoned(zones) => _ = write!(text, ", {} zones", zones.len()),
            }
            if self.map != MapKind::None {
                text.push_str(", every block once a pass");
            }
        }
        let _ = write!(text, ", depth {}", self.depth);
        match (&self.zones, self.stride) {
            (Some(zones), _) => _ = write!(text, ", {zones}"),
            (None, Some(Stride { step, .. })) => _ = write!(text, ", zones every {}", format_size(step)),
            (None, None) => {}
        }
        let _ = write!(text, ", {} from {}", format_size(self.region), format_size(self.offset));
        if job.time_based {
            let _ = write!(text, ", for {}", job.runtime);
        } else {
            if self.total_ios != u64::MAX {
                let _ = write!(text, ", at most {} requests", self.total_ios);
            }
            let _ = write!(text, ", {} in all", format_size(self.expected_bytes));
            if job.runtime > Nanos::ZERO {
                let _ = write!(text, ", at most {}", job.runtime);
            }
        }
        if job.fsync > 0 && job.mode.uses(WRITE) {
            let _ = write!(text, ", a flush every {} writes", job.fsync);
        }
        if job.force_unit_access && job.mode.uses(WRITE) {
            text.push_str(", force unit access");
        }
        let limits: Vec<String> = self.rate.iter().filter(|rate| **rate > 0).map(|rate| format_size(*rate)).collect();
        if !limits.is_empty() {
            let _ = write!(text, ", at {} a second", limits.join(" / "));
        }
        text
    }
}

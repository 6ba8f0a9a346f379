//! The zones of jobs on a drive of known zones: sizes that agree, regions of whole zones, limits.

use std::fmt;

use ssdlab_base::command_sets::zoned::ZoneShape;
use ssdlab_base::{SECTOR_BYTES, format_size};

use super::mode::{Sizes, TRIM, WRITE};
use super::plan::Stride;
use super::settings::{JobSettings, ZoneMode};
use super::zones::{Rules, ZoneReset, ZoneTable};
use crate::WorkloadError;

/// Most zones of a drive that knows none: a few bytes of memory each.
const MOST_ZONES: u64 = 1 << 26;

/// The zones of a drive, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Zones {
    pub(super) size: u64,
    capacity: u64,
    count: u64,
    write_unit: u64,
    max_open: u32,
    reset: ZoneReset,
}

/// The zones of one job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobZones {
    pub(super) rules: Rules,
    size: u64,
    zone_capacity: u64,
    /// Zones left out between two, of a sequential job.
    pub(super) skip: u64,
    /// Bytes with data from which on writes reset their zones now and then.
    pub(super) reset_threshold: u64,
    /// One write in so many does; 0 is none.
    pub(super) reset_every: u64,
}

/// The zones that the jobs share; `None` where no job has any.
///
/// # Errors
/// Zones that differ from the drive's or from each other, and jobs without `zonemode=zbd` on a drive that has zones.
pub(super) fn zones_of(
    jobs: &[JobSettings],
    drive_bytes: u64,
    of_drive: Option<ZoneShape>,
) -> Result<Option<Zones>, WorkloadError> {
    let mut shared: Option<Zones> = None;
    for job in jobs {
        if job.zones.mode() != ZoneMode::Zbd {
            if of_drive.is_some() {
                let key = if job.has("zonemode") { "zonemode" } else { "rw" };
                return Err(job.error(
                    key,
                    "the drive has zones, and accepts writes only at their write pointers: use zonemode=zbd",
                ));
            }
            continue;
        }
        let zones = match of_drive {
            Some(zones) => as_the_drive_has_them(job, zones)?,
            None => of_its_own(job, drive_bytes)?,
        };
        let zones = Zones { max_open: max_open(job, zones.max_open)?, ..zones };
        if let Some(before) = shared {
            if (before.size, before.capacity) != (zones.size, zones.capacity) {
                let key = if before.size == zones.size { "zonecapacity" } else { "zonesize" };
                let (mine, earlier) = match key {
                    "zonesize" => (zones.size, before.size),
                    _ => (zones.capacity, before.capacity),
                };
                let reason = format!(
                    "{key} is {mine}, and an earlier job has {earlier}: all jobs share the zones of the drive, so state it \
                     in [global]"
                );
                return Err(job.error(key, &reason));
            }
            if before.max_open != zones.max_open {
                let limit = |most: u32| if most == 0 { "no limit".to_string() } else { most.to_string() };
                let reason = format!(
                    "max_open_zones is {}, and an earlier job has {}: the limit is for all jobs, so state it in [global]",
                    limit(zones.max_open),
                    limit(before.max_open)
                );
                return Err(job.error("max_open_zones", &reason));
            }
        }
        shared = Some(zones);
    }
    Ok(shared)
}

/// The limit on open zones: the job's, which must not exceed the drive's.
fn max_open(job: &JobSettings, of_drive: u32) -> Result<u32, WorkloadError> {
    let wanted = job.zones.max_open;
    if of_drive > 0 && wanted > of_drive && !job.zones.ignore_limits {
        let message = format!(
            "the drive has at most {of_drive} open or active zones: expected at most {of_drive}, or ignore_zone_limits=1"
        );
        return Err(job.error("max_open_zones", &message));
    }
    Ok(if wanted > 0 { wanted } else { of_drive })
}

fn as_the_drive_has_them(job: &JobSettings, shape: ZoneShape) -> Result<Zones, WorkloadError> {
    let (size, capacity) = (shape.size * SECTOR_BYTES, shape.capacity * SECTOR_BYTES);
    for (key, found, expected) in [("zonesize", job.zones.size, size), ("zonecapacity", job.zones.capacity, capacity)] {
        if found > 0 && found != expected {
            return Err(job.error(key, &format!("expected the drive's {expected} bytes, or no {key}")));
        }
    }
    // A zone that is open is active: a job that opens no more than that never exceeds the other limit.
    let limits = [shape.max_open, shape.max_active].into_iter().filter(|limit| *limit > 0);
    let (max_open, write_unit) = (limits.min().unwrap_or(0), shape.write_unit * SECTOR_BYTES);
    Ok(Zones { size, capacity, count: shape.count, write_unit, max_open, reset: ZoneReset::Command })
}

fn of_its_own(job: &JobSettings, drive_bytes: u64) -> Result<Zones, WorkloadError> {
    let size = job.zones.size;
    if size == 0 {
        return Err(job.error("zonemode", "zbd on a drive without zones needs a zonesize"));
    }
    let capacity = if job.zones.capacity > 0 { job.zones.capacity } else { size };
    if capacity > size {
        return Err(job.error("zonecapacity", &format!("expected at most the zonesize of {size} bytes")));
    }
    let count = drive_bytes / size;
    if count == 0 || count > MOST_ZONES {
        let message =
            format!("the drive's {drive_bytes} bytes are {count} zones of {size} bytes, expected 1 to {MOST_ZONES}");
        return Err(job.error("zonesize", &message));
    }
    Ok(Zones { size, capacity, count, write_unit: SECTOR_BYTES, max_open: 0, reset: ZoneReset::Nothing })
}

impl Zones {
    /// All of them empty.
    pub(super) fn table(&self) -> ZoneTable {
        ZoneTable::new(self.size, self.capacity, self.count, self.max_open, self.reset)
    }

    /// A job's zones: the whole ones of its region, as fio rounds it.
    ///
    /// # Errors
    /// A region without a whole zone, and blocks that do not go with the zones.
    pub(super) fn of_job(
        &self,
        job: &JobSettings,
        offset: u64,
        region: u64,
        smallest: u64,
    ) -> Result<JobZones, WorkloadError> {
        let Zones { size, capacity, write_unit, .. } = *self;
        let first = offset.div_ceil(size);
        let end = ((offset + region) / size).min(self.count);
        if first >= end {
            let message = format!("{region} bytes from byte {offset} hold no whole zone of {size} bytes");
            return Err(job.error("size", &message));
        }
        let key = ["bssplit", "bsrange", "bs"].into_iter().find(|key| job.has(key)).unwrap_or("bs");
        if job.mode.uses(TRIM) && job.sizes[TRIM] != Sizes::Fixed(size) {
            return Err(job.error(key, &format!("a trim resets a zone: expected blocks of its size, {size} bytes")));
        }
        if !job.mode.uses(TRIM) && smallest > capacity {
            return Err(job.error(key, &format!("expected blocks of at most {capacity} bytes, the capacity of a zone")));
        }
        if job.mode.uses(WRITE) {
            // No zone ever has room for one: the job would reset zones for ever.
            let least = job.smallest_of(WRITE);
            if least > capacity {
                let message = format!(
                    "found writes of at least {least} bytes, expected at most {capacity} bytes, the capacity of a zone"
                );
                return Err(job.error(key, &message));
            }
            let sizes = job.sizes_of(WRITE).flat_map(|sizes| match sizes {
                Sizes::Fixed(bytes) => vec![*bytes],
                Sizes::Range(low, high) => vec![*low, *high],
                Sizes::Split(entries) => entries.iter().map(|(bytes, _)| *bytes).collect(),
            });
            let sizes = sizes.chain([smallest]);
            if let Some(bytes) = sizes.into_iter().find(|bytes| !bytes.is_multiple_of(write_unit)) {
                let message =
                    format!("found {bytes} bytes, expected multiples of the drive's write unit, {write_unit} bytes");
                return Err(job.error(key, &message));
            }
            if job.unaligned && write_unit > SECTOR_BYTES {
                return Err(job.error(
                    "bs_unaligned",
                    &format!("expected 0: the drive writes whole units of {write_unit} bytes"),
                ));
            }
            if self.max_open > 0 && !capacity.is_multiple_of(smallest) {
                let message = format!(
                    "found {smallest} bytes, expected a block size that divides the capacity of a zone, {capacity} bytes: \
                     otherwise no zone becomes full, and all stay open"
                );
                return Err(job.error(key, &message));
            }
        }
        let skip = job.zones.skip.of(size);
        if !skip.is_multiple_of(size) {
            return Err(job.error("zoneskip", &format!("expected a multiple of the zone size, {size} bytes")));
        }
        let rules = Rules {
            first: first as u32,
            end: end as u32,
            read_beyond: job.zones.read_beyond,
            most_open: job.zones.job_max_open,
            random: job.mode.random,
        };
        let skip = if job.mode.random { 0 } else { skip / size };
        Ok(JobZones { rules, size, zone_capacity: capacity, skip, reset_threshold: 0, reset_every: 0 })
    }
}

impl JobZones {
    fn count(&self) -> u64 {
        u64::from(self.rules.end - self.rules.first)
    }

    /// First byte of the region.
    pub(super) fn offset(&self) -> u64 {
        u64::from(self.rules.first) * self.size
    }

    /// Bytes from the first zone's start to the last one's end.
    pub(super) fn region(&self) -> u64 {
        self.count() * self.size
    }

    /// Bytes that can be written of the region.
    pub(super) fn capacity(&self) -> u64 {
        self.count() * self.zone_capacity
    }

    /// With the settings of resets before a zone is full.
    pub(super) fn with_threshold(self, job: &JobSettings) -> JobZones {
        const WHOLE: u64 = 1_000_000;
        let threshold = u128::from(self.region()) * u128::from(job.zones.reset_threshold) / u128::from(WHOLE);
        let frequency = u64::from(job.zones.reset_frequency);
        JobZones {
            reset_threshold: u64::try_from(threshold).unwrap_or(u64::MAX),
            reset_every: WHOLE.checked_div(frequency).unwrap_or(0),
            ..self
        }
    }
}

impl fmt::Display for JobZones {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} zones of {}", self.count(), format_size(self.size))?;
        if self.zone_capacity < self.size {
            write!(f, " ({} writable)", format_size(self.zone_capacity))?;
        }
        Ok(())
    }
}

/// The holes of a job with `zonemode=strided`.
///
/// # Errors
/// A zone that the drive or a block does not fit.
pub(super) fn stride(job: &JobSettings, capacity: u64, smallest: u64) -> Result<Option<Stride>, WorkloadError> {
    if job.zones.mode() != ZoneMode::Strided {
        return Ok(None);
    }
    let range = if job.zones.range > 0 { job.zones.range } else { job.zones.size };
    let key = if job.zones.range > 0 { "zonerange" } else { "zonesize" };
    if range > capacity {
        return Err(
            job.error(key, &format!("{range} bytes are more than the drive's user capacity of {capacity} bytes"))
        );
    }
    if range < smallest {
        return Err(job.error(key, &format!("{range} bytes are less than a block of {smallest} bytes")));
    }
    let skip = job.zones.skip.of(capacity);
    let step = range.checked_add(skip).ok_or_else(|| job.error("zoneskip", "is too large"))?;
    if !step.is_multiple_of(SECTOR_BYTES) {
        return Err(job.error("zoneskip", "expected a multiple of 512 bytes"));
    }
    Ok(Some(Stride { transfer: job.zones.size, range, step }))
}

//! Requests of a job on a zoned drive (`zonemode=zbd`).

use ssdlab_base::Request;

use super::super::mode::{READ, TRIM, WRITE};
use super::super::zones::{Placed, ZoneTable};
use super::{InZone, JobRun};
use crate::WorkloadError;

impl JobRun {
    /// The next transfer in `direction` where zones have write pointers, or what has to come before it.
    pub(super) fn draw_in_zone(&mut self, direction: usize, zones: &mut ZoneTable) -> Result<InZone, WorkloadError> {
        let plan = self.plan.zones.expect("a job with zones");
        loop {
            let Some((byte, length)) = self.held.take().or_else(|| self.place_in_zones(direction, zones)) else {
                if self.next_zone_pass() {
                    continue;
                }
                return Ok(InZone::Over);
            };
            let resets = direction == WRITE && plan.reset_every > 0;
            let is_due = resets && self.until_reset <= 1 && zones.with_data(&plan.rules) >= plan.reset_threshold;
            // A random map may have cut it shorter.
            let smallest = self.plan.settings.smallest_of(direction).min(length);
            let placed = match direction {
                // A last zone that the drive cuts short is not used.
                _ if !zones.has(byte) => Placed::NoData,
                READ => zones.place_read(byte, length, smallest, &plan.rules),
                WRITE => zones.place_write(byte, length, smallest, self.queue.into(), is_due, &plan.rules),
                _ => zones.place_trim(byte, &plan.rules),
            };
            match placed {
                Placed::At(at, length) if at + length <= self.plan.capacity => {
                    if resets && zones.with_data(&plan.rules) >= plan.reset_threshold {
                        self.until_reset = if is_due { plan.reset_every } else { self.until_reset - 1 };
                    }
                    let transfer = self.transfer(direction, at, length);
                    if direction != TRIM {
                        return Ok(InZone::Transfer(transfer));
                    }
                    let Some(reset) = zones.reset_zone(zones.number(at)) else {
                        // Zones of the job's own: what is in them is trimmed as on any drive.
                        return Ok(InZone::Transfer(transfer));
                    };
                    let Request { op, opcode, sector, sectors, .. } = reset;
                    return Ok(InZone::Transfer(Request { op, opcode, sector, sectors, ..transfer }));
                }
                Placed::AfterReset(_) | Placed::NoOpenZone if self.in_flight() > 0 => {
                    // As fio, a job resets a zone when nothing of it is in flight.
                    self.held = Some((byte, length));
                    return Ok(InZone::Wait);
                }
                Placed::AfterReset(zone) => {
                    self.held = Some((byte, length));
                    if is_due {
                        self.until_reset = plan.reset_every + 1;
                    }
                    if let Some(request) = zones.reset_zone(zone) {
                        return Ok(InZone::Reset(request));
                    }
                }
                Placed::NoData if self.drawn_bytes == 0 => return Err(self.no_data()),
                Placed::At(..) | Placed::NoData => {
                    if !self.next_zone_pass() {
                        return Ok(InZone::Over);
                    }
                }
                Placed::NoOpenZone => {
                    return Err(self.plan.settings.error(
                        "zonemode",
                        "the limit of open zones is reached, and no open zone is in the job's region: raise max_open_zones, or \
                         let jobs share a region",
                    ));
                }
            }
        }
    }

    /// Begins another pass, if there is one, at the end of the region or of what can be read. The writes until one
    /// resets its zone are counted anew.
    fn next_zone_pass(&mut self) -> bool {
        let is_next = self.next_pass(true);
        if is_next {
            self.until_reset = self.plan.zones.map_or(0, |zones| zones.reset_every);
        }
        is_next
    }

    fn no_data(&self) -> WorkloadError {
        self.plan.settings.error(
            "zonemode",
            "no zone of the job's region has data: write first (--precondition fill, or an earlier job and stonewall), or set \
             read_beyond_wp=1 for reads",
        )
    }

    /// Where a transfer would go on a drive without zones. A sequential write goes on with the next zone behind the capacity of
    /// one, and a sequential job leaves out the zones that it skips.
    fn place_in_zones(&mut self, direction: usize, zones: &ZoneTable) -> Option<(u64, u64)> {
        let plan = self.plan.zones.expect("a job with zones");
        if !self.plan.settings.mode.random {
            let zone_end = zones.end_of(self.last_end[direction]);
            if direction == WRITE && zones.is_behind_capacity(self.last_end[direction]) {
                self.last_end[direction] = zone_end;
            }
            let last = self.last_end[direction];
            let is_read_up = direction == READ && !plan.rules.read_beyond && zones.is_behind_data(last);
            if plan.skip > 0 && (self.zone_bytes >= zones.size() || last >= zone_end || is_read_up) {
                self.zone_bytes = 0;
                self.base += (plan.skip + 1) * zones.size();
                if self.base >= self.plan.capacity {
                    self.base = self.plan.offset;
                }
                self.last_end[direction] = self.base;
            }
        }
        self.place(direction)
    }
}

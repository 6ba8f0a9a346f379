//! fio's `zonemode=zbd`: where a transfer goes on a drive of zones, and which zones have to be reset before.
//!
//! As in fio, one table is for all jobs. A write goes to the write pointer of the zone that its offset is in; a full zone is reset
//! first. A read stays below the write pointer of a zone with data. A write pointer goes on when its write is sent.

use ssdlab_base::command_sets::zoned;
use ssdlab_base::{Op, Request, SECTOR_BYTES};

/// How a zone is made empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ZoneReset {
    /// By the command of the set `zoned`.
    Command,
    /// By nothing: the zones are the job's alone, and the drive knows none.
    Nothing,
}

/// Where a transfer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placed {
    /// There, so many bytes, both of the drive.
    At(u64, u64),
    /// The zone has to be reset first.
    AfterReset(u32),
    /// It needs a zone with data, and the region has none.
    NoData,
    /// As many zones are open as can be, and none of them in the job's region.
    NoOpenZone,
}

/// What a job asks of its zones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// First zone of the region, and the one behind the last.
    pub(super) first: u32,
    pub(super) end: u32,
    /// Reads may be anywhere.
    pub(super) read_beyond: bool,
    /// Most zones that the job has open; 0 is no limit.
    pub(super) most_open: u32,
    pub(super) random: bool,
}

/// A zone as the jobs have left it.
#[derive(Clone, Copy, Debug, Default)]
struct Zone {
    /// Bytes up to the write pointer.
    written: u64,
    /// The job that opened it, from 1; 0 of a zone that is not open.
    opened_by: u32,
}

/// All zones of the drive.
#[derive(Debug)]
pub(crate) struct ZoneTable {
    /// In bytes.
    size: u64,
    capacity: u64,
    zones: Vec<Zone>,
    /// In the order in which they were opened.
    open: Vec<u32>,
    /// 0 is no limit.
    most_open: u32,
    reset: ZoneReset,
}

impl ZoneTable {
    /// Memory that it takes.
    pub(super) fn bytes(&self) -> u64 {
        (self.zones.capacity() * size_of::<Zone>()) as u64
    }

    /// All zones empty. Sizes are bytes.
    pub(super) fn new(size: u64, capacity: u64, count: u64, most_open: u32, reset: ZoneReset) -> ZoneTable {
        assert!(capacity > 0 && capacity <= size, "a zone of {size} bytes has {capacity} to be written");
        ZoneTable { size, capacity, zones: vec![Zone::default(); count as usize], open: Vec::new(), most_open, reset }
    }

    /// The zones are as the drive has them: bytes up to the write pointer of each, and whether it is open or closed.
    /// Zones that are not told of are empty.
    pub(super) fn begin(&mut self, zones: &mut dyn Iterator<Item = (u64, bool)>) {
        self.open.clear();
        for (number, zone) in self.zones.iter_mut().enumerate() {
            let (written, is_active) = zones.next().unwrap_or_default();
            // Of no job: each may use it.
            *zone = Zone { written, opened_by: if is_active { u32::MAX } else { 0 } };
            if is_active {
                self.open.push(number as u32);
            }
        }
    }

    /// The way in which zones are reset.
    pub(super) const fn reset(&self) -> ZoneReset {
        self.reset
    }

    fn zone_of(&self, byte: u64) -> u32 {
        (byte / self.size) as u32
    }

    fn start(&self, zone: u32) -> u64 {
        u64::from(zone) * self.size
    }

    fn written(&self, zone: u32) -> u64 {
        self.zones[zone as usize].written
    }

    /// Whether less than the smallest transfer is left of a zone.
    fn is_full(&self, zone: u32, smallest: u64) -> bool {
        self.written(zone) + smallest > self.capacity
    }

    /// Bytes with data in the region.
    pub(super) fn with_data(&self, rules: &Rules) -> u64 {
        (rules.first..rules.end).map(|zone| self.written(zone)).sum()
    }

    /// Whether the region has any.
    pub(super) fn has_data(&self, rules: &Rules) -> bool {
        (rules.first..rules.end).any(|zone| self.written(zone) > 0)
    }

    /// Whether there is a zone of `byte`.
    pub(super) fn has(&self, byte: u64) -> bool {
        (byte / self.size) < self.zones.len() as u64
    }

    /// The end of the zone of `byte`.
    pub(super) fn end_of(&self, byte: u64) -> u64 {
        self.start(self.zone_of(byte) + 1)
    }

    /// Whether `byte` is behind what can be written of its zone.
    pub(super) fn is_behind_capacity(&self, byte: u64) -> bool {
        byte - self.start(self.zone_of(byte)) >= self.capacity
    }

    /// Whether `byte` is behind what is written of its zone.
    pub(super) fn is_behind_data(&self, byte: u64) -> bool {
        let zone = self.zone_of(byte);
        self.zones.get(zone as usize).is_none_or(|of| byte - self.start(zone) >= of.written)
    }

    /// Where a read of `length` bytes that was drawn for `byte` goes; `smallest` is the smallest size of reads.
    pub(super) fn place_read(&self, byte: u64, length: u64, smallest: u64, rules: &Rules) -> Placed {
        if rules.read_beyond {
            return Placed::At(byte, length);
        }
        let drawn = self.zone_of(byte);
        let within = byte - self.start(drawn);
        let is_behind = !rules.random && within + smallest > self.written(drawn);
        let (zone, moved) = if self.written(drawn) < smallest || is_behind {
            let Some(zone) = self.near_with_data(drawn, smallest, rules) else { return Placed::NoData };
            (zone, true)
        } else {
            (drawn, false)
        };
        let written = self.written(zone);
        let at = if written <= length || moved && !rules.random {
            0
        } else if rules.random {
            within % (written - length) / smallest * smallest
        } else {
            within
        };
        let length = length.min(written - at) / smallest * smallest;
        Placed::At(self.start(zone) + at, length)
    }

    /// As in fio: the next zone that has `least` bytes, or in random jobs the nearest one.
    fn near_with_data(&self, from: u32, least: u64, rules: &Rules) -> Option<u32> {
        let has_data = |zone: &u32| (rules.first..rules.end).contains(zone) && self.written(*zone) >= least;
        if !rules.random {
            return (from + 1..rules.end).find(has_data);
        }
        let up = (1..rules.end.saturating_sub(from)).map(|step| (step, from + step));
        let down = (1..=from.saturating_sub(rules.first)).map(|step| (step, from - step));
        let (up, down) = (up.clone().find(|(_, zone)| has_data(zone)), down.clone().find(|(_, zone)| has_data(zone)));
        match (up, down) {
            (Some((above, zone)), Some((below, _))) if above <= below => Some(zone),
            (_, Some((_, zone))) | (Some((_, zone)), None) => Some(zone),
            (None, None) => None,
        }
    }

    /// Where a write of `length` bytes that was drawn for `byte` goes; `smallest` is the smallest size of writes. `must_reset` asks
    /// for a reset first, if there is data.
    pub(super) fn place_write(
        &mut self,
        byte: u64,
        length: u64,
        smallest: u64,
        job: u32,
        must_reset: bool,
        rules: &Rules,
    ) -> Placed {
        let drawn = self.zone_of(byte);
        let zone = if self.open_for(drawn, job, rules) {
            drawn
        } else {
            // As fio, the open zone whose place among them is that of the offset in the region.
            let usable: Vec<u32> =
                self.open.iter().copied().filter(|zone| (rules.first..rules.end).contains(zone)).collect();
            let region = self.start(rules.end) - self.start(rules.first);
            let offset = byte - self.start(rules.first);
            let share = u128::from(offset) * usable.len() as u128 / u128::from(region);
            let Some(zone) = usable.get(share as usize) else { return Placed::NoOpenZone };
            *zone
        };
        if self.is_full(zone, smallest) || must_reset && self.written(zone) > 0 {
            return Placed::AfterReset(zone);
        }
        let at = self.written(zone);
        let length = length.min(self.capacity - at) / smallest * smallest;
        self.zones[zone as usize].written = at + length;
        if self.is_full(zone, smallest) {
            self.close(zone);
        }
        Placed::At(self.start(zone) + at, length)
    }

    /// Opens a zone for a job; false where the limits do not let it.
    fn open_for(&mut self, zone: u32, job: u32, rules: &Rules) -> bool {
        if self.zones[zone as usize].opened_by > 0 {
            return true;
        }
        let of_job = || self.open.iter().filter(|zone| self.zones[**zone as usize].opened_by == job + 1).count() as u32;
        let is_one_too_many = self.most_open > 0 && self.open.len() as u32 >= self.most_open;
        if is_one_too_many || rules.most_open > 0 && of_job() >= rules.most_open {
            return false;
        }
        if self.most_open > 0 || rules.most_open > 0 {
            self.open.push(zone);
            self.zones[zone as usize].opened_by = job + 1;
        }
        true
    }

    fn close(&mut self, zone: u32) {
        self.open.retain(|other| *other != zone);
        self.zones[zone as usize].opened_by = 0;
    }

    /// Which zone a trim of `byte` resets: its own, or in random jobs the nearest that has data.
    pub(super) fn place_trim(&self, byte: u64, rules: &Rules) -> Placed {
        let drawn = self.zone_of(byte);
        if !rules.random || self.written(drawn) > 0 {
            return Placed::At(self.start(drawn), self.size);
        }
        self.near_with_data(drawn, 1, rules).map_or(Placed::NoData, |zone| Placed::At(self.start(zone), self.size))
    }

    /// A zone is empty from now on; the request that makes it so on the drive, where one does.
    pub(super) fn reset_zone(&mut self, zone: u32) -> Option<Request> {
        self.zones[zone as usize].written = 0;
        self.close(zone);
        let (sector, sectors) = (self.start(zone) / SECTOR_BYTES, self.size / SECTOR_BYTES);
        match self.reset {
            ZoneReset::Command => Some(Request { opcode: zoned::RESET, ..Request::new(Op::Trim, sector, sectors) }),
            ZoneReset::Nothing => None,
        }
    }

    /// Bytes from the start of one zone to that of the next.
    pub(super) const fn size(&self) -> u64 {
        self.size
    }

    /// The zone that begins at a byte.
    pub(super) fn number(&self, byte: u64) -> u32 {
        debug_assert!(byte.is_multiple_of(self.size), "no zone begins at byte {byte}");
        self.zone_of(byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules { first: 0, end: 4, read_beyond: false, most_open: 0, random: true };

    /// Four zones of 32 bytes with a capacity of 24.
    fn table(most_open: u32) -> ZoneTable {
        ZoneTable::new(32, 24, 4, most_open, ZoneReset::Command)
    }

    #[test]
    fn writes_go_to_the_write_pointer_and_end_with_the_capacity() {
        let mut table = table(0);
        assert_eq!(table.place_write(40, 16, 4, 0, false, &RULES), Placed::At(32, 16));
        assert_eq!(table.place_write(63, 16, 4, 0, false, &RULES), Placed::At(48, 8), "cut at the capacity");
        assert_eq!(table.place_write(33, 16, 4, 0, false, &RULES), Placed::AfterReset(1));
        let reset = table.reset_zone(1).expect("a command");
        assert_eq!((reset.opcode, reset.op), (zoned::RESET, Op::Trim));
        assert_eq!(table.place_write(33, 4, 4, 0, false, &RULES), Placed::At(32, 4));
        assert_eq!(table.place_write(33, 4, 4, 0, true, &RULES), Placed::AfterReset(1), "a reset that was asked for");
        assert_eq!(table.place_write(0, 4, 4, 0, true, &RULES), Placed::At(0, 4), "there is nothing to reset");
    }

    #[test]
    fn reads_stay_below_write_pointers() {
        let mut table = table(0);
        assert_eq!(table.place_read(40, 8, 4, &RULES), Placed::NoData);
        table.begin(&mut [(0, false), (20, true), (0, false), (24, false)].into_iter());
        for byte in 0..128 {
            let Placed::At(at, length) = table.place_read(byte, 8, 4, &RULES) else { panic!("two zones have data") };
            let (zone, end) = (at / 32, at % 32 + length);
            assert!(length == 8 && (zone == 1 && end <= 20 || zone == 3 && end <= 24), "{byte}: {at} and {length}");
        }
        let sequential = Rules { random: false, ..RULES };
        assert_eq!(table.place_read(48, 8, 4, &sequential), Placed::At(48, 4), "cut at the write pointer");
        assert_eq!(table.place_read(52, 8, 4, &sequential), Placed::At(96, 8), "the next zone with data");
        assert_eq!(table.place_read(120, 8, 4, &sequential), Placed::NoData, "nothing follows");
        assert_eq!(
            table.place_read(70, 8, 4, &RULES),
            Placed::At(100, 8),
            "the nearest, where both are alike the next"
        );
        for (byte, length) in [(100, 8), (84, 16), (56, 4)] {
            let placed = table.place_read(byte, length, 4, &Rules { read_beyond: true, ..RULES });
            assert_eq!(placed, Placed::At(byte, length), "also behind the capacity");
        }
    }

    #[test]
    fn no_more_zones_are_open_than_may_be() {
        let mut table = table(2);
        let mut pick = 1_u64;
        let mut seen = 0;
        for _ in 0..2000 {
            pick = pick.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (byte, job) = ((pick >> 33) % 128, (pick >> 20) as u32 % 3);
            match table.place_write(byte, 4, 4, job, false, &RULES) {
                Placed::At(..) => {}
                Placed::AfterReset(zone) => {
                    table.reset_zone(zone);
                }
                other => panic!("a write is {other:?}"),
            }
            let active = table.zones.iter().filter(|zone| zone.written > 0 && zone.written < 24).count();
            assert!(active <= 2 && table.open.len() <= 2, "{table:?}");
            seen = seen.max(active);
        }
        assert_eq!(seen, 2, "the limit is reached");
        let mut of_job = ZoneTable::new(32, 24, 4, 0, ZoneReset::Nothing);
        let one = Rules { most_open: 1, ..RULES };
        assert_eq!(of_job.place_write(0, 4, 4, 0, false, &one), Placed::At(0, 4));
        assert_eq!(of_job.place_write(32, 4, 4, 0, false, &one), Placed::At(4, 4), "the zone that job 0 has open");
        assert_eq!(of_job.place_write(32, 4, 4, 1, false, &one), Placed::At(32, 4), "another job has none");
    }
}

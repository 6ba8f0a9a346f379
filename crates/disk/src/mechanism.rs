//! Where sectors are, and how long the heads take to reach and pass them.
//!
//! Angles are counted in 60 * 10^9ths of a rotation: in one nanosecond the medium turns by as many of them as it makes rotations
//! a minute, so no angle is rounded.

use ssdlab_base::Nanos;

use crate::config::{DiskConfig, SeekConfig};

/// A whole rotation.
const ROTATION: u64 = 60_000_000_000;
/// A head that is this many nanoseconds behind the start of a sector still reads or writes it: times are whole nanoseconds.
const LATE: u64 = 2;

/// A track.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Track {
    pub(crate) cylinder: u32,
    pub(crate) head: u32,
}

/// Where a sector is.
#[derive(Clone, Copy, Debug)]
struct Position {
    track: Track,
    /// Its number on the track.
    sector: u32,
    /// Sectors of the track.
    of: u32,
}

/// Where the heads have to be for a sector, and the angle at which it begins.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Target {
    pub(crate) track: Track,
    angle: u64,
}

/// What it takes to bring a head over the start of a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    /// The heads are on the track after this time.
    pub(crate) seek: Nanos,
    /// The sector is below the head after this time more.
    pub(crate) wait: Nanos,
    /// The heads move to another cylinder.
    pub(crate) moves: bool,
}

impl Access {
    pub(crate) fn time(self) -> Nanos {
        self.seek + self.wait
    }
}

struct ZoneStart {
    sector: u64,
    cylinder: u32,
    sectors: u32,
}

/// Part of a transfer on one track.
struct Stretch {
    /// The first sector begins.
    begin: Nanos,
    /// The last sector has passed.
    end: Nanos,
    /// Where the part begins.
    from: Position,
    sectors: u64,
    /// Angle by which the head is behind the start of the first sector at `begin`.
    late: u64,
}

/// The heads, the medium and their times.
pub(crate) struct Mechanism {
    zones: Box<[ZoneStart]>,
    heads: u32,
    rpm: u64,
    head_switch: Nanos,
    write_settle: Nanos,
    /// Angle of a track's start against that of the cylinder's track before it.
    head_angle: u64,
    /// Angle of a cylinder's start against that of the cylinder before it.
    cylinder_angle: u64,
    /// Times of seeks by distance, up to the knee.
    short: Box<[Nanos]>,
    cylinders: u32,
    full_stroke: Nanos,
}

/// The time of a seek over `distance` cylinders, from 1 to the knee, without what a write adds.
pub(crate) fn short_seek(seek: &SeekConfig, distance: u32) -> Nanos {
    let span = u128::from((seek.knee - seek.settle).0);
    let square = span * span * u128::from(distance) / u128::from(seek.knee_cylinders.max(1));
    seek.settle + Nanos(square.isqrt() as u64)
}

impl Mechanism {
    pub(crate) fn new(config: &DiskConfig) -> Mechanism {
        let rpm = u64::from(config.rpm);
        let angle = |time: Nanos| (u128::from(time.0) * u128::from(rpm) % u128::from(ROTATION)) as u64;
        let (mut sector, mut cylinder) = (0, 0);
        let start = |zone: &crate::config::Zone| {
            let start = ZoneStart { sector, cylinder, sectors: zone.sectors };
            sector += u64::from(zone.cylinders) * u64::from(config.heads) * u64::from(zone.sectors);
            cylinder += zone.cylinders;
            start
        };
        let zones: Box<[ZoneStart]> = config.zones.iter().map(start).collect();
        let head_angle = angle(config.head_skew);
        let cylinder_angle = (u64::from(config.heads - 1) * head_angle + angle(config.cylinder_skew)) % ROTATION;
        let knee = config.seek.knee_cylinders.min(config.cylinders());
        Mechanism {
            zones,
            heads: config.heads,
            rpm,
            head_switch: config.head_switch,
            write_settle: config.seek.write_settle,
            head_angle,
            cylinder_angle,
            short: (1..=knee).map(|distance| short_seek(&config.seek, distance)).collect(),
            cylinders: config.cylinders(),
            full_stroke: config.seek.full_stroke,
        }
    }

    fn position(&self, sector: u64) -> Position {
        let index = self.zones.partition_point(|zone| zone.sector <= sector) - 1;
        let zone = &self.zones[index];
        let (of, within) = (u64::from(zone.sectors), sector - zone.sector);
        let track = within / of;
        let cylinder = zone.cylinder + (track / u64::from(self.heads)) as u32;
        assert!(cylinder < self.cylinders, "sector {sector} is on cylinder {cylinder} of {}", self.cylinders);
        let head = (track % u64::from(self.heads)) as u32;
        Position { track: Track { cylinder, head }, sector: (within % of) as u32, of: zone.sectors }
    }

    /// The track of a sector.
    pub(crate) fn track(&self, sector: u64) -> Track {
        self.position(sector).track
    }

    /// The first sector behind the track of `sector`.
    pub(crate) fn track_end(&self, sector: u64) -> u64 {
        let at = self.position(sector);
        sector + u64::from(at.of - at.sector)
    }

    /// Angle from the start of a track to that of its sector `sector`, which may be the one behind its last.
    fn within(sector: u64, of: u32) -> u64 {
        sector * ROTATION / u64::from(of)
    }

    /// The angle at which a sector begins.
    fn angle(&self, at: &Position) -> u64 {
        let start = u64::from(at.track.cylinder) * self.cylinder_angle + u64::from(at.track.head) * self.head_angle;
        (start + Mechanism::within(at.sector.into(), at.of)) % ROTATION
    }

    /// The angle below the heads.
    fn angle_at(&self, time: Nanos) -> u64 {
        // A minute is a whole number of rotations.
        time.0 % ROTATION * self.rpm % ROTATION
    }

    /// How long a head on the track waits for what begins at an angle.
    fn wait(&self, time: Nanos, angle: u64) -> Nanos {
        let late = LATE * self.rpm;
        let ahead = (angle + ROTATION + late - self.angle_at(time)) % ROTATION;
        let wait = Nanos(ahead.saturating_sub(late).div_ceil(self.rpm));
        debug_assert!(wait.0 <= ROTATION / self.rpm + 1, "a sector comes within a rotation, not after {wait}");
        wait
    }

    /// The time of a movement between tracks.
    pub(crate) fn movement(&self, from: Track, to: Track, is_write: bool) -> Nanos {
        let distance = from.cylinder.abs_diff(to.cylinder);
        let time = match distance {
            0 if from.head == to.head => return Nanos::ZERO,
            0 => self.head_switch,
            _ => self.seek(distance).max(self.head_switch),
        };
        if is_write { time + self.write_settle } else { time }
    }

    /// The time of a seek over `distance` cylinders, at least one.
    pub(crate) fn seek(&self, distance: u32) -> Nanos {
        let knee = self.short.len() as u32;
        if let Some(time) = self.short.get(distance as usize - 1) {
            return *time;
        }
        let (knee_time, longest) = (self.short[knee as usize - 1], self.cylinders - 1);
        let rise = u128::from(self.full_stroke.since(knee_time).0) * u128::from(distance - knee);
        knee_time + Nanos((rise / u128::from(longest - knee)) as u64)
    }

    /// What the heads have to reach for `sector`.
    pub(crate) fn target(&self, sector: u64) -> Target {
        let at = self.position(sector);
        Target { track: at.track, angle: self.angle(&at) }
    }

    /// What it takes from `from`, at `time`, to the target.
    pub(crate) fn access(&self, from: Track, time: Nanos, target: &Target, is_write: bool) -> Access {
        let seek = self.movement(from, target.track, is_write);
        let moves = from.cylinder != target.track.cylinder;
        Access { seek, wait: self.wait(time + seek, target.angle), moves }
    }

    /// The part of a transfer of the sectors `from..to` that is on the first of their tracks, for a head there at `time`.
    fn stretch(&self, from: u64, to: u64, time: Nanos) -> Stretch {
        debug_assert!(from < to, "a transfer of {from}..{to}");
        let at = self.position(from);
        let angle = self.angle(&at);
        let begin = time + self.wait(time, angle);
        let sectors = u64::from(at.of - at.sector).min(to - from);
        let first = u64::from(at.sector);
        let length = Mechanism::within(first + sectors, at.of) - Mechanism::within(first, at.of);
        let late = (self.angle_at(begin) + ROTATION - angle) % ROTATION;
        assert!(late <= (LATE + 1) * self.rpm, "a head is {late} behind the sector {from} that it begins with");
        let end = begin + Nanos(length.saturating_sub(late).div_ceil(self.rpm));
        Stretch { begin, end, from: at, sectors, late }
    }

    /// When the sectors `from..to` have passed below a head that is on the first one's track at `time`.
    pub(crate) fn pass(&self, from: u64, to: u64, time: Nanos, is_write: bool) -> Nanos {
        let (mut next, mut time) = (from, time);
        loop {
            let stretch = self.stretch(next, to, time);
            next += stretch.sectors;
            if next == to {
                return stretch.end;
            }
            time = stretch.end + self.movement(stretch.from.track, self.track(next), is_write);
        }
    }

    /// How many of the sectors `from..to` have passed by `until`, below a head that was on the first one's track at `time`.
    pub(crate) fn passed(&self, from: u64, to: u64, time: Nanos, is_write: bool, until: Nanos) -> u64 {
        let (mut next, mut time) = (from, time);
        while next < to {
            let stretch = self.stretch(next, to, time);
            if stretch.end > until {
                return next - from + self.passed_within(&stretch, until);
            }
            next += stretch.sectors;
            if next < to {
                time = stretch.end + self.movement(stretch.from.track, self.track(next), is_write);
            }
        }
        to - from
    }

    fn passed_within(&self, stretch: &Stretch, until: Nanos) -> u64 {
        if until < stretch.begin {
            return 0;
        }
        let (first, of) = (u64::from(stretch.from.sector), u64::from(stretch.from.of));
        let turned = stretch.late + (until - stretch.begin).0 * self.rpm;
        let reached = Mechanism::within(first, stretch.from.of) + turned;
        // The last sector boundary that is not behind `reached`.
        let boundary = ((reached + 1) * of - 1) / ROTATION;
        boundary.saturating_sub(first).min(stretch.sectors - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::config;

    #[test]
    fn a_seek_is_a_root_and_then_a_line() {
        let mechanism =
            Mechanism::new(&config("zones = [{ cylinders = 1001, sectors = 100 }]\nheads = 2", "knee_cylinders = 400"));
        // settle 1 ms, knee 5 ms at 400, full stroke 11 ms at 1000.
        assert_eq!(mechanism.seek(1), Nanos::from_us(1_200));
        assert_eq!(mechanism.seek(100), Nanos::from_ms(3));
        assert_eq!(mechanism.seek(400), Nanos::from_ms(5));
        assert_eq!(mechanism.seek(700), Nanos::from_ms(8));
        assert_eq!(mechanism.seek(1000), Nanos::from_ms(11));
    }

    #[test]
    fn a_track_passes_in_a_rotation_and_the_next_one_follows_by_its_skew() {
        // 6,000 rpm: 10 ms a rotation, 100 us a sector.
        let mechanism = Mechanism::new(&config(
            "rpm = 6000\nheads = 2\nzones = [{ cylinders = 10, sectors = 100 }]\nhead_switch = \"300us\"\nhead_skew = \"400us\"\n\
             cylinder_skew = \"2.5ms\"",
            "knee_cylinders = 9",
        ));
        let pass = |from, to| mechanism.pass(from, to, Nanos::ZERO, false);
        assert_eq!(pass(0, 1), Nanos::from_us(100));
        assert_eq!(pass(0, 100), Nanos::from_ms(10));
        assert_eq!(pass(3, 5), Nanos::from_us(500));
        assert_eq!(pass(0, 200), Nanos::from_us(20_400));
        assert_eq!(pass(0, 201), Nanos::from_us(23_000));
        assert_eq!(pass(0, 400), Nanos::from_us(2 * 20_400 + 2_500));
        for (until, passed) in [(0, 0), (99, 0), (100, 1), (10_000, 100), (10_499, 100), (10_500, 101), (20_400, 200)] {
            assert_eq!(mechanism.passed(0, 400, Nanos::ZERO, false, Nanos::from_us(until)), passed, "at {until} us");
        }
    }

    #[test]
    fn sectors_one_by_one_take_as_long_as_together_at_any_speed() {
        for (rpm, sectors) in [(7_200, 2_498), (5_400, 997), (15_000, 613), (30_000, 99_999)] {
            let text = format!("rpm = {rpm}\nheads = 3\nzones = [{{ cylinders = 10, sectors = {sectors} }}]");
            let mechanism = Mechanism::new(&config(&text, "knee_cylinders = 9"));
            let (all, mut time) = (2_000.min(sectors * 3), Nanos(12_345));
            let together = mechanism.pass(0, all, time, false);
            let mut track = mechanism.track(0);
            for sector in 0..all {
                let to = mechanism.track(sector);
                time = mechanism.pass(sector, sector + 1, time + mechanism.movement(track, to, false), false);
                track = to;
            }
            assert_eq!(time, together, "{rpm} rpm, {sectors} sectors");
        }
    }
}

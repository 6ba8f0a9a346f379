//! Drives a policy and its reference model side by side.

use rand::RngExt;
use ssdlab_base::rng;
use ssdlab_flash::Lpn;

use super::{BufferPolicy, Chips, Slot, WriteBuffer};
use crate::BufferCounters;

/// Sectors that fit into the buffer of these tests.
const SECTORS: u64 = 100;

/// A write that came in.
pub(super) struct Written {
    pub(super) lpn: Lpn,
    /// Sectors that the unit holds now.
    pub(super) sectors: u32,
    pub(super) was_full: bool,
    pub(super) is_full: bool,
}

/// A policy told in the plainest way.
pub(super) trait Model {
    /// A unit came in or was overwritten.
    fn write(&mut self, write: &Written);

    /// A unit was read, and came in if it was not there; only where reads are kept.
    fn read(&mut self, _lpn: Lpn) {}

    /// A unit left, or was trimmed.
    fn leave(&mut self, lpn: Lpn, dropped: bool);

    /// The unit that leaves next, if `busy` says which units' chips are.
    fn victim(&mut self, busy: &dyn Fn(Lpn) -> bool) -> Option<Lpn>;

    /// The unit that is destaged next: the same, where reads are not kept.
    fn destaged(&mut self, busy: &dyn Fn(Lpn) -> bool) -> Option<Lpn> {
        self.victim(busy)
    }
}

/// Chips of which some are busy: those of LPNs with this remainder.
struct Some8(u32);

impl Chips for Some8 {
    fn is_busy(&self, lpn: Lpn, _: u64) -> bool {
        self.0 >> (lpn % 8) & 1 != 0
    }
}

/// Random writes, flushes and trims; whenever room is needed, both choose the same unit.
pub(super) fn drive(seed: u64, policy: Box<dyn BufferPolicy>, unit_sectors: u32, model: &mut dyn Model) {
    let mut rng = rng(seed, "buffer policy");
    let full_mask = u64::MAX >> (64 - unit_sectors);
    let mut buffer = WriteBuffer::new(policy, SECTORS * 512, 0, full_mask, None);
    let mut counters = BufferCounters::default();
    let lpns = [30, 120, 400][rng.random_range(0..3)];
    let hot = rng.random_range(1..=lpns);
    let partial_share = rng.random_range(0.0..1.0);
    let mut chips = Some8(0);
    let mut out: Vec<Slot> = Vec::new();
    let mut sequential = 0;
    for step in 0..3000 {
        match rng.random_range(0..100) {
            0..2 => {
                let first = rng.random_range(0..lpns);
                let end = (first + rng.random_range(1..10)).min(lpns);
                buffer.in_range(Lpn(first), Lpn(end), &mut out);
                for slot in &out {
                    let entry = buffer.drop_unit(*slot);
                    buffer.release(u64::from(entry.mask.count_ones()));
                    model.leave(entry.lpn, true);
                }
            }
            2..4 => {
                let before = step - rng.random_range(0..=step.min(50));
                buffer.older_than(before, rng.random_range(1..8), &mut out);
                for slot in &out {
                    let entry = buffer.take(*slot);
                    buffer.release(u64::from(entry.mask.count_ones()));
                    model.leave(entry.lpn, false);
                }
            }
            4..30 if buffer.caches_reads() => {
                let lpn = Lpn(rng.random_range(0..lpns));
                let mut missing = full_mask & !buffer.find(lpn).map_or(0, |slot| buffer.entry(slot).mask);
                if missing == 0 {
                    buffer.read_hit(buffer.find(lpn).expect("all of it is there"));
                    model.read(lpn);
                    continue;
                }
                while u64::from(missing.count_ones()) > buffer.room() {
                    make_room(&mut buffer, model, &chips, &mut counters);
                    missing = full_mask & !buffer.find(lpn).map_or(0, |slot| buffer.entry(slot).mask);
                }
                buffer.keep_clean(lpn, missing, &[]);
                model.read(lpn);
            }
            10..14 if buffer.units() > 0 => {
                buffer.destaged(1, &chips, &mut counters, &mut out);
                let expected = model.destaged(&|lpn| chips.is_busy(lpn, 0));
                leave(&mut buffer, model, &out, expected);
            }
            4..10 => chips = Some8(if rng.random_bool(0.3) { 0 } else { rng.random_range(0..256) }),
            kind => {
                let lpn = Lpn(match kind {
                    10..30 => rng.random_range(0..hot.min(lpns)),
                    30..50 => {
                        sequential = (sequential + 1) % lpns;
                        sequential
                    }
                    _ => rng.random_range(0..lpns),
                });
                let mask = if rng.random_bool(partial_share) {
                    let first = rng.random_range(0..unit_sectors);
                    let count = rng.random_range(1..=unit_sectors - first);
                    (u64::MAX >> (64 - count)) << first
                } else {
                    full_mask
                };
                let mut held = buffer.find(lpn).map_or(0, |slot| buffer.entry(slot).mask);
                while buffer.write(lpn, mask, &[], step, 0).is_err() {
                    // It may be this very unit that makes room.
                    let left = make_room(&mut buffer, model, &chips, &mut counters);
                    held = if left == lpn { 0 } else { held };
                }
                let now = held | mask;
                let (was_full, is_full) = (held == full_mask, now == full_mask);
                model.write(&Written { lpn, sectors: now.count_ones(), was_full, is_full });
            }
        }
    }
    assert!(counters.delayed_pages == 0 || partial_share > 0.0);
}

/// Lets the unit that both choose leave; returns which.
fn make_room(buffer: &mut WriteBuffer, model: &mut dyn Model, chips: &Some8, counters: &mut BufferCounters) -> Lpn {
    let mut out = Vec::new();
    buffer.victims(1, chips, counters, &mut out);
    let expected = model.victim(&|lpn| chips.is_busy(lpn, 0));
    leave(buffer, model, &out, expected)
}

/// The first of `out` leaves if it is the one expected; returns which.
fn leave(buffer: &mut WriteBuffer, model: &mut dyn Model, out: &[Slot], expected: Option<Lpn>) -> Lpn {
    let chosen = out.first().map(|slot| buffer.entry(*slot).lpn);
    assert_eq!(chosen, expected, "what leaves next");
    let entry = buffer.take(out[0]);
    buffer.release(u64::from(entry.mask.count_ones()));
    model.leave(entry.lpn, false);
    entry.lpn
}

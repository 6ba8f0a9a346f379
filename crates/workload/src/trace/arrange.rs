//! From a trace's records to requests on one drive: order and time, devices, sectors.
//!
//! The first request is at time zero. A stamp earlier than the request before it is set to that request's time and
//! counted; formats whose lines are known to be out of order (written at completion, or by several processors) are
//! sorted by their stamps within a window first. Offsets and ends inside a sector are rounded outward, and counted.
//! Several devices lie behind one another in one address space, unless one was chosen.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use rustc_hash::FxHashMap;
use ssdlab_base::{Nanos, Op, Request, SECTOR_BYTES};

use super::options::Order;
use super::record::{CommandRecord, Flaw, Record};
use super::reorder::Reorder;

/// Requests held back to put stamps in order: 4 MiB of them.
const WINDOW: usize = 1 << 16;
/// 365.25 days.
const YEAR_NS: u64 = 31_557_600 * 1_000_000_000;
/// The longest read or write that is believed: 1 GiB, sixteen times what any interface carries at once.
const LENGTH_MAX: u64 = 1 << 30;
/// The end of every address space: 1 EiB.
const END_MAX: u64 = 1 << 60;
/// A clock that is off by more than this against its neighbours is wild: a day.
const WILD_NS: u64 = 86_400 * 1_000_000_000;
/// This many wild stamps in a row, and the clock was right: the trace has a gap.
const WILD_RUN: usize = 16;
/// All stamps of a trace lie within this, so every time of it is before the horizon.
const SPAN: u64 = Nanos::HORIZON.0;
/// What a stamp that no run reaches should have been.
pub(super) const SPAN_EXPECTED: &str =
    "all requests within 73 years (2^61 nanoseconds); perhaps the unit of time is another one (`time=`)";
/// A pause between requests that is worth a sentence: 30 days.
const GAP_TOLD_NS: u64 = 30 * WILD_NS;
/// Lines that are remembered for it.
const JUMPS_MAX: usize = 1 << 10;
/// More devices than this is no trace.
const DEVICES_MAX: usize = 1 << 20;
/// Every device begins at a multiple of this in the common address space.
const DEVICE_ALIGN: u64 = 1 << 20;

/// What was noticed while arranging.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceCounts {
    /// Requests handed out.
    pub requests: u64,
    /// Requests whose stamp was earlier than the one before and was set to that.
    pub clamped: u64,
    /// Requests left out because their clock was wild.
    pub wild_clocks: u64,
    /// Requests that began or ended inside a sector and were rounded outward.
    pub rounded: u64,
    /// Requests of a kind that no drive model can take.
    pub ignored: u64,
    /// Malformed lines or records left out because `skip_bad=yes` was given.
    pub bad: u64,
    /// Requests to devices other than the chosen one.
    pub other_devices: u64,
}

/// The longest pause in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    /// How long nothing was sent.
    pub(super) length: Nanos,
    /// The line or record that ended it, from 1; none where the trace is out of order there.
    pub(super) line: Option<u64>,
}

/// One device of a trace and where it lies in the common address space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceDevice {
    /// What the trace calls it.
    pub name: String,
    /// Its requests.
    pub requests: u64,
    /// Its first byte in the common address space.
    pub base_bytes: u64,
    /// The end of its own addresses, in bytes.
    pub end_bytes: u64,
}

/// How the devices of a trace come into one address space.
pub(super) enum Layout {
    /// The format has one device.
    Flat,
    /// Only finding out which devices there are and how large.
    Survey(BTreeMap<u64, Extent>),
    /// One device, by name or by `#N` in order of first appearance.
    Choose(Chooser),
    /// Each at its own base, in bytes.
    Packed(Packed),
}

/// What a survey learns of a device.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extent {
    pub(super) requests: u64,
    pub(super) end_bytes: u64,
}

pub(super) struct Chooser {
    wanted: String,
    known: FxHashMap<u64, bool>,
}

impl Chooser {
    pub(super) fn new(wanted: &str) -> Chooser {
        Chooser { wanted: wanted.to_string(), known: FxHashMap::default() }
    }

    fn chosen(&mut self, device: u64, name: &dyn Fn(u64) -> String) -> Result<bool, Flaw> {
        if let Some(&chosen) = self.known.get(&device) {
            return Ok(chosen);
        }
        limit(self.known.len())?;
        let place = format!("#{}", self.known.len());
        let chosen = self.wanted == place || self.wanted == name(device);
        self.known.insert(device, chosen);
        Ok(chosen)
    }

    /// The devices met, as the trace calls them.
    pub(super) fn met(&self, name: &dyn Fn(u64) -> String) -> Vec<String> {
        let mut devices: Vec<u64> = self.known.keys().copied().collect();
        devices.sort_unstable();
        devices.into_iter().map(name).collect()
    }
}

#[derive(Default)]
pub(super) struct Packed {
    bases: FxHashMap<u64, u64>,
    last: Option<(u64, u64)>,
}

impl Packed {
    /// Lays surveyed devices behind one another by their number; nothing if they do not fit 64 bits.
    pub(super) fn new(survey: &BTreeMap<u64, Extent>) -> Option<(Packed, Vec<u64>)> {
        let mut packed = Packed::default();
        let mut bases = Vec::with_capacity(survey.len());
        let mut base: u64 = 0;
        for (&device, extent) in survey {
            packed.bases.insert(device, base);
            bases.push(base);
            base = base.checked_add(extent.end_bytes.next_multiple_of(DEVICE_ALIGN))?;
        }
        (base <= END_MAX).then_some((packed, bases))
    }

    fn base(&mut self, device: u64) -> Option<u64> {
        if let Some((last, base)) = self.last
            && last == device
        {
            return Some(base);
        }
        let base = *self.bases.get(&device)?;
        self.last = Some((device, base));
        Some(base)
    }
}

fn limit(devices: usize) -> Result<(), Flaw> {
    if devices < DEVICES_MAX {
        Ok(())
    } else {
        Err(Flaw::in_words("another device", format!("at most {DEVICES_MAX} different devices in a trace")))
    }
}

/// A record waiting in the window, earliest first and stable.
struct Held(Record, u64);

impl Held {
    fn key(&self) -> (u64, u64) {
        (self.0.at_ns, self.1)
    }
}

impl PartialEq for Held {
    fn eq(&self, other: &Held) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Held {}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Held) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Held {
    fn cmp(&self, other: &Held) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

/// Tells stamps of a wild clock from a gap in the trace.
struct WildClock {
    /// The last stamp that was believed.
    believed: Option<u64>,
    /// Stamps not believed since.
    suspects: Vec<Record>,
}

pub(super) struct Arrange {
    order: Order,
    clock: Option<WildClock>,
    pub(super) layout: Layout,
    window: BinaryHeap<Reverse<Held>>,
    arrived: u64,
    /// The earliest and the latest stamp that was believed: they may not be further apart than any run lasts.
    span_ns: Option<(u64, u64)>,
    /// Stamps far behind all before them, and their lines.
    jumps: Vec<(u64, u64)>,
    pub(super) gap: Option<Gap>,
    base_ns: Option<u64>,
    last_ns: u64,
    reorder: Option<Reorder>,
    /// Bytes that are added to every address.
    shift: i64,
    pub(super) counts: TraceCounts,
}

impl Arrange {
    pub(super) fn new(order: Order, wild_clock: bool, layout: Layout, reorder: Option<u64>, shift: i64) -> Arrange {
        Arrange {
            order,
            clock: wild_clock.then(|| WildClock { believed: None, suspects: Vec::new() }),
            layout,
            window: BinaryHeap::new(),
            arrived: 0,
            span_ns: None,
            jumps: Vec::new(),
            gap: None,
            base_ns: None,
            last_ns: 0,
            reorder: reorder.map(Reorder::new),
            shift,
            counts: TraceCounts::default(),
        }
    }

    /// Takes a record of this line; requests that are due go to `out`.
    #[inline]
    pub(super) fn push(
        &mut self,
        mut record: Record,
        line: u64,
        name: &dyn Fn(u64) -> String,
        out: &mut Vec<Request>,
    ) -> Result<(), Flaw> {
        if record.op != Op::Flush {
            if self.shift != 0 {
                record.offset = self.shifted(record.offset)?;
            }
            check(&record)?;
        }
        match &mut self.layout {
            Layout::Flat => {}
            Layout::Survey(devices) => {
                if !devices.contains_key(&record.device) {
                    limit(devices.len())?;
                }
                let extent = devices.entry(record.device).or_default();
                extent.requests += 1;
                extent.end_bytes = extent.end_bytes.max(record.offset + record.length);
                return Ok(());
            }
            Layout::Choose(chooser) => {
                if !chooser.chosen(record.device, name)? {
                    self.counts.other_devices += 1;
                    return Ok(());
                }
            }
            Layout::Packed(packed) => match packed.base(record.device) {
                Some(base) if record.op != Op::Flush => record.offset += base,
                Some(_) => {}
                None => {
                    return Err(Flaw::in_words(
                        format!("device {}", name(record.device)),
                        "only devices that were there on the first pass: the file has changed since it was opened",
                    ));
                }
            },
        }
        if self.clock.is_some() { self.sift(record, line, out) } else { self.admit(record, Some(line), out) }
    }

    #[cold]
    fn shifted(&self, offset: u64) -> Result<u64, Flaw> {
        offset.checked_add_signed(self.shift).ok_or_else(|| {
            let (least, most) = (self.shift.min(0).unsigned_abs(), u64::MAX - self.shift.max(0).unsigned_abs());
            Flaw::in_words(
                format!("an address of byte {offset}"),
                format!("one of {least} to {most}, since `shift=` is {}", self.shift),
            )
        })
    }

    fn sift(&mut self, record: Record, line: u64, out: &mut Vec<Request>) -> Result<(), Flaw> {
        let Some(clock) = &mut self.clock else { return Ok(()) };
        // Traces of the block layer count from their start: without a neighbour, zero is the neighbour.
        let wild = record.at_ns.abs_diff(clock.believed.unwrap_or(0)) > WILD_NS;
        if !wild {
            clock.believed = Some(record.at_ns);
            self.counts.wild_clocks += clock.suspects.len() as u64;
            clock.suspects.clear();
            return self.admit(record, Some(line), out);
        }
        let together = clock.suspects.last().is_none_or(|last| record.at_ns.abs_diff(last.at_ns) <= WILD_NS);
        if !together {
            self.counts.wild_clocks += clock.suspects.len() as u64;
            clock.suspects.clear();
        }
        clock.suspects.push(record);
        if clock.suspects.len() >= WILD_RUN { self.believe(out) } else { Ok(()) }
    }

    /// The suspects were right after all.
    fn believe(&mut self, out: &mut Vec<Request>) -> Result<(), Flaw> {
        let Some(clock) = &mut self.clock else { return Ok(()) };
        let suspects = std::mem::take(&mut clock.suspects);
        if let Some(last) = suspects.last() {
            clock.believed = Some(last.at_ns);
        }
        suspects.into_iter().try_for_each(|record| self.admit(record, None, out))
    }

    #[inline]
    fn admit(&mut self, record: Record, line: Option<u64>, out: &mut Vec<Request>) -> Result<(), Flaw> {
        self.place(record.at_ns, line)?;
        match self.order {
            Order::File => self.emit(record, out),
            Order::Time => {
                self.window.push(Reverse(Held(record, self.arrived)));
                self.arrived += 1;
                if self.window.len() > WINDOW
                    && let Some(Reverse(Held(first, _))) = self.window.pop()
                {
                    self.emit(first, out);
                }
            }
        }
        Ok(())
    }

    /// No more records: lets out what was held back, at most `room` requests; true when nothing is left.
    pub(super) fn drain(&mut self, room: usize, out: &mut Vec<Request>) -> Result<bool, Flaw> {
        if let Some(clock) = &mut self.clock {
            // Nothing was ever believed: then the clock simply does not start near zero.
            if clock.believed.is_none() {
                self.believe(out)?;
            } else {
                self.counts.wild_clocks += clock.suspects.len() as u64;
                clock.suspects.clear();
            }
        }
        for _ in 0..room {
            match self.window.pop() {
                Some(Reverse(Held(record, _))) => self.emit(record, out),
                None => break,
            }
        }
        if let Some(reorder) = self.reorder.as_mut().filter(|_| self.window.is_empty()) {
            reorder.end_group(out);
        }
        Ok(self.window.is_empty())
    }

    /// Takes a command of a set from this line, which goes to `out` with `tag`.
    pub(super) fn push_command(
        &mut self,
        command: &CommandRecord,
        line: u64,
        tag: u32,
        out: &mut Vec<Request>,
    ) -> Result<(), Flaw> {
        let record = &command.record;
        if self.order != Order::File {
            return Err(Flaw::in_words("a command of a set", "block I/O alone where `order=time` is asked for"));
        }
        if self.reorder.is_some() {
            return Err(Flaw::in_words("a command of a set", "block I/O alone where `reorder=` is asked for"));
        }
        if self.shift != 0 {
            return Err(Flaw::in_words("a command of a set", "block I/O alone where `shift=` is asked for"));
        }
        self.place(record.at_ns, Some(line))?;
        let opcode = command.opcode;
        self.emit(*record, out);
        let request = out.last_mut().expect("it was emitted");
        *request = Request { opcode, tag, ..*request };
        Ok(())
    }

    /// Takes the stamp of this line into the span of all, unless it is too far from the others.
    #[inline]
    fn place(&mut self, at_ns: u64, line: Option<u64>) -> Result<(), Flaw> {
        let (earliest, latest) = self.span_ns.unwrap_or((at_ns, at_ns));
        if at_ns < earliest || at_ns > latest {
            if at_ns.abs_diff(if at_ns > latest { earliest } else { latest }) >= SPAN {
                return Err(too_far(at_ns, earliest, latest));
            }
            if at_ns.saturating_sub(latest) > GAP_TOLD_NS && self.jumps.len() < JUMPS_MAX {
                self.jumps.extend(line.map(|line| (at_ns, line)));
            }
        }
        self.span_ns = Some((earliest.min(at_ns), latest.max(at_ns)));
        Ok(())
    }

    /// Nothing was sent for `length_ns`, until the request of this stamp.
    #[cold]
    fn pause(&mut self, length_ns: u64, at_ns: u64) {
        if self.gap.is_none_or(|gap| gap.length.0 < length_ns) {
            let line = self.jumps.iter().find(|(stamp, _)| *stamp == at_ns).map(|(_, line)| *line);
            self.gap = Some(Gap { length: Nanos(length_ns), line });
        }
    }

    #[inline]
    fn emit(&mut self, record: Record, out: &mut Vec<Request>) {
        let base = *self.base_ns.get_or_insert(record.at_ns);
        let at = match record.at_ns.checked_sub(base).filter(|at| *at >= self.last_ns) {
            Some(at) => at,
            None => {
                self.counts.clamped += 1;
                self.last_ns
            }
        };
        if at - self.last_ns > GAP_TOLD_NS {
            self.pause(at - self.last_ns, record.at_ns);
        }
        self.last_ns = at;
        let sector = record.offset / SECTOR_BYTES;
        let sectors = (record.offset + record.length).div_ceil(SECTOR_BYTES) - sector;
        if !(record.offset | record.length).is_multiple_of(SECTOR_BYTES) {
            self.counts.rounded += 1;
        }
        self.counts.requests += 1;
        let request = Request { at: Nanos(at), fua: record.fua, ..Request::new(record.op, sector, sectors) };
        match &mut self.reorder {
            None => out.push(request),
            Some(reorder) => reorder.push(request, out),
        }
    }
}

/// A stamp that is further from the others than any run lasts.
#[cold]
fn too_far(at_ns: u64, earliest_ns: u64, latest_ns: u64) -> Flaw {
    let (other, place) =
        if at_ns > latest_ns { (earliest_ns, "after the first one") } else { (latest_ns, "before the last one") };
    let years = at_ns.abs_diff(other) / YEAR_NS;
    Flaw::of_time(format!("a request {years} years {place}"), SPAN_EXPECTED)
}

impl Gap {
    /// How long, in years or days.
    pub(super) fn length(self) -> String {
        let (years, days) = (self.length.0 as f64 / YEAR_NS as f64, self.length.0 / WILD_NS);
        if years >= 1.0 { format!("{years:.1} years") } else { format!("{days} days") }
    }
}

#[inline]
fn check(record: &Record) -> Result<(), Flaw> {
    let data = matches!(record.op, Op::Read | Op::Write);
    let end = record.offset.checked_add(record.length);
    if record.length > 0 && end.is_some_and(|end| end <= END_MAX) && !(data && record.length > LENGTH_MAX) {
        return Ok(());
    }
    Err(impossible(record, data))
}

#[cold]
fn impossible(record: &Record, data: bool) -> Flaw {
    let (offset, length) = (record.offset, record.length);
    if length == 0 {
        Flaw::in_words("a request of length 0", "a length of at least one byte")
    } else if data && length > LENGTH_MAX {
        Flaw::in_words(
            format!("a read or write of {length} bytes"),
            format!("at most {LENGTH_MAX} bytes (1 GiB) in a request; perhaps the format is another one"),
        )
    } else {
        Flaw::in_words(
            format!("a request at byte {offset} with {length} bytes"),
            "an end of at most 2^60 bytes (1 EiB); perhaps the format is another one",
        )
    }
}

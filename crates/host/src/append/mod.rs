//! A block device on append-only segments: what a file system of Application-Managed Flash does for itself (Lee et al., FAST 2016,
//! sections 2 and 3), this layer does for every host.
//!
//! ```text
//!   write         -> places in the open segment -> drive -> map -> answer
//!   part of unit  -> the unit is read -> as a write
//!   read          -> map -> segments, or zeroes -> answer
//!   trim          -> map -> answer
//!   flush, FUA    -> commit: what changed in the map, in the log -> answer
//!   few free      -> cleaning: copies of what a segment holds -> map -> commit -> TRIM of the segment
//! ```
//!
//! - `command.rs`: commands, and the order in which they take effect. `reads.rs`, `writes.rs`: how they
//!   go on; `partial_units.rs`: changes of a part of a unit.
//! - `layout.rs`: where the log and the data are. `map.rs`, `space.rs`: where units are, and where the next one goes.
//! - `cleaning.rs`: which segment is cleaned, and how.
//! - `target.rs`: the drive's segments, or its zones.
//! - `log.rs`, `commit.rs`: what a log block says, and when it is written. `recovery.rs`: the map from the log.
//!
//! The layer promises what a drive with a volatile write cache does: what a flush or FUA write covered is there after a crash of
//! the host and after a power cut; what nothing covered may be lost. A power cut of the drive alone loses nothing: what was in
//! flight is sent again.

mod cleaning;
mod command;
mod commit;
mod config;
mod layout;
mod log;
mod map;
mod metrics;
mod partial_units;
mod reads;
mod recovery;
mod space;
mod target;
mod unreadable;
mod writes;

use std::collections::VecDeque;

use ssdlab_base::{Op, Request};
use ssdlab_device::Status;

use crate::layer::{Array, Ended, Engine, Io, Layer, Slots, Turn, units_of, whole_units_of, widened};
use crate::layers::Below;
use crate::{Device, Identity, LayerError, LayerKind, LayerMetrics, Loss, Traffic};

use cleaning::{Copy, Moved, Victim};
use command::State;
use commit::Log;
pub(crate) use config::LAYER;
pub use config::{AppendConfig, Cleaning};
use layout::{LOST, Layout};
use map::Map;
use metrics::Counts;
use space::Space;
use target::{Reported, Target};
use unreadable::Lost;
use writes::Write;

/// What a command below is for.
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    /// A part of a read.
    Read {
        slot: u32,
        part: usize,
    },
    /// The read of a unit that a change covers in part: the last of the change's units, or the first.
    Edge {
        slot: u32,
        is_last: bool,
    },
    /// A write, by its number.
    Write(u32),
    /// A read of a copy, for its units from `first` on.
    CopyRead {
        copy: u32,
        first: usize,
    },
    /// The write of a copy.
    CopyWrite(u32),
    Commit,
    /// Pages of the map, for a checkpoint.
    Map,
    /// A TRIM, or what zones have in its place; also what makes a zone full.
    Trim,
}

/// How often a unit is read again before it counts as lost.
const READS: u32 = 8;

/// Whether a write or TRIM below did nothing: a power cut came between, or another command before it did not do its part.
const fn is_void(status: Status) -> bool {
    matches!(status, Status::Aborted | Status::Refused(_))
}

/// The layer.
pub struct Append {
    io: Io<Purpose, State>,
    target: Target,
    config: AppendConfig,
    layout: Layout,
    /// Units of a write of cleaning at most.
    copy_units: u32,

    /// Commands that wait for places.
    for_room: VecDeque<u32>,
    /// A command on which others may wait has ended, or taken effect.
    has_ended: bool,
    writes: Slots<Write>,
    /// Units of the host's in these.
    units_in_flight: usize,

    map: Map,
    lost: Lost,
    space: Space,
    victim: Option<Victim>,
    copies: Slots<Copy>,
    /// The memory of the last victim's list.
    moved: Vec<Moved>,
    /// Copies that found no place.
    parked: Vec<u32>,
    /// Segments that hold nothing: those that no commit covers, and those that wait for reads of them.
    cleaned: Vec<u32>,
    to_trim: Vec<u32>,
    log: Log,
    /// The drive takes no more writes.
    stuck: Option<Status>,

    counts: Counts,
}

impl Append {
    /// A layer above a drive with segments or zones: a new one, or one that a layer `append` wrote.
    ///
    /// # Errors
    /// The drive has too few segments, does not give back what the layer keeps, or has data that no such layer wrote.
    pub fn new(below: Box<dyn Device>, config: AppendConfig) -> Result<Append, LayerError> {
        let (unit_bytes, cell) = (below.identify().unit_bytes, below.sector_data_bytes());
        let mut array = Array::new(vec![below]);
        let (target, segments) = Target::report(&mut array)?;
        let (segment, most_active) = (target.segment_sectors(), target.limit());
        let below = Below { sectors: segment * segments.len() as u64, unit_bytes, segment: Some(segment), most_active };
        let layout = Layout::new(&below, &config)?;
        let found = recovery::find(&mut array, target, &layout, &segments, cell)?;
        let mut map = Map::new(&layout);
        for (unit, place) in (0..).zip(found.places) {
            if place <= LOST {
                map.set(unit, place);
            }
        }
        let space = Space::new(&layout, |segment| map.valid(segment) > 0);
        let mut layer = Append {
            io: Io::new(array, &LAYER),
            target,
            copy_units: ((config.copy_size / u64::from(unit_bytes)) as u32).max(1),
            for_room: VecDeque::new(),
            has_ended: false,
            writes: Slots::new(),
            units_in_flight: 0,
            map,
            lost: found.lost,
            space,
            victim: None,
            copies: Slots::new(),
            moved: Vec::new(),
            parked: Vec::new(),
            cleaned: Vec::new(),
            to_trim: Vec::new(),
            log: Log::found(found.area, found.serial, found.newest),
            stuck: None,
            counts: Counts::default(),
            config,
            layout,
        };
        layer.trim_free(&segments);
        layer.finish_active(|layer, segment| segments[segment as usize].is_active && layer.holds_something(segment));
        // The log goes on behind a checkpoint: what a crash left of the last commit stays behind it.
        layer.work();
        layer.come_to_rest();
        layer.counts = Counts::default();
        layer.io.array.sent = Traffic::default();
        Ok(layer)
    }

    /// Trims free segments that are written: a crash came between.
    fn trim_free(&mut self, segments: &[Reported]) {
        let is_left = |segment: &u32| !segments[*segment as usize].is_free && self.map.valid(*segment) == 0;
        let left: Vec<u32> = self.layout.data_segments().filter(is_left).collect();
        for run in left.chunk_by(|a, b| *b == *a + 1) {
            self.trim(run[0], run.len() as u32);
        }
    }

    /// Whether a segment is one of the log, or holds units.
    fn holds_something(&self, segment: u32) -> bool {
        !self.layout.data_segments().contains(&segment) || self.map.valid(segment) > 0
    }

    /// Makes segments full that the layer does not go on writing, where the drive limits how many are written in part. An area of the
    /// log keeps one such segment until a checkpoint trims the area: to fill it would cost more than it frees.
    fn finish_active(&mut self, is_active: impl Fn(&Append, u32) -> bool) {
        if self.target.limit() == 0 {
            return;
        }
        let active = |layer: &Append, segments: std::ops::Range<u32>| -> Vec<u32> {
            segments.filter(|segment| is_active(layer, *segment)).collect()
        };
        let mut segments = active(self, self.layout.data_segments());
        for area in 0..2 {
            segments.extend(active(self, self.layout.log_segments(area)).into_iter().skip(1));
        }
        for segment in segments {
            if let Some(finish) = self.target.finish(segment) {
                self.counts.finished_segments += 1;
                self.send(finish, &[], Purpose::Trim);
            }
        }
    }

    /// Sends a command below, whose sectors are those of the layout if it is block I/O.
    fn send(&mut self, request: Request, cells: &[u8], purpose: Purpose) {
        self.io.array.send(0, self.target.addressed(request), cells, purpose);
    }

    /// Bytes kept of a unit.
    const fn unit_cells(&self) -> usize {
        self.layout.per_unit as usize * self.io.cell
    }

    /// The power of the drive was lost: what was in flight comes back unsuccessful, and is sent again.
    fn power_was_lost(&mut self) {
        self.space.power_was_lost();
        // Before anything is sent again: zones that lost a reset or a write are active beside those that are opened now.
        let is_active = |layer: &Append, segment| {
            layer.target.look(layer.io.array.device(0), segment).is_some_and(|reported| reported.is_active)
        };
        for segment in self.space.all_free() {
            if is_active(self, segment) {
                self.trim_again(segment);
            }
        }
        self.finish_active(is_active);
        self.log.power_was_lost();
        self.give_up_copies();
        self.has_ended = true;
    }
}

impl Layer for Append {
    const KIND: LayerKind = LAYER;
    const HOLDS_INSTANT: bool = true;
    type Purpose = Purpose;
    type State = State;

    fn io(&self) -> &Io<Purpose, State> {
        &self.io
    }

    fn io_mut(&mut self) -> &mut Io<Purpose, State> {
        &mut self.io
    }

    fn capacity(&self) -> u64 {
        u64::from(self.layout.units) * self.layout.per_unit
    }

    fn extent(&self, request: &Request) -> Request {
        widened(request, self.layout.per_unit)
    }

    /// A write of whole units needs nothing of what earlier commands do, so it may be sent before they have ended.
    fn passes(&self, request: &Request) -> bool {
        request.op == Op::Write && self.units_of(request) == self.whole_units_of(request)
    }

    fn start(&mut self, slot: u32, turn: Turn) {
        match (turn, self.io.command(slot).state.has_begun) {
            (Turn::Free, true) => self.has_its_turn(slot),
            (Turn::Free, false) => self.begin(slot),
            (Turn::Passes, false) => self.begin_early(slot),
            (Turn::Passes | Turn::Waits, _) => {}
        }
    }

    fn ended(&mut self, part: Ended<Purpose>) {
        let part = Ended { request: self.target.located(part.request), ..part };
        let status = part.status;
        self.target.check(status);
        match part.purpose {
            Purpose::Read { slot, part: index } => self.read_part_ended(part, slot, index),
            Purpose::Edge { slot, is_last } => self.edge_ended(part, slot, is_last),
            Purpose::Write(write) => self.write_ended(part, write),
            Purpose::CopyRead { copy, first } => self.copy_read_ended(&part, copy, first),
            Purpose::CopyWrite(copy) => self.copy_write_ended(status, copy),
            Purpose::Commit => self.commit_write_ended(status),
            Purpose::Map => self.map_write_ended(status),
            Purpose::Trim if status == Status::Success || is_void(status) => {}
            Purpose::Trim => self.stop_writing(status),
        }
    }

    fn proceed(&mut self) -> bool {
        self.give_up();
        self.clean();
        self.commit_if_due();
        self.write_map();
        self.trim_cleaned();
        self.give_places();
        let has_ended = std::mem::take(&mut self.has_ended);
        self.start_ready();
        has_ended || self.has_ended
    }

    /// What was in flight is sent again.
    fn power_lost(&mut self, _: usize, _: Loss) -> Loss {
        self.power_was_lost();
        Loss::Nothing
    }

    fn mapped(&self, sector: u64, end: u64) -> (bool, u64) {
        let (per_unit, end) = (self.layout.per_unit, end.min(self.capacity()));
        let (first, last) = ((sector / per_unit) as u32, end.div_ceil(per_unit) as u32);
        let kind = self.map.holds(first);
        let other = (first..last).find(|unit| self.map.holds(*unit) != kind).unwrap_or(last);
        (kind, (u64::from(other) * per_unit).min(end))
    }

    fn expect(&mut self, requests: &[Request]) {
        let known = requests.iter().filter(|request| request.sector < self.capacity());
        self.map.prefetch(known.map(|request| (request.sector / self.layout.per_unit) as u32));
    }

    /// Until a flush the newest places are in the host's memory alone.
    fn identity(&self, below: Identity) -> Identity {
        Identity { has_write_cache: true, has_host_cache: true, ..below }
    }

    fn metrics(&self) -> LayerMetrics {
        LayerMetrics { configuration: self.config.shown(), figures: self.figures(), ..LayerMetrics::default() }
    }

    fn reset_counts(&mut self) {
        self.counts = Counts::default();
    }
}

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
mod device;
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

use ssdlab_base::{Nanos, Request};
use ssdlab_device::path::Path;
use ssdlab_device::{Completion, Status};

use crate::layer::{Array, Ended, Overlaps, Slots};
use crate::layers::Below;
use crate::{LayerError, Traffic};

use cleaning::{Copy, Moved, Victim};
use command::Command;
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

/// Whose a command below is, in the bits above the number of it.
const KIND: u32 = 60;
const READ: u64 = 0;
const EDGE: u64 = 1;
const WRITE: u64 = 2;
const COPY_READ: u64 = 3;
const COPY_WRITE: u64 = 4;
const COMMIT: u64 = 5;
const MAP: u64 = 6;
const TRIM: u64 = 7;

/// How often a unit is read again before it counts as lost.
const READS: u32 = 8;

/// Whether a write or TRIM below did nothing: a power cut came between, or another command before it did not do its part.
const fn is_void(status: Status) -> bool {
    matches!(status, Status::Aborted | Status::Refused(_))
}

/// The layer.
pub struct Append {
    array: Array<u64>,
    target: Target,
    config: AppendConfig,
    layout: Layout,
    /// Bytes kept of a sector.
    cell: usize,
    /// Units of a write of cleaning at most.
    copy_units: u32,

    commands: Slots<Command>,
    overlaps: Overlaps,
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

    numbers: u64,
    order: u64,
    outstanding: u64,
    taken: Traffic,
    counts: Counts,
    completions: Vec<Completion>,
    read_data: Vec<(u32, Vec<u8>)>,
    paths: Vec<Path>,
    ended: Vec<Ended<u64>>,
}

impl Append {
    /// A layer above a drive with segments or zones: a new one, or one that a layer `append` wrote.
    ///
    /// # Errors
    /// The drive has too few segments, does not give back what the layer keeps, or has data that no such layer wrote.
    pub fn new(below: Box<dyn crate::Device>, config: AppendConfig) -> Result<Append, LayerError> {
        let (unit_bytes, cell) = (below.identify().unit_bytes, below.cell_bytes());
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
        let array = array.for_layer(false);
        let mut layer = Append {
            array,
            target,
            cell,
            copy_units: ((config.copy_size / u64::from(unit_bytes)) as u32).max(1),
            commands: Slots::new(),
            overlaps: Overlaps::default(),
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
            numbers: 0,
            order: 0,
            outstanding: 0,
            taken: Traffic::default(),
            counts: Counts::default(),
            completions: Vec::new(),
            read_data: Vec::new(),
            paths: Vec::new(),
            ended: Vec::new(),
            config,
            layout,
        };
        layer.trim_free(&segments);
        layer.finish_active(|layer, segment| segments[segment as usize].is_active && layer.holds_something(segment));
        // The log goes on behind a checkpoint: what a crash left of the last commit stays behind it.
        layer.work();
        layer.come_to_rest();
        layer.counts = Counts::default();
        layer.array.sent = Traffic::default();
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
                self.send(finish, &[], TRIM << KIND);
            }
        }
    }

    /// Sends a command below, whose sectors are those of the layout if it is block I/O.
    fn send(&mut self, request: Request, cells: &[u8], owner: u64) {
        self.array.send(0, self.target.addressed(request), cells, owner);
    }

    /// Bytes kept of a unit.
    const fn unit_cells(&self) -> usize {
        self.layout.per_unit as usize * self.cell
    }

    /// A command below has ended.
    fn part_ended(&mut self, part: Ended<u64>) {
        let part = Ended { request: self.target.located(part.request), ..part };
        self.target.check(part.completion.status);
        match part.purpose >> KIND {
            READ => self.read_part_ended(part),
            EDGE => self.edge_ended(part),
            WRITE => self.write_ended(part),
            COPY_READ => self.copy_read_ended(&part),
            COPY_WRITE => self.copy_write_ended(&part),
            COMMIT => self.commit_write_ended(&part),
            MAP => self.map_write_ended(&part),
            _ => match part.completion.status {
                Status::Success => {}
                status if is_void(status) => {}
                status => self.stop_writing(status),
            },
        }
    }

    /// Runs until none of the layer's own commands is below.
    fn come_to_rest(&mut self) {
        while self.array.in_flight(0) > 0 {
            assert!(self.step(Nanos::MAX), "the drive never answers a command of the layer's");
        }
    }

    /// The power of the drive was lost: what was in flight comes back unsuccessful, and is sent again.
    fn power_was_lost(&mut self) {
        self.space.power_was_lost();
        // Before anything is sent again: zones that lost a reset or a write are active beside those that are opened now.
        let is_active = |layer: &Append, segment| {
            layer.target.look(layer.array.device(0), segment).is_some_and(|reported| reported.is_active)
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

    /// Runs up to the next completion below, and not beyond `until`; false if there is nothing to do. Most of the drive's events
    /// complete nothing, and the layer looks at none of them.
    fn step(&mut self, until: Nanos) -> bool {
        let any = self.array.step(until);
        self.work();
        any
    }

    /// Takes what has ended below, sends what waited for it, and answers; until there is no more to do now.
    fn work(&mut self) {
        loop {
            let mut ended = std::mem::take(&mut self.ended);
            self.array.take(&mut ended);
            let any = !ended.is_empty();
            for part in ended.drain(..) {
                self.part_ended(part);
            }
            self.ended = ended;
            self.give_up();
            self.clean();
            self.commit_if_due();
            self.write_map();
            self.trim_cleaned();
            self.give_places();
            let has_ended = std::mem::take(&mut self.has_ended);
            self.begin_ready();
            if !any && !has_ended && !self.has_ended && !self.array.any_has_ended() {
                return;
            }
        }
    }
}

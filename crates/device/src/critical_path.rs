//! The way of a request through the drive: what each stretch of its latency was, in order and without a gap.
//!
//! A request completes when the last thing that it waits for has ended. Its path follows that chain: what others did
//! meanwhile, and what ended earlier, is not part of it. `docs/latency.md` describes every part.

use ssdlab_base::{Nanos, Request};
use ssdlab_flash::{Cause, OpKind, Stay};

/// On whose behalf a stretch passed: what the request could not go on without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Itself: its own commands, data and flash operations.
    Request,
    /// Space in the write buffer, which is full.
    BufferFull,
    /// A free block, which garbage collection has to erase.
    NoFreeBlock,
    /// Garbage collection, which is paced: free pages are there, and relocation has to go on before the host takes them.
    Pace,
    /// An earlier request to the same sectors, which waits itself.
    Overlap,
    /// A mapping page.
    Map,
    /// The controller's own records (trim state...).
    Records,
}

/// What a stretch was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// In the host's layers above the drive, but for the three that follow.
    HostLayers,
    /// In a layer, behind an earlier command on the same sectors.
    LayerOverlap,
    /// In a layer, for space that its cleaning, copies or remaps free.
    LayerSpace,
    /// In a layer, for a copy or a remap of the same sectors.
    LayerCopy,
    /// In its submission queue, as the drive takes no more commands.
    Arbitration,
    /// The controller's time for a command.
    Controller,
    /// The controller's processor was at work on others' commands.
    ControllerWait,
    /// Others' data was on the link.
    LinkWait,
    /// Its own data was on the link.
    Link,
    /// The write buffer's latency.
    BufferLatency,
    /// The controller copied its data in DRAM, after what others had it copy before.
    Copy,
    /// No operation explains it: what ended the wait was started by another request.
    Other,
    /// On the chips.
    Flash(Stay),
}

/// A stretch of a request's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// On whose behalf.
    pub stage: Stage,
    /// What it was.
    pub part: Part,
    /// From.
    pub from: Nanos,
    /// To.
    pub to: Nanos,
}

/// A completed request's path: its segments follow one another from submission to completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// The request.
    pub request: Request,
    /// In order of time; none is empty.
    pub segments: Vec<Segment>,
}

impl Stage {
    /// All stages, in the order of their numbers.
    pub const ALL: [Stage; 7] = [
        Stage::Request,
        Stage::BufferFull,
        Stage::NoFreeBlock,
        Stage::Pace,
        Stage::Overlap,
        Stage::Map,
        Stage::Records,
    ];

    /// The stage of an operation that a request waits for itself.
    pub(crate) const fn of(cause: Cause) -> Stage {
        match cause {
            Cause::Mapping => Stage::Map,
            Cause::Metadata => Stage::Records,
            _ => Stage::Request,
        }
    }

    /// What results put before the part's key.
    pub const fn prefix(self) -> &'static str {
        match self {
            Stage::Request => "",
            Stage::BufferFull => "buffer_full/",
            Stage::NoFreeBlock => "no_free_block/",
            Stage::Pace => "gc_pace/",
            Stage::Overlap => "overlap/",
            Stage::Map => "map/",
            Stage::Records => "records/",
        }
    }
}

/// Parts outside the chips.
const OUTSIDE: [Part; 12] = [
    Part::HostLayers,
    Part::Arbitration,
    Part::Controller,
    Part::ControllerWait,
    Part::LinkWait,
    Part::Link,
    Part::BufferLatency,
    Part::Other,
    Part::LayerOverlap,
    Part::LayerSpace,
    Part::LayerCopy,
    Part::Copy,
];

const CHANNEL: usize = OUTSIDE.len() + 4;
const ARRAY: usize = CHANNEL + Cause::COUNT;
const DIE: usize = ARRAY + OpKind::ALL.len();

impl Part {
    /// How many parts there are.
    pub const COUNT: usize = DIE + OpKind::ALL.len() * Cause::COUNT;

    /// The part's number, below [`Part::COUNT`].
    pub const fn number(self) -> usize {
        match self {
            Part::HostLayers => 0,
            Part::Arbitration => 1,
            Part::Controller => 2,
            Part::ControllerWait => 3,
            Part::LinkWait => 4,
            Part::Link => 5,
            Part::BufferLatency => 6,
            Part::Other => 7,
            Part::LayerOverlap => 8,
            Part::LayerSpace => 9,
            Part::LayerCopy => 10,
            Part::Copy => 11,
            Part::Flash(Stay::Order) => OUTSIDE.len(),
            Part::Flash(Stay::Suspend) => OUTSIDE.len() + 1,
            Part::Flash(Stay::Transfer) => OUTSIDE.len() + 2,
            Part::Flash(Stay::Issue) => OUTSIDE.len() + 3,
            Part::Flash(Stay::Channel(cause)) => CHANNEL + cause as usize,
            Part::Flash(Stay::Array(kind)) => ARRAY + kind as usize,
            Part::Flash(Stay::Die(kind, cause)) => DIE + kind as usize * Cause::COUNT + cause as usize,
        }
    }

    /// The part of a number.
    pub const fn numbered(number: usize) -> Part {
        assert!(number < Part::COUNT);
        if number < OUTSIDE.len() {
            return OUTSIDE[number];
        }
        Part::Flash(match number - OUTSIDE.len() {
            0 => Stay::Order,
            1 => Stay::Suspend,
            2 => Stay::Transfer,
            3 => Stay::Issue,
            _ if number < ARRAY => Stay::Channel(Cause::ALL[number - CHANNEL]),
            _ if number < DIE => Stay::Array(OpKind::ALL[number - ARRAY]),
            _ => Stay::Die(OpKind::ALL[(number - DIE) / Cause::COUNT], Cause::ALL[(number - DIE) % Cause::COUNT]),
        })
    }

    /// The key in results.
    pub fn key(self) -> String {
        let kind = |kind: OpKind| match kind {
            OpKind::Read => "read",
            OpKind::Program => "program",
            OpKind::Erase => "erase",
            OpKind::Copyback => "copyback",
        };
        match self {
            Part::HostLayers => "host_layers".to_string(),
            Part::Arbitration => "arbitration".to_string(),
            Part::Controller => "controller".to_string(),
            Part::ControllerWait => "controller_wait".to_string(),
            Part::LinkWait => "link_wait".to_string(),
            Part::Link => "link".to_string(),
            Part::BufferLatency => "buffer_latency".to_string(),
            Part::Other => "other".to_string(),
            Part::LayerOverlap => "layer_overlap".to_string(),
            Part::LayerSpace => "layer_space".to_string(),
            Part::LayerCopy => "layer_copy".to_string(),
            Part::Copy => "copy".to_string(),
            Part::Flash(Stay::Order) => "page_order".to_string(),
            Part::Flash(Stay::Suspend) => "suspend".to_string(),
            Part::Flash(Stay::Transfer) => "transfer".to_string(),
            Part::Flash(Stay::Issue) => "issue".to_string(),
            Part::Flash(Stay::Channel(cause)) => format!("channel_{}", cause.key()),
            Part::Flash(Stay::Array(of)) => format!("array_{}", kind(of)),
            Part::Flash(Stay::Die(of, cause)) => format!("behind_{}_{}", kind(of), cause.key()),
        }
    }
}

impl Segment {
    /// How long it is.
    pub const fn length(&self) -> Nanos {
        Nanos(self.to.0 - self.from.0)
    }

    /// Its stage and part as results name them, such as `buffer_full/behind_program_gc`.
    pub fn key(&self) -> String {
        format!("{}{}", self.stage.prefix(), self.part.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_numbers_are_one_to_one_and_keys_differ() {
        let parts: Vec<Part> = (0..Part::COUNT).map(Part::numbered).collect();
        assert!(parts.iter().enumerate().all(|(number, part)| part.number() == number));
        let mut keys: Vec<String> = parts.iter().map(|part| part.key()).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), Part::COUNT);
    }

    #[test]
    fn what_a_request_waits_for_itself_is_told_apart_by_the_operations_cause() {
        assert_eq!(Stage::of(Cause::Mapping), Stage::Map);
        assert_eq!(Stage::of(Cause::Metadata), Stage::Records);
        assert_eq!(Stage::of(Cause::Gc), Stage::Request);
        let segment =
            Segment { stage: Stage::Map, part: Part::Flash(Stay::Array(OpKind::Read)), from: Nanos(3), to: Nanos(5) };
        assert_eq!((segment.key().as_str(), segment.length()), ("map/array_read", Nanos(2)));
    }
}

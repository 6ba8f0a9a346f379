//! What layers above several devices share: the devices in step, commands on their way below, and the order of those that
//! overlap.

mod overlaps;
mod parts;
mod units;

pub(crate) use overlaps::{Overlaps, Turn, changes};
pub(crate) use parts::{Array, Ended};
pub(crate) use units::{units_of, whole_units_of, widened};

use ssdlab_base::{Nanos, Request, SECTOR_BYTES};
use ssdlab_device::path::{Part, Path, Segment, Stage};
use ssdlab_device::{Completion, Status};

/// A layer above several devices, as it goes through time.
pub(crate) trait OverArray {
    /// Its devices.
    fn array(&mut self) -> &mut Array;

    /// Whether it holds an answer that the caller has not taken yet.
    fn has_answered(&self) -> bool;

    /// Takes what has ended below, sends what waited for it, and answers; until there is no more to do now.
    fn work(&mut self);

    /// Runs step by step up to `until`: what a completion lets in goes at that very time.
    fn step_until(&mut self, until: Nanos) {
        loop {
            while self.array().step(until) {
                self.work();
            }
            self.array().advance(until);
            if !self.array().any_has_ended() {
                return;
            }
            self.work();
        }
    }

    /// Runs step by step up to `until`, but stops at the first answer; true if there is one.
    fn step_to_answer(&mut self, until: Nanos) -> bool {
        loop {
            while !self.has_answered() && self.array().step(until) {
                self.work();
            }
            let now = self.array().now();
            self.array().advance(now);
            if !self.array().any_has_ended() {
                return self.has_answered();
            }
            self.work();
        }
    }
}

/// The completion of a command from above.
pub(crate) fn completion(request: &Request, status: Status, at: Nanos, order: u64) -> Completion {
    Completion {
        tag: request.tag,
        op: request.op,
        has_answer: false,
        status,
        submitted: request.at,
        at,
        order,
        bytes: request.sectors.saturating_mul(SECTOR_BYTES),
    }
}

/// Why an array of so many sectors does not begin a command: it takes block I/O, and that within its sectors.
pub(crate) fn turned_away(request: &Request, sectors: u64) -> Option<Status> {
    let in_range = request.sector.checked_add(request.sectors).is_some_and(|end| end <= sectors);
    match request.opcode.is_block() {
        false => Some(Status::Unsupported),
        true => (!in_range).then_some(Status::OutOfRange),
    }
}

/// The path of a command whose last part took this path: it waited in the layer until that part was sent, and from its end
/// until `now`.
pub(crate) fn waited_around(request: &Request, below: &Path, now: Nanos) -> Path {
    let end = below.segments.last().map_or(below.request.at, |last| last.to);
    let own = |from, to| Segment { stage: Stage::Request, part: Part::HostLayers, from, to };
    let before = own(request.at, below.request.at);
    let all = [before].into_iter().chain(below.segments.iter().copied()).chain([own(end, now)]);
    Path { request: *request, segments: all.filter(|segment| segment.to > segment.from).collect() }
}

/// The path of a command that ends now, `below` that of its last part: `None` where it had none.
pub(crate) fn path_of(request: &Request, below: Option<&Path>, now: Nanos) -> Path {
    below.map_or_else(|| waited(request, now), |path| waited_around(request, path, now))
}

/// The path of a command that did nothing but wait.
fn waited(request: &Request, until: Nanos) -> Path {
    let segment = Segment { stage: Stage::Request, part: Part::HostLayers, from: request.at, to: until };
    Path { request: *request, segments: (until > request.at).then_some(segment).into_iter().collect() }
}

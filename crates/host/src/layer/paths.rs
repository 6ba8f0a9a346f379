//! What a command waited for in a layer and below it, and how it ended.

use ssdlab_base::{Nanos, Request, SECTOR_BYTES};
use ssdlab_device::critical_path::{Part, Path, Segment, Stage};
use ssdlab_device::{Completion, Status};

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

/// Why a layer of so many sectors does not begin a command: it takes block I/O, and that within its sectors.
pub(crate) fn turned_away(request: &Request, sectors: u64) -> Option<Status> {
    let in_range = request.sector.checked_add(request.sectors).is_some_and(|end| end <= sectors);
    match request.opcode.is_block() {
        false => Some(Status::Unsupported),
        true => (!in_range).then_some(Status::OutOfRange),
    }
}

/// What a command waited for in a layer: when each wait began, in order of time. One ends where the next begins; with
/// [`Part::HostLayers`] the command went on.
#[derive(Debug, Default)]
pub(crate) struct Waits(Vec<(Nanos, Part)>);

impl Waits {
    /// The command waits from now on, as [`Io::begin_wait`](super::Io::begin_wait) has it.
    pub(crate) fn begin(&mut self, now: Nanos, part: Part) {
        assert!(self.0.last().is_none_or(|(since, _)| *since <= now), "waits of a command are in order of time");
        self.0.push((now, part));
    }

    /// The command goes on.
    pub(crate) fn end(&mut self, now: Nanos) {
        if self.0.last().is_some_and(|(_, part)| *part != Part::HostLayers) {
            self.begin(now, Part::HostLayers);
        }
    }

    /// The time between two instants, cut where waits began; no segment is empty.
    fn between(&self, from: Nanos, to: Nanos) -> impl Iterator<Item = Segment> {
        let begins = [(from, Part::HostLayers)].into_iter().chain(self.0.iter().copied());
        let ends = self.0.iter().map(|(since, _)| *since).chain([to]);
        let cut = begins.zip(ends).map(move |((begin, part), end)| {
            let within = |at: Nanos| at.max(from).min(to);
            Segment { stage: Stage::Request, part, from: within(begin), to: within(end) }
        });
        cut.filter(|segment| segment.to > segment.from)
    }
}

/// The path of a command whose last part took this path: it waited in the layer until that part was sent, and from its end
/// until `now`.
pub(crate) fn waited_around(request: &Request, waits: &Waits, below: &Path, now: Nanos) -> Path {
    let end = below.segments.last().map_or(below.request.at, |last| last.to);
    let before = waits.between(request.at, below.request.at);
    let all = before.chain(below.segments.iter().copied()).chain(waits.between(end, now));
    Path { request: *request, segments: all.collect() }
}

/// The path of a command that ends now, `below` that of its last part: `None` where it had none.
pub(crate) fn path_of(request: &Request, waits: &Waits, below: Option<&Path>, now: Nanos) -> Path {
    let waited = || Path { request: *request, segments: waits.between(request.at, now).collect() };
    below.map_or_else(waited, |path| waited_around(request, waits, path, now))
}

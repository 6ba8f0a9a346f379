//! What drives with a command set tell of themselves: refusals by reason, and their segments.

use ssdlab_base::command_sets::segments::{Segment, SegmentShape, SegmentState};
use ssdlab_device::{Drive, ReadUnwritten};
use ssdlab_host::{Device, Part};

use super::Engine;
use crate::segments::{SegmentReport, runs};
use crate::target::Appends;

/// A drive with a command set, at one moment.
#[derive(Clone, Debug)]
pub struct SetFigures {
    /// What the stack calls the drive.
    pub drive: String,
    /// The set's name.
    pub set: &'static str,
    /// Commands refused since the start of serving, by reason.
    pub refused: Vec<(&'static str, u64)>,
    /// Counts of its segments, where it has any.
    pub segments: Option<SegmentFigures>,
}

/// A drive's segments in numbers.
#[derive(Clone, Copy, Debug)]
pub struct SegmentFigures {
    /// What they have in common.
    pub shape: SegmentShape,
    /// How many there are of each state, in the order of [`SegmentState::ALL`].
    pub states: [u64; 4],
}

/// The rules of a device that is a drive with segments and no layer.
pub(super) fn appends_of(device: &dyn Device) -> Option<Appends> {
    match device.drives().as_slice() {
        [Part { device: drive, .. }] if device.layers().is_empty() => {
            let zeroes = drive.config().interface.read_unwritten == ReadUnwritten::Zeroes;
            drive.segments().map(|shape| Appends { shape, zeroes })
        }
        _ => None,
    }
}

/// The segments of a drive from `first` on, at most `count`.
pub(super) fn segments_of(drive: &Drive, first: u64, count: u64) -> impl Iterator<Item = Segment> {
    let end = first.saturating_add(count).min(drive.segments().map_or(0, |shape| shape.count));
    (first..end).filter_map(|number| drive.segment(number))
}

/// What the drives of a device tell that have a command set. `by_transport` are refusals that a bare drive did not hear of.
pub(super) fn of_sets(device: &dyn Device, by_transport: &[u64]) -> Vec<SetFigures> {
    let one = |part: &Part<&Drive>| {
        let set = part.device.command_set()?;
        let refused = part.device.counters().refused;
        let counts = refused.iter().zip(by_transport).map(|(drive, transport)| drive + transport);
        let segments = part.device.segments().map(|shape| {
            let mut states = [0; SegmentState::ALL.len()];
            segments_of(part.device, 0, shape.count).for_each(|segment| states[segment.state as usize] += 1);
            SegmentFigures { shape, states }
        });
        let refused = set.refusals.iter().copied().zip(counts).collect();
        Some(SetFigures { drive: part.name.clone(), set: set.name, refused, segments })
    };
    device.drives().iter().filter_map(one).collect()
}

impl Engine {
    /// The segments of every drive that has them. Commands in flight count as done.
    pub fn segment_reports(&self) -> Vec<SegmentReport> {
        let state = self.shared.lock();
        let parts = state.device.drives();
        let figures = of_sets(&*state.device, &state.refused_by_transport);
        let report = |figures: SetFigures| {
            let shape = figures.segments?.shape;
            let drive = parts.iter().find(|part| part.name == figures.drive)?.device;
            Some(SegmentReport { runs: runs(0, segments_of(drive, 0, shape.count)), shape, figures })
        };
        figures.into_iter().filter_map(report).collect()
    }
}

//! Reports of segments: runs of segments that are alike, as JSON and as text.

use std::fmt::Write as _;

use serde_json::{Value, json};
use ssdlab_base::SECTOR_BYTES;
use ssdlab_base::command_sets::segments::{Segment, SegmentShape, SegmentState};

use crate::engine::SetFigures;

/// Segments that follow one another and are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The number of the first.
    pub first: u64,
    /// How many.
    pub count: u64,
    /// What each of them is.
    pub segment: Segment,
}

/// A drive's segments.
#[derive(Clone, Debug)]
pub struct SegmentReport {
    /// The drive, its counts and refusals.
    pub figures: SetFigures,
    /// What its segments have in common.
    pub shape: SegmentShape,
    /// All of them, from the first on.
    pub runs: Vec<Run>,
}

/// Joins neighbours that are alike; the first segment has the number `first`.
pub fn runs(first: u64, segments: impl IntoIterator<Item = Segment>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (number, segment) in (first..).zip(segments) {
        match runs.last_mut() {
            Some(run) if run.segment == segment => run.count += 1,
            _ => runs.push(Run { first: number, count: 1, segment }),
        }
    }
    runs
}

/// A line a run: the numbers of its segments, their state, and their written bytes.
pub fn text(runs: &[Run]) -> String {
    let mut text = String::new();
    for Run { first, count, segment } in runs {
        let last = first + count - 1;
        let numbers = if *count == 1 { first.to_string() } else { format!("{first}-{last}") };
        let _ = writeln!(text, "{numbers} {} {}", segment.state.name(), segment.written * SECTOR_BYTES);
    }
    text
}

/// What a drive says of its command set, without a list of segments.
pub(crate) fn set_json(figures: &SetFigures) -> Value {
    let refused: serde_json::Map<String, Value> =
        figures.refused.iter().map(|(reason, count)| ((*reason).to_string(), json!(count))).collect();
    let mut value = json!({ "drive": figures.drive, "set": figures.set, "refused": refused });
    if let Some(segments) = &figures.segments {
        let states: serde_json::Map<String, Value> = SegmentState::ALL
            .iter()
            .zip(segments.states)
            .map(|(state, count)| (state.name().to_string(), json!(count)))
            .collect();
        value["segments"] = json!({
            "count": segments.shape.count,
            "bytes": segments.shape.sectors * SECTOR_BYTES,
            "write_unit": segments.shape.write_unit * SECTOR_BYTES,
            "states": states,
        });
    }
    value
}

/// The reports as one line of JSON.
pub fn reports_json(reports: &[SegmentReport]) -> String {
    let drive = |report: &SegmentReport| {
        let mut value = set_json(&report.figures);
        let run = |run: &Run| {
            json!({
                "first": run.first,
                "count": run.count,
                "state": run.segment.state.name(),
                "written": run.segment.written * SECTOR_BYTES,
            })
        };
        value["segments"]["runs"] = report.runs.iter().map(run).collect();
        value
    };
    json!({ "format": 1, "drives": reports.iter().map(drive).collect::<Vec<_>>() }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_that_are_alike_are_one_run() {
        let segment = |state, written| Segment { state, written };
        let (full, free) = (segment(SegmentState::Full, 512), segment(SegmentState::Free, 0));
        let open = segment(SegmentState::Open, 8);
        let found = runs(7, [full, full, open, segment(SegmentState::Open, 16), free, free, free]);
        let lines = "7-8 full 262144\n9 open 4096\n10 open 8192\n11-13 free 0\n";
        assert_eq!(text(&found), lines);
        assert_eq!(found.iter().map(|run| run.count).sum::<u64>(), 7);
        assert_eq!(runs(0, []), []);
    }
}

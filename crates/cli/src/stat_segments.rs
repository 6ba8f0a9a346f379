//! `ssdlab stat --segments`: the append-only segments of a served stack, by drive.

use std::fmt::Write as _;
use std::ops::RangeInclusive;

use serde_json::{Value, json};
use ssdlab_base::command_sets::segments::SegmentState;

use crate::failure::Failure;

/// Which segments are listed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    /// Of one drive alone.
    pub(crate) drive: Option<String>,
    /// Their numbers.
    pub(crate) range: Option<RangeInclusive<u64>>,
    /// Their states.
    pub(crate) states: Vec<SegmentState>,
}

impl Selection {
    fn is_any(&self) -> bool {
        self.range.is_some() || !self.states.is_empty()
    }

    /// Leaves the drive that is asked for.
    fn drives(&self, drives: &mut Vec<Value>) -> Result<(), Failure> {
        if drives.is_empty() {
            return Err(Failure::input("--segments: the server has no drive with segments"));
        }
        let Some(asked) = &self.drive else { return Ok(()) };
        let names: Vec<&str> = drives.iter().filter_map(|drive| drive["drive"].as_str()).collect();
        if !names.contains(&asked.as_str()) {
            return Err(Failure::input(format!("--drive {asked}: expected {}", names.join(" or "))));
        }
        drives.retain(|drive| drive["drive"] == asked.as_str());
        Ok(())
    }

    /// What a run has of the range and the states, as its first segment and how many.
    fn part_of(&self, run: &Value) -> Option<(u64, u64)> {
        let is_of_state = |state: &SegmentState| run["state"] == state.name();
        if !self.states.is_empty() && !self.states.iter().any(is_of_state) {
            return None;
        }
        let (first, count) = (run["first"].as_u64()?, run["count"].as_u64()?);
        let range = self.range.clone().unwrap_or(0..=u64::MAX);
        let (from, to) = (first.max(*range.start()), (first + count - 1).min(*range.end()));
        (from <= to).then(|| (from, to + 1 - from))
    }
}

/// What the server told, as it is printed: JSON, or a summary of each drive and a line for each selected segment.
pub(crate) fn shown(mut told: Value, selection: &Selection, as_json: bool) -> Result<String, Failure> {
    let Some(drives) = told["drives"].as_array_mut() else {
        return Err(Failure::work(format!("the server answered {told}")).hint("its version cannot report segments"));
    };
    selection.drives(drives)?;
    for drive in drives.iter_mut() {
        let count = drive["segments"]["count"].as_u64().unwrap_or(0);
        if let Some(range) = selection.range.as_ref().filter(|range| *range.end() >= count) {
            let last = count.saturating_sub(1);
            let name = drive["drive"].as_str().unwrap_or("");
            let (from, to) = (range.start(), range.end());
            return Err(Failure::input(format!("--range {from}-{to}: {name} has the segments 0 to {last}")));
        }
        let Some(runs) = drive["segments"]["runs"].as_array_mut() else { continue };
        runs.retain_mut(|run| {
            let Some((first, count)) = selection.part_of(run) else { return false };
            run["first"] = json!(first);
            run["count"] = json!(count);
            true
        });
    }
    if as_json {
        return Ok(told.to_string());
    }
    Ok(drives.iter().map(|drive| one_drive(drive, selection.is_any())).collect::<String>().trim_end().to_string())
}

/// A drive's lines.
fn one_drive(drive: &Value, with_list: bool) -> String {
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let segments = &drive["segments"];
    let mut text = format!(
        "{}: {} segments of {} bytes, write unit {} bytes\n  {}\n",
        drive["drive"].as_str().unwrap_or(""),
        number(&segments["count"]),
        number(&segments["bytes"]),
        number(&segments["write_unit"]),
        states(segments),
    );
    let refused = drive["refused"].as_object().into_iter().flatten().filter(|(_, count)| number(count) > 0);
    let refused: Vec<String> = refused.map(|(reason, count)| format!("{reason} {}", number(count))).collect();
    let refused = if refused.is_empty() { "no command".to_string() } else { refused.join(", ") };
    let _ = writeln!(text, "  refused: {refused}");
    if !with_list {
        return text;
    }
    let _ = writeln!(text, "  {:>10}  {:6}  {:>14}", "segment", "state", "written");
    for run in segments["runs"].as_array().into_iter().flatten() {
        let first = number(&run["first"]);
        for segment in first..first + number(&run["count"]) {
            let (state, written) = (run["state"].as_str().unwrap_or(""), number(&run["written"]));
            let _ = writeln!(text, "  {segment:>10}  {state:6}  {written:>14}");
        }
    }
    text
}

/// Counts by state, in a line.
pub(crate) fn states(segments: &Value) -> String {
    let counts = SegmentState::ALL.map(|state| {
        let name = state.name();
        format!("{name} {}", segments["states"][name].as_u64().unwrap_or(0))
    });
    counts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Value {
        json!({ "format": 1, "drives": [{
            "drive": "a.0", "set": "segments", "refused": { "overwrite": 0, "gap": 3 },
            "segments": {
                "count": 8, "bytes": 4096, "write_unit": 512, "states": { "free": 4, "open": 1, "full": 3, "closed": 0 },
                "runs": [
                    { "first": 0, "count": 3, "state": "full", "written": 4096 },
                    { "first": 3, "count": 1, "state": "open", "written": 512 },
                    { "first": 4, "count": 4, "state": "free", "written": 0 },
                ],
            },
        }] })
    }

    #[test]
    fn a_summary_lists_no_segment_and_a_selection_a_line_each() {
        let summary = shown(report(), &Selection::default(), false).expect("a summary");
        assert_eq!(
            summary,
            "a.0: 8 segments of 4096 bytes, write unit 512 bytes\n  free 4, open 1, full 3, closed 0\n  refused: gap 3"
        );
        let lines = |selection: &Selection| -> Vec<String> {
            let text = shown(report(), selection, false).expect("a list");
            text.lines().skip(4).map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
        };
        let by_range = Selection { range: Some(1..=4), ..Selection::default() };
        assert_eq!(lines(&by_range), ["1 full 4096", "2 full 4096", "3 open 512", "4 free 0"]);
        let by_state = Selection { states: vec![SegmentState::Open, SegmentState::Free], ..by_range };
        assert_eq!(lines(&by_state), ["3 open 512", "4 free 0"]);
        let json: Value = serde_json::from_str(&shown(report(), &by_state, true).expect("JSON")).expect("JSON");
        let runs = &json["drives"][0]["segments"]["runs"];
        assert_eq!(runs[1], json!({ "first": 4, "count": 1, "state": "free", "written": 0 }), "{runs}");
        assert_eq!(shown(report(), &Selection::default(), true).expect("JSON"), report().to_string(), "all of them");
    }

    #[test]
    fn what_there_is_not_is_refused_with_what_there_is() {
        let refused = |selection: Selection, told: Value| {
            let failure = shown(told, &selection, false).expect_err("refused");
            (failure.status(), failure.to_string())
        };
        let (status, said) = refused(Selection { range: Some(0..=8), ..Selection::default() }, report());
        assert!(status == 2 && said.contains("--range 0-8: a.0 has the segments 0 to 7"), "{said}");
        let (status, said) = refused(Selection { drive: Some("b".to_string()), ..Selection::default() }, report());
        assert!(status == 2 && said.contains("--drive b: expected a.0"), "{said}");
        let (status, said) = refused(Selection::default(), json!({ "format": 1, "drives": [] }));
        assert!(status == 2 && said.contains("no drive with segments"), "{said}");
    }
}

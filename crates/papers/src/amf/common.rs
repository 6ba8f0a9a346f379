//! What several figures need: the paper's capacities, its FTLs, and rows that no input stands behind.

use ssdlab_device::DriveConfig;

use super::trial::Place;
use crate::frame::{Drawn, Lane, Mark, PaperContext, Picture, Point, ReproduceError};

/// What published values of the paper as a whole are held against.
pub(super) const PAPER: &str = "paper";

/// The experiment's drive of an FTL and a capacity: without one it is the prototype, of 512 GB.
pub(super) fn drive_of(ftl: &str, capacity: &str) -> String {
    if capacity == "512 GB" { ftl.to_string() } else { format!("{ftl}, {capacity}") }
}

/// A point that comes from a drive at work, or from a description, and from no input.
pub(super) fn fact(
    (workload, page_size, setting): (&str, &str, &str),
    series: &'static str,
    (value, unit): (f64, &'static str),
    input: &str,
) -> Point {
    Point {
        workload: workload.to_string(),
        page_size: page_size.to_string(),
        setting: setting.to_string(),
        series,
        value,
        unit,
        input: input.to_string(),
        stands_for: PAPER.to_string(),
        events: None,
    }
}

/// The drive of an illustration: the 16 GB of AFTL with the figure's geometry (the variant's).
///
/// # Errors
/// A variant that the experiment does not have, or that is no drive.
pub(super) fn illustrated(context: &PaperContext, variant: &str, set: &[&str]) -> Result<DriveConfig, ReproduceError> {
    context.variant("AFTL, 16 GB", variant, set)
}

/// Draws a figure whose drive may fail: then it says why, and has no values.
pub(super) fn drawn_or_said(drawn: Result<Drawn, String>) -> Drawn {
    drawn.unwrap_or_else(|why| {
        let mut said = Drawn::default();
        said.remark(why);
        said
    })
}

/// Pages of blocks as a picture: a lane for each block that holds something, by channel, way and block.
pub(super) fn blocks(
    title: &str,
    places: &[Place],
    pages: u32,
    groups: &[&str],
    group: impl Fn(u64) -> usize,
) -> Picture {
    let mut sorted = places.to_vec();
    sorted.sort_by_key(|place| (place.block, place.channel, place.way, place.page));
    let mut lanes: Vec<Lane> = Vec::new();
    for place in sorted {
        let name = format!("channel {}, block {}", place.channel, place.block);
        if lanes.last().is_none_or(|lane| lane.name != name) {
            lanes.push(Lane { name, boxes: Vec::new() });
        }
        let from = f64::from(place.page);
        let mark = Mark { from, to: from + 1.0, label: place.sector.to_string(), group: group(place.sector) };
        lanes.last_mut().expect("one was just put there").boxes.push(mark);
    }
    let groups = groups.iter().map(ToString::to_string).collect();
    Picture { title: title.to_string(), x: "", end: f64::from(pages), groups, lanes }
}

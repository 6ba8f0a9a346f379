//! What several figures need: the paper's capacities, its FTLs, and rows that no input stands behind.

use ssdlab_device::DriveConfig;

use super::trial::Place;
use crate::frame::{Label, Lane, Mark, PaperContext, Picture, ReproduceError};

/// What published values of the paper as a whole are held against.
pub(super) const PAPER: &str = "paper";

/// The experiment's drive of an FTL and a capacity: without one it is the prototype, of 512 GB.
pub(super) fn drive_of(ftl: &str, capacity: &str) -> String {
    if capacity == "512 GB" { ftl.to_string() } else { format!("{ftl}, {capacity}") }
}

/// A row of a drive at work, of a description or of sizes, and of no input.
pub(super) fn of_paper(workload: &str, page_size: &str, setting: &str, input: &str) -> Label {
    let (setting, input) = (setting.to_string(), input.to_string());
    Label { setting, input, ..Label::described(workload, page_size, PAPER) }
}

/// The drive of an illustration: the 16 GB of AFTL with the figure's geometry (the variant's).
///
/// # Errors
/// A variant that the experiment does not have, or that is no drive.
pub(super) fn illustrated(context: &PaperContext, variant: &str, set: &[&str]) -> Result<DriveConfig, ReproduceError> {
    context.variant("AFTL, 16 GB", variant, set)
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

//! The OpenSSD board beside its chips alone: how many operations of flash they simulate a second.

use ssdlab_base::{Op, rng};
use ssdlab_device::{Description, DriveConfig};

use crate::{Figure, age, drive, measure_operations, random};

/// Requests that are measured.
const OVERWRITES: u64 = 400_000;

/// The board with units of 4 KB: whole, or its chips under design `page` with what is by default.
fn board(is_whole: bool) -> DriveConfig {
    let path = format!("{}/../devices/jasmine-8g.toml", env!("CARGO_MANIFEST_DIR"));
    let mut text = std::fs::read_to_string(&path).expect("a shipped description");
    let mut sets = vec!["ftl.mapping_unit=4k"];
    if is_whole {
        sets.extend(["flash.oob=ecc", "ftl.owners=summary"]);
    } else {
        let [from, to] = ["[controller]", "[ftl]"].map(|table| text.find(table).expect("a table of the board"));
        text.replace_range(from..to, "");
        sets.extend(["flash.scheduler=fifo", "flash.copyback=false"]);
    }
    let mut description = Description::parse(&text, &path).expect("a shipped description");
    sets.into_iter().for_each(|set| description.set(set).expect("a valid setting"));
    description.resolve().expect("a valid drive")
}

/// Steady overwrites of 4 KB of both.
pub(crate) fn board_figures() -> Vec<Figure> {
    let mut figures: Vec<Figure> = Vec::new();
    for (name, is_whole) in [("board: operations of its chips alone", false), ("board: operations, whole", true)] {
        let mut drive = drive(&board(is_whole));
        age(&mut drive);
        let pages = drive.user_sectors() / 8;
        let mut overwrites = rng(12, "board");
        let mut figure =
            measure_operations(name, &mut drive, OVERWRITES, |_| random(&mut overwrites, Op::Write, pages));
        if let Some(chips) = figures.first() {
            figure.detail = format!("{:.0} % of the chips'; {}", figure.value / chips.value * 100.0, figure.detail);
        }
        figures.push(figure);
    }
    figures
}

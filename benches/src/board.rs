//! The OpenSSD board beside its chips alone: how many operations of flash they simulate a second.

use ssdlab_base::{Op, rng};
use ssdlab_device::{Description, DriveConfig};

use crate::{Figure, age, drive, measure_operations, random};

/// Requests that are measured.
const OVERWRITES: u64 = 400_000;

/// The board with units of 4 KB and more settings: whole with a design, or its chips under design `page` with what is by default.
pub(crate) fn board(design: Option<&str>, more: &[&str]) -> DriveConfig {
    let path = format!("{}/../devices/jasmine-8g.toml", env!("CARGO_MANIFEST_DIR"));
    let mut text = std::fs::read_to_string(&path).expect("a shipped description");
    let design = design.map(|design| format!("ftl.design={design}"));
    let mut sets = [&["ftl.mapping_unit=4k"], more].concat();
    if let Some(design) = &design {
        // A cache keeps a block more for its notes, and each of them has what the other one has.
        sets.extend(["flash.oob=ecc", "ftl.owners=summary", "gc.free_blocks=3", design]);
    } else {
        let [from, to] = ["[controller]", "[ftl]"].map(|table| text.find(table).expect("a table of the board"));
        text.replace_range(from..to, "");
        sets.extend(["flash.scheduler=fifo", "flash.copyback=false"]);
    }
    let mut description = Description::parse(&text, &path).expect("a shipped description");
    sets.into_iter().for_each(|set| description.set(set).expect("a valid setting"));
    description.resolve().expect("a valid drive")
}

/// Steady overwrites of 4 KB of all three.
pub(crate) fn board_figures() -> Vec<Figure> {
    let mut figures: Vec<Figure> = Vec::new();
    for (name, design) in [
        ("board: operations of its chips alone", None),
        ("board: operations, whole", Some("page")),
        ("board: operations of a cache of dirty data", Some("ssc")),
    ] {
        let mut drive = drive(&board(design, &[]));
        age(&mut drive);
        let pages = drive.user_sectors() / 8;
        let mut overwrites = rng(12, "board");
        let mut figure =
            measure_operations(name, &mut drive, OVERWRITES, |_| random(&mut overwrites, Op::Write, pages));
        for (of, other) in figures.iter().zip(["the chips'", "those with design page"]) {
            figure.detail = format!("{:.0} % of {other}; {}", figure.value / of.value * 100.0, figure.detail);
        }
        figures.push(figure);
    }
    figures
}

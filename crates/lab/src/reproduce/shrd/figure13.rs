//! Figure 13: SHRD's rate by the size of the log.

use super::common::{Column, DRIVE, columns, misses_a_write, share_of_driver, write_rate};
use crate::reproduce::{Drawn, Figure, Input, Outcomes, Run, Scene, names};

pub(super) struct Figure13;

/// Sizes of the random-write log buffer; the text says 1 to 256 MB.
const SIZES: [&str; 5] = ["1m", "4m", "16m", "64m", "256m"];

const COLUMNS: [Column; 4] = [
    ("rate", "K/s", write_rate),
    ("misses a write", "", misses_a_write),
    ("map pages a remap", "", |run| share_of_driver(run, "remapped_map_pages", "remaps")),
    ("write amplification", "", |run| run.number("write_amplification.total")),
];

fn run(scene: &Scene, input: &Input, size: &str) -> Run {
    scene.run(DRIVE, "SHRD", input, "").with(format!("ftl.rwlb={size}"))
}

impl Figure for Figure13 {
    fn id(&self) -> &'static str {
        "figure13"
    }

    fn title(&self) -> &'static str {
        "SHRD's rate, by the size of the random-write log buffer"
    }

    fn about(&self) -> &'static str {
        "fio's random writes. The paper: the rate rises with the log, and saturates."
    }

    fn series(&self) -> &'static [&'static str] {
        const NAMES: [&str; COLUMNS.len()] = names(&COLUMNS);
        &NAMES
    }

    fn runs(&self, scene: &Scene) -> Vec<Run> {
        scene.inputs("fio").flat_map(|input| SIZES.map(|setting| run(scene, input, setting))).collect()
    }

    fn draw(&self, scene: &Scene, outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        for input in scene.inputs("fio") {
            for setting in SIZES {
                let name = setting.to_string();
                columns(&mut drawn, outcomes, (&run(scene, input, setting), input, &name), &COLUMNS);
            }
        }
        drawn
    }
}

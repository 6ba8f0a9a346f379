//! What the paper could not see: write amplification by cause, and the recorder's error by level.

use super::common::{CAUSES, cause, level};
use super::runs::rows;
use crate::frame::{Column, Content, Figure, Reading, names};

const COLUMNS: [Column<Reading>; 12] = [
    CAUSES[0],
    CAUSES[1],
    CAUSES[2],
    CAUSES[3],
    CAUSES[4],
    ("wear levelling", "", |run| cause(run, "wear_levelling")),
    ("sampling", "%", |run| level(run, "sampling")),
    ("classification", "%", |run| level(run, "classification")),
    ("plane", "%", |run| level(run, "plane")),
    ("die", "%", |run| level(run, "die")),
    ("chip", "%", |run| level(run, "chip")),
    ("channel", "%", |run| level(run, "channel")),
];

pub(super) static FIGURE: Figure = Figure {
    id: "levels",
    title: "beyond the paper: write amplification by cause, and the recorder's error by level",
    about: "Every run of Figures 5 to 11, of Figures 7 and 8 those of 512 MiB. The true WA is the sum of its causes. \
            The recorder's WA is the true one times six factors, shown as what each adds or takes away: what sampling \
            misses or merges, what the window takes for a program that is none, M_p against the pages that a program \
            of the die really was, and how the watched die, its chip and its channel stand to their neighbours. Runs \
            in sub-tests are taken as a whole, initial data included.",
    differs: "",
    series: &names(&COLUMNS),
    content: Content::Runs { rows: |context| rows(context, &COLUMNS), panels: |_, _, _| {} },
};

//! Figure 10: Postmark on the five systems.

use super::systems::{POSTMARK, SYSTEMS, bars, rows};
use crate::frame::{Column, Content, Drawn, Figure, Measured, Outcomes, PaperContext, Reading, names};

const RATE: &str = "transactions a second";

const COLUMNS: [Column<Reading>; 4] = [
    (RATE, "", |run| rate(run)),
    ("by EXT4+PFTL", "x", |run| run.ratio(rate)),
    ("space used", "%", |run| {
        Some(run.number("file_system.capacity.used_bytes")? / run.number("file_system.capacity.user_bytes")? * 100.0)
    }),
    ("write amplification of all", "x", |run| run.number("file_system.write_amplification.all")),
];

pub(super) static FIGURE: Figure = Figure {
    id: "figure10",
    title: "Postmark",
    about: "Transactions of Postmark over files of 5 to 512 KB. The paper gives numbers of files, 15,000 and 30,000, and says that \
            these fill 40 and 80 % of the space; they do not. The rows with 21,000 and 40,000 files begin with so much of the 13.6 GB drives in \
            use; the column shows the end of the run. Write amplification is that of file system and drive, metadata included.",
    differs: "",
    series: &names(&COLUMNS),
    content: Content::Runs { rows: |context| rows(context, &POSTMARK, &SYSTEMS, &COLUMNS, true), panels },
};

/// Transactions a second.
pub(super) fn rate(run: &Measured) -> Option<f64> {
    Some(run.number("turns")? / run.number("seconds")?)
}

fn panels(_: &PaperContext, _: &Outcomes, drawn: &mut Drawn) {
    bars(drawn, "Postmark", RATE, "transactions/s");
}

//! All runs that the paper's figures have, for what is looked at beyond them.

use super::{figure09, financial, steady, verification};
use crate::frame::{Column, Input, Label, PaperContext, Reading, Row, Run};

/// Every run of Figures 5 to 11, once, by its drive, its input and the figure that it is of.
pub(super) fn rows(context: &PaperContext, columns: &'static [Column<Reading>]) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |drive, input: &Input, figure, run: &Run| {
        rows.push(Label::of(input, drive, figure).row(run, columns));
    };
    for (access, figure) in [("SQ", "Figure 5"), ("RD", "Figure 6")] {
        verification::runs(context, access).iter().for_each(|(input, _, run)| add("SSD-v", input, figure, run));
    }
    for (writes, figure) in [(steady::MIX, "Figure 7"), (steady::WRITES, "Figure 8")] {
        steady::runs(context, writes).iter().for_each(|(drive, input, _, short)| add(drive, input, figure, short));
    }
    figure09::inputs(context).iter().for_each(|(input, run)| add("SSD-I", input, "Figure 9", run));
    for (of, figure) in [(&financial::F1, "Figure 10"), (&financial::F2, "Figure 11")] {
        of.inputs(context).iter().for_each(|(input, run)| add("SSD-I", input, figure, run));
    }
    rows
}

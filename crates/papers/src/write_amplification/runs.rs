//! All runs that the paper's figures have, for what is looked at beyond them.

use super::{figure09, financial, steady, verification};
use crate::frame::{Input, PaperContext, Run};

/// Every run of Figures 5 to 11, once, with its drive, its input and the figure that it is of.
pub(super) fn rows(context: &PaperContext) -> Vec<(&'static str, &Input, &'static str, Run)> {
    let mut rows = Vec::new();
    for (figure, name) in [(&verification::FIGURE05, "Figure 5"), (&verification::FIGURE06, "Figure 6")] {
        rows.extend(figure.rows(context).into_iter().map(|(input, _, run)| ("SSD-v", input, name, run)));
    }
    for (figure, name) in [(&steady::FIGURE07, "Figure 7"), (&steady::FIGURE08, "Figure 8")] {
        rows.extend(figure.rows(context).into_iter().map(|(drive, input, _, run)| (drive, input, name, run)));
    }
    rows.extend(figure09::rows(context).into_iter().map(|(input, run)| ("SSD-I", input, "Figure 9", run)));
    for (figure, name) in [(&financial::FIGURE10, "Figure 10"), (&financial::FIGURE11, "Figure 11")] {
        rows.extend(figure.rows(context).into_iter().map(|(input, run)| ("SSD-I", input, name, run)));
    }
    rows
}

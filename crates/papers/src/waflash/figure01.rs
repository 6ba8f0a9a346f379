//! Figure 1: the share of unaligned writes at 4, 8 and 16 KB.

use super::common::{point, workloads};
use crate::frame::{Content, Drawn, Figure, Made, PaperContext, leading_number};

const UNALIGNED: &str = "unaligned writes";
const AVERAGED: &str = "counted in the average";

pub(super) static FIGURE: Figure = Figure {
    id: "figure01",
    title: "share of writes that are unaligned, by page size",
    about: "A write counts when it begins or ends inside a page. For models this says how well they were fitted where \
            a value is published, and nothing of the trace where none is; for excerpts it is a measurement. The \
            paper's averages are of whole workloads, and leave Web out at 4 KB: what counts in ours is in a column of \
            its own.",
    differs: "Disk 5 of MSNFS is aligned to 4 KB; its unaligned writes are on disks that are not to be had. The models \
              are fitted to several values at once.",
    series: &[UNALIGNED, AVERAGED],
    content: Content::Facts(draw),
};

fn draw(context: &PaperContext) -> Made {
    let mut drawn = Drawn::default();
    for input in workloads(context).chain(context.inputs("recording")) {
        for page in ["4k", "8k", "16k"] {
            let Some(share) = input.survey.as_ref().and_then(|survey| survey.unaligned_percent(page)) else {
                continue;
            };
            drawn.points.push(point(input, page, "", UNALIGNED, share, "%"));
            // The average is one of whole workloads: an excerpt is none.
            if input.group == "paper" && (page != "4k" || input.stands_for != "Web") {
                drawn.points.push(point(input, page, "", AVERAGED, share, "%"));
            }
        }
    }
    drawn.bars("unaligned writes, by page size", ["", "unaligned writes, %"], |point| {
        let size = leading_number(&point.page_size).filter(|_| point.series == UNALIGNED)?;
        Some((format!("{size} KB"), point.workload.clone()))
    });
    Ok(drawn)
}

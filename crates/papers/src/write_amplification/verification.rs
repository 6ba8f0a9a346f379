//! Figures 5 and 6: the recorder's error on SSD-v, bar by bar.

use super::common::{self, WRITES, magnitude, micro};
use crate::frame::{Column, Content, Drawn, Figure, Input, Label, Outcomes, PaperContext, Reading, Row, Run, names};

/// Section IV.C: "L_Volume_Data is set as 2GB in the verification test".
const VOLUME: u64 = 2 << 30;

/// The figure of sequential workloads.
pub(super) static FIGURE05: Figure =
    figure("figure05", "error of the number of page programs on SSD-v, sequential", |context| rows(context, "SQ"));

/// The figure of random workloads.
pub(super) static FIGURE06: Figure =
    figure("figure06", "error of the number of page programs on SSD-v, random", |context| rows(context, "RD"));

const COLUMNS: [Column<Reading>; 7] = [
    ("|PEN|", "%", |run| magnitude(run.number("ready_busy.recorders.0.percentage_error"))),
    ("N_page_test", "pages", |run| run.number("ready_busy.recorders.0.pages").map(f64::round)),
    ("N_page_real", "pages", |run| run.number("ready_busy.real.pages")),
    ("|PEN|, 100 ns", "%", |run| magnitude(run.number("ready_busy.recorders.1.percentage_error"))),
    ("|PEN|, 10 us", "%", |run| magnitude(run.number("ready_busy.recorders.2.percentage_error"))),
    ("|PEN|, 50 us", "%", |run| magnitude(run.number("ready_busy.recorders.3.percentage_error"))),
    ("|PEN|, 100 us", "%", |run| magnitude(run.number("ready_busy.recorders.4.percentage_error"))),
];

const fn figure(id: &'static str, title: &'static str, rows: fn(&PaperContext) -> Vec<Row>) -> Figure {
    Figure {
        id,
        title,
        about: "The recorder of section IV.B samples one die's Ready/Busy line every microsecond with the window \
                200..2200 us of Table I and is scaled by equation 3; the drive's count is that of its own programs in \
                the same time. 2 GB are written, and with 50 % writes about as much is read. The paper says neither \
                the state of the drive nor the sampling interval: here it is in the random steady state, so that \
                erases, which are the paper's first reason for errors, happen at all; further columns are the same \
                line sampled at other intervals.",
        differs: "The watched die 0 had 0.2 to 0.7 % fewer programs than the mean of all; another die or seed is off \
                  by up to 1 % either way.",
        series: const { &names(&COLUMNS) },
        content: Content::Runs { rows, panels },
    }
}

/// The inputs of an access with their share of writes and the run of each.
pub(super) fn runs<'s>(context: &'s PaperContext, access: &str) -> Vec<(&'s Input, &'static str, Run)> {
    let run = |(input, setting)| (input, setting, common::steady(context, "SSD-v", input, VOLUME));
    micro(context, access).into_iter().map(run).collect()
}

fn rows(context: &PaperContext, access: &str) -> Vec<Row> {
    let row = |(input, setting, run)| Label::of(input, "SSD-v", setting).row(&run, &COLUMNS);
    runs(context, access).into_iter().map(row).collect()
}

fn panels(_context: &PaperContext, _outcomes: &Outcomes, drawn: &mut Drawn) {
    for (_, setting) in WRITES {
        drawn.bars(format!("error of the page programs, {setting}"), ["", "|PEN|, %"], |point| {
            let sampled = point.series.strip_prefix("|PEN|").filter(|_| point.setting == setting)?;
            let sampled = if sampled.is_empty() { "sampled each 1 us" } else { sampled.trim_start_matches(", ") };
            Some((sampled.to_string(), point.workload.clone()))
        });
    }
}

//! Figures 5 and 6: the recorder's error on SSD-v, bar by bar.

use super::common::{self, Column, WRITES, columns, magnitude, micro, point};
use crate::frame::{Drawn, Figure, Input, Outcomes, PaperContext, Run, names};

/// Section IV.C: "L_Volume_Data is set as 2GB in the verification test".
const VOLUME: u64 = 2 << 30;

/// The figure of sequential workloads.
pub(super) static FIGURE05: Verification =
    Verification { id: "figure05", title: "error of the number of page programs on SSD-v, sequential", access: "SQ" };

/// The figure of random workloads.
pub(super) static FIGURE06: Verification =
    Verification { id: "figure06", title: "error of the number of page programs on SSD-v, random", access: "RD" };

pub(super) struct Verification {
    id: &'static str,
    title: &'static str,
    access: &'static str,
}

const COLUMNS: [Column; 7] = [
    ("|PEN|", "%", |run| magnitude(run.number("ready_busy.recorders.0.percentage_error"))),
    ("N_page_test", "pages", |run| run.number("ready_busy.recorders.0.pages").map(f64::round)),
    ("N_page_real", "pages", |run| run.number("ready_busy.real.pages")),
    ("|PEN|, 100 ns", "%", |run| magnitude(run.number("ready_busy.recorders.1.percentage_error"))),
    ("|PEN|, 10 us", "%", |run| magnitude(run.number("ready_busy.recorders.2.percentage_error"))),
    ("|PEN|, 50 us", "%", |run| magnitude(run.number("ready_busy.recorders.3.percentage_error"))),
    ("|PEN|, 100 us", "%", |run| magnitude(run.number("ready_busy.recorders.4.percentage_error"))),
];

impl Verification {
    /// The inputs with their share of writes and the run of each.
    pub(super) fn rows<'s>(&self, context: &'s PaperContext) -> Vec<(&'s Input, &'static str, Run)> {
        let run = |(input, setting)| (input, setting, common::steady(context, "SSD-v", input, VOLUME));
        micro(context, self.access).into_iter().map(run).collect()
    }
}

impl Figure for Verification {
    fn id(&self) -> &'static str {
        self.id
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn about(&self) -> &'static str {
        "The recorder of section IV.B samples one die's Ready/Busy line every microsecond with the window 200..2200 us of \
         Table I and is scaled by equation 3; the drive's count is that of its own programs in the same time. 2 GB are \
         written, and with 50 % writes about as much is read. The paper says neither the state of the drive nor the \
         sampling interval: here it is in the random steady state, so that erases, which are the paper's first reason for \
         errors, happen at all; further columns are the same line sampled at other intervals."
    }

    fn differs(&self) -> &'static str {
        "The watched die 0 had 0.2 to 0.7 % fewer programs than the mean of all; another die or seed is off by up to 1 % either \
         way."
    }

    fn series(&self) -> &'static [&'static str] {
        const NAMES: [&str; COLUMNS.len()] = names(&COLUMNS);
        &NAMES
    }

    fn runs(&self, context: &PaperContext) -> Vec<Run> {
        self.rows(context).into_iter().map(|(_, _, run)| run).collect()
    }

    fn draw(&self, context: &PaperContext, outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        for (input, setting, run) in self.rows(context) {
            columns(&mut drawn, outcomes, &run, &COLUMNS, |series, value, unit| {
                point(input, "SSD-v", setting, series, value, unit)
            });
        }
        for (_, setting) in WRITES {
            drawn.bars(format!("error of the page programs, {setting}"), ["", "|PEN|, %"], |point| {
                let sampled = point.series.strip_prefix("|PEN|").filter(|_| point.setting == setting)?;
                let sampled = if sampled.is_empty() { "sampled each 1 us" } else { sampled.trim_start_matches(", ") };
                Some((sampled.to_string(), point.workload.clone()))
            });
        }
        drawn
    }
}

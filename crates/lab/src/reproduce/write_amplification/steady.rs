//! Figures 7 and 8: write amplification of three products in steady state, by request size, access and alignment.

use super::common::{self, Column, columns, micro, point};
use crate::reproduce::{Drawn, Figure, Input, Outcomes, Run, Scene, names};

/// Bytes written in a run: the paper says no volume. Four times the largest cache, which is full when the run begins.
const VOLUME: u64 = 512 << 20;

/// The products.
const DRIVES: [&str; 3] = ["SSD-I", "SSD-M", "SSD-S"];

/// The figure of mixes.
pub(super) static FIGURE07: Steady =
    Steady { id: "figure07", title: "write amplification in steady state, 50 % writes", writes: "50 % write" };

/// The figure of writes alone.
pub(super) static FIGURE08: Steady =
    Steady { id: "figure08", title: "write amplification in steady state, 100 % writes", writes: "100 % write" };

pub(super) struct Steady {
    id: &'static str,
    title: &'static str,
    writes: &'static str,
}

const COLUMNS: [Column; 6] = [
    ("WA", "", |run| run.number("ready_busy.recorders.0.write_amplification")),
    ("true WA", "", |run| run.number("ready_busy.real.write_amplification")),
    ("host and padding", "", |run| run.number("write_amplification.by_cause.host")),
    ("read-modify-write", "", |run| run.number("write_amplification.by_cause.rmw")),
    ("GC", "", |run| run.number("write_amplification.by_cause.gc")),
    ("M_p / pages a program", "x", |run| run.number("ready_busy.levels.plane")),
];

impl Steady {
    /// The runs in the order of the rows, with the drive and the input of each.
    pub(super) fn rows<'s>(&self, scene: &'s Scene) -> Vec<(&'static str, &'s Input, Run)> {
        let of_drive = |drive: &'static str| {
            let both = ["SQ", "RD"].into_iter().flat_map(|access| micro(scene, access));
            let written = both.filter(|(_, setting)| *setting == self.writes);
            written.map(move |(input, _)| (drive, input, common::steady(scene, drive, input, VOLUME)))
        };
        DRIVES.into_iter().flat_map(of_drive).collect()
    }
}

impl Figure for Steady {
    fn id(&self) -> &'static str {
        self.id
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn about(&self) -> &'static str {
        "Each run begins in the random steady state and ends when 512 MiB are written: the paper gives no volume. WA is the \
         recorder's count through equation 2, with M_p = 1 for SSD-I and 2 for SSD-M and SSD-S; the true one, and what it \
         is made of, stands beside it. The last column says by how much M_p is too large: with 2, planes that did not \
         program together are counted twice."
    }

    fn series(&self) -> &'static [&'static str] {
        const NAMES: [&str; COLUMNS.len()] = names(&COLUMNS);
        &NAMES
    }

    fn runs(&self, scene: &Scene) -> Vec<Run> {
        self.rows(scene).into_iter().map(|(_, _, run)| run).collect()
    }

    fn draw(&self, scene: &Scene, outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        for (drive, input, run) in self.rows(scene) {
            columns(&mut drawn, outcomes, &run, &COLUMNS, |series, value, unit| {
                point(input, drive, "", series, value, unit)
            });
        }
        drawn
    }
}

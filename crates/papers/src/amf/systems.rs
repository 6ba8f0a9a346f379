//! The systems of the comparison (section 5.2), and file workloads on each.

use super::common::of_paper;
use crate::frame::{Column, Drawn, Label, Measured, PaperContext, Reading, Row, Run};

/// A file system on a drive.
#[derive(Clone, Copy, Debug)]
pub(super) struct System {
    /// What the paper calls it.
    pub(super) name: &'static str,
    /// The drive in the measurements (section 5.3).
    drive: &'static str,
    /// The kind of file system that stands for its own.
    kind: &'static str,
}

/// What the others are compared with (Figure 13).
pub(super) const BASE: System = System { name: "EXT4+PFTL", drive: "PFTL, 16 GB", kind: "journaling" };

pub(super) const AMF: System = System { name: "AMF", drive: "AFTL, 16 GB", kind: "alfs" };

pub(super) const EXT4_DFTL: System = System { name: "EXT4+DFTL", drive: "DFTL, 16 GB", kind: "journaling" };

pub(super) const F2FS: System = System { name: "F2FS+PFTL", drive: "PFTL, 16 GB", kind: "lfs" };

pub(super) const F2FS_DFTL: System = System { name: "F2FS+DFTL", drive: "DFTL, 16 GB", kind: "lfs" };

/// All of them, in the paper's order.
pub(super) const SYSTEMS: [System; 5] = [BASE, EXT4_DFTL, F2FS, F2FS_DFTL, AMF];

/// FIO, buffered, in the order of Figure 9.
pub(super) const FIO: [&str; 4] =
    ["FIO, sequential reads", "FIO, random reads", "FIO, sequential writes", "FIO, random writes"];

/// FIO, direct.
pub(super) const FIO_DIRECT: [&str; 4] = [
    "FIO, sequential reads, direct",
    "FIO, random reads, direct",
    "FIO, sequential writes, direct",
    "FIO, random writes, direct",
];

/// Postmark, with the paper's numbers of files and with those that make the file system as full as the paper says.
pub(super) const POSTMARK: [&str; 4] =
    ["Postmark, light", "Postmark, heavy", "Postmark, 21,000 files", "Postmark, 40,000 files"];

/// What stands for Hadoop.
pub(super) const HADOOP: [&str; 3] = ["DFSIO", "TeraSort", "WordCount"];

/// The workloads of Table 4 that need no database, and one of ours.
pub(super) const TABLE4: [&str; 8] = [
    "FIO, sequential writes",
    "FIO, random writes",
    "Postmark, light",
    "Postmark, heavy",
    "Postmark, 40,000 files",
    HADOOP[0],
    HADOOP[1],
    HADOOP[2],
];

/// Megabytes a second that calls read and write.
pub(super) fn rate(run: &Measured) -> Option<f64> {
    Some((run.number("bytes_read")? + run.number("bytes_written")?) / run.number("seconds")? / 1e6)
}

/// The run of a workload on a system.
pub(super) fn run(context: &PaperContext, work: &str, system: System) -> Run {
    context.on_files(system.drive, system.kind, work)
}

/// What the row of a workload on a system is called.
pub(super) fn label(context: &PaperContext, work: &str, system: System) -> Label {
    let stated = context.experiment.files.iter().find(|stated| stated.name == work);
    let (stands_for, about) = stated.map_or(("", ""), |stated| (&*stated.stands_for, &*stated.about));
    Label { stands_for: stands_for.to_string(), ..of_paper(work, "", system.name, about) }
}

/// A row for each workload on each system, held against the workload on [`BASE`] where `is_against`.
pub(super) fn rows(
    context: &PaperContext,
    works: &[&str],
    systems: &[System],
    columns: &'static [Column<Reading>],
    is_against: bool,
) -> Vec<Row> {
    let of = |work: &str, system: &System| {
        let row = label(context, work, *system).row(&run(context, work, *system), columns);
        if is_against { row.against(&run(context, work, BASE)) } else { row }
    };
    works.iter().flat_map(|work| systems.iter().map(|system| of(work, system))).collect()
}

/// A chart of one column: the workloads on x, a bar for each system.
pub(super) fn bars(drawn: &mut Drawn, title: &str, series: &'static str, y: &'static str) {
    drawn.bars(title, ["", y], |point| {
        (point.series == series).then(|| (point.setting.clone(), point.workload.clone()))
    });
}

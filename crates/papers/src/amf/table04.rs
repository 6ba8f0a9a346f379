//! Table 4 and Figure 14: write amplification of ALFS and LFS, and what the inode map costs.

use super::common::of_paper;
use crate::frame::{Column, Content, Drawn, Figure, Label, PaperContext, Reading, Row, Run};

/// The paper's columns with a file system that is built: drive and kind in the measurements (sections 5.2 and 5.3).
const SYSTEMS: [(&str, &str, &str); 3] =
    [("AMF", "AFTL, 16 GB", "alfs"), ("F2FS+PFTL", "PFTL, 16 GB", "lfs"), ("F2FS+DFTL", "DFTL, 16 GB", "lfs")];

fn share(reading: &Reading, path: &str, of: &str) -> Option<f64> {
    let (part, whole) = (reading.number(path)?, reading.number(of)?);
    (whole > 0.0).then(|| part / whole * 100.0)
}

const WRITTEN: &str = "file_system.written_bytes.total";

const AMPLIFICATION: [Column<Reading>; 6] = [
    ("write amplification", "x", |run| run.number("file_system.write_amplification.cleaning")),
    ("with the FTL", "x", |run| {
        let own = run.number("file_system.write_amplification.cleaning")?;
        Some(own * run.number("file_system.write_amplification.drive")?)
    }),
    ("with metadata", "x", |run| run.number("file_system.write_amplification.total")),
    ("of the drive", "x", |run| run.number("file_system.write_amplification.drive")),
    ("segments cleaned", "", |run| run.number("file_system.cleaning.segments")),
    ("valid in victims", "%", |run| run.number("file_system.cleaning.valid_share").map(|share| share * 100.0)),
];

const INODE_MAP: [Column<Reading>; 5] = [
    ("TIMB writes", "%", |run| share(run, "file_system.written_bytes.timb", WRITTEN)),
    ("TIMB blocks a check-point", "", |run| run.number("file_system.checkpoints.timb_blocks_each")),
    ("inode map and TIMB", "%", |run| {
        let map = share(run, "file_system.written_bytes.inode_map", WRITTEN)?;
        Some(map + share(run, "file_system.written_bytes.timb", WRITTEN)?)
    }),
    ("copies in inode-map segments", "%", |run| {
        let moved = run.number("file_system.cleaning.copied_map_blocks")?;
        let all = moved
            + run.number("file_system.cleaning.copied_data_blocks")?
            + run.number("file_system.cleaning.copied_metadata_blocks")?;
        Some(if all > 0.0 { moved / all * 100.0 } else { 0.0 })
    }),
    ("check-points", "", |run| run.number("file_system.checkpoints.count")),
];

fn runs(context: &PaperContext, systems: &[(&str, &str, &str)]) -> Vec<(Label, Run)> {
    let of = |work: &crate::frame::FileWorkText, (setting, drive, kind): &(&str, &str, &str)| {
        let label = Label { stands_for: work.stands_for.clone(), ..of_paper(&work.name, "", setting, &work.about) };
        (label, context.on_files(drive, kind, &work.name))
    };
    let works = context.experiment.files.iter();
    works.flat_map(|work| systems.iter().map(move |system| of(work, system))).collect()
}

fn rows(context: &PaperContext, systems: &[(&str, &str, &str)], columns: &'static [Column<Reading>]) -> Vec<Row> {
    runs(context, systems).into_iter().map(|(label, run)| label.row(&run, columns)).collect()
}

fn nothing_more(_: &PaperContext, _: &crate::frame::Outcomes, _: &mut Drawn) {}

pub(super) static TABLE: Figure = Figure {
    id: "table04",
    title: "write amplification of ALFS and LFS",
    about: "The columns AMF and F2FS of the paper's Table 4: bytes that the file system writes, by those that it does not write for cleaning, \
            and the same times the write amplification of the drive. The third column also counts nodes, directories, node map, \
            check-points and summaries. A file system is new and has the workload's files, on the drive of the measurements (15.75 GB of \
            user capacity for AMF, 13.6 GB for the others: the same flash). LFS stands for F2FS. The journaling file system is not built yet.",
    differs: "Where the paper's sizes are open (files at the start, how long a workload runs), ours are stated beside the workload. The paper \
              does not say whether its columns FTL are factors or products; they are held against products.",
    series: &[
        AMPLIFICATION[0].0,
        AMPLIFICATION[1].0,
        AMPLIFICATION[2].0,
        AMPLIFICATION[3].0,
        AMPLIFICATION[4].0,
        AMPLIFICATION[5].0,
    ],
    content: Content::Runs { rows: |context| rows(context, &SYSTEMS, &AMPLIFICATION), panels: nothing_more },
};

pub(super) static FIGURE14: Figure = Figure {
    id: "figure14",
    title: "what the inode map costs",
    about: "The runs of Table 4: TIMB blocks of all bytes that ALFS writes, TIMB blocks with each check-point, blocks of the inode map \
            and of TIMB together, and the copies that cleaning of inode-map segments makes, of all copies. The paper's bars have no \
            numbers.",
    differs: "A check-point here is written every 60 s, at each sync, and when cleaning has made segments free; the paper does not \
              say how often its own are.",
    series: &[INODE_MAP[0].0, INODE_MAP[1].0, INODE_MAP[2].0, INODE_MAP[3].0, INODE_MAP[4].0],
    content: Content::Runs { rows: |context| rows(context, &SYSTEMS[..1], &INODE_MAP), panels: nothing_more },
};

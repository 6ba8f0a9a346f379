//! Table 4 and Figure 14: write amplification of the systems, and what the inode map costs.

use super::systems::{AMF, SYSTEMS, TABLE4, rows};
use crate::frame::{Column, Content, Drawn, Figure, PaperContext, Reading};

fn share(reading: &Reading, path: &str, of: &str) -> Option<f64> {
    let (part, whole) = (reading.number(path)?, reading.number(of)?);
    (whole > 0.0).then(|| part / whole * 100.0)
}

const WRITTEN: &str = "file_system.written_bytes.total";

pub(super) const AMPLIFICATION: [Column<Reading>; 6] = [
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

fn nothing_more(_: &PaperContext, _: &crate::frame::Outcomes, _: &mut Drawn) {}

pub(super) static TABLE: Figure = Figure {
    id: "table04",
    title: "write amplification of the five systems",
    about: "The rows of the paper's Table 4 that need no database: bytes that the file system writes, by those that it does not write for \
            cleaning, and the same times the write amplification of the drive. The third column also counts nodes, directories, maps, \
            check-points, summaries and the journal. A file system is new and has the workload's files, on the drive of the measurements \
            (15.75 GB of user capacity for AMF, 13.6 GB for the others: the same flash). LFS stands for F2FS, and journaling for EXT4.",
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
    content: Content::Runs {
        rows: |context| rows(context, &TABLE4, &SYSTEMS, &AMPLIFICATION, false),
        panels: nothing_more,
    },
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
    content: Content::Runs { rows: |context| rows(context, &TABLE4, &[AMF], &INODE_MAP, false), panels: nothing_more },
};

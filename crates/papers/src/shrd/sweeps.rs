//! Sweeps beside Figure 7: what the drive and the driver make of fio's random writes when one of their settings is another.

use super::common::{DRIVE, MISSES, WRITE_AMPLIFICATION, WRITE_RATE};
use crate::frame::{Column, Content, Figure, Label, Measured, PaperContext, Reading, Row, Run, names};

/// DFTL's columns, then SHRD's.
const COLUMNS: [Column<Reading>; 7] = [
    ("write IOPS, DFTL", WRITE_RATE.1, WRITE_RATE.2),
    ("map misses per write, DFTL", MISSES.1, MISSES.2),
    ("write amplification, DFTL", WRITE_AMPLIFICATION.1, WRITE_AMPLIFICATION.2),
    ("write IOPS, SHRD", WRITE_RATE.1, WRITE_RATE.2),
    ("map misses per write, SHRD", MISSES.1, MISSES.2),
    ("write amplification, SHRD", WRITE_AMPLIFICATION.1, WRITE_AMPLIFICATION.2),
    ("map pages per remap", "", |run| map_pages_a_remap(run)),
];

/// What both drives are given: what it is called, and the keys.
const DRIVES: [(&str, &[&str]); 15] = [
    ("as in Figure 7", &[]),
    ("processing, 5 us a command", &["interface.processing=5us"]),
    ("processing, 10 us", &["interface.processing=10us"]),
    ("processing, 20 us", &["interface.processing=20us"]),
    ("LRU buffer, 16 MB", &["buffer.policy=lru"]),
    ("FIFO buffer, 1 MB", &["buffer.policy=fifo", "buffer.size=1m"]),
    ("map pages of 8 KB", &["ftl.map_page=8k"]),
    ("16 KB, pages of flash too", &["flash.page_size=16k", "flash.pages_per_block=64", "ftl.map_page=16k"]),
    ("32 KB, pages of flash too", &["flash.page_size=32k", "flash.pages_per_block=32", "ftl.map_page=32k"]),
    ("64 KB, pages of flash too", &["flash.page_size=64k", "flash.pages_per_block=16", "ftl.map_page=64k"]),
    ("4 KB in pages of flash of 64 KB", &["flash.page_size=64k", "flash.pages_per_block=16"]),
    ("1 map load at a time", &["ftl.map_loads=1"]),
    (
        "1 map load at a time, map pages of 16 KB",
        &["flash.page_size=16k", "flash.pages_per_block=64", "ftl.map_page=16k", "ftl.map_loads=1"],
    ),
    (
        "1 map load at a time, map pages of 32 KB",
        &["flash.page_size=32k", "flash.pages_per_block=32", "ftl.map_page=32k", "ftl.map_loads=1"],
    ),
    (
        "1 map load at a time, map pages of 64 KB",
        &["flash.page_size=64k", "flash.pages_per_block=16", "ftl.map_page=64k", "ftl.map_loads=1"],
    ),
];

/// What the driver is given: what it is called, and its description.
const DRIVERS: [(&str, &str); 7] = [
    ("vendor commands", "vendor.toml"),
    ("the drive keeps headers and data in order", "ordering-drive.toml"),
    ("tLPNs are not trimmed", "no-trim.toml"),
    ("a quarter of the log a pass", "range-16m.toml"),
    ("4 remaps at once", "remaps-4.toml"),
    ("remaps of 511 entries", "remaps-of-511.toml"),
    ("small writes go home while the log is full", "when-full-direct.toml"),
];

/// Counted by the drive, in map pages of its own size: those of oLPNs, and those of tLPNs.
fn map_pages_a_remap(run: &Measured) -> Option<f64> {
    let remaps = run.number("design.remaps").filter(|&remaps| remaps > 0.0)?;
    run.number("design.remap_map_pages").map(|pages| pages / remaps)
}

pub(super) static FIGURE: Figure = Figure {
    id: "sweeps",
    title: "what settings of the drive and of the driver do to fio's random writes, with a cache of 1 MB",
    about: "Each row changes one setting from the first row's, which is Figure 7's with 1 MB. A map page is at most a \
            page of flash, so larger ones come with larger pages of flash, and blocks of as many bytes as before; the \
            last rows change both, since Table 2's map pages per remap need such pages and the paper's factor needs \
            misses that wait for each other. Map pages a remap: counted by the drive, in map pages of the row's size.",
    differs: "",
    series: &names(&COLUMNS),
    content: Content::Runs { rows, panels: |_, _, _| {} },
};

fn rows(context: &PaperContext) -> Vec<Row> {
    let mut rows = Vec::new();
    for input in context.inputs("fio") {
        let run = |system, keys| context.run(DRIVE, system, input, "").with_all(keys);
        for (name, keys) in DRIVES {
            let label = Label::of(input, "", name);
            rows.push(label.row(&run("DFTL", keys), &COLUMNS[..3]));
            rows.push(label.row(&run("SHRD", keys), &COLUMNS[3..]));
        }
        for (name, host) in DRIVERS {
            let run = Run { host: Some(host.to_string()), ..run("SHRD", &[]) };
            rows.push(Label::of(input, "", name).row(&run, &COLUMNS[3..]));
        }
    }
    rows
}

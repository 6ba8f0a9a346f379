//! Sweeps beside Figure 7: what the drive and the driver make of fio's random writes when one of their settings is another.

use super::common::{Column, DRIVE, columns, misses_a_write, write_amplification, write_rate};
use crate::frame::{Drawn, Figure, Input, Measured, Outcomes, PaperContext, Run, names};

pub(super) struct Sweeps;

/// DFTL's columns, and SHRD's.
const OF_DFTL: [Column; 3] = [
    ("write IOPS, DFTL", "K", write_rate),
    ("map misses per write, DFTL", "", misses_a_write),
    ("write amplification, DFTL", "", write_amplification),
];
const OF_SHRD: [Column; 4] = [
    ("write IOPS, SHRD", "K", write_rate),
    ("map misses per write, SHRD", "", misses_a_write),
    ("write amplification, SHRD", "", write_amplification),
    ("map pages per remap", "", map_pages_a_remap),
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

/// A row's runs: its name, and those of DFTL and SHRD that it has.
fn rows(context: &PaperContext, input: &Input) -> Vec<(&'static str, Option<Run>, Run)> {
    let run =
        |system, keys: &[&str]| keys.iter().fold(context.run(DRIVE, system, input, ""), |run, key| run.with(*key));
    let of_drives = DRIVES.into_iter().map(|(name, keys)| (name, Some(run("DFTL", keys)), run("SHRD", keys)));
    let of_drivers =
        DRIVERS.into_iter().map(|(name, host)| (name, None, Run { host: Some(host.to_string()), ..run("SHRD", &[]) }));
    of_drives.chain(of_drivers).collect()
}

impl Figure for Sweeps {
    fn id(&self) -> &'static str {
        "sweeps"
    }

    fn title(&self) -> &'static str {
        "what settings of the drive and of the driver do to fio's random writes, with a cache of 1 MB"
    }

    fn about(&self) -> &'static str {
        "Each row changes one setting from the first row's, which is Figure 7's with 1 MB. A map page is at most a page of flash, so larger ones \
         come with larger pages of flash, and blocks of as many bytes as before; the last rows change both, since Table 2's map pages per remap need \
         such pages and the paper's factor needs misses that wait for each other. Map pages a remap: counted by the drive, in map pages of \
         the row's size."
    }

    fn series(&self) -> &'static [&'static str] {
        const DFTL: [&str; OF_DFTL.len()] = names(&OF_DFTL);
        const SHRD: [&str; OF_SHRD.len()] = names(&OF_SHRD);
        const NAMES: [&str; 7] = [DFTL[0], DFTL[1], DFTL[2], SHRD[0], SHRD[1], SHRD[2], SHRD[3]];
        &NAMES
    }

    fn runs(&self, context: &PaperContext) -> Vec<Run> {
        let of_input =
            |input| rows(context, input).into_iter().flat_map(|(_, dftl, shrd)| dftl.into_iter().chain([shrd]));
        context.inputs("fio").flat_map(of_input).collect()
    }

    fn draw(&self, context: &PaperContext, outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        for input in context.inputs("fio") {
            for (name, dftl, shrd) in rows(context, input) {
                if let Some(dftl) = dftl {
                    columns(&mut drawn, outcomes, (&dftl, input, name), &OF_DFTL);
                }
                columns(&mut drawn, outcomes, (&shrd, input, name), &OF_SHRD);
            }
        }
        drawn
    }
}

//! Designs with log blocks: how many operations of flash they simulate a second.

use ssdlab_base::{Op, rng};

use crate::{Figure, closed_loop, config, drive, fill, measure_operations, random};

/// Overwrites of a full drive through log blocks.
pub(crate) fn log_block_figures() -> Vec<Figure> {
    let mut figures = Vec::new();
    // The log blocks of FAST are filled before it merges any.
    for (design, name, before) in
        [("bast", "log blocks: operations of bast", 0), ("fast", "log blocks: operations of fast", 1_300_000)]
    {
        let design = format!("ftl.design={design}");
        // Room for 15 % of log blocks.
        let sets = [&design, "ftl.superblock=none", "ftl.allocation=dynamic", "gc.pacing=off", "capacity.user=24g"];
        let mut drive = drive(&config("bench-32g", &sets));
        fill(&mut drive);
        let pages = drive.user_sectors() / 8;
        let mut overwrites = rng(12, "log blocks");
        closed_loop(&mut drive, 32, before, |_| random(&mut overwrites, Op::Write, pages));
        figures.push(measure_operations(name, &mut drive, 40_000, |_| random(&mut overwrites, Op::Write, pages)));
    }
    figures
}

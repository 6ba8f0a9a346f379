//! Table 2: the RAM of each FTL's tables, as the drives have it.

use ssdlab_flash::Contents;
use ssdlab_fs::{MakeOptions, Memory, Options};

use super::common::{drive_of, of_paper};
use super::small::made;
use super::table01::DRIVES;
use crate::frame::{Column, Content, Drawn, Figure, Measured, PaperContext, Preparation, Reading, Row, Run, own_runs};

/// The FTLs in the order of the table, by the experiment's drives.
const FTLS: [&str; 6] = ["block-level", "hybrid, BAST", "hybrid, FAST", "PFTL", "DFTL", "AFTL"];

/// The capacities.
const CAPACITIES: [&str; 2] = ["512 GB", "1 TB"];

const COLUMNS: [Column<Reading>; 5] = [
    ("map", "MB", |run| map_of(run)),
    ("states and pointers", "MB", |run| tables(run).map(|[_, states, _]| states)),
    ("bitmaps", "MB", |run| tables(run).map(|[.., bitmaps]| bitmaps)),
    ("all", "MB", |run| tables(run).map(|[map, states, bitmaps]| map + states + bitmaps)),
    ("map relative to AFTL", "x", |run| run.ratio(map_of)),
];

/// Tables that are no part of the map: of segments, their states and write pointers.
const STATE_TABLES: [&str; 2] = ["segment_state_bytes", "write_pointer_bytes"];
/// What is no table of the drive's FTL.
const OTHER: [&str; 2] = ["simulator_bytes", "buffer_bytes"];

/// The file system in the host: all tables but the cache, and of these TIMB and the segments.
const ALFS: &str = "ALFS";
const TIMB: &str = "TIMB";
const SEGMENTS: &str = "segments";

const MIB: f64 = 1_048_576.0;

fn is_bitmap(name: &str) -> bool {
    name.contains("bitmap")
}

fn is_map(name: &str) -> bool {
    !OTHER.contains(&name) && !STATE_TABLES.contains(&name) && !is_bitmap(name)
}

/// MiB of a run's tables: the map, states and pointers, bitmaps.
fn tables(measured: &Measured) -> Option<[f64; 3]> {
    let of = |asked: fn(&str) -> bool| measured.total_of("memory", asked).map(|bytes| bytes / MIB);
    Some([of(is_map)?, of(|name| STATE_TABLES.contains(&name))?, of(is_bitmap)?])
}

/// MiB of a run's map.
pub(super) fn map_of(measured: &Measured) -> Option<f64> {
    tables(measured).map(|[map, ..]| map)
}

/// The run of an FTL with this capacity: of the host, or of the flash.
pub(super) fn run(context: &PaperContext, capacity: &str, ftl: &str, of_host: bool) -> Option<Run> {
    let input = context.inputs("table02").next()?;
    let drive = drive_of(ftl, capacity);
    // A small drive has one capacity: that of `quick`.
    let variant = if of_host && !context.is_quick() { format!("{ftl}, {capacity}") } else { ftl.to_string() };
    Some(context.run(&drive, &variant, input, "").prepared(Preparation::None))
}

pub(super) static FIGURE: Figure = Figure {
    id: "table02",
    title: "memory of the FTLs",
    about: "The tables that each drive reports in RAM after a few writes (`memory` in results; tests compare it with \
            the code's tables). MB are of 2^20 bytes. The paper's numbers fit drives with 512 GB or 1 TB of user \
            capacity (choices.md): those rows are compared. The drives that ship have 512 GB or 1 TB of flash, and \
            their rows follow. The paper does not name its hybrid FTL, so both usual designs stand for it. For 1 TB \
            the text says 62 MB, the table 186. AFTL's map has 4 bytes for a block; each segment also has a byte for \
            state and generation and 4 for the write pointer. ALFS, in the host, is made on the drives with this user \
            capacity: TIMB, the segments (24 bytes each, and a bit), lists and numbers that are free; the cache is not counted.",
    differs: "Our block map also counts the written pages of each block, and our hybrid FTLs keep which page each page \
              of a log block holds and where it lies; the paper does not say what its maps contain, nor which other tables of \
              F2FS its ALFS has.",
    series: &[COLUMNS[0].0, COLUMNS[1].0, COLUMNS[2].0, COLUMNS[3].0, COLUMNS[4].0, ALFS, TIMB, SEGMENTS],
    content: Content::Own {
        runs: |context| own_runs(rows(context)),
        draw: |context, outcomes| {
            let mut drawn = Drawn::default();
            drawn.rows(outcomes, &rows(context));
            if let Err(why) = file_systems(context, &mut drawn) {
                drawn.remark(why);
            }
            drawn
        },
    },
};

/// Rows of ALFS in the host, as made.
fn file_systems(context: &PaperContext, drawn: &mut Drawn) -> Result<(), String> {
    for (drive, variant, capacity) in DRIVES.into_iter().rev() {
        if context.is_quick() && capacity != "16 GB" {
            continue;
        }
        let config = context.variant(drive, variant, &[]).map_err(|error| error.to_string())?;
        let fs = made(&config, Contents::Nothing, &MakeOptions::default(), &Options::default())?;
        let memory: Memory = fs.memory();
        let mib = |bytes: usize| bytes as f64 / MIB;
        let label = of_paper("prototype", "", &format!("{ALFS}, {capacity}"), "a file system as made");
        let values = [
            (ALFS, mib(memory.tables_bytes()), "MB"),
            (TIMB, mib(memory.table_bytes), "MB"),
            (SEGMENTS, mib(memory.segment_bytes), "MB"),
        ];
        drawn.values(&label, values);
    }
    Ok(())
}

/// The rows by what the capacity is of: what the host has, or the flash of the drive that ships.
fn rows(context: &PaperContext) -> Vec<Row> {
    let mut rows = Vec::new();
    for capacity in CAPACITIES {
        // The paper's "512 GB SSD" is read as one whose host has 512 GB.
        for (of_host, setting) in [(true, capacity.to_string()), (false, format!("{capacity} of flash"))] {
            let Some(aftl) = run(context, capacity, "AFTL", of_host) else { continue };
            for ftl in FTLS {
                let Some(run) = run(context, capacity, ftl, of_host) else { continue };
                let label = of_paper("prototype", ftl, &setting, "the drive's tables");
                rows.push(label.row(&run, &COLUMNS).against(&aftl));
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tables_are_sorted_into_map_states_and_bitmaps_and_nothing_is_counted_twice() {
        let memory = json!({
            "segment_map_bytes": 4 << 20, "segment_state_bytes": 1 << 18, "write_pointer_bytes": 3 << 18, "valid_bitmap_bytes": 2 << 20,
            "log_map_bytes": 1 << 20, "buffer_bytes": 7, "simulator_bytes": 1_u64 << 40,
        });
        let measured = Measured::of(&json!({ "devices": [{ "complete": true, "memory": memory }] })).expect("a drive");
        assert_eq!(tables(&measured), Some([5.0, 1.0, 2.0]));
    }
}

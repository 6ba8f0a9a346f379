//! What other readings of the paper give, where it is open.

use super::common::of_paper;
use super::figure13::erasures;
use super::systems::{AMF, BASE, EXT4_DFTL, F2FS, F2FS_DFTL, FIO, POSTMARK, System, run};
use super::table04::AMPLIFICATION;
use crate::frame::{Column, Content, Figure, PaperContext, Reading, Row, Run, names};

const COLUMNS: [Column<Reading>; 6] = [
    ("operations a second", "", |run| run.number("operations_per_second")),
    AMPLIFICATION[0],
    AMPLIFICATION[3],
    ("of all", "x", |run| run.number("file_system.write_amplification.all")),
    AMPLIFICATION[4],
    ("erasures", "", |run| erasures(run)),
];

/// What a reading sets: keys of the file system, times of the host, keys of the drive.
#[derive(Clone, Copy, Debug)]
struct Sets {
    file_system: &'static [&'static str],
    host: &'static [&'static str],
    drive: &'static [&'static str],
}

const OURS: Sets = Sets { file_system: &[], host: &[], drive: &[] };

const fn file_system(keys: &'static [&'static str]) -> Sets {
    Sets { file_system: keys, ..OURS }
}

const fn host(times: &'static [&'static str]) -> Sets {
    Sets { host: times, ..OURS }
}

const fn drive(keys: &'static [&'static str]) -> Sets {
    Sets { drive: keys, ..OURS }
}

/// Readings of one file workload on some systems: what each is called, and what it sets; ours is the first.
type Choice = (&'static str, &'static [System], &'static [(&'static str, Sets)]);

const RANDOM: &str = FIO[3];
const HEAVY: &str = POSTMARK[1];
const FULL: &str = POSTMARK[3];

/// 85 % of the flash is user capacity, as with the other systems, in whole segments.
const AS_SMALL: &[&str] = &["capacity.user=13920m"];
/// So much flash that its 85 % are the user capacity of AMF.
const AS_LARGE: &[&str] = &["flash.blocks_per_plane=1186", "capacity.user=15.75g"];

const CHOICES: [Choice; 10] = [
    (
        "varmail",
        &[AMF, F2FS],
        &[
            ("ours, an fsync is rolled forward", OURS),
            ("a check-point for each fsync", file_system(&["fsync=check-point"])),
        ],
    ),
    (FULL, &[AMF], &[("ours, equal flash", OURS), ("13.6 GB, as the others", drive(AS_SMALL))]),
    (FULL, &[BASE, F2FS], &[("ours, equal flash", OURS), ("15.75 GB, as AMF", drive(AS_LARGE))]),
    (RANDOM, &[F2FS], &[("ours, threaded logging", OURS), ("none", file_system(&["threaded_logging=false"]))]),
    (FULL, &[F2FS], &[("ours, threaded logging", OURS), ("none", file_system(&["threaded_logging=false"]))]),
    (RANDOM, &[F2FS], &[("ours, segments of 2 MB", OURS), ("of 16 MB (footnote 2)", file_system(&["segment=16m"]))]),
    (FULL, &[F2FS], &[("ours, segments of 2 MB", OURS), ("of 16 MB (footnote 2)", file_system(&["segment=16m"]))]),
    (
        HEAVY,
        &[AMF],
        &[
            ("ours, an inode map of four times", OURS),
            ("of two times", file_system(&["map_factor=2"])),
            ("of eight times", file_system(&["map_factor=8"])),
        ],
    ),
    (
        HEAVY,
        &[BASE, F2FS, AMF],
        &[
            ("ours, 1.4 us a call and 210 ns for 4 KB", OURS),
            ("half of the host's time", host(&["call=700ns", "copy=105ns"])),
            ("twice the host's time", host(&["call=2800ns", "copy=420ns"])),
        ],
    ),
    (
        RANDOM,
        &[EXT4_DFTL, F2FS_DFTL],
        &[("ours, 20 % of the map in pages", OURS), ("in entries", drive(&["ftl.map_cache_by=entry"]))],
    ),
];

pub(super) static FIGURE: Figure = Figure {
    id: "choices",
    title: "what other readings of the paper give",
    about: "Rows of one workload and system differ in one reading. The first row of each is what the other pages use. Write amplification is that \
            of the file system by cleaning, of the drive, and of both with metadata.",
    differs: "",
    series: &names(&COLUMNS),
    content: Content::Runs { rows, panels: |_, _, _| {} },
};

fn rows(context: &PaperContext) -> Vec<Row> {
    let of = |(work, systems, readings): Choice| {
        systems.iter().flat_map(move |system| {
            readings.iter().map(move |(name, sets)| {
                let label = of_paper(work, "", &format!("{}: {name}", system.name), "");
                label.row(&set(run(context, work, *system), *sets), &COLUMNS)
            })
        })
    };
    CHOICES.into_iter().flat_map(of).collect()
}

/// A run with what a reading sets.
fn set(run: Run, sets: Sets) -> Run {
    run.with_all(sets.drive).with_files(sets.file_system, sets.host)
}

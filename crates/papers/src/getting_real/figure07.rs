//! Figure 7: file servers' mixes on the disk alone, behind FlashCache, and behind the solid-state cache (section 4.2).

use super::cache_columns::{ALONE, BOARD_IN_USE, OVER_DISK, OVER_SSD};
use super::common::bars_by_setting;
use crate::frame::{
    Content, Drawn, Figure, Input, Label, Outcomes, PaperContext, Preparation, Row, Run, joined, names,
};

/// The modes of both caches.
const MODES: [&str; 2] = ["write-back", "write-through"];

/// The workloads of the paper, as groups of inputs.
const WORKLOADS: [&str; 3] = ["fileserver", "webserver", "varmail"];

/// How many requests of a recording are in flight.
const RECORDED: &str = "closed:32";

/// Columns without those beside FlashCache.
const WITH_DISK: [&str; 11] = joined(names(&ALONE), names(&OVER_DISK));

/// All columns.
const SERIES: [&str; 14] = joined(WITH_DISK, names(&OVER_SSD));

pub(super) static FIGURE: Figure = Figure {
    id: "figure07",
    title: "caches in front of a disk",
    about: "\"SSD\" is FlashCache on the board's new firmware, which refuses flushes as FlashCache did; \"SSC\" is FlashTier's manager on the solid-state \
            cache, which honours them. Both use the same 8 GB of the board, with the same nominal over-provisioning; lists of owners and free \
            blocks take equal parts of it. Mixes of fio pass a page cache of 3 GB and begin when caches are warm: the warm-up has other offsets. Files \
            are not modelled here: a request stands for a whole file or an append. The paper names neither the number of files nor the run time, and the \
            size of the set decides: rows of 4 GB, more than RAM and less than a cache holds, stand for the paper's workloads. Recordings \
            were taken below a page cache, so none is above the caches; they are sent with 32 in flight, on a board with 2 GB in use and 25 % of \
            over-provisioning, and have another device's clock. Hits count blocks of 4 KB that reads found in the cache.",
    differs: DIFFERS,
    series: &SERIES,
    content: Content::Runs { rows, panels },
};

const DIFFERS: &str = "Collection decides. The board has one waiting room, and copies of one victim go to one bank: while FlashCache's drive \
    collects, the other banks wait, and it copies some 470 pages a second. So the SSC gains more than in the paper wherever the drive is \
    nearly full, and FlashCache is slower than the disk from 4 GB on under fileserver's mix, where one write in two has 128 KB, which a disk does \
    well. Erases fall by less than 90 %, 67 and 82 % at 12 GB: what silent eviction drops is read again and written again. At 4 GB three reads in \
    ten miss, for one in twenty with FlashCache. Webserver's mix needs no collection at 4 GB, and both are equal, as the paper says. Under \
    varmail's mix the SSC makes every fsync durable, with a page that is filled in part, a list of owners for each open block and a unit of its log. \
    They take room as well, so it hits less. FlashCache with refused flushes writes nothing for an fsync; with flushes passed on it does 314 requests a second \
    for the SSC's 1,689 (where a solid-state cache pays). In write-through the paper's SSC loses 5 %: ours waits for the flushes of the disk, which FlashCache \
    refuses. The recorded webserver's set of 16 MB fits in the disk's own cache.";

/// Runs of an input: the disk alone, and both caches in a mode.
struct Systems {
    disk: Run,
    ssd: Run,
    ssc: Run,
}

fn systems(context: &PaperContext, input: &Input, mode: &str) -> Systems {
    let is_recorded = input.group == "recording";
    let replay = if is_recorded { RECORDED } else { "" };
    let run = |variant: &str| {
        let run = context.run(BOARD_IN_USE, variant, input, replay);
        let smaller: &[&str] =
            if is_recorded { &["flash.blocks_per_plane=32", "capacity.over_provisioning=25%"] } else { &[] };
        // What --quick has is too short to warm anything up.
        let is_warm = !context.is_quick();
        run.with_all(smaller).prepared(if is_warm { Preparation::WarmedUp } else { Preparation::None })
    };
    let recorded = if is_recorded { ", recorded" } else { "" };
    Systems {
        disk: run(if is_recorded { "No-Cache, recorded" } else { "disk, buffered" }),
        ssd: run(&format!("SSD, {mode}{recorded}")),
        ssc: run(&format!("SSC, {mode}{recorded}")),
    }
}

fn rows(context: &PaperContext) -> Vec<Row> {
    let mut rows = Vec::new();
    let groups = WORKLOADS.into_iter().chain(["recording"]);
    for input in groups.flat_map(|group| context.inputs(group)) {
        let disk = systems(context, input, MODES[0]).disk;
        rows.push(Label::of(input, "", "No-Cache").row(&disk, &ALONE));
        for mode in MODES {
            let Systems { disk, ssd, ssc } = systems(context, input, mode);
            for (name, run) in [("SSD", &ssd), ("SSC", &ssc)] {
                let label = Label::of(input, "", format!("{name}, {mode}"));
                rows.push(label.row(run, &ALONE));
                rows.push(label.row(run, &OVER_DISK).against(&disk));
            }
            rows.push(Label::of(input, "", format!("SSC, {mode}")).row(&ssc, &OVER_SSD).against(&ssd));
        }
    }
    rows
}

fn panels(_context: &PaperContext, _outcomes: &Outcomes, drawn: &mut Drawn) {
    bars_by_setting(drawn, &[("IOPS relative to No-Cache", "x"), ("erases", ""), ("read hits", "%")]);
}

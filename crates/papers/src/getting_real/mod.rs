//! Getting Real (`papers/getting-real`): the OpenSSD board, the Linux I/O path above it, and caches in front of a disk.
//!
//! One file a figure; `common.rs` and `cache_columns.rs` have what several need.

mod cache_columns;
mod caches;
mod choices;
mod common;
mod figure03;
mod figure04;
mod figure07;
mod sweeps;
mod table01;
mod table02;

use crate::frame::{Paper, text, texts};

/// The paper.
pub(super) static PAPER: Paper = Paper {
    name: "getting-real",
    title: "Getting Real: Lessons in Transitioning Research Simulations into Hardware Systems",
    experiment: text!("papers/getting-real/experiment.toml"),
    devices: texts!("devices/" ".toml": "jasmine-256g" "jasmine-128g" "jasmine-64g" "jasmine-8g" "wd1502faex"),
    files: texts!("papers/getting-real/" "": "buffered.toml" "direct.toml" "disk.toml" "disk-merge-32k.toml" "disk-recorded.toml" "merge-32k.toml" "noop.toml" "read-ahead.toml" "requests-of-256.toml" "requests-of-264.toml" "ssc-write-back.toml" "ssc-write-back-error.toml" "ssc-write-back-recorded.toml" "ssc-write-back-words.toml" "ssc-write-through.toml" "ssc-write-through-recorded.toml" "ssd-write-back.toml" "ssd-write-back-flushes.toml" "ssd-write-back-lru.toml" "ssd-write-back-recorded.toml" "ssd-write-back-trim.toml" "ssd-write-through.toml" "ssd-write-through-recorded.toml"),
    drives_are: "board",
    published: texts!("papers/getting-real/published/" "": "table01.csv" "table02.csv" "figure03.csv" "figure04.csv" "figure07.csv"),
    figures: &[
        &table01::FIGURE,
        &table02::FIGURE,
        &figure03::FIGURE,
        &figure04::FIGURE,
        &figure07::FIGURE,
        &sweeps::FIGURE,
        &choices::FIGURE,
        &caches::FIGURE,
    ],
};

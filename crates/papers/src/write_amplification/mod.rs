//! Measuring and Analyzing Write Amplification Characteristics of Solid State Disks (`papers/write-amplification`): the
//! verification of section IV, the measurements of section V, and what the paper could not see.
//!
//! One file a figure or a pair of figures; `common.rs` has what several need. Drives and inputs are in
//! `papers/write-amplification/experiment.toml`.

mod choices;
mod classifiers;
mod common;
mod dies;
mod figure09;
mod financial;
mod levels;
mod runs;
mod steady;
mod table01;
mod table02;
mod table03;
mod verification;
mod victims;
mod walvd;

use crate::frame::{Paper, text, texts};

/// The paper.
pub(super) static PAPER: Paper = Paper {
    name: "write-amplification",
    title: "Measuring and Analyzing Write Amplification Characteristics of Solid State Disks",
    experiment: text!("papers/write-amplification/experiment.toml"),
    devices: texts!("devices/" ".toml": "wa-ssd-v-16g" "wa-ssd-i-40g" "wa-ssd-m-64g" "wa-ssd-s-32g"),
    files: &[],
    drives_are: "drive",
    published: texts!("papers/write-amplification/published/" "": "table01.csv" "table02.csv" "table03.csv"
        "figure05.csv" "figure06.csv" "figure07.csv" "figure08.csv" "figure09.csv" "figure10.csv" "figure11.csv"),
    figures: &[
        &table01::FIGURE,
        &table02::FIGURE,
        &table03::FIGURE,
        &verification::FIGURE05,
        &verification::FIGURE06,
        &steady::FIGURE07,
        &steady::FIGURE08,
        &figure09::FIGURE,
        &financial::FIGURE10,
        &financial::FIGURE11,
        &dies::FIGURE,
        &levels::FIGURE,
        &classifiers::FIGURE,
        &choices::FIGURE,
        &victims::FIGURE,
    ],
};

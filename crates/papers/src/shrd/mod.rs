//! SHRD (`papers/shrd`): sequentializing in the host, randomizing in the drive. Section 3's motivation and section 5's
//! evaluation. A system that is compared is a line of the experiment's variants and of `common::SYSTEMS`.
//!
//! One file a figure; `common.rs` has what several need.

mod choices;
mod common;
mod figure02;
mod figure07;
mod figure08;
mod figure09;
mod figure10;
mod figure11;
mod figure12;
mod figure13;
mod figure14;
mod packs;
mod section4;
mod section5;
mod sweeps;
mod table01;

use crate::frame::{Paper, text, texts};

/// The paper.
pub(super) static PAPER: Paper = Paper {
    name: "shrd",
    title: "SHRD: Improving Spatial Locality in Flash Storage Accesses by Sequentializing in Host and Randomizing in Device",
    experiment: text!("papers/shrd/experiment.toml"),
    devices: texts!("devices/" ".toml": "shrd-sm843-120g"),
    files: texts!("papers/shrd/" "": "ageing.fio" "shrd.toml" "ressd.toml" "lsdm.toml" "threshold-4k.toml"
        "threshold-32k.toml" "threshold-512k.toml" "vendor.toml" "ordering-drive.toml" "no-trim.toml" "range-16m.toml"
        "remaps-4.toml" "remaps-of-511.toml" "when-full-direct.toml" "list-commands.toml"),
    drives_are: "drive",
    published: texts!("papers/shrd/published/" "": "section4.csv" "section5.csv" "table01.csv" "figure07.csv"
        "figure08.csv" "figure10.csv" "figure11.csv" "figure12.csv" "table02.csv" "table03.csv"),
    figures: &[
        &section4::FIGURE,
        &section5::FIGURE,
        &table01::FIGURE,
        &packs::TABLE02,
        &packs::TABLE03,
        &figure02::FIGURE,
        &figure07::FIGURE,
        &figure08::FIGURE,
        &figure09::FIGURE,
        &figure10::FIGURE,
        &figure11::FIGURE,
        &figure12::FIGURE,
        &figure13::FIGURE,
        &figure14::FIGURE,
        &choices::FIGURE,
        &sweeps::FIGURE,
    ],
};

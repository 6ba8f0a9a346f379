//! WAFLASH (`papers/waflash`): section 2.2's motivation, section 5's evaluation, and what we found beside it.
//!
//! One file a figure, or several that count alike; `common.rs` has what several need. The variants, inputs and drives are in
//! `papers/waflash/experiment.toml`.

mod choices;
mod common;
mod counted;
mod figure01;
mod figure02;
mod figure08;
mod figure09;
mod figure10;
mod figure14;
mod figure15;
mod figure16;
mod figure17;
mod findings;
mod load;
mod section5_6;
mod table01;

use crate::frame::{Paper, text, texts};

/// The paper.
pub(super) static PAPER: Paper = Paper {
    name: "waflash",
    title: "WAFLASH: Taming Unaligned Writes in Solid-State Disks",
    experiment: text!("papers/waflash/experiment.toml"),
    devices: texts!("devices/" ".toml": "waflash-256g-4k" "waflash-256g-8k" "waflash-256g-16k"),
    files: &[],
    drives_are: "page",
    published: texts!("papers/waflash/published/" "": "table01.csv" "figure01.csv" "figure02.csv" "figure08.csv"
        "figure09.csv" "figure10.csv" "figure11.csv" "figure12.csv" "figure13.csv" "figure14.csv" "figure15.csv"
        "figure16.csv" "figure17.csv" "section5-6.csv"),
    figures: &[
        &table01::FIGURE,
        &figure01::FIGURE,
        &figure02::FIGURE,
        &figure08::FIGURE,
        &figure09::FIGURE,
        &figure10::FIGURE,
        &counted::FIGURE11,
        &counted::FIGURE12,
        &counted::FIGURE13,
        &figure14::FIGURE,
        &figure15::FIGURE,
        &figure16::FIGURE,
        &figure17::FIGURE,
        &section5_6::FIGURE,
        &load::FIGURE,
        &choices::FIGURE,
        &findings::FIGURE,
    ],
};

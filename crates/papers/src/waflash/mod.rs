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

use crate::frame::Paper;

/// A file of the paper's folder.
macro_rules! paper_file {
    ($path:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../papers/waflash/", $path))
    };
}

/// A description that ships.
macro_rules! device {
    ($name:literal) => {
        ($name, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../devices/", $name, ".toml")))
    };
}

/// A file of published values.
macro_rules! published {
    ($name:literal) => {
        ($name, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../papers/waflash/published/", $name)))
    };
}

/// The paper.
pub(super) static PAPER: Paper = Paper {
    name: "waflash",
    title: "WAFLASH: Taming Unaligned Writes in Solid-State Disks",
    experiment: paper_file!("experiment.toml"),
    devices: &[device!("waflash-256g-4k"), device!("waflash-256g-8k"), device!("waflash-256g-16k")],
    files: &[],
    drives_are: "page",
    published: &[
        published!("table01.csv"),
        published!("figure01.csv"),
        published!("figure02.csv"),
        published!("figure08.csv"),
        published!("figure09.csv"),
        published!("figure10.csv"),
        published!("figure11.csv"),
        published!("figure12.csv"),
        published!("figure13.csv"),
        published!("figure14.csv"),
        published!("figure15.csv"),
        published!("figure16.csv"),
        published!("figure17.csv"),
        published!("section5-6.csv"),
    ],
    figures: &[
        &table01::Table01,
        &figure01::Figure01,
        &figure02::Figure02,
        &figure08::Figure08,
        &figure09::Figure09,
        &figure10::Figure10,
        &counted::FIGURE11,
        &counted::FIGURE12,
        &counted::FIGURE13,
        &figure14::Figure14,
        &figure15::Figure15,
        &figure16::Figure16,
        &figure17::Figure17,
        &section5_6::Section56,
        &load::Load,
        &choices::Choices,
        &findings::Findings,
    ],
};

//! SHRD (`papers/shrd`): sequentializing in the host, randomizing in the drive. Section 3's motivation and section 5's
//! evaluation, as far as the demand-loading FTL alone goes: a system that is compared with it is one more line of the
//! experiment's variants and of `common::SYSTEMS`.
//!
//! One file a figure; `common.rs` has what several need.

mod choices;
mod common;
mod figure02;
mod figure07;
mod figure08;
mod figure10;
mod section5;
mod table01;

use super::figure::Paper;

/// A file of the paper's folder: its name and text.
macro_rules! paper_file {
    ($name:literal) => {
        ($name, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../papers/shrd/", $name)))
    };
}

/// A file of published values.
macro_rules! published {
    ($name:literal) => {
        ($name, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../papers/shrd/published/", $name)))
    };
}

/// The paper.
pub(super) static PAPER: Paper = Paper {
    name: "shrd",
    title: "SHRD: Improving Spatial Locality in Flash Storage Accesses by Sequentializing in Host and Randomizing in Device",
    experiment: paper_file!("experiment.toml").1,
    devices: &[(
        "shrd-sm843-120g",
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../devices/shrd-sm843-120g.toml")),
    )],
    files: &[paper_file!("ageing.fio")],
    drives_are: "drive",
    published: &[published!("section5.csv"), published!("table01.csv"), published!("figure07.csv")],
    figures: &[
        &section5::Section5,
        &table01::Table01,
        &figure02::Figure02,
        &figure07::Figure07,
        &figure08::Figure08,
        &figure10::Figure10,
        &choices::Choices,
    ],
};

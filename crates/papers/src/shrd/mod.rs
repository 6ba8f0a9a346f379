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
mod section4;
mod section5;
mod sweeps;
mod table01;
mod table02;
mod table03;

use crate::frame::Paper;

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
    files: &[
        paper_file!("ageing.fio"),
        paper_file!("shrd.toml"),
        paper_file!("ressd.toml"),
        paper_file!("lsdm.toml"),
        paper_file!("threshold-4k.toml"),
        paper_file!("threshold-32k.toml"),
        paper_file!("threshold-512k.toml"),
        paper_file!("vendor.toml"),
        paper_file!("ordering-drive.toml"),
        paper_file!("no-trim.toml"),
        paper_file!("range-16m.toml"),
        paper_file!("remaps-4.toml"),
        paper_file!("remaps-of-511.toml"),
        paper_file!("when-full-direct.toml"),
        paper_file!("list-commands.toml"),
    ],
    drives_are: "drive",
    published: &[
        published!("section4.csv"),
        published!("section5.csv"),
        published!("table01.csv"),
        published!("figure07.csv"),
        published!("figure08.csv"),
        published!("figure10.csv"),
        published!("figure11.csv"),
        published!("figure12.csv"),
        published!("table02.csv"),
        published!("table03.csv"),
    ],
    figures: &[
        &section4::Section4,
        &section5::Section5,
        &table01::Table01,
        &table02::Table02,
        &table03::Table03,
        &figure02::Figure02,
        &figure07::Figure07,
        &figure08::Figure08,
        &figure09::Figure09,
        &figure10::Figure10,
        &figure11::Figure11,
        &figure12::Figure12,
        &figure13::Figure13,
        &figure14::Figure14,
        &choices::Choices,
        &sweeps::Sweeps,
    ],
};

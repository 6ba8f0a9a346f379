//! Application-Managed Flash (`papers/amf`): the device side. AFTL on append-only segments, and the FTLs that it is compared
//! with. The file systems are not built yet.
//!
//! One file a figure; `common.rs` has what several need, `trial.rs` a small drive whose chips are looked at.

mod common;
mod figure01;
mod figure07;
mod figure08;
mod section5;
mod table01;
mod table02;
mod trial;

use crate::frame::Paper;

/// A file of the paper's folder: its name and text.
macro_rules! paper_file {
    ($name:literal) => {
        ($name, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../papers/amf/", $name)))
    };
}

/// A file of published values.
macro_rules! published {
    ($name:literal) => {
        ($name, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../papers/amf/published/", $name)))
    };
}

/// A description that ships.
macro_rules! device {
    ($name:literal) => {
        ($name, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../devices/", $name, ".toml")))
    };
}

/// The paper.
pub(super) static PAPER: Paper = Paper {
    name: "amf",
    title: "Application-Managed Flash",
    experiment: paper_file!("experiment.toml").1,
    devices: &[
        device!("amf-16g"),
        device!("amf-16g-dftl"),
        device!("amf-16g-aftl"),
        device!("amf-512g"),
        device!("amf-512g-block"),
        device!("amf-512g-bast"),
        device!("amf-512g-fast"),
        device!("amf-512g-dftl"),
        device!("amf-512g-aftl"),
        device!("amf-1t"),
        device!("amf-1t-block"),
        device!("amf-1t-bast"),
        device!("amf-1t-fast"),
        device!("amf-1t-dftl"),
        device!("amf-1t-aftl"),
    ],
    files: &[paper_file!("append.toml")],
    drives_are: "FTL",
    published: &[
        published!("section5-3.csv"),
        published!("table01.csv"),
        published!("table02.csv"),
        published!("figure01.csv"),
        published!("figure07.csv"),
        published!("figure08.csv"),
    ],
    figures: &[
        &section5::Section5,
        &table01::Table01,
        &table02::Table02,
        &figure01::Figure01,
        &figure07::Figure07,
        &figure08::Figure08,
    ],
};

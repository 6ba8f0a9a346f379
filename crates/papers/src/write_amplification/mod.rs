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

use crate::frame::Paper;

/// A description that ships.
macro_rules! device {
    ($name:literal) => {
        ($name, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../devices/", $name, ".toml")))
    };
}

/// A file of published values.
macro_rules! published {
    ($name:literal) => {
        (
            $name,
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../papers/write-amplification/published/", $name)),
        )
    };
}

/// The paper.
pub(super) static PAPER: Paper = Paper {
    name: "write-amplification",
    title: "Measuring and Analyzing Write Amplification Characteristics of Solid State Disks",
    experiment: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../papers/write-amplification/experiment.toml")),
    devices: &[device!("wa-ssd-v-16g"), device!("wa-ssd-i-40g"), device!("wa-ssd-m-64g"), device!("wa-ssd-s-32g")],
    files: &[],
    drives_are: "drive",
    published: &[
        published!("table01.csv"),
        published!("table02.csv"),
        published!("table03.csv"),
        published!("figure05.csv"),
        published!("figure06.csv"),
        published!("figure07.csv"),
        published!("figure08.csv"),
        published!("figure09.csv"),
        published!("figure10.csv"),
        published!("figure11.csv"),
    ],
    figures: &[
        &table01::Table01,
        &table02::Table02,
        &table03::Table03,
        &verification::FIGURE05,
        &verification::FIGURE06,
        &steady::FIGURE07,
        &steady::FIGURE08,
        &figure09::Figure09,
        &financial::FIGURE10,
        &financial::FIGURE11,
        &dies::Dies,
        &levels::Levels,
        &classifiers::Classifiers,
        &choices::Choices,
        &victims::Victims,
    ],
};

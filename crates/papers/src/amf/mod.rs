//! Application-Managed Flash (`papers/amf`): AFTL on append-only segments, the FTLs that it is compared with, ALFS, and the file systems that
//! it is compared with.
//!
//! One file a figure; `common.rs` has what several need, `systems.rs` the five systems of the comparison, `trial.rs` a small drive whose
//! chips are looked at, `small.rs` a file system on one, `held_against` the programmes of recordings as calls on file systems.

mod choices;
mod common;
mod figure01;
mod figure02;
mod figure03;
mod figure04;
mod figure05;
mod figure06;
mod figure07;
mod figure08;
mod figure09;
mod figure10;
mod figure12;
mod figure13;
mod figure16;
mod headline;
mod held_against;
mod section5;
mod small;
mod systems;
mod table01;
mod table02;
mod table04;
mod trial;

use crate::frame::{Paper, text, texts};

/// The paper.
pub(super) static PAPER: Paper = Paper {
    name: "amf",
    title: "Application-Managed Flash",
    experiment: text!("papers/amf/experiment.toml"),
    devices: texts!("devices/" ".toml": "amf-16g" "amf-16g-dftl" "amf-16g-aftl" "amf-512g" "amf-512g-block"
        "amf-512g-bast" "amf-512g-fast" "amf-512g-dftl" "amf-512g-aftl" "amf-1t" "amf-1t-block" "amf-1t-bast"
        "amf-1t-fast" "amf-1t-dftl" "amf-1t-aftl" "shrd-sm843-120g"),
    files: texts!("papers/amf/" "": "append.toml" "fio.fio"),
    drives_are: "FTL",
    published: texts!("papers/amf/published/" "": "section5-3.csv" "table01.csv" "table02.csv" "table04.csv" "figure01.csv"
        "figure04.csv" "figure05.csv" "figure06.csv" "figure07.csv" "figure08.csv" "figure09.csv" "figure13.csv" "figure14.csv" "headline.csv"),
    figures: &[
        &section5::FIGURE,
        &table01::FIGURE,
        &table02::FIGURE,
        &table04::TABLE,
        &figure01::FIGURE,
        &figure02::FIGURE,
        &figure03::FIGURE,
        &figure04::FIGURE,
        &figure05::FIGURE,
        &figure06::FIGURE,
        &figure07::FIGURE,
        &figure08::FIGURE,
        &figure09::FIGURE,
        &figure10::FIGURE,
        &figure12::FIGURE,
        &figure13::FIGURE,
        &table04::FIGURE14,
        &figure16::FIGURE,
        &held_against::AGAINST_F2FS,
        &held_against::AGAINST_EXT4,
        &headline::FIGURE,
        &choices::FIGURE,
    ],
};

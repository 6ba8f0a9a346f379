//! Figure 1: two logical segments and the physical ones, as a drive of AFTL lays them out.

use std::collections::BTreeSet;

use super::common::{blocks, illustrated, of_paper};
use super::trial::{Place, Trial};
use crate::frame::{Content, Drawn, Figure, Made, PaperContext};

const SECTORS: &str = "sectors";
const BLOCKS: &str = "blocks";
const CHANNELS: &str = "channels";
const WAYS: &str = "ways";
const IN_TURN: &str = "sectors in turn over the channels";

pub(super) static FIGURE: Figure = Figure {
    id: "figure01",
    title: "logical and physical segments",
    about: "Segments 0 and 1 of a drive of AFTL with the figure's geometry (four channels, one way, blocks of four \
            pages) are written, then the power is cut. Each sector holds its own number, so the picture shows what \
            lies on the chips. A sector is a flash page.",
    differs: "",
    series: &[SECTORS, BLOCKS, CHANNELS, WAYS, IN_TURN],
    content: Content::Facts(draw),
};

fn draw(context: &PaperContext) -> Made {
    let config = illustrated(context, "Figure 1", &[])?;
    let channels = u64::from(config.flash.geometry.channels);
    let mut trial = Trial::new(&config)?;
    let sectors = trial.segment_sectors();
    trial.write(&(0..2 * sectors).collect::<Vec<u64>>())?;
    let places = trial.places();
    let mut drawn = Drawn::default();
    for segment in 0..2 {
        let of_segment: Vec<&Place> = places.iter().filter(|place| place.sector / sectors == segment).collect();
        let distinct = |what: fn(&Place) -> (u32, u32, u32)| {
            of_segment.iter().map(|place| what(place)).collect::<BTreeSet<_>>().len() as f64
        };
        let in_turn = |place: &&&Place| {
            let sector = place.sector % sectors;
            (u64::from(place.channel), u64::from(place.page)) == (sector % channels, sector / channels)
        };
        let label = of_paper(&format!("segment {segment}"), "", "", "a drive of AFTL with the figure's geometry");
        let values = [
            (SECTORS, of_segment.len() as f64, ""),
            (BLOCKS, distinct(|place| (place.channel, place.way, place.block)), ""),
            (CHANNELS, distinct(|place| (place.channel, 0, 0)), ""),
            (WAYS, distinct(|place| (place.way, 0, 0)), ""),
            (IN_TURN, of_segment.iter().filter(in_turn).count() as f64, ""),
        ];
        drawn.values(&label, values);
    }
    drawn.pictures.push(blocks(
        "Sectors of segments 0 and 1 in the pages of their blocks, from page 0 on",
        &places,
        config.flash.geometry.pages_per_block,
        &["segment 0", "segment 1"],
        |sector| (sector / sectors) as usize,
    ));
    Ok(drawn)
}

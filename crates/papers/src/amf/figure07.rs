//! Figure 7: how AFTL handles a write, and the states of a segment.

use ssdlab_base::Nanos;

use super::common::{blocks, illustrated, of_paper};
use super::trial::{Place, Trial};
use crate::frame::{Content, Drawn, Figure, Made, PaperContext};

/// The sector of the figure.
const SECTOR: u64 = 801;

const SEGMENT: &str = "segment";
const CHANNEL: &str = "channel";
const BLOCK: &str = "block";
const PAGE: &str = "page of the block";
const WRITTEN: &str = "sectors written in segment 100";
const USED: &str = "segments Used";
const INVALID: &str = "segments Invalid";
const ERASED: &str = "blocks erased";

/// From which the drive erases what is invalid: as long as its idle time, and the erases.
const IDLE: Nanos = Nanos::from_ms(500);

/// A row of STAT.
fn state(drawn: &mut Drawn, when: &str, trial: &Trial, segment: u64, sectors: u64) {
    let unit = trial.drive().segments().map_or(1, |shape| shape.write_unit);
    let written = trial.drive().segment(segment).map_or(0, |segment| segment.written / unit);
    assert!(written <= sectors, "segment {segment} of {sectors} sectors has {written}");
    let values = [
        (WRITTEN, written as f64, ""),
        (USED, trial.metric("segments_used"), ""),
        (INVALID, trial.metric("segments_not_erased"), ""),
        (ERASED, trial.erases() as f64, ""),
    ];
    drawn.values(&of_paper("segment-map table", "", when, "the same drive, step by step"), values);
}

pub(super) static FIGURE: Figure = Figure {
    id: "figure07",
    title: "how AFTL handles writes",
    about: "On a drive of AFTL with the figure's geometry (four channels, one way, blocks of two pages), sectors 800 \
            and 801 are written; the segment begins with 800. Their places are read from the chips after a power cut. \
            Below is STAT, from the drive's metrics: after the first writes, after a TRIM that a flush puts on flash, \
            and after the erase in the background. A segment that is neither Used nor Invalid is Free. A segment that \
            is written again before its old blocks are erased counts as both Used and Invalid.",
    differs: "",
    series: &[SEGMENT, CHANNEL, BLOCK, PAGE, WRITTEN, USED, INVALID, ERASED],
    content: Content::Facts(draw),
};

fn draw(context: &PaperContext) -> Made {
    let config = illustrated(context, "Figure 7", &[])?;
    let pages = config.flash.geometry.pages_per_block;
    let mut drawn = Drawn::default();
    let mut trial = Trial::new(&config)?;
    let sectors = trial.segment_sectors();
    let segment = SECTOR / sectors;
    let first = segment * sectors;
    // Appends begin with the segment's first sector.
    trial.write(&(first..=SECTOR).collect::<Vec<u64>>())?;
    let places = trial.places();
    let found = |places: &[Place]| places.iter().copied().find(|place| place.sector == SECTOR);
    let place = found(&places).ok_or_else(|| format!("sector {SECTOR} is not on the chips"))?;
    let label = of_paper("sector 801", "", "where it lies", "a drive of AFTL with the figure's geometry");
    let values = [
        (SEGMENT, segment as f64, ""),
        (CHANNEL, f64::from(place.channel), ""),
        (BLOCK, f64::from(place.block), ""),
        (PAGE, f64::from(place.page), ""),
    ];
    drawn.values(&label, values);

    let mut trial = Trial::new(&config)?;
    state(&mut drawn, "before the write", &trial, segment, sectors);
    trial.write(&(first..=SECTOR).collect::<Vec<u64>>())?;
    state(&mut drawn, "800 and 801 written", &trial, segment, sectors);
    trial.write(&(SECTOR + 1..first + sectors).collect::<Vec<u64>>())?;
    state(&mut drawn, "the segment full", &trial, segment, sectors);
    trial.trim(segment)?;
    trial.flush()?;
    state(&mut drawn, "trimmed", &trial, segment, sectors);
    trial.write(&(first..first + sectors).collect::<Vec<u64>>())?;
    state(&mut drawn, "written again", &trial, segment, sectors);
    trial.idle(IDLE);
    state(&mut drawn, "after 500 ms without commands", &trial, segment, sectors);
    let again = trial.places();
    for (title, places) in [
        ("Segment 100 when sector 801 was written", &places),
        ("Segment 100 after its TRIM, when it was written again and the drive was idle", &again),
    ] {
        drawn
            .pictures
            .push(blocks(title, places, pages, &["segment 100", "sector 801"], |sector| usize::from(sector == SECTOR)));
    }
    Ok(drawn)
}

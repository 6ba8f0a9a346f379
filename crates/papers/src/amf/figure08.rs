//! Figure 8: appends to two segments that arrive mixed, with an I/O queue for each channel and way and with a single one.

use super::common::{illustrated, of_paper};
use super::trial::{Sent, Trial};
use crate::frame::{Content, Drawn, Figure, Lane, Made, Mark, PaperContext, Picture};

/// What is compared: how the page calls it, and what it sets.
const QUEUES: [(&str, &[&str]); 4] = [
    ("multiple queues", &["flash.scheduler=fifo"]),
    ("single queue", &["flash.scheduler=single-fifo"]),
    ("multiple queues, cache program", &["flash.scheduler=fifo", "flash.cache_program=true"]),
    ("single queue, cache program", &["flash.scheduler=single-fifo", "flash.cache_program=true"]),
];

/// Of these, those that the figure shows: their sectors have rows of their own.
const OF_THE_FIGURE: usize = 2;

const BEFORE: &str = "sent before sector 1";
const BLOCK_0: &str = "block of sector 0";
const BLOCK_8: &str = "block of sector 8";
const ALL: &str = "all on flash";
const BUSY: &str = "channels or chips at work, of 4";
const FROM: &str = "sent from";
const TO: &str = "sent until";
const ON_FLASH: &str = "on flash";

fn us(time: ssdlab_base::Nanos) -> f64 {
    time.0 as f64 / 1e3
}

/// The order of arrival: both segments' sectors in turn.
fn arrivals(sectors: u64) -> Vec<u64> {
    (0..sectors).flat_map(|sector| [sector, sector + sectors]).collect()
}

/// Channels and chips over time.
fn picture(setting: &str, sent: &[Sent], channels: u32, end: f64, of_a: u64) -> Picture {
    let lanes = (0..channels).flat_map(|channel| {
        let boxes = |times: fn(&Sent) -> (f64, f64)| {
            let of_channel = sent.iter().filter(move |one| one.place.channel == channel);
            let mut marks: Vec<Mark> = of_channel
                .map(|one| {
                    let (from, to) = times(one);
                    let group = usize::from(one.place.sector >= of_a);
                    Mark { from, to, label: one.place.sector.to_string(), group }
                })
                .collect();
            marks.sort_by(|a, b| a.from.total_cmp(&b.from));
            marks
        };
        [
            Lane { name: format!("channel {channel}"), boxes: boxes(|one| (us(one.sent.0), us(one.sent.1))) },
            Lane {
                name: format!("  chip {channel}"),
                boxes: boxes(|one| (us(one.programmed.0), us(one.programmed.1))),
            },
        ]
    });
    Picture {
        title: format!("With {setting}: transfers of the sectors on the channels, and their programs on the chips"),
        x: "us",
        end,
        groups: vec!["segment A".to_string(), "segment B".to_string()],
        lanes: lanes.collect(),
    }
}

pub(super) static FIGURE: Figure = Figure {
    id: "figure08",
    title: "I/O queues",
    about: "The sectors of segments A (0 to 7) and B (8 to 15) arrive at one instant, in the order 0, 8, 1, 9, 2, 10 \
            and so on, at a drive of AFTL with the figure's geometry and the prototype's timing. Times are those of \
            the chips' operations. A single queue (flash.scheduler=single-fifo) sends its head when the chip is free, \
            and the next sector when the head's data has crossed the channel. The prototype's chips accept no data \
            while they program; with cache program they do. Both are shown.",
    differs: "",
    series: &[BEFORE, BLOCK_0, BLOCK_8, ALL, BUSY, FROM, TO, ON_FLASH],
    content: Content::Facts(draw),
};

fn draw(context: &PaperContext) -> Made {
    let mut drawn = Drawn::default();
    let input = "a drive of AFTL with the figure's geometry";
    let mut all: Vec<(&str, Vec<Sent>, u32, u64)> = Vec::new();
    for (setting, set) in QUEUES {
        let config = illustrated(context, "Figure 8", set)?;
        let channels = config.flash.geometry.channels;
        let mut trial = Trial::new(&config)?;
        let sectors = trial.segment_sectors();
        trial.write(&arrivals(sectors))?;
        all.push((setting, trial.sent()?, channels, sectors));
    }
    let ends = |sent: &[Sent]| sent.iter().map(|one| one.programmed.1).max().unwrap_or_default();
    let end = all.iter().map(|(_, sent, ..)| us(ends(sent))).fold(0.0, f64::max);
    for (setting, sent, channels, _) in &all {
        let find = |sector| sent.iter().find(|one| one.place.sector == sector);
        let [Some(zero), Some(one), Some(eight)] = [0, 1, 8].map(find) else {
            return Err(format!("with {setting}: sectors 0, 1 and 8 are not all on the chips").into());
        };
        let before = sent.iter().filter(|other| other.sent.1 <= one.sent.0).count();
        // The figure numbers blocks over all channels.
        let number = |sent: &Sent| f64::from(sent.place.block * channels + sent.place.channel);
        let work = |one: &Sent| (one.sent.1 - one.sent.0) + (one.programmed.1 - one.programmed.0);
        let busy = us(sent.iter().map(work).sum::<ssdlab_base::Nanos>()) / us(ends(sent));
        let values = [
            (BEFORE, before as f64, ""),
            (BLOCK_0, number(zero), ""),
            (BLOCK_8, number(eight), ""),
            (ALL, us(ends(sent)), "us"),
            (BUSY, busy, ""),
        ];
        drawn.values(&of_paper("segments A and B", "", setting, input), values);
    }
    for (setting, sent, ..) in all.iter().take(OF_THE_FIGURE) {
        for one in sent {
            let times = [(FROM, one.sent.0), (TO, one.sent.1), (ON_FLASH, one.programmed.1)];
            let label = of_paper(&format!("sector {}", one.place.sector), "", setting, input);
            drawn.values(&label, times.map(|(series, time)| (series, us(time), "us")));
        }
    }
    let pictures = all.iter().map(|(setting, sent, channels, of_a)| picture(setting, sent, *channels, end, *of_a));
    drawn.pictures.extend(pictures);
    Ok(drawn)
}

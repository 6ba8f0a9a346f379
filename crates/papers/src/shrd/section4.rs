//! Section 4.5: how long autoremap takes that follows a power cut, for a full log.

use std::error::Error;

use ssdlab_base::{Nanos, Op, Request};
use ssdlab_device::{Data, Drive, DriveConfig, Options};
use ssdlab_flash::Contents;
use ssdlab_host::{Device, Host, Member};

use super::common::DRIVE;
use crate::frame::{Column, Content, Drawn, Figure, Label, Made, PaperContext, names};

/// Bytes of the log (section 4.5), and of a write.
const LOG: u64 = 64 << 20;
const WRITE: u64 = 4096;

/// What recovery of a drive with a full log and nothing else costs.
struct Scan {
    /// Pages whose OOB areas were read.
    pages: u64,
    /// With all dies at work.
    side_by_side: Nanos,
    /// One page after another.
    in_series: Nanos,
}

/// One write to each of `units` units, in an order that is none: the multiplier is a prime.
fn scattered(number: u64, units: u64) -> Request {
    let sectors = WRITE / 512;
    Request::new(Op::Write, number * 7919 % units * sectors, sectors)
}

/// Fills the log through the driver, 32 writes at a time, and cuts the power.
fn scan(config: &DriveConfig) -> Result<Scan, Box<dyn Error>> {
    let options = Options { seed: 1, contents: Contents::Nothing };
    let new = || Drive::new(config, options);
    let host = Host::parse("[[layer]]\nkind = \"shrd\"\n", "section4")?;
    let mut stack = host.build(vec![Member::of("section4", new()?, options)])?;
    let units = LOG / WRITE;
    for first in (0..units).step_by(32) {
        for number in first..(first + 32).min(units) {
            stack.submit(&Request { at: stack.now(), ..scattered(number, units) }, Data::Nothing);
        }
        drain(&mut *stack);
    }
    stack.submit(&Request { at: stack.now(), ..Request::new(Op::Flush, 0, 0) }, Data::Nothing);
    drain(&mut *stack);
    let drive = std::mem::replace(stack.drives_mut().remove(0).device, new()?);
    let flash = drive.power_cut();
    let (_, recovery) = Drive::recover(config, options, flash)?;
    let timing = &config.flash.timing;
    let reads = timing.read.iter().map(|read| read.max.0).sum::<u64>() / timing.read.len() as u64;
    // On the channel only the OOB area goes, which is short beside the array read.
    let in_series = Nanos(recovery.pages_read * (reads + timing.command.0));
    Ok(Scan { pages: recovery.pages_read, side_by_side: recovery.time, in_series })
}

fn drain(stack: &mut dyn Device) {
    while stack.outstanding() > 0 && stack.run_to_completion(Nanos::MAX) {
        stack.completions().clear();
    }
    stack.completions().clear();
}

const COLUMNS: [Column<Scan>; 3] = [
    ("pages read", "", |scan| Some(scan.pages as f64)),
    ("dies side by side", "s", |scan| Some(scan.side_by_side.0 as f64 / 1e9)),
    ("one page after another", "s", |scan| Some(scan.in_series.0 as f64 / 1e9)),
];

pub(super) static FIGURE: Figure = Figure {
    id: "section4",
    title: "autoremap after a power cut",
    about: "The log of 64 MB is filled with writes of 4 KB through the driver, and the power goes. Recovery reads the \
            OOB areas of the log's pages and of the map's. The paper's controller reads one page after another, or \
            this is how its bound comes about: 8,192 pages of 85 us.",
    differs: "",
    series: &names(&COLUMNS),
    content: Content::Facts(draw),
};

fn draw(context: &PaperContext) -> Made {
    let keys = ["ftl.design=shrd", "buffer.policy=none"];
    let scan = scan(&context.variant(DRIVE, "SHRD", &keys)?)?;
    let input = "4 KB writes through the driver".to_string();
    let label = Label { input, ..Label::described("a full log", "", "section 4.5") };
    let mut drawn = Drawn::default();
    drawn.columns(&label, &scan, &COLUMNS);
    Ok(drawn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_unit_of_the_log_is_written_once() {
        let units = LOG / WRITE;
        let mut sectors: Vec<u64> = (0..units).map(|number| scattered(number, units).sector).collect();
        sectors.sort_unstable();
        assert!(sectors.iter().enumerate().all(|(at, sector)| *sector == at as u64 * 8), "a unit twice");
    }
}

//! Section 4.5: how long autoremap takes that follows a power cut, for a full log.

use ssdlab_base::{Nanos, Op, Request};
use ssdlab_device::{Data, Drive, DriveConfig, Options};
use ssdlab_flash::Contents;
use ssdlab_host::{Device, Host, Member};

use super::common::DRIVE;
use crate::frame::{Drawn, Figure, Outcomes, PaperContext, Point, Run};

pub(super) struct Section4;

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
fn scan(config: &DriveConfig) -> Result<Scan, String> {
    let options = Options { seed: 1, contents: Contents::Nothing };
    let new = || Drive::new(config, options).map_err(|error| error.to_string());
    let host = Host::parse("[[layer]]\nkind = \"shrd\"\n", "section4").map_err(|error| error.to_string())?;
    let mut stack = host.build(vec![Member::of("section4", new()?, options)]).map_err(|error| error.to_string())?;
    let units = LOG / WRITE;
    for first in (0..units).step_by(32) {
        for number in first..(first + 32).min(units) {
            stack.submit(&Request { at: stack.now(), ..scattered(number, units) }, Data::Nothing);
        }
        drain(&mut *stack);
    }
    stack.submit(&Request { at: stack.now(), ..Request::new(Op::Flush, 0, 0) }, Data::Nothing);
    drain(&mut *stack);
    let drive = std::mem::replace(stack.parts_mut().remove(0).drive, new()?);
    let flash = drive.power_cut();
    let (_, recovery) = Drive::recover(config, options, flash).map_err(|error| error.to_string())?;
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

const PAGES: &str = "pages read";
const SIDE_BY_SIDE: &str = "dies side by side";
const IN_SERIES: &str = "one page after another";

impl Figure for Section4 {
    fn id(&self) -> &'static str {
        "section4"
    }

    fn title(&self) -> &'static str {
        "autoremap after a power cut"
    }

    fn about(&self) -> &'static str {
        "The log of 64 MB is filled with writes of 4 KB through the driver, and the power goes. Recovery reads the OOB areas of the log's pages and \
         of the map's. The paper's controller reads one page after another, or this is how its bound comes about: 8,192 pages of 85 us."
    }

    fn series(&self) -> &'static [&'static str] {
        &[PAGES, SIDE_BY_SIDE, IN_SERIES]
    }

    fn runs(&self, _scene: &PaperContext) -> Vec<Run> {
        Vec::new()
    }

    fn draw(&self, context: &PaperContext, _outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        let keys = ["ftl.design=shrd", "buffer.policy=none"];
        let scanned =
            context.variant(DRIVE, "SHRD", &keys).map_err(|error| error.to_string()).and_then(|config| scan(&config));
        match scanned {
            Err(why) => drawn.remarks.push(why),
            Ok(scan) => {
                let seconds = |time: Nanos| time.0 as f64 / 1e9;
                let values = [
                    (PAGES, scan.pages as f64, ""),
                    (SIDE_BY_SIDE, seconds(scan.side_by_side), "s"),
                    (IN_SERIES, seconds(scan.in_series), "s"),
                ];
                drawn.points.extend(values.map(|(series, value, unit)| Point {
                    workload: "a full log".to_string(),
                    page_size: String::new(),
                    setting: String::new(),
                    series,
                    value,
                    unit,
                    input: "4 KB writes through the driver".to_string(),
                    stands_for: "section 4.5".to_string(),
                    events: None,
                }));
            }
        }
        drawn
    }
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

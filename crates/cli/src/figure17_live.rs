//! `ssdlab reproduce waflash/figure17-live`: Filebench's personalities for real, on ext4 on two served drives, in turns.
//!
//! ```text
//! personality -> ext4 -> loop device -> FUSE -> drive (baseline | WAFLASH), each in an image of its own
//! ```
//!
//! Both drives are up at the same time; they are prepared as fast as they can be and then slowed down alike, so that
//! they, and not this machine's cores, are what limits.

mod rig;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use ssdlab_live::mount;
use ssdlab_papers::{Content, Drawn, Figure, Library, Outcomes, PaperContext, Point, Report, docs};
use ssdlab_workload::files::Personality;

use crate::failure::Failure;
use crate::reproduce::Reproduce;
use crate::{interrupt, panic, stderr, stdout};
use rig::{Rig, Tally, Turn};

/// What the command line calls it.
pub(crate) const NAME: &str = "waflash/figure17-live";
/// What it shows.
pub(crate) const TITLE: &str = "Filebench for real, on ext4 on served drives, pages of 16 KB";

const ID: &str = "figure17-live";
/// The emulated drive has 48 GB (section 5.1).
const CAPACITY: &str = "flash.blocks_per_plane=192";
/// The two drives: what columns call them, and the variant.
const DRIVES: [(&str, &str); 2] = [("Baseline", "VSSIM"), ("WAFLASH", "WAFLASH")];
/// Each personality, the paper's name of it, and the operations of a turn through the page cache: what they write is some
/// times the write buffer.
const PERSONALITIES: [(&str, &str, u64); 4] = [
    ("randomwrite", "Random Write", 30_000),
    ("fileserver", "Fileserver", 50_000),
    ("webserver", "Webserver", 1_000_000),
    ("webproxy", "Webproxy", 1_000_000),
];

/// How long and how slow.
struct Plan {
    /// Everything on the drives takes N times as long as in the model.
    slower: f64,
    /// Turns of each drive that count; one before them does not: buffers fill.
    turns: u32,
    /// Seconds of a turn with direct I/O.
    seconds: f64,
    /// By this are the operations of a turn through the page cache divided.
    fewer: u64,
    /// Smaller files, where nothing but the way is tried.
    set: &'static [&'static str],
}

const WHOLE: Plan = Plan { slower: 20.0, turns: 2, seconds: 4.0, fewer: 1, set: &[] };
const QUICK: Plan = Plan { slower: 2.0, turns: 1, seconds: 0.2, fewer: 100, set: &["mean_size=64k", "threads=4"] };

/// Does it.
pub(crate) fn run(args: &Reproduce) -> Result<ExitCode, Failure> {
    if let Some(why) = mount::why_no_loop_device() {
        return Err(rig::cannot(why));
    }
    let out = args.out.clone().unwrap_or_else(|| Path::new("out").join("waflash"));
    ssdlab_papers::try_out(&out)?;
    let (paper, _) = ssdlab_papers::find("waflash")?;
    let mut context = PaperContext::open(paper, &Library::default(), args.size())?;
    context.inputs.clear();
    context.publish_as("figure17", ID);
    let plan = if args.quick { QUICK } else { WHOLE };
    let stop = interrupt::listen_saying("interrupted: the drives are taken down")?;
    panic::end_the_process();
    let mut drawn = Drawn::default();
    let mut late = Vec::new();
    for (name, shown, operations) in PERSONALITIES {
        for (direct, setting) in [(false, "page cache"), (true, "direct I/O")] {
            let turn = if direct { Turn::Seconds(plan.seconds) } else { Turn::Operations(operations / plan.fewer) };
            let case = Case { context: &context, plan: &plan, name, direct, turn, out: &out, quiet: args.quiet, stop };
            let [base, ours] = case.measure(&mut late)?;
            drawn.points.extend(points(shown, setting, name, &base, &ours, plan.slower));
        }
    }
    for setting in ["page cache", "direct I/O"] {
        drawn.bars_of(format!("operations, {setting}"), "operations/s", |point| {
            point.setting == setting && SERIES[..2].contains(&point.series)
        });
        drawn.bars_of(format!("gain over the baseline, {setting}"), "operations more, %", |point| {
            point.setting == setting && point.series == SERIES[2]
        });
    }
    drawn.remark(format!(
        "{} turns for each drive after one that does not count, at `model*{}`: operations and latencies are in the drive's \
         time, in which everything else is {} times as fast as this machine.",
        plan.turns, plan.slower, plan.slower
    ));
    let mean_us = late.iter().sum::<f64>() / late.len().max(1) as f64 / 1e3;
    drawn.remark(format!("Answers left {mean_us:.0} us of this machine's time later than the model says on average."));
    let content = Content::Measured(drawn);
    let figure = Figure { id: ID, title: TITLE, about: ABOUT, differs: "", series: SERIES, content };
    finish(args, &context, &figure, &out)
}

const ABOUT: &str = "Operations of the personality itself, on ext4 on a served drive of 48 GB (loop device, FUSE), through \
                     the page cache (a fixed number of operations and a final sync, all of it timed) and past it; the baseline \
                     and WAFLASH take turns. The paper's numbers are those of Filebench in a QEMU guest.";
const SERIES: &[&str] =
    &["Baseline", "WAFLASH", "gain of WAFLASH", "latency, Baseline", "latency, WAFLASH", "turns differ by"];

/// Tables, files and pages.
fn finish(args: &Reproduce, context: &PaperContext, figure: &Figure, out: &Path) -> Result<ExitCode, Failure> {
    let report = Report::of(context, &[figure], &Outcomes::default());
    let folder = out.join(ID);
    ssdlab_papers::write(&report, context, &folder).map_err(Failure::work)?;
    if let Some(pages) = &args.docs {
        docs::update(&report, pages).map_err(Failure::work)?;
    }
    match args.json {
        true => stdout::print_json(&report)?,
        false => stdout::print(|to| to.write_all(ssdlab_papers::render(&report).as_bytes()))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// One personality in one way.
struct Case<'a> {
    context: &'a PaperContext,
    plan: &'a Plan,
    name: &'static str,
    direct: bool,
    turn: Turn,
    out: &'a Path,
    quiet: bool,
    stop: &'static AtomicBool,
}

impl Case<'_> {
    /// Brings both drives up, measures in turns, and takes them down.
    fn measure(&self, late: &mut Vec<f64>) -> Result<[Tally; 2], Failure> {
        let personality = self.personality()?;
        let mut rigs = Vec::new();
        for (shown, variant) in DRIVES {
            self.say(&format!("{shown} is made ready"));
            let config =
                self.context.variant("16k", variant, if self.context.is_quick() { &[] } else { &[CAPACITY] })?;
            let mut rig = Rig::up(&config, &self.folder(variant), self.plan.slower)?;
            rig.prepare(&personality, self.context.experiment.seed, self.stop)?;
            rigs.push(rig);
        }
        let mut tallies = [Tally::default(), Tally::default()];
        for (index, rig) in rigs.iter_mut().enumerate() {
            self.say(&format!("{} warms up", DRIVES[index].0));
            rig.slow_down(self.plan.slower);
            rig.turn(&personality, self.turn, self.stop)?;
        }
        for turn in 0..self.plan.turns {
            for (index, rig) in rigs.iter_mut().enumerate() {
                self.say(&format!("{}, turn {} of {}", DRIVES[index].0, turn + 1, self.plan.turns));
                tallies[index].add(rig.turn(&personality, self.turn, self.stop)?);
            }
        }
        for rig in rigs {
            late.push(rig.lateness_ns());
            rig.down()?;
        }
        Ok(tallies)
    }

    fn personality(&self) -> Result<Personality, Failure> {
        let mut personality = Personality::open(self.name).map_err(Failure::input)?;
        let mut settings = vec!["paper=waflash".to_string()];
        settings.extend(self.plan.set.iter().map(ToString::to_string));
        if !self.plan.set.is_empty() && self.name != "randomwrite" {
            settings.push("files=40".to_string());
        }
        if self.direct {
            settings.push("direct=true".to_string());
        }
        for setting in &settings {
            personality.set(setting).map_err(Failure::input)?;
        }
        personality.check().map_err(Failure::input)?;
        Ok(personality)
    }

    fn folder(&self, variant: &str) -> PathBuf {
        self.out.join(format!("live-{}-{variant}", std::process::id()))
    }

    fn say(&self, what: &str) {
        if !self.quiet && !self.stop.load(Ordering::Relaxed) {
            stderr::say(format_args!("{}{}: {what}", self.name, if self.direct { " with direct I/O" } else { "" }));
        }
    }
}

/// A row of the table, in the drive's time.
fn points(shown: &str, setting: &str, name: &str, base: &Tally, ours: &Tally, slower: f64) -> Vec<Point> {
    let point = |series, value, unit| Point {
        workload: shown.to_string(),
        page_size: "16k".to_string(),
        setting: setting.to_string(),
        series,
        value,
        unit,
        input: format!("ssdlab files {name}"),
        stands_for: shown.to_string(),
        events: None,
    };
    let (base_rate, our_rate) = (base.rate() * slower, ours.rate() * slower);
    let mut row =
        vec![point(SERIES[0], base_rate.round(), "operations/s"), point(SERIES[1], our_rate.round(), "operations/s")];
    if base_rate > 0.0 {
        row.push(point(SERIES[2], 100.0 * (our_rate / base_rate - 1.0), "%"));
    }
    row.push(point(SERIES[3], base.mean_us() / slower, "us"));
    row.push(point(SERIES[4], ours.mean_us() / slower, "us"));
    row.push(point(SERIES[5], base.spread_percent().max(ours.spread_percent()), "%"));
    row
}

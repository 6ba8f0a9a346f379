//! Figure 14: PC-LRU against MCA, the buffer that also knows partial pages (section 5.3).

use super::common::{PAGE, SETTINGS, events, figure, less, mean_latency, point, runs_at, sent};
use crate::frame::{Drawn, Figure, Measured, Outcomes, PaperContext, Run};

pub(super) struct Figure14;

const GAINS: [(&str, &str); 2] = [("gain of PC-LRU", "PC-LRU"), ("gain of MCA", "MCA")];
/// PC-LRU's column, MCA's, their ratio's, and where a result has it.
const DELAYED: [([&str; 3], &str); 2] = [
    (["delayed by PC-LRU", "delayed by MCA", "delayed by PC-LRU against MCA"], "design.buffer_pages_delayed"),
    (["delays by PC-LRU", "delays by MCA", "delays by PC-LRU against MCA"], "buffer.delayed_pages"),
];
const OPERATIONS: [(&str, &str); 3] =
    [("operations, Baseline", "Baseline"), ("operations, PC-LRU", "PC-LRU"), ("operations, MCA", "MCA")];
const CONVERTED: [(&str, &str); 2] = [("converted by PC-LRU", "PC-LRU"), ("converted by MCA", "MCA")];

/// A panel: its title, what stands on y, and the columns with what the legend calls them.
type PanelOf = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const PANELS: [PanelOf; 5] = [
    ("(a) mean latency", "reduced by, %", &[(GAINS[0].0, "PC-LRU"), (GAINS[1].0, "MCA")]),
    ("(b) partial pages delayed", "pages", &[("delayed by PC-LRU", "PC-LRU"), ("delayed by MCA", "MCA")]),
    (
        "(b) delays by PC-LRU relative to MCA",
        "relative to MCA",
        &[("delayed by PC-LRU against MCA", "pages"), ("delays by PC-LRU against MCA", "times")],
    ),
    (
        "(c) operations of a channel",
        "operations",
        &[(OPERATIONS[0].0, "Baseline"), (OPERATIONS[1].0, "PC-LRU"), (OPERATIONS[2].0, "MCA")],
    ),
    ("(d) partial pages made full", "%", &[(CONVERTED[0].0, "PC-LRU"), (CONVERTED[1].0, "MCA")]),
];

impl Figure for Figure14 {
    fn id(&self) -> &'static str {
        "figure14"
    }

    fn title(&self) -> &'static str {
        "PC-LRU against MCA, pages of 8 KB"
    }

    fn about(&self) -> &'static str {
        "(a) reduction of the mean latency; (b) partial pages that stayed when they would have left, each once \
         until its next write, and how often that happened (the paper does not say which it plots); (c) operations that a \
         channel served, the mean of the four (the paper plots the mean number of sub-requests on the channels for CFS and \
         gives no number); (d) of the partial pages, those that overwrites made full in the buffer before they left. The page size is \
         our choice. MCA is built after its description in sections 5.3 and 7."
    }

    fn differs(&self) -> &'static str {
        "At the true times there is little congestion; half loaded, PC-LRU keeps partial pages at the cost of write hits. The \
         paper does not say which count of delays it plots."
    }

    fn series(&self) -> &'static [&'static str] {
        &[
            "gain of PC-LRU",
            "gain of MCA",
            "delayed by PC-LRU",
            "delayed by MCA",
            "delayed by PC-LRU against MCA",
            "delays by PC-LRU",
            "delays by MCA",
            "delays by PC-LRU against MCA",
            "operations, Baseline",
            "operations, PC-LRU",
            "operations, MCA",
            "converted by PC-LRU",
            "converted by MCA",
        ]
    }

    fn runs(&self, context: &PaperContext) -> Vec<Run> {
        runs_at(context, PAGE, &["Baseline", "PC-LRU", "MCA"])
    }

    fn draw(&self, context: &PaperContext, outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        for (input, replay, setting) in sent(context) {
            let run = |variant| context.run(PAGE, variant, input, &replay);
            let mut add_of = |series, value: Option<f64>, unit, events| {
                if let Some(value) = value {
                    drawn.points.push(point(input, PAGE, setting, series, value, unit).of_events(events));
                }
            };
            for (series, variant) in GAINS {
                let gain = less(outcomes, &run("Baseline"), &run(variant), mean_latency);
                add_of(series, gain, "%", events(outcomes, &run("Baseline")));
            }
            for ([by_pc_lru, by_mca, ratio], path) in DELAYED {
                let delayed = |variant| outcomes.get(&run(variant))?.number(path);
                let (ours, theirs) = (delayed("PC-LRU"), delayed("MCA"));
                add_of(by_pc_lru, ours, "pages", None);
                add_of(by_mca, theirs, "pages", None);
                let comparable = theirs.filter(|theirs| *theirs > 0.0);
                // However often a page stayed, it is one page.
                let pages = outcomes.get(&run("MCA")).and_then(|run| run.number(DELAYED[0].1));
                add_of(ratio, ours.zip(comparable).map(|(ours, theirs)| ours / theirs), "x", pages);
            }
            let mut add = |series, value, unit| add_of(series, value, unit, None);
            for (series, variant) in OPERATIONS {
                add(series, figure(outcomes, &run(variant), operations), "operations");
            }
            for (series, variant) in CONVERTED {
                add(series, figure(outcomes, &run(variant), converted), "%");
            }
        }
        for setting in SETTINGS {
            for (title, y, columns) in PANELS {
                drawn.bars(format!("{title}, {setting}"), ["", y], |point| {
                    let mut of_setting = columns.iter().filter(|_| point.setting == setting);
                    let (_, name) = of_setting.find(|(series, _)| *series == point.series)?;
                    Some(((*name).to_string(), point.workload.clone()))
                });
            }
        }
        drawn
    }
}

/// Reads and programs a channel served.
fn operations(measured: &Measured) -> Option<f64> {
    let channels = measured.column("utilization.channels")?.len() as f64;
    Some(((measured.number("flash.reads.total")? + measured.number("flash.programs.total")?) / channels).round())
}

/// Of the partial pages that came to an end, those that overwrites made full before they left, per cent.
fn converted(measured: &Measured) -> Option<f64> {
    let converted = measured.number("buffer.converted_pages")?;
    let ended = converted + measured.number("buffer.partial_pages")?;
    (ended > 0.0).then_some(100.0 * converted / ended)
}

//! A paper of two figures that share runs, on a drive of 12 MiB.

use crate::frame::{Drawn, Figure, Input, Outcomes, Paper, PaperContext, Point, Run};

const DRIVE: &str = r#"
name = "toy"
[flash]
channels = 2
chips_per_channel = 1
dies_per_chip = 1
planes_per_die = 1
blocks_per_plane = 64
pages_per_block = 32
page_size = "4k"
cell = "slc"
[capacity]
user = "12m"
[buffer]
size = "256k"
"#;

const SCHEDULER: &str = "[[layer]]\nkind = \"scheduler\"\ndepth = 2\n";

const AGEING: &str =
    "[fill]\nrw=write\nbs=64k\nsize=60%\n[over]\nstonewall\nrw=randwrite\nbs=4k\nsize=60%\nio_size=80%\n";

pub(super) const EXPERIMENT: &str = r#"
seed = 7
ageing = "ageing.fio"
[drives]
toy = "toy"
[variants.lru]
set = ["buffer.policy=lru"]
about = "LRU"
[variants.fifo]
set = ["buffer.policy=fifo"]
about = "FIFO"
[variants.none]
set = ["buffer.policy=none"]
about = "no buffer"
[variants.layered]
set = ["buffer.policy=lru"]
host = "scheduler.toml"
about = "LRU under a scheduler"
[variants.lost]
set = []
host = "no-such-host.toml"
about = "layers that the paper does not have"
[variants.wrong]
set = ["buffer.policy=unheard-of"]
about = "a policy that no ssdlab has"
[[input]]
name = "writes"
stands_for = "W"
group = "paper"
workload = "rw=randwrite,bs=1k,iodepth=4,io_size=1m"
about = "random writes"
[[input]]
name = "lost"
stands_for = "L"
group = "paper"
file = "no-such-trace.csv"
about = "a trace that nobody has"
[quick]
requests = 100
set = []
inputs = 1
[middle]
requests = 200
divided_by = 4
judged = ["figure01"]
about = "a fifth of the requests."
"#;

const PUBLISHED: &str = "figure,workload,page_size,setting,series,value,unit,where
figure01,W,toy,any,lru,1..4000000,ns,section 1
figure01,W,toy,any,fifo,1..4000000,ns,section 1
figure01,W,toy,any,none,1..4000000,ns,section 1
";

pub(super) static TOY: Paper = Paper {
    name: "toy",
    title: "A toy",
    experiment: EXPERIMENT,
    devices: &[("toy", DRIVE)],
    files: &[("scheduler.toml", SCHEDULER), ("ageing.fio", AGEING)],
    drives_are: "page",
    published: &[("figure01.csv", PUBLISHED)],
    figures: &[
        &Means { id: "figure01", variants: &["lru", "fifo", "none", "wrong"], only: None },
        &Means { id: "figure02", variants: &["none", "lru"], only: None },
    ],
};

/// A figure of the input that is there alone.
pub(super) static NOTHING_LOST: Means = Means { id: "figure03", variants: &["none"], only: Some("writes") };

pub(super) struct Means {
    id: &'static str,
    variants: &'static [&'static str],
    /// The only input that it takes, if it does not take all.
    only: Option<&'static str>,
}

impl Means {
    fn inputs<'s>(&self, context: &'s PaperContext) -> impl Iterator<Item = &'s Input> {
        let only = self.only;
        context.inputs("paper").filter(move |input| only.is_none_or(|only| input.name == only))
    }
}

impl Figure for Means {
    fn id(&self) -> &'static str {
        self.id
    }

    fn title(&self) -> &'static str {
        "mean latency"
    }

    fn about(&self) -> &'static str {
        "Of all requests (`latency_ns.all.mean`)."
    }

    fn differs(&self) -> &'static str {
        "A toy has reasons of its own."
    }

    fn series(&self) -> &'static [&'static str] {
        self.variants
    }

    fn runs(&self, context: &PaperContext) -> Vec<Run> {
        let inputs = self.inputs(context);
        inputs.flat_map(|input| self.variants.iter().map(|variant| context.run("toy", variant, input, ""))).collect()
    }

    fn draw(&self, context: &PaperContext, outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        for input in self.inputs(context) {
            for &series in self.variants {
                let measured = outcomes.get(&context.run("toy", series, input, ""));
                let Some(value) = measured.and_then(|run| run.number("latency_ns.all.mean")) else { continue };
                drawn.points.push(Point {
                    workload: input.name.clone(),
                    page_size: "toy".to_string(),
                    setting: String::new(),
                    series,
                    value,
                    unit: "ns",
                    input: input.shown.clone(),
                    stands_for: input.stands_for.clone(),
                    events: None,
                });
            }
        }
        drawn.bars("(a) mean latency", ["", "mean latency, ns"], |point| {
            Some((point.series.to_string(), point.workload.clone()))
        });
        drawn.bars("of no value", ["", "nothing"], |_| None);
        drawn
    }
}

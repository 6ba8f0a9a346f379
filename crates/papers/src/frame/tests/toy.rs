//! A paper of two figures that share runs, on a drive of 12 MiB.

use crate::frame::{Column, Content, Drawn, Figure, Input, Label, Outcomes, Paper, PaperContext, Reading, Row, names};

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
    figures: &[&FIGURE01, &FIGURE02],
};

static FIGURE01: Figure = means("figure01", |context| rows(context, &["lru", "fifo", "none", "wrong"], ""));
static FIGURE02: Figure = means("figure02", |context| rows(context, &["none", "lru"], ""));

/// A figure of the input that is there alone.
pub(super) static NOTHING_LOST: Figure = means("figure03", |context| rows(context, &["none"], "writes"));

const COLUMNS: [Column<Reading>; 4] =
    [("lru", "ns", mean), ("fifo", "ns", mean), ("none", "ns", mean), ("wrong", "ns", mean)];

fn mean(run: &Reading) -> Option<f64> {
    run.number("latency_ns.all.mean")
}

const fn means(id: &'static str, rows: fn(&PaperContext) -> Vec<Row>) -> Figure {
    Figure {
        id,
        title: "mean latency",
        about: "Of all requests (`latency_ns.all.mean`).",
        differs: "A toy has reasons of its own.",
        series: const { &names(&COLUMNS) },
        content: Content::Runs { rows, panels },
    }
}

/// A row for each input, or for the one called `only`, with a column for each variant.
fn rows(context: &PaperContext, variants: &[&str], only: &str) -> Vec<Row> {
    let row = |input: &Input, variant: &str| {
        let column = COLUMNS.iter().position(|(name, ..)| *name == variant).expect("a column");
        Label::of(input, "toy", "").row(&context.run("toy", variant, input, ""), &COLUMNS[column..=column])
    };
    let inputs = context.inputs("paper").filter(|input| only.is_empty() || input.name == only);
    inputs.flat_map(|input| variants.iter().map(move |variant| row(input, variant))).collect()
}

fn panels(_context: &PaperContext, _outcomes: &Outcomes, drawn: &mut Drawn) {
    drawn.bars("(a) mean latency", ["", "mean latency, ns"], |point| {
        Some((point.series.to_string(), point.workload.clone()))
    });
    drawn.bars("of no value", ["", "nothing"], |_| None);
}

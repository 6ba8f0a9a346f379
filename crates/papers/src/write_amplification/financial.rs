//! Figures 10 and 11: WALVD of SSD-I in steady state under F1 and F2.

use super::common::{DIE, volumes};
use super::walvd::{self, Naming};
use crate::frame::{Content, Drawn, Figure, Input, Outcomes, PaperContext, Preparation, Run};

/// How traces are sent: one after the other, as many at a time as SATA queues. At their own times they write 0.1 to
/// 0.4 MB/s, less than any throughput of the paper's.
pub(super) const REPLAY: &str = "closed:32";

/// Sub-tests; the paper's text names a thirteenth.
const COUNT: u64 = 15;

/// F1.
pub(super) static FIGURE10: Figure = figure(
    "figure10",
    "write amplification by sub-test in steady state, F1 (WALVD)",
    |context| walvd::runs(F1.inputs(context)),
    |context, outcomes| walvd::draw(outcomes, F1.inputs(context), &F1.naming),
);

/// F2.
pub(super) static FIGURE11: Figure = figure(
    "figure11",
    "write amplification by sub-test in steady state, F2 (WALVD)",
    |context| walvd::runs(F2.inputs(context)),
    |context, outcomes| walvd::draw(outcomes, F2.inputs(context), &F2.naming),
);

pub(super) static F1: Financial = Financial {
    // 5 GiB is the only volume of a sub-test that the paper gives; an excerpt of 28 MB is replayed over and over.
    groups: &[("F1", 5 << 30), ("F1 excerpt", 256 << 20)],
    naming: Naming { drive: "SSD-I", prefix: "sub-test ", stable_from: 13 },
};

pub(super) static F2: Financial = Financial {
    // All that Table II says F2 writes: 5 GiB of a trace that reads four bytes of five would be three passes of it.
    groups: &[("F2", 1843 << 20)],
    naming: Naming { drive: "SSD-I", prefix: "sub-test ", stable_from: 10 },
};

/// A trace's groups of inputs with the volume of a sub-test, and its sub-tests.
pub(super) struct Financial {
    groups: &'static [(&'static str, u64)],
    naming: Naming,
}

impl Financial {
    /// The inputs with the run of each.
    pub(super) fn inputs<'s>(&self, context: &'s PaperContext) -> Vec<(&'s Input, Run)> {
        let of_group = |&(group, volume): &(&'static str, u64)| {
            let inputs: Vec<&Input> = context.inputs(group).collect();
            let run = move |input: &'s Input| {
                let run = context.run("SSD-I", "described", input, REPLAY).prepared(Preparation::Steady);
                (input, run.recorded(DIE).divided(volumes(context, COUNT, volume)))
            };
            inputs.into_iter().map(run).collect::<Vec<_>>()
        };
        self.groups.iter().flat_map(of_group).collect()
    }
}

const fn figure(
    id: &'static str,
    title: &'static str,
    runs: fn(&PaperContext) -> Vec<Run>,
    draw: fn(&PaperContext, &Outcomes) -> Drawn,
) -> Figure {
    Figure {
        id,
        title,
        about: "On the random steady state of SSD-I, sub-tests divided by 5.5 minutes of quiet, requests sent \
                closed:32. The traces are not ours to have whole: a model is a generator after Table II and, for F1, \
                the real excerpt; the excerpt is replayed over and over. The paper gives no volume of a sub-test here: \
                5 GiB for F1 as in Figure 9, 1.8 GiB (all that the trace writes) for F2. \"stable\" is the mean from \
                the sub-test on at which the paper calls it so.",
        differs: "With greedy victims WA does not fall: cold blocks keep their stale pages for ever. With cost-benefit \
                  it does (Victims), though not as far.",
        series: &walvd::SERIES,
        content: Content::Own { runs, draw },
    }
}

//! Figures 10 and 11: WALVD of SSD-I in steady state under F1 and F2.

use super::common::{DIE, volumes};
use super::walvd::{self, Naming};
use crate::frame::{Drawn, Figure, Input, Outcomes, PaperContext, Preparation, Run};

/// How traces are sent: one after the other, as many at a time as SATA queues. At their own times they write 0.1 to
/// 0.4 MB/s, less than any throughput of the paper's.
pub(super) const REPLAY: &str = "closed:32";

/// Sub-tests; the paper's text names a thirteenth.
const COUNT: u64 = 15;

/// F1.
pub(super) static FIGURE10: Financial = Financial {
    id: "figure10",
    title: "write amplification by sub-test in steady state, F1 (WALVD)",
    // 5 GiB is the only volume of a sub-test that the paper gives; an excerpt of 28 MB is replayed over and over.
    groups: &[("F1", 5 << 30), ("F1 excerpt", 256 << 20)],
    naming: Naming { drive: "SSD-I", prefix: "sub-test ", stable_from: 13 },
};

/// F2.
pub(super) static FIGURE11: Financial = Financial {
    id: "figure11",
    title: "write amplification by sub-test in steady state, F2 (WALVD)",
    // All that Table II says F2 writes: 5 GiB of a trace that reads four bytes of five would be three passes of it.
    groups: &[("F2", 1843 << 20)],
    naming: Naming { drive: "SSD-I", prefix: "sub-test ", stable_from: 10 },
};

pub(super) struct Financial {
    id: &'static str,
    title: &'static str,
    groups: &'static [(&'static str, u64)],
    naming: Naming,
}

impl Financial {
    /// The inputs with the run of each.
    pub(super) fn rows<'s>(&self, context: &'s PaperContext) -> Vec<(&'s Input, Run)> {
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

impl Figure for Financial {
    fn id(&self) -> &'static str {
        self.id
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn about(&self) -> &'static str {
        "On the random steady state of SSD-I, sub-tests divided by 5.5 minutes of quiet, requests sent closed:32. The traces \
         are not ours to have whole: a model is a generator after Table II and, for F1, the real excerpt; the excerpt is \
         replayed over and over. The paper gives no volume of a sub-test here: 5 GiB for F1 as in Figure 9, 1.8 GiB (all \
         that the trace writes) for F2. \"stable\" is the mean from the sub-test on at which the paper calls it so."
    }

    fn differs(&self) -> &'static str {
        "With greedy victims WA does not fall: cold blocks keep their stale pages for ever. With cost-benefit it does \
         (Victims), though not as far."
    }

    fn series(&self) -> &'static [&'static str] {
        &walvd::SERIES
    }

    fn runs(&self, context: &PaperContext) -> Vec<Run> {
        self.rows(context).into_iter().map(|(_, run)| run).collect()
    }

    fn draw(&self, context: &PaperContext, outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        for (input, run) in self.rows(context) {
            walvd::draw(&mut drawn, outcomes, &run, input, &self.naming);
        }
        walvd::panels(&mut drawn, &self.naming);
        drawn
    }
}

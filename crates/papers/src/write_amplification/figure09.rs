//! Figure 9: WALVD of SSD-I on partitions, from factory state.

use super::common::{DIE, volumes};
use super::table03::PARTITIONS;
use super::walvd::{self, Naming};
use crate::frame::{Drawn, Figure, Input, Outcomes, PaperContext, Preparation, Run};

/// Section V.B.2: 15 sub-tests of 5 GiB.
const COUNT: u64 = 15;
const VOLUME: u64 = 5 << 30;

/// "after the 6th to 8th sub-test".
const NAMING: Naming = Naming { drive: "SSD-I", prefix: "5G-", stable_from: 8 };

pub(super) struct Figure09;

/// The partitions' workloads, with the run of each.
pub(super) fn rows(context: &PaperContext) -> Vec<(&Input, Run)> {
    let one = |partition: &&str| {
        let input = context.inputs.iter().find(|input| input.stands_for == **partition && input.is_there())?;
        let group = format!("{partition} initial");
        let initial = context.inputs.iter().find(|input| input.group == group && input.is_there())?;
        let run = context.run("SSD-I", "described", input, "").prepared(Preparation::None);
        let run = run.recorded(DIE).divided(volumes(context, COUNT, VOLUME)).beginning_with(initial);
        Some((input, run))
    };
    PARTITIONS.iter().filter_map(one).collect()
}

impl Figure for Figure09 {
    fn id(&self) -> &'static str {
        "figure09"
    }

    fn title(&self) -> &'static str {
        "write amplification by sub-test on partitions of SSD-I (WALVD)"
    }

    fn about(&self) -> &'static str {
        "From factory state; the partition is written once, in order (the paper's \"initial data\", of which it says no \
         more than that), then 15 sub-tests of 5 GiB of random writes of 4 KiB, divided by 5.5 minutes of quiet. The \
         recorder's own tests give the counts. WA of 5G-1 has the programs of the initial data in it and not its bytes, as \
         the paper counts; the next column leaves them out. \"stable\" is the mean of 5G-8 to 5G-15. Programmed is \
         true WA times what is written."
    }

    fn differs(&self) -> &'static str {
        "Greedy page mapping with 7.5 % of over-provisioning costs 7.3 by theory and here, where the paper measured 25; what \
         its product does is not in the paper."
    }

    fn series(&self) -> &'static [&'static str] {
        &walvd::SERIES
    }

    fn runs(&self, context: &PaperContext) -> Vec<Run> {
        rows(context).into_iter().map(|(_, run)| run).collect()
    }

    fn draw(&self, context: &PaperContext, outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        for (input, run) in rows(context) {
            walvd::draw(&mut drawn, outcomes, &run, input, &NAMING);
        }
        walvd::panels(&mut drawn, &NAMING);
        drawn
    }
}

//! Figure 9: WALVD of SSD-I on partitions, from factory state.

use super::common::{DIE, volumes};
use super::table03::PARTITIONS;
use super::walvd::{self, Naming};
use crate::frame::{Content, Figure, Input, PaperContext, Preparation, Run};

/// Section V.B.2: 15 sub-tests of 5 GiB.
const COUNT: u64 = 15;
const VOLUME: u64 = 5 << 30;

/// "after the 6th to 8th sub-test".
const NAMING: Naming = Naming { drive: "SSD-I", prefix: "5G-", stable_from: 8 };

/// The partitions' workloads, with the run of each.
pub(super) fn inputs(context: &PaperContext) -> Vec<(&Input, Run)> {
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

pub(super) static FIGURE: Figure = Figure {
    id: "figure09",
    title: "write amplification by sub-test on partitions of SSD-I (WALVD)",
    about: "From factory state; the partition is written once, in order (the paper's \"initial data\", of which it \
            says no more than that), then 15 sub-tests of 5 GiB of random writes of 4 KiB, divided by 5.5 minutes of \
            quiet. The recorder's own tests give the counts. WA of 5G-1 has the programs of the initial data in it and \
            not its bytes, as the paper counts; the next column leaves them out. \"stable\" is the mean of 5G-8 to \
            5G-15. Programmed is true WA times what is written.",
    differs: "Greedy page mapping with 7.5 % of over-provisioning costs 7.3 by theory and here, where the paper \
              measured 25; what its product does is not in the paper.",
    series: &walvd::SERIES,
    content: Content::Own {
        runs: |context| walvd::runs(inputs(context)),
        draw: |context, outcomes| walvd::draw(outcomes, inputs(context), &NAMING),
    },
};

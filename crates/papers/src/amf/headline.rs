//! What the paper claims for AMF as a whole, and which rows carry each claim.

use super::common::of_paper;
use super::figure10::rate as transactions;
use super::figure12::execution_time;
use super::figure13::{LESS, erasures, fewer};
use super::systems::{AMF, FIO, HADOOP, POSTMARK, SYSTEMS, System, label, run};
use super::table02;
use crate::frame::{Content, Drawn, Figure, Label, Measured, Outcomes, PaperContext, Run};

const MORE: &str = "more performance of AMF";
const SMALLER: &str = "map relative to AFTL";

/// How fast a run is.
type Rate = fn(&Measured) -> Option<f64>;

/// Buffered FIO, Postmark and what stands for Hadoop, each with its rate.
fn works() -> impl Iterator<Item = (&'static str, Rate)> {
    let operations: Rate = |run| run.number("operations_per_second");
    let time: Rate = |run| Some(1.0 / execution_time(run)?);
    let fio = FIO.into_iter().map(move |work| (work, operations));
    fio.chain(POSTMARK.into_iter().map(|work| (work, transactions as Rate)))
        .chain(HADOOP.into_iter().map(move |work| (work, time)))
}

fn others() -> impl Iterator<Item = System> {
    SYSTEMS.into_iter().filter(|system| system.name != AMF.name)
}

pub(super) static FIGURE: Figure = Figure {
    id: "headline",
    title: "the headline",
    about: "The three claims of the abstract and of section 1: up to 80 % more performance, 38 % fewer erasures, and a map of 1/128. \
            Performance is by how much AMF is faster than each other system in each workload of Figures 9, 10 and 12. Erasures are those of Figure 13, and \
            the map is that of Table 2 for 512 GB.",
    differs: "Figures 9, 10 and 13 say why AMF is not as far ahead here: LFS lets the drive copy where the paper's F2FS cleans, the drives \
              begin new, and the databases are missing.",
    series: &[MORE, LESS, SMALLER],
    content: Content::Own { runs, draw },
};

/// The workloads of Figure 13 are among those of performance.
fn runs(context: &PaperContext) -> Vec<Run> {
    let of_works = works().flat_map(|(work, _)| SYSTEMS.map(|system| run(context, work, system)));
    let of_maps = ["PFTL", "AFTL"].into_iter().filter_map(|ftl| table02::run(context, "512 GB", ftl, true));
    of_works.chain(of_maps).collect()
}

fn draw(context: &PaperContext, outcomes: &Outcomes) -> Drawn {
    let mut drawn = Drawn::default();
    for (work, rate) in works() {
        let of = |system| outcomes.get(&run(context, work, system)).and_then(rate);
        for system in others() {
            let (Some(ours), Some(theirs)) = (of(AMF), of(system)) else { continue };
            // Each of them is one of the paper's here, those with our numbers of files as well.
            let label = Label { stands_for: work.to_string(), ..label(context, work, system) };
            drawn.points.push(label.point(MORE, (ours / theirs - 1.0) * 100.0, "%"));
        }
    }
    for system in others() {
        fewer(context, outcomes, &mut drawn, system, (LESS, erasures));
    }
    let map = |ftl: &str| {
        let run = table02::run(context, "512 GB", ftl, true)?;
        table02::map_of(outcomes.get(&run)?)
    };
    if let (Some(pages), Some(segments)) = (map("PFTL"), map("AFTL")) {
        let label = of_paper("prototype", "", "512 GB", "the drive's tables");
        drawn.points.push(label.point(SMALLER, pages / segments, "x"));
    }
    drawn
}

//! What several figures need: the workloads, the two ways of sending them, gains, and where results have a figure.

use crate::frame::{Input, Measured, PaperContext};

pub(super) use crate::frame::point;

/// The page size of the figures that have one: Figures 9 to 13 say 8 KB; 14 to 16 do not say, and 8 KB is our choice.
pub(super) const PAGE: &str = "8k";

/// A buffer of so many MB, in proportion to the size of the runs. A smoke test has it as it is.
pub(super) fn buffer(context: &PaperContext, mb: u64) -> String {
    format!("buffer.size={}m", context.sized(mb << 20) >> 20)
}

/// How inputs are sent, as settings.
pub(super) const SETTINGS: [&str; 2] = ["true times", "half loaded"];

/// How a trace is sent: `--replay`, and what tables call it.
pub(super) type Replay = (String, &'static str);

/// The share of the channels' time that a trace asks for when it is sent `half loaded`.
const LOAD: f64 = 0.5;

/// The ways in which an input is sent. The first is the trace's own clock; at that, most of these traces leave a drive of
/// 64 planes idle nearly all the time. So that congestion, which all of the paper is about, is seen as well, the second
/// shrinks all times alike until the pages that the trace asks for, one transfer each, keep the channels at work for half of the time
/// (at pages of 8 KB; the factor is the same for all page sizes, so that the trace is the same).
pub(super) fn replays(context: &PaperContext, input: &Input) -> Vec<Replay> {
    let mut replays = vec![("timed".to_string(), SETTINGS[0])];
    if let Some(factor) = half_loaded(context, input) {
        replays.push((format!("timed*{factor:.6}"), SETTINGS[1]));
    }
    replays
}

/// The factor on all times for that.
pub(super) fn half_loaded(context: &PaperContext, input: &Input) -> Option<f64> {
    loaded(context, input, LOAD)
}

/// The factor on all times with which an input asks for the share `wanted` of the channels' time; nothing for one that is
/// too dense already, or has no times.
pub(super) fn loaded(context: &PaperContext, input: &Input, wanted: f64) -> Option<f64> {
    let drive = context.drive(PAGE).ok()?;
    let pages_per_second = input.survey.as_ref()?.pages_per_second(PAGE)?;
    let transfer_s = drive.flash.timing.transfer.0 as f64 / 1e9;
    let load = pages_per_second * transfer_s / f64::from(drive.flash.geometry.channels);
    // Six digits behind the point are what is written.
    let factor = (load / wanted * 1e6).round() / 1e6;
    (factor > 0.0 && factor < 1.0).then_some(factor)
}

/// The paper's workloads as far as they are there: models, then excerpts of the real ones.
pub(super) fn workloads(context: &PaperContext) -> impl Iterator<Item = &Input> {
    context.inputs("paper").chain(context.inputs("excerpt"))
}

/// Every workload with each way of sending it.
pub(super) fn sent(context: &PaperContext) -> Vec<(&Input, String, &'static str)> {
    let each = |input| replays(context, input).into_iter().map(move |(replay, setting)| (input, replay, setting));
    workloads(context).flat_map(each).collect()
}

/// Every workload but the excerpts, with each way of sending it: for figures that vary something else as well.
pub(super) fn sent_papers(context: &PaperContext) -> Vec<(&Input, String, &'static str)> {
    sent(context).into_iter().filter(|(input, _, _)| input.group == "paper").collect()
}

/// Mean latency of all requests, flushes too, nanoseconds.
pub(super) fn mean_latency(measured: &Measured) -> Option<f64> {
    measured.number("latency_ns.all.mean")
}

/// Mean latency of all requests, microseconds.
pub(super) fn mean_us(measured: &Measured) -> Option<f64> {
    mean_latency(measured).map(|ns| ns / 1e3)
}

/// 95th percentile of the latency of all requests, nanoseconds.
pub(super) fn p95_latency(measured: &Measured) -> Option<f64> {
    measured.number("latency_ns.all.p95")
}

/// Partial pages written to flash.
pub(super) fn partial_page_writes(measured: &Measured) -> Option<f64> {
    measured.number("design.partial_page_writes").or_else(|| measured.number("buffer.partial_pages"))
}

/// Reads that only partial pages cause: at writing (read-modify-write, merges) and, with several versions, at reading.
pub(super) fn additional_reads(measured: &Measured) -> Option<f64> {
    measured.number("design.additional_reads").or_else(|| measured.number("flash.reads.by_cause.rmw"))
}

/// Pages programmed and copied, for whatever cause.
pub(super) fn flash_writes(measured: &Measured) -> Option<f64> {
    Some(measured.number("flash.programs.total")? + measured.number("flash.copybacks.total")?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Library, Size};
    use crate::waflash::PAPER;

    #[test]
    fn the_middle_size_is_a_quarter_of_requests_footprints_buffers_and_drives_as_loaded() {
        // Without traces: the models.
        let open = |size| PaperContext::open(&PAPER, &Library::default(), size).expect("the paper's data is right");
        let [whole, middle] = [Size::Full, Size::Middle].map(open);
        for (all, part) in workloads(&whole).zip(workloads(&middle)) {
            let [all_of, part_of] = [all, part].map(|input| input.survey.as_ref().expect("a model is there").clone());
            // The limit counts requests of the trace; large ones are sent in parts.
            let requests = all_of.requests as f64 / part_of.requests as f64;
            assert!((3.75..4.05).contains(&requests), "{}: {requests} times the requests", all.name);
            let touched = all_of.space_bytes as f64 / part_of.space_bytes as f64;
            assert!((3.0..4.5).contains(&touched), "{}: {touched} times the space", all.name);
            let [all_of, part_of] =
                [(&whole, all), (&middle, part)].map(|(context, input)| half_loaded(context, input));
            let faster = all_of.expect("a factor") / part_of.expect("a factor");
            assert!((0.8..1.25).contains(&faster), "{}: half loaded is {faster} times as fast", all.name);
        }
        let mut compared = 0;
        for figure in PAPER.figures {
            for (all, part) in figure.runs(&whole).iter().zip(figure.runs(&middle)) {
                let [all_of, part_of] = [(&whole, all), (&middle, &part)]
                    .map(|(context, run)| context.config(run).unwrap_or_else(|error| panic!("{}: {error}", figure.id)));
                assert_eq!((&all.input, all.preparation), (&part.input, part.preparation), "{}", figure.id);
                assert_eq!(all_of.buffer.bytes, 4 * part_of.buffer.bytes, "{}: {part}", figure.id);
                let [blocks, of_part] = [all_of, part_of].map(|drive| drive.flash.geometry.blocks_per_plane);
                let own = figure.id == "figure17" || blocks == 80;
                assert_eq!(blocks, if own { of_part } else { 4 * of_part }, "{}: {part}", figure.id);
                compared += 1;
            }
        }
        assert!(compared > 300, "{compared} runs");
    }
}

//! Invariants of a run that must hold.

use ssdlab_device::Counters;
use ssdlab_flash::{Cause, OpKind};
use ssdlab_host::{LayerMetrics, Traffic};

use crate::replay::{Ended, Recorder};
use crate::result::{Check, Timeline};
use crate::text::counted;

fn check(name: &str, passed: bool, detail: String) -> Check {
    Check { name: name.to_string(), passed, detail }
}

/// Which requests may end with an error.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MayFail {
    /// Any: the drives have faults.
    pub(crate) any: bool,
    /// Trims and writes of zeroes: a disk is below, which takes none.
    pub(crate) trims: bool,
}

/// The invariants that the lab itself can see; the drive adds its own. `faulty` says whether any drive below has faults.
pub(crate) fn invariants(
    may_fail: MayFail,
    ended: Ended,
    recorder: &Recorder,
    counters: &Counters,
    layers: &[LayerMetrics],
    timeline: &Timeline,
    virtual_time_ns: u64,
) -> Vec<Check> {
    let (sent, completed) = (recorder.sent_total(), recorder.completed_total());
    let stuck = match ended {
        Ended::Stuck { outstanding } => format!("; the drive has nothing left to do with {outstanding} of them in it"),
        Ended::Done | Ended::Stopped => String::new(),
    };
    let mut invariants = vec![check(
        "requests_generated_equal_completed",
        recorder.sent == recorder.completed,
        format!("{} sent and {completed} completed{stuck}", counted(sent, "request was", "requests were")),
    )];
    if layers.is_empty() {
        invariants.push(check(
            "requests_completed_equal_drive_counters",
            recorder.completed == counters.commands,
            format!(
                "reads, writes, trims, flushes completed: {:?}; the drive counted {:?}",
                recorder.completed, counters.commands
            ),
        ));
        invariants.push(check(
            "bytes_conserved",
            recorder.sent_bytes == recorder.completed_bytes && recorder.succeeded_bytes() == counters.bytes,
            format!(
                "bytes of reads, writes, trims, flushes sent: {:?}; completed: {:?}, of them with success: {:?}; the drive counted \
                 {:?}",
                recorder.sent_bytes,
                recorder.completed_bytes,
                recorder.succeeded_bytes(),
                counters.bytes
            ),
        ));
    } else {
        invariants.push(handed_down(recorder, counters, layers));
    }

    if !recorder.jobs.is_empty() {
        let of_jobs = recorder.jobs.requests();
        let detail =
            format!("reads, writes, trims, flushes completed: {:?}; over all jobs: {of_jobs:?}", recorder.completed);
        invariants.push(check("requests_equal_sum_over_jobs", of_jobs == recorder.completed, detail));
    }

    if !may_fail.any {
        let failed = recorder.failed - if may_fail.trims { recorder.untrimmed } else { 0 };
        let detail = format!(
            "{failed} of {} ended with an error, and the drive has no faults to blame",
            counted(completed, "request", "requests")
        );
        invariants.push(check("no_errors_without_faults", failed == 0, detail));
    }

    // The timeline adds up differences between samples; the drive's counters are the other side.
    let by_cause =
        |cause: &Cause| counters.flash.get(OpKind::Program, *cause) + counters.flash.get(OpKind::Copyback, *cause);
    let in_timeline = |cause: &Cause| timeline.programs.get(cause.key()).map_or(0, |column| column.iter().sum::<u64>());
    let programs = counters.flash.total(OpKind::Program) + counters.flash.total(OpKind::Copyback);
    let summed: u64 = Cause::ALL.iter().map(in_timeline).sum();
    invariants.push(check(
        "programs_equal_sum_over_timeline",
        programs == summed && Cause::ALL.iter().all(|cause| by_cause(cause) == in_timeline(cause)),
        format!(
            "{programs} pages were programmed or copied in the measured run, before the drive came to rest; the timeline's sum \
             over causes is {summed}"
        ),
    ));

    let latencies: u128 = recorder.latencies.iter().map(|latencies| latencies.sum_ns()).sum();
    if virtual_time_ns > 0 && completed > 0 {
        let span = virtual_time_ns as f64;
        let mean_outstanding = recorder.occupancy as f64 / span;
        let rate = completed as f64 / span;
        let mean_latency = latencies as f64 / completed as f64;
        invariants.push(check(
            "littles_law",
            recorder.occupancy == latencies,
            format!(
                "{mean_outstanding:.6} requests were in the drive on average; throughput times mean latency is {:.6}",
                rate * mean_latency
            ),
        ));
    }
    invariants
}

/// The topmost layer takes what the workload sent, and what each layer sent the devices below it took.
fn handed_down(recorder: &Recorder, counters: &Counters, layers: &[LayerMetrics]) -> Check {
    // What found nothing has no bytes.
    let bytes = std::array::from_fn(|kind| recorder.completed_bytes[kind] - recorder.absent_bytes[kind]);
    let workload = Traffic { requests: recorder.completed, bytes };
    let mut passed = recorder.sent_bytes == recorder.completed_bytes;
    passed &= layers.first().is_none_or(|layer| layer.taken == workload);
    let mut detail = format!("reads, writes, trims, flushes of the workload: {:?}", workload.requests);
    // Drives count the bytes of what succeeded only.
    let unsuccessful = counters.failed_commands + counters.refused.iter().sum::<u64>();
    let all_succeeded = recorder.failed_bytes == [0; 4] && unsuccessful == 0;
    for layer in layers {
        let bytes = !all_succeeded || layer.sent.bytes == layer.below.bytes;
        passed &= bytes && layer.sent.requests == layer.below.requests;
        detail
            .push_str(&format!("; {} took {:?} and sent {:?}", layer.kind, layer.taken.requests, layer.sent.requests));
    }
    detail.push_str(&format!("; the drives counted {:?}, bytes {:?}", counters.commands, counters.bytes));
    check("requests_handed_down", passed, detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::Axis;

    #[test]
    fn a_layer_that_drops_or_adds_a_request_is_found() {
        let mut recorder = Recorder::new(Axis::Time, Counters::default(), 8);
        recorder.completed = [3, 5, 0, 1];
        recorder.completed_bytes = [12_288, 20_480, 0, 0];
        recorder.sent_bytes = recorder.completed_bytes;
        let above = Traffic { requests: recorder.completed, bytes: recorder.completed_bytes };
        let below = Traffic { requests: [3, 2, 0, 1], ..above };
        let counters = Counters { commands: below.requests, bytes: below.bytes, ..Counters::default() };
        let layer = |taken, sent, below| LayerMetrics {
            kind: "scheduler".to_string(),
            configuration: Default::default(),
            taken,
            sent,
            below,
            figures: Default::default(),
            ..LayerMetrics::default()
        };
        let passes = |layers: &[LayerMetrics]| handed_down(&recorder, &counters, layers).passed;
        assert!(passes(&[layer(above, below, below)]));
        assert!(passes(&[layer(above, above, above), layer(above, below, below)]));
        assert!(!passes(&[layer(above, above, below)]), "the drive was sent fewer");
        assert!(!passes(&[layer(below, below, below)]), "the layer was sent more");
        assert!(!passes(&[layer(above, below, above), layer(above, below, below)]), "lost between two layers");
        let short = Traffic { bytes: [12_288, 16_384, 0, 0], ..below };
        assert!(!passes(&[layer(above, below, short)]), "bytes were lost");
    }
}

//! What a run holds against itself: invariants that must hold, and warnings about what misleads.

use ssdlab_base::{Op, SECTOR_BYTES, format_size};
use ssdlab_device::{Allocation, Counters, Destage, DriveConfig, Superblock};
use ssdlab_flash::{Cause, MultiPlane, OpKind, ScriptedFault, Unstruck};
use ssdlab_host::{Administration, LayerMetrics, Traffic};

use crate::replay::{Ended, Recorder};
use crate::result::{Check, DeviceResult, Precondition, Settled, Timeline};

fn check(name: &str, held: bool, detail: String) -> Check {
    Check { name: name.to_string(), held, detail }
}

/// The invariants that the lab itself can see; the drive adds its own. `faulty` says whether any drive below has faults.
pub(crate) fn invariants(
    faulty: bool,
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

    if !faulty {
        let failed = recorder.failed;
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
    let workload = Traffic { requests: recorder.completed, bytes: recorder.completed_bytes };
    let mut held = recorder.sent_bytes == recorder.completed_bytes;
    held &= layers.first().is_none_or(|layer| layer.taken == workload);
    let mut detail = format!("reads, writes, trims, flushes of the workload: {:?}", workload.requests);
    for layer in layers {
        // Drives count the bytes of what succeeded only.
        let bytes =
            recorder.failed_bytes != [0; 4] || counters.failed_commands > 0 || layer.sent.bytes == layer.below.bytes;
        held &= bytes && layer.sent.requests == layer.below.requests;
        detail
            .push_str(&format!("; {} took {:?} and sent {:?}", layer.kind, layer.taken.requests, layer.sent.requests));
    }
    detail.push_str(&format!("; the drives counted {:?}, bytes {:?}", counters.commands, counters.bytes));
    check("requests_handed_down", held, detail)
}

/// Requests outstanding on average from which a backlog is mentioned: more than any closed loop keeps.
const BACKLOG_TO_MENTION: f64 = 1000.0;

/// How far two quarters of a run on a drive that was aged to its steady state may lie apart: the planes collect in waves.
const WANDERING: f64 = 0.03;

/// The least number of host writes from which a statement about write amplification is made.
const WRITES_TO_JUDGE: u64 = 1_000;

/// Free space that a run finds or leaves: what is written into it costs no collection, or no program, yet. In bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FreeSpace {
    /// What could be programmed before a block must be erased.
    headroom: u64,
    /// What is in the write buffer and not on flash.
    buffered: u64,
}

impl FreeSpace {
    /// Of a device now: of all its drives.
    pub(crate) fn of<D: Administration + ?Sized>(device: &D) -> FreeSpace {
        let mut space = FreeSpace::default();
        for part in device.parts() {
            space.headroom += part.drive.headroom_bytes();
            space.buffered += part.drive.buffered_bytes();
        }
        space
    }
}

/// What a result does not say of its run, and warnings go by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Circumstances {
    /// The workload is a trace: it sends what is in it, and no more.
    pub(crate) is_trace: bool,
    /// Requests arrive by a clock of the workload's own.
    pub(crate) is_clocked: bool,
    /// The drive was aged to the steady state of the measured workload itself.
    pub(crate) is_steady_of_this: bool,
    /// The drive took no writes any more when the run began.
    pub(crate) was_read_only: bool,
    /// The free space that the drive had when the run began.
    pub(crate) space_before: FreeSpace,
    /// A victim policy of the drive chooses what is collected.
    pub(crate) collects_by_policy: bool,
    /// A workload of its own preconditioned the drive, which was empty.
    pub(crate) is_aged_by_workload: bool,
    /// Jobs keep to planes, or dies, of their own.
    pub(crate) in_step: Option<InStep>,
}

/// Jobs whose pages come in step with the planes, or dies, that take them in turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InStep {
    /// What takes pages in turn, in words, and how many there are.
    groups: (&'static str, u64),
    /// So many classes of them, which jobs keep to.
    classes: u64,
}

/// Whether the jobs of a run keep to planes, or dies, of their own, since those take pages in turn.
///
/// Where every block stands alone, each page of the host goes to the next plane. Two jobs that alternate over an even number
/// of planes so write to every other plane each. Data that one job overwrites leaves the planes where it lay and gathers in
/// the job's own, until those have no free page and are passed over once, which swaps the roles. Meanwhile their blocks are
/// collected almost full: write amplification is that of a drive with far less over-provisioning.
pub(crate) fn in_step(config: &DriveConfig, recorder: &Recorder, layers: &[LayerMetrics]) -> Option<InStep> {
    let geometry = &config.flash.geometry;
    let groups = match config.ftl.superblock {
        Superblock::None => ("planes", u64::from(geometry.planes())),
        Superblock::Die => ("dies", u64::from(geometry.planes() / geometry.planes_per_die)),
        Superblock::Drive => return None,
    };
    let in_turn = match config.ftl.allocation {
        Allocation::RoundRobin(_) => true,
        // The least loaded die, and the next of equals: in a drive that takes no time all are equal.
        Allocation::Dynamic => !config.timed,
        Allocation::Static(_) => false,
    };
    if !in_turn || !layers.is_empty() {
        return None;
    }
    recorder.jobs.classes_in_step(groups.1).map(|classes| InStep { groups, classes })
}

/// Sentences about what misleads in a finished result; `space_after` is what the run left.
pub(crate) fn warnings(
    result: &DeviceResult,
    config: &DriveConfig,
    circumstances: Circumstances,
    space_after: FreeSpace,
) -> Vec<String> {
    let mut warnings = Vec::new();
    if !result.complete {
        warnings.push(format!(
            "the run ended early, after {}: the metrics cover the part that ran",
            counted(result.requests.total(), "request", "requests")
        ));
    }
    if let Some(failed) = Some(result.host.failed_requests).filter(|&failed| failed > 0) {
        let of = counted(result.requests.total(), "request", "requests");
        warnings.push(format!("{failed} of {of} ended with an error"));
    }
    if result.requests.total() == 0 {
        warnings.push("the workload sent no requests".to_string());
        return warnings;
    }
    if !result.timed {
        warnings.push("the drive only counts (timing = \"none\"): there are no latencies and no rates".to_string());
    }
    warnings.extend(ssdlab_device::description::idle_settings(config, circumstances.collects_by_policy));
    backlog(result, config, circumstances, &mut warnings);
    if !result.read_only {
        // A drive that ran out of spare blocks has no steady state to advise on.
        writes(result, config, circumstances, &mut warnings);
    }
    unwritten(result, config, &mut warnings);
    holes(result, circumstances, &mut warnings);
    kept_apart(result, circumstances, &mut warnings);
    let is_short = is_too_short_for_balance(result, circumstances.space_before, space_after, &mut warnings);
    collection(result, config, is_short, &mut warnings);
    if !result.read_only && circumstances.collects_by_policy {
        spare(result, &mut warnings);
    }
    reads(result, &mut warnings);
    full_buffer(result, config, &mut warnings);
    planes_apart(result, config, &mut warnings);
    subtests(result, &mut warnings);
    misaligned(result, config, &mut warnings);
    warnings.extend(result.precondition.notes.iter().cloned());
    warnings
}

/// Requests that are parts of mapping units: the workload's, of which a host makes others.
fn misaligned(result: &DeviceResult, config: &DriveConfig, warnings: &mut Vec<String>) {
    let (unit, all) = (config.ftl.mapping_unit, result.requests.total());
    if !noticeable(result.host.misaligned_requests, all) {
        return;
    }
    let requests = share(result.host.misaligned_requests, all);
    warnings.push(match result.sent_to_drives() {
        None => format!(
            "{requests} of the requests do not begin and end on a mapping unit of {unit} bytes: a write of part of a \
             unit that holds data {}",
            ssdlab_device::partial_write_cost(config)
        ),
        Some(sent) => format!(
            "{requests} of the workload's requests do not begin and end on a mapping unit of {unit} bytes; the host \
             layer issued {} requests for the workload's {all}, and alignment is counted for the workload only",
            sent.requests.iter().sum::<u64>()
        ),
    });
}

/// Requests that wait outside a drive that cannot keep up say more about the trace's clock than about the drive.
fn backlog(result: &DeviceResult, config: &DriveConfig, circumstances: Circumstances, warnings: &mut Vec<String>) {
    let inside = f64::from(config.interface.queues) * f64::from(config.interface.queue_depth);
    let mean = crate::subtests::outstanding_mean(result);
    if mean <= BACKLOG_TO_MENTION || mean <= 4.0 * inside {
        return;
    }
    let (who, taken) = match result.host_layers.is_empty() {
        true => ("the drive", format!("of which the drive takes {inside:.0}")),
        false => ("the host and its drive", format!("in the host or the drive, which takes at most {inside:.0}")),
    };
    if !circumstances.is_clocked {
        warnings.push(format!(
            "the workload kept {mean:.0} requests outstanding on average, {taken}: latencies are mostly waiting for the \
             drive (a closed loop of {inside:.0} keeps it as busy)"
        ));
        return;
    }
    warnings.push(format!(
        "{who} could not keep up with the workload's clock: {mean:.0} requests were outstanding on average, {taken}: \
         latencies are those of the backlog (use --replay closed:QD, or timed*K to slow the clock)"
    ));
}

/// Sub-tests that hold too little to say anything.
fn subtests(result: &DeviceResult, warnings: &mut Vec<String>) {
    let asked: Vec<_> = result.subtests.iter().filter(|test| test.name != "initial").collect();
    if let Some(test) = asked.iter().find(|test| test.requests == 1) {
        warnings.push(format!(
            "sub-test {} was over with its only request of {} bytes: a volume of --subtests that holds no more says nothing",
            test.name, test.written_bytes
        ));
    }
    if let Some(last) = asked.last().filter(|test| test.stands_for > 0) {
        warnings.push(format!(
            "{} after sub-test {} were not run: it and the two before it are at one level, within 1 %, which stands for them \
             (leave out :level to run all)",
            counted(last.stands_for, "sub-test", "sub-tests"),
            last.name
        ));
    }
    let Some(watched) = &result.ready_busy else { return };
    let begun: Vec<u64> = result.subtests.iter().map(|test| test.begun_ns).collect();
    let idle = result.subtests.iter().zip(watched.tests_from(&begun));
    let idle = idle.filter(|(test, counted)| test.name != "initial" && counted.is_none_or(|test| test.real_pages == 0));
    let idle = idle.count();
    if idle > 0 {
        warnings.push(format!(
            "nothing was programmed in {idle} of {}: what they wrote stayed in the buffer",
            counted(asked.len() as u64, "sub-test", "sub-tests")
        ));
    }
}

/// Share of the capacity that must hold data so that nothing is said.
const MAPPED_ENOUGH: f64 = 0.999;

/// What preconditioning never wrote is as good as over-provisioning.
fn holes(result: &DeviceResult, circumstances: Circumstances, warnings: &mut Vec<String>) {
    let mapped =
        result.precondition.mapped.filter(|&mapped| circumstances.is_aged_by_workload && mapped < MAPPED_ENOUGH);
    if let Some(mapped) = mapped.filter(|_| result.requests.write > 0) {
        warnings.push(format!(
            "{} of the user capacity was never written before the run and serves as over-provisioning (use --precondition \
             fill+WORKLOAD)",
            percent(1.0 - mapped)
        ));
    }
}

/// Jobs that keep to planes of their own, where collection has to work for it.
fn kept_apart(result: &DeviceResult, circumstances: Circumstances, warnings: &mut Vec<String>) {
    let victims = result.gc.victims();
    let Some(InStep { groups: (what, count), classes }) = circumstances.in_step else { return };
    if victims == 0 || !circumstances.collects_by_policy || result.read_only {
        return;
    }
    warnings.push(format!(
        "the {} jobs write in step with the {count} {what}, which take pages in turn: each job keeps to every {} of them, its \
         data gathers there until they are full, and collection moves almost full blocks; write amplification is that of \
         this step (ftl.superblock = \"drive\", or a number of jobs or {what} without a common divisor, avoids it)",
        result.jobs.len(),
        ordinal(classes)
    ));
}

/// `2nd`, `3rd`, `4th`.
fn ordinal(number: u64) -> String {
    let ending = match (number % 10, number % 100) {
        (1, tens) if tens != 11 => "st",
        (2, tens) if tens != 12 => "nd",
        (3, tens) if tens != 13 => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

/// What the host wrote and flash did not see, or saw as padding.
fn unwritten(result: &DeviceResult, config: &DriveConfig, warnings: &mut Vec<String>) {
    let written = result.bytes.write;
    if written == 0 {
        return;
    }
    let by_cause = result.write_amplification.as_ref().map(|amplification| &amplification.by_cause);
    let cause = |key: &str| by_cause.and_then(|causes| causes.get(key)).copied().unwrap_or(0.0);
    let (host, rewritten) = (cause("host"), cause("rmw"));
    if config.buffer.policy != "none" && host + rewritten < 0.9 {
        warnings.push(format!(
            "{} of the bytes written did not reach flash: they were overwritten or trimmed in the write buffer, or are \
             still in it",
            percent(1.0 - host - rewritten)
        ));
    }
    let padding = result.host.padding_bytes as f64 / written as f64;
    if padding > 0.1 {
        let padded = format!("pages were padded: {padding:.2} bytes of padding for each byte written");
        let flushes = result.requests.flush;
        warnings.push(if config.buffer.policy == "none" {
            format!(
                "{padded}, since a write of less than a page takes a page of its own (a write buffer would fill pages)"
            )
        } else if flushes > 0 {
            let each = result.requests.write as f64 / flushes as f64;
            format!(
                "{padded}, since a flush writes what is in the buffer, whole pages or not, and one came with every \
                 {each:.1} writes"
            )
        } else {
            format!("{padded}, since FUA writes, or units that leave the buffer alone, take pages of their own")
        });
    }
}

fn writes(result: &DeviceResult, config: &DriveConfig, circumstances: Circumstances, warnings: &mut Vec<String>) {
    let written = result.bytes.write;
    if written == 0 {
        return;
    }
    let user = config.user_bytes;
    let victims = result.gc.victims();
    if config.segment_units().is_some() {
        // Who writes to segments collects them.
        return;
    }
    let overwritten = written as f64 / user as f64;
    if victims == 0 {
        warnings.push(format!(
            "garbage collection never ran: {} of the user capacity was written, so write amplification and write \
             latencies are those of a drive with free blocks ({})",
            percent(overwritten),
            match (circumstances.is_trace, result.precondition.steady.is_some()) {
                _ if result.precondition.written_bytes == 0 => "use --precondition fill or steady",
                // It has no more writes than it has.
                (true, false) => "use --precondition steady, or fill+WORKLOAD",
                (true, true) => "what the trace writes fits into the space that was free",
                (false, false) => "write more, or use --precondition steady:WORKLOAD",
                (false, true) => "write more",
            }
        ));
        return;
    }
    if overwritten < 1.0 && result.precondition.steady != Some(true) {
        warnings.push(format!(
            "the workload wrote {} of the user capacity, less than it takes to turn the drive over once (use \
             --precondition steady)",
            percent(overwritten)
        ));
    }
    if result.requests.write < WRITES_TO_JUDGE {
        return;
    }
    let aged_to_steady = result.precondition.steady == Some(true);
    if circumstances.is_steady_of_this && is_too_short(written, &result.precondition) {
        return;
    }
    let drifted = drift(&result.timeline, config.flash.geometry.page_bytes, result.requests.write);
    if let Some((earlier, later, difference)) = drifted.filter(|(.., d)| !aged_to_steady || *d > WANDERING) {
        warnings.push(format!(
            "write amplification is not steady: it was {earlier:.3} over the third quarter of what was \
             written and {later:.3} over the last ({} apart)",
            percent(difference)
        ));
    }
}

/// How far write amplification may be from what theory says of the policy before it is said.
const THEORY_MISSED: f64 = 0.03;

/// What a run wrote that has not cost what it will: what went to space that was free when the run began and that collection
/// has not given back, and what stayed in the write buffer (either can be less than nothing). In the steady state a program
/// that collection did not make takes headroom; `R` relocations for `O` such programs gave `O - taken` back, so with what is
/// in the buffer, `O' = O + buffered`, a run in balance has `R O' / (O - taken)` relocations and `O'` others.
///
/// True if that is far from what the run had, which is said: it is too short.
fn is_too_short_for_balance(
    result: &DeviceResult,
    before: FreeSpace,
    after: FreeSpace,
    warnings: &mut Vec<String>,
) -> bool {
    let victims = result.gc.victims();
    let Some(measured) = result.write_amplification.as_ref().filter(|wa| wa.total > 0.0) else { return false };
    if result.read_only || victims == 0 || result.precondition.steady != Some(true) || result.requests.write == 0 {
        return false;
    }
    let written = result.bytes.write as f64;
    let part = |key: &str| measured.by_cause.get(key).copied().unwrap_or(0.0) * written;
    let (relocated, parity) = (part("gc"), part("parity"));
    let data = measured.total * written - parity;
    let others = data - relocated;
    let (taken, buffered) =
        (before.headroom as f64 - after.headroom as f64, after.buffered as f64 - before.buffered as f64);
    let balanced = (others > taken && others + buffered > 0.0)
        .then(|| (others + buffered) * (1.0 + relocated / (others - taken)) / data);
    if balanced.is_some_and(|balanced| (balanced - 1.0).abs() <= THEORY_MISSED) {
        return false;
    }
    let enough = (taken.abs() + buffered.abs()) / THEORY_MISSED / (written / result.requests.write as f64);
    // What is left of so little says nothing.
    let estimate = balanced
        .filter(|_| others > 2.0 * (taken.abs() + buffered.abs()))
        .map_or_else(String::new, |balanced| format!(", which is about {:.2} in balance", measured.total * balanced));
    let size = |bytes: f64| format_size((bytes.abs() as u64).next_multiple_of(SECTOR_BYTES));
    let collection = if taken > 0.0 {
        format!("of what it programmed, collection has not given {} back", size(taken))
    } else {
        format!("collection gave {} more back than it programmed", size(taken))
    };
    let buffer = match buffered {
        _ if buffered > 0.0 => format!(", and {} more than before are in the write buffer", size(buffered)),
        _ if buffered < 0.0 => format!(", and {} less than before are in the write buffer", size(buffered)),
        _ => String::new(),
    };
    warnings.push(format!(
        "the run is too short for its write amplification of {:.3}{estimate}: {collection}{buffer}; {} writes are enough for \
         {}, and this run sent {}",
        measured.total,
        crate::table::count(rounded_up(enough)),
        percent(THEORY_MISSED),
        crate::table::count(result.requests.write)
    ));
    true
}

/// The next number of two digits and zeroes.
fn rounded_up(value: f64) -> u64 {
    let value = value.ceil() as u64;
    let mut unit = 1;
    while value / unit >= 100 {
        unit *= 10;
    }
    value.div_ceil(unit) * unit
}

/// Scripted faults that never struck in the run, nor before it.
pub(crate) fn unstruck(unstruck: &[Unstruck], struck_before: &[ScriptedFault]) -> Vec<String> {
    const TOLD: usize = 5;
    let mut never = unstruck.iter().filter(|one| !struck_before.contains(&one.fault));
    let mut sentences: Vec<String> = never.by_ref().take(TOLD).map(|one| format!("{one} in the run")).collect();
    let more = never.count();
    if more > 0 {
        sentences.push(format!(
            "{} of flash.faults.script never struck either",
            counted(more as u64, "other fault", "other faults")
        ));
    }
    sentences
}

/// Whether collection did what its policy's name promises; of a run that is too short theory says nothing.
fn collection(result: &DeviceResult, config: &DriveConfig, is_short: bool, warnings: &mut Vec<String>) {
    let victims = result.gc.victims();
    let guarded = result.design.get("victims_by_guard").copied().unwrap_or(0.0) as u64;
    if guarded > 0 {
        warnings.push(format!(
            "{} of {} were not chosen by gc.victim = \"{}\" but were the cheapest: relocation was short of space after a \
             power cut, a failed operation or a record of trims",
            share(guarded, victims),
            counted(victims, "victim", "victims"),
            config.gc.victim
        ));
    }
    relocation_padding(result, config, warnings);
    let (Some(theory), Some(measured)) = (&result.theory, &result.write_amplification) else { return };
    // Map pages come on top of what theory speaks of.
    let of_map_pages = measured.by_cause.get(Cause::Mapping.key()).copied().unwrap_or(0.0);
    let of_data = measured.total - of_map_pages;
    let apart = of_data / theory.write_amplification - 1.0;
    if is_short || victims == 0 || result.requests.write < WRITES_TO_JUDGE || apart.abs() <= THEORY_MISSED {
        return;
    }
    let steady = result.precondition.steady == Some(true);
    let why = if steady { "" } else { ", which is that of the steady state (use --precondition steady)" };
    warnings.push(format!(
        "write amplification{} is {of_data:.3}, {} {} the {:.3} of theory beside it ({}){why}",
        if of_map_pages > 0.0 { " without map pages" } else { "" },
        percent(apart.abs()),
        if apart > 0.0 { "above" } else { "below" },
        theory.write_amplification,
        theory.model
    ));
}

/// The last page of each victim is programmed as it is: with small victims that is a part of the over-provisioning.
fn relocation_padding(result: &DeviceResult, config: &DriveConfig, warnings: &mut Vec<String>) {
    /// Share of the programmed bytes from which padding by relocation is told.
    const TOLD: f64 = 0.01;
    let geometry = &config.flash.geometry;
    let programmed = result.flash.programs.total as f64 * f64::from(geometry.page_bytes);
    let share = result.gc.padding_bytes as f64 / programmed.max(1.0);
    if share < TOLD {
        return;
    }
    let pages = geometry.pages_per_block * config.ftl.superblock.planes(geometry);
    warnings.push(format!(
        "{} of the programmed bytes fill pages up that relocation had no units for: the last page of each victim, which has \
         {pages} pages (more pages in a block, superblocks, or a mapping unit of a whole page lose less)",
        percent(share)
    ));
}

/// Whether a run says nothing against the steady state that its drive was brought to: that was judged by windows, and the
/// quarters of a run of less than two of them are shorter than the waves in which planes collect.
fn is_too_short(written: u64, age: &Precondition) -> bool {
    // Where windows alternate, only spans of them are alike.
    let windows = if let Some(Settled::Spans { windows, .. }) = age.settled { windows } else { 1 };
    age.steady == Some(true) && written < 2 * windows * age.window_bytes
}

/// Write amplification of the third and the last quarter of the written bytes, and how far they are apart, when that
/// is more than 1 % and more than chance explains: twice the inverse root of the writes in a quarter.
fn drift(timeline: &Timeline, page_bytes: u32, writes: u64) -> Option<(f64, f64, f64)> {
    let total: u64 = timeline.write_bytes.iter().sum();
    let mut seen = 0;
    // Bytes written and bytes programmed of the two quarters.
    let mut quarters = [(0.0, 0.0); 2];
    for (interval, &written) in timeline.write_bytes.iter().enumerate() {
        seen += written;
        let quarter = (u128::from(seen) * 4).div_ceil(u128::from(total.max(1)));
        if quarter >= 3 {
            let (bytes, programmed) = &mut quarters[usize::from(quarter > 3)];
            *bytes += written as f64;
            // Also of intervals in which nothing was written, while the buffer or collection programmed.
            let pages: u64 = timeline.programs.values().filter_map(|pages| pages.get(interval)).sum();
            *programmed += pages as f64 * f64::from(page_bytes);
        }
    }
    let [earlier, later] = quarters.map(|(bytes, programmed)| programmed / bytes);
    let difference = (later - earlier).abs() / later.max(earlier);
    let chance = 2.0 / (writes as f64 / 4.0).sqrt();
    (difference > 0.01 + chance).then_some((earlier, later, difference))
}

fn spare(result: &DeviceResult, warnings: &mut Vec<String>) {
    let spare = &result.over_provisioning;
    if spare.effective < spare.nominal / 2.0 {
        warnings.push(format!(
            "garbage collection's free blocks and the open blocks take most of the over-provisioning: of {} nominal, {} \
             are left for data (use larger planes, a smaller gc.free_blocks or more over-provisioning)",
            percent(spare.nominal),
            percent(spare.effective)
        ));
    }
}

fn reads(result: &DeviceResult, warnings: &mut Vec<String>) {
    let sectors = result.bytes.read / SECTOR_BYTES;
    let unmapped = result.host.unmapped_sectors_read;
    if noticeable(unmapped, sectors) {
        let advice = if result.precondition.written_bytes == 0 { " (use --precondition fill)" } else { "" };
        warnings.push(format!(
            "{} of the sectors read were never written, or were trimmed: such reads need no flash operation and are \
             too fast{advice}",
            share(unmapped, sectors)
        ));
    }
}

/// Part of a run from which a full buffer is worth a sentence, and part of that time below which the dies are idle.
const FULL_TO_MENTION: f64 = 0.05;
const IDLE_BELOW: f64 = 0.5;

/// Writes that waited for room in the buffer while the chips could have made some. All that the dies did in the run is
/// counted as if it had been done in that time, so the share that is told is the most it can have been.
fn full_buffer(result: &DeviceResult, config: &DriveConfig, warnings: &mut Vec<String>) {
    let dies = &result.utilization.dies;
    // Drives of a stack are full side by side.
    let drives = (dies.len() as u32 / config.flash.geometry.dies().max(1)).max(1);
    let full = result.buffer.full_ns as f64 / f64::from(drives) / result.virtual_time_ns.max(1) as f64;
    let busy = dies.iter().sum::<f64>() / dies.len().max(1) as f64;
    if full < FULL_TO_MENTION || busy >= IDLE_BELOW * full {
        return;
    }
    let stalled = result.gc.stall_ns > 0;
    let reason = if config.buffer.destage.when == Destage::OnDemand {
        "buffer.destage = \"on-demand\" evicts a page only when a write needs its space; \"watermark\" keeps the chips busy"
    } else if stalled {
        "they waited for garbage collection to free a block"
    } else if result.map_cache.as_ref().is_some_and(|map| map.misses > 0) {
        "what left the buffer waited for map pages that were not cached (ftl.map_cache)"
    } else {
        "a buffer of less than two stripes (a page of every plane each) cannot keep all dies busy, nor can pages that \
         are completed from flash before they are programmed"
    };
    warnings.push(format!(
        "the buffer was full above idle dies: writes waited for space for {} of the run, in which the dies were busy for \
         at most {}: {reason}",
        percent(full),
        percent(busy / full)
    ));
}

/// The share of multi-plane programs below which planes are said to work alone, the programs of a die from which that is said, and the
/// part of the run for which dies have to be busy: idle ones lose nothing.
const TOGETHER_ENOUGH: f64 = 0.1;
const PROGRAMS_TO_JUDGE: u64 = 100;
const BUSY_ENOUGH: f64 = 0.5;

/// Planes of a die that seldom program together, of a design that lets them: it can have superblocks, or has segments over planes.
fn planes_apart(result: &DeviceResult, config: &DriveConfig, warnings: &mut Vec<String>) {
    let (geometry, programs) = (&config.flash.geometry, &result.flash.programs);
    let dies = &result.utilization.dies;
    let busy = dies.iter().sum::<f64>() / dies.len().max(1) as f64;
    let together = programs.multi_plane.values().sum::<u64>() as f64 / programs.total.max(1) as f64;
    if geometry.planes_per_die < 2
        || config.flash.multi_plane == MultiPlane::Off
        || programs.total < PROGRAMS_TO_JUDGE * u64::from(geometry.dies())
        || together >= TOGETHER_ENOUGH
        || busy < BUSY_ENOUGH
    {
        return;
    }
    let mut with_superblocks = config.clone();
    with_superblocks.ftl.superblock = Superblock::Die;
    let can_change = config.ftl.superblock == Superblock::None && with_superblocks.validate().is_ok();
    let has_segments = config.segment_units() == Some(geometry.pages_per_block * geometry.planes());
    if !can_change && !has_segments && config.ftl.superblock == Superblock::None {
        return;
    }
    // What tells for certain comes first: of collection, larger writes and a buffer change nothing.
    let mut advice = if can_change { vec!["superblocks (ftl.superblock = \"die\")"] } else { Vec::new() };
    // Of a layer's copies the host's writes change nothing.
    let copied = |layer: &LayerMetrics| layer.copied_bytes().unwrap_or(0.0);
    let copies = |layer: &LayerMetrics| 2.0 * copied(layer) > layer.below.bytes[Op::Write.class()] as f64;
    let copier = result.host_layers.iter().find(|layer| copies(layer) && layer.configuration.contains_key("copy_size"));
    let of_layer = copier.map(|layer| format!("larger copies of the layer {} (copy_size, copies)", layer.kind));
    advice.push(of_layer.as_deref().unwrap_or("larger writes (bs)"));
    if config.buffer.policy == "none" && !has_segments {
        advice.push("a write buffer (buffer.policy)");
    }
    let advice = match advice.as_slice() {
        [only] => (*only).to_string(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
        [] => unreachable!("larger writes or copies are always advised"),
    };
    warnings.push(format!(
        "only {} of {} programs ran together on the {} planes of a die, and the dies were busy for {} of the run: {advice} would \
         let them",
        percent(together),
        programs.total,
        geometry.planes_per_die,
        percent(busy)
    ));
}

/// Whether a part is worth a sentence: one in a thousand.
fn noticeable(part: u64, whole: u64) -> bool {
    part > 0 && part.saturating_mul(1000) >= whole
}

/// A share as a percentage with a sensible number of digits.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        _ if percent >= 99.95 => format!("{percent:.0} %"),
        _ if percent >= 9.95 => format!("{percent:.1} %"),
        _ if percent >= 0.005 || percent == 0.0 => format!("{percent:.2} %"),
        _ => "less than 0.01 %".to_string(),
    }
}

/// `1 request`, `2 requests`.
fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn share(part: u64, whole: u64) -> String {
    format!("{part} ({})", percent(part as f64 / whole.max(1) as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::Axis;

    fn timeline(amplifications: &[f64]) -> Timeline {
        Timeline {
            write_bytes: vec![1 << 20; amplifications.len()],
            programs: [("host".to_string(), amplifications.iter().map(|wa| (wa * 256.0) as u64).collect())].into(),
            ..Timeline::default()
        }
    }

    #[test]
    fn a_rise_in_the_last_quarter_is_seen_and_a_settled_run_is_not_blamed() {
        assert_eq!(drift(&timeline(&[1.0, 2.0, 3.0, 3.0]), 4096, 1_000_000), None);
        let (earlier, later, difference) = drift(&timeline(&[1.0, 2.0, 3.0, 4.0]), 4096, 1_000_000).expect("a drift");
        assert_eq!((earlier, later, difference), (3.0, 4.0, 0.25));
        // A hundred writes in a quarter say nothing to a percent.
        assert_eq!(drift(&timeline(&[1.0, 2.0, 3.0, 3.1]), 4096, 400), None);
        // What is programmed while nothing is written belongs to the quarter it falls into.
        let mut late = timeline(&[1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0]);
        late.write_bytes = vec![1 << 20, 0, 1 << 20, 0, 1 << 20, 0, 1 << 20, 0];
        late.programs = [("host".to_string(), vec![0, 256, 0, 256, 0, 256, 0, 256])].into();
        assert_eq!(drift(&late, 4096, 1_000_000), None);
    }

    #[test]
    fn a_miss_of_theory_and_the_guards_victims_are_said() {
        let config = ssdlab_device::Description::parse(
            "flash = { channels = 1, chips_per_channel = 1, dies_per_chip = 1, planes_per_die = 1, blocks_per_plane = 64, \
             pages_per_block = 16, page_size = \"4k\", timing = \"none\" }\ncapacity = { over_provisioning = \"28%\" }\n\
             ftl = { design = \"page\" }\ngc = { victim = \"random\" }\n",
            "small",
        )
        .and_then(|description| description.resolve())
        .expect("a valid description");
        let said_of = |measured: f64, of_map_pages: f64, guarded: f64, steady: Option<bool>| {
            let mut result = crate::report::tests::device("small");
            result.requests.write = 10_000;
            result.gc.foreground_victims = 1_000;
            let by_cause = [("mapping".to_string(), of_map_pages)].into();
            result.write_amplification = Some(crate::result::WriteAmplification { total: measured, by_cause });
            let model = "random victims: a / (a - 1)".to_string();
            result.theory =
                Some(crate::result::Theory { model, write_amplification: 4.0, effective_over_provisioning: 0.1 });
            result.design.insert("victims_by_guard".to_string(), guarded);
            result.precondition.steady = steady;
            let mut warnings = Vec::new();
            collection(&result, &config, false, &mut warnings);
            warnings
        };
        let said = |measured: f64, guarded: f64, steady: Option<bool>| said_of(measured, 0.0, guarded, steady);
        assert!(said_of(5.0, 1.05, 0.0, Some(true)).is_empty(), "map pages come on top of theory");
        let [miss] = &said_of(5.0, 0.5, 0.0, Some(true))[..] else { panic!("one sentence") };
        assert!(miss.starts_with("write amplification without map pages is 4.500, 12.5 % above the 4.000"), "{miss}");
        assert!(said(4.11, 0.0, Some(true)).is_empty(), "2.75 % are no miss");
        assert!(said(3.89, 0.0, Some(true)).is_empty());
        assert_eq!(
            said(3.8, 0.0, Some(true)),
            ["write amplification is 3.800, 5.00 % below the 4.000 of theory beside it (random victims: a / (a - 1))"]
        );
        let [miss] = &said(4.2, 0.0, None)[..] else { panic!("one sentence") };
        assert!(miss.contains("above the 4.000") && miss.ends_with("(use --precondition steady)"), "{miss}");
        let [guard] = &said(4.0, 10.0, Some(true))[..] else { panic!("one sentence") };
        assert!(guard.starts_with("10 (1.00 %) of 1000 victims were not chosen by gc.victim = \"random\""), "{guard}");
    }

    #[test]
    fn a_run_on_borrowed_space_is_told_what_it_would_have_cost() {
        // In balance a write is relocated three times: write amplification 4. The run wrote 16 MiB.
        const MIB: u64 = 1 << 20;
        let said = |borrowed: u64, buffered: u64| {
            let mut result = crate::report::tests::device("small");
            let written = 16 * MIB;
            (result.requests.write, result.bytes.write) = (written / 4096, written);
            (result.gc.foreground_victims, result.precondition.steady) = (100, Some(true));
            let others = (written - buffered) as f64 / written as f64;
            let relocated = 3.0 * (written - buffered - borrowed) as f64 / written as f64;
            result.write_amplification = Some(crate::result::WriteAmplification {
                total: others + relocated,
                by_cause: [("host".to_string(), others), ("gc".to_string(), relocated)].into(),
            });
            let before = FreeSpace { headroom: 64 * MIB, buffered: 0 };
            let after = FreeSpace { headroom: 64 * MIB - borrowed, buffered };
            let mut warnings = Vec::new();
            assert_eq!(is_too_short_for_balance(&result, before, after, &mut warnings), !warnings.is_empty());
            warnings
        };
        assert!(said(0, 0).is_empty());
        // 3/4 of a part in 32, which is less than 3 %.
        assert!(said(MIB / 2, 0).is_empty());
        assert_eq!(
            said(2 * MIB, 0),
            ["the run is too short for its write amplification of 3.625, which is about 4.00 in balance: of what it programmed, \
              collection has not given 2 MiB back; 18000 writes are enough for 3.00 %, and this run sent 4096"
                .replace("18000", "18,000")
                .replace("4096", "4,096")]
        );
        let [both] = &said(2 * MIB, MIB)[..] else { panic!("one sentence") };
        assert!(
            both.contains("about 4.00 in balance") && both.contains("1 MiB more than before are in the write"),
            "{both}"
        );
        // All of it went to free space: nothing can be told of the balance.
        let [all] = &said(16 * MIB, 0)[..] else { panic!("one sentence") };
        assert!(all.contains("of 1.000: of what it programmed"), "{all}");
    }

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
        let held = |layers: &[LayerMetrics]| handed_down(&recorder, &counters, layers).held;
        assert!(held(&[layer(above, below, below)]));
        assert!(held(&[layer(above, above, above), layer(above, below, below)]));
        assert!(!held(&[layer(above, above, below)]), "the drive was sent fewer");
        assert!(!held(&[layer(below, below, below)]), "the layer was sent more");
        assert!(!held(&[layer(above, below, above), layer(above, below, below)]), "lost between two layers");
        let short = Traffic { bytes: [12_288, 16_384, 0, 0], ..below };
        assert!(!held(&[layer(above, below, short)]), "bytes were lost");
    }

    #[test]
    fn a_run_of_less_than_two_windows_says_nothing_against_its_own_steady_state() {
        let age = |steady| Precondition { window_bytes: 4 << 30, steady, ..Precondition::default() };
        // Found on demo-tlc: io_size=1g behind `steady` was called unsteady, 8.6 % apart.
        assert!(is_too_short(1 << 30, &age(Some(true))));
        assert!(!is_too_short(8 << 30, &age(Some(true))));
        assert!(!is_too_short(1 << 30, &age(Some(false))));
        assert!(!is_too_short(1 << 30, &age(None)));
        // Windows that alternate are alike in spans.
        let alternating = Precondition { settled: Some(Settled::Spans { windows: 8, apart: 0.1 }), ..age(Some(true)) };
        assert!(is_too_short(63 << 30, &alternating) && !is_too_short(64 << 30, &alternating));
    }

    #[test]
    fn shares_are_readable() {
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(percent(0.1234), "12.3 %");
        assert_eq!(percent(0.0123), "1.23 %");
        assert_eq!(percent(0.00001), "less than 0.01 %");
        assert_eq!(percent(0.0), "0.00 %");
    }
}

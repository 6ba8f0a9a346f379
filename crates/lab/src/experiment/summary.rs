//! From a drive that has run to its entry in the results.

use std::collections::BTreeMap;

use ssdlab_base::{Nanos, SECTOR_BYTES};
use ssdlab_device::{ControllerCounters, Counters, Drive, MapCacheStats, MapUser, PlacementConfig, Setting};
use ssdlab_disk::Disk;
use ssdlab_flash::{Faults, OpCounts, OpKind, QueueWaits, ScriptedFault};
use ssdlab_host::{Administration, LayerMetrics, Part};
use ssdlab_measure::{Lifetime, Usage};

use super::stack::Stack;
use super::{DeviceUnderTest, parts};
use crate::breakdown::Gathered;
use crate::by_cause::by_cause;
use crate::checks::{self, MayFail};
use crate::latency::Latencies;
use crate::ready_busy::Watch;
use crate::replay::{Ended, Recorder};
use crate::result::{
    Buffer, Cdf, Check, Controller, DeviceResult, DiskOfStack, DriveOfStack, Flash, FlashOps, Gc, Host, LatencySummary,
    MapCache, MapRequests, Outstanding, OverProvisioning, PerOp, Precondition, Queue, RateVariation, Subtest, Theory,
    Throughput, Utilization, WearHistogram, WriteAmplification,
};
use crate::smart::SmartLogs;
use crate::theory;
use crate::verify::Verifier;
use crate::warnings::{self, Circumstances, FreeSpace};

/// What a drive was like when its run began.
pub(crate) struct Before {
    smart: serde_json::Value,
    erases: Vec<u32>,
    space: FreeSpace,
    was_read_only: bool,
}

impl Before {
    /// Looks at a drive, or at those of a stack, whose random numbers come from `seed`.
    pub(crate) fn of(device: &dyn Administration, seed: u64) -> Before {
        Before {
            smart: parts::logs(device.drives(), seed),
            erases: parts::erase_counts(device),
            space: FreeSpace::of(device),
            was_read_only: device.is_read_only(),
        }
    }
}

/// The entry of a drive, or of a stack, of what a file system above it sent, which `recorder` counted.
pub(crate) fn below_file_system(
    dut: &DeviceUnderTest,
    stack: &mut Stack,
    recorder: Recorder,
    before: Before,
    wall_time_s: f64,
    seed: u64,
) -> DeviceResult {
    let collects_by_policy = stack.drives().iter().all(|part| part.device.collects_by_policy());
    let measured = Measured {
        recorder,
        breakdown: None,
        ended: Ended::Done,
        aged: Precondition::default(),
        smart_before: before.smart,
        erases_before: before.erases,
        notes: Vec::new(),
        user_bytes: dut.config.address_bytes(),
        verifier: None,
        subtests: Vec::new(),
        watch: None,
        timeline_interval: None,
        wall_time_s,
        wall_precondition_s: 0.0,
        struck_before: Vec::new(),
        circumstances: Circumstances {
            is_trace: false,
            is_clocked: false,
            is_steady_of_this: false,
            is_aged_by_workload: false,
            was_read_only: before.was_read_only,
            space_before: before.space,
            collects_by_policy,
            in_step: None,
        },
    };
    summarise(dut, stack, measured, false, seed, &|| false)
}

/// A drive after its run.
pub(super) struct Measured {
    pub(super) recorder: Recorder,
    /// What requests waited for, where that was asked for.
    pub(super) breakdown: Option<Box<Gathered>>,
    pub(super) ended: Ended,
    pub(super) aged: Precondition,
    /// The drive's log when it began.
    pub(super) smart_before: serde_json::Value,
    /// Erases of every block when it began.
    pub(super) erases_before: Vec<u32>,
    /// What the workload has to say of its way.
    pub(super) notes: Vec<String>,
    /// Bytes that the workload can address.
    pub(super) user_bytes: u64,
    /// What compared the reads, where that was asked for.
    pub(super) verifier: Option<Verifier>,
    /// Where the run was divided.
    pub(super) subtests: Vec<Subtest>,
    /// What watched the lines, where that was asked for.
    pub(super) watch: Option<Watch>,
    /// The timeline's interval, where one was asked for.
    pub(super) timeline_interval: Option<Nanos>,
    pub(super) wall_time_s: f64,
    pub(super) wall_precondition_s: f64,
    /// Faults that struck before the run.
    pub(super) struck_before: Vec<ScriptedFault>,
    /// What the warnings go by.
    pub(super) circumstances: Circumstances,
}

/// Takes the figures at the last completion; then lets the drive come to rest and checks it, what it holds until `stopped`.
pub(super) fn summarise(
    dut: &DeviceUnderTest,
    stack: &mut Stack,
    measured: Measured,
    uniform: bool,
    seed: u64,
    stopped: &dyn Fn() -> bool,
) -> DeviceResult {
    let Measured { recorder, ended, aged, smart_before, erases_before, verifier, notes, user_bytes, .. } = measured;
    let Measured { breakdown, subtests, watch, timeline_interval, circumstances, struck_before, .. } = measured;
    let Measured { wall_time_s, wall_precondition_s, .. } = measured;
    let config = &dut.config;
    let page_bytes = u64::from(config.flash.geometry.page_bytes);
    let smart = SmartLogs { before: smart_before, after: parts::logs(stack.drives(), seed) };
    let now = stack.data().now().0;
    let user_bytes = stack.data().zones().map_or(user_bytes, |shape| shape.writable_sectors() * SECTOR_BYTES);
    let device = stack.look();
    let layers = device.layers();
    let counters = device.counters();
    let virtual_time_ns = if config.timed { now } else { 0 };
    let space_after = FreeSpace::of(device);
    let read_only = device.read_only_reason();
    let unstruck: Vec<_> = device.drives().iter().flat_map(|part| part.device.faults_unstruck()).collect();
    let requests = per_op(recorder.completed);
    let bytes = per_op(recorder.succeeded_bytes());
    let spare = parts::spare(device);
    let (latency_ns, latency_cdf) = latencies(&recorder.latencies);
    let outstanding = Outstanding {
        mean: if now == 0 { 0.0 } else { recorder.occupancy as f64 / now as f64 },
        max: recorder.outstanding_max,
    };
    let commands = parts::commands(device);
    let (misaligned_requests, failed_requests) = (recorder.misaligned, recorder.failed);
    let rate_variation = if config.timed && subtests.is_empty() {
        recorder.rate.variation(now)
    } else {
        RateVariation { interval_ns: 0, intervals: 0, cv: None }
    };
    let utilization = utilization(device, virtual_time_ns);
    let memory = parts::memory(device);
    let design = parts::design(device);
    let (drives, disks) = (drives(device), disks(device));
    let erases = parts::erases(device);
    let erase_counts = parts::erase_counts(device);
    let erases_in_run = Some(parts::erases_between(&erases_before, &erase_counts));
    let wear_histogram = WearHistogram::of(&erase_counts);
    let capacity = parts::capacity(device, user_bytes);
    let amplification = write_amplification(&counters.flash, page_bytes, bytes.write);
    let throughput = Throughput::over(&requests, &bytes, virtual_time_ns);
    let lifetime = match (parts::rated_bytes(device), &amplification) {
        (Some(rated_bytes), Some(amplification)) if amplification.total > 0.0 => Some(Lifetime::of(&Usage {
            rated_bytes,
            write_amplification: amplification.total,
            write_bytes_per_s: config.timed.then_some(throughput.write_bytes_per_s),
            user_bytes: capacity.user_bytes,
            erases: Some((erases.mean, erases.max.into())),
        })),
        _ => None,
    };

    // The timeline is closed apart from the recorder, whose other tallies the checks still need.
    let mut recorder = recorder;
    let timeline = recorder.take_timeline(now, &counters, page_bytes);
    let faulty = device.drives().iter().any(|part| part.device.config().flash.faults != Faults::default());
    let may_fail = MayFail { any: faulty, trims: !device.disks().is_empty() };
    let mut checks = checks::invariants(may_fail, ended, &recorder, &counters, &layers, &timeline, virtual_time_ns);
    let spare_at_collection = parts::spare_at_collection(device);
    let data = stack.data();
    while let Some(next) = data.next_event() {
        data.run_until(next);
    }
    let device = stack.look();
    let own = device.check().into_iter();
    checks.extend(own.map(|(name, check)| Check { name, passed: check.passed, detail: check.detail }));
    let mut unread = None;
    if let Some(mut verifier) = verifier {
        if stack.data().outstanding() == 0 {
            stack.read_back(&mut verifier, stopped);
        }
        unread = verifier.unread();
        checks.push(verifier.check());
    }

    checks.extend(breakdown.as_ref().map(|breakdown| breakdown.check()));
    let in_step = warnings::in_step(config, &recorder, &layers);

    let mut result = DeviceResult {
        name: dut.label.clone(),
        smart,
        notes,
        overrides: BTreeMap::new(),
        repetition: None,
        complete: ended == Ended::Done,
        timed: config.timed,
        read_only: read_only.is_some(),
        requests,
        bytes,
        requests_digest: format!("{:016x}", recorder.digest),
        latency_ns,
        virtual_time_ns,
        wall_time_s,
        wall_precondition_s,
        throughput,
        rate_variation,
        outstanding,
        flash: flash(&counters),
        write_amplification: amplification,
        theory: if uniform && read_only.is_none() {
            overwrites(dut, &spare, spare_at_collection, &counters)
        } else {
            None
        },
        erases,
        erases_in_run,
        lifetime,
        buffer: buffer(&counters),
        map_cache: counters.map_cache.as_ref().map(map_cache),
        controller: counters.controller.as_ref().map(controller),
        gc: gc(&counters),
        utilization,
        memory,
        design,
        capacity,
        over_provisioning: spare,
        precondition: aged,
        host: Host {
            misaligned_requests,
            failed_requests,
            unmapped_sectors_read: counters.unmapped_sectors_read,
            trimmed_mapped_sectors: counters.trimmed_mapped_sectors,
            padding_bytes: counters.padding_bytes,
        },
        host_layers: layers,
        drives,
        disks,
        commands,
        checks,
        warnings: Vec::new(),
        configuration: if stack.drives().is_empty() { serde_json::json!({}) } else { configuration(dut) },
        timeline,
        latency_cdf,
        wear_histogram,
        latency_breakdown: breakdown.map(|breakdown| breakdown.result()),
        jobs: recorder.jobs.results(config.timed),
        subtests,
        ready_busy: watch.as_ref().map(|watch| watch.result(bytes.write)),
    };
    let circumstances = Circumstances { in_step, ..circumstances };
    result.warnings = warnings::warnings(&result, config, circumstances, space_after);
    result.warnings.splice(0..0, unread);
    if let Some(reason) = read_only {
        let when = if circumstances.was_read_only { " before the run" } else { "" };
        let warning = format!(
            "the drive became read-only{when}, since {reason}: commands that ended with an error are counted \
             in rates and latencies"
        );
        result.warnings.insert(0, warning);
    }
    let of_layer = |layer: &LayerMetrics| {
        let degraded =
            layer.degraded.iter().map(|sentence| format!("the layer {} is degraded: {sentence}", layer.kind));
        let notes = layer.notes.iter().map(|sentence| format!("the layer {}: {sentence}", layer.kind));
        degraded.chain(notes).collect::<Vec<_>>()
    };
    result.warnings.splice(0..0, result.host_layers.iter().flat_map(of_layer));
    if let Some(set) = stack.drives().first().and_then(|part| part.device.command_set()) {
        let reasons = set.refusals.iter().zip(counters.refused).filter(|(_, count)| *count > 0);
        let told: Vec<String> = reasons.map(|(reason, count)| format!("{reason} {count}")).collect();
        if !told.is_empty() {
            let warning = format!(
                "the drive refused commands of the workload or of a layer, which are counted in rates and latencies: {}",
                told.join(", ")
            );
            result.warnings.insert(0, warning);
        }
    }
    result.warnings.extend(warnings::unstruck(&unstruck, &struck_before));
    if let Some(asked) = timeline_interval
        && config.timed
        && result.timeline.interval != asked.0
    {
        result.warnings.push(format!(
            "the run is longer than the timeline holds intervals of {asked}: neighbours were merged, and they are {} long",
            Nanos(result.timeline.interval)
        ));
    }
    result.warnings.extend(watch.as_ref().map(Watch::warnings).unwrap_or_default());
    result
}

fn per_op(values: [u64; 4]) -> PerOp<u64> {
    let [read, write, trim, flush] = values;
    PerOp { read, write, trim, flush }
}

/// Summaries and distributions by kind and over all.
fn latencies(kinds: &[Latencies; 4]) -> (crate::result::Latencies, std::collections::BTreeMap<String, Cdf>) {
    let mut all = Latencies::new();
    kinds.iter().for_each(|kind| all.add(kind));
    let [read, write, trim, flush] = kinds;
    let named = [("all", &all), ("read", read), ("write", write), ("trim", trim), ("flush", flush)];
    let summaries: [Option<LatencySummary>; 5] = named.map(|(_, latencies)| latencies.summary());
    let cdf = named.iter().filter(|(_, latencies)| latencies.count() > 0);
    let cdf = cdf.map(|(name, latencies)| ((*name).to_string(), latencies.cdf())).collect();
    let [all, read, write, trim, flush] = summaries;
    (crate::result::Latencies { all, read, write, trim, flush }, cdf)
}

/// What each drive's flash did, where there are several.
fn drives(device: &dyn Administration) -> Vec<DriveOfStack> {
    let parts = device.drives();
    let of = |part: Part<&Drive>| DriveOfStack { name: part.name, flash: flash(&part.device.counters()) };
    if parts.len() > 1 { parts.into_iter().map(of).collect() } else { Vec::new() }
}

/// What each disk counted.
fn disks(device: &dyn Administration) -> Vec<DiskOfStack> {
    let of = |part: Part<&Disk>| DiskOfStack {
        name: part.name,
        capacity_bytes: part.device.sectors() * SECTOR_BYTES,
        counters: part.device.counters().named().iter().map(|(name, count)| ((*name).to_string(), *count)).collect(),
    };
    device.disks().into_iter().map(of).collect()
}

fn flash(counters: &Counters) -> Flash {
    let (counts, multi_plane) = (&counters.flash, &counters.multi_plane);
    let ops = |kind| FlashOps {
        total: counts.total(kind),
        by_cause: by_cause(|cause| counts.get(kind, cause)),
        multi_plane: by_cause(|cause| multi_plane.get(kind, cause)),
    };
    Flash {
        reads: ops(OpKind::Read),
        programs: ops(OpKind::Program),
        erases: ops(OpKind::Erase),
        copybacks: ops(OpKind::Copyback),
        rebuilt_pages: counters.rebuilt_pages,
        uncorrectable_copybacks: counters.uncorrectable_copybacks,
        queue: counters.queue.map(|QueueWaits { head_wait, held_up, held_up_time }| Queue {
            head_wait_ns: head_wait.0,
            held_up,
            held_up_ns: held_up_time.0,
        }),
    }
}

fn controller(counters: &ControllerCounters) -> Controller {
    let ControllerCounters { work, copying, misaligned_writes } = *counters;
    Controller { work_ns: work.0, copying_ns: copying.0, misaligned_writes }
}

fn write_amplification(counts: &OpCounts, page_bytes: u64, written: u64) -> Option<WriteAmplification> {
    if written == 0 {
        return None;
    }
    let amplification = |pages: u64| (pages * page_bytes) as f64 / written as f64;
    let pages = |cause| counts.get(OpKind::Program, cause) + counts.get(OpKind::Copyback, cause);
    Some(WriteAmplification {
        total: amplification(counts.total(OpKind::Program) + counts.total(OpKind::Copyback)),
        by_cause: by_cause(|cause| amplification(pages(cause))),
    })
}

fn buffer(counters: &Counters) -> Buffer {
    let buffer = &counters.buffer;
    Buffer {
        hits: buffer.write_hits + buffer.read_hits,
        write_hits: buffer.write_hits,
        write_misses: buffer.write_misses,
        read_hits: buffer.read_hits,
        read_misses: buffer.read_misses,
        evictions: buffer.evictions,
        destaged_pages: buffer.destaged_pages,
        full_pages: buffer.full_pages,
        partial_pages: buffer.partial_pages,
        compacted_pages: buffer.compacted_pages,
        padded_pages: buffer.padded_pages,
        delayed_pages: buffer.delayed_pages,
        converted_pages: buffer.converted_pages,
        full_ns: buffer.full.0,
    }
}

fn map_cache(stats: &MapCacheStats) -> MapCache {
    let requests = |of: &ssdlab_device::MapRequests| MapRequests {
        hits: of.hits,
        misses: of.misses,
        hit_ratio: of.hit_ratio(),
        loads: of.loads,
        flushes: of.flushes,
    };
    let (total, waits) = (stats.total(), stats.waits);
    let by_asker = MapUser::ALL.map(|user| (user.key().to_string(), requests(&stats.by[user as usize])));
    MapCache {
        hits: total.hits,
        misses: total.misses,
        hit_ratio: total.hit_ratio(),
        loads: total.loads,
        flushes: stats.flushes(),
        by_asker: by_asker.into(),
        flushed_with_others: stats.flushed_with_others,
        flushed_for_trims: stats.flushed_for_trims,
        flushed_for_blocks: stats.flushed_for_blocks,
        block_changes: stats.block_changes,
        update_reads: stats.update_reads,
        evictions: stats.evictions,
        moved_pages: stats.moved_pages,
        log_entries: stats.log_entries,
        log_entries_applied: stats.log_entries_applied,
        log_flushes: stats.log_flushes,
        waited_commands: waits.commands,
        wait_ns: waits.time.0,
        wait_mean_ns: (waits.commands > 0).then(|| waits.time.0 as f64 / waits.commands as f64),
    }
}

fn gc(counters: &Counters) -> Gc {
    let [foreground_victims, background_victims, wear_levelling_victims] = counters.victims;
    Gc {
        foreground_victims,
        background_victims,
        wear_levelling_victims,
        stall_ns: counters.gc_stall.0,
        stall_erase_ns: counters.gc_stall_erase.0,
        stalled_commands: counters.gc_stalled_commands,
        grown_bad_blocks: counters.grown_bad_blocks,
        padding_bytes: counters.relocation_padding_bytes,
    }
}

fn utilization(device: &dyn Administration, virtual_time_ns: u64) -> Utilization {
    let busy = parts::utilization(device);
    let share = |busy: &ssdlab_base::Nanos| {
        if virtual_time_ns == 0 { 0.0 } else { busy.0 as f64 / virtual_time_ns as f64 }
    };
    Utilization { channels: busy.channels.iter().map(share).collect(), dies: busy.dies.iter().map(share).collect() }
}

/// The closed form for the drive's victim policy, where there is one.
///
/// It is of the writes that come to flash, at what holds data when victims are chosen; parity comes on top of both, and map
/// pages come on top of what is measured. Where units share pages, the last page of a victim is programmed as it is: a
/// superblock holds less by what relocation left empty for each victim, and programs as much.
fn overwrites(
    dut: &DeviceUnderTest,
    spare: &OverProvisioning,
    at_collection: Option<f64>,
    counters: &Counters,
) -> Option<Theory> {
    let config = &dut.config;
    let geometry = &config.flash.geometry;
    if config.placement.policy != PlacementConfig::default().policy {
        // They know no frontiers by age.
        return None;
    }
    if config.buffer.policy == "none" && config.ftl.mapping_unit < geometry.page_bytes {
        // A unit takes a page of its own: the closed forms know no padding.
        return None;
    }
    let effective = at_collection.unwrap_or(spare.effective);
    let (planes, parity) = (config.ftl.superblock.planes(geometry), config.ftl.parity_pages(geometry));
    // Units that share a page die together with it only by chance: a superblock is so many units to a victim policy.
    let pages = geometry.pages_per_block * (planes - parity);
    let units = pages * (geometry.page_bytes / config.ftl.mapping_unit.max(1));
    let emptied =
        counters.victims.iter().sum::<u64>().max(1) as f64 * f64::from(pages) * f64::from(geometry.page_bytes);
    let unpadded = 1.0 - counters.relocation_padding_bytes as f64 / emptied;
    let a = (1.0 + effective) * unpadded;
    let (model, write_amplification) = match config.gc.victim.as_str() {
        "fifo" => ("FIFO cleaning, Desnoyers 2012: a / (a + W(-a e^-a))", theory::fifo(a)),
        "greedy" => {
            ("greedy cleaning of many blocks, mean field (Van Houdt 2013, d to infinity)", theory::greedy(a, units))
        }
        "random" => ("random victims: a / (a - 1)", theory::random(a)),
        "d-choices" => {
            let choices = config.own("gc.choices").map_or(1, Setting::count);
            ("d-choices, mean field (Van Houdt 2013)", theory::d_choices(a, units, choices))
        }
        _ => return None,
    };
    let ssdlab_device::BufferCounters { write_hits, write_misses, .. } = counters.buffer;
    let written = (write_hits + write_misses).max(1) as f64;
    let with_parity = f64::from(planes) / f64::from(planes - parity);
    write_amplification.map(|of_flash| Theory {
        model: model.to_string(),
        write_amplification: of_flash / unpadded * (1.0 - write_hits as f64 / written) * with_parity,
        effective_over_provisioning: effective,
    })
}

/// The description with everything filled in.
fn configuration(dut: &DeviceUnderTest) -> serde_json::Value {
    let expanded = ssdlab_device::description::expanded(&dut.config);
    // A description is tables, lists, text and finite numbers, all of which JSON has.
    serde_json::to_value(expanded).unwrap_or_else(|error| serde_json::Value::String(error.to_string()))
}

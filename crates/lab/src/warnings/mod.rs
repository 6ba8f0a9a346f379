//! Warnings about what misleads in a result.

mod amplification;

use ssdlab_base::{Op, SECTOR_BYTES};
use ssdlab_device::{Allocation, Destage, DriveConfig, Superblock};
use ssdlab_flash::{MultiPlane, ScriptedFault, Unstruck};
use ssdlab_host::LayerMetrics;

use crate::replay::Recorder;
use crate::result::DeviceResult;
use crate::text::{counted, percent};

pub(crate) use amplification::FreeSpace;
use amplification::{collection, is_too_short_for_balance, writes};

/// Requests outstanding on average from which a backlog is mentioned: more than any closed loop keeps.
const BACKLOG_TO_MENTION: f64 = 1000.0;

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
        let trims = result.requests.trim > 0 && !result.disks.is_empty();
        let why = if trims { ": a disk takes no trims and no writes of zeroes" } else { "" };
        warnings.push(format!("{failed} of {of} ended with an error{why}"));
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

/// Requests that cover parts of mapping units. A host makes other requests of the workload's.
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

/// What the host wrote and flash did not see, or saw as padding.
fn unwritten(result: &DeviceResult, config: &DriveConfig, warnings: &mut Vec<String>) {
    let written = result.bytes.write;
    if written == 0 || !result.has_drives() {
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

fn share(part: u64, whole: u64) -> String {
    format!("{part} ({})", percent(part as f64 / whole.max(1) as f64))
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

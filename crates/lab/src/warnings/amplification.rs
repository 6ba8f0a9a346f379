//! What misleads about write amplification: runs that are too short, drift, and what theory says otherwise.

use ssdlab_base::{SECTOR_BYTES, format_size};
use ssdlab_device::DriveConfig;
use ssdlab_flash::Cause;
use ssdlab_host::Administration;

use super::{Circumstances, share};
use crate::result::{DeviceResult, Precondition, Settled, Timeline};
use crate::text::{counted, percent};

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
        for part in device.drives() {
            space.headroom += part.device.headroom_bytes();
            space.buffered += part.device.buffered_bytes();
        }
        space
    }
}

pub(super) fn writes(
    result: &DeviceResult,
    config: &DriveConfig,
    circumstances: Circumstances,
    warnings: &mut Vec<String>,
) {
    let written = result.bytes.write;
    if written == 0 || !result.has_drives() {
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
pub(super) fn is_too_short_for_balance(
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

/// Whether collection did what its policy's name promises; of a run that is too short theory says nothing.
pub(super) fn collection(result: &DeviceResult, config: &DriveConfig, is_short: bool, warnings: &mut Vec<String>) {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}

//! `[flash]`: geometry, timing, operations and faults of the chips.

use ssdlab_base::Nanos;
use ssdlab_flash::presets::{PRESETS, Preset, preset, transfer_time};
use ssdlab_flash::{FaultKind, Faults, FlashConfig, Geometry, MultiPlane, SchedulerKind, ScriptedFault, Timing};

use super::error::DescriptionError;
use super::keys;
use super::reader::{Field, Section};

/// The longest time of one flash operation or transfer; longer ones are a slip, and sums of them stay in 64 bits.
pub(super) const LONGEST_OPERATION: Nanos = Nanos(60_000_000_000);
/// The longest other time.
pub(super) const LONGEST_WAIT: Nanos = Nanos(3_600_000_000_000);
/// The largest page.
const LARGEST_PAGE: u64 = 1 << 20;
/// The slowest link, in bytes a second.
pub(super) const SLOWEST_LINK: u64 = 64 << 10;

/// Reads `[flash]`; false is `timing = "none"`.
pub(super) fn read(root: &Section<'_>) -> Result<(FlashConfig, bool), DescriptionError> {
    let flash = root.section("flash", keys::FLASH)?;
    let geometry = geometry(&flash)?;
    let boolean = |key| flash.get(key).map_or(Ok(false), |field| field.boolean());
    let program_suspend = boolean("program_suspend")?;
    let erase_suspend = boolean("erase_suspend")?;
    let (timing, timed) = timing(&flash, &geometry, program_suspend || erase_suspend)?;
    let config = FlashConfig {
        timing,
        multi_plane: match flash.get("multi_plane") {
            Some(field) => field.choice(&MULTI_PLANE)?,
            None => MultiPlane::SameOffset,
        },
        copyback: boolean("copyback")?,
        cache_program: boolean("cache_program")?,
        program_suspend,
        erase_suspend,
        scheduler: scheduler(&flash)?,
        faults: faults(&flash, &geometry)?,
        geometry,
    };
    Ok((config, timed))
}

/// The words of `multi_plane`.
pub(super) const MULTI_PLANE: [(&str, MultiPlane); 3] =
    [("off", MultiPlane::Off), ("same-offset", MultiPlane::SameOffset), ("relaxed", MultiPlane::Relaxed)];

/// The words of a scripted fault's `kind`.
pub(super) const FAULT_KINDS: [(&str, FaultKind); 5] = [
    ("read", FaultKind::Read),
    ("program", FaultKind::Program),
    ("erase", FaultKind::Erase),
    ("factory", FaultKind::Factory),
    ("die", FaultKind::Die),
];

const COUNT: &str = "a whole number of at least 1";
const PAGE: &str = "the data bytes of a page, such as \"4k\" or \"16k\"";

/// The keys of `[flash]` that have no default, and what is expected of them.
pub(super) const REQUIRED: [(&str, &str); 7] = [
    ("channels", COUNT),
    ("chips_per_channel", COUNT),
    ("dies_per_chip", COUNT),
    ("planes_per_die", COUNT),
    ("blocks_per_plane", COUNT),
    ("pages_per_block", COUNT),
    ("page_size", PAGE),
];

/// The keys of `[flash.timing]` that only a preset gives a default, and what they are.
pub(super) const REQUIRED_TIMES: [(&str, &str); 4] = [READ, PROGRAM, ERASE, TRANSFER];
const READ: (&str, &str) = ("read", "the time to read a page from the array (tR)");
const PROGRAM: (&str, &str) = ("program", "the time to program a page (tPROG)");
const ERASE: (&str, &str) = ("erase", "the time to erase a block (tBERS)");
const TRANSFER: (&str, &str) = ("transfer", "the time of a page's data on the channel, or channel_bandwidth");

/// No timing of any kind.
pub(super) fn no_timing(flash: &Section<'_>) -> DescriptionError {
    flash.missing("timing", "a table of latencies, a preset in flash.cell, or \"none\"")
}

/// A time that is missing in the table.
pub(super) fn no_time(table: &Section<'_>, key: &str, what: &str) -> DescriptionError {
    table.missing(key, &format!("{what}, or a preset in flash.cell"))
}

fn geometry(flash: &Section<'_>) -> Result<Geometry, DescriptionError> {
    let count = |key| flash.require(key, COUNT).and_then(|field| field.count(1, u32::MAX));
    let page_field = flash.require("page_size", PAGE)?;
    let page_bytes = page_field.size()?;
    if page_bytes == 0 || page_bytes % 512 != 0 || page_bytes > LARGEST_PAGE {
        let expected = format!("a multiple of 512 bytes from 512 to {LARGEST_PAGE}");
        return Err(page_field.expected(&expected));
    }
    let oob_bytes = match flash.get("oob_size") {
        Some(field) => {
            let bytes = field.size()?;
            if bytes > page_bytes {
                return Err(field.expected(&format!("at most the {page_bytes} bytes of a page")));
            }
            bytes
        }
        None => page_bytes / 32,
    };
    let geometry = Geometry {
        channels: count("channels")?,
        chips_per_channel: count("chips_per_channel")?,
        dies_per_chip: count("dies_per_chip")?,
        planes_per_die: count("planes_per_die")?,
        blocks_per_plane: count("blocks_per_plane")?,
        pages_per_block: count("pages_per_block")?,
        // At most LARGEST_PAGE.
        page_bytes: page_bytes as u32,
        oob_bytes: oob_bytes as u32,
    };
    let planes = [geometry.channels, geometry.chips_per_channel, geometry.dies_per_chip, geometry.planes_per_die]
        .iter()
        .fold(1_u128, |product, count| product.saturating_mul(u128::from(*count)));
    let blocks = planes.saturating_mul(u128::from(geometry.blocks_per_plane));
    if blocks >= 1 << 31 {
        return Err(flash.error(
            "",
            format!(
                "found {blocks} blocks ({planes} planes of {}), expected fewer than {}",
                geometry.blocks_per_plane,
                1_u32 << 31
            ),
        ));
    }
    let pages = blocks.saturating_mul(u128::from(geometry.pages_per_block));
    if pages >= 1 << 32 {
        return Err(flash.error(
            "",
            format!(
                "found {pages} pages ({blocks} blocks of {}), expected fewer than {}",
                geometry.pages_per_block,
                1_u64 << 32
            ),
        ));
    }
    Ok(geometry)
}

fn preset_names(with_none: bool) -> Vec<&'static str> {
    let mut names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
    if with_none {
        names.push("none");
    }
    names
}

fn named_preset(field: &Field<'_>) -> Result<&'static Preset, DescriptionError> {
    let name = field.name(&preset_names(false))?;
    preset(name).ok_or_else(|| field.expected("a preset"))
}

fn timing(flash: &Section<'_>, geometry: &Geometry, suspends: bool) -> Result<(Timing, bool), DescriptionError> {
    let cell = match flash.get("cell") {
        Some(field) => Some(named_preset(&field)?),
        None => None,
    };
    let same = |field: &Field<'_>, preset: &'static Preset| match cell {
        Some(cell) if cell != preset => {
            Err(field.error(format!("found \"{}\" beside cell = \"{}\", expected one of them", preset.name, cell.name)))
        }
        _ => Ok(Some(preset)),
    };
    let (table, base) = match flash.get("timing") {
        None => (None, cell),
        Some(field) if field.as_text().is_some() => {
            let name = field.name(&preset_names(true))?;
            match preset(name) {
                Some(preset) => (None, same(&field, preset)?),
                None => return Ok((untimed(), false)),
            }
        }
        Some(field) => {
            let table = field.section(keys::TIMING)?;
            let base = match table.get("preset") {
                Some(field) => {
                    let preset = named_preset(&field)?;
                    same(&field, preset)?
                }
                None => cell,
            };
            (Some(table), base)
        }
    };
    let empty = flash.clone();
    let missing = |(key, what): (&str, &str)| match &table {
        Some(table) => no_time(table, key, what),
        None => no_timing(&empty),
    };
    let get = |key| table.as_ref().and_then(|table| table.get(key));
    let preset_timing = base.map(|preset| preset.timing(geometry.page_bytes));
    let position = geometry.pages_per_block;

    let read = match (get("read"), &preset_timing) {
        (Some(field), _) => field.latencies(LONGEST_OPERATION, position)?,
        (None, Some(preset)) => preset.read.clone(),
        (None, None) => return Err(missing(READ)),
    };
    let program = match (get("program"), &preset_timing) {
        (Some(field), _) => field.latencies(LONGEST_OPERATION, position)?,
        (None, Some(preset)) => preset.program.clone(),
        (None, None) => return Err(missing(PROGRAM)),
    };
    let erase = match (get("erase"), &preset_timing) {
        (Some(field), _) => field.latency(LONGEST_OPERATION)?,
        (None, Some(preset)) => preset.erase,
        (None, None) => return Err(missing(ERASE)),
    };
    let transfer = match (get("transfer"), get("channel_bandwidth"), &preset_timing) {
        (Some(_), Some(field), _) => {
            return Err(field.error("found beside transfer, expected one of them".to_string()));
        }
        (Some(field), None, _) => field.duration(LONGEST_OPERATION)?,
        (None, Some(field), _) => {
            let bandwidth = field.bandwidth()?;
            if bandwidth < SLOWEST_LINK {
                return Err(field.expected(&format!("at least {SLOWEST_LINK} bytes a second")));
            }
            transfer_time(u64::from(geometry.page_bytes), bandwidth)
                .ok_or_else(|| field.expected("a faster channel"))?
        }
        (None, None, Some(preset)) => preset.transfer,
        (None, None, None) => return Err(missing(TRANSFER)),
    };
    let command = match (get("command"), base) {
        (Some(field), _) => field.duration(LONGEST_OPERATION)?,
        (None, Some(preset)) => preset.command,
        (None, None) => Nanos::ZERO,
    };
    // No preset's source gives these, so a drive that suspends has to say.
    let pause = |key: &'static str| match get(key) {
        Some(field) => field.duration(LONGEST_OPERATION),
        None if suspends => Err(no_pause(&empty, table.as_ref(), key)),
        None => Ok(Nanos::ZERO),
    };
    Ok((Timing { read, program, erase, command, transfer, suspend: pause("suspend")?, resume: pause("resume")? }, true))
}

/// Times that chips which suspend need.
pub(super) const PAUSES: [&str; 2] = ["suspend", "resume"];

/// A time of suspension is not there.
pub(super) fn no_pause(flash: &Section<'_>, table: Option<&Section<'_>>, key: &str) -> DescriptionError {
    const EXPECTED: &str = "a time, since the chips suspend";
    match table {
        Some(table) => table.missing(key, EXPECTED),
        None => flash.error("timing", format!("'{key}' is missing, expected {EXPECTED}")),
    }
}

/// Everything at once.
fn untimed() -> Timing {
    let zero = ssdlab_flash::Latency { min: Nanos::ZERO, max: Nanos::ZERO };
    Timing {
        read: vec![zero],
        program: vec![zero],
        erase: zero,
        command: Nanos::ZERO,
        transfer: Nanos::ZERO,
        suspend: Nanos::ZERO,
        resume: Nanos::ZERO,
    }
}

fn scheduler(flash: &Section<'_>) -> Result<SchedulerKind, DescriptionError> {
    let starvation = match flash.get("scheduler_starvation") {
        Some(field) => field.duration(LONGEST_WAIT)?,
        None => Nanos::from_ms(5),
    };
    let choices = [
        ("fifo", SchedulerKind::Fifo),
        ("reads-first", SchedulerKind::ReadsFirst),
        ("host-first", SchedulerKind::HostFirst { starvation }),
    ];
    flash.get("scheduler").map_or(Ok(SchedulerKind::Fifo), |field| field.choice(&choices))
}

fn faults(flash: &Section<'_>, geometry: &Geometry) -> Result<Faults, DescriptionError> {
    let faults = flash.section("faults", keys::FAULTS)?;
    let probability = |key| faults.get(key).map_or(Ok(0.0), |field| field.probability());
    let mut script = Vec::new();
    if let Some(field) = faults.get("script") {
        for entry in field.list("a list of faults, such as [{ kind = \"program\", block = 12, nth = 3 }]")? {
            let entry = entry.section(keys::SCRIPT)?;
            let kind = entry.require("kind", "read, program, erase, factory or die")?.choice(&FAULT_KINDS)?;
            script.push(ScriptedFault {
                kind,
                block: entry
                    .require("block", "the block's number over the whole drive")?
                    .count(0, geometry.blocks() - 1)?,
                nth: match entry.get("nth") {
                    Some(field) => field.count(1, u32::MAX)?,
                    None => 1,
                },
            });
        }
    }
    Ok(Faults {
        program_failure: probability("program_failure")?,
        erase_failure: probability("erase_failure")?,
        uncorrectable_read: probability("uncorrectable_read")?,
        factory_bad: probability("factory_bad")?,
        endurance: match faults.get("endurance") {
            Some(field) => Some(field.count(1, u32::MAX)?),
            None => None,
        },
        script,
    })
}

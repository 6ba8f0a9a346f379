//! `[flash]`: geometry, timing, operations and faults of the chips.

use ssdlab_base::Nanos;
use ssdlab_flash::presets::{Preset, preset, transfer_time};
use ssdlab_flash::{BlockId, Faults, FlashConfig, Geometry, SchedulerKind, ScriptedFault, Timing};

use super::error::DescriptionError;
use super::errors::Errors;
use super::reader::{Field, Section};
use super::settings::Setting;

/// Reads `[flash]`; false is `timing = "none"`.
pub(super) fn read(root: &Section<'_>, errors: &mut Errors) -> Option<(FlashConfig, bool)> {
    let flash = errors.keep(root.section("flash"))?;
    let script = errors.keep(script(&flash)).unwrap_or_default();
    for entry in &script {
        entry.check(errors);
    }
    let geometry = errors.keep(geometry(&flash))?;
    let timing = errors.keep(timing(&flash, &geometry));
    let faults = errors.keep(faults(&flash, &script, &geometry));
    errors.keep(with(&flash, geometry, timing?, faults?))
}

fn with(
    flash: &Section<'_>,
    geometry: Geometry,
    (timing, timed): (Timing, bool),
    faults: Faults,
) -> Result<(FlashConfig, bool), DescriptionError> {
    let (copyback, checks_copyback) = match flash.get("copyback").map(|field| field.setting()).transpose()? {
        None => (false, false),
        Some(Setting::Flag(copyback)) => (copyback, false),
        // The one word: "checked".
        Some(_) => (true, true),
    };
    let config = FlashConfig {
        timing,
        multi_plane: flash.choice("multi_plane")?,
        copyback,
        checks_copyback,
        cache_program: flash.flag("cache_program")?,
        program_suspend: flash.flag("program_suspend")?,
        erase_suspend: flash.flag("erase_suspend")?,
        suspend_limit: flash.count("suspend_limit")?,
        scheduler: scheduler(flash)?,
        oob: flash.choice("oob")?,
        faults,
        geometry,
    };
    Ok((config, timed))
}

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

/// Neither of the keys that say how many blocks there are.
pub(super) fn no_blocks(flash: &Section<'_>) -> DescriptionError {
    flash.missing("blocks_per_plane", "a whole number of at least 1, or die_capacity, such as \"128Gb\"")
}

/// Blocks of each plane: as many as are given, or as it takes to reach the capacity of a die.
fn blocks_per_plane(flash: &Section<'_>, block_bytes: u64, planes_per_die: u32) -> Result<u32, DescriptionError> {
    let Some(field) = flash.get("die_capacity") else {
        return flash.get("blocks_per_plane").ok_or_else(|| no_blocks(flash))?.setting().map(Setting::count);
    };
    let bits = u128::from(field.setting()?.number());
    let row_bits = u128::from(block_bytes) * u128::from(planes_per_die) * 8;
    let blocks = bits.div_ceil(row_bits);
    if (blocks * row_bits - bits) * 100 > bits {
        let megabits = |bits: u128| format!("{} Mb", bits.div_ceil(1 << 20));
        return Err(field.expected(&format!(
            "a capacity that whole blocks come to within 1 %: a block of each of the {planes_per_die} planes \
             (pages_per_block x page_size = {block_bytes} bytes each) is {}, and {blocks} a plane are {}, not {}",
            megabits(row_bits),
            megabits(blocks * row_bits),
            megabits(bits),
        )));
    }
    // A geometry of more blocks is refused whatever their number.
    Ok(u32::try_from(blocks).unwrap_or(u32::MAX))
}

fn geometry(flash: &Section<'_>) -> Result<Geometry, DescriptionError> {
    let count = |key| flash.count(key);
    let page_bytes = flash.number("page_size")?;
    let (planes_per_die, pages_per_block) = (count("planes_per_die")?, count("pages_per_block")?);
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
        planes_per_die,
        blocks_per_plane: blocks_per_plane(flash, page_bytes * u64::from(pages_per_block), planes_per_die)?,
        pages_per_block,
        // At most a mebibyte.
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

fn named_preset(field: &Field<'_>) -> Result<&'static Preset, DescriptionError> {
    preset(field.setting()?.word()).ok_or_else(|| field.expected("a preset"))
}

fn timing(flash: &Section<'_>, geometry: &Geometry) -> Result<(Timing, bool), DescriptionError> {
    let suspends = flash.flag("program_suspend")? || flash.flag("erase_suspend")?;
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
        Some(field) if field.as_text().is_some() => match preset(field.setting()?.word()) {
            Some(preset) => (None, same(&field, preset)?),
            None => return Ok((untimed(), false)),
        },
        Some(field) => {
            let table = field.section()?;
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
        (Some(field), _) => field.latencies(position)?,
        (None, Some(preset)) => preset.read.clone(),
        (None, None) => return Err(missing(READ)),
    };
    let program = match (get("program"), &preset_timing) {
        (Some(field), _) => field.latencies(position)?,
        (None, Some(preset)) => preset.program.clone(),
        (None, None) => return Err(missing(PROGRAM)),
    };
    let erase = match (get("erase"), &preset_timing) {
        (Some(field), _) => field.latency()?,
        (None, Some(preset)) => preset.erase,
        (None, None) => return Err(missing(ERASE)),
    };
    let transfer = match (get("transfer"), get("channel_bandwidth"), &preset_timing) {
        (Some(field), _, _) => Nanos(field.setting()?.number()),
        (None, Some(field), _) => transfer_time(u64::from(geometry.page_bytes), field.setting()?.number())
            .ok_or_else(|| field.expected("a faster channel"))?,
        (None, None, Some(preset)) => preset.transfer,
        (None, None, None) => return Err(missing(TRANSFER)),
    };
    let command = match (get("command"), base) {
        (Some(field), _) => Nanos(field.setting()?.number()),
        (None, Some(preset)) => preset.command,
        (None, None) => Nanos::ZERO,
    };
    // No preset's source gives these, so a drive that suspends has to say.
    let pause = |key: &'static str| match get(key) {
        Some(field) => field.setting().map(|time| Nanos(time.number())),
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
    let starvation = flash.time("scheduler_starvation")?;
    Ok(match flash.word("scheduler")? {
        "reads-first" => SchedulerKind::ReadsFirst,
        "host-first" => SchedulerKind::HostFirst { starvation },
        "single-fifo" => SchedulerKind::SingleFifo,
        "in-order" => SchedulerKind::InOrder,
        _ => SchedulerKind::Fifo,
    })
}

/// The entries of `flash.faults.script`.
fn script<'t>(flash: &Section<'t>) -> Result<Vec<Section<'t>>, DescriptionError> {
    match flash.section("faults")?.get("script") {
        Some(field) => {
            let entries = field.list("a list of faults, such as [{ kind = \"program\", block = 12, nth = 3 }]")?;
            entries.iter().map(Field::section).collect()
        }
        None => Ok(Vec::new()),
    }
}

fn faults(flash: &Section<'_>, script: &[Section<'_>], geometry: &Geometry) -> Result<Faults, DescriptionError> {
    let faults = flash.section("faults")?;
    let probability = |key| faults.get(key).map_or(Ok(0.0), |field| field.probability());
    let scripted = |entry: &Section<'_>| {
        Ok(ScriptedFault {
            kind: entry.choice("kind")?,
            block: BlockId(entry.require("block")?.count(0, geometry.blocks() - 1)?),
            nth: entry.count("nth")?,
        })
    };
    let script = script.iter().map(scripted).collect::<Result<Vec<_>, DescriptionError>>()?;
    Ok(Faults {
        program_failure: probability("program_failure")?,
        erase_failure: probability("erase_failure")?,
        uncorrectable_read: probability("uncorrectable_read")?,
        factory_bad: probability("factory_bad")?,
        endurance: faults.get("endurance").map(|field| field.setting().map(Setting::count)).transpose()?,
        script,
    })
}

//! `[capacity]`, `[interface]`, `[buffer]`, `[ftl]` and `[gc]`: what the controller makes of the chips.

use ssdlab_base::format_size;
use ssdlab_flash::{FlashConfig, Geometry};

use super::error::DescriptionError;
use super::errors::Errors;
use super::key::{Family, Kind};
use super::keys;
use super::quantity::BILLION;
use super::reader::{Field, Section};
use super::settings::Settings;
use crate::{
    Allocation, BufferConfig, ControllerConfig, DestageConfig, FtlConfig, GcConfig, InterfaceConfig, InterfaceKind,
    Level, PlacementConfig, SATA_QUEUE_DEPTH, Superblock,
};

/// Commands in flight a drive may have over all queues.
const MOST_COMMANDS: u64 = 1 << 20;

/// Reads `[capacity]`: user bytes, rounded down to a whole mapping unit.
pub(super) fn capacity(root: &Section<'_>, geometry: &Geometry, unit: u32) -> Result<u64, DescriptionError> {
    let capacity = root.section("capacity")?;
    let physical = geometry.bytes();
    let (field, user) = match (capacity.get("over_provisioning"), capacity.get("user")) {
        (None, None) => return Err(no_capacity(&capacity)),
        (_, Some(field)) => (field.clone(), field.size()?),
        (Some(field), _) => {
            let hundred = u128::from(100 * BILLION);
            // At most `physical`, so it fits.
            let user = (u128::from(physical) * hundred / (hundred + u128::from(field.share()?))) as u64;
            (field, user)
        }
    };
    let user = user - user % u64::from(unit);
    if user == 0 {
        return Err(field.expected(&format!(
            "a user capacity of at least one mapping unit ({unit} bytes); the flash holds {physical} bytes"
        )));
    }
    if user >= physical {
        return Err(field.error(format!(
            "found a user capacity of {user} bytes ({}), expected less than the {physical} bytes ({}) of flash: \
             a drive needs spare blocks to write at all",
            format_size(user),
            format_size(physical)
        )));
    }
    Ok(user)
}

/// Neither of its keys is there.
pub(super) fn no_capacity(capacity: &Section<'_>) -> DescriptionError {
    capacity.missing("", keys::NO_CAPACITY)
}

/// Reads `[interface]`.
pub(super) fn interface(root: &Section<'_>, errors: &mut Errors) -> Option<InterfaceConfig> {
    let interface = errors.keep(root.section("interface"))?;
    let kind = errors.keep(interface.choice("kind"))?;
    let (most_queues, deepest) = match kind {
        InterfaceKind::Nvme => (65_535, 65_536),
        InterfaceKind::Sata => (1, SATA_QUEUE_DEPTH),
    };
    let limited = |key, most: u32, what: &str| match interface.get(key) {
        Some(field) => {
            field.count(1, u32::MAX)?;
            field.count(1, most).map_err(|_| field.expected(&format!("at most {most} {what}")))
        }
        None => interface.count(key),
    };
    let (queues_of, depth_of) = match kind {
        InterfaceKind::Nvme => ("queues (NVMe)", "commands in a queue (NVMe)"),
        InterfaceKind::Sata => ("queue (SATA)", "commands in the queue (SATA NCQ)"),
    };
    let queues = errors.keep(limited("queues", most_queues, queues_of));
    let queue_depth = errors.keep(limited("queue_depth", deepest, depth_of));
    errors.keep(interface_of(&interface, kind, queues?, queue_depth?))
}

fn interface_of(
    interface: &Section<'_>,
    kind: InterfaceKind,
    queues: u32,
    queue_depth: u32,
) -> Result<InterfaceConfig, DescriptionError> {
    let commands = u64::from(queues) * u64::from(queue_depth);
    if commands > MOST_COMMANDS {
        let reason = format!(
            "found {queues} queues of {queue_depth}, {commands} commands, expected at most {MOST_COMMANDS} commands"
        );
        return Err(interface.error("queues", reason));
    }
    Ok(InterfaceConfig {
        kind,
        queues,
        queue_depth,
        bandwidth: interface.number("bandwidth")?,
        command_overhead: interface.time("command_overhead")?,
        read_overhead: interface.time("read_overhead")?,
        write_overhead: interface.time("write_overhead")?,
        processing: interface.time("processing")?,
        read_unwritten: interface.choice("read_unwritten")?,
        command_codes: interface.count("command_codes")?,
        answers: interface.choice("answers")?,
    })
}

/// Reads `[controller]`.
pub(super) fn controller(root: &Section<'_>) -> Result<ControllerConfig, DescriptionError> {
    let controller = root.section("controller")?;
    if let Some(field) = root.section("interface")?.get("processing")
        && field.setting()?.number() > 0
        && let Some(table) = root.get("controller")
    {
        let place = field.place();
        let reason = format!(
            "found beside interface.processing ({place}), expected one of them: both are the time of one processor"
        );
        return Err(table.error(reason));
    }
    let clock = match controller.get("clock") {
        Some(field) => field.setting()?.number(),
        None => 0,
    };
    let cycles = |key: &'static str| match (controller.count(key)?, controller.get(key)) {
        (cycles, Some(field)) if cycles > 0 && clock == 0 => {
            Err(field.error(format!("found {cycles} cycles, expected controller.clock with it, such as \"87.5MHz\"")))
        }
        (cycles, _) => Ok(cycles),
    };
    Ok(ControllerConfig {
        clock,
        command_cycles: cycles("command_cycles")?,
        map_entry_cycles: cycles("map_entry_cycles")?,
        operation_cycles: cycles("operation_cycles")?,
        completion_cycles: cycles("completion_cycles")?,
        copy_bandwidth: controller.number("copy_bandwidth")?,
        dram: controller.number("dram")?,
        sram: controller.number("sram")?,
        reads: controller.choice("reads")?,
        gather_percent: controller.count("gather_share")?,
    })
}

/// What a section says to the policies or designs that it can choose from, whichever it chooses.
fn own(section: &Section<'_>, family: &Family, geometry: &Geometry) -> Result<Settings, DescriptionError> {
    let mut own = Settings::default();
    let (keys, page_bytes) = (family.keys(), u64::from(geometry.page_bytes));
    for key in &keys {
        let Some(field) = section.get(key.name) else { continue };
        let setting = field.setting()?;
        if let Kind::Pages = key.kind
            && (setting.number() == 0 || !setting.number().is_multiple_of(page_bytes))
        {
            return Err(field.expected(&format!("a whole number of pages ({page_bytes} bytes), at least one")));
        }
        own.set(key.name, setting);
    }
    own.drop_defaults(&keys, geometry);
    Ok(own)
}

/// Reads `[buffer]`.
pub(super) fn buffer(root: &Section<'_>, geometry: &Geometry) -> Result<BufferConfig, DescriptionError> {
    let buffer = root.section("buffer")?;
    let page_bytes = geometry.page_bytes;
    let policy = buffer.word("policy")?.to_string();
    let latency = buffer.time("latency")?;
    let given = match buffer.get("size") {
        Some(field) => Some((field.setting()?.number(), field)),
        None => None,
    };
    let bytes = match given {
        _ if policy == "none" => 0,
        Some((size, field)) if size < u64::from(page_bytes) => {
            return Err(field.expected(&format!("at least one page ({page_bytes} bytes) for the policy '{policy}'")));
        }
        Some((size, _)) => size,
        None => {
            let reason = format!("missing, expected a size such as \"64m\" for the policy '{policy}'");
            return Err(buffer.error("size", reason));
        }
    };
    let (destage, own) = (destage(&buffer)?, own(&buffer, &keys::BUFFERS, geometry)?);
    Ok(BufferConfig { policy, bytes, latency, destage, own })
}

/// Percent between the watermarks, unless the description says otherwise.
const WATERMARK_GAP: u32 = 10;

/// `buffer.low_watermark` where the description gives none.
pub(super) fn low_watermark(high_percent: u32) -> u32 {
    high_percent.saturating_sub(WATERMARK_GAP)
}

/// When data leaves the buffer.
fn destage(buffer: &Section<'_>) -> Result<DestageConfig, DescriptionError> {
    let when = buffer.choice("destage")?;
    let high_percent = buffer.count("high_watermark")?;
    let low_percent = match buffer.get("low_watermark") {
        Some(field) => match field.setting()?.count() {
            low if low > high_percent => {
                let expected = format!("at most buffer.high_watermark (\"{high_percent}%\")");
                return Err(field.expected(&expected));
            }
            low => low,
        },
        None => low_watermark(high_percent),
    };
    Ok(DestageConfig { when, high_percent, low_percent })
}

/// Reads `[placement]`.
pub(super) fn placement(root: &Section<'_>, geometry: &Geometry) -> Result<PlacementConfig, DescriptionError> {
    let placement = root.section("placement")?;
    let policy = placement.word("policy")?.to_string();
    Ok(PlacementConfig { policy, own: own(&placement, &keys::PLACEMENTS, geometry)? })
}

/// Reads `[ftl]`.
pub(super) fn ftl(root: &Section<'_>, geometry: &Geometry) -> Result<FtlConfig, DescriptionError> {
    let ftl = root.section("ftl")?;
    let page_bytes = geometry.page_bytes;
    // The largest power of two sectors that divides a page.
    let whole = 1_u32 << page_bytes.trailing_zeros();
    let mapping_unit = match ftl.get("mapping_unit") {
        Some(field) => {
            let size = field.size()?;
            match u32::try_from(size) {
                Ok(unit) if unit >= 512 && unit.is_power_of_two() && unit <= whole => unit,
                _ => {
                    return Err(field.expected(&format!(
                        "a power of two from 512 to {whole} bytes, which divides the page of {page_bytes}"
                    )));
                }
            }
        }
        None => whole,
    };
    let units = u128::from(geometry.pages()) * u128::from(page_bytes / mapping_unit);
    if units >= (1 << 32) - 2 {
        return Err(ftl.error(
            "mapping_unit",
            format!("found {units} mapping units of {mapping_unit} bytes, expected fewer than {}", (1_u64 << 32) - 2),
        ));
    }
    Ok(FtlConfig {
        design: ftl.word("design")?.to_string(),
        mapping_unit,
        allocation: match ftl.get("allocation") {
            Some(field) => allocation(&field)?,
            None => Allocation::RoundRobin(CWDP),
        },
        superblock: ftl.choice("superblock")?,
        parity: ftl.choice("parity")?,
        separate_gc_frontier: ftl.flag("separate_gc_frontier")?,
        streams: ftl.count("streams")?,
        owners: ftl.choice("owners")?,
        own: own(&ftl, &keys::DESIGNS, geometry)?,
    })
}

/// Channel first, then way, die and plane.
const CWDP: [Level; 4] = [Level::Channel, Level::Way, Level::Die, Level::Plane];

pub(super) fn allocation(field: &Field<'_>) -> Result<Allocation, DescriptionError> {
    let expected = "\"dynamic\", \"round-robin\", or an order of channel, way, die and plane such as \"cwdp\" or \
                    \"round-robin:cwdp\"";
    let text = field.text(expected)?;
    match text {
        "dynamic" => return Ok(Allocation::Dynamic),
        "round-robin" => return Ok(Allocation::RoundRobin(CWDP)),
        _ => {}
    }
    let (round_robin, order) = match text.strip_prefix("round-robin:") {
        Some(order) => (true, order),
        None => (false, text),
    };
    let levels = order_of(order).ok_or_else(|| field.expected(expected))?;
    Ok(if round_robin { Allocation::RoundRobin(levels) } else { Allocation::Static(levels) })
}

fn order_of(order: &str) -> Option<[Level; 4]> {
    let mut levels = Vec::with_capacity(4);
    for letter in order.chars() {
        let level = match letter {
            'c' => Level::Channel,
            'w' => Level::Way,
            'd' => Level::Die,
            'p' => Level::Plane,
            _ => return None,
        };
        if levels.contains(&level) {
            return None;
        }
        levels.push(level);
    }
    levels.try_into().ok()
}

/// Reads `[gc]`.
pub(super) fn gc(
    root: &Section<'_>,
    flash: &FlashConfig,
    superblock: Superblock,
) -> Result<GcConfig, DescriptionError> {
    let gc = root.section("gc")?;
    let blocks = flash.geometry.blocks_per_plane;
    let fewer = |key, field: Option<&Field<'_>>| match (gc.count(key)?, field) {
        (count, _) if count < blocks => Ok(count),
        (_, Some(field)) => Err(field.expected(&format!("fewer than the {blocks} blocks of a plane"))),
        (count, None) => {
            Err(gc.error(key, format!("the default is {count}, expected fewer than the {blocks} blocks of a plane")))
        }
    };
    let free_blocks = fewer("free_blocks", gc.get("free_blocks").as_ref())?;
    let field = gc.get("background_free_blocks");
    let background_free_blocks = fewer("background_free_blocks", field.as_ref())?;
    if let Some(field) = field
        && background_free_blocks != 0
        && background_free_blocks <= free_blocks
    {
        let expected = format!("more than gc.free_blocks ({free_blocks}), or 0 for no background collection");
        return Err(field.expected(&expected));
    }
    let copyback = match gc.get("copyback") {
        Some(field) => {
            let copyback = field.setting()?.flag();
            if copyback && !flash.copyback {
                return Err(
                    field.expected("flash.copyback = true or \"checked\" with it: these chips have no copyback")
                );
            }
            if copyback && superblock != Superblock::None {
                let expected = "false, or ftl.superblock = \"none\" with it: a copyback stays in its plane, and what leaves a \
                                superblock goes to all of its planes";
                return Err(field.expected(expected));
            }
            copyback
        }
        None => flash.copyback && superblock == Superblock::None,
    };
    Ok(GcConfig {
        victim: gc.word("victim")?.to_string(),
        free_blocks,
        background_free_blocks,
        pacing: gc.choice("pacing")?,
        idle_after: gc.time("idle_after")?,
        copyback,
        dynamic_wear_levelling: gc.flag("dynamic_wear_levelling")?,
        static_wear_threshold: gc.count("static_wear_threshold")?,
        own: own(&gc, &keys::VICTIMS, &flash.geometry)?,
    })
}

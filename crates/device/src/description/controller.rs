//! `[capacity]`, `[interface]`, `[buffer]`, `[ftl]` and `[gc]`: what the controller makes of the chips.

use ssdlab_base::{Nanos, format_size};
use ssdlab_flash::{FlashConfig, Geometry};

use super::error::DescriptionError;
use super::flash::{LONGEST_WAIT, SLOWEST_LINK};
use super::keys;
use super::quantity::BILLION;
use super::reader::{Field, Section};
use crate::{
    Allocation, BufferConfig, BufferPolicies, CompactionIndex, Destage, DestageConfig, FtlConfig, GcConfig,
    InterfaceConfig, InterfaceKind, Level, Pacing, Parity, Superblock, VersionIndex, VersionMasks, VersionsConfig,
};

/// Commands in flight a drive may have over all queues.
const MOST_COMMANDS: u64 = 1 << 20;
/// The largest buffer.
const LARGEST_BUFFER: u64 = 64 << 30;
/// Candidates that `d-choices` draws, unless the description says how many.
pub(super) const CHOICES: u32 = 10;
/// Units that `mca` may look at.
const MOST_UNITS_LOOKED_AT: u32 = 1 << 16;
/// Pages of a logical block: no more than a 32-bit number of units can take.
const MOST_BLOCK_PAGES: u32 = 1 << 16;
/// Host write streams.
const MOST_STREAMS: u32 = 256;
/// Versions of a page.
const MOST_VERSIONS: u32 = 64;
/// `gc.free_blocks` where the description gives none.
const FREE_BLOCKS: u32 = 3;

/// Reads `[capacity]`: user bytes, rounded down to a whole mapping unit.
pub(super) fn capacity(root: &Section<'_>, geometry: &Geometry, unit: u32) -> Result<u64, DescriptionError> {
    let capacity = root.section("capacity", keys::CAPACITY)?;
    let physical = geometry.bytes();
    let (field, user) = match (capacity.get("over_provisioning"), capacity.get("user")) {
        (Some(_), Some(field)) => {
            return Err(field.error("found beside over_provisioning, expected one of them".to_string()));
        }
        (None, None) => {
            return Err(no_capacity(&capacity));
        }
        (None, Some(field)) => {
            let user = field.size()?;
            (field, user)
        }
        (Some(field), None) => {
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
    capacity.missing("", "over_provisioning or user")
}

/// Reads `[interface]`.
pub(super) fn interface(root: &Section<'_>) -> Result<InterfaceConfig, DescriptionError> {
    let interface = root.section("interface", keys::INTERFACE)?;
    let kind = match interface.get("kind") {
        Some(field) => field.choice(&INTERFACE_KINDS)?,
        None => InterfaceKind::Nvme,
    };
    let (most_queues, deepest) = match kind {
        InterfaceKind::Nvme => (65_535, 65_536),
        InterfaceKind::Sata => (1, 32),
    };
    let limited = |field: Field<'_>, most: u32, what: &str| {
        field.count(1, u32::MAX)?;
        field.count(1, most).map_err(|_| field.expected(&format!("at most {most} {what}")))
    };
    let (queues_of, depth_of) = match kind {
        InterfaceKind::Nvme => ("queues (NVMe)", "commands in a queue (NVMe)"),
        InterfaceKind::Sata => ("queue (SATA)", "commands in the queue (SATA NCQ)"),
    };
    let queues = match interface.get("queues") {
        Some(field) => limited(field, most_queues, queues_of)?,
        None => 1,
    };
    let queue_depth = match interface.get("queue_depth") {
        Some(field) => limited(field, deepest, depth_of)?,
        None => 32,
    };
    let commands = u64::from(queues) * u64::from(queue_depth);
    if commands > MOST_COMMANDS {
        let reason = format!(
            "found {queues} queues of {queue_depth}, {commands} commands, expected at most {MOST_COMMANDS} commands"
        );
        return Err(interface.error("queues", reason));
    }
    let bandwidth = match interface.get("bandwidth") {
        Some(field) => {
            let bandwidth = field.bandwidth()?;
            if bandwidth != 0 && bandwidth < SLOWEST_LINK {
                let expected = format!("at least {SLOWEST_LINK} bytes a second, or 0 for a link that takes no time");
                return Err(field.expected(&expected));
            }
            bandwidth
        }
        None => 0,
    };
    Ok(InterfaceConfig {
        kind,
        queues,
        queue_depth,
        bandwidth,
        command_overhead: duration(&interface, "command_overhead", Nanos::ZERO)?,
    })
}

/// The words of `interface.kind`.
pub(super) const INTERFACE_KINDS: [(&str, InterfaceKind); 2] =
    [("nvme", InterfaceKind::Nvme), ("sata", InterfaceKind::Sata)];

fn duration(section: &Section<'_>, key: &'static str, default: Nanos) -> Result<Nanos, DescriptionError> {
    section.get(key).map_or(Ok(default), |field| field.duration(LONGEST_WAIT))
}

/// One of the names registered for `kind`, or the default.
fn registered(section: &Section<'_>, key: &'static str, kind: &str, default: &str) -> Result<String, DescriptionError> {
    let Some(field) = section.get(key) else {
        return Ok(default.to_string());
    };
    let names: Vec<&str> = crate::registered()
        .iter()
        .filter(|registered| registered.kind == kind)
        .map(|registered| registered.name)
        .collect();
    field.name(&names).map(str::to_string)
}

/// Reads `[buffer]`.
pub(super) fn buffer(root: &Section<'_>, geometry: &Geometry) -> Result<BufferConfig, DescriptionError> {
    let buffer = root.section("buffer", keys::BUFFER)?;
    let page_bytes = geometry.page_bytes;
    let policy = registered(&buffer, "policy", "buffer.policy", "none")?;
    let latency = duration(&buffer, "latency", Nanos::from_us(1))?;
    let given = match buffer.get("size") {
        Some(field) => {
            let size = field.size()?;
            if size > LARGEST_BUFFER || size % 512 != 0 {
                let expected = format!("a multiple of 512 bytes of at most {LARGEST_BUFFER} bytes");
                return Err(field.expected(&expected));
            }
            Some((field, size))
        }
        None => None,
    };
    let bytes = match given {
        _ if policy == "none" => 0,
        Some((field, size)) if size < u64::from(page_bytes) => {
            return Err(field.expected(&format!("at least one page ({page_bytes} bytes) for the policy '{policy}'")));
        }
        Some((_, size)) => size,
        None => {
            let reason = format!("missing, expected a size such as \"64m\" for the policy '{policy}'");
            return Err(buffer.error("size", reason));
        }
    };
    let (destage, policies) = (destage(&buffer)?, buffer_policies(&buffer, geometry)?);
    Ok(BufferConfig { policy, bytes, latency, destage, policies })
}

/// The words of `buffer.destage`.
pub(super) const DESTAGE: [(&str, Destage); 2] = [("on-demand", Destage::OnDemand), ("watermark", Destage::Watermark)];

/// Percent between the watermarks, unless the description says otherwise.
const WATERMARK_GAP: u32 = 10;

/// `buffer.low_watermark` where the description gives none.
pub(super) fn low_watermark(high_percent: u32) -> u32 {
    high_percent.saturating_sub(WATERMARK_GAP)
}

/// `ftl.version_chain` where the description gives none.
pub(super) fn version_chain(index: VersionIndex) -> u32 {
    if index == VersionIndex::Direct { 2 } else { VersionsConfig::default().chain }
}

/// When data leaves the buffer.
fn destage(buffer: &Section<'_>) -> Result<DestageConfig, DescriptionError> {
    let default = DestageConfig::default();
    let when = buffer.get("destage").map_or(Ok(default.when), |field| field.choice(&DESTAGE))?;
    let high_percent = match buffer.get("high_watermark") {
        Some(field) => whole_percent(&field, 1)?,
        None => default.high_percent,
    };
    let low_percent = match buffer.get("low_watermark") {
        Some(field) => match whole_percent(&field, 0)? {
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

/// Whole percent from `least` to 100.
fn whole_percent(field: &Field<'_>, least: u32) -> Result<u32, DescriptionError> {
    let expected = format!("whole percent from \"{least}%\" to \"100%\"");
    let percent = field.text(&expected)?.trim().strip_suffix('%').and_then(|percent| percent.trim().parse().ok());
    percent.filter(|percent| (least..=100).contains(percent)).ok_or_else(|| field.expected(&expected))
}

/// The keys of single buffer policies.
fn buffer_policies(buffer: &Section<'_>, geometry: &Geometry) -> Result<BufferPolicies, DescriptionError> {
    let defaults = BufferPolicies::default();
    let count = |key, default, least, most| buffer.get(key).map_or(Ok(default), |field| field.count(least, most));
    Ok(BufferPolicies {
        mca_window: count("mca_window", defaults.mca_window, 1, MOST_UNITS_LOOKED_AT)?,
        cflru_window_permille: count("cflru_window_permille", defaults.cflru_window_permille, 0, 1000)?,
        block_pages: count("block_pages", geometry.pages_per_block, 1, MOST_BLOCK_PAGES)?,
        bplru_padding: buffer.get("bplru_padding").map_or(Ok(defaults.bplru_padding), |field| field.boolean())?,
        lirs_hir_permille: count("lirs_hir_permille", defaults.lirs_hir_permille, 1, 1000)?,
    })
}

/// Reads `[ftl]`.
pub(super) fn ftl(root: &Section<'_>, geometry: &Geometry) -> Result<FtlConfig, DescriptionError> {
    let ftl = root.section("ftl", keys::FTL)?;
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
        design: registered(&ftl, "design", "ftl.design", "page")?,
        mapping_unit,
        allocation: match ftl.get("allocation") {
            Some(field) => allocation(&field)?,
            None => Allocation::RoundRobin(CWDP),
        },
        superblock: ftl.get("superblock").map_or(Ok(Superblock::None), |field| field.choice(&SUPERBLOCKS))?,
        parity: ftl.get("parity").map_or(Ok(Parity::None), |field| field.choice(&PARITIES))?,
        separate_gc_frontier: ftl.get("separate_gc_frontier").map_or(Ok(true), |field| field.boolean())?,
        streams: ftl.get("streams").map_or(Ok(1), |field| field.count(1, MOST_STREAMS))?,
        versions: versions(&ftl, page_bytes)?,
    })
}

/// The words of `ftl.superblock`.
pub(super) const SUPERBLOCKS: [(&str, Superblock); 3] =
    [("none", Superblock::None), ("die", Superblock::Die), ("drive", Superblock::Drive)];

/// The words of `ftl.parity`.
pub(super) const PARITIES: [(&str, Parity); 3] = [("none", Parity::None), ("page", Parity::Page), ("die", Parity::Die)];

/// The words of `ftl.version_index`.
pub(super) const VERSION_INDEXES: [(&str, VersionIndex); 2] =
    [("direct", VersionIndex::Direct), ("indirect", VersionIndex::Indirect)];

/// The words of `ftl.version_masks`.
pub(super) const VERSION_MASKS: [(&str, VersionMasks); 2] =
    [("patterns", VersionMasks::Patterns), ("any", VersionMasks::Any)];

/// The words of `ftl.compaction_index`.
pub(super) const COMPACTION_INDEXES: [(&str, CompactionIndex); 2] =
    [("page", CompactionIndex::Page), ("oob", CompactionIndex::Oob)];

/// Reads what `[ftl]` says of versions, for the design `mv`.
fn versions(ftl: &Section<'_>, page_bytes: u32) -> Result<VersionsConfig, DescriptionError> {
    let default = VersionsConfig::default();
    let index = ftl.get("version_index").map_or(Ok(default.index), |field| field.choice(&VERSION_INDEXES))?;
    let region_bytes = match ftl.get("region") {
        Some(field) => {
            let size = field.size()?;
            if size < u64::from(page_bytes) || !size.is_multiple_of(u64::from(page_bytes)) {
                return Err(field.expected(&format!("a whole number of pages ({page_bytes} bytes), at least one")));
            }
            size
        }
        None => default.region_bytes,
    };
    let spare_percent = match ftl.get("version_spare") {
        Some(field) => whole_percent(&field, 0)?,
        None => default.spare_percent,
    };
    Ok(VersionsConfig {
        index,
        bits: ftl.get("version_bits").map(|field| field.count(1, 32)).transpose()?,
        chain: ftl.get("version_chain").map_or(Ok(version_chain(index)), |field| field.count(2, MOST_VERSIONS))?,
        group_pages: ftl.get("version_group").map_or(Ok(default.group_pages), |field| field.count(1, u32::MAX))?,
        spare_percent,
        masks: ftl.get("version_masks").map_or(Ok(default.masks), |field| field.choice(&VERSION_MASKS))?,
        idle_merge: ftl.get("idle_merge").map_or(Ok(default.idle_merge), |field| field.boolean())?,
        merge_load: ftl.get("merge_load").map_or(Ok(default.merge_load), |field| field.count(0, u32::MAX))?,
        compaction: ftl.get("compaction").map_or(Ok(default.compaction), |field| field.boolean())?,
        compaction_index: ftl
            .get("compaction_index")
            .map_or(Ok(default.compaction_index), |field| field.choice(&COMPACTION_INDEXES))?,
        region_bytes,
    })
}

/// Channel first, then way, die and plane.
const CWDP: [Level; 4] = [Level::Channel, Level::Way, Level::Die, Level::Plane];

fn allocation(field: &Field<'_>) -> Result<Allocation, DescriptionError> {
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

/// The words of `gc.pacing`.
pub(super) const PACINGS: [(&str, Pacing); 2] = [("off", Pacing::Off), ("proportional", Pacing::Proportional)];

/// Reads `[gc]`.
pub(super) fn gc(
    root: &Section<'_>,
    flash: &FlashConfig,
    superblock: Superblock,
) -> Result<GcConfig, DescriptionError> {
    let gc = root.section("gc", keys::GC)?;
    let blocks = flash.geometry.blocks_per_plane;
    let fewer = |field: &Field<'_>, count: u32| {
        if count < blocks {
            return Ok(count);
        }
        Err(field.expected(&format!("fewer than the {blocks} blocks of a plane")))
    };
    let free_blocks = match gc.get("free_blocks") {
        Some(field) => fewer(&field, field.count(2, u32::MAX)?)?,
        None if blocks <= FREE_BLOCKS => {
            let reason = format!("the default is {FREE_BLOCKS}, expected fewer than the {blocks} blocks of a plane");
            return Err(gc.error("free_blocks", reason));
        }
        None => FREE_BLOCKS,
    };
    let background_free_blocks = match gc.get("background_free_blocks") {
        Some(field) => {
            let count = fewer(&field, field.count(0, u32::MAX)?)?;
            if count != 0 && count <= free_blocks {
                let expected = format!("more than gc.free_blocks ({free_blocks}), or 0 for no background collection");
                return Err(field.expected(&expected));
            }
            count
        }
        None => 0,
    };
    let copyback = match gc.get("copyback") {
        Some(field) => {
            let copyback = field.boolean()?;
            if copyback && !flash.copyback {
                return Err(field.expected("flash.copyback = true with it: these chips have no copyback"));
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
        victim: registered(&gc, "victim", "gc.victim", "greedy")?,
        choices: gc.get("choices").map_or(Ok(CHOICES), |field| field.count(1, u32::MAX))?,
        free_blocks,
        background_free_blocks,
        pacing: gc.get("pacing").map_or(Ok(Pacing::Off), |field| field.choice(&PACINGS))?,
        idle_after: duration(&gc, "idle_after", Nanos::from_ms(100))?,
        copyback,
        dynamic_wear_levelling: gc.get("dynamic_wear_levelling").map_or(Ok(true), |field| field.boolean())?,
        static_wear_threshold: gc.get("static_wear_threshold").map_or(Ok(0), |field| field.count(0, u32::MAX))?,
    })
}

//! The datasheet as text.

use ssdlab_base::{Nanos, format_size};

use super::{Bounds, Datasheet, Range};
use crate::table::count;
use crate::text::{columns, decimal_bytes};

/// The datasheet, a number a line.
pub fn render(sheet: &Datasheet) -> String {
    let capacity = &sheet.capacity;
    let mut rows: Vec<[String; 3]> = Vec::new();
    let mut row = |name: &str, one: String, other: String| rows.push([name.to_string(), one, other]);
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    row("raw capacity", both(capacity.raw), String::new());
    row("user capacity", both(capacity.user), String::new());
    row("over-provisioning", percent(sheet.over_provisioning.nominal), String::new());
    row("  effective", percent(sheet.over_provisioning.effective), String::new());
    row("dies", count(capacity.dies.into()), format!("{} each", bits(capacity.die_bits)));
    row("blocks", count(capacity.blocks.into()), format!("{} each", format_size(capacity.block)));
    row("  beyond the user capacity", count(capacity.spare_blocks), String::new());
    if capacity.superblocks < capacity.blocks {
        row("superblocks", count(capacity.superblocks.into()), format!("{} each", format_size(capacity.superblock)));
    }
    for (name, bytes) in &sheet.memory {
        row(&format!("RAM: {}", name.trim_end_matches("_bytes").replace('_', " ")), format_size(*bytes), String::new());
    }
    if let Some(endurance) = &sheet.endurance {
        let written = format!("{} to flash", decimal_bytes(endurance.flash_bytes as f64));
        row("endurance", format!("{} erases", count(endurance.erases.into())), written);
    }
    let rates = &sheet.bytes_per_s;
    let iops = &sheet.iops_4k;
    let mut text = lines(&rows, ["", "", ""]);
    text.push('\n');
    text.push_str(&peaks("peak rates (fresh drive)", &rates.read, &rates.write, |rate| {
        format!("{}/s", decimal_bytes(rate as f64))
    }));
    text.push('\n');
    text.push_str(&peaks("peak IOPS, 4 KiB random", &iops.read, &iops.write, count));
    text.push('\n');
    let latency = &sheet.latency_ns;
    let write = format!("write {}", format_size(latency.write_bytes));
    let ends = if latency.write_is_buffered { "into the buffer" } else { "to flash" };
    let times = [
        ("read 4 KiB", latency.read_4k, "from flash"),
        (write.as_str(), latency.write, ends),
        ("page read", latency.page_read, "array and channel"),
        ("page program", latency.page_program, "channel and array"),
        ("block erase", latency.block_erase, ""),
    ];
    let times = times.map(|(name, time, what)| [name.to_string(), span(time), what.to_string()]);
    text.push_str(&lines(&times, ["latency, one at a time", "", ""]));
    text
}

/// One of the bounds.
type BoundOf = fn(&Bounds) -> Option<u64>;

/// What bounds reads and writes, side by side; the least is marked.
fn peaks(title: &str, read: &Bounds, write: &Bounds, shown: impl Fn(u64) -> String) -> String {
    let shown = |rate: Option<u64>| rate.map_or("no limit".to_string(), &shown);
    let parts: [(&str, BoundOf); 5] = [
        ("dies, one plane at a time", |bounds| bounds.dies_single_plane),
        ("dies, all planes at once", |bounds| bounds.dies_multi_plane),
        ("channels", |bounds| bounds.channels),
        ("link", |bounds| bounds.link),
        ("processor", |bounds| bounds.processor),
    ];
    let known = parts.into_iter().filter(|(name, of)| *name != "processor" || of(read).is_some());
    let mut rows: Vec<[String; 3]> =
        known.map(|(name, of)| [name.to_string(), shown(of(read)), shown(of(write))]).collect();
    let least = |bounds: &Bounds| match bounds.bound_by {
        Some(by) => format!("{} ({by})", shown(bounds.peak)),
        None => shown(None),
    };
    rows.push(["  least".to_string(), least(read), least(write)]);
    lines(&rows, [title, "read", "write"])
}

fn lines(rows: &[[String; 3]], title: [&str; 3]) -> String {
    let mut all: Vec<Vec<String>> = Vec::new();
    if !title[0].is_empty() {
        all.push(title.map(str::to_string).to_vec());
    }
    all.extend(rows.iter().map(|row| row.to_vec()));
    // Parts of different lengths stand below each other.
    let wide = |row: &mut Vec<String>| row[0] = format!("{:<26}", row[0]);
    all.iter_mut().for_each(wide);
    columns(&all, 3)
}

/// `64.0 GB (59.6 GiB)`: the unit of the label on the drive, and that of addresses.
fn both(bytes: u64) -> String {
    format!("{} ({})", decimal_bytes(bytes as f64), format_size(bytes))
}

/// Bits as the datasheet of a die says them, in powers of 1024.
fn bits(bits: u64) -> String {
    let gigabits = bits as f64 / f64::from(1 << 30);
    match gigabits {
        _ if gigabits < 1.0 => format!("{:.1} Mb", gigabits * 1024.0),
        _ if gigabits.fract() == 0.0 => format!("{gigabits:.0} Gb"),
        _ => format!("{gigabits:.1} Gb"),
    }
}

fn span(time: Range) -> String {
    match time {
        Range { min, max } if min == max => Nanos(min).to_string(),
        Range { min, max } => format!("{} to {}", Nanos(min), Nanos(max)),
    }
}

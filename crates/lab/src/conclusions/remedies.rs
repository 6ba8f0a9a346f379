//! Keys of a description that shorten what requests wait for.

use serde_json::Value;
use ssdlab_device::SATA_QUEUE_DEPTH;

use super::{BUSY, COSTS, PART_TO_NAME, dies_busy};
use crate::result::{DeviceResult, LatencySplit};

/// What a group of parts is behind, and the key of a description that changes that.
struct Remedy {
    /// Whether a part belongs to it.
    parts: fn(&str) -> bool,
    /// The operation whose tail it changes; empty for all.
    op: &'static str,
    /// The key, with the value it would have, and what it does; nothing where the drive has it already.
    change: fn(&DeviceResult) -> Option<String>,
}

const REMEDIES: [Remedy; 9] = [
    Remedy {
        parts: |part| part.starts_with("behind_erase"),
        op: "read",
        change: |drive| reads_go_first(drive).or_else(|| suspension(drive, "erase_suspend", "erases")),
    },
    Remedy {
        parts: |part| part.starts_with("behind_program") || part.starts_with("behind_read_gc"),
        op: "read",
        change: |drive| reads_go_first(drive).or_else(|| suspension(drive, "program_suspend", "programs")),
    },
    Remedy {
        parts: |part| part.starts_with("no_free_block/") || part.starts_with("gc_pace/"),
        op: "",
        change: |drive| {
            // Where nothing is moved, more space changes nothing.
            collection_moves(drive)
                .then(|| "more capacity.over_provisioning leaves less to move for each free block".to_string())
        },
    },
    Remedy {
        parts: |part| part == "layer_space",
        op: "",
        change: |drive| {
            let key = |kind: &str| match kind {
                "append" => Some("over_provisioning"),
                "restoring" => Some("log"),
                _ => None,
            };
            let found = drive.host_layers.iter().find_map(|layer| Some((layer, key(&layer.kind)?)));
            found.map(|(layer, key)| format!("a larger {key} of the layer {} frees space for less work", layer.kind))
        },
    },
    Remedy {
        parts: |part| part.starts_with("buffer_full/"),
        op: "",
        change: |drive| match word(drive, "/buffer/destage") {
            "on-demand" => said("buffer.destage = \"watermark\" makes space before it is needed"),
            _ if collection_moves(drive) && word(drive, "/gc/pacing") == "off" => said(
                "gc.pacing = \"proportional\" lets collection keep step with writes instead of holding many of them up",
            ),
            // Behind chips that are always at work no buffer is large enough.
            _ if dies_busy(drive) < BUSY => said("a larger buffer.size takes longer bursts"),
            _ => None,
        },
    },
    Remedy {
        parts: |part| part.starts_with("map/"),
        op: "",
        change: |_| said("a larger ftl.map_cache keeps more of the map in RAM"),
    },
    Remedy {
        parts: |part| part.starts_with("link"),
        op: "",
        change: |_| said("a higher interface.bandwidth shortens transfers"),
    },
    Remedy {
        parts: |part| part.starts_with("controller") || part == "issue",
        op: "",
        change: |drive| match drive.configuration.pointer("/controller/clock") {
            Some(_) => said("a higher controller.clock, or fewer cycles, shortens the controller's work"),
            None => said("a lower interface.processing or interface.command_overhead shortens the controller's work"),
        },
    },
    Remedy {
        parts: |part| part == "arbitration",
        op: "",
        change: |drive| {
            let depth = drive.configuration.pointer("/interface/queue_depth").and_then(Value::as_u64);
            let at_most = word(drive, "/interface/kind") == "sata" && depth >= Some(SATA_QUEUE_DEPTH.into());
            let change = "a larger interface.queue_depth takes more requests at a time";
            // Where chips are always at work, requests would wait for these instead.
            (!at_most && dies_busy(drive) < BUSY).then(|| change.to_string())
        },
    },
];

/// Reads go before what they wait behind, where the chips take operations as they come: suspending erases alone leaves the programs.
fn reads_go_first(drive: &DeviceResult) -> Option<String> {
    let in_order = matches!(word(drive, "/flash/scheduler"), "fifo" | "single-fifo" | "in-order");
    let change = "flash.scheduler = \"reads-first\" lets reads go before programs and erases, which then wait as long as their die has \
                  reads: writes take longer, and blocks are freed later";
    in_order.then(|| change.to_string())
}

/// Whether garbage collection moves enough to be worth a change.
fn collection_moves(drive: &DeviceResult) -> bool {
    let moved = drive.write_amplification.as_ref().and_then(|of| of.by_cause.get("gc").copied());
    moved.is_some_and(|moved| moved >= COSTS)
}

fn said(change: &str) -> Option<String> {
    Some(change.to_string())
}

/// Suspends what reads wait behind. Its times have no default, so a drive that never suspends has none.
fn suspension(drive: &DeviceResult, key: &str, what: &str) -> Option<String> {
    if is_on(drive, &format!("/flash/{key}")) {
        return None;
    }
    let timeless =
        |key: &str| !word(drive, &format!("/flash/timing/{key}")).contains(|digit| ('1'..='9').contains(&digit));
    let times = if timeless("suspend") { ", with flash.timing.suspend and flash.timing.resume," } else { "" };
    Some(format!("flash.{key} = true{times} lets reads interrupt {what}"))
}

fn is_on(drive: &DeviceResult, path: &str) -> bool {
    drive.configuration.pointer(path).and_then(Value::as_bool) == Some(true)
}

pub(super) fn word<'a>(drive: &'a DeviceResult, path: &str) -> &'a str {
    drive.configuration.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

/// The key that changes most of a tail; nothing where no key of a description does.
pub(super) fn remedy(split: &LatencySplit, op: &str, drive: &DeviceResult) -> Option<String> {
    let share = |remedy: &Remedy| {
        let of: f64 = split.parts_ns.iter().filter(|(part, _)| (remedy.parts)(part)).map(|(_, ns)| ns).sum();
        of / split.mean_ns
    };
    let mut found: Vec<(f64, &Remedy)> = REMEDIES
        .iter()
        .filter(|remedy| remedy.op.is_empty() || remedy.op == op)
        .map(|remedy| (share(remedy), remedy))
        .collect();
    found.retain(|(share, _)| *share >= PART_TO_NAME);
    found.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    found.into_iter().find_map(|(_, remedy)| (remedy.change)(drive))
}

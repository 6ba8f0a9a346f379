//! Figures as JSON and as Prometheus text.

use std::fmt::Write as _;

use serde_json::{Value, json};
use ssdlab_base::SECTOR_BYTES;
use ssdlab_base::command_sets::segments::SegmentState;
use ssdlab_device::{MapCacheStats, MapRequests, MapUser};
use ssdlab_flash::{Cause, OpKind};

use crate::engine::{Condition, DiskFigures, Figures, Spread};
use crate::segments::set_json;

/// The kinds of commands, in the order of [`Figures::latency`].
pub const CLASSES: [&str; 4] = ["read", "write", "trim", "flush"];

const KINDS: [(OpKind, &str); 4] =
    [(OpKind::Read, "read"), (OpKind::Program, "program"), (OpKind::Erase, "erase"), (OpKind::Copyback, "copyback")];

fn spread_json(spread: &Spread) -> Value {
    json!({ "count": spread.count, "mean": spread.mean, "p50": spread.p50, "p99": spread.p99, "max": spread.max })
}

/// As results have a disk.
fn disk_json(disk: &DiskFigures) -> Value {
    let counters: serde_json::Map<String, Value> =
        disk.counters.named().into_iter().map(|(name, count)| (name.to_string(), json!(count))).collect();
    json!({ "name": disk.name, "capacity_bytes": disk.capacity_bytes, "counters": counters })
}

/// As results name them.
fn map_json(stats: &MapCacheStats) -> Value {
    let asked = |of: &MapRequests| json!({ "hits": of.hits, "misses": of.misses, "hit_ratio": of.hit_ratio(), "loads": of.loads, "flushes": of.flushes });
    let by_asker: serde_json::Map<String, Value> =
        MapUser::ALL.iter().map(|user| (user.key().to_string(), asked(&stats.by[*user as usize]))).collect();
    let total = stats.total();
    json!({
        "hits": total.hits,
        "misses": total.misses,
        "hit_ratio": total.hit_ratio(),
        "loads": total.loads,
        "flushes": stats.flushes(),
        "by_asker": by_asker,
        "evictions": stats.evictions,
        "block_changes": stats.block_changes,
        "moved_pages": stats.moved_pages,
        "log_entries": stats.log_entries,
        "log_flushes": stats.log_flushes,
        "waited_commands": stats.waits.commands,
        "wait_ns": stats.waits.time.0,
    })
}

impl Figures {
    /// Bytes programmed by bytes written by the host; nothing before the first write.
    pub fn write_amplification(&self) -> Option<f64> {
        let programs = self.counters.flash.total(OpKind::Program) + self.counters.flash.total(OpKind::Copyback);
        let written = self.counters.bytes[1];
        (written > 0).then(|| programs as f64 * f64::from(self.page_bytes) / written as f64)
    }
}

/// The figures as one line of JSON; times in nanoseconds.
pub fn figures_json(figures: &Figures) -> String {
    let counters = &figures.counters;
    let by_class =
        |values: [u64; 4]| json!({ "read": values[0], "write": values[1], "trim": values[2], "flush": values[3] });
    let flash: serde_json::Map<String, Value> = KINDS
        .iter()
        .map(|(kind, name)| {
            let causes: serde_json::Map<String, Value> = Cause::ALL
                .iter()
                .filter(|cause| counters.flash.get(*kind, **cause) > 0)
                .map(|cause| (cause.key().to_string(), json!(counters.flash.get(*kind, *cause))))
                .collect();
            ((*name).to_string(), json!({ "total": counters.flash.total(*kind), "by_cause": causes }))
        })
        .collect();
    let latency: serde_json::Map<String, Value> =
        CLASSES.iter().zip(&figures.latency).map(|(name, spread)| ((*name).to_string(), spread_json(spread))).collect();
    let told = |condition: &Condition| json!({ "of": condition.of, "what": condition.what });
    let conditions: Vec<Value> = figures.conditions.iter().map(told).collect();
    json!({
        "format": 1,
        "name": figures.name,
        "seconds": figures.seconds,
        "virtual_time_ns": figures.virtual_time.0,
        "commands": by_class(counters.commands),
        "bytes": by_class(counters.bytes),
        "failed_commands": counters.failed_commands,
        "outstanding": figures.outstanding,
        "latency_ns": latency,
        "lateness_ns": spread_json(&figures.lateness),
        "flash": flash,
        "write_amplification": figures.write_amplification(),
        "free_blocks": figures.free_blocks,
        "blocks": figures.blocks,
        "erases": { "min": figures.erases.0, "mean": figures.erases.1, "max": figures.erases.2 },
        "gc": {
            "victims_foreground": counters.victims[0],
            "victims_background": counters.victims[1],
            "victims_wear_levelling": counters.victims[2],
            "stall_ns": counters.gc_stall.0,
        },
        "map": counters.map_cache.as_ref().map(map_json),
        "host_layers": figures.layers,
        "disks": figures.disks.iter().map(disk_json).collect::<Vec<_>>(),
        "command_sets": figures.sets.iter().map(set_json).collect::<Vec<_>>(),
        "grown_bad_blocks": counters.grown_bad_blocks,
        "read_only": figures.read_only,
        "conditions": conditions,
        "image": { "bytes": figures.image_bytes, "broken": figures.broken },
    })
    .to_string()
}

/// The figures in Prometheus's text format.
pub fn prometheus(figures: &Figures) -> String {
    let mut text = String::new();
    let counters = &figures.counters;
    let mut metric = |name: &str, kind: &str, help: &str, values: &[(String, f64)]| {
        let _ = writeln!(text, "# HELP ssdlab_{name} {help}\n# TYPE ssdlab_{name} {kind}");
        for (labels, value) in values {
            let _ = writeln!(text, "ssdlab_{name}{labels} {value}");
        }
    };
    let one = |value: f64| vec![(String::new(), value)];
    let by_class = |values: [u64; 4]| -> Vec<(String, f64)> {
        CLASSES.iter().zip(values).map(|(name, value)| (format!("{{command=\"{name}\"}}"), value as f64)).collect()
    };
    metric("commands_total", "counter", "Commands completed.", &by_class(counters.commands));
    metric("command_bytes_total", "counter", "Bytes of the commands completed.", &by_class(counters.bytes));
    metric(
        "failed_commands_total",
        "counter",
        "Commands that ended with an error.",
        &one(counters.failed_commands as f64),
    );
    metric("outstanding_commands", "gauge", "Commands in the drive.", &one(figures.outstanding as f64));
    let mut operations = Vec::new();
    for (kind, name) in KINDS {
        for cause in Cause::ALL {
            let value = counters.flash.get(kind, cause);
            if value > 0 {
                operations.push((format!("{{operation=\"{name}\",cause=\"{}\"}}", cause.key()), value as f64));
            }
        }
    }
    metric("flash_operations_total", "counter", "Flash operations by cause.", &operations);
    metric(
        "write_amplification",
        "gauge",
        "Bytes programmed by bytes written.",
        &one(figures.write_amplification().unwrap_or(f64::NAN)),
    );
    metric("free_blocks", "gauge", "Erased blocks.", &one(figures.free_blocks as f64));
    let erases =
        [("min", f64::from(figures.erases.0)), ("mean", figures.erases.1), ("max", f64::from(figures.erases.2))];
    let erases: Vec<(String, f64)> = erases.iter().map(|(of, value)| (format!("{{of=\"{of}\"}}"), *value)).collect();
    metric("block_erases", "gauge", "Erases of a block.", &erases);
    metric("grown_bad_blocks", "gauge", "Blocks gone bad.", &one(counters.grown_bad_blocks as f64));
    metric(
        "gc_stall_seconds_total",
        "counter",
        "Time that writes waited for garbage collection, summed over commands.",
        &one(counters.gc_stall.0 as f64 / 1e9),
    );
    if !figures.disks.is_empty() {
        let counts = figures.disks.iter().flat_map(|disk| {
            let labelled = move |(of, count)| (format!("{{disk=\"{}\",of=\"{of}\"}}", disk.name), count as f64);
            disk.counters.named().into_iter().map(labelled)
        });
        metric(
            "disk_total",
            "counter",
            "What disks did, as results count it; times in nanoseconds.",
            &counts.collect::<Vec<_>>(),
        );
    }
    if let Some(map) = &counters.map_cache {
        let by_asker = |value: fn(&MapRequests) -> u64| -> Vec<(String, f64)> {
            let one = |user: MapUser| (format!("{{asker=\"{}\"}}", user.key()), value(&map.by[user as usize]) as f64);
            MapUser::ALL.map(one).into()
        };
        metric("map_hits_total", "counter", "Map pages asked for that were cached.", &by_asker(|of| of.hits));
        metric("map_misses_total", "counter", "Map pages asked for that were not.", &by_asker(|of| of.misses));
        metric("map_loads_total", "counter", "Map pages read from flash.", &by_asker(|of| of.loads));
        metric(
            "map_flushes_total",
            "counter",
            "Map pages programmed since something changed in them.",
            &one(map.flushes() as f64),
        );
        metric(
            "map_wait_seconds_total",
            "counter",
            "Time that commands waited for map pages, summed over commands.",
            &one(map.waits.time.0 as f64 / 1e9),
        );
    }
    if !figures.sets.is_empty() {
        let (mut refused, mut segments, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
        for of in &figures.sets {
            let drive = &of.drive;
            let labelled = |(reason, count): &(&str, u64)| {
                (format!("{{drive=\"{drive}\",set=\"{}\",reason=\"{reason}\"}}", of.set), *count as f64)
            };
            refused.extend(of.refused.iter().map(labelled));
            let Some(counts) = &of.segments else { continue };
            let states = SegmentState::ALL.iter().zip(counts.states);
            let labelled = |(state, count): (&SegmentState, u64)| {
                (format!("{{drive=\"{drive}\",state=\"{}\"}}", state.name()), count as f64)
            };
            segments.extend(states.map(labelled));
            sizes.push((format!("{{drive=\"{drive}\"}}"), (counts.shape.sectors * SECTOR_BYTES) as f64));
        }
        metric("refused_commands_total", "counter", "Commands refused by the rules of a command set.", &refused);
        if !segments.is_empty() {
            metric("segments", "gauge", "Append-only segments by state.", &segments);
            metric("segment_bytes", "gauge", "Bytes of an append-only segment.", &sizes);
        }
    }
    if !figures.layers.is_empty() {
        let (mut requests, mut own) = (Vec::new(), Vec::new());
        for (number, layer) in figures.layers.iter().enumerate() {
            let of = format!("layer=\"{}\",number=\"{number}\"", layer.kind);
            for (way, traffic) in [("taken", &layer.taken), ("sent", &layer.sent)] {
                let values = CLASSES.iter().zip(traffic.requests);
                requests.extend(
                    values.map(|(command, value)| {
                        (format!("{{{of},way=\"{way}\",command=\"{command}\"}}"), value as f64)
                    }),
                );
            }
            let named = |(name, value): (&String, &f64)| (format!("{{{of},metric=\"{name}\"}}"), *value);
            own.extend(layer.figures.iter().map(named));
        }
        metric("layer_requests_total", "counter", "Requests that a layer of the host took and sent.", &requests);
        metric("layer_metric", "gauge", "A layer's own metrics by name.", &own);
    }
    metric(
        "read_only",
        "gauge",
        "1 if the drive has run out of spare blocks.",
        &one(f64::from(u8::from(figures.read_only))),
    );
    metric(
        "conditions",
        "gauge",
        "Full disks, broken images, read-only drives and degraded layers.",
        &one(figures.conditions.len() as f64),
    );
    metric("image_bytes", "gauge", "Bytes that the image takes on its file system.", &one(figures.image_bytes as f64));
    let latency: Vec<(String, f64)> = CLASSES
        .iter()
        .zip(&figures.latency)
        .flat_map(|(name, spread)| {
            [("0.5", spread.p50), ("0.99", spread.p99)].map(|(quantile, value)| {
                (format!("{{command=\"{name}\",quantile=\"{quantile}\"}}"), value as f64 / 1e9)
            })
        })
        .collect();
    metric("latency_seconds", "gauge", "Modelled latency since the last look of the control socket.", &latency);
    metric(
        "lateness_seconds",
        "gauge",
        "How much later than the model answers left, on average.",
        &one(figures.lateness.mean / 1e9),
    );
    text
}

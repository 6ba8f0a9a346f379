//! What requests waited for, as results tell it.

use std::sync::atomic::AtomicBool;

use ssdlab_device::Allocation;
use ssdlab_device::critical_path::{Part, Stage};
use ssdlab_flash::Stay;
use ssdlab_host::Host;
use ssdlab_lab::perfetto::TraceWindow;
use ssdlab_lab::result::{LatencySplit, LatencySummary};
use ssdlab_lab::{Breakdown, Control, Experiment, NoProgress, Preconditioning, run_into};

use crate::common::{Random, assert_checks_hold, drive, duts, experiment, run};

const SLOWEST: Option<Breakdown> = Some(Breakdown { slowest: 20 });

fn sum(split: &LatencySplit) -> f64 {
    split.parts_ns.values().sum()
}

#[test]
fn the_breakdown_agrees_with_the_latencies_and_changes_nothing_else() {
    let mut buffered = drive("buffered");
    (buffered.buffer.policy, buffered.buffer.bytes) = ("lru".to_string(), 1 << 20);
    let drives = duts(&[drive("plain"), buffered]);
    let workload = Random::mixed(60_000);
    let plain = run(&experiment(&drives, &workload, Preconditioning::Fill));
    let result = run(&Experiment { breakdown: SLOWEST, ..experiment(&drives, &workload, Preconditioning::Fill) });
    assert_checks_hold(&result);
    for (device, plain) in result.devices.iter().zip(&plain.devices) {
        assert!(device.checks.iter().any(|check| check.name == "latency_parts_equal_latency"));
        assert!(plain.latency_breakdown.is_none());
        assert_eq!((&device.latency_ns, &device.timeline), (&plain.latency_ns, &plain.timeline));
        let breakdown = device.latency_breakdown.as_ref().expect("it was asked for");
        let summaries = [("read", device.latency_ns.read), ("write", device.latency_ns.write)];
        for (op, summary) in summaries {
            let summary: LatencySummary = summary.expect("both occur");
            let of = &breakdown.ops[op];
            assert_eq!((of.mean.requests, of.mean.from_ns), (summary.count, summary.min));
            assert!((of.mean.mean_ns - summary.mean).abs() < 1e-6 * summary.mean);
            for split in [&of.mean].into_iter().chain(of.tails.values()) {
                assert!((sum(split) - split.mean_ns).abs() <= 1e-9 * split.mean_ns, "{op}: {split:?}");
            }
            let tail = &of.tails["p99"];
            assert!(tail.from_ns <= summary.p99 && tail.from_ns as f64 > summary.p99 as f64 * 0.99, "{tail:?}");
            // Whose work it was: the die's queue is most of a tail, and garbage collection runs.
            let of_gc = tail.parts_ns.iter().filter(|(part, _)| part.contains("gc")).map(|(_, ns)| ns).sum::<f64>();
            assert!(of_gc > 0.1 * tail.mean_ns, "{op}: {tail:?}");
        }
        // Latencies over time, by kind: the longest of each is the longest of all.
        let longest = |op: &str| {
            let column = &device.timeline.latency_by_op[op].latency_max_ns;
            column.iter().flatten().max().copied()
        };
        assert_eq!(longest("read"), device.latency_ns.read.map(|summary| summary.max));
        assert_eq!(longest("write"), device.latency_ns.write.map(|summary| summary.max));
        assert_eq!(breakdown.slowest.len(), 20);
        assert_eq!(Some(breakdown.slowest[0].latency_ns), device.latency_ns.all.map(|summary| summary.max));
        assert!(breakdown.slowest.windows(2).all(|pair| pair[0].latency_ns >= pair[1].latency_ns));
        for slow in &breakdown.slowest {
            assert_eq!(slow.waits.iter().map(|wait| wait.ns).sum::<u64>(), slow.latency_ns);
        }
    }
}

#[test]
fn time_in_the_host_s_layers_is_a_part_of_its_own() {
    let host = Host::parse("[[layer]]\nkind = \"scheduler\"\ndepth = 4\nmerge_size = \"64k\"\n", "host.toml");
    let host = host.expect("a host");
    let drives = duts(&[drive("plain")]);
    let workload = Random { depth: 64, ..Random::mixed(30_000) };
    let through = || Experiment {
        host: Some(&host),
        breakdown: Some(Breakdown { slowest: 0 }),
        ..experiment(&drives, &workload, Preconditioning::Fill)
    };
    let result = run(&through());
    assert_checks_hold(&result);
    let breakdown = result.devices[0].latency_breakdown.as_ref().expect("it was asked for");
    let read = &breakdown.ops["read"].mean;
    // 64 requests wait for 4 places.
    assert!(read.parts_ns["host_layers"] > 0.5 * read.mean_ns, "{read:?}");
    assert!(breakdown.slowest.is_empty());
    let verified = run(&Experiment { verify: true, ..through() });
    assert_checks_hold(&verified);
    assert_eq!(verified.devices[0].latency_breakdown, result.devices[0].latency_breakdown);
}

/// Also where a command waits in the layer after its last part below has ended: for earlier ones on the same units, or for a commit.
#[test]
fn the_parts_of_requests_through_every_layer_add_up() {
    for (layer, design) in
        [("stripe", "page"), ("mirror", "page"), ("restoring", "page"), ("shrd", "shrd"), ("append", "aftl")]
    {
        let mut small = drive("small");
        small.flash.geometry.blocks_per_plane = 32;
        small.ftl.design = design.to_string();
        match design {
            "shrd" => small.ftl.own.set("rwlb", 1_u64 << 20),
            "aftl" => small.ftl.allocation = Allocation::Dynamic,
            _ => {}
        }
        small.user_bytes = if layer == "append" { 24 } else { 8 } * 4 * 64 * small.flash.geometry.page_bytes as u64;
        let drives = duts(&[small]);
        let keys = match layer {
            "stripe" | "mirror" => "drives = 2\n",
            "restoring" => "log = \"256k\"\n",
            _ => "",
        };
        let host = Host::parse(&format!("[[layer]]\nkind = \"{layer}\"\n{keys}"), "host.toml").expect("a host");
        let workload = Random { depth: 256, flush_every: 20, ..Random::mixed(20_000) };
        let asked = Experiment {
            host: Some(&host),
            breakdown: SLOWEST,
            ..experiment(&drives, &workload, Preconditioning::Fill)
        };
        let result = run(&asked);
        assert_checks_hold(&result);
        let checks = &result.devices[0].checks;
        assert!(checks.iter().any(|check| check.name == "latency_parts_equal_latency"), "{layer}: {checks:?}");
        let ops = &result.devices[0].latency_breakdown.as_ref().expect("it was asked for").ops;
        let waited = |part: &str| ops.values().any(|of| of.mean.parts_ns.get(part).is_some_and(|ns| *ns > 0.0));
        // What the layer counts is what its requests waited for.
        let metrics = &result.devices[0].host_layers[0].figures;
        for (part, counts) in [
            ("layer_overlap", ["waited_for_overlaps"].as_slice()),
            ("layer_space", ["waited_for_places", "waited_for_room"].as_slice()),
            ("layer_copy", ["waited_for_copies", "waited_for_remaps"].as_slice()),
        ] {
            let counted = counts.iter().any(|name| metrics.get(*name).is_some_and(|count| *count > 0.0));
            assert_eq!(waited(part), counted, "{layer}: {part}; {metrics:?}; {ops:?}");
        }
        assert!(waited("layer_overlap"), "{layer}: 256 requests at a time overlap");
        // Over time too, bytes are those of the workload, not those that the layer sends.
        let timeline = &result.devices[0].timeline;
        assert_eq!(timeline.write_bytes.iter().sum::<u64>(), result.devices[0].bytes.write, "{layer}");
    }
}

/// Each layer tells those below it that paths are recorded, and has one for every command, whatever it ended with.
#[test]
fn the_parts_of_requests_through_layers_above_layers_add_up() {
    for above in ["scheduler", "page-cache", "ata", "stripe", "mirror", "restoring"] {
        for below in ["scheduler", "page-cache", "ata", "stripe", "mirror", "restoring", "append", "shrd"] {
            let mut small = drive("small");
            small.flash.geometry.blocks_per_plane = 32;
            match below {
                "shrd" => {
                    small.ftl.design = "shrd".to_string();
                    small.ftl.own.set("rwlb", 1_u64 << 20);
                }
                "append" => {
                    (small.ftl.design, small.ftl.allocation) = ("aftl".to_string(), Allocation::Dynamic);
                }
                _ => {}
            }
            let blocks = if below == "append" { 24 } else { 8 };
            small.user_bytes = blocks * 4 * 64 * u64::from(small.flash.geometry.page_bytes);
            let drives = duts(&[small]);
            let keys = |layer: &str| match layer {
                "restoring" => "log = \"256k\"\n",
                "mirror" => "region = \"64k\"\n",
                _ => "",
            };
            let beside = if ["stripe", "mirror"].contains(&above) { 2 } else { 1 };
            let inner = format!("[[layer.below]]\nkind = \"{below}\"\n{}", keys(below)).repeat(beside);
            let text = format!("[[layer]]\nkind = \"{above}\"\n{}{inner}", keys(above));
            let host = Host::parse(&text, "host.toml").expect("a host");
            let workload = Random { depth: 64, flush_every: 20, ..Random::mixed(2_000) };
            let asked = Experiment {
                host: Some(&host),
                breakdown: SLOWEST,
                ..experiment(&drives, &workload, Preconditioning::Fill)
            };
            let result = run(&asked);
            assert_checks_hold(&result);
            let checks = &result.devices[0].checks;
            let names: Vec<&str> = checks.iter().map(|check| check.name.as_str()).collect();
            assert!(names.contains(&"latency_parts_equal_latency"), "{above} over {below}: {names:?}");
            assert!(names.contains(&"requests_handed_down"), "{above} over {below}: {names:?}");
        }
    }
}

#[test]
fn every_part_is_documented() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/latency.md");
    let docs = std::fs::read_to_string(docs).expect("docs/latency.md");
    for part in (0..Part::COUNT).map(Part::numbered) {
        let key = match part {
            Part::Flash(Stay::Die(..)) => "behind_KIND_CAUSE".to_string(),
            Part::Flash(Stay::Channel(_)) => "channel_CAUSE".to_string(),
            part => part.key(),
        };
        assert!(
            docs.contains(&format!("| `{key}`")) || docs.contains(&format!(", `{key}`")),
            "docs/latency.md lacks {key}"
        );
    }
    for stage in Stage::ALL.iter().filter(|stage| !stage.prefix().is_empty()) {
        assert!(docs.contains(&format!("| `{}`", stage.prefix())), "docs/latency.md lacks {}", stage.prefix());
    }
}

#[test]
fn a_drive_without_time_has_no_breakdown() {
    let mut config = drive("counting");
    config.timed = false;
    let drives = duts(&[config]);
    let result =
        run(&Experiment { breakdown: SLOWEST, ..experiment(&drives, &Random::mixed(10_000), Preconditioning::Fill) });
    assert_checks_hold(&result);
    assert!(result.devices[0].latency_breakdown.is_none());
}

#[test]
fn the_requests_of_a_window_are_in_the_trace() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let drives = duts(&[drive("plain"), drive("other")]);
    let workload = Random::mixed(20_000);
    let window: TraceWindow = "10ms..14ms".parse().expect("a window");
    let (stop, progress) = (AtomicBool::new(false), NoProgress);
    let control = Control::new(&stop, &progress);
    let asked = Experiment { breakdown: SLOWEST, ..experiment(&drives, &workload, Preconditioning::Fill) };
    let outcome = run_into(&asked, &out, Some(window), &control).expect("it runs");
    outcome.written.expect("it is written");
    let text = std::fs::read_to_string(out.join("trace.json")).expect("a trace");
    let trace: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("a list");
    let mut processes: Vec<&str> = events
        .iter()
        .filter(|event| event["name"] == "process_name")
        .map(|event| event["args"]["name"].as_str().expect("a name"))
        .collect();
    processes.sort_unstable();
    let expected =
        ["other: channels", "other: dies", "other: requests", "plain: channels", "plain: dies", "plain: requests"];
    assert_eq!(processes, expected);
    // Every wait lies in a request of its track, and they fill it.
    let nanos =
        |event: &serde_json::Value, key: &str| (event[key].as_f64().expect("microseconds") * 1000.0).round() as u64;
    let of = |cat: &'static str| events.iter().filter(move |event| event["cat"] == cat);
    assert!(of("request").count() > 20);
    for request in of("request") {
        let (from, length) = (nanos(request, "ts"), nanos(request, "dur"));
        let inside = of("wait").filter(|wait| wait["pid"] == request["pid"] && wait["tid"] == request["tid"]);
        let inside = inside.filter(|wait| nanos(wait, "ts") >= from && nanos(wait, "ts") < from + length);
        assert_eq!(inside.map(|wait| nanos(wait, "dur")).sum::<u64>(), length, "{request}");
    }
}

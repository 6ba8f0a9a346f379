//! Every figure of every drive: one row for each, readable without script.

use super::html::{escape, figure, nanos, percent, rate, size, whole};
use super::layers;
use super::tables::{capital, chip};
use crate::result::{DeviceResult, Erases, LatencySummary, PerOp, RunResult};
use crate::subtests;
use crate::table::LIFETIME;

/// All scalar figures, a column for each drive.
pub(super) fn figures(run: &RunResult) -> String {
    let heads: String = run
        .devices
        .iter()
        .enumerate()
        .map(|(index, device)| {
            let name = escape(&device.name);
            format!("<th class=\"drive\" title=\"{name}\">{}{name}</th>", chip(index))
        })
        .collect();
    let mut body = Body { run, rows: String::new() };
    body.requests();
    body.latency();
    body.flash();
    body.controller();
    body.named();
    format!(
        "<div class=\"scroll\"><table><thead><tr><th></th>{heads}</tr></thead><tbody>{}</tbody></table></div>",
        body.rows
    )
}

/// The count of one kind of command.
type Count = fn(PerOp<u64>) -> u64;

/// The latencies of one kind of command.
type Summary = fn(&DeviceResult) -> Option<LatencySummary>;

/// Erases of the drive's blocks over some time.
type Wear = fn(&DeviceResult) -> Option<Erases>;

/// One number of them, in nanoseconds.
type Point = fn(LatencySummary) -> f64;

/// Rows under construction.
struct Body<'a> {
    run: &'a RunResult,
    rows: String,
}

impl Body<'_> {
    fn group(&mut self, title: &str) {
        let span = self.run.devices.len() + 1;
        self.rows.push_str(&format!("<tr class=\"group\"><th colspan=\"{span}\">{title}</th></tr>"));
    }

    /// A row of what `show` says of each drive; left out where it says nothing of any.
    fn row(&mut self, label: &str, show: impl Fn(&DeviceResult) -> Option<String>) {
        let cells: Vec<Option<String>> = self.run.devices.iter().map(show).collect();
        if cells.iter().all(Option::is_none) {
            return;
        }
        let cells: String = cells
            .into_iter()
            .map(|cell| cell.map_or("<td class=\"none\">–</td>".to_string(), |cell| format!("<td>{cell}</td>")))
            .collect();
        self.rows.push_str(&format!("<tr><td>{}</td>{cells}</tr>", escape(label)));
    }

    fn per_op(&mut self, what: &str, pick: fn(&DeviceResult) -> PerOp<u64>, show: fn(u64) -> String) {
        let ops: [(&str, Count); 4] = [
            ("read", |counts| counts.read),
            ("write", |counts| counts.write),
            ("trim", |counts| counts.trim),
            ("flush", |counts| counts.flush),
        ];
        for (name, op) in ops {
            self.row(&format!("{what}, {name}"), |device| Some(op(pick(device))).filter(|&count| count > 0).map(show));
        }
    }

    /// What each layer of the host sent to the device below it, and its own counts.
    fn layers(&mut self) {
        let layers = layers::of(self.run);
        for (place, layer) in layers.iter().enumerate() {
            let name = capital(&layers::name(layers, place));
            let of = |device: &DeviceResult| device.host_layers.get(place).cloned();
            self.row(&format!("{name}, taken"), |device| {
                of(device).map(|layer| whole(layer.taken.requests.iter().sum()))
            });
            self.row(&format!("{name}, sent on"), |device| {
                of(device).map(|layer| whole(layer.sent.requests.iter().sum()))
            });
            for key in layer.figures.keys() {
                let count = |device: &DeviceResult| device.host_layers.get(place)?.figures.get(key).copied();
                self.row(&format!("{name}, {}", key.replace('_', " ")), |device| count(device).map(count_of_a_layer));
            }
        }
    }

    /// What each disk counted.
    fn disks(&mut self) {
        let disks = self.run.devices.first().map_or(&[][..], |device| &device.disks);
        for (place, disk) in disks.iter().enumerate() {
            for key in disk.counters.keys() {
                let count = |device: &DeviceResult| Some(device.disks.get(place)?.counters.get(key).copied()? as f64);
                let name = format!("Disk {}, {}", disk.name, key.replace('_', " "));
                self.row(&name, |device| count(device).map(count_of_a_layer));
            }
        }
    }

    fn requests(&mut self) {
        self.group("Requests");
        self.per_op("Requests", |device| device.requests, whole);
        self.per_op("Bytes", |device| device.bytes, size);
        self.layers();
        self.disks();
        self.row("Virtual time", |device| device.timed.then(|| nanos(device.virtual_time_ns as f64)));
        self.row("Idle gaps between sub-tests", |device| {
            Some(subtests::quiet_ns(device)).filter(|&quiet| quiet > 0).map(|quiet| nanos(quiet as f64))
        });
        self.row("Reads a second", |device| device.timed.then(|| rate(subtests::throughput(device).read_iops)));
        self.row("Writes a second", |device| device.timed.then(|| rate(subtests::throughput(device).write_iops)));
        self.row("Requests in flight, mean", |device| device.timed.then(|| figure(subtests::outstanding_mean(device))));
        self.row("Requests in flight, most", |device| device.timed.then(|| whole(device.outstanding.max)));
        self.row("Misaligned requests", |device| Some(whole(device.host.misaligned_requests)));
        self.row("Failed requests", |device| Some(whole(device.host.failed_requests)));
        self.row("Sectors read unwritten", |device| Some(whole(device.host.unmapped_sectors_read)));
        self.row("Sectors trimmed that held data", |device| Some(whole(device.host.trimmed_mapped_sectors)));
    }

    fn latency(&mut self) {
        self.group("Latency");
        let kinds: [(&str, Summary); 5] = [
            ("All", |device| device.latency_ns.all),
            ("Read", |device| device.latency_ns.read),
            ("Write", |device| device.latency_ns.write),
            ("Trim", |device| device.latency_ns.trim),
            ("Flush", |device| device.latency_ns.flush),
        ];
        let points: [(&str, Point); 9] = [
            ("mean", |summary| summary.mean),
            ("least", |summary| summary.min as f64),
            ("p50", |summary| summary.p50 as f64),
            ("p90", |summary| summary.p90 as f64),
            ("p95", |summary| summary.p95 as f64),
            ("p99", |summary| summary.p99 as f64),
            ("p99.9", |summary| summary.p999 as f64),
            ("p99.99", |summary| summary.p9999 as f64),
            ("most", |summary| summary.max as f64),
        ];
        for (kind, of) in kinds {
            for (name, point) in points {
                self.row(&format!("{kind}, {name}"), |device| {
                    of(device).filter(|_| device.timed).map(|summary| nanos(point(summary)))
                });
            }
        }
    }

    fn flash(&mut self) {
        self.group("Flash");
        self.row("Write amplification", |device| device.write_amplification.as_ref().map(|part| figure(part.total)));
        self.row("Write amplification in theory", |device| {
            device.theory.as_ref().map(|theory| {
                format!("<span title=\"{}\">{}</span>", escape(&theory.model), figure(theory.write_amplification))
            })
        });
        self.row("Valid share of victims", |device| device.victim_valid_share().map(percent));
        self.row("Pages read", |device| Some(whole(device.flash.reads.total)));
        self.row("Pages programmed", |device| Some(whole(device.flash.programs.total)));
        self.row("Pages copied back", |device| Some(whole(device.flash.copybacks.total)));
        self.row("Blocks erased", |device| Some(whole(device.flash.erases.total)));
        self.row("Padding", |device| Some(size(device.host.padding_bytes)));
        self.row("Padding by relocation", |device| Some(size(device.gc.padding_bytes)));
        let spans: [(&str, Wear); 2] =
            [("in the run", |device| device.erases_in_run), ("since new", |device| Some(device.erases))];
        for (span, of) in spans {
            self.row(&format!("Erases of a block {span}, mean"), |device| Some(figure(of(device)?.mean)));
            self.row(&format!("Erases of a block {span}, least"), |device| Some(whole(of(device)?.min.into())));
            self.row(&format!("Erases of a block {span}, most"), |device| Some(whole(of(device)?.max.into())));
            self.row(&format!("Erases of a block {span}, deviation"), |device| Some(figure(of(device)?.stddev)));
        }
        for (label, figure) in LIFETIME {
            let label = match label.strip_prefix("    ") {
                Some(of_worst) => format!("by most worn block, {of_worst}"),
                None => label.trim_start_matches("lifetime, ").trim().to_string(),
            };
            self.row(&format!("Lifetime, {label}"), move |device| figure(device.lifetime.as_ref()?));
        }
        self.row("Channels busy, mean", |device| mean(&device.utilization.channels).map(percent));
        self.row("Dies busy, mean", |device| mean(&device.utilization.dies).map(percent));
    }

    fn map_cache(&mut self) {
        let of = |device: &DeviceResult| device.map_cache.clone().filter(|map| map.hit_ratio.is_some());
        self.row("Map cache, hit ratio", |device| of(device)?.hit_ratio.map(percent));
        for asker in ["host", "buffer", "gc", "log"] {
            let asked =
                |device: &DeviceResult| of(device)?.by_asker.get(asker).filter(|of| of.hit_ratio.is_some()).copied();
            self.row(&format!("Map cache, hits of {asker}"), |device| Some(whole(asked(device)?.hits)));
            self.row(&format!("Map cache, misses of {asker}"), |device| Some(whole(asked(device)?.misses)));
            self.row(&format!("Map cache, loads for {asker}"), |device| Some(whole(asked(device)?.loads)));
            self.row(&format!("Map cache, flushes for {asker}"), |device| Some(whole(asked(device)?.flushes)));
        }
        self.row("Map cache, loads", |device| Some(whole(of(device)?.loads)));
        self.row("Map cache, flushes", |device| Some(whole(of(device)?.flushes)));
        self.row("Waited for the map", |device| Some(whole(of(device).filter(|_| device.timed)?.waited_commands)));
        self.row("Waited for the map, mean of those", |device| {
            of(device).filter(|_| device.timed)?.wait_mean_ns.map(nanos)
        });
        self.row("Waited for the map, sum over them", |device| {
            Some(nanos(of(device).filter(|_| device.timed)?.wait_ns as f64))
        });
    }

    fn controller(&mut self) {
        self.group("Controller");
        self.row("Over-provisioning, nominal", |device| Some(percent(device.over_provisioning.nominal)));
        self.row("Over-provisioning, effective", |device| {
            (!device.read_only).then(|| percent(device.over_provisioning.effective))
        });
        self.row("Victims, foreground", |device| Some(whole(device.gc.foreground_victims)));
        self.row("Victims, background", |device| Some(whole(device.gc.background_victims)));
        self.row("Victims, wear levelling", |device| Some(whole(device.gc.wear_levelling_victims)));
        self.row("Stalled by GC", |device| device.timed.then(|| whole(device.gc.stalled_commands)));
        self.row("Stalled by GC, mean of those", |device| {
            let stalled = device.gc.stalled_commands;
            (device.timed && stalled > 0).then(|| nanos(device.gc.stall_ns as f64 / stalled as f64))
        });
        self.row("Stalled by GC, sum over them", |device| device.timed.then(|| nanos(device.gc.stall_ns as f64)));
        self.row("Blocks gone bad", |device| Some(whole(device.gc.grown_bad_blocks)));
        self.row("Pages rebuilt", |device| Some(device.flash.rebuilt_pages).filter(|&pages| pages > 0).map(whole));
        self.row("Buffer hits", |device| Some(whole(device.buffer.hits)));
        self.row("Buffer evictions", |device| Some(whole(device.buffer.evictions)));
        self.row("Buffer evictions, full pages", |device| Some(whole(device.buffer.full_pages)));
        self.row("Buffer evictions, partial pages", |device| Some(whole(device.buffer.partial_pages)));
        self.row("Buffer, partial pages delayed", |device| Some(whole(device.buffer.delayed_pages)));
        self.row("Buffer, partial pages made full", |device| Some(whole(device.buffer.converted_pages)));
        self.map_cache();
        self.row("Written to precondition the drive", |device| {
            Some(device.precondition.written_bytes).filter(|&bytes| bytes > 0).map(size)
        });
    }

    /// Memory and the designs' own figures, whose names the drives bring.
    fn named(&mut self) {
        let run = self.run;
        let memory: std::collections::BTreeSet<&String> =
            run.devices.iter().flat_map(|device| device.memory.keys()).collect();
        if !memory.is_empty() {
            self.group("Memory");
        }
        for name in memory {
            let label = name.strip_suffix("_bytes").unwrap_or(name).replace('_', " ");
            self.row(&capital(&label), |device| device.memory.get(name).map(|&bytes| size(bytes)));
        }
        let design: std::collections::BTreeSet<&String> =
            run.devices.iter().flat_map(|device| device.design.keys()).collect();
        if !design.is_empty() {
            self.group("The design's own");
        }
        for name in design {
            self.row(&capital(&name.replace('_', " ")), |device| device.design.get(name).map(|&value| figure(value)));
        }
    }
}

/// A count; a layer may also bring a mean.
fn count_of_a_layer(value: f64) -> String {
    if value >= 0.0 && value.fract() == 0.0 { whole(value as u64) } else { figure(value) }
}

fn mean(shares: &[f64]) -> Option<f64> {
    (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
}

//! What requests waited for on the page: a place for the chart, a table for each kind of request, the slowest requests.

use super::html::{escape, nanos, percent, whole};
use super::tables::{capital, chip};
use crate::breakdown::OPS;
use crate::breakdown::text::{columns, label, parts_in, plural, waits};
use crate::result::{DeviceResult, LatencySplit, OpBreakdown, RunResult};

/// The section, or nothing of a run for which no latency breakdown was asked.
pub(super) fn section(run: &RunResult) -> String {
    let drives: String = run.devices.iter().enumerate().map(|(index, device)| of_drive(index, device)).collect();
    if drives.is_empty() {
        return String::new();
    }
    format!(
        "<section class=\"card\" id=\"waited\">\n<div class=\"head\"><div><h2>What requests waited for</h2><p \
         class=\"caption\">The mean latency of all requests, and of the slowest of them, taken apart: behind whose work on \
         the die, for the channel, the link, space in the write buffer, a free block; the rest is service. The parts add \
         up.</p></div><div class=\"choice\" data-for=\"waited-parts\"></div></div>\n<div class=\"chart\" \
         id=\"waited-parts\"></div>\n<details><summary>In numbers, and the slowest requests</summary>{drives}</details>\n\
         </section>\n"
    )
}

fn of_drive(index: usize, device: &DeviceResult) -> String {
    let Some(breakdown) = &device.latency_breakdown else { return String::new() };
    let name = escape(&device.name);
    let ops = OPS.iter().filter_map(|op| Some((op, breakdown.ops.get(*op)?)));
    let tables: String = ops
        .filter(|(_, of)| of.mean.mean_ns > 0.0)
        .map(|(op, of)| format!("<h3>{}{name}: {}</h3>{}", chip(index), capital(&plural(op)), table(of)))
        .collect();
    let slow: String = breakdown
        .slowest
        .iter()
        .enumerate()
        .map(|(place, request)| {
            format!(
                "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"waits\">{}</td></tr>",
                place + 1,
                escape(&request.op),
                whole(request.sector),
                whole(request.sectors),
                nanos(request.submitted_ns as f64),
                nanos(request.latency_ns as f64),
                escape(&waits(request))
            )
        })
        .collect();
    if slow.is_empty() {
        return tables;
    }
    format!(
        "{tables}<h3>{}{name}: the slowest requests</h3><div class=\"scroll tall\"><table><thead><tr><th></th><th>Kind</th>\
         <th>Sector</th><th>Sectors</th><th>Sent at</th><th>Latency</th><th class=\"waits\">Waited for, the longest \
         first</th></tr></thead><tbody>{slow}</tbody></table></div>",
        chip(index)
    )
}

fn table(of: &OpBreakdown) -> String {
    let columns = columns(of);
    let heads: String = columns.iter().map(|(name, _)| format!("<th>{}</th>", escape(&capital(name)))).collect();
    let mut rows = String::new();
    let mut row = |label: &str, cell: &dyn Fn(&LatencySplit) -> String| {
        let cells: String = columns.iter().map(|(_, split)| format!("<td>{}</td>", cell(split))).collect();
        rows.push_str(&format!("<tr><td>{}</td>{cells}</tr>", escape(label)));
    };
    row("Requests", &|split| whole(split.requests));
    row("That took at least", &|split| nanos(split.from_ns as f64));
    row("Mean latency", &|split| nanos(split.mean_ns));
    for key in parts_in(&columns) {
        row(&capital(&label(key)), &|split| match split.parts_ns.get(key) {
            Some(ns) => format!("{} ({})", nanos(*ns), percent(ns / split.mean_ns.max(1.0))),
            None => "–".to_string(),
        });
    }
    format!("<div class=\"scroll\"><table><thead><tr><th></th>{heads}</tr></thead><tbody>{rows}</tbody></table></div>")
}

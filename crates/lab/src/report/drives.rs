//! What the drives are: a row for each, and where several stand beside each other, only what differs between them.

use std::collections::BTreeMap;

use super::html::{escape, percent, size};
use super::tables::chip;
use crate::result::{DeviceResult, RunResult};
use crate::variants::{Difference, by_variant, flat};

/// From more drives than this on, drives are rows of every table, and the script, which reads it from the page, draws no curves
/// until some are chosen.
pub(super) const FEW: usize = 8;

/// More rows than this scroll within the table.
const ROWS: usize = 16;

/// The section, or nothing of a run without drives.
pub(super) fn section(run: &RunResult, differences: &[Difference]) -> String {
    if run.devices.is_empty() {
        return String::new();
    }
    let drives = drives(run);
    let (what, differ) = (described(run, &drives), differing(&drives, differences));
    // Many variants of one drive are told apart by what differs; what each is repeats itself.
    let what = match drives.len() > FEW {
        true => format!("<details><summary>What each of the {} drives is</summary>{what}</details>", drives.len()),
        false => what,
    };
    format!("<section class=\"card\" id=\"what\">\n<h2>What the drives are</h2>\n{what}\n{differ}</section>\n")
}

/// A drive of a run. A repeated run has an entry of its result for each repetition of it.
struct Drive<'a> {
    /// The place of the first of its entries.
    index: usize,
    name: &'a str,
    /// The mark of its colour in the charts, where it has one of its own.
    chip: String,
}

fn drives(run: &RunResult) -> Vec<Drive<'_>> {
    let drive = |(name, repetitions): (_, Vec<&DeviceResult>)| {
        let first = repetitions[0];
        let index = run.devices.iter().position(|device| device.name == first.name).unwrap_or(0);
        Drive { index, name, chip: if first.repetition.is_some() { String::new() } else { chip(index) } }
    };
    by_variant(run).into_iter().map(drive).collect()
}

/// The differences as a table: a column for each drive, or for many drives a row. The script reads from `data-parameters`
/// which parameters a chart can be drawn by.
fn differing(drives: &[Drive<'_>], differences: &[Difference]) -> String {
    if drives.len() < 2 {
        return String::new();
    }
    if differences.is_empty() {
        return "<p class=\"caption\">The descriptions of all drives are the same.</p>\n".to_string();
    }
    let cell = |values: &[Option<String>], drive: &Drive<'_>| match &values[drive.index] {
        Some(value) => format!("<td>{}</td>", escape(value)),
        None => "<td class=\"none\">–</td>".to_string(),
    };
    let head = |Drive { name, chip, .. }: &Drive<'_>, tag: &str, class: &str| {
        let name = escape(name);
        format!("<{tag} class=\"{class}\" title=\"{name}\">{chip}{name}</{tag}>")
    };
    let (heads, rows): (String, Vec<String>) = if drives.len() <= FEW {
        let row = |Difference { key, values, .. }: &Difference| {
            let cells: String = drives.iter().map(|drive| cell(values, drive)).collect();
            format!("<tr><td><code>{}</code></td>{cells}</tr>", escape(key))
        };
        (drives.iter().map(|drive| head(drive, "th", "drive")).collect(), differences.iter().map(row).collect())
    } else {
        let row = |drive: &Drive<'_>| {
            let cells: String = differences.iter().map(|of| cell(&of.values, drive)).collect();
            format!("<tr>{}{cells}</tr>", head(drive, "td", "name"))
        };
        let heads = differences.iter().map(|of| format!("<th><code>{}</code></th>", escape(&of.key))).collect();
        (heads, drives.iter().map(row).collect())
    };
    let set = differences.iter().filter(|of| of.is_set).count();
    let order = match (set, differences.len() - set) {
        (0, _) | (_, 0) => String::new(),
        (_, others) => {
            let follow = if others == 1 { "the other key" } else { "the other keys" };
            format!(
                "<p class=\"caption\">First what <code>--vary</code> and <code>--set</code> say; {follow} may follow from \
                 that.</p>\n"
            )
        }
    };
    let tall = if rows.len() > ROWS { " tall" } else { "" };
    let parameters: BTreeMap<&str, &[Option<String>]> =
        differences.iter().map(|of| (of.key.as_str(), &of.values[..])).collect();
    let parameters = escape(&serde_json::to_string(&parameters).unwrap_or_default());
    format!(
        "<h3>What differs</h3>\n{order}<div class=\"scroll{tall}\" id=\"differences\" data-parameters=\"{parameters}\">\
         <table><thead><tr><th></th>{heads}</tr></thead><tbody>{}</tbody></table></div>\n",
        rows.concat()
    )
}

/// A row for each drive.
fn described(run: &RunResult, drives: &[Drive<'_>]) -> String {
    let heads = ["Drive", "Capacity", "Flash", "Cell", "Over-provisioning", "FTL", "GC", "Buffer"];
    let heads: String = heads.map(|head| format!("<th>{head}</th>")).concat();
    let rows: String = drives.iter().map(|drive| description(drive, &run.devices[drive.index])).collect();
    format!(
        "<div class=\"scroll\"><table class=\"words\"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    )
}

fn description(drive: &Drive<'_>, device: &DeviceResult) -> String {
    let all = flat(&device.configuration);
    let get = |key: &str| all.get(key).map(String::as_str);
    // Words for the parts that are there, in order.
    let said = |parts: &[Option<String>]| {
        let said: Vec<&str> = parts.iter().flatten().map(String::as_str).collect();
        if said.is_empty() { "–".to_string() } else { said.join(", ") }
    };
    let sized = |key: &str| get(key).map(|text| ssdlab_base::parse_size(text).map_or(text.to_string(), size));
    let counted = |key: &str, one: &str, many: &str| {
        get(key).map(|count| format!("{count} {}", if count == "1" { one } else { many }))
    };
    let geometry: Vec<String> = [
        counted("flash.channels", "channel", "channels"),
        counted("flash.chips_per_channel", "chip", "chips"),
        counted("flash.dies_per_chip", "die", "dies"),
        counted("flash.planes_per_die", "plane", "planes"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let timing = |key: &str, word: &str| get(&format!("flash.timing.{key}")).map(|time| format!("{word}\u{a0}{time}"));
    let over = &device.over_provisioning;
    let effective =
        (!device.read_only && over.effective > 0.0).then(|| format!("{} effective", percent(over.effective)));
    let buffer = match (get("buffer.policy"), sized("buffer.size")) {
        (_, Some(none)) if none == "0 B" => Some("none".to_string()),
        (policy, size) => Some([policy.map(str::to_string), size].into_iter().flatten().collect::<Vec<_>>().join(" "))
            .filter(|said| !said.is_empty()),
    };
    let cells = [
        said(&[sized("capacity.user")]),
        said(&[
            (!geometry.is_empty()).then(|| geometry.join(" × ")),
            sized("flash.page_size").map(|page| format!("{page} pages")),
        ]),
        said(&[
            get("flash.cell").map(str::to_uppercase),
            timing("read", "read"),
            timing("program", "program"),
            timing("erase", "erase"),
        ]),
        said(&[Some(percent(over.nominal)), effective]),
        said(&[
            get("ftl.design").map(str::to_string),
            sized("ftl.mapping_unit").map(|unit| format!("{unit} mapping")),
            get("ftl.parity").filter(|parity| *parity != "none").map(|parity| format!("{parity} parity")),
            get("placement.policy").map(|policy| format!("{policy} placement")),
        ]),
        said(&[get("gc.victim").map(str::to_string), get("gc.pacing").map(|pacing| format!("{pacing} pacing"))]),
        said(&[buffer]),
    ];
    let cells: String = cells.iter().map(|cell| format!("<td>{}</td>", escape(cell))).collect();
    let name = escape(drive.name);
    format!("<tr><td class=\"name\" title=\"{name}\">{}{name}</td>{cells}</tr>", drive.chip)
}

/// Drives that differ in more keys than this are different drives, not variants of one.
const VARIANTS_DIFFER_IN: usize = 4;

/// The place of the chart of a metric by a parameter: of two drives a table says as much, and between different drives no
/// parameter is the reason.
pub(super) fn by_parameter(run: &RunResult, differences: &[Difference]) -> String {
    let is_varied = |of: &&Difference| run.devices.iter().all(|device| device.overrides.contains_key(&of.key));
    let differ = match differences.iter().filter(is_varied).count() {
        0 => differences.len(),
        varied => varied,
    };
    if run.devices.len() < 3 || differ == 0 || (run.devices.len() <= FEW && differ > VARIANTS_DIFFER_IN) {
        return String::new();
    }
    let points = match run.devices.iter().any(|device| device.repetition.is_some()) {
        true => "A small point for each repetition and a large one for their mean; a line joins the means of",
        false => "A point for each drive; a line joins",
    };
    format!(
        "<section class=\"card\"><div class=\"head\"><div><h2>Metric by parameter</h2><p class=\"caption\">{points} drives that \
         are alike in all other parameters.</p></div><div class=\"choices\" id=\"picks\"></div></div>\n\
         <div class=\"chart\" id=\"by-parameter\"></div>\n</section>\n"
    )
}

//! What the drives are: a row for each, and where several stand beside each other, only what differs between them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::html::{escape, percent, size};
use super::tables::chip;
use crate::result::{DeviceResult, RunResult};

/// From more drives than this on, drives are rows of every table, and the script, which reads it from the page, draws no curves
/// until some are chosen.
pub(super) const FEW: usize = 8;

/// More rows than this scroll within the table.
const ROWS: usize = 16;

/// The section, or nothing of a run without drives.
pub(super) fn section(run: &RunResult, differences: &Differences) -> String {
    if run.devices.is_empty() {
        return String::new();
    }
    let (what, differ) = (described(run), differing(run, differences));
    // Many variants of one drive are told apart by what differs; what each is repeats itself.
    let what = match run.devices.len() > FEW {
        true => format!("<details><summary>What each of the {} drives is</summary>{what}</details>", run.devices.len()),
        false => what,
    };
    format!("<section class=\"card\" id=\"what\">\n<h2>What the drives are</h2>\n{what}\n{differ}</section>\n")
}

/// Keys of the configuration in which the drives differ, with the text of each drive: nothing where it lacks the key.
pub(super) type Differences = BTreeMap<String, Vec<Option<String>>>;

pub(super) fn differences(run: &RunResult) -> Differences {
    let flat: Vec<BTreeMap<String, String>> = run.devices.iter().map(|device| flat(&device.configuration)).collect();
    let keys: BTreeSet<&String> = flat.iter().flat_map(BTreeMap::keys).filter(|key| *key != "name").collect();
    keys.into_iter()
        .map(|key| (key.clone(), flat.iter().map(|drive| drive.get(key).cloned()).collect::<Vec<_>>()))
        .filter(|(_, values)| values.windows(2).any(|pair| pair[0] != pair[1]))
        .collect()
}

/// A description's keys as `--set` writes them: `gc.victim`. A list is one value.
fn flat(configuration: &Value) -> BTreeMap<String, String> {
    fn walk(prefix: &str, value: &Value, into: &mut BTreeMap<String, String>) {
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    let key = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                    walk(&key, value, into);
                }
            }
            _ => {
                into.insert(prefix.to_string(), text(value));
            }
        }
    }
    let mut all = BTreeMap::new();
    walk("", configuration, &mut all);
    all
}

/// A value without the quotes of JSON.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join(", "),
        _ => value.to_string(),
    }
}

/// The differences as a table: a column for each drive, or for many drives a row. The script reads from `data-parameters`
/// which parameters a chart can be drawn by.
fn differing(run: &RunResult, differences: &Differences) -> String {
    if run.devices.len() < 2 {
        return String::new();
    }
    if differences.is_empty() {
        return "<p class=\"caption\">The descriptions of all drives are the same.</p>\n".to_string();
    }
    let cell = |value: &Option<String>| match value {
        Some(value) => format!("<td>{}</td>", escape(value)),
        None => "<td class=\"none\">–</td>".to_string(),
    };
    let drive = |index: usize, device: &DeviceResult, tag: &str, class: &str| {
        let name = escape(&device.name);
        format!("<{tag} class=\"{class}\" title=\"{name}\">{}{name}</{tag}>", chip(index))
    };
    let drives = run.devices.iter().enumerate();
    let (heads, rows): (String, Vec<String>) = if run.devices.len() <= FEW {
        let heads = drives.map(|(index, device)| drive(index, device, "th", "drive")).collect();
        let row = |(key, values): (&String, &Vec<Option<String>>)| {
            format!("<tr><td><code>{}</code></td>{}</tr>", escape(key), values.iter().map(cell).collect::<String>())
        };
        (heads, differences.iter().map(row).collect())
    } else {
        let heads = differences.keys().map(|key| format!("<th><code>{}</code></th>", escape(key))).collect();
        let row = |(index, device): (usize, &DeviceResult)| {
            let cells: String = differences.values().map(|values| cell(&values[index])).collect();
            format!("<tr>{}{cells}</tr>", drive(index, device, "td", "name"))
        };
        (heads, drives.map(row).collect())
    };
    let tall = if rows.len() > ROWS { " tall" } else { "" };
    let parameters = escape(&serde_json::to_string(differences).unwrap_or_default());
    format!(
        "<h3>What differs</h3>\n<div class=\"scroll{tall}\" id=\"differences\" data-parameters=\"{parameters}\"><table>\
         <thead><tr><th></th>{heads}</tr></thead><tbody>{}</tbody></table></div>\n",
        rows.concat()
    )
}

/// A row for each drive.
fn described(run: &RunResult) -> String {
    let heads = ["Drive", "Capacity", "Flash", "Cell", "Over-provisioning", "FTL", "GC", "Buffer"];
    let heads: String = heads.map(|head| format!("<th>{head}</th>")).concat();
    let rows: String = run.devices.iter().enumerate().map(|(index, device)| description(index, device)).collect();
    format!(
        "<div class=\"scroll\"><table class=\"words\"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    )
}

fn description(index: usize, device: &DeviceResult) -> String {
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
        ]),
        said(&[get("gc.victim").map(str::to_string), get("gc.pacing").map(|pacing| format!("{pacing} pacing"))]),
        said(&[buffer]),
    ];
    let cells: String = cells.iter().map(|cell| format!("<td>{}</td>", escape(cell))).collect();
    let name = escape(&device.name);
    format!("<tr><td class=\"name\" title=\"{name}\">{}{name}</td>{cells}</tr>", chip(index))
}

/// Drives that differ in more keys than this are different drives, not variants of one.
const VARIANTS_DIFFER_IN: usize = 4;

/// The place of the chart of a metric by a parameter: of two drives a table says as much, and between different drives no
/// parameter is the reason.
pub(super) fn by_parameter(run: &RunResult, differences: &Differences) -> String {
    let differ = differences.len();
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

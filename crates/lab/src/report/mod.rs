//! `report.html`: a run as one page to look at.
//!
//! The page is a single file that opens offline: style, script, the chart library (Apache ECharts) and the result
//! itself are inside, and its content policy forbids every request. It promises to show what [`RunResult`] says and
//! nothing computed elsewhere: tables are written here, charts are drawn in the page by `page.js` from the embedded
//! result. It never trusts a name: whatever came from a description, a file name or a command line is escaped.
//!
//! ```text
//! RunResult --+-- tables.rs  --> summary, checks, configuration (HTML, readable without script)
//!             +-- drives.rs  --> what each drive is, and in what they differ
//!             +-- figures.rs --> all figures
//!             +-- subtests.rs, ready_busy.rs, latency_breakdown.rs, layers.rs --> sub-tests, Ready/Busy, what requests waited for, the
//!             |                                                   host's layers, where there are any
//!             +-- JSON       --> page.js --> ECharts --> the charts
//!
//! numbers.js   numbers and axes as people read them
//! tools.js     what does not draw: sorting, copying, saving, the theme
//! ```

mod drives;
mod figures;
pub mod html;
mod jobs;
mod latency_breakdown;
mod layers;
mod ready_busy;
mod subtests;
mod tables;
#[cfg(test)]
pub(crate) mod tests;

use crate::result::RunResult;
use crate::variants::{by_variant, differences};
use html::{DARK_STYLE, ECHARTS, STYLE, escape, fill_template, json_in_script};

const PAGE: &str = include_str!("page.html");
/// Each file is a scope of its own but for the one name that it gives to the next.
const SCRIPT: &str = concat!(include_str!("numbers.js"), include_str!("tools.js"), include_str!("page.js"));

/// The whole page for a run, complete or not.
///
/// Any number of drives, with or without timelines; what is missing is said in words where its chart would be.
pub fn render(run: &RunResult) -> String {
    let (title, differences) = (title(run), differences(run));
    let result = match serde_json::to_string(run) {
        Ok(json) => json_in_script(&json),
        // Only a map with keys that are not strings cannot become JSON, and a result has none.
        Err(error) => unreachable!("a result is always JSON: {error}"),
    };
    fill_template(
        PAGE,
        &[
            ("title", &escape(&title)),
            ("heading", &tables::breakable(&title)),
            ("version", &escape(&run.version)),
            ("date", &date(run)),
            ("command", &tables::command(run)),
            ("style", STYLE),
            ("dark", DARK_STYLE),
            ("few", &drives::FEW.to_string()),
            ("facts", &tables::facts(run)),
            ("banners", &tables::banners(run)),
            ("conclusions", &tables::conclusions(run)),
            ("same", same(run)),
            ("means", &tables::means(run)),
            ("summary", &tables::summary(run)),
            ("headline", &subtests::headline(run)),
            ("what", &drives::section(run, &differences)),
            ("by_parameter", &drives::by_parameter(run, &differences)),
            ("jobs", &jobs::section(run)),
            ("divided", &subtests::section(run)),
            ("watched", &ready_busy::section(run)),
            ("map", &map_hits(run)),
            ("waited", &latency_breakdown::section(run)),
            ("over_time", &subtests::over_time(run)),
            ("shares", &subtests::shares(run)),
            ("checks", &tables::checks(run)),
            ("figures", &figures::figures(run)),
            ("configuration", &tables::configuration(run)),
            ("result", &result),
            ("echarts", ECHARTS),
            ("script", SCRIPT),
        ],
    )
}

/// What the run is about, in one line: as it is called, or else the drives and the workload.
fn title(run: &RunResult) -> String {
    if let Some(title) = &run.title {
        return title.clone();
    }
    let names: Vec<&str> = by_variant(run).into_iter().map(|(name, _)| name).collect();
    let drives = match names.as_slice() {
        [] => "No drive".to_string(),
        [one] => (*one).to_string(),
        [first, second] => format!("{first} and {second}"),
        [first, second, third] => format!("{first}, {second} and {third}"),
        [first, second, rest @ ..] => format!("{first}, {second} and {} more drives", rest.len()),
    };
    format!("{drives} under {}", workload(run))
}

/// When the run was, where the result says it.
fn date(run: &RunResult) -> String {
    run.wall_started.as_ref().map_or_else(String::new, |date| format!(" · <time>{}</time>", escape(date)))
}

/// Whether the drives can be compared request by request.
fn same(run: &RunResult) -> &'static str {
    match run.devices.len() {
        0 | 1 => "",
        _ if run.is_same_requests() => "The same requests on each. ",
        _ => "The same workload on each, but not the same requests: the warnings say why. ",
    }
}

/// The place of the chart of map hits, where a drive caches its map.
fn map_hits(run: &RunResult) -> String {
    if run.devices.iter().all(|device| device.timeline.map_hit_ratio.is_empty()) {
        return String::new();
    }
    let caption = "Map pages asked for that were in RAM, as a share of all that were asked for in each interval.";
    format!(
        "<section class=\"card\"><div class=\"head\"><div><h2>Map cache over time</h2><p class=\"caption\">{caption}</p>\
         </div><div class=\"choice\" data-for=\"map-hits\"></div></div>\n\
         <div class=\"chart\" id=\"map-hits\"></div>\n</section>\n"
    )
}

/// What was asked of the drives: of a path, which says where the user keeps a trace, the last part.
fn workload(run: &RunResult) -> &str {
    match run.workload.rsplit_once('/') {
        Some((_, name)) if !name.is_empty() && !ssdlab_workload::fio::is_spec(&run.workload) => name,
        _ => &run.workload,
    }
}

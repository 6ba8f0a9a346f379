//! A reproduction on a terminal: a table a figure, then what was compared, the inputs, and what failed.

use std::fmt::Write as _;

use super::compare::Compared;
use super::experiment::Size;
use super::grid::{Grid, number};
use super::output::{FigureReport, Report};
use super::published::Span;

/// The whole text.
pub fn render(report: &Report) -> String {
    let mut text = format!("{}\n", report.title);
    if let Some(sentence) = size(report) {
        text.push_str(&format!("{sentence}\n"));
    }
    if let Some(host) = &report.host {
        let _ = writeln!(text, "With the layers of {host} above every drive, which the paper does not have.");
    }
    text.push_str(&verdict(report));
    for figure in &report.figures {
        text.push('\n');
        text.push_str(&one(figure));
    }
    let _ = writeln!(text, "\nInputs\n{}", inputs(report).plain());
    for input in report.inputs.iter().filter(|input| !input.is_there()) {
        let why = input.missing.as_deref().unwrap_or_default();
        let _ = writeln!(text, "not run: {} ({why})", input.name);
    }
    for (run, check) in &report.broken_checks {
        let _ = writeln!(text, "check did not hold: {run}: {check}");
    }
    text.push_str(&failures(report));
    let (done, failed, stopped) = report.runs;
    match report.kept {
        0 => text.push_str(&format!("{done} runs done")),
        kept => text.push_str(&format!("{} runs done, {kept} kept from before", done - kept)),
    }
    if failed > 0 {
        let _ = write!(text, ", {failed} failed");
    }
    if stopped > 0 {
        let _ = write!(text, ", {stopped} not done: the same command goes on with them");
    }
    text.push('\n');
    text
}

/// What a reader must know of the size of the runs; nothing where it is the paper's.
pub(crate) fn size(report: &Report) -> Option<String> {
    match report.size {
        Size::Quick => {
            Some("Quick: small drives and few requests, to see that all works. The values mean nothing.".to_string())
        }
        Size::Middle => {
            let names: Vec<String> = report.judged.iter().map(|id| heading(id)).collect();
            let judged = if names.is_empty() { "None of these figures is".to_string() } else { names.join(", ") };
            let verb = match names.len() {
                0 => "",
                1 => " alone is",
                _ => " alone are",
            };
            let about = report.about_size.as_deref().unwrap_or_default();
            Some(format!("Middle size: {about} {judged}{verb} compared with the paper at this size."))
        }
        Size::Full => None,
    }
}

/// How much is within, and what is outside and why, a line a figure.
fn verdict(report: &Report) -> String {
    let Some(headline) = report.verdict.headline() else { return String::new() };
    let mut text = format!("\n{headline}\n");
    for outside in &report.verdict.outside {
        let _ = writeln!(text, "  {}: {}", heading(outside.figure), outside.line());
    }
    text
}

/// The runs that failed, those with one reason together: a design that this ssdlab does not have fails every run of it.
fn failures(report: &Report) -> String {
    let mut reasons: Vec<&str> = Vec::new();
    for failure in &report.failures {
        if !reasons.contains(&failure.reason.as_str()) {
            reasons.push(&failure.reason);
        }
    }
    let mut text = String::new();
    for reason in reasons {
        let mut failed = report.failures.iter().filter(|failure| failure.reason == reason);
        let (Some(first), more) = (failed.next(), failed.count()) else { continue };
        let key = if first.key.is_empty() { String::new() } else { format!(" [{}]", first.key) };
        let others = if more > 0 { format!(" (and {more} more)") } else { String::new() };
        let _ = writeln!(text, "failed{key}: {}{others}\n  {reason}\n  {}", first.run, first.command);
    }
    text
}

fn one(figure: &FigureReport) -> String {
    let mut text = format!("{}: {}\n", heading(figure.id), figure.title);
    if !figure.grid.rows.is_empty() {
        text.push_str(&figure.grid.plain());
    }
    for picture in &figure.pictures {
        let _ = write!(text, "\n  {}\n{}", picture.title, indented(&picture.plain()));
    }
    let compared = compared(&figure.compared, figure.drives_are);
    if !compared.rows.is_empty() {
        text.push('\n');
        text.push_str(&compared.plain());
    }
    for remark in &figure.remarks {
        let _ = writeln!(text, "  note: {remark}");
    }
    text
}

/// Lines, each indented by two.
fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

/// `figure08` as a person says it.
pub(crate) fn heading(id: &str) -> String {
    for (prefix, word) in [("figure", "Figure"), ("table", "Table"), ("section", "Section")] {
        if let Some(rest) = id.strip_prefix(prefix) {
            let rest = rest.trim_start_matches('0').replace("-live", ", live");
            return format!("{word} {}", rest.replace('-', "."));
        }
    }
    let mut letters = id.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// What the paper says, and ours.
pub(crate) fn compared(compared: &[Compared], drives_are: &str) -> Grid {
    let heads = ["the paper says", "series", drives_are, "setting", "paper", "ours", "", "where"].map(str::to_string);
    let rows = compared.iter().map(|compared| {
        let published = &compared.published;
        let page = if published.page_size == "any" { "" } else { &published.page_size };
        let verdict = match compared.within {
            Some(true) => "within",
            Some(false) => "outside",
            None if !compared.too_few.is_empty() => "too few events",
            None => "not run",
        };
        vec![
            published.workload.clone(),
            published.series.clone(),
            page.to_string(),
            compared.our_setting.clone(),
            format!("{} {}", published.value, published.unit).trim_end().to_string(),
            ours(compared),
            verdict.to_string(),
            published.place.clone(),
        ]
    });
    Grid { heads: heads.to_vec(), labels: 8, rows: rows.collect() }
}

/// Our side of a comparison, with whose values the ends are.
fn ours(compared: &Compared) -> String {
    let unit = &compared.published.unit;
    match (compared.ours, compared.ends.as_slice()) {
        (Some(Span { low: Some(low), high: Some(high) }), [least, most]) if least != most => {
            format!("{} ({least}) to {} ({most})", number(low, unit), number(high, unit))
        }
        (Some(Span { low: Some(low), .. }), [only, ..]) => format!("{} ({only})", number(low, unit)),
        (Some(Span { low: Some(low), .. }), []) => number(low, unit),
        _ => "-".to_string(),
    }
}

/// The inputs that were there, in numbers.
pub(crate) fn inputs(report: &Report) -> Grid {
    let heads = [
        "",
        "from",
        "kind",
        "requests",
        "a second",
        "writes, %",
        "write, KB",
        "read, KB",
        "unaligned 4k, %",
        "8k, %",
        "16k, %",
    ];
    let rows = report.inputs.iter().filter_map(|input| {
        let survey = input.survey.as_ref()?;
        let each = |bytes: u64, count: u64| {
            if count == 0 { "-".to_string() } else { number(bytes as f64 / count as f64 / 1024.0, "KB") }
        };
        let kind = serde_json::to_value(input.kind).ok();
        let kind = kind.and_then(|kind| kind.as_str().map(str::to_string)).unwrap_or_default();
        let unaligned =
            |page| survey.unaligned_percent(page).map_or_else(|| "-".to_string(), |share| number(share, "%"));
        let both = survey.reads + survey.writes;
        let writes = if both == 0 { "-".to_string() } else { number(100.0 * survey.writes as f64 / both as f64, "%") };
        Some(vec![
            input.name.clone(),
            input.shown.clone(),
            kind,
            number(survey.requests as f64, ""),
            survey.rate().map_or_else(|| "-".to_string(), |rate| number(rate.round(), "")),
            writes,
            each(survey.write_bytes, survey.writes),
            each(survey.read_bytes, survey.reads),
            unaligned("4k"),
            unaligned("8k"),
            unaligned("16k"),
        ])
    });
    Grid { heads: heads.map(str::to_string).to_vec(), labels: 3, rows: rows.collect() }
}

#[cfg(test)]
mod tests {
    use super::heading;

    #[test]
    fn names_are_said_as_a_person_says_them() {
        assert_eq!(heading("figure08"), "Figure 8");
        assert_eq!(heading("figure10"), "Figure 10");
        assert_eq!(heading("table01"), "Table 1");
        assert_eq!(heading("section5-6"), "Section 5.6");
        assert_eq!(heading("figure17-live"), "Figure 17, live");
        assert_eq!(heading("findings"), "Findings");
    }
}

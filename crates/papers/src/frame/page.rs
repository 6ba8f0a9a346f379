//! The page of a reproduction: a card a figure, ours beside the paper's, with the same style and chart library as a
//! run's page.

use serde_json::json;
use ssdlab_lab::report::html::{DARK_STYLE, ECHARTS, STYLE, escape, fill_template, json_in_script};

use super::grid::Grid;
use super::output::{FigureReport, Report};
use super::svg::svg;
use super::text::{compared as compared_grid, heading, inputs as inputs_grid, size as size_of_runs};
use super::verdict::Outside;

const PAGE: &str = include_str!("page.html");
const SCRIPT: &str = include_str!("page.js");

/// The whole page: tables are readable without script, and everything is inside.
pub(super) fn render(report: &Report) -> String {
    let cards: String = report.figures.iter().map(card).collect();
    let charts: Vec<_> = report
        .figures
        .iter()
        .filter(|figure| has_charts(figure))
        .map(|figure| json!({ "id": figure.id, "panels": figure.panels, "curves": figure.curves }))
        .collect();
    let data = serde_json::to_string(&charts).expect("panels and curves are always JSON");
    fill_template(
        PAGE,
        &[
            ("title", &escape(&format!("{}, reproduced", report.title))),
            ("version", &escape(&report.version)),
            ("style", STYLE),
            ("dark", DARK_STYLE),
            ("banners", &banners(report)),
            ("verdict", &verdict(report)),
            ("contents", &contents(report)),
            ("figures", &cards),
            ("inputs", &inputs(report)),
            ("data", &json_in_script(&data)),
            ("echarts", ECHARTS),
            ("script", SCRIPT),
        ],
    )
}

fn has_charts(figure: &FigureReport) -> bool {
    !figure.panels.is_empty() || !figure.curves.is_empty()
}

/// How many published values are within, and of each figure what is not and why.
fn verdict(report: &Report) -> String {
    let Some(headline) = report.verdict.headline() else { return String::new() };
    let item = |outside: &Outside| {
        let id = escape(outside.figure);
        format!("<li><a href=\"#{id}\">{}</a>: {}</li>", escape(&heading(outside.figure)), prose(&outside.line()))
    };
    let items: String = report.verdict.outside.iter().map(item).collect();
    let items = if items.is_empty() { items } else { format!("<ul class=\"notes\">{items}</ul>") };
    format!("<section class=\"card\" id=\"verdict\"><h2>{}</h2>{items}</section>", escape(&headline))
}

fn contents(report: &Report) -> String {
    let item = |figure: &FigureReport| {
        format!("<li><a href=\"#{0}\">{1}</a></li>", escape(figure.id), escape(&heading(figure.id)))
    };
    format!("<ul class=\"facts\">{}</ul>", report.figures.iter().map(item).collect::<String>())
}

fn banners(report: &Report) -> String {
    let mut banners = String::new();
    if let Some(sentence) = size_of_runs(report) {
        banners.push_str(&format!("<p class=\"banner warn\">{}</p>", escape(&sentence)));
    }
    if let Some(host) = &report.host {
        banners.push_str(&format!(
            "<p class=\"banner warn\"><b>Host layers.</b> The layers of {} stood above every drive, which the paper does not \
             have.</p>",
            escape(host)
        ));
    }
    let (_, failed, stopped) = report.runs;
    if stopped > 0 {
        banners.push_str(&format!(
            "<p class=\"banner warn\"><b>Incomplete.</b> {stopped} runs were not done; the same command goes on with \
             them.</p>"
        ));
    }
    if failed > 0 {
        let items: String = report
            .failures
            .iter()
            .map(|failure| format!("<li>{}: {}</li>", escape(&failure.run), escape(&failure.reason)))
            .collect();
        banners.push_str(&format!(
            "<div class=\"banner bad\"><b>{failed} runs failed.</b><ul class=\"notes\">{items}</ul></div>"
        ));
    }
    if !report.broken_checks.is_empty() {
        let items: String = report
            .broken_checks
            .iter()
            .map(|(run, check)| format!("<li>{}: {}</li>", escape(run), escape(check)))
            .collect();
        banners.push_str(&format!(
            "<div class=\"banner bad\"><b>Do not trust these figures:</b> a law that every run has to keep did not \
             hold.<ul class=\"notes\">{items}</ul></div>"
        ));
    }
    banners
}

/// A sentence in which code stands between backticks.
fn prose(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let part = |(index, part): (usize, &str)| match index % 2 {
        0 => escape(part),
        _ => format!("<code>{}</code>", escape(part)),
    };
    parts.map(part).collect()
}

/// Letters of the longest text in a table that does not break.
const NAME: usize = 40;

/// Rows of a table that is open at first; a longer one is a click away.
const OPEN: usize = 40;

fn table(grid: &Grid) -> String {
    let cell = |column: usize, text: &str, tag: &str| {
        // A name stays on its line; a sentence may break.
        let class = match (column < grid.labels, text.chars().count() > NAME) {
            (false, _) => "",
            (true, false) => " class=\"label name\"",
            (true, true) => " class=\"label\"",
        };
        format!("<{tag}{class}>{}</{tag}>", escape(text))
    };
    let row = |cells: &[String], tag: &str| {
        let cells: String = cells.iter().enumerate().map(|(column, text)| cell(column, text, tag)).collect();
        format!("<tr>{cells}</tr>")
    };
    let rows: String = grid.rows.iter().map(|cells| row(cells, "td")).collect();
    format!("<div class=\"scroll\"><table><thead>{}</thead><tbody>{rows}</tbody></table></div>", row(&grid.heads, "th"))
}

fn card(figure: &FigureReport) -> String {
    let id = escape(figure.id);
    let mut card = format!(
        "<section class=\"card\" id=\"{id}\"><h2>{}: {}</h2><p class=\"caption\">{}</p>",
        escape(&heading(figure.id)),
        escape(figure.title),
        prose(figure.about)
    );
    for picture in &figure.pictures {
        card.push_str(&format!("<h3>{}</h3><div class=\"scroll\">{}</div>", escape(&picture.title), svg(picture)));
    }
    if has_charts(figure) {
        card.push_str(&format!("<div class=\"charts\" data-figure=\"{id}\"></div>"));
    }
    let compared = compared_grid(&figure.compared, figure.drives_are);
    if !compared.rows.is_empty() {
        card.push_str(&table(&compared));
    }
    if !figure.grid.rows.is_empty() {
        let rows = figure.grid.rows.len();
        // A table is read as one; beside charts it is for who wants the numbers.
        let is_table = !has_charts(figure) && figure.pictures.is_empty();
        let open = if is_table && rows <= OPEN { " open" } else { "" };
        card.push_str(&format!(
            "<details{open}><summary>Values, {rows} {}</summary>{}</details>",
            if rows == 1 { "row" } else { "rows" },
            table(&figure.grid)
        ));
    }
    if !figure.remarks.is_empty() {
        let items: String = figure.remarks.iter().map(|remark| format!("<li>{}</li>", prose(remark))).collect();
        card.push_str(&format!("<ul class=\"notes\">{items}</ul>"));
    }
    if !figure.commands.is_empty() {
        let lines: Vec<String> = figure.commands.iter().map(|command| escape(command)).collect();
        let which = match lines.len() {
            1 => "Its run as a command".to_string(),
            runs => format!("The {runs} runs, each as a command"),
        };
        card.push_str(&format!("<details><summary>{which}</summary><pre>{}</pre></details>", lines.join("\n")));
    }
    card.push_str("</section>");
    card
}

fn inputs(report: &Report) -> String {
    let mut text = table(&inputs_grid(report));
    let items: String = report
        .inputs
        .iter()
        .map(|input| {
            let missing = match &input.missing {
                Some(why) => format!(". <b>Not run:</b> {}.", escape(why)),
                None => String::new(),
            };
            format!("<li><b>{}</b>: {}{missing}</li>", escape(&input.name), escape(&input.about))
        })
        .collect();
    text.push_str(&format!("<ul class=\"notes\">{items}</ul>"));
    text
}

//! Ready/Busy on the page: what the recorders and the classifiers counted, and what was there to be counted.

use ssdlab_base::Nanos;
use ssdlab_measure::Window;

use super::html::{escape, or_dash, whole};
use super::tables::chip;
use crate::ready_busy::ReadyBusy;
use crate::result::RunResult;

/// The section, or nothing of a run that was not watched.
pub(super) fn section(run: &RunResult) -> String {
    let drives = run.devices.iter().enumerate();
    let watched: String = drives
        .filter_map(|(index, device)| device.ready_busy.as_ref().map(|watched| (index, &device.name, watched)))
        .map(|(index, name, watched)| {
            format!(
                "<h3>{}{}</h3>{}",
                chip(index),
                escape(name),
                [line(watched), counted(watched), levels(watched), real(watched)].concat()
            )
        })
        .collect();
    match watched.is_empty() {
        true => String::new(),
        false => format!(
            "<section class=\"card\">\n<h2>Ready/Busy</h2>\n<p class=\"caption\">Pages of the whole drive as a \
             recorder on one die's line counts them, at several times between two samples; as the classifiers estimate \
             them from the edges; and as they were really programmed. The first recorder stands for the drive.</p>\n\
             {watched}</section>\n"
        ),
    }
}

fn line(watched: &ReadyBusy) -> String {
    let [above, below] = watched.window_ns.map(Nanos);
    format!(
        "<p class=\"caption\">Ready/Busy of {}, {} (channels x chips x dies x planes), a program T: {}, {} page(s) a \
         low ({} program model)</p>",
        escape(&watched.line),
        escape(&watched.geometry),
        escape(&Window { above, below }.to_string()),
        watched.pages_per_low,
        escape(&watched.program_model)
    )
}

fn counted(watched: &ReadyBusy) -> String {
    let ratio = |value: Option<f64>| or_dash(value, |value| format!("{value:.3}")).into_owned();
    let off = |value: Option<f64>| or_dash(value, |value| format!("{:+.3} %", value * 100.0)).into_owned();
    let pages = |pages: f64| whole(pages.round() as u64);
    let mut rows = String::new();
    let mut row = |cells: [String; 8]| {
        rows.push_str(&format!("<tr>{}</tr>", cells.map(|cell| format!("<td>{cell}</td>")).concat()));
    };
    let none = || "–".to_string();
    for recorder in &watched.recorders {
        row([
            format!("recorder ({})", Nanos(recorder.sampling_ns)),
            whole(recorder.programs),
            pages(recorder.pages),
            none(),
            ratio(recorder.write_amplification),
            off(recorder.percentage_error),
            whole(recorder.lows_missed),
            whole(recorder.lows_merged),
        ]);
    }
    for estimate in &watched.estimates {
        let [least, most] = estimate.pages_interval.map(pages);
        row([
            escape(&estimate.method),
            a_line(estimate.programs_a_line),
            pages(estimate.pages),
            format!("{least} to {most}"),
            ratio(estimate.write_amplification),
            off(estimate.percentage_error),
            none(),
            none(),
        ]);
    }
    let programs = watched.real.programs_by_die.get(watched.die as usize).copied();
    row([
        "really".to_string(),
        or_dash(programs, whole).into_owned(),
        whole(watched.real.pages),
        none(),
        ratio(watched.real.write_amplification),
        none(),
        none(),
        none(),
    ]);
    let heads =
        ["Counted by", "Programs of a line", "Pages", "95 % interval", "WA", "Off by", "Lows missed", "Lows merged"];
    let heads: String = heads.iter().map(|head| format!("<th>{head}</th>")).collect();
    format!(
        "<div class=\"scroll\"><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody>\
         </table></div>\n"
    )
}

/// A mean over the lines: a tenth of a program matters where there are few.
fn a_line(programs: f64) -> String {
    if programs.fract() == 0.0 || programs >= 1000.0 {
        whole(programs.round() as u64)
    } else {
        format!("{programs:.1}")
    }
}

/// The first recorder's error as a product.
fn levels(watched: &ReadyBusy) -> String {
    let levels = &watched.levels;
    let factors = [
        ("sampling", levels.sampling),
        ("classification", levels.classification),
        ("plane", levels.plane),
        ("die", levels.die),
        ("chip", levels.chip),
        ("channel", levels.channel),
    ];
    let factors = factors.map(|(name, factor)| {
        let factor = or_dash(factor, |factor: f64| format!("{factor:.4}"));
        format!("<span class=\"factor\">{name} <b>{factor}</b></span>")
    });
    format!("<p class=\"levels\">recorder / really = {}</p>\n", factors.join(" × "))
}

/// What the chips did, by cause and die.
fn real(watched: &ReadyBusy) -> String {
    let real = &watched.real;
    let causes: Vec<String> = real
        .by_cause
        .iter()
        .filter(|&(_, &pages)| pages > 0)
        .map(|(cause, &pages)| format!("{} <b>{}</b>", escape(&cause.replace('_', " ")), whole(pages)))
        .collect();
    let causes = if causes.is_empty() { "none".to_string() } else { causes.join(", ") };
    let dies = &real.pages_by_die;
    let of_die = dies.get(watched.die as usize).copied();
    let spread = match (dies.iter().min(), dies.iter().max(), of_die) {
        (Some(&least), Some(&most), Some(of_die)) => {
            format!("; on a die from {} to {}, on the watched one {}", whole(least), whole(most), whole(of_die))
        }
        _ => String::new(),
    };
    format!("<p class=\"levels\">Pages really programmed, by cause: {causes}{spread}</p>\n")
}

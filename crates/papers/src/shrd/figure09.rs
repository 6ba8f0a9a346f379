//! Figure 9: which entries of the map SHRD accesses, over time.

use super::common::{DRIVE, MAP_PAGE, cache_of};
use crate::frame::{
    Column, Content, Curve, Curves, Drawn, Figure, Input, Label, Measured, Outcomes, PaperContext, Run, names,
};

/// The driver, with a list of what it sends.
const HOST: &str = "list-commands.toml";

/// Entries of a map page.
const ENTRIES: f64 = (MAP_PAGE / 4) as f64;

/// Space of the paper's postmark, GB (Table 1); the cache holds that share of the map.
const SPACE: u64 = 20;

/// Points of a line: a chart of more shows no more.
const POINTS: usize = 3000;

/// What the driver sends, as the list calls it, and as the figure does.
const KINDS: [(&str, &str); 5] = [
    ("log_write", "writes to the log"),
    ("remap", "randomizing"),
    ("write", "direct writes"),
    ("log_read", "reads of the log"),
    ("read", "direct reads"),
];

const COLUMNS: [Column<Vec<Sent>>; 5] = [
    ("commands", "", |sent| Some(sent.len() as f64)),
    ("entries", "", |sent| Some(sent.iter().map(|sent| sent.entries).sum())),
    ("follows", "%", |sent| follows(sent)),
    ("rises", "%", |sent| rises(sent)),
    ("step", "map pages", |sent| median_step(sent)),
];

/// A command of the list.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sent {
    at_s: f64,
    first: f64,
    end: f64,
    entries: f64,
}

/// The commands of a kind, in their order.
fn sent(run: &Measured, kind: &str) -> Vec<Sent> {
    let column = |name: &str| run.column(&format!("host_layers.0.commands.{name}")).unwrap_or_default();
    let kinds = run.words("host_layers.0.commands.kind").unwrap_or_default();
    let columns = [column("time_ns"), column("first"), column("end"), column("entries")];
    let row = |index: usize| -> Option<Sent> {
        let [at, first, end, entries] = [0, 1, 2, 3].map(|of: usize| columns[of].get(index).copied().flatten());
        Some(Sent { at_s: at? / 1e9, first: first?, end: end?, entries: entries? })
    };
    kinds.into_iter().enumerate().filter(|(_, name)| *name == kind).filter_map(|(index, _)| row(index)).collect()
}

/// Commands that begin where the one of their kind before them ended, per cent.
fn follows(sent: &[Sent]) -> Option<f64> {
    let pairs = sent.len().checked_sub(1).filter(|&pairs| pairs > 0)?;
    let follow = sent.windows(2).filter(|pair| pair[1].first == pair[0].end).count();
    Some(100.0 * follow as f64 / pairs as f64)
}

/// Map pages from the end of a command to the beginning of the next, forwards or backwards: the median.
fn median_step(sent: &[Sent]) -> Option<f64> {
    let mut steps: Vec<f64> = sent.windows(2).map(|pair| (pair[1].first - pair[0].end).abs() / ENTRIES).collect();
    steps.sort_by(f64::total_cmp);
    steps.get(steps.len() / 2).copied()
}

/// Commands at higher addresses than the one of their kind before them, per cent.
fn rises(sent: &[Sent]) -> Option<f64> {
    let pairs = sent.len().checked_sub(1).filter(|&pairs| pairs > 0)?;
    let rise = sent.windows(2).filter(|pair| pair[1].first > pair[0].first).count();
    Some(100.0 * rise as f64 / pairs as f64)
}

/// postmark, and a recording that comes with the source and does the same.
fn inputs(context: &PaperContext) -> impl Iterator<Item = &Input> {
    ["postmark", "varmail"].into_iter().filter_map(|name| context.input(name))
}

fn run(context: &PaperContext, input: &Input) -> Option<Run> {
    let run = context.run(DRIVE, "SHRD", input, "closed:32").with(format!("ftl.map_cache={}", cache_of(input, SPACE)?));
    Some(Run { host: Some(HOST.to_string()), ..run })
}

pub(super) static FIGURE: Figure = Figure {
    id: "figure09",
    title: "entries of the map that SHRD accesses",
    about: "Every command that the driver sends, up to 200,000 of a run. A twrite accesses the entries of its tLPNs; a \
            remap those of its oLPNs, which are drawn, and of their tLPNs; what is not small its own. Follows: begins \
            where the one of its kind before ended. Rises: begins behind where that began. Step: map pages between the \
            two, the median. The paper: writes to the log are sequential, there are few direct accesses, and \
            randomizing goes by address.",
    differs: "",
    series: &names(&COLUMNS),
    content: Content::Own { runs, draw },
};

fn runs(context: &PaperContext) -> Vec<Run> {
    inputs(context).filter_map(|input| run(context, input)).collect()
}

fn draw(context: &PaperContext, outcomes: &Outcomes) -> Drawn {
    let mut drawn = Drawn::default();
    for input in inputs(context) {
        let Some(measured) = run(context, input).and_then(|run| outcomes.get(&run)) else { continue };
        for (kind, name) in KINDS {
            let sent = sent(measured, kind);
            if !sent.is_empty() {
                drawn.columns(&Label::of(input, "", name), &sent, &COLUMNS);
            }
        }
        drawn.curves.push(chart(input, measured, "the log", &KINDS[..1]));
        drawn.curves.push(chart(input, measured, "the user's addresses", &KINDS[1..3]));
    }
    drawn
}

/// The first map page of each command of some kinds, over time.
fn chart(input: &Input, run: &Measured, of: &str, kinds: &[(&str, &str)]) -> Curves {
    let curves = kinds.iter().map(|(kind, name)| {
        let sent = sent(run, kind);
        let points = sent.iter().step_by(sent.len().div_ceil(POINTS).max(1));
        Curve { name: (*name).to_string(), points: points.map(|sent| (sent.at_s, sent.first / ENTRIES)).collect() }
    });
    Curves {
        title: format!("{}: {of}", input.name),
        x: "time, s",
        x_log: false,
        y: "map page",
        input: input.shown.clone(),
        is_scattered: true,
        curves: curves.collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn commands_are_told_apart_by_kind_and_held_against_the_one_before() {
        let commands = json!({
            "time_ns": [1e9, 2e9, 3e9, 4e9],
            "kind": ["log_write", "remap", "log_write", "log_write"],
            "first": [0, 5000, 8, 1032], "end": [8, 9000, 16, 1040], "entries": [8, 128, 8, 8],
        });
        let result = json!({ "devices": [{ "complete": true, "host_layers": [{ "commands": commands }] }] });
        let measured = Measured::of(&result).expect("it is complete");
        let log = sent(&measured, "log_write");
        assert_eq!(log.len(), 3);
        assert_eq!(log[1], Sent { at_s: 3.0, first: 8.0, end: 16.0, entries: 8.0 });
        assert_eq!((follows(&log), rises(&log)), (Some(50.0), Some(100.0)));
        assert_eq!(median_step(&log), Some(1016.0 / 1024.0));
        let remaps = sent(&measured, "remap");
        assert_eq!((remaps.len(), follows(&remaps), median_step(&remaps)), (1, None, None));
        assert!(sent(&measured, "read").is_empty());
        let without = Measured::of(&json!({ "devices": [{ "complete": true }] })).expect("it is complete");
        assert!(sent(&without, "remap").is_empty());
    }
}

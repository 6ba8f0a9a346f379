//! Figure 10: the share of partial pages in the buffer over time.

use super::common::{PAGE, SETTINGS, events, point, runs_at, sent};
use crate::frame::{Curve, Curves, Drawn, Figure, Measured, Outcomes, PaperContext, Run};

pub(super) struct Figure10;

const VARIANTS: [&str; 2] = ["Baseline", "PC-LRU"];

impl Figure for Figure10 {
    fn id(&self) -> &'static str {
        "figure10"
    }

    fn title(&self) -> &'static str {
        "share of partial pages in the buffer over time, pages of 8 KB"
    }

    fn about(&self) -> &'static str {
        "Pages in the buffer that hold some and not all of their sectors, per cent of the pages in it. The values are means \
         over the run's time from the moment on at which the buffer first was as full as it became; the difference is \
         in per cent points."
    }

    fn series(&self) -> &'static [&'static str] {
        &["Baseline", "PC-LRU", "PC-LRU over Baseline"]
    }

    fn runs(&self, context: &PaperContext) -> Vec<Run> {
        runs_at(context, PAGE, &VARIANTS)
    }

    fn draw(&self, context: &PaperContext, outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        for (input, replay, setting) in sent(context) {
            let mut means = Vec::new();
            let mut curves = Vec::new();
            for variant in VARIANTS {
                let Some(line) = outcomes.get(&context.run(PAGE, variant, input, &replay)).and_then(share) else {
                    continue;
                };
                if let Some(mean) = line.mean {
                    drawn.points.push(point(input, PAGE, setting, variant, mean, "%"));
                    means.push(mean);
                }
                curves.push(Curve { name: variant.to_string(), points: line.points });
            }
            if let [base, ours] = means[..] {
                let point = point(input, PAGE, setting, "PC-LRU over Baseline", ours - base, "%");
                drawn.points.push(point.of_events(events(outcomes, &context.run(PAGE, "Baseline", input, &replay))));
            }
            if !curves.is_empty() {
                drawn.curves.push(Curves {
                    title: format!("{}, {setting}", input.name),
                    x: "virtual time (s)",
                    x_log: false,
                    y: "partial pages (%)",
                    is_scattered: false,
                    input: input.shown.clone(),
                    curves,
                });
            }
        }
        for setting in SETTINGS {
            drawn.bars(format!("mean once the buffer is full, {setting}"), ["", "partial pages, %"], |point| {
                let shown = point.setting == setting && VARIANTS.contains(&point.series);
                shown.then(|| (point.series.to_string(), point.workload.clone()))
            });
        }
        drawn
    }
}

/// A run's share of partial pages over time, and its mean once the buffer is full.
struct Share {
    points: Vec<(f64, f64)>,
    mean: Option<f64>,
}

fn share(measured: &Measured) -> Option<Share> {
    let time = measured.column("timeline.time_ns")?;
    let pages = measured.column("timeline.buffer_pages")?;
    let partial = measured.column("timeline.buffer_partial_pages")?;
    let most = pages.iter().flatten().copied().fold(0.0, f64::max);
    let mut points = Vec::new();
    let (mut full, mut sum, mut count) = (false, 0.0, 0);
    for ((time, pages), partial) in time.into_iter().zip(pages).zip(partial) {
        let (time, pages, partial) = (time?, pages?, partial?);
        if pages == 0.0 {
            continue;
        }
        let share = 100.0 * partial / pages;
        points.push((time / 1e9, share));
        // Partial pages take fewer sectors, so a full buffer's number of pages varies.
        full |= pages >= 0.9 * most;
        if full {
            sum += share;
            count += 1;
        }
    }
    Some(Share { points, mean: (count > 0).then(|| sum / f64::from(count)) })
}

//! What the paper leaves open, and what difference it makes: the drive's age, and the transfer time of larger pages.

use super::common::{figure, less, mean_latency, point, replays};
use crate::reproduce::{Drawn, Figure, Input, Outcomes, Preparation, Run, Scene};

pub(super) struct Choices;

/// A choice: its name, the page size, the age, and what it sets. The first of a page size is the one that all figures have.
type Choice = (&'static str, &'static str, Preparation, &'static [&'static str]);

const CHOICES: [Choice; 7] = [
    ("as everywhere", "8k", Preparation::Touched, &[]),
    ("drive empty", "8k", Preparation::None, &[]),
    ("drive full", "8k", Preparation::Fill, &[]),
    ("transfer 102.4 us", "8k", Preparation::Touched, &["flash.timing.transfer=102.4us"]),
    ("depth 256", "8k", Preparation::Touched, &["interface.queue_depth=256"]),
    ("as everywhere", "16k", Preparation::Touched, &[]),
    ("transfer 204.8 us", "16k", Preparation::Touched, &["flash.timing.transfer=204.8us"]),
];

impl Figure for Choices {
    fn id(&self) -> &'static str {
        "choices"
    }

    fn title(&self) -> &'static str {
        "what the paper leaves open, and what it changes"
    }

    fn about(&self) -> &'static str {
        "The drive's age: everywhere else all that a trace touches was written before, so that a partial page has an old \
         version; on an empty drive the first write of a page needs no read, and on a full one all other pages hold data, \
         too. The transfer time: Table 1 has one for all page sizes; here larger pages take longer in proportion. The \
         commands that the drive takes at a time, 32 everywhere else."
    }

    fn series(&self) -> &'static [&'static str] {
        &["Baseline", "gain of WAFLASH"]
    }

    fn runs(&self, scene: &Scene) -> Vec<Run> {
        let mut runs = Vec::new();
        for (input, choice, replay, _) in cases(scene) {
            runs.extend(["Baseline", "WAFLASH"].map(|variant| run(scene, variant, input, choice, &replay)));
        }
        runs
    }

    fn draw(&self, scene: &Scene, outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        for (input, choice, replay, how) in cases(scene) {
            let setting = format!("{how}, {}", choice.0);
            let run = |variant| run(scene, variant, input, choice, &replay);
            if let Some(value) = figure(outcomes, &run("Baseline"), mean_latency) {
                drawn.points.push(point(input, choice.1, &setting, "Baseline", value / 1e3, "us"));
            }
            if let Some(value) = less(outcomes, &run("Baseline"), &run("WAFLASH"), mean_latency) {
                drawn.points.push(point(input, choice.1, &setting, "gain of WAFLASH", value, "%"));
            }
        }
        drawn
    }
}

/// Two inputs tell it: the first model, and the first excerpt.
fn cases(scene: &Scene) -> Vec<(&Input, &'static Choice, String, &'static str)> {
    let mut cases = Vec::new();
    for input in scene.inputs("paper").take(1).chain(scene.inputs("excerpt").take(1)) {
        for (replay, how) in replays(scene, input) {
            cases.extend(CHOICES.iter().map(|choice| (input, choice, replay.clone(), how)));
        }
    }
    cases
}

fn run(scene: &Scene, variant: &str, input: &Input, choice: &Choice, replay: &str) -> Run {
    let (_, page, preparation, sets) = choice;
    let run = scene.run(page, variant, input, replay).prepared(*preparation);
    sets.iter().fold(run, |run, set| run.with(*set))
}

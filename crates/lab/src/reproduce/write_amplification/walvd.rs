//! Write amplification against logical data volume (WALVD): sub-tests of a run, as the recorder divides them.

use super::common::point;
use crate::reproduce::{Curve, Curves, Drawn, Input, Measured, Outcomes, Run};

/// What a sub-test is by equation 2, by the chips, and to the host.
pub(super) struct SubTest {
    /// `initial`, or its number from 1.
    pub(super) name: String,
    /// By the recorder, with the initial data's programs in the first, as the paper counts.
    pub(super) recorded: f64,
    /// By the recorder, of this sub-test alone.
    pub(super) alone: f64,
    /// By the chips, of this sub-test alone.
    pub(super) real: f64,
    /// Bytes that the host wrote, by the time it took, in MB/s.
    pub(super) rate: f64,
}

/// The sub-tests of a run without the initial data, whose programs go to the first.
pub(super) fn sub_tests(measured: &Measured) -> Vec<SubTest> {
    // Bytes of a page: the configuration has them as text.
    let of_run = |path: &str| measured.number(path).unwrap_or(f64::NAN);
    let page = of_run("ready_busy.real.write_amplification") * of_run("bytes.write") / of_run("ready_busy.real.pages");
    let counts = measured.length("subtests").min(measured.length("ready_busy.tests"));
    let mut initial = 0.0;
    let mut all = Vec::new();
    for index in 0..counts {
        let number = |path: &str| measured.number(path).unwrap_or(f64::NAN);
        let pages = number(&format!("ready_busy.tests.{index}.pages"));
        if measured.text(&format!("subtests.{index}.name")) == Some("initial") {
            initial = pages;
            continue;
        }
        let written = number(&format!("subtests.{index}.written_bytes"));
        all.push(SubTest {
            name: measured.text(&format!("subtests.{index}.name")).unwrap_or_default().to_string(),
            recorded: (initial + pages) * page / written,
            alone: pages * page / written,
            real: number(&format!("ready_busy.tests.{index}.real_pages")) * page / written,
            rate: number(&format!("subtests.{index}.write_bytes_per_s")) / 1e6,
        });
        initial = 0.0;
    }
    all
}

/// The columns that [`draw`] has.
pub(super) const SERIES: [&str; 5] = ["WA", "WA of the sub-test alone", "true WA", "write MB/s", "programmed MB/s"];

/// How a run's sub-tests are called, from which on they are stable, and the drive.
pub(super) struct Naming {
    pub(super) drive: &'static str,
    pub(super) prefix: &'static str,
    pub(super) stable_from: usize,
}

/// A row for each sub-test, one for the mean of the stable ones, and the line of a chart.
pub(super) fn draw(drawn: &mut Drawn, outcomes: &Outcomes, run: &Run, input: &Input, naming: &Naming) -> Option<Curve> {
    let tests = sub_tests(outcomes.get(run)?);
    let mut row = |setting: &str, tests: &[SubTest]| {
        let count = tests.len() as f64;
        let mean = |of: fn(&SubTest) -> f64| tests.iter().map(of).sum::<f64>() / count;
        let values = [
            mean(|test| test.recorded),
            mean(|test| test.alone),
            mean(|test| test.real),
            mean(|test| test.rate),
            mean(|test| test.real * test.rate),
        ];
        for (series, value) in SERIES.into_iter().zip(values) {
            drawn.points.push(point(input, naming.drive, setting, series, value, ""));
        }
    };
    for test in &tests {
        row(&format!("{}{}", naming.prefix, test.name), std::slice::from_ref(test));
    }
    let stable = tests.get(naming.stable_from - 1..).filter(|stable| !stable.is_empty());
    row("stable", stable.or(tests.last().map(std::slice::from_ref))?);
    let points = tests.iter().enumerate().map(|(index, test)| ((index + 1) as f64, test.recorded)).collect();
    Some(Curve { name: input.name.clone(), points })
}

/// A chart of such lines.
pub(super) fn chart(title: &str, input: &str, curves: Vec<Curve>) -> Curves {
    Curves {
        title: title.to_string(),
        x: "sub-test",
        x_log: false,
        y: "write amplification",
        input: input.to_string(),
        curves,
    }
}

//! Write amplification against logical data volume (WALVD): sub-tests of a run, as the recorder divides them.

use super::common::point;
use crate::frame::{Drawn, Input, Measured, Outcomes, Run, Scale, leading_number};

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
    /// Itself, and those that it stands for because it ended a level.
    pub(super) weight: f64,
}

/// The mean over sub-tests, with those for which a level stands.
pub(super) fn mean(tests: &[SubTest], of: fn(&SubTest) -> f64) -> Option<f64> {
    let weights: f64 = tests.iter().map(|test| test.weight).sum();
    let sum: f64 = tests.iter().map(|test| test.weight * of(test)).sum();
    (weights > 0.0).then(|| sum / weights)
}

/// The sub-tests of a run without the initial data, whose programs go to the first.
pub(super) fn sub_tests(measured: &Measured) -> Vec<SubTest> {
    // Bytes of a page: the configuration has them as text.
    let of_run = |path: &str| measured.number(path).unwrap_or(f64::NAN);
    let page = of_run("ready_busy.real.write_amplification") * of_run("bytes.write") / of_run("ready_busy.real.pages");
    let mut initial = 0.0;
    let mut all = Vec::new();
    for index in 0..measured.length("subtests") {
        let subtest = |key: &str| measured.number(&format!("subtests.{index}.{key}")).unwrap_or(f64::NAN);
        // A sub-test in which no chip did anything has no test of its own: they are told apart by their times.
        let until = measured.number(&format!("subtests.{}.begun_ns", index + 1)).unwrap_or(f64::INFINITY);
        let of_tests = |test: usize, key: &str| measured.number(&format!("ready_busy.tests.{test}.{key}"));
        let within = |test: &usize| {
            of_tests(*test, "begun_ns").is_some_and(|begun| begun >= subtest("begun_ns") && begun < until)
        };
        let test = (0..measured.length("ready_busy.tests")).find(within);
        let counted = |key: &str| test.and_then(|test| of_tests(test, key)).unwrap_or(0.0);
        let pages = counted("pages");
        if measured.text(&format!("subtests.{index}.name")) == Some("initial") {
            initial = pages;
            continue;
        }
        let written = subtest("written_bytes");
        all.push(SubTest {
            name: measured.text(&format!("subtests.{index}.name")).unwrap_or_default().to_string(),
            recorded: (initial + pages) * page / written,
            alone: pages * page / written,
            real: counted("real_pages") * page / written,
            rate: subtest("write_bytes_per_s") / 1e6,
            weight: 1.0 + measured.number(&format!("subtests.{index}.stands_for")).unwrap_or(0.0),
        });
        initial = 0.0;
    }
    all
}

/// The columns that [`draw`] has.
pub(super) const SERIES: [&str; 5] = ["WA", "WA of the sub-test alone", "true WA", "write", "programmed"];

/// Their units.
const UNITS: [&str; SERIES.len()] = ["", "", "", "MB/s", "MB/s"];

/// How a run's sub-tests are called, from which on they are stable, and the drive.
pub(super) struct Naming {
    pub(super) drive: &'static str,
    pub(super) prefix: &'static str,
    pub(super) stable_from: usize,
}

/// The runs of a figure's inputs.
pub(super) fn runs(inputs: Vec<(&Input, Run)>) -> Vec<Run> {
    inputs.into_iter().map(|(_, run)| run).collect()
}

/// A figure of inputs: WA and write throughput by sub-test, a line for each input.
pub(super) fn draw(outcomes: &Outcomes, inputs: Vec<(&Input, Run)>, naming: &Naming) -> Drawn {
    let mut drawn = Drawn::default();
    for (input, run) in inputs {
        rows(&mut drawn, outcomes, &run, input, naming);
    }
    for (series, title, y) in [
        (SERIES[0], "write amplification by sub-test", "write amplification"),
        (SERIES[3], "write throughput by sub-test", "written, MB/s"),
    ] {
        drawn.lines(title, Scale::Linear, ["sub-test", y], |point| {
            let number = leading_number(point.setting.strip_prefix(naming.prefix)?)?;
            (point.series == series).then(|| (point.workload.clone(), number))
        });
    }
    drawn.bars("write amplification once it is stable", ["", "write amplification"], |point| {
        let shown = point.series == SERIES[0] && point.setting == "stable";
        shown.then(|| ("mean of the stable sub-tests".to_string(), point.workload.clone()))
    });
    drawn
}

/// A row for each sub-test, and one for the mean of the stable ones.
fn rows(drawn: &mut Drawn, outcomes: &Outcomes, run: &Run, input: &Input, naming: &Naming) {
    let Some(measured) = outcomes.get(run) else { return };
    let tests = sub_tests(measured);
    let mut row = |setting: &str, tests: &[SubTest]| {
        let mean = |of: fn(&SubTest) -> f64| mean(tests, of).unwrap_or(f64::NAN);
        let values = [
            mean(|test| test.recorded),
            mean(|test| test.alone),
            mean(|test| test.real),
            mean(|test| test.rate),
            mean(|test| test.real * test.rate),
        ];
        for ((series, unit), value) in SERIES.into_iter().zip(UNITS).zip(values) {
            drawn.points.push(point(input, naming.drive, setting, series, value, unit));
        }
    };
    for test in &tests {
        row(&format!("{}{}", naming.prefix, test.name), std::slice::from_ref(test));
    }
    let stable = tests.get(naming.stable_from - 1..).filter(|stable| !stable.is_empty());
    if let Some(stable) = stable.or(tests.last().map(std::slice::from_ref)) {
        row("stable", stable);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_sub_test_that_stayed_in_the_cache_does_not_take_the_count_of_the_next() {
        let subtest = |name: &str, begun: u64| json!({ "name": name, "begun_ns": begun, "written_bytes": 4096, "write_bytes_per_s": 2e6 });
        let test = |begun: u64, pages: u64| json!({ "begun_ns": begun, "pages": pages, "real_pages": pages });
        let result = json!({ "devices": [{ "complete": true, "bytes": { "write": 12_288 },
            "subtests": [subtest("initial", 0), subtest("1", 100), subtest("2", 200), subtest("3", 300)],
            "ready_busy": { "real": { "pages": 9, "write_amplification": 3.0 },
                "tests": [test(5, 4), test(110, 2), test(310, 3)] } }] });
        let tests = sub_tests(&Measured::of(&result).expect("a drive"));
        let values: Vec<_> = tests.iter().map(|test| (&test.name[..], test.recorded, test.alone, test.real)).collect();
        assert_eq!(values, [("1", 6.0, 2.0, 2.0), ("2", 0.0, 0.0, 0.0), ("3", 3.0, 3.0, 3.0)]);
        assert_eq!(tests[0].rate, 2.0);
        assert_eq!(mean(&tests, |test| test.alone), Some(5.0 / 3.0));
        // A level of 3 that stands for two more.
        let mut tests = tests;
        tests[2].weight = 3.0;
        assert_eq!(mean(&tests, |test| test.alone), Some(11.0 / 5.0));
        assert_eq!(mean(&[], |test| test.alone), None);
    }
}

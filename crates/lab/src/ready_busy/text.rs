//! What a watched run recorded, for a terminal.

use std::fmt::Write as _;

use ssdlab_base::Nanos;
use ssdlab_measure::Window;

use super::ReadyBusy;
use crate::result::{DeviceResult, Subtest};

/// The recorder, the classifiers, and the levels at which the recorder goes wrong; then the sub-tests, if there were any.
pub(crate) fn render(device: &DeviceResult, watched: &ReadyBusy) -> String {
    let name = &device.name;
    let [above, below] = watched.window_ns.map(Nanos);
    let mut text = format!(
        "\nReady/Busy of {name}, {} of {}, a program T: {}, {} page(s) a low\n",
        watched.line,
        watched.geometry,
        Window { above, below },
        watched.pages_per_low
    );
    let ratio = |value: Option<f64>| value.map_or_else(|| "-".to_string(), |value| format!("{value:.3}"));
    let error = |value: Option<f64>| value.map_or_else(|| "-".to_string(), |value| format!("{:+.3} %", value * 100.0));
    let _ = writeln!(text, "  {:<18} {:>14} {:>9} {:>11}  lows missed, merged", "counted by", "pages", "WA", "off by");
    let mut line = |method: &str, pages: f64, amplification: Option<f64>, off: Option<f64>, lows: &str| {
        let _ = writeln!(text, "  {method:<18} {pages:>14.0} {:>9} {:>11}{lows}", ratio(amplification), error(off));
    };
    for recorder in &watched.recorders {
        let method = format!("recorder ({})", Nanos(recorder.sampling_ns));
        let lows = format!("  {}, {}", recorder.lows_missed, recorder.lows_merged);
        line(&method, recorder.pages, recorder.write_amplification, recorder.percentage_error, &lows);
    }
    for estimate in &watched.estimates {
        line(&estimate.method, estimate.pages, estimate.write_amplification, estimate.percentage_error, "");
    }
    line("really", watched.real.pages as f64, watched.real.write_amplification, None, "");
    let levels = &watched.levels;
    let level = |value: Option<f64>| value.map_or_else(|| "-".to_string(), |value| format!("{value:.4}"));
    let _ = writeln!(
        text,
        "  recorder / really = sampling {} x classification {} x plane {} x die {} x chip {} x channel {}",
        level(levels.sampling),
        level(levels.classification),
        level(levels.plane),
        level(levels.die),
        level(levels.chip),
        level(levels.channel)
    );
    text.push_str(&tests(watched, device.bytes.write, &device.subtests));
    text
}

fn tests(watched: &ReadyBusy, written_bytes: u64, subtests: &[Subtest]) -> String {
    if subtests.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "  {:<8} {:>10} {:>12} {:>10} {:>10} {:>8}\n",
        "sub-test", "written", "programs", "WA", "really", "MB/s"
    );
    let ratio = |value: Option<f64>| value.map_or_else(|| "-".to_string(), |value| format!("{value:.3}"));
    for (test, count) in subtests.iter().zip(watched.of_subtests(written_bytes, subtests)) {
        let _ = writeln!(
            text,
            "  {:<8} {:>10} {:>12} {:>10} {:>10} {:>8.2}",
            test.name,
            ssdlab_base::format_size(test.written_bytes),
            count.programs,
            ratio(count.counted),
            ratio(count.real),
            test.write_bytes_per_s / 1e6
        );
    }
    text
}

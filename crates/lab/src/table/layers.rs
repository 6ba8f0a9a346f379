//! What each host layer and each disk counted, as lines below the table.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{count, three_digits};
use crate::result::DeviceResult;
use crate::text::printable;
use ssdlab_base::{Nanos, format_size};
use ssdlab_host::LayerMetrics;

/// Most characters of a line.
const WIDTH: usize = 100;

/// What follows a counter's name where it is a time in nanoseconds.
const TIME: &str = "_ns";

/// The layers above a drive from the top down, and the disks below them, each with its counters that are not zero; nothing without
/// layers.
pub(super) fn render(device: &DeviceResult) -> String {
    let name = printable(&device.name);
    let layers = device.host_layers.iter().map(|layer| (layer.kind.clone(), parts(layer)));
    let disks = device.disks.iter().map(|disk| {
        let figures = disk.counters.iter().map(|(key, count)| (key.clone(), *count as f64)).collect();
        (printable(&disk.name).to_string(), of_figures(&figures))
    });
    lines(&format!("host layers of {name}, from the top down"), &layers.collect::<Vec<_>>())
        + &lines(&format!("disks of {name}"), &disks.collect::<Vec<_>>())
}

/// A title, and a line for each name with its parts, which goes on below where it is long; nothing without names.
fn lines(title: &str, all: &[(String, Vec<String>)]) -> String {
    let Some(width) = all.iter().map(|(name, _)| name.chars().count()).max() else { return String::new() };
    let mut text = format!("\n{title}\n");
    for (name, parts) in all {
        let mut line = format!("  {name:width$}  ");
        let indent = line.chars().count();
        for (place, part) in parts.iter().enumerate() {
            if place > 0 {
                line.push(',');
                if line.chars().count() + 1 + part.chars().count() > WIDTH {
                    let _ = writeln!(text, "{line}");
                    line = " ".repeat(indent);
                } else {
                    line.push(' ');
                }
            }
            line.push_str(part);
        }
        let _ = writeln!(text, "{line}");
    }
    text
}

/// A layer's requests and its own counters, in words.
fn parts(layer: &LayerMetrics) -> Vec<String> {
    let (taken, sent) = (&layer.taken.requests, &layer.sent.requests);
    let requests = format!("took {}, sent {}", count(taken.iter().sum()), count(sent.iter().sum()));
    std::iter::once(requests).chain(of_figures(&layer.figures)).collect()
}

/// Counters that are not zero, in words. A time follows in brackets what was counted under the name before `_ns`.
fn of_figures(figures: &BTreeMap<String, f64>) -> Vec<String> {
    let of_figure = |(key, value): (&String, &f64)| {
        let is_counted = |name: &str| figures.get(name).is_some_and(|counted| *counted != 0.0);
        if *value == 0.0 || key.strip_suffix(TIME).is_some_and(is_counted) {
            return None;
        }
        let time = figures.get(&format!("{key}{TIME}")).filter(|time| **time > 0.0);
        let time = time.map_or(String::new(), |time| format!(" ({})", Nanos(time.round() as u64)));
        Some(format!("{} {}{time}", name(key), in_words(key, *value)))
    };
    figures.iter().filter_map(of_figure).collect()
}

/// A counter's name without its unit.
fn name(key: &str) -> String {
    let name = [TIME, "_bytes"].iter().find_map(|unit| key.strip_suffix(unit)).unwrap_or(key);
    name.replace('_', " ")
}

/// A counter with its unit, which its name says.
fn in_words(key: &str, value: f64) -> String {
    match value {
        _ if key.ends_with(TIME) => Nanos(value.round() as u64).to_string(),
        _ if key.ends_with("_bytes") => format_size(value.round() as u64),
        _ if value.fract() == 0.0 && value >= 0.0 => count(value as u64),
        _ => three_digits(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_says_what_it_counted_and_nothing_that_is_zero() {
        let figures = [
            ("hits", 1314.0),
            ("misses", 0.0),
            ("held", 3.0),
            ("held_ns", 2_500_000.0),
            ("alone_ns", 1_000.0),
            ("map_bytes", 8192.0),
            ("share", 0.251),
        ];
        let figures: BTreeMap<String, f64> = figures.iter().map(|(key, value)| ((*key).to_string(), *value)).collect();
        let layer = LayerMetrics { kind: "cache".to_string(), figures, ..LayerMetrics::default() };
        let expected =
            ["took 0, sent 0", "alone 1.00 us", "held 3 (2.50 ms)", "hits 1,314", "map 8 KiB", "share 0.251"];
        assert_eq!(parts(&layer), expected);
    }
}

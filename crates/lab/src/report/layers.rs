//! The layers of host software above the drives: how they are set.

use ssdlab_host::LayerMetrics;

use super::html::escape;
use super::tables::capital;
use crate::result::RunResult;

/// The layers that the first drive ran under: every drive runs under the same.
pub(super) fn of(run: &RunResult) -> &[LayerMetrics] {
    run.devices.first().map_or(&[][..], |device| &device.host_layers)
}

/// What a layer is called where all of them are in sight: its kind, with its place from the top where a kind repeats.
pub(super) fn name(layers: &[LayerMetrics], place: usize) -> String {
    let Some(layer) = layers.get(place) else { return String::new() };
    let alike = |other: &&LayerMetrics| other.kind == layer.kind;
    match layers.iter().filter(alike).count() {
        1 => layer.kind.clone(),
        _ => format!("{} {}", layer.kind, layers.iter().take(place + 1).filter(alike).count()),
    }
}

/// Every layer's settings, the topmost first; nothing of a run without host software.
pub(super) fn configuration(run: &RunResult) -> String {
    let layers = of(run);
    if layers.is_empty() {
        return String::new();
    }
    let settings: String = layers
        .iter()
        .enumerate()
        .map(|(place, layer)| {
            let settings: Vec<String> =
                layer.configuration.iter().map(|(key, value)| format!("{} = {}", escape(key), escape(value))).collect();
            let settings = if settings.is_empty() { "no settings".to_string() } else { settings.join("\n") };
            format!("<h4>{}</h4><pre>{settings}</pre>", escape(&capital(&name(layers, place))))
        })
        .collect();
    let file = run.host.as_ref().map_or_else(String::new, |host| format!(" {}", escape(host)));
    let order = if layers.len() > 1 { ", the topmost layer first" } else { "" };
    format!("<details><summary>Host{file}{order}</summary>{settings}</details>")
}

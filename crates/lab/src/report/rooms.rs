//! The rooms of host software above the drives: how they are set.

use ssdlab_host::RoomFigures;

use super::html::escape;
use super::tables::capital;
use crate::result::RunResult;

/// The rooms that the first drive ran under: every drive runs under the same.
pub(super) fn of(run: &RunResult) -> &[RoomFigures] {
    run.devices.first().map_or(&[][..], |device| &device.host_layers)
}

/// What a room is called where all of them are in sight: its kind, with its place from the top where a kind repeats.
pub(super) fn name(rooms: &[RoomFigures], place: usize) -> String {
    let Some(room) = rooms.get(place) else { return String::new() };
    let alike = |other: &&RoomFigures| other.kind == room.kind;
    match rooms.iter().filter(alike).count() {
        1 => room.kind.clone(),
        _ => format!("{} {}", room.kind, rooms.iter().take(place + 1).filter(alike).count()),
    }
}

/// Every room's settings, the topmost first; nothing of a run without host software.
pub(super) fn configuration(run: &RunResult) -> String {
    let rooms = of(run);
    if rooms.is_empty() {
        return String::new();
    }
    let settings: String = rooms
        .iter()
        .enumerate()
        .map(|(place, room)| {
            let settings: Vec<String> =
                room.configuration.iter().map(|(key, value)| format!("{} = {}", escape(key), escape(value))).collect();
            let settings = if settings.is_empty() { "no settings".to_string() } else { settings.join("\n") };
            format!("<h4>{}</h4><pre>{settings}</pre>", escape(&capital(&name(rooms, place))))
        })
        .collect();
    let file = run.host.as_ref().map_or_else(String::new, |host| format!(" {}", escape(host)));
    let order = if rooms.len() > 1 { ", the topmost layer first" } else { "" };
    format!("<details><summary>Host{file}{order}</summary>{settings}</details>")
}

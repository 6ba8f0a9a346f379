//! A resolved drive written back as a description: every default filled in, every quantity in its canonical form.
//!
//! It promises that reading it back gives the same configuration, and it is what results carry so that a run can be
//! repeated from its own file.

use ssdlab_base::Nanos;
use ssdlab_flash::{FlashConfig, Geometry, Latency, OobUse, SchedulerKind};
use toml::{Table, Value};

use super::key::{Family, Words, word as word_of};
use super::keys;
use super::quantity::{bandwidth, frequency, latency, size, span};
use super::settings::Settings;
use crate::{Allocation, Answers, ControllerConfig, DriveConfig, Level, Owners, PlacementConfig, ReadUnwritten};

/// The description that says all of `config` and nothing else.
pub fn expanded(config: &DriveConfig) -> Table {
    filled_in(config, false)
}

/// The description that says all of `config`, with the keys of every policy and design.
pub(super) fn with_all_keys(config: &DriveConfig) -> Table {
    filled_in(config, true)
}

fn filled_in(config: &DriveConfig, all: bool) -> Table {
    let with_own = |section, family, own| with_own(section, family, own, &config.flash.geometry, all);
    let capacity = table([("user", size(config.user_bytes))]);
    let interface = &config.interface;
    let mut fields = vec![
        ("kind", word(interface.kind)),
        ("queues", count(interface.queues)),
        ("queue_depth", count(interface.queue_depth)),
        ("bandwidth", bandwidth(interface.bandwidth)),
        ("command_overhead", span(interface.command_overhead)),
        ("processing", span(interface.processing)),
    ];
    // Descriptions that do not set them are written as before there were such keys.
    for (key, overhead) in [("read_overhead", interface.read_overhead), ("write_overhead", interface.write_overhead)] {
        if all || overhead != Nanos::ZERO {
            fields.push((key, span(overhead)));
        }
    }
    // Only drives with append-only segments read it.
    if all || interface.read_unwritten != ReadUnwritten::Error {
        fields.push(("read_unwritten", word(interface.read_unwritten)));
    }
    if all || (interface.command_codes, interface.answers) != (0, Answers::Words) {
        fields.push(("command_codes", count(interface.command_codes)));
        fields.push(("answers", word(interface.answers)));
    }
    let interface = table(fields);
    let buffer = table([
        ("policy", text(&config.buffer.policy)),
        ("size", size(config.buffer.bytes)),
        ("latency", span(config.buffer.latency)),
        ("destage", word(config.buffer.destage.when)),
        ("high_watermark", percent(config.buffer.destage.high_percent)),
        ("low_watermark", percent(config.buffer.destage.low_percent)),
    ]);
    let mut ftl = vec![
        ("design", text(&config.ftl.design)),
        ("mapping_unit", size(u64::from(config.ftl.mapping_unit))),
        ("allocation", allocation(config.ftl.allocation)),
        ("superblock", word(config.ftl.superblock)),
        ("parity", word(config.ftl.parity)),
        ("separate_gc_frontier", Value::Boolean(config.ftl.separate_gc_frontier)),
        ("streams", count(config.ftl.streams)),
    ];
    // Only drives without metadata in OOB areas say so.
    if all || config.ftl.owners != Owners::Oob {
        ftl.push(("owners", word(config.ftl.owners)));
    }
    let ftl = table(ftl);
    let gc = &config.gc;
    let gc = table([
        ("victim", text(&gc.victim)),
        ("free_blocks", count(gc.free_blocks)),
        ("background_free_blocks", count(gc.background_free_blocks)),
        ("idle_after", span(gc.idle_after)),
        ("copyback", Value::Boolean(gc.copyback)),
        ("pacing", word(gc.pacing)),
        ("dynamic_wear_levelling", Value::Boolean(gc.dynamic_wear_levelling)),
        ("static_wear_threshold", count(gc.static_wear_threshold)),
    ]);
    let placement = table([("policy", text(&config.placement.policy))]);
    let mut whole = Table::from_iter(
        [
            ("name", text(&config.name)),
            ("flash", flash(&config.flash, config.timed, all)),
            ("capacity", capacity),
            ("interface", interface),
            ("buffer", with_own(buffer, &keys::BUFFERS, &config.buffer.own)),
            ("ftl", with_own(ftl, &keys::DESIGNS, &config.ftl.own)),
            ("gc", with_own(gc, &keys::VICTIMS, &config.gc.own)),
        ]
        .map(|(key, value)| (key.to_string(), value)),
    );
    // Drives without it are written as before there was such a section.
    if all || config.controller != ControllerConfig::default() {
        whole.insert("controller".to_string(), controller(&config.controller));
    }
    // Descriptions that set nothing of it are written as before there was such a section.
    if all || config.placement != PlacementConfig::default() {
        let placement = with_own(placement, &keys::PLACEMENTS, &config.placement.own);
        whole.insert("placement".to_string(), placement);
    }
    whole
}

fn controller(config: &ControllerConfig) -> Value {
    let mut fields = vec![
        ("command_cycles", count(config.command_cycles)),
        ("map_entry_cycles", count(config.map_entry_cycles)),
        ("operation_cycles", count(config.operation_cycles)),
        ("completion_cycles", count(config.completion_cycles)),
        ("copy_bandwidth", bandwidth(config.copy_bandwidth)),
        ("dram", size(config.dram)),
        ("sram", size(config.sram)),
        ("reads", word(config.reads)),
        ("gather_share", percent(config.gather_percent)),
    ];
    if config.clock > 0 {
        fields.push(("clock", frequency(config.clock)));
    }
    table(fields)
}

/// A section with the keys of single policies or designs: those of the one that is chosen and of any that is set, or all.
fn with_own(section: Value, family: &Family, own: &Settings, geometry: &Geometry, all: bool) -> Value {
    let Value::Table(mut section) = section else { return section };
    let chosen = section.get(family.key).and_then(Value::as_str).unwrap_or_default().to_string();
    for (member, keys) in (family.members)() {
        if !all && !family.expands_all && member != chosen && !keys.iter().any(|key| own.has(key.name)) {
            continue;
        }
        for key in keys {
            if let Some(value) = own.value(key, geometry) {
                section.insert(key.name.to_string(), key.kind.toml(value));
            }
        }
    }
    Value::Table(section)
}

fn flash(config: &FlashConfig, timed: bool, all: bool) -> Value {
    let geometry = &config.geometry;
    let mut flash = Table::from_iter(
        [
            ("channels", count(geometry.channels)),
            ("chips_per_channel", count(geometry.chips_per_channel)),
            ("dies_per_chip", count(geometry.dies_per_chip)),
            ("planes_per_die", count(geometry.planes_per_die)),
            ("blocks_per_plane", count(geometry.blocks_per_plane)),
            ("pages_per_block", count(geometry.pages_per_block)),
            ("page_size", size(u64::from(geometry.page_bytes))),
            ("oob_size", size(u64::from(geometry.oob_bytes))),
            ("multi_plane", word(config.multi_plane)),
            ("copyback", if config.checks_copyback { text("checked") } else { Value::Boolean(config.copyback) }),
            ("cache_program", Value::Boolean(config.cache_program)),
            ("program_suspend", Value::Boolean(config.program_suspend)),
            ("erase_suspend", Value::Boolean(config.erase_suspend)),
            ("suspend_limit", count(config.suspend_limit)),
        ]
        .map(|(key, value)| (key.to_string(), value)),
    );
    let mut insert = |key: &str, value: Value| flash.insert(key.to_string(), value);
    if all || config.oob != OobUse::Free {
        insert("oob", word(config.oob));
    }
    match config.scheduler {
        SchedulerKind::Fifo => insert("scheduler", text("fifo")),
        SchedulerKind::ReadsFirst => insert("scheduler", text("reads-first")),
        SchedulerKind::SingleFifo => insert("scheduler", text("single-fifo")),
        SchedulerKind::InOrder => insert("scheduler", text("in-order")),
        SchedulerKind::HostFirst { starvation } => {
            insert("scheduler_starvation", span(starvation));
            insert("scheduler", text("host-first"))
        }
    };
    let timing = &config.timing;
    if timed {
        insert(
            "timing",
            table([
                ("read", latencies(&timing.read)),
                ("program", latencies(&timing.program)),
                ("erase", latency(timing.erase)),
                ("transfer", span(timing.transfer)),
                ("command", span(timing.command)),
                ("suspend", span(timing.suspend)),
                ("resume", span(timing.resume)),
            ]),
        );
    } else {
        insert("timing", text("none"));
    }
    let faults = &config.faults;
    let mut rates = Table::from_iter(
        [
            ("program_failure", faults.program_failure),
            ("erase_failure", faults.erase_failure),
            ("uncorrectable_read", faults.uncorrectable_read),
            ("factory_bad", faults.factory_bad),
        ]
        .map(|(key, rate)| (key.to_string(), Value::Float(rate))),
    );
    if let Some(endurance) = faults.endurance {
        rates.insert("endurance".to_string(), count(endurance));
    }
    let script = faults
        .script
        .iter()
        .map(|fault| table([("kind", word(fault.kind)), ("block", count(fault.block.0)), ("nth", count(fault.nth))]))
        .collect();
    rates.insert("script".to_string(), Value::Array(script));
    insert("faults", Value::Table(rates));
    Value::Table(flash)
}

fn table<'a>(entries: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    Value::Table(entries.into_iter().map(|(key, value)| (key.to_string(), value)).collect())
}

fn text(text: &str) -> Value {
    Value::String(text.to_string())
}

fn count(count: u32) -> Value {
    Value::Integer(i64::from(count))
}

fn percent(percent: u32) -> Value {
    Value::String(format!("{percent}%"))
}

fn word<T: Words>(value: T) -> Value {
    text(word_of(value))
}

fn latencies(list: &[Latency]) -> Value {
    match list {
        [one] => latency(*one),
        list => Value::Array(list.iter().map(|entry| latency(*entry)).collect()),
    }
}

fn allocation(allocation: Allocation) -> Value {
    let order = |levels: [Level; 4]| -> String {
        levels
            .iter()
            .map(|level| match level {
                Level::Channel => 'c',
                Level::Way => 'w',
                Level::Die => 'd',
                Level::Plane => 'p',
            })
            .collect()
    };
    Value::String(match allocation {
        Allocation::Static(levels) => order(levels),
        Allocation::RoundRobin(levels) => format!("round-robin:{}", order(levels)),
        Allocation::Dynamic => "dynamic".to_string(),
    })
}

//! `ssdlab list`: what a description can name, one line each, and the keys of descriptions.

use std::io::Write as _;

use serde::Serialize;
use ssdlab_base::closest;
use ssdlab_device::description::{self, Group};
use ssdlab_device::{design_commands, registered};
use ssdlab_host::Host;
use ssdlab_lab::files::HOST_TIME_KEYS;
use ssdlab_workload::{files, model};

use crate::args::List;
use crate::failure::Failure;
use crate::stdout;

/// A policy or design.
#[derive(Serialize)]
struct Design {
    kind: &'static str,
    name: String,
    summary: String,
    /// The command set that a design of drives has.
    #[serde(skip_serializing_if = "Option::is_none")]
    commands: Option<&'static str>,
    /// The command sets that a layer, or a file system, needs: the drive below it has one of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    needs: Vec<&'static str>,
    /// The least and the most devices that a layer stands on.
    #[serde(skip_serializing_if = "Option::is_none")]
    devices: Option<(usize, usize)>,
}

/// Characters of a line of text.
const WIDTH: usize = 110;
/// The section of the keys of a host's description.
const HOST: &str = "host";
/// The section of the keys of host time.
const HOST_TIME: &str = "host-time";
/// A workload that is named after what it does, as an example, and what its parts are.
const MICRO: &str = "micro:4KiB-RD-100%-W-Y";
const MICRO_SUMMARY: &str = "a micro-benchmark by its name: bytes of a request, RD (random) or SQ (sequential), percent of writes, \
                             aligned to 4 KiB (Y) or 512 bytes (N)";
/// The kind of a design of drives, as the registry calls it.
const DESIGN: &str = "ftl.design";

/// The keys of a section and of those below it, of all where none is named.
fn keys(args: &List, section: &str) -> Result<(), Failure> {
    if args.schema {
        let schema = match section {
            "" => description::schema("ssdlab drive description", description::KEYS),
            HOST => description::schema("ssdlab host description", ssdlab_host::KEYS),
            _ => return Err(Failure::input(format!("--keys {section}: --schema takes no section, or 'host'"))),
        };
        return stdout::print_json(&schema);
    }
    let mut groups = description::groups(description::KEYS);
    groups.extend(description::groups(ssdlab_host::KEYS).into_iter().map(|group| group.below(HOST)));
    for kind in ssdlab_fs::kinds::KINDS {
        let section = format!("fs.{}", kind.name);
        groups.extend(description::groups(kind.keys).into_iter().map(|group| group.below(&section)));
    }
    groups.extend(description::groups(HOST_TIME_KEYS).into_iter().map(|group| group.below(HOST_TIME)));
    let mut sections: Vec<String> = groups.iter().map(|group| group.section.clone()).collect();
    sections.push("fs".to_string());
    let below = format!("{section}.");
    groups.retain(|group| section.is_empty() || group.section == section || group.section.starts_with(&below));
    if groups.is_empty() {
        let mut sections: Vec<&str> = sections.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
        sections.dedup();
        let hint = closest(section, sections.iter().copied());
        let hint = hint.map_or(String::new(), |name| format!("; did you mean '{name}'?"));
        let reason = format!("--keys: found the section '{section}', expected one of {}{hint}", sections.join(", "));
        return Err(Failure::input(reason));
    }
    if args.json {
        return stdout::print_json(&groups.iter().flat_map(Group::json).collect::<Vec<_>>());
    }
    let texts: Vec<String> = match args.markdown {
        true => description::tables(&groups),
        false => groups.iter().map(|group| group.text(WIDTH)).collect(),
    };
    stdout::print(|to| to.write_all(texts.join("\n").as_bytes()))
}

/// The command sets that a layer of this kind needs: the drive below it has one of them.
fn commands_below(kind: &str) -> Vec<&'static str> {
    // Every kind of layer has defaults for all keys.
    let host = Host::parse(&format!("[[layer]]\nkind = \"{kind}\"\n"), kind);
    host.map_or_else(|_| Vec::new(), |host| host.commands().iter().map(|set| set.name).collect())
}

/// Lists what a description can name, or the keys it can hold.
pub(crate) fn list(args: &List) -> Result<(), Failure> {
    if let Some(section) = &args.keys {
        return keys(args, section);
    }
    let design = |kind, name: &str, summary: &str| Design {
        kind,
        name: name.into(),
        summary: summary.into(),
        commands: if kind == DESIGN { design_commands(name).map(|set| set.name) } else { None },
        needs: Vec::new(),
        devices: None,
    };
    let mut designs: Vec<Design> =
        registered().into_iter().map(|found| design(found.kind, found.name, found.summary)).collect();
    designs.extend(ssdlab_host::LAYERS.iter().map(|kind| Design {
        needs: commands_below(kind.name),
        devices: Some(kind.devices),
        ..design("host.layer", kind.name, kind.summary)
    }));
    designs.extend(ssdlab_fs::kinds::KINDS.iter().map(|kind| Design {
        needs: kind.command_set.iter().map(|set| set.name).collect(),
        ..design("fs", kind.name, kind.summary)
    }));
    designs.extend(model::shipped().iter().map(|(name, summary)| design("workload.model", name, summary)));
    designs.push(design("workload", MICRO, MICRO_SUMMARY));
    designs.extend(files::shipped().map(|found| design("workload.files", &found.name, &found.summary)));
    if args.json {
        return stdout::print_json(&designs);
    }
    let rows: Vec<Vec<String>> =
        designs.into_iter().map(|design| vec![design.kind.into(), design.name, design.summary]).collect();
    stdout::print(|to| to.write_all(stdout::aligned(&rows).as_bytes()))
}

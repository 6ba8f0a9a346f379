//! `ssdlab devices`: the drives and disks that ship, one line each, or what follows from one description: its datasheet and every key.

use std::io::Write as _;

use serde::Serialize;
use ssdlab::shipped::{DISKS, DRIVES, Shipped};
use ssdlab_base::format_size;
use ssdlab_device::description::{Filled, Source, to_toml};
use ssdlab_device::{Description, DriveConfig, InterfaceKind};
use ssdlab_disk::DiskConfig;
use ssdlab_lab::datasheet::{self, Datasheet};
use ssdlab_lab::text::columns;

use crate::args::Devices;
use crate::failure::Failure;
use crate::shipped;
use crate::stdout;

/// A drive or a disk that ships.
#[derive(Serialize)]
struct Drive {
    name: String,
    user_bytes: u64,
    interface: &'static str,
    design: String,
    summary: String,
}

/// Lists the drives and disks that ship, or shows one.
pub(crate) fn devices(args: &Devices) -> Result<(), Failure> {
    let Some(device) = &args.device else { return list(args.json) };
    if let Some(shipped) = shipped::disk(device) {
        return disk(args, shipped);
    }
    if args.toml {
        let text = shipped::text(device)?;
        return stdout::print(|to| to.write_all(text.as_bytes()));
    }
    let mut description = shipped::open(device)?;
    for assignment in &args.set {
        description.set(assignment).map_err(Failure::input)?;
    }
    let config = description.resolve().map_err(Failure::input)?;
    if args.expanded {
        return stdout::print(|to| to.write_all(to_toml(&config).as_bytes()));
    }
    show(&description, &config, args.json)
}

fn list(json: bool) -> Result<(), Failure> {
    let drives = DRIVES.iter().map(|shipped| drive(*shipped));
    let disks = DISKS.iter().map(|shipped| listed_disk(*shipped));
    let mut drives = drives.chain(disks).collect::<Result<Vec<_>, _>>()?;
    drives.sort_by(|one, other| one.name.cmp(&other.name));
    if json {
        return stdout::print_json(&drives);
    }
    let rows: Vec<Vec<String>> = drives
        .into_iter()
        .map(|drive| {
            vec![drive.name, format_size(drive.user_bytes), drive.interface.into(), drive.design, drive.summary]
        })
        .collect();
    stdout::print(|to| to.write_all(stdout::aligned(&rows).as_bytes()))
}

fn drive(shipped: Shipped) -> Result<Drive, Failure> {
    let description = shipped::parse(shipped).map_err(Failure::work)?;
    let config = description.resolve().map_err(Failure::work)?;
    Ok(Drive {
        name: shipped.name.to_string(),
        user_bytes: config.user_bytes,
        interface: match config.interface.kind {
            InterfaceKind::Nvme => "nvme",
            InterfaceKind::Sata => "sata",
        },
        design: config.ftl.design,
        summary: description.summary().unwrap_or_default().to_string(),
    })
}

fn listed_disk(Shipped { name, text }: Shipped) -> Result<Drive, Failure> {
    let config = DiskConfig::parse(text, name, &[]).map_err(Failure::work)?;
    Ok(Drive {
        name: name.to_string(),
        user_bytes: config.bytes(),
        interface: "sata",
        design: "disk".to_string(),
        summary: DiskConfig::summary_of(text).unwrap_or_default(),
    })
}

/// Shows a disk that ships: its text, or what follows from it.
fn disk(args: &Devices, shipped: Shipped) -> Result<(), Failure> {
    let Shipped { name, text } = shipped;
    if args.toml {
        return stdout::print(|to| to.write_all(text.as_bytes()));
    }
    if args.expanded {
        return Err(Failure::input(format!("--expanded: '{name}' is a hard disk, expected a drive")));
    }
    let config = DiskConfig::parse(text, &shipped.place(), &args.set).map_err(Failure::input)?;
    let sheet = config.datasheet();
    if args.json {
        let sheet: serde_json::Map<String, serde_json::Value> =
            sheet.into_iter().map(|line| (line.key.to_string(), line.value.into())).collect();
        return stdout::print_json(&sheet);
    }
    let summary = DiskConfig::summary_of(text).unwrap_or_default();
    let rows: Vec<Vec<String>> = sheet.into_iter().map(|line| vec![line.name.to_string(), line.shown]).collect();
    stdout::print(|to| write!(to, "{name}: {summary}\n\n{}", columns(&rows, usize::MAX)))
}

/// A drive as programs read it.
#[derive(Serialize)]
struct Shown<'a> {
    summary: Option<&'a str>,
    source: Option<&'a str>,
    notes: Option<&'a str>,
    #[serde(flatten)]
    datasheet: &'a Datasheet,
    keys: Vec<ShownKey>,
}

#[derive(Serialize)]
struct ShownKey {
    key: String,
    value: serde_json::Value,
    from: String,
}

fn show(description: &Description, config: &DriveConfig, json: bool) -> Result<(), Failure> {
    let datasheet = Datasheet::of(config).map_err(|error| Failure::input(description.place(&error)))?;
    let keys = description.filled(config);
    if json {
        let key = |filled: Filled| -> Result<ShownKey, Failure> {
            let value = serde_json::to_value(&filled.value).map_err(Failure::work)?;
            Ok(ShownKey { key: filled.key, value, from: word(&filled.from) })
        };
        return stdout::print_json(&Shown {
            summary: description.summary(),
            source: description.source(),
            notes: description.notes(),
            datasheet: &datasheet,
            keys: keys.into_iter().map(key).collect::<Result<_, _>>()?,
        });
    }
    let title = match description.summary() {
        Some(summary) => format!("{}: {summary}", config.name),
        None => config.name.clone(),
    };
    let row = |filled: Filled| vec![filled.key, filled.value.to_string(), word(&filled.from)];
    let header = ["key", "value", "from"].map(str::to_string).to_vec();
    let rows: Vec<Vec<String>> = std::iter::once(header).chain(keys.into_iter().map(row)).collect();
    stdout::print(|to| write!(to, "{title}\n\n{}\n{}", datasheet::render(&datasheet), columns(&rows, usize::MAX)))
}

/// Where a value is from, in a word.
fn word(from: &Source) -> String {
    match from {
        Source::Description => "description".to_string(),
        Source::Override => "--set".to_string(),
        Source::Key(key) => key.clone(),
        Source::Default => "default".to_string(),
    }
}

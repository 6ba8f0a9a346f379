//! `ssdlab devices` and `ssdlab designs`: what there is, one line each.

use std::io::Write as _;

use serde::Serialize;
use ssdlab_base::format_size;
use ssdlab_device::{InterfaceKind, registered};
use ssdlab_workload::{files, model};

use crate::args::{Designs, Devices};
use crate::failure::Failure;
use crate::shipped;
use crate::stdout;

/// A drive that ships.
#[derive(Serialize)]
struct Drive {
    name: String,
    user_bytes: u64,
    interface: &'static str,
    design: String,
    summary: String,
}

/// A policy or design.
#[derive(Serialize)]
struct Design {
    kind: &'static str,
    name: String,
    summary: String,
}

/// Lists the drives that ship, or prints one's description.
pub(crate) fn devices(args: &Devices) -> Result<(), Failure> {
    if let Some(name) = &args.name {
        let text = shipped::text(name)?;
        return stdout::print(|to| to.write_all(text.as_bytes()));
    }
    let drives = shipped::DESCRIPTIONS.iter().map(|(name, text)| drive(name, text)).collect::<Result<Vec<_>, _>>()?;
    if args.json {
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

fn drive(name: &str, text: &str) -> Result<Drive, Failure> {
    let description = shipped::parse(name, text).map_err(Failure::work)?;
    let config = description.resolve().map_err(Failure::work)?;
    Ok(Drive {
        name: name.to_string(),
        user_bytes: config.user_bytes,
        interface: match config.interface.kind {
            InterfaceKind::Nvme => "nvme",
            InterfaceKind::Sata => "sata",
        },
        design: config.ftl.design,
        summary: description.summary().unwrap_or_default().to_string(),
    })
}

/// Lists what a description can name.
pub(crate) fn designs(args: &Designs) -> Result<(), Failure> {
    let design = |kind, name: &str, summary: &str| Design { kind, name: name.into(), summary: summary.into() };
    let mut designs: Vec<Design> =
        registered().into_iter().map(|found| design(found.kind, found.name, found.summary)).collect();
    designs.extend(ssdlab_host::ROOMS.iter().map(|(name, summary)| design("host.room", name, summary)));
    designs.extend(model::shipped().iter().map(|(name, summary)| design("workload.model", name, summary)));
    designs.extend(files::shipped().map(|found| design("workload.files", &found.name, &found.summary)));
    if args.json {
        return stdout::print_json(&designs);
    }
    let rows: Vec<Vec<String>> =
        designs.into_iter().map(|design| vec![design.kind.into(), design.name, design.summary]).collect();
    stdout::print(|to| to.write_all(stdout::aligned(&rows).as_bytes()))
}

//! The descriptions that ship, inside the command.

use std::borrow::Cow;
use std::cell::RefCell;
use std::path::Path;

use ssdlab_base::{closest, read_text};
use ssdlab_device::description::BYTES_MAX;
use ssdlab_device::{Description, DescriptionError};
use ssdlab_host::{Host, UnknownDrive};

use crate::failure::Failure;

/// File stem and text of each description, sorted.
pub(crate) const DESCRIPTIONS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/shipped.rs"));

/// File stem and text of each description of a disk, sorted.
pub(crate) const DISKS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/disks.rs"));

/// The disk that ships under this name.
pub(crate) fn disk(name: &str) -> Option<&'static (&'static str, &'static str)> {
    DISKS.iter().find(|(shipped, _)| *shipped == name && !Path::new(name).is_file())
}

/// The text of what `--device` was given, as it was written.
pub(crate) fn text(device: &str) -> Result<Cow<'static, str>, Failure> {
    match find(device)? {
        Found::Shipped(_, text) => Ok(Cow::Borrowed(text)),
        Found::File(path) => read_text(path, BYTES_MAX, "a description")
            .map(Cow::Owned)
            .map_err(|cause| Failure::input(format!("{device}: {cause}"))),
    }
}

/// What `--device` was given.
pub(crate) fn open(device: &str) -> Result<Description, Failure> {
    match find(device)? {
        Found::Shipped(name, text) => parse(name, text).map_err(Failure::input),
        Found::File(path) => Description::load(path).map_err(Failure::input),
    }
}

/// What `--device` can be given.
enum Found<'a> {
    /// The name of a description that ships, and its text.
    Shipped(&'static str, &'static str),
    File(&'a Path),
}

/// A file of a name comes before a description that ships under it.
fn find(device: &str) -> Result<Found<'_>, Failure> {
    let path = Path::new(device);
    let bare = !device.contains(['/', '\\']) && path.extension().is_none();
    if !bare || path.is_file() {
        return Ok(Found::File(path));
    }
    if disk(device).is_some() {
        let hint = "a disk that ships is shown by 'ssdlab devices NAME'";
        return Err(Failure::input(format!("'{device}' is a hard disk, expected a drive")).hint(hint));
    }
    let shipped = DESCRIPTIONS.iter().find(|(name, _)| *name == device);
    shipped.map(|(name, text)| Found::Shipped(name, text)).ok_or_else(|| {
        Failure::input(format!("'{device}' is neither a file nor a drive that ships")).hint(ships(device))
    })
}

/// A description that ships: it is inside the command, so what is said of it names no file.
pub(crate) fn parse(name: &str, text: &str) -> Result<Description, DescriptionError> {
    Description::parse(text, &format!("shipped description {name}"))
}

/// What `--host` was given: a file; drives in it are named as `--device` names them.
pub(crate) fn host(path: &Path) -> Result<Host, Failure> {
    host_and_drives(path).map(|(host, _)| host)
}

/// What `--host` was given, and the names of the drives in it.
pub(crate) fn host_and_drives(path: &Path) -> Result<(Host, Vec<String>), Failure> {
    let names = RefCell::new(Vec::new());
    let drive = |device: &str| {
        names.borrow_mut().push(device.to_string());
        named(device)
    };
    let host = Host::load(path, &drive).map_err(Failure::input)?;
    Ok((host, names.into_inner()))
}

/// A drive as a host's description names it: as `--device` does.
pub(crate) fn named(device: &str) -> Result<Description, UnknownDrive> {
    open(device).map_err(|failure| UnknownDrive(failure.in_a_sentence()))
}

/// What ships, and what of it was probably meant.
fn ships(written: &str) -> String {
    let names: Vec<&str> = DESCRIPTIONS.iter().map(|(name, _)| *name).collect();
    match closest(written, names.iter().copied()) {
        Some(name) => format!("did you mean '{name}'? These ship: {}", names.join(", ")),
        None => format!("these ship: {}", names.join(", ")),
    }
}

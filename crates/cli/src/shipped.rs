//! The descriptions that ship, inside the command.

use std::path::Path;

use ssdlab_base::closest;
use ssdlab_device::{Description, DescriptionError};
use ssdlab_host::{Host, UnknownDrive};

use crate::failure::Failure;

/// File stem and text of each description, sorted.
pub(crate) const DESCRIPTIONS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/shipped.rs"));

/// The description that ships under a name.
pub(crate) fn text(name: &str) -> Result<&'static str, Failure> {
    let found = DESCRIPTIONS.iter().find(|(shipped, _)| *shipped == name);
    found
        .map(|(_, text)| *text)
        .ok_or_else(|| Failure::input(format!("no drive called '{name}' ships with ssdlab")).hint(ships(name)))
}

/// What `--device` was given: a file, or the name of a description that ships. A file of that name comes first.
pub(crate) fn open(device: &str) -> Result<Description, Failure> {
    let path = Path::new(device);
    let bare = !device.contains(['/', '\\']) && path.extension().is_none();
    if bare && !path.is_file() {
        let (name, text) = DESCRIPTIONS.iter().find(|(name, _)| *name == device).ok_or_else(|| {
            Failure::input(format!("'{device}' is neither a file nor a drive that ships")).hint(ships(device))
        })?;
        return parse(name, text).map_err(Failure::input);
    }
    Description::load(path).map_err(Failure::input)
}

/// A description that ships: it is inside the command, so what is said of it names no file.
pub(crate) fn parse(name: &str, text: &str) -> Result<Description, DescriptionError> {
    Description::parse(text, &format!("shipped description {name}"))
}

/// What `--host` was given: a file; drives in it are named as `--device` names them.
pub(crate) fn host(path: &Path) -> Result<Host, Failure> {
    Host::load(path, &|device| open(device).map_err(|failure| UnknownDrive(failure.in_a_sentence())))
        .map_err(Failure::input)
}

/// The same, of a text; `name` is what errors call it.
pub(crate) fn host_of(text: &str, name: &str) -> Result<Host, Failure> {
    Host::parse_with(text, name, &|device| open(device).map_err(|failure| UnknownDrive(failure.in_a_sentence())))
        .map_err(Failure::input)
}

/// What ships, and what of it was probably meant.
fn ships(written: &str) -> String {
    let names: Vec<&str> = DESCRIPTIONS.iter().map(|(name, _)| *name).collect();
    match closest(written, names.iter().copied()) {
        Some(name) => format!("did you mean '{name}'? These ship: {}", names.join(", ")),
        None => format!("these ship: {}", names.join(", ")),
    }
}

//! The descriptions that ship, inside the library.

use std::path::Path;

use ssdlab_base::closest;

use crate::DeviceError;

/// A description that ships.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shipped {
    /// Its name, such as `demo-tlc`.
    pub name: &'static str,
    /// Its text, TOML.
    pub text: &'static str,
}

impl Shipped {
    /// What errors call the text: it is in no file.
    pub fn place(&self) -> String {
        format!("shipped description {}", self.name)
    }
}

/// The drives, sorted by name.
pub const DRIVES: &[Shipped] = include!(concat!(env!("OUT_DIR"), "/drives.rs"));

/// The hard disks, sorted by name.
pub const DISKS: &[Shipped] = include!(concat!(env!("OUT_DIR"), "/disks.rs"));

/// What `--device` of the command takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found<'a> {
    /// A drive that ships.
    Shipped(Shipped),
    /// The path of a file with a description.
    File(&'a Path),
}

/// The drive that ships under a name.
///
/// # Errors
/// No drive has the name.
pub fn drive(name: &str) -> Result<Shipped, DeviceError> {
    if disk(name).is_some() {
        return Err(DeviceError::Disk { name: name.to_string() });
    }
    let shipped = DRIVES.iter().find(|shipped| shipped.name == name);
    shipped.copied().ok_or_else(|| DeviceError::NotShipped { name: name.to_string() })
}

/// The hard disk that ships under a name.
pub fn disk(name: &str) -> Option<Shipped> {
    DISKS.iter().find(|shipped| shipped.name == name).copied()
}

/// The path that a text is: it has a folder or an ending, or there is such a file.
pub(crate) fn file(text: &str) -> Option<&Path> {
    let path = Path::new(text);
    let is_bare = !text.contains(['/', '\\']) && path.extension().is_none();
    (!is_bare || path.is_file()).then_some(path)
}

/// The file or the drive that ships; a file of a name comes before a drive that ships under it.
///
/// # Errors
/// The text is neither the path of a file nor the name of a drive that ships.
pub fn find(device: &str) -> Result<Found<'_>, DeviceError> {
    if let Some(path) = file(device) {
        return Ok(Found::File(path));
    }
    match drive(device) {
        Err(DeviceError::NotShipped { name }) => Err(DeviceError::Unknown { name }),
        found => found.map(Found::Shipped),
    }
}

/// The drives that ship, and the one that was probably meant, as a hint.
pub(crate) fn names(written: &str) -> String {
    let names: Vec<&str> = DRIVES.iter().map(|shipped| shipped.name).collect();
    match closest(written, names.iter().copied()) {
        Some(name) => format!("did you mean '{name}'? These ship: {}", names.join(", ")),
        None => format!("these ship: {}", names.join(", ")),
    }
}

/// That no disk ships under a name, and the one that was probably meant.
pub(crate) fn unknown_disk(written: &str) -> String {
    let names: Vec<&str> = DISKS.iter().map(|shipped| shipped.name).collect();
    let meant = closest(written, names.iter().copied()).map(|name| format!("; did you mean '{name}'?"));
    format!(
        "'{written}' is no file, and no disk that ships{}; these ship: {}",
        meant.unwrap_or_default(),
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;

    #[test]
    fn every_drive_that_ships_is_found_by_its_name_and_is_a_drive() {
        assert!(DRIVES.is_sorted_by_key(|shipped| shipped.name));
        for shipped in DRIVES {
            assert_eq!(find(shipped.name), Ok(Found::Shipped(*shipped)));
            let config = Device::named(shipped.name).and_then(|device| device.config()).expect("it ships");
            assert!(config.user_bytes > 0, "{}", shipped.name);
        }
    }

    #[test]
    fn a_disk_and_a_misspelt_name_are_refused_with_what_was_meant() {
        let said = |name: &str| drive(name).expect_err("no drive").to_string();
        let disk = DISKS.first().expect("a disk ships").name;
        assert!(said(disk).starts_with(&format!("'{disk}' is a hard disk, expected a drive; ")), "{}", said(disk));
        let start = "no drive that ships is called 'demo-tcl'; did you mean 'demo-tlc'? These ship: ";
        assert!(said("demo-tcl").starts_with(start), "{}", said("demo-tcl"));
        assert_eq!(find("demo-tcl"), Err(DeviceError::Unknown { name: "demo-tcl".to_string() }));
        assert_eq!(find("demo-tcl.toml"), Ok(Found::File(Path::new("demo-tcl.toml"))));
    }
}

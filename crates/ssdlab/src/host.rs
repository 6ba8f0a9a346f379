//! Host layers above drives, and the trait of what a layer stands on.
//!
//! A description of layers (docs/host.md) goes into a run with [`Run::host`](crate::Run::host), or is built above
//! drives by hand with [`Host::build`]. A stack takes requests as a drive does: [`Device`] is both.

use std::cell::RefCell;
use std::path::Path;

use ssdlab_base::read_text;
use ssdlab_device::Description;
use ssdlab_device::description::BYTES_MAX;

use crate::shipped;

#[doc(no_inline)]
pub use ssdlab_host::*;
#[doc(inline)]
pub use ssdlab_host::{
    Administration, BlockDevice, Device, Host, HostError, LayerMetrics, Member, Power, StackError, UnknownDrive,
};

/// The descriptions that a host's description names: files, and drives and disks that ship.
pub struct Descriptions;

impl Names for Descriptions {
    fn drive(&self, device: &str) -> Result<Description, UnknownDrive> {
        crate::Device::open(device).map(Description::from).map_err(|error| UnknownDrive(error.to_string()))
    }

    fn disk(&self, disk: &str) -> Result<(String, String), UnknownDrive> {
        if let Some(path) = shipped::file(disk) {
            let text = read_text(path, BYTES_MAX, "a description");
            return text.map(|text| (text, disk.to_string())).map_err(|why| UnknownDrive(format!("{disk}: {why}")));
        }
        let shipped = shipped::disk(disk).ok_or_else(|| UnknownDrive(shipped::unknown_disk(disk)))?;
        Ok((shipped.text.to_string(), shipped.place()))
    }
}

/// A host's description in a file; drives in it are named as [`Device::open`](crate::Device::open) takes them.
///
/// # Errors
/// The file cannot be read, or all that is wrong in it: line, column and key, what was found and what was expected.
pub fn load_host(path: &Path) -> Result<Host, HostError> {
    load_host_and_drives(path).map(|(host, _)| host)
}

/// A host's description in a file, and the texts that name drives in it.
///
/// # Errors
/// The errors of [`load_host`].
pub fn load_host_and_drives(path: &Path) -> Result<(Host, Vec<String>), HostError> {
    let names = RefCell::new(Vec::new());
    let noted = Noted { names: &names };
    let host = Host::load(path, &noted)?;
    Ok((host, names.into_inner()))
}

/// Notes which drives are named.
struct Noted<'a> {
    names: &'a RefCell<Vec<String>>,
}

impl Names for Noted<'_> {
    fn drive(&self, device: &str) -> Result<Description, UnknownDrive> {
        self.names.borrow_mut().push(device.to_string());
        Descriptions.drive(device)
    }

    fn disk(&self, disk: &str) -> Result<(String, String), UnknownDrive> {
        Descriptions.disk(disk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_among_the_examples_can_stand_on_its_devices() {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/hosts"));
        let mut named = 0;
        for entry in std::fs::read_dir(folder).expect("the examples").flatten() {
            let path = entry.path();
            let text = std::fs::read_to_string(&path).expect("a text");
            assert!(text.starts_with("# "), "{} does not begin with a comment", path.display());
            let host = load_host(&path).unwrap_or_else(|why| panic!("{why}"));
            let Some(name) = host.named_after() else { continue };
            named += 1;
            let device = crate::Device::named("demo-tlc").expect("it ships");
            let config = Description::from(device).resolve().expect("a drive");
            let sectors = host.sectors(&config).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
            assert!(sectors > 100_000_000, "{name}: {sectors} sectors in front of a disk of 75 GB");
        }
        assert!(named >= 2, "{named} examples name all their drives and disks");
    }
}

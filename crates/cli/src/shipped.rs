//! Devices and hosts as options name them: files, and the descriptions that ship.

use std::borrow::Cow;
use std::path::Path;

use ssdlab::host::{load_host, load_host_and_drives};
use ssdlab::shipped::{self, Found, Shipped};
use ssdlab_base::read_text;
use ssdlab_device::description::BYTES_MAX;
use ssdlab_device::{Description, DescriptionError};
use ssdlab_host::Host;

use crate::failure::Failure;

/// The disk that ships under this name, where no file has it.
pub(crate) fn disk(name: &str) -> Option<Shipped> {
    shipped::disk(name).filter(|_| !Path::new(name).is_file())
}

/// The text of what `--device` was given, as it was written.
pub(crate) fn text(device: &str) -> Result<Cow<'static, str>, Failure> {
    match shipped::find(device)? {
        Found::Shipped(shipped) => Ok(Cow::Borrowed(shipped.text)),
        Found::File(path) => read_text(path, BYTES_MAX, "a description")
            .map(Cow::Owned)
            .map_err(|cause| Failure::input(format!("{device}: {cause}"))),
    }
}

/// What `--device` was given.
pub(crate) fn open(device: &str) -> Result<Description, Failure> {
    Ok(ssdlab::Device::open(device)?.into())
}

/// A description that ships: it is inside the command, so what is said of it names no file.
pub(crate) fn parse(shipped: Shipped) -> Result<Description, DescriptionError> {
    Description::parse(shipped.text, &shipped.place())
}

/// What `--host` was given: a file; drives in it are named as `--device` names them.
pub(crate) fn host(path: &Path) -> Result<Host, Failure> {
    load_host(path).map_err(Failure::input)
}

/// What `--host` was given, and the names of the drives in it.
pub(crate) fn host_and_drives(path: &Path) -> Result<(Host, Vec<String>), Failure> {
    load_host_and_drives(path).map_err(Failure::input)
}

/// Refuses a command without the `--device` that it needs.
pub(crate) fn no_device(expected: &str) -> Failure {
    Failure::input(format!("--device: missing, expected {expected}"))
}

/// What stands for `--device` above a host that names all its drives and disks itself; `drives` are the names of those drives, and
/// `set` is what `--set` says.
pub(crate) fn stand_in(host: &Host, drives: &[String], set: &[String]) -> Result<ssdlab::Device, Failure> {
    let Some(name) = host.named_after() else {
        return Err(no_device("the drive that layers of --host stand on"));
    };
    if let Some(assignment) = set.first() {
        return Err(no_device(&format!("the drive that --set {assignment} changes")));
    }
    // Results count its pages. A stack of disks has none.
    let mut device = match drives.first() {
        Some(drive) => ssdlab::Device::open(drive)?,
        None => ssdlab::Device::named("demo-tlc")?,
    };
    device.set_by("--host", &format!("name={name}"))?;
    Ok(device)
}

//! Host layers above drives, and the trait of what a layer stands on.
//!
//! A description of layers (docs/host.md) goes into a run with [`Run::host`](crate::Run::host), or is built above
//! drives by hand with [`Host::build`]. A stack takes requests as a drive does: [`Device`] is both.

use std::cell::RefCell;
use std::path::Path;

use ssdlab_device::Description;

#[doc(no_inline)]
pub use ssdlab_host::*;
#[doc(inline)]
pub use ssdlab_host::{
    Administration, BlockDevice, Device, Host, HostError, LayerMetrics, Member, Power, StackError, UnknownDrive,
};

/// The drive that a host's description names, as [`Device::open`](crate::Device::open) takes it.
///
/// # Errors
/// The sentence of [`DeviceError`](crate::DeviceError).
pub fn drive(device: &str) -> Result<Description, UnknownDrive> {
    crate::Device::open(device).map(Description::from).map_err(|error| UnknownDrive(error.to_string()))
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
    let noted = |device: &str| {
        names.borrow_mut().push(device.to_string());
        drive(device)
    };
    let host = Host::load(path, &noted)?;
    Ok((host, names.into_inner()))
}

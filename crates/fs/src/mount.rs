//! Mounting: what all kinds of file systems do.

use ssdlab_host::Device;

use crate::config::Options;
use crate::error::MountError;
use crate::file_system::FileSystem;
use crate::kinds::KINDS;
use crate::reader::Reader;

impl FileSystem {
    /// Mounts the file system on a device.
    ///
    /// # Errors
    /// There is none, it belongs to another device, or its metadata is not whole.
    pub fn mount(device: Box<dyn Device>, options: &Options) -> Result<FileSystem, MountError> {
        FileSystem::mount_or_return(device, options).map_err(|(error, _)| error)
    }

    /// Mounts as [`FileSystem::mount`] does. A device whose file system cannot be mounted comes back, with what is in flight in it.
    ///
    /// # Errors
    /// There is none, it belongs to another device, or its metadata is not whole.
    pub fn mount_or_return(
        device: Box<dyn Device>,
        options: &Options,
    ) -> Result<FileSystem, (MountError, Box<dyn Device>)> {
        let kind = KINDS.iter().find(|kind| (kind.fits)(&*device)).unwrap_or(&KINDS[0]);
        (kind.mount)(Reader::new(device), options).map(FileSystem::of)
    }
}

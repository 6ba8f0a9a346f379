//! Mounting: what all kinds of file systems do.

use ssdlab_host::Device;

use crate::config::Options;
use crate::error::MountError;
use crate::file_system::FileSystem;
use crate::kinds::{FileSystemKind, KINDS};
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
        let fits: Vec<&FileSystemKind> = KINDS.iter().filter(|kind| (kind.fits)(&*device)).collect();
        let mut reader = Reader::new(device);
        // The superblock says which of the kinds that can be there it is.
        let told = if fits.len() > 1 { fits.iter().find(|kind| reader.begins_with(kind.magic)) } else { None };
        let kinds = told.map_or(fits.as_slice(), std::slice::from_ref);
        let mut first: Option<MountError> = None;
        for kind in kinds {
            match (kind.mount)(reader, options) {
                Ok(engine) => return Ok(FileSystem::of(engine)),
                Err((error, device)) => {
                    first.get_or_insert(error);
                    reader = Reader::new(device);
                }
            }
        }
        let device = reader.below.into_device();
        let found = device.identify();
        let nowhere = || MountError::NoSegments { found: format!("{} of the design {}", found.name, found.design) };
        Err((first.unwrap_or_else(nowhere), device))
    }
}

//! The layers that there are. To add one is to add its file or folder, and its line in [`LAYERS`].

use std::fmt::Debug;

use ssdlab_base::CommandSet;
use ssdlab_device::description::{DescriptionError, Key, Section};

use crate::{Device, LayerError, mirror, restoring, scheduler, shrd, stripe};

/// Every layer.
pub const LAYERS: &[LayerKind] = &[scheduler::LAYER, stripe::LAYER, mirror::LAYER, shrd::LAYER, restoring::LAYER];

/// What the registry knows of a layer.
pub struct LayerKind {
    /// Its name in descriptions.
    pub name: &'static str,
    /// One line about it.
    pub summary: &'static str,
    /// Its own keys in descriptions.
    pub keys: &'static [Key],
    /// The least and the most devices that it may stand on.
    pub devices: (usize, usize),
    /// Reads its keys.
    pub read: fn(&Section<'_>) -> Result<Box<dyn LayerConfig>, DescriptionError>,
}

/// A layer as its description says it.
pub trait LayerConfig: Debug + Send + Sync {
    /// Its name in descriptions.
    fn kind(&self) -> &'static str;

    /// Its capacity in sectors over devices of these capacities in sectors and these units in bytes.
    ///
    /// # Errors
    /// Why it cannot stand on them.
    fn sectors(&self, below: &[(u64, u32)]) -> Result<u64, LayerError>;

    /// Whether every sector of the one device below is the sector of that number above, and the layer keeps nothing.
    fn is_transparent(&self) -> bool {
        false
    }

    /// The command set that the drives below it have to know.
    fn commands(&self) -> Option<&'static CommandSet> {
        None
    }

    /// Puts it above devices: new ones, or those that it stood on before, where it finds what it kept there.
    ///
    /// # Errors
    /// Why it cannot stand on them.
    fn make(&self, below: Vec<Box<dyn Device>>) -> Result<Box<dyn Device>, LayerError>;

    /// The same once more.
    fn clone_box(&self) -> Box<dyn LayerConfig>;
}

impl Clone for Box<dyn LayerConfig> {
    fn clone(&self) -> Box<dyn LayerConfig> {
        self.clone_box()
    }
}

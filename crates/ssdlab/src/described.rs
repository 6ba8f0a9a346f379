//! A drive of a run, by its description.

use std::collections::BTreeMap;
use std::path::Path;

use ssdlab_device::{Description, DriveConfig};

use crate::DeviceError;
use crate::shipped::{self, Found, Shipped};

/// A drive as its description says it is: one that ships, a file, or a text, with what was set on it.
///
/// ```
/// let device = ssdlab::Device::named("demo-tlc")?.set("gc.victim=cost-benefit")?;
/// let config = device.config()?;
/// assert_eq!((config.name.as_str(), config.gc.victim.as_str()), ("demo-tlc", "cost-benefit"));
///
/// let error = device.set("gc.victim=lru")?.config().unwrap_err();
/// assert!(error.to_string().starts_with("--set 'gc.victim=lru': gc.victim: "), "{error}");
/// # Ok::<(), ssdlab::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Device {
    description: Description,
    overrides: BTreeMap<String, String>,
    label: Option<String>,
}

impl Device {
    /// The drive that ships under a name, such as `demo-tlc`; [`shipped::DRIVES`] has all of them.
    ///
    /// # Errors
    /// No drive has the name.
    pub fn named(name: &str) -> Result<Device, DeviceError> {
        Device::of_shipped(shipped::drive(name)?)
    }

    /// A description in a file; docs/description.md has its keys.
    ///
    /// # Errors
    /// The file cannot be read, or is no TOML. What its keys say, [`Device::config`] checks.
    pub fn load(path: impl AsRef<Path>) -> Result<Device, DeviceError> {
        Ok(Device::from(Description::load(path.as_ref())?))
    }

    /// What `--device` of the command takes: the path of a file, or the name of a drive that ships.
    ///
    /// # Errors
    /// The errors of [`Device::load`] and [`Device::named`].
    pub fn open(device: &str) -> Result<Device, DeviceError> {
        match shipped::find(device)? {
            Found::Shipped(shipped) => Device::of_shipped(shipped),
            Found::File(path) => Device::load(path),
        }
    }

    /// A description in a text. `file` is what errors call it, and its stem is the drive's name if the text gives none.
    ///
    /// # Errors
    /// The text is no TOML. What its keys say, [`Device::config`] checks.
    pub fn parse(text: &str, file: &str) -> Result<Device, DeviceError> {
        Ok(Device::from(Description::parse(text, file)?))
    }

    fn of_shipped(shipped: Shipped) -> Result<Device, DeviceError> {
        Device::parse(shipped.text, &shipped.place())
    }

    /// Sets a key, such as `gc.victim=fifo`, as `--set` of the command does. Results name what was set.
    ///
    /// # Errors
    /// The text is not of the form `KEY=VALUE`, or the value is of no form that the key takes.
    pub fn set(mut self, assignment: &str) -> Result<Device, DeviceError> {
        self.set_by("--set", assignment)?;
        Ok(self)
    }

    /// Sets a key for an option other than `--set`; errors name that option.
    ///
    /// # Errors
    /// The errors of [`Device::set`].
    pub fn set_by(&mut self, option: &'static str, assignment: &str) -> Result<(), DeviceError> {
        self.description.set_by(option, assignment)?;
        if let Some((key, value)) = assignment.split_once('=') {
            self.overrides.insert(key.trim().to_string(), value.trim().to_string());
        }
        Ok(())
    }

    /// Names the drive in results; the name of its description otherwise.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Device {
        self.label = Some(label.into());
        self
    }

    /// The drive with every default filled in: what [`ssdlab_device::Drive::new`] takes.
    ///
    /// # Errors
    /// All that is wrong: file, line, column and key, what was found and what was expected.
    pub fn config(&self) -> Result<DriveConfig, DeviceError> {
        Ok(self.description.resolve()?)
    }

    /// The description, with what was set.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// The keys that were set, and their values.
    pub fn overrides(&self) -> &BTreeMap<String, String> {
        &self.overrides
    }

    /// The name that it was given with [`Device::label`].
    pub(crate) fn given_label(&self) -> Option<&str> {
        self.label.as_deref()
    }
}

impl From<Device> for Description {
    fn from(device: Device) -> Description {
        device.description
    }
}

impl From<Description> for Device {
    fn from(description: Description) -> Device {
        Device { description, overrides: BTreeMap::new(), label: None }
    }
}

//! Drives in all their variants: what `--vary` of the command makes of each.

use std::collections::BTreeMap;

use ssdlab_lab::DeviceUnderTest;
use ssdlab_lab::variants::{Axis, AxisError, VARIANTS_MAX, cross_product, suffix};

use crate::{Device, DeviceError, Error};

/// A drive of a run, one of its variants.
#[derive(Clone, Debug)]
pub struct Variant {
    /// The drive, with the values of the variant set.
    pub device: Device,
    /// The place of the drive among those that are varied.
    pub place: usize,
    /// What tells it from the other variants of the drive, such as `victim=fifo`; empty where nothing is varied.
    pub suffix: String,
}

/// Every drive in all variants, those of the first drive first.
///
/// # Errors
/// A key that is varied twice, more than [`VARIANTS_MAX`] variants of all drives together, and a value that is of no
/// form that its key takes.
pub fn vary(devices: Vec<Device>, axes: &[Axis]) -> Result<Vec<Variant>, Error> {
    let variants = cross_product(axes)?;
    let found = devices.len() * variants.len();
    if found > VARIANTS_MAX {
        return Err(AxisError::TooMany { found }.into());
    }
    let mut all = Vec::with_capacity(found);
    for (place, device) in devices.into_iter().enumerate() {
        for variant in &variants {
            let mut one = Variant { device: device.clone(), place, suffix: suffix(variant) };
            for (key, value) in variant {
                one.device.set_by("--vary", &format!("{key}={value}"))?;
            }
            all.push(one);
        }
    }
    Ok(all)
}

/// The drives under test, in their order. The variants of a drive share its name; `tell_apart` makes sure that no two
/// drives have the same.
///
/// # Errors
/// A description that is refused.
pub fn duts(
    variants: &[Variant],
    tell_apart: impl FnOnce(&mut [DeviceUnderTest]),
) -> Result<Vec<DeviceUnderTest>, DeviceError> {
    let configs = variants.iter().map(|one| one.device.config()).collect::<Result<Vec<_>, _>>()?;
    let mut drives: Vec<DeviceUnderTest> = Vec::new();
    for (one, config) in variants.iter().zip(&configs) {
        if one.place == drives.len() {
            drives.push(DeviceUnderTest { label: config.name.clone(), config: config.clone() });
        }
    }
    tell_apart(&mut drives);
    let label = |one: &Variant| match one.suffix.as_str() {
        "" => drives[one.place].label.clone(),
        suffix => format!("{} {suffix}", drives[one.place].label),
    };
    Ok(variants.iter().zip(configs).map(|(one, config)| DeviceUnderTest { label: label(one), config }).collect())
}

/// What was set on drives under test, by label, for the results.
pub fn overrides(drives: &[DeviceUnderTest], variants: &[Variant]) -> BTreeMap<String, BTreeMap<String, String>> {
    let set = drives.iter().zip(variants).filter(|(_, variant)| !variant.device.overrides().is_empty());
    set.map(|(drive, variant)| (drive.label.clone(), variant.device.overrides().clone())).collect()
}

//! What a server has to tell of its own accord: a full disk, a drive that became read-only, a layer that dropped a drive.

use ssdlab_flash::Image;
use ssdlab_host::Device;

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The drive, or the kind of the layer.
    pub of: String,
    /// What is wrong, without the name.
    pub what: String,
    /// What to say when it is over.
    pub over: String,
}

/// All that is wrong with the drives, their images and the layers, the drives first.
pub(super) fn conditions_of(device: &dyn Device) -> Vec<Condition> {
    let mut found = Vec::new();
    for part in device.drives() {
        let mut add =
            |what: String, over: &str| found.push(Condition { of: part.name.clone(), what, over: over.to_string() });
        if part.device.image().is_some_and(Image::is_full) {
            let what = "the disk under its image is full: writes end with an error until there is space".to_string();
            add(what, "the disk under its image has space again");
        }
        if let Some(why) = part.device.image().and_then(Image::broken) {
            add(format!("its image cannot be written: {why}"), "its image can be written again");
        }
        if let Some(reason) = part.device.read_only_reason() {
            add(format!("it is read-only, since {reason}"), "it takes writes again");
        }
    }
    for layer in device.layers() {
        let of_layer = layer.degraded.iter().map(|what| Condition {
            of: layer.kind.clone(),
            what: format!("degraded: {what}"),
            over: format!("this is over: {what}"),
        });
        found.extend(of_layer);
    }
    found
}

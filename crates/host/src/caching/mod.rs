//! What caches of a disk share, whatever drive they keep blocks on.

mod sequential;

use twox_hash::XxHash3_64;

pub(crate) use sequential::Sequential;

use crate::Device;

/// A hash of words.
pub(crate) fn hash(words: &[u64]) -> u64 {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    XxHash3_64::oneshot(&bytes)
}

/// A hash of a device's name and of those of the drives and disks below it. Two devices that are alike have nothing else to tell them
/// apart: the model has no serial numbers, and a seed is that of a run.
pub(crate) fn hash_of_names(device: &dyn Device) -> u64 {
    let names = format!("{} {}", device.identify().name, device.member_names().join(", "));
    hash(&names.bytes().map(u64::from).collect::<Vec<_>>())
}

/// Hits as a share of hits and misses, from 0 to 1; 0 where nothing was asked for.
pub(crate) fn hit_ratio(hits: u64, misses: u64) -> f64 {
    if hits == 0 { 0.0 } else { hits as f64 / (hits + misses) as f64 }
}

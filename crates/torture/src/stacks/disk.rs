//! The small disks of drawn stacks: a few tracks, so that all of it is compared after every cut.

use ssdlab_base::{Rng, SECTOR_BYTES};
use ssdlab_device::Description;
use ssdlab_host::{Names, UnknownDrive};

use crate::configs::one_of;

/// What drawn stacks and saved cases call it.
const NAME: &str = "small-disk";

/// A disk with room for a small file system.
const LARGE: &str = "larger-disk";

/// Three zones of so many cylinders on two heads: 200 sectors for each.
fn text(cylinders: u32) -> String {
    let zone = |sectors| format!("{{ cylinders = {cylinders}, sectors = {sectors} }}");
    let zones = [50, 30, 20].map(zone).join(", ");
    format!(
        "[disk]\nheads = 2\nhead_switch = \"0.5ms\"\nzones = [{zones}]\n\
         [disk.seek]\nsettle = \"1ms\"\nknee = \"2ms\"\nfull_stroke = \"3ms\"\n"
    )
}

/// Names that a case's file may use, and the small disk.
pub(super) struct WithSmall<'a> {
    pub(super) others: &'a dyn Names,
}

impl Names for WithSmall<'_> {
    fn drive(&self, name: &str) -> Result<Description, UnknownDrive> {
        self.others.drive(name)
    }

    fn disk(&self, name: &str) -> Result<(String, String), UnknownDrive> {
        match name {
            NAME => Ok((text(5), NAME.to_string())),
            LARGE => Ok((text(60), LARGE.to_string())),
            _ => self.others.disk(name),
        }
    }
}

/// The small disk alone, `small-disk`, for tests of other crates, too.
pub fn small_disk() -> impl Names {
    const NOTHING: fn(&str) -> Result<Description, UnknownDrive> =
        |name| Err(UnknownDrive(format!("'{name}' is no drive that is known here")));
    WithSmall { others: &NOTHING }
}

/// The keys of the small disk below a layer, with caches that are full soon, or none.
pub(super) fn draw(rng: &mut Rng) -> String {
    draw_of(rng, NAME, &[100, 400, 1000])
}

/// The keys of a disk below a layer that has room for a small file system.
pub(super) fn draw_large(rng: &mut Rng) -> String {
    draw_of(rng, LARGE, &[3000, 6000, 12_000])
}

fn draw_of(rng: &mut Rng, name: &str, sizes: &[u64]) -> String {
    let size = SECTOR_BYTES * one_of(rng, sizes);
    let sets = [
        format!("disk.write_cache.enabled={}", one_of(rng, &["true", "true", "true", "false"])),
        format!("disk.write_cache.bytes={}", one_of(rng, &[4096, 16 << 10, 1 << 20])),
        format!("disk.write_cache.idle={}", one_of(rng, &["0", "5ms", "500ms"])),
        format!("disk.write_cache.candidates={}", one_of(rng, &[1, 4, 64])),
        format!("disk.queue.depth={}", one_of(rng, &[1, 4, 32])),
        format!("disk.queue.age_limit={}", one_of(rng, &["10ms", "1s"])),
        format!("disk.read_cache.segments={}", one_of(rng, &[1, 16])),
    ];
    let sets = sets.map(|set| format!("\"{set}\"")).join(", ");
    format!("disk = \"{name}\"\nsize = {size}\nset = [{sets}]\n")
}

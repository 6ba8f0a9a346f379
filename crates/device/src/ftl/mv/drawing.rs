//! What tests that draw drives have to know: pages large enough for patterns, and every key.

use rand::RngExt;
use ssdlab_base::Rng;

use crate::ftl::Drawing;
use crate::{DriveConfig, Settings};

pub(super) const DRAWING: Drawing = Drawing {
    own_campaign: false,
    drive: draw,
    // Mostly so many as leave versions something.
    user_units: |units, rng| if rng.random_bool(0.8) { rng.random_range(units.div_ceil(2)..=units) } else { units },
    handful,
    one_in: 0,
};

fn one_of<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.random_range(0..of.len())]
}

fn draw(config: &mut DriveConfig, rng: &mut Rng) {
    // A map of pages, large enough for patterns and for compaction now and then.
    let page = config.flash.geometry.page_bytes.next_power_of_two().max(one_of(rng, &[1024, 2048, 4096]));
    let sectors = config.buffer.bytes / u64::from(config.ftl.mapping_unit) * u64::from(page / 512);
    config.flash.geometry.page_bytes = page;
    config.ftl.mapping_unit = page;
    config.buffer.bytes = (sectors + rng.random_range(0..3)) * 512;
    let direct = rng.random_bool(0.25);
    let compaction = page >= 2048 && rng.random_bool(0.6);
    // Direct pointers of compacted pages must reach everything.
    let narrow = rng.random_bool(0.5) && !(compaction && direct);
    let bits = narrow.then(|| rng.random_range(3..8));
    let slots = bits.map_or(u32::MAX, |bits: u32| (1 << (bits - u32::from(compaction))) - 2);
    let mut own = Settings::default().with("version_index", if direct { "direct" } else { "indirect" });
    if let Some(bits) = bits {
        own.set("version_bits", bits);
    }
    own.set("version_chain", if direct { 2_u32 } else { rng.random_range(2..7) });
    own.set("version_group", one_of(rng, &[1, 4, 16, 64]).min(slots));
    own.set("version_spare", one_of(rng, &[50_u32, 50, 100, 20]));
    own.set("version_masks", if rng.random_bool(0.3) { "any" } else { "patterns" });
    own.set("idle_merge", rng.random_bool(0.7));
    own.set("merge_load", one_of(rng, &[0_u32, 0, 1, 8]));
    own.set("compaction", compaction);
    let out_of_band = compaction && config.flash.geometry.oob_bytes >= 34 && rng.random_bool(0.4);
    own.set("compaction_index", if out_of_band { "oob" } else { "page" });
    own.set("region", u64::from(page) * one_of(rng, &[1, 4, 16, 1024]));
    config.ftl.own = own;
}

/// Pages of four sectors have patterns, and room for two small parts.
fn handful(config: &mut DriveConfig, other: bool) {
    config.flash.geometry.page_bytes = 2048;
    config.ftl.mapping_unit = 2048;
    config.buffer.bytes = 2048;
    config.ftl.own.set("region", 4096_u32);
    config.ftl.own.set("compaction", !other);
    config.ftl.own.set("version_spare", 100_u32);
    config.ftl.own.set("version_masks", if other { "any" } else { "patterns" });
}

//! Small drives, for tests of what stands on one.

use ssdlab_base::command_sets::segments::SEGMENTS;
use ssdlab_device::{Description, Drive, Options, design_with};
use ssdlab_flash::Contents;
use ssdlab_host::{Device, Member};

/// A drive of so many segments on 2 channels and 2 ways: a segment has 4 blocks of `pages` pages, of 4 KB (`4k`) or 16 KB (`16k`).
///
/// # Panics
/// The numbers make no drive.
pub fn small_drive(segments: u32, contents: Contents, page: &str, pages: u32) -> Box<dyn Device> {
    let page_bytes = if page == "4k" { 4096 } else { 16384 };
    let design = design_with(&SEGMENTS).unwrap_or_else(|| panic!("a design has segments"));
    let text = format!(
        r#"
name = "small"
[flash]
channels = 2
chips_per_channel = 2
dies_per_chip = 1
planes_per_die = 1
blocks_per_plane = {}
pages_per_block = {pages}
page_size = "{page}"
timing = {{ read = "75us", program = "478us", erase = "3.8ms", transfer = "33.3us" }}
[capacity]
user = "{}"
[interface]
kind = "nvme"
queues = 1
queue_depth = 64
[ftl]
design = "{design}"
allocation = "dynamic"
"#,
        segments + 6,
        u64::from(segments) * 4 * u64::from(pages) * page_bytes
    );
    described(&text, contents)
}

/// A drive of so many blocks of 4 KB on 2 channels and 2 ways that takes block I/O, with a write buffer of 64 KB.
///
/// # Panics
/// The number makes no drive.
pub fn small_block_drive(blocks: u32, contents: Contents) -> Box<dyn Device> {
    let text = format!(
        r#"
name = "small"
[flash]
channels = 2
chips_per_channel = 2
dies_per_chip = 1
planes_per_die = 1
blocks_per_plane = {}
pages_per_block = 16
page_size = "4k"
timing = {{ read = "75us", program = "478us", erase = "3.8ms", transfer = "33.3us" }}
[capacity]
user = "{}"
[interface]
kind = "nvme"
queues = 1
queue_depth = 64
[buffer]
policy = "lru"
size = "64k"
[ftl]
design = "page"
mapping_unit = "4k"
allocation = "dynamic"
"#,
        blocks.div_ceil(64) * 5 / 4 + 6,
        u64::from(blocks) * 4096
    );
    described(&text, contents)
}

fn described(text: &str, contents: Contents) -> Box<dyn Device> {
    let options = Options { seed: 1, contents };
    let config = Description::parse(text, "small").and_then(|text| text.resolve());
    let drive = config.map(|config| Drive::new(&config, options));
    Member::alone(drive.expect("a description").expect("a drive"), options)
}

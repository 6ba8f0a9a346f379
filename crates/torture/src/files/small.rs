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
    let user = u64::from(segments) * 4 * u64::from(pages) * page_bytes;
    described(
        segments + 6,
        pages,
        page,
        user,
        &format!("[ftl]\ndesign = \"{design}\"\nallocation = \"dynamic\"\n"),
        contents,
    )
}

/// A drive of so many blocks of 4 KB on 2 channels and 2 ways that takes block I/O, with a write buffer of 64 KB.
///
/// # Panics
/// The number makes no drive.
pub fn small_block_drive(blocks: u32, contents: Contents) -> Box<dyn Device> {
    let ftl = "[buffer]\npolicy = \"lru\"\nsize = \"64k\"\n\
               [ftl]\ndesign = \"page\"\nmapping_unit = \"4k\"\nallocation = \"dynamic\"\n";
    described(blocks.div_ceil(64) * 5 / 4 + 6, 16, "4k", u64::from(blocks) * 4096, ftl, contents)
}

/// A drive with so many blocks a plane of so many pages, and the tables of a description behind these.
fn described(blocks: u32, pages: u32, page: &str, user: u64, tables: &str, contents: Contents) -> Box<dyn Device> {
    let text = format!(
        r#"
name = "small"
[flash]
channels = 2
chips_per_channel = 2
dies_per_chip = 1
planes_per_die = 1
blocks_per_plane = {blocks}
pages_per_block = {pages}
page_size = "{page}"
timing = {{ read = "75us", program = "478us", erase = "3.8ms", transfer = "33.3us" }}
[capacity]
user = "{user}"
[interface]
kind = "nvme"
queues = 1
queue_depth = 64
{tables}"#
    );
    let options = Options { seed: 1, contents };
    let config = Description::parse(&text, "small").and_then(|text| text.resolve());
    let drive = config.map(|config| Drive::new(&config, options));
    Member::alone(drive.expect("a description").expect("a drive"), options)
}

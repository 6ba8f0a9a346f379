//! Table 1 and section 3.3: the sizes of ALFS's structures, of file systems as made.

use ssdlab_flash::Contents;
use ssdlab_fs::format::map;
use ssdlab_fs::{FileSystem, MakeOptions, Options};

use super::common::{PAPER, of_paper};
use super::small::made;
use crate::frame::{Content, Drawn, Figure, Label, Made, PaperContext};

/// Bytes of a block of ALFS's (section 3.3).
const BLOCK: u64 = 4096;
/// Bytes of an entry of the inode map: 4 for an inode number, 4 for its location.
const INODE_ENTRY: u64 = BLOCK / map::ENTRIES as u64;
/// Bytes of an entry of TIMB and of the list of TIMB blocks.
const ENTRY: u64 = BLOCK / map::TABLE_ENTRIES as u64;

/// The drives: the experiment's drive, its variant, and what the row is called.
pub(super) const DRIVES: [(&str, &str, &str); 3] =
    [("AFTL, 1 TB", "AFTL, 1 TB", "1 TB"), ("AFTL", "AFTL, 512 GB", "512 GB"), ("AFTL, 16 GB", "AFTL", "16 GB")];

const UNIT: &str = "unit";
const COUNT: &str = "count";
const SIZE: &str = "size";
const SHARE: &str = "share of the drive";

/// What a file system as made says of itself, in bytes and blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sizes {
    capacity: u64,
    inodes: u64,
    inode_map: u64,
    inode_map_blocks: u64,
    /// TIMB in RAM.
    timb: u64,
    timb_blocks: u64,
    /// The list of TIMB blocks in a check-point.
    list: u64,
    inode_map_segments: u64,
}

impl Sizes {
    fn of(fs: &FileSystem) -> Result<Sizes, String> {
        let superblock = fs.superblock().ok_or("found no superblock of ALFS")?;
        let (inodes, inode_map_blocks) = (u64::from(superblock.nodes), u64::from(superblock.map_blocks()));
        let timb_blocks = u64::from(superblock.table_blocks());
        let segment = u64::from(superblock.segment_blocks) * BLOCK;
        Ok(Sizes {
            capacity: u64::from(superblock.segments) * segment,
            inodes,
            inode_map: inodes * INODE_ENTRY,
            inode_map_blocks,
            timb: fs.memory().table_bytes as u64,
            timb_blocks,
            list: timb_blocks * ENTRY,
            inode_map_segments: u64::from(superblock.map_segments) * segment,
        })
    }

    /// What the segments take beyond the map.
    fn extra(&self) -> u64 {
        self.inode_map_segments - self.inode_map
    }
}

pub(super) static FIGURE: Figure = Figure {
    id: "table01",
    title: "sizes of ALFS's structures",
    about: "ALFS is made on drives of AFTL with 1 TB and 512 GB of user capacity, and on the 16 GB of the measurements (15.75 \
            GB for AFTL). The sizes are those of the file systems: TIMB is the array in memory, counts are blocks of the format. \
            There is an inode for each 4 KB, rounded up to a power of two. KB and GB are of 2^10 and 2^30 bytes.",
    differs: "Inode-map segments of 8 GB less the 2 GB of the map are 6 GB; the paper's 7 GB does not follow from its \
              own sizes.",
    series: &[UNIT, COUNT, SIZE, SHARE],
    content: Content::Facts(draw),
};

fn draw(context: &PaperContext) -> Made {
    let mut drawn = Drawn::default();
    for (drive, variant, capacity) in DRIVES {
        let config = context.variant(drive, variant, &[])?;
        let fs = made(&config, Contents::Nothing, &MakeOptions::default(), &Options::default())?;
        let sizes = Sizes::of(&fs)?;
        // The paper's values are those of 1 TB.
        let stands_for = if capacity == "1 TB" { PAPER } else { "" };
        let label = |structure| {
            let label = of_paper(capacity, "", structure, "capacity");
            Label { stands_for: stands_for.to_string(), ..label }
        };
        let (kb, gb) = (|bytes: u64| bytes as f64 / 1024.0, |bytes: u64| bytes as f64 / f64::from(1 << 30));
        let percent = |bytes: u64| bytes as f64 * 100.0 / sizes.capacity as f64;
        for (structure, unit, count) in [
            ("inode-map block", BLOCK, sizes.inode_map_blocks),
            ("in-memory TIMB", sizes.timb, 1),
            ("TIMB block", BLOCK, sizes.timb_blocks),
            ("TIMB-blocks list", sizes.list, 1),
            ("inode", BLOCK, sizes.inodes),
        ] {
            if structure != "inode" {
                drawn.values(&label(structure), [(UNIT, kb(unit), "KB")]);
            }
            drawn.values(&label(structure), [(COUNT, count as f64, "")]);
        }
        for (structure, bytes) in [
            ("inode map", sizes.inode_map),
            ("inode-map segments", sizes.inode_map_segments),
            ("extra segments", sizes.extra()),
        ] {
            drawn.values(&label(structure), [(SIZE, gb(bytes), "GB"), (SHARE, percent(bytes), "%")]);
        }
    }
    Ok(drawn)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Library, Size};

    #[test]
    fn sizes_of_a_file_system_as_made_are_those_of_section_3_3_in_proportion() {
        let context = PaperContext::open(&super::super::PAPER, &Library::default(), Size::Full).expect("right data");
        let config = context.variant("AFTL, 16 GB", "AFTL", &[]).expect("a drive");
        let fs = made(&config, Contents::Nothing, &MakeOptions::default(), &Options::default()).expect("ALFS");
        let sizes = Sizes::of(&fs).expect("ALFS");
        assert_eq!((sizes.inodes, sizes.inode_map), (1 << 22, 32 << 20));
        assert_eq!((sizes.inode_map_blocks, sizes.timb), (8192, 32 << 10));
        assert_eq!((sizes.timb_blocks, sizes.list), (8, 32));
        assert_eq!((sizes.inode_map_segments, sizes.extra()), (128 << 20, 96 << 20));
    }
}

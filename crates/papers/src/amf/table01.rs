//! Table 1 and section 3.3: the sizes of ALFS's structures, from the capacity and the sizes of entries and blocks.

use super::common::{PAPER, drive_of, of_paper};
use crate::frame::{Content, Drawn, Figure, Label, Made, PaperContext};

/// A sector, the smallest file, and a block of ALFS's (section 3.3).
const BLOCK: u64 = 4096;
/// An entry of the inode map: 4 bytes for an inode number, 4 for its location.
const INODE_ENTRY: u64 = 8;
/// An entry of TIMB and of the list of TIMB blocks.
const ENTRY: u64 = 4;
/// Inode-map segments, by the size of the inode map.
const SEGMENTS_BY_MAP: u64 = 4;

const UNIT: &str = "unit";
const COUNT: &str = "count";
const SIZE: &str = "size";
const SHARE: &str = "share of the drive";

/// What follows from a capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sizes {
    capacity: u64,
    /// As many as files of the smallest size fit.
    inodes: u64,
    inode_map: u64,
    inode_map_blocks: u64,
    timb: u64,
    timb_blocks: u64,
    /// The list of TIMB blocks in a check-point.
    list: u64,
    inode_map_segments: u64,
}

impl Sizes {
    fn of(capacity: u64) -> Sizes {
        let inodes = capacity / BLOCK;
        let inode_map = inodes * INODE_ENTRY;
        let inode_map_blocks = inode_map.div_ceil(BLOCK);
        let timb = inode_map_blocks * ENTRY;
        let timb_blocks = timb.div_ceil(BLOCK);
        Sizes {
            capacity,
            inodes,
            inode_map,
            inode_map_blocks,
            timb,
            timb_blocks,
            list: timb_blocks * ENTRY,
            inode_map_segments: inode_map * SEGMENTS_BY_MAP,
        }
    }

    /// What the segments take beyond the map.
    fn extra(&self) -> u64 {
        self.inode_map_segments - self.inode_map
    }
}

pub(super) static FIGURE: Figure = Figure {
    id: "table01",
    title: "sizes of ALFS's structures",
    about: "Computed from the capacity as in section 3.3: an inode for each 4 KB, 8 bytes for an entry of the inode \
            map, blocks of 4 KB, 4 bytes for an entry of TIMB and of the list of its blocks, inode-map segments of \
            four times the map. ALFS itself is not built yet, so these are not sizes of running code. KB and GB are of \
            2^10 and 2^30 bytes.",
    differs: "Inode-map segments of 8 GB less the 2 GB of the map are 6 GB; the paper's 7 GB does not follow from its \
              own sizes.",
    series: &[UNIT, COUNT, SIZE, SHARE],
    content: Content::Facts(draw),
};

fn draw(context: &PaperContext) -> Made {
    let mut drawn = Drawn::default();
    for capacity in ["1 TB", "512 GB", "16 GB"] {
        let sizes = Sizes::of(context.drive(&drive_of("PFTL", capacity))?.flash.geometry.bytes());
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

    #[test]
    fn sizes_are_those_of_section_3_3_at_1_tb_and_in_proportion() {
        let sizes = Sizes::of(1 << 40);
        assert_eq!((sizes.inodes, sizes.inode_map), (1 << 28, 2 << 30));
        assert_eq!((sizes.inode_map_blocks, sizes.timb), (524_288, 2 << 20));
        assert_eq!((sizes.timb_blocks, sizes.list), (512, 2048));
        assert_eq!((sizes.inode_map_segments, sizes.extra()), (8 << 30, 6 << 30));
        // A part of a block is a block.
        let small = Sizes::of(4096 * 513);
        assert_eq!((small.inode_map_blocks, small.timb, small.timb_blocks, small.list), (2, 8, 1, 4));
    }
}

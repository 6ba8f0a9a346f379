//! Figure 4: from an inode number to the inode, through TIMB and the inode map.

use ssdlab_fs::format::inode::Inode;
use ssdlab_fs::format::map;

use super::common::{illustrated, of_paper};
use super::small::{Content as Of, Small};
use crate::frame::{Content, Drawn, Figure, Made, PaperContext};

/// The inode of the figure.
const INODE: u32 = 1023;

const TABLE: &str = "TIMB block";
const MAP: &str = "inode-map block";
const FROM: &str = "first inode of the block";
const TO: &str = "last inode of the block";
const SEGMENT: &str = "segment of the inode";
const KIND: &str = "segments of the inode map";

pub(super) static FIGURE: Figure = Figure {
    id: "figure04",
    title: "finding an inode",
    about: "On a drive of AFTL with 4,096 blocks, empty files are made until one has inode 1023, and a check-point is written. \
            Then its inode is looked for as the figure does, with the blocks that lie on the drive after a power cut: the TIMB \
            block that the newest check-point lists, the block of the inode map that this leads to, and the inode that this \
            leads to.",
    differs: "",
    series: &[TABLE, MAP, FROM, TO, SEGMENT, KIND],
    content: Content::Facts(draw),
};

fn draw(context: &PaperContext) -> Made {
    let config = illustrated(context, "Figure 4", &[])?;
    let mut alfs = Small::new(&config)?;
    loop {
        let file = alfs.create(&format!("file {}", alfs.files()))?;
        if file.number >= INODE {
            break;
        }
    }
    alfs.sync()?;
    let superblock = alfs.superblock()?;
    let look = alfs.look()?;
    let part = INODE / map::ENTRIES as u32;
    let table = part / map::TABLE_ENTRIES as u32;
    // Older versions lie before newer ones of their log.
    let newest = look.blocks.iter().rev().find(|block| block.content == Of::Table(table)).ok_or("no TIMB block")?;
    let places = map::decode_table(&newest.bytes, superblock.blocks())?;
    let address = places[part as usize % map::TABLE_ENTRIES];
    let of_map =
        look.at(address).ok_or_else(|| format!("TIMB leads to block {address}, which the drive does not have"))?;
    let entries = map::decode(&of_map.bytes, part, superblock.blocks())?;
    let address = entries[INODE as usize % map::ENTRIES];
    let node =
        look.at(address).ok_or_else(|| format!("the map leads to block {address}, which the drive does not have"))?;
    let inode = Inode::decode(&node.bytes, superblock.volume, INODE, superblock.blocks())?;
    let first = part * map::ENTRIES as u32;
    let map_segments = look.segments_of(|content| matches!(content, Of::Map(_) | Of::Table(_)));
    let mut drawn = Drawn::default();
    let values = [
        (TABLE, f64::from(table), ""),
        (MAP, f64::from(part), ""),
        (FROM, f64::from(first), ""),
        (TO, f64::from(first + map::ENTRIES as u32 - 1), ""),
        (SEGMENT, f64::from(node.segment), ""),
        (KIND, map_segments.len() as f64, ""),
    ];
    drawn.values(&of_paper(&format!("inode {}", inode.number), "", "", "a drive of AFTL with ALFS"), values);
    if map_segments.contains(&node.segment) {
        return Err(format!("the inode lies in segment {} of the inode map", node.segment).into());
    }
    drawn.pictures.push(look.segments("The segment of the inode map that leads to the inode", &[of_map.segment]));
    Ok(drawn)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Library, Size};

    #[test]
    fn the_inode_is_found_through_the_blocks_of_the_figure() {
        let context = PaperContext::open(&super::super::PAPER, &Library::default(), Size::Quick).expect("right data");
        let drawn = draw(&context).expect("a figure");
        let value = |series| drawn.points.iter().find(|point| point.series == series).map(|point| point.value);
        assert_eq!([TABLE, MAP, FROM, TO].map(value), [Some(0.0), Some(1.0), Some(512.0), Some(1023.0)]);
    }
}

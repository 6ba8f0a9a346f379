//! Figure 2: the logical layout of ALFS after four files, and the physical one.

use super::common::{illustrated, of_paper};
use super::small::{Content as Of, Small};
use crate::frame::{Content, Drawn, Figure, Made, PaperContext};

/// The files of the figure, in the order in which they are appended.
pub(super) const FILES: [&str; 4] = ["A", "B", "C", "D"];

/// Whether a block is of a kind.
type IsOne = fn(&Of) -> bool;

const BLOCKS: &str = "blocks";
const FIRST: &str = "segment";
const IN_ORDER: &str = "files in order";

pub(super) static FIGURE: Figure = Figure {
    id: "figure02",
    title: "layout of ALFS, and of the segments on flash",
    about: "ALFS is made on a drive of AFTL (two channels, one way, blocks of four pages: a segment has eight blocks), four \
            empty files are made, and a check-point is written. A file has no data here, so that its inode is its one block. \
            What each block is stands in its header, and where it lies is read from the chips after a power cut. ALFS is made \
            with two logs, one of them for nodes.",
    differs: "",
    series: &[BLOCKS, FIRST, IN_ORDER],
    content: Content::Facts(draw),
};

fn draw(context: &PaperContext) -> Made {
    let config = illustrated(context, "Figures 2, 3 and 5", &[])?;
    let mut alfs = Small::new(&config)?;
    for file in FILES {
        alfs.create(file)?;
    }
    alfs.sync()?;
    let map_segments = alfs.superblock()?.map_segments;
    let look = alfs.look()?;
    let files: Vec<&str> = look.blocks.iter().filter_map(|block| block.content.file()).collect();
    let in_order = files.iter().zip(FILES).filter(|(found, expected)| *found == expected).count();
    let mut drawn = Drawn::default();
    let kinds: [(&str, IsOne); 5] = [
        ("superblock", |content| *content == Of::Superblock),
        ("check-points", |content| matches!(content, Of::Checkpoint(_))),
        ("inode-map blocks", |content| matches!(content, Of::Map(_))),
        ("TIMB blocks", |content| matches!(content, Of::Table(_))),
        ("files", |content| content.file().is_some()),
    ];
    for (kind, is_one) in kinds {
        let label = of_paper(kind, "", "", "a drive of AFTL with ALFS");
        let count = look.blocks.iter().filter(|block| is_one(&block.content)).count();
        drawn.values(&label, [(BLOCKS, count as f64, "")]);
        if let [segment] = look.segments_of(is_one)[..] {
            drawn.values(&label, [(FIRST, f64::from(segment), "")]);
        }
        if kind == "files" {
            drawn.values(&label, [(IN_ORDER, in_order as f64, "")]);
        }
    }
    drawn.remark(format!("{map_segments} segments are reserved for the inode map, four times its size or more."));
    let segments = look.segments_of(|_| true);
    drawn.pictures.push(look.segments("Logical segments that hold something, by the place in the segment", &segments));
    drawn.pictures.push(look.chips("The flash blocks in which they lie, from page 0 on", &segments)?);
    Ok(drawn)
}

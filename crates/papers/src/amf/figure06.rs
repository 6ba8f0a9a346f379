//! Figure 6: writes and cleaning of LFS above an FTL with a map of pages, after the calls of Figure 5.

use std::collections::BTreeMap;

use ssdlab_base::Nanos;
use ssdlab_flash::OpKind;

use super::common::of_paper;
use super::figure05::{COPIES, ERASES, OF_FILES, of_files, use_up, write};
use super::small::{CLEANING_PERIOD, Look, Small};
use crate::frame::{Content, Drawn, Figure, Made, PaperContext};

const IN_VAIN: &str = "copies of files in vain";

/// Segments of eight blocks, as those of Figure 5.
const SEGMENT: u64 = 32 << 10;

const BY_FTL: &str = "by the FTL (b)";
const BY_LFS: &str = "by LFS (c)";
const AFTERWARDS: &str = "by the FTL after it (c)";
const ALL: &str = "in all";

/// In which the FTL collects garbage and LFS does not clean.
const PAUSE: Nanos = Nanos::from_ms(500);

pub(super) static FIGURE: Figure = Figure {
    id: "figure06",
    title: "writes and cleaning of LFS with an FTL",
    about: "The calls of Figure 5 on LFS above a drive of the same chips with a map of pages, which collects garbage as soon as no \
            command comes: first the FTL (b), then LFS cleans one segment and discards it, and the FTL collects again (c). Copies by \
            the FTL are programs of its garbage collection, copies by LFS the valid blocks of the segments that it cleaned. A copy of a \
            file by the FTL was in vain where LFS moved the file afterwards.",
    differs: "The paper does not say when its FTL collects garbage: here as soon as no command comes. Check-points, tables and summaries \
              are overwritten, and the root directory and the file that uses up the space lie beside files, so the FTL has more to copy \
              and to erase than the paper draws. Pages are striped over two channels, so that other files lie beside what is overwritten.",
    series: &[COPIES, OF_FILES, ERASES, IN_VAIN],
    content: Content::Facts(draw),
};

/// What was counted up to some moment.
#[derive(Clone, Copy)]
struct Counted {
    by_ftl: usize,
    by_lfs: u64,
    erases: usize,
}

fn counted(fs: &Small) -> Counted {
    let (_, by_ftl) = fs.operations(OpKind::Program);
    let (erases, _) = fs.operations(OpKind::Erase);
    Counted { by_ftl, by_lfs: fs.fs().metrics().cleaned_valid_blocks, erases }
}

/// LFS after the writes of (a).
fn written(context: &PaperContext) -> Result<Small, Box<dyn std::error::Error>> {
    write(Small::lfs(&context.variant("PFTL, 16 GB", "Figure 6", &[])?, SEGMENT)?)
}

/// The newest version of each file with a name of one letter: its address, and whether the drive moved it there. Logs go upwards, and
/// moved files lie behind all others.
fn files(look: &Look) -> BTreeMap<String, (u32, bool)> {
    let is_file = |name: &&str| name.len() == 1;
    let named = look.blocks.iter().filter_map(|block| Some((block.content.file().filter(is_file)?, block)));
    named.map(|(name, block)| (name.to_string(), (block.address, block.was_moved))).collect()
}

fn draw(context: &PaperContext) -> Made {
    let at_first = written(context)?;
    let begin = counted(&at_first);
    let before = at_first.look()?;
    let mut full = written(context)?;
    use_up(&mut full)?;
    full.idle(PAUSE);
    let collected = counted(&full);
    let (fs, collected_look) = (full.fs().metrics(), full.look()?);
    let mut cleaned = written(context)?;
    use_up(&mut cleaned)?;
    cleaned.idle(CLEANING_PERIOD);
    cleaned.sync()?;
    cleaned.idle(PAUSE);
    let end = counted(&cleaned);
    let after = cleaned.look()?;
    if fs.cleaned_segments > 0 {
        return Err(format!("LFS cleaned {} segments while the space was used up", fs.cleaned_segments).into());
    }
    let (by_ftl, at_end) = (files(&collected_look), files(&after));
    let moved_by_ftl = by_ftl.values().filter(|(_, was_moved)| *was_moved).count();
    let moved_by_lfs = |name: &String| at_end.get(name).is_some_and(|(address, _)| *address != by_ftl[name].0);
    let was_moved_again = |name: &str, address: u32| {
        at_end.get(name).is_some_and(|(now, was_moved)| *now == address && *was_moved && !by_ftl[name].1)
    };
    let moved_again = by_ftl.iter().filter(|(name, (address, _))| was_moved_again(name, *address)).count();
    let of_lfs = by_ftl.keys().filter(|name| moved_by_lfs(name)).count();
    let in_vain = by_ftl.iter().filter(|(name, (_, was_moved))| *was_moved && moved_by_lfs(name)).count();
    let mut drawn = Drawn::default();
    let by_lfs = end.by_lfs - collected.by_lfs;
    let of_ftl =
        [(begin, collected), (collected, end)].map(|(from, to)| (to.by_ftl - from.by_ftl, to.erases - from.erases));
    let [(copies, erases), (copies_after, erases_after)] = of_ftl;
    let mut row = |what: &str, copies: u64, of_files: usize, erases: usize| {
        let label = of_paper("garbage collection", "", what, "a drive with a map of pages, with LFS");
        let values = [(COPIES, copies as f64, ""), (OF_FILES, of_files as f64, ""), (ERASES, erases as f64, "")];
        drawn.values(&label, values);
        label
    };
    row(BY_FTL, copies as u64, moved_by_ftl, erases);
    row(BY_LFS, by_lfs, of_lfs, 0);
    row(AFTERWARDS, copies_after as u64, moved_again, erases_after);
    let copies = (copies + copies_after) as u64 + by_lfs;
    let all = row(ALL, copies, moved_by_ftl + of_lfs + moved_again, erases + erases_after);
    drawn.values(&all, [(IN_VAIN, in_vain as f64, "")]);
    let names = |chosen: Vec<&String>| chosen.into_iter().cloned().collect::<Vec<_>>().join(", ");
    let of_ftl = by_ftl.iter().filter(|(_, (_, was_moved))| *was_moved).map(|(name, _)| name).collect();
    drawn.remark(format!("The FTL copied the files {}.", names(of_ftl)));
    drawn.remark(format!("LFS copied the files {}.", names(by_ftl.keys().filter(|name| moved_by_lfs(name)).collect())));
    let (old, new) = (of_files(&before), of_files(&after));
    drawn.pictures.push(before.segments("(a) Segments with files before any garbage collection", &old));
    drawn.pictures.push(before.chips("The flash blocks of (a)", &old)?);
    drawn
        .pictures
        .push(collected_look.chips("(b) The flash blocks in which they lie after the FTL's garbage collection", &old)?);
    drawn.pictures.push(after.segments("(c) Segments with files after the cleaning of LFS", &new));
    drawn.pictures.push(after.chips("The flash blocks of (c)", &new)?);
    Ok(drawn)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Library, Size};

    #[test]
    fn the_ftl_copies_files_that_lfs_moves_afterwards() {
        let context = PaperContext::open(&super::super::PAPER, &Library::default(), Size::Quick).expect("right data");
        let drawn = draw(&context).expect("a figure");
        let value = |row: &str, series: &str| {
            let point = drawn.points.iter().find(|point| point.setting == row && point.series == series);
            point.map(|point| point.value).expect("a value")
        };
        let all = [BY_FTL, BY_LFS, AFTERWARDS].map(|row| value(row, COPIES));
        assert_eq!(value(ALL, COPIES), all.iter().sum::<f64>());
        assert!(all.iter().all(|copies| *copies > 0.0), "{all:?}");
        // Figure 5: 3 copies and 2 erasures.
        assert!(value(ALL, OF_FILES) > 3.0 && value(ALL, ERASES) > 2.0 && value(ALL, IN_VAIN) > 0.0);
    }
}

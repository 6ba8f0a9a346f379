//! Figure 5: writes and cleaning of ALFS with AFTL.

use std::collections::BTreeSet;

use ssdlab_base::Nanos;
use ssdlab_fs::call::BLOCK_BYTES;
use ssdlab_fs::{Call, Content as Data, FileId, Reply};

use super::common::{illustrated, of_paper};
use super::figure02::FILES;
use super::small::{CLEANING_PERIOD, Look, Small};
use crate::frame::{Content, Drawn, Figure, Made, PaperContext};

/// The files that are written next; B is there already.
const NEXT: [&str; 4] = ["E", "B", "F", "G"];

pub(super) const COPIES: &str = "page copies";
pub(super) const ERASES: &str = "block erasures";
pub(super) const OF_FILES: &str = "copies of files";

/// From which the drive erases what is invalid: as long as its idle time, and the erases.
const IDLE: Nanos = Nanos::from_ms(500);

pub(super) static FIGURE: Figure = Figure {
    id: "figure05",
    title: "writes and cleaning of ALFS with AFTL",
    about: "On the drive of Figure 2, files A, B, C and D are made, then E, B, F and G: B is changed, the others are new. Then a \
            file with data uses up the space, and when no call comes for a while ALFS cleans one segment. Copies are the valid blocks \
            of the segments that were cleaned; erasures are those of the flash blocks in which the victim lay. What the \
            check-point of the cleaning writes (inode map, TIMB, usage) is not among the copies. A file without data is one block, \
            its inode.",
    differs: "",
    series: &[COPIES, OF_FILES, ERASES],
    content: Content::Facts(draw),
};

/// The writes of (a).
pub(super) fn write(mut alfs: Small) -> Result<Small, Box<dyn std::error::Error>> {
    let mut made: Vec<(&str, FileId)> = Vec::new();
    for file in FILES {
        made.push((file, alfs.create(file)?));
    }
    alfs.sync()?;
    for file in NEXT {
        match made.iter().find(|(name, _)| *name == file) {
            // A new version of the inode, without data.
            Some((_, file)) => drop(alfs.call(Call::Truncate { file: *file, size: 1 })?),
            None => drop(alfs.create(file)?),
        }
    }
    alfs.sync()?;
    Ok(alfs)
}

/// ALFS after the writes of (a).
fn written(context: &PaperContext) -> Result<Small, Box<dyn std::error::Error>> {
    write(Small::new(&illustrated(context, "Figures 2, 3 and 5", &[])?)?)
}

/// Fills the file system with a file, but for one segment.
pub(super) fn use_up(alfs: &mut Small) -> Result<(), Box<dyn std::error::Error>> {
    let filler = alfs.create("filler")?;
    let of_segment = u64::from(alfs.superblock()?.data_blocks());
    let Reply::Space(space) = alfs.call(Call::StatFs)? else { return Err("no space is told".into()) };
    let length = (of_segment * BLOCK_BYTES) as u32;
    for segment in 0..(space.blocks_free / of_segment).saturating_sub(1) {
        let offset = segment * u64::from(length);
        let content = Data::Bytes(vec![1; length as usize]);
        alfs.call(Call::Write { file: filler, offset, length, content, mode: Default::default() })?;
    }
    Ok(alfs.sync()?)
}

/// Segments that hold files.
pub(super) fn of_files(look: &Look) -> Vec<u32> {
    look.segments_of(|content| content.file().is_some_and(|name| name.len() == 1))
}

fn draw(context: &PaperContext) -> Made {
    let before = written(context)?.look()?;
    let mut alfs = written(context)?;
    use_up(&mut alfs)?;
    // One segment is cleaned in each period.
    alfs.idle(CLEANING_PERIOD);
    alfs.sync()?;
    let metrics = alfs.fs().metrics();
    let after = alfs.look_after(IDLE)?;
    let (old, new) = (of_files(&before), of_files(&after));
    let victims: Vec<u32> = old.iter().copied().filter(|segment| !new.contains(segment)).collect();
    let lay = before.flash_blocks(&victims)?;
    let erased = lay.iter().filter(|block| after.erases(**block) > before.erases(**block)).count();
    // A file whose only version lay in the victim was moved.
    let versions = |look: &Look, segments: &[u32], name: &str| {
        look.of(segments).filter(|block| block.content.file() == Some(name)).count()
    };
    let names = FILES.iter().chain(&NEXT).collect::<BTreeSet<_>>();
    let moved = names.into_iter().filter(|name| {
        let [of_victims, of_all] = [&victims, &old].map(|segments| versions(&before, segments, name));
        (of_victims, of_all) == (1, 1) && versions(&after, &new, name) == 1
    });
    let mut drawn = Drawn::default();
    let values = [
        (COPIES, metrics.cleaned_valid_blocks as f64, ""),
        (OF_FILES, moved.count() as f64, ""),
        (ERASES, erased as f64, ""),
    ];
    drawn.values(&of_paper("garbage collection", "", "", "a drive of AFTL with ALFS"), values);
    drawn.pictures.push(before.segments("(a) Segments with files before the cleaning", &old));
    drawn.pictures.push(after.segments("(b) Segments with files after it", &new));
    drawn.pictures.push(before.chips("The flash blocks of (a)", &old)?);
    drawn.pictures.push(after.chips("The flash blocks of (b)", &new)?);
    Ok(drawn)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Library, Size};

    #[test]
    fn three_files_are_copied_and_two_blocks_erased() {
        let context = PaperContext::open(&super::super::PAPER, &Library::default(), Size::Quick).expect("right data");
        let drawn = draw(&context).expect("a figure");
        let value = |series| drawn.points.iter().find(|point| point.series == series).map(|point| point.value);
        assert_eq!([COPIES, OF_FILES, ERASES].map(value), [Some(3.0), Some(3.0), Some(2.0)]);
    }
}

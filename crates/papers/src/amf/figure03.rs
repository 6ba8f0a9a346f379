//! Figure 3: check-point segments, and the switch from one to the other.

use super::common::{illustrated, of_paper};
use super::small::{Content as Of, Look, Small};
use crate::frame::{Content, Drawn, Figure, Made, PaperContext};

/// The segments of check-points (section 3.2).
const SEGMENTS: [u32; 2] = [1, 2];

const COUNT: &str = "check-points";
const OLDEST: &str = "oldest version";
const NEWEST: &str = "newest version";

pub(super) static FIGURE: Figure = Figure {
    id: "figure03",
    title: "check-point segments",
    about: "A file is made and a check-point written, again and again. When the segment of check-points is full, the other one, \
            which has only old versions, is trimmed, and the next check-point goes there. Each stage runs from the beginning on a new \
            drive of AFTL and ends with a power cut, so the picture shows what lies on the chips. A segment has eight blocks, and \
            a check-point is one block.",
    differs: "",
    series: &[COUNT, OLDEST, NEWEST],
    content: Content::Facts(draw),
};

/// The file system after so many check-points of ours, and how often it has switched the segments.
fn after(context: &PaperContext, checkpoints: u64) -> Result<(Look, u64), Box<dyn std::error::Error>> {
    let mut alfs = Small::new(&illustrated(context, "Figures 2, 3 and 5", &[])?)?;
    for number in 0..checkpoints {
        alfs.create(&format!("file {number}"))?;
        alfs.sync()?;
    }
    let switches = alfs.fs().metrics().checkpoint_switches;
    Ok((alfs.look()?, switches))
}

fn versions(look: &Look, segment: u32) -> Vec<u64> {
    let version = |content: &Of| match content {
        Of::Checkpoint(version) => Some(*version),
        _ => None,
    };
    look.of(&[segment]).filter_map(|block| version(&block.content)).collect()
}

fn draw(context: &PaperContext) -> Made {
    let blocks = Small::new(&illustrated(context, "Figures 2, 3 and 5", &[])?)?.superblock()?.segment_blocks;
    // The numbers of check-points with which the segments are switched for the first and the second time.
    let mut switched = Vec::new();
    for number in 1..=2 * u64::from(blocks) {
        if after(context, number)?.1 > switched.len() as u64 {
            switched.push(number);
        }
    }
    let [first, second] = switched[..] else {
        return Err(format!("{} check-points switched the segments {} times", 2 * blocks, switched.len()).into());
    };
    let stages = [
        ("one check-point", 1),
        ("segment 1 full", first - 1),
        ("segment 2 begun", first),
        ("segment 2 full", second - 1),
        ("segment 1 trimmed and begun", second),
    ];
    let mut drawn = Drawn::default();
    for (stage, checkpoints) in stages {
        let (look, _) = after(context, checkpoints)?;
        for segment in SEGMENTS {
            let found = versions(&look, segment);
            assert!(found.is_sorted(), "versions rise in segment {segment}: {found:?}");
            let label = of_paper(&format!("segment {segment}"), "", stage, "a drive of AFTL with ALFS");
            drawn.values(&label, [(COUNT, found.len() as f64, "")]);
            if let (Some(oldest), Some(newest)) = (found.first(), found.last()) {
                drawn.values(&label, [(OLDEST, *oldest as f64, ""), (NEWEST, *newest as f64, "")]);
            }
        }
        drawn.pictures.push(look.segments(&format!("Segments 1 and 2, {stage}"), &SEGMENTS));
    }
    Ok(drawn)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Library, Size};

    #[test]
    fn one_segment_always_holds_the_newest_check_points_and_the_other_is_trimmed_for_the_next() {
        let context = PaperContext::open(&super::super::PAPER, &Library::default(), Size::Quick).expect("right data");
        let drawn = draw(&context).expect("a figure");
        let counts: Vec<f64> =
            drawn.points.iter().filter(|point| point.series == COUNT).map(|point| point.value).collect();
        assert_eq!(counts, [3.0, 0.0, 8.0, 0.0, 8.0, 1.0, 8.0, 8.0, 1.0, 8.0]);
    }
}

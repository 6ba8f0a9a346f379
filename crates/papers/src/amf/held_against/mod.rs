//! LFS and the journaling file system held against F2FS and ext4: the programmes of recordings, run as calls, phase by phase.
//!
//! ```text
//!   recording of the original ----------------------------> Stream --+--> requests, counted
//!   programme --calls--> file system --requests--> log ---> Stream --+--> drives under PFTL and DFTL: write amplification
//! ```

mod programme;
mod stream;

use ssdlab_fs::Metrics;
use ssdlab_fs::call::BLOCK_BYTES;
use ssdlab_fs::kinds::FileSystemKind;
use ssdlab_workload::files::Personality;

use self::programme::{POSTMARK, Programme, Ran, Sizes};
use self::stream::Stream;
use crate::frame::{Content, Drawn, Figure, Label, Made, PaperContext};

/// A recording of an original, and the kind of file system that stands for it.
struct Pair {
    /// The input of the experiment, and what it is a recording of.
    recording: &'static str,
    original: &'static str,
    kind: &'static str,
    /// The variant of the drive that served the recording; with `, beside` those that both streams are sent to.
    variant: &'static str,
    /// Where the original's segments begin: what lies before is metadata in fixed places. 0 where it is not known.
    before_segments: u64,
    is_postmark: bool,
}

/// What mkfs of f2fs-tools makes of 2 GB: superblock, check-points, SIT, NAT and SSA in 13 segments of 2 MB. The recording's requests show
/// it: the first inode is written behind them, and a block of each segment that was filled in the last two of them.
const F2FS_2G: u64 = 13 << 21;

const F2FS: [Pair; 2] = [
    Pair {
        recording: "F2FS",
        original: "F2FS",
        kind: "lfs",
        variant: "held against, 2 GB",
        before_segments: F2FS_2G,
        is_postmark: false,
    },
    Pair {
        recording: "F2FS, Postmark",
        original: "F2FS",
        kind: "lfs",
        variant: "held against, 8 GB",
        before_segments: 0,
        is_postmark: true,
    },
];

const EXT4: [Pair; 1] = [Pair {
    recording: "ext4",
    original: "ext4",
    kind: "journaling",
    variant: "held against, 2 GB",
    before_segments: 0,
    is_postmark: false,
}];

/// The drive that served the recordings. Its write cache makes the host send flushes.
const SERVED: &str = "SM843";

/// The drives that the streams are sent to, as large and with the paper's over-provisioning.
const DRIVES: [&str; 2] = ["PFTL, 16 GB", "DFTL, 16 GB"];

/// The programme of `scripts/record-filesystems`, and a small one.
const WHOLE: Sizes = Sizes { files: 1024, updates: 72_089, writes: 192_000, some: 256, reads: 30_000 };
const SMALL: Sizes = Sizes { files: 320, updates: 4_000, writes: 4_000, some: 64, reads: 1_000 };

/// The guest of the recordings: 1 GB of memory; 96 MB may be dirty, and write-out begins at 32 MB.
const KEYS: [&str; 3] = ["cache=800m", "dirty_limit=12%", "dirty_background=4%"];

/// The guest of Postmark: 768 MB of memory.
const POSTMARK_KEYS: [&str; 1] = ["cache=600m"];

/// Postmark as it was recorded (examples/recordings/README.md), and a small one.
const POSTMARK_SET: [&str; 7] = [
    "files=40000",
    "size_low=1024",
    "size_high=28672",
    "transactions=40000",
    "read_block=4096",
    "write_block=4096",
    "buffered=false",
];
const POSTMARK_SMALL: [&str; 2] = ["files=400", "transactions=400"];

const WRITTEN: &str = "written";
const DIFFERENCE: &str = "to the original";
const BEYOND: &str = "beyond the program's";
const FIXED: &str = "in fixed places";
const NODES: &str = "nodes, directories";
const CLEANING: &str = "for cleaning";
const WRITES: [&str; 4] = ["writes of up to 4 KB", "16 KB", "128 KB", "longer"];
const FLUSHES: &str = "flushes";
const TRIMMED: &str = "trimmed";
const READ: &str = "read";
const READS: &str = "reads";
const AMPLIFIED: [&str; 2] = ["on PFTL", "on DFTL"];

const SERIES: [&str; 16] = [
    WRITTEN,
    DIFFERENCE,
    BEYOND,
    FIXED,
    NODES,
    CLEANING,
    WRITES[0],
    WRITES[1],
    WRITES[2],
    WRITES[3],
    FLUSHES,
    TRIMMED,
    READ,
    READS,
    AMPLIFIED[0],
    AMPLIFIED[1],
];

const ABOUT: &str = "The requests of the original, recorded, and those of our file system under the same programme, run as calls on the same \
                     drive. Columns: bytes written, and how they differ from the original's; what of them is beyond the bytes that the \
                     program wrote; of our file system, and of the original as far as addresses show it, the bytes of maps, check-points \
                     and summaries, which have fixed places; writes by their size; and pages programmed by pages written when the whole \
                     stream is sent to a new drive under each FTL. MB are of 10^6 bytes.";

pub(super) static AGAINST_F2FS: Figure = Figure {
    id: "held-against-f2fs",
    title: "LFS held against F2FS",
    about: ABOUT,
    differs: "",
    series: &SERIES,
    content: Content::Facts(|context| made(context, &F2FS)),
};

pub(super) static AGAINST_EXT4: Figure = Figure {
    id: "held-against-ext4",
    title: "the journaling file system held against ext4",
    about: ABOUT,
    differs: "",
    series: &SERIES,
    content: Content::Facts(|context| made(context, &EXT4)),
};

/// Runs the programme of a recording on a kind of file system.
fn run(context: &PaperContext, pair: &Pair, kind: &'static FileSystemKind) -> Result<Ran, String> {
    let config = context.variant(SERVED, pair.variant, &[]).map_err(|error| error.to_string())?;
    if !pair.is_postmark {
        return Programme::new(&config, kind, &KEYS)?.aged(if context.is_quick() { &SMALL } else { &WHOLE });
    }
    let mut personality = Personality::open("postmark").map_err(|error| error.to_string())?;
    let small = POSTMARK_SMALL.iter().filter(|_| context.is_quick());
    for setting in POSTMARK_SET.iter().chain(small) {
        personality.set(setting).map_err(|error| error.to_string())?;
    }
    let (file, writes) = if context.is_quick() { (64 << 20, 1_000) } else { (1200 << 20, 80_320) };
    Programme::new(&config, kind, &POSTMARK_KEYS)?.postmark(&personality, file, writes)
}

/// A stream of a pair, and what is known of it.
struct Side<'a> {
    name: &'static str,
    stream: &'a Stream,
    /// By phase, of our file system.
    metrics: &'a [Metrics],
    /// Where segments begin, of an original.
    before_segments: u64,
    amplified: Vec<Vec<Option<f64>>>,
}

fn made(context: &PaperContext, pairs: &[Pair]) -> Made {
    let mut drawn = Drawn::default();
    for pair in pairs {
        let config = context.variant(SERVED, pair.variant, &[])?;
        let recorded = context.input(pair.recording).map(|input| Stream::of_recording(input, &config)).transpose()?;
        let ours = FileSystemKind::of_name(pair.kind).ok().map(|kind| run(context, pair, kind)).transpose()?;
        if ours.is_none() {
            drawn.remark(format!("The file system '{}' is not built yet.", pair.kind));
        }
        let mut sides = Vec::new();
        if let Some(stream) = &recorded {
            let (amplified, before_segments) = (amplified(context, pair, stream)?, pair.before_segments);
            sides.push(Side { name: pair.original, stream, metrics: &[], before_segments, amplified });
        }
        if let Some(Ran { stream, metrics }) = &ours {
            let amplified = amplified(context, pair, stream)?;
            sides.push(Side { name: pair.kind, stream, metrics, before_segments: 0, amplified });
        }
        // A part of a recording has no phases: ours has all.
        let phases = sides.last().map_or(&[][..], |side| &side.stream.phases);
        for phase in phases.iter().filter(|phase| !pair.is_postmark || phase.name.starts_with(POSTMARK)) {
            let mut original = None;
            for side in &sides {
                let Some(at) = side.stream.place(&phase.name) else { continue };
                let (setting, input) = (side.name.to_string(), pair.recording.to_string());
                let label = Label { setting, input, ..Label::described(&phase.name, "", pair.recording) };
                row(&mut drawn, &label, side, at, original);
                original.get_or_insert(side.stream.counts(&side.stream.phases[at]).write_bytes);
            }
        }
    }
    Ok(drawn)
}

/// By drive and phase, the write amplification of a stream.
fn amplified(context: &PaperContext, pair: &Pair, stream: &Stream) -> Result<Vec<Vec<Option<f64>>>, String> {
    let variant = format!("{}, beside", pair.variant);
    let on = |drive: &&str| {
        let config = context.variant(drive, &variant, &[]).map_err(|error| error.to_string())?;
        stream.amplification(&config)
    };
    DRIVES.iter().map(on).collect()
}

const MB: f64 = 1e6;

/// A phase in which the original writes less, such as its reads and its unmount, is not compared.
const COMPARED: u64 = 10_000_000;

/// The row of a phase, held against the bytes that the original writes.
fn row(drawn: &mut Drawn, label: &Label, side: &Side<'_>, at: usize, original: Option<u64>) {
    let phase = &side.stream.phases[at];
    let counts = side.stream.counts(phase);
    let written = counts.write_bytes;
    let mut draw = |series, value: f64, unit| drawn.points.push(label.point(series, value, unit));
    let more_than = |bytes: u64| (written as f64 / bytes as f64 - 1.0) * 100.0;
    draw(WRITTEN, written as f64 / MB, "MB");
    if let Some(original) = original.filter(|bytes| *bytes >= COMPARED) {
        draw(DIFFERENCE, more_than(original), "%");
    }
    // A phase of reads writes less than it reads.
    if phase.bytes > 0 && written > phase.bytes / 2 {
        draw(BEYOND, more_than(phase.bytes), "%");
    }
    if side.before_segments > 0 {
        draw(FIXED, side.stream.written_below(phase, side.before_segments) as f64 / MB, "MB");
    }
    for (series, count) in WRITES.into_iter().zip(counts.writes) {
        draw(series, count as f64, "");
    }
    draw(FLUSHES, counts.flushes as f64, "");
    draw(TRIMMED, counts.trim_bytes as f64 / MB, "MB");
    draw(READ, counts.read_bytes as f64 / MB, "MB");
    draw(READS, counts.reads as f64, "");
    for (series, values) in AMPLIFIED.into_iter().zip(&side.amplified) {
        if let Some(value) = values[at] {
            draw(series, value, "x");
        }
    }
    if let Some(metrics) = side.metrics.get(at) {
        kinds(drawn, label, metrics);
    }
}

/// What our file system says of a phase.
fn kinds(drawn: &mut Drawn, label: &Label, metrics: &Metrics) {
    let bytes = |blocks: u64| (blocks * BLOCK_BYTES) as f64 / MB;
    let maps = metrics.map_blocks + metrics.table_blocks + metrics.usage_blocks;
    let fixed = maps + metrics.checkpoint_blocks + metrics.journal_blocks + metrics.summary_blocks;
    drawn.points.push(label.point(FIXED, bytes(fixed), "MB"));
    drawn.points.push(label.point(
        NODES,
        bytes(metrics.node_blocks + metrics.directory_blocks + metrics.home_blocks),
        "MB",
    ));
    drawn.points.push(label.point(CLEANING, bytes(metrics.moved_blocks), "MB"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Library, Size};

    /// Bytes of requests, and blocks that the file system says it wrote, are two accounts of one thing.
    #[test]
    fn the_requests_of_each_phase_are_what_the_file_system_says_it_wrote() {
        let context = PaperContext::open(&super::super::PAPER, &Library::default(), Size::Quick);
        let context = context.expect("the paper's data is right");
        for pair in &F2FS {
            let kind = FileSystemKind::of_name(pair.kind).expect("it is one");
            let ran = run(&context, pair, kind).expect("it runs");
            let phases = || ran.stream.phases.iter().zip(&ran.metrics);
            // A new file system is counted from its mount on, and an unmounted one is gone.
            for (phase, metrics) in phases().filter(|(phase, _)| !["mkfs", "end"].contains(&&*phase.name)) {
                let blocks = metrics.all_blocks();
                let counts = ran.stream.counts(phase);
                assert_eq!(counts.write_bytes, blocks * BLOCK_BYTES, "{}: {}", pair.recording, phase.name);
            }
            // The phases cover the stream.
            let ends = ran.stream.phases.iter().map(|phase| phase.requests.end);
            let begins = ran.stream.phases.iter().map(|phase| phase.requests.start);
            assert!(begins.eq(std::iter::once(0).chain(ends.take(ran.stream.phases.len() - 1))));
            assert_eq!(ran.stream.phases.last().map(|phase| phase.requests.end), Some(ran.stream.requests.len()));
        }
    }

    #[test]
    fn a_drive_that_has_room_for_all_writes_each_page_once() {
        let context = PaperContext::open(&super::super::PAPER, &Library::default(), Size::Quick);
        let context = context.expect("the paper's data is right");
        let ran = run(&context, &F2FS[0], FileSystemKind::of_name("lfs").expect("it is one")).expect("it runs");
        let by_drive = amplified(&context, &F2FS[0], &ran.stream).expect("a drive");
        let files = ran.stream.place("files").expect("a phase");
        assert_eq!(by_drive[0][files], Some(1.0), "PFTL has no map on flash");
    }
}

//! Every crash and cut of every short sequence of calls on two files and a directory.

use std::sync::atomic::AtomicBool;

use ssdlab_base::{CommandSet, rng};
use ssdlab_device::{DriveConfig, Settings, design_with, draw_design};
use ssdlab_fs::kinds::FileSystemKind;

use super::Files;
use super::call::FileCall;
use crate::campaign::{Failed, Outcome};
use crate::case::Case;
use crate::configs::handful;
use crate::cut::{Cut, Moment, Whose};
use crate::step::Step;
use crate::totals::Totals;
use crate::walk::{Sequences, each_event};

/// What is there before.
const BEFORE: [&str; 7] = ["create /a", "write /a 0+5000", "create /b", "write /b 0+300", "mkdir /d", "sync", "drain"];

/// What sequences are made of. `/d/a` is made by the renames.
const ALPHABET: [&str; 15] = [
    "write /a 4000+5000 depth=8",
    "append /b 5000 depth=8",
    "write /a 0+4096 sync depth=8",
    "truncate /a 100 depth=8",
    "truncate /b 9000 depth=8",
    "unlink /a depth=8",
    "create /d/c depth=8",
    "append /d/c 5000 sync depth=8",
    "rename /a /d/a depth=8",
    "rename /b /a depth=8",
    "rename /d/a /b depth=8",
    "rmdir /d depth=8",
    "mkdir /d/e depth=8",
    "fsync /a depth=8",
    "fsync / depth=8",
];

/// Whose power goes, and when within the time to the next event, in percent.
const CUTS: [(Whose, u8); 3] = [(Whose::All, 0), (Whose::All, 50), (Whose::Host, 0)];

/// Sequences of calls to be run.
#[derive(Clone, Debug)]
pub struct ShortSequences {
    /// The kind of file system.
    pub kind: &'static str,
    /// Calls of a sequence, at most.
    pub length: u32,
    /// Threads.
    pub jobs: usize,
}

fn step(text: &str) -> Step<FileCall> {
    Step::parse::<Files>(text).unwrap_or_else(|error| panic!("{error}"))
}

/// Blocks of a segment, and segments.
const SEGMENT_BLOCKS: u32 = 8;
const SEGMENTS: u32 = 34;

/// A drive of few and small segments. Its two dies share a channel, so their programs end one after the other. Without a command set it is
/// one of block I/O, with a write cache.
fn drive(set: Option<&'static CommandSet>, segments: u32) -> DriveConfig {
    let mut config = handful();
    match set {
        Some(set) => {
            let design = design_with(set).unwrap_or_else(|| panic!("a design has the set {}", set.name));
            draw_design(&mut config, design, &mut rng(1, "short sequences"));
        }
        None => {
            (config.buffer.policy, config.buffer.bytes) = ("lru".to_string(), 32 << 10);
        }
    }
    let geometry = &mut config.flash.geometry;
    (geometry.channels, geometry.chips_per_channel) = (1, 2);
    (geometry.pages_per_block, geometry.page_bytes) = (SEGMENT_BLOCKS / 2, 4096);
    geometry.blocks_per_plane = segments + 8;
    config.ftl.mapping_unit = 4096;
    if set.is_some() {
        config.ftl.own = Settings::default();
    }
    config.gc.free_blocks = 3;
    config.user_bytes = u64::from(segments * SEGMENT_BLOCKS) * 4096;
    config
}

impl ShortSequences {
    /// Runs all sequences of 1 up to `length` calls, behind each a sync, cut at each event; until one fails, or `stop` is set. `watch`
    /// hears of the counts now and then.
    pub fn run(&self, stop: &AtomicBool, watch: &(dyn Fn(&Totals) + Sync)) -> Outcome<Files> {
        let kind = FileSystemKind::of_name(self.kind).unwrap_or_else(|error| panic!("{error}"));
        let has = |name: &str| kind.keys.iter().any(|key| key.name == name);
        // An area for summaries takes a segment for each eight of so few blocks, and a journal takes 256 blocks.
        let (variants, segments) = if has("rules") {
            (["rules = \"ext3\"\n", "rules = \"ext4\"\n"], SEGMENTS + 40)
        } else {
            let extra = if kind.command_set.is_some() { 0 } else { 10 };
            (["fsync = \"roll-forward\"\n", "fsync = \"check-point\"\n"], SEGMENTS + extra)
        };
        let case = |variant: &str| {
            let all = [
                ("logs", "2".to_string()),
                ("cache", "409600".to_string()),
                ("checkpoint_period", "0".to_string()),
                ("commit_period", "0".to_string()),
                ("cleaning_period", "0".to_string()),
                ("segment", (SEGMENT_BLOCKS * 4096).to_string()),
                ("group", "524288".to_string()),
                ("journal", "1048576".to_string()),
            ];
            let of_kind = all.iter().filter(|(key, _)| has(key));
            let keys: String = of_kind.map(|(key, value)| format!("{key} = {value}\n")).collect();
            let keys = format!("{keys}{variant}");
            let subject = Files::new(self.kind, &keys, "short sequences").unwrap_or_else(|error| panic!("{error}"));
            let before: Vec<Step<FileCall>> = BEFORE.map(step).into();
            Case { seed: 1, drive: drive(kind.command_set, segments), subject, steps: before }
        };
        let systems = variants.map(case);
        let alphabet = ALPHABET.map(step);
        let sequences = Sequences { systems: &systems, alphabet: &alphabet, length: self.length, jobs: self.jobs };
        sequences.run(stop, watch, &every_cut)
    }
}

fn every_cut(fresh: &Case<Files>, sequence: &[Step<FileCall>], totals: &mut Totals) -> Result<(), Failed<Files>> {
    for (whose, percent) in CUTS {
        // The power goes once more at the end of each case.
        each_event(totals, 1, |events| {
            let cut = Step::Cut(Cut { whose, at: Moment::After(events), percent, ..Cut::NOW });
            let mut case = fresh.clone();
            // Before the first event is behind the last call: before the first call nothing has happened at all.
            let calls = sequence.iter().cloned().chain([step("sync depth=8")]);
            if events > 0 {
                case.steps.push(cut);
                case.steps.extend(calls);
            } else {
                case.steps.extend(calls);
                case.steps.push(cut);
            }
            case.steps.push(Step::Drain);
            case
        })?;
    }
    Ok(())
}

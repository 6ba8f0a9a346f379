//! Power cuts, faults and broken rules on drives with append-only segments.

use ssdlab_base::command_sets::segments::SEGMENTS;
use ssdlab_base::rng;
use ssdlab_device::{DriveConfig, design_with, draw_design};
use ssdlab_torture::seeds::{campaign, tell};
use ssdlab_torture::segments::{SegmentCase, Step, every_cut_of};
use ssdlab_torture::{Totals, configs};

#[test]
fn what_was_acknowledged_stays_readable_and_what_was_trimmed_does_not_come_back() {
    let name = "what_was_acknowledged_stays_readable_and_what_was_trimmed_does_not_come_back";
    let mut totals = Totals::default();
    campaign("segments", name, 600, |seed| {
        let Some(case) = SegmentCase::draw(seed) else { return };
        tell(case.config());
        let found = case.run(&mut totals);
        assert!(found.is_ok(), "{found:?}");
    });
    println!("{} cases, {} cuts, {} commands", totals.cases, totals.cuts, totals.commands);
}

/// Two segments of two lanes, with a block of two pages each.
fn two_segments() -> DriveConfig {
    let mut config = configs::handful();
    config.flash.geometry.channels = 2;
    config.flash.geometry.blocks_per_plane = 6;
    config.gc.free_blocks = 3;
    let design = design_with(&SEGMENTS).expect("a design with segments");
    draw_design(&mut config, design, &mut rng(1, "two segments"));
    config.flash.geometry.page_bytes = 1024;
    config.user_bytes = 2 * 4 * 1024;
    config
}

/// All sequences of up to 3 commands on two segments, one by one and all in flight together, cut at every flash event.
#[test]
fn every_cut_of_every_short_sequence_is_survived() {
    let config = two_segments();
    let mut steps = vec![Step::Flush];
    for segment in 0..2 {
        steps.extend([Step::Append(segment, 1), Step::Append(segment, 4), Step::Two(segment), Step::Trim(segment)]);
    }
    let mut sequences: Vec<Vec<Step>> = vec![Vec::new()];
    let mut all = Vec::new();
    for _ in 0..3 {
        sequences =
            sequences.iter().flat_map(|before| steps.iter().map(|step| [&before[..], &[*step]].concat())).collect();
        all.extend(sequences.clone());
    }
    assert_eq!(all.len(), 9 + 81 + 729);
    let mut cuts = 0;
    for sequence in all {
        for one_by_one in [true, false] {
            // With something to trim before.
            for before in [vec![], vec![Step::Append(0, 3), Step::Trim(0), Step::Flush]] {
                cuts += every_cut_of(&config, &[before, sequence.clone()].concat(), one_by_one);
            }
        }
    }
    println!("{cuts} cuts");
    assert!(cuts > 15_000, "{cuts} cuts");
}

//! Power cuts, faults and broken rules on drives with append-only segments.

use std::sync::atomic::AtomicBool;

use ssdlab_base::command_sets::segments::SEGMENTS;
use ssdlab_base::rng;
use ssdlab_device::{DriveConfig, design_with, draw_design};
use ssdlab_torture::cut::{Cut, Moment};
use ssdlab_torture::segments::{SegmentCommand, SegmentScope, Segments};
use ssdlab_torture::step::Step;
use ssdlab_torture::walk::{Sequences, each_event};
use ssdlab_torture::{Case, configs};

use crate::failing;

#[test]
fn what_was_acknowledged_stays_readable_and_what_was_trimmed_does_not_come_back() {
    let totals = failing::campaign("segments", 600, SegmentScope);
    assert!(totals.cuts >= totals.cases * 2, "{} power cuts in {} cases", totals.cuts, totals.cases);
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
    let steps = |text: &str| {
        text.split(", ").map(|step| Step::parse::<Segments>(step).expect(step)).collect::<Vec<Step<SegmentCommand>>>()
    };
    let mut alphabet = vec![steps("flush")];
    for segment in 0..2 {
        let write = format!("write {segment}+1");
        alphabet.extend([
            steps(&write),
            steps(&format!("write {segment}+4")),
            steps(&format!("{write}, {write}")),
            steps(&format!("trim {segment}+1")),
        ]);
    }
    // With something to trim before.
    let befores = [vec![], vec![steps("write 0+3"), steps("trim 0+1"), steps("flush")]];
    let (systems, jobs) = ([two_segments()], std::thread::available_parallelism().map_or(1, usize::from));
    let sequences = Sequences { systems: &systems, alphabet: &alphabet, length: 3, jobs };
    let outcome = sequences.run(&AtomicBool::new(false), &|_| {}, &|drive, sequence, totals| {
        for one_by_one in [true, false] {
            for before in &befores {
                // The power goes once more at the end of each case.
                each_event(totals, 1, |events| {
                    let cut = Step::Cut(Cut { at: Moment::After(events), ..Cut::NOW });
                    let mut steps = Vec::new();
                    for step in before.iter().chain(sequence) {
                        steps.extend_from_slice(step);
                        steps.extend(one_by_one.then_some(Step::Drain));
                    }
                    // Before the first event is behind the first command, or all that are in flight together.
                    let place = if events > 0 {
                        0
                    } else if one_by_one {
                        1
                    } else {
                        steps.len()
                    };
                    steps.insert(place, cut);
                    Case { seed: 1, drive: drive.clone(), subject: Segments, steps }
                })?;
            }
        }
        Ok(())
    });
    failing::none("two segments", outcome.failed);
    println!("{} cases, {} cuts", outcome.totals.cases, outcome.totals.cuts);
    assert!(outcome.totals.cases > 15_000, "{} cases", outcome.totals.cases);
}

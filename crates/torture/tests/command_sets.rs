//! Drives with commands of their own: random ones at any depth, with power cuts and hosts that begin anew.

use ssdlab_torture::tags::TagCase;

const SEEDS: u64 = 300;
const COMMANDS: usize = 300;

#[test]
fn every_answer_and_event_is_what_the_model_says() {
    let (mut drives, mut executed) = (0, 0);
    for seed in 1..=SEEDS {
        let Some(case) = TagCase::draw(seed, COMMANDS) else { continue };
        match case.run() {
            Ok(commands) => executed += commands,
            Err(finding) => {
                let (shrunk, finding) = case.shrink(&finding);
                panic!("seed {seed}: {finding:#?}\nafter {:#?}\non {:#?}", shrunk.steps, shrunk.config);
            }
        }
        drives += 1;
    }
    println!("{drives} drives executed {executed} commands");
    assert!(drives > SEEDS / 2 && executed > 30_000, "{drives} drives, {executed} commands");
}

//! Every kind of command keeps what its answer promises when the process ends at once, and an image is whole wherever in
//! its writes the process ends.

mod power;

use power::Subject;
use ssdlab_base::rng;
use ssdlab_live::engine::PROMISES;

/// Times that each kind is answered and killed at once.
const CUTS: u64 = 1000;

/// Cuts that one drive takes before another one is drawn.
const CUTS_A_DRIVE: u64 = 50;

/// `cut` again and again on drives with and without a write buffer.
fn cuts(name: &str, count: u64, mut cut: impl FnMut(&mut Subject, &mut ssdlab_base::Rng) -> Result<(), String>) {
    let mut rng = rng(1, name);
    for drive in 0..count / CUTS_A_DRIVE {
        let mut subject = Subject::draw(&mut rng, drive % 2 == 0);
        for number in 0..=CUTS_A_DRIVE {
            let held = match number {
                CUTS_A_DRIVE => subject.look(&mut rng),
                _ => cut(&mut subject, &mut rng),
            };
            held.unwrap_or_else(|what| panic!("{name}, drive {drive}, cut {number}: {what}"));
        }
    }
}

#[test]
fn every_kind_of_command_keeps_its_promise_when_its_answer_is_the_last_thing() {
    std::thread::scope(|scope| {
        for half in [&PROMISES[..5], &PROMISES[5..]] {
            scope.spawn(move || {
                for kind in half {
                    cuts(kind.name, CUTS, |subject, rng| subject.cut_when_answered(kind, rng));
                }
            });
        }
    });
}

#[test]
fn a_process_that_ends_in_any_write_leaves_an_image_that_holds_what_was_promised() {
    cuts("any write", 3 * CUTS, Subject::cut_in_any_write);
}

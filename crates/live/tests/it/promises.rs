//! Every kind of command keeps what its answer promises when the process ends at once, and an image is whole wherever in
//! its writes the process ends.

use ssdlab_base::rng;
use ssdlab_live::engine::PROMISES;

use crate::power::Subject;

/// Times that each kind is answered and killed at once.
const CUTS: u64 = 1000;

/// Cuts that one drive takes before another one is drawn.
const CUTS_A_DRIVE: u64 = 50;

/// `cut` again and again on drives with and without a write buffer.
fn cuts(name: &str, count: u64, cut: impl FnMut(&mut Subject, &mut ssdlab_base::Rng) -> Result<(), String>) {
    cuts_of(name, count, |rng, drive| Subject::draw(rng, drive % 2 == 0), cut);
}

/// `cut` again and again on what `draw` gives for each drive's number, `count` cuts in all.
fn cuts_of(
    name: &str,
    count: u64,
    draw: impl Fn(&mut ssdlab_base::Rng, u64) -> Subject,
    mut cut: impl FnMut(&mut Subject, &mut ssdlab_base::Rng) -> Result<(), String>,
) {
    let mut rng = rng(1, name);
    for drive in 0..count / CUTS_A_DRIVE {
        let mut subject = draw(&mut rng, drive);
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

/// A layer above `restoring` and a stripe of two drives once wrote to one drive what the other's flush allowed, and a kill left
/// the one image with it and the other without what was flushed.
#[test]
fn a_stack_whose_process_ends_in_any_write_keeps_its_promises_on_all_its_drives() {
    let draw = |rng: &mut ssdlab_base::Rng, number| Subject::draw_stack(rng, number % 4 == 3);
    cuts_of("any write of a stack", 300, draw, Subject::cut_in_any_write);
    let kinds = PROMISES.iter().cycle();
    let mut kinds = kinds.map(|kind| move |subject: &mut Subject, rng: &mut _| subject.cut_when_answered(kind, rng));
    cuts_of("answer of a stack", 200, draw, |subject, rng| kinds.next().expect("it goes on")(subject, rng));
}

//! Every power cut of every short sequence of commands: what the walks of all subjects share.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::campaign::{Ended, Failed, Outcome, in_order, run_failing};
use crate::case::{Case, Subject};
use crate::totals::Totals;

/// Runs all cases of a sequence on a system.
pub type EachSequence<'a, S, T, L> = dyn Fn(&T, &[L], &mut Totals) -> Result<(), Failed<S>> + Sync + 'a;

/// Sequences of 1 up to `length` of an alphabet, each on each of some systems.
#[derive(Clone, Copy, Debug)]
pub struct Sequences<'a, T, L> {
    /// What they are tried on.
    pub systems: &'a [T],
    /// What sequences are made of.
    pub alphabet: &'a [L],
    /// The longest sequence.
    pub length: u32,
    /// Threads.
    pub jobs: usize,
}

impl<T: Sync, L: Clone + Sync> Sequences<'_, T, L> {
    /// Lets `each` run all cases of a sequence, until one fails or `stop` is set. `watch` hears of the counts now and
    /// then.
    pub fn run<S: Subject>(
        &self,
        stop: &AtomicBool,
        watch: &(dyn Fn(&Totals) + Sync),
        each: &EachSequence<'_, S, T, L>,
    ) -> Outcome<S> {
        let (letters, systems) = (self.alphabet.len() as u64, self.systems.len() as u64);
        let sequences: u64 = (1..=self.length).map(|length| letters.pow(length)).sum();
        in_order(sequences * systems, self.jobs, &|| stop.load(Ordering::Relaxed), watch, &|number, totals| {
            let system = &self.systems[(number % systems) as usize];
            let sequence = sequence(self.alphabet, number / systems);
            each(system, &sequence, totals).map_err(Ended::Found)
        })
    }
}

/// Sequence `number`: all of one letter come first, then all of two...
fn sequence<L: Clone>(alphabet: &[L], mut number: u64) -> Vec<L> {
    let count = alphabet.len() as u64;
    assert!(count > 0, "sequences are made of something");
    let mut length = 1;
    while number >= count.pow(length) {
        number -= count.pow(length);
        length += 1;
    }
    (0..length).map(|place| alphabet[(number / count.pow(place) % count) as usize].clone()).collect()
}

/// Runs the cases that cut the power after 0 events, 1, 2, and so on, until there are no more events: then a case has
/// no more than the `others` cuts that it has anyway.
///
/// # Errors
/// The first that failed.
pub fn each_event<S: Subject>(
    totals: &mut Totals,
    others: u64,
    case: impl Fn(u32) -> Case<S>,
) -> Result<(), Failed<S>> {
    for events in 0.. {
        let before = totals.cuts;
        run_failing(case(events), totals)?;
        assert!(totals.cuts >= before + others, "{} power cuts, and {others} come in any case", totals.cuts - before);
        if totals.cuts - before <= others {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sequence_comes_once() {
        let alphabet = ["a", "b", "c", "d", "e", "f", "g"];
        let count = alphabet.len();
        let all: Vec<String> =
            (0..(count + count * count) as u64).map(|number| sequence(&alphabet, number).concat()).collect();
        assert!(all[..count].iter().all(|sequence| sequence.len() == 1));
        assert!(all[count..].iter().all(|sequence| sequence.len() == 2));
        let distinct: std::collections::HashSet<&String> = all.iter().collect();
        assert_eq!(distinct.len(), count + count * count);
    }
}

//! What standard error says of full disks, read-only drives and degraded layers, when it begins and when it is over.

use std::time::{Duration, Instant};

use ssdlab_live::{Condition, Engine};

use crate::stderr;

/// What is over for this long is said to be over: a disk at its limit is full and not full many times a second.
const SETTLED: Duration = Duration::from_secs(1);

/// What was said.
#[derive(Debug, Default)]
pub(crate) struct ConditionReport {
    /// With when each was seen last.
    told: Vec<(Condition, Instant)>,
}

impl ConditionReport {
    /// Says what has begun, and what has been over for a while.
    pub(crate) fn look(&mut self, engine: &Engine) {
        self.compare(engine.conditions(), Instant::now(), &mut |line| stderr::say(line));
    }

    fn compare(&mut self, found: Vec<Condition>, now: Instant, say: &mut dyn FnMut(String)) {
        for condition in found {
            match self.told.iter_mut().find(|(known, _)| *known == condition) {
                Some((_, seen)) => *seen = now,
                None => {
                    say(format!("warning: {}: {}", condition.of, condition.what));
                    self.told.push((condition, now));
                }
            }
        }
        self.told.retain(|(condition, seen)| {
            let is_over = now.duration_since(*seen) >= SETTLED;
            if is_over {
                say(format!("note: {}: {}", condition.of, condition.over));
            }
            !is_over
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_and_goes_is_said_once_until_it_stays_away() {
        let condition =
            |of: &str| Condition { of: of.to_string(), what: "full".to_string(), over: "space".to_string() };
        let (mut report, mut said) = (ConditionReport::default(), Vec::new());
        let began = Instant::now();
        let mut look = |ms: u64, found: &[&str]| {
            let found = found.iter().map(|of| condition(of)).collect();
            report.compare(found, began + Duration::from_millis(ms), &mut |line| said.push(line));
            std::mem::take(&mut said)
        };
        assert_eq!(look(0, &[]), [""; 0]);
        assert_eq!(look(50, &["a"]), ["warning: a: full"]);
        assert_eq!(look(100, &["a", "b"]), ["warning: b: full"]);
        assert_eq!(look(900, &["b"]), [""; 0]);
        assert_eq!(look(1000, &["a", "b"]), [""; 0], "it was away for less than a second");
        assert_eq!(look(2000, &["b"]), ["note: a: space"]);
        assert_eq!(look(2050, &["a", "b"]), ["warning: a: full"]);
        assert_eq!(look(9000, &[]), ["note: b: space", "note: a: space"]);
    }
}

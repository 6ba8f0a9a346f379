//! Which commands in a layer overlap: those that do take effect in the order in which they came.

use std::collections::BTreeMap;

use ssdlab_base::{Op, Request};

/// Ranges of commands that have not ended, by first sector and number.
#[derive(Debug, Default)]
pub(crate) struct Overlaps {
    /// (first sector, number): end, and whether it changes what is there.
    ranges: BTreeMap<(u64, u64), (u64, bool)>,
    /// The longest range since the last time there was none.
    longest: u64,
    /// Commands among them that change what is there: without one, no read waits.
    changing: usize,
}

/// Whether a command changes sectors.
pub(crate) const fn changes(op: Op) -> bool {
    matches!(op, Op::Write | Op::Trim | Op::WriteZeroes)
}

impl Overlaps {
    /// A command arrives; numbers only grow.
    pub(crate) fn add(&mut self, number: u64, request: &Request) {
        if request.op == Op::Flush || request.sectors == 0 {
            return;
        }
        self.longest = if self.ranges.is_empty() { request.sectors } else { self.longest.max(request.sectors) };
        self.ranges.insert((request.sector, number), (request.end(), changes(request.op)));
        self.changing += usize::from(changes(request.op));
    }

    /// A command has ended.
    pub(crate) fn remove(&mut self, number: u64, request: &Request) {
        if let Some((_, changes)) = self.ranges.remove(&(request.sector, number)) {
            self.changing -= usize::from(changes);
        }
    }

    /// Whether an earlier command that has not ended overlaps this one, and one of the two changes what is there.
    pub(crate) fn is_blocked(&self, number: u64, request: &Request) -> bool {
        self.blockers(number, request).next().is_some()
    }

    /// The numbers of such commands.
    pub(crate) fn blockers(&self, number: u64, request: &Request) -> impl Iterator<Item = u64> {
        let Request { op, sector, .. } = *request;
        let is_free = op == Op::Flush || request.sectors == 0 || (self.changing == 0 && !changes(op));
        let from = if is_free { request.end() } else { sector.saturating_sub(self.longest) };
        let near = self.ranges.range((from, 0)..(request.end(), 0));
        let blocks = move |other: u64, end: u64, other_changes: bool| {
            other < number && end > sector && (other_changes || changes(op))
        };
        near.filter(move |((_, other), (end, other_changes))| blocks(*other, *end, *other_changes))
            .map(|((_, other), _)| *other)
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use ssdlab_base::rng;

    use super::*;

    #[test]
    fn what_is_blocked_is_what_a_list_of_all_says() {
        let mut rng = rng(1, "overlaps");
        let (mut overlaps, mut all) = (Overlaps::default(), Vec::<(u64, Request)>::new());
        let mut blocked = 0;
        for number in 0..20_000 {
            let op = [Op::Read, Op::Write, Op::Trim, Op::Flush][rng.random_range(0..4)];
            let length = [0, 1, 3, 40][rng.random_range(0..4)];
            let request = Request::new(op, rng.random_range(0..300), length);
            overlaps.add(number, &request);
            let meets = |other: &Request| {
                let share = other.sector < request.end() && request.sector < other.end();
                share && request.sectors > 0 && other.sectors > 0 && (changes(op) || changes(other.op))
            };
            let flush = |request: &Request| request.op == Op::Flush;
            let expected = !flush(&request) && all.iter().any(|(_, other)| !flush(other) && meets(other));
            assert_eq!(overlaps.is_blocked(number, &request), expected, "{request:?} among {all:?}");
            blocked += u64::from(expected);
            all.push((number, request));
            while all.len() > rng.random_range(0..12) {
                let (number, request) = all.swap_remove(rng.random_range(0..all.len()));
                overlaps.remove(number, &request);
            }
        }
        assert!(blocked > 1000, "only {blocked} of them were");
    }
}

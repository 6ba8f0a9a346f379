//! Which commands in a layer overlap: those that do take effect in the order in which they came.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;
use ssdlab_base::{Op, Request};

/// First sector and number of a command.
type Key = (u64, u64);

/// Commands that have not ended, and which of them wait for which. Numbers only grow; commands without sectors wait for nothing.
#[derive(Debug, Default)]
pub(crate) struct Overlaps {
    commands: BTreeMap<Key, Waiting>,
    /// By command, later ones that it blocks; few block any.
    blocked: FxHashMap<Key, Vec<Key>>,
    /// The longest range since the last time there was none.
    longest: u64,
    /// Commands among them that change what is there: without one, no read waits.
    changing: usize,
    /// Commands that wait.
    waiting: usize,
    /// By number, those that wait and may have a turn.
    ready: BTreeSet<(u64, u32)>,
}

/// A command that has not ended.
#[derive(Debug)]
struct Waiting {
    slot: u32,
    end: u64,
    changes: bool,
    /// Earlier commands that overlap it, where one of the two changes what is there.
    blockers: u32,
    /// Those of them that it may not pass.
    barriers: u32,
    /// Later ones may pass it.
    is_passable: bool,
    /// It may pass earlier ones.
    passes: bool,
}

/// What a command may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Nothing before it is on its sectors.
    Free,
    /// It may begin before earlier ones have ended, but not take effect.
    Passes,
    Waits,
}

/// Whether a command changes sectors.
pub(crate) const fn changes(op: Op) -> bool {
    matches!(op, Op::Write | Op::Trim | Op::WriteZeroes)
}

impl Waiting {
    const fn turn(&self) -> Turn {
        match self {
            Waiting { blockers: 0, .. } => Turn::Free,
            Waiting { passes: true, barriers: 0, .. } => Turn::Passes,
            _ => Turn::Waits,
        }
    }
}

impl Overlaps {
    /// A command arrives, and `next_ready` names its slot when it need not wait any longer.
    pub(crate) fn add(&mut self, number: u64, slot: u32, request: &Request) -> Turn {
        self.add_passing(number, slot, request, false)
    }

    /// A command arrives, and with `passes` it may pass earlier ones. `next_ready` names its slot when it need not wait
    /// any longer.
    pub(crate) fn add_passing(&mut self, number: u64, slot: u32, request: &Request, passes: bool) -> Turn {
        let (op, sector, end) = (request.op, request.sector, request.end());
        if op == Op::Flush || request.sectors == 0 {
            return Turn::Free;
        }
        self.longest = if self.commands.is_empty() { request.sectors } else { self.longest.max(request.sectors) };
        let (mut blockers, mut barriers) = (0, 0);
        if self.changing > 0 || changes(op) {
            for (key, other) in self.commands.range((sector.saturating_sub(self.longest), 0)..(end, 0)) {
                if other.end > sector && (other.changes || changes(op)) {
                    self.blocked.entry(*key).or_default().push((sector, number));
                    blockers += 1;
                    barriers += u32::from(!other.is_passable);
                }
            }
        }
        let changes = changes(op);
        let command = Waiting { slot, end, changes, blockers, barriers, is_passable: false, passes };
        let turn = command.turn();
        self.changing += usize::from(changes);
        self.waiting += usize::from(blockers > 0);
        self.commands.insert((sector, number), command);
        turn
    }

    /// A command has ended.
    pub(crate) fn remove(&mut self, number: u64, request: &Request) {
        let key = (request.sector, number);
        let Some(ended) = self.commands.remove(&key) else { return };
        self.changing -= usize::from(ended.changes);
        self.waiting -= usize::from(ended.blockers > 0);
        self.ready.remove(&(number, ended.slot));
        for key in self.blocked.remove(&key).into_iter().flatten() {
            // It may have ended before, where the layer gave up.
            let Some(other) = self.commands.get_mut(&key) else { continue };
            other.blockers -= 1;
            other.barriers -= u32::from(!ended.is_passable);
            self.waiting -= usize::from(other.blockers == 0);
            if other.turn() != Turn::Waits {
                self.ready.insert((key.1, other.slot));
            }
        }
    }

    /// Whether later commands may pass one from now on.
    pub(crate) fn set_passable(&mut self, number: u64, request: &Request, is_passable: bool) {
        let key = (request.sector, number);
        let Some(command) = self.commands.get_mut(&key) else { return };
        if command.is_passable == is_passable {
            return;
        }
        command.is_passable = is_passable;
        for key in self.blocked.get(&key).into_iter().flatten() {
            let Some(other) = self.commands.get_mut(key) else { continue };
            if !is_passable {
                other.barriers += 1;
                continue;
            }
            other.barriers -= 1;
            if other.turn() != Turn::Waits {
                self.ready.insert((key.1, other.slot));
            }
        }
    }

    /// What a command may do now.
    pub(crate) fn turn(&self, number: u64, request: &Request) -> Turn {
        self.commands.get(&(request.sector, number)).map_or(Turn::Free, Waiting::turn)
    }

    /// Whether a command changes sectors of a range.
    pub(crate) fn has_change(&self, range: &Request) -> bool {
        let from = (range.sector.saturating_sub(self.longest), 0);
        let mut near = self.commands.range(from..(range.end(), 0));
        range.sectors > 0 && near.any(|(_, other)| other.changes && other.end > range.sector)
    }

    /// Whether any command waits for others, or waited and has not been asked for.
    pub(crate) fn any_waits(&self) -> bool {
        self.waiting > 0 || self.any_ready()
    }

    /// Whether [`next_ready`](Overlaps::next_ready) has any.
    pub(crate) fn any_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The slot of the command that arrived first of those that waited, and need not any longer or may pass.
    pub(crate) fn next_ready(&mut self) -> Option<u32> {
        self.ready.pop_first().map(|(_, slot)| slot)
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use ssdlab_base::rng;

    use super::*;

    /// A command as the model keeps it.
    struct Known {
        number: u64,
        request: Request,
        passes: bool,
        is_passable: bool,
        turn: Turn,
    }

    /// What a list of all commands says that one may do.
    fn turn_of(all: &[Known], at: usize) -> Turn {
        let one = &all[at];
        let is_void = |request: &Request| request.op == Op::Flush || request.sectors == 0;
        let blocks = |other: &&Known| {
            let (a, b) = (&other.request, &one.request);
            let share = a.sector < b.end() && b.sector < a.end() && !is_void(a) && !is_void(b);
            other.number < one.number && share && (changes(a.op) || changes(b.op))
        };
        let blockers: Vec<&Known> = all.iter().filter(blocks).collect();
        match blockers.is_empty() {
            true => Turn::Free,
            false if one.passes && blockers.iter().all(|other| other.is_passable) => Turn::Passes,
            false => Turn::Waits,
        }
    }

    #[test]
    fn turns_are_what_a_list_of_all_says() {
        let mut rng = rng(1, "overlaps");
        let (mut overlaps, mut all) = (Overlaps::default(), Vec::<Known>::new());
        let (mut waited, mut passed) = (0, 0);
        for number in 0..40_000 {
            match rng.random_range(0..3) {
                0 => {
                    let op = [Op::Read, Op::Write, Op::Trim, Op::Flush][rng.random_range(0..4)];
                    let length = [0, 1, 3, 40][rng.random_range(0..4)];
                    let request = Request::new(op, rng.random_range(0..300), length);
                    let passes = rng.random_bool(0.5);
                    let turn = overlaps.add_passing(number, number as u32, &request, passes);
                    all.push(Known { number, request, passes, is_passable: false, turn: Turn::Waits });
                    let last = all.len() - 1;
                    all[last].turn = turn_of(&all, last);
                    assert_eq!(turn, all[last].turn, "{request:?} arrives");
                    waited += u64::from(turn == Turn::Waits);
                    passed += u64::from(turn == Turn::Passes);
                }
                1 if !all.is_empty() => {
                    let at = rng.random_range(0..all.len());
                    let one = &mut all[at];
                    one.is_passable = !one.is_passable;
                    overlaps.set_passable(one.number, &one.request, one.is_passable);
                }
                _ => {
                    while all.len() > rng.random_range(0..24) {
                        let one = all.remove(rng.random_range(0..all.len()));
                        overlaps.remove(one.number, &one.request);
                    }
                }
            }
            let mut ready: Vec<u64> = std::iter::from_fn(|| overlaps.next_ready()).map(u64::from).collect();
            assert!(ready.is_sorted(), "in the order of arrival: {ready:?}");
            let mut any_waits = false;
            for at in 0..all.len() {
                let (turn, Known { number, request, turn: before, .. }) = (turn_of(&all, at), &all[at]);
                assert_eq!(overlaps.turn(*number, request), turn, "{request:?}");
                let is_due = turn != *before && (turn == Turn::Free || turn == Turn::Passes && *before == Turn::Waits);
                assert!(!is_due || ready.contains(number), "{request:?} went from {before:?} to {turn:?}");
                assert!(turn != Turn::Waits || !ready.contains(number), "{request:?} waits, and is ready");
                ready.retain(|other| other != number);
                any_waits |= turn != Turn::Free;
                all[at].turn = turn;
            }
            assert!(ready.is_empty(), "{ready:?} have ended");
            assert_eq!(overlaps.any_waits(), any_waits);
            let range = Request::new(Op::Read, rng.random_range(0..300), rng.random_range(0..4));
            let is_changed = |one: &Known| {
                let Request { op, sector, sectors, .. } = one.request;
                changes(op)
                    && sectors > 0
                    && sector < range.end()
                    && range.sector < one.request.end()
                    && range.sectors > 0
            };
            assert_eq!(overlaps.has_change(&range), all.iter().any(is_changed), "{range:?}");
        }
        assert!(waited > 1000 && passed > 300, "only {waited} waited, and {passed} passed");
    }
}

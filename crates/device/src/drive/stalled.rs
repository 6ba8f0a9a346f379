//! Who waits, and for what.
//!
//! A command that cannot take full effect is *stalled*: it waits for space, or behind an earlier stalled command whose sectors
//! it touches. Freed space tries those that wait for space, in the order in which they came; one that takes effect then
//! tries those behind it. So no list of all stalled commands is walked.

use std::collections::{BTreeMap, VecDeque};

use rustc_hash::FxHashMap;
use ssdlab_base::command_set::AddressSpace;
use ssdlab_base::{Nanos, Request};
use ssdlab_flash::OpId;

use super::events::WaitsForSpace;

/// Who waits for something other than operations of its own.
#[derive(Default)]
pub(super) struct Waiting {
    pub(super) stalled: Stalled,
    /// When an erase made space last.
    pub(super) space_made: Nanos,
    /// Stalled commands are being tried again.
    pub(super) retrying: bool,
    /// The command that takes effect now: what has to leave the buffer for it does so on its behalf.
    pub(super) current: Option<u32>,
    /// (serial, command), the serials in order: complete when every eviction before `serial` is on flash.
    pub(super) for_evictions: VecDeque<(u64, u32)>,
    /// Commands that wait for all records of trims in flight.
    pub(super) for_records: Vec<u32>,
    /// Reads that wait until a program has its data in RAM: the command, and the units that it reads there.
    pub(super) for_programs: FxHashMap<OpId, Vec<(u32, u64)>>,
    /// Stalled commands that have waited for map pages: since when they do, or `Nanos::MAX` where it is something else now.
    pub(super) since_for_map: FxHashMap<u32, Nanos>,
    /// Frontiers that were given up in a deadlock, while what waits stayed as it is.
    pub(super) given_up: Option<(WaitsForSpace, u32)>,
}

/// What a command touches: sectors `first..end` of an address space.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    space: AddressSpace,
    first: u64,
    end: u64,
}

impl Extent {
    pub(super) fn of(request: &Request, space: AddressSpace) -> Extent {
        match space {
            AddressSpace::Everything => Extent { space: AddressSpace::Logical, first: 0, end: u64::MAX },
            // Reserved sectors are behind the others.
            AddressSpace::Reserved => {
                Extent { space: AddressSpace::Logical, first: request.sector, end: request.end() }
            }
            space => Extent { space, first: request.sector, end: request.end() },
        }
    }

    fn overlaps(&self, other: &Extent) -> bool {
        let spaces = self.space == other.space && self.space != AddressSpace::Nothing;
        spaces && self.first < other.end && other.first < self.end
    }
}

/// The place of a stalled command in the order in which they came.
pub(super) type Turn = u64;

/// What a stalled command waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitsFor {
    /// Space, on flash or in the buffer.
    Space,
    /// Map pages: it is told when they are cached.
    Map,
    /// An earlier stalled command that it overlaps.
    Command(Turn),
}

/// Stalled commands.
#[derive(Default)]
pub(super) struct Stalled {
    all: BTreeMap<Turn, (u32, Extent)>,
    for_space: BTreeMap<Turn, u32>,
    /// By command: its turn, of those that wait for map pages.
    for_map: FxHashMap<u32, Turn>,
    /// By the turn of an earlier command that they overlap, in their order.
    behind: FxHashMap<Turn, Vec<Turn>>,
    extents: Extents,
    next: Turn,
}

impl Stalled {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether a command is one of them. It looks at all of them: for assertions.
    pub(super) fn contains(&self, command: u32) -> bool {
        self.all.values().any(|(other, _)| *other == command)
    }

    /// A command that overlaps `extent` and came before `turn`, if there is one. (A flush touches nothing, and overlaps none.)
    pub(super) fn before(&self, extent: &Extent, turn: Turn) -> Option<Turn> {
        self.extents.find(extent, turn)
    }

    /// Any command that overlaps `extent`.
    pub(super) fn any(&self, extent: &Extent) -> Option<Turn> {
        self.before(extent, Turn::MAX)
    }

    /// A command waits.
    pub(super) fn push(&mut self, command: u32, extent: Extent, what: WaitsFor) {
        let turn = self.next;
        self.next += 1;
        self.all.insert(turn, (command, extent));
        self.extents.insert(turn, extent);
        match what {
            WaitsFor::Command(other) => {
                assert!(
                    other < turn && self.all.contains_key(&other),
                    "turn {turn} waits behind {other}, which is gone"
                );
                self.behind.entry(other).or_default().push(turn);
            }
            WaitsFor::Space => {
                self.for_space.insert(turn, command);
            }
            WaitsFor::Map => {
                self.for_map.insert(command, turn);
            }
        }
    }

    /// The turn of a command that waits for map pages.
    pub(super) fn turn_for_map(&self, command: u32) -> Option<Turn> {
        self.for_map.get(&command).copied()
    }

    /// Those that wait for map pages, in the order in which they came.
    pub(super) fn for_map(&self) -> impl Iterator<Item = u32> {
        let mut turns: Vec<(Turn, u32)> = self.for_map.iter().map(|(command, turn)| (*turn, *command)).collect();
        turns.sort_unstable();
        turns.into_iter().map(|(_, command)| command)
    }

    /// A command that waited for space or for map pages waits for map pages.
    pub(super) fn now_for_map(&mut self, turn: Turn, command: u32) {
        debug_assert_eq!(self.all[&turn].0, command, "turn {turn} is that of another command");
        self.for_space.remove(&turn);
        self.for_map.insert(command, turn);
    }

    /// A command that waited for space or for map pages waits for space.
    pub(super) fn now_for_space(&mut self, turn: Turn, command: u32) {
        debug_assert_eq!(self.all[&turn].0, command, "turn {turn} is that of another command");
        self.for_map.remove(&command);
        self.for_space.insert(turn, command);
    }

    /// The first that waits for space from `turn` on.
    pub(super) fn next_for_space(&self, turn: Turn) -> Option<(Turn, u32)> {
        self.for_space.range(turn..).next().map(|(turn, command)| (*turn, *command))
    }

    /// Those that wait for space, in order.
    pub(super) fn for_space(&self) -> impl Iterator<Item = u32> {
        self.for_space.values().copied()
    }

    /// Those that wait behind another, in no order.
    pub(super) fn behind(&self) -> impl Iterator<Item = u32> {
        self.behind.values().flatten().map(|turn| self.all[turn].0)
    }

    /// A command took effect. Those behind it wait for space now, or behind another one; the former are returned, in order.
    pub(super) fn remove(&mut self, turn: Turn) -> Vec<(Turn, u32)> {
        let (command, extent) = self.all.remove(&turn).expect("a stalled command took effect");
        let waited = self.for_space.remove(&turn).is_some() || self.for_map.remove(&command).is_some();
        assert!(waited, "the command of turn {turn} took effect, and waited behind another");
        self.extents.remove(turn, &extent);
        let mut released = Vec::new();
        for later in self.behind.remove(&turn).unwrap_or_default() {
            let (command, extent) = self.all[&later];
            match self.before(&extent, later) {
                Some(other) => self.behind.entry(other).or_default().push(later),
                None => {
                    self.for_space.insert(later, command);
                    released.push((later, command));
                }
            }
        }
        released
    }

    /// All of them, in order; none is left.
    pub(super) fn take(&mut self) -> Vec<u32> {
        let all = std::mem::take(&mut self.all);
        *self = Stalled { next: self.next, ..Stalled::default() };
        all.into_values().map(|(command, _)| command).collect()
    }
}

/// Extents of at most so many sectors are found by where they begin.
const SHORT: u64 = 2048;

/// The extents of stalled commands, by where they are.
#[derive(Default)]
struct Extents {
    short: BTreeMap<(u64, Turn), Extent>,
    /// Longer ones, which are few.
    long: BTreeMap<Turn, Extent>,
}

impl Extents {
    fn insert(&mut self, turn: Turn, extent: Extent) {
        if extent.end - extent.first <= SHORT {
            self.short.insert((extent.first, turn), extent);
        } else {
            self.long.insert(turn, extent);
        }
    }

    fn remove(&mut self, turn: Turn, extent: &Extent) {
        let found = self.short.remove(&(extent.first, turn)).or_else(|| self.long.remove(&turn));
        assert!(found.is_some(), "the extent of turn {turn} is there");
    }

    /// One that overlaps `extent` and came before `before`.
    fn find(&self, extent: &Extent, before: Turn) -> Option<Turn> {
        let near = self.short.range((extent.first.saturating_sub(SHORT), 0)..(extent.end, 0));
        let short = near.map(|((_, turn), other)| (*turn, other));
        let long = self.long.range(..before).map(|(turn, other)| (*turn, other));
        short.chain(long).find(|(turn, other)| *turn < before && extent.overlaps(other)).map(|(turn, _)| turn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A stalled command of the model: its turn, what it touches, and whether it waits for space.
    type Modelled = (Turn, Extent);

    fn extent(first: u64, sectors: u64, physical: bool) -> Extent {
        let space = if physical { AddressSpace::Physical } else { AddressSpace::Logical };
        Extent { space, first, end: first + sectors }
    }

    proptest! {
        /// Against a list that is walked: a command waits for space exactly if no earlier one overlaps it.
        #[test]
        fn a_command_waits_for_space_unless_it_overlaps_an_earlier_one(
            steps in prop::collection::vec(
                (0u64..9000, prop_oneof![0u64..40, 1000u64..5000], any::<bool>(), any::<u8>(), any::<bool>()),
                1..120,
            ),
        ) {
            let mut stalled = Stalled::default();
            let mut model: Vec<Modelled> = Vec::new();
            for (turn, (first, sectors, physical, chosen, comes)) in steps.into_iter().enumerate() {
                let waits = |model: &[Modelled], index: usize| {
                    model[..index].iter().all(|(_, other)| !model[index].1.overlaps(other))
                };
                if comes || model.is_empty() {
                    let extent = extent(first, sectors, physical);
                    let behind = stalled.any(&extent);
                    prop_assert_eq!(behind.is_some(), model.iter().any(|(_, other)| extent.overlaps(other)));
                    model.push((stalled.next, extent));
                    stalled.push(turn as u32, extent, behind.map_or(WaitsFor::Space, WaitsFor::Command));
                } else {
                    let for_space: Vec<usize> = (0..model.len()).filter(|index| waits(&model, *index)).collect();
                    let (turn, _) = model.remove(for_space[usize::from(chosen) % for_space.len()]);
                    stalled.remove(turn);
                }
                let expected: Vec<Turn> =
                    (0..model.len()).filter(|index| waits(&model, *index)).map(|index| model[index].0).collect();
                let found: Vec<Turn> = stalled.for_space.keys().copied().collect();
                prop_assert_eq!(found, expected);
                prop_assert_eq!(stalled.len(), model.len());
                prop_assert_eq!(stalled.behind().count() + stalled.for_space().count(), model.len());
            }
            let left = stalled.take();
            prop_assert_eq!(left.len(), model.len());
            prop_assert!(stalled.is_empty() && stalled.any(&extent(0, 20_000, false)).is_none());
        }
    }
}

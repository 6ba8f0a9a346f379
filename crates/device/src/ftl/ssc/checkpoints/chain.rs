//! What the pages of the checkpoint area make together: the newest checkpoint that is whole, and the records behind it.
//!
//! The newest whole set leads from one to the next (`Head::before`), so a page that was never whole is passed over. A checkpoint that
//! lacks a page is passed over, too, and an older one is taken: the records in between lead from that one to now, as far back as
//! the newest set says (`Head::oldest`). A record that lacks a page, or a page that cannot have been one of a checkpoint, ends this: then
//! no checkpoint counts.

use std::collections::BTreeMap;

use super::page::{Body, Head, Kind, Page};
use crate::seeded::{Bug, seeded};

/// Words of the state or of a record, taken from the front.
struct Halves<'a>(&'a [u32]);

impl Halves<'_> {
    fn one(&mut self) -> Option<u32> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn many(&mut self, count: u32) -> Option<Vec<u32>> {
        let (first, rest) = self.0.split_at_checked(count as usize)?;
        self.0 = rest;
        Some(first.to_vec())
    }

    fn wide(&mut self) -> Option<u64> {
        Some(u64::from(self.one()?) | u64::from(self.one()?) << 32)
    }

    /// A count, and as many of something of so many halves each.
    fn list<T>(&mut self, halves: u32, read: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.one()?;
        if self.0.len() < count as usize * halves as usize {
            return None;
        }
        (0..count).map(|_| read(self)).collect()
    }
}

/// What a checkpoint says beside the map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    /// By block: nothing is written there, and it is not erased, before a record says so.
    pub(super) settled: Vec<bool>,
    /// Units of the log in such blocks, by number.
    pub(super) log_units: Vec<(u32, u32)>,
    /// Blocks whose copy may not be on flash, and the number of the program from which on copies count.
    pub(super) hidden: Vec<(u32, u64)>,
}

impl State {
    pub(super) fn halves(&self) -> Vec<u32> {
        let mut halves = vec![self.settled.len() as u32];
        let bits = |blocks: &[bool]| (0..).zip(blocks).fold(0, |bits, (at, is)| bits | u32::from(*is) << at);
        halves.extend(self.settled.chunks(32).map(bits));
        halves.push(self.log_units.len() as u32);
        halves.extend(self.log_units.iter().flat_map(|(number, unit)| [*number, *unit]));
        halves.push(self.hidden.len() as u32);
        halves.extend(self.hidden.iter().flat_map(|(lpn, floor)| [*lpn, *floor as u32, (*floor >> 32) as u32]));
        halves
    }

    fn parse(halves: &[u32]) -> Option<State> {
        let mut halves = Halves(halves);
        let blocks = halves.one()?;
        let bits = halves.many(blocks.div_ceil(32))?;
        let settled = (0..blocks).map(|block| bits[block as usize / 32] >> (block % 32) & 1 != 0).collect();
        let log_units = halves.list(2, |halves| Some((halves.one()?, halves.one()?)))?;
        let hidden = halves.list(3, |halves| Some((halves.one()?, halves.wide()?)))?;
        halves.0.is_empty().then_some(State { settled, log_units, hidden })
    }
}

/// Blocks that are to be erased, and what they hold copies of.
pub(super) fn record_halves(blocks: &[(u32, Vec<u32>)]) -> Vec<u32> {
    let mut halves = vec![blocks.len() as u32];
    for (block, owners) in blocks {
        halves.extend([*block, owners.len() as u32]);
        halves.extend(owners);
    }
    halves
}

fn parse_record(halves: &[u32]) -> Option<Vec<(u32, Vec<u32>)>> {
    let mut halves = Halves(halves);
    let entry = |halves: &mut Halves<'_>| {
        let (block, count) = (halves.one()?, halves.one()?);
        Some((block, halves.many(count)?))
    };
    let blocks = halves.list(2, entry)?;
    halves.0.is_empty().then_some(blocks)
}

/// A set, as far as it is there.
struct Set<'a> {
    head: Head,
    pages: BTreeMap<u32, &'a Page>,
}

impl Set<'_> {
    fn is_whole(&self) -> bool {
        self.pages.len() == self.head.count as usize || seeded(Bug::TornCheckpointTaken) && self.head.kind.has_map()
    }

    fn missing(&self) -> usize {
        self.head.count as usize - self.pages.len()
    }

    /// The state, or the record, from all pages that have a part of it.
    fn parts(&self) -> Vec<u32> {
        let parts = self.pages.values().filter_map(|page| match &page.body {
            Body::Part(halves) => Some(halves.as_slice()),
            Body::Map { .. } => None,
        });
        parts.flatten().copied().collect()
    }
}

/// A checkpoint, and what happened since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Checkpoint {
    pub(super) head: Head,
    /// The pages of the map, by number.
    pub(super) map: BTreeMap<u32, Vec<u32>>,
    pub(super) state: State,
    /// Of each block that a record names, in the order of records, what it had copies of.
    pub(super) erased: Vec<(u32, Vec<u32>)>,
    /// A newer one is damaged: another one that is to say what changed would say it of that.
    pub(super) is_older: bool,
}

/// What was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Chain {
    pub(super) checkpoint: Option<Checkpoint>,
    /// The newest set that is whole; 0 if there is none.
    pub(super) last: u64,
    /// A set may be taken for a checkpoint some day, although none is now.
    pub(super) misleads: bool,
    /// The highest number of a set.
    pub(super) highest: u64,
}

/// What the pages of a drive's area make, beside so many that can be read and are none.
pub(super) fn from_pages(pages: &[Page], damaged: usize) -> Chain {
    let mut sets: BTreeMap<u64, Set<'_>> = BTreeMap::new();
    let mut disagree = false;
    for page in pages {
        let set = sets.entry(page.head.number).or_insert_with(|| Set { head: page.head, pages: BTreeMap::new() });
        disagree |= set.head != page.head || set.pages.insert(page.place, page).is_some();
    }
    let highest = sets.keys().last().copied().unwrap_or(0);
    let last = sets.values().rev().find(|set| set.is_whole()).map(|set| set.head);
    let any_map = sets.values().any(|set| set.is_whole() && set.head.kind.has_map());
    let missing: usize = sets.values().filter(|set| set.head.kind.has_map()).map(Set::missing).sum();
    let is_sound = !disagree && damaged <= missing;
    let checkpoint = last.filter(|_| is_sound).and_then(|last| newest(&sets, last));
    let is_void = is_sound && last.is_some_and(|last| last.kind == Kind::Void);
    let misleads = any_map && checkpoint.is_none() && !is_void;
    Chain { checkpoint, last: last.map_or(0, |last| last.number), misleads, highest }
}

/// The newest checkpoint that is whole, and what happened since, from the newest whole set on.
fn newest(sets: &BTreeMap<u64, Set<'_>>, last: Head) -> Option<Checkpoint> {
    let mut chain = Vec::new();
    let mut number = last.number;
    while let Some(set) = sets.get(&number) {
        chain.push(set);
        number = set.head.before;
    }
    let mut erased: Vec<&Set<'_>> = Vec::new();
    for (at, set) in chain.iter().enumerate() {
        match set.head.kind {
            _ if set.head.number < last.oldest => return None,
            Kind::Void => return None,
            Kind::Record if set.is_whole() => erased.push(set),
            Kind::Record => return None,
            Kind::Full | Kind::Changed => {
                let Some((map, state)) = map_of(&chain[at..]) else { continue };
                let mut of_records = Vec::new();
                for record in erased.iter().rev() {
                    of_records.extend(parse_record(&record.parts())?);
                }
                let is_older = chain[..at].iter().any(|newer| newer.head.kind.has_map());
                return Some(Checkpoint { head: set.head, map, state, erased: of_records, is_older });
            }
        }
    }
    None
}

/// The map of the first of these sets, which is a checkpoint, and its state: pages that it has not come from those before it.
fn map_of(chain: &[&Set<'_>]) -> Option<(BTreeMap<u32, Vec<u32>>, State)> {
    let mut map: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let state = State::parse(&chain[0].parts())?;
    for set in chain.iter().filter(|set| set.head.kind.has_map()) {
        if !set.is_whole() {
            return None;
        }
        for page in set.pages.values() {
            if let Body::Map { page, halves } = &page.body {
                map.entry(*page).or_insert_with(|| halves.clone());
            }
        }
        if set.head.kind == Kind::Full {
            return Some((map, state));
        }
    }
    None
}

/// Any pages that say they are of one area.
///
/// # Panics
/// A checkpoint comes of them that says otherwise than its pages.
#[cfg(any(test, feature = "fuzzing"))]
pub(super) fn from_any_pages(pages: &[Page]) {
    for damaged in [0, 1] {
        let chain = from_pages(pages, damaged);
        if let Some(checkpoint) = chain.checkpoint {
            assert!(checkpoint.head.number <= chain.last, "{checkpoint:?} is newer than the newest set");
            assert_eq!(State::parse(&checkpoint.state.halves()), Some(checkpoint.state), "the state reads back");
        }
    }
    for page in pages {
        if let Body::Part(halves) = &page.body {
            _ = State::parse(halves);
            _ = parse_record(halves);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A set of so many pages of the map and one more.
    fn set(kind: Kind, number: u64, before: u64, oldest: u64, map: &[u32]) -> Vec<Page> {
        let count = map.len() as u32 + 1;
        let head = Head { kind, number, before, oldest, drive: 0, since: 10 * number, count };
        let state = State { settled: vec![true; 40], ..State::default() };
        let part = match kind {
            Kind::Record => record_halves(&[(number as u32, vec![7, 8])]),
            Kind::Void => Vec::new(),
            Kind::Full | Kind::Changed => state.halves(),
        };
        let of_map = map.iter().map(|page| Body::Map { page: *page, halves: vec![number as u32; 6] });
        (0..).zip(of_map.chain([Body::Part(part)])).map(|(place, body)| Page { head, place, body }).collect()
    }

    fn without(pages: &[Page], number: u64, place: u32) -> Vec<Page> {
        pages.iter().filter(|page| (page.head.number, page.place) != (number, place)).cloned().collect()
    }

    /// The checkpoint that is found, which set each of its pages of the map comes from, and blocks that records name.
    fn found(pages: &[Page], damaged: usize) -> Option<(u64, Vec<u32>, Vec<u32>)> {
        let checkpoint = from_pages(pages, damaged).checkpoint?;
        let map = checkpoint.map.values().map(|halves| halves[0]).collect();
        Some((checkpoint.head.number, map, checkpoint.erased.iter().map(|(block, _)| *block).collect()))
    }

    fn story() -> Vec<Page> {
        let sets = [
            set(Kind::Full, 1, 0, 1, &[0, 1, 2]),
            set(Kind::Record, 2, 1, 1, &[]),
            set(Kind::Changed, 3, 2, 1, &[1]),
            set(Kind::Record, 4, 3, 1, &[]),
            set(Kind::Changed, 5, 4, 3, &[2]),
            set(Kind::Record, 6, 5, 3, &[]),
        ];
        sets.concat()
    }

    #[test]
    fn the_newest_checkpoint_takes_pages_of_the_map_from_those_before_it() {
        assert_eq!(found(&story(), 0), Some((5, vec![1, 3, 5], vec![6])));
        assert_eq!(found(&[], 0), None);
    }

    #[test]
    fn a_checkpoint_that_is_damaged_gives_way_to_the_one_before() {
        for place in [0, 1] {
            assert_eq!(found(&without(&story(), 5, place), 1), Some((3, vec![1, 3, 1], vec![4, 6])));
        }
        // Two pages are damaged: the second may have been a record.
        assert_eq!(found(&without(&story(), 5, 0), 2), None);
        // The newest two are damaged, and records of what happened before them are not promised.
        assert_eq!(found(&without(&without(&story(), 5, 0), 3, 0), 2), None);
        assert_eq!(found(&without(&without(&story(), 1, 0), 5, 0), 2), None);
    }

    #[test]
    fn a_torn_set_at_the_end_never_was() {
        let torn = set(Kind::Changed, 7, 6, 5, &[0, 1]);
        let pages = [story(), torn[..1].to_vec()].concat();
        assert_eq!(found(&pages, 0), Some((5, vec![1, 3, 5], vec![6])));
        // What follows a recovery passes it over.
        let pages = [pages, set(Kind::Record, 8, 6, 5, &[])].concat();
        assert_eq!(found(&pages, 0), Some((5, vec![1, 3, 5], vec![6, 8])));
    }

    #[test]
    fn a_record_that_lacks_a_page_and_a_void_set_leave_no_checkpoint() {
        let long = |number| {
            let mut pages = set(Kind::Record, number, 6, 3, &[]);
            pages[0].head.count = 2;
            pages
        };
        let behind = set(Kind::Record, 8, 7, 3, &[]);
        let chain = from_pages(&[story(), long(7), behind].concat(), 0);
        assert_eq!((chain.checkpoint, chain.misleads, chain.last, chain.highest), (None, true, 8, 8));
        let chain = from_pages(&[story(), set(Kind::Void, 7, 6, 7, &[])].concat(), 0);
        assert_eq!((chain.checkpoint, chain.misleads), (None, false));
    }
}

//! Requests that wait for a policy's decision, by sector and by age, and what joins them.
//!
//! ```text
//!   queued   at most so many of each direction: the policy sees these, and new ones are joined to them
//!   held     the submitter waits: they are queued in the order in which they came
//! ```
//!
//! Nothing here overlaps anything else here, unless both are reads. So any order of these requests is one that a host may see.

use std::collections::{BTreeMap, VecDeque};

use ssdlab_base::{Nanos, Op, Request};

use super::policy::Direction;
use super::request::{Joined, Rules};
use crate::layer::Slots;

/// First sector and number of a request.
type Key = (u64, u64);

/// Both directions.
const DIRECTIONS: [Direction; 2] = [Direction::Read, Direction::Write];

/// A request that waits.
struct Waiting {
    joined: Joined,
    /// Its place in the order of arrival, that of the oldest of its commands.
    number: u64,
    /// When it was queued.
    since: Nanos,
    is_held: bool,
}

/// A request as a policy sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(super) slot: u32,
    /// Its place in the order of arrival.
    pub(super) number: u64,
    /// When it was queued.
    pub(super) since: Nanos,
    /// Its sectors end here.
    pub(super) end: u64,
}

/// What was joined, and how often a submitter waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) back_merges: u64,
    pub(super) front_merges: u64,
    pub(super) neighbours_joined: u64,
    pub(super) held: u64,
}

/// Requests of one direction.
#[derive(Default)]
struct OfDirection {
    queued: BTreeMap<Key, u32>,
    held: BTreeMap<Key, u32>,
    /// Queued ones in the order of arrival; one that was joined to another is not taken out at once.
    by_age: VecDeque<(u64, u32)>,
    held_by_age: VecDeque<(u64, u32)>,
    /// The longest request since the last time there was none.
    longest: u64,
}

/// Requests that wait.
pub(super) struct Queue {
    requests: Slots<Waiting>,
    directions: [OfDirection; 2],
    rules: Rules,
    /// Most queued ones of a direction.
    limit: usize,
    numbers: u64,
    pub(super) counts: Counts,
}

fn direction_of(request: &Request) -> Direction {
    if request.op == Op::Read { Direction::Read } else { Direction::Write }
}

impl Queue {
    pub(super) fn new(rules: Rules, limit: u32) -> Queue {
        let directions = [OfDirection::default(), OfDirection::default()];
        let (requests, limit) = (Slots::new(), limit as usize);
        Queue { requests, directions, rules, limit, numbers: 0, counts: Counts::default() }
    }

    /// How many requests there are.
    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Whether a command is on the sectors of a request that waits, where one of the two changes them.
    pub(super) fn conflicts(&self, request: &Request) -> bool {
        let changes = direction_of(request) == Direction::Write;
        let (sector, end) = (request.sector, request.end());
        DIRECTIONS.iter().filter(|direction| changes || **direction == Direction::Write).any(|direction| {
            let of = &self.directions[*direction as usize];
            let from = (sector.saturating_sub(of.longest), 0);
            [&of.queued, &of.held].into_iter().filter(|all| !all.is_empty()).any(|all| {
                let near = |key: &Key| key.0 >= sector;
                let overlaps = |(key, slot): (&Key, &u32)| near(key) || self.end_of(*slot) > sector;
                match direction {
                    // Of changes none overlaps another, so the one before is the only one that reaches in.
                    Direction::Write => all.range(..(end, 0)).next_back().is_some_and(overlaps),
                    Direction::Read => all.range(from..(end, 0)).any(overlaps),
                }
            })
        })
    }

    fn end_of(&self, slot: u32) -> u64 {
        self.requests.get(slot).joined.request.end()
    }

    /// A request that conflicts with none waits from now on: it becomes part of another one, is queued, or its submitter waits.
    pub(super) fn admit(&mut self, joined: Joined, now: Nanos) {
        let direction = direction_of(&joined.request);
        let Some(joined) = self.join(joined, direction, now) else { return };
        self.numbers += 1;
        let number = self.numbers;
        let of = &mut self.directions[direction as usize];
        let key = (joined.request.sector, number);
        of.longest = of.longest.max(joined.request.sectors);
        let is_held = of.queued.len() >= self.limit;
        let slot = self.requests.put(Waiting { joined, number, since: now, is_held });
        let (by_sector, by_age) =
            if is_held { (&mut of.held, &mut of.held_by_age) } else { (&mut of.queued, &mut of.by_age) };
        by_sector.insert(key, slot);
        by_age.push_back((number, slot));
        self.counts.held += u64::from(is_held);
    }

    /// Joins a request to one that is queued; gives it back where it fits none.
    fn join(&mut self, joined: Joined, direction: Direction, now: Nanos) -> Option<Joined> {
        let Request { op, sector, .. } = joined.request;
        if !matches!(op, Op::Read | Op::Write) {
            return Some(joined);
        }
        let queued = &self.directions[direction as usize].queued;
        let before = queued.range(..(sector, 0)).next_back().map(|(_, slot)| *slot);
        if let Some(slot) = before.filter(|slot| self.rules.join(&self.requests.get(*slot).joined, &joined)) {
            self.requests.get_mut(slot).joined.append(joined);
            self.counts.back_merges += 1;
            self.grew(direction, slot);
            self.unite_with_next(direction, slot, now);
            return None;
        }
        let after = self.beginning_at(direction, joined.request.end());
        if let Some(slot) = after.filter(|slot| self.rules.join(&joined, &self.requests.get(*slot).joined)) {
            let waiting = self.requests.get_mut(slot);
            let key = (waiting.joined.request.sector, waiting.number);
            waiting.joined.prepend(joined);
            let new_key = (waiting.joined.request.sector, waiting.number);
            let queued = &mut self.directions[direction as usize].queued;
            queued.remove(&key);
            queued.insert(new_key, slot);
            self.counts.front_merges += 1;
            self.grew(direction, slot);
            let queued = &self.directions[direction as usize].queued;
            if let Some(before) = queued.range(..(new_key.0, 0)).next_back().map(|(_, slot)| *slot) {
                self.unite_with_next(direction, before, now);
            }
            return None;
        }
        Some(joined)
    }

    fn grew(&mut self, direction: Direction, slot: u32) {
        let sectors = self.requests.get(slot).joined.request.sectors;
        let of = &mut self.directions[direction as usize];
        of.longest = of.longest.max(sectors);
    }

    /// The queued request of a direction that begins at a sector.
    fn beginning_at(&self, direction: Direction, sector: u64) -> Option<u32> {
        let queued = &self.directions[direction as usize].queued;
        queued.range((sector, 0)..=(sector, u64::MAX)).next().map(|(_, slot)| *slot)
    }

    /// Two queued requests have become neighbours: the older one takes the other in, and keeps its place by age.
    fn unite_with_next(&mut self, direction: Direction, slot: u32, now: Nanos) {
        let Some(next) = self.beginning_at(direction, self.end_of(slot)) else { return };
        if !self.rules.join(&self.requests.get(slot).joined, &self.requests.get(next).joined) {
            return;
        }
        let key = |slot: u32| {
            let Waiting { joined, number, .. } = self.requests.get(slot);
            (joined.request.sector, *number)
        };
        let (first_key, next_key) = (key(slot), key(next));
        let queued = &mut self.directions[direction as usize].queued;
        queued.remove(&next_key);
        let kept = if first_key.1 < next_key.1 {
            let gone = self.requests.take(next);
            self.requests.get_mut(slot).joined.append(gone.joined);
            slot
        } else {
            queued.remove(&first_key);
            queued.insert((first_key.0, next_key.1), next);
            let gone = self.requests.take(slot);
            self.requests.get_mut(next).joined.prepend(gone.joined);
            next
        };
        self.counts.neighbours_joined += 1;
        self.grew(direction, kept);
        self.drop_gone(direction);
        self.queue_held(direction, now);
    }

    /// The first by age are requests that wait.
    fn drop_gone(&mut self, direction: Direction) {
        let of = &mut self.directions[direction as usize];
        while let Some((number, slot)) = of.by_age.front()
            && self.requests.find(*slot).is_none_or(|waiting| waiting.number != *number)
        {
            of.by_age.pop_front();
        }
    }

    /// A request goes. One whose submitter waited is queued in its place.
    ///
    /// # Panics
    /// The policy chose a request that is not queued.
    pub(super) fn take(&mut self, slot: u32, now: Nanos) -> Joined {
        let Waiting { joined, number, is_held, .. } = self.requests.take(slot);
        assert!(!is_held, "a policy chose request {number}, which is not queued");
        let direction = direction_of(&joined.request);
        let of = &mut self.directions[direction as usize];
        let was = of.queued.remove(&(joined.request.sector, number));
        assert_eq!(was, Some(slot), "request {number} is queued by its sector");
        if of.queued.is_empty() && of.held.is_empty() {
            of.longest = 0;
        }
        self.drop_gone(direction);
        self.queue_held(direction, now);
        joined
    }

    /// Queues what was held, as far as the limit lets it.
    fn queue_held(&mut self, direction: Direction, now: Nanos) {
        loop {
            let of = &mut self.directions[direction as usize];
            if of.queued.len() >= self.limit {
                return;
            }
            let Some((number, slot)) = of.held_by_age.pop_front() else { return };
            let waiting = self.requests.take(slot);
            let gone = of.held.remove(&(waiting.joined.request.sector, number));
            assert_eq!(gone, Some(slot), "request {number} is held by its sector");
            let Some(joined) = self.join(waiting.joined, direction, now) else { continue };
            let of = &mut self.directions[direction as usize];
            let key = (joined.request.sector, number);
            let slot = self.requests.put(Waiting { joined, number, since: now, is_held: false });
            of.queued.insert(key, slot);
            of.by_age.push_back((number, slot));
        }
    }

    /// All requests, which wait no longer.
    pub(super) fn drain(&mut self) -> Vec<Joined> {
        let slots: Vec<u32> = self.requests.all().map(|(slot, _)| slot).collect();
        let all = slots.into_iter().map(|slot| self.requests.take(slot).joined).collect();
        self.directions = [OfDirection::default(), OfDirection::default()];
        all
    }

    /// What a policy sees.
    pub(super) fn view(&self) -> View<'_> {
        View { queue: self }
    }
}

/// The queued requests, as a policy sees them.
pub(crate) struct View<'q> {
    queue: &'q Queue,
}

impl View<'_> {
    fn candidate(&self, slot: u32) -> Candidate {
        let Waiting { joined, number, since, .. } = self.queue.requests.get(slot);
        Candidate { slot, number: *number, since: *since, end: joined.request.end() }
    }

    /// How many requests of a direction are queued.
    pub(super) fn count(&self, direction: Direction) -> usize {
        self.queue.directions[direction as usize].queued.len()
    }

    /// The one of a direction that came first.
    pub(super) fn oldest(&self, direction: Direction) -> Option<Candidate> {
        self.queue.directions[direction as usize].by_age.front().map(|(_, slot)| self.candidate(*slot))
    }

    /// The first one of a direction that begins at a sector or behind it.
    pub(super) fn at_or_behind(&self, direction: Direction, sector: u64) -> Option<Candidate> {
        let queued = &self.queue.directions[direction as usize].queued;
        queued.range((sector, 0)..).next().map(|(_, slot)| self.candidate(*slot))
    }
}

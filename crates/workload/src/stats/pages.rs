//! Which 4 KiB pages were read, written and are live, and when each was last written.
//!
//! ```text
//! stretches of the address space, in order -> Alike: any number of chunks (128 MiB each), all pages in one state
//!                                          -> Chunk: Few    up to 32 parts, each in one state
//!                                                    Dense  bitmaps read / written / live, positions of last writes
//! ```
//!
//! Memory follows what a trace does, not what it names: a request adds a few stretches or parts, however long it is, and a
//! chunk has bitmaps (12 KiB, and 2 KiB for each 2 MiB written in parts) only when so many parts were made in it. A trim of
//! what was never touched adds nothing.

mod chunk;

use std::collections::BTreeMap;

use chunk::{Came, Change, Chunk, Part, State};

/// Bytes in a page.
pub(super) const PAGE_BYTES: u64 = 4096;
/// Pages in a chunk.
const CHUNK: u64 = 1 << 15;
const WORDS: usize = (CHUNK / 64) as usize;
/// Pages in a block of positions.
const BLOCK: u64 = 512;
const BLOCKS: usize = (CHUNK / BLOCK) as usize;
/// Parts of a chunk without bitmaps.
const FEW: usize = 32;

/// Neighbouring chunks.
#[derive(Clone, Copy, Debug)]
enum Stretch {
    /// All pages of the chunks up to this one are in one state.
    Alike { to: u64, state: State },
    /// One chunk, by its place.
    Chunk(u32),
}

/// The pages of an address space of any size.
#[derive(Default)]
pub(super) struct Pages {
    /// By the first chunk; they do not overlap.
    stretches: BTreeMap<u64, Stretch>,
    chunks: Vec<Chunk>,
    /// Places in `chunks` that are free.
    free: Vec<u32>,
    /// The chunk that was changed last, and its place.
    last: Option<(u64, u32)>,
    spare: Vec<Part>,
    pub(super) live: u64,
    pub(super) live_peak: u64,
}

/// What a write found.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Found {
    /// Every page was live.
    pub(super) all_live: bool,
}

impl Pages {
    /// The place of a chunk whose pages need not be alike; nothing if nothing ever happened to it and none is `made`.
    fn place(&mut self, number: u64, made: bool) -> Option<u32> {
        if let Some((last, at)) = self.last
            && last == number
        {
            return Some(at);
        }
        if let Some(&Stretch::Chunk(at)) = self.stretches.get(&number) {
            self.last = Some((number, at));
            return Some(at);
        }
        let before = self.stretches.range(..=number).next_back();
        let parts = match before.map(|(from, stretch)| (*from, *stretch)) {
            Some((from, Stretch::Alike { to, state })) if number < to => {
                self.stretches.remove(&from);
                self.alike(from, number, state);
                self.alike(number + 1, to, state);
                vec![Part { from: 0, to: CHUNK as u16, state }]
            }
            _ if made => Vec::new(),
            _ => return None,
        };
        let chunk = Chunk::Few(parts);
        let at = match self.free.pop() {
            Some(at) => {
                self.chunks[at as usize] = chunk;
                at
            }
            None => {
                self.chunks.push(chunk);
                (self.chunks.len() - 1) as u32
            }
        };
        self.stretches.insert(number, Stretch::Chunk(at));
        self.last = Some((number, at));
        Some(at)
    }

    fn alike(&mut self, from: u64, to: u64, state: State) {
        if from < to {
            self.stretches.insert(from, Stretch::Alike { to, state });
        }
    }

    /// Changes a part of a chunk.
    #[inline]
    fn change_part<F: FnMut(u64, u64)>(&mut self, number: u64, from: u64, to: u64, change: Change, came: &mut Came<F>) {
        if from == to {
            return;
        }
        if let Some(at) = self.place(number, !change.is_nothing()) {
            self.chunks[at as usize].change(from, to, change, &mut self.spare, came);
        }
    }

    /// Changes whole chunks, of which neighbours that are alike afterwards are one stretch.
    #[cold]
    fn change_whole<F: FnMut(u64, u64)>(&mut self, from: u64, to: u64, change: Change, came: &mut Came<F>) {
        self.last = None;
        // What lies across the ends is cut there.
        for end in [from, to] {
            let across = self.stretches.range(..end).next_back().map(|(first, stretch)| (*first, *stretch));
            if let Some((first, Stretch::Alike { to: last, state })) = across
                && end < last
            {
                self.alike(first, end, state);
                self.alike(end, last, state);
            }
        }
        let inside: Vec<(u64, Stretch)> = self.stretches.range(from..to).map(|(first, of)| (*first, *of)).collect();
        let mut joined: Option<(u64, u64, State)> = None;
        let mut at = from;
        for (first, stretch) in inside {
            if at < first && !change.is_nothing() {
                let state = change.of(State::default(), (first - at) * CHUNK, came);
                self.join(&mut joined, at, first, state);
            }
            self.stretches.remove(&first);
            match stretch {
                Stretch::Alike { to: last, state } => {
                    let state = change.of(state, (last - first) * CHUNK, came);
                    self.join(&mut joined, first, last, state);
                    at = last;
                }
                Stretch::Chunk(place) => {
                    let chunk = &mut self.chunks[place as usize];
                    chunk.change(0, CHUNK, change, &mut self.spare, came);
                    match chunk.alike() {
                        Some(state) => {
                            *chunk = Chunk::Few(Vec::new());
                            self.free.push(place);
                            self.join(&mut joined, first, first + 1, state);
                        }
                        None => {
                            self.stretches.insert(first, stretch);
                        }
                    }
                    at = first + 1;
                }
            }
        }
        if at < to && !change.is_nothing() {
            let state = change.of(State::default(), (to - at) * CHUNK, came);
            self.join(&mut joined, at, to, state);
        }
        if let Some((first, last, state)) = joined {
            self.alike(first, last, state);
        }
    }

    /// Appends chunks to those before them, if they are alike.
    fn join(&mut self, joined: &mut Option<(u64, u64, State)>, from: u64, to: u64, state: State) {
        match joined {
            Some((_, last, alike)) if *last == from && *alike == state => *last = to,
            _ => {
                if let Some((first, last, state)) = joined.replace((from, to, state)) {
                    self.alike(first, last, state);
                }
            }
        }
    }

    fn change<F: FnMut(u64, u64)>(&mut self, from: u64, to: u64, change: Change, came: &mut Came<F>) {
        if from >= to {
            return;
        }
        let (first, last) = (from / CHUNK, to / CHUNK);
        if first == last {
            return self.change_part(first, from % CHUNK, to % CHUNK, change, came);
        }
        let whole = from.div_ceil(CHUNK);
        if first < whole {
            self.change_part(first, from % CHUNK, CHUNK, change, came);
        }
        if whole < last {
            self.change_whole(whole, last, change, came);
        }
        self.change_part(last, 0, to % CHUNK, change, came);
    }

    /// Whether any of pages `from..to` was ever written.
    pub(super) fn any_written(&self, from: u64, to: u64) -> bool {
        if from >= to {
            return false;
        }
        let (first, behind) = (from / CHUNK, to.div_ceil(CHUNK));
        let before = self.stretches.range(..first).next_back();
        let across = before.is_some_and(
            |(_, stretch)| matches!(stretch, Stretch::Alike { to, state } if first < *to && state.written),
        );
        across
            || self.stretches.range(first..behind).any(|(&number, stretch)| match stretch {
                Stretch::Alike { state, .. } => state.written,
                Stretch::Chunk(at) => {
                    let base = number * CHUNK;
                    self.chunks[*at as usize].any_written(from.saturating_sub(base), (to - base).min(CHUNK))
                }
            })
    }

    /// Pages `from..to` were read.
    pub(super) fn read(&mut self, from: u64, to: u64) {
        self.change(from, to, Change::Read, &mut Came { grown: 0, gone: 0, again: |_, _| () });
    }

    /// Pages `from..to` are written, behind `before` bytes of writes; `after` when done. `again` is told the distance in
    /// bytes of pages that were written before, and how many they are.
    pub(super) fn write(&mut self, from: u64, to: u64, before: u64, after: u64, again: impl FnMut(u64, u64)) -> Found {
        let change = Change::Write { begins: (before / PAGE_BYTES) as u32, ends: (after / PAGE_BYTES) as u32 };
        let mut came = Came { grown: 0, gone: 0, again };
        self.change(from, to, change, &mut came);
        let grown = came.grown;
        self.live += grown;
        self.live_peak = self.live_peak.max(self.live);
        Found { all_live: grown == 0 }
    }

    /// Pages `from..to` are trimmed; how many of them were live.
    pub(super) fn trim(&mut self, from: u64, to: u64) -> u64 {
        let mut came = Came { grown: 0, gone: 0, again: |_, _| () };
        self.change(from, to, Change::Trim, &mut came);
        self.live -= came.gone;
        came.gone
    }

    /// Distinct pages read or written, written, and read.
    pub(super) fn footprint(&self) -> (u64, u64, u64) {
        let mut counts = [0; 3];
        for (first, stretch) in &self.stretches {
            match stretch {
                Stretch::Chunk(at) => self.chunks[*at as usize].count(&mut counts),
                Stretch::Alike { to, state } => {
                    let pages = (to - first) * CHUNK;
                    counts[0] += pages * u64::from(state.read || state.written);
                    counts[1] += pages * u64::from(state.written);
                    counts[2] += pages * u64::from(state.read);
                }
            }
        }
        let [all, written, read] = counts;
        (all, written, read)
    }
}

/// A range cut at multiples of a size: which one, its first in it, the one behind its last.
fn cut(from: u64, to: u64, size: u64) -> impl Iterator<Item = (u64, u64, u64)> {
    let behind = if from < to { (to - 1) / size + 1 } else { from / size };
    (from / size..behind).map(move |number| {
        let base = number * size;
        (number, from.saturating_sub(base), (to - base).min(size))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::chunk::distance;
    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Read(u64, u64),
        Write(u64, u64),
        Trim(u64, u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        // Around chunk edges, and far away.
        let start = prop_oneof![0..200_u64, CHUNK - 100..CHUNK + 100, 5 * CHUNK - 40..5 * CHUNK + 40];
        let length = prop_oneof![1..10_u64, 60..70_u64, Just(CHUNK), Just(3 * CHUNK)];
        (start, length, 0..3).prop_map(|(start, length, kind)| match kind {
            0 => Step::Read(start, start + length.min(200)),
            1 => Step::Write(start, start + length.min(200)),
            _ => Step::Trim(start, start + length),
        })
    }

    proptest! {
        #[test]
        fn bitmaps_agree_with_plain_sets(steps in prop::collection::vec(step(), 1..60)) {
            let mut pages = Pages::default();
            let (mut live, mut written, mut read) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
            let mut last: BTreeMap<u64, u64> = BTreeMap::new();
            let mut total = 0;
            for step in steps {
                match step {
                    Step::Read(from, to) => {
                        let expected = (from..to).any(|page| written.contains(&page));
                        prop_assert_eq!(pages.any_written(from, to), expected);
                        pages.read(from, to);
                        read.extend(from..to);
                    }
                    Step::Write(from, to) => {
                        let after = total + (to - from) * PAGE_BYTES;
                        let mut distances = Vec::new();
                        let found = pages.write(from, to, total, after, |distance, count| {
                            distances.extend(std::iter::repeat_n(distance, count as usize));
                        });
                        prop_assert_eq!(found.all_live, (from..to).all(|page| live.contains(&page)));
                        let expected: Vec<u64> =
                            (from..to).filter_map(|page| last.get(&page).map(|end| total - end)).collect();
                        prop_assert_eq!(distances, expected);
                        for page in from..to {
                            live.insert(page);
                            written.insert(page);
                            last.insert(page, after);
                        }
                        total = after;
                    }
                    Step::Trim(from, to) => {
                        let gone: Vec<u64> = live.range(from..to).copied().collect();
                        prop_assert_eq!(pages.trim(from, to), gone.len() as u64);
                        for page in gone {
                            live.remove(&page);
                        }
                    }
                }
                prop_assert_eq!(pages.live, live.len() as u64);
            }
            let all = read.union(&written).count() as u64;
            prop_assert_eq!(pages.footprint(), (all, written.len() as u64, read.len() as u64));
        }
    }

    /// Places at which requests begin and end: around words, blocks and chunks, and very far away.
    const EDGES: [u64; 16] = [
        0,
        1,
        63,
        64,
        BLOCK,
        2 * BLOCK + 7,
        CHUNK - 1,
        CHUNK,
        CHUNK + 1,
        CHUNK + 2 * BLOCK,
        2 * CHUNK,
        3 * CHUNK - 1,
        7 * CHUNK,
        1 << 40,
        (1 << 40) + 5 * CHUNK + 3,
        1 << 51,
    ];

    proptest! {
        /// The reference has a state for each stretch between two edges.
        #[test]
        fn requests_of_any_length_agree_with_stretches(
            steps in prop::collection::vec((0..EDGES.len() - 1, 1..EDGES.len(), 0..3), 1..80),
        ) {
            let mut pages = Pages::default();
            let mut states = [State::default(); EDGES.len() - 1];
            let (mut total, mut peak) = (0_u64, 0);
            for (from, length, kind) in steps {
                let to = (from + length).min(EDGES.len() - 1);
                let (first, last) = (EDGES[from], EDGES[to]);
                let stretches = |at: usize| EDGES[at + 1] - EDGES[at];
                let live = |states: &[State]| -> u64 {
                    states.iter().enumerate().filter(|(_, state)| state.live).map(|(at, _)| stretches(at)).sum()
                };
                let written = states[from..to].iter().any(|state| state.written);
                prop_assert_eq!(pages.any_written(first, last), written);
                let before = live(&states);
                match kind {
                    0 => {
                        pages.read(first, last);
                        states[from..to].iter_mut().for_each(|state| state.read = true);
                    }
                    1 => {
                        let after = total.wrapping_add((last - first).wrapping_mul(PAGE_BYTES));
                        let mut found: BTreeMap<u64, u64> = BTreeMap::new();
                        let all_live = states[from..to].iter().all(|state| state.live);
                        let came = pages.write(first, last, total, after, |distance, count| {
                            *found.entry(distance).or_default() += count;
                        });
                        prop_assert_eq!(came.all_live, all_live);
                        let (begins, ends) = ((total / PAGE_BYTES) as u32, (after / PAGE_BYTES) as u32);
                        let mut expected: BTreeMap<u64, u64> = BTreeMap::new();
                        for (at, state) in states.iter_mut().enumerate().take(to).skip(from) {
                            if state.written {
                                *expected.entry(distance(begins, state.position)).or_default() += stretches(at);
                            }
                            *state = State { read: state.read, written: true, live: true, position: ends };
                        }
                        prop_assert_eq!(found, expected);
                        total = after;
                    }
                    _ => {
                        let gone = pages.trim(first, last);
                        states[from..to].iter_mut().for_each(|state| state.live = false);
                        prop_assert_eq!(gone, before - live(&states));
                    }
                }
                peak = peak.max(live(&states));
                prop_assert_eq!((pages.live, pages.live_peak), (live(&states), peak));
                let count = |has: fn(&State) -> bool| -> u64 {
                    states.iter().enumerate().filter(|(_, state)| has(state)).map(|(at, _)| stretches(at)).sum()
                };
                let all = count(|state| state.read || state.written);
                prop_assert_eq!(pages.footprint(), (all, count(|state| state.written), count(|state| state.read)));
            }
            prop_assert!(pages.stretches.len() + pages.chunks.len() < 100, "memory by requests, not by addresses");
        }
    }
}

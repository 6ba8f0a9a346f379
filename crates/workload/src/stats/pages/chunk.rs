//! The pages of one chunk: what is known of each.

use super::{BLOCK, BLOCKS, CHUNK, FEW, PAGE_BYTES, WORDS, cut};

/// What a page is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    pub(super) read: bool,
    pub(super) written: bool,
    pub(super) live: bool,
    /// Where in the stream of written bytes the last write ended, in 4 KiB.
    pub(super) position: u32,
}

/// What happens to pages.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    Read,
    /// Between two places in the stream of written bytes, in 4 KiB.
    Write {
        begins: u32,
        ends: u32,
    },
    Trim,
}

/// What came of it.
pub(super) struct Came<F> {
    /// Pages that became live, and that are live no more.
    pub(super) grown: u64,
    pub(super) gone: u64,
    /// Takes the distance in bytes of pages that were written before, and how many they are.
    pub(super) again: F,
}

impl Change {
    /// The state of so many pages afterwards.
    #[inline]
    pub(super) fn of<F: FnMut(u64, u64)>(self, state: State, pages: u64, came: &mut Came<F>) -> State {
        match self {
            Change::Read => State { read: true, ..state },
            Change::Write { begins, ends } => {
                if state.written {
                    (came.again)(distance(begins, state.position), pages);
                }
                came.grown += if state.live { 0 } else { pages };
                State { read: state.read, written: true, live: true, position: ends }
            }
            Change::Trim => {
                came.gone += if state.live { pages } else { 0 };
                State { live: false, ..state }
            }
        }
    }

    /// Whether it leaves no trace on pages that nothing has happened to.
    pub(super) fn is_nothing(self) -> bool {
        matches!(self, Change::Trim)
    }
}

/// Positions count modulo 16 TiB.
pub(super) fn distance(begins: u32, position: u32) -> u64 {
    u64::from(begins.wrapping_sub(position)) * PAGE_BYTES
}

/// Pages of a chunk in one state, the end excluded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) from: u16,
    pub(super) to: u16,
    pub(super) state: State,
}

/// Appends a part to those before it, joined where they are alike.
pub(super) fn append(parts: &mut Vec<Part>, part: Part) {
    match parts.last_mut() {
        _ if part.from == part.to => {}
        Some(last) if last.to == part.from && last.state == part.state => last.to = part.to,
        _ => parts.push(part),
    }
}

/// When the pages of a block were last written.
#[derive(Clone)]
pub(super) enum Positions {
    /// All that were written by the same write.
    Same(u32),
    Each(Box<[u32; BLOCK as usize]>),
}

impl Positions {
    pub(super) fn at(&self, page: u64) -> u32 {
        match self {
            Positions::Same(position) => *position,
            Positions::Each(each) => each[(page % BLOCK) as usize],
        }
    }

    pub(super) fn each(&mut self) -> &mut [u32; BLOCK as usize] {
        if let Positions::Same(position) = *self {
            *self = Positions::Each(Box::new([position; BLOCK as usize]));
        }
        match self {
            Positions::Each(each) => each,
            Positions::Same(_) => unreachable!("each page has its own position now"),
        }
    }
}

/// A chunk with bits for each page.
pub(super) struct Bitmaps {
    read: [u64; WORDS],
    written: [u64; WORDS],
    live: [u64; WORDS],
    live_pages: u64,
    positions: [Positions; BLOCKS],
}

impl Bitmaps {
    pub(super) fn new(parts: &[Part]) -> Bitmaps {
        let mut bitmaps = Bitmaps {
            read: [0; WORDS],
            written: [0; WORDS],
            live: [0; WORDS],
            live_pages: 0,
            positions: std::array::from_fn(|_| Positions::Same(0)),
        };
        for part in parts {
            let (from, to) = (u64::from(part.from), u64::from(part.to));
            for (word, mask) in words(from, to) {
                bitmaps.read[word] |= if part.state.read { mask } else { 0 };
                bitmaps.written[word] |= if part.state.written { mask } else { 0 };
                bitmaps.live[word] |= if part.state.live { mask } else { 0 };
            }
            bitmaps.live_pages += if part.state.live { to - from } else { 0 };
            if part.state.written {
                bitmaps.place(from, to, part.state.position);
            }
        }
        bitmaps
    }

    /// Pages `from..to` were last written there.
    pub(super) fn place(&mut self, from: u64, to: u64, position: u32) {
        for (block, first, last) in cut(from, to, BLOCK) {
            let positions = &mut self.positions[block as usize];
            if last - first == BLOCK {
                *positions = Positions::Same(position);
            } else {
                positions.each()[first as usize..last as usize].fill(position);
            }
        }
    }

    pub(super) fn change<F: FnMut(u64, u64)>(&mut self, from: u64, to: u64, change: Change, came: &mut Came<F>) {
        match change {
            Change::Read => words(from, to).for_each(|(word, mask)| self.read[word] |= mask),
            Change::Trim => {
                if self.live_pages == 0 {
                    return;
                }
                for (word, mask) in words(from, to) {
                    let gone = self.live[word] & mask;
                    self.live[word] ^= gone;
                    self.live_pages -= u64::from(gone.count_ones());
                    came.gone += u64::from(gone.count_ones());
                }
            }
            Change::Write { begins, ends } => {
                for (block, first, last) in cut(from, to, BLOCK) {
                    let positions = &mut self.positions[block as usize];
                    if last - first == BLOCK {
                        for page in first..last {
                            if is_set(&self.written, block * BLOCK + page) {
                                (came.again)(distance(begins, positions.at(page)), 1);
                            }
                        }
                        *positions = Positions::Same(ends);
                        continue;
                    }
                    let each = positions.each();
                    for page in first..last {
                        let position = &mut each[page as usize];
                        if is_set(&self.written, block * BLOCK + page) {
                            (came.again)(distance(begins, *position), 1);
                        }
                        *position = ends;
                    }
                }
                for (word, mask) in words(from, to) {
                    let fresh = u64::from((mask & !self.live[word]).count_ones());
                    self.written[word] |= mask;
                    self.live[word] |= mask;
                    self.live_pages += fresh;
                    came.grown += fresh;
                }
            }
        }
    }
}

#[inline]
pub(super) fn is_set(bits: &[u64; WORDS], page: u64) -> bool {
    bits[(page / 64) as usize] >> (page % 64) & 1 == 1
}

/// What is known of a chunk.
pub(super) enum Chunk {
    Few(Vec<Part>),
    Dense(Box<Bitmaps>),
}

impl Chunk {
    pub(super) fn change<F: FnMut(u64, u64)>(
        &mut self,
        from: u64,
        to: u64,
        change: Change,
        spare: &mut Vec<Part>,
        came: &mut Came<F>,
    ) {
        let parts = match self {
            Chunk::Few(parts) => parts,
            Chunk::Dense(bitmaps) => return bitmaps.change(from, to, change, came),
        };
        let (from, to) = (from as u16, to as u16);
        let mut changed = |from: u16, to: u16, state: State| {
            let of = change.of(state, u64::from(to - from), came);
            Part { from, to, state: of }
        };
        spare.clear();
        let mut at = from;
        for &Part { from: first, to: last, state } in &*parts {
            if last <= from || first >= to {
                if first >= to && at < to {
                    if !change.is_nothing() {
                        append(spare, changed(at, to, State::default()));
                    }
                    at = to;
                }
                append(spare, Part { from: first, to: last, state });
                continue;
            }
            append(spare, Part { from: first, to: first.max(from), state });
            let (inner, end) = (first.max(from), last.min(to));
            if at < inner && !change.is_nothing() {
                append(spare, changed(at, inner, State::default()));
            }
            append(spare, changed(inner, end, state));
            append(spare, Part { from: end, to: last, state });
            at = end;
        }
        if at < to && !change.is_nothing() {
            append(spare, changed(at, to, State::default()));
        }
        std::mem::swap(parts, spare);
        if parts.len() > FEW {
            *self = Chunk::Dense(Box::new(Bitmaps::new(parts)));
        }
    }

    pub(super) fn any_written(&self, from: u64, to: u64) -> bool {
        match self {
            Chunk::Few(parts) => {
                parts.iter().any(|part| part.state.written && u64::from(part.from) < to && from < u64::from(part.to))
            }
            Chunk::Dense(bitmaps) => words(from, to).any(|(word, mask)| bitmaps.written[word] & mask != 0),
        }
    }

    /// The state of all pages, if they are alike.
    pub(super) fn alike(&self) -> Option<State> {
        match self {
            Chunk::Few(parts) => match parts.as_slice() {
                [all] if u64::from(all.to - all.from) == CHUNK => Some(all.state),
                _ => None,
            },
            Chunk::Dense(bitmaps) => {
                let all_or_none = |bits: &[u64; WORDS]| {
                    let first = *bits.first()?;
                    ([0, u64::MAX].contains(&first) && bits.iter().all(|word| *word == first)).then_some(first != 0)
                };
                let Positions::Same(position) = bitmaps.positions[0] else { return None };
                let same = |other: &Positions| matches!(other, Positions::Same(other) if *other == position);
                bitmaps.positions.iter().all(same).then_some(())?;
                Some(State {
                    read: all_or_none(&bitmaps.read)?,
                    written: all_or_none(&bitmaps.written)?,
                    live: all_or_none(&bitmaps.live)?,
                    position,
                })
            }
        }
    }

    /// Adds its pages read or written, written, and read.
    pub(super) fn count(&self, [all, written, read]: &mut [u64; 3]) {
        match self {
            Chunk::Few(parts) => {
                for Part { from, to, state } in parts {
                    let pages = u64::from(to - from);
                    *all += pages * u64::from(state.read || state.written);
                    *written += pages * u64::from(state.written);
                    *read += pages * u64::from(state.read);
                }
            }
            Chunk::Dense(bitmaps) => {
                for word in 0..WORDS {
                    *all += u64::from((bitmaps.read[word] | bitmaps.written[word]).count_ones());
                    *written += u64::from(bitmaps.written[word].count_ones());
                    *read += u64::from(bitmaps.read[word].count_ones());
                }
            }
        }
    }
}

/// A range of pages of a chunk cut at words: word and mask.
pub(super) fn words(first: u64, last: u64) -> impl Iterator<Item = (usize, u64)> {
    let behind = if first < last { (last - 1) / 64 + 1 } else { first / 64 };
    (first / 64..behind).map(move |word| {
        let low = first.saturating_sub(word * 64);
        let high = (last - word * 64).min(64);
        let mask = (u64::MAX >> (64 - (high - low))) << low;
        (word as usize, mask)
    })
}

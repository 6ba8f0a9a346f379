//! The format of a page of the checkpoint area.
//!
//! What is written there at a time is a *set* of pages: a checkpoint, or a record. Sets have numbers, and each names the one before it that
//! was whole. A set that lacks a page counts for nothing.
//!
//! ```text
//! word 0    magic, and the checksum of all other words
//! word 1    number of the set
//! word 2    number of the set before it that was whole; 0 if there is none
//! word 3    number of the oldest checkpoint with whose map the records since lead to this one
//! word 4    kind, place of the page in its set, pages of the set
//! word 5    the drive: its geometry and the sizes of its map
//! word 6    number of the next program when the set was begun
//! word 7    of a page of the map, its number; of others, how many halves of words follow
//! then, in 32 bits each, two to a word, the first in the low half
//! ```

use crate::media::checksum;

/// The first half of a page's first word.
const MAGIC: u64 = 0x5343_4b31;

/// Words before those of the set.
pub(super) const HEADER: usize = 8;

/// Halves of words that a slot of the map takes.
pub(super) const SLOT_HALVES: usize = 3;

const PLACE_BITS: u32 = 28;

const PLACES: u64 = (1 << PLACE_BITS) - 1;

/// What a set is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// All pages of the map, and the state beside it.
    Full,
    /// Those that changed since the checkpoint before it, and the state.
    Changed,
    /// Copies in blocks that are to be erased.
    Record,
    /// No checkpoint counts any more.
    Void,
}

const KINDS: [Kind; 4] = [Kind::Full, Kind::Changed, Kind::Record, Kind::Void];

impl Kind {
    /// Whether it is a checkpoint.
    pub(super) const fn has_map(self) -> bool {
        matches!(self, Kind::Full | Kind::Changed)
    }
}

/// What all pages of a set have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: Kind,
    /// From 1 on.
    pub(super) number: u64,
    pub(super) before: u64,
    pub(super) oldest: u64,
    pub(super) drive: u64,
    pub(super) since: u64,
    /// Pages of the set.
    pub(super) count: u32,
}

/// What a page of a set holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// A page of the map.
    Map {
        /// Its number.
        page: u32,
        halves: Vec<u32>,
    },
    /// A part of the state, or of a record.
    Part(Vec<u32>),
}

/// A page of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) head: Head,
    /// Its place in the set.
    pub(super) place: u32,
    pub(super) body: Body,
}

/// Halves of words that a page of so many bytes takes.
pub(super) const fn halves_per_page(page_bytes: u32) -> usize {
    (page_bytes as usize / 8 - HEADER) * 2
}

/// Slots of the map that a page of so many bytes takes.
pub(in crate::ftl::ssc) const fn slots_per_page(page_bytes: u32) -> usize {
    halves_per_page(page_bytes) / SLOT_HALVES
}

impl Page {
    /// Its words.
    pub(super) fn words(&self) -> Box<[u64]> {
        let Head { kind, number, before, oldest, drive, since, count } = self.head;
        let (halves, last) = match &self.body {
            Body::Map { page, halves } => (halves, 1 << 32 | u64::from(*page)),
            Body::Part(halves) => (halves, halves.len() as u64),
        };
        let places = u64::from(self.place) << PLACE_BITS | u64::from(count);
        let mut words = Vec::with_capacity(HEADER + halves.len().div_ceil(2));
        words.extend([0, number, before, oldest, (kind as u64) << (2 * PLACE_BITS) | places, drive, since, last]);
        words.extend(
            halves.chunks(2).map(|pair| u64::from(pair[0]) | u64::from(pair.get(1).copied().unwrap_or(0)) << 32),
        );
        words[0] = MAGIC << 32 | u64::from(checksum(&words[1..]));
        words.into()
    }

    /// The page with these words; `None` where they are none that is whole.
    pub(super) fn parse(words: &[u64]) -> Option<Page> {
        let (fixed, rest) = words.split_at_checked(HEADER)?;
        if fixed[0] != MAGIC << 32 | u64::from(checksum(&words[1..])) {
            return None;
        }
        let kind = *KINDS.get(usize::try_from(fixed[4] >> (2 * PLACE_BITS)).ok()?)?;
        let (place, count) = (fixed[4] >> PLACE_BITS & PLACES, fixed[4] & PLACES);
        let mut halves: Vec<u32> = rest.iter().flat_map(|word| [*word as u32, (*word >> 32) as u32]).collect();
        let body = if fixed[7] >> 32 == 1 && kind.has_map() {
            Body::Map { page: fixed[7] as u32, halves }
        } else {
            let length = usize::try_from(fixed[7]).ok()?;
            if length.div_ceil(2) != rest.len() || length % 2 == 1 && halves[length] != 0 {
                return None;
            }
            halves.truncate(length);
            Body::Part(halves)
        };
        let (number, before, oldest) = (fixed[1], fixed[2], fixed[3]);
        if number == 0 || before >= number || oldest > number || place >= count {
            return None;
        }
        let head = Head { kind, number, before, oldest, drive: fixed[5], since: fixed[6], count: count as u32 };
        Some(Page { head, place: place as u32, body })
    }
}

/// Any bytes as the words of a page, as they are and with the checksum that they would need: they are refused, or a page that is written
/// as the same words. A fuzz target, and a test, give it bytes.
///
/// # Panics
/// They are a page that is written otherwise.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn checkpoint_from_bytes(bytes: &[u8]) {
    let (words, _) = bytes.as_chunks::<8>();
    let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let whole = [&[MAGIC << 32 | u64::from(checksum(&words))][..], &words].concat();
    let mut pages = Vec::new();
    for words in [words, whole] {
        if let Some(page) = Page::parse(&words) {
            assert_eq!(*page.words(), words[..], "{page:?} came from other words");
            pages.push(page);
        }
    }
    super::chain::from_any_pages(&pages);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(super) fn pages() -> impl Strategy<Value = Page> {
        let head = (0..KINDS.len(), 1_u64..1 << 40, any::<u64>(), any::<u64>(), 0_u32..50);
        (head, prop::collection::vec(any::<u32>(), 0..40), any::<bool>(), 0_u32..9).prop_map(
            |((kind, number, drive, since, place), halves, is_map, page)| {
                let kind = KINDS[kind];
                let head =
                    Head { kind, number, before: number / 2, oldest: number / 3, drive, since, count: place + 1 };
                let is_map = is_map && kind.has_map() && halves.len().is_multiple_of(2);
                let body = if is_map { Body::Map { page, halves } } else { Body::Part(halves) };
                Page { head, place, body }
            },
        )
    }

    proptest! {
        #[test]
        fn a_page_comes_back_from_its_words(page in pages()) {
            prop_assert_eq!(Page::parse(&page.words()), Some(page));
        }

        #[test]
        fn a_word_that_changed_makes_it_none(page in pages(), word: prop::sample::Index, bit in 0_u32..64) {
            let mut words = page.words();
            let word = word.index(words.len());
            words[word] ^= 1 << bit;
            prop_assert_eq!(Page::parse(&words), None);
        }

        #[test]
        fn any_words_are_refused(words in prop::collection::vec(any::<u64>(), 0..40)) {
            prop_assert_eq!(Page::parse(&words), None);
        }

        #[test]
        fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            checkpoint_from_bytes(&bytes);
        }
    }

    #[test]
    fn a_page_takes_as_many_slots_as_it_says() {
        for page_bytes in [512, 4096, 32_768] {
            let head = Head { kind: Kind::Full, number: 1, before: 0, oldest: 0, drive: 0, since: 0, count: 1 };
            let halves = vec![7; slots_per_page(page_bytes) * SLOT_HALVES];
            let page = Page { head, place: 0, body: Body::Map { page: 0, halves } };
            assert!(page.words().len() * 8 <= page_bytes as usize, "pages of {page_bytes}");
        }
    }
}

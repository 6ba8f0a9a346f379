//! The format of a list: who owns the units of a block's pages, as words of the page that holds it.
//!
//! ```text
//! word 0    magic, and the checksum of all other words
//! word 1    number of the block's opening
//! word 2    the block, and how many of its pages the list covers: those before it
//! then, in 32 bits each, two to a word, the first in the low half:
//!   for each page    the number of its program, counted from the opening, and the owner of each unit
//!   lost data        a bit for each unit
//! ```
//!
//! A page that holds nothing that counts has no owners: an earlier list, or one whose program failed or was cut.

use ssdlab_flash::{BlockId, Lpn};

/// The first half of a list's first word.
const MAGIC: u32 = 0x0057_5454;

/// That of lists whose checksum goes over bytes, as first written. They are read, and written no more.
const MAGIC_OF_BYTES: u32 = 0x0057_5453;

/// Words before the pages.
const FIXED: usize = 3;

/// A page that a list covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListedPage {
    /// The number of its program.
    pub(crate) sequence: u64,
    /// A bit for each unit: its data was lost before the page was programmed.
    pub(crate) lost: u64,
}

/// A list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct List {
    pub(crate) block: BlockId,
    /// The number of the block's opening: that of the first program since its erase. It is higher each time.
    pub(crate) opening: u64,
    /// The pages before the list.
    pub(crate) pages: Vec<ListedPage>,
    /// The owners of the units of all pages, in their order; [`Lpn::NONE`] of one that holds nothing.
    pub(crate) owners: Vec<Lpn>,
}

impl List {
    /// Bytes of a list of so many pages.
    pub(crate) const fn bytes(pages: u32, units_per_page: u32) -> u64 {
        let units = pages as u64 * units_per_page as u64;
        FIXED as u64 * 8 + (pages as u64 + units + units.div_ceil(32)) * 4
    }

    /// The owners of the units of each page.
    pub(crate) fn owners(&self) -> impl Iterator<Item = &[Lpn]> {
        self.owners.chunks(self.units().max(1))
    }

    /// Units of a page.
    fn units(&self) -> usize {
        self.owners.len() / self.pages.len().max(1)
    }

    /// The words of its page.
    pub(crate) fn words(&self) -> Box<[u64]> {
        let units = self.units();
        assert_eq!(
            self.owners.len(),
            units * self.pages.len(),
            "pages of block {} have as many units each",
            self.block
        );
        let mut halves: Vec<u32> = Vec::with_capacity(self.pages.len() * (units + 2) + 1);
        for (page, owners) in self.pages.iter().zip(self.owners()) {
            let distance = page.sequence - self.opening;
            halves.push(u32::try_from(distance).expect("numbers of a block's pages are near each other"));
            halves.extend(owners.iter().map(|owner| owner.0));
        }
        let first_lost = halves.len();
        halves.resize(first_lost + (self.pages.len() * units).div_ceil(32), 0);
        for (index, page) in self.pages.iter().enumerate().filter(|(_, page)| page.lost != 0) {
            for unit in (0..units).filter(|unit| page.lost >> unit & 1 != 0) {
                let bit = index * units + unit;
                halves[first_lost + bit / 32] |= 1 << (bit % 32);
            }
        }
        let block = u64::from(self.block.0) << 32 | self.pages.len() as u64;
        let mut words = Vec::with_capacity(FIXED + halves.len().div_ceil(2));
        words.extend([0, self.opening, block]);
        words.extend(
            halves.chunks(2).map(|pair| u64::from(pair[0]) | u64::from(pair.get(1).copied().unwrap_or(0)) << 32),
        );
        words[0] = u64::from(MAGIC) << 32 | u64::from(checksum(&words[1..]));
        words.into()
    }

    /// The list in a page's words; `None` where there is none that is whole, or it is of another block or other pages.
    pub(crate) fn parse(words: &[u64], block: BlockId, page: u32, units_per_page: u32) -> Option<List> {
        let (fixed, rest) = words.split_at_checked(FIXED)?;
        let begins = |magic: u32, checksum: u32| fixed[0] == u64::from(magic) << 32 | u64::from(checksum);
        let whole = begins(MAGIC, checksum(&words[1..])) || begins(MAGIC_OF_BYTES, checksum_of_bytes(&words[1..]));
        if !whole || fixed[2] != u64::from(block.0) << 32 | u64::from(page) {
            return None;
        }
        let units = units_per_page as usize;
        let halves: Vec<u32> = rest.iter().flat_map(|word| [*word as u32, (*word >> 32) as u32]).collect();
        let of_pages = page as usize * (1 + units);
        let needed = of_pages + (page as usize * units).div_ceil(32);
        if halves.len() != needed.next_multiple_of(2) {
            return None;
        }
        let (of_pages, lost) = halves.split_at(of_pages);
        let is_lost = |bit: usize| lost[bit / 32] >> (bit % 32) & 1 != 0;
        let pages = of_pages.chunks(1 + units).enumerate().map(|(index, halves)| ListedPage {
            sequence: fixed[1] + u64::from(halves[0]),
            lost: (0..units).filter(|unit| is_lost(index * units + unit)).fold(0, |bits, unit| bits | 1 << unit),
        });
        let owners = of_pages.chunks(1 + units).flat_map(|halves| halves[1..].iter().map(|owner| Lpn(*owner)));
        Some(List { block, opening: fixed[1], pages: pages.collect(), owners: owners.collect() })
    }
}

/// A hash of words, folded to 32 bits. Each step is a bijection of what was hashed before, so that no single word that changes is missed
/// before the fold.
pub(crate) fn checksum(words: &[u64]) -> u32 {
    let step = |hash: u64, word: &u64| (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let hash = words.iter().fold(0xcbf2_9ce4_8422_2325, step);
    (hash ^ hash >> 32) as u32
}

/// The FNV-1a hash of the bytes of words, folded to 32 bits.
fn checksum_of_bytes(words: &[u64]) -> u32 {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    (hash ^ hash >> 32) as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lists() -> impl Strategy<Value = List> {
        (0_u32..1000, 0_u64..1 << 40, 1_usize..65, 0_usize..40).prop_flat_map(|(block, opening, units, pages)| {
            let mask = u64::MAX >> (64 - units);
            let page = (0_u32..1 << 20, prop::collection::vec(0_u32..=u32::MAX, units), any::<u64>());
            prop::collection::vec(page, pages).prop_map(move |pages| List {
                block: BlockId(block),
                opening,
                owners: pages.iter().flat_map(|(_, owners, _)| owners).copied().map(Lpn).collect(),
                pages: pages
                    .iter()
                    .map(|(distance, _, lost)| ListedPage {
                        sequence: opening + u64::from(*distance),
                        lost: lost & mask,
                    })
                    .collect(),
            })
        })
    }

    proptest! {
        #[test]
        fn a_list_comes_back_from_its_words_and_takes_as_many_bytes_as_it_says(list in lists()) {
            let (words, pages) = (list.words(), list.pages.len() as u32);
            let units = list.units().max(1) as u32;
            prop_assert_eq!(words.len() as u64, List::bytes(pages, units).div_ceil(8));
            prop_assert_eq!(List::parse(&words, list.block, pages, units), Some(list.clone()));
            prop_assert_eq!(List::parse(&words, list.block, pages + 1, units), None);
            prop_assert_eq!(List::parse(&words, BlockId(list.block.0 + 1), pages, units), None);
        }

        #[test]
        fn a_word_that_changed_makes_it_none(list in lists(), word: prop::sample::Index, bit in 0_u32..64) {
            let mut words = list.words();
            let pages = list.pages.len() as u32;
            let units = list.units().max(1) as u32;
            words[word.index(words.len())] ^= 1 << bit;
            prop_assert_eq!(List::parse(&words, list.block, pages, units), None);
        }

        #[test]
        fn a_list_of_an_image_from_before_is_read(list in lists()) {
            let mut words = list.words();
            words[0] = u64::from(MAGIC_OF_BYTES) << 32 | u64::from(checksum_of_bytes(&words[1..]));
            let (pages, units) = (list.pages.len() as u32, list.units().max(1) as u32);
            prop_assert_eq!(List::parse(&words, list.block, pages, units), Some(list));
        }

        #[test]
        fn any_words_are_no_list_or_one(words in prop::collection::vec(any::<u64>(), 0..40), pages in 0_u32..30) {
            prop_assert_eq!(List::parse(&words, BlockId(0), pages, 4), None);
        }
    }
}

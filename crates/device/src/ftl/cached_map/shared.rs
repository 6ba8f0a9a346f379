//! Map pages that share a mapping unit on flash, where several fit in one.
//!
//! ```text
//!   page 7  page 90  page 3   -         a program of three map pages
//!   [ slot 0 | slot 1 | slot 2 | slot 3 ]   one mapping unit, with the number of a *shared unit*
//! ```
//!
//! A shared unit is mapped, moved, rewritten and counted under its own number, as any unit is; its out-of-band area names its map
//! pages. Where the newest copy of a map page is, the directory says: a shared unit, and a slot in it. A shared unit is needed
//! by each page whose newest copy it has, and by each page whose newer copy is not on flash yet. When no page needs it, its
//! number is free and its unit holds nothing. So one number never stands for an older and a newer unit at once, and a power cut
//! cannot make the older one the newest. Collection moves a unit whole, with its superseded copies.

use std::collections::BTreeSet;

use ssdlab_flash::UnitId;

use super::geometry::Shape;
use super::{MapCache, MapOp};
use crate::Check;
use crate::ftl::page::PageFtl;
use crate::media::Media;
use crate::seeded::{Bug, seeded};

/// The name of an empty slot.
const EMPTY: u64 = u64::MAX;

/// Where a map page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SharedPlace {
    number: u32,
    slot: u32,
}

/// Shared units, and which of their map pages count.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// By map page: its newest copy.
    places: Vec<Option<SharedPlace>>,
    /// By shared unit: pages that need it.
    needed: Vec<u16>,
    free: BTreeSet<u32>,
    /// Copies that are needed until the newer unit, whose program failed, is written elsewhere.
    failed: Vec<Superseded>,
}

/// A copy of a map page that its newer one makes superfluous as soon as that is on flash, by numbers of their shared units.
#[derive(Clone, Copy, Debug)]
pub(super) struct Superseded {
    newer: u32,
    older: u32,
}

impl Shared {
    pub(super) fn new(shape: &Shape) -> Shared {
        if !shape.shares_units() {
            return Shared::default();
        }
        Shared {
            places: vec![None; shape.pages as usize],
            needed: vec![0; shape.numbers() as usize],
            free: (0..shape.numbers()).collect(),
            failed: Vec::new(),
        }
    }

    /// Whether there are numbers for the units of so many more map pages.
    pub(super) fn has_numbers(&self, shape: &Shape, pages: usize) -> bool {
        !shape.shares_units() || self.free.len() >= pages.div_ceil(shape.slots as usize)
    }

    /// Units that map pages need. A real drive counts the pages of each in a byte.
    pub(super) fn in_use(&self) -> u64 {
        (self.needed.len() - self.free.len()) as u64
    }

    /// The number of the shared unit that has the newest copy of a page.
    fn number_of(&self, page: u32) -> Option<u32> {
        self.places[page as usize].map(|place| place.number)
    }

    /// A unit of the lowest free number has the newest copies of `pages`; what they leave behind is added to `superseded`.
    pub(super) fn place(&mut self, pages: &[u32], superseded: &mut Vec<Superseded>) -> u32 {
        let number = self.free.pop_first().expect("a number for a shared unit was left");
        assert_eq!(self.needed[number as usize], 0, "shared unit {number} is free, and needed");
        for (slot, page) in (0..).zip(pages) {
            let before = self.places[*page as usize].replace(SharedPlace { number, slot });
            superseded.extend(before.map(|before| Superseded { newer: number, older: before.number }));
            self.needed[number as usize] += 1;
        }
        number
    }

    /// A page needs a unit no more; true if none does.
    fn release(&mut self, number: u32) -> bool {
        let needed = &mut self.needed[number as usize];
        assert!(*needed > 0, "shared unit {number} is let go of, and no map page needed it");
        *needed -= 1;
        if *needed == 0 {
            assert!(self.free.insert(number), "shared unit {number} becomes free twice");
        }
        *needed == 0
    }

    /// Recovery: nothing was found.
    fn forget(&mut self) {
        self.places.fill(None);
        self.needed.fill(0);
        self.failed.clear();
        self.free = (0..self.needed.len() as u32).collect();
    }
}

/// The map pages that the words of a shared unit name, by slot.
fn names<'a>(shape: &'a Shape, words: &'a [u64]) -> impl Iterator<Item = (u32, u32)> + 'a {
    let slots = words[1..].chunks(shape.slot_words());
    (0..)
        .zip(slots)
        .filter(|(_, words)| words[0] != EMPTY)
        .map(|(slot, words)| (slot, u32::try_from(words[0]).unwrap_or(u32::MAX)))
}

impl MapCache {
    /// The unit that has the newest copy of a map page; `None` if it was never programmed.
    #[inline]
    pub(super) fn unit_of_page(&self, data: &PageFtl, page: u32) -> Option<UnitId> {
        if !self.shape.shares_units() {
            return data.unit_of(self.shape.lpn_of(page));
        }
        let number = self.shared.number_of(page)?;
        let unit = data.unit_of(self.shape.shared_lpn(number));
        assert!(unit.is_some(), "shared unit {number} has the newest copy of map page {page}, and is nowhere");
        unit
    }

    /// The entries of a map page as its newest copy has them, two in a word.
    pub(super) fn words_of_page<'a>(&self, data: &PageFtl, media: &'a Media, page: u32) -> Option<&'a [u64]> {
        let unit = self.unit_of_page(data, page)?;
        let words = media.flash.oob.record(unit).unwrap_or_else(|| panic!("map page {page} has no words on flash"));
        if !self.shape.shares_units() {
            return Some(&words[1..]);
        }
        let slot = self.shared.places[page as usize].map_or(0, |place| place.slot);
        let words = words[1..].chunks(self.shape.slot_words()).nth(slot as usize).unwrap_or(&[EMPTY]);
        assert_eq!(words[0], u64::from(page), "slot {slot} of unit {unit} is of another map page");
        Some(&words[1..])
    }

    /// The words of a shared unit with `pages`: the number of its program, which it keeps where it is moved, and of each
    /// slot its map page and the entries.
    pub(super) fn shared_words(&mut self, data: &PageFtl, as_of: u64, pages: &[u32]) -> Box<[u64]> {
        let mut words = self.unit_words(as_of);
        for (slot, words) in words[1..].chunks_mut(self.shape.slot_words()).enumerate() {
            let Some(page) = pages.get(slot).copied() else {
                words.fill(EMPTY);
                continue;
            };
            self.changes[page as usize].take();
            self.changes[page as usize].entries.clear();
            words[0] = page.into();
            self.put_entries(data, page, &mut words[1..]);
        }
        words
    }

    /// Map pages whose newest copy a unit of a map block has.
    pub(super) fn pages_in(&self, media: &Media, unit: UnitId) -> Vec<u32> {
        let lpn = media.flash.oob.lpn(unit);
        if !self.shape.shares_units() {
            let page = self.shape.page_at(lpn).filter(|page| lpn == self.shape.lpn_of(*page));
            return page.into_iter().collect();
        }
        let Some(number) = self.shape.shared_at(lpn) else { return Vec::new() };
        let words =
            media.flash.oob.record(unit).unwrap_or_else(|| panic!("shared unit {number} has no words on flash"));
        let newest = |page: &u32| self.shared.number_of(*page) == Some(number);
        names(&self.shape, words).map(|(_, page)| page).filter(newest).collect()
    }

    /// The program of newer copies ended: they are on flash, or it failed.
    pub(super) fn superseded(&mut self, data: &mut PageFtl, media: &mut Media, all: Vec<Superseded>, on_flash: bool) {
        if on_flash {
            all.into_iter().for_each(|superseded| self.release(data, media, superseded.older));
        } else {
            self.shared.failed.extend(all);
        }
    }

    /// Units whose program had failed were written elsewhere since: what they superseded is needed no more.
    #[inline]
    pub(super) fn failed_are_written(&mut self, data: &mut PageFtl, media: &mut Media) {
        if !self.shared.failed.is_empty() {
            self.release_written(data, media);
        }
    }

    #[cold]
    fn release_written(&mut self, data: &mut PageFtl, media: &mut Media) {
        for superseded in std::mem::take(&mut self.shared.failed) {
            let newer = data.unit_of(self.shape.shared_lpn(superseded.newer));
            let is_on_flash = newer.is_none_or(|unit| media.is_on_flash(media.page_of(unit)));
            if is_on_flash {
                self.release(data, media, superseded.older);
            } else {
                self.shared.failed.push(superseded);
            }
        }
    }

    /// A map page needs a shared unit no more.
    fn release(&mut self, data: &mut PageFtl, media: &mut Media, number: u32) {
        if self.shared.release(number) {
            let unit = data.unmap_metadata(media, self.shape.shared_lpn(number));
            self.drop_words(data, media, std::iter::once(unit));
        }
    }

    /// Finds the newest copy of each map page in the shared units that are mapped; returns the numbers of those that have none.
    /// `None` where a unit says what none can say.
    pub(super) fn find_shared(&mut self, data: &PageFtl, media: &Media) -> Option<Vec<u32>> {
        if !self.shape.shares_units() {
            return Some(Vec::new());
        }
        self.shared.forget();
        let mut newest: Vec<u64> = vec![0; self.shape.pages as usize];
        for number in 0..self.shape.numbers() {
            let Some(unit) = data.unit_of(self.shape.shared_lpn(number)) else { continue };
            // Words of what was superseded may be gone.
            let Some(words) = media.flash.oob.record(unit) else { continue };
            if words.len() != self.shape.unit_words() {
                return None;
            }
            for (slot, page) in names(&self.shape, words) {
                let known = newest.get_mut(page as usize)?;
                if self.shared.places[page as usize].is_none() || words[0] > *known || seeded(Bug::OlderMapPageWins) {
                    *known = words[0];
                    self.shared.places[page as usize] = Some(SharedPlace { number, slot });
                }
            }
        }
        for place in self.shared.places.iter().flatten() {
            self.shared.needed[place.number as usize] += 1;
            self.shared.free.remove(&place.number);
        }
        let is_mapped = |number: &u32| data.unit_of(self.shape.shared_lpn(*number)).is_some();
        Some(self.shared.free.iter().copied().filter(is_mapped).collect())
    }

    /// Each shared unit that is mapped is needed, by as many map pages as are counted.
    pub(super) fn check_shared(&self, data: &PageFtl) -> Option<Check> {
        if !self.shape.shares_units() {
            return None;
        }
        let shared = &self.shared;
        let mut least = vec![0; shared.needed.len()];
        shared.places.iter().flatten().for_each(|place| least[place.number as usize] += 1);
        shared.failed.iter().for_each(|superseded| least[superseded.older as usize] += 1);
        for op in self.ops.used() {
            if let MapOp::Program(program) = op {
                program.superseded.iter().for_each(|superseded| least[superseded.older as usize] += 1);
            }
        }
        let numbers = 0..self.shape.numbers();
        let wrong = numbers.filter(|number| {
            let needed = shared.needed[*number as usize];
            let is_mapped = data.unit_of(self.shape.shared_lpn(*number)).is_some();
            needed != least[*number as usize] || is_mapped != (needed > 0) || shared.free.contains(number) == is_mapped
        });
        let wrong = wrong.count();
        Some(Check {
            name: "shared_map_units_are_needed",
            passed: wrong == 0,
            detail: format!("{wrong} of {} shared units are counted wrongly", self.shape.numbers()),
        })
    }
}

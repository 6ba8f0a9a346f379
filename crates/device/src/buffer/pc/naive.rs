//! The principle of WAFLASH's section 3.1 told in the plainest way: a list that is walked, and all references ever. The
//! reference models of the policies' tests are made of it.

use std::collections::{BTreeSet, HashMap};

use ssdlab_flash::Lpn;

/// A page in a list.
#[derive(Clone, Copy)]
struct Page {
    lpn: Lpn,
    full: bool,
    /// Which push or re-insertion brought it where it is.
    place: u64,
}

/// A list, the bottom first.
#[derive(Default)]
pub(in crate::buffer) struct NaiveList {
    pages: Vec<Page>,
    places: u64,
}

impl NaiveList {
    pub(in crate::buffer) fn push(&mut self, lpn: Lpn, full: bool) {
        self.places += 1;
        self.pages.push(Page { lpn, full, place: self.places });
    }

    /// Takes a page out; whether it was there.
    pub(in crate::buffer) fn remove(&mut self, lpn: Lpn) -> bool {
        let before = self.pages.len();
        self.pages.retain(|page| page.lpn != lpn);
        self.pages.len() < before
    }

    pub(in crate::buffer) fn contains(&self, lpn: Lpn) -> bool {
        self.pages.iter().any(|page| page.lpn == lpn)
    }

    pub(in crate::buffer) fn len(&self) -> usize {
        self.pages.len()
    }

    pub(in crate::buffer) fn bottom(&self) -> Option<Lpn> {
        self.pages.first().map(|page| page.lpn)
    }

    /// The page that leaves next, those below it re-inserted if it is not the bottom.
    pub(in crate::buffer) fn choose(&mut self, distances: &NaiveDistances, busy: &dyn Fn(Lpn) -> bool) -> Option<Lpn> {
        let bottom = *self.pages.first()?;
        if bottom.full || !busy(bottom.lpn) {
            return Some(bottom.lpn);
        }
        let Some(full) = self.pages.iter().position(|page| page.full) else { return Some(bottom.lpn) };
        let lpn = self.pages[full].lpn;
        self.delay(full, distances.mean());
        Some(lpn)
    }

    /// Re-inserts what is below the full page at `full`, above as many pages as ACD.
    fn delay(&mut self, full: usize, distance: usize) {
        let mut block: Vec<Page> = self.pages.drain(..full).collect();
        let mut at = 0;
        if distance > 0 && self.pages.len() > 1 {
            self.places += 1;
            let mut place = self.places;
            at = (1 + distance).min(self.pages.len());
            if distance < self.pages.len() {
                // Never between pages that were re-inserted together.
                place = self.pages[at - 1].place;
                at += self.pages[at..].iter().take_while(|page| page.place == place).count();
            }
            block.iter_mut().for_each(|page| page.place = place);
        }
        self.pages.splice(at..at, block);
    }
}

/// All references ever, each by which stay in the buffer it was to.
#[derive(Default)]
pub(in crate::buffer) struct NaiveDistances {
    references: Vec<u64>,
    stay_of: HashMap<Lpn, u64>,
    stays: u64,
    sum: u64,
    count: u64,
}

impl NaiveDistances {
    /// A page was written; it was full before or not.
    pub(in crate::buffer) fn wrote(&mut self, lpn: Lpn, was_full: bool) {
        let stay = match self.stay_of.get(&lpn) {
            Some(&stay) => {
                if !was_full {
                    let since = self.references.iter().rev().take_while(|other| **other != stay);
                    self.sum += since.collect::<BTreeSet<_>>().len() as u64;
                    self.count += 1;
                }
                stay
            }
            None => {
                self.stays += 1;
                self.stay_of.insert(lpn, self.stays);
                self.stays
            }
        };
        self.references.push(stay);
    }

    pub(in crate::buffer) fn left(&mut self, lpn: Lpn) {
        self.stay_of.remove(&lpn);
    }

    fn mean(&self) -> usize {
        self.sum.checked_div(self.count).unwrap_or(0) as usize
    }
}

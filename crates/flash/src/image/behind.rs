//! What has happened on the chips and is not in the files yet.
//!
//! Nobody outside knows of it: whoever is about to tell somebody settles first. Meanwhile the units of a page come
//! together to one write, and a page that ends its program before anybody looked is never written as begun.

use std::fs::File;
use std::io;

use super::lifeline::Lifeline;
use super::seeded::{Bug, seeded};
use crate::{Ppn, UnitId};

/// Bytes of data held back at most.
const DATA_MAX: usize = 512 << 10;

/// Data that stays within so many runs is found by walking them.
const RUNS_MAX: usize = 64;

/// Units side by side.
struct Run {
    first: UnitId,
    units: u32,
    /// Where their bytes begin in `data`.
    at: usize,
}

/// Data and page entries in the order in which they came to be.
#[derive(Default)]
pub(super) struct Behind {
    data: Vec<u8>,
    runs: Vec<Run>,
    /// Bytes of entries, `entry_bytes` each; `pages` has their pages, `None` where a later one took over.
    entries: Vec<u8>,
    pages: Vec<Option<Ppn>>,
}

impl Behind {
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.pages.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.data.len() >= DATA_MAX || self.runs.len() >= RUNS_MAX || self.pages.len() >= RUNS_MAX * 4
    }

    /// The data of a unit.
    pub(super) fn unit(&self, unit: UnitId, bytes: usize) -> Option<&[u8]> {
        // The latest first: a unit that was lost is written a second time.
        let run = self.runs.iter().rev().find(|run| (run.first..run.first + run.units).contains(&unit))?;
        let from = run.at + (unit - run.first) as usize * bytes;
        Some(&self.data[from..from + bytes])
    }

    pub(super) fn put_unit(&mut self, unit: UnitId, cells: &[u8]) {
        match self.runs.last_mut() {
            Some(run) if run.first + run.units == unit => run.units += 1,
            _ => self.runs.push(Run { first: unit, units: 1, at: self.data.len() }),
        }
        self.data.extend_from_slice(cells);
    }

    /// A page's entry; an earlier one of the same page is not written any more. One that `changes` a page whose program
    /// has ended takes the place of the earlier one: the pages behind it may be written already.
    pub(super) fn put_page(&mut self, page: Ppn, entry: &[u8], changes: bool) {
        if let Some(earlier) = self.pages.iter().rposition(|earlier| *earlier == Some(page)) {
            if changes {
                self.entries[earlier * entry.len()..(earlier + 1) * entry.len()].copy_from_slice(entry);
                return;
            }
            self.pages[earlier] = None;
        }
        assert_eq!(
            self.entries.len(),
            self.pages.len() * entry.len(),
            "each of {} pages has an entry",
            self.pages.len()
        );
        self.pages.push(Some(page));
        self.entries.extend_from_slice(entry);
    }

    pub(super) fn forget(&mut self) {
        self.data.clear();
        self.runs.clear();
        self.entries.clear();
        self.pages.clear();
    }

    /// Writes all data, then all entries in their order: an entry never tells of data that is not there.
    ///
    /// # Errors
    /// The file's name and what its file system said; all else is written nevertheless.
    pub(super) fn settle(
        &mut self,
        pages: &File,
        oob: &File,
        unit_bytes: usize,
        entry_bytes: usize,
        lifeline: &Lifeline,
    ) -> Result<(), (&'static str, io::Error)> {
        if seeded(Bug::EntryBeforeData) {
            let entries = self.write_entries(oob, entry_bytes, lifeline);
            let data = self.write_data(pages, unit_bytes, lifeline);
            self.forget();
            return data.and(entries);
        }
        let units: usize = self.runs.iter().map(|run| run.units as usize).sum();
        assert_eq!(units * unit_bytes, self.data.len(), "{units} units of {unit_bytes} bytes are to be written");
        let left = if seeded(Bug::SettleLeavesTheLast) { self.take_last(entry_bytes) } else { None };
        let data = self.write_data(pages, unit_bytes, lifeline);
        let entries = self.write_entries(oob, entry_bytes, lifeline);
        self.forget();
        if let Some((page, entry)) = left {
            self.put_page(page, &entry, false);
        }
        data.and(entries)
    }

    /// The seeded bug [`Bug::SettleLeavesTheLast`]: the latest page's entry.
    fn take_last(&mut self, entry_bytes: usize) -> Option<(Ppn, Vec<u8>)> {
        let last = self.pages.iter().rposition(Option::is_some)?;
        let page = self.pages[last].take()?;
        Some((page, self.entries[last * entry_bytes..(last + 1) * entry_bytes].to_vec()))
    }

    fn write_data(
        &self,
        pages: &File,
        unit_bytes: usize,
        lifeline: &Lifeline,
    ) -> Result<(), (&'static str, io::Error)> {
        let mut result = Ok(());
        for Run { first, units, at } in &self.runs {
            let bytes = &self.data[*at..at + *units as usize * unit_bytes];
            if let Err(error) = lifeline.write_at(pages, bytes, u64::from(first.0) * unit_bytes as u64) {
                result = Err(("pages", error));
            }
        }
        result
    }

    fn write_entries(
        &self,
        oob: &File,
        entry_bytes: usize,
        lifeline: &Lifeline,
    ) -> Result<(), (&'static str, io::Error)> {
        let mut result = Ok(());
        let mut at = 0;
        while at < self.pages.len() {
            let Some(first) = self.pages[at] else {
                at += 1;
                continue;
            };
            let follows = |n: usize| self.pages.get(at + n) == Some(&Some(first + n as u32));
            let count = (1..).find(|n| !follows(*n)).expect("the list ends");
            let bytes = &self.entries[at * entry_bytes..(at + count) * entry_bytes];
            if let Err(error) = lifeline.write_at(oob, bytes, u64::from(first.0) * entry_bytes as u64) {
                result = Err(("oob", error));
            }
            at += count;
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use super::*;

    #[test]
    fn the_latest_of_each_unit_and_page_is_what_is_found_and_what_is_kept() {
        let (pages, oob) = (tempfile::tempfile().expect("a file"), tempfile::tempfile().expect("a file"));
        let mut behind = Behind::default();
        for (unit, byte) in [(4, 1), (5, 2), (9, 3), (5, 4)] {
            behind.put_unit(UnitId(unit), &[byte; 8]);
        }
        for (page, byte) in [(2, 1), (3, 1), (2, 2), (3, 2), (7, 1)] {
            behind.put_page(Ppn(page), &[byte; 4], false);
        }
        behind.put_page(Ppn(2), &[3; 4], true);
        assert_eq!(behind.pages, [None, None, Some(Ppn(2)), Some(Ppn(3)), Some(Ppn(7))], "changed where it is");
        assert_eq!(behind.unit(UnitId(5), 8), Some(&[4; 8][..]));
        assert_eq!(behind.unit(UnitId(4), 8), Some(&[1; 8][..]));
        assert_eq!(behind.unit(UnitId(6), 8), None);
        behind.settle(&pages, &oob, 8, 4, &Lifeline::default()).expect("a file takes it");
        assert!(behind.is_empty());
        let read = |file: &File, offset, bytes| {
            let mut found = vec![0; bytes];
            file.read_exact_at(&mut found, offset).expect("the bytes are there");
            found
        };
        assert_eq!(read(&pages, 32, 16), [[1; 8], [4; 8]].concat());
        assert_eq!(read(&pages, 72, 8), [3; 8]);
        assert_eq!(read(&oob, 8, 8), [[3; 4], [2; 4]].concat());
        assert_eq!(read(&oob, 28, 4), [1; 4]);
    }
}

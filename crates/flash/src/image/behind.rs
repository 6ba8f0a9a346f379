//! What has happened on the chips and is not in the files yet.
//!
//! It goes into the files in batches, one after the other:
//!
//! ```text
//!   records of metadata -> data -> pages' entries -> blocks' entries
//! ```
//!
//! No entry tells of what is not there, so the files are a moment of the chips between any two writes. A change of a block ends its
//! batch, for what comes after it may be of the block's next life. Where the host's file system is full, a batch stays here
//! with all that follow, and goes into the files when there is space. Until then no answer tells of what it promises.
//! Meanwhile the units of a page come together to one write, and a page whose program ends before an answer tells of it is
//! never written as begun.

use std::io;

use super::entry::BlockEntry;
use super::files::{Files, HEADER};
use super::lifeline::Lifeline;
use super::seeded::{Bug, seeded};
use crate::{BlockId, Ppn, UnitId};

/// Bytes of data held back at most.
const DATA_MAX: usize = 512 << 10;

/// Data that stays within so many runs is found by walking them.
const RUNS_MAX: usize = 64;

/// Bytes of records held back at most.
const RECORDS_MAX: usize = 256 << 10;

/// Units side by side.
struct Run {
    first: UnitId,
    units: u32,
    /// Where their bytes begin in `data`.
    at: usize,
}

/// What goes into the files together, in the order in which it came to be.
#[derive(Default)]
struct Batch {
    /// Bytes for the log of records, and where they go in it.
    records: Vec<u8>,
    records_at: u64,
    data: Vec<u8>,
    runs: Vec<Run>,
    /// Bytes of entries, `entry_bytes` each; `pages` has their pages, `None` where a later one took over.
    entries: Vec<u8>,
    pages: Vec<Option<Ppn>>,
    blocks: Vec<(BlockId, BlockEntry)>,
    /// A block has changed: nothing more is added.
    ended: bool,
}

/// All batches, the earliest first.
#[derive(Default)]
pub(super) struct Behind {
    batches: Vec<Batch>,
    /// Records that the seeded bug [`Bug::RecordAfterPage`] holds back, and where they go.
    late: (u64, Vec<u8>),
}

impl Batch {
    fn is_empty(&self) -> bool {
        self.records.is_empty() && self.runs.is_empty() && self.pages.is_empty() && self.blocks.is_empty()
    }

    fn is_full(&self) -> bool {
        self.data.len() >= DATA_MAX
            || self.runs.len() >= RUNS_MAX
            || self.pages.len() >= RUNS_MAX * 4
            || self.records.len() >= RECORDS_MAX
    }

    /// The allocations stay.
    fn clear(&mut self) {
        self.records.clear();
        self.data.clear();
        self.runs.clear();
        self.entries.clear();
        self.pages.clear();
        self.blocks.clear();
        self.ended = false;
    }

    /// The entry of a block, which is added as `new` if it is not there.
    fn block(&mut self, block: BlockId, new: BlockEntry) -> &mut BlockEntry {
        let index = self.blocks.iter().rposition(|(known, _)| *known == block).unwrap_or_else(|| {
            self.blocks.push((block, new));
            self.blocks.len() - 1
        });
        &mut self.blocks[index].1
    }
}

impl Behind {
    pub(super) fn is_empty(&self) -> bool {
        self.batches.iter().all(Batch::is_empty)
    }

    /// Whether it is time to write.
    pub(super) fn is_full(&self) -> bool {
        self.batches.last().is_some_and(Batch::is_full)
    }

    /// The batch that things are added to.
    fn last(&mut self) -> &mut Batch {
        if self.batches.last().is_none_or(|batch| batch.ended) {
            self.batches.push(Batch::default());
        }
        self.batches.last_mut().expect("a batch")
    }

    /// The data of a unit.
    pub(super) fn unit(&self, unit: UnitId, bytes: usize) -> Option<&[u8]> {
        // The latest first: a unit that was lost is written a second time.
        let in_batch = |batch: &Batch| {
            let run = batch.runs.iter().rev().find(|run| (run.first..run.first + run.units).contains(&unit))?;
            Some(run.at + (unit - run.first) as usize * bytes)
        };
        let mut batches = self.batches.iter().rev();
        batches.find_map(|batch| in_batch(batch).map(|from| &batch.data[from..from + bytes]))
    }

    pub(super) fn put_unit(&mut self, unit: UnitId, sector_data: &[u8]) {
        let batch = self.last();
        match batch.runs.last_mut() {
            Some(run) if run.first + run.units == unit => run.units += 1,
            _ => batch.runs.push(Run { first: unit, units: 1, at: batch.data.len() }),
        }
        batch.data.extend_from_slice(sector_data);
    }

    /// Where records are appended that go to `end` of the log.
    pub(super) fn records(&mut self, end: u64) -> &mut Vec<u8> {
        let batch = self.last();
        if batch.records.is_empty() {
            batch.records_at = end;
        }
        assert_eq!(batch.records_at + batch.records.len() as u64, end, "records follow each other in the log");
        &mut batch.records
    }

    /// A page's entry; an earlier one of the same page is not written any more. One that `changes` a page whose program
    /// has ended takes the place of the earlier one: the pages behind it may be written already.
    pub(super) fn put_page(&mut self, page: Ppn, entry: &[u8], changes: bool) {
        let batch = self.last();
        if let Some(earlier) = batch.pages.iter().rposition(|earlier| *earlier == Some(page)) {
            if changes {
                batch.entries[earlier * entry.len()..(earlier + 1) * entry.len()].copy_from_slice(entry);
                return;
            }
            batch.pages[earlier] = None;
        }
        let (pages, bytes) = (batch.pages.len(), batch.entries.len());
        assert_eq!(bytes, pages * entry.len(), "each of {pages} pages has an entry");
        batch.pages.push(Some(page));
        batch.entries.extend_from_slice(entry);
    }

    /// So many pages of a block have entries, the last ones in this batch; `entry` is the block's.
    pub(super) fn put_count(&mut self, block: BlockId, entry: BlockEntry) {
        self.last().block(block, entry).programmed = entry.programmed;
    }

    /// A block's own entry changes, after everything else until now.
    pub(super) fn put_block(&mut self, block: BlockId, entry: BlockEntry) {
        let batch = self.last();
        *batch.block(block, entry) = entry;
        batch.ended = true;
    }

    pub(super) fn forget(&mut self) {
        self.batches.clear();
    }

    /// Writes the batches in their order.
    ///
    /// # Errors
    /// The file's name and what its file system said. That batch and those after it stay, and can be written again.
    pub(super) fn settle(
        &mut self,
        files: &Files,
        unit_bytes: usize,
        lifeline: &Lifeline,
    ) -> Result<(), (&'static str, io::Error)> {
        let left = if seeded(Bug::SettleLeavesTheLast) { self.take_last(files.entry_bytes) } else { None };
        let mut written = 0;
        let mut result = Ok(());
        for batch in &mut self.batches {
            if seeded(Bug::RecordAfterPage) {
                let held = (batch.records_at, std::mem::take(&mut batch.records));
                (batch.records_at, batch.records) = std::mem::replace(&mut self.late, held);
            }
            result = batch.write(files, unit_bytes, lifeline);
            if result.is_err() {
                break;
            }
            batch.clear();
            written += 1;
        }
        // One is kept for its allocations.
        self.batches.drain(..written.min(self.batches.len().saturating_sub(1)));
        if let Some((page, entry)) = left {
            self.put_page(page, &entry, false);
        }
        result
    }

    /// The seeded bug [`Bug::SettleLeavesTheLast`]: the latest page's entry.
    fn take_last(&mut self, entry_bytes: usize) -> Option<(Ppn, Vec<u8>)> {
        let batch = self.batches.last_mut()?;
        let last = batch.pages.iter().rposition(Option::is_some)?;
        let page = batch.pages[last].take()?;
        if !batch.ended {
            batch.blocks.clear();
        }
        Some((page, batch.entries[last * entry_bytes..(last + 1) * entry_bytes].to_vec()))
    }
}

impl Batch {
    fn write(&self, files: &Files, unit_bytes: usize, lifeline: &Lifeline) -> Result<(), (&'static str, io::Error)> {
        let units: usize = self.runs.iter().map(|run| run.units as usize).sum();
        assert_eq!(units * unit_bytes, self.data.len(), "{units} units of {unit_bytes} bytes are to be written");
        if !self.records.is_empty() {
            lifeline.write_at(&files.records, &self.records, self.records_at).map_err(|error| ("records", error))?;
        }
        if seeded(Bug::EntryBeforeData) {
            self.write_entries(files, lifeline)?;
            self.write_data(files, unit_bytes, lifeline)?;
        } else {
            self.write_data(files, unit_bytes, lifeline)?;
            self.write_entries(files, lifeline)?;
        }
        for (block, entry) in &self.blocks {
            let bytes = entry.encode(files.seal, *block);
            let offset = HEADER + u64::from(block.0) * bytes.len() as u64;
            lifeline.write_at(&files.blocks, &bytes, offset).map_err(|error| ("blocks", error))?;
        }
        Ok(())
    }

    fn write_data(
        &self,
        files: &Files,
        unit_bytes: usize,
        lifeline: &Lifeline,
    ) -> Result<(), (&'static str, io::Error)> {
        for Run { first, units, at } in &self.runs {
            let bytes = &self.data[*at..at + *units as usize * unit_bytes];
            let offset = u64::from(first.0) * unit_bytes as u64;
            lifeline.write_at(&files.pages, bytes, offset).map_err(|error| ("pages", error))?;
        }
        Ok(())
    }

    fn write_entries(&self, files: &Files, lifeline: &Lifeline) -> Result<(), (&'static str, io::Error)> {
        let entry_bytes = files.entry_bytes;
        let mut at = 0;
        while at < self.pages.len() {
            let Some(first) = self.pages[at] else {
                at += 1;
                continue;
            };
            let follows = |n: usize| self.pages.get(at + n) == Some(&Some(first + n as u32));
            let count = (1..).find(|n| !follows(*n)).expect("the list ends");
            let bytes = &self.entries[at * entry_bytes..(at + count) * entry_bytes];
            let offset = u64::from(first.0) * entry_bytes as u64;
            lifeline.write_at(&files.oob, bytes, offset).map_err(|error| ("oob", error))?;
            at += count;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use super::super::entry::{BLOCK_BYTES, Seal};
    use super::super::folder::Folder;
    use super::*;

    fn files(dir: &std::path::Path) -> Files {
        let folder = Folder::open(dir).expect("a folder");
        let file = |name| folder.empty_file(name).expect("a file");
        let (pages, oob, blocks, records) = (file("pages"), file("oob"), file("blocks"), file("records"));
        Files { pages, oob, blocks, records, entry_bytes: 4, seal: Seal(3), folder }
    }

    fn read(file: &std::fs::File, offset: u64, bytes: usize) -> Vec<u8> {
        let mut found = vec![0; bytes];
        file.read_exact_at(&mut found, offset).expect("the bytes are there");
        found
    }

    #[test]
    fn the_latest_of_each_unit_and_page_is_what_is_found_and_what_is_kept() {
        let dir = tempfile::tempdir().expect("a directory");
        let files = files(dir.path());
        let mut behind = Behind::default();
        for (unit, byte) in [(4, 1), (5, 2), (9, 3), (5, 4)] {
            behind.put_unit(UnitId(unit), &[byte; 8]);
        }
        for (page, byte) in [(2, 1), (3, 1), (2, 2), (3, 2), (7, 1)] {
            behind.put_page(Ppn(page), &[byte; 4], false);
        }
        behind.put_page(Ppn(2), &[3; 4], true);
        let pages = &behind.batches[0].pages;
        assert_eq!(*pages, [None, None, Some(Ppn(2)), Some(Ppn(3)), Some(Ppn(7))], "changed where it is");
        assert_eq!(behind.unit(UnitId(5), 8), Some(&[4; 8][..]));
        assert_eq!(behind.unit(UnitId(4), 8), Some(&[1; 8][..]));
        assert_eq!(behind.unit(UnitId(6), 8), None);
        behind.settle(&files, 8, &Lifeline::default()).expect("a file takes it");
        assert!(behind.is_empty());
        assert_eq!(read(&files.pages, 32, 16), [[1; 8], [4; 8]].concat());
        assert_eq!(read(&files.pages, 72, 8), [3; 8]);
        assert_eq!(read(&files.oob, 8, 8), [[3; 4], [2; 4]].concat());
        assert_eq!(read(&files.oob, 28, 4), [1; 4]);
    }

    /// A file that takes nothing more stops a batch and all after it; when it takes something again they are written in order.
    #[test]
    fn what_a_full_file_system_does_not_take_stays_with_all_that_comes_after_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut files = files(dir.path());
        let entry = |erases, programmed| BlockEntry { erases, programmed, ..BlockEntry::default() };
        let mut behind = Behind::default();
        behind.put_unit(UnitId(0), &[1; 8]);
        behind.put_page(Ppn(0), &[1; 4], false);
        behind.put_count(BlockId(0), entry(0, 1));
        behind.put_block(BlockId(0), entry(1, 0));
        behind.put_unit(UnitId(0), &[2; 8]);
        behind.put_page(Ppn(0), &[2; 4], false);
        behind.records(0).extend([5; 24]);
        behind.put_count(BlockId(0), entry(1, 1));
        assert_eq!(behind.batches.len(), 2, "the block's change ends a batch");
        assert_eq!(behind.unit(UnitId(0), 8), Some(&[2; 8][..]));
        let full = std::fs::File::options().write(true).open("/dev/full").expect("it is always full");
        let records = std::mem::replace(&mut files.records, full);
        let (file, error) = behind.settle(&files, 8, &Lifeline::default()).expect_err("it is full");
        assert_eq!((file, error.kind()), ("records", io::ErrorKind::StorageFull));
        assert_eq!(read(&files.pages, 0, 8), [1; 8], "the batch before it is there, and nothing of this one");
        assert_eq!(read(&files.oob, 0, 4), [1; 4]);
        let block = || BlockEntry::decode(&read(&files.blocks, HEADER, BLOCK_BYTES), files.seal, BlockId(0));
        assert_eq!(block(), Ok(entry(1, 0)));
        assert_eq!(behind.unit(UnitId(0), 8), Some(&[2; 8][..]), "still found here");
        drop(std::mem::replace(&mut files.records, records));
        behind.settle(&files, 8, &Lifeline::default()).expect("there is space");
        assert!(behind.is_empty());
        assert_eq!((read(&files.pages, 0, 8), read(&files.records, 0, 24)), (vec![2; 8], vec![5; 24]));
        let block = BlockEntry::decode(&read(&files.blocks, HEADER, BLOCK_BYTES), files.seal, BlockId(0));
        assert_eq!(block, Ok(entry(1, 1)));
    }
}

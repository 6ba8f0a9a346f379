//! The log of metadata records: words that belong to a page's units, appended before the page counts as written.
//!
//! An entry has all records of one page. The page's own entry in `oob` has the check of that log entry, so a page gets its own
//! records or none: not those of an earlier life, and not what damage or a copy of another place has put there. The log knows
//! which of its entries pages still have, and is written anew with these when most of it is dead.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use super::entry::{Seal, word};
use super::files::provide;
use crate::Ppn;

/// Bytes of an entry before its records: check, page, erases of its block, words that follow.
const HEAD: usize = 16;

/// Longest entry that is believed, in words.
const WORDS_MAX: u32 = 1 << 24;

/// Space kept ready behind the end of the log, so that a full host file system shows before records must be written.
const SLACK: u64 = 1 << 20;

/// The log is written anew when so much of it is dead, and at least as much as is alive.
const DEAD_MAX: u64 = 4 << 20;

/// The records of a page: the unit's number in the page and its words, for each unit that has any.
pub(super) type PageRecords = Vec<(u32, Box<[u64]>)>;

/// Where a page's entry is in the log.
#[derive(Clone, Copy, Debug)]
struct Place {
    at: u64,
    bytes: u64,
    check: u32,
    units: u64,
}

/// What a log holds, by page; of a page that was written in several lives of its block, all of them.
pub(super) struct Found {
    bytes: Vec<u8>,
    entries: HashMap<Ppn, Vec<Range<usize>>>,
}

/// The log's end, and what of it is alive.
#[derive(Default)]
pub(super) struct RecordLog {
    end: u64,
    live: BTreeMap<Ppn, Place>,
    live_bytes: u64,
    /// The log is not written anew before it is this long, because there was no space for it.
    not_before: u64,
}

/// Appends the entry of a page to `to`; returns its check.
fn encode<'a>(
    seal: Seal,
    page: Ppn,
    erases: u32,
    records: impl Iterator<Item = (u32, &'a [u64])>,
    to: &mut Vec<u8>,
) -> u32 {
    let start = to.len();
    to.extend([0; 4]);
    to.extend(page.0.to_le_bytes());
    to.extend(erases.to_le_bytes());
    to.extend([0; 4]);
    for (index, words) in records {
        assert!(!words.is_empty(), "unit {index} of page {page} has a record without words");
        to.extend((u64::from(index) << 32 | words.len() as u64).to_le_bytes());
        for word in words {
            to.extend(word.to_le_bytes());
        }
    }
    let words = (to.len() - start - HEAD) / 8;
    assert!(words <= WORDS_MAX as usize, "page {page} has {words} words of records");
    to[start + 12..start + HEAD].copy_from_slice(&(words as u32).to_le_bytes());
    let check = seal.records(&to[start + 4..]);
    to[start..start + 4].copy_from_slice(&check.to_le_bytes());
    check
}

impl Found {
    /// Reads a log. An entry that does not agree with its check ends it: its page was never written.
    pub(super) fn read(file: &File, seal: Seal) -> io::Result<Found> {
        let length = file.metadata()?.len();
        let mut bytes = vec![0; usize::try_from(length).map_err(|_| io::ErrorKind::InvalidData)?];
        file.read_exact_at(&mut bytes, 0)?;
        let mut entries: HashMap<Ppn, Vec<Range<usize>>> = HashMap::new();
        let mut at = 0;
        while let Some(head) = bytes.get(at..at + HEAD) {
            let words = word(head, 12);
            if words == 0 || words > WORDS_MAX {
                break;
            }
            let end = at + HEAD + words as usize * 8;
            let Some(entry) = bytes.get(at..end) else { break };
            if word(entry, 0) != seal.records(&entry[4..]) {
                break;
            }
            entries.entry(Ppn(word(entry, 4))).or_default().push(at..end);
            at = end;
        }
        bytes.truncate(at);
        Ok(Found { bytes, entries })
    }

    /// The log that goes on behind what was found, of which nothing is alive yet.
    pub(super) fn log(&self) -> RecordLog {
        RecordLog { end: self.bytes.len() as u64, ..RecordLog::default() }
    }

    /// The records of a page as its entry knows them: of these erases of its block, with this check, of these units, a bit
    /// each. They are alive in `log` then.
    pub(super) fn take(
        &self,
        page: Ppn,
        erases: u32,
        (check, units): (u32, u64),
        log: &mut RecordLog,
    ) -> Option<PageRecords> {
        let entries = self.entries.get(&page)?;
        let of = |range: &&Range<usize>| {
            let entry = &self.bytes[(*range).clone()];
            word(entry, 0) == check && word(entry, 8) == erases
        };
        let range = entries.iter().rev().find(of)?;
        let body = &self.bytes[range.start + HEAD..range.end];
        let mut words = body.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
        let mut records = PageRecords::new();
        let mut found = 0;
        while let Some(head) = words.next() {
            let (index, count) = ((head >> 32) as u32, head as u32 as usize);
            let record: Box<[u64]> = words.by_ref().take(count).collect();
            if record.len() != count || count == 0 || index >= u64::BITS {
                return None;
            }
            found |= 1 << index;
            records.push((index, record));
        }
        if found != units {
            return None;
        }
        log.keep(page, Place { at: range.start as u64, bytes: range.len() as u64, check, units });
        Some(records)
    }
}

impl RecordLog {
    fn keep(&mut self, page: Ppn, place: Place) {
        self.live_bytes += place.bytes;
        if let Some(before) = self.live.insert(page, place) {
            self.live_bytes -= before.bytes;
        }
    }

    /// Where the next entry begins.
    pub(super) const fn end(&self) -> u64 {
        self.end
    }

    /// The check and the units of a page's records, if it has any.
    pub(super) fn of(&self, page: Ppn) -> Option<(u32, u64)> {
        self.live.get(&page).map(|place| (place.check, place.units))
    }

    /// A page gets records, which go to the log's end: their entry is appended to `to`. Returns its check and the units that have
    /// records.
    pub(super) fn append<'a>(
        &mut self,
        seal: Seal,
        page: Ppn,
        erases: u32,
        records: impl Iterator<Item = (u32, &'a [u64])>,
        to: &mut Vec<u8>,
    ) -> (u32, u64) {
        let start = to.len();
        let mut units = 0;
        let check = encode(seal, page, erases, records.inspect(|(index, _)| units |= 1 << index), to);
        let bytes = (to.len() - start) as u64;
        self.keep(page, Place { at: self.end, bytes, check, units });
        self.end += bytes;
        (check, units)
    }

    /// The pages of a block are erased, and their records are dead.
    pub(super) fn forget(&mut self, pages: Range<Ppn>) {
        while let Some((page, place)) = self.live.range(pages.clone()).next() {
            let (page, bytes) = (*page, place.bytes);
            self.live.remove(&page);
            self.live_bytes -= bytes;
        }
    }

    /// Makes sure that there is space for more; `provided` is up to where there is.
    pub(super) fn provide(&self, file: &File, provided: &mut u64) -> io::Result<()> {
        if *provided < self.end + SLACK / 2 {
            provide(file, self.end, SLACK)?;
            *provided = self.end + SLACK;
        }
        Ok(())
    }

    /// Whether some of the log is dead.
    pub(super) const fn has_dead(&self) -> bool {
        self.end > self.live_bytes
    }

    /// Whether most of the log is dead and it is worth writing anew.
    pub(super) fn is_stale(&self) -> bool {
        self.end - self.live_bytes > DEAD_MAX.max(self.live_bytes) && self.end >= self.not_before
    }

    /// It could not be written anew: that is tried again when it is longer.
    pub(super) const fn try_later(&mut self) {
        self.not_before = self.end + DEAD_MAX;
    }

    /// Writes what is alive into an empty file, whose log is returned.
    pub(super) fn rewrite(&self, from: &File, to: &File) -> io::Result<RecordLog> {
        let mut bytes = Vec::with_capacity(self.live_bytes as usize);
        let mut new = RecordLog::default();
        for (page, place) in &self.live {
            let start = bytes.len();
            bytes.resize(start + place.bytes as usize, 0);
            from.read_exact_at(&mut bytes[start..], place.at)?;
            if word(&bytes[start..], 0) != place.check {
                let what = format!("the records of page {page} are not where they were written");
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
            new.keep(*page, Place { at: start as u64, ..*place });
        }
        to.write_all_at(&bytes, 0)?;
        new.end = bytes.len() as u64;
        Ok(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEAL: Seal = Seal(5);

    /// A page's records in several lives of its block: the entry's check says which are meant, in whatever order they stand, and
    /// what is not alive is not written anew.
    #[test]
    fn a_page_gets_the_records_that_its_entry_means_or_none() {
        let file = tempfile::tempfile().expect("a file");
        let mut log = RecordLog::default();
        let mut bytes = Vec::new();
        let mut checks = Vec::new();
        for (page, erases, word) in [(7, 0, 10), (7, 1, 11), (8, 0, 12), (7, 1, 13)] {
            let words = [word, word + 100];
            let records = [(0, &words[..]), (3, &words[1..])];
            checks.push(log.append(SEAL, Ppn(page), erases, records.into_iter(), &mut bytes));
        }
        file.write_all_at(&bytes, 0).expect("written");
        file.write_all_at(&[1; 40], bytes.len() as u64).expect("written");
        assert!(checks.iter().all(|(_, units)| *units == 9));
        assert_eq!(log.of(Ppn(7)), Some(checks[3]));
        let found = Found::read(&file, SEAL).expect("a log");
        let mut again = found.log();
        assert_eq!(again.end(), bytes.len() as u64);
        let records = |word: u64| vec![(0, [word, word + 100].into()), (3, [word + 100].into())];
        assert_eq!(found.take(Ppn(7), 1, checks[1], &mut again), Some(records(11)), "an earlier one of this life");
        assert_eq!(found.take(Ppn(7), 1, checks[3], &mut again), Some(records(13)));
        assert_eq!(found.take(Ppn(7), 0, checks[3], &mut again), None, "of another life");
        assert_eq!(found.take(Ppn(8), 0, (checks[2].0, 1), &mut again), None, "of other units");
        assert_eq!(found.take(Ppn(8), 0, checks[0], &mut again), None, "of another page");
        assert!(Found::read(&file, Seal(6)).expect("a log").entries.is_empty(), "another image's");

        assert!(again.has_dead());
        let new = tempfile::tempfile().expect("a file");
        let mut short = again.rewrite(&file, &new).expect("written");
        assert!(!short.has_dead());
        let found = Found::read(&new, SEAL).expect("a log");
        assert_eq!(found.take(Ppn(7), 1, checks[3], &mut found.log()), Some(records(13)));
        assert_eq!(found.take(Ppn(7), 1, checks[1], &mut found.log()), None, "it was dead");
        short.forget(Ppn(7)..Ppn(8));
        assert!(short.of(Ppn(7)).is_none() && short.live_bytes == 0);
    }
}

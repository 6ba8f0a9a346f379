//! The log of metadata records: words that belong to a physical unit, appended before the unit's page counts as written.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use super::entry::{check_of, word};
use super::files::provide;
use super::lifeline::Lifeline;
use crate::UnitId;

/// Bytes of an entry before its words: check, unit, erases of the unit's block, number of words.
const HEAD: usize = 16;

/// Longest record that is believed, in words.
const WORDS_MAX: u32 = 1 << 20;

/// Space kept ready behind the end of the log, so that a full host file system shows before a record must be written.
const SLACK: u64 = 1 << 20;

/// The log is written anew when it is this long and mostly dead.
const LONG: u64 = 64 << 20;

/// Words by unit and by erases of its block.
pub(super) type Found = BTreeMap<(UnitId, u32), Box<[u64]>>;

/// Where the log ends.
pub(super) struct RecordLog {
    end: u64,
    /// Bytes that were alive when the log was last written anew.
    base: u64,
}

fn encode(unit: UnitId, erases: u32, words: &[u64], to: &mut Vec<u8>) {
    let start = to.len();
    to.extend([0; 4]);
    to.extend(unit.0.to_le_bytes());
    to.extend(erases.to_le_bytes());
    to.extend((words.len() as u32).to_le_bytes());
    for word in words {
        to.extend(word.to_le_bytes());
    }
    let check = check_of(&to[start + 4..], 0);
    to[start..start + 4].copy_from_slice(&check.to_le_bytes());
}

impl RecordLog {
    /// Reads a log. An entry that does not agree with its check ends it: its page was never written.
    pub(super) fn read(file: &File) -> io::Result<(RecordLog, Found)> {
        let length = file.metadata()?.len();
        let mut bytes = vec![0; usize::try_from(length).map_err(|_| io::ErrorKind::InvalidData)?];
        file.read_exact_at(&mut bytes, 0)?;
        let mut found = Found::new();
        let mut at = 0;
        while let Some(head) = bytes.get(at..at + HEAD) {
            let count = word(head, 12);
            if count == 0 || count > WORDS_MAX {
                break;
            }
            let Some(entry) = bytes.get(at..at + HEAD + count as usize * 8) else { break };
            if word(entry, 0) != check_of(&entry[4..], 0) {
                break;
            }
            let words = entry[HEAD..].chunks_exact(8);
            let words = words.map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
            found.insert((UnitId(word(entry, 4)), word(entry, 8)), words.collect());
            at += entry.len();
        }
        let end = at as u64;
        Ok((RecordLog { end, base: end }, found))
    }

    /// Appends the words of a unit.
    pub(super) fn append(
        &mut self,
        file: &File,
        unit: UnitId,
        erases: u32,
        words: &[u64],
        lifeline: &Lifeline,
    ) -> io::Result<()> {
        assert!(!words.is_empty() && words.len() <= WORDS_MAX as usize, "unit {unit} has {} words", words.len());
        let mut bytes = Vec::new();
        encode(unit, erases, words, &mut bytes);
        lifeline.write_at(file, &bytes, self.end)?;
        self.end += bytes.len() as u64;
        Ok(())
    }

    /// Makes sure that there is space for more; `provided` is up to where there is.
    pub(super) fn provide(&self, file: &File, provided: &mut u64) -> io::Result<()> {
        if *provided < self.end + SLACK / 2 {
            provide(file, self.end, SLACK)?;
            *provided = self.end + SLACK;
        }
        Ok(())
    }

    /// Whether most of the log is dead and it is worth writing anew.
    pub(super) fn is_stale(&self) -> bool {
        self.end > LONG + 2 * self.base
    }

    /// Writes a log of what is alive into an empty file.
    pub(super) fn rewrite<'a>(
        file: &File,
        alive: impl Iterator<Item = (UnitId, u32, Cow<'a, [u64]>)>,
    ) -> io::Result<RecordLog> {
        let mut bytes = Vec::new();
        for (unit, erases, words) in alive {
            encode(unit, erases, &words, &mut bytes);
        }
        file.write_all_at(&bytes, 0)?;
        let end = bytes.len() as u64;
        Ok(RecordLog { end, base: end })
    }
}

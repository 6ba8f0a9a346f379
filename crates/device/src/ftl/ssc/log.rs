//! The log of map changes that lists of owners do not tell: blocks that were evicted, dropped or cleaned (Getting Real, 3.3.2).
//!
//! Lists say which copies of a block flash has, and by the numbers of their programs which is the newest. A *note* says the rest:
//!
//! - copies of the block from before program number `floor` count for nothing;
//! - and, if it is a note of a cleaned block, the copy of number `floor` is clean.
//!
//! Once true, a note stays true, so recovery may believe any that it finds, in whatever order. New notes are in SRAM until a flush,
//! an erase that depends on them, or as many as a unit takes. Then they go to *log units*: units of metadata, which are mapped, moved
//! and listed as all others are.
//!
//! There is a limited number of log units. To write one when all are in use, the log takes the one with the fewest notes that are
//! still needed, and writes these again with the new ones. A note is needed while flash has an older copy of its block, so there are
//! never more needed notes than units of flash; with room for twice as many a log unit is at most half needed.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use ssdlab_base::saved;
use ssdlab_flash::UnitId;

/// The first half of a log unit's first word.
const MAGIC: u64 = 0x0043_5353;

/// Words of a log unit before its notes.
const HEADER: usize = 2;

/// Words of a note.
const NOTE_WORDS: usize = 2;

/// The home of a note that is in SRAM alone.
pub(super) const IN_SRAM: u32 = u32::MAX;

/// A note as it is on flash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) lpn: u32,
    /// Copies that programs of lower numbers wrote count for nothing.
    pub(super) floor: u64,
    /// The copy of that number is clean.
    pub(super) clean: bool,
}

/// What is remembered of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fact {
    /// The log unit that has it; [`IN_SRAM`] if none.
    pub(super) home: u32,
    /// `None` while the block is absent: no copy that there is counts.
    pub(super) floor: Option<u64>,
    pub(super) clean: bool,
}

/// A fact in a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Remembered {
    pub(super) lpn: u32,
    pub(super) home: u32,
    pub(super) floor: Option<u64>,
    pub(super) clean: bool,
}

/// A log unit.
#[derive(Clone, Debug, Default)]
pub(super) struct LogUnit {
    /// Where it is; [`UnitId::NONE`] if it is not in use.
    pub(super) unit: UnitId,
    /// Blocks that it has notes of.
    pub(super) lpns: Vec<u32>,
    /// Those whose fact has its home there.
    live: u32,
}

/// The log.
pub(super) struct Log {
    pub(super) units: Vec<LogUnit>,
    /// By block, what notes say of it. A checkpoint asks for each block of the map.
    pub(super) facts: FxHashMap<u32, Fact>,
    /// Blocks with a fact in SRAM alone.
    pub(super) in_sram: BTreeSet<u32>,
    /// Log units in use, by how many facts have their home there.
    by_live: BTreeSet<(u32, u32)>,
    per_unit: usize,
    /// The number that the next log unit gets, if it is not in use: numbers take turns, as planes do by them.
    next: usize,
}

saved!(Remembered: lpn, home, floor, clean);

impl Note {
    /// Notes that a unit of so many bytes takes.
    pub(super) const fn per_unit(unit_bytes: u32) -> usize {
        (unit_bytes as usize / 8 - HEADER) / NOTE_WORDS
    }

    /// The words of a log unit.
    pub(super) fn encode(notes: &[Note]) -> Box<[u64]> {
        let mut words = vec![0, 0];
        for note in notes {
            words.extend([u64::from(note.clean) << 32 | u64::from(note.lpn), note.floor]);
        }
        words[0] = MAGIC << 32 | notes.len() as u64;
        words[1] = checksum(&words[HEADER..]);
        words.into()
    }

    /// The notes in the words of a log unit; `None` where they are none.
    pub(super) fn decode(words: &[u64]) -> Option<Vec<Note>> {
        let (header, rest) = words.split_at_checked(HEADER)?;
        let (pairs, behind) = rest.as_chunks::<NOTE_WORDS>();
        if !behind.is_empty() || header[0] != MAGIC << 32 | pairs.len() as u64 || header[1] != checksum(rest) {
            return None;
        }
        let note = |[block, floor]: &[u64; NOTE_WORDS]| {
            let clean = block >> 32;
            (clean <= 1).then_some(Note { lpn: *block as u32, floor: *floor, clean: clean == 1 })
        };
        pairs.iter().map(note).collect()
    }
}

/// The FNV-1a hash of words.
fn checksum(words: &[u64]) -> u64 {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

impl Log {
    /// Log units that a flash of so many units has to have.
    pub(super) fn units_for(flash_units: u64, unit_bytes: u32) -> u32 {
        (2 * flash_units).div_ceil(Note::per_unit(unit_bytes) as u64) as u32 + 3
    }

    pub(super) fn new(flash_units: u64, unit_bytes: u32) -> Log {
        let unused = LogUnit { unit: UnitId::NONE, ..LogUnit::default() };
        Log {
            units: vec![unused; Log::units_for(flash_units, unit_bytes) as usize],
            facts: FxHashMap::default(),
            in_sram: BTreeSet::new(),
            by_live: BTreeSet::new(),
            per_unit: Note::per_unit(unit_bytes),
            next: 0,
        }
    }

    /// Nothing is remembered.
    pub(super) fn clear(&mut self) {
        for unit in &mut self.units {
            *unit = LogUnit { unit: UnitId::NONE, ..LogUnit::default() };
        }
        self.facts.clear();
        self.in_sram.clear();
        self.by_live.clear();
        self.next = 0;
    }

    /// Notes that a log unit takes.
    pub(super) const fn per_unit(&self) -> usize {
        self.per_unit
    }

    fn leave_home(&mut self, lpn: u32, home: u32) {
        if home == IN_SRAM {
            let was_there = self.in_sram.remove(&lpn);
            assert!(was_there, "the note of block {lpn} is in SRAM alone, and not in its list");
            return;
        }
        let live = self.units[home as usize].live;
        assert!(live > 0, "log unit {home} has the note of block {lpn}, and none that counts");
        self.units[home as usize].live = live - 1;
        if self.by_live.remove(&(live, home)) {
            self.by_live.insert((live - 1, home));
        }
    }

    /// Remembers something new of a block, in SRAM; what was remembered before is a part of it.
    pub(super) fn note(&mut self, lpn: u32, floor: Option<u64>, clean: bool) {
        assert!(!clean || floor.is_some(), "block {lpn} is clean in a copy that no number names");
        if let Some(old) = self.facts.insert(lpn, Fact { home: IN_SRAM, floor, clean }) {
            self.leave_home(lpn, old.home);
        }
        self.in_sram.insert(lpn);
    }

    /// Nothing needs to be remembered of a block.
    pub(super) fn forget(&mut self, lpn: u32) {
        if let Some(fact) = self.facts.remove(&lpn) {
            self.leave_home(lpn, fact.home);
        }
    }

    /// A block that was absent is written by program number `since`.
    pub(super) fn revived(&mut self, lpn: u32, since: u64) {
        if let Some(fact) = self.facts.get_mut(&lpn)
            && fact.floor.is_none()
        {
            fact.floor = Some(since);
        }
    }

    /// A fact has a log unit as its home from now on.
    pub(super) fn settle(&mut self, lpn: u32, home: u32) {
        let fact = self.facts.get_mut(&lpn).expect("what is written is remembered");
        let before = std::mem::replace(&mut fact.home, home);
        self.leave_home(lpn, before);
        self.units[home as usize].live += 1;
    }

    /// The log unit with the fewest needed notes, if all but one are in use.
    pub(super) fn to_empty(&self) -> Option<u32> {
        if self.by_live.len() + 1 < self.units.len() {
            return None;
        }
        self.by_live.first().map(|(_, unit)| *unit)
    }

    /// A log unit in use without a note that is needed.
    pub(super) fn first_told(&self) -> Option<u32> {
        self.by_live.first().filter(|(live, _)| *live == 0).map(|(_, unit)| *unit)
    }

    /// Whether all log units are in use.
    pub(super) fn all_in_use(&self) -> bool {
        self.by_live.len() == self.units.len()
    }

    /// A note leaves its log unit for SRAM.
    pub(super) fn back_to_sram(&mut self, lpn: u32) {
        let fact = self.facts.get_mut(&lpn).expect("what is in a log unit is remembered");
        let before = std::mem::replace(&mut fact.home, IN_SRAM);
        self.leave_home(lpn, before);
        self.in_sram.insert(lpn);
    }

    /// A log unit that is not in use.
    pub(super) fn unused(&self) -> u32 {
        let numbers = (self.next..self.units.len()).chain(0..self.next);
        let unused = numbers.into_iter().find(|number| self.units[*number].unit == UnitId::NONE);
        unused.expect("one log unit is not in use") as u32
    }

    /// A log unit is written to flash.
    pub(super) fn begin(&mut self, number: u32, unit: UnitId, lpns: Vec<u32>) {
        assert_ne!(unit, UnitId::NONE, "log unit {number} goes nowhere");
        assert!(lpns.len() <= self.per_unit, "log unit {number} has notes on {} blocks", lpns.len());
        let log_unit = &mut self.units[number as usize];
        assert_eq!(log_unit.unit, UnitId::NONE, "log unit {number} is in use");
        (log_unit.unit, log_unit.lpns) = (unit, lpns);
        self.next = (number as usize + 1) % self.units.len();
        let log_unit = &self.units[number as usize];
        let live = log_unit.live;
        self.by_live.insert((live, number));
    }

    /// A log unit is needed no more; returns where it was.
    pub(super) fn end(&mut self, number: u32) -> UnitId {
        let log_unit = &mut self.units[number as usize];
        assert_eq!(log_unit.live, 0, "log unit {number} is given up, and has notes that count");
        self.by_live.remove(&(0, number));
        log_unit.lpns.clear();
        std::mem::replace(&mut log_unit.unit, UnitId::NONE)
    }

    /// Recovery decided on a fact, which is in log unit `home` or nowhere that counts.
    pub(super) fn decided(&mut self, lpn: u32, fact: Fact) {
        if fact.home == IN_SRAM {
            self.in_sram.insert(lpn);
        } else {
            let live = self.units[fact.home as usize].live;
            self.units[fact.home as usize].live += 1;
            if self.by_live.remove(&(live, fact.home)) {
                self.by_live.insert((live + 1, fact.home));
            }
        }
        let before = self.facts.insert(lpn, fact);
        assert_eq!(before, None, "block {lpn} is decided on twice");
    }

    /// All facts, for a snapshot.
    pub(super) fn remembered(&self) -> Vec<Remembered> {
        let of = |(lpn, fact): (&u32, &Fact)| Remembered {
            lpn: *lpn,
            home: fact.home,
            floor: fact.floor,
            clean: fact.clean,
        };
        let mut all: Vec<Remembered> = self.facts.iter().map(of).collect();
        all.sort_unstable_by_key(|fact| fact.lpn);
        all
    }

    /// The log unit in use with the fewest needed notes.
    pub(super) fn least(&self) -> Option<u32> {
        self.by_live.first().map(|(_, number)| *number)
    }

    /// How many log units are in use.
    pub(super) fn in_use_count(&self) -> usize {
        self.by_live.len()
    }

    /// Log units in use without a note that counts, and the one with the fewest.
    pub(super) fn hardly_needed(&self) -> Vec<u32> {
        let without = self.by_live.iter().take_while(|(live, _)| *live == 0).count();
        self.by_live.iter().take(without + 1).map(|(_, number)| *number).collect()
    }

    /// Whether all counts agree.
    pub(super) fn agrees(&self) -> bool {
        let mut live = vec![0; self.units.len()];
        let mut in_sram = 0;
        for fact in self.facts.values() {
            match fact.home {
                IN_SRAM => in_sram += 1,
                home => live[home as usize] += 1,
            }
        }
        in_sram == self.in_sram.len() && self.units.iter().zip(live).all(|(unit, live)| unit.live == live)
    }
}

/// Any bytes as the words of a log unit, as they are and with the header that they would need: they are refused, or notes that are
/// written as the same words. A fuzz target, and a test, give it bytes.
///
/// # Panics
/// They are notes that are written otherwise.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn notes_from_bytes(bytes: &[u8]) {
    let (words, _) = bytes.as_chunks::<8>();
    let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let header = [MAGIC << 32 | (words.len() / NOTE_WORDS) as u64, checksum(&words)];
    for words in [words.clone(), [&header[..], &words].concat()] {
        if let Some(notes) = Note::decode(&words) {
            assert_eq!(*Note::encode(&notes), words[..], "{notes:?} came from other words");
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn notes_come_back_from_their_words(notes in prop::collection::vec(any::<(u32, u64, bool)>(), 0..40)) {
            let notes: Vec<Note> = notes.into_iter().map(|(lpn, floor, clean)| Note { lpn, floor, clean }).collect();
            prop_assert_eq!(Note::decode(&Note::encode(&notes)), Some(notes));
        }

        #[test]
        fn a_word_that_changed_makes_them_none(
            notes in prop::collection::vec(any::<(u32, u64, bool)>(), 0..40),
            word: prop::sample::Index,
            bit in 0_u32..64,
        ) {
            let notes: Vec<Note> = notes.into_iter().map(|(lpn, floor, clean)| Note { lpn, floor, clean }).collect();
            let mut words = Note::encode(&notes);
            words[word.index(notes.len() * 2 + 2)] ^= 1 << bit;
            prop_assert_eq!(Note::decode(&words), None);
        }

        #[test]
        fn any_words_are_refused(words in prop::collection::vec(any::<u64>(), 0..40)) {
            prop_assert_eq!(Note::decode(&words), None);
        }
    }

    #[test]
    fn a_log_unit_takes_as_many_notes_as_it_says() {
        for unit_bytes in [512, 1024, 4096, 32_768] {
            let notes = vec![Note::default(); Note::per_unit(unit_bytes)];
            assert!(Note::encode(&notes).len() * 8 <= unit_bytes as usize, "units of {unit_bytes}");
        }
    }
}

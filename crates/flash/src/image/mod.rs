//! Chips whose contents are kept in files: what a served drive stands on.
//!
//! An image is a directory: `pages` holds data by physical page, `oob` an entry a page (how far its program got, LPNs,
//! sequence number, checks of the data and of its records), `blocks` a header and an entry a block, `records` the words of metadata
//! units. The files are sparse; a block's space is taken when it is opened and given back when it is erased and
//! not wanted again soon.
//!
//! **Crashes.** Changes are written in the order in which they happen on the chips ([`behind`]), so a process that is killed at any
//! instruction leaves what a power cut would leave: a program or an erase that was begun and did not end is torn. Nothing else is
//! saved at the end, and nothing else is read at the start. No entry lies across a page boundary of its file, where the kernel
//! cuts the last write of a killed process short. What happened since the last [`Image::settle`] may not be in
//! the files yet, as if power had gone before it: a caller that tells of it settles first. This holds for the end of
//! the process, not for that of the host: what its kernel had not written to disk is lost with it.
//!
//! **A full disk.** What the host's file system does not take stays in memory, with all that came after it, and
//! [`Image::settle`] says so: no answer may tell of it. The files stay the moment that they are. Every settle tries again, and with
//! space again everything gets into the files. Meanwhile no block is opened ([`Image::provide`]).
//!
//! **Damage.** Everything that is read is checked: the header; each entry of a block and of a page, by a check over its bytes, its
//! place and the image's own number; the records of a page, by the check that the page's entry has of them; data, by the check of
//! each unit in its page's entry. A block's entry counts the pages that have entries, so an entry that is gone, or replaced by one
//! of an earlier life of the block, shows too; an erased block loses the entry of its first page, so an earlier entry of the block
//! counts in vain. Damaged entries are refused when the image is opened; damaged data is an error for
//! who reads it, and [`Image::take_damage`] names its page. Only files as a whole from an earlier moment of the same image, all four
//! of them, are taken for what they say.

mod behind;
mod damage;
mod entry;
mod files;
mod folder;
mod lifeline;
mod records;
pub mod seeded;
mod space;

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::array::HugeArray;
use crate::contents::Oob;
use crate::{Block, BlockId, Geometry, Lpn, Origin, Ppn, UnitId};

use behind::Behind;
use damage::Damages;
pub use damage::{Damage, DamageFound};
use entry::{BLOCK_BYTES, BlockEntry, PageEntry, PageState, moved, unit_check};
use files::{Files, HEADER, data_from, give_back};
pub use files::{ImageError, lock};
pub use folder::Folder;
pub use lifeline::Lifeline;
use records::{Found, RecordLog};
use space::{Space, is_full};

/// The chips' files, open and locked.
pub struct Image {
    files: Files,
    fresh: bool,
    geometry: Geometry,
    units_per_page: u32,
    origins: bool,
    unit_bytes: u32,
    /// The check of each unit's data, by physical unit: of what is written and of what is in flight.
    checks: HugeArray<u32>,
    log: RecordLog,
    /// Pages of each block that have entries since its last erase.
    programmed: Vec<u32>,
    space: RefCell<Space>,
    behind: Behind,
    /// Blocks that stand in another place of their plane in a superblock.
    substitutes: BTreeMap<BlockId, u32>,
    lifeline: Lifeline,
    damages: RefCell<Damages>,
    /// A file cannot be written, whether or not there is space. No success is reported again.
    broken: Option<String>,
    /// The host's file system has no space for what is behind.
    full: bool,
    scratch: Vec<u8>,
    /// A unit that is being copied.
    unit: Vec<u8>,
}

/// What an image tells of the chips' state when it is opened.
pub(crate) struct Loaded {
    pub(crate) blocks: Vec<Block>,
    /// Pages whose program was cut or failed.
    pub(crate) unreadable: Vec<Ppn>,
    /// Blocks that stand in another block's place in a superblock.
    pub(crate) substitutes: Vec<(BlockId, u32)>,
}

impl Image {
    /// Opens the image in `dir`, or makes a new one where there is none, for chips of `geometry` with `units_per_page`
    /// mapping units in a page, whose OOB areas have an [`Origin`] for each unit if `origins`. It is locked until it is
    /// dropped.
    pub fn open(dir: &Path, geometry: &Geometry, units_per_page: u32, origins: bool) -> Result<Image, ImageError> {
        let (files, fresh) = Files::open(dir, geometry, units_per_page, origins)?;
        Ok(Image {
            files,
            fresh,
            geometry: *geometry,
            units_per_page,
            origins,
            unit_bytes: geometry.page_bytes / units_per_page,
            checks: HugeArray::new((geometry.pages() * u64::from(units_per_page)) as usize),
            log: RecordLog::default(),
            programmed: vec![0; geometry.blocks() as usize],
            space: RefCell::new(Space {
                provided: vec![false; geometry.blocks() as usize],
                held: VecDeque::new(),
                records: 0,
                full: false,
                refused: false,
            }),
            behind: Behind::default(),
            substitutes: BTreeMap::new(),
            lifeline: Lifeline::default(),
            damages: RefCell::default(),
            broken: None,
            full: false,
            scratch: Vec::new(),
            unit: Vec::new(),
        })
    }

    /// Bytes of memory that [`Image::open`] takes.
    pub(crate) fn simulator_bytes(geometry: &Geometry, units_per_page: u32) -> u64 {
        HugeArray::<u32>::bytes_of(geometry.pages() * u64::from(units_per_page)) + u64::from(geometry.blocks()) * 5
    }

    /// The folder that it is in.
    pub const fn folder(&self) -> &Folder {
        &self.files.folder
    }

    /// Whether OOB areas have origins.
    pub(crate) const fn keeps_origins(&self) -> bool {
        self.origins
    }

    /// Whether the image was made just now.
    pub const fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// Mapping units in a page.
    pub const fn units_per_page(&self) -> u32 {
        self.units_per_page
    }

    /// Why the image's files can no longer be trusted to take what they are given, if so.
    pub fn broken(&self) -> Option<&str> {
        self.broken.as_deref()
    }

    /// Damaged pages that were found since the last call. Each page is named once until its block is erased, and only so many;
    /// [`Image::damaged_pages`] counts on.
    pub fn take_damage(&self) -> Vec<Damage> {
        self.damages.borrow_mut().take()
    }

    /// Damaged pages that were found since the image was opened.
    pub fn damaged_pages(&self) -> u64 {
        self.damages.borrow().count()
    }

    /// Bytes that the files take on the host's file system.
    pub fn bytes_on_disk(&self) -> u64 {
        use std::os::unix::fs::MetadataExt as _;
        let files = [&self.files.pages, &self.files.oob, &self.files.blocks, &self.files.records];
        files.iter().map(|file| file.metadata().map_or(0, |metadata| metadata.blocks() * 512)).sum()
    }

    /// A new image: marks its factory bad blocks, and is whole from then on.
    pub(crate) fn finish(&mut self, bad: impl Iterator<Item = BlockId>) -> Result<(), ImageError> {
        let mut blocks = vec![BlockEntry::default(); self.geometry.blocks() as usize];
        for block in bad {
            blocks[block.index()].bad = true;
        }
        let seal = self.files.seal;
        let entry = |(number, entry): (u32, BlockEntry)| entry.encode(seal, BlockId(number));
        let table: Vec<u8> = (0..).zip(blocks).flat_map(entry).collect();
        let path = || self.files.folder.path().join("blocks");
        let written = self.files.blocks.write_all_at(&table, HEADER);
        written.map_err(|error| ImageError::Io { path: path(), error })?;
        self.files.finish()
    }

    // ---- what is read at the start ----

    /// Reads the state of all chips into `oob`.
    pub(crate) fn load(&mut self, oob: &mut Oob) -> Result<Loaded, ImageError> {
        let io = |name: &'static str, files: &Files| {
            let path = files.folder.path().join(name);
            move |error| ImageError::Io { path, error }
        };
        let seal = self.files.seal;
        let records = Found::read(&self.files.records, seal).map_err(io("records", &self.files))?;
        self.log = records.log();
        let blocks = self.geometry.blocks();
        let mut table = vec![0; blocks as usize * BLOCK_BYTES];
        self.files.blocks.read_exact_at(&mut table, HEADER).map_err(io("blocks", &self.files))?;
        let mut loaded =
            Loaded { blocks: Vec::with_capacity(blocks as usize), unreadable: Vec::new(), substitutes: Vec::new() };
        // A large drive has few entries at first: what was never written is a hole of the file, and is not read.
        let mut data_at = 0;
        for (block, bytes) in (0..blocks).map(BlockId).zip(table.chunks_exact(BLOCK_BYTES)) {
            let entry = BlockEntry::decode(bytes, seal, block).map_err(|()| {
                let offset = HEADER + u64::from(block.0) * BLOCK_BYTES as u64;
                let what = format!("the entry of block {block}, at offset {offset}, does not agree with its check");
                self.damaged("blocks", what)
            })?;
            let BlockEntry { erases, bad, suspect, erasing, stands_in, programmed } = entry;
            if let Some(index) = stands_in {
                if index >= self.geometry.blocks_per_plane {
                    let what = format!("block {block} stands in place {index}, which its plane does not have");
                    return Err(self.damaged("blocks", what));
                }
                self.substitutes.insert(block, index);
                loaded.substitutes.push((block, index));
            }
            let mut state = Block { erases, bad, suspect, torn: erasing, ..Block::default() };
            let entries = self.entries_of(block);
            if data_at <= entries.start {
                data_at = data_from(&self.files.oob, entries.start);
            }
            if data_at < entries.end {
                self.load_pages(block, &mut state, oob, &records, &mut loaded.unreadable)?;
            }
            if state.programmed < programmed {
                let lacking = state.programmed;
                let what = format!(
                    "{programmed} pages of block {block} are written, and the entry of page {lacking} is not there"
                );
                return Err(self.damaged("oob", what));
            }
            self.programmed[block.index()] = state.programmed;
            self.space.get_mut().provided[block.index()] = state.programmed > 0;
            loaded.blocks.push(state);
        }
        // Space that erased blocks still had when the process ended.
        let mut first = 0;
        for run in loaded.blocks.chunk_by(|a, b| (a.programmed == 0) == (b.programmed == 0)) {
            if run[0].programmed == 0 {
                let (offset, bytes) = self.place_of(BlockId(first));
                match give_back(&self.files.pages, offset, bytes * run.len() as u64) {
                    Err(error) if !is_full(&error) => return Err(io("pages", &self.files)(error)),
                    // A full file system may lack the space to note that some is free; the data is dead all the same.
                    _ => {}
                }
            }
            first += run.len() as u32;
        }
        if self.log.has_dead() {
            self.compact()?;
        }
        Ok(loaded)
    }

    fn damaged(&self, file: &str, what: String) -> ImageError {
        ImageError::Damaged { path: self.files.folder.path().join(file), what }
    }

    /// Where the entries of a block's pages are in their file.
    fn entries_of(&self, block: BlockId) -> Range<u64> {
        let bytes = (self.files.entry_bytes * self.geometry.pages_per_block as usize) as u64;
        let start = u64::from(block.0) * bytes;
        start..start + bytes
    }

    fn load_pages(
        &mut self,
        block: BlockId,
        state: &mut Block,
        oob: &mut Oob,
        records: &Found,
        unreadable: &mut Vec<Ppn>,
    ) -> Result<(), ImageError> {
        let size = self.files.entry_bytes;
        let pages = self.geometry.pages_per_block;
        let mut entries = vec![0; size * pages as usize];
        let offset = self.entries_of(block).start;
        let read = self.files.oob.read_exact_at(&mut entries, offset);
        read.map_err(|error| ImageError::Io { path: self.files.folder.path().join("oob"), error })?;
        let seal = self.files.seal;
        let mut ended = false;
        for (page, bytes) in (0..pages).zip(entries.chunks_exact(size)) {
            let ppn = Ppn::of(block, page, pages);
            let entry = PageEntry::decode(bytes, seal, ppn, self.units_per_page, self.origins).map_err(|()| {
                let at = offset + u64::from(page) * size as u64;
                let what =
                    format!("the entry of page {page} of block {block}, at offset {at}, does not agree with its check");
                self.damaged("oob", what)
            })?;
            let Some(entry) = entry.filter(|entry| entry.erases >= state.erases) else {
                ended = true;
                continue;
            };
            if ended || entry.erases > state.erases {
                let what =
                    format!("page {page} of block {block} is written, and what must come before it is not there");
                return Err(self.damaged("oob", what));
            }
            state.programmed = page + 1;
            let lpns: Vec<Lpn> = entry.units.iter().map(|unit| Lpn(unit[0])).collect();
            // Whether the numbers ascend is for who gave them to say: see `Oob::numbers_ascend`.
            oob.restore_page(block, page, &lpns, entry.sequence);
            let first = ppn.first_unit(self.units_per_page);
            for (unit, [lpn, number]) in UnitId::each(first..first + self.units_per_page).zip(&entry.origins) {
                oob.set_origin(unit, Origin { lpn: Lpn(*lpn), number: *number });
                // A page that is not full has units that were never written.
                if Lpn(*lpn) != Lpn::NONE && oob.lpn(unit) != Lpn::NONE {
                    // The other name was the host's, which is gone.
                    oob.rename(unit, Lpn(*lpn));
                }
            }
            for (index, [_, check]) in entry.units.iter().enumerate() {
                let unit = first + index as u32;
                self.checks.set(unit.index(), *check);
                if entry.poisoned >> index & 1 != 0 {
                    oob.poison(unit);
                }
            }
            if entry.records != 0 {
                let known = (entry.records_check, entry.records);
                let found = records.take(ppn, entry.erases, known, &mut self.log).ok_or_else(|| {
                    let what = format!("the records of page {page} of block {block} are not there, or damaged");
                    self.damaged("records", what)
                })?;
                for (index, words) in found {
                    oob.put_record(first + index, words);
                }
            }
            if entry.state != PageState::Written || state.torn {
                self.damages.get_mut().expect(ppn);
                unreadable.push(ppn);
            }
        }
        Ok(())
    }

    /// Writes the log of records anew with what is alive, if there is space for that.
    fn compact(&mut self) -> Result<(), ImageError> {
        assert!(self.behind.is_empty(), "the log of records is written anew when all of it is in its file");
        let io = |error| ImageError::Io { path: self.files.folder.path().join("records"), error };
        let file = match self.files.new_records() {
            Err(ImageError::Io { error, .. }) if is_full(&error) => {
                self.log.try_later();
                return Ok(());
            }
            other => other?,
        };
        let log = match self.log.rewrite(&self.files.records, &file) {
            Err(error) if is_full(&error) => {
                self.files.drop_new_records();
                self.log.try_later();
                return Ok(());
            }
            other => other.map_err(io)?,
        };
        if self.lifeline.passes() {
            self.files
                .take_new_records(file)
                .map_err(|error| ImageError::Io { path: self.files.folder.path().join("records"), error })?;
            self.log = log;
            self.space.get_mut().records = 0;
        }
        Ok(())
    }

    // ---- data ----

    /// Reads `sector_data` from byte `from` of a unit on; false if the unit's data does not agree with its check.
    pub(crate) fn read(&self, unit: UnitId, from: usize, sector_data: &mut [u8]) -> bool {
        if !self.behind.is_empty()
            && let Some(whole) = self.behind.unit(unit, self.unit_bytes as usize)
        {
            sector_data.copy_from_slice(&whole[from..from + sector_data.len()]);
            return true;
        }
        if sector_data.len() == self.unit_bytes as usize {
            return self.read_unit(unit, sector_data);
        }
        let mut whole = vec![0; self.unit_bytes as usize];
        let good = self.read_unit(unit, &mut whole);
        sector_data.copy_from_slice(&whole[from..from + sector_data.len()]);
        good
    }

    /// Reads all bytes of a unit from its file; false, and its page is noted, if they do not agree with their check.
    fn read_unit(&self, unit: UnitId, sector_data: &mut [u8]) -> bool {
        let offset = u64::from(unit.0) * u64::from(self.unit_bytes);
        let expected = self.checks.get(unit.index());
        let found = match self.files.pages.read_exact_at(sector_data, offset) {
            Ok(()) => match unit_check(sector_data, unit) {
                found if found == expected => return true,
                found => DamageFound::Check { found, expected },
            },
            Err(error) => DamageFound::Unread(error.to_string()),
        };
        let page = unit.page(self.units_per_page);
        let block = page.block(self.geometry.pages_per_block);
        // What was never programmed has no check.
        if page % self.geometry.pages_per_block < self.programmed[block.index()] {
            self.damages.borrow_mut().note(page, || Damage {
                path: self.files.folder.path().join("pages"),
                offset,
                bytes: self.unit_bytes,
                page,
                unit_in_page: unit.0 % self.units_per_page,
                geometry: self.geometry,
                found,
            });
        }
        false
    }

    /// Writes all bytes of a unit, of a page whose program has not ended.
    pub(crate) fn write(&mut self, unit: UnitId, sector_data: &[u8]) {
        self.put_unit(unit, sector_data, unit_check(sector_data, unit));
    }

    /// Writes a unit's bytes into another one, of a page whose program has not ended. False if they are damaged.
    pub(crate) fn copy(&mut self, from: UnitId, to: UnitId) -> bool {
        let mut sector_data = std::mem::take(&mut self.unit);
        sector_data.resize(self.unit_bytes as usize, 0);
        let whole = self.read(from, 0, &mut sector_data);
        // What was just found to agree with its check need not be summed up again.
        let check = if whole { moved(self.checks.get(from.index()), from, to) } else { unit_check(&sector_data, to) };
        self.put_unit(to, &sector_data, check);
        self.unit = sector_data;
        whole
    }

    fn put_unit(&mut self, unit: UnitId, sector_data: &[u8], check: u32) {
        assert_eq!(sector_data.len(), self.unit_bytes as usize, "unit {unit} is written as a whole");
        self.checks.set(unit.index(), check);
        self.behind.put_unit(unit, sector_data);
        // On a full disk who asks for an answer tries again.
        if self.behind.is_full() && !self.full {
            self.settle();
        }
    }

    /// Puts everything that has happened on the chips into the files. False if that cannot be done, now or ever: no
    /// answer may tell of it.
    pub fn settle(&mut self) -> bool {
        if self.behind.is_empty() {
            return self.broken.is_none();
        }
        if self.broken.is_some() {
            return false;
        }
        let mut settled = self.behind.settle(&self.files, self.unit_bytes as usize, &self.lifeline);
        // What erased blocks still have comes before a full disk.
        if settled.as_ref().is_err_and(|(_, error)| is_full(error)) && !self.space.get_mut().held.is_empty() {
            self.give_back_held(usize::MAX);
            settled = self.behind.settle(&self.files, self.unit_bytes as usize, &self.lifeline);
        }
        match settled {
            Ok(()) => self.full = false,
            Err((_, error)) if is_full(&error) => {
                self.full = true;
                self.space.get_mut().full = true;
            }
            Err((file, error)) => self.note(Err(error), file),
        }
        !self.full && self.broken.is_none()
    }

    /// Drops what is not in the files yet, and writes nothing any more: what the end of the process does.
    pub fn forget(&mut self) {
        self.behind.forget();
        self.lifeline.end();
    }

    /// The process ends at one of the image's writes, or of another image's with this lifeline.
    pub fn end_with(&mut self, lifeline: &Lifeline) {
        self.lifeline = lifeline.clone();
    }

    /// What ends the process at one of the image's writes.
    pub fn lifeline(&self) -> Lifeline {
        self.lifeline.clone()
    }

    fn note(&mut self, done: io::Result<()>, file: &str) {
        if let Err(error) = done {
            self.broken.get_or_insert_with(|| format!("{}: {error}", self.files.folder.path().join(file).display()));
        }
    }

    // ---- states ----

    /// A program begins on the array.
    pub(crate) fn program_begins(&mut self, block: &Block, place: (BlockId, u32), oob: &Oob) {
        assert_eq!(place.1, block.programmed, "block {} programs the page behind those that are written", place.0);
        self.put_page(PageState::Begun, block, place, oob, false);
    }

    /// A program has ended, well or not; its records are kept first.
    pub(crate) fn program_ends(&mut self, block: &Block, place: (BlockId, u32), oob: &Oob, failed: bool) {
        assert_eq!(place.1 + 1, block.programmed, "the program of block {} that ended is its latest", place.0);
        let state = if failed { PageState::Failed } else { PageState::Written };
        self.put_page(state, block, place, oob, false);
    }

    /// A page's out-of-band area changed after its program.
    pub(crate) fn rewrite(&mut self, block: &Block, place: (BlockId, u32), oob: &Oob, readable: bool) {
        assert!(place.1 < block.programmed, "page {} of block {} changes, which is not written", place.1, place.0);
        let state = if readable { PageState::Written } else { PageState::Failed };
        self.put_page(state, block, place, oob, true);
    }

    fn put_page(&mut self, state: PageState, block: &Block, (number, page): (BlockId, u32), oob: &Oob, changes: bool) {
        let ppn = Ppn::of(number, page, self.geometry.pages_per_block);
        let first = ppn.first_unit(self.units_per_page);
        let (mut poisoned, mut records) = (0, (0, 0));
        if !oob.is_plain() {
            for index in 0..self.units_per_page {
                poisoned |= u64::from(oob.is_poisoned(first + index)) << index;
            }
            records = match state {
                PageState::Begun => (0, 0),
                // The log has them since the program has ended.
                _ if changes => self.log.of(ppn).unwrap_or((0, 0)),
                PageState::Written | PageState::Failed => self.append_records(ppn, block.erases, oob),
            };
        }
        let lpns = oob.lpns(first, self.units_per_page);
        let checks = &self.checks.as_slice()[first.index()..(first + self.units_per_page).index()];
        let entry = PageEntry {
            state,
            erases: block.erases,
            sequence: oob.sequence(number, page),
            poisoned,
            records: records.1,
            records_check: records.0,
            units: lpns.iter().zip(checks).map(|(lpn, check)| [lpn.0, *check]).collect(),
            origins: UnitId::each(first..first + self.units_per_page)
                .filter(|_| self.origins)
                .map(|unit| oob.origin(unit))
                .map(|origin| [origin.lpn.0, origin.number])
                .collect(),
        };
        let mut bytes = std::mem::take(&mut self.scratch);
        entry.encode(self.files.seal, ppn, self.files.entry_bytes, &mut bytes);
        self.behind.put_page(ppn, &bytes, changes);
        self.scratch = bytes;
        if !changes {
            let programmed = &mut self.programmed[number.index()];
            *programmed = (*programmed).max(page + 1);
            let stands_in = self.substitutes.get(&number).copied();
            self.behind.put_count(number, BlockEntry::of(block, *programmed, stands_in));
        }
    }

    /// The records of a page go to the log; their check, and the units that have any.
    fn append_records(&mut self, ppn: Ppn, erases: u32, oob: &Oob) -> (u32, u64) {
        let first = ppn.first_unit(self.units_per_page);
        let words = |index| oob.record(first + index).map(|words| (index, words));
        let mut records = (0..self.units_per_page).filter_map(words).peekable();
        if records.peek().is_none() {
            return (0, 0);
        }
        let to = self.behind.records(self.log.end());
        self.log.append(self.files.seal, ppn, erases, records, to)
    }

    /// A block's own state changed.
    pub(crate) fn put_block(&mut self, number: BlockId, block: &Block) {
        let stands_in = self.substitutes.get(&number).copied();
        self.behind.put_block(number, BlockEntry::of(block, self.programmed[number.index()], stands_in));
        self.settle();
    }

    /// The controller records whose place in its plane a block takes.
    pub(crate) fn substitute(&mut self, number: BlockId, index: Option<u32>, block: &Block) {
        match index {
            Some(index) => self.substitutes.insert(number, index),
            None => self.substitutes.remove(&number),
        };
        self.put_block(number, block);
    }

    /// An erase begins: until it ends the block is torn.
    pub(crate) fn erase_begins(&mut self, number: BlockId, block: &Block) {
        assert!(!block.bad, "an erase of bad block {number} begins");
        self.put_block(number, &Block { torn: true, ..*block });
    }

    /// An erase has ended: the block's space goes back to the host, unless it will be wanted again soon.
    pub(crate) fn erase_ends(&mut self, number: BlockId, block: &Block) {
        assert!(!block.torn && block.programmed == 0, "the erase of block {number} has ended: {block:?}");
        let was_written = std::mem::take(&mut self.programmed[number.index()]) > 0;
        self.put_block(number, block);
        let pages = Ppn::of(number, 0, self.geometry.pages_per_block);
        self.log.forget(pages..pages + self.geometry.pages_per_block);
        self.damages.get_mut().forget(pages..pages + self.geometry.pages_per_block);
        // Before the erase is in the files they mean the data that was there.
        if self.behind.is_empty() {
            self.tidy();
            self.hold(number);
        }
        // The first page's entry goes, if the block is not opened before: an earlier entry of the block counts it in vain then.
        if was_written {
            self.scratch.clear();
            self.scratch.resize(self.files.entry_bytes, 0);
            self.behind.put_page(pages, &self.scratch, false);
        }
    }

    /// Keeps the log of records short while the drive runs.
    fn tidy(&mut self) {
        if self.log.is_stale()
            && let Err(error) = self.compact()
        {
            self.broken.get_or_insert(error.to_string());
        }
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        if self.settle() {
            self.give_back_held(usize::MAX);
        }
    }
}

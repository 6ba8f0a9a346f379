//! Chips whose contents are kept in files: what a served drive stands on.
//!
//! An image is a directory: `pages` holds data by physical page, `oob` an entry a page (how far its program got, LPNs,
//! sequence number, checks of the data), `blocks` a header and an entry a block, `records` the words of metadata units.
//! The files are sparse; a block's space is taken when it is opened and given back when it is erased and
//! not wanted again soon.
//!
//! Changes are written in the order in which they happen on the chips, so a process that is killed at any instruction
//! leaves what a power cut would leave: a program or an erase that was begun and did not end is torn. Nothing else is
//! saved at the end, and nothing else is read at the start. No entry lies across a page boundary of its file, where the kernel
//! cuts the last write of a killed process short. What happened since the last [`Image::settle`] may not be in
//! the files yet, as if power had gone before it: whoever tells of it settles first. This holds for the end of the process,
//! not for that of the host: what its kernel had not written to disk is lost with it.

mod behind;
mod entry;
mod files;
mod lifeline;
mod records;
pub mod seeded;

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::array::HugeArray;
use crate::contents::Oob;
use crate::{Block, BlockId, Geometry, Lpn, Origin, Ppn, UnitId};

use behind::Behind;
use entry::{BLOCK_BYTES, BlockEntry, PageEntry, PageState, moved, unit_check};
pub use files::ImageError;
use files::{Files, HEADER, give_back, provide};
pub use lifeline::Lifeline;
use records::RecordLog;
use seeded::{Bug, seeded};

/// One block in so many may keep its space when it is erased.
const HELD_SHARE: usize = 16;

/// A metadata unit, the erases of its block, and its words.
type LateRecord = (UnitId, u32, Box<[u64]>);

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
    /// Records that a seeded bug holds back, by unit and erases of its block: of pages in the files, and of pages that are not.
    late: [Vec<LateRecord>; 2],
    space: RefCell<Space>,
    behind: Behind,
    /// Blocks that stand in another place of their plane in a superblock.
    substitutes: BTreeMap<BlockId, u32>,
    lifeline: Lifeline,
    /// A file could not be written: what is there may be less than what was answered for. No success is reported again.
    broken: Option<String>,
    scratch: Vec<u8>,
    /// A unit that is being copied.
    unit: Vec<u8>,
}

/// The host's promises of space.
struct Space {
    /// Blocks whose space the host's file system has promised.
    provided: Vec<bool>,
    /// Erased blocks that still have it, the longest erased first: most are opened again soon.
    held: VecDeque<BlockId>,
    /// Up to where the log of records has space.
    records: u64,
    /// The host's file system was full when a block was to be opened.
    full: bool,
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
        let path = dir.join("records");
        let (log, _) = RecordLog::read(&files.records).map_err(|error| ImageError::Io { path, error })?;
        Ok(Image {
            files,
            fresh,
            geometry: *geometry,
            units_per_page,
            origins,
            unit_bytes: geometry.page_bytes / units_per_page,
            checks: HugeArray::new((geometry.pages() * u64::from(units_per_page)) as usize),
            log,
            late: Default::default(),
            space: RefCell::new(Space {
                provided: vec![false; geometry.blocks() as usize],
                held: VecDeque::new(),
                records: 0,
                full: false,
            }),
            behind: Behind::default(),
            substitutes: BTreeMap::new(),
            lifeline: Lifeline::default(),
            broken: None,
            scratch: Vec::new(),
            unit: Vec::new(),
        })
    }

    /// Bytes of memory that [`Image::open`] takes.
    pub(crate) fn simulator_bytes(geometry: &Geometry, units_per_page: u32) -> u64 {
        HugeArray::<u32>::bytes_of(geometry.pages() * u64::from(units_per_page)) + u64::from(geometry.blocks())
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

    /// Whether a block was refused since the last call because the host's file system is full.
    pub fn take_full(&self) -> bool {
        std::mem::take(&mut self.space.borrow_mut().full)
    }

    /// Bytes that the files take on the host's file system.
    pub fn bytes_on_disk(&self) -> u64 {
        use std::os::unix::fs::MetadataExt as _;
        let files = [&self.files.pages, &self.files.oob, &self.files.blocks, &self.files.records];
        files.iter().map(|file| file.metadata().map_or(0, |metadata| metadata.blocks() * 512)).sum()
    }

    /// A new image: marks its factory bad blocks, and is whole from then on.
    pub(crate) fn finish(&mut self, bad: impl Iterator<Item = BlockId>) -> Result<(), ImageError> {
        for block in bad {
            self.put_block(block, &Block { bad: true, ..Block::default() });
        }
        if let Some(error) = &self.broken {
            let path = self.files.dir.join("blocks");
            return Err(ImageError::Io { path, error: io::Error::other(error.clone()) });
        }
        self.files.finish()
    }

    // ---- what is read at the start ----

    /// Reads the state of all chips into `oob`.
    pub(crate) fn load(&mut self, oob: &mut Oob) -> Result<Loaded, ImageError> {
        let io = |name: &'static str, files: &Files| {
            let path = files.dir.join(name);
            move |error| ImageError::Io { path, error }
        };
        let (_, records) = RecordLog::read(&self.files.records).map_err(io("records", &self.files))?;
        let blocks = self.geometry.blocks();
        let mut table = vec![0; blocks as usize * BLOCK_BYTES];
        self.files.blocks.read_exact_at(&mut table, HEADER).map_err(io("blocks", &self.files))?;
        let mut loaded =
            Loaded { blocks: Vec::with_capacity(blocks as usize), unreadable: Vec::new(), substitutes: Vec::new() };
        for (block, bytes) in (0..blocks).map(BlockId).zip(table.chunks_exact(BLOCK_BYTES)) {
            let entry = BlockEntry::decode(bytes, block).map_err(|()| {
                self.damaged("blocks", format!("the entry of block {block} does not agree with its check"))
            })?;
            let BlockEntry { erases, bad, suspect, erasing, stands_in } = entry;
            if let Some(index) = stands_in {
                if index >= self.geometry.blocks_per_plane {
                    let what = format!("block {block} stands in place {index}, which its plane does not have");
                    return Err(self.damaged("blocks", what));
                }
                self.substitutes.insert(block, index);
                loaded.substitutes.push((block, index));
            }
            let mut state = Block { erases, bad, suspect, torn: erasing, ..Block::default() };
            self.load_pages(block, &mut state, oob, &records, &mut loaded.unreadable)?;
            self.space.get_mut().provided[block.index()] = state.programmed > 0;
            loaded.blocks.push(state);
        }
        // Space that erased blocks still had when the process ended.
        let mut first = 0;
        for run in loaded.blocks.chunk_by(|a, b| (a.programmed == 0) == (b.programmed == 0)) {
            if run[0].programmed == 0 {
                let (offset, bytes) = self.place_of(BlockId(first));
                give_back(&self.files.pages, offset, bytes * run.len() as u64).map_err(io("pages", &self.files))?;
            }
            first += run.len() as u32;
        }
        self.compact(oob, &loaded.blocks)?;
        Ok(loaded)
    }

    fn damaged(&self, file: &str, what: String) -> ImageError {
        ImageError::Damaged { path: self.files.dir.join(file), what }
    }

    fn load_pages(
        &mut self,
        block: BlockId,
        state: &mut Block,
        oob: &mut Oob,
        records: &records::Found,
        unreadable: &mut Vec<Ppn>,
    ) -> Result<(), ImageError> {
        let size = self.files.entry_bytes;
        let pages = self.geometry.pages_per_block;
        let mut entries = vec![0; size * pages as usize];
        let offset = u64::from(block.0 * pages) * size as u64;
        let read = self.files.oob.read_exact_at(&mut entries, offset);
        read.map_err(|error| ImageError::Io { path: self.files.dir.join("oob"), error })?;
        let mut ended = false;
        for (page, bytes) in (0..pages).zip(entries.chunks_exact(size)) {
            let ppn = Ppn::of(block, page, pages);
            let entry = PageEntry::decode(bytes, ppn, self.units_per_page, self.origins).map_err(|()| {
                self.damaged("oob", format!("the entry of page {page} of block {block} does not agree with its check"))
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
            oob.write(block, page, &lpns, entry.sequence);
            let first = ppn.first_unit(self.units_per_page);
            for (unit, [lpn, number]) in UnitId::each(first..first + self.units_per_page).zip(&entry.origins) {
                oob.set_origin(unit, Origin { lpn: Lpn(*lpn), number: *number });
                // A page that is not full has units that nobody wrote.
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
                if entry.records >> index & 1 != 0 && entry.state != PageState::Begun {
                    let words = records.get(&(unit, entry.erases)).ok_or_else(|| {
                        self.damaged(
                            "records",
                            format!("the record of unit {unit} (block {block}, page {page}) is not there"),
                        )
                    })?;
                    oob.put_record(unit, words.clone());
                }
            }
            if entry.state != PageState::Written || state.torn {
                unreadable.push(ppn);
            }
        }
        Ok(())
    }

    /// Writes the log of records anew with what is alive.
    fn compact(&mut self, oob: &Oob, blocks: &[Block]) -> Result<(), ImageError> {
        let path = self.files.dir.join("records");
        let units = self.units_per_page * self.geometry.pages_per_block;
        let alive = oob.parts().3.iter().map(|(unit, words)| (unit, blocks[(unit / units) as usize].erases, words));
        let rewritten = (|| {
            let new = self.files.dir.join("records.new");
            let file = self.files.make(&new)?;
            let log = RecordLog::rewrite(&file, alive)?;
            if self.lifeline.passes() {
                std::fs::rename(&new, &path)?;
            }
            Ok((file, log))
        })();
        match rewritten {
            Ok((file, log)) => {
                self.files.records = file;
                self.log = log;
                self.space.get_mut().records = 0;
                Ok(())
            }
            // The old log holds all of it too.
            Err(error) if io::Error::kind(&error) == io::ErrorKind::StorageFull => Ok(()),
            Err(error) => Err(ImageError::Io { path, error }),
        }
    }

    // ---- data ----

    /// Reads `cells` from byte `from` of a unit on; false if the unit's data does not agree with its check.
    pub(crate) fn read(&self, unit: UnitId, from: usize, cells: &mut [u8]) -> bool {
        if !self.behind.is_empty()
            && let Some(whole) = self.behind.unit(unit, self.unit_bytes as usize)
        {
            cells.copy_from_slice(&whole[from..from + cells.len()]);
            return true;
        }
        let offset = u64::from(unit.0) * u64::from(self.unit_bytes);
        let check = self.checks.get(unit.index());
        if cells.len() == self.unit_bytes as usize {
            return self.files.pages.read_exact_at(cells, offset).is_ok() && unit_check(cells, unit) == check;
        }
        let mut whole = vec![0; self.unit_bytes as usize];
        if self.files.pages.read_exact_at(&mut whole, offset).is_err() {
            return false;
        }
        cells.copy_from_slice(&whole[from..from + cells.len()]);
        unit_check(&whole, unit) == check
    }

    /// Writes all bytes of a unit, of a page whose program has not ended.
    pub(crate) fn write(&mut self, unit: UnitId, cells: &[u8]) {
        self.put_unit(unit, cells, unit_check(cells, unit));
    }

    /// Writes a unit's bytes into another one, of a page whose program has not ended. False if they are damaged.
    pub(crate) fn copy(&mut self, from: UnitId, to: UnitId) -> bool {
        let mut cells = std::mem::take(&mut self.unit);
        cells.resize(self.unit_bytes as usize, 0);
        let whole = self.read(from, 0, &mut cells);
        // What was just found to agree with its check need not be summed up again.
        let check = if whole { moved(self.checks.get(from.index()), from, to) } else { unit_check(&cells, to) };
        self.put_unit(to, &cells, check);
        self.unit = cells;
        whole
    }

    fn put_unit(&mut self, unit: UnitId, cells: &[u8], check: u32) {
        assert_eq!(cells.len(), self.unit_bytes as usize, "unit {unit} is written as a whole");
        self.checks.set(unit.index(), check);
        self.behind.put_unit(unit, cells);
        if self.behind.is_full() {
            self.settle();
        }
    }

    /// Puts everything that has happened on the chips into the files. Before this is done nobody may be told of it.
    pub fn settle(&mut self) {
        if self.behind.is_empty() {
            return;
        }
        self.late.swap(0, 1);
        for (unit, erases, words) in std::mem::take(&mut self.late[1]) {
            self.append_record(unit, erases, &words);
        }
        let Files { pages, oob, entry_bytes, .. } = &self.files;
        let settled = self.behind.settle(pages, oob, self.unit_bytes as usize, *entry_bytes, &self.lifeline);
        if let Err((file, error)) = settled {
            self.note(Err(error), file);
        }
    }

    /// Drops what is not in the files yet, and writes nothing any more: what the end of the process does.
    pub fn forget(&mut self) {
        self.behind.forget();
        self.lifeline.end();
    }

    /// What ends the process at one of the image's writes.
    pub fn lifeline(&self) -> Lifeline {
        self.lifeline.clone()
    }

    fn note(&mut self, done: io::Result<()>, file: &str) {
        if let Err(error) = done {
            self.broken.get_or_insert_with(|| format!("{}: {error}", self.files.dir.join(file).display()));
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
        let (mut poisoned, mut records) = (0, 0);
        if !oob.is_plain() {
            for index in 0..self.units_per_page {
                poisoned |= u64::from(oob.is_poisoned(first + index)) << index;
                if let Some(words) = oob.record(first + index) {
                    records |= 1 << index;
                    if state != PageState::Begun && seeded(Bug::RecordAfterPage) {
                        self.late[1].push((first + index, block.erases, words.into()));
                    } else if state != PageState::Begun {
                        self.append_record(first + index, block.erases, words);
                    }
                }
            }
        }
        let lpns = oob.lpns(first, self.units_per_page);
        let checks = &self.checks.as_slice()[first.index()..(first + self.units_per_page).index()];
        let entry = PageEntry {
            state,
            erases: block.erases,
            sequence: oob.sequence(number, page),
            poisoned,
            records,
            units: lpns.iter().zip(checks).map(|(lpn, check)| [lpn.0, *check]).collect(),
            origins: UnitId::each(first..first + self.units_per_page)
                .filter(|_| self.origins)
                .map(|unit| oob.origin(unit))
                .map(|origin| [origin.lpn.0, origin.number])
                .collect(),
        };
        let mut bytes = std::mem::take(&mut self.scratch);
        entry.encode(ppn, self.files.entry_bytes, &mut bytes);
        self.behind.put_page(ppn, &bytes, changes);
        self.scratch = bytes;
    }

    fn append_record(&mut self, unit: UnitId, erases: u32, words: &[u64]) {
        let appended = self.log.append(&self.files.records, unit, erases, words, &self.lifeline);
        self.note(appended, "records");
    }

    /// A block's own state changed.
    pub(crate) fn put_block(&mut self, number: BlockId, block: &Block) {
        self.settle();
        let entry = BlockEntry {
            erases: block.erases,
            bad: block.bad,
            suspect: block.suspect,
            erasing: block.torn,
            stands_in: self.substitutes.get(&number).copied(),
        };
        let offset = HEADER + u64::from(number.0) * BLOCK_BYTES as u64;
        let written = self.lifeline.write_at(&self.files.blocks, &entry.encode(number), offset);
        self.note(written, "blocks");
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
        self.put_block(number, block);
        let space = self.space.get_mut();
        space.held.push_back(number);
        if space.held.len() > self.geometry.blocks() as usize / HELD_SHARE {
            self.give_back_held(1);
        }
    }

    /// Gives the space of so many erased blocks back to the host.
    fn give_back_held(&mut self, count: usize) {
        for _ in 0..count {
            let Some(block) = self.space.get_mut().held.pop_front() else { return };
            self.space.get_mut().provided[block.index()] = false;
            let (offset, bytes) = self.place_of(block);
            if self.lifeline.passes() {
                let given = give_back(&self.files.pages, offset, bytes);
                self.note(given, "pages");
            }
        }
    }

    /// Where a block's data is in the file, and how much.
    fn place_of(&self, block: BlockId) -> (u64, u64) {
        let bytes = u64::from(self.geometry.pages_per_block) * u64::from(self.geometry.page_bytes);
        (u64::from(block.0) * bytes, bytes)
    }

    /// Whether a block may be opened: the host's file system has promised the space for it.
    pub fn provide(&self, number: BlockId) -> bool {
        let mut space = self.space.borrow_mut();
        space.held.retain(|held| *held != number);
        if space.provided[number.index()] {
            return true;
        }
        let (offset, bytes) = self.place_of(number);
        let entries = u64::from(self.geometry.pages_per_block) * self.files.entry_bytes as u64;
        let try_it = |records: &mut u64| {
            provide(&self.files.pages, offset, bytes)
                .and_then(|()| provide(&self.files.oob, u64::from(number.0) * entries, entries))
                .and_then(|()| self.log.provide(&self.files.records, records))
        };
        let mut provided = try_it(&mut space.records);
        // What erased blocks still have comes before a full disk.
        while provided.is_err()
            && let Some(held) = space.held.pop_front()
        {
            space.provided[held.index()] = false;
            let (offset, bytes) = self.place_of(held);
            provided = give_back(&self.files.pages, offset, bytes).and_then(|()| try_it(&mut space.records));
        }
        // Whatever the host's reason, nothing was written yet: the drive has no block to open.
        space.provided[number.index()] = provided.is_ok();
        space.full |= provided.is_err();
        provided.is_ok()
    }

    /// Keeps the log of records short while the drive runs.
    pub(crate) fn tidy(&mut self, oob: &Oob, blocks: &[Block]) {
        if self.log.is_stale()
            && let Err(error) = self.compact(oob, blocks)
        {
            self.broken.get_or_insert(error.to_string());
        }
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        self.settle();
        self.give_back_held(usize::MAX);
    }
}

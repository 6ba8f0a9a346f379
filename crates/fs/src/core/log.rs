//! Logs: each appends blocks to a segment of its own, and begins another when that is full.
//!
//! ```text
//!   hot    directories          | cleaning moves nothing twice while it is hot:
//!   warm   files                | what changes together lies together (F2FS, multi-head logging)
//!   cold   what cleaning moved  |
//! ```
//!
//! Blocks go to the outbox as commands. Nothing here waits: who appends has made sure that there are segments.

use rustc_hash::FxHashMap;
use ssdlab_base::{Op, Request};

use super::cache::Key;
use super::space::{Space, State};
use crate::format::checkpoint::{LOGS, Part, Position};
use crate::format::summary::{self, Link, Owner};
use crate::format::superblock::Superblock;
use crate::format::usage::MAP_LOG;
use crate::format::{BLOCK_SECTORS, Bytes};

/// Most blocks of a write command.
const MOST_BLOCKS: usize = 128;

/// What a block is, for choosing its log and counting its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A block of a file.
    Data,
    /// A block of a file that cleaning moves.
    MovedData,
    /// A block of a directory.
    Directory,
    /// The inode of a directory.
    DirectoryNode,
    /// The inode of a file, or an index block of level 1.
    FileNode,
    /// An index block of a higher level.
    UpperNode,
    /// A block of the inode map.
    Map,
    /// A TIMB block.
    Table,
    /// A block of the usage table.
    Usage,
}

/// Number of the log for a kind of block, where there are so many logs.
pub(crate) const fn log_of(kind: Kind, logs: u32) -> u8 {
    match (logs, kind) {
        (_, Kind::Map | Kind::Table | Kind::Usage) => MAP_LOG,
        (2, Kind::Data | Kind::MovedData | Kind::Directory) => 0,
        (2, _) => 1,
        (4, Kind::Directory) => 0,
        (4, Kind::Data | Kind::MovedData) => 1,
        (4, Kind::DirectoryNode | Kind::FileNode) => 2,
        (4, Kind::UpperNode) => 3,
        (_, Kind::Directory) => 0,
        (_, Kind::Data) => 1,
        (_, Kind::MovedData) => 2,
        (_, Kind::DirectoryNode) => 3,
        (_, Kind::FileNode) => 4,
        (_, Kind::UpperNode) => 5,
    }
}

/// A page that a write puts on the drive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed {
    pub(crate) page: Key,
    pub(crate) address: u32,
    /// The page's number of this write.
    pub(crate) write: u32,
    /// Size of the file when it was sent.
    pub(crate) size: u64,
}

/// A command that is to be sent.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) request: Request,
    /// What it brings of each sector; empty where nothing is kept.
    pub(crate) cells: Vec<u8>,
    /// Metadata among its blocks, where the drive keeps no bytes.
    pub(crate) records: Vec<(u32, Box<Bytes>)>,
    /// Pages among its blocks.
    pub(crate) placed: Vec<Placed>,
    /// The segment that it writes, or whose summary it writes.
    pub(crate) segment: u32,
    /// Its pages go to the places that they have.
    pub(crate) in_place: bool,
}

/// What of a segment's summary is not at its end.
#[derive(Debug, Default)]
pub(crate) struct Loose {
    pub(crate) owners: Vec<Owner>,
    /// Entries that check-points of the segment in use have.
    told: usize,
}

/// A segment whose blocks that are not valid a log can write again.
#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) segment: u32,
    pub(crate) owners: Vec<Owner>,
}

#[derive(Debug, Default)]
struct Log {
    segment: u32,
    next: u32,
    /// Blocks that it writes, the last first, where others between them stay; `None` where it writes all in their order.
    slots: Option<Vec<u32>>,
    /// Blocks that wait for their command, and where the first goes.
    first: u32,
    blocks: u32,
    cells: Vec<u8>,
    records: Vec<(u32, Box<Bytes>)>,
    placed: Vec<Placed>,
}

/// All logs.
#[derive(Debug)]
pub(crate) struct Logs {
    logs: [Log; LOGS],
    pub(crate) loose: FxHashMap<u32, Loose>,
    pub(crate) outbox: Vec<Outgoing>,
    superblock: Superblock,
    cell: usize,
    /// Fsyncs append nodes to the log of [`Logs::chained`].
    rolls: bool,
    /// The version of the newest check-point.
    pub(crate) version: u64,
    /// The log of fsyncs cannot be followed from that check-point on: a segment of it ended while none was free.
    pub(crate) is_chain_broken: bool,
    /// The segment that this log takes next, as the last node of the one in use says.
    upcoming: Option<u32>,
    /// By log, the segment that it writes again next (F2FS, section 2.5, threaded logging).
    pub(crate) threads: [Option<Thread>; LOGS],
    /// Segments that were written again so.
    pub(crate) threaded_segments: u64,
    /// Blocks of summaries, and blocks that fill up write units.
    pub(crate) summary_blocks: u64,
    pub(crate) padding_blocks: u64,
}

/// What an appended block has in it.
pub(crate) enum Contents<'a> {
    /// What is kept of the sectors of a page, with the page, the number of its write and the size of its file.
    Page(&'a [u8], Key, u32, u64),
    /// Zeroes.
    Nothing,
    /// The bytes of metadata.
    Metadata(Box<Bytes>),
}

impl Logs {
    pub(crate) fn new(superblock: Superblock, cell: usize, rolls: bool) -> Logs {
        Logs {
            logs: std::array::from_fn(|_| Log::default()),
            loose: FxHashMap::default(),
            outbox: Vec::new(),
            superblock,
            cell,
            rolls,
            version: 0,
            is_chain_broken: false,
            upcoming: None,
            threads: [const { None }; LOGS],
            threaded_segments: 0,
            summary_blocks: 0,
            padding_blocks: 0,
        }
    }

    /// Where each log goes on.
    pub(crate) fn positions(&self) -> [Position; LOGS] {
        std::array::from_fn(|log| Position { segment: self.logs[log].segment, next: self.logs[log].next })
    }

    /// A log goes on where it was.
    pub(crate) fn go_on(&mut self, log: usize, position: Position) {
        let (segment, next) = (position.segment, position.next);
        self.logs[log] = Log { segment, next, ..Log::default() };
    }

    /// A log goes on where it was, in a segment whose blocks were written for `owners`. The next check-point has them as told.
    pub(crate) fn go_on_with(&mut self, log: usize, position: Position, owners: Vec<Owner>) {
        let told = owners.len();
        self.loose.insert(position.segment, Loose { owners, told });
        self.go_on(log, position);
    }

    /// Blocks that fit into the segment of a log.
    pub(crate) fn room(&self, log: u8) -> u32 {
        let one = &self.logs[log as usize];
        match &one.slots {
            _ if one.segment == 0 => 0,
            Some(slots) => slots.len() as u32,
            None => self.end_of(log) - one.next,
        }
    }

    /// Blocks of a segment before its summary. The map has none.
    const fn end_of(&self, log: u8) -> u32 {
        if log == MAP_LOG { self.superblock.segment_blocks } else { self.superblock.data_blocks() }
    }

    /// The log that fsyncs append nodes to: the summary of each of its segments says where it goes on.
    pub(crate) const fn chained(&self) -> u8 {
        log_of(Kind::FileNode, self.superblock.logs)
    }

    /// Whether a log is the one that a mount follows: whatever was written to it since the check-point stays.
    pub(crate) const fn is_chain(&self, log: u8) -> bool {
        log == self.chained()
    }

    pub(crate) const fn is_chained(&self, log: u8) -> bool {
        self.rolls && log == self.chained()
    }

    /// The check-point that is being made says where the log of fsyncs goes on: it has a segment then.
    pub(crate) fn begin_chain(&mut self, space: &mut Space) {
        let log = self.chained();
        let has_segment = self.logs[log as usize].segment != 0 || self.rolls && self.begin(space, log).is_some();
        self.is_chain_broken = !has_segment;
    }

    /// What the next node in the log of fsyncs says of the segment behind its own ([`Mark::next`](crate::format::fsync::Mark)): it is taken
    /// now. 0 where the node is not the last, where none is free, or where a summary at the end of the segment says it.
    pub(crate) fn take_upcoming(&mut self, space: &mut Space) -> u32 {
        let log = self.chained();
        if self.superblock.areas.is_some() && self.room(log) == 1 {
            self.upcoming = space.open(log);
        }
        self.upcoming.unwrap_or(0)
    }

    /// A log begins a segment; `None` if none is free.
    fn begin(&mut self, space: &mut Space, log: u8) -> Option<u32> {
        if let Some(segment) = self.begin_thread(space, log) {
            return Some(segment);
        }
        let taken = if self.is_chained(log) { self.upcoming.take() } else { None };
        let segment = taken.or_else(|| space.open(log))?;
        self.logs[log as usize] = Log { segment, ..Log::default() };
        if log != MAP_LOG {
            self.loose.insert(segment, Loose::default());
        }
        Some(segment)
    }

    /// A log goes on in a segment that was got ready for it, if that still has blocks for it.
    fn begin_thread(&mut self, space: &mut Space, log: u8) -> Option<u32> {
        let Thread { segment, owners } = self.threads[log as usize].take()?;
        let slots = space.bits.as_ref()?.slots(segment);
        if slots.is_empty() || !space.reopen(segment, log) {
            return None;
        }
        self.threaded_segments += 1;
        let next = slots.last().copied().unwrap_or(0);
        self.logs[log as usize] = Log { segment, next, slots: Some(slots), ..Log::default() };
        self.loose.insert(segment, Loose { owners, told: 0 });
        Some(segment)
    }

    /// Appends a block; its address. `None` if there is no segment for it.
    pub(crate) fn append(&mut self, space: &mut Space, log: u8, owner: Owner, contents: Contents<'_>) -> Option<u32> {
        if self.logs[log as usize].segment == 0 {
            self.begin(space, log)?;
        }
        let address = self.put(space, log, owner, contents);
        if self.room(log) == 0 {
            self.seal(space, log);
        } else if self.logs[log as usize].blocks as usize >= MOST_BLOCKS {
            self.flush(space, log);
        }
        Some(address)
    }

    fn put(&mut self, space: &mut Space, log: u8, owner: Owner, contents: Contents<'_>) -> u32 {
        let (cell, number) = (self.cell, log as usize);
        if let Some(block) = self.logs[number].slots.as_mut().and_then(Vec::pop) {
            // A command has blocks that follow each other.
            if self.logs[number].blocks > 0 && self.logs[number].next != block {
                self.send(space, log);
            }
            self.logs[number].next = block;
        }
        let one = &mut self.logs[number];
        let address = one.segment * self.superblock.segment_blocks + one.next;
        if one.blocks == 0 {
            one.first = address;
        }
        match contents {
            Contents::Page(cells, page, write, size) => {
                one.cells.extend_from_slice(cells);
                one.placed.push(Placed { page, address, write, size });
            }
            Contents::Nothing => one.cells.resize(one.cells.len() + BLOCK_SECTORS as usize * cell, 0),
            Contents::Metadata(bytes) if cell == 512 => one.cells.extend_from_slice(&bytes[..]),
            Contents::Metadata(bytes) => {
                one.cells.resize(one.cells.len() + BLOCK_SECTORS as usize * cell, 0);
                one.records.push((address, bytes));
            }
        }
        if let Some(loose) = self.loose.get_mut(&one.segment) {
            let at = one.next as usize;
            if at < loose.owners.len() {
                loose.owners[at] = owner;
            } else {
                loose.owners.push(owner);
            }
        }
        one.blocks += 1;
        one.next += 1;
        space.clock += 1;
        address
    }

    /// Sends what waits of a log, with blocks of nothing behind it up to a whole write unit.
    pub(crate) fn flush(&mut self, space: &mut Space, log: u8) {
        while self.logs[log as usize].blocks > 0
            && !self.logs[log as usize].next.is_multiple_of(self.superblock.unit_blocks)
        {
            self.padding_blocks += 1;
            self.put(space, log, Owner::Nothing, Contents::Nothing);
        }
        if self.logs[log as usize].blocks == 0 {
            return;
        }
        self.send(space, log);
        if self.room(log) == 0 {
            self.seal(space, log);
        }
    }

    fn send(&mut self, space: &mut Space, log: u8) {
        let one = &mut self.logs[log as usize];
        let (first, count) = (u64::from(one.first), u64::from(std::mem::take(&mut one.blocks)));
        let request = Request::new(Op::Write, first * BLOCK_SECTORS, count * BLOCK_SECTORS);
        let (cells, records) = (std::mem::take(&mut one.cells), std::mem::take(&mut one.records));
        let (placed, segment) = (std::mem::take(&mut one.placed), one.segment);
        space.write_begins(segment);
        self.outbox.push(Outgoing { request, cells, records, placed, segment, in_place: false });
    }

    /// Sends what waits of all logs.
    pub(crate) fn flush_all(&mut self, space: &mut Space) {
        (0..LOGS as u8).for_each(|log| self.flush(space, log));
    }

    /// Ends the segment of a log: its summary goes behind its blocks.
    fn seal(&mut self, space: &mut Space, log: u8) {
        if self.logs[log as usize].segment == 0 {
            return;
        }
        if self.logs[log as usize].blocks > 0 {
            let next = self.logs[log as usize].next;
            assert!(next.is_multiple_of(self.superblock.unit_blocks), "a segment ends with a write unit");
            self.send(space, log);
        }
        let segment = std::mem::take(&mut self.logs[log as usize].segment);
        self.logs[log as usize].slots = None;
        if log != MAP_LOG {
            let next = if self.is_chained(log) { self.begin(space, log) } else { None };
            self.is_chain_broken |= self.is_chained(log) && next.is_none();
            self.write_summary(space, segment, Link { next: next.unwrap_or(0), version: self.version });
        }
        space.seal(segment, log, true);
    }

    fn write_summary(&mut self, space: &mut Space, segment: u32, link: Link) {
        let loose = self.loose.remove(&segment).unwrap_or_default();
        let superblock = self.superblock;
        let (blocks, first) = (superblock.summary_parts(), superblock.summary_address(segment, 0));
        let (mut cells, mut records) = (Vec::new(), Vec::new());
        for part in 0..blocks {
            let entries = loose.owners.chunks(superblock.summary_entries()).nth(part as usize).unwrap_or(&[]);
            let block = match superblock.areas {
                Some(_) => summary::encode_plain(entries),
                None => summary::encode(superblock.volume, segment, part, entries, link),
            };
            if self.cell == 512 {
                cells.extend_from_slice(&block[..]);
            } else {
                cells.resize(cells.len() + BLOCK_SECTORS as usize * self.cell, 0);
                records.push((first + part, block));
            }
        }
        self.summary_blocks += u64::from(blocks);
        let request = Request::new(Op::Write, u64::from(first) * BLOCK_SECTORS, u64::from(blocks) * BLOCK_SECTORS);
        space.write_begins(segment);
        self.outbox.push(Outgoing { request, cells, records, placed: Vec::new(), segment, in_place: false });
    }

    /// The command that overwrites a block, a page in place or metadata. Blocks that follow each other go with one.
    fn overwrite(&mut self, space: &mut Space, place: u32, in_place: bool) -> Option<&mut Outgoing> {
        let (sector, segment) = (u64::from(place) * BLOCK_SECTORS, space.segment_of(place));
        let follows = |last: &&mut Outgoing| {
            let request = &last.request;
            (last.segment, last.in_place) == (segment, in_place)
                && request.sector + request.sectors == sector
                && request.sectors < MOST_BLOCKS as u64 * BLOCK_SECTORS
        };
        if self.outbox.last_mut().filter(follows).is_none() {
            space.write_begins(segment);
            let request = Request::new(Op::Write, sector, 0);
            let (cells, records, placed) = (Vec::new(), Vec::new(), Vec::new());
            self.outbox.push(Outgoing { request, cells, records, placed, segment, in_place });
        }
        let last = self.outbox.last_mut()?;
        last.request.sectors += BLOCK_SECTORS;
        Some(last)
    }

    /// Overwrites a block of metadata that has a fixed place: no log writes its segment.
    pub(crate) fn write_fixed(&mut self, space: &mut Space, place: u32, bytes: Box<Bytes>) {
        let cell = self.cell;
        let Some(command) = self.overwrite(space, place, false) else { return };
        if cell == 512 {
            command.cells.extend_from_slice(&bytes[..]);
        } else {
            command.cells.resize(command.cells.len() + BLOCK_SECTORS as usize * cell, 0);
            command.records.push((place, bytes));
        }
    }

    /// Overwrites a page in its place, which logs leave alone: it is valid, and its segment is neither trimmed nor written again while
    /// commands write it.
    pub(crate) fn write_in_place(&mut self, space: &mut Space, placed: Placed, cells: &[u8]) {
        let Some(command) = self.overwrite(space, placed.address, true) else { return };
        command.cells.extend_from_slice(cells);
        command.placed.push(placed);
    }

    /// Segments that are left get their summaries, where these have an area of their own.
    pub(crate) fn write_loose_summaries(&mut self, space: &mut Space) {
        let mut left: Vec<(u32, u8)> = Vec::new();
        for segment in self.loose.keys() {
            if let State::Loose(log) = space.get(*segment).state {
                left.push((*segment, log));
            }
        }
        left.sort_unstable();
        for (segment, log) in left {
            self.write_summary(space, segment, Link::default());
            space.has_summary(segment, log);
        }
    }

    /// A segment is not in use by a log any more, and keeps its summary in check-points.
    pub(crate) fn leave_loose(&mut self, space: &mut Space, log: u8, segment: u32, owners: Vec<Owner>) {
        self.loose.insert(segment, Loose { owners, told: 0 });
        space.seal(segment, log, false);
    }

    /// Parts of summaries for the next check-point: all of them, or those that no check-point of this segment has.
    pub(crate) fn parts(&self, all: bool) -> Vec<Part> {
        let mut segments: Vec<u32> = self.loose.keys().copied().collect();
        segments.sort_unstable();
        let part = |segment: u32| {
            let loose = &self.loose[&segment];
            let first = if all { 0 } else { loose.told };
            let owners = loose.owners[first..].to_vec();
            (!owners.is_empty()).then_some(Part { segment, first: first as u32, owners })
        };
        segments.into_iter().filter_map(part).collect()
    }

    /// The next check-point has all parts.
    pub(crate) fn all_saved(&mut self) {
        self.loose.values_mut().for_each(|loose| loose.told = loose.owners.len());
    }

    /// Segments that leave need no summary.
    pub(crate) fn forget(&mut self, segments: &[u32]) {
        segments.iter().for_each(|segment| drop(self.loose.remove(segment)));
        for thread in &mut self.threads {
            thread.take_if(|thread| segments.contains(&thread.segment));
        }
    }
}

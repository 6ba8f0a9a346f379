//! Reads: cached blocks are copied, others are fetched, and more ahead of a reader in order.

use std::ops::Range;

use ssdlab_base::{Op, Request};
use ssdlab_device::Status;

use super::pages::{AHEAD, MARK, READING};
use super::read_ahead::Window;
use super::{PageCache, Purpose};
use crate::layer::Ended;
use crate::seeded::{LayerBug, seeded};

/// Blocks that are on their way up.
pub(super) struct Fetch {
    /// None was given before.
    number: u64,
    blocks: Range<u32>,
    /// Blocks for which there was no space: they go to the command that it was sent for, and to no other.
    without_space: Vec<u32>,
    /// What it brings may have been lost below since it was read there.
    is_stale: bool,
    /// Commands that wait for them, first the one that it was sent for, if that does.
    waiters: Vec<u32>,
}

impl PageCache {
    /// A read starts.
    pub(super) fn read(&mut self, slot: u32) {
        let cell = self.io.cell;
        let command = self.io.command(slot);
        let request = command.request;
        command.cells = vec![0; request.sectors as usize * cell];
        let blocks = PageCache::blocks_of(&request);
        let (mut missing, mut marked) = (Vec::new(), None);
        for block in blocks.clone() {
            match self.pages.find(block) {
                None => missing.push(block),
                Some(page) => {
                    self.counts.hits += 1;
                    self.pages.touch(page);
                    if self.pages.take_mark(page) {
                        marked = Some(block);
                    }
                    if self.pages.has(page, READING) {
                        self.wait_for_fetch(slot, self.pages.since(page));
                    } else {
                        self.copy_out(slot, block, page);
                    }
                }
            }
        }
        self.counts.misses += missing.len() as u64;
        let most = (self.config.read_ahead / super::config::BLOCK_BYTES) as u32;
        let asked = blocks.len() as u32;
        let reader = self.readers.entry(request.queue).or_default();
        let window = match missing.first() {
            Some(first) => reader.misses(*first, blocks.end - first, most),
            None => marked.and_then(|block| {
                let hole = (block + 1..block.saturating_add(most)).find(|block| self.pages.find(*block).is_none());
                reader.reaches_mark(block, asked, hole, most)
            }),
        };
        if let Some(last) = blocks.clone().next_back() {
            reader.has_read(last);
        }
        self.fetch(slot, &request, missing, window);
        if self.io.command(slot).left == 0 {
            self.copy(slot);
        }
    }

    /// Fetches what a read misses, and a window ahead of it.
    fn fetch(&mut self, slot: u32, request: &Request, missing: Vec<u32>, window: Option<Window>) {
        let end = self.io.array.device(0).sectors().div_ceil(super::pages::BLOCK_SECTORS) as u32;
        let mut blocks = missing;
        if let Some(Window { start, size, .. }) = window {
            let ahead = start.min(end)..start.saturating_add(size).min(end);
            // A device may execute a read before a change that was sent earlier.
            let changes = |block: &u32| self.going_through.iter().any(|through| through.contains(block));
            let new = ahead.take_while(|block| !changes(block)).filter(|block| self.pages.find(*block).is_none());
            let new: Vec<u32> = new.filter(|block| blocks.binary_search(block).is_err()).collect();
            blocks.extend(new);
            blocks.sort_unstable();
        }
        let mark = window.map(|window| window.mark());
        let most = (self.config.write_size.max(self.config.read_ahead) / super::config::BLOCK_BYTES) as usize;
        let asked = PageCache::blocks_of(request);
        while let Some(first) = blocks.first().copied() {
            let run = blocks.iter().zip(first..).take_while(|(block, expected)| *block == expected).count();
            let run: Vec<u32> = blocks.drain(..run.min(most.max(1))).collect();
            self.fetch_run(slot, request.queue, &run, &asked, mark);
        }
    }

    /// Fetches blocks that follow one another; those that no command asked for only while others can leave.
    fn fetch_run(&mut self, slot: u32, queue: u16, run: &[u32], asked: &Range<u32>, mark: Option<u32>) {
        let number = self.io.next_number();
        let (mut count, mut without_space) = (0, Vec::new());
        for block in run {
            let is_asked = asked.contains(block);
            let page = self.pages.insert(*block);
            match page {
                Some(page) => {
                    let mark = if mark == Some(*block) { MARK } else { 0 };
                    self.pages.begin_reading(page, number, if is_asked { mark } else { AHEAD | mark });
                    if is_asked {
                        self.pages.touch(page);
                    }
                }
                None if is_asked => without_space.push(*block),
                None => break,
            }
            self.counts.read_ahead += u64::from(!is_asked);
            count += 1;
        }
        if count == 0 {
            return;
        }
        let blocks = run[0]..run[0] + count;
        let waits = blocks.start < asked.end && asked.start < blocks.end;
        self.send_fetch(blocks, number, queue, if waits { Some(slot) } else { None }, without_space);
    }

    pub(super) fn send_fetch(
        &mut self,
        blocks: Range<u32>,
        number: u64,
        queue: u16,
        waiter: Option<u32>,
        without_space: Vec<u32>,
    ) {
        debug_assert!(waiter.is_some() || without_space.is_empty(), "a block that no command asked for needs space");
        let Range { start, end } = self.sectors_of(&blocks);
        let waiters: Vec<u32> = waiter.into_iter().collect();
        waiters.iter().for_each(|slot| self.io.command(*slot).left += 1);
        let fetch = self.fetches.put(Fetch { number, blocks, without_space, is_stale: false, waiters });
        let request = Request { queue, ..Request::new(Op::Read, start, end - start) };
        self.io.array.send(0, request, &[], Purpose::Fetch(fetch));
    }

    /// A command goes on when this fetch has ended.
    pub(super) fn wait_for_fetch(&mut self, slot: u32, number: u64) {
        let fetch = self.fetches.all_mut().find(|(_, fetch)| fetch.number == number);
        let (_, fetch) = fetch.expect("a block is read by a fetch");
        if !fetch.waiters.contains(&slot) {
            fetch.waiters.push(slot);
            self.io.command(slot).left += 1;
        }
    }

    /// What a read asks for of a cached block is copied.
    fn copy_out(&mut self, slot: u32, block: u32, page: u32) {
        let cell = self.io.cell;
        if cell == 0 {
            return;
        }
        let request = self.io.command(slot).request;
        let shared = self.shared(&request, &(block..block + 1));
        let begin = u64::from(block) * super::pages::BLOCK_SECTORS;
        let from = (shared.start - begin) as usize * cell..(shared.end - begin) as usize * cell;
        let to = (shared.start - request.sector) as usize * cell;
        let found = &self.pages.contents(page)[from];
        self.io.command(slot).cells[to..to + found.len()].copy_from_slice(found);
    }

    /// The device below has lost what was not flushed: what is on its way up may be newer than what is there now, and is read again.
    pub(super) fn fetches_are_stale(&mut self) {
        self.fetches.all_mut().for_each(|(_, fetch)| fetch.is_stale = true);
    }

    /// A fetch has ended.
    pub(super) fn fetched(&mut self, fetch: u32, part: Ended<Purpose>) {
        let Fetch { number, blocks, without_space, is_stale, waiters } = self.fetches.take(fetch);
        let (cell, cells) = (self.io.cell, part.cells.unwrap_or_default());
        let sectors = self.sectors_of(&blocks);
        let is_good = part.status == Status::Success && !is_stale;
        // What a command has changed since is newer in the cache.
        let mut brought = Vec::new();
        for block in blocks.clone() {
            let Some(page) = self.pages.find(block) else { continue };
            let takes = self.pages.is_read_by(page, number) || is_good && seeded(LayerBug::ReadAheadOverWrite);
            if !takes {
                continue;
            }
            brought.push(block);
            if !is_good {
                self.pages.remove(page);
                continue;
            }
            self.pages.end_reading(page);
            if cell > 0 {
                let Range { start, end } = self.sectors_of(&(block..block + 1));
                let found = &cells[(start - sectors.start) as usize * cell..(end - sectors.start) as usize * cell];
                self.pages.contents_mut(page)[..found.len()].copy_from_slice(found);
            }
        }
        for (index, slot) in waiters.into_iter().enumerate() {
            let request = self.io.command(slot).request;
            // A path that began before the command is not its own: what was read ahead.
            let own = part.path.clone().filter(|path| path.request.at >= request.at);
            self.io.command(slot).note_path(own);
            let is_last = self.io.command(slot).ends();
            match request.op {
                Op::Read => {
                    let own = if index == 0 { &without_space[..] } else { &[] };
                    let mut blocks = [&brought[..], own].concat();
                    blocks.sort_unstable();
                    let is_read_again = !is_good && self.read_alone(slot, &blocks);
                    if is_good {
                        self.hand_out(slot, &blocks, sectors.start, &cells);
                    }
                    if is_last && !is_read_again {
                        self.read_ended(slot);
                    }
                }
                _ if is_good => self.write(slot, true),
                // The drive completes what the cache cannot.
                _ => self.go_through(slot),
            }
        }
    }

    /// What a read asks for of blocks that were fetched, as runs of sectors.
    fn asked_of(&self, slot: u32, blocks: &[u32]) -> Vec<Range<u64>> {
        let request = self.io.commands.get(slot).request;
        let asked = PageCache::blocks_of(&request);
        let runs = blocks.chunk_by(|block, next| block + 1 == *next);
        let within = runs.map(|run| run[0].max(asked.start)..(run[0] + run.len() as u32).min(asked.end));
        within.filter(|run| !run.is_empty()).map(|run| self.shared(&request, &run)).collect()
    }

    /// A read gets what it asks for of blocks whose fetch brought these cells, from a sector on.
    fn hand_out(&mut self, slot: u32, blocks: &[u32], first: u64, cells: &[u8]) {
        let cell = self.io.cell;
        if cell == 0 {
            return;
        }
        for Range { start, end } in self.asked_of(slot, blocks) {
            let command = self.io.command(slot);
            let to = (start - command.request.sector) as usize * cell;
            let found = &cells[(start - first) as usize * cell..(end - first) as usize * cell];
            command.cells[to..to + found.len()].copy_from_slice(found);
        }
    }

    /// What a read asks for of blocks whose fetch failed is read alone: a block that was read ahead, or the rest of one, must not fail
    /// a read. False if it asks for nothing of them.
    fn read_alone(&mut self, slot: u32, blocks: &[u32]) -> bool {
        let runs = self.asked_of(slot, blocks);
        for Range { start, end } in &runs {
            let command = self.io.command(slot);
            command.left += 1;
            let exact = Request { sector: *start, sectors: end - start, ..command.request };
            let purpose = Purpose::Exact(slot, start - command.request.sector);
            self.io.array.send(0, exact, &[], purpose);
        }
        !runs.is_empty()
    }

    /// Sectors of a read alone have ended.
    pub(super) fn exact_ended(&mut self, slot: u32, offset: u64, part: Ended<Purpose>) {
        let cell = self.io.cell;
        let command = self.io.command(slot);
        command.note(part.status, part.path);
        if let Some(cells) = part.cells {
            let from = offset as usize * cell;
            command.cells[from..from + cells.len()].copy_from_slice(&cells);
        }
        if command.ends() {
            self.read_ended(slot);
        }
    }

    fn read_ended(&mut self, slot: u32) {
        match self.io.command(slot).status {
            Status::Success => self.copy(slot),
            status => self.answer(slot, status),
        }
    }
}

//! Read, write, append, truncate.

use super::super::core::{Cancel, Core, Op, Stop};
use super::super::format::extents::Extent;
use super::super::format::inode::Inode;
use super::super::map;
use super::super::pages::Page;
use super::super::space::Picker;
use super::super::view::{Looks, View};
use super::CREDITS;
use crate::call::{BLOCK_BYTES, Content, Errno, FileId, MOST_BYTES, MOST_FILE_BYTES, Reply};
use crate::calls::data::{blocks, check, is_whole, tail_to_clear};
use crate::core::cache::Key;
use crate::format::NOWHERE;
use crate::seeded::{FsBug, seeded};

/// [`Call::Read`](crate::call::Call::Read).
pub(crate) struct Read {
    pub(crate) file: FileId,
    pub(crate) offset: u64,
    pub(crate) length: u32,
    pub(crate) is_direct: bool,
}

impl Op for Read {
    type Plan = u32;
    type Output = Reply;

    fn gather(&self, view: &View<'_>) -> Result<u32, Stop> {
        if self.length > MOST_BYTES || (self.is_direct && !is_whole(self.offset, self.length)) {
            return Err(Errno::Invalid.into());
        }
        let inode = view.file(self.file)?;
        let length = inode.size.saturating_sub(self.offset).min(self.length.into());
        let mut looks = Looks::default();
        for block in blocks(self.offset, length) {
            looks.at(view.page(&inode, block))?;
        }
        looks.end()?;
        Ok(length as u32)
    }

    fn apply(self, core: &mut Core, length: u32) -> Reply {
        core.metrics.read_blocks += blocks(self.offset, length.into()).len() as u64;
        Reply::Read { length, data: core.copy_out(self.file.number, self.offset, length) }
    }
}

impl Core {
    /// What is kept of bytes of a file that are at hand.
    fn copy_out(&self, number: u32, offset: u64, length: u32) -> Vec<u8> {
        let end = offset + u64::from(length);
        let mut data = Vec::new();
        // Pages are used where the drive keeps nothing, too, or the cache would drop others.
        for block in blocks(offset, length.into()) {
            let start = u64::from(block) * BLOCK_BYTES;
            let (from, to) = (offset.max(start) - start, end.min(start + BLOCK_BYTES) - start);
            let range = match self.cell {
                512 => from as usize..to as usize,
                cell => (from / 512) as usize * cell..to.div_ceil(512) as usize * cell,
            };
            match self.page(number, block) {
                Some(page) => data.extend_from_slice(&page.cells[range]),
                None => data.resize(data.len() + range.len(), 0),
            }
        }
        data
    }
}

/// What a write changes: where, and the blocks that it allocates at once.
pub(crate) struct WritePlan {
    offset: u64,
    runs: Vec<Extent>,
    spares: Vec<u32>,
}

/// Sees that a write can be done.
fn gather_write(view: &View<'_>, inode: &Inode, offset: u64, length: u32) -> Result<WritePlan, Stop> {
    let end = offset + u64::from(length);
    if end > MOST_FILE_BYTES {
        return Err(Errno::TooLarge.into());
    }
    let mut plan = WritePlan { offset, runs: Vec::new(), spares: Vec::new() };
    if length == 0 {
        return Ok(plan);
    }
    view.writable()?;
    let core = view.core;
    if core.is_closing || core.dirty_pages + core.writing_pages >= core.options.limit_pages() {
        return Err(Stop::Throttled);
    }
    let mut looks = Looks::default();
    let range = blocks(offset, length.into());
    // The old end of the file lies in a block that is cleared behind it.
    if let Some(tail) = tail_to_clear(inode.size, end)
        && !range.contains(&tail)
    {
        looks.at(view.page(inode, tail))?;
    }
    let mut new: Vec<u32> = Vec::new();
    for block in range.clone() {
        if looks.at(view.needs_block(inode, block))?.unwrap_or(false) {
            new.push(block);
        }
    }
    // What lies beside the bytes in the first and the last block.
    for (block, is_partial) in [
        (range.start, !offset.is_multiple_of(BLOCK_BYTES)),
        (range.end - 1, !end.is_multiple_of(BLOCK_BYTES) && end < inode.size),
    ] {
        if is_partial && u64::from(block) * BLOCK_BYTES < inode.size {
            looks.at(view.page(inode, block))?;
        }
    }
    looks.end()?;
    if core.delays() {
        view.credits(1)?;
        view.promised(inode, new.len() as u64)?;
    } else {
        allocate(view, inode, &new, &mut plan)?;
    }
    Ok(plan)
}

/// Chooses blocks for new blocks of a file, and for those that say where they are.
fn allocate(view: &View<'_>, inode: &Inode, new: &[u32], plan: &mut WritePlan) -> Result<(), Stop> {
    // A part has the blocks whose addresses stand in one block.
    let leaf = |block: u32| block.checked_sub(12).map(|block| block / 1024);
    let parts: Vec<&[u32]> = new.chunk_by(|a, b| leaf(*a) == leaf(*b)).collect();
    let mut spares = 0;
    for part in &parts {
        // Two parts may lack the same blocks: then some are not taken.
        spares += map::spares(view, inode, part[0])?;
    }
    view.room((new.len() + spares) as u64)?;
    let mut picker = Picker::new(view);
    let mut goal = None;
    for part in new.chunk_by(|a, b| a + 1 == *b) {
        let (mut first, end) = (part[0], part[0] + part.len() as u32);
        while first < end {
            let near = match goal {
                Some(goal) => goal,
                None => map::goal(view, inode, first)?,
            };
            let (start, length) = picker.pick(near, end - first)?;
            plan.runs.push(Extent { first, length, start });
            first += length;
            goal = Some(start + length);
        }
    }
    plan.spares = picker.each(goal.unwrap_or(0), spares)?;
    view.credits(2 + 2 * picker.groups() + spares + parts.len())
}

impl View<'_> {
    /// Whether a block of a file has no block on the drive, and none is promised to it.
    fn needs_block(&self, inode: &Inode, block: u32) -> Result<bool, Stop> {
        match self.core.page(inode.number, block) {
            // A page is there for what is mapped, or for what a write brought: then a block is promised.
            Some(_) => Ok(false),
            None => Ok(self.address(inode, block)? == NOWHERE),
        }
    }

    /// Fails where so many new pages of a file more could not be written out.
    fn promised(&self, inode: &Inode, new: u64) -> Result<(), Stop> {
        if new == 0 {
            return Ok(());
        }
        let file = self.core.files.get(&inode.number);
        let (pages, reserved) = file.map_or((0, 0), |file| (file.new_pages, file.reserved));
        let pages = pages + new;
        self.room((pages + map::worst(inode, pages)).saturating_sub(reserved))
    }
}

impl Core {
    /// Reserves what the new pages of a file may need.
    pub(crate) fn promise(&mut self, number: u32) {
        let Some(pages) = self.files.get(&number).map(|file| file.new_pages) else { return };
        let worst = if pages == 0 { 0 } else { pages + map::worst(&self.inode(number), pages) };
        let file = self.files.entry(number).or_default();
        let before = std::mem::replace(&mut file.reserved, worst);
        self.space.reserved = self.space.reserved + worst - before;
        self.drop_idle(number);
    }

    /// Clears the last block of a file behind its end, before it is made longer.
    fn clear_tail(&mut self, number: u32, before: u64, size: u64) {
        let Some(tail) = tail_to_clear(before, size) else { return };
        if !self.cache.has(Key::page(number, tail)) || seeded(FsBug::TailNotCleared) {
            return;
        }
        self.clear_from(number, tail, (before % BLOCK_BYTES) as usize);
        self.set_page_dirty(number, tail, before, false);
    }

    fn write(&mut self, number: u32, plan: WritePlan, length: u32, content: &Content) {
        let WritePlan { offset, runs, mut spares } = plan;
        if length == 0 {
            return;
        }
        let end = offset + u64::from(length);
        let mut inode = self.inode(number);
        let before = inode.size;
        self.clear_tail(number, before, end);
        for run in &runs {
            self.take_blocks(run.start, run.length);
            self.map_blocks(&mut inode, *run, &mut spares);
        }
        let range = blocks(offset, length.into());
        self.metrics.written_blocks += range.len() as u64;
        for block in range {
            let new = runs.iter().find(|run| (run.first..run.end()).contains(&block));
            if !self.cache.has(Key::page(number, block)) {
                let known = new.map(|run| run.address(block));
                let address = known.unwrap_or_else(|| View::of(self).address(&inode, block).unwrap_or(NOWHERE));
                let cells = vec![0; self.page_cells()].into();
                let page = Page { cells, address, ..Page::default() };
                self.cache.insert(Key::page(number, block), super::super::core::Body::Page(page));
                // What is being read of it is older, and may come when this page has left the cache.
                self.cancelled.push(Cancel::One(Key::page(number, block)));
            }
            let start = u64::from(block) * BLOCK_BYTES;
            let (from, to) = (offset.max(start), end.min(start + BLOCK_BYTES));
            self.fill(number, block, (from - start) as usize, (to - from) as usize, content, (from - offset) as usize);
            self.set_page_dirty(number, block, before, new.is_some());
        }
        let now = self.now;
        (inode.modified, inode.changed) = (now, now);
        inode.size = before.max(end);
        self.put_inode(&inode);
        if end > before {
            self.note_size(number, before, end);
        }
        self.promise(number);
    }
}

/// [`Call::Write`](crate::call::Call::Write), to memory.
pub(crate) struct Write<'a> {
    pub(crate) file: FileId,
    pub(crate) offset: u64,
    pub(crate) length: u32,
    pub(crate) content: &'a Content,
    pub(crate) is_direct: bool,
}

impl Op for Write<'_> {
    type Plan = WritePlan;
    type Output = Reply;

    fn gather(&self, view: &View<'_>) -> Result<WritePlan, Stop> {
        check(self.length, self.content)?;
        if self.is_direct && !is_whole(self.offset, self.length) {
            return Err(Errno::Invalid.into());
        }
        let inode = view.file(self.file)?;
        if self.offset > MOST_FILE_BYTES {
            return Err(Errno::TooLarge.into());
        }
        gather_write(view, &inode, self.offset, self.length)
    }

    fn apply(self, core: &mut Core, plan: WritePlan) -> Reply {
        core.write(self.file.number, plan, self.length, self.content);
        Reply::Done
    }
}

/// [`Call::Append`](crate::call::Call::Append), to memory.
pub(crate) struct Append<'a> {
    pub(crate) file: FileId,
    pub(crate) length: u32,
    pub(crate) content: &'a Content,
    pub(crate) is_direct: bool,
}

impl Op for Append<'_> {
    type Plan = WritePlan;
    type Output = Reply;

    fn gather(&self, view: &View<'_>) -> Result<WritePlan, Stop> {
        check(self.length, self.content)?;
        let inode = view.file(self.file)?;
        if self.is_direct && !is_whole(inode.size, self.length) {
            return Err(Errno::Invalid.into());
        }
        gather_write(view, &inode, inode.size, self.length)
    }

    fn apply(self, core: &mut Core, plan: WritePlan) -> Reply {
        let offset = plan.offset;
        core.write(self.file.number, plan, self.length, self.content);
        Reply::Appended { offset }
    }
}

/// [`Call::Truncate`](crate::call::Call::Truncate).
pub(crate) struct Truncate {
    pub(crate) file: FileId,
    pub(crate) size: u64,
}

impl Op for Truncate {
    type Plan = ();
    type Output = Reply;

    fn gather(&self, view: &View<'_>) -> Result<(), Stop> {
        let inode = view.file(self.file)?;
        if self.size > MOST_FILE_BYTES {
            return Err(Errno::TooLarge.into());
        }
        view.writable()?;
        if view.core.is_closing {
            return Err(Stop::Throttled);
        }
        view.credits(CREDITS)?;
        if let Some(tail) = tail_to_clear(inode.size, self.size) {
            view.page(&inode, tail)?;
        }
        let from = self.size.div_ceil(BLOCK_BYTES) as u32;
        if self.size < inode.size && map::is_small(view, &inode) {
            map::last(view, &inode, from)?;
        }
        Ok(())
    }

    fn apply(self, core: &mut Core, (): ()) -> Reply {
        let (number, size) = (self.file.number, self.size);
        let before = core.inode(number).size;
        if size > before {
            core.clear_tail(number, before, size);
        } else if size < before {
            core.cut_blocks(number, size.div_ceil(BLOCK_BYTES) as u32, before);
        }
        let now = core.now;
        core.change(number, |inode| {
            inode.size = size;
            (inode.modified, inode.changed) = (now, now);
        });
        core.note_size(number, before, size);
        Reply::Done
    }
}

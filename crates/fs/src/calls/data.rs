//! Read, write, append, truncate.

use crate::call::{BLOCK_BYTES, Content, Errno, FileId, FileKind, MOST_BYTES, MOST_FILE_BYTES, Reply};
use crate::core::cache::Key;
use crate::core::view::{Leaf, Looks};
use crate::core::{Cancel, Core, Op, Stop, View};
use crate::format::inode::{DIRECT, FAN, Inode};
use crate::format::{BLOCK, LOST, NOWHERE};
use crate::seeded::{FsBug, seeded};

/// Blocks that bytes of a file lie in.
pub(crate) fn blocks(offset: u64, length: u64) -> std::ops::Range<u32> {
    if length == 0 {
        return 0..0;
    }
    (offset / BLOCK_BYTES) as u32..(offset + length).div_ceil(BLOCK_BYTES) as u32
}

/// The block behind the last whose address stands in the same node as that of `block`.
fn leaf_end(block: u32) -> u32 {
    let (direct, fan) = (DIRECT as u32, FAN as u32);
    if block < direct { direct } else { direct + ((block - direct) / fan + 1) * fan }
}

/// Whether bytes are whole blocks.
pub(crate) const fn is_whole(offset: u64, length: u32) -> bool {
    offset.is_multiple_of(BLOCK_BYTES) && (length as u64).is_multiple_of(BLOCK_BYTES)
}

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
            looks.at(view.page(inode, block))?;
        }
        looks.end()?;
        Ok(length as u32)
    }

    fn apply(self, core: &mut Core, length: u32) -> Reply {
        let number = self.file.number;
        core.metrics.read_blocks += blocks(self.offset, length.into()).len() as u64;
        Reply::Read { length, data: core.copy_out(number, self.offset, length) }
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
            match self.cache.page(number, block) {
                Some(page) => data.extend_from_slice(&page.cells[range]),
                None => data.resize(data.len() + range.len(), 0),
            }
        }
        data
    }
}

/// What a write changes: where, index blocks that it makes, and their numbers.
pub(crate) struct WritePlan {
    offset: u64,
    numbers: Vec<u32>,
}

/// Sees that a write can be done.
fn gather_write(view: &View<'_>, inode: &Inode, offset: u64, length: u32) -> Result<WritePlan, Stop> {
    let end = offset + u64::from(length);
    if end > MOST_FILE_BYTES {
        return Err(Errno::TooLarge.into());
    }
    let mut plan = WritePlan { offset, numbers: Vec::new() };
    if length == 0 {
        return Ok(plan);
    }
    view.writable()?;
    let core = view.core;
    if core.dirty_pages + core.writing_pages >= core.options.limit_pages() {
        return Err(Stop::Throttled);
    }
    view.may_dirty_metadata()?;
    let mut looks = Looks::default();
    looks.at(view.may_change(inode.number))?;
    let (mut new_blocks, mut new_nodes, mut leaves) = (0, 0, 0);
    let range = blocks(offset, length.into());
    // The old end of the file lies in a block that is cleared behind it.
    if let Some(tail) = tail_to_clear(inode.size, end)
        && !range.contains(&tail)
    {
        looks.at(tail_ready(view, inode, tail))?;
        leaves += 1;
    }
    let mut block = range.start;
    while block < range.end {
        let run = block..leaf_end(block).min(range.end);
        leaves += 1;
        match looks.at(view.leaf(inode, block))? {
            Some(Leaf::In(leaf)) => {
                looks.at(view.may_change(leaf))?;
                for block in run.clone() {
                    new_blocks += u32::from(needs_space(view, inode, block)?);
                }
            }
            Some(Leaf::Absent { below, missing }) => {
                looks.at(view.may_change(below))?;
                new_nodes += missing;
                new_blocks += run.len() as u32;
            }
            None => {}
        }
        block = run.end;
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
    view.room(new_blocks + new_nodes, new_nodes + leaves + 1)?;
    plan.numbers = view.new_nodes(new_nodes as usize)?;
    Ok(plan)
}

/// Whether a block needs space that it does not have and is not promised.
fn needs_space(view: &View<'_>, inode: &Inode, block: u32) -> Result<bool, Stop> {
    match view.core.cache.page(inode.number, block) {
        Some(page) => Ok(page.address == NOWHERE && !page.is_new),
        None => Ok(matches!(view.address(inode, block)?, NOWHERE | LOST)),
    }
}

/// The block with the end of a file that is to be longer, where the end is within it.
pub(crate) fn tail_to_clear(before: u64, size: u64) -> Option<u32> {
    (size > before && !before.is_multiple_of(BLOCK_BYTES)).then_some((before / BLOCK_BYTES) as u32)
}

/// Sees that the last block of a file can be cleared behind the end.
fn tail_ready(view: &View<'_>, inode: &Inode, tail: u32) -> Result<(), Stop> {
    if view.page(inode, tail)?
        && let Leaf::In(leaf) = view.leaf(inode, tail)?
    {
        view.may_change(leaf)?;
    }
    Ok(())
}

impl Core {
    /// Clears the last block of a file behind its end, before it is made longer.
    fn clear_tail(&mut self, number: u32, size: u64) {
        let inode = self.inode(number);
        let at = (inode.size % BLOCK_BYTES) as usize;
        let Some(tail) = tail_to_clear(inode.size, size) else { return };
        if !self.cache.has(Key::page(number, tail)) || seeded(FsBug::TailNotCleared) {
            return;
        }
        self.clear_from(number, tail, at);
        let leaf = self.leaf_or_new(number, tail, &mut Vec::new());
        self.set_page_dirty(number, tail, leaf, FileKind::File);
    }

    fn write(&mut self, number: u32, plan: WritePlan, length: u32, content: &Content) {
        let WritePlan { offset, mut numbers } = plan;
        if length == 0 {
            return;
        }
        let end = offset + u64::from(length);
        self.clear_tail(number, end);
        let range = blocks(offset, length.into());
        self.metrics.written_blocks += range.len() as u64;
        let mut leaf = (0, 0);
        for block in range {
            if block >= leaf.1 {
                leaf = (self.leaf_or_new(number, block, &mut numbers), leaf_end(block));
            }
            if !self.cache.has(Key::page(number, block)) {
                let address = View::of(self).address(self.inode(number), block).unwrap_or(NOWHERE);
                let cells = self.empty_cells();
                // What is lost has no space any more.
                let address = if address == LOST { NOWHERE } else { address };
                self.insert_page(number, block, cells, address);
                // What is being read of it is older, and may come when this page has left the cache.
                self.cancelled.push(Cancel::One(Key::page(number, block)));
            }
            let start = u64::from(block) * BLOCK_BYTES;
            let from = offset.max(start);
            let to = end.min(start + BLOCK_BYTES);
            self.fill(number, block, (from - start) as usize, (to - from) as usize, content, (from - offset) as usize);
            self.set_page_dirty(number, block, leaf.0, FileKind::File);
        }
        let is_longer = end > self.inode(number).size;
        if is_longer {
            self.set_size(number, end);
        }
        let now = self.now;
        let spares_node = !is_longer && self.spares_nodes();
        let inode = if spares_node { self.untouched_inode_mut(number) } else { self.inode_mut(number) };
        (inode.modified, inode.changed) = (now, now);
    }
}

/// Whether a write can bring so many bytes.
pub(crate) fn check(length: u32, content: &Content) -> Result<(), Errno> {
    let is_other = matches!(content, Content::Bytes(bytes) if bytes.len() != length as usize);
    if length > MOST_BYTES || is_other { Err(Errno::Invalid) } else { Ok(()) }
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
        gather_write(view, inode, self.offset, self.length)
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
        gather_write(view, inode, inode.size, self.length)
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
        view.may_dirty_metadata()?;
        view.may_change(inode.number)?;
        if let Some(tail) = tail_to_clear(inode.size, self.size) {
            tail_ready(view, inode, tail)?;
        }
        view.metadata_room(4)
    }

    fn apply(self, core: &mut Core, (): ()) -> Reply {
        let (number, size) = (self.file.number, self.size);
        let before = core.inode(number).size;
        if size > before {
            core.clear_tail(number, size);
        } else if size < before {
            core.cut_blocks(number, Core::blocks_of(size));
        }
        core.set_size(number, size);
        let now = core.now;
        let inode = core.inode_mut(number);
        (inode.modified, inode.changed) = (now, now);
        Reply::Done
    }
}

const _: () = assert!(BLOCK as u64 == BLOCK_BYTES);

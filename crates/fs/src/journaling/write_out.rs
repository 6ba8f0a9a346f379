//! Write-out: dirty pages of files go to the drive, in runs of pages that follow each other. By the rules of ext4 those that have no
//! blocks get them here.

use ssdlab_base::{Op as IoOp, Request};

use super::core::{Core, Op, Stop};
use super::format::extents::Extent;
use super::map;
use super::space::Picker;
use super::view::View;
use crate::call::BLOCK_BYTES;
use crate::core::cache::Key;
use crate::format::BLOCK_SECTORS;

/// Most blocks of a write command: 512 KB, as Linux sends to a drive that takes so much.
pub(crate) const MOST_BLOCKS: u32 = 128;

/// Blocks of metadata that a run changes at most: bitmap and descriptor, inode, and a block of extents with its bitmap for each level.
const CREDITS: usize = 20;

/// A write command with pages of a file.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) number: u64,
    pub(crate) request: Request,
    /// What it brings of each sector; empty where nothing is kept.
    pub(crate) cells: Vec<u8>,
    pub(crate) pages: Vec<Key>,
}

/// Sends the first run of dirty pages of a file from a block to another.
pub(crate) struct Place {
    pub(crate) number: u32,
    pub(crate) from: u32,
    pub(crate) end: u32,
    /// Most pages.
    pub(crate) most: u32,
}

/// A run of pages that is sent.
#[derive(Debug)]
pub(crate) struct Run {
    first: u32,
    count: u32,
    /// Where it goes, if it gets blocks now, and blocks for what says so.
    new: Option<(u32, Vec<u32>)>,
}

/// The first run of pages of a file that can be sent. A page that is on its way is not sent again before that has ended; and no page beyond
/// the size that a commit may hold goes before those that limit it.
fn next_run(core: &Core, place: &Place) -> Option<(u32, u32, bool)> {
    let file = core.files.get(&place.number)?;
    let page = |block: u32| core.page(place.number, block);
    let mut barrier = u64::MAX;
    let mut run: Option<(u32, u32, u32)> = None;
    // Pages that limit the size go first, wherever the run is to begin.
    let growing = file.growing.range(..place.from.min(place.end)).copied();
    for block in growing.chain(file.pages.range(place.from..place.end).copied()) {
        let first = u64::from(block) * BLOCK_BYTES;
        if first >= barrier {
            break;
        }
        let Some(found) = page(block) else { continue };
        if found.writing != 0 {
            if run.is_some() {
                break;
            }
            barrier = barrier.min(if file.growing.contains(&block) { first.max(found.covers) } else { u64::MAX });
            continue;
        }
        run = match run {
            None => Some((block, 1, found.address)),
            Some((begin, count, address)) => {
                let follows = begin + count == block && (found.address == 0) == (address == 0);
                let is_near = address == 0 || address + count == found.address;
                if !follows || !is_near || count == place.most.min(MOST_BLOCKS) {
                    break;
                }
                Some((begin, count + 1, address))
            }
        };
    }
    run.map(|(begin, count, address)| (begin, count, address == 0))
}

impl Op for Place {
    /// `None` if no page can be sent.
    type Plan = Option<Run>;
    /// Pages that were sent.
    type Output = u32;

    fn gather(&self, view: &View<'_>) -> Result<Option<Run>, Stop> {
        let Some((first, count, is_new)) = next_run(view.core, self) else { return Ok(None) };
        let inode = view.inode(self.number)?;
        if !view.core.is_closing {
            view.credits(if is_new { CREDITS } else { 1 })?;
        }
        if !is_new {
            return Ok(Some(Run { first, count, new: None }));
        }
        let spares = map::spares(view, &inode, first)?;
        let mut picker = Picker::new(view);
        let (start, length) = picker.pick(map::goal(view, &inode, first)?, count)?;
        let spares = picker.each(start + length, spares)?;
        Ok(Some(Run { first, count: length, new: Some((start, spares)) }))
    }

    fn apply(self, core: &mut Core, plan: Option<Run>) -> u32 {
        let Some(Run { first, count, new }) = plan else { return 0 };
        let number = self.number;
        let mut is_ordered = new.is_some();
        if let Some((start, mut spares)) = new {
            let mut inode = core.inode(number);
            core.take_blocks(start, count);
            core.map_blocks(&mut inode, Extent { first, length: count, start }, &mut spares);
            core.put_inode(&inode);
            for block in first..first + count {
                core.page_mut(number, block).expect("the page is there").address = start + (block - first);
                core.file_mut(number).new_pages -= 1;
            }
            if let Some(file) = core.files.get_mut(&number) {
                file.placed_end = file.placed_end.max(first + count);
            }
        }
        let write = core.number_write();
        let (mut cells, mut pages) = (Vec::new(), Vec::new());
        let mut is_growing = false;
        let begin = core.page(number, first).map_or(0, |page| page.address);
        for block in first..first + count {
            let key = Key::page(number, block);
            let entry = core.cache.entry_mut(key).expect("the page is there");
            entry.is_dirty = false;
            let page = super::pages::of_entry(entry).expect("it is a page");
            page.writing = write;
            is_ordered |= std::mem::take(&mut page.is_new);
            cells.extend_from_slice(&page.cells);
            is_growing |= core.files.get(&number).is_some_and(|file| file.growing.contains(&block));
            core.end_dirty(number, block, false);
            let file = core.file_mut(number);
            (file.writing, file.next_out) = (file.writing + 1, block + 1);
            pages.push(key);
        }
        if is_growing {
            // The next commit may hold a larger size.
            let inode = core.inode(number);
            core.put_inode(&inode);
        }
        if is_ordered || is_growing {
            core.running.ordered.insert(write);
        }
        core.promise(number);
        core.metrics.data_blocks += u64::from(count);
        core.writing_pages += count as usize;
        let request = Request::new(IoOp::Write, u64::from(begin) * BLOCK_SECTORS, u64::from(count) * BLOCK_SECTORS);
        core.outbox.push(Outgoing { number: write, request, cells, pages });
        count
    }
}

impl Core {
    /// Whether a file has dirty pages in a range.
    pub(crate) fn has_dirty(&self, number: u32, from: u32, end: u32) -> bool {
        self.files.get(&number).is_some_and(|file| file.pages.range(from..end).next().is_some())
    }
}

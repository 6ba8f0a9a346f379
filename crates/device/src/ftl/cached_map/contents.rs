//! The words of map pages: as they are programmed, and held against what is on flash.

use std::borrow::Cow;
use std::ops::Range;

use ssdlab_flash::{Lpn, UnitId};

use super::super::page::PageFtl;
use super::super::page::metadata::Content;
use super::MapCache;
use crate::media::Media;

/// Map pages of a map that is compared with flash whole at each load and eviction. In a larger one, entries that are
/// looked at, and at which load or eviction, since a look misses the caches twice; odd, so that both have their turns.
const WHOLE_PAGES_COMPARED: u32 = 64;

const ENTRIES_COMPARED: u32 = 16;

const LOOKS_EVERY: u32 = 5;

/// In the entry of a unit that holds nothing: the rest is the number of a write of the host.
pub(super) const TRIMMED: u32 = 1 << 31;

impl MapCache {
    /// The entries of a range as they are on flash.
    pub(super) fn entries<'a>(&self, data: &'a PageFtl, range: Range<Lpn>) -> Cow<'a, [UnitId]> {
        let entries = data.entries(range.clone());
        let mut trimmed = self.trimmed_since.range(range.clone()).peekable();
        if trimmed.peek().is_none() {
            return Cow::Borrowed(entries);
        }
        let mut entries = entries.to_vec();
        for (lpn, number) in trimmed {
            let entry = &mut entries[lpn.index() - range.start.index()];
            assert_eq!(*entry, UnitId::NONE, "unit {lpn} was trimmed, and holds data");
            *entry = UnitId(TRIMMED | number);
        }
        Cow::Owned(entries)
    }

    /// A map page's words as changes of those that it has on flash, if these are few and known.
    pub(super) fn content(&mut self, data: &PageFtl, media: &Media, page: u32) -> Content {
        let as_of = media.sequence();
        let before = data.unit_of(self.shape.lpn_of(page)).filter(|unit| media.flash.oob.can_be_put_over(*unit));
        // An image writes records down whole.
        let is_kept = media.flash.store.image().is_some();
        let mapped = self.entries(data, self.shape.mapped_by(page));
        let known = self.changes[page as usize].take();
        let (Some(from), Some(entries), false) = (before, known, is_kept) else {
            self.changes[page as usize].entries.clear();
            return Content::Whole(self.words(data, as_of, page));
        };
        let mapped: &[u32] = bytemuck::cast_slice(&mapped);
        let half = |entry: u32| u64::from(mapped.get(entry as usize).copied().unwrap_or(UnitId::NONE.0));
        let word = |entry: u32| (1 + entry / 2, half(entry & !1) | half(entry | 1) << 32);
        let changes = std::iter::once((0, as_of)).chain(entries.drain(..).map(word)).collect();
        Content::Over { from, changes }
    }

    /// A map page as its words on flash: the number of its program, which it keeps where it is moved, and its entries.
    fn words(&mut self, data: &PageFtl, as_of: u64, page: u32) -> Box<[u64]> {
        let mut words = self.unit_words(as_of);
        self.put_entries(data, page, &mut words[1..]);
        words
    }

    /// Words for a unit, or units, with map pages, which begin with the number of its program; the others are to be filled.
    pub(super) fn unit_words(&mut self, as_of: u64) -> Box<[u64]> {
        let length = self.shape.unit_words();
        let mut words = self.spare_words.pop().unwrap_or_else(|| vec![0; length].into());
        assert_eq!(words.len(), length, "words of map pages are used again for a unit of another size");
        words[0] = as_of;
        words
    }

    /// Puts the entries of a map page into `words`, two in a word.
    pub(super) fn put_entries(&self, data: &PageFtl, page: u32, words: &mut [u64]) {
        let entries = self.entries(data, self.shape.mapped_by(page));
        let (mapped, behind) = bytemuck::cast_slice_mut::<u64, UnitId>(words).split_at_mut(entries.len());
        mapped.copy_from_slice(&entries);
        behind.fill(UnitId::NONE);
    }

    /// Whether a map page on flash, with what the log has of it, says what the map says, but for what is dirty; one that was
    /// never programmed maps nothing.
    pub(super) fn equals_flash(&self, data: &PageFtl, media: &Media, page: u32) -> bool {
        if !self.pages[page as usize].dirty {
            return self.equals_flash_in(data, media, page, self.shape.mapped_by(page));
        }
        let clean = self.shape.lines_of(page).filter(|line| self.shape.by_entry && !self.is_dirty(*line));
        clean.map(Lpn).all(|lpn| self.equals_flash_in(data, media, page, lpn..lpn + 1))
    }

    /// Whether what is on flash of a line, with what the log has of it, says what the map says, as far as a load or an
    /// eviction looks: at a whole page in a debug build and where the map is small, else every fifth at a part that
    /// moves on, since all pages are compared when a run ends.
    pub(super) fn seems_equal_to_flash(&self, data: &PageFtl, media: &Media, line: u32) -> bool {
        let page = self.shape.page_of_line(line);
        if self.shape.by_entry {
            return self.equals_flash_in(data, media, page, Lpn(line)..Lpn(line + 1));
        }
        let whole = self.shape.mapped_by(page);
        if cfg!(debug_assertions) || self.shape.pages <= WHOLE_PAGES_COMPARED {
            return self.equals_flash_in(data, media, page, whole);
        }
        let turn = (self.counters.total().loads + self.counters.evictions) as u32;
        if !turn.is_multiple_of(LOOKS_EVERY) {
            return true;
        }
        let first = whole.start + (turn / LOOKS_EVERY).wrapping_mul(ENTRIES_COMPARED) % self.shape.entries;
        self.equals_flash_in(data, media, page, first.min(whole.end)..(first + ENTRIES_COMPARED).min(whole.end))
    }

    fn equals_flash_in(&self, data: &PageFtl, media: &Media, page: u32, range: Range<Lpn>) -> bool {
        let entries = self.entries(data, range.clone());
        let entries: &[u32] = bytemuck::cast_slice(&entries);
        if self.log.has_entries_of(range.clone()) {
            return self.equals_flash_and_log(data, media, page, range);
        }
        let Some(words) = self.words_of_page(data, media, page) else {
            return entries.iter().all(|entry| *entry == UnitId::NONE.0);
        };
        let first = range.start.index() - self.shape.mapped_by(page).start.index();
        bytemuck::cast_slice::<u64, u32>(words)[first..first + entries.len()] == *entries
    }
}

//! Sizes of a map, of its cache, and of map pages on flash.

use std::ops::Range;

use ssdlab_flash::Lpn;

use crate::DriveConfig;

/// Bytes of a map entry.
pub(super) const ENTRY_BYTES: u32 = 4;

/// Sizes, in the terms of the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ftl) struct Shape {
    /// The mapping units: the user's, and those that the design keeps behind them.
    pub(in crate::ftl) mapped_units: u32,
    /// Units from here on are names that are not final, of a design that has such.
    pub(in crate::ftl) reserved_from: u32,
    /// Bytes of a map page, and its entries.
    pub(in crate::ftl) page_bytes: u32,
    pub(in crate::ftl) entries: u32,
    /// Map pages of the whole map.
    pub(in crate::ftl) pages: u32,
    /// Mapping units that one takes on flash.
    pub(in crate::ftl) units: u32,
    /// Map pages that share a mapping unit on flash at most; with 1 none do.
    pub(in crate::ftl) slots: u32,
    /// Map pages that are programmed into one page of flash at most.
    pub(in crate::ftl) in_page: u32,
    /// What the cache holds: entries, or whole map pages.
    pub(in crate::ftl) by_entry: bool,
    /// Lines of the cache.
    pub(in crate::ftl) capacity: u32,
    /// Loads at one time at most; `u32::MAX` where there is no limit.
    pub(in crate::ftl) loads: u32,
    /// Entries of the log of what relocation changed; 0: there is none.
    pub(in crate::ftl) log_entries: u32,
    /// Superblocks opened for data until dirty map pages are flushed.
    pub(in crate::ftl) active: u64,
}

impl Shape {
    /// The shape of a drive's map in map pages of `page_bytes`, of which nothing is cached yet.
    pub(in crate::ftl) fn new(config: &DriveConfig, page_bytes: u32, share: bool) -> Shape {
        let (unit, flash_page) = (config.ftl.mapping_unit, config.flash.geometry.page_bytes);
        let entries = page_bytes / ENTRY_BYTES;
        let units = page_bytes.div_ceil(unit);
        let slots = if share { (unit / page_bytes).max(1) } else { 1 };
        let groups = config.flash.geometry.planes() / config.ftl.superblock.planes(&config.flash.geometry);
        Shape {
            mapped_units: config.mapped_units(),
            reserved_from: config.user_units(),
            page_bytes,
            entries,
            pages: config.mapped_units().div_ceil(entries),
            units,
            slots,
            in_page: if share { (flash_page / unit / units).max(1) * slots } else { 1 },
            by_entry: false,
            capacity: 0,
            loads: u32::MAX,
            log_entries: 0,
            active: u64::from(groups * config.frontiers()),
        }
    }

    /// Numbers of metadata units: of the map pages or of the units that they share, and of the record of what is active.
    pub(in crate::ftl) const fn metadata_units(&self) -> u32 {
        self.numbers() + 1
    }

    /// Mapping units of flash that metadata takes at most when nothing is in flight: a unit stays as long as a map page in it does.
    pub(in crate::ftl) const fn units_on_flash(&self) -> u32 {
        self.pages * self.units + 1
    }

    /// Whether several map pages go to one mapping unit.
    #[inline]
    pub(in crate::ftl) const fn shares_units(&self) -> bool {
        self.slots > 1
    }

    /// Numbers of units with map pages. Of shared ones each page may need one for its newest copy and one for the copy before, and
    /// where programs fail another one.
    pub(super) const fn numbers(&self) -> u32 {
        if self.shares_units() { 3 * self.pages + 8 } else { self.pages * self.units }
    }

    /// Words of a slot of a shared unit: the map page, and two entries a word.
    pub(super) const fn slot_words(&self) -> usize {
        1 + self.entries.div_ceil(2) as usize
    }

    /// Words of a unit, or units, with map pages: the number of its program, and the entries, or the slots.
    pub(super) const fn unit_words(&self) -> usize {
        1 + if self.shares_units() {
            self.slots as usize * self.slot_words()
        } else {
            self.entries.div_ceil(2) as usize
        }
    }

    /// The map page of a unit.
    #[inline]
    pub(in crate::ftl) fn page_of(&self, lpn: Lpn) -> u32 {
        lpn / self.entries
    }

    /// Lines that the whole map would take.
    pub(in crate::ftl) const fn lines(&self) -> u32 {
        if self.by_entry { self.mapped_units } else { self.pages }
    }

    /// Bytes of a line: with an entry, the cache keeps the number of its unit.
    pub(in crate::ftl) const fn line_bytes(&self) -> u32 {
        if self.by_entry { 2 * ENTRY_BYTES } else { self.page_bytes }
    }

    /// The line of the cache that has the entry of a unit.
    #[inline]
    pub(in crate::ftl) fn line_of(&self, lpn: Lpn) -> u32 {
        if self.by_entry { lpn.0 } else { self.page_of(lpn) }
    }

    /// The map page of a line.
    #[inline]
    pub(super) fn page_of_line(&self, line: u32) -> u32 {
        debug_assert!(line < self.lines(), "line {line} of a map that takes {}", self.lines());
        if self.by_entry { line / self.entries } else { line }
    }

    /// The lines of a map page.
    pub(super) fn lines_of(&self, page: u32) -> Range<u32> {
        if self.by_entry { self.units_as_lines(page) } else { page..page + 1 }
    }

    fn units_as_lines(&self, page: u32) -> Range<u32> {
        let units = self.mapped_by(page);
        units.start.0..units.end.0
    }

    /// The units that a map page maps.
    pub(super) fn mapped_by(&self, page: u32) -> Range<Lpn> {
        let first = page * self.entries;
        Lpn(first)..Lpn((first + self.entries).min(self.mapped_units))
    }

    /// The number under which a map page that shares its unit with no other is on flash.
    pub(super) fn lpn_of(&self, page: u32) -> Lpn {
        debug_assert!(!self.shares_units(), "map page {page} has no unit of its own");
        Lpn(self.mapped_units + page * self.units)
    }

    /// The number under which a shared unit is on flash.
    pub(super) fn shared_lpn(&self, number: u32) -> Lpn {
        debug_assert!(number < self.numbers(), "shared unit {number} of {}", self.numbers());
        Lpn(self.mapped_units + number)
    }

    /// The shared unit that is on flash under a number; `None` if that is not one's.
    pub(super) fn shared_at(&self, lpn: Lpn) -> Option<u32> {
        lpn.0.checked_sub(self.mapped_units).filter(|number| self.shares_units() && *number < self.numbers())
    }

    /// The number of the record of what is active.
    pub(super) fn record_lpn(&self) -> Lpn {
        Lpn(self.mapped_units + self.numbers())
    }

    /// The map page that is on flash under a number; `None` if it is another page's.
    pub(super) fn page_at(&self, lpn: Lpn) -> Option<u32> {
        let of_map = lpn.0.checked_sub(self.mapped_units)?;
        (of_map < self.pages * self.units).then_some(of_map / self.units)
    }
}

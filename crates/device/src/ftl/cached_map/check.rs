//! The map's invariants, and the RAM that a real drive has for it.

use super::super::page::PageFtl;
use super::MapCache;
use super::geometry::ENTRY_BYTES;
use super::log::LOG_ENTRY_BYTES;
use crate::Check;
use crate::media::Media;

/// Bytes of a cached line for the order of use: its number, and both neighbours.
const ORDER_BYTES: u64 = 12;

/// Bytes of a cached line for its state: programs of data that it waits for, and whether it differs from flash.
const STATE_BYTES: u64 = 5;

impl MapCache {
    /// Bytes of RAM that a real drive has for this, by name.
    pub(in crate::ftl) fn memory(&self) -> Vec<(&'static str, u64)> {
        let pages = u64::from(self.shape.pages);
        let cached = u64::from(self.shape.capacity);
        let mut tables = vec![
            ("map_cache_bytes", cached * u64::from(self.shape.line_bytes())),
            ("map_directory_bytes", pages * u64::from(ENTRY_BYTES)),
            ("map_order_bytes", cached * ORDER_BYTES),
            ("map_state_bytes", cached * STATE_BYTES),
            ("map_log_bytes", u64::from(self.shape.log_entries) * u64::from(LOG_ENTRY_BYTES)),
            ("trim_bitmap_bytes", cached.div_ceil(64) * 8),
        ];
        if self.shape.shares_units() {
            tables.push(("map_shared_units_bytes", u64::from(self.shape.numbers())));
        }
        tables
    }

    /// What is in these tables takes no more than they have.
    fn check_memory(&self, data: &PageFtl) -> Check {
        let lines = u64::from((self.lru.len() + self.in_transit).saturating_sub(self.beside));
        let on_flash = (0..self.shape.pages).filter(|page| self.unit_of_page(data, *page).is_some()).count();
        let trimmed = self.pages.iter().filter(|state| state.trimmed).count() as u64;
        let mut used = vec![
            lines * u64::from(self.shape.line_bytes()),
            on_flash as u64 * u64::from(ENTRY_BYTES),
            lines * ORDER_BYTES,
            lines * STATE_BYTES,
            self.log.entries.len() as u64 * u64::from(LOG_ENTRY_BYTES),
            trimmed.saturating_sub(self.beside.into()).div_ceil(8),
        ];
        if self.shape.shares_units() {
            used.push(self.shared.in_use());
        }
        let tables = self.memory();
        assert_eq!(tables.len(), used.len(), "each table of the map is held against what is in it");
        let all = tables.iter().zip(&used).map(|((name, bytes), used)| format!("{name} {used} of {bytes}"));
        let detail = all.collect::<Vec<String>>().join(", ");
        Check {
            name: "map_tables_hold_what_is_in_them",
            passed: tables.iter().zip(&used).all(|((_, bytes), used)| used <= bytes),
            detail,
        }
    }

    /// The cache is no larger than it may be, and what is clean is on flash.
    pub(in crate::ftl) fn check(&self, data: &PageFtl, media: &Media) -> Vec<Check> {
        let cached = self.lru.len() + self.in_transit;
        let on_flash = (0..self.shape.pages).filter(|page| self.pages[*page as usize].in_program == 0);
        let wrong = on_flash.filter(|page| !self.equals_flash(data, media, *page)).count();
        let mut checks = self.check_log(data);
        checks.extend(self.check_shared(data));
        checks.push(self.check_memory(data));
        checks.extend([
            Check {
                name: "map_cache_within_its_size",
                passed: cached <= self.shape.capacity + self.beside,
                detail: format!("{cached} lines of the map cached, of {} that fit", self.shape.capacity),
            },
            Check {
                name: "clean_map_pages_equal_flash",
                passed: wrong == 0,
                detail: format!("{wrong} of {} map pages differ from flash, and are not dirty", self.shape.pages),
            },
        ]);
        checks
    }
}

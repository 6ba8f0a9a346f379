//! Snapshots: what is cached, in its order, and since when blocks are active.

use std::io::{self, Read, Write};

use ssdlab_flash::Lpn;

use super::{MapCache, TRIMMED};
use crate::ftl::page::PageFtl;
use crate::media::Media;

/// Beside a line: it is dirty.
const DIRTY: u32 = 1;

impl MapCache {
    pub(in crate::ftl) fn save(&self, to: &mut dyn Write) -> io::Result<()> {
        let at_rest = self.in_flight == 0
            && self.jobs.is_empty()
            && self.flush.is_empty()
            && self.log.is_at_rest()
            && self.change.is_none();
        assert!(at_rest, "a map is saved while nothing of it is in flight");
        let active = self.opened.wrapping_sub(self.changed_at);
        to.write_all(&active.to_le_bytes())?;
        to.write_all(&self.next_group.to_le_bytes())?;
        to.write_all(&self.lru.len().to_le_bytes())?;
        for line in self.lru.oldest_first() {
            let flags = u32::from(self.is_dirty(line)) * DIRTY;
            to.write_all(&line.to_le_bytes())?;
            to.write_all(&flags.to_le_bytes())?;
        }
        // In the order in which they will be programmed.
        let trimmed = &self.flush.trimmed;
        to.write_all(&(trimmed.len() as u32).to_le_bytes())?;
        trimmed.iter().try_for_each(|page| to.write_all(&page.to_le_bytes()))?;
        if self.shape.reserved_from < self.shape.mapped_units {
            to.write_all(&(self.trimmed_since.len() as u32).to_le_bytes())?;
            for (lpn, number) in &self.trimmed_since {
                to.write_all(&lpn.0.to_le_bytes())?;
                to.write_all(&number.to_le_bytes())?;
            }
        }
        if !self.has_log() {
            return Ok(());
        }
        to.write_all(&(self.log.entries.len() as u32).to_le_bytes())?;
        self.log.entries.keys().try_for_each(|lpn| to.write_all(&lpn.0.to_le_bytes()))
    }

    pub(in crate::ftl) fn restore(
        &mut self,
        data: &mut PageFtl,
        media: &mut Media,
        from: &mut dyn Read,
    ) -> io::Result<()> {
        let bad = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_string());
        let mut word = [0; 8];
        from.read_exact(&mut word)?;
        self.opened = media.pool.data_opened();
        self.changed_at = self.opened.wrapping_sub(u64::from_le_bytes(word));
        self.next_group = read_u32(from)?;
        let count = read_u32(from)?;
        if count > self.shape.capacity || self.next_group >= self.collections.len() as u32 {
            return Err(bad("more map pages are cached than fit, or the next group is not one of the drive's"));
        }
        // A map page on flash without words is found below.
        let free = self.find_shared(data, media).ok_or_else(|| bad("a unit of map pages names none of the drive's"))?;
        for number in free {
            data.unmap_metadata(media, self.shape.shared_lpn(number));
        }
        self.lru.clear();
        for _ in 0..count {
            let (line, flags) = (read_u32(from)?, read_u32(from)?);
            if line >= self.shape.lines() || self.lru.contains(line) || flags & !DIRTY != 0 {
                return Err(bad("a cached line of the map is unknown, or named twice"));
            }
            self.lru.insert(line);
            let page = self.shape.page_of_line(line);
            self.lines[line as usize].dirty = flags & DIRTY != 0;
            self.pages[page as usize].dirty |= flags & DIRTY != 0;
            self.changes[page as usize].are_many();
        }
        for _ in 0..read_u32(from)? {
            let page = read_u32(from)?;
            if page >= self.shape.pages || !self.pages[page as usize].dirty || self.pages[page as usize].trimmed {
                return Err(bad("a map page with a trim is not dirty, or named twice"));
            }
            self.has_trims(page);
        }
        if self.shape.reserved_from < self.shape.mapped_units {
            for _ in 0..read_u32(from)? {
                let (lpn, number) = (Lpn(read_u32(from)?), read_u32(from)?);
                if lpn.0 >= self.shape.mapped_units || data.unit_of(lpn).is_some() || number >= TRIMMED - 1 {
                    return Err(bad("a unit that is not mapped was trimmed, and it is mapped, or unknown"));
                }
                self.trimmed_since.insert(lpn, number);
            }
        }
        let logged = if self.has_log() { read_u32(from)? } else { 0 };
        if logged > self.shape.log_entries {
            return Err(bad("the map log has more entries than fit"));
        }
        for _ in 0..logged {
            let lpn = Lpn(read_u32(from)?);
            let unit = if lpn.0 < self.shape.mapped_units { data.unit_of(lpn) } else { None };
            let Some(unit) = unit.filter(|_| !self.lru.contains(self.shape.page_of(lpn))) else {
                return Err(bad("the map log has an entry of a unit that is not mapped, or whose map page is cached"));
            };
            self.log.entries.insert(lpn, unit);
        }
        for page in 0..self.shape.pages {
            let known = self.pages[page as usize].dirty
                || self.unit_of_page(data, page).is_none_or(|unit| media.flash.oob.record(unit).is_some());
            if !known || !self.equals_flash(data, media, page) {
                return Err(bad("a map page on flash does not say what the map says"));
            }
        }
        Ok(())
    }
}

fn read_u32(from: &mut dyn Read) -> io::Result<u32> {
    let mut bytes = [0; 4];
    from.read_exact(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

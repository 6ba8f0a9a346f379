//! Trims: cheap where nothing is mapped, and remembered on flash.
//!
//! A bit a unit tells what is mapped, so a trim of gigabytes that are unmapped already walks words, not entries. What a
//! trim unmapped is made durable by writing the bits of its segment as one metadata unit; recovery believes the newest.

use std::io::{self, Read, Write};

use ssdlab_flash::{Cause, HugeArray};

use super::{PageFtl, UNMAPPED};
use crate::ftl::{NoSpace, TrimTarget, UnitWrite};
use crate::media::{Frontier, Media};
use crate::token::Owner;

/// What is mapped, and which segments have trims that are not on flash yet.
pub(super) struct TrimState {
    mapped: HugeArray<u64>,
    /// Units of a segment: as many as a mapping unit has bits.
    segment_units: u32,
    segments: u32,
    dirty: Vec<bool>,
    dirty_list: Vec<u32>,
}

impl TrimState {
    pub(super) fn new(user_units: u32, unit_bytes: u32) -> TrimState {
        let segment_units = unit_bytes * 8;
        let segments = user_units.div_ceil(segment_units);
        TrimState {
            mapped: HugeArray::new((user_units as usize + segments as usize).div_ceil(64)),
            segment_units,
            segments,
            dirty: vec![false; segments as usize],
            dirty_list: Vec::new(),
        }
    }

    pub(super) const fn segments(&self) -> u32 {
        self.segments
    }

    pub(super) fn bytes(&self) -> u64 {
        self.mapped.bytes()
    }

    pub(super) fn pending(&self) -> u32 {
        self.dirty_list.len() as u32
    }

    #[inline]
    pub(super) fn mapped(&mut self, lpn: u32) {
        self.mapped.as_mut_slice()[lpn as usize / 64] |= 1 << (lpn % 64);
    }

    pub(super) fn unmapped(&mut self, lpn: u32) {
        self.mapped.as_mut_slice()[lpn as usize / 64] &= !(1 << (lpn % 64));
    }

    /// The next mapped unit in `from..end`.
    fn next_mapped(&self, from: u32, end: u32) -> Option<u32> {
        let words = self.mapped.as_slice();
        let mut at = from;
        while at < end {
            let word = words[at as usize / 64] >> (at % 64);
            if word != 0 {
                let found = at + word.trailing_zeros();
                return (found < end).then_some(found);
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }

    fn soil(&mut self, lpn: u32) {
        let segment = lpn / self.segment_units;
        if !std::mem::replace(&mut self.dirty[segment as usize], true) {
            self.dirty_list.push(segment);
        }
    }

    /// The bits of a segment's units: set is mapped.
    fn bits(&self, segment: u32, user_units: u32) -> Box<[u64]> {
        let first = (segment * self.segment_units) as usize;
        let end = (first + self.segment_units as usize).min(user_units as usize);
        let mut words: Box<[u64]> = self.mapped.as_slice()[first / 64..end.div_ceil(64)].into();
        if !end.is_multiple_of(64) {
            // The last word's other bits belong to the bitmaps themselves.
            let last = words.len() - 1;
            words[last] &= (1 << (end % 64)) - 1;
        }
        words
    }

    pub(super) fn clear(&mut self) {
        self.mapped.as_mut_slice().fill(0);
        self.dirty.fill(false);
        self.dirty_list.clear();
    }

    pub(super) const fn segment_units(&self) -> u32 {
        self.segment_units
    }

    pub(super) fn save(&self, to: &mut dyn Write) -> io::Result<()> {
        to.write_all(bytemuck::cast_slice(self.mapped.as_slice()))?;
        let mut dirty = vec![0_u8; self.dirty.len()];
        for segment in &self.dirty_list {
            dirty[*segment as usize] = 1;
        }
        to.write_all(&dirty)
    }

    pub(super) fn restore(&mut self, from: &mut dyn Read) -> io::Result<()> {
        from.read_exact(bytemuck::cast_slice_mut(self.mapped.as_mut_slice()))?;
        let mut dirty = vec![0_u8; self.dirty.len()];
        from.read_exact(&mut dirty)?;
        for (segment, dirty) in dirty.into_iter().enumerate() {
            if dirty != 0 {
                self.dirty[segment] = true;
                self.dirty_list.push(segment as u32);
            }
        }
        Ok(())
    }
}

impl PageFtl {
    pub(super) fn trim_units(&mut self, media: &mut Media, first: u32, end: u32) -> u64 {
        let mut at = first;
        let mut trimmed = 0;
        while let Some(lpn) = self.trims.next_mapped(at, end) {
            self.unmap(media, lpn);
            trimmed += 1;
            at = lpn + 1;
        }
        trimmed
    }

    fn unmap(&mut self, media: &mut Media, lpn: u32) {
        let unit = std::mem::replace(&mut self.map.as_mut_slice()[lpn as usize], UNMAPPED);
        assert_ne!(unit, UNMAPPED, "the bitmap and the map agree about unit {lpn}");
        let block = self.invalidate(media, unit);
        // Erased before the trim is on flash, an older copy elsewhere would come back.
        media.pool.set_trimmed(block);
        self.mapped_units -= 1;
        self.trims.unmapped(lpn);
        self.trims.soil(lpn);
    }

    pub(super) fn write_trim_bitmaps(
        &mut self,
        media: &mut Media,
        to: TrimTarget,
        owner: Owner,
    ) -> Result<u32, NoSpace> {
        let mut started = 0;
        while let Some(segment) = self.trims.dirty_list.last().copied() {
            let words = self.trims.bits(segment, self.user_units);
            let cells = vec![0; (media.unit_bytes / 512) as usize * media.flash.store.cell_bytes()];
            let lpn = self.user_units + segment;
            let unit = UnitWrite { lpn, mask: self.full_mask, cells: &cells };
            let (plane, frontier) = match to {
                TrimTarget::Host => {
                    let frontier = Frontier::Host(0);
                    (self.placement.choose(media, lpn, frontier).ok_or(NoSpace)?, frontier)
                }
                TrimTarget::Gc(plane) => (plane, Frontier::Gc),
            };
            let place = media.take_page(plane, frontier).ok_or(NoSpace)?;
            self.write_at(media, place, &[unit], frontier, Cause::Metadata, owner);
            media.flash.oob.put_record(self.map.get(lpn as usize), words);
            self.trims.dirty_list.pop();
            self.trims.dirty[segment as usize] = false;
            started += 1;
        }
        Ok(started)
    }
}

//! Relocation without time where several units share a page and a page's OOB holds nothing but the map.
//!
//! Preconditioning a large drive spends most of its time here, waiting for map entries that no cache holds. So this
//! knows the units of a victim before it moves them: the entries of the next [`AHEAD`] units are loaded side by side, and
//! an entry is stored without a look at what it held, for what is moved was current.
//! `relocation.rs` says the same at length; a test holds the two against each other.

use ssdlab_flash::{BlockId, Cause, Lpn, OpKind, Ppn, UnitId};

use super::PageFtl;
use crate::ftl::Relocated;
use crate::ftl::bit_fields::{clear_bits, set_bits};
use crate::media::{Frontier, Media, Place};

/// Units whose map entries are loaded at a time: more than the misses that a core has in flight.
pub(super) const AHEAD: usize = 32;

impl PageFtl {
    pub(super) fn relocate_pages_of_units(
        &mut self,
        media: &mut Media,
        victim: u32,
        cursor: u32,
        limit: u32,
        cause: Cause,
    ) -> Relocated {
        let first = media.unit_at(Place { block: BlockId(victim), page: 0 });
        let end = first + media.units_per_superblock();
        let group = media.pool.group_of(victim);
        let mut at = first + cursor;
        let mut started = 0;
        while started < limit {
            let Some(next) = self.next_valid(at, end) else {
                at = end;
                break;
            };
            let wanted = (limit - started).min(media.pool.valid(victim).div_ceil(self.units_per_page));
            let Some((target, run)) = media.take_run(group, Frontier::Gc, wanted) else {
                return Relocated { cursor: next - first, started, stuck: true };
            };
            at = self.move_units_now(media, victim, (next, end), target, run, cause);
            started += run;
        }
        Relocated { cursor: at - first, started, stuck: false }
    }

    /// Fills `run` pages from `target` on with the next valid units of `victim` in `range`; only the last page of a
    /// victim may end up partly filled. Returns where to go on.
    fn move_units_now(
        &mut self,
        media: &mut Media,
        victim: u32,
        (from, end): (UnitId, UnitId),
        target: Place,
        run: u32,
        cause: Cause,
    ) -> UnitId {
        let per_page = self.units_per_page;
        let to = media.unit_at(target);
        let sequence = media.take_sequence(u64::from(run));
        let (lpns, low) = media.flash.oob.begin_run(target.block, target.page, sequence);
        let map = self.map.as_mut_slice();
        let valid = self.valid.as_mut_slice();
        let mut sources = SetBits::new(valid, from, end);
        let mut lookahead = [UnitId::NONE; AHEAD];
        let (mut moved, mut reads, mut last, mut next_page) = (0, 0, from, Ppn::NONE);
        while moved < run * per_page {
            let slot = moved as usize % AHEAD;
            if slot == 0 {
                load(&mut lookahead, || sources.next(valid), lpns, map);
            }
            let source = lookahead[slot];
            if source == UnitId::NONE {
                break;
            }
            // A page is read once for each page that it gives units to.
            let page = source.page(per_page);
            if moved.is_multiple_of(per_page) || page != next_page {
                reads += 1;
                next_page = page;
            }
            let lpn = lpns[source.index()];
            lpns[(to + moved).index()] = lpn;
            map[lpn.index()] = to + moved;
            last = source;
            moved += 1;
        }
        assert!(moved > (run - 1) * per_page, "{run} pages of {per_page} units took {moved} units of {victim}");
        debug_assert!(last < end, "unit {last} is behind {victim}, which ends at {end}");
        lpns[(to + moved).index()..(to + run * per_page).index()].fill(Lpn::NONE);
        let first_page = to.page(per_page).index();
        for (index, low) in low[first_page..first_page + run as usize].iter_mut().enumerate() {
            *low = (sequence as u32).wrapping_add(index as u32);
        }
        clear_bits(valid, from.0, last.0 + 1);
        set_bits(valid, to.0, (to + moved).0);
        media.pool.move_valid(victim, target.block.0, moved);
        media.flash.execute_run(OpKind::Read, cause, BlockId(victim), reads);
        media.flash.execute_run(OpKind::Program, cause, target.block, run);
        media.close_if_written(target.block);
        self.count_relocation_padding(media, run, moved);
        last + 1
    }
}

/// Takes the next units, `NONE` at the end, and loads their map entries; all before were moved. Loads that wait in a row of their own
/// overlap; between the instructions of a move only some of them would fit into what a core looks ahead itself.
#[inline]
pub(super) fn load(
    lookahead: &mut [UnitId; AHEAD],
    mut next: impl FnMut() -> Option<UnitId>,
    lpns: &[Lpn],
    map: &[UnitId],
) {
    for slot in &mut *lookahead {
        *slot = next().unwrap_or(UnitId::NONE);
    }
    let mut seen = 0;
    for source in lookahead.iter().take_while(|source| **source != UnitId::NONE) {
        seen ^= map[lpns[source.index()].index()].0;
    }
    std::hint::black_box(seen);
}

/// The set bits of a range, one after another.
struct SetBits {
    word: usize,
    bits: u64,
    end: UnitId,
}

impl SetBits {
    fn new(words: &[u64], from: UnitId, end: UnitId) -> SetBits {
        let word = from.index() / 64;
        SetBits { word, bits: words[word] & (u64::MAX << (from % 64)), end }
    }

    #[inline]
    fn next(&mut self, words: &[u64]) -> Option<UnitId> {
        while self.bits == 0 {
            self.word += 1;
            if self.word * 64 >= self.end.index() {
                self.word -= 1;
                return None;
            }
            self.bits = words[self.word];
        }
        let found = UnitId((self.word * 64) as u32 + self.bits.trailing_zeros());
        if found >= self.end {
            self.bits = 0;
            return None;
        }
        self.bits &= self.bits - 1;
        Some(found)
    }
}

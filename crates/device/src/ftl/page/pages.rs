//! Relocation for the common case, a page a unit and nothing in its OOB but the map: one pass over the victim's bits.
//!
//! Nearly all time of a long replay goes by here, so it touches each table once. What is moved was current, so its map
//! entry is stored without being read, and counts are kept a run at a time. `relocation.rs` says the same at length; a
//! test holds the two against each other.

use ssdlab_flash::{BlockId, Cause, Lpn, NONE, OpKind, Ppn, UnitId};

use super::PageFtl;
use crate::ftl::Relocated;
use crate::ftl::bit_fields::{clear_bits, set_bits};
use crate::ftl::page_of_units::copy_unit;
use crate::media::{Frontier, Media, Place, Programming};
use crate::waiter::Waiter;

impl PageFtl {
    pub(super) fn relocate_pages(
        &mut self,
        media: &mut Media,
        victim: u32,
        cursor: u32,
        limit: u32,
        cause: Cause,
        owner: Waiter,
    ) -> Relocated {
        let pages = media.pages_per_block();
        let first = media.unit_at(Place { block: BlockId(victim), page: 0 });
        let plane = media.pool.group_of(victim);
        let mut at = first + cursor;
        let mut started = 0;
        while started < limit {
            let Some(next) = self.next_valid(at, first + pages) else {
                at = first + pages;
                break;
            };
            let left = (limit - started).min(media.pool.valid(victim));
            let Some((target, run)) = media.take_run(plane, Frontier::Gc, left) else {
                return Relocated { cursor: next - first, started, stuck: true };
            };
            debug_assert!((1..=left).contains(&run), "{run} pages are moved, and {left} are left in {victim}");
            debug_assert_ne!(target.block.0, victim, "what is valid goes to another block");
            at = if media.flash.timed() {
                self.move_run(media, victim, next, target, run, cause, owner)
            } else {
                self.move_run_now(media, victim, next, target, run, cause)
            };
            started += run;
        }
        Relocated { cursor: at - first, started, stuck: false }
    }

    /// Moves the next `run` valid pages of `victim`, from page number `from` on, to `target` and the pages behind it,
    /// without time. Returns where to go on.
    #[inline]
    fn move_run_now(
        &mut self,
        media: &mut Media,
        victim: u32,
        from: UnitId,
        target: Place,
        run: u32,
        cause: Cause,
    ) -> UnitId {
        let pages = media.pages_per_block();
        let to = media.unit_at(target);
        let sequence = media.take_sequence(u64::from(run));
        let map = self.map.as_mut_slice();
        let valid = self.valid.as_mut_slice();
        let (lpns, low) = media.flash.oob.begin_run(target.block, target.page, sequence);
        let mut word = from.index() / 64;
        let mut bits = valid[word] & (u64::MAX << (from % 64));
        let mut source = from;
        for moved in 0..run {
            while bits == 0 {
                word += 1;
                bits = valid[word];
            }
            source = UnitId((word * 64) as u32 + bits.trailing_zeros());
            bits &= bits - 1;
            let lpn = lpns[source.index()];
            lpns[(to + moved).index()] = lpn;
            low[(to + moved).whole_page().index()] = (sequence as u32).wrapping_add(moved);
            map[lpn.index()] = to + moved;
        }
        let end = UnitId((victim + 1) * pages);
        assert!(source < end, "page {source} was moved out of block {victim}, and is behind it");
        clear_bits(valid, from.0, source.0 + 1);
        set_bits(valid, to.0, (to + run).0);
        media.pool.move_valid(victim, target.block.0, run);
        media.flash.execute_run(OpKind::Read, cause, BlockId(victim), run);
        media.flash.execute_run(OpKind::Program, cause, target.block, run);
        media.close_if_written(target.block);
        source + 1
    }

    /// As `move_run_now`, through the chips' queues: the reads first, so that planes can work together, then the programs.
    #[inline]
    #[allow(clippy::too_many_arguments)]
    fn move_run(
        &mut self,
        media: &mut Media,
        victim: u32,
        from: UnitId,
        target: Place,
        run: u32,
        cause: Cause,
        owner: Waiter,
    ) -> UnitId {
        const RUN: usize = 8;
        debug_assert!(run as usize <= RUN, "a job has few relocations in flight");
        let pages = media.pages_per_block();
        let first = media.unit_at(Place { block: BlockId(victim), page: 0 });
        let end = first + pages;
        let to = media.unit_at(target);
        let mut reads = [NONE; RUN];
        let mut lpns = [Lpn::NONE; RUN];
        let mut at = from;
        let bytes = media.unit_bytes;
        let keeps_contents = media.flash.store.sector_data_bytes() > 0;
        for (index, (read, lpn)) in reads.iter_mut().zip(&mut lpns).take(run as usize).enumerate() {
            let source = self.next_valid(at, end).expect("the victim has as many valid pages");
            *lpn = media.flash.oob.lpn(source);
            let place = Place { block: BlockId(victim), page: source - first };
            *read = media.read(place, bytes, cause, Waiter::None);
            if keeps_contents {
                copy_unit(media, source, to + index as u32);
            }
            at = source + 1;
        }
        debug_assert!(at <= end, "page {at} is behind block {victim}");
        debug_assert_eq!(self.next_valid(to, to + run), None, "pages from {to} on are taken, and hold current data");
        let valid = self.valid.as_mut_slice();
        clear_bits(valid, from.0, at.0);
        set_bits(valid, to.0, (to + run).0);
        media.pool.move_valid(victim, target.block.0, run);
        for moved in 0..run {
            let index = moved as usize;
            self.map.as_mut_slice()[lpns[index].index()] = to + moved;
            let place = Place { block: target.block, page: target.page + moved };
            media.program(
                place,
                &lpns[index..=index],
                Programming {
                    kind: OpKind::Program,
                    cause,
                    frontier: Frontier::Gc,
                    owner,
                    pins: &[BlockId(victim)],
                    after: &reads[index..=index],
                    // No read can fail here.
                    taken: &[],
                    source: Ppn::NONE,
                },
            );
        }
        at
    }
}

//! Pages that cannot be read and are had from the rest of their stripe.
//!
//! A waiter for such a page waits for the reads of the others. Then it goes on as if the page had been read. The
//! stripe has lost its protection, so the superblock is emptied as soon as it is closed; it is used again after its erase.
//! If one of the others cannot be read either, the page is lost.

use ssdlab_flash::{BlockId, Cause, Done, NONE, OpId, UnitId};

use super::Drive;
use crate::block_pool::BlockState;
use crate::media::{Place, replace_sector_data};
use crate::waiter::Waiter;

/// A page that is being had from the rest of its stripe.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rebuild {
    /// The read that failed; its pin is kept.
    done: Done,
    /// Reads of the rest that have not ended.
    left: u32,
    failed: bool,
    /// The XOR of the stripe was in RAM when it began: the stripe may be given up meanwhile.
    from_ram: bool,
}

impl Drive {
    /// A read failed: true if the rest of the page's stripe is read in its stead.
    pub(super) fn begin_rebuild(&mut self, done: &Done) -> bool {
        let place = Place { block: done.block, page: done.page };
        if done.cause == Cause::Rebuild || !self.media.can_rebuild(place) {
            return false;
        }
        let rebuild = Rebuild { done: *done, left: 0, failed: false, from_ram: self.media.has_parity_in_ram(place) };
        let slot = self.reads.rebuilds.insert(rebuild);
        let reads = self.media.read_stripe(place, done.cause, Waiter::Rebuild(slot));
        self.reads.rebuilds[slot].left = reads;
        if reads == 0 {
            self.rebuild_ended(slot, done.op);
        }
        true
    }

    /// A page of the rest of a stripe was read, by the operation `by`.
    pub(super) fn stripe_page_read(&mut self, slot: u32, failed: bool, by: OpId) {
        let rebuild = &mut self.reads.rebuilds[slot];
        assert!(rebuild.left > 0, "a page of a stripe was read, and rebuild {slot} waits for none");
        rebuild.left -= 1;
        rebuild.failed |= failed;
        if rebuild.left == 0 {
            self.rebuild_ended(slot, by);
        }
    }

    /// All that was wanted of a stripe was read, last by the operation `by`.
    fn rebuild_ended(&mut self, slot: u32, by: OpId) {
        let Rebuild { done, failed, from_ram, .. } = self.reads.rebuilds[slot];
        assert_eq!(self.reads.rebuilds[slot].left, 0, "rebuild {slot} ends when all of its stripe was read");
        self.reads.rebuilds.release(slot);
        if !failed {
            let place = Place { block: done.block, page: done.page };
            let wrong = self.media.rebuilt(place, done.then, from_ram);
            if let Some(command) = self.command_that_reads(Waiter::unpack(done.token)) {
                self.answer_rebuilt(command, &wrong);
            }
            self.page_was_rebuilt(place);
        }
        self.read_ended(&done, failed, by);
        if done.pin != BlockId::NONE {
            self.media.unpin(done.pin);
        }
        self.operation_ended(Waiter::unpack(done.token));
    }

    /// A read is answered with what was rebuilt.
    fn answer_rebuilt(&mut self, command: u32, wrong: &[(UnitId, Vec<u8>, Vec<u8>)]) {
        let per_sector = self.media.flash.store.sector_data_bytes();
        for (unit, before, now) in wrong {
            let first = u64::from(self.media.flash.oob.lpn(*unit).0) * self.sectors_per_unit;
            let state = &mut self.commands[command];
            for index in 0..self.sectors_per_unit {
                let sector = first + index;
                if (state.request.sector..state.request.end()).contains(&sector) && !state.sector_data.is_empty() {
                    let at = (sector - state.request.sector) as usize * per_sector;
                    let from = index as usize * per_sector..(index as usize + 1) * per_sector;
                    replace_sector_data(
                        &mut state.sector_data[at..at + per_sector],
                        per_sector,
                        &before[from.clone()],
                        &now[from],
                    );
                }
            }
        }
    }

    /// What else is valid beside a page that could not be read leaves as well, while the rest of its stripe can be read.
    pub(super) fn page_was_rebuilt(&mut self, place: Place) {
        let superblock = self.media.pool.superblocks.of(place.block);
        // Without time it may have been emptied and erased meanwhile: nothing of the stripe is left.
        if superblock != NONE && self.media.pool.state(superblock) != BlockState::Free {
            self.gc.retire(&mut self.media, superblock);
        }
    }
}

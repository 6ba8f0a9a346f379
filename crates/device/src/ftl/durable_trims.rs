//! What makes trims durable, for every mapping that unmaps at once: records of what is mapped, written as metadata.

use ssdlab_flash::Lpn;

use super::trims::TrimState;
use super::{NoSpace, TrimTarget};
use crate::media::Media;
use crate::seeded::{Bug, seeded};
use crate::waiter::Waiter;

/// A mapping whose trims are remembered on flash. What it says of its units comes first, what follows from that behind.
pub(super) trait DurableTrims {
    /// What is mapped, and which records are to be written.
    fn trims(&self) -> &TrimState;

    /// Mutable access to what is mapped, and which records are to be written.
    fn trims_mut(&mut self) -> &mut TrimState;

    /// The user's units; a segment's record is the unit of so many behind the segment's number.
    fn user_units(&self) -> u32;

    /// Whether a unit holds nothing, or what it holds is on flash and hides whatever was there before it was trimmed.
    fn is_settled(&self, media: &Media, lpn: Lpn) -> bool;

    /// Unmaps a mapped unit, all of its copies. Blocks that held one are marked: erased before the trim is on flash, an older
    /// copy elsewhere would come back.
    fn unmap(&mut self, media: &mut Media, lpn: Lpn);

    /// Starts the program of a record's words as the metadata unit `lpn`.
    fn write_record(
        &mut self,
        media: &mut Media,
        lpn: Lpn,
        words: Box<[u64]>,
        to: TrimTarget,
        owner: Waiter,
    ) -> Result<(), NoSpace>;

    /// Unmaps whole units `first..end`; returns how many held data.
    fn trim_units(&mut self, media: &mut Media, first: Lpn, end: Lpn) -> u64 {
        let mut at = first;
        let mut trimmed = 0;
        while let Some(lpn) = self.trims().next_mapped(at, end) {
            self.unmap(media, lpn);
            self.trims_mut().unmapped(lpn);
            self.trims_mut().mark_dirty(lpn);
            trimmed += 1;
            at = lpn + 1;
        }
        trimmed
    }

    /// `lpn` holds nothing that is on flash, and the next program writes it.
    fn note_revival(&mut self, media: &Media, lpn: Lpn) {
        if self.trims().in_use() && lpn.0 < self.user_units() && !seeded(Bug::MapBeforeData) {
            self.add_revival(media, lpn, media.sequence());
        }
    }

    /// `lpn` held nothing that was on flash when program number `since` wrote it.
    fn add_revival(&mut self, media: &Media, lpn: Lpn, since: u64) {
        if self.trims().has_many_revivals() {
            self.forget_settled_revivals(media);
            self.trims_mut().limit_revivals();
        }
        self.trims_mut().revive(lpn, since);
    }

    /// Drops the revivals of units that are on flash.
    fn forget_settled_revivals(&mut self, media: &Media) {
        let mut revivals = self.trims_mut().take_revivals();
        revivals.retain(|(lpn, _)| !self.is_settled(media, *lpn));
        self.trims_mut().put_revivals(revivals);
    }

    /// Starts the programs that make every trim so far survive a power cut; returns how many.
    fn save_records(&mut self, media: &mut Media, to: TrimTarget, owner: Waiter) -> Result<u32, NoSpace> {
        self.forget_settled_revivals(media);
        let mut started = 0;
        while let Some(segment) = self.trims().next_unsaved() {
            let user_units = self.user_units();
            let words = self.trims().record(media.sequence(), segment, user_units);
            self.write_record(media, Lpn(user_units + segment), words, to, owner)?;
            self.trims_mut().saved();
            started += 1;
        }
        Ok(started)
    }
}

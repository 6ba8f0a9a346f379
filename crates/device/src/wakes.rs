//! What has happened since the drive last looked.
//!
//! Media, collection and designs note here what a command, a job or an erase may wait for; the drive handles it in stages
//! ([`Drive::work`](crate::Drive)). Nothing else is told from there to the drive.

use crate::media::{FailedProgram, Place};
use crate::waiter::Waiter;

/// The list, one field for each stage.
#[derive(Default)]
pub(crate) struct Wakes {
    /// Programs that failed without time.
    pub(crate) failed: Vec<FailedProgram>,
    /// Pages that were read without time through the rest of their stripe.
    pub(crate) rebuilt: Vec<Place>,
    /// Superblocks whose last pin went: their erase is due.
    pub(crate) erasable: Vec<u32>,
    /// Groups in which collection may have work: a superblock was opened, or may be a victim now.
    pub(crate) groups: Vec<u32>,
    /// Who waited for map pages that are cached now.
    pub(crate) map_waiters: Vec<Waiter>,
    /// A waiter has used what was cached for it: others may have its place.
    pub(crate) map_slot_free: bool,
    /// A block of map pages is full, and may be the one that their collection waited for.
    pub(crate) map_block_closed: bool,
    /// Blocks were set aside for a log again.
    pub(crate) log_has_space: bool,
    /// A superblock was erased, or pages left the buffer: stalled commands may find space.
    pub(crate) space_freed: bool,
    /// A command waits until records and lists that free room are on flash.
    pub(crate) room_waits: bool,
    /// A group in which paced collection allowed the host nothing allows something now.
    pub(crate) pace_released: bool,
}

impl Wakes {
    /// Whether a waiter may go on with map pages, or may have the place of one.
    #[inline]
    pub(crate) fn is_for_map(&self) -> bool {
        self.map_slot_free || self.map_block_closed || self.log_has_space || !self.map_waiters.is_empty()
    }

    /// Whether anything but collection has work at once.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.is_for_space() || self.is_for_map() || !self.erasable.is_empty() || !self.failed.is_empty()
    }

    /// Whether stalled commands may find space.
    #[inline]
    pub(crate) fn is_for_space(&self) -> bool {
        self.space_freed || self.pace_released
    }

    /// Records or lists are on flash: a command that waits for the room that they free may find it.
    pub(crate) const fn room_may_be_free(&mut self) {
        if self.room_waits {
            (self.room_waits, self.space_freed) = (false, true);
        }
    }

    /// Whether stalled commands may find space, asked once: it is forgotten.
    pub(crate) fn take_space(&mut self) -> bool {
        let freed = self.is_for_space();
        (self.space_freed, self.pace_released) = (false, false);
        freed
    }
}

//! Room: which blocks the cache has to keep, and which a power cut may bring back.
//!
//! A dirty block that is evicted, cleaned or written clean needs no room any more. Until that is on flash a power cut undoes it, and
//! the block needs room again: so it counts until then.

use std::collections::BTreeSet;

use ssdlab_base::command_sets::cache::{NO_ROOM, WRITE_CLEAN};
use ssdlab_base::{Opcode, Refusal};
use ssdlab_flash::{Lpn, UnitId};

use super::Ssc;
use super::log::IN_SRAM;
use crate::ftl::LimitedRoom;
use crate::media::Media;
use crate::seeded::{Bug, seeded};

/// Blocks that are not looked at before there are so many of them.
const LOOKED_AT_FROM: usize = 1024;

/// Blocks that are not kept any more.
pub(super) struct Room {
    /// Those that a power cut may bring back.
    returning: BTreeSet<u32>,
    /// They are looked at when there are so many.
    look_at: usize,
}

impl Default for Room {
    fn default() -> Room {
        Room { returning: BTreeSet::new(), look_at: LOOKED_AT_FROM }
    }
}

impl Room {
    /// Nothing can come back.
    pub(super) fn clear(&mut self) {
        *self = Room::default();
    }
}

impl Ssc {
    /// A block is not kept any more; a power cut may bring it back.
    pub(super) fn may_return(&mut self, media: &Media, lpn: Lpn) {
        let Some(room) = self.room.as_mut().filter(|_| !seeded(Bug::ReturningForgotten)) else { return };
        room.returning.insert(lpn.0);
        if room.returning.len() >= room.look_at {
            self.settle_returning(media);
        }
    }

    /// A block is kept from now on.
    pub(super) fn is_kept_again(&mut self, lpn: Lpn) {
        if let Some(room) = &mut self.room {
            room.returning.remove(&lpn.0);
        }
    }

    /// Forgets blocks that no power cut brings back.
    pub(super) fn settle_returning(&mut self, media: &Media) {
        let Some(mut room) = self.room.take() else { return };
        room.returning.retain(|lpn| self.comes_back(media, *lpn));
        room.look_at = LOOKED_AT_FROM.max(2 * room.returning.len());
        self.room = Some(room);
    }

    /// Whether a power cut now may bring back a block as one that has to be kept.
    fn comes_back(&self, media: &Media, lpn: u32) -> bool {
        let is_durable = |unit: UnitId| unit != UnitId::NONE && media.is_durable(media.page_of(unit));
        let Some(slot) = self.table.slot(Lpn(lpn)) else { return false };
        let fact = self.log.facts.get(&lpn);
        let is_told =
            fact.is_none_or(|fact| fact.home != IN_SRAM && is_durable(self.log.units[fact.home as usize].unit));
        if slot.unit == UnitId::NONE {
            return !is_told;
        }
        // Of one that was written clean, after an eviction maybe, its copy tells that; of one that was cleaned, the note that names its copy.
        let sequence = media.sequence_of(slot.unit);
        let is_cleaned = fact.is_some_and(|fact| fact.clean && fact.floor == Some(sequence));
        if is_cleaned { !is_told } else { !is_durable(slot.unit) }
    }

    /// Blocks of a snapshot whose notes are in SRAM alone, and which are not kept.
    pub(super) fn recount_returning(&mut self) {
        let in_sram: Vec<Lpn> = self.log.in_sram.iter().copied().map(Lpn).collect();
        let unkept: BTreeSet<u32> = in_sram.into_iter().filter(|lpn| !self.is_kept(*lpn)).map(|lpn| lpn.0).collect();
        if let Some(room) = &mut self.room {
            room.returning = unkept;
        }
    }
}

impl LimitedRoom for Ssc {
    fn room(&self) -> u64 {
        u64::from(self.user_units)
    }

    fn kept(&self) -> u64 {
        let log_units = self.log.in_use_count() as u64;
        assert!(log_units <= self.kept_units, "{log_units} units of the log are among {} kept", self.kept_units);
        self.kept_units - log_units
    }

    fn is_kept(&self, lpn: Lpn) -> bool {
        self.table.get(lpn).is_some_and(|present| !self.is_loose(present.clean))
    }

    fn may_return(&self) -> u64 {
        self.room.as_ref().map_or(0, |room| room.returning.len() as u64)
    }

    fn keeps(&self, opcode: Opcode) -> bool {
        !self.is_loose(opcode == WRITE_CLEAN)
    }

    fn keeps_expendable(&self) -> bool {
        !self.is_loose(true)
    }

    fn refusal(&self) -> Refusal {
        NO_ROOM
    }
}

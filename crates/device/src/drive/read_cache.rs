//! Reads that the buffer keeps, where its policy wants them: from flash to clean sectors.

use ssdlab_flash::{Lpn, UnitId};

use super::Drive;
use crate::Status;
use crate::ftl::Found;

/// Sectors of a unit that a read fetches from flash, and the number of the page that they are from.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadToKeep {
    lpn: Lpn,
    mask: u64,
    sequence: u64,
}

impl Drive {
    /// A read begins to fetch sectors of a unit from flash, which the buffer may keep when the command is through.
    #[inline(never)]
    pub(super) fn will_keep(&mut self, command: u32, lpn: Lpn, mask: u64, unit: UnitId) {
        let sequence = self.media.sequence_of(unit);
        self.stage.reads_to_keep.entry(command).or_default().push(ReadToKeep { lpn, mask, sequence });
    }

    /// A read found all it wanted of a unit in a buffer that keeps reads.
    #[inline(never)]
    pub(super) fn hit_buffer(&mut self, lpn: Lpn) {
        let buffer = self.stage.buffer.as_mut().expect("reads are kept in a buffer");
        if let Some(slot) = buffer.find(lpn) {
            buffer.read_hit(slot);
        }
    }

    /// A read is through: what it fetched and is still current stays in the buffer as clean sectors, as far as dropping
    /// clean units makes room. Where it does not, the next unit leaves, for reads to come.
    pub(super) fn keep_read(&mut self, command: u32) {
        let Some(read) = self.stage.reads_to_keep.remove(&command) else { return };
        if self.commands[command].status != Status::Success {
            return;
        }
        for ReadToKeep { lpn, mask, sequence } in read {
            let current = match self.ftl.find(lpn) {
                Found::At { unit } => self.media.sequence_of(unit) == sequence,
                // Nor is a unit kept that several versions make up.
                Found::Unmapped | Found::Versions => false,
            };
            let missing = mask & !self.buffered_mask(lpn);
            if !current || missing == 0 || !self.room_for_read(missing.count_ones()) {
                continue;
            }
            // Making room may have taken the unit's other sectors, not those that are missing.
            let sector_data = self.sector_data_read(command, lpn, missing);
            self.stage.buffer.as_mut().expect("reads are kept in a buffer").keep_clean(lpn, missing, &sector_data);
        }
    }

    fn room_for_read(&mut self, sectors: u32) -> bool {
        loop {
            let buffer = self.stage.buffer.as_mut().expect("reads are kept in a buffer");
            if buffer.room() >= u64::from(sectors) {
                return true;
            }
            // Those who wait for room with data come first.
            if buffer.is_empty() || !self.waiting.stalled.is_empty() {
                return false;
            }
            let mut slots = std::mem::take(&mut self.stage.slots);
            self.choose_victims(&mut slots);
            let buffer = self.stage.buffer.as_ref().expect("reads are kept in a buffer");
            let clean = slots.iter().all(|slot| buffer.entry(*slot).dirty() == 0);
            // With pages on their way already there will be room. If flash has none, a write will wait for it.
            let sent = if clean || self.stage.leaving_sectors == 0 { self.evict(&slots, None) } else { Ok(()) };
            self.stage.slots = slots;
            if !clean || sent.is_err() {
                return false;
            }
        }
    }

    /// Sector data of a unit as a read found it; only those of the sectors in `mask` mean anything.
    fn sector_data_read(&self, command: u32, lpn: Lpn, mask: u64) -> Vec<u8> {
        debug_assert!(mask != 0, "no sector of unit {lpn} is kept");
        let per_sector = self.media.flash.store.sector_data_bytes();
        let mut sector_data = vec![0; self.sectors_per_unit as usize * per_sector];
        let command = &self.commands[command];
        for sector in (0..self.sectors_per_unit).filter(|sector| per_sector > 0 && mask >> sector & 1 != 0) {
            let from =
                (u64::from(lpn.0) * self.sectors_per_unit + sector - command.request.sector) as usize * per_sector;
            sector_data[sector as usize * per_sector..][..per_sector]
                .copy_from_slice(&command.sector_data[from..from + per_sector]);
        }
        sector_data
    }
}

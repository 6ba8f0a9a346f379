//! Recovery after power loss, from OOB areas or from lists of owners alone: `oob_recovery.rs` finds the newest copies, what follows
//! from them is counted here.

use ssdlab_flash::{Lpn, UnitId};

use super::{PageFtl, UNMAPPED};
use crate::ftl::oob_recovery::OnePlace;
use crate::media::Media;
use crate::recovery_reads::RecoveryReads;

impl OnePlace for PageFtl {
    #[inline]
    fn place_of(&self, lpn: Lpn) -> UnitId {
        self.map.get(lpn.index())
    }

    #[inline]
    fn found(&mut self, lpn: Lpn, unit: UnitId) {
        self.map.set(lpn.index(), unit);
    }
}

impl PageFtl {
    pub(super) fn rebuild(&mut self, media: &mut Media, reads: &mut RecoveryReads) {
        self.map.as_mut_slice().fill(UNMAPPED);
        self.valid.as_mut_slice().fill(0);
        self.trims.clear();
        self.mapped_units = 0;
        if media.lists_owners() {
            self.find_listed_units(media, reads);
        } else {
            self.find_units(media, reads);
        }
        for lpn in Lpn::each(Lpn(0)..Lpn(self.map.len() as u32)) {
            let unit = self.map.get(lpn.index());
            if unit != UNMAPPED {
                self.mapped_units += 1;
                self.trims.mapped(lpn);
                let owner = media.flash.oob.lpn(unit);
                assert_eq!(owner, lpn, "unit {unit} is mapped, and its page is of another LPN");
                let place = media.place_of(unit);
                assert!(
                    media.flash.is_written(place.block, place.page),
                    "LPN {lpn} is mapped to {place:?}, not written"
                );
                self.set_valid(media, unit, media.block_of(unit));
            }
        }
    }
}

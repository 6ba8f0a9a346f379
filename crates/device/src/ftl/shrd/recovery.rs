//! Recovery: the map as of any demand-loading FTL, and then the remap that the drive does by itself, since the host's table is
//! gone (autoremap, SHRD, section 4.5).
//!
//! Each unit in a log block that was active goes to its oLPN if the host wrote it after what is there, or after the trim of
//! which the entry tells. All tLPNs are empty then.

use std::collections::BTreeSet;

use ssdlab_flash::Lpn;

use super::Shrd;
use super::rwlb::FIRST_NUMBER;
use crate::ftl::cached_map::{Found, Logged};
use crate::media::Media;
use crate::recovery_reads::RecoveryReads;
use crate::seeded::{Bug, seeded};

impl Shrd {
    pub(super) fn autoremap(&mut self, media: &mut Media, reads: &mut RecoveryReads) {
        let mut found = self.base.map.scan(&mut self.base.data, media, reads);
        self.empty_log(&mut found);
        let mut logged = std::mem::take(&mut found.logged);
        // Of copies with the same number one was moved: both are right, and the later one stays.
        logged.sort_by_key(|copy| (copy.number, copy.sequence));
        if seeded(Bug::AutoremapAnyWins) {
            logged.reverse();
        }
        for copy in logged {
            let Logged { lpn, unit, .. } = copy;
            if lpn.0 >= self.rwlb.user_units() || !self.is_newer(media, reads, &copy) {
                continue;
            }
            media.flash.oob.rename(unit, lpn);
            self.base.map.found(&mut self.base.data, &mut found, lpn, Some(unit));
            self.counters.autoremapped += 1;
        }
        let number = if seeded(Bug::NumbersBeginAnew) { FIRST_NUMBER } else { (found.number | 1) + 1 };
        assert!(number < 1 << 31, "write {number} of the host is behind what an entry has room for");
        self.rwlb.set_number(media, number);
        self.base.map.scanned(&mut self.base.data, media, found);
        self.rwlb.found_blocks(media);
        self.count_open_names(media);
    }

    /// The entries of all tLPNs are empty, and their map pages dirty where they are not on flash.
    fn empty_log(&mut self, found: &mut Found) {
        let first = self.rwlb.user_units();
        let mapped: BTreeSet<Lpn> =
            (first..first + self.rwlb.units()).map(Lpn).filter(|lpn| self.base.data.unit_of(*lpn).is_some()).collect();
        for lpn in mapped {
            self.base.map.found(&mut self.base.data, found, lpn, None);
        }
    }

    /// Whether the host wrote a copy after what the map has of its unit. That tells its OOB area, which is read.
    fn is_newer(&self, media: &Media, reads: &mut RecoveryReads, copy: &Logged) -> bool {
        if let Some(since) = self.base.map.is_trimmed_since(copy.lpn) {
            return since <= copy.number;
        }
        let Some(home) = self.base.data.unit_of(copy.lpn) else { return true };
        if home == copy.unit || seeded(Bug::AutoremapAnyWins) {
            return true;
        }
        let place = media.place_of(home);
        if !media.flash.is_written(place.block, place.page) {
            return true;
        }
        reads.oob(place);
        // Its block was erased since, and the power went while the page was written again.
        if media.flash.blocks.get(place.block).torn || !media.flash.blocks.readable(media.ppn_at(place)) {
            return true;
        }
        let origin = media.flash.oob.origin(home);
        // An entry whose unit was remapped since, by a map page that is not on flash, may name what was erased and written again.
        let is_of_it = media.flash.oob.lpn(home) == copy.lpn || origin.lpn == copy.lpn;
        // Of two with one number, one was moved out of a block that goes bad.
        let sequence = media.flash.oob.sequence(place.block, place.page);
        !is_of_it || (origin.number, sequence) < (copy.number, copy.sequence)
    }
}

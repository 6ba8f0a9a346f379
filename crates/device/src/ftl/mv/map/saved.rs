//! The map in a snapshot.

use std::io::{self, Read, Write};

use ssdlab_base::{Saved, damaged, saved};
use ssdlab_flash::Lpn;

use super::{Index, VersionMap};

saved!(VersionMap: entries, index, odd);

/// Distances are in the entries; slots are in tables.
impl Saved for Index {
    fn save_to(&self, to: &mut dyn Write) -> io::Result<()> {
        match self {
            Index::Direct(_) => Ok(()),
            Index::Indirect(groups) => groups.save_to(to),
        }
    }

    fn load_from(&mut self, from: &mut dyn Read) -> io::Result<()> {
        match self {
            Index::Direct(_) => Ok(()),
            Index::Indirect(groups) => groups.load_from(from),
        }
    }
}

impl VersionMap {
    /// Counts chains and slots anew, and refuses entries that lead nowhere. The chains are still to be checked against the chips.
    pub(in crate::ftl::mv) fn accept(&mut self) -> io::Result<()> {
        for (lpn, chain) in &self.odd {
            let known = lpn.0 < self.len() && self.is_mapped(*lpn) && self.split.pt(self.entry(*lpn)) == 1;
            if !known || chain.is_empty() {
                return Err(damaged("a list of versions belongs to no page"));
            }
        }
        (self.chains, self.alone) = (0, 0);
        for lpn in self.lpns() {
            if !self.split.is_packed(self.entry(lpn)) {
                return Err(damaged("a map entry has bits beside its fields"));
            }
            if !self.is_mapped(lpn) || self.full_page(lpn).is_some() {
                continue;
            }
            if self.checked_chain(lpn).is_none() {
                return Err(damaged("a map entry leads nowhere"));
            }
            self.chains += 1;
            self.alone += u64::from(!self.is_odd(lpn) && self.split.pt(self.entry(lpn)) == 0);
        }
        assert!(self.alone <= self.chains, "compacted versions alone are chains, too");
        let slots_of = |lpn| self.slots(lpn);
        let all_used_once = match &self.index {
            Index::Direct(_) => Some((0, 0)),
            Index::Indirect(groups) => {
                groups.counted(slots_of, |slot| self.split.is_packed(slot) && !self.split.compacted(slot))
            }
        };
        let counted = all_used_once.ok_or_else(|| damaged("a slot of versions is damaged, of no page, or of two"))?;
        if let Index::Indirect(groups) = &mut self.index {
            groups.set_counts(counted);
        }
        Ok(())
    }

    /// The slots that the chain of a logical page takes; its entry leads to pages.
    fn slots(&self, lpn: Lpn) -> Vec<u32> {
        let (Index::Indirect(groups), false) = (&self.index, self.is_odd(lpn) || !self.is_mapped(lpn)) else {
            return Vec::new();
        };
        let mut slots = Vec::new();
        let mut slot = self.split.pt(self.entry(lpn));
        while slot != 0 {
            slots.push(slot);
            assert!(slots.len() < self.bound as usize, "the chain of LPN {lpn} is within its bound");
            slot = groups.in_use_of(lpn).map_or(0, |table| self.split.pt(table[slot as usize - 1]));
        }
        slots
    }
}

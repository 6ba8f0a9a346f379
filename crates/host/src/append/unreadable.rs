//! Sectors whose contents cannot be read any more, although their unit was written again: a write of a part of a unit ends well
//! even if the rest is lost.

use rustc_hash::FxHashMap;

use super::log::Entry;

/// Sectors that one entry of the log tells of.
const PART: u32 = 16;

/// By unit: a bit for each sector that is lost.
#[derive(Default)]
pub(super) struct Lost(FxHashMap<u32, u64>);

impl Lost {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sectors of a unit that are lost.
    pub(super) fn get(&self, unit: u32) -> u64 {
        if self.0.is_empty() { 0 } else { self.0.get(&unit).copied().unwrap_or(0) }
    }

    /// These sectors of a unit are lost, and no others; gives back what the log has to say of that.
    pub(super) fn set(&mut self, unit: u32, sectors: u64) -> impl Iterator<Item = Entry> + use<> {
        let before = self.get(unit);
        if sectors == 0 {
            self.0.remove(&unit);
        } else {
            self.0.insert(unit, sectors);
        }
        parts(sectors).filter(move |(part, bits)| (before >> (part * PART)) as u16 != *bits).map(entry(unit))
    }

    /// The log says so of a part of a unit.
    pub(super) fn set_part(&mut self, unit: u32, part: u8, bits: u16) {
        let at = u32::from(part) * PART;
        let others = self.get(unit) & !(0xffff << at);
        drop(self.set(unit, others | u64::from(bits) << at));
    }

    /// What the log has to say of all units.
    pub(super) fn entries(&self) -> Vec<Entry> {
        let mut units: Vec<(&u32, &u64)> = self.0.iter().collect();
        units.sort_unstable();
        let of_unit = |(unit, sectors): (&u32, &u64)| {
            parts(*sectors).filter(|(_, bits)| *bits != 0).map(entry(*unit)).collect::<Vec<Entry>>()
        };
        units.into_iter().flat_map(of_unit).collect()
    }
}

fn parts(sectors: u64) -> impl Iterator<Item = (u32, u16)> {
    (0..64 / PART).map(move |part| (part, (sectors >> (part * PART)) as u16))
}

fn entry(unit: u32) -> impl Fn((u32, u16)) -> Entry {
    move |(part, bits)| Entry::Lost { unit, part: part as u8, bits }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use ssdlab_base::rng;

    use super::*;

    /// A reader of all entries and a reader of those of the end alone know the same.
    #[test]
    fn entries_tell_what_is_lost() {
        let mut rng = rng(1, "lost");
        let (mut lost, mut heard) = (Lost::default(), Lost::default());
        for _ in 0..2000 {
            let unit = rng.random_range(0..20);
            let sectors = if rng.random_bool(0.3) { 0 } else { rng.random::<u64>() & rng.random::<u64>() };
            for entry in lost.set(unit, sectors) {
                let Entry::Lost { unit, part, bits } = entry else { panic!("{entry:?}") };
                heard.set_part(unit, part, bits);
            }
            assert_eq!(lost.get(unit), sectors);
            assert_eq!(lost.entries(), heard.entries());
        }
    }
}

//! Packing: small requests that lie one behind the other in the log go down as one write (SHRD, section 4.2).

use std::collections::VecDeque;

/// Why a pack was closed (SHRD, Table 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// No more fits.
    Full,
    /// A flush came.
    Flush,
    /// No more requests waited.
    Idle,
}

/// Requests that go down as one write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pack {
    /// Its first place.
    pub(crate) first: u32,
    /// The unit for each place.
    pub(crate) units: Vec<u32>,
    /// What is to be written, where contents are kept.
    pub(crate) cells: Vec<u8>,
    /// Its requests, as the driver calls them.
    pub(crate) commands: Vec<u32>,
}

/// Packs that have not been sent: the last one may take more.
pub(crate) struct Packing {
    most_units: usize,
    open: Option<Pack>,
    closed: VecDeque<Pack>,
    /// Packs by the reason for which they were closed: full, flush, idle.
    pub(crate) closed_for: [u64; 3],
    /// Packs below 32 KB.
    pub(crate) below_32k: u64,
    units_of_32k: usize,
}

impl Packing {
    /// Packs of at most so many units, of `unit_bytes` each.
    pub(crate) fn new(most_units: u32, unit_bytes: u32) -> Packing {
        Packing {
            most_units: most_units as usize,
            open: None,
            closed: VecDeque::new(),
            closed_for: [0; 3],
            below_32k: 0,
            units_of_32k: (32 << 10) / unit_bytes.max(1) as usize,
        }
    }

    /// Adds a request of consecutive units from `unit` on, at places from `first` on.
    pub(crate) fn add(&mut self, command: u32, unit: u32, count: u32, first: u32, cells: &[u8]) {
        let follows = |pack: &Pack| pack.first + pack.units.len() as u32 == first;
        let fits = |pack: &Pack| pack.units.len() + count as usize <= self.most_units;
        if self.open.as_ref().is_some_and(|pack| !follows(pack) || !fits(pack)) {
            self.close(Reason::Full);
        }
        let pack = self.open.get_or_insert_with(|| Pack { first, ..Pack::default() });
        pack.units.extend(unit..unit + count);
        pack.cells.extend_from_slice(cells);
        pack.commands.push(command);
        if pack.units.len() >= self.most_units {
            self.close(Reason::Full);
        }
    }

    /// The open pack takes no more.
    pub(crate) fn close(&mut self, reason: Reason) {
        if let Some(pack) = self.open.take() {
            self.closed_for[reason as usize] += 1;
            self.below_32k += u64::from(pack.units.len() < self.units_of_32k);
            self.closed.push_back(pack);
        }
    }

    /// Whether a pack may take more.
    pub(crate) const fn has_open(&self) -> bool {
        self.open.is_some()
    }

    /// The next pack to send, which takes no more.
    pub(crate) fn next(&mut self) -> Option<Pack> {
        self.closed.pop_front()
    }

    /// The first place of the oldest pack.
    pub(crate) fn oldest(&self) -> Option<u32> {
        self.closed.front().or(self.open.as_ref()).map(|pack| pack.first)
    }

    /// Takes all packs apart, and gives back their requests in order.
    pub(crate) fn take_apart(&mut self) -> Vec<Pack> {
        self.closed.drain(..).chain(self.open.take()).collect()
    }

    /// Counts from 0.
    pub(crate) fn reset(&mut self) {
        (self.closed_for, self.below_32k) = ([0; 3], 0);
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use ssdlab_base::rng;

    use super::*;

    /// The paper's rules on a list: what is in a pack follows, never exceeds the limit, and no pack closes before it must.
    #[test]
    fn packs_are_what_the_rules_say() {
        let mut rng = rng(5, "packing");
        for most in [1, 3, 8, 128] {
            let mut packing = Packing::new(most, 4096);
            let (mut model, mut open) = (Vec::<(Reason, Vec<(u32, u32)>)>::new(), Vec::<(u32, u32)>::new());
            let (mut place, mut command) = (0, 0);
            for _ in 0..4000 {
                match rng.random_range(0..10) {
                    0 => {
                        packing.close(Reason::Flush);
                        if !open.is_empty() {
                            model.push((Reason::Flush, std::mem::take(&mut open)));
                        }
                    }
                    1 => {
                        packing.close(Reason::Idle);
                        if !open.is_empty() {
                            model.push((Reason::Idle, std::mem::take(&mut open)));
                        }
                    }
                    _ => {
                        let count = rng.random_range(1..=most.min(5));
                        // The ring begins anew, now and then.
                        let first = if rng.random_bool(0.05) { place + 7 } else { place };
                        if open.len() + count as usize > most as usize || (first != place && !open.is_empty()) {
                            model.push((Reason::Full, std::mem::take(&mut open)));
                        }
                        packing.add(command, 10 * command, count, first, &[]);
                        open.extend((0..count).map(|index| (10 * command + index, first + index)));
                        (place, command) = (first + count, command + 1);
                        if open.len() == most as usize {
                            model.push((Reason::Full, std::mem::take(&mut open)));
                        }
                    }
                }
                assert_eq!(packing.has_open(), !open.is_empty());
            }
            packing.close(Reason::Idle);
            if !open.is_empty() {
                model.push((Reason::Idle, open));
            }
            for reason in [Reason::Full, Reason::Flush, Reason::Idle] {
                let expected = model.iter().filter(|(of, _)| *of == reason).count();
                assert_eq!(packing.closed_for[reason as usize], expected as u64, "{reason:?}");
            }
            assert_eq!(packing.below_32k, model.iter().filter(|(_, units)| units.len() < 8).count() as u64);
            for (_, expected) in model {
                let pack = packing.next().expect("as many packs as the model has");
                let units: Vec<_> = pack.units.iter().copied().zip(pack.first..).collect();
                assert_eq!(units, expected);
            }
            assert_eq!(packing.next(), None);
        }
    }
}

//! The ring of places (SHRD, Figure 5): given out from `seq_ptr` on, and taken back from `rand_ptr` on.

/// Places of a log, given out in turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ring {
    places: u32,
    /// The next place that is given out.
    seq_ptr: u32,
    /// The first place that is in use.
    rand_ptr: u32,
    /// Places in use.
    used: u32,
}

impl Ring {
    pub(crate) const fn new(places: u32) -> Ring {
        Ring { places, seq_ptr: 0, rand_ptr: 0, used: 0 }
    }

    /// One in which the `used` places from `rand_ptr` on are in use.
    pub(crate) const fn resumed(places: u32, rand_ptr: u32, used: u32) -> Ring {
        assert!(rand_ptr < places && used <= places, "places in use are places of the ring");
        Ring { places, seq_ptr: (rand_ptr + used) % places, rand_ptr, used }
    }

    /// Places that can be given out one behind the other now.
    const fn room(&self) -> u32 {
        let (free, before_wrap) = (self.places - self.used, self.places - self.seq_ptr);
        if free < before_wrap { free } else { before_wrap }
    }

    /// Places that are not in use.
    pub(crate) const fn free(&self) -> u32 {
        self.places - self.used
    }

    /// Places to the end of the ring.
    pub(crate) const fn before_wrap(&self) -> u32 {
        self.places - self.seq_ptr
    }

    /// Gives out `count` places, and returns the first.
    pub(crate) fn take(&mut self, count: u32) -> u32 {
        assert!(count > 0 && count <= self.room(), "{count} places are taken of {}", self.room());
        let first = self.seq_ptr;
        self.seq_ptr = (self.seq_ptr + count) % self.places;
        self.used += count;
        first
    }

    /// Places in use.
    pub(crate) const fn used(&self) -> u32 {
        self.used
    }

    /// The places in use that were given out first, `count` of them, in order.
    pub(crate) fn oldest(&self, count: u32) -> impl Iterator<Item = u32> + use<> {
        assert!(count <= self.used, "{count} places of {} in use", self.used);
        let (first, places) = (self.rand_ptr, self.places);
        (0..count).map(move |index| (first + index) % places)
    }

    /// How many places in use were given out before one of them.
    pub(crate) const fn before(&self, place: u32) -> u32 {
        (place + self.places - self.rand_ptr) % self.places
    }

    /// The `count` places that were given out first are free again.
    pub(crate) fn release(&mut self, count: u32) {
        assert!(count <= self.used, "{count} places are freed, of {} in use", self.used);
        self.rand_ptr = (self.rand_ptr + count) % self.places;
        self.used -= count;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use rand::RngExt;
    use ssdlab_base::rng;

    use super::*;

    #[test]
    fn places_come_in_turn_and_go_in_turn() {
        let mut rng = rng(3, "ring");
        for places in [1, 4, 37] {
            let (mut ring, mut in_use, mut next) = (Ring::new(places), VecDeque::new(), 0);
            for _ in 0..5000 {
                let room = (places - in_use.len() as u32).min(places - next);
                assert_eq!(ring.room(), room);
                if room > 0 && rng.random_bool(0.6) {
                    let count = rng.random_range(1..=room);
                    assert_eq!(ring.take(count), next);
                    in_use.extend(next..next + count);
                    next = (next + count) % places;
                } else if !in_use.is_empty() {
                    let count = rng.random_range(1..=in_use.len() as u32);
                    assert!(ring.oldest(count).eq(in_use.iter().copied().take(count as usize)));
                    let last = in_use[count as usize - 1];
                    assert_eq!(ring.before(last), count - 1);
                    ring.release(count);
                    in_use.drain(..count as usize);
                }
                assert_eq!(ring.used() as usize, in_use.len());
            }
        }
    }
}

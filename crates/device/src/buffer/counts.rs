//! Counts over numbered places, with prefix sums: a Fenwick tree over groups of 64 places.

/// Places in a group: their counts are added up one by one, groups by the tree.
const GROUP: usize = 64;

/// How many elements are at each place.
pub(super) struct Counts {
    at: Vec<u32>,
    /// A Fenwick tree over groups; entry 0 is unused.
    tree: Vec<u32>,
    total: u32,
}

impl Counts {
    /// `places` places, a power of two and at least 64, all empty.
    pub(super) fn new(places: usize) -> Counts {
        debug_assert!(places.is_power_of_two() && places >= GROUP, "{places} places");
        Counts { at: vec![0; places], tree: vec![0; places / GROUP + 1], total: 0 }
    }

    pub(super) fn places(&self) -> usize {
        self.at.len()
    }

    pub(super) fn total(&self) -> u32 {
        self.total
    }

    #[inline]
    pub(super) fn at(&self, place: u32) -> u32 {
        self.at[place as usize]
    }

    #[inline]
    pub(super) fn add(&mut self, place: u32, count: u32) {
        self.at[place as usize] += count;
        self.total += count;
        let mut node = place as usize / GROUP + 1;
        while node < self.tree.len() {
            self.tree[node] += count;
            node += node & node.wrapping_neg();
        }
    }

    #[inline]
    pub(super) fn take(&mut self, place: u32, count: u32) {
        debug_assert!(self.at[place as usize] >= count, "{count} elements are taken of {}", self.at[place as usize]);
        self.at[place as usize] -= count;
        self.total -= count;
        let mut node = place as usize / GROUP + 1;
        while node < self.tree.len() {
            self.tree[node] -= count;
            node += node & node.wrapping_neg();
        }
    }

    /// Elements at places before `place`.
    #[inline]
    pub(super) fn before(&self, place: u32) -> u32 {
        let group = place as usize / GROUP;
        let mut sum: u32 = self.at[group * GROUP..place as usize].iter().sum();
        let mut node = group;
        while node > 0 {
            sum += self.tree[node];
            node &= node - 1;
        }
        sum
    }

    /// The first place up to which (itself included) there are at least `wanted` elements; `wanted` is from 1 to the total.
    pub(super) fn reaching(&self, wanted: u32) -> u32 {
        debug_assert!((1..=self.total).contains(&wanted), "{wanted} of {} elements", self.total);
        let (mut group, mut left) = (0, wanted);
        let mut step = (self.tree.len() - 1).next_power_of_two();
        while step > 0 {
            let next = group + step;
            if next < self.tree.len() && self.tree[next] < left {
                group = next;
                left -= self.tree[next];
            }
            step /= 2;
        }
        let mut place = group * GROUP;
        while self.at[place] < left {
            left -= self.at[place];
            place += 1;
        }
        debug_assert!(self.before(place as u32) < wanted, "element {wanted} is before place {place}");
        place as u32
    }

    /// RAM: a count a place, and one a group.
    pub(super) fn bytes(&self) -> u64 {
        (self.at.len() + self.tree.len()) as u64 * 4
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use ssdlab_base::rng;

    use super::*;

    #[test]
    fn sums_and_searches_are_those_of_a_plain_list() {
        let mut rng = rng(1, "counts");
        for places in [64, 128, 1024] {
            let mut counts = Counts::new(places);
            let mut plain = vec![0_u32; places];
            for _ in 0..5000 {
                let place = rng.random_range(0..places);
                if rng.random_bool(0.6) {
                    let count = rng.random_range(0..5);
                    counts.add(place as u32, count);
                    plain[place] += count;
                } else {
                    let count = rng.random_range(0..=plain[place]);
                    counts.take(place as u32, count);
                    plain[place] -= count;
                }
                let probe = rng.random_range(0..places);
                assert_eq!(counts.before(probe as u32), plain[..probe].iter().sum::<u32>());
                assert_eq!(counts.total(), plain.iter().sum::<u32>());
                if counts.total() > 0 {
                    let wanted = rng.random_range(1..=counts.total());
                    let found = counts.reaching(wanted) as usize;
                    assert!(plain[..=found].iter().sum::<u32>() >= wanted);
                    assert!(plain[..found].iter().sum::<u32>() < wanted);
                }
            }
        }
    }
}

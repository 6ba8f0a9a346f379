//! A keyed permutation of `0..n`: every value once, in an order that looks random, in no memory.

/// A bijection of `0..n` chosen by a key.
///
/// It mixes within the next power of two and walks the cycle until it is back inside `n`, which takes fewer than two
/// steps on average. It promises that every value comes exactly once; it never promises cryptographic quality.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Permutation {
    size: u64,
    mask: u64,
    shift: u32,
    /// How many of the keys are used.
    rounds: usize,
    add: [u64; MOST_ROUNDS],
    multiply: [u64; MOST_ROUNDS],
}

/// Rounds of mixing of a large permutation.
const ROUNDS: usize = 3;

/// Rounds of a small one: with three, a key of few bits in a hundred keeps neighbours together.
const MOST_ROUNDS: usize = 5;

/// Bits of the values of a small one, at most.
const SMALL_BITS: u32 = 14;

impl Permutation {
    /// A permutation of `0..size`; `draw` gives six to ten random words, the key.
    pub(crate) fn new(size: u64, mut draw: impl FnMut() -> u64) -> Permutation {
        assert!(size > 0, "a permutation of nothing has no values");
        let bits = 64 - (size - 1).leading_zeros();
        let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
        let rounds = if bits <= SMALL_BITS { MOST_ROUNDS } else { ROUNDS };
        let (add, multiply) = ([0; MOST_ROUNDS], [0; MOST_ROUNDS]);
        let mut permutation = Permutation { size, mask, shift: (bits / 2).max(1), rounds, add, multiply };
        for round in 0..rounds {
            permutation.add[round] = draw() & mask;
            // An odd factor has an inverse modulo a power of two.
            permutation.multiply[round] = (draw() | 1) & (mask | 1);
        }
        permutation
    }

    /// The value at `index`, which must be below the size.
    #[inline]
    pub(crate) fn at(&self, index: u64) -> u64 {
        debug_assert!(index < self.size);
        // Counts that are known are unrolled.
        if self.rounds == ROUNDS { self.mixed::<ROUNDS>(index) } else { self.mixed::<MOST_ROUNDS>(index) }
    }

    #[inline]
    fn mixed<const COUNT: usize>(&self, index: u64) -> u64 {
        let mut value = index;
        loop {
            for round in 0..COUNT {
                value = value.wrapping_add(self.add[round]) & self.mask;
                value ^= value >> self.shift;
                value = value.wrapping_mul(self.multiply[round]) & self.mask;
            }
            value ^= value >> self.shift;
            if value < self.size {
                return value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_value_comes_exactly_once(size in 1_u64..5000, seed in any::<u64>()) {
            let mut rng = ssdlab_base::rng(seed, "permutation test");
            let permutation = Permutation::new(size, || rng.next_u64());
            let mut seen = vec![false; size as usize];
            for index in 0..size {
                let value = permutation.at(index) as usize;
                prop_assert!(!seen[value]);
                seen[value] = true;
            }
        }
    }

    #[test]
    fn few_values_are_spread_with_every_key() {
        // 26 of 128 in eighths: the statistic is one of chi squared with 7 degrees of freedom, above 35 once in 100,000.
        let size = 128;
        for seed in 0..2000 {
            let mut rng = ssdlab_base::rng(seed, "permutation test");
            let permutation = Permutation::new(size, || rng.next_u64());
            let mut counts = [0.0_f64; 8];
            (0..26).for_each(|index| counts[(permutation.at(index) / 16) as usize] += 1.0);
            let expected = 26.0 / 8.0;
            let variance = expected * (1.0 - 26.0 / 128.0);
            let statistic: f64 = counts.iter().map(|count| (count - expected).powi(2) / variance).sum();
            assert!(statistic < 35.0, "seed {seed}: {counts:?}");
        }
    }

    #[test]
    fn neighbours_land_far_apart() {
        // The mean distance of two independent uniform draws is a third of the range.
        let size = 1_000_003_u64;
        let mut rng = ssdlab_base::rng(7, "permutation test");
        let permutation = Permutation::new(size, || rng.next_u64());
        let total: u64 = (1..100_000).map(|index| permutation.at(index).abs_diff(permutation.at(index - 1))).sum();
        let mean = total as f64 / 99_999.0 / size as f64;
        assert!((mean - 1.0 / 3.0).abs() < 0.01, "mean distance {mean}");
    }
}

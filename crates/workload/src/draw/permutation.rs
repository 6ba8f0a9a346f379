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
    add: [u64; 3],
    multiply: [u64; 3],
}

impl Permutation {
    /// A permutation of `0..size`; `draw` gives six random words, the key.
    pub(crate) fn new(size: u64, mut draw: impl FnMut() -> u64) -> Permutation {
        assert!(size > 0, "a permutation of nothing has no values");
        let bits = 64 - (size - 1).leading_zeros();
        let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
        let mut permutation = Permutation { size, mask, shift: (bits / 2).max(1), add: [0; 3], multiply: [0; 3] };
        for round in 0..3 {
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
        let mut value = index;
        loop {
            for round in 0..3 {
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

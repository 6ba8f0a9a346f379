//! Random numbers that are the same on every machine: uniform, permuted, Zipf, gamma.
//!
//! All arithmetic is `libm`'s or our own.

pub(crate) mod fast_math;
mod gamma;
mod permutation;
mod zipf;

use rand::Rng as _;
use ssdlab_base::Rng;

pub(crate) use gamma::Gamma;
pub(crate) use permutation::Permutation;
pub(crate) use zipf::Zipf;

/// A uniform draw from `0..bound` without division on the common path (Lemire, 2019), exactly uniform.
#[inline]
pub(crate) fn below(rng: &mut Rng, bound: u64) -> u64 {
    debug_assert!(bound > 0);
    let mut wide = u128::from(rng.next_u64()) * u128::from(bound);
    if (wide as u64) < bound {
        let threshold = bound.wrapping_neg() % bound;
        while (wide as u64) < threshold {
            wide = u128::from(rng.next_u64()) * u128::from(bound);
        }
    }
    (wide >> 64) as u64
}

/// A uniform draw from `[0, 1)` with 53 bits.
#[inline]
pub(crate) fn unit(rng: &mut Rng) -> f64 {
    (rng.next_u64() >> 11) as i64 as f64 * (1.0 / (1_u64 << 53) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ssdlab_base::rng;

    #[test]
    fn a_bounded_draw_is_uniform_and_in_bounds() {
        let mut rng = rng(1, "below test");
        let mut counts = [0_u32; 7];
        for _ in 0..70_000 {
            counts[below(&mut rng, 7) as usize] += 1;
        }
        assert!(counts.iter().all(|count| count.abs_diff(10_000) < 500), "{counts:?}");
        assert_eq!(below(&mut rng, 1), 0);
    }
}

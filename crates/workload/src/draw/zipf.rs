//! Zipf's law.

use ssdlab_base::Rng;

use super::{fast_math, unit};

/// Exact Zipf ranks by rejection-inversion (Hörmann and Derflinger, 1996): no table, any theta above 0.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    /// The last rank; signed, because signed conversions are one instruction each.
    last: i64,
    one_minus_theta: f64,
    one_minus_theta_inverse: f64,
    theta: f64,
    high: f64,
    low: f64,
    shortcut: f64,
}

impl Zipf {
    pub(crate) fn new(ranks: u64, theta: f64) -> Zipf {
        let mut zipf = Zipf {
            last: i64::try_from(ranks).unwrap_or(i64::MAX),
            one_minus_theta: 1.0 - theta,
            one_minus_theta_inverse: (1.0 - theta).recip(),
            theta,
            high: 0.0,
            low: 0.0,
            shortcut: 0.0,
        };
        zipf.high = zipf.integral(1.5) - 1.0;
        zipf.low = zipf.integral(ranks as f64 + 0.5);
        zipf.shortcut = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.share(2.0));
        zipf
    }

    fn share(&self, x: f64) -> f64 {
        libm::exp(-self.theta * libm::log(x))
    }

    /// The integral of `x^-theta` from 1.
    fn integral(&self, x: f64) -> f64 {
        let log = libm::log(x);
        let t = self.one_minus_theta * log;
        // expm1(t)/t, by its series where t is tiny.
        let ratio = if t.abs() > 1e-8 { libm::expm1(t) / t } else { 1.0 + t * 0.5 * (1.0 + t / 3.0) };
        ratio * log
    }

    #[inline]
    fn inverse(&self, y: f64) -> f64 {
        // Rounding may push t below -1, where the logarithm ends.
        let t = (y * self.one_minus_theta).max(-1.0);
        if self.one_minus_theta.abs() > 1e-3 {
            // Far enough from theta 1 for the plain power, to the digits a draw needs.
            return fast_math::exp(fast_math::ln((1.0 + t).max(f64::MIN_POSITIVE)) * self.one_minus_theta_inverse);
        }
        let ratio = if t.abs() > 1e-8 { libm::log1p(t) / t } else { 1.0 - t * (0.5 - t / 3.0) };
        libm::exp(ratio * y)
    }

    /// The next rank, 0 the most popular.
    #[inline]
    pub(crate) fn rank(&self, rng: &mut Rng) -> u64 {
        loop {
            let y = self.low + unit(rng) * (self.high - self.low);
            let x = self.inverse(y);
            // Truncation by the cast; `floor` is a function call on plain x86-64.
            let rank = ((x + 0.5) as i64).clamp(1, self.last);
            let number = rank as u64 - 1;
            let rank = rank as f64;
            if rank - x <= self.shortcut || y >= self.integral(rank + 0.5) - self.share(rank) {
                return number;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ssdlab_base::rng;

    #[test]
    fn zipf_ranks_follow_the_law_for_every_theta() {
        for theta in [0.5, 0.99, 1.0, 1.2, 2.5] {
            let ranks = 1000_u64;
            let zipf = Zipf::new(ranks, theta);
            let total: f64 = (1..=ranks).map(|rank| (rank as f64).powf(-theta)).sum();
            let draws = 400_000;
            let mut counts = vec![0_u64; ranks as usize];
            let mut rng = rng(3, "zipf test");
            for _ in 0..draws {
                counts[zipf.rank(&mut rng) as usize] += 1;
            }
            for rank in [1_u64, 2, 3, 10, 50] {
                let expected = draws as f64 * (rank as f64).powf(-theta) / total;
                let found = counts[rank as usize - 1] as f64;
                // Five standard deviations of a binomial count.
                assert!(
                    (found - expected).abs() < 5.0 * expected.sqrt() + 1.0,
                    "theta {theta} rank {rank}: {found} {expected}"
                );
            }
        }
    }
}

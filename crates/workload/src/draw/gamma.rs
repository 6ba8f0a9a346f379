//! The gamma distribution.

use rand::Rng as _;
use ssdlab_base::Rng;

use super::unit;

/// Gamma variates by squeeze and rejection (Marsaglia and Tsang, 2000).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Gamma {
    shape: f64,
    scale: f64,
}

impl Gamma {
    /// Mean `mean`, shape above 0: 1 is exponential, and the deviation is the mean over the root of the shape.
    pub(crate) fn with_mean(mean: f64, shape: f64) -> Gamma {
        assert!(shape > 0.0, "a gamma distribution has a positive shape, found {shape}");
        Gamma { shape, scale: mean / shape }
    }

    /// The next value.
    pub(crate) fn draw(&self, rng: &mut Rng) -> f64 {
        // Below 1 a variate of shape + 1 is shrunk by a power of a uniform one.
        let small = self.shape < 1.0;
        let shape = if small { self.shape + 1.0 } else { self.shape };
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / libm::sqrt(9.0 * d);
        let value = loop {
            let x = normal(rng);
            let v = 1.0 + c * x;
            if v <= 0.0 {
                continue;
            }
            let v = v * v * v;
            if libm::log(open_unit(rng)) < 0.5 * x * x + d - d * v + d * libm::log(v) {
                break d * v;
            }
        };
        let shrunk = if small { libm::pow(open_unit(rng), 1.0 / self.shape) } else { 1.0 };
        value * shrunk * self.scale
    }
}

/// A uniform draw from `(0, 1]`.
fn open_unit(rng: &mut Rng) -> f64 {
    1.0 - unit(rng)
}

/// A standard normal draw (Marsaglia's polar method; the second of each pair is not kept).
fn normal(rng: &mut Rng) -> f64 {
    loop {
        let (x, y) = (signed_unit(rng), signed_unit(rng));
        let square = x * x + y * y;
        if square > 0.0 && square < 1.0 {
            return x * libm::sqrt(-2.0 * libm::log(square) / square);
        }
    }
}

/// A uniform draw from `[-1, 1)`.
fn signed_unit(rng: &mut Rng) -> f64 {
    (rng.next_u64() as i64 >> 11) as f64 * (1.0 / (1_u64 << 52) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ssdlab_base::rng;

    /// Mean and variance of so many draws.
    fn moments(gamma: Gamma, seed: u64, draws: u32) -> (f64, f64) {
        let mut rng = rng(seed, "gamma test");
        let values: Vec<f64> = (0..draws).map(|_| gamma.draw(&mut rng)).collect();
        let mean = values.iter().sum::<f64>() / f64::from(draws);
        (mean, values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / f64::from(draws))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn mean_and_variance_are_those_of_the_law(shape in 0.2_f64..20.0, seed in any::<u64>()) {
            let draws = 100_000;
            let (mean, variance) = moments(Gamma::with_mean(1000.0, shape), seed, draws);
            let law = 1e6 / shape;
            // Six deviations of a mean of so many draws, and of their variance (its kurtosis is 3 + 6 / shape).
            let of_mean = 6.0 * (law / f64::from(draws)).sqrt();
            let of_variance = 6.0 * law * ((2.0 + 6.0 / shape) / f64::from(draws)).sqrt();
            prop_assert!((mean - 1000.0).abs() < of_mean, "mean {mean}");
            prop_assert!((variance - law).abs() < of_variance, "variance {variance}, expected {law}");
        }
    }

    #[test]
    fn shape_one_is_the_exponential_distribution() {
        let gamma = Gamma::with_mean(1.0, 1.0);
        let mut rng = rng(5, "gamma test");
        let draws = 200_000;
        for limit in [0.1_f64, 0.7, 2.0] {
            let below = (0..draws).filter(|_| gamma.draw(&mut rng) < limit).count() as f64 / f64::from(draws);
            let law = 1.0 - (-limit).exp();
            assert!((below - law).abs() < 5.0 * (law * (1.0 - law) / f64::from(draws)).sqrt(), "{limit}: {below}");
        }
    }
}

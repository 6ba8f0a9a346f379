//! How large a new file is.

use ssdlab_base::Rng;

use crate::draw::{Gamma, below};

/// Sizes of files, in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SizeDistribution {
    /// Every file alike.
    Fixed(u64),
    /// Gamma with this mean and shape, rounded down to a byte.
    Gamma {
        /// Mean, in bytes.
        mean: u64,
        /// Shape.
        shape: f64,
    },
    /// Uniform from `low` up to, and without, `high`; `low` where both are the same.
    Uniform {
        /// The least.
        low: u64,
        /// The first that is too large.
        high: u64,
    },
}

impl SizeDistribution {
    /// The next size.
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        match *self {
            SizeDistribution::Fixed(bytes) => bytes,
            SizeDistribution::Gamma { mean, shape } => Gamma::with_mean(mean as f64, shape).draw(rng) as u64,
            SizeDistribution::Uniform { low, high } => low + if high > low { below(rng, high - low) } else { 0 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ssdlab_base::rng;

    fn mean(sizes: SizeDistribution) -> f64 {
        let mut rng = rng(11, "size test");
        (0..200_000).map(|_| sizes.draw(&mut rng) as f64).sum::<f64>() / 200_000.0
    }

    #[test]
    fn means_are_those_of_the_laws() {
        assert_eq!(mean(SizeDistribution::Fixed(8192)), 8192.0);
        let gamma = mean(SizeDistribution::Gamma { mean: 131_072, shape: 1.5 });
        assert!((gamma / 131_072.0 - 1.0).abs() < 0.01, "{gamma}");
        let uniform = mean(SizeDistribution::Uniform { low: 500, high: 10_000 });
        assert!((uniform / 5249.5 - 1.0).abs() < 0.01, "{uniform}");
        assert_eq!(mean(SizeDistribution::Uniform { low: 512, high: 512 }), 512.0);
    }
}

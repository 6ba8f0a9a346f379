//! Which block a random request goes to: uniform, Zipf, Pareto, normal, or hot and cold zones.
//!
//! fio draws a rank (0 is the most popular) and scatters ranks over the region with a hash, so that popular blocks are
//! not neighbours. Its hash lets ranks collide, which leaves about a third of the blocks never written; here a
//! permutation scatters them, so every block can be reached and has exactly its rank's share. All arithmetic is
//! `libm`'s, the same on every machine.

use ssdlab_base::{Rng, rng};

use rand::Rng as _;

use crate::draw::{Permutation, Zipf, below, fast_math, unit};

use super::value::Extent;

/// What `random_distribution=` says for one direction.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Skew {
    /// Every block alike.
    Uniform,
    /// The share of rank `r` falls as `r^-theta`.
    Zipf { theta: f64, center: Option<f64> },
    /// Rank `blocks * u^(ln power / ln(1 - power))` for a uniform `u`: 0.2 is the 80/20 rule.
    Pareto { power: f64, center: Option<f64> },
    /// The mean of twelve uniform draws, moved by up to half the deviation, in percent of the region.
    Normal { deviation: f64, center: Option<f64> },
    /// Shares of accesses to parts of the region, from its start.
    Zoned(Vec<Zone>),
}

/// One part of a zoned distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Zone {
    /// Percent of the accesses.
    pub(crate) access: u32,
    /// Its length, behind the zones before it.
    pub(crate) size: Extent,
}

/// Ranks to blocks, one to one.
#[derive(Clone, Debug)]
pub(crate) struct Scatter {
    permutation: Permutation,
    offset: u64,
    blocks: u64,
}

impl Scatter {
    /// With a `center` the order is the same for every job and seed, only moved, as fio's hash is; without one it is
    /// the seed's.
    fn new(blocks: u64, center: Option<f64>, seed: u64) -> Scatter {
        let mut key = rng(if center.is_some() { 0 } else { seed }, "fio scatter");
        let permutation = Permutation::new(blocks, || key.next_u64());
        let offset = (blocks as f64 * center.unwrap_or(0.0)) as u64 % blocks;
        Scatter { permutation, offset, blocks }
    }

    #[inline]
    fn block(&self, rank: u64) -> u64 {
        let block = self.permutation.at(rank) + self.offset;
        if block >= self.blocks { block - self.blocks } else { block }
    }
}

/// Why a distribution does not fit a region.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SkewError {
    #[error("mixes percent and bytes")]
    MixedUnits,
    #[error("zone {zone} ends beyond the region of {blocks} blocks")]
    BehindTheRegion { zone: usize, blocks: u64 },
}

/// Draws block numbers.
#[derive(Clone, Debug)]
pub(crate) enum Picker {
    /// Any of so many blocks.
    Uniform(u64),
    /// See [`Skew::Zipf`].
    Zipf(Zipf, Scatter),
    /// See [`Skew::Pareto`].
    Pareto { last: f64, exponent: f64, scatter: Scatter },
    /// See [`Skew::Normal`]; `spread` in blocks.
    Normal { spread: u64, scatter: Scatter },
    /// First block and count for each percent of accesses.
    Zoned(Box<[(u64, u64); 100]>),
}

impl Picker {
    /// A picker over `blocks` blocks of `block_bytes`; an error is what is wrong with the distribution there.
    pub(crate) fn new(skew: &Skew, blocks: u64, block_bytes: u64, seed: u64) -> Result<Picker, SkewError> {
        assert!(blocks > 0, "a region without a block was refused before");
        Ok(match skew {
            Skew::Uniform => Picker::Uniform(blocks),
            Skew::Zipf { theta, center } => {
                Picker::Zipf(Zipf::new(blocks, *theta), Scatter::new(blocks, *center, seed))
            }
            Skew::Pareto { power, center } => Picker::Pareto {
                last: (blocks - 1) as f64,
                exponent: libm::log(*power) / libm::log(1.0 - power),
                scatter: Scatter::new(blocks, *center, seed),
            },
            Skew::Normal { deviation, center } => Picker::Normal {
                spread: ((blocks as f64 * deviation / 100.0).ceil() as u64).min(blocks / 2),
                // fio centers the normal distribution at 0.5 by default.
                scatter: Scatter::new(blocks, center.map(|center| (center + 0.5) % 1.0), seed),
            },
            Skew::Zoned(zones) => Picker::Zoned(zone_table(zones, blocks, block_bytes)?),
        })
    }

    /// The next block.
    #[inline]
    pub(crate) fn pick(&self, rng: &mut Rng) -> u64 {
        match self {
            Picker::Uniform(blocks) => below(rng, *blocks),
            Picker::Zipf(zipf, scatter) => scatter.block(zipf.rank(rng)),
            Picker::Pareto { last, exponent, scatter } =>
            // u^exponent.
            {
                scatter.block(
                    (last * fast_math::exp(*exponent * fast_math::ln(unit(rng).max(f64::MIN_POSITIVE)))) as i64 as u64,
                )
            }
            Picker::Normal { spread, scatter } => {
                let blocks = scatter.blocks;
                let sum: u128 = (0..12).map(|_| u128::from(below(rng, blocks))).sum();
                let mean = (sum / 12) as u64;
                let moved = if *spread > 0 { mean + below(rng, *spread) } else { mean };
                scatter.block(moved.saturating_sub(spread / 2).min(blocks - 1))
            }
            Picker::Zoned(table) => {
                let (first, count) = table[below(rng, 100) as usize];
                first + below(rng, count)
            }
        }
    }
}

fn zone_table(zones: &[Zone], blocks: u64, block_bytes: u64) -> Result<Box<[(u64, u64); 100]>, SkewError> {
    let mut table = Box::new([(0, 0); 100]);
    let mut filled = 0;
    let mut end = Extent::Percent(0);
    let mut start_block = 0;
    for (index, zone) in zones.iter().enumerate() {
        end = match (end, zone.size) {
            (Extent::Percent(sum), Extent::Percent(size)) => Extent::Percent(sum + size),
            (Extent::Percent(0), Extent::Bytes(size)) => Extent::Bytes(size),
            (Extent::Bytes(sum), Extent::Bytes(size)) => Extent::Bytes(sum.saturating_add(size)),
            _ => return Err(SkewError::MixedUnits),
        };
        let end_block = match end {
            Extent::Bytes(bytes) => bytes / block_bytes,
            Extent::Percent(_) | Extent::Zones(_) => end.of(blocks),
        };
        if end_block > blocks {
            return Err(SkewError::BehindTheRegion { zone: index + 1, blocks });
        }
        for _ in 0..zone.access {
            // As in fio, a zone smaller than a block has the block that it begins in.
            table[filled] = (start_block.min(blocks - 1), (end_block - start_block).max(1));
            filled += 1;
        }
        start_block = end_block;
    }
    assert!(filled == 100, "accesses were checked to add up to 100, not {filled}");
    Ok(table)
}

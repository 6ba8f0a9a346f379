//! d-choices: the best of d blocks drawn at random.
//!
//! Van Houdt, "A mean field model for a class of garbage collection algorithms in flash-based solid state drives", 2013.

use ssdlab_base::Rng;

use super::{Policy, VictimPolicy, random};
use crate::block_pool::PoolView;
use crate::description::{Default, Key, Kind};

/// d.
const CHOICES: Key =
    Key::new("choices", Kind::count("blocks", 1), Default::number(10), "Blocks to draw for each choice.");

/// The policy as a description names it.
pub(super) const POLICY: Policy = Policy {
    name: "d-choices",
    summary: "the fewest valid units of d blocks drawn at random (gc.choices)",
    keys: &[CHOICES],
    make: |config| Box::new(DChoices::new(config.gc.own.count(&CHOICES, &config.flash.geometry))),
};

/// Between random (d = 1) and greedy (d of all blocks).
pub(super) struct DChoices {
    choices: u32,
}

impl DChoices {
    pub(super) fn new(choices: u32) -> DChoices {
        DChoices { choices }
    }
}

impl VictimPolicy for DChoices {
    fn name(&self) -> &'static str {
        "d-choices"
    }

    fn choose(&mut self, pool: &PoolView<'_>, rng: &mut Rng) -> Option<u32> {
        let drawn = (0..self.choices).filter_map(|_| random::draw(pool, rng));
        drawn.min_by_key(|block| pool.valid(*block))
    }
}

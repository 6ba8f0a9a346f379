//! Which block to empty next: a decision over one plane's closed blocks.
//!
//! A policy is one file and one line in [`POLICIES`]. It looks and returns; the engine checks and acts.

mod cost_benefit;
mod d_choices;
mod fifo;
mod greedy;
mod random;

use ssdlab_base::Rng;

use crate::GcConfig;
use crate::block_pool::PoolView;

/// A victim policy.
pub(crate) trait VictimPolicy: Send {
    /// The name a description uses.
    fn name(&self) -> &'static str;

    /// Keys of `[gc]` that this policy reads and not every one does: whoever sets one for another policy is told.
    fn keys(&self) -> &'static [&'static str] {
        &[]
    }

    /// A closed block of the plane, or `None` to wait.
    fn choose(&mut self, pool: &PoolView<'_>, rng: &mut Rng) -> Option<u32>;
}

type Make = fn(&GcConfig) -> Box<dyn VictimPolicy>;

/// Every victim policy: name, summary, constructor.
pub(crate) const POLICIES: &[(&str, &str, Make)] = &[
    ("greedy", "the block with the fewest valid units", |_| Box::new(greedy::Greedy)),
    ("cost-benefit", "the highest age * (1 - u) / 2u, u the valid share (LFS)", |_| {
        Box::new(cost_benefit::CostBenefit)
    }),
    ("fifo", "the block that was closed first", |_| Box::new(fifo::Fifo)),
    ("random", "any closed block", |_| Box::new(random::Random)),
    ("d-choices", "the fewest valid units of d blocks drawn at random (gc.choices)", |config| {
        Box::new(d_choices::DChoices::new(config.choices))
    }),
];

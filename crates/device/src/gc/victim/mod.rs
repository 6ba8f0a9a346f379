//! Which block to empty next: a decision over one plane's closed blocks.
//!
//! A policy is one file and one line in [`POLICIES`]. It looks and returns; the engine checks and acts.

mod cost_benefit;
mod d_choices;
mod fifo;
mod greedy;
mod random;
#[cfg(test)]
mod template;

use ssdlab_base::Rng;

use crate::block_pool::PoolView;
use crate::{DriveConfig, registry};

/// A victim policy. Those that descriptions name are registered here; [`crate::Drive::with_victim`] takes one from outside.
pub trait VictimPolicy: Send {
    /// The name a description uses.
    fn name(&self) -> &'static str;

    /// A closed block of the plane, or `None` to wait.
    fn choose(&mut self, pool: &PoolView<'_>, rng: &mut Rng) -> Option<u32>;
}

/// A registered policy.
type Policy = registry::Entry<fn(&DriveConfig) -> Box<dyn VictimPolicy>>;

/// Every victim policy.
pub(crate) const POLICIES: &[Policy] = &[
    greedy::POLICY,
    cost_benefit::POLICY,
    fifo::POLICY,
    random::POLICY,
    d_choices::POLICY,
    #[cfg(test)]
    template::POLICY,
];

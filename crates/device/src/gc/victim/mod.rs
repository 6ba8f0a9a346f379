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
use crate::registry::{Entry, MakePolicy, Registry};

/// Words of a panic that is the fault of a policy and not of the engine: the trait and the method that forbid what it
/// did follow.
pub const BROKEN_CONTRACT: &str = "broke the contract of ";

/// A victim policy. Those that descriptions name are registered here; [`crate::register_victim`] adds one from outside, and
/// [`crate::Drive::with_victim`] takes one for a single drive.
pub trait VictimPolicy: Send {
    /// The name a description uses, and messages.
    fn name(&self) -> &'static str;

    /// A block of the plane that may be a victim ([`PoolView::is_closed`]), or `None` to wait.
    ///
    /// The drive panics with [`BROKEN_CONTRACT`] where it is another block, and becomes read-only where the answer is
    /// `None` although nothing else can free a block.
    fn choose(&mut self, pool: &PoolView<'_>, rng: &mut Rng) -> Option<u32>;
}

/// A registered policy.
type Policy = Entry<MakePolicy<dyn VictimPolicy>>;

/// Every victim policy.
pub(crate) static POLICIES: Registry<MakePolicy<dyn VictimPolicy>> = Registry::new(
    "gc.victim",
    &[
        greedy::POLICY,
        cost_benefit::POLICY,
        fifo::POLICY,
        random::POLICY,
        d_choices::POLICY,
        #[cfg(test)]
        template::POLICY,
    ],
);

//! Which waiting request goes next: a decision over those that wait.
//!
//! A policy is one file and one line in [`POLICIES`]. It looks and returns; the scheduler checks, joins and sends. What keeps its
//! place (flushes, commands of a set, commands on the sectors of one that waits) never reaches a policy.

mod deadline;
mod fifo;
mod noop;

use std::fmt::Debug;
use std::sync::Arc;

use ssdlab_base::Nanos;
use ssdlab_device::description::{DescriptionError, Key, Section};

use super::queue::View;

/// What reads and changes sectors has limits and queues of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// Reads.
    Read,
    /// Everything that changes sectors.
    Write,
}

/// A policy as descriptions name it.
#[derive(Debug)]
pub(super) struct PolicySpec {
    /// Its name.
    pub(super) name: &'static str,
    /// Its own keys of the layer.
    pub(super) keys: &'static [Key],
    /// Reads its keys; without it, every request keeps its place.
    pub(super) read: Option<ReadPolicy>,
}

/// Reads a policy's keys.
type ReadPolicy = fn(&Section<'_>) -> Result<Arc<dyn PolicyConfig>, DescriptionError>;

/// Every policy.
pub(super) static POLICIES: [&PolicySpec; 3] = [&fifo::POLICY, &noop::POLICY, &deadline::POLICY];

/// A policy with what its keys say.
pub(crate) trait PolicyConfig: Debug + Send + Sync {
    /// The policy before any request has come.
    fn make(&self) -> Box<dyn Policy>;

    /// Its keys, as descriptions say them, everything filled in.
    fn shown(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }
}

/// Decides which waiting request goes next.
pub(crate) trait Policy: Send {
    /// The slot of a request that waits. It goes at once.
    fn choose(&mut self, waiting: &View<'_>, now: Nanos) -> u32;

    /// Counters of its own.
    fn figures(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Its counters begin anew, and so does time.
    fn reset_counts(&mut self) {}
}

/// The keys of all policies behind those of the layer.
pub(in crate::scheduler) const fn with_own_keys<const N: usize>(layer: &[Key]) -> [Key; N] {
    let mut all = [layer[0]; N];
    let mut at = 0;
    while at < layer.len() {
        all[at] = layer[at];
        at += 1;
    }
    let policies: [&[Key]; 3] = [fifo::POLICY.keys, noop::POLICY.keys, deadline::POLICY.keys];
    let mut policy = 0;
    while policy < policies.len() {
        let mut own = 0;
        while own < policies[policy].len() {
            all[at] = policies[policy][own];
            (at, own) = (at + 1, own + 1);
        }
        policy += 1;
    }
    assert!(at == N, "a key of a policy has its place");
    all
}

/// How many keys the policies have.
pub(super) const OWN_KEYS: usize = fifo::POLICY.keys.len() + noop::POLICY.keys.len() + deadline::POLICY.keys.len();

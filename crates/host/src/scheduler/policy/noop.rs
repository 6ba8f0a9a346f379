//! Linux's scheduler NOOP: requests go in the order of arrival, and neighbours are joined wherever they wait
//! (`block/noop-iosched.c`).

use std::sync::Arc;

use ssdlab_base::Nanos;

use super::{Direction, Policy, PolicyConfig, PolicySpec};
use crate::scheduler::queue::View;

/// The policy as a description names it.
pub(super) const POLICY: PolicySpec = PolicySpec { name: "noop", keys: &[], read: Some(|_| Ok(Arc::new(NoopConfig))) };

/// There is nothing to say.
#[derive(Debug)]
struct NoopConfig;

impl PolicyConfig for NoopConfig {
    fn make(&self) -> Box<dyn Policy> {
        Box::new(Noop)
    }
}

/// Keeps nothing.
struct Noop;

impl Policy for Noop {
    fn choose(&mut self, waiting: &View<'_>, _: Nanos) -> u32 {
        let heads = [Direction::Read, Direction::Write].map(|direction| waiting.oldest(direction));
        let oldest = heads.into_iter().flatten().min_by_key(|candidate| candidate.number);
        oldest.expect("a policy is asked while requests wait").slot
    }
}

//! First writes apart: what is written for the first time goes to one stream, what is overwritten to another.
//!
//! A template to copy. Say here which paper the policy is from, and which section.

use super::{PlacementPolicy, Policy, WrittenUnit};

/// The policy as a description names it.
pub(super) const POLICY: Policy = Policy {
    name: "first-writes",
    summary: "what is overwritten apart from what is written for the first time",
    keys: &[],
    make: Some(|_| Box::new(FirstWrites)),
};

/// Trusts that what was overwritten once will be again.
struct FirstWrites;

impl PlacementPolicy for FirstWrites {
    fn name(&self) -> &'static str {
        "first-writes"
    }

    fn stream(&self, unit: &WrittenUnit) -> u16 {
        match unit.age {
            None => 0,
            Some(_) => 1.max(unit.hint),
        }
    }
}

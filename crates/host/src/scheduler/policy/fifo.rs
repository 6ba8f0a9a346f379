//! First come, first served: every request keeps its place, and only the last one that waits is joined with.

use super::PolicySpec;

/// The policy as a description names it.
pub(super) const POLICY: PolicySpec = PolicySpec { name: "fifo", keys: &[], read: None };

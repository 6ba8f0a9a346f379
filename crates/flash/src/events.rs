//! The next event of every resource, in one small tournament tree.
//!
//! A die or a channel has at most one event to come, so the queue is an array indexed by resource with the winner on
//! top: setting a time costs one path to the root, and equal times go to the lower index, always.

use ssdlab_base::Nanos;

/// The earliest event over a fixed number of resources.
///
/// A node is its time above its resource's number, so that the earlier of two events is the lesser of two integers: no
/// branch that the processor could guess wrong.
#[derive(Clone, Debug)]
pub(crate) struct EventTree {
    leaves: usize,
    nodes: Vec<u128>,
}

const NEVER: u64 = u64::MAX;

#[inline(always)]
const fn node(at: u64, resource: u32) -> u128 {
    (at as u128) << 32 | resource as u128
}

impl EventTree {
    pub(crate) fn new(resources: usize) -> EventTree {
        let leaves = resources.next_power_of_two().max(2);
        let mut nodes = vec![node(NEVER, 0); leaves * 2];
        for (index, leaf) in nodes[leaves..].iter_mut().enumerate() {
            *leaf = node(NEVER, index as u32);
        }
        for index in (1..leaves).rev() {
            nodes[index] = nodes[index * 2];
        }
        EventTree { leaves, nodes }
    }

    /// Sets when `resource` is next heard of.
    #[inline]
    pub(crate) fn set(&mut self, resource: u32, at: Nanos) {
        self.put(resource, at.0);
    }

    /// Takes the event of `resource` out.
    #[inline]
    pub(crate) fn clear(&mut self, resource: u32) {
        self.put(resource, NEVER);
    }

    #[inline]
    fn put(&mut self, resource: u32, at: u64) {
        let mut index = self.leaves + resource as usize;
        debug_assert!((resource as usize) < self.leaves, "resource {resource} of {}", self.leaves);
        let nodes = self.nodes.as_mut_slice();
        assert!(!nodes.is_empty(), "a tree has leaves");
        // The length is a power of two: with the mask the compiler sees that every index is within it.
        let mask = nodes.len() - 1;
        // The winner so far is carried in registers: only the siblings on the way up are read.
        let mut winner = node(at, resource);
        nodes[index & mask] = winner;
        while index > 1 {
            winner = winner.min(nodes[(index ^ 1) & mask]);
            index /= 2;
            nodes[index & mask] = winner;
        }
    }

    /// The earliest event's time.
    #[inline]
    pub(crate) fn next(&self) -> Option<Nanos> {
        let at = (self.nodes[1] >> 32) as u64;
        (at != NEVER).then_some(Nanos(at))
    }

    /// The earliest event's resource and time, left in the tree.
    #[inline]
    pub(crate) fn peek(&self) -> Option<(u32, Nanos)> {
        self.next().map(|at| (self.nodes[1] as u32, at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The tree against a plain scan for the minimum.
        #[test]
        fn the_winner_is_the_earliest_and_of_equals_the_lowest(
            count in 1usize..70,
            steps in prop::collection::vec((any::<usize>(), prop::option::of(0u64..50)), 1..200),
        ) {
            let mut tree = EventTree::new(count);
            let mut model = vec![None; count];
            for (resource, at) in steps {
                let resource = resource % count;
                model[resource] = at;
                match at {
                    Some(at) => tree.set(resource as u32, Nanos(at)),
                    None => tree.clear(resource as u32),
                }
                let expected = (0..count).filter_map(|r| model[r].map(|at| (at, r as u32))).min();
                prop_assert_eq!(tree.peek(), expected.map(|(at, r)| (r, Nanos(at))));
            }
        }
    }
}

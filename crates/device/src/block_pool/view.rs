//! What a victim policy sees of a group's blocks.

use super::BlockPool;
use super::valid::NOT_CLOSED;

/// One plane's blocks as a victim policy sees them; indexes are blocks within the plane.
pub struct PoolView<'a> {
    valid: &'a [u32],
    closed_order: &'a [u64],
    closings: u64,
    units_per_block: u32,
}

impl PoolView<'_> {
    /// Blocks in the plane.
    pub fn blocks(&self) -> u32 {
        self.valid.len() as u32
    }

    /// Whether a block may be chosen.
    #[inline]
    pub fn is_closed(&self, block: u32) -> bool {
        self.valid[block as usize] < NOT_CLOSED
    }

    /// Valid units of a closed block.
    #[inline]
    pub fn valid(&self, block: u32) -> u32 {
        debug_assert!(self.is_closed(block), "block {block} of the group is no victim");
        self.valid[block as usize]
    }

    /// Units of a block.
    pub const fn units_per_block(&self) -> u32 {
        self.units_per_block
    }

    /// Age of a closed block: blocks closed since, in the whole drive.
    #[inline]
    pub fn age(&self, block: u32) -> u64 {
        debug_assert!(self.is_closed(block), "block {block} of the group has no age: it is not closed");
        debug_assert!(
            self.closed_order[block as usize] <= self.closings,
            "block {block} was closed as number {} of {}",
            self.closed_order[block as usize],
            self.closings
        );
        self.closings - self.closed_order[block as usize]
    }

    /// The closed block that was closed first.
    pub fn first_closed(&self) -> Option<u32> {
        // As below: a minimum without branches first, then where it is.
        let key = |(valid, order): (&u32, &u64)| if *valid < NOT_CLOSED { *order } else { u64::MAX };
        let first = self.valid.iter().zip(self.closed_order).map(key).min().filter(|first| *first != u64::MAX)?;
        let at = |pair: (&u32, &u64)| key(pair) == first;
        self.valid.iter().zip(self.closed_order).position(at).map(|block| block as u32)
    }

    /// The closed block with the fewest valid units, the lowest number among equals.
    pub fn fewest_valid(&self) -> Option<u32> {
        // Two passes over a dense array: the minimum vectorises, and so does the search.
        let fewest = self.valid.iter().copied().min()?;
        if fewest >= NOT_CLOSED {
            return None;
        }
        self.valid.iter().position(|valid| *valid == fewest).map(|block| block as u32)
    }
}

impl BlockPool {
    /// What a victim policy may look at where some units are current and need not be moved: `counts` has room for valid units of
    /// both kinds. Returns `None` where there are none of them.
    pub(crate) fn view_with_loose<'a>(
        &'a self,
        group: u32,
        units_per_block: u32,
        counts: &'a mut Vec<u32>,
    ) -> Option<PoolView<'a>> {
        let first = (group * self.per_group) as usize;
        let range = first..first + self.per_group as usize;
        if !self.has_loose() {
            return None;
        }
        counts.clear();
        counts.extend(self.valid[range.clone()].iter().zip(&self.loose[range]).map(|(valid, loose)| valid + loose));
        let view = self.view(group, units_per_block);
        Some(PoolView { valid: counts, ..view })
    }

    /// What a victim policy may look at.
    pub(crate) fn view(&self, group: u32, units_per_block: u32) -> PoolView<'_> {
        debug_assert!(group < self.groups(), "a policy looks at group {group} of {}", self.groups());
        let first = (group * self.per_group) as usize;
        let range = first..first + self.per_group as usize;
        PoolView {
            valid: &self.valid[range.clone()],
            closed_order: &self.closed_order[range],
            closings: self.closings,
            units_per_block,
        }
    }
}

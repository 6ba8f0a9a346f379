//! Partial pages and congested chips (WAFLASH, 3.1): the principle, which works on LRU, ARC and LIRS alike.
//!
//! When the chip of the page that would leave is idle, it leaves. When it is congested and the page is partial, the
//! nearest full page of the same list leaves, and the partial pages below it are re-inserted at P_insert, as far from the
//! bottom as partial pages were from their next overwrite on average (ACD). [`PcStack`] is the list, [`Distances`] the
//! tracking of distances; both cost the logarithm of their size at most, whatever the distance.
//!
//! What the paper leaves open and is decided here:
//! - No full page in the list: the bottom leaves, idle or not.
//! - No partial page was overwritten yet, so that ACD is 0: the partial pages stay where they are.
//! - Where a flash page holds several mapping units, a page of full units leaves, or, if there are not so many, what is at
//!   the bottom.

mod distances;
#[cfg(test)]
pub(super) mod naive;
mod stack;

pub(super) use distances::Distances;
pub(super) use stack::PcStack;

use super::{Slot, View};

/// Chooses from one list as WAFLASH does; appends what leaves.
pub(super) fn choose(
    stack: &mut PcStack,
    distances: &Distances,
    wanted: usize,
    view: &mut View<'_>,
    out: &mut Vec<Slot>,
) {
    let Some(bottom) = stack.bottom() else { return };
    let before = out.len();
    if !stack.is_full(bottom) && view.is_congested(bottom) {
        out.extend(stack.fulls().take(wanted));
        if out.len() - before == wanted {
            view.delayed(u64::from(stack.delay(distances.mean())));
            return;
        }
        out.truncate(before);
    }
    out.extend(stack.iter().take(wanted));
}

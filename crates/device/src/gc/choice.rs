//! Whether the policy's victim is taken, and why collection never runs dry whatever a policy names.
//!
//! A *plane* here is what has free blocks and a job of its own, a *block* what is opened and erased as one: a group and a
//! superblock where blocks are tied.
//!
//! Let a block have `B` pages and let the *room* of a plane be the pages that relocation can still give out there: what
//! is left of its frontier, and all of every block that is free or whose erase follows. The reserve is `R` blocks (1 or
//! 2).
//!
//! **The room between two jobs is never less than `R B`.** The host opens a block only while more than `R` are free, and
//! where it shares relocation's frontier it takes nothing from it while fewer than `R` are: both leave `R` whole blocks.
//! A job takes `p` pages, as many as its victim's valid units fill. Valid units of a closed block only become fewer, so
//! `p <= B` holds to its end, and then the victim's `B` pages come back: the room changes by `B - p >= 0`. So a block
//! that is valid from end to end is a legal victim: it takes one block of pages and gives one back, and its turn is over.
//! Nothing here asks whose the frontier is, or why the block is moved: static wear levelling's moves are jobs like others.
//!
//! During a job the room is not less than `(R - 1) B` and what is still valid in the victim, which makes `R B` when the
//! victim is back. Paced collection, whose jobs are in work all the time, lends the host what is there beyond that
//! (`Media::job_leaves_room`): the host need not wait for the end of a job to open a block, and both bounds hold as before.
//! With `R = 1` it keeps a page of that for the record of trims which the victim's erase may wait for.
//!
//! **Collection ends.** When fewer than `gc.free_blocks` are free, the closed blocks of a plane (of some plane, where data
//! may go to any) have at least `B` pages to gain: `DriveConfig::check_frontier_space` accepts no drive where they might not. No
//! move makes that less, and every victim with something to gain brings it closer to a free block. FIFO comes to one
//! within a round of the plane, random with certainty but for chance, d-choices and cost-benefit take one if they see one.
//! After more full victims in a row than two rounds of the plane the guard below takes the one with the fewest valid
//! units, so that it ends whatever a policy does.
//! Where a block cannot be won (a plane full of valid data beside others, background collection that wants more than
//! there is), a full victim is not moved: collection waits until something becomes invalid.
//!
//! **Units that need not be moved.** A design may drop some of what is current. Such units are not among the valid ones here. A policy
//! sees them as valid all the same, if the design tells the pool of them (`BlockPool::add_loose`): where it names a block that gives nothing back, the one that costs least
//! goes first, for policies that go by valid units do not see what a block costs.
//!
//! **Lists of owners.** Where something waits for space, an emptied block may need an early list of the frontier that its units went
//! to: a page. So `B` is then the pages of a block without its last list, a victim that needs `B - 1` pages counts as
//! valid from end to end, and `check_frontier_space` leaves a page more to gain in each block. A job that takes all of the
//! room fills its frontiers, whose last lists have pages of their own.
//!
//! **What takes from the room and gives nothing back**: a retired block and one whose erase fails (up to `B`), pages torn
//! by a power cut (as many as relocations were in flight), a program that failed, and a record of trims (a page each).
//! Retirement waits until it leaves a block. After the others the room may be short of `R B`, and then the *guard* holds:
//! the block that costs least goes first, whatever the policy named, until the reserve is whole. With `R = 1` it also
//! holds where the next power cut could tear what the job needs. It is counted where it changes the victim
//! (`victims_by_guard`). Two blocks of reserve stand the loss of one; losses that come faster than collection wins blocks
//! back end in a drive that is read-only, as `break_deadlock` finds.

use super::victim::{BROKEN_CONTRACT, VictimPolicy};
use super::{RELOCATIONS_IN_FLIGHT, pages_needed};
use crate::block_pool::BlockState;
use crate::media::Media;

/// A victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pick {
    /// The block, in the drive's numbering.
    pub(super) block: u32,
    /// It is valid from end to end.
    pub(super) full: bool,
    /// The policy named another.
    pub(super) guarded: bool,
}

/// The block of a group that the policy names, in the drive's numbering; `None` to wait.
///
/// # Panics
/// The policy named a block that is no victim.
pub(super) fn ask(policy: &mut dyn VictimPolicy, media: &mut Media, group: u32) -> Option<u32> {
    let mut counts = Vec::new();
    let units = media.data_units_per_superblock();
    let view = media.pool.view_with_loose(group, units, &mut counts);
    let view = view.unwrap_or_else(|| media.pool.view(group, units));
    let named = policy.choose(&view, &mut media.rng)?;
    let (blocks, first) = (view.blocks(), group * media.pool.per_group);
    let name = policy.name();
    assert!(
        named < blocks && view.is_closed(named),
        "the victim policy {name} {BROKEN_CONTRACT}VictimPolicy::choose: it returned block {named} of {blocks}, {}; \
         allowed are a block below {blocks} for which PoolView::is_closed is true, and None",
        why_no_victim(media, named, group)
    );
    Some(first + named)
}

/// What keeps a block of a group, in the policy's numbering, from being a victim.
#[cold]
fn why_no_victim(media: &Media, named: u32, group: u32) -> &'static str {
    if named >= media.pool.per_group {
        return "which is not there";
    }
    match media.pool.state(group * media.pool.per_group + named) {
        BlockState::Free => "which is free",
        BlockState::Open => "which is open",
        BlockState::Full => "whose last programs are in flight",
        BlockState::Closed => "which holds no user data",
        BlockState::Collecting => "which is being emptied",
        BlockState::Erasing => "which waits for its erase",
        BlockState::Bad => "which is bad",
    }
}

/// The victim of a group whose free blocks are too few, and whose last `full_in_a_row` victims were full, where the
/// policy named block `named`; `None` to wait.
pub(super) fn pick(media: &Media, group: u32, named: u32, full_in_a_row: u32, urgent: bool) -> Option<Pick> {
    let first = group * media.pool.per_group;
    let pages = media.data_pages_per_superblock();
    let patience = 2 * media.pool.per_group;
    let gives = pages_needed(media, named) + media.list_pages() < pages;
    let block = if full_in_a_row < patience
        && has_room_for(media, group, pages_needed(media, named))
        && (gives || !media.pool.has_loose())
    {
        // Where the room would not be there after a power cut, what the last victims held is programmed first, unless that waits for
        // collection.
        if !urgent && !has_room_after_a_cut(media, group, pages_needed(media, named)) {
            return None;
        }
        named
    } else {
        first + media.pool.view(group, media.data_units_per_superblock()).fewest_valid()?
    };
    let (least, others) = (media.pool.valid(block), media.pool.valid(named));
    assert!(least <= others, "the guard took block {block} with {least} valid units over {named} with {others}");
    let needed = pages_needed(media, block);
    // One that leaves room for nothing but an early list of what was moved gives nothing back either.
    let full = needed + media.list_pages() >= pages;
    if needed > media.relocation_room(group) || full && !can_win_a_block(media, group) {
        return None;
    }
    Some(Pick { block, full, guarded: block != named })
}

/// Whether the reserve of a group is whole, and stays large enough for a job of so many pages if power is cut during it.
pub(super) fn has_room_for(media: &Media, group: u32, needed: u32) -> bool {
    let room = media.relocation_room(group);
    room >= media.gc_reserve * media.data_pages_per_superblock() && room >= needed + lost_to_a_cut(media)
}

/// Whether a job of so many pages leaves room to move again what a power cut during it tears. What was moved out of the last victims may
/// be among that: they are not empty before it is programmed.
fn has_room_after_a_cut(media: &Media, group: u32, needed: u32) -> bool {
    // Programs of one plane end in their order, so that a job takes no page before what the last victims held is programmed. What waits
    // for lists has its own way to be written early.
    let in_order = media.pool.superblocks.width() == 1;
    in_order || media.lists_owners() || media.room_after_a_cut(group) >= needed + lost_to_a_cut(media)
}

/// Pages of relocation that a power cut tears, or that an early list takes.
fn lost_to_a_cut(media: &Media) -> u32 {
    let pages = media.data_pages_per_superblock();
    let torn =
        if media.flash.timed() { (RELOCATIONS_IN_FLIGHT * media.pool.superblocks.width()).min(pages) } else { 0 };
    torn + media.list_pages()
}

/// Whether emptying closed blocks of a group could ever make one more free: together with what is left of the frontier
/// they have the pages of a block to gain.
fn can_win_a_block(media: &Media, group: u32) -> bool {
    let pages = media.data_pages_per_superblock();
    let view = media.pool.view(group, media.data_units_per_superblock());
    debug_assert!(
        media.relocation_room(group) >= media.pool.free_or_erasing(group) * pages,
        "group {group} has less room than free blocks"
    );
    let mut gain = u64::from(media.relocation_room(group) - media.pool.free_or_erasing(group) * pages);
    for block in (0..view.blocks()).filter(|block| view.is_closed(*block)) {
        let needed = view.valid(block).div_ceil(media.units_per_page) + media.list_pages();
        gain += u64::from(pages.saturating_sub(needed));
        if gain >= u64::from(pages) {
            return true;
        }
    }
    false
}

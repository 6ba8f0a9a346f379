//! The host's side of paced collection: how many pages of a group the host may take, and which superblock of it is being
//! emptied.

use ssdlab_flash::NONE;

use super::Media;
use super::frontier::Frontier;
use crate::DriveConfig;

/// The host's side of paced collection, by group.
pub(crate) struct HostPace {
    /// Collection keeps pace with what the host takes.
    pub(super) on: bool,
    /// Pages that the host may take before collection looks at the group again; with 0 it waits for a relocation to end.
    pub(super) allowed: Vec<u32>,
    /// The superblock that is being emptied, and whether it comes back.
    victims: Vec<Option<(u32, bool)>>,
}

impl HostPace {
    pub(super) fn new(config: &DriveConfig, groups: u32) -> HostPace {
        HostPace {
            on: config.gc.pacing.is_on(),
            allowed: vec![u32::MAX; groups as usize],
            victims: vec![None; groups as usize],
        }
    }

    /// The host may take so many pages of a group before collection looks at it again. True if the group allowed none before:
    /// who waits for a page may try again.
    fn allow(&mut self, group: u32, pages: u32) -> bool {
        debug_assert!((group as usize) < self.allowed.len(), "group {group} of {} has a pace", self.allowed.len());
        let before = std::mem::replace(&mut self.allowed[group as usize], pages);
        before == 0 && pages > 0
    }

    /// A superblock is being emptied.
    fn job_begins(&mut self, group: u32, victim: u32, comes_back: bool) {
        let before = self.victims[group as usize];
        assert!(before.is_none(), "group {group} empties block {victim}, and {before:?} is not done");
        self.victims[group as usize] = Some((victim, comes_back));
    }

    /// It is empty.
    pub(crate) fn job_ends(&mut self, group: u32) {
        self.victims[group as usize] = None;
    }

    /// The host takes what there is.
    pub(crate) fn release(&mut self) {
        self.allowed.fill(u32::MAX);
        self.victims.fill(None);
    }
}

impl Media {
    /// Whether the host would have a page somewhere if collection did not keep pace with it.
    pub(crate) fn only_pace_holds_back(&self) -> bool {
        let is_held_back = |group: u32| {
            let row = (group * self.row) as usize;
            let could_take = |slot: usize| self.host_could_take(group, slot, self.frontiers[slot].block != NONE);
            self.host_pace.allowed[group as usize] == 0 && (row..row + self.streams as usize).any(could_take)
        };
        self.host_pace.on && (0..self.pool.groups()).any(is_held_back)
    }

    /// Under paced collection, whether the job in work leaves the reserve whole though the host takes a page now: room of
    /// the reserve is lent to the host while the victim's own block is on its way back.
    pub(super) fn job_leaves_room(&self, group: u32, slot: usize, free: u32) -> bool {
        let Some((victim, comes_back)) = self.host_pace.victims[group as usize] else { return false };
        let pages = self.data_pages_per_superblock;
        let left = self.data_pages_left(self.slot(group, Frontier::Gc));
        let shared = slot == self.slot(group, Frontier::Gc);
        let opens = self.frontiers[slot].block == NONE;
        if opens && free == 0 {
            return false;
        }
        // Relocation goes on where the host does if they share a frontier.
        let taken = if shared { 1 } else { pages };
        let comes_back = if comes_back { pages } else { 0 };
        let still_to_move = self.pool.valid(victim).div_ceil(self.units_per_page);
        // The victim's erase may have to wait for a record of trims; a second block of reserve has pages for that.
        let record = u32::from(self.gc_reserve == 1);
        left + free * pages + comes_back >= self.gc_reserve * pages + still_to_move + record + taken
    }

    /// Collection looks at the group: the host took a page.
    pub(super) fn note_host_page(&mut self, group: u32) {
        let allowed = &mut self.host_pace.allowed[group as usize];
        *allowed = allowed.saturating_sub(1);
        self.wakes.groups.push(group);
    }

    /// The host may take so many pages of a group before collection looks at it again.
    pub(crate) fn allow_host(&mut self, group: u32, pages: u32) {
        self.wakes.pace_released |= self.host_pace.allow(group, pages);
    }

    /// Collection empties a superblock; `comes_back`: it will be free again.
    pub(crate) fn pace_job_begins(&mut self, group: u32, victim: u32, comes_back: bool) {
        self.host_pace.job_begins(group, victim, comes_back);
        self.wakes.pace_released = true;
    }
}

//! Indirect indexing: the version slots of a group of logical pages.
//!
//! A slot is an entry of the same form as the map's: the page of a version, and the slot of the next older one (0: that
//! is the one in the map). Tables are allocated on demand and given back when their last slot is.

use ssdlab_base::saved;
use ssdlab_flash::Lpn;

/// Modelled RAM of a group's pointer to its table.
const POINTER_BYTES: u64 = 4;

/// Modelled RAM of a slot.
const SLOT_BYTES: u64 = 4;

#[derive(Clone, Debug, Default)]
struct Group {
    /// Slot 1 first.
    slots: Vec<u32>,
    /// Free ones among them; a real table links them through the slots.
    free: Vec<u32>,
}

saved!(Group: slots, free);
saved!(Groups: groups[..]);

/// The tables of all groups.
pub(super) struct Groups {
    pages: u32,
    group_pages: u32,
    most: u32,
    groups: Vec<Option<Box<Group>>>,
    slots: u64,
    used: u64,
    slots_most: u64,
}

impl Groups {
    /// Tables of at most `most` slots for each `group_pages` of `pages` logical pages.
    pub(super) fn new(pages: u32, group_pages: u32, most: u32) -> Groups {
        let groups = pages.div_ceil(group_pages) as usize;
        Groups { pages, group_pages, most, groups: vec![None; groups], slots: 0, used: 0, slots_most: 0 }
    }

    /// Bytes that the tables take with `versions` slots in use: where they are few, each has a table of its own.
    pub(super) fn simulator_bytes(pages: u64, group_pages: u32, versions: u64) -> u64 {
        /// The allocator's own of each of the three pieces of a table.
        const PIECES: u64 = 3 * 16;
        /// Entries that a list begins with.
        const FIRST: u64 = 4;
        let groups = pages.div_ceil(u64::from(group_pages));
        let tables = groups.min(versions);
        let lists = |entries: u64| 2 * entries * size_of::<u32>() as u64;
        groups * size_of::<Option<Box<Group>>>() as u64
            + tables * (size_of::<Group>() as u64 + PIECES + lists(FIRST))
            + lists(2 * versions.saturating_sub(tables * FIRST))
    }

    fn group(&self, lpn: Lpn) -> usize {
        (lpn / self.group_pages) as usize
    }

    /// Slots that a logical page's group has left.
    pub(super) fn room(&self, lpn: Lpn) -> u32 {
        let used = self.groups[self.group(lpn)].as_ref().map_or(0, |group| group.slots.len() - group.free.len());
        debug_assert!(used as u32 <= self.most, "the group of LPN {lpn} has {used} slots in use, of {}", self.most);
        self.most - used as u32
    }

    /// What a slot holds.
    pub(super) fn get(&self, lpn: Lpn, slot: u32) -> u32 {
        let group = self.groups[self.group(lpn)].as_ref().expect("a group with a slot in use has a table");
        debug_assert!(!group.free.contains(&slot), "slot {slot} of the group of LPN {lpn} is free");
        group.slots[slot as usize - 1]
    }

    /// Takes a slot; there must be room.
    pub(super) fn take(&mut self, lpn: Lpn, entry: u32) -> u32 {
        let index = self.group(lpn);
        let group = self.groups[index].get_or_insert_default();
        self.used += 1;
        if let Some(slot) = group.free.pop() {
            group.slots[slot as usize - 1] = entry;
            return slot;
        }
        assert!((group.slots.len() as u32) < self.most, "group {index} has a slot left");
        group.slots.push(entry);
        self.slots += 1;
        self.slots_most = self.slots_most.max(self.slots);
        group.slots.len() as u32
    }

    /// Gives a slot back.
    pub(super) fn give_back(&mut self, lpn: Lpn, slot: u32) {
        let index = self.group(lpn);
        let group = self.groups[index].as_mut().expect("a group with a slot in use has a table");
        assert!(slot > 0 && slot as usize <= group.slots.len(), "group {index} has no slot {slot}");
        debug_assert!(!group.free.contains(&slot), "slot {slot} of group {index} is given back twice");
        assert!(self.used > 0, "slot {slot} of group {index} is given back, and none is in use");
        group.free.push(slot);
        self.used -= 1;
        if group.free.len() == group.slots.len() {
            self.slots -= group.slots.len() as u64;
            self.groups[index] = None;
        }
    }

    /// The first logical page at or after `lpn` whose group has slots in use.
    pub(super) fn next_in_use(&self, lpn: Lpn) -> Option<Lpn> {
        let index = self.group(lpn);
        let found = index + self.groups.get(index..)?.iter().position(Option::is_some)?;
        Some(Lpn(found as u32 * self.group_pages).max(lpn))
    }

    /// Slots in use.
    pub(super) const fn used(&self) -> u64 {
        self.used
    }

    /// Modelled RAM now, and the most it was.
    pub(super) fn bytes(&self) -> (u64, u64) {
        let pointers = self.groups.len() as u64 * POINTER_BYTES;
        (pointers + self.slots * SLOT_BYTES, pointers + self.slots_most * SLOT_BYTES)
    }

    /// Modelled RAM now, in bytes, counted by walking all tables.
    pub(super) fn bytes_counted(&self) -> u64 {
        let slots: usize = self.groups.iter().flatten().map(|group| group.slots.len()).sum();
        self.groups.len() as u64 * POINTER_BYTES + slots as u64 * SLOT_BYTES
    }

    pub(super) fn clear(&mut self) {
        self.groups.fill(None);
        (self.slots, self.used) = (0, 0);
    }

    /// Slots of restored tables and how many are in use, where each is free or of one chain; `None` where one is not. `of` says
    /// which slots the chain of a logical page takes, `holds_entry` whether a slot holds what a version's has.
    pub(super) fn counted(
        &self,
        of: impl Fn(Lpn) -> Vec<u32>,
        holds_entry: impl Fn(u32) -> bool,
    ) -> Option<(u64, u64)> {
        let (mut slots, mut used) = (0, 0);
        for (index, group) in self.groups.iter().enumerate() {
            let Some(group) = group else { continue };
            let first = Lpn(index as u32 * self.group_pages);
            let end = self.end_of_group(first).min(Lpn(self.pages));
            let mut named: Vec<u32> = Lpn::each(first..end).flat_map(&of).collect();
            used += named.len() as u64;
            slots += group.slots.len() as u64;
            let is_used = !named.is_empty()
                && group.slots.len() <= self.most as usize
                && group.slots.iter().all(|slot| holds_entry(*slot));
            named.extend(&group.free);
            named.sort_unstable();
            if !is_used || !named.into_iter().eq(1..=group.slots.len() as u32) {
                return None;
            }
        }
        Some((slots, used))
    }

    /// What [`Groups::counted`] found of restored tables.
    pub(super) fn set_counts(&mut self, (slots, used): (u64, u64)) {
        assert!(used <= slots, "{used} of {slots} slots are in use");
        (self.slots, self.used, self.slots_most) = (slots, used, slots);
    }

    /// The slots of a logical page's group, slot 1 first; free ones among them mean nothing.
    pub(super) fn in_use_of(&self, lpn: Lpn) -> Option<&[u32]> {
        self.groups[self.group(lpn)].as_ref().map(|group| &group.slots[..])
    }

    /// The first logical page behind a logical page's group.
    pub(super) fn end_of_group(&self, lpn: Lpn) -> Lpn {
        Lpn((lpn / self.group_pages + 1).saturating_mul(self.group_pages))
    }
}

//! Indirect indexing: the version slots of a group of logical pages.
//!
//! A slot is an entry of the same form as the map's: the page of a version, and the slot of the next older one (0: that
//! is the one in the map). Tables are allocated on demand and given back when their last slot is.

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

/// The tables of all groups.
pub(super) struct Groups {
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
        Groups { group_pages, most, groups: vec![None; groups], slots: 0, used: 0, slots_most: 0 }
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

    /// All tables as words: group, slots, free ones.
    pub(super) fn words(&self) -> Vec<u32> {
        let mut words = Vec::new();
        for (index, group) in self.groups.iter().enumerate() {
            let Some(group) = group else { continue };
            words.extend([index as u32, group.slots.len() as u32, group.free.len() as u32]);
            words.extend(&group.slots);
            words.extend(&group.free);
        }
        words
    }

    /// Puts tables back; `None` if they are not tables of these groups.
    pub(super) fn restore(&mut self, words: &[u32]) -> Option<()> {
        self.clear();
        let mut rest = words;
        while let [index, slots, free, behind @ ..] = rest {
            let place = self.groups.get_mut(*index as usize).filter(|place| place.is_none())?;
            let (table, behind) = behind.split_at_checked(*slots as usize)?;
            let (gone, behind) = behind.split_at_checked(*free as usize)?;
            let mut sorted = gone.to_vec();
            sorted.sort_unstable();
            sorted.dedup();
            let known = sorted.iter().all(|slot| (1..=*slots).contains(slot));
            if *slots > self.most || free >= slots || sorted.len() != gone.len() || !known {
                return None;
            }
            *place = Some(Box::new(Group { slots: table.to_vec(), free: gone.to_vec() }));
            self.slots += u64::from(*slots);
            self.used += u64::from(slots - free);
            rest = behind;
        }
        self.slots_most = self.slots;
        rest.is_empty().then_some(())
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

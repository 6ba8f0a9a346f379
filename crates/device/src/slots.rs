//! Records under small numbers that are used again.

use std::ops::{Index, IndexMut};

/// Records by slot.
#[derive(Clone, Debug)]
pub(crate) struct Slots<T> {
    all: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Slots<T> {
        Slots { all: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slots<T> {
    /// Puts a record into a free slot.
    #[inline]
    pub(crate) fn insert(&mut self, record: T) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.all[slot as usize] = record;
            return slot;
        }
        self.all.push(record);
        self.all.len() as u32 - 1
    }

    /// The slot may be used again; its record stays until then.
    #[inline]
    pub(crate) fn release(&mut self, slot: u32) {
        debug_assert!((slot as usize) < self.all.len(), "slot {slot} of {}", self.all.len());
        debug_assert!(!self.free.contains(&slot), "slot {slot} is released once");
        self.free.push(slot);
    }

    /// The records in use, in the order of their slots. It takes a moment: for rare occasions.
    pub(crate) fn used(&self) -> impl Iterator<Item = &T> {
        let mut is_free = vec![false; self.all.len()];
        self.free.iter().for_each(|slot| is_free[*slot as usize] = true);
        self.all.iter().zip(is_free).filter(|(_, free)| !free).map(|(record, _)| record)
    }

    /// Gives `each` the records in use, to change. It takes a moment: for rare occasions.
    pub(crate) fn each_used(&mut self, mut each: impl FnMut(&mut T)) {
        let mut is_free = vec![false; self.all.len()];
        self.free.iter().for_each(|slot| is_free[*slot as usize] = true);
        self.all.iter_mut().zip(is_free).filter(|(_, free)| !free).for_each(|(record, _)| each(record));
    }

    /// Slots in use.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.all.len() - self.free.len()
    }
}

impl<T: Default> Slots<T> {
    /// A free slot with the record that it held last, whose allocations are used again.
    pub(crate) fn take(&mut self) -> u32 {
        match self.free.pop() {
            Some(slot) => slot,
            None => self.insert(T::default()),
        }
    }
}

impl<T> Index<u32> for Slots<T> {
    type Output = T;

    #[inline]
    fn index(&self, slot: u32) -> &T {
        &self.all[slot as usize]
    }
}

impl<T> IndexMut<u32> for Slots<T> {
    #[inline]
    fn index_mut(&mut self, slot: u32) -> &mut T {
        &mut self.all[slot as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::Slots;

    #[test]
    fn a_released_slot_is_used_again_and_no_other_is_touched() {
        let mut slots = Slots::default();
        let (first, second) = (slots.insert("first"), slots.insert("second"));
        assert_eq!((first, second, slots.len()), (0, 1, 2));
        slots.release(first);
        assert_eq!((slots.len(), slots[second]), (1, "second"));
        assert_eq!(slots.insert("third"), first);
        assert_eq!((slots[first], slots[second]), ("third", "second"));
        slots.release(second);
        assert_eq!((slots.take(), slots[second]), (second, "second"), "the record is still there");
        assert_eq!((slots.take(), slots.len()), (2, 3));
    }
}

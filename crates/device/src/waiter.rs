//! Who waits: for a flash operation, packed into the 32 bits that travel with it, or for map pages.

use crate::MapUser;

/// Who goes on when a flash operation has ended, or when map pages are cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Waiter {
    /// Nothing waits for the operation: its effect is enough.
    None,
    /// A host command, by slot. Of map pages: one that changes entries.
    Command(u32),
    /// A host command that only looks entries of the map up, by slot.
    Read(u32),
    /// Pages leaving the write buffer, by slot, for their programs.
    Eviction(u32),
    /// What leaves the write buffer, for its map pages.
    Buffer,
    /// The relocation job of a group.
    Gc(u32),
    /// What the FTL does while the drive is idle.
    Idle,
    /// A read that goes on from version to version, by slot.
    Versions(u32),
    /// A page that is rebuilt from parity, by slot.
    Rebuild(u32),
    /// A read or program of map pages, by slot.
    Map(u32),
    /// The map itself, for what its log has to change.
    Log,
    /// What a host command reads through the read buffer, by slot.
    Gathered(u32),
    /// Those who wait for the list of owners of a block, by its number.
    List(u32),
    /// The relocation job of a group, for the list of its victim.
    VictimList(u32),
    /// The design, for a page or block of its checkpoints.
    Checkpoint,
}

const KIND_SHIFT: u32 = 28;
const INDEX_MASK: u32 = (1 << KIND_SHIFT) - 1;

impl Waiter {
    /// The number of its kind, and its slot or group.
    #[inline]
    const fn parts(self) -> (u32, u32) {
        match self {
            Waiter::None => (0, 0),
            Waiter::Command(slot) => (1, slot),
            Waiter::Read(slot) => (2, slot),
            Waiter::Eviction(slot) => (3, slot),
            Waiter::Buffer => (4, 0),
            Waiter::Gc(group) => (5, group),
            Waiter::Idle => (6, 0),
            Waiter::Versions(slot) => (7, slot),
            Waiter::Rebuild(slot) => (8, slot),
            Waiter::Map(slot) => (9, slot),
            Waiter::Log => (10, 0),
            Waiter::Gathered(slot) => (11, slot),
            Waiter::List(block) => (12, block),
            Waiter::VictimList(group) => (13, group),
            Waiter::Checkpoint => (14, 0),
        }
    }

    /// As it travels with a flash operation.
    #[inline]
    pub(crate) const fn pack(self) -> u32 {
        let (kind, index) = self.parts();
        debug_assert!(index <= INDEX_MASK, "the number of a waiter fits beside its kind");
        kind << KIND_SHIFT | index
    }

    /// Who waits for the operation that came with `token`.
    #[inline]
    pub(crate) const fn unpack(token: u32) -> Waiter {
        let index = token & INDEX_MASK;
        match token >> KIND_SHIFT {
            1 => Waiter::Command(index),
            2 => Waiter::Read(index),
            3 => Waiter::Eviction(index),
            4 => Waiter::Buffer,
            5 => Waiter::Gc(index),
            6 => Waiter::Idle,
            7 => Waiter::Versions(index),
            8 => Waiter::Rebuild(index),
            9 => Waiter::Map(index),
            10 => Waiter::Log,
            11 => Waiter::Gathered(index),
            12 => Waiter::List(index),
            13 => Waiter::VictimList(index),
            14 => Waiter::Checkpoint,
            _ => Waiter::None,
        }
    }

    /// The user of the map that statistics count it as.
    ///
    /// # Panics
    /// It asks for no map pages.
    pub(crate) fn user(self) -> MapUser {
        match self {
            Waiter::Command(_) | Waiter::Read(_) => MapUser::Host,
            Waiter::Buffer => MapUser::Buffer,
            Waiter::Gc(_) => MapUser::Gc,
            Waiter::Log => MapUser::Log,
            _ => panic!("{self:?} asks for no map pages"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiter_comes_back_from_its_bits() {
        let most = INDEX_MASK;
        let all = [
            Waiter::None,
            Waiter::Command(0),
            Waiter::Read(most),
            Waiter::Eviction(1),
            Waiter::Buffer,
            Waiter::Gc(most),
            Waiter::Idle,
            Waiter::Versions(2),
            Waiter::Rebuild(3),
            Waiter::Map(most),
            Waiter::Log,
            Waiter::Gathered(4),
            Waiter::List(most),
            Waiter::VictimList(4),
            Waiter::Checkpoint,
        ];
        for (place, waiter) in all.into_iter().enumerate() {
            assert_eq!(Waiter::unpack(waiter.pack()), waiter);
            assert!(all[..place].iter().all(|other| other.pack() != waiter.pack()), "{waiter:?} has bits of its own");
        }
    }
}

//! Who waits for a flash operation, packed into the 32 bits that travel with it.

/// The owner of a flash operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// None: nothing waits for it, its effect is enough.
    None,
    /// A host command, by slot.
    Command(u32),
    /// Pages leaving the write buffer, by slot.
    Eviction(u32),
    /// The relocation job of a group.
    Gc(u32),
    /// What the FTL does while the drive is idle.
    Idle,
    /// A read that goes on from version to version, by slot.
    Versions(u32),
    /// A page that is had from the rest of its stripe, by slot.
    Rebuild(u32),
    /// A read or program of map pages, by slot.
    Map(u32),
}

const KIND_SHIFT: u32 = 29;
const INDEX_MASK: u32 = (1 << KIND_SHIFT) - 1;

impl Owner {
    #[inline]
    pub(crate) const fn pack(self) -> u32 {
        if let Owner::Command(index)
        | Owner::Eviction(index)
        | Owner::Gc(index)
        | Owner::Versions(index)
        | Owner::Rebuild(index)
        | Owner::Map(index) = self
        {
            debug_assert!(index <= INDEX_MASK, "the number of an owner fits beside its kind");
        }
        match self {
            Owner::None => 0,
            Owner::Command(index) => 1 << KIND_SHIFT | index,
            Owner::Eviction(index) => 2 << KIND_SHIFT | index,
            Owner::Gc(group) => 3 << KIND_SHIFT | group,
            Owner::Idle => 4 << KIND_SHIFT,
            Owner::Versions(index) => 5 << KIND_SHIFT | index,
            Owner::Rebuild(index) => 6 << KIND_SHIFT | index,
            Owner::Map(index) => 7 << KIND_SHIFT | index,
        }
    }

    #[inline]
    pub(crate) const fn unpack(token: u32) -> Owner {
        let index = token & INDEX_MASK;
        match token >> KIND_SHIFT {
            1 => Owner::Command(index),
            2 => Owner::Eviction(index),
            3 => Owner::Gc(index),
            4 => Owner::Idle,
            5 => Owner::Versions(index),
            6 => Owner::Rebuild(index),
            7 => Owner::Map(index),
            _ => Owner::None,
        }
    }
}

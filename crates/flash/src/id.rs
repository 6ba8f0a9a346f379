//! Numbers of the parts of the chips: a type for each kind, so that none is taken for another.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// None of them.
            pub const NONE: $name = $name(u32::MAX);

            /// The place in a table with an entry for each.
            #[inline(always)]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// A die, numbered over the whole drive: `(channel * ways + way) * dies_per_chip + die`.
    DieId
}

id! {
    /// A block, numbered over the whole drive: `plane * blocks_per_plane + block`, planes as dies are, die by die.
    BlockId
}

//! Numbers of the parts of the chips: a type for each kind, so that none is taken for another.

use std::fmt;
use std::ops::{Add, Div, Range, Rem, Sub};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, bytemuck::Pod, bytemuck::Zeroable)]
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

/// Numbers that are counted with: the next one, how many lie between, which group of so many one is in.
macro_rules! counted {
    ($name:ident) => {
        impl $name {
            /// All from `range.start` on, before `range.end`.
            #[inline]
            pub fn each(range: Range<$name>) -> impl DoubleEndedIterator<Item = $name> + ExactSizeIterator + Clone {
                (range.start.0..range.end.0).map($name)
            }

            /// The first of its group of so many.
            #[inline(always)]
            pub const fn begin(self, group: u32) -> $name {
                $name(self.0 - self.0 % group)
            }
        }

        impl Add<u32> for $name {
            type Output = $name;

            /// The number so many behind.
            #[inline(always)]
            fn add(self, count: u32) -> $name {
                $name(self.0 + count)
            }
        }

        impl Sub for $name {
            type Output = u32;

            /// How many lie between.
            #[inline(always)]
            fn sub(self, first: $name) -> u32 {
                self.0 - first.0
            }
        }

        impl Div<u32> for $name {
            type Output = u32;

            /// Which group of so many it is in.
            #[inline(always)]
            fn div(self, group: u32) -> u32 {
                self.0 / group
            }
        }

        impl Rem<u32> for $name {
            type Output = u32;

            /// Its place in its group of so many.
            #[inline(always)]
            fn rem(self, group: u32) -> u32 {
                self.0 % group
            }
        }
    };
}

id! {
    /// A die, numbered over the whole drive: `(channel * ways + way) * dies_per_chip + die`.
    DieId
}

id! {
    /// A plane, numbered over the whole drive: `die * planes_per_die + plane`.
    PlaneId
}
counted!(PlaneId);

id! {
    /// A block, numbered over the whole drive: `plane * blocks_per_plane + block`.
    BlockId
}

impl BlockId {
    /// The plane that the block is in.
    #[inline(always)]
    pub const fn plane(self, blocks_per_plane: u32) -> PlaneId {
        PlaneId(self.0 / blocks_per_plane)
    }
}

id! {
    /// A mapping unit of the logical space: the unit of the sectors from `lpn * unit_bytes / 512` on. An FTL numbers what it
    /// keeps for itself behind the user's.
    Lpn
}
counted!(Lpn);

impl Lpn {
    /// In place of an LPN: the page is the parity of its stripe.
    pub const PARITY: Lpn = Lpn(u32::MAX - 1);

    /// In place of an LPN: the page holds nothing, and its stripe's parity was made for what a power cut kept from it.
    pub const FILLER: Lpn = Lpn(u32::MAX - 2);

    /// Whether a page that says this of its owner belongs to its stripe, and to no logical page.
    #[inline]
    pub const fn is_of_stripe(self) -> bool {
        self.0 == Lpn::PARITY.0 || self.0 == Lpn::FILLER.0
    }
}

id! {
    /// A physical page, numbered over the whole drive: `block * pages_per_block + page`.
    Ppn
}
counted!(Ppn);

impl Ppn {
    /// A page of a block.
    #[inline(always)]
    pub const fn of(block: BlockId, page: u32, pages_per_block: u32) -> Ppn {
        Ppn(block.0 * pages_per_block + page)
    }

    /// The block that the page is in; `ppn % pages_per_block` is its number there.
    #[inline(always)]
    pub const fn block(self, pages_per_block: u32) -> BlockId {
        BlockId(self.0 / pages_per_block)
    }

    /// The first mapping unit in the page.
    #[inline(always)]
    pub const fn first_unit(self, units_per_page: u32) -> UnitId {
        UnitId(self.0 * units_per_page)
    }

    /// The mapping unit that is the page, where a page holds one.
    #[inline(always)]
    pub const fn sole_unit(self) -> UnitId {
        self.first_unit(1)
    }
}

id! {
    /// A place on flash for one mapping unit, numbered over the whole drive: `ppn * units_per_page + index`. An [`Lpn`] says which
    /// unit of data, this says where.
    UnitId
}
counted!(UnitId);

impl UnitId {
    /// The page that the unit is in; `unit % units_per_page` is its index there.
    #[inline(always)]
    pub const fn page(self, units_per_page: u32) -> Ppn {
        Ppn(self.0 / units_per_page)
    }

    /// The page that the unit is, where a page holds one.
    #[inline(always)]
    pub const fn whole_page(self) -> Ppn {
        self.page(1)
    }
}

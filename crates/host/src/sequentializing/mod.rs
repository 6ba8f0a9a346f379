//! What drivers that write small requests one behind the other have in common: the table that says where a unit is, the ring of
//! places that they are written to, and packing (SHRD, section 4.2).

mod packing;
mod ring;
mod table;

pub(crate) use packing::{Pack, Packing, Reason};
pub(crate) use ring::Ring;
pub(crate) use table::RedirectionTable;

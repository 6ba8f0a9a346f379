//! What all layers of ssdlab have in common: virtual time, sizes, requests and
//! seeded randomness.
//!
//! This crate knows nothing of drives. It promises that a quantity carries its
//! unit in its type or its name, and that a random number always comes from a
//! seed that the caller handed down.

mod closest;
pub mod command_set;
pub mod command_sets;
mod divider;
mod quantity;
mod renamed;
mod request;
mod rng;
mod saved;
mod text_file;
mod time;

pub use closest::closest;
pub use command_set::{Answer, CommandSet, CommandSpec, Event, EventKind, Opcode, Refusal};
pub use command_sets::COMMAND_SETS;
pub use divider::Divider;
pub use quantity::{
    Amount, QuantityError, format_size, grouped, is_negative, parse_amount, parse_duration, parse_size,
};
pub use renamed::{RENAMED, renamed};
pub use request::{Op, Request, SECTOR_BYTES};
pub use rng::{RNG_BYTES, Rng, fnv1a, rng, rng_at, rng_state};
pub use saved::{Saved, damaged, load, load_magic};
pub use text_file::{TextError, other_encoding, read_text};
pub use time::Nanos;

//! Drives under power cuts and faults.
//!
//! A drive is asked what a host could ask, its power is cut and its chips fail, and its answers are compared with what a
//! host must be able to rely on. Nothing here looks into the drive: designs, buffers and policies go by the names they
//! are registered under, so a new one is tortured without a line here.
//!
//! ```text
//! configs, commands    small odd drives and wild commands, drawn from a seed
//! driver               how a host drives a drive
//! durable              what each read must see, and what each sector may hold after a power cut
//! hosts                what hosts share that know a drive by their own commands
//! journal              the same for a run without power cuts, to the last command
//! crash_harness        a drive and the oracle, over power cuts
//! case, draw, script   a drive and the list of what happens to it: as data, from a seed, as text
//! run                  a case and what was found wrong
//! shrink               a failing case made small
//! campaign             many seeds on many threads
//! shape                a drive of one's own made small enough to be compared
//! stacks               layers above several drives: crashes of the host, cuts of one drive, cuts of everything
//! exhaustive           every power cut of every short sequence of commands
//! segments             a drive with append-only segments, and what each must hold
//! shrd                 a drive of the set `shrd` without a driver, and what each unit must hold
//! tags                 the example command set against a model of it, and its cases
//! ```
//!
//! The oracles speak by panicking: to them a wrong answer is what a failed assertion is to the drive.

pub mod campaign;
pub mod case;
pub mod commands;
pub mod configs;
mod cpu;
pub mod crash_harness;
pub mod draw;
pub mod driver;
pub mod durability_oracle;
pub mod exhaustive;
pub mod hosts;
pub mod journal;
mod panic_capture;
pub mod run;
pub mod scale_down;
pub mod script;
pub mod seeds;
pub mod segments;
pub mod shrd;
pub mod shrink;
pub mod stacks;
pub mod tags;
pub mod totals;

pub use campaign::{Campaign, Ended, Outcome};
pub use case::Case;
pub use draw::{NotAccepted, NotDrawn, Scope, draw, draw_until, without_bad_blocks};
pub use exhaustive::Exhaustive;
pub use run::{Finding, accepted, run, run_telling, simulator_bytes};
pub use shrink::{Shrunk, shrink, shrink_until};
pub use totals::Totals;

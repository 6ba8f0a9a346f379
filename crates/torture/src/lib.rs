//! Drives under power cuts and faults.
//!
//! A drive is asked what a host could ask, its power is cut and its chips fail, and its answers are compared with what
//! a host must be able to rely on. Nothing here looks into the drive: designs, buffers and policies go by the names
//! they are registered under, so a new one is tortured without a line here.
//!
//! What is the same for everything that is tortured:
//!
//! ```text
//! case                 a system and the list of what happens to it; the trait of what is tortured; running a case
//! step                 what can happen, as data and as text
//! cut                  power cuts, and how a drive loses its power
//! campaign             many seeds on many threads
//! walk                 every power cut of every short sequence of commands
//! shrink               a failing case made small
//! script               cases as text
//! ```
//!
//! What is tortured, each with its steps, its draw from a seed, and its text:
//!
//! ```text
//! single_drive         block I/O on a drive
//! stacks               layers above several drives: crashes of the host, cuts of one drive, cuts of everything
//! segments             a drive with append-only segments or zones, and what each must hold
//! cache                a drive of the set `cache` without a manager, and what each block may hold
//! shrd                 a drive of the set `shrd` without a driver, and what each unit must hold
//! tags                 the example command set against a model of it
//! files                a file system on a drive, against a model of it
//! damaged_state        damaged bytes of saved drives and checkpoints
//! ```
//!
//! What they use:
//!
//! ```text
//! configs, commands    small odd drives and wild commands, drawn from a seed
//! driver               how a host drives a drive
//! durability_oracle    what each read must see, and what each sector may hold after a power cut
//! journal              the same for a run without power cuts, to the last command
//! crash_harness        a drive and the oracle, over power cuts
//! scale_down           a drive of one's own made small enough to be compared
//! ```
//!
//! The oracles speak by panicking: to them a wrong answer is what a failed assertion is to the drive.

pub mod cache;
pub mod campaign;
pub mod case;
pub mod commands;
pub mod configs;
mod cpu;
pub mod crash_harness;
pub mod cut;
mod damaged_state;
pub mod driver;
pub mod durability_oracle;
pub mod files;
pub mod journal;
mod panic_capture;
pub mod scale_down;
pub mod script;
pub mod seeds;
pub mod segments;
pub mod serial_host;
pub mod shrd;
pub mod shrink;
pub mod single_drive;
pub mod stacks;
pub mod step;
pub mod tags;
pub mod totals;
pub mod walk;

pub use campaign::{Campaign, Draw, NotDrawn, Outcome, draw};
pub use case::{Case, Finding, Refused, Subject, run, run_telling};
pub use damaged_state::damaged_state;
pub use script::{SETS, WithCase, WithScope, with_case, with_scope};
pub use shrink::{Shrunk, shrink, shrink_until};
pub use single_drive::{Exhaustive, NotAccepted, Scope, simulator_bytes, without_bad_blocks};
pub use totals::Totals;

//! Drives under power cuts and faults.
//!
//! A drive is asked what a host could ask, its power is cut and its chips fail, and its answers are compared with what a
//! host must be able to rely on. Nothing here looks into the drive: designs, buffers and policies go by the names they
//! are registered under, so a new one is tortured without a line here.
//!
//! ```text
//! configs, commands    small odd drives and wild commands, drawn from a seed
//! driver               how a host drives a drive
//! durable              what each sector may hold after a power cut
//! journal              what each read must see without one
//! lives                a drive and the oracle, over power cuts
//! ```
//!
//! The oracles speak by panicking: to them a wrong answer is what a failed assertion is to the drive.

pub mod commands;
pub mod configs;
pub mod driver;
pub mod durable;
pub mod journal;
pub mod lives;
pub mod seeds;

//! What the tests of trust share: random drives, random commands, models that know only sectors, and seeds that can be
//! repeated.
//!
//! Nothing here looks into the drive: it is asked what a host could ask, and its answers are compared with what a host
//! must be able to rely on.
#![allow(dead_code, unreachable_pub, missing_docs, clippy::unwrap_used, reason = "test code, shared by several tests")]

pub mod campaign;
pub mod commands;
pub mod configs;
pub mod crashing;
pub mod driver;
pub mod durable;
pub mod model;

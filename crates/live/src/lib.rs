//! A drive served to a real system.
//!
//! A transport (NBD, FUSE) turns what its clients ask into commands of a drive and hands them to a [`Target`]; the
//! target answers through the [`Sink`] of the connection the command came from, in any order and from any thread. The
//! [`Engine`] is the target that stands on a drive: it binds virtual time to the wall clock.

pub mod control;
pub mod engine;
pub mod fuse;
pub mod image;
pub mod mount;
pub mod nbd;
pub mod record;
pub mod report;
pub mod seeded;
pub mod segments;
pub mod target;
mod tools;

pub use engine::{Condition, Engine, Executed, Figures, Pace, Promise};
pub use target::{Answer, Appends, Command, Extent, Failure, Sink, Target};
pub use tools::ToolError;

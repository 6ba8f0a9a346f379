//! Write amplification, measured from outside: what a person with a probe, or with a drive's log, can know.
//!
//! ```text
//!   Ready/Busy lines ──> capture ──> lows ──> recorder, classify ──> programs ─┐
//!   (of a run: vcd)      (VCD, sigrok, Saleae)                                 ├─> model ──> write amplification
//!   a drive's log  ──> drive_log ──────────────────────────────────────────────┘
//! ```
//!
//! Nothing here looks at a drive's counters to make an estimate: an estimate is made from what the lines show, so that it
//! can be compared with the counters afterwards.

pub mod capture;
pub mod classify;
pub mod drive_log;
mod edges;
pub mod histogram;
mod lifetime;
pub mod micro;
pub mod model;
pub mod recorder;
pub mod smart;
pub mod vcd;
mod window;

pub use edges::{Edge, Low, LowTracker};
pub use lifetime::{Lifetime, Usage};
pub use model::{Levels, Model, ProgramModel};
pub use window::{Window, WindowError};

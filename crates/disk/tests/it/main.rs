//! Disks as a host sees them.

mod closed_forms;
mod contents;
mod description;
mod queue;
mod state;
mod support;

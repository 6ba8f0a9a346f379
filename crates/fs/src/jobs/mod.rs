//! What the file system does by itself, and what takes time: state machines, a file each.

pub(crate) mod checkpoint;
pub(crate) mod cleaning;
pub(crate) mod encode;
pub(crate) mod loads;
pub(crate) mod read_ahead;
pub(crate) mod stages;
pub(crate) mod timers;
pub(crate) mod write_out;

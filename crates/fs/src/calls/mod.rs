//! The calls, a file a group, gather and apply beside each other.

pub(crate) mod data;
pub(crate) mod directory;
pub(crate) mod freeing;
pub(crate) mod names;
pub(crate) mod rename;
pub(crate) mod status;

//! What caches of a disk share, whatever drive they keep blocks on.

mod sequential;

pub(crate) use sequential::Sequential;

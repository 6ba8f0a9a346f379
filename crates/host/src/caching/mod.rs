//! What caches of a disk share, whatever drive they keep blocks on.

#[cfg_attr(not(test), expect(dead_code, reason = "the layers that use it come next"))]
mod sequential;

#[cfg_attr(not(test), expect(unused_imports, reason = "the layers that use it come next"))]
pub(crate) use sequential::Sequential;

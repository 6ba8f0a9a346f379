//! ALFS (AMF, section 3): how it is made, found again and started.
//!
//! ```text
//!   segment 0     the superblock
//!   segments 1, 2 check-points, in turn
//!   the others    data and nodes in up to six logs; inode map, TIMB and usage table in another
//! ```

pub(crate) mod chain;
pub(crate) mod make;
pub(crate) mod mount;

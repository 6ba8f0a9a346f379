//! The block pool does what a list of blocks does that is searched from end to end.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ssdlab_device::fuzzing::block_pool(bytes));

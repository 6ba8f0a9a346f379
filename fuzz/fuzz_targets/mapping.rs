//! The page design finds what an array holds, through writes, trims, collection and power cuts.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ssdlab_device::fuzzing::mapping(bytes));

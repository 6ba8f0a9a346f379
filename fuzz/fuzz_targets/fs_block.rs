//! Damaged blocks of metadata are refused, or are encoded as they were decoded.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ssdlab_torture::files::fuzzing::damaged_block(bytes));

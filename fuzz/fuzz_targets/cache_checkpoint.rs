//! The bytes of a page of a checkpoint of the design `ssc` are refused, or a page that is written as the same bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ssdlab_device::fuzzing::cache_checkpoint(bytes));

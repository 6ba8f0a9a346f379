//! The bytes of a log unit of the design `ssc` are refused, or notes that are written as the same bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ssdlab_device::fuzzing::cache_notes(bytes));

//! Pages of a frontier come in order, whole stripes add up, and pins are those of the operations in flight.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ssdlab_device::fuzzing::media(bytes));

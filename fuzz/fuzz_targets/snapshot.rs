//! Damaged and arbitrary bytes of saved drives and checkpoints are refused, or are drives that work.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ssdlab_torture::damaged_state(bytes));

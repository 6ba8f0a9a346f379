//! Damaged metadata of FlashCache: a cache starts above it and works, or says what is wrong.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    ssdlab_torture::stacks::fuzzing::damaged_cache(bytes);
});

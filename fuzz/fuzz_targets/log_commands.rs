//! A drive of the design `shrd` ends every command of its set, whatever its block of 4 KB says, as the set allows.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ssdlab_torture::shrd::commands_from_bytes(bytes));
